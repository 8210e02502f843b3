"""A .npy file: its header is read first, its numbers later."""

from __future__ import annotations

import io
import math
import os
from dataclasses import dataclass
from typing import IO, Any, BinaryIO

from ..._errors import FormatError, raise_shortage
from ..._file_access import opened, what_is

MAGIC = b"\x93NUMPY"
OBJECTS = "holds Python objects, which are not unpickled"  # the reason in an error
_START = 12  # bytes with the length of the header
_LONGEST = 1 << 16  # bytes of a header


@dataclass(frozen=True)
class Header:
    """The shape and dtype of an array, and the offset of its numbers in the file."""

    shape: tuple[int, ...]
    dtype: Any
    by_column: bool  # Fortran order
    begin: int  # offset of the numbers, in bytes

    @property
    def size(self) -> int:
        """Bytes of the numbers."""
        return math.prod(self.shape) * int(self.dtype.itemsize)


class Shaped:
    """The shape and the dtype of an array that is read when it is used."""

    header: Header

    @property
    def shape(self) -> tuple[int, ...]:
        return self.header.shape

    @property
    def dtype(self) -> Any:
        return self.header.dtype

    @property
    def ndim(self) -> int:
        return len(self.header.shape)

    def __len__(self) -> int:
        return self.header.shape[0]


@dataclass(frozen=True)
class StoredArray(Shaped):
    """An array in a file that holds all of it. No file stays open."""

    path: str
    header: Header

    def read(self) -> Any:
        """Read the numbers in native byte order.

        Raises
        ------
        FormatError
            The file has changed since it was opened.
        """
        import numpy as np

        with opened(self.path) as file:
            flat = np.empty(math.prod(self.shape), self.dtype)
            same = header_of(self.path, "", file, _size(file)) == self.header
            if same and flat.nbytes:
                same = file.readinto(flat.view(np.uint8)) == flat.nbytes  # type: ignore[attr-defined]
        if not same:
            raise FormatError(self.path, "", "has changed since it was opened")
        array = flat.reshape(self.shape, order="F" if self.header.by_column else "C")
        return np.asarray(array, self.dtype.newbyteorder("="), order="C")

    def first(self, count: int) -> Any:
        """Read the first numbers of a one-dimensional array."""
        import numpy as np

        count = min(count, len(self))
        with opened(self.path) as file:
            file.seek(self.header.begin)
            content = file.read(count * self.dtype.itemsize) or b""
        read = np.frombuffer(content, self.dtype, len(content) // self.dtype.itemsize)
        return read.astype(self.dtype.newbyteorder("="))


def stored_array(path: str) -> StoredArray:
    """Read the header of a file, and check that the file holds all numbers."""
    with opened(path) as file:
        if (file.read(len(MAGIC)) or b"") != MAGIC:
            raise FormatError(path, "", f"expected a .npy file, got {what_is(path)}")
        file.seek(0)
        return StoredArray(path, header_of(path, "", file, _size(file)))


def _size(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def header_of(path: str, place: str, file: IO[bytes], size: int) -> Header:
    """Read the header of an array of ``size`` bytes, including its numbers.

    Raises
    ------
    FormatError
        The header is damaged, or there are too few bytes for its numbers.
    """
    from numpy.lib import format as npy

    start = file.read(_START) or b""
    first = start[6] == 1 if len(start) > 6 else True
    begin = 10 if first else 12
    begin += int.from_bytes(start[8:begin], "little")
    if len(start) < _START or start[6] not in (1, 2, 3) or begin > min(size, _LONGEST):
        raise FormatError(
            path, place, "its header is damaged, truncated, or of an unsupported version"
        )
    rest = io.BytesIO(start[8:] + file.read(begin - _START))
    try:
        read = npy.read_array_header_1_0 if first else npy.read_array_header_2_0
        shape, by_column, dtype = read(rest)
    except Exception as error:  # parsing fails in many ways
        raise_shortage(path)
        line = str(error).partition("\n")[0]
        raise FormatError(path, place, f"is damaged or truncated: {line}") from None
    if dtype.hasobject:
        raise FormatError(path, place, OBJECTS)
    header = Header(tuple(map(int, shape)), dtype, bool(by_column), begin)
    if any(extent < 0 for extent in header.shape) or header.size > size - begin:
        raise FormatError(
            path,
            place,
            f"is damaged or truncated: has {size - begin:,} bytes of numbers, expected "
            f"{header.size:,} of {dtype} {list(header.shape)}",
        )
    return header
