"""Recordings and episodes with some of their streams and channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import Track
from .._episodes.episodes import Episodes, make_episodes
from ._kinds.kinds import kept_kinds
from ._kinds.names import labels_of
from ._kinds.selectors import ALL, columns_of_all
from ._kinds.tracks import kinds_of_track, with_kinds
from ._recording import Recording


def selected(source: Any, wanted: Mapping[str, Sequence[str]], where: str = "streams") -> Any:
    """Return a recording, or episodes, with some streams and some of their channels.

    ``wanted``: selectors of channels by stream. If one is not "*", the streams are read.
    """
    parts = {name: own for name, own in wanted.items() if ALL not in own}
    if isinstance(source, Episodes):
        made = source.select(tracks=list(wanted))
        return narrowed_episodes(made, parts, where) if parts else made
    recording: Recording = source
    if not parts:
        return recording.select(list(wanted))
    recording.load(list(wanted))
    channels = {}
    for name, own in parts.items():
        names = recording[name].names
        columns = columns_of_all(own, names, len(names), f"{where} {name}", name)
        channels[name] = [names[column] for column in columns]
    return recording.select(list(wanted), channels=channels)


def narrowed_episodes(
    episodes: Episodes, parts: Mapping[str, Sequence[str]], where: str
) -> Episodes:
    """Return episodes in which some tracks have only the selected channels."""
    tracks = dict(episodes.load().tracks)
    for name, own in parts.items():
        tracks[name] = narrowed_track(tracks[name], name, own, where)
    return make_episodes(
        tracks, tasks=episodes.tasks, source=episodes.source, about=episodes._about
    )


def narrowed_track(track: Track, name: str, selectors: Sequence[str], where: str) -> Track:
    """Return a track with the selected channels, which keep their kinds."""
    if track.values is None:
        raise ValueError(f"{where} {name}: is a video, which has no channels")
    width = track.num_channels
    columns = columns_of_all(selectors, track.names, width, f"{where} {name}", name)
    labels = labels_of(name, track.names, width)
    kinds = kept_kinds(kinds_of_track(track, name), name, labels, columns, True)
    names = None if track.names is None else tuple(track.names[c] for c in columns)
    made = Track(track.values[:, columns], track.episode_offsets, names=names, files=track.files)
    return with_kinds(made._with(times=track.times, _unit=track._unit), name, kinds)
