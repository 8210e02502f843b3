"""Arguments that the operations on point clouds share: the grid, the clouds and the features."""

from __future__ import annotations

import functools
import math
import operator
import struct
from typing import Any, NoReturn

from .. import _core
from .._library.context import Context
from .._library.dtypes import NAME_OF_PAIR, dtype_name
from .._library.errors import REFUSALS, shown
from .arrays import LIBRARY_TYPES, framework_of
from .call import array_of
from .frameworks import Framework, facts_of
from .shapes import batch_of

REDUCTIONS = {
    "sum": _core.REDUCE_SUM,
    "mean": _core.REDUCE_MEAN,
    "max": _core.REDUCE_MAX,
    "min": _core.REDUCE_MIN,
}

_GRID = struct.Struct("6d3q")  # rbcVoxelGrid
_AXIS = struct.Struct("d")
_MOST_VOXELS = 2**62
_MOST_ALONG = 2**31 - 1
_FLOATS = frozenset(["float16", "bfloat16", "float32", "float64"])


def clouds(
    framework: Framework,
    context: Context,
    points: Any,
    origin: Any,
    voxel_size: Any,
    shape: Any,
    lengths: Any,
    batch_offsets: Any,
    features: Any = None,
    point_cloud_range: Any = None,
) -> tuple[Any, tuple[int, ...], tuple[int, ...], tuple[bytes, Any, Any]]:
    """Return the shapes of the points, of the batch and of the grid, and arguments of the call.

    The shape of an invalid grid is (0,); the library raises the error.
    """
    if point_cloud_range is not None:
        origin, shape = within(point_cloud_range, voxel_size, origin, shape)
    try:
        x, y, z = origin
        number = type(voxel_size) is float or _is_number(voxel_size)
        dx, dy, dz = (voxel_size,) * 3 if number else voxel_size
        i, j, k = map(operator.index, shape)
        grid = _GRID.pack(x, y, z, dx, dy, dz, i, j, k)
    except (*REFUSALS, OverflowError, struct.error) as error:
        _refuse_grid(origin, voxel_size, shape, error)
    if lengths is not None:
        lengths = array_of(framework, lengths, "lengths", points)
    if batch_offsets is not None:
        batch_offsets = array_of(framework, batch_offsets, "batch_offsets", points)
    if features is not None:
        own = framework if type(features) is type(points) else framework_of(features, "features")
        if not own.is_numpy:
            own.examine(features, "features")

    rows = None
    if type(points) in LIBRARY_TYPES:
        try:
            rows = points.shape
        except REFUSALS:  # for example a nested tensor of torch
            pass
    if rows is None:
        rows = facts_of(points, "points", context)[4]
    if batch_offsets is not None:
        batch = batch_of(rows, batch_offsets, context)
    else:
        batch = () if len(rows) < 3 else tuple(rows[:-2])
    options = grid, lengths, batch_offsets
    most = _MOST_VOXELS if not batch else _MOST_VOXELS // (math.prod(batch) or 1)
    if i < 1 or j < 1 or k < 1 or i * j * k > most:
        return rows, batch, (0,), options
    return rows, batch, (i, j, k), options


def numbers_of(items: Any, name: str, length: int, expected: str) -> list[float]:
    """Return ``length`` numbers from a list or an array."""
    try:
        numbers = [float(each) for each in items]
    except (*REFUSALS, OverflowError):
        raise TypeError(f"{name}: is {shown(items)}, expected {expected}") from None
    if len(numbers) != length:
        raise ValueError(f"{name}: has {len(numbers)} elements, expected {length}: {expected}")
    return numbers


def within(point_cloud_range: Any, voxel_size: Any, origin: Any, shape: Any) -> tuple[Any, Any]:
    """Return the origin and the shape of a grid given by two corners, as spconv computes them."""
    if origin is not None or shape is not None:
        raise ValueError("point_cloud_range: only valid without origin and shape")
    try:
        x, y, z, *high = [float(each) for each in point_cloud_range]
        i, j, k = high
        dx, dy, dz = (voxel_size,) * 3 if _is_number(voxel_size) else voxel_size
        cells = round((i - x) / dx), round((j - y) / dy), round((k - z) / dz)
    except (*REFUSALS, OverflowError, ZeroDivisionError):
        cells = (0, 0, 0)
    if min(cells) < 1:
        raise ValueError(
            f"point_cloud_range: is {shown(point_cloud_range)}, expected x0, y0, z0, x1, y1, z1 "
            f"with at least one voxel along each axis; voxel_size is {shown(voxel_size)}"
        )
    if max(cells) > _MOST_ALONG or math.prod(cells) > _MOST_VOXELS:
        raise ValueError(
            f"voxel_size: is {shown(voxel_size)}, too small for point_cloud_range: expected at "
            "most 2^31 - 1 voxels along each axis, and 2^62 in all"
        )
    return (x, y, z), cells


def _refuse_grid(origin: Any, voxel_size: Any, shape: Any, error: BaseException) -> NoReturn:
    for name, value in (("origin", origin), ("shape", shape)):
        if value is None:
            text = f"{name}: is None; pass origin and shape, or point_cloud_range"
            raise TypeError(text) from None
    _require_three(origin, "origin", "3 numbers", _AXIS.pack)
    sizes = (voxel_size,) * 3 if _is_number(voxel_size) else voxel_size
    _require_three(sizes, "voxel_size", "a number or 3 numbers", _AXIS.pack, voxel_size)
    _require_three(shape, "shape", "3 ints", operator.index)
    raise ValueError(f"shape: is {shown(shape)}, expected 3 ints from 1 to 2^31 - 1") from error


def _is_number(value: Any) -> bool:
    if isinstance(value, (float, int)):
        return True
    try:
        return bool(value.shape == ())
    except REFUSALS:
        return False


def _require_three(items: Any, name: str, expected: str, number: Any, whole: Any = None) -> None:
    try:
        count = len([number(each) for each in items])
    except (*REFUSALS, OverflowError, struct.error):
        text = shown(items if whole is None else whole)
        raise TypeError(f"{name}: is {text}, expected {expected}") from None
    if count != 3:
        raise ValueError(f"{name}: has {count} elements, expected {expected}")


def features_of(points: Any, features: Any, context: Context) -> tuple[str, Any]:
    """Return the dtype and the number of channels, as a tuple, of the features to reduce.

    The dtype is float32 for features that are not floats; the library raises the error.
    """
    array, name = (points, "points") if features is None else (features, "features")
    if type(array) in LIBRARY_TYPES:
        try:
            return _float_name(array.dtype), array.shape[-1:]
        except REFUSALS:  # for example a nested tensor of torch
            pass
    facts = facts_of(array, name, context)
    named = NAME_OF_PAIR.get(facts[2:4], "")
    return named if named in _FLOATS else "float32", facts[4][-1:]


@functools.lru_cache(maxsize=256)
def _float_name(dtype: Any) -> str:
    try:
        name = dtype_name(dtype)
    except TypeError:
        return "float32"
    return name if name in _FLOATS else "float32"
