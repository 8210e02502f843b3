"""Voxelization for torch; see robocache.torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import torch

from .._arguments.clouds import within
from .._operations import voxelize as _voxelize
from .._operations import voxelize_sparse as _voxelize_sparse
from .._operations.voxelize_sparse import SparseVoxels
from ._arguments import array, indices, is_compiling, require_no_output, require_tensor, seen
from ._operators import OPS
from ._options import encode, with_flags

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .._operations.voxelize import _AnyReduction
    from .._typing import CloudOptions, GridOptions, Reduction

    class _SparseOptions(GridOptions, CloudOptions, total=False):
        reduction: Reduction | None
        max_voxels: int | None
        max_points: int | None
        order: Literal["lexicographic", "first_point"] | None
        deterministic: bool
        dtype: Any
        return_point_to_voxel: bool


_plain_voxelize: Any = _voxelize.voxelize  # typed as Any: its overloads take no **options
_plain_sparse: Any = _voxelize_sparse.voxelize_sparse

# So that torch.export can save it as the result of a graph.
torch.export.register_dataclass(SparseVoxels, serialized_type_name="robocache.SparseVoxels")


@overload
def voxelize(
    points: torch.Tensor,
    features: torch.Tensor | None = ...,
    *,
    return_num_points_outside: Literal[False] = ...,
    **options: Unpack[_AnyReduction],
) -> torch.Tensor: ...
@overload
def voxelize(
    points: torch.Tensor,
    features: torch.Tensor | None = ...,
    *,
    return_num_points_outside: Literal[True],
    **options: Unpack[_AnyReduction],
) -> tuple[torch.Tensor, torch.Tensor]: ...
def voxelize(
    points: Any, features: Any = None, *, return_num_points_outside: bool = False, **options: Any
) -> Any:
    """Voxelize torch tensors as :func:`robocache.voxelize`, also in graphs.

    Points and features must not require a gradient. In torch.compile and torch.export, the grid
    (``origin``, ``voxel_size``, ``shape``, ``point_cloud_range``) must be numbers, which become
    part of the graph.

    Parameters
    ----------
    points : tensor [B,N,C]; [N,C] without batch; [N,C] packed, with ``batch_offsets``
        As for :func:`robocache.voxelize`. ``out`` is not supported.
    features : tensor [B,N,F] or [N,F], as ``points``
        None: the C columns of ``points``.
    return_num_points_outside
        Also return the number of points of each cloud that are in no voxel: an int64 tensor [B].
    origin, voxel_size, shape, point_cloud_range, reduction, lengths, batch_offsets, fill_value,
    dtype
        As for :func:`robocache.voxelize`.
    deterministic, backend
        As for :func:`robocache.voxelize`.

    Returns
    -------
    tensor [B,X,Y,Z] or [B,X,Y,Z,F], or a tuple of it and the number of points outside
        On the device of ``points``.

    Raises
    ------
    ValueError
        A value, a shape or a device is invalid, or an argument requires a gradient.
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
    >>> points = torch.tensor([[0.2, 0.1, 0.0], [0.4, 0.3, 0.9], [1.5, 0.0, 0.0]])
    >>> grid = {"origin": (0, 0, 0), "voxel_size": 1, "shape": (2, 1, 1)}
    >>> torch.vmap(lambda points: rbc.torch.voxelize(points, reduction="count", **grid))(
    ...     torch.stack([points, points + 1])
    ... ).flatten(1).tolist()
    [[2, 1], [0, 0]]
    """
    require_tensor(points, "points")
    require_no_output(options)
    if not seen(points):
        return _plain_voxelize(
            points, features, return_num_points_outside=return_num_points_outside, **options
        )
    arrays = _cloud(points, features, options)
    text = encode(
        with_flags(options, return_num_points_outside=return_num_points_outside), "voxelize"
    )
    out, outside = OPS.voxelize(*arrays, text)
    return (out, outside) if return_num_points_outside else out


def voxelize_sparse(
    points: torch.Tensor, features: torch.Tensor | None = None, **options: Unpack[_SparseOptions]
) -> SparseVoxels[torch.Tensor]:
    """Voxelize torch tensors as :func:`robocache.voxelize_sparse`, also in graphs.

    The rules of :func:`robocache.torch.voxelize` apply. The results have room for ``max_voxels``,
    so their shapes are known when a graph is traced. Pass ``max_voxels`` in graphs: the default is
    the number of points. Call :meth:`robocache.SparseVoxels.trimmed` outside of a graph.

    Parameters
    ----------
    points : tensor [B,N,C]; [N,C] without batch; [N,C] packed, with ``batch_offsets``
        As for :func:`robocache.voxelize_sparse`.
    features : tensor [B,N,F] or [N,F], as ``points``
        None: the C columns of ``points``.
    origin, voxel_size, shape, point_cloud_range, reduction, max_voxels, max_points, order
        As for :func:`robocache.voxelize_sparse`.
    lengths, batch_offsets
        As for :func:`robocache.voxelize_sparse`.
    deterministic, dtype, return_point_to_voxel, backend
        As for :func:`robocache.voxelize_sparse`.

    Returns
    -------
    SparseVoxels
        Its tensors are on the device of ``points``. Under torch.vmap, each has the mapped dimension
        in front, and there is one call for each element.

    Raises
    ------
    ValueError
        A value, a shape or a device is invalid, or an argument requires a gradient.
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
    >>> points = torch.tensor([[0.1, 0, 0], [5, 5, 5], [0.3, 0, 0]])
    >>> grid = {"origin": (0, 0, 0), "voxel_size": 0.5, "shape": (20, 20, 20)}
    >>> voxels = rbc.torch.voxelize_sparse(points, max_voxels=4, **grid)
    >>> voxels.points_per_voxel.tolist(), voxels.point_to_voxel.tolist()
    ([2, 1, 0, 0], [0, 1, 0])
    """
    require_tensor(points, "points")
    arguments: dict[str, Any] = {**options}
    if not seen(points):
        voxels: SparseVoxels[torch.Tensor] = _plain_sparse(points, features, **arguments)
        return voxels
    arrays = _cloud(points, features, arguments)
    text = encode(arguments, "voxelize_sparse")
    results = OPS.voxelize_sparse(*arrays, text)
    coords, counts, reduced, grouped, point_to_voxel = results[:5]
    if "reduction" in arguments and arguments["reduction"] is None:
        reduced = None
    if arguments.get("max_points") is None:
        grouped = None
    if not arguments.get("return_point_to_voxel", True):
        point_to_voxel = None
    return SparseVoxels(coords, counts, reduced, grouped, point_to_voxel, *results[5:])


def _cloud(points: Any, features: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    """Return the tensors of a call, removed from its options."""
    if is_compiling():
        for name in ("origin", "voxel_size", "shape", "point_cloud_range"):
            if isinstance(options.get(name), torch.Tensor):
                raise TypeError(
                    f"{name}: is a Tensor, expected numbers, which become part of the graph"
                )
    else:
        array(points, "points")
    corners = options.pop("point_cloud_range", None)
    if corners is not None:
        options["origin"], options["shape"] = within(
            corners, options["voxel_size"], options.get("origin"), options.get("shape")
        )
    return (
        points,
        None if features is None else array(features, "features"),
        *[indices(options.pop(name, None), name, points) for name in ("lengths", "batch_offsets")],
    )
