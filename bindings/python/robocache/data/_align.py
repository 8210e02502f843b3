"""Alignment of streams of different rates: recordings to an episode, episodes to new episodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Union

from .. import Stream, Track, clock, resample
from .._arguments.to_numpy import on_host
from .._episodes.episodes import Episodes, make_episodes
from .._episodes.lazy_tracks import About
from .._printable import kind_of, printable
from ._align_arrivals import (
    Kept,
    dropped_note,
    kept_samples,
    require_arrivals,
    require_delay,
    seen_samples,
    shifted,
    ticks,
)
from ._align_cameras import cameras_of, with_cameras
from ._align_rules import Planned, Rules, fused, require_sure
from ._cached.opening import aligned, cache_of
from ._checks.times import require_digits
from ._checks.unread import nothing_to
from ._cut_notes import cut_note, cut_notes
from ._errors import LeftOut, omitted_by
from ._kinds.declared import checked
from ._kinds.kinds import Kinds
from ._kinds.names import labels_of
from ._kinds.tracks import kinds_of_track, with_kinds
from ._recording import RecordedStream, Recording, clock_of
from ._time_units import in_seconds, per_second, unit_of

if TYPE_CHECKING:
    from .. import Cache

    Data = Union[Recording, Episodes]

_AT_ONCE = 256  # episodes
_MOST_ROWS = 10_000_000  # of one recording or episode, or
_MOST_A_SAMPLE = 100  # rows per sample if that is more: beyond both, a time must be wrong
VALID = "valid"
NO_TIMES = "no column of times"


def align(
    data: Data,
    rate: Any,
    *,
    methods: Mapping[str, Any] | None = None,
    max_gap: float | None = None,
    span: str = "intersection",
    clock: str | None = None,
    unit: str | None = None,
    tasks: str | Sequence[Any] | None = None,
    backend: Any = None,
    kinds: Mapping[str, Any] | None = None,
    accept_guesses: bool = False,
    as_numbers: bool = False,
    available: Literal["stamp", "arrival"] = "stamp",
    lag: float = 0.0,
    causal: bool | None = None,
    max_age: float | Mapping[str, float] | None = None,
    late_bound: int | Mapping[str, int] = 0,
    clock_offset: float | Mapping[str, float] = 0.0,
    labels: Collection[str] = (),
    cache: Cache | None = None,
) -> Episodes:
    """Put all streams on one clock: one track per stream, all with the same times.

    Cameras stay cameras: each row holds the newest frame that existed at its time, by the same
    options.

    The streams are resampled by :func:`robocache.fuse`, each channel by its kind
    (:doc:`/concepts/kinds`): numbers by linear interpolation, quaternions by slerp, angles along
    the shorter arc, rotation vectors and matrices as quaternions. Integers and bool take the
    previous sample; they keep their dtype, and are 0 where they are not valid. Covariances are
    omitted.

    Parameters
    ----------
    data
        A :class:`Recording`, which becomes one episode, or :class:`robocache.Episodes` with times.
    rate
        Rows per second; or, for a recording, the times themselves, in its unit.
    methods
        By stream name, a method or a list of groups, as for :func:`robocache.resample`; by
        "stream:channels", the method of some channels. They replace the defaults of the kinds.
    max_gap
        In seconds: within longer gaps values are NaN and not valid. If it is set, or ``span`` is
        "union", the track "valid" marks the valid rows of each stream.
    span
        "intersection": from the begin of the last stream to the end of the first one; "union".
    clock
        "header" or "log"; None: see :meth:`Recording.clock`. A stream without header stamps uses
        its log times.
    unit
        Unit of the times if the recording does not state one, or of integer times of episodes:
        "ns", "us", "ms", "s". Float times of a known unit are returned in seconds.
    tasks
        The task of the episode of a recording.
    backend
        As for :func:`robocache.fuse`.
    kinds
        Kinds of channels, as for :func:`open`.
    accept_guesses, as_numbers
        Channels whose values look like a quaternion, but whose names do not, are an error.
        ``accept_guesses`` treats them as quaternions, ``as_numbers`` as numbers.
    available
        "stamp": all samples exist for every row. "arrival": a row at time q sees only the samples
        that had arrived up to q + ``lag``, as a robot does that computes the row then. Arrivals are
        the log times of a recording, or the ``arrivals`` of tracks. Late samples that
        :class:`robocache.Live` drops are dropped. See :doc:`/concepts/train-and-serve`.
    lag
        How long after its time a row is computed, in seconds.
    causal
        As for :func:`robocache.resample`, for all streams but ``labels``. None: with "arrival".
    max_age
        In seconds, for all streams or by stream name: rows whose last sample is older are NaN and
        not valid. None: no limit.
    late_bound
        As for :class:`robocache.LiveStream`, for all streams or by stream name.
    clock_offset
        Seconds to add to the stamps, for all streams or by stream name. Arrivals stay.
    labels
        Streams that see their whole episode, such as actions: without arrivals, not causal.
    cache
        A :class:`robocache.Cache`: the alignment is computed once, and then comes from the cache.
        The data must have been opened with a cache.

    Returns
    -------
    Episodes
        Streams without samples or channels are listed in ``left_out``, and samples that arrived too
        late in ``notes``. With "arrival" or ``causal``, rows without a value are NaN, and the track
        "valid" marks the valid rows of each stream.

    Raises
    ------
    ValueError
        Streams have no times, or none in common, or times go back; or channels may be a
        quaternion, and no option decides it; or a stream has no arrivals, or its median sample
        arrives before its stamp or more than 10 s after it.
    """
    if accept_guesses and as_numbers:
        raise ValueError("accept_guesses: cannot be combined with as_numbers")
    if not isinstance(data, (Recording, Episodes)):
        raise TypeError(f"data: is {kind_of(data)}, expected a Recording or Episodes")
    seen = seen_samples(available, lag, causal, max_age, late_bound, clock_offset, labels)
    names = data.names if isinstance(data, Recording) else list(data.tracks)
    seen.require_streams([*names, *cameras_of(data)])
    rules = Rules(dict(methods or {}), max_gap, span, backend, accept_guesses, as_numbers, seen)
    if kinds is not None:
        data = data.with_kinds(checked(kinds))

    def compute() -> Episodes:
        if isinstance(data, Recording):
            return _aligned_recording(data, rate, clock, data.unit or unit, tasks, rules)
        return _episodes(data, rate, data.unit or unit, rules)

    store = cache_of(cache)
    if store is None:
        return with_cameras(compute(), data, seen, clock, data.unit or unit)
    options = {
        "methods": methods or {},
        "max_gap": max_gap,
        "span": span,
        "clock": clock,
        "unit": unit,
        "tasks": tasks,
        "accept_guesses": accept_guesses,
        "as_numbers": as_numbers,
        "available": available,
        "lag": lag,
        "causal": seen.causal,
        "max_age": max_age,
        "late_bound": late_bound,
        "clock_offset": clock_offset,
        "labels": set(labels),
    }
    made = aligned(store, data, rate, options, compute)
    return with_cameras(made, data, seen, clock, data.unit or unit, store)


def _aligned_recording(
    recording: Recording,
    rate: Any,
    clock_name: str | None,
    unit: str | None,
    tasks: Any,
    rules: Rules,
) -> Episodes:
    import numpy as np

    seen = rules.seen
    if clock_name is None and not seen.arrival:
        clock_name = recording.clock()
    read = recording.streams
    left_out = omitted_by(recording)
    unread = {each.place for each in recording.unread}
    used: dict[str, RecordedStream] = {}
    static: dict[str, tuple[RecordedStream, Any]] = {}  # with their times
    for name, stream in read.items():
        if len(stream) == 0 or not stream.names:
            if name not in unread:
                left_out.append(LeftOut(name, "no samples" if len(stream) == 0 else "no channels"))
        elif not stream.clocks:
            if not any(part.place.startswith(name) for part in recording.unread):
                left_out.append(LeftOut(name, NO_TIMES))
        elif stream.static:
            static[name] = stream, _with_unit(stream.times(_own_clock(stream, clock_name)), unit)
        else:
            used[name] = stream
    own = {n: (s.kinds, s.names, len(s.names)) for n, s in used.items()}
    held_kinds = {n: (s.kinds, s.names, len(s.names)) for n, (s, _) in static.items()}
    plans = _plans(own, rules, held_kinds, read)
    streams: dict[str, Stream[Any]] = {}
    notes: list[str | None] = []
    for name, stream in used.items():
        left_out += plans[name].left_out(name, stream.names)
        if plans[name].kept == ():
            continue
        stamps_of = _own_clock(stream, clock_name)
        if seen.is_limited(name):
            kept = _arrived(stream, stamps_of, unit, rules)
            notes.append(dropped_note(name, kept.dropped, len(stream)))
            streams[name] = rules.stream(
                name,
                stream.values[kept.rows],
                kept.times,
                plans[name],
                arrivals=kept.arrivals,
            )
        elif seen.arrival:
            times = _stamps(stream, stamps_of, unit)
            rows = np.argsort(times, kind="stable")
            streams[name] = rules.stream(name, stream.values[rows], times[rows], plans[name])
        else:
            times = _times_of(stream, stamps_of, unit)
            streams[name] = rules.stream(name, stream.values, times, plans[name])
    if not streams and not static:
        raise ValueError(nothing_to("resample", recording))
    timed = streams or _single(static)
    queries = _queries(rate, timed, unit, rules.span)
    options = _lag(rules, queries)
    parts: dict[str, Any] = {}
    valid: Any = None
    if streams:
        parts, valid = fused(streams, queries, rules.backend, options)
    held = {name: _held(*each, queries, rules, unit) for name, each in static.items()}
    parts, valid, names = _with_static(parts, valid, held, list(read))
    offsets = np.array([0, len(queries)], np.int64)
    tracks = {}
    for name, values in parts.items():
        if name in held:
            track = Track(values, offsets, times=queries, names=read[name].names)
            tracks[name] = with_kinds(track, name, read[name].kinds)
            continue
        values = plans[name].result(values, used[name].values.dtype)
        track = Track(values, offsets, times=queries, names=plans[name].names(used[name].names))
        tracks[name] = with_kinds(track, name, plans[name].kinds())
    if rules.may_miss or not all(mask.all() for _, mask in held.values()):
        tracks[VALID] = Track(valid, offsets, times=queries, names=names)
    own_rate = float(rate) if np.ndim(rate) == 0 else None
    unit = "s" if unit is not None and queries.dtype.kind == "f" else unit
    cut = None
    if own_rate is not None and rules.span == "intersection":
        cut = cut_note({name: _shifted(stream) for name, stream in timed.items()}, queries)
    about = About(
        f"aligned, of {recording.format}",
        unit,
        own_rate,
        left_out=tuple(left_out),
        notes=tuple(note for note in (cut, *notes) if note is not None),
    )
    return make_episodes(tracks, tasks=tasks, source=recording.path, about=about)


def _single(static: Mapping[str, tuple[RecordedStream, Any]]) -> dict[str, Stream[Any]]:
    """Return static transforms as one stream, for a recording without other streams."""
    import numpy as np

    times = np.sort(np.concatenate([times for _, times in static.values()]))
    return {next(iter(static)): Stream(np.zeros((len(times), 1)), times)}


def _held(
    stream: RecordedStream, times: Any, queries: Any, rules: Rules, unit: str | None
) -> tuple[Any, Any]:
    """Return the values of static transforms at the queries, and a mask of the valid rows."""
    import numpy as np

    order = np.argsort(times, kind="stable")
    times = shifted(times, ticks(rules.seen.offset(stream.name), times.dtype))[order]
    if rules.seen.is_limited(stream.name):
        arrivals = _arrivals_of(stream, unit)
        numbers, there = resample(
            np.arange(len(times), dtype=np.float64)[:, None],
            times,
            queries,
            method="previous",
            causal=True,
            arrivals=arrivals[order],
            lag=_lag(rules, queries)["lag"],
            return_valid=True,
        )
        rows = numbers[:, 0].astype(np.int64)
    else:
        rows = np.searchsorted(times, queries, "right") - 1
        there = rows >= 0
    values = stream.values[order[np.maximum(rows, 0)]]
    values[~there] = np.nan if values.dtype.kind == "f" else 0
    return values, there


def _with_static(
    parts: dict[str, Any], valid: Any, held: Mapping[str, tuple[Any, Any]], order: list[str]
) -> tuple[dict[str, Any], Any, list[str]]:
    """Return values and masks of all streams in order, and their names."""
    import numpy as np

    if not held:
        return parts, valid, list(parts)
    masks = {name: valid[..., i] for i, name in enumerate(parts)}
    masks.update({name: mask for name, (_, mask) in held.items()})
    values = {**parts, **{name: stream_values for name, (stream_values, _) in held.items()}}
    names = [name for name in order if name in values]
    return {name: values[name] for name in names}, np.stack([masks[n] for n in names], -1), names


def _own_clock(stream: RecordedStream, clock_name: str | None) -> str:
    """Return the clock of a stream's stamps; without a name, header stamps if any are set."""
    if clock_name is None:
        header = stream.header_times
        clock_name = "header" if header is not None and (header > 0).any() else "log"
    return clock_of(stream, clock_name)


