"""The clouds and grids of voxelization, and the bytes that must be moved."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import numpy as np

from .data import Data

VOXEL_CUDA_CASES = [
    "occupancy/1M 128^3 uniform",
    "count/1M 128^3 uniform",
    "count/1M 128^3 sweeps",
    "count/10M 256^3 uniform",
    "count/10M 256^3 sweeps",
    "occupancy/100M 256^3 uniform",
    "count/100M 256^3 uniform",
    "count/100M 256^3 sweeps",
    "mean/1M 200^3 16 features uniform",
    "occupancy/32x100k 352x400x20 sweeps",
    "sparse mean/100k 352x400x20 uniform",
    "sparse mean/100k 352x400x20 sweeps",
    "sparse mean/1M 1000x1000x40 uniform",
    "sparse mean/1M 1000x1000x40 sweeps",
    "sparse mean/32x100k 352x400x20 sweeps",
    "sparse mean/10M 2000x2000x100 uniform",
]
VOXEL_CPU_CASES = [
    "occupancy/500k 128^3 uniform",
    "count/500k 128^3 uniform",
    "count/500k 128^3 sweeps",
    "mean/500k 128^3 4 features uniform",
    "sparse mean/100k 352x400x20 uniform",
    "sparse mean/100k 352x400x20 sweeps",
    "sparse mean/1M 1000x1000x40 uniform",
    "sparse mean/1M 1000x1000x40 sweeps",
]

_VOXEL_SIZES = {(352, 400, 20): 0.2, (2000, 2000, 100): 0.05}  # metres; of others 0.1
_SWEEP = 100_000  # points
_PATTERN = (
    r"(occupancy|count|mean|sparse mean)/(?:(\d+)x)?(\d+)([kM]) "
    r"(?:(\d+)\^3|(\d+)x(\d+)x(\d+))(?: (\d+) features)? (uniform|sweeps)"
)


@dataclasses.dataclass(frozen=True)
class VoxelCase:
    """Clouds of points, uniform and random or the sweeps of a LiDAR, into a grid; as
    benchmarks/voxel_cloud.h has them.
    """

    name: str
    result: str  # occupancy, count, mean or sparse mean
    clouds: int
    points: int  # of each cloud
    shape: tuple[int, int, int]
    features: int  # beside the points
    sweeps: bool
    op = "voxelize"

    @property
    def sparse(self) -> bool:
        return self.result == "sparse mean"

    @property
    def total(self) -> int:
        return self.clouds * self.points

    @property
    def volume(self) -> int:
        return math.prod(self.shape)

    @property
    def columns(self) -> int:
        """x, y, z; with an intensity where the points themselves are averaged."""
        return 4 if self.sparse and self.features == 0 else 3

    @property
    def voxel_size(self) -> float:
        return _VOXEL_SIZES.get(self.shape, 0.1)

    @property
    def origin(self) -> tuple[float, float, float]:
        x, y, _ = (-0.5 * n * self.voxel_size for n in self.shape)
        return (x, y, -1.0)

    @staticmethod
    def parse(text: str) -> VoxelCase | None:
        found = re.fullmatch(_PATTERN, text)
        if found is None:
            return None
        result, clouds, points, unit, cube, x, y, z, features, kind = found.groups()
        shape = (int(cube),) * 3 if cube else (int(x), int(y), int(z))
        count = int(points) * {"k": 1_000, "M": 1_000_000}[unit]
        return VoxelCase(
            text, result, int(clouds or 1), count, shape, int(features or 0), kind == "sweeps"
        )

    def __str__(self) -> str:
        return self.name

    def data(self, torch: Any = None) -> Data:
        """Arrays are points, features or None, offsets or None: tensors on CUDA if torch is given,
        else NumPy's.
        """
        random = _Random(torch)
        points = _make_points(self, random)
        features = None
        if self.features:
            features = random.uniform((self.total, self.features)) * 4 - 2
        offsets = None
        if self.clouds > 1:
            offsets = random.integers(np.arange(self.clouds + 1) * self.points)
        in_range, voxels = _voxels(self, points, torch)
        moved = 4 * self.total * (self.columns + self.features)
        if self.sparse:
            moved += 4 * voxels * (4 + (self.features or self.columns))
        else:
            size = {"occupancy": 1, "count": 4, "mean": 4 * self.features}[self.result]
            moved += size * self.clouds * self.volume
        return Data((points, features, offsets), moved, in_range)


class _Random:
    """NumPy, or torch on CUDA, as far as points need it."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch
        self.library = torch or np
        if torch is None:
            self.generator = np.random.default_rng(1)
        else:
            self.generator = torch.Generator("cuda").manual_seed(1)

    def uniform(self, shape: Any, dtype: str = "float32") -> Any:
        if self.torch is None:
            return self.generator.random(shape, dtype)
        dtype = getattr(self.torch, dtype)
        return self.torch.rand(shape, generator=self.generator, device="cuda", dtype=dtype)

    def range(self, begin: int, end: int) -> Any:
        """In f64: both libraries take the same operators of it."""
        array = np.arange(begin, end, dtype="float64")
        return array if self.torch is None else self.torch.from_numpy(array).cuda()

    def integers(self, array: Any) -> Any:
        return array if self.torch is None else self.torch.from_numpy(array).cuda()


