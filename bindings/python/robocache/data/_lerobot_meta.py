"""``meta`` of a LeRobot data set: the features, and where the rows of each episode are."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ._errors import Damage, FormatError
from ._files import Folder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_NUMBERS = {"float16", "float32", "float64", "int8", "int16", "int32", "int64"}
_NUMBERS |= {"uint8", "uint16", "uint32", "uint64", "bool"}
_MAX_LENGTH = 1 << 40  # whose sums and products stay in 64 bits
_VERSIONS = ("v2.0", "v2.1", "v3.0")
_V3_PATH = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
_V2_PATH = "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet"
_PLACE = re.compile(r"\{(\w+)(:[^{}]*)?\}")
_WIDTH = re.compile(r"(:0?\d{0,2}d)?", re.ASCII)


@dataclass(frozen=True)
class Feature:
    """What info.json says of one."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    names: tuple[str, ...] | None  # of the channels, where they fit

    @property
    def is_video(self) -> bool:
        return self.dtype == "video"

    @property
    def is_number(self) -> bool:
        return self.dtype in _NUMBERS

    @property
    def channels(self) -> int:
        count = 1
        for extent in self.shape:
            count *= extent
        return count


@dataclass(frozen=True)
class Info:
    """info.json."""

    folder: Folder
    path: str
    version: str
    features: dict[str, Feature]
    fps: float | None
    chunk: int  # episodes in one, of v2
    data_path: str
    video_path: str | None
    told: dict[str, Any]  # the rest

    @property
    def is_v3(self) -> bool:
        return self.version.startswith("v3")


@dataclass
class Plan:
    """Where each episode is."""

    info: Info
    numbers: NDArray[np.int64]  # the index of each episode, ascending
    lengths: NDArray[np.int64]
    tasks: list[Any] | None
    files: list[str]  # of the data, by name from the folder
    file_of: NDArray[np.int64]  # for each episode
    missing: set[str] = field(default_factory=set)
    videos: dict[str, Any] = field(default_factory=dict)  # v3: chunk, file, begin by feature
    adds_up: bool = False  # whether info.json tells the sum of the lengths

    def video(self, feature: str, episode: int) -> Any:
        """The file, and of v3 the time in it at which the episode begins."""
        name = self.video_name(feature, episode)
        if name is None:
            return None
        path = os.path.join(self.info.folder.path, name)
        return (path, float(self.videos[feature][2][episode])) if self.info.is_v3 else path

    def video_name(self, feature: str, episode: int) -> str | None:
        """By name from the folder; None if that is not told."""
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
    told = _object(path)

    def get(key: str, kind: Any, default: Any = None) -> Any:
        given = told.get(key, default)
        if given is None and default is None and key in ("codebase_version", "features"):
            raise FormatError(path, key, "is missing")
        if given is not None and (not isinstance(given, kind) or isinstance(given, bool)):
            raise FormatError(path, key, f"is {given!r}, expected {_words(kind)}")
        return given

    version = get("codebase_version", str)
    if version not in _VERSIONS:
        raise FormatError(
            path, "codebase_version", f"is {version!r}, expected one of {', '.join(_VERSIONS)}"
        )
    features = {}
    for name, feature in get("features", dict).items():
        features[name] = _feature(path, name, feature)
    fps = get("fps", (int, float))
    if fps is not None and not 0 < fps < 1e6:
        raise FormatError(path, "fps", f"is {fps}, expected more than 0")
    v3 = version.startswith("v3")
    return Info(
        folder=folder,
        path=path,
        version=version,
        features=features,
        fps=None if fps is None else float(fps),
        chunk=max(1, get("chunks_size", int, 1000)),
        data_path=get("data_path", str, _V3_PATH if v3 else _V2_PATH),
        video_path=get("video_path", str),
        told={key: value for key, value in told.items() if key != "features"},
    )


