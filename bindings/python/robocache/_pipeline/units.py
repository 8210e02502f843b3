"""Units and kinds of channels, the methods that suit them, and the units of ROS messages."""

from __future__ import annotations

import math
import re

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


# ---- messages of ROS ----------------------------------------------------------------------------

# Packages whose messages have units by REP 103, or by the comments in their definitions; a field of
# another package may have any unit.
_STANDARD = ("geometry_msgs", "nav_msgs", "sensor_msgs", "trajectory_msgs", "tf2_msgs")
_AXIS = r"(^|[.\]])"
_FIELDS: tuple[tuple[str, str, str], ...] = (  # type, end of the field, unit
    (r"Accel", _AXIS + r"linear\.[xyz]$", "m/s^2"),
    (r"Accel", _AXIS + r"angular\.[xyz]$", "rad/s^2"),
    (r"", _AXIS + r"(orientation|rotation)\.[xyzw]$", "1"),
    (r"/Quaternion", r"^(quaternion\.)?[xyzw]$", "1"),
    (r"", _AXIS + r"(position|translation|point)\.[xyz]$", "m"),
    (r"/(Point|PointStamped)$", r"[xyz]$", "m"),
    (r"", _AXIS + r"angular_velocity\.[xyz]$", "rad/s"),
    (r"", _AXIS + r"linear_acceleration\.[xyz]$", "m/s^2"),
    (r"", _AXIS + r"linear\.[xyz]$", "m/s"),
    (r"", _AXIS + r"angular\.[xyz]$", "rad/s"),
    (r"", _AXIS + r"force\.[xyz]$", "N"),
    (r"", _AXIS + r"torque\.[xyz]$", "N m"),
    (r"Pose2D$", r"(^|\.)[xy]$", "m"),
    (r"Pose2D$", r"(^|\.)theta$", "rad"),
    (r"/MagneticField$", r"magnetic_field\.[xyz]$", "T"),
    (r"/NavSatFix$", r"^(latitude|longitude)$", "deg"),
    (r"/NavSatFix$", r"^altitude$", "m"),
    (r"/FluidPressure$", r"^fluid_pressure$", "Pa"),
    (r"/Temperature$", r"^temperature$", "degC"),
    (r"/Illuminance$", r"^illuminance$", "lx"),
    (r"/RelativeHumidity$", r"^relative_humidity$", "1"),
    (r"/Range$", r"^(range|min_range|max_range)$", "m"),
    (r"/Range$", r"^field_of_view$", "rad"),
    (r"/LaserScan$", r"^(ranges\[\d+\]|range_min|range_max)$", "m"),
    (r"/LaserScan$", r"^angle_(min|max|increment)$", "rad"),
    (r"/LaserScan$", r"^(time_increment|scan_time)$", "s"),
    (r"/BatteryState$", r"^(voltage|cell_voltage\[\d+\])$", "V"),
    (r"/BatteryState$", r"^current$", "A"),
    (r"/BatteryState$", r"^percentage$", "1"),
    (r"/BatteryState$", r"^(temperature|cell_temperature\[\d+\])$", "degC"),
    (r"/Joy$", r"^(axes|buttons)\[\d+\]$", "1"),
)


def unit_of_field(typename: str, field: str) -> str | None:
    """Return the unit of a field; None if the definition does not say it.

    >>> unit_of_field("sensor_msgs/msg/Imu", "linear_acceleration.x")
    'm/s^2'
    >>> unit_of_field("sensor_msgs/msg/JointState", "position[elbow]") is None
    True
    """
    if not typename.startswith(tuple(f"{package}/" for package in _STANDARD)):
        return None
    for kind, end, unit in _FIELDS:
        if re.search(kind, typename) and re.search(end, field):
            return unit
    return None
