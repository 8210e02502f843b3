"""Pixels of image messages as frames: RGB, BGR, gray and YUV of 8 bits."""

from __future__ import annotations

from typing import Any

VERSION = 1  # of the arithmetic of YUV, and of what the encodings mean
# By encoding: bytes per pixel, and the channels to take, in the order red, green, blue.
_PLAIN = {
    "rgb8": (3, (0, 1, 2)),
    "bgr8": (3, (2, 1, 0)),
    "8UC3": (3, (2, 1, 0)),
    "mono8": (1, (0,)),
    "8UC1": (1, (0,)),
}
_ALPHA = {"rgba8": (4, (0, 1, 2)), "bgra8": (4, (2, 1, 0)), "8UC4": (4, (2, 1, 0))}
# By encoding: the places of Y, U, Y, V in the four bytes of two pixels.
_PACKED = {
    "yuv422": (1, 0, 3, 2),
    "uyvy": (1, 0, 3, 2),
    "UYVY": (1, 0, 3, 2),
    "yuv422_yuy2": (0, 1, 2, 3),
    "yuyv": (0, 1, 2, 3),
    "yuy2": (0, 1, 2, 3),
    "YUYV": (0, 1, 2, 3),
}
_PLANAR = {"nv12": (0, 1), "NV12": (0, 1), "nv21": (1, 0), "NV21": (1, 0)}  # places of U and V
ENCODINGS = (*_PLAIN, *_ALPHA, *_PACKED, *_PLANAR)

# BT.601 of limited range in fixed point, with the constants of OpenCV, as cv_bridge uses it.
_SHIFT = 20
_Y, _RV, _GV, _GU, _BU = 1220542, 1673527, -852492, -409993, 2116026


def channels_of(encoding: str) -> int:
    """Return the channels of frames of an encoding: 1 for gray."""
    return 1 if encoding in ("mono8", "8UC1") else 3


def pixels_of(picture: Any, convert: str | None = None) -> Any:
    """Return the pixels of a picture that is not encoded as a file, uint8 [H,W,3] or [H,W,1].

    Raises
    ------
    ValueError
        The encoding is unknown, or the data are too few. The text continues a sentence
        that begins with the message.
    """
    import numpy as np

    encoding = picture.encoding
    if encoding in _ALPHA and convert is None:
        raise ValueError(f'has the encoding {encoding!r} with alpha; convert="RGB" drops it')
    if encoding in _PLAIN or encoding in _ALPHA:
        size, order = _PLAIN.get(encoding) or _ALPHA[encoding]
        rows = _rows(picture, picture.height, picture.width * size)
        pixels = rows.reshape(picture.height, picture.width, size)
        if order == tuple(range(size)):
            return np.ascontiguousarray(pixels)
        made = np.empty((picture.height, picture.width, len(order)), np.uint8)
        for channel, place in enumerate(order):  # a tenth of the time of one index for all
            made[..., channel] = pixels[..., place]
        return made
    if encoding in _PACKED:
        if picture.width % 2:
            raise ValueError(f"has {picture.width} columns of {encoding}, expected an even number")
        rows = _rows(picture, picture.height, picture.width * 2)
        four = rows.reshape(picture.height, picture.width // 2, 4)
        y0, u, y1, v = (four[..., place] for place in _PACKED[encoding])
        luma = np.stack([y0, y1], axis=-1).reshape(picture.height, picture.width)
        return _rgb(luma, np.repeat(u, 2, axis=1), np.repeat(v, 2, axis=1))
    if encoding in _PLANAR:
        if picture.width % 2 or picture.height % 2:
            text = f"{picture.width} x {picture.height} pixels of {encoding}"
            raise ValueError(f"has {text}, expected even numbers")
        rows = _rows(picture, picture.height * 3 // 2, picture.width)
        luma, chroma = rows[: picture.height], rows[picture.height :]
        pairs = chroma.reshape(picture.height // 2, picture.width // 2, 2)
        u, v = (pairs[..., place] for place in _PLANAR[encoding])
        u, v = (np.repeat(np.repeat(each, 2, axis=0), 2, axis=1) for each in (u, v))
        return _rgb(luma, u, v)
    raise ValueError(f"has the encoding {encoding!r}, {_remedy(encoding)}")


def _remedy(encoding: str) -> str:
    if encoding.startswith("bayer"):
        return (
            "a raw Bayer pattern without colors; record the color topic of image_proc or of the "
            "camera's driver instead"
        )
    text = f"expected one of {', '.join(ENCODINGS)}"
    is_depth = encoding in ("16UC1", "mono16", "32FC1")
    return f"{text}; depth is for robocache.unproject" if is_depth else text


def _rows(picture: Any, height: int, size: int) -> Any:
    """Return the bytes of the rows without the padding between them."""
    import numpy as np

    step = picture.step or size
    if picture.height < 1 or size < 1:
        raise ValueError(f"has {picture.width} x {picture.height} pixels, expected at least 1 x 1")
    if step < size or len(picture.data) < step * (height - 1) + size:
        raise ValueError(
            f"has {len(picture.data):,} bytes in rows of {step:,}, too few for {picture.width} x "
            f"{picture.height} pixels of {picture.encoding}"
        )
    flat = np.frombuffer(picture.data, np.uint8)
    missing = max(0, step * height - len(flat))  # the last row may lack its padding
    if missing:
        flat = np.concatenate([flat, np.zeros(missing, np.uint8)])
    return flat[: step * height].reshape(height, step)[:, :size]


def _rgb(y: Any, u: Any, v: Any) -> Any:
    import numpy as np

    half = 1 << (_SHIFT - 1)
    luma = np.maximum(y.astype(np.int32) - 16, 0) * _Y + half
    u, v = u.astype(np.int32) - 128, v.astype(np.int32) - 128
    made = np.empty((*y.shape, 3), np.uint8)
    for channel, add in enumerate((_RV * v, _GV * v + _GU * u, _BU * u)):
        made[..., channel] = ((luma + add) >> _SHIFT).clip(0, 255)
    return made
