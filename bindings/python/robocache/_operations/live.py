"""Fusion at run time: threads of sensors push samples, and the control loop fuses them."""

from __future__ import annotations

import operator
import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .. import _core
from .._arguments.call import begin
from .._arguments.options import count, number, struct_of
from .._library.context import Context
from .._library.dtypes import DTYPES, dtype_name
from .._library.errors import REFUSALS, blamed, shown, with_python_names
from .._printable import kind_of, plural
from .._suggestions import did_you_mean
from .._typing import Method, Numbers, Outside
from .live_cameras import CameraInput, LiveCamera, LiveImages
from .stream import FLOAT_OF_BITS, Stream, offsets_of

_DTYPE = struct.Struct("BBH")  # rbcDType
(
    _new_stream,
    _set_channels,
    _set_capacity,
    _set_late_bound,
    _set_max_ahead,
    _set_clock_offset,
    _set_clock_offset_ticks,
) = struct_of(
    "LiveStream",
    "num_channels",
    "capacity",
    "late_bound",
    "max_ahead",
    "clock_offset",
    "clock_offset_ticks",
)
(_new_params,) = struct_of("LiveParams")
_new_fuse_params, _set_lag, _set_lag_ticks = struct_of("LiveFuseParams", "lag", "lag_ticks")
_new_counters = _core.new_LiveCounters


