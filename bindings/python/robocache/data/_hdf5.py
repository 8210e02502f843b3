"""HDF5: robomimic's one file of demonstrations, and ALOHA's one file an episode."""

from __future__ import annotations

import builtins
import functools
import os
import re
from dataclasses import dataclass, field
from typing import Any

from .. import Track
from ._episodes import About, Episodes, OnDisk, TrackInfo
from ._errors import Damage, FormatError, LeftOut, needed, some
from ._files import Folder
from ._hdf5_links import LeadsNowhere, arrays_below, item_of
from ._open import Options, head, what_is
from ._progress import progress
from ._rows import channel_names, clock_rows, is_number, is_picture, stamps
from ._units import in_seconds

_MAGIC = b"\x89HDF\r\n\x1a\n"
_LEAST_BLOCK, _MOST_BLOCK = 512, 1 << 20  # bytes of a user's block, which double
_LENGTHS = ("actions", "action", "states", "observations/qpos", "qpos")
_TIMES = ("timestamp", "timestamps", "time")


def sniff(path: str) -> bool:
    if os.path.isdir(path):
        return any(_is_hdf5(os.path.join(path, name)) for name in _files_in(path))
    return _is_hdf5(path)


def _is_hdf5(path: str) -> bool:
    """By its signature, in front of which may be a block of the user's, as MATLAB writes one."""
    if head(path, len(_MAGIC)) == _MAGIC:
        return True
    if not os.path.isfile(path):
        return False
    with builtins.open(path, "rb") as file:
        at = _LEAST_BLOCK
        while at <= _MOST_BLOCK:
            file.seek(at)
            found = file.read(len(_MAGIC))
            if found == _MAGIC or len(found) < len(_MAGIC):
                return found == _MAGIC
            at *= 2
    return False


@dataclass
class _Demo:
    """Where an episode is, and what it has."""

    file: str
    group: str
    length: int
    shapes: dict[str, tuple[tuple[int, ...], Any]] = field(default_factory=dict)

    @property
    def place(self) -> str:
        return self.group or "/"


def open(path: str, options: Options) -> Episodes:
    import numpy as np

    needed("h5py", "hdf5", "an HDF5 file")
    files = [path]
    if os.path.isdir(path):
        folder = Folder(path, options.follow_links)
        files = [folder.file(name) for name in _files_in(path)]
    demos: list[_Demo] = []
    info: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for file in files:
        try:
            demos += _look_into(file, options.damage, info, left_out)
        except FormatError as error:
            if len(files) == 1:
                raise
            options.damage.found(error.path, error.place, error.reason)
    if not demos:
        damaged = "".join(f"; {problem}" for problem in options.damage.problems[:1])
        raise FormatError(path, "", f"has no episodes{damaged}")
    infos = _tracks_of(demos, options.damage, left_out)
    clock = _clock_in(infos)
    has_ticks = clock is not None and infos[clock].dtype.startswith(("int", "uint"))
    lengths = np.array([demo.length for demo in demos], np.int64)
    total = info.get("total")
    if total is not None and int(total) != int(lengths.sum()):
        text = f"attribute total is {total}, but the demonstrations have {lengths.sum()} steps"
        options.damage.note(path, "data", text)
    about = About(
        "HDF5, robomimic's layout" if demos[0].group else "HDF5, ALOHA's layout",
        unit=options.unit if has_ticks else "s",
        rate=options.rate,
        info={**info, "episodes": [demo.group or os.path.basename(demo.file) for demo in demos]},
        left_out=tuple(LeftOut(name, reason) for name, reason in left_out.items()),
        problems=options.damage.problems,
    )
    read = functools.partial(_read, demos, infos, options)
    tracks = {name: told for name, told in infos.items() if name not in _TIMES}
    return Episodes.made(
        OnDisk(tracks, lengths, read), tasks=_tasks(info, demos), source=path, about=about
    )


