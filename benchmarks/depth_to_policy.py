"""Measure the path from depth images to the points that a policy uses, in frames per second.

    python benchmarks/depth_to_policy.py --device cuda --frames 32
    python benchmarks/depth_to_policy.py --device cpu --frames 4 --data ../shared/data/rgbd_open3d

As in examples/python/depth_to_policy.py, the steps are: unproject with colours, crop, means of
voxels of 5 mm, 1024 farthest points. On CUDA they are captured in one graph, which is replayed.
Peers are the same steps in torch, with a loop over the points that are taken, and Open3D on the CPU
if it is installed. Peers take turns; the Markdown table has medians.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import robocache as rbc

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "python"))

from depth_images import Frames, read_frames, simulate_frames  # noqa: E402

CROP = (-1.5, -1.5, 0.3, 1.5, 1.5, 3.0)
VOXEL = 0.005
LONG = 5.0  # seconds


class Tensors:
    """The frames on a device."""

    def __init__(self, frames: Frames, device: str) -> None:
        self.depth = torch.from_numpy(frames.depth).to(device)
        self.colors = torch.from_numpy(frames.colors).to(device)
        self.camera = torch.from_numpy(frames.intrinsics).to(device)
        self.scale = frames.depth_scale
        self.clouds = torch.arange(len(frames.depth) + 1, device=device)


# ---- the library --------------------------------------------------------------------------------


def ours(frames: Tensors, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the points [B,K,6], and where the voxels of each frame begin and end."""
    cloud = rbc.unproject(
        frames.depth,
        frames.camera,
        colors=frames.colors,
        depth_scale=frames.scale,
        crop=CROP,
        color_divisor=255,
    )
    voxels = rbc.voxelize_sparse(
        cloud.points,
        lengths=cloud.num_points,
        voxel_size=VOXEL,
        point_cloud_range=CROP,
        return_point_to_voxel=False,
    )
    of_cloud = voxels.coords[:, 0]
    ascending = torch.where(of_cloud < 0, len(frames.clouds), of_cloud)
    offsets = torch.searchsorted(ascending, frames.clouds)
    chosen = rbc.farthest_points(voxels.features, count, batch_offsets=offsets)
    return rbc.take_rows(voxels.features, chosen), offsets


class Replayed:
    """The steps as one CUDA graph."""

    def __init__(self, frames: Tensors, count: int) -> None:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                ours(frames, count)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.result = ours(frames, count)

    def __call__(self) -> Any:
        self.graph.replay()
        return self.result


# ---- torch --------------------------------------------------------------------------------------


