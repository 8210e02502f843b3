"""The streams of one CSV or Parquet file: its numeric columns, on its column of times."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..._checks.times import lost_digits
from ..._errors import Damage, FormatError, LeftOut, needed
from ..._file_access import Limit
from ..._kinds.kinds import Said
from ..._time_units import per_second
from .clock import (
    Clock,
    chosen_clock,
    flat,
    headerless_clock,
    names_of_times,
    split_unit,
    times_of,
)
from .columns import Column, index_of, numbers, opened, stacked, unread
from .instances import Instances, instances_of, may_say_which, times_repeat
from .layout import Layout
from .parquet import (
    batches_of,
    integer_ranges,
    is_parquet,
    leaves_of,
    read_table,
    schema_and_rows,
    table_without_nulls,
)
from .texts import OddText, first_texts, form_of, is_text, odd_text_of, odd_texts_in

_MARKS = 10
_SHOWN = 80  # characters of a text in a message
_LOOK = 1 << 16  # rows of a Parquet file by which its times are chosen
_EXACT = 2**53  # larger integers are not always exact in float64


@dataclass
class Untimed:
    """Rows of a table without a time."""

    column: str
    first: int  # row
    rows: int
    total: int


@dataclass
class Table:
    """The streams of one file, or of some rows of it."""

    streams: dict[str, tuple[list[str], Any, dict[str, Any], list[str]]]
    clock: Clock | None
    left_out: list[LeftOut]
    columns: list[str]  # columns that the streams are made of
    large: set[str] = field(default_factory=set)  # integer columns that float64 would round
    untimed: Untimed | None = None
    rows: int | None = None  # of a file that is read later
    odd: list[OddText] = field(default_factory=list)  # texts that make columns be skipped
    instances: Instances | None = None  # the things that share the rows
    labels: dict[str, Any] = field(default_factory=dict)  # the thing of each stream
    table_rows: int = 0  # of the file, or of the rows that were read
    names: tuple[str, ...] = ()  # of all columns of the file
    said: dict[str, tuple[Said, ...]] = field(default_factory=dict)  # kinds by stream
    doubt: str = ""  # why no column is surely the times

    def count_of(self, stream: str, loaded: int) -> int:
        """Return the number of samples of a stream."""
        if self.rows is None:
            return loaded
        if self.instances is None:
            return self.rows
        place = self.instances.labels.index(self.labels[stream])
        return self.instances.counts[place]


@dataclass(frozen=True)
class Wanted:
    """The caller's options about the times of tables."""

    time: str | None = None  # COLUMN[:UNIT]
    rate: float | None = None  # rows per second, for tables without times
    damage: Damage | None = None  # gets damaged rows


def from_metadata(stem: str, path: str, limit: Limit, wanted: Wanted = Wanted()) -> Table | None:
    """Return the streams of a Parquet file from its metadata; None if they are not sufficient."""
    if not is_parquet(path):
        return None
    try:
        schema, _ = schema_and_rows(path, limit)
        names = [field.name for field in schema if not unread(field.type)]
        empty, rows = table_without_nulls(path, names, limit)
    except FormatError:  # reading the file gives a better error
        return None
    known = empty is not None and "" not in names and len(set(schema.names)) == len(schema)
    ranges = integer_ranges(path, names) if known else None
    if ranges is None:
        return None
    index = index_of(schema)
    first = _first(path, schema, index, limit, wanted.time)
    sample = flat(empty) if first is None else first  # reading the file will report the damage
    clock = chosen_clock(path, sample, {}, index, wanted.time, whole=False)
    if clock is not None and clock.form not in ("numbers", "pair"):
        return None
    if clock is None and _texts_of_dates(path, schema, wanted.time, limit):
        return None
    instances = None
    if clock is not None and clock.sample is not None and times_repeat(clock.sample):
        instances = _instances_in(path, clock, schema, limit)
    if wanted.rate is not None and instances is None:
        if clock is not None:
            sample = flat(read_table(path, owners_of(clock, schema), (), limit))
        clock = _with_digits(path, clock, sample, wanted)
    if instances is not None and instances.column not in names:  # a column of texts
        empty = empty.append_column(
            instances.column, needed("pyarrow", "tables", "").array([], "str")
        )
    large = {name for name, (low, high) in ranges.items() if low < -_EXACT or high > _EXACT}
    table = streams_of(stem, path, flat(empty), clock, large, instances)
    table.columns = names
    if instances is not None and instances.column not in names:
        table.columns = [*names, instances.column]
    table.rows = table.table_rows = rows
    table.names = tuple(schema.names)
    _note_unread(table, stem, path, schema, limit, () if instances is None else [instances.column])
    return table


