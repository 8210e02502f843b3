"""``meta`` of a LeRobot data set: the features, and the place of each episode's rows."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...._printable import kind_of
from ..._errors import Damage, FormatError, nothing_of
from ..._file_access import Folder, Limit, json_object, opened_text, require_regular, walked
from .places import DATA, DATA_V2

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NUMBERS = {"float16", "float32", "float64", "int8", "int16", "int32", "int64"}
_NUMBERS |= {"uint8", "uint16", "uint32", "uint64", "bool"}
_MAX_LENGTH = 1 << 40  # rows per episode
_MAX_ROWS = 1 << 60  # rows in all, so that sums fit 64 bits
_MAX_AXES = 32  # of a shape
_DEEPEST = 32  # levels of nested lists of names
_LONGEST_PATH = 4096  # bytes, the limit of file systems
_LONGEST_LINE = 16 << 20  # characters per line of episodes.jsonl
_SHOWN = 80  # characters of a value in a message
_VERSIONS = ("v2.0", "v2.1", "v3.0")
_PLACE = re.compile(r"\{(\w+)(:[^{}]*)?\}")
_WIDTH = re.compile(r"(:0?\d{0,2}d)?", re.ASCII)
_STAMPS = re.compile(r"(datetime64|timedelta64)\[(ns|us|ms|s)(,.*)?\]")


@dataclass(frozen=True)
class Feature:
    """A feature in info.json."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    names: tuple[str, ...] | None  # of the channels, if they fit

    @property
    def is_video(self) -> bool:
        return self.dtype == "video"

    @property
    def is_number(self) -> bool:
        return self.dtype in _NUMBERS

    @property
    def channels(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True)
class Own:
    """The entry that ``save`` adds to info.json for facts that LeRobot has no place for."""

    names: Mapping[str, str] = field(default_factory=dict)  # of tracks, by feature
    tasks: bool = True
    task_index: bool = True
    times: bool = True
    stamps: str | None = None  # type of the times: "timedelta64[ns]"


@dataclass(frozen=True)
class Info:
    """The content of info.json."""

    folder: Folder
    path: str
    version: str
    features: dict[str, Feature]
    fps: float | None
    chunk: int  # episodes per chunk, in v2
    data_path: str
    video_path: str | None
    own: Own
    entries: dict[str, Any]  # the other entries

    @property
    def is_v3(self) -> bool:
        return self.version.startswith("v3")


@dataclass
class Plan:
    """The place of each episode."""

    info: Info
    numbers: NDArray[np.int64]  # the index of each episode, ascending
    lengths: NDArray[np.int64]
    tasks: list[Any] | None
    files: list[str]  # data files, relative to the folder
    file_of: NDArray[np.int64]  # for each episode
    missing: set[str] = field(default_factory=set)
    videos: dict[str, Any] = field(default_factory=dict)  # v3: chunk, file, begin, end by feature
    adds_up: bool = False  # whether info.json states the sum of the lengths

    @property
    def readable(self) -> NDArray[np.int64]:
        """The length of each episode; 0 if its file is missing."""
        import numpy as np

        missing = np.array([name in self.missing for name in self.files], bool)
        return np.where(missing[self.file_of], 0, self.lengths)

    def without(self, left_out: Any) -> Plan:
        """Return the plan without the episodes of a mask."""
        kept = (~left_out).nonzero()[0]
        return dataclasses.replace(
            self,
            numbers=self.numbers[kept],
            lengths=self.lengths[kept],
            tasks=None if self.tasks is None else [self.tasks[i] for i in kept.tolist()],
            file_of=self.file_of[kept],
            videos={
                name: tuple(column[kept] for column in columns)
                for name, columns in self.videos.items()
            },
        )

    def video(self, feature: str, episode: int) -> Any:
        """Return the video file of an episode, and in v3 the time at which the episode begins."""
        name = self.video_name(feature, episode)
        if name is None:
            return None
        path = os.path.join(self.info.folder.path, name)
        return (path, float(self.videos[feature][2][episode])) if self.info.is_v3 else path

    def video_name(self, feature: str, episode: int) -> str | None:
        """Return the name of a video file relative to the folder; None if it is not known."""
        template = self.info.video_path
        if template is None or (self.info.is_v3 and feature not in self.videos):
            return None
        if self.info.is_v3:
            chunk, file = (int(column[episode]) for column in self.videos[feature][:2])
        else:
            file = int(self.numbers[episode])
            chunk = file // self.info.chunk
        return filled(self.info, "video_path", template, chunk, file, feature)


