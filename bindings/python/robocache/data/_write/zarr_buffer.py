"""A Zarr replay buffer, as diffusion_policy reads it: data/NAME and meta/episode_ends."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Any

from .._errors import LeftOut, needed
from .._formats.zarr.calls import in_one_thread, open_group
from .._formats.zarr.store import is_old
from .dataset import DataSet, Feature, cameras_of, numbers_of
from .formats import Options

_CHUNK = 1 << 20  # bytes


def write(data: DataSet, part: str, options: Options) -> Collection[LeftOut]:
    """Write a data set as a folder in Zarr's format 2."""
    with in_one_thread():
        _write(data, part)
    lost = LeftOut("tasks", "texts, which a replay buffer cannot store")
    return [lost] if any(data.tasks) else ()


def _write(data: DataSet, part: str) -> None:
    import numpy as np

    zarr = needed("zarr", "zarr", "a Zarr store")
    os.mkdir(part)
    group: Any = (
        zarr.open_group(part, mode="w") if is_old(zarr) else open_group(part, "w", zarr_format=2)
    )
    ends = np.cumsum(data.lengths)
    _array(group, "meta/episode_ends", ends.shape, ends.dtype)[:] = ends
    total = int(ends[-1])
    arrays = {f.name: _feature_array(group, f, total) for f in data.features.values()}
    times = None
    if data.rate is not None:
        times = _array(group, "data/timestamp", (total,), np.dtype("f8"))
    begin = 0
    for e, rows in enumerate(data.lengths):
        values = data.rows(e)
        for feature in numbers_of(data):
            arrays[feature.name][begin : begin + rows] = values[feature.name]
        for camera in cameras_of(data):
            _frames(arrays[camera.name], data, e, camera.name, begin)
        if times is not None:
            times[begin : begin + rows] = data.times(e)
        begin += rows


def _frames(array: Any, data: DataSet, episode: int, name: str, begin: int) -> None:
    """Write pictures in whole chunks, so that none is compressed twice."""
    import numpy as np

    size = array.chunks[0]
    held: list[Any] = []
    for image in data.frames(episode, name):
        held.append(image)
        if (begin + len(held)) % size == 0:
            array[begin : begin + len(held)] = np.stack(held)
            begin, held = begin + len(held), []
    if held:
        array[begin : begin + len(held)] = np.stack(held)


def _feature_array(group: Any, feature: Feature, rows: int) -> Any:
    import numpy as np

    place = f"data/{feature.name.replace('/', '.')}"
    return _array(group, place, (rows, *feature.shape), np.dtype(feature.dtype))


def _array(group: Any, place: str, shape: tuple[int, ...], dtype: Any) -> Any:
    import numpy as np

    row = int(np.prod(shape[1:], dtype=np.int64)) * dtype.itemsize
    chunks = (max(1, min(shape[0], _CHUNK // max(1, row))), *shape[1:])
    try:
        return group.create_array(
            place,
            shape=shape,
            dtype=dtype,
            chunks=chunks,
            config={"write_empty_chunks": True},  # so that a missing chunk means a loss
        )
    except AttributeError:  # zarr 2, which writes empty chunks
        return group.create_dataset(place, shape=shape, dtype=dtype, chunks=chunks)
