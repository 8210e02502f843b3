"""The warning about times that are valid, but probably not as intended."""

from __future__ import annotations

import math
import sys
import warnings
from typing import Any


class RangeWarning(UserWarning):
    """Warning that the times of a call are probably not as intended.

    No query is in the time range of its samples, as with milliseconds against nanoseconds; or times
    are float32 and so large that several samples round to the same time, as with seconds since
    1970. The check is done if ``check_times`` is on.
    """


def warn_of(range_flags: tuple[Any, ...]) -> None:
    """Issue the warning that the extension found, at the line that called the package."""
    stream, kind, *numbers = range_flags
    times = "times" if stream < 0 else f"streams[{stream}].times"
    if kind == "float32":
        last, apart = numbers
        text = (
            f"{times}: float32 resolves only {apart:g} near {last:g}, coarser than the interval "
            "between samples; use float64 or int64, or subtract a start time"
        )
    else:
        first, last, begin, end = numbers
        text = (
            f"query_times: all lie outside of {times}: {begin} to {end}, samples {first} to {last}"
            f"{_factor(max(abs(begin), abs(end)), max(abs(first), abs(last)))}"
        )
    warnings.warn(text, RangeWarning, stacklevel=_depth())


def _factor(queries: float, times: float) -> str:
    """Return a hint that the units differ, or an empty string."""
    if not (0 < queries < math.inf and 0 < times < math.inf):
        return ""
    thousands = round(math.log10(queries / times) / 3)
    if thousands == 0:
        return ""
    few, many = ("times", "queries") if thousands > 0 else ("queries", "times")
    factor = f"1e{3 * abs(thousands)}"
    return f"; {many} are about {factor} times as large as {few}: is their unit the same?"


def _depth() -> int:
    """Return the number of frames up to the one that called the package."""
    depth = 1
    frame: Any = sys._getframe(1)
    # Operators of torch are called through its module _ops.
    inside = ("robocache.", "torch._ops")
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(inside):
        frame = frame.f_back
        depth += 1
    return depth
