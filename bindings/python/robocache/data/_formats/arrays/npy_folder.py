"""Folders of .npy files: streams with arrays of times, or episodes."""

from __future__ import annotations

import functools
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Any

from .... import Track
from ...._episodes.episodes import Episodes, make_episodes
from ...._episodes.lazy_tracks import About
from ..._checks.times import lost_digits
from ..._errors import FormatError, LeftOut, Unread
from ..._file_access import Folder, head, is_folder, walked
from ..._options import Options
from ..._recording import Recording
from ..._source import Piece, StreamInfo
from ..._time_units import in_seconds, per_second
from .. import registry
from ..description import Format
from ..tables.clock import Clock, guessed, split_unit
from ..tables.time_columns import FROM_ZERO, PATTERNS, row_of
from ..tables.units import scales_of
from .npy import MAGIC, StoredArray, stored_array
from .rows import channel_names, clock_rows, is_number, is_picture, stamps

_CLOCK = re.compile(r"(^|[._-])(t|times?|timestamps?|stamps?)$")
_EPISODE = "episode_index"
_LENGTHS = ("episode_ends", "meta/episode_ends", "episode_lengths", "traj_lengths")
_MOST_ROWS = 1 << 40
_NO_TIMES = {
    kind: f"the {what} has no array of times for it. Name one with --time ARRAY, or set the rows "
    "per second with --fps HZ"
    for kind, what in (("npy", "folder"), ("npz", "archive"))
}
_MOST = 10_000  # files
_SAMPLE = 1 << 16  # times from which a unit is inferred
_MOST_EMPTY = 1024  # columns of an array without rows


FORMAT = Format(
    name="npy",
    title="NumPy arrays (.npy)",
    files="*.npy, a folder of them",
    reads="One stream per array with a row per sample, and the times from an array such as "
    "times.npy, from time= or from rate=. With episode_index.npy, or if all arrays are [E,T,D], "
    "episodes.",
    refuses="Pictures, point clouds and complex numbers are listed in left_out. Arrays of Python "
    "objects are not read: they are pickles, which run code.",
    example='recording = rbc.data.open("arrays")',
    named_times=True,
)


def sniff(path: str) -> bool:
    if os.path.isfile(path):
        return head(path, len(MAGIC)) == MAGIC
    if any(name.endswith(".npy") for name in os.listdir(path)):
        return _has_some(path)
    others = [name for name in registry.FORMATS if not __name__.endswith(f".{name}")]
    for entry in os.scandir(path):  # a folder of data sets is not a data set
        if not is_folder(entry):
            continue
        is_set = os.path.exists(os.path.join(entry.path, f"{_EPISODE}.npy"))
        if is_set or registry.format_of(entry.path, others) is not None:
            return False
    return _has_some(path)


def open(path: str, options: Options) -> Recording | Episodes:
    if os.path.isfile(path):
        array, linked = stored_array(path), []
        if not is_number(array.dtype):
            raise FormatError(path, "", f"expected numbers, got {array.dtype}")
        name = os.path.basename(path).removesuffix(".npy")
        arrays = {name: array}
    else:
        folder = Folder(path, options.follow_links)
        linked = _linked_folders(path, folder)
        arrays = {}
        for file in sorted(_files_in(path)):
            folder.require_inside(file)
            file_path = folder.place(file)
            try:
                folder.file(file)
                arrays[file.replace(os.sep, "/").removesuffix(".npy")] = stored_array(file_path)
            except FormatError as error:
                options.damage.found(file_path, "", error.reason)
    left_out = [LeftOut(name, "a link to a folder, which is not followed") for name in linked]
    return opened_arrays(path, arrays, options, left_out)


def opened_arrays(
    path: str,
    arrays: dict[str, Any],
    options: Options,
    left_out: list[LeftOut],
    kind: str = "npy",
) -> Recording | Episodes:
    """Return the streams or episodes of named arrays, which are like ``StoredArray``."""
    left_out += [
        LeftOut(name, f"has dtype {array.dtype}, which is not read")
        for name, array in arrays.items()
        if not is_number(array.dtype)
    ]
    left_out += [
        LeftOut(name, f"pictures or clouds, {array.dtype} {list(array.shape)}")
        for name, array in arrays.items()
        if is_number(array.dtype)
        and is_picture(array.shape, array.dtype)
        and not _is_empty(array.shape)
    ]
    left_out += [
        LeftOut(name, f"no numbers, {array.dtype} {list(array.shape)}")
        for name, array in arrays.items()
        if is_number(array.dtype) and _is_empty(array.shape)
    ]
    left_out += [
        LeftOut(name, "a single number")
        for name, a in arrays.items()
        if a.ndim == 0 and is_number(a.dtype)
    ]
    names = {each.place for each in left_out}
    arrays = {name: array for name, array in arrays.items() if name not in names}
    if not arrays:
        damaged = "".join(f"; {problem}" for problem in options.damage.problems[:1])
        raise FormatError(path, "", f"has no array with one row per step{damaged}")
    ends = next((name for name in _LENGTHS if _is_list(arrays.get(name))), None)
    if ends is not None:
        return _by_ends(path, ends, arrays, options, left_out)
    index = arrays.get(_EPISODE)
    if index is not None and index.ndim == 1 and index.dtype.kind in "iu":
        return _by_index(path, arrays, options, left_out)
    shapes = {array.shape[:2] for array in arrays.values() if array.ndim >= 3}
    if len(shapes) == 1 and all(array.ndim >= 3 for array in arrays.values()):
        return _padded(path, arrays, options, left_out)
    return Recording(_Arrays(path, arrays, options, left_out, kind), progress=options.progress)


