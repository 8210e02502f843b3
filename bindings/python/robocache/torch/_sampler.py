"""The samples of each batch of a loader, over all ranks, and their shuffled order."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch

from .._library.errors import REFUSALS, blamed

_MASK = 0xFFFFFFFF
_FEW = 1 << 12  # up to this count, more rounds are needed


class Order:
    """A permutation of 0 to count - 1, determined by a seed and an epoch, computed on demand.

    It is a Feistel network on the smallest rectangle that holds the numbers as pairs: each round
    adds a function of one side to the other side. Numbers outside of the range are permuted again
    until they are inside ("Ciphers with Arbitrary Finite Domains", Black and Rogaway, 2002). It is
    the same on every machine and device. It needs memory only for the numbers outside, fewer than
    the square root of count.

    Arrays are NumPy int64 on the CPU, where NumPy is faster, and tensors on CUDA.
    """

    def __init__(self, count: int, seed: int, epoch: int, device: torch.device) -> None:
        self._count = count
        self._width = max(1, math.isqrt(max(count - 1, 0)) + 1)
        self._height = max(1, -(-count // self._width))
        rounds = 6 if count > _FEW else 12
        digest = hashlib.blake2b(f"{seed}:{epoch}".encode(), digest_size=4 * rounds + 8).digest()
        keys = [digest[4 * i : 4 * i + 4] for i in range(rounds)]
        self._keys = [int.from_bytes(key, "little") for key in keys]
        #: A number from 0 to 1, from the same seed and epoch.
        self.phase = (int.from_bytes(digest[-8:], "little") >> 11) / 2**53
        ends = self._ends_outside()
        self._ends: Any = ends if device.type == "cpu" else torch.from_numpy(ends).to(device)

    def at(self, positions: Any) -> Any:
        """Return the numbers at some positions. This does not wait for the device."""
        numbers = self._through(positions)
        outside = numbers >= self._count
        return numbers * ~outside + self._ends[(numbers - self._count) * outside] * outside

    def _ends_outside(self) -> Any:
        """Return, for each number outside of the range, the number inside to which it leads.

        Some numbers outside lead only back to themselves; no number inside leads to them. The array
        has at least one element.
        """
        import numpy as np

        starts = np.arange(self._count, max(self._width * self._height, self._count + 1))
        numbers, left = starts.copy(), np.arange(self._width * self._height - self._count)
        while len(left):
            numbers[left] = self._through(numbers[left])
            left = left[(numbers[left] >= self._count) & (numbers[left] != starts[left])]
        return np.where(numbers < self._count, numbers, 0)

    def _through(self, numbers: Any) -> Any:
        sides = [numbers // self._height, numbers % self._height]
        sizes = [self._width, self._height]
        for i, key in enumerate(self._keys):
            one, other = i % 2, 1 - i % 2
            # Scale a number of 32 bits to a number below the side's size.
            below = (_mixed(sides[other], key) * sizes[one]) >> 32
            sides[one] = (sides[one] + below) % sizes[one]
        return sides[0] * self._height + sides[1]


def _mixed(numbers: Any, key: int) -> Any:
    """Return 32-bit hashes of numbers below 2^32. The upper bits are the best."""
    mixed = ((numbers ^ key) * 0x85EBCA6B) & _MASK
    return ((mixed ^ (mixed >> 15)) * 0xC2B2AE35) & _MASK


# Number of samples that are looked up together: large enough to hide the cost of a look-up, about
# 80 launches on CUDA, and small enough for the caches of a CPU.
_AT_ONCE = {"cpu": 1 << 13, "cuda": 1 << 18}


class Samples(NamedTuple):
    """The samples of a batch."""

    episodes: torch.Tensor  #: int64 [B]
    anchors: torch.Tensor  #: int64 [B], rows in the episodes
    repeats: torch.Tensor | None = None  #: int64 [B], how often each came before in the epoch


class Sampler:
    """The samples of an epoch, in an order determined by a seed and the epoch.

    Without weights, every sample occurs once. With a weight for each episode, an epoch has the same
    size, and the samples of an episode occur in proportion to its weight. It is a systematic
    sample: the numbers of occurrences of an episode's samples differ by at most one.
    """

    def __init__(
        self,
        counts: Any,
        first_anchor: int,
        weights: Any,
        device: torch.device,
        repeats: bool = False,
    ) -> None:
        """``repeats``: also count how often each sample came before, if there are weights."""
        import numpy as np

        self._with_repeats = repeats and weights is not None
        self.size = int(counts.sum())
        self._first = first_anchor
        shares = counts.astype(np.float64) if weights is None else counts * weights
        ends = np.cumsum(counts) if weights is None else np.cumsum(shares)
        self._weighted = weights is not None
        self._total = float(shares.sum())
        self._ends = torch.from_numpy(ends).to(device)
        self._begins = torch.from_numpy(ends - (counts if weights is None else shares)).to(device)
        self._counts = torch.from_numpy(counts).to(device)
        self._each = None if weights is None else torch.from_numpy(weights).to(device)
        self._device = device

    def batches(
        self, seed: int, epoch: int, shuffle: bool, batches: Iterable[tuple[int, int]]
    ) -> Iterator[Samples]:
        """Yield the samples of each batch, given by its first position and its size."""
        order = Order(self.size, seed, epoch, self._device)
        at_once = _AT_ONCE[self._device.type]
        group: list[tuple[int, int]] = []
        together = 0
        for begin, size in batches:
            if together + size > at_once and group:
                yield from self._looked_up(order, shuffle, group)
                group, together = [], 0
            group.append((begin, size))
            together += size
        if group:
            yield from self._looked_up(order, shuffle, group)

    def _looked_up(
        self, order: Order, shuffle: bool, group: list[tuple[int, int]]
    ) -> Iterator[Samples]:
        numbers = self._numbers(group)
        if shuffle:
            numbers = order.at(numbers)
        phase = order.phase if shuffle else 0.0
        numbers = torch.as_tensor(numbers, device=self._device)
        which, anchors = self._samples(numbers, phase)
        sizes = [size for _, size in group]
        split = torch.split(which, sizes), torch.split(anchors, sizes)
        if not self._with_repeats:
            return itertools.starmap(Samples, zip(*split))
        repeats = self._repeats(numbers, phase, which, anchors)
        return itertools.starmap(Samples, zip(*split, torch.split(repeats, sizes)))

    def _repeats(
        self, numbers: torch.Tensor, phase: float, episodes: torch.Tensor, anchors: torch.Tensor
    ) -> torch.Tensor:
        """Return how many smaller numbers of an epoch are the same sample. They are adjacent."""
        repeats = torch.zeros_like(numbers)
        for back in range(1, self.size):
            earlier = numbers - back
            own, rows = self._samples(earlier.clamp_min(0), phase)
            same = (earlier >= 0) & (own == episodes) & (rows == anchors)
            if not bool(same.any()):
                break
            repeats += same
        return repeats

    def _numbers(self, group: list[tuple[int, int]]) -> Any:
        """Return the positions of all batches of a group, as an array for Order."""
        import numpy as np

        spans = joined([(begin, begin + size) for begin, size in group])
        if self._device.type == "cpu":
            return np.concatenate([np.arange(*span) for span in spans])
        return torch.cat([torch.arange(*span, device=self._device) for span in spans])

    def _samples(self, numbers: torch.Tensor, phase: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the episode and the anchor of samples that are numbered through all episodes."""
        if not self._weighted:
            which = torch.searchsorted(self._ends, numbers, right=True)
            return which, numbers - self._begins[which] + self._first
        # In float64: an int64 tensor and a Python float would give float32, and skip samples.
        points = (numbers.double() + phase) * (self._total / self.size)
        which = torch.searchsorted(self._ends, points, right=True)
        which = which.clamp_(max=int(self._ends.numel()) - 1)
        rows = ((points - self._begins[which]) / self._each[which]).long()  # type: ignore[index]
        rows = torch.minimum(rows.clamp_(min=0), self._counts[which] - 1)
        return which, rows + self._first


def joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return spans, with adjacent spans merged."""
    found: list[tuple[int, int]] = []
    for begin, end in spans:
        if found and found[-1][1] == begin:
            found[-1] = (found[-1][0], end)
        else:
            found.append((begin, end))
    return found


def checked_weights(weights: Any, counts: Any) -> Any:
    """Return valid weights of episodes as a NumPy array: not negative, and not all 0."""
    import numpy as np

    from .._arguments.to_numpy import on_host

    if weights is None:
        return None
    try:
        host = on_host(weights, "weights") if hasattr(weights, "__dlpack__") else weights
        array = np.asarray(host, np.float64)
    except REFUSALS as error:
        raise blamed(error, "weights") from None
    if array.shape != counts.shape:
        raise ValueError(
            f"weights: shape is {list(array.shape)}, expected [{len(counts)}] (one per episode)"
        )
    wrong = ~(np.isfinite(array) & (array >= 0))
    if wrong.any():
        e = int(np.argmax(wrong))
        raise ValueError(f"weights: is {array[e]} for episode {e}, expected 0 or more")
    if not (array * counts).any():
        raise ValueError("weights: are 0 for all episodes that have samples")
    return array / array.max()  # only proportions count; this avoids overflow and underflow
