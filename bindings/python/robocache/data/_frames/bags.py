"""Cameras of bags: the frames of image messages, in the order of their log times."""

from __future__ import annotations

import contextlib
import copy
import struct
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from ..._printable import printable
from .._convert.messages import COMPRESSED, RAW, Picture, picture_of
from .._errors import FormatError
from .._formats.messages.protobuf_wire import BYTES, VARINT, fields, varint
from .picture_decoder import PictureDecoder, shape_of
from .ros_pixels import VERSION as PIXELS
from .ros_pixels import channels_of, pixels_of
from .source import FrameSource, require_episode, require_request
from .video_packets import PACKETS, PacketVideo, packet_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .._recording import Recording

_VERSION = 1  # of the order of messages
_KEPT = 2  # chunks whose messages are kept
TYPES = frozenset({*RAW, *COMPRESSED, *PACKETS})
_SECOND = 10**9
_DEPTH = "/compressedDepth"  # end of topics whose pictures are depth behind a header


class _File(Protocol):
    path: str
    channels: Mapping[int, Any]

    def pieces(self, wanted: Collection[int], chunks: Any = None) -> Iterator[Any]: ...


class _Bag(Protocol):
    path: str
    files: Any
    reopen: Any  # opens the bag again, after a pickle; a function that can be pickled

    def image_topics(self) -> Mapping[str, tuple[str, list[tuple[int, int]]]]: ...

    def unpacked(self, rows: Any) -> Any: ...


@dataclass(frozen=True)
class _Index:
    """The places of the messages of a topic, in the order of their log times."""

    times: Any  # int64 [n]
    stamps: Any  # int64 [n]: stamps of headers; 0 without
    keys: Any  # bool [n]: keyframes of a video
    file: Any  # int64 [n]: number of the file
    chunk: Any  # int64 [n]: number of the chunk in it; -1: the file has none
    number: Any  # int64 [n]: number of the message in the chunk or file, counting the topic only


