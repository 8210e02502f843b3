"""Zarr stores of both versions, written file by file."""

from __future__ import annotations

import json
import os
import pickle
import zipfile

import numpy as np

ROWS = np.arange(20.0).reshape(10, 2)


class Trap:
    """Unpickling it leaves a folder behind."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def v2_array(values, **changed):
    return {
        "zarr_format": 2, "shape": list(values.shape), "chunks": list(values.shape),
        "dtype": values.dtype.str, "compressor": None, "fill_value": 0, "order": "C",
        "filters": None, **changed,
    }  # fmt: skip


def v3_array(values, codecs):
    grid = {"name": "regular", "configuration": {"chunk_shape": list(values.shape)}}
    keys = {"name": "default", "configuration": {"separator": "/"}}
    return {
        "zarr_format": 3, "node_type": "array", "shape": list(values.shape),
        "data_type": values.dtype.name, "chunk_grid": grid, "chunk_key_encoding": keys,
        "fill_value": 0, "codecs": codecs, "attributes": {},
    }  # fmt: skip


def write(folder, files):
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return folder


def v2_store(folder, trap=None, ends=None, **changed):
    """A replay buffer of version 2 whose ends hold a trap, or whose metadata are changed."""
    ends = np.array([5, 10]) if ends is None else ends
    content = ends.tobytes() if trap is None else pickle.dumps(Trap(trap))
    return write(folder, {
        ".zgroup": {"zarr_format": 2}, "data/.zgroup": {"zarr_format": 2},
        "meta/.zgroup": {"zarr_format": 2},
        "data/action/.zarray": v2_array(ROWS), "data/action/0.0": ROWS.tobytes(),
        "meta/episode_ends/.zarray": v2_array(ends, **changed),
        "meta/episode_ends/0": content,
    })  # fmt: skip


def zipped(folder, path):
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
    return path
