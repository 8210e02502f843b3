"""The search for the offset and the drift at which two motions agree best."""

from __future__ import annotations

from typing import Any

from ... import resample
from .lagged_correlation import Grid, Lagged, blocks_of, correlation, joined, lagged
from .motion import Motion

_COARSEST, _FINEST = 0.005, 0.00025  # s: steps of the common clock
_MOST_STEPS = 1 << 21
_BLOCKS = (8, 48)  # at least, at most, of a recording that is not too short
_SHORTEST = 0.5  # s of a block
_GROUPS = 16  # of blocks, of which each is left out once
_NEAR = 16  # steps around a peak


class Search:
    """The best lag and drift: block k, in the middle of which it is t, lags by lag + drift * t."""

    def __init__(
        self, a: Motion, b: Motion, each: bool, max_offset: float, max_drift: float
    ) -> None:
        import numpy as np

        rows = [
            row
            for row in zip(a.times, a.values, b.times, b.values)
            if min(len(row[0]), len(row[2])) > 1
            and max(row[0][0], row[2][0]) < min(row[0][-1], row[2][-1]) + max_offset
        ]
        if not rows:
            raise ValueError("a, b: have no time in common")
        span = sum(max(row[0][-1], row[2][-1]) - min(row[0][0], row[2][0]) for row in rows)
        begin = min(row[0][0] for row in rows)
        reach = max_drift * (max(row[0][-1] for row in rows) - begin) / 2
        fastest = min(a.period, b.period) / 2
        self.step = max(min(fastest, _COARSEST), _FINEST, span / _MOST_STEPS)
        most = int(np.ceil((max_offset + reach) / self.step)) + 2
        length = max(2.0, 2 * max_offset, span / _BLOCKS[1])
        length = max(min(length, span / _BLOCKS[0]), _SHORTEST)
        parts, middles = [], []
        for ta, va, tb, vb in rows:
            start = min(ta[0], tb[0])
            count = int((max(ta[-1], tb[-1]) - start) / self.step) + 1
            clock = start + self.step * np.arange(count)
            first, second = _on(clock, ta, va, a.gap), _on(clock, tb, vb, b.gap)
            there = np.flatnonzero(first.valid)
            if len(there) < 2:
                continue
            blocks = list(blocks_of(int(there[0]), int(there[-1]) + 1, length / self.step))
            parts.append(lagged(first, second, blocks, most, each))
            middles += [start + self.step * (begin + end - 1) / 2 for begin, end in blocks]
        if not parts or not any(part.samples.any() for part in parts):
            raise ValueError("a, b: have no time in common")
        self.of: Lagged = joined(parts)
        self.lags = self.of.lags
        self.middles = np.array(middles)
        self.middle = float(self.middles.min() + self.middles.max()) / 2
        self.reach = float(self.middles.max() - self.middles.min()) / 2
        self.drifts = self._drifts(max_drift)

    def _drifts(self, most: float) -> Any:
        """Those to try first: at the ends they differ by less than a peak is wide."""
        import numpy as np

        if most == 0 or len(self.middles) < _BLOCKS[0]:
            return np.zeros(1)
        count = int(np.ceil(most * self.reach / max(4 * self.step, 0.02)))
        return np.linspace(-most, most, 2 * max(count, 1) + 1)

    def best(self, of: Lagged, middles: Any, around: float | None = None) -> Any:
        """The lag in s, the drift, the score there, and the scores of all lags at that drift."""
        import numpy as np

        drift = 0.0 if around is None else around
        if len(self.drifts) > 1:
            if around is None:
                tried = [self._height(of, middles, d) for d in self.drifts]
                drift = float(self.drifts[int(np.argmax(tried))])
            drift = self._refined(of, middles, drift)
        scores = self._scores(of, middles, drift)
        at, score = _peak(scores)
        return float(at + of.lags[0]) * self.step, drift, score, scores

    def _refined(self, of: Lagged, middles: Any, drift: float) -> float:
        """By parabolas of three drifts that come closer, over lags around the peak."""
        import numpy as np

        width = float(self.drifts[1] - self.drifts[0])
        at, _ = _peak(self._scores(of, middles, drift))
        room = _NEAR + int(np.ceil(2 * width * self.reach / self.step))
        near = of.near(int(at) - room, int(at) + room + 1)
        for _ in range(4):
            heights = [self._height(near, middles, drift + width * k) for k in (-1, 0, 1)]
            drift += width * (_peak(np.array(heights))[0] - 1)
            width /= 3
        return drift

    def _scores(self, of: Lagged, middles: Any, drift: float) -> Any:
        return correlation(of, drift * (middles - self.middle) / self.step)[0]

    def _height(self, of: Lagged, middles: Any, drift: float) -> float:
        return _peak(self._scores(of, middles, drift))[1]

    def jackknife(self, found: Any) -> tuple[float, float]:
        """Standard deviations of lag and drift: from how they move without each group of blocks."""
        import numpy as np

        alive = np.flatnonzero(self.of.samples.max(axis=1) > 0)
        groups = np.array_split(alive, min(_GROUPS, len(alive)))
        if len(groups) < 2:
            return float("inf"), float("nan")
        moved = []
        for group in groups:
            rest = np.setdiff1d(alive, group)
            moved.append(self.best(self.of.only(rest), self.middles[rest], found[1])[:2])
        spread = np.std(moved, axis=0) * np.sqrt(len(groups) - 1)
        return float(spread[0]), float(spread[1])

    def overlap(self, found: Any) -> float:
        import numpy as np

        samples = correlation(self.of, found[1] * (self.middles - self.middle) / self.step)[1]
        index = int(np.rint(found[0] / self.step)) - int(self.lags[0])
        overlap: float = self.step * samples[index].item()
        return overlap


def _on(clock: Any, times: Any, values: Any, gap: float) -> Grid:
    values, valid = resample(values, times, clock, bounds="fill", max_gap=gap, return_mask=True)
    return Grid(values, valid)


def _peak(scores: Any) -> tuple[float, float]:
    """Where the highest one is, between the indices, and how high: by the parabola of three."""
    import numpy as np

    at = int(np.argmax(scores))
    if not 0 < at < len(scores) - 1:
        return float(at), float(scores[at])
    left, middle, right = (float(s) for s in scores[at - 1 : at + 2])
    bend = left - 2 * middle + right
    if bend >= 0:
        return float(at), middle
    shift = (left - right) / (2 * bend)
    return at + shift, middle - (left - right) * shift / 4
