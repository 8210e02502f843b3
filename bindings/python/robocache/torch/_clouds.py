"""Voxels of point clouds for torch: see robocache.torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import torch

from .._arguments.clouds import within
from .._operations import voxelize as _voxelize
from .._operations import voxelize_sparse as _voxelize_sparse
from .._operations.voxelize_sparse import SparseVoxels
from ._arguments import array, indices, is_compiling, require_no_output, require_tensor, seen
from ._operators import OPS
from ._options import asked, encode

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


_plain_voxelize: Any = _voxelize.voxelize  # whose overloads take no **options
_plain_sparse: Any = _voxelize_sparse.voxelize_sparse

# torch.export saves it as the result of a graph.
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
    """:func:`robocache.voxelize` of torch tensors, as a part of graphs.

    Points and features must not require a gradient. Within torch.compile and torch.export the grid
    (``origin``, ``voxel_size``, ``shape``, ``point_cloud_range``) is numbers that the graph holds.

    Parameters
    ----------
    points : tensor [B,N,C]; [N,C] without batch; [N,C] packed, with ``batch_offsets``
        As for :func:`robocache.voxelize`, as is all else but ``out``, which is not taken here.
    features : tensor [B,N,F] or [N,F], as ``points``
        None: the C columns of ``points``.
    return_num_points_outside
        Also return how many points of each cloud lie in no voxel: an int64 tensor [B].
    origin, voxel_size, shape, point_cloud_range, reduction, lengths, batch_offsets, empty_value,
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
        A value, a shape or a device does not fit, or an argument requires a gradient.
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
    text = encode(asked(options, return_num_points_outside=return_num_points_outside), "voxelize")
    out, outside = OPS.voxelize(*arrays, text)
    return (out, outside) if return_num_points_outside else out


def voxelize_sparse(
    points: torch.Tensor, features: torch.Tensor | None = None, **options: Unpack[_SparseOptions]
) -> SparseVoxels[torch.Tensor]:
    """:func:`robocache.voxelize_sparse` of torch tensors, as a part of graphs.

    As :func:`robocache.torch.voxelize` is to :func:`robocache.voxelize`. The results have room for
    ``max_voxels``, so their shapes are known when a graph is made. Give it in graphs: else there is
    room for as many voxels as points. :meth:`robocache.SparseVoxels.trimmed` belongs outside of a
    graph.

    Parameters
    ----------
    points : tensor [B,N,C]; [N,C] without batch; [N,C] packed, with ``batch_offsets``
        As for :func:`robocache.voxelize_sparse`, as is all else.
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
        Of tensors on the device of ``points``. Under torch.vmap each of them has the mapped
        dimension in front, and there is one call for each element.

    Raises
    ------
    ValueError
        A value, a shape or a device does not fit, or an argument requires a gradient.
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
    >>> points = torch.tensor([[0.1, 0, 0], [5, 5, 5], [0.3, 0, 0]])
    >>> grid = {"origin": (0, 0, 0), "voxel_size": 0.5, "shape": (20, 20, 20)}
    >>> voxels = rbc.torch.voxelize_sparse(points, max_voxels=4, **grid)
    >>> voxels.points_per_voxel.tolist(), voxels.point_to_voxel.tolist()
    ([2, 1, 0, 0], [0, 1, 0])
    """
    require_tensor(points, "points")
    given: dict[str, Any] = {**options}
    if not seen(points):
        voxels: SparseVoxels[torch.Tensor] = _plain_sparse(points, features, **given)
        return voxels
    arrays = _cloud(points, features, given)
    text = encode(given, "voxelize_sparse")
    coords, counts, reduced, grouped, *rest = OPS.voxelize_sparse(*arrays, text)
    if "reduction" in given and given["reduction"] is None:
        reduced = None
    if given.get("max_points") is None:
        grouped = None
    if not given.get("return_point_to_voxel", True):
        rest[0] = None
    return SparseVoxels(coords, counts, reduced, grouped, *rest)


def _cloud(points: Any, features: Any, options: dict[str, Any]) -> tuple[Any, ...]:
    """The tensors of a call, which leave its options."""
    if is_compiling():
        for name in ("origin", "voxel_size", "shape", "point_cloud_range"):
            if isinstance(options.get(name), torch.Tensor):
                raise TypeError(
                    f"{name}: is a Tensor, expected numbers, which the graph is to hold"
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
