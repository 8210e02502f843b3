"""Episodes that differ from the others: short, static, with jumps or with outliers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..._arguments.to_numpy import on_host
from .._format_values import number

_SHORT, _LONG = 0.5, 2.0  # of the median length
_STILL = 0.05  # of the median motion
_OTHERS = 90  # percentile of the episodes that is usual
_TIMES = 3.0  # a jump or an outlier is at least 3 times larger than usual,
_OF_RANGE = 0.1  # and this part of the range of the channel
_LEAST = 5  # episodes to compare with


@dataclass(frozen=True)
class Unusual:
    """An episode that differs from the others."""

    episode: int
    kind: str  # "short", "long", "static", "jump", "outlier"
    text: str  # with numbers
    row: int = 0  # of the episode, where it is


def unusual_episodes(tracks: Mapping[str, Any]) -> list[Unusual]:
    """Return the unusual episodes of tracks with values, in the order of the episodes."""
    import numpy as np

    found: list[Unusual] = []
    for i, (name, track) in enumerate(tracks.items()):
        offsets = on_host(track.episode_offsets)
        lengths = np.diff(offsets)
        if (lengths > 0).sum() < _LEAST:
            continue
        if i == 0:
            found += _lengths(lengths)
        values = on_host(track.values)
        if values.dtype.kind == "f" and values.shape[1]:
            with np.errstate(invalid="ignore", over="ignore"):
                found += _of_values(name, track, values.astype(np.float64), offsets)
    return sorted(found, key=lambda each: (each.episode, each.kind))


def _lengths(lengths: Any) -> list[Unusual]:
    import numpy as np

    usual = float(np.median(lengths))
    found = []
    for e, length in enumerate(lengths.tolist()):
        if length < _SHORT * usual or length > _LONG * usual:
            kind = "short" if length < usual else "long"
            text = f"{length} rows, the median is {usual:g}"
            found.append(Unusual(e, kind, text))
    return found


def _of_values(name: str, track: Any, values: Any, offsets: Any) -> list[Unusual]:
    import numpy as np

    there = np.flatnonzero(np.diff(offsets) > 0)
    begins = offsets[there]
    values = np.where(np.isfinite(values), values, np.nan)
    low, high = np.nanmin(values, axis=0), np.nanmax(values, axis=0)
    span = np.where(high > low, high - low, np.inf)  # channels that never change are not compared
    labels = track.names or tuple(f"[{c}]" for c in range(values.shape[1]))
    found = []
    lows = np.fmin.reduceat(values, begins, axis=0)
    highs = np.fmax.reduceat(values, begins, axis=0)
    motion = np.nan_to_num((highs - lows) / span).sum(axis=1)
    usual = float(np.median(motion))
    for i in np.flatnonzero(motion < _STILL * usual).tolist():
        text = f"{name}: its channels move by {number(motion[i] / usual)} of the usual range"
        found.append(Unusual(int(there[i]), "static", text))
    steps = np.abs(np.diff(values, axis=0, prepend=values[:1]))
    steps[begins] = 0  # the first row follows another episode
    middle = np.nanquantile(values, [0.01, 0.99], axis=0)
    beyond = np.fmax(values - middle[1], middle[0] - values)
    for kind, size in (("jump", steps), ("outlier", np.fmax(beyond, 0))):
        largest = np.fmax.reduceat(np.nan_to_num(size), begins, axis=0)
        normal = np.percentile(largest, _OTHERS, axis=0)
        odd = (largest > _TIMES * normal) & (largest > _OF_RANGE * span)
        for i, c in np.argwhere(odd).tolist():
            begin = int(begins[i])
            end = int(offsets[there[i] + 1])
            row = int(np.nanargmax(np.nan_to_num(size[begin:end, c])))
            if kind == "jump":
                text = f"changes by {number(largest[i, c])} in one row"
                text += f", elsewhere by up to {number(normal[c])}"
            else:
                text = f"is {number(values[begin + row, c])}; 98 % of the rows are from "
                text += f"{number(middle[0, c])} to {number(middle[1, c])}"
            text = f"{name} {labels[c]} at row {row}: {text}"
            found.append(Unusual(int(there[i]), kind, text, row))
    return found
