"""Voxelization written straight from its rules, one voxel at a time, sums in exact fractions.

Slow and plain on purpose: it shares nothing with the library but the rules.
"""

import functools
import math
from fractions import Fraction

import numpy as np


def indices_of(points, origin, voxel_size, shape):
    """The voxel [N,3] of each point, and whether it is one of the grid."""
    number = np.float64 if points.dtype == np.float64 else np.float32
    size = np.broadcast_to(np.asarray(voxel_size, np.float64), 3).astype(number)
    with np.errstate(over="ignore", invalid="ignore"):
        moved = points[:, :3].astype(number) - np.asarray(origin, np.float64).astype(number)
        index = np.floor(moved / size).astype(np.float64)
        inside = ((index >= 0) & (index < np.asarray(shape, np.float64))).all(axis=1)
    return np.where(inside[:, None], index, -1).astype(np.int64), inside


def clouds_of(points, features, lengths=None, batch_offsets=None):
    """(number of the first point, points, features) of each cloud, and whether it is a batch."""
    features = points if features is None else features
    if batch_offsets is not None:
        parts = [slice(int(a), int(b)) for a, b in zip(batch_offsets, batch_offsets[1:])]
        return [(part.start, points[part], features[part]) for part in parts], True
    if points.ndim == 2:
        return [(0, points, features)], False
    rows = points.shape[1]
    ends = [rows] * len(points) if lengths is None else map(int, lengths)
    return [(b * rows, points[b, :n], features[b, :n]) for b, n in enumerate(ends)], True


def grouped_by_voxel(points, grid):
    """{(x, y, z): numbers of its points, ascending}, in order of first points; and how many not."""
    index, inside = indices_of(points, **grid)
    voxels = {}
    for i in np.flatnonzero(inside):
        voxels.setdefault(tuple(index[i].tolist()), []).append(int(i))
    return voxels, int((~inside).sum())


def reduced(features, reduction):
    """Rows [n,F] of one voxel as float64 [F]."""
    return np.array([_reduce(column.tolist(), features.dtype, reduction) for column in features.T])


def _reduce(column, dtype, reduction):
    if any(math.isnan(f) for f in column):
        return math.nan
    if reduction in ("max", "min"):
        choose = max if reduction == "max" else min
        return choose(column, key=lambda f: (f, math.copysign(1, f)))
    infinite = {f for f in column if math.isinf(f)}
    if infinite:
        return infinite.pop() if len(infinite) == 1 else math.nan
    n = len(column)
    _, exponent = math.frexp(max(map(abs, column)))
    fraction = 124 if dtype == np.float64 else 62
    quantum = Fraction(2) ** (exponent + (n - 1).bit_length() - fraction)
    exact = quantum * sum(round(Fraction(f) / quantum) for f in column)
    try:
        total = float(exact)
    except OverflowError:
        total = math.copysign(math.inf, exact)
    return total / n if reduction == "mean" else total


def rounded(x, dtype):
    with np.errstate(over="ignore", invalid="ignore"):
        return x.astype(dtype)


def dense(
    points,
    features=None,
    *,
    reduction,
    dtype,
    fill_value=0.0,
    lengths=None,
    batch_offsets=None,
    **grid,
):
    """Return the result of rbc.voxelize, with the dropped points."""
    clouds, batched = clouds_of(points, features, lengths, batch_offsets)
    channels = (points if features is None else features).shape[-1]
    behind = () if reduction in ("occupancy", "count") else (channels,)
    out = np.full((len(clouds), *grid["shape"], *behind), fill_value, dtype)
    dropped = np.zeros(len(clouds), np.int64)
    for b, (_, cloud, rows) in enumerate(clouds):
        voxels, dropped[b] = grouped_by_voxel(cloud, grid)
        for place, inside in voxels.items():
            if reduction == "occupancy":
                out[b][place] = 1
            elif reduction == "count":
                out[b][place] = rounded(np.float64(len(inside)), dtype)
            else:
                out[b][place] = rounded(reduced(rows[inside], reduction), dtype)
    return (out, dropped) if batched else (out[0], dropped[0])


