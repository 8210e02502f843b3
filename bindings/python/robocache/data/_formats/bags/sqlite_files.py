"""Access to an SQLite database in a state that no process changes during reading.
The source folder is never changed. SQLite changes it even when it only reads: it rolls back
transactions and deletes logs. So this module reads the logs, and SQLite opens its files as
immutable, without locks. Reads are consistent for these reasons:

- A database without logs, which no process has open and which has not changed lately, is read in
  place. Each block of rows is used only if the files are still unchanged after it was read.
- Any other database is copied, and its logs are applied to the copy. The copy is valid if no
  process held the lock for writing before and after the copy, and the files are unchanged. If a
  recorder never pauses, the copy is made under a lock for reading, for 0.25 s at most.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import sqlite3
import struct
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import BinaryIO

from ..._errors import Damage, FormatError
from ..._file_access import Limit, opened
from .sqlite_copies import PrivateCopy, connect, fits_memory
from .sqlite_logs import JOURNAL_HEADER, LOG_HEADER, Changes, is_hot, read_journal, read_log
from .unpacked_files import unpack

WAIT = 3.0  # seconds to wait for a state that no recorder changes
_HOLD = 0.25  # seconds that a lock is held at most: a recorder cannot commit meanwhile
_ASIDE = 3  # tries without a lock
_RECENT = 2.0  # seconds: a database that changed lately may still be recorded
_TICK = 0.05  # seconds within which two changes may get the same time
_COPIED = 64 << 20  # bytes of a database without logs that is copied because it is recent
_AT_ONCE = 4 << 20  # bytes

# Bytes that SQLite locks in the database, and in "-shm": see os_unix.c and wal.c of SQLite.
_PENDING, _RESERVED, _SHARED, _SHARED_SIZE = 0x40000000, 0x40000001, 0x40000002, 510
_CHECKPOINT, _FIRST_READER = 121, 124
_NO_LOCKS = {errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP}

_WRITTEN = "is being written: try again when the recorder has stopped"
_CHANGED = "was written while it was read: try again when the recorder has stopped"


class Database:
    """One state of a database. ``connection`` reads it; ``check`` refuses a later state."""

    def __init__(
        self,
        path: str,
        state: _State | None,
        copy: sqlite3.Connection | None,
        size: int,
        recover: bool,
    ) -> None:
        self.path, self.size = path, size
        self._state, self._copy, self._recover = state, copy, recover

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        if self._copy is not None:
            yield self._copy
            return
        database = connect(os.path.realpath(self.path), self._recover)
        try:
            yield database
        finally:
            database.close()

    @property
    def is_copy(self) -> bool:
        return self._copy is not None

    def check(self) -> None:
        """Refuse data if the database was written since it was opened.

        Raises
        ------
        FormatError
            It was written.
        """
        if self._state is None or self._copy is not None:
            return
        if not _is_unchanged(self.path, self._state):
            raise FormatError(self.path, "", _CHANGED)


def open_database(path: str, damage: Damage, wait: float | None = None) -> Database:
    """Open a database in the state of its last committed transaction.

    Raises
    ------
    FormatError
            It is being written for ``wait`` seconds (default ``WAIT``), or a log is damaged.
    OSError
        There is no space for a copy, or no file descriptor.
    """
    _require_logs_of(path, damage)
    until = time.monotonic() + (WAIT if wait is None else wait)
    faults: Counter[str] = Counter()
    tries = 0
    while True:
        found = _Try(path, damage, faults, hold=tries >= _ASIDE).database()
        if found is not None:
            return found
        if time.monotonic() >= until:
            raise FormatError(path, "", _WRITTEN)
        tries += 1
        time.sleep(min(0.003 * tries, 0.02))


def unpacked_database(path: str, limit: Limit, recover: bool = False) -> Database:
    """Open the database in a file that is compressed as a whole, as a private copy.

    Raises
    ------
    FormatError
        The file is damaged, or unpacks to more than is allowed.
    OSError
        There is no space for a copy.
    """
    with PrivateCopy(0, in_memory=False) as copy:
        with open(copy.descriptor, "wb", closefd=False) as target:
            size = unpack(path, target, limit)
        return Database(path, None, copy.connect(recover), size, recover)


def _require_logs_of(path: str, damage: Damage) -> None:
    """Refuse a log in the folder of a link: SQLite uses the log in the folder of its target."""
    real = os.path.realpath(path)
    for end in ("-wal", "-journal"):
        name = path + end
        if not os.path.islink(path) or not os.path.exists(name):
            continue
        at_home = os.path.exists(real + end) and os.path.samefile(name, real + end)
        if not at_home and (not os.path.isfile(name) or os.path.getsize(name)):
            damage.found(
                name,
                "",
                f"is in the folder of a link, but SQLite uses the log next to the target, {real}: "
                "this log is not read",
            )


# ---- the state of the files at one moment --------------------------------------------------------


@dataclass(frozen=True)
class _State:
    """The attributes of the files, which change if a process writes to the database."""

    place: tuple[int, ...]  # device and inode
    size: int
    changed: int  # ns
    header: bytes  # includes a counter of transactions
    log: _LogFile | None  # without its size: a recorder may append to it
    journal: _LogFile | None  # if it is hot

    @classmethod
    def read(cls, real: str, database: BinaryIO) -> _State:
        named, found = os.stat(real), os.fstat(database.fileno())
        header = os.pread(database.fileno(), 100, 0)
        log = _LogFile.read(real + "-wal", LOG_HEADER)
        journal = _LogFile.read(real + "-journal", JOURNAL_HEADER)
        if journal is not None and (
            not (journal.reason or is_hot(journal.start)) or _is_reserved(database)
        ):
            journal = None  # finished, or of a transaction that has not written yet
        place = (named.st_dev, named.st_ino, found.st_dev, found.st_ino)
        log = None if log is None else replace(log, size=0, changed=0)
        return cls(place, found.st_size, found.st_mtime_ns, header, log, journal)

    @property
    def logged(self) -> bool:
        """Whether a write-ahead log has content."""
        return self.log is not None and bool(self.log.start or self.log.reason)

    @property
    def has_logs(self) -> bool:
        return self.logged or self.journal is not None

    def is_within(self, seconds: float) -> bool:
        """Whether the database changed within ``seconds`` of now, in the past or the future."""
        return abs(time.time_ns() - self.changed) < seconds * 1e9


@dataclass(frozen=True)
class _LogFile:
    """A log file of a database."""

    place: tuple[int, ...] = ()
    size: int = 0
    changed: int = 0  # ns
    start: bytes = b""
    reason: str = ""  # why it cannot be read

    @classmethod
    def read(cls, path: str, size: int) -> _LogFile | None:
        """Read its first bytes; None if it does not exist."""
        try:
            with opened(path) as file:
                start = os.pread(file.fileno(), size, 0)
                found = os.fstat(file.fileno())
        except FileNotFoundError:
            return cls(reason="is a broken link") if os.path.lexists(path) else None
        except FormatError as error:
            return cls(reason=error.reason)
        return cls((found.st_dev, found.st_ino), found.st_size, found.st_mtime_ns, start)


def _is_unchanged(path: str, state: _State) -> bool:
    real = os.path.realpath(path)
    try:
        with opened(real) as database:
            return not _is_written(database) and _State.read(real, database) == state
    except FileNotFoundError:
        return False


# ---- locks ---------------------------------------------------------------------------------------
# Locks belong to the open file, not to the process. So they stay when another descriptor of the
# file is closed, and they conflict with locks of this process as well.


def _lock(command: int, kind: int, file: BinaryIO, first: int, count: int = 1) -> tuple[int, ...]:
    request = struct.pack("hhqqi0q", kind, os.SEEK_SET, first, count, 0)
    return struct.unpack("hhqqi0q", fcntl.fcntl(file.fileno(), command, request))


def _is_locked(file: BinaryIO, kind: int, first: int, count: int = 1) -> bool:
    """Whether an existing lock conflicts with one of ``kind``."""
    try:
        return _lock(fcntl.F_OFD_GETLK, kind, file, first, count)[0] != fcntl.F_UNLCK
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return False  # the file system has no locks
        raise


def _is_written(database: BinaryIO) -> bool:
    return _is_locked(database, fcntl.F_RDLCK, _SHARED, _SHARED_SIZE)


def _is_reserved(database: BinaryIO) -> bool:
    """Whether a transaction for writing is open. It may not have written to the file yet."""
    return _is_locked(database, fcntl.F_RDLCK, _RESERVED)


def _is_open(database: BinaryIO) -> bool:
    """Whether a process reads or writes. A recorder with a write-ahead log always does."""
    return _is_locked(database, fcntl.F_WRLCK, _SHARED, _SHARED_SIZE)


def _hold(file: BinaryIO, first: int, count: int = 1) -> bool:
    """Lock for reading until the file is closed, if that is possible now."""
    try:
        _lock(fcntl.F_OFD_SETLK, fcntl.F_RDLCK, file, first, count)
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.EACCES) or error.errno in _NO_LOCKS:
            return False
        raise
    return True


def _hold_database(database: BinaryIO) -> bool:
    """Lock the database for reading, unless a writer waits for readers to end, as SQLite does."""
    if not _hold(database, _PENDING):
        return False
    success = _hold(database, _SHARED, _SHARED_SIZE)
    _lock(fcntl.F_OFD_SETLK, fcntl.F_UNLCK, database, _PENDING)
    return success


@contextmanager
def _checkpoints_held(real: str) -> Iterator[None]:
    """Keep recorders from moving a write-ahead log into the database; they can still append.

    If that is impossible, the comparison of the file states detects it.
    """
    try:
        shared = opened(real + "-shm")
    except (FormatError, FileNotFoundError, PermissionError):
        yield
        return
    with shared:
        _hold(shared, _CHECKPOINT)
        _hold(shared, _FIRST_READER)  # without readers, the log would be restarted
        yield


# ---- one try -------------------------------------------------------------------------------------


class _Busy(Exception):
    """The copy takes longer than a lock may be held."""


@dataclass(frozen=True)
class _Finding:
    """Damage of a file, or a remark about it."""

    path: str
    place: str
    text: str
    is_damage: bool


class _Try:
    """One attempt to get a state that no process changes."""

    def __init__(self, path: str, damage: Damage, faults: Counter[str], hold: bool) -> None:
        self.path, self.damage, self.faults, self.hold = path, damage, faults, hold
        self.real = os.path.realpath(path)
        self.log_prefix = self.real if os.path.islink(path) else path
        self.until: float | None = None  # when to release a held lock

    def database(self) -> Database | None:
        with opened(self.real) as file, _checkpoints_held(self.real):
            if self.hold and not os.path.exists(self.real + "-wal"):
                if not _hold_database(file):
                    return None
                self.until = time.monotonic() + _HOLD
            state = _State.read(self.real, file)
            if _is_written(file):
                return None
            live = self.until is None and _is_open(file)
            active = live or self.until is not None or state.is_within(_RECENT)
            if not state.has_logs and not (active and state.size <= _COPIED):
                return self._original(file, state)
            try:
                return self._copied(file, state, live)
            except _Busy:
                return None

    def _original(self, file: BinaryIO, state: _State) -> Database | None:
        if state.is_within(_TICK):  # a change now might get the same time
            time.sleep(_TICK)
            return None
        finding = self._cut_transaction(file.fileno())
        if not _is_unchanged(self.path, state):
            return None
        self._report(finding)
        return Database(self.path, state, None, state.size, self.damage.keep)

    def _copied(self, file: BinaryIO, state: _State, live: bool) -> Database | None:
        in_memory = fits_memory(state.size + self._log_size(state))
        try:
            with PrivateCopy(state.size, in_memory) as copy:
                if state.has_logs and self.until is None and state.is_within(_TICK):
                    time.sleep(_TICK)  # a change from now on gets another time
                self._copy(file, copy.descriptor)
                findings = self._apply_logs(state, copy.descriptor, live)
                if not self._is_valid(file, state, copy.descriptor):
                    return None
                if not state.has_logs:
                    findings = self._cut_transaction(copy.descriptor)
                if live and self._may_be_unfinished(findings):
                    return None
                self._report(findings)
                size, database = copy.size, copy.connect(self.damage.keep)
            if state.journal is not None:
                self._report(self._disagreement(database))
            return Database(self.path, state, database, size, False)
        except OSError as error:
            if error.errno is None or str(error.filename).startswith(self.real):
                raise
            place = "memory" if in_memory else "the temporary folder"
            text = f"{os.strerror(error.errno)}, for a private copy in {place}"
            raise OSError(error.errno, text, self.path) from error

    def _log_size(self, state: _State) -> int:
        if not state.logged:
            return 0
        with contextlib.suppress(FileNotFoundError):  # comparing states detects that
            return os.path.getsize(self.real + "-wal")
        return 0

    def _copy(self, file: BinaryIO, copy: int) -> None:
        at = 0
        while content := os.pread(file.fileno(), _AT_ONCE, at):
            at += len(content)
            left = memoryview(content)
            while left:
                left = left[os.write(copy, left) :]
            if self.until is not None and time.monotonic() > self.until:
                raise _Busy

    def _is_valid(self, file: BinaryIO, state: _State, copy: int) -> bool:
        """Whether no process wrote during the copy."""
        if self.until is None and not state.has_logs and state.is_within(_TICK):
            # A change may have the time of the previous one, so compare the contents again.
            if _is_written(file) or not _is_same(file.fileno(), copy):
                return False
        return not _is_written(file) and _State.read(self.real, file) == state

    def _apply_logs(self, state: _State, copy: int, live: bool) -> list[_Finding]:
        findings: list[_Finding] = []
        for end, is_there in (("-journal", state.journal is not None), ("-wal", state.logged)):
            if not is_there:
                continue
            try:
                with opened(self.real + end) as log:
                    changes = read_log(log, live) if end == "-wal" else read_journal(log)
                    page_size = _page_size(os.pread(copy, 100, 0))
                    changes.require_fit(page_size, os.fstat(copy).st_size)
                    changes.apply(log, copy)
            except FormatError as error:
                changes = Changes(fault=f"{error.reason}: the messages in it are skipped")
            except FileNotFoundError:  # or it was deleted meanwhile; comparing states detects that
                changes = Changes(fault="is a broken link: the messages in it are missing")
            text = changes.fault or changes.remark
            if changes.fault and end == "-journal":
                text += "; the database may hold a part of a transaction"
            if text:
                findings.append(_Finding(self.log_prefix + end, "", text, bool(changes.fault)))
        return findings

    def _cut_transaction(self, database: int) -> list[_Finding]:
        """Find a truncated transaction of a recorder that kept its journal in memory."""
        header = os.pread(database, 100, 0).ljust(100, b"\0")
        end = struct.unpack_from(">I", header, 28)[0] * _page_size(header)
        if not end or header[24:28] != header[92:96]:
            return []  # the writer does not count pages
        if not os.pread(database, _AT_ONCE, end).strip(b"\0"):
            return []
        excess = os.fstat(database).st_size - end
        text = (
            f"has {excess:,} bytes more than its header counts: a transaction is incomplete, and "
            "messages may be wrong"
        )
        return [_Finding(self.path, f"byte {end}", text, True)]

    def _disagreement(self, copy: sqlite3.Connection) -> list[_Finding]:
        """Find damage that a truncated journal leaves. Such a journal looks complete."""
        (text,) = copy.execute("PRAGMA integrity_check(1)").fetchone()
        if text == b"ok":
            return []
        reason = text.decode("utf-8", "backslashreplace").replace("\n", " ")
        reason = f"does not undo the whole transaction: afterwards SQLite finds {reason!r}"
        return [_Finding(self.log_prefix + "-journal", "", reason, True)]

    def _may_be_unfinished(self, findings: list[_Finding]) -> bool:
        """Whether damage may be an unfinished write of a recorder: then it disappears."""
        text = str([finding for finding in findings if finding.is_damage])
        self.faults[text] += 1
        return text != "[]" and self.faults[text] <= 5

    def _report(self, findings: list[_Finding]) -> None:
        for finding in findings:
            report = self.damage.found if finding.is_damage else self.damage.note
            report(finding.path, finding.place, finding.text)


def _is_same(file: int, copy: int) -> bool:
    at = 0
    while content := os.pread(file, _AT_ONCE, at):
        if content != os.pread(copy, _AT_ONCE, at):
            return False
        at += len(content)
    return at == os.fstat(copy).st_size


def _page_size(header: bytes) -> int:
    size = int.from_bytes(header[16:18], "big")
    return 65536 if size == 1 else size
