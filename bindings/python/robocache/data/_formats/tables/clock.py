"""The times of a table: which columns hold them, and what is known about them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._errors import FormatError, needed
from .parquet import numbers_of, present_in, zero_filled
from .texts import form_of, is_text, over_midnight, parsed
from .time_columns import (
    ASCENDING,
    EPOCH,
    FROM_ZERO,
    PATTERNS,
    UNIT_OF,
    bare,
    pairs_of,
    plain_name,
    row_named,
    row_of,
)

_LOOK = 1000  # rows by which dates are recognized
_MOSTLY = 0.9  # of the steps of ascending times
_PER_SECOND = {"ns": 10**9, "us": 10**6, "ms": 10**3, "s": 1}
_SINCE_1970 = (946_684_800, 4_102_444_800)  # s: from 2000 to 2100
_LATEST = 253_402_300_800  # s: the year 10000
_LONGEST = 2**33  # s, the range of int64 in ns
_PAIR = row_named("`sec` + `nanosec`")
_DATES = row_named("a column of dates")
_INDEX = row_named("the index of pandas")
_UNNAMED = row_named("a first column")
_HEADERLESS = row_named("a table without a header")


@dataclass
class Clock:
    """The column of times, or the columns that are joined to times."""

    name: str  # as shown in messages
    kind: str  # kind of its dtype: "i" or "f"
    unit: str | None  # stated by its name or type
    columns: tuple[str, ...] = ()
    form: str = "numbers"  # "numbers", "pair", "rows", or one of texts: "date", "length", ...
    ticks: int = 0  # per second, of the second column of a pair
    row: int | None = None  # of the table of patterns
    guess: str | None = None  # unit that follows from the size of the times without doubt
    guessed: Any = None  # the time that the guess is based on
    sample: Any = field(default=None, repr=False)  # the first times, or all of them
    others: tuple[str, ...] = ()  # other possible columns of times
    is_asked: bool = False  # whether the caller named it
    asked: str | None = None  # the unit that the caller gave for this column
    rate: float | None = None  # rows per second, for the form "rows"
    reason: str = ""  # why it was chosen, if the format says so

    @property
    def why(self) -> str:
        """The chosen column, and the reason."""
        if self.rate is not None:
            return f"row / {self.rate:g} (--fps)"
        reason = _reason(self)
        unit = self.asked or self.unit
        text = (
            f"column {self.name}, {reason}" if len(self.columns) == 1 else f"{self.name}, {reason}"
        )
        if len(self.columns) > 1:
            text = f"columns {text}"
        if unit is not None:
            text += f", in {unit}"
        elif self.guess is not None:
            text += f", in {self.guess}: {self.guessed} looks like {self.guess} since 1970"
        if self.others:
            text += f" (not {', '.join(self.others)})"
        return text


def _reason(clock: Clock) -> str:
    row = clock.row
    if clock.is_asked:
        return "by --time"
    if clock.reason:
        return clock.reason
    if row == _PAIR:
        return "joined"
    if row == _DATES:
        return "the only dates"
    if row == _INDEX:
        return "the index of pandas"
    if row == _UNNAMED:
        return "the first, which has no name"
    if len(clock.columns) > 1:
        return "joined"
    return "by its name" if clock.form == "numbers" else f"by its name, texts ({clock.form})"


# ---- values -------------------------------------------------------------------------------------


def flat(table: Any) -> Any:
    """Split structs that hold a stamp (sec, nanosec) into separate columns."""
    arrow = needed("pyarrow", "tables", "a table")
    while any(holds_stamp(kind) for kind in table.schema.types):
        names: list[str] = []
        columns: list[Any] = []
        for own, column in zip(table.column_names, table.columns):
            if not holds_stamp(column.type):
                names.append(own)
                columns.append(column)
                continue
            names += [f"{own}.{part.name}" for part in column.type]
            columns += column.flatten()
        if len(set(names)) != len(names):
            return table
        table = arrow.Table.from_arrays(columns, names=names)
    return table


def holds_stamp(kind: Any) -> bool:
    """Whether a type is a struct with seconds and fractions, perhaps in a nested struct."""
    arrow = needed("pyarrow", "tables", "a table")
    if not arrow.types.is_struct(kind):
        return False
    whole = [part.name for part in kind if arrow.types.is_integer(part.type)]
    return bool(pairs_of(whole)) or any(holds_stamp(part.type) for part in kind)


def may_be_clock(name: str, kind: Any, index: Iterable[str]) -> bool:
    """Whether a column without numbers may hold the times, by its name and type."""
    arrow = needed("pyarrow", "tables", "a table")
    if arrow.types.is_time(kind) or arrow.types.is_date(kind):
        return True
    if not is_text(kind):
        return False
    return row_of(name) is not None or name in index or plain_name(name)[0] == "date" or not name


def names_of_times(schema: Any, index: Iterable[str], asked: str | None) -> list[str]:
    """Return the columns of a Parquet file whose values are needed to choose its times."""
    arrow = needed("pyarrow", "tables", "a table")
    types, found = arrow.types, []
    paired = {
        name
        for pair in pairs_of([column.name for column in schema if _is_number(column.type)])
        for name in pair[:2]
    }
    for place, column in enumerate(schema):
        is_number = _is_number(column.type)
        named = (
            row_of(column.name) is not None
            or column.name in index
            or column.name in paired
            or column.name.startswith("__index_level_")
            or (place == 0 and _is_unnamed(column.name))
            or (asked is not None and bare(column.name) in asked)
        )
        is_time = types.is_timestamp(column.type) or types.is_duration(column.type)
        if (
            (is_number and (named or "date" in plain_name(column.name)[0].lower()))
            or is_time
            or holds_stamp(column.type)
        ):
            found.append(column.name)
        elif may_be_clock(column.name, column.type, index):
            found.append(column.name)
    return found


def times_of(path: str, clock: Clock, table: Any, first: int = 0) -> tuple[Any, Any]:
    """Return the times of rows of a table as int64 or float64, and a mask of the valid ones."""
    import numpy as np

    if clock.rate is not None:
        rows = np.arange(first, first + len(table))
        return rows / clock.rate, np.ones(len(table), bool)
    values, mask = _values(path, table[clock.columns[0]], clock.form)
    if clock.form == "pair":
        rest, there = _values(path, table[clock.columns[1]], "numbers")
        values, mask = _joined(path, clock, values, rest, mask & there, first)
    elif len(clock.columns) == 2:  # a day and a time of day
        rest, there = _values(path, table[clock.columns[1]], "time of day")
        values, mask = values + rest, mask & there
    elif clock.form == "time of day":
        values = values.copy()
        values[mask] = over_midnight(values[mask])
    if values.dtype.kind == "u":
        if len(values) and values[mask].max(initial=0) > np.iinfo(np.int64).max:
            raise FormatError(
                path, clock.name, "has times of 2**63 or more, out of range for int64"
            )
        values = values.astype(np.int64)
    if values.dtype.kind == "f":
        mask = mask & ~np.isnan(values)
        return values, mask
    return values.astype(np.int64, copy=False), mask


def _values(path: str, chunked: Any, form: str) -> tuple[Any, Any]:
    """Return a column as numbers: ns for texts, ticks for dates."""
    import numpy as np

    arrow = needed("pyarrow", "tables", "a table")
    types, kind = arrow.types, chunked.type
    if form == "day" and types.is_integer(kind):
        chunked = chunked.cast(arrow.string())
        kind = chunked.type
    if is_text(kind):
        return parsed(path, form, chunked)
    mask = present_in(chunked)
    if types.is_time(kind):
        unit = kind.unit
        chunked = chunked.cast(arrow.int64() if kind.bit_width == 64 else arrow.int32())
        factor = 10**9 // _PER_SECOND[unit]
        return numbers_of(path, "", zero_filled(chunked)).astype(np.int64) * factor, mask
    if types.is_date(kind):
        chunked = chunked.cast(arrow.date32()).cast(arrow.int32())
        return numbers_of(path, "", zero_filled(chunked)).astype(np.int64) * 86_400 * 10**9, mask
    if types.is_timestamp(kind) or types.is_duration(kind):
        chunked = chunked.cast(arrow.int64())
    return numbers_of(path, "", zero_filled(chunked)), mask


def _joined(
    path: str, clock: Clock, seconds: Any, rest: Any, mask: Any, first: int
) -> tuple[Any, Any]:
    """Return seconds and fractions as int64 ns, and a mask of rows that have both."""
    import numpy as np

    mask = mask & (seconds == seconds) & (rest == rest)  # not NaN
    seconds, rest = np.where(mask, seconds, 0), np.where(mask, rest, 0)
    odd = (rest < 0) | (rest >= clock.ticks) | (abs(seconds.astype(np.float64)) >= _LONGEST)
    if odd.any():
        row = int(np.argmax(odd))
        text = f"is {seconds[row]} and {rest[row]}, expected seconds that fit int64 in ns, and "
        raise FormatError(path, f"{clock.name}, row {first + row}", f"{text}0 to {clock.ticks - 1}")
    return seconds.astype(np.int64) * 10**9 + rest.astype(np.int64) * (10**9 // clock.ticks), mask


# ---- which column -------------------------------------------------------------------------------


def chosen_clock(
    path: str,
    table: Any,
    units: dict[str, str],
    index: Sequence[str],
    asked: str | None,
    whole: bool,
) -> Clock | None:
    """Choose the times of a table, by the table of patterns or as the caller requested.

    ``table`` has all rows, or only the first ones if ``whole`` is False. ``units`` are from a
    line below the header, ``index`` holds the names of pandas' index.
    """
    names = table.column_names
    if asked is not None:
        clock = asked_clock(path, table, names, asked, units)
        return None if clock is None else _measured(path, clock, table)
    found = _candidates(path, table, units, index)
    judged = [(clock, *_judged(path, clock, table, whole)) for clock in found]
    judged = [each for each in judged if each[1] > 0.5]
    sure = [each for each in judged if not _needs(each[0])]
    levels = (
        [each[0] for each in judged if each[1] == 1 and each[2]],
        [each[0] for each in sure if each[1] == 1],
        [each[0] for each in judged if each[2]],
        [each[0] for each in sure],
    )
    best = next((level[0] for level in levels if level), None)
    if best is None:
        return None
    ascending = [each[0].name for each in judged if each[2] and each[0] is not best]
    best.others = tuple(ascending[:3])
    return _measured(path, best, table)


def _needs(clock: Clock) -> str:
    return "" if clock.row is None or clock.row == _PAIR else PATTERNS[clock.row].needs


def _candidates(path: str, table: Any, units: dict[str, str], index: Sequence[str]) -> list[Clock]:
    """Return columns that may be the times, in the order of the table of patterns."""
    arrow = needed("pyarrow", "tables", "a table")
    names = table.column_names
    kinds = dict(zip(names, table.schema.types))
    numeric = [n for n in names if _is_number(kinds[n])]
    found: list[Clock] = []
    joined: set[str] = set()
    for seconds, rest, ticks in pairs_of(numeric):
        if _is_pair(path, table, seconds, rest, ticks):
            joined |= {seconds, rest}
            found.append(
                Clock(f"{bare(seconds)} + {bare(rest)}", "i", "ns", (seconds, rest), "pair", ticks,
                      _PAIR)
            )  # fmt: skip
    days = [n for n in names if _is_day(path, table[n], n)]
    dates: list[Clock] = []
    for place, name in enumerate(names):
        if name in joined or name in days:
            continue
        fits = row_of(name)
        is_index = name in index or name.startswith("__index_level_")
        if fits is None and (is_index or (place == 0 and _is_unnamed(name))):
            fits = (_INDEX if is_index else _UNNAMED), None
        by_name = fits is not None
        clock = _clock(path, table, name, kinds[name], units, fits or (_DATES, None))
        if clock is None or _counts_rows(path, clock, table):
            continue
        if clock.form == "time of day" and days:
            clock.columns = (days[0], name)
            clock.name, clock.form = f"{bare(days[0])} + {bare(name)}", "day"
        if by_name:
            found.append(clock)
        elif clock.form == "date" or arrow.types.is_timestamp(kinds[name]):
            dates.append(clock)
    if len(dates) == 1:
        found += dates
    return sorted(found, key=lambda clock: -1 if clock.row is None else clock.row)


def _clock(
    path: str, table: Any, name: str, kind: Any, units: dict[str, str], fits: tuple[int, str | None]
) -> Clock | None:
    """Return one column as a clock; None if its type cannot hold times."""
    arrow = needed("pyarrow", "tables", "a table")
    types = arrow.types
    row, stated = fits
    label = bare(name) or "without a name"
    if types.is_timestamp(kind) or types.is_duration(kind):
        return Clock(label, "i", kind.unit, (name,), row=row)
    if types.is_time(kind):
        return Clock(label, "i", "ns", (name,), "time of day", row=row)
    if is_text(kind):
        form = form_of(path, table[name])
        if form is None or form == "day":
            return None
        return Clock(label, "i", "ns", (name,), form, row=row)
    is_float = types.is_floating(kind)
    if not _is_number(kind):
        return None
    pattern = PATTERNS[row]
    below = UNIT_OF.get(units.get(name, "").strip().strip("[]()").lower())
    unit = stated or below or (pattern.floats if is_float else pattern.integers)
    if row == _DATES:
        return None
    return Clock(label, "f" if is_float else "i", unit, (name,), row=row)


def _is_unnamed(name: str) -> bool:
    return not bare(name) or bare(name) == "Unnamed: 0"


def _is_day(path: str, chunked: Any, name: str) -> bool:
    """Whether a column holds days without a time of day."""
    arrow = needed("pyarrow", "tables", "a table")
    if arrow.types.is_date(chunked.type):
        return True
    if "date" not in plain_name(name)[0].lower():
        return False
    if arrow.types.is_integer(chunked.type):  # 20231114
        chunked = chunked.slice(0, _LOOK).cast(arrow.string())
    return is_text(chunked.type) and form_of(path, chunked) == "day"


def _is_number(kind: Any) -> bool:
    arrow = needed("pyarrow", "tables", "a table")
    return bool(arrow.types.is_integer(kind) or arrow.types.is_floating(kind))


def _is_pair(path: str, table: Any, seconds: str, rest: str, ticks: int) -> bool:
    """Whether both are whole, fractions are below a second, and seconds fit int64 in ns."""
    import numpy as np

    if len(table) == 0:
        return True
    for name in (seconds, rest):
        values, mask = _values(path, table[name], "numbers")
        if values.dtype.kind == "f" and not (values[mask] == np.floor(values[mask])).all():
            return False
    low, high = _range(path, table, rest)
    first, last = _range(path, table, seconds)
    return bool(low >= 0 and high < ticks and -_LONGEST < first and last < _LONGEST)


def _range(path: str, table: Any, name: str) -> tuple[Any, Any]:
    values, mask = _values(path, table[name], "numbers")
    values = values[mask]
    return (values.min().item(), values.max().item()) if len(values) else (0, 0)


def _counts_rows(path: str, clock: Clock, table: Any) -> bool:
    """Whether an unnamed column or an index only numbers the rows."""
    import numpy as np

    if clock.row not in (_INDEX, _UNNAMED) or clock.form != "numbers" or clock.unit is not None:
        return False
    values, mask = times_of(path, clock, table)
    values = values[mask]
    if clock.kind == "f":
        return bool((np.diff(values) == 1).all())
    return _looks_like(values) is None


def _judged(path: str, clock: Clock, table: Any, whole: bool) -> tuple[float, bool]:
    """Return the part of rows with a time, and whether the times ascend as required."""
    import numpy as np

    try:
        values, mask = times_of(path, clock, table)
    except FormatError:
        return (1.0, True) if not _needs(clock) else (0.0, False)
    if len(mask) == 0:
        return 1.0, not _needs(clock)
    part = float(mask.mean())
    values = values[mask]
    steps = np.diff(values)
    if len(steps) == 0:
        return part, False
    ascends = bool((steps >= 0).mean() >= _MOSTLY and values[-1] > values[0])
    needs = _needs(clock)
    if needs == FROM_ZERO:
        step = float(np.median(steps)) if ascends else 0.0
        span = float(values[-1]) - float(values[0])
        near = abs(float(values[0])) <= max(2 * step, 0.01 * span)
        ascends = ascends and bool((steps > 0).all()) and near
    elif needs == EPOCH and clock.unit is not None and clock.form == "numbers":
        ascends = ascends and _is_epoch((values.min(), values.max()), _PER_SECOND[clock.unit])
    elif needs == EPOCH and clock.form == "numbers":
        guess = _looks_like(values)
        ascends = ascends and guess is not None
        clock.unit = guess
    return part, ascends


def _measured(path: str, clock: Clock, table: Any) -> Clock:
    """Add the first times to a clock, and the unit that they imply."""
    try:
        values, mask = times_of(path, clock, table)
    except FormatError:
        return clock
    clock.sample = values[mask]
    return guessed(clock)


def guessed(clock: Clock) -> Clock:
    """Add the unit that the first times of a clock imply without doubt."""
    if clock.unit is None and len(clock.sample):
        looks = _looks_like(clock.sample)
        clock.guessed = clock.sample[0].item()
        # Integers near 1.7e12 may also be nanoseconds since a start, but no float is read as these:
        # without a unit it is in seconds, and a time in ms or us would be after the year 9999.
        if looks == "ns" or clock.kind == "f":
            clock.guess = looks
    return clock


def _is_epoch(ends: tuple[Any, Any], per_second: int) -> bool:
    """Whether times fall within the years 2000 to 2100, counted from 1970."""
    low, high = ends
    return bool(_SINCE_1970[0] * per_second <= low and high <= _SINCE_1970[1] * per_second)


def _looks_like(values: Any) -> str | None:
    """Return the unit in which times lie within the years 2000 to 2100, or None."""
    if len(values) == 0:
        return None
    ends = values.min(), values.max()
    return next((unit for unit, per in _PER_SECOND.items() if _is_epoch(ends, per)), None)


def looks_like(value: Any) -> str:
    """Describe a time as the end of a sentence; "" if it may be anything."""
    unit = epoch_unit(value)
    return "" if unit is None else f"{value} looks like {unit} since 1970"


def epoch_unit(value: Any) -> str | None:
    """Return the unit in which a time lies within the years 2000 to 2100, or None."""
    import numpy as np

    return _looks_like(np.array([value]))


# ---- tables without a header ---------------------------------------------------------------------


def headerless_clock(path: str, table: Any) -> Clock | None:
    """Return the times of a table whose columns have no names; None if they are not sure."""
    import numpy as np

    kinds = dict(zip(table.column_names, table.schema.types))
    for place, name in enumerate(n for n in table.column_names if _is_number(kinds[n])):
        clock = _clock(path, table, name, kinds[name], {}, (_HEADERLESS, None))
        if clock is None:
            continue
        try:
            values, mask = times_of(path, clock, table)
        except FormatError:
            continue
        steps = np.diff(values)
        if not mask.all() or len(steps) == 0 or (steps < 0).any() or values[-1] <= values[0]:
            continue
        unit = _looks_like(values)
        if unit is not None:
            clock.reason = f"without a header: {values[0]} looks like {unit} since 1970"
        elif place or name != table.column_names[0] or not _may_be_seconds(values, steps):
            continue
        else:
            unit = "s"
            clock.reason = "without a header: the first column ascends"
        clock.unit, clock.sample = unit, values
        return clock
    return None


def _may_be_seconds(values: Any, steps: Any) -> bool:
    """Whether floats ascend as times do, rather than numbers of rows or other values."""
    import numpy as np

    if values.dtype.kind != "f" or (steps <= 0).any() or (steps == 1).all():
        return False
    step = float(np.median(steps))
    begins = abs(float(values[0])) <= max(2 * step, 0.01 * float(values[-1] - values[0]))
    return begins or bool((np.abs(steps - step) <= 0.5 * step).mean() >= _MOSTLY)


# ---- the column that the caller names -----------------------------------------------------------


def asked_clock(
    path: str, table: Any, names: Sequence[str], asked: str, units: dict[str, str]
) -> Clock | None:
    """Return the column that the caller named; None if a table has no such column."""
    for text, unit in split_unit(asked):
        clock = _named(path, table, names, text, units)
        if clock is not None:
            clock.is_asked, clock.asked = True, unit
            what = clock.form if clock.form != "numbers" else _typed(table, clock)
            if unit is not None and what is not None:
                reason = f"column {clock.name} holds {what}s, which have no unit: remove"
                raise FormatError(path, "", f"--time {asked}: {reason} :{unit}")
            if unit is not None:
                clock.unit = unit
            return clock
    return None


def _typed(table: Any, clock: Clock) -> str | None:
    """Return "date" or "length" for a column whose type has a unit; None for plain numbers."""
    types = needed("pyarrow", "tables", "a table").types
    kind = table.schema.field(clock.columns[0]).type
    if types.is_timestamp(kind):
        return "date"
    return "length" if types.is_duration(kind) else None


def split_unit(asked: str) -> list[tuple[str, str | None]]:
    """Return the readings of COLUMN[:UNIT]: as a whole name, or as a name with a unit."""
    found: list[tuple[str, str | None]] = [(asked, None)]
    name, colon, unit = asked.rpartition(":")
    if colon and unit in _PER_SECOND:
        found.append((name, unit))
    return found


def _named(
    path: str, table: Any, names: Sequence[str], text: str, units: dict[str, str]
) -> Clock | None:
    kinds = dict(zip(names, table.schema.types))
    numeric = [n for n in names if _is_number(kinds[n])]
    for seconds, rest, ticks in pairs_of(numeric):
        if not _is_pair(path, table, seconds, rest, ticks):
            continue
        label = f"{bare(seconds)} + {bare(rest)}"
        if text == label or (text and f"{text}." == label[: len(text) + 1] and text not in names):
            return Clock(label, "i", "ns", (seconds, rest), "pair", ticks)
    day, plus, rest_name = text.partition(" + ")
    if plus and day in names and rest_name in names:
        return Clock(text, "i", "ns", (day, rest_name), "day")
    name = next((n for n in names if n == text), None)
    if name is None:
        name = next((n for n in names if bare(n) == bare(text)), None)
    if name is None:
        return None
    row, stated = row_of(name) or (_UNNAMED, None)
    clock = _clock(path, table, name, kinds[name], units, (row, stated))
    if clock is None:
        raise FormatError(
            path, "", f"--time {text}: column {text} has type {kinds[name]}, not times"
        )
    return clock


def too_late(clock: Clock, unit: str) -> int | None:
    """Return the year of the last time in a unit, if it is after 9999."""
    sample = clock.sample
    if sample is None or len(sample) == 0:
        return None
    latest = float(sample.max())
    if latest != latest:  # NaN
        return None
    seconds = int(min(latest, 1e30)) // _PER_SECOND[unit]
    return 1970 + int(seconds / 31_556_952) if seconds >= _LATEST else None


__all__ = [
    "ASCENDING",
    "Clock",
    "chosen_clock",
    "epoch_unit",
    "flat",
    "looks_like",
    "times_of",
    "too_late",
]
