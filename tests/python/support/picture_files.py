"""PNG and JPEG files made and decoded by Pillow, and frames read from sources."""

from __future__ import annotations

import io
import os

import numpy as np


def pixels(count, height=12, width=16, channels=3, seed=0):
    shape = (count, height, width, channels) if channels else (count, height, width)
    return np.random.default_rng(seed).integers(0, 256, shape, np.uint8)


def encoded(frame, kind="PNG", **options):
    import PIL.Image

    buffer = io.BytesIO()
    image = frame if isinstance(frame, PIL.Image.Image) else PIL.Image.fromarray(frame)
    image.save(buffer, kind, **({"quality": 90} if kind == "JPEG" else {}), **options)
    return buffer.getvalue()


def colours_of(path):
    """Return how many pixels have each colour of a picture [N], and the colours [N,3]."""
    import PIL.Image

    with PIL.Image.open(path) as image:
        counts, colours = zip(*image.convert("RGB").getcolors(image.width * image.height))
    return np.array(counts), np.array(colours)


def decoded(content):
    import PIL.Image

    return np.array(PIL.Image.open(io.BytesIO(content)).convert("RGB"))


def read(source, episode, rows):
    out = np.empty((len(rows), *source.shape), np.uint8)
    source.read(episode, np.asarray(rows, np.int64), out)
    return out


def aged(path):
    """Give files old dates: frames of files that may still change are not stored."""
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    for i, file in enumerate(files):
        os.utime(file, (1_700_000_000 + i, 1_700_000_000 + i))
    return path


def images_of(episodes, spec, which, anchors):
    """Return the images of the only window of images, and which of them are valid."""
    from robocache.data._frames.window_images import window_images

    (window,) = window_images(episodes, spec, show=False)
    frames = window.frames(np.asarray(which), np.asarray(anchors))
    out = np.empty((len(which), *window.shape), np.uint8)
    window.write(frames, None, out)
    return out, frames.valid


def whole(source, episode):
    return read(source, episode, range(int(source.lengths[episode])))


def require_equal(source, expected, seed=1):
    """Episodes in sequence, and random rows in any order of calls, are the expected frames."""
    rng = np.random.default_rng(seed)
    assert source.lengths.tolist() == [len(each) for each in expected]
    for e, own in enumerate(expected):
        np.testing.assert_array_equal(whole(source, e), own)
    for _ in range(20):
        e = int(rng.integers(len(expected)))
        if len(expected[e]):
            count = int(rng.integers(1, len(expected[e]) + 1))
            rows = np.sort(rng.choice(len(expected[e]), count, replace=False))
            np.testing.assert_array_equal(read(source, e, rows), np.asarray(expected[e])[rows])