def _instances_in(path: str, clock: Clock, schema: Any, limit: Limit) -> Instances | None:
    """Search for a column that identifies the thing of each row, in integer and text columns."""
    owners = owners_of(clock, schema)
    names = [
        column.name for column in schema if may_say_which(column.type) and column.name not in owners
    ]
    try:
        table = flat(read_table(path, [*owners, *names], (), limit))
        times, mask = times_of(path, clock, table)
        return instances_of(path, table, names, times, mask)
    except FormatError:
        return None


def _first(path: str, schema: Any, index: Collection[str], limit: Limit, asked: str | None) -> Any:
    """Read the first rows of the columns that may be times; None if they cannot be read."""
    arrow = needed("pyarrow", "tables", "a table")
    names = names_of_times(schema, index, asked)
    if not names:
        return arrow.table({})
    try:
        first = next(batches_of(path, names, _LOOK, limit), None)
    except FormatError:
        return None
    return None if first is None else flat(first)


def _texts_of_dates(path: str, schema: Any, asked: str | None, limit: Limit) -> list[str]:
    """Return the text columns of a Parquet file that hold dates, or that the caller named."""
    names = [column.name for column in schema if is_text(column.type)]
    if asked is not None:
        return [name for name in names if name in {text for text, _ in split_unit(asked)}]
    first = first_texts(path, names, limit)
    return [name for name, texts in first.items() if form_of(path, texts) == "date"]


def owners_of(clock: Clock, schema: Any) -> list[str]:
    """Return the file's columns that hold a clock, which may be inside a struct."""
    known = set(schema.names)
    return list(
        dict.fromkeys(c if c in known else next(k for k in known if c.startswith(f"{k}."))
                      for c in clock.columns)
    )  # fmt: skip


def read(stem: str, path: str, limit: Limit, wanted: Wanted = Wanted()) -> Table:
    """Read all numeric columns of a file into streams."""
    there = opened(path, limit, damage=wanted.damage)
    layout, doubt = there.layout, ""
    if layout is not None and not layout.has_header and wanted.time is None:
        clock = headerless_clock(path, there.table)
        doubt = "" if clock is not None or wanted.rate is not None else _doubt(layout)
    else:
        clock = chosen_clock(path, there.table, there.units, there.index, wanted.time, whole=True)
    if clock is None and is_parquet(path):
        schema, _ = schema_and_rows(path, limit)
        more = _texts_of_dates(path, schema, wanted.time, limit)
        if more:
            there = opened(path, limit, more)
            clock = chosen_clock(path, there.table, {}, there.index, wanted.time, whole=True)
    table = there.table
    used = set() if clock is None else set(clock.columns)
    instances = None
    if clock is not None:
        times, mask = times_of(path, clock, table)
        if times_repeat(times[mask]):
            whole = _with_texts(path, table, limit)
            names = [name for name in whole.column_names if name not in used]
            instances = instances_of(path, whole, names, times, mask)
            if instances is not None and instances.column not in table.column_names:
                table = table.append_column(instances.column, whole[instances.column])
    if wanted.rate is not None and instances is None:
        clock = _with_digits(path, clock, table, wanted)
    kept = used if instances is None else used | {instances.column}
    table = table.drop_columns([name for name in there.times if name not in kept])
    streams = streams_of(stem, path, table, clock, None, instances)
    streams.names = tuple(there.table.column_names)
    streams.doubt = doubt
    if layout is not None and layout.above is not None:
        count, text = layout.above
        which = (
            "the line above the header is" if count == 1 else f"{count} lines above the header are"
        )
        reason = f'{which} not read: "{_short(text)}"'
        streams.left_out.insert(0, LeftOut(stem, reason))
    if is_parquet(path):
        schema = schema_and_rows(path, limit)[0]
        _note_unread(streams, stem, path, schema, limit, kept)
    return streams


