"""``open``, and the formats, each with a test that recognizes it by its content."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..._printable import printable
from .._errors import Damage, FormatError, reading
from .._file_access import Limit, is_file, is_folder, special_kind
from .._kinds.declared import checked
from .._options import Options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ... import Episodes
    from .._options import OpenOptions
    from .._point_clouds import PointClouds
    from .._recording import Recording

# Modules with sniff(path) -> bool and open(path, options), tried in this order. To add a format,
# add its module here.
FORMATS = (
    "bags.rosbag1",
    "bags.rosbag2",
    "lerobot.lerobot",
    "hdf5.hdf5",
    "zarr.zarr",
    "arrays.npz",
    "logs.ulog",
    "logs.dataflash",  # before .bin sweeps, which have no magic
    "logs.dataflash_text",
    "logs.sensor_logger",  # before tables, which its files are too
    "logs.json_exports",
    "logs.json_lines",  # before tables: objects have commas
    "clouds.pcd",
    "tables.tables",
    "arrays.npy_folder",
    "clouds.lidar_bin",
)


_SHOWN = 6  # files in a message, with their faults
_MOST_NAMES = 12  # data sets in a message
# Formats whose times the caller may name.
_WITH_COLUMNS = ("tables", "npy_folder", "sensor_logger", "json_exports", "json_lines")


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
    kinds: Mapping[str, Any] | None = None,
    time: str | None = None,
) -> Any:
    """Open a recording or a data set. The format is detected by content, not by name.

    LeRobot v2.0 to v3.0, HDF5 of robomimic and ALOHA, and Zarr replay buffers become
    :class:`robocache.Episodes`. ROS 1 bags, ROS 2 bags (sqlite3, MCAP), and CSV, Parquet and .npy
    files become a :class:`Recording`, or :class:`robocache.Episodes` if they say where episodes
    begin. So do JSON lines, logs of PX4 (ULog) and ArduPilot (DataFlash), and recordings of phones
    (Sensor Logger). A PCD file or a .bin sweep of KITTI or nuScenes becomes a
    :class:`PointCloud`, a folder of them :class:`PointClouds`. Only an index is read; the rest is
    read when it is used.

    Parameters
    ----------
    path
        A file or a folder. Names that are not UTF-8 may be bytes, or strings as ``os.fsdecode``
        returns them; control characters in them are escaped in all output.
    damaged
        "refuse": damage is an error that says where it is. "keep": read what can be read;
        ``problems`` lists the rest.
    unit
        Unit of times if the data do not state it, as in CSV files: "ns", "us", "ms", "s".
    rate
        Rows per second, for data sets without times: HDF5, Zarr, arrays, tables. It also replaces
        the stamps of a table that lost their digits.
    definitions
        ROS message definitions that neither the bag nor the distribution has: the text of the .msg
        file by type, such as "ackermann_msgs/msg/AckermannDriveStamped".
    follow_links
        Whether symbolic links may lead out of the data set, as in the cache of the Hugging Face
        Hub.
    max_unpacked
        Bytes that compressed data of a source may unpack to. None: 200 times the size of the
        source, or 256 MiB if that is more. A small file can unpack to terabytes: raise this only
        for files from a trusted source.
    progress
        Whether to show a progress bar; None: on a terminal, if reading takes longer.
    kinds
        Kinds of channels, by stream and channels: ``{"imu": {"orientation": "quaternion_wxyz",
        "yaw": "angle_deg"}}``. Channels are a name, "first-last", names with commas, or a prefix.
        See :doc:`/concepts/kinds`.
    time
        The column of times of CSV and Parquet files, or the array of times among .npy files:
        "COLUMN" or "COLUMN:UNIT", such as "stamp:us". None: chosen as in :doc:`/concepts/times`.

    Returns
    -------
    Recording, Episodes, PointCloud or PointClouds
        The annotated type is Any. :func:`open_recording`, :func:`open_episodes` and
        :func:`open_clouds` return one type, and raise :class:`FormatError` for the others.

    Raises
    ------
    FormatError
        The format is not known, or the content violates it. The message names file and place.
    ModuleNotFoundError
        The format needs a package that is not installed; the message names the extra.
    OSError
        The path cannot be read.
    """
    name = os.fsdecode(path)
    options = Options(
        Damage(damaged),
        progress,
        unit,
        rate,
        dict(definitions or {}),
        follow_links,
        Limit(max_unpacked),
        time,
        checked(kinds),
    )
    if not os.path.exists(name):
        from .strangers import missing

        raise FileNotFoundError(printable(f"{name}: {missing(name)}"))
    special = special_kind(name)
    if special is not None:
        raise FormatError(name, "", f"is {special}, expected a file or a folder")
    with reading(name):
        module = format_of(name, FORMATS)
        if module is None:
            inside = _data_sets_in(name) if os.path.isdir(name) else []
            if len(inside) != 1:
                raise FormatError(name, "", _unknown(name, inside))
            for fault in _other_faults(name, inside[0]):
                options.damage.found(name, "", fault)
            name = os.path.join(name, inside[0])
            module = format_of(name, FORMATS)
        opened_data = module.open(name, options)
        if time is not None and module.__name__.rpartition(".")[2] not in _WITH_COLUMNS:
            raise ValueError(
                f"--time {time} works on tables and .npy arrays; this is {opened_data.format}"
            )
    if not options.kinds:
        return opened_data
    if not hasattr(opened_data, "with_kinds"):
        raise ValueError("kinds: is only for recordings and episodes; this is a point cloud")
    return opened_data.with_kinds(options.kinds)


def open_recording(
    path: str | bytes | os.PathLike[Any], **options: Unpack[OpenOptions]
) -> Recording:
    """Open a recording: a bag, an MCAP file, tables or arrays, with the options of :func:`open`.

    Raises
    ------
    FormatError
        The path is a data set of episodes or a point cloud; else as for :func:`open`.
    """
    from .._recording import Recording

    opened: Any = open(path, **options)
    if not isinstance(opened, Recording):
        raise _other_type(path, opened, "a recording")
    return opened


def open_episodes(path: str | bytes | os.PathLike[Any], **options: Unpack[OpenOptions]) -> Episodes:
    """Open a data set of episodes, such as LeRobot's, with the options of :func:`open`.

    Raises
    ------
    FormatError
        The path is a recording or a point cloud; else as for :func:`open`.
    """
    from ... import Episodes

    opened: Any = open(path, **options)
    if not isinstance(opened, Episodes):
        raise _other_type(path, opened, "a data set of episodes")
    return opened


def open_clouds(
    path: str | bytes | os.PathLike[Any], **options: Unpack[OpenOptions]
) -> PointClouds:
    """Open the point clouds of a folder, or of one file, with the options of :func:`open`.

    Raises
    ------
    FormatError
        The path is a recording or a data set; else as for :func:`open`.
    """
    from .._point_clouds import PointCloud, PointClouds

    opened: Any = open(path, **options)
    if isinstance(opened, PointCloud):
        cloud = opened
        folder, name = os.path.split(cloud.path)
        return PointClouds(folder, [name], lambda _: cloud)
    if not isinstance(opened, PointClouds):
        raise _other_type(path, opened, "point clouds")
    return opened


def _other_type(path: Any, opened: Any, expected: str) -> FormatError:
    function, found = {
        "Recording": ("open_recording", "a recording"),
        "Episodes": ("open_episodes", "a data set of episodes"),
    }.get(type(opened).__name__, ("open_clouds", "point clouds"))
    return FormatError(path, "", f"is {found}, expected {expected}. Open it with {function}")


def format_of(path: str, formats: Sequence[str]) -> Any:
    """Return the module that reads a path; None if no format fits."""
    for name in formats:
        module = importlib.import_module(f".{name}", __package__)
        if module.sniff(path):
            return module
    return None


def _data_sets_in(path: str) -> list[str]:
    """Return the names of the data sets in a folder."""
    folder_entries = [e for e in os.scandir(path) if is_file(e) or is_folder(e)]
    return sorted(
        entry.name
        for entry in folder_entries
        if not entry.is_symlink() and format_of(entry.path, FORMATS) is not None
    )


def _other_faults(path: str, name: str) -> list[str]:
    """Return the faults of the other files of a folder that holds one data set."""
    from .strangers import faults_in

    return [fault for fault in faults_in(path) if not fault.startswith(f"{name} ")]


_READ = (
    "ROS 1 and ROS 2 bags, MCAP, LeRobot, HDF5 (robomimic, ALOHA), Zarr replay buffers, tables "
    "(CSV, TSV, Parquet), JSON lines, PX4 ULog, ArduPilot logs, Sensor Logger, NumPy (.npy, .npz), "
    "PCD and .bin point clouds"
)


def _unknown(path: str, inside: Sequence[str]) -> str:
    from . import strangers as _strangers

    if not os.path.isdir(path):
        from .tables.tables import fault

        known = _strangers.stranger(path) or fault(path)
        if known is not None and not known.startswith("is a text without columns"):
            return known
        text = _strangers.unknown_file(path)
        if known is not None and path.lower().endswith((".csv", ".tsv")) and "looks" not in text:
            return f"{text}. It {known}"
        return text
    if inside:
        return f"this folder holds {len(inside)} data sets. Open one of them: {_listed(inside)}"
    from .strangers import faults_in

    faults = list(faults_in(path))
    if faults:
        more = f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else ""
        return f"no file could be read: {'; '.join(faults[:_SHOWN])}{more}"
    held = []
    entries = sorted(os.scandir(path), key=lambda entry: entry.name)
    for entry in entries[:_MOST_NAMES]:
        like = _strangers.look_alike(entry.path) if is_file(entry) else ""
        held.append(f"{entry.name} ({like})" if like else entry.name)
    more = f" and {len(entries) - len(held):,} more" if len(entries) > len(held) else ""
    holds = f"It holds: {', '.join(held)}{more}" if held else "It is empty"
    return f"no file in this folder has a supported format. {holds}. Formats: {_READ}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(map(printable, names[:_MOST_NAMES])) + more
