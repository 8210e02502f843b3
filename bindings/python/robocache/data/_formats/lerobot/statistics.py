"""The statistics that a LeRobot data set holds: of all rows, and of each episode."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .... import statistics_files
from ..._checks.statistics import EpisodeQuantiles
from ..._errors import Damage, FormatError, reading
from ..._file_access import Folder, Limit
from ..tables.parquet import numbers_of, read_table, schema_and_rows, whole_numbers
from .meta import files_of_episodes

if TYPE_CHECKING:
    from .meta import Info, Plan

_LEVEL = re.compile(r"q(\d\d)")
_EPISODE = "episode_index"
_LINES = "meta/episodes_stats.jsonl"  # of v2.1


def stored_statistics(folder: Folder, damage: Damage) -> dict[str, Any]:
    """Those of all rows, :class:`robocache.StatisticsResult` by feature; empty without a file."""
    name = "meta/stats.json"
    if not folder.has(name):
        return {}
    folder.require_inside(name)
    file = folder.place(name)
    try:
        return statistics_files.read_lerobot(file)
    except (ValueError, TypeError) as error:
        text = error.reason if isinstance(error, FormatError) else str(error)
        damage.found(file, "", text)
        return {}


class QuantilesOfEpisodes:
    """Reads the quantiles of the episodes of one track; None if there are none for all."""

    def __init__(self, info: Info, plan: Plan, limit: Limit) -> None:
        self.info, self.plan, self.limit = info, plan, limit
        self.lines: Any = None  # of episodes_stats.jsonl, once they are read

    def __call__(self, track: str) -> EpisodeQuantiles | None:
        renamed = {name: feature for feature, name in self.info.own.names.items()}
        feature = renamed.get(track, track)
        try:
            with reading(self.info.folder.path):
                return self._of_tables(feature) if self.info.is_v3 else self._of_lines(feature)
        except (ValueError, TypeError):  # damaged: nothing can be compared with them
            return None

    def _of_tables(self, feature: str) -> EpisodeQuantiles | None:
        """Columns "stats/action/q01" of meta/episodes."""
        import numpy as np

        prefix = f"stats/{feature}/"
        parts: list[tuple[Any, dict[str, Any]]] = []
        for name in files_of_episodes(self.info.folder):
            path = self.info.folder.file(name)
            schema, _ = schema_and_rows(path, self.limit)
            there = [each for each in schema.names if each.startswith(prefix)]
            keys = [each[len(prefix) :] for each in there]
            wanted = [key for key in keys if key == "count" or _LEVEL.fullmatch(key)]
            table = read_table(path, [_EPISODE, *(prefix + key for key in wanted)], (), self.limit)
            columns = {
                key: numbers_of(path, prefix + key, table[prefix + key]).reshape(len(table), -1)
                for key in wanted
            }
            parts.append((whole_numbers(path, table, _EPISODE), columns))
        keys_of = [set(columns) for _, columns in parts]
        if not parts or any(keys != keys_of[0] for keys in keys_of) or "count" not in keys_of[0]:
            return None
        numbers = np.concatenate([numbers for numbers, _ in parts])
        order = np.argsort(numbers, kind="stable")
        if not np.array_equal(numbers[order], self.plan.numbers):
            return None
        whole = {
            key: np.concatenate([columns[key] for _, columns in parts])[order] for key in keys_of[0]
        }
        counts = whole.pop("count")
        levels = {key: (int(key[1:]) / 100, each) for key, each in sorted(whole.items())}
        return EpisodeQuantiles(counts[:, 0], levels) if levels and counts.shape[1] == 1 else None

    def _of_lines(self, feature: str) -> EpisodeQuantiles | None:
        """Lines of episodes_stats.jsonl."""
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
        if not levels or any(result.levels != levels for result in results):
            return None
        counts = np.array([int(np.max(result.count)) for result in results])
        quantiles = np.stack([result.quantiles for result in results])
        return EpisodeQuantiles(
            counts,
            {
                f"q{round(100 * level):02d}": (level, quantiles[:, i])
                for i, level in enumerate(levels)
            },
        )
