"""Columns of texts that are numbers but for some: a mark or a unit among them makes all texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ._errors import FormatError, needed
from ._parquet import batches_of, column, read_table

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
        more = f", the first of {self.count:,} such texts" if self.count > 1 else ""
        return f"is {shown!r} among numbers{more}"


def odd_text_of(path: str, table: Any, name: str) -> OddText | None:
    """Of a column of texts; None where most are no numbers, and of other columns."""
    import numpy as np

    fits = _are_numbers(path, table, name)
    if fits is None or fits.all():
        return None
    row = int(np.argmin(fits))
    return OddText(name, row, table[name][row].as_py(), int((~fits).sum()))


def odd_texts_in(path: str, empty: Any) -> list[OddText]:
    """Of a Parquet file with such columns. Those whose first rows are no numbers are not read."""
    found = []
    for name in filter(lambda name: _is_text(empty, name), empty.column_names):
        try:
            first = next(batches_of(path, [name], _LOOK), None)
            if first is not None and _are_numbers(path, first, name) is not None:
                found.append(odd_text_of(path, read_table(path, [name]), name))
        except FormatError:  # of a column that is left out
            continue
    return [odd for odd in found if odd is not None]


def _is_text(table: Any, name: str) -> bool:
    arrow = needed("pyarrow", "tables", "a table")
    kind = table.schema.field(name).type
    return bool(arrow.types.is_string(kind) or arrow.types.is_large_string(kind))


def _are_numbers(path: str, table: Any, name: str) -> Any:
    """Which texts of a column are numbers, or nothing; None unless most are numbers."""
    if not _is_text(table, name):
        return None
    arrow = needed("pyarrow", "tables", "a table")
    compute = needed("pyarrow.compute", "tables", "a table")
    texts = table[name]
    told = compute.match_substring_regex(texts, _NUMBER, ignore_case=True).fill_null(True)
    fits = column(path, arrow.table({name: told}), name)
    count = int(fits.sum()) - texts.null_count
    return fits if count > len(texts) - texts.null_count - count else None
