"""The statistics of episodes in the Parquet files of LeRobot v3: columns "stats/feature/mean"."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping
from typing import Any

from ._host import on_host
from ._statistics_json import count_of, key_of
from ._statistics_result import UNKNOWN, StatisticsResult

_MOMENTS = ("min", "max", "mean", "std")
_COLUMN = re.compile(r"stats/(.+)/(min|max|mean|std|count|q\d\d)")


def files_in(folder: str) -> list[str]:
    """Of a data set, by their numbers."""
    found = glob.glob(os.path.join(glob.escape(folder), "meta", "episodes", "**", "*.parquet"))
    found += glob.glob(os.path.join(glob.escape(folder), "meta", "episodes", "*.parquet"))
    return sorted(set(found), key=lambda path: [int(n) for n in re.findall(r"\d+", path)])


def columns_of(results: Mapping[str, StatisticsResult]) -> dict[str, Any]:
    """Arrow's columns for results of each episode, [E,D]."""
    import pyarrow

    columns: dict[str, Any] = {}
    for name, result in results.items():
        if len(result.mean.shape) != 2:
            raise ValueError(f"results[{name!r}]: are of all episodes together, expected [E,D]")
        for key in _MOMENTS:
            columns[f"stats/{name}/{key}"] = _lists(pyarrow, getattr(result, key))
        counts = [count_of(result.row(e), f"{name}.count") for e in range(result.mean.shape[0])]
        columns[f"stats/{name}/count"] = pyarrow.array(counts, pyarrow.list_(pyarrow.int64()))
        for level in result.levels:
            key = key_of(level, f"{name}.levels")
            columns[f"stats/{name}/{key}"] = _lists(pyarrow, result.quantile(level))
    return columns


def _lists(pyarrow: Any, array: Any) -> Any:
    import numpy as np

    host = np.ascontiguousarray(on_host(array, "results"), np.float64)
    offsets = np.arange(len(host) + 1, dtype=np.int32) * host.shape[1]
    return pyarrow.ListArray.from_arrays(offsets, pyarrow.array(host.reshape(-1)))


def read(paths: list[str]) -> dict[int, dict[str, StatisticsResult]]:
    """Of each episode, by its index."""
    import pyarrow
    import pyarrow.parquet

    episodes: dict[int, dict[str, StatisticsResult]] = {}
    for path in paths:
        try:
            with pyarrow.parquet.ParquetFile(path) as file:
                names = [n for n in file.schema_arrow.names if _COLUMN.fullmatch(n)]
                if "episode_index" not in file.schema_arrow.names:
                    raise ValueError(f"{path}: episode_index: is missing")
                table = file.read(columns=["episode_index", *names])
        except pyarrow.ArrowException as error:
            raise ValueError(f"{path}: is no Parquet file, or damaged: {error}") from None
        indices = table["episode_index"].to_pylist()
        for index in indices:
            if index in episodes:
                raise ValueError(f"{path}: episode_index: is {index} once more")
            episodes[index] = {}
        columns = {name: _array(table[name], f"{path}: {name}") for name in names}
        features = dict.fromkeys(match[1] for match in map(_COLUMN.fullmatch, names) if match)
        for feature in features:
            for index, result in zip(indices, _results(feature, columns, path)):
                episodes[index][feature] = result
    return episodes


def _results(feature: str, columns: dict[str, Any], path: str) -> list[StatisticsResult]:
    """Of one feature, an episode each."""
    import numpy as np

    own = {}
    for name, array in columns.items():
        match = _COLUMN.fullmatch(name)
        if match and match[1] == feature:
            own[match[2]] = array
    for key in (*_MOMENTS, "count"):
        if key not in own:
            raise ValueError(f"{path}: stats/{feature}/{key}: is missing")
    keys = sorted(key for key in own if key.startswith("q"))
    shape = own["mean"].shape
    for key in (*_MOMENTS, *keys):
        if own[key].shape != shape:
            raise ValueError(
                f"{path}: stats/{feature}/{key}: has shape {own[key].shape}, mean has {shape}"
            )
    counts = own["count"][:, 0].astype(np.int64)
    results = []
    for e in range(shape[0]):
        told: dict[str, Any] = {key: own[key][e] for key in _MOMENTS}
        told["count"] = np.full(shape[1:], counts[e], np.int64)
        told["nonfinite"] = np.full(shape[1:], UNKNOWN, np.int64)
        told["quantiles"] = np.empty((0, *shape[1:]))
        if keys:
            told["quantiles"] = np.stack([own[key][e] for key in keys])
        told["levels"] = tuple(int(key[1:]) / 100 for key in keys)
        results.append(StatisticsResult(**told))
    return results


def _array(column: Any, where: str) -> Any:
    """Lists of one length as float64 [E,D]; those of images, (C,1,1), as [C]."""
    import numpy as np
    import pyarrow

    array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(array, pyarrow.ChunkedArray):
        array = pyarrow.array([], column.type)
    rows = len(array)
    while pyarrow.types.is_list(array.type) or pyarrow.types.is_fixed_size_list(array.type):
        if array.null_count:
            raise ValueError(f"{where}: is null in a row")
        array = array.flatten()
    if array.null_count or (rows and len(array) % rows):
        raise ValueError(f"{where}: has lists of different lengths, or null")
    flat = array.cast(pyarrow.float64()) if not pyarrow.types.is_boolean(array.type) else array
    values = np.asarray(flat.to_numpy(zero_copy_only=False), np.float64)
    return values.reshape(rows, -1) if rows else values.reshape(0, 0)