class RosFrames(FrameSource):
    """The image messages of a topic of a bag: one episode, in the order of their log times.

    ``sensor_msgs/Image`` in rgb8, bgr8, mono8, yuv422 (UYVY and YUYV), nv12 and nv21,
    ``sensor_msgs/CompressedImage``, the images of foxglove, and the packets of
    ffmpeg_image_transport. 8UC3 is BGR. YUV is converted as by OpenCV: BT.601 of limited range.
    Bayer patterns and depth are errors.

    Parameters
    ----------
    recording
        A bag that is open.
    topic
        A topic of images.
    convert
        None: alpha, and pictures that are not RGB or gray of 8 bits, are an error. "RGB" converts
        them.

    Raises
    ------
    KeyError
        The recording has no such camera.
    """

    def __init__(self, recording: Recording, topic: str, *, convert: str | None = None) -> None:
        known = recording.cameras
        own = known.get(topic)
        if not isinstance(own, RosFrames):
            names = ", ".join(map(repr, known)) or "none"
            raise KeyError(f"topic: {topic!r} is not a camera of the bag, which has {names}")
        self._set(own._bag, topic, own._reopen, convert)

    @classmethod
    def made(cls, bag: _Bag, topic: str) -> RosFrames:
        """Return the camera of a topic of a bag."""
        made = cls.__new__(cls)
        made._set(bag, topic, bag.reopen, None)
        return made

    def _set(self, bag: _Bag | None, topic: str, reopen: Any, convert: str | None) -> None:
        assert bag is not None
        self.name, self.path = topic, bag.path
        self._reopen = reopen
        self._decoder = PictureDecoder(convert)
        self._index: _Index | None = None
        self._shape: tuple[int, int, int] | None = None
        self._bag: _Bag | None = bag
        self._forget()

    def _forget(self) -> None:
        self._chunks: OrderedDict[tuple[int, int], list[Any]] = OrderedDict()
        self._pass: tuple[int, int, Iterator[Any], list[bytes]] | None = None
        self._video: PacketVideo | None = None

    def __getstate__(self) -> dict[str, Any]:
        dropped = ("_bag", "_chunks", "_pass", "_video")
        state = {name: value for name, value in self.__dict__.items() if name not in dropped}
        return {**state, "_decoder": self._decoder.convert}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._decoder = PictureDecoder(state["_decoder"])
        self._bag = None
        self._forget()

    # ---- what the frames are --------------------------------------------------------------------

    @property
    def times(self) -> NDArray[np.int64]:
        """When each message was logged, in nanoseconds, int64 [n], ascending: its arrival."""
        times: NDArray[np.int64] = self._indexed().times
        return times

    @property
    def stamps(self) -> NDArray[np.int64]:
        """The stamp in the header of each message, in nanoseconds, int64 [n]; 0 if not set."""
        stamps: NDArray[np.int64] = self._indexed().stamps
        return stamps

    @property
    def shape(self) -> tuple[int, int, int]:
        if self._shape is None:
            self._shape = self._shape_of(self._first())
        return self._shape

    def _first(self) -> bytes:
        """Return the first message, without a pass over the whole bag."""
        for file, chunk in self._parts():
            for _, content in self._messages(file, chunk):
                return content
        raise FormatError(self.path, f"topic {printable(self.name)}", "has no frames")

    def _shape_of(self, content: bytes) -> tuple[int, int, int]:
        try:
            if self._typename() in PACKETS:
                packet = packet_of(content)
                return packet.height, packet.width, 3
            picture = picture_of(self._typename(), self._serialization(), content)
            if not picture.encoding:
                return shape_of(picture.data)
            pixels_of(picture, self._decoder.convert)
            return picture.height, picture.width, channels_of(picture.encoding)
        except ValueError as error:
            raise FormatError(*self._where(0), str(error)) from None

    @property
    def lengths(self) -> NDArray[np.int64]:
        import numpy as np

        return np.array([len(self.times)], np.int64)

    def files(self, episode: int) -> tuple[str, ...]:
        require_episode(self, episode)
        bag = self._opened()
        own = sorted({number for number, _ in self._channels()})
        return tuple(bag.files[number].path for number in own)

    def place(self, episode: int) -> Any:
        require_episode(self, episode)
        return [self.name, self._typename(), len(self.times)]

    def arithmetic(self) -> Mapping[str, Any]:
        made: dict[str, Any] = {"frames": ["RosFrames", _VERSION]}
        if self._typename() in PACKETS:
            return {**made, **PacketVideo.arithmetic()}
        made["pixels"] = PIXELS
        return {**made, **self._decoder.arithmetic()}

    # ---- reading --------------------------------------------------------------------------------

    def read(self, episode: int, rows: NDArray[np.int64], out: NDArray[np.uint8]) -> None:
        rows = require_request(self, episode, rows, out)
        is_video = self._typename() in PACKETS
        for row, into in zip(rows.tolist(), out):
            try:
                if is_video:
                    self._decoded_video().read(row, into)
                    continue
                frame = self._frame(self._message(row))
            except ValueError as error:
                if isinstance(error, FormatError):
                    raise
                raise FormatError(*self._where(row), str(error)) from None
            if frame.shape != self.shape:
                text = f"has {frame.shape[1]} x {frame.shape[0]} pixels in {frame.shape[2]} "
                text += f"channels, but the first frame has {list(self.shape)}"
                raise FormatError(*self._where(row), text)
            into[...] = frame

    def _frame(self, content: bytes) -> Any:
        picture: Picture = picture_of(self._typename(), self._serialization(), content)
        if not picture.encoding:
            return self._decoder.rgb(picture.data)
        return pixels_of(picture, self._decoder.convert)

    def _decoded_video(self) -> PacketVideo:
        if self._video is None:
            keys = self._indexed().keys
            self._video = PacketVideo(self.path, self.shape, keys, self._message, self._where)
        return self._video

    def _where(self, row: int) -> tuple[str, str]:
        return self.path, f"topic {printable(self.name)}, message {row}"

    def _message(self, row: int) -> bytes:
        """Return a message by its number in the order of log times."""
        index = self._indexed()
        file, chunk, number = (int(each[row]) for each in (index.file, index.chunk, index.number))
        if chunk < 0:
            time, content = self._in_sequence(file, number)
        else:
            messages = self._chunks.pop((file, chunk), None)
            if messages is None:
                while len(self._chunks) >= _KEPT:
                    self._chunks.popitem(last=False)
                messages = list(self._messages(file, chunk))
            self._chunks[file, chunk] = messages
            time, content = messages[number] if number < len(messages) else (None, b"")
        if time != index.times[row]:
            raise FormatError(*self._where(row), "is not where it was: the bag has changed")
        return content

    def _in_sequence(self, file: int, number: int) -> tuple[int | None, bytes]:
        """Return a message of a file that is only read from its begin."""
        if self._pass is None or self._pass[0] != file or self._pass[1] > number:
            self._pass = (file, 0, self._messages(file, None), [])
        _, at, messages, _ = self._pass
        for found in messages:
            at += 1
            self._pass = (file, at, messages, [])
            if at == number + 1:
                return found
        return None, b""

    def _messages(self, file: int, chunk: int | None) -> Iterator[tuple[int, bytes]]:
        """Yield log time and content of the messages of one chunk, or of a file, as stored."""
        for rows in self._pieces(file, chunk):
            for i, time in enumerate(rows.times.tolist()):
                yield time, rows.message(i)

    def _pieces(self, file: int, chunk: int | None) -> Iterator[Any]:
        import numpy as np

        bag = self._opened()
        own = bag.files[file]
        wanted = {channel for number, channel in self._channels() if number == file}
        pieces = own.pieces(set(wanted), *([] if chunk is None else [[own.chunks[chunk]]]))
        try:
            for channels, rows, _ in pieces:
                mask = np.isin(channels, list(wanted))
                if mask.any():
                    yield bag.unpacked(rows if mask.all() else rows.select(np.flatnonzero(mask)))
        except FileNotFoundError:
            raise FormatError(own.path, "", "is missing") from None

    # ---- the bag --------------------------------------------------------------------------------

    def _opened(self) -> _Bag:
        if self._bag is None:
            source = self._reopen()._source
            if self.name not in source.image_topics():
                raise FormatError(self.path, f"topic {printable(self.name)}", "is missing")
            self._bag = source
        return self._bag

    def _typename(self) -> str:
        return self._opened().image_topics()[self.name][0]

    def _channels(self) -> list[tuple[int, int]]:
        return self._opened().image_topics()[self.name][1]

    def _serialization(self) -> str:
        file, channel = self._channels()[0]
        return str(self._opened().files[file].channels[channel].serialization)

    def _indexed(self) -> _Index:
        if self._index is None:
            self._index = self._made_index()
        return self._index

    def _made_index(self) -> _Index:
        """Find all messages in one pass over the bag, and sort them by log time."""
        import numpy as np

        found: list[tuple[int, int, bool, int, int, int]] = []
        typename, serialization = self._typename(), self._serialization()
        for file, chunk in self._parts():
            for k, (time, content) in enumerate(self._messages(file, chunk)):
                stamp, is_key = 0, False
                with contextlib.suppress(struct.error, ValueError):  # damaged: reading says it
                    stamp = stamp_of(typename, serialization, content)
                    is_key = typename in PACKETS and packet_of(content).is_key
                found.append((time, stamp, is_key, file, -1 if chunk is None else chunk, k))
        table = np.array(found, np.int64).reshape(-1, 6)
        table = table[np.argsort(table[:, 0], kind="stable")]
        columns = [np.ascontiguousarray(column) for column in table.T]
        times, stamps, keys, files, numbers, places = columns
        return _Index(times, stamps, keys.astype(bool), files, numbers, places)

    def _parts(self) -> Iterator[tuple[int, int | None]]:
        """Yield the files and chunks that may hold messages; None: the file has no chunks."""
        own = {number: set[int]() for number, _ in self._channels()}
        for number, channel in self._channels():
            own[number].add(channel)
        for file, wanted in sorted(own.items()):
            chunks = getattr(self._opened().files[file], "chunks", None)
            if chunks is None:
                yield file, None
                continue
            for number, chunk in enumerate(chunks):
                if chunk.channels is None or not chunk.channels.isdisjoint(wanted):
                    yield file, number

    def with_options(
        self, *, convert: str | None = None, rotate: bool = False, max_age: float | None = None
    ) -> FrameSource:
        super().with_options(rotate=rotate, max_age=max_age)
        return self if convert == self._decoder.convert else self._copy(convert)

    def copy(self) -> RosFrames:
        self._indexed()  # once for all copies
        return self._copy(self._decoder.convert)

    def _copy(self, convert: str | None) -> RosFrames:
        made = copy.copy(self)
        made._bag = self._bag  # each pass over a bag opens its files
        made._decoder = PictureDecoder(convert)
        return made

    def close(self) -> None:
        self._forget()

    def __repr__(self) -> str:
        return f"RosFrames({self.name!r}, {self.path!r})"


