"""Operations for torch with gradients, torch.compile, torch.export and torch.vmap.

The results equal those of the plain operations, bit for bit.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Literal, overload

import torch

from .._arguments.coerce import arrivals_of, queries_of, taken_again, ticks_or_numbers
from .._arguments.resample_params import rules
from .._arguments.time_units import require_one_unit, ticks_of
from .._arguments.times import times_of
from .._operations import fuse as _fuse
from .._operations import resample as _resample
from .._operations import stream as _stream
from .._public import publish
from ._arguments import (
    array,
    arrival_array,
    for_each,
    indices,
    is_compiling,
    query_array,
    require_no_output,
    require_tensor,
    sample_mask,
    scale,
    seen,
)
from ._batches import WindowBatch
from ._clouds import voxelize, voxelize_sparse
from ._dataset import WindowDataset
from ._images import images
from ._loader import WindowLoader
from ._operators import OPS
from ._options import encode, with_flags
from ._points import farthest_points, take_rows, unproject
from ._windows import WindowStream, windows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from .._operations.resample import _Options
    from .._typing import (
        CallOptions,
        Duration,
        Indices,
        Method,
        Missing,
        Numbers,
        Outside,
        SampleMask,
        Times,
    )


__all__ = [
    "Stream",
    "WindowBatch",
    "WindowDataset",
    "WindowLoader",
    "WindowStream",
    "farthest_points",
    "fuse",
    "images",
    "resample",
    "take_rows",
    "unproject",
    "voxelize",
    "voxelize_sparse",
    "windows",
]

_plain_resample: Any = _resample.resample  # typed as Any: its overloads take no **options
_plain_fuse: Any = _fuse.fuse


# ---- resample -----------------------------------------------------------------------------------


@overload
def resample(
    values: torch.Tensor,
    times: Times,
    query_times: Times,
    *,
    return_valid: Literal[False] = ...,
    **options: Unpack[_Options],
) -> torch.Tensor: ...
@overload
def resample(
    values: torch.Tensor,
    times: Times,
    query_times: Times,
    *,
    return_valid: Literal[True],
    **options: Unpack[_Options],
) -> tuple[torch.Tensor, torch.Tensor]: ...
def resample(
    values: Any, times: Any, query_times: Any, *, return_valid: bool = False, **options: Any
) -> Any:
    """Resample a torch tensor as :func:`robocache.resample`, with gradients of ``values``.

    The result is the same, bit for bit, and can be differentiated any number of times. Gradients
    are the same in every run, since their sums have a fixed order. The call can be part of graphs
    of torch.compile and torch.export, and torch.vmap maps it to a single call. Without these, and
    if ``values`` requires no gradient, :func:`robocache.resample` is called directly.

    Parameters
    ----------
    values : tensor [B,S,D]; [S,D] without batch; [N,D] packed, with ``batch_offsets``
        float16, bfloat16, float32 or float64. Gradients are summed in float64 for float64, else in
        float32.
    times : array [B,S], or [S] shared by the batch; [N] packed
        float32, float64 or int64, ascending in each row.
    query_times : array or list [B,T], or [T] shared by the batch
        The dtype of ``times``, in any order.
    method
        "linear", "nearest", "previous", "next" or "cubic", or groups of channels with these
        methods: ``[(begin, count, name), ...]``. Other methods are not linear in the values; with
        them, ``values`` must not require a gradient.
    return_valid
        Also return a bool tensor [B,T]: True where a value was interpolated or met exactly.
    lengths, query_lengths, batch_offsets, sample_mask, missing
    outside, fill_value, max_gap, tolerance, mean, std, dtype
        As for :func:`robocache.resample`. The gradient is 0 where ``fill_value`` is written, and
        for missing samples.
    arrivals, lag, causal, max_age
        As for :func:`robocache.resample`. With ``causal``, a row that holds a sample sends its
        whole gradient to it, and a row that is not valid sends none.
    check_times, backend
        As for :func:`robocache.resample`, in the forward pass. The backward pass verifies nothing,
        and uses the device and the stream of the gradient.

    Returns
    -------
    tensor [B,T,D], or a tuple of it and ``valid``
        On the device of ``values``. On CUDA the work is enqueued on torch's current stream.

    Raises
    ------
    ValueError
        A value, a shape or a device is invalid, ``method`` has no gradient, or an argument other
        than ``values`` requires one. The message begins with the argument's name.
    TypeError
        A dtype is not supported, ``values`` is not a tensor, or another argument is not an array.
    MemoryError
        Not enough memory.
    RoboCacheError
        The device is not available, or a CUDA error occurred.

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
    require_tensor(values, "values")
    require_no_output(options)
    if not seen(values):
        return _plain_resample(values, times, query_times, return_valid=return_valid, **options)
    if not is_compiling():
        durations = {name: options.get(name, none) for name, none in _DURATIONS.items()}
        converted = taken_again(
            *(values, times, query_times),
            *(options.get("arrivals"), options.get("batch_offsets"), durations),
        )
        if converted is not None:
            values, times, query_times, options["arrivals"], durations = converted
            options.update({n: each for n, each in durations.items() if n in options})
        _require_rules(options, durations, times)
    times = array(times, "times")
    _require_lag(options.get("lag", 0), times)
    query_times = query_array(query_times, times, values)
    values = for_each(values, times, query_times, options.get("batch_offsets"))
    arrays = [
        *[
            indices(options.pop(n, None), n, values)
            for n in ("lengths", "query_lengths", "batch_offsets")
        ],
        *[scale(options.pop(name, None), name, values) for name in ("mean", "std")],
        sample_mask(
            options.pop("sample_mask", None), options.pop("missing", None), "sample_mask", values
        ),
        arrival_array(options.pop("arrivals", None), "arrivals", times, values),
    ]
    text = encode(with_flags(options, return_valid=return_valid), "resample")
    out, valid = OPS.resample(values, times, query_times, *arrays, text)
    return (out, valid) if return_valid else out


