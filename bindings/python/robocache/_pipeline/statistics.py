"""Statistics of a pipeline file, and the normalization that they give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._statistics.normalization import Normalization
from .._statistics.result import UNKNOWN, StatisticsResult

if TYPE_CHECKING:
    from collections.abc import Mapping

_PARTS = ("mean", "std", "min", "max")


def result_of(statistics: Mapping[str, Any]) -> StatisticsResult:
    """Return statistics of the file; NaN where it has null."""
    import numpy as np

    width = len(statistics["count"])
    none = [float("nan")] * width
    parts: dict[str, Any] = {
        key: none if statistics[key] is None else statistics[key] for key in _PARTS
    }
    levels = sorted(statistics["quantiles"], key=float)
    quantiles = np.array([statistics["quantiles"][level] for level in levels], np.float64)
    return StatisticsResult(
        count=list(statistics["count"]),
        nonfinite=[UNKNOWN] * width,
        **parts,
        quantiles=quantiles.reshape(len(levels), width),
        levels=tuple(map(float, levels)),
    )


def document_of(result: StatisticsResult) -> dict[str, Any]:
    """Return statistics for the file; null where the numbers are unknown."""
    import numpy as np

    made: dict[str, Any] = {"count": np.asarray(result.count, np.int64).tolist()}
    for key in _PARTS:
        numbers = np.asarray(getattr(result, key), np.float64)
        made[key] = numbers.tolist() if np.isfinite(numbers).all() else None
    made["quantiles"] = {
        repr(float(level)): np.asarray(result.quantile(level), np.float64).tolist()
        for level in result.levels
    }
    return made


def normalization_of(entry: Any, dtype: Any) -> Normalization | None:
    """Return the normalization of a window in the dtype of the rows; None for the word "none"."""
    if entry == "none":
        return None
    options = {key: entry[key] for key in ("mask", "clip", "epsilon")}
    return Normalization.of(
        result_of(entry["statistics"]), entry["mode"], style=entry["style"], dtype=dtype, **options
    )
