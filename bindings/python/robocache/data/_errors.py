"""Errors about files, with the file and the place, and about missing packages."""

from __future__ import annotations

import _thread
import errno
import importlib
import mmap
import opcode
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from .._printable import printable


class FormatError(ValueError):
    """A file or a folder has an unknown format, or does not follow its format.

    Attributes
    ----------
    path : str
        The file or the folder.
    place : str
        Where in it: a byte, a row, a field, an episode; "" if that is not known.
    reason : str
        What is wrong there.
    """

    def __init__(self, path: Any, place: str, reason: str) -> None:
        self.path = os.fsdecode(path)
        self.place = place
        self.reason = reason
        super().__init__(_line(self.path, place, reason))

    def __reduce__(self) -> tuple[type[FormatError], tuple[str, str, str]]:
        return type(self), (self.path, self.place, self.reason)


def _line(path: str, place: str, text: str) -> str:
    return printable(f"{path}: {place + ': ' if place else ''}{text}")


@dataclass(frozen=True)
class Problem:
    """Damage that ``damaged="keep"`` skipped, or something that is probably damage."""

    path: str  #: the file
    place: str  #: where in it
    text: str  #: what is wrong, and what was lost

    def __str__(self) -> str:
        return _line(self.path, self.place, self.text)


@dataclass(frozen=True)
class LeftOut:
    """Contents of a file that cannot be stored in arrays of numbers."""

    place: str  #: a stream, a field of a stream, a feature
    reason: str  #: what it is, and why it was omitted

    def __str__(self) -> str:
        return printable(f"{self.place}: {self.reason}")


@dataclass(frozen=True)
class Unread:
    """Messages or rows of a source that were not read, and why."""

    place: str  #: the topic or the file
    type: str  #: type of the messages, or of the file; "" if that is not known
    messages: int | None  #: number of messages, or of rows in a table; None: not known
    bytes: int | None  #: their size in the file; None: not known
    reason: str  #: a whole sentence, with what to do
    loses_numbers: bool = True  #: False if there is no numeric field, as in texts

    def __str__(self) -> str:
        if not self.type:  # a file; the reason is complete
            return printable(f"{self.place}: {self.reason}")
        count = "" if self.messages is None else f"{self.messages:,} "
        text = f"{count}messages of {self.type} were not read"
        return printable(f"{self.place}: {text}: {self.reason}")


def omitted_by(source: Any) -> list[LeftOut]:
    """Return the contents of the source that a recording or episodes do not hold."""
    unread = getattr(source, "unread", ())
    others = without_unread(source.left_out, unread)
    return [*others, *(LeftOut(part.place, part.reason) for part in unread)]


def without_unread(left_out: Iterable[LeftOut], unread: Sequence[Unread]) -> list[LeftOut]:
    """Return the omitted contents, except those that ``unread`` already names."""
    said = [(part.place, part.reason) for part in unread]
    return [
        part
        for part in left_out
        if not any(part.place == place and part.reason.endswith(reason) for place, reason in said)
    ]


_NAMED = ("it is empty", "it is a Parquet file without", "it is an archive (tar")
_UNNAMED = ("cannot be read: ", "is not a Parquet file")  # reasons that packages give
_KEEP = "damaged='keep' reads the rest"


class Damage:
    """Raise an error for damage, or collect it in a list and continue."""

    def __init__(self, mode: str = "refuse") -> None:
        if mode not in ("refuse", "keep"):
            raise ValueError(f"damaged: is {mode!r}, expected 'refuse' or 'keep'")
        self.keep = mode == "keep"
        self.problems: list[Problem] = []
        self._noted: set[Problem] = set()

    def found(self, path: Any, place: str, text: str) -> None:
        """Raise an error, or note the damage once.

        Lack of memory or similar resources is raised as itself, since no file is damaged.
        """
        raise_shortage(path)
        instead = _in_place_of(path, place)
        if instead is not None:
            place, text = ("", instead) if os.path.isfile(path) else (place, instead)
        if not self.keep:
            if instead is not None:  # nothing is damaged, and there is no rest
                raise FormatError(path, place, text)
            raise FormatError(path, place, text if _KEEP in text else f"{text}; {_KEEP}")
        self.note(path, place, text)

    def note(self, path: Any, place: str, text: str) -> None:
        """Note a problem once."""
        problem = Problem(os.fsdecode(path), place, text)
        if problem not in self._noted:
            self._noted.add(problem)
            self.problems.append(problem)


def rows_without_time(rows: int, total: int, why: str, damage: Damage) -> str:
    """Return a sentence about rows without a time, which are skipped if damage is kept."""
    if damage.keep:
        return f"{rows} of {total} rows are skipped: {why or 'they have no time'}"
    verb = "has" if rows == 1 else "have"
    return f"{rows} of {total} rows {verb} no time{f': {why}' if why else ''}"


def _named(path: Any) -> str | None:
    """Return a sentence about a file that is empty, truncated Parquet or an archive; else None.

    Readers do not describe these themselves. An empty metadata.yaml is damage of its bag.
    """
    from ._formats.strangers import stranger

    name = os.fsdecode(path)
    try:
        if not os.path.isfile(name) or os.path.basename(name) == "metadata.yaml":
            return None
        known = stranger(name)
    except (OSError, ValueError):
        return None
    return known if known is not None and known.startswith(_NAMED) else None


