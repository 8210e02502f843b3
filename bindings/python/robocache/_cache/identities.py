"""Identities of source files: which bytes an entry was made of, without reading all of them.

An identity is a short list, the last part of a source in the document of a key:

- ``["stat", size, mtime in ns, SHA-256]``: the digest covers the first and the last 64 KiB and 16
  blocks of 4 KiB between them. Times from before 1990, and times that all files of a set share, as
  those in container images and archives do, say nothing: such files are identified by content.
- ``["content", size, SHA-256]``: of all bytes.
- ``["blob", name, size]``: a link into the cache of the Hugging Face Hub, whose blobs are named by
  a digest of their content.
- ``["revision", text, size]``: the caller vouches for the content.
- ``["listed"]``: only the name of the file counts. ``["folder"]`` and ``["link"]``: an empty folder
  and a link that is not followed.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from .key import portable_path
from .memo import Memo

_END, _BLOCK, _BLOCKS = 1 << 16, 1 << 12, 16
_WHOLE = 2 * _END + _BLOCK * _BLOCKS  # smaller files are read whole
_CHUNK = 1 << 20
_1990 = 631_152_000 * 10**9
RACY_NS = 2 * 10**9
_FEW, _MOST_THREADS = 16, 16
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_BLOB = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


@dataclass(frozen=True)
class _File:
    """A source file, as it was when it was found."""

    name: str  # relative, as in keys
    path: str
    kind: str  # "file", "listed", "folder" or "link"
    size: int = 0
    mtime: int = 0  # ns
    place: tuple[int, int, int] = (0, 0, 0)  # device, inode and ctime: only to see changes

    @property
    def state(self) -> tuple[Any, ...]:
        return self.name, self.kind, self.size, self.mtime, self.place


@dataclass
class Sources:
    """The files that a reader reads, and their identities.

    Parameters
    ----------
    path
        A file or the folder of a data set.
    method
        "stat", "content", or "revision:" and a text.
    follow_links
        Whether links to folders outside of the data set are followed.
    listed
        Folders of the data set in which only the names of files matter.
    companions
        Paths of other files that the reader of a single file reads with it, if they exist.
    memo
        Digests that were computed before.
    only
        Paths of files and folders of the data set, the only sources. None: all files.
    """

    path: str
    method: str = "stat"
    follow_links: bool = False
    listed: Collection[str] = ()
    companions: Sequence[str] = ()
    memo: Memo = field(default_factory=Memo)
    only: Sequence[str] | None = None

    def __post_init__(self) -> None:
        require_method(self.method)
        self._files = list(self._found())
        self.began_ns = time.time_ns()

    def document(self) -> list[list[Any]]:
        """Return the sources for a key: ``[relative path, identity]``, sorted."""
        files = [file for file in self._files if file.kind == "file"]
        shared = len(files) > 1 and len({file.mtime for file in files}) == 1
        unknown: list[tuple[_File, bool, list[Any]]] = []
        found = [[file.name, self._identity(file, shared, unknown)] for file in self._files]
        digests = _digests([(file.path, whole) for file, whole, _ in unknown])
        for (file, whole, identity), digest in zip(unknown, digests):
            identity.append(digest)
            if abs(self.began_ns - file.place[2]) >= RACY_NS:
                self.memo.put(_fact(file, whole), digest)
        self.memo.save()
        return sorted(found, key=lambda source: (source[0], str(source[1])))

    def why_not_published(self) -> str | None:
        """Return why a result must not be stored: files are changing, or were changed just now.

        Called after reading. A file that was changed less than two seconds ago may be changed again
        without another time.
        """
        now = {file.state: file for file in self._found()}
        before = {file.state for file in self._files}
        changed = sorted({state[0] for state in before ^ set(now)})
        if changed:
            return f"{changed[0]} changed while it was read"
        for file in now.values():
            if file.kind == "file" and self.method in ("stat", "content"):
                if abs(self.began_ns - file.mtime) < RACY_NS:
                    return f"{file.name} was written less than 2 seconds before it was read"
        return None

    # ---- files ----------------------------------------------------------------------------------

    def name_of(self, path: str) -> str:
        """Return the name that a file or folder of the data set has in keys."""
        root = self.path if os.path.isdir(self.path) else os.path.dirname(self.path)
        return portable_path(os.path.relpath(path, root or "."))

    def _found(self) -> Iterator[_File]:
        if self.only is not None:
            root = self.path if os.path.isdir(self.path) else os.path.dirname(self.path)
            for path in self.only:
                name = os.path.relpath(path, root or ".")
                if os.path.isdir(path):
                    real = os.path.realpath(path)
                    yield from self._below(path, f"{name}/", (real,), real)
                else:
                    yield self._file(path, name)
            return
        if not os.path.isdir(self.path):
            yield self._file(self.path, os.path.basename(self.path))
            for path in self.companions:
                if os.path.isfile(path):
                    yield self._file(path, f"companions/{os.path.basename(path)}")
            return
        real = os.path.realpath(self.path)
        yield from self._below(self.path, "", (real,), real)

    def _below(
        self, folder: str, prefix: str, above: tuple[str, ...], root: str
    ) -> Iterator[_File]:
        is_empty = True
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.endswith("-shm"):
                    continue  # shared memory of readers of SQLite, without content
                name = prefix + entry.name
                is_link = entry.is_symlink()
                if os.path.isdir(entry.path) if is_link else entry.is_dir():
                    if entry.name.startswith("."):
                        continue  # of version control and of tools
                    is_empty = False
                    if is_link:
                        real = os.path.realpath(entry.path)
                        inside = real == root or real.startswith(root + os.sep)
                        if real in above or not (inside or self.follow_links):
                            yield _File(portable_path(name), entry.path, "link")
                            continue
                        yield from self._below(entry.path, f"{name}/", (*above, real), root)
                    else:
                        yield from self._below(entry.path, f"{name}/", above, root)
                    continue
                is_empty = False
                if prefix.partition("/")[0] in self.listed:
                    yield _File(portable_path(name), entry.path, "listed")
                elif is_link and not os.path.exists(entry.path):
                    yield _File(portable_path(name), entry.path, "link")
                else:
                    yield self._file(entry.path, name)
        if is_empty and prefix:
            yield _File(portable_path(prefix.rstrip("/")), folder, "folder")

    def _file(self, path: str, name: str) -> _File:
        of = os.stat(path)
        if not stat.S_ISREG(of.st_mode):
            return _File(portable_path(name), path, "link")
        place = of.st_dev, of.st_ino, of.st_ctime_ns
        return _File(portable_path(name), path, "file", of.st_size, of.st_mtime_ns, place)

    # ---- identities -----------------------------------------------------------------------------

    def _identity(
        self, file: _File, shared_mtime: bool, unknown: list[tuple[_File, bool, list[Any]]]
    ) -> list[Any]:
        """Return an identity. If its digest is not known, it lacks it, and is in ``unknown``."""
        if file.kind != "file":
            return [file.kind]
        if self.method.startswith("revision:"):
            return ["revision", self.method.partition(":")[2], file.size]
        blob = _blob_of(file.path)
        if blob is not None:
            return ["blob", blob, file.size]
        whole = self.method == "content" or shared_mtime or file.mtime < _1990
        identity = ["content", file.size] if whole else ["stat", file.size, file.mtime]
        known = self.memo.get(_fact(file, whole))
        if known is None:
            unknown.append((file, whole, identity))
        else:
            identity.append(known)
        return identity


def require_method(method: str) -> None:
    """Refuse a way to identify files that does not exist."""
    if not isinstance(method, str) or not (
        method in ("stat", "content") or method.partition(":")[0] == "revision" and method[9:]
    ):
        raise ValueError(
            f"identity: is {method!r}, expected 'stat', 'content' or 'revision:' and a text"
        )


def _fact(file: _File, whole: bool) -> tuple[int, ...]:
    return (*file.place, file.size, file.mtime, int(whole))


def _digests(files: Sequence[tuple[str, bool]]) -> Iterable[str]:
    """Return the digests of files, or of parts of them. Many are read by several threads."""
    if len(files) < _FEW:
        return [_sha256(path, whole) for path, whole in files]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(_MOST_THREADS, os.cpu_count() or 1)) as pool:
        return list(pool.map(lambda file: _sha256(*file), files))


def _blob_of(path: str) -> str | None:
    """Return the name of a blob if the path is a link in a snapshot of the Hugging Face Hub."""
    if not os.path.islink(path) or "snapshots" not in path.split(os.sep):
        return None
    folder, name = os.path.split(os.path.realpath(path))
    is_blob = os.path.basename(folder) == "blobs" and _BLOB.fullmatch(name)
    return name if is_blob else None


def _sha256(path: str, whole: bool) -> str:
    """Return the digest of a file, or of parts of it."""
    total = hashlib.sha256()
    descriptor = os.open(path, _FLAGS)
    try:
        size = os.fstat(descriptor).st_size
        if whole or size <= _WHOLE:
            at = 0
            while content := os.pread(descriptor, _CHUNK, at):
                total.update(content)
                at += len(content)
        else:
            total.update(os.pread(descriptor, _END, 0))
            for i in range(_BLOCKS):
                total.update(os.pread(descriptor, _BLOCK, i * size // _BLOCKS))
            total.update(os.pread(descriptor, _END, size - _END))
    finally:
        os.close(descriptor)
    return total.hexdigest()
