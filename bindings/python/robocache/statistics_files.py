"""Reading and writing of the statistics files of LeRobot, openpi and GR00T.

Reading is strict: an error names the key. Writing replaces a file atomically, and numbers are read
back as the same float64.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from typing import Any

from ._printable import kind_of, printable
from ._statistics import parquet_files as _statistics_parquet
from ._statistics.json_files import (
    Path,
    entry,
    features,
    lerobot_feature,
    lists_of,
    member,
    others_in,
    parsed,
    read_feature,
    replace,
    text_of,
)
from ._statistics.result import StatisticsResult

__all__ = [
    "lerobot_episode_columns",
    "read_gr00t",
    "read_lerobot",
    "read_lerobot_episodes",
    "read_openpi",
    "write_gr00t",
    "write_lerobot",
    "write_lerobot_episodes",
    "write_openpi",
]

_LEROBOT = ("min", "max", "mean", "std", "count")
_GR00T = ("mean", "std", "min", "max", "q01", "q99")


def read_lerobot(path: Path) -> dict[str, StatisticsResult]:
    """Read LeRobot's ``meta/stats.json``.

    Quantiles (q01, q10 and so on) are optional, since older files have none. Arrays (C,1,1) of
    images become [C].

    Parameters
    ----------
    path
        The file, or the folder of the data set.

    Returns
    -------
    dict
        :class:`~robocache.StatisticsResult` by feature.

    Raises
    ------
    ValueError
        The file is not JSON, or a key is missing, has a wrong length, or is not a finite number.
        The message begins with the key.
    TypeError
        The value of a key has a wrong type.
    OSError
        The file cannot be read.
    """
    file = _file(path, "meta/stats.json")
    return {
        name: read_feature(feature, name, _LEROBOT)
        for name, feature in entry(parsed(text_of(file), file), file).items()
    }


def write_lerobot(
    path: Path,
    results: Mapping[str, StatisticsResult],
    *,
    images: Collection[str] | None = None,
    keep: Path | None = None,
) -> None:
    """Write LeRobot's ``meta/stats.json``.

    Parameters
    ----------
    path
        The file, or the folder of the data set.
    results
        :class:`~robocache.StatisticsResult` by feature. LeRobot uses the quantiles of 1, 10, 50, 90
        and 99 %, and expects images from 0 to 1. Its count per feature is the largest number of
        finite values of a channel.
    images
        The features that are images, written as (C,1,1). None: features with "image" in their name,
        as in LeRobot.
    keep
        A file of LeRobot, which may be ``path`` itself: its features that ``results`` does not have
        are written unchanged, such as cameras. None: only ``results`` are written.

    Raises
    ------
    ValueError
        A number is NaN or infinite, or the level of a quantile is not a whole percent.
    TypeError
        ``results`` is not a dict of statistics.
    OSError
        The file cannot be written; the old file is unchanged.
    """
    kept = {} if keep is None else others_in(_file(keep, "meta/stats.json"), results)
    _write(_file(path, "meta/stats.json"), {**kept, **_lerobot(results, images)})


def read_lerobot_episodes(path: Path) -> dict[int, dict[str, StatisticsResult]]:
    """Read LeRobot's statistics of each episode.

    They are in ``meta/episodes_stats.jsonl`` (v2.1), or in the Parquet files of ``meta/episodes``
    (v3), which need pyarrow.

    Parameters
    ----------
    path
        The file, or the folder of the data set.

    Returns
    -------
    dict
        By episode index: a dict of :class:`~robocache.StatisticsResult` by feature.

    Raises
    ------
    ValueError, TypeError, OSError
        As for :func:`read_lerobot`, with the line before the key.
    """
    file = _file(path, "meta/episodes_stats.jsonl")
    if file.endswith(".parquet"):
        return _statistics_parquet.read([file])
    if os.path.isdir(path) and not os.path.exists(file):
        files = _statistics_parquet.files_in(os.fspath(path))
        if files:
            return _statistics_parquet.read(files)
    episodes: dict[int, dict[str, StatisticsResult]] = {}
    for number, line in enumerate(text_of(file).split("\n"), 1):
        if not line.strip():
            continue
        where = f"line {number}"
        episode = entry(parsed(line, f"{printable(file)}: {where}"), where)
        index = member(episode, "episode_index", where)
        if not isinstance(index, int) or isinstance(index, bool) or index < 0:
            raise TypeError(f"{where}.episode_index: is {index!r}, expected an index")
        if index in episodes:
            raise ValueError(f"{where}.episode_index: {index} appears twice")
        stats = entry(member(episode, "stats", where), f"{where}.stats")
        episodes[index] = {
            name: read_feature(feature, f"{where}.stats.{printable(name)}", _LEROBOT)
            for name, feature in stats.items()
        }
    return episodes


def write_lerobot_episodes(
    path: Path,
    episodes: Mapping[int, Mapping[str, StatisticsResult]],
    *,
    images: Collection[str] | None = None,
) -> None:
    """Write the statistics of each episode, ``meta/episodes_stats.jsonl`` of LeRobot v2.1.

    Parameters
    ----------
    path
        The file, or the folder of the data set.
    episodes
        By episode index: a dict of :class:`~robocache.StatisticsResult` by feature. Use
        :meth:`~robocache.StatisticsResult.row` to get the statistics of one row.
    images
        As for :func:`write_lerobot`.

    Raises
    ------
    ValueError, TypeError, OSError
        As for :func:`write_lerobot`.
    """
    if not isinstance(episodes, Mapping):
        raise TypeError(f"episodes: is {kind_of(episodes)}, expected a dict")
    lines = [
        json.dumps({"episode_index": int(index), "stats": _lerobot(results, images)})
        for index, results in episodes.items()
    ]
    replace(_file(path, "meta/episodes_stats.jsonl"), "".join(f"{line}\n" for line in lines))


def lerobot_episode_columns(results: Mapping[str, StatisticsResult]) -> dict[str, Any]:
    """Return the columns for the statistics of episodes in ``meta/episodes`` of LeRobot v3.

    Parameters
    ----------
    results
        :class:`~robocache.StatisticsResult` [E,D] of all episodes by feature, from
        :func:`robocache.statistics` with ``per_row``.

    Returns
    -------
    dict
        Arrays of pyarrow by column name, such as "stats/action/mean".

    Raises
    ------
    ValueError
        Statistics cover all episodes together, a count is unknown, or the level of a quantile is
        not a whole percent.
    """
    return _statistics_parquet.columns_of(results)


def read_openpi(path: Path) -> dict[str, StatisticsResult]:
    """Read openpi's ``norm_stats.json``, which has mean and std, and usually q01 and q99.

    Parameters
    ----------
    path
        The file, or its folder.

    Returns
    -------
    dict
        :class:`~robocache.StatisticsResult` by key. The file has neither counts nor ranges: counts
        are -1, min and max are NaN.

    Raises
    ------
    ValueError, TypeError, OSError
        As for :func:`read_lerobot`.
    """
    file = _file(path, "norm_stats.json")
    top = entry(parsed(text_of(file), file), file)
    keys = entry(member(top, "norm_stats", file), "norm_stats")
    return {
        name: read_feature(each, f"norm_stats.{printable(name)}", ("mean", "std"), ("q01", "q99"))
        for name, each in keys.items()
    }


def write_openpi(path: Path, results: Mapping[str, StatisticsResult]) -> None:
    """Write openpi's ``norm_stats.json``.

    Parameters
    ----------
    path
        The file, or its folder.
    results
        :class:`~robocache.StatisticsResult` by key, such as "state" and "actions". A missing
        quantile of 1 or 99 % is written as null, as in openpi.

    Raises
    ------
    ValueError, TypeError, OSError
        As for :func:`write_lerobot`.
    """
    keys: dict[str, dict[str, object]] = {}
    for name, result in features(results):
        keys[name] = {key: lists_of(getattr(result, key), f"{name}.{key}") for key in _GR00T[:2]}
        for key, level in (("q01", 0.01), ("q99", 0.99)):
            known = level in result.levels
            keys[name][key] = _quantile(result, level, f"{name}.{key}") if known else None
    _write(_file(path, "norm_stats.json"), {"norm_stats": keys}, indent=2)


def read_gr00t(path: Path) -> dict[str, StatisticsResult]:
    """Read GR00T's ``meta/stats.json``, or its file of relative actions.

    Parameters
    ----------
    path
        The file, or the folder of the data set. In ``meta/relative_stats.json`` each step of the
        horizon is a row: [T,D].

    Returns
    -------
    dict
        :class:`~robocache.StatisticsResult` by feature. Counts are -1, since the file has none.

    Raises
    ------
    ValueError, TypeError, OSError
        As for :func:`read_lerobot`.
    """
    file = _file(path, "meta/stats.json")
    return {
        name: read_feature(feature, name, _GR00T, ("q01", "q99"))
        for name, feature in entry(parsed(text_of(file), file), file).items()
    }


def write_gr00t(path: Path, results: Mapping[str, StatisticsResult]) -> None:
    """Write GR00T's ``meta/stats.json``, or its file of relative actions.

    Parameters
    ----------
    path
        The file, or the folder of the data set.
    results
        :class:`~robocache.StatisticsResult` by feature, with the quantiles of 1 and 99 %.

    Raises
    ------
    ValueError, TypeError, OSError
        As for :func:`write_lerobot`.
    """
    written = {}
    for name, result in features(results):
        written[name] = {key: lists_of(getattr(result, key), f"{name}.{key}") for key in _GR00T[:4]}
        written[name]["q01"] = _quantile(result, 0.01, f"{name}.q01")
        written[name]["q99"] = _quantile(result, 0.99, f"{name}.q99")
    _write(_file(path, "meta/stats.json"), written)


def _lerobot(
    results: Mapping[str, StatisticsResult], images: Collection[str] | None
) -> dict[str, Any]:
    return {
        name: lerobot_feature(name, result, "image" in name if images is None else name in images)
        for name, result in features(results)
    }


def _quantile(result: StatisticsResult, level: float, where: str) -> object:
    if level not in result.levels:
        raise ValueError(f"{where}: is unknown, but the file requires it")
    return lists_of(result.quantile(level), where)


def _write(file: str, content: object, indent: int = 4) -> None:
    replace(file, json.dumps(content, indent=indent, allow_nan=False) + "\n")


def _file(path: Path, inside: str) -> str:
    """Return the path of the file, which may be given as its folder."""
    name = os.fspath(path)
    return os.path.join(name, inside) if os.path.isdir(name) else name