def info_of(folder: Folder) -> Info:
    path = folder.file("meta/info.json")
    content = json_object(path)

    def get(key: str, kind: Any, default: Any = None) -> Any:
        value = content.get(key, default)
        if value is None and default is None and key in ("codebase_version", "features"):
            raise FormatError(path, key, "is missing")
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise FormatError(path, key, f"is {cut(value)}, expected {_words(kind)}")
        return value

    version = get("codebase_version", str)
    if version not in _VERSIONS:
        raise FormatError(
            path, "codebase_version", f"is {cut(version)}, expected one of {', '.join(_VERSIONS)}"
        )
    features = {}
    for name, feature in get("features", dict).items():
        features[name] = _feature(path, name, feature)
    fps = get("fps", (int, float))
    if fps is not None and not 0 < fps < 1e6:
        raise FormatError(path, "fps", f"is {fps}, expected more than 0 and less than 1e6")
    chunk = get("chunks_size", int)
    if chunk is not None and not 0 < chunk < 2**63:
        raise FormatError(path, "chunks_size", f"is {cut(chunk)}, expected more than 0")
    paths = get("data_path", str), get("video_path", str)
    for key, template in zip(("data_path", "video_path"), paths):
        if template is not None and len(template) > _LONGEST_PATH:
            text = f"has {len(template):,} characters, expected at most {_LONGEST_PATH:,}"
            raise FormatError(path, key, text)
    v3 = version.startswith("v3")
    return Info(
        folder=folder,
        path=path,
        version=version,
        features=features,
        fps=None if fps is None else float(fps),
        chunk=chunk or 1000,
        data_path=paths[0] if paths[0] is not None else DATA if v3 else DATA_V2,
        video_path=paths[1],
        own=_own(path, content.get("robocache")),
        entries={key: value for key, value in content.items() if key != "features"},
    )


def _own(path: str, entry: Any) -> Own:
    if entry is None:
        return Own()
    if not isinstance(entry, dict):
        raise FormatError(path, "robocache", f"is {cut(entry)}, expected an object")
    names, stamps = entry.get("names") or {}, entry.get("stamps")
    if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
        raise FormatError(path, "robocache.names", f"is {cut(names)}, expected names by name")
    if len(set(names.values())) != len(names):
        raise FormatError(path, "robocache.names", "has one name for two features")
    if stamps and not (isinstance(stamps, str) and _STAMPS.fullmatch(stamps)):
        text = f"is {cut(stamps)}, expected a kind such as 'timedelta64[ns]'"
        raise FormatError(path, "robocache.stamps", text)
    flags = {key: bool(entry.get(key, True)) for key in ("tasks", "task_index", "times")}
    return Own(names=names, stamps=stamps or None, **flags)


def _feature(path: str, name: str, entry: Any) -> Feature:
    where = f"features.{name}"
    if not isinstance(entry, dict) or not isinstance(entry.get("dtype"), str):
        raise FormatError(path, where, "has no dtype")
    shape = entry.get("shape", [1])
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise FormatError(path, f"{where}.shape", f"is {cut(shape)}, expected a list of extents")
    if len(shape) > _MAX_AXES:
        text = f"has {len(shape):,} extents, expected at most {_MAX_AXES}"
        raise FormatError(path, f"{where}.shape", text)
    feature = Feature(name, entry["dtype"], tuple(shape), None)
    leaves = _leaves(entry.get("names"))
    if leaves is None:
        text = f"has lists nested deeper than {_DEEPEST} levels"
        raise FormatError(path, f"{where}.names", text)
    names = tuple(leaves)
    if len(names) == feature.channels and len(set(names)) == len(names) and feature.is_number:
        return Feature(name, feature.dtype, feature.shape, names)
    return feature


