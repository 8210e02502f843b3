"""A common unit for the times of several tables, if each may state its own unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..._errors import FormatError
from ..._time_units import in_seconds, per_second
from .clock import Clock, epoch_unit, looks_like, too_late

_FASTEST = 1e-6  # s between samples: floats that a unit would bring below are seconds


@dataclass(frozen=True)
class Scale:
    """The conversion of one file's times to the unit of the recording."""

    unit: str | None  # of the file; None: not known, and times are unchanged
    to: str | None  # of the recording
    whole: bool = True  # whether the recording's times are integers

    def times(self, values: Any, path: str, place: str) -> Any:
        """Return the times in the unit of the recording.

        Raises
        ------
        FormatError
            The result does not fit in 64 bits, or different times would become equal.
        """
        import numpy as np

        if self.unit is None:
            return values
        if not self.whole:
            return _distinct(values, in_seconds(values, self.unit), path, place, "s")
        factor = per_second(self.to) / per_second(self.unit)
        if values.dtype.kind == "f":
            scaled = np.rint(values.astype(np.float64) * factor)
            if not (np.abs(scaled) < 2.0**63).all():  # infinite ones too
                raise _too_far(path, place, self.to)
            return _distinct(values, scaled.astype(np.int64), path, place, self.to)
        if factor != 1 and len(values):
            if max(int(values.max()), -int(values.min())) * int(factor) >= 2**63:
                raise _too_far(path, place, self.to)
            values = values * int(factor)
        return values


def _distinct(times_before: Any, scaled: Any, path: str, place: str, unit: str | None) -> Any:
    """Return the scaled times; raise if different times became equal."""
    import numpy as np

    before, after = (int(np.count_nonzero(np.diff(times))) + 1 for times in (times_before, scaled))
    if after < before:
        text = (
            f"{before} different times would become {after} in whole {unit}: give the unit of "
            "these times with --time COLUMN:UNIT, or open the file separately"
        )
        raise FormatError(path, place, text)
    return scaled


def _too_far(path: str, place: str, unit: str | None) -> FormatError:
    text = f"its times do not fit in 64 bits as {unit}, the unit of all files: open it separately"
    return FormatError(path, place, text)


def scales_of(
    path: str, clocks: Mapping[str, Clock], unit: str | None
) -> tuple[str | None, dict[str, Scale]]:
    """Return the unit of the recording, and the scale of each file's times.

    Integer times without a unit use ``unit``, and so do floats if it is plausible. Without
    ``unit``, floats are seconds, and integers use the unit of the other files, if they state one.
    A unit that follows from the size of integers is the last choice.
    """
    stated = {name: clock.unit for name, clock in clocks.items() if clock.unit is not None}
    _require_stated_fit(path, clocks, stated)
    if unit is not None:
        per_second(unit)  # raises if it is unknown
        _require_fit(path, clocks, stated, unit)
    units = {name: stated.get(name) or _default_unit(clock, unit) for name, clock in clocks.items()}
    for name, clock in clocks.items():
        units[name] = units[name] or clock.guess
    if stated:
        for name, clock in clocks.items():
            units[name] = units[name] or (
                "s" if clock.kind == "f" else _unit_of_others(path, stated, name)
            )
    elif any(units.values()):
        for name, clock in clocks.items():
            units[name] = units[name] or ("s" if clock.kind == "f" else None)
    if None in units.values():
        return unit, {}
    known = {name: own for name, own in units.items() if own is not None}
    kinds = {clock.kind for clock in clocks.values()}
    if kinds == {"f"}:
        return "s", {name: Scale(own, "s", whole=False) for name, own in known.items()}
    finest = max(known.values(), key=per_second, default=unit)
    to = "ns" if "f" in kinds else finest
    return to, {name: Scale(own, to) for name, own in known.items()}


def _default_unit(clock: Clock, unit: str | None) -> str | None:
    """Return the caller's unit for times without one; floats may still be seconds."""
    import numpy as np

    if unit is None or clock.kind == "i" or unit == "s" or clock.sample is None:
        return unit
    if clock.guess == "s":
        return "s"
    steps = np.diff(clock.sample.astype(np.float64))
    steps = steps[steps > 0]
    if len(steps) == 0:
        return unit
    step = float(np.median(steps))
    return "s" if step < 1 or step / per_second(unit) < _FASTEST else unit


def _require_stated_fit(path: str, clocks: Mapping[str, Clock], stated: Mapping[str, str]) -> None:
    """Refuse times after the year 9999 if another unit puts them in this century."""
    for name, unit in stated.items():
        clock = clocks[name]
        year = too_late(clock, unit)
        other = None if year is None else epoch_unit(clock.sample[0].item())
        if other is not None:
            where = f"{name}: " if len(clocks) > 1 else ""
            raise FormatError(
                path,
                "",
                f"{where}column {clock.name} says {_WORDS[unit]}, but its times would be in the "
                f"year {year}. {looks_like(clock.sample[0].item())}. State the unit with "
                f"--time {clock.name}:{other}",
            )


def _require_fit(
    path: str, clocks: Mapping[str, Clock], stated: Mapping[str, str], unit: str
) -> None:
    """Refuse a unit that no file uses, or in which times would be after the year 9999."""
    if stated and len(stated) == len(clocks) and unit not in stated.values():
        name = next(iter(stated))
        clock = clocks[name]
        where = f"{name}: " if len(clocks) > 1 else ""
        text = (
            f"{where}column {clock.name} says {_WORDS[stated[name]]}, but --unit {unit} was given"
        )
        raise FormatError(path, "", f"{text}. Remove --unit")
    for name, clock in clocks.items():
        if name in stated or clock.kind == "f":
            continue
        year = too_late(clock, unit)
        if year is not None:
            looks = looks_like(clock.sample[0].item())
            end = f". {looks[0].upper() + looks[1:]}" if looks else ""
            text = f"times of {name} are too large for --unit {unit}: as {_WORDS[unit]} they would"
            raise FormatError(path, "", f"{text} be in the year {year}{end}")


_WORDS = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}


def _unit_of_others(path: str, stated: Mapping[str, str], name: str) -> str:
    units = sorted(set(stated.values()))
    if len(units) > 1:
        raise FormatError(
            path,
            "",
            f"{name} does not say the unit of its times, and the other files disagree "
            f"({', '.join(units)}). Give it: --unit {units[-1]}",
        )
    return units[0]
