"""Cameras whose frames are PNG and JPEG files: in folders, and in the files of data sets."""

from __future__ import annotations

import copy
import hashlib
import os
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Union

from .._errors import FormatError
from .._file_access import opened, walked
from .picture_decoder import PictureDecoder, shape_of
from .source import Contents, FrameSource, require_episode, require_request

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Place = Union[str, "os.PathLike[str]"]

_VERSION = 1  # of the order of frames
SUFFIXES = (".png", ".jpg", ".jpeg")


class Files(Contents):
    """The PNG or JPEG files of a camera, by episode and row."""

    times: Any  #: of the pictures of the only episode, int64 [n] in ns; absent: not known

    @abstractmethod
    def contents(self, episode: int, rows: NDArray[np.int64]) -> Iterator[bytes]:
        """Yield the content of each picture."""


class ImageFrames(FrameSource):
    """Frames that are PNG and JPEG pictures, decoded to RGB; gray becomes three equal channels.

    The orientation in EXIF is not applied, with one warning. All pictures have one size.

    Parameters
    ----------
    name
        Name of the camera.
    folders
        A folder, which is one episode, or a list with a folder per episode. The rows are the PNG
        and JPEG files in it, sorted by name, with numbers by their value: 2.png before 10.png.
    convert
        None: CMYK, alpha, palettes and 16 bits are an error. "RGB" converts them: alpha is
        dropped, and of 16 bits the upper 8 are kept.
    times
        The time of each picture in nanoseconds, int64 [n], for one folder. None: not known.
    """

    def __init__(
        self,
        name: str,
        folders: Place | Sequence[Place],
        *,
        convert: str | None = None,
        times: Any = None,
    ) -> None:
        own = [folders] if isinstance(folders, (str, os.PathLike)) else list(folders)
        if times is not None and len(own) != 1:
            raise ValueError(f"times: expected one folder, got {len(own)}")
        files = FolderPictures(name, [os.fspath(folder) for folder in own], times)
        self._set(name, files, convert)

    @classmethod
    def made(cls, name: str, files: Files, *, convert: str | None = None) -> ImageFrames:
        """Return the camera of pictures in other files."""
        made = cls.__new__(cls)
        made._set(name, files, convert)
        return made

    fault: str | None = None  # as of ArrayFrames: readers list such pictures in left_out

    def _set(self, name: str, files: Files, convert: str | None) -> None:
        self.name = name
        self.path = files.path
        self._files = files
        self._decoder = PictureDecoder(convert)
        self._shape: tuple[int, int, int] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_decoder": self._decoder.convert}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._decoder = PictureDecoder(state["_decoder"])

    @property
    def times(self) -> NDArray[np.int64] | None:
        """The time of each picture in nanoseconds, int64 [n]; None: not known."""
        times: NDArray[np.int64] | None = getattr(self._files, "times", None)
        return times

    @property
    def shape(self) -> tuple[int, int, int]:
        import numpy as np

        if self._shape is None:
            episode = next((e for e, length in enumerate(self.lengths.tolist()) if length), None)
            if episode is None:
                raise FormatError(self.path, self.name, "has no frames")
            content = next(iter(self._files.contents(episode, np.array([0]))))
            try:
                self._shape = shape_of(content)
            except ValueError as error:
                raise FormatError(*self._files.where(episode, 0), str(error)) from None
        return self._shape

    @property
    def lengths(self) -> NDArray[np.int64]:
        lengths: NDArray[np.int64] = self._files.lengths
        return lengths

    def files(self, episode: int) -> tuple[str, ...]:
        require_episode(self, episode)
        return self._files.files(episode)

    def place(self, episode: int) -> Any:
        require_episode(self, episode)
        return self._files.place(episode)

    def arithmetic(self) -> Mapping[str, Any]:
        return {"frames": ["ImageFrames", _VERSION], **self._decoder.arithmetic()}

    def read(self, episode: int, rows: NDArray[np.int64], out: NDArray[np.uint8]) -> None:
        rows = require_request(self, episode, rows, out)
        contents = self._files.contents(episode, rows) if len(rows) else ()
        count = 0
        for row, into, content in zip(rows.tolist(), out, contents):
            try:
                frame = self._decoder.rgb(content)
            except ValueError as error:
                raise FormatError(*self._files.where(episode, row), str(error)) from None
            if frame.shape != self.shape:
                text = f"has {_size(frame.shape)} pixels, but the first frame has "
                text += _size(self.shape)
                raise FormatError(*self._files.where(episode, row), text)
            into[...] = frame
            count += 1
        if count != len(rows):
            raise FormatError(*self._files.where(episode, int(rows[count])), "is missing")

    def encoded(self, episode: int) -> Iterator[bytes]:
        """Yield the pictures of an episode as they are stored."""
        import numpy as np

        yield from self._files.contents(episode, np.arange(int(self.lengths[episode])))

    def with_options(
        self, *, convert: str | None = None, rotate: bool = False, max_age: float | None = None
    ) -> FrameSource:
        super().with_options(rotate=rotate, max_age=max_age)
        return self if convert == self._decoder.convert else self._copy(convert)

    def copy(self) -> ImageFrames:
        return self._copy(self._decoder.convert)

    def _copy(self, convert: str | None) -> ImageFrames:
        made = copy.copy(self)
        made._decoder = PictureDecoder(convert)
        made._files = self._files.copy()
        return made

    def close(self) -> None:
        self._files.close()

    def __repr__(self) -> str:
        return f"ImageFrames({self.name!r}, {self.path!r})"


