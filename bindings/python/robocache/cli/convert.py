"""``robocache convert``: recordings and data sets become one data set for training."""

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from .._printable import plural
from ..data import convert as convert_data
from ..data._convert.tracks import named
from . import _display as show
from ._common import (
    AcceptGuesses,
    AsJson,
    AsNumbers,
    Clock,
    Damaged,
    Definitions,
    Failure,
    FollowLinks,
    Fps,
    MaxUnpacked,
    Output,
    Overwrite,
    Time,
    Unit,
    add_once,
    check_clock,
    definitions_of,
    guesses,
    pairs,
)
from ._images import Filter, Fit, Rule, how, resize_of

_LONGEST = 40  # letters of the channels of a track
_STATE, _ACTION = "observation.state", "action"
Parts = Optional[list[str]]


def convert(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Recordings or data sets: files, folders of recordings, or patterns in quotes.",
            show_default=False,
        ),
    ],
    output: Output,
    rate: Annotated[
        Optional[float],
        typer.Option(
            help="Rows per second; default: the rate of the data sets, whose rows are copied.",
            metavar="HZ",
        ),
    ] = None,
    state: Annotated[
        Parts,
        typer.Option(
            help="Channels of the track observation.state. Repeatable: the parts are joined in "
            "their order.",
            metavar="[LABEL=]STREAM[:CHANNELS]",
        ),
    ] = None,
    action: Annotated[
        Parts,
        typer.Option(
            help="Channels of the track action. Repeatable.", metavar="[LABEL=]STREAM[:CHANNELS]"
        ),
    ] = None,
    image: Annotated[
        Parts,
        typer.Option(
            help="A camera: the track observation.images.NAME. Repeatable.",
            metavar="[NAME=]STREAM",
        ),
    ] = None,
    extra: Annotated[
        Parts,
        typer.Option(
            help="Channels of another track. Repeatable.", metavar="TRACK=STREAM[:CHANNELS]"
        ),
    ] = None,
    task: Annotated[Optional[str], typer.Option(help="The task that the robot performed.")] = None,
    format: Annotated[
        Optional[str],
        typer.Option(
            help="lerobot, lerobot-v2.1, robomimic, zarr, rlds, parquet, csv or npz; default: by "
            "the suffix, lerobot for a name without suffix."
        ),
    ] = None,
    exclude: Annotated[
        Parts,
        typer.Option(
            help="Without --state, --action and --extra every stream is a track, except those that "
            "match this pattern. Repeatable.",
            metavar="PATTERN",
        ),
    ] = None,
    action_shift: Annotated[
        int,
        typer.Option(
            help="Take actions this many rows later: 1 makes the next state the action.",
            metavar="ROWS",
            min=0,
        ),
    ] = 0,
    episode_from: Annotated[
        Optional[str],
        typer.Option(
            help="Begin an episode at each message of this topic, or while its bool is true.",
            metavar="TOPIC",
        ),
    ] = None,
    split_gap: Annotated[
        Optional[str],
        typer.Option(
            help="Split episodes where a stream has no sample for this long.", metavar="SECONDS"
        ),
    ] = None,
    spans: Annotated[
        Optional[Path],
        typer.Option(
            help="A CSV file with the columns begin and end in seconds, and perhaps recording and "
            "task: each line is an episode.",
            metavar="FILE",
        ),
    ] = None,
    max_gap: Annotated[
        Optional[float],
        typer.Option(
            help="Do not fill longer gaps; a track valid marks the rows.", metavar="SECONDS", min=0
        ),
    ] = None,
    image_format: Annotated[
        Optional[str], typer.Option(help="video, png or jpeg; default: by the format.")
    ] = None,
    image_size: Annotated[
        Optional[str],
        typer.Option(
            help="Resize all pictures, or use a preset such as openpi.", metavar="WIDTHxHEIGHT"
        ),
    ] = None,
    rule: Rule = None,
    filter: Filter = None,  # noqa: A002
    fit: Fit = None,
    method: Annotated[
        Parts,
        typer.Option(
            help="How to interpolate a stream or some channels, as for resample. Repeatable.",
            metavar="STREAM[:CHANNELS]=METHOD",
        ),
    ] = None,
    kind: Annotated[
        Parts,
        typer.Option(
            help="What channels hold, as for resample. Repeatable.",
            metavar="STREAM:CHANNELS=KIND",
        ),
    ] = None,
    accept_guesses: AcceptGuesses = False,
    as_numbers: AsNumbers = False,
    dtype: Annotated[
        str, typer.Option(help="The dtype of all tracks; recorded: as in the recordings.")
    ] = "float32",
    robot: Annotated[
        Optional[str], typer.Option(help="The type of the robot, for the metadata.")
    ] = None,
    skip_failed: Annotated[
        bool,
        typer.Option("--skip-failed", help="Skip recordings that cannot be converted; list them."),
    ] = False,
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
    """Convert recordings to a data set for training, one episode per recording.

    Streams are aligned to one clock and joined to the tracks that policies read; images become
    videos or pictures. Each episode is cut to the span in which all of its streams have samples.
    After an interruption the same command continues: OUTPUT.part keeps the episodes that are ready.
    """
    check_clock(clock)
    tracks = _tracks(state, action, extra)
    options: dict[str, Any] = {
        **guesses(accept_guesses, as_numbers),
        "methods": pairs(method, "--method", "STREAM[:CHANNELS]=METHOD", at_last=True),
        "max_gap": max_gap,
        "clock": clock,
        "unit": unit,
        "time": time,
        "damaged": damaged,
        "definitions": definitions_of(definition) or None,
        "follow_links": follow_links or None,
        "max_unpacked": max_unpacked,
    }
    made = convert_data(
        [str(path) for path in paths],
        output,
        rate=rate,
        tracks=tracks,
        images=_cameras(image),
        tasks=task,
        format=format,
        exclude=exclude or (),
        action_shift=action_shift,
        episode_from=episode_from,
        split_gap=None if split_gap is None else _seconds(split_gap),
        spans=spans,
        image_format=image_format,
        image_size=resize_of(image_size, how(rule, filter, fit), "--image-size"),
        dtype=None if dtype == "recorded" else dtype,
        robot=robot,
        skip_failed=skip_failed,
        overwrite=overwrite,
        kinds=pairs(kind, "--kind", "STREAM:CHANNELS=KIND", at_last=True) or None,
        fps=fps,
        **options,
    )
    if as_json:
        show.print_json(made.to_dict())
    else:
        _print(made)