def _files_in(path: str) -> list[str]:
    """Names that are those of HDF5 files, in the order of their numbers."""
    names = [entry.name for entry in os.scandir(path) if entry.name.endswith((".hdf5", ".h5"))]
    return sorted((name for name in names if not name.startswith("._")), key=_by_number)


def _by_number(name: str) -> list[Any]:
    """demo_2 before demo_10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


def _opened(path: str) -> Any:
    h5py = needed("h5py", "hdf5", "an HDF5 file")
    if not _is_hdf5(path):
        raise FormatError(path, "", f"is no HDF5 file, but {what_is(path)}")
    try:
        return h5py.File(path, "r")
    except OSError as error:
        text = str(error)
        if "unable to lock" in text:
            raise FormatError(path, "", "is open for writing elsewhere: close it there") from None
        reason = re.search(r"\(([^()]*(\([^()]*\)[^()]*)*)\)", text)
        what = reason[1] if reason else text
        raise FormatError(path, "", f"is damaged, or cut off: {what}") from None


def _look_into(
    path: str, damage: Damage, info: dict[str, Any], left_out: dict[str, str]
) -> list[_Demo]:
    """The episodes of a file."""
    h5py = needed("h5py", "hdf5", "an HDF5 file")
    with _opened(path) as file:
        try:
            data = item_of(file, "data") if "data" in tuple(file) else None
        except LeadsNowhere as error:
            damage.found(path, "data", error.reason)
            return []
        if isinstance(data, h5py.Group):
            info.update({name: _plain(value) for name, value in data.attrs.items()})
            for name in file:
                if name != "data":
                    left_out.setdefault(name, "no part of the demonstrations")
            groups = _groups(path, data, damage, left_out)
            demos = [_demo(path, f"data/{n}", groups[n], damage, left_out) for n in groups]
        else:
            info.update({name: _plain(value) for name, value in file.attrs.items()})
            demos = [_demo(path, "", file, damage, left_out)]
    return [demo for demo in demos if demo is not None]


def _groups(path: str, data: Any, damage: Damage, left_out: dict[str, str]) -> dict[str, Any]:
    """The demonstrations by name."""
    h5py = needed("h5py", "hdf5", "an HDF5 file")
    groups: dict[str, Any] = {}
    for name in sorted(data, key=_by_number):
        try:
            item = item_of(data, name)
        except LeadsNowhere as error:
            if error.damaged:
                damage.found(path, f"data/{name}", error.reason)
            left_out.setdefault(f"data/{name}", error.reason)
            continue
        if isinstance(item, h5py.Group):
            groups[name] = item
    return groups


def _demo(
    path: str, group: str, opened: Any, damage: Damage, left_out: dict[str, str]
) -> _Demo | None:
    """One episode: its arrays with a row a step."""
    place = group or "/"
    arrays = arrays_below(opened, path, place, damage, left_out)
    known = next((name for name in _LENGTHS if name in arrays), None)
    told = opened.attrs.get("num_samples")
    if known is not None:
        length = int(arrays[known].shape[0]) if arrays[known].shape else 0
    elif told is not None:
        length = int(told)
    else:
        damage.found(path, place, f"has none of {some(_LENGTHS)}, which tell how long it is")
        return None
    if told is not None and int(told) != length:
        damage.found(path, place, f"num_samples is {told}, but {known} has {length} rows")
    if length == 0:
        damage.found(path, place, "has length 0")
    demo = _Demo(path, group, length)
    for name, array in arrays.items():
        shape = tuple(array.shape)
        if not is_number(array.dtype):
            left_out.setdefault(name, f"is of {array.dtype}")
        elif is_picture(shape, array.dtype):
            left_out.setdefault(name, f"pictures or clouds, {array.dtype} {list(shape[1:])}")
        elif not shape or (shape[0] != length and shape[0] <= 1):
            left_out.setdefault(name, f"has shape {list(shape)}, not a row a step")
        elif shape[0] != length:
            damage.found(path, f"{place}/{name}", f"has {shape[0]} rows, but the episode {length}")
        else:
            demo.shapes[name] = (shape[1:], array.dtype)
    return demo


def _tracks_of(
    demos: list[_Demo], damage: Damage, left_out: dict[str, str]
) -> dict[str, TrackInfo]:
    """Arrays that all episodes have, alike."""
    import numpy as np

    infos: dict[str, TrackInfo] = {}
    names = dict.fromkeys(name for demo in demos for name in demo.shapes)
    for name in names:
        having = [demo for demo in demos if name in demo.shapes]
        shape, dtype = having[0].shapes[name]
        wrong = None
        for demo in demos:
            if name not in demo.shapes:
                wrong = (demo, "is missing, or not a row a step")
            elif demo.shapes[name][0] != shape:
                wrong = (demo, f"has rows {list(demo.shapes[name][0])}, others {list(shape)}")
            elif demo.shapes[name][1] != dtype:
                wrong = (demo, f"is of {demo.shapes[name][1]}, in others of {dtype}")
            if wrong:
                break
        if wrong:
            demo, reason = wrong
            damage.found(demo.file, f"{demo.place}/{name}", reason)
            left_out[name] = f"{demo.place}: {reason}"
            continue
        width = int(np.prod(shape, dtype=np.int64))
        infos[name] = TrackInfo(channel_names(shape), dtype.name, width)
    if not infos:
        raise FormatError(
            demos[0].file, demos[0].place, "has no array of numbers with a row a step"
        )
    return infos


def _clock_in(infos: dict[str, TrackInfo]) -> str | None:
    """The name of the times of all tracks."""
    return next((name for name in _TIMES if name in infos and infos[name].channels == 1), None)


def _read(
    demos: list[_Demo], infos: dict[str, TrackInfo], options: Options, names: Any, chosen: Any
) -> dict[str, Track]:
    import numpy as np

    lengths = np.array([demos[e].length for e in chosen.tolist()], np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    clock = _clock_in(infos)
    wanted = [*names, clock] if clock else list(names)
    values = {
        name: np.empty((int(offsets[-1]), infos[name].channels), infos[name].dtype)
        for name in wanted
    }
    file, opened = "", None
    with progress("Reading HDF5", len(chosen), options.progress) as done:
        try:
            for i, e in enumerate(chosen.tolist()):
                demo = demos[e]
                if demo.file != file:
                    if opened is not None:
                        opened.close()
                    file, opened = demo.file, _opened(demo.file)
                for name in wanted:
                    into = values[name][offsets[i] : offsets[i + 1]]
                    _copy(opened, demo, name, into, options.damage)
                done(1)
        finally:
            if opened is not None:
                opened.close()
    times = clock_rows(lengths, options.rate)
    if clock:
        times = in_seconds(stamps(values.pop(clock)[:, 0], demos[0].file, clock), options.unit)
    return {
        name: Track(values[name], offsets, times=times, names=infos[name].names) for name in names
    }


def _copy(opened: Any, demo: _Demo, name: str, into: Any, damage: Damage) -> None:
    import numpy as np

    try:
        array = opened[f"{demo.group}/{name}" if demo.group else name][...]
        into[...] = array.reshape(into.shape)
    except (OSError, KeyError, ValueError) as error:
        damage.found(demo.file, f"{demo.place}/{name}", f"cannot be read: {error}")
        into[...] = np.nan if into.dtype.kind == "f" else 0


def _tasks(info: dict[str, Any], demos: list[_Demo]) -> list[Any] | None:
    """LIBERO tells of the task in words."""
    match = re.search(r'"language_instruction":\s*"([^"]+)"', str(info.get("problem_info", "")))
    return [match[1]] * len(demos) if match else None


def _plain(value: Any) -> Any:
    value = value.item() if hasattr(value, "item") and getattr(value, "size", 2) == 1 else value
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