def _leaves(names: Any, depth: int = 0) -> list[str] | None:
    """Flatten names, which are a list, a list of lists, or lists by group.

    None if they are nested too deeply.
    """
    if isinstance(names, str):
        return [names]
    if isinstance(names, dict):
        if all(type(value) is int for value in names.values()):  # name: index
            return sorted(names, key=lambda name: names[name])
        names = list(names.values())
    if not isinstance(names, list):
        return []
    if depth == _DEEPEST:
        return None
    flat: list[str] = []
    for part in names:
        leaves = _leaves(part, depth + 1)
        if leaves is None:
            return None
        flat += leaves
    return flat


def filled(info: Info, key: str, template: str, chunk: int, number: int, video: str = "") -> str:
    """Fill the placeholders of a path template of info.json.

    The result is inside the folder by its name; links are not resolved.
    """
    values: Mapping[str, Any] = {
        "chunk_index": chunk,
        "episode_chunk": chunk,
        "file_index": number,
        "episode_index": number,
        "video_key": video,
    }

    def fill(match: re.Match[str]) -> str:
        width = match[2] or ""
        if match[1] not in values or not _WIDTH.fullmatch(width):
            reason = f"has the placeholder {match[0]}, expected for example {{episode_index:06d}}"
            raise FormatError(info.path, key, reason)
        value = values[match[1]]
        return format(value, width[1:]) if isinstance(value, int) else value

    name = _PLACE.sub(fill, template)
    if len(name) > _LONGEST_PATH:
        text = f"gives a path of {len(name):,} characters, expected at most {_LONGEST_PATH:,}"
        raise FormatError(info.path, key, text)
    info.folder.place(name)
    return name


def episodes_of(folder: Folder, info: Info, damage: Damage, limit: Limit) -> Plan:
    """Read the episodes: v2 from episodes.jsonl, v3 from meta/episodes."""
    import numpy as np

    plan = _v3(folder, info, damage, limit) if info.is_v3 else _v2(folder, info, damage)
    meta = os.path.join(folder.path, "meta")
    below = plan.numbers < 0
    if below.any():
        number = plan.numbers[below][0]
        damage.found(
            meta, "episode_index", f"is {number}, expected 0 or more; the episode is skipped"
        )
        plan = plan.without(below)
    odd = (plan.lengths <= 0) | (plan.lengths > _MAX_LENGTH)
    for e in odd.nonzero()[0].tolist():
        place = f"episode {plan.numbers[e]}"
        damage.found(meta, place, f"has length {plan.lengths[e]}")
    plan.lengths = np.where(odd, 0, plan.lengths)
    total = plan.lengths.astype(np.float64).sum()
    if total > _MAX_ROWS:
        raise FormatError(meta, "length", f"adds up to {total:.3g} rows, expected fewer than 2**60")
    for key, counted in (
        ("total_episodes", len(plan.lengths)),
        ("total_frames", int(plan.lengths.sum())),
    ):
        stated = info.entries.get(key)
        if stated is not None and stated != counted:
            there = f"there are {counted} episodes"
            if key == "total_frames":
                there = f"the episodes have {counted} rows"
            damage.found(info.path, key, f"is {cut(stated)}, but {there}")
    plan.adds_up = info.entries.get("total_frames") == int(plan.lengths.sum())
    _look_for_files(folder, plan, damage)
    return plan


