"""The formats of data sets that can be written, and the suffixes that name them."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..._printable import printable

SUFFIXES = {
    "": "lerobot",
    ".npz": "npz",
    ".zarr": "zarr",
    ".hdf5": "robomimic",
    ".h5": "robomimic",
    ".parquet": "parquet",
    ".csv": "csv",
    ".rlds": "rlds",
    ".tfds": "rlds",
}
# By format: the module that writes it, and the default for pictures ("": unchanged).
_WRITERS: dict[str, tuple[str, str | None]] = {
    "lerobot": ("lerobot", "video"),
    "lerobot-v2.1": ("lerobot", "video"),
    "robomimic": ("robomimic", ""),
    "zarr": ("zarr_buffer", ""),
    "rlds": ("rlds", "png"),
    "parquet": ("tables", ""),
    "csv": ("tables", None),
    "npz": ("npz", None),
}
FORMATS = tuple(_WRITERS)
_PICTURES = ("video", "png", "jpeg")


@dataclass(frozen=True)
class Options:
    """Options of a writer."""

    format: str
    robot: str | None = None


def format_for(path: str, format: str | None) -> str:
    """Return the format of an output: the given one, or that of its suffix.

    Raises
    ------
    ValueError
        There is no such format, or no format has this suffix.
    """
    if format is not None:
        if format not in _WRITERS:
            names = ", ".join(map(repr, _WRITERS))
            raise ValueError(f"format: is {format!r}, expected one of {names}")
        return format
    suffix = suffix_of(path)
    if suffix not in SUFFIXES:
        known = ", ".join(filter(None, SUFFIXES))
        raise ValueError(
            f"{printable(path)}: no format has the suffix {printable(suffix)!r}. Expected one of "
            f"{known}, or no suffix for a LeRobot data set; or pass format="
        )
    return SUFFIXES[suffix]


def suffix_of(path: str) -> str:
    """Return the suffix of a name in lower case; "" for a name such as "run.2024-05-01"."""
    suffix = os.path.splitext(path.rstrip(os.sep))[1].lower()
    return suffix if suffix[1:2].isalpha() else ""


_LEROBOT_OWN = ("timestamp", "frame_index", "episode_index", "index", "task_index")


def require_names(format: str, names: Iterable[str]) -> None:
    """Refuse names of tracks that a format cannot store."""
    for name in names:
        if format.startswith("lerobot") and ("/" in name or name in _LEROBOT_OWN):
            raise ValueError(
                f"tracks: {name!r} is not a name for a feature of LeRobot: it has no '/', and "
                f"{', '.join(_LEROBOT_OWN)} are its own; choose another name"
            )
        if format in ("robomimic", "zarr", "rlds") and name.strip("/.") in ("", "meta"):
            raise ValueError(f"tracks: {name!r} is not a name for an array; choose another name")


def writer_of(format: str) -> Any:
    """Import the writer of a format."""
    return importlib.import_module(f".{_WRITERS[format][0]}", __package__)


def keeps_cameras(format: str) -> bool:
    """Whether a format stores pictures."""
    return _WRITERS[format][1] is not None


def image_kind(format: str, asked: str | None) -> str:
    """Return how pictures are stored: "video", "png", "jpeg", or "" unchanged.

    Raises
    ------
    ValueError
        The format cannot store them so.
    """
    default = _WRITERS[format][1]
    if asked is None:
        return default or ""
    if asked not in _PICTURES:
        names = ", ".join(map(repr, _PICTURES))
        raise ValueError(f"image_format: is {asked!r}, expected one of {names}")
    if default is None:
        raise ValueError(f"image_format: {format!r} stores no pictures")
    if asked == "video" and default != "video":
        raise ValueError(f"image_format: {format!r} stores pictures, not videos")
    return asked
