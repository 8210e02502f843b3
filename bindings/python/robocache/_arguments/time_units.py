"""The units of times: which an array has, and lengths of time in whole ticks of one."""

from __future__ import annotations

import datetime
import math
import operator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from .._library.errors import REFUSALS, shown

# Attoseconds: the finest unit that NumPy knows. Months and years have no length.
_LENGTHS = {"as": 1, "fs": 10**3, "ps": 10**6, "ns": 10**9, "us": 10**12, "ms": 10**15}
_LENGTHS.update({"s": 10**18, "m": 60 * 10**18, "h": 3600 * 10**18})
_LENGTHS.update({"D": 86400 * 10**18, "W": 7 * 86400 * 10**18})


@dataclass(frozen=True)
class Unit:
    """What a tick of int64 times is, and whether they are dates or spans of time."""

    kind: str  # "datetime64" or "timedelta64"
    name: str  # as NumPy has it: "ns"
    count: int = 1  # ticks of 10 ms have a name and a count
    zoned: bool = False  # on the clock of UTC, where others tell of no zone

    def __str__(self) -> str:
        count = "" if self.count == 1 else self.count
        return f"{self.kind}[{count}{self.name}{', UTC' if self.zoned else ''}]"

    @property
    def dtype(self) -> str:
        """NumPy's name of it, which knows of no zones."""
        return f"{self.kind}[{self.count if self.count > 1 else ''}{self.name}]"

    @property
    def per_second(self) -> float:
        """How many ticks there are in a second."""
        return float(Fraction(_LENGTHS["s"], self.length))

    @property
    def length(self) -> int:
        """Of a tick, in attoseconds."""
        if self.name not in _LENGTHS:
            raise TypeError(f"times: is {self}, whose ticks have no length in seconds")
        return _LENGTHS[self.name] * self.count


def unit_of(dtype: Any, name: str) -> Unit:
    """That of a dtype of NumPy for times."""
    import numpy as np

    kind = "datetime64" if dtype.kind == "M" else "timedelta64"
    unit, count = np.datetime_data(dtype)
    if unit == "generic":
        raise TypeError(f"{name}: is {kind} without a unit, expected one, such as {kind}[ns]")
    return Unit(kind, unit, count)


def unit_named(name: Any) -> Unit:
    """That of ticks whose unit is told in a word."""
    if not isinstance(name, str) or name not in _LENGTHS:
        names = ", ".join(map(repr, _LENGTHS))
        raise ValueError(f"unit: is {shown(name)}, expected one of {names}")
    return Unit("timedelta64", name)


def require_one_unit(given: Unit | None, name: str, other: Unit | None, other_name: str) -> None:
    """Refuse two units in one call, which would be a guess."""
    if given == other:
        return
    if given is None or other is None:
        bare, bare_name = (name, other_name) if given is None else (other_name, name)
        unit = other if given is None else given
        raise TypeError(
            f"{bare}: has no unit, but {bare_name} is {unit}; write "
            f"np.asarray({_variable(bare)}).astype('{unit.dtype if unit else ''}') "
            "if its numbers are ticks of that"
        )
    advice = f"{_variable(name)}.astype('{other.dtype}')"
    if given.zoned != other.zoned:
        advice = "tz_localize or tz_convert"
    elif given.kind != other.kind:
        advice = f"a start time that is added or subtracted, then {advice}"
    raise TypeError(
        f"{name}: is {given}, but {other_name} is {other}; bring both to one unit, by {advice}"
    )


def _variable(name: str) -> str:
    return name.rpartition(".")[2]


# ---- lengths of time ----------------------------------------------------------------------------


def is_length(given: Any) -> bool:
    """Whether it has a unit of its own: of the standard library, NumPy, pandas or polars."""
    return isinstance(given, datetime.timedelta) or hasattr(given, "astype") and _is_numpys(given)


def _is_numpys(given: Any) -> bool:
    kind = getattr(getattr(given, "dtype", None), "kind", "")
    return bool(kind == "m" and getattr(given, "shape", None) == ())


def _text(given: Any) -> str:
    return str(given) if is_length(given) else shown(given)


def ticks_of(given: Any, name: str, unit: Unit | None) -> int | float:
    """A length of time beside int64 times: whole ticks, or infinite."""
    if is_length(given):
        if unit is None:
            raise TypeError(no_unit(given, name))
        ticks = _attoseconds(given, name) / unit.length
        if ticks.denominator != 1:
            raise ValueError(
                f"{name}: is {_text(given)}, which is {float(ticks):g} ticks of times of {unit}, "
                "expected whole ticks"
            )
        return int(ticks)
    if isinstance(given, float) and (not math.isfinite(given) or given.is_integer()):
        return given
    try:
        if isinstance(given, bool):
            raise TypeError
        return operator.index(given)
    except REFUSALS:
        raise TypeError(not_whole(given, name, unit)) from None


def no_unit(given: Any, name: str) -> str:
    """The words for a length with a unit beside times without."""
    ticks = _attoseconds(given, name)
    return (
        f"{name}: is {_text(given)}, but times have no unit: write it in theirs, "
        f"such as {_underscored(ticks / _LENGTHS['ns'])} for nanoseconds or "
        f"{float(ticks / _LENGTHS['s']):g} for seconds, or pass times as datetime64 or timedelta64"
    )


def not_whole(given: Any, name: str, unit: Unit | None) -> str:
    """The words for what is no number of ticks."""
    if not isinstance(given, float):
        return f"{name}: is {shown(given)}, expected a number"
    if unit is not None:
        return (
            f"{name}: is {given!r}, but times are {unit}: write whole ticks of that, or a length "
            f"of time, such as pd.Timedelta(seconds={given!r})"
        )
    ticks = Fraction(given).limit_denominator(10**9) * 10**9
    return (
        f"{name}: is {given!r}, but times are of integers: write whole ticks of their unit, "
        f"such as {_underscored(ticks)} for {given!r} s in nanoseconds"
    )


def _underscored(ticks: Fraction) -> str:
    return f"{int(ticks):_}" if ticks.denominator == 1 else f"{float(ticks):g}"


def _attoseconds(given: Any, name: str) -> Fraction:
    """Exactly. pandas' Timedelta knows of nanoseconds, which its base class does not."""
    import numpy as np

    if hasattr(given, "to_timedelta64"):
        given = given.to_timedelta64()
    if isinstance(given, datetime.timedelta):
        micro = (given.days * 86400 + given.seconds) * 10**6 + given.microseconds
        return Fraction(micro * _LENGTHS["us"])
    if np.isnat(given):
        raise ValueError(f"{name}: is NaT, expected a length of time")
    unit, count = np.datetime_data(given.dtype)
    if unit not in _LENGTHS:
        raise TypeError(f"{name}: is {given.dtype}, which has no length in seconds")
    return Fraction(int(given.view("int64")) * count * _LENGTHS[unit])
