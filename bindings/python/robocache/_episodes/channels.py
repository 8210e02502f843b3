"""Meanings of channels: a number, a part of a quaternion, an angle, a step."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

KINDS = (
    *("number", "quaternion", "rotation_vector", "euler", "matrix", "rot6d", "pose_3x4"),
    *("pose_4x4", "angle", "step", "covariance"),
)
SOURCES = ("caller", "file", "names", "values")
PERIODS = {"rad": 6.283185307179586, "deg": 360.0, "turn": 1.0}  # of angles, by unit


@dataclass(frozen=True)
class Channel:
    """The name, the kind and the unit of one channel."""

    name: str
    kind: str  #: "number", "quaternion", "angle", "step", ...
    unit: str | None = None  #: such as "rad", "deg" or "m"; None: unknown


@dataclass(frozen=True)
class Group:
    """Channels that have a meaning together, such as the four of a quaternion."""

    kind: str
    columns: tuple[int, ...]  # in the order of their roles: x y z w of a quaternion
    unit: str | None = None  # of angles: "rad", "deg" or "turn"
    form: str = ""  # the axes of "euler"; "rows", "columns" or "interleaved" of matrices
    positive: tuple[bool, ...] = ()  # for each angle: in [0, P) instead of [-P/2, P/2)
    source: str = "values"  # one of SOURCES
    evidence: str = ""  # the reason for its kind

    def moved(self, places: dict[int, int]) -> Group | None:
        """Return the group with renumbered columns; None if one of them is not in ``places``."""
        if not all(column in places for column in self.columns):
            return None
        return dataclasses.replace(self, columns=tuple(places[c] for c in self.columns))


def chosen_groups(groups: Iterable[Group], columns: Sequence[int]) -> tuple[Group, ...]:
    """Return the groups of some columns. An incomplete rotation becomes numbers."""
    places = {column: place for place, column in enumerate(columns)}
    chosen: list[Group] = []
    for group in groups:
        if group.kind in ("number", "step", "covariance"):
            left = tuple(places[c] for c in group.columns if c in places)
            if left:
                chosen.append(dataclasses.replace(group, columns=left))
            continue
        moved = group.moved(places)
        if moved is not None:
            chosen.append(moved)
            continue
        left = tuple(places[c] for c in group.columns if c in places)
        if left:
            text = f"{group.kind} without some of its channels"
            chosen.append(Group("number", left, source=group.source, evidence=text))
    return tuple(sorted(chosen, key=lambda group: min(group.columns)))


def channels_of(
    groups: Iterable[Group], names: Sequence[str], units: Sequence[str | None]
) -> tuple[Channel, ...]:
    """Return a channel for each name; ``units`` are the units in the names, or None."""
    kinds: list[tuple[str, str | None]] = [("number", None)] * len(names)
    for group in groups:
        for column in group.columns:
            kinds[column] = (group.kind, group.unit)
    return tuple(
        Channel(name, kind, unit or own) for name, (kind, unit), own in zip(names, kinds, units)
    )
