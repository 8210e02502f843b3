"""Access to files: which ones are read, how they are opened, and how much they may unpack to."""

from __future__ import annotations

import io
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO, TextIO

from ._errors import FormatError

# O_NONBLOCK: opening a pipe without a writer returns at once. Regular files ignore it.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


def special_kind(path: str) -> str | None:
    """Return the kind of a path that is not a file or a folder, since reading may never end."""
    return _special(os.stat(path).st_mode)


def _special(mode: int) -> str | None:
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return None
    return "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"


def opened(path: str) -> BinaryIO:
    """Open a regular file for reading bytes. Never waits, and never changes the file.

    Raises
    ------
    FormatError
        The path is a folder, a pipe, a socket or a device.
    OSError
        The file cannot be opened.
    """
    require_regular(path)  # opening a device may have side effects
    descriptor = os.open(path, _FLAGS)
    try:
        _require_regular(path, os.fstat(descriptor).st_mode)  # the path may have been replaced
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def opened_text(path: str, errors: str = "strict") -> TextIO:
    """Open a regular file for reading, as UTF-8 text: see :func:`opened`."""
    return io.TextIOWrapper(opened(path), encoding="utf-8", errors=errors)


def json_object(path: str, largest: int | None = None) -> dict[str, Any]:
    """Return the object in a JSON file, of at most ``largest`` bytes.

    Raises
    ------
    FormatError
        The file is larger, is not JSON, or holds something else; or as :func:`opened`.
    """
    if largest is not None and os.path.getsize(path) > largest:
        raise FormatError(path, "", f"has more than {largest >> 20} MiB, expected a description")
    try:
        with opened_text(path) as file:
            content = json.load(file)
    except (ValueError, RecursionError) as error:
        raise FormatError(path, "", f"is not JSON, or is truncated: {error}") from None
    if not isinstance(content, dict):
        raise FormatError(path, "", "is not a JSON object")
    return content


@contextmanager
def reopened(path: str) -> Iterator[str]:
    """Yield a path that a library can open as the same file, even if the file is replaced.

    Raises
    ------
    FormatError, OSError
        As :func:`opened`.
    """
    with opened(path) as file:
        descriptor_path = f"/proc/self/fd/{file.fileno()}"
        yield descriptor_path if os.path.exists(descriptor_path) else path


def walked(path: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Walk a folder as ``os.walk`` does, but raise an error for a folder that cannot be read.

    Links to folders are not followed.

    Raises
    ------
    OSError
        A folder cannot be read; ``os.walk`` skips it without an error.
    """

    def refuse(error: OSError) -> None:
        raise error

    return os.walk(path, onerror=refuse)


def is_file(entry: os.DirEntry[str]) -> bool:
    """Whether a directory entry is a regular file, or a link to one."""
    return entry.is_file() if not entry.is_symlink() else os.path.isfile(entry.path)


def is_folder(entry: os.DirEntry[str]) -> bool:
    """Whether a directory entry is a folder, or a link to one."""
    return entry.is_dir() if not entry.is_symlink() else os.path.isdir(entry.path)


def is_special(entry: os.DirEntry[str]) -> bool:
    """Whether a directory entry is a pipe, a socket or a device, or a link to one."""
    return os.path.exists(entry.path) and special_kind(entry.path) is not None


def require_regular(path: str) -> None:
    """Refuse a path that is not a regular file, before a library opens it by path.

    Raises
    ------
    FormatError
        The path is a folder, a pipe, a socket or a device.
    FileNotFoundError
        The path does not exist.
    """
    _require_regular(path, os.stat(path).st_mode)


def _require_regular(path: str, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else _special(mode)
        raise FormatError(path, "", f"is {kind}, expected a regular file")


@dataclass(frozen=True)
class Limit:
    """The number of bytes that the compressed data of a source may unpack to.

    A small file can unpack to terabytes. By default, a source may unpack to ``RATIO`` times its
    own size, or to ``LEAST`` bytes if that is more.
    """

    explicit: int | None = None  #: bytes; None: by the size of the source

    LEAST = 256 << 20
    RATIO = 200

    def __post_init__(self) -> None:
        if self.explicit is not None and (type(self.explicit) is not int or self.explicit < 0):
            raise ValueError(
                f"max_unpacked: is {self.explicit!r}, expected a number of bytes or None"
            )

    @property
    def least(self) -> int:
        """The bytes that a source of any size may unpack to."""
        return self.allowed(0)

    def allowed(self, size: int) -> int:
        """Return the bytes that a source of ``size`` bytes may unpack to."""
        return max(self.LEAST, self.RATIO * size) if self.explicit is None else self.explicit

    def require(self, path: str, place: str, unpacked: int, size: int) -> None:
        """Refuse a source of ``size`` bytes if it unpacks to too many bytes.

        Raises
        ------
        FormatError
            It unpacks to more; the message names the option that raises the limit.
        """
        most = self.allowed(size)
        if unpacked > most:
            raise FormatError(
                path,
                place,
                f"unpacks to {unpacked:,} bytes or more, but at most {most:,} are allowed for a "
                f"source of {size:,} bytes; if this is expected, open it with "
                f"max_unpacked={unpacked}",
            )


class Folder:
    """The folder of a data set: neither ``..`` nor links may lead out of it."""

    def __init__(self, path: str, follow_links: bool = False) -> None:
        self.path = path
        self.follow_links = follow_links
        self.real = os.path.realpath(path)

    def file(self, name: str) -> str:
        """Return the path of a file, by its name relative to the folder.

        Raises
        ------
        FormatError
            The file does not exist, is outside, or is a device, a pipe or a socket.
        """
        joined = self.place(name)
        self.require_inside(name)
        if not os.path.exists(joined):
            raise FormatError(self.path, name, "is missing")
        special = special_kind(joined)
        if special is not None:
            raise FormatError(self.path, name, f"is {special}, expected a file or a folder")
        return joined

    def place(self, name: str) -> str:
        """Return the path of a name, whether it exists or not. Links are not resolved.

        Raises
        ------
        FormatError
            The name leads out of the folder.
        """
        parts = name.replace("\\", "/").split("/")
        if os.path.isabs(name) or ".." in parts:
            raise FormatError(self.path, name, "leads out of the data set, which is not allowed")
        return os.path.join(self.path, name)

    def require_inside(self, name: str) -> None:
        """Check that no link on the way to a file leads out of the folder.

        Raises
        ------
        FormatError
            A link leads out.
        """
        if not self.follow_links and not self.holds(os.path.join(self.path, name)):
            raise FormatError(
                self.path,
                name,
                "is a link out of the data set; follow_links=True allows it",
            )

    def holds(self, path: str) -> bool:
        """Whether a path, with all links resolved, is in the folder."""
        real = os.path.realpath(path)
        return real == self.real or real.startswith(self.real.rstrip(os.sep) + os.sep)

    def has(self, name: str) -> bool:
        return os.path.exists(os.path.join(self.path, name))


def head(path: str, size: int) -> bytes:
    """Return the first bytes of a regular file; b"" for anything else."""
    if not os.path.isfile(path):
        return b""
    with opened(path) as file:
        return file.read(size) or b""  # None: a system file that would wait


def what_is(path: str) -> str:
    """Describe a file that is not what its name says."""
    if os.path.isdir(path):
        return "a folder"
    special = special_kind(path) if os.path.exists(path) else None
    if special is not None:
        return special
    from ._formats.strangers import look_alike

    if os.path.getsize(path) and (like := look_alike(path)):
        return like
    return f"a file that begins with {begin!r}" if (begin := head(path, 8)) else "a file of 0 bytes"
