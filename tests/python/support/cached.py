"""Data sets whose files are old enough for the cache, and comparisons of episodes."""

from __future__ import annotations

import os
import time

import numpy as np

from robocache import data

_LONG_AGO = 1_700_000_000 * 10**9


def age(path, seconds=0):
    """Give all files of a data set a time of the last change that is long ago, each another one."""
    files = [path]
    for base, _, names in os.walk(path):
        files += [os.path.join(base, name) for name in sorted(names)]
    for i, name in enumerate(map(str, files)):
        at = _LONG_AGO + int(seconds * 10**9) + i * 1_000_007
        os.utime(name, ns=(at, at))
    return path


def wait_for_ctime():
    """Wait until digests of files that were written just now are kept."""
    time.sleep(2.1)


def bits(array):
    """The bytes, dtype and shape of an array, or None."""
    if array is None:
        return None
    array = np.asarray(array)
    return array.tobytes(), str(array.dtype), array.shape


def facts(episodes):
    """Everything that episodes say, with arrays as bytes, to be compared."""
    loaded = episodes.load()
    tracks = {
        name: {
            "values": bits(track.values),
            "times": bits(track.times),
            "arrivals": bits(track.arrivals),
            "offsets": bits(track.episode_offsets),
            "unit": track.time_unit,
            "names": track.names,
            "files": track.files,
            "channels": track.channels,
            "info": episodes.track_info(name),
            "lengths": bits(episodes.lengths(name)),
        }
        for name, track in loaded.tracks.items()
    }
    about = episodes._about
    return {
        "order": list(loaded.tracks),
        "tracks": tracks,
        "tasks": episodes.tasks,
        "source": episodes.source,
        "format": episodes.format,
        "rate": episodes.rate,
        "unit": episodes.unit,
        "info": plain(episodes.info),
        "left_out": episodes.left_out,
        "notes": episodes.notes,
        "problems": episodes.problems,
        "callables": [about.stored is None, about.by_episode is None, about.checks is None],
        "pictures": {
            name: [list(read(e)) for e in range(len(episodes))]
            for name, read in about.pictures.items()
        },
        "stored": repr(episodes.stored_statistics()),
        "findings": [str(each) for each in data.checks.check(episodes)],
    }


def plain(value):
    """A structure with arrays as bytes."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return bits(value)
    if isinstance(value, np.ndarray):
        return [plain(each) for each in value.ravel().tolist()]
    if isinstance(value, (list, tuple)):
        return type(value)(plain(each) for each in value)
    if hasattr(value, "items"):
        return {key: plain(each) for key, each in value.items()}
    return value
