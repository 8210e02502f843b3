"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from ._replacing import check_replaceable

_FULL = (errno.ENOSPC, errno.EFBIG, *([errno.EDQUOT] if hasattr(errno, "EDQUOT") else []))


@contextmanager
def written_beside(path: str, overwrite: bool) -> Iterator[str]:
    """A place to write to, which takes the place of ``path`` if nothing fails.

    It lies in the same folder, so that renaming is one step. Whatever ends the writing, Ctrl-C
    also, leaves nothing of it. Of folders only those are replaced that were written so before.
    """
    path = os.path.abspath(path)
    if os.path.lexists(path) and not overwrite:
        raise FileExistsError(f"{path}: exists; overwrite=True replaces it")
    check_replaceable(path)
    part = f"{path}.{os.urandom(6).hex()}.part"
    try:
        yield part
        _sync(part)
        check_replaceable(path, part)  # others may have put something there meanwhile
        if os.path.isdir(path):
            _replace_folder(path, part)
        else:
            os.replace(part, path)
    except BaseException as error:
        _remove(part)
        if isinstance(error, OSError) and error.filename is None and error.errno in _FULL:
            error.filename = path
        raise


def _replace_folder(path: str, part: str) -> None:
    if not os.path.isdir(part):
        raise IsADirectoryError(errno.EISDIR, "is a folder, expected a place for a file", path)
    old = f"{part}.old"
    os.rename(path, old)
    try:
        os.rename(part, path)
    except BaseException:
        os.rename(old, path)
        raise
    shutil.rmtree(old)


def _sync(part: str) -> None:
    """On disk before it gets its name."""
    for base, _, names in os.walk(part):
        for name in names:
            _sync_file(os.path.join(base, name))
    if os.path.isfile(part):
        _sync_file(part)


def _sync_file(path: str) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _remove(part: str) -> None:
    if os.path.isdir(part):
        shutil.rmtree(part, ignore_errors=True)
    elif os.path.exists(part):
        os.unlink(part)
