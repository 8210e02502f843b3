"""What is computed of episodes: reports, statistics."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from .. import Stream, Track, report
from .. import statistics as exact

if TYPE_CHECKING:
    from .. import Report, StatisticsResult
    from ._episodes import Episodes

LEVELS = (0.01, 0.1, 0.5, 0.9, 0.99)


def host_of(array: Any) -> Any:
    """An array on the CPU, as NumPy has it."""
    import numpy as np

    if hasattr(array, "get"):  # CuPy's
        return array.get()
    return array.cpu().numpy() if hasattr(array, "cpu") else np.asarray(array)


def report_of(episodes: Episodes, unit: str | None) -> Report:
    """:func:`robocache.report` of all tracks with times."""
    import numpy as np

    told = {}
    for name, track in episodes.tracks.items():
        if track.times is None or track.num_rows == 0:
            continue
        times = host_of(track.times)
        if track.time_unit is not None:
            times = times.view(track.time_unit.partition(",")[0].rstrip("]") + "]")
        offsets = host_of(track.episode_offsets)
        told[name] = Stream(np.zeros((len(times), 0), np.float32), times, offsets=offsets)
    if not told:
        raise ValueError("episodes: no track has times")
    return report(told, unit=unit or episodes.unit)


def exact_of(
    track: Track, *, quantiles: Sequence[float] = LEVELS, per_episode: bool = False
) -> StatisticsResult:
    """The statistics of a track's values."""
    offsets = track.episode_offsets if per_episode else None
    return exact(track.values, quantiles=quantiles, offsets=offsets, per_row=per_episode)


def statistics(
    episodes: Episodes,
    tracks: Collection[str] | None = None,
    *,
    quantiles: Sequence[float] = LEVELS,
    per_episode: bool = False,
) -> dict[str, StatisticsResult]:
    """Exact statistics of the tracks of episodes, where they lie: :func:`robocache.statistics`.

    Parameters
    ----------
    episodes
        :class:`~robocache.data.Episodes`.
    tracks
        Names; None: all with values.
    quantiles
        Levels from 0 to 1.
    per_episode
        Of each episode by itself: arrays [E,D] and quantiles [E,Q,D].

    Returns
    -------
    dict
        :class:`robocache.StatisticsResult` by track, as :mod:`robocache.statistics_files` writes
        them.
    """
    names = [n for n, t in episodes.tracks.items() if t.values is not None]
    told = {}
    for name in names if tracks is None else tracks:
        track = episodes[name]
        if track.values is None:
            raise ValueError(f"tracks: {name} has no values: they are in files")
        told[name] = exact_of(track, quantiles=quantiles, per_episode=per_episode)
    return told
