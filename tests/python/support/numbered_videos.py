"""Videos whose frames show their own number, in blocks that survive lossy codecs."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

BLOCK = 16  # pixels
BITS = 12
SIZE = (32, BLOCK * BITS // 2)  # two rows of blocks


def picture(number: int, size: tuple[int, int] = SIZE) -> np.ndarray:
    """Return an RGB picture [H,W,3] of a number, with some color that changes too."""
    image = np.zeros((*size, 3), np.uint8)
    for bit in range(BITS):
        row, column = divmod(bit, BITS // 2)
        y, x = row * BLOCK, column * BLOCK
        image[y : y + BLOCK, x : x + BLOCK] = 224 if number >> bit & 1 else 32
    image[:, :, 2] = image[:, :, 2] // 2 + (number * 7) % 64
    return image


def number_of(image: np.ndarray) -> int:
    """Return the number that a picture shows; -1 if it cannot be read."""
    number = 0
    for bit in range(BITS):
        row, column = divmod(bit, BITS // 2)
        y, x = row * BLOCK, column * BLOCK
        level = float(image[y + 4 : y + BLOCK - 4, x + 4 : x + BLOCK - 4, 1].mean())
        if 96 < level < 160:
            return -1
        number |= (level > 128) << bit
    return number


def write(
    path,
    numbers,
    codec="libx264",
    rate=30,
    options=None,
    times=None,
    time_base=None,
    container=None,
    size=SIZE,
    pixels="yuv420p",
    **attributes,
):
    """Write a video of numbered frames; ``times`` are in units of ``time_base``."""
    import av

    rate = Fraction(rate)
    time_base = Fraction(time_base or 1 / rate)
    converter = av.video.reformatter.VideoReformatter()  # one makes its tables once
    with av.open(str(path), "w", options=container or {}) as file:
        stream = file.add_stream(codec, rate, options=options or {})
        stream.height, stream.width = size
        stream.pix_fmt = pixels
        stream.codec_context.time_base = time_base
        for name, value in attributes.items():
            setattr(stream.codec_context, name, value)
        for i, number in enumerate(numbers):
            frame = av.VideoFrame.from_ndarray(picture(number, size), format="rgb24")
            frame = converter.reformat(frame, format=pixels)
            frame.pts = i if times is None else times[i]
            frame.time_base = time_base
            file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    return str(path)


def remux(source, target, change=lambda packets: packets, container=None):
    """Copy the packets of a video to another file; ``change`` gets and returns all of them."""
    import av
    import pytest

    if int(av.__version__.partition(".")[0]) < 15:
        pytest.skip("PyAV 14 changes the headers of streams that it copies")
    with av.open(str(source)) as old, av.open(str(target), "w", options=container or {}) as new:
        old_stream = old.streams.video[0]
        stream = new.add_stream_from_template(old_stream)
        packets = [packet for packet in old.demux(old_stream) if packet.size]
        for packet in change(packets):
            packet.stream = stream
            new.mux(packet)
    return str(target)