def _feature(path: str, name: str, told: Any) -> Feature:
    where = f"features.{name}"
    if not isinstance(told, dict) or not isinstance(told.get("dtype"), str):
        raise FormatError(path, where, "has no dtype")
    shape = told.get("shape", [1])
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise FormatError(path, f"{where}.shape", f"is {shape!r}, expected a list of extents")
    feature = Feature(name, told["dtype"], tuple(shape), None)
    names = tuple(_leaves(told.get("names")))
    if len(names) == feature.channels and len(set(names)) == len(names) and feature.is_number:
        return Feature(name, feature.dtype, feature.shape, names)
    return feature


def _leaves(told: Any) -> list[str]:
    """Names are a list, a list of lists, or lists by group."""
    if isinstance(told, str):
        return [told]
    if isinstance(told, dict):
        if all(type(value) is int for value in told.values()):  # name: index
            return sorted(told, key=lambda name: told[name])
        told = list(told.values())
    return [name for part in told for name in _leaves(part)] if isinstance(told, list) else []


def filled(info: Info, key: str, template: str, chunk: int, number: int, video: str = "") -> str:
    """A path of info.json. Its places are filled, and nothing else in it is followed.

    It is in the folder by its name; links are not looked at.
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
            reason = f"has the place {match[0]}, expected one such as {{episode_index:06d}}"
            raise FormatError(info.path, key, reason)
        value = values[match[1]]
        return format(value, width[1:]) if isinstance(value, int) else value

    name = _PLACE.sub(fill, template)
    info.folder.place(name)
    return name


def episodes_of(folder: Folder, info: Info, damage: Damage) -> Plan:
    """Of v2 of episodes.jsonl, of v3 of meta/episodes."""
    import numpy as np

    plan = _v3(folder, info, damage) if info.is_v3 else _v2(folder, info, damage)
    odd = (plan.lengths <= 0) | (plan.lengths > _MAX_LENGTH)
    for e in odd.nonzero()[0].tolist():
        place = f"episode {plan.numbers[e]}"
        damage.found(os.path.join(folder.path, "meta"), place, f"has length {plan.lengths[e]}")
    plan.lengths = np.where(odd, 0, plan.lengths)
    for key, counted in (
        ("total_episodes", len(plan.lengths)),
        ("total_frames", int(plan.lengths.sum())),
    ):
        given = info.told.get(key)
        if given is not None and given != counted:
            damage.found(info.path, key, f"is {given}, but the episodes are {counted}")
    plan.adds_up = info.told.get("total_frames") == int(plan.lengths.sum())
    _look_for_files(folder, plan, damage)
    return plan


def _v2(folder: Folder, info: Info, damage: Damage) -> Plan:
    import numpy as np

    path = folder.file("meta/episodes.jsonl")
    numbers, lengths, tasks = [], [], []
    with open(path, encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                told = json.loads(line)
                numbers.append(int(told["episode_index"]))
                lengths.append(int(told["length"]))
                tasks.append(_task(told.get("tasks")))
            except (ValueError, TypeError, KeyError, RecursionError) as error:
                damage.found(path, f"line {number}", f"is no episode: {error!r}")
                del numbers[len(tasks) :], lengths[len(tasks) :]
    indices = np.array(numbers, np.int64)
    files = [filled(info, "data_path", info.data_path, n // info.chunk, n) for n in numbers]
    return _ordered(
        damage, path, Plan(info, indices, np.array(lengths, np.int64), tasks, files, indices)
    )


def _v3(folder: Folder, info: Info, damage: Damage) -> Plan:
    import numpy as np

    from ._parquet import column, read_table

    needed = ["episode_index", "length", "data/chunk_index", "data/file_index"]
    parts: list[dict[str, Any]] = []
    videos = [name for name, feature in info.features.items() if feature.is_video]
    paths = _numbered(folder, "meta/episodes")
    if not paths:
        raise FormatError(folder.path, "meta/episodes", "has no Parquet file")
    for path in paths:
        wanted = [f"videos/{v}/{k}" for v in videos for k in _VIDEO]
        try:
            table = read_table(path, needed, optional=["tasks", *wanted])
        except FormatError as error:
            damage.found(error.path, error.place, error.reason)
            continue
        part = {name: column(path, table, name) for name in table.column_names if name != "tasks"}
        part["tasks"] = (
            [_task(t) for t in table["tasks"].to_pylist()]
            if "tasks" in (table.column_names)
            else [None] * table.num_rows
        )
        parts.append(part)
    if not parts:
        raise FormatError(folder.path, "meta/episodes", "none of its files can be read")

    def joined(name: str) -> Any:
        return np.concatenate([part[name] for part in parts])

    place = np.stack([joined(needed[2]), joined(needed[3])], axis=1)
    unique, file_of = np.unique(place, axis=0, return_inverse=True)
    files = [
        filled(info, "data_path", info.data_path, int(chunk), int(file)) for chunk, file in unique
    ]
    told = {
        video: tuple(joined(f"videos/{video}/{key}") for key in _VIDEO)
        for video in videos
        if all(f"videos/{video}/{key}" in part for part in parts for key in _VIDEO)
    }
    tasks = [task for part in parts for task in part["tasks"]]
    plan = Plan(
        info, joined(needed[0]), joined(needed[1]), tasks, files, file_of.reshape(-1), videos=told
    )
    return _ordered(damage, paths[0], plan)


_VIDEO = ("chunk_index", "file_index", "from_timestamp")


def _ordered(damage: Damage, path: str, plan: Plan) -> Plan:
    """By the index of the episodes, which come once each."""
    import numpy as np

    order = np.argsort(plan.numbers, kind="stable")
    numbers = plan.numbers[order]
    again = np.flatnonzero(np.diff(numbers) == 0)
    if len(again):
        damage.found(path, f"episode {numbers[again[0]]}", "is there twice; the first one is taken")
        order = np.delete(order, again + 1)
    if plan.file_of is plan.numbers:  # a file each
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
    """All data files are there, and in the folder, by one listing of each directory."""
    listed: dict[str, dict[str, bool]] = {}
    for name in plan.files:
        directory, _, base = name.rpartition("/")
        if directory not in listed:
            listed[directory] = listed_in(folder, directory)
        is_link = listed[directory].get(base)
        try:
            if is_link or is_link is None:
                folder.file(name)
        except FormatError as error:
            if "missing" not in error.reason:
                raise
            damage.found(os.path.join(folder.path, name), "", "is missing")
            plan.missing.add(name)


def listed_in(folder: Folder, directory: str) -> dict[str, bool]:
    """Names in a directory of the folder, and whether they are links."""
    try:
        path = folder.file(directory)
    except FormatError as error:
        if "missing" in error.reason:
            return {}
        raise
    entries = os.scandir(path) if os.path.isdir(path) else ()
    return {entry.name: entry.is_symlink() for entry in entries}


def _numbered(folder: Folder, directory: str) -> list[str]:
    """The Parquet files below a directory, in the order of their numbers."""
    found = []
    root = os.path.join(folder.path, directory)
    for base, _, names in os.walk(root):
        for name in names:
            if name.endswith(".parquet"):
                found.append(os.path.relpath(os.path.join(base, name), folder.path))
    found.sort(key=lambda name: [int(n) for n in re.findall(r"\d+", name)])
    return [folder.file(name) for name in found]


def _task(told: Any) -> Any:
    """A string, several, or None."""
    if isinstance(told, (list, tuple)):
        texts = tuple(str(task) for task in told)
        return texts if len(texts) > 1 else (texts[0] or None) if texts else None
    return None if told is None else str(told) or None


def _object(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            told = json.load(file)
    except (ValueError, RecursionError) as error:
        raise FormatError(path, "", f"is no JSON, or cut off: {error}") from None
    if not isinstance(told, dict):
        raise FormatError(path, "", "is no object of JSON")
    return told


def _words(kind: Any) -> str:
    return {str: "a string", dict: "an object", int: "an integer"}.get(kind, "a number")
