"""Which tracks are the state and the action, and windows of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import Transform, Window, WindowSpec
from ..data import Episodes
from .common import Failure

_STATES = ("observation.state", "state", "obs/joint_pos", "observations/qpos")
MOST_STEPS = 10_000  # of a window
_ACTIONS = ("action", "actions")


def state_and_action(
    given: Any, state: str | None, action: str | None, option: str
) -> tuple[str, str]:
    """The names of the tracks: as they were asked for, or as data sets mostly have them."""
    if not isinstance(given, Episodes):
        raise Failure(
            f"{option}: takes episodes, and this is {getattr(given, 'format', 'a point cloud')}"
        )
    known = [name for name in given.tracks if given.track_info(name).channels]
    found = []
    for asked, usual, what in ((state, _STATES, "--state"), (action, _ACTIONS, "--action")):
        names = [asked] if asked is not None else [name for name in usual if name in known]
        if not names or names[0] not in known:
            raise Failure(f"{what}: {asked or 'is not told'}, expected one of {', '.join(known)}")
        found.append(names[0])
    return found[0], found[1]


def action_windows(
    given: Episodes,
    state: str,
    action: str,
    steps: int,
    history: Sequence[int],
    absolute: str | None,
    relative: bool,
) -> WindowSpec:
    """States at some rows, and actions from the anchor on: relative to its state, if so asked."""
    transforms = _relative(given, state, action, absolute) if relative else []
    return WindowSpec(
        {
            "state": Window(history, track=state),
            "action": Window(range(steps), track=action, transforms=transforms),
        }
    )


def _relative(given: Episodes, state: str, action: str, absolute: str | None) -> list[Transform]:
    """Each channel less that of the state of its name; by their order where names differ."""
    mine, theirs = given.track_info(action), given.track_info(state)
    same = mine.names is not None and theirs.names is not None
    by_name = same and set(mine.names or ()) <= set(theirs.names or ())
    if not by_name and mine.channels != theirs.channels:
        raise Failure(
            f"--relative: {action} has {mine.channels} channels and {state} {theirs.channels}, "
            "and their names do not tell which goes with which"
        )
    names = mine.names or tuple(str(i) for i in range(mine.channels))
    kept = [part for part in (absolute or "").split(",") if part]
    for part in kept:
        if part not in names and not (part.isdigit() and int(part) < mine.channels):
            raise Failure(f"--absolute: {action} has no channel {part}, but {', '.join(names)}")
    of = (theirs.names or ()).index
    runs: list[list[int]] = []  # begin, begin in the state, count
    for c in range(mine.channels):
        if names[c] in kept or str(c) in kept:
            continue
        reference = of(names[c]) if by_name else c
        if runs and runs[-1][0] + runs[-1][2] == c and runs[-1][1] + runs[-1][2] == reference:
            runs[-1][2] += 1
        else:
            runs.append([c, reference, 1])
    return [
        Transform("subtract", begin, count, reference=("state", -1), reference_begin=reference)
        for begin, reference, count in runs
    ]
