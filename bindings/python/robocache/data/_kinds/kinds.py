"""The kinds of a stream's channels: from the caller, the file, names and values, or values."""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._episodes.channels import PERIODS, Channel, Group, channels_of, chosen_groups
from ..._printable import plural, printable
from .._findings import Finding
from .declared import declared_groups
from .names import (
    DEGREE_WORDS,
    LONGITUDE_WORDS,
    Guess,
    labels_of,
    unit_of,
    unplaced_vectors,
    words_of,
)
from .values import NAMED_LENGTH, Facts, Range

_NEAR = 1e-6  # of a turn
_WIDE = 0.75  # of a turn: a range this wide shows where angles wrap
_SOME = 0.5  # of the rows have unit length: below, the names are wrong; above, it is doubtful
_OBJECT = re.compile(r"(^|/)(obs|next_obs|observations)/object(_state|-state)?$")
_COUNTS = frozenset(("enc", "encoder", "encoders", "ticks", "tick", "count", "counts"))


@dataclass(frozen=True)
class Said:
    """A kind that a file states for some channels, by their names."""

    kind: str
    names: tuple[str, ...]  # in the order of their roles
    evidence: str
    unit: str | None = None


@dataclass(frozen=True)
class Kinds:
    """The groups of all channels of a stream, and what is doubtful about them."""

    groups: tuple[Group, ...]
    candidates: tuple[Group, ...] = ()  # possible quaternions; in ``groups`` they are numbers
    findings: tuple[Finding, ...] = field(default=())


