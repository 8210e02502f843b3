"""Demonstrations of a simulated arm that reaches for a disc, which only a camera sees.

Bags with joints, commands and frames are converted to a LeRobot data set with video.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

import robocache as rbc

JOINTS = ("shoulder", "elbow")
HEIGHT, WIDTH, RATE = 48, 64, 10  # of the frames
START = 1_700_000_000 * 10**9
STORE = get_typestore(Stores.ROS2_HUMBLE)
JOINT_STATE, IMAGE = "sensor_msgs/msg/JointState", "sensor_msgs/msg/Image"


def place_of(angles: np.ndarray) -> np.ndarray:
    """Return the base, the elbow and the hand [3,2] in units of the frame's height."""
    first, second = angles[0], angles[0] + angles[1]
    elbow = 0.45 * np.array([np.cos(first), np.sin(first)])
    return np.stack([np.zeros(2), elbow, elbow + 0.4 * np.array([np.cos(second), np.sin(second)])])


def frame_of(angles: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Draw the arm in blue and the disc in red, seen from above."""
    rows, columns = np.mgrid[:HEIGHT, :WIDTH] / HEIGHT
    points = np.stack([columns - WIDTH / HEIGHT / 2, rows - 0.05], -1)
    frame = np.full((HEIGHT, WIDTH, 3), 225, np.uint8)
    frame[((points - goal) ** 2).sum(-1) < 0.07**2] = (200, 40, 40)
    places = place_of(angles)
    for begin, end in zip(places[:-1], places[1:]):
        link = end - begin
        share = np.clip(((points - begin) @ link) / (link @ link), 0, 1)
        near = ((points - begin - share[..., None] * link) ** 2).sum(-1) < 0.04**2
        frame[near] = (40, 60, 160)
    return frame


def record(path: Path, seed: int, seconds: float) -> None:
    """Write a bag: the arm reaches for one disc after the other."""
    rng = np.random.default_rng(seed)

    def target() -> np.ndarray:
        return np.array([rng.uniform(0.6, 2.5), rng.uniform(-1.2, 1.2)])

    angles, goal = target(), target()
    types = STORE.types
    none = np.zeros(0)
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as bag:
        kinds = {"/joint_states": JOINT_STATE, "/commands": JOINT_STATE, "/camera": IMAGE}
        topics = {
            name: bag.add_connection(name, kind, typestore=STORE) for name, kind in kinds.items()
        }
        for step in range(round(seconds * RATE)):
            if np.abs(goal - angles).max() < 0.08:
                goal = target()
            command = angles + np.clip(goal - angles, -0.15, 0.15)
            frame = frame_of(angles, place_of(goal)[2])
            ns = START + step * 10**9 // RATE
            stamp = types["builtin_interfaces/msg/Time"](ns // 10**9, ns % 10**9)
            header = types["std_msgs/msg/Header"](stamp, "base")
            messages: dict[str, Any] = {
                "/joint_states": types[JOINT_STATE](header, list(JOINTS), angles, none, none),
                "/commands": types[JOINT_STATE](header, list(JOINTS), command, none, none),
                "/camera": types[IMAGE](
                    header, HEIGHT, WIDTH, "rgb8", 0, 3 * WIDTH, frame.reshape(-1)
                ),
            }
            for topic, message in messages.items():
                bag.write(topics[topic], ns, STORE.serialize_cdr(message, kinds[topic]))
            angles = command


def demonstrations(folder: Path, count: int = 12, seconds: float = 12.0) -> Path:
    """Return a LeRobot data set with video in a folder; make it if it is not there."""
    data_set = folder / "reaching"
    if not data_set.exists():
        (folder / "bags").mkdir(parents=True, exist_ok=True)
        for number in range(count):
            path = folder / "bags" / f"run_{number:03d}"
            if not path.exists():
                record(path, number, seconds)
        rbc.data.convert(
            folder / "bags",
            data_set,
            rate=RATE,
            tracks={"observation.state": ["/joint_states:position"], "action": ["/commands"]},
            images={"front": "/camera"},
            tasks="reach for the disc",
        )
    return data_set
