"""The sections of the page about one stream each: regularity, channels, stored statistics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from ..._printable import plural, printable
from .._checks.statistics import check_statistics
from .._format_values import duration, number
from .envelope import split_at
from .facts import Facts, Intervals, StreamFacts
from .paths import paths_of_samples
from .svg import WIDE, apart, band, bars, bounds_of, holes, plot, spans

_BYTES = 1_300_000  # of all bands together
_PLOTTED = 64  # channels per stream with a band
_ROWS = 160  # channels per stream
_MOST_PLOTTED, _MOST_ROWS = 1500, 4000  # per page
_GAPS = 12
_TICKS = 5  # labels of a time axis


def escaped(value: Any) -> str:
    """Return a value as HTML."""
    return escape(printable(value), quote=True)


def chips(pairs: Iterable[tuple[str, str]]) -> str:
    """Return short facts: values and names."""
    items = "".join(f"<li><b>{escaped(value)}</b> {escaped(name)}</li>" for value, name in pairs)
    return f'<ul class="chips">{items}</ul>'


def in_ticks(facts: dict[str, Any]) -> bool:
    """Whether the unit of the times is not known."""
    return bool(facts["time_unit"] == "ticks")


def axis(*labels: str) -> str:
    """Return labels below a plot."""
    return (
        f'<div class="axis">{"".join(f"<span>{escaped(label)}</span>" for label in labels)}</div>'
    )


def time_axis(whole: tuple[float, float], words: Any, group: str = "t", inset: bool = True) -> str:
    """Return the axis of times or rows below plots; ``inset``: they have value axes."""
    places = [whole[0] + (whole[1] - whole[0]) * i / (_TICKS - 1) for i in range(_TICKS)]
    labels = "".join(f"<span>{escaped(words(place))}</span>" for place in places)
    shape = f'<div class="axis" data-g="{group}">{labels}</div>'
    return f'<div class="span">{shape}</div>' if inset else shape


def place_words(facts: Facts) -> Any:
    """Return a function that formats a place on the axis of all plots."""
    if facts.lengths is not None:
        return lambda place: f"{place:.0f}"
    ticks = in_ticks(facts.overview)
    return lambda place: "0" if place == 0 else duration(place, ticks)


class Room:
    """The space on the page: how many channels are shown, and with how many stretches."""

    def __init__(self, streams: Sequence[StreamFacts]) -> None:
        self.rows, self.plots = _MOST_ROWS, _MOST_PLOTTED
        widths = [
            stream.envelope[2].shape[1] - len(_still(stream))
            for stream in streams
            if stream.envelope is not None and len(stream.envelope[0])
        ]
        plotted = min(sum(min(width, _PLOTTED) for width in widths), _MOST_PLOTTED)
        self.stretches = int(min(max(_BYTES / max(10 * plotted, 1), 24), 320))

    def take(self, channels: int) -> tuple[int, int]:
        """Return the number of channels of a stream to show, and to plot."""
        rows = min(channels, _ROWS, self.rows)
        plots = min(rows, _PLOTTED, self.plots)
        self.rows -= rows
        self.plots -= plots
        return rows, plots


def section(index: int, stream: StreamFacts, facts: Facts, room: Room) -> str:
    overview, ticks = stream.overview, in_ticks(facts.overview)
    pairs = [(str(overview["samples"]), "samples")]
    if overview["channels"] is not None:
        pairs.append((str(overview["channels"]), "channels"))
    if overview["rate"] is not None and overview["rate"] == overview["rate"]:
        pairs += [
            (number(overview["rate"], 4), "per tick" if ticks else "Hz"),
            (duration(overview["period"], ticks), "period"),
            (duration(overview["jitter"], ticks), "jitter"),
            (str(overview["gaps"]), "gap" if overview["gaps"] == 1 else "gaps"),
            (duration(overview["longest_gap"], ticks), "longest"),
        ]
        for name in ("repeats", "disorder"):
            if overview[name]:
                pairs.append((str(overview[name]), {"disorder": "going back"}.get(name, name)))
    parts = [f"<h3>{escaped(stream.name)}</h3>", f'<p class="soft">{escaped(overview["type"])}</p>']
    parts.append(chips(pairs))
    if stream.gaps:
        parts.append(_gaps(stream, facts))
    if stream.intervals is not None:
        parts.append(_histogram(stream.intervals, overview["gap_limit"], ticks))
    parts.append(_channels(index, stream, facts, room))
    parts.append(paths_of_samples(stream))
    if stream.stored is not None and stream.exact is not None:
        parts.append(_stored(stream))
    heading = "<h2>Each stream</h2>" if index == 0 else ""
    return f'{heading}<section class="card" id="s{index}">{"".join(parts)}</section>'


def _gaps(stream: StreamFacts, facts: Facts) -> str:
    ticks = in_ticks(facts.overview)
    longest = sorted(stream.gaps, key=lambda gap: gap[0] - gap[1])[:_GAPS]
    rows = [
        f"<tr><td>{begin:.10g}{'' if ticks else 's'}</td>"
        f"<td>{duration(end - begin, ticks)}</td></tr>"
        for begin, end in longest
    ]
    many = f"the longest {len(longest)} of {len(stream.gaps)}" if len(stream.gaps) > _GAPS else ""
    words = many or plural(len(stream.gaps), "gap")
    bar = spans(
        stream.extent, stream.gaps, facts.whole, f"{stream.name}: {plural(len(stream.gaps), 'gap')}"
    )
    below = time_axis(facts.whole, place_words(facts), inset=False)
    return (
        f"<h4>Timeline</h4>{bar}{below}"
        f"<details><summary>{words}</summary><table><tr><th>at</th><th>for</th></tr>"
        f"{''.join(rows)}</table></details>"
    )


def _histogram(intervals: Intervals, limit: float | None, ticks: bool) -> str:
    import numpy as np

    heights = np.log1p(intervals.counts) / max(float(np.log1p(intervals.counts.max())), 1e-9)
    marks = []
    if limit is not None and intervals.begin <= limit <= intervals.end:
        marks.append((limit - intervals.begin) / (intervals.end - intervals.begin))
    ends = f"{duration(intervals.begin, ticks)} to {duration(intervals.end, ticks)}"
    label = f"times between samples, {ends}"
    beyond = f", {intervals.beyond} longer" if intervals.beyond else ""
    legend = "" if not marks else f"dashed: a gap from {duration(limit, ticks)} on"
    begin, end = _apart(intervals.begin, intervals.end, ticks)
    below = axis(begin, legend, f"{end}{beyond}")
    title = "Times between samples (logarithmic counts)"
    return f"<h4>{title}</h4>{bars(heights, label, marks)}{below}"


def _apart(begin: float, end: float, ticks: bool) -> tuple[str, str]:
    """Format two durations with enough digits to differ."""
    for digits in range(3, 10):
        words = duration(begin, ticks, digits), duration(end, ticks, digits)
        if words[0] != words[1]:
            break
    return words


def _channels(index: int, stream: StreamFacts, facts: Facts, room: Room) -> str:
    import numpy as np

    if stream.envelope is None or len(stream.envelope[0]) == 0:
        return ""
    wide = (facts.whole[1] - facts.whole[0]) / WIDE
    gaps = [gap for gap in stream.gaps if gap[1] - gap[0] >= wide]  # others cannot be seen
    first, last, low, high = split_at(_fewer(stream.envelope, room.stretches, gaps), gaps)
    still = _still(stream)
    moving = [c for c in range(low.shape[1]) if c not in still]
    rows, plots = room.take(len(moving))
    limit = stream.overview["gap_limit"] if facts.lengths is None else None
    breaks = np.zeros(len(first), bool)
    if limit is not None and limit == limit:
        breaks[1:] = first[1:] - last[:-1] > limit
    names = stream.names or tuple(f"[{c}]" for c in range(low.shape[1]))
    parts = []
    shades = _shades(index, stream, facts)
    places = _places(first, last, breaks)
    for i, c in enumerate(moving[:rows]):
        shown = "<span></span>"
        if i < plots:
            body, bounds = _curves(stream, c, (places, low[:, c], high[:, c], breaks), facts.whole)
            use = f'<use href="#g{index}"/>' if shades else ""
            label = f"{names[c]} over time"
            shown = plot(f"{use}{body}", label, "t", names[c], bounds)
        name = f"<span>{escaped(names[c])}</span>"
        parts.append(f'<div class="channel">{name}{shown}{_numbers(stream, c)}</div>')
    if plots and moving:
        ticks = time_axis(facts.whole, place_words(facts))
        parts.append(f'<div class="channel"><span></span>{ticks}<span></span></div>')
    if len(moving) > rows:
        parts.append(f'<p class="soft">and {plural(len(moving) - rows, "channel")} more</p>')
    if still:
        parts.append(_constant(stream, [names[c] for c in still], still))
    title = "Channels" if facts.lengths is None else "Channels, all episodes one after the other"
    return f"{shades}<h4>{title}</h4>{_legend(stream, facts)}{''.join(parts)}"


def _places(first: Any, last: Any, breaks: Any) -> Any:
    """Return where each stretch is drawn: in its middle, or where a piece begins or ends."""
    import numpy as np

    places = first / 2 + last / 2
    ends = np.append(breaks[1:], True)
    begins = breaks.copy()
    begins[:1] = True
    places = np.where(begins & ~ends, first, places)
    return np.where(ends & ~begins, last, places)


def _shades(index: int, stream: StreamFacts, facts: Facts) -> str:
    """Return the shades of the gaps, which all plots of the stream use."""
    if not stream.gaps:
        return ""
    body = holes(stream.gaps, facts.whole)
    shape = f'<g id="g{index}">{body}</g>'
    return f'<svg class="none" width="0" height="0" aria-hidden="true"><defs>{shape}</defs></svg>'


def _curves(
    stream: StreamFacts, c: int, kept: tuple[Any, ...], whole: tuple[float, float]
) -> tuple[str, Any]:
    """Return the curves of a channel, and the values at the edges of its plot."""
    import numpy as np

    places, low, high, breaks = kept
    bounds = bounds_of(low, high)
    after = ""
    name = stream.names[c] if stream.names else ""
    if stream.aligned is not None and name in stream.aligned[2]:
        times, values, names = stream.aligned
        column = values[:, names.index(name)]
        bounds = bounds_of(low, high, column)
        apart = np.zeros(len(times), bool)
        outline = band(times, column, column, apart, whole, bounds)
        after = f'<path class="after" d="{outline}"/>'
    return (
        f'<path class="band" d="{band(places, low, high, breaks, whole, bounds)}"/>{after}',
        bounds,
    )


def _legend(stream: StreamFacts, facts: Facts) -> str:
    parts = []
    if stream.gaps:
        parts.append('<span class="key none"></span>gaps')
    if stream.aligned is not None:
        parts.insert(0, '<span class="key"></span>as recorded')
        parts.append(f'<span class="key orange"></span>{escaped(facts.alignment)}')
    return f'<p class="soft">{" &nbsp; ".join(parts)}</p>' if parts else ""


def _still(stream: StreamFacts) -> list[int]:
    """Return the channels that never change."""
    exact = stream.exact
    if exact is None:
        return []
    same: list[int] = ((exact.count > 1) & (exact.min == exact.max)).nonzero()[0].tolist()
    return same


def _constant(stream: StreamFacts, names: list[str], channels: list[int]) -> str:
    assert stream.exact is not None
    shown = [
        f"{escaped(name)} = {number(stream.exact.min[c])}"
        for name, c in zip(names[:_ROWS], channels)
    ]
    more = f", and {len(names) - _ROWS} more" if len(names) > _ROWS else ""
    words = "1 channel never changes" if len(names) == 1 else f"{len(names)} channels never change"
    return f"<details><summary>{words}</summary><p>{', '.join(shown)}{more}</p></details>"


def _numbers(stream: StreamFacts, c: int) -> str:
    exact = stream.exact
    if exact is None:
        return "<span></span>"
    low, high = apart(float(exact.min[c]), float(exact.max[c]), 5)
    parts = [
        f"<span><b>{low}</b> to <b>{high}</b></span>",
        f"<span>mean {number(exact.mean[c])}, std {number(exact.std[c])}</span>",
    ]
    if exact.nonfinite[c]:
        parts.append(f'<span class="warning">{int(exact.nonfinite[c])} not finite</span>')
    return f'<div class="numbers">{"<br>".join(parts)}</div>'


def _fewer(
    envelope: tuple[Any, ...], most: int, gaps: Sequence[tuple[float, float]]
) -> tuple[Any, ...]:
    """Reduce an envelope to ``most`` stretches, and one more per gap: none spans a gap."""
    import numpy as np

    first, last, low, high = envelope
    count = len(first)
    if count <= most:
        return envelope
    starts = np.arange(most) * count // most
    if gaps:
        after = np.searchsorted(first, [end for _, end in gaps], "left")
        starts = np.union1d(starts, after[after < count])
    ends = np.append(starts[1:], count) - 1
    return (
        first[starts],
        last[ends],
        np.fmin.reduceat(low, starts, axis=0),
        np.fmax.reduceat(high, starts, axis=0),
    )


def _stored(stream: StreamFacts) -> str:
    """Return a table of stored statistics that differ from the exact ones."""
    import numpy as np

    stored, exact = stream.stored, stream.exact
    assert stored is not None and exact is not None
    wrong = check_statistics(stream.name, stored, exact, stream.names or None)
    if tuple(stored.mean.shape) != tuple(exact.mean.shape):
        return f'<h4>Stored statistics</h4><p class="error">{escaped(wrong[0].text)}</p>'
    if not wrong:
        words = '<p><span class="good">They match the data.</span></p>'
        return f"<h4>Stored statistics</h4>{words}"
    keys = ["min", "max", "mean", "std"]
    pairs = [(key, getattr(stored, key), getattr(exact, key)) for key in keys]
    for level in stored.levels:
        if any(abs(level - known) < 1e-12 for known in exact.levels):
            name = f"q{round(100 * level):02d}"
            pairs.append((name, stored.quantile(level), exact.quantile(level)))
    names = stream.names or tuple(f"[{c}]" for c in range(len(exact.mean)))
    rows = []
    for key, saved, true in pairs:
        with np.errstate(invalid="ignore"):
            apart = np.abs(saved - true)
        for c in np.flatnonzero(apart > 0).tolist():
            alone = check_statistics(stream.name, _only(stored, c), _only(exact, c))
            if any(f.text.startswith(f"{key} ") for f in alone):
                rows.append((key, names[c], saved[c], true[c]))
    shown = rows[:_ROWS]
    cells = "".join(
        f'<tr><td>{escaped(name)}</td><td>{key}</td><td class="wrong">{saved:.9g}</td>'
        f"<td>{true:.9g}</td></tr>"
        for key, name, saved, true in shown
    )
    more = f'<p class="soft">and {len(rows) - len(shown)} more</p>' if len(rows) > _ROWS else ""
    counted = "".join(
        f'<p class="error">{escaped(f.text)}</p>' for f in wrong if f.text.startswith("count")
    )
    head = "<tr><th>channel</th><th></th><th>stored</th><th>exact</th></tr>"
    return (
        f"<h4>Stored statistics that do not match the data</h4>{counted}"
        f'<div class="wide"><table>{head}{cells}</table></div>{more}'
    )


def _only(result: Any, c: int) -> Any:
    """Return the statistics of one channel."""
    import dataclasses

    arrays = {
        name: getattr(result, name)[c : c + 1]
        for name in ("count", "nonfinite", "min", "max", "mean", "std")
    }
    return dataclasses.replace(result, **arrays, quantiles=result.quantiles[:, c : c + 1])
