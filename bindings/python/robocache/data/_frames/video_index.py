"""The index of a video file: the times of its frames, and where decoding may begin.

It is made by reading all packets once, without decoding more than the first frame.
"""

from __future__ import annotations

import os
import re
import threading
from collections import OrderedDict
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .._errors import FormatError, needed, raise_shortage
from .._file_access import require_regular
from .h264_numbers import FrameNumbers
from .video_units import is_cut_off, is_start, length_size, units

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Containers that are read. Playlists and other formats that open more files are not.
_CONTAINERS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,flv"
_PIXELS = re.compile(r"yuvj?4(20|22|44)p|yuv4(20|22|44)p1[02]le|nv12|p010le|gbrp|gray|rgb24|bgr24")
_MATRICES = {  # numbers of FFmpeg's AVColorSpace that libswscale converts
    0: "RGB",
    1: "BT.709",
    2: "BT.601",  # not specified
    4: "FCC",
    5: "BT.601",
    6: "BT.601",
    7: "SMPTE 240M",
    9: "BT.2020",
}
_TURNS = {(1, 0, 0, 1): 0, (0, 1, -1, 0): 270, (-1, 0, 0, -1): 180, (0, -1, 1, 0): 90}
_ONE = 1 << 16  # of the fixed-point numbers of a display matrix
_NONE = -(1 << 63)  # a time that is not known


@dataclass(frozen=True, eq=False)
class VideoIndex:
    """The frames of a video file, in the order in which they are shown."""

    path: str
    time_base: Fraction  #: seconds per unit of the times
    pts: NDArray[np.int64]  #: the times at which frames are shown, ascending
    order: NDArray[np.int32]  #: the place of each frame among the packets of the file
    starts: NDArray[np.int32]  #: the places of packets at which decoding may begin, ascending
    start_pts: NDArray[np.int64]  #: their times
    start_dts: NDArray[np.int64]  #: their times of decoding, or -2**63
    gaps: NDArray[np.int32]  #: the places of packets before which a picture is missing
    size: tuple[int, int]  #: height and width of the frames as they are stored
    rotation: int  #: counter-clockwise degrees by which a player turns the frames: 0, 90, 180, 270
    pixels: str  #: the pixel format, such as "yuv420p"
    matrix: str  #: the color matrix, such as "BT.601"; that is used if the file names none
    full_range: bool  #: whether luma uses 0 to 255, not 16 to 235
    codec: str  #: the decoder, such as "libdav1d"

    @classmethod
    def read(cls, path: str) -> VideoIndex:
        """Read the packets of a file.

        Raises
        ------
        FormatError
            The file is truncated or damaged, or its frames cannot be shown as they are stored:
            the error names what was found.
        """
        with opened(path) as container:
            stream = stream_of(path, container)
            base = stream.time_base  # a closed file has no streams
            time_base = Fraction(base.numerator, base.denominator)  # PyAV may have its own class
            packets = _packets(path, container, stream)
            head = _head(path, container, stream)
        return cls(path, time_base, **packets, **head)

    @property
    def shape(self) -> tuple[int, int]:
        """Height and width of the frames after the rotation."""
        height, width = self.size
        return (width, height) if self.rotation % 180 else (height, width)

    def start_before(self, frame: int) -> int:
        """Return the last start from which a frame is decoded; -1 without one.

        Frames that follow a keyframe in the file and are shown before it belong to the group
        before: they need its frames (open GOP).
        """
        import numpy as np

        last = int(np.searchsorted(self.starts, self.order[frame], "right")) - 1
        while last >= 0 and self.start_pts[last] > self.pts[frame]:
            last -= 1
        return last

    def has_gap(self, start: int, frame: int) -> bool:
        """Whether pictures are missing between a start and a frame that is decoded from it."""
        import numpy as np

        between = np.searchsorted(self.gaps, [self.starts[start], self.order[frame]], "right")
        return bool(between[0] < between[1])


