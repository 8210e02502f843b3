"""Offset and drift between the clocks of two sensors that saw the same motion."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union

from ... import Track, resample
from ..._printable import printable
from .._recording import RecordedStream
from .._source import header_is_good
from .._time_units import per_second, unit_of
from .lagged_correlation import Grid, Lagged, blocks_of, correlation, joined, lagged
from .motion import Motion, kind_of, motion_of

_COARSEST, _FINEST = 0.005, 0.00025  # s: steps of the common clock
_MOST_STEPS = 1 << 21
_BLOCKS = (8, 48)  # least and most blocks of a recording, unless it is very short
_SHORTEST = 0.5  # s per block
_GROUPS = 16  # groups of blocks for the jackknife
_NEAR = 16  # steps around a peak


class Search:
    """Search for lag and drift: a block with its middle at t lags by lag + drift * t."""

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
        self.sums: Lagged = joined(parts)
        self.lags = self.sums.lags
        self.middles = np.array(middles)
        self.middle = float(self.middles.min() + self.middles.max()) / 2
        self.reach = float(self.middles.max() - self.middles.min()) / 2
        self.drifts = self._drifts(max_drift)

    def _drifts(self, most: float) -> Any:
        """Return the drifts to try first, so close that no peak lies between two of them."""
        import numpy as np

        if most == 0 or len(self.middles) < _BLOCKS[0]:
            return np.zeros(1)
        count = int(np.ceil(most * self.reach / max(4 * self.step, 0.02)))
        return np.linspace(-most, most, 2 * max(count, 1) + 1)

    def best(self, sums: Lagged, middles: Any, around: float | None = None) -> Any:
        """Return the lag in s, the drift, the score there, and all scores at that drift."""
        import numpy as np

        drift = 0.0 if around is None else around
        if len(self.drifts) > 1:
            if around is None:
                tried = [self._height(sums, middles, d) for d in self.drifts]
                drift = float(self.drifts[int(np.argmax(tried))])
            drift = self._refined(sums, middles, drift)
        scores = self._scores(sums, middles, drift)
        at, score = _peak(scores)
        return float(at + sums.lags[0]) * self.step, drift, score, scores

    def _refined(self, sums: Lagged, middles: Any, drift: float) -> float:
        """Refine a drift by parabolas through three drifts, over lags around the peak."""
        import numpy as np

        width = float(self.drifts[1] - self.drifts[0])
        at, _ = _peak(self._scores(sums, middles, drift))
        room = _NEAR + int(np.ceil(2 * width * self.reach / self.step))
        near = sums.near(int(at) - room, int(at) + room + 1)
        for _ in range(4):
            heights = [self._height(near, middles, drift + width * k) for k in (-1, 0, 1)]
            drift += width * (_peak(np.array(heights))[0] - 1)
            width /= 3
        return drift

    def _scores(self, sums: Lagged, middles: Any, drift: float) -> Any:
        return correlation(sums, drift * (middles - self.middle) / self.step)[0]

    def _height(self, sums: Lagged, middles: Any, drift: float) -> float:
        return _peak(self._scores(sums, middles, drift))[1]

    def jackknife(self, found: Any) -> tuple[float, float]:
        """Return standard deviations of lag and drift, from fits without each group of blocks."""
        import numpy as np

        alive = np.flatnonzero(self.sums.samples.max(axis=1) > 0)
        groups = np.array_split(alive, min(_GROUPS, len(alive)))
        if len(groups) < 2:
            return float("inf"), float("nan")
        moved = []
        for group in groups:
            rest = np.setdiff1d(alive, group)
            moved.append(self.best(self.sums.only(rest), self.middles[rest], found[1])[:2])
        spread = np.std(moved, axis=0) * np.sqrt(len(groups) - 1)
        return float(spread[0]), float(spread[1])

    def overlap(self, found: Any) -> float:
        import numpy as np

        samples = correlation(self.sums, found[1] * (self.middles - self.middle) / self.step)[1]
        index = int(np.rint(found[0] / self.step)) - int(self.lags[0])
        overlap: float = self.step * samples[index].item()
        return overlap


def _on(clock: Any, times: Any, values: Any, gap: float) -> Grid:
    values, valid = resample(values, times, clock, outside="fill", max_gap=gap, return_valid=True)
    return Grid(values, valid)


def _peak(scores: Any) -> tuple[float, float]:
    """Return the place of the highest score, between indices, and its height, by a parabola."""
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


if TYPE_CHECKING:
    Sensor = Union[RecordedStream, Track, tuple[Any, Any]]

_FLOOR = 0.05  # of a step: error of the interpolation
_MOST_CHANNELS = 16  # of motions in different axes


@dataclass(frozen=True)
class SyncResult:
    """The difference between the clocks of ``a`` and ``b``: the result of :func:`sync`.

    A sample that ``b`` stamped t was taken at ``t + offset + drift * (t - reference)`` on the clock
    of ``a``; :meth:`corrected` computes this.
    """

    offset: float  #: s to add to the times of ``b``, at ``reference``
    drift: float  #: s per second; 0.0 if no drift was searched for
    uncertainty: float  #: s, one standard deviation of ``offset``
    drift_uncertainty: float  #: one standard deviation of ``drift``; NaN if not known
    correlation: float  #: of both motions at this offset, from 0 to 1
    overlap: float  #: s in which both have samples
    reference: float  #: the middle of the overlap, in the unit of ``b``'s times
    unit: str | None  #: unit of ``b``'s times if they are integers; None: seconds
    lags: Any = field(repr=False, compare=False)  #: s [L]: the offsets that were tried
    scores: Any = field(repr=False, compare=False)  #: [L]: the correlation at each of them

    def corrected(self, times: Any) -> Any:
        """Convert times of ``b`` to the clock of ``a``, in the same unit and dtype."""
        import numpy as np

        original = np.asarray(times)
        ticks = per_second(self.unit)
        since = original.astype(np.int64 if original.dtype.kind in "iumM" else np.float64)
        shift = self.offset * ticks + self.drift * (since - self.reference)
        if original.dtype.kind in "iumM":
            return (since + np.rint(shift).astype(np.int64)).astype(original.dtype)
        return (since + shift).astype(original.dtype)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, without the curve of scores."""
        fields_by_name = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {
            name: value for name, value in fields_by_name.items() if name not in ("lags", "scores")
        }

    def __str__(self) -> str:
        text = f"offset {1e3 * self.offset:.3f} ms +- {1e3 * self.uncertainty:.3f} ms"
        if self.drift_uncertainty == self.drift_uncertainty:
            text += f", drift {1e6 * self.drift:.1f} +- {1e6 * self.drift_uncertainty:.1f} ppm"
        return f"{text}, correlation {self.correlation:.3f} over {self.overlap:.1f} s"


