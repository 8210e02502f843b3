"""Atomic writes of files and folders."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from .._printable import printable
from .overwrite import check_replaceable
from .workplace import Workplace, recover, recover_within, sync_folder, sync_tree

_FULL = (errno.ENOSPC, errno.EFBIG, *([errno.EDQUOT] if hasattr(errno, "EDQUOT") else []))
_EXISTS = "exists; overwrite=True replaces it"
_TRIES = 100


@contextmanager
def written_beside(path: str, overwrite: bool) -> Iterator[str]:
    """Yield a temporary path, which replaces ``path`` if the block succeeds.

    It is in the same folder, so that one rename moves it. If the block fails or is interrupted, the
    temporary file is removed; the next write removes the leftovers of a killed writer. Only folders
    that were written in this way are replaced.

    A link to a file stays, and the file that it points to is replaced. A file that is replaced
    keeps its permissions.
    """
    path = _absolute(path)
    require_place(path, overwrite)
    target = _written_path(path)
    try:
        place = Workplace(target)
    except OSError as error:
        error.filename = path  # not the path of the workplace
        raise
    try:
        yield place.new
        if not place.is_own:
            raise RuntimeError(
                f"{printable(path)}: the parent of this process began to write it; finish it there"
            )
        sync_tree(place.new)
        if os.path.lexists(path) and not overwrite:  # others may have put something there meanwhile
            raise FileExistsError(f"{printable(path)}: {_EXISTS}")
        check_replaceable(path, place.new)
        if os.path.isdir(place.new):
            _put_folder(place, path, overwrite)
        else:
            _put_file(place, path, overwrite)
        sync_folder(os.path.dirname(target))
    except Exception as error:
        if isinstance(error, OSError):
            _name(error, path, place.new)
        error.args = tuple(_renamed(part, path, place.new) for part in error.args)
        raise
    finally:
        place.close()


def require_place(path: str, overwrite: bool) -> None:
    """Refuse a path that :func:`written_beside` would not write, before any work is done.

    It first removes the leftovers of killed writers: see ``recover`` of ``workplace.py``.

    Raises
    ------
    FileExistsError
        Something is there, and ``overwrite`` is not set; or it may not be replaced.
    FileNotFoundError, NotADirectoryError
        The folder in which it would be does not exist.
    """
    _require_folder(path)
    path = _absolute(path)
    recover(_written_path(path))
    if os.path.lexists(path) and not overwrite:
        raise FileExistsError(f"{printable(path)}: {_EXISTS}")
    recover_within(path)
    check_replaceable(path)


def _require_folder(path: str) -> None:
    folder = os.path.dirname(path.rstrip(os.sep))
    if not folder or os.path.isdir(folder):
        return
    text = f"the folder {printable(folder)} does not exist; make it first, or write elsewhere"
    if os.path.lexists(folder):
        text = f"{printable(folder)} is not a folder; write elsewhere"
        raise NotADirectoryError(errno.ENOTDIR, text, path)
    raise FileNotFoundError(errno.ENOENT, text, path)


def _absolute(path: str) -> str:
    """Make a path absolute; ``..`` after a link leads where the system follows it to."""
    folder, name = os.path.split(path)
    if os.pardir in path.split(os.sep):
        return (
            os.path.realpath(path)
            if name in ("", os.pardir)
            else os.path.join(os.path.realpath(folder), name)
        )
    return os.path.abspath(path)


def _written_path(path: str) -> str:
    """Return the path, or for a link to a file the path of that file, which need not exist.

    Raises
    ------
    OSError
        The link leads back to itself.
    """
    if not os.path.islink(path):
        return path
    target = os.path.realpath(path)
    if os.path.islink(target):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
    return target


def _put_file(place: Workplace, path: str, overwrite: bool) -> None:
    if os.path.isdir(place.target):
        raise IsADirectoryError(errno.EISDIR, "is a folder, expected a path for a file", path)
    if overwrite:
        _keep_permissions(place)
        os.replace(place.new, place.target)
        return
    try:
        os.link(place.new, place.target)  # this never replaces a file
    except FileExistsError:
        raise FileExistsError(f"{printable(path)}: {_EXISTS}") from None
    except OSError:  # a file system without hard links
        if os.path.lexists(place.target):
            raise FileExistsError(f"{printable(path)}: {_EXISTS}") from None
        os.rename(place.new, place.target)


def _put_folder(place: Workplace, path: str, overwrite: bool) -> None:
    """Replace a folder by two renames. ``place.close`` reverts the first if the second fails."""
    if os.path.islink(path):
        raise FileExistsError(f"{printable(path)}: is a link, expected a path for a folder")
    for number in range(_TRIES):
        mode = 0  # nothing is there: looked at once, as other writers rename meanwhile
        with contextlib.suppress(FileNotFoundError):
            mode = os.lstat(path).st_mode
        if stat.S_ISDIR(mode):
            if not overwrite:
                raise FileExistsError(f"{printable(path)}: {_EXISTS}")
            _keep_permissions(place)
            with contextlib.suppress(FileNotFoundError):  # another writer was faster
                os.rename(path, place.old(number))
        elif mode:
            raise FileExistsError(f"{printable(path)}: is a file, expected a path for a folder")
        try:
            os.rename(place.new, path)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
    raise FileExistsError(
        f"{printable(path)}: other programs keep writing there; choose another path"
    )


def _keep_permissions(place: Workplace) -> None:
    """Give the new file or folder the permissions of the one that it replaces."""
    with contextlib.suppress(FileNotFoundError, PermissionError):  # a file system without them
        old, new = os.stat(place.target).st_mode, os.stat(place.new).st_mode
        mode = old & 0o777 | stat.S_IMODE(new) & ~0o777
        os.chmod(place.new, mode | 0o700 if stat.S_ISDIR(new) else mode)


def _name(error: OSError, path: str, new: str) -> None:
    """Put the path of the caller into an error, instead of one in the workplace."""
    name = error.filename
    if name is None and error.errno in _FULL:
        error.filename = path
    elif isinstance(name, str) and (name == new or name.startswith(new + os.sep)):
        error.filename, error.filename2 = path + name[len(new) :], None
    if isinstance(error.strerror, str):  # some packages put the path there
        error.strerror = error.strerror.replace(new, path)


def _renamed(part: object, path: str, new: str) -> object:
    """Return a text about the temporary place as a text about the path of the caller."""
    return part.replace(new, path) if isinstance(part, str) else part
