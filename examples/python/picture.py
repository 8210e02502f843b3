"""A picture of before and after: raw samples at their own stamps, the same streams on one clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Polygon
from matplotlib.ticker import MaxNLocator

from page import STYLE, UNKNOWN, WIDTH, draw_title, save
from recordings import Aligned, Panel, Recording, StreamData
from report import Origin, clock_words, origins

# Okabe and Ito's colours, which colour-blind readers can distinguish; the shapes repeat them.
_MARKS = {
    Origin.INTERPOLATED: ("interpolated", "o", "#0072B2"),
    Origin.PICKED: ("sample picked", "D", "#009E73"),
    Origin.EXACT: ("exact sample", "s", "#CC79A7"),
}
_RAW = "#3C3C3C"
_REPEATED = "#D55E00"
# Where nothing is known: what the legend says, and how it looks.
_NOTHING: dict[Origin, tuple[str, dict[str, Any]]] = {
    Origin.GAP: (
        "gap: mask 0",
        {"facecolor": UNKNOWN, "edgecolor": "#ABABAB", "hatch": "////", "linewidth": 0.0},
    ),
    Origin.OUTSIDE: (
        "outside the samples: mask 0",
        {"facecolor": "#FCEBD2", "edgecolor": "#EFC27A", "hatch": "....", "linewidth": 0.0},
    ),
}

# Inches.
_LEFT, _RIGHT, _BETWEEN = 1.6, 0.2, 0.35
_TOP, _BOTTOM, _PANEL, _ABOVE_PANEL, _BAR, _ZOOM = 1.35, 0.55, 0.95, 0.41, 0.21, 0.95


def draw_picture(path: Path, recording: Recording, aligned: Aligned) -> None:
    with plt.rc_context(STYLE):
        figure, overview, panels = _lay_out(recording)
        _draw_overview(overview, recording, aligned)
        for (before, after), (stream, panel) in zip(panels, _panels(recording)):
            _draw_before(before, recording, stream, panel)
            _draw_after(after, recording, stream, panel, aligned)
            before.set_ylabel(panel.axis_label)
            before.yaxis.set_label_coords(-0.155, 0.5)
        for axis in panels[-1]:
            axis.tick_params(labelbottom=True)
            axis.set_xlabel("seconds since the start")
        _draw_zoom(figure, overview, panels[0], recording)
        _draw_titles(figure, overview, recording, aligned)
        _draw_legend(figure, recording, aligned)
        save(figure, path)


def _panels(recording: Recording) -> list[tuple[StreamData, Panel]]:
    return [(stream, panel) for stream in recording.streams for panel in stream.panels]


def _lay_out(recording: Recording) -> tuple[Figure, list[Axes], list[tuple[Axes, Axes]]]:
    """An overview on top, a row for each panel of a stream; before left, after right."""
    rows = len(_panels(recording))
    overview_height = _BAR * len(recording.streams)
    height = _TOP + overview_height + _ZOOM + rows * (_PANEL + _ABOVE_PANEL) + _BOTTOM
    width = (WIDTH - _LEFT - _RIGHT - _BETWEEN) / 2
    figure = plt.figure(figsize=(WIDTH, height))

    def add(column: int, top: float, tall: float, **shared: Any) -> Axes:
        left = _LEFT + column * (width + _BETWEEN)
        box = (left / WIDTH, 1 - (top + tall) / height, width / WIDTH, tall / height)
        return figure.add_axes(box, **shared)

    overview = [add(0, _TOP, overview_height)]
    overview.append(add(1, _TOP, overview_height, sharex=overview[0], sharey=overview[0]))
    panels = []
    for row in range(rows):
        top = _TOP + overview_height + _ZOOM + row * (_PANEL + _ABOVE_PANEL)
        before = add(0, top, _PANEL)
        after = add(1, top, _PANEL, sharex=before, sharey=before)
        before.tick_params(labelbottom=False)
        after.tick_params(labelbottom=False, labelleft=False)
        begin, length = recording.window_s
        before.set_xlim(begin - 0.012 * length, begin + 1.012 * length)
        before.yaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
        before.ticklabel_format(axis="y", useOffset=False)
        panels.append((before, after))
    return figure, overview, panels


def _draw_overview(overview: list[Axes], recording: Recording, aligned: Aligned) -> None:
    """Draw the whole recording: where each stream has samples, and the origin of each tick."""
    before, after = overview
    ticks = recording.seconds(aligned.clock)
    edges = _tick_edges(ticks)
    for row, stream in enumerate(recording.streams):
        spans = [(begin, end - begin) for begin, end in _covered_spans(recording, stream)]
        before.broken_barh(spans, (row - 0.32, 0.64), facecolor=_RAW, linewidth=0, snap=False)
        by_origin: dict[Origin, list[tuple[float, float]]] = {}
        for begin, end, origin in _runs(origins(stream, aligned.clock, aligned.masks[stream.name])):
            span = edges[begin], edges[end] - edges[begin]
            by_origin.setdefault(origin, []).append(span)
        for origin, spans in by_origin.items():
            look: dict[str, Any] = (
                _NOTHING[origin][1]
                if origin in _NOTHING
                else {"facecolor": _MARKS[origin][2], "linewidth": 0}
            )
            after.broken_barh(spans, (row - 0.32, 0.64), snap=False, **look)
    before.set_yticks(
        range(len(recording.streams)), [stream.name for stream in recording.streams], fontsize=11
    )
    before.set_ylim(len(recording.streams) - 0.5, -0.5)
    before.set_xlim(0, float(recording.seconds(recording.stop)))
    before.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
    after.tick_params(labelleft=False)
    for axis in overview:
        axis.tick_params(axis="y", length=0)
        axis.tick_params(axis="x", labelsize=10.5)
        axis.spines["left"].set_visible(False)


def _draw_before(axis: Axes, recording: Recording, stream: StreamData, panel: Panel) -> None:
    times, values = recording.seconds(stream.times), panel.of(stream.values)
    for begin, end in _gap_spans(recording, stream):
        _shade(axis, begin, end, Origin.GAP, f"gap\n{(end - begin) * 1e3:.0f} ms")
    _shade(axis, 0.0, times[0], Origin.OUTSIDE, "no sample yet")
    _shade(axis, times[-1], float(recording.seconds(recording.stop)), Origin.OUTSIDE, "no sample")
    inside = _inside(axis, times)
    axis.plot(times[inside], values[inside], ".", color=_RAW, markersize=4.5)
    _set_value_range(axis, values[inside])
    repeated = np.flatnonzero(np.diff(stream.times, prepend=stream.times[0] - 1) == 0)
    _draw_stamps(axis, times[inside], _RAW, 0.09)
    _draw_stamps(axis, np.intersect1d(times[repeated], times[inside]), _REPEATED, 0.17)

    facts = recording.report().streams[stream.name]
    gaps = "no gap" if facts.gaps == 0 else "1 gap" if facts.gaps == 1 else f"{facts.gaps} gaps"
    axis.set_title(
        f"$\\bf{{{_math_text(stream.name)}}}$   {stream.nominal_hz:.0f} Hz, "
        f"jitter {facts.jitter * 1e3:.2g} ms, {gaps}"
    )


def _draw_after(
    axis: Axes, recording: Recording, stream: StreamData, panel: Panel, aligned: Aligned
) -> None:
    ticks, values = recording.seconds(aligned.clock), panel.of(aligned.values[stream.name])
    origin = origins(stream, aligned.clock, aligned.masks[stream.name])
    edges = _tick_edges(ticks)
    for begin, end, what in _runs(origin):
        if what in _NOTHING:
            _shade(axis, edges[begin], edges[end], what, "mask 0")
    inside = _inside(axis, ticks)
    for what, (_, marker, colour) in _MARKS.items():
        chosen = inside & (origin == what)
        axis.plot(
            ticks[chosen], values[chosen], marker, color=colour, markersize=3.6, markeredgewidth=0
        )
    # As far as they stay apart, lines for the ticks of the clock, which run through all the panels.
    if np.count_nonzero(inside) <= 110:
        axis.vlines(
            ticks[inside],
            0,
            1,
            transform=axis.get_xaxis_transform(),
            color="#DCE6EF",
            linewidth=0.7,
            zorder=0.5,
        )
    _draw_stamps(axis, ticks[inside], _MARKS[Origin.INTERPOLATED][2], 0.09)
    valid = np.isin(origin, (Origin.INTERPOLATED, Origin.PICKED, Origin.EXACT)).mean()
    axis.set_title(f"{stream.method_of(panel.channel)}, {valid:.1%} valid")


def _shade(axis: Axes, begin: float, end: float, why: Origin, words: str) -> None:
    """Mark a span without data, with a label if there is room."""
    left, right = axis.get_xlim()
    begin, end = max(begin, left), min(end, right)
    if begin >= end:
        return
    axis.axvspan(begin, end, zorder=0, **_NOTHING[why][1])
    if end - begin > 0.12 * (right - left):
        axis.text(
            (begin + end) / 2,
            0.56,
            words,
            transform=axis.get_xaxis_transform(),
            ha="center",
            va="center",
            fontsize=10,
            color="#444444",
            bbox={"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": "none"},
        )


def _draw_stamps(axis: Axes, times: np.ndarray, colour: str, height: float) -> None:
    """A short stroke for each stamp along the lower edge: even strokes are an even clock."""
    axis.vlines(times, 0, height, transform=axis.get_xaxis_transform(), color=colour, linewidth=0.8)


def _draw_zoom(
    figure: Figure, overview: list[Axes], panels: tuple[Axes, Axes], recording: Recording
) -> None:
    """Draw a light cone from the span in the overview to the panels that show it."""
    begin, length = recording.window_s
    to_figure = figure.transFigure.inverted()
    for whole, part in zip(overview, panels):
        whole.axvspan(
            begin, begin + length, facecolor="none", edgecolor="#111111", linewidth=1.2, zorder=3
        )
        narrow = whole.get_xaxis_transform().transform([(begin, 0.0), (begin + length, 0.0)])
        wide = part.transAxes.transform([(1.0, 1.36), (0.0, 1.36)])
        cone = to_figure.transform(np.concatenate([narrow, wide]))
        figure.add_artist(Polygon(cone, facecolor="#F1F1F1", edgecolor="none", zorder=-1))


def _draw_titles(
    figure: Figure, overview: list[Axes], recording: Recording, aligned: Aligned
) -> None:
    count = len(recording.streams)
    draw_title(figure, _LEFT, f"{count} sensor streams, one clock, one call", recording.title)
    heads = (
        "Before: samples at their own stamps",
        f"After: {clock_words(recording, aligned.clock)}",
    )
    for axis, head in zip(overview, heads):
        axis.set_title(head, fontsize=14, pad=9)


def _draw_legend(figure: Figure, recording: Recording, aligned: Aligned) -> None:
    met = {
        what
        for stream in recording.streams
        for what in np.unique(origins(stream, aligned.clock, aligned.masks[stream.name]))
    }
    repeats = any(facts.repeats for facts in recording.report().streams.values())
    entries: list[Artist] = [
        Line2D([], [], marker=".", linestyle="", color=_RAW, markersize=9, label="raw sample")
    ]
    if repeats:
        entries.append(
            Line2D(
                [],
                [],
                marker="|",
                linestyle="",
                color=_REPEATED,
                markersize=11,
                label="repeated stamp",
            )
        )
    entries += [
        Line2D([], [], marker=marker, linestyle="", color=colour, markersize=7, label=label)
        for what, (label, marker, colour) in _MARKS.items()
        if what in met
    ]
    entries += [
        Patch(label=label, **look) for what, (label, look) in _NOTHING.items() if what in met
    ]
    figure.legend(
        handles=entries,
        loc="lower center",
        ncols=len(entries),
        frameon=False,
        fontsize=11,
        handletextpad=0.5,
        columnspacing=1.4,
        bbox_to_anchor=(0.5, 0.0),
        borderaxespad=0.3,
    )


def _gap_spans(recording: Recording, stream: StreamData) -> list[tuple[float, float]]:
    times = recording.seconds(stream.times)
    gaps = np.flatnonzero(np.diff(stream.times) > recording.ticks(stream.max_gap_s))
    return [(times[i], times[i + 1]) for i in gaps]


def _covered_spans(recording: Recording, stream: StreamData) -> list[tuple[float, float]]:
    """Return the spans without gaps from the first sample to the last."""
    times, gaps = recording.seconds(stream.times), _gap_spans(recording, stream)
    begins = [times[0]] + [end for _, end in gaps]
    ends = [begin for begin, _ in gaps] + [times[-1]]
    return list(zip(begins, ends))


def _tick_edges(ticks: np.ndarray) -> np.ndarray:
    """[T + 1]: the middles between ticks, so that tick i reaches from edge i to edge i + 1."""
    middles = (ticks[1:] + ticks[:-1]) / 2
    return np.concatenate([ticks[:1], middles, ticks[-1:]])


def _runs(origin: np.ndarray) -> list[tuple[int, int, Origin]]:
    """Stretches of one origin as (first, one past the last, origin)."""
    cuts = np.concatenate([[0], np.flatnonzero(np.diff(origin)) + 1, [len(origin)]])
    return [(begin, end, Origin(origin[begin])) for begin, end in zip(cuts[:-1], cuts[1:])]


def _inside(axis: Axes, times: np.ndarray) -> np.ndarray:
    begin, end = axis.get_xlim()
    return (times >= begin) & (times <= end)


def _set_value_range(axis: Axes, values: np.ndarray) -> None:
    """Room below for the strokes of the stamps, and a little above."""
    low, high = (values.min(), values.max()) if len(values) else (0.0, 1.0)
    room = (high - low) or 1.0
    axis.set_ylim(low - 0.35 * room, high + 0.12 * room)


def _math_text(name: str) -> str:
    return name.replace("_", r"\ ")
