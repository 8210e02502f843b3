"""Units of times, and durations in whole ticks of a unit."""

from __future__ import annotations

import datetime
import math
import operator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .._library.errors import REFUSALS, shown

# In attoseconds, the finest unit of NumPy. Months and years have no fixed length.
_LENGTHS = {"as": 1, "fs": 10**3, "ps": 10**6, "ns": 10**9, "us": 10**12, "ms": 10**15}
_LENGTHS.update({"s": 10**18, "m": 60 * 10**18, "h": 3600 * 10**18})
_LENGTHS.update({"D": 86400 * 10**18, "W": 7 * 86400 * 10**18})


@dataclass(frozen=True)
class Unit:
    """The tick of int64 times, and whether they are dates or durations."""

    kind: str  # "datetime64" or "timedelta64"
    name: str  # NumPy's name, such as "ns"
    count: int = 1  # 10 for ticks of 10 ms
    zoned: bool = False  # in UTC; False: without a time zone

    def __str__(self) -> str:
        count = "" if self.count == 1 else self.count
        return f"{self.kind}[{count}{self.name}{', UTC' if self.zoned else ''}]"

    @property
    def dtype(self) -> str:
        """NumPy's name of the dtype, without the time zone."""
        return f"{self.kind}[{self.count if self.count > 1 else ''}{self.name}]"

    @property
    def per_second(self) -> float:
        """Number of ticks per second."""
        return float(Fraction(_LENGTHS["s"], self.length))

    @property
    def length(self) -> int:
        """Length of a tick in attoseconds."""
        if self.name not in _LENGTHS:
            raise TypeError(f"times: is {self}, whose ticks have no fixed length in seconds")
        return _LENGTHS[self.name] * self.count


def unit_of(dtype: Any, name: str) -> Unit:
    """Return the unit of a NumPy dtype of times."""
    import numpy as np

    kind = "datetime64" if dtype.kind == "M" else "timedelta64"
    unit, count = np.datetime_data(dtype)
    if unit == "generic":
        raise TypeError(f"{name}: is {kind} without a unit, expected one, such as {kind}[ns]")
    return Unit(kind, unit, count)


def unit_named(name: Any) -> Unit:
    """Return the unit of ticks that are named by a string."""
    if not isinstance(name, str) or name not in _LENGTHS:
        names = ", ".join(map(repr, _LENGTHS))
        raise ValueError(f"unit: is {shown(name)}, expected one of {names}")
    return Unit("timedelta64", name)


def require_one_unit(unit: Unit | None, name: str, other: Unit | None, other_name: str) -> None:
    """Refuse two different units in one call."""
    if unit == other:
        return
    if unit is None or other is None:
        bare, bare_name = (name, other_name) if unit is None else (other_name, name)
        known = other if unit is None else unit
        raise TypeError(
            f"{bare}: has no unit, but {bare_name} is {known}; write "
            f"np.asarray({_variable(bare)}).astype('{known.dtype if known else ''}') "
            "if its numbers are ticks of that unit"
        )
    advice = f"{_variable(name)}.astype('{other.dtype}')"
    if unit.zoned != other.zoned:
        advice = "tz_localize or tz_convert"
    elif unit.kind != other.kind:
        advice = f"adding or subtracting a start time, then {advice}"
    raise TypeError(
        f"{name}: is {unit}, but {other_name} is {other}; convert both to one unit, by {advice}"
    )


def _variable(name: str) -> str:
    return name.rpartition(".")[2]


# ---- durations ----------------------------------------------------------------------------------


def is_length(value: Any) -> bool:
    """Whether a value is a duration with a unit: of the standard library, NumPy or pandas."""
    return isinstance(value, datetime.timedelta) or hasattr(value, "astype") and _is_numpys(value)


def _is_numpys(value: Any) -> bool:
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    return bool(kind == "m" and getattr(value, "shape", None) == ())


def _text(value: Any) -> str:
    return str(value) if is_length(value) else shown(value)


def ticks_of(duration: Any, name: str, unit: Unit | None) -> int | float:
    """Return a duration for int64 times: whole ticks, or infinity."""
    if is_length(duration):
        if unit is None:
            raise TypeError(no_unit(duration, name))
        ticks = _attoseconds(duration, name) / unit.length
        if ticks.denominator != 1:
            raise ValueError(
                f"{name}: is {_text(duration)}, which is {float(ticks):g} ticks of the times "
                f"({unit}), expected whole ticks"
            )
        return int(ticks)
    if isinstance(duration, float) and (not math.isfinite(duration) or duration.is_integer()):
        return duration
    try:
        if isinstance(duration, bool):
            raise TypeError
        return operator.index(duration)
    except REFUSALS:
        raise TypeError(not_whole(duration, name, unit)) from None


def no_unit(duration: Any, name: str) -> str:
    """Return the message for a duration with a unit and times without."""
    ticks = _attoseconds(duration, name)
    return (
        f"{name}: is {_text(duration)}, but times have no unit: write it in theirs, "
        f"such as {_underscored(ticks / _LENGTHS['ns'])} for nanoseconds or "
        f"{float(ticks / _LENGTHS['s']):g} for seconds, or pass times as datetime64 or timedelta64"
    )


def not_whole(duration: Any, name: str, unit: Unit | None) -> str:
    """Return the message for a duration that is not a whole number of ticks."""
    if not isinstance(duration, float):
        return f"{name}: is {shown(duration)}, expected a number"
    if unit is not None:
        return (
            f"{name}: is {duration!r}, but times are {unit}: write whole ticks of that unit, or a "
            f"duration, such as pd.Timedelta(seconds={duration!r})"
        )
    ticks = Fraction(duration).limit_denominator(10**9) * 10**9
    return (
        f"{name}: is {duration!r}, but times are integers: write whole ticks of their unit, "
        f"such as {_underscored(ticks)} for {duration!r} s in nanoseconds"
    )


def _underscored(ticks: Fraction) -> str:
    return f"{int(ticks):_}" if ticks.denominator == 1 else f"{float(ticks):g}"


def _attoseconds(duration: Any, name: str) -> Fraction:
    """Return a duration exactly, with the nanoseconds of a pandas Timedelta."""
    import numpy as np

    if hasattr(duration, "to_timedelta64"):
        duration = duration.to_timedelta64()
    if isinstance(duration, datetime.timedelta):
        micro = (duration.days * 86400 + duration.seconds) * 10**6 + duration.microseconds
        return Fraction(micro * _LENGTHS["us"])
    if np.isnat(duration):
        raise ValueError(f"{name}: is NaT, expected a duration")
    unit, count = np.datetime_data(duration.dtype)
    if unit not in _LENGTHS:
        raise TypeError(f"{name}: is {duration.dtype}, which has no fixed length in seconds")
    return Fraction(int(duration.view("int64")) * count * _LENGTHS[unit])
