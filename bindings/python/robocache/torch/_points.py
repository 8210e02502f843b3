"""Clouds out of depth images, and few points of them, for torch: see robocache.torch."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Literal, overload

import torch

from .._library.errors import REFUSALS
from .._operations import farthest_points as _farthest_points
from .._operations import unproject as _unproject
from .._operations.unproject import Cloud
from ._arguments import array, indices, is_compiling, require_no_output, require_tensor, scale, seen
from ._options import asked, encode
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
        step: int
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

# torch.export saves it as the result of a graph.
torch.export.register_dataclass(Cloud, serialized_type_name="robocache.Cloud")


def unproject(
    depth: torch.Tensor,
    intrinsics: Numbers | Sequence[Sequence[float]],
    pose: Numbers | Sequence[Any] | None = None,
    **options: Unpack[_CameraOptions],
) -> Cloud[torch.Tensor]:
    """:func:`robocache.unproject` of a torch tensor, with its gradient with respect to float depth.

    The result is the same, bit for bit, and is a part of graphs. The other arguments must not
    require a gradient. :meth:`robocache.Cloud.trimmed` belongs outside of a graph.

    Parameters
    ----------
    depth : tensor [B,H,W] or [H,W]
        uint16, float16 or float32. Pixels that are no points have the gradient 0.
    intrinsics : array or list [B,4], or [4] for all images
        As for :func:`robocache.unproject`, as is all else.
    pose : array or list [B,4,4], or [4,4] for all images
        From the camera's frame to the cloud's.
    colors, depth_scale, min_depth, max_depth, crop, pixel_offset, step, color_divisor, max_points
        As for :func:`robocache.unproject`. ``crop`` is numbers, which a graph holds.
    dtype, backend
        As for :func:`robocache.unproject`.

    Returns
    -------
    Cloud
        Of tensors on the device of ``depth``.

    Raises
    ------
    ValueError
        A value, a shape or a device does not fit, or an argument other than ``depth`` requires a
        gradient.
    TypeError
        A dtype does not fit, or an argument is no tensor.
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
    given: dict[str, Any] = {**options}
    require_no_output(given)
    if not seen(depth):
        cloud: Cloud[torch.Tensor] = _plain_unproject(depth, intrinsics, pose, **given)
        return cloud
    if is_compiling() and isinstance(given.get("crop"), torch.Tensor):
        raise TypeError("crop: is a Tensor, expected numbers, which the graph is to hold")
    colors = given.pop("colors", None)
    arrays = (
        _numbers(intrinsics, "intrinsics", depth),
        None if pose is None else _numbers(pose, "pose", depth),
        colors if colors is None or is_compiling() else array(colors, "colors"),
    )
    return Cloud(*OPERATORS["unproject"](depth, *arrays, encode(given, "unproject")))


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
    """:func:`robocache.farthest_points` of a torch tensor, as a part of graphs.

    Which points are taken has no gradient, so ``points`` must not require one: pass
    ``points.detach()``, and take the rows with :func:`robocache.torch.take_rows`, which has one.

    Parameters
    ----------
    points : tensor [B,N,C]; [N,C] without batch; [N,C] packed, with ``batch_offsets``
        As for :func:`robocache.farthest_points`, as is all else.
    k
        How many, 1 or more.
    return_distances
        Also return the squared distances to the nearest of the points before.
    lengths, batch_offsets, start_index, backend
        As for :func:`robocache.farthest_points`.

    Returns
    -------
    tensor [B,K] or [K] of int64, or a tuple of it and the squared distances
        On the device of ``points``.

    Raises
    ------
    ValueError
        A value, a shape or a device does not fit, or ``points`` requires a gradient.
    TypeError
        A dtype does not fit, or an argument is no tensor.
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
    try:
        options["start_index"] = operator.index(start)
    except REFUSALS:
        start_indices = indices(start, "start_index", points)
    arrays = [
        indices(options.pop(name, None), name, points) for name in ("lengths", "batch_offsets")
    ]
    text = encode(asked({**options, "k": k}, return_distances=return_distances), "farthest_points")
    chosen, distances = OPERATORS["farthest_points"](points, start_indices, *arrays, text)
    return (chosen, distances) if return_distances else chosen


def take_rows(
    values: torch.Tensor,
    indices: torch.Tensor,
    fill_value: float = 0,
    *,
    backend: str | Context | None = None,
) -> torch.Tensor:
    """:func:`robocache.take_rows` of torch tensors, with its gradient with respect to ``values``.

    The result is the same, bit for bit, and is a part of graphs. A gradient is the same in every
    run: its sums have one order.

    Parameters
    ----------
    values : tensor [B,N,C], or [N,C]
        Of any dtype. Gradients are summed in float32, for float64 in that.
    indices : tensor [B,K], or [K] with [N,C]
        int32 or int64: rows of ``values``, or -1.
    fill_value
        Of rows whose index is -1.
    backend
        As for :func:`robocache.take_rows`.

    Returns
    -------
    tensor [B,K,C] or [K,C]
        On the device of ``values``.

    Raises
    ------
    ValueError
        A value, a shape or a device does not fit; on the CPU an index that no row has.
    TypeError
        A dtype does not fit, or an argument is no tensor.
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
        taken: torch.Tensor = _plain_take(values, indices, fill_value, backend=backend)
        return taken
    at = array(indices, "indices")
    options = {"fill_value": fill_value, "backend": backend}
    changed = {name: each for name, each in options.items() if each not in (0, None)}
    taken = OPERATORS["take_rows"](values, at, encode(changed, "take_rows"))
    return taken


def _numbers(given: Any, name: str, beside: torch.Tensor) -> Any:
    """A camera as a tensor: a list in float64."""
    if is_compiling() and isinstance(given, (list, tuple)):
        return torch.tensor(given, dtype=torch.float64, device=beside.device)
    return scale(given, name, beside)
