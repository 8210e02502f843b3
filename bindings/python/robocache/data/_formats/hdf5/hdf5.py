"""HDF5: the demonstrations of robomimic and ManiSkill, and ALOHA's file per episode.

``process`` reads the files in another process; this module interprets their groups and arrays.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from .... import Track
from ...._episodes.episodes import Episodes, make_episodes
from ...._episodes.lazy_tracks import About, LazyTracks, TrackInfo
from ..._errors import Damage, FormatError, LeftOut, some
from ..._file_access import Folder, Limit, head, opened, what_is
from ..._findings import Finding
from ..._frames.arrays import may_be_camera
from ..._frames.pictures import ImageFrames
from ..._options import Options
from ..._progress import progress
from ..._time_units import in_seconds
from ..arrays.rows import channel_names, clock_rows, is_number, is_picture, stamps
from ..description import Format
from . import maniskill
from .frames import Found, cameras_of, is_rgb, may_be_encoded
from .messages import decoded
from .process import Failure, File, Piece

_MAGIC = b"\x89HDF\r\n\x1a\n"
_LEAST_BLOCK, _MOST_BLOCK = 512, 1 << 20  # sizes of a user block, a power of two
_LENGTHS = ("actions", "action", "states", "observations/qpos", "qpos")
_ACTIONS = ("actions", "action")  # the last action may be followed by one more observation
_LAYOUTS = (
    "neither a group data/demo_N (robomimic) or traj_N (ManiSkill) nor an array action or qpos "
    "(ALOHA)"
)
_EXACT = 2**53  # larger integers are not always exact in float64
_TIMES = ("timestamp", "timestamps", "time")
_SUFFIXES = (".hdf5", ".h5")
_PIECE = 4 << 20  # bytes of rows per step, if chunks are smaller
_STAMP = 8  # bytes of the time of a row
_NAMES, _NAME = 10_000, 32  # names that any file may have, and bytes of a file per further name


_REFUSED = (
    "Point clouds, pictures of other dtypes and texts are listed in left_out. Object references, "
    "external files and links out of the data set are not followed."
)
FORMATS = (
    Format(
        name="robomimic",
        title="HDF5 of robomimic",
        files="*.hdf5, *.h5",
        reads="Episodes, one per group data/demo_N, with one track per array that has a row per "
        "step, such as actions and obs/joint_pos. Arrays of pictures, uint8 [n,h,w,3], are "
        "cameras. Times are timestamp, timestamps or time, or come from rate=.",
        refuses=_REFUSED,
        package="h5py",
        extra="hdf5",
        example='episodes = rbc.data.open("demos.hdf5", rate=20)',
    ),
    Format(
        name="aloha",
        title="HDF5 of ALOHA",
        files="*.hdf5, *.h5, a folder with one file per episode",
        reads="Episodes, one per file, with one track per array that has a row per step, such as "
        "action and observations/qpos. Arrays of pictures, and of JPEG or PNG files padded "
        "with zeros, are cameras. Times are timestamp, timestamps or time, or come from rate=.",
        refuses=_REFUSED,
        package="h5py",
        extra="hdf5",
        example='episodes = rbc.data.open("episode_0.hdf5", rate=50)',
    ),
    Format(
        name="maniskill",
        title="HDF5 of ManiSkill",
        files="trajectory.h5 with trajectory.json",
        reads="Episodes, one per group traj_N, with one track per array, such as actions and "
        "env_states, whose poses have names and w first. Arrays of pictures, uint8, are cameras. "
        "The .json file next to it is read too. "
        "The observation after the last action is listed in left_out.",
        refuses=_REFUSED,
        package="h5py",
        extra="hdf5",
        example='episodes = rbc.data.open("trajectory.h5", rate=20)',
    ),
)


def sniff(path: str) -> bool:
    if os.path.isdir(path):
        return any(_is_hdf5(os.path.join(path, name)) for name in _files_in(path))
    return _is_hdf5(path)


def _is_hdf5(path: str) -> bool:
    """Find the signature, which may follow a user block, as in MATLAB files."""
    if head(path, len(_MAGIC)) == _MAGIC:
        return True
    if not os.path.isfile(path):
        return False
    with opened(path) as file:
        at = _LEAST_BLOCK
        while at <= _MOST_BLOCK:
            file.seek(at)
            found = file.read(len(_MAGIC))
            if found == _MAGIC or len(found) < len(_MAGIC):
                return found == _MAGIC
            at *= 2
    return False


@dataclass(frozen=True)
class _Array:
    """An array that has one row per step."""

    row: tuple[int, ...]  #: shape of a row
    dtype: Any
    step: int  #: rows read at once
    more: int = 0  #: rows more than the actions have

    @property
    def bytes(self) -> int:
        """Bytes of one row and its time."""
        return max(_STAMP, math.prod(self.row) * int(self.dtype.itemsize))


@dataclass
class _Demo:
    """The place of an episode, and its arrays."""

    file: str
    group: str
    length: int
    arrays: dict[str, _Array] = field(default_factory=dict)
    pictures: dict[str, Found] = field(default_factory=dict)  #: arrays that may be cameras

    @property
    def place(self) -> str:
        return self.group or "/"


@dataclass
class _Notes:
    """Damage, attributes and omissions, collected over all files of a data set."""

    damage: Damage
    limit: Limit
    info: dict[str, Any] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    def leave_out(self, reasons: dict[str, str]) -> None:
        for name, reason in reasons.items():
            self.left_out.setdefault(name, reason)


def companions(path: str) -> list[str]:
    """Return other files that are read with a single file."""
    return [maniskill.place_of(path)]


def open(path: str, options: Options) -> Episodes:
    import numpy as np

    names, folder = [""], Folder(path, options.follow_links)
    if os.path.isdir(path):
        names = _files_in(path)
    demos: list[_Demo] = []
    notes = _Notes(options.damage, options.limit)
    for name in names:
        try:
            demos += _look_into(folder.file(name) if name else path, notes)
        except FormatError as error:
            if len(names) == 1:
                raise
            options.damage.found(error.path, error.place, error.reason)
    if not demos:
        damaged = "".join(
            f": {each.place}: {each.text}" if each.path == path else f": {each}"
            for each in options.damage.problems[:1]
        )
        raise FormatError(path, "", f"no episodes found{damaged or ': ' + _LAYOUTS}")
    cameras = cameras_of(path, demos, options.limit)
    for name, camera in cameras.items():
        notes.left_out.pop(name, None)
        if camera.fault is not None:
            notes.left_out[name] = f"pictures: {camera.fault}"
        if isinstance(camera, ImageFrames):  # files of PNG or JPEG, whose bytes are not channels
            for demo in demos:
                demo.arrays.pop(name, None)
    infos = _tracks_of(demos, notes)
    clock = _clock_in(infos)
    has_ticks = clock is not None and infos[clock].dtype.startswith(("int", "uint"))
    lengths = np.array([demo.length for demo in demos], np.int64)
    total = notes.info.get("total")
    if total is not None and not _is(total, int(lengths.sum())):
        text = f"attribute total is {total}, but the demonstrations have {lengths.sum()} steps"
        options.damage.note(path, "data", text)
    episodes = [demo.group or os.path.basename(demo.file) for demo in demos]
    tasks = _tasks(notes.info, demos)
    layout = "robomimic" if demos[0].group else "ALOHA"
    if maniskill.is_trajectory(demos[0].group):
        layout = "ManiSkill"
        by_episode = [(demo.file, demo.group, demo.length) for demo in demos]
        info, tasks, rate = maniskill.described(by_episode, options, notes.left_out)
        notes.info.update(info)
        if options.rate is None and clock is None:
            options = replace(options, rate=rate)
    about = About(
        f"HDF5, {layout}'s layout",
        unit=options.unit if has_ticks else "s",
        rate=options.rate,
        info={**notes.info, "episodes": episodes},
        left_out=tuple(LeftOut(name, reason) for name, reason in notes.left_out.items()),
        problems=options.damage.problems,
        checks=functools.partial(_noted, tuple(notes.findings)),
        cameras=cameras,
        pictures={
            name: camera.encoded
            for name, camera in cameras.items()
            if camera.fault is None and is_rgb(camera)
        },
    )
    read = functools.partial(_read, demos, infos, options)
    tracks = {name: info for name, info in infos.items() if name not in _TIMES}
    return make_episodes(LazyTracks(tracks, lengths, read), tasks=tasks, source=path, about=about)


def _noted(findings: Sequence[Finding], chosen: Any, stored: Mapping[str, Any]) -> list[Finding]:
    """Return what was found when the data set was opened."""
    return list(findings)


def _files_in(path: str) -> list[str]:
    """Return the names with an HDF5 suffix, sorted by their numbers."""
    names = [entry.name for entry in os.scandir(path) if entry.name.lower().endswith(_SUFFIXES)]
    return sorted((name for name in names if not name.startswith("._")), key=_by_number)


def _by_number(name: str) -> list[Any]:
    """Return a sort key that puts demo_2 before demo_10."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]


