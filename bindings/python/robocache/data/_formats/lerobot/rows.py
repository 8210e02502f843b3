"""The rows of a LeRobot data set: columns of its Parquet files, checked against ``meta``."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from ..._errors import Damage, FormatError, raise_shortage, reading, require_memory
from ..._file_access import Limit
from ..._progress import progress
from ..tables.parquet import column, read_table, whole_numbers

if TYPE_CHECKING:
    from ..._options import Options
    from .meta import Feature, Info, Plan

_EPISODE = "episode_index"
_FILES = 64  # files read ahead, if each holds one episode
_BYTES = 64 << 20  # bytes read ahead, of large files


def read_columns(
    info: Info, plan: Plan, features: Sequence[Feature], chosen: Any, options: Options
) -> tuple[dict[str, Any], Any]:
    """Return features [n,D] of the chosen episodes, concatenated, and their lengths."""
    import numpy as np

    names = [feature.name for feature in features]
    with_numbers = _EPISODE in info.features and _EPISODE not in names
    wanted = [*names, _EPISODE] if with_numbers else names
    files = sorted(set(plan.file_of[chosen].tolist()))
    pieces: dict[int, dict[str, Any]] = {}
    lengths = np.zeros(len(plan.lengths), np.int64)
    # Allocate before reading only if info.json and the episodes agree on the number of rows.
    whole = _Whole(features, plan.readable if plan.adds_up else np.zeros_like(lengths), chosen)

    for file, path, table in tables_of(info, plan, files, wanted, (), options):
        if isinstance(table, FormatError):
            options.damage.found(table.path, table.place, table.reason)
        elif table is not None:
            _take(path, table, features, plan, file, pieces, lengths, options.damage)
            whole.keep(pieces)
    return whole.result(pieces, lengths), lengths[chosen]


def tables_of(
    info: Info,
    plan: Plan,
    files: list[int],
    wanted: Sequence[str],
    optional: Sequence[str],
    options: Options,
) -> Iterator[tuple[int, str, Any]]:
    """Yield columns of data files in order: the index of the file, its path and a table.

    The table is a FormatError if the file cannot be read, and None if it is missing.
    """

    def read(file: int) -> tuple[int, str, Any]:
        name = plan.files[file]
        path = os.path.join(info.folder.path, name)
        if name in plan.missing:
            return file, path, None
        try:
            with reading(path):
                return file, path, read_table(path, wanted, optional, options.limit)
        except FormatError as error:
            return file, path, error

    sizes = [_size(info, plan, file) for file in files]
    with (
        progress("Reading LeRobot", sum(sizes), options.progress) as done,
        _two_threads(info.folder.path) as pool,
    ):
        for file, path, table in _ahead(pool, read, files, sizes):
            yield file, path, table
            done(_size(info, plan, file))


def _two_threads(path: str) -> ThreadPoolExecutor:
    """Start threads before memory is used: Python waits forever for one that cannot start."""
    require_memory(path)
    pool, gate = ThreadPoolExecutor(2), threading.Event()
    try:
        for _ in range(2):
            pool.submit(gate.wait)
    except BaseException:
        raise_shortage(path)
        raise
    finally:
        gate.set()
    return pool


def require_room(info: Info, plan: Plan, limit: Limit) -> None:
    """Refuse shapes in info.json for which the episodes are larger than their files allow.

    Raises
    ------
    FormatError
        The episodes are too large; the message names info.json and the feature.
    """
    import numpy as np

    rows = max(1, int(plan.readable.sum())) if plan.adds_up else 1
    size: int | None = None
    unpacked = 0
    for feature in info.features.values():
        if not feature.is_number:
            continue
        unpacked += rows * feature.channels * np.dtype(feature.dtype).itemsize
        if unpacked > limit.least:
            if size is None:
                size = sum(_size(info, plan, file) for file in range(len(plan.files)))
            place = f"features.{feature.name}.shape {list(feature.shape)}, {rows:,} rows"
            limit.require(info.path, place, unpacked, size)


def _ahead(
    pool: ThreadPoolExecutor, read: Callable[[int], Any], files: list[int], sizes: list[int]
) -> Iterator[Any]:
    """Yield the contents of files in order, reading some megabytes ahead."""
    waiting: deque[tuple[Any, int]] = deque()
    pending = 0
    for file, size in zip(files, sizes):
        waiting.append((pool.submit(read, file), size))
        pending += size
        while len(waiting) > _FILES or (len(waiting) > 1 and pending > _BYTES):
            first, size = waiting.popleft()
            pending -= size
            yield first.result()
    while waiting:
        yield waiting.popleft()[0].result()


def _size(info: Info, plan: Plan, file: int) -> int:
    path = os.path.join(info.folder.path, plan.files[file])
    return os.path.getsize(path) if os.path.exists(path) else 0


def _take(
    path: str,
    table: Any,
    features: Sequence[Feature],
    plan: Plan,
    file: int,
    pieces: dict[int, dict[str, Any]],
    lengths: Any,
    damage: Damage,
) -> None:
    """Take the rows of each episode in a file, as views."""
    import numpy as np

    episodes = np.flatnonzero(plan.file_of == file)
    columns = {}
    for feature in features:
        try:
            columns[feature.name] = _checked(path, table, feature)
        except FormatError as error:
            damage.found(error.path, error.place, error.reason)
            return
    try:
        known = _EPISODE in table.column_names
        numbers = whole_numbers(path, table, _EPISODE) if known else None
    except FormatError as error:
        damage.found(error.path, error.place, error.reason)
        return
    if numbers is None:  # only meta says which rows belong to an episode
        ends = np.cumsum(plan.lengths[episodes])
        rows = int(ends[-1]) if len(ends) else 0
        if rows != table.num_rows:
            damage.found(
                path,
                "",
                f"file has {table.num_rows} rows; the episodes that meta/ places in it have {rows}",
            )
        counts = np.diff(np.minimum(ends, table.num_rows), prepend=0)
        numbers = np.repeat(plan.numbers[episodes], counts)
    if (np.diff(numbers) < 0).any():
        at = int(np.argmax(np.diff(numbers) < 0)) + 1
        damage.found(path, f"row {at}", "episode_index goes back; rows are sorted by it")
        order = np.argsort(numbers, kind="stable")
        numbers = numbers[order]
        columns = {name: values[order] for name, values in columns.items()}
    begins = np.searchsorted(numbers, plan.numbers[episodes], "left")
    ends = np.searchsorted(numbers, plan.numbers[episodes], "right")
    odd = np.flatnonzero(ends - begins != plan.lengths[episodes])
    for i in odd.tolist():
        e = episodes[i]
        text = f"{ends[i] - begins[i]} rows in this file, {plan.lengths[e]} in meta/episodes"
        damage.found(path, f"episode {plan.numbers[e]}", text)
    strange = int(len(numbers) - (ends - begins).sum())
    if strange:
        others = np.setdiff1d(numbers, plan.numbers[episodes])
        names = f"episode {others[0]}" if len(others) == 1 else f"episodes {others[:3].tolist()}"
        reason = f"{strange} rows belong to {names}, which meta/ does not place in this file"
        damage.found(path, _EPISODE, reason)
    lengths[episodes] = ends - begins
    for e, begin, end in zip(episodes.tolist(), begins.tolist(), ends.tolist()):
        pieces[e] = {name: values[begin:end] for name, values in columns.items()}


def _checked(path: str, table: Any, feature: Feature) -> Any:
    """Return a column as [n,D]; raise if it differs from info.json."""
    values = column(path, table, feature.name)
    values = values.reshape(len(values), -1) if len(values) else values.reshape(0, feature.channels)
    if values.shape[1] != feature.channels:
        raise FormatError(
            path,
            feature.name,
            f"has {values.shape[1]} numbers per row, but shape {list(feature.shape)} in info.json",
        )
    if str(values.dtype) != feature.dtype:
        raise FormatError(
            path, feature.name, f"has dtype {values.dtype}, but {feature.dtype} in info.json"
        )
    return values


class _Whole:
    """All chosen episodes in one array per feature, filled while files are read."""

    def __init__(self, features: Sequence[Feature], lengths: Any, chosen: Any) -> None:
        import numpy as np

        self.planned, self.chosen = lengths[chosen], chosen
        self.begins = np.cumsum(self.planned) - self.planned
        places: dict[int, list[int]] = {}  # an episode may be chosen twice
        for e, begin in zip(chosen.tolist(), self.begins.tolist()):
            places.setdefault(e, []).append(begin)
        self.places = places
        self.lengths = lengths
        rows = int(self.planned.sum())
        self.columns = {f.name: np.empty((rows, f.channels), f.dtype) for f in features}

    def keep(self, pieces: dict[int, dict[str, Any]]) -> None:
        """Copy episodes of the expected length, and release what they were read from."""
        for e in list(pieces):
            piece = pieces[e]
            if any(len(values) != self.lengths[e] for values in piece.values()):
                continue
            for begin in self.places.get(e, ()):
                for name, values in piece.items():
                    self.columns[name][begin : begin + len(values)] = values
            del pieces[e]

    def result(self, pieces: dict[int, dict[str, Any]], lengths: Any) -> dict[str, Any]:
        """Return the columns; assemble them again if an episode is missing or of another length."""
        import numpy as np

        if (lengths[self.chosen] == self.planned).all():
            return self.columns
        found: dict[str, list[Any]] = {name: [values[:0]] for name, values in self.columns.items()}
        for e, begin, planned in zip(self.chosen.tolist(), self.begins, self.planned):
            for name, values in self.columns.items():
                if e in pieces:
                    found[name].append(pieces[e][name])
                elif lengths[e] == planned:
                    found[name].append(values[begin : begin + planned])
        return {name: np.concatenate(parts) for name, parts in found.items()}
