"""Cameras for tests: frames in memory, or in a file that each process must open itself."""

from __future__ import annotations

import os

import numpy as np

import robocache as rbc
from robocache.data._frames.source import FrameSource

LENGTHS = (4, 0, 7, 1, 3)
HEIGHT, WIDTH = 12, 16


def pixels(lengths=LENGTHS, height=HEIGHT, width=WIDTH, channels=3, seed=5):
    """Return noise uint8 [H,W,C] for each row of each episode: every frame differs."""
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 256, (n, height, width, channels), np.uint8) for n in lengths]


class ArraySource(FrameSource):
    """Frames in memory. It lists the episode and the rows of each read."""

    def __init__(self, frames, name="front", missing=None, shape=None):
        self.name, self.path = name, f"memory/{name}"
        self.frames, self.rows_without = frames, missing or {}
        self._shape = shape
        self.reads = []

    @property
    def shape(self):
        return self._shape or self.frames[0].shape[1:]

    @property
    def lengths(self):
        return np.array([len(episode_frames) for episode_frames in self.frames], np.int64)

    def files(self, episode):
        return (f"{self.path}.npy",)

    def missing(self, episode):
        if not self.rows_without:
            return None
        rows = np.zeros(len(self.frames[episode]), bool)
        rows[self.rows_without.get(episode, [])] = True
        return rows

    def with_options(self, *, max_age=None, **options):
        return self

    def read(self, episode, rows, out):
        assert (np.diff(rows) > 0).all() and out.flags.c_contiguous
        self.reads.append((episode, rows.tolist()))
        out[:] = self.frames[episode][rows]

    def copy(self):
        return self  # so that ``reads`` has the reads of all threads


class FileSource(FrameSource):
    """Frames in a file of bytes. A file that another process opened is an error."""

    def __init__(self, path, lengths=LENGTHS, height=HEIGHT, width=WIDTH, name="front"):
        self.name, self.path = name, str(path)
        self._lengths, self._shape = list(lengths), (height, width, 3)
        self._file = self._process = None

    @property
    def shape(self):
        return self._shape

    @property
    def lengths(self):
        return np.array(self._lengths, np.int64)

    def files(self, episode):
        return (self.path,)

    def read(self, episode, rows, out):
        if self._file is None:
            self._file, self._process = open(self.path, "rb"), os.getpid()  # noqa: SIM115
        assert self._process == os.getpid(), "the file was opened in another process"
        first, size = sum(self._lengths[:episode]), int(np.prod(self._shape))
        for i, row in enumerate(rows.tolist()):
            self._file.seek((first + row) * size)
            out[i] = np.frombuffer(self._file.read(size), np.uint8).reshape(self._shape)

    def close(self):
        if self._file is not None:
            self._file.close()
        self._file = self._process = None

    def __getstate__(self):
        return {**self.__dict__, "_file": None, "_process": None}


def file_source(path, lengths=LENGTHS, **options):
    """Write noise to a file, and return its source."""
    path.write_bytes(
        b"".join(episode_frames.tobytes() for episode_frames in pixels(lengths, **options))
    )
    os.utime(path, (1e9, 1e9))  # files that were just written may change again
    return FileSource(path, lengths)


def states(lengths=LENGTHS):
    """Return episodes with the track "state": two numbers, different in each row."""
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = np.arange(offsets[-1], dtype=np.float32)[:, None] * np.float32([1, 10])
    return rbc.Episodes({"state": rbc.Track(values, offsets)})
