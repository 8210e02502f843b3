"""The interface between a data set that is being written and the writer of a format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .._errors import LeftOut


@dataclass(frozen=True)
class Feature:
    """Facts about a feature that hold for all episodes."""

    name: str
    dtype: str  #: of NumPy; "uint8" for pictures
    shape: tuple[int, ...]  #: of a row: (D,), or (height, width, 3) of a picture
    channels: tuple[str, ...] | None = None
    is_camera: bool = False


class DataSet(Protocol):
    """Episodes on one clock. One episode is in memory at a time."""

    features: Mapping[str, Feature]
    rate: float | None  # rows a second; None: they have no times
    lengths: Sequence[int]  # rows of each episode
    tasks: Sequence[tuple[str, ...]]  # of each episode; () without one
    source: str

    def rows(self, episode: int) -> dict[str, Any]:
        """Return the values [n,D] of the features that are numbers."""

    def times(self, episode: int) -> Any:
        """Return the times of the rows in seconds, float64 [n]; only if there is a rate."""

    def about(self, episode: int) -> Mapping[str, Any]:
        """Return where an episode comes from, as JSON."""

    def video(self, episode: int, camera: str) -> str | None:
        """Return the file of a camera's frames; None: they are pictures."""

    def pictures(self, episode: int, camera: str) -> Iterator[bytes]:
        """Yield a picture in PNG or JPEG for each row."""

    def frames(self, episode: int, camera: str) -> Iterator[Any]:
        """Yield an RGB picture [h,w,3] for each row."""

    def levels(self, episode: int, camera: str) -> Any:
        """Return the number of pixels by channel and value, int64 [3,256], of sampled rows."""

    def sampled(self, episode: int) -> int:
        """Return the number of rows that ``levels`` counts."""


def even_times(rate: float, rows: int) -> Any:
    """Return the times of the rows of an episode, from its first row on, float64 [n]."""
    import numpy as np

    return np.arange(rows) / rate


_STRAY = 1e-4  # s that a row may differ from its frame: LeRobot's tolerance


def require_even(times: Any, rate: float, where: str) -> None:
    """Refuse rows that are not at the times that a rate gives them."""
    import numpy as np

    apart = np.asarray(times, np.float64) - float(times[0]) if len(times) else np.zeros(0)
    stray = np.abs(apart - np.arange(len(apart)) / rate)
    limit = _STRAY + np.finfo(np.float32).eps * np.abs(apart)  # stamps may have been float32
    if not (stray <= limit).all():
        row = int(np.argmax(np.nan_to_num(stray - limit, nan=np.inf)))
        raise ValueError(
            f"{where}: row {row} is {stray[row]:.4g} s from {row} / {rate:g} Hz; resample the "
            f"rows: convert with rate={rate:.4g}, or align({rate:.4g})"
        )


def cameras_of(data: DataSet) -> list[Feature]:
    return [feature for feature in data.features.values() if feature.is_camera]


def numbers_of(data: DataSet) -> list[Feature]:
    return [feature for feature in data.features.values() if not feature.is_camera]


def without_cameras(data: DataSet, what: str) -> list[LeftOut]:
    """Return the cameras that a format cannot store."""
    return [
        LeftOut(camera.name, f"pictures of a camera, which {what} cannot store")
        for camera in cameras_of(data)
    ]


def labels_of(feature: Feature) -> list[str]:
    """Return a name for each channel: its own, or its number."""
    if feature.channels is not None:
        return list(feature.channels)
    return [str(number) for number in range(feature.shape[0])]
