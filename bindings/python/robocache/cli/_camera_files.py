"""Files of a camera and of its pose."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import numpy as np

from ..data import FormatError
from ._common import text_of

_NAMES = ("fx", "fy", "cx", "cy")
# Where distortion stands, in lower case: in ROS, OpenCV, RealSense, Kalibr, COLMAP.
_DISTORTION = re.compile(
    r"d|k[1-6]|[ps][1-4]|coeffs|dist(ortion)?(_?(coeff\w*|param\w*))?|\w+_distortion"
)
_NONE = "has no camera: expected fx, fy, cx, cy, K, or intrinsic_matrix"


@dataclass(frozen=True)
class Camera:
    """What a file tells of a camera."""

    path: Path
    values: list[float]  #: fx, fy, cx, cy
    width: Optional[int]
    height: Optional[int]

    def check(self, image: Path, shape: tuple[int, ...], first: tuple[int, ...]) -> None:
        """That an image is of the camera's size, and of that of the first one."""
        found = f"has {shape[1]} x {shape[0]} pixels"
        width, height = self.width or shape[1], self.height or shape[0]
        if (height, width) != shape:
            text = f"{found}, and {self.path} is of {width} x {height}; take the camera of this "
            raise FormatError(str(image), "", text + "size")
        if shape != first:
            text = f"{found}, and the images before {first[1]} x {first[0]}; "
            text += f"{self.path} fits one size: keep each size in a folder of its own"
            raise FormatError(str(image), "", text)


def read_camera(path: Path) -> Camera:
    """Of a .json with fx, fy, cx, cy by name or as a list, K, or Open3D's intrinsic_matrix."""
    camera = _read(path)
    for name, value in zip(_NAMES, camera.values):
        required = "a finite number" + (" that is not 0" if name[0] == "f" else "")
        if not np.isfinite(value) or (name[0] == "f" and value == 0):
            raise FormatError(str(path), name, f"is {value:g}, expected {required}")
    return camera


def _read(path: Path) -> Camera:
    given = _json(path)
    sizes: list[Optional[int]] = [None, None]
    if isinstance(given, dict):
        _require_pinhole(given, path)
        sizes = [_size(given, name, path) for name in ("width", "height")]
        if "intrinsic_matrix" in given:
            return Camera(path, _open3d(given["intrinsic_matrix"], path), *sizes)
        given = given["K"] if "K" in given else [given.get(name) for name in _NAMES]
    numbers = _numbers(given)
    if numbers is None or numbers.shape not in ((4,), (9,), (3, 3)):
        raise FormatError(str(path), "", _NONE)
    if numbers.size == 9:
        return Camera(path, _of_matrix(numbers.reshape(3, 3), path), *sizes)
    return Camera(path, numbers.tolist(), *sizes)


def read_pose(path: Path) -> Any:
    """4 x 4 numbers, row by row."""
    matrix = _numbers(_json(path))
    if matrix is None or matrix.shape not in ((16,), (4, 4)):
        raise FormatError(str(path), "", "has no 4 x 4 numbers")
    matrix = matrix.reshape(4, 4)
    if not np.isfinite(matrix).all():
        raise FormatError(str(path), "", "has numbers that are not finite")
    if not np.allclose(matrix[3], [0, 0, 0, 1], rtol=0, atol=1e-9):
        text = f"its last row is {_words(matrix[3])}, expected 0 0 0 1; a pose stands row by row, "
        raise FormatError(str(path), "", text + "transpose it if it stands column by column")
    return matrix


def _require_pinhole(given: dict[str, Any], path: Path) -> None:
    """That no lens is told of whose distortion would have to be undone."""
    for name, value in given.items():
        if _DISTORTION.fullmatch(name.lower()) and _is_any_not_zero(value):
            text = "has distortion, which is not undone; rectify the images, and leave it out"
            raise FormatError(str(path), name, text)


def _is_any_not_zero(given: Any) -> bool:
    """Of a number, lists of them, or what OpenCV writes: rows, cols and data."""
    waiting = [given]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [value["data"]] if "data" in value else value.values()
        elif isinstance(value, list):
            waiting += value
        elif type(value) in (int, float) and value != 0:
            return True
    return False


def _of_matrix(k: Any, path: Path) -> list[float]:
    if k[2].tolist() != [0, 0, 1]:
        text = f"K: its last row is {_words(k[2])}, expected 0 0 1; K stands row by row, "
        raise FormatError(str(path), "", text + "transpose it if it stands column by column")
    if k[0, 1] != 0 or k[1, 0] != 0:
        raise FormatError(str(path), "", "K: has skew, expected 0 there; rectify the images")
    return [float(x) for x in (k[0, 0], k[1, 1], k[0, 2], k[1, 2])]


def _open3d(given: Any, path: Path) -> list[float]:
    """Which stands column by column."""
    numbers = _numbers(given)
    if numbers is None or numbers.shape != (9,):
        raise FormatError(str(path), "", "intrinsic_matrix: is no list of 9 numbers")
    if numbers[[2, 5, 8]].tolist() != [0, 0, 1]:
        text = "intrinsic_matrix: stands row by row, and Open3D's column by column; "
        raise FormatError(str(path), "", text + "name it K, or transpose it")
    return _of_matrix(numbers.reshape(3, 3).T, path)


def _numbers(given: Any) -> Any:
    """Lists of numbers as an array; None of anything else."""
    try:
        made = np.array(given)
    except (TypeError, ValueError, RecursionError):
        return None
    return made.astype(np.float64) if made.dtype.kind in "iuf" else None


def _size(given: dict[str, Any], name: str, path: Path) -> Optional[int]:
    size = given.get(name)
    if size is None:
        return None
    whole = type(size) is int or (type(size) is float and size.is_integer())
    if not whole or size < 1:
        raise FormatError(str(path), name, f"is {size!r}, expected a number of pixels")
    return int(size)


def _words(row: Any) -> str:
    return " ".join(f"{x:g}" for x in row)


def _json(path: Path) -> Any:
    text = text_of(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(str(path), "", f"is no JSON: {error}") from None
