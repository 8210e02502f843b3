"""The number of bytes that a Parquet file unpacks to, found before it is unpacked."""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Iterator
from typing import Any

from ..._errors import FormatError, needed
from ..._file_access import Limit, opened
from .parquet_footer import Chunk, groups_of, struct_at

_WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 8}
_TEXT = 32  # bytes of a text, which is read as its number in a dictionary
# Codecs whose output is at most about Limit.RATIO times their input: none, Snappy, and two of LZ4.
_WEAK = (0, 1, 5, 7)
_LOOK = 1 << 9  # bytes that hold most page headers
_LONGEST = 16 << 20  # bytes of a page header, which is what pyarrow allows


def columns_of_leaves(file: Any) -> list[str] | None:
    """The name of the column that each leaf of a ``pyarrow.parquet.ParquetFile`` belongs to.

    None: the two schemas of the file do not agree.
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
    """Refuse columns of a file that unpack to more than they may.

    Returns
    -------
    list
        The paths of the leaves of these columns that are texts. They must be read into
        dictionaries: a few bytes may stand for terabytes of them.

    Raises
    ------
    FormatError
        They do, or the file says that it holds more than its own bytes.
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
                text = f"its columns have {packed:,} bytes or more, but the file {size:,}"
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
    """The unpacked size of each page of a column, from the headers of the pages."""
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
    """Unpacked bytes, packed bytes and the length of the header; None if it is not a header."""
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
