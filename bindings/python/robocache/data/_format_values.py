"""Formatting of numbers, durations and sizes; results as plain data."""

from __future__ import annotations

import math
from typing import Any

_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def number(value: Any, digits: int = 5) -> str:
    """Format a number; "-" for None and NaN."""
    if value is None:
        return "-"
    value = float(value)
    return "-" if math.isnan(value) else f"{value:.{digits}g}"


def duration(seconds: Any, ticks: bool = False, digits: int = 3) -> str:
    """Format a duration in a suitable unit."""
    if seconds is None or math.isnan(float(seconds)):
        return "-"
    seconds = float(seconds)
    if ticks:
        return f"{seconds:.{digits + 1}g}"
    if abs(seconds) >= 100 and digits == 3:
        return f"{seconds:.0f}s"
    if seconds == 0:
        return "0s"
    for unit, name in _UNITS:
        if abs(seconds) >= unit * 0.9995 or name == "ns":
            return f"{seconds / unit:.{digits}g}{name}"
    return "0s"


def size(count: int) -> str:
    """Format bytes as kB, MB or GB."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            return f"{value:.3g} {unit}" if unit != "B" else f"{count} B"
        value /= 1000
    return ""


def plain(value: Any) -> Any:
    """Convert to dicts, lists, strings and finite numbers."""
    import numpy as np

    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, (bool, int, float, str)) or value is None:
        return value
    return str(value)
