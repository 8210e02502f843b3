"""Episodes as arrays and metadata, so that they come back equal.

An entry has one segment with the arrays of all tracks, and three tensors of bytes with JSON:
"about" has the metadata of the data set and of each track, and is read when the entry is opened;
"info" and "tasks" may be large, and are read when they are used. Arrays that several tracks share,
such as times, are stored once. Paths below the data set are stored without it, since the same
data may be opened by another path.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ... import Track
from ..._arguments.to_numpy import on_host
from ..._cache.values import NotStorable, encoded
from ..._episodes.channels import Group
from ..._episodes.episodes import Episodes
from ..._library.dtypes import DTYPES
from .._errors import LeftOut, Problem
from .._kinds.kinds import Kinds
from .._kinds.tracks import declared_in

ABOUT, INFO, TASKS = "about", "info", "tasks"
_MOST_NAME = 1000  # bytes
_LABEL, _KINDS = "_label", "_kinds"  # attributes of a track, as in _kinds.tracks
_NOTHING = -1  # the index of None


class Packed:
    """Contents of an entry: arrays by the names of tensors, and the rows of its index."""

    def __init__(self, episodes: Episodes, path: str, known_problems: int = 0) -> None:
        self.arrays: dict[str, Any] = {}
        self._source = path
        self._shared: list[tuple[str, Any]] = []  # times and offsets, by the names of tensors
        tracks = _in_memory(episodes)
        about = self._metadata(episodes, known_problems)
        about["tracks"] = [self._track(i, name, tracks[name]) for i, name in enumerate(tracks)]
        lazy = episodes._lazy
        if lazy is not None:
            about["lengths"] = self._array("lengths", lazy.lengths, shared=True)
        about["tasks"] = self._tasks(episodes.tasks)
        self._bytes(INFO, encoded(dict(episodes._about.info), "info"))
        self._bytes(ABOUT, encoded(about, "about"))
        self.offsets = next(iter(tracks.values()))._offsets

    def _metadata(self, episodes: Episodes, known_problems: int) -> dict[str, Any]:
        about = episodes._about
        problems = [
            [*self._path(each.path), each.place, self._text(each.text)]
            for each in list(about.problems)[known_problems:]
        ]
        return {
            "format": about.format,
            "source": None if episodes.source is None else self._path(episodes.source),
            "unit": about.unit,
            "rate": about.rate,
            "left_out": [[each.place, self._text(each.reason)] for each in about.left_out],
            "notes": list(about.notes),
            "problems": problems,
            "callables": [
                name for name in ("stored", "by_episode", "checks") if getattr(about, name)
            ],
            "pictures": list(about.pictures),
            "cameras": list(about.cameras),
        }

    def _track(self, index: int, name: str, track: Track) -> dict[str, Any]:
        fits = name.isprintable() and 0 < len(name.encode("utf-8", "replace")) <= _MOST_NAME
        base = f"tracks/{name}" if fits else f"track {index}"
        kinds: Kinds | None = track.__dict__.get(_KINDS)
        if kinds is not None and kinds.findings:
            raise NotStorable(f"the kinds of {name!r} have findings, which the cache cannot hold")
        return {
            "name": name,
            "values": self._array(f"{base}/values", track.values),
            "offsets": self._array(f"{base}/offsets", track._offsets, shared=True),
            "times": self._array(f"{base}/times", track.times, shared=True),
            "arrivals": self._array(f"{base}/arrivals", track.arrivals, shared=True),
            "unit": track.time_unit,
            "names": None if track.names is None else list(track.names),
            "channels": track.num_channels,
            "dtype": "" if track.values is None else str(track.values.dtype),
            "files": self._files(f"{base}/files", name, track.files),
            "label": track.__dict__.get(_LABEL),
            "declared": dict(declared_in(track)),
            "kinds": None if kinds is None else _of_kinds(kinds),
        }

    # ---- parts ----------------------------------------------------------------------------------

    def _array(self, name: str, array: Any, shared: bool = False) -> Any:
        """Store an array; return the name of its tensor, or its dtype and shape if it is empty."""
        if array is None:
            return None
        if type(array).__module__.partition(".")[0] in ("torch", "cupy", "jaxlib"):
            raise NotStorable(f"{name} is not an array of NumPy")
        array = on_host(array, name)
        if array.dtype.name not in DTYPES or not array.dtype.isnative:
            raise NotStorable(f"{name} has dtype {array.dtype}, which the cache cannot hold")
        if array.size == 0 or array.ndim == 0:
            return [array.dtype.name, list(array.shape)]
        if shared:
            for known, other in self._shared:
                if _is_same(array, other):
                    return known
            self._shared.append((name, array))
        self.arrays[name] = array
        return name

    def _bytes(self, name: str, content: bytes) -> None:
        import numpy as np

        self.arrays[name] = np.frombuffer(content, np.uint8)

    def _tasks(self, tasks: Sequence[Any] | None) -> Any:
        """Store tasks as a table of different ones, and an index per episode."""
        if tasks is None:
            return None
        import numpy as np

        table: dict[Any, int] = {}
        indices = np.fromiter(
            (table.setdefault(task, len(table)) for task in tasks), np.int32, len(tasks)
        )
        self._bytes(TASKS, encoded(list(table), "tasks"))
        return self._array("task of episode", indices)

    def _files(self, base: str, track: str, files: Sequence[Any] | None) -> Any:
        """Store the files of a track: a table of paths, an index, and the begin in the file."""
        if files is None:
            return None
        import numpy as np

        table: dict[str, int] = {}
        indices = np.full(len(files), _NOTHING, np.int32)
        begins = np.zeros(len(files), np.float64)
        is_pair = np.zeros(len(files), bool)
        for e, file in enumerate(files):
            pair = type(file) is tuple and len(file) == 2 and type(file[1]) is float
            path = file[0] if pair else file
            if path is None and not pair:
                continue
            if not isinstance(path, str):
                text = f"files of {track!r}: {file!r} is not a path, or a path and a time"
                raise NotStorable(text)
            indices[e] = table.setdefault(path, len(table))
            if pair:
                is_pair[e], begins[e] = True, file[1]
        paths = [self._path(path) for path in table]
        self._bytes(f"{base} paths", encoded(paths, "files"))
        return {
            "paths": f"{base} paths",
            "indices": self._array(f"{base} indices", indices),
            "begins": self._array(f"{base} begins", begins),
            "is_pair": self._array(f"{base} is_pair", is_pair),
        }

    def _path(self, path: str) -> tuple[bool, str]:
        """Return whether a path is below the data set, and its part below, or all of it."""
        if path == self._source:
            return True, ""
        below = path[len(self._source) :]
        if path.startswith(self._source) and (below[:1] == "/" or self._source.endswith("/")):
            return True, below.lstrip("/")
        return False, path

    def _text(self, text: str) -> str:
        """Refuse a text with the path of the data set, which may differ when it is opened again."""
        if "/" in self._source and self._source in text:
            raise NotStorable(f"{text!r} has the path of the data set")
        return text


def _in_memory(episodes: Episodes) -> Mapping[str, Track]:
    episodes.load()
    lazy = episodes._lazy
    return {name: episodes[name] for name in (episodes.tracks if lazy is None else lazy.infos)}


def _is_same(array: Any, other: Any) -> bool:
    """Whether arrays have equal bits."""
    import numpy as np

    if array is other:
        return True
    if array.dtype != other.dtype or array.shape != other.shape:
        return False
    if array.dtype.kind == "f":
        both = (np.ascontiguousarray(each) for each in (array, other))
        array, other = (each.view(f"i{each.itemsize}") for each in both)
    return bool(np.array_equal(array, other))


def _of_kinds(kinds: Kinds) -> dict[str, Any]:
    return {
        "groups": [asdict(group) for group in kinds.groups],
        "candidates": [asdict(group) for group in kinds.candidates],
    }


def kinds_from(stored: dict[str, Any]) -> Kinds:
    """Return stored kinds."""
    groups, candidates = (
        tuple(Group(**group) for group in stored[part]) for part in ("groups", "candidates")
    )
    return Kinds(groups, candidates)


def path_from(source: str, is_below: bool, path: str) -> str:
    """Return a stored path for the path by which the data set is opened now."""
    if not is_below:
        return path
    return os.path.join(source, path) if path else source


def problems_from(source: str, stored: Sequence[Any]) -> list[Problem]:
    return [
        Problem(path_from(source, is_below, path), place, text)
        for is_below, path, place, text in stored
    ]


def left_out_from(stored: Sequence[Any]) -> tuple[LeftOut, ...]:
    return tuple(LeftOut(place, reason) for place, reason in stored)
