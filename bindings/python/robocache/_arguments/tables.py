"""Recognition of tables and columns of pandas, polars and pyarrow, and advice in errors.

These libraries are never imported here: an object of one was passed, so it is loaded. Arrays that
an operation takes without conversion are not examined here.
"""

from __future__ import annotations

import sys
from typing import Any

from .._printable import kind_of

# Advice for classes that are not supported, by the names of library and class.
_CALLS = {
    ("polars", "LazyFrame"): "call .collect() on it",
    ("pandas", "PeriodIndex"): "call .to_timestamp() on it",
    ("pandas", "MultiIndex"): "call .get_level_values() on it",
    ("pyarrow", "Scalar"): "put it into a list",
    ("robocache", "Episodes"): "pass one of its tracks, such as episodes['arm']",
    ("robocache", "Recording"): "pass one of its streams, such as recording['/imu']",
}
# Arrays of other libraries, and how to convert them to NumPy.
_OTHERS = {
    ("xarray", "DataArray"): ("an xarray DataArray", "{name}.to_numpy()"),
    ("datasets", "Column"): ("a Column of Hugging Face datasets", "numpy.asarray({name}[:])"),
}


def library_of(value: Any) -> str:
    """Return "pandas", "polars" or "pyarrow" if an object comes from there, or else ""."""
    for base in type(value).__mro__:
        root = base.__module__.partition(".")[0]
        if root in ("pandas", "polars", "pyarrow"):
            return root
    return ""


def is_of(value: Any, library: str, *names: str) -> bool:
    classes = tuple(getattr(sys.modules[library], name) for name in names)
    return isinstance(value, classes)


def is_frame(value: Any) -> bool:
    """Whether an object is a table with named columns."""
    library = library_of(value)
    if library == "pyarrow":
        return is_of(value, library, "Table", "RecordBatch")
    return library != "" and is_of(value, library, "DataFrame")


def _names_of(kind: type) -> set[tuple[str, str]]:
    """Return the libraries and names of a class and its bases."""
    return {(base.__module__.partition(".")[0], base.__name__) for base in kind.__mro__}


def refusal_of_type(kind: type, name: str) -> TypeError | None:
    """Return the error for objects that the caller must convert first, or None."""
    kinds = _names_of(kind)
    for own, advice in _CALLS.items():
        if own in kinds:
            article = "an" if own[1] == "Episodes" else "a"
            return TypeError(f"{name}: is {article} {kind.__name__}; {advice}")
    for own, (what, call) in _OTHERS.items():
        if own in kinds:
            return TypeError(f"{name} is {what}: pass {call.format(name=name)}")
    return None


def refusal(value: Any, name: str) -> TypeError:
    other = refusal_of_type(type(value), name)
    if other is not None:
        return other
    return TypeError(
        f"{name}: is {kind_of(value)}, expected an array (NumPy, torch, or any with "
        "__dlpack__), a Series, a DataFrame or a list"
    )


def is_flat(array: Any) -> bool:
    """Whether a pyarrow array has a single chunk."""
    return not is_of(array, "pyarrow", "ChunkedArray")


def numpy_of_arrow(array: Any) -> Any:
    return array.to_numpy(zero_copy_only=False) if is_flat(array) else array.to_numpy()
