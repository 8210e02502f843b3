"""Bag files that are compressed as a whole, unpacked to a private file without a name.

The file is in the temporary folder, and disappears with the last process that has it open, even if
that process is killed. On a file system without unnamed files (``O_TMPFILE``), it has a name until
it is unlinked, before anything is written to it.
"""

from __future__ import annotations

import os
import tempfile
from typing import BinaryIO

from ..._errors import FormatError
from ..._file_access import Limit, opened
from ..decompress import ZSTD, CannotUnpack, unpacked_parts

_AT_ONCE = 4 << 20  # bytes


def is_packed(start: bytes) -> bool:
    """Whether a file with these first bytes is compressed with zstd."""
    return start.startswith(ZSTD)


def unpacked_start(path: str, size: int) -> bytes:
    """Return the first unpacked bytes of a compressed file; fewer if it is damaged."""
    with opened(path) as file:
        try:
            return next(unpacked_parts(file, size, path), b"")
        except CannotUnpack:
            return b""


def unpack(path: str, target: BinaryIO, limit: Limit) -> int:
    """Unpack a file into another one, and return its size.

    Raises
    ------
    FormatError
        The file is damaged, or unpacks to more than is allowed.
    OSError
        There is no space for it.
    """
    size = os.path.getsize(path)
    done = 0
    with opened(path) as file:
        try:
            for part in unpacked_parts(file, _AT_ONCE, path):
                done += len(part)
                limit.require(path, "", done, size)
                target.write(part)
        except CannotUnpack as error:
            raise FormatError(path, "", f"it is compressed as a whole, and {error}") from None
        except OSError as error:
            if error.errno is None or error.filename is not None:
                raise
            text = f"{os.strerror(error.errno)}, for an unpacked copy in the temporary folder"
            raise OSError(error.errno, text, path) from error
    target.flush()
    return done


class Unpacked:
    """The content of a compressed file, which is unpacked when first opened.

    Another process that receives a copy of this object unpacks the file again.
    """

    def __init__(self, path: str, limit: Limit) -> None:
        self.path, self.limit = path, limit
        self._file: BinaryIO | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_file": None}

    def open(self) -> BinaryIO:
        """Open the content, with its own position."""
        if self._file is None:
            file: BinaryIO = tempfile.TemporaryFile(prefix="robocache-")
            try:
                unpack(self.path, file, self.limit)
            except BaseException:
                file.close()
                raise
            self._file = file
        return os.fdopen(os.open(f"/proc/self/fd/{self._file.fileno()}", os.O_RDONLY), "rb")
