"""The rows of a LeRobot data set: columns of its Parquet files, checked against ``meta``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from ._errors import Damage, FormatError
from ._parquet import column, read_table
from ._progress import progress

if TYPE_CHECKING:
    from ._lerobot_meta import Feature, Info, Plan
    from ._open import Options

_EPISODE = "episode_index"
_FILES = 64  # read ahead, of those with an episode each


def read_columns(
    info: Info, plan: Plan, features: Sequence[Feature], chosen: Any, options: Options
) -> tuple[dict[str, Any], Any]:
    """Each feature as [n,D] of the chosen episodes one after the other, and their lengths."""
    import numpy as np

    names = [feature.name for feature in features]
    with_numbers = _EPISODE in info.features and _EPISODE not in names
    wanted = [*names, _EPISODE] if with_numbers else names
    files = sorted(set(plan.file_of[chosen].tolist()))
    pieces: dict[int, dict[str, Any]] = {}
    lengths = np.zeros(len(plan.lengths), np.int64)

    def read(file: int) -> Any:
        name = plan.files[file]
        path = os.path.join(info.folder.path, name)
        if name in plan.missing:
            return file, path, None
        try:
            return file, path, read_table(path, wanted)
        except FormatError as error:
            return file, path, error

    sizes = [_size(info, plan, file) for file in files]
    with (
        progress("Reading LeRobot", sum(sizes), options.progress) as done,
        ThreadPoolExecutor(2) as pool,
    ):
        for begin in range(0, len(files), _FILES):
            for file, path, table in pool.map(read, files[begin : begin + _FILES]):
                if isinstance(table, FormatError):
                    options.damage.found(table.path, table.place, table.reason)
                elif table is not None:
                    _take(path, table, features, plan, file, pieces, lengths, options.damage)
                done(_size(info, plan, file))
    return _put_together(features, pieces, lengths, chosen, options.damage, info), lengths[chosen]


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
    """The rows of each episode in a file, as views."""
    import numpy as np

    episodes = np.flatnonzero(plan.file_of == file)
    columns = {}
    for feature in features:
        try:
            columns[feature.name] = _checked(path, table, feature)
        except FormatError as error:
            damage.found(error.path, error.place, error.reason)
            return
    numbers = column(path, table, _EPISODE) if _EPISODE in table.column_names else None
    if numbers is None:  # nothing but meta tells
        numbers = np.repeat(plan.numbers[episodes], plan.lengths[episodes])
        if len(numbers) != table.num_rows:
            reason = f"has {table.num_rows} rows, but its episodes {len(numbers)} in meta"
            damage.found(path, "", reason)
            numbers = numbers[: table.num_rows]
    numbers = numbers.reshape(-1)
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
        told = f"has {ends[i] - begins[i]} rows here, but length {plan.lengths[e]} in meta"
        damage.found(path, f"episode {plan.numbers[e]}", told)
    strange = int(len(numbers) - (ends - begins).sum())
    if strange:
        others = np.setdiff1d(numbers, plan.numbers[episodes])[:3].tolist()
        reason = f"{strange} rows are of episodes {others}, which are not of this file in meta"
        damage.found(path, _EPISODE, reason)
    lengths[episodes] = ends - begins
    for e, begin, end in zip(episodes.tolist(), begins.tolist(), ends.tolist()):
        pieces[e] = {name: values[begin:end] for name, values in columns.items()}


def _checked(path: str, table: Any, feature: Feature) -> Any:
    """A column as [n,D], as info.json says that it is."""
    values = column(path, table, feature.name)
    values = values.reshape(len(values), -1) if len(values) else values.reshape(0, feature.channels)
    if values.shape[1] != feature.channels:
        raise FormatError(
            path,
            feature.name,
            f"has {values.shape[1]} numbers a row, but shape {list(feature.shape)} in info.json",
        )
    if str(values.dtype) != feature.dtype:
        raise FormatError(
            path, feature.name, f"is of {values.dtype}, but of {feature.dtype} in info.json"
        )
    return values


def _put_together(
    features: Sequence[Feature],
    pieces: dict[int, dict[str, Any]],
    lengths: Any,
    chosen: Any,
    damage: Damage,
    info: Info,
) -> dict[str, Any]:
    import numpy as np

    columns = {}
    for feature in features:
        parts = [pieces[e][feature.name] for e in chosen.tolist() if e in pieces]
        empty = np.zeros((0, feature.channels), feature.dtype)
        columns[feature.name] = np.concatenate(parts) if parts else empty
    return columns
