"""Storing of frames: one entry per camera and source file, in segments of whole episodes."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._cache import arithmetic
from ..._cache.cache import SHORTAGES, SLICE_MS, Cache, document_key
from ..._cache.identities import Sources
from ..._cache.key import canonical
from ..._cache.memo import Memo
from ..._cache.sizes import text_of_bytes
from ..._cache.store import Entry, Store, Writer
from ..._library.errors import RoboCacheError, Status, shown
from ..._printable import printable
from .._progress import progress
from .reader import FRAMES, StoredFrames
from .source import FrameSource

if TYPE_CHECKING:
    from ..._windows.image_steps import ImageSteps

_log = logging.getLogger("robocache.cache")

LAYOUT = 1  # of entries of frames
SEGMENT_BYTES = 1 << 30  # a segment ends before the episode that would take it past this
_AT_ONCE = 64 << 20  # bytes of frames that are decoded together
_BLOCK = 1 << 16  # bytes of a sum
_HEADERS = 4096 + 832  # of a segment
_INDEX = 512  # of an entry
_MOST_PLACES = 32  # episodes that a key lists; it has a digest of more


@dataclass(frozen=True)
class Group:
    """Consecutive episodes of a data set whose frames are in the same files: one entry."""

    source: FrameSource
    files: tuple[str, ...]
    begin: int  # the first episode
    lengths: tuple[int, ...]  # the number of frames of each episode
    frame_bytes: int

    @property
    def frames(self) -> int:
        return sum(self.lengths)

    def segments(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield the first episode, the episodes, the first row and the rows of each segment."""
        first, row, rows = 0, 0, 0
        for e, length in enumerate(self.lengths):
            if e > first and (rows + length) * self.frame_bytes > SEGMENT_BYTES:
                yield first, e - first, row, rows
                first, row, rows = e, row + rows, 0
            rows += length
        yield first, len(self.lengths) - first, row, rows

    def size(self) -> int:
        """Return the bytes of the entry's files, within 1 % of a file of a megabyte or more."""
        total = 24 * len(self.lengths) + _INDEX
        for _, _, _, rows in self.segments():
            data = rows * self.frame_bytes
            total += data + 8 * (data // _BLOCK + 2) + _HEADERS
        return total


def groups_of(source: FrameSource, episodes: Sequence[int], shape: Sequence[int]) -> list[Group]:
    """Return the groups that hold some episodes, with all of their episodes."""
    import numpy as np

    parts: dict[int, tuple[FrameSource, list[int]]] = {}
    for e in episodes:
        part, own = source.part(int(e))
        parts.setdefault(id(part), (part, []))[1].append(own)
    frame_bytes = int(np.prod(shape))
    groups: list[Group] = []
    for part, chosen in parts.values():
        wanted = np.zeros(len(part.lengths), bool)
        wanted[chosen] = True
        groups += _groups_of_part(part, wanted, frame_bytes)
    return groups


def _groups_of_part(source: FrameSource, wanted: Any, frame_bytes: int) -> Iterator[Group]:
    begin, files = 0, None
    lengths = source.lengths.tolist()
    for e in range(len(lengths) + 1):
        own = _files_of(source, e) if e < len(lengths) else None
        if own == files:
            continue
        if files is not None and wanted[begin:e].any():
            yield Group(source, files, begin, tuple(lengths[begin:e]), frame_bytes)
        begin, files = e, own


def _files_of(source: FrameSource, episode: int) -> tuple[str, ...]:
    """Return the files of an episode, without which an entry would not see their changes."""
    files = source.files(episode)
    if isinstance(files, (str, bytes)) or not files:
        raise ValueError(
            f"camera {source.name!r}: files({episode}) is {shown(files)}, expected a tuple of one "
            'or more paths; pass store="none" to Images for frames without files'
        )
    return tuple(files)


class Filling:
    """The entries of one camera: which are there, and the storing of those that are not."""

    def __init__(
        self,
        source: FrameSource,
        steps: ImageSteps,
        cache: Cache,
        identity: str,
        episodes: Sequence[int],
    ) -> None:
        self.source = source.copy().sequential()  # others may read the one of the episodes
        self.steps, self.cache = steps, cache
        self.unstored = ""  # why frames of the source must not be stored
        self._of_source: BaseException | None = None  # the error with which reading frames ended
        self.groups = groups_of(self.source, episodes, steps.stored_shape)
        self._sources: dict[str, Sources] = {}
        for path in dict.fromkeys(group.source.path for group in self.groups):
            own = [group for group in self.groups if group.source.path == path]
            files = list(dict.fromkeys(file for group in own for file in group.files))
            memo = Memo(cache.path, path)
            self._sources[path] = Sources(path, identity, memo=memo, only=files)
        documents = self._documents()
        self._keys = [document_key(document) for document in documents]
        self._entries: list[Entry | None] = []
        for document, (key, _) in zip(documents, self._keys):
            self._entries.append(cache._find(key, document))

    def _documents(self) -> list[dict[str, Any]]:
        identities = {path: self._identities(path) for path in self._sources}
        made = []
        for group in self.groups:
            sources, found = self._sources[group.source.path], identities[group.source.path]
            names = sorted({sources.name_of(file) for file in group.files})
            own = [identity for name in names for identity in found[name]]
            episodes = range(group.begin, group.begin + len(group.lengths))
            places: Any = [group.source.place(e) for e in episodes]
            if len(places) > _MOST_PLACES:
                content = hashlib.sha256(canonical(places).encode()).hexdigest()
                places = {"count": len(places), "sha256": content}
            made.append(
                {
                    "store": 1,
                    "kind": "frames",
                    "layout": LAYOUT,
                    "sources": own,
                    "camera": self.source.name,
                    "episodes": places,
                    "lengths": _digest_of(group.lengths),
                    "steps": self.steps.document(),
                    "frames": ["uint8", *self.source.shape],
                    "segment_bytes": SEGMENT_BYTES,
                    "arithmetic": {
                        **group.source.arithmetic(),
                        **arithmetic.of_steps(["images"] if self.steps.stored else []),
                    },
                }
            )
        return made

    def _identities(self, path: str) -> dict[str, list[Any]]:
        """Return the identities of the files of groups, by name; a folder has the files below."""
        sources = self._sources[path]
        found: dict[str, list[Any]] = {
            sources.name_of(file): []
            for group in self.groups
            if group.source.path == path
            for file in group.files
        }
        for identity in sources.document():
            name = identity[0]
            while name:
                if name in found:
                    found[name].append(identity)
                name = name.rpartition("/")[0]
        return found

    @property
    def missing(self) -> list[int]:
        """The groups without an entry."""
        return [i for i, entry in enumerate(self._entries) if entry is None]

    @property
    def missing_frames(self) -> int:
        return sum(self.groups[i].frames for i in self.missing)

    @property
    def missing_bytes(self) -> int:
        """The bytes that the missing entries will have on disk."""
        return sum(self.groups[i].size() for i in self.missing)

    def reader(self) -> StoredFrames | None:
        """Return the reader of the entries; None if one is missing."""
        entries = [entry for entry in self._entries if entry is not None]
        if len(entries) < len(self.groups) or not entries:
            return None
        places = {
            (id(group.source), group.begin + i): (number, i)
            for number, group in enumerate(self.groups)
            for i in range(len(group.lengths))
        }
        none = (-1, 0)
        parts = (self.source.part(e) for e in range(len(self.source.lengths)))
        return StoredFrames(entries, [places.get((id(part), own), none) for part, own in parts])

    def fill(self, show: bool | None = None) -> bool:
        """Store what is missing; return whether everything is in the cache then.

        An interruption keeps the segments that are done, and so does a process that is killed.
        Several processes that fill the same cache divide the segments.

        Raises
        ------
        ValueError
            The entries are larger than ``max_bytes`` of the cache.
        FormatError
            A frame is missing or damaged.
        """
        if not self.missing:
            return True
        store = self._store()
        if store is None:
            return False
        before = self._why_not_published()
        if before is not None:
            return self._unstored(before)
        title = f"Storing frames of {printable(self.source.name)}"
        title += f" ({text_of_bytes(self.missing_bytes)})"
        _log.info("%s: %s: %s", printable(self.source.path), title, self.cache.last_miss)
        try:
            with progress(title, self.missing_frames, show, "frames") as advance:
                return self._fill_missing(store, advance)
        finally:
            self.source.close()

    def _fill_missing(self, store: Store, advance: Any) -> bool:
        """Store the missing groups; return whether all of them are in the cache then."""
        for i in self.missing:
            key, about = self._keys[i]
            try:
                entry = self._fill(store, self.groups[i], key, about, advance)
            except SHORTAGES as error:
                if error is self._of_source:
                    raise
                self.cache._writes = False
                self.cache._trouble(error, f"cannot write {self.cache.path}")
                return False
            if entry is None:
                return False
            self._entries[i] = entry
        return True

    def _store(self) -> Store | None:
        """Return the store to write; None if it cannot be used or is too small."""
        cache, size = self.cache, self.missing_bytes
        limit = cache._max_bytes
        if limit is not None and size > limit:
            raise ValueError(
                f"max_bytes: is {text_of_bytes(limit)}, but the frames of {self.source.name!r} "
                f"have {text_of_bytes(size)}"
            )
        if not cache.enabled or not cache._writes:
            return None
        try:
            store = cache._opened(len(cache.paths) - 1)
            if store is None or not cache._writes:
                return None
            cache._check_space(size, f"frames of {self.source.name!r}")
        except SHORTAGES as error:
            cache._trouble(error, f"cannot write {cache.path}")
            return None
        return store

    def _why_not_published(self) -> str | None:
        reasons = (sources.why_not_published() for sources in self._sources.values())
        return next((reason for reason in reasons if reason is not None), None)

    def _unstored(self, reason: str) -> bool:
        self.unstored = reason
        _log.info("%s: frames are not stored: %s", printable(self.source.path), reason)
        return False

    def _fill(self, store: Store, group: Group, key: bytes, about: str, advance: Any) -> Any:
        """Store one group; return its entry, or None if its files changed."""
        import numpy as np

        segments = list(group.segments())
        todo = list(range(len(segments)))
        while todo:
            busy: list[int] = []
            for s in todo:
                first, episodes, row, rows = segments[s]
                part = {"episodes": episodes, "rows": rows, "first_episode": first}
                try:
                    writer = store.lock(key, s, first_row=row, **part)
                except RoboCacheError as error:
                    if error.status != Status.BUSY:
                        raise
                    busy.append(s)
                    continue
                if writer is None:
                    advance(rows)
                    continue
                with writer:
                    if not self._write(writer, group, first, episodes, rows, advance):
                        return None
            if busy and len(busy) == len(todo):  # other processes write all that is missing
                time.sleep(SLICE_MS / 1000)
            todo = busy
        entry = store.find(key)
        if entry is None:
            offsets = np.concatenate([[0], np.cumsum(group.lengths)]).astype(np.int64)
            store.publish(key, len(segments), offsets, about)
            if self.cache._max_bytes is not None or self.cache._max_age is not None:
                store.prune(self.cache._max_bytes, self.cache._max_age)
            entry = store.find(key)
        if entry is None:
            text = f"{self.cache.path}: an entry of frames could not be opened after it was written"
            raise RoboCacheError(text, Status.DAMAGED)
        return entry

    def _write(
        self, writer: Writer, group: Group, first: int, episodes: int, rows: int, advance: Any
    ) -> bool:
        """Write the frames of some episodes; decoding and writing overlap."""
        import numpy as np

        writer.add(FRAMES, np.dtype(np.uint8), (rows, *self.steps.stored_shape))
        chunks = self._chunks(group, first, episodes)
        with ThreadPoolExecutor(1, "robocache-decode") as thread:
            waiting = thread.submit(next, chunks, None)
            while (frames := waiting.result()) is not None:
                waiting = thread.submit(next, chunks, None)
                try:
                    if self.steps.stored:
                        out = np.empty((len(frames), *self.steps.stored_shape), np.uint8)
                        self.steps.store(frames, out)
                        frames = out
                    writer.write(FRAMES, frames)
                except BaseException:
                    waiting.cancel()
                    raise
                advance(len(frames))
        reason = self._why_not_published()
        if reason is not None:
            return self._unstored(reason)
        writer.publish()
        return True

    def _chunks(self, group: Group, first: int, episodes: int) -> Iterator[Any]:
        """Yield the frames of some episodes in parts, in two buffers that take turns."""
        import numpy as np

        step = max(1, _AT_ONCE // (2 * int(np.prod(self.source.shape))))
        buffers = [np.empty((0, *self.source.shape), np.uint8)] * 2
        turn = 0
        for e in range(first, first + episodes):
            for begin in range(0, group.lengths[e], step):
                end = min(begin + step, group.lengths[e])
                if len(buffers[turn]) < end - begin:
                    buffers[turn] = np.empty((end - begin, *self.source.shape), np.uint8)
                part = buffers[turn][: end - begin]
                turn = (turn + 1) % len(buffers)
                try:
                    _read(group.source, group.begin + e, np.arange(begin, end), part)
                except BaseException as error:
                    self._of_source = error
                    raise
                yield part


def _read(source: FrameSource, episode: int, rows: Any, out: Any) -> None:
    """Read frames; rows without a frame are black, and no batch has them."""
    import numpy as np

    missing = source.missing(episode)
    if missing is None or not missing[rows].any():
        source.read(episode, rows, out)
        return
    exist = ~missing[rows]
    out[~exist] = 0
    frames = np.empty((int(exist.sum()), *source.shape), np.uint8)
    if len(frames):
        source.read(episode, rows[exist], frames)
    out[exist] = frames


def _digest_of(lengths: Sequence[int]) -> str:
    return hashlib.sha256(",".join(map(str, lengths)).encode()).hexdigest()
