"""Statistics of the cameras of a LeRobot data set: per channel, of pixels from 0 to 1."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from ...._statistics.result import StatisticsResult
from ..._episode_methods import LEVELS
from ..._errors import FormatError
from ..._findings import Finding
from ..._progress import progress
from .frames import frames_of, is_camera
from .meta import lines_of

if TYPE_CHECKING:
    from ..._options import Options
    from .meta import Feature, Info, Plan

CHANNELS = ("red", "green", "blue")
CHOICES = ("sample", "all")
_LEAST, _MOST, _POWER = 100, 10_000, 0.75  # of the frames of an episode that LeRobot samples
_LARGE, _TARGET = 300, 150  # pixels: LeRobot skips pixels of pictures that are not smaller


def camera_statistics(
    info: Info, plan: Plan, how: str, options: Options, names: Collection[str] | None = None
) -> tuple[dict[str, StatisticsResult], dict[str, StatisticsResult]]:
    """Return the statistics of each camera over all episodes, and by episode as [E,3].

    ``how``: "sample" takes the frames and the pixels that LeRobot takes when it records, "all"
    takes all. The pixels are counted, so that all numbers are exact. ``count`` is the number of
    frames, as in LeRobot. ``names``: the cameras; None: all.
    """
    import numpy as np

    cameras = [feature for feature in info.features.values() if is_camera(feature)]
    if names is not None:
        cameras = [feature for feature in cameras if feature.name in names]
    wanted: dict[int, Any] = {
        e: sampled(int(length)) if how == "sample" else np.arange(int(length))
        for e, length in enumerate(plan.lengths.tolist())
        if length
    }
    total = len(cameras) * sum(map(len, wanted.values()))
    whole, by_episode = {}, {}
    with progress("Decoding frames", total, options.progress, "frames") as done:
        for feature in cameras:
            counts = np.zeros((len(plan.lengths), 256, 3), np.int64)
            frames = np.zeros(len(plan.lengths), np.int64)
            for episode, _, pixels in frames_of(info, plan, feature, wanted, options):
                part = strided(pixels) if how == "sample" else pixels
                for c in range(3):
                    counts[episode, :, c] += np.bincount(part[..., c].ravel(), minlength=256)
                frames[episode] += 1
                done(1)
            whole[feature.name] = _result(counts.sum(axis=0), int(frames.sum()), info, feature)
            rows = [
                _result(counts[e], int(frames[e]), info, feature) for e in range(len(plan.lengths))
            ]
            by_episode[feature.name] = _stacked(rows)
    return whole, by_episode


def sampled(length: int) -> Any:
    """Return the indices of the frames of an episode that LeRobot samples."""
    import numpy as np

    count = max(min(_LEAST, length), min(int(length**_POWER), _MOST))
    return np.round(np.linspace(0, length - 1, count)).astype(int)


def strided(pixels: Any) -> Any:
    """Skip pixels [H,W,C] of a large picture, as LeRobot does."""
    high, wide = pixels.shape[:2]
    if max(high, wide) < _LARGE:
        return pixels
    step = max(high, wide) // _TARGET
    return pixels[::step, ::step]


def check_cameras(
    info: Info,
    plan: Plan,
    stored: Mapping[str, Any],
    by_episode: Callable[[str], StatisticsResult | None],
) -> list[Finding]:
    """Return findings with the identifier ``image_statistics``: missing ones, and wrong ones.

    ``by_episode`` returns the stored statistics [E,3] of a camera in each episode.
    """
    found = []
    lines = _features_of_episodes(info)
    for feature in info.features.values():
        if not is_camera(feature) or not len(plan.lengths):
            continue
        name = feature.name
        if lines is not None:
            without = sum(name not in lines.get(number, ()) for number in plan.numbers.tolist())
            if without:
                text = (
                    f"{without} of {len(plan.numbers)} episodes have no statistics of this camera"
                )
                found.append(Finding("warning", "image_statistics", name, "", text))
                continue
        elif name not in stored:
            text = "no statistics of this camera are stored"
            found.append(Finding("warning", "image_statistics", name, "", text))
            continue
        found += _impossible(name, stored.get(name)) or _impossible(name, by_episode(name))
    return found


def _features_of_episodes(info: Info) -> dict[int, Any] | None:
    """Return the features with statistics by episode of v2.1; None without such a file."""
    if info.version != "v2.1" or not info.folder.has("meta/episodes_stats.jsonl"):
        return None
    found: dict[int, Any] = {}
    for _, line in lines_of(info.folder.file("meta/episodes_stats.jsonl")):
        try:
            each = json.loads(line)
            found[int(each["episode_index"])] = set(each["stats"])
        except (ValueError, RecursionError, KeyError, TypeError):  # `stats --check` reports it
            continue
    return found


def least_std(stored: Any) -> Any:
    """Return the least standard deviation that the quantiles allow, of each channel."""
    import numpy as np

    least = np.zeros_like(stored.mean)
    for level in stored.levels:
        apart = np.abs(stored.quantile(level) - stored.mean)
        below = stored.quantile(level) < stored.mean
        # At least this part of the pixels is as far from the mean, or farther.
        least = np.maximum(least, apart * np.sqrt(np.where(below, level, 1 - level)))
    return least


def impossible(stored: Any) -> Any:
    """Return the channels whose stored deviation is far below what the quantiles allow.

    LeRobot 0.4 squared the pixels as uint8, which overflows; its deviations are nearly 0.
    """
    return stored.std < 0.5 * least_std(stored)


def _impossible(name: str, stored: StatisticsResult | None) -> list[Finding]:
    """Return an error if a deviation [3] or [E,3] is too small for the stored quantiles."""
    import numpy as np

    if stored is None:
        return []
    wrong, least = impossible(stored), least_std(stored)
    if not wrong.any():
        return []
    index = np.unravel_index(np.argmax(np.where(wrong, least - stored.std, -1)), wrong.shape)
    channels = wrong.shape[-1]
    label = CHANNELS[index[-1]] if channels == len(CHANNELS) else f"channel {index[-1]}"
    text = f"std is stored as {stored.std[index]:.3g}, but by the stored quantiles it is at least "
    text += f"{least[index]:.3g}"
    if wrong.ndim == 2:
        label = f"episode {index[0]}, {label}"
        text += f" (wrong for {int(wrong.any(axis=1).sum())} of {len(wrong)} episodes)"
    return [Finding("error", "image_statistics", name, label, text)]


def _result(counts: Any, frames: int, info: Info, feature: Feature) -> StatisticsResult:
    """Return the statistics of pixels whose values were counted, [256,3]."""
    import numpy as np

    if not frames:
        raise FormatError(info.path, feature.name, "has no frames, so it has no statistics")
    values = np.arange(256)
    size = int(counts[:, 0].sum())
    # Integers of Python: sums of squares of many pixels need more than 64 bits.
    sums = [int((counts[:, c] * values).sum()) for c in range(3)]
    squares = [int((counts[:, c] * values**2).sum()) for c in range(3)]
    spread = [size * square - total**2 for square, total in zip(squares, sums)]
    seen = [values[counts[:, c] > 0] for c in range(3)]
    return StatisticsResult(
        np.full(3, frames, np.int64),
        np.zeros(3, np.int64),
        np.array([each[0] for each in seen]) / 255.0,
        np.array([each[-1] for each in seen]) / 255.0,
        np.array([total / size for total in sums]) / 255.0,
        np.sqrt(np.array([each / size**2 for each in spread])) / 255.0,
        np.array([[_quantile(counts[:, c], level, size) for c in range(3)] for level in LEVELS])
        / 255.0,
        LEVELS,
    )


def _quantile(counts: Any, level: float, size: int) -> float:
    """Return the quantile that numpy.quantile returns for the values that were counted."""
    import numpy as np

    place = level * (size - 1)
    below = int(place)
    ends = np.cumsum(counts)
    low, high = np.searchsorted(ends, [below, min(below + 1, size - 1)], "right").tolist()
    return float(low + (place - below) * (high - low))


def _stacked(rows: list[StatisticsResult]) -> StatisticsResult:
    import numpy as np

    names = ("count", "nonfinite", "min", "max", "mean", "std", "quantiles")
    arrays: dict[str, Any] = {
        name: np.stack([getattr(row, name) for row in rows]) for name in names
    }
    return StatisticsResult(**arrays, levels=rows[0].levels)
