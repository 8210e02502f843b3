"""Matching of the samples of two sensors: by pairs, or by the sample for each query."""

from __future__ import annotations

from typing import Any

from .._arguments.options import code_of
from .._arguments.resample_params import are_ticks
from .._arguments.times import tolerance_of, two_lists_of

_DIRECTIONS = {"backward": 0, "forward": 1, "nearest": 2}
_MOST_EXACT = 2**53  # integers that float64 holds


def asof(
    times: Any,
    query_times: Any,
    direction: str = "backward",
    tolerance: Any = None,
    allow_exact_matches: bool = True,
) -> Any:
    """Return the index of the sample to use at each query, as ``pandas.merge_asof`` chooses it.

    Parameters
    ----------
    times : array, Series or list [N]
        Sample times, ascending. Equal times are allowed.
    query_times : array, Series or list [T]
        In the unit of ``times``, in any order.
    direction
        "backward": the last sample up to the query, and the last of equal ones. "forward": the
        first from the query on, and the first of equal ones. "nearest": the nearer of both; a tie
        goes to the earlier one.
    tolerance
        The largest distance of a sample from its query, in the unit of the times, or as a
        duration. None: any distance.
    allow_exact_matches
        False: a sample at exactly the time of the query does not match.

    Returns
    -------
    int64 array of NumPy [T]
        The index into ``times`` for each query; -1 if no sample matches.

    Raises
    ------
    ValueError
        An argument has a wrong shape or value, a time is NaN, or ``times`` decrease.
    TypeError
        The units differ, or ``tolerance`` is not a duration in them.

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> command, camera = np.array([0.0, 0.5, 1.0]), np.array([-0.1, 0.2, 0.5, 0.9])
    >>> rbc.asof(command, camera)
    array([-1,  0,  1,  1])
    >>> rbc.asof(command, camera, "nearest", tolerance=0.15)
    array([ 0, -1,  1,  2])
    """
    import numpy as np

    code_of(_DIRECTIONS, direction, "direction")
    samples, queries, unit = two_lists_of(times, "times", query_times, "query_times")
    samples, queries = _ordered(samples, "times"), _ordered(queries, "query_times")
    _refuse_decreasing(samples)
    if samples.dtype.kind != queries.dtype.kind:
        samples, queries = _floats_of(samples, "times"), _floats_of(queries, "query_times")
    common = np.result_type(samples, queries)
    samples, queries = samples.astype(common, copy=False), queries.astype(common, copy=False)
    limit = None
    if tolerance is not None:
        limit = tolerance_of(tolerance, unit, common.kind == "i")

    last = np.searchsorted(samples, queries, side="right" if allow_exact_matches else "left") - 1
    first = np.searchsorted(samples, queries, side="left" if allow_exact_matches else "right")
    first[first == len(samples)] = -1
    if limit is not None:
        last[(last >= 0) & (_span(queries, samples, last, 1) > limit)] = -1
        first[(first >= 0) & (_span(queries, samples, first, -1) > limit)] = -1
    if direction == "backward":
        return last.astype(np.int64, copy=False)
    if direction == "forward":
        return first.astype(np.int64, copy=False)
    nearer = _span(queries, samples, first, -1) < _span(queries, samples, last, 1)
    forward = (first >= 0) & ((last < 0) | nearer)
    return np.where(forward, first, last).astype(np.int64, copy=False)


def _ordered(array: Any, name: str) -> Any:
    """Return times as float32, float64 or int64. NaN raises an error."""
    import numpy as np

    if array.dtype.kind == "f":
        missing = np.flatnonzero(np.isnan(array))
        if len(missing):
            raise ValueError(f"{name}: is NaN at index {missing[0]}")
        return array.astype(np.result_type(array, np.float32), copy=False)
    return array.astype(np.int64, copy=False)


def _refuse_decreasing(times: Any) -> None:
    import numpy as np

    back = np.flatnonzero(times[1:] < times[:-1])
    if len(back):
        i = int(back[0]) + 1
        raise ValueError(
            f"times: decreases at index {i} ({times[i - 1]} -> {times[i]}); sort it first, "
            "such as with np.argsort(times, kind='stable')"
        )