def _size(shape: Sequence[int]) -> str:
    return f"{shape[1]} x {shape[0]}"


# ---- files in folders ---------------------------------------------------------------------------


class NamedPictures(Files):
    """Pictures that are files of their own: their names relative to a folder, by episode."""

    def __init__(self, path: str, names: Sequence[Sequence[str]], times: Any = None) -> None:
        import numpy as np

        self.path = path
        self.names = [list(own) for own in names]
        self.times = times
        self.lengths = np.array([len(own) for own in self.names], np.int64)

    def files(self, episode: int) -> tuple[str, ...]:
        return tuple(os.path.join(self.path, name) for name in self.names[episode])

    def place(self, episode: int) -> Any:
        """Return the number of pictures and a digest of their names, in the order of the rows."""
        names = b"\0".join(map(os.fsencode, self.names[episode]))
        return [len(self.names[episode]), hashlib.sha256(names).hexdigest()]

    def where(self, episode: int, row: int) -> tuple[str, str]:
        return os.path.join(self.path, self.names[episode][row]), f"episode {episode}, row {row}"

    def contents(self, episode: int, rows: Any) -> Iterator[bytes]:
        for row in rows.tolist():
            path, place = self.where(episode, row)
            try:
                with opened(path) as file:
                    yield file.read()
            except FileNotFoundError:
                raise FormatError(path, place, "is missing") from None


class FolderPictures(NamedPictures):
    """The pictures of a folder per episode, which are listed when they are first needed."""

    def __init__(self, name: str, folders: Sequence[str], times: Any = None) -> None:
        import numpy as np

        self.name = name
        self.times = None if times is None else np.ascontiguousarray(times, np.int64)
        self.folders = [os.path.abspath(folder) for folder in folders]
        self.path = os.path.commonpath(self.folders) if self.folders else ""

    def __getattr__(self, name: str) -> Any:
        if name not in ("names", "lengths") or "folders" not in self.__dict__:
            raise AttributeError(name)
        names = [self._listed(each) for each in self.folders]
        if self.times is not None and len(self.times) != len(names[0]):
            text = f"has {len(names[0])} pictures, but {len(self.times)} times are given"
            raise FormatError(self.path, self.name, text)
        NamedPictures.__init__(self, self.path, names, self.times)
        return self.__dict__[name]

    def _listed(self, folder: str) -> list[str]:
        try:
            _, _, names = next(walked(folder))
        except (FileNotFoundError, NotADirectoryError):
            raise FormatError(folder, self.name, "is not a folder") from None
        found = [name for name in names if name.lower().endswith(SUFFIXES) and name[0] != "."]
        if not found:
            raise FormatError(folder, self.name, "has no PNG or JPEG files: zero frames")
        own = os.path.relpath(folder, self.path)
        return [os.path.normpath(os.path.join(own, name)) for name in sorted(found, key=by_number)]


def by_number(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """Return a sort key that puts 2.png before 10.png."""
    parts = re.split(r"(\d+)", name)
    return [(0, int(p), "") if p.isdecimal() else (1, 0, p) for p in parts], name