def _times_of(stream: RecordedStream, own: str, unit: str | None) -> Any:
    """Return the ascending times of a stream."""
    times = _stamps(stream, own, unit)
    if (times[1:] < times[:-1]).any():
        raise ValueError(
            f"{printable(stream.name)}: its times go back (clock {own!r}); use another clock=, or "
            "sort it"
        )
    return times


def _stamps(stream: RecordedStream, own: str, unit: str | None) -> Any:
    """Return the times of a stream with their unit, if known; floats of a known unit in seconds."""
    times = stream.times(own)
    if own != "log":  # recorders write log times as whole nanoseconds
        require_digits(stream.name, times, None if unit is None else per_second(unit))
    return _with_unit(in_seconds(times, unit), unit)


def _arrivals_of(stream: RecordedStream, unit: str | None) -> Any:
    if stream.log_times is None:
        require_arrivals(stream.name, f"only the clocks {list(stream.clocks)}, not 'log'")
    return _with_unit(in_seconds(stream.log_times, unit), unit)


def _arrived(stream: RecordedStream, own: str, unit: str | None, rules: Rules) -> Kept:
    """Return the samples of a stream that a robot keeps, with their arrivals."""
    times, arrivals = _stamps(stream, own, unit), _arrivals_of(stream, unit)
    offset = ticks(rules.seen.offset(stream.name), times.dtype)
    require_delay(stream.name, shifted(times, offset), arrivals)
    return kept_samples(times, arrivals, rules.seen.bound(stream.name))


