"""Parquet files: columns as arrays, and errors that name the file and the column."""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

from ..._errors import FormatError, needed, raise_shortage, require_memory, some
from ..._file_access import Limit, head, reopened
from .parquet_footer import columns_of_leaves, groups_of, require_bounded


def storage_of(table: Any) -> Any:
    """Replace extension types of a table's columns by their storage, also within lists."""
    arrow = needed("pyarrow", "tables", _WHAT)
    for i, field in enumerate(table.schema):
        kind = storage_type(field.type)
        if kind is field.type:
            continue
        column = table.column(i)
        if isinstance(field.type, arrow.BaseExtensionType):
            chunks = [chunk.storage for chunk in column.chunks]
            column = arrow.chunked_array(chunks, field.type.storage_type)
        if column.type != kind:
            column = column.cast(kind)
        table = table.set_column(i, field.with_type(kind), column)
    return table


def storage_schema(schema: Any) -> Any:
    """Replace extension types of a schema by their storage."""
    for i, field in enumerate(schema):
        kind = storage_type(field.type)
        if kind is not field.type:
            schema = schema.set(i, field.with_type(kind))
    return schema


def storage_type(kind: Any) -> Any:
    """Return a type without extension types; the same object if it has none."""
    arrow = needed("pyarrow", "tables", _WHAT)
    types = arrow.types
    if isinstance(kind, arrow.BaseExtensionType):
        return storage_type(kind.storage_type)
    if types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        inner = [storage_type(field.type) for field in fields]
        if all(new is field.type for new, field in zip(inner, fields)):
            return kind
        return arrow.struct([field.with_type(new) for new, field in zip(inner, fields)])
    if not (types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)):
        return kind
    old = kind.value_type
    new = storage_type(old)
    if new is old:
        return kind
    field = kind.value_field.with_type(new)
    if types.is_fixed_size_list(kind):
        return arrow.list_(field, kind.list_size)
    return arrow.large_list(field) if types.is_large_list(kind) else arrow.list_(field)


_WHAT = "a Parquet file"
_MAGIC = b"PAR1"
_BY_SIZE = Limit()
_WIDEST = 1 << 16  # numbers per row, in a column without rows
_T = TypeVar("_T")


def is_parquet(path: str) -> bool:
    return head(path, len(_MAGIC)) == _MAGIC


def read_table(
    path: str, wanted: Sequence[str], optional: Collection[str] = (), limit: Limit = _BY_SIZE
) -> Any:
    """Read columns of a file; ``optional`` ones only if it has them. Texts become dictionaries."""

    def read(file: Any) -> Any:
        there = file.schema_arrow.names
        known = set(there)
        missing = next((name for name in wanted if name not in known), None)
        if missing is not None:
            raise FormatError(path, missing, f"is missing; its columns are {some(there)}")
        names = [*wanted, *(name for name in optional if name in known)]
        texts = require_bounded(path, file, names, limit)
        parts = _parts(file.schema_arrow, names)
        if texts:
            parquet = needed("pyarrow.parquet", "lerobot", _WHAT)
            with reopened(path) as own:
                with parquet.ParquetFile(
                    own, metadata=file.metadata, read_dictionary=texts
                ) as again:
                    return storage_of(_groups_of(again, parts).select(names))
        return storage_of(file.read(columns=parts).select(names))

    return with_file(path, read, limit)


def read_rows(
    path: str, name: str, first: int, last: int, limit: Limit = _BY_SIZE
) -> tuple[int, Any]:
    """Read the row groups of a column that hold the rows from ``first`` to ``last``.

    Returns
    -------
    int
        The row of the file with which the column begins.
    ChunkedArray
    """

    def read(file: Any) -> tuple[int, Any]:
        if name not in file.schema_arrow.names:
            raise FormatError(
                path, name, f"is missing; its columns are {some(file.schema_arrow.names)}"
            )
        require_bounded(path, file, [name], limit)
        groups: list[int] = []
        begin = at = 0
        for group in range(file.num_row_groups):
            end = at + file.metadata.row_group(group).num_rows
            if at <= last and first < end:
                begin = begin if groups else at
                groups.append(group)
            at = end
        parts = _parts(file.schema_arrow, [name])
        return begin, storage_of(file.read_row_groups(groups, columns=parts))[name]

    return with_file(path, read, limit)


