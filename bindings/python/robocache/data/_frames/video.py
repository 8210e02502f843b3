"""Frames of video files, found by their exact times."""

from __future__ import annotations

import copy
import ctypes
import functools
import os
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from .._errors import FormatError, needed
from .source import FrameSource, require_request
from .video_decoder import VideoDecoder
from .video_index import VideoIndex, VideoIndexes
from .video_times import frames_at, rate_of, rounded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_Key = TypeVar("_Key")
_Made = TypeVar("_Made")
_OPEN = 4  # files that are kept open
_AHEAD = 4  # frames that are decoded and wait for their conversion
_EPISODES = 16  # episodes whose frames are kept, as places in the index


class VideoFrames(FrameSource):
    """The frames of a camera in video files, decoded by PyAV (FFmpeg).

    Row r of an episode has the frame that is nearest to begin + r/fps, the earlier one of two that
    are equally near. Times are integers and fractions, so no rounding chooses another frame. An
    episode has consecutive frames, one per row. Edit lists of a file are applied; then it begins at
    zero. Only a file that is one episode may begin later: its times count from its first frame.

    Decoding begins at the last keyframe from which the frame is right. Frames are converted to RGB
    by libswscale, with the matrix and the range of the file (BT.601 and limited if it names none),
    so that all processors give the same bytes. Chroma of 8-bit 4:2:0 and 4:2:2 is repeated, as in
    PyAV and torchcodec; other formats are interpolated.

    Parameters
    ----------
    name
        Name of the camera.
    path
        The folder of the data set.
    videos
        The file of each episode, and the time in seconds at which the episode begins there.
    lengths : int64 [E]
        Rows of each episode.
    fps
        Frames per second: an integer, or 1000 n/1001, each within 1e-6.
    tolerance
        The largest distance of a frame from the time of its row, in seconds. None: 1/(4 fps).
    rotate
        Turn frames as the file says, by multiples of 90 degrees; False refuses such files.
    threads
        Threads that decode a file; ``"auto"``: one per processor, and one that converts, for
        reading in sequence. The bytes are the same.
    whole
        Whether each file is one episode; then it has as many frames as the episode has rows.

    Raises
    ------
    ValueError
        ``fps`` is not such a number, or an argument has no meaning.
    """

    def __init__(
        self,
        name: str,
        path: str,
        videos: Sequence[tuple[str, float]],
        lengths: NDArray[np.int64],
        fps: float | Fraction,
        *,
        tolerance: float | Fraction | None = None,
        rotate: bool = False,
        threads: int | Literal["auto"] = 1,
        whole: bool = False,
    ) -> None:
        if threads != "auto" and (not isinstance(threads, int) or threads < 1):
            raise ValueError(f"threads: is {threads!r}, expected 1 or more, or 'auto'")
        rate_of(fps)  # refused here, not when it is first used
        self.name, self.path = name, path
        self._videos, self._lengths, self._fps, self._whole = videos, lengths, fps, whole
        self._tolerance, self.rotate, self.threads = tolerance, rotate, threads
        self.indexes = VideoIndexes()
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._decoders: OrderedDict[str, VideoDecoder] = OrderedDict()
        self._places: OrderedDict[int, NDArray[np.int64]] = OrderedDict()
        self._shape: tuple[int, int, int] | None = None

    # ---- what a data set says of its videos: subclasses read it when it is first used -----------

    @property
    def lengths(self) -> NDArray[np.int64]:
        return self._lengths

    def video_of(self, episode: int) -> tuple[str, float]:
        """Return the file of an episode, and the time at which the episode begins in it."""
        return self._videos[episode]

    def label(self, episode: int) -> str:
        """Return the name of an episode for messages."""
        return f"episode {episode}"

    @property
    def whole(self) -> bool:
        """Whether each file is one episode."""
        return self._whole

    @property
    def rate(self) -> Fraction:
        """Frames per second."""
        return rate_of(self._fps)

    @property
    def tolerance(self) -> Fraction:
        """The largest distance of a frame from the time of its row, in seconds."""
        return 1 / (4 * self.rate) if self._tolerance is None else Fraction(self._tolerance)

    # ---- FrameSource ----------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, int, int]:
        if self._shape is None:
            lengths = self.lengths
            first = next((e for e in range(len(lengths)) if lengths[e]), None)
            if first is None:
                raise FormatError(self.path, self.name, "has no frames: all episodes are empty")
            self._shape = (*self._shape_of(self.indexes.index(self.files(first)[0])), 3)
        return self._shape

    def files(self, episode: int) -> tuple[str, ...]:
        return (self.video_of(episode)[0],)

    def place(self, episode: int) -> Any:
        """Return the begin of an episode in its file, its rows and the rate.

        They choose its frames: the rest is in the file.
        """
        begin = rounded(self.video_of(episode)[1], self.rate)
        return [str(begin), int(self.lengths[episode]), str(self.rate), self.whole]

    def arithmetic(self) -> Mapping[str, Any]:
        """Return the versions of what decodes and converts.

        The file determines the decoder, the pixel format, the matrix and the range.
        """
        av = needed("av", "video", "a video")
        versions = {
            name: ".".join(map(str, av.library_versions[name]))
            for name in ("libavcodec", "libavformat", "libswscale")
        }
        return {
            "videos": 1,
            **versions,
            "ffmpeg": str(getattr(av, "ffmpeg_version_info", "")),
            "rgb": "rgb24 accurate_rnd+bitexact; point for 8-bit 4:2:0 and 4:2:2, else bilinear; "
            "matrix and range of the file, else BT.601 limited",
            "rotate": self.rotate,
        }

    def with_options(
        self,
        *,
        convert: str | None = None,
        rotate: bool = False,
        max_age: float | None = None,
    ) -> FrameSource:
        super().with_options(max_age=max_age)
        if rotate == self.rotate:
            return self
        made = copy.copy(self)
        made.rotate = rotate
        return made

    def sequential(self) -> FrameSource:
        made = copy.copy(self)
        made.threads = "auto"
        return made

    def read(self, episode: int, rows: NDArray[np.int64], out: NDArray[np.uint8]) -> None:
        rows = require_request(self, episode, rows, out)
        if not len(rows):
            return
        path = self.video_of(episode)[0]
        places = self._frames(episode)[rows]
        decoder = self._decoder(path)
        if out.shape[1:] != (*self._shape_of(decoder.index), 3):
            height, width = self._shape_of(decoder.index)
            text = f"has frames of {width} x {height} pixels, expected {out.shape[2]} x "
            text += f"{out.shape[1]}: all episodes of a camera have one size"
            raise FormatError(path, self.label(episode), text)
        label = self.label(episode)
        wanted = zip(rows.tolist(), places.tolist(), out)
        if self.threads != "auto" or len(rows) == 1:
            for row, place, image in wanted:
                with _named(path, f"{label}, row {row}"):
                    _write(decoder, decoder.frame(place), image)
            return
        waiting: deque[Any] = deque()
        with ThreadPoolExecutor(1) as other:  # converts frames while the next ones are decoded
            for row, place, image in wanted:
                with _named(path, f"{label}, row {row}"):
                    frame = decoder.frame(place)
                waiting.append(other.submit(_write, decoder, frame, image))
                if len(waiting) > _AHEAD:
                    waiting.popleft().result()
            for each in waiting:
                each.result()

    def use_cache(self, folders: Sequence[str]) -> None:
        self.indexes.folders = tuple(folders)

    def close(self) -> None:
        self._leave_to_parent()
        for decoder in self._decoders.values():
            decoder.close()
        self._decoders.clear()

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        for name in ("_decoders", "_places", "_shape"):
            del state[name]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._begin()

    # ---- what is kept of files and episodes -----------------------------------------------------

    def _leave_to_parent(self) -> None:
        """After a fork, forget the open files: the parent moves their offsets.

        They are never freed here, since threads that they would wait for are in the parent.
        """
        if self._process != os.getpid():
            for decoder in self._decoders.values():
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(decoder))
            self._decoders.clear()
            self._process = os.getpid()

    def _shape_of(self, index: VideoIndex) -> tuple[int, int]:
        if index.rotation and not self.rotate:
            text = f"must be turned by {index.rotation} degrees for display; rotate=True turns it"
            raise FormatError(index.path, "", text)
        return index.shape

    def _decoder(self, path: str) -> VideoDecoder:
        self._leave_to_parent()
        if path not in self._decoders and len(self._decoders) >= _OPEN:
            self._decoders.popitem(last=False)[1].close()
        make = functools.partial(VideoDecoder, self.indexes.index(path), self.threads)
        return _kept(self._decoders, path, _OPEN, lambda _: make())

    def _frames(self, episode: int) -> NDArray[np.int64]:
        """Return the frame of each row, as places in the index of the file."""
        return _kept(self._places, episode, _EPISODES, self._find_frames)

    def _find_frames(self, episode: int) -> NDArray[np.int64]:
        path, begin = self.video_of(episode)
        index, length = self.indexes.index(path), int(self.lengths[episode])
        label = self.label(episode)
        return frames_at(index, begin, self.rate, length, self.tolerance, label, self.whole)


def _write(decoder: VideoDecoder, frame: Any, out: NDArray[np.uint8]) -> None:
    """Write a frame as RGB, turned as the file says."""
    import numpy as np

    turns = decoder.index.rotation // 90
    if turns:
        stored = np.empty((*decoder.index.size, 3), np.uint8)
        decoder.rgb.write(frame, stored)
        out[...] = np.rot90(stored, turns)
    else:
        decoder.rgb.write(frame, out)


@contextmanager
def _named(path: str, place: str) -> Iterator[None]:
    """Add the episode and the row to errors about a frame."""
    try:
        yield
    except FormatError as error:
        text = f"{error.place}: {error.reason}" if error.place else error.reason
        raise FormatError(path, place, text) from None


def _kept(
    kept: OrderedDict[_Key, _Made], key: _Key, most: int, make: Callable[[_Key], _Made]
) -> _Made:
    """Return an object from the last used ones, or make it."""
    if key in kept:
        kept.move_to_end(key)
        return kept[key]
    made = make(key)
    while len(kept) >= most:
        kept.popitem(last=False)
    kept[key] = made
    return made
