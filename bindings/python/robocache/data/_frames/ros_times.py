"""The stamps of image messages."""

from __future__ import annotations

import struct

from .._formats.messages.protobuf_wire import BYTES, VARINT, fields, varint

_SECOND = 10**9


def stamp_of(typename: str, serialization: str, message: bytes) -> int:
    """Return the stamp of an image message in nanoseconds; 0 if it is not set.

    Raises
    ------
    ValueError, struct.error, Malformed
        The message is truncated, or is stored in another way.
    """
    if serialization == "protobuf":
        for number, kind, part in fields(memoryview(message)):
            if (number, kind) == (1, BYTES):  # a google.protobuf.Timestamp
                parts = {n: varint(value, 0)[0] for n, k, value in fields(part) if k == VARINT}
                return parts.get(1, 0) * _SECOND + parts.get(2, 0)
        return 0
    if serialization == "ros1":  # after the sequence number of the header
        seconds, rest = struct.unpack_from("<II", message, 4)
    elif serialization == "cdr" and message[:1] == b"\0" and message[1:2] in (b"\0", b"\1"):
        seconds, rest = struct.unpack_from("<iI" if message[1] else ">iI", message, 4)
    else:
        raise ValueError(f"is stored as {serialization!r}, expected cdr, ros1 or protobuf")
    return int(seconds) * _SECOND + int(rest)
