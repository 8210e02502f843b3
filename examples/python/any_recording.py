"""Read a recording or a data set of any format that robocache.data opens."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

import robocache as rbc
from recordings import Panel, Recording, StreamData, make_stream
from robocache import data

_PANELS = 6  # streams with a panel in the picture; the overview has all
_LABEL = 14  # characters of one
_SHORTEST = 20  # samples; shorter streams are not aligned
_FASTEST_HZ = 200.0
_VOXEL_M = 0.2
_TICKS = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}


def open_any(path: Path) -> Any:
    """Open a path as a Recording, Episodes or clouds of robocache.data."""
    return data.open(path, damaged="keep")


def read_any(source: Any, name: str) -> Recording | None:
    """Convert the recording, or the first episode, for this demo; None if it has no times."""
    if isinstance(source, data.Recording):
        streams = [source[each] for each in source.names]
        title, unit = f"{name}, {source.format}", source.unit or "s"
    else:
        first = source.select([0])
        streams = [_stream_of(each, track) for each, track in first.tracks.items()]
        streams = [each for each in streams if each is not None]
        title, unit = f"{name}, {source.format}, episode 0 of {len(source)}", source.unit or "s"
    made = [
        _made(each, short, _TICKS[unit])
        for each, short in zip(streams, _short_names([each.name for each in streams]))
    ]
    kept = [stream for stream in made if stream is not None]
    if not kept:
        return None
    for i in range(_PANELS, len(kept)):
        kept[i] = dataclasses.replace(kept[i], panels=())
    fastest = min(max(stream.nominal_hz for stream in kept), _FASTEST_HZ)
    span = (max(s.times[-1] for s in kept) - min(s.times[0] for s in kept)) / _TICKS[unit]
    window = (float(span) * 0.4, float(min(span * 0.2, 3.0)))
    return Recording(
        name, title, tuple(kept), _TICKS[unit], unit, clock_hz=fastest, window_s=window
    )


def _stream_of(name: str, track: Any) -> data.RecordedStream | None:
    if track.values is None or track.times is None:
        return None
    names = track.names or tuple(str(c) for c in range(track.num_channels))
    return data.RecordedStream(name, "track", names, track.values, {"time": track.times}, None)


def _short_names(names: list[str]) -> list[str]:
    """Shorten names to the last part of their path, if that is unique."""
    short = [name.rstrip("/").rpartition("/")[2][-_LABEL:] or name for name in names]
    return [s if short.count(s) == 1 else name for s, name in zip(short, names)]


def _made(stream: data.RecordedStream, short: str, ticks: float) -> StreamData | None:
    """Convert a stream with a rate; None if it has too few samples."""
    times = stream.times()
    if times is None or len(times) < _SHORTEST or not stream.names:
        return None
    period = float(np.median(np.diff(np.sort(times)))) / ticks
    if not period > 0:
        return None
    values = np.asarray(stream.values)
    moves = np.flatnonzero(np.ptp(np.nan_to_num(values.astype(np.float64)), axis=0) > 0)
    channel = int(moves[0]) if len(moves) else 0
    label = stream.names[channel][-_LABEL:].replace("$", "")
    return make_stream(
        short,
        times,
        values,
        stream.names,
        1 / period,
        method=_methods(stream),
        panels=(Panel(label, channel),),
    )


def _methods(stream: data.RecordedStream) -> Any:
    """Choose slerp for quaternions, linear for other floats, previous for everything else."""
    width = len(stream.names)
    if stream.values.dtype.kind != "f":
        return "previous"
    begins = data.checks.quaternions_of(stream.names, width, stream.name)
    groups: list[tuple[int, int, str]] = []
    at = 0
    for begin in begins:
        if begin > at:
            groups.append((at, begin - at, "linear"))
        groups.append((begin, 4, "slerp"))
        at = begin + 4
    if at < width:
        groups.append((at, width - at, "linear"))
    return groups if begins else "linear"


def voxelize_any(path: Path, target: Path) -> str:
    """Average sweeps that are not PCD files in voxels around the sensor."""
    source = open_any(path)
    grid = {"voxel_size": _VOXEL_M, "origin": (-40, -40, -3), "shape": (400, 400, 30)}
    clouds = [source] if isinstance(source, data.PointCloud) else list(source)
    voxels = [rbc.voxelize_sparse(c.points.astype(np.float32), **grid).trimmed() for c in clouds]
    np.savez(
        target,
        coords=np.concatenate([v.coords[:, -3:] for v in voxels]),
        means=np.concatenate([v.features for v in voxels]),
        offsets=np.cumsum([0, *(len(v.coords) for v in voxels)]),
    )
    points, kept = sum(map(len, clouds)), sum(len(v.coords) for v in voxels)
    return (
        f"{path.name}: {len(clouds)} clouds of {points} points in {kept} voxels of {_VOXEL_M} m; "
        f"wrote {target}\n"
    )


def as_data(recording: Recording) -> data.Recording:
    """Convert a recording of this demo for robocache.data."""
    return data.Recording.from_streams(
        [
            data.RecordedStream(
                stream.name,
                "sensor",
                stream.channels,
                stream.values,
                {"time": stream.times},
                recording.stamp_unit,
            )
            for stream in recording.streams
        ],
        path=recording.name,
    )
