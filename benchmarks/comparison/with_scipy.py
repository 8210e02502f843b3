"""NumPy and SciPy, as their users write it: row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def fuse(align: Callable[..., Any], values: list[Any], times: list[Any], queries: Any) -> Any:
    parts = [_by_row(align, v, t, queries) for v, t in zip(values, times)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=2)


def _by_row(align: Callable[..., Any], values: Any, times: Any, queries: Any) -> Any:
    out = np.empty((values.shape[0], queries.shape[1], values.shape[2]), values.dtype)
    for b in range(values.shape[0]):
        out[b] = align(queries[b], times[b], values[b])
    return out


def interp_channels(queries: Any, times: Any, values: Any) -> Any:
    out = np.empty((queries.size, values.shape[1]), values.dtype)
    for d in range(values.shape[1]):
        out[:, d] = np.interp(queries, times, values[:, d])
    return out


def interp1d(queries: Any, times: Any, values: Any) -> Any:
    import scipy.interpolate

    line = scipy.interpolate.interp1d(
        times,
        values,
        axis=0,
        copy=False,
        bounds_error=False,
        fill_value=(values[0], values[-1]),
        assume_sorted=True,
    )
    return line(queries)


def pchip(queries: Any, times: Any, values: Any) -> Any:
    from scipy.interpolate import PchipInterpolator

    return PchipInterpolator(times, values)(queries)


def slerp(queries: Any, times: Any, values: Any) -> Any:
    from scipy.spatial.transform import Rotation, Slerp

    out = np.empty((queries.size, values.shape[1]), values.dtype)
    for d in range(0, values.shape[1], 4):
        rotations = Rotation.from_quat(values[:, d : d + 4])
        out[:, d : d + 4] = Slerp(times, rotations)(queries).as_quat()
    return out


def angle(queries: Any, times: Any, values: Any) -> Any:
    """In f64, since unwrapping accumulates."""
    turned = interp1d(queries, times, np.unwrap(values.astype("float64"), axis=0))
    return np.remainder(turned + np.pi, 2 * np.pi) - np.pi


METHODS = {"pchip": pchip, "slerp": slerp, "angle": angle}
