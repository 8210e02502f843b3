"""Digests of files that were computed before, in a small file of the store per data set.

A digest counts as long as the device, the inode, the size, the time of the last change and ctime of
its file are the same. The kernel sets ctime; programs cannot choose it. Losing a memo costs time
only, so every error of the file system is ignored.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import time
from typing import Any

FOLDER = "digests"
INDEXES = "indexes"  # of videos
_MOST_BYTES = 256 << 20


class Memo:
    """Digests by facts about a file.

    Parameters
    ----------
    store
        The folder of a store, in which the digests are kept; None: they are not kept.
    path
        The data set.
    """

    def __init__(self, store: str | None = None, path: str = "") -> None:
        self._file: str | None = None
        self._known: dict[tuple[int, ...], str] = {}
        self._used: dict[tuple[int, ...], str] = {}
        self._changed = False
        if store is not None:
            name = hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()
            self._file = os.path.join(store, FOLDER, name)
            with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
                self._known = _read(self._file)

    def get(self, fact: tuple[int, ...]) -> str | None:
        known = self._known.get(fact)
        if known is not None:
            self._used[fact] = known
        return known

    def put(self, fact: tuple[int, ...], digest: str) -> None:
        self._known[fact] = self._used[fact] = digest
        self._changed = True

    def save(self) -> None:
        """Write the digests that were used, if there are new ones."""
        if self._file is None or not self._changed:
            return
        self._changed = False
        content = json.dumps([[*fact, digest] for fact, digest in self._used.items()])
        write_private(self._file, content.encode())


def prune(store: str, older_s: float = 30 * 86400) -> None:
    """Remove memos, and indexes of videos, that were written long ago."""
    for each in (FOLDER, INDEXES):
        _prune(os.path.join(store, each), older_s)


def _prune(folder: str, older_s: float) -> None:
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            with contextlib.suppress(OSError):
                if time.time() - os.lstat(path).st_mtime > older_s:
                    os.unlink(path)


def _read(path: str) -> dict[tuple[int, ...], str]:
    content = read_private(path)
    rows: list[list[Any]] = [] if content is None else json.loads(content)
    return {tuple(row[:-1]): str(row[-1]) for row in rows}


def read_private(path: str) -> bytes | None:
    """Return a small file that this user has written; None if it is another user's, or large.

    Raises
    ------
    OSError
        There is no such file, or it cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        of = os.fstat(descriptor)
        if not stat.S_ISREG(of.st_mode) or of.st_uid != os.geteuid() or of.st_size > _MOST_BYTES:
            return None
        return file.read()


def write_private(path: str, content: bytes) -> None:
    """Write a file that appears whole, or does not appear. Errors of the system are ignored."""
    import tempfile

    folder = os.path.dirname(path)
    with contextlib.suppress(OSError):
        for each in (os.path.dirname(folder), folder):  # the folder of a cache is private, too
            os.makedirs(each, 0o700, exist_ok=True)
        descriptor, new = tempfile.mkstemp(dir=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            os.replace(new, path)
        except BaseException:
            os.unlink(new)
            raise
