"""The simulated robot arm of ``robocache demo-data`` as a recording of this demo."""

from __future__ import annotations

from typing import Any

from recordings import Panel, Recording, make_stream, tilt
from robocache.cli.demo_data import (
    DURATION_S,
    EPOCH_NS,
    TICKS_PER_SECOND,
    force,
    gripper,
    imu_readings,
    joint_angles,
    pose,
    simulate_arm,
)

__all__ = [
    "DURATION_S",
    "EPOCH_NS",
    "force",
    "gripper",
    "imu_readings",
    "joint_angles",
    "pose",
    "simulate_recording",
]

#: How each stream is resampled and drawn.
_OPTIONS: dict[str, dict[str, Any]] = {
    "joints": {"panels": (Panel("joint 2\n[rad]", 1),)},
    "imu": {"panels": (Panel("accel x\n[m/s²]"),)},
    "pose": {
        "method": ((0, 3, "linear"), (3, 4, "slerp")),
        "panels": (Panel("height\n[m]", 2), Panel("tilt\n[deg]", 3, tilt)),
    },
    # A contact begins and ends at once: a smooth curve, but one that does not overshoot.
    "force": {"method": "pchip", "panels": (Panel("force z\n[N]", 2),)},
    # A state, not a signal: between open and closed there is nothing.
    "gripper": {"method": "previous", "panels": (Panel("closed"),)},
}


def simulate_recording(seed: int = 7) -> Recording:
    streams = tuple(
        make_stream(name, s.times, s.values, s.channels, s.rate_hz, **_OPTIONS[name])
        for name, s in simulate_arm(seed).items()
    )
    return Recording(
        "arm",
        f"a simulated robot arm (seed {seed})",
        streams,
        ticks_per_second=TICKS_PER_SECOND,
        stamp_unit="ns",
        clock_hz=50.0,
        window_s=(4.1, 1.25),
    )
