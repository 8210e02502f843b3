"""``robocache report``: an HTML page about a recording or a data set."""

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from ..data import PointCloud, PointClouds, report_html, save_rerun
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
    Time,
    Unit,
    guesses,
    open_data,
    with_kinds,
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
            help="Rate to align to for --rerun; default: the fastest stream's, at most 200.",
            metavar="HZ",
        ),
    ] = None,
    max_gap: Annotated[
        Optional[float],
        typer.Option(help="Report longer intervals as gaps.", metavar="SECONDS", min=0),
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
    if rate is not None and rerun is None:
        raise typer.BadParameter("--rate is only valid with --rerun")
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
    source = with_kinds(source, kind)
    written: dict[str, Any] = {}
    damaged = False
    if html is not None:
        summary = report_html(source, html, max_gap=max_gap, unit=unit, overwrite=overwrite)
        damaged = any(finding["kind"] == "damage" for finding in summary["findings"])
        written["html"], written["report"] = str(html), summary
    if rerun is not None:
        own = _fastest(source, unit) if rate is None else rate
        decided = guesses(accept_guesses, as_numbers)
        save_rerun(source, rerun, own, max_gap=max_gap, unit=unit, overwrite=overwrite, **decided)
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


def _fastest(source: Any, unit: Optional[str]) -> float:
    """Return the rate of the fastest stream, from its median period."""
    periods = [
        stream.period for stream in source.report(unit=unit).streams.values() if stream.period > 0
    ]
    if not periods:
        raise Failure("--rate: required, because no stream has a rate")
    return min(1 / float(min(periods)), _FASTEST)
