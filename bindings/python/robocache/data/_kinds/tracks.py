"""The kinds of a track's channels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ... import Track
from ..._arguments.to_numpy import on_host
from ..._episodes.channels import Channel
from .kinds import KindFinder, Kinds, channels_in, redeclared
from .names import labels_of

_LABEL, _DECLARED, _KINDS = "_label", "_declared", "_kinds"  # attributes of a track


def channels_of_track(track: Track) -> tuple[Channel, ...]:
    if track.values is None:
        return ()
    name = track.__dict__.get(_LABEL, "")
    labels = track.names or labels_of(name, None, track.num_channels)
    return channels_in(kinds_of_track(track, name), labels)


def kinds_of_track(track: Track, name: str) -> Kinds:
    """Return the groups of a track's channels, and cache them on the track."""
    known = known_kinds(track, name)
    if known is not None:
        return known
    values = on_host(track.values)
    finder = KindFinder(
        name,
        track.names,
        dtypes_of(track),
        declared=declared_in(track),
        rows=track.num_rows,
    )
    finder.add(values, begins_of(track))
    kinds = finder.found()
    track.__dict__[_LABEL], track.__dict__[_KINDS] = name, kinds
    return kinds


def known_kinds(track: Track, name: str) -> Kinds | None:
    """Return the cached kinds of a track's channels; None if they are not known yet."""
    known: Kinds | None = track.__dict__.get(_KINDS)
    return known if track.__dict__.get(_LABEL, name) == name else None


def dtypes_of(track: Track) -> list[str]:
    """Return the dtype of each channel."""
    return [str(on_host(track.values).dtype)] * track.num_channels


def declared_in(track: Track) -> Mapping[str, str]:
    """Return the kinds declared for a track, by channels."""
    declared: Mapping[str, str] = track.__dict__.get(_DECLARED) or {}
    return declared


def begins_of(track: Track) -> Any:
    """Return a mask [n] of the rows where an episode begins."""
    import numpy as np

    begins = np.zeros(track.num_rows, bool)
    cuts = on_host(track.episode_offsets)[:-1]
    begins[cuts[cuts < len(begins)]] = True
    return begins


def labelled(track: Track, name: str, declared: Mapping[str, str] | None = None) -> Track:
    """Return the track with its name and its declared kinds."""
    if declared and track.__dict__.get(_KINDS) is not None and track.values is not None:
        values = on_host(track.values)
        known = track.__dict__[_KINDS]
        kinds = redeclared(known, name, track.names, dtypes_of(track), values, declared)
        return with_kinds(track, name, kinds)
    if not declared and track.__dict__.get(_LABEL) == name:
        return track
    own = {**declared_in(track), **(declared or {})}
    return track._with(**{_LABEL: name, _DECLARED: own, _KINDS: None})


def with_kinds(track: Track, name: str, kinds: Kinds) -> Track:
    """Return the track with known kinds."""
    return track._with(**{_LABEL: name, _KINDS: kinds})
