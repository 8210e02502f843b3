"""Cutting of training samples out of episodes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from .. import _core
from .._arguments.arrays import SEQUENCES, dtype_of, framework_of, shape_of
from .._arguments.call import array_of, begin, finished, writable
from .._arguments.coerce import ticks_or_numbers
from .._arguments.frameworks import Framework
from .._arguments.options import struct_of
from .._arguments.time_units import require_one_unit
from .._arguments.times import times_of
from .._library.context import Context
from .._library.dtypes import dtype_name
from .._library.errors import REFUSALS, shown, with_python_names
from .._operations.stream import offsets_of
from .._printable import kind_of
from .._typing import Array, Duration, Indices, SupportsDLPack, Times
from .stream_arguments import TRANSFORMS, Opened
from .transform import packed
from .window_stream import WindowStream

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Output = SupportsDLPack | tuple[SupportsDLPack | None, SupportsDLPack | None] | None

_MOST_STREAMS = _core.WINDOWS_MAX_STREAMS
_new, _set_flags, _set_anchor_stream, _set_lag, _set_lag_ticks = struct_of(
    "WindowsParams", "flags", "anchor_stream_index", "lag", "lag_ticks"
)


@overload
def windows(
    streams: Sequence[WindowStream[NDArray[Any]]],
    episodes: Indices,
    anchors: Times,
    *,
    anchor_stream: int = ...,
    anchor_times: bool = ...,
    lag: Duration = ...,
    dtype: Any = ...,
    out: Sequence[Output] | None = ...,
    check_times: bool = ...,
    backend: str | Context | None = ...,
) -> list[tuple[NDArray[Any], NDArray[np.bool_]]]: ...
@overload
def windows(
    streams: Sequence[WindowStream[Array]],
    episodes: Indices,
    anchors: Times,
    *,
    anchor_stream: int = ...,
    anchor_times: bool = ...,
    lag: Duration = ...,
    dtype: Any = ...,
    out: Sequence[Output] | None = ...,
    check_times: bool = ...,
    backend: str | Context | None = ...,
) -> list[tuple[Array, Array]]: ...
def windows(
    streams: Any,
    episodes: Any,
    anchors: Any,
    *,
    anchor_stream: int = 0,
    anchor_times: bool = False,
    lag: Duration = 0,
    dtype: Any = None,
    out: Any = None,
    check_times: bool = False,
    backend: str | Context | None = None,
) -> Any:
    """Cut B training samples out of episodes: the rows of each stream around an anchor.

    For example, the last two states and the next fifty actions, relative to the current state and
    normalized. Streams may have different rates: if an anchor is a row of one stream, the others
    start at their last row that is not later. On CUDA a call is always one launch.

    Parameters
    ----------
    streams
        1 to 16 :class:`WindowStream` objects with the same number of episodes.
    episodes : array or list [B] of int32 or int64
        The episode of each sample.
    anchors : array or list [B]
        The anchor row of each sample, counted from the begin of its episode: int64. It may be
        outside of the episode.
    anchor_stream
        The stream to which the anchor rows belong.
    anchor_times
        ``anchors`` are times, in the dtype and unit of the streams' times; every stream must have
        times.
    lag
        How long after its time a window is computed, in the unit of the times: see ``arrivals`` of
        :class:`WindowStream`.
    dtype
        Dtype of all float results, instead of their own: a string, or any library's dtype.
    out
        For each stream: None, an output array [B,O,D'], or a tuple of that and an array [B,O] of
        bool for ``valid``.
    check_times
        Verify first that times ascend within the episodes. On CUDA, also verify ``episodes`` and
        ``episode_offsets``, and wait for the CUDA stream; the CPU always verifies these. Invalid
        input that is not verified gives unspecified values.
    backend
        Device to compute on. None: the device of the arrays. "cpu", "cuda" and "cuda:N"
        require the arrays to be there; a :class:`Context` is used directly.

    Returns
    -------
    list of tuples
        For each stream, values [B,O,D'] and ``valid`` [B,O] of bool: True where a row is inside
        its episode and not missing, or where the interpolated value is valid. It is the opposite of
        LeRobot's ``is_pad``. A stream without values gives row numbers, int64 [B,O]. A stream with
        ``output=False`` gives (None, None). The arrays are from the library of the streams' values,
        on their device. On CUDA the work is enqueued on that library's current stream.

    Raises
    ------
    ValueError
        A value, a shape or a device is invalid. The message begins with the argument's name, such
        as "streams[2].offsets: ...".
    TypeError
        A dtype is not supported, or an argument is not an array or not a :class:`WindowStream`.
    MemoryError
        Not enough memory.
    RoboCacheError
        The device is not available, or a CUDA error occurred.

    Examples
    --------
    Two episodes of 4 and 3 rows: the previous and the current state, and three actions relative to
    the current state:

    >>> import numpy as np
    >>> import robocache as rbc
    >>> state = np.arange(7.0)[:, None]
    >>> now = rbc.Transform("subtract", 0, 1, reference=(0, -1))
    >>> streams = [
    ...     rbc.WindowStream(state, [-1, 0], episode_offsets=[0, 4, 7]),
    ...     rbc.WindowStream(state + 0.5, range(3), episode_offsets=[0, 4, 7], transforms=[now]),
    ... ]
    >>> (states, _), (actions, valid) = rbc.windows(streams, episodes=[0, 1], anchors=[0, 1])
    >>> states[..., 0].tolist()
    [[0.0, 0.0], [4.0, 5.0]]
    >>> actions[..., 0].tolist(), valid.tolist()
    ([[0.5, 1.5, 2.5], [0.5, 1.5, 1.5]], [[True, True, True], [True, True, False]])
    """
    opened = _opened(streams)
    first = opened[0]
    if backend is None:
        for stream in opened:
            if stream.accumulator is not None:
                backend = stream.accumulator._context
    name = "streams[0].values" if first.operands[1] is not None else "streams[0].episode_offsets"
    framework, context, ordered, _ = begin(first.base, name, backend)
    episodes = array_of(framework, episodes, "episodes", first.base)
    anchors = _anchors(framework, anchors, opened, anchor_times)

    batch = shape_of(episodes, "episodes", context)[:1]
    results: list[Any] = []
    owners: list[Any] = []
    native = []
    written = []
    outputs = _outputs(out, len(opened))
    for n, stream in enumerate(opened):
        operands = list(stream.operands)
        operands[TRANSFORMS] = packed(resolved(n, opened))
        if stream.writes:
            values, valid = outputs[n]
            if values is None:
                channels = () if stream.out_channels is None else (stream.out_channels,)
                shape = (*batch, stream.num_offsets, *channels)
                values = framework.empty(first.base, shape, result_dtype(stream, dtype), context)
                owners.append(None)
            else:
                owners.append(writable(values, f"out[{n}]", stream.requested_dtype or dtype))
            if valid is None:
                shape = (*batch, stream.num_offsets)
                valid = framework.empty(first.base, shape, "bool", context)
                owners.append(None)
            else:
                owners.append(writable(valid, f"out[{n}][1]"))
            results += [values, valid]
        native.append(tuple(operands))
        written.append((stream.outputs, *((values, valid) if stream.writes else (None, None))))

    params = _new()
    flags = _core.FLAG_CHECK_TIMES if check_times else 0
    _set_flags(params, flags | (_core.WINDOWS_FLAG_ANCHOR_TIMES if anchor_times else 0))
    _set_anchor_stream(params, _number(anchor_stream, len(opened)))
    if type(lag) is not int or lag != 0:
        timed = [stream for stream in opened if stream.times is not None]
        if not timed:
            raise ValueError("lag: only valid for streams with times")
        (own,) = ticks_or_numbers(timed[0].unit, lag=lag)
        offset, ticks = offsets_of(own, "lag", timed[0].times)
        _set_lag(params, offset)
        _set_lag_ticks(params, ticks)
    try:
        _core.rbc_windows(context._handle, native, episodes, anchors, written, params)
    except (TypeError, ValueError) as error:
        raise with_python_names(error) from error.__cause__

    fresh = tuple(each for each, owner in zip(results, owners) if owner is None)
    converted = iter(finished(framework, context, ordered, name, None, fresh))
    for i, owner in enumerate(owners):
        if owner is None:
            results[i] = next(converted)
        else:
            owner.written(results[i])
    pairs = iter(zip(results[::2], results[1::2]))
    return [next(pairs) if stream.writes else (None, None) for stream in opened]


def _opened(streams: Any) -> list[Opened]:
    if isinstance(streams, WindowStream) or not isinstance(streams, Sequence):
        raise TypeError(
            f"streams: is {kind_of(streams)}, expected a list of robocache.WindowStream"
        )
    for n, stream in enumerate(streams):
        if not isinstance(stream, WindowStream):
            raise TypeError(
                f"streams[{n}]: is {kind_of(stream)}, expected a robocache.WindowStream"
            )
        stream._require_plain(f"streams[{n}].values")
    if not 1 <= len(streams) <= _MOST_STREAMS:
        raise ValueError(f"streams: got {len(streams)}, expected 1 to {_MOST_STREAMS}")
    opened: list[Opened] = [stream._opened for stream in streams]
    timed = [(n, stream) for n, stream in enumerate(opened) if stream.times is not None]
    for n, stream in timed:
        require_one_unit(
            stream.unit, f"streams[{n}].times", timed[0][1].unit, f"streams[{timed[0][0]}].times"
        )
    return opened


def _anchors(framework: Framework, anchors: Any, opened: list[Opened], are_times: bool) -> Any:
    base = opened[0].base
    if not are_times:
        if type(anchors) not in SEQUENCES and hasattr(anchors, "__dlpack__"):
            framework_of(anchors, "anchors").examine(anchors, "anchors")
            kind = dtype_of(anchors, "anchors")
            if kind.startswith("float"):
                raise TypeError(
                    f"anchors: dtype is {kind}, expected rows of int64; "
                    "pass anchor_times=True if they are times"
                )
        return array_of(framework, anchors, "anchors", base)
    return anchor_array(base, anchors, opened)


def anchor_array(base: Any, anchors: Any, opened: list[Opened]) -> Any:
    """Return anchors that are times as an array on the device of ``base``."""
    ticks, unit = times_of(anchors, "anchors")
    for n, stream in enumerate(opened):
        if stream.times is None:
            raise ValueError(f"streams[{n}].times: required in every stream when anchors are times")
    require_one_unit(unit, "anchors", opened[0].unit, "streams[0].times")
    kind = dtype_of(opened[0].times, "times")
    return array_of(framework_of(base, "values"), ticks, "anchors", base, kind)


def resolved(n: int, opened: list[Opened]) -> Any:
    """Return the transforms of a stream, with references by indices that exist."""
    transforms = []
    for i, each in enumerate(opened[n].transforms):
        stream, offset = each.reference
        within = f"streams[{n}].transforms[{i}].reference"
        if isinstance(stream, str):
            raise TypeError(
                f"{within}: is {each.reference}, expected the index of a stream; "
                "only a robocache.WindowSpec has names"
            )
        if not 0 <= stream < len(opened):
            raise ValueError(f"{within}: is stream {stream}, expected 0 to {len(opened) - 1}")
        count = opened[stream].num_offsets
        if not -count <= offset < count:
            raise ValueError(
                f"{within}: is offset {offset} of stream {stream}, which has {count} offsets"
            )
        transforms.append(each._with_reference(stream, offset % count))
    return transforms


def _outputs(out: Any, count: int) -> list[tuple[Any, Any]]:
    if out is None:
        return [(None, None)] * count
    if not isinstance(out, Sequence) or len(out) != count:
        raise ValueError(
            f"out: is {shown(out) if not isinstance(out, Sequence) else f'a list of {len(out)}'}, "
            f"expected a list of {count} (one per stream)"
        )
    pairs = []
    for n, each in enumerate(out):
        if isinstance(each, tuple):
            if len(each) != 2:
                raise ValueError(f"out[{n}]: has {len(each)} arrays, expected values and valid")
            pairs.append(each)
        else:
            pairs.append((each, None))
    return pairs


def result_dtype(stream: Opened, dtype: Any) -> str:
    """Return the dtype of a result: from the stream, from the call, or else from the values."""
    if stream.out_channels is None:
        return "int64"
    if stream.requested_dtype is not None:
        return stream.requested_dtype
    if dtype is None or "float" not in stream.dtype:
        return stream.dtype
    return dtype_name(dtype)


def _number(value: Any, count: int) -> int:
    try:
        whole = operator.index(value)
    except REFUSALS:
        raise TypeError(f"anchor_stream: is {shown(value)}, expected an int") from None
    if not 0 <= whole < count:
        raise ValueError(f"anchor_stream: is {whole}, expected 0 to {count - 1}")
    return whole
