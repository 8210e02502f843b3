"""Fusion by independent libraries: SciPy interpolates, pandas looks samples up.

What is left to say in NumPy are the rules on queries outside, gaps and clocks. Queries have to
ascend, as pandas demands, and splines take no repeated times, as SciPy does not.
"""

from __future__ import annotations

import numpy as np
import pandas
from scipy import interpolate
from scipy.spatial.transform import Rotation, Slerp

STEPS = {"previous": "backward", "next": "forward", "nearest": "nearest"}


def fuse(streams, clock):
    """`streams` are dicts with the arguments of rbc.Stream. All in float64, and the masks."""
    parts = [resample(query_times=clock, **stream) for stream in streams]
    return np.hstack([out for out, _ in parts]), np.stack([mask for _, mask in parts], axis=1)


def resample(
    values,
    times,
    query_times,
    *,
    method="linear",
    outside="hold",
    fill_value=0.0,
    max_gap=np.inf,
    tolerance=None,
    mean=0.0,
    std=1.0,
    clock_offset=0,
):
    values = values.astype(np.float64)
    # Integer times fit into a double once the first of them is taken off.
    queries = (query_times - clock_offset - times[0]).astype(np.float64)
    times = (times - times[0]).astype(np.float64)

    last = look_up(times, queries, "backward")
    first = look_up(times, queries, "forward")
    met = (last >= 0) & (first >= 0) & (times[last] == times[first])
    beyond = (last < 0) | (first < 0)
    gap = ~met & ~beyond & (times[first] - times[last] > max_gap)
    edge = np.where(last < 0, 0, len(times) - 1)

    out = np.empty((len(queries), values.shape[1]))
    masks = []
    for begin, count, name in groups_of(method, values.shape[1]):
        part = slice(begin, begin + count)
        here = values[:, part]
        if name in STEPS and tolerance is not None:
            row = look_up(times, queries, STEPS[name], tolerance)
            valid = written = met | (row >= 0)
            chosen = here[row]
        else:
            valid = met | ~(beyond | gap)
            extrapolates = outside == "extrapolate" and name == "linear"
            chosen = between(here, times, queries, last, name, extrapolates)
            if outside == "hold" or (outside == "extrapolate" and not extrapolates):
                chosen[beyond] = here[edge[beyond]]
            written = valid if outside == "fill" else valid | beyond
        # A sample's own time gives the last sample with it. pandas, looking forward, has the first.
        chosen[met] = here[last[met]]
        out[:, part] = np.where(written[:, None], chosen, np.nan)
        out[:, part] = (out[:, part] - np.broadcast_to(mean, values.shape[1:])[part]) / (
            np.broadcast_to(std, values.shape[1:])[part]
        )
        out[~written, part] = fill_value
        if name == "slerp":
            left = np.where(beyond, edge, last)
            right = np.where(met | beyond, left, first)
            none = no_rotations(here)[left] | no_rotations(here)[right]
            out[:, part][np.repeat(none, 4, axis=1)] = fill_value
            valid = valid & ~none.any(axis=1)
        masks.append(valid)
    return out, np.logical_and.reduce(masks)


def groups_of(method, channels):
    return [(0, channels, method)] if isinstance(method, str) else method


def look_up(times, queries, direction, tolerance=None):
    """The row that pandas finds for each query, or -1."""
    left = pandas.DataFrame({"time": queries})
    right = pandas.DataFrame({"time": times, "row": np.arange(len(times))})
    found = pandas.merge_asof(left, right, on="time", direction=direction, tolerance=tolerance)
    return found["row"].fillna(-1).to_numpy().astype(np.int64)


def between(values, times, queries, last, method, extrapolates=False):
    """Values between samples. Outside they are made up, unless the caller wants a line there."""
    if method in STEPS:
        return values[look_up(times, queries, STEPS[method])]
    inside = queries if extrapolates else np.clip(queries, times[0], times[-1])
    if method == "linear":
        line = interpolate.interp1d(times, values, axis=0, fill_value="extrapolate")
        with np.errstate(divide="ignore", invalid="ignore"):  # at repeated times: written anew
            return line(inside)
    if method == "angle":
        # Two samples at a time: over hundreds of turns np.unwrap piles up its roundings.
        ahead = np.unwrap(np.stack([values[:-1], values[1:]]), axis=0)[1]
        left = np.clip(last, 0, len(times) - 2)
        weight = (inside - times[left]) / (times[left + 1] - times[left])
        return wrapped(values[left] + weight[:, None] * (ahead[left] - values[left]))
    if method == "cubic":
        # The slopes of parabolas; of two samples those of a line.
        slopes = np.gradient(values, times, axis=0, edge_order=min(2, len(times) - 1))
        return interpolate.CubicHermiteSpline(times, values, slopes, axis=0)(inside)
    if method == "pchip":
        return interpolate.PchipInterpolator(times, values, axis=0)(inside)
    assert method == "slerp"
    runs = np.split(values, values.shape[1] // 4, axis=1)
    return np.hstack([slerp(run, times, inside, last) for run in runs])


def no_rotations(values):
    """Return a mask of the quaternions that are zero or not finite: [S, D / 4]."""
    runs = values.reshape(len(values), -1, 4)
    return ~np.isfinite(runs).all(axis=2) | (runs == 0).all(axis=2)


def slerp(quaternions, times, queries, last):
    """Interpolate quaternions. Their components may be in any order, which is a change of basis."""
    quaternions = np.where(no_rotations(quaternions), 1.0, quaternions)  # which SciPy refuses
    out = Slerp(times, Rotation.from_quat(quaternions))(queries).as_quat()
    # A rotation is two quaternions. The one meant is that near to the sample before it.
    near = np.einsum("ij,ij->i", out, quaternions[np.maximum(last, 0)])
    return np.where(near < 0, -1, 1)[:, None] * out


def wrapped(angles):
    return np.remainder(angles + np.pi, 2 * np.pi) - np.pi


def distance(got, expected, method):
    """|got - expected|, [T, D]; of angles the shorter way round."""
    apart = got.astype(np.float64) - expected
    for begin, count, name in groups_of(method, apart.shape[1]):
        if name == "angle":
            apart[:, begin : begin + count] = wrapped(apart[:, begin : begin + count])
    return np.abs(apart)
