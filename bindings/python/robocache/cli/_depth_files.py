"""Files of a depth camera: folders of depth and colour images, intrinsics, and a pose."""

import json
import os
import re
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import numpy as np

from ..data import FormatError
from ..data._errors import raise_shortage
from ..data._file_access import Limit, opened, require_regular
from ._common import Failure, check_kind, text_of

DEPTHS = (".png", ".tif", ".tiff", ".pgm", ".npy")
COLORS = (".png", ".jpg", ".jpeg", ".ppm", ".npy")
_FORMATS = ("PNG", "TIFF", "PPM", "JPEG")  # Pillow runs programs for some others
_BETWEEN = rb"(?:\s|#[^\r\n]*[\r\n])+"
_PGM = re.compile(rb"P([25])" + 3 * (_BETWEEN + rb"(\d{1,9})") + rb"\s")


def names_of(folder: Path, endings: tuple[str, ...], what: str) -> list[str]:
    """Return the images of a folder, sorted by the numbers in their names."""
    if not folder.is_dir():
        raise Failure(f"{folder} is not a folder")
    found = [name for name in os.listdir(folder) if name.lower().endswith(endings)]
    if not found:
        raise Failure(f"{folder} has no {what} ({', '.join(endings)})")
    stem, times = Counter(os.path.splitext(name)[0] for name in found).most_common(1)[0]
    if times > 1:
        raise Failure(f"{folder} has two images named {stem}")
    return sorted(found, key=lambda name: (_numbers_in(name), name))


def check_pairs(depths: list[str], colors: list[str]) -> None:
    """Warn if the names do not show which depth and colour images belong together."""
    for depth, color in zip(depths, colors):
        same = os.path.splitext(depth)[0] == os.path.splitext(color)[0]
        if not same and (_numbers_in(depth) != _numbers_in(color) or not _numbers_in(depth)):
            warnings.warn(
                f"--colors: pairs {color} with {depth} only by the order of their names; "
                "use the same numbers in both to be sure",
                stacklevel=2,
            )
            return


def depth_of(path: Path) -> Any:
    """Read depths [H,W], uint16 or floats of up to 32 bits."""
    depth = _image(path)
    kind, width = depth.dtype.kind, depth.dtype.itemsize
    if depth.ndim != 2 or kind not in "iuf" or width == 1:
        text = f"is {depth.dtype} {list(depth.shape)}, expected one depth per pixel, 16 bits or "
        raise FormatError(str(path), "", text + "float")
    if kind == "f":
        return depth.astype(np.float32 if width > 4 else depth.dtype.newbyteorder("="))
    # Pillow widens certain 16-bit images to 32 bits.
    if depth.size and (depth.min() < 0 or depth.max() > 65535):
        raise FormatError(str(path), "", "has depths outside 0 to 65535")
    return depth.astype(np.uint16)


def color_of(path: Path, shape: tuple[int, ...]) -> Any:
    """Read red, green and blue [H,W,3] for a depth image of a shape."""
    color = _image(path)
    if color.ndim != 3 or color.shape[2] < 3 or color.dtype != np.uint8:
        text = f"is {color.dtype} {list(color.shape)}, expected red, green, blue of 8 bits"
        raise FormatError(str(path), "", text)
    if color.shape[:2] != shape:
        text = f"has {list(color.shape[:2])} pixels, but its depth image has {list(shape)}"
        raise FormatError(str(path), "", text)
    return color[:, :, :3]


