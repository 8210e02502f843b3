"""Parsing of the rows of a text by Arrow: a part of the file at a time, or all of it at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..._errors import needed
from .layout import Layout
from .lines import arrow_file

PART = 1 << 20  # bytes of a text that are parsed at once
_NAN = ("nan", "-nan")  # values, not nulls
_MARK = b"\xef\xbb\xbf"  # of UTF-8, at the begin of a file
_MOST = 1 << 30  # bytes that Arrow parses at once
_TRIES = 8

Blocks = Callable[[], Iterator[bytes]]  # each call reads the lines from the first one on


class UnclosedQuote(Exception):
    """A cell begins with a quote, and ends at the end of the file."""


class _Whole(Exception):
    """Only the whole file decides how its cells are read."""


def parsed(
    found: Layout, texts: Sequence[str], blocks: Blocks, odd: list[Any] | None, size: int
) -> Any:
    """Parse all columns of a text, or only ``texts``, as texts; return an Arrow table.

    ``odd`` gets the rows with another number of cells; None: they are an error. ``blocks`` yields
    whole lines; ``size`` is the size of the file.

    A large text is parsed in parts, which takes less memory. Arrow gives a column the first type
    in its list that all of its texts fit. If the texts of one part do not fit an earlier type, and
    all texts fit this one, then the whole file would give this type too. Otherwise the whole file
    decides.
    """
    if size > PART:
        try:
            table = _in_parts(found, texts, blocks, odd)
        except _Whole:
            pass
        else:
            needed("pyarrow", "tables", "a table").default_memory_pool().release_unused()
            return table
    if odd is not None:
        odd.clear()
    return _parse(found, texts, b"".join(blocks()), odd)


def _in_parts(found: Layout, texts: Sequence[str], blocks: Blocks, odd: list[Any] | None) -> Any:
    """Parse part by part, with the types that the first parts have."""
    arrow = needed("pyarrow", "tables", "a table")
    names, types = found.names, None
    for _ in range(_TRIES):
        if odd is not None:
            odd.clear()
        tables: list[Any] = []
        for block in blocks():
            if len(block) >= _MOST or (tables and block.startswith(_MARK)):
                raise _Whole
            own = names if tables else found.names
            before = 0 if odd is None else len(odd)
            try:
                table = _parse(found, texts, block, odd, own, types)
            except UnclosedQuote:
                raise _Whole from None
            except (arrow.ArrowInvalid, arrow.ArrowTypeError):
                types = _widened(found, texts, block, own, types)
                break
            if names is None:
                whole = table if not texts else _parse(found, (), block, [])
                names = tuple(whole.column_names)
            if len(set(names)) != len(names):
                raise _Whole
            if b'"' in block:
                above = 0 if own is not None else 1 if found.units is None else 2
                rows = above + len(table) + (0 if odd is None else len(odd) - before)
                _require_apart(block, rows)
            if types is None:
                types = dict(zip(table.column_names, table.schema.types))
            tables.append(table)
        else:
            if not tables:
                raise _Whole
            return arrow.concat_tables(tables)
    raise _Whole


def _widened(
    found: Layout,
    texts: Sequence[str],
    block: bytes,
    names: Sequence[str] | None,
    types: dict[str, Any] | None,
) -> dict[str, Any]:
    """Return types that also fit a part: floats instead of integers, any type instead of none."""
    arrow = needed("pyarrow", "tables", "a table")
    if types is None:
        raise _Whole
    try:
        table = _parse(found, texts, block, [], names, None)
    except (arrow.ArrowInvalid, arrow.ArrowTypeError, UnclosedQuote):
        raise _Whole from None
    kinds = arrow.types
    made = dict(types)
    for name, kind in zip(table.column_names, table.schema.types):
        known = types.get(name)
        if known is None or known == kind or kinds.is_null(kind):
            continue
        if not kinds.is_null(known) and {str(known), str(kind)} != {"int64", "double"}:
            raise _Whole
        made[name] = arrow.float64() if kinds.is_int64(known) else kind
    if made == types:
        raise _Whole
    return made


def _require_apart(block: bytes, rows: int) -> None:
    """Refuse a part in which a cell in quotes continues in the next line."""
    lines = [line for line in block.split(b"\n") if line.strip(b"\r")]
    if rows != len(lines) or b"\r" in block.replace(b"\r\n", b""):
        raise _Whole


def _parse(
    found: Layout,
    texts: Sequence[str],
    block: bytes,
    odd: list[Any] | None,
    names: Sequence[str] | None = None,
    types: dict[str, Any] | None = None,
) -> Any:
    arrow = needed("pyarrow", "tables", "a table")
    reader = needed("pyarrow.csv", "tables", "a CSV file")
    nulls = [text for text in reader.ConvertOptions().null_values if text.lower() not in _NAN]
    rows: dict[str, Any] = {"use_threads": False}
    names = found.names if names is None else names
    if names is None:
        rows["skip_rows_after_names"] = 0 if found.units is None else 1
    else:
        rows["column_names"] = list(names)

    # Arrow ends a cell whose quote is not closed at the end of the file, and does not report it. A
    # last row that has too many cells is passed to `note`, unless it is in such a cell.
    last = b""
    if b'"' in block and not _is_utf8(block):  # Arrow cannot pass on a row that is not UTF-8
        _parse(found, texts, block.decode("utf-8", "replace").encode(), [], names)
    elif b'"' in block:
        first = block.lstrip(b"\r\n").partition(b"\n")[0]
        mark = found.delimiter.encode()
        last = mark * (1 + max(len(names or ()), 1 + first.count(mark)))
        block = b"".join([block, b"\n", last, b"\n"])
    is_closed = not last

    def note(row: Any) -> str:
        nonlocal is_closed
        if last and row.text == last.decode():
            is_closed = True
        elif odd is None:
            return "error"
        else:
            odd.append(row)
        return "skip"

    size = len(block)
    file, block = arrow_file(block), b""  # which may be the only copy of the whole file
    table = reader.read_csv(
        file,
        read_options=reader.ReadOptions(block_size=max(PART, min(size + 1, _MOST)), **rows),
        parse_options=reader.ParseOptions(
            delimiter=found.delimiter,
            invalid_row_handler=None if odd is None and not last else note,
        ),
        convert_options=reader.ConvertOptions(
            null_values=nulls,
            include_columns=list(texts),
            column_types={
                **(types or {}),
                **{name: arrow.float64() for name in found.floats},
                **{name: arrow.string() for name in texts},
            },
            strings_can_be_null=bool(texts),
            decimal_point=found.decimal,
        ),
    )
    if not is_closed:
        raise UnclosedQuote
    return table


def _is_utf8(block: bytes) -> bool:
    try:
        block.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