_DURATIONS = {"max_gap": None, "tolerance": None, "max_age": None, "lag": 0}


def _require_rules(options: dict[str, Any], durations: dict[str, Any], times: Any) -> None:
    """Raise the errors of the plain call about a method and durations."""
    rules(
        options.get("method", "linear"),
        "hold",
        0.0,
        durations["max_gap"],
        durations["tolerance"],
        False,
        times,
        causal=bool(options.get("causal")),
        max_age=durations["max_age"],
    )


def _require_lag(lag: Any, times: torch.Tensor) -> None:
    """Raise the error of the plain call about a lag. The tensor may be mapped or traced."""
    if not is_compiling():
        import numpy as np

        _stream.offsets_of(lag, "lag", np.zeros(0, str(times.dtype).rpartition(".")[2]))


# ---- fuse ---------------------------------------------------------------------------------------

# Arguments of a stream: its arrays in the order of the operator, and its rules with defaults.
_LISTS = {"lengths": indices, "batch_offsets": indices, "mean": scale, "std": scale}
_RULES = {
    "method": "linear",
    "outside": "hold",
    "fill_value": 0.0,
    "max_gap": None,
    "tolerance": None,
    "clock_offset": 0,
    "causal": False,
    "max_age": None,
}
_OPTIONS = (*_LISTS, "sample_mask", "missing", "arrivals", *_RULES)