def of_table(stem: str, path: str, table: Any, wanted: Wanted) -> Table:
    """Return the streams of a table in memory, on its column of times."""
    clock = chosen_clock(path, table, {}, (), wanted.time, whole=True)
    instances = None
    if clock is not None:
        times, mask = times_of(path, clock, table)
        if times_repeat(times[mask]):
            names = [name for name in table.column_names if name not in clock.columns]
            instances = instances_of(path, table, names, times, mask)
    if instances is None:
        clock = _with_digits(path, clock, table, wanted)
    made = streams_of(stem, path, table, clock, None, instances)
    made.names = tuple(table.column_names)
    return made


def _doubt(layout: Layout) -> str:
    """Return why a table without a header has no times."""
    first = " | ".join(" ".join(row) for row in layout.rows)
    names = layout.names or ("",)
    return (
        f"the table has no header, and none of its columns {names[0]} to {names[-1]} is surely the "
        f'times. The first rows: "{_short(first)}". '
        "Name the times with --time c0, or set the rows per second with --fps HZ, or write a first "
        "line with the names of the columns"
    )


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _with_texts(path: str, table: Any, limit: Limit) -> Any:
    """Add the text columns of a Parquet file, which may identify the thing of a row."""
    if not is_parquet(path):
        return table
    schema, _ = schema_and_rows(path, limit)
    names = [
        field.name
        for field in schema
        if is_text(field.type) and field.name not in table.column_names
    ]
    if names:
        try:
            for name, column in zip(names, read_table(path, names, (), limit).columns):
                table = table.append_column(name, column)
        except FormatError:  # none of them is needed
            return table
    return table


def _with_digits(path: str, clock: Clock | None, table: Any, wanted: Wanted) -> Clock | None:
    """Return the clock, or one from row numbers if it is missing or its stamps lost digits."""
    if wanted.rate is None:
        return clock
    if clock is None:
        return rows_clock(wanted.rate)
    times, mask = times_of(path, clock, table)
    unit = clock.unit or clock.guess
    if lost_digits(times[mask], None if unit is None else per_second(unit)) is None:
        return clock
    return rows_clock(wanted.rate, clock)


def rows_clock(rate: float, instead: Clock | None = None) -> Clock:
    """Return times from row numbers, in seconds. The stamps that they replace are dropped."""
    if not 0 < rate < float("inf"):
        raise ValueError(f"rate: is {rate}, expected a finite number above 0")
    columns = () if instead is None else instead.columns
    return Clock("row", "f", "s", columns, "rows", rate=rate)


def _note_unread(
    table: Table, stem: str, path: str, schema: Any, limit: Limit, used: Collection[str] = ()
) -> None:
    """Note the columns of a Parquet file that are not numeric."""
    place = {f"{stem}: {name}": i for i, name in enumerate(schema.names)}
    for name, kind in zip(schema.names, schema.types):
        reason = unread(kind)
        if reason is not None and name not in used:
            table.left_out.append(LeftOut(f"{stem}: {name}", reason))
        known = {each.place for each in table.left_out}
        for part, inner in leaves_of(name, kind) if reason is None else ():
            place.setdefault(f"{stem}: {part}", place[f"{stem}: {name}"])
            if is_text(inner) and f"{stem}: {part}" not in known:
                reason = f"has type {inner}, which is not read"
                table.left_out.append(LeftOut(f"{stem}: {part}", reason))
    table.left_out.sort(key=lambda each: place.get(each.place, len(place)))
    table.odd = odd_texts_in(path, schema, limit)