def _numbers_in(name: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", name)]


def _image(path: Path) -> Any:
    check_kind(path)
    if path.suffix.lower() == ".npy":
        return _npy(path)
    with opened(str(path)) as file:
        if file.read(2) in (b"P2", b"P5"):  # Pillow rescales these if their maximum is < 65535
            file.seek(0)
            return _pgm(path, file.read())
    try:
        from PIL import Image, UnidentifiedImageError
    except ModuleNotFoundError:
        raise Failure(f"{path}: reading images needs Pillow: pip install pillow") from None
    try:
        with opened(str(path)) as file, Image.open(file, formats=_FORMATS) as image:
            _require_size(path, image.size)
            pages = getattr(image, "n_frames", 1)
            if pages > 1 and image.format != "MPO":  # MPO: a photo with its preview
                raise ValueError(f"has {pages} pages, expected one; save each as a file")
            return np.asarray(image)
    except UnidentifiedImageError:
        raise FormatError(str(path), "", "is not a PNG, TIFF, PPM or JPEG image") from None
    except Exception as error:  # Pillow's readers have no common base class
        raise_shortage(path)
        if isinstance(error, FormatError) or (isinstance(error, OSError) and error.errno):
            raise
        raise FormatError(str(path), "", str(error) or type(error).__name__) from None


def _npy(path: Path) -> Any:
    """Read the single array of a .npy file."""
    require_regular(str(path))
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # also for an archive, which numpy reads too
        raise_shortage(path)
        if isinstance(error, OSError) and error.errno:
            raise
        raise FormatError(str(path), "", str(error)) from None
    if not isinstance(array, np.ndarray):
        array.close()
        raise FormatError(str(path), "", "is an archive of arrays, expected one array")
    return np.array(array)


def _require_size(path: Path, size: tuple[int, int]) -> None:
    """Raise if a small file claims gigabytes of pixels."""
    in_memory, in_file = 4 * size[0] * size[1], os.path.getsize(path)
    if in_memory > Limit().allowed(in_file):
        text = f"has {size[0]} x {size[1]} pixels, too many for a file of {in_file} bytes"
        raise FormatError(str(path), "", text)


def _pgm(path: Path, content: bytes) -> Any:
    """Read the pixels of a PGM file without scaling."""
    head = _PGM.match(content)
    if head is None:
        raise FormatError(str(path), "", "has no PGM header: P5 or P2, width, height, maximum")
    plain = head[1] == b"2"
    width, height, most = (int(n) for n in head.groups()[1:])
    if not 0 < most < 65536:
        raise FormatError(str(path), "", f"has the maximum {most}, expected 1 to 65535")
    kind = np.dtype(">u2" if most > 255 else np.uint8)
    body = content[head.end() :]
    count = width * height
    if plain:
        words = re.sub(rb"#[^\r\n]*", b"", body).split()
        if not all(re.fullmatch(rb"\d{1,5}", word) for word in words):
            raise FormatError(str(path), "", "has pixels that are not 16-bit numbers")
        values = np.array([int(word) for word in words], np.int64)
    else:
        extra = body[count * kind.itemsize :]
        if extra.strip():
            text = f"has {len(extra)} bytes after its image; save each image as a file"
            raise FormatError(str(path), "", text)
        whole = len(body) // kind.itemsize
        values = np.frombuffer(body, kind, min(count, whole))
    if len(values) != count:
        text = f"has {len(values)} pixels, expected {width} x {height}"
        raise FormatError(str(path), "", text)
    if count and values.max() > most:
        raise FormatError(str(path), "", f"has the value {values.max()}, above its maximum {most}")
    return values.astype(kind.newbyteorder("=")).reshape(height, width)


_NAMES = ("fx", "fy", "cx", "cy")
# Keys of distortion, in lower case: of ROS, OpenCV, RealSense, Kalibr, COLMAP.
_DISTORTION = re.compile(
    r"d|k[1-6]|[ps][1-4]|coeffs|dist(ortion)?(_?(coeff\w*|param\w*))?|\w+_distortion"
)
_NONE = "is not a camera: expected fx, fy, cx, cy, or K, or intrinsic_matrix"


@dataclass(frozen=True)
class Camera:
    """The intrinsics of a camera, and its image size if the file has it."""

    path: Path
    values: list[float]  #: fx, fy, cx, cy
    width: Optional[int]
    height: Optional[int]

    def check(self, image: Path, shape: tuple[int, ...], first: tuple[int, ...]) -> None:
        """Check that an image has the camera's size, and the size of the first image."""
        found = f"has {shape[1]} x {shape[0]} pixels"
        width, height = self.width or shape[1], self.height or shape[0]
        if (height, width) != shape:
            text = f"{found}, but {self.path} is for {width} x {height}; use the camera of this "
            raise FormatError(str(image), "", text + "size")
        if shape != first:
            text = f"{found}, but the images before have {first[1]} x {first[0]}; "
            text += f"{self.path} is for one size: put each size in a separate folder"
            raise FormatError(str(image), "", text)


def read_camera(path: Path) -> Camera:
    """Read a .json file with fx, fy, cx, cy by name or as a list, K, or intrinsic_matrix."""
    camera = _read(path)
    for name, value in zip(_NAMES, camera.values):
        required = "a finite number" + (" that is not 0" if name[0] == "f" else "")
        if not np.isfinite(value) or (name[0] == "f" and value == 0):
            raise FormatError(str(path), name, f"is {value:g}, expected {required}")
    return camera


def _read(path: Path) -> Camera:
    content = _json(path)
    sizes: list[Optional[int]] = [None, None]
    if isinstance(content, dict):
        _require_pinhole(content, path)
        sizes = [_size(content, name, path) for name in ("width", "height")]
        if "intrinsic_matrix" in content:
            return Camera(path, _open3d(content["intrinsic_matrix"], path), *sizes)
        content = content["K"] if "K" in content else [content.get(name) for name in _NAMES]
    numbers = _numbers(content)
    if numbers is None or numbers.shape not in ((4,), (9,), (3, 3)):
        raise FormatError(str(path), "", _NONE)
    if numbers.size == 9:
        return Camera(path, _of_matrix(numbers.reshape(3, 3), path), *sizes)
    return Camera(path, numbers.tolist(), *sizes)


def read_pose(path: Path) -> Any:
    """Read a 4 x 4 matrix in row-major order."""
    matrix = _numbers(_json(path))
    if matrix is None or matrix.shape not in ((16,), (4, 4)):
        raise FormatError(str(path), "", "is not a 4 x 4 matrix of numbers")
    matrix = matrix.reshape(4, 4)
    if not np.isfinite(matrix).all():
        raise FormatError(str(path), "", "has numbers that are not finite")
    if not np.allclose(matrix[3], [0, 0, 0, 1], rtol=0, atol=1e-9):
        text = f"its last row is {_words(matrix[3])}, expected 0 0 0 1; a pose is row-major, "
        raise FormatError(str(path), "", text + "so transpose a column-major one")
    return matrix


def _require_pinhole(entries: dict[str, Any], path: Path) -> None:
    """Raise if the file has lens distortion: images are not rectified."""
    for name, value in entries.items():
        if _DISTORTION.fullmatch(name.lower()) and _is_any_not_zero(value):
            text = "lens distortion is not corrected; rectify the images and remove this key"
            raise FormatError(str(path), name, text)


def _is_any_not_zero(value_or_list: Any) -> bool:
    """Whether a number, nested lists, or OpenCV's {rows, cols, data} has a value other than 0."""
    waiting = [value_or_list]
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
        text = f"K: its last row is {_words(k[2])}, expected 0 0 1; K is row-major, "
        raise FormatError(str(path), "", text + "so transpose a column-major one")
    if k[0, 1] != 0 or k[1, 0] != 0:
        raise FormatError(str(path), "", "K: has skew, expected 0; rectify the images")
    return [float(x) for x in (k[0, 0], k[1, 1], k[0, 2], k[1, 2])]


def _open3d(matrix: Any, path: Path) -> list[float]:
    """Read Open3D's intrinsic_matrix, which is column-major."""
    numbers = _numbers(matrix)
    if numbers is None or numbers.shape != (9,):
        raise FormatError(str(path), "", "intrinsic_matrix: expected a list of 9 numbers")
    if numbers[[2, 5, 8]].tolist() != [0, 0, 1]:
        text = "intrinsic_matrix: is row-major, but Open3D's is column-major; "
        raise FormatError(str(path), "", text + "name it K, or transpose it")
    return _of_matrix(numbers.reshape(3, 3).T, path)


def _numbers(values: Any) -> Any:
    """Return lists of numbers as an array; None for anything else."""
    try:
        made = np.array(values)
    except (TypeError, ValueError, RecursionError):
        return None
    return made.astype(np.float64) if made.dtype.kind in "iuf" else None


def _size(entries: dict[str, Any], name: str, path: Path) -> Optional[int]:
    size = entries.get(name)
    if size is None:
        return None
    whole = type(size) is int or (type(size) is float and size.is_integer())
    if not whole or size < 1:
        raise FormatError(
            str(path), name, f"is {size!r}, expected a whole number of pixels, 1 or more"
        )
    return int(size)


def _words(row: Any) -> str:
    return " ".join(f"{x:g}" for x in row)


def _json(path: Path) -> Any:
    text = text_of(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(str(path), "", f"is not JSON: {error}") from None
