"""The rules of resampling: rbcResampleParams and its groups of channels."""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Sequence
from typing import Any

from .. import _core
from .._library.errors import REFUSALS, shown
from .arrays import shape_of
from .frameworks import facts_of
from .options import ZERO, code_of, number, struct_of
from .time_units import is_length, no_unit, not_whole

METHODS = {
    "linear": _core.METHOD_LINEAR,
    "nearest": _core.METHOD_NEAREST,
    "previous": _core.METHOD_PREVIOUS,
    "next": _core.METHOD_NEXT,
    "cubic": _core.METHOD_CUBIC,
    "pchip": _core.METHOD_PCHIP,
    "slerp": _core.METHOD_SLERP,
    "angle": _core.METHOD_ANGLE,
    "angle_deg": _core.METHOD_ANGLE,
    "angle_turn": _core.METHOD_ANGLE,
    "angle_positive": _core.METHOD_ANGLE,
    "angle_deg_positive": _core.METHOD_ANGLE,
    "angle_turn_positive": _core.METHOD_ANGLE,
}
# Unit and range of angles, for the methods that do not use the default.
PERIODS = {
    "angle_deg": _core.PERIOD_DEGREES,
    "angle_turn": _core.PERIOD_TURNS,
    "angle_positive": _core.PERIOD_RADIANS_POSITIVE,
    "angle_deg_positive": _core.PERIOD_DEGREES_POSITIVE,
    "angle_turn_positive": _core.PERIOD_TURNS_POSITIVE,
}
OUTSIDE = {
    "hold": _core.OUTSIDE_HOLD,
    "fill": _core.OUTSIDE_FILL,
    "extrapolate": _core.OUTSIDE_EXTRAPOLATE,
}
_GROUP = struct.Struct("qqiiIid")  # rbcChannelGroup
(
    _new,
    _set_flags,
    _set_method,
    _set_outside,
    _set_fill_value,
    _set_max_gap,
    _set_tolerance,
    _set_max_age,
    _set_lag,
    _set_lag_ticks,
) = struct_of(
    "ResampleParams",
    "flags",
    "method",
    "outside",
    "fill_value",
    "max_gap",
    "tolerance",
    "max_age",
    "lag",
    "lag_ticks",
)
# The dtype of times that was last found not to be an integer: libraries have one object for each.
_last_float: list[Any] = [object()]
LINEAR, HOLD = "linear", "hold"
# The arguments of a call without options.
UNCHECKED, CHECKED = (_new(), None), (_new(), None)

# Indices of the operands of a call, in the order of rbcResampleParams.
LENGTHS, BATCH_OFFSETS = 1, 3
_set_flags(CHECKED[0], _core.FLAG_CHECK_TIMES)


def rules(
    method: Any,
    outside: Any,
    fill_value: Any,
    max_gap: Any,
    tolerance: Any,
    checked: Any = False,
    times: Any = None,
    values: Any = None,
    codes_of_outside: dict[str, int] = OUTSIDE,
    *,
    causal: bool = False,
    max_age: Any = None,
    lag: tuple[float, int] = (0.0, 0),
) -> tuple[Any, bytes | None]:
    """Return the struct rbcResampleParams with all its scalars, and the groups of channels.

    Both are shared with other calls and must not be changed. A method with a period becomes a group
    of all channels of ``values``. ``lag`` is for float times and for int64 times.
    """
    if (
        method is LINEAR
        and outside is HOLD
        and fill_value is ZERO
        and max_gap is None
        and tolerance is None
        and not causal
        and max_age is None
        and lag == (0.0, 0)
    ):
        return CHECKED if checked else UNCHECKED
    params = _new()
    groups = None
    flags = _core.FLAG_CHECK_TIMES if checked else 0
    age = _age(causal, max_age, times)
    if isinstance(method, str) or not isinstance(method, Sequence):
        if method is not LINEAR:
            _set_method(params, code_of(METHODS, method, "method"))
            if method in PERIODS:
                groups = _group_of_all(method, values, age)
    else:
        groups = _packed_groups(method, age)
    if groups is None and age is not None:
        flags |= _core.FLAG_CAUSAL
        _set_max_age(params, age)
    _set_flags(params, flags)
    if lag[0] != 0:
        _set_lag(params, lag[0])
    if lag[1] != 0:
        _set_lag_ticks(params, lag[1])
    if outside is not HOLD:
        _set_outside(params, code_of(codes_of_outside, outside, "outside"))
    if fill_value is not ZERO:
        _set_fill_value(params, number(fill_value, "fill_value"))
    if max_gap is not None:
        _set_max_gap(params, _limit(max_gap, "max_gap", times))
    if tolerance is not None:
        _set_tolerance(params, _limit(tolerance, "tolerance", times))
    return params, groups


def _age(causal: bool, max_age: Any, times: Any) -> float | None:
    """Return the largest age of a sample; None unless channels look back only."""
    if not causal:
        if max_age is not None:
            raise ValueError(f"max_age: is {shown(max_age)}, expected None without causal=True")
        return None
    return math.inf if max_age is None else _limit(max_age, "max_age", times)


def _limit(duration: Any, name: str, times: Any) -> float:
    """Return a duration in the unit of ``times``. For integer times it must be a whole number.

    If times have a unit, the duration has been converted already, or will be in a second attempt.
    """
    if type(duration) is float:
        if getattr(times, "dtype", None) is _last_float[0]:
            return duration
        limit: float = duration
    elif type(duration) is not int and is_length(duration):
        raise TypeError(no_unit(duration, name))
    else:
        limit = number(duration, name)
    if not limit.is_integer() and are_ticks(times) and math.isfinite(limit):
        raise TypeError(not_whole(limit, name, None))
    return limit


def are_ticks(times: Any) -> bool:
    """Whether times are integers."""
    try:
        dtype = times.dtype
        if _of_integers(dtype):
            return True
        _last_float[0] = dtype
        return False
    except (AttributeError, TypeError):
        pass
    try:
        return bool(facts_of(times, "times")[2] == _core.DTYPE_INT)
    except REFUSALS:  # not an array; the library raises the error
        return False


@functools.lru_cache(maxsize=256)
def _of_integers(dtype: Any) -> bool:
    return "int" in str(dtype)


def _packed(begin: Any, count: Any, method: int, period: int, age: float | None) -> bytes:
    """Return an rbcChannelGroup; ``age`` is None unless it looks back only."""
    if age is None:
        return _GROUP.pack(begin, count, method, period, 0, 0, 0.0)
    return _GROUP.pack(begin, count, method, period, _core.FLAG_CAUSAL, 0, age)


def _packed_groups(groups: Sequence[Any], age: float | None) -> bytes:
    if not groups:
        raise ValueError("method: has no groups, expected (begin, count, name) for each")
    packed = []
    for i, group in enumerate(groups):
        try:
            begin, count, name = group
            _packed(begin, count, 0, 0, None)
        except (TypeError, ValueError, struct.error):
            raise TypeError(
                f"method[{i}]: is {shown(group)}, expected (begin, count, name), "
                "such as (3, 4, 'slerp')"
            ) from None
        code = code_of(METHODS, name, f"method[{i}]")
        packed.append(_packed(begin, count, code, PERIODS.get(name, 0), age))
    return b"".join(packed)


def _group_of_all(method: str, values: Any, age: float | None) -> bytes | None:
    """Return one group of all channels, packed; None if there are no channels."""
    if values is None:
        return None
    shape = shape_of(values, "values")
    if not shape or shape[-1] < 1:
        return None
    return _packed(0, shape[-1], METHODS[method], PERIODS[method], age)
