"""The samples that a query uses, where samples arrive or a channel looks back only.

Which samples exist depends on the query, so that the weights of all queries cannot be found with
a few pulses. Here the neighbours of each query are searched, and the library resamples each query
in a row of its neighbours only: their pulses give the weights, by the library's own formulas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from .._operations import resample as _resample

_plain: Any = _resample.resample  # typed as Any: its overloads take no **options
_RULES = ("outside", "max_gap", "tolerance", "causal", "max_age")


@dataclass(frozen=True, eq=False)
class Samples:
    """The samples of all rows, one row after the other."""

    times: Any  # [N]
    there: Any  # bool [N]: not missing; None: all
    arrivals: Any  # [N] in the dtype of times; None: all had arrived


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries, each in one row of the samples."""

    begin: Any  # int64 [Q]: the first sample of its row
    end: Any  # int64 [Q]: after the last sample
    time: Any  # [Q] on the clock of the samples
    until: Any  # [Q]: samples that arrived later do not exist


def later(times: Any, offset: Any) -> Any:
    """Return times + offset, saturated for int64. ``offset`` is a number or a tensor."""
    if not isinstance(offset, torch.Tensor):
        if offset == 0:
            return times
        offset = torch.tensor(offset, dtype=times.dtype, device=times.device)
    total = times + offset
    if times.is_floating_point():
        return total
    limits = torch.iinfo(times.dtype)
    over = ((times ^ total) & (offset ^ total)) < 0
    return torch.where(over, torch.where(times < 0, limits.min, limits.max), total)


def earlier(times: Any, offset: Any) -> Any:
    """Return times - offset, saturated for int64."""
    if offset == 0 or times.is_floating_point():
        return later(times, -offset)
    limits = torch.iinfo(times.dtype)
    if offset > 0:
        return times.clamp(min=limits.min + offset) - offset
    return times.clamp(max=limits.max + offset) - offset


def slots_of(method: str) -> int:
    """Return the number of neighbours of a query."""
    return 4 if method == "cubic" else 2


def weights_of(
    samples: Samples, queries: Queries, method: str, rules: dict[str, Any], dtype: torch.dtype
) -> list[tuple[Any, Any]]:
    """Return, for each neighbour of the queries, its sample [Q] and its weight [Q,1]."""
    place, samples, queries = _without_missing(samples, queries)
    count, device = len(queries.time), queries.time.device
    if len(samples.times) == 0:
        nothing = torch.zeros(count, dtype=torch.int64, device=device)
        weight = torch.zeros((count, 1), dtype=dtype, device=device)
        return [(nothing, weight)] * slots_of(method)
    found, exists = _neighbours(samples, queries, method, rules)
    found = found.clamp(0, len(samples.times) - 1)
    slots = slots_of(method)
    options = {name: rules[name] for name in _RULES if rules.get(name) is not None}
    if options.get("causal"):
        options["outside"] = "fill"  # a row that is not valid has no gradient
    elif method != "linear" and options.get("outside") == "extrapolate":
        options["outside"] = "hold"  # as for groups that are not linear
    weights = _plain(
        torch.eye(slots, dtype=dtype, device=device).expand(count, slots, slots),
        _ascending(samples.times[found], exists),
        queries.time[:, None],
        method=method,
        sample_mask=exists,
        check_times=False,
        **options,
    )
    return [(place[found[:, i]], weights[:, 0, i : i + 1]) for i in range(slots)]


def _without_missing(samples: Samples, queries: Queries) -> tuple[Any, Samples, Queries]:
    """Return the places of the samples that may exist, and the arguments for only these."""
    count, device = len(samples.times), samples.times.device
    there = samples.there
    if samples.arrivals is not None and samples.arrivals.is_floating_point():
        come = ~samples.arrivals.isnan()
        there = come if there is None else there & come
    if there is None:
        return torch.arange(count, device=device), samples, queries
    place = there.nonzero()[:, 0]
    before = torch.zeros(count + 1, dtype=torch.int64, device=device)
    torch.cumsum(there, 0, out=before[1:])
    arrivals = None if samples.arrivals is None else samples.arrivals[place]
    rest = Samples(samples.times[place], None, arrivals)
    begin, end = before[queries.begin], before[queries.end]
    return place, rest, Queries(begin, end, queries.time, queries.until)


