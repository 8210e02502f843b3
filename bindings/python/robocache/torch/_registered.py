"""Episodes of a store, in the page cache, as tensors that kernels read over the bus."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import Any

import torch

from .._cache.sizes import bytes_of
from .._cache.store import entry_of, pinned_bytes, register
from .._episodes.episodes import Episodes, make_episodes
from .._episodes.track import Track
from .._library.context import default_context

_TYPESTR = {"bfloat16": "<i2", "bool": "|b1"}  # the interface's; torch views them


class _Memory:
    """Registered host memory, at the address that the GPU has for it."""

    def __init__(self, array: Any) -> None:
        self._array = array  # keeps the entry open
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": _TYPESTR.get(array.dtype.name, array.dtype.str),
            "data": (array.ctypes.data, False),  # kernels only read it
            "strides": array.strides,
            "version": 2,
        }


def budget_of(pin: Any) -> int:
    """Return how many bytes of each entry may be registered.

    None: a quarter of the memory of the machine, shared by the processes of torchrun.
    """
    if pin is not None:
        return bytes_of(pin, "pin")
    return memory_bytes() // 4 // max(1, int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def memory_bytes() -> int:
    """Return the bytes of memory of the machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def registered(
    episodes: Episodes, names: Collection[str], device: torch.device, budget: int
) -> Episodes | None:
    """Return some tracks of episodes for the GPU, without a copy.

    None if an array is not in a store, or the system does not let the GPU read it.
    """
    tracks = {name: episodes[name] for name in names}
    arrays = [array for track in tracks.values() for array in _arrays_of(track)]
    entries = [entry_of(array) for array in arrays]
    if budget == 0 or not entries or any(entry is None for entry in entries):
        return None
    index = torch.cuda.current_device() if device.index is None else device.index
    device = torch.device("cuda", index)
    context = default_context(index)
    for entry in {id(entry): entry for entry in entries}.values():
        register(context, entry, budget)
        if pinned_bytes(entry) == 0:
            return None
    moved = {
        name: track._with(
            **{
                part: _on(device, array)
                for part in ("values", "times", "arrivals")
                if (array := getattr(track, part)) is not None
            },
            episode_offsets=torch.from_numpy(track._offsets.copy()).to(device),
        )
        for name, track in tracks.items()
    }
    return make_episodes(moved)


def _arrays_of(track: Track) -> Iterator[Any]:
    """Yield the arrays that are not copied to the GPU."""
    for array in (track.values, track.times, track.arrivals):
        if array is not None and array.size > 0:
            yield array


def _on(device: torch.device, array: Any) -> torch.Tensor:
    if array.size == 0:
        return torch.from_numpy(array.copy()).to(device)
    tensor = torch.as_tensor(_Memory(array), device=device)
    return tensor.view(torch.bfloat16) if array.dtype.name == "bfloat16" else tensor
