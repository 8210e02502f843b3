"""``robocache inspect``: what is there, and what is wrong with it."""

from typing import Annotated, Any, Optional

import typer

from ..data import PointCloud, PointClouds, checks
from ..data._findings import MEANINGS
from ..data._overview import overview
from ..data._words import duration, number, plural, size
from . import show
from .clouds import inspect_clouds
from .common import (
    AsJson,
    DataPath,
    Definitions,
    FollowLinks,
    Fps,
    MaxUnpacked,
    Unit,
    open_data,
)
from .words import in_cli_words

KINDS = tuple(kind for kind in MEANINGS if kind != "damage")
_MOST = 12  # of a list
_LONG = 150  # characters of one of its items


def inspect(
    path: DataPath,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 if there are errors or warnings.")
    ] = False,
    ignore: Annotated[
        Optional[list[str]],
        typer.Option(help=f"A kind of finding to leave out: {', '.join(KINDS)}. Repeatable."),
    ] = None,
    max_gap: Annotated[
        Optional[float],
        typer.Option(
            help="Longer times between samples are gaps; default: 2.5 periods.",
            metavar="SECONDS",
            min=0,
        ),
    ] = None,
    jitter: Annotated[
        float, typer.Option(help="What intervals may vary, as a part of the period.", min=0)
    ] = 0.2,
    everything: Annotated[bool, typer.Option("--all", help="Cut no list short.")] = False,
    unit: Unit = None,
    fps: Fps = None,
    definition: Definitions = None,
    follow_links: FollowLinks = False,
    max_unpacked: MaxUnpacked = None,
    as_json: AsJson = False,
) -> None:
    """Show what is there, and find what is wrong with it.

    Gaps, jitter, stamps that repeat or go back, clocks that drift, dead channels, NaN, quaternions
    off unit length, stored statistics that are not those of the data. Damaged files are read as far
    as they can be; damage makes the exit code 1 even without --check.
    """
    unknown = [kind for kind in ignore or () if kind not in KINDS]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(KINDS)}")
    given = open_data(
        path,
        damaged="keep",
        unit=unit,
        fps=fps,
        definitions=definition,
        follow_links=follow_links,
        max_unpacked=max_unpacked,
    )
    if isinstance(given, (PointCloud, PointClouds)):
        told = inspect_clouds(given)
    else:
        told = overview(
            given, checks.survey(given, max_gap=max_gap, jitter=jitter, unit=unit), unit
        )
    left = [f for f in told["findings"] if f["kind"] not in (ignore or ())]
    told["findings"] = left
    bad = [f for f in left if f["severity"] != "note"]
    told["ok"] = not bad
    if as_json:
        show.print_json(told)
    else:
        _print(told, everything)
    if any(f["kind"] == "damage" for f in left) or (check and bad):
        raise typer.Exit(1)


def _print(told: dict[str, Any], everything: bool) -> None:
    out = show.Page()
    out.print(told["path"], style="bold", wrap=False)
    out.items(head_parts(told))
    out.print()
    if told["kind"] == "clouds":
        rows = [_cloud_row(name, of) for name, of in told["streams"].items()]
        out.print(show.table(("file", "points", "finite", "extent m", "fields"), rows))
    else:
        ticks = told["time_unit"] == "ticks"
        rows = [_row(name, of, ticks) for name, of in told["streams"].items()]
        head = ["stream" if told["kind"] == "recording" else "track", "samples", "ch"]
        head += ["rate" if ticks else "Hz", "period", "jitter", "gaps", "longest", "cover"]
        out.print(show.table(head, rows))
        if told["clock"] is not None:
            out.print(f"by {'header stamps' if told['clock'] == 'header' else 'log times'}")
        elif ticks and any(of["rate"] is not None for of in told["streams"].values()):
            out.print("times are in ticks of an unknown unit: pass --unit ns, us, ms or s")
    most = None if everything else _MOST
    if told["left_out"]:
        out.print()
        out.print(f"left out: {len(told['left_out'])}", style="bold")
        out.print(
            show.listed(
                ("  -", "", _cut(f"{o['place']}: {o['reason']}", most))
                for o in told["left_out"][:most]
            )
        )
        _more(out, told["left_out"], most)
    out.print()
    print_findings(out, told["findings"], most)


def _cut(text: str, most: Optional[int]) -> str:
    text = in_cli_words(text)
    return text if most is None or len(text) <= _LONG else text[: _LONG - 3] + "..."


def print_findings(out: show.Page, findings: list[dict[str, Any]], most: Optional[int]) -> None:
    """Each with its severity, and how many there are."""
    lines = [(f["severity"], show.COLOURS[f["severity"]], finding_text(f)) for f in findings[:most]]
    if lines:
        out.print(show.listed(lines))
    _more(out, findings, most)
    counts = [
        plural(sum(f["severity"] == severity for f in findings), severity)
        for severity in ("error", "warning", "note")
        if any(f["severity"] == severity for f in findings)
    ]
    if lines:
        out.print()
    out.print(", ".join(counts) or "nothing found", style="bold")


def finding_text(finding: dict[str, Any]) -> str:
    """Where it is and what it is, in a line."""
    where = " ".join(part for part in (finding["stream"], finding["place"]) if part)
    text = in_cli_words(finding["text"])
    return f"{where}: {text}" if where else text


def _more(out: show.Page, listed: list[Any], most: Optional[int]) -> None:
    if most is not None and len(listed) > most:
        out.print(f"  ... and {len(listed) - most} more: --all shows them")


def head_parts(told: dict[str, Any]) -> list[str]:
    """Format, size, length and numbers."""
    parts = [told["format"]]
    if told["size_bytes"] is not None:
        parts.append(size(told["size_bytes"]))
    samples = sum(of["samples"] for of in told["streams"].values())
    if told["kind"] == "recording":
        if told["duration"] is not None:
            length = duration(told["duration"], told["time_unit"] == "ticks")
            since = f" from {told['begin_utc']} UTC" if told["begin_utc"] else ""
            parts.append(length + since)
        parts += [plural(len(told["streams"]), "stream"), plural(samples, "sample")]
    elif told["kind"] == "episodes":
        parts.append(plural(told["episodes"], "episode"))
        if told["shortest"] is not None:
            parts.append(f"{told['frames']} frames ({told['shortest']} to {told['longest']} each)")
        if told["rate"] is not None:
            parts.append(f"{told['rate']:g} Hz")
        if told["tasks"]:
            parts.append(plural(told["tasks"], "task"))
    else:
        parts += [plural(len(told["streams"]), "cloud"), plural(samples, "point")]
    return parts


def _row(name: str, of: dict[str, Any], ticks: bool) -> list[str]:
    if of["rate"] is None:
        return [name, str(of["samples"]), _or_dash(of["channels"]), *"-" * 6]
    return [
        name,
        str(of["samples"]),
        _or_dash(of["channels"]),
        number(of["rate"], 4),
        duration(of["period"], ticks),
        duration(of["jitter"], ticks),
        str(of["gaps"]),
        duration(of["longest_gap"], ticks),
        "-" if of["coverage"] is None else f"{of['coverage']:.0%}",
    ]


def _cloud_row(name: str, of: dict[str, Any]) -> list[str]:
    extent = "-" if of["extent"] is None else " x ".join(f"{e:.3g}" for e in of["extent"])
    return [name, str(of["samples"]), str(of["finite"]), extent, " ".join(of["fields"])]


def _or_dash(value: Any) -> str:
    return "-" if value is None else str(value)