def _lag(rules: Rules, queries: Any) -> dict[str, Any]:
    """Return the lag as an option of ``fuse``."""
    return {"lag": ticks(rules.seen.lag, queries.dtype)}


def _shifted(stream: Stream[Any]) -> Any:
    """Return the times of a stream on the clock of the queries."""
    return shifted(on_host(stream.times), stream.clock_offset)


def _queries(rate: Any, streams: Mapping[str, Stream[Any]], unit: str | None, span: Any) -> Any:
    """Return the common clock: even times at a rate, or the times in ``rate``."""
    import numpy as np

    if np.ndim(rate) == 0:
        many = {name: s for name, s in streams.items() if s.values.shape[0] > 1} or streams
        return _even(many, rate, span)
    times = np.asarray(rate)
    if unit is not None and all(on_host(s.times).dtype.kind == "f" for s in streams.values()):
        times = times.astype(np.float64)
    return _with_unit(in_seconds(times, unit), unit)


def _episodes(episodes: Episodes, rate: Any, unit: str | None, rules: Rules) -> Episodes:
    import numpy as np

    timed = {name: t for name, t in episodes.tracks.items() if t.times is not None}
    missing = [name for name in episodes.tracks if name not in timed]
    if missing:
        raise ValueError(
            f"this data set has no times (track {printable(missing[0])}). Say how many rows a "
            "second it has: open it with rate=10"
        )
    with_values = {name: t for name, t in timed.items() if t.values is not None}
    if not with_values:
        raise ValueError("episodes: no track has values")
    plans = _plans(
        {
            name: (kinds_of_track(track, name), track.names, track.num_channels)
            for name, track in with_values.items()
        },
        rules,
    )
    if np.ndim(rate) != 0:
        raise ValueError("rate: is an array, expected a number: each episode has its own times")
    for name, track in with_values.items():
        if rules.seen.is_limited(name):
            _require_arrivals_of(name, track, unit, rules)
    clocks = [_clock_of(e, timed, float(rate), unit, rules) for e in range(len(episodes))]
    rows = [times for times, _ in clocks]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    with_values = {name: t for name, t in with_values.items() if plans[name].kept != ()}
    pieces: dict[str, list[Any]] = {name: [] for name in with_values}
    dropped = dict.fromkeys(with_values, 0)
    valid = []
    for begin in range(0, len(rows), _AT_ONCE):
        some = slice(begin, min(begin + _AT_ONCE, len(rows)))
        parts, mask = _block(with_values, some, rows[some], rules, plans, dropped)
        valid.append(mask)
        for name, values in parts.items():
            pieces[name].append(values)
    times = np.concatenate(rows) if rows else np.zeros(0)
    tracks = {}
    left_out = list(episodes.left_out)
    for name, track in timed.items():
        if track.values is None:
            tracks[name] = Track(None, offsets, times=times, files=track.files)
            continue
        left_out += plans[name].left_out(name, labels_of(name, track.names, track.num_channels))
        if name in pieces:
            values = np.concatenate(pieces[name])
            made = Track(values, offsets, times=times, names=plans[name].names(track.names))
            tracks[name] = with_kinds(made, name, plans[name].kinds())
    if rules.may_miss:
        tracks[VALID] = Track(np.concatenate(valid), offsets, times=times, names=list(with_values))
    about = About(
        f"aligned, of {episodes.format}",
        episodes.unit,
        float(rate),
        left_out=tuple(left_out),
        notes=(
            *cut_notes([note for _, note in clocks]),
            *filter(None, (dropped_note(n, k, timed[n].num_rows) for n, k in dropped.items())),
        ),
    )
    return make_episodes(tracks, tasks=episodes.tasks, source=episodes.source, about=about)


