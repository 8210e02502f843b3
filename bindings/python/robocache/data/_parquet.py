"""Parquet files: columns as arrays, and every doubt an error with the file and the column."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from ._errors import FormatError, needed, some

_WHAT = "a Parquet file"


def schema_of(path: str) -> Any:
    """pyarrow's schema of a file."""
    parquet = needed("pyarrow.parquet", "lerobot", _WHAT)
    arrow = needed("pyarrow", "lerobot", _WHAT)
    try:
        return parquet.read_schema(path)
    except (arrow.ArrowException, OSError) as error:
        raise _damaged(path, error) from None


def read_table(path: str, wanted: Sequence[str], optional: Collection[str] = ()) -> Any:
    """Columns of a file; those that are optional where it has them."""
    parquet = needed("pyarrow.parquet", "lerobot", _WHAT)
    arrow = needed("pyarrow", "lerobot", _WHAT)
    try:
        with parquet.ParquetFile(path) as file:
            there = file.schema_arrow.names
            missing = [name for name in wanted if name not in there]
            if missing:
                raise FormatError(path, missing[0], f"is missing; its columns are {some(there)}")
            names = [*wanted, *(name for name in optional if name in there)]
            return file.read(columns=names)
    except (arrow.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise _damaged(path, error) from None


def table_without_nulls(path: str) -> tuple[Any, int]:
    """An empty table of a file's columns, and its rows: it tells all of them but the values.

    None in its place where numbers may be null, or lists of any length.
    """
    parquet = needed("pyarrow.parquet", "tables", _WHAT)
    arrow = needed("pyarrow", "tables", _WHAT)
    try:
        with parquet.ParquetFile(path) as file:
            schema, told = file.schema_arrow, file.metadata
            for kind in schema.types:
                if arrow.types.is_list(kind) or arrow.types.is_large_list(kind):
                    return None, told.num_rows
            for g in range(told.num_row_groups):
                group = told.row_group(g)
                for c in range(group.num_columns):
                    known = group.column(c).statistics
                    if known is None or not known.has_null_count or known.null_count:
                        return None, told.num_rows
            if not told.num_rows:
                return None, 0
            columns = [arrow.nulls(0, kind) for kind in schema.types]
            return arrow.table(columns, schema=schema), told.num_rows
    except (arrow.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise _damaged(path, error) from None


def batches_of(path: str, columns: Sequence[str], rows: int) -> Iterator[Any]:
    """Columns of a file, as tables of so many rows."""
    parquet = needed("pyarrow.parquet", "tables", _WHAT)
    arrow = needed("pyarrow", "tables", _WHAT)
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(rows, columns=list(columns)):
                yield arrow.Table.from_batches([batch])
    except (arrow.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise _damaged(path, error) from None


def _damaged(path: str, error: Exception) -> FormatError:
    line = str(error).partition("\n")[0]
    return FormatError(path, "", f"is no Parquet file, or damaged: {line}")


def column(path: str, table: Any, name: str) -> Any:
    """A column of numbers: [n]; of lists of one length [n,D], of lists of lists likewise."""
    import numpy as np

    arrow = needed("pyarrow", "lerobot", _WHAT)
    chunked = table[name]
    rows = table.num_rows
    array = chunked.combine_chunks() if chunked.num_chunks != 1 else chunked.chunk(0)
    if isinstance(array, arrow.ChunkedArray):  # of no rows
        array = arrow.nulls(0, chunked.type)
    width = 1
    while True:
        kind = array.type
        if array.null_count:
            row = int(np.argmin(present_in(array))) // width
            raise FormatError(path, f"{name}, row {row}", "is null")
        if arrow.types.is_fixed_size_list(kind):
            width *= kind.list_size
            array = array.flatten()
        elif arrow.types.is_list(kind) or arrow.types.is_large_list(kind):
            lengths = np.diff(_numbers(array.offsets))
            odd = np.flatnonzero(lengths != lengths[:1]) if len(lengths) else lengths
            if len(odd):
                raise FormatError(
                    path,
                    f"{name}, row {int(odd[0]) // width}",
                    f"has {lengths[odd[0]]} elements, the first row {lengths[0]}",
                )
            width *= int(lengths[0]) if len(lengths) else 1
            array = array.flatten()
        else:
            break
    if not (arrow.types.is_integer(kind) or arrow.types.is_floating(kind)) and not (
        arrow.types.is_boolean(kind)
    ):
        raise FormatError(path, name, f"is of {kind}, expected numbers")
    flat = _numbers(array)
    return flat if table[name].type == kind else flat.reshape(rows, width)


def _numbers(array: Any) -> Any:
    """The numbers of an array without nulls, or bool, where they lie.

    pyarrow's ``to_numpy`` imports pandas in the middle of a call of C++, which takes a second, and
    drops a Ctrl-C that comes meanwhile.
    """
    import numpy as np

    arrow = needed("pyarrow", "lerobot", _WHAT)
    kind, count, begin = array.type, len(array), array.offset
    buffer = array.buffers()[1]
    if arrow.types.is_boolean(kind):
        return _bits(buffer, begin, count)
    letter = "f" if arrow.types.is_floating(kind) else "i"
    letter = "u" if arrow.types.is_unsigned_integer(kind) else letter
    dtype = np.dtype(f"{letter}{kind.bit_width // 8}")
    if count == 0:
        return np.zeros(0, dtype)
    return np.frombuffer(buffer, dtype, count, begin * dtype.itemsize)


def present_in(array: Any) -> Any:
    """Where an array, or one in chunks, is not null: bool [n]."""
    import numpy as np

    arrow = needed("pyarrow", "tables", _WHAT)
    parts = [np.zeros(0, bool)]
    for part in array.chunks if isinstance(array, arrow.ChunkedArray) else [array]:
        present = part.buffers()[0] if part.null_count else None
        if present is None:  # of no nulls, or of nothing else
            parts.append(np.full(len(part), part.null_count == 0))
        else:
            parts.append(_bits(present, part.offset, len(part)))
    return np.concatenate(parts)


def _bits(buffer: Any, begin: int, count: int) -> Any:
    import numpy as np

    if count == 0:
        return np.zeros(0, bool)
    octets = np.frombuffer(buffer, np.uint8)
    skipped = begin // 8
    bits = np.unpackbits(octets[skipped:], count=begin % 8 + count, bitorder="little")
    return bits[begin % 8 :].view(bool)
