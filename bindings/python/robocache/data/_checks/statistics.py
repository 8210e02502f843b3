"""Comparison of stored statistics with the exact ones of the data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from .._findings import Finding

if TYPE_CHECKING:
    from ... import StatisticsResult, Track
    from ..._episodes.episodes import Episodes

_OF_RANGE = 1e-3  # of the channel's range: error of float32 and histograms
_OF_SIZE = 1e-5  # of the largest value: error of float32 sums
_OF_SQUARE = 2e-5  # of the largest square: error of LeRobot's variances of single episodes
_LEAST = 1e-12
_MOMENTS = ("min", "max", "mean", "std")


def check_stored(
    episodes: Episodes, name: str, stored: StatisticsResult | None, exact: StatisticsResult
) -> list[Finding]:
    """Check the stored statistics of a track and of its episodes; the former may aggregate these.

    ``stored``: the statistics of all rows; None: only episodes have stored statistics.
    """
    track = episodes[name]
    by_episode = episodes._stored_by_episode(name)

    def aggregated() -> dict[str, dict[str, Any]]:
        return {} if by_episode is None else aggregates_of(track, by_episode)

    found = []
    if stored is not None:
        found += check_statistics(name, stored, exact, track.names, aggregated)
    if by_episode is not None and not any(finding.severity == "error" for finding in found):
        found += check_by_episode(name, by_episode, track)
    return found


def check_by_episode(name: str, stored: StatisticsResult, track: Track) -> list[Finding]:
    """Compare stored statistics [E,D] of the episodes of a track with its rows.

    LeRobot v2.1 computes the statistics of a data set from these, and newer versions do so when
    they merge or split data sets. Quantiles are not compared: LeRobot takes them from a histogram.
    """
    import numpy as np

    from ..._arguments.to_numpy import on_host
    from .._episode_methods import exact_of

    exact = exact_of(track, quantiles=(), per_episode=True)
    moments = {key: on_host(getattr(exact, key)) for key in ("count", *_MOMENTS)}
    if tuple(stored.mean.shape) != moments["mean"].shape:
        text = f"stored for {stored.mean.shape[-1]} channels per episode; the data have "
        return [Finding("error", "statistics", name, "", f"{text}{moments['mean'].shape[-1]}")]
    limit = _limit(moments["min"], moments["max"])
    counts = np.broadcast_to(
        moments["count"].max(axis=1, initial=0)[:, None], moments["mean"].shape
    )
    errors = {"count": (stored.count >= 0) & (stored.count != counts)}
    for key in _MOMENTS:
        saved = getattr(stored, key)
        if not np.isnan(saved).all():  # a file without this statistic
            errors[key] = _differs(saved, moments[key], limit)
    if "std" in errors:  # of a channel that is constant in an episode, it has few correct digits
        size = np.maximum(np.abs(moments["min"]), np.abs(moments["max"]))
        errors["std"] &= _differs(stored.std**2, moments["std"] ** 2, _OF_SQUARE * size**2)
    episodes = np.zeros(len(moments["mean"]), bool)
    for places in errors.values():
        episodes |= places.any(axis=1)
    if not episodes.any():
        return []
    e = int(np.argmax(episodes))
    key = next(key for key, places in errors.items() if places[e].any())
    true = counts if key == "count" else moments[key]
    channel, label = _worst(getattr(stored, key)[e], true[e], errors[key][e], track.names)
    saved, right = getattr(stored, key)[e][channel], true[e][channel]
    text = f"{key} is stored as {saved:.9g}, but the rows of the episode have {right:.9g} "
    text += f"({int(episodes.sum())} of {len(episodes)} episodes have wrong statistics)"
    place = f"episode {e}" if key == "count" else f"episode {e}, {label}"
    return [Finding("error", "statistics", name, place, text)]


def _limit(low: Any, high: Any) -> Any:
    """Return the largest error that rounding and histograms explain."""
    import numpy as np

    size = np.maximum(np.abs(low), np.abs(high))
    return _OF_RANGE * (high - low) + _OF_SIZE * size + _LEAST


def check_statistics(
    name: str,
    stored: Any,
    exact: Any,
    labels: Any = None,
    aggregated: Callable[[], dict[str, dict[str, Any]]] | None = None,
) -> list[Finding]:
    """Compare two :class:`robocache.StatisticsResult` of one track; findings quote both values.

    ``aggregated`` returns quantiles [D] by rule and level, such as "q01": aggregates of the
    quantiles of episodes. Stored quantiles that follow one of the rules cause only a note.
    """
    import numpy as np

    if tuple(stored.mean.shape) != tuple(exact.mean.shape):
        text = f"stored for {stored.mean.shape[-1]} channels; the data have {exact.mean.shape[-1]}"
        return [Finding("error", "statistics", name, "", text)]
    found = []
    count = int(np.max(stored.count))
    if count >= 0 and count != int(np.max(exact.count)):
        text = f"count is stored as {count}, but {int(np.max(exact.count))} values are finite"
        found.append(Finding("error", "statistics", name, "count", text))
    limit = _limit(exact.min, exact.max)
    for key in _MOMENTS:
        saved, true = getattr(stored, key), getattr(exact, key)
        if count < 0 and np.isnan(saved).all():
            continue  # files without counts, such as openpi's, have no ranges either
        wrong = _differs(saved, true, limit)
        if wrong.any():
            found.append(_finding(name, key, saved, true, wrong, labels))
    pairs = {}
    for level in stored.levels:
        if any(abs(level - known) < _LEAST for known in exact.levels):
            key = _key(level)
            pairs[key] = (stored.quantile(level), exact.quantile(level))
    wrong_of = {key: _differs(saved, true, limit) for key, (saved, true) in pairs.items()}
    wrong_of = {key: wrong for key, wrong in wrong_of.items() if wrong.any()}
    if wrong_of and aggregated is not None:
        rule, left = _best_rule(pairs, wrong_of, aggregated(), limit)
        explained = {key: wrong_of[key] & ~left[key] for key in wrong_of}
        if any(each.any() for each in explained.values()):
            found.append(_note(name, rule, pairs, explained, labels))
        wrong_of = {key: wrong for key, wrong in left.items() if wrong.any()}
    for key, wrong in wrong_of.items():
        found.append(_finding(name, key, *pairs[key], wrong, labels))
    return found


def _differs(saved: Any, true: Any, limit: Any) -> Any:
    import numpy as np

    with np.errstate(invalid="ignore"):
        return ~(np.abs(saved - true) <= limit) & np.isfinite(true)  # NaN is wrong


def _worst(saved: Any, true: Any, wrong: Any, labels: Any) -> tuple[int, str]:
    """Return the channel with the largest error, and its name."""
    import numpy as np

    at = int(np.argmax(np.where(wrong, np.abs(saved - true), 0.0)))
    return at, labels[at] if labels is not None else f"channel {at}"


def _finding(name: str, key: str, saved: Any, true: Any, wrong: Any, labels: Any) -> Finding:
    at, label = _worst(saved, true, wrong, labels)
    more = int(wrong.sum()) - 1
    text = f"{key} is stored as {saved[at]:.9g}, but the data have {true[at]:.9g}"
    text += f" (and {more} more channels)" if more else ""
    return Finding("error", "statistics", name, label, text)


# ---- quantiles aggregated from the quantiles of episodes ----------------------------------------

_MEAN = "are the means of the quantiles of the episodes, weighted by rows (LeRobot 0.4 to 0.6.1)"
_ENVELOPE = (
    "are the smallest of the quantiles of the episodes up to q50, and the largest above "
    "(LeRobot after 0.6.1)"
)


def _key(level: float) -> str:
    """Return LeRobot's name of a quantile, such as q01."""
    return f"q{round(100 * level):02d}"


