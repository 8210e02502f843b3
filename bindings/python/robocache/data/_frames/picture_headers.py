"""The begin of PNG and JPEG pictures: their kind and their size."""

from __future__ import annotations

import struct

PNG = b"\x89PNG\r\n\x1a\n"
JPEG = b"\xff\xd8\xff"


def kind_of(data: bytes) -> str | None:
    """Return "png" or "jpeg" for an encoded picture; None for another content."""
    if data.startswith(PNG):
        return "png"
    return "jpeg" if data.startswith(JPEG) else None


def size_of(data: bytes) -> tuple[int, int]:
    """Return the height and the width of a PNG or JPEG picture."""
    if data.startswith(PNG):
        width, height = struct.unpack(">II", data[16:24])
        return height, width
    at = 2
    while at + 9 <= len(data):
        if data[at] != 0xFF:
            break
        mark = data[at + 1]
        if mark == 0xFF or 0xD0 <= mark <= 0xD8:  # fill bytes, and marks without a content
            at += 1 if mark == 0xFF else 2
        elif 0xC0 <= mark <= 0xCF and mark not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return height, width
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    raise ValueError("its header has no size, or is truncated")
