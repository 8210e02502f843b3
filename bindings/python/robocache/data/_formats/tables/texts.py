"""Text columns: numbers mixed with marks or units, dates and durations."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from ..._errors import FormatError, needed
from ..._file_access import Limit
from .parquet import batches_of, numbers_of, present_in, read_table

_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2}):(?P<second>\d{2})(?:[.,](?P<rest>\d{1,9})\d*)?"
_DATE = (
    r"^\s*(?P<year>\d{4})(?:[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})"
    r"|(?P<month2>\d{2})(?P<day2>\d{2}))"
)
_ZONE = r"\s*(?P<zone>Z|z|UTC|GMT|GPST|[+-]\d{2}(?::?\d{2})?)?\s*$"
_COMPACT = r"(?P<hour>\d{2})(?P<minute>\d{2})(?P<second>\d{2})(?:[.,](?P<rest>\d{1,9})\d*)?"
_FORMS = {
    "date": (
        _DATE + r"(?:[ T_]+)" + _CLOCK + _ZONE,
        _DATE + r"(?:[ T_]+)" + _COMPACT + _ZONE,
    ),
    "time of day": (r"^\s*" + _CLOCK + r"\s*(?P<half>[AaPp])?(?:\.?[Mm]\.?)?\s*$",),
    "day": (_DATE + r"\s*$",),
    "length": (r"^\s*(?P<days>-?\d{1,6}) days?,?\s+\+?" + _CLOCK + r"\s*$",),
}
_DAY = 86_400 * 10**9  # ns
_MOST_DAYS = 106_750  # the range of int64 in ns
_ROWS = 1 << 16  # that are parsed at once
_FIRST_TEXTS = 1000  # texts that decide on the form of a column


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is text, also in a dictionary."""
    arrow = needed("pyarrow", "tables", "a table")
    if arrow.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(arrow.types.is_string(kind) or arrow.types.is_large_string(kind))


def form_of(path: str, texts: Any) -> str | None:
    """Return the form of most of the first texts: "date", "time of day", "day", "length"."""
    first = _plain(texts.slice(0, _FIRST_TEXTS))
    if len(first) == first.null_count:
        return None
    for form in _FORMS:
        _, there = parsed(path, form, first)
        if there.sum() * 2 > len(first) - first.null_count:
            return form
    return None


def parsed(path: str, form: str, texts: Any) -> tuple[Any, Any]:
    """Return texts of a form as ns (also days), and a mask of the texts that match."""
    import numpy as np

    arrow = needed("pyarrow", "tables", "a table")
    total = np.zeros(len(texts), np.int64)
    there = np.zeros(len(texts), bool)
    chunks = texts.chunks if isinstance(texts, arrow.ChunkedArray) else [texts]
    at = 0
    for chunk in chunks:
        for begin in range(0, len(chunk), _ROWS):
            part = _plain(chunk.slice(begin, _ROWS))
            end = at + len(part)
            total[at:end], there[at:end] = _alike(form, part) or _searched(path, form, part)
            at = end
    return total, there


def _searched(path: str, form: str, texts: Any) -> tuple[Any, Any]:
    """Parse texts by the patterns of a form."""
    import numpy as np

    compute = needed("pyarrow.compute", "tables", "a table")
    total = np.zeros(len(texts), np.int64)
    there = np.zeros(len(texts), bool)
    for pattern in _FORMS[form]:
        if there.all() and len(there):
            break
        found = compute.extract_regex(texts, pattern=pattern)
        ns, valid = _ticks(_Found(path, found))
        valid &= present_in(found)
        total = np.where(valid & ~there, ns, total)
        there |= valid
    return total, there


def _alike(form: str, texts: Any) -> tuple[Any, Any] | None:
    """Parse texts that differ only in their digits; None if they differ more.

    They match a pattern at the same places, which takes a tenth of the time of a search.
    """
    import numpy as np

    arrow = needed("pyarrow", "tables", "a table")
    if len(texts) == 0 or texts.null_count or not arrow.types.is_string(texts.type):
        return None
    first = texts[0].as_py()
    size = len(first)
    begin, count = texts.offset, len(texts)
    offsets = np.frombuffer(texts.buffers()[1], np.int32, count + 1, 4 * begin)
    if not first.isascii() or size == 0 or (np.diff(offsets) != size).any():
        return None
    found = next(filter(None, (re.match(pattern, first) for pattern in _FORMS[form])), None)
    if found is None:
        return None
    octets = np.frombuffer(texts.buffers()[2], np.uint8, count * size, int(offsets[0]))
    cells = np.ascontiguousarray(octets.reshape(count, size).T)
    zone = found.span("zone") if "zone" in found.re.groupindex else (-1, -1)
    for place, (char, own) in enumerate(zip(first, cells)):
        if char.isdigit() and not zone[0] <= place < zone[1]:
            if own.min() < ord("0") or own.max() > ord("9"):
                return None
        elif (own != ord(char)).any():
            return None
    return _ticks(_Alike(found, cells))


