"""The cameras of an alignment: which frame each row holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .. import Track, resample
from .._arguments.to_numpy import on_host
from .._episodes.episodes import Episodes
from .._printable import printable
from ._align_arrivals import (
    Seen,
    kept_samples,
    require_arrivals,
    require_delay,
    shifted,
    ticks,
)
from ._frames.held import HeldFrames
from ._recording import Recording
from ._time_units import per_second, unit_of

if TYPE_CHECKING:
    from ._frames.source import FrameSource

_SECOND = 10**9
_MOST = 2**63


def cameras_of(data: Recording | Episodes) -> Mapping[str, FrameSource]:
    """Return the cameras of data that are aligned."""
    return data.cameras if isinstance(data, Recording) else data._about.cameras


def with_cameras(
    made: Episodes,
    data: Recording | Episodes,
    seen: Seen,
    clock: str | None,
    unit: str | None,
    cache: Any = None,
) -> Episodes:
    """Return an alignment with the cameras of its data: each row holds the newest frame.

    The frame of each row is found when frames are needed. ``cache``: may store them; None: that of
    the data.
    """
    import numpy as np

    cameras = cameras_of(data)
    if not cameras:
        return made
    count = len(made)
    chosen = None if isinstance(data, Recording) else data._about.chosen
    episodes = np.arange(count) if chosen is None else np.asarray(chosen)
    lengths = made.lengths(next(iter(made.tracks)))
    held = {
        name: HeldFrames(source, _Finder(made, data, source, seen, clock, unit), lengths, episodes)
        for name, source in cameras.items()
    }
    about = dataclasses.replace(made._about, cameras=held)
    if isinstance(data, Episodes):
        about = dataclasses.replace(about, cache=data._about.cache, identity=data._about.identity)
    if cache is not None:
        about = dataclasses.replace(about, cache=cache)
    made._about = about
    return made


@dataclasses.dataclass(frozen=True)
class _Finder:
    """Finds the frame of each row of an episode."""

    made: Episodes
    data: Recording | Episodes
    source: FrameSource
    seen: Seen
    clock: str | None
    unit: str | None

    def with_max_age(self, seconds: float) -> _Finder:
        """Return a finder for which older frames do not exist."""
        return dataclasses.replace(self, seen=dataclasses.replace(self.seen, max_age=seconds))

    def known(self, count: int) -> _Known:
        """Return a finder that holds the times of all episodes, for a pickle."""
        times = tuple(self.times(episode) for episode in range(count))
        return _Known(self.source.name, times, self.seen)

    def __call__(self, episode: int) -> Any:
        return newest(self.source.name, *self.times(episode), self.seen)

    def times(self, episode: int) -> tuple[Any, Any, Any]:
        """Return times of rows, and stamps and arrivals of frames, of an episode."""
        track = next(iter(self.made.tracks.values()))
        unit = unit_of(track) or self.unit
        queries = _of_episode(track, track.times, episode)
        if isinstance(self.data, Recording):
            return self._of_recording(queries, unit)
        return self._of_episodes(queries, unit, episode)

    def _of_recording(self, queries: Any, unit: str | None) -> tuple[Any, Any, Any]:
        """Return times of rows, and stamps and arrivals of frames, in one dtype."""
        logged = getattr(self.source, "times", None)
        if logged is None:
            raise ValueError(f"{printable(self.source.name)}: its frames have no times")
        headers = getattr(self.source, "stamps", None)
        stamps = logged
        if headers is not None and self._uses_headers(headers):
            stamps = headers
        name = self.source.name
        queries, times = _in_one_unit(name, queries, unit, stamps)
        if not self.seen.is_limited(name):
            return queries, times, None
        if headers is None:
            require_arrivals(name, "its pictures have only one time")
        return queries, times, _in_one_unit(name, queries, "ns", logged)[1]

    def _uses_headers(self, headers: Any) -> bool:
        """Whether the clock of the rows is that of headers, and the frames have it."""
        assert isinstance(self.data, Recording)
        clock = self.clock
        if clock is None:
            has = bool((headers > 0).any())
            clock = ("header" if has else "log") if self.seen.arrival else self.data.clock()
        return clock == "header" and bool((headers > 0).any())

    def _of_episodes(self, queries: Any, unit: str | None, episode: int) -> tuple[Any, Any, Any]:
        """Return the same: frames have the times of the rows of a track."""
        import numpy as np

        assert isinstance(self.data, Episodes)
        name = self.source.name
        chosen = self.data._about.chosen
        own = episode if chosen is None else int(chosen[episode])
        count = int(self.source.lengths[own])
        track = self._track(episode, count)
        stamps = _of_episode(track, track.times, episode)
        other = unit_of(track) or self.unit
        if stamps.dtype.kind != queries.dtype.kind or other != unit:
            raise ValueError(
                f"{printable(name)}: its frames have times in {other or stamps.dtype}, but the "
                f"rows have times in {unit or queries.dtype}"
            )
        arrivals = None
        if self.seen.is_limited(name):
            if track.arrivals is None:
                require_arrivals(name, "its rows have no arrivals")
            arrivals = _of_episode(track, track.arrivals, episode)
        dtype = np.dtype(f"timedelta64[{unit}]") if unit and stamps.dtype.kind == "i" else None
        viewed = [None if a is None or dtype is None else a.view(dtype)
                  for a in (queries, stamps, arrivals)]  # fmt: skip
        return (queries, stamps, arrivals) if dtype is None else tuple(viewed)  # type: ignore[return-value]

    def _track(self, episode: int, count: int) -> Track:
        """Return a track with as many rows as the camera has frames."""
        assert isinstance(self.data, Episodes)
        tracks = self.data.tracks
        if self.source.name in tracks and self._fits(self.source.name, episode, count):
            return tracks[self.source.name]
        names = [name for name in tracks if self._fits(name, episode, count)]
        for name in names[1:]:
            times, others = (
                _of_episode(tracks[each], tracks[each].times, episode) for each in (names[0], name)
            )
            if times.dtype != others.dtype or (times != others).any():
                raise ValueError(
                    f"{printable(self.source.name)}: has {count} frames in episode {episode}, as "
                    f"many as {printable(names[0])} and {printable(name)} have rows there, but "
                    "their times differ; select only tracks with the times of the frames"
                )
        if names:
            return tracks[names[0]]
        text = f"{printable(self.source.name)}: has {count} frames in episode {episode}, but no "
        raise ValueError(f"{text}track with times has as many rows")

    def _fits(self, name: str, episode: int, count: int) -> bool:
        assert isinstance(self.data, Episodes)
        has_times = self.data.tracks[name].times is not None
        return has_times and int(self.data.lengths(name)[episode]) == count


@dataclasses.dataclass(frozen=True)
class _Known:
    """Finds the frame of each row of an episode in times that it holds."""

    name: str
    times: tuple[tuple[Any, Any, Any], ...]
    seen: Seen

    def with_max_age(self, seconds: float) -> _Known:
        """Return a finder for which older frames do not exist."""
        return dataclasses.replace(self, seen=dataclasses.replace(self.seen, max_age=seconds))

    def known(self, count: int) -> _Known:
        return self

    def __call__(self, episode: int) -> Any:
        return newest(self.name, *self.times[episode], self.seen)


def _of_episode(track: Track, times: Any, episode: int) -> Any:
    cuts = on_host(track.episode_offsets)
    return on_host(times)[int(cuts[episode]) : int(cuts[episode + 1])]


def _in_one_unit(name: str, queries: Any, unit: str | None, times: Any) -> tuple[Any, Any]:
    """Return the times of rows, and times in nanoseconds, in one dtype and unit."""
    import numpy as np

    if queries.dtype.kind == "m":
        return queries, times.view("timedelta64[ns]")
    if queries.dtype.kind == "f":  # seconds: the nearest float, as a reader of the text has it
        seconds = np.array([time / _SECOND for time in times.tolist()], np.float64)
        return queries.astype(np.float64), seconds
    if unit is None:
        raise ValueError(
            f"{printable(name)}: its frames have times in ns, but the unit of the other times is "
            "not known; pass unit="
        )
    factor = round(_SECOND / per_second(unit))
    if len(queries) and max(abs(int(queries[0])), abs(int(queries[-1]))) * factor >= _MOST:
        raise ValueError(f"{printable(name)}: a time of a row is beyond 2^63 ns")
    return (queries * factor).view("timedelta64[ns]"), times.view("timedelta64[ns]")


def newest(name: str, queries: Any, stamps: Any, arrivals: Any, seen: Seen) -> Any:
    """Return the newest frame that existed at each time, int64 [n]; -1: none, or too old.

    It is the last one in the order of stamps, of those with a stamp up to the time of the row, and
    with ``arrivals``, of those that had arrived then.
    """
    import numpy as np

    offset = ticks(seen.offset(name), stamps.dtype)
    options: dict[str, Any] = {}
    if arrivals is not None:
        require_delay(name, shifted(stamps, offset), arrivals)
        kept = kept_samples(stamps, arrivals, seen.bound(name))
        order, stamps = kept.rows, kept.times
        options = {"arrivals": kept.arrivals, "lag": ticks(seen.lag, stamps.dtype)}
    else:
        order = np.argsort(stamps, kind="stable")
        stamps = stamps[order]
    if not len(order) or not len(queries):
        return np.full(len(queries), -1, np.int64)
    numbers, there = resample(
        np.arange(len(order), dtype=np.float64)[:, None],
        shifted(stamps, offset),
        queries,
        method="previous",
        causal=True,
        max_age=ticks(seen.age(name), stamps.dtype),
        return_valid=True,
        **options,
    )
    found = np.full(len(queries), -1, np.int64)
    there = np.asarray(there, bool).reshape(-1)
    found[there] = order[np.asarray(numbers)[there, 0].astype(np.int64)]
    return found
