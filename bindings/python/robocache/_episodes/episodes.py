"""Episodes of a data set in memory: what readers of recordings fill, and windows are cut from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .._library.errors import shown
from .._operations.stream import array_text
from .._text_table import text_table
from .track import Track
from .validation import chosen_episodes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Episodes:
    """E episodes of a robot: named tracks, each with its own rate, and the tasks.

    ``len`` is E, ``episodes["state"]`` a track, and ``print`` shows a table of all. Plain data: it
    is pickled, copied and compared as such, and cannot be changed.

    Parameters
    ----------
    tracks
        :class:`Track` by name, one or more, all of the same number of episodes.
    tasks : sequence of E, or None
        What was to be done in each episode: a string, several, or None.
    source
        Where they come from, as it is to be shown.

    Raises
    ------
    ValueError
        Tracks differ in their number of episodes, or there are none.
    TypeError
        An argument is of another kind.

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
    """

    def __init__(
        self,
        tracks: Mapping[str, Track],
        *,
        tasks: Sequence[Any] | None = None,
        source: str | None = None,
    ) -> None:
        self._tracks = _checked_tracks(tracks)
        self._tasks = None if tasks is None else _checked_tasks(tasks, self.num_episodes)
        if source is not None and not isinstance(source, str):
            raise TypeError(f"source: is {shown(source)}, expected a string")
        self._source = source

    @property
    def tracks(self) -> Mapping[str, Track]:
        """All tracks by name, in the order in which they were given."""
        return MappingProxyType(self._tracks)

    @property
    def tasks(self) -> tuple[str | tuple[str, ...] | None, ...] | None:
        """Of each episode, or None."""
        return self._tasks

    @property
    def source(self) -> str | None:
        """Where they come from, or None."""
        return self._source

    @property
    def num_episodes(self) -> int:
        """E."""
        return next(iter(self._tracks.values())).num_episodes

    @property
    def nbytes(self) -> int:
        """Of all arrays of all tracks."""
        return sum(track.nbytes for track in self._tracks.values())

    def lengths(self, track: str) -> NDArray[np.int64]:
        """How many rows of a track each episode has, int64 [E] in NumPy.

        Raises
        ------
        KeyError
            There is no track of this name.
        """
        return self[track].lengths

    def select(self, indices: Any) -> Episodes:
        """Some of the episodes, in this order, copied together.

        Parameters
        ----------
        indices
            A list or array of their numbers, a slice, or a bool array [E].

        Raises
        ------
        IndexError
            There is no episode of such a number.
        TypeError
            They are no numbers.
        """
        chosen = chosen_episodes(indices, self.num_episodes)
        tasks = None if self._tasks is None else [self._tasks[e] for e in chosen.tolist()]
        tracks = {name: track.select(chosen) for name, track in self._tracks.items()}
        return type(self)(tracks, tasks=tasks, source=self._source)

    def to(self, device: Any) -> Episodes:
        """The same on a device, with one copy of each array that is not there.

        Parameters
        ----------
        device
            "cpu", "cuda", "cuda:1" or a torch.device: arrays become torch's where they leave the
            CPU, but for those of CuPy, which stay with it. A cupy.cuda.Device: CuPy's.

        Raises
        ------
        ValueError
            There is no such device.
        ImportError
            Neither torch nor CuPy is installed.
        """
        tracks = {name: track.to(device) for name, track in self._tracks.items()}
        return type(self)(tracks, tasks=self._tasks, source=self._source)

    def __len__(self) -> int:
        return self.num_episodes

    def __getitem__(self, name: str) -> Track:
        try:
            return self._tracks[name]
        except (KeyError, TypeError):
            names = ", ".join(map(repr, self._tracks))
            raise KeyError(f"track: is {shown(name)}, expected one of {names}") from None

    def __contains__(self, name: object) -> bool:
        return name in self._tracks

    __iter__ = None  # over episodes, which len counts, or over names: tracks tells

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Episodes):
            return NotImplemented
        return (self._tasks, self._source) == (other._tasks, other._source) and (
            self._tracks == other._tracks
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        rows = [["track", "rows", "lengths", "channels", "dtype", "times", "rate"]]
        rows += [[name, *_told(track)] for name, track in self._tracks.items()]
        source = "" if self._source is None else f" of {self._source}"
        return f"{len(self)} episodes{source}, {_size(self.nbytes)}\n{text_table(rows)}"


def _told(track: Track) -> list[str]:
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
        raise TypeError(
            f"tracks: is a {type(tracks).__name__}, expected a dict of robocache.Track by name"
        )
    taken = dict(tracks)
    if not taken:
        raise ValueError("tracks: are 0, expected 1 or more")
    for name, track in taken.items():
        if not isinstance(name, str):
            raise TypeError(f"tracks: has the name {shown(name)}, expected a string")
        if not isinstance(track, Track):
            raise TypeError(
                f"tracks[{name!r}]: is a {type(track).__name__}, expected a robocache.Track"
            )
    first_name, first = next(iter(taken.items()))
    for name, track in taken.items():
        if track.num_episodes != first.num_episodes:
            raise ValueError(
                f"tracks[{name!r}]: has {track.num_episodes} episodes, but tracks[{first_name!r}] "
                f"has {first.num_episodes}; an episode in which a track has no rows has length 0"
            )
    return taken


def _checked_tasks(tasks: Any, episodes: int) -> tuple[Any, ...]:
    if isinstance(tasks, str) or not isinstance(tasks, Sequence):
        raise TypeError(f"tasks: is {shown(tasks)}, expected one an episode, in a list")
    if len(tasks) != episodes:
        raise ValueError(f"tasks: are {len(tasks)}, expected {episodes}, one an episode")
    taken = [tuple(task) if isinstance(task, list) else task for task in tasks]
    for e, task in enumerate(taken):
        several = isinstance(task, tuple) and all(isinstance(each, str) for each in task)
        if not (task is None or isinstance(task, str) or several):
            raise TypeError(f"tasks[{e}]: is {shown(task)}, expected a string, several, or None")
    return tuple(taken)
