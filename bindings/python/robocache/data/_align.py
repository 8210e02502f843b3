"""Streams of different rates onto one clock: recordings into an episode, episodes into others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from .. import Stream, Track, clock, fuse
from ._check_values import quaternions_of
from ._episode_tools import host_of
from ._episodes import About, Episodes
from ._errors import LeftOut
from ._recording import RecordedStream, Recording, clock_of
from ._units import per_second, unit_of

if TYPE_CHECKING:
    Data = Union[Recording, Episodes]

_MOST = 64  # streams of a call of fuse
_AT_ONCE = 256  # episodes
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
        Of integer times that do not tell it: "ns", "us", "ms", "s".
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
    told = {
        "methods": dict(methods or {}),
        "max_gap": max_gap,
        "span": span,
        "backend": backend,
    }
    if isinstance(given, Recording):
        return _recording(given, rate, clock, unit or given.unit, tasks, told)
    return _episodes(given, rate, unit or given.unit, told)


def _recording(
    given: Recording, rate: Any, clock_name: str | None, unit: str | None, tasks: Any, told: Any
) -> Episodes:
    import numpy as np

    clock_name = given.clock() if clock_name is None else clock_name
    streams: dict[str, Stream[Any]] = {}
    left_out = []
    for name, stream in given.streams.items():
        if len(stream) == 0 or not stream.names:
            left_out.append(LeftOut(name, "no samples" if len(stream) == 0 else "no channels"))
            continue
        own = clock_of(stream, clock_name)
        times = stream.times(own)
        if times is None:
            raise ValueError(f"{name}: has no times")
        if (np.diff(times) < 0).any():
            raise ValueError(f"{name}: its {own} times go back; take another clock=, or sort it")
        times = _with_unit(times, unit)
        method = told["methods"].get(name) or _methods(stream)
        streams[name] = _stream(stream.values, times, method, told, name)
    _require_known(told["methods"], streams)
    if not streams:
        raise ValueError("recording: has no stream with samples and channels")
    queries = _with_unit(np.asarray(rate), unit)
    if queries.ndim == 0:
        many = {name: s for name, s in streams.items() if s.values.shape[0] > 1} or streams
        queries = clock(many, rate, told["span"])
    parts, valid = _fused(streams, queries, told["backend"], {})
    offsets = np.array([0, len(queries)], np.int64)
    tracks = {
        name: Track(values, offsets, times=queries, names=given[name].names)
        for name, values in parts.items()
    }
    if _may_miss(told):
        tracks[VALID] = Track(valid, offsets, times=queries, names=list(streams))
    told_rate = float(rate) if np.ndim(rate) == 0 else None
    about = About(f"aligned, of {given.format}", unit, told_rate, left_out=tuple(left_out))
    return Episodes.made(tracks, tasks=tasks, source=given.path, about=about)


def _episodes(given: Episodes, rate: Any, unit: str | None, told: Any) -> Episodes:
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
    _require_known(told["methods"], with_values)
    if np.ndim(rate) != 0:
        raise ValueError("rate: is an array, expected a number: each episode has its own times")
    rows = [_clock_of(e, timed, float(rate), unit, told["span"]) for e in range(len(given))]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    pieces: dict[str, list[Any]] = {name: [] for name in with_values}
    valid = []
    for begin in range(0, len(rows), _AT_ONCE):
        some = slice(begin, min(begin + _AT_ONCE, len(rows)))
        parts, mask = _block(with_values, some, rows[some], told)
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
    if _may_miss(told):
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
    return clock(streams, rate, span)  # type: ignore[arg-type]


def _block(
    tracks: Mapping[str, Track], some: slice, rows: list[Any], told: Any
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
        method = told["methods"].get(name) or _methods_of(
            track.names, [values.dtype.name] * values.shape[1], name
        )
        streams[name] = _stream(values, times, method, told, name, offsets=cuts - cuts[0])
    there = np.arange(longest) < lengths[:, None]
    parts, valid = _fused(streams, queries, told["backend"], {"query_lengths": lengths})
    return {name: values[there] for name, values in parts.items()}, valid[there]


def _with_unit(times: Any, unit: str | None) -> Any:
    if unit is None or times.dtype.kind != "i":
        return times
    return times.view(f"timedelta64[{unit}]")


def _fused(
    streams: Mapping[str, Stream[Any]], queries: Any, backend: Any, options: Any
) -> tuple[dict[str, Any], Any]:
    """Each stream's values in a float of its own, and all masks."""
    import numpy as np

    given = streams
    # Integers that are picked go by their row, which a float64 holds whatever they are.
    streams = {name: _by_row(stream) for name, stream in streams.items()}
    by_dtype: dict[str, list[str]] = {}
    for name, stream in streams.items():
        by_dtype.setdefault(_float_for(stream.values.dtype), []).append(name)
    values, masks = {}, {}
    for dtype, names in by_dtype.items():
        for begin in range(0, len(names), _MOST):
            some = names[begin : begin + _MOST]
            fused, mask = fuse(
                [streams[name] for name in some],
                queries,
                dtype=dtype,
                return_mask=True,
                backend=backend,
                **options,
            )
            ends = np.cumsum([streams[name].values.shape[-1] for name in some])
            for i, (name, end) in enumerate(zip(some, ends.tolist())):
                width = streams[name].values.shape[-1]
                own = np.ascontiguousarray(fused[..., end - width : end])
                values[name] = own
                if streams[name] is not given[name]:
                    values[name] = _taken(given[name], own[..., 0], options)
                masks[name] = mask[..., i]
    return {name: values[name] for name in streams}, np.stack(
        [masks[name] for name in streams], axis=-1
    )