def _groups_of(file: Any, parts: Any) -> Any:
    """Read columns group by group: texts inside of structs cannot be read over several groups."""
    arrow = needed("pyarrow", "lerobot", _WHAT)
    if file.num_row_groups < 2:
        return file.read(columns=parts)
    groups = (file.read_row_group(i, columns=parts) for i in range(file.num_row_groups))
    return arrow.concat_tables(groups)


def schema_and_rows(path: str, limit: Limit = _BY_SIZE) -> tuple[Any, int]:
    """Return the schema of a file, and its number of rows."""

    def read(file: Any) -> tuple[Any, int]:
        return storage_schema(file.schema_arrow), file.metadata.num_rows

    return with_file(path, read, limit)


def table_without_nulls(
    path: str, names: Collection[str] | None = None, limit: Limit = _BY_SIZE
) -> tuple[Any, int]:
    """Return an empty table with the columns of a file, and the number of rows in the file.

    The table is None if numbers may be null, or lists may have different lengths. ``names``
    selects columns; None: all.
    """
    arrow = needed("pyarrow", "tables", _WHAT)

    def read(file: Any) -> tuple[Any, int]:
        schema, metadata = file.schema_arrow, file.metadata
        chosen = set(schema.names if names is None else names)
        fields = [field for field in storage_schema(schema) if field.name in chosen]
        owners = columns_of_leaves(file)
        if owners is None or not metadata.num_rows:
            return None, metadata.num_rows
        require_bounded(path, file, chosen, limit)
        for field in fields:
            if arrow.types.is_list(field.type) or arrow.types.is_large_list(field.type):
                return None, metadata.num_rows
        for group in groups_of(path):
            for owner, chunk in zip(owners, group.chunks):
                if owner in chosen and chunk.nulls != 0:
                    return None, metadata.num_rows
        columns = [arrow.nulls(0, field.type) for field in fields]
        return arrow.table(columns, schema=arrow.schema(fields)), metadata.num_rows

    return with_file(path, read, limit)


def batches_of(
    path: str, columns: Sequence[str], rows: int, limit: Limit = _BY_SIZE
) -> Iterator[Any]:
    """Yield columns of a file as tables of at most ``rows`` rows. Texts become dictionaries."""
    parquet = needed("pyarrow.parquet", "tables", _WHAT)
    arrow = needed("pyarrow", "tables", _WHAT)
    names = list(columns)
    texts = with_file(path, lambda file: require_bounded(path, file, names, limit), limit)
    with reopened(path) as own, ExitStack() as stack:
        batches: Iterator[Any] | None = None
        while True:
            try:
                if batches is None:
                    file = parquet.ParquetFile(own, read_dictionary=texts)
                    parts = _parts(file.schema_arrow, names)
                    batches = stack.enter_context(file).iter_batches(rows, columns=parts)
                batch = next(batches, None)
            except (arrow.ArrowException, OSError) as error:
                fault = _fault(path, error, limit)
            else:
                if batch is None:
                    return
                yield storage_of(arrow.Table.from_batches([batch]).select(names))
                continue
            raise fault


def _parts(schema: Any, names: Sequence[str]) -> list[str]:
    """Return columns in pyarrow's notation; of structs only the parts that are not texts."""
    arrow = needed("pyarrow", "tables", _WHAT)
    kinds = dict(zip(schema.names, schema.types))
    found = []
    for name in names:
        parts = [name]
        if arrow.types.is_struct(kinds[name]):
            parts = [path for path, kind in leaves_of(name, kinds[name]) if not _is_text(kind)]
        found += parts or [name]
    return found


def leaves_of(name: str, kind: Any) -> Iterator[tuple[str, Any]]:
    """Yield the paths and types of the parts of a struct, also of nested structs."""
    arrow = needed("pyarrow", "tables", _WHAT)
    if not arrow.types.is_struct(kind):
        yield name, kind
        return
    for part in kind:
        yield from leaves_of(f"{name}.{part.name}", part.type)


