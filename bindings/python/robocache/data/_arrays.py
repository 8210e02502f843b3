"""Folders of .npy files: streams with their times beside them, or episodes."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from typing import Any

from .. import Track
from ._episodes import About, Episodes
from ._errors import Damage, FormatError, LeftOut
from ._folders import Folder
from ._open import FORMATS, Options, format_of, head
from ._recording import Recording
from ._rows import channel_names, clock_rows, is_picture
from ._source import Piece, StreamInfo

_MAGIC = b"\x93NUMPY"
_CLOCK = re.compile(r"(^|[._-])(t|times?|timestamps?|stamps?)$")
_EPISODE = "episode_index"
_MOST = 10_000  # files


def sniff(path: str) -> bool:
    if os.path.isfile(path):
        return head(path, len(_MAGIC)) == _MAGIC
    if any(name.endswith(".npy") for name in os.listdir(path)):
        return next(iter(_files_in(path)), None) is not None
    others = [name for name in FORMATS if name != __name__.rpartition(".")[2]]
    for entry in os.scandir(path):  # a folder of data sets is none itself
        if not entry.is_dir():
            continue
        is_set = os.path.exists(os.path.join(entry.path, f"{_EPISODE}.npy"))
        if is_set or format_of(entry.path, others) is not None:
            return False
    return next(iter(_files_in(path)), None) is not None


def open(path: str, options: Options) -> Recording | Episodes:
    if os.path.isfile(path):
        array, linked = _load(path, options.damage), []
        if array is None or array.dtype.kind not in "fiub":
            raise FormatError(path, "", "holds no numbers")
        name = os.path.basename(path).removesuffix(".npy")
        arrays = {name: array}
    else:
        folder = Folder(path, options.follow_links)
        linked = _linked_folders(path, folder)
        arrays = {}
        for file in sorted(_files_in(path)):
            opened = _load(folder.file(file), options.damage)
            if opened is not None:
                arrays[file.replace(os.sep, "/").removesuffix(".npy")] = opened
    left_out = [LeftOut(name, "a link to a folder, which is not followed") for name in linked]
    left_out += [
        LeftOut(name, f"no numbers, but {array.dtype}")
        for name, array in arrays.items()
        if array.dtype.kind not in "fiub"
    ]
    left_out += [
        LeftOut(name, f"pictures or clouds, {array.dtype} {list(array.shape)}")
        for name, array in arrays.items()
        if array.dtype.kind in "fiub" and is_picture(array.shape, array.dtype)
    ]
    left_out += [LeftOut(name, "a single number") for name, a in arrays.items() if a.ndim == 0]
    names = {each.place for each in left_out}
    arrays = {name: array for name, array in arrays.items() if name not in names}
    if not arrays:
        raise FormatError(path, "", "holds no arrays with a row a step")
    index = arrays.get(_EPISODE)
    if index is not None and index.ndim == 1 and index.dtype.kind in "iu":
        return _by_index(path, arrays, options, left_out)
    shapes = {array.shape[:2] for array in arrays.values() if array.ndim >= 3}
    if len(shapes) == 1 and all(array.ndim >= 3 for array in arrays.values()):
        return _padded(path, arrays, options, left_out)
    return Recording(_Arrays(path, arrays, options, left_out), progress=options.progress)


def _files_in(path: str) -> Iterator[str]:
    """Names of .npy files below a folder; links to folders are not followed."""
    count = 0
    for base, directories, names in os.walk(path):
        directories.sort()
        for name in sorted(names):
            file = os.path.join(base, name)
            if name.endswith(".npy") and head(file, len(_MAGIC)) == _MAGIC:
                count += 1
                if count > _MOST:
                    raise FormatError(path, "", f"has more than {_MOST} .npy files")
                yield os.path.relpath(file, path)


def _linked_folders(path: str, folder: Folder) -> list[str]:
    """Names of links to folders. One out of the data set is an error, unless links are followed."""
    found = []
    for base, directories, _ in os.walk(path):
        for name in sorted(directories):
            if os.path.islink(os.path.join(base, name)):
                found.append(os.path.relpath(os.path.join(base, name), path))
                folder.file(found[-1])
    return found


def _load(path: str, damage: Damage) -> Any:
    """A view of a file; None of what is damaged."""
    import numpy as np

    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        line = str(error).partition("\n")[0]
        if "pickle" in line or "object" in line.lower():
            damage.found(path, "", "holds Python objects, which are not unpickled")
        else:
            damage.found(path, "", f"is damaged, or cut off: {line}")
        return None
    return array


# ---- episodes -----------------------------------------------------------------------------------


def _by_index(path: str, arrays: Any, options: Options, left_out: list[LeftOut]) -> Episodes:
    """One array tells which episode each row is of."""
    import numpy as np

    index = np.asarray(arrays.pop(_EPISODE))
    numbers, begins, lengths = np.unique(index, return_index=True, return_counts=True)
    if (np.diff(index) < 0).any():
        at = int(np.argmax(np.diff(index) < 0)) + 1
        raise FormatError(path, f"{_EPISODE}.npy, row {at}", "goes back: rows are not in order")
    offsets = np.append(begins, len(index)).astype(np.int64)
    rows = {name: array for name, array in arrays.items() if len(array) == len(index)}
    for name, array in arrays.items():
        if name not in rows:
            text = f"has {len(array)} rows, but {_EPISODE} {len(index)}"
            options.damage.found(path, f"{name}.npy", text)
            left_out.append(LeftOut(name, text))
    clock = next((name for name, a in rows.items() if a.ndim == 1 and _CLOCK.search(name)), None)
    times = clock_rows(lengths, options.rate)
    if clock is not None:
        times = _stamps(rows.pop(clock))
    tracks = {
        name: Track(_table(array), offsets, times=times, names=channel_names(array.shape[1:]))
        for name, array in rows.items()
    }
    if not tracks:
        raise FormatError(path, "", f"has nothing beside {_EPISODE}")
    return _made(path, tracks, options, left_out, [int(n) for n in numbers])


def _padded(path: str, arrays: Any, options: Options, left_out: list[LeftOut]) -> Episodes:
    """Episodes of one length: [E,T,...]."""
    import numpy as np

    episodes, steps = next(iter(arrays.values())).shape[:2]
    offsets = np.arange(episodes + 1, dtype=np.int64) * steps
    times = clock_rows(np.full(episodes, steps), options.rate)
    tracks = {
        name: Track(
            np.ascontiguousarray(array).reshape(episodes * steps, -1),
            offsets,
            times=times,
            names=channel_names(array.shape[2:]),
        )
        for name, array in arrays.items()
    }
    return _made(path, tracks, options, left_out, list(range(episodes)))


def _made(
    path: str, tracks: Any, options: Options, left_out: list[LeftOut], numbers: list[int]
) -> Episodes:
    about = About(
        "arrays of episodes",
        unit=options.unit or "s",
        rate=options.rate,
        info={"episodes": numbers},
        left_out=tuple(left_out),
        problems=options.damage.problems,
    )
    return Episodes.made(tracks, source=path, about=about)


# ---- streams ------------------------------------------------------------------------------------


class _Arrays:
    """A source of streams (``_source.Source``): an array each, on the clock beside it."""

    kind = "arrays"

    def __init__(
        self, path: str, arrays: dict[str, Any], options: Options, left_out: list[LeftOut]
    ) -> None:
        self.path, self.damage, self.unit = path, options.damage, options.unit
        self.left_out = left_out
        clocks = {name: array for name, array in arrays.items() if _is_clock(name, array)}
        self.arrays = {name: array for name, array in arrays.items() if name not in clocks}
        if not self.arrays:
            self.arrays, clocks = clocks, {}
        self.clocks = {name: self._clock_of(name, clocks) for name in self.arrays}
        for name, array in clocks.items():
            if all(array is not clock for clock in self.clocks.values()):
                left_out.append(LeftOut(name, f"{len(array)} times, of no array beside them"))

    def _clock_of(self, name: str, clocks: dict[str, Any]) -> Any:
        """The times in the same folder, of the same number; of several those named most alike."""
        folder, _, own = name.rpartition("/")
        beside = {
            clock: array
            for clock, array in clocks.items()
            if clock.rpartition("/")[0] == folder and len(array) == len(self.arrays[name])
        }
        if not beside:
            same = [c for c in clocks if c.rpartition("/")[0] == folder]
            if len(same) == 1 and own in ("value", "values"):
                text = f"has {len(self.arrays[name])} rows, but {len(clocks[same[0]])} times"
                self.damage.found(self.path, f"{name}.npy", text)
            return None
        best = max(
            beside, key=lambda clock: len(os.path.commonprefix([own, clock.rpartition("/")[2]]))
        )
        return beside[best]

    @property
    def streams(self) -> dict[str, StreamInfo]:
        return {
            self._name(name): StreamInfo(self._name(name), "npy", len(array), self._channels(array))
            for name, array in self.arrays.items()
        }

    def _name(self, name: str) -> str:
        """processed_log/IMU/gyro/value is the stream processed_log/IMU/gyro."""
        folder, _, own = name.rpartition("/")
        return folder if folder and own in ("value", "values") else name

    @staticmethod
    def _channels(array: Any) -> tuple[str, ...]:
        import math

        names = channel_names(array.shape[1:])
        count = math.prod(array.shape[1:])
        return names if names is not None else tuple(f"[{i}]" for i in range(count))

    def look(self) -> None:
        pass

    def pieces(self, names: Collection[str], shown: bool | None = None) -> Iterator[Piece]:
        for name, array in self.arrays.items():
            if self._name(name) in names:
                times = self.clocks[name]
                clocks = {} if times is None else {"time": _stamps(times)}
                yield Piece(self._name(name), self._channels(array), _table(array), clocks)


def _is_clock(name: str, array: Any) -> bool:
    return (
        array.ndim == 1
        and array.dtype.kind in "fiu"
        and bool(_CLOCK.search(name.rpartition("/")[2]))
    )


def _table(array: Any) -> Any:
    """[n,D] in memory."""
    import numpy as np

    return np.array(array).reshape(len(array), -1)


def _stamps(array: Any) -> Any:
    """Times as int64 or float64."""
    import numpy as np

    return np.array(array, np.float64 if array.dtype.kind == "f" else np.int64)
