"""npz, as ``save`` writes episodes: one array per track, written episode by episode."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Collection, Iterator
from typing import Any

from .._errors import LeftOut
from .._formats.arrays.named_arrays import VERSION
from .dataset import DataSet, Feature, numbers_of, without_cameras
from .formats import Options


def write(data: DataSet, part: str, options: Options) -> Collection[LeftOut]:
    """Write a data set as one file without compression."""
    import numpy as np

    features = numbers_of(data)
    rows = sum(data.lengths)
    description = _description(data, features)
    offsets = np.concatenate([[0], np.cumsum(data.lengths)]).astype(np.int64)
    with zipfile.ZipFile(part, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for i, feature in enumerate(features):
            _put(archive, f"t{i}_offsets", offsets.shape, offsets.dtype, iter([offsets]))
            shape, dtype = (rows, *feature.shape), np.dtype(feature.dtype)
            _put(archive, f"t{i}_values", shape, dtype, _rows(data, feature.name))
            if data.rate is not None:
                times = (data.times(episode) for episode in range(len(data.lengths)))
                _put(archive, f"t{i}_times", (rows,), np.dtype("f8"), times)
        text = np.array(json.dumps(description))
        with archive.open("robocache.npy", "w", force_zip64=True) as file:
            np.lib.format.write_array(file, text, allow_pickle=False)
    return without_cameras(data, "an npz file of tracks")


def _description(data: DataSet, features: list[Feature]) -> dict[str, Any]:
    return {
        "robocache": "episodes",
        "version": VERSION,
        "source": data.source,
        "tasks": [_task(task) for task in data.tasks],
        "rate": data.rate,
        "unit": "s",
        "left_out": [],
        "tracks": [
            {
                "name": feature.name,
                "names": None if feature.channels is None else list(feature.channels),
                "values": True,
                "times": None if data.rate is None else "",
                "files": None,
                "kinds": None,
            }
            for feature in features
        ],
    }


def _task(task: tuple[str, ...]) -> Any:
    return list(task) if len(task) > 1 else (task[0] if task else None)


def _rows(data: DataSet, name: str) -> Iterator[Any]:
    for episode in range(len(data.lengths)):
        yield data.rows(episode)[name]


def _put(
    archive: zipfile.ZipFile, name: str, shape: tuple[int, ...], dtype: Any, parts: Iterator[Any]
) -> None:
    """Write an array from its parts, one after the other."""
    import numpy as np

    with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
        head = {"descr": dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, head)
        for part in parts:
            file.write(np.ascontiguousarray(part, dtype).tobytes())
