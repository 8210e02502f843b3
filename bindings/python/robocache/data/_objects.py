"""Recordings and episodes from objects of other packages: xarray and datasets."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._errors import Damage, FormatError, LeftOut, Unread
from ._kinds.declared import checked
from ._options import Options
from ._recording import RecordedStream, Recording

if TYPE_CHECKING:
    from .. import Episodes


def from_xarray(
    source: Any,
    *,
    damaged: str = "refuse",
    unit: str | None = None,
    rate: float | None = None,
    time: str | None = None,
    kinds: Mapping[str, Any] | None = None,
) -> Recording:
    """Make a recording of an xarray Dataset or DataArray.

    A dimension with a coordinate of times is a clock: of dates, of lengths of time, or of numbers
    by the name or the attribute ``units``. Variables along it become streams: those without another
    dimension are the channels of one stream, named as the dimension; each other variable is a
    stream of its own, with the labels of its other dimensions as names. Values are read when they
    are used. Options are those of :func:`open`.

    Parameters
    ----------
    source
        The Dataset or DataArray.
    damaged
        "refuse": missing times are an error. "keep": their rows are skipped.
    unit
        Unit of integer times if the data do not state it: "ns", "us", "ms", "s".
    rate
        Rows per second, for data without times.
    time
        The variable with the times: "NAME" or "NAME:UNIT".
    kinds
        Kinds of channels, by stream and channels, as for :func:`open`.

    Raises
    ------
    TypeError
        The object is not from xarray.
    FormatError
        The times cannot be read.

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> try:
    ...     import xarray
    ... except ModuleNotFoundError:
    ...     xarray = None
    >>> if xarray is not None:
    ...     times = np.arange(3) * np.timedelta64(10, "ms")
    ...     run = xarray.Dataset({"grip": ("time", [0.0, 1.0, 2.0])}, {"time": times})
    ...     assert rbc.data.from_xarray(run).align(200)["grip"].values[1] == 0.5
    """
    import numpy as np

    from ._formats.arrays.labelled import Labelled, Variable

    module = type(source).__module__.partition(".")[0]
    if module != "xarray" or not (hasattr(source, "dims") and hasattr(source, "coords")):
        raise TypeError(f"source: is {type(source).__name__}, expected an xarray Dataset")
    given = source
    if not hasattr(given, "data_vars"):
        given = given.to_dataset(name="values" if given.name is None else str(given.name))
    variables = []
    for name, own in given.variables.items():
        dims, shape = tuple(map(str, own.dims)), tuple(own.shape)
        labels = None
        dtype = (
            np.dtype(getattr(own.dtype, "numpy_dtype", "O")) if _is_extension(own) else own.dtype
        )
        if dtype.kind in "OUST":
            texts = np.asarray(own.values).reshape(-1).tolist()
            labels = (
                tuple(map(str, texts)) if all(isinstance(t, (str, bytes)) for t in texts) else None
            )
            dtype = np.dtype("O")
        read = functools.partial(_values_of, own)
        variables.append(Variable(str(name), dims, shape, dtype, read, dict(own.attrs), labels))
    options = Options(Damage(damaged), unit=unit, rate=rate, time=time, kinds=checked(kinds))
    recording = Recording(
        Labelled(f"xarray.{type(source).__name__}", "xarray", "xarray", variables, options, []),
        progress=False,
    )
    return recording.with_kinds(options.kinds) if options.kinds else recording


def _is_extension(variable: Any) -> bool:
    import numpy as np

    return not isinstance(variable.dtype, np.dtype)


def _values_of(variable: Any) -> Any:
    return variable.values
