"""The cameras of a data set, frame by frame: of LeRobot, RLDS, Zarr and HDF5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .._episodes.episodes import Episodes
from ._errors import Damage
from ._formats.lerobot.frames import frames_of
from ._formats.lerobot.lerobot import sniff
from ._formats.lerobot.stored_statistics import DataSet
from ._options import Options


class LeRobotCameras:
    """The cameras of a LeRobot data set."""

    def __init__(self, path: str, options: Options) -> None:
        self._data_set = DataSet.open(path, options)
        self.path = path
        self.names = self._data_set.cameras
        self.lengths: list[int] = self._data_set.plan.lengths.tolist()

    def is_video(self, camera: str) -> bool:
        return self._data_set.info.features[camera].is_video

    def frames(self, camera: str, places: Sequence[tuple[int, int]]) -> Iterator[Any]:
        """Yield the frames at (episode, row), which ascend."""
        rows: dict[int, list[int]] = {}
        for episode, row in places:
            rows.setdefault(episode, []).append(row)
        own = self._data_set
        feature = own.info.features[camera]
        for _, _, frame in frames_of(own.info, own.plan, feature, dict(rows), own.options):
            yield frame


class PictureCameras:
    """The RGB cameras of a data set that stores pictures: RLDS, Zarr and HDF5."""

    def __init__(self, path: str, episodes: Episodes) -> None:
        self.path = path
        about = episodes._about
        self._cameras = {name: about.cameras[name] for name in about.pictures}
        self.names = list(self._cameras)
        first = next(iter(episodes.tracks))
        self.lengths: list[int] = episodes.lengths(first).tolist()

    def is_video(self, camera: str) -> bool:
        return False

    def frames(self, camera: str, places: Sequence[tuple[int, int]]) -> Iterator[Any]:
        """Yield the frames at (episode, row)."""
        import numpy as np

        source = self._cameras[camera]
        for episode, row in places:
            frame = np.empty((1, *source.shape), np.uint8)
            source.read(episode, np.array([row]), frame)
            yield frame[0]


def cameras_of(path: str, data: Any, follow_links: bool) -> LeRobotCameras | PictureCameras | None:
    """Return the cameras of a data set that is open; None if it has none that can be read."""
    if sniff(path):
        return LeRobotCameras(path, Options(Damage(), follow_links=follow_links))
    if isinstance(data, Episodes) and data._about.pictures:
        return PictureCameras(path, data)
    return None