def _is_empty(shape: tuple[int, ...]) -> bool:
    """Whether a shape has many places but no number: it takes no byte of a file."""
    return 0 in shape and math.prod(filter(None, shape)) > _MOST_EMPTY


def _has_some(path: str) -> bool:
    return any(_is_npy(os.path.join(path, name)) for name in _files_in(path, os.walk))


def _is_npy(path: str) -> bool:
    return head(path, len(MAGIC)) == MAGIC


def _files_in(path: str, walk: Callable[[str], Any] = walked) -> Iterator[str]:
    """Yield names of .npy files below a folder; links to folders are not followed."""
    count = 0
    for base, directories, names in walk(path):
        directories.sort()
        for name in sorted(names):
            if name.endswith(".npy") and not name.startswith("._"):
                count += 1
                if count > _MOST:
                    raise FormatError(path, "", f"has more than {_MOST} .npy files")
                yield os.path.relpath(os.path.join(base, name), path)


def _linked_folders(path: str, folder: Folder) -> list[str]:
    """Return names of links to folders; links out of the data set raise, unless followed."""
    found = []
    for base, directories, _ in walked(path):
        for name in sorted(directories):
            if os.path.islink(os.path.join(base, name)):
                found.append(os.path.relpath(os.path.join(base, name), path))
                folder.file(found[-1])
    return found


# ---- episodes -----------------------------------------------------------------------------------


def _is_list(array: Any) -> bool:
    return array is not None and array.ndim == 1 and array.dtype.kind in "iu"


def _by_ends(
    path: str, name: str, arrays: Any, options: Options, left_out: list[LeftOut]
) -> Episodes:
    """Make episodes by an array with the end, or the length, of each episode."""
    import numpy as np

    given = arrays.pop(name).read()
    if given.size and (given.max() > _MOST_ROWS or given.min() < 0):
        at = int(np.argmax((given > _MOST_ROWS) | (given < 0)))
        raise FormatError(path, f"{name}, episode {at}", f"is {given[at]}, expected a row")
    ends = given.astype(np.int64)
    if "length" in name:
        ends = np.cumsum(ends)
    lengths = np.diff(ends, prepend=0)
    if (lengths < 0).any():
        at = int(np.argmax(lengths < 0))
        raise FormatError(path, f"{name}, episode {at}", "goes back: it is not a list of ends")
    rows = int(ends[-1]) if len(ends) else 0
    tracks = {n: array for n, array in arrays.items() if len(array) == rows}
    for other, array in arrays.items():
        if other not in tracks:
            text = f"has {len(array)} rows, but {name} has {rows}"
            if array.ndim > 1 and len(array) != len(ends):  # else one entry per episode
                options.damage.found(path, other, text)
            left_out.append(LeftOut(other, text))
    offsets = np.concatenate([[0], ends])
    return _of_rows(path, tracks, offsets, options, left_out, list(range(len(ends))), name)


def _by_index(path: str, arrays: Any, options: Options, left_out: list[LeftOut]) -> Episodes:
    """Make episodes by an array with the episode number of each row."""
    import numpy as np

    index = arrays.pop(_EPISODE).read()
    numbers, begins, lengths = np.unique(index, return_index=True, return_counts=True)
    if (np.diff(index) < 0).any():
        at = int(np.argmax(np.diff(index) < 0)) + 1
        raise FormatError(path, f"{_EPISODE}.npy, row {at}", "goes back: rows are not in order")
    offsets = np.append(begins, len(index)).astype(np.int64)
    rows = {name: array for name, array in arrays.items() if len(array) == len(index)}
    for name, array in arrays.items():
        if name not in rows:
            text = f"has {len(array)} rows, but {_EPISODE} has {len(index)}"
            options.damage.found(path, f"{name}.npy", text)
            left_out.append(LeftOut(name, text))
    numbered = [int(n) for n in numbers]
    return _of_rows(path, rows, offsets, options, left_out, numbered, _EPISODE)


