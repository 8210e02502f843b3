"""Resampling and fusion of pandas and polars DataFrames."""

from __future__ import annotations

import fnmatch
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .._arguments.tables import is_frame, library_of
from .._arguments.time_units import Unit, is_length, require_one_unit, ticks_of
from .._arguments.times import times_of
from .._arguments.to_numpy import on_host
from .._arguments.values import columns_of
from .._library.errors import shown
from .._printable import kind_of
from .resample import resample

if TYPE_CHECKING:
    from .._typing import MethodName, Outside

_STEPS = ("nearest", "previous", "next")
_STEP = re.compile(r"\s*(\d+(?:\.\d+)?)?\s*(ns|us|ms|s|min|h)\s*")
_PICOSECONDS = {"ns": 10**3, "us": 10**6, "ms": 10**9, "s": 10**12}
_PICOSECONDS |= {"min": 60 * 10**12, "h": 3600 * 10**12}
_plain: Any = resample


def resample_frame(
    frame: Any,
    clock: Any,
    *,
    time: str | None = None,
    methods: Mapping[str, MethodName] | None = None,
    method: MethodName = "linear",
    outside: Outside = "hold",
    fill_value: float | None = None,
    max_gap: Any = None,
    tolerance: Any = None,
    arrivals: str | None = None,
    lag: Any = 0,
    causal: bool = False,
    max_age: Any = None,
) -> Any:
    """Resample the columns of a DataFrame at the times of a clock, as :func:`resample` does.

    Parameters
    ----------
    frame
        A DataFrame of pandas or polars with columns of numbers, sorted by time.
    clock
        The times to resample at, [T]: an Index, a Series, an array or a list, in the unit of the
        frame's times. Or the step between them, such as "500ms" or a timedelta: the times are then
        from the first to the last one of the frame.
    time
        The column that holds the times. None: the index of a pandas DataFrame.
    methods
        Methods by patterns of column names, such as ``{"q_*": "slerp"}``. The first pattern that
        matches a column applies. slerp takes columns in groups of four, in the order of the frame.
    method
        The method for all other columns.
    outside, max_gap, tolerance
        As for :func:`resample`. ``tolerance`` applies to columns of nearest, previous and next.
    fill_value
        Written where there is no value. None: NaN in float columns, 0 in others.
    arrivals
        The column that holds the time at which each row arrived, for rows that a robot sees. It is
        not resampled. None: all rows had arrived.
    lag, causal, max_age
        As for :func:`resample`.

    Returns
    -------
    DataFrame of the same library
        The clock is its index, in polars the column ``time``. The bool column "valid" is True where
        all columns were interpolated or met exactly. Columns of integers and bool keep their dtype
        with nearest, previous and next, and become float64 with the other methods.

    Raises
    ------
    ValueError
        Two columns have the same name, a pattern matches no column, or a value is invalid.
    TypeError
        ``frame`` is not a DataFrame, a column is not numeric, or units differ.

    Examples
    --------
    >>> import pandas as pd
    >>> import robocache as rbc
    >>> index = pd.date_range("2024-05-01", periods=3, freq="100ms")
    >>> arm = pd.DataFrame({"x": [0.0, 1.0, 2.0], "closed": [False, True, True]}, index=index)
    >>> clock = index[:2] + pd.Timedelta("50ms")
    >>> rbc.resample_frame(arm, clock, methods={"closed": "previous"})
                               x  closed  valid
    2024-05-01 00:00:00.050  0.5   False   True
    2024-05-01 00:00:00.150  1.5    True   True
    >>> rbc.resample_frame(arm[["x"]], "50ms")["x"].tolist()
    [0.0, 0.5, 1.0, 1.5, 2.0]
    """
    options = {"outside": outside, "max_gap": max_gap, "tolerance": tolerance}
    options.update(lag=lag, causal=causal, max_age=max_age)
    table = _table_of(frame, "frame", time, arrivals)
    plan = _Methods(methods or {}, method)
    clock = _clock_of(clock, [table], library_of(frame))
    ticks, unit = times_of(clock, "clock")
    columns, valid = _resampled(table, clock, plan, "", fill_value, options)
    plan.require_all_used()
    return _made(frame, {**columns, "valid": valid}, clock, ticks, unit, time)