def _make_points(case: VoxelCase, random: _Random) -> Any:
    chunk = 4_000_000
    points = random.uniform((case.total, case.columns))
    extents = [n * case.voxel_size for n in case.shape]
    for begin in range(0, case.total, chunk):
        part = points[begin : begin + chunk]
        if case.sweeps:
            index = random.range(begin, begin + len(part))
            noise = random.uniform((len(part),), "float64") * 0.04 - 0.02
            columns = _sweeps(case, extents, index, noise, random.library)
        else:
            columns = [part[:, axis] * extent for axis, extent in enumerate(extents)]
            columns = [c + origin for c, origin in zip(columns, case.origin)]
        for axis, (column, extent) in enumerate(zip(columns, extents)):
            # The first point is the middle of the first voxel, and none is nearer to the corner:
            # Open3D lays its grid half a voxel before them.
            low = case.origin[axis] + 0.5 * case.voxel_size
            part[:, axis] = column.clip(low, case.origin[axis] + extent * (1 - 1e-5))
            if begin == 0:
                part[0, axis] = low
    return points


def _sweeps(case: VoxelCase, extents: list[float], index: Any, noise: Any, library: Any) -> Any:
    """Columns x, y, z of what 64 beams meet in a hall with boxes, on a drive through it."""
    lows = [o + 0.02 * e for o, e in zip(case.origin, extents)]
    highs = [o + 0.98 * e for o, e in zip(case.origin, extents)]
    sweep, at = index // _SWEEP, index % _SWEEP
    # No ray is parallel to a wall.
    azimuth = at // 64 * 64 * (2 * math.pi / _SWEEP) + 0.3 * sweep + 0.01
    elevation = -0.44 + 0.7 * (at % 64) / 63
    level = library.cos(elevation)
    ray = [level * library.cos(azimuth), level * library.sin(azimuth), library.sin(elevation)]
    size = min(highs[0] - lows[0], highs[1] - lows[1])
    radius = size * (0.2 + 0.1 * library.sin(0.1 * sweep))
    height = lows[2] + min(1.8, 0.4 * (highs[2] - lows[2]))
    angle = sweep * (4 / size)
    eye = [radius * library.cos(angle), radius * library.sin(angle), 0 * sweep + height]

    def crossing(low: Any, high: Any) -> tuple[Any, Any]:
        enter, leave = -math.inf + 0 * noise, math.inf + 0 * noise
        for axis in range(3):
            a = (low[axis] - eye[axis]) / ray[axis]
            b = (high[axis] - eye[axis]) / ray[axis]
            enter = library.maximum(enter, library.minimum(a, b))
            leave = library.minimum(leave, library.maximum(a, b))
        return enter, leave

    _, distance = crossing(lows, highs)
    boxes = np.random.default_rng(3)
    for _ in range(12):
        low, high = list(lows), list(highs)
        for axis in range(2):
            extent = highs[axis] - lows[axis]
            width = extent * boxes.uniform(0.02, 0.06)
            low[axis] += (extent - width) * boxes.random()
            high[axis] = low[axis] + width
        high[2] = low[2] + (highs[2] - lows[2]) * boxes.uniform(0.1, 0.7)
        enter, leave = crossing(low, high)
        met = (enter > 0) & (enter < leave)
        distance = library.where(met, library.minimum(distance, enter), distance)
    return [e + r * (distance + noise) for e, r in zip(eye, ray)]


def _voxels(case: VoxelCase, points: Any, torch: Any) -> tuple[float, int]:
    """The share of points in the grid, and how many voxels they take."""
    from . import with_numpy_voxels

    if torch is None:
        keys = with_numpy_voxels.keys_of(case, points)
        return keys.size / case.total, np.unique(keys).size
    from . import with_torch_voxels

    keys = with_torch_voxels.keys_of(case, points)
    inside = keys < case.clouds * case.volume
    # The trash comes last.
    occupied = torch.unique(keys[inside])
    return inside.double().mean().item(), occupied.numel()
