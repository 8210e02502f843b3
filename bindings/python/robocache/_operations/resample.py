"""Resampling of trajectories at their own timestamps onto query times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

from .. import _core
from .._arguments.affine import inverse_of, mean_of
from .._arguments.call import array_of, begin, finished, joined, writable
from .._arguments.coerce import refuse_mapped, taken_again
from .._arguments.frameworks import facts_of
from .._arguments.missing import is_masked, mask_of, taken_apart
from .._arguments.options import ZERO
from .._arguments.resample_params import CHECKED, HOLD, LINEAR, UNCHECKED, rules
from .._arguments.shapes import out_shape
from .._arguments.to_numpy import on_host
from .._library.context import CPU, Context
from .._library.dtypes import NAME_OF_PAIR, dtype_name, refuse_dtype
from .._library.errors import as_given
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

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from .._typing import CallOptions, StreamOptions, UntypedCallOptions

    class _Options(StreamOptions, CallOptions, total=False):
        pass

    class _UntypedOptions(StreamOptions, UntypedCallOptions, total=False):
        pass


# With a dtype what NumPy's arrays hold is another than that of values.
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
def resample(
    values: SupportsDLPack | Table,
    times: Times,
    query_times: Times,
    *,
    method: Method = "linear",
    lengths: Indices | None = None,
    query_lengths: Indices | None = None,
    batch_offsets: Indices | None = None,
    sample_mask: SampleMask | None = None,
    missing: Missing | None = None,
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

    Arrays may be of any library with ``__dlpack__`` and have any strides; none is copied. For one
    trajectory leave B out everywhere.

    Parameters
    ----------
    values : array [B,S,D]; [S,D] without batch; [N,D] packed, with ``batch_offsets``
        float16, bfloat16, float32 or float64; for nearest, previous and next integers and bool too.
        A DataFrame, a Series (one channel) or a list of lists becomes an array of NumPy.
    times : array [B,S], or [S] shared by the batch; [N] packed
        float32, float64 or int64 (any tick, such as nanoseconds since the epoch), ascending in each
        row. Of equal times the last counts. datetime64, timedelta64, Series of pandas, polars and
        pyarrow, and lists of dates are int64 ticks of their unit.
    query_times : array or list [B,T], or [T] shared by the batch
        The dtype and the unit of ``times``, in any order. [B,T] beside values [S,D] are B clocks
        for one recording, which is not copied, but by JAX.
    method
        Of all channels: "linear", "nearest" (a tie goes to the earlier sample), "previous"
        (zero-order hold), "next", "cubic" (Catmull-Rom at the samples' own times), "pchip"
        (monotone: no overshoot), "slerp" (runs of 4 channels are quaternions, in any order of
        components; where one that is zero or not finite counts, there is no value) or "angle"
        (radians from -pi to pi, by the shorter way round). Angles with another unit or range are
        "angle_deg" [-180, 180), "angle_turn" [-0.5, 0.5), "angle_positive" [0, 2 pi),
        "angle_deg_positive" [0, 360) and "angle_turn_positive" [0, 1). Or of groups of channels,
        which together are all of them: ``[(begin, count, name), ...]``.
    lengths : array or list [B] of int32 or int64
        How many samples of each padded row are valid; None: all.
    query_lengths : array or list [B] of int32 or int64
        How many queries of each row are valid; None: all.
    batch_offsets : array or list [B+1] of int32 or int64
        Where each trajectory begins in packed ``values`` and ``times``, and where the last ends.
    sample_mask : array or list [B,S], or [S] shared by the batch; [N] packed
        bool or uint8: where it is False a sample is missing, as if it were not there. Its time must
        ascend with the others all the same. None: none is.
    missing
        "nan": samples of which a channel is NaN are missing too. None: NaN propagates. Samples of a
        masked array of NumPy of which a channel is masked always are.
    outside
        What queries outside a trajectory's first and last time get: "hold" the edge sample, "fill"
        ``fill_value``, "extrapolate" (linear alone) the line through the two outermost distinct
        times. ``valid`` is False in each case.
    fill_value
        Written where there is no value.
    max_gap
        There is no value where the two samples around a query lie further apart than this: in the
        unit of the times. Beside int64 times whole ticks; where they have a unit also timedelta64,
        ``pd.Timedelta`` or ``datetime.timedelta``.
    tolerance
        For nearest, previous and next: a value wherever the sample lies within this of the query,
        inside the trajectory or not, and none elsewhere. As ``max_gap``.
    mean, std : array or list [D] of float32 or float64
        The result is ``(value - mean) / std``, channel by channel, but for ``fill_value``. Computed
        as a product with 1 / std, which is taken in float64 of lists and NumPy's arrays, and else
        as the array's library divides. A std of 0 is refused; on CUDA it is not looked for and
        gives inf or NaN.
    dtype
        Of the result: a string, or any library's dtype. None: as ``values``, integers too. Any
        float, and for integers and bool also their own.
    out : array [B,T,D]
        Written and returned, in place of a new array. It must not overlap an input.
    return_valid
        Also return a bool array [B,T]: True where a value was interpolated or met exactly.
    check_times
        Verify ``times``, ``lengths`` and ``batch_offsets`` before anything is written. None: yes
        on the CPU, no on CUDA, where it waits for the stream. Bad times, unverified, give
        unspecified values. It also warns (:class:`RangeWarning`) where no query lies in its
        samples' range.
    backend
        None: where the arrays are. "cpu", "cuda" or "cuda:N" insist on that; a :class:`Context` is
        used as it is.

    Returns
    -------
    array [B,T,D], or a tuple of it and ``valid``
        In the library of ``values``, on its device. On CUDA the work is enqueued on that library's
        current stream.

    Raises
    ------
    ValueError
        A value, a shape or a device does not fit. The message begins with the argument's name.
    TypeError
        A dtype or a unit does not fit, or an argument is no array.
    MemoryError
        Memory gave out.
    RoboCacheError
        The rest: no such device, CUDA errors.

    Examples
    --------
    The joints of an arm, 100 Hz, at the 30 Hz of a camera; holes of more than 50 ms are masked:

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
    """
    asked = query_times
    try:
        framework, context, ordered, query_times = begin(
            values, "values", backend, times, query_times
        )
        checked = context._device_id == CPU if check_times is None else check_times
        if (  # as in rules, without the call
            method is LINEAR
            and outside is HOLD
            and fill_value is ZERO
            and max_gap is None
            and tolerance is None
        ):
            params, groups = CHECKED if checked else UNCHECKED
        else:
            params, groups = rules(
                method, outside, fill_value, max_gap, tolerance, checked, times, values
            )
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

        options = (params, lengths, sample_mask, batch_offsets, query_lengths, mean, std, groups)
        try:
            told = _core.rbc_resample(
                context._handle, values, times, query_times, result, valid, options
            )
        except TypeError:
            if out is None and dtype is None:  # the dtype of out is that of values
                if facts_of(values, "values", context)[2:4] not in NAME_OF_PAIR:
                    refuse_dtype(values, "values")
            raise
        if told is not None:
            if checked:
                warn_of(told)
        elif check_times and context._device_id != CPU:
            _look_at_ranges(
                values, times, query_times, lengths, query_lengths, batch_offsets, tolerance
            )
        if ordered and owner is None and valid is None and not framework.converts:
            return result  # as in finished, without the call
        return finished(framework, context, ordered, "values", owner, result, valid)
    except (TypeError, ValueError) as error:
        refuse_mapped(values=values, times=times, query_times=asked)
        if is_masked(values):
            values, sample_mask = taken_apart(values, sample_mask)
            again: Any = (values, times, asked, max_gap, tolerance)
        else:
            again = taken_again(values, times, asked, batch_offsets, max_gap, tolerance)
        if again is None:
            raise as_given(error) from error.__cause__
    values, times, query_times, max_gap, tolerance = again
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
        outside=outside,
        fill_value=fill_value,
        max_gap=max_gap,
        tolerance=tolerance,
        mean=mean,
        std=std,
        dtype=dtype,
        out=out,
        return_valid=return_valid,
        check_times=check_times,
        backend=backend,
    )


def _look_at_ranges(
    values: Any,
    times: Any,
    query_times: Any,
    lengths: Any,
    query_lengths: Any,
    batch_offsets: Any,
    tolerance: Any,
) -> None:
    """Warn of times on a GPU as of others: by a call on the CPU of no channels."""
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
