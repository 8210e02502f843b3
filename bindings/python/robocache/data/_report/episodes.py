"""The sections about single episodes: unusual ones, and one with actions over states and paths."""

from __future__ import annotations

import json
import string
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..._printable import plural
from .facts import Facts
from .frames import strips
from .paths import positions_in, views
from .streams import escaped, time_axis
from .svg import band, bounds_of, plot

_PLOTS = 32
_SERIES_BYTES = 700_000  # of all episodes together
_STRETCHES = 160  # per episode and channel
_LEAST = 24
_LISTED = 60
_STATES = ("observation.state", "state", "obs/joint_pos", "observations/qpos")
_ACTIONS = ("action", "actions")
_DIGITS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "-_"  # as in the script


@dataclass(frozen=True)
class Series:
    """A channel in a plot: drawn by itself, or as an action over a state."""

    track: str
    channel: int
    css: str  # "band", or "band action" over it


@dataclass(frozen=True)
class Plot:
    """A plot of one or two channels over the rows of an episode."""

    name: str
    series: tuple[Series, ...]


def unusual_section(facts: Facts) -> str:
    """Return the list of unusual episodes."""
    if facts.lengths is None or len(facts.lengths) == 0:
        return ""
    if not facts.unusual:
        return (
            '<h2>Unusual episodes</h2><div class="card"><span class="good">None: no episode is '
            "much shorter or longer than the others, static, or has jumps or outliers.</span></div>"
        )
    items = []
    for each in facts.unusual[:_LISTED]:
        link = f'<a href="#episode" data-episode="{each.episode}">episode {each.episode}</a>'
        items.append(
            f'<li><span class="note">{each.kind}</span>'
            f"<span>{link}: {escaped(each.text)}</span></li>"
        )
    more = len(facts.unusual) - _LISTED
    if more > 0:
        items.append(f"<li><span></span><span>and {more} more</span></li>")
    count = len({each.episode for each in facts.unusual})
    head = f"<h2>Unusual episodes: {count} of {len(facts.lengths)}</h2>"
    return f'{head}<div class="card"><ul class="findings">{"".join(items)}</ul></div>'


def episode_section(facts: Facts) -> str:
    """Return the section about one episode, and the data of the others that can be chosen."""
    if facts.lengths is None or not facts.tracks:
        return ""
    plots = _plots(facts)
    there = [e for e, length in enumerate(facts.lengths.tolist()) if length > 0]
    if not plots or not there:
        return ""
    ranges = [_range(facts, each) for each in plots]
    shown, most = _shown(facts, there, sum(len(each.series) for each in plots))
    first = facts.unusual[0].episode if facts.unusual else shown[0]
    first = first if first in shown else shown[0]
    length = int(facts.lengths[first])
    parts = []
    for i, (each, bounds) in enumerate(zip(plots, ranges)):
        body = "".join(
            f'<path class="series {series.css}" '
            f'd="{_outline(facts, series, first, most, bounds)}"/>'
            for series in each.series
        )
        shape = plot(
            body, f"{each.name} in one episode", "e", each.name, bounds, f'data-plot="{i}" '
        )
        parts.append(f'<div class="channel two"><span>{escaped(each.name)}</span>{shape}</div>')
    ticks = time_axis((0.0, float(max(length - 1, 1))), lambda place: f"{place:.0f}", "e")
    parts.append(f'<div class="channel two"><span></span>{ticks}</div>')
    legend = ""
    if any(len(each.series) == 2 for each in plots):
        legend = '<p class="soft"><span class="key"></span>state &nbsp; '
        legend += '<span class="key orange"></span>action</p>'
    note = ""
    if len(shown) < len(there):
        note = f'<p class="soft">{len(shown)} of {plural(len(there), "episode")} can be chosen</p>'
    content = json.dumps(_data(facts, plots, ranges, shown, most, first), separators=(",", ":"))
    content = content.replace("<", "\\u003c")
    return (
        f'<h2 id="episode">One episode</h2><div class="card"><div id="choose"></div>'
        f'<h3 id="which">Episode {first}: {length} rows</h3>{note}{legend}{"".join(parts)}'
        f"{_paths(facts, plots, first, most)}{strips(facts.source, first)}</div>"
        f'<script type="application/json" id="episodes">{content}</script>'
    )


def _plots(facts: Facts) -> list[Plot]:
    """Return actions over their states, and the other channels that are numbers."""
    names = {stream.name: stream.names for stream in facts.streams}
    state = next((name for name in _STATES if name in facts.tracks), None)
    action = next((name for name in _ACTIONS if name in facts.tracks), None)
    plots: list[Plot] = []
    paired: set[tuple[str, int]] = set()
    if state is not None and action is not None:
        wide = facts.tracks[action].shape[1]
        own, other = names[action], names[state]
        by_name = bool(own) and bool(other) and set(own) <= set(other)
        if by_name or wide == facts.tracks[state].shape[1]:
            for c in range(wide):
                s = other.index(own[c]) if by_name else c
                label = own[c] if own else f"[{c}]"
                series = (Series(state, s, "band"), Series(action, c, "band action"))
                plots.append(Plot(label, series))
                paired |= {(state, s), (action, c)}
    for name, values in facts.tracks.items():
        if name in ("task_index", "valid"):
            continue
        for c in range(values.shape[1]):
            if (name, c) not in paired:
                label = names[name][c] if names.get(name) else f"[{c}]"
                shown = name if values.shape[1] == 1 else f"{name} {label}"
                plots.append(Plot(shown, (Series(name, c, "band"),)))
    return plots[:_PLOTS]


