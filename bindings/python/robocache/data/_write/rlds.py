"""RLDS as TensorFlow Datasets reads it: TFRecord files with an Example per episode."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from typing import Any, BinaryIO

from .._errors import LeftOut
from .._formats.rlds.records import example, put
from .._formats.rlds.rlds import FEATURES, INFO, OWN, STEPS
from .dataset import DataSet, Feature, cameras_of, numbers_of
from .formats import Options
from .pictures import kind_of

_SHARD = 256 << 20  # bytes of a file; then the next one begins
_CORE = "tensorflow_datasets.core.features"
_VERSION = "1.0.0"
_ADDED = ("reward", "discount")  # of each step, which RLDS data sets have
_SPLIT = "train"


def write(data: DataSet, part: str, options: Options) -> Collection[LeftOut]:
    """Write a data set as a folder, for ``tfds.builder_from_directory``."""
    os.mkdir(part)
    name = "robocache"
    files: list[str] = []
    counts: list[int] = []
    file: BinaryIO | None = None
    try:
        for e in range(len(data.lengths)):
            if file is None:
                files.append(os.path.join(part, f"{len(files)}.new"))
                counts.append(0)
                file = open(files[-1], "xb")
            put(file, _episode(data, e))
            counts[-1] += 1
            if file.tell() >= _SHARD:
                file.close()
                file = None
    finally:
        if file is not None:
            file.close()
    sizes = sum(os.path.getsize(path) for path in files)
    for number, path in enumerate(files):
        own = f"{name}-{_SPLIT}.tfrecord-{number:05d}-of-{len(files):05d}"
        os.rename(path, os.path.join(part, own))
    kind = _picture_kind(data)
    _json(part, FEATURES, _features(data, kind))
    _json(part, INFO, _info(name, counts, sizes))
    names = {f.name: list(f.channels) for f in numbers_of(data) if f.channels is not None}
    about = [dict(data.about(e)) for e in range(len(data.lengths))]
    added = [name for name in _ADDED if name not in data.features]
    _json(part, OWN, {"rate": data.rate, "names": names, "added": added, "episodes": about})
    return [
        LeftOut(feature.name, f"{feature.dtype} is rounded to float32")
        for feature in numbers_of(data)
        if feature.dtype == "float64"
    ]


def _place(feature: Feature) -> str:
    """Return the place of a feature in a step, such as observation/state."""
    name = feature.name
    if name.startswith("observation."):
        return f"observation/{name[len('observation.') :].replace('/', '_')}"
    return name.replace("/", "_")


def _picture_kind(data: DataSet) -> str:
    for camera in cameras_of(data):
        return kind_of(next(iter(data.pictures(0, camera.name)))) or "png"
    return "png"


def _episode(data: DataSet, episode: int) -> bytes:
    import numpy as np

    rows = data.lengths[episode]
    values = data.rows(episode)
    first, last = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    first[:1], last[-1:] = 1, 1
    features: dict[str, Any] = {
        f"{STEPS}/is_first": first,
        f"{STEPS}/is_last": last,
        f"{STEPS}/is_terminal": last,
        f"{STEPS}/reward": np.zeros(rows, np.float32),
        f"{STEPS}/discount": np.ones(rows, np.float32),
        f"{STEPS}/language_instruction": ["; ".join(data.tasks[episode]).encode()] * rows,
        "episode_metadata/source": [json.dumps(dict(data.about(episode))).encode()],
    }
    for feature in numbers_of(data):
        array = values[feature.name].reshape(-1)
        features[f"{STEPS}/{_place(feature)}"] = array
    for camera in cameras_of(data):
        features[f"{STEPS}/{_place(camera)}"] = list(data.pictures(episode, camera.name))
    return example(features)


# ---- descriptions -------------------------------------------------------------------------------


def _features(data: DataSet, kind: str) -> dict[str, Any]:
    step: dict[str, Any] = {
        "is_first": _tensor((), "bool"),
        "is_last": _tensor((), "bool"),
        "is_terminal": _tensor((), "bool"),
        "reward": _tensor((), "float32"),
        "discount": _tensor((), "float32"),
        "language_instruction": {"pythonClassName": f"{_CORE}.text_feature.Text", "text": {}},
    }
    observation: dict[str, Any] = {}
    for feature in data.features.values():
        group, _, name = _place(feature).rpartition("/")
        own = _picture(feature, kind) if feature.is_camera else _number(feature)
        (observation if group else step)[name] = own
    if observation:
        step["observation"] = _dict(observation)
    source = {"pythonClassName": f"{_CORE}.text_feature.Text", "text": {}}
    steps = {
        "pythonClassName": f"{_CORE}.dataset_feature.Dataset",
        "sequence": {"feature": _dict(step), "length": "-1"},
    }
    return _dict({STEPS: steps, "episode_metadata": _dict({"source": source})})


def _dict(members: dict[str, Any]) -> dict[str, Any]:
    return {
        "pythonClassName": f"{_CORE}.features_dict.FeaturesDict",
        "featuresDict": {"features": members},
    }


def _number(feature: Feature) -> dict[str, Any]:
    dtype = "float32" if feature.dtype == "float64" else feature.dtype
    return _tensor(feature.shape, dtype)


def _tensor(shape: tuple[int, ...], dtype: str) -> dict[str, Any]:
    own = {"dimensions": [str(extent) for extent in shape]} if shape else {}
    kind = "tensor_feature.Tensor" if shape else "scalar.Scalar"
    return {
        "pythonClassName": f"{_CORE}.{kind}",
        "tensor": {"shape": own, "dtype": dtype, "encoding": "none"},
    }


def _picture(feature: Feature, kind: str) -> dict[str, Any]:
    shape = {"dimensions": [str(extent) for extent in feature.shape]}
    return {
        "pythonClassName": f"{_CORE}.image_feature.Image",
        "image": {"shape": shape, "dtype": "uint8", "encodingFormat": kind},
    }


def _info(name: str, counts: list[int], size: int) -> dict[str, Any]:
    return {
        "name": name,
        "version": _VERSION,
        "fileFormat": "tfrecord",
        "moduleName": "robocache",
        "releaseNotes": {_VERSION: "Written by RoboCache."},
        "splits": [
            {
                "name": _SPLIT,
                "shardLengths": [str(count) for count in counts],
                "numBytes": str(size),
                "filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}",
            }
        ],
    }


def _json(folder: str, name: str, content: Any) -> None:
    with open(os.path.join(folder, name), "x", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
