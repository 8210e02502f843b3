"""A scan: its points, the grid for them, and the results of the library."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robocache import data

#: The limit of a dense grid, which fits in the memory of any machine several times.
_MOST_VOXELS = 50_000_000


@dataclass(frozen=True)
class Grid:
    """Cubes of one size, from the corner with the smallest coordinates on."""

    origin: tuple[float, ...]
    voxel_size: float
    shape: tuple[int, ...]

    @property
    def cubes(self) -> dict[str, Any]:
        """The grid as the keywords that the operations take."""
        return {"origin": self.origin, "voxel_size": self.voxel_size, "shape": self.shape}

    @property
    def pillars(self) -> dict[str, Any]:
        """The same with one voxel per column."""
        size, (nx, ny, nz) = self.voxel_size, self.shape
        return {"origin": self.origin, "voxel_size": (size, size, nz * size), "shape": (nx, ny, 1)}

    @property
    def truncation(self) -> float:
        """The largest distance from a surface that is stored."""
        return 3 * self.voxel_size

    @property
    def end(self) -> tuple[float, ...]:
        """The corner with the largest coordinates."""
        return tuple(o + n * self.voxel_size for o, n in zip(self.origin, self.shape))


def grid_over(low: Sequence[float], high: Sequence[float], voxel_size: float) -> Grid:
    """Return the voxels that cover a box; their faces are at multiples of their size."""
    first = [math.floor(value / voxel_size + 1e-6) for value in low]
    last = [math.ceil(value / voxel_size - 1e-6) for value in high]
    shape = tuple(max(end - begin, 1) for begin, end in zip(first, last))
    if math.prod(shape) > _MOST_VOXELS:
        raise ValueError(
            f"voxel size: {voxel_size} m makes {' x '.join(map(str, shape))} voxels, "
            f"expected at most {_MOST_VOXELS}"
        )
    return Grid(tuple(index * voxel_size for index in first), voxel_size, shape)


@dataclass(frozen=True)
class Scan:
    """N points in metres, z up, with measurements; NaN for beams without a return."""

    name: str
    title: str
    points: np.ndarray  # float32 [N, C]
    columns: tuple[str, ...]  # C: x, y, z, then intensity, or red, green and blue, or nothing
    grid: Grid
    #: Where each of B sweeps was seen from [B, 3], where that is known.
    sensors: np.ndarray | None
    #: Sweep b is the points offsets[b] to offsets[b + 1].
    offsets: np.ndarray
    #: The height of the slice that is shown of the signed distances; None: the grid's middle.
    slice_z: float | None = None

    @property
    def has_colours(self) -> bool:
        return "red" in self.columns


@dataclass(frozen=True)
class Call:
    """One call of the library, in numbers."""

    name: str
    out: np.ndarray
    voxels: int  # with a point in them, or seen
    points: int  # in these voxels
    dropped: int  # points outside the grid, and those that are NaN
    beyond: int  # points beyond the capacity of the output
    took_ms: float


@dataclass(frozen=True)
class Voxelized:
    """The results for a scan. X, Y, Z is the shape of its grid; M voxels have a point."""

    counts: np.ndarray  # [X, Y, Z]
    highest: np.ndarray  # [X, Y]: z, NaN in pillars without a point
    measured: np.ndarray | None  # [X, Y, C - 3]: the mean of the columns after x, y and z
    coords: np.ndarray  # [M, 3]
    means: np.ndarray  # [M, C]: of the points of each voxel
    pillar_coords: np.ndarray  # [V, 2]
    pillar_points: np.ndarray  # [V, P, C], then zeros
    pillar_counts: np.ndarray  # [V]: how many of the P are points
    distances: np.ndarray | None  # [X, Y, Z]: to the surface, NaN where nothing was seen
    calls: tuple[Call, ...]


def read_scans(folder: Path, voxel_size: float | None) -> list[Scan]:
    """The PCD files of a folder; with relative.txt its two sweeps are one scan."""
    files = sorted(folder.glob("*.pcd"))
    if not files:
        raise FileNotFoundError(f"{folder}: no point clouds (*.pcd)")
    scans = [_read_scan(file, voxel_size) for file in files]
    pose = folder / "relative.txt"
    return [_joined(scans, pose, voxel_size)] if pose.exists() else scans


def _read_scan(file: Path, voxel_size: float | None) -> Scan:
    (cloud,) = data.open_clouds(file)
    points = cloud.points.astype(np.float32)
    columns: tuple[str, ...] = ("x", "y", "z")
    sensors: np.ndarray | None = np.zeros((1, 3), np.float32)
    slice_z = None
    if "intensity" in cloud.fields:
        kind = "a LiDAR sweep"
        # Drivers write a beam that never came back as a point in the sensor itself.
        points[(points == 0).all(axis=1)] = np.nan
        points = np.hstack([points, cloud.fields["intensity"][:, None]])
        columns += ("intensity",)
        slice_z = -0.8
    elif cloud.colors is not None:
        kind = "a depth camera"
        if cloud.height > 1:
            kind += f", {cloud.width} x {cloud.height} pixels"
        # From the camera's axes, right, down and forward, to forward, left and up.
        points = np.hstack([points[:, [2, 0, 1]] * (1, -1, -1), cloud.colors / 255])
        columns += ("red", "green", "blue")
    else:
        kind, sensors = "a cloud", None
    points = points.astype(np.float32)
    if not np.isfinite(points[:, :3]).all(axis=1).any():
        raise ValueError(f"{file}: no point is finite")
    return Scan(
        file.stem,
        f"{file.name}: {kind}",
        points,
        columns,
        _grid_of(points, voxel_size),
        sensors,
        np.array([0, len(points)]),
        slice_z,
    )


def _joined(scans: list[Scan], pose: Path, voxel_size: float | None) -> Scan:
    """Two sweeps in the frame of the first, by the pose [4, 4] of the second in it."""
    matrix = np.loadtxt(pose)
    if len(scans) != 2 or matrix.shape != (4, 4):
        raise ValueError(
            f"{pose}: got shape {matrix.shape} and PCD files: {len(scans)}, expected (4, 4) and 2"
        )
    first, second = scans
    if not first.columns == second.columns == ("x", "y", "z", "intensity"):
        raise ValueError(f"{pose}: expected two clouds that are sweeps of one LiDAR")
    moved = second.points.copy()
    moved[:, :3] = second.points[:, :3] @ matrix[:3, :3].T + matrix[:3, 3]
    points = np.concatenate([first.points, moved])
    return Scan(
        pose.resolve().parent.name,
        f"{first.name} and {second.name}, two LiDAR sweeps by their relative pose",
        points,
        first.columns,
        _grid_of(points, voxel_size),
        np.stack([np.zeros(3), matrix[:3, 3]]).astype(np.float32),
        np.array([0, len(first.points), len(points)]),
        first.slice_z,
    )


def _grid_of(points: np.ndarray, voxel_size: float | None) -> Grid:
    """Return a grid around most of the points; the few far ones would make it large."""
    position = points[np.isfinite(points[:, :3]).all(axis=1), :3]
    low, high = np.percentile(position, (1, 99), axis=0).astype(float)
    # Several points per voxel, and voxels that a picture can show.
    steps = min(math.sqrt(len(position)), 130)
    return grid_over(low, high, voxel_size or _round_size((high - low).max() / steps))


def _round_size(size: float) -> float:
    """The size or more, as one digit and a power of ten."""
    power = 10.0 ** math.floor(math.log10(size)) if size > 0 else 1.0
    return max(math.ceil(size / power), 1) * power
