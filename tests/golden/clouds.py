"""The parts that cases of clouds share: a grid, and points in and around it."""

import numpy as np
from vectors import DTYPES

REDUCTIONS = ["occupancy", "count", "sum", "mean", "max", "min"]
GRID = {"origin": (-1.0, -1.0, 0.0), "voxel_size": (0.5, 0.5, 0.25), "shape": (4, 3, 2)}


def cloud(random, shape, dtype, channels=3):
    """Return points in and around GRID, also on faces, some of them NaN or infinite."""
    points = random.randint(-10, 10, (*shape, channels)) / 8
    points[..., 2] = random.randint(-1, 9, shape) / 16
    points = points.astype(DTYPES[dtype])
    flat = points.reshape(-1, channels)
    flat[1, 0], flat[4, 2], flat[6, 1] = np.nan, np.inf, -np.inf
    return points


def ragged(options):
    return {k: options[k] for k in ("lengths", "batch_offsets") if k in options}