def _floats_of(times: Any, name: str) -> Any:
    """Return times as float64, for comparison with floats."""
    import numpy as np

    if times.dtype.kind == "i":
        large = np.flatnonzero((times > _MOST_EXACT) | (times < -_MOST_EXACT))
        if len(large):
            raise TypeError(
                f"{name}: has {times[large[0]]}, which float64 cannot represent exactly, but the "
                "other times are floats; pass both as integers"
            )
    return times.astype(np.float64, copy=False)


def _span(queries: Any, samples: Any, indices: Any, sign: int) -> Any:
    """Return the distances of queries from their samples, exactly for integers."""
    import numpy as np

    if not len(samples):
        return np.zeros(len(queries))
    found = samples[indices]
    later, earlier = (queries, found) if sign > 0 else (found, queries)
    if samples.dtype.kind == "i":
        return later.view(np.uint64) - earlier.view(np.uint64)
    with np.errstate(invalid="ignore", over="ignore"):
        return np.where(later == earlier, 0, later - earlier)


_MOST = 2**63 - 1  # the largest int64


def associate(times_a: Any, times_b: Any, tolerance: Any) -> tuple[Any, Any]:
    """Pair the times of two sensors one to one, the closest pairs first.

    This is the algorithm with which the TUM benchmark pairs colour and depth images: all pairs
    within the tolerance are visited in the order of their distance, and a pair is selected if
    neither of its times is in an earlier pair. A distance equal to the tolerance is accepted, as in
    evo and pandas; TUM's own script requires a smaller distance.

    Parameters
    ----------
    times_a, times_b : array, Series or list [M] and [N]
        Times in one unit, in any order.
    tolerance
        Largest distance between the times of a pair, in the unit of the times, or as a duration.

    Returns
    -------
    two int64 arrays of NumPy [K]
        Indices of the pairs into ``times_a`` and ``times_b``, ascending in ``times_a``.

    Raises
    ------
    ValueError
        An argument has a wrong shape or value.
    TypeError
        The units differ, or ``tolerance`` is not a duration in them.

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> colour, depth = np.array([0.0, 0.033, 0.066]), np.array([0.012, 0.045, 0.05])
    >>> rbc.associate(colour, depth, 0.02)
    (array([0, 1, 2]), array([0, 1, 2]))
    """
    import numpy as np

    first, second, unit = two_lists_of(times_a, "times_a", times_b, "times_b")
    whole = unit is not None or (are_ticks(first) and are_ticks(second))
    limit = tolerance_of(tolerance, unit, whole)

    order = np.argsort(second, kind="stable")
    ordered = second[order]
    if whole:  # no sum exceeds int64
        limit = min(int(limit), _MOST)
        lower = np.maximum(first, -_MOST - 1 + limit) - limit
        upper = np.minimum(first, _MOST - limit) + limit
    else:  # slightly more than the tolerance, since sums are rounded; exact below
        wide = limit if limit == np.inf else limit + 4 * np.spacing(np.abs(first) + limit)
        lower, upper = first - wide, first + wide
    begin = np.searchsorted(ordered, lower, side="left")
    end = np.searchsorted(ordered, upper, side="right")
    counts = np.maximum(end - begin, 0)
    a = np.repeat(np.arange(len(first)), counts)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    b = order[np.repeat(begin, counts) + within]
    apart = np.abs(first[a] - second[b])
    near = apart <= limit
    a, b, apart = a[near], b[near], apart[near]

    free_a, free_b = np.ones(len(first), bool), np.ones(len(second), bool)
    pairs = []
    for pair in np.lexsort((second[b], first[a], apart)):
        i, j = a[pair], b[pair]
        if free_a[i] and free_b[j]:
            free_a[i] = free_b[j] = False
            pairs.append((i, j))
    chosen = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    return chosen[:, 0], chosen[:, 1]
