"""Fusion at run time: sensors' threads push samples, and the control loop fuses what is there."""

from __future__ import annotations

import operator
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

from .. import _core
from .._arguments.call import begin
from .._arguments.options import count, number, struct_of
from .._library.context import Context
from .._library.dtypes import DTYPES, dtype_name
from .._library.errors import REFUSALS, as_given, blamed, shown
from .._typing import Method, Numbers, Outside
from .stream import Stream, clock_offsets

_DTYPE = struct.Struct("BBH")  # rbcDType
(
    _new_stream,
    _set_channels,
    _set_capacity,
    _set_late_bound,
    _set_max_age,
    _set_max_ahead,
    _set_clock_offset,
    _set_clock_offset_ticks,
) = struct_of(
    "LiveStream",
    "num_channels",
    "capacity",
    "late_bound",
    "max_age",
    "max_ahead",
    "clock_offset",
    "clock_offset_ticks",
)
(_new_params,) = struct_of("LiveParams")
_new_counters = _core.new_LiveCounters


class LiveStream(NamedTuple):
    """One sensor of :class:`Live`, and how its samples are fused.

    Parameters
    ----------
    channels : int
    capacity : int
        How many samples are kept, the newest ones by their times; at least 1 for previous, next and
        nearest, 4 for cubic and pchip, 2 for the others.
    late_bound : int
        How many of the kept samples may be newer than one that arrives late. Such a sample is put
        in order; one that is later still is dropped. Both are counted.
    max_age : number, optional
        In the unit of the times. A stream whose age (see :class:`LiveTick`) is more than that, or
        less than the negative of it, has no samples.
    max_ahead : number, optional
        In the unit of the times. A sample that is more than that after the newest one is refused,
        and counted in ``ahead``. Three successive samples that agree with each other outvote the
        newest one, so a true leap, or a clock that was set back, costs two samples. It must be
        longer than the longest regular interval between two samples. None: no limit, and one wild
        stamp makes the samples after it too late, until :meth:`Live.reset`.
    dtype
        Of the values.
    method, outside, fill_value, max_gap, tolerance, mean, std, clock_offset
        As for :class:`Stream`.
    """

    channels: int
    capacity: int = 256
    late_bound: int = 0
    max_age: float | None = None
    dtype: Any = "float32"
    method: Method = "linear"
    outside: Outside = "hold"
    fill_value: float = 0.0
    max_gap: float | None = None
    tolerance: float | None = None
    mean: Numbers | None = None
    std: Numbers | None = None
    clock_offset: float = 0
    max_ahead: float | None = None


class LiveTick(NamedTuple):
    """What a call of :meth:`Live.fuse` gives."""

    values: Any  #: [T,D]: the channels of all streams, side by side
    valid: Any  #: [T,N] bool: where a stream has a value
    #: [N]: the newest query time minus the time of each stream's newest sample up to it; negative
    #: if all samples are after it. NaN without samples (int64: the largest)
    ages: Any


class LiveCounters(NamedTuple):
    """Counts of a stream's samples.

    Each sample is counted in one of ``kept``, ``dropped``, ``ahead`` and ``invalid``. While no
    thread pushes, ``kept`` is the sum of ``overwritten``, ``forgotten`` and the samples that are
    kept.
    """

    kept: int  #: late ones too
    overwritten: int  #: of these, those whose place a newer sample has taken
    late: int  #: of the kept ones, those that came after newer ones
    dropped: int  #: that came too late
    ahead: int  #: that were refused because of ``max_ahead``
    invalid: int  #: whose time was NaN or infinite (int64: the least, which is NaT, or the largest)
    forgotten: int  #: of the kept ones, those that :meth:`Live.reset` or a clock set back took away
    queries_before_first: int  #: queries of :meth:`Live.fuse` before all samples that were there
    snapshot_retries: int  #: snapshots of the ring that :meth:`Live.fuse` had to take again