def _by_row(stream: Stream[Any]) -> Stream[Any]:
    """Of integers and bool the numbers of their rows; others as they are."""
    import dataclasses

    import numpy as np

    if stream.values.dtype.kind not in "iub":
        return stream
    rows = np.arange(len(stream.values), dtype=np.float64)[:, None]
    return dataclasses.replace(stream, values=rows)


def _taken(stream: Stream[Any], rows: Any, options: Any) -> Any:
    """Values by row; 0 where there is none, or past the end of a shorter clock."""
    import numpy as np

    lengths = options.get("query_lengths")
    there = np.isfinite(rows)
    if lengths is not None:
        there &= np.arange(rows.shape[-1]) < lengths[:, None]
    taken = (
        stream.values[np.where(there, rows, 0).astype(np.int64)]
        if len(stream.values)
        else (np.zeros((*rows.shape, stream.values.shape[-1]), stream.values.dtype))
    )
    taken[~there] = 0
    return taken


def _stream(
    values: Any, times: Any, method: Any, told: Any, name: str, offsets: Any = None
) -> Stream[Any]:
    import numpy as np

    if values.dtype.kind in "iub" and not _picks(method):
        values = values.astype(np.float64)
    options: Any = {"method": method, "fill_value": float("nan")}
    options["bounds"] = "fill" if told["span"] == "union" else "hold"
    if offsets is not None:
        options["offsets"] = offsets
    if told["max_gap"] is not None:
        options["max_gap"] = _gap(told["max_gap"], times.dtype)
    try:
        made: Stream[Any] = Stream(values, times, **options)
    except (ValueError, TypeError) as error:
        raise type(error)(f"{name}: {error}") from None
    return made


def _gap(seconds: float, dtype: Any) -> Any:
    """In the ticks of times with a unit, else as it is."""
    import numpy as np

    if dtype.kind not in "mM":
        return seconds
    unit, count = np.datetime_data(dtype)
    ticks: Any = round(seconds * per_second(unit) / count)
    return np.array(ticks).astype(f"timedelta64[{count}{unit}]")[()]


def _methods(stream: RecordedStream) -> Any:
    dtypes = stream.dtypes or [stream.values.dtype.name] * len(stream.names)
    return _methods_of(stream.names, dtypes, stream.name)


def _methods_of(names: Sequence[str] | None, dtypes: Sequence[str], track: str) -> Any:
    """A method for each channel, as groups; one name where all have the same."""
    methods = ["linear" if dtype.startswith("float") else "previous" for dtype in dtypes]
    for begin in quaternions_of(names, len(dtypes), track):
        if all(dtype.startswith("float") for dtype in dtypes[begin : begin + 4]):
            methods[begin : begin + 4] = [f"slerp {begin}"] * 4
    groups: list[list[Any]] = []
    for i, method in enumerate(methods):
        if groups and groups[-1][2] == method:
            groups[-1][1] += 1
        else:
            groups.append([i, 1, method])
    told = [(begin, count, method.partition(" ")[0]) for begin, count, method in groups]
    return told[0][2] if len(told) == 1 else told


def _picks(method: Any) -> bool:
    """Whether rows are taken as they are."""
    return method in ("previous", "next", "nearest")


def _float_for(dtype: Any) -> str:
    return str(dtype) if dtype.kind == "f" else "float64"


def _may_miss(told: Any) -> bool:
    return told["max_gap"] is not None or told["span"] == "union"


def _require_known(methods: Mapping[str, Any], streams: Mapping[str, Any]) -> None:
    for name in methods:
        if name not in streams:
            raise KeyError(f"methods: has {name!r}, which is no stream to align")
