"""The images of a loader's batches, made by the thread that prepares them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from .._arguments.call import begin
from .._cache.store import pinned_bytes, register
from .._library.context import default_context
from ._registered import memory_bytes
from ._sampler import Samples

if TYPE_CHECKING:
    from .._windows.image_steps import ImageSteps
    from ..data._frames.window_images import WindowImages

Outputs = dict[str, tuple[torch.Tensor, torch.Tensor]]  # by window: values and valid


@dataclass
class BatchMemory:
    """Memory for the arrays of a batch, by name: pinned, and frames on the GPU. It grows."""

    held: dict[str, torch.Tensor] = field(default_factory=dict)
    frames: dict[str, torch.Tensor] = field(default_factory=dict)

    def pinned(self, name: str, count: int, like: torch.Tensor) -> torch.Tensor:
        """Return memory [count,...] with the dtype and the rows of another tensor."""
        found = self.held.get(name)
        if found is None or len(found) < count:
            shape = (count, *like.shape[1:])
            found = self.held[name] = torch.empty(shape, dtype=like.dtype, pin_memory=True)
        return found[:count]

    def moved(self, name: str, array: Any, device: torch.device) -> torch.Tensor:
        """Return an array of NumPy on a device, by a copy that nothing waits for."""
        source = torch.from_numpy(array)
        memory = self.pinned(name, len(source), source)
        memory.copy_(source)
        return memory.to(device, non_blocking=True)


class BatchImages:
    """The windows of images of a loader, on the device of its batches."""

    def __init__(self, windows: list[WindowImages], device: torch.device, pin: int) -> None:
        self._windows, self._device = windows, device
        self._on_cuda = device.type == "cuda"
        self._steps: dict[str, ImageSteps] = {}
        self._registered: set[str] = set()
        self._prefetched = self._not_in_memory()
        if self._on_cuda:
            for window in windows:
                self._steps[window.name] = window.steps.on(
                    lambda array: torch.from_numpy(array).to(device)
                )
            self._register(pin)

    @property
    def prefetches(self) -> bool:
        """Whether :meth:`prefetch` does something."""
        return bool(self._prefetched)

    def _not_in_memory(self) -> list[WindowImages]:
        """Return the windows whose stores are so large that the page cache may not hold them."""
        from ..data._frames.reader import StoredFrames

        stores = {
            id(window.reader): window.reader.num_bytes
            for window in self._windows
            if isinstance(window.reader, StoredFrames)
        }
        if sum(stores.values()) <= memory_bytes() // 2:
            return []
        return [window for window in self._windows if id(window.reader) in stores]

    def prefetch(self, samples: Samples) -> None:
        """Ask the system to read the frames of a later batch."""
        for window in self._prefetched:
            frames = window.frames(samples.episodes.numpy(), samples.anchors.numpy())
            reader: Any = window.reader
            reader.prefetch(frames.episodes, frames.places)

    def _register(self, budget: int) -> None:
        """Let the GPU read the frames of stores, as far as the budget reaches."""
        from ..data._frames.reader import StoredFrames

        context = default_context(self._device.index or 0)
        fits: dict[int, bool] = {}
        for window in self._windows:
            reader = window.reader
            if not isinstance(reader, StoredFrames) or not reader.is_mapped:
                continue
            if id(reader) not in fits:
                size = reader.num_bytes
                fits[id(reader)] = size <= budget
                if size <= budget:
                    for entry in reader.entries:
                        register(context, entry.handle, entry.num_bytes)
                    budget -= size
                    fits[id(reader)] = all(
                        pinned_bytes(entry.handle) > 0 for entry in reader.entries
                    )
            if fits[id(reader)]:
                self._registered.add(window.name)

    def forms(self) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
        """Return the shape of a sample and the dtype, by window."""
        default = "bfloat16" if self._on_cuda else "float32"
        return {
            window.name: (
                window.shape,
                getattr(torch, str(window.steps.dtype or default).rpartition(".")[2]),
            )
            for window in self._windows
        }

    def write(
        self, samples: Samples, seed: int, epoch: int, memory: BatchMemory, out: Outputs
    ) -> None:
        """Write the images of samples, which are on the CPU, to ``out``, on torch's stream."""
        episodes, anchors = samples.episodes.numpy(), samples.anchors.numpy()
        repeats = None if samples.repeats is None else samples.repeats.numpy()
        for window in self._windows:
            frames = window.frames(episodes, anchors)
            draws = window.draws(episodes, anchors, repeats, seed, epoch)
            values, valid = out[window.name]
            if not self._on_cuda:
                valid.copy_(torch.from_numpy(frames.valid))
                window.write(frames, draws, values)
                continue

            def moved(part: str, array: Any, window: WindowImages = window) -> torch.Tensor:
                return memory.moved(f"{window.name}/{part}", array, self._device)

            valid.copy_(moved("valid", frames.valid))
            on_device: Any = None
            if draws is not None:
                on_device = {
                    name: each if name == "crop_size" else moved(name, each)
                    for name, each in draws.items()
                }
            self._steps[window.name].apply(
                [self._moved(window, frames, memory)],
                rows=moved("rows", frames.rows),
                draws=on_device,
                are_stored=window.reader.are_stored,
                out=values.view(-1, *window.steps.image_shape),
            )

    def _moved(self, window: WindowImages, frames: Any, memory: BatchMemory) -> torch.Tensor:
        """Return the frames of a batch on the GPU."""
        from ..data._frames.reader import StoredFrames

        count, reader = len(frames.rows), window.reader
        held = memory.frames.get(window.name)
        if held is None or len(held) < count:
            held = torch.empty((count, *reader.shape), dtype=torch.uint8, device=self._device)
            memory.frames[window.name] = held
        part = held[: len(frames)]
        if len(frames) == 0:
            return held[:1]
        if window.name in self._registered and isinstance(reader, StoredFrames):
            _, context, _, _ = begin(held, "frames", None)
            reader.read(frames.episodes, frames.places, part, context)
            return part
        host = memory.pinned(window.name, count, held)[: len(frames)]
        reader.read(frames.episodes, frames.places, host.numpy())
        return part.copy_(host, non_blocking=True)
