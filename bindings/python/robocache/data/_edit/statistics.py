"""The statistics of an edited data set: those of numbers anew, those of whole episodes' cameras."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Mapping, Sequence

from ... import statistics_files
from ..._printable import plural
from ..._statistics.result import StatisticsResult
from .._errors import Damage, FormatError, needed
from .._formats.lerobot.frames import is_camera
from .._formats.lerobot.image_statistics import camera_statistics, impossible
from .._formats.lerobot.places import EPISODES
from .._formats.lerobot.stored_statistics import STATS, DataSet, fix
from .._options import Options
from .._write.lerobot import image_columns
from .choices import Changes, Cut


def write_statistics(
    sets: Sequence[DataSet],
    cuts: Sequence[Cut],
    changes: Changes,
    part: str,
    progress: bool | None,
) -> list[str]:
    """Write the statistics of a data set whose rows, videos and meta are complete.

    Returns
    -------
    list
        Notes about statistics of cameras that the sources have, and that cannot be right.
    """
    pyarrow = needed("pyarrow", "lerobot", "a LeRobot data set")
    parquet = needed("pyarrow.parquet", "lerobot", "a LeRobot data set")
    features = changes.features
    cameras = {n: o for n, o in features.items() if is_camera(sets[0].info.features[o])}
    notes: list[str] = []
    results = {}
    if cameras:
        resized = set(changes.resizes)
        results = _of_cameras(sets, cuts, cameras, resized, part, progress, notes)
    path = os.path.join(part, EPISODES)
    table = parquet.read_table(path)
    whole = {}
    for name, rows in results.items():
        whole[name] = joined(rows)
        for column, values in image_columns(pyarrow, name, rows).items():
            table = table.append_column(column, values)
    parquet.write_table(table, path)
    fixed = fix(part, None, Options(Damage(), progress=progress))
    for name in fixed.backups:  # of files that were written here
        os.remove(os.path.join(part, name))
    if whole:
        place = os.path.join(part, STATS)
        statistics_files.write_lerobot(place, whole, images=list(whole), keep=place)
    return notes


def _of_cameras(
    sets: Sequence[DataSet],
    cuts: Sequence[Cut],
    cameras: Mapping[str, str],
    resized: Collection[str],
    part: str,
    progress: bool | None,
    notes: list[str],
) -> dict[str, list[StatisticsResult]]:
    """Return the statistics of each camera by episode: the stored ones of whole episodes.

    Statistics that cannot be right, and all of ``resized`` cameras, are computed from the frames.
    """
    import numpy as np

    stored = [_stored(each) for each in sets]
    found: dict[str, list[StatisticsResult | None]] = {name: [] for name in cameras}
    wrong = dict.fromkeys(cameras, 0)
    for cut in cuts:
        number = int(sets[cut.source].plan.numbers[cut.episode])
        own = stored[cut.source].get(number, {}) if cut.is_whole else {}
        for name, old in cameras.items():
            stored_row = None if old in resized else own.get(old)
            if stored_row is not None and impossible(stored_row).any():
                wrong[name] += 1
                stored_row = None
            found[name].append(stored_row)
    notes += [
        f"{name}: the std stored for {plural(count, 'episode')} is far below what the quantiles "
        "allow; the statistics were computed from a sample of the frames"
        for name, count in wrong.items()
        if count
    ]
    for name, rows in found.items():
        lacking = np.array([row is None for row in rows])
        if not lacking.any():
            continue
        made = DataSet.open(part, Options(Damage(), progress=progress))
        plan = made.plan.without(~lacking)
        _, by_episode = camera_statistics(made.info, plan, "sample", made.options, [name])
        for row, e in enumerate(np.flatnonzero(lacking).tolist()):
            rows[e] = by_episode[name].row(row)
    return {name: [row for row in rows if row is not None] for name, rows in found.items()}


def _stored(each: DataSet) -> dict[int, dict[str, StatisticsResult]]:
    """Return the statistics that a data set has of its episodes; empty if it has none."""
    try:
        return statistics_files.read_lerobot_episodes(each.info.folder.path)
    except (OSError, FormatError, ValueError, TypeError):  # they are computed again
        return {}


def joined(rows: Sequence[StatisticsResult]) -> StatisticsResult:
    """Return the statistics of all episodes from those of each, as LeRobot joins them.

    Quantiles are weighted means of the episodes' quantiles.
    """
    import numpy as np

    levels = tuple(level for level in rows[0].levels if all(level in each.levels for each in rows))
    counts = np.stack([each.count for each in rows])
    total = counts.sum(axis=0)
    means = np.stack([each.mean for each in rows])
    mean = (means * counts).sum(axis=0) / total
    spread = np.stack([each.std for each in rows]) ** 2 + (means - mean) ** 2
    quantiles = np.array(
        [
            (np.stack([each.quantile(level) for each in rows]) * counts).sum(axis=0) / total
            for level in levels
        ]
    ).reshape(len(levels), *mean.shape)
    return dataclasses.replace(
        rows[0],
        count=total,
        min=np.min([each.min for each in rows], axis=0),
        max=np.max([each.max for each in rows], axis=0),
        mean=mean,
        std=np.sqrt((spread * counts).sum(axis=0) / total),
        quantiles=quantiles,
        levels=levels,
    )
