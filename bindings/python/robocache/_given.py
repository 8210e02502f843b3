"""Values and times as users have them: of pandas, polars and pyarrow, lists, dates and spans of time.

None of these libraries is imported but where an object of its own was given. What an operation
takes as it is never comes here.
"""

from __future__ import annotations

import datetime
import sys
from typing import Any

from ._arrays import LIBRARY_TYPES, SEQUENCES, framework_of
from ._errors import REFUSALS, blamed, shown
from ._units import Unit, unit_of

_MOST_TICKS = 2**63 - 1
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
# What cannot be taken, by the names of its library and class: what to call.
_CALLS = {
    ("polars", "LazyFrame"): "call .collect() on it",
    ("pandas", "PeriodIndex"): "call .to_timestamp() on it",
    ("pandas", "MultiIndex"): "call .get_level_values() on it",
    ("pyarrow", "Scalar"): "put it into a list",
}


def library_of(given: Any) -> str:
    """The name of the library of tables that an object is of; "" if it is of none."""
    for base in type(given).__mro__:
        root = base.__module__.partition(".")[0]
        if root in ("pandas", "polars", "pyarrow"):
            return root
    return ""


def _is(given: Any, library: str, *names: str) -> bool:
    classes = tuple(getattr(sys.modules[library], name) for name in names)
    return isinstance(given, classes)


def is_frame(given: Any) -> bool:
    """Whether it is a table of columns with names."""
    library = library_of(given)
    if library == "pyarrow":
        return _is(given, library, "Table", "RecordBatch")
    return library != "" and _is(given, library, "DataFrame")


def _refuse(given: Any, name: str) -> TypeError:
    for (library, kind), advice in _CALLS.items():
        if any(
            base.__name__ == kind and base.__module__.startswith(library)
            for base in type(given).__mro__
        ):
            return TypeError(f"{name}: is a {type(given).__name__}; {advice}")
    return TypeError(
        f"{name}: is a {type(given).__name__}, expected an array (NumPy, torch, or any with "
        "__dlpack__), a Series, a DataFrame or a list"
    )


# ---- times --------------------------------------------------------------------------------------


def times_of(given: Any, name: str) -> tuple[Any, Unit | None]:
    """Times as an array of numbers, and their unit. What is taken as it is comes back itself."""
    kind = type(given)
    if kind in SEQUENCES:
        return _listed_times(given, name)
    library = library_of(given)
    if library:
        return _TIMES[library](given, name)
    if hasattr(kind, "__dlpack__"):
        framework = framework_of(given, name)  # which refuses masked arrays
        if framework.is_numpy:
            return _ticks(given, name)
        if kind in LIBRARY_TYPES:
            return _whole(given, name), None
    return given, None


def _ticks(array: Any, name: str, zoned: bool = False) -> tuple[Any, Unit | None]:
    """Of an array of NumPy; integers become int64."""
    dtype = array.dtype
    if dtype.kind == "O":
        first = array.flat[0] if array.size else None
        raise TypeError(
            f"{name}: dtype is object, of {type(first).__name__}; "
            f"write np.asarray({name}.tolist(), 'datetime64[ns]') or pd.to_datetime({name})"
        )
    if dtype.names:
        raise TypeError(
            f"{name}: has the fields {', '.join(dtype.names)}, expected one of them, "
            f"such as {name}[{dtype.names[0]!r}]"
        )
    if dtype.kind not in "Mm":
        return _whole(array, name) if dtype.kind in "iu" else array, None
    import numpy as np

    unit = unit_of(dtype, name)
    if zoned:
        unit = Unit(unit.kind, unit.name, unit.count, True)
    missing = np.isnat(array)
    if missing.any():
        where = np.argwhere(missing)[0].tolist()
        at = where[0] if len(where) == 1 else where
        raise ValueError(f"{name}: is NaT at index {at}; drop such rows from times and values")
    return array.astype(dtype.newbyteorder("="), copy=False).view("int64"), unit


