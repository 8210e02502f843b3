"""The interface between the reader of a format and a Recording."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ._errors import Damage, LeftOut, Unread
from ._kinds.kinds import Said

OTHER_CLOCK = 10.0  # s between header stamps and log times from which they are different clocks

# Pictures, videos, sound and point clouds: their messages hold no channels of numbers.
_MEDIA = {"Image", "CompressedImage", "RawImage", "DisparityImage", "CompressedVideo"}
_MEDIA |= {"PointCloud", "PointCloud2", "CompressedPointCloud2", "FFMPEGPacket", "Packet"}
_MEDIA |= {"AudioData", "AudioDataStamped", "RawAudio", "PackedElementField"}


@dataclass(frozen=True)
class StreamInfo:
    """Facts about a stream that are known before its data are read."""

    name: str
    kind: str  #: type of the messages, or of the file
    count: int | None  #: number of samples; None: the file does not say
    names: tuple[str, ...] | None  #: names of the channels; None: not known before reading
    unit: str | None = None  #: unit used for the times of a table; None: not known
    said: tuple[Said, ...] = ()  # kinds of channels that the file states
    times: str | None = None  #: where the times of a table come from, and why
    static: bool = False  #: whether each sample is a static transform, valid from its time on


@dataclass(frozen=True)
class Piece:
    """Some samples of a stream, in the order of the file."""

    stream: str
    names: tuple[str, ...]  #: names of the channels
    values: Any  #: [n,D], in NumPy
    clocks: Mapping[str, Any]  #: times by clock ("log", "header", "time"), each [n]
    dtypes: tuple[str, ...] | None = None  #: dtype of each channel, if values mixes several
    said: tuple[Said, ...] = ()  # kinds of channels that the file states

    def __len__(self) -> int:
        return len(self.values)


class Source(Protocol):
    """A recording on disk; only its index is in memory."""

    path: str
    kind: str  # name of the format
    unit: str | None  # unit of integer times: "ns", "us"; None: unknown, or seconds as floats
    damage: Damage

    @property
    def streams(self) -> Mapping[str, StreamInfo]: ...

    @property
    def left_out(self) -> list[LeftOut]: ...

    @property
    def unread(self) -> Sequence[Unread]: ...

    # A source may also have ``findings`` about what was read so far.

    def look(self) -> None:
        """Read as much as is needed to know the channels."""

    def pieces(self, names: Collection[str], shown: bool | None = None) -> Iterator[Piece]:
        """Yield all samples of some streams; ``shown``: show a progress bar; None: automatic."""


def is_media(kind: str) -> bool:
    """Whether messages of a type hold pictures, videos, sound or point clouds."""
    return kind.rpartition("/")[2] in _MEDIA


def header_is_good(header: Any, log: Any) -> bool:
    """Whether header stamps exist, are not 0, never go back, and are close to the log times."""
    import numpy as np

    if header is None or log is None or len(header) == 0:
        return False
    if (header <= 0).any() or (np.diff(header) < 0).any():
        return False
    return bool(abs(float(np.median(header - log))) < 1e9 * OTHER_CLOCK)
