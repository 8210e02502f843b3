"""Statistics that a data set holds against those of its data."""

from __future__ import annotations

from typing import Any

from ._findings import Finding

_OF_RANGE = 1e-3  # of the channel's range: what float32 and histograms may cost
_OF_SIZE = 1e-5  # of the largest value: what sums of float32 cost
_LEAST = 1e-12


def check_statistics(name: str, stored: Any, exact: Any, labels: Any = None) -> list[Finding]:
    """Two :class:`robocache.StatisticsResult` of one track, both numbers in each finding."""
    import numpy as np

    if tuple(stored.mean.shape) != tuple(exact.mean.shape):
        text = f"stored for {stored.mean.shape[-1]} channels, but there are {exact.mean.shape[-1]}"
        return [Finding("error", "statistics", name, "", text)]
    found = []
    count = int(np.max(stored.count))
    if count >= 0 and count != int(np.max(exact.count)):
        text = f"count is stored as {count}, but {int(np.max(exact.count))} values are finite"
        found.append(Finding("error", "statistics", name, "count", text))
    size = np.maximum(np.abs(exact.min), np.abs(exact.max))
    limit = _OF_RANGE * (exact.max - exact.min) + _OF_SIZE * size + _LEAST
    pairs = [(key, getattr(stored, key), getattr(exact, key)) for key in _MOMENTS]
    for level in stored.levels:
        if any(abs(level - known) < 1e-12 for known in exact.levels):
            key = f"q{round(100 * level):02d}"
            pairs.append((key, stored.quantile(level), exact.quantile(level)))
    for key, told, true in pairs:
        if count < 0 and np.isnan(told).all():
            continue  # a file without counts, as openpi's, has no ranges either
        with np.errstate(invalid="ignore"):
            wrong = ~(np.abs(told - true) <= limit) & np.isfinite(true)  # NaN is wrong
        if wrong.any():
            error = np.where(wrong, np.abs(told - true), 0.0)
            at = int(np.argmax(error))
            label = labels[at] if labels is not None else f"channel {at}"
            more = int(wrong.sum()) - 1
            text = f"{key} is stored as {told[at]:.9g}, but it is {true[at]:.9g}"
            text += f" (and {more} more channels)" if more else ""
            found.append(Finding("error", "statistics", name, label, text))
    return found


_MOMENTS = ("min", "max", "mean", "std")
