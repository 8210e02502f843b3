"""Columns of CSV and Parquet files as arrays, each with the rows in which it has a value."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ..._errors import FormatError, needed
from ..._file_access import Limit
from . import csv as _csv
from .clock import flat, holds_stamp, may_be_clock
from .parquet import is_parquet, numbers_of, present_in, read_table, schema_and_rows


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

    def rows(self, chosen: Any) -> Column:
        return dataclasses.replace(self, values=self.values[chosen], mask=self.mask[chosen])


def is_table(path: str) -> bool:
    if path.endswith((".json", ".jsonl", ".md", ".py", ".html")):
        return False
    return is_parquet(path) or _csv.delimiter_of(path) is not None


def fault_of(path: str) -> tuple[str, bool]:
    """Why a file with the suffix of a table is none, and whether that is damage."""
    if path.lower().endswith((".parquet", ".pq")):
        return "does not begin as a Parquet file does", True
    return _csv.fault_of(path)


# ---- reading ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Opened:
    """The columns of a file that may be numbers or times."""

    table: Any  # of Arrow
    units: dict[str, str]  # by column, of a line below the header
    index: tuple[str, ...]  # columns that are the index of pandas
    times: tuple[str, ...]  # columns that may be times, but hold no numbers


def opened(path: str, limit: Limit, more: Collection[str] = ()) -> Opened:
    """An Arrow table: of a text all columns, of a Parquet file those that may be read.

    ``more`` are columns of texts that may be the times whatever their name is.
    """
    if not is_parquet(path):
        table, units = _csv.read_csv(path, limit)
        return Opened(table, units, (), ())
    schema, _ = schema_and_rows(path, limit)
    _csv.require_apart(path, schema.names)
    index = index_of(schema)
    times = tuple(
        of.name
        for of in schema
        if unread(of.type) and (of.name in more or may_be_clock(of.name, of.type, index))
    )
    names = [of.name for of in schema if not unread(of.type) or of.name in times]
    return Opened(flat(read_table(path, names, (), limit)), {}, index, times)


def index_of(schema: Any) -> tuple[str, ...]:
    """The columns of a Parquet file that pandas wrote as its index."""
    try:
        told = json.loads((schema.metadata or {})[b"pandas"])["index_columns"]
    except (KeyError, TypeError, ValueError, RecursionError):
        return ()
    return tuple(name for name in told if isinstance(name, str)) if isinstance(told, list) else ()


def unread(kind: Any) -> str | None:
    """Why a column of some type has no numbers; None of one that may have some."""
    arrow = needed("pyarrow", "tables", "a table")
    types, inner = arrow.types, kind
    while types.is_list(inner) or types.is_fixed_size_list(inner):
        inner = inner.value_type
    if types.is_integer(inner) or types.is_floating(inner) or types.is_boolean(inner):
        return None
    if inner is not kind:
        return f"is of {kind}: is of {inner}, expected numbers"
    if types.is_timestamp(kind) or types.is_duration(kind) or holds_stamp(kind):
        return None
    if types.is_struct(kind):
        fields = ", ".join(kind.field(i).name for i in range(kind.num_fields))
        return f"is a struct ({fields}), which is not read"
    return "has no values" if types.is_null(kind) else f"is of {kind}"


def numbers(path: str, name: str, chunked: Any) -> Column | str:
    """A column as numbers, where it has some, and else the reason why it is left out."""
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
            values = numbers_of(path, name, chunked)
        except FormatError as error:
            return f"is of {kind}: {error.reason}"
        return Column(name, name, values, np.ones(len(chunked), bool))
    mask = present_in(chunked)  # NumPy of Arrow would import pandas, which swallows Ctrl-C
    if chunked.null_count:
        zero = arrow.scalar(False if arrow.types.is_boolean(kind) else 0, kind)
        chunked = chunked.fill_null(zero)
    values = numbers_of(path, name, chunked)
    if not name and np.array_equal(values, np.arange(len(values))):
        return "numbers of rows, without a name"
    return Column(name, name, values, mask, unit, is_date)
