"""A second look at a call that was refused as it came: what it is given as the library takes it.

Plain arrays go straight to the library, and nothing here costs them anything.
"""

from __future__ import annotations

from typing import Any

from ._arrays import LIBRARY_TYPES, SEQUENCES
from ._errors import REFUSALS
from ._given import times_of, values_of
from ._units import Unit, require_one_unit, ticks_of


def taken_again(
    values: Any, times: Any, query_times: Any, offsets: Any, max_gap: Any, tolerance: Any
) -> tuple[Any, Any, Any, Any, Any] | None:
    """Arguments of a resampling, converted; None if there is nothing to convert."""
    try:
        return _taken(values, times, query_times, offsets, max_gap, tolerance)
    except (TypeError, ValueError) as error:
        raise error from None  # what was refused first says less


def _taken(
    values: Any, times: Any, query_times: Any, offsets: Any, max_gap: Any, tolerance: Any
) -> tuple[Any, Any, Any, Any, Any] | None:
    own_values, own_times, unit = sampled(values, times)
    own_queries = queries_of(query_times, own_times, unit, "times")
    gap, limit = limits_of(max_gap, tolerance, unit)
    own_values = one_for_each(own_values, own_queries, offsets)
    given = (values, times, query_times, max_gap, tolerance)
    taken = (own_values, own_times, own_queries, gap, limit)
    return taken if any(a is not b for a, b in zip(given, taken)) else None


def streams_again(streams: Any, query_times: Any) -> tuple[Any, Any] | None:
    """Streams and query times of a fusion, converted; None if there is nothing to convert."""
    if not all(hasattr(stream, "_native") for stream in streams):
        return None
    try:
        first = streams[0]
        name = "streams[0].times"
        own_queries = queries_of(query_times, first._native[2], first._unit, name)
    except (TypeError, ValueError) as error:
        raise error from None  # what was refused first says less
    rows = _shape(own_queries)
    batches = [batch for stream in streams for batch in _batch(stream)]
    if len(rows) == 2:
        batches.append(rows[0])
    own_streams = streams
    if batches and any(not _batch(stream) for stream in streams):
        own_streams = [_one_for_each(stream, batches[0]) for stream in streams]
    if own_queries is query_times and own_streams is streams:
        return None
    return own_streams, own_queries


class _Broadcast:
    """A stream of one recording, for each of a batch."""

    def __init__(self, stream: Any, batch: int) -> None:
        native, values, *others = stream._native
        self._native = (native, broadcast(values, batch), *others)
        self._unit = stream._unit


def _batch(stream: Any) -> tuple[int, ...]:
    """(B,) of a stream that has a batch; that of a packed one is counted by the library."""
    _, values, _, options, *_ = stream._native
    shape = _shape(values)
    if options[3] is not None:
        return tuple(extent - 1 for extent in _shape(options[3])[:1])
    return shape[:1] if len(shape) == 3 else ()


def _one_for_each(stream: Any, batch: int) -> Any:
    return stream if _batch(stream) else _Broadcast(stream, batch)


def sampled(values: Any, times: Any, prefix: str = "") -> tuple[Any, Any, Unit | None]:
    """Values and times as arrays, and the unit of the latter."""
    times, unit = times_of(times, f"{prefix}times")
    return values_of(values, f"{prefix}values"), times, unit


def queries_of(query_times: Any, times: Any, unit: Unit | None, name: str) -> Any:
    """Query times in the unit of ``times``, which is of this name. A list of numbers stays one."""
    queries, own = times_of(query_times, "query_times")
    if own is None and unit is None:
        # A list takes the dtype of times; the library tells where two arrays differ.
        kept = type(query_times) in LIBRARY_TYPES and not _is_whole(times)
        return query_times if kept or type(query_times) in SEQUENCES else queries
    require_one_unit(own, "query_times", unit, name)
    return queries


def _is_whole(times: Any) -> bool:
    return type(times) in LIBRARY_TYPES and "int" in str(times.dtype)


def limits_of(max_gap: Any, tolerance: Any, unit: Unit | None) -> tuple[Any, Any]:
    """max_gap and tolerance in ticks, where times have a unit."""
    if unit is not None:
        if max_gap is not None:
            max_gap = ticks_of(max_gap, "max_gap", unit)
        if tolerance is not None:
            tolerance = ticks_of(tolerance, "tolerance", unit)
    return max_gap, tolerance


def one_for_each(values: Any, query_times: Any, offsets: Any) -> Any:
    """One recording of [S,D] for each of B rows of queries, of its own memory."""
    rows = _shape(query_times)
    if offsets is None and len(rows) == 2 and len(_shape(values)) == 2:
        return broadcast(values, rows[0])
    return values


def broadcast(values: Any, batch: int) -> Any:
    """[B,S,D] of [S,D], with a stride of 0; as it is where its library knows of none."""
    framework = LIBRARY_TYPES.get(type(values))
    return values if framework is None else framework.broadcast(values, batch)


def _shape(array: Any) -> tuple[int, ...]:
    if type(array) in SEQUENCES:
        import numpy as np

        return np.shape(array)
    if type(array) not in LIBRARY_TYPES:
        return ()
    try:
        return tuple(array.shape)
    except REFUSALS:  # of a nested tensor of torch
        return ()