def streams_of(
    stem: str,
    path: str,
    table: Any,
    clock: Clock | None,
    large: Collection[str] | None = None,
    instances: Instances | None = None,
    first: int = 0,
) -> Table:
    """Return the streams of a table: columns with the same rows together, each thing separately.

    ``large`` are integer columns that float64 would round; None: find them in these rows.
    ``first`` is the number of the first row in the file.
    """

    left_out: list[LeftOut] = []
    odd: list[OddText | None] = []
    used: list[str] = []
    columns: dict[str, Column] = {}
    aside = set() if clock is None else set(clock.columns)
    if instances is not None:
        aside.add(instances.column)
    for place, (own, chunked) in enumerate(zip(table.column_names, table.columns)):
        if own in aside:
            used.append(own)
            continue
        column = numbers(path, own, chunked)
        if isinstance(column, str):
            if not own and column == "has no values":
                own_place, column = stem, f"column {place + 1} has no name and no values"
            else:
                own_place = f"{stem}: {own}"
            left_out.append(LeftOut(own_place, column))
            odd.append(odd_text_of(path, own, chunked))
            continue
        used.append(own)
        columns.update(column.channels())
    if large is None:
        large = {name for name, column in columns.items() if _is_large(column)}
    else:
        large = {name for name, column in columns.items() if column.name in large}
    rounded = {columns[name].name for name in large}
    rows_of = {} if instances is None else instances.rows(path, table[instances.column])
    times, untimed, there = None, None, None
    if clock is not None:
        times, there = times_of(path, clock, table, first)
        untimed, there = _untimed(clock, there, instances, rows_of)
        if untimed is not None:
            times, columns = (
                times[there],
                {name: column.rows(there) for name, column in columns.items()},
            )
    there_are = [text for text in odd if text is not None]
    result = Table({}, clock, left_out, used, rounded, untimed, odd=there_are, instances=instances)
    result.table_rows = len(table)
    if instances is None:
        _group(stem, columns, large, times, result.streams)
        return result
    for label, rows in rows_of.items():
        own_rows = rows if there is None else rows[there]
        own_columns = {name: column.rows(own_rows) for name, column in columns.items()}
        own_times = None if times is None else times[own_rows]
        made: dict[str, Any] = {}
        _group(f"{stem}[{label}]", own_columns, large, own_times, made)
        result.streams.update(made)
        result.labels.update(dict.fromkeys(made, label))
    return result


def _group(
    stem: str, columns: dict[str, Column], large: Collection[str], times: Any, streams: Any
) -> None:
    """Add streams to ``streams``: one for all columns with values in the same rows."""
    import numpy as np

    groups: dict[bytes, list[str]] = {}
    for own, column in columns.items():
        mask = b"" if column.mask is None else np.packbits(column.mask).tobytes()
        groups.setdefault(mask, []).append(own)
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


def _stream(
    columns: list[Column], names: list[str], times: Any
) -> tuple[list[str], Any, dict[str, Any], list[str]]:
    mask = columns[0].mask
    clocks = {} if times is None else {"time": times if mask is None else times[mask]}
    return names, stacked(columns), clocks, [str(column.dtype) for column in columns]


# ---- integers that float64 rounds ---------------------------------------------------------------


def _is_large(column: Column) -> bool:
    if column.dtype.kind not in "iu" or column.dtype.itemsize < 8:
        return False
    parts = [part for part in column.parts if part.size]  # 0 if missing
    return any(bool(part.max() > _EXACT or part.min() < -_EXACT) for part in parts)


def _apart(
    members: list[str], columns: dict[str, Column], large: Collection[str]
) -> list[list[str]]:
    """Return groups of large integer columns that the common dtype would round, by dtype."""
    import numpy as np

    if np.result_type(*{columns[own].dtype for own in members}).kind != "f":
        return []
    apart: dict[str, list[str]] = {}
    for own in members:
        if own in large:
            apart.setdefault(str(columns[own].dtype), []).append(own)
    return list(apart.values())


# ---- times --------------------------------------------------------------------------------------


def _untimed(
    clock: Clock, there: Any, instances: Instances | None, rows_of: Mapping[Any, Any]
) -> tuple[Untimed | None, Any]:
    """Return rows that lack a time or an identifier, and a mask of the other rows."""
    import numpy as np

    lacking = {clock.columns[0] if clock.columns else clock.name: ~there}
    if instances is not None:
        lacking[instances.column] = ~np.any(list(rows_of.values()), axis=0)
    names = [name for name, rows in lacking.items() if rows.any()]
    if not names:
        return None, there
    there = ~np.any(list(lacking.values()), axis=0)
    missing = np.flatnonzero(~there)
    return Untimed(" or ".join(names), int(missing[0]), len(missing), len(there)), there


def _mark(number: int) -> str:
    """Return a suffix for a name that another stream already has."""
    return "'" * number if number < _MARKS else f"'{number}"


def _common(names: list[str]) -> str:
    """Return the common prefix of the column names of a stream."""
    if len(names) == 1:
        return names[0]
    prefix = os.path.commonprefix(names).rstrip("._/[ ")
    return prefix or names[0]
