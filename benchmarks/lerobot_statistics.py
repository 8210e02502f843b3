"""Compare statistics of a LeRobot data set with LeRobot's own class, on the same Parquet files.

    python benchmarks/lerobot_statistics.py --cores 2
    python benchmarks/lerobot_statistics.py --rows 1000000 --rounds 3

A set of 10 million rows of 14 joints is written as LeRobot v3, and each class reads and counts it:

    RoboCache          robocache.data.open(set).select(tracks=["action"]).statistics(): exact
    LeRobot, by file   lerobot.datasets.compute_stats.RunningQuantileStats, one Parquet file at a
                       time, read by pyarrow: the fewest updates, so its fastest
    LeRobot, by episode   the same, one episode at a time, as LeRobot counts while it records

The table has the elapsed time, the CPU time, which other programs affect less, and the error
relative to NumPy in float64 over all rows, in stds of the joint.
"""

from __future__ import annotations

import argparse
import itertools
import os
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import robocache as rbc

JOINTS, LENGTH = 14, 500
LEVELS = (0.01, 0.1, 0.5, 0.9, 0.99)
Told = dict[str, Any]


def write_set(folder: pathlib.Path, rows: int) -> np.ndarray:
    """Write joints that move about different angles."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((rows, JOINTS), np.float32)
    values *= rng.uniform(0.01, 1, JOINTS).astype(np.float32)
    values += rng.uniform(-3, 3, JOINTS).astype(np.float32)
    offsets = np.arange(0, rows + 1, LENGTH)
    times = np.tile(np.arange(LENGTH) / 50, rows // LENGTH)
    track = rbc.Track(values, offsets, times=times)
    tasks = ["task"] * (len(offsets) - 1)
    rbc.data.Episodes({"action": track}, tasks=tasks).save(folder, "lerobot")
    return values


def files_of(folder: pathlib.Path) -> Iterator[np.ndarray]:
    """Return the actions of each Parquet file."""
    for path in sorted(folder.glob("data/*/*.parquet")):
        column = pq.read_table(path, columns=["action"])["action"].combine_chunks()
        yield column.flatten().to_numpy().reshape(-1, JOINTS)


def ours(folder: pathlib.Path) -> Told:
    result = rbc.data.open(folder).select(tracks=["action"]).statistics()["action"]
    quantiles = {f"q{round(q * 100):02d}": result.quantile(q) for q in LEVELS}
    return {"mean": result.mean, "std": result.std, **quantiles}


def lerobots(folder: pathlib.Path, by_episode: bool) -> Told:
    from lerobot.datasets.compute_stats import RunningQuantileStats

    running = RunningQuantileStats()
    for values in files_of(folder):
        for begin in range(0, len(values), LENGTH if by_episode else len(values)):
            running.update(values[begin : begin + LENGTH] if by_episode else values)
    return running.get_statistics()


def exact(values: np.ndarray) -> Told:
    columns = [values[:, j].astype(np.float64) for j in range(JOINTS)]
    results = {"mean": [c.mean() for c in columns], "std": [c.std() for c in columns]}
    for name, row in zip(LEVELS, np.transpose([np.quantile(c, LEVELS) for c in columns])):
        results[f"q{round(name * 100):02d}"] = row
    return {name: np.array(each) for name, each in results.items()}


def off_by(results: Told, right: Told) -> float:
    return max(float(np.abs((results[n] - right[n]) / right["std"]).max()) for n in right)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--cores", type=int, help="run on only this many CPU cores")
    parser.add_argument("--rounds", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.cores:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.cores])
    ways: dict[str, Callable[[pathlib.Path], Told]] = {"RoboCache": ours}
    try:
        import lerobot.datasets.compute_stats  # noqa: F401
    except ImportError:
        print("lerobot is not installed: its class is skipped", file=sys.stderr)
    else:
        ways["LeRobot, by file"] = lambda folder: lerobots(folder, False)
        ways["LeRobot, by episode"] = lambda folder: lerobots(folder, True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "set"
        right = exact(write_set(folder, arguments.rows))
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        busy: dict[str, list[float]] = {name: [] for name in ways}
        results = {}
        for _, (name, way) in itertools.product(range(arguments.rounds), ways.items()):
            begin, begin_busy = time.perf_counter(), time.process_time()
            results[name] = way(folder)
            seconds[name].append(time.perf_counter() - begin)
            busy[name].append(time.process_time() - begin_busy)
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    print(f"{arguments.rows} x {JOINTS} float32, from Parquet, {os.cpu_count()} cores:")
    for name, median in medians.items():
        more = "" if name == "RoboCache" else f"{median / medians['RoboCache']:.1f} x"
        off, cpu = off_by(results[name], right), statistics.median(busy[name])
        print(f"  {name:20} {median:7.2f} s, of CPUs {cpu:7.2f} s  off by {off:.1e} stds  {more}")


if __name__ == "__main__":
    main()
