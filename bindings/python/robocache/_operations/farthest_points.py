"""Farthest point sampling, and selection of rows by index."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Literal, overload

from .. import _core
from .._arguments.arrays import dtype_of, shape_of
from .._arguments.call import array_of, begin, finished
from .._arguments.options import count, number, struct_of
from .._arguments.samples import array_in
from .._arguments.shapes import batch_of
from .._library.errors import REFUSALS
from .._typing import Array, Indices

if TYPE_CHECKING:
    from .._library.context import Context
    from .._typing import SupportsDLPack
    from ..data._point_clouds import PointCloud

_new, _set_start = struct_of("FarthestPointsParams", "start_index")
_new_take, _set_fill = struct_of("TakeRowsParams", "fill_value")


@overload
def farthest_points(
    points: Array,
    k: int,
    *,
    lengths: Indices | None = ...,
    batch_offsets: Indices | None = ...,
    start_index: int | Indices = ...,
    return_distances: Literal[False] = ...,
    backend: str | Context | None = ...,
) -> Array: ...
@overload
def farthest_points(
    points: Array,
    k: int,
    *,
    lengths: Indices | None = ...,
    batch_offsets: Indices | None = ...,
    start_index: int | Indices = ...,
    return_distances: Literal[True],
    backend: str | Context | None = ...,
) -> tuple[Array, Array]: ...
@overload
def farthest_points(points: PointCloud, *arguments: Any, **options: Any) -> Any: ...
def farthest_points(
    points: Any,
    k: int,
    *,
    lengths: Indices | None = None,
    batch_offsets: Indices | None = None,
    start_index: int | Indices = 0,
    return_distances: bool = False,
    backend: str | Context | None = None,
) -> Any:
    """Select ``k`` points of each cloud by farthest point sampling.

    Each step selects the point that is farthest from its nearest selected point; a tie goes to the
    lowest index. The search is exact. Points with NaN or an infinity are never selected. The result
    is the same on the CPU and on CUDA, bit for bit.

    Parameters
    ----------
    points : array [B,N,C]; [N,C] without batch; [N,C] packed, with ``batch_offsets``
        float16, bfloat16, float32 or float64; the first three of C columns are x, y, z. Or a
        :class:`robocache.data.PointCloud`.
    k
        Number of points to select, 1 or more. A cloud with fewer points gives all of them, then -1.
    lengths : array or list [B] of int32 or int64
        Number of valid points of each padded cloud. None: all. Verified on the CPU; on CUDA, wrong
        lengths give unspecified values.
    batch_offsets : array or list [B+1] of int32 or int64
        Where each cloud begins in packed ``points``, and where the last ends.
    start_index : int, or array or list [B] of int32 or int64
        Index of the first point, within its cloud. If that point is not finite, the next one that
        is finite is used.
    return_distances
        Also return the squared distance of each point to the nearest point selected before it; it
        is infinite for the first.
    backend
        Device to compute on. None: the device of the points. "cpu", "cuda" and "cuda:N"
        require the points to be there; a :class:`Context` is used directly.

    Returns
    -------
    array [B,K] or [K] of int64, or a tuple of it and the squared distances
        Rows of the cloud, or rows of ``points`` if packed. Past a cloud's points, the index is -1
        and the distance 0. The arrays are from the library of ``points``, on its device. On CUDA
        the work is enqueued on that library's current stream.

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
    >>> import numpy as np
    >>> import robocache as rbc
    >>> points = np.float32([[0, 0, 0], [1, 0, 0], [9, 0, 0], [4, 0, 0]])
    >>> chosen = rbc.farthest_points(points, 3)
    >>> chosen.tolist()
    [0, 2, 3]
    >>> rbc.take_rows(points, chosen)[:, 0].tolist()
    [0.0, 9.0, 4.0]
    """
    points = array_in(points)
    framework, context, ordered, _ = begin(points, "points", backend)
    wanted = count(k, "k")
    params = _new()
    start_indices = None
    try:
        _set_start(params, operator.index(start_index))  # type: ignore[arg-type]
    except OverflowError:
        raise ValueError(f"start_index: is {start_index}, expected the index of a point") from None
    except REFUSALS:
        start_indices = array_of(framework, start_index, "start_index", points)
    if lengths is not None:
        lengths = array_of(framework, lengths, "lengths", points)
    if batch_offsets is not None:
        batch_offsets = array_of(framework, batch_offsets, "batch_offsets", points)
    rows = shape_of(points, "points", context)
    shape = (*batch_of(rows, batch_offsets, context)[:1], wanted)
    indices = framework.empty(points, shape, "int64", context)
    distances = None
    if return_distances:
        name = "float64" if dtype_of(points, "points") == "float64" else "float32"
        distances = framework.empty(points, shape, name, context)
    _core.rbc_farthest_points(
        context._handle, points, indices, distances, (params, start_indices, lengths, batch_offsets)
    )
    results = finished(framework, context, ordered, "points", None, (indices, distances))
    return results if return_distances else results[0]


def take_rows(
    values: Array,
    indices: SupportsDLPack,
    fill_value: float = 0,
    *,
    backend: str | Context | None = None,
) -> Array:
    """Return rows by index; the index -1 gives rows of the fill value.

    Parameters
    ----------
    values : array [B,N,C], or [N,C]
        Any dtype.
    indices : array [B,K], or [K] with [N,C]
        int32 or int64: rows of ``values``, for example from :func:`farthest_points`. [B,K] with
        [N,C] takes all rows from one array, such as packed points.
    fill_value
        Value of the rows whose index is -1.
    backend
        Device to compute on. None: the device of the values. "cpu", "cuda" and "cuda:N"
        require the values to be there; a :class:`Context` is used directly.

    Returns
    -------
    array [B,K,C] or [K,C]
        The dtype of ``values``, in their library and on their device. On CUDA the work is enqueued
        on that library's current stream.

    Raises
    ------
    ValueError
        A value, a shape or a device is invalid, or an index has no row; on CUDA such an index gives
        the fill value. The message begins with the argument's name.
    TypeError
        A dtype is not supported, or an argument is not an array.
    MemoryError
        Not enough memory.
    RoboCacheError
        The device is not available, or a CUDA error occurred.

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> values = np.array([[1, 2], [3, 4], [5, 6]])
    >>> rbc.take_rows(values, np.array([2, -1, 0]), fill_value=9).tolist()
    [[5, 6], [9, 9], [1, 2]]
    """
    framework, context, ordered, _ = begin(values, "values", backend)
    params = _new_take()
    _set_fill(params, number(fill_value, "fill_value"))
    index_array: Any = array_of(framework, indices, "indices", values)
    shape = (*shape_of(index_array, "indices", context), *shape_of(values, "values", context)[-1:])
    out = framework.empty(values, shape, dtype_of(values, "values"), context)
    _core.rbc_take_rows(context._handle, values, index_array, out, params)
    rows: Array = finished(framework, context, ordered, "values", None, (out,))[0]
    return rows
