"""Measure the time and memory of the commands of `robocache` on large data.

    python benchmarks/command_line.py --data ../shared/data --lerobot /path/to/its/python

- `inspect` and `report` of an MCAP file of a gigabyte: the messages of a real one, repeated.
- `stats` of a LeRobot data set of 10 million frames of 14 channels, made here, compared with
  LeRobot's own class, RunningQuantileStats, on a part of the same Parquet files: one episode at a
  time; in large batches, its fastest mode, which is not used in practice; and as LeRobot itself
  uses it, once per episode. LeRobot is imported by a separate Python; that time is not counted.

Each command is a separate process, timed from its start to its end. Factors compare CPU time, which
other programs affect little. The table is in Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import resource
import struct
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np

BAGS = {
    "ROS 2, MCAP": "ros2_mcap_crazyflie_vicon/pitch0bag",
    "ROS 2, MCAP, custom types": "ros2_mcap_crab_custom/adya_gait",
}
CHANNELS = 14
EPISODE = 500  # frames
A_FILE = 1_000_000  # frames

# The memory that getrusage reports is at least that of the parent process.
MEASURED = """
import sys
from robocache.cli import main
code = main(sys.argv[1:])
status = open("/proc/self/status").read()
print(status.partition("VmHWM:")[2].split()[0], file=sys.stderr)
sys.exit(code)
"""

LEROBOT = """
import sys, time
import numpy as np, pyarrow.parquet as pq
from lerobot.datasets.compute_stats import (
    RunningQuantileStats, aggregate_stats, compute_episode_stats
)
rows = 0
begin = time.process_time()
columns = []
for path in sys.argv[2:]:
    column = pq.read_table(path, columns=["action"])["action"].combine_chunks()
    columns.append(column.flatten().to_numpy().reshape(len(column), -1))
    rows += len(column)
if sys.argv[1].isdigit():
    stats, size = RunningQuantileStats(), int(sys.argv[1])
    for values in columns:
        for at in range(0, len(values), size):
            stats.update(values[at : at + size])
    stats.get_statistics()
else:
    features = {"action": {"dtype": "float32", "shape": columns[0].shape[1:]}}
    episodes = [
        compute_episode_stats({"action": values[at : at + 500]}, features)
        for values in columns for at in range(0, len(values), 500)
    ]
    aggregate_stats(episodes)
print(rows, time.process_time() - begin)
"""
LEROBOT_WAYS = {
    "500": "LeRobot's RunningQuantileStats, one episode per update",
    "250000": "the same, 250,000 rows per update",
    "episodes": "LeRobot's statistics per episode, aggregated",
}


def data_set(folder: pathlib.Path, frames: int) -> None:
    """Write a LeRobot v3.0 data set with one feature: smooth motion with sensor noise."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    episodes = frames // EPISODE
    features = {
        "action": {"dtype": "float32", "shape": [CHANNELS], "names": None},
        "timestamp": {"dtype": "float32", "shape": [1], "names": None},
        "episode_index": {"dtype": "int64", "shape": [1], "names": None},
    }
    info = {"codebase_version": "v3.0", "fps": 50, "chunks_size": 1000, "features": features}
    for name in ("meta/episodes/chunk-000", "data/chunk-000"):
        (folder / name).mkdir(parents=True)
    (folder / "meta/info.json").write_text(json.dumps(info))
    number = np.arange(episodes)
    table = {
        "episode_index": number,
        "tasks": pa.array([["move"]] * episodes),
        "length": np.full(episodes, EPISODE),
        "data/chunk_index": np.zeros(episodes, np.int64),
        "data/file_index": number * EPISODE // A_FILE,
    }
    pq.write_table(pa.table(table), folder / "meta/episodes/chunk-000/file-000.parquet")
    rng = np.random.default_rng(1)
    for file, begin in enumerate(range(0, frames, A_FILE)):
        count = min(A_FILE, frames - begin)
        t = (begin + np.arange(count, dtype=np.float64))[:, None] / 50
        values = np.sin(t * (0.1 + 0.03 * np.arange(CHANNELS))) + rng.normal(
            0, 0.02, (count, CHANNELS)
        )
        flat = pa.array(values.astype(np.float32).reshape(-1))
        index = (begin + np.arange(count)) // EPISODE
        columns = {
            "action": pa.FixedSizeListArray.from_arrays(flat, CHANNELS),
            "timestamp": ((np.arange(count) % EPISODE) / 50).astype(np.float32),
            "episode_index": index,
        }
        pq.write_table(pa.table(columns), folder / f"data/chunk-000/file-{file:03d}.parquet")


