from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

import robocache as rbc

Array = npt.NDArray[np.float32]


def rotations(quaternions: Array) -> None:
    assert_type(rbc.convert_rotations(quaternions, "quat_xyzw", "rot6d_rows"), Array)
    matrices = rbc.convert_rotations(quaternions, "quat_xyzw", "matrix", dtype="float64")
    assert_type(matrices, npt.NDArray[Any])

    rbc.convert_rotations(quaternions, "quat", "matrix")  # type: ignore
