"""Facts for the report of each stream, gathered in the same pass as the checks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ... import StatisticsAccumulator, StatisticsResult
from ..._arguments.to_numpy import on_host
from ..._episodes.episodes import Episodes
from .. import checks
from .._align import VALID, align
from .._recording import Recording
from .._source import Piece
from .._time_units import per_second
from .envelope import Envelope, Samples, split_at
from .overview import finite, overview, survey_clock
from .unusual import Unusual, unusual_episodes

_BUCKETS = 256  # least stretches of an envelope, if there are that many samples
_BINS = 60  # of a histogram
_SAMPLES = 700  # of the path of a stream, at least half of them
_ALIGNED = 640  # rows of an alignment that are drawn
_LONGEST = 1e300  # longest interval whose histogram does not overflow


@dataclass
class Intervals:
    """A histogram of the times between samples."""

    counts: Any  # [bins]
    begin: float  # of the first bin, in s or ticks
    end: float
    beyond: int  # longer ones


@dataclass
class StreamFacts:
    """Facts about one stream or track."""

    name: str
    overview: dict[str, Any]  # as returned by `overview`
    names: tuple[str, ...]
    extent: tuple[float, float] | None = None  # s or ticks since the begin of all streams
    gaps: list[tuple[float, float]] = field(default_factory=list)
    intervals: Intervals | None = None
    envelope: tuple[Any, ...] | None = None  # first and last time, low, high of each stretch
    samples: tuple[Any, Any] | None = None  # some times and values, evenly over the stream
    aligned: tuple[Any, Any, Any] | None = None  # times, values and channels of an alignment
    exact: StatisticsResult | None = None
    stored: StatisticsResult | None = None


@dataclass
class Facts:
    """Facts about a recording or a data set."""

    overview: dict[str, Any]
    streams: list[StreamFacts]
    whole: tuple[float, float]  # extent of all streams, in s, ticks, or rows of episodes
    lengths: Any = None  # [E] of episodes
    unusual: list[Unusual] = field(default_factory=list)
    tracks: Any = None  # values [S,D] of tracks by name, for episodes
    source: Any = None  # the recording or the episodes
    alignment: str = ""  # what it was


class _Watch:
    """Collect envelopes and exact means of the streams of a recording, piece by piece."""

    def __init__(self) -> None:
        self.envelopes: dict[str, Envelope] = {}
        self.samples: dict[str, Samples] = {}
        self.accumulators: dict[str, StatisticsAccumulator] = {}

    def __call__(self, piece: Piece) -> None:
        import numpy as np

        if len(piece) == 0 or not piece.names:
            return
        if piece.stream not in self.envelopes:
            self.envelopes[piece.stream] = Envelope(_BUCKETS)
            self.samples[piece.stream] = Samples(_SAMPLES)
            self.accumulators[piece.stream] = StatisticsAccumulator(len(piece.names), ())
        clocks = piece.clocks
        times = next(iter(clocks.values())) if clocks else np.arange(len(piece))
        placed = np.isfinite(times)
        self.envelopes[piece.stream].add(times[placed], piece.values[placed])
        self.samples[piece.stream].add(times[placed], piece.values[placed])
        self.accumulators[piece.stream].update(np.ascontiguousarray(piece.values))


def facts_of(
    source: Any, max_gap: float | None = None, jitter: float = 0.2, unit: str | None = None
) -> Facts:
    """Return the facts about a recording or episodes, in one pass."""
    import numpy as np

    watch = _Watch()
    survey = checks.survey(source, max_gap=max_gap, jitter=jitter, unit=unit, watch=watch)
    overview_data = overview(source, survey, unit)
    with np.errstate(invalid="ignore", over="ignore"):  # times may be infinite
        if isinstance(source, Recording):
            return _of_recording(source, survey, watch, overview_data, max_gap)
        return _of_episodes(source, survey, overview_data, max_gap)


def _of_recording(
    source: Recording,
    survey: Any,
    watch: _Watch,
    overview_data: dict[str, Any],
    max_gap: float | None,
) -> Facts:
    import numpy as np

    ticks = per_second(survey.unit)
    clock = survey_clock(survey)
    origin = overview_data["begin"] or 0
    streams = []
    for name in source.names:
        seen = survey.streams.get(name)
        facts = StreamFacts(name, overview_data["streams"][name], seen.names if seen else ())
        streams.append(facts)
        if seen is None:
            continue
        none: list[Any] = []
        rows = seen.clocks.get(clock or "") or next(iter(seen.clocks.values()), none)
        since = finite((finite(rows[0]) - origin) / ticks) if rows else np.zeros(0)
        if len(since):
            facts.extent = (float(np.min(since)), float(np.max(since)))
            limit = facts.overview["gap_limit"] if max_gap is None else max_gap
            facts.gaps, facts.intervals = _regularity([since], limit)
        if name in watch.envelopes:
            first, last, low, high = watch.envelopes[name].result()
            # The envelope uses the first clock, the extent maybe another: shift by their begins.
            own = finite(next(iter(seen.clocks.values()), [np.zeros(1)])[0])
            base = own.min() if len(own) else 0
            shift = 0.0 if facts.extent is None else facts.extent[0]
            since_first, since_last = ((x - base) / ticks + shift for x in (first, last))
            placed = np.isfinite(since_first) & np.isfinite(since_last)
            kept = tuple(x[placed] for x in (since_first, since_last, low, high))
            facts.envelope = split_at(kept, facts.gaps)
            at, values = watch.samples[name].result()
            facts.samples = (at - base) / ticks + shift, values
            facts.exact = watch.accumulators[name].result()
    ends = [facts.extent for facts in streams if facts.extent is not None]
    whole = (0.0, max([e[1] for e in ends], default=1.0))
    return Facts(overview_data, streams, whole, source=source)


def _of_episodes(
    source: Episodes, survey: Any, overview_data: dict[str, Any], max_gap: Any
) -> Facts:
    import numpy as np

    stored = source.stored_statistics()
    streams = []
    tracks: dict[str, Any] = {}
    longest = 1
    for name, track in source.tracks.items():
        facts = StreamFacts(name, overview_data["streams"][name], survey.streams[name].names or ())
        streams.append(facts)
        longest = max(longest, track.num_rows)
        rows = survey.streams[name].clocks.get("time", [])
        limit = facts.overview["gap_limit"] if max_gap is None else max_gap
        if rows and limit is not None:
            ticks = per_second(survey.unit) if rows[0].dtype.kind == "i" else 1.0
            _, facts.intervals = _regularity([finite(row) / ticks for row in rows], limit)
        if track.values is not None and track.num_rows:
            values = on_host(track.values)
            envelope = Envelope(_BUCKETS)
            for begin in range(0, len(values), 1 << 20):
                part = values[begin : begin + (1 << 20)]
                envelope.add(np.arange(begin, begin + len(part)), part)
            facts.envelope = envelope.result()
            tracks[name] = values
            facts.extent = (0.0, float(track.num_rows - 1))
            facts.exact = survey.statistics.get(name)
            facts.stored = stored.get(name)
    lengths = source.lengths(next(iter(source.tracks)))
    found = unusual_episodes({n: source.tracks[n] for n in tracks})
    whole = (0.0, float(max(longest - 1, 1)))
    return Facts(overview_data, streams, whole, lengths, found, tracks, source)


def add_alignment(facts: Facts, source: Any, rate: float, **options: Any) -> None:
    """Add the values of the streams of a recording after an alignment."""
    import numpy as np

    if not isinstance(source, Recording):
        raise ValueError("rate: works on recordings; episodes are aligned already, or not timed")
    aligned = align(source, rate, clock=facts.overview["clock"], **options)
    facts.alignment = f"aligned at {rate:g} Hz"
    origin = facts.overview["begin"] or 0
    ticks = per_second(source.unit or options.get("unit"))
    valid = aligned[VALID] if VALID in aligned else None
    for stream in facts.streams:
        if stream.name not in aligned or aligned[stream.name].times is None:
            continue
        track = aligned[stream.name]
        times = on_host(track.times)
        times = times.view("int64") if times.dtype.kind in "mM" else times
        # align returns float times of a known unit in seconds
        since = times - origin / ticks if times.dtype.kind == "f" else (times - origin) / ticks
        values = on_host(track.values).astype(np.float64)
        if valid is not None and valid.names is not None and stream.name in valid.names:
            there = on_host(valid.values)[:, valid.names.index(stream.name)].astype(bool)
            values[~there] = np.nan
        step = max(1, -(-len(values) // _ALIGNED))
        stream.aligned = since[::step], values[::step], list(track.names or ())


def _regularity(rows: list[Any], limit: float) -> tuple[list[tuple[float, float]], Any]:
    """Return gaps as (begin, end), and the histogram of intervals."""
    import numpy as np

    gaps: list[tuple[float, float]] = []
    for times in rows:
        at = np.flatnonzero(np.diff(times) > limit)
        gaps += list(zip(times[at].tolist(), times[at + 1].tolist()))
    steps = np.concatenate([np.diff(times) for times in rows] or [np.zeros(0)])
    steps = steps[np.abs(steps) < _LONGEST]
    if len(steps) == 0:
        return gaps, None
    end = float(np.percentile(steps, 99.5))
    begin = float(steps.min())
    if limit == limit:
        end = max(end, min(limit * 1.1, float(steps.max())))
    if end - begin < 1e-6 * abs(end) + 1e-15:  # all the same
        begin, end = begin - abs(begin) * 0.05 - 1e-12, end + abs(end) * 0.05 + 1e-12
    counts, _ = np.histogram(steps, _BINS, (begin, end))
    return gaps, Intervals(counts, begin, end, int((steps > end).sum()))
