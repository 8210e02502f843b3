"""Recorded streams, tracks and point clouds as arguments instead of arrays.

Their classes have a method ``_samples`` or ``_cloud``, so that no module of recordings is imported
here. Plain arrays never come here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .arrays import SEQUENCES
from .times import times_of
from .to_numpy import on_host


@dataclass(frozen=True)
class Samples:
    """The samples of a recorded stream, or of a track."""

    what: str  # for messages, such as "stream /imu"
    values: Any  # [n,D]
    times: Any = None  # [n], in NumPy with their unit if they have one
    batch_offsets: Any = None  # int64 [E+1]
    arrivals: Any = None  # [n], as times


def samples_of(holder: Any) -> Samples | None:
    """Return the samples of a recorded stream or a track; None for any other object."""
    method = getattr(type(holder), "_samples", None)
    if method is None:
        return None
    samples: Samples = method(holder)
    if samples.values is None:
        raise ValueError(f"values: {samples.what} has no values: they are in files")
    return samples


def taken_from(
    holder: Any, times: Any, query_times: Any, batch_offsets: Any, arrivals: Any
) -> tuple[Any, Any, Any, Any, Any] | None:
    """Return values, times, query times, offsets and arrivals of samples instead of values.

    With one array of times, these are the query times, and the samples have their own times.
    """
    samples = samples_of(holder)
    if samples is None:
        return None
    if query_times is None:
        times, query_times = None, times
    if query_times is None:
        raise TypeError("query_times: are missing: pass the times to resample at")
    if samples.batch_offsets is not None and batch_offsets is not None:
        raise ValueError(f"batch_offsets: {samples.what} has its own; do not pass others")
    if samples.arrivals is not None:
        if arrivals is not None:
            raise ValueError(f"arrivals: {samples.what} has its own; do not pass others")
        if times is not None:
            raise ValueError(f"times: {samples.what} has arrivals, which belong to its own times")
    if times is None:
        times, arrivals, query_times = matched(samples, query_times, arrivals)
    offsets = batch_offsets if samples.batch_offsets is None else samples.batch_offsets
    return samples.values, times, query_times, offsets, arrivals


def matched(samples: Samples, query_times: Any, arrivals: Any = None) -> tuple[Any, Any, Any]:
    """Return the times of samples, their arrivals, and query times in their unit.

    Whole numbers are ticks of that unit. Dates are compared with times since 1970.
    """
    import numpy as np

    times = samples.times
    if samples.arrivals is not None:
        arrivals = samples.arrivals
    if times is None:
        raise ValueError(f"times: {samples.what} has no times; pass them before query_times")
    if str(times.dtype)[:2] not in ("ti", "da"):
        return times, arrivals, query_times
    queries, unit = times_of(query_times, "query_times")
    if unit is None:
        array = np.asarray(queries) if type(queries) in SEQUENCES else on_host(queries)
        if array.dtype.kind not in "iu":
            raise TypeError(
                f"query_times: are {array.dtype} without a unit, but the times of {samples.what} "
                f"are {times.dtype}; pass whole ticks, or times with a unit"
            )
        return times, arrivals, array.astype(np.int64).view(times.dtype)
    if unit.kind == "datetime64" and times.dtype.kind == "m":
        dates = f"datetime64[{np.datetime_data(times.dtype)[0]}]"
        times = times.view(dates)
        if samples.arrivals is not None:
            arrivals = arrivals.view(dates)
    return times, arrivals, query_times


def array_in(holder: Any) -> Any:
    """Return the points of a cloud; any other object is returned unchanged."""
    method = getattr(type(holder), "_cloud", None)
    return holder if method is None else method(holder)
