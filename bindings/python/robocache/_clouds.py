"""What the operations on point clouds take in common: the grid, and arrays of its size."""

from __future__ import annotations

import functools
import math
import operator
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Union

from . import _core
from ._errors import REFUSALS, shown
from ._frameworks import LIBRARY_TYPES, NAME_OF_PAIR, dtype_name, facts_of, framework_of
from ._params import Indices, SupportsDLPack

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    from ._context import Context

    class Grid(TypedDict):
        origin: Numbers3
        voxel_size: float | Numbers3
        shape: Sequence[int]

    class CloudOptions(TypedDict, total=False):
        lengths: Indices | None
        offsets: Indices | None
        backend: str | Context | None


Numbers3 = Union[Sequence[float], SupportsDLPack]
Reduction = Literal["sum", "mean", "max", "min"]

REDUCTIONS = {
    "sum": _core.VOXEL_SUM,
    "mean": _core.VOXEL_MEAN,
    "max": _core.VOXEL_MAX,
    "min": _core.VOXEL_MIN,
}

_GRID = struct.Struct("6d3q")  # rbcVoxelGrid
_AXIS = struct.Struct("d")
_MOST_VOXELS = 2**62
_FLOATS = frozenset(["float16", "bfloat16", "float32", "float64"])


# ---- the grid -----------------------------------------------------------------------------------


def packed_grid(origin: Any, voxel_size: Any, shape: Any) -> tuple[bytes, tuple[int, ...]]:
    """rbcVoxelGrid, and the shape as ints."""
    try:
        x, y, z = origin
        dx, dy, dz = (voxel_size,) * 3 if _is_number(voxel_size) else voxel_size
        i, j, k = map(operator.index, shape)
        return _GRID.pack(x, y, z, dx, dy, dz, i, j, k), (i, j, k)
    except (*REFUSALS, OverflowError, struct.error) as error:
        _require_three(origin, "origin", "3 numbers", _AXIS.pack)
        sizes = (voxel_size,) * 3 if _is_number(voxel_size) else voxel_size
        _require_three(sizes, "voxel_size", "a number or 3", _AXIS.pack, voxel_size)
        _require_three(shape, "shape", "3 ints", operator.index)
        raise ValueError(f"shape: is {shown(shape)}, expected 3 ints of 1 to 2^31 - 1") from error


def _is_number(given: Any) -> bool:
    if isinstance(given, (float, int)):
        return True
    try:
        return bool(given.shape == ())
    except REFUSALS:
        return False


def _require_three(given: Any, name: str, expected: str, number: Any, whole: Any = None) -> None:
    try:
        count = len([number(each) for each in given])
    except (*REFUSALS, OverflowError, struct.error):
        text = shown(given if whole is None else whole)
        raise TypeError(f"{name}: is {text}, expected {expected}") from None
    if count != 3:
        raise ValueError(f"{name}: has {count} elements, expected {expected}")


# ---- arrays of its size -------------------------------------------------------------------------


def volume(batch: tuple[int, ...], shape: tuple[int, ...], *behind: int) -> tuple[int, ...]:
    """[B,X,Y,Z,...]; anything for a grid that cannot be, of which the library tells."""
    if min(shape) < 1 or math.prod(shape) * (math.prod(batch) or 1) > _MOST_VOXELS:
        return (0,)
    return (*batch, *shape, *behind)


def features_of(points: Any, features: Any) -> tuple[Any, str]:
    """What is reduced, and the name of its argument."""
    if features is None:
        return points, "points"
    framework_of(features, "features").examine(features, "features")
    return features, "features"


def float_dtype(array: Any, name: str, context: Context) -> str:
    """The name of its dtype; float32 for what is no float, which the library will refuse."""
    if type(array) in LIBRARY_TYPES:
        return _float_name(array.dtype)
    named = NAME_OF_PAIR.get(facts_of(array, name, context)[2:4], "")
    return named if named in _FLOATS else "float32"


@functools.lru_cache(maxsize=256)
def _float_name(dtype: Any) -> str:
    try:
        name = dtype_name(dtype)
    except TypeError:
        return "float32"
    return name if name in _FLOATS else "float32"
