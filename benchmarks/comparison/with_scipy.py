"""The same by NumPy and SciPy, as their users write it: row after row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def fuse(align: Callable[..., Any], values: list[Any], times: list[Any], queries: Any) -> Any:
    parts = [align(v, t, queries) for v, t in zip(values, times)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=2)


def _empty(values: Any, queries: Any) -> Any:
    return np.empty((values.shape[0], queries.shape[1], values.shape[2]), values.dtype)


def interp(values: Any, times: Any, queries: Any) -> Any:
    out = _empty(values, queries)
    for b in range(values.shape[0]):
        for d in range(values.shape[2]):
            out[b, :, d] = np.interp(queries[b], times[b], values[b, :, d])
    return out


def interp1d(values: Any, times: Any, queries: Any) -> Any:
    import scipy.interpolate

    out = _empty(values, queries)
    for b in range(values.shape[0]):
        line = scipy.interpolate.interp1d(
            times[b],
            values[b],
            axis=0,
            copy=False,
            bounds_error=False,
            fill_value=(values[b, 0], values[b, -1]),
            assume_sorted=True,
        )
        out[b] = line(queries[b])
    return out


def pchip(values: Any, times: Any, queries: Any) -> Any:
    from scipy.interpolate import PchipInterpolator

    out = _empty(values, queries)
    for b in range(values.shape[0]):
        out[b] = PchipInterpolator(times[b], values[b])(queries[b])
    return out


def slerp(values: Any, times: Any, queries: Any) -> Any:
    from scipy.spatial.transform import Rotation, Slerp

    out = _empty(values, queries)
    for b in range(values.shape[0]):
        for d in range(0, values.shape[2], 4):
            rotations = Rotation.from_quat(values[b, :, d : d + 4])
            out[b, :, d : d + 4] = Slerp(times[b], rotations)(queries[b]).as_quat()
    return out


def angle(values: Any, times: Any, queries: Any) -> Any:
    """In f64, for unwrapping adds up."""
    turned = interp1d(np.unwrap(values.astype("float64"), axis=1), times, queries)
    return (np.remainder(turned + np.pi, 2 * np.pi) - np.pi).astype(values.dtype)


METHODS = {"pchip": pchip, "slerp": slerp, "angle": angle}