def sync(
    a: Sensor,
    b: Sensor,
    *,
    kind_a: str = "auto",
    kind_b: str = "auto",
    match: str = "auto",
    max_offset: float = 1.0,
    max_drift: float = 0.0,
    clock: str | None = None,
    unit: str | None = None,
) -> SyncResult:
    """Find how much two clocks differ, from the same motion seen by two sensors.

    Both motions are resampled to one even clock and correlated at all offsets, in blocks of the
    recording; gaps are ignored. The peak is interpolated between the steps of the clock. The
    uncertainty comes from how much the peak moves if blocks are skipped (the jackknife); it is
    large if the two have little motion in common.

    Parameters
    ----------
    a, b
        :class:`RecordedStream`, :class:`robocache.Track` (each episode is a separate recording,
        for example joint states and the actions that commanded them), or a tuple of times [n] and
        values [n,D]. Times are integers of a known unit, datetime64, timedelta64, or seconds.
    kind_a, kind_b
        What the channels measure. "values": rates, as of a gyroscope. "change": values
        whose change per second is used. "rotation_xyzw", "rotation_wxyz": a quaternion; its angular
        velocity in its own frame is used. "auto": the channels of an angular velocity, if their
        names say so, else the first quaternion, else the change of all channels.
    match
        "each": channel c of ``a`` moves as channel c of ``b``, up to scale and sign. "any": up to
        any linear map, for axes that are rotated against each other. "auto": "each" if both have
        the same channel names or a single channel, else "any".
    max_offset
        Largest offset to search, in seconds.
    max_drift
        Largest drift to search, in seconds per second; 1e-3 is far more than quartz clocks have.
        0: no drift.
    clock
        Clock of recorded streams: "log", "header", "time"; None: header stamps if both have good
        ones, else as in :meth:`RecordedStream.times`.
    unit
        Unit of integer times if the data do not state it: "ns", "us", "ms".

    Returns
    -------
    SyncResult

    Raises
    ------
    ValueError
        The two have no time in common, do not move, do not match, or the best offset is beyond
        ``max_offset``.

    Examples
    --------
    >>> import numpy as np
    >>> from robocache import data
    >>> swing = lambda t: np.cumsum(np.sin(np.outer(t, [2.0, 3.1]) + np.sin(0.7 * t)[:, None]), 0)
    >>> t = np.arange(0, 30, 0.01)
    >>> result = data.sync((t, swing(t)), (t[::3] - 0.0123, swing(t)[::3]))
    >>> abs(result.offset - 0.0123) < 1e-4
    True
    """
    import numpy as np

    if not max_offset > 0:
        raise ValueError(f"max_offset: is {max_offset}, expected more than 0 (in seconds)")
    if not max_drift >= 0:
        raise ValueError(f"max_drift: is {max_drift}, expected 0 or more")
    if clock is None and _have_headers(a) and _have_headers(b):
        clock = "header"
    sensors = [
        _sensor(source, kind, name, clock, unit)
        for source, kind, name in ((a, kind_a, "a"), (b, kind_b, "b"))
    ]
    rows_a, rows_b = (sensor.rows for sensor in sensors)
    if len(rows_a) != len(rows_b):
        raise ValueError(f"b: has {len(rows_b)} episodes, but a has {len(rows_a)}")
    origins = [min(x[0][0], y[0][0]) for x, y in _filled(rows_a, rows_b)]
    if not origins:
        raise ValueError("a, b: have no samples")
    origin = float(min(origins))
    moving = [
        motion_of([(times - origin, values) for times, values in sensor.rows], sensor.kind, name)
        for sensor, name in zip(sensors, "ab")
    ]
    each = _is_each(match, *sensors)
    first, second = (_alive(motion, name) for motion, name in zip(moving, "ab"))
    if each:
        both = [i for i in first if i in set(second)]
        if not both:
            raise ValueError(
                "a, b: no channel changes in both recordings; select channels that move, or pass "
                "match='any' if the axes of the sensors differ"
            )
        first = second = both
    elif len(first) * len(second) > _MOST_CHANNELS**2:
        raise ValueError(
            f"match: is 'any' for {len(first)} by {len(second)} channels, expected at most "
            f"{_MOST_CHANNELS} each; select fewer"
        )
    search = Search(_only(moving[0], first), _only(moving[1], second), each, max_offset, max_drift)
    found = search.best(search.sums, search.middles)
    lag, drift, score, scores = found
    if abs(lag) > max_offset:
        raise ValueError(
            f"max_offset: is {max_offset:g} s, but the best match is beyond it; raise it, or check "
            "that both saw the same motion"
        )
    spread, drift_spread = search.jackknife(found)
    drifts = len(search.drifts) > 1
    # a's time of a sample that b stamped t is t - lag(t)
    return SyncResult(
        offset=-lag,
        drift=-drift,
        uncertainty=float(np.hypot(spread, _FLOOR * search.step)),
        drift_uncertainty=drift_spread if drifts else float("nan"),
        correlation=float(np.sqrt(score)),
        overlap=search.overlap(found),
        reference=(search.middle + lag + origin) * per_second(sensors[1].unit),
        unit=sensors[1].unit,
        lags=-search.lags[::-1] * search.step,
        scores=np.sqrt(scores)[::-1],
    )


