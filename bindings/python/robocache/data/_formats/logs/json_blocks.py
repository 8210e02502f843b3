"""Blocks of JSON objects, parsed by Arrow where that gives what Python's json gives.

Arrow is ten times faster, but it also reads objects that are not one per line, spells numbers in
other ways, and gives each column one type. A block with anything like that is left to Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..._errors import needed
from ..tables.lines import arrow_file
from ..tables.parquet import numbers_of, present_in

EXACT = 2**53
DEEPEST = 32  # levels of nested objects
LONGEST = 64  # elements of an array that become channels
_MOST_OPEN = 1000  # objects and arrays of a line: Arrow's parser calls itself for each level
_MOST_MISSES = 8  # blocks one after the other that Arrow could not read
_NEGATIVE_ZERO = re.compile(rb"-0(?![.\deE])")  # an integer, which is 0 and not -0.0
_WHOLE_FLOAT = re.compile(rb"\.0*(?!\d)|\d[eE][-+\d]")  # a text may hold "1." or ".0"
_WHAT = "JSON"


class Unlike(Exception):
    """A block must be read by Python."""


class Parser:
    """Parses blocks of objects, one per line."""

    def __init__(self) -> None:
        self._texts: Any = None  # schema of the texts: Arrow would read some of them as dates
        self._misses = 0

    def table(self, block: bytes) -> Any:
        """Return the objects of a block as the rows of an Arrow table; None: Python must."""
        if self._misses >= _MOST_MISSES:
            return None
        table = self._table(block)
        self._misses = 0 if table is not None else self._misses + 1
        return table

    def missed(self) -> None:
        """Note that a table could not be used."""
        self._misses += 1

    def _table(self, block: bytes) -> Any:
        block = block.strip(b"\r\n")
        count = block.count(b"\n") + 1
        apart = block.count(b"}\n{") + block.count(b"}\r\n{")
        if apart != count - 1 or not (block.startswith(b"{") and block.endswith(b"}")):
            return None
        if not _is_text(block) or _most_open(block) > _MOST_OPEN:
            return None
        table = _parsed(block, self._texts)
        if table is not None and any(map(_holds_date, table.schema.types)):
            texts = _texts_in(table.schema, self._texts)
            table = _parsed(block, texts)
            if table is None or any(map(_holds_date, table.schema.types)):
                return None
            self._texts = texts
        return None if table is None or len(table) != count else table


def _is_text(block: bytes) -> bool:
    if block.isascii():
        return True
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return True


def _most_open(block: bytes) -> int:
    """Return a bound for the objects and arrays that begin in a line."""
    import numpy as np

    octets: Any = np.frombuffer(block, np.uint8)
    begins = np.concatenate([[0], np.flatnonzero(octets == ord("\n")) + 1])
    longest = int(np.diff(begins, append=len(block)).max())
    if longest <= _MOST_OPEN:
        return longest
    opened = (octets == ord("{")) | (octets == ord("["))
    return int(np.add.reduceat(opened, begins, dtype=np.int64).max())


def _parsed(block: bytes, texts: Any) -> Any:
    arrow = needed("pyarrow", "tables", _WHAT)
    reader = needed("pyarrow.json", "tables", _WHAT)
    try:
        return reader.read_json(
            arrow_file(block),
            read_options=reader.ReadOptions(use_threads=False, block_size=len(block) + 1),
            parse_options=reader.ParseOptions(explicit_schema=texts),
        )
    except (arrow.ArrowInvalid, arrow.ArrowTypeError, arrow.ArrowNotImplementedError):
        return None


# ---- texts that look like dates ------------------------------------------------------------------


def _children(kind: Any) -> list[Any]:
    """Return the fields of a type; none for a number or a text."""
    types = needed("pyarrow", "tables", _WHAT).types
    if types.is_struct(kind):
        return [kind.field(i) for i in range(kind.num_fields)]
    return [kind.value_field] if types.is_list(kind) else []


def _holds_date(kind: Any) -> bool:
    types = needed("pyarrow", "tables", _WHAT).types
    return types.is_temporal(kind) or any(_holds_date(each.type) for each in _children(kind))


def _texts_in(schema: Any, known: Any) -> Any:
    """Return the schema of all texts in another one, and of those that are known."""
    arrow = needed("pyarrow", "tables", _WHAT)
    fields = {each.name: each for each in known or ()}
    for each in schema:
        kind = _texts_of(each.type, fields[each.name].type if each.name in fields else None)
        if kind is not None:
            fields[each.name] = arrow.field(each.name, kind)
    return arrow.schema(list(fields.values()))


def _texts_of(kind: Any, known: Any) -> Any:
    """Return a type with only the texts in it; None if it has no texts."""
    arrow = needed("pyarrow", "tables", _WHAT)
    types = arrow.types
    if types.is_temporal(kind) or types.is_string(kind):
        return arrow.string()
    if types.is_list(kind):
        inner = _texts_of(kind.value_type, known.value_type if known is not None else None)
        return known if inner is None else arrow.list_(inner)
    if not types.is_struct(kind):
        return known
    fields = {each.name: each for each in (_children(known) if known is not None else ())}
    for each in _children(kind):
        own = _texts_of(each.type, fields[each.name].type if each.name in fields else None)
        if own is not None:
            fields[each.name] = arrow.field(each.name, own)
    return arrow.struct(list(fields.values())) if fields else None


def arrays_of(table: Any) -> dict[str, Any]:
    """Return the columns of a table by name, each in one piece."""
    arrow = needed("pyarrow", "tables", _WHAT)
    columns = {}
    for name, column in zip(table.column_names, table.columns):
        whole = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        columns[name] = whole.chunk(0) if isinstance(whole, arrow.ChunkedArray) else whole
    return columns


def numbers_in(array: Any) -> Any:
    """Return the numbers in an array of texts; another array unchanged.

    Raises
    ------
    Unlike
        Python might read another number in a text, or none.
    """
    import numpy as np

    arrow = needed("pyarrow", "tables", _WHAT)
    if not arrow.types.is_string(array.type) or array.null_count == len(array):
        return array
    begin, end = np.frombuffer(array.buffers()[1], np.int32)[
        [array.offset, array.offset + len(array)]
    ]
    octets = np.frombuffer(array.buffers()[2], np.uint8)[begin:end]
    allowed = np.zeros(256, bool)
    allowed[list(b"0123456789.eE-")] = True
    if not allowed[octets].all():
        raise Unlike
    try:
        return array.cast(arrow.int64())
    except arrow.ArrowInvalid:
        pass
    try:
        floats = array.cast(arrow.float64())
    except arrow.ArrowInvalid:
        raise Unlike from None
    numbers = numbers_of("", "", arrow.chunked_array([floats.drop_null()]))
    if (np.abs(numbers) >= EXACT).any() or (np.signbit(numbers) & (numbers == 0)).any():
        raise Unlike
    return floats


# ---- columns -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """A column of a block: values of one name, in the rows that have it."""

    name: str
    rows: Any
    values: Any  # numbers in NumPy, texts in Arrow, or the lengths of lists
    is_sure: bool = True  # else the numbers may be integers in the text, or floats


def columns_of(
    block: bytes, name: str, array: Any, rows: Any, is_shared: bool, depth: int = 0
) -> Iterator[Found]:
    """Yield the columns of an array of JSON values.

    ``is_shared``: whether values of other names have the same type in Arrow. It is float64 if only
    one of them has a fraction, and the others may be integers.

    Raises
    ------
    Unlike
        Python might give other values.
    """
    arrow = needed("pyarrow", "tables", _WHAT)
    types, kind = arrow.types, array.type
    if array.null_count:
        rows = rows[present_in(array)]
    if types.is_null(kind) or len(rows) == 0:
        return
    if types.is_struct(kind) or types.is_list(kind):
        if depth >= DEEPEST:
            raise Unlike
        if types.is_list(kind):
            yield from _elements_of(block, name, array, rows, depth)
            return
        kept = array.drop_null() if array.null_count else array
        for part, inner in zip(_children(kind), kept.flatten()):
            place = f"{name}.{part.name}"
            yield from columns_of(block, place, inner, rows, is_shared, depth + 1)
        return
    values = array.drop_null() if array.null_count else array
    if types.is_string(kind):
        yield Found(name, rows, values)
    elif types.is_int64(kind) or types.is_boolean(kind):
        yield Found(name, rows, numbers_of("", name, arrow.chunked_array([values])))
    elif types.is_float64(kind):
        numbers = numbers_of("", name, arrow.chunked_array([values]))
        _require_alike(block, numbers)
        yield _typed(block, Found(name, rows, numbers)) if is_shared else Found(name, rows, numbers)
    else:
        raise Unlike


def _elements_of(block: bytes, name: str, array: Any, rows: Any, depth: int) -> Iterator[Found]:
    """Yield the lengths of lists, and their elements if all have the same length."""
    import numpy as np

    arrow = needed("pyarrow", "tables", _WHAT)
    offsets = np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, 4 * array.offset)
    begins, lengths = offsets[:-1], np.diff(offsets)
    if array.null_count:
        there = present_in(array)
        begins, lengths = begins[there], lengths[there]
    yield Found(name, rows, np.unique(lengths).tolist())
    length = int(lengths[0])
    if (lengths != length).any() or length > LONGEST:
        return
    for i in range(length):
        inner = array.values.take(arrow.array(begins.astype(np.int64) + i))
        yield from columns_of(block, f"{name}[{i}]", inner, rows, True, depth + 1)


def _typed(block: bytes, found: Found) -> Found:
    """Return whole numbers as integers if none is written as a float in the block."""
    import numpy as np

    numbers = found.values
    if not (numbers == np.floor(numbers)).all() or not np.isfinite(numbers).all():
        return found
    is_sure = _WHOLE_FLOAT.search(block) is None
    return Found(found.name, found.rows, numbers.astype(np.int64) if is_sure else numbers, is_sure)


def _require_alike(block: bytes, numbers: Any) -> None:
    """Refuse floats that may be integers in the text, or may be spelled as Python does not."""
    import numpy as np

    low, high = numbers.min(), numbers.max()
    if np.isfinite(low) and np.isfinite(high):
        if high >= EXACT or low <= -EXACT:
            raise Unlike
    else:
        if b"-N" in block or block.count(b"Inf") != block.count(b"Infinity"):
            raise Unlike
        finite = numbers[np.isfinite(numbers)]
        if (np.abs(finite) >= EXACT).any():
            raise Unlike
    if not (numbers.astype(bool) | ~np.signbit(numbers)).all() and _NEGATIVE_ZERO.search(block):
        raise Unlike
