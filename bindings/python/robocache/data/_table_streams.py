"""The streams of one CSV or Parquet file: its columns of numbers, on its column of times."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from ._errors import FormatError, LeftOut
from ._files import Limit
from ._parquet import is_parquet, schema_and_rows, table_without_nulls
from ._table_columns import Column, numbers, opened, unread
from ._table_ranges import integer_ranges
from ._table_texts import OddText, odd_text_of, odd_texts_in

_TIME = re.compile(
    r"^(?:log_|header_|receive_)?(?:timestamps?|times?|stamp|t|ts)"
    r"(?:[_ .]*[\[(]?(ns|us|ms|s|sec|seconds|nanoseconds|microseconds|milliseconds)[\])]?)?$",
    re.IGNORECASE,
)
_UNITS = {"sec": "s", "seconds": "s", "nanoseconds": "ns", "microseconds": "us"}
_UNITS["milliseconds"] = "ms"
_MARKS = 10
_EXACT = 2**53  # integers above are not all float64


@dataclass
class Untimed:
    """Rows of a table that have no time."""

    column: str
    first: int  # row
    rows: int
    of: int


@dataclass
class Clock:
    """The column of times."""

    name: str
    kind: str  # of its dtype: "i" or "f"
    unit: str | None  # as its name or its type tells


@dataclass
class Table:
    """The streams of one file, or of some rows of it."""

    streams: dict[str, tuple[list[str], Any, dict[str, Any], list[str]]]
    clock: Clock | None
    left_out: list[LeftOut]
    columns: list[str]  # which these are made of
    large: set[str] = field(default_factory=set)  # columns of integers that float64 rounds
    untimed: Untimed | None = None
    rows: int | None = None  # of a file that is read later, of which these are the streams
    odd: list[OddText] = field(default_factory=list)  # in columns that were left out for them


def told(stem: str, path: str, limit: Limit) -> Table | None:
    """The streams of a Parquet file by what it tells of itself; None where that is not enough."""
    if not is_parquet(path):
        return None
    try:
        schema, _ = schema_and_rows(path, limit)
        names = [field.name for field in schema if not unread(field.type)]
        empty, rows = table_without_nulls(path, names, limit)
    except FormatError:  # which reading it tells better
        return None
    known = empty is not None and "" not in names and len(set(schema.names)) == len(schema)
    ranges = integer_ranges(path, names) if known else None
    if ranges is None:
        return None
    large = {name for name, (low, high) in ranges.items() if low < -_EXACT or high > _EXACT}
    table = streams_of(stem, path, empty, large)
    table.rows = rows
    _note_unread(table, stem, path, schema, limit)
    return table


def read(stem: str, path: str, limit: Limit) -> Table:
    """Read all columns of numbers of a file, and make streams of them."""
    table = streams_of(stem, path, opened(path, limit))
    if is_parquet(path):
        _note_unread(table, stem, path, schema_and_rows(path, limit)[0], limit)
    return table


def _note_unread(table: Table, stem: str, path: str, schema: Any, limit: Limit) -> None:
    """Note the columns of a Parquet file whose types are not numbers."""
    place = {f"{stem}: {name}": i for i, name in enumerate(schema.names)}
    for name, kind in zip(schema.names, schema.types):
        reason = unread(kind)
        if reason is not None:
            table.left_out.append(LeftOut(f"{stem}: {name}", reason))
    table.left_out.sort(key=lambda each: place[each.place])
    table.odd = odd_texts_in(path, schema, limit)


def streams_of(stem: str, path: str, table: Any, large: Collection[str] | None = None) -> Table:
    """The streams of a table: columns of the same rows together.

    ``large`` are columns of integers that float64 rounds; None: those that are in these rows.
    """
    import numpy as np

    left_out: list[LeftOut] = []
    odd: list[OddText | None] = []
    used: list[str] = []
    columns: dict[str, Column] = {}
    for own, chunked in zip(table.column_names, table.columns):
        column = numbers(path, own, chunked)
        if isinstance(column, str):
            left_out.append(LeftOut(f"{stem}: {own}", column))
            odd.append(odd_text_of(path, own, chunked))
            continue
        used.append(own)
        columns.update(column.channels())
    if large is None:
        large = {name for name, of in columns.items() if _is_large(of)}
    else:
        large = {name for name, of in columns.items() if of.name in large}
    rounded = {columns[name].name for name in large}
    clock = _clock_of(columns)
    times, untimed = (None, None) if clock is None else _timed(path, clock.name, columns)
    streams: dict[str, tuple[list[str], Any, dict[str, Any], list[str]]] = {}
    groups: dict[bytes, list[str]] = {}
    for own, column in columns.items():
        groups.setdefault(np.packbits(column.mask).tobytes(), []).append(own)
    again: Counter[str] = Counter()
    for members in groups.values():
        name = stem if len(groups) == 1 else f"{stem}: {_common(members)}"
        apart = _apart(members, columns, large)
        elsewhere = {own for group in apart for own in group}
        rest = [own for own in members if own not in elsewhere]
        for i, group in enumerate(filter(None, (rest, *apart))):
            common = f"{stem}: {_common(group)}" if i else name
            stream = common
            while stream in streams:
                again[common] += 1
                stream = f"{common}{_mark(again[common])}"
            streams[stream] = _stream([columns[own] for own in group], group, times)
    if not groups and times is not None:
        streams[stem] = ([], np.zeros((len(times), 0), np.float32), {"time": times}, [])
    there_are = [text for text in odd if text is not None]
    return Table(streams, clock, left_out, used, rounded, untimed, odd=there_are)


def _stream(
    columns: list[Column], names: list[str], times: Any
) -> tuple[list[str], Any, dict[str, Any], list[str]]:
    mask = columns[0].mask
    values = _stacked([column.values for column in columns])
    clocks = {} if times is None else {"time": times}
    if not mask.all():
        values = values[mask]
        clocks = {key: given[mask] for key, given in clocks.items()}
    return names, values, clocks, [str(column.values.dtype) for column in columns]


# ---- integers that float64 rounds ---------------------------------------------------------------


def _is_large(column: Column) -> bool:
    values = column.values  # 0 where there is none
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or values.size == 0:
        return False
    return bool(values.max() > _EXACT or values.min() < -_EXACT)


def _apart(
    members: list[str], columns: dict[str, Column], large: Collection[str]
) -> list[list[str]]:
    """Columns of large integers that one dtype with the rest would round, by their dtype."""
    import numpy as np

    if np.result_type(*{columns[own].values.dtype for own in members}).kind != "f":
        return []
    apart: dict[str, list[str]] = {}
    for own in members:
        if own in large:
            apart.setdefault(str(columns[own].values.dtype), []).append(own)
    return list(apart.values())


# ---- times --------------------------------------------------------------------------------------


def _clock_of(columns: dict[str, Column]) -> Clock | None:
    """The column of times, by its name; without such a name the only one of dates."""
    alone = [of for of in columns.values() if of.values.ndim == 1]
    named = [of for of in alone if _TIME.match(of.channel.strip()) and of.values.dtype.kind != "b"]
    chosen = named or [of for of in alone if of.is_date]
    if not named and len(chosen) > 1:
        return None
    complete = [of for of in chosen if of.has_value().all()]
    most = [of for of in chosen if of.has_value().sum() > len(of.mask) / 2]
    for of in complete or most:
        match = _TIME.match(of.channel.strip())
        unit = (match[1] or "").lower() if match else ""
        kind = "f" if of.values.dtype.kind == "f" else "i"
        return Clock(of.channel, kind, of.unit or _UNITS.get(unit, unit) or None)
    return None


def _timed(path: str, clock: str, columns: dict[str, Column]) -> tuple[Any, Untimed | None]:
    """Times; and rows without one are taken from all columns."""
    import numpy as np

    own = columns.pop(clock)
    times = own.values
    if times.dtype.kind == "u" and len(times) and times.max() > np.iinfo(np.int64).max:
        raise FormatError(path, clock, "has times of 2**63 or more, which int64 does not hold")
    if times.dtype.kind != "f":
        times = times.astype(np.int64, copy=False)
    there = own.has_value()
    if there.all():
        return times, None
    for name, of in columns.items():
        columns[name] = of.rows(there)
    missing = np.flatnonzero(~there)
    return times[there], Untimed(clock, int(missing[0]), len(missing), len(there))


def _stacked(columns: list[Any]) -> Any:
    """[n,D] in the dtype that holds all."""
    import numpy as np

    dtype = np.result_type(*{values.dtype for values in columns})
    return np.stack([values.astype(dtype) for values in columns], axis=1)


def _mark(number: int) -> str:
    """The end of a name that another stream has already."""
    return "'" * number if number < _MARKS else f"'{number}"


def _common(names: list[str]) -> str:
    """What columns of one stream have in common in their names."""
    if len(names) == 1:
        return names[0]
    prefix = os.path.commonprefix(names).rstrip("._/[ ")
    return prefix or names[0]