def _of_rows(
    path: str,
    rows: dict[str, Any],
    offsets: Any,
    options: Options,
    left_out: list[LeftOut],
    numbers: list[int],
    index: str,
) -> Episodes:
    """Make episodes of arrays with the same rows."""
    import numpy as np

    clock = next((name for name, a in rows.items() if a.ndim == 1 and _CLOCK.search(name)), None)
    if options.time is not None:
        clock = _asked(path, rows, options.time)[0]
    times = clock_rows(np.diff(offsets), options.rate)
    if clock is not None:
        times = in_seconds(stamps(rows.pop(clock).read(), path, f"{clock}.npy"), options.unit)
    tracks = {
        name: Track(_table(array), offsets, times=times, names=channel_names(array.shape[1:]))
        for name, array in rows.items()
    }
    if not tracks:
        raise FormatError(path, "", f"has no array except {index}")
    return _episodes_from(path, tracks, options, left_out, numbers)


def _padded(path: str, arrays: Any, options: Options, left_out: list[LeftOut]) -> Episodes:
    """Make episodes of equal length from [E,T,...]."""
    import numpy as np

    episodes, steps = next(iter(arrays.values())).shape[:2]
    offsets = np.arange(episodes + 1, dtype=np.int64) * steps
    times = clock_rows(np.full(episodes, steps), options.rate)
    tracks = {
        name: Track(
            array.read().reshape(episodes * steps, math.prod(array.shape[2:])),
            offsets,
            times=times,
            names=channel_names(array.shape[2:]),
        )
        for name, array in arrays.items()
    }
    return _episodes_from(path, tracks, options, left_out, list(range(episodes)))


def _episodes_from(
    path: str, tracks: Any, options: Options, left_out: list[LeftOut], numbers: list[int]
) -> Episodes:
    times = next(iter(tracks.values())).times
    has_ticks = times is not None and times.dtype.kind == "i"
    about = About(
        "arrays of episodes",
        unit=options.unit if has_ticks else "s",
        rate=options.rate,
        info={"episodes": numbers},
        left_out=tuple(left_out),
        problems=options.damage.problems,
    )
    return make_episodes(tracks, source=path, about=about)


# ---- streams ------------------------------------------------------------------------------------


