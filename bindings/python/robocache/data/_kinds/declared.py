"""Kinds that a caller declares: ``kinds=`` in ``open``, and ``--kind`` on the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..._episodes.channels import Group
from ..._printable import kind_of, plural, printable
from ..._suggestions import did_you_mean
from .._errors import some
from .names import guesses, labels_of
from .selectors import columns_of

_ANGLES = {"": None, "_rad": "rad", "_deg": "deg", "_turn": "turn"}
_AXES = [
    *("xyz", "xzy", "yxz", "yzx", "zxy", "zyx", "xyx", "xzx", "yxy", "yzy", "zxz", "zyz"),
    *("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX", "XYX", "XZX", "YXY", "YZY", "ZXZ", "ZYZ"),
]
# By name of a kind: kind, channels (0: any number), unit, form, whether angles are in [0, P).
SPELLINGS: dict[str, tuple[str, int, str | None, str, bool | None]] = {
    "number": ("number", 0, None, "", None),
    "step": ("step", 0, None, "", None),
    "covariance": ("covariance", 0, None, "", None),
    "quaternion": ("quaternion", 4, None, "", None),
    "quaternion_xyzw": ("quaternion", 4, None, "xyzw", None),
    "quaternion_wxyz": ("quaternion", 4, None, "wxyz", None),
    "matrix": ("matrix", 9, None, "rows", None),
    "matrix_columns": ("matrix", 9, None, "columns", None),
    "rot6d": ("rot6d", 6, None, "rows", None),
    "rot6d_rows": ("rot6d", 6, None, "rows", None),
    "rot6d_columns": ("rot6d", 6, None, "columns", None),
    "rot6d_interleaved": ("rot6d", 6, None, "interleaved", None),
    "pose_3x4": ("pose_3x4", 12, None, "rows", None),
    "pose_3x4_columns": ("pose_3x4", 12, None, "columns", None),
    "pose_4x4": ("pose_4x4", 16, None, "rows", None),
    "pose_4x4_columns": ("pose_4x4", 16, None, "columns", None),
    **{
        f"rotation_vector{end}": ("rotation_vector", 3, unit or "rad", "", None)
        for end, unit in _ANGLES.items()
    },
    **{
        f"euler{axes and '_' + axes}{end}": ("euler", 3, unit, axes, None)
        for axes in ["", *_AXES]
        for end, unit in _ANGLES.items()
    },
    **{
        f"angle{end}{'_positive' if positive else ''}": (
            "angle", 1, unit, "", True if positive else None
        )
        for end, unit in _ANGLES.items()
        for positive in (False, True)
    },
}  # fmt: skip
_SHOWN = (
    *("number", "step", "quaternion", "quaternion_xyzw", "quaternion_wxyz", "rotation_vector"),
    *("euler", "euler_xyz", "euler_xyz_deg", "matrix", "rot6d", "pose_3x4", "pose_4x4", "angle"),
    *("angle_deg", "angle_turn", "angle_deg_positive"),
)

Kinds = Mapping[str, Any]  # by stream: a kind, or kinds by channels


def checked(kinds: Kinds | None) -> dict[str, dict[str, str]]:
    """Return the kinds of streams by channels; raise if a type or a spelling is wrong."""
    if kinds is None:
        return {}
    if not isinstance(kinds, Mapping):
        raise TypeError(f"kinds: is {kind_of(kinds)}, expected a dict from streams to kinds")
    made: dict[str, dict[str, str]] = {}
    for stream, declaration in kinds.items():
        by_channels = {"*": declaration} if isinstance(declaration, str) else declaration
        if not isinstance(by_channels, Mapping):
            raise TypeError(
                f"kinds[{stream!r}]: is {declaration!r}, expected a kind, or a dict from channels "
                "to kinds"
            )
        for channels, kind in by_channels.items():
            if kind not in SPELLINGS:
                raise ValueError(
                    f"kinds: {stream}:{channels} is {kind!r}, expected one of {', '.join(_SHOWN)}"
                )
        made[str(stream)] = {str(channels): kind for channels, kind in by_channels.items()}
    return made


def require_streams(kinds: Mapping[str, Any], known: Iterable[str], what: str = "stream") -> None:
    """Raise if a kind is declared for a stream that does not exist."""
    known = tuple(known)
    for name in kinds:
        if name not in known:
            near = did_you_mean(name, known)
            raise KeyError(f"kinds: no such {what} {name!r}, expected one of {some(known)}{near}")


def declared_groups(
    stream: str, declared: Mapping[str, str], names: Sequence[str] | None, dtypes: Sequence[str]
) -> list[Group]:
    """Return the groups that a caller declared for a stream; later declarations win.

    The ranges of angles are not filled in yet.
    """
    made: list[Group] = []
    width = len(dtypes)
    for selector, spelling in declared.items():
        where = f"kinds: {printable(stream)}:{selector}={spelling}"
        kind, count, unit, form, positive = SPELLINGS[spelling]
        columns = columns_of(selector, names, width, where, stream)
        if count and (len(columns) % count or not columns):
            shown = some(tuple((names or labels_of(stream, None, width))[c] for c in columns))
            each = "" if count == 1 else f" of {count} channels"
            have = plural(len(columns), "channel")
            raise ValueError(f"{where}: {kind}{each} does not fit {have}: {shown}")
        made = [group for group in made if set(columns).isdisjoint(group.columns)]
        size = count or len(columns)
        for begin in range(0, len(columns), size):
            members = tuple(columns[begin : begin + size])
            if kind == "quaternion":
                members = _in_roles(stream, members, names, width, form)
            own = () if positive is None else (positive,)
            text = f"declared {spelling}"
            made.append(Group(kind, members, unit, _form(kind, form), own, "caller", text))
    return made


def _form(kind: str, form: str) -> str:
    return "" if kind == "quaternion" else form


def _in_roles(
    stream: str, members: tuple[int, ...], names: Sequence[str] | None, width: int, order: str
) -> tuple[int, ...]:
    """Return columns in the order x y z w: as declared, else by their names."""
    if order == "wxyz":
        return (*members[1:], members[0])
    if not order:
        for guess in guesses(stream, None if names is None else tuple(names), width):
            if guess.kind == "quaternion" and set(guess.columns) == set(members):
                return guess.columns
    return members
