"""Image messages of bags: the fields of sensor_msgs and foxglove, and their pixels."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from .._formats.messages.protobuf_wire import BYTES, FIXED32, Malformed, fields
from .._frames.picture_decoder import PictureDecoder
from .._frames.ros_pixels import pixels_of

RAW = {"sensor_msgs/msg/Image", "foxglove.RawImage", "foxglove_msgs/msg/RawImage"}
COMPRESSED = {"sensor_msgs/msg/CompressedImage", "foxglove.CompressedImage"}
COMPRESSED |= {"foxglove_msgs/msg/CompressedImage"}
TYPES = RAW | COMPRESSED


@dataclass(frozen=True)
class Picture:
    """The content of an image message."""

    data: bytes
    encoding: str  # of pixels; "" if the data are a PNG or JPEG file
    height: int = 0
    width: int = 0
    step: int = 0  # bytes a row

    def rgb(self, decoder: PictureDecoder) -> Any:
        """Return the pixels as RGB, uint8 [h,w,3].

        Raises
        ------
        ValueError
            The encoding is not known, or the data do not fit it; the text is a part of a sentence.
        """
        import numpy as np

        if not self.encoding:
            return decoder.rgb(self.data)
        pixels = pixels_of(self, "RGB")
        return np.ascontiguousarray(np.broadcast_to(pixels, (*pixels.shape[:2], 3)))


def picture_of(typename: str, serialization: str, message: bytes) -> Picture:
    """Return the picture of a message.

    Raises
    ------
    ValueError
        The message is truncated, or is not of this type.
    """
    try:
        if serialization == "protobuf":
            return _of_protobuf(typename, message)
        if serialization == "ros1":
            return _of_sensor_msgs(typename, _Reader(message, "<", 0, False))
        if serialization == "cdr" and message[:2] in (b"\0\0", b"\0\1"):
            order = "<" if message[1] else ">"
            reader = _Reader(message, order, 4, True)
            if typename.startswith("foxglove_msgs"):
                return _of_foxglove(typename, reader)
            return _of_sensor_msgs(typename, reader)
    except (struct.error, UnicodeDecodeError, Malformed):
        raise ValueError("is truncated, or is not of its type") from None
    raise ValueError(f"is stored as {serialization!r}, expected cdr, ros1 or protobuf")


def is_known(typename: str) -> bool:
    """Whether messages of a type are images that can be read."""
    return typename in TYPES


class _Reader:
    """Reads fields one after the other, as CDR or ROS 1 stores them."""

    def __init__(self, data: bytes, order: str, begin: int, aligned: bool) -> None:
        self.data, self.order, self.begin, self.aligned = data, order, begin, aligned
        self.at = begin

    def number(self, code: str) -> int:
        size = struct.calcsize(f"={code}")
        if self.aligned:
            self.at += -(self.at - self.begin) % size
        (value,) = struct.unpack_from(f"{self.order}{code}", self.data, self.at)
        self.at += size
        return int(value)

    def content(self) -> bytes:
        size = self.number("I")
        data = self.data[self.at : self.at + size]
        if len(data) != size:
            raise struct.error("truncated")
        self.at += size
        return data

    def text(self) -> str:
        return self.content().rstrip(b"\0").decode("utf-8")


def _of_sensor_msgs(typename: str, reader: _Reader) -> Picture:
    if not reader.aligned:
        reader.number("I")  # seq
    reader.number("I"), reader.number("I"), reader.text()
    if typename in COMPRESSED:
        reader.text()  # the format; the content says it too
        return Picture(reader.content(), "")
    height, width, encoding = reader.number("I"), reader.number("I"), reader.text()
    reader.number("B")
    step = reader.number("I")
    return Picture(reader.content(), encoding, height, width, step)


def _of_foxglove(typename: str, reader: _Reader) -> Picture:
    reader.number("I"), reader.number("I"), reader.text()
    if typename in COMPRESSED:
        return Picture(reader.content(), "")
    width, height = reader.number("I"), reader.number("I")
    encoding, step = reader.text(), reader.number("I")
    return Picture(reader.content(), encoding, height, width, step)


# Numbers of the fields in foxglove.RawImage and foxglove.CompressedImage.
_WIDTH, _HEIGHT, _ENCODING, _STEP, _PIXELS, _FILE = 2, 3, 4, 5, 6, 2


def _of_protobuf(typename: str, message: bytes) -> Picture:
    parts = {(number, kind): bytes(part) for number, kind, part in fields(memoryview(message))}
    if typename in COMPRESSED:
        return Picture(parts.get((_FILE, BYTES), b""), "")
    encoding = parts.get((_ENCODING, BYTES), b"").decode("utf-8")
    height, width, step = (
        int.from_bytes(parts.get((number, FIXED32), b""), "little")
        for number in (_HEIGHT, _WIDTH, _STEP)
    )
    return Picture(parts.get((_PIXELS, BYTES), b""), encoding, height, width, step)
