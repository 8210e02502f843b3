#!/usr/bin/env python3
"""Voxelize point clouds: dense grids, a list of voxels, pillars for detection, signed distances.

Writes for each scan the results (.npz), a summary (.txt) and a picture (.png).

    voxelize_scan.py              a LiDAR sweep through a street, simulated
    voxelize_scan.py --data DIR   the PCD files of a folder: LiDAR sweeps, clouds of depth cameras
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

import robocache as rbc
from devices import Device, choose_device
from scan_picture import draw_picture
from scan_report import summarize, timings
from scans import Call, Scan, Voxelized, read_scans
from simulate_lidar import simulate_sweep

#: As in PointPillars: points of a pillar, and pillars, that a detection network takes.
MAX_POINTS, MAX_PILLARS = 32, 12_000

#: Runs of each call that are timed.
RUNS = 5


def voxelize(scan: Scan, device: Device) -> Voxelized:
    """Every kind of voxels, each in one call for all of the points."""
    cubes, pillars = scan.grid.cubes, scan.grid.pillars
    points = device.put(scan.points)
    columns = len(scan.columns)
    calls: list[Call] = []

    def timed(call: Callable[[], Any]) -> tuple[Any, float]:
        """Return the result and the median time of some runs in ms, after a warm-up."""
        took = []
        for _ in range(1 + RUNS):
            device.wait()
            began = time.perf_counter()
            result = call()
            device.wait()
            took.append((time.perf_counter() - began) * 1e3)
        return result, float(np.median(took[1:]))

    def dense(mode: str, features: Any = None, **options: Any) -> np.ndarray:
        """Compute a dense grid."""
        (grid, left_out), took_ms = timed(
            lambda: rbc.voxelize(
                points, features, reduction=mode, return_num_points_outside=True, **options
            )
        )
        out, dropped = device.get(grid), int(left_out)
        voxels = int(np.count_nonzero(out if mode == "count" else ~np.isnan(out[..., 0])))
        inside = len(scan.points) - dropped
        calls.append(Call(f"voxelize {mode}", out, voxels, inside, dropped, 0, took_ms))
        return out

    def sparse(name: str, **options: Any) -> tuple[np.ndarray, ...]:
        """Compute the coordinates, counts and features of occupied voxels."""
        voxels, took_ms = timed(lambda: rbc.voxelize_sparse(points, **options))
        voxels = voxels.trimmed()  # on a GPU, this is where the host waits for their number
        features = voxels.features if voxels.grouped is None else voxels.grouped
        coords, counts, out = map(device.get, (voxels.coords, voxels.points_per_voxel, features))
        inside = int(counts.sum())
        beyond = int(voxels.num_points_over_capacity + voxels.num_points_over_group)
        dropped = int(voxels.num_points_outside)
        calls.append(Call(name, out, len(out), inside, dropped, beyond, took_ms))
        return coords[:, 1:], counts, out

    counts = dense("count", **cubes)
    highest = dense("max", points[:, 2:3], fill_value=np.nan, **pillars)
    measured = None
    if columns > 3:
        measured = dense("mean", points[:, 3:], fill_value=np.nan, **pillars)[:, :, 0]
    coords, _, means = sparse("voxelize_sparse mean", **cubes)
    pillar_coords, pillar_counts, pillar_points = sparse(
        f"voxelize_sparse {MAX_POINTS} points",
        reduction=None,
        max_points=MAX_POINTS,
        max_voxels=MAX_PILLARS,
        **pillars,
    )

    distances = None
    if scan.sensors is not None:
        sensors, offsets = device.put(scan.sensors), device.put(scan.offsets)
        (tsdf, weight, left_out), took_ms = timed(
            lambda: rbc.voxelize_tsdf(
                points,
                sensors,
                batch_offsets=offsets,
                truncation=scan.grid.truncation,
                carve=True,
                return_num_points_unused=True,
                **cubes,
            )
        )
        out, seen, dropped = device.get(tsdf), device.get(weight) > 0, int(left_out.sum())
        inside = len(scan.points) - dropped
        calls.append(Call("voxelize_tsdf", out, int(seen.sum()), inside, dropped, 0, took_ms))
        distances = np.where(seen, out, np.nan)

    return Voxelized(
        counts=counts,
        highest=highest[:, :, 0, 0],
        measured=measured,
        coords=coords,
        means=means,
        pillar_coords=pillar_coords[:, :2],
        pillar_points=pillar_points,
        pillar_counts=pillar_counts,
        distances=distances,
        calls=tuple(calls),
    )


def save_arrays(path: Path, scan: Scan, voxelized: Voxelized) -> None:
    """Write the input of a model as one .npz, with the names of the columns and the grid."""
    names = ("coords", "means", "pillar_coords", "pillar_points", "pillar_counts")
    arrays = {name: getattr(voxelized, name) for name in names}
    if voxelized.distances is not None:
        arrays["distances"] = voxelized.distances
    np.savez_compressed(
        path, counts=voxelized.counts, columns=scan.columns, **scan.grid.cubes, **arrays
    )


def run(scan: Scan, device: Device, out: Path) -> str:
    """Voxelizes one scan, writes its three files and returns what to print."""
    voxelized = voxelize(scan, device)
    summary = summarize(scan, voxelized)
    paths = [out / f"{scan.name}.{suffix}" for suffix in ("npz", "txt", "png")]
    save_arrays(paths[0], scan, voxelized)
    paths[1].write_text(summary, encoding="utf-8")
    draw_picture(paths[2], scan, voxelized)
    times = timings(scan, voxelized, device.words)
    return f"{summary}\n{times}\nwrote {', '.join(map(str, paths))}\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="point clouds on disk; default: a simulated one"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", default=Path("build/demo"), help="default: %(default)s"
    )
    parser.add_argument(
        "--voxel",
        type=float,
        metavar="METRES",
        help="the edge of a voxel; default: what suits the scan",
    )
    parser.add_argument(
        "--seed", type=int, default=7, help="of the simulation; default: %(default)s"
    )
    options = parser.parse_args(arguments)
    if options.voxel is not None and not 0 < options.voxel <= 1000:
        parser.error(f"--voxel: {options.voxel} is not above 0 and at most 1000")

    try:
        if options.data is None:
            scans = [simulate_sweep(options.seed, options.voxel)]
        else:
            scans = read_scans(options.data, options.voxel)
        options.out.mkdir(parents=True, exist_ok=True)
        device = choose_device()
        # A progress bar after one second, only on a terminal.
        bar = tqdm(scans, unit="scan", delay=1, disable=None, leave=False)
        printed = [run(scan, device, options.out) for scan in bar]
    except (OSError, ValueError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    print("\n".join(printed), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
