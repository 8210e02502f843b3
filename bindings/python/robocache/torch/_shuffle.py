"""The order in which a loader goes through samples: shuffled, known at every position by itself."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import torch

_MASK = 0xFFFFFFFF
_FEW = 1 << 12  # numbers of which a round changes so little that it takes more of them


class Order:
    """A permutation of 0 to count - 1 that a seed and an epoch decide, computed where it is asked.

    A Feistel network on the smallest rectangle that holds the numbers, side by side: rounds add a
    function of one side to the other one. What falls outside goes through again until it is inside
    ("Ciphers with Arbitrary Finite Domains", Black and Rogaway, 2002). It is the same on every
    machine and device, and takes memory for the numbers outside alone: fewer than the root of
    count.

    Arrays are NumPy's int64 on the CPU, where they are faster, and tensors on CUDA.
    """

    def __init__(self, count: int, seed: int, epoch: int, device: torch.device) -> None:
        self._count = count
        self._width = max(1, math.isqrt(max(count - 1, 0)) + 1)
        self._height = max(1, -(-count // self._width))
        rounds = 6 if count > _FEW else 12
        digest = hashlib.blake2b(f"{seed}:{epoch}".encode(), digest_size=4 * rounds + 8).digest()
        keys = [digest[4 * i : 4 * i + 4] for i in range(rounds)]
        self._keys = [int.from_bytes(key, "little") for key in keys]
        #: A number from 0 to 1, of the same seed and epoch.
        self.phase = (int.from_bytes(digest[-8:], "little") >> 11) / 2**53
        ends = self._ends_outside()
        self._ends: Any = ends if device.type == "cpu" else torch.from_numpy(ends).to(device)

    def at(self, positions: Any) -> Any:
        """The numbers at these positions. Does not wait for the device."""
        numbers = self._through(positions)
        outside = numbers >= self._count
        return numbers * ~outside + self._ends[(numbers - self._count) * outside] * outside

    def _ends_outside(self) -> Any:
        """Of each number outside the one inside that it comes to, and one entry at least.

        Some come back to themselves instead: no number inside leads to them.
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
            # A number of 32 bits, as one below the side's size.
            below = (_mixed(sides[other], key) * sizes[one]) >> 32
            sides[one] = (sides[one] + below) % sizes[one]
        return sides[0] * self._height + sides[1]


def _mixed(numbers: Any, key: int) -> Any:
    """A hash of numbers below 2^32, of 32 bits whose upper ones are the best."""
    mixed = ((numbers ^ key) * 0x85EBCA6B) & _MASK
    return ((mixed ^ (mixed >> 15)) * 0xC2B2AE35) & _MASK
