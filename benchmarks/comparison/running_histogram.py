"""Statistics of data in batches, as described by LeRobot and openpi: moments by E[x^2] - E[x]^2,
quantiles by a histogram that is binned again when a value is outside of its range.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

_BINS = 5000


class RunningHistogram:
    """Statistics of channels [D], in the dtype of the values."""

    def __init__(self, quantiles: bool) -> None:
        self._quantiles = quantiles
        self._count = 0

    def update(self, rows: Any) -> None:
        """Add a batch [n,D]."""
        low, high = rows.min(axis=0), rows.max(axis=0)
        mean, square = rows.mean(axis=0), np.square(rows).mean(axis=0)
        if self._count == 0:
            self._low, self._high, self._mean, self._square = low, high, mean, square
            self._edges = [self._between(a, b) for a, b in zip(low, high)]
            self._histograms = [np.zeros(_BINS) for _ in low]
        else:
            self._widen(low, high)
            share = len(rows) / (self._count + len(rows))
            self._mean = self._mean + (mean - self._mean) * np.float32(share)
            self._square = self._square + (square - self._square) * np.float32(share)
        self._count += len(rows)
        if self._quantiles:
            for d, edges in enumerate(self._edges):
                self._histograms[d] += np.histogram(rows[:, d], edges)[0]

    def _widen(self, low: Any, high: Any) -> None:
        """Move each bin as a whole to the bin of its lower edge."""
        outside = (low < self._low) | (high > self._high)
        self._low, self._high = np.minimum(self._low, low), np.maximum(self._high, high)
        for d in np.flatnonzero(outside) if self._quantiles else ():
            edges = self._between(self._low[d], self._high[d])
            counts = self._histograms[d]
            self._histograms[d] = np.histogram(self._edges[d][:-1], edges, weights=counts)[0]
            self._edges[d] = edges

    @staticmethod
    def _between(low: Any, high: Any) -> Any:
        return np.linspace(low - 1e-10, high + 1e-10, _BINS + 1)

    def moments(self) -> tuple[Any, ...]:
        variance = np.maximum(self._square - np.square(self._mean), 0)
        return self._low, self._high, self._mean, np.sqrt(variance)

    def quantiles(self, levels: Sequence[float]) -> Any:
        """Return [Q,D]: the edge of the bin that contains the quantile."""
        below = [np.cumsum(histogram) for histogram in self._histograms]
        found = [[np.searchsorted(counts, q * self._count) for counts in below] for q in levels]
        return np.array([[e[i] for e, i in zip(self._edges, row)] for row in found])


def statistics(values: Any, levels: Sequence[float] | None, batch: int) -> tuple[Any, ...]:
    """Return min, max, mean, std and, if there are levels, quantiles of [S,D], `batch` rows at a
    time.
    """
    running = RunningHistogram(levels is not None)
    for begin in range(0, len(values), batch):
        running.update(values[begin : begin + batch])
    moments = running.moments()
    return moments if levels is None else (*moments, running.quantiles(levels))