# ---- contents of a file -------------------------------------------------------------------------


def _look_into(path: str, notes: _Notes) -> list[_Demo]:
    """Return the episodes of a file."""
    if not _is_hdf5(path):
        raise FormatError(path, "", f"expected an HDF5 file, got {what_is(path)}")
    with File(path, notes.limit) as file:
        answer = file.step("top")
        if isinstance(answer, Failure):
            notes.damage.found(path, "data", answer.reason)
            return []
        top = answer[0]
        for name, reason in top["damaged"].items():
            notes.damage.found(path, name, reason)
        notes.leave_out(top["omitted"])
        for name in top["others"]:
            notes.left_out.setdefault(name, "not part of the demonstrations")
        groups = [""] if top["groups"] is None else sorted(top["groups"], key=_by_number)
        in_data = any(group.startswith("data/") for group in groups)
        _take_attributes(file, "data" if in_data else "", notes)
        demos: list[_Demo] = []
        names = 0

        def take(group: str, found: dict[str, Any] | Failure) -> None:
            nonlocal names
            if isinstance(found, Failure):
                notes.damage.found(path, group or "/", found.reason)
                return
            names += found["names"]
            if names > _NAMES + file.size // _NAME:
                text = "has more names than its size allows, as when groups link to each other; "
                raise FormatError(path, group or "/", text + "write it without such links")
            demo = _demo(path, group, found, notes)
            if demo is not None:
                demos.append(demo)

        file.steps("look", groups, take)
        _require_room(file, demos)
    return demos


