"""Resampling of trajectories at their own timestamps onto query times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Protocol,
    TypeVar,
    Union,
    overload,
)

from . import _core
from ._context import CPU, Context, choose
from ._frameworks import dtype_name, framework_of

if TYPE_CHECKING:
    from ._frameworks import Framework


class SupportsDLPack(Protocol):
    """An array of NumPy, torch, CuPy, JAX or any other library with DLPack."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


Array = TypeVar("Array", bound=SupportsDLPack)
Out = TypeVar("Out", bound=SupportsDLPack)
Times = Union[SupportsDLPack, Sequence[float]]
Indices = Union[SupportsDLPack, Sequence[int]]
Method = Literal["linear", "nearest", "previous", "next"]
Bounds = Literal["hold", "fill", "extrapolate"]

_METHODS = {
    "linear": _core.METHOD_LINEAR,
    "nearest": _core.METHOD_NEAREST,
    "previous": _core.METHOD_PREVIOUS,
    "next": _core.METHOD_NEXT,
}
_BOUNDS = {
    "hold": _core.BOUNDS_HOLD,
    "fill": _core.BOUNDS_FILL,
    "extrapolate": _core.BOUNDS_EXTRAPOLATE,
}
_SEQUENCES = frozenset([list, tuple, range])
_ZERO = 0.0

# What is behind the properties of _abi.ResampleParams, at a tenth of the cost.
_set_method = _core.ResampleParams_method_set
_set_bounds = _core.ResampleParams_bounds_set
_set_flags = _core.ResampleParams_flags_set
_set_fill_value = _core.ResampleParams_fill_value_set
_set_max_gap = _core.ResampleParams_max_gap_set
_set_tolerance = _core.ResampleParams_tolerance_set
_set_lengths = _core.ResampleParams_lengths_set
_set_query_lengths = _core.ResampleParams_query_lengths_set
_set_offsets = _core.ResampleParams_offsets_set


if TYPE_CHECKING:
    from typing_extensions import TypedDict, Unpack

    class _Options(TypedDict, total=False):
        method: Method
        lengths: Indices | None
        query_lengths: Indices | None
        offsets: Indices | None
        bounds: Bounds
        fill_value: float
        max_gap: float | None
        tolerance: float | None
        dtype: Any
        check_times: bool | None
        backend: str | Context | None


