"""Statistics of episodes in the Parquet files of LeRobot v3: columns "stats/feature/mean"."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from .._arguments.to_numpy import on_host
from .json_files import count_of, key_of
from .result import UNKNOWN, StatisticsResult

_MOMENTS = ("min", "max", "mean", "std")
COLUMN = re.compile(r"stats/(.+)/(min|max|mean|std|count|q\d\d)")


def files_in(folder: str) -> list[str]:
    """Return the Parquet files of episodes in a data set, sorted by their numbers."""
    from ..data._file_access import walked

    top = os.path.join(folder, "meta", "episodes")
    found = [
        os.path.join(base, name)
        for base, _, names in (walked(top) if os.path.isdir(top) else ())
        for name in names
        if name.endswith(".parquet")
    ]
    return sorted(found, key=lambda path: [int(n) for n in re.findall(r"\d+", path[len(top) :])])


def columns_of(results: Mapping[str, StatisticsResult]) -> dict[str, Any]:
    """Return pyarrow columns for the results [E,D] of episodes."""
    import pyarrow

    columns: dict[str, Any] = {}
    for name, result in results.items():
        if len(result.mean.shape) != 2:
            raise ValueError(
                f"results[{name!r}]: cover all episodes together, expected [E,D] (per_row=True)"
            )
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
    """Read the statistics of episodes, by index and feature."""
    from ..data._formats.tables.parquet import read_table, schema_and_rows, whole_numbers

    episodes: dict[int, dict[str, StatisticsResult]] = {}
    for path in paths:
        schema, _ = schema_and_rows(path)
        names = [name for name in schema.names if COLUMN.fullmatch(name)]
        if "episode_index" not in schema.names:
            raise ValueError(f"{path}: episode_index: is missing")
        table = read_table(path, ["episode_index", *names])
        indices = whole_numbers(path, table, "episode_index").tolist()
        for index in indices:
            if index in episodes:
                raise ValueError(f"{path}: episode_index: {index} appears twice")
            episodes[index] = {}
        features: dict[str, dict[str, Any]] = {}
        for name in names:
            match = COLUMN.fullmatch(name)
            if match:
                own = features.setdefault(match[1], {})
                own[match[2]] = _array(path, name, table[name])
        for feature, columns in features.items():
            for index, result in zip(indices, _results(feature, columns, path)):
                episodes[index][feature] = result
    return episodes


def _results(feature: str, own: dict[str, Any], path: str) -> list[StatisticsResult]:
    """Return the statistics of one feature, one result per episode."""
    import numpy as np

    for key in (*_MOMENTS, "count"):
        if key not in own:
            raise ValueError(f"{path}: stats/{feature}/{key}: is missing")
    keys = sorted(key for key in own if key.startswith("q"))
    shape = own["mean"].shape
    for key in (*_MOMENTS, *keys):
        if own[key].shape != shape:
            raise ValueError(
                f"{path}: stats/{feature}/{key}: shape is {own[key].shape}, "
                f"expected {shape} as for mean"
            )
    counts = _counts(path, f"stats/{feature}/count", own["count"])
    results = []
    for e in range(shape[0]):
        fields: dict[str, Any] = {key: own[key][e] for key in _MOMENTS}
        fields["count"] = np.full(shape[1:], counts[e], np.int64)
        fields["nonfinite"] = np.full(shape[1:], UNKNOWN, np.int64)
        fields["quantiles"] = np.empty((0, *shape[1:]))
        if keys:
            fields["quantiles"] = np.stack([own[key][e] for key in keys])
        fields["levels"] = tuple(int(key[1:]) / 100 for key in keys)
        results.append(StatisticsResult(**fields))
    return results


def _array(path: str, name: str, column: Any) -> Any:
    """Return a column of lists as float64 [E,D]; lists (C,1,1) of images become [C]."""
    import numpy as np

    from ..data._formats.tables.parquet import numbers_of

    values = numbers_of(path, name, column)
    rows = len(values)
    return values.reshape(rows, -1).astype(np.float64) if rows else np.zeros((0, 0))


def _counts(path: str, name: str, values: Any) -> Any:
    """Return the count of each episode: int64 [E]."""
    import numpy as np

    if len(values) and values.shape[1] != 1:
        raise ValueError(
            f"{path}: {name}: has {values.shape[1]} numbers per row, expected 1 (a count)"
        )
    counts = values.reshape(-1)
    fits = (counts >= 0) & (counts < 2.0**53) & (counts == np.floor(counts))
    if not fits.all():
        row = int(np.argmin(fits))
        raise ValueError(
            f"{path}: {name}, row {row}: is {counts[row]}, expected a whole number, 0 or more"
        )
    return counts.astype(np.int64)
