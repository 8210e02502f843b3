"""``robocache sync``: offset and drift between two sensors that saw the same motion."""

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from ..data import Episodes, FormatError, RecordedStream, Recording
from ..data import sync as find
from ..data._checks.unread import nothing_to
from ..data._kinds.selectors import split
from ..data._selection import selected
from ..data._time_units import unit_of
from . import _display as show
from ._common import (
    AsJson,
    Clock,
    Damaged,
    DataPath,
    Definitions,
    Failure,
    FollowLinks,
    Fps,
    IgnoreTopics,
    MaxUnpacked,
    Time,
    Unit,
    check_clock,
    no_such,
    open_data,
    require_clock,
    require_recording,
    warn_problems,
)

_WEAK = 0.2  # correlation below which a result is unreliable
_WIDE = 0.1  # uncertainty above which a result is unreliable, as a part of max_offset
_SENSOR = "STREAM[:CHANNELS]"


def sync(
    path: DataPath,
    a: Annotated[
        str,
        typer.Option(
            "--a",
            metavar=_SENSOR,
            help="A stream, or some of its channels: names, FIRST-LAST or prefixes, with commas.",
            show_default=False,
        ),
    ],
    b: Annotated[
        str,
        typer.Option("--b", metavar=_SENSOR, help="The other stream.", show_default=False),
    ],
    other: Annotated[
        Optional[Path], typer.Option(help="The recording that holds --b, if another one.")
    ] = None,
    kind_a: Annotated[
        str,
        typer.Option(
            help="What --a measures: values (a rate, as of a gyro), change, rotation_xyzw, "
            "rotation_wxyz.",
        ),
    ] = "auto",
    kind_b: Annotated[str, typer.Option(help="What --b measures.")] = "auto",
    match: Annotated[
        str,
        typer.Option(
            help="each: channel by channel; any: for axes that are rotated against each other."
        ),
    ] = "auto",
    max_offset: Annotated[
        float, typer.Option(help="Largest offset to search.", metavar="SECONDS")
    ] = 1.0,
    max_drift: Annotated[
        float, typer.Option(help="Largest drift to search; 0: no drift.", metavar="PPM", min=0)
    ] = 0.0,
    within: Annotated[
        Optional[float],
        typer.Option(
            help="Exit with 1 unless the offset plus twice its uncertainty is below this.",
            metavar="SECONDS",
        ),
    ] = None,
    ignore_topic: IgnoreTopics = None,
    clock: Clock = None,
    unit: Unit = None,
    fps: Fps = None,
    time: Time = None,
    damaged: Damaged = "refuse",
    definition: Definitions = None,
    follow_links: FollowLinks = False,
    max_unpacked: MaxUnpacked = None,
    as_json: AsJson = False,
) -> None:
    """Find offset and drift between the clocks of two sensors that saw the same motion.

    For example a gyro and the rotation of a pose, or joint states and the actions that commanded
    them. Uses cross-correlation on a common clock, and reports an uncertainty.
    """
    options: Any = {
        "damaged": damaged,
        "unit": unit,
        "fps": fps,
        "definitions": definition,
        "follow_links": follow_links,
        "max_unpacked": max_unpacked,
        "ignore_topics": ignore_topic,
        "time": time,
    }
    check_clock(clock)
    source = _opened(path, other, **options)
    other_source = source if other is None else _opened(other, path, **options)
    for each in (source, other_source):
        require_clock(each, clock)
    if not isinstance(source, Recording) and not isinstance(other_source, Recording):
        require_recording(source, {"--clock": clock})
    first, second = _sensor(source, a, "--a"), _sensor(other_source, b, "--b")
    units = [_unit_of(source, first, unit), _unit_of(other_source, second, unit)]
    units[1] = units[1] or units[0]
    taken = f"assumed units of times: {a} in {units[0]}, {b} in {units[1]}"
    try:
        result = find(
            first,
            second,
            kind_a=kind_a,
            kind_b=kind_b,
            match=match,
            max_offset=max_offset,
            max_drift=1e-6 * max_drift,
            clock=clock,
            unit=unit or getattr(source, "unit", None),
        )
    except ValueError as error:
        if "no time in common" not in str(error):
            raise
        raise Failure(f"{error}; {taken}") from None
    warn_problems(source, other_source)
    weak = result.correlation < _WEAK or result.uncertainty > _WIDE * max_offset
    failed = within is not None and not abs(result.offset) + 2 * result.uncertainty < within
    if as_json:
        summary = {"a": a, "b": b, **result.to_dict(), "weak": weak, "ok": not failed}
        summary["units"] = dict(zip("ab", units))
        show.print_json(summary)
    else:
        _print(result, b, weak)
        if unit is not None or other is not None:
            show.Page().print(taken)
    if failed:
        raise typer.Exit(1)


