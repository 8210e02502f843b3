"""The tracks that hold the state and the action, and windows of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any, Optional

import typer

from .. import Transform, Window, WindowSpec
from .._episodes.episodes import make_episodes
from .._printable import printable
from .._suggestions import did_you_mean
from ..data import Episodes, Recording
from ..data._align_rules import require_sure
from ..data._checks.unread import has_something, nothing_to
from ..data._kinds.selectors import ALL, split
from ..data._kinds.tracks import kinds_of_track
from ..data._selection import narrowed_track
from ._common import Failure

StateTrack = Annotated[
    Optional[str], typer.Option(help="The track of states.", metavar="TRACK[:CHANNELS]")
]
ActionTrack = Annotated[
    Optional[str], typer.Option(help="The track of actions.", metavar="TRACK[:CHANNELS]")
]
_STATES = ("observation.state", "state", "obs/joint_pos", "observations/qpos")
MOST_STEPS = 10_000  # per window
_ACTIONS = ("action", "actions")


def state_and_action(
    source: Any, state: str | None, action: str | None, option: str
) -> tuple[Episodes, str, str]:
    """Return episodes with the track of states and the one of actions, and the names of the two.

    They are the requested tracks, or the usual ones. Two parts of one track are two tracks, whose
    names say their channels.
    """
    if not isinstance(source, Episodes):
        raise Failure(f"{option} works on data sets with episodes. {_what_is(source)}")
    known = [name for name in source.tracks if source.track_info(name).channels]
    if not known:
        raise Failure(f"{option}: this data set has no track with values")
    found = []
    for asked, usual, what in ((state, _STATES, "--state"), (action, _ACTIONS, "--action")):
        own = split(asked, known) if asked is not None else None
        if own is None and asked is None:
            own = next(((name, ALL) for name in usual if name in known), None)
        if own is None:
            kind = "states" if what == "--state" else "actions"
            if asked is None:
                names_of = " or ".join(filter(None, (", ".join(known[:-1]), known[-1])))
                raise Failure(f"{what}: say which track holds the {kind}: {names_of}")
            text = f"{what} {asked}: no such track, expected one of {', '.join(known)}"
            raise Failure(text + did_you_mean(asked, known))
        found.append(own)
    (first, mine), (second, theirs) = found
    picked = source.select(tracks=list(dict.fromkeys((first, second))))
    if mine == theirs == ALL:
        return picked, first, second
    parted = first == second and mine != theirs  # two parts of one track
    tracks = {}
    for name, channels, what in ((first, mine, "--state"), (second, theirs, "--action")):
        label = f"{name}:{channels}" if parted and channels != ALL else name
        whole = picked[name]
        tracks[label] = whole if channels == ALL else narrowed_track(whole, name, [channels], what)
    made = make_episodes(tracks, tasks=picked.tasks, source=picked.source, about=picked._about)
    labels = [*tracks, *tracks]
    return made, labels[0], labels[1]


def _what_is(source: Any) -> str:
    """Return a sentence about data without episodes, and how to make episodes from them."""
    if not isinstance(source, Recording):
        return "This is a point cloud"
    if not has_something(source):
        return f"This is a recording ({source.format}). There is {nothing_to('resample', source)}"
    way = f"robocache resample {source.path or 'PATH'} --rate 30 -o FOLDER"
    return f"This is a recording ({source.format}): make a data set of it with {way}"


def action_windows(
    source: Episodes,
    state: str,
    action: str,
    steps: int,
    history: Sequence[int],
    absolute: str | None,
    relative: bool,
    mask: Sequence[bool] | None = None,
) -> WindowSpec:
    """Return the spec of states, and actions from the anchor on, optionally minus its state.

    ``mask``: the channels from which the state's channel of the same index is subtracted, as in
    openpi; None: all except ``absolute``, by name if the names match.
    """
    transforms = []
    if relative and mask is not None:
        transforms = _masked(source, state, action, mask)
    elif relative:
        transforms = _relative(source, state, action, absolute)
    return WindowSpec(
        {
            "state": Window(history, track=state),
            "action": Window(range(steps), track=action, transforms=transforms),
        }
    )


def _masked(source: Episodes, state: str, action: str, mask: Sequence[bool]) -> list[Transform]:
    """Subtract the channels of the state where the mask is true."""
    for name in (action, state):
        channels = source.track_info(name).channels
        if len(mask) > channels:
            raise Failure(f"--delta-mask: covers {len(mask)} channels, but {name} has {channels}")
    edges = [i for i in range(len(mask) + 1) if (i and mask[i - 1]) != (mask[i : i + 1] == [True])]
    return [
        Transform("subtract", begin, end - begin, reference=("state", -1), reference_begin=begin)
        for begin, end in zip(edges[::2], edges[1::2])
    ]


def absolute_of(source: Episodes, action: str, mask: Sequence[bool]) -> str:
    """Return the channels that a mask leaves absolute, as --absolute takes them."""
    info = source.track_info(action)
    names = info.names or tuple(str(i) for i in range(info.channels))
    return ",".join(n for i, n in enumerate(names) if i >= len(mask) or not mask[i])


def _relative(source: Episodes, state: str, action: str, absolute: str | None) -> list[Transform]:
    """Subtract from each channel the state channel of the same name, else of the same index."""
    mine, theirs = source.track_info(action), source.track_info(state)
    same = mine.names is not None and theirs.names is not None
    by_name = same and set(mine.names or ()) <= set(theirs.names or ())
    if not by_name and mine.channels != theirs.channels:
        raise Failure(
            f"--relative: {action} has {mine.channels} channels and {state} has "
            f"{theirs.channels}, and their names do not match"
        )
    names = mine.names or tuple(str(i) for i in range(mine.channels))
    kept = [part for part in (absolute or "").split(",") if part]
    for part in kept:
        if part not in names and not (part.isdigit() and int(part) < mine.channels):
            raise Failure(
                f"--absolute {part}: track {action} has no such channel, expected one "
                f"of {', '.join(names)}{did_you_mean(part, names)}"
            )
    state_index = (theirs.names or ()).index
    runs: list[list[int]] = []  # begin, begin in the state, count
    for c in range(mine.channels):
        if names[c] in kept or str(c) in kept:
            continue
        reference = state_index(names[c]) if by_name else c
        if runs and runs[-1][0] + runs[-1][2] == c and runs[-1][1] + runs[-1][2] == reference:
            runs[-1][2] += 1
        else:
            runs.append([c, reference, 1])
    return [
        Transform("subtract", begin, count, reference=("state", -1), reference_begin=reference)
        for begin, reference, count in runs
    ]


def require_kinds(source: Episodes, action: str, absolute: str | None) -> None:
    """Raise if a channel that --relative subtracts may be a quaternion.

    Rotations and angles, which --relative subtracts as numbers, cause a warning.
    """
    kept = {part for part in (absolute or "").split(",") if part}
    track = source[action]
    kinds = kinds_of_track(track, action)
    labels = track.names or tuple(str(i) for i in range(track.num_channels))
    doubtful = [group for group in kinds.candidates if not kept.issuperset(_names(group, labels))]
    for group in kinds.groups:
        shown = [label for label in _names(group, labels) if label not in kept]
        if group.kind not in ("number", "step", "covariance") and shown:
            text = f"{action}: {', '.join(shown)}: kind {group.kind}, but --relative subtracts "
            text += f"channel by channel. To exclude them: --absolute {','.join(shown)}"
            print(f"robocache: warning: {printable(text)}", file=sys.stderr)
    require_sure({action: doubtful}, {action: track.names})


def _names(group: Any, labels: Sequence[str]) -> list[str]:
    return [labels[column] for column in group.columns]
