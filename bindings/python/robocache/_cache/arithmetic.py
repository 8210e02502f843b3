"""The versions of everything that computes what an entry holds: one table.

A number grows when results change, for any input; the tests keep digests of results of fixed inputs
with the numbers, and fail if one changes without the other. The release is not in a key, so
entries outlive releases that change nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import NamedTuple

LAYOUT = 2  # of the metadata of entries: see robocache.data._cached


class Reader(NamedTuple):
    """The version of a reader, and packages whose arithmetic is in its results."""

    version: int
    packages: tuple[str, ...] = ()


# By module of robocache.data._formats. Packages that only unpack bytes are not listed.
READERS = {
    "arrays.npy_folder": Reader(1),
    "arrays.npz": Reader(1),
    "bags.rosbag1": Reader(1),
    "bags.rosbag2": Reader(1),
    "clouds.lidar_bin": Reader(1),
    "clouds.pcd": Reader(1),
    "clouds.ply": Reader(1),
    "hdf5.hdf5": Reader(2, ("h5py",)),  # filters of HDF5 scale numbers
    "hdf5.netcdf": Reader(1, ("h5py",)),
    "lerobot.lerobot": Reader(1),
    "logs.dataflash": Reader(1),
    "logs.dataflash_text": Reader(1, ("pyarrow",)),  # text to float
    "logs.json_exports": Reader(2),
    "logs.json_lines": Reader(1),
    "logs.sensor_logger": Reader(1, ("pyarrow",)),
    "logs.ulog": Reader(1),
    "rlds.rlds": Reader(2),
    "tables.motive": Reader(1, ("pyarrow",)),
    "tables.tables": Reader(2, ("pyarrow",)),
    "tables.vicon": Reader(1, ("pyarrow",)),
    "trajectories.euroc": Reader(2, ("pyarrow",)),
    "trajectories.kitti": Reader(2, ("pyarrow",)),
    "trajectories.rtklib": Reader(1, ("pyarrow",)),
    "trajectories.tum": Reader(1, ("pyarrow",)),
    "zarr.zarr": Reader(2, ("numcodecs",)),  # codecs that scale and quantize
}

STEPS = {"align": 1, "images": 1, "kinds": 1, "select": 1, "without": 1}

OPERATIONS = {"clock": 1, "images": 1, "live_kept": 1, "resample": 1}

_OF_STEPS = {
    "align": ("clock", "live_kept", "resample"),
    "images": ("images",),
    "kinds": (),
    "select": (),
    "without": (),
}


def of_reader(name: str) -> tuple[list[object], dict[str, object]]:
    """Return the reader and its arithmetic, as the document of a key has them."""
    reader = READERS[name]
    versions: dict[str, object] = {package: package_version(package) for package in reader.packages}
    return [name, reader.version], versions


def of_steps(steps: Iterable[str]) -> dict[str, object]:
    """Return the arithmetic of some steps, as the document of a key has it."""
    found: dict[str, object] = {}
    for step in steps:
        found[step] = STEPS[step]
        found.update({name: OPERATIONS[name] for name in _OF_STEPS[step]})
    return found


@functools.cache
def package_version(name: str) -> str:
    """Return the version of a package; "" if it is not installed."""
    import importlib.metadata  # takes longer than the rest of the package

    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""