def _opened(path: Path, other: Optional[Path], **options: Any) -> Any:
    """Open a recording; --unit is dropped if it is for the other file and this one has a unit."""
    try:
        return open_data(path, **options)
    except FormatError:
        without = {**options, "unit": None}
        if other is None or options["unit"] is None or not _takes_unit(other, without):
            raise
        return open_data(path, **without)


def _takes_unit(path: Path, without: dict[str, Any]) -> bool:
    """Whether a recording does not say the unit of its times."""
    try:
        return getattr(open_data(path, **without), "unit", None) is None
    except FormatError:  # some of its files say it
        return True


def _unit_of(source: Any, sensor: Any, unit: Optional[str]) -> Optional[str]:
    """Return the unit that was used for the times of a stream or a track."""
    if isinstance(sensor, RecordedStream):
        own = source.info(sensor.name).unit or sensor.unit
        times = next(iter(sensor.clocks.values()), None)
    else:
        own, times = unit_of(sensor) or source.unit, sensor.times
    return own or unit or ("s" if times is not None and times.dtype.kind == "f" else None)


def _print(result: Any, b: str, weak: bool) -> None:
    out = show.Page()
    plus = "\N{PLUS-MINUS SIGN}"
    rows = [
        ("offset", f"{1e3 * result.offset:.3f} ms", f"{plus} {1e3 * result.uncertainty:.3f} ms"),
    ]
    if result.drift_uncertainty == result.drift_uncertainty:
        spread = f"{plus} {1e6 * result.drift_uncertainty:.2f} ppm"
        rows.append(("drift", f"{1e6 * result.drift:.2f} ppm", spread))
    rows.append(("correlation", f"{result.correlation:.3f}", ""))
    rows.append(("overlap", f"{result.overlap:.1f} s", ""))
    out.print(show.table(("", "", ""), rows))
    out.print()
    offset = f"clock_offset={result.offset:.6f}"
    out.print(f"add the offset to the times of {b}, or pass {offset} to its Stream")
    if weak:
        out.print(
            "weak: the two have little motion in common; do not rely on this result",
            style=show.COLOURS["warning"],
        )


def _sensor(source: Any, asked: str, option: str) -> Any:
    """Return a stream or a track with the requested channels."""
    if not isinstance(source, (Recording, Episodes)):
        raise Failure(f"{option}: point clouds have no streams")
    known = list(source.names if isinstance(source, Recording) else source.tracks)
    found = split(asked, known)
    if found is None:
        if not known and isinstance(source, Recording):
            raise Failure(f"{option} {asked}: {nothing_to('compare', source)}")
        whose = "This recording has" if isinstance(source, Recording) else "This data set has"
        raise Failure(no_such(f"{option} {asked}", "stream", asked, known, whose))
    name, channels = found
    if isinstance(source, Recording) and not (len(source[name]) and source[name].names):
        raise Failure(f"{option} {asked}: {nothing_to('compare', source)}")
    return selected(source, {name: [channels]}, option)[name]
