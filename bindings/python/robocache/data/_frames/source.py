"""A camera of a data set: the frames of each episode, one per row."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Self


class FrameSource(ABC):
    """The frames of one camera of a data set: bytes [H,W,C] by episode and row.

    A subclass says what the frames are, and reads some of them. Frames are always the same bytes
    for the same files. Creating a source opens no file; an object keeps files open once it has
    read, and belongs to one thread. A pickle holds paths and numbers, not pixels, and
    opens the files again.

    ``VideoFrames``, ``ImageFrames``, ``ArrayFrames`` and ``RosFrames`` are the sources of the
    formats that robocache reads.
    """

    #: Name of the camera, such as "observation.images.front".
    name: str
    #: The file or folder of the data set.
    path: str

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int, int]:
        """Height, width and channels of each frame: 3 for RGB, 1 for gray.

        Raises
        ------
        FormatError
            The files do not say it, or are damaged.
        """

    @property
    @abstractmethod
    def lengths(self) -> NDArray[np.int64]:
        """The number of frames of each episode of the data set, int64 [E]: one per row."""

    @abstractmethod
    def files(self, episode: int) -> tuple[str, ...]:
        """Return the paths of the files that hold the frames of an episode, at least one.

        Frames are stored together for consecutive episodes that have the same files: a new episode
        in a new file needs only its own frames. For an array of a folder, such as a Zarr array,
        it is the folder.
        """

    @abstractmethod
    def read(self, episode: int, rows: NDArray[np.int64], out: NDArray[np.uint8]) -> None:
        """Write frames of an episode to ``out``.

        Parameters
        ----------
        episode
            Index in the data set.
        rows : int64 [n]
            Rows of the episode, strictly ascending. A call whose first row follows the last row of
            the call before continues there: a video is then decoded once, from begin to end.
        out : uint8 [n,H,W,C]
            Contiguous. Unspecified after an error.

        Raises
        ------
        FormatError
            A frame is missing or damaged. It names the file, the episode and the row.
        """

    def place(self, episode: int) -> Any:
        """Return which frames of its files an episode has, in values of JSON: a part of the key.

        Two episodes, or the same episode after a change of the data set, have the same frames if
        their files and their places are equal. By default, the index and the length.
        """
        return [episode, int(self.lengths[episode])]

    def arithmetic(self) -> Mapping[str, Any]:
        """Return the names and versions of what computes the bytes: a part of the key.

        The class and its version, and each library that decodes or converts, with its options.
        """
        return {}

    def part(self, episode: int) -> tuple[FrameSource, int]:
        """Return the source whose files hold an episode, and the episode's index there."""
        return self, episode

    def missing(self, episode: int) -> NDArray[np.bool_] | None:
        """Return which rows of an episode have no frame, bool [n]; None if every row has one."""
        return None

    def with_options(
        self,
        *,
        convert: str | None = None,
        rotate: bool = False,
        max_age: float | None = None,
    ) -> FrameSource:
        """Return the source with options of :class:`robocache.Images`.

        Parameters
        ----------
        convert
            "RGB": pixels of other kinds become RGB. None: they are an error.
        rotate
            Whether frames are turned as a video says. False: such a video is an error.
        max_age
            Rows whose frame is older, in seconds, are missing. Only for cameras of recordings.
        """
        if max_age is not None:
            raise ValueError(f"max_age: is {max_age}, but {self.name!r} has one frame for each row")
        return self

    def copy(self) -> FrameSource:
        """Return a source of the same frames for another thread, with no file open.

        It is a shallow copy, by ``__getstate__`` and ``__setstate__``, so what was read of the data
        set's description is shared.
        """
        return copy.copy(self)

    def sequential(self) -> FrameSource:
        """Return a source for reading all frames in their order, which may use more threads."""
        return self

    def use_cache(self, folders: Sequence[str]) -> None:  # noqa: B027
        """Keep what is expensive to read of the files, such as the index of a video.

        Parameters
        ----------
        folders
            The folders of a cache, which are searched in this order; the last one is written.
        """

    def close(self) -> None:  # noqa: B027
        """Close the files. The next read opens them again."""


class Contents(ABC):
    """The stored contents behind a camera, by episode and row: an array, or encoded pictures.

    Creating it opens no file. A pickle holds paths and numbers.
    """

    path: str  #: the data set
    lengths: Any  #: int64 [E]

    @abstractmethod
    def files(self, episode: int) -> tuple[str, ...]:
        """Return the files on disk that hold an episode."""

    @abstractmethod
    def place(self, episode: int) -> Any:
        """Return where an episode is in its files, in values of JSON."""

    @abstractmethod
    def where(self, episode: int, row: int) -> tuple[str, str]:
        """Return the file, and the place in it, of a row, for an error."""

    def copy(self) -> Self:
        """Return the same contents with no file open."""
        return copy.copy(self)

    def close(self) -> None:  # noqa: B027  # most open a file only while they read it
        """Close the files."""


# ---- checks of arguments that all sources have in common ----------------------------------------


def require_episode(source: FrameSource, episode: int) -> int:
    """Return the number of frames of an episode.

    Raises
    ------
    IndexError
        The data set has no such episode.
    """
    count = len(source.lengths)
    if not 0 <= episode < count:
        raise IndexError(f"episode: is {episode}, expected 0 to {count - 1} ({source.name})")
    return int(source.lengths[episode])


def require_request(source: FrameSource, episode: int, rows: Any, out: Any) -> Any:
    """Return rows as int64 [n], after a check of the arguments of :meth:`FrameSource.read`.

    Raises
    ------
    IndexError
        The data set has no such episode, or the episode no such row.
    ValueError
        The rows do not ascend strictly, or ``out`` does not fit them.
    """
    import numpy as np

    length = require_episode(source, episode)
    rows = np.asarray(rows, np.int64)
    if rows.ndim != 1 or (rows[1:] <= rows[:-1]).any():
        raise ValueError("rows: expected strictly ascending rows, int64 [n]")
    if len(rows) and (rows[0] < 0 or rows[-1] >= length):
        wrong = int(rows[0] if rows[0] < 0 else rows[-1])
        raise IndexError(
            f"rows: has {wrong}, but episode {episode} of {source.name} has {length} frames"
        )
    expected = (len(rows), *source.shape)
    if out.dtype != np.uint8 or out.shape != expected or not out.flags.c_contiguous:
        raise ValueError(
            f"out: has dtype {out.dtype} and shape {list(out.shape)}, expected contiguous uint8 "
            f"{list(expected)}"
        )
    return rows