class KindFinder:
    """Determine the kinds of a stream's channels from its pieces."""

    def __init__(
        self,
        name: str,
        names: Sequence[str] | None,
        dtypes: Sequence[str],
        *,
        type: str = "",
        said: Sequence[Said] = (),
        declared: Mapping[str, str] | None = None,
        rows: int | None = None,
    ) -> None:
        self.name, self.names, self.dtypes = name, names, tuple(dtypes)
        self.labels = labels_of(name, names, len(self.dtypes))
        self.known = declared_groups(name, declared or {}, names, dtypes)
        taken = {column for group in self.known for column in group.columns}
        for group in _groups_said(said, names):
            if taken.isdisjoint(group.columns):
                self.known.append(group)
                taken.update(group.columns)
        ranged = {c for g in self.known if g.kind in ("angle", "euler") for c in g.columns}
        joints = type.endswith("/JointState")
        four = [group.columns for group in self.known if group.kind == "quaternion"]
        self.facts = Facts(name, names, dtypes, taken, ranged, four, joints, rows)

    def add(self, values: Any, begins: Any = None) -> None:
        """Add the next samples [n,D]; ``begins`` [n]: where an episode begins."""
        self.facts.add(values, begins)

    def found(self) -> Kinds:
        """Return the kinds, after the last piece."""
        groups: list[Group] = []
        findings: list[Finding] = []
        doubtful: list[Group] = []
        self.ranges = self.facts.ranges
        for group in self.known:
            groups.append(self._with_range(group))
        taken = {column for group in groups for column in group.columns}
        for guess in self.facts.guesses:
            if taken.isdisjoint(guess.columns):
                for group in self._confirmed(guess, findings, doubtful):
                    groups.append(group)
                    taken.update(group.columns)
        in_doubt = taken | {column for group in doubtful for column in group.columns}
        for begin, rows in self.facts.candidates.found(in_doubt):
            columns = tuple(range(begin, begin + 4))
            if _OBJECT.search(self.name):
                text = f"poses of objects in robomimic's layout; length 1 in {rows} rows"
                groups.append(Group("quaternion", columns, source="names", evidence=text))
                taken.update(columns)
            else:
                text = f"length 1 within 0.001 in {rows} rows"
                doubtful.append(Group("quaternion", columns, source="values", evidence=text))
        findings += candidate_findings(self.name, self.names, len(self.dtypes), doubtful)
        findings += self._vectors(taken) + self._counts(taken)
        groups += self._rest(taken)
        groups.sort(key=lambda group: min(group.columns))
        return Kinds(tuple(groups), tuple(doubtful), tuple(findings))

    # ---- quaternions and rotation vectors -------------------------------------------------------

    def _confirmed(
        self, guess: Guess, findings: list[Finding], doubtful: list[Group]
    ) -> list[Group]:
        """Return the groups that the values confirm."""
        if guess.kind == "quaternion":
            return self._quaternion(guess, findings, doubtful)
        if guess.kind == "rotation_vector":
            return self._rotation_vector(guess, findings)
        if guess.kind == "euler":
            return self._euler(guess, findings)
        group = self._angle(guess.columns[0], guess.unit, guess.joint, findings)
        return [] if group is None else [group]

    def _quaternion(
        self, guess: Guess, findings: list[Finding], doubtful: list[Group]
    ) -> list[Group]:
        lengths = self.facts.lengths[guess.columns]
        text = _text(
            guess.evidence, f"length 1 in {lengths.rows - lengths.off} of {lengths.rows} rows"
        )
        group = Group("quaternion", guess.columns, source="names", evidence=text)
        if lengths.is_unit:
            return [group]
        if guess.sure and lengths.rows:
            if lengths.off < _SOME * lengths.rows:
                doubtful.append(group)
            else:
                text = (
                    f"the names say a quaternion, but {lengths.off} of {lengths.rows} rows differ "
                    f"from length 1 by more than {NAMED_LENGTH:g}"
                )
                where = self._as_numbers(guess.columns, text)
                findings.append(Finding("warning", "quaternion", *where))
        return []

    def _rotation_vector(self, guess: Guess, findings: list[Finding]) -> list[Group]:
        lengths = self.facts.lengths[guess.columns]
        unit = guess.unit or "rad"
        if unit not in PERIODS or lengths.rows == 0:
            return []
        if lengths.longest > PERIODS[unit] * (1 + _NEAR):
            text = (
                f"the names say a rotation vector, but its length goes up to {lengths.longest:.4g}"
                f" {unit}, more than a turn"
            )
            where = self._as_numbers(guess.columns, text)
            findings.append(Finding("warning", "rotation_vector", *where))
            return []
        text = _text(guess.evidence, f"length up to {lengths.longest:.4g} {unit}")
        return [Group("rotation_vector", guess.columns, unit, source="names", evidence=text)]

    def _vectors(self, taken: set[int]) -> list[Finding]:
        """Warn about rx, ry, rz without a position."""
        text = "may be a rotation vector or Euler angles"
        return [
            Finding("warning", "rotation_vector", *self._as_numbers(columns, text))
            for columns in unplaced_vectors(self.name, self.names, len(self.dtypes))
            if taken.isdisjoint(columns)
        ]

    def _as_numbers(self, columns: Sequence[int], text: str) -> tuple[str, str, str]:
        """Return the stream, the place and the text of a finding."""
        return self.name, self._place(columns), f"{text}: interpolated as numbers"

    # ---- angles ---------------------------------------------------------------------------------

    def _euler(self, guess: Guess, findings: list[Finding]) -> list[Group]:
        """Return roll, pitch and yaw as one group if in one unit, else separately."""
        ranges = [self.ranges[column] for column in guess.columns]
        if guess.unit is not None:
            unit: str | None = guess.unit
        else:
            unit = next((u for u in ("rad", "deg") if _all_in(ranges, u)), None)
        if unit is not None:
            turns = [_turn_of(angles, unit) for angles in ranges]
            if all(turn is not None for turn in turns):
                positive = tuple(bool(turn) for turn in turns)
                text = _text(guess.evidence, "values within a turn")
                return [Group("euler", guess.columns, unit, "", positive, "names", text)]
        found = [self._angle(column, guess.unit, False, findings) for column in guess.columns]
        return [group for group in found if group is not None]

    def _angle(
        self, column: int, unit: str | None, joint: bool, findings: list[Finding]
    ) -> Group | None:
        angles, label = self.ranges[column], self.labels[column]
        if angles.low > angles.high:
            return None
        words = set(words_of(label))
        degrees = not words.isdisjoint(DEGREE_WORDS)
        if unit is None and not words.isdisjoint(LONGITUDE_WORDS) and not angles.whole["rad"]:
            unit = "deg"
        for tried in (unit,) if unit is not None else ("rad", "deg"):
            turn = _turn_of(angles, tried)
            if turn is None:
                continue
            jumps = angles.whole[tried] and not angles.half[tried]
            sure = unit is not None or degrees and tried == "deg" or _reaches_ends(angles, tried)
            if (
                joint
                and jumps
                or not joint
                and (sure or tried == "rad" and _is_smooth(angles, tried))
            ):
                if tried == "deg" and unit is None and not degrees and not angles.whole[tried]:
                    continue
                text = f"values from {angles.low:.4g} to {angles.high:.4g}"
                text += f", {plural(angles.whole[tried], 'jump')} by about a turn" if jumps else ""
                return Group("angle", (column,), tried, "", (turn,), "names", text)
        if not joint:
            text = f"values from {angles.low:.4g} to {angles.high:.4g} are not within one turn"
            if unit is None and _turn_of(angles, "deg") is not None:
                text = f"values from {angles.low:.4g} to {angles.high:.4g} of an angle in an "
                text += "unknown unit"
            text += ": interpolated as numbers"
            findings.append(Finding("note", "angle_range", self.name, label, text))
        return None

    def _with_range(self, group: Group) -> Group:
        """Add the range that the values show to a declared angle."""
        if group.kind not in ("angle", "euler"):
            return group
        unit = group.unit or unit_of(self.labels[group.columns[0]])
        unit = unit if unit in PERIODS else "rad"
        positive = []
        for column in group.columns:
            angles = self.ranges[column]
            turn = False if angles.low > angles.high else _turn_of(angles, unit)
            declared = group.positive[0] if group.positive else None
            if group.kind == "euler" and group.form:  # converted to quaternions: any angles
                positive.append(bool(turn))
                continue
            if turn is None or (declared and angles.low < 0):
                what = "less than 0" if turn is not None else f"more than one turn in {unit}"
                raise ValueError(
                    f"kinds: {printable(self.name)}:{self.labels[column]} is {group.evidence}, "
                    f"but its values go from {angles.low:.6g} to {angles.high:.6g}, {what}"
                )
            positive.append(bool(turn) if declared is None else declared)
        return Group(
            group.kind, group.columns, unit, group.form, tuple(positive), group.source,
            group.evidence,
        )  # fmt: skip

    # ---- the others -----------------------------------------------------------------------------

    def _counts(self, taken: set[int]) -> list[Finding]:
        counts = [
            column
            for column, dtype in enumerate(self.dtypes)
            if dtype[:1] in "iu" and column not in taken and self._says_count(column)
        ]
        if not counts:
            return []
        text = "integer counts keep the previous value; kind `number` interpolates them"
        return [Finding("note", "counts", self.name, self._place(counts), text)]

    def _says_count(self, column: int) -> bool:
        return not _COUNTS.isdisjoint(words_of(self.labels[column]))

    def _rest(self, taken: set[int]) -> list[Group]:
        """Group the other channels into runs of numbers and of steps."""
        groups: list[tuple[str, str, list[int]]] = []
        for column, dtype in enumerate(self.dtypes):
            if column in taken:
                continue
            kind = "number" if dtype.startswith("float") else "step"
            text = "floats" if kind == "number" else "bool" if dtype == "bool" else "integers"
            if groups and groups[-1][:2] == (kind, text) and groups[-1][2][-1] == column - 1:
                groups[-1][2].append(column)
            else:
                groups.append((kind, text, [column]))
        return [
            Group(kind, tuple(columns), source="file", evidence=text)
            for kind, text, columns in groups
        ]

    def _place(self, columns: Sequence[int]) -> str:
        return ", ".join(self.labels[column] for column in columns)


