"""The samples of a recording that the rings of live fusion keep."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from .._arguments.times import two_lists_of
from .._library.errors import REFUSALS, shown
from .._typing import Times

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def live_kept(times: Times, arrivals: Times, late_bound: int = 0) -> NDArray[np.bool_]:
    """Return which samples of a recording :class:`Live` keeps when they are pushed as they arrived.

    A sample is dropped if more than ``late_bound`` of the samples kept before it are newer. Samples
    are pushed in the order of their arrivals; samples with equal arrivals keep the order of the
    recording. Pass the result as ``sample_mask``, so that training misses what the robot misses.

    Parameters
    ----------
    times : array or list [n]
        Times of the samples of one stream, in the order of the recording.
    arrivals : array or list [n]
        When each sample arrived, in the unit of ``times``.
    late_bound : int
        As in :class:`LiveStream`.

    Returns
    -------
    array [n] of bool
        False for samples that are dropped, and for those whose time is not finite or whose arrival
        is NaN: the latter never arrive.

    Raises
    ------
    ValueError
        The lengths differ, or ``late_bound`` is negative.

    Examples
    --------
    The second sample arrives after two newer ones:

    >>> import robocache as rbc
    >>> rbc.live_kept([0.0, 0.1, 0.2, 0.3], [0.0, 0.35, 0.2, 0.3], late_bound=1).tolist()
    [True, False, True, True]
    >>> rbc.live_kept([0.0, 0.1, 0.2, 0.3], [0.0, 0.35, 0.2, 0.3], late_bound=2).tolist()
    [True, True, True, True]
    """
    import numpy as np

    stamps, arrived, _ = two_lists_of(times, "times", arrivals, "arrivals")
    if len(stamps) != len(arrived):
        raise ValueError(f"arrivals: has {len(arrived)} numbers, expected {len(stamps)} as times")
    bound = _bound(late_bound)
    if stamps.dtype.kind == "f":
        possible = np.isfinite(stamps)
    else:
        limits = np.iinfo(stamps.dtype)
        ends = stamps.dtype == np.int64  # NaT, and infinity
        possible = np.ones(len(stamps), bool)
        if ends:
            possible = (stamps != limits.min) & (stamps != limits.max)
    if arrived.dtype.kind == "f":
        possible &= ~np.isnan(arrived)
    pushed = np.flatnonzero(possible)
    pushed = pushed[np.argsort(arrived[pushed], kind="stable")]
    kept = np.zeros(len(stamps), bool)
    kept[pushed] = ~_is_dropped(stamps[pushed], bound)
    return kept


def _is_dropped(stamps: Any, bound: int) -> Any:
    """Return which of the samples have more than ``bound`` newer ones before them.

    Dropped samples may count among these. If one of them is newer, the samples that caused it to be
    dropped are newer too.
    """
    import numpy as np

    # In each pass, `highest` is the newest of the samples so far that the passes before have left,
    # and `rest` is what it leaves to the next pass.
    dropped = np.zeros(len(stamps), bool)
    rest, some = stamps, np.ones(len(stamps), bool)
    for _ in range(min(bound + 1, len(stamps))):
        least = stamps.min()
        highest = np.maximum.accumulate(np.where(some, rest, least))
        before = np.logical_or.accumulate(some)
        dropped[:] = False
        dropped[1:] = before[:-1] & (highest[:-1] > stamps[1:])
        if not dropped.any():
            break
        left = np.empty_like(rest)
        left[0] = least
        left[1:] = np.where(some[1:], np.minimum(rest[1:], highest[:-1]), least)
        own = np.zeros(len(stamps), bool)
        own[1:] = some[1:] & before[:-1]
        rest, some = left, own
    return dropped


def _bound(late_bound: Any) -> int:
    try:
        bound = operator.index(late_bound)
    except REFUSALS:
        raise TypeError(f"late_bound: is {shown(late_bound)}, expected an int") from None
    if bound < 0:
        raise ValueError(f"late_bound: is {bound}, expected 0 or more")
    return bound
