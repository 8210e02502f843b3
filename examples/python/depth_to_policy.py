#!/usr/bin/env python3
"""Turn depth images into the points that a policy takes: [B,1024,6], x, y, z and colours.

Unprojects with colours, crops, downsamples by voxels and chooses the farthest points. Writes the
points (.npz) and a picture (.png) of the input and the output.

    depth_to_policy.py              a table with balls, simulated
    depth_to_policy.py --data DIR   a folder with depth/, color/ and camera*.json
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import robocache as rbc
from depth_images import ENCODINGS, Frames, read_frames, simulate_frames
from devices import Device, choose_device

Corners = tuple[float, float, float, float, float, float]


def to_points(
    depth: Any,
    colors: Any,
    frames: Frames,
    crop: Corners,
    voxel: float,
    points: int,
    device: Device,
) -> tuple[Any, Any]:
    """Return the points [B,K,6] and the voxels per image, without waiting for their number."""
    cloud = rbc.unproject(
        depth,
        device.put(frames.intrinsics),
        colors=colors,
        depth_scale=frames.depth_scale,
        crop=crop,
        color_divisor=255,
    )
    voxels = rbc.voxelize_sparse(
        cloud.points,
        lengths=cloud.num_points,
        voxel_size=voxel,
        point_cloud_range=crop,
        return_point_to_voxel=False,
    )
    # Voxels are stored cloud after cloud: find where each cloud begins.
    of_cloud = voxels.coords[:, 0]
    numbers = device.put(np.arange(len(depth) + 1, dtype=np.int32))
    offsets = ((of_cloud[:, None] >= 0) & (of_cloud[:, None] < numbers)).sum(0)
    chosen = rbc.farthest_points(voxels.features, points, batch_offsets=offsets)
    return rbc.take_rows(voxels.features, chosen), offsets[1:] - offsets[:-1]


def draw(frames: Frames, points: np.ndarray, path: Path) -> None:
    """Draw the first image, and its points as seen from the camera."""
    figure = plt.figure(figsize=(12, 3), layout="constrained")
    image, depth = figure.add_subplot(131), figure.add_subplot(132)
    image.imshow(frames.colors[0])
    image.set_title("colours")
    metres = np.where(frames.depth[0] > 0, frames.depth[0] / frames.depth_scale, np.nan)
    shown = depth.imshow(metres, cmap="viridis")
    depth.set_title("depth in metres")
    figure.colorbar(shown, ax=depth, shrink=0.7)
    cloud = figure.add_subplot(133, projection="3d")
    x, y, z = points[0, :, :3].T
    cloud.scatter(x, z, -y, c=np.clip(points[0, :, 3:], 0, 1), s=4)
    cloud.set_title(f"{points.shape[1]} points")
    cloud.set_box_aspect((np.ptp(x), np.ptp(z), np.ptp(y)), zoom=1.3)
    cloud.view_init(18, -80)
    for each in (image, depth, cloud):
        each.set_axis_off()
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="default: simulated")
    parser.add_argument(
        "--encoding", choices=list(ENCODINGS), default="millimetres", help="default: %(default)s"
    )
    parser.add_argument(
        "--crop",
        type=float,
        nargs=6,
        metavar=("X0", "Y0", "Z0", "X1", "Y1", "Z1"),
        default=(-1.5, -1.5, 0.3, 1.5, 1.5, 3.0),
        help="metres, x to the right, y down, z forward; default: %(default)s",
    )
    parser.add_argument("--voxel", type=float, default=0.005, help="metres; default: %(default)s")
    parser.add_argument("--points", type=int, default=1024, help="default: %(default)s")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", default=Path("build/demo"), help="default: %(default)s"
    )
    options = parser.parse_args(arguments)

    frames = (
        simulate_frames() if options.data is None else read_frames(options.data, options.encoding)
    )
    device = choose_device()
    depth, colors = device.put(frames.depth), device.put(frames.colors)
    took = []
    for _ in range(4):  # the first run is a warm-up
        device.wait()
        began = time.perf_counter()
        result, counts = to_points(
            depth, colors, frames, tuple(options.crop), options.voxel, options.points, device
        )
        device.wait()
        took.append(time.perf_counter() - began)
    points, voxels = device.get(result), device.get(counts)

    options.out.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(options.out / "depth_to_policy.npz", points=points, voxels=voxels)
    draw(frames, points, options.out / "depth_to_policy.png")
    pixels = frames.depth[0].size
    print(f"{frames.words}, {device.words}")
    print(f"{pixels} pixels -> {', '.join(map(str, voxels))} voxels -> {points.shape[1]} points")
    print(f"{len(points) / min(took[1:]):.0f} frames per second; {options.out}/depth_to_policy.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
