"""Recordings and episodes from objects of other packages: xarray and datasets."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ._errors import Damage, FormatError, LeftOut, Unread, rows_without_time
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

    A dimension with a coordinate of times is a clock: dates, durations, or numbers by the name or
    the attribute ``units``. Variables along it become streams: variables without another dimension
    are the channels of one stream, named as the dimension; each other variable is a separate
    stream, with the labels of its other dimensions as names. Values are read when they are used.

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
        dtype = own.dtype
        if not isinstance(dtype, np.dtype):  # an extension type of pandas
            dtype = np.asarray(own.values).dtype
        if dtype.kind in "OUST":
            texts = np.asarray(own.values).reshape(-1).tolist()
            if all(isinstance(text, (str, bytes)) for text in texts):
                labels = tuple(map(str, texts))
            dtype = np.dtype("O")
        read = functools.partial(_values_of, own)
        attributes = {str(key): _plain(value) for key, value in own.attrs.items()}
        variables.append(Variable(str(name), dims, shape, dtype, read, attributes, labels))
    options = Options(Damage(damaged), unit=unit, rate=rate, time=time, kinds=checked(kinds))
    recording = Recording(
        Labelled(f"xarray.{type(source).__name__}", "xarray", "xarray", variables, options, []),
        progress=False,
    )
    return recording.with_kinds(options.kinds) if options.kinds else recording


def _plain(value: Any) -> Any:
    """Return a single number of NumPy as one of Python."""
    return value.item() if getattr(value, "size", 0) == 1 and hasattr(value, "item") else value


def _values_of(variable: Any) -> Any:
    return variable.values


# ---- datasets -----------------------------------------------------------------------------------

_EPISODE, _FRAME, _TIME, _TASK = "episode_index", "frame_index", "timestamp", "task"
_DATASET = "dataset"  # name of the stream of a data set without episodes
_SHOWN = 12  # names of columns in a message


def from_datasets(
    source: Any,
    *,
    damaged: str = "refuse",
    unit: str | None = None,
    rate: float | None = None,
    time: str | None = None,
    kinds: Mapping[str, Any] | None = None,
) -> Recording | Episodes:
    """Make episodes or a recording of a ``datasets.Dataset`` or ``Column`` of Hugging Face.

    With a column ``episode_index``, as in LeRobot, each other column of numbers becomes a track:
    ``timestamp`` has its times, else ``frame_index`` and the rate, and a column ``task`` the tasks.
    Without one, the columns become a stream, like the columns of a Parquet file. Lists of the same
    length become channels.

    Parameters
    ----------
    source
        The Dataset, or a Column of one.
    damaged
        "refuse": rows without a time are an error. "keep": they are skipped.
    unit
        Unit of integer times if the data do not state it: "ns", "us", "ms", "s".
    rate
        Rows per second, for data without times.
    time
        The column of times: "NAME" or "NAME:UNIT".
    kinds
        Kinds of channels, by track or stream and channels, as for :func:`open`.

    Raises
    ------
    TypeError
        The object is not from datasets, or it is a dict of splits, or iterable only.
    FormatError
        Rows are not in the order of their episodes, or times cannot be read.

    Examples
    --------
    >>> import robocache as rbc
    >>> try:
    ...     import datasets
    ... except ModuleNotFoundError:
    ...     datasets = None
    >>> if datasets is not None:
    ...     columns = {"episode_index": [0, 0, 1], "timestamp": [0.0, 0.1, 0.0]}
    ...     made = datasets.Dataset.from_dict({**columns, "action": [[1.0], [2.0], [3.0]]})
    ...     assert rbc.data.from_datasets(made)["action"].lengths.tolist() == [2, 1]
    """
    from ._errors import needed
    from ._formats.tables.columns import unread
    from ._formats.tables.parquet import storage_of, storage_schema
    from ._formats.tables.texts import is_text

    dataset, name = _dataset_of(source)
    path = f"datasets.{type(source).__name__}"
    needed("pyarrow", "tables", "a data set of datasets")
    options = Options(Damage(damaged), unit=unit, rate=rate, time=time, kinds=checked(kinds))
    left_out = []
    names = []
    for column in storage_schema(dataset.features.arrow_schema):
        reason = unread(column.type)
        if reason is None or is_text(column.type):
            names.append(column.name)
        else:
            left_out.append(LeftOut(column.name, reason))
    table = storage_of(dataset.select_columns(names).with_format("arrow")[:])
    made: Recording | Episodes
    if _EPISODE in names:
        made = _episodes_of(path, table, options, left_out)
    else:
        made = _recording_of(path, name, table, options, left_out)
    return made.with_kinds(options.kinds) if options.kinds else made


def _dataset_of(source: Any) -> tuple[Any, str]:
    """Return the Dataset of an object, with only its column, and a name."""
    kind = type(source)
    if kind.__module__.partition(".")[0] != "datasets":
        raise TypeError(f"source: is {kind.__name__}, expected a datasets.Dataset or Column")
    if kind.__name__ in ("DatasetDict", "IterableDatasetDict"):
        names = ", ".join(map(repr, source))
        raise TypeError(f"source: is a {kind.__name__}: select one of its splits, {names}")
    if kind.__name__.startswith("Iterable"):
        text = "load it without streaming=True, or make a Dataset of some rows"
        raise TypeError(f"source: is an {kind.__name__}, whose rows have no index: {text}")
    if hasattr(source, "column_name") and hasattr(source, "source"):
        own = str(source.column_name)
        if not hasattr(source.source, "select_columns"):
            text = "pass the whole column, or flatten the Dataset before"
            raise TypeError(f"source: {own} is a part of the column of a struct: {text}")
        return source.source.select_columns([own]), own
    if not hasattr(source, "select_columns"):
        raise TypeError(f"source: is {kind.__name__}, expected a datasets.Dataset or Column")
    return source, _DATASET


def _episodes_of(path: str, table: Any, options: Options, left_out: list[LeftOut]) -> Episodes:
    import numpy as np

    from .. import Track
    from .._episodes.episodes import make_episodes
    from .._episodes.lazy_tracks import About
    from ._formats.arrays.rows import clock_rows, stamps
    from ._formats.tables.clock import split_unit
    from ._formats.tables.parquet import column, whole_numbers
    from ._formats.tables.texts import is_text
    from ._time_units import in_seconds

    index = whole_numbers(path, table, _EPISODE)
    _require_order(path, table, index)
    numbers, begins = np.unique(index, return_index=True)
    offsets = np.append(begins, len(index)).astype(np.int64)
    clock, unit = _TIME, options.unit
    if options.time is not None:
        readings = [each for each in split_unit(options.time) if each[0] in table.column_names]
        if not readings:
            raise _no_column(path, table, options.time)
        clock, unit = readings[0][0], readings[0][1] or options.unit
    times: Any = None
    if clock in table.column_names:
        times = stamps(_flat(path, clock, column(path, table, clock)), path, clock)
        times = in_seconds(times, unit)
    elif options.rate is not None:
        times = clock_rows(np.diff(offsets), options.rate)
        if _FRAME in table.column_names:
            times = whole_numbers(path, table, _FRAME) / options.rate
    tracks: dict[str, Track] = {}
    tasks = None
    for field in table.schema:
        name = field.name
        if name in (_EPISODE, _FRAME, "index", clock):
            continue
        if is_text(field.type):
            tasks = _tasks(table[name], offsets) if name == _TASK else tasks
            if name != _TASK or tasks is None:
                left_out.append(LeftOut(name, "texts are not read"))
            continue
        try:
            values = column(path, table, name)
        except FormatError as error:
            where = f"{error.place} " if error.place != name else ""
            left_out.append(LeftOut(name, f"{where}{error.reason}"))
            continue
        tracks[name] = Track(values.reshape(len(index), -1), offsets, times=times)
    if not tracks:
        raise FormatError(path, "", "has no column of numbers except those that count rows")
    has_ticks = times is not None and times.dtype.kind == "i"
    about = About(
        "datasets",
        unit=unit if has_ticks else "s",
        rate=options.rate,
        info={"episodes": numbers.tolist()},
        left_out=tuple(left_out),
        problems=options.damage.problems,
    )
    return make_episodes(tracks, tasks=tasks, source=path, about=about)


def _require_order(path: str, table: Any, index: Any) -> None:
    """Refuse rows that are not in the order of their episodes, as after a shuffle."""
    import numpy as np

    from ._formats.tables.parquet import whole_numbers

    sort = 'sort them: dataset.sort(["episode_index", "frame_index"])'
    back = np.flatnonzero(np.diff(index) < 0)
    if len(back):
        place = f"{_EPISODE}, row {int(back[0]) + 1}"
        raise FormatError(path, place, f"goes back: rows are not in order; {sort}")
    if _FRAME in table.column_names:
        frames = whole_numbers(path, table, _FRAME)
        back = np.flatnonzero((np.diff(frames) <= 0) & (np.diff(index) == 0))
        if len(back):
            place = f"{_FRAME}, row {int(back[0]) + 1}"
            raise FormatError(path, place, f"does not ascend in an episode; {sort}")


def _flat(path: str, name: str, values: Any) -> Any:
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or values.dtype.kind not in "iuf":
        raise FormatError(path, name, "has several numbers per row, expected a time")
    return values


def _no_column(path: str, table: Any, asked: str) -> FormatError:
    known = ", ".join(map(repr, table.column_names[:_SHOWN]))
    return FormatError(path, "", f"--time {asked}: no such column, expected one of {known}")


def _tasks(column: Any, offsets: Any) -> list[str | None] | None:
    """Return the task of each episode; None if one has several."""
    texts = column.to_pylist()
    found: list[str | None] = []
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        own = set(texts[begin:end])
        if len(own) != 1:
            return None
        found.append(own.pop())
    return found


def _recording_of(
    path: str, name: str, table: Any, options: Options, left_out: list[LeftOut]
) -> Recording:
    from ._formats.tables.clock import flat, split_unit
    from ._formats.tables.streams import Wanted, of_table
    from ._formats.tables.units import Scale, scales_of

    table = flat(table)
    if options.time is not None:
        asked = {column for column, _ in split_unit(options.time)}
        if asked.isdisjoint(table.column_names):
            raise _no_column(path, table, options.time)
    made = of_table(name, path, table, Wanted(options.time, options.rate))
    clock = made.clock
    if made.untimed is not None:
        missing = made.untimed
        text = rows_without_time(missing.rows, missing.total, "", options.damage)
        options.damage.found(path, f"{missing.column}, row {missing.first}", text)
    unit, scales = scales_of(path, {} if clock is None else {name: clock}, options.unit)
    scale = scales.get(name, Scale(None, None))
    place = "" if clock is None else clock.name
    streams = [
        RecordedStream(
            own,
            "datasets",
            tuple(channels),
            values,
            {key: scale.times(times, path, place) for key, times in clocks.items()},
            unit,
            tuple(dtypes),
        )
        for own, (channels, values, clocks, dtypes) in made.streams.items()
        if channels
    ]
    unread = []
    if clock is None:
        text = "no column holds times. Name one with time=, or set the rows per second with rate="
        unread.append(Unread(name, "", len(table), None, text))
    return Recording(
        None,
        {stream.name: stream for stream in streams},
        left_out=[*left_out, *made.left_out],
        path=path,
        problems=options.damage.problems,
        unread=unread,
    )
