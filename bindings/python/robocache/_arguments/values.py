"""Values as users have them: tables, columns and lists."""

from __future__ import annotations

import sys
from typing import Any

from .._library.errors import REFUSALS, blamed
from .arrays import SEQUENCES
from .tables import is_frame, is_of, library_of, numpy_of_arrow, refusal


def values_of(given: Any, name: str) -> Any:
    """Values as an array: a Series is one channel, and a DataFrame has one for each column."""
    if type(given) in SEQUENCES:
        return _listed_values(given, name)
    if not library_of(given):
        return given
    import numpy as np

    if is_frame(given):
        columns = [column for _, column in columns_of(given, name)]
        if not columns:
            raise ValueError(f"{name}: has no columns")
        kind = np.result_type(*columns)
        return np.stack(columns, axis=1, dtype=kind)
    column = numbers_of(given, name)
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
        raise TypeError(f"{name}: is a {type(items).__name__} of {array.dtype}, expected numbers")
    return array.astype(np.float64)


def columns_of(frame: Any, name: str) -> list[tuple[str, Any]]:
    """The columns of a table with their names, which differ, as arrays of numbers."""
    names = list(frame.column_names if library_of(frame) == "pyarrow" else frame.columns)
    for i, column in enumerate(names):
        if column in names[:i]:
            raise ValueError(
                f"{name}: has two columns of the name {column!r}; rename one, or pass .to_numpy()"
            )
    return [(column, numbers_of(frame[column], f"{name}[{column!r}]")) for column in names]


def numbers_of(given: Any, name: str) -> Any:
    """A column as an array of numbers. What is missing is NaN."""
    import numpy as np

    library = library_of(given)
    try:
        array = _NUMBERS[library](given)
    except REFUSALS as error:
        raise blamed(error, name) from None
    if array is None:
        raise refusal(given, name)
    if array.dtype.kind in "biuf":
        return array
    advice = "leave it out, or convert it to numbers"
    if array.dtype.kind in "Mm":
        advice = "times go in as times"
    elif array.dtype.kind == "O" and array.size and isinstance(array.flat[0], np.ndarray):
        advice = "if its lists have one length, pass np.stack of it"
    raise TypeError(
        f"{name}: is of {given.dtype if library != 'pyarrow' else given.type}; {advice}"
    )


def _pandas_numbers(given: Any) -> Any:
    if not is_of(given, "pandas", "Series", "Index"):
        return None
    plain = getattr(given.dtype, "numpy_dtype", None)  # of the dtypes that know missing values
    if plain is None or plain.kind not in "biuf":
        return given.to_numpy()
    if not given.hasnans:
        return given.to_numpy(plain)
    return given.to_numpy("float64", na_value=float("nan"))


def _polars_numbers(given: Any) -> Any:
    return given.to_numpy() if is_of(given, "polars", "Series") else None


def _pyarrow_numbers(given: Any) -> Any:
    if not is_of(given, "pyarrow", "Array", "ChunkedArray"):
        return None
    if is_of(given.type, "pyarrow", "FixedSizeListType") and given.null_count == 0:
        parts = given.chunks if is_of(given, "pyarrow", "ChunkedArray") else [given]
        flat = sys.modules["pyarrow"].chunked_array([part.flatten() for part in parts])
        return flat.to_numpy().reshape(len(given), given.type.list_size)
    return numpy_of_arrow(given)


_NUMBERS = {"pandas": _pandas_numbers, "polars": _polars_numbers, "pyarrow": _pyarrow_numbers}