def _is_text(kind: Any) -> bool:
    types = needed("pyarrow", "tables", _WHAT).types
    if types.is_dictionary(kind):
        kind = kind.value_type
    is_text = types.is_string(kind) or types.is_large_string(kind)
    return bool(is_text or types.is_binary(kind) or types.is_large_binary(kind))


def with_file(path: str, read: Callable[[Any], _T], limit: Limit = _BY_SIZE) -> _T:
    """Call a function with an open file. Errors of pyarrow name the file."""
    parquet = needed("pyarrow.parquet", "lerobot", _WHAT)
    arrow = needed("pyarrow", "lerobot", _WHAT)
    require_memory(path)
    with reopened(path) as own:
        try:
            with parquet.ParquetFile(own) as file:
                return read(file)
        except (arrow.ArrowException, OSError) as error:
            fault = _fault(path, error, limit)
    raise fault  # outside of the handler, so that pyarrow's error is not its context


_ASKED = re.compile(r"(?:malloc|realloc)\D* of size (\d+)|size (\d+) failed")


def _fault(path: str, error: Exception, limit: Limit) -> FormatError:
    """Convert an error of pyarrow to a FormatError. Call it while the error is handled.

    Raises
    ------
    MemoryError, OSError
        Memory, threads or descriptors are exhausted, or the system cannot read the file.
    """
    size = os.path.getsize(path)
    line = str(error).partition("\n")[0]
    asked = _ASKED.search(line)
    if asked and int(asked[1] or asked[2]) > limit.allowed(size):
        # A damaged header may request any number of bytes: that is not a lack of memory.
        number = int(asked[1] or asked[2])
        text = f"is damaged: requests {number:,} bytes at once, but the file has {size:,}"
        return FormatError(path, "", text)
    raise_shortage(path)
    if isinstance(error, OSError) and error.errno is not None:
        raise OSError(error.errno, os.strerror(error.errno), path) from error
    return FormatError(path, "", f"is not a Parquet file, or damaged: {line}")


def column(path: str, table: Any, name: str) -> Any:
    """Return a numeric column: [n]; for (nested) lists of equal length [n,D]."""
    return numbers_of(path, name, table[name])


def numbers_of(path: str, name: str, chunked: Any) -> Any:
    """Return the numbers of a chunked array, as :func:`column` does."""
    import numpy as np

    arrow = needed("pyarrow", "lerobot", _WHAT)
    rows = len(chunked)
    if rows == 0:  # combine_chunks would import pandas
        array = arrow.nulls(0, chunked.type)
    else:
        array = chunked.combine_chunks() if chunked.num_chunks != 1 else chunked.chunk(0)
    width = 1
    while True:
        kind = array.type
        is_fixed = arrow.types.is_fixed_size_list(kind)
        is_list = arrow.types.is_list(kind) or arrow.types.is_large_list(kind)
        is_empty = arrow.types.is_null(kind) and rows > 0  # its first null is named below
        if not (is_fixed or is_list or is_empty or holds_numbers(kind)):
            kind = kind.value_type if arrow.types.is_dictionary(kind) else kind
            raise FormatError(path, name, f"has type {kind}, expected numbers")
        if array.null_count:
            row = int(np.argmin(present_in(array))) // width
            raise FormatError(path, f"{name}, row {row}", "is null")
        if is_fixed:
            width *= kind.list_size
            array = array.flatten()
        elif is_list:
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
    flat = _numbers(array)
    if chunked.type == kind:
        return flat
    if rows == 0 and width > _WIDEST:
        raise FormatError(path, name, f"would have {width:,} numbers per row, and has no rows")
    return flat.reshape(rows, width)


