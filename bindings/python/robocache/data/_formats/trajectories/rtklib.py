"""Solutions of RTKLIB (.pos): positions in degrees, ECEF or as a baseline, on GPS time or UTC."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

from ..._errors import FormatError, needed
from ..._options import Options
from ..._recording import Recording
from ..description import Format
from ..tables.clock import Clock
from ..tables.csv import read_rows, start_of
from ..tables.layout import BLANKS, LOOK, Layout, cells_of
from ..tables.parquet import numbers_of, present_in, zero_filled
from ..tables.streams import Table, streams_of
from ..tables.tables import open_file

FORMAT = Format(
    name="rtklib",
    title="RTKLIB solution",
    files="*.pos",
    reads="One stream with the columns of the header: latitude, longitude and height, ECEF or a "
    "baseline; Q, ns, standard deviations, age, ratio. Degrees, minutes and seconds become "
    "degrees. Times are ns since 1970 on the clock that the header names (GPST, UTC, JST), from "
    "dates or from the week and its seconds. GPST is not converted: it has no leap seconds.",
    refuses="NMEA sentences.",
    package="pyarrow",
    extra="tables",
    example='recording = rbc.data.open("rover.pos")',
)
_CLOCKS = ("GPST", "UTC", "JST")
_PLACES = ("latitude(", "x-ecef(", "e-baseline(")
_DATE = re.compile(r"\d{4}/\d{1,2}/\d{1,2}")
_PARTS = ("(d)", "(')", "(s)")  # of degrees, minutes and seconds
_DMS = "(d'\")"
_EPOCH = 315_964_800  # s from 1970 to 1980-01-06, where GPS weeks begin
_WEEK = 604_800  # s
_MOST_WEEKS = 1 << 13
_NS = 10**9


@dataclass(frozen=True)
class Header:
    """The clock and the columns in the lines above the rows."""

    clock: str  # GPST, UTC, JST
    is_date: bool
    layout: Layout


def sniff(path: str) -> bool:
    return os.path.isfile(path) and header_of(start_of(path)[:LOOK]) is not None


def open(path: str, options: Options) -> Recording:
    return open_file(path, options, FORMAT.title, _read)


def header_of(start: bytes) -> Header | None:
    """Return what the first lines of a file say; None if it is not a solution of RTKLIB."""
    if not start.startswith(b"%"):
        return None
    names: list[str] = []
    text = ""
    for number, line in enumerate(start.decode("latin-1").splitlines()):
        if line.startswith("%"):
            words = re.split(r"[\s,;]+", line.strip("% \t"))
            if words[0] in _CLOCKS and any(place in line for place in _PLACES):
                names, text = [word for word in words if word], line
            continue
        if not line.strip():
            continue
        if not names:
            return None
        delimiter = next((d for d in ",;\t" if d in line), BLANKS)
        cells = cells_of(line, delimiter)
        is_date = _DATE.match(cells[0]) is not None
        return Header(names[0], is_date, _layout(names, delimiter, cells, number, is_date))
    if not names:
        return None
    return Header(names[0], True, _layout(names, "," if "," in text else BLANKS, (), 0, True))


def _layout(names: list[str], delimiter: str, cells: Any, first: int, is_date: bool) -> Layout:
    """Return the columns: the time is one or two of them, degrees may be three."""
    time = ["date", "time"] if is_date else ["week", "tow"]
    if is_date and delimiter != BLANKS and cells and " " in cells[0]:
        time = ["stamp"]
    columns: list[str] = []
    for name in names[1:]:
        if name.endswith(_DMS):
            columns += [name[: -len(_DMS)] + part for part in _PARTS]
        else:
            columns.append(name)
    floats = tuple(name for name in columns if name not in ("Q", "ns"))
    if not is_date:
        floats = ("tow", *floats)
    return Layout(delimiter, None, (*time, *columns), first, "latin-1", comments="%", floats=floats)


def _read(stem: str, path: str, options: Options) -> Table:
    header = header_of(start_of(path)[:LOOK])
    if header is None:
        raise FormatError(path, "", "has no header of RTKLIB any more")
    layout = header.layout
    table = read_rows(path, layout, options.limit, options.damage)
    table = _in_degrees(path, table)
    names = layout.names or ()
    reason = f"{header.clock} as in the file"
    if header.clock == "GPST":
        reason += ", without leap seconds"
    if names[0] == "stamp":
        clock = Clock(header.clock, "i", "ns", ("stamp",), "date", reason=reason)
    elif header.is_date:
        clock = Clock(header.clock, "i", "ns", ("date", "time"), "day", reason=reason)
    else:
        table = _with_weeks(path, table, options)
        clock = Clock(header.clock, "i", "ns", ("tow",), reason=f"week and seconds: {reason}")
    if clock.form != "numbers":
        table = _as_texts(table, clock.columns)
    made = streams_of(stem, path, table, clock)
    made.names = (header.clock, *names[len(names) - len(table.column_names) + 1 :])
    return made


def _as_texts(table: Any, names: Any) -> Any:
    """Return a table whose dates and times of day are texts, for columns without a row too."""
    arrow = needed("pyarrow", "tables", "a solution")
    for name in names:
        kind = table.schema.field(name).type
        if arrow.types.is_null(kind):
            place = table.column_names.index(name)
            table = table.set_column(place, name, table[name].cast(arrow.string()))
    return table


def _with_weeks(path: str, table: Any, options: Options) -> Any:
    """Replace the week and its seconds by ns since 1970."""
    import numpy as np

    arrow = needed("pyarrow", "tables", "a solution")
    there = present_in(table["week"]) & present_in(table["tow"])
    if not arrow.types.is_integer(table.schema.field("week").type) and len(table):
        raise FormatError(path, "", "has weeks that are not whole numbers")
    week = numbers_of(path, "week", zero_filled(table["week"])) if len(table) else np.zeros(0)
    tow = numbers_of(path, "tow", zero_filled(table["tow"]))
    good = (week >= 0) & (week < _MOST_WEEKS) & (tow >= 0) & (tow <= _WEEK)
    if not good[there].all():
        row = int(np.argmax(~good & there))
        text = f"is week {week[row]} and {tow[row]} s, expected up to {_WEEK} s in a week"
        options.damage.found(path, f"row {row}", text)
    there &= good
    week, tow = np.where(there, week, 0).astype(np.int64), np.where(there, tow, 0.0)
    ns = (week * _WEEK + _EPOCH) * _NS + np.rint(tow * _NS).astype(np.int64)
    times = arrow.chunked_array([arrow.array(ns, mask=~there)])
    return table.drop_columns(["week", "tow"]).append_column("tow", times)


def _in_degrees(path: str, table: Any) -> Any:
    """Join degrees, minutes and seconds."""
    import numpy as np

    arrow = needed("pyarrow", "tables", "a solution")
    for name in [n[: -len(_PARTS[0])] for n in table.column_names if n.endswith(_PARTS[0])]:
        parts = []
        there = np.ones(len(table), bool)
        for part in _PARTS:
            column = table[f"{name}{part}"]
            there &= present_in(column)
            parts.append(numbers_of(path, name, zero_filled(column)))
        size = np.abs(parts[0]) + parts[1] / 60 + parts[2] / 3600
        joined = arrow.chunked_array([arrow.array(np.copysign(size, parts[0]), mask=~there)])
        place = table.column_names.index(f"{name}{_PARTS[0]}")
        table = table.drop_columns([f"{name}{part}" for part in _PARTS])
        table = table.add_column(place, f"{name}(deg)", joined)
    return table
