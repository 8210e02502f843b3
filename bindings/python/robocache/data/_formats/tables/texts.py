"""Columns of texts that are numbers but for some: a mark or a unit among them makes all texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._errors import FormatError, needed
from ..._file_access import Limit
from .parquet import batches_of, numbers_of, present_in, read_table

_NUMBER = r"^\s*[+-]?(\d+\.?\d*(e[+-]?\d+)?|\.\d+(e[+-]?\d+)?|nan|inf|infinity)\s*$"
_LOOK = 1024  # rows of a Parquet file, whose columns of texts are mostly no numbers
_SHOWN = 40  # characters of a text


@dataclass(frozen=True)
class OddText:
    """The first text among the numbers of a column, and how many there are."""

    column: str
    row: int
    text: str
    count: int

    @property
    def place(self) -> str:
        return f"{self.column}, row {self.row}"

    @property
    def what(self) -> str:
        shown = self.text if len(self.text) <= _SHOWN else self.text[: _SHOWN - 3] + "..."
        more = f" ({self.count:,} rows like that)" if self.count > 1 else ""
        head = f"column {self.column} is left out: row {self.row} is"
        return f'{head} "{shown}", not a number{more}'


def odd_text_of(path: str, name: str, texts: Any) -> OddText | None:
    """Of a column of texts; None where most are no numbers, and of other columns."""
    import numpy as np

    fits = _are_numbers(path, name, texts)
    if fits is None or fits.all():
        return None
    row = int(np.argmin(fits))
    return OddText(name, row, texts[row].as_py(), int((~fits).sum()))


def odd_texts_in(path: str, schema: Any, limit: Limit) -> list[OddText]:
    """Of a Parquet file with such columns. Those whose first rows are no numbers are not read."""
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
    """The first texts of columns, by name, of those that can be read."""
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
    """Which texts of a column are numbers, or nothing; None unless most are numbers."""
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
        told = compute.match_substring_regex(texts, _NUMBER, ignore_case=True).fill_null(True)
        return numbers_of(path, name, arrow.chunked_array([told]))
    if len(texts.dictionary) == 0:  # all are null
        return ~present_in(texts)
    known = _matches(path, name, texts.dictionary)
    places = numbers_of(path, name, arrow.chunked_array([texts.indices.fill_null(0)]))
    return known[places] | ~present_in(texts)
