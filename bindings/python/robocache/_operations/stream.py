"""One sensor's input to fusion."""

from __future__ import annotations

import dataclasses
import functools
import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, overload

from .. import _core
from .._arguments.affine import inverse_of, mean_of
from .._arguments.arrays import LIBRARY_TYPES, framework_of
from .._arguments.call import array_of, arrivals_like
from .._arguments.coerce import arrivals_of, sampled, ticks_or_numbers
from .._arguments.frameworks import facts_of
from .._arguments.missing import is_masked, mask_of, taken_apart
from .._arguments.options import ZERO
from .._arguments.resample_params import rules
from .._arguments.tables import library_of
from .._arguments.time_units import is_length, no_unit
from .._library.dtypes import DTYPES, dtype_name
from .._library.errors import REFUSALS, shown
from .._printable import kind_of
from .._typing import (
    Array_co,
    Duration,
    Indices,
    Method,
    Missing,
    Numbers,
    Outside,
    SampleMask,
    Table,
    Times,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from typing_extensions import Unpack

    from .._typing import StreamOptions

_NO_OFFSET = _core.new_FuseStream()

# Each float dtype as a set of bits. The union of two sets is the dtype that holds both.
_FLOAT_BITS = {"float16": 0b001, "bfloat16": 0b010, "float32": 0b011, "float64": 0b111}
HAS_UNIT = 0b1000  # another bit, for streams whose times have a unit
FLOAT_OF_BITS = {bits: name for name, bits in _FLOAT_BITS.items()}
_BITS_OF_PAIR = {DTYPES[name]: bits for name, bits in _FLOAT_BITS.items()}


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Stream(Generic[Array_co]):
    """One sensor's samples at its own times, and how :func:`fuse` resamples them.

    A stream keeps references, not copies: the next call sees changes to its arrays, except where
    an argument must be converted, such as a DataFrame. A stream is immutable
    (``dataclasses.replace`` makes a changed copy), and the dtype and the number of channels of
    ``values`` must not change. It may be used in any number of calls and threads.

    Parameters
    ----------
    values : array [B,S,D]; [S,D] without batch; [N,D] packed, with ``batch_offsets``
        float16, bfloat16, float32 or float64; also integers and bool for nearest, previous and
        next. Or a DataFrame, a Series or a list of lists.
    times : array [B,S], or [S] shared by the batch; [N] packed
        float32, float64 or int64, or with a unit, as for :func:`resample`; ascending in each row.
        All streams of a call have the same dtype and unit.
    method, lengths, batch_offsets, sample_mask, missing, arrivals, causal, max_age
    outside, fill_value, max_gap, tolerance, mean, std
        As for :func:`resample`. When the stream is made, lists are converted to arrays, 1 / ``std``
        is computed, and NaN are searched for ``missing``. For trajectories of the batch that a
        stream is absent from, its length is 0.
    clock_offset
        Offset in the unit of ``times``: a sample at t is at t + ``clock_offset`` on the clock of
        the query times. An int of ticks for int64 times, a duration if they have a unit, or else
        any number. Arrivals are on that clock already.

    Raises
    ------
    ValueError
        ``method`` or ``outside`` is unknown, or a ``std`` is 0.
    TypeError
        An argument is not an array, or ``clock_offset`` does not match the dtype of ``times``.

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> rbc.Stream(np.zeros((4, 30, 6), np.float32), np.arange(30.0), method="nearest")
    Stream(values=<float32 [4,30,6]>, times=<float64 [30]>, method='nearest')
    """

    values: Array_co
    times: Times
    method: Method
    lengths: Indices | None
    batch_offsets: Indices | None
    sample_mask: SampleMask | None
    missing: Missing | None
    outside: Outside
    fill_value: float
    max_gap: Duration | None
    tolerance: Duration | None
    mean: Numbers | None
    std: Numbers | None
    clock_offset: Duration
    arrivals: Times | None
    causal: bool
    max_age: Duration | None

    @overload
    def __init__(
        self,
        values: Array_co,
        times: Times,
        *,
        clock_offset: Duration = ...,
        **options: Unpack[StreamOptions],
    ) -> None: ...
    @overload
    def __init__(
        self: Stream[NDArray[Any]],
        values: Table,
        times: Times,
        *,
        clock_offset: Duration = ...,
        **options: Unpack[StreamOptions],
    ) -> None: ...
    def __init__(
        self,
        values: Any,
        times: Any,
        *,
        method: Method = "linear",
        lengths: Indices | None = None,
        batch_offsets: Indices | None = None,
        sample_mask: SampleMask | None = None,
        missing: Missing | None = None,
        outside: Outside = "hold",
        fill_value: float = ZERO,
        max_gap: Duration | None = None,
        tolerance: Duration | None = None,
        mean: Numbers | None = None,
        std: Numbers | None = None,
        clock_offset: Duration = 0,
        arrivals: Times | None = None,
        causal: bool = False,
        max_age: Duration | None = None,
    ) -> None:
        # All at once, without the __setattr__ of frozen dataclasses.
        self.__dict__.update(
            values=values,
            times=times,
            method=method,
            lengths=lengths,
            batch_offsets=batch_offsets,
            sample_mask=sample_mask,
            missing=missing,
            outside=outside,
            fill_value=fill_value,
            max_gap=max_gap,
            tolerance=tolerance,
            mean=mean,
            std=std,
            clock_offset=clock_offset,
            arrivals=arrivals,
            causal=causal,
            max_age=max_age,
        )
        unit = None
        framework = LIBRARY_TYPES.get(type(values))
        if framework is None or type(times) not in LIBRARY_TYPES or not _are_plain(times.dtype):
            if is_masked(values):
                values, sample_mask = taken_apart(values, sample_mask)
            values, times, unit = sampled(values, times)
            max_gap, tolerance, max_age, clock_offset = ticks_or_numbers(
                unit,
                max_gap=max_gap,
                tolerance=tolerance,
                max_age=max_age,
                clock_offset=clock_offset,
            )
            framework = LIBRARY_TYPES.get(type(values)) or framework_of(values, "values")
        if not framework.is_numpy:
            framework.examine(values, "values")
        own = framework if type(times) is type(values) else framework_of(times, "times")
        if not own.is_numpy:
            own.examine(times, "times")
        params, groups = rules(
            method,
            outside,
            fill_value,
            max_gap,
            tolerance,
            False,
            times,
            values,
            causal=causal,
            max_age=max_age,
        )
        if arrivals is not None:
            arrivals = arrivals_like(framework, arrivals_of(arrivals, unit, "times"), times, values)
        if lengths is not None:
            lengths = array_of(framework, lengths, "lengths", values)
        if batch_offsets is not None:
            batch_offsets = array_of(framework, batch_offsets, "batch_offsets", values)
        if sample_mask is not None or missing is not None:
            sample_mask = mask_of(framework, values, sample_mask, missing)
        if mean is not None:
            mean = mean_of(framework, mean, values)
        scale = None if std is None else inverse_of(framework, std, values)
        none = type(clock_offset) in (int, float) and clock_offset == 0
        offsets = (0.0, 0) if none else offsets_of(clock_offset, "clock_offset", times)
        stream = _NO_OFFSET if none else _with_offset(*offsets)
        # The stream as the extension takes it, its float bits and its channels.
        options = (
            params,
            lengths,
            sample_mask,
            batch_offsets,
            None,
            mean,
            scale,
            groups,
            arrivals,
        )
        bits, channels = _bits_and_channels(values)
        if unit is not None:
            bits |= HAS_UNIT
        self.__dict__["_native"] = (stream, values, times, options, bits, channels)
        self.__dict__["_unit"] = unit

    def __repr__(self) -> str:
        parts = []
        for field in dataclasses.fields(self):
            value, default = getattr(self, field.name), _DEFAULTS.get(field.name, ...)
            if type(value) is not type(default) or value != default:
                parts.append(f"{field.name}={array_text(value)}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return _remade, tuple(getattr(self, field.name) for field in dataclasses.fields(self))


_DEFAULTS = dict(Stream.__init__.__kwdefaults__ or {})


def _remade(values: Any, times: Any, *options: Any) -> Stream[Any]:
    return Stream(values, times, **dict(zip(_DEFAULTS, options)))


@functools.lru_cache(maxsize=256)
def _are_plain(dtype: Any) -> bool:
    """Whether times of this dtype need no conversion; the library may still refuse them."""
    name = str(dtype).rpartition(".")[2]
    return name == "int64" or name.startswith(("float", "bfloat"))


def _with_offset(clock_offset: float, ticks: int) -> Any:
    """Return a new rbcFuseStream. The extension copies it."""
    stream = _core.new_FuseStream()
    _core.FuseStream_clock_offset_set(stream, clock_offset)
    _core.FuseStream_clock_offset_ticks_set(stream, ticks)
    return stream


def offsets_of(offset: Any, name: str, times: Any) -> tuple[float, int]:
    """Return an offset for float times, and one in ticks for int64 times; one of them is 0."""
    if type(offset) in (int, float) and offset == 0:
        return 0.0, 0
    code, bits = facts_of(times, "times")[2:4]
    if is_length(offset):
        raise TypeError(no_unit(offset, name))
    if code == _core.DTYPE_INT:
        try:
            ticks = operator.index(offset)
        except REFUSALS:
            raise TypeError(
                f"{name}: is {kind_of(offset)}, expected an int, in ticks of the int{bits} times"
            ) from None
        if not -(2**63) <= ticks < 2**63:
            raise ValueError(f"{name}: is {ticks}, expected ticks in 64 bits")
        return 0.0, ticks
    try:
        if isinstance(offset, str):
            raise TypeError
        return float(offset), 0
    except OverflowError:
        raise ValueError(
            f"{name}: is {shown(offset)}, expected a number that a float64 holds"
        ) from None
    except REFUSALS:
        raise TypeError(
            f"{name}: is {kind_of(offset)}, expected a number in the unit of the float{bits} times"
        ) from None


def _bits_and_channels(values: Any) -> tuple[int, int]:
    """Return the _FLOAT_BITS of the dtype, or 0 if it is not a float, and the last extent, or 0."""
    try:
        if type(values) not in LIBRARY_TYPES:
            raise AttributeError  # a class of the caller may have wrong attributes
        bits, shape = _float_bits(values.dtype), values.shape
    except (AttributeError, RuntimeError):
        facts = facts_of(values, "values")
        bits, shape = _BITS_OF_PAIR.get(facts[2:4], 0), facts[4]
    return bits, shape[-1] if shape else 0


@functools.lru_cache(maxsize=256)
def _float_bits(dtype: Any) -> int:
    """Return the bits of a dtype; 0 if it is not a float, or not supported by the library."""
    try:
        return _FLOAT_BITS.get(dtype_name(dtype), 0)
    except TypeError:
        return 0


def array_text(value: Any) -> str:
    """Return the dtype and the shape of an array as text, or the repr of any other object."""
    table = library_of(value) != "" and not is_length(value)
    if not table and not hasattr(value, "__dlpack__"):
        return repr(value)
    kind = [type(value).__name__] * (table or not hasattr(value, "shape"))
    if hasattr(value, "dtype"):
        kind.append(str(value.dtype).rpartition(".")[2])
    shape = [f"[{','.join(map(str, value.shape))}]"] if hasattr(value, "shape") else []
    return f"<{' '.join(kind + shape)}>"
