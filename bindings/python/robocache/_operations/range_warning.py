"""Times that can hardly be what was meant: a warning, since nothing is wrong with the arrays."""

from __future__ import annotations

import math
import sys
import warnings
from typing import Any


class RangeWarning(UserWarning):
    """The times of a call can hardly be what was meant.

    Not one query lies in the time range of its samples, as if milliseconds met nanoseconds; or
    times are float32 and so large that samples fall on one time, as seconds since the epoch do.
    Looked for where ``check_times`` is on.
    """


def warn_of(told: tuple[Any, ...]) -> None:
    """Warn, where the package was called, of what the extension tells."""
    stream, kind, *numbers = told
    times = "times" if stream < 0 else f"streams[{stream}].times"
    if kind == "float32":
        last, apart = numbers
        text = (
            f"{times}: are of float32 near {last:g}, where neighbours are {apart:g} apart, more "
            "than samples are: many have one time; use float64 or int64, or subtract a start time"
        )
    else:
        first, last, begin, end = numbers
        text = (
            f"query_times: all lie outside of {times}: {begin} to {end}, samples {first} to {last}"
            f"{_factor(max(abs(begin), abs(end)), max(abs(first), abs(last)))}"
        )
    warnings.warn(text, RangeWarning, stacklevel=_depth())


def _factor(queries: float, times: float) -> str:
    """What tells of two units."""
    if not (0 < queries < math.inf and 0 < times < math.inf):
        return ""
    thousands = round(math.log10(queries / times) / 3)
    if thousands == 0:
        return ""
    few, many = ("times", "queries") if thousands > 0 else ("queries", "times")
    factor = f"1e{3 * abs(thousands)}"
    return f"; {many} are about {factor} times as large as {few}: is their unit the same?"


def _depth() -> int:
    """How many frames there are up to the one that called the package."""
    depth = 1
    frame: Any = sys._getframe(1)
    # Operators of torch are called by way of its module _ops.
    inside = ("robocache.", "torch._ops")
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(inside):
        frame = frame.f_back
        depth += 1
    return depth
