"""Private copies of SQLite databases, which disappear with the process that made them.

The kernel removes a file without a name, even after SIGKILL. But SQLite opens files by name only:
it resolves the links in ``/proc/self/fd``, and a file without a name has no target there. So
SQLite gets the content of a copy of up to ``IN_MEMORY`` bytes as memory. A larger one, or one for
Python before 3.11, gets a name for the moment in which SQLite opens it. If the process is killed
in this moment, the next such copy removes what is left.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import mmap
import os
import secrets
import sqlite3
import stat
import tempfile
from types import TracebackType
from urllib.parse import quote

from ..._file_access import opened

IN_MEMORY = 64 << 20  # bytes of a copy at most; a larger one may not fit, so it is in a file
_PREFIX, _SUFFIX = "robocache-copy-", ".db3"
_NO_UNNAMED = {errno.EISDIR, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOENT}


class Text(bytes):
    """A text of a database, which need not be UTF-8."""


def fits_memory(size: int) -> bool:
    """Whether SQLite can get a database of this size as memory."""
    reads_memory = hasattr(sqlite3.Connection, "deserialize") and hasattr(os, "memfd_create")
    return reads_memory and size <= IN_MEMORY


class PrivateCopy:
    """A file to copy a database to. ``connect`` opens it; leaving the ``with`` block closes it."""

    def __init__(self, size: int, in_memory: bool) -> None:
        """``size``: bytes that are needed at least; ``in_memory``: as :func:`fits_memory` says.

        Raises
        ------
        OSError
            There is no space for it, or no file descriptor.
        """
        self._in_memory = in_memory
        self._name = ""  # of a file that needs one
        if in_memory:
            self.descriptor = os.memfd_create("robocache", os.MFD_CLOEXEC)
            return
        self._folder = tempfile.gettempdir()
        _require_space(self._folder, size)
        try:
            flags = os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC
            self.descriptor = os.open(self._folder, flags, 0o600)
        except OSError as error:
            if error.errno not in _NO_UNNAMED:
                raise
            # A network file system, or an old kernel: the file has a name until SQLite has opened
            # it, and SIGKILL meanwhile leaves it.
            self.descriptor, self._name = tempfile.mkstemp(_SUFFIX, "robocache-", self._folder)

    def __enter__(self) -> PrivateCopy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self.descriptor)
        if self._name:
            os.unlink(self._name)

    @property
    def size(self) -> int:
        return os.fstat(self.descriptor).st_size

    def connect(self, recover: bool) -> sqlite3.Connection:
        """Open the content, which must be complete."""
        if self._in_memory or fits_memory(self.size):
            return self._connect_memory(recover)
        if self._name:
            return connect(self._name, recover)
        return self._connect_linked(recover)

    def _connect_memory(self, recover: bool) -> sqlite3.Connection:
        database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        try:
            if self.size:
                # SQLite refuses a database in memory whose header says that it has a log.
                versions = os.pread(self.descriptor, 2, 18)
                os.pwrite(self.descriptor, versions.replace(b"\2", b"\1"), 18)
                with mmap.mmap(self.descriptor, 0, access=mmap.ACCESS_READ) as content:
                    database.deserialize(content)
            return _set_up(database, recover)
        except BaseException:
            database.close()
            raise

    def _connect_linked(self, recover: bool) -> sqlite3.Connection:
        """Open the content by a name, which is locked while this process exists."""
        fcntl.flock(self.descriptor, fcntl.LOCK_EX)
        _remove_left(self._folder)
        name = os.path.join(self._folder, f"{_PREFIX}{secrets.token_hex(8)}{_SUFFIX}")
        folder = os.open(self._folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # With src_dir_fd, the link is followed.
            os.link(f"/proc/self/fd/{self.descriptor}", name, src_dir_fd=folder)
            try:
                return connect(name, recover)
            finally:
                os.unlink(name)
        finally:
            os.close(folder)


def connect(path: str, recover: bool = False) -> sqlite3.Connection:
    """Open a file that is not written, or whose state is compared after reading."""
    address = f"file://{quote(os.fsencode(os.path.abspath(path)))}?mode=ro&immutable=1"
    try:
        database = sqlite3.connect(address, uri=True, isolation_level=None, check_same_thread=False)
    except sqlite3.OperationalError:
        opened(path).close()  # this may give the reason, which SQLite does not
        raise
    return _set_up(database, recover)


def _set_up(database: sqlite3.Connection, recover: bool) -> sqlite3.Connection:
    database.text_factory = Text
    database.execute("PRAGMA temp_store=MEMORY")
    database.execute("PRAGMA trusted_schema=OFF")
    if recover:  # otherwise SQLite refuses a truncated file
        database.execute("PRAGMA writable_schema=ON")
    return database


def _remove_left(folder: str) -> None:
    """Remove the copies of killed processes: no process has them locked."""
    with os.scandir(folder) as entries:
        names = [entry.path for entry in entries if entry.name.startswith(_PREFIX)]
    for name in names:
        with contextlib.suppress(OSError):
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                found = os.fstat(descriptor)
                if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    os.unlink(name)
            finally:
                os.close(descriptor)


def _require_space(folder: str, size: int) -> None:
    found = os.statvfs(folder)
    if found.f_bavail * found.f_frsize < size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), folder)
