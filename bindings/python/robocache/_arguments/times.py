"""Conversion of times: Series and arrays of pandas, polars and pyarrow, lists, dates, durations."""

from __future__ import annotations

import datetime
import sys
from typing import Any

from .._library.errors import REFUSALS, blamed, shown
from .._printable import kind_of
from .arrays import LIBRARY_TYPES, SEQUENCES, framework_of
from .options import number
from .tables import is_flat, library_of, numpy_of_arrow, refusal
from .time_units import Unit, is_length, no_unit, require_one_unit, ticks_of, unit_of
from .to_numpy import on_host

_MOST_TICKS = 2**63 - 1
_MOST_SPAN = 2**64 - 1  # ticks between two times
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def times_of(times: Any, name: str) -> tuple[Any, Unit | None]:
    """Return times as an array of numbers, and their unit. Plain arrays are returned unchanged."""
    kind = type(times)
    if kind in SEQUENCES:
        return _listed_times(times, name)
    library = library_of(times)
    if library:
        return _TIMES[library](times, name)
    if hasattr(kind, "__dlpack__"):
        framework = framework_of(times, name)  # refuses masked arrays
        if framework.is_numpy:
            import numpy as np

            plain = np.asarray(times)  # a subclass may report a wrong dtype
            taken, unit = _ticks(plain, name)
            return (times if taken is plain else taken), unit
        if kind in LIBRARY_TYPES:
            return _whole(times, name), None
    return times, None


def two_lists_of(times: Any, name: str, others: Any, others_name: str) -> tuple[Any, Any, Any]:
    """Return two lists of times in one unit, as NumPy arrays [n] of numbers, and that unit."""
    first, unit = times_of(times, name)
    second, own = times_of(others, others_name)
    require_one_unit(own, others_name, unit, name)
    return _list_of(first, name), _list_of(second, others_name), unit


def _list_of(times: Any, name: str) -> Any:
    is_array = hasattr(times, "__array__") or hasattr(times, "__dlpack__")
    array = on_host(times, name) if is_array else None
    if array is None or array.ndim != 1 or array.dtype.kind not in "iuf":
        raise ValueError(f"{name}: expected a one-dimensional array of numbers or dates")
    return array


def tolerance_of(tolerance: Any, unit: Unit | None, whole: bool) -> Any:
    """Return a tolerance for times of ``unit``: in ticks if ``whole``, or else a number."""
    if is_length(tolerance) and unit is None:
        raise TypeError(no_unit(tolerance, "tolerance"))
    limit = ticks_of(tolerance, "tolerance", unit) if whole else number(tolerance, "tolerance")
    if not limit >= 0:
        raise ValueError(f"tolerance: is {limit}, expected 0 or more")
    return min(limit, _MOST_SPAN) if whole else limit


def _way_out(name: str) -> str:
    rows = "these queries" if name == "query_times" else "these rows from times and values"
    return f"remove {rows}"


def _ticks(array: Any, name: str, zoned: bool = False) -> tuple[Any, Unit | None]:
    """Return a NumPy array of times as numbers, and their unit; integers become int64."""
    dtype = array.dtype
    if dtype.kind == "O":
        first = array.flat[0] if array.size else None
        way_out = f"np.asarray({name}.tolist(), 'datetime64[ns]') or pd.to_datetime({name})"
        if isinstance(first, float):
            way_out = f"np.asarray({name}.tolist())"
        raise TypeError(f"{name}: dtype is object, of {type(first).__name__}; write {way_out}")
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
        raise ValueError(f"{name}: is NaT at index {at}; {_way_out(name)}")
    return array.astype(dtype.newbyteorder("="), copy=False).view("int64"), unit


def _whole(array: Any, name: str) -> Any:
    """Return integers of any width as int64, and other numbers unchanged.

    Raises
    ------
    ValueError
        An integer is too large for int64.
    """
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
            raise ValueError(f"{name}: has {int(array.max())}, expected at most {_MOST_TICKS}")
        return wide
    return array