class LiveStream(NamedTuple):
    """One sensor of :class:`Live`, and how its samples are fused.

    Parameters
    ----------
    channels : int
        Number of channels of each sample.
    capacity : int
        Number of samples to keep, the newest by their times: at least 1 for previous, next and
        nearest, 4 for cubic and pchip, 2 for the others.
    late_bound : int
        A sample that arrives late is put in order if at most this many of the kept samples are
        newer; otherwise it is dropped. Both cases are counted.
    max_age : number, optional
        As for :class:`Stream`, with ``causal``, in the unit of the times. Set it: without a limit,
        the last sample of a sensor that has stopped is valid for ever.
    max_ahead : number, optional
        Limit in the unit of the times. A sample that is later than the newest one by more than this
        is refused, and counted in ``ahead``. Three successive samples that agree with each other
        outvote the newest one, so a true jump, or a clock that was set back, costs two samples. The
        limit must exceed the longest regular interval between two samples. None: no limit; a single
        wrong stamp then makes later samples too late, until :meth:`Live.reset`.
    dtype
        Dtype of the values.
    method, outside, fill_value, max_gap, tolerance, mean, std, clock_offset, causal
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
    causal: bool = False


class LiveTick(NamedTuple):
    """The result of :meth:`Live.fuse`."""

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

    kept: int  #: samples that were kept, late ones included
    overwritten: int  #: kept samples that newer samples have replaced
    late: int  #: kept samples that arrived after newer ones
    dropped: int  #: samples that arrived too late
    ahead: int  #: samples that were refused because of ``max_ahead``
    invalid: int  #: samples with a time of NaN or infinity (int64: NaT, or the largest)
    forgotten: int  #: kept samples removed by :meth:`Live.reset` or by a clock set back
    queries_before_first: int  #: queries of :meth:`Live.fuse` before the first sample in the ring
    snapshot_retries: int  #: snapshots of the ring that :meth:`Live.fuse` had to repeat


class Live:
    """Fusion of sensors while they are recorded.

    One thread per sensor pushes samples as they arrive, and one thread fuses them. No thread waits
    for another. :meth:`fuse` gives the same bits as :func:`fuse` for the samples that the rings
    hold. Training sees the same rows if it has the same arrivals and lag: see
    :doc:`/concepts/train-and-serve`.

    Parameters
    ----------
    streams : sequence of LiveStream, or dict by name
        The sensors. With names, methods take the name of a stream, or its index as before.
    time_dtype
        Dtype of all times: float64, float32 or int64.
    cameras : dict by name
        :class:`LiveCamera` objects, whose images :meth:`images` returns.
    backend
        As for :func:`resample`. On CUDA, :meth:`fuse` needs ``out`` on that device.

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

    Streams may have names:

    >>> live = rbc.Live({"arm": rbc.LiveStream(2)})
    >>> live.push("arm", [0.0, 0.1], [[1, 2], [3, 4]])
    >>> live.fuse(0.1).values.tolist()
    [[3.0, 4.0]]
    """

    def __init__(
        self,
        streams: Sequence[LiveStream] | Mapping[str, LiveStream],
        *,
        time_dtype: Any = "float64",
        cameras: Mapping[str, LiveCamera] | None = None,
        backend: str | Context | None = None,
    ) -> None:
        import numpy as np

        self._numpy = np  # imported here, since importing robocache does not import NumPy
        self._time = np.dtype(dtype_name(time_dtype))
        no_times = np.zeros(0, self._time)
        _, self._context, _, _ = begin(no_times, "times", backend)
        self._bits = 0  # of the float dtype that holds the values of all streams
        self._names: tuple[Any, ...] = ()
        if isinstance(streams, Mapping):
            self._names, streams = tuple(streams), tuple(streams.values())
        self._dtypes: list[Any] = []
        self._channels: list[int] = []
        described = []
        for n, stream in enumerate(streams):
            if not isinstance(stream, LiveStream):
                kind = kind_of(stream)
                raise TypeError(f"{self._place(n)}: is {kind}, expected a robocache.LiveStream")
            try:
                described.append(self._described(stream, no_times))
            except (TypeError, ValueError) as error:
                raise type(error)(f"{self._place(n)}.{error}") from None
        self._cameras: dict[str, CameraInput] = {}
        if not isinstance(cameras, (Mapping, type(None))):
            raise TypeError(f"cameras: is {shown(cameras)}, expected a dict of LiveCamera by name")
        for name, camera in (cameras or {}).items():
            if not isinstance(camera, LiveCamera):
                kind = type(camera).__name__
                raise TypeError(f"cameras[{name!r}]: is a {kind}, expected a robocache.LiveCamera")
            try:
                self._cameras[name] = CameraInput(camera, self._time)
            except (TypeError, ValueError) as error:
                raise type(error)(f"cameras[{name!r}].{error}") from None
        params = (_new_params(), _packed(self._time.name))
        try:
            self._handle = _core.rbc_live_create(self._context._handle, described, params)
        except (TypeError, ValueError) as error:
            raise with_python_names(error) from error.__cause__

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("live: cannot be pickled or copied; create one where it is needed")

    def _array(self, argument: Any, dtype: Any, name: str) -> Any:
        try:
            return self._numpy.asarray(argument, dtype)
        except REFUSALS as error:
            raise blamed(error, name) from None

    def _described(self, stream: LiveStream, no_times: Any) -> tuple[Any, ...]:
        np = self._numpy
        name = dtype_name(stream.dtype)
        if name == "bfloat16":
            raise TypeError("dtype: is bfloat16, expected a dtype of NumPy")
        channels = count(stream.channels, "channels")
        self._dtypes.append(np.dtype(name))
        self._channels.append(channels)
        made = _new_stream()
        _set_channels(made, channels)
        _set_capacity(made, count(stream.capacity, "capacity"))
        late = stream.late_bound
        _set_late_bound(made, 0 if late == 0 else count(late, "late_bound"))
        if stream.max_ahead is not None:
            _set_max_ahead(made, number(stream.max_ahead, "max_ahead"))
        offset, ticks = offsets_of(stream.clock_offset, "clock_offset", no_times)
        _set_clock_offset(made, offset)
        _set_clock_offset_ticks(made, ticks)
        # The rules of resampling, as fusion takes them.
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
            causal=stream.causal,
            max_age=stream.max_age,
        )
        self._bits |= rules._native[4]
        return made, _packed(name), rules._native[3]

    def _place(self, index: int) -> str:
        return f"streams[{self._names[index]!r}]" if self._names else f"streams[{index}]"

    def _index(self, stream: Any) -> int:
        if isinstance(stream, str) and self._names:
            if stream in self._names:
                return self._names.index(stream)
            known = ", ".join(map(repr, self._names))
            near = did_you_mean(stream, self._names)
            raise KeyError(f"stream: is {stream!r}, expected one of {known}{near}")
        try:
            stream = operator.index(stream)
        except REFUSALS:
            raise TypeError(f"stream: is {shown(stream)}, expected an int") from None
        if not 0 <= stream < len(self._dtypes):
            raise ValueError(f"stream: is {stream}, expected 0 to {len(self._dtypes) - 1}")
        return int(stream)

    def push(self, stream: int | str, times: Any, values: Any, arrivals: Any = None) -> None:
        """Add samples of a stream, in the order in which they arrive.

        The call is wait-free, except for the work of Python itself. Only one thread at a time may
        push to a stream.

        Parameters
        ----------
        stream : int or str
            Index of the stream, or its name.
        times : number, or array [n]
            Times of the samples.
        values : array [n,D], or [D] for one sample
            Values of the samples.
        arrivals : number, or array [n], optional
            When each sample arrived, on the clock of the query times. :meth:`fuse` uses a sample
            for query q only if it had arrived up to q + ``lag``. None: for every query.

        Raises
        ------
        ValueError
            There is no such stream, or shapes do not match; nothing is added.
        KeyError
            There is no stream with this name; nothing is added.
        """
        stream = self._index(stream)
        own_times = self._array(times, self._time, "times")
        own_values = self._array(values, self._dtypes[stream], "values")
        if own_times.ndim == 0:
            own_times = own_times[None]
            own_values = own_values[None] if own_values.ndim == 1 else own_values
        if arrivals is not None:
            arrivals = self._numpy.atleast_1d(self._array(arrivals, self._time, "arrivals"))
        _core.rbc_live_push(
            self._context._handle, self._handle, stream, own_values, own_times, arrivals
        )

    def reset(self, stream: int | str) -> None:
        """Remove the samples of a stream, for example after its driver restarted.

        Samples of any time are accepted afterwards. Call this from the thread that pushes to the
        stream.

        Raises
        ------
        ValueError
            There is no such stream.
        RoboCacheError
            Another thread is pushing to it (UNSUPPORTED); nothing is removed.

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

    def fuse(
        self, query_times: Any, *, lag: Any = 0, dtype: Any = None, out: Any = None
    ) -> LiveTick:
        """Fuse the samples in the rings at the query times.

        Parameters
        ----------
        query_times : number, or array [T]
            The current time, or a history of times; one row of the result for each.
        lag : number
            How long after the time of a row it is computed, in the unit of the times. Call at
            ``query_times[-1] + lag`` or later: the rows are the same.
        dtype
            Dtype of the values: float16, float32 or float64. None: as :func:`fuse`, the narrowest
            float that can hold the values of all float streams.
        out : array [T,D], optional
            Output array for the values.

        Returns
        -------
        LiveTick
            The values, their validity and the ages of the streams.

        Raises
        ------
        ValueError
            Shapes do not match.
        RoboCacheError
            Another thread is fusing (UNSUPPORTED).
        """
        np = self._numpy
        queries = np.atleast_1d(self._array(query_times, self._time, "query_times"))
        rows = len(queries)
        if out is None:
            name = FLOAT_OF_BITS.get(self._bits, "float32") if dtype is None else dtype_name(dtype)
            out = np.empty((rows, sum(self._channels)), np.dtype(name))
        valid = np.empty((rows, len(self._channels)), bool)
        ages = np.empty(len(self._channels), "int64" if self._time.kind == "i" else "float64")
        params = None
        if type(lag) is not int or lag != 0:
            params = _new_fuse_params()
            offset, ticks = offsets_of(lag, "lag", queries)
            _set_lag(params, offset)
            _set_lag_ticks(params, ticks)
        _core.rbc_live_fuse(self._context._handle, self._handle, queries, out, valid, ages, params)
        return LiveTick(out, valid, ages)

    def push_frame(self, camera: str, frame: Any, arrival: Any) -> None:
        """Add a frame of a camera. Any thread may call this.

        Parameters
        ----------
        camera : str
            Name of the camera.
        frame : array [H,W,C] of uint8
            In the memory of the CPU; it is copied.
        arrival : number
            When the frame had arrived, on the clock of the query times.

        Raises
        ------
        KeyError
            There is no camera with this name.
        ValueError
            The frame has another shape, or the time is not finite; nothing is added.
        """
        found = self._camera(camera)
        found.put(frame, self._array(arrival, self._time, "arrival")[()])

    def images(self, query_times: Any, *, lag: Any = 0) -> dict[str, LiveImages]:
        """Make the images of all cameras at the query times.

        Each image shows the newest frame that had arrived up to its time + ``lag``, as in training
        on an alignment.

        Parameters
        ----------
        query_times : number, or array [T]
            The current time, or a history of times.
        lag : number
            As for :meth:`fuse`.

        Returns
        -------
        dict
            By camera: :class:`LiveImages` with NumPy arrays, values [T,C,h,w].

        Examples
        --------
        >>> import numpy as np
        >>> import robocache as rbc
        >>> front = rbc.LiveCamera(rbc.Images("front", (2, 2)), (4, 4, 3), max_age=0.1)
        >>> live = rbc.Live([rbc.LiveStream(7)], cameras={"front": front})
        >>> live.push_frame("front", np.zeros((4, 4, 3), np.uint8), 0.5)
        >>> found = live.images([0.4, 0.55, 0.7])["front"]
        >>> found.values.shape, found.valid.tolist()
        ((3, 3, 2, 2), [False, True, False])
        """
        queries = self._numpy.atleast_1d(self._array(query_times, self._time, "query_times"))
        lag = self._array(lag, self._time, "lag")[()]
        return {name: camera.images(queries, lag) for name, camera in self._cameras.items()}

    def _camera(self, name: Any) -> CameraInput:
        if name not in self._cameras:
            known = ", ".join(map(repr, self._cameras)) or "none"
            near = did_you_mean(name, self._cameras) if isinstance(name, str) else ""
            raise KeyError(f"camera: is {shown(name)}, expected one of {known}{near}")
        return self._cameras[name]

    def counters(self, stream: int | str) -> LiveCounters:
        """Return the counts of a stream's samples so far. Any thread may call this."""
        counts = _new_counters()
        _core.rbc_live_get_counters(self._handle, self._index(stream), counts)
        return LiveCounters(
            *(getattr(_core, f"LiveCounters_{name}_get")(counts) for name in LiveCounters._fields)
        )

    def __repr__(self) -> str:
        names = f": {', '.join(map(str, self._names))}" if self._names else ""
        streams = plural(len(self._channels), "stream")
        return f"Live({streams}{names}, {plural(sum(self._channels), 'channel')})"


def _packed(name: str) -> bytes:
    try:
        code, bits = DTYPES[name]
    except KeyError:
        raise TypeError(f"dtype: is {shown(name)}, expected a dtype of arrays") from None
    return _DTYPE.pack(code, bits, 1)
