"""Indexes of videos in the folder of a cache, so that each file is read once to make its index.

An index counts as long as the device, the inode, the size, the time of the last change and ctime of
its file, and the libraries that read it, are the same. It is kept as a SHA-256 digest, followed by
an archive of NumPy (npz) with the arrays and a JSON header. Losing one costs time only.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import time
import zipfile
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from ..._cache.identities import RACY_NS
from ..._cache.memo import INDEXES, read_private, write_private
from .._errors import needed
from .video_index import VideoIndex

_VERSION = 1  # grows when an index is made in another way
_DTYPES = {
    "pts": "<i8",
    "order": "<i4",
    "starts": "<i4",
    "start_pts": "<i8",
    "start_dts": "<i8",
    "gaps": "<i4",
}
_FACTS = ("rotation", "pixels", "matrix", "full_range", "codec")
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile)


def state_of(path: str) -> list[int] | None:
    """Return what changes with a file; None if it cannot be examined."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    facts = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    return list(facts)


def load(folders: Sequence[str], path: str) -> VideoIndex | None:
    """Return the index of a file; None if it is not kept, or the file has changed."""
    state = state_of(path)
    for folder in folders:
        with contextlib.suppress(*_UNREADABLE):
            content = read_private(_file_of(folder, path))
            if content is not None and state is not None:
                found = _unpacked(content, path, state)
                if found is not None:
                    return found
    return None


def save(folder: str, index: VideoIndex, state: list[int] | None) -> None:
    """Keep an index of a file that had this state before it was read.

    A file that was changed less than two seconds ago may change again without another time.
    """
    if state is None or state != state_of(index.path):
        return
    if abs(time.time_ns() - state[-1]) >= RACY_NS:
        write_private(_file_of(folder, index.path), _packed(index, state))


def _file_of(folder: str, path: str) -> str:
    name = hashlib.sha256(os.fsencode(os.path.realpath(path))).hexdigest()
    return os.path.join(folder, INDEXES, name)


def _made_by() -> list[Any]:
    av = needed("av", "video", "a video")
    versions = av.library_versions
    return [_VERSION, av.__version__, *(list(versions[name]) for name in sorted(versions))]


def _packed(index: VideoIndex, state: list[int]) -> bytes:
    import numpy as np

    head = {name: getattr(index, name) for name in _FACTS}
    head["time_base"] = [index.time_base.numerator, index.time_base.denominator]
    head.update(size=list(index.size), state=state, made_by=_made_by())
    arrays = {name: getattr(index, name).astype(dtype) for name, dtype in _DTYPES.items()}
    out = io.BytesIO()
    np.savez(out, head=np.frombuffer(json.dumps(head).encode(), np.uint8), **arrays)
    content = out.getvalue()
    return hashlib.sha256(content).digest() + content


def _unpacked(content: bytes, path: str, state: list[int]) -> VideoIndex | None:
    import numpy as np

    digest, content = content[:32], content[32:]
    if hashlib.sha256(content).digest() != digest:
        return None
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        head = json.loads(arrays["head"].tobytes())
        if head["state"] != state or head["made_by"] != _made_by():
            return None
        found = {name: arrays[name].astype(dtype[1:]) for name, dtype in _DTYPES.items()}
    time_base = Fraction(*head["time_base"])
    facts = {name: head[name] for name in _FACTS}
    return VideoIndex(path, time_base, **found, size=tuple(head["size"]), **facts)
