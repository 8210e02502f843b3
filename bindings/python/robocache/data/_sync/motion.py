"""The motion that a sensor measures: rates, changes of values, or changes of rotations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..._printable import printable

KINDS = ("values", "change", "rotation_xyzw", "rotation_wxyz")
_ANGULAR = re.compile(r"(^|[._])angular([._]?(velocity|rate))?[._][xyz]$|(^|[._])gyro", re.I)
_GYRO = re.compile(r"angular_?(velocity|rate)|(^|[/_.])gyro$", re.I)
_GAP = 2.5  # periods
_FAR = 8.0  # deviations: values beyond are sensor errors, such as a pose that jumps


@dataclass(frozen=True)
class Motion:
    """Rows of one or more recordings: seconds from a common origin, and the motion then."""

    times: tuple[Any, ...]  # of each row [n], ascending
    values: tuple[Any, ...]  # of each row [n,D], with variances of about 1
    period: float  # s, the median
    gap: float  # s: longer intervals are not interpolated


def kind_of(
    sensor: str, names: Sequence[str] | None, quaternions: Sequence[Sequence[int]]
) -> tuple[str, list[int] | None]:
    """Choose the kind for "auto": angular velocities, else a quaternion, else all changes.

    Returns the kind and the channels; None: all channels.
    """
    turning = [i for i, name in enumerate(names or ()) if _ANGULAR.search(name)]
    if len(turning) >= 3:
        return "values", turning[:3]
    if _GYRO.search(sensor):
        return "values", None
    if quaternions:
        return "rotation_xyzw", list(quaternions[0])
    return "change", None


def motion_of(rows: Sequence[tuple[Any, Any]], kind: str, name: str) -> Motion:
    """Return the motion in rows of (times in seconds [n], values [n,D])."""
    import numpy as np

    if kind not in KINDS:
        known = ", ".join(map(repr, ("auto", *KINDS)))
        raise ValueError(f"kind_{name}: is {kind!r}, expected one of {known}")
    ordered = [_ordered(times, values) for times, values in rows]
    steps = np.concatenate([np.diff(times) for times, _ in ordered])
    if len(steps) == 0:
        raise ValueError(f"{printable(name)}: has fewer than 2 samples at different times")
    period = float(np.median(steps))
    gap = max(_GAP * period, 1.5 * float(np.percentile(steps, 98)))
    if kind == "change":
        ordered = [_rates(times, values, gap, np.diff) for times, values in ordered]
    elif kind.startswith("rotation"):
        width = ordered[0][1].shape[1]
        if width != 4:
            raise ValueError(
                f"{printable(name)}: has {width} channels, expected the 4 of a quaternion"
            )
        order = [0, 1, 2, 3] if kind == "rotation_xyzw" else [1, 2, 3, 0]
        ordered = [_rates(times, q[:, order], gap, _turns) for times, q in ordered]
    values = _normalized([values for _, values in ordered])
    return Motion(tuple(times for times, _ in ordered), values, period, gap)


def _ordered(times: Any, values: Any) -> tuple[Any, Any]:
    """Sort by time; drop rows that are not finite; of equal times keep only the last."""
    import numpy as np

    finite = np.isfinite(values).all(axis=1) & np.isfinite(times)
    times, values = times[finite], values[finite].astype(np.float64)
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    last = np.append(np.diff(times) > 0, True)[: len(times)]
    return times[last], values[last]


def _rates(times: Any, values: Any, gap: float, difference: Any) -> tuple[Any, Any]:
    """Return changes per second, at the middle between samples not further apart than a gap."""
    import numpy as np

    steps = np.diff(times)
    rates = np.swapaxes(difference(values.T), 0, 1) / steps[:, None]
    good = (steps <= gap) & np.isfinite(rates).all(axis=1)
    return (times[:-1] + steps / 2)[good], rates[good]


def _turns(q: Any) -> Any:
    """Return rotation vectors [3,n-1] between consecutive quaternions [4,n], in the body frame."""
    import numpy as np

    from ... import convert_rotations

    v, w = q[:3, :-1], q[3, :-1]
    u, s = q[:3, 1:], q[3, 1:]
    step = np.concatenate([w * u - s * v - np.cross(v, u, axis=0), [w * s + (v * u).sum(axis=0)]])
    turns: Any = convert_rotations(np.ascontiguousarray(step.T), "quat_xyzw", "rotvec")
    return turns.T


def _normalized(rows: list[Any]) -> tuple[Any, ...]:
    """Return channels minus their medians, scaled by their deviations, and clipped."""
    import numpy as np

    every = np.concatenate(rows)
    if len(every) == 0:
        return tuple(rows)
    middle = np.median(every, axis=0)
    scale = np.percentile(np.abs(every - middle), 90, axis=0)
    scale = np.where(scale > 0, scale, np.abs(every - middle).max(axis=0))
    scale = np.where(scale > 0, scale, 1.0)
    return tuple(np.clip((values - middle) / scale, -_FAR, _FAR) for values in rows)
