"""Conversion of arguments that the library refused, for a second attempt.

Plain arrays go directly to the library, without the cost of these conversions.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from .._library.errors import REFUSALS
from .arrays import LIBRARY_TYPES, SEQUENCES
from .resample_params import BATCH_OFFSETS
from .time_units import Unit, require_one_unit, ticks_of
from .times import times_of
from .values import values_of


def taken_again(
    values: Any,
    times: Any,
    query_times: Any,
    arrivals: Any,
    batch_offsets: Any,
    durations: dict[str, Any],
) -> tuple[Any, Any, Any, Any, dict[str, Any]] | None:
    """Return the arguments of a resampling, converted; None if there is nothing to convert.

    ``durations`` are the other arguments in the unit of the times, by their names.
    """
    try:
        own_values, own_times, unit = sampled(values, times)
        own_queries = queries_of(query_times, own_times, unit, "times")
        own_arrivals = arrivals_of(arrivals, unit, "times")
        ticks = dict(zip(durations, ticks_or_numbers(unit, **durations)))
        own_values = one_for_each(own_values, own_times, own_queries, batch_offsets)
    except (TypeError, ValueError) as error:
        raise error from None  # the first error says less
    arguments = (values, times, query_times, arrivals, *durations.values())
    converted = (own_values, own_times, own_queries, own_arrivals, *ticks.values())
    for i in range(len(arguments)):  # no generator: see voxelize_sparse.py
        if arguments[i] is not converted[i]:
            return own_values, own_times, own_queries, own_arrivals, ticks
    return None


def arrivals_of(arrivals: Any, unit: Unit | None, name: str) -> Any:
    """Return arrivals in the unit of the times, the argument ``name``; None stays."""
    if arrivals is None:
        return None
    own, own_unit = times_of(arrivals, "arrivals")
    require_one_unit(own_unit, "arrivals", unit, name)
    return own


def streams_again(streams: Any, query_times: Any) -> tuple[Any, Any] | None:
    """Return streams and query times of a fusion, converted; None if nothing is to convert."""
    if not isinstance(streams, Sequence) or not streams:
        return None
    for stream in streams:
        if not hasattr(stream, "_native"):
            return None
    first = streams[0]
    try:
        queries = queries_of(query_times, first._native[2], first._unit, "streams[0].times")
    except (TypeError, ValueError) as error:
        raise error from None  # the first error says less
    converted = [_one_for_each(stream, queries) for stream in streams]
    if first._unit is not None:  # the second attempt compares the units again
        queries = query_times
    changed = queries is not query_times
    for i in range(len(converted)):
        changed = changed or converted[i] is not streams[i]
    return (converted, queries) if changed else None


def _one_for_each(stream: Any, query_times: Any) -> Any:
    """Return a stream of one recording, repeated for each of B rows of queries."""
    native, values, times, options, *others = stream._native
    for_each = one_for_each(values, times, query_times, options[BATCH_OFFSETS])
    if for_each is values:
        return stream
    converted = (native, for_each, times, options, *others)
    return SimpleNamespace(_native=converted, _unit=stream._unit)


def sampled(values: Any, times: Any, prefix: str = "") -> tuple[Any, Any, Unit | None]:
    """Return values and times as arrays, and the unit of the times."""
    times, unit = times_of(times, f"{prefix}times")
    return values_of(values, f"{prefix}values"), times, unit


def queries_of(query_times: Any, times: Any, unit: Unit | None, name: str) -> Any:
    """Return query times in the unit of ``times``, the argument ``name``.

    A list of numbers is returned unchanged.
    """
    queries, own = times_of(query_times, "query_times")
    if own is None and unit is None:
        # A list takes the dtype of times; the library raises the error if two arrays differ.
        kept = type(query_times) in LIBRARY_TYPES and not _is_whole(times)
        return query_times if kept or type(query_times) in SEQUENCES else queries
    require_one_unit(own, "query_times", unit, name)
    return queries


def _is_whole(times: Any) -> bool:
    return type(times) in LIBRARY_TYPES and "int" in str(times.dtype)


def ticks_or_numbers(unit: Unit | None, **durations: Any) -> list[Any]:
    """Return durations in ticks if times have a unit, else unchanged; None stays."""
    if unit is None:
        return list(durations.values())
    return [
        duration if duration is None else ticks_of(duration, name, unit)
        for name, duration in durations.items()
    ]


def refuse_mapped(**arrays: Any) -> None:
    """Refuse tensors inside of torch.vmap and similar transforms: they have no memory to read."""
    torch = sys.modules.get("torch")
    if torch is None:
        return
    for name, array in arrays.items():
        if isinstance(array, torch.Tensor) and torch._C._functorch.is_functorch_wrapped_tensor(
            array
        ):
            raise ValueError(
                f"{name}: is mapped by torch.vmap or transformed by torch.func; "
                "use robocache.torch.resample"
            )


def one_for_each(values: Any, times: Any, query_times: Any, batch_offsets: Any) -> Any:
    """Return values [S,D] of one recording, repeated for each of B rows of queries without a copy.

    Values with a batch, or of a library without strides of 0, are returned unchanged.
    """
    rows = _shape(query_times)
    if (
        batch_offsets is not None
        or len(rows) != 2
        or len(_shape(times)) != 1
        or len(_shape(values)) != 2
    ):
        return values
    return LIBRARY_TYPES[type(values)].broadcast(values, rows[0])


def _shape(array: Any) -> tuple[int, ...]:
    if type(array) in SEQUENCES:
        import numpy as np

        return np.shape(array)
    if type(array) not in LIBRARY_TYPES:
        return ()
    try:
        return tuple(array.shape)
    except REFUSALS:  # for example a nested tensor of torch
        return ()
