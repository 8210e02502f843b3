"""``robocache report``: a page that shows a recording or a data set."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from ..data import PointCloud, PointClouds, report_html
from ..data._words import size
from . import show
from .common import (
    AsJson,
    DataPath,
    Definitions,
    Failure,
    FollowLinks,
    Fps,
    Overwrite,
    Unit,
    open_data,
)


def report(
    path: DataPath,
    html: Annotated[
        Optional[Path], typer.Option(help="The page to write: one file, which needs no other.")
    ] = None,
    max_gap: Annotated[
        Optional[float],
        typer.Option(help="Longer times between samples are gaps.", metavar="SECONDS", min=0),
    ] = None,
    overwrite: Overwrite = False,
    unit: Unit = None,
    fps: Fps = None,
    definition: Definitions = None,
    follow_links: FollowLinks = False,
    as_json: AsJson = False,
) -> None:
    """Write a page with the timelines, rates, gaps, ranges and statistics of all streams.

    What is damaged is left out and told; the exit code is 1 then.
    """
    if html is None:
        raise typer.BadParameter("is missing", param_hint="--html")
    if html.exists() and not overwrite:
        raise FileExistsError(f"{html}: exists; overwrite=True replaces it")
    given = open_data(
        path,
        damaged="keep",
        unit=unit,
        fps=fps,
        definitions=definition,
        follow_links=follow_links,
    )
    if isinstance(given, (PointCloud, PointClouds)):
        raise Failure("point clouds have no timeline: robocache inspect shows them")
    told = report_html(given, html, max_gap=max_gap, unit=unit, overwrite=overwrite)
    if as_json:
        show.print_json({"html": str(html), "size_bytes": html.stat().st_size, "report": told})
    else:
        show.Page().print(f"wrote {html} ({size(html.stat().st_size)})", wrap=False)
    if any(finding["kind"] == "damage" for finding in told["findings"]):
        raise typer.Exit(1)
