"""CSV files: recognition, and reading of their columns into Arrow tables."""

from __future__ import annotations

import codecs
import csv
import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..._errors import FormatError, needed, raise_shortage, require_memory, require_thread
from ..._file_access import Limit, opened, reopened
from .parquet import numbers_of

_LOOK = 1 << 14  # bytes; most headers are shorter
_LONGEST = 16 << 20  # bytes of the header and the first row
_COLUMN = 2048  # bytes that each column counts in the limit, even with few rows
_DELIMITERS = ",;\t"
_LARGEST = 2**63  # from here on Arrow parses integers as floats
_NAN = ("nan", "-nan")  # values, not nulls
_LINES = 64  # of a text that is not a table, searched for numbers
_COMMA_DECIMAL = re.compile(r"[+-]?\d+,\d+")
_UNIT = re.compile(r"[^\W\d_][\w°/^*.·²³ -]{0,15}|[°%-]\w?")
_STAMP = re.compile(r"\d{1,4}([-/:.])\d{1,2}\1\d{1,2}")  # the begin of a date or a time of day
_KNOWN_UNITS = set(
    "s sec seconds ms us ns m mm cm km rad deg degrees ° m/s m/s^2 m/s2 m/s² rad/s deg/s °/s g hz "
    "n nm n*m n.m v a c °c degc k pa hpa kpa mbar bar % kg - t ut gauss".split()
)


# ---- which files --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Layout:
    """How the lines of a text form a table."""

    delimiter: str
    units: tuple[str, ...] | None  # from the second line, if numbers begin below it


def delimiter_of(path: str) -> str | None:
    """Return the delimiter of a text table, or None if the file is not a table."""
    layout = _layout(_start(path))
    return None if layout is None else layout.delimiter


def fault_of(path: str) -> tuple[str, bool]:
    """Return why a CSV file cannot be read, and whether it is damaged."""
    start = _start(path)
    if not start.strip():
        return "is empty", True
    encoding = _other_encoding(start)
    if encoding is not None:
        return encoding, True
    if b"\n" not in start:
        if len(start) >= _LONGEST:
            return f"has a first line of more than {_LONGEST >> 20} MiB", True
        return "the file has a single line without an end: it is not a table, or is truncated", True
    if len(start.split()) and start.rstrip().count(b"\n") == 0:
        return "has a header and no rows", False
    return _reason(start), False


def _other_encoding(start: bytes) -> str | None:
    """Return what to do about a text that is not UTF-8; None if it is UTF-8."""
    for mark, name in ((b"\xff\xfe", "UTF-16LE"), (b"\xfe\xff", "UTF-16BE")):
        if start.startswith(mark):
            return _save_as("is UTF-16", "UTF-16")
        zeros = start[name == "UTF-16LE" : _LOOK : 2]
        if len(zeros) > 4 and zeros.count(0) > 0.8 * len(zeros):
            return _save_as("is UTF-16", name)
    try:
        start[: start.rfind(b"\n") + 1].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _save_as(f"is not UTF-8 at byte {error.start}, perhaps Latin-1", "LATIN1")
    return None


def _save_as(what: str, encoding: str) -> str:
    return f"{what}: save it as UTF-8 (iconv -f {encoding} -t UTF-8 FILE > NEW)"


def _reason(start: bytes) -> str:
    """Return why the first lines of a text are not columns of numbers below a header."""
    lines = _texts(start[: start.rfind(b"\n") + 1].splitlines()[:_LINES]) or []
    rows = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    for delimiter in (";", "\t"):
        below = [_cells(line, delimiter) for _, line in rows[1:]]
        marks = [cell for row in below for cell in row if _COMMA_DECIMAL.fullmatch(cell.strip())]
        if marks and all(len(row) > 1 for row in below):
            return (
                f"has decimal commas ({marks[0].strip()}), which are not read: "
                "write numbers with decimal points"
            )
    for delimiter in _DELIMITERS:
        numeric = [
            number
            for number, line in rows
            if len(cells := _cells(line, delimiter)) > 1
            and all(map(_is_number, filter(str.strip, cells)))
            and any(map(str.strip, cells))
        ]
        if numeric and numeric[0] == rows[0][0]:
            return (
                "has no header: the first line holds numbers. Add a line above with the names of "
                "the columns, such as time,x,y"
            )
        if numeric and numeric[0] > 2:
            return (
                f"has its numbers from line {numeric[0]} on, expected from line 2: delete the "
                "lines above except the one that names the columns"
            )
    return "is a text without columns of numbers below a header"


def _start(path: str) -> bytes:
    """Read the first two non-empty lines of a file that may be a table; else all of it."""
    if not os.path.isfile(path):
        return b""
    with opened(path) as file:
        start = file.read(_LOOK) or b""
        if len(start) < _LOOK or not _may_be_table(start):
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
        return whole or b"".join(parts)


