"""Pairs of samples of two sensors that were taken at about the same time."""

from __future__ import annotations

from typing import Any

from .._arguments.resample_params import are_ticks
from .._arguments.times import tolerance_of, two_lists_of

_MOST = 2**63 - 1  # of int64


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

    first, second, unit = two_lists_of(times_a, "times_a", times_b, "times_b")
    whole = unit is not None or (are_ticks(first) and are_ticks(second))
    limit = tolerance_of(tolerance, unit, whole)

    order = np.argsort(second, kind="stable")
    ordered = second[order]
    if whole:  # no sum goes past int64
        limit = min(int(limit), _MOST)
        lower = np.maximum(first, -_MOST - 1 + limit) - limit
        upper = np.minimum(first, _MOST - limit) + limit
    else:  # a little more than the tolerance, then exactly: sums of floats are rounded
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