def _tracks(
    state: Optional[list[str]], action: Optional[list[str]], extra: Optional[list[str]]
) -> Optional[dict[str, list[str]]]:
    tracks: dict[str, list[str]] = {}
    if state:
        tracks[_STATE] = state
    if action:
        tracks[_ACTION] = action
    for text in extra or ():
        name, equals, part = text.partition("=")
        if not equals or not name or not part:
            raise typer.BadParameter(
                f"{text!r}: expected TRACK=STREAM[:CHANNELS], such as "
                "observation.environment_state=/odom",
                param_hint="--extra",
            )
        tracks.setdefault(name, []).append(part)
    return tracks or None


def _cameras(images: Optional[list[str]]) -> dict[str, str]:
    cameras: dict[str, str] = {}
    for text in images or ():
        add_once(cameras, *named(text), "--image")
    return cameras


def _seconds(text: str) -> float:
    try:
        return float(text.strip().removesuffix("s"))
    except ValueError:
        raise typer.BadParameter(
            f"{text!r}: expected seconds, such as 5 or 0.5s", param_hint="--split-gap"
        ) from None


def _print(made: Any) -> None:
    if not len(made):
        raise Failure("no episode was written")
    out = show.Page()
    out.print(show.table(("track", "ch", "channels"), made.table_rows(_LONGEST)))
    skipped = [f"{name}: {reason}" for name, reason in made.skipped]
    remarks = {"skipped": skipped, "note": made.notes, "omitted": made.left_out}
    if any(remarks.values()):
        out.print()
    show.print_remarks(out, remarks)
    out.print()
    seconds = made.rows / made.rate
    out.print(
        f"wrote {made.output} ({made.format}): {plural(len(made), 'episode')}, "
        f"{plural(made.rows, 'row')}, {seconds:.4g} s at {made.rate:g} Hz",
        wrap=False,
    )
