"""The recordings and data sets that are converted: paths, globs, folders, or objects."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._episodes.episodes import Episodes
from ..._files.overwrite import lies_in
from ..._printable import kind_of, printable
from .._errors import FormatError
from .._formats.registry import FORMATS, format_of
from .._formats.registry import open as open_data
from .._recording import Recording

_MAGIC = "*?["
_METADATA = "metadata.yaml"  # of a bag: without it, each file of a folder is a recording


class Unsuitable(ValueError):
    """A recording does not have what the conversion needs, such as a stream or common times."""


@dataclass(frozen=True)
class Source:
    """One recording or data set."""

    name: str  # the path, or a name for an object
    data: Any = None  # the object

    def opened(self, options: Mapping[str, Any]) -> Recording | Episodes:
        """Open it."""
        made = self.data if self.data is not None else open_data(self.name, **options)
        if isinstance(made, (Recording, Episodes)):
            return made
        raise FormatError(self.name, "", "is a point cloud, expected a recording or a data set")

    @property
    def size(self) -> int:
        """Its size in bytes; 1 for an object, so that it counts in a progress bar."""
        return 1 if self.data is not None else max(1, sum(size for _, size, _ in _files(self.name)))

    @property
    def facts(self) -> list[list[Any]] | None:
        """The files, their sizes and their dates, which change if the source does."""
        return None if self.data is not None else [list(each) for each in _files(self.name)]


def sources_of(items: Any, out: str) -> list[Source]:
    """Return the recordings that paths, globs and folders name, in their order.

    Raises
    ------
    FileExistsError
        The output is inside of a source, or would replace it.
    FileNotFoundError
        A path or a pattern names nothing.
    TypeError
        An item is neither a path nor data.
    """
    items = items if isinstance(items, (list, tuple)) else [items]
    found: list[Source] = []
    for number, item in enumerate(items):
        if isinstance(item, (Recording, Episodes)):
            own = item.path if isinstance(item, Recording) else item.source
            if own:
                _require_apart(own, out)
            found.append(Source(own or f"item {number}", item))
        elif isinstance(item, (str, bytes, os.PathLike)):
            found += [Source(path) for path in _paths(os.fsdecode(item), out)]
        else:
            raise TypeError(f"sources: has {kind_of(item)}, expected paths, recordings or episodes")
    if not found:
        raise ValueError("sources: got 0, expected 1 or more")
    known: dict[str, None] = {}
    for source in found:
        if source.data is None:
            real = os.path.realpath(source.name)
            if real in known:
                raise ValueError(f"sources: {printable(source.name)} is named twice")
            known[real] = None
    return found


def _require_apart(path: str, out: str) -> None:
    """Refuse an output that contains a source, or that a later conversion would take for one."""
    if not os.path.lexists(path):
        return
    if lies_in(path, out):
        text = f"{printable(out)}: contains {printable(path)}, which it would replace"
        raise FileExistsError(f"{text}; write elsewhere")
    if lies_in(out, path):
        text = f"{printable(out)}: is inside {printable(path)}, which is read"
        raise FileExistsError(f"{text}; write next to that folder, or elsewhere")


def _paths(path: str, out: str) -> list[str]:
    if not os.path.lexists(path) and any(sign in path for sign in _MAGIC):
        matches = sorted(glob.glob(path, recursive=True), key=_natural)
        if not matches:
            raise FileNotFoundError(f"{printable(path)}: no file or folder matches this pattern")
        return [each for match in matches for each in _inside(match, out)]
    return _inside(path, out)


def _inside(path: str, out: str) -> list[str]:
    """Return a path, or the recordings in it if it is a folder of several."""
    _require_apart(path, out)
    if not os.path.isdir(path):
        return [path]
    reader = format_of(path, FORMATS)
    if reader is not None and not _is_folder_of_bags(path, reader):
        return [path]
    found = []
    for entry in sorted(os.scandir(path), key=lambda entry: _natural(entry.name)):
        if entry.name.startswith("."):
            continue
        if (entry.is_dir() or entry.is_file()) and format_of(entry.path, FORMATS) is not None:
            found.append(entry.path)
    return found or [path]  # opening it says what is in it


def _is_folder_of_bags(path: str, reader: Any) -> bool:
    """Whether a folder has bags, which are not the parts of one."""
    own = reader.__name__.endswith(".rosbag2")
    return own and not os.path.lexists(os.path.join(path, _METADATA))


def _natural(text: str) -> list[Any]:
    """Return a key that sorts run_10 after run_9."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", text)]


def _files(path: str) -> Sequence[tuple[str, int, int]]:
    """Return the files of a source: their names, sizes, and dates in ns."""
    if os.path.isfile(path):
        state = os.stat(path)
        return [("", state.st_size, state.st_mtime_ns)]
    found = []
    for base, folders, names in os.walk(path):
        folders.sort()
        for name in sorted(names):
            place = os.path.join(base, name)
            try:
                state = os.stat(place)
            except OSError:
                continue
            found.append((os.path.relpath(place, path), state.st_size, state.st_mtime_ns))
    return found