class _Arrays:
    """A source of streams (``_source.Source``): one per array, with the array of its times."""

    kind = "arrays"

    def __init__(
        self,
        path: str,
        arrays: dict[str, Any],
        options: Options,
        left_out: list[LeftOut],
        stream_kind: str,
    ) -> None:
        self.stream_kind = stream_kind
        self.path, self.damage = path, options.damage
        self.left_out, self.rate = left_out, options.rate
        self.asked: str | None = None
        asked = None if options.time is None else _asked(path, arrays, options.time)
        clocks = {name: array for name, array in arrays.items() if is_clock(name, array)}
        if asked is not None:
            clocks = {asked[0]: arrays[asked[0]]}
            self.asked = asked[0]
        self.arrays = {name: array for name, array in arrays.items() if name not in clocks}
        if not self.arrays:
            self.arrays, clocks = clocks, {}
        self._by_rows(0)  # refuses an invalid rate
        self.names = _names_of(self.arrays)
        self.clocks = {name: self._clock_of(name, clocks) for name in self.arrays}
        for name, array in clocks.items():
            if all(name != used[0] for used in self.clocks.values() if used):
                left_out.append(LeftOut(name, f"{len(array)} times that fit no array"))

        if self.rate is not None:
            self._replace_lost()
        used = {clock[0]: clock[1] for clock in self.clocks.values() if clock}
        unit = None if asked is None else asked[1]
        self.about = {name: _described(name, array, unit) for name, array in used.items()}
        if self.asked in self.about:
            self.about[self.asked].is_asked = True
        self.unit, self.scales = scales_of(path, self.about, options.unit)
        if self.rate is not None and not used:
            self.unit = "s"

    def _replace_lost(self) -> None:
        """Compute times from row numbers for stamps that lost their digits."""
        for name, clock in self.clocks.items():
            if clock is not None:
                fits = row_of(clock[0].rpartition("/")[2])
                unit = None if fits is None else fits[1]
                if lost_digits(clock[1].read(), None if unit is None else per_second(unit)):
                    self.clocks[name] = None

    def _clock_of(self, name: str, clocks: dict[str, Any]) -> tuple[str, Any] | None:
        """Return the times in the same folder with the same length and the most similar name."""
        folder, _, own = name.rpartition("/")
        candidates = {
            clock: array
            for clock, array in clocks.items()
            if clock.rpartition("/")[0] == folder and len(array) == len(self.arrays[name])
        }
        if not candidates:
            same = [c for c in clocks if c.rpartition("/")[0] == folder]
            if len(same) == 1 and own in ("value", "values"):
                text = f"has {len(self.arrays[name])} rows, but {len(clocks[same[0]])} times"
                self.damage.found(self.path, f"{name}.npy", text)
            return None
        best = max(
            candidates, key=lambda clock: len(os.path.commonprefix([own, clock.rpartition("/")[2]]))
        )
        return best, candidates[best]

    @functools.cached_property
    def streams(self) -> dict[str, StreamInfo]:
        return {
            self.names[name]: StreamInfo(
                self.names[name],
                self.stream_kind,
                len(array),
                self._channels(array),
                self._unit_of(name),
                times=self._times_from(name),
            )
            for name, array in self.arrays.items()
        }

    def _by_rows(self, rows: int) -> Any:
        import numpy as np

        return clock_rows(np.array([rows]), self.rate)

    def _unit_of(self, name: str) -> str | None:
        clock = self.clocks[name]
        return self.scales[clock[0]].unit if clock and clock[0] in self.scales else None

    def _times_from(self, name: str) -> str | None:
        clock = self.clocks[name]
        if clock is None:
            return None if self.rate is None else f"row / {self.rate:g} (--fps)"
        text = self.about[clock[0]].why.replace("column ", "array ", 1)
        unit = self._unit_of(name)
        return text if unit is None or f"in {unit}" in text else f"{text}, in {unit}"

    @property
    def unread(self) -> list[Unread]:
        return [
            Unread(f"{name}.npy", "", len(array), None, _NO_TIMES[self.stream_kind])
            for name, array in self.arrays.items()
            if self.clocks[name] is None and self.rate is None
        ]

    @staticmethod
    def _channels(array: Any) -> tuple[str, ...]:
        names = channel_names(array.shape[1:])
        count = math.prod(array.shape[1:])
        return names if names is not None else tuple(f"[{i}]" for i in range(count))

    def look(self) -> None:
        pass

    def pieces(self, names: Collection[str], shown: bool | None = None) -> Iterator[Piece]:
        for name, array in self.arrays.items():
            if self.names[name] in names:
                clocks = {}
                clock = self.clocks[name]
                if clock is not None:
                    times = stamps(clock[1].read(), self.path, f"{clock[0]}.npy")
                    if clock[0] in self.scales:
                        times = self.scales[clock[0]].times(times, self.path, f"{clock[0]}.npy")
                    clocks["time"] = times
                elif self.rate is not None:
                    clocks["time"] = self._by_rows(len(array))
                yield Piece(self.names[name], self._channels(array), _table(array), clocks)


def _names_of(arrays: Collection[str]) -> dict[str, str]:
    """Return stream names: folder/value becomes folder, if no other stream has that name."""
    short = {}
    for name in arrays:
        folder, _, own = name.rpartition("/")
        short[name] = folder if folder and own in ("value", "values") else name
    taken = Counter(short.values())
    return {n: s if taken[s] == 1 and (s == n or s not in arrays) else n for n, s in short.items()}


def is_clock(name: str, array: Any) -> bool:
    if array.ndim != 1 or array.dtype.kind not in "fiu":
        return False
    own = name.rpartition("/")[2]
    fits = row_of(own)
    return bool(_CLOCK.search(own)) or (fits is not None and PATTERNS[fits[0]].needs != FROM_ZERO)


def _described(name: str, array: StoredArray, unit: str | None) -> Clock:
    """Return what is known about an array of times before it is read."""
    fits = row_of(name.rpartition("/")[2])
    kind = "f" if array.dtype.kind == "f" else "i"
    stated = unit or (None if fits is None else fits[1] or _by_row(fits[0], kind))
    clock = Clock(name, kind, stated, (name,), row=None if fits is None else fits[0], asked=unit)
    clock.sample = array.first(_SAMPLE)
    return guessed(clock)


def _by_row(row: int, kind: str) -> str | None:
    return PATTERNS[row].floats if kind == "f" else PATTERNS[row].integers


def _asked(path: str, arrays: dict[str, Any], asked: str) -> tuple[str, str | None]:
    """Return the array of times that the caller named, and its unit."""
    for text, unit in split_unit(asked):
        name = text.removesuffix(".npy")
        found = [each for each in arrays if name in (each, each.rpartition("/")[2])]
        if found and arrays[found[0]].ndim == 1 and arrays[found[0]].dtype.kind in "fiu":
            return found[0], unit
    known = ", ".join(list(arrays)[:12])
    reason = f"--time {asked}: no such array of times, expected one of {known}"
    raise FormatError(path, "", reason)


def _table(array: StoredArray) -> Any:
    """Read an array as [n,D]."""
    return array.read().reshape(len(array), math.prod(array.shape[1:]))
