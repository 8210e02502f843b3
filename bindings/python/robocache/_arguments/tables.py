"""Tables and columns of pandas, polars and pyarrow: what an object is, and what to call instead.

None of these libraries is imported but where an object of its own was given. What an operation
takes as it is never comes here.
"""

from __future__ import annotations

import sys
from typing import Any

# What cannot be taken, by the names of its library and class: what to call.
_CALLS = {
    ("polars", "LazyFrame"): "call .collect() on it",
    ("pandas", "PeriodIndex"): "call .to_timestamp() on it",
    ("pandas", "MultiIndex"): "call .get_level_values() on it",
    ("pyarrow", "Scalar"): "put it into a list",
}
# Arrays of other libraries, and how to get one of NumPy from them.
_OTHERS = {
    ("xarray", "DataArray"): ("an xarray DataArray", "{name}.to_numpy()"),
    ("datasets", "Column"): ("a Column of Hugging Face datasets", "numpy.asarray({name}[:])"),
}


def library_of(given: Any) -> str:
    """The name of the library of tables that an object is of; "" if it is of none."""
    for base in type(given).__mro__:
        root = base.__module__.partition(".")[0]
        if root in ("pandas", "polars", "pyarrow"):
            return root
    return ""


def is_of(given: Any, library: str, *names: str) -> bool:
    classes = tuple(getattr(sys.modules[library], name) for name in names)
    return isinstance(given, classes)


def is_frame(given: Any) -> bool:
    """Whether it is a table of columns with names."""
    library = library_of(given)
    if library == "pyarrow":
        return is_of(given, library, "Table", "RecordBatch")
    return library != "" and is_of(given, library, "DataFrame")


def _names_of(kind: type) -> set[tuple[str, str]]:
    """The libraries and names of a class and its bases."""
    return {(base.__module__.partition(".")[0], base.__name__) for base in kind.__mro__}


def refusal_of_type(kind: type, name: str) -> TypeError | None:
    """The error for arrays of libraries whose arrays have to be converted first."""
    kinds = _names_of(kind)
    for own, (what, call) in _OTHERS.items():
        if own in kinds:
            return TypeError(f"{name} is {what}: pass {call.format(name=name)}")
    return None


def refusal(given: Any, name: str) -> TypeError:
    kinds = _names_of(type(given))
    for own, advice in _CALLS.items():
        if own in kinds:
            return TypeError(f"{name}: is a {type(given).__name__}; {advice}")
    other = refusal_of_type(type(given), name)
    if other is not None:
        return other
    return TypeError(
        f"{name}: is a {type(given).__name__}, expected an array (NumPy, torch, or any with "
        "__dlpack__), a Series, a DataFrame or a list"
    )


def is_flat(given: Any) -> bool:
    """Whether an array of pyarrow is in one piece."""
    return not is_of(given, "pyarrow", "ChunkedArray")


def numpy_of_arrow(given: Any) -> Any:
    return given.to_numpy(zero_copy_only=False) if is_flat(given) else given.to_numpy()