def _whole_lines(start: bytes) -> bytes:
    return start[: start.rfind(b"\n") + 1]


def _may_be_table(start: bytes) -> bool:
    """Whether bytes, which may end within a character, are text with a delimiter."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False
    return "\0" not in text and any(delimiter in text for delimiter in _DELIMITERS)


def _layout(start: bytes) -> Layout | None:
    """Return the layout of the first lines: a header, maybe a line of units, and numbers."""
    texts = _texts(start.splitlines()[:4]) if b"\n" in start[:-1] else []
    for delimiter in _DELIMITERS:
        rows = [_cells(text, delimiter) for text in texts or () if text]
        if len(rows) < 2 or len(rows[0]) < 2 or len(rows[0]) != len(rows[1]):
            continue
        heads, second = rows[0], rows[1]
        if any(map(_is_number, filter(None, heads))):
            continue
        if any(map(_is_number, second)):
            return Layout(delimiter, None)
        third = rows[2] if len(rows) > 2 and len(rows[2]) == len(heads) else []
        if any(map(_is_number, third)) and _are_units(second):
            return Layout(delimiter, tuple(second))
        if any(map(_is_number, third)) and any(map(_STAMP.match, second)):
            return Layout(delimiter, None)  # the first row has no numbers except its time
    return None


def _texts(lines: Sequence[bytes]) -> list[str] | None:
    try:
        return [line.decode("utf-8-sig") for line in lines]
    except UnicodeDecodeError:
        return None


def _cells(line: str, delimiter: str) -> list[str]:
    """Split a line into cells without quotes and surrounding spaces."""
    if '"' not in line:
        return [cell.strip() for cell in line.split(delimiter)]
    try:
        found = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:
        return [line]
    return [cell.strip() for cell in found]


def _are_units(cells: Sequence[str]) -> bool:
    """Whether the cells below a header are units: short words, some of them well known."""
    words = [cell.strip("[](){} ") for cell in cells if cell]
    return (
        bool(words)
        and all(_UNIT.fullmatch(word) for word in words)
        and any(word.lower() in _KNOWN_UNITS for word in words)
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# ---- reading ------------------------------------------------------------------------------------


def read_csv(path: str, limit: Limit) -> tuple[Any, dict[str, str]]:
    """Read a text as an Arrow table; also return the units in a line below the header, by column.

    The units are empty if there is no such line.
    """
    arrow = needed("pyarrow", "tables", "a table")
    start = _start(path)
    layout = _layout(start) or Layout(",", None)
    delimiter, skipped = layout.delimiter, 0 if layout.units is None else 1
    columns = start.partition(b"\n")[0].count(delimiter.encode()) + 1
    size = os.path.getsize(path)
    limit.require(path, f"header of {columns:,} columns", columns * _COLUMN, size)
    require_memory(path)
    require_thread(path)
    try:
        table = _read(path, delimiter, skipped)
        names = [name.strip() for name in table.column_names]
        require_apart(path, names)
        large = _too_large(path, table)
        if large:
            table = _with_large(table, _read(path, delimiter, skipped, large))
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise_shortage(path)
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, os.strerror(error.errno), path) from error
        line = str(error).partition("\n")[0]
        raise FormatError(path, "", f"cannot be read: {line}") from None
    return table.rename_columns(names), dict(zip(names, layout.units or ()))


def require_apart(path: str, names: Sequence[str]) -> None:
    """Refuse duplicate column names."""
    again = [name for name, count in Counter(names).items() if count > 1]
    if again:
        raise FormatError(path, "", f"two columns are named {again[0]!r}: rename one")


def _read(path: str, delimiter: str, skipped: int, texts: Sequence[str] = ()) -> Any:
    """Read all columns, or only ``texts``, as texts."""
    arrow = needed("pyarrow", "tables", "a table")
    reader = needed("pyarrow.csv", "tables", "a CSV file")
    size = max(
        1 << 20, min(os.path.getsize(path) + 1, 1 << 30)
    )  # Arrow infers the types from one block
    nulls = [text for text in reader.ConvertOptions().null_values if text.lower() not in _NAN]
    with reopened(path) as source:
        return reader.read_csv(
            source,
            read_options=reader.ReadOptions(block_size=size, skip_rows_after_names=skipped),
            parse_options=reader.ParseOptions(delimiter=delimiter),
            convert_options=reader.ConvertOptions(
                null_values=nulls,
                include_columns=list(texts),
                column_types={name: arrow.string() for name in texts},
                strings_can_be_null=bool(texts),
            ),
        )


def _too_large(path: str, table: Any) -> list[str]:
    """Return the float columns that may be integers above the range of int64."""
    import numpy as np

    arrow = needed("pyarrow", "tables", "a table")
    found = []
    for name, chunked in zip(table.column_names, table.columns):
        if arrow.types.is_float64(chunked.type):
            values = numbers_of(path, name, chunked.fill_null(0.0))
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
