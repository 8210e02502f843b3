"""Point clouds in files: a single one, or a folder of them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Callable, overload

from ._errors import FormatError, LeftOut, reading, some
from ._file_access import Folder, what_is
from ._options import Options


@dataclass(frozen=True, eq=False)
class PointCloud:
    """A point cloud from a file.

    A cloud, or ``cloud.points``, is the input of :func:`robocache.voxelize` and similar functions;
    arrays in ``cloud.fields`` can be its features.
    """

    path: str
    fields: Mapping[str, Any]  #: arrays [N], or [N,count], by name: "x", "intensity", "rgb"
    width: int  #: width of an organized cloud, else N
    height: int = 1
    viewpoint: tuple[float, ...] = (0, 0, 0, 1, 0, 0, 0)  #: x y z, and w x y z of a quaternion
    left_out: tuple[LeftOut, ...] = ()  #: parts of the file that are not read, such as faces

    @property
    def points(self) -> Any:
        """x, y, z: [N,3] in their dtype. Missing points are NaN."""
        import numpy as np

        for axis in "xyz":
            if axis not in self.fields:
                text = f"is missing: the cloud has only the fields {some(list(self.fields))}"
                raise FormatError(self.path, f"field {axis}", text)
            if self.fields[axis].ndim != 1:
                count = self.fields[axis].shape[1]
                raise FormatError(
                    self.path, f"field {axis}", f"has {count} numbers per point, expected 1"
                )
        return np.stack([self.fields[axis] for axis in "xyz"], axis=1)

    @property
    def colors(self) -> Any:
        """Red, green, blue as uint8 [N,3], from rgb, rgba, or red, green and blue; or None."""
        import numpy as np

        separate: list[Any] = [self.fields.get(name) for name in ("red", "green", "blue")]
        if all(each is not None and each.dtype == np.uint8 for each in separate):
            return np.stack(separate, axis=1)
        packed = self.fields.get("rgb", self.fields.get("rgba"))
        if packed is None or packed.dtype.itemsize != 4:
            return None
        bits = np.ascontiguousarray(packed).view(np.uint32)
        return np.stack([bits >> 16 & 255, bits >> 8 & 255, bits & 255], axis=1).astype(np.uint8)

    def _cloud(self) -> Any:
        """Return what :func:`robocache.voxelize` and similar functions take from a cloud."""
        return self.points

    def __len__(self) -> int:
        return len(next(iter(self.fields.values())))

    def __repr__(self) -> str:
        shape = f"{self.width} x {self.height}" if self.height > 1 else str(len(self))
        return f"PointCloud({self.path!r}, {shape} points, {list(self.fields)})"


class PointClouds(Sequence[PointCloud]):
    """The clouds of a folder, sorted by the numbers in their names; each is read when indexed."""

    def __init__(self, path: str, names: list[str], read: Callable[[str], PointCloud]) -> None:
        self.path = path
        self.names = names  #: names of the files
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
        path = os.path.join(self.path, self.names[index])
        with reading(path):
            return self._read(path)

    def __repr__(self) -> str:
        return f"PointClouds({self.path!r}, {len(self)} files)"


def has_clouds(path: str, is_cloud: Callable[[str], bool]) -> bool:
    """Whether a folder has at least one cloud."""
    return any(entry.is_file() and is_cloud(entry.path) for entry in os.scandir(path))


def folder_of(
    path: str, is_cloud: Callable[[str], bool], suffix: str, what: str, options: Options
) -> list[str]:
    """Return the files of a folder that are clouds by content or suffix, sorted by number.

    A file with the suffix that is not a cloud is damage. If damage is kept, the file stays in the
    list, so that the others keep their index, but reading it is an error.
    """
    folder, found = Folder(path, options.follow_links), []
    for entry in sorted(os.scandir(path), key=_by_numbers):
        good = entry.is_file() and is_cloud(entry.path)
        named = entry.name.endswith(suffix) and not entry.name.startswith("._")
        if good or named:
            file = folder.file(entry.name)
            if not good:
                options.damage.found(file, "", f"expected a {what}, got {what_is(file)}")
            found.append(entry.name)
    return found


def _by_numbers(entry: os.DirEntry[str]) -> tuple[list[int], str]:
    return [int(n) for n in re.findall(r"\d+", entry.name)] or [0], entry.name
