"""How the lines of a text form a table: encoding, delimiter, header, units, decimal marks."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from .time_columns import row_of

DELIMITERS = ",;\t"
BLANKS = " "  # the delimiter of columns separated by runs of spaces and tabs
LOOK = 1 << 14  # bytes; most headers are shorter
_LINES = 64  # of a text, searched for a header
_BELOW = 4  # rows below a header that are compared with it
_FEWEST = 5  # rows of a table without a header: a matrix has fewer
_MOSTLY = 0.9  # of the first rows are alike
_COMMENTS = ("#", "%", "//")
_COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_POINT_NUMBER = re.compile(r"[+-]?\d*\.\d+(?:[eE][+-]?\d+)?")
_UNIT = re.compile(r"[^\W\d_][\w°/^*.·²³ -]{0,15}|[°%-]\w?")
_STAMP = re.compile(r"\d{1,4}([-/:.])\d{1,2}\1\d{1,2}")  # the begin of a date or a time of day
_KNOWN_UNITS = set(
    "s sec seconds ms us ns m mm cm km rad deg degrees ° m/s m/s^2 m/s2 m/s² rad/s deg/s °/s g hz "
    "n nm n*m n.m v a c °c degc k pa hpa kpa mbar bar % kg - t ut gauss".split()
)
TUM_NAMES = ("timestamp", "tx", "ty", "tz", "qx", "qy", "qz", "qw")
_TUM_UNITS = ("s", "m", "m", "m", "", "", "", "")
_LATEST = 1e11  # s: later times are in another unit
_UNIT_LENGTH = 0.01  # how far a quaternion's length may be from 1


@dataclass(frozen=True)
class Layout:
    """How the lines of a text form a table."""

    delimiter: str
    units: tuple[str, ...] | None = None  # by column
    names: tuple[str, ...] | None = None  # None: the first line has them, and rows follow
    first: int = 0  # lines before the rows, if there are names
    encoding: str = "utf-8"
    decimal: str = "."
    has_header: bool = True
    comments: str = ""  # lines that begin with this mark are skipped
    floats: tuple[str, ...] = ()  # columns that hold numbers, whole ones too
    above: tuple[int, str] | None = None  # lines above the header, and the first of them
    rows: tuple[tuple[str, ...], ...] = ()  # the first rows, if there is no header


def layout_of(start: bytes) -> Layout | None:
    """Return the layout of a text by its first bytes; None if it is not a table."""
    plain = _plain(start)
    if plain is not None:
        return plain
    encoding = encoding_of(start)
    text = None if encoding is None else decoded(start, encoding)
    if encoding is None or text is None or "\0" in text:
        return None
    lines = text.split("\n")
    if len(start) >= LOOK:  # the last line may be incomplete
        lines = lines[:-1]
    for delimiter in (*DELIMITERS, BLANKS):
        found = _layout(lines[:_LINES], delimiter, encoding)
        if found is not None:
            return found
    return None


def encoding_of(start: bytes) -> str | None:
    """Return the encoding of a text; None if the bytes are not text."""
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    for first, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros = start[first:LOOK:2]
        if len(zeros) > 4 and zeros.count(0) > 0.8 * len(zeros):
            return name
    try:
        start[: start.rfind(b"\n") + 1].decode("utf-8")
        return "utf-8"
    except UnicodeDecodeError:
        pass
    if re.search(rb"[\0-\x08\x0e-\x1a\x1c-\x1f\x7f-\x9f]", start):
        return None
    return "latin-1"


def decoded(start: bytes, encoding: str) -> str | None:
    """Decode the begin of a text, which may end within a character."""
    if encoding.startswith("utf-16"):
        start = start[: len(start) // 2 * 2]
    else:
        start = start if len(start) < LOOK else start[: start.rfind(b"\n") + 1]
    try:
        text = start.decode(encoding)
    except UnicodeDecodeError as error:
        if error.start < len(start) - 4:
            return None
        text = start[: error.start].decode(encoding)
    return text.removeprefix("\ufeff")


def cells_of(line: str, delimiter: str) -> list[str]:
    """Split a line into cells without quotes and surrounding spaces."""
    if delimiter == BLANKS:
        return line.split()
    if '"' not in line:
        return [cell.strip() for cell in line.split(delimiter)]
    try:
        found = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
    except csv.Error:
        return [line]
    return [cell.strip() for cell in found]


def is_number(text: str, decimal: str = ".") -> bool:
    if decimal == "," and "," in text:
        return _COMMA_NUMBER.fullmatch(text) is not None
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def are_units(cells: Sequence[str]) -> bool:
    """Whether the cells below a header are units: short words, some of them well known."""
    words = [cell.strip("[](){} ") for cell in cells if cell]
    return (
        bool(words)
        and all(_UNIT.fullmatch(word) for word in words)
        and any(word.lower() in _KNOWN_UNITS for word in words)
    )


def _plain(start: bytes) -> Layout | None:
    """Return the layout if the first two lines are a header and numbers, in UTF-8."""
    texts = _utf8(start.splitlines()[:4]) if b"\n" in start[:-1] else []
    for delimiter in DELIMITERS:
        rows = [cells_of(text, delimiter) for text in texts or () if text]
        if len(rows) < 2 or len(rows[0]) < 2 or len(rows[0]) != len(rows[1]):
            continue
        heads, second = rows[0], rows[1]
        if "\0" in "".join(heads):  # an archive; only the end of a table may have zeros
            continue
        if any(map(is_number, filter(None, heads))):
            continue
        if delimiter != "," and _decimal(rows[1:]) == ",":
            continue
        if any(map(is_number, second)):
            return Layout(delimiter)
        third = rows[2] if len(rows) > 2 and len(rows[2]) == len(heads) else []
        is_comment = heads[0].startswith("#") and not second[0].startswith("#")
        if any(map(is_number, third)) and are_units(second) and not is_comment:
            return Layout(delimiter, tuple(second))
        if any(map(is_number, third)) and any(map(_STAMP.match, second)):
            return Layout(delimiter)  # the first row has no numbers except its time
    return None


def _utf8(lines: Sequence[bytes]) -> list[str] | None:
    try:
        return [line.decode("utf-8-sig") for line in lines]
    except UnicodeDecodeError:
        return None


# ---- texts with other lines above, other marks, or no header ------------------------------------


def _layout(lines: Sequence[str], delimiter: str, encoding: str) -> Layout | None:
    rows: list[tuple[int, list[str]]] = []  # number of the line, cells
    comments: list[tuple[int, str]] = []
    for number, line in enumerate(lines):
        text = line.strip()
        if text.startswith(_COMMENTS):
            comments.append((number, text))
        elif text:
            rows.append((number, cells_of(text, delimiter)))
    if not rows or (
        delimiter == BLANKS and any('"' in text for _, cells in rows for text in cells)
    ):
        return None
    decimal = "." if delimiter == "," else _decimal([cells for _, cells in rows])
    if _all_numbers(rows[0][1], decimal):
        return _without_header(rows, comments, delimiter, encoding, decimal)
    for place in range(len(rows) - 1):
        found = _below_header(rows, place, delimiter, encoding, decimal, "#" if comments else "")
        if found is not None:
            return found
    return None


def _decimal(rows: Sequence[Sequence[str]]) -> str:
    """Return the decimal mark of rows whose columns are not separated by commas.

    A comma before three digits may separate thousands, except behind a 0.
    """
    cells = [cell for row in rows for cell in row]
    commas = [cell for cell in cells if _COMMA_NUMBER.fullmatch(cell)]
    sure = not all(map(_THOUSANDS.fullmatch, commas))
    return "," if sure and not any(map(_POINT_NUMBER.fullmatch, cells)) else "."


def _all_numbers(cells: Sequence[str], decimal: str) -> bool:
    """Whether a row has at least two columns, and only numbers or empty cells in them."""
    return (
        len(cells) > 1
        and all(is_number(cell, decimal) for cell in cells if cell)
        and sum(map(bool, cells)) > 1
    )


def _below_header(
    rows: Sequence[tuple[int, list[str]]],
    place: int,
    delimiter: str,
    encoding: str,
    decimal: str,
    comments: str,
) -> Layout | None:
    """Return the layout if a line is the header: rows of as many cells, with numbers, follow."""
    number, heads = rows[place]
    if len(heads) < 2 or any(is_number(head, decimal) for head in heads if head):
        return None
    below, units = rows[place + 1 : place + 1 + _BELOW], None
    if len(below) > 1 and len(below[0][1]) == len(heads):
        first = below[0][1]
        if not any(is_number(cell, decimal) for cell in first if cell) and are_units(first):
            units, below = tuple(first), below[1:]
    if any(len(cells) != len(heads) for _, cells in below):
        return None
    known = [
        sum(is_number(cell, decimal) or bool(_STAMP.match(cell)) for cell in cells if cell)
        for _, cells in below
    ]
    least = len(heads) - 1 if delimiter == BLANKS else 1
    if min(known) < least or not any(is_number(c, decimal) for c in below[0][1] if c):
        return None
    if delimiter == BLANKS and (len(below) < 2 or not all(map(_may_be_name, heads))):
        return None
    named = [head for head in heads if head]
    if len(set(named)) != len(named):
        return None
    above = None if place == 0 else (place, " ".join(rows[0][1]))
    return Layout(
        delimiter, units, tuple(heads), below[0][0], encoding, decimal, True, comments, (), above
    )


def _may_be_name(text: str) -> bool:
    return any(char.isalpha() for char in text) and not text.endswith((".", ",", ":"))


def _without_header(
    rows: Sequence[tuple[int, list[str]]],
    comments: Sequence[tuple[int, str]],
    delimiter: str,
    encoding: str,
    decimal: str,
) -> Layout | None:
    """Return the layout of rows of numbers, which a comment above them may name."""
    width = len(rows[0][1])
    cells = [row for _, row in rows]
    good = [row for row in cells if len(row) == width and _all_numbers(row, decimal)]
    if good[:_FEWEST] != cells[:_FEWEST] and good != cells[:-1]:  # the last row may be truncated
        return None
    if len(good) < _MOSTLY * len(cells) - 1:  # reading the file reports single odd rows
        return None
    cells = good
    before = [text for number, text in comments if number < rows[0][0]]
    heads = _names_in(before[-1], delimiter, width) if before else None
    first = rows[0][0]
    if delimiter == BLANKS and is_tum(cells) and heads in (None, TUM_NAMES):
        units = _TUM_UNITS if abs(float(cells[0][0])) < _LATEST else None
        return Layout(
            delimiter, units, TUM_NAMES, first, encoding, decimal, True, "#", TUM_NAMES[1:]
        )
    if heads is not None:
        return Layout(delimiter, None, heads, first, encoding, decimal, True, "#")
    if len(cells) < _FEWEST:
        return None
    names = tuple(f"c{i}" for i in range(width))
    shown = tuple(map(tuple, cells[:2]))
    return Layout(delimiter, None, names, first, encoding, decimal, False, "#", (), None, shown)


def _names_in(comment: str, delimiter: str, width: int) -> tuple[str, ...] | None:
    """Return the names in a comment above the rows; None if it is another text."""
    text = comment.lstrip("#%/ \t")
    for separator in dict.fromkeys((delimiter, ",", BLANKS)):
        names = cells_of(text, separator)
        if len(names) == width and len(set(names)) == width and all(map(_may_be_name, names)):
            if any(row_of(name) is not None for name in names):
                return tuple(names)
    return None


def is_tum(rows: Sequence[Sequence[str]]) -> bool:
    """Whether rows are a time, a position and a quaternion of length 1 (x y z w).

    Up to half of the quaternions may be NaN or zero: a tracker writes them while it is lost.
    """
    if not rows or any(len(row) != len(TUM_NAMES) for row in rows):
        return False
    try:
        numbers = [[float(cell) for cell in row] for row in rows]
    except ValueError:
        return False
    ascends = all(a[0] <= b[0] for a, b in zip(numbers, numbers[1:]))
    lengths = [math.hypot(*row[4:]) for row in numbers]
    known = [length for length in lengths if length > 0]  # NaN is not
    is_seen = 2 * len(known) >= len(rows)
    return ascends and is_seen and all(abs(length - 1) <= _UNIT_LENGTH for length in known)
