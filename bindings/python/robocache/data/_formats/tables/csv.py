"""CSV files: recognition, and reading of their columns into Arrow tables."""

from __future__ import annotations

import codecs
import contextlib
import dataclasses
import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ..._errors import (
    Damage,
    FormatError,
    needed,
    raise_shortage,
    require_memory,
    require_thread,
)
from ..._file_access import Limit, opened, reopened
from ..._format_values import plural
from .layout import (
    BLANKS,
    DELIMITERS,
    LOOK,
    Layout,
    cells_of,
    decoded,
    encoding_of,
    is_number,
    layout_of,
)
from .lines import Lines
from .parquet import numbers_of, zero_filled
from .texts import NUMBER

_LONGEST = 16 << 20  # bytes of the header and the first row
_COLUMN = 2048  # bytes that each column counts in the limit, even with few rows
_LARGEST = 2**63  # from here on Arrow parses integers as floats
_NAN = ("nan", "-nan")  # values, not nulls
_EMPTY = "Empty CSV file"  # Arrow's error
_WIDTH = "CSV parse error: Expected"  # begins its error for a row with too few or many cells
_PART = 1 << 20  # bytes of a text that are parsed at once
_LINES = 64  # of a text that is not a table, searched for numbers


# ---- which files --------------------------------------------------------------------------------


def layout(path: str) -> Layout | None:
    """Return the layout of a text table, or None if the file is not a table."""
    return layout_of(start_of(path))


def delimiter_of(path: str) -> str | None:
    """Return the delimiter of a text table, or None if the file is not a table."""
    found = layout(path)
    return None if found is None else found.delimiter


def fault_of(path: str) -> tuple[str, bool]:
    """Return why a CSV file cannot be read, and whether it is damaged."""
    start = start_of(path)
    if not start.strip():
        return "is empty", True
    encoding = encoding_of(start)
    if encoding is None:
        return "is not text: it has bytes that are no characters", True
    if b"\n" not in start:
        if b"\r" in start.strip():
            return (
                "has lines that end with CR only, as old Macintosh programs write them: save it "
                "with LF or CRLF, such as by tr '\\r' '\\n'"
            ), False
        if len(start) >= _LONGEST:
            return f"has a first line of more than {_LONGEST >> 20} MiB", True
        return "the file has a single line without an end: not a table, or cut off", True
    if len(start.split()) and start.rstrip().count(b"\n") == 0:
        return "has a header and no rows", False
    text = decoded(start, encoding)
    return _reason((text or "").split("\n")[:_LINES]), False


def _reason(lines: Sequence[str]) -> str:
    """Return why the first lines of a text are not columns of numbers."""
    rows = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    for delimiter in DELIMITERS:
        numeric = [
            number
            for number, line in rows
            if len(cells := cells_of(line, delimiter)) > 1
            and all(map(is_number, filter(str.strip, cells)))
            and any(map(str.strip, cells))
        ]
        if numeric and numeric[0] == rows[0][0]:
            return (
                "has no header: the first line holds numbers. Add a line above with the names of "
                "the columns, such as time,x,y"
            )
        if numeric and numeric[0] > 2:
            return (
                f"has its numbers from line {numeric[0]} on, but the lines above do not name each "
                "column once: keep one line above them that does"
            )
    return "is a text without columns of numbers below a header"


def start_of(path: str) -> bytes:
    """Read the first two non-empty lines of a file that may be a table; else all of it."""
    if not os.path.isfile(path):
        return b""
    with opened(path) as file:
        start = file.read(LOOK) or b""
        if len(start) < LOOK or not _may_be_table(start):
            return start
        parts, whole = [start], _whole_lines(start)
        size = len(start)
        while sum(map(bool, whole.splitlines()[:4])) < 2 and size < _LONGEST:
            part = file.read(min(size, _LONGEST - size)) or b""
            if not part:
                return b"".join(parts)
            parts.append(part)
            size += len(part)
            if b"\n" in part:
                whole = _whole_lines(b"".join(parts))
        return b"".join(parts)


def _whole_lines(start: bytes) -> bytes:
    return start[: start.rfind(b"\n") + 1]


