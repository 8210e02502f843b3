"""Units that the definitions of ROS messages state (REP 103, and the comments in the files)."""

from __future__ import annotations

import re

# Packages whose messages follow REP 103; a field of another package may have any unit.
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
