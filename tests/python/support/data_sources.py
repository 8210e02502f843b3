"""A small source of every format that `data.open` reads, what it holds, and what its files are."""

from __future__ import annotations

import hashlib
import os
import shutil
import warnings
import zipfile
from pathlib import Path

import numpy as np

import data_files
import fuzz_readers
import fuzz_samples
import robocache as rbc
from robocache import data


def _zip(folder):
    made = fuzz_readers.FORMATS["zarr"](folder)
    with zipfile.ZipFile(folder / "x.zarr.zip", "w") as archive:
        for file in sorted(made.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(made))
    shutil.rmtree(made)
    return folder / "x.zarr.zip"


def _shards(folder):
    import zarr

    group = zarr.open_group(str(folder / "x.zarr"), mode="w")
    group["meta/episode_ends"] = np.array([5, 11])
    made = group.create_array(
        "data/action", shape=(11, 2), dtype="f8", chunks=(2, 1), shards=(4, 2)
    )
    made[:] = np.arange(1.0, 23.0).reshape(11, 2)
    return folder / "x.zarr"


def _sweeps(folder):
    (folder / "sweeps").mkdir()
    for i in range(3):
        np.full((9 + i, 5), i, np.float32).tofile(folder / f"sweeps/{i}.bin")
    return folder / "sweeps"


def _pcds(folder):
    (folder / "clouds").mkdir()
    for i in range(3):
        fuzz_readers.FORMATS["pcd"](folder / "clouds").rename(folder / f"clouds/{i}.pcd")
    return folder / "clouds"


def _tables(write):
    def make(folder):
        (folder / "tables").mkdir()
        made = fuzz_readers.FORMATS[write](folder)
        for name in ("arm", "base"):
            shutil.copy(made, folder / "tables" / f"{name}{made.suffix}")
        made.unlink()
        return folder / "tables"

    return make


def _saved(form):
    def make(folder):
        tracks = {"a": rbc.Track(np.arange(22.0).reshape(11, 2), [0, 5, 11], times=np.arange(11.0))}
        data.Episodes(tracks).save(folder / "x", form)
        return folder / "x"

    return make


def _log(folder):
    store = data_files.typestore()
    return data_files.write_ros2_log(folder / "x", data_files.messages(store, 12), store, 6)


def _packed_mcap(folder):
    return fuzz_samples._bag(folder, False, compressed=True)


def _packed_ros1(folder):
    store = data_files.typestore(True)
    told = data_files.messages(store, 12)
    return data_files.write_ros1(folder / "x.bag", told, store, compression="LZ4")


SOURCES = {
    **fuzz_readers.FORMATS,
    "ros1-lz4": _packed_ros1,
    "sqlite3-wal": _log,
    "mcap-zstd": _packed_mcap,
    "zarr-zip": _zip,
    "zarr-shards": _shards,
    "zarr-saved": _saved("zarr"),
    "lerobot-saved": _saved("lerobot"),
    "rlds-saved": _saved("rlds"),
    "csv-folder": _tables("csv"),
    "parquet-folder": _tables("parquet"),
    "pcd-folder": _pcds,
    "sweeps": _sweeps,
}
PLAIN = (*fuzz_readers.PLAIN, "tables")  # their times have no unit


def make(name, folder):
    """Create a source of a format in a new folder; return None if no package can write it."""
    folder.mkdir(parents=True)
    try:
        return SOURCES[name](folder)
    except ImportError:
        return None


def opened(path, damaged="refuse"):
    return data.open(path, damaged=damaged, unit="s" if path.name in PLAIN else None)


def held(path, damaged="refuse"):
    """A digest of every value and time that a source holds, and its problems."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        given = opened(path, damaged)
        total = hashlib.sha256()
        if isinstance(given, data.Recording):
            given = given.load()
            parts = [(s.values, *s.clocks.values()) for s in given.streams.values()]
            names = [*given.streams, *(given.left_out or ())]
        elif isinstance(given, data.Episodes):
            given = given.load()
            parts = [(t.values, t.episode_offsets, t.times) for t in given.tracks.values()]
            names = [*given.tracks, *given.left_out]
        else:
            clouds = [given] if isinstance(given, data.PointCloud) else list(given)
            parts = [tuple(cloud.fields.values()) for cloud in clouds]
            names = [key for cloud in clouds for key in cloud.fields]
        total.update("\n".join(map(str, names)).encode())
        for part in parts:
            for array in part:
                total.update(b"-" if array is None else np.ascontiguousarray(array).tobytes())
        problems = [
            str(problem).replace(str(path), "") for problem in getattr(given, "problems", ())
        ]
        return [total.hexdigest(), *sorted(problems)]


def made_and_held(name, folder):
    """The path of a new source and what it holds, or None if no package can write it."""
    path = make(name, folder)
    return None if path is None else [str(path), held(path)]


def files_below(folder):
    """Return facts by name that show whether a file was changed, replaced or deleted."""
    found = {}
    for base, folders, names in os.walk(folder):
        for name in [".", *folders, *names]:
            path = Path(base, name)
            of = os.lstat(path)
            own = [of.st_mode, of.st_size, of.st_ino, of.st_nlink, of.st_mtime_ns, of.st_ctime_ns]
            if path.is_file() and not path.is_symlink():
                own.append(hashlib.sha256(path.read_bytes()).hexdigest())
            found[str(path.relative_to(folder))] = own
    return found
