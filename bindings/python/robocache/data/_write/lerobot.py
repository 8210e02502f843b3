"""LeRobot v3.0 and v2.1, episode by episode, with videos or pictures and exact statistics."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import shutil
from collections.abc import Collection, Iterator
from typing import Any

from ... import Track, __version__, statistics_files
from ..._statistics.pieces import exact_of_pieces
from ..._statistics.result import StatisticsResult
from .._episode_methods import LEVELS, exact_of
from .._errors import LeftOut, needed
from .._formats.lerobot.columns import arrow_of, feature_of, hub_feature, tasks_table
from .._formats.lerobot.places import (
    CHUNK,
    DATA,
    DATA_V2,
    EPISODES,
    FILE_BYTES,
    SOURCES,
    VIDEO,
    VIDEO_MIB,
    VIDEO_V2,
    place,
)
from . import video
from .dataset import DataSet, cameras_of, even_times, numbers_of
from .formats import Options, require_names
from .image_statistics import statistics_of


def write(data: DataSet, part: str, options: Options) -> Collection[LeftOut]:
    """Write a data set as a folder."""
    needed("pyarrow.parquet", "lerobot", "a LeRobot data set")
    require_names(options.format, data.features)
    for feature in data.features.values():
        if feature.dtype == "float16":
            raise ValueError(f"dtype: LeRobot cannot store float16 ({feature.name}); use float32")
    return _Writer(data, part, options).write()


class _Writer:
    def __init__(self, data: DataSet, part: str, options: Options) -> None:
        self.data, self.part, self.options = data, part, options
        self.is_v3 = options.format == "lerobot"
        self.data_path = DATA if self.is_v3 else DATA_V2
        self.video_path = VIDEO if self.is_v3 else VIDEO_V2
        words = [task or ("",) for task in data.tasks]
        self.task_tuples = words
        self.tasks = list(dict.fromkeys(task for tasks in words for task in tasks))
        numbers = {task: number for number, task in enumerate(self.tasks)}
        self.task_of = [numbers[tasks[0]] for tasks in words]
        self.begins = [0, *itertools.accumulate(data.lengths)]
        self.videos = [
            feature.name for feature in cameras_of(data) if data.video(0, feature.name) is not None
        ]
        self.file_of: list[int] = []
        self.rate = float(data.rate or 0)

    def write(self) -> Collection[LeftOut]:
        features = self._features()
        self._data(features)
        for e in range(len(self.data.lengths)):
            for name in self.videos:
                self._video(e, name)
        results, by_episode = self._statistics()
        statistics_files.write_lerobot(
            self._path("meta/stats.json"), results, images=[f.name for f in cameras_of(self.data)]
        )
        self._info(features)
        if self.is_v3:
            self._episodes_v3(by_episode)
        else:
            self._episodes_v2(by_episode)
        about = [self.data.about(e) for e in range(len(self.data.lengths))]
        with open(self._path(SOURCES), "x", encoding="utf-8") as file:
            json.dump({"robocache": __version__, "episodes": about}, file, indent=1)
        return ()

    # ---- features -------------------------------------------------------------------------------

    def _features(self) -> dict[str, dict[str, Any]]:
        features: dict[str, dict[str, Any]] = {}
        for feature in self.data.features.values():
            if not feature.is_camera:
                features[feature.name] = {
                    "dtype": feature.dtype,
                    "shape": list(feature.shape),
                    "names": None if feature.channels is None else list(feature.channels),
                }
                continue
            is_video = feature.name in self.videos
            features[feature.name] = {
                "dtype": "video" if is_video else "image",
                "shape": list(feature.shape),
                "names": ["height", "width", "channels"],
            }
            if is_video:
                path = self.data.video(0, feature.name)
                features[feature.name]["info"] = video.facts_of(path or "")
        for name, (array, names) in self._own(0).items():
            features[name] = feature_of(array.reshape(len(array), -1), names)
        return features

    def _own(self, episode: int) -> dict[str, tuple[Any, None]]:
        """Return LeRobot's own columns of an episode."""
        import numpy as np

        rows = self.data.lengths[episode]
        frames = np.arange(rows)
        return {
            "timestamp": (even_times(self.rate, rows).astype(np.float32), None),
            "frame_index": (frames, None),
            "episode_index": (np.full(rows, episode, np.int64), None),
            "index": (self.begins[episode] + frames, None),
            "task_index": (np.full(rows, self.task_of[episode], np.int64), None),
        }

    # ---- files ----------------------------------------------------------------------------------

    def _data(self, features: dict[str, dict[str, Any]]) -> None:
        """Write the data files, a group of rows for each episode."""
        pyarrow = needed("pyarrow", "lerobot", "a LeRobot data set")
        parquet = needed("pyarrow.parquet", "lerobot", "a LeRobot data set")
        head = {name: _hub(feature) for name, feature in features.items()}
        text = json.dumps({"info": {"features": {n: h for n, h in head.items() if h}}})
        writer: Any = None
        number = 0
        try:
            for e in range(len(self.data.lengths)):
                table = self._table(pyarrow, e).replace_schema_metadata({"huggingface": text})
                if writer is None:
                    path = self._path(place(self.data_path, number if self.is_v3 else e))
                    writer = parquet.ParquetWriter(path, table.schema, compression="snappy")
                writer.write_table(table)
                self.file_of.append(number)
                if not self.is_v3 or os.path.getsize(path) >= FILE_BYTES:
                    writer.close()
                    writer, number = None, number + 1
        finally:
            if writer is not None:
                writer.close()

    def _table(self, pyarrow: Any, episode: int) -> Any:
        import numpy as np

        rows = self.data.lengths[episode]
        values = self.data.rows(episode)
        arrays = {}
        for feature in self.data.features.values():
            if not feature.is_camera:
                arrays[feature.name] = arrow_of(pyarrow, values[feature.name])
            elif feature.name not in self.videos:
                own = [
                    {"bytes": content, "path": None}
                    for content in self.data.pictures(episode, feature.name)
                ]
                kind = [("bytes", pyarrow.binary()), ("path", pyarrow.string())]
                arrays[feature.name] = pyarrow.array(own, pyarrow.struct(kind))
        for name, (array, _) in self._own(episode).items():
            arrays[name] = arrow_of(pyarrow, np.ascontiguousarray(array.reshape(rows, 1)))
        return pyarrow.table(arrays)

    def _video(self, episode: int, name: str) -> None:
        path = self._path(place(self.video_path, episode, name))
        source = self.data.video(episode, name)
        if source is None:
            raise ValueError(f"{name}: episode {episode} has pictures, others videos")
        try:
            os.link(source, path)
        except OSError:  # another file system, or one without links
            shutil.copyfile(source, path)

    def _path(self, name: str) -> str:
        path = os.path.join(self.part, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    # ---- statistics -----------------------------------------------------------------------------

    def _statistics(self) -> tuple[dict[str, StatisticsResult], list[dict[str, StatisticsResult]]]:
        """Return the statistics of all rows, and of each episode."""
        import numpy as np

        count = len(self.data.lengths)
        by_episode: list[dict[str, StatisticsResult]] = [
            {name: _of_rows(array) for name, array in self._numbers(e)} for e in range(count)
        ]

        def read(names: Collection[str]) -> Iterator[tuple[str, Any]]:
            for e in range(count):
                yield from ((name, rows) for name, rows in self._numbers(e) if name in names)

        found = exact_of_pieces(read, list(by_episode[0]), LEVELS)
        whole = {name: _finite(name, found[name]) for name in by_episode[0]}
        for camera in cameras_of(self.data):
            levels = [self.data.levels(e, camera.name) for e in range(count)]
            sampled = [self.data.sampled(e) for e in range(count)]
            whole[camera.name] = statistics_of(np.sum(levels, axis=0), sum(sampled))
            for e in range(count):
                by_episode[e][camera.name] = statistics_of(levels[e], sampled[e])
        return whole, by_episode

    def _numbers(self, episode: int) -> Iterator[tuple[str, Any]]:
        import numpy as np

        values = self.data.rows(episode)
        for feature in numbers_of(self.data):
            yield feature.name, values[feature.name]
        for name, (array, _) in self._own(episode).items():
            yield name, np.ascontiguousarray(array.reshape(-1, 1))

    # ---- metadata -------------------------------------------------------------------------------

    def _info(self, features: dict[str, dict[str, Any]]) -> None:
        count = len(self.data.lengths)
        files = max(self.file_of, default=-1) + 1
        info: dict[str, Any] = {
            "codebase_version": "v3.0" if self.is_v3 else "v2.1",
            "robot_type": self.options.robot,
            "total_episodes": count,
            "total_frames": sum(self.data.lengths),
            "total_tasks": len(self.tasks),
            "chunks_size": CHUNK,
            "fps": int(self.rate) if self.rate.is_integer() else self.rate,
            "splits": {"train": f"0:{count}"},
            "data_path": self.data_path,
            "video_path": self.video_path if self.videos else None,
            "features": features,
            "robocache": {"tasks": any(self.tasks), "task_index": False},
        }
        if self.is_v3:
            info.update(data_files_size_in_mb=FILE_BYTES >> 20, video_files_size_in_mb=VIDEO_MIB)
        else:
            info.update(
                total_videos=count * len(self.videos), total_chunks=(files + CHUNK - 1) // CHUNK
            )
        with open(self._path("meta/info.json"), "x", encoding="utf-8") as file:
            json.dump(info, file, indent=4)

    def _episodes_v3(self, by_episode: list[dict[str, StatisticsResult]]) -> None:
        import numpy as np

        pyarrow = needed("pyarrow", "lerobot", "a LeRobot data set")
        parquet = needed("pyarrow.parquet", "lerobot", "a LeRobot data set")
        count = len(self.data.lengths)
        lengths = np.array(self.data.lengths, np.int64)
        ends = np.cumsum(lengths)
        files = np.array(self.file_of, np.int64)
        columns: dict[str, Any] = {
            "episode_index": np.arange(count),
            "tasks": pyarrow.array(self.task_tuples, pyarrow.list_(pyarrow.string())),
            "length": lengths,
            "data/chunk_index": files // CHUNK,
            "data/file_index": files % CHUNK,
            "dataset_from_index": ends - lengths,
            "dataset_to_index": ends,
        }
        for name in self.videos:
            columns[f"videos/{name}/chunk_index"] = np.arange(count) // CHUNK
            columns[f"videos/{name}/file_index"] = np.arange(count) % CHUNK
            columns[f"videos/{name}/from_timestamp"] = np.zeros(count)
            columns[f"videos/{name}/to_timestamp"] = lengths / self.rate
        cameras = [feature.name for feature in cameras_of(self.data)]
        stacked = {
            name: _stacked([each[name] for each in by_episode])
            for name in by_episode[0]
            if name not in cameras
        }
        columns.update(statistics_files.lerobot_episode_columns(stacked))
        for name in cameras:
            columns.update(image_columns(pyarrow, name, [each[name] for each in by_episode]))
        for key in ("meta/episodes/chunk_index", "meta/episodes/file_index"):
            columns[key] = np.zeros(count, np.int64)
        parquet.write_table(pyarrow.table(columns), self._path(EPISODES))
        parquet.write_table(tasks_table(pyarrow, self.tasks), self._path("meta/tasks.parquet"))

    def _episodes_v2(self, by_episode: list[dict[str, StatisticsResult]]) -> None:
        with open(self._path("meta/episodes.jsonl"), "x", encoding="utf-8") as file:
            for e, (tasks, length) in enumerate(zip(self.task_tuples, self.data.lengths)):
                entry = {"episode_index": e, "tasks": list(tasks), "length": length}
                file.write(json.dumps(entry) + "\n")
        with open(self._path("meta/tasks.jsonl"), "x", encoding="utf-8") as file:
            for number, task in enumerate(self.tasks):
                file.write(json.dumps({"task_index": number, "task": task}) + "\n")
        statistics_files.write_lerobot_episodes(
            self._path("meta/episodes_stats.jsonl"),
            dict(enumerate(by_episode)),
            images=[feature.name for feature in cameras_of(self.data)],
        )


def _hub(feature: dict[str, Any]) -> dict[str, Any]:
    """Return a feature in the notation of the package datasets; empty for a video."""
    if feature["dtype"] == "image":
        return {"_type": "Image"}
    return {} if feature["dtype"] == "video" else hub_feature(feature)


def _of_rows(array: Any) -> StatisticsResult:
    """Return the exact statistics of the rows of an episode."""
    return exact_of(Track(array, [0, len(array)]))


def _finite(name: str, result: StatisticsResult) -> StatisticsResult:
    """Require finite statistics: LeRobot stores them as JSON, which has no NaN."""
    import numpy as np

    empty = np.flatnonzero(~np.isfinite(result.min)).tolist()
    if empty:
        raise ValueError(
            f"format: LeRobot needs statistics of all channels, but {name} has no finite value in "
            f"channel {empty[0]}; choose its other channels"
        )
    return result


def _stacked(results: list[StatisticsResult]) -> StatisticsResult:
    """Return the statistics [E,D] of E episodes."""
    import numpy as np

    arrays: dict[str, Any] = {}
    for name in ("count", "nonfinite", "min", "max", "mean", "std", "quantiles"):
        arrays[name] = np.stack([getattr(result, name) for result in results])
    return dataclasses.replace(results[0], **arrays)


def image_columns(pyarrow: Any, name: str, results: list[StatisticsResult]) -> dict[str, Any]:
    """Return the statistics of a camera as columns: lists of shape (3,1,1), and the counts."""
    nested = pyarrow.list_(pyarrow.list_(pyarrow.list_(pyarrow.float64())))
    columns: dict[str, Any] = {}
    values = {key: [getattr(r, key) for r in results] for key in ("min", "max", "mean", "std")}
    for level in results[0].levels:
        if not all(level in result.levels for result in results):
            continue
        values[f"q{round(100 * level):02d}"] = [result.quantile(level) for result in results]
    for key, rows in values.items():
        lists = [[[[float(value)]] for value in row] for row in rows]
        columns[f"stats/{name}/{key}"] = pyarrow.array(lists, nested)
    counts = [[int(result.count[0])] for result in results]
    columns[f"stats/{name}/count"] = pyarrow.array(counts, pyarrow.list_(pyarrow.int64()))
    return columns
