"""The path of positions, seen from above and in three dimensions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from ..._printable import printable
from .._format_values import number
from .facts import StreamFacts

_TURN, _TILT = math.radians(35), math.radians(25)  # of the first view, as in the script
_MOST = 3  # paths per stream
_HOLDERS = ("position", "translation", "pos", "xyz", "point", "ee_pose", "location")


def positions_in(names: Sequence[str]) -> list[tuple[str, tuple[int, ...]]]:
    """Return names and columns of positions: x, y and perhaps z of one holder."""
    place = {name: i for i, name in enumerate(names)}
    found = []
    for name in names:
        if not (name == "x" or name.endswith((".x", "/x", "_x"))):
            continue
        prefix = name[:-1]
        holder = prefix.rstrip("./_").lower()
        plain = holder == "" or holder.endswith(_HOLDERS)
        turns = any(f"{prefix}{w}" in place for w in ("w", "qw"))
        if not plain or turns or f"{prefix}y" not in place:
            continue
        columns = [place[name], place[f"{prefix}y"]]
        if f"{prefix}z" in place:
            columns.append(place[f"{prefix}z"])
        found.append((prefix.rstrip("./_") or "position", tuple(columns)))
    return found[:_MOST]


def paths_of_samples(stream: StreamFacts) -> str:
    """Return the paths of a stream of a recording."""
    import numpy as np

    if stream.samples is None or not stream.names:
        return ""
    times, values = stream.samples
    parts = []
    for name, columns in positions_in(stream.names):
        points = values[:, list(columns)]
        if len(points) < 2 or not _moves(points):
            continue
        for begin, _ in stream.gaps:  # a path never spans a gap
            at = int(np.searchsorted(times, begin, "right"))
            if 0 < at < len(points):
                points = np.insert(points, at, np.nan, axis=0)
                times = np.insert(times, at, begin)
        parts.append(views(name, points))
    return f'<h4>Paths</h4><div class="paths">{"".join(parts)}</div>' if parts else ""


def _moves(points: Any) -> bool:
    """Whether a path has at least two places."""
    import numpy as np

    good = points[np.isfinite(points).all(axis=1)]
    return len(good) > 1 and bool((good != good[0]).any())


def views(name: str, points: Any, plots: Sequence[int] | None = None) -> str:
    """Return a path [n,2] or [n,3] from above, and in three dimensions if it has them.

    ``plots`` are the plots that hold its channels when another episode is chosen.
    """
    import numpy as np

    spans = np.nanmax(points, axis=0) - np.nanmin(points, axis=0)
    flat = np.column_stack([points[:, 0], -points[:, 1]])
    length = f"{number(spans[0], 3)} x {number(spans[1], 3)}"
    parts = [_view(name, f"{name} from above, x to the right: {length}", flat, points, plots, True)]
    if points.shape[1] == 3:
        x, y, z = points.T
        turned = np.column_stack(
            [
                x * math.cos(_TURN) - y * math.sin(_TURN),
                (x * math.sin(_TURN) + y * math.cos(_TURN)) * math.sin(_TILT) - z * math.cos(_TILT),
            ]
        )
        caption = f"{name} in 3-D, z upward: {length} x {number(spans[2], 3)}"
        parts.append(_view(name, caption, turned, points, plots, False))
    return "".join(parts)


def _view(
    name: str, caption: str, drawn: Any, points: Any, plots: Sequence[int] | None, flat: bool
) -> str:
    import numpy as np

    low, high = np.nanmin(drawn, axis=0), np.nanmax(drawn, axis=0)
    size = 90 / max(float((high - low).max()), 1e-12)
    placed = 50 + (drawn - (low + high) / 2) * size
    good = np.isfinite(placed).all(axis=1)
    path, up = [], True
    for (x, y), there in zip(placed.tolist(), good.tolist()):
        if there:
            path.append(f"{'M' if up else 'L'}{x:.1f} {y:.1f}")
        up = not there
    ends = placed[np.flatnonzero(good)[[0, -1]]]
    if plots is not None:
        spans = np.nanmax(points, axis=0) - np.nanmin(points, axis=0)
        own = ",".join(map(str, plots)) + ("," if len(plots) == 2 else "")
        data = f'data-path="{own}" data-span="{",".join(f"{s:.7g}" for s in spans)}"'
    else:
        data = f'data-points="{_points(points)}"'
    words = escape(printable(caption), quote=True)
    dots = "".join(
        f'<circle class="{css}" cx="{x:.1f}" cy="{y:.1f}" r="2.2"/>'
        for css, (x, y) in zip(("begin", "end"), ends.tolist())
    )
    shape = 'class="path" data-flat=""' if flat else 'class="path deep"'
    return (
        f'<figure><svg {shape} viewBox="0 0 100 100" role="img" {data} aria-label="{words}">'
        f'<path class="trace" vector-effect="non-scaling-stroke" d="{"".join(path)}"/>{dots}</svg>'
        f"<figcaption>{words}; green: the begin</figcaption></figure>"
    )


def _points(points: Any) -> str:
    """Return points as text, shifted to their least values; "-" is a gap."""
    import numpy as np

    low = np.nanmin(points, axis=0)
    parts = []
    for row, there in zip((points - low).tolist(), np.isfinite(points).all(axis=1).tolist()):
        xyz = [*row, 0.0] if len(row) == 2 else row
        parts.append(",".join(f"{value:.4g}" for value in xyz) if there else "-")
    return " ".join(parts)