def _v2(folder: Folder, info: Info, damage: Damage) -> Plan:
    import numpy as np

    path = folder.file("meta/episodes.jsonl")
    numbers, lengths, tasks = [], [], []
    for number, line in lines_of(path):
        if not line.strip():
            continue
        try:
            episode, length, task = _episode(path, number, line)
        except FormatError as error:
            damage.found(path, error.place, error.reason)
            continue
        numbers.append(episode)
        lengths.append(length)
        tasks.append(task)
    indices = np.array(numbers, np.int64)
    files = [filled(info, "data_path", info.data_path, n // info.chunk, n) for n in numbers]
    return _ordered(
        damage, path, Plan(info, indices, np.array(lengths, np.int64), tasks, files, indices)
    )


def lines_of(path: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text with their numbers, from 1."""
    with opened_text(path, errors="replace") as file:
        number = 1
        while line := file.readline(_LONGEST_LINE + 1):
            if len(line) > _LONGEST_LINE:
                text = f"has more than {_LONGEST_LINE:,} characters"
                raise FormatError(path, f"line {number}", text)
            yield number, line
            number += 1


def _episode(path: str, number: int, line: str) -> tuple[int, int, Any]:
    """Parse a line of episodes.jsonl: the index, the length and the tasks."""
    where = f"line {number}"
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FormatError(path, where, f"is not an episode: {error}") from None
    if not isinstance(entry, dict):
        raise FormatError(path, where, f"is not an episode: got {cut(entry)}, expected an object")
    for key in ("episode_index", "length"):
        if key not in entry:
            raise FormatError(path, where, f"is not an episode: {key} is missing")
    index, length = _whole(entry["episode_index"]), _whole(entry["length"])
    if index is None or length is None:
        key = "length" if index is not None else "episode_index"
        text = f"is not an episode: {key} is {cut(entry[key])}, expected a whole number"
        raise FormatError(path, where, text)
    return index, length, _task(entry.get("tasks"))


def _whole(number: Any) -> int | None:
    """Return a whole number of 64 bits, or None if the value is not one."""
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    return number if type(number) is int and -(2**63) <= number < 2**63 else None


def _v3(folder: Folder, info: Info, damage: Damage, limit: Limit) -> Plan:
    import numpy as np

    from ..tables.parquet import read_table, texts, whole_numbers

    needed = ["episode_index", "length", "data/chunk_index", "data/file_index"]
    parts: list[dict[str, Any]] = []
    videos = [name for name, feature in info.features.items() if feature.is_video]
    files = files_of_episodes(folder)
    if not files:
        raise FormatError(folder.path, "meta/episodes", "has no Parquet file")
    wanted = [f"videos/{v}/{k}" for v in videos for k in (*_VIDEO, _END)]
    for file in files:
        folder.require_inside(file)
        try:
            path = folder.file(file)
            table = read_table(path, needed, ["tasks", *wanted], limit)
            part = {name: whole_numbers(path, table, name) for name in needed}
            for name in filter(table.schema.names.__contains__, wanted):
                seconds = name.endswith("_timestamp")
                part[name] = (_seconds if seconds else whole_numbers)(path, table, name)
        except FormatError as error:
            damage.found(error.path, error.place, error.reason)
            continue
        there = "tasks" in table.schema.names
        tasks_of = map(_task, texts(table["tasks"])) if there else [None] * table.num_rows
        part["tasks"] = list(tasks_of)
        parts.append(part)
    if not parts:
        raise FormatError(folder.path, "meta/episodes", nothing_of(damage))

    def joined(name: str) -> Any:
        return np.concatenate([part[name] for part in parts])

    place = np.stack([joined(needed[2]), joined(needed[3])], axis=1)
    unique, file_of = np.unique(place, axis=0, return_inverse=True)
    paths = [
        filled(info, "data_path", info.data_path, int(chunk), int(file)) for chunk, file in unique
    ]

    def known(video: str, *keys: str) -> bool:
        return all(f"videos/{video}/{key}" in part for part in parts for key in keys)

    videos_by_name = {
        video: tuple(
            joined(f"videos/{video}/{key}") for key in (*_VIDEO, _END) if known(video, key)
        )
        for video in videos
        if known(video, *_VIDEO)
    }
    tasks = [task for part in parts for task in part["tasks"]]
    plan = Plan(
        info,
        joined(needed[0]),
        joined(needed[1]),
        tasks,
        paths,
        file_of.reshape(-1),
        videos=videos_by_name,
    )
    return _ordered(damage, folder.place(files[0]), plan)


_VIDEO = ("chunk_index", "file_index", "from_timestamp")
_END = "to_timestamp"  # may be missing


def _seconds(path: str, table: Any, name: str) -> Any:
    """Return a column of times in videos, in seconds: float64 [n]."""
    import numpy as np

    from ..tables.parquet import column

    values = column(path, table, name)
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise FormatError(path, name, f"has type {table[name].type}, expected seconds")
    values = values.astype(np.float64)
    fits = (values >= 0) & (values < np.inf)
    if not fits.all():
        row = int(np.argmin(fits))
        raise FormatError(path, f"{name}, row {row}", f"is {values[row]}, expected seconds")
    return values


def _ordered(damage: Damage, path: str, plan: Plan) -> Plan:
    """Sort the episodes by index, and drop repeated ones."""
    import numpy as np

    order = np.argsort(plan.numbers, kind="stable")
    numbers = plan.numbers[order]
    again = np.flatnonzero(np.diff(numbers) == 0)
    if len(again):
        damage.found(path, f"episode {numbers[again[0]]}", "appears twice; the first entry is used")
        order = np.delete(order, again + 1)
    if plan.file_of is plan.numbers:  # one file per episode
        plan.files, plan.file_of = [plan.files[i] for i in order.tolist()], np.arange(len(order))
    else:
        plan.file_of = plan.file_of[order]
    plan.numbers, plan.lengths = plan.numbers[order], plan.lengths[order]
    plan.tasks = None if plan.tasks is None else [plan.tasks[i] for i in order.tolist()]
    plan.videos = {
        name: tuple(column[order] for column in columns) for name, columns in plan.videos.items()
    }
    return plan


def _look_for_files(folder: Folder, plan: Plan, damage: Damage) -> None:
    """Check that all data files exist in the folder, with one listing per directory."""
    listed: dict[str, dict[str, str]] = {}
    needed = set(plan.file_of.tolist())
    for i, name in enumerate(plan.files):
        if i not in needed:
            continue
        directory, _, base = name.rpartition("/")
        if directory not in listed:
            listed[directory] = listed_in(folder, directory)
        if listed[directory].get(base) == "file":
            continue
        try:
            require_regular(folder.file(name))
        except FormatError as error:
            if "missing" not in error.reason and "expected" not in error.reason:
                raise  # it is a link out of the folder
            damage.found(os.path.join(folder.path, name), "", error.reason)
            plan.missing.add(name)


def listed_in(folder: Folder, directory: str) -> dict[str, str]:
    """Return the names in a directory of the folder: "file", "link" or "other"."""
    try:
        path = folder.file(directory)
    except FormatError as error:
        if "missing" in error.reason:
            return {}
        raise
    entries = os.scandir(path) if os.path.isdir(path) else ()
    return {entry.name: _kind(entry) for entry in entries}


def _kind(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "link"
    return "file" if entry.is_file() else "other"


def files_of_episodes(folder: Folder) -> list[str]:
    """Return the Parquet files of meta/episodes, sorted by their numbers."""
    found = []
    root = os.path.join(folder.path, "meta", "episodes")
    for base, _, names in walked(root):
        for name in names:
            if name.endswith(".parquet"):
                found.append(os.path.relpath(os.path.join(base, name), folder.path))
    found.sort(key=lambda name: [int(n) for n in re.findall(r"\d+", name)])
    return found


def _task(value: Any) -> Any:
    """Return a string, a tuple of several, or None."""
    if isinstance(value, (list, tuple)):
        texts = tuple(str(task) for task in value)
        return texts if len(texts) > 1 else (texts[0] or None) if texts else None
    return None if value is None else str(value) or None


def cut(value: Any) -> str:
    """Format a value for a message."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits
        return kind_of(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _words(kind: Any) -> str:
    return {str: "a string", dict: "an object", int: "an integer"}.get(kind, "a number")
