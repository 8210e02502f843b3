"""How many windows a second a loader gives: shuffled batches, where they are to be used.

    python benchmarks/window_loader.py                                  # on the GPU if there is one
    python benchmarks/window_loader.py --data ../shared/data/unitree_g1 --device cpu

Of each kind of window RoboCache's WindowLoader takes turns with the same batches by indexing: torch
on the device, NumPy, and NumPy one sample at a time, as data sets with a __getitem__ do. All give
the same numbers, which is tried first. Peers get their samples from torch.randperm.
"""

from __future__ import annotations

import argparse
import itertools
import os
import pathlib
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

import robocache as rbc

FUTURE, PAST = 50, 2
Batch = dict[str, Any]


def g1_episodes(folder: pathlib.Path) -> rbc.Episodes:
    """26 joints of a Unitree G1: states, actions, and both side by side."""
    names = ("observation.state", "action", "episode_index")
    state, action, episode = (np.load(folder / f"{name}.npy") for name in names)
    offsets = [*np.flatnonzero(np.diff(episode, prepend=-1)), len(episode)]
    return episodes_of(state, action, offsets, "Unitree G1")


def random_episodes() -> rbc.Episodes:
    """Of the size of the other's."""
    rng = np.random.default_rng(1)
    offsets = np.concatenate([[0], np.cumsum(rng.integers(220, 500, 100))])
    state, action = rng.standard_normal((2, offsets[-1], 26), np.float32)
    return episodes_of(state, action, offsets, "random")


def episodes_of(state: Any, action: Any, offsets: Any, source: str) -> rbc.Episodes:
    arrays = {"state": state, "action": action, "both": np.concatenate([state, action], 1)}
    tracks = {name: rbc.Track(array, offsets) for name, array in arrays.items()}
    return rbc.Episodes(tracks, source=source)


def specs(episodes: rbc.Episodes) -> dict[str, rbc.WindowSpec]:
    """What is measured, by what it is called."""
    plain = rbc.WindowSpec({"both": range(FUTURE)})
    relative = rbc.Transform("subtract", 0, 26, reference=("state", -1))
    action = rbc.Window(range(FUTURE), transforms=relative)
    policy = rbc.WindowSpec({"state": range(1 - PAST, 1), "action": action})
    return {
        "50 x 52": plain,
        "50 x 52, normalized": normalized(plain, episodes),
        "2 x 26, and 50 x 26 relative, normalized": normalized(policy, episodes),
    }


def normalized(spec: rbc.WindowSpec, episodes: rbc.Episodes) -> rbc.WindowSpec:
    stats = spec.statistics(episodes, quantiles=())
    return spec.normalized(
        {name: rbc.Normalization.of(each, "mean_std") for name, each in stats.items()}
    )


# ---- by indexing ---------------------------------------------------------------------------------


class Indexing:
    """The windows of a spec that has one rate, by rows of arrays of NumPy or torch."""

    def __init__(self, episodes: rbc.Episodes, spec: rbc.WindowSpec, device: str | None) -> None:
        self._spec, self._device = spec, device
        self._values = {name: self._array(track.values) for name, track in episodes.tracks.items()}
        offsets = np.asarray(episodes["state"].lengths).cumsum()
        self._ends = self._array(offsets)
        self._begins = self._array(offsets - episodes["state"].lengths)
        self._steps = {
            name: self._array(np.array(window.offsets)) for name, window in spec.windows.items()
        }
        self._episode = self._array(np.repeat(np.arange(len(offsets)), episodes["state"].lengths))

    def _array(self, array: Any) -> Any:
        return array if self._device is None else torch.from_numpy(array).to(self._device)

    def batch(self, rows: Any) -> Batch:
        """Of samples [B], or of one: its row among those of all episodes."""
        which = self._episode[rows]
        first, last = self._begins[which], self._ends[which] - 1
        result = {}
        for name, window in self._spec.windows.items():
            wanted = rows[..., None] + self._steps[name]
            values = self._values[self._spec.track(name)]
            taken = values[wanted.clip(first[..., None], last[..., None])]
            if window.transforms:
                taken = taken - self._values["state"][rows][..., None, :]
            if window.normalization is not None:
                taken = window.normalization.apply(taken)
            result[name] = taken
            result[f"{name} is valid"] = (wanted >= first[..., None]) & (wanted <= last[..., None])
        return result

    def one_by_one(self, rows: Any) -> Batch:
        samples = [self.batch(row) for row in rows]
        return {name: np.stack([sample[name] for sample in samples]) for name in samples[0]}


