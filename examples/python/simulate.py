"""A simulated recording of a robot arm: smooth motion, seen by sensors as they are in real life.

The motion is a plain function of time, so that what was aligned can be compared with the truth.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from recordings import Panel, Recording, StreamData, make_stream, tilt

#: 2024-03-01 09:00:00 UTC in nanoseconds: f32 would round such stamps to 137 s, and f64 to 256 ns.
EPOCH_NS = 1_709_283_600_000_000_000
DURATION_S = 20.0

_TICKS_PER_SECOND = 1_000_000_000
_GRIPPER_SWITCHES_S = (2.1, 4.72, 7.9, 10.4, 13.3, 17.0)


def joint_angles(t: np.ndarray) -> np.ndarray:
    """[N, 7] rad at t seconds."""
    joint = np.arange(7)
    slow = np.sin(2 * np.pi * (0.11 + 0.03 * joint) * t[:, None] + joint)
    fast = np.sin(2 * np.pi * (0.7 + 0.09 * joint) * t[:, None] + 2 * joint)
    return (0.9 - 0.08 * joint) * slow + 0.14 * fast


def imu_readings(t: np.ndarray) -> np.ndarray:
    """[N, 6]: acceleration in m/s^2 with gravity on z, then angular velocity in rad/s."""
    accel = np.stack([1.6 * np.sin(2 * np.pi * f * t + f) for f in (1.3, 1.9, 0.8)], axis=1) + [
        0,
        0,
        9.81,
    ]
    gyro = np.stack([0.5 * np.sin(2 * np.pi * f * t - f) for f in (1.1, 0.6, 2.2)], axis=1)
    return np.hstack([accel, gyro])


def tool_position(t: np.ndarray) -> np.ndarray:
    """[N, 3] in m."""
    return np.stack(
        [0.45 + 0.12 * np.cos(1.9 * t), 0.18 * np.sin(1.3 * t), 0.35 + 0.07 * np.sin(3.1 * t)],
        axis=1,
    )


def tool_orientation(t: np.ndarray) -> np.ndarray:
    """[N, 4] unit quaternion w, x, y, z: a rotation about a fixed axis, to and fro."""
    half = 0.5 * (0.8 * np.sin(1.1 * t) + 0.3 * np.sin(2.7 * t))
    return np.hstack([np.cos(half)[:, None], np.sin(half)[:, None] * np.array([0.36, 0.48, 0.8])])


def pose(t: np.ndarray) -> np.ndarray:
    """[N, 7]: position, then orientation."""
    return np.hstack([tool_position(t), tool_orientation(t)])


def force(t: np.ndarray) -> np.ndarray:
    """[N, 3] in N: a pull while the gripper holds something, which fades in and out."""
    pull = np.zeros(len(t))
    for begin, end in zip(_GRIPPER_SWITCHES_S[::2], _GRIPPER_SWITCHES_S[1::2]):
        pull += 0.5 * (np.tanh((t - begin - 0.1) / 0.04) - np.tanh((t - end - 0.1) / 0.04))
    return pull[:, None] * np.array([1.5, -0.8, -6.0]) + 0.3 * np.sin(9 * t)[:, None]


def gripper(t: np.ndarray) -> np.ndarray:
    """[N, 1]: whether it is closed."""
    return np.searchsorted(_GRIPPER_SWITCHES_S, t, side="right")[:, None] % 2 == 1


def simulate_recording(seed: int = 7) -> Recording:
    rng = np.random.default_rng(seed)

    def stamps(
        rate_hz: float,
        jitter_s: float,
        lost: float,
        dropouts: list[tuple[float, float]],
        begin_s: float = 0.0,
        end_s: float = DURATION_S,
    ) -> np.ndarray:
        """When a sensor was read, in seconds; dropouts as (begin, length)."""
        ideal = np.arange(begin_s, end_s, 1 / rate_hz)
        # Clipped, so that a reading never overtakes the one before it.
        t = ideal + np.clip(rng.normal(0, jitter_s, len(ideal)), -0.45 / rate_hz, 0.45 / rate_hz)
        kept = rng.random(len(t)) >= lost
        for begin, length in dropouts:
            kept &= (t < begin) | (t > begin + length)
        return t[kept & (t >= 0)]

    def stream(
        name: str,
        t: np.ndarray,
        readings: np.ndarray,
        noise: float | np.ndarray,
        channels: tuple[str, ...],
        rate_hz: float,
        **options: Any,
    ) -> StreamData:
        values = readings
        if values.dtype != bool:
            values = (values + rng.normal(0, noise, values.shape)).astype(np.float32)
        times = EPOCH_NS + np.rint(t * _TICKS_PER_SECOND).astype(np.int64)
        return make_stream(name, times, values, channels, rate_hz, **options)

    joints_t = stamps(100, 0.0012, 0.01, [(4.35, 0.17), (11.2, 0.12), (16.05, 0.40)])
    # A driver that at times reads twice in one turn of its loop, and gives both the same stamp.
    twice = rng.choice(len(joints_t), 40, replace=False)
    joints_t = np.sort(np.concatenate([joints_t, joints_t[twice]]))
    imu_t = stamps(200, 0.0004, 0.003, [(4.88, 0.06), (9.0, 0.03), (18.2, 0.25)], begin_s=0.15)
    pose_t = stamps(
        30, 0.005, 0.01, [(5.02, 0.22), (12.8, 0.50)], begin_s=0.3, end_s=DURATION_S - 0.5
    )
    # A network that now and then hands over the later of two messages first.
    for late in rng.choice(len(pose_t) - 1, 5, replace=False):
        pose_t[[late, late + 1]] = pose_t[[late + 1, late]]
    # q and -q are the same orientation, and an estimator gives now the one, now the other.
    pose_readings = pose(pose_t)
    pose_readings[:, 3:] *= np.where(rng.random(len(pose_t)) < 0.2, -1, 1)[:, None]
    # Switched on late.
    force_t = stamps(60, 0.002, 0.02, [], begin_s=4.42)
    gripper_t = stamps(25, 0.004, 0.01, [(14.1, 0.30)])

    streams = (
        stream(
            "joints",
            joints_t,
            joint_angles(joints_t),
            0.002,
            tuple(f"joint_{i}" for i in range(1, 8)),
            100,
            panels=(Panel("joint 2\n[rad]", 1),),
        ),
        stream(
            "imu",
            imu_t,
            imu_readings(imu_t),
            0.05,
            ("accel_x", "accel_y", "accel_z", "gyro_x", "gyro_y", "gyro_z"),
            200,
            panels=(Panel("accel x\n[m/s²]"),),
        ),
        stream(
            "pose",
            pose_t,
            pose_readings,
            np.repeat([0.0005, 0.0], [3, 4]),
            ("x", "y", "z", "qw", "qx", "qy", "qz"),
            30,
            method=((0, 3, "linear"), (3, 4, "slerp")),
            panels=(Panel("height\n[m]", 2), Panel("tilt\n[deg]", 3, tilt)),
        ),
        # A contact begins and ends at once: a smooth curve, but one that does not overshoot.
        stream(
            "force",
            force_t,
            force(force_t),
            0.02,
            ("x", "y", "z"),
            60,
            method="pchip",
            panels=(Panel("force z\n[N]", 2),),
        ),
        # A state, not a signal: between open and closed there is nothing.
        stream(
            "gripper",
            gripper_t,
            gripper(gripper_t),
            0.0,
            ("closed",),
            25,
            method="previous",
            panels=(Panel("closed"),),
        ),
    )
    return Recording(
        "arm",
        f"a simulated robot arm (seed {seed})",
        streams,
        ticks_per_second=_TICKS_PER_SECOND,
        stamp_unit="ns",
        clock_hz=50.0,
        window_s=(4.1, 1.25),
    )