def _in_place_of(path: Any, place: str) -> str | None:
    """Return a sentence if a file is a Git LFS pointer or an HTML page; else None."""
    from ._formats.strangers import placeholder

    name = os.fsdecode(path)
    return placeholder(name) or (placeholder(os.path.join(name, place)) if place else None)


def nothing_of(damage: Damage) -> str:
    """Return the reason that nothing of a source was read, with the first problem."""
    first = f"; {damage.problems[0]}" if damage.problems else ""
    return f"no file could be read{first}"


@contextmanager
def reading(path: Any) -> Iterator[None]:
    """Turn the errors of packages about damaged files into a FormatError."""
    try:
        yield
    except Exception as error:
        raise_shortage(path)
        if isinstance(error, FormatError):
            instead = _in_place_of(error.path, error.place)
            if instead is None and error.reason.startswith(_UNNAMED):
                instead = _named(error.path)
            if instead is not None and instead not in error.reason:
                place = "" if os.path.isfile(error.path) else error.place
                raise FormatError(error.path, place, instead) from error
        if _says_enough(error):
            raise
        known = _named(path)
        if known is not None:
            raise FormatError(path, "", known) from error
        line = str(error).partition("\n")[0]
        raise FormatError(path, "", f"cannot be read: {type(error).__name__}: {line}") from error


def _says_enough(error: Exception) -> bool:
    """Whether the error is clear: from the system, about imports, or raised by this package."""
    if isinstance(error, (FormatError, ImportError, MemoryError)):
        return True
    if isinstance(error, OSError):
        return error.errno is not None
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    if place is None or not place.tb_frame.f_code.co_filename.startswith(_PACKAGE):
        return False
    # Raised by a statement of this package, not by a C function that it called.
    return place.tb_frame.f_code.co_code[place.tb_lasti] == opcode.opmap["RAISE_VARARGS"]


_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


_SHORT = {errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOSPC, errno.EFBIG}
_SHORT |= {errno.EDQUOT}
# Texts in the errors of libraries: HDF5, SQLite, zstd, Arrow, Python's threads.
_TEXTS = (
    (re.compile(r"can't start new thread|Resource temporarily unavailable", re.I), errno.EAGAIN),
    (re.compile(r"Too many open files", re.I), errno.EMFILE),
    (re.compile(r"No space left|disk is full", re.I), errno.ENOSPC),
    (
        re.compile(
            r"out of memory|not enough memory|can(no|')t allocate memory|bad_alloc"
            r"|memory allocation failed|unable to allocate|allocation_failed"
            r"|unable to create ZSTD_",
            re.I,
        ),
        errno.ENOMEM,
    ),
)


def raise_shortage(path: Any) -> None:
    """If the current error is a lack of memory, threads, descriptors or space, raise that.

    It is raised with the file name: as MemoryError, or as OSError with its number.
    """
    shown = printable(os.fsdecode(path))
    error = sys.exc_info()[1]
    while error is not None:
        number = _lacking(error)
        if number == errno.ENOMEM:
            if isinstance(error, MemoryError) and str(error).startswith(shown):
                raise error
            text = str(error) or "allocation failed"
            raise MemoryError(f"{shown}: {text}: out of memory") from error
        if number is not None:
            if isinstance(error, OSError) and error.filename is not None:
                raise error
            raise OSError(number, os.strerror(number), os.fspath(path)) from error
        error = error.__cause__ or error.__context__


def _lacking(error: BaseException) -> int | None:
    """Return the system's error number if a resource was exhausted, else None."""
    if isinstance(error, MemoryError):
        return errno.ENOMEM
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno if error.errno in _SHORT else None
    if isinstance(error, FormatError):
        return None
    text = str(error)
    return next((number for pattern, number in _TEXTS if pattern.search(text)), None)


_ROOM = 64 << 20  # bytes of address space for the stacks and heaps of a few threads


def require_memory(path: Any) -> None:
    """Refuse to begin if this process has almost no memory left.

    Some libraries abort or hang if a new thread has no memory.

    Raises
    ------
    MemoryError
        Less than 64 MiB is left.
    """
    try:
        mmap.mmap(-1, _ROOM).close()
    except (OSError, MemoryError) as error:
        text = f"{os.fspath(path)}: less than {_ROOM >> 20} MiB of memory is left"
        raise MemoryError(text) from error


def require_thread(path: Any) -> None:
    """Refuse to begin if no thread can start: some libraries would abort.

    Raises
    ------
    OSError
        No thread can start.
    """
    before = _threads()
    try:
        _thread.start_new_thread(int, ())
    except RuntimeError as error:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), os.fspath(path)) from error
    for _ in range(1000):  # until the thread has ended
        if _threads() <= before:
            return
        time.sleep(1e-4)


def _threads() -> int:
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError:
        return 0


def needed(module: str, extra: str, what: str) -> Any:
    """Import an optional package."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        if (error.name or "").partition(".")[0] != package:
            raise
        raise ModuleNotFoundError(
            f"{what}: needs {package}, which is not installed: pip install 'robocache[{extra}]'",
            name=package,
        ) from None


def messages_not_read(count: int, reason: str) -> str:
    """Return the reason why some messages of a stream are not in it."""
    return f"{count:,} {'message' if count == 1 else 'messages'} could not be read: {reason}"


def some(names: Sequence[str], most: int = 6) -> str:
    """Return names for a message, shortened if there are many."""
    shown = ", ".join(map(repr, names[:most])) or "none"
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")
