"""A camera whose frames are computed from numbers in its files, and counted when they are read."""

import os
import time

import numpy as np

from robocache.data import FrameSource


class DrawnFrames(FrameSource):
    """Frames of noise that the file's content, the episode and the row determine."""

    def __init__(self, path, lengths, shape=(24, 32, 3), per_file=2, name="front"):
        self.path, self.name = str(path), name
        self._lengths = np.asarray(lengths, np.int64)
        self._shape, self._per_file = shape, per_file

    @property
    def shape(self):
        return self._shape

    @property
    def lengths(self):
        return self._lengths

    def files(self, episode):
        return (os.path.join(self.path, f"part-{episode // self._per_file}.bin"),)

    def arithmetic(self):
        return {"drawn": 1}

    def frame(self, episode, row):
        with open(self.files(episode)[0], "rb") as file:
            seed = int.from_bytes(file.read(4), "little")
        rng = np.random.default_rng([seed, episode, int(row)])
        return rng.integers(0, 256, self._shape, dtype=np.uint8)

    def read(self, episode, rows, out):
        with open(os.path.join(self.path, "reads.log"), "a") as log:
            log.writelines(f"{episode} {row}\n" for row in rows.tolist())
        for at, row in enumerate(rows.tolist()):
            out[at] = self.frame(episode, row)


def made(folder, lengths, *, per_file=2, age_s=100, **options):
    """Write the files of a camera, old enough to be stored; return the camera."""
    folder.mkdir(parents=True, exist_ok=True)
    source = DrawnFrames(folder, lengths, per_file=per_file, **options)
    for episode in range(len(lengths)):
        write(source, episode, episode // per_file, age_s)
    return source


def write(source, episode, seed, age_s=100):
    """Write the file of an episode, with a time of change in the past."""
    path = source.files(episode)[0]
    with open(path, "wb") as file:
        file.write(seed.to_bytes(4, "little"))
    then = time.time() - age_s - episode
    os.utime(path, (then, then))


def reads(source):
    """The frames that were read so far: (episode, row) in order."""
    try:
        with open(os.path.join(source.path, "reads.log")) as log:
            return [tuple(map(int, line.split())) for line in log]
    except FileNotFoundError:
        return []


def forget(source):
    path = os.path.join(source.path, "reads.log")
    if os.path.exists(path):
        os.unlink(path)