def _neighbours(
    samples: Samples, queries: Queries, method: str, rules: dict[str, Any]
) -> tuple[Any, Any]:
    """Return the samples [Q,S] that may have a weight, in order, and whether each exists."""
    begin, end, time = queries.begin, queries.end, queries.time
    existing = _Existing(samples.arrivals, queries.until)
    at = _last(samples.times, begin, end, lambda own: own <= time)
    left, right = existing.up_to(at), existing.after(at)
    slots = [left, right]
    if method == "cubic":
        before = torch.where(left >= begin, existing.up_to(left - 1), -1)
        slots = [before, left, right, torch.where(right < end, existing.after(right), end)]
    elif method == "linear" and not rules.get("causal") and rules.get("outside") == "extrapolate":
        slots = _outermost(samples, queries, existing, left, right)
    found = torch.stack(slots, 1)
    return found, (found >= begin[:, None]) & (found < end[:, None])


def _outermost(
    samples: Samples, queries: Queries, existing: _Existing, left: Any, right: Any
) -> list[Any]:
    """Return the neighbours; outside of the row, its outermost samples with distinct times."""
    begin, end = queries.begin, queries.end
    last = len(samples.times) - 1
    is_before, is_after = left < begin, right >= end
    edge = samples.times[torch.where(is_before, right, left).clamp(0, last)]
    up_to_edge = _last(samples.times, begin, end, lambda own: own <= edge)
    before_edge = _last(samples.times, begin, end, lambda own: own < edge)
    at = torch.where(is_before, up_to_edge, before_edge)
    is_outside = (is_before | (is_after & (edge < queries.time))) & ~(is_before & is_after)
    return [
        torch.where(is_outside, existing.up_to(at), left),
        torch.where(is_outside, existing.after(at), right),
    ]


def _last(times: Any, begin: Any, end: Any, holds: Any) -> Any:
    """Return the last sample of each row whose time ``holds``, or begin - 1."""
    low, high = begin.clone(), end.clone()
    steps = int((end - begin).max()).bit_length() if len(begin) else 0
    for _ in range(steps):
        open_ = low < high
        middle = (low + high) >> 1
        good = holds(times[middle.clamp(max=len(times) - 1)]) & open_
        low, high = torch.where(good, middle + 1, low), torch.where(good, high, middle)
        high = torch.where(open_, high, low)
    return low - 1


class _Existing:
    """The search for samples that had arrived for each query, next to a sample."""

    def __init__(self, arrivals: Any, until: Any) -> None:
        self._until = until
        self._forward = None if arrivals is None else _minima(arrivals)
        self._backward = None if arrivals is None else _minima(arrivals.flip(0))
        self._count = 0 if arrivals is None else len(arrivals)

    def up_to(self, at: Any) -> Any:
        """Return the last sample up to ``at`` that exists, or a negative number."""
        if self._backward is None:
            return at
        last = self._count - 1
        return last - self._first(self._backward, last - at)

    def after(self, at: Any) -> Any:
        """Return the first sample after ``at`` that exists, or a number past the last sample."""
        return at + 1 if self._forward is None else self._first(self._forward, at + 1)

    def _first(self, levels: list[Any], at: Any) -> Any:
        """Return the first sample from ``at`` on that had arrived.

        The search goes up to blocks of twice the size, while the sample is not in the block, and
        then down into the first half that has one.
        """
        block, level = at.clamp(min=0), torch.full_like(at, -1)  # -1: not found
        for number, keys in enumerate(levels):
            top = number == len(levels) - 1
            has = self._has(keys, block)
            is_odd = (block & 1) != 0
            looking = level < 0
            level = torch.where(looking & has & (is_odd | top), number, level)
            looking = level < 0
            if not top:
                block = torch.where(looking, (block + is_odd) >> 1, block)
        none = level < 0
        for number in range(len(levels) - 2, -1, -1):
            down = level > number
            first = block << 1
            second = first + ~self._has(levels[number], first)
            block = torch.where(down, second, block)
        return torch.where(none, self._count, block)

    def _has(self, keys: Any, block: Any) -> Any:
        inside = block < len(keys)
        return (keys[block.clamp(max=len(keys) - 1)] <= self._until) & inside


def _minima(arrivals: Any) -> list[Any]:
    """Return the arrivals, and the minima of blocks of 2, 4, ... of them."""
    limits = (torch.finfo if arrivals.is_floating_point() else torch.iinfo)(arrivals.dtype)
    highest = torch.inf if arrivals.is_floating_point() else limits.max
    levels = [arrivals]
    while len(levels[-1]) > 1:
        keys = levels[-1]
        if len(keys) % 2:
            keys = torch.cat([keys, keys.new_full((1,), highest)])
            levels[-1] = keys
        levels.append(keys.view(-1, 2).amin(1))
    return levels


def _ascending(times: Any, exists: Any) -> Any:
    """Return the times of neighbours; those that do not exist get the time of one that does."""
    limits = (torch.finfo if times.is_floating_point() else torch.iinfo)(times.dtype)
    first = torch.where(exists, times, limits.max).amin(1, keepdim=True)
    return torch.where(exists, times, first).cummax(1).values
