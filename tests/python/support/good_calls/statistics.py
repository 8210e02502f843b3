"""Statistics and normalization."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import robocache as rbc

from . import Call

ROWS = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)


def accumulator() -> rbc.StatisticsAccumulator:
    made = rbc.StatisticsAccumulator(4)
    made.update(ROWS)
    return made


def normalization() -> rbc.Normalization:
    return rbc.Normalization.of(rbc.statistics(ROWS), "mean_std")


def calls() -> dict[str, Callable[[], Call]]:
    return {
        "statistics": lambda: (rbc.statistics, [ROWS], {}),
        "Accumulator.update": lambda: (accumulator().update, [ROWS], {}),
        "Accumulator.merge": lambda: (accumulator().merge, [accumulator()], {}),
        "Accumulator.from_bytes": lambda: (
            rbc.StatisticsAccumulator.from_bytes,
            [accumulator().to_bytes()],
            {},
        ),
        "Normalization.apply": lambda: (normalization().apply, [ROWS], {}),
        "Normalization.invert": lambda: (normalization().invert, [ROWS], {}),
    }
