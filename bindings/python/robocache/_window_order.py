"""The order in which a loader goes through samples: shuffled, known at every position by itself."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ROUNDS = 10


class Order:
    """A permutation of 0 to count - 1 that a seed and an epoch decide, computed where it is asked.

    A Feistel network on the smallest rectangle that holds the numbers, side by side: rounds add a
    function of one side to the other one. What falls outside goes through again until it is inside
    ("Ciphers with Arbitrary Finite Domains", Black and Rogaway, 2002). It takes no memory, and is
    the same on every machine.
    """

    def __init__(self, count: int, seed: int, epoch: int) -> None:
        self._count = count
        self._width = max(1, math.isqrt(max(count - 1, 0)) + 1)
        self._height = max(1, -(-count // self._width))
        digest = hashlib.blake2b(f"{seed}:{epoch}".encode(), digest_size=4 * _ROUNDS + 8).digest()
        keys = [digest[4 * i : 4 * i + 4] for i in range(_ROUNDS)]
        self._keys = [int.from_bytes(key, "little") for key in keys]
        #: A number from 0 to 1, of the same seed and epoch.
        self.phase = (int.from_bytes(digest[-8:], "little") >> 11) / 2**53

    def at(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers at these positions."""
        import numpy as np

        numbers: NDArray[np.int64] = self._through(positions)
        outside = np.flatnonzero(numbers >= self._count)
        while len(outside):
            again = self._through(numbers[outside])
            numbers[outside] = again
            outside = outside[again >= self._count]
        return numbers

    def _through(self, numbers: Any) -> Any:
        import numpy as np

        column, row = np.divmod(numbers.astype(np.uint64), np.uint64(self._height))
        sides, sizes = [column, row], [self._width, self._height]
        for i, key in enumerate(self._keys):
            one, other = i % 2, 1 - i % 2
            moved = sides[one] + _below(sizes[one], _mixed(sides[other], key))
            moved -= np.uint64(sizes[one]) * (moved >= np.uint64(sizes[one]))
            sides[one] = moved
        return (sides[0] * np.uint64(self._height) + sides[1]).astype(np.int64)


def _below(size: int, hashed: Any) -> Any:
    """Numbers of 32 bits as numbers below ``size``."""
    import numpy as np

    return (hashed.astype(np.uint64) * np.uint64(size)) >> np.uint64(32)


def _mixed(numbers: Any, key: int) -> Any:
    """A hash of 32 bits: multiplications and shifts, as those that end MurmurHash3."""
    import numpy as np

    mixed = numbers.astype(np.uint32) ^ np.uint32(key)
    for factor, shift in ((0x85EBCA6B, 16), (0xC2B2AE35, 13)):
        mixed ^= mixed >> np.uint32(shift)
        mixed *= np.uint32(factor)
    return mixed ^ (mixed >> np.uint32(16))
