""".bin sweeps of a LiDAR: KITTI's x y z intensity, nuScenes' x y z intensity ring, in float32.

They have no header: they are recognized by their size and by plausible values.
"""

from __future__ import annotations

import os
from typing import Any

from ..._errors import FormatError
from ..._file_access import head, opened
from ..._options import Options
from ..._point_clouds import PointCloud, PointClouds, folder_of, has_clouds
from ..description import Format

_WHAT = "sweep of x y z intensity (ring) in float32"
_LOOK = 4096  # points
_FAR = 1e4  # m
_RINGS = 256
_FIELDS = {4: ("x", "y", "z", "intensity"), 5: ("x", "y", "z", "intensity", "ring")}


FORMAT = Format(
    name="sweep",
    title="LiDAR sweep of KITTI or nuScenes",
    files="*.bin, a folder of them",
    reads="A point cloud of x, y, z, intensity, and ring if there are five numbers per point, all "
    "float32; a folder is a list of clouds in the order of the numbers in their names.",
    refuses="The files have no header: other files that end with .bin are recognized by their size "
    "and by values that no LiDAR measures, and are not read.",
    example='cloud = rbc.data.open("000000.bin")',
)


def sniff(path: str) -> bool:
    if os.path.isdir(path):
        return has_clouds(path, _is_sweep)
    return _is_sweep(path)


def open(path: str, options: Options) -> PointCloud | PointClouds:
    if os.path.isdir(path):
        return PointClouds(path, folder_of(path, _is_sweep, ".bin", _WHAT, options), read)
    return read(path)


def _is_sweep(path: str) -> bool:
    return path.endswith(".bin") and os.path.isfile(path) and _width(path) is not None


def read(path: str) -> PointCloud:
    """Read one file."""
    import numpy as np

    width = _width(path)
    if width is None:
        raise FormatError(path, "", f"is not a {_WHAT}")
    with opened(path) as file:
        table = np.frombuffer(file.read(), "<f4").reshape(-1, width)
    fields = {name: np.ascontiguousarray(table[:, i]) for i, name in enumerate(_FIELDS[width])}
    return PointCloud(path, fields, len(table), 1)


def _width(path: str) -> int | None:
    """Return the numbers per point; None for a file that is not a sweep."""
    if not os.path.isfile(path) or os.path.getsize(path) == 0:
        return None
    size = os.path.getsize(path)
    for width in (5, 4):
        if size % (4 * width) == 0 and _is_plausible(path, width):
            return width
    return None


def _is_plausible(path: str, width: int) -> bool:
    import numpy as np

    table: Any = np.frombuffer(head(path, 4 * _LOOK * width), "<f4").reshape(-1, width)
    if not np.isfinite(table).all() or (np.abs(table[:, :3]) > _FAR).any():
        return False
    tiny = (table[:, :3] != 0) & (np.abs(table[:, :3]) < 1e-20)  # integers read as floats
    if tiny.mean() > 0.01 or (table[:, 3] < 0).any() or (table[:, 3] > 65535).any():
        return False
    if width == 5:
        ring = table[:, 4]
        return bool(((ring >= 0) & (ring < _RINGS) & (ring == np.floor(ring))).all())
    return True
