"""Cameras whose frames are the rows of an array: in memory, in a map, in HDF5 and in Zarr."""

from __future__ import annotations

import copy
import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..._printable import kind_of
from .._errors import FormatError
from .source import Contents, FrameSource, require_episode, require_request

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_VERSION = 1  # of what computes the bytes of frames
_CHANNELS = (1, 3)
_LEAST = 8  # pixels of a side: smaller arrays are not pictures
_GRAY, _LAST, _FIRST = "gray", "last", "first"  # where the channels are
_WHOLE = "whole numbers 0 to 255"


class StoredRows(Contents):
    """The array of a camera: rows of one shape and dtype, by episode.

    Attributes that begin with an underscore are what is open: pickles and copies lack them.
    """

    row: tuple[int, ...]  #: shape of a row
    dtype: Any

    @abstractmethod
    def parts(self, episode: int, rows: NDArray[np.int64]) -> Iterator[tuple[int, Any]]:
        """Yield rows as (index in ``rows``, values [k,...]), in order.

        The values are valid until the next part.
        """

    #: Why the array is not a camera: path, place and reason.
    fault: tuple[str, str, str] | None = None
    #: The same, if some episodes lack it: they have no frames.
    partial: tuple[str, str, str] | None = None

    def require(self) -> None:
        """Raise a FormatError if there is a fault."""
        if self.fault is not None:
            raise FormatError(*self.fault)

    def fault_text(self) -> str | None:
        """Return why the array is not a camera of all episodes, without the folder."""
        fault = self.fault or self.partial
        if fault is None:
            return None
        path, place, reason = fault
        return str(FormatError(os.path.basename(path), place, reason))

    def _forget(self) -> None:  # noqa: B027  # rows in memory have nothing open
        """Begin with nothing open."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name[0] != "_"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()


class ArrayFrames(FrameSource):
    """Frames in an array: one row per frame, uint8 [n,H,W,C] with 1 or 3 channels, or [n,H,W].

    Arrays with the channels first, [n,C,H,W], are converted if the shape leaves no doubt. Floats
    that are whole numbers from 0 to 255 become uint8; other floats are an error. The order of the
    channels is that of the file: neither HDF5 nor Zarr says whether it is RGB or BGR.

    Parameters
    ----------
    name
        Name of the camera.
    array
        An array in memory, or a ``np.memmap``, such as ``np.load(path, mmap_mode="r")`` returns.
        A pickle of a map holds its path; a pickle of an array in memory holds its pixels.
    offsets : int64 [E+1]
        The first row of each episode, and the end of the last one.

    Raises
    ------
    ValueError
        The array is not of frames, or the offsets do not fit it.
    """

    def __init__(self, name: str, array: Any, offsets: Any) -> None:
        self._set(name, MemoryRows(name, array, offsets))
        problem = not_frames(self._rows.row, self._rows.dtype)
        if problem is not None:
            raise ValueError(f"array: camera {name!r} {problem}")

    @classmethod
    def made(cls, name: str, rows: StoredRows) -> ArrayFrames:
        """Return the camera of an array in files."""
        made = cls.__new__(cls)
        made._set(name, rows)
        return made

    def _set(self, name: str, rows: StoredRows) -> None:
        self.name = name
        self.path = rows.path
        self._rows = rows

    @property
    def fault(self) -> str | None:
        """Why the array is not a camera of all episodes, without the folder; or None."""
        return self._rows.fault_text()

    @property
    def shape(self) -> tuple[int, int, int]:
        self._rows.require()
        problem = not_frames(self._rows.row, self._rows.dtype)
        if problem is not None:
            raise FormatError(self.path, self.name, problem)
        row, layout = self._rows.row, layout_of(self._rows.row)
        if layout == _GRAY:
            return row[0], row[1], 1
        return (row[0], row[1], row[2]) if layout == _LAST else (row[1], row[2], row[0])

    @property
    def lengths(self) -> NDArray[np.int64]:
        self._rows.require()
        lengths: NDArray[np.int64] = self._rows.lengths
        return lengths

    def files(self, episode: int) -> tuple[str, ...]:
        require_episode(self, episode)
        return self._rows.files(episode)

    def place(self, episode: int) -> Any:
        require_episode(self, episode)
        return self._rows.place(episode)

    def arithmetic(self) -> Mapping[str, Any]:
        made: dict[str, Any] = {"frames": ["ArrayFrames", _VERSION]}
        if self._rows.dtype.kind == "f":
            made["floats"] = _WHOLE
        return made

    def read(self, episode: int, rows: NDArray[np.int64], out: NDArray[np.uint8]) -> None:
        rows = require_request(self, episode, rows, out)
        if not len(rows):
            return
        layout = layout_of(self._rows.row)
        for at, values in self._rows.parts(episode, rows):
            into = out[at : at + len(values)]
            if values.dtype.kind == "f":
                self._require_whole(episode, rows[at : at + len(values)], values)
            if layout == _GRAY:
                values = values[..., None]
            elif layout == _FIRST:
                values = values.transpose(0, 2, 3, 1)
            into[...] = values

    def _require_whole(self, episode: int, rows: Any, values: Any) -> None:
        """Refuse floats that uint8 cannot hold."""
        import numpy as np

        good = (values >= 0) & (values <= 255) & (values == np.floor(values))
        if good.all():
            return
        at = tuple(each[0] for each in np.nonzero(~good))
        path, place = self._rows.where(episode, int(rows[at[0]]))
        raise FormatError(
            path,
            place,
            f"has the value {values[at]} in {values.dtype}, expected {_WHOLE}; if 1 is white, "
            "multiply by 255, round, and store uint8",
        )

    def encoded(self, episode: int) -> Iterator[bytes]:
        """Yield the frames of an episode as PNG files; gray becomes RGB."""
        import numpy as np

        from .._write.pictures import png

        height, width, channels = self.shape
        frame = np.empty((1, height, width, channels), np.uint8)
        for row in range(int(self.lengths[episode])):
            self.read(episode, np.array([row]), frame)
            yield png(np.broadcast_to(frame[0], (height, width, 3)))

    def copy(self) -> ArrayFrames:
        made = copy.copy(self)
        made._rows = self._rows.copy()
        return made

    def close(self) -> None:
        self._rows.close()

    def __repr__(self) -> str:
        return f"ArrayFrames({self.name!r}, {self._rows.dtype} {list(self._rows.row)})"


# ---- shapes -------------------------------------------------------------------------------------


def layout_of(row: tuple[int, ...]) -> str:
    """Return where the channels are in a row that ``not_frames`` accepts."""
    if len(row) == 2:
        return _GRAY
    return _LAST if row[2] in _CHANNELS else _FIRST


def not_frames(row: tuple[int, ...], dtype: Any) -> str | None:
    """Return why rows are not frames, as a part of a sentence; None if they are."""
    shape = f"rows of shape {list(row)}"
    if dtype.kind != "f" and dtype.name != "uint8":
        return (
            f"has dtype {dtype}, expected uint8; depth of 16 bits is for unproject, other arrays "
            "have to be stored as uint8"
        )
    if len(row) not in (2, 3) or 0 in row:
        return f"has {shape}, expected [H,W,3], [H,W,1], [H,W] or [3,H,W]"
    if len(row) == 3:
        first, last = row[0] in _CHANNELS, row[2] in _CHANNELS
        if first and last:
            return f"has {shape}, whose channels may be first or last; store them as [H,W,C]"
        if not first and not last:
            if 4 in (row[0], row[2]):
                return (
                    f"has {shape}, with 4 channels, expected 1 or 3; store the frames without "
                    "alpha, or pass ArrayFrames(name, array[..., :3], offsets)"
                )
            return f"has {shape}, expected 1 or 3 channels, last or first"
    return None


def may_be_camera(shape: tuple[int, ...], dtype: Any, name: str = "") -> bool:
    """Whether an array [n,...] of a data set holds frames, by its shape, dtype and name.

    Floats are only frames if the name says so: other arrays of this shape are maps of points.
    """
    row = shape[1:]
    if len(shape) not in (3, 4) or not_frames(row, dtype) is not None:
        return False
    if dtype.kind == "f" and (len(shape) != 4 or not _is_picture_name(name)):
        return False
    layout = layout_of(row)
    height, width = row[1:] if layout == _FIRST else row[:2]
    least = _LEAST if layout == _GRAY or dtype.kind == "f" else 2
    return min(height, width) >= least


def _is_picture_name(name: str) -> bool:
    last = name.rpartition("/")[2].lower()
    return any(part in last for part in ("img", "image", "rgb", "cam"))


# ---- arrays in memory, and maps -----------------------------------------------------------------


class MemoryRows(StoredRows):
    """Rows of an array in memory, or of a map of a file."""

    def __init__(self, name: str, array: Any, offsets: Any) -> None:
        import numpy as np

        if not isinstance(array, np.ndarray):
            raise ValueError(f"array: is {kind_of(array)}, expected a NumPy array or a map")
        ends = np.asarray(offsets)
        if ends.ndim != 1 or len(ends) < 1 or ends.dtype.kind not in "iu":
            raise ValueError("offsets: expected integers [E+1]: the first row of each episode")
        ends = ends.astype(np.int64)
        if ends[0] < 0 or (ends[1:] < ends[:-1]).any():
            raise ValueError("offsets: expected rows that ascend from 0 or more")
        if array.ndim < 1 or ends[-1] > len(array):
            rows = len(array) if array.ndim else 0
            raise ValueError(
                f"offsets: the last episode ends at row {ends[-1]}, but the array has {rows} rows"
            )
        self.name = name
        self.row, self.dtype = tuple(array.shape[1:]), array.dtype
        self.begins, self.lengths = ends[:-1], np.diff(ends)
        self.map = _map_of(array)
        self.path = "" if self.map is None else self.map["path"]
        self.array: Any = array

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        if self.map is not None:
            state["array"] = None  # mapped again when it is read
        return state

    def files(self, episode: int) -> tuple[str, ...]:
        if self.map is None:
            raise ValueError(
                f"camera {self.name!r} is an array in memory, which a cache cannot store; pass "
                'store="none" to Images, or save it with np.save, and pass np.load(path, '
                'mmap_mode="r")'
            )
        return (self.path,)

    def place(self, episode: int) -> Any:
        made = [int(self.begins[episode]), int(self.lengths[episode])]
        if self.map is None:
            return made
        first = self.map["offset"] + int(self.begins[episode]) * self.map["strides"][0]
        layout = [*self.row, self.dtype.str, *self.map["strides"]]
        return [first, int(self.lengths[episode]), layout]

    def where(self, episode: int, row: int) -> tuple[str, str]:
        return self.path or "array in memory", f"{self.name}, episode {episode}, row {row}"

    def parts(self, episode: int, rows: Any) -> Iterator[tuple[int, Any]]:
        if self.map is not None:
            self._require_size()
        if self.array is None:
            self.array = _mapped(self.map)
        begin = int(self.begins[episode])
        for at, first, count in runs(rows):
            yield at, self.array[begin + first : begin + first + count]

    def _require_size(self) -> None:
        """Refuse a file that was truncated, since reading beyond its end ends the process."""
        assert self.map is not None
        size = os.path.getsize(self.path)
        if size < self.map["end"]:
            raise FormatError(
                self.path,
                self.name,
                f"is truncated: it has {size} bytes, but its frames need {self.map['end']}",
            )

    def close(self) -> None:
        if self.map is not None:
            self.array = None


def _map_of(array: Any) -> dict[str, Any] | None:
    """Return where the elements of a map are in its file; None for another array."""
    import mmap

    import numpy as np

    base: Any = array
    while base is not None and not isinstance(base, mmap.mmap):
        base = base.base if isinstance(base, np.ndarray) else None
    path = getattr(array, "filename", None)
    if base is None or path is None:
        return None
    start = array.offset - array.offset % mmap.ALLOCATIONGRANULARITY
    begin = np.frombuffer(base, np.uint8).__array_interface__["data"][0]
    offset = start + array.__array_interface__["data"][0] - begin
    spans = [(extent - 1) * stride for extent, stride in zip(array.shape, array.strides)]
    if 0 in array.shape:
        spans = []
    if any(span < 0 for span in spans):
        raise ValueError("array: is a map in reverse order; pass it in the order of the file")
    return {
        "path": os.path.abspath(os.fspath(path)),
        "offset": int(offset),
        "shape": tuple(array.shape),
        "strides": tuple(array.strides),
        "dtype": array.dtype,
        "end": int(offset) + sum(spans) + array.itemsize if spans else 0,
    }


def _mapped(facts: Any) -> Any:
    """Map the elements of an array in a file again."""
    import numpy as np

    if not facts["end"]:
        return np.zeros(facts["shape"], facts["dtype"])
    whole = np.memmap(facts["path"], np.uint8, "r")
    return np.ndarray(
        facts["shape"], facts["dtype"], whole, offset=facts["offset"], strides=facts["strides"]
    )


def runs(rows: Any, most: int | None = None) -> Iterator[tuple[int, int, int]]:
    """Yield (index, row, count) for each run of consecutive rows, of at most ``most`` rows."""
    import numpy as np

    cuts = np.flatnonzero(np.diff(rows) != 1) + 1
    for begin, end in zip([0, *cuts.tolist()], [*cuts.tolist(), len(rows)]):
        step = most or end - begin
        for at in range(begin, end, max(1, step)):
            yield at, int(rows[at]), min(step, end - at)


def blocks(rows: Any, size: int) -> Iterator[tuple[int, int, Any]]:
    """Yield (index, block, rows) for the rows in each block of ``size`` rows."""
    import numpy as np

    numbers = rows // size
    cuts = np.flatnonzero(np.diff(numbers)) + 1
    for begin, end in zip([0, *cuts.tolist()], [*cuts.tolist(), len(rows)]):
        yield begin, int(numbers[begin]), rows[begin:end]
