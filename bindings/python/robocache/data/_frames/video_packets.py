"""Videos whose packets are messages of a bag, as ffmpeg_image_transport records them."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable

from .._errors import FormatError, needed, raise_shortage
from .video_index import matrix_of
from .video_rgb import FrameKind, RgbWriter
from .video_units import is_start

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_VERSION = 1
PACKETS = frozenset({"ffmpeg_image_transport_msgs/msg/FFMPEGPacket"})
_AHEAD = 64  # packets that a decoder may take before it gives a frame
# Parts of the names of encoders, and the decoders.
_CODECS = {"264": "h264", "265": "hevc", "hevc": "hevc", "av1": "libdav1d", "vp9": "vp9"}


@dataclass(frozen=True)
class Packet:
    """The content of a message."""

    data: bytes
    codec: str
    height: int
    width: int
    is_key: bool


def packet_of(message: bytes) -> Packet:
    """Return the packet of a message, as CDR stores it.

    Raises
    ------
    ValueError
        The message is truncated, is not of this type, or has an unknown codec.
    """
    try:
        if message[:1] != b"\0" or message[1:2] not in (b"\0", b"\1"):
            raise ValueError("is not stored as CDR")
        order = "<" if message[1] else ">"
        body = memoryview(message)[4:]
        at = 8
        _, at = _text(body, at, order)  # frame_id
        at += -at % 4
        width, height = struct.unpack_from(f"{order}ii", body, at)
        encoding, at = _text(body, at + 8, order)
        at += -at % 8
        flags = body[at + 8]
        at += 10
        at += -at % 4
        (size,) = struct.unpack_from(f"{order}I", body, at)
        data = bytes(body[at + 4 : at + 4 + size])
    except (struct.error, IndexError, UnicodeDecodeError):
        raise ValueError("is truncated, or is not of its type") from None
    if len(data) != size:
        raise ValueError("is truncated, or is not of its type")
    name = encoding.partition(";")[0].lower()
    codec = next((own for part, own in _CODECS.items() if part in name), None)
    if codec is None:
        known = ", ".join(sorted(set(_CODECS.values())))
        raise ValueError(f"has the encoding {encoding[:60]!r}, expected one of {known}")
    is_key = bool(flags & 1) and is_start(codec, data, 0)
    return Packet(data, codec, height, width, is_key)


def _text(body: memoryview, at: int, order: str) -> tuple[str, int]:
    at += -at % 4
    (size,) = struct.unpack_from(f"{order}I", body, at)
    end = at + 4 + size
    if end > len(body):
        raise struct.error("truncated")
    return bytes(body[at + 4 : end]).rstrip(b"\0").decode("utf-8"), end


class PacketVideo:
    """Decodes packets from the last keyframe on; rows that ascend need no second decode."""

    def __init__(
        self,
        path: str,
        shape: tuple[int, int, int],
        keys: NDArray[np.bool_],
        message: Callable[[int], bytes],
        where: Callable[[int], tuple[str, str]],
    ) -> None:
        self.path, self.shape, self.keys = path, shape, keys
        self.message, self.where = message, where
        self._av = needed("av", "video", "packets of a video")
        self._codec: Any = None
        self._next = 0  # the packet that comes next
        self._frames: dict[int, Any] = {}  # decoded frames that were not requested yet
        self._rgb: RgbWriter | None = None

    @staticmethod
    def arithmetic() -> dict[str, Any]:
        """Return the names and versions of what computes the bytes."""
        av = needed("av", "video", "packets of a video")
        versions = {
            name: ".".join(map(str, version)) for name, version in av.library_versions.items()
        }
        libraries = {name: versions[name] for name in ("libavcodec", "libswscale")}
        return {"packets": _VERSION, **libraries, "swscale": "accurate_rnd bitexact"}

    def read(self, row: int, out: NDArray[np.uint8]) -> None:
        """Write the frame of a packet to ``out``, uint8 [H,W,3]."""
        frame = self._frame(row)
        if frame.is_corrupt:
            raise FormatError(*self.where(row), "is damaged, or a frame that it needs is")
        if self._rgb is None:
            matrix = matrix_of(frame)
            if matrix is None:
                text = f"has a color matrix that is not read ({int(frame.colorspace)})"
                raise FormatError(*self.where(row), text)
            pixels = frame.format.name
            full = int(frame.color_range) == 2 or pixels.startswith("yuvj")
            self._rgb = RgbWriter(FrameKind(self.path, self.shape[:2], pixels, matrix, full))
        self._rgb.write(frame, out)

    def _frame(self, row: int) -> Any:
        import numpy as np

        before = np.flatnonzero(self.keys[: row + 1])
        if not len(before):
            first = np.flatnonzero(self.keys)
            text = f"the first one is message {first[0]}" if len(first) else "there is none"
            raise FormatError(*self.where(row), f"has no keyframe before it: {text}")
        start = int(before[-1])
        if row not in self._frames and not (self._codec and start <= self._next <= row):
            self._begin(start)
        while row not in self._frames:
            if self._next > row + _AHEAD:
                raise FormatError(*self.where(row), "gives no frame")
            if self._next == len(self.keys):
                self._decode(None)  # what the decoder still holds
                self._codec = None
                if row not in self._frames:
                    raise FormatError(*self.where(row), "gives no frame")
                break
            self._feed()
        for other in [each for each in self._frames if each < row]:
            del self._frames[other]
        return self._frames[row]

    def _begin(self, start: int) -> None:
        packet = packet_of(self.message(start))
        self._codec = self._av.CodecContext.create(packet.codec, "r")
        self._codec.thread_type, self._codec.thread_count = "NONE", 1
        if packet.codec != "libdav1d":
            self._codec.options = {"err_detect": "crccheck+explode"}
        self._frames.clear()
        self._next = start

    def _feed(self) -> None:
        try:
            own = packet_of(self.message(self._next))
        except ValueError as error:
            self._codec = None
            self._frames.clear()
            if isinstance(error, FormatError):
                raise
            raise FormatError(*self.where(self._next), str(error)) from None
        packet = self._av.Packet(own.data)
        packet.pts = packet.dts = self._next
        self._decode(packet)
        self._next += 1

    def _decode(self, packet: Any) -> None:
        try:
            for frame in self._codec.decode(packet):
                if frame.pts is None or (frame.height, frame.width) != self.shape[:2]:
                    text = f"gives a frame of {frame.width} x {frame.height} pixels, expected "
                    text += f"{self.shape[1]} x {self.shape[0]}"
                    raise FormatError(*self.where(self._next), text)
                self._frames[frame.pts] = frame
        except self._av.error.FFmpegError as error:
            raise_shortage(self.path)
            self._codec = None
            self._frames.clear()
            where = self.where(min(self._next, len(self.keys) - 1))
            raise FormatError(*where, f"cannot be decoded: {error.strerror}") from None
