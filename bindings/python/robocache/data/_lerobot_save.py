"""Writing LeRobot v3.0: the low-dimensional part, with exact statistics."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from typing import Any

from .. import statistics_files
from .._printable import printable
from ._episode_tools import exact_of, host_of
from ._episodes import Episodes
from ._errors import LeftOut, needed
from ._flat import distinct

_FILE = 100 << 20  # bytes of a data file, as LeRobot has it
_CHUNK = 1000  # files in a folder
_DATA = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
_EPISODES = "meta/episodes/chunk-000/file-000.parquet"
_TASK = "task_index"
_STAMPS = "robocache.stamps"
_OWN = ("timestamp", "frame_index", "episode_index", "index", _TASK, _STAMPS)  # of each data set


def write(given: Any, part: str) -> Collection[LeftOut]:
    """Episodes as a folder."""
    if not isinstance(given, Episodes):
        raise ValueError(
            "format: 'lerobot' holds episodes on one clock; recording.align(rate) makes one"
        )
    needed("pyarrow.parquet", "lerobot", "a LeRobot data set")
    return _Writer(given, part).write()


class _Writer:
    def __init__(self, given: Episodes, part: str) -> None:
        import numpy as np

        self.part = part
        self.left_out: list[LeftOut] = []
        self.tracks: dict[str, Any] = {}
        self.names: dict[str, str] = {}  # of features: the track's
        task_tuples = [_words(task) for task in given.tasks or [None] * len(given)]
        self.task_tuples = task_tuples
        self.tasks = list(dict.fromkeys(task for tasks in task_tuples for task in tasks))
        for task in self.tasks:
            if not task.isprintable() and task != task.encode("utf-8", "replace").decode():
                raise ValueError(
                    f"tasks: {task!r} holds half of a surrogate pair, which Parquet cannot hold; "
                    "rename it, or take 'npz'"
                )
        self.has_tasks = given.tasks is not None
        tracks = list(given.tracks.items())
        for feature, (name, track) in zip(self._features(given), tracks):
            if track.values is None:
                self.left_out.append(LeftOut(name, "frames of a video, which stays where it is"))
            elif track.num_channels == 0:
                self.left_out.append(LeftOut(name, "no channels"))
            else:
                self.tracks[feature] = track
                self.names[feature] = name
        if not self.tracks:
            raise ValueError("format: 'lerobot' needs a track with values")
        first_name, first = next(iter(self.tracks.items()))
        for name, track in self.tracks.items():
            if not np.array_equal(track.lengths, first.lengths):
                raise ValueError(
                    f"format: 'lerobot' has one clock, but {printable(self.names[name])} "
                    "has other rows than "
                    f"{printable(self.names[first_name])}; align them, or take 'npz'"
                )
        self.lengths = first.lengths
        self.offsets = host_of(first.episode_offsets)
        for e in np.flatnonzero(self.lengths == 0)[:1].tolist():
            raise ValueError(
                f"format: 'lerobot' has no episodes without rows, but episode {e} is one; select "
                "the others, or take 'npz'"
            )
        self.times = self._times()
        self.rate = given.rate or self._rate(first)
        self.unit = first.time_unit

    def _features(self, given: Episodes) -> list[str]:
        """What each track is called there: not as a column that LeRobot has for itself."""
        names = list(given.tracks)
        features = distinct(names, reserved=_OWN)
        if _TASK in names and self._tells_tasks(given[_TASK]):
            features[names.index(_TASK)] = _TASK
        return features

    def _tells_tasks(self, track: Any) -> bool:
        """Whether it tells for each row a task of its episode, as LeRobot's own column does."""
        if track.values is None or track.num_channels != 1 or track.names is not None:
            return False
        values = host_of(track.values).reshape(-1)
        if values.dtype.name != "int64":
            return False
        offsets = host_of(track.episode_offsets).tolist()
        numbers = {task: number for number, task in enumerate(self.tasks)}
        return all(
            set(values[begin:end].tolist()) <= {numbers[task] for task in tasks}
            for begin, end, tasks in zip(offsets, offsets[1:], self.task_tuples)
        )

    def _rate(self, track: Any) -> float:
        rate = track.rate
        if not rate > 0:
            raise ValueError("format: 'lerobot' needs a rate: data.open(..., rate=) tells it")
        return float(rate)

    def _times(self) -> Any:
        """Those of all tracks, or None."""
        import numpy as np

        told = [(n, host_of(t.times)) for n, t in self.tracks.items() if t.times is not None]
        for name, times in told[1:]:
            if not np.array_equal(times, told[0][1]):
                raise ValueError(
                    f"format: 'lerobot' has one clock, but {printable(self.names[name])} "
                    "has other times than "
                    f"{printable(self.names[told[0][0]])}; align them, or take 'npz'"
                )
        return told[0][1] if told else None

    # ---- columns --------------------------------------------------------------------------------

    def write(self) -> Collection[LeftOut]:
        columns = self._columns()
        features = {name: _feature(array, names) for name, (array, names) in columns.items()}
        files = self._data(columns, features)
        statistics, by_episode = self._statistics(columns)
        self._meta(features, files, statistics, by_episode)
        return self.left_out

    def _columns(self) -> dict[str, tuple[Any, Any]]:
        """Every feature [n,D] with the names of its channels."""
        import numpy as np

        rows = int(self.offsets[-1])
        columns: dict[str, tuple[Any, Any]] = {}
        for feature, track in self.tracks.items():
            if feature != _TASK:
                columns[feature] = (host_of(track.values), track.names)
        begins = np.repeat(self.offsets[:-1], self.lengths)
        frames = np.arange(rows) - begins
        seconds = self._seconds(frames, begins)
        columns["timestamp"] = (seconds.astype(np.float32), None)
        if self.times is not None and not self._same_stamps(seconds):
            columns[_STAMPS] = (self.times, None)
        columns["frame_index"] = (frames, None)
        columns["episode_index"] = (np.repeat(np.arange(len(self.lengths)), self.lengths), None)
        columns["index"] = (np.arange(rows), None)
        columns[_TASK] = (self._task_rows(), None)
        return {
            name: (np.ascontiguousarray(array.reshape(rows, -1)), names)
            for name, (array, names) in columns.items()
        }

    def _seconds(self, frames: Any, begins: Any) -> Any:
        """From the begin of each episode, where its times do not tell seconds from there."""
        import numpy as np

        if self.times is None:
            return frames / self.rate
        if self.times.dtype.kind == "f" and self.unit is None:
            # f32 holds milliseconds of some hours: of larger times the begin is taken off.
            if len(self.times) == 0 or float(np.abs(self.times).max()) < 3600:
                return self.times
            return self.times - self.times[begins.clip(max=len(self.times) - 1)]
        apart = (self.times - self.times[begins.clip(max=max(0, len(self.times) - 1))]).astype("f8")
        per = np.timedelta64(1, "s") / np.ones(1, self._dtype())[0] if self.unit else 1.0
        return apart / float(per)

    def _dtype(self) -> str:
        return (
            "timedelta64"
            + str(self.unit)[str(self.unit).index("[") :].partition(",")[0].rstrip("]")
            + "]"
        )

    def _same_stamps(self, seconds: Any) -> bool:
        """Whether what LeRobot keeps as float32 is all that is known."""
        import numpy as np

        if self.unit is not None or self.times.dtype.kind != "f":
            return False
        return bool(np.array_equal(seconds.astype(np.float32).astype(np.float64), self.times))

    def _task_rows(self) -> Any:
        """Which task each row is of."""
        import numpy as np

        if _TASK in self.tracks:
            return host_of(self.tracks[_TASK].values)[:, 0]
        first = [self.tasks.index(tasks[0]) for tasks in self.task_tuples]
        return np.repeat(np.array(first, np.int64), self.lengths)

    # ---- files ----------------------------------------------------------------------------------

    def _data(self, columns: Any, features: Any) -> list[int]:
        """The data files; for each episode the number of its file."""
        pyarrow = needed("pyarrow", "lerobot", "a LeRobot data set")
        parquet = needed("pyarrow.parquet", "lerobot", "a LeRobot data set")
        arrays = {name: _arrow(pyarrow, array) for name, (array, _) in columns.items()}
        head = {"info": {"features": {n: _hub(f) for n, f in features.items()}}}
        table = pyarrow.table(arrays).replace_schema_metadata({"huggingface": json.dumps(head)})
        row_bytes = max(1, sum(array[:1].nbytes for array, _ in columns.values()))
        file_of, begin, number = [], 0, 0
        for e, end in enumerate(self.offsets[1:].tolist()):
            file_of.append(number)
            last = e + 1 == len(self.lengths)
            if last or (end - begin) * row_bytes >= _FILE:
                path = self._path(_place(number))
                parquet.write_table(table.slice(begin, end - begin), path, compression="snappy")
                begin, number = end, number + 1
        return file_of

    def _statistics(self, columns: Any) -> tuple[Any, Any]:
        """Of all rows, and of each episode."""
        from .. import Track

        whole, parts = {}, {}
        for name, (array, _) in columns.items():
            track = Track(array, self.offsets)
            whole[name] = exact_of(track)
            self._require_values(name, whole[name])
            parts[name] = exact_of(track, per_episode=True)
        return whole, parts

    def _require_values(self, feature: str, statistics: Any) -> None:
        """LeRobot's statistics are JSON, which has no NaN."""
        import numpy as np

        empty = np.flatnonzero(~np.isfinite(host_of(statistics.min))).tolist()
        if empty and len(self.lengths):
            name = self.names.get(feature, feature)
            raise ValueError(
                "format: 'lerobot' has statistics of all channels, but "
                f"{printable(name)} has no finite value "
                f"in channel {empty[0]}; select the other tracks, or take 'npz'"
            )

    def _meta(self, features: Any, files: list[int], statistics: Any, by_episode: Any) -> None:
        pyarrow = needed("pyarrow", "lerobot", "a LeRobot data set")
        parquet = needed("pyarrow.parquet", "lerobot", "a LeRobot data set")
        info = {
            "codebase_version": "v3.0",
            "robot_type": None,
            "total_episodes": len(self.lengths),
            "total_frames": int(self.offsets[-1]),
            "total_tasks": len(self.tasks),
            "chunks_size": _CHUNK,
            "data_files_size_in_mb": 100,
            "video_files_size_in_mb": 500,
            "fps": int(self.rate) if float(self.rate).is_integer() else self.rate,
            "splits": {"train": f"0:{len(self.lengths)}"},
            "data_path": _DATA,
            "video_path": None,
            "features": features,
            "robocache": {
                "names": {f: n for f, n in self.names.items() if f != n},
                "stamps": self.unit,
                "times": self.times is not None,
                "tasks": self.has_tasks,
                "task_index": _TASK in self.tracks,
            },
        }
        with open(self._path("meta/info.json"), "x", encoding="utf-8") as file:
            json.dump(info, file, indent=4)
        kept = {name: of for name, of in statistics.items() if len(self.lengths)}
        statistics_files.write_lerobot(self._path("meta/stats.json"), kept, images=())
        chunks = [[number // _CHUNK, number % _CHUNK] for number in files]
        columns: dict[str, Any] = {
            "episode_index": list(range(len(self.lengths))),
            "tasks": pyarrow.array(
                [list(t) for t in self.task_tuples], pyarrow.list_(pyarrow.string())
            ),
            "length": self.lengths,
            "data/chunk_index": pyarrow.array([c for c, _ in chunks], pyarrow.int64()),
            "data/file_index": pyarrow.array([f for _, f in chunks], pyarrow.int64()),
            "dataset_from_index": self.offsets[:-1],
            "dataset_to_index": self.offsets[1:],
        }
        columns.update(statistics_files.lerobot_episode_columns(by_episode))
        count = len(self.lengths)
        for key in ("meta/episodes/chunk_index", "meta/episodes/file_index"):
            columns[key] = pyarrow.array([0] * count, pyarrow.int64())
        parquet.write_table(pyarrow.table(columns), self._path(_EPISODES))
        parquet.write_table(_tasks(pyarrow, self.tasks), self._path("meta/tasks.parquet"))

    def _path(self, name: str) -> str:
        path = os.path.join(self.part, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path


def _place(number: int) -> str:
    return _DATA.format(chunk_index=number // _CHUNK, file_index=number % _CHUNK)


def _feature(array: Any, names: Any) -> dict[str, Any]:
    return {
        "dtype": array.dtype.name,
        "shape": [int(array.shape[1])],
        "names": None if names is None else list(names),
    }


def _hub(feature: dict[str, Any]) -> dict[str, Any]:
    """A feature as the package datasets has it."""
    value = {"dtype": feature["dtype"], "_type": "Value"}
    if feature["shape"] == [1]:
        return value
    return {"feature": value, "length": feature["shape"][0], "_type": "Sequence"}


def _arrow(pyarrow: Any, array: Any) -> Any:
    flat = pyarrow.array(array.reshape(-1))
    if array.shape[1] == 1:
        return flat
    return pyarrow.FixedSizeListArray.from_arrays(flat, array.shape[1])


def _tasks(pyarrow: Any, tasks: list[str]) -> Any:
    """A table with the tasks as its index, as pandas keeps one."""
    index = "__index_level_0__"
    columns = [
        {
            "name": name,
            "field_name": field,
            "pandas_type": kind,
            "numpy_type": numpy,
            "metadata": None,
        }
        for name, field, kind, numpy in (
            ("task_index", "task_index", "int64", "int64"),
            (None, index, "unicode", "object"),
        )
    ]
    head = {"index_columns": [index], "column_indexes": [], "columns": columns}
    head["pandas_version"] = "2.0.0"
    table = pyarrow.table(
        {
            "task_index": pyarrow.array(range(len(tasks)), pyarrow.int64()),
            index: pyarrow.array(tasks, pyarrow.string()),
        }
    )
    return table.replace_schema_metadata({"pandas": json.dumps(head)})


def _words(task: Any) -> tuple[str, ...]:
    if isinstance(task, tuple):
        return task or ("",)
    return ("",) if task is None else (task,)
