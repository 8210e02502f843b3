"""CRC-32C, the checksum of TFRecord files, in NumPy.

A message is cut into parts of one length. The parts are processed side by side, byte by byte, and
their checksums are joined: the checksum is linear, so zeros after a part are one linear map of it.
"""

from __future__ import annotations

import functools
from typing import Any

_POLYNOMIAL = 0x82F63B78  # reflected
_PARTS = 1024
_SHORT = 4096  # bytes up to which one byte after the other is faster


@functools.lru_cache(maxsize=1)
def _table() -> Any:
    import numpy as np

    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(_POLYNOMIAL), table >> 1)
    return table


def crc32c(data: Any) -> int:
    """Return the checksum of bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    import numpy as np

    content = np.frombuffer(data, np.uint8)
    size = len(content) // _PARTS if len(content) > _SHORT else 0
    state = 0xFFFFFFFF
    if size:
        table = _table()
        parts = np.ascontiguousarray(content[: size * _PARTS].reshape(_PARTS, size).T)
        states = np.zeros(_PARTS, np.uint32)
        for column in parts:
            states = table[(states ^ column) & 0xFF] ^ (states >> np.uint32(8))
        shift = _zeros(size)
        for each in states.tolist():
            state = _applied(shift, state) ^ each
    rest = content[size * _PARTS :].tobytes()
    own = _table().tolist()
    for byte in rest:
        state = own[(state ^ byte) & 0xFF] ^ (state >> 8)
    return state ^ 0xFFFFFFFF


def masked(data: Any) -> int:
    """Return the checksum as TFRecord stores it: rotated, with a constant added."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


@functools.lru_cache(maxsize=64)
def _zeros(count: int) -> tuple[tuple[int, ...], ...]:
    """Return the map of ``count`` zero bytes as four tables, one per byte of the state."""
    import numpy as np

    table = _table()
    states = (np.uint32(1) << np.arange(32, dtype=np.uint32)).astype(np.uint32)
    images = [int(each) for each in states]  # of each bit, under the identity
    step = [int(each) for each in table[states & 0xFF] ^ (states >> np.uint32(8))]
    while count:
        if count & 1:
            images = [_of_bits(step, image) for image in images]
        step = [_of_bits(step, image) for image in step]
        count >>= 1
    return tuple(
        tuple(_of_bits(images[8 * byte : 8 * byte + 8], value) for value in range(256))
        for byte in range(4)
    )


def _of_bits(images: list[int], value: int) -> int:
    """Return the sum of the images of the bits of a value."""
    total, bit = 0, 0
    while value:
        if value & 1:
            total ^= images[bit]
        value >>= 1
        bit += 1
    return total


def _applied(tables: tuple[tuple[int, ...], ...], state: int) -> int:
    result = 0
    for byte, table in enumerate(tables):
        result ^= table[state >> 8 * byte & 0xFF]
    return result
