"""What the operations take in common: the types, and how they become structs of the C headers."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, Union

from . import _core
from ._context import CPU
from ._errors import REFUSALS, blamed, shown
from ._frameworks import SEQUENCES, Framework, dtype_of, examine, framework_of

if TYPE_CHECKING:
    from typing_extensions import TypedDict

    from ._context import Context


class SupportsDLPack(Protocol):
    """An array of NumPy, torch, CuPy, JAX or any other library with DLPack."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


Array = TypeVar("Array", bound=SupportsDLPack)
Out = TypeVar("Out", bound=SupportsDLPack)
Numbers = Union[SupportsDLPack, Sequence[float]]
Indices = Union[SupportsDLPack, Sequence[int]]
MethodName = Literal["linear", "nearest", "previous", "next", "cubic", "pchip", "slerp", "angle"]
Method = Union[MethodName, Sequence[tuple[int, int, MethodName]]]
Bounds = Literal["hold", "fill", "extrapolate"]

if TYPE_CHECKING:

    class StreamOptions(TypedDict, total=False):
        method: Method
        lengths: Indices | None
        offsets: Indices | None
        bounds: Bounds
        fill_value: float
        max_gap: float | None
        tolerance: float | None
        mean: Numbers | None
        std: Numbers | None

    class CallOptions(TypedDict, total=False):
        query_lengths: Indices | None
        dtype: Any
        check_times: bool | None
        backend: str | Context | None


METHODS = {
    "linear": _core.METHOD_LINEAR,
    "nearest": _core.METHOD_NEAREST,
    "previous": _core.METHOD_PREVIOUS,
    "next": _core.METHOD_NEXT,
    "cubic": _core.METHOD_CUBIC,
    "pchip": _core.METHOD_PCHIP,
    "slerp": _core.METHOD_SLERP,
    "angle": _core.METHOD_ANGLE,
}
BOUNDS = {
    "hold": _core.BOUNDS_HOLD,
    "fill": _core.BOUNDS_FILL,
    "extrapolate": _core.BOUNDS_EXTRAPOLATE,
}
ZERO = 0.0
_LINEAR = "linear"
_HOLD = "hold"

_GROUP = struct.Struct("qqii")  # rbcChannelGroup

# What is behind the properties of _abi.ResampleParams, at a tenth of the cost.
_set_flags = _core.ResampleParams_flags_set
_set_method = _core.ResampleParams_method_set
_set_bounds = _core.ResampleParams_bounds_set
_set_fill_value = _core.ResampleParams_fill_value_set
_set_max_gap = _core.ResampleParams_max_gap_set
_set_tolerance = _core.ResampleParams_tolerance_set


def _new_params(flags: int) -> Any:
    params = _core.new_ResampleParams()
    _set_flags(params, flags)
    return params


# What a call without options takes. The extension copies a struct before it adds to it.
_DEFAULTS = {flags: (_new_params(flags), None) for flags in (0, _core.CHECK_TIMES)}


def rules(
    method: Any,
    bounds: str,
    fill_value: float,
    max_gap: float | None,
    tolerance: float | None,
    flags: int = 0,
) -> tuple[Any, bytes | None]:
    """The struct rbcResampleParams with all its scalars, and the groups that go with it.

    Both are shared with other calls, and only read.
    """
    if (
        method is _LINEAR
        and bounds is _HOLD
        and fill_value is ZERO
        and max_gap is None
        and tolerance is None
    ):
        return _DEFAULTS[flags]
    params = _new_params(flags)
    groups = None
    if isinstance(method, str) or not isinstance(method, Sequence):
        _set_method(params, code_of(METHODS, method, "method"))
    else:
        groups = _packed_groups(method)
    if bounds is not _HOLD:
        _set_bounds(params, code_of(BOUNDS, bounds, "bounds"))
    if fill_value is not ZERO:
        _set_fill_value(params, number(fill_value, "fill_value"))
    if max_gap is not None:
        _set_max_gap(params, number(max_gap, "max_gap"))
    if tolerance is not None:
        _set_tolerance(params, number(tolerance, "tolerance"))
    return params, groups


def _packed_groups(groups: Sequence[Any]) -> bytes:
    if not groups:
        raise ValueError("method: has no groups, expected (begin, count, name) of each")
    packed = []
    for i, group in enumerate(groups):
        try:
            begin, count, name = group
            _GROUP.pack(begin, count, 0, 0)
        except (TypeError, ValueError, struct.error):
            raise TypeError(
                f"method[{i}]: is {shown(group)}, expected (begin, count, name), "
                "such as (3, 4, 'slerp')"
            ) from None
        packed.append(_GROUP.pack(begin, count, code_of(METHODS, name, f"method[{i}]"), 0))
    return b"".join(packed)


def code_of(codes: dict[str, int], name: Any, argument: str) -> int:
    try:
        return codes[name]
    except (KeyError, TypeError):
        expected = ", ".join(map(repr, codes))
        raise ValueError(f"{argument}: is {shown(name)}, expected one of {expected}") from None


def number(given: Any, name: str) -> float:
    try:
        return float(given)
    except OverflowError:
        raise ValueError(
            f"{name}: is {shown(given)}, expected a number that a float64 holds"
        ) from None
    except REFUSALS:
        raise TypeError(f"{name}: is {shown(given)}, expected a number") from None


def indices(framework: Framework, given: Any, name: str, values: Any) -> Any:
    """Lengths or offsets as an array."""
    if type(given) in SEQUENCES:
        return framework.sequence(given, name, "int64", values)
    examine(given, name)
    return given


def queries(framework: Framework, given: Any, times: Any, values: Any) -> Any:
    """Query times as an array of the dtype of ``times``. Both are examined."""
    kind = type(values)
    if type(times) is kind and type(given) is kind:
        framework.examine_times(times, given)
        return given
    examine(times, "times")
    if type(given) in SEQUENCES:
        return framework.sequence(given, "query_times", dtype_of(times, "times"), values)
    examine(given, "query_times")
    return given


# ---- mean and std -------------------------------------------------------------------------------


def mean_of(framework: Framework, mean: Any, values: Any) -> Any:
    """The means as an array."""
    if type(mean) in SEQUENCES:
        return framework.sequence(mean, "mean", "float64", values)
    framework_of(mean, "mean").examine(mean, "mean")
    return mean


def inverse_of(framework: Framework, std: Any, values: Any) -> Any:
    """1 / std as an array: of sequences and of NumPy in float64, else as its library divides."""
    if type(std) in SEQUENCES:
        numbers = Framework.sequence(framework, std, "std", "float64", values)
        _require_no_zero(numbers)
        return framework.sequence(1.0 / numbers, "std", "float64", values)
    own = framework_of(std, "std")
    on_cpu = own.device(std, "std") == CPU
    try:
        return _reciprocal(own, std, on_cpu)
    except REFUSALS as error:
        if str(error).startswith("std: "):
            raise
        raise blamed(error, "std") from error


def _reciprocal(own: Framework, std: Any, on_cpu: bool) -> Any:
    if on_cpu:
        import numpy as np

        _require_no_zero(std)
        if own.is_numpy:
            std = np.asarray(std, np.float64)
    return 1.0 / std


def _require_no_zero(std: Any) -> None:
    import numpy as np

    zeros = np.flatnonzero(np.asarray(std == 0))
    if len(zeros) > 0:
        raise ValueError(
            f"std: channel {zeros[0]} is 0, expected another number; "
            "1 leaves a channel that does not vary as it is"
        )
