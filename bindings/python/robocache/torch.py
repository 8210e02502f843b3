"""Operations that torch's autograd sees through.

The result of :func:`robocache.resample` is linear in the values, out = W values, for each method
that is differentiated here. A query has few weights in W, and they are what resampling makes of
unit pulses: rules and formulas are those of the library, not written again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, overload

import torch
from torch.utils.dlpack import from_dlpack

from . import _resample
from ._again import taken_again
from ._arrays import SEQUENCES, framework_of
from ._errors import REFUSALS, blamed
from ._operation import array_of, queries
from ._rules import rules
from ._scales import inverse_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._resample import _Options
    from ._types import Numbers, SupportsDLPack

__all__ = ["resample"]

_plain: Any = _resample.resample  # whose overloads take no **options
_STEPS = ("nearest", "previous", "next")
# The samples that have a weight: how many, and the first, counted from the last before the query.
_WINDOWS = {"linear": (2, 0), "cubic": (4, -1), **dict.fromkeys(_STEPS, (1, 0))}
# Of calls in the backward pass: the forward pass has verified the times.
_UNCHECKED = {"check_times": False, "backend": None}


@overload
def resample(
    values: torch.Tensor,
    times: SupportsDLPack,
    query_times: Numbers,
    *,
    return_mask: Literal[False] = ...,
    **options: Unpack[_Options],
) -> torch.Tensor: ...
@overload
def resample(
    values: torch.Tensor,
    times: SupportsDLPack,
    query_times: Numbers,
    *,
    return_mask: Literal[True],
    **options: Unpack[_Options],
) -> tuple[torch.Tensor, torch.Tensor]: ...
def resample(
    values: Any, times: Any, query_times: Any, *, return_mask: bool = False, **options: Any
) -> Any:
    """:func:`robocache.resample` of a torch tensor, with its gradient with respect to ``values``.

    The result is the same, bit for bit, and can be differentiated any number of times. A gradient
    is the same in every run: its sums have one order. Where ``values`` requires no gradient, and
    under ``torch.no_grad()``, the call is one of :func:`robocache.resample`.

    Parameters
    ----------
    values : tensor [B,S,D]; [S,D] without batch; [N,D] packed, with ``offsets``
        float16, bfloat16, float32 or float64. Gradients are summed in float32, for float64 in that.
    times : array [B,S], or [S] shared by the batch; [N] packed
        float32, float64 or int64, ascending in each row.
    query_times : array or list [B,T], or [T] shared by the batch
        The dtype of ``times``, in any order.
    method
        "linear", "nearest", "previous", "next" or "cubic", or groups of channels that have these:
        ``[(begin, count, name), ...]``. The other methods are not linear in the values: for them
        ``values`` must not require a gradient.
    return_mask
        Also return a bool tensor [B,T]: True where a value was interpolated or met exactly.
    lengths, query_lengths, offsets, bounds, fill_value, max_gap, tolerance, mean, std, dtype
        As for :func:`robocache.resample`. Where ``fill_value`` is written, the gradient is 0.
    check_times, backend
        As for :func:`robocache.resample`, when it goes forward. Backward nothing is verified again,
        and the device and the stream are those of the gradient.

    Returns
    -------
    tensor [B,T,D], or a tuple of it and the mask
        On the device of ``values``. On CUDA the work is enqueued on torch's current stream.

    Raises
    ------
    ValueError
        A value, a shape or a device does not fit, ``method`` has no gradient, or an argument other
        than ``values`` requires one. The message begins with the argument's name.
    TypeError
        A dtype does not fit, ``values`` is no tensor, or another argument is no array.
    MemoryError
        Memory gave out.
    RoboCacheError
        The rest: no such device, CUDA errors.

    Examples
    --------
    >>> import torch
    >>> import robocache as rbc
    >>> values = torch.tensor([[0.0], [10.0], [20.0]], requires_grad=True)
    >>> out = rbc.torch.resample(values, torch.arange(3.0), [0.25, 1.0])
    >>> out.flatten().tolist()
    [2.5, 10.0]
    >>> out.sum().backward()
    >>> values.grad.flatten().tolist()
    [0.75, 1.25, 0.0]
    """
    if not isinstance(values, torch.Tensor):
        raise TypeError(f"values: is a {type(values).__name__}, expected a torch.Tensor")
    if "out" in options:
        raise TypeError("out: is not taken here, where the result may have a gradient")
    if not (values.requires_grad and torch.is_grad_enabled()):
        return _plain(values, times, query_times, return_mask=return_mask, **options)
    _require_gradient(options.get("method", "linear"))
    limits = {name: options.get(name) for name in ("max_gap", "tolerance")}
    taken = taken_again(values, times, query_times, options.get("offsets"), *limits.values())
    if taken is not None:
        values, times, query_times, *own = taken
        options.update(zip(limits, own))
    framework = framework_of(values, "values")
    arrays = {
        "times": _tensor(times, "times"),
        "query_times": _tensor(queries(framework, query_times, times, values), "query_times"),
    }
    for name in ("lengths", "query_lengths", "offsets"):
        given = options.pop(name, None)
        if given is not None:
            arrays[name] = _tensor(array_of(framework, given, name, values), name)
    scales = {}
    for name in ("mean", "std"):
        given = options.pop(name, None)
        if isinstance(given, torch.Tensor):
            framework_of(given, name).examine(given, name)
            scales[name] = given
        elif given is not None:
            options[name] = _kept(given, name) if name == "std" else given
    method = options.get("method", "linear")
    if not isinstance(method, str):
        options["method"] = tuple(map(tuple, method))
    return _Resample.apply(values, _Call(arrays, scales, options), return_mask)


def _require_gradient(method: Any) -> None:
    rules(method, "hold", 0.0, None, None)  # refuses what is no method
    groups = {"method": method}
    if not isinstance(method, str):
        groups = {f"method[{i}]": name for i, (_, _, name) in enumerate(method)}
    for argument, name in groups.items():
        if name not in _WINDOWS:
            raise ValueError(
                f"{argument}: is {name!r}, which is not linear in the values and has no gradient; "
                f"expected one of {', '.join(map(repr, _WINDOWS))}, or pass values.detach()"
            )


def _tensor(given: Any, name: str) -> Any:
    """A tensor that autograd can save; a copy of what it would not see being written."""
    framework_of(given, name).examine(given, name)
    if isinstance(given, torch.Tensor):
        return given
    framework_of(given, name).device(given, name)  # which torch takes to be right
    try:
        if not getattr(getattr(given, "flags", None), "writeable", True):
            given = given.copy()  # what torch would not take from DLPack
        return from_dlpack(given).clone()
    except REFUSALS as error:
        raise blamed(error, name) from error


def _kept(given: Any, name: str) -> Any:
    """Numbers as they are now, in the library that they come from, by whose rules they divide."""
    if type(given) in SEQUENCES:
        return tuple(given)
    framework_of(given, name).examine(given, name)
    try:
        return given.copy() if hasattr(given, "copy") else given
    except REFUSALS as error:
        raise blamed(error, name) from error


@dataclass(frozen=True, eq=False)
class _Call:
    """A call but for its values."""

    arrays: dict[str, Any]  # times, queries, and what tells rows apart
    scales: dict[str, Any]  # mean and std, of torch
    options: dict[str, Any]

    def of(self, values: Any, **changes: Any) -> Any:
        return _plain(values, **{**self.arrays, **self.scales, **self.options, **changes})

    def linear(self, dtype: torch.dtype) -> _Call:
        """W alone, without what a mean and fill values add to W values."""
        changes = {"mean": None, "fill_value": 0.0, "dtype": dtype}
        return _Call(self.arrays, self.scales, {**self.options, **changes, **_UNCHECKED})

    def transposed(self, gradient: Any, shape: torch.Size, dtype: torch.dtype) -> Any:
        """W^T gradient: [B,T,D] to the ``shape`` of the values."""
        total = gradient.new_zeros(shape, dtype=_sum_dtype(dtype))
        if total.numel() == 0 or gradient.numel() == 0:
            return total.to(dtype)
        gradient = gradient.to(total.dtype)
        std = self.scales.get("std", self.options.get("std"))
        if std is not None:
            inverse = inverse_of(framework_of(gradient, "values"), std, gradient)
            gradient = gradient * _tensor(inverse, "std").to(total.dtype)
        rows = total.view(-1, shape[-1])
        method = self.options.get("method", "linear")
        groups = [(0, shape[-1], method)] if isinstance(method, str) else method
        weights = {name: list(self._weights(name, total)) for name in {name for *_, name in groups}}
        for begin, count, name in groups:
            channels = slice(begin, begin + count)
            part = gradient[..., channels].reshape(-1, count)
            for row, weight in weights[name]:
                # A gradient that is NaN or infinite where the weight is 0 is nobody's.
                _add_rows(rows[:, channels], row, (part * weight).masked_fill_(weight == 0, 0))
        return total.to(dtype)

    def _weights(self, method: str, like: Any) -> Iterator[tuple[Any, Any]]:
        """For each sample of the window: its row in the values [B*T], and its weight [B*T,1]."""
        *batch, samples, _ = like.shape
        count, first = _WINDOWS[method]
        names = ["bounds", "max_gap", *(["tolerance"] if method in _STEPS else [])]
        rules = {name: self.options[name] for name in names if name in self.options}
        if method != "linear" and rules.get("bounds") == "extrapolate":
            rules["bounds"] = "hold"  # as of groups beside a linear one
        position = torch.arange(samples, device=like.device)[:, None]

        # Each count-th sample is 1, for each phase of that: one sample of a window has one of them.
        phases = torch.arange(count, device=like.device)
        pulses = (position % count == phases).to(like.dtype).expand(*batch, samples, count)
        weights = self._resampled(pulses, method=method, **rules)

        queries = self.arrays["query_times"]
        if method not in _STEPS:
            method, rules = "previous", {}
            if self.options.get("bounds") == "extrapolate":
                queries = self._queries_inside(batch)
        position = position.expand(*batch, samples, 1)
        start = first + self._resampled(position, query_times=queries, method=method, **rules)
        sample = (start + (phases - start) % count).clamp_(0, samples - 1)
        if batch:
            sample += samples * torch.arange(batch[0], device=like.device)[:, None, None]
        for phase in range(count):
            yield sample[..., phase].reshape(-1), weights[..., phase].reshape(-1, 1)

    def _queries_inside(self, batch: list[int]) -> Any:
        """Queries beyond a row's ends moved into the interval whose line they are on."""
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
        return _plain(values, **{**self.arrays, **_UNCHECKED, **options})