def _shown(facts: Facts, there: list[int], series: int) -> tuple[list[int], int]:
    """Return the episodes that can be chosen, and the stretches of each."""
    room = _SERIES_BYTES // max(4 * series, 1)  # stretches of all episodes together
    longest = int(facts.lengths.max())
    most = min(_STRETCHES, longest)
    if room < most * len(there):
        most = max(min(most, _LEAST), min(most, room // len(there)))
    count = max(1, min(len(there), room // max(most, 1)))
    if count == len(there):
        return there, most
    unusual = [e for e in dict.fromkeys(each.episode for each in facts.unusual) if e in set(there)]
    chosen = set(unusual[: count // 2 + 1])
    for i in range(count - len(chosen)):
        chosen.add(there[i * len(there) // max(count - len(chosen), 1)])
    return sorted(chosen), most


def _rows(facts: Facts, episode: int) -> slice:
    begin = int(facts.lengths[:episode].sum())
    return slice(begin, begin + int(facts.lengths[episode]))


def _range(facts: Facts, each: Plot) -> tuple[float, float] | None:
    return bounds_of(*(facts.tracks[s.track][:, s.channel] for s in each.series))


def _stretches(facts: Facts, series: Series, episode: int, most: int) -> tuple[Any, Any]:
    """Return the lows and highs of a channel in an episode."""
    import numpy as np

    values = facts.tracks[series.track][_rows(facts, episode), series.channel].astype(np.float64)
    values = np.where(np.isfinite(values), values, np.nan)
    if len(values) <= most:
        return values, values
    starts = np.arange(most) * len(values) // most
    return np.fmin.reduceat(values, starts), np.fmax.reduceat(values, starts)


def _outline(facts: Facts, series: Series, episode: int, most: int, bounds: Any) -> str:
    import numpy as np

    low, high = _stretches(facts, series, episode, most)
    breaks = np.zeros(len(low), bool)
    return band(np.arange(len(low)), low, high, breaks, (0, max(len(low) - 1, 1)), bounds)


def _data(
    facts: Facts,
    plots: Sequence[Plot],
    ranges: Sequence[Any],
    shown: Sequence[int],
    most: int,
    first: int,
) -> dict[str, Any]:
    """Return the curves of all episodes that can be chosen, for the script."""
    why: dict[int, list[str]] = {}
    for each in facts.unusual:
        if each.kind not in why.setdefault(each.episode, []):
            why[each.episode].append(each.kind)
    return {
        "episodes": list(shown),
        "first": list(shown).index(first),
        "lengths": [int(facts.lengths[e]) for e in shown],
        "offsets": [_rows(facts, e).start for e in shown],
        "why": {e: ", ".join(kinds) for e, kinds in why.items()},
        "plots": [
            [[_code(*_stretches(facts, s, e, most), bounds) for s in each.series] for e in shown]
            for each, bounds in zip(plots, ranges)
        ],
    }


def _code(low: Any, high: Any, bounds: tuple[float, float] | None) -> str:
    """Return lows and highs as text: 12 bits each, from the least to the largest value."""
    import numpy as np

    bottom, top = bounds or (0.0, 0.0)
    scale = 4095 / (top - bottom) if top > bottom else 0.0
    same = bool(np.array_equal(low, high, equal_nan=True))
    parts = ["l" if same else "b"]
    for a, b in zip(low.tolist(), high.tolist()):
        if a != a:
            parts.append("~~" if same else "~~~~")
            continue
        for value in (a,) if same else (a, b):
            level = round((value - bottom) * scale) if scale else 2047
            parts.append(_DIGITS[level // 64] + _DIGITS[level % 64])
    return "".join(parts)


def _paths(facts: Facts, plots: Sequence[Plot], first: int, most: int) -> str:
    import numpy as np

    place = {(s.track, s.channel): i for i, each in enumerate(plots) for s in each.series[:1]}
    parts = []
    for stream in facts.streams:
        if stream.name not in facts.tracks or not stream.names:
            continue
        for name, columns in positions_in(stream.names):
            own = [place.get((stream.name, c)) for c in columns]
            values = facts.tracks[stream.name][_rows(facts, first)][:, list(columns)]
            if None in own or not np.isfinite(values).all(axis=1).any():
                continue
            points = values.astype(np.float64)
            step = max(1, -(-len(points) // most))
            shown = [each for each in own if each is not None]
            parts.append(views(f"{stream.name} {name}", points[::step], shown))
    return f'<h4>Paths</h4><div class="paths">{"".join(parts)}</div>' if parts else ""
