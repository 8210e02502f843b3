"""Features and tables of LeRobot data sets, as their files hold them."""

from __future__ import annotations

import json
from typing import Any


def feature_of(array: Any, names: Any) -> dict[str, Any]:
    return {
        "dtype": array.dtype.name,
        "shape": [int(array.shape[1])],
        "names": None if names is None else list(names),
    }


def hub_feature(feature: dict[str, Any]) -> dict[str, Any]:
    """Return a feature in the notation of the package datasets."""
    value = {"dtype": feature["dtype"], "_type": "Value"}
    if feature["shape"] == [1]:
        return value
    return {"feature": value, "length": feature["shape"][0], "_type": "Sequence"}


def arrow_of(pyarrow: Any, array: Any) -> Any:
    flat = pyarrow.array(array.reshape(-1))
    if array.shape[1] == 1:
        return flat
    return pyarrow.FixedSizeListArray.from_arrays(flat, array.shape[1])


def tasks_table(pyarrow: Any, tasks: list[str]) -> Any:
    """Return a table with the tasks as its index, in pandas' format."""
    index = "__index_level_0__"
    columns = [
        {
            "name": name,
            "field_name": field,
            "pandas_type": kind,
            "numpy_type": numpy,
            "metadata": None,
        }
        for name, field, kind, numpy in (
            ("task_index", "task_index", "int64", "int64"),
            (None, index, "unicode", "object"),
        )
    ]
    head = {"index_columns": [index], "column_indexes": [], "columns": columns}
    head["pandas_version"] = "2.0.0"
    table = pyarrow.table(
        {
            "task_index": pyarrow.array(range(len(tasks)), pyarrow.int64()),
            index: pyarrow.array(tasks, pyarrow.string()),
        }
    )
    return table.replace_schema_metadata({"pandas": json.dumps(head)})
