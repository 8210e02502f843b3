"""Resampling of trajectories at query times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from .. import _core
from .._arguments.affine import inverse_of, mean_of
from .._arguments.call import array_of, arrivals_like, begin, finished, joined, writable
from .._arguments.coerce import refuse_mapped, taken_again
from .._arguments.frameworks import facts_of
from .._arguments.missing import is_masked, mask_of, taken_apart
from .._arguments.options import ZERO
from .._arguments.resample_params import CHECKED, HOLD, LINEAR, UNCHECKED, rules
from .._arguments.samples import taken_from
from .._arguments.shapes import out_shape
from .._arguments.to_numpy import on_host
from .._library.context import CPU, Context
from .._library.dtypes import NAME_OF_PAIR, dtype_name, refuse_dtype
from .._library.errors import with_python_names
from .._typing import (
    Array,
    Duration,
    Indices,
    Method,
    Missing,
    Numbers,
    Out,
    Outside,
    SampleMask,
    SupportsDLPack,
    Table,
    Times,
)
from .range_warning import warn_of
from .stream import offsets_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from .._episodes.track import Track
    from .._typing import CallOptions, StreamOptions, UntypedCallOptions
    from ..data._recording import RecordedStream

    class _Options(StreamOptions, CallOptions, total=False):
        pass

    class _UntypedOptions(StreamOptions, UntypedCallOptions, total=False):
        pass


# With a dtype, NumPy's arrays of the result have a different dtype than values.
@overload
def resample(
    values: NDArray[Any] | Table,
    times: Times,
    query_times: Times,
    *,
    dtype: Any,
    out: None = ...,
    return_valid: Literal[False] = ...,
    **options: Unpack[_UntypedOptions],
) -> NDArray[Any]: ...
@overload
def resample(
    values: NDArray[Any] | Table,
    times: Times,
    query_times: Times,
    *,
    dtype: Any,
    out: None = ...,
    return_valid: Literal[True],
    **options: Unpack[_UntypedOptions],
) -> tuple[NDArray[Any], NDArray[np.bool_]]: ...
@overload
def resample(
    values: NDArray[Any] | Table,
    times: Times,
    query_times: Times,
    *,
    dtype: Any,
    out: None = ...,
    return_valid: bool,
    **options: Unpack[_UntypedOptions],
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[np.bool_]]: ...
@overload
def resample(
    values: Array,
    times: Times,
    query_times: Times,
    *,
    out: None = ...,
    return_valid: Literal[False] = ...,
    **options: Unpack[_Options],
) -> Array: ...
@overload
def resample(
    values: Array,
    times: Times,
    query_times: Times,
    *,
    out: None = ...,
    return_valid: Literal[True],
    **options: Unpack[_Options],
) -> tuple[Array, Any]: ...
@overload
def resample(
    values: Array,
    times: Times,
    query_times: Times,
    *,
    out: None = ...,
    return_valid: bool,
    **options: Unpack[_Options],
) -> Array | tuple[Array, Any]: ...
@overload
def resample(
    values: Table,
    times: Times,
    query_times: Times,
    *,
    out: None = ...,
    return_valid: Literal[False] = ...,
    **options: Unpack[_Options],
) -> NDArray[Any]: ...
@overload
def resample(
    values: Table,
    times: Times,
    query_times: Times,
    *,
    out: None = ...,
    return_valid: Literal[True],
    **options: Unpack[_Options],
) -> tuple[NDArray[Any], NDArray[np.bool_]]: ...
@overload
def resample(
    values: Table,
    times: Times,
    query_times: Times,
    *,
    out: None = ...,
    return_valid: bool,
    **options: Unpack[_Options],
) -> NDArray[Any] | tuple[NDArray[Any], Any]: ...
@overload
def resample(
    values: SupportsDLPack | Table,
    times: Times,
    query_times: Times,
    *,
    out: Out,
    return_valid: Literal[False] = ...,
    **options: Unpack[_Options],
) -> Out: ...
@overload
def resample(
    values: SupportsDLPack | Table,
    times: Times,
    query_times: Times,
    *,
    out: Out,
    return_valid: Literal[True],
    **options: Unpack[_Options],
) -> tuple[Out, Any]: ...
@overload
def resample(
    values: SupportsDLPack | Table,
    times: Times,
    query_times: Times,
    *,
    out: Out,
    return_valid: bool,
    **options: Unpack[_Options],
) -> Out | tuple[Out, Any]: ...
@overload
def resample(
    values: RecordedStream | Track,
    times: Times,
    query_times: Times | None = None,
    *,
    dtype: Any = ...,
    out: SupportsDLPack | None = ...,
    return_valid: bool = ...,
    **options: Unpack[_UntypedOptions],
) -> Any: ...
@overload
def resample(
    values: RecordedStream | Track,
    *,
    query_times: Times,
    dtype: Any = ...,
    out: SupportsDLPack | None = ...,
    return_valid: bool = ...,
    **options: Unpack[_UntypedOptions],
) -> Any: ...
def resample(
    values: SupportsDLPack | Table | RecordedStream | Track,
    times: Times | None = None,
    query_times: Times | None = None,
    *,
    method: Method = "linear",
    lengths: Indices | None = None,
    query_lengths: Indices | None = None,
    batch_offsets: Indices | None = None,
    sample_mask: SampleMask | None = None,
    missing: Missing | None = None,
    arrivals: Times | None = None,
    lag: Duration = 0,
    causal: bool = False,
    max_age: Duration | None = None,
    outside: Outside = "hold",
    fill_value: float = ZERO,
    max_gap: Duration | None = None,
    tolerance: Duration | None = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    dtype: Any = None,
    out: SupportsDLPack | None = None,
    return_valid: bool = False,
    check_times: bool | None = None,
    backend: str | Context | None = None,
) -> Any:
    """Resample B trajectories of S samples and D channels at T query times each.

    Arrays may come from any library with ``__dlpack__`` and have any strides; none is copied. For
    one trajectory, omit B everywhere.

    Parameters
    ----------
    values : array [B,S,D]; [S,D] without batch; [N,D] packed, with ``batch_offsets``
        float16, bfloat16, float32 or float64; also integers and bool for nearest, previous and
        next. A DataFrame, a Series (one channel) or a list of lists is converted to a NumPy array.
        Or a :class:`robocache.data.RecordedStream` or a :class:`Track`, which have times and
        episodes: ``resample(stream, query_times)``. Query times that are whole numbers are then
        ticks of their unit.
    times : array [B,S], or [S] shared by the batch; [N] packed
        float32, float64 or int64 (in any tick, such as nanoseconds since 1970), ascending in each
        row. Of samples with equal times, the last is used. datetime64, timedelta64, Series of
        pandas, polars and pyarrow, and lists of dates are converted to int64 ticks of their unit.
    query_times : array or list [B,T], or [T] shared by the batch
        The dtype and the unit of ``times``, in any order. [B,T] with values [S,D] stands for B
        clocks of one recording, which is not copied, except by JAX.
    method
        Interpolation of all channels:

        - "linear"
        - "nearest": a tie goes to the earlier sample.
        - "previous" (zero-order hold), "next"
        - "cubic": Catmull-Rom, for samples at any times.
        - "pchip": monotone cubic, without overshoot.
        - "slerp": each 4 channels are a quaternion, with its components in any order. There is no
          value where a quaternion in use is zero or not finite.
        - "angle": radians from -pi to pi, along the shorter arc. For other units and ranges:
          "angle_deg" [-180, 180), "angle_turn" [-0.5, 0.5), "angle_positive" [0, 2 pi),
          "angle_deg_positive" [0, 360), "angle_turn_positive" [0, 1).

        Or one method for each group of channels, ``[(begin, count, name), ...]``; the groups must
        cover all channels.
    lengths : array or list [B] of int32 or int64
        Number of valid samples in each padded row. None: all.
    query_lengths : array or list [B] of int32 or int64
        Number of valid queries in each row. None: all.
    batch_offsets : array or list [B+1] of int32 or int64
        Where each trajectory begins in packed ``values`` and ``times``, and where the last ends.
    sample_mask : array or list [B,S], or [S] shared by the batch; [N] packed
        bool or uint8: False where a sample is missing; it is ignored, but its time must still
        ascend with the others. None: no sample is missing.
    missing
        "nan": samples with a NaN in any channel are missing too. None: NaN propagates. Samples of a
        NumPy masked array with a masked channel are always missing.
    arrivals : array or list [B,S], or [S] shared by the batch; [N] packed
        When each sample had arrived, with the dtype and the unit of ``times``, in any order. For
        query q only samples exist that had arrived up to q + ``lag``; the others are as missing. So
        a row has what a robot sees that computes it at q + ``lag``. NaN: the sample never arrives.
        None: all had arrived.
    lag
        How long after the time of a row it is computed, in the unit of the times.
    causal
        Look back: use the last sample at or before a query, and the next one only if it exists and
        is at most ``max_gap`` after it. Without a next one the last sample is held, also after the
        end. Not for "next", and without ``tolerance``.
    max_age
        With ``causal``: ``valid`` is True if the last sample is at most this much older than the
        query. With ``outside="fill"``, older ones give ``fill_value``. Units as for ``max_gap``.
    outside
        Result of queries before the first or after the last time: "hold" the edge sample, "fill"
        with ``fill_value``, or "extrapolate" (for linear only) along the line through the two
        outermost distinct times. ``valid`` is False in each case.
    fill_value
        Written where there is no value.
    max_gap
        Largest distance in time between the two samples around a query; beyond it there is no
        value. In the unit of the times: whole ticks for int64 times, also timedelta64,
        ``pd.Timedelta`` or ``datetime.timedelta`` if the times have a unit.
    tolerance
        For nearest, previous and next: there is a value where the sample is within this distance
        of the query, inside the trajectory or not, and none elsewhere. Units as for ``max_gap``.
    mean, std : array or list [D] of float32 or float64
        The result is ``(value - mean) / std`` for each channel, except for ``fill_value``. It is
        computed as a product with 1 / std, which is taken in float64 for lists and NumPy arrays,
        and by the array's library otherwise. A std of 0 raises an error; on CUDA it is not checked
        and gives inf or NaN.
    dtype
        Dtype of the result: a string, or any library's dtype. Any float; for integers and bool
        also their own. None: as ``values``, integers included.
    out : array [B,T,D]
        Output array, returned instead of a new one. It must not overlap an input.
    return_valid
        Also return a bool array [B,T]: True where a value was interpolated or met exactly.
    check_times
        Verify ``times``, ``lengths`` and ``batch_offsets`` before anything is written, and warn
        (:class:`RangeWarning`) if no query is in the time range of its samples. None: yes on the
        CPU; no on CUDA, where the check waits for the CUDA stream. Invalid times that are not
        verified give unspecified values.
    backend
        Device to compute on. None: the device of the arrays. "cpu", "cuda" and "cuda:N"
        require the arrays to be there; a :class:`Context` is used directly.

    Returns
    -------
    array [B,T,D], or a tuple of it and ``valid``
        From the library of ``values``, on its device. On CUDA the work is enqueued on that
        library's current stream.

    Raises
    ------
    ValueError
        A value, a shape or a device is invalid. The message begins with the argument's name.
    TypeError
        A dtype or a unit is not supported, or an argument is not an array.
    MemoryError
        Not enough memory.
    RoboCacheError
        The device is not available, or a CUDA error occurred.

    Examples
    --------
    The joints of an arm at 100 Hz, resampled at the 30 Hz of a camera; gaps of more than 50 ms are
    masked:

    >>> import numpy as np
    >>> import robocache as rbc
    >>> times = np.delete(np.arange(200) * 0.01, range(50, 60))
    >>> joints = np.sin(times)[:, None] * np.ones(7)
    >>> frames = np.arange(60) / 30
    >>> aligned, valid = rbc.resample(joints, times, frames, max_gap=0.05, return_valid=True)
    >>> aligned.shape, int(valid.sum())
    ((60, 7), 57)

    A pose: position, quaternion and gripper in one call:

    >>> pose = np.zeros((200 - 10, 8), np.float32)
    >>> pose[:, 3] = 1
    >>> groups = [(0, 3, "linear"), (3, 4, "slerp"), (7, 1, "previous")]
    >>> rbc.resample(pose, times, frames, method=groups).shape
    (60, 8)

    A stream of a recording has its times and their unit:

    >>> from robocache import data
    >>> stamps = {"log": np.arange(3) * 10_000_000}
    >>> arm = data.RecordedStream("arm", "", ("x",), np.eye(3)[:, :1], stamps, "ns")
    >>> rbc.resample(arm, np.array([5, 15], "m8[ms]").astype("m8[ns]")).tolist()
    [[0.5], [0.0]]
    """
    requested_times, requested_arrivals = query_times, arrivals
    try:
        framework, context, ordered, query_times = begin(
            values, "values", backend, times, query_times
        )
        checked = context._device_id == CPU if check_times is None else check_times
        if (  # as rules does, without the call
            method is LINEAR
            and outside is HOLD
            and fill_value is ZERO
            and max_gap is None
            and tolerance is None
            and arrivals is None
            and not causal
            and max_age is None
            and lag == 0
        ):
            params, groups = CHECKED if checked else UNCHECKED
        else:
            params, groups = rules(
                method,
                outside,
                fill_value,
                max_gap,
                tolerance,
                checked,
                times,
                values,
                causal=causal,
                max_age=max_age,
                lag=offsets_of(lag, "lag", times),
            )
            if arrivals is not None:
                arrivals = arrivals_like(framework, arrivals, times, values)
        if lengths is not None:
            lengths = array_of(framework, lengths, "lengths", values)
        if query_lengths is not None:
            query_lengths = array_of(framework, query_lengths, "query_lengths", values)
        if batch_offsets is not None:
            batch_offsets = array_of(framework, batch_offsets, "batch_offsets", values)
        if sample_mask is not None or missing is not None:
            sample_mask = mask_of(framework, values, sample_mask, missing)
        if mean is not None:
            mean = mean_of(framework, mean, values)
        if std is not None:
            std = inverse_of(framework, std, values)
        if context._device_id != CPU and (
            mean is not None or std is not None or missing is not None
        ):
            ordered = joined(context, framework, values) and ordered

        shape: tuple[int, ...] = ()
        if out is None or return_valid:
            shape = out_shape(values, query_times, batch_offsets, context)
        owner = None
        if out is None:
            name = None if dtype is None else dtype_name(dtype)
            result = framework.empty(values, shape, name, context)
        else:
            owner = writable(out, "out", dtype)
            result = out
        valid = framework.empty(values, shape[:-1], "bool", context) if return_valid else None

        options = (
            params,
            lengths,
            sample_mask,
            batch_offsets,
            query_lengths,
            mean,
            std,
            groups,
            arrivals,
        )
        try:
            range_flags = _core.rbc_resample(
                context._handle, values, times, query_times, result, valid, options
            )
        except TypeError:
            if out is None and dtype is None:  # the result has the dtype of values
                if facts_of(values, "values", context)[2:4] not in NAME_OF_PAIR:
                    refuse_dtype(values, "values")
            raise
        if range_flags is not None:
            if checked:
                warn_of(range_flags)
        elif check_times and context._device_id != CPU:
            _check_ranges(
                values, times, query_times, lengths, query_lengths, batch_offsets, tolerance
            )
        if ordered and owner is None and valid is None and not framework.converts:
            return result  # as finished does, without the call
        return finished(framework, context, ordered, "values", owner, result, valid)
    except (TypeError, ValueError) as error:
        refuse_mapped(values=values, times=times, query_times=requested_times)
        durations = {"max_gap": max_gap, "tolerance": tolerance, "max_age": max_age, "lag": lag}
        held = taken_from(values, times, requested_times, batch_offsets, requested_arrivals)
        if held is not None:
            values, times, requested_times, batch_offsets, requested_arrivals = held
            again: Any = (values, times, requested_times, requested_arrivals, durations)
        elif is_masked(values):
            values, sample_mask = taken_apart(values, sample_mask)
            again = (values, times, requested_times, requested_arrivals, durations)
        else:
            again = taken_again(
                values, times, requested_times, requested_arrivals, batch_offsets, durations
            )
        if again is None:
            raise with_python_names(error, is_new=out is None) from error.__cause__
    values, times, query_times, arrivals, durations = again
    call: Any = resample
    return call(
        values,
        times,
        query_times,
        method=method,
        lengths=lengths,
        query_lengths=query_lengths,
        batch_offsets=batch_offsets,
        sample_mask=sample_mask,
        missing=missing,
        arrivals=arrivals,
        causal=causal,
        outside=outside,
        fill_value=fill_value,
        **durations,
        mean=mean,
        std=std,
        dtype=dtype,
        out=out,
        return_valid=return_valid,
        check_times=check_times,
        backend=backend,
    )


def _check_ranges(
    values: Any,
    times: Any,
    query_times: Any,
    lengths: Any,
    query_lengths: Any,
    batch_offsets: Any,
    tolerance: Any,
) -> None:
    """Warn about the ranges of times on a GPU: by a call on the CPU without channels."""
    import numpy as np

    resample(
        np.empty((*values.shape[:-1], 0)),
        on_host(times, "times"),
        on_host(query_times, "query_times"),
        method="linear" if tolerance is None else "nearest",
        lengths=on_host(lengths, "lengths"),
        query_lengths=on_host(query_lengths, "query_lengths"),
        batch_offsets=on_host(batch_offsets, "batch_offsets"),
        tolerance=tolerance,
    )
