"""Reads .imu6 files: four bytes, then records of a time in ns and six numbers of an IMU."""

import os
import pathlib

import numpy as np

from robocache import data

MAGIC = b"IMU6"
RECORD = np.dtype([("time", "<i8"), ("values", "<f4", 6)])
CHANNELS = tuple(f"{sensor}_{axis}" for sensor in ("accel", "gyro") for axis in "xyz")

FORMAT = data.Format(
    name="imu6",
    title="IMU log",
    files="*.imu6",
    reads="One stream, imu: acceleration in m/s^2 and angular velocity in rad/s, with times in ns.",
    refuses="Temperatures, which only some of these sensors write.",
    example='recording = rbc.data.open("walk.imu6")',
)


def sniff(path):
    """Recognize the file by its first bytes, and read no more of it."""
    if not os.path.isfile(path):
        return False
    with pathlib.Path(path).open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def open(path, options):
    content = pathlib.Path(path).read_bytes()[len(MAGIC) :]
    rest = len(content) % RECORD.itemsize
    if rest:
        options.damage.found(path, f"byte {len(MAGIC) + len(content) - rest}", "is cut off")
    records = np.frombuffer(content[: len(content) - rest], RECORD)
    clocks = {"time": records["time"].astype(np.int64)}
    values = np.ascontiguousarray(records["values"])
    stream = data.RecordedStream("imu", "imu6", CHANNELS, values, clocks, "ns")
    return data.Recording.from_streams([stream], path)
