"""The stored statistics of each episode of a LeRobot data set."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .... import statistics_files
from ...._statistics.result import UNKNOWN, StatisticsResult
from ..._errors import reading
from ..tables.parquet import numbers_of, read_table, schema_and_rows, whole_numbers
from .meta import files_of_episodes

if TYPE_CHECKING:
    from ..._file_access import Limit
    from .meta import Info, Plan

_KEY = re.compile(r"min|max|mean|std|count|q\d\d")
_EPISODE = "episode_index"
_LINES = "meta/episodes_stats.jsonl"  # of v2.1


class StatisticsOfEpisodes:
    """Read the stored statistics [E,D] of a track; None if not all episodes have them."""

    def __init__(self, info: Info, plan: Plan, limit: Limit) -> None:
        self.info, self.plan, self.limit = info, plan, limit
        self.lines: Any = None  # content of episodes_stats.jsonl, once it is read

    def __call__(self, track: str) -> StatisticsResult | None:
        renamed = {name: feature for feature, name in self.info.own.names.items()}
        feature = renamed.get(track, track)
        try:
            with reading(self.info.folder.path):
                return self._of_tables(feature) if self.info.is_v3 else self._of_lines(feature)
        except (ValueError, TypeError):  # damaged: there is nothing to compare with
            return None

    def _of_tables(self, feature: str) -> StatisticsResult | None:
        """Read columns "stats/action/mean" of meta/episodes."""
        import numpy as np

        prefix = f"stats/{feature}/"
        parts: list[tuple[Any, dict[str, Any]]] = []
        for name in files_of_episodes(self.info.folder):
            path = self.info.folder.file(name)
            schema, _ = schema_and_rows(path, self.limit)
            there = [each for each in schema.names if each.startswith(prefix)]
            keys = [key for each in there if _KEY.fullmatch(key := each[len(prefix) :])]
            table = read_table(path, [_EPISODE, *(prefix + key for key in keys)], (), self.limit)
            columns = {
                key: numbers_of(path, prefix + key, table[prefix + key]).reshape(len(table), -1)
                for key in keys
            }
            parts.append((whole_numbers(path, table, _EPISODE), columns))
        keys_of = [set(columns) for _, columns in parts]
        if not parts or any(keys != keys_of[0] for keys in keys_of) or "count" not in keys_of[0]:
            return None
        numbers = np.concatenate([numbers for numbers, _ in parts])
        order = np.argsort(numbers, kind="stable")
        if not np.array_equal(numbers[order], self.plan.numbers):
            return None
        return _result(
            {key: np.concatenate([own[key] for _, own in parts])[order] for key in keys_of[0]}
        )

    def _of_lines(self, feature: str) -> StatisticsResult | None:
        """Read lines of episodes_stats.jsonl."""
        import numpy as np

        if self.lines is None:
            if not self.info.folder.has(_LINES):
                return None
            file = self.info.folder.file(_LINES)
            self.lines = statistics_files.read_lerobot_episodes(file)
        numbers = self.plan.numbers.tolist()
        if any(feature not in self.lines.get(number, ()) for number in numbers) or not numbers:
            return None
        results = [self.lines[number][feature] for number in numbers]
        levels = results[0].levels
        if any(result.levels != levels for result in results):
            levels = ()
        columns = {
            key: np.stack([getattr(result, key) for result in results])
            for key in ("min", "max", "mean", "std")
        }
        columns["count"] = np.array([[int(np.max(result.count))] for result in results])
        for level in levels:
            rows = [result.quantile(level) for result in results]
            columns[f"q{round(100 * level):02d}"] = np.stack(rows)
        return _result(columns)


def _result(columns: dict[str, Any]) -> StatisticsResult | None:
    """Return statistics [E,D] of columns by key; statistics that are not stored are NaN."""
    import numpy as np

    count = columns.pop("count")
    shapes = {each.shape for each in columns.values()}
    if len(shapes) != 1 or count.shape[1] != 1:
        return None
    (shape,) = shapes
    keys = sorted(key for key in columns if key[0] == "q")
    none = np.full(shape, np.nan)
    quantiles = [columns[key] for key in keys]
    return StatisticsResult(
        count=np.broadcast_to(count.astype(np.int64), shape),
        nonfinite=np.full(shape, UNKNOWN, np.int64),
        min=columns.get("min", none),
        max=columns.get("max", none),
        mean=columns.get("mean", none),
        std=columns.get("std", none),
        quantiles=np.stack(quantiles, axis=1) if keys else np.zeros((shape[0], 0, shape[1])),
        levels=tuple(int(key[1:]) / 100 for key in keys),
    )
