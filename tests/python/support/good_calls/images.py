"""Images."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import robocache as rbc

from . import Call

FRAMES = np.random.default_rng(2).integers(0, 256, (2, 6, 5, 3), np.uint8)
SAMPLES = np.arange(4)


def calls() -> dict[str, Callable[[], Call]]:
    return {
        "images": lambda: (rbc.images, [FRAMES, (3, 4)], {}),
        "image_draws": lambda: (rbc.image_draws, [SAMPLES, (6, 5)], {"seed": 1, "crop": 0.5}),
        "normalization_table": lambda: (rbc.normalization_table, ["x / 255"], {}),
    }
