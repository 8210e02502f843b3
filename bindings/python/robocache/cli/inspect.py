"""``robocache inspect``: the contents of a recording or a data set, and what is wrong with it."""

from typing import Annotated, Any, Optional

import typer

from .._printable import plural
from ..data import PointCloud, PointClouds, checks
from ..data._findings import MEANINGS
from ..data._format_values import duration, number, size
from ..data._report.overview import kind_lines, overview, times_lines
from . import _display as show
from ._common import (
    AsJson,
    DataPath,
    Definitions,
    Failure,
    FollowLinks,
    Fps,
    IgnoreTopics,
    Kind,
    MaxUnpacked,
    Streams,
    Time,
    Unit,
    narrowed,
    no_such,
    open_data,
    with_kinds,
)
from ._inspect_clouds import inspect_clouds
from ._messages import in_cli_words

KINDS = tuple(kind for kind in MEANINGS if kind != "damage")
CHECKS = ("warnings", "errors")
_MOST = 12  # of a list
_LONG = 150  # characters of one of its items


def inspect(
    path: DataPath,
    check: Annotated[
        Optional[str],
        typer.Option(
            "--check",
            metavar="[=errors]",
            help="Exit with 1 if there are errors or warnings; with --check=errors, only for "
            "errors.",
        ),
    ] = None,
    ignore: Annotated[
        Optional[list[str]],
        typer.Option(
            help="Identifier of findings to ignore, such as gaps or unread (--json shows them). "
            "Repeatable.",
            metavar="IDENTIFIER",
        ),
    ] = None,
    stream: Streams = None,
    ignore_topic: IgnoreTopics = None,
    max_gap: Annotated[
        Optional[float],
        typer.Option(
            help="Report longer intervals as gaps; default: 2.5 periods.",
            metavar="SECONDS",
            min=0,
        ),
    ] = None,
    jitter: Annotated[
        float, typer.Option(help="Allowed variation of intervals, as a part of the period.", min=0)
    ] = 0.2,
    everything: Annotated[bool, typer.Option("--all", help="Do not shorten lists.")] = False,
    kind: Kind = None,
    unit: Unit = None,
    fps: Fps = None,
    time: Time = None,
    definition: Definitions = None,
    follow_links: FollowLinks = False,
    max_unpacked: MaxUnpacked = None,
    as_json: AsJson = False,
) -> None:
    """Show the contents of a recording or a data set, and find what is wrong with it.

    Gaps, jitter, stamps that repeat or go back, clocks that drift, channels that never change, NaN,
    quaternions that are not of unit length, messages that were not read, stored statistics that
    do not match the data. Damaged files are read as far as possible; damage makes the exit code 1
    even without --check.
    """
    if check not in (None, *CHECKS):
        raise typer.BadParameter(
            f"{check!r}: expected --check or --check=errors", param_hint="--check"
        )
    for each in ignore or ():
        if each == "damage":
            raise typer.BadParameter("damage cannot be ignored", param_hint="--ignore")
        if each not in KINDS:
            text = no_such(each, "finding", each, KINDS, "")
            raise typer.BadParameter(
                f"{text} Identifiers: {', '.join(KINDS)}", param_hint="--ignore"
            )
    source = open_data(
        path,
        damaged="keep",
        unit=unit,
        fps=fps,
        definitions=definition,
        follow_links=follow_links,
        max_unpacked=max_unpacked,
        time=time,
        ignore_topics=ignore_topic,
    )
    source = with_kinds(source, kind)
    if isinstance(source, (PointCloud, PointClouds)):
        if stream:
            raise Failure("--stream works on recordings and data sets; this is a point cloud")
        facts = inspect_clouds(source)
    else:
        source = narrowed(source, stream)
        facts = overview(
            source, checks.survey(source, max_gap=max_gap, jitter=jitter, unit=unit), unit
        )
    left = [f for f in facts["findings"] if f["kind"] not in (ignore or ())]
    facts["findings"] = left
    bad = [f for f in left if f["severity"] != "note"]
    facts["ok"] = not bad
    if as_json:
        show.print_json(facts)
    else:
        _print(facts, everything)
    fails = [f for f in bad if f["severity"] == "error"] if check == "errors" else bad
    if any(f["kind"] == "damage" for f in left) or (check is not None and fails):
        raise typer.Exit(1)


def _print(facts: dict[str, Any], everything: bool) -> None:
    out = show.Page()
    out.print(facts["path"], style="bold", wrap=False)
    out.items(head_parts(facts))
    out.print()
    if facts["kind"] == "clouds":
        rows = [_cloud_row(name, stream) for name, stream in facts["streams"].items()]
        out.print(show.table(("file", "points", "finite", "extent m", "fields"), rows))
    else:
        ticks = facts["time_unit"] == "ticks"
        rows = [_row(name, stream, ticks) for name, stream in facts["streams"].items()]
        head = ["stream" if facts["kind"] == "recording" else "track", "samples", "ch"]
        head += ["rate" if ticks else "Hz", "period", "jitter", "gaps", "longest", "cover"]
        out.print(show.table(head, rows))
        if facts["clock"] is not None:
            out.print(f"by {'header stamps' if facts['clock'] == 'header' else 'log times'}")
        elif ticks and any(stream["rate"] is not None for stream in facts["streams"].values()):
            out.print("the unit of the times is not known (--unit ns, us, ms or s)")
        lines = times_lines(facts["streams"])
        shown = lines if everything else lines[:_MOST]
        for line in shown:
            out.print(_cut(line, None if everything else _MOST))
        _more(out, lines, None if everything else _MOST)
    most = None if everything else _MOST
    print_kinds(out, facts, most)
    if facts.get("cameras"):
        out.print()
        out.print(f"cameras: {len(facts['cameras'])}", style="bold")
        cameras = [("  -", "", f"{n}: {_frames(c)}") for n, c in facts["cameras"].items()]
        out.print(show.listed((a, b, _cut(text, most)) for a, b, text in cameras[:most]))
        _more(out, cameras, most)
    if facts["left_out"]:
        out.print()
        out.print(f"omitted: {len(facts['left_out'])}", style="bold")
        out.print(
            show.listed(
                ("  -", "", _cut(f"{o['place']}: {o['reason']}", most))
                for o in facts["left_out"][:most]
            )
        )
        _more(out, facts["left_out"], most)
    out.print()
    print_findings(out, facts["findings"], most)


