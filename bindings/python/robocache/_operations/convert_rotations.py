"""Conversion of rotations between representations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from .. import _core
from .._arguments.arrays import shape_of
from .._arguments.call import begin, finished, writable
from .._arguments.options import code_of, struct_of
from .._library.dtypes import dtype_name
from .._typing import Array, Out, SupportsDLPack

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .._library.context import Context

    _Extrinsic = Literal[
        "euler_xyz", "euler_xzy", "euler_yxz", "euler_yzx", "euler_zxy", "euler_zyx",
        "euler_xyx", "euler_xzx", "euler_yxy", "euler_yzy", "euler_zxz", "euler_zyz",
    ]  # fmt: skip
    _Intrinsic = Literal[
        "euler_XYZ", "euler_XZY", "euler_YXZ", "euler_YZX", "euler_ZXY", "euler_ZYX",
        "euler_XYX", "euler_XZX", "euler_YXY", "euler_YZY", "euler_ZXZ", "euler_ZYZ",
    ]  # fmt: skip
    _Other = Literal[
        "quat_xyzw", "quat_wxyz", "rotvec", "matrix",
        "rot6d_rows", "rot6d_columns", "rot6d_interleaved",
    ]  # fmt: skip
    Representation = _Other | _Extrinsic | _Intrinsic

# In the order of the constants of the C interface.
_ORDERS = ("xyz", "xzy", "yxz", "yzx", "zxy", "zyx", "xyx", "xzx", "yxy", "yzy", "zxz", "zyz")
_new, _set_source, _set_target = struct_of("ConvertRotationsParams", "source", "target")
ROTATIONS = {
    "quat_xyzw": _core.ROTATION_QUAT_XYZW,
    "quat_wxyz": _core.ROTATION_QUAT_WXYZ,
    "rotvec": _core.ROTATION_ROTVEC,
    "matrix": _core.ROTATION_MATRIX,
    "rot6d_rows": _core.ROTATION_ROT6D_ROWS,
    "rot6d_columns": _core.ROTATION_ROT6D_COLUMNS,
    "rot6d_interleaved": _core.ROTATION_ROT6D_INTERLEAVED,
    **{f"euler_{order}": _core.ROTATION_EULER_EXTRINSIC_XYZ + i for i, order in enumerate(_ORDERS)},
    **{
        f"euler_{order.upper()}": _core.ROTATION_EULER_INTRINSIC_XYZ + i
        for i, order in enumerate(_ORDERS)
    },
}
_OTHER_CHANNELS = {"quat_xyzw": 4, "quat_wxyz": 4, "matrix": 9}


def channels_of(name: str) -> int:
    return 6 if name.startswith("rot6d") else _OTHER_CHANNELS.get(name, 3)


@overload
def convert_rotations(
    rotations: NDArray[Any],
    source: Representation,
    target: Representation,
    *,
    dtype: Any,
    out: None = ...,
    backend: str | Context | None = ...,
) -> NDArray[Any]: ...
@overload
def convert_rotations(
    rotations: Array,
    source: Representation,
    target: Representation,
    *,
    dtype: Any = ...,
    out: None = ...,
    backend: str | Context | None = ...,
) -> Array: ...
@overload
def convert_rotations(
    rotations: SupportsDLPack,
    source: Representation,
    target: Representation,
    *,
    dtype: Any = ...,
    out: Out,
    backend: str | Context | None = ...,
) -> Out: ...
def convert_rotations(
    rotations: Any,
    source: str,
    target: str,
    *,
    dtype: Any = None,
    out: Any = None,
    backend: str | Context | None = None,
) -> Any:
    """Convert rotations from one representation to another.

    The result is computed in float64 or better, rounded once, and the same on the CPU and on CUDA,
    bit for bit. Input that is not a rotation gives NaN: a zero quaternion, NaN or infinite numbers,
    parallel 6-D vectors, a matrix without a positive determinant.

    Arrays may come from any library with ``__dlpack__`` and have any strides; none is copied.

    Parameters
    ----------
    rotations : array [...,C]
        float16, bfloat16, float32 or float64. The last of 1 to 8 dimensions holds the channels of
        ``source``.
    source, target
        Representations of the input and of the result:

        - "quat_xyzw" (SciPy, ROS, LeRobot), "quat_wxyz" (PyTorch3D, MuJoCo): 4 channels. Input may
          have any length except 0. Results have length 1 and w >= 0.
        - "rotvec": 3 channels, the axis times the angle in radians. Results have an angle of at
          most pi.
        - "matrix": 9 channels in row-major order, for column vectors; reshape [3,3] to 9. Input is
          replaced by the nearest rotation.
        - "rot6d_rows" [r00 r01 r02 r10 r11 r12] (PyTorch3D, diffusion_policy, UMI, GR00T),
          "rot6d_columns" [r00 r10 r20 r01 r11 r21], "rot6d_interleaved" [r00 r01 r10 r11 r20 r21]:
          6 channels. Input may be any two vectors; they are orthogonalized by Gram-Schmidt.
        - "euler_xyz" and so on: 3 angles in radians about these axes. Lower case: about fixed axes
          (extrinsic; ROS's roll, pitch, yaw). Upper case: about the axes turned by the angles
          before (intrinsic). All 12 orders of each are supported. Results are as in SciPy; in
          gimbal lock the third angle is 0.
    dtype
        Dtype of the result, any float: a string, or any library's dtype. None: as ``rotations``.
    out : array [...,D]
        Output array, returned instead of a new one. It must not overlap ``rotations``.
    backend
        Device to compute on. None: the device of the array. "cpu", "cuda" and "cuda:N"
        require the array to be there; a :class:`Context` is used directly.

    Returns
    -------
    array [...,D]
        The channels of ``target``, in the library of ``rotations`` and on its device. On CUDA the
        work is enqueued on that library's current stream.

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
    Half a turn about z, and a quarter turn about x:

    >>> import numpy as np
    >>> import robocache as rbc
    >>> quaternions = np.array([[0.0, 0, 1, 0], [1, 0, 0, 1]])
    >>> rbc.convert_rotations(quaternions, "quat_xyzw", "euler_xyz") / np.pi
    array([[0. , 0. , 1. ],
           [0.5, 0. , 0. ]])
    >>> rbc.convert_rotations(quaternions, "quat_xyzw", "rot6d_rows", dtype="float32").shape
    (2, 6)
    """
    framework, context, ordered, _ = begin(rotations, "rotations", backend)
    source_code = code_of(ROTATIONS, source, "source")
    target_code = code_of(ROTATIONS, target, "target")
    params = _new()
    _set_source(params, source_code)
    _set_target(params, target_code)
    owner = None
    if out is None:
        shape = (*shape_of(rotations, "rotations", context)[:-1], channels_of(target))
        name = None if dtype is None else dtype_name(dtype)
        result = framework.empty(rotations, shape, name, context)
    else:
        owner = writable(out, "out", dtype)
        result = out
    _core.rbc_convert_rotations(context._handle, rotations, result, params)
    return finished(framework, context, ordered, "rotations", owner, result)