def aggregates_of(track: Track, stored: StatisticsResult) -> dict[str, dict[str, Any]]:
    """Return LeRobot's aggregates [D] of the stored quantiles [E,Q,D] of episodes, by rule and key.

    The result is empty if these are not quantiles of the episodes.
    """
    import numpy as np

    if not _hold(track, stored):
        return {}
    counts = stored.count.max(axis=1, initial=0).astype(np.float64)
    weights = counts[:, None] / max(1.0, float(counts.sum()))
    mean, envelope = {}, {}
    for level in stored.levels:
        key, each = _key(level), stored.quantile(level)
        mean[key] = (weights * each).sum(axis=0)
        envelope[key] = each.min(axis=0) if level <= 0.5 else each.max(axis=0)
    return {_MEAN: mean, _ENVELOPE: envelope}


def _hold(track: Track, stored: StatisticsResult) -> bool:
    """Whether each quantile lies between the sorted values next to it, or close to them.

    LeRobot takes quantiles from a histogram, which interpolates differently from numpy.quantile.
    """
    import numpy as np

    from ..._arguments.to_numpy import on_host

    values = on_host(track.values)
    cuts = on_host(track.episode_offsets).tolist()
    if tuple(stored.mean.shape) != (len(cuts) - 1, values.shape[1]):
        return False
    levels = [(level, stored.quantile(level)) for level in stored.levels]
    for e, (begin, end) in enumerate(zip(cuts, cuts[1:])):
        rows = np.sort(values[begin:end].astype(np.float64, copy=False), axis=0)  # NaN at the end
        rows = np.where(np.isfinite(rows), rows, np.nan)
        count = np.isfinite(rows).sum(axis=0)
        if not count.all() or (count != end - begin).any():
            return False
        slack = _OF_RANGE * (rows[-1] - rows[0]) + _OF_SIZE * np.abs(rows).max(axis=0) + _LEAST
        for level, each in levels:
            place = level * (len(rows) - 1)
            low = rows[max(0, int(np.floor(place)) - 1)] - slack
            high = rows[min(len(rows) - 1, int(np.ceil(place)) + 1)] + slack
            if not ((each[e] >= low) & (each[e] <= high)).all():
                return False
    return True


def _best_rule(
    pairs: dict[str, Any], wrong: dict[str, Any], rules: dict[str, dict[str, Any]], limit: Any
) -> tuple[str, dict[str, Any]]:
    """Return the rule that explains most of the quantiles, and the quantiles that remain wrong."""
    best, left = "", wrong
    for rule, made in rules.items():
        rest = {
            key: each & _differs(pairs[key][0], made[key], limit) if key in made else each
            for key, each in wrong.items()
        }
        if sum(int(each.sum()) for each in rest.values()) < sum(
            int(each.sum()) for each in left.values()
        ):
            best, left = rule, rest
    return best, left


def _note(
    name: str, rule: str, pairs: dict[str, Any], explained: dict[str, Any], labels: Any
) -> Finding:
    import numpy as np

    keys = [key for key, each in explained.items() if each.any()]

    def error(key: str) -> float:
        saved, true = pairs[key]
        return float(np.max(np.where(explained[key], np.abs(saved - true), 0.0)))

    key = max(keys, key=error)
    saved, true = pairs[key]
    at, label = _worst(saved, true, explained[key], labels)
    text = f"{', '.join(keys)} {rule}: {key} of {label} is stored as {saved[at]:.9g}, but "
    text += f"the quantile of all rows is {true[at]:.9g}"
    return Finding("note", "quantiles_aggregated", name, "", text)
