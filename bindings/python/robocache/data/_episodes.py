"""Episodes of a data set on disk, which are read when their tracks are asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Callable

from .. import Episodes as InMemory
from .. import Track
from .._text_table import text_table
from ._errors import LeftOut, Problem, reading, some
from ._kinds.declared import columns_of, require_streams
from ._kinds.tracks import labelled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .. import Report, WindowSpec
    from ._checks.statistics import EpisodeQuantiles
    from ._findings import Finding


@dataclass(frozen=True)
class About:
    """What is known of a data set besides its tracks."""

    format: str = "episodes in memory"
    unit: str | None = None  # of times that do not tell it
    rate: float | None = None  # frames a second, as the data set says
    info: Mapping[str, Any] = field(default_factory=dict)  # what its files tell: the robot, ...
    left_out: tuple[LeftOut, ...] = ()
    notes: tuple[str, ...] = ()  # of an alignment
    problems: Sequence[Problem] = ()  # of a reader: it adds to them while it reads
    stored: Callable[[], Mapping[str, Any]] | None = None  # reads the statistics that it holds
    by_episode: Callable[[str], EpisodeQuantiles | None] | None = None  # quantiles, of a track
    checks: Callable[[Any, Mapping[str, Any]], list[Finding]] | None = None  # of the format
    chosen: Any = None  # numbers of the episodes in the data set, of a selection


@dataclass(frozen=True)
class TrackInfo:
    """What is known of a track before it is read."""

    names: tuple[str, ...] | None  #: of the channels
    dtype: str  #: of the values; "" where they are elsewhere, as frames of a video are
    channels: int


class OnDisk(Mapping[str, Track]):
    """Tracks that are read when they are asked for: all at once, or one by one."""

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

    def load(self, names: Collection[str] | None = None) -> dict[str, Track]:
        names = self.infos if names is None else names
        unread = tuple(name for name in names if name not in self.tracks)
        if unread:
            with reading(self.path):
                read = self.read(unread, self.chosen)
            for name, track in read.items():
                self.tracks[name] = labelled(track, name, self.kinds.get(name))
        return self.tracks

    @property
    def is_loaded(self) -> bool:
        return len(self.tracks) == len(self.infos)

    def select(self, chosen: NDArray[np.int64]) -> OnDisk:
        return self._with(self.infos, self.chosen[chosen])

    def only(self, names: Collection[str]) -> OnDisk:
        return self._with({name: self.infos[name] for name in names}, self.chosen)

    def _with(self, infos: Mapping[str, TrackInfo], chosen: NDArray[np.int64]) -> OnDisk:
        made = OnDisk(infos, self.all_lengths, self.read, chosen, self.one_by_one, self.path)
        made.kinds = {name: of for name, of in self.kinds.items() if name in made.infos}
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


class Episodes(InMemory):
    """:class:`robocache.Episodes` of a data set: with its report, statistics, alignment and saving.

    What :func:`robocache.data.open` gives reads its data when a track is first asked for, and then
    keeps them: :meth:`select` before that, for some episodes or tracks, reads those alone. What
    ``to`` gives is on a device, ready for windows.
    """

    _about = About()

    @classmethod
    def made(
        cls,
        tracks: Mapping[str, Track] | OnDisk,
        *,
        tasks: Sequence[Any] | None = None,
        source: str | None = None,
        about: About | None = None,
    ) -> Episodes:
        """Of tracks in memory or on disk."""
        if isinstance(tracks, OnDisk):
            made = cls.__new__(cls)
            tracks.path = source or ""
            made._tracks = tracks  # type: ignore[assignment]
            made._tasks = None if tasks is None else tuple(tasks)
            made._source = source
        else:
            made = cls(tracks, tasks=tasks, source=source)
        if about is not None:
            made._about = about
        return made

    @classmethod
    def of(cls, episodes: InMemory) -> Episodes:
        """The same with the methods of this class."""
        return cls.made(dict(episodes.tracks), tasks=episodes.tasks, source=episodes.source)

    # ---- what is known without reading ----------------------------------------------------------

    @property
    def format(self) -> str:
        """Such as "LeRobot v3.0"."""
        return self._about.format

    @property
    def rate(self) -> float | None:
        """Frames a second, as the data set says; None where it does not."""
        return self._about.rate

    @property
    def unit(self) -> str | None:
        """The unit of times that do not tell it, such as "s"; None where it is not known."""
        return self._about.unit

    @property
    def info(self) -> Mapping[str, Any]:
        """What else the data set tells: its robot, its attributes."""
        return MappingProxyType(dict(self._about.info))

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """What the data set holds and its tracks do not, with the reason."""
        return self._about.left_out

    @property
    def notes(self) -> tuple[str, ...]:
        """What an alignment left out of the streams, since others begin late or end early."""
        return self._about.notes

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Damage that was read around, of what was read so far."""
        return tuple(self._about.problems)

    @property
    def is_loaded(self) -> bool:
        """Whether the tracks are in memory."""
        return self._on_disk is None or self._on_disk.is_loaded

    @property
    def num_episodes(self) -> int:
        """E."""
        return super().num_episodes if self._on_disk is None else len(self._on_disk.chosen)

    def lengths(self, track: str) -> NDArray[np.int64]:
        """How many rows of a track each episode has, int64 [E]; of what is not read as told."""
        if self._on_disk is None or self.is_loaded:
            return super().lengths(track)
        if track not in self:
            self[track]  # the error
        return self._on_disk.lengths

    def track_info(self, name: str) -> TrackInfo:
        """The channels and the dtype of a track, without reading it."""
        if self._on_disk is not None and name in self._on_disk.infos:
            return self._on_disk.infos[name]
        track = self[name]
        dtype = "" if track.values is None else str(track.values.dtype)
        return TrackInfo(track.names, dtype, track.num_channels)

    def stored_statistics(self) -> Mapping[str, Any]:
        """The statistics that the data set holds: :class:`robocache.StatisticsResult` by track.

        Empty where it holds none. They may be wrong: :func:`robocache.data.checks.check` compares
        them with those of the data.
        """
        return {} if self._about.stored is None else self._about.stored()

    def with_kinds(self, kinds: Mapping[str, Mapping[str, str]]) -> Episodes:
        """The same with kinds of channels, as ``open`` takes them."""
        require_streams(kinds, self._tracks, "track")
        for name, of in kinds.items():
            info = self.track_info(name)
            for channels, kind in of.items():
                where = f"kinds: {name}:{channels}={kind}"
                columns_of(channels, info.names, info.channels, where, name)
        tracks: Any
        if self._on_disk is not None and not self.is_loaded:
            tracks = self._on_disk.only(list(self._on_disk.infos))
            tracks.kinds = {**self._on_disk.kinds, **kinds}
        else:
            tracks = {name: labelled(t, name, kinds.get(name)) for name, t in self.tracks.items()}
        return self.made(tracks, tasks=self._tasks, source=self._source, about=self._about)

    def _stored_by_episode(self, track: str) -> EpisodeQuantiles | None:
        """The quantiles of each episode that the data set holds of a track."""
        return None if self._about.by_episode is None else self._about.by_episode(track)

    def _checked(self, stored: Mapping[str, Any]) -> list[Finding]:
        """What only the reader of the format can find; ``stored``: the statistics that it holds."""
        return [] if self._about.checks is None else self._about.checks(self._about.chosen, stored)

    # ---- reading and choosing -------------------------------------------------------------------

    def load(self) -> Episodes:
        """The same, read."""
        if self._on_disk is not None:
            self._on_disk.load()
        return self

    def select(self, indices: Any = None, *, tracks: Collection[str] | None = None) -> Episodes:
        """Some of the episodes, in this order, and some of the tracks.

        Parameters
        ----------
        indices
            A list or array of their numbers, a slice, or a bool array [E]; None: all.
        tracks
            Names; None: all.

        Raises
        ------
        IndexError
            There is no episode of such a number.
        KeyError
            There is no such track.
        TypeError
            They are no numbers.
        """
        chosen = _chosen(indices, self.num_episodes)
        names = tuple(self._tracks) if tracks is None else tuple(tracks)
        for name in names:
            if name not in self:
                raise KeyError(f"tracks: has {name!r}, expected {some(tuple(self._tracks))}")
        tasks = None if self._tasks is None else [self._tasks[e] for e in chosen.tolist()]
        made: Any
        if self._on_disk is not None and not self.is_loaded:
            made = self._on_disk.only(names).select(chosen)
        else:
            made = {name: self[name] for name in names}
            if indices is not None:
                made = {name: track.select(chosen) for name, track in made.items()}
        about = self._about
        if indices is not None:
            kept = chosen if about.chosen is None else about.chosen[chosen]
            about = replace(about, stored=None, by_episode=None, chosen=kept)
        return self.made(made, tasks=tasks, source=self._source, about=about)

    def to(self, device: Any) -> Episodes:
        """The same on a device, as :meth:`robocache.Episodes.to` does."""
        moved = super().to(device)
        return self.made(
            dict(moved.tracks), tasks=moved.tasks, source=moved.source, about=self._about
        )

    # ---- what is done with them -----------------------------------------------------------------

    def report(self, unit: str | None = None) -> Report:
        """Rates, jitter, gaps and repeats of all tracks with times: :func:`robocache.report`.

        Nothing is a gap between episodes. ``unit`` is that of times that do not tell it.
        """
        from ._episode_methods import report_of

        return report_of(self, unit)

    def statistics(self, tracks: Collection[str] | None = None, **options: Any) -> dict[str, Any]:
        """Exact statistics by track: see :func:`robocache.data.statistics`."""
        from ._episode_methods import statistics

        return statistics(self, tracks, **options)

    def windows(
        self, spec: WindowSpec, which: Any = None, anchors: Any = None, **options: Any
    ) -> dict[str, tuple[Any, Any]]:
        """Training samples cut out of the episodes, in one call: :meth:`robocache.WindowSpec.cut`.

        Parameters
        ----------
        spec
            :class:`robocache.WindowSpec`, whose windows are of these tracks.
        which, anchors
            The episode of each sample, and its row there of the anchor's track; None: all samples,
            in order, which many windows of many rows make large. Shuffled batches are
            ``robocache.torch.WindowLoader``'s.
        options
            As of :meth:`robocache.WindowSpec.cut`.

        Returns
        -------
        dict
            For each window (values [B,O,D'], valid [B,O]).
        """
        if (which is None) != (anchors is None):
            raise ValueError("anchors: go with which, expected both or none")
        if which is None:
            which, anchors = spec.samples(self)
        return spec.cut(self, which, anchors, **options)

    def align(self, rate: Any, **options: Any) -> Episodes:
        """All tracks of each episode on one clock: see :func:`robocache.data.align`."""
        from ._align import align

        return align(self, rate, **options)

    def save(
        self, path: Any, format: str = "npz", *, overwrite: bool = False
    ) -> tuple[LeftOut, ...]:
        """Write every value and stamp: see :func:`robocache.data.save`."""
        from ._save import save

        return save(self, path, format, overwrite=overwrite)

    @property
    def _on_disk(self) -> OnDisk | None:
        return self._tracks if isinstance(self._tracks, OnDisk) else None

    def __repr__(self) -> str:
        if self.is_loaded:
            return super().__repr__()
        rows = [["track", "channels", "dtype"]]
        for name in self._tracks:
            told = self.track_info(name)
            rows.append([name, str(told.channels or "-"), told.dtype or "-"])
        assert self._on_disk is not None
        total = int(self._on_disk.lengths.sum())
        source = "" if self._source is None else f" of {self._source}"
        rate = "" if self.rate is None else f" at {self.rate:g} Hz"
        head = f"{len(self)} episodes{source}, {self.format}, {total} frames{rate}, not read yet"
        return f"{head}\n{text_table(rows)}"


def _chosen(indices: Any, count: int) -> Any:
    """Numbers of episodes, of all that NumPy takes for them."""
    import numpy as np

    numbers = np.arange(count)
    if indices is None:
        return numbers
    asked = indices if isinstance(indices, slice) else np.asarray(indices)
    if not isinstance(asked, slice):
        asked = asked.astype(np.int64) if asked.size == 0 else asked
        if asked.dtype.kind not in "iub" or asked.ndim > 1:
            raise TypeError(f"indices: is {indices!r}, expected numbers of episodes")
    try:
        return np.atleast_1d(numbers[asked])
    except IndexError as error:
        raise IndexError(f"indices: there are {count} episodes: {error}") from None