class _Found:
    """The parts of texts that a pattern found."""

    def __init__(self, path: str, found: Any) -> None:
        self.path, self.found = path, found
        self.names = {field.name for field in found.type}

    def _part(self, name: str) -> Any:
        """Return a part as text; "" where it is missing."""
        compute = needed("pyarrow.compute", "tables", "a table")
        return compute.fill_null(compute.struct_field(self.found, name), "")

    def _numbers(self, name: str, array: Any) -> Any:
        return numbers_of(self.path, name, _chunked(array))

    def number(self, name: str, default: int = 0) -> Any:
        import numpy as np

        arrow = needed("pyarrow", "tables", "a table")
        compute = needed("pyarrow.compute", "tables", "a table")
        if name not in self.names:
            return np.full(len(self.found), default, np.int64)
        texts = self._part(name)
        texts = compute.if_else(compute.equal(texts, ""), str(default), texts)
        return self._numbers(name, texts.cast(arrow.int64()))

    def fraction(self) -> Any:
        """Return the digits behind the seconds, in ns."""
        arrow = needed("pyarrow", "tables", "a table")
        compute = needed("pyarrow.compute", "tables", "a table")
        digits = compute.utf8_slice_codeunits(
            compute.binary_join_element_wise(self._part("rest"), "000000000", ""), 0, 9
        )
        return self._numbers("rest", digits.cast(arrow.int64()))

    def half(self) -> tuple[Any, Any]:
        """Return whether texts say AM or PM, and whether it is PM."""
        compute = needed("pyarrow.compute", "tables", "a table")
        half = self._part("half")
        is_pm = compute.match_substring_regex(half, "[Pp]")
        return self._numbers("half", compute.not_equal(half, "")), self._numbers("half", is_pm)

    def offsets(self) -> Any:
        return _offsets(self.path, self._part("zone"))


class _Alike:
    """The parts of texts that are at the same places in all of them."""

    def __init__(self, found: re.Match[str], cells: Any) -> None:
        self.found, self.cells = found, cells  # of the first text; [size,n]
        self.names = set(found.re.groupindex)

    def _digits(self, begin: int, end: int) -> Any:
        import numpy as np

        made = np.zeros(self.cells.shape[1], np.int64)
        for own in self.cells[begin:end]:
            made *= 10
            made += own - ord("0")
        return made

    def number(self, name: str, default: int = 0) -> Any:
        import numpy as np

        if name not in self.names or not self.found[name]:
            return np.full(self.cells.shape[1], default, np.int64)
        begin, end = self.found.span(name)
        if self.found[name].startswith("-"):
            return -self._digits(begin + 1, end)
        return self._digits(begin, end)

    def fraction(self) -> Any:
        if not self.found["rest"]:
            return self.number("")
        begin, end = self.found.span("rest")
        return self._digits(begin, end) * 10 ** (9 - (end - begin))

    def half(self) -> tuple[Any, Any]:
        text = self.found["half"] or ""
        return self.number("", bool(text)), self.number("", text.upper() == "P")

    def offsets(self) -> Any:
        return _ahead(self.found["zone"])


def _ticks(parts: _Found | _Alike) -> tuple[Any, Any]:
    """Return the nanoseconds of the parts of texts, and a mask of those within range."""
    import numpy as np

    hour, minute, second = map(parts.number, ("hour", "minute", "second"))
    valid = (hour < 24) & (minute < 60) & (second <= 60)
    if "half" in parts.names:
        has_half, is_pm = parts.half()
        hour = np.where(has_half, hour % 12 + 12 * is_pm, hour)
    total = ((hour * 60 + minute) * 60 + second) * 10**9
    if "rest" in parts.names:
        total = total + parts.fraction()
    if "days" in parts.names:
        days = parts.number("days")
        total, valid = total + days * _DAY, valid & (np.abs(days) <= _MOST_DAYS)
    if "year" in parts.names:
        days, good = _days(
            parts.number("year", 1970),
            parts.number("month") + parts.number("month2"),
            parts.number("day") + parts.number("day2"),
        )
        total, valid = total + days * _DAY, valid & good
    if "zone" in parts.names:
        total = total - parts.offsets()
    return total, valid


def _days(year: Any, month: Any, day: Any) -> tuple[Any, Any]:
    """Return days since 1970, and a mask of the days that exist."""
    import numpy as np

    good = (month >= 1) & (month <= 12) & (day >= 1) & (year >= 1678) & (year <= 2261)
    months = (np.where(good, year, 1970) - 1970) * 12 + np.where(good, month, 1) - 1
    first = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
    length = (months + 1).astype("M8[M]").astype("M8[D]").astype(np.int64) - first
    return first + np.where(good, day, 1) - 1, good & (day <= length)


def _offsets(path: str, zones: Any) -> Any:
    """Return how many ns each time zone is ahead of UTC."""
    import numpy as np

    coded = zones.dictionary_encode() if not hasattr(zones, "chunks") else None
    if coded is None:
        coded = zones.combine_chunks().dictionary_encode()
    known = [_ahead(zone) for zone in coded.dictionary.to_pylist()]
    places = numbers_of(path, "zone", _chunked(coded.indices))
    return np.array(known or [0], np.int64)[places] if len(places) else np.zeros(0, np.int64)


