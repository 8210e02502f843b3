"""The footer of a Parquet file: what it says of each column of each row group.

pyarrow can read it too, but ends the process if a part of it is damaged: an unknown codec,
statistics of another type, histograms of another length. The format is the compact protocol of
Thrift, with the field numbers of parquet.thrift (repository apache/parquet-format).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from ..._errors import FormatError
from ..._file_access import opened

_MAGIC = b"PAR1"
_DEEPEST = 32  # structs within structs
_KINDS = (
    "BOOLEAN",
    "INT32",
    "INT64",
    "INT96",
    "FLOAT",
    "DOUBLE",
    "BYTE_ARRAY",
    "FIXED_LEN_BYTE_ARRAY",
)

Fields = dict[int, Any]


@dataclass(frozen=True)
class Chunk:
    """A column of a row group."""

    kind: str  #: the physical type; "" if it is unknown
    path: str  #: the names that lead to it
    codec: int  #: 0: none
    values: int
    packed: int  #: bytes
    begin: int  #: of its first page
    nulls: int | None  #: None: unknown
    range: tuple[bytes, bytes] | None  #: the least and the largest value, as they are stored


@dataclass(frozen=True)
class Group:
    """A row group."""

    rows: int
    chunks: tuple[Chunk, ...]


def groups_of(path: str) -> list[Group]:
    """The row groups of a file.

    Raises
    ------
    FormatError
        The footer is damaged.
    """
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        end = os.pread(file.fileno(), 8, max(0, size - 8))
        length = int.from_bytes(end[:4], "little")
        if end[4:] != _MAGIC or length > size - 12:
            raise FormatError(path, "", "is no Parquet file, or damaged: it has no footer")
        data = os.pread(file.fileno(), length, size - 8 - length)
    try:
        footer, _ = struct_at(data, 0)
        return [_group(group) for group in footer.get(4, [])]
    except (IndexError, KeyError, TypeError, AttributeError, UnicodeDecodeError):
        raise FormatError(path, "", "is damaged: its footer cannot be read") from None


def _group(fields: Fields) -> Group:
    return Group(int(fields[3]), tuple(_chunk(chunk[3]) for chunk in fields[1]))


def _chunk(fields: Fields) -> Chunk:
    known = fields.get(12, {})
    low, high = known.get(6), known.get(5)
    kind = int(fields[1])
    pages = [at for at in (fields[9], fields.get(11, 0)) if at > 0]
    return Chunk(
        kind=_KINDS[kind] if 0 <= kind < len(_KINDS) else "",
        path=b".".join(fields[3]).decode(),
        codec=int(fields[4]),
        values=int(fields[5]),
        packed=int(fields[7]),
        begin=min(pages, default=0),
        nulls=known.get(3),
        range=(bytes(low), bytes(high)) if low is not None and high is not None else None,
    )


def struct_at(data: bytes, at: int, depth: int = 0) -> tuple[Fields, int]:
    """A struct of the compact protocol of Thrift: its fields by number, and where it ends.

    An IndexError says that the bytes end within a value, a KeyError that there is no such value.
    """
    if depth > _DEEPEST:
        raise KeyError(depth)
    found: Fields = {}
    field = 0
    while True:
        first = data[at]
        at += 1
        if first == 0:
            return found, at
        kind = first & 15
        if first >> 4:
            field += first >> 4
        else:
            number, at = _varint(data, at)
            field = (number >> 1) ^ -(number & 1)
        if kind == 5 or kind == 6 or kind == 4:
            value = data[at]
            at += 1
            if value > 127:
                value, at = _varint(data, at - 1)
            found[field] = (value >> 1) ^ -(value & 1)
        elif kind == 1 or kind == 2:
            found[field] = kind == 1
        else:
            found[field], at = _value(kind, data, at, depth)


def _value(kind: int, data: bytes, at: int, depth: int) -> tuple[Any, int]:
    if depth > _DEEPEST:
        raise KeyError(depth)
    if kind == 12:
        return struct_at(data, at, depth + 1)
    if kind in (4, 5, 6):
        number, at = _varint(data, at)
        return (number >> 1) ^ -(number & 1), at
    if kind in (1, 2, 3):  # of a list: a bool takes a byte there
        return data[at], at + 1
    if kind in (7, 8):
        size, at = (8, at) if kind == 7 else _varint(data, at)
        if size > len(data) - at:
            raise IndexError(size)
        return data[at : at + size], at + size
    if kind in (9, 10):
        count, inner = data[at] >> 4, data[at] & 15
        at += 1
        if count == 15:
            count, at = _varint(data, at)
        if count > len(data) - at:  # each takes a byte at least
            raise IndexError(count)
        values = []
        for _ in range(count):
            value, at = _value(inner, data, at, depth + 1)
            values.append(value)
        return values, at
    raise KeyError(kind)  # maps, which Parquet does not use


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        octet = data[at]
        at += 1
        value |= (octet & 127) << shift
        if octet < 128:
            return value, at
        shift += 7
        if shift > 63:
            raise KeyError(shift)