def fuse_frames(
    frames: Mapping[str, Any],
    clock: Any,
    *,
    time: str | None = None,
    methods: Mapping[str, MethodName] | None = None,
    method: MethodName = "linear",
    outside: Outside = "hold",
    fill_value: float | None = None,
    max_gap: Any = None,
    tolerance: Any = None,
    arrivals: str | Mapping[str, str] | None = None,
    lag: Any = 0,
    causal: bool = False,
    max_age: Any = None,
) -> Any:
    """Resample DataFrames of different rates at the times of one clock, and join their columns.

    Each frame is resampled as by :func:`resample_frame`.

    Parameters
    ----------
    frames
        DataFrames by stream name.
    clock, time, method, outside, fill_value
        As for :func:`resample_frame`. With a step, the times are those that all frames cover.
    methods
        Methods by patterns of column names of the result: ``{"imu.q_*": "slerp"}``.
    max_gap, tolerance, max_age
        One value for all streams, or a dict by stream name.
    arrivals
        The column of times of arrival of all frames, or a dict by stream name: a frame that is not
        in it sees its whole recording, as actions do.
    lag, causal
        As for :func:`resample`.

    Returns
    -------
    DataFrame of the library of the first frame
        The clock is its index or column. The other columns are "stream.column" and, for each
        stream, "stream.valid" of bool.

    Raises
    ------
    ValueError
        As for :func:`resample_frame`.
    TypeError
        As for :func:`resample_frame`.

    Examples
    --------
    >>> import pandas as pd
    >>> import robocache as rbc
    >>> index = pd.to_timedelta([0, 10, 20], unit="ms")
    >>> arm = pd.DataFrame({"x": [0.0, 1.0, 2.0]}, index=index)
    >>> camera = pd.DataFrame({"label": [7, 8]}, index=index[[0, 2]])
    >>> rbc.fuse_frames({"arm": arm, "cam": camera}, index, methods={"cam.label": "nearest"})
                            arm.x  arm.valid  cam.label  cam.valid
    0 days 00:00:00.000000    0.0       True          7       True
    0 days 00:00:00.010000    1.0       True          7       True
    0 days 00:00:00.020000    2.0       True          8       True
    """
    if not isinstance(frames, Mapping) or not frames:
        raise TypeError(f"frames: is {shown(frames)}, expected a dict of DataFrames by their names")
    tables = [
        _table_of(frame, f"frames[{name!r}]", time, _own(arrivals, name))
        for name, frame in frames.items()
    ]
    clock = _clock_of(clock, tables, library_of(next(iter(frames.values()))))
    ticks, unit = times_of(clock, "clock")
    plan = _Methods(methods or {}, method)
    joined: dict[str, Any] = {}
    for name, table in zip(frames, tables):
        options = {
            "outside": outside,
            "max_gap": _own(max_gap, name),
            "tolerance": _own(tolerance, name),
            "lag": lag,
            "causal": causal,
            "max_age": _own(max_age, name),
        }
        columns, valid = _resampled(table, clock, plan, f"{name}.", fill_value, options)
        joined.update({f"{name}.{column}": values for column, values in columns.items()})
        joined[f"{name}.valid"] = valid
    plan.require_all_used()
    return _made(next(iter(frames.values())), joined, clock, ticks, unit, time)


def _own(option: Any, name: str) -> Any:
    """Return an option of one frame: of all frames, or by the name of a frame."""
    return option.get(name) if isinstance(option, Mapping) else option


@dataclass
class _Table:
    name: str  # of the argument
    times: Any
    columns: dict[str, Any]
    arrivals: Any = None


def _table_of(frame: Any, name: str, time: str | None, arrivals: str | None = None) -> _Table:
    if arrivals is not None and is_frame(frame):
        if arrivals not in frame.columns:
            raise ValueError(f"{name}: has no column {arrivals!r}, the value of arrivals")
        in_pandas = library_of(frame) == "pandas"
        rest = frame.drop(columns=arrivals) if in_pandas else frame.drop(arrivals)
        table = _table_of(rest, name, time)
        table.arrivals = frame[arrivals]
        return table
    if not is_frame(frame) or library_of(frame) == "pyarrow":
        raise TypeError(f"{name}: is {kind_of(frame)}, expected a DataFrame of pandas or polars")
    if time is not None:
        if time not in frame.columns:
            raise ValueError(f"{name}: has no column {time!r}")
        rest = frame.drop(columns=time) if library_of(frame) == "pandas" else frame.drop(time)
        return _Table(name, frame[time], dict(columns_of(rest, name)))
    if library_of(frame) == "polars":
        raise ValueError(f"{name}: a polars DataFrame has no index; pass time= with the column")
    if isinstance(frame.index, sys.modules["pandas"].RangeIndex):
        raise ValueError(
            f"{name}: its index counts rows; pass time= with the column of times, or call set_index"
        )
    return _Table(name, frame.index, dict(columns_of(frame, name)))


def _clock_of(clock: Any, tables: Sequence[_Table], library: str) -> Any:
    """Return times with a step, from when all tables have begun until the first one ends."""
    import numpy as np

    if not isinstance(clock, str) and not is_length(clock):
        return clock
    begins: list[int] = []
    ends: list[int] = []
    units: list[Unit] = []
    for table in tables:
        ticks, unit = times_of(table.times, f"{table.name} times")
        if unit is None:
            raise TypeError(
                f"clock: is {shown(clock)}, but the times of {table.name} have no unit; pass an "
                "array of times"
            )
        host = on_host(ticks)
        if not len(host):
            raise ValueError(f"{table.name}: has no rows")
        require_one_unit(unit, table.name, units[0] if units else unit, tables[0].name)
        begins.append(int(host[0]))
        ends.append(int(host[-1]))
        units.append(unit)
    step = int(ticks_of(_duration(clock), "clock", units[0]))
    if step <= 0:
        raise ValueError(f"clock: is {shown(clock)}, expected a duration above 0")
    if max(begins) > min(ends):
        raise ValueError("clock: the frames have no time in common, or their times go back")
    made = np.arange(max(begins), min(ends) + 1, step).view(units[0].dtype)
    module = sys.modules[library]
    column = tables[0].times
    if library == "polars":
        zone = getattr(column.dtype, "time_zone", None)
        times = module.Series(made)
        return times.dt.replace_time_zone("UTC").dt.convert_time_zone(zone) if zone else times
    index = module.Index(made)
    zone = getattr(column.dtype, "tz", None)
    return index.tz_localize("UTC").tz_convert(zone) if zone else index