def _frames(camera: dict[str, Any]) -> str:
    """Return the size of a camera's frames."""
    if camera["shape"] is None:
        return str(camera["problem"])
    height, width, channels = camera["shape"]
    return f"{width} x {height}, {'gray' if channels == 1 else 'RGB'}"


def print_kinds(out: show.Page, facts: dict[str, Any], most: Optional[int]) -> None:
    """Print the channels that are not plain numbers or steps, by stream, with the reason."""
    lines = [
        ("  -", "", _cut(in_cli_words(f"{name}: {line}"), most))
        for name, stream in facts["streams"].items()
        if "kinds" in stream
        for line in kind_lines(stream["kinds"])
    ]
    if lines:
        out.print()
        out.print("kinds", style="bold")
        out.print(show.listed(lines[:most]))
        _more(out, lines, most)


def _cut(text: str, most: Optional[int]) -> str:
    text = in_cli_words(text)
    return text if most is None or len(text) <= _LONG else text[: _LONG - 3] + "..."


def print_findings(out: show.Page, findings: list[dict[str, Any]], most: Optional[int]) -> None:
    """Print findings with their severities, and the number of each."""
    lines = [(f["severity"], show.COLOURS[f["severity"]], finding_text(f)) for f in findings[:most]]
    if lines:
        out.print(show.listed(lines))
    _more(out, findings, most)
    print_remedies(out, findings)
    counts = [
        plural(sum(f["severity"] == severity for f in findings), severity)
        for severity in ("error", "warning", "note")
        if any(f["severity"] == severity for f in findings)
    ]
    if lines:
        out.print()
    out.print(", ".join(counts) or "nothing found", style="bold")


def print_remedies(out: show.Page, findings: list[dict[str, Any]]) -> None:
    """Print what to do about errors and warnings, once for each identifier."""
    remedies: dict[str, str] = {}
    for found in findings:
        if found["severity"] != "note":
            remedies.setdefault(found["kind"], found["remedy"])
    if remedies:
        out.print()
        out.print("what to do", style="bold")
        lines = [(f"  {kind}", "", in_cli_words(text)) for kind, text in remedies.items()]
        out.print(show.listed(lines))


def finding_text(finding: dict[str, Any]) -> str:
    """Return the place and the text of a finding in one line."""
    where = " ".join(part for part in (finding["stream"], finding["place"]) if part)
    text = in_cli_words(finding["text"])
    return f"{where}: {text}" if where else text


def _more(out: show.Page, listed: list[Any], most: Optional[int]) -> None:
    if most is not None and len(listed) > most:
        out.print(f"  ... and {len(listed) - most} more: --all shows them")


def head_parts(facts: dict[str, Any]) -> list[str]:
    """Return the format, size, duration and counts."""
    parts = [facts["format"]]
    if facts["size_bytes"] is not None:
        parts.append(size(facts["size_bytes"]))
    samples = sum(stream["samples"] for stream in facts["streams"].values())
    if facts["kind"] == "recording":
        if facts["duration"] is not None:
            length = duration(facts["duration"], facts["time_unit"] == "ticks")
            since = f" from {facts['begin_utc']} UTC" if facts["begin_utc"] else ""
            parts.append(length + since)
        parts += [plural(len(facts["streams"]), "stream"), plural(samples, "sample")]
    elif facts["kind"] == "episodes":
        parts.append(plural(facts["episodes"], "episode"))
        if facts["shortest"] is not None:
            parts.append(
                f"{facts['frames']} frames ({facts['shortest']} to {facts['longest']} each)"
            )
        if facts["rate"] is not None:
            parts.append(f"{facts['rate']:g} Hz")
        if facts["tasks"]:
            parts.append(plural(facts["tasks"], "task"))
    else:
        parts += [plural(len(facts["streams"]), "cloud"), plural(samples, "point")]
    return parts


def _row(name: str, stream: dict[str, Any], ticks: bool) -> list[str]:
    if stream["rate"] is None:
        return [name, str(stream["samples"]), _or_dash(stream["channels"]), *"-" * 6]
    return [
        name,
        str(stream["samples"]),
        _or_dash(stream["channels"]),
        number(stream["rate"], 4),
        duration(stream["period"], ticks),
        duration(stream["jitter"], ticks),
        str(stream["gaps"]),
        duration(stream["longest_gap"], ticks),
        "-" if stream["coverage"] is None else f"{stream['coverage']:.0%}",
    ]


def _cloud_row(name: str, cloud: dict[str, Any]) -> list[str]:
    extent = "-" if cloud["extent"] is None else " x ".join(f"{e:.3g}" for e in cloud["extent"])
    return [name, str(cloud["samples"]), str(cloud["finite"]), extent, " ".join(cloud["fields"])]


def _or_dash(value: Any) -> str:
    return "-" if value is None else str(value)
