"""Point clouds of files, one by one or a folder of them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable, overload

from ._folders import Folder


@dataclass(frozen=True, eq=False)
class PointCloud:
    """The points of one file.

    ``cloud.points`` goes into :func:`robocache.voxelize` and the others, with ``cloud.fields`` as
    features.
    """

    path: str
    fields: Mapping[str, Any]  #: arrays [N], or [N,count], by name: "x", "intensity", "rgb"
    width: int  #: of an organized cloud, else N
    height: int = 1
    viewpoint: tuple[float, ...] = (0, 0, 0, 1, 0, 0, 0)  #: x y z, and w x y z of a quaternion

    @property
    def points(self) -> Any:
        """x, y, z: [N,3] in their dtype. Points without a reading are NaN."""
        import numpy as np

        return np.stack([self.fields[axis] for axis in "xyz"], axis=1)

    @property
    def colors(self) -> Any:
        """Red, green, blue as uint8 [N,3], out of the field rgb or rgba; None without."""
        import numpy as np

        packed = self.fields.get("rgb", self.fields.get("rgba"))
        if packed is None or packed.dtype.itemsize != 4:
            return None
        bits = np.ascontiguousarray(packed).view(np.uint32)
        return np.stack([bits >> 16 & 255, bits >> 8 & 255, bits & 255], axis=1).astype(np.uint8)

    def __len__(self) -> int:
        return len(next(iter(self.fields.values())))

    def __repr__(self) -> str:
        shape = f"{self.width} x {self.height}" if self.height > 1 else str(len(self))
        return f"PointCloud({self.path!r}, {shape} points, {list(self.fields)})"


class PointClouds(Sequence[PointCloud]):
    """The clouds of a folder, in the order of the numbers in their names; each read when asked."""

    def __init__(self, path: str, names: list[str], read: Callable[[str], PointCloud]) -> None:
        self.path = path
        self.names = names  #: of the files
        self._read = read

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, index: int) -> PointCloud: ...
    @overload
    def __getitem__(self, index: slice) -> PointClouds: ...
    def __getitem__(self, index: int | slice) -> PointCloud | PointClouds:
        if isinstance(index, slice):
            return PointClouds(self.path, self.names[index], self._read)
        return self._read(os.path.join(self.path, self.names[index]))

    def __repr__(self) -> str:
        return f"PointClouds({self.path!r}, {len(self)} files)"


def folder_of(path: str, is_cloud: Callable[[str], bool], follow_links: bool = True) -> list[str]:
    """Files of a folder that are clouds, by their numbers."""
    found = [entry.name for entry in os.scandir(path) if entry.is_file() and is_cloud(entry.path)]
    folder = Folder(path, follow_links)
    for name in found:
        folder.file(name)
    return sorted(found, key=lambda name: [int(n) for n in re.findall(r"\d+", name)] or [0])
