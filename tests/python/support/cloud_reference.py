"""Clouds of depth images, and farthest points, written from their rules in plain NumPy.

It shares nothing with the library.
"""

import numpy as np


def unproject(
    depth,
    intrinsics,
    pose=None,
    *,
    colors=None,
    depth_scale=None,
    min_depth=0,
    max_depth=np.inf,
    crop=None,
    pixel_offset=0,
    pixel_stride=1,
    color_divisor=1,
    max_points=None,
    dtype=np.float32,
):
    """Return points, count, pixels and overflow of one image."""
    number = np.float64 if dtype == np.float64 else np.float32
    if depth_scale is None:
        depth_scale = 1 if depth.dtype.kind == "f" else 1000
    fx, fy, cx, cy = np.asarray(intrinsics).astype(number)
    with np.errstate(all="ignore"):
        height, width = depth.shape
        v, u = np.meshgrid(
            np.arange(0, height, pixel_stride), np.arange(0, width, pixel_stride), indexing="ij"
        )
        z = depth[::pixel_stride, ::pixel_stride].astype(number) / number(depth_scale)
        half = number(pixel_offset)
        x = ((u.astype(number) + half) - cx) * z / fx
        y = ((v.astype(number) + half) - cy) * z / fy
        kept = (z > number(min_depth)) & (z < number(max_depth))
        place = np.stack([x, y, z], axis=-1)
        if pose is not None:
            rows = np.asarray(pose).astype(number)
            place = np.stack([((r[0] * x + r[1] * y) + r[2] * z) + r[3] for r in rows[:3]], -1)
        low, high = ([-np.inf] * 3, [np.inf] * 3) if crop is None else (crop[:3], crop[3:])
        kept &= (place > np.array(low, number)).all(-1) & (place < np.array(high, number)).all(-1)
        rows = [place[kept]]
        if colors is not None:
            rows.append(
                colors[::pixel_stride, ::pixel_stride][kept].astype(number) / number(color_divisor)
            )
        found = np.concatenate(rows, axis=-1).astype(dtype)
    pixels = (v * width + u)[kept]
    capacity = z.size if max_points is None else max_points
    count = min(len(found), capacity)
    points = np.zeros((capacity, found.shape[1]), dtype)
    points[:count] = found[:count]
    numbers = np.full(capacity, -1, np.int64)
    numbers[:count] = pixels[:count]
    return points, count, numbers, len(found) - count


def farthest_points(points, k, start=0):
    """Return indices and squared distances for one cloud, by the definition, in O(N K)."""
    number = np.float64 if points.dtype == np.float64 else np.float32
    xyz = points[:, :3].astype(number)
    finite = np.flatnonzero(np.isfinite(xyz).all(axis=1))
    indices, distances = np.full(k, -1, np.int64), np.zeros(k, number)
    if len(finite) == 0:
        return indices, distances
    later = finite[finite >= start]
    taken = later[0] if len(later) else finite[0]
    nearest = np.full(len(finite), np.inf, number)
    far = number(np.inf)
    for i in range(min(k, len(finite))):
        indices[i], distances[i] = taken, far
        with np.errstate(over="ignore"):
            dx, dy, dz = (xyz[finite] - xyz[taken]).T
            nearest = np.minimum(nearest, (dx * dx + dy * dy) + dz * dz)
        best = np.argmax(nearest)  # the first of several
        taken, far = finite[best], nearest[best]
    return indices, distances
