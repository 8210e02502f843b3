"""Small plots as SVG: some hundred bytes to some kilobytes each, without a fixed width."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from ..._printable import printable
from .._format_values import number

WIDE, HIGH = 1000, 100  # of all plots; they are stretched to the page


def svg(body: str, css: str, label: str, data: str = "") -> str:
    """Return a picture as wide as the page allows; ``label`` describes it as text."""
    return (
        f'<svg class="{css}" viewBox="0 0 {WIDE} {HIGH}" preserveAspectRatio="none" role="img" '
        f'{data}aria-label="{escape(printable(label), quote=True)}">{body}</svg>'
    )


def apart(low: float, high: float, digits: int = 4) -> tuple[str, str]:
    """Format two numbers with enough digits to differ, if they do."""
    texts = number(low, digits), number(high, digits)
    while texts[0] == texts[1] and low < high and digits < 17:
        digits += 1
        texts = number(low, digits), number(high, digits)
    return texts


def plot(
    body: str, label: str, group: str, name: str, bounds: tuple[float, float] | None, more: str = ""
) -> str:
    """Return a plot with its value axis; plots of one group have one zoom and one cursor."""
    values = "" if bounds is None else f'data-v="{bounds[0]:.7g},{bounds[1]:.7g}" '
    data = f'data-g="{group}" data-name="{escape(printable(name), quote=True)}" {values}{more}'
    bottom, top = ("", "") if bounds is None else apart(*bounds)
    if top == bottom:
        bottom = ""
    axis = f'<span class="y"><span>{top}</span><span>{bottom}</span></span>'
    return f'<div class="box">{axis}{svg(body, "plot", label, data)}</div>'


def spans(
    extent: tuple[float, float] | None,
    gaps: Sequence[tuple[float, float]],
    whole: tuple[float, float],
    label: str,
) -> str:
    """Return a bar of an extent within the whole time, with gaps at least as wide as visible."""
    scale = WIDE / max(whole[1] - whole[0], 1e-30)

    def bar(begin: float, end: float, css: str, least: float = 0.0) -> str:
        left, right = (begin - whole[0]) * scale, (end - whole[0]) * scale
        width = max(right - left, least)
        left = min(left, WIDE - width)
        return f'<rect class="{css}" x="{left:.1f}" width="{width:.1f}" height="{HIGH}"/>'

    body = ""
    if extent is not None:
        body = bar(*extent, "there", 3.0)
        body += "".join(bar(*gap, "gap", 2.0) for gap in _merged(gaps, 2.0 / scale))
    return svg(body, "spans", label, 'data-g="t" ')


def _merged(gaps: Sequence[tuple[float, float]], near: float) -> list[tuple[float, float]]:
    """Join gaps, in time order, that would be drawn as one."""
    merged: list[tuple[float, float]] = []
    for begin, end in gaps:
        if merged and begin - merged[-1][1] < near:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def bars(heights: Any, label: str, marks: Sequence[float] = ()) -> str:
    """Return bars from 0 to 1; ``marks``: vertical lines at parts of the width."""
    width = WIDE / max(len(heights), 1)
    parts = []
    for i, height in enumerate(heights):
        if height > 0:
            top = HIGH * (1 - height)
            parts.append(f"M{i * width:.0f} {HIGH}V{top:.0f}h{width * 0.9:.1f}V{HIGH}z")
    body = f'<path class="bars" d="{"".join(parts)}"/>'
    for mark in marks:
        body += f'<path class="mark" d="M{mark * WIDE:.0f} 0V{HIGH}"/>'
    return svg(body, "plot", label)


def bounds_of(*ranges: Any) -> tuple[float, float] | None:
    """Return the least and the largest finite value of arrays; None without finite values."""
    import numpy as np

    good = [each[np.isfinite(each)] for each in ranges]
    good = [each for each in good if each.size]
    if not good:
        return None
    return float(min(each.min() for each in good)), float(max(each.max() for each in good))


def band(
    places: Any,
    low: Any,
    high: Any,
    breaks: Any,
    extent: tuple[float, float],
    bounds: tuple[float, float] | None = None,
) -> str:
    """Return the outline of the area between low and high [n] over places [n].

    ``breaks`` begin a new piece; ``bounds`` are the values at the edges of the plot, by default
    the least and the largest.
    """
    import numpy as np

    good = np.isfinite(low) & np.isfinite(high)
    bounds = bounds or bounds_of(low, high)
    if not good.any() or bounds is None:
        return ""
    bottom, top = bounds
    if max(abs(bottom), abs(top)) > 1e300:  # sums would overflow
        low, high, bottom, top = low / 4, high / 4, bottom / 4, top / 4
    room = (top - bottom) or 1.0
    x = np.rint((places - extent[0]) * (WIDE / max(extent[1] - extent[0], 1e-30))).astype(int)
    y_low = np.rint(95 - 90 * ((np.where(good, low, bottom) - bottom) / room)).astype(int)
    y_high = np.rint(95 - 90 * ((np.where(good, high, bottom) - bottom) / room)).astype(int)
    if top == bottom:
        y_low[:] = y_high[:] = HIGH // 2
    pieces = np.cumsum(breaks | ~good)
    parts = []
    for piece in np.unique(pieces[good]):
        rows = np.flatnonzero((pieces == piece) & good)
        parts.append(_outline(x[rows], y_low[rows], y_high[rows]))
    return "".join(parts)


def holes(gaps: Sequence[tuple[float, float]], whole: tuple[float, float]) -> str:
    """Return shades over gaps, at least as wide as visible."""
    scale = WIDE / max(whole[1] - whole[0], 1e-30)
    parts = []
    for begin, end in _merged(gaps, 1.0 / scale):
        left, width = (begin - whole[0]) * scale, (end - begin) * scale
        parts.append(
            f'<rect class="hole" x="{left:.1f}" width="{max(width, 1.0):.1f}" height="{HIGH}"/>'
        )
    return "".join(parts)


def _outline(x: Any, low: Any, high: Any) -> str:
    """Return the path along the upper edge and back along the lower one, in relative steps."""
    points = list(zip(x.tolist(), high.tolist())) + list(zip(x.tolist(), low.tolist()))[::-1]
    path = f"M{points[0][0]} {points[0][1]}l"
    steps = []
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        if (x0, y0) != (x1, y1):
            steps.append(f"{x1 - x0} {y1 - y0}")
    return path + (" ".join(steps) or "0 0").replace(" -", "-") + "z"
