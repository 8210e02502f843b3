"""Columns of CSV and Parquet files as arrays, each with a mask of its values."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from ..._errors import Damage, FormatError, needed
from ..._file_access import Limit
from . import csv as _csv
from .clock import flat, holds_stamp, may_be_clock
from .layout import Layout
from .parquet import (
    holds_numbers,
    is_parquet,
    numbers_of,
    present_in,
    read_table,
    schema_and_rows,
    zero_filled,
)
from .time_columns import row_of

_ROWS = 1 << 13  # that are stacked at once


@dataclass(frozen=True)
class Column:
    """A numeric column, or one element of the lists in it."""

    name: str  # name of the column
    channel: str  # "pose[0]" for the column "pose"
    parts: tuple[Any, ...]  # the values, mostly in Arrow's memory: each [n]; for lists [n,D]
    mask: Any = None  # rows that have a value; None: all of them
    unit: str | None = None  # for dates and durations
    is_date: bool = False

    @property
    def dtype(self) -> Any:
        return self.parts[0].dtype

    def channels(self) -> dict[str, Column]:
        """Return channels by name: itself, or one for each element of the lists."""
        if self.parts[0].ndim == 1:
            return {self.name: self}
        names = [f"{self.name}[{i}]" for i in range(self.parts[0].shape[1])]
        return {
            name: dataclasses.replace(
                self, channel=name, parts=tuple(part[:, i] for part in self.parts)
            )
            for i, name in enumerate(names)
        }

    def rows(self, chosen: Any) -> Column:
        """Return some rows, chosen by a mask."""
        parts, begin = [], 0
        for part in self.parts:
            parts.append(part[chosen[begin : begin + len(part)]])
            begin += len(part)
        mask = None if self.mask is None else self.mask[chosen]
        mask = None if mask is None or mask.all() else mask
        return dataclasses.replace(self, parts=tuple(parts), mask=mask)


def stacked(columns: Sequence[Column]) -> Any:
    """Stack the rows of columns with the same mask to [n,D], in a dtype that holds all.

    A few thousand rows at a time stay in the processor's cache.
    """
    import numpy as np

    mask = columns[0].mask
    rows = sum(map(len, columns[0].parts))
    count = rows if mask is None else int(mask.sum())
    made = np.empty((count, len(columns)), np.result_type(*{c.dtype for c in columns}))
    at = begin = 0
    places = [(0, 0)] * len(columns)  # of each column: its part, and the row in it
    while begin < rows:
        left = [len(c.parts[part]) - row for c, (part, row) in zip(columns, places)]
        size = min(_ROWS, *left)
        own = None if mask is None else mask[begin : begin + size]
        end = at + (size if own is None else int(own.sum()))
        for i, (column, (part, row)) in enumerate(zip(columns, places)):
            values = column.parts[part][row : row + size]
            made[at:end, i] = values if own is None else values[own]
            places[i] = (part, row + size) if size < left[i] else (part + 1, 0)
        begin, at = begin + size, end
    return made


def is_table(path: str) -> bool:
    if path.endswith((".json", ".jsonl", ".md", ".py", ".html")):
        return False
    return is_parquet(path) or _csv.layout(path) is not None


def is_surely_table(path: str) -> bool:
    """Whether a file is a table that makes its folder one: with a header, or with sure times."""
    if not is_table(path):
        return False
    found = None if is_parquet(path) else _csv.layout(path)
    if found is None or found.names is None or path.lower().endswith((".csv", ".tsv")):
        return True
    return found.has_header and any(row_of(name) is not None for name in found.names)


def fault_of(path: str) -> tuple[str, bool]:
    """Return why a file with a table's suffix cannot be read, and whether it is damaged."""
    if path.lower().endswith((".parquet", ".pq")):
        return "does not begin like a Parquet file", True
    return _csv.fault_of(path)


# ---- reading ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Opened:
    """The columns of a file that may be numbers or times."""

    table: Any  # an Arrow table
    units: dict[str, str]  # by column, from a line below the header, or by the format
    index: tuple[str, ...]  # columns of pandas' index
    times: tuple[str, ...]  # columns without numbers that may be times
    layout: Layout | None = None  # of a text


def opened(
    path: str, limit: Limit, more: Collection[str] = (), damage: Damage | None = None
) -> Opened:
    """Read a file: of a text all columns, of a Parquet file those that may be used.

    ``more`` are text columns that may be the times, for any name.
    """
    if not is_parquet(path):
        table, layout = _csv.read_csv(path, limit, damage)
        units = dict(zip(table.column_names, layout.units or ()))
        return Opened(table, units, (), (), layout)
    schema, _ = schema_and_rows(path, limit)
    _csv.require_apart(path, schema.names)
    index = index_of(schema)
    times = tuple(
        field.name
        for field in schema
        if unread(field.type)
        and (field.name in more or may_be_clock(field.name, field.type, index))
    )
    names = [field.name for field in schema if not unread(field.type) or field.name in times]
    return Opened(flat(read_table(path, names, (), limit)), {}, index, times)


def index_of(schema: Any) -> tuple[str, ...]:
    """Return the columns of a Parquet file that pandas wrote as its index."""
    try:
        names = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return ()
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list) else ()


def unread(kind: Any) -> str | None:
    """Return why a column of some type has no numbers; None if it may have some."""
    arrow = needed("pyarrow", "tables", "a table")
    types, inner = arrow.types, kind
    while types.is_list(inner) or types.is_fixed_size_list(inner):
        inner = inner.value_type
    if holds_numbers(inner):
        return None
    if inner is not kind:
        return f"has type {kind}: {inner} is not numeric"
    if types.is_timestamp(kind) or types.is_duration(kind) or holds_stamp(kind):
        return None
    if types.is_struct(kind):
        fields = ", ".join(kind.field(i).name for i in range(kind.num_fields))
        return f"is a struct ({fields}), which is not read"
    return "has no values" if types.is_null(kind) else f"has type {kind}, which is not read"


def numbers(path: str, name: str, chunked: Any) -> Column | str:
    """Return a column as numbers, or the reason why it is skipped."""
    import numpy as np

    arrow = needed("pyarrow", "tables", "a table")
    kind, unit = chunked.type, None
    reason = unread(kind)
    if reason is not None:
        return reason
    is_date = arrow.types.is_timestamp(kind)
    if is_date or arrow.types.is_duration(kind):
        unit = kind.unit
        chunked = chunked.cast(arrow.int64())
        kind = chunked.type
    if arrow.types.is_list(kind) or arrow.types.is_fixed_size_list(kind):
        try:
            return Column(name, name, (numbers_of(path, name, chunked),))
        except FormatError as error:
            return f"has type {kind}: {error.reason}"
    # Arrow's to_numpy would import pandas, which swallows Ctrl-C.
    mask = present_in(chunked) if chunked.null_count else None
    parts = [part for part in chunked.chunks if len(part)] or [arrow.nulls(0, kind)]
    pieces = [arrow.chunked_array([part]) for part in parts]
    values = tuple(numbers_of(path, name, zero_filled(piece)) for piece in pieces)
    if not name:
        whole = np.concatenate(values)
        if np.array_equal(whole, np.arange(len(whole))):
            return "numbers the rows, and has no name"
    return Column(name, name, values, mask, unit, is_date)