def whole_numbers(path: str, table: Any, name: str) -> Any:
    """Return a column of whole numbers as int64 [n]; floats without a fraction are accepted.

    Raises
    ------
    FormatError
        The column has other numbers, or lists, or a number beyond int64.
    """
    import numpy as np

    values = column(path, table, name)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise FormatError(path, name, f"has type {table[name].type}, expected whole numbers")
    if values.dtype.kind == "f":
        fits = (np.abs(values) < 2.0**53) & (values == np.floor(values))  # False for NaN
    else:
        fits = values <= np.iinfo(np.int64).max
    if not fits.all():
        row = int(np.argmin(fits))
        raise FormatError(path, f"{name}, row {row}", f"is {values[row]}, expected a whole number")
    return values.astype(np.int64, copy=False)


def texts(array: Any) -> list[Any]:
    """Return the texts, or lists of them, of an array; equal texts share one string."""
    arrow = needed("pyarrow", "lerobot", _WHAT)
    if isinstance(array, arrow.ChunkedArray):
        return [text for chunk in array.chunks for text in texts(chunk)]
    kind = array.type
    if arrow.types.is_dictionary(kind):
        words = array.dictionary.to_pylist()
        return [None if i is None else words[i] for i in array.indices.to_pylist()]
    if arrow.types.is_list(kind) or arrow.types.is_large_list(kind):
        ends, inner = array.offsets.to_pylist(), texts(array.values)
        there = array.is_valid().to_pylist()
        return [
            inner[begin:end] if valid else None for begin, end, valid in zip(ends, ends[1:], there)
        ]
    return list(array.to_pylist())


def _numbers(array: Any) -> Any:
    """Return the numbers or bools of an array without nulls, without a copy if possible.

    pyarrow's ``to_numpy`` imports pandas in the middle of a C++ call, which takes a second and
    loses a Ctrl-C that arrives meanwhile.
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


def holds_numbers(kind: Any) -> bool:
    """Whether the values of an Arrow type are integers, floats or bools."""
    types = needed("pyarrow", "tables", _WHAT).types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def zero_filled(chunked: Any) -> Any:
    """Return a chunked array with 0 instead of each null; unchanged if it has no numbers."""
    return _filled(chunked, bytes(8)) if holds_numbers(chunked.type) else chunked


def nan_filled(chunked: Any) -> Any:
    """Return a chunked array of float64 with NaN instead of each null."""
    return _filled(chunked, struct.pack("<d", float("nan")))


def _filled(chunked: Any, value: bytes) -> Any:
    """Replace nulls by a value in a buffer: pyarrow imports pandas to make a scalar of a number."""
    if not chunked.null_count:
        return chunked
    arrow = needed("pyarrow", "tables", _WHAT)
    return chunked.fill_null(
        arrow.Array.from_buffers(chunked.type, 1, [None, arrow.py_buffer(value)])[0]
    )


def present_in(array: Any) -> Any:
    """Return a mask [n] of the values of an array, or chunked array, that are not null."""
    import numpy as np

    arrow = needed("pyarrow", "tables", _WHAT)
    parts = [np.zeros(0, bool)]
    for part in array.chunks if isinstance(array, arrow.ChunkedArray) else [array]:
        present = part.buffers()[0] if part.null_count else None
        if present is None:  # no nulls, or only nulls
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


def integer_ranges(path: str, names: Collection[str]) -> dict[str, tuple[int, int]] | None:
    """Return the least and largest value of each column, and 0; None if the file lacks some."""

    def read(file: Any) -> dict[str, tuple[int, int]] | None:
        ranges: dict[str, tuple[int, int]] = {}
        owners, chosen = columns_of_leaves(file), set(names)
        if owners is None:
            return None
        for group in groups_of(path):
            for leaf, (name, chunk) in enumerate(zip(owners, group.chunks)):
                if name not in chosen or chunk.kind != "INT64" or not group.rows:
                    continue
                if chunk.range is None or set(map(len, chunk.range)) != {8}:
                    return None
                signed = json.loads(file.schema.column(leaf).logical_type.to_json()).get(
                    "isSigned", True
                )
                least, most = (int.from_bytes(x, "little", signed=signed) for x in chunk.range)
                low, high = ranges.get(name, (0, 0))
                ranges[name] = min(low, least), max(high, most)
        return ranges

    return with_file(path, read)
