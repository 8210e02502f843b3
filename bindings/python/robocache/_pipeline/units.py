"""Units and kinds of channels, and the methods that suit them."""

from __future__ import annotations

import math

# Each unit with the largest plausible magnitude of a robot's channel, or None.
UNITS: dict[str, float | None] = {
    "rad": 4 * math.pi,
    "deg": 4 * 360.0,
    "turn": 4.0,
    "m": 1e7,
    "cm": 1e9,
    "mm": 1e10,
    "km": 1e5,
    "m/s": 1e4,
    "mm/s": 1e7,
    "km/h": 4e4,
    "rad/s": 1e4,
    "deg/s": 1e6,
    "rpm": 1e6,
    "m/s^2": 1e4,
    "g": 1e3,
    "rad/s^2": 1e6,
    "m/s^3": 1e6,
    "N": 1e7,
    "N m": 1e7,
    "Pa": 1e9,
    "hPa": 1e7,
    "bar": 1e4,
    "A": 1e5,
    "V": 1e6,
    "W": 1e7,
    "kg": 1e6,
    "T": 10.0,
    "uT": 1e7,
    "G": 1e5,
    "degC": 2000.0,
    "K": 3000.0,
    "Hz": 1e12,
    "s": None,
    "ms": None,
    "us": None,
    "ns": None,
    "lx": 1e6,
    "%": 1e3,
    "px": 1e6,
    "count": None,
    "code": None,
    "1": None,
}
# Units of angles, with the suffix of their method in Live and fuse.
_ANGLES = {"rad": "", "deg": "_deg", "turn": "_turn"}
NUMBER, QUATERNION, ANGLE, ANGLE_POSITIVE, STEP = (
    "number",
    "quaternion",
    "angle",
    "angle_positive",
    "step",
)
# Kinds that are not interpolated; their streams take a sample unchanged.
PICKED = ("rotation_vector", "euler", "matrix", "rot6d", "pose_3x4", "pose_4x4")
KINDS = (NUMBER, QUATERNION, ANGLE, ANGLE_POSITIVE, STEP, *PICKED)
SMOOTH = ("linear", "cubic", "pchip")
METHODS = (*SMOOTH, "previous", "nearest")
_UNITLESS = {QUATERNION: "1"}


def methods_of(kinds: list[str], units: list[str], method: str) -> str | list[tuple[int, int, str]]:
    """Return the method of a stream for ``fuse``: one, or groups of channels."""
    if method not in SMOOTH:
        return method
    groups: list[tuple[int, int, str]] = []
    channel = 0
    while channel < len(kinds):
        kind = kinds[channel]
        count = 4 if kind == QUATERNION else 1
        own = {NUMBER: method, QUATERNION: "slerp", STEP: "previous"}.get(kind)
        if own is None:
            own = f"angle{_ANGLES[units[channel]]}"
            own += "_positive" if kind == ANGLE_POSITIVE else ""
        if groups and groups[-1][2] == own and own != "slerp":
            begin, length, _ = groups[-1]
            groups[-1] = (begin, length + count, own)
        else:
            groups.append((channel, count, own))
        channel += count
    return groups[0][2] if len(groups) == 1 and groups[0][2] != "slerp" else groups


def channel_fault(kind: str, unit: str, method: str) -> tuple[str, str] | None:
    """Return the key of a channel or stream that does not suit, and what is expected."""
    if kind in (ANGLE, ANGLE_POSITIVE) and unit not in _ANGLES:
        return "unit", f"expected one of {', '.join(map(repr, _ANGLES))} for an angle"
    if kind in _UNITLESS and unit != _UNITLESS[kind]:
        return "unit", f'expected "{_UNITLESS[kind]}" for a {kind}'
    if kind in PICKED and method in SMOOTH:
        return "method", f'expected "previous" or "nearest" for channels of kind {kind}'
    return None