def _whole(array: Any, name: str) -> Any:
    """Integers of any width as int64, where they fit. Other numbers are left to the library."""
    dtype = str(array.dtype).rpartition(".")[2]
    narrow = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
    if dtype in narrow or dtype == "uint64":
        root = type(array).__module__.partition(".")[0]
        if root == "torch":
            wide = array.to(sys.modules["torch"].int64)
        elif root == "numpy" or root in ("jax", "jaxlib"):
            import numpy as np

            if root != "numpy" and not all(d.platform == "cpu" for d in array.devices()):
                return array
            wide = np.asarray(array).astype(np.int64)
        else:
            wide = array.astype("int64")
        if dtype == "uint64" and bool((wide < 0).any()):
            raise ValueError(f"{name}: holds {int(array.max())}, past the {_MOST_TICKS} of int64")
        return wide
    return array


def _listed_times(items: Any, name: str) -> tuple[Any, Unit | None]:
    """A list of numbers, or of dates or spans of time of NumPy, pandas or the standard library."""
    import numpy as np

    try:
        array = np.asarray(items)
    except REFUSALS as error:  # rows of different lengths
        raise blamed(error, name) from None
    if array.dtype.kind == "O":
        return _objects(array, name)
    return _ticks(array, name) if array.dtype.kind in "Mmiuf" else (items, None)


def _objects(array: Any, name: str) -> tuple[Any, Unit | None]:
    import numpy as np

    zones, stamps = set(), []
    for each in array.flat:
        if hasattr(each, "to_datetime64"):  # pandas', of a unit of its own
            zones.add(each.tzinfo is not None)
            stamps.append(each.to_datetime64())
        elif hasattr(each, "to_timedelta64"):
            zones.add(False)
            stamps.append(each.to_timedelta64())
        elif isinstance(each, datetime.datetime):
            zones.add(each.tzinfo is not None)
            if each.tzinfo is None:
                stamps.append(np.datetime64(each, "us"))
            else:
                since = (each - _EPOCH) // datetime.timedelta(microseconds=1)
                stamps.append(np.datetime64(since, "us"))
        elif isinstance(each, datetime.timedelta):
            zones.add(False)
            stamps.append(np.timedelta64(each, "us"))
        elif isinstance(each, datetime.date):
            zones.add(False)
            stamps.append(np.datetime64(each, "D"))
        else:
            raise TypeError(f"{name}: has a {type(each).__name__} ({shown(each)}), expected a time")
    if len(zones) > 1:
        raise TypeError(f"{name}: has times with a time zone and without, expected one of them")
    if len({stamp.dtype.kind for stamp in stamps}) > 1:
        raise TypeError(f"{name}: has dates and spans of time, expected one of them")
    return _ticks(np.array(stamps).reshape(array.shape), name, True in zones)


def _pandas_times(given: Any, name: str) -> tuple[Any, Unit | None]:
    pandas = sys.modules["pandas"]
    if isinstance(given, pandas.DataFrame):
        if given.shape[1] != 1:
            raise TypeError(f"{name}: has {given.shape[1]} columns, expected one, such as df['t']")
        given = given.iloc[:, 0]
    if not isinstance(given, (pandas.Series, pandas.Index)) or isinstance(
        given, (pandas.PeriodIndex, pandas.MultiIndex)
    ):
        raise _refuse(given, name)
    dtype = given.dtype
    zone = getattr(dtype, "tz", None)
    if zone is not None:
        aware = given.dt if isinstance(given, pandas.Series) else given
        return _ticks(aware.tz_convert(None).to_numpy(), name, True)
    arrow = getattr(dtype, "pyarrow_dtype", None)
    if arrow is not None:
        return _pyarrow_times(sys.modules["pyarrow"].array(given), name)
    if dtype.kind in "iufb" and given.hasnans:
        raise ValueError(
            f"{name}: is missing at index {int(given.isna().to_numpy().argmax())}; "
            "drop such rows from times and values"
        )
    return _ticks(given.to_numpy(getattr(dtype, "numpy_dtype", None)), name)


