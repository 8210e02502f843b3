"""Pictures in HTML of one frame, resized by each rule of images.

The frame is drawn here, and the pictures are computed when the documentation is built: with the
reference of the tests in NumPy, which has the bits of the library, so that nothing is compiled.
"""

import base64
import html
import struct
import sys
import zlib
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "python" / "support"))

import images_reference  # noqa: E402

HEIGHT, WIDTH = 240, 320
SMALL = (60, 80)
SQUARE = (96, 96)
ZOOM = 3  # pixels of the page for each pixel of a small picture
SHOWN = ("pillow", "torchvision", "opencv")  # the other rules look like pillow


def frame():
    """Draw a frame as a robot's camera may see it, uint8 [HEIGHT,WIDTH,3].

    A floor of tiles, a wall of slats, a ball, a cable and a gripper: fine patterns show aliasing.
    """
    y, x = np.mgrid[:HEIGHT, :WIDTH] + 0.5
    horizon = 100
    depth = 60 / np.maximum(y - horizon, 0.5)
    tiles = (np.floor(depth * 6) + np.floor((x - WIDTH / 2) * depth / 12)) % 2
    floor = np.stack([70 + 120 * tiles, 75 + 110 * tiles, 80 + 90 * tiles], -1)
    slats = (np.floor(x / 3) % 2) * 60
    wall = (
        np.stack([150 + slats, 145 + slats, 130 + slats], -1) * (0.8 + 0.2 * y / horizon)[..., None]
    )
    image = np.where((y > horizon)[..., None], floor, wall)
    # The ball: shaded by the angle to a light at the upper left.
    u, v = (x - 215) / 42, (y - 128) / 42
    inside = u**2 + v**2 < 1
    w = np.sqrt(np.maximum(1 - u**2 - v**2, 0))
    light = np.clip(-0.5 * u - 0.6 * v + 0.62 * w, 0, 1)
    ball = np.stack([60 + 190 * light, 30 + 60 * light, 30 + 50 * light], -1)
    ball += (light**24 * 120)[..., None]
    image = np.where(inside[..., None], ball, image)
    cable = np.abs(y - 60 - 40 * np.sin(x / 40)) < 0.8
    image = np.where(cable[..., None], (20, 20, 25), image)
    gripper = (np.abs(x - 105) < 16) & (y > 60) & (y < 190) & (np.abs(x - 105) > 7 - (y < 120) * 9)
    lines = (np.floor(y / 2) % 2) * 50
    metal = np.stack([190 - lines, 195 - lines, 40 + lines], -1)
    image = np.where(gripper[..., None], metal, image)
    return np.clip(image, 0, 255).astype(np.uint8)


def rules():
    """Yield (rule, filter, picture) of each pair that is shown."""
    source = frame()
    for rule in SHOWN:
        for name in images_reference.FILTERS[rule]:
            yield rule, name, images_reference.resize(source, *SMALL, rule, name)


def fits():
    """Yield (fit, picture) for a square."""
    source = frame()
    for fit in ("stretch", "pad", "cover"):
        yield fit, images_reference.images(source, *SQUARE, fit=fit)


def png(image):
    """Return a picture [h,w,3] of uint8 as PNG."""

    def chunk(kind, content):
        check = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)

    height, width = image.shape[:2]
    lines = np.zeros((height, width * 3 + 1), np.uint8)
    lines[:, 1:] = image.reshape(height, -1)
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def cell(image, zoom, words, more=""):
    height, width = image.shape[:2]
    content = base64.b64encode(png(image)).decode()
    caption = f"<strong>{html.escape(words)}</strong>" + (
        f"<br>{html.escape(more)}" if more else ""
    )
    return (
        f'<figure><img width="{width * zoom}" height="{height * zoom}" alt="{html.escape(words)}" '
        f'src="data:image/png;base64,{content}"><figcaption>{caption}</figcaption></figure>'
    )


def figure(kind):
    """Return the figure as HTML."""
    cells = [cell(frame(), 1, f"the frame, {WIDTH} x {HEIGHT}")]
    if kind == "fits":
        cells += [cell(image, 2, fit) for fit, image in fits()]
    else:
        pictures = list(rules())
        base = next(image for rule, name, image in pictures if name == "bilinear").astype(int)
        for rule, name, image in pictures:
            apart = np.abs(image - base)
            share = np.count_nonzero(apart) / apart.size
            more = f"{share:.0%} of the values differ, by up to {apart.max()}"
            if (rule, name) == ("pillow", "bilinear"):
                more = "the default, compared with below"
            cells.append(cell(image, ZOOM, f"{rule} {name}", more))
    return f'<div class="resize-figure">{"".join(cells)}</div>'
