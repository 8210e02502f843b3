"""Windows for torch; see robocache.torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from .._arguments.coerce import ticks_or_numbers
from .._arguments.options import ZERO
from .._statistics.normalization import Normalization
from .._typing import Duration, Indices, Method, Missing, Numbers, SampleMask, Times, WindowOutside
from .._windows import window_stream as _window_stream
from .._windows.transform import Transform
from .._windows.windows import anchor_array, resolved, result_dtype
from .._windows.windows import windows as plain_windows
from ._arguments import array, indices, require_tensor, seen
from ._options import encode
from ._window_operator import LISTS, WINDOWS_OP

if TYPE_CHECKING:
    from .._library.context import Context

_plain: Any = plain_windows  # typed as Any: its overloads take no **options


class WindowStream(_window_stream.WindowStream[torch.Tensor]):
    """A :class:`robocache.WindowStream` of values that may require a gradient.

    It takes the same arguments, except accumulators, and is used in
    :func:`robocache.torch.windows`. Create it outside of a function that torch compiles or exports.

    Raises
    ------
    ValueError
        As for :class:`robocache.WindowStream`.
    TypeError
        ``values`` is not a tensor.

    Examples
    --------
    >>> import torch
    >>> import robocache as rbc
    >>> values = torch.zeros(7, 2, requires_grad=True)
    >>> rbc.torch.WindowStream(values, [-1, 0], episode_offsets=[0, 4, 7])
    WindowStream(values=<float32 [7,2]>, offsets=[-1, 0], episode_offsets=[0, 4, 7])
    """

    def __init__(
        self,
        values: torch.Tensor,
        offsets: Indices | Sequence[Any],
        *,
        episode_offsets: Indices,
        times: Times | None = None,
        method: Method | None = None,
        outside: WindowOutside = "hold",
        fill_value: float = ZERO,
        neutral: Numbers | Sequence[Sequence[float]] | None = None,
        neutral_channels: SampleMask | None = None,
        transforms: Sequence[Transform] | Transform = (),
        normalization: Normalization | None = None,
        max_gap: Duration | None = None,
        tolerance: Duration | None = None,
        sample_mask: SampleMask | None = None,
        missing: Missing | None = None,
        clock_offset: Duration = 0,
        dtype: Any = None,
        output: bool | None = None,
        arrivals: Times | None = None,
        causal: bool = False,
        max_age: Duration | None = None,
    ) -> None:
        require_tensor(values, "values")
        super().__init__(
            values.detach(),
            offsets,
            episode_offsets=episode_offsets,
            times=times,
            method=method,
            outside=outside,
            fill_value=fill_value,
            neutral=neutral,
            neutral_channels=neutral_channels,
            transforms=transforms,
            normalization=normalization,
            max_gap=max_gap,
            tolerance=tolerance,
            sample_mask=sample_mask,
            missing=missing,
            clock_offset=clock_offset,
            dtype=dtype,
            output=output,
            arrivals=arrivals,
            causal=causal,
            max_age=max_age,
        )
        self.__dict__["values"] = values

    def _require_plain(self, name: str) -> None:
        values: Any = self.values
        if values.requires_grad and torch.is_grad_enabled():
            raise ValueError(
                f"{name}: requires grad, which is not carried through; "
                f"call robocache.torch.windows, or pass values.detach()"
            )


def windows(
    streams: Sequence[_window_stream.WindowStream[torch.Tensor]],
    episodes: Indices,
    anchors: Times,
    *,
    anchor_stream: int = 0,
    anchor_times: bool = False,
    lag: Duration = 0,
    dtype: Any = None,
    check_times: bool = False,
    backend: str | Context | None = None,
) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Cut windows of torch tensors as :func:`robocache.windows`, with gradients of their values.

    Results and graphs are as for :func:`robocache.torch.resample`, and gradients are the same in
    every run. Under torch.vmap there is one call for each element.

    There are gradients where windows are linear in the values: for rows that are copied, or
    interpolated by "linear", "nearest", "previous", "next" or "cubic"; for the transform
    "subtract", also with respect to its reference; and for normalization, where clipped values have
    the gradient 0.

    Parameters
    ----------
    streams
        Streams with values that require a gradient need :class:`robocache.torch.WindowStream`;
        others may also be :class:`robocache.WindowStream`. Accumulators are not supported with
        gradients or in graphs.
    episodes, anchors, anchor_stream, anchor_times, lag, dtype, check_times, backend
        As for :func:`robocache.windows`, in the forward pass.

    Returns
    -------
    list of tuples of tensors
        For each stream, values [B,O,D'] and ``valid`` [B,O] of bool, on the device of the values.

    Raises
    ------
    ValueError
        A value, a shape or a device is invalid, or a gradient is required that does not exist, or
        of an argument other than values.
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
    >>> values = torch.arange(4.0)[:, None].requires_grad_()
    >>> stream = rbc.torch.WindowStream(values, [-1, 0, 1], episode_offsets=[0, 4])
    >>> ((rows, valid),) = rbc.torch.windows([stream], [0, 0], [0, 3])
    >>> rows.sum().backward()
    >>> values.grad.flatten().tolist()
    [2.0, 1.0, 1.0, 2.0]
    """
    options: dict[str, Any] = {"anchor_stream": anchor_stream, "anchor_times": anchor_times}
    options.update(check_times=check_times, backend=backend)
    try:
        tensors = [stream.values for stream in streams if stream.values is not None]
    except (AttributeError, TypeError):
        tensors = []  # the plain call raises the error
    for n, each in enumerate(tensors):
        require_tensor(each, f"streams[{n}].values")
    if not tensors or not seen(*tensors):
        pairs: list[Any] = _plain(streams, episodes, anchors, dtype=dtype, lag=lag, **options)
        return pairs
    opened_streams = [stream._opened for stream in streams]
    timed = [opened for opened in opened_streams if opened.times is not None]
    if timed:
        (lag,) = ticks_or_numbers(timed[0].unit, lag=lag)
    options["lag"] = lag
    lists: dict[str, list[Any]] = {name: [] for name in LISTS}
    texts = []
    for n, opened in enumerate(opened_streams):
        if opened.accumulator is not None:
            raise ValueError(f"streams[{n}].accumulator: not supported with gradients or in graphs")
        _, values, offsets, times, mask, params = opened.operands[:6]
        own = (values if values is None else streams[n].values, offsets, times, mask, params[2])
        for name, each in zip(LISTS, (*own, params[8], *opened.operands[7:14])):
            if name in ("times", "arrivals") and each is not None:
                each = array(each, f"streams[{n}].{name}")
            lists[name].append(each)
        rule = {**opened.rule, "transforms": resolved(n, opened_streams), "output": opened.writes}
        if opened.divides:
            rule["divides"] = True
        if values is not None:
            rule["dtype"] = result_dtype(opened, dtype)
        texts.append(encode(rule, "WindowStream"))
    like = tensors[0]
    samples = [indices(episodes, "episodes", like)]
    if anchor_times:
        samples.append(array(anchor_array(like, anchors, opened_streams), "anchors"))
    else:
        samples.append(indices(anchors, "anchors", like))
    changed = {name: each for name, each in options.items() if each not in (0, False, None)}
    results = WINDOWS_OP(*lists.values(), *samples, texts, encode(changed, "windows"))
    rest = iter(zip(results[::2], results[1::2]))
    return [next(rest) if opened.writes else (None, None) for opened in opened_streams]  # type: ignore[misc]
