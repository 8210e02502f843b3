"""TFRecord files, and the messages tf.train.Example in them."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from ..._errors import FormatError
from ..._file_access import opened
from ..messages.protobuf_wire import Malformed, fields
from .crc32c import masked

_BYTES, _FLOATS, _INTEGERS = 1, 2, 3  # fields of tf.train.Feature
_LARGEST = 1 << 31  # bytes of a record; protobuf has no larger messages
_TRUNCATED = "the file is truncated within the record here"
_HEAD = struct.Struct("<QI")


# ---- records ------------------------------------------------------------------------------------


def put(file: BinaryIO, record: bytes) -> None:
    """Write a record with its checksums."""
    if len(record) >= _LARGEST:
        raise ValueError(
            f"an episode has {len(record):,} bytes, and a record has less than 2 GiB; split it, "
            "or use image_format='jpeg' or a smaller image_size"
        )
    length = struct.pack("<Q", len(record))
    file.write(length + struct.pack("<I", masked(length)))
    file.write(record)
    file.write(struct.pack("<I", masked(record)))


def places(path: str) -> Iterator[tuple[int, int]]:
    """Yield the offset and the length of each record of a file.

    Raises
    ------
    FormatError
        A length is damaged, or the file is truncated.
    """
    size = os.path.getsize(path)
    at = 0
    with opened(path) as file:
        while at < size:
            file.seek(at)
            head = file.read(12)
            if len(head) < 12:
                raise FormatError(path, f"byte {at}", _TRUNCATED)
            length, check = _HEAD.unpack(head)
            if masked(head[:8]) != check:
                raise FormatError(path, f"byte {at}", "the checksum of a record's length differs")
            if at + 12 + length + 4 > size:
                raise FormatError(path, f"byte {at}", _TRUNCATED)
            yield at + 12, length
            at += 12 + length + 4


def record_at(path: str, at: int, length: int) -> memoryview:
    """Return a record, whose checksum is compared."""
    with opened(path) as file:
        file.seek(at)
        content = file.read(length + 4)
    if len(content) != length + 4:
        raise FormatError(path, f"byte {at}", _TRUNCATED)
    (check,) = struct.unpack("<I", content[length:])
    if masked(memoryview(content)[:length]) != check:
        raise FormatError(path, f"byte {at}", "the checksum of the record differs")
    return memoryview(content)[:length]


# ---- tf.train.Example ---------------------------------------------------------------------------


def example(features: Mapping[str, Any]) -> bytes:
    """Return an Example of arrays of numbers [n], and of lists of bytes."""
    entries = []
    for name, values in sorted(features.items()):
        entry = _field(1, name.encode()) + _field(2, _feature(values))
        entries.append(_field(1, entry))
    return _field(1, b"".join(entries))


def _feature(values: Any) -> bytes:
    import numpy as np

    if isinstance(values, list):
        return _field(_BYTES, b"".join(_field(1, value) for value in values))
    if values.dtype.kind == "f":
        return _field(_FLOATS, _field(1, np.ascontiguousarray(values, "<f4").tobytes()))
    numbers = b"".join(_varint(int(value) & 0xFFFFFFFFFFFFFFFF) for value in values)
    return _field(_INTEGERS, _field(1, numbers))


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def features_in(record: memoryview) -> dict[str, memoryview]:
    """Return the features of an Example by name, not decoded yet."""
    found: dict[str, memoryview] = {}
    for number, _, content in fields(record):
        if number != 1:
            continue
        for key, _, entry in fields(content):
            if key != 1:
                continue
            parts = {part: content for part, _, content in fields(entry)}
            found[bytes(parts.get(1, b"")).decode("utf-8", "replace")] = parts.get(
                2, memoryview(b"")
            )
    return found


def texts_of(feature: memoryview) -> list[memoryview]:
    """Return the bytes of a feature."""
    return [
        text
        for kind, _, content in fields(feature)
        if kind == _BYTES
        for number, _, text in fields(content)
        if number == 1
    ]


def numbers_of(feature: memoryview) -> Any:
    """Return the numbers of a feature: float32 [n] or int64 [n]; bytes are an error."""
    import numpy as np

    for kind, _, content in fields(feature):
        if kind == _FLOATS:
            parts = [
                np.frombuffer(part, "<f4") for number, _, part in fields(content) if number == 1
            ]
            return np.concatenate(parts) if parts else np.zeros(0, np.float32)
        if kind == _INTEGERS:
            packed = [_integers(part) for number, _, part in fields(content) if number == 1]
            return np.concatenate(packed) if packed else np.zeros(0, np.int64)
        raise Malformed("holds bytes, expected numbers")
    return np.zeros(0, np.float32)


def _integers(part: memoryview) -> Any:
    """Return packed varints as int64."""
    import numpy as np

    content = np.frombuffer(part, np.uint8)
    if not len(content):
        return np.zeros(0, np.int64)
    ends = np.flatnonzero(content < 0x80)
    if not len(ends) or ends[-1] != len(content) - 1:
        raise Malformed("ends within a number")
    begins = np.concatenate([[0], ends[:-1] + 1])
    widths = ends - begins + 1
    if widths.max() > 10:
        raise Malformed("has a number of more than 10 bytes")
    values = np.zeros(len(ends), np.uint64)
    for place in range(int(widths.max())):
        there = widths > place
        byte = content[begins[there] + place].astype(np.uint64) & np.uint64(0x7F)
        values[there] |= byte << np.uint64(7 * place)
    return values.view(np.int64)
