"""Read a comma2k19 segment: a car, arrays `t` and `value` per stream, f64 seconds since boot."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from recordings import Panel, Recording, make_stream

# The radar reports 14 object slots, one CAN address each. This one is filled most of the time.
_RADAR_SLOT = 531

_POSE = ("positions", "orientations", "velocities")


def read_comma2k19(folder: Path) -> Recording:
    log, pose = folder / "processed_log", folder / "global_pose"

    def load(path: str) -> tuple[np.ndarray, np.ndarray]:
        values = _load_array(log / path / "value")
        return _load_array(log / path / "t"), values.reshape(len(values), -1)

    imu_times, accel = load("IMU/accelerometer")
    gyro_times, gyro = load("IMU/gyro")
    if not np.array_equal(imu_times, gyro_times):
        raise ValueError(f"{log}: accelerometer and gyro have different stamps")
    speed_times, speed = load("CAN/speed")
    steering_times, steering = load("CAN/steering_angle")
    wheel_times, wheels = load("CAN/wheel_speed")
    magnet_times, magnet = load("IMU/magnetometer")
    gnss_times, gnss = load("GNSS/live_gnss_ublox")
    radar_times, radar = load("CAN/radar")
    frame_times = _load_array(pose / "frame_times")

    # Columns 3 and 4 (relative acceleration, yaw rate) are never filled.
    radar = radar[:, [0, 1, 2, 5, 6]]
    radar_channels = ("distance", "lateral", "speed", "address", "new")
    in_slot = radar[:, 3] == _RADAR_SLOT

    streams = (
        make_stream(
            "imu",
            imu_times,
            np.hstack([accel, gyro]),
            ("accel_x", "accel_y", "accel_z", "gyro_x", "gyro_y", "gyro_z"),
            104.36,
            panels=(Panel("accel x\n[m/s²]"),),
        ),
        # On the bus they are 0.1 to 29 ms apart, by its schedule: nothing was lost.
        make_stream("speed", speed_times, speed, ("speed",), 83, max_gap_s=0.03),
        make_stream(
            "steering",
            steering_times,
            steering,
            ("angle",),
            83,
            max_gap_s=0.03,
            panels=(Panel("angle\n[deg]"),),
        ),
        make_stream(
            "wheels",
            wheel_times,
            wheels,
            ("front_left", "front_right", "rear_left", "rear_right"),
            83,
            max_gap_s=0.03,
        ),
        # Messages of all slots, many with the same stamp. Rows are not interpolated, because that
        # would mix two objects.
        make_stream(
            "radar",
            radar_times,
            radar,
            radar_channels,
            20,
            method="previous",
            panels=(Panel("distance\n[m]"),),
        ),
        # One slot, which may change to another object at any sample: not interpolated either.
        make_stream(
            "radar_slot",
            radar_times[in_slot],
            radar[in_slot],
            radar_channels,
            20,
            method="nearest",
            panels=(Panel("distance\n[m]"),),
        ),
        # Without the UTC time. The bearing wraps at 360 degrees in the log.
        make_stream(
            "gnss",
            gnss_times,
            np.column_stack([gnss[:, [0, 1, 2, 4]], np.radians(gnss[:, 5])]),
            ("latitude", "longitude", "speed", "altitude", "bearing"),
            10,
            method=((0, 4, "linear"), (4, 1, "angle")),
            panels=(Panel("speed\n[m/s]", 2),),
        ),
        make_stream("magnetometer", magnet_times, magnet, ("x", "y", "z"), 10),
        make_stream(
            "camera",
            frame_times,
            np.hstack([_load_array(pose / f"frame_{part}") for part in _POSE]),
            ("x", "y", "z", "qw", "qx", "qy", "qz", "vx", "vy", "vz"),
            20,
            method=((0, 3, "cubic"), (3, 4, "slerp"), (7, 3, "linear")),
        ),
    )
    return Recording(
        "comma2k19",
        "a car in traffic, comma2k19",
        streams,
        ticks_per_second=1.0,
        stamp_unit="s",
        clock_stream="camera",
        window_s=(9.5, 1.5),
    )


def _load_array(path: Path) -> np.ndarray:
    """Load the array at `path`, which has no suffix as published, or at `path`.npy."""
    with_suffix = path.with_name(f"{path.name}.npy")
    return np.load(with_suffix if with_suffix.is_file() else path)