def in_torch(frames: Tensors, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    # With tensors on the device: torch would multiply by the reciprocals of numbers instead of
    # dividing.
    fx, fy, cx, cy = frames.camera.to(frames.depth.device, torch.float32)
    depth = frames.depth.to(torch.float32) / torch.tensor(frames.scale, device=fx.device)
    height, width = depth.shape[1:]
    u = torch.arange(width, device=depth.device, dtype=torch.float32)
    v = torch.arange(height, device=depth.device, dtype=torch.float32)[:, None]
    points = torch.stack([(u - cx) * depth / fx, (v - cy) * depth / fy, depth], -1)
    low = torch.tensor(CROP[:3], device=depth.device)
    high = torch.tensor(CROP[3:], device=depth.device)
    kept = (depth > 0) & (points > low).all(-1) & (points < high).all(-1)
    frame, row, column = kept.nonzero(as_tuple=True)
    features = torch.cat([points[kept], frames.colors[frame, row, column] / 255], -1)
    index = ((features[:, :3] - low) / torch.tensor(VOXEL, device=depth.device)).floor().long()
    keys = ((frame * 601 + index[:, 0]) * 601 + index[:, 1]) * 541 + index[:, 2]
    voxels, of_point = keys.unique(return_inverse=True)
    sums = torch.zeros(len(voxels), 6, device=depth.device).index_add_(0, of_point, features)
    counts = torch.zeros(len(voxels), device=depth.device)
    counts.index_add_(0, of_point, torch.ones(len(keys), device=depth.device))
    means = sums / counts[:, None]
    of_frame = voxels // (601 * 601 * 541)
    offsets = torch.searchsorted(of_frame, frames.clouds)
    sizes = offsets.diff()
    padded = torch.zeros(len(sizes), int(sizes.max()), 6, device=depth.device)
    there = torch.arange(padded.shape[1], device=depth.device) < sizes[:, None]
    padded[there] = means
    return padded.gather(1, _loop(padded[..., :3], there, count)[..., None].expand(-1, -1, 6)), (
        offsets
    )


def _loop(points: torch.Tensor, there: torch.Tensor, count: int) -> torch.Tensor:
    """Take farthest points one by one, for all clouds at once."""
    nearest = torch.where(there, torch.inf, -torch.inf)
    chosen = torch.zeros(len(points), count, dtype=torch.int64, device=points.device)
    clouds = torch.arange(len(points), device=points.device)
    for k in range(1, count):
        away = points - points[clouds, chosen[:, k - 1]][:, None]
        nearest = torch.minimum(nearest, away.square().sum(-1))
        chosen[:, k] = nearest.argmax(-1)
    return chosen


# ---- Open3D -------------------------------------------------------------------------------------


def in_open3d(open3d: Any, frames: Frames, count: int) -> Any:
    geometry = open3d.geometry
    height, width = frames.depth.shape[1:]
    camera = open3d.camera.PinholeCameraIntrinsic(width, height, *frames.intrinsics)
    box = geometry.AxisAlignedBoundingBox(np.array(CROP[:3]), np.array(CROP[3:]))
    results = []
    for depth, colors in zip(frames.depth, frames.colors):
        image = geometry.RGBDImage.create_from_color_and_depth(
            geometry.Image(np.ascontiguousarray(colors)),
            geometry.Image(depth),
            depth_scale=frames.depth_scale,
            depth_trunc=CROP[5],
            convert_rgb_to_intensity=False,
        )
        cloud = geometry.PointCloud.create_from_rgbd_image(image, camera).crop(box)
        cloud = cloud.voxel_down_sample(VOXEL).farthest_point_down_sample(count)
        results.append(np.concatenate([cloud.points, cloud.colors], axis=1))
    return np.stack(results)


# ---- measuring ----------------------------------------------------------------------------------


def seconds(calls: dict[str, Callable[[], Any]], rounds: int, cuda: bool) -> dict[str, float]:
    """Return medians; the calls take turns, and one that takes long has only one turn."""
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds + 1):
        for name, call in calls.items():
            if taken[name] and taken[name][0] > LONG:
                continue
            began = time.perf_counter()
            call()
            if cuda:
                torch.cuda.synchronize()
            taken[name].append(time.perf_counter() - began)
    # If there are several, the first is a warm-up.
    return {name: statistics.median(times[1:] or times) for name, times in taken.items()}


def frames_of(data: Path | None, count: int) -> Frames:
    some = simulate_frames(min(count, 8), 480, 640) if data is None else read_frames(data)
    again = np.arange(count) % len(some.depth)
    return Frames(
        some.depth[again], some.colors[again], some.intrinsics, some.depth_scale, some.words
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--frames", type=int, default=4, help="a batch; default: %(default)s")
    parser.add_argument("--points", type=int, default=1024, help="default: %(default)s")
    parser.add_argument("--data", type=Path, metavar="DIR", help="default: simulated, 480 x 640")
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--no-torch", action="store_true", help="skip torch's loop")
    options = parser.parse_args()

    frames = frames_of(options.data, options.frames)
    tensors = Tensors(frames, options.device)
    cuda = options.device == "cuda"
    count = options.points
    calls: dict[str, Callable[[], Any]] = {}
    if cuda:
        calls["RoboCache, a graph"] = Replayed(tensors, count)
    calls["RoboCache"] = lambda: ours(tensors, count)
    if not options.no_torch:
        calls["torch and a loop"] = lambda: in_torch(tensors, count)
    try:
        import open3d
    except (ImportError, OSError) as error:
        print(f"no Open3D: {error}", file=sys.stderr)
    else:
        calls["Open3D, on the CPU"] = lambda: in_open3d(open3d, frames, count)

    points, offsets = calls["RoboCache"]()
    voxels = offsets.diff().tolist()
    assert points.shape == (options.frames, count, 6) and min(voxels) >= count
    assert bool(torch.isfinite(points).all())
    if not options.no_torch:
        assert in_torch(tensors, 2)[1].tolist() == offsets.tolist()

    threads = rbc.Context("cpu").info.num_threads
    where = torch.cuda.get_device_name() if cuda else f"CPU, {threads} threads"
    print(f"{options.frames} frames of {frames.depth.shape[1:]}: {frames.words}; {where}")
    print(f"{min(voxels)} to {max(voxels)} voxels a frame, {count} points of them\n")
    print("| | ms | frames a second |\n| --- | --- | --- |")
    for name, median in seconds(calls, options.rounds, cuda).items():
        print(f"| {name} | {median * 1e3:.2f} | {options.frames / median:.3g} |")


if __name__ == "__main__":
    main()