@overload
def resample(
    values: Array,
    times: SupportsDLPack,
    query_times: Times,
    *,
    out: None = ...,
    return_mask: Literal[False] = ...,
    **options: Unpack[_Options],
) -> Array: ...
@overload
def resample(
    values: Array,
    times: SupportsDLPack,
    query_times: Times,
    *,
    out: None = ...,
    return_mask: Literal[True],
    **options: Unpack[_Options],
) -> tuple[Array, Any]: ...
@overload
def resample(
    values: SupportsDLPack,
    times: SupportsDLPack,
    query_times: Times,
    *,
    out: Out,
    return_mask: Literal[False] = ...,
    **options: Unpack[_Options],
) -> Out: ...
@overload
def resample(
    values: SupportsDLPack,
    times: SupportsDLPack,
    query_times: Times,
    *,
    out: Out,
    return_mask: Literal[True],
    **options: Unpack[_Options],
) -> tuple[Out, Any]: ...
def resample(
    values: Any,
    times: Any,
    query_times: Any,
    *,
    method: str = "linear",
    lengths: Any = None,
    query_lengths: Any = None,
    offsets: Any = None,
    bounds: str = "hold",
    fill_value: float = _ZERO,
    max_gap: float | None = None,
    tolerance: float | None = None,
    dtype: Any = None,
    out: Any = None,
    return_mask: bool = False,
    check_times: bool | None = None,
    backend: str | Context | None = None,
) -> Any:
    """Resample B trajectories of S samples and D channels at T query times each.

    Arrays may be of any library with ``__dlpack__`` and have any strides; none is copied. For one
    trajectory leave B out everywhere. ``max_gap`` and ``tolerance`` are in the unit of the times.

    Parameters
    ----------
    values : array [B,S,D]; [S,D] without batch; [N,D] packed, with ``offsets``
        float16, bfloat16, float32 or float64; for nearest, previous and next integers and bool too.
    times : array [B,S], or [S] shared by the batch; [N] packed
        float32, float64 or int64 (any tick, such as nanoseconds since the epoch), ascending in each
        row. Of equal times the last counts.
    query_times : array or list [B,T], or [T] shared by the batch
        The dtype of ``times``, in any order.
    method
        "linear", "nearest" (a tie goes to the earlier sample), "previous" (zero-order hold) or
        "next".
    lengths : array or list [B] of int32 or int64
        How many samples of each padded row are valid; None: all.
    query_lengths : array or list [B] of int32 or int64
        How many queries of each row are valid; None: all.
    offsets : array or list [B+1] of int32 or int64
        Where each trajectory begins in packed ``values`` and ``times``, and where the last ends.
    bounds
        What queries outside a trajectory's first and last time get: "hold" the edge sample, "fill"
        ``fill_value``, "extrapolate" (linear alone) the line through the two outermost distinct
        times. The mask is False in each case.
    fill_value
        Written where there is no value.
    max_gap
        There is no value where the two samples around a query lie further apart than this.
    tolerance
        For nearest, previous and next: a value wherever the sample lies within this of the query,
        inside the trajectory or not, and none elsewhere.
    dtype
        Of the result, for float ``values``: a string, or any library's dtype. None: as ``values``.
    out : array [B,T,D]
        Written and returned, in place of a new array. It must not overlap an input.
    return_mask
        Also return a bool array [B,T]: True where a value was interpolated or met exactly.
    check_times
        Verify ``times``, ``lengths`` and ``offsets`` before anything is written. None: yes on the
        CPU, no on CUDA, where it waits for the stream. Bad times, unverified, give unspecified
        values.
    backend
        None: where the arrays are. "cpu", "cuda" or "cuda:N" insist on that; a :class:`Context` is
        used as it is.

    Returns
    -------
    array [B,T,D], or a tuple of it and the mask
        In the library of ``values``, on its device. On CUDA the work is enqueued on that library's
        current stream.

    Raises
    ------
    ValueError
        A value, a shape or a device does not fit. The message begins with the argument's name.
    TypeError
        A dtype does not fit, or an argument is no array.
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
    >>> aligned, valid = rbc.resample(joints, times, frames, max_gap=0.05, return_mask=True)
    >>> aligned.shape, int(valid.sum())
    ((60, 7), 57)
    """
    framework = framework_of(values, "values")
    context = choose(backend, framework.device(values))
    ordered = context._follow(framework, values)
    if type(query_times) in _SEQUENCES:
        query_times = framework.sequence(
            query_times, "query_times", dtype_name(times.dtype), values
        )

    if check_times is None:
        check_times = context._device_id == CPU
    params = _core.new_ResampleParams()
    _set_method(params, _code(_METHODS, method, "method"))
    _set_bounds(params, _code(_BOUNDS, bounds, "bounds"))
    _set_flags(params, _core.CHECK_TIMES if check_times else 0)
    if fill_value is not _ZERO:
        _set_fill_value(params, float(fill_value))
    if max_gap is not None:
        _set_max_gap(params, float(max_gap))
    if tolerance is not None:
        _set_tolerance(params, float(tolerance))
    # The params hold plain pointers: these variables keep what they point to through the call.
    if lengths is not None:
        lengths = _indices(framework, lengths, "lengths", values, context)
        _set_lengths(params, lengths)
    if query_lengths is not None:
        query_lengths = _indices(framework, query_lengths, "query_lengths", values, context)
        _set_query_lengths(params, query_lengths)
    if offsets is not None:
        offsets = _indices(framework, offsets, "offsets", values, context)
        _set_offsets(params, offsets)

    mask = None
    result = out
    if out is None or return_mask:
        shape = _out_shape(values, query_times, offsets, context)
        if out is None:
            name = None if dtype is None else dtype_name(dtype)
            result = framework.empty(values, shape, name, context)
        if return_mask:
            mask = framework.empty(values, shape[:-1], "bool", context)
    if out is not None and dtype is not None and dtype_name(dtype) != dtype_name(out.dtype):
        raise TypeError(f"dtype: is {dtype_name(dtype)}, but out is {dtype_name(out.dtype)}")

    _core.rbc_resample(context._handle, values, times, query_times, result, mask, params)
    if not ordered:
        context.synchronize()
    if out is None:
        result = framework.finish(result)
    return (result, framework.finish(mask)) if return_mask else result


def _code(codes: dict[str, int], name: str, argument: str) -> int:
    try:
        return codes[name]
    except (KeyError, TypeError):
        expected = ", ".join(map(repr, codes))
        raise ValueError(f"{argument}: is {name!r}, expected one of {expected}") from None


def _indices(framework: Framework, given: Any, name: str, values: Any, context: Context) -> Any:
    if type(given) in _SEQUENCES:
        given = framework.sequence(given, name, "int64", values)
    return _core.new_Tensor(given, name, context._handle)


def _shape(array: Any, name: str, context: Context) -> Any:
    try:
        return array.shape
    except AttributeError:
        return _core.Tensor_describe(_core.new_Tensor(array, name, context._handle))[4]


def _out_shape(values: Any, query_times: Any, offsets: Any, context: Context) -> tuple[int, ...]:
    """[B,T,D] or [T,D]; anything where the ranks are wrong, of which the library tells."""
    values = _shape(values, "values", context)
    query_times = _shape(query_times, "query_times", context)
    if not 2 <= len(values) <= 3 or len(query_times) == 0:
        return (0,)
    batch = values[:-2]
    if offsets is not None:
        batch = (max(0, sum(_core.Tensor_describe(offsets)[4]) - 1),)
    return (*batch, query_times[-1], values[-1])
