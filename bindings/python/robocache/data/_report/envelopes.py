"""The least and the greatest of each channel over stretches of a stream, gathered in one pass."""

from __future__ import annotations

from typing import Any


class Envelope:
    """Of samples that come in pieces: at most ``2 * buckets`` stretches, each with its range.

    Neighbours are merged when there are too many, so that the memory stays what it is, however long
    the stream. NaN and infinite values count for nothing.
    """

    def __init__(self, buckets: int) -> None:
        import numpy as np

        self.buckets = buckets
        self.width = 1  # samples of a stretch
        self.parts: list[tuple[Any, ...]] = []  # first and last sample or time, low, high
        self.count = 0  # of stretches
        self._minimum, self._maximum = np.fmin, np.fmax

    def add(self, times: Any, values: Any) -> None:
        """Samples [n,D] and where they lie [n]: times, or their numbers."""
        import numpy as np

        if len(values) == 0:
            return
        starts = np.arange(0, len(values), self.width)
        numbers = values.astype(np.float64)
        numbers[~np.isfinite(numbers)] = np.nan
        self._keep(*self._reduced(times, times, numbers, numbers, starts))

    def _keep(self, *part: Any) -> None:
        import numpy as np

        self.parts.append(part)
        self.count += len(part[0])
        while self.count > 2 * self.buckets:
            first, last, low, high = self.result()
            pairs = np.arange(0, self.count, 2)
            self.parts = [self._reduced(first, last, low, high, pairs)]
            self.count = len(pairs)
            self.width *= 2

    def _reduced(self, first: Any, last: Any, low: Any, high: Any, starts: Any) -> tuple[Any, ...]:
        import numpy as np

        ends = np.append(starts[1:], len(first)) - 1
        lows = self._minimum.reduceat(low, starts, axis=0)
        return first[starts], last[ends], lows, self._maximum.reduceat(high, starts, axis=0)

    def result(self) -> tuple[Any, Any, Any, Any]:
        """First and last place [B] of each stretch, and what lies between low and high [B,D]."""
        import numpy as np

        if not self.parts:
            return np.zeros(0), np.zeros(0), np.zeros((0, 0)), np.zeros((0, 0))
        first, last, low, high = (np.concatenate(arrays) for arrays in zip(*self.parts))
        return first, last, low, high
