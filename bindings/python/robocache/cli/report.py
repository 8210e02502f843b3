"""``robocache report``: an HTML page about a recording or a data set."""

import fnmatch
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from ..data import PointCloud, PointClouds, Recording, report_html, save_rerun
from ..data._format_values import size
from . import _display as show
from ._common import (
    AcceptGuesses,
    AsJson,
    AsNumbers,
    DataPath,
    Definitions,
    Failure,
    FollowLinks,
    Fps,
    IgnoreTopics,
    Kind,
    MaxUnpacked,
    Overwrite,
    Streams,
    Time,
    Unit,
    guesses,
    narrowed,
    open_data,
    with_kinds,
    without,
)
from ._outputs import check_output, definition_files

_FASTEST = 200.0  # Hz


def report(
    path: DataPath,
    html: Annotated[
        Optional[Path], typer.Option(help="The page to write: a single, self-contained file.")
    ] = None,
    rerun: Annotated[
        Optional[Path],
        typer.Option(help="A file for the Rerun viewer: all streams, before and after alignment."),
    ] = None,
    rate: Annotated[
        Optional[float],
        typer.Option(
            help="Rate to align to. The page then shows the streams before and after; for --rerun "
            "the default is the fastest stream's, at most 200.",
            metavar="HZ",
        ),
    ] = None,
    max_gap: Annotated[
        Optional[float],
        typer.Option(help="Report longer intervals as gaps.", metavar="SECONDS", min=0),
    ] = None,
    span: Annotated[
        str,
        typer.Option(
            help="With an alignment: intersection, while all streams have samples, or union, while "
            "any has."
        ),
    ] = "intersection",
    stream: Streams = None,
    exclude: Annotated[
        Optional[list[str]],
        typer.Option(
            help="Exclude streams by name or pattern, such as '/camera/*', or by message type. "
            "Repeatable.",
            metavar="PATTERN",
        ),
    ] = None,
    kind: Kind = None,
    accept_guesses: AcceptGuesses = False,
    as_numbers: AsNumbers = False,
    overwrite: Overwrite = False,
    ignore_topic: IgnoreTopics = None,
    unit: Unit = None,
    fps: Fps = None,
    time: Time = None,
    definition: Definitions = None,
    follow_links: FollowLinks = False,
    max_unpacked: MaxUnpacked = None,
    as_json: AsJson = False,
) -> None:
    """Write a page with the timelines, rates, gaps, ranges and statistics of all streams.

    Damaged data are skipped and reported; the exit code is then 1.
    """
    if html is None and rerun is None:
        raise typer.BadParameter(
            "say what to write: --html PAGE.html or --rerun FILE.rrd", param_hint="--html, --rerun"
        )
    if span not in ("intersection", "union"):
        raise typer.BadParameter(f"{span!r}: choose intersection or union", param_hint="--span")
    if span != "intersection" and rate is None and rerun is None:
        raise typer.BadParameter("--span needs an alignment: --rate or --rerun")
    if rate is not None and not 0 < rate < math.inf:
        raise typer.BadParameter(f"{rate:g}: expected a finite number above 0", param_hint="--rate")
    read = [path, *definition_files(definition)]
    if html is not None:
        check_output(html, overwrite, read, "--html", within=".html")
    if rerun is not None:
        check_output(rerun, overwrite, [*read, html], "--rerun", within=".rrd")
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
    if isinstance(source, (PointCloud, PointClouds)):
        raise Failure("a point cloud has no timeline; use robocache inspect")
    source = _selected(with_kinds(source, kind), stream, exclude)
    decided: Any = guesses(accept_guesses, as_numbers)
    if rate is not None and html is not None and not isinstance(source, Recording):
        raise Failure(f"--rate with --html works only on recordings; this is {source.format}")
    written: dict[str, Any] = {}
    damaged = False
    if html is not None:
        summary = report_html(
            source,
            html,
            max_gap=max_gap,
            unit=unit,
            rate=rate,
            span=span,
            overwrite=overwrite,
            **decided,
        )
        damaged = any(finding["kind"] == "damage" for finding in summary["findings"])
        written["html"], written["report"] = str(html), summary
    if rerun is not None:
        own = _fastest(source, unit) if rate is None else rate
        options: Any = {"max_gap": max_gap, "span": span, "unit": unit, **decided}
        save_rerun(source, rerun, own, overwrite=overwrite, **options)
        damaged = damaged or bool(source.problems)
        written["rerun"] = str(rerun)
    if as_json:
        show.print_json(written)
    else:
        for target in (html, rerun):
            if target is not None:
                text = f"wrote {target} ({size(target.stat().st_size)})"
                show.Page().print(text, wrap=False)
    if damaged:
        raise typer.Exit(1)


def _selected(source: Any, streams: Optional[list[str]], excluded: Optional[list[str]]) -> Any:
    """Return the source with the streams of --stream, without those of --exclude."""
    recording = isinstance(source, Recording)
    if excluded:
        known = source.names if recording else tuple(source.tracks)
        topics = [name for each in excluded for name in _matched(each, known)]
        source = without(source, topics, "--exclude")
    source = narrowed(source, streams)
    if not len(source.names if recording else source.tracks):
        raise Failure("no stream is left to report on")
    return source


def _matched(pattern: str, known: Iterable[str]) -> list[str]:
    """Return the names that a pattern matches; itself if it is a name or a type."""
    if not any(sign in pattern for sign in "*?["):
        return [pattern]
    return [name for name in known if fnmatch.fnmatchcase(name, pattern)] or [pattern]


def _fastest(source: Any, unit: Optional[str]) -> float:
    """Return the rate of the fastest stream, from its median period."""
    periods = [
        stream.period for stream in source.report(unit=unit).streams.values() if stream.period > 0
    ]
    if not periods:
        raise Failure("--rate: required, because no stream has a rate")
    return min(1 / float(min(periods)), _FASTEST)
