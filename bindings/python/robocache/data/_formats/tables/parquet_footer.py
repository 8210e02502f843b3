"""The footer of a Parquet file: ranges and sizes of its columns, known before unpacking.

pyarrow can read it too, but aborts the process if a part of it is damaged: an unknown codec,
statistics of another type, histograms of another length. The format is the compact protocol of
Thrift, with the field numbers of parquet.thrift (repository apache/parquet-format).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from ..._errors import FormatError, needed
from ..._file_access import Limit, opened

_MAGIC = b"PAR1"
_DEEPEST = 32  # levels of nested structs
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
    path: str  #: path of names
    codec: int  #: 0: none
    values: int
    packed: int  #: bytes
    begin: int  #: offset of its first page
    nulls: int | None  #: None: unknown
    range: tuple[bytes, bytes] | None  #: the least and the largest value, as stored


@dataclass(frozen=True)
class Group:
    """A row group."""

    rows: int
    chunks: tuple[Chunk, ...]


def groups_of(path: str) -> list[Group]:
    """Return the row groups of a file.

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
            raise FormatError(path, "", "is not a Parquet file, or damaged: it has no footer")
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
    """Read a struct of Thrift's compact protocol; return its fields by number, and its end.

    An IndexError means that the bytes end within a value, a KeyError that a value is invalid.
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
    if kind in (1, 2, 3):  # a bool in a list takes a byte
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
        if count > len(data) - at:  # each takes at least one byte
            raise IndexError(count)
        values = []
        for _ in range(count):
            value, at = _value(inner, data, at, depth + 1)
            values.append(value)
        return values, at
    raise KeyError(kind)  # maps are not used by Parquet


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


_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 8}
_TEXT = 32  # bytes of a text, which is read as a dictionary index
# Codecs whose output is at most about Limit.RATIO times their input: none, Snappy, both of LZ4.
_WEAK = (0, 1, 5, 7)
_LOOK = 1 << 9  # bytes that hold most page headers
_LONGEST = 16 << 20  # bytes of a page header; pyarrow's limit


def columns_of_leaves(file: Any) -> list[str] | None:
    """Return the column that each leaf of a ``pyarrow.parquet.ParquetFile`` belongs to.

    None: the two schemas of the file disagree.
    """
    schema = file.schema_arrow
    names = [name for name, kind in zip(schema.names, schema.types) for _ in range(_leaves(kind))]
    return names if len(names) == file.metadata.num_columns else None


def _leaves(kind: Any) -> int:
    if isinstance(kind, _extension()):
        return _leaves(kind.storage_type)
    fields = kind.num_fields
    return sum(_leaves(kind.field(i).type) for i in range(fields)) if fields else 1


@functools.cache
def _extension() -> Any:
    return needed("pyarrow", "tables", "a Parquet file").BaseExtensionType


def require_bounded(path: str, file: Any, names: Collection[str], limit: Limit) -> list[str]:
    """Refuse columns of a file that unpack to more than is allowed.

    Returns
    -------
    list
        The paths of the text leaves of these columns. They must be read as dictionaries, since
        a few bytes may represent terabytes of text.

    Raises
    ------
    FormatError
        They unpack to more, or the file claims more bytes than it has.
    """
    size = os.path.getsize(path)
    owners = columns_of_leaves(file)
    chosen = set(names)
    packed = unpacked = 0
    texts: dict[str, None] = {}
    for group in groups_of(path):
        for leaf, chunk in enumerate(group.chunks):
            if owners is not None and (leaf >= len(owners) or owners[leaf] not in chosen):
                continue
            packed += max(0, chunk.packed)
            if packed > size:
                text = f"its columns claim {packed:,} bytes or more, but the file has {size:,}"
                raise FormatError(path, "", f"is damaged: {text}")
            if chunk.kind == "BYTE_ARRAY":
                texts[chunk.path] = None
            unpacked += max(0, chunk.values) * _width(file, chunk.kind, leaf)
            is_weak = chunk.codec in _WEAK
            if unpacked > limit.least or not is_weak:
                limit.require(path, chunk.path, unpacked, size)
                for page in () if is_weak else _pages(path, chunk, size):
                    unpacked += page
                    limit.require(path, chunk.path, unpacked, size)
    return list(texts)


def _width(file: Any, kind: str, leaf: int) -> int:
    if kind == "FIXED_LEN_BYTE_ARRAY":
        return max(1, int(file.schema.column(leaf).length))
    return _WIDTHS.get(kind, _TEXT)


# ---- pages --------------------------------------------------------------------------------------


def _pages(path: str, chunk: Chunk, size: int) -> Iterator[int]:
    """Yield the unpacked size of each page of a column, from the page headers."""
    at = chunk.begin
    end = min(at + chunk.packed, size)
    with opened(path) as file:
        while 0 <= at < end:
            header = _header(file.fileno(), at, end)
            if header is None:  # pyarrow reports the damage
                return
            unpacked, packed, length = header
            if unpacked < 0 or packed < 0:
                return
            yield unpacked
            at += length + packed


def _header(descriptor: int, at: int, end: int) -> tuple[int, int, int] | None:
    """Return unpacked bytes, packed bytes and the header's length; None if it is not a header."""
    look = _LOOK
    while True:
        data = os.pread(descriptor, min(look, end - at), at)
        try:
            fields, length = struct_at(data, 0)
            return int(fields[2]), int(fields[3]), length
        except (KeyError, TypeError):
            return None
        except IndexError:  # it is longer
            if len(data) < look or look >= _LONGEST:
                return None
            look *= 16
