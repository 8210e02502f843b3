"""CSV files: how they are recognized, and how their columns are read into Arrow tables."""

from __future__ import annotations

import codecs
import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ._errors import FormatError, needed, raise_shortage, require_memory, require_thread
from ._files import Limit, opened, reopened
from ._parquet import numbers_of

_LOOK = 1 << 14  # bytes; most headers are shorter
_LONGEST = 16 << 20  # bytes of the header and the first row
_COLUMN = 2048  # bytes that a column counts for in the limit, however few its rows are
_DELIMITERS = ",;\t"
_LARGEST = 2**63  # from here on Arrow takes integers of a text for floats
_NAN = ("nan", "-nan")  # are values, which nulls are not


# ---- which files --------------------------------------------------------------------------------


def delimiter_of(path: str) -> str | None:
    """The character between the columns of a text, or None if the file is not a table."""
    return _delimiter(_start(path))


def fault_of(path: str) -> tuple[str, bool]:
    """The reason why a CSV file cannot be read, and whether the file is damaged."""
    start = _start(path)
    if not start.strip():
        return "is empty", True
    try:
        start[: start.rfind(b"\n") + 1].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return f"is not UTF-8 at byte {error.start}: save it in that encoding", True
    if b"\n" not in start:
        if len(start) >= _LONGEST:
            return f"has a first line of more than {_LONGEST >> 20} MiB", True
        return "has no end of a line: it is cut off, or no table", True
    if len(start.split()) and start.rstrip().count(b"\n") == 0:
        return "has a header and no rows", False
    return "is a text without columns of numbers below a header", False


def _start(path: str) -> bytes:
    """The first lines of a file: two that are not empty, if it may be a table, or all of it."""
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
    """Whether bytes that may end within a character are a text with some delimiter."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return False
    return "\0" not in text and any(delimiter in text for delimiter in _DELIMITERS)


def _delimiter(start: bytes) -> str | None:
    lines = start.splitlines()[:4] if b"\n" in start[:-1] else []
    try:
        texts = [line.decode("utf-8-sig") for line in lines]
    except UnicodeDecodeError:
        return None
    for delimiter in _DELIMITERS:
        rows = [text.split(delimiter) for text in texts if text]
        if len(rows) < 2 or len(rows[0]) < 2 or len(rows[0]) != len(rows[1]):
            continue
        heads, second = rows[0], rows[1]
        if any(map(_is_number, second)) and not any(map(_is_number, filter(None, heads))):
            return delimiter
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# ---- reading ------------------------------------------------------------------------------------


def read_csv(path: str, limit: Limit) -> Any:
    """An Arrow table of a text."""
    arrow = needed("pyarrow", "tables", "a table")
    start = _start(path)
    delimiter = _delimiter(start) or ","
    columns = start.partition(b"\n")[0].count(delimiter.encode()) + 1
    size = os.path.getsize(path)
    limit.require(path, f"header of {columns:,} columns", columns * _COLUMN, size)
    require_memory(path)
    require_thread(path)
    try:
        table = _read(path, delimiter)
        require_apart(path, table.column_names)
        large = _too_large(path, table)
        if large:
            table = _with_large(table, _read(path, delimiter, large))
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise_shortage(path)
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, os.strerror(error.errno), path) from error
        line = str(error).partition("\n")[0]
        raise FormatError(path, "", f"cannot be read: {line}") from None
    return table


def require_apart(path: str, names: Sequence[str]) -> None:
    """Refuse columns of one name."""
    again = [name for name, count in Counter(names).items() if count > 1]
    if again:
        raise FormatError(path, repr(again[0]), "is the name of two columns")


def _read(path: str, delimiter: str, texts: Sequence[str] = ()) -> Any:
    """All columns; or those that are given, as texts."""
    arrow = needed("pyarrow", "tables", "a table")
    csv = needed("pyarrow.csv", "tables", "a CSV file")
    size = max(
        1 << 20, min(os.path.getsize(path) + 1, 1 << 30)
    )  # Arrow infers the types from one block
    nulls = [text for text in csv.ConvertOptions().null_values if text.lower() not in _NAN]
    with reopened(path) as source:
        return csv.read_csv(
            source,
            read_options=csv.ReadOptions(block_size=size),
            parse_options=csv.ParseOptions(delimiter=delimiter),
            convert_options=csv.ConvertOptions(
                null_values=nulls,
                include_columns=list(texts),
                column_types={name: arrow.string() for name in texts},
                strings_can_be_null=bool(texts),
            ),
        )


def _too_large(path: str, table: Any) -> list[str]:
    """Columns of floats that may be integers above the range of int64."""
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
    """Columns as integers where all of their texts are such."""
    arrow = needed("pyarrow", "tables", "a table")
    columns = dict(zip(table.column_names, table.columns))
    for name, chunked in zip(texts.column_names, texts.columns):
        try:
            columns[name] = chunked.cast(arrow.uint64())
        except arrow.ArrowInvalid:  # some are not integers
            continue
    return arrow.table(columns)
