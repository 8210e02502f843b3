"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def written_beside(path: str, overwrite: bool) -> Iterator[str]:
    """A place to write to, which takes the place of ``path`` if nothing fails.

    It lies in the same folder, so that renaming is one step. Whatever ends the writing, Ctrl-C
    also, leaves nothing of it.
    """
    path = os.path.abspath(path)
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise FileExistsError(
            f"{path}: is a device, a pipe or a socket, expected a place for a file"
        )
    if os.path.lexists(path) and not overwrite:
        raise FileExistsError(f"{path}: exists; overwrite=True replaces it")
    part = f"{path}.{os.urandom(6).hex()}.part"
    try:
        yield part
        _sync(part)
        if os.path.isdir(path) and not os.path.islink(path):
            old = f"{part}.old"
            os.rename(path, old)
            try:
                os.rename(part, path)
            except BaseException:
                os.rename(old, path)
                raise
            shutil.rmtree(old)
        else:
            os.replace(part, path)
    except BaseException:
        _remove(part)
        raise


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
