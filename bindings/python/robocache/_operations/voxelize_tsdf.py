"""Integration of point clouds into truncated signed distance fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from .. import _core
from .._arguments.arrays import SEQUENCES, framework_of
from .._arguments.call import begin, finished, joined, writable
from .._arguments.clouds import clouds
from .._arguments.options import code_of, number, struct_of
from .._arguments.samples import array_in
from .._library.context import CPU, Context
from .._typing import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Unpack

    from .._typing import CloudOptions, GridOptions, Indices, Numbers3, SupportsDLPack
    from ..data._point_clouds import PointCloud

    class _Needed(GridOptions):
        truncation: float

    class _Options(_Needed, CloudOptions, total=False):
        weighting: Literal["constant", "inverse_square"]
        carve: bool
        max_weight: float | None


_WEIGHTINGS = {
    "constant": _core.VOXELIZE_TSDF_WEIGHTING_CONSTANT,
    "inverse_square": _core.VOXELIZE_TSDF_WEIGHTING_INVERSE_SQUARE,
}
_CONSTANT = "constant"
_new, _set_flags, _set_weighting, _set_truncation, _set_max_weight = struct_of(
    "VoxelizeTsdfParams", "flags", "weighting", "truncation", "max_weight"
)


@overload
def voxelize_tsdf(
    points: Array,
    sensors: Numbers3 | Sequence[Sequence[float]],
    *,
    tsdf: Array | None = ...,
    weight: Array | None = ...,
    return_num_points_unused: Literal[False] = ...,
    **options: Unpack[_Options],
) -> tuple[Array, Array]: ...
@overload
def voxelize_tsdf(
    points: Array,
    sensors: Numbers3 | Sequence[Sequence[float]],
    *,
    tsdf: Array | None = ...,
    weight: Array | None = ...,
    return_num_points_unused: Literal[True],
    **options: Unpack[_Options],
) -> tuple[Array, Array, Array]: ...
@overload
def voxelize_tsdf(
    points: Array,
    sensors: Numbers3 | Sequence[Sequence[float]],
    *,
    tsdf: Array | None = ...,
    weight: Array | None = ...,
    return_num_points_unused: bool,
    **options: Unpack[_Options],
) -> tuple[Array, Array] | tuple[Array, Array, Array]: ...
@overload
def voxelize_tsdf(points: PointCloud, *arguments: Any, **options: Any) -> Any: ...
def voxelize_tsdf(
    points: Any,
    sensors: Numbers3 | Sequence[Sequence[float]],
    *,
    voxel_size: float | Numbers3,
    truncation: float,
    origin: Numbers3 | None = None,
    shape: Sequence[int] | None = None,
    point_cloud_range: Sequence[float] | SupportsDLPack | None = None,
    tsdf: Array | None = None,
    weight: Array | None = None,
    weighting: Literal["constant", "inverse_square"] = "constant",
    carve: bool = False,
    max_weight: float | None = None,
    lengths: Indices | None = None,
    batch_offsets: Indices | None = None,
    return_num_points_unused: bool = False,
    backend: str | Context | None = None,
) -> Any:
    """Integrate B point clouds of N points each into one truncated signed distance field.

    Each ray from a sensor to a point updates the voxels that it passes within ``truncation`` of the
    point. A voxel holds the weighted running average of the distances from its centre to the
    surface along the rays, positive in front of the surface and negative behind it. Clouds may be
    integrated in one call or in several. The result of a call is the same, bit for bit, on the CPU
    and on CUDA, in every run, and for any order of the points. Distances are in the unit of the
    points.

    Parameters
    ----------
    points : array [B,N,C]; [N,C] without batch; [N,C] packed, with ``batch_offsets``
        float16, bfloat16, float32 or float64; the first three of C columns are x, y, z. Or a
        :class:`robocache.data.PointCloud`.
    sensors : array or list [B,3], or [3] shared by the batch
        float32 or float64: position of the sensor of each cloud.
    origin : 3 numbers
        The corner of the grid with the smallest coordinates.
    voxel_size : number, or 3 numbers
        Edge length of a voxel, more than 0; one for all axes or one per axis.
    shape : 3 ints
        Number of voxels along x, y and z.
    point_cloud_range : 6 numbers
        Alternative to ``origin`` and ``shape``, as used by detectors: the corners x0, y0, z0, x1,
        y1, z1 of the grid, which has round((x1 - x0) / ``voxel_size``) voxels along x.
    truncation
        Distance in front of and behind a point within which voxels are updated, more than 0;
        usually a few voxels.
    tsdf, weight : arrays [X,Y,Z] of float32
        The volume so far, updated in place and returned. None: a new one of zeros.
    weighting
        Weight of a point at the distance r from its sensor: "constant" (1), or "inverse_square"
        (1 / r^2, at most 1) for depth cameras, whose noise grows with r.
    carve
        Also update the free space between the sensor and the surface.
    max_weight
        Maximum weight of a voxel, so that it keeps following a moving surface. None: no maximum.
    lengths : array or list [B] of int32 or int64
        Number of valid points of each padded cloud. None: all. Verified on the CPU; on CUDA, wrong
        lengths give unspecified values.
    batch_offsets : array or list [B+1] of int32 or int64
        Where each cloud begins in packed ``points``, and where the last ends.
    return_num_points_unused
        Also return the number of points of each cloud that updated no voxel: an int64 array [B].
    backend
        Device to compute on. None: the device of the arrays. "cpu", "cuda" and "cuda:N"
        require the arrays to be there; a :class:`Context` is used directly.

    Returns
    -------
    tuple of tsdf [X,Y,Z], weight [X,Y,Z], and with return_num_points_unused that number [B]
        tsdf is within +-``truncation``; weight is 0 where nothing was observed. The arrays are from
        the library of ``points``, on its device. On CUDA the work is enqueued on that library's
        current stream.

    Raises
    ------
    ValueError
        A value, a shape or a device is invalid. The message begins with the argument's name.
    TypeError
        A dtype is not supported, or an argument is not an array.
    MemoryError
        Not enough memory.
    RoboCacheError
        The device is not available, or a CUDA error occurred.

    Examples
    --------
    A wall at x = 1.02 m, seen from the origin:

    >>> import numpy as np
    >>> import robocache as rbc
    >>> y, z = np.meshgrid(np.linspace(-1, 1, 200), np.linspace(-1, 1, 200))
    >>> wall = np.stack([np.full(y.size, 1.02), y.ravel(), z.ravel()], axis=1)
    >>> grid = {"origin": (0, -1, -1), "voxel_size": 0.1, "shape": (20, 20, 20)}
    >>> tsdf, weight = rbc.voxelize_tsdf(wall, [0, 0, 0], truncation=0.3, **grid)
    >>> np.sign(tsdf[:, 10, 10]).astype(int).tolist()
    [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0]
    """
    points = array_in(points)
    framework, context, ordered, _ = begin(points, "points", backend)
    _, batch, shape, options = clouds(
        framework,
        context,
        points,
        origin,
        voxel_size,
        shape,
        lengths,
        batch_offsets,
        point_cloud_range=point_cloud_range,
    )
    params = _new()
    if type(truncation) is not float:
        truncation = number(truncation, "truncation")
    _set_truncation(params, truncation)
    if weighting is not _CONSTANT:
        _set_weighting(params, code_of(_WEIGHTINGS, weighting, "weighting"))
    if carve:
        _set_flags(params, _core.VOXELIZE_TSDF_FLAG_CARVE)
    if max_weight is not None:
        _set_max_weight(params, number(max_weight, "max_weight"))
    if type(sensors) in SEQUENCES:
        sensors = framework.sequence(sensors, "sensors", "float64", points)
    else:
        own = framework if type(sensors) is type(points) else framework_of(sensors, "sensors")
        if not own.is_numpy:
            own.examine(sensors, "sensors")

    if (tsdf is None) != (weight is None):
        raise ValueError("tsdf: pass both tsdf and weight, or neither")
    owners: Any = (None, None)
    if tsdf is None:
        tsdf = framework.zeros(points, shape, "float32", context)
        weight = framework.zeros(points, shape, "float32", context)
        if context._device_id != CPU:
            ordered = joined(context, framework, points) and ordered
    else:
        owners = writable(tsdf, "tsdf"), writable(weight, "weight")
    unused = framework.empty(points, batch, "int64", context) if return_num_points_unused else None

    _core.rbc_voxelize_tsdf(
        context._handle, points, sensors, tsdf, weight, unused, (params, *options)
    )
    tsdf = finished(framework, context, ordered, "points", owners[0], tsdf)
    rest = finished(framework, context, True, "points", owners[1], weight, unused)
    return (tsdf, rest) if unused is None else (tsdf, *rest)
