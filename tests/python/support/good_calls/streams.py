"""Resampling, fusion and live fusion."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import robocache as rbc

from . import Call

VALUES = np.random.default_rng(0).normal(size=(2, 8, 4)).astype(np.float32)
TIMES, QUERIES = np.linspace(0, 1, 8), np.linspace(0, 1, 5)


ARRIVED = {"arrivals": TIMES + 0.1, "lag": 0.1, "causal": True, "max_age": 0.5}


def arriving() -> rbc.Stream:
    return rbc.Stream(VALUES[0], TIMES, arrivals=TIMES, causal=True)


def streams() -> list[rbc.Stream]:
    return [rbc.Stream(VALUES[0], TIMES), rbc.Stream(VALUES[0], TIMES, method="nearest")]


def live() -> rbc.Live:
    made = rbc.Live([rbc.LiveStream(4, capacity=8)])
    made.push(0, TIMES, VALUES[0])
    return made


def calls() -> dict[str, Callable[[], Call]]:
    return {
        "resample of arrivals": lambda: (rbc.resample, [VALUES[0], TIMES, QUERIES], dict(ARRIVED)),
        "fuse of arrivals": lambda: (rbc.fuse, [[arriving()], QUERIES], {"lag": 0.1}),
        "Stream of arrivals": lambda: (
            rbc.Stream,
            [VALUES[0], TIMES],
            {"arrivals": TIMES, "causal": True, "max_age": 0.5},
        ),
        "Live.push of arrivals": lambda: (live().push, [0, TIMES + 1, VALUES[0], TIMES + 2], {}),
        "Live.fuse with a lag": lambda: (live().fuse, [0.5], {"lag": 0.1}),
        "live_kept": lambda: (rbc.live_kept, [TIMES, TIMES + 1], {"late_bound": 1}),
        "resample": lambda: (rbc.resample, [VALUES, TIMES, QUERIES], {}),
        "fuse": lambda: (rbc.fuse, [streams(), QUERIES], {}),
        "clock": lambda: (rbc.clock, [streams()], {"rate": 10}),
        "report": lambda: (rbc.report, [streams()], {}),
        "asof": lambda: (rbc.asof, [TIMES, [0.5, 2.0]], {"tolerance": 1.0}),
        "Stream": lambda: (rbc.Stream, [VALUES[0], TIMES], {}),
        "LiveStream": lambda: (rbc.Live, [[rbc.LiveStream(4, capacity=8)]], {}),
        "Live.push": lambda: (live().push, [0, TIMES + 1, VALUES[0]], {}),
        "Live.fuse": lambda: (live().fuse, [0.5], {}),
    }
