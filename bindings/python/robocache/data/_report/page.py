"""``report_html``: a recording or a data set as a single, self-contained HTML page."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

from ... import __version__
from ..._files.atomic_write import require_place, written_beside
from ..._printable import plural
from .._format_values import duration, number, size
from .commands import command_of
from .episodes import episode_section, unusual_section
from .facts import Facts, StreamFacts
from .frames import cameras_section
from .script import SCRIPT
from .streams import Room, axis, chips, escaped, in_ticks, place_words, section, time_axis
from .style import STYLE
from .svg import bars, spans

_FINDINGS = 200
_BARS = 400  # most bars in the plot of episode lengths


def page(facts: Facts) -> str:
    """Return the HTML."""
    overview = facts.overview
    title = os.path.basename(os.path.normpath(overview["path"])) or overview["path"]
    parts = [_head(title, overview), _findings(facts), _timelines(facts)]
    if facts.lengths is not None:
        parts += [_lengths(facts.lengths), unusual_section(facts), episode_section(facts)]
    else:
        parts.append(cameras_section(facts))
    room = Room(facts.streams)
    parts += [section(i, stream, facts, room) for i, stream in enumerate(facts.streams)]
    parts.append(_left_out(overview["left_out"]))
    body = "\n".join(part for part in parts if part)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="generator" content="RoboCache {__version__}">'
        f'<link rel="icon" href="data:,"><title>{escaped(title)}</title>'
        f"<style>{STYLE}</style></head>"
        f"<body><main {_axes(facts)}>\n{body}\n"
        f"<footer>RoboCache {__version__}</footer></main>\n"
        f"<script>{SCRIPT}</script></body></html>\n"
    )


def _axes(facts: Facts) -> str:
    """Return the extents of the axes: of all plots, and of the plots of one episode."""
    unit = "row" if facts.lengths is not None else "tick" if in_ticks(facts.overview) else "s"
    axes = f'data-t="{facts.whole[0]:.9g},{facts.whole[1]:.9g},{unit}"'
    return axes if facts.lengths is None else f'{axes} data-e="0,1,row"'


def _head(title: str, facts: dict[str, Any]) -> str:
    pairs = [(facts["format"], "")]
    if facts["size_bytes"] is not None:
        pairs.append((size(facts["size_bytes"]), ""))
    if facts["kind"] == "recording":
        if facts["duration"] is not None:
            pairs.append((duration(facts["duration"], in_ticks(facts)), "long"))
        if facts["begin_utc"]:
            pairs.append((facts["begin_utc"], "UTC"))
        pairs.append((str(len(facts["streams"])), "streams"))
    else:
        pairs += [(str(facts["episodes"]), "episodes"), (str(facts["frames"]), "frames")]
        if facts["rate"] is not None:
            pairs.append((f"{facts['rate']:g}", "Hz"))
        if facts["tasks"]:
            pairs.append((str(facts["tasks"]), "task" if facts["tasks"] == 1 else "tasks"))
        pairs.append((str(len(facts["streams"])), "tracks"))
    path = f'<p class="soft path">{escaped(facts["path"])}</p>'
    return f"<h1>{escaped(title)}</h1>{path}{chips(pairs)}"


def _findings(facts: Facts) -> str:
    findings = facts.overview["findings"]
    if not findings:
        return '<h2>Findings</h2><div class="card"><span class="good">Nothing found.</span></div>'
    items = []
    for found in findings[:_FINDINGS]:
        severity = found["severity"]
        command = command_of(found, facts.overview)
        shown = f"<br><code>{escaped(command)}</code>" if command else ""
        words = f"{_where(found, facts)}{escaped(found['text'])}{shown}"
        items.append(f'<li><span class="{severity}">{severity}</span><span>{words}</span></li>')
    if len(findings) > _FINDINGS:
        items.append(f"<li><span></span><span>and {len(findings) - _FINDINGS} more</span></li>")
    counts = [
        plural(sum(found["severity"] == severity for found in findings), severity)
        for severity in ("error", "warning", "note")
        if any(found["severity"] == severity for found in findings)
    ]
    head = f"<h2>Findings: {', '.join(counts)}</h2>"
    listed = f'<ul class="findings">{"".join(items)}</ul>'
    return f'{head}<div class="card">{listed}{_remedies(findings)}</div>'


def _where(found: dict[str, Any], facts: Facts) -> str:
    """Return the stream and the place of a finding, as a link to them."""
    where = " ".join(part for part in (found["stream"], found["place"]) if part)
    if not where:
        return ""
    words = f"<b>{escaped(where)}</b>"
    episode = re.search(r"episode (\d+)", f"{found['place']} {found['text']}")
    if facts.lengths is not None and episode and int(episode[1]) < len(facts.lengths):
        return f'<a href="#episode" data-episode="{int(episode[1])}">{words}</a>: '
    for i, stream in enumerate(facts.streams):
        if stream.name != found["stream"]:
            continue
        at = ""
        if found["kind"] == "gaps" and stream.gaps:
            begin, end = max(stream.gaps, key=lambda gap: gap[1] - gap[0])
            at = f' data-at="{begin:.9g},{end:.9g}"'
        return f'<a href="#s{i}"{at}>{words}</a>: '
    return f"{words}: "


def _remedies(findings: Sequence[dict[str, Any]]) -> str:
    """Return what to do about errors and warnings, once for each identifier."""
    remedies: dict[str, str] = {}
    for found in findings:
        if found["severity"] != "note":
            remedies.setdefault(found["kind"], found["remedy"])
    items = "".join(
        f"<li><span>{escaped(kind)}</span><span>{_with_code(text)}</span></li>"
        for kind, text in remedies.items()
    )
    return f'<h3>What to do</h3><ul class="findings remedies">{items}</ul>' if items else ""


def _with_code(text: str) -> str:
    """Return a sentence as HTML, with its parts between backticks as code."""
    parts = escaped(text).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))


def _timelines(facts: Facts) -> str:
    """Return all streams over the time of the recording, or all tracks with their types."""
    ticks = in_ticks(facts.overview)
    rows = []
    for i, stream in enumerate(facts.streams):
        if facts.lengths is None:
            label = f"{stream.name}: {plural(len(stream.gaps), 'gap')}"
            middle = spans(stream.extent, stream.gaps, facts.whole, label)
        else:
            channels = stream.overview["channels"]
            kind = stream.overview["type"]
            width = "" if channels is None else f", {plural(channels, 'channel')}"
            middle = f"<span>{escaped(kind)}{width}</span>"
        link = f'<a href="#s{i}">{escaped(stream.name)}</a>'
        rows.append(f'<div class="row">{link}{middle}<span>{_rate(stream, ticks)}</span></div>')
    if facts.lengths is not None:
        return f'<h2>Tracks</h2><div class="card">{"".join(rows)}</div>'
    ticks_below = time_axis(facts.whole, place_words(facts), inset=False)
    clock = {"header": "by header stamps", "log": "by log times"}.get(
        facts.overview["clock"] or "", ""
    )
    words = f'<p class="soft">Blue: samples; red: gaps; {clock or "by their times"}.</p>'
    last = f'<div class="row last"><span></span>{ticks_below}<span></span></div>'
    return f'<h2>Streams</h2><div class="card">{words}{"".join(rows)}{last}</div>'


def _rate(stream: StreamFacts, ticks: bool) -> str:
    rate = stream.overview["rate"]
    if rate is None or rate != rate:
        return "no rate"
    return f"{number(rate, 4)} {'per tick' if ticks else 'Hz'}"


def _lengths(lengths: Any) -> str:
    """Return a bar per episode; if there are many, one for the longest of several."""
    import numpy as np

    count = len(lengths)
    if count == 0:
        return ""
    shown = lengths
    if count > _BARS:
        shown = np.maximum.reduceat(lengths, np.arange(_BARS) * count // _BARS)
    most = max(int(lengths.max()), 1)
    label = f"lengths of {count} episodes, {int(lengths.min())} to {most} frames"
    below = axis("episode 0", f"{int(lengths.min())} to {most} frames", f"episode {count - 1}")
    return f'<h2>Lengths of episodes</h2><div class="card">{bars(shown / most, label)}{below}</div>'


def _left_out(left_out: Sequence[dict[str, str]]) -> str:
    if not left_out:
        return ""
    items = "".join(
        f"<li><span>{escaped(o['place'])}</span><span>{escaped(o['reason'][:300])}</span></li>"
        for o in left_out[:_FINDINGS]
    )
    more = len(left_out) - _FINDINGS
    last = f"<p>and {more} more</p>" if more > 0 else ""
    return (
        f'<h2>Omitted: {len(left_out)}</h2><div class="card"><details><summary>show</summary>'
        f'<ul class="findings left">{items}</ul>{last}</details></div>'
    )


if TYPE_CHECKING:
    from ..._episodes.episodes import Episodes
    from .._recording import Recording

    Data = Union[Recording, Episodes]


def report_html(
    data: Data,
    path: str | os.PathLike[str],
    *,
    max_gap: float | None = None,
    jitter: float = 0.2,
    unit: str | None = None,
    rate: float | None = None,
    span: str = "intersection",
    accept_guesses: bool = False,
    as_numbers: bool = False,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Write a report as one HTML file: timelines, rates, gaps, ranges, statistics, findings.

    The page is self-contained: it loads nothing, is readable on a phone and without JavaScript.
    With JavaScript, all plots have one cursor and one zoom, and each episode can be shown. Plots
    are envelopes (minimum and maximum of each stretch), so that short events stay visible and the
    page stays below 4 MB for data of any size. Recordings that are not in memory are read once,
    piece by piece; with ``rate``, they are also loaded.

    Data sets have a list of unusual episodes, and actions over states. Frames of cameras, of one
    episode or of a bag, are shown if the packages that decode them are installed:
    ``pip install 'robocache[video]'``. A bag is read once more for them.

    Parameters
    ----------
    data
        A :class:`Recording` or :class:`robocache.Episodes`.
    path
        The file to write. It is written under a temporary name and then renamed.
    max_gap, jitter, unit
        As for :func:`robocache.data.checks.check`.
    rate
        Rows per second: of a recording, also show the streams after :func:`align` at this rate.
    span, accept_guesses, as_numbers
        With ``rate``: as for :func:`align`.
    overwrite
        Whether to replace an existing file.

    Returns
    -------
    dict
        The output of ``robocache inspect --json``, as plain data.

    Raises
    ------
    FileExistsError
        The path exists, and ``overwrite`` is not set.
    OSError
        Writing failed; a previous file is still there.
    """
    from .facts import add_alignment, facts_of

    target = os.fsdecode(path)
    require_place(target, overwrite)
    facts = facts_of(data, max_gap, jitter, unit)
    if rate is not None:
        options = {"span": span, "accept_guesses": accept_guesses, "as_numbers": as_numbers}
        add_alignment(facts, data, rate, max_gap=max_gap, unit=unit, **options)
    with written_beside(target, overwrite) as part:
        with open(part, "w", encoding="utf-8") as file:
            file.write(page(facts))
    return facts.overview
