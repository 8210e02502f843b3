"""Reduction of point clouds to lists of non-empty voxels."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, overload

from .. import _core
from .._arguments.call import begin, finished, writable
from .._arguments.clouds import REDUCTIONS, clouds, features_of
from .._arguments.options import code_of, count, struct_of
from .._arguments.samples import array_in
from .._library.context import Context
from .._library.dtypes import dtype_name
from .._printable import kind_of
from .._typing import Array, Indices, Numbers3, Reduction, SupportsDLPack

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import TypeVar, Unpack

    from .._typing import CloudOptions, GridOptions
    from ..data._point_clouds import PointCloud

    # Arrays of integers: for NumPy with their dtype, else of the library of the points.
    Int32 = TypeVar("Int32", bound=SupportsDLPack, default=Array)
    Int64 = TypeVar("Int64", bound=SupportsDLPack, default=Array)
    Float = TypeVar("Float", bound=np.generic)

    class _Options(GridOptions, CloudOptions, total=False):
        reduction: Reduction | None
        max_voxels: int | None
        max_points: int | None
        order: Literal["lexicographic", "first_point"] | None
        deterministic: bool
        return_point_to_voxel: bool

else:
    from typing import TypeVar

    Int32, Int64 = TypeVar("Int32"), TypeVar("Int64")

_ORDERS = {
    "lexicographic": _core.VOXELIZE_SPARSE_ORDER_LEXICOGRAPHIC,
    "first_point": _core.VOXELIZE_SPARSE_ORDER_FIRST_POINT,
}
_new, _set_reduction, _set_order = struct_of("VoxelizeSparseParams", "reduction", "order")
_VOXELS = _core.new_VoxelizeSparseOutputs()  # the extension adds to a copy


@dataclass(frozen=True, eq=False)
class SparseVoxels(Generic[Array, Int32, Int64]):
    """The result of :func:`voxelize_sparse`: ``num_voxels`` voxels in arrays of M rows.

    Rows past ``num_voxels`` have -1 in ``coords`` and 0 elsewhere. F is the number of features.
    """

    coords: Int32  #: [M,4] int32: cloud, x, y, z
    points_per_voxel: Int32  #: [M] int32: points in the voxel, with ``grouped`` at most P
    # Any, since these are None only if the caller chose that; other callers need no check.
    features: Array | Any  #: [M,F]: reduced over all points of a voxel; None without ``reduction``
    grouped: Array | Any  #: [M,P,F]: its first P points, then 0; None without ``max_points``
    #: [B,N] or [N], int64: the row of ``coords`` of each point, or -1; None if not requested
    point_to_voxel: Int64 | Any
    num_voxels: Int64  #: [] int64: number of rows that are voxels
    num_points_outside: Int64  #: [B], [] without batch; int64: points in no voxel of the grid
    num_voxels_over_capacity: Int64  #: [] int64: voxels beyond ``max_voxels``
    num_points_over_capacity: Int64  #: [] int64: points in the voxels beyond ``max_voxels``
    num_points_over_group: Int64  #: [] int64: points beyond ``max_points``, in voxels that are kept

    def trimmed(self) -> SparseVoxels[Array, Int32, Int64]:
        """Return the voxels without unused rows, as views.

        On CUDA this waits for the number of voxels.

        Raises
        ------
        RuntimeError
            The arrays' library reports a CUDA error of the work that it waited for.
        """
        count = int(self.num_voxels)  # type: ignore[call-overload]
        rows: dict[str, Any] = {
            name: array if array is None else array[:count]
            for name in ("coords", "points_per_voxel", "features", "grouped")
            for array in (getattr(self, name),)
        }
        return dataclasses.replace(self, **rows)


# In the order of rbcVoxelizeSparseOutputs.
_NAMES = (
    *("coords", "num_voxels", "points_per_voxel", "features"),
    *("grouped", "point_to_voxel", "num_points_outside", "num_voxels_over_capacity"),
    *("num_points_over_capacity", "num_points_over_group"),
)


def _arrays_of(
    out: SparseVoxels[Any, Any, Any], options: dict[str, Any]
) -> tuple[list[Any], list[Any]]:
    """Return the arrays to write to, and the library of each."""
    for name, option in options.items():
        if option is not None:
            raise ValueError(f"{name}: only valid without out, whose arrays determine it")
    voxels = [getattr(out, name) for name in _NAMES]
    owners = [
        None if array is None else writable(array, f"out.{name}")
        for name, array in zip(_NAMES, voxels)
    ]
    return voxels, owners


@overload
def voxelize_sparse(
    points: NDArray[Float],
    features: SupportsDLPack | None = ...,
    *,
    dtype: None = ...,
    out: None = ...,
    **options: Unpack[_Options],
) -> SparseVoxels[NDArray[Float], NDArray[np.int32], NDArray[np.int64]]: ...
@overload
def voxelize_sparse(
    points: NDArray[Any],
    features: SupportsDLPack | None = ...,
    *,
    dtype: Any,
    out: None = ...,
    **options: Unpack[_Options],
) -> SparseVoxels[NDArray[Any], NDArray[np.int32], NDArray[np.int64]]: ...
@overload
def voxelize_sparse(
    points: Array,
    features: SupportsDLPack | None = ...,
    *,
    dtype: Any = ...,
    out: SparseVoxels[Array, Int32, Int64] | None = ...,
    **options: Unpack[_Options],
) -> SparseVoxels[Array, Int32, Int64]: ...
@overload
def voxelize_sparse(points: PointCloud, *arguments: Any, **options: Any) -> Any: ...
def voxelize_sparse(
    points: Any,
    features: SupportsDLPack | None = None,
    *,
    voxel_size: float | Numbers3,
    origin: Numbers3 | None = None,
    shape: Sequence[int] | None = None,
    point_cloud_range: Sequence[float] | SupportsDLPack | None = None,
    reduction: Reduction | None = "mean",
    max_voxels: int | None = None,
    max_points: int | None = None,
    order: Literal["lexicographic", "first_point"] | None = None,
    lengths: Indices | None = None,
    batch_offsets: Indices | None = None,
    deterministic: bool = True,
    dtype: Any = None,
    return_point_to_voxel: bool = True,
    out: Any = None,
    backend: str | Context | None = None,
) -> Any:
    """Reduce B point clouds of N points each to a list of the voxels that contain points.

    Voxels, points and batches are as for :func:`voxelize`. The result is the same, bit for bit, on
    the CPU and on CUDA and in every run. Empty voxels cost nothing: the grid may have 2^62 voxels,
    over all B clouds. On CUDA nothing waits for the number of voxels, so the arrays have room for
    ``max_voxels``; :meth:`SparseVoxels.trimmed` waits and removes the unused rows.

    With ``max_points`` this is the hard voxelization of detection networks: the features of the
    first points of each voxel, by index and padded with zeros, with the voxels in the order of
    their first points.

    Parameters
    ----------
    points : array [B,N,C]; [N,C] without batch; [N,C] packed, with ``batch_offsets``
        float16, bfloat16, float32 or float64; the first three of C columns are x, y, z. Or a
        :class:`robocache.data.PointCloud`.
    features : array [B,N,F] or [N,F], as ``points``
        float16, bfloat16, float32 or float64; None: the C columns of ``points``.
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
        Reduction over the points of a voxel that ``features`` of the result holds: "mean", "sum",
        "max" or "min". None: ``features`` is None.
    max_voxels
        Maximum number of voxels. The first in ``order`` are kept; the others are counted in
        ``num_voxels_over_capacity``. None: the number of points.
    max_points
        Maximum number of points per voxel in ``grouped``. None: ``grouped`` is None.
    order
        "lexicographic" (by cloud, x, y, z), or "first_point" (by cloud and the index of the voxel's
        first point). None: "first_point" with ``max_points``, else "lexicographic".
    lengths : array or list [B] of int32 or int64
        Number of valid points of each padded cloud. None: all. Verified on the CPU; on CUDA, wrong
        lengths give unspecified values.
    batch_offsets : array or list [B+1] of int32 or int64
        Where each cloud begins in packed ``points`` and ``features``, and where the last ends.
    deterministic
        False permits results that depend on the order of the points in the last bits, where that
        is faster. No reduction uses this so far: the results are the same.
    dtype
        Dtype of ``features`` and ``grouped`` of the result, any float. None: as the features.
    return_point_to_voxel
        False: ``point_to_voxel`` is None. On CUDA this saves 10 % to over 33 % of the time, since
        that array is written in random order.
    out : SparseVoxels
        Result of an earlier call: its arrays are overwritten completely, and it is returned. They
        determine ``max_voxels``, ``max_points``, ``dtype`` and ``return_point_to_voxel``.
    backend
        Device to compute on. None: the device of the arrays. "cpu", "cuda" and "cuda:N"
        require the arrays to be there; a :class:`Context` is used directly.

    Returns
    -------
    SparseVoxels
        Its arrays are from the library of ``points``, on its device. On CUDA the work is enqueued
        on that library's current stream.

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
    A cloud downsampled to the centroids of its voxels, and the voxel of each point:

    >>> import numpy as np
    >>> import robocache as rbc
    >>> points = np.float32([[0.1, 0, 0], [5, 5, 5], [0.3, 0, 0], [99, 0, 0]])
    >>> grid = {"origin": (0, 0, 0), "voxel_size": 0.5, "shape": (20, 20, 20)}
    >>> voxels = rbc.voxelize_sparse(points, **grid).trimmed()
    >>> voxels.features
    array([[0.2, 0. , 0. ],
           [5. , 5. , 5. ]], dtype=float32)
    >>> voxels.coords.tolist(), voxels.points_per_voxel.tolist()
    ([[0, 0, 0, 0], [0, 10, 10, 10]], [2, 1])
    >>> voxels.point_to_voxel.tolist(), int(voxels.num_points_outside)
    ([0, 1, 0, -1], 1)

    Pillars of at most 32 points for a detection network:

    >>> pillars = {"origin": (0, 0, -3), "voxel_size": (0.5, 0.5, 10), "shape": (20, 20, 1)}
    >>> rbc.voxelize_sparse(points, max_voxels=100, max_points=32, **pillars).grouped.shape
    (100, 32, 3)
    """
    if out is not None and type(out) is not SparseVoxels:
        raise TypeError(f"out: is {kind_of(out)}, expected SparseVoxels")
    points = array_in(points)
    framework, context, ordered, _ = begin(points, "points", backend)
    rows, batch, _, options = clouds(
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
    if order is None:
        hard = max_points is not None or (out is not None and out.grouped is not None)
        order = "first_point" if hard else "lexicographic"
    params = _new()
    if reduction is not None:
        _set_reduction(params, code_of(REDUCTIONS, reduction, "reduction"))
    _set_order(params, code_of(_ORDERS, order, "order"))
    if out is not None:
        exclusive = {"max_voxels": max_voxels, "max_points": max_points, "dtype": dtype}
        exclusive["return_point_to_voxel"] = None if return_point_to_voxel else False
        own, owners = _arrays_of(out, exclusive)
        _core.rbc_voxelize_sparse(
            context._handle, points, features, (_VOXELS, *own), (params, *options)
        )
        for owner, array in zip(owners, own):
            if array is not None:
                finished(framework, context, ordered, "points", owner, array)
        return out
    name, channels = features_of(points, features, context)
    if dtype is not None:
        name = dtype_name(dtype)
    rows = tuple(rows[:-1])  # torch's fastest allocation takes plain tuples only, no torch.Size
    if max_voxels is None:
        capacity = max(1, math.prod(rows))
    else:
        capacity = count(max_voxels, "max_voxels")

    # No function or generator: CPython 3.12 and 3.13 corrupt the heap when memory runs out.
    empty = framework.empty
    means = grouped = rows_of_points = None
    if reduction is not None:
        means = empty(points, (capacity, *channels), name, context)
    if max_points is not None:
        room = (capacity, count(max_points, "max_points"), *channels)
        grouped = empty(points, room, name, context)
    if return_point_to_voxel:
        rows_of_points = empty(points, rows, "int64", context)
    voxels = (
        empty(points, (capacity, 4), "int32", context),
        empty(points, (), "int64", context),
        empty(points, (capacity,), "int32", context),
        means,
        grouped,
        rows_of_points,
        empty(points, tuple(batch), "int64", context),
        empty(points, (), "int64", context),
        empty(points, (), "int64", context),
        empty(points, (), "int64", context),
    )
    _core.rbc_voxelize_sparse(
        context._handle, points, features, (_VOXELS, *voxels), (params, *options)
    )
    arrays = finished(framework, context, ordered, "points", None, voxels)
    return SparseVoxels(**dict(zip(_NAMES, arrays)))
