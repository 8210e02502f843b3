"""The statistics in ``meta`` of a LeRobot data set: computed again, and replaced with a backup.

v3.0 has ``meta/stats.json``, and statistics of each episode in the columns of ``meta/episodes``;
v2.1 has ``meta/episodes_stats.jsonl``, v2.0 only ``meta/stats.json``.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .... import statistics
from ...._files.atomic_write import written_beside
from ...._statistics import parquet_files
from ...._statistics.json_files import entry, lerobot_feature, parsed, text_of
from ..._episode_methods import LEVELS
from ..._errors import Damage, FormatError, needed
from ..._file_access import Folder
from ..._options import Options
from .frames import is_camera
from .image_statistics import camera_statistics
from .meta import episodes_of, files_of_episodes, info_of
from .rows import read_columns

if TYPE_CHECKING:
    from ...._statistics.result import StatisticsResult
    from .meta import Info, Plan

STATS = "meta/stats.json"
LINES = "meta/episodes_stats.jsonl"


@dataclass
class Fixed:
    """The files and the features that :func:`fix` wrote."""

    files: list[str] = field(default_factory=list)  # relative to the data set
    backups: list[str] = field(default_factory=list)
    computed: list[str] = field(default_factory=list)  # features
    kept: list[str] = field(default_factory=list)  # features whose statistics were not computed
    missing: list[str] = field(default_factory=list)  # cameras that still have none
    dropped: list[int] = field(default_factory=list)  # numbers of episodes that do not exist


@dataclass(frozen=True)
class DataSet:
    """The meta data of a data set, and how its files are read."""

    info: Info
    plan: Plan
    options: Options

    @classmethod
    def open(cls, path: str, options: Options | None = None) -> DataSet:
        options = options or Options(Damage())
        folder = Folder(path, options.follow_links)
        info = info_of(folder)
        return cls(info, episodes_of(folder, info, options.damage, options.limit), options)

    @property
    def cameras(self) -> list[str]:
        return [name for name, each in self.info.features.items() if is_camera(each)]

    def of_numbers(
        self, without: Collection[str] = ()
    ) -> tuple[dict[str, StatisticsResult], dict[str, StatisticsResult]]:
        """Return exact statistics of each numeric feature over all rows, and by episode [E,D]."""
        import numpy as np

        features = [
            each
            for each in self.info.features.values()
            if each.is_number and each.channels and each.name not in without
        ]
        chosen = np.arange(len(self.plan.lengths))
        columns, lengths = read_columns(self.info, self.plan, features, chosen, self.options)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        whole, by_episode = {}, {}
        for feature in features:
            values = np.ascontiguousarray(columns.pop(feature.name))
            whole[feature.name] = statistics(values, quantiles=LEVELS)
            by_episode[feature.name] = statistics(
                values, quantiles=LEVELS, batch_offsets=offsets, per_row=True
            )
        return whole, by_episode

    def of_cameras(
        self, how: str
    ) -> tuple[dict[str, StatisticsResult], dict[str, StatisticsResult]]:
        """Return the statistics of each camera: see :func:`camera_statistics`."""
        return camera_statistics(self.info, self.plan, how, self.options)


def fix(path: str, images: str | None, options: Options | None = None) -> Fixed:
    """Compute the statistics of a data set again, and replace the files that hold them.

    Statistics of cameras are kept, unless ``images`` says how to compute them. All new files are
    written before the first one is replaced, and the old ones stay next to them as backups.

    Raises
    ------
    FormatError
        The data set is damaged, or a file with statistics is a link out of it.
    """
    data_set = DataSet.open(path, options)
    if not len(data_set.plan.lengths):
        raise FormatError(path, "", "has no episodes, so there are no statistics")
    whole, by_episode = data_set.of_numbers()
    if images is not None:
        of_all, of_each = data_set.of_cameras(images)
        whole.update(of_all)
        by_episode.update(of_each)
    fixed = Fixed(computed=list(whole))
    new = _new_files(data_set, whole, by_episode, fixed)
    with ExitStack() as stack:
        parts = {
            name: stack.enter_context(written_beside(data_set.info.folder.place(name), True))
            for name in new
        }
        for name, write in new.items():
            write(parts[name])
        for name in new:
            backup = _backup(data_set.info.folder, name)
            if backup is not None:
                fixed.backups.append(backup)
    fixed.files = list(new)
    return fixed


def _new_files(
    data_set: DataSet,
    whole: Mapping[str, StatisticsResult],
    by_episode: Mapping[str, StatisticsResult],
    fixed: Fixed,
) -> dict[str, Any]:
    """Return a function that writes each new file, by its name."""
    info, folder = data_set.info, data_set.info.folder
    files: dict[str, Any] = {}
    known: set[str] = set()
    if info.version != "v2.1" or folder.has(STATS):
        old = {}
        if folder.has(STATS):
            file = folder.file(STATS)
            old = entry(parsed(text_of(file), file), file)
        keeps = _keeps_quantiles(old) if old else info.is_v3
        new = {**old, **_features(data_set, whole, keeps)}
        text = json.dumps(new, indent=4, allow_nan=False) + "\n"
        files[STATS] = _writer(text)
        known |= set(old)
    if info.version == "v2.1":
        text, there = _lines(data_set, by_episode, fixed)
        files[LINES] = _writer(text)
        known |= there
    elif info.is_v3:
        pyarrow = needed("pyarrow.parquet", "lerobot", "a LeRobot data set")
        for name in files_of_episodes(folder):
            table, there = _table(data_set, folder.file(name), by_episode)
            files[name] = lambda part, table=table: pyarrow.write_table(table, part)
            known |= there
    fixed.kept = sorted(known - set(whole))
    fixed.missing = [name for name in data_set.cameras if name not in known | set(whole)]
    return files


def _features(
    data_set: DataSet, results: Mapping[str, StatisticsResult], quantiles: bool
) -> dict[str, Any]:
    """Return the statistics of features as LeRobot stores them in JSON."""
    cameras = data_set.cameras
    return {
        name: lerobot_feature(name, result, name in cameras, quantiles)
        for name, result in results.items()
    }


def _keeps_quantiles(stored: Mapping[str, Any]) -> bool:
    return any("q01" in each for each in stored.values() if isinstance(each, dict))


def _writer(text: str) -> Any:
    def write(part: str) -> None:
        with open(part, "x", encoding="utf-8") as file:
            file.write(text)

    return write


def _backup(folder: Folder, name: str) -> str | None:
    """Keep a file under a name that is free, and return the name; None if there is no file."""
    if not folder.has(name):
        return None
    number = 0
    while True:
        number += 1
        backup = f"{name}.bak" if number == 1 else f"{name}.bak{number}"
        place = folder.place(backup)
        if os.path.lexists(place):
            continue
        try:  # a link to the old content, which stays when another file takes its name
            os.link(folder.file(name), place)
        except FileExistsError:
            continue
        except OSError:  # a file system without hard links
            shutil.copy2(folder.file(name), place)
        return backup


# ---- statistics of episodes ---------------------------------------------------------------------


def _lines(
    data_set: DataSet, by_episode: Mapping[str, StatisticsResult], fixed: Fixed
) -> tuple[str, set[str]]:
    """Return the new lines of episodes_stats.jsonl, and the features of the old ones."""
    folder = data_set.info.folder
    old: dict[int, dict[str, Any]] = {}
    if folder.has(LINES):
        file = folder.file(LINES)
        for number, line in enumerate(text_of(file).split("\n"), 1):
            if line.strip():
                each = entry(parsed(line, f"{file}: line {number}"), f"{file}: line {number}")
                stats = each.get("stats")
                index = each.get("episode_index")
                if isinstance(index, int) and isinstance(stats, dict):
                    old[index] = stats
    keeps = any(map(_keeps_quantiles, old.values()))
    numbers = data_set.plan.numbers.tolist()
    fixed.dropped = sorted(set(old) - set(numbers))
    lines = []
    for e, number in enumerate(numbers):
        rows = {name: result.row(e) for name, result in by_episode.items()}
        stats = {**old.get(number, {}), **_features(data_set, rows, keeps)}
        lines.append(json.dumps({"episode_index": number, "stats": stats}, allow_nan=False) + "\n")
    return "".join(lines), {name for stats in old.values() for name in stats}


def _table(
    data_set: DataSet, path: str, by_episode: Mapping[str, StatisticsResult]
) -> tuple[Any, set[str]]:
    """Return a table of meta/episodes with new statistics, and the features that it had."""
    import numpy as np

    pyarrow = needed("pyarrow", "lerobot", "a LeRobot data set")
    parquet = needed("pyarrow.parquet", "lerobot", "a LeRobot data set")
    table = parquet.ParquetFile(path).read()
    numbers = table["episode_index"].to_numpy()
    place = np.searchsorted(data_set.plan.numbers, numbers)
    cameras = data_set.cameras
    there = {match[1] for name in table.column_names if (match := parquet_files.COLUMN.match(name))}
    for name, values in parquet_files.columns_of(by_episode).items():
        column = values.take(pyarrow.array(place))
        feature = name[len("stats/") : name.rindex("/")]
        if feature in cameras and not name.endswith("/count"):
            column = _nested(pyarrow, column)
        at = table.schema.get_field_index(name)
        if at < 0:
            table = table.append_column(name, column)
            continue
        kind = table.schema.field(at).type
        try:
            column = column.cast(kind)
        except pyarrow.ArrowInvalid:  # the old type does not hold the new numbers
            kind = column.type
        table = table.set_column(at, pyarrow.field(name, kind), column)
    return table, there


def _nested(pyarrow: Any, column: Any) -> Any:
    """Return lists of three numbers as lists of the shape (3,1,1)."""
    import numpy as np

    flat = column.flatten()
    ones = np.arange(len(flat) + 1, dtype=np.int32)
    inner = pyarrow.ListArray.from_arrays(ones, flat)
    inner = pyarrow.ListArray.from_arrays(ones, inner)
    lengths = np.concatenate([[0], np.cumsum(column.value_lengths().to_numpy())])
    return pyarrow.ListArray.from_arrays(lengths.astype(np.int32), inner)


def feature_names(info: Mapping[str, Any]) -> dict[str, str]:
    """Return the features that ``save`` named otherwise than their tracks, by track."""
    own = info.get("robocache")
    names = own.get("names") if isinstance(own, dict) else None
    return {track: feature for feature, track in (names or {}).items()}
