"""``report_html``: a recording or a data set as a single, self-contained HTML page."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Union

from ... import __version__
from ..._files.atomic_write import require_place, written_beside
from ..._printable import printable
from .._checks.statistics import check_statistics
from .._format_values import duration, number, plural, size
from .facts import Facts, Intervals, StreamFacts
from .svg import band, bars, spans

STYLE = """
:root{color-scheme:light dark;--paper:#fff;--card:#f6f7f9;--ink:#16191d;--soft:#5a6470;
--line:#dde1e6;--blue:#1769c4;--fill:#1769c433;--red:#c4302b;--amber:#9a6200;--teal:#0b7285;
--green:#1a7f37;--none:#e3e6ea}
@media(prefers-color-scheme:dark){:root{--paper:#101316;--card:#191d22;--ink:#e8ebee;
--soft:#9aa5b1;--line:#2c333b;--blue:#6cb0ff;--fill:#6cb0ff40;--red:#ff7b72;--amber:#e3b341;
--teal:#56d4dd;--green:#57c26d;--none:#2a3037}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","DejaVu Sans",sans-serif}
main{max-width:1120px;margin:0 auto;padding:28px 20px 60px}
h1{font-size:1.6rem;line-height:1.25;margin:0 0 4px;overflow-wrap:anywhere}
h2{font-size:1.1rem;margin:36px 0 10px}
h3{font-size:1rem;margin:0;overflow-wrap:anywhere}
h4{font-size:.8rem;font-weight:600;color:var(--soft);margin:16px 0 4px}
p{margin:0 0 8px}
.soft{color:var(--soft)}
.path{font-size:.85rem;overflow-wrap:anywhere}
.chips{display:flex;flex-wrap:wrap;gap:6px 18px;margin:6px 0 0;padding:0;list-style:none}
.chips li{white-space:nowrap}
.chips b{font-weight:600;font-variant-numeric:tabular-nums}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px 16px;
margin:0 0 14px}
.findings{list-style:none;margin:0;padding:0}
.findings li{display:grid;grid-template-columns:5.2rem 1fr;gap:4px 10px;padding:6px 0;
border-top:1px solid var(--line)}
.findings li:first-child{border-top:0}
.findings span:last-child{overflow-wrap:anywhere}
.error,.warning,.note,.good{font-weight:600}
.error{color:var(--red)}.warning{color:var(--amber)}.note{color:var(--teal)}.good{color:var(--green)}
svg{display:block;width:100%}
.spans{height:14px;background:var(--none);border-radius:3px}
.there{fill:var(--blue)}.gap{fill:var(--red)}
.plot{height:64px;background:var(--paper);border:1px solid var(--line);border-radius:4px}
.channel .plot{height:44px}
.bars{fill:var(--blue)}
.mark{stroke:var(--red);stroke-width:2;stroke-dasharray:6 4;fill:none;
vector-effect:non-scaling-stroke}
.band{fill:var(--fill);stroke:var(--blue);stroke-width:1;stroke-linejoin:round;
vector-effect:non-scaling-stroke}
.axis{display:flex;justify-content:space-between;gap:12px;font-size:.75rem;color:var(--soft);
font-variant-numeric:tabular-nums;margin-top:2px}
.row{display:grid;grid-template-columns:minmax(9rem,16rem) 1fr 7rem;gap:10px;align-items:center;
padding:5px 0}
.row a{overflow-wrap:anywhere}
.row>:last-child{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.channel{display:grid;grid-template-columns:minmax(8rem,14rem) 1fr minmax(13rem,16rem);gap:4px 14px;
align-items:center;padding:5px 0;border-top:1px solid var(--line)}
.channel:first-of-type{border-top:0}
.channel>:first-child{overflow-wrap:anywhere}
.numbers{font-size:.8rem;color:var(--soft);font-variant-numeric:tabular-nums;line-height:1.4}
.numbers b{color:var(--ink);font-weight:500}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums;width:100%}
th{font-weight:600;color:var(--soft);text-align:right;padding:4px 0 4px 16px;white-space:nowrap}
td{text-align:right;padding:4px 0 4px 16px;border-top:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left;padding-left:0}
td.wrong{color:var(--red);font-weight:600}
summary{cursor:pointer;color:var(--blue);margin-top:10px}
a{color:var(--blue);text-decoration:none}
a:hover{text-decoration:underline}
footer{margin-top:40px;color:var(--soft);font-size:.85rem}
@media(max-width:640px){main{padding:18px 14px 40px}h1{font-size:1.3rem}
.findings li{grid-template-columns:1fr}
.row{grid-template-columns:1fr auto}.row>:nth-child(2){grid-column:1/-1;grid-row:2}
td,th{padding-left:8px}table{font-size:.78rem}.row.last>span{display:none}
.channel{grid-template-columns:1fr}.numbers{display:flex;flex-wrap:wrap;gap:0 14px}}
@media print{.card{break-inside:avoid}}
"""


_BYTES = 1_500_000  # of all bands together
_PLOTTED = 64  # channels per stream with a band
_ROWS = 160  # channels per stream
_MOST_PLOTTED, _MOST_ROWS = 1500, 4000  # per page
_GAPS = 12
_FINDINGS = 200
_BARS = 400  # most bars in the plot of episode lengths


def page(facts: Facts) -> str:
    """Return the HTML."""
    overview = facts.overview
    title = os.path.basename(os.path.normpath(overview["path"])) or overview["path"]
    parts = [_head(title, overview), _findings(overview["findings"]), _timelines(facts)]
    if facts.lengths is not None:
        parts.append(_lengths(facts.lengths))
    room = _Room(facts.streams)
    parts += [_stream(i, stream, facts, room) for i, stream in enumerate(facts.streams)]
    parts.append(_left_out(overview["left_out"]))
    body = "\n".join(part for part in parts if part)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="generator" content="RoboCache {__version__}">'
        f'<link rel="icon" href="data:,"><title>{_text(title)}</title><style>{STYLE}</style></head>'
        f"<body><main>\n{body}\n<footer>RoboCache {__version__}</footer></main></body></html>\n"
    )


class _Room:
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


def _text(value: Any) -> str:
    return escape(printable(value), quote=True)


def _chips(pairs: Iterable[tuple[str, str]]) -> str:
    items = "".join(f"<li><b>{_text(value)}</b> {_text(name)}</li>" for value, name in pairs)
    return f'<ul class="chips">{items}</ul>'


def _head(title: str, facts: dict[str, Any]) -> str:
    pairs = [(facts["format"], "")]
    if facts["size_bytes"] is not None:
        pairs.append((size(facts["size_bytes"]), ""))
    if facts["kind"] == "recording":
        if facts["duration"] is not None:
            pairs.append((duration(facts["duration"], _ticks(facts)), "long"))
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
    path = f'<p class="soft path">{_text(facts["path"])}</p>'
    return f"<h1>{_text(title)}</h1>{path}{_chips(pairs)}"


def _ticks(facts: dict[str, Any]) -> bool:
    return bool(facts["time_unit"] == "ticks")


def _findings(findings: Sequence[dict[str, Any]]) -> str:
    if not findings:
        return '<h2>Findings</h2><div class="card"><span class="good">Nothing found.</span></div>'
    items = []
    for found in findings[:_FINDINGS]:
        where = " ".join(part for part in (found["stream"], found["place"]) if part)
        text = f"<b>{_text(where)}</b>: {_text(found['text'])}" if where else _text(found["text"])
        severity = found["severity"]
        items.append(f'<li><span class="{severity}">{severity}</span><span>{text}</span></li>')
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


def _remedies(findings: Sequence[dict[str, Any]]) -> str:
    """Return what to do about errors and warnings, once for each identifier."""
    remedies: dict[str, str] = {}
    for found in findings:
        if found["severity"] != "note":
            remedies.setdefault(found["kind"], found["remedy"])
    items = "".join(
        f"<li><span>{_text(kind)}</span><span>{_text(text)}</span></li>"
        for kind, text in remedies.items()
    )
    return f'<h3>What to do</h3><ul class="findings">{items}</ul>' if items else ""


def _timelines(facts: Facts) -> str:
    """Return all streams over the time of the recording, or all tracks with their types."""
    ticks = _ticks(facts.overview)
    rows = []
    for i, stream in enumerate(facts.streams):
        if facts.lengths is None:
            label = f"{stream.name}: {plural(len(stream.gaps), 'gap')}"
            middle = spans(stream.extent, stream.gaps, facts.whole, label)
        else:
            channels = stream.overview["channels"]
            kind = stream.overview["type"]
            width = "" if channels is None else f", {plural(channels, 'channel')}"
            middle = f"<span>{_text(kind)}{width}</span>"
        link = f'<a href="#s{i}">{_text(stream.name)}</a>'
        rows.append(f'<div class="row">{link}{middle}<span>{_rate(stream, ticks)}</span></div>')
    if facts.lengths is not None:
        return f'<h2>Tracks</h2><div class="card">{"".join(rows)}</div>'
    axis = _axis("0", duration(facts.whole[1], ticks))
    clock = {"header": "by header stamps", "log": "by log times"}.get(
        facts.overview["clock"] or "", ""
    )
    words = f'<p class="soft">Blue: samples; red: gaps; {clock or "by their times"}.</p>'
    last = f'<div class="row last"><span></span>{axis}<span></span></div>'
    return f'<h2>Streams</h2><div class="card">{words}{"".join(rows)}{last}</div>'


def _rate(stream: StreamFacts, ticks: bool) -> str:
    rate = stream.overview["rate"]
    if rate is None or rate != rate:
        return "no rate"
    return f"{number(rate, 4)} {'per tick' if ticks else 'Hz'}"


def _axis(*labels: str) -> str:
    return f'<div class="axis">{"".join(f"<span>{_text(label)}</span>" for label in labels)}</div>'


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
    axis = _axis("episode 0", f"{int(lengths.min())} to {most} frames", f"episode {count - 1}")
    return f'<h2>Lengths of episodes</h2><div class="card">{bars(shown / most, label)}{axis}</div>'


def _stream(index: int, stream: StreamFacts, facts: Facts, room: _Room) -> str:
    overview, ticks = stream.overview, _ticks(facts.overview)
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
    parts = [f"<h3>{_text(stream.name)}</h3>", f'<p class="soft">{_text(overview["type"])}</p>']
    parts.append(_chips(pairs))
    if stream.gaps:
        parts.append(_gaps(stream, facts))
    if stream.intervals is not None:
        parts.append(_histogram(stream.intervals, overview["gap_limit"], ticks))
    parts.append(_channels(stream, facts, room))
    if stream.stored is not None and stream.exact is not None:
        parts.append(_stored(stream))
    heading = "<h2>Each stream</h2>" if index == 0 else ""
    return f'{heading}<section class="card" id="s{index}">{"".join(parts)}</section>'


def _gaps(stream: StreamFacts, facts: Facts) -> str:
    ticks = _ticks(facts.overview)
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
    return (
        f"<h4>Timeline</h4>{bar}{_axis('0', duration(facts.whole[1], ticks))}"
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
    axis = _axis(begin, legend, f"{end}{beyond}")
    title = "Times between samples (logarithmic counts)"
    return f"<h4>{title}</h4>{bars(heights, label, marks)}{axis}"


def _apart(begin: float, end: float, ticks: bool) -> tuple[str, str]:
    """Format two durations with enough digits to differ."""
    for digits in range(3, 10):
        words = duration(begin, ticks, digits), duration(end, ticks, digits)
        if words[0] != words[1]:
            break
    return words


def _channels(stream: StreamFacts, facts: Facts, room: _Room) -> str:
    import numpy as np

    if stream.envelope is None or len(stream.envelope[0]) == 0:
        return ""
    first, last, low, high = _fewer(stream.envelope, room.stretches)
    still = _still(stream)
    moving = [c for c in range(low.shape[1]) if c not in still]
    rows, plots = room.take(len(moving))
    limit = stream.overview["gap_limit"] if facts.lengths is None else None
    breaks = np.zeros(len(first), bool)
    if limit is not None and limit == limit:
        breaks[1:] = first[1:] - last[:-1] > limit
    extent = stream.extent or (float(first[0]), float(last[-1]))
    names = stream.names or tuple(f"[{c}]" for c in range(low.shape[1]))
    parts = []
    for i, c in enumerate(moving[:rows]):
        plot = "<span></span>"
        if i < plots:
            places = first / 2 + last / 2
            label = f"{names[c]} over time"
            plot = band(places, low[:, c], high[:, c], breaks, extent, label)
        parts.append(
            f'<div class="channel"><span>{_text(names[c])}</span>{plot}{_numbers(stream, c)}</div>'
        )
    if len(moving) > rows:
        parts.append(f'<p class="soft">and {plural(len(moving) - rows, "channel")} more</p>')
    if still:
        parts.append(_constant(stream, [names[c] for c in still], still))
    title = "Channels" if facts.lengths is None else "Channels, all episodes one after the other"
    return f"<h4>{title}</h4>{''.join(parts)}"


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
        f"{_text(name)} = {number(stream.exact.min[c])}" for name, c in zip(names[:_ROWS], channels)
    ]
    more = f", and {len(names) - _ROWS} more" if len(names) > _ROWS else ""
    words = "1 channel never changes" if len(names) == 1 else f"{len(names)} channels never change"
    return f"<details><summary>{words}</summary><p>{', '.join(shown)}{more}</p></details>"


def _numbers(stream: StreamFacts, c: int) -> str:
    exact = stream.exact
    if exact is None:
        return "<span></span>"
    parts = [
        f"<span><b>{number(exact.min[c])}</b> to <b>{number(exact.max[c])}</b></span>",
        f"<span>mean {number(exact.mean[c])}, std {number(exact.std[c])}</span>",
    ]
    if exact.nonfinite[c]:
        parts.append(f'<span class="warning">{int(exact.nonfinite[c])} not finite</span>')
    return f'<div class="numbers">{"<br>".join(parts)}</div>'


def _fewer(envelope: tuple[Any, ...], most: int) -> tuple[Any, ...]:
    """Reduce an envelope to at most ``most`` stretches."""
    import numpy as np

    first, last, low, high = envelope
    count = len(first)
    if count <= most:
        return envelope
    starts = np.arange(most) * count // most
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
        return f'<h4>Stored statistics</h4><p class="error">{_text(wrong[0].text)}</p>'
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
        f'<tr><td>{_text(name)}</td><td>{key}</td><td class="wrong">{saved:.9g}</td>'
        f"<td>{true:.9g}</td></tr>"
        for key, name, saved, true in shown
    )
    more = f'<p class="soft">and {len(rows) - len(shown)} more</p>' if len(rows) > _ROWS else ""
    counted = "".join(
        f'<p class="error">{_text(f.text)}</p>' for f in wrong if f.text.startswith("count")
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


def _left_out(left_out: Sequence[dict[str, str]]) -> str:
    if not left_out:
        return ""
    items = "".join(
        f"<li><span>{_text(o['place'])}</span><span>{_text(o['reason'][:300])}</span></li>"
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
    overwrite: bool = False,
) -> dict[str, Any]:
    """Write a report as one HTML file: timelines, rates, gaps, ranges, statistics, findings.

    The page is self-contained, without network access or scripts, and is readable on a phone. Plots
    are envelopes (minimum and maximum of each stretch), so that short events stay visible and the
    page stays below 3 MB for data of any size. Recordings that are not in memory are read once,
    piece by piece.

    Parameters
    ----------
    data
        A :class:`Recording` or :class:`robocache.Episodes`.
    path
        The file to write. It is written under a temporary name and then renamed.
    max_gap, jitter, unit
        As for :func:`robocache.data.checks.check`.
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
    from .facts import facts_of

    target = os.fsdecode(path)
    require_place(target, overwrite)
    facts = facts_of(data, max_gap, jitter, unit)
    with written_beside(target, overwrite) as part:
        with open(part, "w", encoding="utf-8") as file:
            file.write(page(facts))
    return facts.overview
