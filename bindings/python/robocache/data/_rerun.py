"""Export of streams before and after alignment to the Rerun viewer."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Union

from .._arguments.to_numpy import on_host
from .._files.atomic_write import require_place, written_beside
from ._align import VALID, align
from ._errors import needed
from ._recording import Recording, clock_of
from ._time_units import per_second, unit_of

if TYPE_CHECKING:
    from .._episodes.episodes import Episodes

    Data = Union[Recording, Episodes]

_EPISODES = 16
_MOST_CHANNELS = 64  # per stream: more than anyone looks at


def save_rerun(
    data: Data,
    path: str | os.PathLike[str],
    rate: float,
    *,
    overwrite: bool = False,
    **options: Any,
) -> None:
    """Write an .rrd file with each stream as recorded, and as aligned by :func:`align`.

    The viewer shows "before" and "after" for the first 64 channels of each stream, over the
    seconds since the begin; of a data set, the first 16 episodes.

    Parameters
    ----------
    data
        A :class:`Recording` or :class:`robocache.Episodes`.
    path
        The file to write. It is written under a temporary name and then renamed.
    rate
        Rows per second after alignment.
    overwrite
        Whether to replace an existing file.
    **options
        Options of :func:`align`.

    Raises
    ------
    ModuleNotFoundError
        rerun-sdk is not installed: ``pip install 'robocache[rerun]'``.
    FileExistsError
        The path exists, and ``overwrite`` is not set.
    """
    rr = needed("rerun", "rerun", "a file for Rerun")
    target = os.fsdecode(path)
    require_place(target, overwrite)
    recorded = data if isinstance(data, Recording) else data.select(slice(0, _EPISODES))
    aligned = align(recorded, rate, **options)
    with written_beside(target, overwrite) as part:
        stream = rr.RecordingStream("robocache", recording_id=os.path.basename(target))
        stream.save(part)
        if isinstance(recorded, Recording):
            origin, ticks = _before(rr, stream, recorded, aligned, options.get("unit"))
            _tracks(rr, stream, aligned, "after", lambda e: origin, ticks)
        else:
            ticks = per_second(recorded.unit or options.get("unit"))
            begins = _begins(recorded)
            _tracks(rr, stream, recorded, "before", begins.__getitem__, ticks)
            _tracks(rr, stream, aligned, "after", begins.__getitem__, ticks)
        stream.flush()
        stream.disconnect()


def _before(
    rr: Any, stream: Any, recording: Recording, aligned: Episodes, unit: str | None
) -> tuple[Any, float]:
    """Write all streams of a recording; return their begin, and the ticks per second."""
    import numpy as np

    clock = recording.clock()
    ticks = per_second(recording.unit or unit)
    used = [n for n in recording.names if n in aligned and len(recording[n])]
    times = {name: recording[name].times(clock_of(recording[name], clock)) for name in used}
    origin = min((np.min(t).item() for t in times.values()), default=0)
    for name in used:
        recorded = recording[name]
        _send(
            rr,
            stream,
            f"before/{name}",
            (times[name] - origin) / ticks,
            recorded.values,
            recorded.names,
        )
    if any(own.dtype.kind == "f" for own in times.values()):  # align returns these in seconds
        return origin / ticks, 1.0
    return origin, ticks


def _begins(episodes: Episodes) -> list[Any]:
    """Return the first time of each episode over all tracks."""
    begins: list[Any] = [None] * len(episodes)
    for track in episodes.tracks.values():
        if track.times is None:
            continue
        times, cuts = on_host(track.times), on_host(track.episode_offsets)
        for e in range(len(episodes)):
            if cuts[e] < cuts[e + 1]:
                first = times[cuts[e]].item()
                begins[e] = first if begins[e] is None else min(begins[e], first)
    return [0 if begin is None else begin for begin in begins]


def _tracks(
    rr: Any, stream: Any, episodes: Episodes, label: str, origin: Any, ticks: float
) -> None:
    valid = episodes[VALID] if VALID in episodes else None
    for name, track in episodes.tracks.items():
        if track.values is None or name == VALID or track.times is None:
            continue
        cuts, times = on_host(track.episode_offsets), on_host(track.times)
        own = unit_of(track)
        per = ticks if own is None else per_second(own)
        times = times.view("int64") if times.dtype.kind in "mM" else times
        for e in range(len(episodes)):
            rows = slice(int(cuts[e]), int(cuts[e + 1]))
            since, values = (times[rows] - origin(e)) / per, on_host(track.values)[rows]
            if valid is not None and valid.names is not None and name in valid.names:
                there = valid.values[rows, valid.names.index(name)]
                since, values = since[there], values[there]
            head = f"{label}/{name}" if len(episodes) == 1 else f"episode {e}/{label}/{name}"
            _send(rr, stream, head, since, values, track.names)


def _send(rr: Any, stream: Any, entity: str, seconds: Any, values: Any, names: Any) -> None:
    import numpy as np

    width = min(values.shape[1], _MOST_CHANNELS)
    if len(values) == 0 or width == 0:
        return
    place = [part for part in entity.split("/") if part]
    labels = list(names[:width]) if names else [f"[{c}]" for c in range(width)]
    stream.log(place, rr.SeriesLines(names=labels), static=True)
    scalars = np.ascontiguousarray(values[:, :width], dtype=np.float64)
    stream.send_columns(
        rr.new_entity_path(place),
        indexes=[rr.TimeColumn("time", duration=seconds)],
        columns=rr.Scalars.columns(scalars=scalars),
    )
