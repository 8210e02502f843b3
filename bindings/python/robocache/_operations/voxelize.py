"""Reduction of point clouds to dense voxel grids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from .. import _core
from .._arguments.call import begin, finished, writable
from .._arguments.clouds import REDUCTIONS, clouds, features_of
from .._arguments.options import ZERO, code_of, number, struct_of
from .._arguments.samples import array_in
from .._library.context import Context
from .._library.dtypes import dtype_name
from .._typing import Array, DenseReduction, Indices, Numbers3, Out, SupportsDLPack

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from .._typing import CloudOptions, GridOptions
    from ..data._point_clouds import PointCloud

    class _Options(GridOptions, CloudOptions, total=False):
        fill_value: float
        deterministic: bool

    class _AnyReduction(_Options, total=False):
        reduction: DenseReduction
        dtype: Any


_REDUCTIONS = {"occupancy": _core.REDUCE_OCCUPANCY, "count": _core.REDUCE_COUNT, **REDUCTIONS}
_OCCUPANCY = "occupancy"
_new, _set_reduction, _set_fill_value = struct_of("VoxelizeParams", "reduction", "fill_value")


@overload
def voxelize(
    points: NDArray[Any],
    features: SupportsDLPack | None = ...,
    *,
    reduction: Literal["occupancy"] = ...,
    dtype: None = ...,
    out: None = ...,
    return_num_points_outside: Literal[False] = ...,
    **options: Unpack[_Options],
) -> NDArray[np.bool_]: ...
@overload
def voxelize(
    points: NDArray[Any],
    features: SupportsDLPack | None = ...,
    *,
    reduction: Literal["occupancy"] = ...,
    dtype: None = ...,
    out: None = ...,
    return_num_points_outside: Literal[True],
    **options: Unpack[_Options],
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]: ...
@overload
def voxelize(
    points: NDArray[Any],
    features: SupportsDLPack | None = ...,
    *,
    reduction: Literal["count"],
    dtype: None = ...,
    out: None = ...,
    return_num_points_outside: Literal[False] = ...,
    **options: Unpack[_Options],
) -> NDArray[np.int32]: ...
@overload
def voxelize(
    points: NDArray[Any],
    features: SupportsDLPack | None = ...,
    *,
    reduction: Literal["count"],
    dtype: None = ...,
    out: None = ...,
    return_num_points_outside: Literal[True],
    **options: Unpack[_Options],
) -> tuple[NDArray[np.int32], NDArray[np.int64]]: ...
@overload
def voxelize(
    points: Array,
    features: SupportsDLPack | None = ...,
    *,
    out: None = ...,
    return_num_points_outside: Literal[False] = ...,
    **options: Unpack[_AnyReduction],
) -> Array: ...
@overload
def voxelize(
    points: Array,
    features: SupportsDLPack | None = ...,
    *,
    out: None = ...,
    return_num_points_outside: Literal[True],
    **options: Unpack[_AnyReduction],
) -> tuple[Array, Any]: ...
@overload
def voxelize(
    points: Array,
    features: SupportsDLPack | None = ...,
    *,
    out: None = ...,
    return_num_points_outside: bool,
    **options: Unpack[_AnyReduction],
) -> Array | tuple[Array, Any]: ...
@overload
def voxelize(
    points: SupportsDLPack,
    features: SupportsDLPack | None = ...,
    *,
    out: Out,
    return_num_points_outside: Literal[False] = ...,
    **options: Unpack[_AnyReduction],
) -> Out: ...
@overload
def voxelize(
    points: SupportsDLPack,
    features: SupportsDLPack | None = ...,
    *,
    out: Out,
    return_num_points_outside: Literal[True],
    **options: Unpack[_AnyReduction],
) -> tuple[Out, Any]: ...
@overload
def voxelize(
    points: SupportsDLPack,
    features: SupportsDLPack | None = ...,
    *,
    out: Out,
    return_num_points_outside: bool,
    **options: Unpack[_AnyReduction],
) -> Out | tuple[Out, Any]: ...
@overload
def voxelize(points: PointCloud, *arguments: Any, **options: Any) -> Any: ...
def voxelize(
    points: SupportsDLPack | PointCloud,
    features: SupportsDLPack | None = None,
    *,
    voxel_size: float | Numbers3,
    origin: Numbers3 | None = None,
    shape: Sequence[int] | None = None,
    point_cloud_range: Sequence[float] | SupportsDLPack | None = None,
    reduction: DenseReduction = "occupancy",
    lengths: Indices | None = None,
    batch_offsets: Indices | None = None,
    fill_value: float = ZERO,
    dtype: Any = None,
    out: SupportsDLPack | None = None,
    return_num_points_outside: bool = False,
    deterministic: bool = True,
    backend: str | Context | None = None,
) -> Any:
    """Reduce B point clouds of N points each to a dense grid of X x Y x Z voxels.

    A point p is in the voxel floor((p - ``origin``) / ``voxel_size``), for each axis, computed in
    float64 for float64 points and in float32 otherwise; so a voxel includes its lower faces and not
    its upper ones. Points outside the grid, and NaN or infinite ones, are in no voxel. The result
    is the same, bit for bit, on the CPU and on CUDA, in every run, and for any order of the points.

    Arrays may come from any library with ``__dlpack__`` and have any strides; none is copied. For
    one cloud, omit B everywhere.

    Parameters
    ----------
    points : array [B,N,C]; [N,C] without batch; [N,C] packed, with ``batch_offsets``
        float16, bfloat16, float32 or float64; the first three of C columns are x, y, z. Or a
        :class:`robocache.data.PointCloud`. At most 2^31 - 1 points in all.
    features : array [B,N,F] or [N,F], as ``points``
        float16, bfloat16, float32 or float64: the values to reduce by sum, mean, max and min. None:
        the C columns of ``points``.
    origin : 3 numbers
        The corner of the grid with the smallest coordinates, in the unit of the points.
    voxel_size : number, or 3 numbers
        Edge length of a voxel, in the unit of the points, more than 0; one for all axes or one per
        axis.
    shape : 3 ints
        Number of voxels along x, y and z.
    point_cloud_range : 6 numbers
        Alternative to ``origin`` and ``shape``, as used by detectors: the corners x0, y0, z0, x1,
        y1, z1 of the grid, which has round((x1 - x0) / ``voxel_size``) voxels along x.
    reduction
        Result for the points of a voxel: "occupancy" (whether there is a point), "count", or the
        "sum", "mean", "max" or "min" of each feature. Sums are in fixed point, with an error of
        2^-42 of the largest feature for 1000 points, and far less for float64 features. A NaN
        feature makes its voxel NaN.
    lengths : array or list [B] of int32 or int64
        Number of valid points of each padded cloud. None: all. Verified on the CPU; on CUDA, wrong
        lengths give unspecified values.
    batch_offsets : array or list [B+1] of int32 or int64
        Where each cloud begins in packed ``points`` and ``features``, and where the last ends.
    fill_value
        Written to voxels without points.
    dtype
        Dtype of the result: a string, or any library's dtype. Occupancy may be bool, uint8, int32
        or any float; a count int32, int64 or any float; other reductions any float. None: bool for
        occupancy, int32 for count, else the dtype of the features.
    out : array [B,X,Y,Z,F], for occupancy and count [B,X,Y,Z]
        Output array, overwritten completely and returned instead of a new one. It must not overlap
        an input. Pass a permuted view to store the axes in a different order.
    return_num_points_outside
        Also return the number of points of each cloud that are in no voxel: an int64 array [B].
    deterministic
        False permits results that depend on the order of the points in the last bits, where that
        is faster. No reduction uses this so far: the results are the same.
    backend
        Device to compute on. None: the device of the arrays. "cpu", "cuda" and "cuda:N"
        require the arrays to be there; a :class:`Context` is used directly.

    Returns
    -------
    array [B,X,Y,Z] or [B,X,Y,Z,F], or a tuple of it and the number of points outside
        From the library of ``points``, on its device. On CUDA the work is enqueued on that
        library's current stream.

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
    Occupancy and mean intensity of a LiDAR sweep of x, y, z and intensity, in voxels of 20 cm:

    >>> import numpy as np
    >>> import robocache as rbc
    >>> sweep = np.random.default_rng(0).uniform(-20, 20, (5000, 4)).astype(np.float32)
    >>> grid = {"origin": (-16, -16, -2), "voxel_size": 0.2, "shape": (160, 160, 20)}
    >>> occupied, outside = rbc.voxelize(sweep, return_num_points_outside=True, **grid)
    >>> occupied.shape, occupied.dtype.name, int(occupied.sum() + outside) <= 5000
    ((160, 160, 20), 'bool', True)
    >>> rbc.voxelize(sweep, sweep[:, 3:], reduction="mean", **grid).shape
    (160, 160, 20, 1)
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
        features,
        point_cloud_range,
    )
    params = _new()
    if reduction is not _OCCUPANCY:
        _set_reduction(params, code_of(_REDUCTIONS, reduction, "reduction"))
    if fill_value is not ZERO:
        _set_fill_value(params, number(fill_value, "fill_value"))

    owner = None
    if out is None:
        if reduction in REDUCTIONS:
            name, channels = features_of(points, features, context)
        else:
            name, channels = "bool" if reduction == "occupancy" else "int32", ()
        if dtype is not None:
            name = dtype_name(dtype)
        result = framework.empty(points, (*batch, *shape, *channels), name, context)
    else:
        owner = writable(out, "out", dtype)
        result = out
    outside = (
        framework.empty(points, batch, "int64", context) if return_num_points_outside else None
    )

    _core.rbc_voxelize(context._handle, points, features, result, outside, (params, *options))
    return finished(framework, context, ordered, "points", owner, result, outside)
