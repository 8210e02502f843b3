"""Writing of an edited data set: the rows of each episode, and what ``meta`` says about them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ... import __version__
from .._errors import FormatError, LeftOut, needed, reading
from .._file_access import json_object, walked
from .._formats.lerobot.checks import words_of_tasks
from .._formats.lerobot.columns import hub_feature, tasks_table
from .._formats.lerobot.frames import content_of
from .._formats.lerobot.places import (
    CHUNK,
    DATA,
    EPISODES,
    FILE_BYTES,
    SOURCES,
    VIDEO,
    VIDEO_MIB,
    place,
)
from .._formats.lerobot.stored_statistics import DataSet
from .._frames.picture_decoder import PictureDecoder
from .._progress import progress as shown
from .._write import pictures
from .._write.resize import resized_shape
from .choices import COUNTERS, Changes, Cut
from .statistics import write_statistics
from .videos import Videos

_OLD = ("total_videos", "total_chunks")  # entries of info.json in v2
_EPISODE, _TASK = "episode_index", "task_index"
_STAMPS = "robocache.stamps"  # times that float32 cannot hold, written by save
_KNOWN = (
    *("data/", "videos/", "images/", "meta/episodes", "meta/tasks.", "meta/info.json"),
    *("meta/stats.json", "meta/episodes_stats", SOURCES, ".cache/", ".git"),
)


@dataclass
class Written:
    """Notes about a data set that was written, and what is not in it."""

    notes: list[str] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)


def write(
    sets: Sequence[DataSet],
    cuts: Sequence[Cut],
    changes: Changes,
    part: str,
    progress: bool | None,
) -> Written:
    """Write a data set of some episodes."""
    os.mkdir(part)
    return _Writer(sets, cuts, changes, part, progress).write()


class _Writer:
    def __init__(
        self,
        sets: Sequence[DataSet],
        cuts: Sequence[Cut],
        changes: Changes,
        part: str,
        progress: bool | None,
    ) -> None:
        self.sets, self.cuts, self.changes, self.part = sets, cuts, changes, part
        self.features, self.progress = changes.features, progress
        self.info = sets[0].info
        self.rate = float(self.info.fps or 0)
        self.words = [_words(each) for each in sets]
        self.tasks: dict[str, int] = {}  # numbers of the output, by text
        self.tasks_of: list[list[str]] = []  # of each episode
        self.file_of: list[int] = []
        self.done = Written()
        self.loaded: tuple[int, int] | None = None  # source and file of the table in memory
        self.table: Any = None

    def write(self) -> Written:
        videos = Videos(
            self.sets, self.cuts, self.rate, self._video_path, self.changes, self.done.notes
        )
        cameras = {n: o for n, o in self.features.items() if self.info.features[o].is_video}
        for own in cameras.values():
            videos.require(own)
        with shown("Editing", len(self.cuts), self.progress, "episodes") as advance:
            self._data(cameras, advance)
        columns: dict[str, Any] = {}
        described: dict[str, dict[str, Any]] = {}
        for name, own in cameras.items():
            places, described[name] = videos.write(name, own)
            columns.update(places)
        self._info(described)
        self._episodes(columns)
        self.done.notes += write_statistics(
            self.sets, self.cuts, self.changes, self.part, self.progress
        )
        self._sources()
        self._list_left_out()
        return self.done

    def _path(self, name: str) -> str:
        path = os.path.join(self.part, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def _video_path(self, camera: str, number: int) -> str:
        return self._path(place(VIDEO, number, camera))

    # ---- rows -----------------------------------------------------------------------------------

    def _data(self, cameras: Mapping[str, str], advance: Any) -> None:
        """Write the data files, a group of rows for each episode."""
        parquet = needed("pyarrow.parquet", "lerobot", "a LeRobot data set")
        writer: Any = None
        schema: Any = None
        number = begin = 0
        try:
            for e, cut in enumerate(self.cuts):
                table = self._rows(e, cut, begin, cameras)
                schema = table.schema.with_metadata(self._hub()) if schema is None else schema
                try:
                    table = table.cast(schema)
                except ValueError as error:
                    path = self.sets[cut.source].info.folder.path
                    raise FormatError(path, "", f"has columns of other types: {error}") from None
                if writer is None:
                    path = self._path(place(DATA, number))
                    writer = parquet.ParquetWriter(path, schema, compression="snappy")
                writer.write_table(table)
                self.file_of.append(number)
                begin += cut.rows
                if os.path.getsize(path) >= FILE_BYTES:
                    writer.close()
                    writer, number = None, number + 1
                advance(1)
        finally:
            if writer is not None:
                writer.close()
        self.table = None

    def _rows(self, episode: int, cut: Cut, begin: int, cameras: Mapping[str, str]) -> Any:
        """Return the rows of an episode under the new names, with the new numbers."""
        import numpy as np

        pyarrow = needed("pyarrow", "lerobot", "a LeRobot data set")
        whole = self._whole(cut)
        table = whole.slice(cut.begin, cut.rows)
        rows = np.arange(cut.rows)
        new: dict[str, Any] = {
            "frame_index": rows,
            _EPISODE: np.full(cut.rows, episode),
            "index": rows + begin,
        }
        if not cut.is_whole:
            new["timestamp"] = (rows / self.rate).astype(np.float32)
            new[_STAMPS] = self._moved_stamps(cut, whole, table)
        new[_TASK] = self._task_rows(cut, table)
        columns = {}
        for name, own in self.features.items():
            if name in cameras:
                continue
            column = table[own]
            if own in self.changes.resizes:
                column = self._pictures(cut, own, column)
            if new.get(own) is not None:
                column = pyarrow.array(new[own].astype(column.type.to_pandas_dtype()))
            columns[name] = column
        return pyarrow.table(columns)

    def _pictures(self, cut: Cut, feature: str, column: Any) -> Any:
        """Return a column of pictures in their new size, as PNG."""
        pyarrow = needed("pyarrow", "lerobot", "a LeRobot data set")
        source, resize = self.sets[cut.source], self.changes.resizes[feature]
        path = source.info.folder.file(source.plan.files[int(source.plan.file_of[cut.episode])])
        decoder = PictureDecoder("RGB")
        kind = column.type
        cells: list[Any] = []
        for row, cell in enumerate(column.to_pylist()):
            content = content_of(source.info, path, cut.begin + row, cell)
            try:
                encoded = pictures.png(resize(decoder.rgb(content)))
            except ValueError as error:
                place = f"episode {source.plan.numbers[cut.episode]}, row {cut.begin + row}"
                raise FormatError(path, place, f"{feature} {error}") from None
            cells.append(encoded)
            if pyarrow.types.is_struct(kind):
                name = os.path.splitext(os.path.basename(cell.get("path") or ""))[0]
                cells[-1] = {"bytes": encoded, "path": f"{name}.png" if name else None}
        return pyarrow.array(cells, kind)

    def _moved_stamps(self, cut: Cut, whole: Any, table: Any) -> Any:
        """Return times that begin where the whole episode began; dates do not change."""
        own = self.sets[cut.source].info.own.stamps
        if _STAMPS not in table.column_names or (own or "").startswith("datetime64"):
            return None
        stamps = table[_STAMPS].to_numpy()
        return stamps - stamps[0] + whole[_STAMPS][0].as_py()

    def _task_rows(self, cut: Cut, table: Any) -> Any:
        """Return the task of each row in the output; note the tasks of the episode."""
        import numpy as np

        words = self.words[cut.source]
        own = None
        if cut.task is not None:
            texts = [cut.task]
        elif _TASK in table.column_names:
            own = table[_TASK].to_numpy().reshape(-1)
            _, first = np.unique(own, return_index=True)
            numbers = own[np.sort(first)].tolist()
            unknown = [number for number in numbers if number not in words]
            if unknown:
                folder = self.sets[cut.source].info.folder.path
                text = f"is {unknown[0]} in episode {cut.episode}, which has no text"
                raise FormatError(folder, _TASK, text)
            texts = [words[number] for number in numbers]
            if cut.is_whole:  # an episode may name tasks that none of its rows has
                stated = self._stated(cut)
                texts = stated if set(texts) <= set(stated) else texts
        else:
            texts = self._stated(cut)
        for text in texts:
            self.tasks.setdefault(text, len(self.tasks))
        self.tasks_of.append(texts)
        if own is None:
            return np.full(cut.rows, self.tasks[texts[0]])
        kinds, place = np.unique(own, return_inverse=True)
        return np.array([self.tasks[words[kind]] for kind in kinds.tolist()])[place.reshape(-1)]

    def _stated(self, cut: Cut) -> list[str]:
        tasks = self.sets[cut.source].plan.tasks
        task = None if tasks is None else tasks[cut.episode]
        return list(task) if isinstance(task, tuple) else [task or ""]

    def _whole(self, cut: Cut) -> Any:
        """Return all rows of an episode, from a file that is kept for the next one."""
        import numpy as np

        parquet = needed("pyarrow.parquet", "lerobot", "a LeRobot data set")
        own = self.sets[cut.source]
        plan = own.plan
        file = int(plan.file_of[cut.episode])
        path = own.info.folder.file(plan.files[file])
        if self.loaded != (cut.source, file):
            self.table = None
            wanted = [n for n in self.features.values() if not own.info.features[n].is_video]
            with reading(path):
                there = parquet.read_schema(path).names
                missing = [name for name in wanted if name not in there]
                if missing:
                    raise FormatError(path, missing[0], "is missing, but info.json lists it")
                names = [*wanted, _EPISODE] if _EPISODE not in wanted else wanted
                self.table = parquet.ParquetFile(path).read(names).combine_chunks()
            self.loaded = cut.source, file
        number = int(plan.numbers[cut.episode])
        at = np.flatnonzero(self.table[_EPISODE].to_numpy().reshape(-1) == number)
        if len(at) != cut.length or (len(at) and at[-1] - at[0] + 1 != len(at)):
            text = f"has {len(at)} rows, and meta says {cut.length}"
            if len(at) == cut.length:
                text = "has rows between those of other episodes"
            raise FormatError(path, f"episode {number}", text)
        return self.table.slice(int(at[0]), cut.length)

    def _hub(self) -> dict[str, str]:
        """Return the features in the notation of the package datasets, for the Parquet files."""
        known: dict[str, Any] = {}
        for name, entry in self._entries().items():
            if entry["dtype"] == "image":
                known[name] = {"_type": "Image"}
            elif entry["dtype"] != "video" and len(entry["shape"]) == 1:
                known[name] = hub_feature(entry)
        if len(known) + sum(e["dtype"] == "video" for e in self._entries().values()) < len(
            self.features
        ):
            return {}  # the package infers the types of other shapes
        return {"huggingface": json.dumps({"info": {"features": known}})}

    # ---- meta -----------------------------------------------------------------------------------

    def _entries(self) -> dict[str, Any]:
        """Return the features as info.json describes them."""
        known = json_object(self.info.path)["features"]
        for feature, resize in self.changes.resizes.items():
            known[feature]["shape"] = resized_shape(known[feature], resize)
        return {name: known[own] for name, own in self.features.items()}

    def _info(self, described: Mapping[str, dict[str, Any]]) -> None:
        entries = self._entries()
        for name, facts in described.items():
            if facts:
                entries[name].pop("video_info", None)
                entries[name]["info"] = facts
        kept = {key: value for key, value in self.info.entries.items() if key not in _OLD}
        videos = any(entry["dtype"] == "video" for entry in entries.values())
        kept.update(
            codebase_version="v3.0",
            total_episodes=len(self.cuts),
            total_frames=sum(cut.rows for cut in self.cuts),
            total_tasks=len(self.tasks),
            chunks_size=CHUNK,
            splits={"train": f"0:{len(self.cuts)}"},
            data_path=DATA,
            video_path=VIDEO if videos else None,
            features=entries,
        )
        kept.setdefault("data_files_size_in_mb", FILE_BYTES >> 20)
        kept.setdefault("video_files_size_in_mb", VIDEO_MIB)
        own = kept.get("robocache")
        if isinstance(own, dict) and isinstance(own.get("names"), dict):
            names = own["names"]  # of tracks, by feature; a new name replaces them
            left = {n: names[n] for n, old in self.features.items() if n == old and n in names}
            kept["robocache"] = {**own, "names": left}
        with open(self._path("meta/info.json"), "x", encoding="utf-8") as file:
            json.dump(kept, file, indent=4)

    def _episodes(self, videos: Mapping[str, Any]) -> None:
        import numpy as np

        pyarrow = needed("pyarrow", "lerobot", "a LeRobot data set")
        parquet = needed("pyarrow.parquet", "lerobot", "a LeRobot data set")
        lengths = np.array([cut.rows for cut in self.cuts], np.int64)
        files = np.array(self.file_of, np.int64)
        ends = np.cumsum(lengths)
        columns = {
            "episode_index": np.arange(len(self.cuts)),
            "tasks": pyarrow.array(self.tasks_of, pyarrow.list_(pyarrow.string())),
            "length": lengths,
            "data/chunk_index": files // CHUNK,
            "data/file_index": files % CHUNK,
            "dataset_from_index": ends - lengths,
            "dataset_to_index": ends,
            **videos,
        }
        for key in ("meta/episodes/chunk_index", "meta/episodes/file_index"):
            columns[key] = np.zeros(len(self.cuts), np.int64)
        parquet.write_table(pyarrow.table(columns), self._path(EPISODES))
        table = tasks_table(pyarrow, list(self.tasks))
        parquet.write_table(table, self._path("meta/tasks.parquet"))

    def _sources(self) -> None:
        """Note where each episode comes from. The file also marks the folder as replaceable."""
        episodes = [
            {
                "source": self.sets[cut.source].info.folder.path,
                "episode": int(self.sets[cut.source].plan.numbers[cut.episode]),
                "rows": [cut.begin, cut.end],
            }
            for cut in self.cuts
        ]
        with open(self._path(SOURCES), "x", encoding="utf-8") as file:
            json.dump({"robocache": __version__, "episodes": episodes}, file, indent=1)

    def _list_left_out(self) -> None:
        """List the files of the sources that are not part of a LeRobot data set."""
        for each in self.sets:
            top = each.info.folder.path
            for base, _, names in walked(top):
                for file in sorted(names):
                    name = os.path.relpath(os.path.join(base, file), top).replace(os.sep, "/")
                    if not name.startswith(_KNOWN):
                        text = "not copied: it may describe the data set before the change"
                        self.done.left_out.append(LeftOut(os.path.join(top, name), text))
        unknown = [name for name in COUNTERS if name not in self.features]
        if unknown:
            self.done.notes.append(f"the sources lack {', '.join(unknown)}, and so does the output")


def _words(each: DataSet) -> dict[int, str]:
    """Return the texts of tasks by number; empty for a data set whose rows have no tasks."""
    return words_of_tasks(each.info, each.options) if _TASK in each.info.features else {}
