"""Pictures with times next to trajectories: EuRoC's cam0, KITTI's image_2 and TUM's rgb.txt."""

from __future__ import annotations

import decimal
import os
import re
from collections.abc import Iterator
from typing import Any

from ..._errors import FormatError
from ..._file_access import Folder, head, is_folder, opened_text
from ..._frames.pictures import SUFFIXES, ImageFrames, NamedPictures, by_number

TUM_LIST = "rgb.txt"  # of TUM: a time and the name of a picture per line
_KITTI = re.compile(r"image_\d+")
_LOOK = 4096  # bytes
_SECOND = 10**9


class ListedPictures(NamedPictures):
    """Pictures of one episode whose names and times are in a text file, read when needed.

    Without names in it, they are all pictures of a folder, in the order of their numbers.
    """

    def __init__(self, path: str, table: str, folder: str, follow_links: bool, kind: str) -> None:
        self.path = path
        self.table = table  #: relative to the data set
        self.folder = folder  #: in which the pictures are, relative to the data set
        self.follow_links = follow_links
        self.kind = kind  #: "euroc", "kitti" or "tum"

    def __getattr__(self, name: str) -> Any:
        if name not in ("names", "lengths", "times") or "kind" not in self.__dict__:
            raise AttributeError(name)
        import numpy as np

        times, names = self._read()
        if self.kind == "kitti":
            names = self._numbered()
            if len(names) != len(times):
                text = f"has {len(names)} pictures, but {self.table} has {len(times)} times"
                raise FormatError(os.path.join(self.path, self.folder), "", text)
        NamedPictures.__init__(self, self.path, [names], np.array(times, np.int64))
        return self.__dict__[name]

    def _read(self) -> tuple[list[int], list[str]]:
        folder = Folder(self.path, self.follow_links)
        path = folder.file(self.table)
        times, names = [], []
        with opened_text(path, "replace") as file:
            for number, line in enumerate(file, 1):
                if not line.strip() or line.lstrip().startswith("#"):
                    continue
                cells = line.split(",") if self.kind == "euroc" else line.split()
                expected = 1 if self.kind == "kitti" else 2
                if len(cells) != expected:
                    text = f"has {len(cells)} cells, expected {expected}"
                    raise FormatError(path, f"line {number}", text)
                times.append(self._ticks(path, number, cells[0].strip()))
                if expected == 2:
                    name = os.path.normpath(os.path.join(self.folder, cells[1].strip()))
                    folder.place(name)
                    folder.require_inside(name)
                    names.append(name)
        wrong = next((i for i, (a, b) in enumerate(zip(times, times[1:])) if b < a), None)
        if wrong is not None:
            text = f"the time of picture {wrong + 1} is before that of picture {wrong}"
            raise FormatError(path, "", text)
        return times, names

    def _ticks(self, path: str, line: int, text: str) -> int:
        """Return a time in nanoseconds, exactly as written, of more digits the nearest."""
        try:
            value = decimal.Decimal(text) * (1 if self.kind == "euroc" else _SECOND)
            return int(value.to_integral_value())
        except (decimal.DecimalException, ValueError, OverflowError):
            raise FormatError(path, f"line {line}", f"has the time {text[:40]!r}") from None

    def _numbered(self) -> list[str]:
        found = os.listdir(os.path.join(self.path, self.folder))
        own = sorted((name for name in found if name.lower().endswith(SUFFIXES)), key=by_number)
        return [os.path.join(self.folder, name) for name in own]


def _camera(path: str, name: str, table: str, folder: str, follow: bool, kind: str) -> ImageFrames:
    return ImageFrames.made(name, ListedPictures(path, table, folder, follow, kind))


def euroc_camera(path: str, inner: str, name: str, follow_links: bool) -> ImageFrames | None:
    """Return the camera of a folder with data.csv and data/; None without pictures."""
    folder = os.path.normpath(os.path.join(inner, name, "data"))
    if not os.path.isdir(os.path.join(path, folder)):
        return None
    table = os.path.normpath(os.path.join(inner, name, "data.csv"))
    return _camera(path, name, table, folder, follow_links, "euroc")


def kitti_cameras(path: str, times: str, follow_links: bool) -> dict[str, ImageFrames]:
    """Return a camera for each folder image_N next to the times."""
    folder = Folder(path, follow_links)
    names = [
        entry.name
        for entry in os.scandir(path)
        if _KITTI.fullmatch(entry.name) and is_folder(entry) and folder.holds(entry.path)
    ]
    return {name: _camera(path, name, times, name, follow_links, "kitti") for name in sorted(names)}


def tum_cameras(path: str, follow_links: bool) -> dict[str, ImageFrames]:
    """Return the camera of rgb.txt in a folder, if it lists pictures."""
    lines = head(os.path.join(path, TUM_LIST), _LOOK).decode("utf-8", "replace").splitlines()
    rows = [line.split() for line in _lines(lines)]
    if not rows or len(rows[0]) != 2 or not rows[0][1].lower().endswith(SUFFIXES):
        return {}
    return {"rgb": _camera(path, "rgb", TUM_LIST, "", follow_links, "tum")}


def _lines(lines: list[str]) -> Iterator[str]:
    return (line for line in lines if line.strip() and not line.lstrip().startswith("#"))
