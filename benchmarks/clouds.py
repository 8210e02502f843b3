"""Compare clouds on the CPU with packages that detectors and policies use: spconv and fpsample.

    python benchmarks/clouds.py              # both, as far as installed
    python benchmarks/clouds.py --only hard  # hard voxels, or farthest

Hard voxels: sweeps in whole millimetres, at the sizes of KITTI's and nuScenes' detectors, compared
with spconv's CPU generator. Farthest points: clouds, uniform and as a camera sees them, compared
with fpsample's exact methods. Calls take turns in one process, and write into existing arrays. The
Markdown tables have medians, and in brackets the fastest time, as other programs use the machine as
well.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import robocache as rbc

KITTI = (0.0, -40.0, -3.0, 70.4, 40.0, 1.0)
KITTI_PILLARS = (0.0, -39.68, -3.0, 69.12, 39.68, 1.0)
NUSCENES = (-54.0, -54.0, -5.0, 54.0, 54.0, 3.0)
NUSCENES_PILLARS = (-51.2, -51.2, -5.0, 51.2, 51.2, 3.0)
# Points, columns, voxel size, range, points per voxel, voxels.
HARD = {
    "KITTI, 0.05 m": (20_000, 4, (0.05, 0.05, 0.1), KITTI, 5, 16_000),
    "KITTI, 0.05 m, much room": (20_000, 4, (0.05, 0.05, 0.1), KITTI, 5, 40_000),
    "KITTI, pillars of 0.16 m": (20_000, 4, (0.16, 0.16, 4.0), KITTI_PILLARS, 32, 16_000),
    "nuScenes, 0.075 m": (35_000, 5, (0.075, 0.075, 0.2), NUSCENES, 10, 120_000),
    "nuScenes, pillars of 0.2 m": (35_000, 5, (0.2, 0.2, 8.0), NUSCENES_PILLARS, 20, 30_000),
}
FARTHEST = {"16,384": 16_384, "80,000": 80_000}


def sweep(points: int, columns: int, bounds: Any) -> np.ndarray:
    """Return a sweep of 64 beams, direction by direction, in whole millimetres, all inside the
    range.
    """
    random = np.random.default_rng(7)
    count = 4 * points
    azimuth = np.repeat(np.linspace(0, 2 * np.pi, count // 64 + 1), 64)[:count]
    elevation = np.tile(np.linspace(-0.42, 0.03, 64), count // 64 + 1)[:count]
    ground = 1.73 / np.maximum(np.tan(-elevation), 1e-4)
    wall = 8 + 30 * np.abs(np.sin(3 * azimuth)) + 4 * np.sin(17 * azimuth)
    reach = np.minimum(np.minimum(ground, wall), 70) + random.normal(0, 0.02, count)
    place = np.stack(
        [reach * np.cos(azimuth), reach * np.sin(azimuth), reach * np.tan(elevation)], axis=1
    )
    place = np.round(place * 1000) / 1000
    inside = ((place >= bounds[:3]) & (place < bounds[3:])).all(axis=1)
    more = random.random((count, columns - 3))
    kept = np.concatenate([place, more], axis=1)[inside][:points]
    assert len(kept) == points
    return np.ascontiguousarray(kept.astype(np.float32))


def surface(points: int) -> np.ndarray:
    u, v = np.random.default_rng(8).uniform(-1, 1, (2, points))
    z = 1.4 + 0.4 * np.sin(3.8 * u) * np.cos(4 * v) + 0.05 * np.sin(64 * u)
    return np.stack([u * z, v * z, z], axis=1).astype(np.float32)


def times(calls: dict[str, Callable[[], Any]], rounds: int) -> list[str]:
    """Return the cells of a table; the calls take turns, and the first turn is skipped."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for i in range(rounds + 1):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            if i > 0:
                taken[name].append((time.perf_counter() - began) * 1e6)
    return [f"{statistics.median(each):.0f} ({min(each):.0f})" for each in taken.values()]


def row(cells: list[str]) -> None:
    print(f"| {' | '.join(cells)} |", flush=True)


def hard_voxels(rounds: int) -> None:
    from cumm import tensorview
    from spconv.utils import Point2VoxelCPU3d

    print("Hard voxels, us:\n")
    row(["", "voxels", "spconv", "1 thread", "2 threads"])
    row(["---"] * 5)
    for name, (count, columns, size, bounds, most, room) in HARD.items():
        points = sweep(count, columns, bounds)
        theirs = Point2VoxelCPU3d(list(size), list(bounds), columns, room, most)
        tensor = tensorview.from_numpy(points)
        calls: dict[str, Any] = {"spconv": lambda t=theirs, g=tensor: t.point_to_voxel(g)}
        options: dict[str, Any] = {
            "voxel_size": size,
            "point_cloud_range": bounds,
            "reduction": None,
        }
        for threads in (1, 2):
            context = rbc.Context("cpu", threads=threads)
            own = {**options, "backend": context}
            out = rbc.voxelize_sparse(points, max_points=most, max_voxels=room, **own)
            calls[f"{threads}"] = lambda p=points, out=out, own=own: rbc.voxelize_sparse(
                p, out=out, **own
            )
        grouped, coords, counts = (each.numpy() for each in theirs.point_to_voxel(tensor))
        ours = out.trimmed()
        assert np.array_equal(ours.coords[:, :0:-1], coords)
        assert np.array_equal(ours.points_per_voxel, counts) and np.array_equal(
            ours.grouped, grouped
        )
        row([name, str(len(coords)), *times(calls, rounds)])


def farthest_points(rounds: int) -> None:
    import fpsample

    bucket = fpsample.bucket_fps_kdline_sampling
    print("1024 farthest points, us:\n")
    row(["", "fpsample, plain", "bucket, h=7", "bucket, h=9", "RoboCache"])
    row(["---"] * 5)
    for name, count in FARTHEST.items():
        uniform = np.random.default_rng(9).random((count, 3), np.float32)
        for kind, points in (("uniform", uniform), ("a surface", surface(count))):
            calls: dict[str, Any] = {
                "plain": lambda p=points: fpsample.fps_sampling(p, 1024, start_idx=0),
                "h=7": lambda p=points: bucket(p, 1024, h=7, start_idx=0),
                "h=9": lambda p=points: bucket(p, 1024, h=9, start_idx=0),
                "ours": lambda p=points: rbc.farthest_points(p, 1024),
            }
            assert np.array_equal(calls["plain"]().astype(np.int64), calls["ours"]())
            row([f"{name}, {kind}", *times(calls, rounds)])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=("hard", "farthest"))
    parser.add_argument("--rounds", type=int, default=21, help="default: %(default)s")
    options = parser.parse_args()
    for name, measure in (("hard", hard_voxels), ("farthest", farthest_points)):
        if options.only in (None, name):
            try:
                measure(options.rounds)
            except ImportError as error:
                print(f"skipped: {error}", file=sys.stderr)
            print()


if __name__ == "__main__":
    main()