def _sum_dtype(dtype: torch.dtype) -> torch.dtype:
    return torch.float64 if dtype == torch.float64 else torch.float32


def _add_rows(total: Any, row: Any, parts: Any) -> None:
    """total[row] += parts, in the same order every time, which each has on one device alone."""
    if total.is_cuda:
        total.index_put_((row,), parts, accumulate=True)
    else:
        total.index_add_(0, row, parts)


class _Resample(torch.autograd.Function):
    """W values + what a mean and fill values add."""

    @staticmethod
    def forward(values: Any, call: _Call, return_mask: bool) -> Any:
        return call.of(values, return_mask=return_mask)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        values, call, return_mask = inputs
        _save(ctx, call)
        ctx.values = values.shape, values.dtype
        if return_mask:
            ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, gradient: Any, *_: Any) -> Any:
        if gradient is None:
            return None, None, None
        return _Transposed.apply(gradient, _saved(ctx), *ctx.values), None, None


class _Transposed(torch.autograd.Function):
    """W^T gradient."""

    @staticmethod
    def forward(gradient: Any, call: _Call, shape: torch.Size, dtype: torch.dtype) -> Any:
        return call.transposed(gradient, shape, dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        gradient, call, *_ = inputs
        _save(ctx, call.linear(gradient.dtype))

    @staticmethod
    def backward(ctx: Any, values: Any) -> Any:
        if values is None:
            return None, None, None, None
        return _Resample.apply(values.resolve_neg(), _saved(ctx), False), None, None, None


def _save(ctx: Any, call: _Call) -> None:
    ctx.set_materialize_grads(False)
    scales = {name: scale for name, scale in call.scales.items() if name != "mean"}
    ctx.save_for_backward(*call.arrays.values(), *scales.values())
    ctx.names, ctx.scales = tuple(call.arrays), tuple(scales)
    ctx.options = {**call.options, "mean": None}  # no gradient depends on it


def _saved(ctx: Any) -> _Call:
    tensors = iter(ctx.saved_tensors)
    arrays = dict(zip(ctx.names, tensors))
    return _Call(arrays, dict(zip(ctx.scales, tensors)), ctx.options)