class Stream(_stream.Stream[torch.Tensor]):
    """A :class:`robocache.Stream` of tensors that may require a gradient or be traced.

    It takes the same arguments, and is used in :func:`robocache.torch.fuse`. In a function that
    torch compiles, exports or transforms, create the stream inside of the function, from its
    tensors.

    Raises
    ------
    ValueError
        A method is unknown.
    TypeError
        ``values`` is not a tensor.

    Examples
    --------
    >>> import torch
    >>> import robocache as rbc
    >>> values = torch.zeros(4, 30, 6, requires_grad=True)
    >>> rbc.torch.Stream(values, torch.arange(30.0), method="nearest")
    Stream(values=<float32 [4,30,6]>, times=<float32 [30]>, method='nearest')
    """

    def __init__(
        self,
        values: torch.Tensor,
        times: Times,
        *,
        method: Method = "linear",
        lengths: Indices | None = None,
        batch_offsets: Indices | None = None,
        sample_mask: SampleMask | None = None,
        missing: Missing | None = None,
        outside: Outside = "hold",
        fill_value: float = 0.0,
        max_gap: Duration | None = None,
        tolerance: Duration | None = None,
        mean: Numbers | None = None,
        std: Numbers | None = None,
        clock_offset: Duration = 0,
        arrivals: Times | None = None,
        causal: bool = False,
        max_age: Duration | None = None,
    ) -> None:
        require_tensor(values, "values")
        if not is_compiling():  # in a graph, encode raises the error
            rules(method, outside, fill_value, None, None)
        arguments = {
            "values": values,
            "times": times,
            "method": method,
            "lengths": lengths,
            "batch_offsets": batch_offsets,
            "sample_mask": sample_mask,
            "missing": missing,
            "outside": outside,
            "fill_value": fill_value,
            "max_gap": max_gap,
            "tolerance": tolerance,
            "mean": mean,
            "std": std,
            "clock_offset": clock_offset,
            "arrivals": arrivals,
            "causal": causal,
            "max_age": max_age,
        }
        for name, value in arguments.items():
            object.__setattr__(self, name, value)  # not the __setattr__ of frozen dataclasses

    @functools.cached_property
    def _plain(self) -> Any:
        """The stream for the plain operation."""
        options = {name: getattr(self, name) for name in _OPTIONS}
        return _stream.Stream(self.values, self.times, **options)

    @property
    def _native(self) -> Any:
        return self._plain._native

    @property
    def _unit(self) -> Any:
        return self._plain._unit

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        options = {name: getattr(self, name) for name in _OPTIONS}
        return _remade, (self.values, self.times, options)


def _remade(values: Any, times: Any, options: dict[str, Any]) -> Stream:
    return Stream(values, times, **options)


