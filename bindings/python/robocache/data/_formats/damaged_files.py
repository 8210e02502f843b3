"""Files of a folder that should be of some format, by their suffixes, and are of none."""

from __future__ import annotations

import os
from collections.abc import Iterator

from .._file_access import is_file, what_is
from .strangers import placeholder

_KINDS = {
    ".h5": "HDF5 file",
    ".hdf5": "HDF5 file",
    ".npy": ".npy file",
    ".npz": "npz file",
    ".pcd": "PCD file",
    ".bin": "sweep of a LiDAR",
    ".bag": "ROS 1 bag",
}
_TABLES = (".csv", ".tsv", ".parquet", ".pq")


def faults_in(path: str) -> Iterator[str]:
    """Each file that no reader takes, and why."""
    for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
        suffix = os.path.splitext(entry.name)[1].lower()
        if not is_file(entry) or entry.name.startswith("."):
            continue
        instead = placeholder(entry.path)
        if instead is not None:
            yield f"{entry.name}: {instead}"
        elif suffix in _TABLES:
            from .tables.columns import fault_of

            yield f"{entry.name} {fault_of(entry.path)[0]}"
        elif suffix in _KINDS:
            yield f"{entry.name} is no {_KINDS[suffix]}, but {what_is(entry.path)}"
