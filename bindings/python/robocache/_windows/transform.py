"""Transforms of the channels of windows, relative to other rows: differences and poses."""

from __future__ import annotations

import operator
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .. import _core
from .._arguments.options import code_of, count
from .._library.errors import REFUSALS, shown
from .._operations.convert_rotations import ROTATIONS, channels_of
from .._printable import kind_of

if TYPE_CHECKING:
    from .._operations.convert_rotations import Representation

    Kind = Literal["subtract", "se3_relative", "se3_world", "se3_step"]

_KINDS = {
    "subtract": _core.WINDOWS_TRANSFORM_SUBTRACT,
    "se3_relative": _core.WINDOWS_TRANSFORM_SE3_RELATIVE,
    "se3_world": _core.WINDOWS_TRANSFORM_SE3_WORLD,
    "se3_step": _core.WINDOWS_TRANSFORM_SE3_STEP,
}
_STRUCT = struct.Struct("=qqiIiiqiiii")  # rbcWindowsTransform


@dataclass(frozen=True, init=False, repr=False)
class Transform:
    """A transform of ``count`` channels of a :class:`WindowStream`, beginning with ``begin``.

    The channels are expressed relative to a reference: a row of the same or of another stream in
    the same sample, such as the state at the anchor. A row has the number x, or the position p and
    the rotation R; the reference has xr, or pr and Rr:

    - "subtract": x - xr. Inverse: x + xr.
    - "se3_relative": Rr^T (p - pr) and Rr^T R, the pose in the frame of the reference. Inverse:
      Rr p + pr and Rr R.
    - "se3_world": p - pr and R Rr^T, in the axes of the world. Inverse: p + pr and R Rr.
    - "se3_step": as "se3_world", but relative to the row at the previous offset; the first offset
      is relative to the reference. Inverse: the sum of the steps.

    A transform can be pickled, compared and printed.

    Parameters
    ----------
    kind
        One of the above.
    begin, count
        The channels of the stream's values. A pose has 3 channels of its position, followed by the
        channels of its rotation.
    reference
        The stream, by its index in the call or by its name in a :class:`WindowSpec`, and the index
        of one of its offsets; a negative index counts from the last.
    reference_begin
        The first channel of the reference. None: ``begin``.
    rotation
        Representation of the rotation, as for :func:`convert_rotations`; only for poses.
    reference_rotation
        Representation in the reference. None: as ``rotation``.
    out_rotation
        Representation in the result. None: as ``rotation``. If it has a different number of
        channels, the following channels are shifted.
    inverse
        Apply the inverse, from relative to absolute.

    Raises
    ------
    ValueError
        ``kind`` or a rotation is unknown, or ``count`` does not match a pose.
    TypeError
        An argument has a wrong type.

    Examples
    --------
    >>> import robocache as rbc
    >>> rbc.Transform("subtract", 0, 14, reference=("observation.state", -1))
    Transform('subtract', 0, 14, reference=('observation.state', -1))
    """

    kind: Kind
    begin: int
    count: int
    reference: tuple[int | str, int]
    reference_begin: int
    rotation: Representation | None
    reference_rotation: Representation | None
    out_rotation: Representation | None
    inverse: bool

    def __init__(
        self,
        kind: Kind,
        begin: int,
        count: int,
        *,
        reference: tuple[int | str, int],
        reference_begin: int | None = None,
        rotation: Representation | None = None,
        reference_rotation: Representation | None = None,
        out_rotation: Representation | None = None,
        inverse: bool = False,
    ) -> None:
        code_of(_KINDS, kind, "kind")
        begin, count = _channels(begin, count)
        rotations = {
            "rotation": rotation,
            "reference_rotation": rotation if reference_rotation is None else reference_rotation,
            "out_rotation": rotation if out_rotation is None else out_rotation,
        }
        if kind == "subtract":
            for name, rotation_name in rotations.items():
                if rotation_name is not None:
                    raise ValueError(
                        f"{name}: is {rotation_name!r}, but 'subtract' takes no rotation"
                    )
        else:
            _require_pose(kind, count, rotations)
        reference = _reference(reference)
        if reference_begin is None:
            reference_begin = begin
        fields = {
            "kind": kind,
            "begin": begin,
            "count": count,
            "reference": reference,
            "reference_begin": _index(reference_begin, "reference_begin"),
            **rotations,
            "inverse": bool(inverse),
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def end(self) -> int:
        """One past the last channel."""
        return self.begin + self.count

    @property
    def out_count(self) -> int:
        """Number of channels of the result."""
        return self.count if self.out_rotation is None else 3 + channels_of(self.out_rotation)

    @staticmethod
    def subtract(
        mask: Sequence[bool], *, reference: tuple[int | str, int], inverse: bool = False
    ) -> tuple[Transform, ...]:
        """Return transforms that subtract the reference from the channels whose mask is True.

        The mask is as from openpi's ``make_bool_mask``. The channels of the reference have the same
        indices.

        Examples
        --------
        >>> import robocache as rbc
        >>> joints = [True] * 6 + [False] + [True] * 6 + [False]
        >>> for each in rbc.Transform.subtract(joints, reference=(0, 0)):
        ...     print(each)
        Transform('subtract', 0, 6, reference=(0, 0))
        Transform('subtract', 7, 6, reference=(0, 0))
        """
        runs: list[list[int]] = []
        for channel, chosen in enumerate(mask):
            if not chosen:
                continue
            if runs and sum(runs[-1]) == channel:
                runs[-1][1] += 1
            else:
                runs.append([channel, 1])
        return tuple(
            Transform("subtract", begin, count, reference=reference, inverse=inverse)
            for begin, count in runs
        )

    def _with_reference(self, stream: int, offset: int) -> Transform:
        return Transform(
            self.kind,
            self.begin,
            self.count,
            reference=(stream, offset),
            reference_begin=self.reference_begin,
            rotation=self.rotation,
            reference_rotation=self.reference_rotation,
            out_rotation=self.out_rotation,
            inverse=self.inverse,
        )

    def __repr__(self) -> str:
        parts = [f"{self.kind!r}, {self.begin}, {self.count}, reference={self.reference}"]
        if self.reference_begin != self.begin:
            parts.append(f"reference_begin={self.reference_begin}")
        if self.rotation is not None:
            parts.append(f"rotation={self.rotation!r}")
        for name in ("reference_rotation", "out_rotation"):
            if getattr(self, name) != self.rotation:
                parts.append(f"{name}={getattr(self, name)!r}")
        if self.inverse:
            parts.append("inverse=True")
        return f"Transform({', '.join(parts)})"


def packed(transforms: Sequence[Transform]) -> bytes | None:
    """Return transforms as the extension takes them. Their references must be indices."""
    if not transforms:
        return None
    parts = []
    for each in transforms:
        stream, offset = each.reference
        rotations = (each.rotation, each.reference_rotation, each.out_rotation)
        parts.append(
            _STRUCT.pack(
                each.begin,
                each.count,
                _KINDS[each.kind],
                _core.WINDOWS_TRANSFORM_FLAG_INVERSE if each.inverse else 0,
                stream,
                offset,
                each.reference_begin,
                *(0 if name is None else ROTATIONS[name] for name in rotations),
                0,
            )
        )
    return b"".join(parts)


def checked_transforms(transforms: Any, channels: int | None) -> tuple[Transform, ...]:
    """Return transforms sorted by channel. They must not overlap; ``channels``: None if unknown."""
    if isinstance(transforms, Transform):
        transforms = (transforms,)
    try:
        checked = tuple(transforms)
    except TypeError:
        raise TypeError(f"transforms: is {shown(transforms)}, expected a list") from None
    for i, each in enumerate(checked):
        if not isinstance(each, Transform):
            raise TypeError(f"transforms[{i}]: is {kind_of(each)}, expected a robocache.Transform")
        if channels is not None and each.end > channels:
            raise ValueError(
                f"transforms[{i}]: has channels {each.begin} to {each.end - 1}, "
                f"but values have only {channels}"
            )
    ordered = sorted(range(len(checked)), key=lambda i: checked[i].begin)
    for i, j in zip(ordered, ordered[1:]):
        if checked[i].end > checked[j].begin:
            raise ValueError(
                f"transforms[{j}]: begins with channel {checked[j].begin}, "
                f"which transforms[{i}] also has; a channel has at most one transform"
            )
    return tuple(checked[i] for i in ordered)


def out_channels(channels: int, transforms: Sequence[Transform]) -> int:
    """Return the number of channels after the transforms."""
    return channels + sum(each.out_count - each.count for each in transforms)


def _channels(begin: Any, num_channels: Any) -> tuple[int, int]:
    return _index(begin, "begin"), count(num_channels, "count")


def _index(value: Any, name: str) -> int:
    try:
        whole = operator.index(value)
    except REFUSALS:
        raise TypeError(f"{name}: is {shown(value)}, expected the index of a channel") from None
    if whole < 0:
        raise ValueError(f"{name}: is {whole}, expected the index of a channel, 0 or more")
    return whole


def _reference(value: Any) -> tuple[int | str, int]:
    try:
        stream, offset = value
        stream = stream if isinstance(stream, str) else operator.index(stream)
        return stream, operator.index(offset)
    except (*REFUSALS, ValueError):
        raise TypeError(
            f"reference: is {shown(value)}, expected a stream and the index of one of its offsets, "
            "such as (0, -1)"
        ) from None


def _require_pose(kind: str, count: int, rotations: dict[str, Any]) -> None:
    if rotations["rotation"] is None:
        raise ValueError(
            f"rotation: is None, but {kind!r} needs the representation of rotations, "
            "such as 'quat_xyzw'"
        )
    for name, rotation_name in rotations.items():
        code_of(ROTATIONS, rotation_name, name)
    expected = 3 + channels_of(rotations["rotation"])
    if count != expected:
        raise ValueError(
            f"count: is {count}, expected {expected}: 3 for a position and {expected - 3} for "
            f"{rotations['rotation']!r}"
        )
