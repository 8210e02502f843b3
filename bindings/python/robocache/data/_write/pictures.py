"""Pictures in PNG and JPEG: encoding and decoding."""

from __future__ import annotations

import struct
import zlib
from typing import Any

from .._errors import needed
from .._frames.picture_decoder import JPEG as JPEG
from .._frames.picture_decoder import PNG as PNG
from .._frames.picture_decoder import kind_of as kind_of
from .._frames.picture_decoder import size_of as size_of

_LEVEL = 4  # of zlib: higher ones take much longer for few percent
_MOST = 1 << 28  # pixels of a picture, so that a damaged header does not fill the memory
_QUALITY = 2  # of JPEG: 2 is the best that its encoder has


def av() -> Any:
    """Import PyAV."""
    return needed("av", "video", "pictures and videos")


def png(image: Any) -> bytes:
    """Return an RGB picture [h,w,3] as PNG. Each row is stored as its difference to the last."""
    import numpy as np

    height, width = image.shape[:2]
    rows = np.ascontiguousarray(image, np.uint8).reshape(height, -1)
    lines = np.empty((height, rows.shape[1] + 1), np.uint8)
    lines[:, 0] = 2
    lines[0, 0], lines[0, 1:] = 0, rows[0]
    lines[1:, 1:] = rows[1:] - rows[:-1]
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    content = zlib.compress(lines.tobytes(), _LEVEL)
    return PNG + _chunk(b"IHDR", head) + _chunk(b"IDAT", content) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, content: bytes) -> bytes:
    check = zlib.crc32(content, zlib.crc32(kind))
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", check)


def jpeg(image: Any) -> bytes:
    """Return an RGB picture [h,w,3] as JPEG of the best quality of its encoder."""
    module = av()
    codec = module.CodecContext.create("mjpeg", "w")
    codec.height, codec.width = image.shape[:2]
    codec.pix_fmt = "yuvj444p"
    codec.time_base = 1
    codec.options = {"qmin": str(_QUALITY), "qmax": str(_QUALITY)}
    frame = module.VideoFrame.from_ndarray(image, format="rgb24").reformat(
        format="yuvj444p", src_color_range="JPEG", dst_color_range="JPEG"
    )
    frame.pts = 0
    return b"".join(bytes(packet) for packet in [*codec.encode(frame), *codec.encode(None)])


def encoded(image: Any, kind: str) -> bytes:
    """Return an RGB picture as "png" or "jpeg"."""
    return png(image) if kind == "png" else jpeg(image)
