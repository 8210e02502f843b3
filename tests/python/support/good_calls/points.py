"""Voxels and point clouds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import robocache as rbc

from . import Call

POINTS = np.random.default_rng(1).normal(size=(30, 3)).astype(np.float32)
DEPTH = np.ones((6, 5), np.float32)
GRID: dict[str, Any] = {"origin": (0, 0, 0), "voxel_size": 0.5, "shape": (4, 4, 4)}


def calls() -> dict[str, Callable[[], Call]]:
    return {
        "voxelize": lambda: (rbc.voxelize, [POINTS], dict(GRID)),
        "voxelize_sparse": lambda: (rbc.voxelize_sparse, [POINTS], dict(GRID)),
        "unproject": lambda: (rbc.unproject, [DEPTH, [2, 2, 1, 1]], {}),
        "farthest_points": lambda: (rbc.farthest_points, [POINTS, 4], {}),
        "take_rows": lambda: (rbc.take_rows, [POINTS, np.array([0, 1, -1])], {}),
    }
