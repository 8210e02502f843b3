"""Fusion of streams with different rates onto one clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _core
from ._context import CPU, Context, choose
from ._frameworks import dtype_name, framework_of
from ._params import Array, Numbers, Out, indices, queries
from ._results import finished, out_shape, require_out
from ._stream import FLOAT_OF_BITS, Stream

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._params import CallOptions

_MOST_STREAMS = _core.FUSE_MAX_STREAMS


def _new_params(flags: int) -> Any:
    params = _core.new_FuseParams()
    _core.FuseParams_flags_set(params, flags)
    return params


# The extension copies a struct before it adds to it.
_UNCHECKED, _CHECKED = _new_params(0), _new_params(_core.CHECK_TIMES)


@overload
def fuse(
    streams: Sequence[Stream[Array]],
    query_times: Numbers,
    *,
    out: None = ...,
    return_mask: Literal[False] = ...,
    **options: Unpack[CallOptions],
) -> Array: ...
@overload
def fuse(
    streams: Sequence[Stream[Array]],
    query_times: Numbers,
    *,
    out: None = ...,
    return_mask: Literal[True],
    **options: Unpack[CallOptions],
) -> tuple[Array, Any]: ...
@overload
def fuse(
    streams: Sequence[Stream[Any]],
    query_times: Numbers,
    *,
    out: Out,
    return_mask: Literal[False] = ...,
    **options: Unpack[CallOptions],
) -> Out: ...
@overload
def fuse(
    streams: Sequence[Stream[Any]],
    query_times: Numbers,
    *,
    out: Out,
    return_mask: Literal[True],
    **options: Unpack[CallOptions],
) -> tuple[Out, Any]: ...
def fuse(
    streams: Any,
    query_times: Any,
    *,
    query_lengths: Any = None,
    dtype: Any = None,
    out: Any = None,
    return_mask: bool = False,
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
        The dtype of the streams' times, in any order.
    query_lengths : array or list [B] of int32 or int64
        How many queries of each row are valid; None: all.
    dtype
        Of the result, a float: a string, or any library's dtype. None: the narrowest float that
        holds all of the float streams (float16 and bfloat16 together make float32), and float32
        if there are only integers and bool.
    out : array [B,T,D_0 + ... + D_N-1]
        Written and returned, in place of a new array. It must not overlap an input.
    return_mask
        Also return a bool array [B,T,N]: True where the stream's value was interpolated or met
        exactly, in each of its groups of channels.
    check_times
        Verify times, lengths and offsets before anything is written. None: yes on the CPU, no on
        CUDA, where it waits for the stream. Bad times, unverified, give unspecified values.
    backend
        None: where the arrays are. "cpu", "cuda" or "cuda:N" insist on that; a :class:`Context` is
        used as it is.

    Returns
    -------
    array [B,T,D_0 + ... + D_N-1], or a tuple of it and the mask
        In the library of the first stream's values, on its device. On CUDA the work is enqueued on
        that library's current stream.

    Raises
    ------
    ValueError
        A value, a shape or a device does not fit. The message begins with the argument's name, as
        "streams[2].values: ...". The reciprocal of a std goes by the name of inv_std.
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
    >>> features, valid = rbc.fuse([camera, arm, gripper], clock, return_mask=True)
    >>> features.shape, features.dtype.name, valid.sum(axis=0).tolist()
    ((50, 520), 'float32', [49, 49, 26])
    """
    native = _native(streams)
    values, times, options = native[0][1:4]
    framework = framework_of(values, "values")
    context = choose(backend, framework.device(values, "streams[0].values"))
    ordered = context._follow(framework, values)
    query_times = queries(framework, query_times, times, values)
    if check_times is None:
        check_times = context._device_id == CPU
    params = _CHECKED if check_times else _UNCHECKED
    if query_lengths is not None:
        query_lengths = indices(framework, query_lengths, "query_lengths", values)

    shape: tuple[int, ...] = ()
    if out is None or return_mask:
        shape = out_shape(values, query_times, options[3], context)[:-1]
    owner = None
    if out is None:
        promoted, channels = _dtype_and_channels(native)
        name = promoted if dtype is None else dtype_name(dtype)
        result = framework.empty(values, (*shape, channels), name, context)
    else:
        owner = require_out(out, dtype)
        result = out
    mask = framework.empty(values, (*shape, len(native)), "bool", context) if return_mask else None

    _core.rbc_fuse(context._handle, native, query_times, result, mask, (params, query_lengths))
    if not ordered:
        context.synchronize()
    return finished(framework, result, owner, mask)


def _native(streams: Any) -> list[Any]:
    """The streams as the extension takes them."""
    try:
        native = [stream._native for stream in streams]
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
    return native


def _dtype_and_channels(native: list[Any]) -> tuple[str, int]:
    """The float dtype that holds those of all float streams, and the sum of their channels."""
    bits = channels = 0
    for stream in native:
        bits |= stream[-2]
        channels += stream[-1]
    return FLOAT_OF_BITS.get(bits, "float32"), channels
