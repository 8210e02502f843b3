"""Reports and statistics of episodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from .. import Episodes, Stream, Track, Transform, Window, WindowSpec, report
from .. import statistics as exact
from .._arguments.options import count
from .._arguments.to_numpy import on_host
from .._printable import printable

if TYPE_CHECKING:
    from .. import Report, StatisticsResult
    from .._typing import Accumulate

_RELATIVE = {"action": "observation.state"}
LEVELS = (0.01, 0.1, 0.5, 0.9, 0.99)


def report_of(episodes: Episodes, unit: str | None) -> Report:
    """Run :func:`robocache.report` on all tracks with times."""
    import numpy as np

    streams = {}
    for name, track in episodes.tracks.items():
        if track.times is None or track.num_rows == 0:
            continue
        times = on_host(track.times)
        if track.time_unit is not None:
            times = times.view(track.time_unit.partition(",")[0].rstrip("]") + "]")
        offsets = on_host(track.episode_offsets)
        streams[name] = Stream(np.zeros((len(times), 0), np.float32), times, batch_offsets=offsets)
    if not streams:
        raise ValueError("episodes: no track has times")
    return report(streams, unit=episodes.unit or unit)


def exact_of(
    track: Track, *, quantiles: Sequence[float] = LEVELS, per_episode: bool = False
) -> StatisticsResult:
    """Return the exact statistics of a track's values."""
    offsets = track.episode_offsets if per_episode else None
    return exact(track.values, quantiles=quantiles, batch_offsets=offsets, per_row=per_episode)


def statistics(
    episodes: Episodes,
    tracks: Collection[str] | None = None,
    *,
    quantiles: Sequence[float] = LEVELS,
    per_episode: bool = False,
    relative: int | None = None,
    to: Mapping[str, str] | None = None,
    rows: Accumulate = "whole",
    per_step: bool = False,
) -> dict[str, StatisticsResult]:
    """Return exact statistics of the tracks of episodes, on their device.

    With ``relative``, statistics of chunks of actions: for each row, the next ``relative`` rows
    minus the state at it. Chunks are counted as they are cut, and never stored.

    Parameters
    ----------
    episodes
        :class:`robocache.Episodes`.
    tracks
        Names; None: all with values.
    quantiles
        Levels from 0 to 1.
    per_episode
        Separate statistics for each episode: arrays [E,D] and quantiles [E,Q,D].
    relative
        Number of rows per chunk; None: statistics of the values themselves.
    to
        With ``relative``: by action track, the track of the state; None: {"action":
        "observation.state"}. Both need the same channels; otherwise use
        :meth:`robocache.WindowSpec.statistics` with transforms.
    rows
        With ``relative``: "whole" uses chunks entirely within their episode (LeRobot, GR00T),
        "valid" the rows within it, "all" all rows, repeating the last one (openpi).
    per_step
        With ``relative``: separate statistics for each row of a chunk, arrays [H,D].

    Returns
    -------
    dict
        :class:`robocache.StatisticsResult` by track, the input of
        :mod:`robocache.statistics_files`.
    """
    if not isinstance(episodes, Episodes):
        kind = type(episodes).__name__
        raise TypeError(f"episodes: is a {kind}, expected robocache.Episodes")
    if relative is not None:
        if tracks is not None or per_episode:
            raise ValueError("relative: cannot be combined with tracks or per_episode; use to")
        return _relative(
            episodes, count(relative, "relative"), dict(to or _RELATIVE), rows, per_step, quantiles
        )
    names = [n for n, t in episodes.tracks.items() if t.values is not None]
    results = {}
    for name in names if tracks is None else tracks:
        track = episodes[name]
        if track.values is None:
            raise ValueError(f"tracks: {printable(name)} has no values: they are in files")
        results[name] = exact_of(track, quantiles=quantiles, per_episode=per_episode)
    return results


def _relative(
    episodes: Episodes,
    horizon: int,
    to: Mapping[str, str],
    rows: Accumulate,
    per_step: bool,
    quantiles: Sequence[float],
) -> dict[str, StatisticsResult]:
    """Return statistics of chunks minus the state at their first row."""
    results = {}
    for name, state in to.items():
        count, other = episodes[name].num_channels, episodes[state].num_channels
        if count != other:
            raise ValueError(
                f"to: {name} has {count} channels, but {state} has {other}; use a WindowSpec "
                "with transforms that match the channels"
            )
        less = Transform("subtract", 0, count, reference=("state", 0))
        spec = WindowSpec(
            {
                "state": Window([0], track=state),
                "chunk": Window(range(horizon), track=name, transforms=[less]),
            }
        )
        found = spec.statistics(episodes, rows=rows, per_step=per_step, quantiles=quantiles)
        results[name] = found["chunk"]
    return results
