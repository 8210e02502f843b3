"""Cutting of a loader's batches: directly on the GPU, or ahead of use in a thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import torch

from .._arguments.arrays import framework_of
from .._episodes.episodes import Episodes
from .._library.context import CPU
from .._printable import kind_of
from .._windows.spec import WindowSpec
from .._windows.windows import result_dtype, windows
from ._frames import BatchImages, BatchMemory, Outputs
from ._sampler import Samples


@dataclass(frozen=True)
class WindowBatch:
    """B samples: ``batch["action"]`` is the window "action", [B,O,D']."""

    values: Mapping[str, torch.Tensor]  #: [B,O,D'] by window, or images [B,O,C,h,w]; row numbers
    # [B,O] of a track without values
    valid: Mapping[str, torch.Tensor]  #: bool [B,O] by window; the opposite of LeRobot's ``is_pad``
    episodes: torch.Tensor  #: int64 [B], the episode of each sample
    anchors: torch.Tensor  #: int64 [B], the anchor row in the episode

    def __getitem__(self, name: str) -> torch.Tensor:
        return self.values[name]

    def __len__(self) -> int:
        return len(self.episodes)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> WindowBatch:
        """Return the batch on a device; tensors that are there are not copied."""

        def moved(tensor: torch.Tensor) -> torch.Tensor:
            return tensor.to(device, non_blocking=non_blocking)

        return WindowBatch(
            {name: moved(tensor) for name, tensor in self.values.items()},
            {name: moved(tensor) for name, tensor in self.valid.items()},
            moved(self.episodes),
            moved(self.anchors),
        )


_PREFETCHED = 2  # batches, before their frames are read
Forms = dict[str, tuple[tuple[int, ...], torch.dtype]]  # shape of a sample and dtype


def require_episodes_and_spec(episodes: Any, spec: Any) -> None:
    """Refuse arguments of other types."""
    if not isinstance(episodes, Episodes):
        what = type(episodes).__name__
        hint = "; align(rate) makes one of it" if what == "Recording" else ""
        raise TypeError(f"episodes: is a {what}, expected a robocache.Episodes{hint}")
    if not isinstance(spec, WindowSpec):
        raise TypeError(f"spec: is {kind_of(spec)}, expected a robocache.WindowSpec")


class Cutter:
    """The streams of a spec over episodes, and the shapes of their results."""

    def __init__(self, episodes: Episodes, spec: WindowSpec, batch_size: int) -> None:
        first = episodes[spec._rows_track(episodes)]
        framework = framework_of(first.episode_offsets, "episode_offsets")
        number = framework.device(first.episode_offsets, "episode_offsets")
        self.device = torch.device("cpu") if number == CPU else torch.device("cuda", number)
        if number != CPU:
            episodes = episodes.to(self.device)  # as torch tensors in the same memory
        self._streams = spec.streams(episodes)
        self._anchor_stream = spec.anchor_stream if self._streams else 0
        self._lag = spec.lag
        self.batch_size = batch_size
        #: Shape and dtype of each window that is output.
        self.forms: Forms = {}
        for name, stream in zip(spec.numbers, self._streams):
            opened = stream._opened
            if opened.writes:
                channels = () if opened.out_channels is None else (opened.out_channels,)
                kind = getattr(torch, result_dtype(opened, spec.dtype))
                self.forms[name] = ((opened.num_offsets, *channels), kind)
        self._outputs = [
            name if stream._opened.writes else None
            for name, stream in zip(spec.numbers, self._streams)
        ]

    def empty(self, device: torch.device, pinned: bool = False) -> Outputs:
        """Return uninitialized tensors for a batch."""
        return empty(self.forms, self.batch_size, device, pinned)

    def cut(self, samples: Samples, into: Outputs) -> WindowBatch:
        """Return a batch in the first rows of the given tensors."""
        parts = first_rows(into, len(samples.episodes))
        if self._streams:
            windows(
                self._streams,
                samples.episodes,
                samples.anchors,
                anchor_stream=self._anchor_stream,
                lag=self._lag,
                out=[None if name is None else parts[name] for name in self._outputs],
            )
        return _batch(parts, samples)


def empty(forms: Forms, size: int, device: torch.device, pinned: bool = False) -> Outputs:
    """Return uninitialized tensors for the windows of a batch."""
    options: dict[str, Any] = {"device": device, "pin_memory": pinned}
    return {
        name: (
            torch.empty((size, *shape), dtype=kind, **options),
            torch.empty((size, shape[0]), dtype=torch.bool, **options),
        )
        for name, (shape, kind) in forms.items()
    }


def first_rows(outputs: Outputs, size: int) -> Outputs:
    return {name: (values[:size], valid[:size]) for name, (values, valid) in outputs.items()}


class Direct:
    """Batches that are cut on the GPU when they are used, in the order of its stream."""

    def __init__(self, cutter: Cutter, fresh: bool) -> None:
        self._cutter, self._fresh = cutter, fresh
        self._kept: Outputs | None = None

    def cut(
        self, samples: Iterator[Samples], seed: int = 0, epoch: int = 0
    ) -> Generator[WindowBatch, None, None]:
        """Yield the batches of the samples. Each is valid until the next one."""
        for each in samples:
            if self._kept is None or self._fresh:
                self._kept = self._cutter.empty(self._cutter.device)
            yield self._cutter.cut(each, self._kept)


@dataclass
class _Slot:
    """Memory for one batch. Events mark the end of its copy to the GPU and of its use."""

    host: Outputs  # what the CPU cuts
    host_samples: torch.Tensor | None = None  # episodes and anchors, [2,B]
    device: Outputs | None = None
    device_samples: torch.Tensor | None = None
    stream: Any = None
    copied: Any = None
    released: Any = None
    batch: WindowBatch | None = None
    memory: BatchMemory = field(default_factory=BatchMemory)


class Ahead:
    """Batches that threads prepare ahead of their use: two if there are images.

    Numbers are cut on the device of the episodes, and images are made on that of the batches.
    """

    def __init__(
        self,
        cutter: Cutter,
        device: torch.device,
        fresh: bool,
        ahead: int,
        images: BatchImages | None = None,
    ) -> None:
        self._cutter, self._device, self._fresh = cutter, device, fresh
        self._images = images
        self._image_forms: Forms = {} if images is None else images.forms()
        self._on_cuda = device.type == "cuda"
        self._cuts_on_cuda = cutter.device.type == "cuda"
        self._count = ahead + 1  # one more for the batch in use
        self._slots: list[_Slot] | None = None
        cuda: Any = torch.cuda  # its classes are not typed
        self._cuda = cuda

    def cut(
        self, samples: Iterator[Samples], seed: int = 0, epoch: int = 0
    ) -> Generator[WindowBatch, None, None]:
        """Yield the batches of the samples. Each is valid until the next one."""
        if self._slots is None:
            self._slots = [self._slot() for _ in range(self._count)]
        free = deque(self._slots)
        waiting: deque[Future[_Slot]] = deque()
        if self._images is not None and self._images.prefetches:
            samples = _prefetched(samples, self._images)
        threads = 1 if self._images is None else 2
        with ThreadPoolExecutor(threads, thread_name_prefix="robocache-windows") as thread:
            try:
                while True:
                    while free and (each := next(samples, None)) is not None:
                        slot = free.popleft()
                        waiting.append(thread.submit(self._prepare, slot, each, seed, epoch))
                    if not waiting:
                        return
                    slot = waiting.popleft().result()
                    yield self._received(slot)
                    if self._on_cuda:
                        slot.released.record(torch.cuda.current_stream(self._device))
                    free.append(slot)
            finally:
                for future in waiting:
                    future.cancel()

    def _slot(self) -> _Slot:
        host: Outputs = {}
        if not self._cuts_on_cuda:
            host = self._cutter.empty(torch.device("cpu"), pinned=self._on_cuda)
        if not self._on_cuda:
            host.update(self._empty_images())
        slot = _Slot(host)
        if self._on_cuda:
            shape = (2, self._cutter.batch_size)
            slot.host_samples = torch.empty(shape, dtype=torch.int64, pin_memory=True)
            slot.device_samples = torch.empty(shape, dtype=torch.int64, device=self._device)
            slot.device = {**self._cutter.empty(self._device), **self._empty_images()}
            slot.stream = self._cuda.Stream(self._device)
            slot.copied, slot.released = self._cuda.Event(), self._cuda.Event()
            # The memory was allocated on the current stream, but another stream writes it.
            slot.released.record(torch.cuda.current_stream(self._device))
        return slot

    def _empty_images(self) -> Outputs:
        return empty(self._image_forms, self._cutter.batch_size, self._device)

    def _prepare(self, slot: _Slot, samples: Samples, seed: int, epoch: int) -> _Slot:
        """Prepare a batch in a slot that is no longer in use. This runs in the thread."""
        if self._on_cuda:
            slot.copied.synchronize()
        elif self._fresh:
            slot.host = {**self._cutter.empty(torch.device("cpu")), **self._empty_images()}
        size = len(samples.episodes)
        if not self._on_cuda:
            if self._images is not None:
                into = first_rows(slot.host, size)
                self._images.write(samples, seed, epoch, slot.memory, into)
            slot.batch = self._cutter.cut(samples, slot.host)
            return slot
        if not self._cuts_on_cuda:
            self._cutter.cut(samples, slot.host)
        assert slot.device is not None and slot.device_samples is not None
        assert slot.host_samples is not None
        into = first_rows(slot.device, size)
        slot.host_samples[0, :size], slot.host_samples[1, :size] = samples[:2]
        with torch.cuda.stream(slot.stream):
            slot.stream.wait_event(slot.released)
            slot.device_samples.copy_(slot.host_samples, non_blocking=True)
            moved = Samples(*slot.device_samples[:, :size])
            if self._cuts_on_cuda:
                self._cutter.cut(moved, slot.device)
            for name, (values, valid) in first_rows(slot.host, size).items():
                into[name][0].copy_(values, non_blocking=True)
                into[name][1].copy_(valid, non_blocking=True)
            if self._images is not None:
                self._images.write(samples, seed, epoch, slot.memory, into)
            slot.batch = _batch(into, moved)
            slot.copied.record(slot.stream)
        return slot

    def _received(self, slot: _Slot) -> WindowBatch:
        batch = slot.batch
        assert batch is not None
        if self._on_cuda:
            torch.cuda.current_stream(self._device).wait_event(slot.copied)
            if self._fresh:
                pairs = {
                    name: (batch.values[name].clone(), batch.valid[name].clone())
                    for name in batch.values
                }
                samples = Samples(batch.episodes.clone(), batch.anchors.clone())
                return _batch(pairs, samples)
        return batch


def _prefetched(samples: Iterator[Samples], images: BatchImages) -> Iterator[Samples]:
    """Yield samples; the frames of each are prefetched two batches before."""
    waiting: deque[Samples] = deque()
    for each in samples:
        images.prefetch(each)
        waiting.append(each)
        if len(waiting) > _PREFETCHED:
            yield waiting.popleft()
    yield from waiting


def _batch(parts: Outputs, samples: Samples) -> WindowBatch:
    values = {name: pair[0] for name, pair in parts.items()}
    valid = {name: pair[1] for name, pair in parts.items()}
    return WindowBatch(values, valid, samples.episodes, samples.anchors)
