"""Tracks whose arrays are views of an entry."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ... import Track
from ..._cache.cache import Cache
from ..._cache.store import Entry
from ..._cache.values import decoded
from ..._episodes.lazy_tracks import LazyTracks, TrackInfo
from .._kinds.tracks import labelled
from .packing import ABOUT, INFO, TASKS, kinds_from, path_from


class Stored:
    """An open entry of episodes. It is opened again where it is unpickled."""

    def __init__(self, cache: Cache, key: bytes, entry: Entry, source: str) -> None:
        self.cache, self.key, self.entry, self.source = cache, key, entry, source
        self.about: dict[str, Any] = decoded(entry.array(ABOUT))
        self.tracks = {stored["name"]: stored for stored in self.about["tracks"]}

    def array(self, stored: Any) -> Any:
        """Return an array by what the metadata say of it."""
        import numpy as np

        if stored is None:
            return None
        if isinstance(stored, str):
            return self.entry.array(stored)
        dtype, shape = stored
        return np.zeros(shape, dtype)

    def tasks(self) -> tuple[Any, ...] | None:
        """Return the task of each episode, or None."""
        import numpy as np

        indices = self.array(self.about["tasks"])
        if indices is None:
            return None
        tasks = decoded(self.entry.array(TASKS))
        table = np.empty(len(tasks), object)
        for i, task in enumerate(tasks):
            table[i] = task
        return tuple(table[indices].tolist())

    def files(self, stored: Any) -> tuple[Any, ...] | None:
        """Return the files of a track, or None."""
        if stored is None:
            return None
        paths = decoded(self.entry.array(stored["paths"]))
        names = [path_from(self.source, is_below, path) for is_below, path in paths]
        columns = (self.array(stored[name]).tolist() for name in ("indices", "begins", "is_pair"))
        return tuple(
            None if i < 0 else (names[i], begin) if is_pair else names[i]
            for i, begin, is_pair in zip(*columns)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _opened_again, (self.cache, self.key, self.source)


def _opened_again(cache: Cache, key: bytes, source: str) -> Stored:
    entry = cache._find(key)
    if entry is None:
        raise FileNotFoundError(
            f"{cache.path}: has no entry {key.hex()}, which the pickled episodes of {source} are "
            "in. Open the data set again"
        )
    return Stored(cache, key, entry, source)


class StoredInfo(Mapping[str, Any]):
    """Metadata of a data set that are read when they are used."""

    def __init__(self, stored: Stored) -> None:
        self._stored = stored
        self._read: dict[str, Any] | None = None

    @property
    def _all(self) -> dict[str, Any]:
        if self._read is None:
            self._read = decoded(self._stored.entry.array(INFO))
        return self._read

    def __getitem__(self, name: str) -> Any:
        return self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    def __reduce__(self) -> tuple[Any, ...]:
        return StoredInfo, (self._stored,)


class StoredTracks(LazyTracks):
    """The tracks of an entry."""

    def __init__(
        self,
        stored: Stored,
        infos: Mapping[str, TrackInfo] | None = None,
        chosen: Any = None,
    ) -> None:
        self.stored = stored
        if infos is None:
            infos = {
                name: TrackInfo(
                    None if track["names"] is None else tuple(track["names"]),
                    track["dtype"],
                    track["channels"],
                )
                for name, track in stored.tracks.items()
            }
        lengths = stored.array(stored.about["lengths"]) if "lengths" in stored.about else None
        if lengths is None:
            lengths = self._lengths_in(next(iter(stored.tracks)))
        super().__init__(infos, lengths, self._read, chosen, one_by_one=True, path=stored.source)

    def lengths_of(self, name: str) -> Any:
        if "lengths" in self.stored.about:
            return self.lengths
        return self._lengths_in(name)[self.chosen]

    def _lengths_in(self, name: str) -> Any:
        import numpy as np

        return np.diff(self.stored.array(self.stored.tracks[name]["offsets"]))

    def _with(self, infos: Mapping[str, TrackInfo], chosen: Any) -> StoredTracks:
        made = StoredTracks(self.stored, infos, chosen)
        made.path = self.path
        made.kinds = {name: kinds for name, kinds in self.kinds.items() if name in made.infos}
        return made

    def _labelled(self, track: Track, name: str) -> Track:
        if self.stored.tracks[name]["label"] is None and name not in self.kinds:
            return track
        return labelled(track, name, self.kinds.get(name))

    def _read(self, names: Collection[str], chosen: Any) -> dict[str, Track]:
        return {name: self._track(name, chosen) for name in names}

    def _track(self, name: str, chosen: Any) -> Track:
        """Return a track of the chosen episodes: views if they follow each other, else a copy."""
        import numpy as np

        track, stored = self.stored.tracks[name], self.stored
        offsets = stored.array(track["offsets"])
        count = len(offsets) - 1
        begin = int(chosen[0]) if len(chosen) else 0
        in_order = np.array_equal(chosen, np.arange(begin, begin + len(chosen)))
        rows = slice(None)
        if in_order:
            rows = slice(int(offsets[begin]), int(offsets[begin + len(chosen)]))
        values: Any
        times: Any
        arrivals: Any
        values, times, arrivals = (
            None if (array := stored.array(track[part])) is None else array[rows]
            for part in ("values", "times", "arrivals")
        )
        if track["unit"] is not None:
            times = times.view(track["unit"])
            arrivals = None if arrivals is None else arrivals.view(track["unit"])
        files = stored.files(track["files"])
        if in_order and (begin > 0 or len(chosen) < count):
            offsets = offsets[begin : begin + len(chosen) + 1] - offsets[begin]
            files = None if files is None else files[begin : begin + len(chosen)]
        made = Track(
            values, offsets, times=times, arrivals=arrivals, names=track["names"], files=files
        )
        kinds = None if track["kinds"] is None else kinds_from(track["kinds"])
        facts = {"_label": track["label"], "_declared": track["declared"], "_kinds": kinds}
        made = made._with(**{name: fact for name, fact in facts.items() if fact})
        return made if in_order else made.select(chosen)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (self.stored, self.infos, self.chosen, self.kinds)


def _unpickled(stored: Stored, infos: Any, chosen: Any, kinds: Any) -> StoredTracks:
    made = StoredTracks(stored, infos, chosen)
    made.kinds = kinds
    return made
