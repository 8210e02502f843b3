"""``open``: the formats, each with the test that tells it by its content."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union

from .._printable import printable
from ._errors import Damage, FormatError, reading
from ._files import Limit, is_file, is_folder, opened, special_kind

if TYPE_CHECKING:
    from ._clouds import PointCloud
    from ._episodes import Episodes
    from ._recording import Recording

    Opened = Union[Recording, Episodes, PointCloud]

# Modules with sniff(path) -> bool and open(path, options), asked in this order. To add a format is
# to add its module here.
FORMATS = (
    "_rosbag1",
    "_rosbag2",
    "_lerobot",
    "_hdf5",
    "_zarr_files",
    "_npz",
    "_pcd",
    "_tables",
    "_arrays",
    "_sweeps",
)


_SHOWN = 6  # files in a message


@dataclass(frozen=True)
class Options:
    """What ``open`` was told."""

    damage: Damage
    progress: bool | None = None
    unit: str | None = None
    rate: float | None = None
    definitions: Mapping[str, str] = field(default_factory=dict)
    follow_links: bool = False
    limit: Limit = field(default_factory=Limit)
    time: str | None = None  # COLUMN[:UNIT] of the times of tables
    kinds: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # by stream and channels


def open(
    path: str | bytes | os.PathLike[Any],
    *,
    damaged: str = "refuse",
    unit: str | None = None,
    rate: float | None = None,
    definitions: Mapping[str, str] | None = None,
    follow_links: bool = False,
    max_unpacked: int | None = None,
    progress: bool | None = None,
) -> Any:
    """Open a recording or a data set, of whatever format it is: that is told by its content.

    LeRobot v2.1 and v3, HDF5 of robomimic and ALOHA, and Zarr replay buffers become
    :class:`Episodes`; ROS 1 bags, ROS 2 bags (sqlite3, MCAP), and folders of CSV, Parquet or .npy
    files a :class:`Recording` (or :class:`Episodes`, where they tell of some); PCD files and .bin
    sweeps of KITTI and nuScenes a :class:`PointCloud`. Only an index is read: the rest when it is
    asked for.

    Parameters
    ----------
    path
        A file or a folder. Names that are not UTF-8 may be bytes, or strings as :func:`os.fsdecode`
        returns them; control characters in them are escaped in all output.
    damaged
        "refuse": damage is an error, that says where it is. "keep": what can be read is, and
        ``problems`` tells what could not.
    unit
        Of times that do not tell it, as in CSV files: "ns", "us", "ms", "s".
    rate
        Rows a second, of data sets that have no times: HDF5, Zarr, arrays of episodes.
    definitions
        Of ROS messages that neither the bag nor the distribution defines: the text of the .msg file
        by name of the type, such as "ackermann_msgs/msg/AckermannDriveStamped".
    follow_links
        Whether symbolic links may lead out of the data set, as in the cache of the Hugging Face
        Hub.
    max_unpacked
        Bytes that compressed data of a source may unpack to. None: 200 times the size of the
        source, or 256 MiB if that is more. A small file can ask for terabytes: raise this only for
        files whose origin you know.
    progress
        Whether to show how far reading is; None: on a terminal, where it takes longer.

    Returns
    -------
    Recording, Episodes or PointCloud

    Raises
    ------
    FormatError
        The format is not known, or what is there is not as it should be. It names file and place.
    ModuleNotFoundError
        The format takes a package that is not installed; the message names the extra.
    OSError
        It cannot be read.
    """
    given = os.fsdecode(path)
    options = Options(
        Damage(damaged),
        progress,
        unit,
        rate,
        dict(definitions or {}),
        follow_links,
        Limit(max_unpacked),
    )
    if not os.path.exists(given):
        raise FileNotFoundError(f"{printable(given)}: does not exist")
    special = special_kind(given)
    if special is not None:
        raise FormatError(given, "", f"is {special}, expected a file or a folder")
    with reading(given):
        module = format_of(given, FORMATS)
        if module is None:
            raise FormatError(given, "", _unknown(given))
        return module.open(given, options)


def format_of(path: str, formats: Sequence[str]) -> Any:
    """The module that reads what is there; None if none does."""
    for name in formats:
        module = importlib.import_module(f".{name}", __package__)
        if module.sniff(path):
            return module
    return None


def _unknown(path: str) -> str:
    if not os.path.isdir(path):
        return f"is of no format that is known: it begins with {head(path, 16)!r}"
    inside = sorted(
        entry.name
        for entry in os.scandir(path)
        if (is_file(entry) or is_folder(entry)) and format_of(entry.path, FORMATS) is not None
    )
    if inside:
        return f"is a folder of several: open one of {', '.join(inside)}"
    from ._damaged_files import faults_in

    faults = list(faults_in(path))
    if faults:
        more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        return f"none of its files can be read: {'; '.join(faults[:_SHOWN])}{more}"
    return "is a folder of no format that is known"


def head(path: str, size: int) -> bytes:
    """The first bytes of a regular file; b"" of anything else."""
    if not os.path.isfile(path):
        return b""
    with opened(path) as file:
        return file.read(size) or b""  # a system file that would wait returns None


def what_is(path: str) -> str:
    """What a file is that is not what its name tells."""
    if os.path.isdir(path):
        return "a folder"
    special = special_kind(path) if os.path.exists(path) else None
    if special is not None:
        return special
    return f"a file that begins with {begin!r}" if (begin := head(path, 8)) else "a file of 0 bytes"
