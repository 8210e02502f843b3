"""Depth images to clouds, and sampling of points, for torch; see robocache.torch."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Literal, overload

import torch

from .._library.errors import REFUSALS
from .._operations import farthest_points as _farthest_points
from .._operations import unproject as _unproject
from .._operations.unproject import Cloud
from ._arguments import array, indices, is_compiling, require_no_output, require_tensor, scale, seen
from ._options import encode, with_flags
from ._point_operators import OPERATORS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import TypedDict, Unpack

    from .._library.context import Context
    from .._typing import Indices, Numbers

    class _CameraOptions(TypedDict, total=False):
        colors: torch.Tensor | None
        depth_scale: float | None
        min_depth: float
        max_depth: float
        crop: Numbers | None
        pixel_offset: float
        pixel_stride: int
        color_divisor: float
        max_points: int | None
        dtype: Any
        backend: str | Context | None

    class _ChoiceOptions(TypedDict, total=False):
        lengths: Indices | None
        batch_offsets: Indices | None
        start_index: int | Indices
        backend: str | Context | None


_plain_unproject: Any = _unproject.unproject
_plain_farthest: Any = _farthest_points.farthest_points
_plain_take: Any = _farthest_points.take_rows

# So that torch.export can save it as the result of a graph.
torch.export.register_dataclass(Cloud, serialized_type_name="robocache.Cloud")


def unproject(
    depth: torch.Tensor,
    intrinsics: Numbers | Sequence[Sequence[float]],
    pose: Numbers | Sequence[Any] | None = None,
    **options: Unpack[_CameraOptions],
) -> Cloud[torch.Tensor]:
    """Unproject a torch tensor as :func:`robocache.unproject`, with gradients of float depth.

    The result is the same, bit for bit, and the call can be part of graphs. The other arguments
    must not require a gradient. Call :meth:`robocache.Cloud.trimmed` outside of a graph.

    Parameters
    ----------
    depth : tensor [B,H,W] or [H,W]
        uint16, float16 or float32. The gradient is 0 for pixels without a point.
    intrinsics : array or list [B,4], or [4] for all images
        As for :func:`robocache.unproject`.
    pose : array or list [B,4,4], or [4,4] for all images
        Transform from the camera's frame to the cloud's frame.
    colors, depth_scale, min_depth, max_depth, crop
    pixel_offset, pixel_stride, color_divisor, max_points
        As for :func:`robocache.unproject`. In a graph, ``crop`` must be numbers.
    dtype, backend
        As for :func:`robocache.unproject`.

    Returns
    -------
    Cloud
        Its tensors are on the device of ``depth``.

    Raises
    ------
    ValueError
        A value, a shape or a device is invalid, or an argument other than ``depth`` requires a
        gradient.
    TypeError
        A dtype is not supported, or an argument is not a tensor.
    MemoryError
        Not enough memory.
    RoboCacheError
        The device is not available, or a CUDA error occurred.

    Examples
    --------
    >>> import torch
    >>> import robocache as rbc
    >>> depth = torch.tensor([[1.0, 0.0], [2.0, 4.0]], requires_grad=True)
    >>> cloud = rbc.torch.unproject(depth, [2, 2, 0.5, 0.5])
    >>> cloud.points[..., 0].sum().backward()
    >>> depth.grad.tolist()
    [[-0.25, 0.0], [-0.25, 0.25]]
    """
    require_tensor(depth, "depth")
    arguments: dict[str, Any] = {**options}
    require_no_output(arguments)
    if not seen(depth):
        cloud: Cloud[torch.Tensor] = _plain_unproject(depth, intrinsics, pose, **arguments)
        return cloud
    if is_compiling() and isinstance(arguments.get("crop"), torch.Tensor):
        raise TypeError("crop: is a Tensor, expected numbers, which become part of the graph")
    colors = arguments.pop("colors", None)
    arrays = (
        _numbers(intrinsics, "intrinsics", depth),
        None if pose is None else _numbers(pose, "pose", depth),
        colors if colors is None or is_compiling() else array(colors, "colors"),
    )
    return Cloud(*OPERATORS["unproject"](depth, *arrays, encode(arguments, "unproject")))


@overload
def farthest_points(
    points: torch.Tensor,
    k: int,
    *,
    return_distances: Literal[False] = ...,
    **options: Unpack[_ChoiceOptions],
) -> torch.Tensor: ...
@overload
def farthest_points(
    points: torch.Tensor,
    k: int,
    *,
    return_distances: Literal[True],
    **options: Unpack[_ChoiceOptions],
) -> tuple[torch.Tensor, torch.Tensor]: ...
def farthest_points(points: Any, k: int, *, return_distances: bool = False, **options: Any) -> Any:
    """Sample points of a torch tensor as :func:`robocache.farthest_points`, also in graphs.

    The selection has no gradient, so ``points`` must not require one: pass ``points.detach()``, and
    take the rows with :func:`robocache.torch.take_rows`, which has a gradient.

    Parameters
    ----------
    points : tensor [B,N,C]; [N,C] without batch; [N,C] packed, with ``batch_offsets``
        As for :func:`robocache.farthest_points`.
    k
        Number of points to select, 1 or more.
    return_distances
        Also return the squared distance of each point to the nearest point selected before it.
    lengths, batch_offsets, start_index, backend
        As for :func:`robocache.farthest_points`.

    Returns
    -------
    tensor [B,K] or [K] of int64, or a tuple of it and the squared distances
        On the device of ``points``.

    Raises
    ------
    ValueError
        A value, a shape or a device is invalid, or ``points`` requires a gradient.
    TypeError
        A dtype is not supported, or an argument is not a tensor.
    MemoryError
        Not enough memory.
    RoboCacheError
        The device is not available, or a CUDA error occurred.

    Examples
    --------
    >>> import torch
    >>> import robocache as rbc
    >>> points = torch.tensor([[0.0, 0, 0], [1, 0, 0], [9, 0, 0], [4, 0, 0]])
    >>> rbc.torch.farthest_points(points, 3).tolist()
    [0, 2, 3]
    """
    require_tensor(points, "points")
    require_no_output(options)
    if not seen(points):
        return _plain_farthest(points, k, return_distances=return_distances, **options)
    if not is_compiling():
        array(points, "points")
    start, start_indices = options.pop("start_index", 0), None
    if isinstance(start, (list, tuple)):  # older torch.compile cannot trace the refusal of a list
        start_indices = indices(start, "start_index", points)
    else:
        try:
            options["start_index"] = operator.index(start)
        except REFUSALS:
            start_indices = indices(start, "start_index", points)
    arrays = [
        indices(options.pop(name, None), name, points) for name in ("lengths", "batch_offsets")
    ]
    text = encode(
        with_flags({**options, "k": k}, return_distances=return_distances), "farthest_points"
    )
    chosen, distances = OPERATORS["farthest_points"](points, start_indices, *arrays, text)
    return (chosen, distances) if return_distances else chosen


def take_rows(
    values: torch.Tensor,
    indices: torch.Tensor,
    fill_value: float = 0,
    *,
    backend: str | Context | None = None,
) -> torch.Tensor:
    """Take rows of torch tensors as :func:`robocache.take_rows`, with gradients of ``values``.

    The result is the same, bit for bit, and the call can be part of graphs. Gradients are the same
    in every run, since their sums have a fixed order.

    Parameters
    ----------
    values : tensor [B,N,C], or [N,C]
        Any dtype. Gradients are summed in float64 for float64, else in float32.
    indices : tensor [B,K], or [K] with [N,C]
        int32 or int64: rows of ``values``, or -1.
    fill_value
        Value of the rows whose index is -1.
    backend
        As for :func:`robocache.take_rows`.

    Returns
    -------
    tensor [B,K,C] or [K,C]
        On the device of ``values``.

    Raises
    ------
    ValueError
        A value, a shape or a device is invalid, or, on the CPU, an index has no row.
    TypeError
        A dtype is not supported, or an argument is not a tensor.
    MemoryError
        Not enough memory.
    RoboCacheError
        The device is not available, or a CUDA error occurred.

    Examples
    --------
    >>> import torch
    >>> import robocache as rbc
    >>> values = torch.tensor([[1.0], [2.0], [3.0]], requires_grad=True)
    >>> rbc.torch.take_rows(values, torch.tensor([2, -1, 2])).sum().backward()
    >>> values.grad.flatten().tolist()
    [0.0, 0.0, 2.0]
    """
    require_tensor(values, "values")
    if not seen(values):
        rows: torch.Tensor = _plain_take(values, indices, fill_value, backend=backend)
        return rows
    row_indices = array(indices, "indices")
    options = {"fill_value": fill_value, "backend": backend}
    changed = {name: each for name, each in options.items() if each not in (0, None)}
    rows = OPERATORS["take_rows"](values, row_indices, encode(changed, "take_rows"))
    return rows


def _numbers(value: Any, name: str, like: torch.Tensor) -> Any:
    """Return the numbers of a camera as a tensor; a list becomes float64."""
    if is_compiling() and isinstance(value, (list, tuple)):
        return torch.tensor(value, dtype=torch.float64, device=like.device)
    return scale(value, name, like)
