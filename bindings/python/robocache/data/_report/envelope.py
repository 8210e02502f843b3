"""The ranges of samples over time, in memory that does not depend on the length of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_KNOWN = 4096  # intervals whose median is taken
_PER_PIECE = 32  # of these, from one piece
_BLOCK = 1 << 16  # most samples that are held back
_WIDE = 8  # channels: narrow samples are not faster
_LONG = 2.0  # medians: an interval that may be a gap, whose limit is 2.5 medians or more


class Envelope:
    """The ranges of samples that arrive in pieces, in about ``2 * buckets`` stretches.

    Neighbouring stretches are merged if there are too many, but not over a long interval, as long
    as there are at most ``buckets`` of these. NaN and infinite values are ignored.
    """

    def __init__(self, buckets: int) -> None:
        import numpy as np

        self.buckets = buckets
        self.width = 1  # samples per stretch
        self.parts: list[tuple[Any, ...]] = []  # first and last sample or time, low, high
        self.count = 0  # number of stretches
        self.most = 2 * buckets
        self.intervals: list[Any] = []  # some of the times between samples
        self.last: Any = None  # the last time
        self.pending: list[tuple[Any, Any]] = []  # small pieces, so that stretches are even
        self.waiting = 0  # their samples
        self._minimum, self._maximum = np.fmin, np.fmax

    def add(self, times: Any, values: Any) -> None:
        """Add samples [n,D] and their places [n]: times or indices."""

        if len(values) == 0:
            return
        self._note(times)
        self.pending.append((times, values))
        self.waiting += len(values)
        if self.waiting >= min(self.width, _BLOCK):
            self._flush()

    def _flush(self) -> None:
        import numpy as np

        if not self.pending:
            return
        times, values = (np.concatenate(arrays) for arrays in zip(*self.pending))
        self.pending, self.waiting = [], 0
        starts = np.arange(0, len(values), self.width)
        if self.width > 1 and len(times) > 1:  # a stretch also begins after a long interval
            long = np.flatnonzero(np.diff(times) > self._limit()) + 1
            if len(long) <= self.buckets:
                starts = np.union1d(starts, long)
        numbers = values.astype(np.float64)
        numbers[~np.isfinite(numbers)] = np.nan
        self._keep(*self._reduced(times, times, numbers, numbers, starts))

    def _note(self, times: Any) -> None:
        import numpy as np

        if self.last is not None:
            self.intervals.append(np.array([times[0] - self.last], np.float64))
        if len(times) > 1:
            steps = np.diff(times[: _PER_PIECE + 1])
            self.intervals.append(steps.astype(np.float64))
        self.last = times[-1]
        if len(self.intervals) > _KNOWN:
            self.intervals = [np.concatenate(self.intervals)[-_KNOWN:]]

    def _limit(self) -> float:
        import numpy as np

        steps = np.concatenate(self.intervals) if self.intervals else np.zeros(0)
        return float(_LONG * np.median(steps)) if len(steps) else np.inf

    def _keep(self, *part: Any) -> None:
        import numpy as np

        self.parts.append(part)
        self.count += len(part[0])
        while self.count > self.most:
            first, last, low, high = self._joined()
            apart = (first[1:] - last[:-1]).astype(np.float64)
            limit = self._limit()
            if np.count_nonzero(apart > limit) > self.buckets:  # keep the longest
                limit = float(np.partition(apart, -self.buckets)[-self.buckets])
            long = np.concatenate([[True], apart > limit])
            begins = np.flatnonzero(long)
            place = np.arange(self.count) - begins[np.cumsum(long) - 1]
            starts = np.flatnonzero(place % 2 == 0)
            self.parts = [self._reduced(first, last, low, high, starts)]
            self.most = 2 * self.buckets + 2 * len(begins)
            self.count = len(starts)
            self.width *= 2

    def _reduced(self, first: Any, last: Any, low: Any, high: Any, starts: Any) -> tuple[Any, ...]:
        import numpy as np

        ends = np.append(starts[1:], len(first)) - 1
        lows, highs = _over(self._minimum, low, starts), _over(self._maximum, high, starts)
        return first[starts], last[ends], lows, highs

    def result(self) -> tuple[Any, Any, Any, Any]:
        """Return the first and last place [B] of each stretch, and its low and high [B,D]."""
        self._flush()
        return self._joined()

    def _joined(self) -> tuple[Any, Any, Any, Any]:
        import numpy as np

        if not self.parts:
            return np.zeros(0), np.zeros(0), np.zeros((0, 0)), np.zeros((0, 0))
        first, last, low, high = (np.concatenate(arrays) for arrays in zip(*self.parts))
        return first, last, low, high


def _over(function: Any, values: Any, starts: Any) -> Any:
    """Return ``function.reduceat(values, starts)``, in a fifth of the time for even starts.

    The sign of a result may differ if zeros of both signs are the extreme.
    """
    import numpy as np

    size = int(starts[1]) if len(starts) > 1 else 0
    if (
        size == 0
        or values.shape[1] < _WIDE
        or not np.array_equal(starts, np.arange(0, len(values), size))
    ):
        return function.reduceat(values, starts, axis=0)
    even = len(values) // size * size
    found = function.reduce(values[:even].reshape(-1, size, values.shape[1]), axis=1)
    if even == len(values):
        return found
    return np.concatenate([found, function.reduce(values[even:], axis=0, keepdims=True)])


def split_at(envelope: tuple[Any, ...], gaps: Sequence[tuple[float, float]]) -> tuple[Any, ...]:
    """Split the stretches that span a gap; both sides keep the range of the whole."""
    import numpy as np

    first, last, low, high = envelope
    if not gaps or len(first) == 0:
        return envelope
    begins, ends = np.array(gaps).T
    owner = np.searchsorted(first, begins, "right") - 1
    within = (owner >= 0) & (last[owner] >= ends) & (first[owner] <= begins)
    owner, begins, ends = owner[within], begins[within], ends[within]
    if len(owner) == 0:
        return envelope
    rows = np.repeat(np.arange(len(first)), 1 + np.bincount(owner, minlength=len(first)))
    new_first = np.sort(np.concatenate([first, ends]))
    new_last = np.sort(np.concatenate([last, begins]))
    return new_first, new_last, low[rows], high[rows]


class Samples:
    """Some samples of a stream, evenly over it: at most ``most``, and about half of them at least.

    If there are too many, each second one is dropped, and then only each second one is taken.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.step = 1
        self.seen = 0  # samples
        self.parts: list[tuple[Any, Any]] = []
        self.count = 0

    def add(self, times: Any, values: Any) -> None:
        """Add samples [n,D] at times [n]."""
        import numpy as np

        begin = -self.seen % self.step
        self.seen += len(times)
        part = times[begin :: self.step], values[begin :: self.step].astype(np.float64)
        self.parts.append(part)
        self.count += len(part[0])
        while self.count > self.most:
            at, kept = self.result()
            self.parts = [(at[::2], kept[::2])]
            self.count = len(self.parts[0][0])
            self.step *= 2

    def result(self) -> tuple[Any, Any]:
        """Return the times [n] and the values [n,D]."""
        import numpy as np

        if not self.parts:
            return np.zeros(0), np.zeros((0, 0))
        at, values = (np.concatenate(arrays) for arrays in zip(*self.parts))
        return at, values
