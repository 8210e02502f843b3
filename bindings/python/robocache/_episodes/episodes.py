"""Episodes of a data set. Readers of recordings return them, and windows are cut from them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .._arguments.options import names_in
from .._cache.provenance import Provenance, following
from .._library.errors import shown
from .._operations.stream import array_text
from .._printable import kind_of, plural
from .._suggestions import did_you_mean
from .._text_table import text_table
from .lazy_tracks import About, LazyTracks, TrackInfo
from .track import Track
from .validation import chosen_episodes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .._cache.cache import Cache
    from .._statistics.result import StatisticsResult
    from .._timing.report import Report
    from .._windows.spec import WindowSpec
    from ..data._errors import LeftOut, Problem
    from ..data._findings import Finding
    from ..data._frames.source import FrameSource

_ROWS_AT_ONCE = 20_000  # of episodes that are read together while iterating

# Methods that need robocache.data import it when they are called, so importing robocache is fast.


class Episodes:
    """E episodes of a robot: named tracks, each with its own rate, and tasks.

    ``len(episodes)`` is E, ``episodes["state"]`` is a track, ``for episode in episodes`` yields
    :class:`Episodes` with one each, and ``print`` shows a table. Episodes
    are created from tracks in memory, or by :func:`robocache.data.open`. The latter reads a track
    from disk when it is first used, and keeps it; call :meth:`select` before that to read only the
    selected episodes and tracks. Episodes are immutable, and can be pickled, copied and compared.

    Parameters
    ----------
    tracks
        One or more :class:`Track` objects by name, all with the same number of episodes.
    tasks : string, sequence of E, or None
        The task of all episodes, or of each one: a string, several strings, or None.
    source
        Description of the origin of the data, shown by ``print``.

    Raises
    ------
    ValueError
        Tracks differ in their number of episodes, or there are no tracks.
    TypeError
        An argument has a wrong type.

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> arm = rbc.Track(np.zeros((5, 7), np.float32), [0, 3, 5], times=[0.0, 0.1, 0.2, 0.0, 0.1])
    >>> episodes = rbc.Episodes({"arm": arm}, tasks=["open the door", "close it"])
    >>> print(episodes)
    2 episodes, 204 bytes
    track  rows  lengths  channels    dtype    times  rate
    arm       5   2 to 3         7  float32  float64    10
    >>> episodes.select([1])["arm"].num_rows
    2
    >>> [(episode.tasks, episode["arm"].num_rows) for episode in episodes]
    [(('open the door',), 3), (('close it',), 2)]
    """

    _about = About()
    _provenance: Provenance | None = None  # what they were made of, if they come from a cache

    def __init__(
        self,
        tracks: Mapping[str, Track],
        *,
        tasks: str | Sequence[Any] | None = None,
        source: str | None = None,
    ) -> None:
        self._tracks: Mapping[str, Track] = _checked_tracks(tracks)
        self._tasks: tuple[Any, ...] | None = None
        if tasks is not None:
            self._tasks = _checked_tasks(tasks, self.num_episodes)
        if source is not None and not isinstance(source, str):
            raise TypeError(f"source: is {shown(source)}, expected a string")
        self._source = source

    @property
    def tracks(self) -> Mapping[str, Track]:
        """All tracks by name, in their original order."""
        return MappingProxyType(self._tracks)

    @property
    def tasks(self) -> tuple[str | tuple[str, ...] | None, ...] | None:
        """The task of each episode, or None."""
        return self._tasks

    @property
    def source(self) -> str | None:
        """Description of the origin of the data, or None."""
        return self._source

    # ---- properties that need no reading --------------------------------------------------------

    @property
    def format(self) -> str:
        """Name of the format, such as "LeRobot v3.0"."""
        return self._about.format

    @property
    def rate(self) -> float | None:
        """Frames per second according to the data set, or None."""
        return self._about.rate

    @property
    def unit(self) -> str | None:
        """Unit of times that have none of their own, such as "s"; None if unknown."""
        return self._about.unit

    @property
    def info(self) -> Mapping[str, Any]:
        """Other metadata of the data set, such as its robot and its attributes."""
        return MappingProxyType(dict(self._about.info))

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Parts of the data set that no track contains, with the reasons."""
        return self._about.left_out

    @property
    def notes(self) -> tuple[str, ...]:
        """Parts of streams that an alignment cut off, since others begin later or end earlier."""
        return self._about.notes

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Damage that was skipped, in the parts that have been read so far."""
        return tuple(self._about.problems)

    @property
    def is_loaded(self) -> bool:
        """Whether the tracks are in memory."""
        return self._lazy is None or self._lazy.is_loaded

    @property
    def num_episodes(self) -> int:
        """The number of episodes E."""
        if self._lazy is not None:
            return len(self._lazy.chosen)
        return next(iter(self._tracks.values())).num_episodes

    @property
    def nbytes(self) -> int:
        """Number of bytes of all arrays of all tracks. This reads all tracks."""
        return sum(track.nbytes for track in self._tracks.values())

    def lengths(self, track: str) -> NDArray[np.int64]:
        """Return the number of rows of a track in each episode, as int64 [E] in NumPy.

        Before the track is read, these are the lengths in the metadata of the data set.

        Raises
        ------
        KeyError
            There is no track with this name.
        """
        if self._lazy is None or self.is_loaded or track not in self._tracks:
            return self[track].lengths
        return self._lazy.lengths_of(track)

    def track_info(self, name: str) -> TrackInfo:
        """Return the channels and the dtype of a track, without reading it."""
        if self._lazy is not None and name in self._lazy.infos:
            return self._lazy.infos[name]
        track = self[name]
        dtype = "" if track.values is None else str(track.values.dtype)
        return TrackInfo(track.names, dtype, track.num_channels)

    @property
    def cameras(self) -> Mapping[str, FrameSource]:
        """The cameras of the data set by name, :class:`robocache.data.FrameSource`.

        They have all episodes of the data set, also where some were selected. :class:`Images`
        takes their frames into windows.
        """
        return MappingProxyType(self._about.cameras)

    def with_cameras(
        self, cameras: Mapping[str, FrameSource], *, cache: Cache | None = None
    ) -> Episodes:
        """Return the episodes with more cameras, or with others of the same names.

        Parameters
        ----------
        cameras
            :class:`robocache.data.FrameSource` by name, with a frame for each row of each episode.
        cache
            A :class:`robocache.Cache` that stores frames of all cameras. None: the cache with which
            the episodes were opened, if any.

        Raises
        ------
        TypeError
            A camera is not a FrameSource, or ``cache`` is not a Cache.
        ValueError
            A camera has another number of episodes.
        """
        from ..data._frames.source import FrameSource

        if not isinstance(cameras, Mapping):
            raise TypeError(
                f"cameras: is {kind_of(cameras)}, expected a dict of FrameSource by name"
            )
        chosen = self._about.chosen
        count = self.num_episodes if chosen is None else int(max(chosen, default=-1)) + 1
        for name, camera in cameras.items():
            if not isinstance(camera, FrameSource):
                raise TypeError(f"cameras[{name!r}]: is {kind_of(camera)}, expected a FrameSource")
            lengths = camera.lengths
            if getattr(getattr(lengths, "dtype", None), "kind", None) not in ("i", "u"):
                raise TypeError(
                    f"cameras[{name!r}]: lengths is {kind_of(lengths)}, expected an array "
                    "of integers [E]"
                )
            own = len(lengths)
            if own < count or (chosen is None and own != count):
                raise ValueError(
                    f"cameras[{name!r}]: has {plural(own, 'episode')}, but the episodes are {count}"
                )
        about = replace(self._about, cameras={**self._about.cameras, **cameras})
        if cache is not None:
            from ..data._cached.opening import cache_of

            about = replace(about, cache=cache_of(cache))
        made = make_episodes(self._tracks, tasks=self._tasks, source=self._source, about=about)
        made._provenance = self._provenance
        return made

    def stored_statistics(self) -> Mapping[str, Any]:
        """Return the statistics in the data set: :class:`robocache.StatisticsResult` by track.

        The dict is empty if the data set has none. Stored statistics may be wrong:
        :func:`robocache.data.checks.check` compares them with the data.
        """
        return {} if self._about.stored is None else self._about.stored()

    def with_kinds(self, kinds: Mapping[str, Mapping[str, str]]) -> Episodes:
        """Return the episodes with other kinds of channels, given as for ``open``."""
        from ..data._kinds.declared import require_streams
        from ..data._kinds.selectors import columns_of
        from ..data._kinds.tracks import labelled

        require_streams(kinds, self._tracks, "track")
        for name, declared in kinds.items():
            info = self.track_info(name)
            for channels, kind in declared.items():
                where = f"kinds: {name}:{channels}={kind}"
                columns_of(channels, info.names, info.channels, where, name)
        tracks: Any
        if self._lazy is not None and not self.is_loaded:
            tracks = self._lazy.only(list(self._lazy.infos))
            tracks.kinds = {**self._lazy.kinds, **kinds}
        else:
            tracks = {name: labelled(t, name, kinds.get(name)) for name, t in self.tracks.items()}
        made = make_episodes(tracks, tasks=self._tasks, source=self._source, about=self._about)
        return following(self, made, "kinds", kinds=kinds)

    def _stored_by_episode(self, track: str) -> StatisticsResult | None:
        """Return the stored statistics [E,D] of a track in each episode; None without them."""
        return None if self._about.by_episode is None else self._about.by_episode(track)

    def _checked(self, stored: Mapping[str, Any]) -> list[Finding]:
        """Return the findings of the format's own checks; ``stored``: the stored statistics."""
        return [] if self._about.checks is None else self._about.checks(self._about.chosen, stored)

    # ---- reading and selecting ------------------------------------------------------------------

    def load(self) -> Episodes:
        """Read all tracks, and return the episodes."""
        if self._lazy is not None:
            self._lazy.load()
        return self

    def select(self, indices: Any = None, *, tracks: Collection[str] | None = None) -> Episodes:
        """Return some of the episodes, in the given order, with some of the tracks.

        Parameters
        ----------
        indices
            Episodes to select: a list or array of indices, a slice, or a bool array [E]. None: all.
        tracks
            Names of the tracks to keep. None: all.

        Raises
        ------
        IndexError
            An index has no episode.
        KeyError
            There is no such track.
        TypeError
            ``indices`` are not integers, or ``tracks`` is not a list.
        """
        chosen = chosen_episodes(slice(None) if indices is None else indices, self.num_episodes)
        names = tuple(self._tracks) if tracks is None else names_in(tracks, "tracks")
        for name in names:
            if name not in self:
                near = did_you_mean(name, self._tracks)
                text = f"tracks: has {name!r}, expected one of {_names(self._tracks)}{near}"
                raise KeyError(text)
        tasks = None if self._tasks is None else [self._tasks[e] for e in chosen.tolist()]
        made: Any
        if self._lazy is not None and not self.is_loaded:
            made = self._lazy.only(names).select(chosen)
        else:
            made = {name: self[name] for name in names}
            if indices is not None:
                made = {name: track.select(chosen) for name, track in made.items()}
        about = self._about
        if indices is not None:
            kept = chosen if about.chosen is None else about.chosen[chosen]
            about = replace(about, stored=None, by_episode=None, chosen=kept)
        selected = make_episodes(made, tasks=tasks, source=self._source, about=about)
        which = "all" if indices is None else chosen
        return following(self, selected, "select", episodes=which, tracks=list(names))

    def to(self, device: Any) -> Episodes:
        """Return the episodes on a device, with one copy of each array that is not there.

        Parameters
        ----------
        device
            "cpu", "cuda", "cuda:1" or a torch.device: NumPy arrays that leave the CPU become torch
            tensors; CuPy arrays stay CuPy arrays. A cupy.cuda.Device: arrays become CuPy arrays.

        Raises
        ------
        ValueError
            There is no such device.
        ImportError
            Neither torch nor CuPy is installed.
        """
        tracks = {name: track.to(device) for name, track in self._tracks.items()}
        return make_episodes(tracks, tasks=self._tasks, source=self._source, about=self._about)

    # ---- operations -----------------------------------------------------------------------------

    def report(self, unit: str | None = None) -> Report:
        """Report rates, jitter, gaps and repeats of all tracks with times.

        See :func:`robocache.report`.

        There are no gaps between episodes. ``unit`` is the unit of times that have none.
        """
        from ..data._episode_methods import report_of

        return report_of(self, unit)

    def statistics(self, tracks: Collection[str] | None = None, **options: Any) -> dict[str, Any]:
        """Compute exact statistics by track: see :func:`robocache.data.statistics`."""
        from ..data._episode_methods import statistics

        return statistics(self, tracks, **options)

    def windows(
        self,
        spec: WindowSpec,
        which: Any = None,  # plain: ok
        anchors: Any = None,
        **options: Any,
    ) -> dict[str, tuple[Any, Any]]:
        """Cut training samples out of the episodes: see :meth:`robocache.WindowSpec.cut`.

        Parameters
        ----------
        spec
            A :class:`robocache.WindowSpec` for these tracks.
        which, anchors
            The episode of each sample, and its row in the anchor's track there. None: all samples,
            in order; the result may be large. Use ``robocache.torch.WindowLoader`` for shuffled
            batches.
        options
            As for :meth:`robocache.WindowSpec.cut`.

        Returns
        -------
        dict
            By window name: (values [B,O,D'], valid [B,O]).
        """
        if (which is None) != (anchors is None):
            raise ValueError("anchors: pass both which and anchors, or neither")
        if which is None:
            which, anchors = spec.samples(self)
        return spec.cut(self, which, anchors, **options)

    def align(self, rate: Any, **options: Any) -> Episodes:
        """Resample all tracks of each episode on one clock: see :func:`robocache.data.align`."""
        from ..data._align import align

        return align(self, rate, **options)

    def save(
        self, path: Any, format: str | None = None, *, overwrite: bool = False
    ) -> tuple[LeftOut, ...]:
        """Write all values and times to disk: see :func:`robocache.data.save`."""
        from ..data._save import save

        return save(self, path, format, overwrite=overwrite)

    def __add__(self, other: object) -> Episodes:
        if not isinstance(other, Episodes):
            return NotImplemented
        from ..data._concat import concat

        return concat([self, other])

    def __len__(self) -> int:
        return self.num_episodes

    def __getitem__(self, name: str) -> Track:
        try:
            return self._tracks[name]
        except (KeyError, TypeError):
            if not isinstance(name, str):
                raise TypeError(
                    f"track: is of type {type(name).__name__}, expected a name; "
                    "select([0]) selects an episode, and a loop yields each one"
                ) from None
            raise KeyError(
                f"track: is {shown(name)}, expected one of {_names(self._tracks)}"
                f"{did_you_mean(name, self._tracks)}"
            ) from None

    def __contains__(self, name: object) -> bool:
        return name in self._tracks

    def __iter__(self) -> Iterator[Episodes]:
        """Yield each episode, as :class:`Episodes` with one. Unread tracks are read in parts."""
        begin, count = 0, len(self)
        while begin < count:
            end, part = count, self
            if self._lazy is not None and not self.is_loaded:
                lengths = self._lazy.lengths[begin:].cumsum()
                end = begin + max(1, int((lengths <= _ROWS_AT_ONCE).sum()))
                part = self.select(range(begin, end)).load()
            for e in range(end - begin):
                yield part.select([begin + e if part is self else e])
            begin = end

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Episodes):
            return NotImplemented
        return (self._tasks, self._source) == (other._tasks, other._source) and (
            self._tracks == other._tracks
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def _lazy(self) -> LazyTracks | None:
        return self._tracks if isinstance(self._tracks, LazyTracks) else None

    def __repr__(self) -> str:
        source = "" if self._source is None else f" of {self._source}"
        if self._lazy is None or self.is_loaded:
            rows = [["track", "rows", "lengths", "channels", "dtype", "times", "rate"]]
            rows += [[name, *_cells(track)] for name, track in self._tracks.items()]
            head = f"{plural(len(self), 'episode')}{source}, {_size(self.nbytes)}"
            return f"{head}\n{text_table(rows)}"
        rows = [["track", "channels", "dtype"]]
        for name in self._tracks:
            info = self.track_info(name)
            rows.append([name, str(info.channels or "-"), info.dtype or "-"])
        total = int(self._lazy.lengths.sum())
        rate = "" if self.rate is None else f" at {self.rate:g} Hz"
        head = f"{plural(len(self), 'episode')}{source}, {self.format}, "
        head += f"{plural(total, 'frame')}{rate}, not read yet"
        return f"{head}\n{text_table(rows)}"


def make_episodes(
    tracks: Mapping[str, Track] | LazyTracks,
    *,
    tasks: str | Sequence[Any] | None = None,
    source: str | None = None,
    about: About | None = None,
) -> Episodes:
    """Return episodes with the metadata of a reader. The tracks may be unread."""
    if isinstance(tracks, LazyTracks):
        made = Episodes.__new__(Episodes)
        tracks.path = source or ""
        made._tracks = tracks
        made._tasks = None if tasks is None else tuple(tasks)
        made._source = source
    else:
        made = Episodes(tracks, tasks=tasks, source=source)
    if about is not None:
        made._about = about
    return made


def _names(tracks: Mapping[str, Track]) -> str:
    return ", ".join(map(repr, tracks))


def _cells(track: Track) -> list[str]:
    lengths = track.lengths
    spread = "-"
    if len(lengths):
        low, high = int(lengths.min()), int(lengths.max())
        spread = str(low) if low == high else f"{low} to {high}"
    rate = track.rate
    return [
        str(track.num_rows),
        spread,
        "-" if track.values is None else str(track.num_channels),
        "-" if track.values is None else _dtype(track.values),
        "-" if track.times is None else track.time_unit or _dtype(track.times),
        "-" if rate != rate else f"{rate:.4g}",
    ]


def _dtype(array: Any) -> str:
    return array_text(array).strip("<>").partition(" [")[0]


def _size(count: float) -> str:
    units = ["bytes", "KB", "MB", "GB", "TB"]
    while count >= 1000 and len(units) > 1:
        count /= 1000
        units.pop(0)
    return f"{count:.3g} {units[0]}"


def _checked_tracks(tracks: Any) -> dict[str, Track]:
    if not isinstance(tracks, Mapping):
        raise TypeError(f"tracks: is {kind_of(tracks)}, expected a dict of robocache.Track by name")
    checked = dict(tracks)
    if not checked:
        raise ValueError("tracks: got 0, expected 1 or more")
    for name, track in checked.items():
        if not isinstance(name, str):
            raise TypeError(f"tracks: has the name {shown(name)}, expected a string")
        if not isinstance(track, Track):
            raise TypeError(f"tracks[{name!r}]: is {kind_of(track)}, expected a robocache.Track")
    first_name, first = next(iter(checked.items()))
    for name, track in checked.items():
        if track.num_episodes != first.num_episodes:
            raise ValueError(
                f"tracks[{name!r}]: has {track.num_episodes} episodes, but tracks[{first_name!r}] "
                f"has {first.num_episodes}; an episode in which a track has no rows has length 0"
            )
    return checked


def _checked_tasks(tasks: Any, episodes: int) -> tuple[Any, ...]:
    if isinstance(tasks, str):
        return (tasks,) * episodes
    if not isinstance(tasks, Sequence):
        raise TypeError(
            f"tasks: is {shown(tasks)}, expected a string, or a list with one per episode"
        )
    if len(tasks) != episodes:
        raise ValueError(f"tasks: got {len(tasks)}, expected {episodes} (one per episode)")
    checked = [tuple(task) if isinstance(task, list) else task for task in tasks]
    for e, task in enumerate(checked):
        several = isinstance(task, tuple) and all(isinstance(each, str) for each in task)
        if not (task is None or isinstance(task, str) or several):
            raise TypeError(
                f"tasks[{e}]: is {shown(task)}, expected a string, several strings, or None"
            )
    return tuple(checked)
