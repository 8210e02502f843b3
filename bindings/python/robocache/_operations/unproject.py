"""Conversion of depth images to point clouds."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal

from .. import _core
from .._arguments.arrays import LIBRARY_TYPES, shape_of
from .._arguments.call import array_of, begin, finished, joined
from .._arguments.clouds import numbers_of
from .._arguments.options import count, number, struct_of
from .._arguments.to_numpy import on_host
from .._library.context import CPU
from .._library.dtypes import dtype_name
from .._printable import kind_of
from .._typing import Array, Numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._library.context import Context
    from .._typing import SupportsDLPack

_new, *_setters = struct_of(
    "UnprojectParams",
    *("depth_scale", "min_depth", "max_depth", "pixel_offset", "color_divisor", "pixel_stride"),
    *("crop_min", "crop_max"),
)
_set_scale, _set_min, _set_max, _set_offset, _set_color, _set_stride, *_set_crop = _setters


@dataclass(frozen=True, eq=False)
class Cloud(Generic[Array]):
    """The result of :func:`unproject`: ``num_points`` points of each image, then zeros."""

    points: Array  #: [B,P,3+C], [P,3+C] without batch: x, y, z and colours
    num_points: Array  #: [B], [] without batch; int64: number of points, for use as ``lengths``
    pixels: Array  #: [B,P], [P] without batch; int64: row * W + column of each point, then -1
    num_points_over_capacity: Array  #: [B], [] without batch; int64: points beyond ``max_points``

    def trimmed(self) -> Cloud[Array]:
        """Return the cloud of one image without its unused rows, as views.

        On CUDA this waits for the number of points.

        Raises
        ------
        ValueError
            The cloud is a batch.
        """
        points: Any = self.points
        pixels: Any = self.pixels
        if len(points.shape) != 2:
            raise ValueError(
                "points: have a batch, expected the points of one image; pass num_points as lengths"
            )
        kept = int(self.num_points)  # type: ignore[call-overload]
        return dataclasses.replace(self, points=points[:kept], pixels=pixels[:kept])


def unproject(
    depth: Array,
    intrinsics: Numbers | Sequence[Sequence[float]],
    pose: Numbers | Sequence[Any] | None = None,
    *,
    colors: SupportsDLPack | None = None,
    depth_scale: float | None = None,
    min_depth: float = 0.0,
    max_depth: float = float("inf"),
    crop: Numbers | None = None,
    pixel_offset: Literal[0] | float = 0.0,
    pixel_stride: int = 1,
    color_divisor: float = 1.0,
    max_points: int | None = None,
    dtype: Any = "float32",
    backend: str | Context | None = None,
) -> Cloud[Array]:
    """Convert B depth images of H x W pixels to point clouds.

    A pixel of depth d in column u and row v is the point z = d / ``depth_scale``,
    x = (u - cx) z / fx, y = (v - cy) z / fy, transformed by the pose. Pixels without depth (0, NaN)
    are skipped. Points are in the order of their pixels, row by row. The result is the same on the
    CPU and on CUDA, bit for bit; on CUDA nothing waits for the number of points.

    Arrays may come from any library with ``__dlpack__`` and have any strides; none is copied. For
    one image, omit B everywhere.

    Parameters
    ----------
    depth : array [B,H,W] or [H,W]
        uint16, float16 or float32: distances along the camera's axis, not along the ray.
    intrinsics : array or list [B,4], or [4] for all images; [B,3,3], or [3,3]
        float32 or float64: fx, fy, cx, cy in pixels, or the camera matrix
        [[fx, 0, cx], [0, fy, cy], [0, 0, 1]], whose other elements are verified on the CPU.
    pose : array or list [B,4,4], or [4,4] for all images
        float32 or float64: transform from the camera's frame (x right, y down, z forward) to the
        cloud's frame, for column vectors. None: clouds are in the frames of their cameras.
    colors : array [B,H,W,C] or [H,W,C]
        uint8 or any float: written after the coordinates of each point.
    depth_scale
        Units of depth per metre. None: 1000 for integers, 1 for floats. TUM's images use 5000.
    min_depth, max_depth
        Range of the points to keep, in metres.
    crop : 6 numbers
        x0, y0, z0, x1, y1, z1 in the cloud's frame: points inside are kept, not those on the faces.
    pixel_offset
        Offset of a pixel's centre: 0 (OpenCV, Open3D) or 0.5.
    pixel_stride
        Use every n-th row and column, from the first.
    color_divisor
        Divisor of the colours: 255 maps uint8 to 0..1.
    max_points
        P, the maximum number of points per image. The first P are kept; the others are counted in
        ``num_points_over_capacity``. None: the number of pixels.
    dtype
        Dtype of the points: any float. The arithmetic is in float64 for float64, else in float32.
    backend
        Device to compute on. None: the device of the images. "cpu", "cuda" and "cuda:N"
        require the images to be there; a :class:`Context` is used directly.

    Returns
    -------
    Cloud
        Its arrays are from the library of ``depth``, on its device. On CUDA the work is enqueued on
        that library's current stream.

    Raises
    ------
    ValueError
        A value, a shape or a device is invalid. The message begins with the argument's name. An
        invalid camera (fx of 0, a pose with NaN) raises this on the CPU; on CUDA its image has no
        points.
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
    >>> depth = np.array([[1000, 0], [2000, 4000]], np.uint16)  # millimetres
    >>> cloud = rbc.unproject(depth, [2, 2, 0.5, 0.5], max_depth=3).trimmed()
    >>> cloud.points
    array([[-0.25, -0.25,  1.  ],
           [-0.5 ,  0.5 ,  2.  ]], dtype=float32)
    >>> cloud.pixels.tolist()
    [0, 2]
    """
    framework, context, ordered, _ = begin(depth, "depth", backend)
    params = _new()
    if depth_scale is not None:
        scale = number(depth_scale, "depth_scale")
        if scale == 0:  # in the C interface, 0 is the default
            raise ValueError("depth_scale: is 0, expected more than 0")
        _set_scale(params, scale)
    _set_min(params, number(min_depth, "min_depth"))
    _set_max(params, number(max_depth, "max_depth"))
    _set_offset(params, number(pixel_offset, "pixel_offset"))
    _set_color(params, number(color_divisor, "color_divisor"))
    every = count(pixel_stride, "pixel_stride")
    _set_stride(params, min(every, 2**31 - 1))
    if crop is not None:
        limits = numbers_of(crop, "crop", 6, "x0, y0, z0, x1, y1, z1")
        for set_corner, corner in zip(_set_crop, (limits[:3], limits[3:])):
            set_corner(params, corner)
    intrinsics_array: Any = array_of(framework, intrinsics, "intrinsics", depth, "float64")
    if tuple(shape_of(intrinsics_array, "intrinsics", context)[-2:]) == (3, 3):
        intrinsics_array = _focal_lengths_and_centre(intrinsics_array, context)
        if context._device_id != CPU:
            ordered = joined(context, framework, depth) and ordered
    if pose is not None:
        pose = array_of(framework, pose, "pose", depth, "float64")
    if colors is not None:
        colors = array_of(framework, colors, "colors", depth)

    shape = shape_of(depth, "depth", context)
    channels = 0 if colors is None else shape_of(colors, "colors", context)[-1:]
    if len(shape) < 2 or channels == ():  # the library raises the error
        shape, channels = (*shape, 0, 0), (0,)
    *batch, height, width = shape
    capacity = -(-height // every) * -(-width // every)
    if max_points is not None:
        capacity = count(max_points, "max_points")
    color_channels = channels[0] if colors is not None else 0  # type: ignore[index]
    batch = batch[:1]
    empty = framework.empty
    arrays = (
        empty(depth, (*batch, capacity, 3 + color_channels), dtype_name(dtype), context),
        empty(depth, tuple(batch), "int64", context),
        empty(depth, tuple(batch), "int64", context),
        empty(depth, (*batch, capacity), "int64", context),
    )
    _core.rbc_unproject(context._handle, depth, intrinsics_array, pose, colors, *arrays, params)
    points, num_points, over_capacity, pixels = finished(
        framework, context, ordered, "depth", None, arrays
    )
    return Cloud(points, num_points, pixels, over_capacity)


def _focal_lengths_and_centre(matrices: Any, context: Context) -> Any:
    """Return fx, fy, cx, cy [4] or [B,4] of camera matrices [3,3] or [B,3,3]."""
    import numpy as np

    if type(matrices) not in LIBRARY_TYPES:
        raise TypeError(
            f"intrinsics: is {kind_of(matrices)} of 3 x 3 matrices, expected [B,4]: fx, fy, cx, cy"
        )
    flat = matrices.reshape((*matrices.shape[:-2], 9))
    if context._device_id == CPU:
        others = on_host(flat)[..., [1, 3, 6, 7, 8]]
        if not (others == [0, 0, 0, 0, 1]).all():
            raise ValueError(
                "intrinsics: expected [[fx, 0, cx], [0, fy, cy], [0, 0, 1]]; other matrices, such "
                "as those with skew or a projection, are not supported"
            )
    return flat[..., np.array([0, 4, 2, 5])]
