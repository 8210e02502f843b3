"""Pairs of samples of two sensors that were taken at about the same time."""

from __future__ import annotations

from typing import Any

from ._given_times import times_of
from ._host import on_host
from ._options import number
from ._rules import are_ticks
from ._units import is_length, no_unit, require_one_unit, ticks_of


def associate(times_a: Any, times_b: Any, tolerance: Any) -> tuple[Any, Any]:
    """Pair the times of two sensors one to one, the closest pairs first.

    As the benchmark of TUM pairs colour and depth images: all pairs within the tolerance, by their
    distance, each taken where neither time is taken yet. A pair exactly as far apart as the
    tolerance counts, as in evo and pandas; TUM's own script takes only pairs that are closer.

    Parameters
    ----------
    times_a, times_b : array, Series or list [M] and [N]
        In one unit, in any order.
    tolerance
        How far two times of a pair may lie apart, in the unit of the times, or a length of time.

    Returns
    -------
    two int64 arrays of NumPy [K]
        Where the times of each pair are in ``times_a`` and in ``times_b``, ascending by the former.

    Raises
    ------
    ValueError
        An argument has a wrong shape or value.
    TypeError
        The units differ, or ``tolerance`` is no length in them.

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> colour, depth = np.array([0.0, 0.033, 0.066]), np.array([0.012, 0.045, 0.05])
    >>> rbc.associate(colour, depth, 0.02)
    (array([0, 1, 2]), array([0, 1, 2]))
    """
    import numpy as np

    first, unit = times_of(times_a, "times_a")
    second, other = times_of(times_b, "times_b")
    require_one_unit(other, "times_b", unit, "times_a")
    first, second = on_host(first, "times_a"), on_host(second, "times_b")
    for array, name in ((first, "times_a"), (second, "times_b")):
        if getattr(array, "ndim", 0) != 1 or array.dtype.kind not in "iuf":
            raise ValueError(f"{name}: is no list of times [N]")
    if is_length(tolerance) and unit is None:
        raise TypeError(no_unit(tolerance, "tolerance"))
    whole = unit is not None or (are_ticks(first) and are_ticks(second))
    limit = ticks_of(tolerance, "tolerance", unit) if whole else number(tolerance, "tolerance")
    if not limit >= 0:
        raise ValueError(f"tolerance: is {limit}, expected 0 or more")

    order = np.argsort(second, kind="stable")
    ordered = second[order]
    # A little more than the tolerance, then exactly: sums of floats are rounded.
    exact = whole or limit == np.inf
    wide = limit if exact else limit + 4 * np.spacing(np.abs(first) + limit)
    begin = np.searchsorted(ordered, first - wide, side="left")
    end = np.searchsorted(ordered, first + wide, side="right")
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