def _text(*parts: str) -> str:
    return "; ".join(part for part in parts if part)


def _groups_said(said: Sequence[Said], names: Sequence[str] | None) -> list[Group]:
    if not said or names is None:
        return []
    place = {name: i for i, name in enumerate(names)}
    found = []
    for each in said:
        if all(name in place for name in each.names):
            columns = tuple(place[name] for name in each.names)
            found.append(Group(each.kind, columns, each.unit, "", (), "file", each.evidence))
    return found


def kind_option(stream: str, names: Sequence[str] | None, group: Group) -> str:
    """Return an option to paste on the command line: --kind 'imu:q[0]-q[3]=quaternion'."""
    columns = list(group.columns)
    if sorted(columns) == list(range(min(columns), min(columns) + len(columns))):
        columns.sort()
    shown = [names[c] if names is not None else str(c) for c in columns]
    run = columns == list(range(columns[0], columns[0] + len(columns)))
    channels = f"{shown[0]}-{shown[-1]}" if run else ",".join(shown)
    return f"--kind {shlex.quote(f'{stream}:{channels}=quaternion')}"


# ---- ranges of angles ---------------------------------------------------------------------------


def _turn_of(angles: Range, unit: str) -> bool | None:
    """Whether values are in [0, P) rather than [-P/2, P/2); None if in neither.

    If none is negative, a value of P/2 belongs to the former.
    """
    period = PERIODS[unit]
    half, whole = period / 2 * (1 + _NEAR), period * (1 + _NEAR)
    if angles.low < 0:
        return False if angles.low >= -half and angles.high <= half else None
    if angles.high >= period / 2 * (1 - _NEAR):
        return True if angles.high <= whole else None
    return False


