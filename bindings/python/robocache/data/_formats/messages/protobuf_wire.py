"""The fields of a protobuf message, without its definition."""

from __future__ import annotations

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # kinds of fields
_SIZES = {FIXED64: 8, FIXED32: 4}


class Malformed(ValueError):
    """A message does not follow protobuf; the text is the end of a sentence."""


def fields(message: memoryview) -> Iterator[tuple[int, int, memoryview]]:
    """Yield the number, the kind and the bytes of each field; of a varint, its encoded bytes.

    Raises
    ------
    Malformed
        The message is truncated, or has a group.
    """
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        kind = key & 7
        if kind == BYTES:
            size, at = varint(message, at)
        elif kind == VARINT:
            _, end = varint(message, at)
            size = end - at
        elif kind in _SIZES:
            size = _SIZES[kind]
        else:
            raise Malformed(f"has a field of the unknown kind {kind}")
        if at + size > len(message):
            raise Malformed("ends within a field")
        yield key >> 3, kind, message[at : at + size]
        at += size


def varint(message: memoryview, at: int) -> tuple[int, int]:
    """Return the number that begins at a byte, and the place after it.

    >>> varint(memoryview(bytes([0xac, 0x02])), 0)
    (300, 2)
    """
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            raise Malformed("ends within a number")
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
    raise Malformed("has a number of more than 10 bytes")