_OfStreams = Mapping[str, "tuple[Kinds, Sequence[str] | None, int]"]


def _plans(
    streams: _OfStreams, rules: Rules, held: _OfStreams | None = None, known: Collection[str] = ()
) -> dict[str, Planned]:
    """Plan how each stream is aligned. Possible quaternions are an error.

    Methods may name channels of the ``held`` streams, and any of the ``known`` streams.
    """
    methods = rules.methods_of(known or list(streams))
    for name in methods.keys() & (held or {}).keys():
        rules.planned(name, *(held or {})[name], methods[name])
    plans = {
        name: rules.planned(name, kinds, names, width, methods.get(name, ()))
        for name, (kinds, names, width) in streams.items()
    }
    refused = {name: plan.refused for name, plan in plans.items()}
    require_sure(refused, {name: names for name, (_, names, _) in streams.items()})
    return plans


def _clock_of(
    episode: int, tracks: Mapping[str, Track], rate: float, unit: str | None, rules: Rules
) -> tuple[Any, str | None]:
    """Return the times of an episode, empty if a track has no rows in it, and a note on cuts."""
    import numpy as np

    streams: dict[str, Stream[Any]] = {}
    for name, track in tracks.items():
        cuts = on_host(track.episode_offsets)
        times = _with_unit(on_host(track.times), unit_of(track) or unit)
        times = times[cuts[episode] : cuts[episode + 1]]
        if len(times) == 0:
            return times, None
        offset = ticks(rules.seen.offset(name), times.dtype)
        streams[name] = Stream(np.zeros((len(times), 1), np.float32), times, clock_offset=offset)
    rows = _even(streams, rate, rules.span, f"episode {episode}, ")
    if rules.span != "intersection":
        return rows, None
    return rows, cut_note({name: _shifted(stream) for name, stream in streams.items()}, rows)


