"""Reading of the frames that a batch needs: decoded by threads, or from a store."""

from __future__ import annotations

import os
import queue
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..._cache.store import Entry
from .source import FrameSource

FRAMES = "frames"  # the name of the tensor in an entry
_MOST_ARRAYS = 64  # of a call of images()
_MOST_THREADS = 16
_readers: weakref.WeakSet[DecodedFrames] = weakref.WeakSet()  # of this process
_of_other_processes: list[Any] = []  # closing them could wait for threads that a fork left behind


class FrameReader(ABC):
    """Frames of a camera by episode and row of the data set."""

    #: Height, width and channels.
    shape: tuple[int, int, int]
    #: Whether the part of the steps that a cache stores was applied.
    are_stored: bool

    @abstractmethod
    def read(self, episodes: Any, rows: Any, out: Any) -> None:
        """Write frames to ``out``, uint8 [n,H,W,C].

        Parameters
        ----------
        episodes, rows : int64 [n]
            Different frames, in ascending order: by episode, then by row.
        """

    def close(self) -> None:  # noqa: B027
        """Close files and end threads. The next read opens and starts them again."""


class DecodedFrames(FrameReader):
    """Frames that several threads read from the files of a data set.

    After a fork, the files are opened again: processes never share a position in a file or a
    decoder.
    """

    are_stored = False

    def __init__(self, source: FrameSource, threads: int | None = None) -> None:
        self.shape = source.shape
        self._source = source
        self._count = threads or threads_by_default()
        self._begin()

    def _begin(self) -> None:
        """Begin without threads and open files."""
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._idle: queue.LifoQueue[FrameSource] = queue.LifoQueue()
        _readers.add(self)

    def read(self, episodes: Any, rows: Any, out: Any) -> None:
        runs = list(_runs(episodes))
        if len(runs) <= 1 or self._count == 1:
            for run in runs:
                self._read(int(episodes[run.start]), rows[run], out[run])
            return
        with self._lock:  # two batches may be read at the same time
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self._count, "robocache-frames")
            pool = self._pool
        tasks = [
            pool.submit(self._read, int(episodes[run.start]), rows[run], out[run]) for run in runs
        ]
        try:
            for task in tasks:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                if not task.cancelled():
                    task.exception()  # waits: ``out`` belongs to the caller afterwards

    def _read(self, episode: int, rows: Any, out: Any) -> None:
        try:
            source = self._idle.get_nowait()
        except queue.Empty:
            source = self._source.copy()
        try:
            source.read(episode, rows, out)
        finally:
            self._idle.put(source)

    def close(self) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()
        while not self._idle.empty():
            self._idle.get_nowait().close()

    def __getstate__(self) -> dict[str, Any]:
        return {"shape": self.shape, "_source": self._source, "_count": self._count}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()


def _after_fork() -> None:
    for reader in list(_readers):
        _of_other_processes.append((reader._pool, reader._idle))
        reader._begin()


os.register_at_fork(after_in_child=_after_fork)


def threads_by_default() -> int:
    """Return the number of threads that decode: the process's cores, divided by local ranks."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1") or "1")
    return max(1, min(_MOST_THREADS, (cores or 1) // max(1, ranks)))


class StoredFrames(FrameReader):
    """Frames in entries of a store."""

    are_stored = True

    def __init__(self, entries: Sequence[Entry], places: Sequence[tuple[int, int]]) -> None:
        """``places``: of each episode, the entry (-1: none) and the index of the episode there."""
        import numpy as np

        self.entries = list(entries)
        _, shape = entries[0].track(FRAMES)
        self.shape = (int(shape[1]), int(shape[2]), int(shape[3]))
        self._entry_of, index = np.asarray(places, np.int64).reshape(-1, 2).T
        self._first = np.zeros(len(index), np.int64)  # row of each episode in its entry
        for i, entry in enumerate(entries):
            own = self._entry_of == i
            self._first[own] = entry.episode_offsets()[index[own]]
        self.is_mapped = all(entry.is_mapped for entry in entries)
        self._segments: list[tuple[Any, Any]] = []
        if self.is_mapped:
            self._segments = [_segments_of(entry) for entry in self.entries]

    def place(self, episodes: Any, rows: Any) -> tuple[Any, Any]:
        """Return the entry of each frame, and its row there."""
        entries = self._entry_of[episodes]
        if len(entries) and entries.min() < 0:
            episode = int(episodes[int(entries.argmin())])
            raise ValueError(f"episodes: episode {episode} of the data set is not in the entries")
        return entries, self._first[episodes] + rows

    def read(self, episodes: Any, rows: Any, out: Any, context: Any = None) -> None:
        """Write frames to ``out``: of any library, on the device of the context."""
        entries, places = self.place(episodes, rows)
        for run in _runs(entries):
            self.entries[int(entries[run.start])].gather(FRAMES, places[run], out[run], context)

    def prefetch(self, episodes: Any, rows: Any) -> None:
        """Ask the system to read frames that a later call needs."""
        entries, places = self.place(episodes, rows)
        for run in _runs(entries):
            self.entries[int(entries[run.start])].prefetch(FRAMES, places[run])

    @property
    def num_bytes(self) -> int:
        """Bytes of all entries."""
        return sum(entry.num_bytes for entry in self.entries)

    def views(self, episodes: Any, rows: Any) -> Iterator[tuple[slice, list[Any], Any]]:
        """Yield parts of a batch, the arrays of the store that have its frames, and rows in them.

        The rows may repeat, and may be in any order. Rows below 0 have no frame.
        """
        import numpy as np

        entries, places = self.place(episodes, np.maximum(rows, 0))
        keys = np.empty((len(rows), 2), np.int64)  # entry and segment
        local = np.empty(len(rows), np.int64)
        for i in np.unique(entries):
            own = entries == i
            begins = self._segments[i][0]
            segment = np.searchsorted(begins, places[own], "right") - 1
            keys[own, 0], keys[own, 1] = i, segment
            local[own] = places[own] - begins[segment]
        begin = 0
        while begin < len(rows):
            known: dict[tuple[int, int], int] = {}
            end = begin
            for key in map(tuple, keys[begin:].tolist()):
                if key not in known and len(known) == _MOST_ARRAYS:
                    break
                known.setdefault(key, len(known))
                end += 1
            arrays = [self._segments[i][1][segment] for i, segment in known]
            starts = np.cumsum([0, *(len(array) for array in arrays)])
            which = np.fromiter(
                (known[key] for key in map(tuple, keys[begin:end].tolist())), np.int64, end - begin
            )
            part = slice(begin, end)
            yield part, arrays, np.where(rows[part] < 0, -1, starts[which] + local[part])
            begin = end


def _segments_of(entry: Entry) -> tuple[Any, list[Any]]:
    """Return the first row of each segment, and the arrays."""
    import numpy as np

    arrays = [entry.array(FRAMES, segment) for segment in range(entry.num_segments)]
    return np.cumsum([0, *(len(array) for array in arrays[:-1])]), arrays


def _runs(keys: Any) -> Iterator[slice]:
    """Yield the slices in which ascending keys are equal."""
    import numpy as np

    if not len(keys):
        return
    edges = (np.flatnonzero(np.diff(keys)) + 1).tolist()
    for begin, end in zip([0, *edges], [*edges, len(keys)]):
        yield slice(begin, end)