def _take_attributes(file: File, group: str, notes: _Notes) -> None:
    """Take the attributes of the group that holds all episodes."""
    answer = file.step("attributes", group=group)
    if isinstance(answer, Failure):
        notes.damage.found(file.path, f"{group or '/'}, attributes", answer.reason)
        return
    answer_data, values = answer
    for name, reason in answer_data["damaged"].items():
        notes.damage.found(file.path, f"{group or '/'}, attribute {name}", reason)
    notes.leave_out(
        {f"attribute {name}": reason for name, reason in answer_data["omitted"].items()}
    )
    for name, value in answer_data["attributes"].items():
        notes.info[name] = decoded(value, values)


def _require_room(file: File, demos: Sequence[_Demo]) -> None:
    """Refuse a file whose arrays have more bytes than it may unpack to."""
    total, most, place = 0, 0, ""
    for demo in demos:
        for name, array in demo.arrays.items():
            total += demo.length * array.bytes
            if demo.length * array.bytes > most:
                most, place = demo.length * array.bytes, f"{demo.place}/{name}"
    file.limit.require(file.path, place, total, file.size)


def _demo(path: str, group: str, found: dict[str, Any], notes: _Notes) -> _Demo | None:
    """Return one episode: its arrays with one row per step."""
    import numpy as np

    damage, place = notes.damage, group or "/"
    if found["refusal"]:
        raise FormatError(path, place, found["refusal"])
    for name, reason in found["damaged"].items():
        damage.found(path, f"{place}/{name}", reason)
    notes.leave_out(found["omitted"])
    arrays = found["arrays"]
    known = next((name for name in _LENGTHS if name in arrays), None)
    if known is None and maniskill.is_trajectory(group):
        known = maniskill.array_of_steps(arrays)
    has_actions = known in _ACTIONS or maniskill.is_trajectory(group)
    stated = _number(found["stated"])
    if known is not None:
        length = int((arrays[known]["shape"] or [0])[0])
    elif stated is not None:
        length = stated
    elif not group:
        raise FormatError(path, "", f"no episodes found: {_LAYOUTS}{_looks_like(found)}")
    else:
        damage.found(path, place, f"has none of the arrays {some(_LENGTHS)}: its length is unknown")
        return None
    if length < 0:
        damage.found(path, place, f"num_samples is {stated}, expected 0 or more")
        return None
    if found["stated"] is not None and stated is None:
        damage.found(path, place, "num_samples is not a whole number")
    elif stated is not None and stated != length:
        damage.found(path, place, f"num_samples is {stated}, but {known} has {length} rows")
    if length == 0:
        damage.found(path, place, "has length 0")
    demo = _Demo(path, group, length)
    for name, array in arrays.items():
        shape = tuple(array["shape"] or ())
        dtype = np.dtype(array["dtype"]) if array["dtype"] else None
        skipped = maniskill.reason(name, shape) if maniskill.is_trajectory(group) else None
        encoded = dtype is not None and may_be_encoded(shape, dtype)
        if encoded or (dtype is not None and may_be_camera(shape, dtype, name)):
            chunk = array["chunk"] if "unpacked" in array else None
            demo.pictures[name] = Found(
                shape, dtype, chunk[0] if chunk else 1, tuple(array["lacking"]), encoded
            )
            if len(shape) == 4:  # others may be numbers too
                continue
        if array["shape"] is None:
            notes.left_out.setdefault(name, "is empty")
        elif skipped is not None:
            notes.left_out.setdefault(name, skipped)
        elif dtype is None or not is_number(dtype):
            notes.left_out.setdefault(name, f"has type {array['type']}, which is not read")
        elif is_picture(shape, dtype):
            notes.left_out.setdefault(name, f"pictures or clouds, {dtype} {list(shape[1:])}")
        elif not shape or (shape[0] != length and shape[0] <= 1):
            notes.left_out.setdefault(name, f"has shape {list(shape)}, not one row per step")
        elif shape[0] != length and not (has_actions and shape[0] == length + 1):
            text = f"{name} has {shape[0]} rows, {known or 'the episode'} {length}"
            damage.found(path, place, text)
        elif array["lacking"]:
            lacking = ", ".join(array["lacking"])
            text = f"is packed with the filter {lacking}, which is not installed: pip install "
            notes.left_out.setdefault(name, f"{text}hdf5plugin")
        else:
            if "unpacked" in array:  # HDF5 unpacks whole chunks, even for a few rows
                size = os.path.getsize(path)
                notes.limit.require(path, f"{place}/{name}, a chunk", array["unpacked"], size)
            own = _array(shape, dtype, array["chunk"], "unpacked" in array)
            demo.arrays[name] = replace(own, more=shape[0] - length)
    return demo


