"""Fusion of streams with different rates at the times of one clock."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, overload

from .. import _core
from .._arguments.call import array_of, begin, finished, writable
from .._arguments.coerce import queries_of, streams_again, ticks_or_numbers
from .._arguments.options import struct_of
from .._arguments.resample_params import BATCH_OFFSETS, LENGTHS, UNCHECKED
from .._arguments.samples import matched, samples_of
from .._arguments.shapes import out_shape
from .._arguments.time_units import require_one_unit
from .._arguments.to_numpy import on_host
from .._library.context import CPU, Context
from .._library.dtypes import dtype_name
from .._library.errors import with_python_names
from .._printable import kind_of
from .._typing import Array, Duration, Indices, Out, SupportsDLPack, Times
from .range_warning import warn_of
from .stream import FLOAT_OF_BITS, HAS_UNIT, Stream, offsets_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from .._episodes.track import Track
    from .._typing import CallOptions, UntypedCallOptions
    from ..data._recording import RecordedStream

_MOST_STREAMS = _core.FUSE_MAX_STREAMS


_new, _set_flags, _set_lag, _set_lag_ticks = struct_of("FuseParams", "flags", "lag", "lag_ticks")
_UNCHECKED, _CHECKED = _new(), _new()
_set_flags(_CHECKED, _core.FLAG_CHECK_TIMES)


# With a dtype, NumPy's arrays of the result have a different dtype than values.
@overload
def fuse(
    streams: Sequence[Stream[NDArray[Any]]],
    query_times: Times,
    *,
    dtype: Any,
    out: None = ...,
    return_valid: Literal[False] = ...,
    **options: Unpack[UntypedCallOptions],
) -> NDArray[Any]: ...
@overload
def fuse(
    streams: Sequence[Stream[NDArray[Any]]],
    query_times: Times,
    *,
    dtype: Any,
    out: None = ...,
    return_valid: Literal[True],
    **options: Unpack[UntypedCallOptions],
) -> tuple[NDArray[Any], NDArray[np.bool_]]: ...
@overload
def fuse(
    streams: Sequence[Stream[NDArray[Any]]],
    query_times: Times,
    *,
    dtype: Any,
    out: None = ...,
    return_valid: bool,
    **options: Unpack[UntypedCallOptions],
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[np.bool_]]: ...
@overload
def fuse(
    streams: Sequence[Stream[Array]],
    query_times: Times,
    *,
    out: None = ...,
    return_valid: Literal[False] = ...,
    **options: Unpack[CallOptions],
) -> Array: ...
@overload
def fuse(
    streams: Sequence[Stream[Array]],
    query_times: Times,
    *,
    out: None = ...,
    return_valid: Literal[True],
    **options: Unpack[CallOptions],
) -> tuple[Array, Any]: ...
@overload
def fuse(
    streams: Sequence[Stream[Array]],
    query_times: Times,
    *,
    out: None = ...,
    return_valid: bool,
    **options: Unpack[CallOptions],
) -> Array | tuple[Array, Any]: ...
@overload
def fuse(
    streams: Sequence[Stream[NDArray[Any]]],
    query_times: Times,
    *,
    out: None = ...,
    return_valid: Literal[False] = ...,
    **options: Unpack[CallOptions],
) -> NDArray[Any]: ...
@overload
def fuse(
    streams: Sequence[Stream[NDArray[Any]]],
    query_times: Times,
    *,
    out: None = ...,
    return_valid: Literal[True],
    **options: Unpack[CallOptions],
) -> tuple[NDArray[Any], NDArray[np.bool_]]: ...
@overload
def fuse(
    streams: Sequence[Stream[NDArray[Any]]],
    query_times: Times,
    *,
    out: None = ...,
    return_valid: bool,
    **options: Unpack[CallOptions],
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[np.bool_]]: ...
@overload
def fuse(
    streams: Sequence[Stream[Any]],
    query_times: Times,
    *,
    out: Out,
    return_valid: Literal[False] = ...,
    **options: Unpack[CallOptions],
) -> Out: ...
@overload
def fuse(
    streams: Sequence[Stream[Any]],
    query_times: Times,
    *,
    out: Out,
    return_valid: Literal[True],
    **options: Unpack[CallOptions],
) -> tuple[Out, Any]: ...
@overload
def fuse(
    streams: Sequence[Stream[Any]],
    query_times: Times,
    *,
    out: Out,
    return_valid: bool,
    **options: Unpack[CallOptions],
) -> Out | tuple[Out, Any]: ...
@overload
def fuse(
    streams: Sequence[Stream[Any] | RecordedStream | Track],
    query_times: Times,
    *,
    dtype: Any = ...,
    out: SupportsDLPack | None = ...,
    return_valid: bool = ...,
    **options: Unpack[UntypedCallOptions],
) -> Any: ...
def fuse(
    streams: Sequence[Stream[Any] | RecordedStream | Track],
    query_times: Times,
    *,
    query_lengths: Indices | None = None,
    lag: Duration = 0,
    dtype: Any = None,
    out: SupportsDLPack | None = None,
    return_valid: bool = False,
    check_times: bool | None = None,
    backend: str | Context | None = None,
) -> Any:
    """Resample N streams at the same T query times and concatenate their channels.

    Each stream is resampled as by :func:`resample`; the channels of stream n follow those of stream
    n - 1. All streams have a batch of the same size B, or none has a batch; omit B then. On CUDA a
    call is one launch for any N.

    Parameters
    ----------
    streams
        1 to 64 :class:`Stream` objects with the same dtype of times. Their dtypes of values, rates
        and numbers of channels may differ. A :class:`robocache.data.RecordedStream` or a
        :class:`Track` is a stream with its own times, and method "linear"; query times that are
        whole numbers are then ticks of their unit.
    query_times : array or list [B,T], or [T] shared by the batch
        The dtype and the unit of the streams' times, in any order. [B,T] with streams without a
        batch stands for B clocks of one recording, which is not copied, except by JAX.
    query_lengths : array or list [B] of int32 or int64
        Number of valid queries in each row. None: all.
    lag
        How long after the time of a row it is computed, in the unit of the times: for query q,
        samples of streams with ``arrivals`` exist if they had arrived up to q + ``lag``.
    dtype
        Dtype of the result, any float: a string, or any library's dtype. None: the narrowest float
        that can hold the values of all float streams (float32 for float16 with bfloat16), or
        float32 if no stream is of floats.
    out : array [B,T,D_0 + ... + D_N-1]
        Output array, returned instead of a new one. It must not overlap an input.
    return_valid
        Also return a bool array [B,T,N]: True where the stream's value was interpolated or met
        exactly, in each of its groups of channels.
    check_times
        Verify times, lengths and batch_offsets before anything is written, and warn
        (:class:`RangeWarning`) if no query is in the time range of a stream. None: yes on the CPU;
        no on CUDA, where the check waits for the CUDA stream. Invalid times that are not verified
        give unspecified values.
    backend
        Device to compute on. None: the device of the arrays. "cpu", "cuda" and "cuda:N"
        require the arrays to be there; a :class:`Context` is used directly.

    Returns
    -------
    array [B,T,D_0 + ... + D_N-1], or a tuple of it and ``valid``
        From the library of the first stream's values, on its device. On CUDA the work is enqueued
        on that library's current stream.

    Raises
    ------
    ValueError
        A value, a shape or a device is invalid. The message begins with the argument's name, such
        as "streams[2].values: ...".
    TypeError
        A dtype is not supported, or an argument is not an array or not a :class:`Stream`.
    MemoryError
        Not enough memory.
    RoboCacheError
        The device is not available, or a CUDA error occurred.

    Examples
    --------
    A camera's features at 30 Hz, an arm's joints at 100 Hz with a clock that is 20 ms behind, and a
    gripper's switch, all resampled at 50 Hz:

    >>> import numpy as np
    >>> import robocache as rbc
    >>> camera = rbc.Stream(np.ones((30, 512), np.float16), np.arange(30) / 30, max_gap=0.1)
    >>> arm = rbc.Stream(np.ones((100, 7), np.float32), np.arange(100) / 100, clock_offset=0.02)
    >>> closed = np.array([[0], [1]], np.uint8)
    >>> gripper = rbc.Stream(closed, np.array([0.0, 0.5]), method="previous")
    >>> clock = np.arange(50) / 50
    >>> features, valid = rbc.fuse([camera, arm, gripper], clock, return_valid=True)
    >>> features.shape, features.dtype.name, valid.sum(axis=0).tolist()
    ((50, 520), 'float32', [49, 49, 26])
    """
    requested_times = query_times
    try:
        native, bits, channels = _native(streams)
        values, times, options = native[0][1:4]
        if bits & HAS_UNIT:
            query_times = _queries(streams, query_times)
        framework, context, ordered, query_times = begin(
            values, "streams[0].values", backend, times, query_times
        )
        checked = context._device_id == CPU if check_times is None else check_times
        params = _CHECKED if checked else _UNCHECKED
        if type(lag) is not int or lag != 0:
            first: Any = streams[0]
            params = _with_lag(lag, times, first._unit, checked)
        if query_lengths is not None:
            query_lengths = array_of(framework, query_lengths, "query_lengths", values)

        shape: tuple[int, ...] = ()
        if out is None or return_valid:
            shape = out_shape(values, query_times, options[BATCH_OFFSETS], context)[:-1]
        owner = None
        if out is None:
            if dtype is None:
                name = FLOAT_OF_BITS.get(bits & ~HAS_UNIT, "float32")
            else:
                name = dtype_name(dtype)
            result = framework.empty(values, (*shape, channels), name, context)
        else:
            owner = writable(out, "out", dtype)
            result = out
        valid = None
        if return_valid:
            valid = framework.empty(values, (*shape, len(native)), "bool", context)

        range_flags = _core.rbc_fuse(
            context._handle, native, query_times, result, valid, (params, query_lengths)
        )
        if range_flags is not None:
            if checked:
                warn_of(range_flags)
        elif check_times and context._device_id != CPU:
            _check_ranges(native, query_times, query_lengths)
        if ordered and owner is None and valid is None and not framework.converts:
            return result  # as finished does, without the call
        return finished(framework, context, ordered, "values", owner, result, valid)
    except (TypeError, ValueError) as error:
        again = _of_samples(streams, requested_times) or streams_again(streams, requested_times)
        if again is None:
            raise with_python_names(error, is_new=out is None) from error.__cause__
    streams, query_times = again
    call: Any = fuse
    return call(
        streams,
        query_times,
        query_lengths=query_lengths,
        lag=lag,
        dtype=dtype,
        out=out,
        return_valid=return_valid,
        check_times=check_times,
        backend=backend,
    )


def _with_lag(lag: Any, times: Any, unit: Any, checked: bool) -> Any:
    """Return a new rbcFuseParams. The extension copies it."""
    (lag,) = ticks_or_numbers(unit, lag=lag)
    offset, ticks = offsets_of(lag, "lag", times)
    params = _new()
    _set_flags(params, _core.FLAG_CHECK_TIMES if checked else 0)
    _set_lag(params, offset)
    _set_lag_ticks(params, ticks)
    return params


def _queries(streams: Any, query_times: Any) -> Any:
    """Return the query times in the unit that all streams have."""
    first = streams[0]
    for n, stream in enumerate(streams):
        require_one_unit(stream._unit, f"streams[{n}].times", first._unit, "streams[0].times")
    return queries_of(query_times, first._native[2], first._unit, "streams[0].times")


def _check_ranges(native: Any, query_times: Any, query_lengths: Any) -> None:
    """Warn about the ranges of times on a GPU: by a call on the CPU without channels."""
    import numpy as np

    hosted = []
    for stream, values, times, options, *_ in native:
        lengths = on_host(options[LENGTHS], "lengths")
        batch_offsets = on_host(options[BATCH_OFFSETS], "batch_offsets")
        plain = (UNCHECKED[0], lengths, None, batch_offsets, None, None, None, None, None)
        empty = np.empty((*values.shape[:-1], 0))
        own = (stream, empty, on_host(times, "times"), plain, 0, 0)
        hosted.append(SimpleNamespace(_native=own, _unit=None))
    queries = on_host(query_times, "query_times")
    call: Any = fuse
    call(hosted, queries, query_lengths=on_host(query_lengths, "query_lengths"))


def _native(streams: Any) -> tuple[list[Any], int, int]:
    """Return the streams as the extension takes them, their float bits and their channels.

    The bits stand for the narrowest float dtype that holds all float streams.
    """
    native = []
    bits = channels = 0
    try:
        for stream in streams:
            arguments = stream._native
            native.append(arguments)
            bits |= arguments[-2]
            channels += arguments[-1]
    except (AttributeError, TypeError):
        native = []
        if isinstance(streams, Stream) or not isinstance(streams, Sequence):
            raise TypeError(
                f"streams: is {kind_of(streams)}, expected a list of robocache.Stream"
            ) from None
        for n, stream in enumerate(streams):
            if not isinstance(stream, Stream):
                raise TypeError(
                    f"streams[{n}]: is {kind_of(stream)}, expected a robocache.Stream"
                ) from None
    if not 1 <= len(native) <= _MOST_STREAMS:
        raise ValueError(f"streams: got {len(native)}, expected 1 to {_MOST_STREAMS}")
    return native, bits, channels


def _of_samples(streams: Any, query_times: Any) -> tuple[Any, Any] | None:
    """Return streams and query times if some streams are recorded streams or tracks."""
    if not isinstance(streams, Sequence):
        return None
    held = [samples_of(stream) for stream in streams]
    if all(samples is None for samples in held):
        return None
    made, queries = [], query_times
    for stream, samples in zip(streams, held):
        if samples is not None:
            times, arrivals, queries = matched(samples, query_times)
            stream = Stream(
                samples.values, times, batch_offsets=samples.batch_offsets, arrivals=arrivals
            )
        made.append(stream)
    return made, queries
