"""The real recordings as streams to fuse: the arguments of rbc.Stream, by name."""

from __future__ import annotations

import numpy as np
import pandas

#: Three ways for a position; the orientation and the velocity behind it stay.
POSES = {
    name: [(0, 3, name), (3, 4, "slerp"), (7, 3, velocity)]
    for name, velocity in (("linear", "cubic"), ("pchip", "linear"), ("cubic", "pchip"))
}


def car(folder):
    """comma2k19 and the times of its camera's frames, in seconds as float64."""
    log, pose = folder / "processed_log", folder / "global_pose"

    def load(path, **options):
        values = np.load(log / path / "value.npy")
        times = np.load(log / path / "t.npy")
        return {"values": values.reshape(len(times), -1), "times": times, **options}

    frames = np.load(pose / "frame_times.npy")
    parts = [np.load(pose / f"frame_{x}.npy") for x in ("positions", "orientations", "velocities")]
    streams = {
        "accelerometer": load("IMU/accelerometer", mean=[0, 0, -9.8], std=[0.5, 2, 4]),
        "gyro": load("IMU/gyro", method="cubic", outside="fill", fill_value=-1.0),
        "gyro bias": load("IMU/gyro_bias", method="nearest", max_gap=0.0096),
        "speed": load("CAN/speed", method="pchip", max_gap=0.025),
        "speed, extrapolated": load("CAN/speed", outside="extrapolate", max_gap=0.02),
        "steering": load("CAN/steering_angle", method="angle"),
        "wheels": load(
            "CAN/wheel_speed", method=[(0, 2, "cubic"), (2, 1, "next"), (3, 1, "pchip")]
        ),
        # Many samples with one stamp; its columns 3 and 4 are NaN throughout.
        "radar": load("CAN/radar", method="linear", max_gap=0.045),
        "radar before": load("CAN/radar", method="previous", tolerance=0.02, fill_value=np.nan),
        "radar after": load("CAN/radar", method="next", tolerance=0.01),
        "radar nearest": load("CAN/radar", method="nearest", tolerance=0.005),
        "radar held": load("CAN/radar", method="nearest", outside="fill", max_gap=0.03),
        "gnss": load(
            "GNSS/live_gnss_ublox", method=[(0, 5, "linear"), (5, 1, "angle")], max_gap=0.1
        ),
        "gnss, slow": load("GNSS/live_gnss_qcom", method="pchip", outside="fill"),
        "magnetometer": load("IMU/magnetometer", method="cubic", max_gap=0.12),
    }
    for name in ("steering", "gnss"):  # degrees
        streams[name]["values"][:, -1] = np.radians(streams[name]["values"][:, -1])
    # The angle of a wheel of 0.32 m, from its speed: it wraps 499 times.
    rolled = np.cumsum(np.diff(streams["speed"]["times"]) * streams["speed"]["values"][1:, 0])
    streams["wheel angle"] = {
        "values": np.remainder(rolled / 0.32 + np.pi, 2 * np.pi)[:, None] - np.pi,
        "times": streams["speed"]["times"][1:],
        "method": "angle",
        "max_gap": 0.026,
    }
    # Whole numbers: which of its slots a radar message is of.
    streams["radar slot"] = {
        **streams["radar before"],
        "values": streams["radar"]["values"][:, 5:6].astype(np.int16),
    }
    for name, method in POSES.items():
        streams[f"camera, {name}"] = {
            "values": np.hstack(parts),
            "times": frames,
            "method": method,
            "max_gap": 0.0505,
        }
    return streams, frames


def drone(folder, flight):
    """A PX4 flight, in microseconds as int64."""

    def load(topic, columns, **options):
        # Text to integers: no stamp goes through floating point.
        table = pandas.read_csv(folder / f"{flight}_{topic}.csv", dtype={"timestamp": np.int64})
        values = table[columns].to_numpy()
        return {"values": values, "times": table["timestamp"].to_numpy(), **options}

    def indexed(field, count):
        return [f"{field}[{i}]" for i in range(count)]

    gyro, accelerometer = indexed("gyro_rad", 3), indexed("accelerometer_m_s2", 3)
    q, rates = indexed("q", 4), indexed("xyz", 3)
    xyz, v = ["x", "y", "z"], ["vx", "vy", "vz"]
    streams = {
        "imu": load("sensor_combined", accelerometer + gyro, max_gap=10_000, clock_offset=-1_250),
        "gyro": load("sensor_combined", gyro, method="cubic", max_gap=12_000, outside="fill"),
        "gyro, monotone": load("sensor_combined", gyro, method="pchip"),
        "attitude": load("vehicle_attitude", q, method="slerp", max_gap=20_000),
        "attitude, late": load("vehicle_attitude", q, method="slerp", clock_offset=33_333),
        "attitude, nearest": load("vehicle_attitude", q, method="nearest", tolerance=2_500),
        "position": load(
            "vehicle_local_position",
            xyz + v,
            method=[(0, 3, "cubic"), (3, 2, "linear"), (5, 1, "pchip")],
            max_gap=150_000,
        ),
        "position, extrapolated": load("vehicle_local_position", xyz, outside="extrapolate"),
    }
    # The same rotations, as an estimator gives them that does not mind their sign.
    attitude = streams["attitude"]
    signs = np.where(np.arange(len(attitude["values"])) % 3 == 1, -1.0, 1.0)
    streams["attitude, signed"] = {**attitude, "values": attitude["values"] * signs[:, None]}
    if flight == "sample":
        outputs = indexed("output", 4)
        streams["motors"] = load("actuator_outputs", outputs, method="previous", max_gap=99_000)
        streams["motors, next"] = load(
            "actuator_outputs", outputs, method="next", tolerance=30_000, fill_value=-1.0
        )
    else:
        streams["angular velocity"] = load("vehicle_angular_velocity", rates, max_gap=6_000)
        streams["angular velocity, cubic"] = load(
            "vehicle_angular_velocity", rates, method="cubic", max_gap=6_000
        )
        resets = load("vehicle_attitude", ["quat_reset_counter"], method="previous")
        streams["resets"] = {**resets, "values": resets["values"].astype(np.uint8)}
    return streams


def even_clock(streams, step):
    """From before the first sample to after the last."""
    first = min(stream["times"][0] for stream in streams.values())
    last = max(stream["times"][-1] for stream in streams.values())
    count = int((last - first) / step) + 10
    return first + (np.arange(count) - 4) * step


def rounded_to(streams, dtype):
    """The same with values of another float dtype; whole numbers stay."""
    return {
        name: {**stream, "values": stream["values"].astype(dtype)}
        if stream["values"].dtype.kind == "f"
        else stream
        for name, stream in streams.items()
    }
