"""Read PX4 flights: one CSV per topic, `timestamp` in integer microseconds since boot."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

import numpy as np

from recordings import Panel, Recording, make_stream, tilt

_TICKS_PER_SECOND = 1_000_000


class _Topic(NamedTuple):
    name: str
    stream: str
    columns: dict[str, str]  # by the name of the channel
    method: str
    panel: Panel


def _columns(field: str, channels: str) -> dict[str, str]:
    return {channel: f"{field}[{i}]" for i, channel in enumerate(channels.split())}


_IMU = _Topic(
    "sensor_combined",
    "imu",
    {
        **_columns("accelerometer_m_s2", "accel_x accel_y accel_z"),
        **_columns("gyro_rad", "gyro_x gyro_y gyro_z"),
    },
    "linear",
    Panel("gyro x\n[rad/s]", 3),
)
_RATES = _Topic(
    "vehicle_angular_velocity",
    "angular_velocity",
    _columns("xyz", "x y z"),
    "linear",
    Panel("rate x\n[rad/s]"),
)
_ATTITUDE = _Topic(
    "vehicle_attitude",
    "attitude",
    _columns("q", "w x y z"),
    "slerp",
    Panel("tilt\n[deg]", curve=tilt),
)
_VELOCITY = _Topic(
    "vehicle_local_position",
    "velocity",
    {"north": "vx", "east": "vy", "down": "vz"},
    "linear",
    Panel("down\n[m/s]", 2),
)
# A command holds until the next one.
_MOTORS = _Topic(
    "actuator_outputs",
    "motors",
    _columns("output", "1 2 3 4"),
    "previous",
    Panel("motor 1\n[µs]"),
)


def read_px4_flights(folder: Path) -> list[Recording]:
    """Read every flight with a file of the inertial sensors; other topics are optional."""
    ending = f"_{_IMU.name}.csv"
    flights = sorted(path.name[: -len(ending)] for path in folder.glob(f"*{ending}"))
    return [_read_flight(folder, flight) for flight in flights]


def _read_flight(folder: Path, flight: str) -> Recording:
    streams = []
    for topic in (_IMU, _RATES, _ATTITUDE, _VELOCITY, _MOTORS):
        path = folder / f"{flight}_{topic.name}.csv"
        if not path.is_file():
            continue
        times, values = _read_csv(path, list(topic.columns.values()))
        stream = make_stream(
            topic.stream,
            times,
            values,
            tuple(topic.columns),
            # The log does not contain the rate: use the median, which dropouts hardly affect.
            nominal_hz=_TICKS_PER_SECOND / float(np.median(np.diff(times))),
            method=topic.method,
            panels=(topic.panel,),
        )
        streams.append(stream)
    # The picture shows where most samples in a row are missing.
    imu, start = streams[0].times, min(stream.times[0] for stream in streams)
    lost_s = (imu[np.argmax(np.diff(imu))] - start) / _TICKS_PER_SECOND
    return Recording(
        f"px4_{flight}",
        f"a PX4 flight controller, log {flight}",
        tuple(streams),
        ticks_per_second=_TICKS_PER_SECOND,
        stamp_unit="us",
        window_s=(max(0.0, lost_s - 0.4), 1.0),
    )


def _read_csv(path: Path, columns: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Stamps [S] as i64 and the named columns [S, D] as f32."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    if len(rows) < 2:
        raise ValueError(f"{path}: {len(rows)} samples, expected two at least")
    try:
        # By int(), never through floating point: a clock may have more digits than a double.
        times = [int(row["timestamp"]) for row in rows]
        values = [[float(row[column]) for column in columns] for row in rows]
    except KeyError as missing:
        raise ValueError(f"{path}: no column {missing}") from None
    except (TypeError, ValueError):
        raise ValueError(f"{path}: a value is missing or not a number") from None
    return np.array(times, dtype=np.int64), np.array(values, dtype=np.float32)