def cameras_of(bag: _Bag) -> dict[str, RosFrames]:
    """Return the cameras of a bag by topic."""
    return {
        name: RosFrames.made(bag, name)
        for name in bag.image_topics()
        if not name.partition(" (")[0].endswith(_DEPTH)
    }


def stamp_of(typename: str, serialization: str, message: bytes) -> int:
    """Return the stamp of an image message in nanoseconds; 0 if it is not set.

    Raises
    ------
    ValueError, struct.error, Malformed
        The message is truncated, or is stored in another way.
    """
    if serialization == "protobuf":
        for number, kind, part in fields(memoryview(message)):
            if (number, kind) == (1, BYTES):  # a google.protobuf.Timestamp
                parts = {n: varint(value, 0)[0] for n, k, value in fields(part) if k == VARINT}
                return parts.get(1, 0) * _SECOND + parts.get(2, 0)
        return 0
    if serialization == "ros1":  # after the sequence number of the header
        seconds, rest = struct.unpack_from("<II", message, 4)
    elif serialization == "cdr" and message[:1] == b"\0" and message[1:2] in (b"\0", b"\1"):
        seconds, rest = struct.unpack_from("<iI" if message[1] else ">iI", message, 4)
    else:
        raise ValueError(f"is stored as {serialization!r}, expected cdr, ros1 or protobuf")
    return int(seconds) * _SECOND + int(rest)
