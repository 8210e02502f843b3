"""Workplaces: locked folders in which files and folders are prepared before they are renamed.

The workplace of ``x`` is ``x.<20 digits>.part`` in the same folder. It holds

- ``lock``: an empty file, which the writer locks as long as it lives;
- ``new``: the file or the folder that is being written;
- ``old0``, ``old1``, ...: folders that ``new`` replaces, until they are deleted.

A writer that is killed leaves its workplace behind, and the system unlocks the file. The next write
to the same path removes only a workplace that it can lock, so never one of a live writer. The
digits name the host too, because some network file systems lock files on each host separately.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import hashlib
import os
import re
import socket

_NEW, _OLD, _LOCK = "new", "old", "lock"
_CONTENT = re.compile(r"new|lock|old\d+")
_DIGITS = re.compile(r"([0-9a-f]{6})([0-9a-f]{6})[0-9a-f]{8}\.part\Z")  # host, boot, random
_LEFT = re.compile(rf"(.+)\.{_DIGITS.pattern}", re.DOTALL)
_LONGEST = 255  # bytes of a name, on nearly all file systems
_TRIES = 100


class Workplace:
    """A locked folder for the file or folder that is going to be renamed to ``target``."""

    def __init__(self, target: str) -> None:
        self.target = target
        self._process = os.getpid()
        for _ in range(_TRIES):
            path = f"{_stem(target)}.{''.join(_host())}{os.urandom(4).hex()}.part"
            os.mkdir(path, 0o700)  # what replaces a private file is private meanwhile
            try:
                lock = _locked(path, certain=False)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.rmdir(path)
                raise
            if lock is not None:
                self.path, self._lock = path, lock
                return
            # Another writer mistook the folder for a leftover, and is removing it.
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), target)

    @property
    def new(self) -> str:
        """The path to write to."""
        return os.path.join(self.path, _NEW)

    def old(self, number: int) -> str:
        """The path of a replaced folder until it is deleted."""
        return os.path.join(self.path, f"{_OLD}{number}")

    @property
    def is_own(self) -> bool:
        """Whether this process made it, and not the parent that it was forked from."""
        return os.getpid() == self._process

    def close(self) -> None:
        """Remove the workplace. If ``target`` is missing, rename the old folder back first.

        Raises
        ------
        OSError
            The old folder cannot be renamed; the message says where it is.
        """
        if self.is_own:
            _settle(self.path, self.target, self._lock)
        else:
            os.close(self._lock)


def recover(target: str) -> None:
    """Remove the workplaces that killed writers of a path left.

    If a writer was killed between its two renames, the old folder is renamed back. Workplaces of
    live writers stay.
    """
    folder, stem = os.path.split(_stem(target))
    for name in _names(folder):
        if name.startswith(f"{stem}.") and _DIGITS.fullmatch(name, len(stem) + 1):
            _recover(os.path.join(folder, name), target)


def recover_within(folder: str) -> None:
    """Remove the workplaces of files that killed writers left somewhere in a folder."""
    if os.path.islink(folder):
        return
    for base, folders, _ in os.walk(folder):
        for name in filter(_LEFT.fullmatch, folders):
            _recover(os.path.join(base, name), None)
        folders[:] = [name for name in folders if not _LEFT.fullmatch(name)]


def _recover(path: str, target: str | None) -> None:
    """Settle one workplace, if its writer is no longer alive."""
    if os.path.islink(path) or not all(map(_CONTENT.fullmatch, _names(path))):
        return
    found = _DIGITS.search(path)
    host, boot = _host()
    if found is None or (found[1] != host and found[2] != boot):
        return
    with contextlib.suppress(OSError):
        lock = _locked(path, certain=True)
        if lock is not None:
            _settle(path, target, lock)


def _settle(path: str, target: str | None, lock: int) -> None:
    """Remove a workplace and close its lock. Nothing is removed if ``target`` is not restored."""
    try:
        olds = [name for name in _names(path) if name.startswith(_OLD)]
        if olds and target is None:
            return
        if olds and target is not None and _is_absent(target):
            last = os.path.join(path, max(olds, key=lambda name: int(name[len(_OLD) :])))
            try:
                os.rename(last, target)
            except OSError as error:
                # Unless another writer has put something there meanwhile.
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                    text = f"{error.strerror}; the previous folder is at {last}"
                    raise OSError(error.errno, text, target) from None
            sync_folder(os.path.dirname(target))
        names = _names(path) or [_NEW, _LOCK]  # without a descriptor there are no names
        for name in sorted(names, key=lambda name: name == _LOCK):  # the lock last
            _remove(os.path.join(path, name))
    finally:
        os.close(lock)
    if not os.path.lexists(os.path.join(path, _LOCK)):
        for name in _names(path):  # what the descriptor of the lock was needed for
            _remove(os.path.join(path, name))
    with contextlib.suppress(OSError):
        os.rmdir(path)  # it is not empty if another process has locked it since


def _remove(path: str) -> None:
    """Remove a file or a folder as far as possible; the next write tries again."""
    with contextlib.suppress(OSError):
        if os.path.isdir(path) and not os.path.islink(path):
            os.chmod(path, 0o700)  # it may be read-only
            for name in os.listdir(path):  # one descriptor at a time: there may be no more
                _remove(os.path.join(path, name))
            os.rmdir(path)
        else:
            os.unlink(path)


def _is_absent(path: str) -> bool:
    """Whether there is nothing, or an empty folder, which a rename replaces."""
    if not os.path.isdir(path) or os.path.islink(path):
        return not os.path.lexists(path)
    try:
        return not os.listdir(path)
    except FileNotFoundError:  # another writer renamed it meanwhile
        return True


_WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


def _locked(path: str, certain: bool) -> int | None:
    """Lock a workplace; None if another process has it, or removed it meanwhile.

    ``certain``: None also where the file system has no locks.
    """
    file = os.path.join(path, _LOCK)
    try:
        lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except FileNotFoundError:
        return None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _WITHOUT_LOCKS or certain:
                raise
        if os.path.samestat(os.fstat(lock), os.stat(file, follow_symlinks=False)):
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass
    except BaseException:
        os.close(lock)
        raise
    os.close(lock)
    return None


@functools.lru_cache(maxsize=1)
def _host() -> tuple[str, str]:
    """Return digits of the host's name and of its current boot.

    Containers of one host share the boot; a host keeps its name when it boots again.
    """
    boot = ""
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id", "rb") as file:
        boot = file.read().decode("ascii", "replace").strip()
    host = socket.gethostname()
    return _digits(host), _digits(f"{host} {boot}" if not boot else boot)


def _digits(text: str) -> str:
    return hashlib.blake2b(os.fsencode(text), digest_size=3).hexdigest()


def _stem(target: str) -> str:
    """Return the path without digits and suffix; long names are cut and get a hash."""
    folder, name = os.path.split(target)
    encoded = os.fsencode(name)
    limit = _LONGEST - len(".part") - 21
    if len(encoded) > limit:
        name = f"{encoded[: limit - 7].decode('utf-8', 'ignore')}~{_digits(name)}"
    return os.path.join(folder, name)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def sync_folder(path: str) -> None:
    """Write the names in a folder to the disk, if the file system supports that."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(folder)


def sync_tree(path: str) -> None:
    """Write a file, or a folder with all that it holds, to the disk."""
    for base, _, names in os.walk(path):
        for name in names:
            _sync_file(os.path.join(base, name))
        sync_folder(base)
    if os.path.isfile(path):
        _sync_file(path)


def _sync_file(path: str) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
