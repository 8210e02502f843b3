"""The frames of cameras: which frame each row takes, and the frames one by one."""

from __future__ import annotations

import functools
import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Callable

from ..._printable import printable
from .._errors import FormatError
from .._frames.picture_decoder import PictureDecoder
from .._recording import RecordedStream, Recording
from .._write import pictures, video
from .messages import is_known, picture_of
from .sources import Unsuitable

FRAME = "frame"  # the only channel of a camera while its rows are chosen
_MOST_WAITING = 64  # frames that are held until an earlier one arrives


@dataclass(frozen=True)
class Frame:
    """A frame of a camera for one or more rows."""

    row: int  # the first of them
    rows: int
    made: Callable[[], Any]  # returns RGB [h,w,3]
    file: bytes | None = None  # as PNG or JPEG, if it is stored so

    @functools.cached_property
    def image(self) -> Any:
        return self.made()


def as_numbers(stream: RecordedStream) -> RecordedStream:
    """Return a camera's stream with the number of each frame as its value.

    Aligned to the nearest sample, it says which frame each row takes.
    """
    import dataclasses

    import numpy as np

    numbers = np.arange(len(stream), dtype=np.int64)[:, None]
    return dataclasses.replace(
        stream, values=numbers, names=(FRAME,), dtypes=("int64",), said=(), declared={}
    )


def require_camera(recording: Recording, name: str, feature: str) -> None:
    """Refuse a stream whose messages are not images that can be read."""
    kind = recording.info(name).kind
    if not is_known(kind):
        raise ValueError(
            f"images[{feature!r}]: {printable(name)} has messages of {kind}, expected "
            "sensor_msgs/Image, sensor_msgs/CompressedImage or foxglove's images"
        )


def frames_of(recording: Recording, chosen: Mapping[str, Any]) -> Iterator[tuple[str, Frame]]:
    """Yield the frames that the rows of cameras take, in one pass over the bag.

    ``chosen``: by stream, the number of the frame of each row [n], which never decreases. Frames
    are yielded in the order of the rows of each camera.
    """
    source: Any = recording._source
    if source is None or not hasattr(source, "messages"):
        raise ValueError(f"{recording.format} has no images; only bags do")
    ends = {name: _Needed(recording[name], rows) for name, rows in chosen.items()}
    decoder = PictureDecoder("RGB")
    for name, serialization, rows in source.messages(list(chosen)):
        kind = recording.info(name).kind
        needed = ends[name]
        for i, at in enumerate(rows.times.tolist()):
            number = needed.number_of(at)
            if not needed.takes(number):
                continue
            where = f"message {number} of {printable(name)}"
            needed.put(number, _picture(recording, kind, serialization, rows.message(i), where))
            for first, count, picture in needed.ready():
                file = picture.data if not picture.encoding else None
                made = functools.partial(_decoded, recording, picture, decoder, where)
                yield name, Frame(first, count, made, file)
    for name, needed in ends.items():
        needed.require_done(recording, name)


def _picture(recording: Recording, kind: str, serialization: str, data: bytes, where: str) -> Any:
    try:
        return picture_of(kind, serialization, data)
    except ValueError as error:
        raise FormatError(recording.path or "", where, str(error)) from None


def _decoded(recording: Recording, picture: Any, decoder: PictureDecoder, where: str) -> Any:
    try:
        return picture.rgb(decoder)
    except ValueError as error:
        raise FormatError(recording.path or "", where, str(error)) from None


