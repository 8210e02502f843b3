"""How long it takes to open, to go through and to decode recordings, and in how much memory.

    python benchmarks/recordings.py --data ../shared/data

- Decoding: all messages of a bag by the column, beside rosbags, one by one: from the open file to
  arrays, and to objects whose numbers nobody has looked at yet. The least of seven times of the
  processor, which other programs do not slow down much.
- Inspecting: all checks of an MCAP of a given size, the real one over and over.
- Opening: LeRobot data sets of many episodes, v2.1 and v3.0, made here.

The table is in Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable

import numpy as np

import robocache as rbc

BAGS = {
    "ROS 1, bz2": "ros1_robot_localization/test1.bag",
    "ROS 2, sqlite3": "ros2_db3_gps_nav/bag",
    "ROS 2, MCAP": "ros2_mcap_crazyflie_vicon/pitch0bag",
    "ROS 2, MCAP, custom types": "ros2_mcap_crab_custom/adya_gait",
}


def seconds_of(run: Callable[[], Any]) -> float:
    """Of this process, which other ones do not slow down."""
    begin = time.process_time()
    run()
    return time.process_time() - begin


def by_the_column(path: pathlib.Path) -> tuple[float, int]:
    """Seconds from an open bag to arrays, and how many messages."""
    recording = rbc.data.open(path, progress=False)
    seconds = seconds_of(recording.load)
    return seconds, sum(len(stream) for stream in recording.streams.values())


def one_by_one(path: pathlib.Path) -> tuple[float, int]:
    """The same of every message that rosbags knows the type of, to objects of rosbags."""
    from rosbags.highlevel import AnyReader
    from rosbags.typesys import Stores, get_typestore

    with AnyReader([path], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as bag:
        known = [c for c in bag.connections if c.msgtype in bag.typestore.fielddefs]

        def run() -> None:
            for connection, _, raw in bag.messages(known):
                bag.deserialize(raw, connection.msgtype)

        return seconds_of(run), sum(c.msgcount for c in known)


def unpacked(source: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    """A ROS 1 bag whose chunks are not compressed: else it is bz2 that is measured."""
    from rosbags.rosbag1 import Reader, Writer

    with Reader(source) as bag, Writer(target) as out:
        made = {
            c.id: out.add_connection(c.topic, c.msgtype, msgdef=c.msgdef.data, md5sum=c.digest)
            for c in bag.connections
        }
        for connection, at, raw in bag.messages():
            out.write(made[connection.id], at, raw)
    return target


def decoding(folder: pathlib.Path, scratch: pathlib.Path, rounds: int = 7) -> list[list[str]]:
    rows = []
    bags = {name: folder / path for name, path in BAGS.items()}
    bags["ROS 1, not compressed"] = unpacked(bags["ROS 1, bz2"], scratch / "unpacked.bag")
    for name, path in bags.items():
        pairs = [(by_the_column(path), one_by_one(path)) for _ in range(rounds)]
        count = pairs[0][0][1]
        assert count == pairs[0][1][1], name
        ours, theirs = (min(pair[i][0] for pair in pairs) for i in (0, 1))
        cells = [f"{count}", f"{1e3 * ours:.1f} ms", f"{1e3 * theirs:.1f} ms"]
        rows.append([f"decode {name}", *cells, f"{theirs / ours:.1f} x"])
    return rows


def large_bag(source: pathlib.Path, target: pathlib.Path, size: float) -> None:
    """The messages of a bag again and again, with their times after those before."""
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
                    seconds, rest = struct.unpack_from("<iI", raw, 4)  # of a header, which all have
                    stamp = divmod(seconds * 10**9 + rest + round_ * span, 10**9)
                    raw = raw[:4] + struct.pack("<iI", *stamp) + raw[12:]
                    out.write(made[connection.id], at + round_ * span, raw)
                    written += len(raw) + 31
                round_ += 1


def in_a_process(code: str) -> tuple[float, float]:
    """Seconds, and the most memory in MB, of code in a process of its own."""
    after = "\nfor line in open('/proc/self/status'):\n  if line.startswith('VmHWM'): print(line)"
    begin = time.perf_counter()
    run = subprocess.run([sys.executable, "-c", code + after], capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    return time.perf_counter() - begin, float(run.stdout.split()[1]) / 1024


def inspecting(folder: pathlib.Path, scratch: pathlib.Path, gigabytes: float) -> list[list[str]]:
    bag = scratch / "large"
    large_bag(folder / BAGS["ROS 2, MCAP, custom types"], bag, gigabytes * 1e9)
    code = f"import robocache as rbc; rbc.data.checks.survey(rbc.data.open({str(bag)!r}))"
    seconds, memory = in_a_process(code)
    return [[f"inspect {gigabytes:g} GB of MCAP", "", f"{seconds:.1f} s", "", f"{memory:.0f} MB"]]


def many_episodes(folder: pathlib.Path, version: str, count: int, steps: int = 20) -> None:
    """A LeRobot data set; the files of v2.1 are all the same."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    features = {
        "observation.state": {"dtype": "float32", "shape": [6], "names": None},
        "timestamp": {"dtype": "float32", "shape": [1], "names": None},
        "episode_index": {"dtype": "int64", "shape": [1], "names": None},
    }
    info = {"codebase_version": version, "fps": 10, "chunks_size": 1000, "features": features}
    (folder / "meta").mkdir(parents=True)
    (folder / "meta/info.json").write_text(json.dumps(info))
    episodes = count if version == "v3.0" else 1
    rows = episodes * steps
    state = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(rows * 6, np.float32)), 6)
    index = np.repeat(np.arange(episodes), steps)
    table = pa.table({
        "observation.state": state,
        "timestamp": np.tile(np.arange(steps, dtype=np.float32) / 10, episodes),
        "episode_index": index,
    })  # fmt: skip
    if version == "v3.0":
        columns: dict[str, Any] = {
            "episode_index": np.arange(count),
            "tasks": pa.array([["pick and place"]] * count),
            "length": np.full(count, steps),
            "data/chunk_index": np.zeros(count, np.int64),
            "data/file_index": np.zeros(count, np.int64),
        }
        for feature in features:  # as LeRobot has them, and nobody reads them here
            for key in ("min", "max", "mean", "std", "q01", "q10", "q50", "q90", "q99"):
                columns[f"stats/{feature}/{key}"] = pa.array([[0.0] * 6] * count)
        for name, made in (("data", table), ("meta/episodes", pa.table(columns))):
            (folder / name / "chunk-000").mkdir(parents=True)
            pq.write_table(made, folder / name / "chunk-000/file-000.parquet")
        return
    pq.write_table(table, folder / "one")
    content = (folder / "one").read_bytes()
    with open(folder / "meta/episodes.jsonl", "w") as file:
        for e in range(count):
            told = {"episode_index": e, "tasks": ["pick and place"], "length": steps}
            file.write(json.dumps(told) + "\n")
            path = folder / f"data/chunk-{e // 1000:03d}/episode_{e:06d}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