def _even(streams: Mapping[str, Stream[Any]], rate: Any, span: Any, where: str = "") -> Any:
    """Return even times over streams; raise if they are far more than the samples."""
    import numpy as np

    ends = []
    for name, stream in streams.items():
        times = on_host(stream.times)
        good = np.isfinite(times)
        if not good.all():
            at = int(np.argmin(good))
            raise ValueError(
                f"{where}{printable(name)}: sample {at} has no time ({times[at]}). Remove that "
                "row, or open with damaged='keep'"
            )
        ends.append(_seconds(times[[0, -1]]))
    first, last = (max, min) if span == "intersection" else (min, max)
    length = last(end for _, end in ends) - first(begin for begin, _ in ends)
    rate_hz = float(rate) if isinstance(rate, (int, float)) else 0.0
    samples = max(stream.values.shape[0] for stream in streams.values())
    unknown = rate_hz > 1 and any(on_host(s.times).dtype.kind == "i" for s in streams.values())
    if np.isfinite(rate_hz) and not unknown:  # else clock() reports what is wrong
        rows = length * rate_hz
        if rows > max(_MOST_ROWS, _MOST_A_SAMPLE * samples):
            raise ValueError(where + _too_many(streams, rows, rate_hz))
    return clock(streams, rate, span)


