"""One unit for the times of several tables: each file tells its own, or none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ._errors import FormatError, some
from ._table_streams import Clock
from ._units import in_seconds, per_second


@dataclass(frozen=True)
class Scale:
    """How the times of one file become those of the recording."""

    unit: str | None  # of the file; None: not known, and nothing is changed
    to: str | None  # of the recording
    whole: bool = True  # whether the recording's are integers

    def times(self, given: Any, path: str, place: str) -> Any:
        import numpy as np

        if self.unit is None:
            return given
        if not self.whole:
            return in_seconds(given, self.unit)
        factor = per_second(self.to) / per_second(self.unit)
        if given.dtype.kind == "f":
            given = np.rint(given.astype(np.float64) * factor)
            if not (np.abs(given) < 2.0**63).all():  # infinite ones too
                raise _too_far(path, place, self.to)
            return given.astype(np.int64)
        if factor != 1 and len(given):
            if max(int(given.max()), -int(given.min())) * int(factor) >= 2**63:
                raise _too_far(path, place, self.to)
            given = given * int(factor)
        return given


def _too_far(path: str, place: str, unit: str | None) -> FormatError:
    text = f"has times that 64 bits do not hold in {unit}, the unit of all files: open it alone"
    return FormatError(path, place, text)


def scales_of(
    path: str, clocks: Mapping[str, Clock], unit: str | None
) -> tuple[str | None, dict[str, Scale]]:
    """The unit of the recording, and the scale of each file's times.

    Files that do not tell their unit take the one that was given; without one floats are seconds
    and integers as the others are, where any of these tell.
    """
    told = {name: clock.unit for name, clock in clocks.items() if clock.unit is not None}
    if unit is not None:
        per_second(unit)  # knows it
        if told and len(told) == len(clocks) and unit not in told.values():
            name = next(iter(told))
            raise FormatError(
                path,
                f"{name}, {clocks[name].name}" if len(clocks) > 1 else clocks[name].name,
                f"tells that its times are in {told[name]}, but unit is {unit!r}: leave unit out",
            )
    units = {name: told.get(name) or unit for name in clocks}
    if told:
        for name, clock in clocks.items():
            units[name] = units[name] or (
                "s" if clock.kind == "f" else _of_others(path, told, name)
            )
    if None in units.values():
        return unit, {}
    known = {name: own for name, own in units.items() if own is not None}
    kinds = {clock.kind for clock in clocks.values()}
    if kinds == {"f"}:
        return "s", {name: Scale(own, "s", whole=False) for name, own in known.items()}
    finest = max(known.values(), key=per_second, default=unit)
    to = "ns" if "f" in kinds else finest
    return to, {name: Scale(own, to) for name, own in known.items()}


def _of_others(path: str, told: Mapping[str, str], name: str) -> str:
    units = sorted(set(told.values()))
    if len(units) > 1:
        raise FormatError(
            path,
            name,
            f"does not tell the unit of its times, and other files have {some(units)}: "
            "pass its own, such as unit='us'",
        )
    return units[0]
