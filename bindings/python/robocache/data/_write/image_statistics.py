"""Statistics of pictures, exact for the sampled ones: from the number of pixels of each value."""

from __future__ import annotations

from typing import Any

from ..._statistics.result import StatisticsResult

LEVELS = (0.01, 0.1, 0.5, 0.9, 0.99)


def statistics_of(counts: Any, sampled: int) -> StatisticsResult:
    """Return statistics of values from 0 to 1, by channel.

    ``counts`` is the number of pixels by channel and value, [3,256]; ``count`` of the result is the
    number of pictures, as in LeRobot.
    """
    import numpy as np

    values = np.arange(256) / 255.0
    total = counts.sum(axis=1)
    some = np.maximum(total, 1)
    mean = (counts * values).sum(axis=1) / some
    square = (counts * (values - mean[:, None]) ** 2).sum(axis=1) / some
    there = counts > 0
    low = values[there.argmax(axis=1)]
    high = values[255 - there[:, ::-1].argmax(axis=1)]
    quantiles = np.stack([[_quantile(row, values, level) for row in counts] for level in LEVELS])
    number = np.full(len(counts), sampled, np.int64)
    zeros = np.zeros(len(counts), np.int64)
    return StatisticsResult(number, zeros, low, high, mean, np.sqrt(square), quantiles, LEVELS)


def _quantile(counts: Any, values: Any, level: float) -> float:
    """Return the quantile of values with counts, interpolated as by numpy.quantile."""
    import numpy as np

    total = int(counts.sum())
    if total == 0:
        return float("nan")
    ends = np.cumsum(counts)
    place = level * (total - 1)
    below = int(place)
    low = values[int(np.searchsorted(ends, below, "right"))]
    high = values[int(np.searchsorted(ends, min(below + 1, total - 1), "right"))]
    return float(low + (high - low) * (place - below))
