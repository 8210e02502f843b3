"""Columns of CSV and Parquet files as arrays, each with the rows in which it has a value."""

from __future__ import annotations

import dataclasses
import os
from dataclasses import dataclass
from typing import Any

from ._errors import FormatError, needed
from ._open import head
from ._parquet import column, present_in

_PARQUET = b"PAR1"
_LOOK = 1 << 14  # bytes that tell whether a text is a table
_DELIMITERS = ",;\t"
_LARGEST = 2**63  # from here on Arrow takes integers of a text for floats


@dataclass(frozen=True)
class Column:
    """A column of numbers, or one of the lists in it."""

    name: str  # of the column
    channel: str  # "pose[0]" of the column "pose"
    values: Any  # [n]; of lists [n,D]
    mask: Any  # [n], where there is a value
    unit: str | None = None  # of dates and lengths of time
    is_date: bool = False

    def channels(self) -> dict[str, Column]:
        """By name: itself, or one for each place in the lists."""
        if self.values.ndim == 1:
            return {self.name: self}
        parts = {f"{self.name}[{i}]": self.values[:, i] for i in range(self.values.shape[1])}
        return {
            name: dataclasses.replace(self, channel=name, values=part)
            for name, part in parts.items()
        }

    def has_value(self) -> Any:
        """Where there is one, which is not NaN."""
        import numpy as np

        return self.mask & ~np.isnan(self.values) if self.values.dtype.kind == "f" else self.mask

    def rows(self, chosen: Any) -> Column:
        return dataclasses.replace(self, values=self.values[chosen], mask=self.mask[chosen])


def is_parquet(path: str) -> bool:
    return head(path, len(_PARQUET)).startswith(_PARQUET)


def is_table(path: str) -> bool:
    if path.endswith((".json", ".jsonl", ".md", ".py", ".html")):
        return False
    start = head(path, _LOOK)
    return start.startswith(_PARQUET) or _delimiter(start) is not None


def fault_of(path: str) -> tuple[str, bool]:
    """Why a file with the suffix of a table is none, and whether that is damage."""
    if path.lower().endswith((".parquet", ".pq")):
        return "does not begin as a Parquet file does", True
    start = head(path, _LOOK)
    if not start.strip():
        return "is empty", True
    try:
        start[: start.rfind(b"\n") + 1].decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return f"is not UTF-8 at byte {error.start}: save it in that encoding", True
    if b"\n" not in start:
        return "has no end of a line: it is cut off, or no table", True
    if len(start.split()) and start.rstrip().count(b"\n") == 0:
        return "has a header and no rows", False
    return "is a text without columns of numbers below a header", False


def _delimiter(start: bytes) -> str | None:
    """What separates the columns of a text; None of what is no table."""
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
        if sum(map(_is_number, second)) >= 1 and not any(map(_is_number, filter(None, heads))):
            return delimiter
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# ---- reading ------------------------------------------------------------------------------------


def opened(path: str) -> Any:
    """An Arrow table."""
    arrow = needed("pyarrow", "tables", "a table")
    try:
        if is_parquet(path):
            return needed("pyarrow.parquet", "tables", "a Parquet file").read_table(path)
        table = _read_csv(path)
        for name in _too_large(path, table):
            try:
                whole = _read_csv(path, include_columns=[name], column_types={name: arrow.uint64()})
            except arrow.ArrowException:  # some are no integers
                continue
            table = table.set_column(table.column_names.index(name), name, whole[name])
        return table
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        line = str(error).partition("\n")[0]
        raise FormatError(path, "", f"cannot be read: {line}") from None


def _read_csv(path: str, **options: Any) -> Any:
    csv = needed("pyarrow.csv", "tables", "a CSV file")
    size = max(1 << 20, min(os.path.getsize(path) + 1, 1 << 30))  # one block tells the kinds
    nulls = [text for text in csv.ConvertOptions().null_values if text.lower() not in _NAN]
    return csv.read_csv(
        path,
        read_options=csv.ReadOptions(block_size=size),
        parse_options=csv.ParseOptions(delimiter=_delimiter(head(path, _LOOK)) or ","),
        convert_options=csv.ConvertOptions(null_values=nulls, **options),
    )


_NAN = ("nan", "-nan")  # are values, which nulls are not


def _too_large(path: str, table: Any) -> list[str]:
    """Columns of floats that may be integers above those of int64."""
    import numpy as np

    arrow = needed("pyarrow", "tables", "a table")
    found = []
    for name in table.column_names:
        if table.column_names.count(name) == 1 and arrow.types.is_float64(table[name].type):
            filled = table[name].fill_null(0.0)
            values = column(path, table.select([]).append_column(name, filled), name)
            if len(values) and _LARGEST <= values.max() <= 2 * _LARGEST and values.min() >= 0:
                if (values == np.floor(values)).all():
                    found.append(name)
    return found


def numbers(path: str, table: Any, name: str) -> Column | str:
    """A column as numbers, where it has some, and else the reason why it is left out."""
    import numpy as np

    arrow = needed("pyarrow", "tables", "a table")
    chunked, unit = table[name], None
    kind = chunked.type
    is_date = arrow.types.is_timestamp(kind)
    if is_date or arrow.types.is_duration(kind):
        unit = kind.unit
        chunked = chunked.cast(arrow.int64())
        kind = chunked.type
    if arrow.types.is_null(kind):
        return "has no values"
    if arrow.types.is_list(kind) or arrow.types.is_fixed_size_list(kind):
        try:
            return Column(name, name, column(path, table, name), np.ones(table.num_rows, bool))
        except FormatError as error:
            return f"is of {kind}: {error.reason}"
    if not (
        arrow.types.is_integer(kind)
        or arrow.types.is_floating(kind)
        or arrow.types.is_boolean(kind)
    ):
        return f"is of {kind}"
    mask = present_in(chunked)  # NumPy of Arrow would import pandas, which swallows Ctrl-C
    if chunked.null_count:
        zero = arrow.scalar(False if arrow.types.is_boolean(kind) else 0, kind)
        chunked = chunked.fill_null(zero)
    values = column(path, table.set_column(table.column_names.index(name), name, chunked), name)
    if not name and np.array_equal(values, np.arange(len(values))):
        return "numbers of rows, without a name"
    return Column(name, name, values, mask, unit, is_date)
