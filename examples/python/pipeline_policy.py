#!/usr/bin/env python3
"""One pipeline file from a recorded bag to commands, without a robot.

    pipeline_policy.py --out DIR

Two bags of a simulated arm are written: joints at 100 Hz, a goal at 20 Hz, and the commands of a
person at 50 Hz, all with delays. The first bag gives the pipeline file and trains a small policy on
the CPU. The second one is replayed message by message through ``Pipeline.live`` with the same file,
and the policy's commands are compared with what the person commanded. ``commands.svg`` shows both.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore
from torch import nn

import robocache as rbc

JOINTS = ("shoulder", "elbow")
START = 1_700_000_000 * 10**9
STEPS = 4  # commands of a window
STORE = get_typestore(Stores.ROS2_HUMBLE)
JOINT_STATE = "sensor_msgs/msg/JointState"
POINT = "geometry_msgs/msg/PointStamped"


# ---- two recordings ------------------------------------------------------------------------------


def header(stamp: int) -> Any:
    time = STORE.types["builtin_interfaces/msg/Time"](stamp // 10**9, stamp % 10**9)
    return STORE.types["std_msgs/msg/Header"](time, "base")


def joints(stamp: int, order: np.ndarray, angles: np.ndarray) -> Any:
    none = np.zeros(0)
    names = [JOINTS[i] for i in order]
    return STORE.types[JOINT_STATE](header(stamp), names, angles[order], none, none)


def point(stamp: int, goal: np.ndarray) -> Any:
    made = STORE.types["geometry_msgs/msg/Point"](float(goal[0]), float(goal[1]), 0.0)
    return STORE.types[POINT](header(stamp), made)


def record(path: Path, seed: int, seconds: float) -> Path:
    """Write a bag: a person moves two joints to goals that change now and then."""
    rng = np.random.default_rng(seed)
    angles, goal = rng.uniform(-1, 1, 2), rng.uniform(-1, 1, 2)
    told: list[tuple[int, str, str, Any]] = []

    def tell(topic: str, kind: str, stamp: int, message: Any) -> None:
        delay = 0.002 + rng.exponential(0.003)
        told.append((stamp + round(delay * 1e9), topic, kind, message))

    for tick in range(round(seconds * 100)):
        stamp = START + tick * 10_000_000 + int(rng.integers(0, 1_000_000))
        if rng.random() < 0.01:
            goal = rng.uniform(-1, 1, 2)
        command = angles + 0.4 * (goal - angles)
        angles = angles + 0.05 * (command - angles)
        order = rng.permutation(2)  # drivers do not promise an order
        tell("/joint_states", JOINT_STATE, stamp, joints(stamp, order, angles))
        if tick % 2 == 0:
            tell("/command", JOINT_STATE, stamp, joints(stamp, np.arange(2), command))
        if tick % 5 == 0:
            tell("/goal", POINT, stamp, point(stamp, goal))
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as bag:
        connections: dict[str, Any] = {}
        for arrival, topic, kind, message in sorted(told, key=lambda each: each[0]):
            if topic not in connections:
                connections[topic] = bag.add_connection(topic, kind, typestore=STORE)
            bag.write(connections[topic], arrival, STORE.serialize_cdr(message, kind))
    return path


# ---- the pipeline file, and the policy -----------------------------------------------------------


def describe(bag: Path) -> rbc.Pipeline:
    """Describe the bag, say what it does not say, and compute the statistics."""
    document = rbc.Pipeline.init(bag, rate=25).to_dict()
    document["clock"]["lag"] = 0.005
    for stream in document["streams"].values():
        for channel in stream["channels"]:
            if channel["unit"] == "?":
                channel["unit"] = "rad"
            channel["name"] = channel["name"].removeprefix("position[").removesuffix("]")
    streams = document["streams"]
    streams["goal"]["channels"] = streams["goal"]["channels"][:2]  # z is always 0
    relative = {
        "kind": "subtract",
        "begin": 0,
        "count": 2,
        "reference": {"window": "joint_states", "index": -1},
        "reference_begin": 0,
        "rotation": None,
        "reference_rotation": None,
        "out_rotation": None,
    }
    document["windows"]["joint_states"]["offsets"] = [-1, 0]
    document["windows"]["command"].update(offsets=list(range(STEPS)), transforms=[relative])
    document["actions"] = {
        "window": "command",
        "channels": [channel["name"] for channel in streams["command"]["channels"]],
        "limits": [[-1.2, 1.2], [-1.2, 1.2]],
        "smooth": None,
        "latency": 0,
    }
    draft = rbc.Pipeline(document, draft=True)
    return draft.fit(draft.open(bag))


def inputs(windows: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.cat([windows["joint_states"].flatten(1), windows["goal"].flatten(1)], 1)


def train(pipeline: rbc.Pipeline, bag: Path, epochs: int) -> nn.Module:
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(6, 64), nn.Tanh(), nn.Linear(64, 2 * STEPS))
    optimizer = torch.optim.Adam(policy.parameters(), 3e-3)
    loader = rbc.torch.WindowLoader(pipeline.open(bag), pipeline.windows(), 64, seed=0)
    loss = torch.zeros(())
    for _ in range(epochs):
        for batch in loader:
            target, valid = batch["command"], batch.valid["command"]
            off = (policy(inputs(batch)).reshape(target.shape) - target).square().mean(-1)
            loss = (off * valid).sum() / valid.sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"trained on {bag.name}: loss {loss.item():.4f}")
    return policy.eval()


# ---- the robot -----------------------------------------------------------------------------------


def drive(
    pipeline: rbc.Pipeline, fingerprint: str, policy: nn.Module, bag: Path
) -> list[tuple[int, dict[str, float]]]:
    """Replay a bag as it was recorded; at each tick, the policy commands from what had arrived."""
    live = pipeline.live()
    live.require(fingerprint)
    ticks = pipeline.open(bag)["joint_states"].times
    lag = round(pipeline.to_dict()["clock"]["lag"] * 1e9)
    commands = []
    with Reader(bag) as reader:
        messages = reader.messages()
        waiting = next(messages, None)
        for tick in ticks.tolist():
            while waiting is not None and waiting[1] <= tick + lag:
                connection, arrival, raw = waiting
                if connection.topic in live.topics:
                    live.push_message(connection.topic, raw, arrival)
                waiting = next(messages, None)
            seen = live.observe(tick + lag)
            windows = {name: torch.from_numpy(values) for name, values in seen.items()}
            with torch.no_grad():
                result = policy(inputs(windows)).reshape(1, STEPS, 2).numpy()
            absolute = pipeline.denormalize("command", result, seen)
            commands.append((tick, pipeline.command(absolute)[0]))
    return commands


def draw(path: Path, times: np.ndarray, curves: dict[str, np.ndarray]) -> None:
    """Draw curves over time, one panel per joint."""
    width, height = 800, 180
    colors = ("#0072B2", "#D55E00")
    parts = []
    for panel, joint in enumerate(JOINTS):
        low = min(curve[:, panel].min() for curve in curves.values())
        high = max(curve[:, panel].max() for curve in curves.values())
        top = 30 + panel * (height + 20)
        parts.append(f'<text x="8" y="{top - 4}">{joint} [rad], {low:.2f} to {high:.2f}</text>')
        for (name, curve), color in zip(curves.items(), colors):
            x = (times - times[0]) / max(times[-1] - times[0], 1) * (width - 20) + 10
            y = top + (high - curve[:, panel]) / max(high - low, 1e-9) * height
            points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y))
            parts.append(f'<polyline points="{points}" fill="none" stroke="{color}"/>')
            if panel == 0:
                place = width - 220 + 110 * list(curves).index(name)
                parts.append(f'<text x="{place}" y="26" fill="{color}">{name}</text>')
    length = (times[-1] - times[0]) / 1e9
    bottom = 30 + 2 * (height + 20)
    parts.append(f'<text x="8" y="{bottom}">time: 0 to {length:.0f} s</text>')
    size = f'width="{width}" height="{bottom + 10}"'
    style = 'font-family="sans-serif" font-size="13"'
    body = "\n".join(parts)
    path.write_text(f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n{body}\n</svg>\n')


def main(arguments: list[str] | None = None) -> int:
    text = argparse.RawTextHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=text)
    parser.add_argument("--out", type=Path, default=Path("pipeline_policy"))
    parser.add_argument("--seconds", type=float, default=60.0, help="length of each bag")
    parser.add_argument("--epochs", type=int, default=40)
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    first = record(options.out / "first", 1, options.seconds)
    second = record(options.out / "second", 2, options.seconds / 2)

    pipeline = describe(first)
    pipeline.save(options.out)
    policy = train(pipeline, first, options.epochs)
    checkpoint = {"policy": policy.state_dict(), "pipeline": pipeline.fingerprint}

    loaded = rbc.Pipeline.load(options.out)  # on the robot
    commands = drive(loaded, checkpoint["pipeline"], policy, second)
    times = np.array([time for time, _ in commands])
    ours = np.array([[command[joint] for joint in JOINTS] for _, command in commands])
    episodes = loaded.open(second)
    names = list(episodes["command"].names)
    person = episodes["command"].values[:, [names.index(joint) for joint in JOINTS]]
    off = float(np.sqrt(np.square(ours - person).mean()))
    draw(options.out / "commands.svg", times, {"person": person, "policy": ours})
    print(f"{len(commands)} commands are off by {off:.3f} rad; theirs vary by {person.std():.3f}")
    print(f"wrote {options.out / 'commands.svg'} and {options.out / 'robocache_pipeline.json'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
