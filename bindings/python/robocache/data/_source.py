"""What the reader of a format gives a Recording."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ._errors import Damage, LeftOut, Unread
from ._kinds.kinds import Said

OTHER_CLOCK = 10.0  # s between the header stamps and the log times: they are of two clocks

# Pictures, videos, sound and point clouds: their messages hold no channels of numbers.
_MEDIA = {"Image", "CompressedImage", "RawImage", "DisparityImage", "CompressedVideo"}
_MEDIA |= {"PointCloud", "PointCloud2", "CompressedPointCloud2", "FFMPEGPacket", "Packet"}
_MEDIA |= {"AudioData", "AudioDataStamped", "RawAudio", "PackedElementField"}


@dataclass(frozen=True)
class StreamInfo:
    """What is known of a stream before its data are read."""

    name: str
    kind: str  #: the type of its messages, or of the file
    count: int | None  #: of its samples; None: the file does not tell
    names: tuple[str, ...] | None  #: of its channels; None: not known before its data are read
    unit: str | None = None  #: of the times in a table's file, as it was taken; None: not known
    said: tuple[Said, ...] = ()  # by the file, of what its channels are
    times: str | None = None  #: where the times of a table come from, and why
    static: bool = False  #: of transforms that stay as they are from their message on


@dataclass(frozen=True)
class Piece:
    """Some samples of a stream, in the order of the file."""

    stream: str
    names: tuple[str, ...]  #: of the channels
    values: Any  #: [n,D], in NumPy
    clocks: Mapping[str, Any]  #: times by clock ("log", "header", "time"), each [n]
    dtypes: tuple[str, ...] | None = None  #: of each channel, where values holds several kinds
    said: tuple[Said, ...] = ()  # by the file, of what its channels are

    def __len__(self) -> int:
        return len(self.values)


class Source(Protocol):
    """A recording on disk, of which the index alone is in memory."""

    path: str
    kind: str  # of the format, as it is shown
    unit: str | None  # of integer times: "ns", "us"; None: unknown, or seconds as floats
    damage: Damage

    @property
    def streams(self) -> Mapping[str, StreamInfo]: ...

    @property
    def left_out(self) -> list[LeftOut]: ...

    @property
    def unread(self) -> Sequence[Unread]: ...

    # A source may have ``findings``, too: those about what was read so far.

    def look(self) -> None:
        """Read as much as it takes to know the channels."""

    def pieces(self, names: Collection[str], shown: bool | None = None) -> Iterator[Piece]:
        """All samples of some streams; ``shown``: with a progress bar, or None by its own rule."""


def is_media(kind: str) -> bool:
    """Whether messages of a type hold pictures, videos, sound or point clouds."""
    return kind.rpartition("/")[2] in _MEDIA


def header_is_good(header: Any, log: Any) -> bool:
    """Whether there are header stamps of the clock of the log, none 0 and none going back."""
    import numpy as np

    if header is None or log is None or len(header) == 0:
        return False
    if (header <= 0).any() or (np.diff(header) < 0).any():
        return False
    return bool(abs(float(np.median(header - log))) < 1e9 * OTHER_CLOCK)
