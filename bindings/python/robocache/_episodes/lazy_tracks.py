"""Tracks that are read from disk when they are first used, and their metadata."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable

from .track import Track

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .._statistics.result import StatisticsResult
    from ..data._errors import LeftOut, Problem
    from ..data._findings import Finding
    from ..data._frames.source import FrameSource


@dataclass(frozen=True)
class About:
    """Metadata of a data set, without its tracks."""

    format: str = "episodes in memory"
    unit: str | None = None  # of times that have none of their own
    rate: float | None = None  # frames per second according to the data set
    info: Mapping[str, Any] = field(default_factory=dict)  # from its files: the robot, ...
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()  # of an alignment
    problems: Sequence[Problem] = ()  # of a reader, which adds to them while it reads
    stored: Callable[[], Mapping[str, Any]] | None = None  # reads the statistics in the data set
    # Reads the statistics [E,D] that the data set has of a track in each episode.
    by_episode: Callable[[str], StatisticsResult | None] | None = None
    checks: Callable[[Any, Mapping[str, Any]], list[Finding]] | None = None  # of the format
    # By camera: yields the PNG or JPEG files of an episode, given its index in the data set.
    pictures: Mapping[str, Callable[[int], Iterator[bytes]]] = field(default_factory=dict)
    # By camera: its frames, for the episodes of the data set.
    cameras: Mapping[str, FrameSource] = field(default_factory=dict)
    chosen: Any = None  # indices of selected episodes in the data set; None: all
    cache: Any = None  # the robocache.Cache with which the data set was opened
    identity: str = "stat"  # how its files are recognized


@dataclass(frozen=True)
class TrackInfo:
    """Metadata of a track, available before it is read."""

    names: tuple[str, ...] | None  #: names of the channels
    dtype: str  #: dtype of the values; "" without values, such as for a video
    channels: int


class LazyTracks(Mapping[str, Track]):
    """Tracks that are read when they are first used: all at once, or one by one."""

    def __init__(
        self,
        infos: Mapping[str, TrackInfo],
        lengths: NDArray[np.int64],
        read: Callable[[Collection[str], NDArray[np.int64]], dict[str, Track]],
        chosen: NDArray[np.int64] | None = None,
        one_by_one: bool = False,
        path: str = "",
    ) -> None:
        import numpy as np

        self.path = path
        self.infos = dict(infos)
        self.all_lengths = lengths
        self.chosen = np.arange(len(lengths)) if chosen is None else chosen
        self.read = read
        self.one_by_one = one_by_one
        self.tracks: dict[str, Track] = {}
        self.kinds: Mapping[str, Mapping[str, str]] = {}  # declared, by track and channels

    @property
    def lengths(self) -> NDArray[np.int64]:
        return self.all_lengths[self.chosen]

    def lengths_of(self, name: str) -> NDArray[np.int64]:
        """Return the lengths of a track, which may differ from the lengths of others."""
        return self.lengths

    def load(self, names: Collection[str] | None = None) -> dict[str, Track]:
        names = self.infos if names is None else names
        unread = tuple(name for name in names if name not in self.tracks)
        if unread:
            from ..data._errors import reading

            with reading(self.path):
                read = self.read(unread, self.chosen)
            for name, track in read.items():
                self.tracks[name] = self._labelled(track, name)
        return self.tracks

    def _labelled(self, track: Track, name: str) -> Track:
        """Return a track with its name and its declared kinds."""
        from ..data._kinds.tracks import labelled

        return labelled(track, name, self.kinds.get(name))

    @property
    def is_loaded(self) -> bool:
        return len(self.tracks) == len(self.infos)

    def select(self, chosen: NDArray[np.int64]) -> LazyTracks:
        return self._with(self.infos, self.chosen[chosen])

    def only(self, names: Collection[str]) -> LazyTracks:
        return self._with({name: self.infos[name] for name in names}, self.chosen)

    def _with(self, infos: Mapping[str, TrackInfo], chosen: NDArray[np.int64]) -> LazyTracks:
        made = LazyTracks(infos, self.all_lengths, self.read, chosen, self.one_by_one, self.path)
        made.kinds = {name: kinds for name, kinds in self.kinds.items() if name in made.infos}
        return made

    def __getitem__(self, name: str) -> Track:
        if name not in self.infos:
            raise KeyError(name)
        return self.load([name] if self.one_by_one else None)[name]

    def __contains__(self, name: object) -> bool:
        return name in self.infos

    def __iter__(self) -> Iterator[str]:
        return iter(self.infos)

    def __len__(self) -> int:
        return len(self.infos)
