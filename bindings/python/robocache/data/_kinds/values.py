"""Facts about values that decide on kinds: lengths of quaternions, ranges and jumps of angles.

They are collected piece by piece, so that a recording of any size needs only one pass.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._episodes.channels import PERIODS
from .names import Guess, guesses

NAMED_LENGTH = 1e-2  # tolerance of the length 1 of a quaternion that names suggest
LENGTH = 1e-3  # the same if only values suggest it
PART = 0.999  # of the rows that are not all zero must be within the tolerance
LEAST_ROWS = 20
_ROWS = 4096  # rows per block
_FIRST_ROWS = 2048  # rows of the first block, which rules out most candidates
_MANY = 16  # groups of four channels
_MOST_OFF = 1_000  # rows that may be off unit length in a stream of unknown length
_POSE = 12  # channels of a 3x4 pose
_LEAST_STEP = 0.5  # half of the shortest period, that of angles in turns
_MOST_WIDE = 1 << 14  # more channels than this are not searched for candidates


@dataclass
class Lengths:
    """Statistics of the length of vectors of three or four channels."""

    columns: tuple[int, ...]
    seen: int = 0
    rows: int = 0  # finite, and not all zero
    zero: int = 0
    off: int = 0  # further from 1 than NAMED_LENGTH, and not zero
    off_slightly: int = 0  # further from 1 than LENGTH, and not zero
    worst: tuple[float, int] = (0.0, 0)  # largest distance from 1, and its row
    longest: float = 0.0

    def add(self, values: Any) -> None:
        import numpy as np

        own = values[:, self.columns].astype(np.float64, copy=False)
        length = np.sqrt(np.einsum("ij,ij->i", own, own))
        there = np.isfinite(length)
        zero = length == 0
        apart = np.where(there, np.abs(length - 1), 0)
        at = int(np.argmax(apart))
        if apart[at] > self.worst[0]:
            self.worst = (float(apart[at]), self.seen + at)
        if apart[at] > LENGTH:
            self.zero += int(zero.sum())
            self.off_slightly += int(((apart > LENGTH) & ~zero).sum())
            self.off += int(((apart > NAMED_LENGTH) & ~zero).sum())
        self.rows += int((there & ~zero).sum())
        self.longest = max(self.longest, float(length[there].max(initial=0)))
        self.seen += len(values)

    @property
    def is_unit(self) -> bool:
        return self.rows > 0 and self.off <= (1 - PART) * self.rows


@dataclass
class Range:
    """The range of an angle, and the number of its changes by more than half a turn."""

    low: float = float("inf")
    high: float = float("-inf")
    half: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PERIODS, 0))
    whole: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PERIODS, 0))

    def add_steps(self, steps: Any) -> None:
        """Count the large steps among the steps [n] from sample to sample."""
        import numpy as np

        steps = steps[np.isfinite(steps)]
        for unit, period in PERIODS.items():
            large = steps[steps > period / 2]
            whole = int(((large > 0.75 * period) & (large <= period * (1 + 1e-6))).sum())
            self.whole[unit] += whole
            self.half[unit] += len(large) - whole


class Ranges:
    """Ranges of the columns that may be angles."""

    def __init__(self, columns: Sequence[int]) -> None:
        self.columns = list(columns)
        run = self.columns and self.columns[-1] - self.columns[0] + 1 == len(self.columns)
        # A slice does not copy.
        self.chosen: Any = slice(columns[0], columns[-1] + 1) if run else self.columns
        self.ranges = {column: Range() for column in self.columns}
        self.last: Any = None
        self.low: Any = None
        self.high: Any = None

    def add(self, values: Any, begins: Any) -> None:
        """Add the next samples [n,D]; ``begins`` [n]: where an episode begins, or None."""
        import numpy as np

        own = values[:, self.chosen].astype(np.float64, copy=False)
        with np.errstate(invalid="ignore"):
            low, high = np.minimum.reduce(own, axis=0), np.maximum.reduce(own, axis=0)
        if not (np.isfinite(low).all() and np.isfinite(high).all()):
            own = np.where(np.isfinite(own), own, np.nan)
            low, high = np.fmin.reduce(own, axis=0), np.fmax.reduce(own, axis=0)
        first = own[:1] if self.last is None else self.last
        self.last = own[-1:].copy()
        self.low = low if self.low is None else np.fmin(self.low, low)
        self.high = high if self.high is None else np.fmax(self.high, high)
        with np.errstate(over="ignore"):
            steps = np.abs(np.diff(own, axis=0, prepend=first))
        if begins is not None:
            steps[begins] = 0
        largest = np.fmax.reduce(steps, axis=0)
        for i in np.flatnonzero(largest > _LEAST_STEP).tolist():
            self.ranges[self.columns[i]].add_steps(steps[:, i])

    def found(self) -> dict[int, Range]:
        for i, angles in enumerate(self.ranges.values()):
            if self.low is not None and self.low[i] <= self.high[i]:
                angles.low, angles.high = float(self.low[i]), float(self.high[i])
        return self.ranges


class Facts:
    """Facts about the values of a stream, collected from its pieces."""

    def __init__(
        self,
        name: str,
        names: Sequence[str] | None,
        dtypes: Sequence[str],
        known: Collection[int] = (),
        angles: Collection[int] = (),
        quaternions: Collection[tuple[int, ...]] = (),
        joints: bool = False,
        rows: int | None = None,
    ) -> None:
        """``known``: columns of known kinds; ``angles`` and ``quaternions`` are among them.

        ``rows`` is the total number of rows, if known.
        """
        self.name, self.names, self.dtypes = name, names, tuple(dtypes)
        width = len(self.dtypes)
        own = None if names is None else tuple(names)
        skipped = frozenset(known)
        self.guesses: list[Guess] = [
            guess
            for guess in guesses(name, own, width, joints)
            if skipped.isdisjoint(guess.columns) and self._fits(guess)
        ]
        vectors = [g.columns for g in self.guesses if g.kind in ("quaternion", "rotation_vector")]
        self.lengths = {columns: Lengths(columns) for columns in (*quaternions, *vectors)}
        ranged = {c for g in self.guesses if g.kind in ("angle", "euler") for c in g.columns}
        self._ranges = Ranges(sorted(ranged | set(angles)))
        self.rows = 0
        self.candidates = _Candidates(self.dtypes, skipped, rows)

    def _fits(self, guess: Guess) -> bool:
        """Whether the dtypes fit: integers may be in a quaternion, but as angles they are steps."""
        whole = [not self.dtypes[column].startswith("float") for column in guess.columns]
        return not any(whole) if guess.kind == "angle" else not all(whole)

    def add(self, values: Any, begins: Any = None) -> None:
        """Add the next samples [n,D]; ``begins`` [n]: where an episode begins."""
        if len(values) == 0 or values.shape[1] == 0:
            return
        for begin in range(0, len(values), _ROWS):  # a block fits into the caches
            block = values[begin : begin + _ROWS]
            for lengths in self.lengths.values():
                lengths.add(block)
            if self._ranges.columns:
                own = None if begins is None else begins[begin : begin + _ROWS]
                self._ranges.add(block, own)
        self.candidates.add(values)
        self.rows += len(values)

    @property
    def ranges(self) -> dict[int, Range]:
        """Ranges by column."""
        return self._ranges.found()


class _Candidates:
    """Four neighbouring channels of unit length that no name explains."""

    def __init__(self, dtypes: Sequence[str], known: Collection[int], rows: int | None) -> None:
        import numpy as np

        self.width = len(dtypes)
        usable = [dtype.startswith("float") for dtype in dtypes]
        for column in known:
            usable[column] = False
        self.most_off = _MOST_OFF if rows is None else int((1 - PART) * rows)
        last = self.width - 3 if self.width <= _MOST_WIDE else 0
        # One entry for each possible group of four channels, by its first column.
        self.begins = np.array([i for i in range(last) if all(usable[i : i + 4])], np.int64)
        count = len(self.begins)
        self.off = np.zeros(count, np.int64)
        self.rows = np.zeros(count, np.int64)
        self.plain = np.ones(count, bool)  # all values are -1, 0 or 1
        self.low = np.full((count, 4), np.inf)
        self.high = np.full((count, 4), -np.inf)
        self.poses: dict[tuple[int, int], int] = {}  # rows where a pose around them is invalid

    def add(self, values: Any) -> None:
        begin, rows = 0, _FIRST_ROWS
        while begin < len(values) and len(self.begins):
            self._block(values[begin : begin + rows])
            begin, rows = begin + rows, _ROWS

    def _block(self, values: Any) -> None:
        import numpy as np

        self._drop_large(values)
        if len(self.begins) == 0:
            return
        places = self.begins[:, None] + np.arange(4)
        used = np.unique(places)
        at = np.searchsorted(used, places)
        taken = values[:, used].astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            squares = np.square(taken)
            length = np.sqrt(sum(squares[:, at[:, k]] for k in range(4)))
            there = np.isfinite(length) & (length > 0)
            self.off += ((np.abs(length - 1) > LENGTH) & there).sum(axis=0)
        self.rows += there.sum(axis=0)
        left = self.off <= self.most_off
        at = at[left]
        self._keep(left)
        if len(self.begins) == 0:
            return
        simple = ((taken == -1) | (taken == 0) | (taken == 1)).all(axis=0)
        self.plain &= simple[at].all(axis=1)
        self.low = np.fmin(self.low, np.fmin.reduce(taken, axis=0)[at])
        self.high = np.fmax(self.high, np.fmax.reduce(taken, axis=0)[at])
        for begin in self.begins.tolist():
            for first in self._poses_around(begin):
                key = (begin, first)
                if self.poses.get(key, 0) <= self.most_off:
                    part = values[:, first : first + _POSE]
                    self.poses[key] = self.poses.get(key, 0) + _not_rotations(part)

    def _drop_large(self, values: Any) -> None:
        """Drop candidates with values above 1; this removes most of them quickly."""
        import numpy as np

        if len(self.begins) < _MANY:
            return
        with np.errstate(invalid="ignore"):
            large = (np.abs(values) > 1 + LENGTH).sum(axis=0) > self.most_off
        if large.any():
            self._keep(~large[self.begins[:, None] + np.arange(4)].any(axis=1))

    def _keep(self, left: Any) -> None:
        if not left.all():
            for name in ("begins", "off", "rows", "plain", "low", "high"):
                setattr(self, name, getattr(self, name)[left])

    def _poses_around(self, begin: int) -> range:
        """Columns at which a pose around four channels may begin."""
        return range(max(0, begin - _POSE + 4), min(begin, self.width - _POSE) + 1)

    def found(self, taken: Collection[int]) -> list[tuple[int, int]]:
        """Return the first columns of candidates outside ``taken``, and the rows of each."""
        ranges: dict[int, float] = {}
        rows: dict[int, int] = {}
        for i, begin in enumerate(self.begins.tolist()):
            rows[begin] = count = int(self.rows[i])
            columns = range(begin, begin + 4)
            if count < LEAST_ROWS or self.off[i] > (1 - PART) * count or self.plain[i]:
                continue
            spread = self.high[i] - self.low[i]
            if (spread > 0).sum() < 2 or not set(taken).isdisjoint(columns):
                continue
            if all(
                self.poses.get((begin, first), count) > (1 - PART) * count
                for first in self._poses_around(begin)
            ):
                ranges[begin] = float(spread.sum())
        kept: list[int] = []
        for begin in sorted(ranges, key=lambda begin: (-ranges[begin], begin)):
            if all(abs(begin - other) >= 4 for other in kept):
                kept.append(begin)
        return [(begin, rows[begin]) for begin in sorted(kept)]


def _not_rotations(values: Any) -> int:
    """Return the number of rows [n,12] whose 3x3 part is not a rotation."""
    import numpy as np

    parts = values[:, [0, 1, 2, 4, 5, 6, 8, 9, 10]].astype(np.float64).reshape(-1, 3, 3)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.abs(parts @ parts.transpose(0, 2, 1) - np.eye(3)).max(axis=(1, 2))
    return int((~(apart <= NAMED_LENGTH)).sum())
