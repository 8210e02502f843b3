"""Resampling, fusion and live fusion."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import robocache as rbc

from . import Call

VALUES = np.random.default_rng(0).normal(size=(2, 8, 4)).astype(np.float32)
TIMES, QUERIES = np.linspace(0, 1, 8), np.linspace(0, 1, 5)


def streams() -> list[rbc.Stream]:
    return [rbc.Stream(VALUES[0], TIMES), rbc.Stream(VALUES[0], TIMES, method="nearest")]


def live() -> rbc.Live:
    made = rbc.Live([rbc.LiveStream(4, capacity=8)])
    made.push(0, TIMES, VALUES[0])
    return made


def calls() -> dict[str, Callable[[], Call]]:
    return {
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
