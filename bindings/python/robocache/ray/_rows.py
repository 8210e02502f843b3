"""Rows of Ray Data as episodes and back: references to data sets, or their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .. import data
from .._arguments.to_device import moved
from .._episodes.track import Track
from .._library.context import Context
from .._library.errors import shown
from .._printable import printable

if TYPE_CHECKING:
    Batch = Mapping[str, Any]  # NumPy arrays, with one row per entry of their first axis

PATH, EPISODE, TIMES, UNIT = "path", "episode", "times", "time_unit"
KEPT = (PATH, EPISODE, TIMES, UNIT)  # columns that are not tracks
AT_ONCE = 16  # episodes that a worker reads together


def is_reference(batch: Batch) -> bool:
    """Whether rows only refer to data by path, and hold no values."""
    return PATH in batch and set(batch) <= {PATH, EPISODE}


class Worker:
    """State that an actor keeps between batches: its context, and the last data set it opened.

    The context uses only the threads that Ray assigned to the actor.
    """

    def __init__(self, device: str | None, options: Mapping[str, Any] | None) -> None:
        cpus, gpus = _resources()
        self.device = device or ("cuda" if gpus else "cpu")
        threads = max(1, int(cpus)) if self.device == "cpu" else None
        self.context = Context(self.device, threads=threads)
        self._options = {"progress": False, **(options or {})}
        self._last: tuple[str, Any] = ("", None)

    def on_device(self, values: Any) -> Any:
        """Move an array to the device of the context."""
        return values if self.device == "cpu" else moved(values, self.device, "values")

    def opened(self, batch: Batch) -> Iterator[tuple[str, list[int], Any]]:
        """Yield path, episode numbers and data, a few episodes at a time; a recording is one."""
        for path, numbers in _runs(batch):
            found = self._open(path)
            if isinstance(found, data.Recording):
                yield path, [0], found
                continue
            if not isinstance(found, data.Episodes):
                raise ValueError(
                    f"{printable(path)} is a point cloud, expected a recording or a data set"
                )
            chosen = list(range(len(found))) if numbers is None else numbers
            for begin in range(0, len(chosen), AT_ONCE):
                part = chosen[begin : begin + AT_ONCE]
                yield path, part, found.select(part)

    def _open(self, path: str) -> Any:
        if self._last[0] == path:
            return self._last[1]
        found = data.open(path, **self._options)
        # A recording caches what it reads; a data set does not, only selections from it.
        self._last = (path, found) if isinstance(found, data.Episodes) else ("", None)
        return found


def _runs(batch: Batch) -> Iterator[tuple[str, list[int] | None]]:
    """Group consecutive rows of one path; None stands for all of its episodes."""
    paths = [str(path) for path in batch[PATH]]
    if EPISODE not in batch:
        yield from ((path, None) for path in paths)
        return
    numbers = [int(number) for number in batch[EPISODE]]
    begin = 0
    for row in range(1, len(paths) + 1):
        if row == len(paths) or paths[row] != paths[begin]:
            yield paths[begin], numbers[begin:row]
            begin = row


def _resources() -> tuple[float, float]:
    """Return the CPUs and GPUs that Ray assigned; one CPU outside of a Ray worker."""
    try:
        import ray
    except ModuleNotFoundError:
        return 1, 0
    if not ray.is_initialized():
        return 1, 0
    context: Any = ray.get_runtime_context()
    if context.worker.mode != ray.WORKER_MODE:
        return 1, 0
    assigned = context.get_assigned_resources()
    return assigned.get("CPU", 1), assigned.get("GPU", 0)


# ---- rows that hold episodes -------------------------------------------------------------------


def column_of(values: Sequence[Any]) -> Any:
    """Return arrays of any shapes as a column, one per row."""
    import numpy as np

    column = np.empty(len(values), object)
    for row, value in enumerate(values):
        column[row] = value
    return column


def row_of(episodes: data.Episodes, number: int, path: str, episode: int) -> dict[str, Any]:
    """Return one of the aligned episodes as a batch of one row."""
    row: dict[str, Any] = {PATH: [path], EPISODE: [episode]}
    for name, track in episodes.tracks.items():
        if track.values is None:
            continue
        if name in KEPT:
            raise ValueError(
                f"tracks: {name!r} is the name of another column; rename it, or select other tracks"
            )
        begin, end = (int(track.episode_offsets[number + i]) for i in (0, 1))
        if TIMES not in row:
            row[TIMES] = column_of([track.times[begin:end]])
            row[UNIT] = [track.time_unit or ""]
        row[name] = column_of([track.values[begin:end]])
    return row


def episodes_of(batch: Batch, names: Sequence[str]) -> data.Episodes:
    """Return the rows of a batch as episodes, from columns whose rows are [n,D]."""
    import numpy as np

    tracks = {}
    times = None
    if TIMES in batch:
        times = np.concatenate([np.asarray(each) for each in batch[TIMES]])
        unit = str(batch[UNIT][0]) if UNIT in batch else ""
        if unit:
            times = times.view(unit)
    for name in names:
        if name not in batch:
            have = ", ".join(map(repr, batch))
            raise KeyError(f"tracks: no column {name!r} in the batch; it has {have}")
        rows = [np.asarray(each) for each in batch[name]]
        for row in rows:
            if row.ndim != 2:
                raise ValueError(
                    f"{name}: a row has shape {list(row.shape)}, expected [n,D]: here a row is an "
                    "episode; gather frames with groupby(...).map_groups"
                )
        offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        values = np.concatenate(rows)
        track_times = times if times is not None and len(times) == len(values) else None
        tracks[name] = Track(values, offsets, times=track_times)
    return data.Episodes(tracks)


# ---- columns of numbers ------------------------------------------------------------------------


def samples_of(column: Any, name: str) -> list[tuple[slice, Any]]:
    """Return samples [...,D] of a column with the rows they belong to, in one piece if possible.

    A row is a number, a sample [D], or several samples, such as an image or an episode.
    """
    import numpy as np

    column = np.asarray(column)
    if column.dtype != object:
        array = column[:, None] if column.ndim == 1 else column
        return [(slice(0, len(array)), array)]
    rows = [np.asarray(row) for row in column]
    for row in rows:
        if row.dtype == object or row.ndim == 0:
            raise TypeError(f"{name}: holds {shown(column[0])}, expected arrays of numbers")
    if len({(row.shape, row.dtype) for row in rows}) == 1:
        return [(slice(0, len(rows)), np.stack(rows))]
    if any(row.ndim == 1 for row in rows):
        raise ValueError(f"{name}: samples have different numbers of channels")
    return [(slice(i, i + 1), row) for i, row in enumerate(rows)]


def columns_of_numbers(batch: Batch) -> list[str]:
    """Return the names of the numeric columns, except those that say where rows come from."""
    import numpy as np

    names = []
    for name, column in batch.items():
        first = np.asarray(column)
        if first.dtype == object and len(first):
            first = np.asarray(first[0])
        if name not in KEPT and first.dtype.kind in "biuf":
            names.append(name)
    return names