class VideoIndexes:
    """The indexes of the files that were used last, for sources in several threads.

    A pickle holds none of them.

    Parameters
    ----------
    folders
        The folders of a cache in which indexes are kept.
    """

    def __init__(self, folders: tuple[str, ...] = ()) -> None:
        self.folders = folders
        self._kept: OrderedDict[str, VideoIndex] = OrderedDict()
        self._size = 0
        self._unlock()

    def _unlock(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._readers: dict[str, threading.Lock] = {}  # one thread reads a file, others wait

    def index(self, path: str) -> VideoIndex:
        """Return the index of a file; it is read if it is not kept."""
        if self._process != os.getpid():  # after a fork, a thread of the parent may hold the locks
            self._unlock()
        with self._lock:
            if path in self._kept:
                self._kept.move_to_end(path)
                return self._kept[path]
            reader = self._readers.setdefault(path, threading.Lock())
        with reader:
            with self._lock:
                if path in self._kept:
                    return self._kept[path]
            made = self._read(path)
            with self._lock:
                self._kept[path] = made
                self._size += len(made.pts) + _HEAD
                while self._size > _MOST and len(self._kept) > 1:
                    self._size -= len(self._kept.popitem(last=False)[1].pts) + _HEAD
                self._readers.pop(path, None)
        return made

    def _read(self, path: str) -> VideoIndex:
        from . import kept_indexes

        if not self.folders:
            return VideoIndex.read(path)
        found = kept_indexes.load(self.folders, path)
        if found is not None:
            return found
        state = kept_indexes.state_of(path)
        made = VideoIndex.read(path)
        kept_indexes.save(self.folders[-1], made, state)
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {"folders": self.folders}

    def __setstate__(self, state: dict[str, Any]) -> None:
        type(self).__init__(self, **state)


_MOST = 8 << 20  # frames in all indexes, of about 20 bytes
_HEAD = 100  # frames whose size is that of the rest of an index


def opened(path: str) -> Any:
    """Open a video file with PyAV.

    Raises
    ------
    FormatError
        It is not a video, is truncated, or is a playlist or another format that names files.
    """
    av = needed("av", "video", "a video")
    require_regular(path)
    cut = is_cut_off(path)
    if cut is not None:
        raise FormatError(path, "", cut)
    options = {"protocol_whitelist": "file", "format_whitelist": _CONTAINERS}
    try:
        return av.open(f"file:{path}", container_options=options)
    except (av.error.FFmpegError, ValueError) as error:
        raise_shortage(path)
        why = getattr(error, "strerror", None) or str(error)
        raise FormatError(path, "", f"is not a video that can be opened: {why}") from None


def stream_of(path: str, container: Any) -> Any:
    """Return the video stream of an open file."""
    if not container.streams.video:
        kinds = ", ".join(sorted({each.type for each in container.streams})) or "no"
        raise FormatError(path, "", f"has {kinds} streams, expected a video stream")
    stream = container.streams.video[0]
    if stream.codec_context is None:
        raise FormatError(path, "", "has a codec that this PyAV cannot decode")
    return stream


def _packets(path: str, container: Any, stream: Any) -> dict[str, Any]:
    """Read all packets: the times of the frames, and where decoding may begin."""
    import numpy as np

    times: list[int] = []
    shown: list[bool] = []
    starts: list[tuple[int, int, int]] = []
    gaps: list[int] = []
    codec = stream.codec_context.name
    prefix = length_size(codec, stream.codec_context.extradata)
    h264 = FrameNumbers(stream.codec_context.extradata, prefix) if codec == "h264" else None
    av = needed("av", "video", "a video")
    try:
        for packet in container.demux(stream):
            if packet.size == 0:  # the last ones, which flush a decoder
                continue
            place = f"packet {len(times)}"
            if packet.is_corrupt:
                raise FormatError(path, place, "is damaged or truncated")
            if packet.pts is None:
                text = "has no presentation time (pts); write the video as MP4 or Matroska"
                raise FormatError(path, place, text)
            if packet.is_keyframe and is_start(codec, bytes(packet), prefix):
                dts = _NONE if packet.dts is None else packet.dts
                starts.append((len(times), packet.pts, dts))
            if h264 is not None and h264.is_gap(units(bytes(packet), prefix)):
                gaps.append(len(times))
            times.append(packet.pts)
            shown.append(not packet.is_discard)
    except av.error.FFmpegError as error:
        raise_shortage(path)
        raise FormatError(
            path, f"packet {len(times)}", f"cannot be read: {error.strerror}"
        ) from None
    expected = _stated(container, stream)
    if len(times) < expected:
        text = f"has {len(times)} frames, but its header states {expected}: it is truncated"
        raise FormatError(path, "", text)
    order = np.argsort(np.array(times, np.int64), kind="stable").astype(np.int32)
    pts = np.array(times, np.int64)[order]
    same = np.flatnonzero(pts[1:] == pts[:-1])
    if len(same):
        at = Fraction(int(pts[same[0]])) * stream.time_base
        places = f"packets {order[same[0]]} and {order[same[0] + 1]}"
        text = f"have the same time, {float(at):.6f} s; expected frames of different times"
        raise FormatError(path, places, text)
    kept = np.array(shown, bool)[order]
    if not kept.any():
        raise FormatError(path, "", "has no frames")
    columns = list(zip(*starts)) or [(), (), ()]
    return {
        "pts": pts[kept],
        "order": order[kept],
        "starts": np.array(columns[0], np.int32),
        "start_pts": np.array(columns[1], np.int64),
        "start_dts": np.array(columns[2], np.int64),
        "gaps": np.array(gaps, np.int32),
    }


def _stated(container: Any, stream: Any) -> int:
    """Return the number of packets that the header of an MP4 file states; 0 if it has none."""
    entries = getattr(stream, "index_entries", None)  # without those that an edit list removes
    if entries is None or "mp4" not in container.format.name:
        return 0
    return len(entries)


# ---- the first frame ----------------------------------------------------------------------------


def _head(path: str, container: Any, stream: Any) -> dict[str, Any]:
    """Decode the first frame: what all frames of the file have in common."""
    av = needed("av", "video", "a video")
    ratio = stream.sample_aspect_ratio
    if ratio not in (None, 0, 1):
        text = f"has pixels of {ratio.numerator}:{ratio.denominator}, expected square ones"
        raise FormatError(path, "", f"{text}; encode it again with square pixels")
    stream.thread_type = "NONE"
    stream.codec_context.thread_count = 1
    try:
        container.seek(0, stream=stream)
        frame = next(container.decode(stream), None)
    except av.error.FFmpegError as error:
        raise_shortage(path)
        raise FormatError(path, "frame 0", f"cannot be decoded: {error.strerror}") from None
    if frame is None:
        raise FormatError(path, "frame 0", "cannot be decoded")
    pixels = frame.format.name
    require_progressive(path, frame, getattr(stream.codec_context, "field_order", 0))
    if not _PIXELS.fullmatch(pixels):
        text = f"has pixels {pixels}, expected RGB, YUV of 8, 10 or 12 bits, or gray of 8 bits"
        if pixels.startswith("gray"):
            text += "; depth is for robocache.unproject, not for frames of a camera"
        raise FormatError(path, "", text)
    matrix = matrix_of(frame)
    if matrix is None:
        known = ", ".join(dict.fromkeys(_MATRICES.values()))
        text = f"has the color matrix {int(frame.colorspace)} of ISO/IEC 23091-2"
        raise FormatError(path, "", f"{text}, expected one of {known}")
    return {
        "size": (frame.height, frame.width),
        "rotation": _rotation(path, frame),
        "pixels": pixels,
        "matrix": matrix,
        "full_range": pixels.startswith("yuvj") or int(frame.color_range) == 2,
        "codec": stream.codec_context.name,
    }


def matrix_of(frame: Any) -> str | None:
    """Return the color matrix of a frame; None if libswscale has none like it."""
    return _MATRICES.get(int(frame.colorspace))


def require_progressive(path: str, frame: Any, field_order: int = 0) -> None:
    """Refuse frames that hold two fields of different times."""
    if frame.interlaced_frame or int(field_order) > 1:
        raise FormatError(path, "", "is interlaced, expected whole frames; deinterlace it first")


def _rotation(path: str, frame: Any) -> int:
    """Return by how many degrees a player turns the frames, from the display matrix."""
    import numpy as np

    try:
        matrix = np.frombuffer(frame.side_data["DISPLAYMATRIX"], np.int32)
    except KeyError:
        return 0
    a, b, c, d = (int(matrix[i]) for i in (0, 1, 3, 4))
    turn = _TURNS.get(tuple(n // _ONE for n in (a, b, c, d)))  # type: ignore[arg-type]
    if turn is None or any(n % _ONE for n in (a, b, c, d)):
        what = "is mirrored" if a * d - b * c < 0 else "is scaled or turned by an odd angle"
        text = f"{what} by its display matrix, expected multiples of 90 degrees"
        raise FormatError(path, "", f"{text}; encode it again in the orientation of its display")
    return turn
