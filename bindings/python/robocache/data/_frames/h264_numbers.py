"""Missing pictures in H.264: its decoder replaces them, and shows wrong frames without an error.

Each picture has a number (frame_num), which is that of the last reference picture, or one more.
"""

from __future__ import annotations

from collections.abc import Iterator

_SLICE, _IDR, _SPS = 1, 5, 7  # kinds of units
_HIGH = {44, 83, 86, 100, 110, 118, 122, 128, 134, 135, 138, 139, 244}  # profiles with more fields
_HEAD = 32  # bytes of a slice that hold the number


class FrameNumbers:
    """Finds the packets before which a reference picture is missing.

    Streams that may have gaps, or have fields, several kinds of numbers, or no header, are not
    checked.
    """

    def __init__(self, extradata: bytes | None, prefix: int) -> None:
        self._bits: int | None = None  # of a number; None: not known
        self._checks = True
        self._last: int | None = None  # number of the last reference picture
        for unit in _headers(extradata or b"", prefix):
            self._read(unit)

    def is_gap(self, units: Iterator[bytes]) -> bool:
        """Whether a picture is missing before a packet, whose units are given."""
        for unit in units:
            kind = unit[0] & 31
            if kind == _SPS:
                self._read(unit)
            elif kind in (_SLICE, _IDR):
                return self._checks and self._bits is not None and self._jumps(unit, kind)
        return False

    def _jumps(self, unit: bytes, kind: int) -> bool:
        """Return whether the number of a slice is not a next one, and keep it."""
        bits = _Bits(unit[1:_HEAD])
        try:
            for _ in range(3):  # the first block, the kind of slice, the parameters
                bits.golomb()
            number = bits.take(self._bits or 0)
        except IndexError:
            return False
        last = self._last
        if unit[0] >> 5 & 3:  # others may refer to it
            self._last = number
        if kind == _IDR or last is None:  # numbers begin again
            return False
        return (number - last) % (1 << (self._bits or 0)) > 1

    def _read(self, unit: bytes) -> None:
        """Read the width of the numbers from a sequence's parameters."""
        try:
            bits = _Bits(unit[1:])
            profile = bits.take(8)
            bits.take(16)
            bits.golomb()
            if profile in _HIGH:
                planes = bits.golomb() == 3 and bits.take(1)
                bits.golomb()
                bits.golomb()
                bits.take(1)
                if planes or bits.take(1):  # separate planes, or scaling lists
                    raise IndexError
            width = bits.golomb() + 4
            order = bits.golomb()
            if order == 0:
                bits.golomb()
            elif order == 1:
                raise IndexError
            bits.golomb()
            gaps = bits.take(1)
            bits.golomb()
            bits.golomb()
            whole = bits.take(1)
        except IndexError:
            self._checks = False
            return
        if gaps or not whole or self._bits not in (None, width):
            self._checks = False
        self._bits = width


class _Bits:
    """Reads the bits of a unit."""

    def __init__(self, data: bytes) -> None:
        data = data.replace(b"\0\0\3", b"\0\0")
        self._value, self._left = int.from_bytes(data, "big"), 8 * len(data)

    def take(self, count: int) -> int:
        if count > self._left:
            raise IndexError
        self._left -= count
        return self._value >> self._left & ((1 << count) - 1)

    def golomb(self) -> int:
        """Read an Exp-Golomb number."""
        zeros = 0
        while not self.take(1):
            zeros += 1
        return (1 << zeros) - 1 + self.take(zeros)


def _headers(extradata: bytes, prefix: int) -> Iterator[bytes]:
    """Yield the sequences' parameters in the header of a stream."""
    if prefix and len(extradata) > 6:
        at = 6
        for _ in range(extradata[5] & 31):
            length = int.from_bytes(extradata[at : at + 2], "big")
            if length:
                yield extradata[at + 2 : at + 2 + length]
            at += 2 + length
    elif not prefix:
        from .video_units import units

        yield from (unit for unit in units(extradata, 0) if unit[0] & 31 == _SPS)