def _duration(step: Any) -> Any:
    """Return a step such as "500ms" as a duration; a duration is returned unchanged."""
    import numpy as np

    if not isinstance(step, str):
        return step
    match = _STEP.fullmatch(step)
    if match is None:
        raise ValueError(
            f"clock: is {step!r}, expected a duration, such as '500ms', '0.1s' or '1min'"
        )
    amount = Fraction(match[1] or "1") * _PICOSECONDS[match[2]]
    if amount.denominator != 1 or amount >= 2**63:
        raise ValueError(f"clock: is {step!r}, expected a whole number of ps")
    return np.timedelta64(int(amount), "ps")


class _Methods:
    """Methods of columns, by patterns of their names."""

    def __init__(self, patterns: Mapping[str, Any], otherwise: Any) -> None:
        self._patterns = patterns
        self._otherwise = otherwise
        self._unused = set(patterns)

    def method_of(self, column: str) -> Any:
        for pattern, method in self._patterns.items():
            if fnmatch.fnmatchcase(column, pattern):
                self._unused.discard(pattern)
                return method
        return self._otherwise

    def require_all_used(self) -> None:
        for pattern in self._patterns:
            if pattern in self._unused:
                raise ValueError(f"methods: {pattern!r} matches no column")


def _resampled(
    table: _Table,
    clock: Any,
    plan: _Methods,
    prefix: str,
    fill_value: float | None,
    options: dict[str, Any],
) -> tuple[dict[str, Any], Any]:
    """Return the columns at the times of the clock, and a mask of the rows where all are valid."""
    import numpy as np

    methods = {column: plan.method_of(f"{prefix}{column}") for column in table.columns}
    turning = [column for column, method in methods.items() if method == "slerp"]
    if len(turning) % 4:
        raise ValueError(
            f"methods: slerp matches {len(turning)} column{'s' * (len(turning) != 1)} "
            f"({', '.join(map(str, turning))}), "
            "expected a multiple of 4"
        )
    wide = np.result_type(np.float32, *(table.columns[column] for column in turning))
    calls: dict[Any, list[str]] = {}  # the columns of each dtype
    for column, values in table.columns.items():
        kind = values.dtype
        if kind.kind in "iub" and methods[column] not in _STEPS:
            kind = np.dtype(np.float64)
        calls.setdefault(wide if column in turning else kind, []).append(column)

    found: dict[str, Any] = {}
    valid = None
    for kind, names in calls.items():
        names.sort(key=lambda column: str(methods[column]))  # stable: each method in one run
        runs = [methods[column] for column in names]
        groups = [(runs.index(m), runs.count(m), m) for m in dict.fromkeys(runs)]
        own = dict(options)
        if own["tolerance"] is not None and len(calls) > 1 and not {*runs} & {*_STEPS}:
            own["tolerance"] = None
        fill = fill_value if fill_value is not None else (np.nan if kind.kind == "f" else 0.0)
        values = np.stack([table.columns[column].astype(kind) for column in names], axis=1)
        out, mask = _plain(
            values,
            table.times,
            clock,
            method=groups,
            fill_value=fill,
            return_valid=True,
            arrivals=table.arrivals,
            **own,
        )
        found.update(zip(names, out.T))
        valid = mask if valid is None else valid & mask
    if valid is None:
        raise ValueError(f"{table.name}: has no columns other than its times")
    return {column: found[column] for column in table.columns}, valid


def _made(
    frame: Any, columns: dict[str, Any], clock: Any, ticks: Any, unit: Any, time: str | None
) -> Any:
    """Return the columns on the clock, as a DataFrame of the library of ``frame``."""
    library = library_of(frame)
    module = sys.modules[library]
    own = library_of(clock) == library
    if not own:
        clock = on_host(ticks, "clock")
        clock = clock if unit is None else clock.view(unit.dtype)
    if library == "polars":
        index = module.Series(time, clock)
        if unit is not None and unit.zoned and not own:
            index = index.dt.replace_time_zone("UTC")
        named: dict[Any, Any] = {time: index, **columns}
        return module.DataFrame(named)
    index = module.Index(clock, name=time or frame.index.name)
    if unit is not None and unit.zoned and not own:
        index = index.tz_localize("UTC")
    return module.DataFrame(columns, index=index)