def shuffled(total: int, size: int, device: str | None) -> Iterator[Any]:
    """Batches of rows, one epoch after the other."""
    for epoch in itertools.count():
        generator = torch.Generator(device or "cpu").manual_seed(epoch)
        order = torch.randperm(total, generator=generator, device=device or "cpu")
        for rows in order.split(size)[: total // size]:
            yield rows if device is not None else rows.numpy()


# ---- time ----------------------------------------------------------------------------------------


def endless(loader: rbc.torch.WindowLoader) -> Iterator[rbc.torch.WindowBatch]:
    while True:
        yield from loader


def measure(
    episodes: rbc.Episodes, spec: rbc.WindowSpec, device: str, size: int, seconds: float
) -> dict[str, float]:
    """Windows a second of each way."""
    resident = episodes.to(device) if device != "cpu" else episodes
    loader = rbc.torch.WindowLoader(resident, spec, size, drop_last=True)
    by_torch = Indexing(episodes, spec, device)
    by_numpy = Indexing(episodes, spec, None)
    check(next(iter(loader)), by_torch, by_numpy, episodes)

    total = episodes["state"].num_rows
    batches = endless(loader)
    on_device, on_host = shuffled(total, size, device), shuffled(total, size, None)
    ways: dict[str, Callable[[], Any]] = {
        "RoboCache": lambda: next(batches),
        "torch": lambda: by_torch.batch(next(on_device)),
        "NumPy": lambda: by_numpy.batch(next(on_host)),
        "NumPy, one by one": lambda: by_numpy.one_by_one(next(on_host)[:256]),
    }
    sizes = dict.fromkeys(ways, size) | {"NumPy, one by one": min(size, 256)}
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for _ in tqdm(range(5), desc=f"B {size}", disable=None):
        for name, work in ways.items():
            work()
            synchronize(device)
            count, begin = 0, time.perf_counter()
            while count < 2 or time.perf_counter() - begin < seconds / 5:
                work()
                count += 1
            synchronize(device)
            rates[name].append(count * sizes[name] / (time.perf_counter() - begin))
    return {name: statistics.median(each) for name, each in rates.items()}


def check(
    batch: rbc.torch.WindowBatch, by_torch: Indexing, by_numpy: Indexing, episodes: rbc.Episodes
) -> None:
    offsets = np.asarray(episodes["state"].lengths).cumsum() - episodes["state"].lengths
    rows = torch.from_numpy(offsets)[batch.episodes.cpu()] + batch.anchors.cpu()
    answers = [by_torch.batch(rows.to(batch.episodes.device)), by_numpy.batch(rows.numpy())]
    answers.append(by_numpy.one_by_one(rows.numpy()))
    for answer in answers:
        for name, values in batch.values.items():
            for mine, other in ((values, name), (batch.valid[name], f"{name} is valid")):
                given = torch.as_tensor(answer[other]).to(mine.device)
                if not torch.equal(mine, given):
                    raise SystemExit(f"window_loader.py: a peer gives other numbers for {other}")


def synchronize(device: str) -> None:
    if device != "cpu":
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    folder = os.environ.get("ROBOCACHE_DATA")
    default = pathlib.Path(folder) / "unitree_g1" if folder else None
    parser.add_argument("--data", type=pathlib.Path, default=default)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--batch", type=int, nargs="*", default=[256, 4096])
    parser.add_argument("--seconds", type=float, default=2.0, help="of each way")
    arguments = parser.parse_args()
    episodes = random_episodes() if arguments.data is None else g1_episodes(arguments.data)
    print(episodes)
    for name, spec in specs(episodes).items():
        for size in arguments.batch:
            rates = measure(episodes, spec, arguments.device, size, arguments.seconds)
            print(f"{name}, B {size}, on {arguments.device}:")
            for way, rate in rates.items():
                more = rates["RoboCache"] / rate
                print(f"  {way:18} {rate:14,.0f} windows/s  {'' if more == 1 else f'{more:.1f} x'}")


if __name__ == "__main__":
    main()