def _polars_times(given: Any, name: str) -> tuple[Any, Unit | None]:
    polars = sys.modules["polars"]
    if isinstance(given, polars.DataFrame):
        if given.width != 1:
            raise TypeError(f"{name}: has {given.width} columns, expected one, such as df['t']")
        given = given.to_series()
    if not isinstance(given, polars.Series):
        raise _refuse(given, name)
    missing = given.is_null()
    if missing.any():
        raise ValueError(
            f"{name}: is missing at index {missing.arg_max()}; drop such rows from times and values"
        )
    dtype = given.dtype
    if dtype in (polars.Datetime, polars.Duration):
        kind = "datetime64" if dtype == polars.Datetime else "timedelta64"
        zoned = getattr(dtype, "time_zone", None) is not None
        unit = Unit(kind, dtype.time_unit, zoned=zoned)
        return given.to_physical().to_numpy(), unit
    return _ticks(given.to_numpy(), name)


def _pyarrow_times(given: Any, name: str) -> tuple[Any, Unit | None]:
    pyarrow = sys.modules["pyarrow"]
    if not isinstance(given, (pyarrow.Array, pyarrow.ChunkedArray)):
        raise _refuse(given, name)
    if given.null_count > 0:
        where = given.is_null().to_numpy(zero_copy_only=False) if _is_flat(given) else None
        at = "" if where is None else f" at index {int(where.argmax())}"
        raise ValueError(f"{name}: is missing{at}; drop such rows from times and values")
    kind, unit = given.type, None
    if pyarrow.types.is_timestamp(kind):
        unit = Unit("datetime64", kind.unit, zoned=kind.tz is not None)
    elif pyarrow.types.is_duration(kind):
        unit = Unit("timedelta64", kind.unit)
    if unit is not None:
        return _numpy_of_arrow(given.cast(pyarrow.int64())), unit
    return _ticks(_numpy_of_arrow(given), name)


def _is_flat(given: Any) -> bool:
    return not _is(given, "pyarrow", "ChunkedArray")


def _numpy_of_arrow(given: Any) -> Any:
    return given.to_numpy(zero_copy_only=False) if _is_flat(given) else given.to_numpy()


_TIMES = {"pandas": _pandas_times, "polars": _polars_times, "pyarrow": _pyarrow_times}


# ---- values -------------------------------------------------------------------------------------


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
        raise _refuse(given, name)
    if array.dtype.kind in "biuf":
        return array
    advice = "leave it out, or convert it to numbers"
    if array.dtype.kind in "Mm":
        advice = "times go in as times"
    elif array.dtype.kind == "O" and array.size and isinstance(array.flat[0], np.ndarray):
        advice = "if its lists have one length, pass np.stack of it"
    raise TypeError(f"{name}: is of {given.dtype if library != 'pyarrow' else given.type}; {advice}")


def _pandas_numbers(given: Any) -> Any:
    if not _is(given, "pandas", "Series", "Index"):
        return None
    plain = getattr(given.dtype, "numpy_dtype", None)  # of the dtypes that know missing values
    if plain is None or plain.kind not in "biuf":
        return given.to_numpy()
    if not given.hasnans:
        return given.to_numpy(plain)
    return given.to_numpy("float64", na_value=float("nan"))


def _polars_numbers(given: Any) -> Any:
    return given.to_numpy() if _is(given, "polars", "Series") else None


def _pyarrow_numbers(given: Any) -> Any:
    if not _is(given, "pyarrow", "Array", "ChunkedArray"):
        return None
    if _is(given.type, "pyarrow", "FixedSizeListType") and given.null_count == 0:
        parts = given.chunks if _is(given, "pyarrow", "ChunkedArray") else [given]
        flat = sys.modules["pyarrow"].chunked_array([part.flatten() for part in parts])
        return flat.to_numpy().reshape(len(given), given.type.list_size)
    return _numpy_of_arrow(given)


_NUMBERS = {"pandas": _pandas_numbers, "polars": _polars_numbers, "pyarrow": _pyarrow_numbers}
