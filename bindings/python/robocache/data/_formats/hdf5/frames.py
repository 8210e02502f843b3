"""The frames of cameras in HDF5: arrays of pixels, and files of PNG and JPEG in rows of bytes."""

from __future__ import annotations

import copy
import math
import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..._errors import FormatError, some
from ..._file_access import Limit
from ..._frames.arrays import ArrayFrames, StoredRows, blocks, runs
from ..._frames.picture_decoder import kind_of
from ..._frames.pictures import Files, ImageFrames
from .process import Failure, File, Piece, close_unused

_FILES = 8  # that are kept open, of data sets with a file per episode
_PIECE = 4 << 20  # bytes of rows that are read in one step, if chunks are smaller
_LEAST_FILE = 64  # bytes: smaller rows are not files of PNG or JPEG
_BLOCK = 64 << 20  # bytes of a packed chunk that are kept for the next rows


@dataclass(frozen=True)
class Place:
    """The rows of an episode."""

    file: str
    group: str
    length: int
    row: tuple[int, ...]  #: shape of a row
    chunk: int  #: rows that are packed together
    dtype: str  #: native

    @property
    def bytes(self) -> int:
        """Bytes of a row."""
        import numpy as np

        return math.prod(self.row) * int(np.dtype(self.dtype).itemsize)


