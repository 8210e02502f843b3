"""The frame of a video that a row has: integers and fractions, never floats."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from .._errors import FormatError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .video_index import VideoIndex

_NEAR = Fraction(1, 10**6)  # Hz between a rate and the fraction that it stands for
_LARGEST = 1 << 61  # of the integers that are computed as int64


def rate_of(fps: float | Fraction) -> Fraction:
    """Return a rate as the fraction that it stands for.

    >>> rate_of(29.97002997)
    Fraction(30000, 1001)

    Raises
    ------
    ValueError
        It is neither an integer nor 1000 n/1001, within 1e-6.
    """
    exact = Fraction(fps) if math.isfinite(fps) else Fraction(0)
    whole = Fraction(round(exact))
    film = Fraction(1000 * round(exact * Fraction(1001, 1000)), 1001)
    for rate in (whole, film):
        if rate > 0 and abs(rate - exact) <= _NEAR:
            return rate
    text = "expected a whole number of frames per second, or 1000 n/1001 such as 29.97002997"
    raise ValueError(f"fps: is {fps}, {text}")


def rounded(begin: float, rate: Fraction) -> Fraction:
    """Return the begin of an episode: the multiple of 1/rate within 1/8 of it, else unchanged."""
    exact = Fraction(begin)
    near = Fraction(round(exact * rate)) / rate
    return near if abs(near - exact) <= 1 / (8 * rate) else exact


def frames_at(
    index: VideoIndex,
    begin: float,
    rate: Fraction,
    length: int,
    tolerance: Fraction,
    label: str,
    whole: bool = False,
) -> NDArray[np.int64]:
    """Return the frame of each row of an episode: places in the index, int64 [length].

    ``whole``: the file is the episode, and has as many frames as it has rows.

    Raises
    ------
    FormatError
        A row has no frame, or the frames of the rows are not consecutive.
    """
    import numpy as np

    if whole and len(index.pts) != length:
        text = f"has {len(index.pts)} frames, expected {length}: one for each row"
        raise FormatError(index.path, label, text)
    start = int(index.pts[0]) * index.time_base
    if abs(start) > tolerance and not whole:
        text = f"begins at {float(start):.6f} s, so that the times of episodes in it may count "
        text += "from there or from zero; write it so that it begins at zero: "
        text += "ffmpeg -i OLD -c copy -avoid_negative_ts make_zero NEW"
        raise FormatError(index.path, label, text)
    # Row r is at (first + r step)/divisor units of the file's time base.
    first = rounded(begin, rate) / index.time_base + int(index.pts[0])
    step = 1 / (rate * index.time_base)
    divisor = math.lcm(first.denominator, step.denominator)
    a, b = int(first * divisor), int(step * divisor)
    largest = max(abs(a) + abs(b) * length, max(map(abs, map(int, index.pts[[0, -1]]))) * divisor)
    kind: Any = np.int64 if 4 * largest < _LARGEST else object
    wanted = a + b * np.arange(length).astype(kind)
    # A frame is the nearest one if fewer than all middles after it are earlier than the row.
    middles = index.pts[:-1] + index.pts[1:]
    edges = -(-2 * wanted // divisor)  # the row, doubled and rounded up
    limits = np.clip(edges, np.iinfo(np.int64).min, np.iinfo(np.int64).max).astype(np.int64)
    places: NDArray[np.int64] = np.searchsorted(middles, limits, "left")
    away = abs(index.pts[places].astype(kind) * divisor - wanted)
    far = np.flatnonzero(away > math.floor(tolerance / index.time_base * divisor))
    if len(far):
        raise _too_far(index, int(far[0]), places, wanted, divisor, label)
    jumps = np.flatnonzero(np.diff(places) != 1)
    if len(jumps):
        row = int(jumps[0])
        what = "the same frame" if places[row] == places[row + 1] else "frames with others between"
        times = [float(int(index.pts[places[r]]) * index.time_base) for r in (row, row + 1)]
        text = f"have {what}, at {times[0]:.6f} s and {times[1]:.6f} s: the frames of an episode "
        text += "are consecutive, one for each row"
        raise FormatError(index.path, f"{label}, rows {row} and {row + 1}", text)
    return places


def _too_far(
    index: VideoIndex, row: int, places: Any, wanted: Any, divisor: int, label: str
) -> FormatError:
    base, start = index.time_base, int(index.pts[0])
    time = float((Fraction(int(wanted[row]), divisor) - start) * base)
    found = float((int(index.pts[places[row]]) - start) * base)
    last = float((int(index.pts[-1]) - start) * base)
    text = f"has no frame at {time:.6f} s; the nearest is at {found:.6f} s, and the last of "
    text += f"{len(index.pts)} at {last:.6f} s"
    return FormatError(index.path, f"{label}, row {row}", text)
