"""Writing LeRobot v3.0: the low-dimensional part, with exact statistics."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from typing import Any

from .... import statistics_files
from ...._arguments.to_numpy import on_host
from ...._episodes.episodes import Episodes
from ...._printable import printable
from ..._episode_methods import exact_of
from ..._errors import LeftOut, needed
from ..._time_units import per_second
from ..arrays.named_arrays import distinct
from .columns import arrow_of, feature_of, hub_feature, tasks_table
from .places import CHUNK, DATA, EPISODES, FILE_BYTES, place

_TASK = "task_index"
_STAMPS = "robocache.stamps"
_STRAY = 1e-4  # s that a row may differ from its frame: LeRobot's tolerance
_NOMINAL = 2e-4  # of the rate: error of rounded stamps
_CLOSE = 1e-3  # of the rate: difference of mean and median period without dropouts
_OWN = ("timestamp", "frame_index", "episode_index", "index", _TASK, _STAMPS)  # reserved columns


def write(episodes: Any, part: str) -> Collection[LeftOut]:
    """Write episodes as a folder."""
    if not isinstance(episodes, Episodes):
        raise ValueError("format: 'lerobot' needs episodes on one clock; use recording.align(rate)")
    needed("pyarrow.parquet", "lerobot", "a LeRobot data set")
    return _Writer(episodes, part).write()


def nominal_rate(measured: float) -> float:
    """Return the nearest n or n 1000/1001 (as 29.97) to a measured rate, if one is near."""
    whole, broadcast = round(measured), round(measured * 1.001)
    rates = [float(whole), broadcast * 1000 / 1001]
    near = min(rates, key=lambda rate: abs(rate - measured))
    return near if near > 0 and abs(near - measured) <= _NOMINAL * near else measured


class _Writer:
    def __init__(self, episodes: Episodes, part: str) -> None:
        import numpy as np

        self.part = part
        self.left_out: list[LeftOut] = []
        self.tracks: dict[str, Any] = {}
        self.names: dict[str, str] = {}  # of tracks, by feature
        task_tuples = [_words(task) for task in episodes.tasks or [None] * len(episodes)]
        self.task_tuples = task_tuples
        self.tasks = list(dict.fromkeys(task for tasks in task_tuples for task in tasks))
        for task in self.tasks:
            if not task.isprintable() and task != task.encode("utf-8", "replace").decode():
                raise ValueError(
                    f"tasks: {task!r} contains half of a surrogate pair, which Parquet cannot "
                    "store; rename it, or use 'npz'"
                )
        self.has_tasks = episodes.tasks is not None
        tracks = list(episodes.tracks.items())
        plain = [distinct([name])[0] for name, _ in tracks]
        for feature, own, (name, track) in zip(self._features(episodes), plain, tracks):
            if track.values is None:
                self.left_out.append(LeftOut(name, "frames of a video, which is not copied"))
            elif track.num_channels == 0:
                self.left_out.append(LeftOut(name, "no channels"))
            else:
                if track.arrivals is not None:
                    text = "times of arrival, which the format does not have; 'npz' stores them"
                    self.left_out.append(LeftOut(name, text))
                self.tracks[feature] = track
                self.names[feature] = name
                if feature != own and plain.count(own) > 1:
                    text = f"saved as the feature {feature}, because another track is named {own}"
                    self.left_out.append(LeftOut(name, text))
        if not self.tracks:
            raise ValueError("format: 'lerobot' needs a track with values")
        first_name, first = next(iter(self.tracks.items()))
        for name, track in self.tracks.items():
            if not np.array_equal(track.lengths, first.lengths):
                raise ValueError(
                    f"format: 'lerobot' has one clock, but {printable(self.names[name])} "
                    "has other rows than "
                    f"{printable(self.names[first_name])}; align them, or use 'npz'"
                )
        self.lengths = first.lengths
        self.offsets = on_host(first.episode_offsets)
        for e in np.flatnonzero(self.lengths == 0)[:1].tolist():
            raise ValueError(
                f"format: 'lerobot' cannot store empty episodes, and episode {e} is empty; select "
                "the others, or use 'npz'"
            )
        self.times = self._times()
        self.unit = first.time_unit
        self.ticks = self._ticks(episodes.unit)
        self.rate = episodes.rate or self._rate(first)

    def _features(self, episodes: Episodes) -> list[str]:
        """Return the feature name of each track; names of LeRobot's own columns are avoided."""
        names = list(episodes.tracks)
        features = distinct(names, reserved=_OWN)
        if _TASK in names and self._holds_tasks(episodes[_TASK]):
            features[names.index(_TASK)] = _TASK
        return features

    def _holds_tasks(self, track: Any) -> bool:
        """Whether a track has a task of the episode in each row, as LeRobot's column does."""
        if track.values is None or track.num_channels != 1 or track.names is not None:
            return False
        values = on_host(track.values).reshape(-1)
        if values.dtype.name != "int64":
            return False
        offsets = on_host(track.episode_offsets).tolist()
        numbers = {task: number for number, task in enumerate(self.tasks)}
        return all(
            set(values[begin:end].tolist()) <= {numbers[task] for task in tasks}
            for begin, end, tasks in zip(offsets, offsets[1:], self.task_tuples)
        )

    def _rate(self, track: Any) -> float:
        import numpy as np

        rate = track.rate if self.unit else track.rate * self.ticks
        if not rate > 0:
            raise ValueError(
                "format: 'lerobot' needs a frame rate: open the data set with rate=, frames a "
                "second"
            )
        nominal = nominal_rate(float(rate))
        if nominal != rate or self.times is None:
            return nominal
        # Rounded stamps: the mean period is more exact than the median one.
        ends = self.offsets[1:] - 1
        seconds = (self.times[ends] - self.times[self.offsets[:-1]]).astype(np.float64).sum()
        mean = float((self.lengths - 1).sum() / (seconds / self.ticks)) if seconds > 0 else rate
        return nominal_rate(mean) if abs(mean - rate) <= _CLOSE * rate else float(rate)

    def _times(self) -> Any:
        """Return the times that all tracks share, or None."""
        import numpy as np

        timed = [(n, on_host(t.times)) for n, t in self.tracks.items() if t.times is not None]
        for name, times in timed[1:]:
            if not np.array_equal(times, timed[0][1]):
                raise ValueError(
                    f"format: 'lerobot' has one clock, but {printable(self.names[name])} "
                    "has other times than "
                    f"{printable(self.names[timed[0][0]])}; align them, or use 'npz'"
                )
        return timed[0][1] if timed else None

    # ---- columns --------------------------------------------------------------------------------

    def write(self) -> Collection[LeftOut]:
        columns = self._columns()
        features = {name: feature_of(array, names) for name, (array, names) in columns.items()}
        files = self._data(columns, features)
        statistics, by_episode = self._statistics(columns)
        self._meta(features, files, statistics, by_episode)
        return self.left_out

    def _columns(self) -> dict[str, tuple[Any, Any]]:
        """Return all features [n,D] with the names of their channels."""
        import numpy as np

        rows = int(self.offsets[-1])
        columns: dict[str, tuple[Any, Any]] = {}
        for feature, track in self.tracks.items():
            if feature != _TASK:
                columns[feature] = (on_host(track.values), track.names)
        begins = np.repeat(self.offsets[:-1], self.lengths)
        frames = np.arange(rows) - begins
        self._require_even(frames, begins)
        seconds = frames / self.rate
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

    def _require_even(self, frames: Any, begins: Any) -> None:
        """Require even rows: LeRobot assumes that row k of an episode is at time k / fps."""
        import numpy as np

        if self.times is None or len(self.times) == 0:
            return
        apart = self.times - self.times[begins]
        if self.times.dtype.kind != "f":
            apart = apart.astype(np.float64) / self.ticks
        stray = np.abs(apart - frames / self.rate)
        # Stamps that LeRobot wrote are float32.
        limit = _STRAY + np.finfo(np.float32).eps * np.abs(apart)
        if (stray <= limit).all():
            return
        row = int(np.argmax(np.where(stray <= limit, 0.0, np.nan_to_num(stray, nan=np.inf))))
        episode = int(np.searchsorted(self.offsets, row, "right")) - 1
        raise ValueError(
            f"format: 'lerobot' needs rows at an even rate, but row {frames[row]} of episode "
            f"{episode} is {stray[row]:.4g} s from {frames[row]} / {self.rate:g} Hz; resample "
            f"first: align({self.rate:.4g}), or robocache resample --rate "
            f"{self.rate:.4g}"
        )

    def _ticks(self, unit: str | None) -> float:
        """Return the ticks per second of integer times; 1 for an unknown unit, and for floats."""
        if self.times is None or self.times.dtype.kind == "f":
            return 1.0
        own = self.unit[self.unit.index("[") + 1 :].split(",")[0].rstrip("]") if self.unit else unit
        return 1.0 if own is None else per_second(own)

    def _same_stamps(self, seconds: Any) -> bool:
        """Whether LeRobot's float32 stamps hold the times without loss."""
        import numpy as np

        if self.unit is not None or self.times.dtype.kind != "f":
            return False
        return bool(np.array_equal(seconds.astype(np.float32).astype(np.float64), self.times))

    def _task_rows(self) -> Any:
        """Return the task of each row."""
        import numpy as np

        if _TASK in self.tracks:
            return on_host(self.tracks[_TASK].values)[:, 0]
        first = [self.tasks.index(tasks[0]) for tasks in self.task_tuples]
        return np.repeat(np.array(first, np.int64), self.lengths)

    # ---- files ----------------------------------------------------------------------------------

    def _data(self, columns: Any, features: Any) -> list[int]:
        """Write the data files; return the index of the file of each episode."""
        pyarrow = needed("pyarrow", "lerobot", "a LeRobot data set")
        parquet = needed("pyarrow.parquet", "lerobot", "a LeRobot data set")
        arrays = {name: arrow_of(pyarrow, array) for name, (array, _) in columns.items()}
        head = {"info": {"features": {n: hub_feature(f) for n, f in features.items()}}}
        table = pyarrow.table(arrays).replace_schema_metadata({"huggingface": json.dumps(head)})
        row_bytes = max(1, sum(array[:1].nbytes for array, _ in columns.values()))
        file_of, begin, number = [], 0, 0
        for e, end in enumerate(self.offsets[1:].tolist()):
            file_of.append(number)
            last = e + 1 == len(self.lengths)
            if last or (end - begin) * row_bytes >= FILE_BYTES:
                path = self._path(place(DATA, number))
                parquet.write_table(table.slice(begin, end - begin), path, compression="snappy")
                begin, number = end, number + 1
        return file_of

    def _statistics(self, columns: Any) -> tuple[Any, Any]:
        """Return statistics of all rows, and of each episode."""
        from .... import Track

        whole, parts = {}, {}
        for name, (array, _) in columns.items():
            track = Track(array, self.offsets)
            whole[name] = exact_of(track)
            self._require_values(name, whole[name])
            parts[name] = exact_of(track, per_episode=True)
        return whole, parts

    def _require_values(self, feature: str, statistics: Any) -> None:
        """Require finite statistics: LeRobot stores them as JSON, which has no NaN."""
        import numpy as np

        empty = np.flatnonzero(~np.isfinite(on_host(statistics.min))).tolist()
        if empty and len(self.lengths):
            name = self.names.get(feature, feature)
            raise ValueError(
                "format: 'lerobot' needs statistics of all channels, but "
                f"{printable(name)} has no finite value "
                f"in channel {empty[0]}; select the other tracks, or use 'npz'"
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
            "chunks_size": CHUNK,
            "data_files_size_in_mb": 100,
            "video_files_size_in_mb": 500,
            "fps": int(self.rate) if float(self.rate).is_integer() else self.rate,
            "splits": {"train": f"0:{len(self.lengths)}"},
            "data_path": DATA,
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
        kept = {name: result for name, result in statistics.items() if len(self.lengths)}
        statistics_files.write_lerobot(self._path("meta/stats.json"), kept, images=())
        chunks = [[number // CHUNK, number % CHUNK] for number in files]
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
        parquet.write_table(pyarrow.table(columns), self._path(EPISODES))
        parquet.write_table(tasks_table(pyarrow, self.tasks), self._path("meta/tasks.parquet"))

    def _path(self, name: str) -> str:
        path = os.path.join(self.part, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path


def _words(task: Any) -> tuple[str, ...]:
    if isinstance(task, tuple):
        return task or ("",)
    return ("",) if task is None else (task,)
