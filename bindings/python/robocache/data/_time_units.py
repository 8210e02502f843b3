"""How long a tick of times is."""

from __future__ import annotations

import re
from typing import Any

_PER_SECOND = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}


def per_second(unit: str | None) -> float:
    """Ticks in a second; 1 of a unit that is not known."""
    if unit is None:
        return 1.0
    if unit not in _PER_SECOND:
        raise ValueError(f"unit: is {unit!r}, expected one of {', '.join(map(repr, _PER_SECOND))}")
    return _PER_SECOND[unit]


def in_seconds(times: Any, unit: str | None) -> Any:
    """Times of floats in seconds, where their unit is known; integers as they are."""
    ticks = per_second(unit)
    return times.astype("f8") / ticks if times.dtype.kind == "f" and ticks != 1 else times


def unit_of(track: Any) -> str | None:
    """That of a track's times, such as "ns"; None where they do not tell one of these."""
    match = re.search(r"\[(\w+)", track.time_unit or "")
    return match[1] if match and match[1] in _PER_SECOND else None
