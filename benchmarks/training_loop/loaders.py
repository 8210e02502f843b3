"""Sources of batches: worker processes, or threads that fill pinned memory."""

from __future__ import annotations

import itertools
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch

import robocache as rbc

from .episodes import Batches, Collate, Episodes, empty_batch, fill_batch

_PREFETCH = 2  # batches per worker in advance
_SLOTS = 6  # batches of the threads
_THREADS = 2
_PATIENCE = 60  # seconds to wait for a batch


def to(device: str, batch: Any) -> Any:
    return tuple(tensor.to(device, non_blocking=True, copy=True) for tensor in batch)


class Workers:
    """Batches from the processes of a data loader; none: from this one."""

    def __init__(
        self, episodes: Episodes, size: int, collate: Collate, device: str, workers: int
    ) -> None:
        self.ahead = workers * _PREFETCH + 1
        self._device = device
        self._batches = iter(
            torch.utils.data.DataLoader(
                Batches(episodes, size, collate),
                batch_size=None,
                sampler=range(1 << 40),
                num_workers=workers,
                prefetch_factor=_PREFETCH if workers else None,
                timeout=_PATIENCE if workers else 0,
                pin_memory=device == "cuda",
            )
        )

    def __next__(self) -> Any:
        return to(self._device, next(self._batches))


class Threads:
    """Raw batches. Padding is copying, and NumPy releases the interpreter's lock for it: threads
    can do it, and they write to memory that the GPU reads, so that a batch is copied once on the
    host.
    """

    ahead = _SLOTS + 1

    def __init__(self, episodes: Episodes, size: int, device: str) -> None:
        self._batches = Batches(episodes, size, lambda _, chosen: chosen)
        self._device = device
        self._on_cuda = device == "cuda"
        self._pool = ThreadPoolExecutor(_THREADS)
        self._numbers = itertools.count()
        self._filled: deque[Any] = deque()
        for _ in range(_SLOTS):
            self._fill(empty_batch(episodes, size, self._on_cuda), None)

    def __next__(self) -> Any:
        slot = self._filled.popleft().result(_PATIENCE)
        batch = to(self._device, slot)
        copied = None
        if self._on_cuda:
            copied = torch.cuda.Event(blocking=True)
            copied.record()
        self._fill(slot, copied)
        return batch

    def _fill(self, slot: Any, copied: Any) -> None:
        self._filled.append(self._pool.submit(self._work, slot, copied, next(self._numbers)))

    def _work(self, slot: Any, copied: Any, number: int) -> Any:
        if copied is not None:
            copied.synchronize()
        fill_batch(self._batches.episodes, self._batches.chosen(number), slot)
        return slot


class Resident:
    """All episodes are on the device, concatenated; a batch is a list of their indices."""

    ahead = 1

    def __init__(self, episodes: Episodes, size: int, device: str) -> None:
        self._batches = Batches(episodes, size, lambda _, chosen: chosen)
        self._numbers = itertools.count()
        self._device = device
        clocks = np.stack(episodes.clocks)
        self._begins = torch.from_numpy(clocks[:, 0].copy()).to(device)
        ticks = (episodes.clocks[0] - episodes.clocks[0][0]).astype(clocks.dtype)
        self._streams = []
        for n, sensor in enumerate(episodes.sensors):
            times, values = zip(*[recording[n] for recording in episodes.recordings])
            offsets = np.concatenate([[0], np.cumsum([len(each) for each in times])])
            self._streams.append(
                rbc.WindowStream(
                    torch.from_numpy(np.concatenate(values)).to(device),
                    ticks,
                    episode_offsets=torch.from_numpy(offsets).to(device),
                    times=torch.from_numpy(np.concatenate(times)).to(device),
                    method="linear",
                    max_gap=sensor.max_gap,
                    clock_offset=sensor.clock_offset,
                )
            )

    def __next__(self) -> Any:
        chosen = torch.from_numpy(self._batches.chosen(next(self._numbers)))
        which = chosen.to(self._device, non_blocking=True)
        return self._streams, which, self._begins[which]