def _ahead(zone: str | None) -> int:
    """Return how many ns a time zone is ahead of UTC."""
    if not zone or zone[0] not in "+-":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return (-minutes if zone[0] == "-" else minutes) * 60 * 10**9


def over_midnight(times: Any) -> Any:
    """Make times of day continue after midnight, in ns."""
    import numpy as np

    if len(times) < 2:
        return times
    return times + np.concatenate([[0], np.cumsum(np.diff(times) < -_DAY // 2)]) * _DAY


def _plain(texts: Any) -> Any:
    """Combine chunks and dictionaries into one array of texts."""
    arrow = needed("pyarrow", "tables", "a table")
    if isinstance(texts, arrow.ChunkedArray):
        if arrow.types.is_dictionary(texts.type):
            texts = texts.cast(texts.type.value_type)
        texts = texts.combine_chunks() if texts.num_chunks != 1 else texts.chunk(0)
        if isinstance(texts, arrow.ChunkedArray):
            texts = arrow.array([], arrow.string())
    elif arrow.types.is_dictionary(texts.type):
        texts = texts.cast(texts.type.value_type)
    return texts


def _chunked(array: Any) -> Any:
    arrow = needed("pyarrow", "tables", "a table")
    return arrow.chunked_array([array])


NUMBER = r"^\s*[+-]?(\d+\.?\d*(e[+-]?\d+)?|\.\d+(e[+-]?\d+)?|nan|inf|infinity)\s*$"
_LOOK = 1024  # rows of a Parquet file that are read to decide on a text column
_SHOWN = 40  # characters of a text


@dataclass(frozen=True)
class OddText:
    """The first text among the numbers of a column, and the number of such texts."""

    column: str
    row: int
    text: str
    count: int

    @property
    def place(self) -> str:
        return f"{self.column}, row {self.row}"

    @property
    def description(self) -> str:
        shown = self.text if len(self.text) <= _SHOWN else self.text[: _SHOWN - 3] + "..."
        more = f" ({self.count:,} rows like that)" if self.count > 1 else ""
        head = f"column {self.column} is skipped: row {self.row} is"
        return f'{head} "{shown}", not a number{more}'


def odd_text_of(path: str, name: str, texts: Any) -> OddText | None:
    """Return the odd texts of a text column; None if most texts are not numbers."""
    import numpy as np

    fits = _are_numbers(path, name, texts)
    if fits is None or fits.all():
        return None
    row = int(np.argmin(fits))
    return OddText(name, row, texts[row].as_py(), int((~fits).sum()))


def odd_texts_in(path: str, schema: Any, limit: Limit) -> list[OddText]:
    """Find odd texts in a Parquet file. Columns whose first rows are not numbers are not read."""
    names = [field.name for field in schema if _is_text(field.type)]
    found = []
    for name, first in first_texts(path, names, limit).items():
        if _are_numbers(path, name, first) is not None:
            try:
                whole = read_table(path, [name], (), limit)[name]
            except FormatError:  # the column is skipped anyway
                continue
            found.append(odd_text_of(path, name, whole))
    return [odd for odd in found if odd is not None]


def first_texts(path: str, names: list[str], limit: Limit) -> dict[str, Any]:
    """Return the first texts of columns, by name, for the columns that can be read."""
    if not names:
        return {}
    try:
        first = next(batches_of(path, names, _LOOK, limit), None)
    except FormatError:  # one column fails: try each half
        if len(names) == 1:
            return {}
        middle = len(names) // 2
        found = first_texts(path, names[:middle], limit)
        return found | first_texts(path, names[middle:], limit)
    return {} if first is None else dict(zip(first.column_names, first.columns))


def _is_text(kind: Any) -> bool:
    arrow = needed("pyarrow", "tables", "a table")
    if arrow.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(arrow.types.is_string(kind) or arrow.types.is_large_string(kind))


def _are_numbers(path: str, name: str, texts: Any) -> Any:
    """Return a mask of texts that are numbers or null; None unless most are numbers."""
    import numpy as np

    if not _is_text(texts.type):
        return None
    parts = [_matches(path, name, chunk) for chunk in texts.chunks]
    fits = np.concatenate([np.zeros(0, bool), *parts])
    count = int(fits.sum()) - texts.null_count
    return fits if count > len(texts) - texts.null_count - count else None


def _matches(path: str, name: str, texts: Any) -> Any:
    arrow = needed("pyarrow", "tables", "a table")
    compute = needed("pyarrow.compute", "tables", "a table")
    if not arrow.types.is_dictionary(texts.type):
        matched = compute.match_substring_regex(texts, NUMBER, ignore_case=True).fill_null(True)
        return numbers_of(path, name, arrow.chunked_array([matched]))
    if len(texts.dictionary) == 0:  # all are null
        return ~present_in(texts)
    known = _matches(path, name, texts.dictionary)
    places = numbers_of(path, name, arrow.chunked_array([texts.indices.fill_null(0)]))
    return known[places] | ~present_in(texts)