def _is_smooth(angles: Range, unit: str) -> bool:
    return not angles.half[unit] and not angles.whole[unit]


def _reaches_ends(angles: Range, unit: str) -> bool:
    """Whether values come near the ends of a turn, which other values rarely do."""
    turn = _turn_of(angles, unit)
    end = PERIODS[unit] * (1.0 if turn else 0.5)
    return max(abs(angles.low), abs(angles.high)) >= _WIDE * end


def _all_in(ranges: Sequence[Range], unit: str) -> bool:
    """Whether all values are within a turn of a unit; for degrees, a jump must confirm it."""
    if any(angles.low > angles.high or _turn_of(angles, unit) is None for angles in ranges):
        return False
    if unit == "deg":
        return any(angles.whole["deg"] for angles in ranges)
    return all(_is_smooth(angles, unit) or _reaches_ends(angles, unit) for angles in ranges)


# ---- whole streams ------------------------------------------------------------------------------


def channels_in(kinds: Kinds, labels: Sequence[str]) -> tuple[Channel, ...]:
    return channels_of(kinds.groups, labels, [unit_of(label) for label in labels])


def kept_kinds(
    kinds: Kinds, name: str, names: Sequence[str], columns: Sequence[int], asked: bool
) -> Kinds:
    """Return the kinds of some columns; a covariance requested by name becomes a number."""
    groups = chosen_groups(kinds.groups, columns)
    if asked:
        groups = tuple(
            dataclasses.replace(group, kind="number", source="caller", evidence="requested by name")
            if group.kind == "covariance"
            else group
            for group in groups
        )
    places = {column: place for place, column in enumerate(columns)}
    moved = [group.moved(places) for group in kinds.candidates]
    candidates = tuple(group for group in moved if group is not None)
    findings = _findings_of(kinds, name, names, columns)
    chosen = [names[column] for column in columns]
    return Kinds(
        groups,
        candidates,
        (*findings, *candidate_findings(name, chosen, len(chosen), candidates)),
    )


def _findings_of(
    kinds: Kinds, name: str, names: Sequence[str] | None, columns: Collection[int]
) -> tuple[Finding, ...]:
    """Return the findings about some columns, except those about candidates."""
    labels = labels_of(name, names, sum(len(group.columns) for group in kinds.groups))
    others = set(labels) - {labels[column] for column in columns}
    return tuple(
        finding
        for finding in kinds.findings
        if finding.kind != "quaternion_candidate"
        and not others.issuperset(finding.place.split(", "))
    )


def redeclared(
    kinds: Kinds,
    name: str,
    names: Sequence[str] | None,
    dtypes: Sequence[str],
    values: Any,
    declared: Mapping[str, str],
) -> Kinds:
    """Return the kinds after another declaration for some channels."""
    finder = KindFinder(name, names, dtypes, declared=declared)
    finder.add(values)
    own = [group for group in finder.found().groups if group.source == "caller"]
    taken = {column for group in own for column in group.columns}
    left = [column for column in range(len(dtypes)) if column not in taken]
    back = dict(enumerate(left))
    moved = [group.moved(back) for group in chosen_groups(kinds.groups, left)]
    groups = own + [group for group in moved if group is not None]
    groups.sort(key=lambda group: min(group.columns))
    candidates = tuple(group for group in kinds.candidates if taken.isdisjoint(group.columns))
    findings = _findings_of(kinds, name, names, left)
    more = candidate_findings(name, names, len(dtypes), candidates)
    return Kinds(tuple(groups), candidates, (*findings, *more))


def candidate_findings(
    name: str, names: Sequence[str] | None, width: int, candidates: Sequence[Group]
) -> list[Finding]:
    """Return findings for channels that look like a quaternion only by their values."""
    found = []
    for group in candidates:
        if group.source == "values":
            option = kind_option(name, names, group)
            text = f"four channels that may be a quaternion ({group.evidence}): {option}"
            place = _place(name, names, width, group)
            found.append(Finding("warning", "quaternion_candidate", name, place, text))
    return found


def _place(name: str, names: Sequence[str] | None, width: int, group: Group) -> str:
    labels = labels_of(name, names, width)
    return ", ".join(labels[column] for column in group.columns)
