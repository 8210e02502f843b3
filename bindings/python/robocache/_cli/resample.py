"""``robocache resample``: all streams onto one clock, written as a data set."""

from pathlib import Path
from typing import Annotated, Any, Optional

import numpy as np
import typer

from ..data import Episodes, Recording, align, save
from . import show
from .common import (
    AsJson,
    Clock,
    Damaged,
    DataPath,
    Definitions,
    Failure,
    FollowLinks,
    Fps,
    MaxUnpacked,
    Output,
    Overwrite,
    Streams,
    Unit,
    check_clock,
    chosen,
    of_recordings,
    open_data,
)
from .outputs import check_output, definition_files
from .words import in_cli_words

_BY_SUFFIX = {".npz": "npz", ".zarr": "zarr"}


def resample(
    path: DataPath,
    output: Output,
    rate: Annotated[
        float,
        typer.Option(help="Of the clock, times a second.", metavar="HZ", show_default=False),
    ],
    format: Annotated[
        Optional[str],
        typer.Option(
            help="npz, zarr or lerobot; default: by the suffix, lerobot for a folder without."
        ),
    ] = None,
    max_gap: Annotated[
        Optional[float],
        typer.Option(help="Nothing is made up in longer gaps.", metavar="SECONDS", min=0),
    ] = None,
    method: Annotated[
        Optional[list[str]],
        typer.Option(
            help="linear, previous, next, nearest, cubic or pchip instead of what suits the type. "
            "Repeatable.",
            metavar="STREAM=METHOD",
        ),
    ] = None,
    span: Annotated[
        str,
        typer.Option(help="intersection: while all streams have samples; union: while any has."),
    ] = "intersection",
    task: Annotated[
        Optional[str], typer.Option(help="What the robot did in the recording.")
    ] = None,
    stream: Streams = None,
    clock: Clock = None,
    unit: Unit = None,
    fps: Fps = None,
    damaged: Damaged = "refuse",
    overwrite: Overwrite = False,
    definition: Definitions = None,
    follow_links: FollowLinks = False,
    max_unpacked: MaxUnpacked = None,
    as_json: AsJson = False,
) -> None:
    """Bring all streams onto one clock, and write them as a data set.

    Floats are interpolated, quaternions by slerp, integers and bool taken from before. With
    --max-gap or --span union a track "valid" tells what is not made up.
    """
    kind = format or _BY_SUFFIX.get(output.suffix, "lerobot")
    check_output(output, overwrite, [path, *definition_files(definition)])
    check_clock(clock)
    given = open_data(
        path,
        damaged=damaged,
        unit=unit,
        fps=fps,
        definitions=definition,
        follow_links=follow_links,
        max_unpacked=max_unpacked,
    )
    if isinstance(given, Recording):
        given = given.select(chosen(stream, given.names))
    elif isinstance(given, Episodes):
        of_recordings(given, {"--task": task, "--clock": clock})
        given = given.select(tracks=chosen(stream, given.tracks))
    else:
        raise Failure("point clouds have no rate: robocache voxelize takes them")
    aligned = align(
        given,
        rate,
        methods=_methods(method),
        max_gap=max_gap,
        span=span,
        clock=clock,
        unit=unit,
        tasks=None if task is None else [task],
    )
    left_out = [*aligned.left_out, *save(aligned, output, kind, overwrite=overwrite)]
    told = _told(output, kind, aligned, left_out, given.problems)
    if as_json:
        show.print_json(told)
    else:
        _print(told)


def _methods(asked: Optional[list[str]]) -> dict[str, str]:
    methods = {}
    for text in asked or ():
        name, equals, method = text.rpartition("=")
        if not equals:
            raise typer.BadParameter(f"{text!r} is not STREAM=METHOD", param_hint="--method")
        methods[name] = method
    return methods


def _told(output: Path, kind: str, aligned: Episodes, left_out: Any, problems: Any) -> Any:
    valid = aligned["valid"] if "valid" in aligned else None
    tracks: dict[str, dict[str, Any]] = {}
    for name, track in aligned.tracks.items():
        tracks[name] = {
            "rows": track.num_rows,
            "channels": track.num_channels,
            "dtype": None if track.values is None else str(track.values.dtype),
            "valid": None,
        }
        if valid is not None and valid.names and name in valid.names:
            part = valid.values[:, valid.names.index(name)]
            tracks[name]["valid"] = float(np.mean(part)) if len(part) else None
    return {
        "output": str(output),
        "format": kind,
        "episodes": len(aligned),
        "streams": tracks,
        "left_out": [{"place": o.place, "reason": o.reason} for o in left_out],
        "problems": [str(problem) for problem in problems],
    }


def _print(told: Any) -> None:
    out = show.Page()
    rows = [
        [
            name,
            of["rows"],
            of["channels"] or "-",
            of["dtype"] or "-",
            "-" if of["valid"] is None else f"{of['valid']:.1%}",
        ]
        for name, of in told["streams"].items()
    ]
    out.print(show.table(("track", "rows", "ch", "dtype", "valid"), rows))
    lines = [("damage", show.COLOURS["error"], text) for text in told["problems"]]
    lines += [
        ("left out", "", in_cli_words(f"{o['place']}: {o['reason']}")) for o in told["left_out"]
    ]
    if lines:
        out.print()
        out.print(show.listed(lines))
    out.print()
    out.print(f"wrote {told['output']} ({told['format']})", wrap=False)
