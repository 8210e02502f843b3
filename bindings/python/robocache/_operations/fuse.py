"""Fusion of streams with different rates onto one clock."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, overload

from .. import _core
from .._arguments.call import array_of, begin, finished, writable
from .._arguments.coerce import queries_of, streams_again
from .._arguments.options import struct_of
from .._arguments.shapes import out_shape
from .._arguments.time_units import require_one_unit
from .._arguments.to_numpy import on_host
from .._library.context import CPU, Context
from .._library.dtypes import dtype_name
from .._library.errors import as_given
from .._typing import Array, Indices, Out, SupportsDLPack, Times
from .range_warning import warn_of
from .stream import FLOAT_OF_BITS, HAS_UNIT, Stream

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from .._typing import CallOptions, UntypedCallOptions

_MOST_STREAMS = _core.FUSE_MAX_STREAMS


_new, _set_flags = struct_of("FuseParams", "flags")
_UNCHECKED, _CHECKED = _new(), _new()
_set_flags(_CHECKED, _core.FLAG_CHECK_TIMES)


# With a dtype what NumPy's arrays hold is another than that of values.
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
def fuse(
    streams: Sequence[Stream[Any]],
    query_times: Times,
    *,
    query_lengths: Indices | None = None,
    dtype: Any = None,
    out: SupportsDLPack | None = None,
    return_valid: bool = False,
    check_times: bool | None = None,
    backend: str | Context | None = None,
) -> Any:
    """Resample N streams at the same T query times and put their channels side by side.

    Stream n gives what :func:`resample` would, in the channels after those of stream n - 1. Either
    all streams have a batch, of the same B, or none has; then leave B out everywhere. On CUDA it is
    one launch, whatever N is.

    Parameters
    ----------
    streams
        1 to 64 :class:`Stream`. All have the same dtype of times; their values may be of any
        dtypes, rates and numbers of channels.
    query_times : array or list [B,T], or [T] shared by the batch
        The dtype and the unit of the streams' times, in any order. [B,T] beside streams without a
        batch are B clocks for one recording, which is not copied, but by JAX.
    query_lengths : array or list [B] of int32 or int64
        How many queries of each row are valid; None: all.
    dtype
        Of the result, a float: a string, or any library's dtype. None: the narrowest float that
        holds all of the float streams (float16 and bfloat16 together make float32), and float32
        if there are only integers and bool.
    out : array [B,T,D_0 + ... + D_N-1]
        Written and returned, in place of a new array. It must not overlap an input.
    return_valid
        Also return a bool array [B,T,N]: True where the stream's value was interpolated or met
        exactly, in each of its groups of channels.
    check_times
        Verify times, lengths and batch_offsets before anything is written. None: yes on the CPU,
        no on CUDA, where it waits for the stream. Bad times, unverified, give unspecified values.
        It also warns (:class:`RangeWarning`) where no query lies in the range of a stream.
    backend
        None: where the arrays are. "cpu", "cuda" or "cuda:N" insist on that; a :class:`Context` is
        used as it is.

    Returns
    -------
    array [B,T,D_0 + ... + D_N-1], or a tuple of it and ``valid``
        In the library of the first stream's values, on its device. On CUDA the work is enqueued on
        that library's current stream.

    Raises
    ------
    ValueError
        A value, a shape or a device does not fit. The message begins with the argument's name, as
        "streams[2].values: ...".
    TypeError
        A dtype does not fit, or an argument is no array or no stream.
    MemoryError
        Memory gave out.
    RoboCacheError
        The rest: no such device, CUDA errors.

    Examples
    --------
    A camera's features at 30 Hz, an arm's joints at 100 Hz by a clock that is 20 ms behind, and a
    gripper's switch, all at 50 Hz:

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
    asked = query_times
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
        if query_lengths is not None:
            query_lengths = array_of(framework, query_lengths, "query_lengths", values)

        shape: tuple[int, ...] = ()
        if out is None or return_valid:
            shape = out_shape(values, query_times, options[3], context)[:-1]
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

        told = _core.rbc_fuse(
            context._handle, native, query_times, result, valid, (params, query_lengths)
        )
        if told is not None:
            if checked:
                warn_of(told)
        elif check_times and context._device_id != CPU:
            _look_at_ranges(native, query_times, query_lengths)
        if ordered and owner is None and valid is None and not framework.converts:
            return result  # as in finished, without the call
        return finished(framework, context, ordered, "values", owner, result, valid)
    except (TypeError, ValueError) as error:
        again = streams_again(streams, asked)
        if again is None:
            raise as_given(error) from error.__cause__
    streams, query_times = again
    call: Any = fuse
    return call(
        streams,
        query_times,
        query_lengths=query_lengths,
        dtype=dtype,
        out=out,
        return_valid=return_valid,
        check_times=check_times,
        backend=backend,
    )


def _queries(streams: Any, query_times: Any) -> Any:
    """Query times in the unit of every stream."""
    first = streams[0]
    for n, stream in enumerate(streams):
        require_one_unit(stream._unit, f"streams[{n}].times", first._unit, "streams[0].times")
    return queries_of(query_times, first._native[2], first._unit, "streams[0].times")


def _look_at_ranges(native: Any, query_times: Any, query_lengths: Any) -> None:
    """Warn of times on a GPU as of others: by a call on the CPU of no channels."""
    import numpy as np

    from .._arguments.resample_params import UNCHECKED

    hosted = []
    for stream, values, times, options, *_ in native:
        lengths, batch_offsets = (
            on_host(options[1], "lengths"),
            on_host(options[3], "batch_offsets"),
        )
        plain = (UNCHECKED[0], lengths, None, batch_offsets, None, None, None, None)
        empty = np.empty((*values.shape[:-1], 0))
        own = (stream, empty, on_host(times, "times"), plain, 0, 0)
        hosted.append(SimpleNamespace(_native=own, _unit=None))
    queries = on_host(query_times, "query_times")
    call: Any = fuse
    call(hosted, queries, query_lengths=on_host(query_lengths, "query_lengths"))


def _native(streams: Any) -> tuple[list[Any], int, int]:
    """The streams as the extension takes them.

    With the bits of the float dtype that holds those of all float streams, and the sum of their
    channels.
    """
    native = []
    bits = channels = 0
    try:
        for stream in streams:
            taken = stream._native
            native.append(taken)
            bits |= taken[-2]
            channels += taken[-1]
    except (AttributeError, TypeError):
        native = []
        if isinstance(streams, Stream) or not isinstance(streams, Sequence):
            raise TypeError(
                f"streams: is a {type(streams).__name__}, expected a list of robocache.Stream"
            ) from None
        for n, stream in enumerate(streams):
            if not isinstance(stream, Stream):
                raise TypeError(
                    f"streams[{n}]: is a {type(stream).__name__}, expected a robocache.Stream"
                ) from None
    if not 1 <= len(native) <= _MOST_STREAMS:
        raise ValueError(f"streams: are {len(native)}, expected 1 to {_MOST_STREAMS}")
    return native, bits, channels
