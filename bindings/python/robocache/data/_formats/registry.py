"""``open``, and the formats, each with a test that recognizes it by its content."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..._cache.identities import require_method
from ..._printable import kind_of, printable
from .._cached.opening import cache_of
from .._cached.opening import opened as opened_with
from .._errors import Damage, FormatError, reading
from .._file_access import Limit, is_file, is_folder, special_kind
from .._kinds.declared import checked
from .._options import Options

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ... import Cache, Episodes
    from .._options import OpenOptions
    from .._point_clouds import PointClouds
    from .._recording import Recording
    from .description import Format

# Modules with FORMAT, sniff(path) -> bool and open(path, options), tried in this order: the first
# one that recognizes a path reads it. To add a format, add its module here.
FORMATS = (
    "bags.rosbag1",
    "bags.rosbag2",
    "lerobot.lerobot",
    "rlds.rlds",
    "hdf5.netcdf",  # before HDF5: a NetCDF-4 file is one
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
    "trajectories.kitti",  # before tables: its lines are a table without a header too
    "trajectories.tum",  # the same
    "trajectories.rtklib",
    "trajectories.euroc",
    "tables.motive",  # before tables: below some of their header lines is a table
    "tables.vicon",
    "tables.tables",
    "clouds.ply",  # after tables: a folder of tables may hold a mesh
    "arrays.npy_folder",
    "clouds.lidar_bin",
)


_SHOWN = 6  # files in a message, with their faults
_MOST_NAMES = 12  # data sets in a message


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
    cache: Cache | None = None,
    identity: str = "stat",
) -> Any:
    """Open a recording or a data set. The format is detected by content, not by name.

    Logs, bags and tables become a :class:`Recording`, data sets that say where episodes begin
    become :class:`robocache.Episodes`, and a point cloud becomes a :class:`PointCloud`, a folder of
    them :class:`PointClouds`. :doc:`/formats` lists all formats, as does ``robocache formats``.
    Only an index is read; the rest is read when it is used.

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
    cache
        A :class:`robocache.Cache`. Episodes are read once, and then come from the cache. Of a
        recording only alignments are stored: pass the cache to :func:`align` too.
    identity
        How the cache recognizes files. "stat": by size, time of the last change, and a digest of
        parts. "content": by a digest of all bytes, which is kept. "revision:TEXT": the caller
        vouches that this is the revision TEXT. See :doc:`/concepts/cache`.

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
    if not isinstance(path, (str, bytes, os.PathLike)):
        from ..._episodes.episodes import Episodes
        from .._recording import Recording

        opened = isinstance(path, (Recording, Episodes))
        text = "which is open already, expected a path" if opened else "expected a path"
        raise TypeError(f"path: is {kind_of(path)}, {text}")
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
    store = cache_of(cache)
    require_method(identity)
    if not os.path.exists(name):
        from .strangers import missing

        raise FileNotFoundError(printable(f"{name}: {missing(name)}"))
    special = special_kind(name)
    if special is not None:
        raise FormatError(name, "", f"is {special}, expected a file or a folder")
    with reading(name):
        reader = format_of(name, FORMATS)
        if reader is None:
            name, reader = _elsewhere(name, options)
        formats = formats_of(reader)
        if time is not None and not any(each.named_times for each in formats):
            titles = " or ".join(each.title for each in formats)
            raise ValueError(
                f"--time {time}: the times of {titles} have no names; remove it. Tables and arrays "
                "have names of times"
            )
        if store is None:
            opened_data = reader.open(name, options)
    if store is not None:
        opened_data = opened_with(name, reader, options, store, identity)
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


def formats_of(reader: Any) -> tuple[Format, ...]:
    """Return the descriptions of the formats of a module, or of a reader of another package."""
    one: Format | None = getattr(reader, "FORMAT", None)
    return tuple(reader.FORMATS) if one is None else (one,)


def descriptions() -> list[Format]:
    """Return the descriptions of all formats, in the order in which they are tried."""
    modules = [importlib.import_module(f".{name}", __package__) for name in FORMATS]
    return [described for module in modules for described in formats_of(module)]


def _elsewhere(path: str, options: Options) -> tuple[str, Any]:
    """Return a path and its reader, for a path that no reader of this package recognizes.

    That is a reader of another package, or the reader of the only data set in a folder.

    Raises
    ------
    FormatError
        There is none.
    """
    from . import third_party

    others = third_party.readers()
    reader = third_party.reader_of(path, others)
    if reader is not None:
        return path, reader
    inside = _data_sets_in(path, others) if os.path.isdir(path) else {}
    if len(inside) != 1:
        formats = [*descriptions(), *(each for other in others for each in other.FORMATS)]
        text = _unknown(path, list(inside), formats) + third_party.faults(others)
        raise FormatError(path, "", text)
    ((name, reader),) = inside.items()
    for fault in _other_faults(path, name):
        options.damage.found(path, "", fault)
    return os.path.join(path, name), reader


def _data_sets_in(path: str, others: Sequence[Any]) -> dict[str, Any]:
    """Return the readers of the data sets in a folder, by name."""
    from . import third_party

    found = {}
    for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
        if not entry.is_symlink() and (is_file(entry) or is_folder(entry)):
            reader = format_of(entry.path, FORMATS) or third_party.reader_of(entry.path, others)
            if reader is not None:
                found[entry.name] = reader
    return found


def _other_faults(path: str, name: str) -> list[str]:
    """Return the faults of the other files of a folder that holds one data set."""
    from .strangers import faults_in

    return [fault for fault in faults_in(path) if not fault.startswith(f"{name} ")]


def _unknown(path: str, inside: Sequence[str], formats: Sequence[Format]) -> str:
    from . import strangers as _strangers
    from .nearest import nearest

    if not os.path.isdir(path):
        from .tables.tables import fault

        known = _strangers.stranger(path) or fault(path)
        if known is not None and not known.startswith("is a text without columns"):
            return known
        text = _strangers.unknown_file(path)
        if known is not None and path.lower().endswith((".csv", ".tsv")) and "looks" not in text:
            text = f"{text}. It {known}"
        near = "" if "looks" in text else nearest(path, formats)
        return f"{text}. {near}" if near else text
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
        if not like and os.path.exists(entry.path):
            like = special_kind(entry.path) or ""
        held.append(f"{entry.name} ({like})" if like else entry.name)
    more = f" and {len(entries) - len(held):,} more" if len(entries) > len(held) else ""
    holds = f"It holds: {', '.join(held)}{more}" if held else "It is empty"
    read = ", ".join(described.title for described in formats)
    return f"no file in this folder has a supported format. {holds}. Formats: {read}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(map(printable, names[:_MOST_NAMES])) + more