def opening(scratch: pathlib.Path, count: int) -> list[list[str]]:
    rows = []
    for version in ("v2.1", "v3.0"):
        folder = scratch / version
        many_episodes(folder, version, count)
        seconds = statistics.median(
            seconds_of(lambda folder=folder: rbc.data.open(folder)) for _ in range(3)
        )
        rows.append([f"open LeRobot {version}", f"{count} episodes", f"{seconds:.2f} s", "", ""])
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--data", type=pathlib.Path, default=pathlib.Path(os.environ.get("ROBOCACHE_DATA") or "."),
        help="the folder of recordings (default: $ROBOCACHE_DATA)",
    )  # fmt: skip
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of the MCAP to inspect")
    parser.add_argument("--episodes", type=int, default=50_000, help="of the sets to open")
    told = parser.parse_args()
    rows = [["", "of", "RoboCache", "rosbags", ""], ["---"] * 5]
    with tempfile.TemporaryDirectory() as scratch:
        rows += decoding(told.data, pathlib.Path(scratch))
        rows += inspecting(told.data, pathlib.Path(scratch), told.gigabytes)
        rows += opening(pathlib.Path(scratch), told.episodes)
    print("\n".join(f"| {' | '.join(row)} |" for row in rows))


if __name__ == "__main__":
    main()
