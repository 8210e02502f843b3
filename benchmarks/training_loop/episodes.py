"""Episodes of streams with different rates, and batches of them."""

from __future__ import annotations

import dataclasses
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

TICKS = 250  # of the clock of every episode


@dataclasses.dataclass(frozen=True)
class Sensor:
    channels: int
    longest: int  # the most samples per episode
    max_gap: float | None = None
    clock_offset: float = 0.0


@dataclasses.dataclass(frozen=True)
class Episodes:
    name: str
    sensors: list[Sensor]
    recordings: list[list[tuple[Any, Any]]]  # per episode and sensor: times [S], values [S,D]
    clocks: list[Any]  # per episode: [T], in the dtype of the times

    @property
    def channels(self) -> int:
        return sum(sensor.channels for sensor in self.sensors)


def random_episodes(count: int) -> Episodes:
    """Episodes of 2.5 to 5 s, whose stamps jitter by 15 %, with a dropout in every other stream.

    A camera's features, a tactile skin, joints and a force sensor: 256 channels at 30, 60 and twice
    100 Hz, 500 samples at most. One clock is late, and the ticks have 50 Hz for 5 s.
    """
    generator = np.random.default_rng(1)
    rates = (30, 60, 100, 100)
    sizes = ((128, 0.0), (64, 0.0125), (56, 0.0), (8, -0.004))  # channels, clock offset
    sensors = [
        Sensor(channels, 5 * hz, 3 / hz, offset) for hz, (channels, offset) in zip(rates, sizes)
    ]
    recordings, clocks = [], []
    for _ in range(count):
        start = generator.uniform(100, 10_000)  # seconds since boot
        seconds = generator.uniform(2.5, 5)
        streams = []
        for hz, sensor in zip(rates, sensors):
            steps = (1 + generator.uniform(-0.15, 0.15, int(seconds * hz))) / hz
            times = start + steps.cumsum() - sensor.clock_offset
            if generator.random() < 0.5:
                lost = times[0] + generator.uniform(0.2, 0.8) * seconds
                times = times[(times < lost) | (times > lost + 0.15)]
            shape = (times.size, sensor.channels)
            streams.append((times, generator.standard_normal(shape, np.float32)))
        recordings.append(streams)
        clocks.append(start + np.arange(TICKS) / 50)
    return Episodes("random", sensors, recordings, clocks)


def g1_episodes(folder: pathlib.Path) -> Episodes:
    """Return actions and states of a Unitree G1 as recorded, at 30 Hz; ticks at 20 Hz."""
    action, state, times, episode = (
        np.load(folder / f"{name}.npy")
        for name in ("action", "observation.state", "timestamp", "episode_index")
    )
    begins = np.flatnonzero(np.diff(episode, prepend=-1))
    rows = [slice(*pair) for pair in zip(begins, [*begins[1:], episode.size])]
    recordings = [[(times[r], values[r]) for values in (action, state)] for r in rows]
    longest = max(times[r].size for r in rows)
    sensors = [Sensor(values.shape[1], longest) for values in (action, state)]
    clock = (np.arange(TICKS) / 20).astype(times.dtype)
    return Episodes("Unitree G1", sensors, recordings, [clock] * len(rows))


Collate = Callable[[Episodes, Any], Any]


class Batches(torch.utils.data.Dataset):
    """Batch i has the same episodes for every collate function."""

    def __init__(self, episodes: Episodes, size: int, collate: Collate) -> None:
        self.episodes = episodes
        self.size = size
        self.collate = collate

    def __getitem__(self, index: int) -> Any:
        return self.collate(self.episodes, self.chosen(index))

    def chosen(self, index: int) -> Any:
        count = len(self.episodes.recordings)
        return np.random.default_rng(index).integers(count, size=self.size)


def raw_batch(episodes: Episodes, chosen: Any) -> tuple[torch.Tensor, ...]:
    """Return clocks [B,T], lengths [N,B], and all streams, padded: values after times."""
    tensors = empty_batch(episodes, len(chosen))
    fill_batch(episodes, chosen, tensors)
    return tensors


def empty_batch(episodes: Episodes, size: int, pinned: bool = False) -> tuple[torch.Tensor, ...]:
    sensors = episodes.sensors
    samples = size * sum(sensor.longest for sensor in sensors)
    numbers = size * sum(sensor.longest * sensor.channels for sensor in sensors)
    seconds = torch.from_numpy(episodes.clocks[0]).dtype
    return tuple(
        torch.empty(shape, dtype=dtype, pin_memory=pinned)
        for shape, dtype in (
            ((size, TICKS), seconds),
            ((len(sensors), size), torch.int64),
            ((samples,), seconds),
            ((numbers,), torch.float32),
        )
    )


def fill_batch(episodes: Episodes, chosen: Any, tensors: tuple[torch.Tensor, ...]) -> None:
    clocks, lengths = (tensor.numpy() for tensor in tensors[:2])
    for b, e in enumerate(chosen):
        clocks[b] = episodes.clocks[e]
    for n, (v, t, _) in enumerate(streams_of(episodes, tensors)):
        v, t = v.numpy(), t.numpy()
        for b, e in enumerate(chosen):
            stamps, rows = episodes.recordings[e][n]
            size = lengths[n, b] = stamps.size
            t[b, :size], v[b, :size] = stamps, rows
            t[b, size:], v[b, size:] = np.inf, 0


def streams_of(
    episodes: Episodes, batch: tuple[torch.Tensor, ...]
) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Return for each sensor the values [B,S,D], times [B,S] and lengths [B] of a raw batch."""
    clocks, lengths, times, values = batch
    size = clocks.shape[0]
    counts = [size * sensor.longest for sensor in episodes.sensors]
    widths = [count * sensor.channels for count, sensor in zip(counts, episodes.sensors)]
    return [
        (v.view(size, sensor.longest, sensor.channels), t.view(size, sensor.longest), n)
        for sensor, v, t, n in zip(
            episodes.sensors, values.split(widths), times.split(counts), lengths
        )
    ]