def _looks_like(found: Mapping[str, Any]) -> str:
    """Describe the contents of a file without a known layout."""
    arrays = found["arrays"]
    text = f". Its arrays: {some(tuple(arrays))}" if arrays else ". It has no arrays"
    damaged = next((f"; {name} {reason}" for name, reason in found["damaged"].items()), "")
    return text + damaged


def _array(shape: tuple[int, ...], dtype: Any, chunk: Sequence[int] | None, packed: bool) -> _Array:
    """Describe an array; it is read in whole chunks, so that each is unpacked only once."""
    row = max(1, math.prod(shape[1:]) * dtype.itemsize)
    rows = min(chunk[0], shape[0]) if chunk else 1
    if not packed and rows * row > _PIECE:
        rows = 1
    return _Array(shape[1:], dtype, max(1, rows, _PIECE // row // max(1, rows) * rows))


def _number(attribute: dict[str, Any] | None) -> int | None:
    """Return a whole number from an attribute, or None."""
    value = None if attribute is None else attribute.get("value")
    return int(value) if isinstance(value, (int, float)) and value == value // 1 else None


def _is(value: Any, number: int) -> bool:
    """Whether an attribute equals a number; it may be a text or an array."""
    return isinstance(value, (int, float)) and value == number


def _tracks_of(demos: list[_Demo], notes: _Notes) -> dict[str, TrackInfo]:
    """Return the arrays that all episodes have in the same form."""
    infos: dict[str, TrackInfo] = {}
    names = dict.fromkeys(name for demo in demos for name in demo.arrays)
    for name in names:
        wrong = _unlike(name, demos)
        if wrong:
            demo, reason = wrong
            if not maniskill.may_be_missing(name, demo.group, demo.arrays):
                notes.damage.found(demo.file, f"{demo.place}/{name}", reason)
            notes.left_out[name] = f"{demo.place}: {reason}"
            continue
        arrays = [demo.arrays[name] for demo in demos]
        if arrays[0].more:
            text = (
                "one row more than actions in each episode: the observation after the last action"
            )
            notes.findings.append(Finding("note", "rows", name, "", f"{text}. It is not read"))
            notes.left_out[name] = (
                "the last row of each episode, the observation after the last action"
            )
        dtype = _dtype_of(name, [array.dtype for array in arrays], notes)
        row = arrays[0].row
        names_of_row = channel_names(row)
        if maniskill.is_trajectory(demos[0].group):
            names_of_row = maniskill.names_of(name, row) or names_of_row
        infos[name] = TrackInfo(names_of_row, dtype.name, math.prod(row))
    if not infos:
        raise FormatError(
            demos[0].file, demos[0].place, "has no array of numbers with one row per step"
        )
    return infos


def _unlike(name: str, demos: list[_Demo]) -> tuple[_Demo, str] | None:
    """Return the first episode in which an array is missing or differs, and how."""
    first = next(demo.arrays[name] for demo in demos if name in demo.arrays)
    everywhere = all(demo.arrays[name].more for demo in demos if name in demo.arrays)
    for demo in demos:
        own = demo.arrays.get(name)
        if own is None:
            return demo, "is missing, or does not have one row per step"
        if own.more and not everywhere:
            rows = f"has {demo.length + own.more} rows, but the actions have {demo.length}"
            return demo, f"{rows}: one row more, but not in all episodes"
        if own.row != first.row:
            return (
                demo,
                f"has rows of shape {list(own.row)}, but other episodes have {list(first.row)}",
            )
    return None


def _dtype_of(name: str, dtypes: Sequence[Any], notes: _Notes) -> Any:
    """Return a dtype that holds an array in all episodes; add a note if there are several."""
    import numpy as np

    counts = Counter(dtype.newbyteorder("=") for dtype in dtypes)
    if len(counts) == 1:
        return next(iter(counts))
    whole = np.result_type(*counts)
    if len({dtype.kind == "f" for dtype in counts}) > 1:  # float16 and float32 hold few integers
        whole = np.dtype(np.float64)
    has = " and ".join(f"{dtype} in {count}" for dtype, count in counts.items())
    text = f"{has} of {len(dtypes)} episodes: read as {whole}"
    notes.findings.append(Finding("note", "dtypes", name, "", text))
    return whole


def _clock_in(infos: dict[str, TrackInfo]) -> str | None:
    """Return the name of the array of times, or None."""
    return next((name for name in _TIMES if name in infos and infos[name].channels == 1), None)


# ---- reading ------------------------------------------------------------------------------------


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
    wanted_of: list[tuple[_Demo, dict[str, Any]]] = []
    for i, e in enumerate(chosen.tolist()):
        places = {name: values[name][offsets[i] : offsets[i + 1]] for name in wanted}
        wanted_of.append((demos[e], places))
    total = sum(each.nbytes for each in values.values())
    with progress("Reading HDF5", total, options.progress) as done:
        for path, own in itertools.groupby(wanted_of, key=lambda each: each[0].file):
            _read_file(path, list(own), options, done)
    times = clock_rows(lengths, options.rate)
    if clock:
        times = in_seconds(stamps(values.pop(clock)[:, 0], demos[0].file, clock), options.unit)
    return {
        name: Track(values[name], offsets, times=times, names=infos[name].names) for name in names
    }


def _read_file(
    path: str, wanted: Sequence[tuple[_Demo, dict[str, Any]]], options: Options, done: Any
) -> None:
    """Read arrays of the episodes in one file, each into its place."""
    import numpy as np

    pieces = []
    for demo, places in wanted:
        for name, into in places.items():
            array = demo.arrays[name]
            native = array.dtype.newbyteorder("=")
            for begin in range(0, demo.length, array.step):
                end = min(begin + array.step, demo.length)
                owner = (demo, into[begin:end])
                pieces.append(Piece(demo.group, name, begin, end, array.row, native, owner))

    def take(piece: Piece, values: Any, facts: dict[str, Any]) -> None:
        demo, into = piece.owner
        place = f"{demo.place}/{piece.name}"
        if isinstance(values, Failure):
            stands = "NaN" if into.dtype.kind == "f" else "0"
            text = f"rows {piece.begin} to {piece.end - 1} cannot be read: {values.reason}"
            if options.damage.keep:
                text += f"; they are set to {stands}"
            options.damage.found(path, place, text)
            into[...] = np.nan if into.dtype.kind == "f" else 0
        else:
            if piece.begin == 0 and facts["unwritten"]:
                options.damage.note(path, place, facts["unwritten"])
            if piece.begin == 0 and facts["repeated"]:
                text = f"the index lists {facts['repeated']} chunks more than once"
                options.damage.found(path, place, text)
            if piece.dtype.kind == "b":  # HDF5 stores a byte, which may hold another number
                values = values.view(np.uint8) != 0
            if _rounds(values, into.dtype):
                text = "has integers above 2**53, which float64 rounds; other episodes have "
                options.damage.found(path, place, f"{text}another dtype")
            into[...] = values.reshape(into.shape)
        done(into.nbytes)

    with File(path, options.limit) as file:
        file.read(pieces, take)
        file.require_unchanged()


def _rounds(values: Any, dtype: Any) -> bool:
    """Whether some integers change when converted to floats."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or dtype.kind != "f":
        return False
    return bool(((values > _EXACT) | (values < -_EXACT)).any())


def _tasks(info: dict[str, Any], demos: list[_Demo]) -> list[Any] | None:
    """Return the task, which LIBERO stores as text."""
    match = re.search(r'"language_instruction":\s*"([^"]+)"', str(info.get("problem_info", "")))
    return [match[1]] * len(demos) if match else None
