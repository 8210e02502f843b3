"""Checks of a recording or a data set: findings as data, in one pass through its files.

>>> import numpy as np
>>> from robocache import data
>>> times = np.delete(np.arange(100) * 10_000_000, range(40, 52))
>>> values = np.ones((88, 2), "f4")
>>> arm = data.RecordedStream("arm", "joints", ("a", "b"), values, {"log": times}, "ns")
>>> for finding in data.checks.check(data.Recording.from_streams([arm])):
...     print(finding)
warning: arm log times: 1 gap of more than 25 ms; the longest is 130 ms at sample 40
warning: arm: constant: none of its 2 channels ever changes
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Union

from .. import Report, Stream, report
from .._episodes.episodes import Episodes
from .._printable import kind_of
from .._public import publish
from ._checks.statistics import check_statistics, check_stored
from ._checks.times import (
    Limits,
    check_clocks,
    check_rate,
    check_spans,
    check_times,
)
from ._checks.unread import check_unread
from ._checks.values import Channels, quaternions_of
from ._findings import Finding, Findings, sorted_findings
from ._recording import Recording
from ._source import Piece, header_is_good
from ._time_units import per_second, unit_of

if TYPE_CHECKING:
    from .. import StatisticsResult

    Data = Union[Recording, Episodes]

__all__ = [
    "Channels",
    "Finding",
    "Findings",
    "Limits",
    "StreamSurvey",
    "Survey",
    "check",
    "check_clocks",
    "check_rate",
    "check_spans",
    "check_statistics",
    "check_stored",
    "check_times",
    "quaternions_of",
    "survey",
]


_AT_ONCE = 1 << 10  # samples per block,
_LARGE = 1 << 20  # or bytes
_INDICES = ("task_index",)  # indices, which may well be constant


@dataclass
class StreamSurvey:
    """Facts about a stream or a track from one pass."""

    name: str
    names: tuple[str, ...] | None  #: names of the channels
    channels: Channels  #: counts, ranges, NaN; its arrays are None before any sample
    clocks: dict[str, list[Any]] = field(default_factory=dict)  #: by clock, times per episode
    _waiting: list[Any] = field(default_factory=list, repr=False)  # values of small pieces

    def add(self, values: Any) -> None:
        """Add samples [n,D]. Small pieces are joined first, since each call has a fixed cost."""
        if self._waiting and self._waiting[0].dtype != values.dtype:
            self.flush()
        self._waiting.append(values)
        rows = sum(map(len, self._waiting))
        if rows >= _AT_ONCE or sum(part.nbytes for part in self._waiting) >= _LARGE:
            self.flush()

    def flush(self) -> None:
        """Process the samples that were held back."""
        import numpy as np

        waiting, self._waiting = self._waiting, []
        if waiting:
            self.channels.add(waiting[0] if len(waiting) == 1 else np.concatenate(waiting))

    @property
    def samples(self) -> int:
        """The number of samples."""
        return max([self.channels.rows, *(sum(map(len, r)) for r in self.clocks.values())])


@dataclass
class Survey:
    """Facts about a recording or a data set from one pass."""

    streams: dict[str, StreamSurvey]
    findings: Findings
    unit: str | None  #: unit of integer times
    statistics: dict[str, StatisticsResult] = field(default_factory=dict)  #: exact, for episodes

    def report(self, clock: str | None = None, unit: str | None = None) -> Report:
        """Run :func:`robocache.report` on the streams with times; ``unit``: if none is known."""
        import numpy as np

        streams_with_times = {}
        for name, stream in self.streams.items():
            rows = stream.clocks.get(clock or "") or next(iter(stream.clocks.values()), [])
            if sum(map(len, rows)) == 0:
                continue
            times = rows[0] if len(rows) == 1 else np.concatenate(rows)
            if self.unit is not None and times.dtype.kind == "i":
                times = times.view(f"timedelta64[{self.unit}]")
            offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
            own: Any = {} if len(rows) == 1 else {"batch_offsets": offsets.astype(np.int64)}
            streams_with_times[name] = Stream(np.zeros((len(times), 0), np.float32), times, **own)
        return report(streams_with_times, unit=self.unit or unit)


def check(
    data: Data, *, max_gap: float | None = None, jitter: float = 0.2, unit: str | None = None
) -> Findings:
    """Return all findings, errors first.

    Parameters
    ----------
    data
        A :class:`~robocache.data.Recording` or :class:`robocache.Episodes`. Recordings that are not
        in memory are read piece by piece; only their times are kept.
    max_gap
        In seconds: longer intervals are gaps; None: 2.5 median intervals.
    jitter
        Largest standard deviation of intervals, as a part of the median one, without a finding.
    unit
        Unit of integer times if the data do not state it, such as "us".

    Returns
    -------
    Findings
        A list of :class:`Finding`; ``print`` shows one per line, and notebooks a table.
    """
    return survey(data, max_gap=max_gap, jitter=jitter, unit=unit).findings


def survey(
    data: Data,
    *,
    max_gap: float | None = None,
    jitter: float = 0.2,
    unit: str | None = None,
    watch: Callable[[Piece], Any] | None = None,
) -> Survey:
    """Return the findings of :func:`check` with the times and ranges of each stream.

    ``watch`` is called with each piece of a recording.
    """
    import numpy as np

    limits = Limits(max_gap, jitter)
    with np.errstate(invalid="ignore", over="ignore"):  # times and values may be infinite
        if isinstance(data, Recording):
            return _of_recording(data, limits, unit, watch)
        if isinstance(data, Episodes):
            return _of_episodes(data, limits, unit)
    raise TypeError(f"data: is {kind_of(data)}, expected a Recording or Episodes")


def _of_recording(
    recording: Recording, limits: Limits, unit: str | None, watch: Callable[[Piece], Any] | None
) -> Survey:
    import numpy as np

    streams: dict[str, StreamSurvey] = {}
    clocks: dict[str, dict[str, list[Any]]] = {}
    for piece in recording.pieces():
        if watch is not None:
            watch(piece)
        stream = streams.get(piece.stream)
        if stream is None:
            info = recording.info(piece.stream)
            channels = Channels(
                piece.stream,
                piece.names,
                len(piece.names),
                dtypes=piece.dtypes or (piece.values.dtype.name,) * len(piece.names),
                type=info.kind,
                said=piece.said,
                declared=recording.declared(piece.stream),
                rows=info.count,
                kinds=recording.known_kinds(piece.stream),
            )
            stream = streams[piece.stream] = StreamSurvey(piece.stream, piece.names, channels)
            clocks[piece.stream] = {clock: [] for clock in piece.clocks}
        stream.add(piece.values)
        for clock, times in piece.clocks.items():
            clocks[piece.stream].setdefault(clock, []).append(times)
    for stream in streams.values():
        stream.flush()
    own = recording.unit or unit
    ticks = None if own is None else per_second(own)
    for name in list(clocks):
        rows_of = clocks.pop(name)  # frees one stream after the other: times may be large
        streams[name].clocks = {clock: [np.concatenate(rows)] for clock, rows in rows_of.items()}
    findings = [
        Finding("error", "damage", "", f"{problem.path} {problem.place}".strip(), problem.text)
        for problem in recording.problems
    ]
    findings += recording.findings
    findings += check_unread(recording, streams)
    spans = {}
    unread = {each.place for each in recording.unread if each.messages}
    for name in recording.names:
        if name not in streams or streams[name].samples == 0:
            if name in unread:
                continue
            findings.append(Finding("note", "empty", name, "", "has no samples"))
            continue
        stream = streams[name]
        if recording.info(name).static:  # a single message, constant from then on
            continue
        both = {"header", "log"} <= set(stream.clocks)
        good = both and header_is_good(stream.clocks["header"][0], stream.clocks["log"][0])
        for clock, rows in stream.clocks.items():
            other = both and clock == ("log" if good else "header")  # it has the same gaps
            findings += check_times(name, rows, ticks, limits, clock, only_order=other)
        if both:
            findings += check_clocks(name, stream.clocks["header"][0], stream.clocks["log"][0])
        first = next(iter(stream.clocks.values()), None)
        if first is not None and len(first[0]):
            spans[name] = (
                float(first[0].min()) / (ticks or 1.0),
                float(first[0].max()) / (ticks or 1.0),
            )
        findings += stream.channels.findings()
    if own is not None:
        findings += check_spans(spans)
    return Survey(streams, sorted_findings(findings), own)


def _of_episodes(episodes: Episodes, limits: Limits, unit: str | None) -> Survey:
    import numpy as np

    from .._arguments.to_numpy import on_host
    from ._episode_methods import exact_of
    from ._kinds.tracks import begins_of, declared_in, dtypes_of, known_kinds

    streams: dict[str, StreamSurvey] = {}
    findings: list[Finding] = []
    statistics: dict[str, StatisticsResult] = {}
    stored = episodes.stored_statistics()
    seen: list[tuple[str, Any]] = []  # tracks with the same times are checked once
    unit = episodes.unit or unit
    for name, track in episodes.tracks.items():
        width = track.num_channels
        channels = Channels(
            name,
            track.names,
            width,
            dtypes=None if track.values is None else dtypes_of(track),
            declared=declared_in(track),
            rows=track.num_rows,
            kinds=known_kinds(track, name),
        )
        stream = streams[name] = StreamSurvey(name, track.names, channels)
        if track.values is not None:
            channels.add(on_host(track.values), begins_of(track))
            if name not in _INDICES:
                findings += channels.findings()
            statistics[name] = exact_of(track)
            findings += check_stored(episodes, name, stored.get(name), statistics[name])
        if track.times is not None:
            times, cuts = on_host(track.times), on_host(track.episode_offsets)
            stream.clocks["time"] = [times[b:e] for b, e in zip(cuts[:-1], cuts[1:])]
            if any(np.array_equal(times, other) for _, other in seen):
                continue
            seen.append((name, times))
            known = unit_of(track) or unit
            ticks = None if known is None else per_second(known)
            findings += check_times(name, stream.clocks["time"], ticks, limits)
            if episodes.rate is not None and times.dtype.kind == "f":
                findings += check_rate(name, stream.clocks["time"], episodes.rate)
    findings += episodes._checked(stored)
    for e in np.flatnonzero(episodes.lengths(next(iter(episodes.tracks))) == 0).tolist():
        findings.append(Finding("error", "empty", "", f"episode {e}", "has no rows"))
    problems = [
        Finding("error", "damage", "", f"{problem.path} {problem.place}".strip(), problem.text)
        for problem in episodes.problems
    ]
    return Survey(streams, sorted_findings(problems + findings), unit, statistics)


publish(__name__)


def __dir__() -> list[str]:
    return __all__
