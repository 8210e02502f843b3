"""Windows of a LeRobot data set: RoboCache's loader against LeRobot's with eight workers.

    python benchmarks/lerobot_windows.py --data ../shared/data/unitree_g1 --cores 2

Two states and fifty actions of a humanoid, in shuffled batches, on the CPU. The set is written as
LeRobot v3 without videos, and each way opens it. Loaders take turns:

    RoboCache                   robocache.torch.WindowLoader
    LeRobotDataset, N workers   lerobot's class in torch's DataLoader; if lerobot is installed
    Dataset, N workers          a class after LeRobot's documentation in the same DataLoader: rows
                                of arrays in memory, so it has less to do than LeRobot's own

All must first return the same numbers. Workers of a DataLoader are persistent, and their start is
not timed. There are no videos: RoboCache does not decode them.
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
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset
from tqdm import tqdm

import robocache as rbc

STATES, ACTIONS = [-1, 0], range(50)
STATE, ACTION = "observation.state", "action"
RATE = 30
Batch = dict[str, Any]


def write_set(source: pathlib.Path, folder: pathlib.Path) -> None:
    """Write the arrays of the Unitree G1 in LeRobot's format."""
    state, action, episode = (
        np.load(source / f"{name}.npy") for name in (STATE, ACTION, "episode_index")
    )
    offsets = np.array([*np.flatnonzero(np.diff(episode, prepend=-1)), len(episode)])
    lengths = np.diff(offsets)
    times = (np.arange(len(episode)) - np.repeat(offsets[:-1], lengths)) / RATE
    tracks = {
        name: rbc.Track(values, offsets, times=times)
        for name, values in ((STATE, state), (ACTION, action))
    }
    tasks = ["task"] * len(lengths)
    rbc.data.Episodes(tracks, tasks=tasks).save(folder, "lerobot")


# ---- loaders -------------------------------------------------------------------------------------


class Rows(Dataset[Batch]):
    """Samples one by one: rows held at the ends of their episode, and a mask of padding."""

    def __init__(self, episodes: rbc.data.Episodes) -> None:
        self._values = {n: torch.from_numpy(episodes[n].values) for n in (STATE, ACTION)}
        offsets = np.asarray(episodes[STATE].episode_offsets)
        self._first = np.repeat(offsets[:-1], np.diff(offsets))
        self._last = np.repeat(offsets[1:] - 1, np.diff(offsets))
        self._offsets = {STATE: np.array(STATES), ACTION: np.array(ACTIONS)}

    def __len__(self) -> int:
        return len(self._first)

    def __getitem__(self, index: int) -> Batch:
        sample = {}
        for name, values in self._values.items():
            rows = index + self._offsets[name]
            held = rows.clip(self._first[index], self._last[index])
            sample[name] = values[torch.from_numpy(held)]
            sample[f"{name}_is_pad"] = torch.from_numpy(held != rows)
        return sample


def lerobot_set(folder: pathlib.Path) -> Any:
    """Return LeRobot's own class on the same files; None if it is not installed."""
    try:
        from lerobot.datasets.lerobot_dataset import LeRobotDataset
    except ImportError:
        return None
    os.environ["HF_HUB_OFFLINE"] = "1"
    seconds = {STATE: [o / RATE for o in STATES], ACTION: [o / RATE for o in ACTIONS]}
    return LeRobotDataset("local/set", root=folder, delta_timestamps=seconds)


def loader_of(dataset: Any, size: int, workers: int) -> Iterator[Batch]:
    loader = DataLoader(
        dataset, size, shuffle=True, num_workers=workers, drop_last=True, persistent_workers=True
    )
    return itertools.chain.from_iterable(itertools.repeat(loader))


def check(batch: rbc.torch.WindowBatch, episodes: rbc.data.Episodes, sets: dict[str, Any]) -> None:
    offsets = np.asarray(episodes[STATE].episode_offsets)
    rows = offsets[batch.episodes.numpy()] + batch.anchors.numpy()
    for way, dataset in sets.items():
        for i, row in enumerate(rows[:64].tolist()):
            sample = dataset[row]
            for name in (STATE, ACTION):
                same = torch.equal(sample[name], batch[name][i])
                if not same or not torch.equal(sample[f"{name}_is_pad"], ~batch.valid[name][i]):
                    raise SystemExit(f"lerobot_windows.py: {way} gives another {name} at {row}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = os.environ.get("ROBOCACHE_DATA", "../shared/data")
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path(data) / "unitree_g1")
    parser.add_argument("--cores", type=int, help="run on only this many CPU cores")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2.0, help="per loader and round")
    arguments = parser.parse_args()
    if arguments.cores:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.cores])
    with tempfile.TemporaryDirectory() as folder:
        run(pathlib.Path(folder) / "set", arguments)


def run(folder: pathlib.Path, arguments: argparse.Namespace) -> None:
    write_set(arguments.data, folder)
    episodes = rbc.data.open(folder)
    spec = rbc.WindowSpec({STATE: STATES, ACTION: ACTIONS})
    loader = rbc.torch.WindowLoader(episodes, spec, arguments.batch, drop_last=True)
    loaders = {"LeRobotDataset": lerobot_set(folder), "Dataset": Rows(episodes)}
    sets = {
        f"{name}, {arguments.workers} workers": s for name, s in loaders.items() if s is not None
    }
    if len(sets) < len(loaders):
        print("lerobot is not installed: its class is skipped", file=sys.stderr)
    check(next(iter(loader)), episodes, sets)

    ways: dict[str, Iterator[Any]] = {
        "RoboCache": itertools.chain.from_iterable(itertools.repeat(loader))
    }
    for name, dataset in sets.items():
        ways[name] = loader_of(dataset, arguments.batch, arguments.workers)
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in tqdm(range(arguments.rounds), desc="rounds", disable=None):
        for name, batches in ways.items():
            rates[name].append(rate_of(batches, arguments.seconds, arguments.workers))
            time.sleep(0.5)  # time for workers to prepare batches
    medians = {name: statistics.median(each) * arguments.batch for name, each in rates.items()}
    print(f"{episodes[STATE].num_rows} samples, B {arguments.batch}, {os.cpu_count()} cores:")
    for name, rate in medians.items():
        more = "" if name == "RoboCache" else f"{medians['RoboCache'] / rate:.0f} x"
        print(f"  {name:28} {rate:14,.0f} windows/s  {more}")


def rate_of(batches: Iterator[Any], seconds: float, workers: int) -> float:
    """Return batches per second, without the batches prepared in advance: two per worker."""
    for _ in range(2 * workers + 2):
        next(batches)
    count, begin = 0, time.perf_counter()
    while count < 4 or time.perf_counter() - begin < seconds:
        next(batches)
        count += 1
    return count / (time.perf_counter() - begin)


if __name__ == "__main__":
    main()
