"""The footer of a Parquet file: what it says of each column of each row group.

pyarrow can read it too, but ends the process if a part of it is damaged: an unknown codec,
statistics of another type, histograms of another length. The format is the compact protocol of
Thrift, with the field numbers of parquet.thrift (repository apache/parquet-format).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from ._errors import FormatError
from ._files import opened

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
        footer = Thrift(data).struct()
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
        path=".".join(name.decode() for name in fields[3]),
        codec=int(fields[4]),
        values=int(fields[5]),
        packed=int(fields[7]),
        begin=min(pages, default=0),
        nulls=known.get(3),
        range=(bytes(low), bytes(high)) if low is not None and high is not None else None,
    )


class Thrift:
    """The compact protocol of Thrift: structs as dicts of their fields by number.

    An IndexError says that the bytes end within a value, a KeyError that there is no such value.
    """

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def struct(self, depth: int = 0) -> Fields:
        if depth > _DEEPEST:
            raise KeyError(depth)
        found: Fields = {}
        field = 0
        while True:
            first = self._byte()
            if first == 0:
                return found
            kind, step = first & 15, first >> 4
            field = field + step if step else self._number()
            found[field] = kind == 1 if kind in (1, 2) else self._value(kind, depth)

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (4, 5, 6):
            return self._number()
        if kind in (1, 2, 3):  # of a list: a bool takes a byte there
            return self._byte()
        if kind == 7:
            return self._bytes(8)
        if kind == 8:
            return self._bytes(self._varint())
        if kind in (9, 10):
            first = self._byte()
            count, inner = first >> 4, first & 15
            if count == 15:
                count = self._varint()
            if count > len(self.data) - self.at:  # each takes a byte at least
                raise IndexError(count)
            return [self._value(inner, depth + 1) for _ in range(count)]
        if kind == 12:
            return self.struct(depth + 1)
        raise KeyError(kind)  # maps, which Parquet does not use

    def _byte(self) -> int:
        value = self.data[self.at]
        self.at += 1
        return value

    def _bytes(self, count: int) -> bytes:
        begin, self.at = self.at, self.at + count
        if self.at > len(self.data):
            raise IndexError(self.at)
        return self.data[begin : self.at]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            octet = self._byte()
            value |= (octet & 127) << shift
            if octet < 128:
                return value
            shift += 7
            if shift > 63:
                raise KeyError(shift)

    def _number(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
