"""Rotations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import robocache as rbc

from . import Call

ROWS = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)


def calls() -> dict[str, Callable[[], Call]]:
    return {
        "convert_rotations": lambda: (rbc.convert_rotations, [ROWS, "quat_xyzw", "rot6d_rows"], {}),
    }