def _too_many(streams: Mapping[str, Stream[Any]], rows: float, rate: float) -> str:
    """Return the error, naming the stream with the longest pause: a wrong time makes one."""
    import numpy as np

    longest, at, name = -1.0, 0, ""
    for own, stream in streams.items():
        steps = np.diff(_seconds(on_host(stream.times)))
        if len(steps) and float(steps.max()) > longest:
            longest, at, name = float(steps.max()), int(steps.argmax()) + 1, own
    begin, end = _seconds(on_host(streams[name].times)[[0, -1]])
    return (
        f"{name}: its times go from {begin:.10g} to {end:.10g} s, which at {rate:g} Hz is "
        f"{rows:.3g} rows; sample {at} is {longest:.4g} s after the one before. Exclude wrong "
        "times with select(begin=, end=), or pass a lower rate"
    )


def _seconds(times: Any) -> Any:
    """Return times as floats in seconds; in ticks if they have no unit."""
    import numpy as np

    if times.dtype.kind not in "mM":
        return times.astype(np.float64)
    return times.astype(np.int64) / per_second(np.datetime_data(times.dtype)[0])


def _block(
    tracks: Mapping[str, Track],
    some: slice,
    rows: list[Any],
    rules: Rules,
    plans: Mapping[str, Planned],
    dropped: dict[str, int],
) -> tuple[dict[str, Any], Any]:
    """Align some episodes in one call: packed streams, padded clocks, and packed results.

    The numbers of samples that arrived too late are added to ``dropped``.
    """
    import numpy as np

    lengths = np.array([len(row) for row in rows], np.int64)
    longest = int(lengths.max(initial=0))
    first = next((row for row in rows if len(row)), np.zeros(0))
    queries = np.zeros((len(rows), longest), first.dtype)
    for row, padded in zip(rows, queries):
        padded[: len(row)] = row
    streams = {}
    for name, track in tracks.items():
        cuts = on_host(track.episode_offsets)[some.start : some.stop + 1]
        values = on_host(track.values)[cuts[0] : cuts[-1]]
        times = _viewed(on_host(track.times)[cuts[0] : cuts[-1]], queries.dtype)
        cuts, arrivals = cuts - cuts[0], None
        if rules.seen.is_limited(name):
            arrivals = _viewed(on_host(track.arrivals), queries.dtype)
            arrivals = arrivals[track._offsets[some.start] :][: len(times)]
            kept = [
                kept_samples(times[begin:end], arrivals[begin:end], rules.seen.bound(name))
                for begin, end in zip(cuts, cuts[1:])
            ]
            values = np.concatenate([values[b + k.rows] for b, k in zip(cuts, kept)])
            times = np.concatenate([each.times for each in kept])
            arrivals = np.concatenate([each.arrivals for each in kept])
            cuts = np.concatenate([[0], np.cumsum([len(each.rows) for each in kept])])
            dropped[name] += sum(each.dropped for each in kept)
        streams[name] = rules.stream(name, values, times, plans[name], cuts, arrivals)
    there = np.arange(longest) < lengths[:, None]
    options = {"query_lengths": lengths, **_lag(rules, queries)}
    parts, valid = fused(streams, queries, rules.backend, options)
    return {
        name: plans[name].result(values[there], on_host(tracks[name].values).dtype)
        for name, values in parts.items()
    }, valid[there]


def _require_arrivals_of(name: str, track: Track, unit: str | None, rules: Rules) -> None:
    """Refuse a track whose rows have no arrivals, or arrivals on another clock."""
    if track.arrivals is None:
        require_arrivals(name, "its track has no arrivals")
    own = unit_of(track) or unit
    times, arrivals = (_with_unit(on_host(each), own) for each in (track.times, track.arrivals))
    offset = ticks(rules.seen.offset(name), times.dtype)
    require_delay(name, shifted(times, offset), arrivals)


def _viewed(times: Any, dtype: Any) -> Any:
    return times.view(dtype) if dtype.kind in "mM" else times


def _with_unit(times: Any, unit: str | None) -> Any:
    if unit is None or times.dtype.kind != "i":
        return times
    return times.view(f"timedelta64[{unit}]")
