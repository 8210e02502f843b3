"""CSV and Parquet: a row per step, with columns for the episode, the time and each channel."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from .._errors import LeftOut, needed
from .dataset import DataSet, cameras_of, labels_of, numbers_of, without_cameras
from .formats import Options

_EPISODE, _FRAME, _TIME, _TASK = "episode_index", "frame_index", "timestamp", "task"


def write(data: DataSet, part: str, options: Options) -> Collection[LeftOut]:
    """Write a data set as one file."""
    pyarrow = needed("pyarrow", "tables", f"a {options.format} file")
    is_csv = options.format == "csv"
    if is_csv:
        module = needed("pyarrow.csv", "tables", "a CSV file")
    else:
        module = needed("pyarrow.parquet", "tables", "a Parquet file")
    writer: Any = None
    try:
        for e in range(len(data.lengths)):
            table = _table(pyarrow, data, e, with_pictures=not is_csv)
            if writer is None and is_csv:
                writer = module.CSVWriter(part, table.schema)
            elif writer is None:
                writer = module.ParquetWriter(part, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
    return without_cameras(data, "a CSV file") if is_csv else ()


def _table(pyarrow: Any, data: DataSet, episode: int, with_pictures: bool) -> Any:
    import numpy as np

    rows = data.lengths[episode]
    columns: dict[str, Any] = {
        _EPISODE: np.full(rows, episode, np.int64),
        _FRAME: np.arange(rows),
    }
    if data.rate is not None:
        columns[_TIME] = data.times(episode)
    if any(data.tasks):
        columns[_TASK] = pyarrow.array(["; ".join(data.tasks[episode])] * rows, pyarrow.string())
    values = data.rows(episode)
    for feature in numbers_of(data):
        array = values[feature.name]
        if feature.channels is None and feature.shape == (1,):
            columns[feature.name] = array[:, 0]
            continue
        for column, label in enumerate(labels_of(feature)):
            name = f"{feature.name}.{label}"
            if name in columns:
                name = f"{name}#{column}"
            columns[name] = np.ascontiguousarray(array[:, column])
    for camera in cameras_of(data) if with_pictures else ():
        pictures = [
            {"bytes": content, "path": None} for content in data.pictures(episode, camera.name)
        ]
        kind = [("bytes", pyarrow.binary()), ("path", pyarrow.string())]
        columns[camera.name] = pyarrow.array(pictures, pyarrow.struct(kind))
    return pyarrow.table(columns)
