"""How channels of each kind are aligned: the columns of one call, and the conversion back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ... import convert_rotations
from ..._arguments.resample_params import METHODS
from ..._episodes.channels import PERIODS, Group

_SAME = 1e-15  # difference of quaternion components that is only rounding
_PICKS = ("previous", "next", "nearest")
_VIA = ("rotation_vector", "matrix", "rot6d", "pose_3x4", "pose_4x4")  # aligned as quaternions
_QUATERNION = 4


@dataclass(frozen=True)
class Part:
    """Columns that are aligned by one method."""

    method: str
    columns: tuple[int, ...]
    via: Rotation | None = None  # converted to quaternions before, and back after


@dataclass(frozen=True)
class Rotation:
    """A rotation that is not stored as a quaternion."""

    form: Any  # name in convert_rotations
    unit: str | None = None
    positive: tuple[bool, ...] = ()

    def quaternions(self, values: Any) -> Any:
        """Return rows [...,C] as quaternions x y z w in float64."""
        import numpy as np

        values = np.ascontiguousarray(values, np.float64)
        return convert_rotations(values * self._radians, self.form, "quat_xyzw", dtype="float64")

    def back(self, quaternions: Any, near: Any) -> Any:
        """Convert back to this form; if ambiguous, choose the value closest to ``near``."""
        import numpy as np

        near = np.ascontiguousarray(near, np.float64)
        quaternions = np.ascontiguousarray(quaternions, np.float64)
        made = convert_rotations(quaternions, "quat_xyzw", self.form, dtype="float64")
        if self.form == "rotvec":
            made = _nearest_vector(made, near * self._radians) / self._radians
        elif self.form.startswith("euler"):
            made = _nearest_euler(made, near * self._radians, self.form) / self._radians
            for i, positive in enumerate(self.positive):
                made[..., i] = _within(made[..., i], PERIODS[self.unit or "rad"], positive)
        same = self.quaternions(near)
        apart = np.fmin(
            np.abs(quaternions - same).max(axis=-1), np.abs(quaternions + same).max(axis=-1)
        )
        return np.where((apart <= _SAME)[..., None], near, made)

    @property
    def _radians(self) -> float:
        return PERIODS["rad"] / PERIODS[self.unit or "rad"]


def _nearest_vector(made: Any, near: Any) -> Any:
    """Choose the vector of the same rotation that is nearest to a sample.

    Samples of at most half a turn have results of at most half a turn.
    """
    import numpy as np

    turn = PERIODS["rad"]
    with np.errstate(invalid="ignore", divide="ignore"):
        length = np.sqrt(np.square(made).sum(axis=-1, keepdims=True))
        longest = np.sqrt(np.square(near).sum(axis=-1, keepdims=True))
        axis = np.where(length > 0, made / length, near / longest)
        turns = np.round(((axis * near).sum(axis=-1, keepdims=True) - length) / turn)
        best = axis * (length + turns * turn)
        # Only if the samples are longer than half a turn may the result be.
        fits = (np.abs(length + turns * turn) <= turn / 2) | (longest > turn / 2 * (1 + 1e-9))
        best = np.where(fits & (np.abs(turns) > 0), best, made)
    return best


def _nearest_euler(made: Any, near: Any, form: str) -> Any:
    """Choose the angles of the same rotation that are nearest to a sample."""
    import numpy as np

    turn = PERIODS["rad"]
    axes = form.rpartition("_")[2]
    second = -made[..., 1] if axes[0] == axes[2] else turn / 2 - made[..., 1]
    other = np.stack([made[..., 0] + turn / 2, second, made[..., 2] + turn / 2], axis=-1)
    with np.errstate(invalid="ignore"):
        both = [each + turn * np.round((near - each) / turn) for each in (made, other)]
        apart = [np.square(each - near).sum(axis=-1, keepdims=True) for each in both]
        return np.where(apart[1] < apart[0], both[1], both[0])


def _within(angles: Any, period: float, positive: bool) -> Any:
    """Wrap angles into [0, P) or [-P/2, P/2)."""
    import numpy as np

    low = 0.0 if positive else -period / 2
    with np.errstate(invalid="ignore"):
        turned = (angles - low) % period + low
        return np.where((angles >= low) & (angles < low + period), angles, turned)


# ---- plans --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """How the columns of a stream are aligned together, and which columns result."""

    parts: tuple[Part, ...]
    kept: tuple[int, ...]  # columns of the result
    width: int

    @property
    def method(self) -> Any:
        """The method for the columns of :meth:`gathered`: one name, or groups."""
        groups: list[list[Any]] = []
        for part in self.parts:
            own = [(_QUATERNION, "slerp")] if part.via is not None else []
            own.append((len(part.columns), part.method))
            for count, method in own:
                if groups and groups[-1][2] == method:
                    groups[-1][1] += count
                else:
                    begin = groups[-1][0] + groups[-1][1] if groups else 0
                    groups.append([begin, count, method])
        if len(groups) == 1:
            return groups[0][2]
        return [(begin, count, method) for begin, count, method in groups]

    @property
    def is_plain(self) -> bool:
        """Whether the columns are aligned in their order, without a conversion."""
        flat = [column for part in self.parts for column in part.columns]
        return flat == list(range(self.width)) and not self.converts

    @property
    def converts(self) -> bool:
        return any(part.via is not None for part in self.parts)

    def gathered(self, values: Any) -> Any:
        """Return the columns [n,W] to align, from values [n,D]."""
        import numpy as np

        if self.is_plain:
            return values
        if not self.converts:
            return values[:, [column for part in self.parts for column in part.columns]]
        blocks = []
        for part in self.parts:
            own = values[:, part.columns]
            if part.via is not None:
                blocks.append(part.via.quaternions(own))
            blocks.append(own.astype(np.float64, copy=False))
        return np.concatenate(blocks, axis=1)

    def scattered(self, aligned: Any, dtype: Any) -> Any:
        """Turn aligned columns [...,W] into columns of the stream [...,kept], in a dtype."""
        import numpy as np

        if self.is_plain:
            return aligned
        places = {column: place for place, column in enumerate(self.kept)}
        made = np.empty((*aligned.shape[:-1], len(self.kept)), dtype)
        at = 0
        for part in self.parts:
            own = [places[column] for column in part.columns]
            if part.via is not None:
                quaternions = aligned[..., at : at + _QUATERNION]
                at += _QUATERNION
                near = aligned[..., at : at + len(own)]
                made[..., own] = part.via.back(quaternions, near)
            else:
                made[..., own] = aligned[..., at : at + len(own)]
            at += len(own)
        return made


def plan_of(
    groups: Sequence[Group],
    width: int,
    asked: Sequence[tuple[Sequence[int], str, str]] = (),
) -> Plan:
    """Return the plan for kinds of channels, and for methods that options set for some of them."""
    parts: list[Part] = []
    for group in groups:
        parts += parts_of(group)
    for columns, method, option in asked:
        parts = _replaced(parts, groups, list(columns), method, option)
    parts.sort(key=lambda part: min(part.columns))
    kept = sorted(column for part in parts for column in part.columns)
    return Plan(tuple(parts), tuple(kept), width)


def parts_of(group: Group) -> list[Part]:
    """Return the parts that align one group; none for covariances."""
    kind, columns = group.kind, group.columns
    if kind == "covariance":
        return []
    if kind == "quaternion":
        return [Part("slerp", tuple(sorted(columns)))]
    if kind == "angle" or (kind == "euler" and not group.form):
        return [
            Part(angle_method(group.unit, positive), (column,))
            for column, positive in zip(columns, group.positive)
        ]
    if kind == "euler" or kind in _VIA:
        return _rotation_parts(group)
    return [Part("linear" if kind == "number" else "previous", (column,)) for column in columns]


def angle_method(unit: str | None, positive: bool) -> str:
    end = "" if unit in (None, "rad") else f"_{unit}"
    return f"angle{end}{'_positive' if positive else ''}"


def _rotation_parts(group: Group) -> list[Part]:
    """Align rotations as quaternions, and positions by linear interpolation."""
    columns = group.columns
    if group.kind == "rotation_vector":
        return [Part("nearest", columns, Rotation("rotvec", group.unit))]
    if group.kind == "euler":
        rotation = Rotation(f"euler_{group.form or 'xyz'}", group.unit, group.positive)
        return [Part("nearest", columns, rotation)]
    if group.kind == "rot6d":
        return [Part("nearest", columns, Rotation(f"rot6d_{group.form or 'rows'}"))]
    rows = 3 if group.kind != "pose_4x4" else 4
    wide = 3 if group.kind == "matrix" else 4
    by_column = group.form == "columns"

    def at(row: int, column: int) -> int:
        return columns[column * rows + row if by_column else row * wide + column]

    turned = tuple(at(i, j) for i in range(3) for j in range(3))
    parts = [Part("nearest", turned, Rotation("matrix"))]
    if wide == 4:
        parts.append(Part("linear", tuple(at(i, 3) for i in range(3))))
    if rows == 4:
        parts.append(Part("previous", tuple(at(3, j) for j in range(4))))
    return parts


def _replaced(
    parts: list[Part], groups: Sequence[Group], columns: list[int], method: str, option: str
) -> list[Part]:
    """Replace the method of some columns."""
    if method not in METHODS:
        raise ValueError(f"{option}: no such method, expected one of {', '.join(METHODS)}")
    chosen = set(columns)
    left = []
    for part in parts:
        if chosen.isdisjoint(part.columns):
            left.append(part)
        elif not chosen.issuperset(part.columns):
            if len(part.columns) > 1 and (part.method == "slerp" or part.via is not None):
                raise ValueError(
                    f"{option}: names only some channels of a rotation, expected all of them"
                )
            rest = tuple(column for column in part.columns if column not in chosen)
            left.append(Part(part.method, rest))
    if method != "slerp":
        return left + [Part(method, (column,)) for column in columns]
    group_of_columns = next((g for g in groups if set(g.columns) == chosen), None)
    if group_of_columns is not None and (
        group_of_columns.kind == "euler" or group_of_columns.kind in _VIA
    ):
        return left + _rotation_parts(group_of_columns)
    if len(columns) % _QUATERNION:
        raise ValueError(
            f"{option}: these are {len(columns)} channels, but slerp takes 4 (x y z w). Name them: "
            f"{option.partition('=')[0].partition(':')[0]}:FIRST-LAST=slerp"
        )
    runs = range(0, len(columns), _QUATERNION)
    return left + [Part("slerp", tuple(columns[i : i + _QUATERNION])) for i in runs]


def picks(method: Any) -> bool:
    """Whether a method copies samples."""
    return method in _PICKS
