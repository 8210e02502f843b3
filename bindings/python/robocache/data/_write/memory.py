"""Episodes in memory as a data set for the writers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..._arguments.to_numpy import on_host
from ..._episodes.episodes import Episodes
from ..._printable import printable
from .._errors import LeftOut
from .._formats.lerobot.write import nominal_rate
from .._time_units import per_second, unit_of
from .dataset import Feature, even_times, require_even

_EVEN = ("lerobot", "lerobot-v2.1", "rlds", "robomimic")  # formats without times


class EpisodesDataSet:
    """The tracks with values (``_write.dataset.DataSet``); there are no pictures."""

    def __init__(self, episodes: Episodes, what: str) -> None:
        import numpy as np

        self.left_out: list[LeftOut] = []
        self.tracks: dict[str, Any] = {}
        self.features: dict[str, Feature] = {}
        for name, track in episodes.tracks.items():
            if track.values is None:
                text = "frames of a video, which is not copied; data.convert copies it"
                self.left_out.append(LeftOut(name, text))
                continue
            self.tracks[name] = track
            dtype, shape = str(on_host(track.values).dtype), (track.num_channels,)
            self.features[name] = Feature(name, dtype, shape, track.names)
        if not self.tracks:
            raise ValueError(f"format: {what!r} needs a track with values")
        first_name, first = next(iter(self.tracks.items()))
        for name, track in self.tracks.items():
            if not np.array_equal(track.lengths, first.lengths):
                raise ValueError(
                    f"format: {what!r} has one clock, but {printable(name)} has other rows than "
                    f"{printable(first_name)}; align them, or use 'npz'"
                )
        self.lengths = first.lengths.tolist()
        self.offsets = on_host(first.episode_offsets).tolist()
        self.tasks = [_words(task) for task in episodes.tasks or [None] * len(episodes)]
        self.source = episodes.source or ""
        self.rate = rate_of(episodes, first)
        self.timed = next((t for t in self.tracks.values() if t.times is not None), None)
        self.unit = episodes.unit
        if what in _EVEN:
            if self.rate is None:
                raise ValueError(f"format: {what!r} needs a rate: open the data set with rate=")
            for e in range(len(episodes)) if self.timed is not None else ():
                require_even(self.times(e), self.rate, f"episode {e}")

    def rows(self, episode: int) -> dict[str, Any]:
        begin, end = self.offsets[episode], self.offsets[episode + 1]
        return {name: on_host(track.values)[begin:end] for name, track in self.tracks.items()}

    def times(self, episode: int) -> Any:
        begin, end = self.offsets[episode], self.offsets[episode + 1]
        if self.timed is None:
            return even_times(float(self.rate or 1), end - begin)
        return in_seconds_of(self.timed, self.unit, begin, end)

    def about(self, episode: int) -> Mapping[str, Any]:
        return {"source": self.source, "episode": episode}

    def video(self, episode: int, camera: str) -> str | None:
        return None

    def pictures(self, episode: int, camera: str) -> Iterator[bytes]:
        return iter(())

    def frames(self, episode: int, camera: str) -> Iterator[Any]:
        return iter(())

    def levels(self, episode: int, camera: str) -> Any:
        return None

    def sampled(self, episode: int) -> int:
        return 0


def rate_of(episodes: Episodes, track: Any) -> float | None:
    """Return the rows per second: as stated, else as measured, without the error of stamps."""
    if episodes.rate is not None:
        return float(episodes.rate)
    if track.times is None:
        return None
    ticks = 1.0 if track.time_unit is not None else ticks_of(track, episodes.unit)
    measured = float(track.rate) * ticks
    return nominal_rate(measured) if measured == measured else None


def ticks_of(track: Any, unit: str | None) -> float:
    """Return the ticks per second of the times of a track; 1 of floats and of unknown units."""
    if on_host(track.times).dtype.kind == "f":
        return 1.0
    return per_second(unit_of(track) or unit)


def in_seconds_of(track: Any, unit: str | None, begin: int, end: int) -> Any:
    """Return some times of a track in seconds, float64 [n]."""
    import numpy as np

    return on_host(track.times)[begin:end].astype(np.float64) / ticks_of(track, unit)


def _words(task: Any) -> tuple[str, ...]:
    if isinstance(task, tuple):
        return task
    return () if task is None else (task,)