def _may_be_table(start: bytes) -> bool:
    """Whether bytes, which may end within a character, are text with a delimiter."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False
    return "\0" not in text and any(delimiter in text for delimiter in (*DELIMITERS, BLANKS))


# ---- reading ------------------------------------------------------------------------------------


def read_csv(path: str, limit: Limit, damage: Damage | None = None) -> tuple[Any, Layout]:
    """Read a text as an Arrow table; also return its layout.

    ``damage`` gets the rows with another number of cells than the others; None: they are an error.
    """
    start = start_of(path)
    found = layout_of(start) or Layout(",")
    if found.names is not None:
        return read_rows(path, found, limit, damage), found
    columns = start.partition(b"\n")[0].count(found.delimiter.encode()) + 1
    odd: list[Any] = []

    def read_lines(texts: Sequence[str], parts: bool, kept: list[Any] | None) -> Any:
        with opened(path) as file:  # Arrow cannot pass on a row that is not UTF-8
            return _read(path, found, texts, Lines(file), kept, parts)

    def read(texts: Sequence[str]) -> Any:
        try:
            return _in_parts(
                path, None, lambda parts, kept: _read(path, found, texts, None, kept, parts)
            )
        except needed("pyarrow", "tables", "a table").ArrowInvalid as error:
            if damage is None or _WIDTH not in str(error):
                raise
        return _in_parts(path, odd, lambda parts, kept: read_lines(texts, parts, kept))

    table = _checked(path, limit, columns, read)
    if odd and damage is not None:
        _report(path, odd, damage, _place_of(path, odd[0].text))
    return table, found


def read_rows(
    path: str,
    found: Layout,
    limit: Limit,
    damage: Damage | None = None,
    begin: int = 0,
    count: int | None = None,
) -> Any:
    """Read the rows of a text of a known layout, or of ``count`` bytes of it from ``begin`` on."""
    if found.names is None:
        raise ValueError("found: has no names of columns")
    arrow = needed("pyarrow", "tables", "a table")
    require_apart(path, found.names)
    odd: list[Any] = []

    def read_lines(texts: Sequence[str], found: Layout, parts: bool, kept: list[Any] | None) -> Any:
        with opened(path) as file:
            file.seek(begin)
            blanks = found.delimiter == BLANKS
            lines = Lines(file, found.encoding, found.first, blanks, found.comments, count)
            table = _read(path, found, texts, lines, kept, parts)
        if lines.fault is not None:
            text = f"is not {found.encoding.upper()}: save it as UTF-8, or copy it again"
            place = f"byte {begin + lines.fault:,}"
            if damage is None:
                raise FormatError(path, place, text)
            damage.found(path, place, text)
        return table

    def read_once(texts: Sequence[str], found: Layout) -> Any:
        return _in_parts(
            path,
            None if damage is None else odd,
            lambda parts, kept: read_lines(texts, found, parts, kept),
        )

    def read(texts: Sequence[str]) -> Any:
        try:
            return read_once(texts, found)
        except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
            if texts or not found.floats or damage is None or _EMPTY in str(error):
                raise
            line = str(error).partition("\n")[0]
            damage.found(path, "", f"has a cell that is no number: {line}")
        table = read_once((), dataclasses.replace(found, floats=()))
        texts_of = read_once(found.floats, found)
        return _with_numbers(table, texts_of)

    table = _checked(path, limit, len(found.names), read)
    if odd and damage is not None:
        _report(path, odd, damage, "a row")
    return table


def _report(path: str, odd: Sequence[Any], damage: Damage, place: str) -> None:
    """Report the rows with another number of cells than the header, which are not in the table."""
    row, more = odd[0], len(odd) - 1
    has = plural(row.actual_columns, "cell")
    text = f"has {has}, expected {row.expected_columns}: {row.text[:40]!r}; it is skipped"
    damage.found(path, place, text + (f" ({more:,} more rows like that)" if more else ""))


def _place_of(path: str, text: str) -> str:
    """Return the first line with this text, such as "line 7"."""
    with opened(path) as file:
        lines = (line.decode("utf-8", "replace").rstrip("\r\n") for line in file)
        found = (i for i, line in enumerate(lines, 1) if line == text.rstrip("\r\n"))
        number = next(found, None)
    return "a row" if number is None else f"line {number:,}"


def _checked(path: str, limit: Limit, columns: int, read: Callable[[Sequence[str]], Any]) -> Any:
    """Read a table by ``read``, and the columns of large integers exactly."""
    arrow = needed("pyarrow", "tables", "a table")
    size = os.path.getsize(path)
    limit.require(path, f"header of {columns:,} columns", columns * _COLUMN, size)
    require_memory(path)
    require_thread(path)
    try:
        table = read(())
        names = [name.strip() for name in table.column_names]
        require_apart(path, names)
        large = _too_large(path, table)
        if large:
            table = _with_large(table, read(large))
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise_shortage(path)
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, os.strerror(error.errno), path) from error
        line = str(error).partition("\n")[0]
        text = "has no rows below its header" if line == _EMPTY else f"cannot be read: {line}"
        raise FormatError(path, "", text) from None
    return table.rename_columns(names)


def require_apart(path: str, names: Sequence[str]) -> None:
    """Refuse duplicate column names."""
    again = [name for name, count in Counter(names).items() if count > 1]
    if again:
        raise FormatError(path, "", f"two columns are named {again[0]!r}: rename one")


def _in_parts(
    path: str, odd: list[Any] | None, read: Callable[[bool, list[Any] | None], Any]
) -> Any:
    """Read a large table part by part, which takes less memory; else, or if that fails, as a whole.

    Arrow gives a column the first type in its list that all texts of the first part fit. If all
    other texts fit it too, the whole file would give the same type, since an earlier type in the
    list does not fit the first part. Otherwise reading fails, and the whole file decides.
    """
    arrow = needed("pyarrow", "tables", "a table")
    if os.path.getsize(path) > _PART:
        kept: list[Any] = []
        try:
            table = read(True, None if odd is None else kept)
        except (arrow.ArrowInvalid, arrow.ArrowTypeError):
            pass
        else:
            if odd is not None:
                odd[:] = kept
            arrow.default_memory_pool().release_unused()
            return table
    if odd is not None:
        odd.clear()
    return read(False, odd)


def _read(
    path: str,
    found: Layout,
    texts: Sequence[str],
    lines: Lines | None,
    odd: list[Any] | None,
    parts: bool,
) -> Any:
    """Read all columns, or only ``texts``, as texts; ``odd`` gets the rows of another width.

    ``parts``: whether to parse a part of the file at a time, whose first one decides on the types.
    """
    arrow = needed("pyarrow", "tables", "a table")
    reader = needed("pyarrow.csv", "tables", "a CSV file")
    nulls = [text for text in reader.ConvertOptions().null_values if text.lower() not in _NAN]
    size = os.path.getsize(path) * (1 if found.encoding == "utf-8" else 2)
    size = _PART if parts else max(1 << 20, min(size + 1, 1 << 30))
    rows: dict[str, Any] = {"block_size": size}
    if found.names is None:
        rows["skip_rows_after_names"] = 0 if found.units is None else 1
    else:
        rows["column_names"] = list(found.names)

    def note(row: Any) -> str:
        if odd is None:
            return "error"
        odd.append(row)
        return "skip"

    options = {
        "read_options": reader.ReadOptions(**rows),
        "parse_options": reader.ParseOptions(
            delimiter=found.delimiter, invalid_row_handler=None if odd is None else note
        ),
        "convert_options": reader.ConvertOptions(
            null_values=nulls,
            include_columns=list(texts),
            column_types={
                **{name: arrow.float64() for name in found.floats},
                **{name: arrow.string() for name in texts},
            },
            strings_can_be_null=bool(texts),
            decimal_point=found.decimal,
        ),
    }
    with contextlib.ExitStack() as stack:
        source = lines if lines is not None else stack.enter_context(reopened(path))
        if parts:
            return stack.enter_context(reader.open_csv(source, **options)).read_all()
        return reader.read_csv(source, **options)


def _with_numbers(table: Any, texts: Any) -> Any:
    """Replace columns by the numbers in their texts; other texts become empty cells."""
    arrow = needed("pyarrow", "tables", "a table")
    compute = needed("pyarrow.compute", "tables", "a table")
    columns = dict(zip(table.column_names, table.columns))
    for name, chunked in zip(texts.column_names, texts.columns):
        fits = compute.match_substring_regex(chunked, NUMBER, ignore_case=True)
        columns[name] = compute.if_else(fits, chunked, None).cast(arrow.float64())
    return arrow.table(columns)


def _too_large(path: str, table: Any) -> list[str]:
    """Return the float columns that may be integers above the range of int64."""
    import numpy as np

    arrow = needed("pyarrow", "tables", "a table")
    compute = needed("pyarrow.compute", "tables", "a table")
    found = []
    for name, chunked in zip(table.column_names, table.columns):
        if arrow.types.is_float64(chunked.type):
            largest = compute.max(chunked).as_py()
            if largest is None or not largest >= _LARGEST:
                continue
            values = numbers_of(path, name, zero_filled(chunked))
            if len(values) and _LARGEST <= values.max() <= 2 * _LARGEST and values.min() >= 0:
                if (values == np.floor(values)).all():
                    found.append(name)
    return found


def _with_large(table: Any, texts: Any) -> Any:
    """Replace columns by integers if all of their texts are integers."""
    arrow = needed("pyarrow", "tables", "a table")
    columns = dict(zip(table.column_names, table.columns))
    for name, chunked in zip(texts.column_names, texts.columns):
        try:
            columns[name] = chunked.cast(arrow.uint64())
        except arrow.ArrowInvalid:  # some are not integers
            continue
    return arrow.table(columns)