def command(*arguments: Any) -> tuple[float, float, float]:
    """Return the seconds, the seconds of CPU time, and the peak memory in MB of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    run = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, arguments)], capture_output=True, text=True
    )
    seconds = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if run.returncode:
        sys.exit(run.stderr)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, used, int(run.stderr.split()[-1]) / 1024


def large_bag(source: pathlib.Path, target: pathlib.Path, size: float) -> None:
    """Write the messages of a bag repeatedly, with later times in each copy."""
    from rosbags.highlevel import AnyReader
    from rosbags.rosbag2 import StoragePlugin, Writer

    with AnyReader([source]) as bag:
        messages = list(bag.messages())
        span = messages[-1][1] - messages[0][1] + 2_000_000
        with Writer(target, version=9, storage_plugin=StoragePlugin.MCAP) as out:
            made = {
                c.id: out.add_connection(c.topic, c.msgtype, typestore=bag.typestore)
                for c in bag.connections
            }
            written, round_ = 0, 0
            while written < size:
                for connection, at, raw in messages:
                    seconds, rest = struct.unpack_from("<iI", raw, 4)  # in a header, which all have
                    stamp = divmod(seconds * 10**9 + rest + round_ * span, 10**9)
                    raw = raw[:4] + struct.pack("<iI", *stamp) + raw[12:]
                    out.write(made[connection.id], at + round_ * span, raw)
                    written += len(raw) + 31
                round_ += 1


def of_bags(folder: pathlib.Path, scratch: pathlib.Path, gigabytes: float) -> list[list[str]]:
    rows = []
    for name, path in BAGS.items():
        bag = scratch / name
        large_bag(folder / path, bag, gigabytes * 1e9)
        for words in (["inspect", bag], ["report", bag, "--html", scratch / "r.html"]):
            seconds, used, memory = command(*words, *(["--overwrite"] * (words[0] == "report")))
            label = f"`{words[0]}`, {gigabytes:g} GB of {name}"
            rows.append([label, f"{seconds:.1f} s", f"{used:.1f} s", f"{memory:.0f} MB", ""])
        print(f"page: {(scratch / 'r.html').stat().st_size / 1e6:.2f} MB", file=sys.stderr)
    return rows


def of_statistics(
    scratch: pathlib.Path, frames: int, part: int, python: str | None
) -> list[list[str]]:
    folder = scratch / "set"
    data_set(folder, frames)
    seconds, used, memory = command("stats", folder)
    row = [f"`stats`, {frames} x {CHANNELS}", f"{seconds:.1f} s", f"{used:.1f} s"]
    rows = [[*row, f"{memory:.0f} MB", ""]]
    if python is not None:
        files = sorted((folder / "data/chunk-000").iterdir())[: max(1, part // A_FILE)]
        for way, words in LEROBOT_WAYS.items():
            run = subprocess.run(
                [python, "-c", LEROBOT, way, *map(str, files)],
                capture_output=True,
                text=True,
                check=True,
            )
            counted, taken = map(float, run.stdout.split())
            whole = taken / counted * frames
            label = f"{words} ({counted:.0f} rows: {taken:.1f} s)"
            rows.append([label, "", f"{whole:.0f} s", "", f"{whole / used:.1f} x"])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--data", type=pathlib.Path, default=pathlib.Path(os.environ.get("ROBOCACHE_DATA") or "."),
        help="the folder of recordings (default: $ROBOCACHE_DATA)",
    )  # fmt: skip
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of the MCAP to inspect")
    parser.add_argument("--frames", type=int, default=10_000_000, help="of the LeRobot data set")
    parser.add_argument("--part", type=int, default=1_000_000, help="of these for LeRobot itself")
    parser.add_argument("--lerobot", metavar="PYTHON", help="one that has lerobot 0.4")
    options = parser.parse_args()
    rows = [["", "time", "of the processor", "memory", "times as long"], ["---"] * 5]
    with tempfile.TemporaryDirectory() as scratch:
        rows += of_statistics(pathlib.Path(scratch), options.frames, options.part, options.lerobot)
        rows += of_bags(options.data, pathlib.Path(scratch), options.gigabytes)
    print("\n".join(f"| {' | '.join(row)} |" for row in rows))


if __name__ == "__main__":
    main()
