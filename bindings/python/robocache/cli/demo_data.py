"""``robocache demo-data``: a recording for trying out the other commands.

It is a simulated robot arm: smooth motion, recorded by five sensors with the faults of real ones:
jitter, lost samples, dropouts, repeated stamps, and a sensor that is switched on late. The motion
is a plain function of time, so aligned streams can be compared with the truth.
"""

import csv
import os
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Union

import numpy as np
import typer

from .._files.atomic_write import written_beside
from ._common import AsJson, Failure
from ._display import print_json

#: 2024-03-01 09:00:00 UTC in nanoseconds: float32 rounds such stamps to 137 s, float64 to 256 ns.
EPOCH_NS = 1_709_283_600_000_000_000
DURATION_S = 20.0
TICKS_PER_SECOND = 1_000_000_000

_GRIPPER_SWITCHES_S = (2.1, 4.72, 7.9, 10.4, 13.3, 17.0)


def demo_data(
    output: Annotated[Path, typer.Argument(help="The folder to write.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Write a recording for trying out the other commands: a simulated robot arm.

    One .csv file for each of five sensors, at 25 to 200 Hz, with the faults of real recordings.
    """
    if os.path.lexists(output):
        raise Failure(f"{output} exists; name a new folder")
    streams = simulate_arm()
    with written_beside(str(output), overwrite=False) as part:
        os.mkdir(part)
        for name, stream in streams.items():
            _write_csv(os.path.join(part, f"{name}.csv"), stream)
    samples = {name: len(stream.times) for name, stream in streams.items()}
    if as_json:
        print_json({"output": str(output), "samples": samples})
    else:
        print(f"wrote {output}: {sum(samples.values())} samples of {', '.join(samples)}")


# --- The motion, at t seconds --------------------------------------------------------------------


def joint_angles(t: Any) -> Any:
    """Return seven angles in rad, [N, 7]."""
    joint = np.arange(7)
    slow = np.sin(2 * np.pi * (0.11 + 0.03 * joint) * t[:, None] + joint)
    fast = np.sin(2 * np.pi * (0.7 + 0.09 * joint) * t[:, None] + 2 * joint)
    return (0.9 - 0.08 * joint) * slow + 0.14 * fast


def imu_readings(t: Any) -> Any:
    """Return acceleration in m/s^2 with gravity on z, then angular velocity in rad/s, [N, 6]."""
    accel = np.stack([1.6 * np.sin(2 * np.pi * f * t + f) for f in (1.3, 1.9, 0.8)], axis=1) + [
        0,
        0,
        9.81,
    ]
    gyro = np.stack([0.5 * np.sin(2 * np.pi * f * t - f) for f in (1.1, 0.6, 2.2)], axis=1)
    return np.hstack([accel, gyro])


def tool_position(t: Any) -> Any:
    """Return the position in m, [N, 3]."""
    return np.stack(
        [0.45 + 0.12 * np.cos(1.9 * t), 0.18 * np.sin(1.3 * t), 0.35 + 0.07 * np.sin(3.1 * t)],
        axis=1,
    )


def tool_orientation(t: Any) -> Any:
    """Return a unit quaternion w, x, y, z, [N, 4]: a rotation back and forth about a fixed axis."""
    half = 0.5 * (0.8 * np.sin(1.1 * t) + 0.3 * np.sin(2.7 * t))
    return np.hstack([np.cos(half)[:, None], np.sin(half)[:, None] * np.array([0.36, 0.48, 0.8])])


def pose(t: Any) -> Any:
    """Return position, then orientation, [N, 7]."""
    return np.hstack([tool_position(t), tool_orientation(t)])


def force(t: Any) -> Any:
    """Return a force in N, [N, 3]: a pull while the gripper is closed, with soft edges."""
    pull = np.zeros(len(t))
    for begin, end in zip(_GRIPPER_SWITCHES_S[::2], _GRIPPER_SWITCHES_S[1::2]):
        pull += 0.5 * (np.tanh((t - begin - 0.1) / 0.04) - np.tanh((t - end - 0.1) / 0.04))
    return pull[:, None] * np.array([1.5, -0.8, -6.0]) + 0.3 * np.sin(9 * t)[:, None]


def gripper(t: Any) -> Any:
    """Return whether the gripper is closed, [N, 1]."""
    return np.searchsorted(_GRIPPER_SWITCHES_S, t, side="right")[:, None] % 2 == 1


# --- The sensors ---------------------------------------------------------------------------------


class SimulatedStream(NamedTuple):
    """The samples of one sensor in the order in which they arrive."""

    times: np.ndarray  #: [N] int64, nanoseconds
    values: np.ndarray  #: [N, D] float32 or bool
    channels: tuple[str, ...]
    rate_hz: float


def simulate_arm(seed: int = 7) -> dict[str, SimulatedStream]:
    """Return the streams of a robot arm, by name."""
    rng = np.random.default_rng(seed)

    def stamps(
        rate_hz: float,
        jitter_s: float,
        lost: float,
        dropouts: list[tuple[float, float]],
        begin_s: float = 0.0,
        end_s: float = DURATION_S,
    ) -> np.ndarray:
        """Return the times of a sensor's readings, in seconds; dropouts are (begin, length)."""
        ideal = np.arange(begin_s, end_s, 1 / rate_hz)
        # Clipped so that readings stay in order.
        t = ideal + np.clip(rng.normal(0, jitter_s, len(ideal)), -0.45 / rate_hz, 0.45 / rate_hz)
        is_kept = rng.random(len(t)) >= lost
        for begin, length in dropouts:
            is_kept &= (t < begin) | (t > begin + length)
        return t[is_kept & (t >= 0)]

    def stream(
        t: np.ndarray,
        readings: np.ndarray,
        noise: Union[float, np.ndarray],
        channels: tuple[str, ...],
        rate_hz: float,
    ) -> SimulatedStream:
        values = readings
        if values.dtype != bool:
            values = (values + rng.normal(0, noise, values.shape)).astype(np.float32)
        times = EPOCH_NS + np.rint(t * TICKS_PER_SECOND).astype(np.int64)
        return SimulatedStream(times, values, channels, rate_hz)

    joints_t = stamps(100, 0.0012, 0.01, [(4.35, 0.17), (11.2, 0.12), (16.05, 0.40)])
    # A driver that sometimes reads twice in one cycle and gives both readings the same stamp.
    twice = rng.choice(len(joints_t), 40, replace=False)
    joints_t = np.sort(np.concatenate([joints_t, joints_t[twice]]))
    imu_t = stamps(200, 0.0004, 0.003, [(4.88, 0.06), (9.0, 0.03), (18.2, 0.25)], begin_s=0.15)
    pose_t = stamps(
        30, 0.005, 0.01, [(5.02, 0.22), (12.8, 0.50)], begin_s=0.3, end_s=DURATION_S - 0.5
    )
    # A network that sometimes swaps two messages.
    for late in rng.choice(len(pose_t) - 1, 5, replace=False):
        pose_t[[late, late + 1]] = pose_t[[late + 1, late]]
    # q and -q are the same orientation, and an estimator may return either.
    pose_readings = pose(pose_t)
    pose_readings[:, 3:] *= np.where(rng.random(len(pose_t)) < 0.2, -1, 1)[:, None]
    # This sensor is switched on late.
    force_t = stamps(60, 0.002, 0.02, [], begin_s=4.42)
    gripper_t = stamps(25, 0.004, 0.01, [(14.1, 0.30)])

    joint_names = tuple(f"joint_{i}" for i in range(1, 8))
    imu_names = ("accel_x", "accel_y", "accel_z", "gyro_x", "gyro_y", "gyro_z")
    pose_names = ("x", "y", "z", "qw", "qx", "qy", "qz")
    pose_noise = np.repeat([0.0005, 0.0], [3, 4])
    return {
        "joints": stream(joints_t, joint_angles(joints_t), 0.002, joint_names, 100),
        "imu": stream(imu_t, imu_readings(imu_t), 0.05, imu_names, 200),
        "pose": stream(pose_t, pose_readings, pose_noise, pose_names, 30),
        "force": stream(force_t, force(force_t), 0.02, ("x", "y", "z"), 60),
        "gripper": stream(gripper_t, gripper(gripper_t), 0.0, ("closed",), 25),
    }


def _write_csv(path: str, stream: SimulatedStream) -> None:
    """Write the samples in time order, as `align` needs them."""
    order = np.argsort(stream.times, kind="stable")
    values = stream.values.astype(int) if stream.values.dtype == bool else stream.values
    with open(path, "w", encoding="ascii", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("time_ns", *stream.channels))
        for time, row in zip(stream.times[order], values[order]):
            writer.writerow((time, *map(str, row)))  # the fewest digits that give the float32