class Live:
    """Sensors that are fused while they are recorded.

    A thread a sensor pushes samples as they arrive, and one thread fuses what is there. None of
    them waits for another. What :meth:`fuse` gives are the bits of :func:`fuse` for the samples
    that the rings hold: a policy sees at run time what it has seen in training.

    Parameters
    ----------
    streams : sequence of LiveStream
    time_dtype
        Of all times: float64, float32 or int64.
    backend
        As for :func:`resample`; on CUDA :meth:`fuse` needs an ``out`` there.

    Raises
    ------
    ValueError
        A number of a stream is out of range, such as a capacity that is too small for its method.

    Examples
    --------
    >>> import robocache as rbc
    >>> live = rbc.Live([rbc.LiveStream(2), rbc.LiveStream(1, method="previous")])
    >>> for i in range(5):
    ...     live.push(0, 0.01 * i, [i, -i])
    >>> live.push(1, 0.02, [7])
    >>> tick = live.fuse(0.035)
    >>> tick.values.tolist(), tick.valid.tolist()
    ([[3.5, -3.5, 7.0]], [[True, False]])
    >>> live.counters(0).kept
    5
    """

    def __init__(
        self,
        streams: Sequence[LiveStream],
        *,
        time_dtype: Any = "float64",
        backend: str | Context | None = None,
    ) -> None:
        import numpy as np

        self._numpy = np  # which this module leaves to whoever uses it
        self._time = np.dtype(dtype_name(time_dtype))
        no_times = np.zeros(0, self._time)
        _, self._context, _, _ = begin(no_times, "times", backend)
        self._dtypes: list[Any] = []
        self._channels: list[int] = []
        described = []
        for n, stream in enumerate(streams):
            if not isinstance(stream, LiveStream):
                told = f"a {type(stream).__name__}"
                raise TypeError(f"streams[{n}]: is {told}, expected a robocache.LiveStream")
            try:
                described.append(self._described(stream, no_times))
            except (TypeError, ValueError) as error:
                raise type(error)(f"streams[{n}].{error}") from None
        params = (_new_params(), _packed(self._time.name))
        try:
            self._handle = _core.rbc_live_create(self._context._handle, described, params)
        except (TypeError, ValueError) as error:
            raise as_given(error) from error.__cause__

    def _array(self, given: Any, dtype: Any, name: str) -> Any:
        try:
            return self._numpy.asarray(given, dtype)
        except REFUSALS as error:
            raise blamed(error, name) from None

    def _described(self, stream: LiveStream, no_times: Any) -> tuple[Any, ...]:
        np = self._numpy
        name = dtype_name(stream.dtype)
        if name == "bfloat16":
            raise TypeError("dtype: is bfloat16, expected one that NumPy has")
        channels = count(stream.channels, "channels")
        self._dtypes.append(np.dtype(name))
        self._channels.append(channels)
        made = _new_stream()
        _set_channels(made, channels)
        _set_capacity(made, count(stream.capacity, "capacity"))
        late = stream.late_bound
        _set_late_bound(made, 0 if late == 0 else count(late, "late_bound"))
        if stream.max_age is not None:
            _set_max_age(made, number(stream.max_age, "max_age"))
        if stream.max_ahead is not None:
            _set_max_ahead(made, number(stream.max_ahead, "max_ahead"))
        offset, ticks = clock_offsets(stream.clock_offset, no_times)
        _set_clock_offset(made, offset)
        _set_clock_offset_ticks(made, ticks)
        # The rules, as fusion takes them.
        rules: Any = Stream(
            np.zeros((0, channels), name),
            no_times,
            method=stream.method,
            outside=stream.outside,
            fill_value=stream.fill_value,
            max_gap=stream.max_gap,
            tolerance=stream.tolerance,
            mean=stream.mean,
            std=stream.std,
        )
        return made, _packed(name), rules._native[3]

    def _index(self, stream: Any) -> int:
        try:
            stream = operator.index(stream)
        except REFUSALS:
            raise TypeError(f"stream: is {shown(stream)}, expected an int") from None
        if not 0 <= stream < len(self._dtypes):
            raise ValueError(f"stream: is {stream}, expected 0 to {len(self._dtypes) - 1}")
        return int(stream)

    def push(self, stream: int, times: Any, values: Any) -> None:
        """Add samples of a stream, in the order in which they arrive.

        Wait-free, but for what Python itself takes. One thread at a time for each stream.

        Parameters
        ----------
        stream : int
            Its number.
        times : number, or array [n]
        values : array [n,D]; [D] of one sample

        Raises
        ------
        ValueError
            The stream is none, or shapes do not fit; nothing is added.
        """
        stream = self._index(stream)
        own_times = self._array(times, self._time, "times")
        own_values = self._array(values, self._dtypes[stream], "values")
        if own_times.ndim == 0:
            own_times = own_times[None]
            own_values = own_values[None] if own_values.ndim == 1 else own_values
        _core.rbc_live_push(self._context._handle, self._handle, stream, own_values, own_times)

    def reset(self, stream: int) -> None:
        """Forget the samples of a stream: its driver has restarted, or its clock was set.

        Samples of any time are accepted then. For the thread that pushes to the stream.

        Raises
        ------
        ValueError
            The stream is none.
        RoboCacheError
            Another thread pushes to it (UNSUPPORTED); nothing is forgotten.

        Examples
        --------
        >>> import robocache as rbc
        >>> live = rbc.Live([rbc.LiveStream(1)])
        >>> live.push(0, [100.0, 101.0], [[1], [2]])
        >>> live.reset(0)
        >>> live.push(0, [0.0, 1.0], [[3], [4]])
        >>> live.fuse(0.5).values.tolist(), live.counters(0).forgotten
        ([[3.5]], 2)
        """
        _core.rbc_live_reset(self._handle, self._index(stream))

    def fuse(self, query_times: Any, *, dtype: Any = "float32", out: Any = None) -> LiveTick:
        """What the rings hold at the query times, one row each: the tick, or it and those before.

        Parameters
        ----------
        query_times : number, or array [T]
        dtype
            Of the values: float16, float32 or float64.
        out : array [T,D], optional
            To be written to.

        Raises
        ------
        ValueError
            Shapes do not fit.
        RoboCacheError
            Another thread fuses (UNSUPPORTED).
        """
        np = self._numpy
        queries = np.atleast_1d(self._array(query_times, self._time, "query_times"))
        rows = len(queries)
        if out is None:
            out = np.empty((rows, sum(self._channels)), np.dtype(dtype_name(dtype)))
        valid = np.empty((rows, len(self._channels)), bool)
        ages = np.empty(len(self._channels), "int64" if self._time.kind == "i" else "float64")
        _core.rbc_live_fuse(self._context._handle, self._handle, queries, out, valid, ages, None)
        return LiveTick(out, valid, ages)

    def counters(self, stream: int) -> LiveCounters:
        """What has become of a stream's samples so far. From any thread."""
        told = _new_counters()
        _core.rbc_live_get_counters(self._handle, self._index(stream), told)
        return LiveCounters(
            *(getattr(_core, f"LiveCounters_{name}_get")(told) for name in LiveCounters._fields)
        )

    def __repr__(self) -> str:
        return f"Live({len(self._channels)} streams, {sum(self._channels)} channels)"


def _packed(name: str) -> bytes:
    try:
        code, bits = DTYPES[name]
    except KeyError:
        raise TypeError(f"dtype: is {shown(name)}, expected one of arrays") from None
    return _DTYPE.pack(code, bits, 1)