def _listed_times(items: Any, name: str) -> tuple[Any, Unit | None]:
    """Convert a list of numbers, or of dates or durations of NumPy, pandas or datetime."""
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
        if hasattr(each, "to_datetime64"):  # pandas, with its own unit
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
            raise TypeError(f"{name}: has {kind_of(each)} ({shown(each)}), expected a time")
    if len(zones) > 1:
        raise TypeError(f"{name}: only some times have a time zone, expected all or none")
    if len({stamp.dtype.kind for stamp in stamps}) > 1:
        raise TypeError(f"{name}: has dates and durations, expected only one kind")
    return _ticks(np.array(stamps).reshape(array.shape), name, True in zones)


def _pandas_times(times: Any, name: str) -> tuple[Any, Unit | None]:
    pandas = sys.modules["pandas"]
    if isinstance(times, pandas.DataFrame):
        if times.shape[1] != 1:
            raise TypeError(f"{name}: has {times.shape[1]} columns, expected one, such as df['t']")
        times = times.iloc[:, 0]
    if not isinstance(times, (pandas.Series, pandas.Index)) or isinstance(
        times, (pandas.PeriodIndex, pandas.MultiIndex)
    ):
        raise refusal(times, name)
    dtype = times.dtype
    zone = getattr(dtype, "tz", None)
    if zone is not None:
        aware = times.dt if isinstance(times, pandas.Series) else times
        return _ticks(aware.tz_convert(None).to_numpy(), name, True)
    arrow = getattr(dtype, "pyarrow_dtype", None)
    if arrow is not None:
        return _pyarrow_times(sys.modules["pyarrow"].array(times), name)
    if dtype.kind in "iufb" and times.hasnans:
        raise ValueError(
            f"{name}: is missing at index {int(times.isna().to_numpy().argmax())}; {_way_out(name)}"
        )
    return _ticks(times.to_numpy(getattr(dtype, "numpy_dtype", None)), name)


def _polars_times(times: Any, name: str) -> tuple[Any, Unit | None]:
    polars = sys.modules["polars"]
    if isinstance(times, polars.DataFrame):
        if times.width != 1:
            raise TypeError(f"{name}: has {times.width} columns, expected one, such as df['t']")
        times = times.to_series()
    if not isinstance(times, polars.Series):
        raise refusal(times, name)
    missing = times.is_null()
    if missing.any():
        raise ValueError(f"{name}: is missing at index {missing.arg_max()}; {_way_out(name)}")
    dtype = times.dtype
    if dtype in (polars.Datetime, polars.Duration):
        kind = "datetime64" if dtype == polars.Datetime else "timedelta64"
        zoned = getattr(dtype, "time_zone", None) is not None
        unit = Unit(kind, dtype.time_unit, zoned=zoned)
        return times.to_physical().to_numpy(), unit
    return _ticks(times.to_numpy(), name)


def _pyarrow_times(times: Any, name: str) -> tuple[Any, Unit | None]:
    pyarrow = sys.modules["pyarrow"]
    if not isinstance(times, (pyarrow.Array, pyarrow.ChunkedArray)):
        raise refusal(times, name)
    if times.null_count > 0:
        where = times.is_null().to_numpy(zero_copy_only=False) if is_flat(times) else None
        at = "" if where is None else f" at index {int(where.argmax())}"
        raise ValueError(f"{name}: is missing{at}; {_way_out(name)}")
    kind, unit = times.type, None
    if pyarrow.types.is_timestamp(kind):
        unit = Unit("datetime64", kind.unit, zoned=kind.tz is not None)
    elif pyarrow.types.is_duration(kind):
        unit = Unit("timedelta64", kind.unit)
    if unit is not None:
        return numpy_of_arrow(times.cast(pyarrow.int64())), unit
    return _ticks(numpy_of_arrow(times), name)


_TIMES = {"pandas": _pandas_times, "polars": _polars_times, "pyarrow": _pyarrow_times}
