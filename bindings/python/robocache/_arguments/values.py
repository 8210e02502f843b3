"""Conversion of values: tables, columns and lists."""

from __future__ import annotations

import sys
from typing import Any

from .._library.errors import REFUSALS, blamed
from .._printable import kind_of
from .arrays import SEQUENCES
from .tables import is_frame, is_of, library_of, numpy_of_arrow, refusal


def values_of(values: Any, name: str) -> Any:
    """Return values as an array: a Series is one channel, a DataFrame has one per column."""
    if type(values) in SEQUENCES:
        return _listed_values(values, name)
    if not library_of(values):
        return values
    import numpy as np

    if is_frame(values):
        columns = [column for _, column in columns_of(values, name)]
        if not columns:
            raise ValueError(f"{name}: has no columns")
        kind = np.result_type(*columns)
        return np.stack(columns, axis=1, dtype=kind)
    column = numbers_of(values, name)
    return column[:, None] if column.ndim == 1 else column


def _listed_values(items: Any, name: str) -> Any:
    import numpy as np

    try:
        array = np.asarray(items)
    except REFUSALS as error:  # rows of different lengths
        raise blamed(error, name) from None
    if array.dtype.kind == "b":
        return array
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name}: is {kind_of(items)} of {array.dtype}, expected numbers")
    return array.astype(np.float64)


def columns_of(frame: Any, name: str) -> list[tuple[str, Any]]:
    """Return the names and columns of a table, as arrays of numbers. Names must differ."""
    names = list(frame.column_names if library_of(frame) == "pyarrow" else frame.columns)
    for i, column in enumerate(names):
        if column in names[:i]:
            raise ValueError(
                f"{name}: has two columns named {column!r}; rename one, or pass .to_numpy()"
            )
    return [(column, numbers_of(frame[column], f"{name}[{column!r}]")) for column in names]


def numbers_of(column: Any, name: str) -> Any:
    """Return a column as an array of numbers. Missing values are NaN."""
    import numpy as np

    library = library_of(column)
    try:
        array = _NUMBERS[library](column)
    except REFUSALS as error:
        raise blamed(error, name) from None
    if array is None:
        raise refusal(column, name)
    if array.dtype.kind in "biuf":
        return array
    advice = "remove it, or convert it to numbers"
    if array.dtype.kind in "Mm":
        advice = "pass times as the argument times"
    elif array.dtype.kind == "O" and array.size and isinstance(array.flat[0], np.ndarray):
        advice = "if all its lists have the same length, pass np.stack of it"
    raise TypeError(
        f"{name}: dtype is {column.dtype if library != 'pyarrow' else column.type}; {advice}"
    )


def _pandas_numbers(column: Any) -> Any:
    if not is_of(column, "pandas", "Series", "Index"):
        return None
    plain = getattr(column.dtype, "numpy_dtype", None)  # of the dtypes with missing values
    if plain is None or plain.kind not in "biuf":
        return column.to_numpy()
    if not column.hasnans:
        return column.to_numpy(plain)
    return column.to_numpy("float64", na_value=float("nan"))


def _polars_numbers(column: Any) -> Any:
    return column.to_numpy() if is_of(column, "polars", "Series") else None


def _pyarrow_numbers(column: Any) -> Any:
    if not is_of(column, "pyarrow", "Array", "ChunkedArray"):
        return None
    if is_of(column.type, "pyarrow", "FixedSizeListType") and column.null_count == 0:
        parts = column.chunks if is_of(column, "pyarrow", "ChunkedArray") else [column]
        flat = sys.modules["pyarrow"].chunked_array([part.flatten() for part in parts])
        return flat.to_numpy().reshape(len(column), column.type.list_size)
    return numpy_of_arrow(column)


_NUMBERS = {"pandas": _pandas_numbers, "polars": _polars_numbers, "pyarrow": _pyarrow_numbers}
