"""A common clock for streams of different rates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from .._arguments.arrays import LIBRARY_TYPES
from .._arguments.time_units import Unit, require_one_unit, ticks_of, unit_named
from .._arguments.to_numpy import on_host
from .._library.errors import REFUSALS, shown
from .._operations.stream import Stream
from .._printable import kind_of, printable


def clock(
    streams: Iterable[Stream[Any]] | Mapping[str, Stream[Any]],
    rate: float,
    span: Literal["intersection", "union"] = "intersection",
    *,
    unit: str | None = None,
) -> Any:
    """Return evenly spaced query times over the time range of streams.

    This reads the first and the last time of each stream; on CUDA it waits for them.

    Parameters
    ----------
    streams
        :class:`Stream` of one recording each, in a list or a dict: without a batch.
    rate
        Number of times per second; for float times without ``unit``, per 1 of their unit.
    span
        "intersection": from the latest first sample to the earliest last sample of the streams, so
        that every stream has samples around all times. "union": from the earliest first sample to
        the latest last sample.
    unit
        Unit of times that have none of their own: "ns", "us", "ms" or "s".

    Returns
    -------
    array [T]
        Times in the unit and the dtype of the streams' times, from the library of the first
        stream's times, on its device; from NumPy for times of pandas, polars and pyarrow. Each time
        is rounded separately, so there is no drift.

    Raises
    ------
    ValueError
        The streams have no time in common, a stream has no samples or has a batch, or a value is
        invalid.
    TypeError
        The streams' units differ, or integer times have no unit.

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> start = np.datetime64("2024-05-01T12:00:00", "ns")
    >>> arm = rbc.Stream(np.zeros((400, 7)), start + np.arange(400) * np.timedelta64(10, "ms"))
    >>> camera = rbc.Stream(np.zeros((90, 2)), start + np.arange(90) * np.timedelta64(33, "ms"))
    >>> rbc.clock([arm, camera], 30)[:3]
    array(['2024-05-01T12:00:00.000000000', '2024-05-01T12:00:00.033333333',
           '2024-05-01T12:00:00.066666667'], dtype='datetime64[ns]')
    """
    import numpy as np

    named = named_streams(streams)
    own = common_unit(named, unit)
    per_second = 1.0 if own is None else own.per_second
    rate = _positive(rate)
    if span not in ("intersection", "union"):
        raise ValueError(f"span: is {shown(span)}, expected 'intersection' or 'union'")
    ends = {name: _ends(stream, name) for name, stream in named.items()}
    first, last = (max, min) if span == "intersection" else (min, max)
    begin, end = first(e[0] for e in ends.values()), last(e[1] for e in ends.values())
    if begin > end:
        late = max(ends, key=lambda name: ends[name][0])
        early = min(ends, key=lambda name: ends[name][1])
        raise ValueError(_apart(printable(late), begin, printable(early), end, own))
    whole = isinstance(begin, int)
    step = per_second / rate
    if whole and step < 1:
        name = printable(next(iter(named)))
        what = (
            "integers without a unit" if own is None else f"whole {_WORDS.get(own.name, own.name)}"
        )
        seconds = step / per_second if own else step
        raise ValueError(
            f"rate: is {rate:g}, but the times of {name} are {what}, so no step of {seconds:g} s "
            "is possible. Their unit may be wrong (unit='ns'), or the stamps lost their decimals"
        )
    count = int((end - begin) / step * (1 + 2**-50)) + 1
    steps = np.arange(count) * step
    times = begin + np.rint(steps).astype(np.int64) if whole else begin + steps
    times = times[times <= end]
    return _in_library_of(times, next(iter(named.values())))


_WORDS = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_YEARS = (946_684_800, 4_102_444_800)  # s since 1970: from 2000 to 2100


def _apart(late: str, begin: Any, early: str, end: Any, unit: Unit | None) -> str:
    """Return a message about two streams without a common time; their units may be the reason."""
    per_second = 1.0 if unit is None else unit.per_second
    text = f"{late} and {early} have no time in common: {late} begins at {_date(begin, per_second)}"
    text += f", {early} ends at {_date(end, per_second)}"
    looks = {name: _looks_like(time) for name, time in ((late, begin), (early, end))}
    if looks[late] != looks[early]:
        shown = " and ".join(f"{name} looks like {unit}" for name, unit in looks.items() if unit)
        return f"{text}. Their units differ: {shown}"
    return f"{text}. Pass span='union' to keep both"


def _date(time: Any, per_second: float) -> str:
    """Return a time as text, with its date if it is plausible."""
    import numpy as np

    seconds = time / per_second
    if not _YEARS[0] <= seconds < _YEARS[1]:
        return f"{time:.10g}" if isinstance(time, float) else str(time)
    date = str(np.datetime64(int(seconds), "s")).replace("T", " ")
    return f"{time} ({date})"


def _looks_like(time: Any) -> str | None:
    """Return the unit in which a time since 1970 is between the years 2000 and 2100, or None."""
    units = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
    return next((u for u, per in units.items() if _YEARS[0] <= time / per < _YEARS[1]), None)


def named_streams(streams: Any) -> dict[str, Any]:
    """Return streams by the names that messages and tables use."""
    if isinstance(streams, Stream) or not isinstance(streams, (Mapping, Iterable)):
        raise TypeError(
            f"streams: is {kind_of(streams)}, expected a list or a dict of robocache.Stream"
        )
    named: Any = streams
    if not isinstance(streams, Mapping):
        named = {f"streams[{n}]": stream for n, stream in enumerate(streams)}
    for name, stream in named.items():
        if not isinstance(stream, Stream):
            raise TypeError(f"{printable(name)}: is {kind_of(stream)}, expected a robocache.Stream")
    if not named:
        raise ValueError("streams: got 0, expected 1 or more")
    return dict(named)


def common_unit(named: dict[str, Any], unit: str | None) -> Unit | None:
    """Return the unit of the times of all streams, or ``unit`` if they have none."""
    first_name, first = next(iter(named.items()))
    units: dict[str, Unit | None] = {name: stream._unit for name, stream in named.items()}
    for name, own in units.items():
        require_one_unit(
            own, f"{printable(name)}.times", first._unit, f"{printable(first_name)}.times"
        )
    if unit is None:
        return units[first_name]
    named_unit = unit_named(unit)
    own = units[first_name]
    if own is not None and (own.name, own.count) != (named_unit.name, 1):
        raise ValueError(f"unit: is {unit!r}, but {printable(first_name)}.times is {own}")
    return own or named_unit


def _positive(rate: Any) -> float:
    try:
        number = float(rate)
    except REFUSALS:
        raise TypeError(f"rate: is {shown(rate)}, expected a number") from None
    if not 0 < number < float("inf"):
        raise ValueError(f"rate: is {number:g}, expected a finite number above 0")
    return number


def _ends(stream: Any, name: str) -> tuple[Any, Any]:
    """Return the first and the last time on the clock of the queries, as ints or floats."""
    times = stream._native[2]
    if (
        len(times.shape) != 1
        or stream.batch_offsets is not None
        or len(stream._native[1].shape) != 2
    ):
        raise ValueError(
            f"{printable(name)}: has a batch, expected one recording: values [S,D], times [S]"
        )
    if times.shape[0] == 0:
        raise ValueError(f"{printable(name)}: has no samples")
    edges = on_host(times[:: max(1, times.shape[0] - 1)][:2], f"{printable(name)}.times")
    offset = offset_of(stream)
    first, last = edges[0].item() + offset, edges[-1].item() + offset
    for end, edge in (("begins", first), ("ends", last)):
        if not math.isfinite(edge):
            raise ValueError(f"{printable(name)}: {end} at {edge}, expected a finite time")
    return first, last


def offset_of(stream: Any) -> Any:
    """Return the clock offset in the unit of the times."""
    if stream._unit is not None:
        return ticks_of(stream.clock_offset, "clock_offset", stream._unit)
    return stream.clock_offset


def _in_library_of(times: Any, stream: Any) -> Any:
    """Return NumPy times with the unit, dtype and library of the times of a stream."""
    own_times = stream._native[2]
    if stream._unit is not None:
        return times.view(stream._unit.dtype)
    framework = LIBRARY_TYPES.get(type(own_times))
    dtype = str(own_times.dtype).rpartition(".")[2]
    if framework is None or framework.is_numpy:
        return times.astype(dtype)
    return framework.sequence(times, "times", dtype, own_times)
