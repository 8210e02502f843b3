"""Units of integer times."""

from __future__ import annotations

import re
from typing import Any

_PER_SECOND = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}


def per_second(unit: str | None) -> float:
    """Return the ticks per second; 1 for an unknown unit."""
    if unit is None:
        return 1.0
    if unit not in _PER_SECOND:
        raise ValueError(f"unit: is {unit!r}, expected one of {', '.join(map(repr, _PER_SECOND))}")
    return _PER_SECOND[unit]


def in_seconds(times: Any, unit: str | None) -> Any:
    """Return float times of a known unit in seconds; integer times unchanged."""
    ticks = per_second(unit)
    return times.astype("f8") / ticks if times.dtype.kind == "f" and ticks != 1 else times


def unit_of(track: Any) -> str | None:
    """Return the unit of a track's times, such as "ns"; None if it is not known."""
    match = re.search(r"\[(\w+)", track.time_unit or "")
    return match[1] if match and match[1] in _PER_SECOND else None
