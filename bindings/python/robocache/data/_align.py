"""Streams of different rates onto one clock: recordings into an episode, episodes into others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from .. import Stream, Track, clock
from .._printable import printable
from ._episode_tools import host_of
from ._episodes import About, Episodes
from ._errors import LeftOut
from ._fusing import Rules, fused
from ._recording import RecordedStream, Recording, clock_of
from ._units import in_seconds, per_second, unit_of

if TYPE_CHECKING:
    Data = Union[Recording, Episodes]

_AT_ONCE = 256  # episodes
_MOST_ROWS = 10_000_000  # of one recording or episode, or
_MOST_A_SAMPLE = 100  # as many rows for each sample: more are those of a wrong time
VALID = "valid"


def align(
    given: Data,
    rate: Any,
    *,
    methods: Mapping[str, Any] | None = None,
    max_gap: float | None = None,
    span: str = "intersection",
    clock: str | None = None,
    unit: str | None = None,
    tasks: Sequence[Any] | None = None,
    backend: Any = None,
) -> Episodes:
    """All streams on one clock: one track a stream, all with the same times.

    Rates are brought together by :func:`robocache.fuse`: floats by linear interpolation,
    quaternions (four channels x y z w of one path) by slerp, integers and bool by what came before;
    these keep their dtype, and are 0 where they are not valid.

    Parameters
    ----------
    given
        A :class:`Recording`, which becomes one episode, or :class:`Episodes` with times.
    rate
        Times a second; or, of a recording, the times themselves, in the unit of its own.
    methods
        By name of a stream another method, or a list of groups, as :func:`robocache.resample`
        takes them.
    max_gap
        In seconds: within longer gaps values are NaN and not valid. With it, or where ``span`` is
        "union", the track "valid" tells for each stream which rows are.
    span
        "intersection": from where the last stream begins to where the first one ends; "union".
    clock
        "header" or "log"; None: as :meth:`Recording.clock` tells. A stream without header stamps
        keeps its log times.
    unit
        Of times of a recording that do not tell it, and of integer times of episodes: "ns", "us",
        "ms", "s". Floats of a known unit come out in seconds.
    tasks
        What was done in the episode: a list of one.
    backend
        As for :func:`robocache.fuse`.

    Returns
    -------
    Episodes
        Streams without samples, or without channels, are in its ``left_out``.

    Raises
    ------
    ValueError
        Streams have no times, or none in common, or times go back.
    """
    rules = Rules(dict(methods or {}), max_gap, span, backend)
    if isinstance(given, Recording):
        return _recording(given, rate, clock, given.unit or unit, tasks, rules)
    return _episodes(given, rate, given.unit or unit, rules)


def _recording(
    given: Recording, rate: Any, clock_name: str | None, unit: str | None, tasks: Any, rules: Rules
) -> Episodes:
    import numpy as np

    clock_name = given.clock() if clock_name is None else clock_name
    streams: dict[str, Stream[Any]] = {}
    left_out = []
    for name, stream in given.streams.items():
        if len(stream) == 0 or not stream.names:
            left_out.append(LeftOut(name, "no samples" if len(stream) == 0 else "no channels"))
            continue
        times = _times_of(stream, clock_name, unit)
        streams[name] = rules.stream(name, stream.values, times, stream.names, stream.dtypes)
    rules.require_known(streams)
    if not streams:
        raise ValueError("recording: has no stream with samples and channels")
    queries = _queries(rate, streams, unit, rules.span)
    parts, valid = fused(streams, queries, rules.backend, {})
    offsets = np.array([0, len(queries)], np.int64)
    tracks = {
        name: Track(values, offsets, times=queries, names=given[name].names)
        for name, values in parts.items()
    }
    if rules.may_miss:
        tracks[VALID] = Track(valid, offsets, times=queries, names=list(streams))
    own_rate = float(rate) if np.ndim(rate) == 0 else None
    unit = "s" if unit is not None and queries.dtype.kind == "f" else unit
    about = About(f"aligned, of {given.format}", unit, own_rate, left_out=tuple(left_out))
    return Episodes.made(tracks, tasks=tasks, source=given.path, about=about)


def _times_of(stream: RecordedStream, clock_name: str, unit: str | None) -> Any:
    """By its clock, with their unit where that is known; floats of it in seconds."""
    own = clock_of(stream, clock_name)
    times = stream.times(own)
    if (times[1:] < times[:-1]).any():
        raise ValueError(
            f"{printable(stream.name)}: its {own} times go back; take another clock=, or sort it"
        )
    return _with_unit(in_seconds(times, unit), unit)


def _queries(rate: Any, streams: Mapping[str, Stream[Any]], unit: str | None, span: Any) -> Any:
    """The clock of all streams: at a rate, or times that were given."""
    import numpy as np

    if np.ndim(rate) == 0:
        many = {name: s for name, s in streams.items() if s.values.shape[0] > 1} or streams
        return _even(many, rate, span)
    times = np.asarray(rate)
    if unit is not None and all(host_of(s.times).dtype.kind == "f" for s in streams.values()):
        times = times.astype(np.float64)
    return _with_unit(in_seconds(times, unit), unit)


def _episodes(given: Episodes, rate: Any, unit: str | None, rules: Rules) -> Episodes:
    import numpy as np

    timed = {name: t for name, t in given.tracks.items() if t.times is not None}
    missing = [name for name in given.tracks if name not in timed]
    if missing:
        raise ValueError(
            f"tracks: {missing[0]} has no times; open the data set with rate=, frames a second"
        )
    with_values = {name: t for name, t in timed.items() if t.values is not None}
    if not with_values:
        raise ValueError("episodes: have no track with values")
    rules.require_known(with_values)
    if np.ndim(rate) != 0:
        raise ValueError("rate: is an array, expected a number: each episode has its own times")
    rows = [_clock_of(e, timed, float(rate), unit, rules.span) for e in range(len(given))]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    pieces: dict[str, list[Any]] = {name: [] for name in with_values}
    valid = []
    for begin in range(0, len(rows), _AT_ONCE):
        some = slice(begin, min(begin + _AT_ONCE, len(rows)))
        parts, mask = _block(with_values, some, rows[some], rules)
        valid.append(mask)
        for name, values in parts.items():
            pieces[name].append(values)
    times = np.concatenate(rows) if rows else np.zeros(0)
    tracks = {}
    for name, track in timed.items():
        if track.values is None:
            tracks[name] = Track(None, offsets, times=times, files=track.files)
        else:
            values = np.concatenate(pieces[name])
            tracks[name] = Track(values, offsets, times=times, names=track.names)
    if rules.may_miss:
        tracks[VALID] = Track(np.concatenate(valid), offsets, times=times, names=list(with_values))
    about = About(f"aligned, of {given.format}", given.unit, float(rate), left_out=given.left_out)
    return Episodes.made(tracks, tasks=given.tasks, source=given.source, about=about)


def _clock_of(
    episode: int, tracks: Mapping[str, Track], rate: float, unit: str | None, span: str
) -> Any:
    """The times of one episode; none where a track has no rows in it."""
    import numpy as np

    streams = {}
    for name, track in tracks.items():
        cuts = host_of(track.episode_offsets)
        times = _with_unit(host_of(track.times), unit_of(track) or unit)
        times = times[cuts[episode] : cuts[episode + 1]]
        if len(times) == 0:
            return times
        streams[name] = Stream(np.zeros((len(times), 1), np.float32), times)
    return _even(streams, rate, span, f"episode {episode}, ")


def _even(streams: Mapping[str, Stream[Any]], rate: Any, span: Any, where: str = "") -> Any:
    """Even times over streams; an error where they are far more than there are samples."""
    import numpy as np

    ends = []
    for name, stream in streams.items():
        times = host_of(stream.times)
        good = np.isfinite(times)
        if not good.all():
            at = int(np.argmin(good))
            raise ValueError(
                f"{where}{printable(name)}: its time of sample {at} is {times[at]}; leave it out"
            )
        ends.append(_seconds(times[[0, -1]]))
    first, last = (max, min) if span == "intersection" else (min, max)
    length = last(end for _, end in ends) - first(begin for begin, _ in ends)
    told = float(rate) if isinstance(rate, (int, float)) else 0.0
    samples = max(stream.values.shape[0] for stream in streams.values())
    unknown = told > 1 and any(host_of(s.times).dtype.kind == "i" for s in streams.values())
    if np.isfinite(told) and not unknown:  # else clock tells what is wrong
        rows = length * told
        if rows > max(_MOST_ROWS, _MOST_A_SAMPLE * samples):
            raise ValueError(where + _too_many(streams, rows, told))
    return clock(streams, rate, span)


def _too_many(streams: Mapping[str, Stream[Any]], rows: float, rate: float) -> str:
    """It names the stream with the longest pause, for one wrong time makes one."""
    import numpy as np

    longest, at, name = -1.0, 0, ""
    for own, stream in streams.items():
        steps = np.diff(_seconds(host_of(stream.times)))
        if len(steps) and float(steps.max()) > longest:
            longest, at, name = float(steps.max()), int(steps.argmax()) + 1, own
    begin, end = _seconds(host_of(streams[name].times)[[0, -1]])
    return (
        f"{name}: its times go from {begin:.10g} to {end:.10g} s, which at {rate:g} Hz makes "
        f"{rows:.3g} rows; sample {at} is {longest:.4g} s after the one before. Leave out the "
        "times that are wrong, by select(begin=, end=), or pass a lower rate"
    )


def _seconds(times: Any) -> Any:
    """As floats; of times without a unit in theirs."""
    import numpy as np

    if times.dtype.kind not in "mM":
        return times.astype(np.float64)
    return times.astype(np.int64) / per_second(np.datetime_data(times.dtype)[0])


def _block(
    tracks: Mapping[str, Track], some: slice, rows: list[Any], rules: Rules
) -> tuple[dict[str, Any], Any]:
    """Some episodes in one call: packed streams, padded clocks, and packed results."""
    import numpy as np

    lengths = np.array([len(row) for row in rows], np.int64)
    longest = int(lengths.max(initial=0))
    first = next((row for row in rows if len(row)), np.zeros(0))
    queries = np.zeros((len(rows), longest), first.dtype)
    for row, padded in zip(rows, queries):
        padded[: len(row)] = row
    streams = {}
    for name, track in tracks.items():
        cuts = host_of(track.episode_offsets)[some.start : some.stop + 1]
        values = host_of(track.values)[cuts[0] : cuts[-1]]
        times = host_of(track.times)[cuts[0] : cuts[-1]]
        if queries.dtype.kind in "mM":
            times = times.view(queries.dtype)
        streams[name] = rules.stream(name, values, times, track.names, offsets=cuts - cuts[0])
    there = np.arange(longest) < lengths[:, None]
    parts, valid = fused(streams, queries, rules.backend, {"query_lengths": lengths})
    return {name: values[there] for name, values in parts.items()}, valid[there]


def _with_unit(times: Any, unit: str | None) -> Any:
    if unit is None or times.dtype.kind != "i":
        return times
    return times.view(f"timedelta64[{unit}]")
