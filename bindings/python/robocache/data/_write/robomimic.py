"""HDF5 as robomimic reads it: a group data/demo_N per episode, with actions and observations."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from .._errors import LeftOut, needed
from .dataset import DataSet, Feature, cameras_of, numbers_of
from .formats import Options

_GYM = 2  # robomimic's number for an environment without a simulator
_AT_ONCE = 64  # frames


def write(data: DataSet, part: str, options: Options) -> Collection[LeftOut]:
    """Write a data set as one file. Recordings have no rewards: these are 0, and 1 is the end."""
    import numpy as np

    h5py = needed("h5py", "hdf5", "an HDF5 file")
    names = _names(data)
    with h5py.File(part, "w") as file:
        top = file.create_group("data")
        top.attrs["total"] = sum(data.lengths)
        env = {"env_name": options.robot or "recordings", "type": _GYM, "env_kwargs": {}}
        top.attrs["env_args"] = json.dumps(env)
        if data.rate is not None:
            top.attrs["fps"] = data.rate
        for e, rows in enumerate(data.lengths):
            demo = top.create_group(f"demo_{e}")
            demo.attrs["num_samples"] = rows
            demo.attrs["task"] = "; ".join(data.tasks[e])
            demo.attrs["source"] = json.dumps(dict(data.about(e)))
            values = data.rows(e)
            for feature in numbers_of(data):
                name = names[feature.name]
                array = values[feature.name]
                own = demo.create_dataset(name, data=array)
                if feature.channels is not None:
                    own.attrs["names"] = json.dumps(list(feature.channels))
                if name.startswith("obs/"):
                    demo.create_dataset(f"next_{name}", data=_next(array))
            for camera in cameras_of(data):
                _frames(demo, names[camera.name], data, e, camera)
            done = np.zeros(rows, np.int64)
            done[-1:] = 1
            demo.create_dataset("dones", data=done)
            demo.create_dataset("rewards", data=np.zeros(rows))
        keys = [f"demo_{e}".encode() for e in range(len(data.lengths))]
        file.create_dataset("mask/train", data=np.array(keys))
    return ()


def _names(data: DataSet) -> dict[str, str]:
    """Return the place of each feature in the group of an episode."""
    names = {}
    for name, feature in data.features.items():
        plain = name.removeprefix("observation.")
        if name == "action":
            names[name] = "actions"
        elif feature.is_camera:
            names[name] = f"obs/{plain.removeprefix('images.').replace('/', '.')}_image"
        else:
            names[name] = f"obs/{plain.replace('/', '.')}"
    if len(set(names.values())) < len(names):
        return {n: f"obs/{n.replace('/', '.')}" if n != "action" else "actions" for n in names}
    return names


def _next(array: Any) -> Any:
    """Return the rows after each row; the last one repeats."""
    import numpy as np

    return np.concatenate([array[1:], array[-1:]])


def _frames(demo: Any, name: str, data: DataSet, episode: int, camera: Feature) -> None:
    """Write the pictures of a camera, and the pictures of the next rows, chunk by chunk."""
    import numpy as np

    rows, shape = data.lengths[episode], tuple(camera.shape)
    options: dict[str, Any] = {"chunks": (1, *shape), "compression": "gzip", "compression_opts": 1}
    made = [
        demo.create_dataset(place, (rows, *shape), np.uint8, **options)
        for place in (name, f"next_{name}")
    ]
    begin, held = 0, []
    for image in data.frames(episode, camera.name):
        held.append(image)
        if len(held) == _AT_ONCE:
            begin = _put(made, begin, held)
            held = []
    end = _put(made, begin, held) if held else begin
    made[1][rows - 1] = made[0][rows - 1]
    if end != rows:
        raise ValueError(f"{camera.name}: has {end} frames in episode {episode}, expected {rows}")


def _put(made: list[Any], begin: int, images: list[Any]) -> int:
    import numpy as np

    block = np.stack(images)
    made[0][begin : begin + len(block)] = block
    first = 1 if begin == 0 else 0
    made[1][begin - 1 + first : begin - 1 + len(block)] = block[first:]
    return begin + len(block)
