"""``robocache resample``: put all streams on one clock and write them as a data set."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any, Literal, Optional

import numpy as np
import typer

from .._arguments.resample_params import METHODS
from ..data import Episodes, Recording, align, save
from ..data._errors import without_unread
from ..data._kinds.selectors import parsed
from ..data._write.formats import format_for
from . import _display as show
from ._common import (
    AcceptGuesses,
    AsJson,
    AsNumbers,
    Clock,
    Damaged,
    DataPath,
    Definitions,
    Failure,
    FollowLinks,
    Fps,
    IgnoreTopics,
    Kind,
    MaxUnpacked,
    Output,
    Overwrite,
    Streams,
    Time,
    Unit,
    check_clock,
    guesses,
    narrowed,
    open_data,
    require_clock,
    require_recording,
    with_kinds,
)
from ._messages import in_cli_words
from ._outputs import check_output, definition_files

_MOST = 12  # skipped items in a list


def resample(
    path: DataPath,
    output: Output,
    rate: Annotated[
        float,
        typer.Option(help="Rate of the output, rows per second.", metavar="HZ", show_default=False),
    ],
    format: Annotated[
        Optional[str],
        typer.Option(
            help="npz, zarr, lerobot, lerobot-v2.1, robomimic, rlds, parquet or csv; default: by "
            "the suffix, lerobot for a name without suffix."
        ),
    ] = None,
    max_gap: Annotated[
        Optional[float],
        typer.Option(help="Do not fill longer gaps.", metavar="SECONDS", min=0),
    ] = None,
    method: Annotated[
        Optional[list[str]],
        typer.Option(
            help="linear, previous, next, nearest, cubic, pchip, slerp, angle, angle_deg, ... "
            "instead of the default of the kind, for a stream or some channels. Repeatable.",
            metavar="STREAM[:CHANNELS]=METHOD",
        ),
    ] = None,
    kind: Kind = None,
    accept_guesses: AcceptGuesses = False,
    as_numbers: AsNumbers = False,
    span: Annotated[
        str,
        typer.Option(help="intersection: while all streams have samples; union: while any has."),
    ] = "intersection",
    available: Annotated[
        str,
        typer.Option(
            help="stamp: every sample exists for every row; arrival: only the samples that had "
            "arrived at the row's time plus --lag, as on a robot.",
        ),
    ] = "stamp",
    lag: Annotated[
        float,
        typer.Option(help="How long after its time a row is computed.", metavar="SECONDS"),
    ] = 0.0,
    max_age: Annotated[
        Optional[float],
        typer.Option(
            help="With --available arrival: rows whose last sample is older are not valid.",
            metavar="SECONDS",
            min=0,
        ),
    ] = None,
    late_bound: Annotated[
        int,
        typer.Option(
            help="With --available arrival: drop a sample that arrives after more than this many "
            "newer ones.",
            metavar="SAMPLES",
            min=0,
        ),
    ] = 0,
    clock_offset: Annotated[
        Optional[list[str]],
        typer.Option(
            help="Seconds to add to the stamps of a stream. Repeatable.",
            metavar="STREAM=SECONDS",
        ),
    ] = None,
    label: Annotated[
        Optional[list[str]],
        typer.Option(
            help="A stream that sees its whole episode, such as actions. Repeatable.",
            metavar="STREAM",
        ),
    ] = None,
    task: Annotated[Optional[str], typer.Option(help="The task that the robot performed.")] = None,
    stream: Streams = None,
    ignore_topic: IgnoreTopics = None,
    clock: Clock = None,
    unit: Unit = None,
    fps: Fps = None,
    time: Time = None,
    damaged: Damaged = "refuse",
    overwrite: Overwrite = False,
    definition: Definitions = None,
    follow_links: FollowLinks = False,
    max_unpacked: MaxUnpacked = None,
    as_json: AsJson = False,
) -> None:
    """Resample all streams onto one clock, and write them as a data set.

    Numbers are interpolated, quaternions by slerp, angles along the shorter arc; integers and
    bool take the previous sample. `robocache inspect` shows the kind of each channel. With
    --max-gap or --span union, a track "valid" marks the rows that have data.
    """
    target = format_for(str(output), format)
    check_output(output, overwrite, [path, *definition_files(definition)])
    check_clock(clock)
    source = open_data(
        path,
        damaged=damaged,
        unit=unit,
        fps=fps,
        definitions=definition,
        follow_links=follow_links,
        max_unpacked=max_unpacked,
        time=time,
        ignore_topics=ignore_topic,
    )
    require_clock(source, clock)
    source = with_kinds(source, kind)
    if not isinstance(source, (Recording, Episodes)):
        raise Failure("a point cloud has no rate; use robocache voxelize")
    if isinstance(source, Episodes):
        require_recording(source, {"--task": task, "--clock": clock})
    source = narrowed(source, stream)
    decided: Any = guesses(accept_guesses, as_numbers)
    aligned = align(
        source,
        rate,
        methods=_methods(method, source),
        **decided,
        max_gap=max_gap,
        span=span,
        clock=clock,
        unit=unit,
        tasks=task,
        available=_availability(available),
        lag=lag,
        max_age=max_age,
        late_bound=late_bound,
        clock_offset=_offsets(clock_offset, source),
        labels=() if label is None else label,
    )
    left_out = save(aligned, output, target, overwrite=overwrite)
    summary = _summary(output, target, aligned, left_out, source, everything=stream is None)
    if as_json:
        show.print_json(summary)
    else:
        _print(summary)


def _methods(asked: Optional[list[str]], source: Any) -> dict[str, str]:
    known = source.names if isinstance(source, Recording) else tuple(source.tracks)
    methods = {}
    for text in asked or ():
        stream, channels, method = parsed(text, known, "--method")
        if method not in METHODS:
            raise Failure(f"--method {text}: no such method, expected one of {', '.join(METHODS)}")
        methods[stream if channels == "*" else f"{stream}:{channels}"] = method
    return methods


def _availability(available: str) -> Literal["stamp", "arrival"]:
    if available == "stamp":
        return "stamp"
    if available == "arrival":
        return "arrival"
    raise Failure(f"--available {available}: expected stamp or arrival")


def _offsets(asked: Optional[list[str]], source: Any) -> dict[str, float]:
    """Return seconds by stream."""
    known = source.names if isinstance(source, Recording) else tuple(source.tracks)
    offsets = {}
    for text in asked or ():
        stream, channels, seconds = parsed(text, known, "--clock-offset", "STREAM=SECONDS")
        try:
            if channels != "*":
                raise ValueError
            offsets[stream] = float(seconds)
        except ValueError:
            raise Failure(f"--clock-offset {text}: expected STREAM=SECONDS") from None
    return offsets


def _summary(
    output: Path, kind: str, aligned: Episodes, left_out: Any, source: Any, everything: bool
) -> Any:
    """Return the output of --json; ``everything``: no streams were chosen."""
    unread = [u for u in getattr(source, "unread", ()) if everything or u.place in source.names]
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
        "notes": [in_cli_words(note) for note in aligned.notes],
        "unread": [dataclasses.asdict(each) for each in unread],
        "left_out": [
            {"place": o.place, "reason": o.reason} for o in without_unread(left_out, unread)
        ],
        "problems": [str(problem) for problem in source.problems],
    }


def _print(facts: Any) -> None:
    out = show.Page()
    rows = [
        [
            name,
            stream["rows"],
            stream["channels"] or "-",
            stream["dtype"] or "-",
            "-" if stream["valid"] is None else f"{stream['valid']:.1%}",
        ]
        for name, stream in facts["streams"].items()
    ]
    out.print(show.table(("track", "rows", "ch", "dtype", "valid"), rows))
    lines = [("damage", show.COLOURS["error"], text) for text in facts["problems"]]
    lines += [("cut", show.COLOURS["warning"], note) for note in facts["notes"]]
    lines += [
        ("not read", show.COLOURS["warning"], in_cli_words(f"{u['place']}: {u['reason']}"))
        for u in facts["unread"][:_MOST]
        if u["loses_numbers"]
    ]
    lines += [
        ("omitted", "", in_cli_words(f"{o['place']}: {o['reason']}"))
        for o in facts["left_out"][:_MOST]
    ]
    if lines:
        out.print()
        out.print(show.listed(lines))
    if len(facts["left_out"]) > _MOST:
        out.print(f"... and {len(facts['left_out']) - _MOST} more: --json lists them")
    out.print()
    out.print(f"wrote {facts['output']} ({facts['format']})", wrap=False)
