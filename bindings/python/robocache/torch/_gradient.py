"""The gradient of resampling, computed by resampling.

For the methods that can be differentiated, the result of :func:`robocache.resample` is linear in
the values: out = W values. Each query has only a few weights in W. They are found by resampling
unit pulses, so the library's rules and formulas are not duplicated here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from .._arguments.affine import inverse_of
from .._arguments.arrays import framework_of
from .._operations import resample as _resample
from ._neighbours import Queries, Samples, earlier, later, weights_of

_plain: Any = _resample.resample  # typed as Any: its overloads take no **options
_STEPS = ("nearest", "previous", "next")
# The samples with a weight: their number, and the first, relative to the last before the query.
WINDOWS = {"linear": (2, 0), "cubic": (4, -1), **dict.fromkeys(_STEPS, (1, 0))}
# Options of calls in the backward pass: the forward pass has verified the times.
UNCHECKED = {"check_times": False, "backend": None}


def require_linear(method: Any, within: str = "") -> None:
    """Refuse a method that has no gradient. ``within`` is a prefix for the message."""
    groups = {"method": method}
    if not isinstance(method, str):
        groups = {f"method[{i}]": name for i, (_, _, name) in enumerate(method)}
    for argument, name in groups.items():
        if name not in WINDOWS:
            raise ValueError(
                f"{within}{argument}: is {name!r}, which is not linear in the values and has no "
                f"gradient; expected one of {', '.join(map(repr, WINDOWS))}, "
                f"or pass values.detach()"
            )


@dataclass(frozen=True, eq=False)
class Weights:
    """The matrix W of a call: its arrays without the values, its std, and its options."""

    arrays: dict[str, Any]  # times, queries, lengths, offsets, masks and arrivals
    std: Any
    options: dict[str, Any]

    def transposed(self, gradient: Any, shape: Any, dtype: torch.dtype) -> Any:
        """Return W^T gradient, from [B,T,D] to the ``shape`` of the values."""
        total = gradient.new_zeros(shape, dtype=sum_dtype(dtype))
        if total.numel() == 0 or gradient.numel() == 0:
            return total.to(dtype)
        gradient = gradient.to(total.dtype)
        if self.std is not None:
            inverse = inverse_of(framework_of(gradient, "values"), self.std, gradient)
            gradient = gradient * inverse.to(total.dtype)
        rows = total.view(-1, shape[-1])
        method = self.options.get("method", "linear")
        groups = [(0, shape[-1], method)] if isinstance(method, str) else method
        weights = {name: self._found(name, total) for name in {name for *_, name in groups}}
        for begin, count, name in groups:
            channels = slice(begin, begin + count)
            part = gradient[..., channels].reshape(-1, count)
            for row, weight in weights[name]:
                # A NaN or infinite gradient must not count where the weight is 0.
                add_rows(rows[:, channels], row, (part * weight).masked_fill_(weight == 0, 0))
        return total.to(dtype)

    def _found(self, method: str, like: Any) -> list[tuple[Any, Any]]:
        if self.arrays.get("arrivals") is None and not self.options.get("causal"):
            return list(self._weights(method, like))
        samples, queries = self._rows(list(like.shape[:-1]))
        return weights_of(samples, queries, method, self.options, like.dtype)

    def _rows(self, shape: list[int]) -> tuple[Samples, Queries]:
        """Return all samples and all queries; values have the ``shape`` [B,S], [S] or [N]."""
        count = 1
        for extent in shape:
            count *= extent
        arrays = self.arrays
        times, offsets = arrays["times"], arrays.get("batch_offsets")

        def all_samples(array: Any) -> Any:
            return None if array is None else array.expand(shape).reshape(-1)

        if offsets is not None:
            offsets = offsets.to(torch.int64)
            begin, end = offsets[:-1], offsets[1:]
        else:
            begin = torch.arange(0, count, max(shape[-1], 1), device=times.device)
            begin = begin if count else torch.zeros(shape[:-1] or 1, dtype=torch.int64).to(begin)
            end = begin + shape[-1]
        if arrays.get("lengths") is not None:
            end = begin + arrays["lengths"].to(torch.int64)
        queries = arrays["query_times"]
        queries = queries.expand(len(begin), queries.shape[-1])
        if arrays.get("query_lengths") is not None:  # later queries have no row
            inside = torch.arange(queries.shape[1], device=times.device)
            inside = inside < arrays["query_lengths"][:, None]
            end = torch.where(inside, end[:, None], begin[:, None])
        else:
            end = end[:, None].expand(queries.shape)
        begin = begin[:, None].expand(queries.shape).reshape(-1)
        mask = all_samples(arrays.get("sample_mask"))
        samples = Samples(
            all_samples(times),
            None if mask is None else mask != 0,
            all_samples(arrays.get("arrivals")),
        )
        queries = queries.reshape(-1)
        time = earlier(queries, self.options.get("clock_offset", 0))
        until = later(queries, self.options.get("lag", 0))
        return samples, Queries(begin, end.reshape(-1), time, until)

    def _weights(self, method: str, like: Any) -> Iterator[tuple[Any, Any]]:
        """Yield, for each sample of the window, its row in the values [B*T] and weight [B*T,1]."""
        *batch, samples, _ = like.shape
        count, first = WINDOWS[method]
        names = ["outside", "max_gap", *(["tolerance"] if method in _STEPS else [])]
        rules = {name: self.options[name] for name in names if name in self.options}
        if method != "linear" and rules.get("outside") == "extrapolate":
            rules["outside"] = "hold"  # as for groups that are not linear
        position = torch.arange(samples, device=like.device)[:, None]
        place = None
        mask = self.arrays.get("sample_mask")
        if mask is not None:
            there = mask != 0  # number the samples that are not missing, and find their places
            place = there.to(torch.uint8).argsort(dim=-1, descending=True, stable=True)
            place = place.expand(*batch, samples)
            position = (there.cumsum(-1) - 1).expand(*batch, samples)[..., None]

        # Pulses at every count-th sample, one channel per phase, so that each sample of a window
        # is in a different channel.
        phases = torch.arange(count, device=like.device)
        pulses = (position % count == phases).to(like.dtype).expand(*batch, samples, count)
        weights = self._resampled(pulses, method=method, **rules)

        queries = self.arrays["query_times"]
        if method not in _STEPS:
            if method == "linear" and rules.get("outside") == "extrapolate":
                queries = self._queries_inside(batch)
            method, rules = "previous", {}
        position = position.expand(*batch, samples, 1)
        start = first + self._resampled(position, query_times=queries, method=method, **rules)
        sample = (start + (phases - start) % count).clamp_(0, samples - 1)
        if place is not None:
            found = place.gather(-1, sample.flatten(-2)) if batch else place[sample]
            sample = found.view_as(sample)
        if batch:
            sample += samples * torch.arange(batch[0], device=like.device)[:, None, None]
        for phase in range(count):
            yield sample[..., phase].reshape(-1), weights[..., phase].reshape(-1, 1)

    def _queries_inside(self, batch: list[int]) -> Any:
        """Return the queries, moved from outside of a row into its first or last interval."""
        times, queries = self.arrays["times"], self.arrays["query_times"]
        limits = (torch.finfo if times.is_floating_point() else torch.iinfo)(times.dtype)
        ends = times.new_empty(2)
        ends[0], ends[1] = limits.min, limits.max
        times = times[..., None].expand(*batch, times.shape[-1], 1)
        found = self._resampled(times, query_times=ends, query_lengths=None, method="previous")
        first, last = found[..., 0, :], found[..., 1, :]
        if times.is_floating_point():
            before_last = last.nextafter(torch.full_like(last, -torch.inf))
        else:
            before_last = last - 1
        return queries.where(queries >= first, first).where(queries <= last, before_last)

    def _resampled(self, values: Any, **options: Any) -> Any:
        return _plain(values, **{**self.arrays, **UNCHECKED, **options})


def sum_dtype(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


def add_rows(total: Any, row: Any, parts: Any) -> None:
    """Add parts to total[row], with the function that has a fixed order on this device."""
    if total.is_cuda:
        total.index_put_((row,), parts, accumulate=True)
    else:
        total.index_add_(0, row, parts)