# ---- arguments ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Sensor:
    rows: list[tuple[Any, Any]]  # seconds, values
    names: tuple[str, ...] | None
    kind: str
    unit: str | None


def _sensor(source: Any, kind: str, name: str, clock: str | None, unit: str | None) -> _Sensor:
    import numpy as np

    names: Any = None
    cuts = None
    label = ""
    if isinstance(source, RecordedStream):
        times, values, names = source.times(clock), source.values, source.names
        label = source.name
        unit = source.unit or unit
    elif isinstance(source, Track):
        from ..._arguments.to_numpy import on_host

        times, values, names = source.times, source.values, source.names
        if times is None or values is None:
            raise ValueError(f"{printable(name)}: has no times or no values")
        times, values = on_host(times), on_host(values)
        cuts = on_host(source.episode_offsets)[1:-1]
        unit = unit_of(source) or unit
    else:
        times, values = (np.asarray(array) for array in source)
    if times is None or times.shape != values.shape[:1] or values.ndim != 2:
        raise ValueError(f"{printable(name)}: expected times [n] and values [n,D]")
    if times.dtype.kind in "mM":
        unit = np.datetime_data(times.dtype)[0]
        times = times.view(np.int64)
    if times.dtype.kind == "f":
        unit = None
    elif unit is None:
        raise ValueError(
            f"{printable(name)}: its times are integers; pass their unit, such as unit='us'"
        )
    if kind == "auto":
        kind, chosen = kind_of(label, names, _quaternions_of(source, name))
        if chosen is not None:
            values = values[:, chosen]
            names = None if names is None else tuple(names[i] for i in chosen)
    seconds = _seconds(times, per_second(unit))
    rows = [(seconds, values)]
    if cuts is not None:
        rows = list(zip(np.split(seconds, cuts), np.split(values, cuts)))
    return _Sensor(rows, names, kind, unit)


