"""Episodes and windows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import robocache as rbc

from . import Call

ROWS = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
TIMES = np.linspace(0, 1, 8)


def window() -> rbc.WindowStream:
    return rbc.WindowStream(ROWS, [-1, 0, 1], episode_offsets=[0, 5, 8])


def arriving() -> rbc.WindowStream:
    return rbc.WindowStream(
        ROWS, [-1, 0], episode_offsets=[0, 5, 8], times=TIMES, arrivals=TIMES + 0.1
    )


def episodes() -> rbc.Episodes:
    return rbc.Episodes({"state": rbc.Track(ROWS, [0, 5, 8], times=TIMES)})


def spec() -> rbc.WindowSpec:
    return rbc.WindowSpec({"state": range(-1, 1)})


def calls() -> dict[str, Callable[[], Call]]:
    return {
        "windows": lambda: (rbc.windows, [[window()], [0, 1], [2, 1]], {}),
        "WindowStream": lambda: (rbc.WindowStream, [ROWS, [0, 1]], {"episode_offsets": [0, 8]}),
        "windows of arrivals": lambda: (rbc.windows, [[arriving()], [0, 1], [2, 1]], {"lag": 0.1}),
        "Track of arrivals": lambda: (
            rbc.Track,
            [ROWS, [0, 5, 8]],
            {"times": TIMES, "arrivals": TIMES + 0.1},
        ),
        "Track": lambda: (rbc.Track, [ROWS, [0, 5, 8]], {"times": TIMES}),
        "Episodes.select": lambda: (episodes().select, [[0, 1]], {}),
        "WindowSpec.samples": lambda: (spec().samples, [episodes()], {}),
        "WindowSpec.cut": lambda: (spec().cut, [episodes(), [0, 1], [2, 1]], {}),
    }