class _Needed:
    """The frames of one camera that are needed, and those that wait for an earlier one."""

    def __init__(self, stream: RecordedStream, rows: Any) -> None:
        import numpy as np

        self.log = stream.clocks["log"]
        self.seen: dict[int, int] = {}  # messages by log time, of those with the same one
        numbers, first, counts = np.unique(rows, return_index=True, return_counts=True)
        self.rows = {
            number: (begin, count)
            for number, begin, count in zip(numbers.tolist(), first.tolist(), counts.tolist())
        }
        self.order = numbers.tolist()
        self.next = 0  # index of the frame that comes next in ``order``
        self.waiting: list[tuple[int, Any]] = []

    def number_of(self, at: int) -> int:
        """Return the place of the next message with a log time, in the order of log times."""
        begin = int(self.log.searchsorted(at, "left"))
        count = self.seen.get(at, 0)
        if begin + count < len(self.log) and self.log[begin + count] == at:
            if begin + 1 < len(self.log) and self.log[begin + 1] == at:
                self.seen[at] = count + 1
            return begin + count
        return -1  # a message that could not be decoded, which the stream does not have

    def takes(self, number: int) -> bool:
        return number in self.rows

    def put(self, number: int, picture: Any) -> None:
        heapq.heappush(self.waiting, (number, _Unordered(picture)))
        if len(self.waiting) > _MOST_WAITING:
            raise ValueError(
                f"more than {_MOST_WAITING} frames are stored before an earlier one; sort the bag "
                "by time first, as with: ros2 bag convert"
            )

    def ready(self) -> Iterator[tuple[int, int, Any]]:
        while self.waiting and self.waiting[0][0] == self.order[self.next]:
            number, picture = heapq.heappop(self.waiting)
            self.next += 1
            yield (*self.rows[number], picture.value)
            if self.next == len(self.order):
                return

    def require_done(self, recording: Recording, name: str) -> None:
        if self.next < len(self.order):
            missing = len(self.order) - self.next
            text = f"{missing:,} of {len(self.order):,} needed frames were not found again; the "
            raise FormatError(recording.path or "", printable(name), f"{text}bag has changed")


@dataclass(frozen=True)
class _Unordered:
    """A value that a heap never compares, since numbers of frames differ."""

    value: Any


def frames_of_video(file: Any, times: Any, rows: Any) -> Iterator[Frame]:
    """Yield the frames that the rows of an episode take from a video.

    ``times`` are the times of the source's rows from the beginning of the episode, and ``rows``
    the number of the source's row for each row, which never decreases.
    """
    import numpy as np

    path, begin = place_of(file)
    numbers, first, counts = np.unique(rows, return_index=True, return_counts=True)
    wanted = list(zip((begin + times[numbers]).tolist(), first.tolist(), counts.tolist()))
    limit = 0.5 * float(np.median(np.diff(times))) if len(times) > 1 else 0.5
    at = 0
    held: tuple[float, Any] | None = None
    for moment, image in video.frames(path, wanted[0][0] if wanted else 0.0):
        while at < len(wanted) and held is not None and _closer(held[0], moment, wanted[at][0]):
            yield _made(path, held, wanted[at], limit)
            at += 1
        held = (moment, image)
        if at == len(wanted):
            return
    while at < len(wanted):
        if held is None:
            raise FormatError(path, f"second {wanted[at][0]:.3f}", "the video has no frame here")
        yield _made(path, held, wanted[at], limit)
        at += 1


def frames_of_files(files: Iterator[bytes], rows: Any, where: str) -> Iterator[Frame]:
    """Yield the frames that the rows of an episode take from PNG or JPEG files, one per row."""
    import numpy as np

    numbers, first, counts = np.unique(rows, return_index=True, return_counts=True)
    places = dict(zip(numbers.tolist(), zip(first.tolist(), counts.tolist())))
    decoder = PictureDecoder("RGB")
    seen = 0
    for number, content in enumerate(files):
        if number in places:
            if pictures.kind_of(content) is None:
                text = "is neither PNG nor JPEG" if content else "is empty"
                raise Unsuitable(f"{where}: picture {number} {text}")
            made = functools.partial(_decoded_file, decoder, content, f"{where}: picture {number}")
            row, count = places[number]
            yield Frame(row, count, made, content)
            seen += 1
    if seen < len(places):
        raise Unsuitable(f"{where}: {len(places) - seen} of its pictures are missing")


def _decoded_file(decoder: PictureDecoder, content: bytes, where: str) -> Any:
    try:
        return decoder.rgb(content)
    except ValueError as error:
        raise Unsuitable(f"{where} {error}") from None


def _closer(held: float, then: float, wanted: float) -> bool:
    """Whether the frame that is held is as near as the one after it."""
    return abs(held - wanted) <= abs(then - wanted)


def _made(
    path: str, held: tuple[float, Any], wanted: tuple[float, int, int], limit: float
) -> Frame:
    moment, first, count = wanted
    if abs(held[0] - moment) > limit:
        reason = f"the nearest frame of the video is at {held[0]:.3f} s"
        raise FormatError(path, f"second {moment:.3f}", reason)
    image = held[1]
    return Frame(first, count, lambda: image)


def place_of(file: Any) -> tuple[str, float]:
    """Return the path of a video and the time in it at which an episode begins."""
    if isinstance(file, (tuple, list)):
        return str(file[0]), float(file[1])
    return str(file), 0.0
