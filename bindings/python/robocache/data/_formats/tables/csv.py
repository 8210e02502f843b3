"""CSV files: recognition, and reading of their columns into Arrow tables."""

from __future__ import annotations

import codecs
import dataclasses
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...._printable import plural
from ..._errors import (
    Damage,
    FormatError,
    needed,
    raise_shortage,
    require_memory,
    require_thread,
)
from ..._file_access import Limit, opened
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
from .lines import Lines, whole_lines
from .parquet import numbers_of, zero_filled
from .parts import UnclosedQuote, parsed
from .texts import NUMBER

_LONGEST = 16 << 20  # bytes of the header and the first row
_COLUMN = 2048  # bytes that each column counts in the limit, even with few rows
_LARGEST = 2**63  # from here on Arrow parses integers as floats
_EMPTY = "Empty CSV file"  # Arrow's error
_WIDTH = "CSV parse error: Expected"  # begins its error for a row with too few or many cells
_ROW = re.compile(r"Row #\d+: ")
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

    def blocks() -> Iterator[bytes]:
        with opened(path) as file:
            yield from whole_lines(file)

    def blocks_in_utf8() -> Iterator[bytes]:  # Arrow cannot pass on a row that is not UTF-8
        with opened(path) as file:
            yield from Lines(file)

    def read(texts: Sequence[str]) -> Any:
        size = os.path.getsize(path)
        try:
            return _parsed(path, found, texts, blocks, None, size, damage)
        except needed("pyarrow", "tables", "a table").ArrowInvalid as error:
            if damage is None or not _reason_of(error).startswith(_WIDTH):
                raise
        return _parsed(path, found, texts, blocks_in_utf8, odd, size, damage)

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

    def read_once(texts: Sequence[str], found: Layout) -> Any:
        fault: int | None = None

        def blocks() -> Iterator[bytes]:
            nonlocal fault
            with opened(path) as file:
                file.seek(begin)
                blanks = found.delimiter == BLANKS
                lines = Lines(file, found.encoding, found.first, blanks, found.comments, count)
                yield from lines
                fault = lines.fault

        size = os.path.getsize(path) if count is None else count
        kept = None if damage is None else odd
        table = _parsed(path, found, texts, blocks, kept, size, damage)
        if fault is not None:
            text = f"is not {found.encoding.upper()}: save it as UTF-8, or copy it again"
            place = f"byte {begin + fault:,}"
            if damage is None:
                raise FormatError(path, place, text)
            damage.found(path, place, text)
        return table

    def read(texts: Sequence[str]) -> Any:
        try:
            return read_once(texts, found)
        except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
            if texts or not found.floats or damage is None or _EMPTY in str(error):
                raise
            damage.found(path, "", f"has a cell that is no number: {_reason_of(error)}")
        table = read_once((), dataclasses.replace(found, floats=()))
        texts_of = read_once(found.floats, found)
        return _with_numbers(table, texts_of)

    table = _checked(path, limit, len(found.names), read)
    if odd and damage is not None:
        _report(path, odd, damage, "a row")
    return table


def _parsed(
    path: str,
    found: Layout,
    texts: Sequence[str],
    blocks: Callable[[], Iterator[bytes]],
    odd: list[Any] | None,
    size: int,
    damage: Damage | None,
) -> Any:
    """Parse a text. If a quote is not closed, lines with an odd number of quotes are damage."""
    for read in (blocks, lambda: map(_without_odd_quotes, blocks())):
        try:
            return parsed(found, texts, read, odd, size)
        except UnclosedQuote:
            lines = [line for block in read() for line in block.split(b"\n") if _is_odd(line)]
        shown = (lines[0] if lines else b"").decode("utf-8", "replace").rstrip("\r")
        text = f"has a quote that is not closed: {shown[:40]!r}"
        place = _place_of(path, shown) if lines else ""
        if damage is None or read is not blocks:
            break
        more = f" ({len(lines) - 1:,} more lines like that)" if len(lines) > 1 else ""
        damage.found(path, place, f"{text}; the line is skipped{more}")
    raise FormatError(path, place, text)


def _is_odd(line: bytes) -> bool:
    return line.count(b'"') % 2 == 1


def _without_odd_quotes(block: bytes) -> bytes:
    lines = block.splitlines(keepends=True) if b'"' in block else [block]
    return b"".join(line for line in lines if len(lines) == 1 or not _is_odd(line))


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
        line = _reason_of(error)
        text = "has no rows below its header" if line == _EMPTY else f"cannot be read: {line}"
        raise FormatError(path, "", text) from None
    return table.rename_columns(names)


def _reason_of(error: BaseException) -> str:
    """Return the first line of Arrow's message, whose number of a row counts other rows too."""
    return _ROW.sub("", str(error).partition("\n")[0])


def require_apart(path: str, names: Sequence[str]) -> None:
    """Refuse duplicate column names."""
    again = [name for name, count in Counter(names).items() if count > 1]
    if again:
        raise FormatError(path, "", f"two columns are named {again[0]!r}: rename one")


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