class Hdf5Rows(StoredRows):
    """The rows of one array per episode, which the process for HDF5 reads.

    Rows in packed chunks are read in whole chunks. The last chunk is kept.
    """

    def __init__(
        self,
        path: str,
        name: str,
        places: list[Place],
        limit: Limit,
        fault: tuple[str, str, str] | None = None,
    ) -> None:
        import numpy as np

        self.path, self.name = path, name
        self.places, self.limit, self.fault = places, limit, fault
        self.dtype = np.dtype(places[0].dtype)
        self.row = places[0].row
        self.lengths = np.array([place.length for place in places], np.int64)
        self._forget()

    def _forget(self) -> None:
        self._files: OrderedDict[str, File] = OrderedDict()
        self._block: tuple[Any, Any] = (None, None)  # episode and number, and the rows

    def files(self, episode: int) -> tuple[str, ...]:
        return (self.places[episode].file,)

    def place(self, episode: int) -> Any:
        own = self.places[episode]
        return [own.group, self.name, own.length, list(own.row), own.dtype]

    def where(self, episode: int, row: int) -> tuple[str, str]:
        own = self.places[episode]
        return own.file, f"{own.group}/{self.name}, episode {episode}, row {row}".lstrip("/")

    def parts(self, episode: int, rows: Any) -> Iterator[tuple[int, Any]]:
        place = self.places[episode]
        size, chunk = max(1, place.bytes), place.chunk
        if chunk <= 1:
            spans = list(runs(rows, max(1, _PIECE // size)))
            for i in range(0, len(spans), _FILES):  # a few pieces at once
                part = spans[i : i + _FILES]
                yield from self._read(episode, [(at, a, a + n) for at, a, n in part])
            return
        chunk = min(chunk, max(1, _BLOCK // size))
        for at, number, own in blocks(rows, chunk):
            begin = number * chunk
            if self._block[0] != (episode, number):
                self._block = (None, None)
                for _, values in self._read(
                    episode, [(0, begin, min(begin + chunk, place.length))]
                ):
                    self._block = ((episode, number), values)
            yield at, self._block[1][own - begin]

    def _read(self, episode: int, spans: list[tuple[int, int, int]]) -> list[tuple[int, Any]]:
        """Read ranges of rows: (index, begin, end)."""
        import numpy as np

        own = self.places[episode]
        dtype = np.dtype(own.dtype)
        made: list[tuple[int, Any]] = []

        def take(piece: Piece, values: Any, facts: dict[str, Any]) -> None:
            path, place = self.where(episode, piece.begin)
            if isinstance(values, Failure):
                raise FormatError(path, place, f"cannot be read: {values.reason}")
            if facts["repeated"]:
                text = f"the index lists {facts['repeated']} chunks more than once"
                raise FormatError(path, place, text)
            if facts["first_unwritten"] is not None:
                path, place = self.where(episode, facts["first_unwritten"])
                raise FormatError(path, place, "was never written: the recording is incomplete")
            made.append((piece.owner, values.copy()))

        file = self._opened(episode)
        file.read(
            [Piece(own.group, self.name, a, b, own.row, dtype, at) for at, a, b in spans], take
        )
        file.require_unchanged()
        return made

    def _opened(self, episode: int) -> File:
        """Return the file of an episode, open; the last few stay open."""
        place = self.places[episode]
        path = place.file
        file = self._files.pop(path, None)
        if file is None:
            while len(self._files) >= _FILES:
                self._files.popitem(last=False)[1].__exit__()
            try:
                file = File(path, self.limit).__enter__()
            except FileNotFoundError:
                raise FormatError(path, "", "is missing") from None
            unpacked = place.bytes * place.chunk
            self.limit.require(path, f"{self.name}, a chunk", unpacked, os.path.getsize(path))
        self._files[path] = file
        return file

    def close(self) -> None:
        files = list(self._files.values())
        self._forget()
        for file in files:
            file.__exit__()

    def __del__(self) -> None:
        files = self.__dict__.get("_files")
        if files:  # else modules may be gone: at the end of the process
            close_unused(files.values())  # else they stay locked


# ---- which arrays are cameras -------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """An array of an episode that may hold the frames of a camera."""

    shape: tuple[int, ...]
    dtype: Any
    chunk: int  #: rows that are packed together
    lacking: tuple[str, ...]  #: filters that are not installed
    encoded: bool  #: whether each row may be a PNG or JPEG file


def may_be_encoded(shape: tuple[int, ...], dtype: Any) -> bool:
    """Whether rows may be files of PNG or JPEG: bytes that zeros follow, or strings."""
    if dtype.kind == "S":
        return len(shape) == 1 and dtype.itemsize >= _LEAST_FILE
    return len(shape) == 2 and dtype.name == "uint8" and shape[1] >= _LEAST_FILE


def cameras_of(
    path: str, demos: Sequence[Any], limit: Limit
) -> dict[str, ArrayFrames | ImageFrames]:
    """Return the cameras of all episodes; an array that differs between them has a fault."""
    made: dict[str, ArrayFrames | ImageFrames] = {}
    for name in dict.fromkeys(name for demo in demos for name in demo.pictures):
        found = [demo.pictures.get(name) for demo in demos]
        first = next(each for each in found if each is not None)
        places = [
            _place(demo, each or first, 0 if each is None else demo.length)
            for demo, each in zip(demos, found)
        ]
        fault = _fault(name, demos, found)
        rows = Hdf5Rows(path, name, places, limit, fault)
        lacking = [_label(demo) for demo, each in zip(demos, found) if each is None]
        if lacking:
            text = f"is not a camera in all episodes: {some(lacking)} lack it"
            rows.partial = (path, name, text)
        if not first.encoded:
            made[name] = ArrayFrames.made(name, rows)
        elif fault is None and _is_encoded(rows):
            made[name] = camera = ImageFrames.made(name, RowFiles(rows))
            camera.fault = rows.fault_text()
    return made


def is_rgb(camera: ArrayFrames | ImageFrames) -> bool:
    """Whether a camera is not gray; files of PNG and JPEG are decoded to RGB."""
    return isinstance(camera, ImageFrames) or camera.shape[2] == 3


def _row(found: Found) -> tuple[int, ...]:
    return found.shape[1:]


def _place(demo: Any, found: Found, length: int) -> Place:
    dtype = found.dtype.newbyteorder("=").str
    return Place(demo.file, demo.group, length, _row(found), found.chunk, dtype)


def _label(demo: Any) -> str:
    return str(demo.group or os.path.basename(demo.file))


def _fault(
    name: str, demos: Sequence[Any], found: Sequence[Found | None]
) -> tuple[str, str, str] | None:
    """Return why an array is not a camera of the episodes that have it: path, place and reason."""
    pairs = [(demo, each) for demo, each in zip(demos, found) if each is not None]
    first_demo, first = pairs[0]
    for demo, each in pairs:
        place = f"{demo.group}/{name}".lstrip("/")
        if each.shape[0] not in (demo.length, demo.length + 1):
            text = f"has {each.shape[0]} frames, but the tracks of this episode have {demo.length}"
            return demo.file, place, f"{text} rows"
        same = (each.encoded, first.encoded) == (True, True)
        if not same and (_row(each), each.dtype) != (_row(first), first.dtype):
            text = f"has {each.dtype} {list(_row(each))}, but {_label(first_demo)} has "
            return demo.file, place, f"{text}{first.dtype} {list(_row(first))}"
        if each.lacking:
            text = f"is packed with the filter {', '.join(each.lacking)}, which is not installed"
            return demo.file, place, f"{text}: pip install hdf5plugin"
    return None


def _is_encoded(rows: Hdf5Rows) -> bool:
    """Whether the first row that exists is a PNG or JPEG file."""
    import numpy as np

    episode = next((e for e, length in enumerate(rows.lengths.tolist()) if length), None)
    if episode is None:
        return False
    try:
        _, values = next(rows.parts(episode, np.array([0])))
    except FormatError:
        return False
    finally:
        rows.close()
    return kind_of(values[0].tobytes()) is not None


class RowFiles(Files):
    """PNG and JPEG files in the rows of arrays, padded with zeros, as ALOHA writes them."""

    def __init__(self, rows: Hdf5Rows) -> None:
        self.rows = rows
        self.path, self.lengths = rows.path, rows.lengths

    def files(self, episode: int) -> tuple[str, ...]:
        return self.rows.files(episode)

    def place(self, episode: int) -> Any:
        return self.rows.place(episode)

    def where(self, episode: int, row: int) -> tuple[str, str]:
        return self.rows.where(episode, row)

    def contents(self, episode: int, rows: Any) -> Iterator[bytes]:
        for _, values in self.rows.parts(episode, rows):
            for row in values:
                yield row.tobytes().rstrip(b"\0")

    def copy(self) -> RowFiles:
        return RowFiles(copy.copy(self.rows))

    def close(self) -> None:
        self.rows.close()