@overload
def fuse(
    streams: Sequence[_stream.Stream[torch.Tensor]],
    query_times: Times,
    *,
    return_valid: Literal[False] = ...,
    **options: Unpack[CallOptions],
) -> torch.Tensor: ...
@overload
def fuse(
    streams: Sequence[_stream.Stream[torch.Tensor]],
    query_times: Times,
    *,
    return_valid: Literal[True],
    **options: Unpack[CallOptions],
) -> tuple[torch.Tensor, torch.Tensor]: ...
def fuse(streams: Any, query_times: Any, *, return_valid: bool = False, **options: Any) -> Any:
    """Fuse streams of torch tensors as :func:`robocache.fuse`, with gradients of their values.

    Results, gradients and graphs are as for :func:`robocache.torch.resample`.

    Parameters
    ----------
    streams
        1 to 64 streams. Values that require a gradient, and streams in functions that torch traces,
        need :class:`robocache.torch.Stream`; others may also be :class:`robocache.Stream`. The same
        methods have gradients as for :func:`robocache.torch.resample`.
    query_times : array or list [B,T], or [T] shared by the batch
        The dtype of the streams' times, in any order.
    return_valid
        Also return a bool tensor [B,T,N], as for :func:`robocache.fuse`.
    query_lengths, lag, dtype, check_times, backend
        As for :func:`robocache.fuse`, in the forward pass.

    Returns
    -------
    tensor [B,T,D_0 + ... + D_N-1], or a tuple of it and ``valid``
        On the device of the values. On CUDA the work is enqueued on torch's current stream.

    Raises
    ------
    ValueError
        A value, a shape or a device is invalid, a method has no gradient where one is required,
        or an argument other than the streams' values requires one.
    TypeError
        A dtype is not supported, or an argument is not a stream or not a tensor.
    MemoryError
        Not enough memory.
    RoboCacheError
        The device is not available, or a CUDA error occurred.

    Examples
    --------
    >>> import torch
    >>> import robocache as rbc
    >>> slow = torch.tensor([[0.0], [10.0]], requires_grad=True)
    >>> fast = torch.arange(5.0)[:, None].requires_grad_()
    >>> streams = [
    ...     rbc.torch.Stream(slow, torch.tensor([0.0, 1.0])),
    ...     rbc.torch.Stream(fast, torch.arange(5.0) / 4, method="previous"),
    ... ]
    >>> rbc.torch.fuse(streams, [0.25, 0.5]).sum().backward()
    >>> slow.grad.flatten().tolist(), fast.grad.flatten().tolist()
    ([1.25, 0.75], [0.0, 1.0, 1.0, 0.0, 0.0])
    """
    require_no_output(options)
    try:
        values = [stream.values for stream in streams]
    except (AttributeError, TypeError):
        values = []  # the plain call raises the error
    for n, each in enumerate(values):
        require_tensor(each, f"streams[{n}].values")
    if not values or not seen(*values):
        return _plain_fuse(streams, query_times, return_valid=return_valid, **options)
    times, arrivals, query_times, changed, lag = _timed(streams, query_times, options.pop("lag", 0))
    query_times = query_array(query_times, times[0], values[0])
    lists = [
        [
            take(getattr(stream, name), f"streams[{n}].{name}", values[n])
            for n, stream in enumerate(streams)
        ]
        for name, take in _LISTS.items()
    ]
    lists.append(
        [
            sample_mask(stream.sample_mask, stream.missing, f"streams[{n}].sample_mask", values[n])
            for n, stream in enumerate(streams)
        ]
    )
    lists.append(
        [
            arrival_array(each, f"streams[{n}].arrivals", times[n], values[n])
            for n, each in enumerate(arrivals)
        ]
    )
    values = [
        for_each(each, own, query_times, stream.batch_offsets)
        for each, own, stream in zip(values, times, streams)
    ]
    query_lengths = indices(options.pop("query_lengths", None), "query_lengths", values[0])
    texts = [encode(each, "Stream") for each in changed]
    _require_lag(lag, times[0])
    if lag != 0:
        options["lag"] = lag
    text = encode(with_flags(options, return_valid=return_valid), "fuse")
    out, valid = OPS.fuse(values, times, query_times, *lists, query_lengths, texts, text)
    return (out, valid) if return_valid else out


def _timed(
    streams: Any, query_times: Any, lag: Any
) -> tuple[list[Any], list[Any], Any, list[dict[str, Any]], Any]:
    """Return times, arrivals, query times and the lag as numbers.

    The rules of each stream are without defaults.
    """
    times, arrivals, units, changed = [], [], [], []
    for n, stream in enumerate(streams):
        own, unit = stream.times, None
        come = getattr(stream, "arrivals", None)
        rule = {name: getattr(stream, name) for name in _RULES}
        if not is_compiling():
            own, unit = times_of(own, f"streams[{n}].times")
            come = arrivals_of(come, unit, f"streams[{n}].times")
            names = ("max_gap", "tolerance", "max_age")
            durations = ticks_or_numbers(unit, **{name: rule[name] for name in names})
            rule.update(zip(names, durations))
            if unit is not None:
                rule["clock_offset"] = ticks_of(rule["clock_offset"], "clock_offset", unit)
            _require_rules({"causal": rule["causal"]}, rule, own)
            if n == 0:
                (lag,) = ticks_or_numbers(unit, lag=lag)
        times.append(array(own, f"streams[{n}].times"))
        arrivals.append(come)
        units.append(unit)
        changed.append({name: value for name, value in rule.items() if value != _RULES[name]})
    if not is_compiling():
        for n, unit in enumerate(units):
            require_one_unit(unit, f"streams[{n}].times", units[0], "streams[0].times")
        query_times = queries_of(query_times, times[0], units[0], "streams[0].times")
    return times, arrivals, query_times, changed, lag


publish(__name__)


def __dir__() -> list[str]:
    return __all__
