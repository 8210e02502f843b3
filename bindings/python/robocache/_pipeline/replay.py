"""Replay of a recording: whether the robot would see the rows that training sees."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .rows import Samples, fused, samples_of_recording, ticks_between
from .session import LivePipeline
from .sources import TICKS

if TYPE_CHECKING:
    from .._episodes.episodes import Episodes
    from .plan import Plan

_LONGEST_LAG = 10.0  # s
_FINEST_LAG = TICKS // 1000  # ns


@dataclass(frozen=True)
class Replayed:
    """The rows of a replay against those of training."""

    rows: int
    equal: Mapping[str, int]  #: rows with equal values and masks, by window
    unequal: tuple[int, ...]  #: rows that differ in any window
    lag: float  #: s
    #: samples to keep, by stream, where a ring lost a sample that a row needs
    capacities: Mapping[str, int]
    #: with the availability "stamp": the least lag in seconds at which all rows are equal; NaN if
    #: there is none. None with "arrival"
    least_lag: float | None = None
    never_equal: tuple[int, ...] = ()  #: rows that differ at any lag

    @property
    def is_equal(self) -> bool:
        """Whether all rows are equal, in values and masks."""
        return not self.unequal


def replayed(plan: Plan, recording: Any, *, search: bool = True) -> Replayed:
    """Push the samples of a recording as they arrived, and compare each observation with training.

    The rings have the capacities of the file. Observations are compared by bytes: values, masks,
    and the rows of all streams before normalization.
    """
    part = samples_of_recording(plan, recording)
    queries = ticks_between(plan, part)
    found = _replay(plan, part, queries)
    lost: dict[str, int] = {}
    if not found.is_equal:
        lost = _lost(plan, part, queries, len(found.unequal))
    found = dataclasses.replace(found, capacities=lost)
    if plan.has_arrivals or not search:
        return found
    return _with_least_lag(plan, part, queries, found)


def _replay(
    plan: Plan,
    part: Mapping[str, Samples],
    queries: Any,
    capacities: Mapping[str, int] | None = None,
) -> Replayed:
    import numpy as np

    training = _episodes(plan, part, queries)
    spec = plan.spec(only=plan.observed, normalized=_is_fitted(plan))
    expected = spec.cut(training, np.zeros(len(queries), np.int64), np.arange(len(queries)))
    live = LivePipeline(_unfitted(plan), "", capacities=capacities)
    live._begin = int(queries[0])
    arrived = {name: _arrival_times(samples) for name, samples in part.items()}
    pushed = dict.fromkeys(plan.seen, 0)
    equal = dict.fromkeys(plan.observed, 0)
    unequal = []
    for row, query in enumerate(queries.tolist()):
        for name in plan.seen:
            end = int(np.searchsorted(arrived[name], query + plan.lag, "right"))
            if end > pushed[name]:
                _push(live, name, part[name], slice(pushed[name], end))
                pushed[name] = end
        seen = live._observe(query)
        bad = False
        for name in plan.observed:
            values, valid = expected[name]
            same = _same(seen[name][0], values[row]) and _same(seen.valid[name][0], valid[row])
            equal[name] += same
            bad |= not same
        for name in plan.seen:
            begin = row + 1 - len(seen.rows[name])
            bad |= not _same(seen.rows[name], training[name].values[begin : row + 1])
        if bad:
            unequal.append(row)
    return Replayed(len(queries), equal, tuple(unequal), plan.lag / TICKS, {})


def _push(live: LivePipeline, name: str, samples: Samples, rows: slice) -> None:
    import numpy as np

    values = samples.values[rows]
    arrivals = None if samples.arrivals is None else samples.arrivals[rows]
    live._push(name, samples.times[rows], values, np.ones(len(values), bool), arrivals)


def _same(ours: Any, theirs: Any) -> bool:
    """Whether the bytes are equal. One NaN is as good as another: both are filled."""
    return ours.tobytes() == theirs.tobytes() or bool(_same_rows(ours, theirs).all())


def _same_rows(ours: Any, theirs: Any) -> Any:
    import numpy as np

    if ours.dtype.kind != "f":
        return ours == theirs
    bits = f"u{ours.dtype.itemsize}"
    ours, theirs = np.ascontiguousarray(ours), np.ascontiguousarray(theirs)
    both = np.isnan(ours) & np.isnan(theirs)
    return ((ours.view(bits) == theirs.view(bits)) | both).all(axis=-1)


def _arrival_times(samples: Samples) -> Any:
    """Return when samples arrive, in order; without arrivals: when they were logged."""
    return samples.arrivals if samples.arrivals is not None else samples.logged


def _episodes(plan: Plan, part: Mapping[str, Samples], queries: Any) -> Episodes:
    import numpy as np

    from .._episodes.episodes import Episodes
    from .._episodes.track import Track

    offsets = np.array([0, len(queries)], np.int64)
    return Episodes(
        {
            name: Track(own, offsets, times=queries, names=plan.streams[name].names)
            for name, own in fused(plan, part, queries).items()
        }
    )


# ---- why rows differ ----------------------------------------------------------------------------


def _lost(plan: Plan, part: Mapping[str, Samples], queries: Any, now: int) -> dict[str, int]:
    """Return the least capacities of streams whose rings lost a sample that a row needs."""
    whole = _whole(plan, part)
    best = _replay(plan, part, queries, whole)
    if len(best.unequal) >= now:
        return {}
    found = {}
    for name, stream in plan.seen.items():
        if whole[name] <= stream.capacity:
            continue
        own = {**whole, name: stream.capacity}
        if len(_replay(plan, part, queries, own).unequal) == len(best.unequal):
            continue
        low, high = stream.capacity, whole[name]  # low is too small, high is enough
        while high - low > 1:
            middle = (low + high) // 2
            enough = len(_replay(plan, part, queries, {**whole, name: middle}).unequal)
            low, high = (low, middle) if enough == len(best.unequal) else (middle, high)
        found[name] = high
    return found


def _whole(plan: Plan, part: Mapping[str, Samples]) -> dict[str, int]:
    """Return capacities that hold all samples."""
    return {name: max(len(part[name].times), each.capacity) for name, each in plan.seen.items()}


def _with_least_lag(
    plan: Plan, part: Mapping[str, Samples], queries: Any, found: Replayed
) -> Replayed:
    """Search the least lag at which the robot sees training's rows, to a millisecond.

    At each lag, the rows of the robot come from the samples that had been logged. A replay confirms
    the result.
    """
    import math

    import numpy as np

    logged = {name: dataclasses.replace(each, arrivals=each.logged) for name, each in part.items()}
    expected = fused(plan, part, queries)

    def unequal(lag: int) -> tuple[int, ...]:
        rows = fused(_at_lag(plan, lag), logged, queries)
        wrong = np.zeros(len(queries), bool)
        for name in plan.seen:
            wrong |= ~_same_rows(rows[name], expected[name])
        return tuple(np.flatnonzero(wrong).tolist())

    high = round(_LONGEST_LAG * TICKS)
    never = unequal(high)
    low = -1  # too small
    while not never and high - low > _FINEST_LAG:
        middle = (low + high) // 2
        low, high = (low, middle) if not unequal(middle) else (middle, high)
    lag = _FINEST_LAG * math.ceil(high / _FINEST_LAG)
    if not never:
        never = _replay(_at_lag(plan, lag), part, queries, _whole(plan, part)).unequal
    if never:
        return dataclasses.replace(found, least_lag=math.nan, never_equal=never)
    return dataclasses.replace(found, least_lag=lag / TICKS)


def _at_lag(plan: Plan, lag: int) -> Plan:
    clock = {**plan.document["clock"], "lag": lag / TICKS}
    return type(plan)({**plan.document, "clock": clock})


def _is_fitted(plan: Plan) -> bool:
    return all(
        entry == "none" or entry["statistics"] != "?"
        for entry in plan.document["normalization"].values()
    )


def _unfitted(plan: Plan) -> Plan:
    """Return the plan, without normalization if it has no statistics yet."""
    if _is_fitted(plan):
        return plan
    names = plan.document["normalization"]
    return type(plan)({**plan.document, "normalization": dict.fromkeys(names, "none")})