def _quaternions_of(source: Any, name: str) -> list[tuple[int, ...]]:
    """Return the columns x y z w of each quaternion."""
    if isinstance(source, RecordedStream):
        kinds = source.kinds
    elif isinstance(source, Track):
        from .._kinds.tracks import kinds_of_track

        kinds = kinds_of_track(source, source.__dict__.get("_label", name))
    else:
        return []
    return [group.columns for group in kinds.groups if group.kind == "quaternion"]


def _have_headers(source: Any) -> bool:
    if not isinstance(source, RecordedStream):
        return False
    return header_is_good(source.header_times, source.log_times)


def _seconds(times: Any, ticks: float) -> Any:
    """Return times in seconds as float64; integers are scaled from the first, to keep digits."""
    import numpy as np

    if times.dtype.kind == "f" or len(times) == 0:
        return times.astype(np.float64)
    return (times - times[0]) / ticks + float(times[0]) / ticks


def _filled(a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
    return [(x, y) for x, y in zip(a, b) if len(x[0]) and len(y[0])]


def _is_each(match: str, a: _Sensor, b: _Sensor) -> bool:
    if match not in ("auto", "each", "any"):
        raise ValueError(f"match: is {match!r}, expected 'auto', 'each' or 'any'")
    widths = [sensor.rows[0][1].shape[1] for sensor in (a, b)]
    turning = [sensor.kind.startswith("rotation") for sensor in (a, b)]
    if match == "auto":
        return widths == [1, 1] or (a.names == b.names and a.names is not None and not any(turning))
    if match == "each":
        shown = [3 if turns else width for turns, width in zip(turning, widths)]
        if shown[0] != shown[1]:
            raise ValueError(
                f"match: is 'each', but a has {shown[0]} channels and b has {shown[1]}"
            )
    return match == "each"


def _alive(motion: Motion, name: str) -> list[int]:
    """Return the channels that change."""
    import numpy as np

    every = np.concatenate(motion.values)
    alive: list[int] = np.flatnonzero(np.ptp(every, axis=0) > 0).tolist() if len(every) else []
    if not alive:
        raise ValueError(f"{printable(name)}: does not move: none of its channels ever changes")
    return alive


def _only(motion: Motion, channels: list[int]) -> Motion:
    values = tuple(values[:, channels] for values in motion.values)
    return dataclasses.replace(motion, values=values)