def sparse(
    points,
    features=None,
    *,
    reduction,
    order,
    capacity,
    dtype,
    max_points=None,
    lengths=None,
    batch_offsets=None,
    **grid,
):
    """Return the results of rbc.voxelize_sparse, by name."""
    clouds, batched = clouds_of(points, features, lengths, batch_offsets)
    channels = (points if features is None else features).shape[-1]
    dropped = np.zeros(len(clouds), np.int64)
    found = []  # (cloud, x, y, z), numbers in the cloud, the number of its first point, features
    for b, (first, cloud, rows) in enumerate(clouds):
        voxels, dropped[b] = grouped_by_voxel(cloud, grid)
        found += [((b, *place), inside, first, rows) for place, inside in voxels.items()]
    if order == "lexicographic":
        found.sort(key=lambda voxel: voxel[0])

    most = math.inf if max_points is None else max_points
    result = {
        "coords": np.full((capacity, 4), -1, np.int32),
        "points_per_voxel": np.zeros(capacity, np.int32),
        "features": np.zeros((capacity, channels), dtype),
        "grouped": None if max_points is None else np.zeros((capacity, most, channels), dtype),
        "point_to_voxel": np.full(points.shape[:-1], -1, np.int64),
        "num_voxels": np.array(min(len(found), capacity)),
        "num_points_outside": dropped if batched else dropped[0],
        "num_voxels_over_capacity": np.zeros((), np.int64),
        "num_points_over_capacity": np.zeros((), np.int64),
        "num_points_over_group": np.zeros((), np.int64),
    }
    for row, (place, inside, first, rows) in enumerate(found):
        if row >= capacity:
            result["num_voxels_over_capacity"] += 1
            result["num_points_over_capacity"] += len(inside)
            continue
        result["coords"][row] = place
        result["points_per_voxel"][row] = min(len(inside), most)
        result["features"][row] = rounded(reduced(rows[inside], reduction), dtype)
        result["num_points_over_group"] += max(0, len(inside) - most) if max_points else 0
        result["point_to_voxel"].reshape(-1)[first + np.array(inside)] = row
        if max_points is not None:
            kept = inside[:max_points]
            result["grouped"][row, : len(kept)] = rounded(rows[kept], dtype)
    return result


def tsdf(points, sensors, *, origin, voxel_size, shape, truncation, carve=False, weight_of=None):
    """sum(w * d), sum(w) [X,Y,Z] and where some ray just touches a voxel, in float64.

    Of one cloud: a ray passes the voxels whose boxes it intersects, by the method of slabs.
    """
    size = np.broadcast_to(np.asarray(voxel_size, np.float64), 3)
    edges = [first + step * np.arange(n) for first, step, n in zip(origin, size, shape)]
    low = np.stack(np.meshgrid(*edges, indexing="ij"), axis=-1)
    distances, weights = np.zeros(shape), np.zeros(shape)
    touched = np.zeros(shape, bool)
    for point, sensor in zip(points, np.broadcast_to(sensors, points.shape)):
        r = np.linalg.norm(point - sensor)
        u = (point - sensor) / r
        with np.errstate(divide="ignore"):
            slabs = [
                ((edge - s) / v, (edge + step - s) / v)
                for edge, step, s, v in zip(edges, size, sensor, u)
            ]
        enter = functools.reduce(np.maximum, np.ix_(*(np.minimum(*slab) for slab in slabs)))
        leave = functools.reduce(np.minimum, np.ix_(*(np.maximum(*slab) for slab in slabs)))
        enter = np.maximum(enter, 0 if carve else max(0, r - truncation))
        leave = np.minimum(leave, r + truncation)
        touched |= np.abs(leave - enter) < 1e-9
        passed = leave > enter
        d = np.clip(r - (low[passed] + size / 2 - sensor) @ u, -truncation, truncation)
        w = 1.0 if weight_of is None else weight_of(r)
        distances[passed] += w * d
        weights[passed] += w
    return distances, weights, touched
