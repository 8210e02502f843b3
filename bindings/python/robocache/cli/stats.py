"""``robocache stats``: exact statistics, and a check of stored ones."""

import dataclasses
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Annotated, Any, Optional, cast

import numpy as np
import typer

from .. import StatisticsResult, statistics_files
from .._printable import plural
from .._statistics.pieces import exact_of_pieces
from ..data import Episodes, Recording, checks
from ..data._checks.unread import nothing_to
from ..data._format_values import number
from ..data._formats.lerobot.image_statistics import CHANNELS
from ..data._formats.lerobot.stored_statistics import DataSet
from ..data._kinds.selectors import ALL, columns_of_all
from ..data._progress import progress
from ..data._selection import selected
from ..data.checks import Finding
from . import _display as show
from ._actions import (
    MOST_STEPS,
    ActionTrack,
    StateTrack,
    absolute_of,
    action_windows,
    require_kinds,
    state_and_action,
)
from ._common import (
    AcceptGuesses,
    AsJson,
    AsNumbers,
    Damaged,
    DataPath,
    Definitions,
    Device,
    Failure,
    FollowLinks,
    IgnoreTopics,
    Kind,
    MaxUnpacked,
    Overwrite,
    Streams,
    Time,
    chosen,
    device_of,
    guesses,
    open_data,
    warn_problems,
    warn_unread,
    with_kinds,
)
from ._outputs import check_output, definition_files
from ._statistics_files import (
    IMAGES,
    KINDS,
    data_set_of,
    mask_of,
    repair,
    write_file,
    written_lines,
)
from .inspect import print_findings

_MOST_FINDINGS = 50  # findings by episode


def compare(
    source: Any, results: dict[str, StatisticsResult], names: dict[str, Any]
) -> tuple[list[Finding], int]:
    """Return findings, and how many stored statistics (of tracks or episodes) were compared."""
    if not results:
        raise Failure("--check: there are no values to compare stored statistics with")
    stored = source.stored_statistics() if isinstance(source, Episodes) else {}
    if stored:
        findings = []
        for name, result in results.items():
            if name in stored:
                findings += checks.check_stored(source, name, stored[name], result)
            else:
                findings.append(_missing(name, ""))
        return findings, sum(name in stored for name in results)
    by_episode = _stored_by_episode(source)
    if not by_episode:
        raise Failure("--check: this data set holds no statistics to compare with")
    return _compare_episodes(source, list(results), names, by_episode)


def _missing(name: str, whose: str) -> Finding:
    text = f"no statistics are stored{whose}; stats --write makes a file of them"
    return Finding("error", "statistics", name, "", text)


def _stored_by_episode(source: Any) -> list[dict[str, StatisticsResult]]:
    """Return the statistics of each episode; LeRobot v2.1 stores no others."""
    if not isinstance(source, Episodes) or source.source is None:
        return []
    file = os.path.join(source.source, "meta", "episodes_stats.jsonl")
    if not os.path.isfile(file):
        return []
    try:
        stored = statistics_files.read_lerobot_episodes(file)
    except (ValueError, TypeError) as error:
        raise Failure(f"{file}: {error}") from None
    if len(stored) != len(source):
        raise Failure(
            f"{file} has statistics of {len(stored)} episodes, but the data set has {len(source)}"
        )
    return [stored[number] for number in sorted(stored)]


def _compare_episodes(
    source: Episodes,
    tracks: list[str],
    names: dict[str, Any],
    stored: list[dict[str, StatisticsResult]],
) -> tuple[list[Finding], int]:
    exact = source.select(tracks=tracks).statistics(per_episode=True)
    findings: list[Finding] = []
    for name in tracks:
        without = sum(name not in episode_stats for episode_stats in stored)
        if without:
            findings.append(_missing(name, f" of {without} of {len(stored)} episodes"))
    compared = 0
    for e, episode_stats in enumerate(stored):
        compared += any(name in episode_stats for name in tracks)
        for name in tracks:
            if name not in episode_stats:
                continue
            for found in checks.check_statistics(
                name, episode_stats[name], exact[name].row(e), names[name]
            ):
                place = f"episode {e} {found.place}".strip()
                findings.append(dataclasses.replace(found, place=place))
        if len(findings) >= _MOST_FINDINGS:
            break
    return findings, compared


_MOST = 40  # channels per table
_ROWS = ("all", "valid", "whole")


def stats(
    path: DataPath,
    check: Annotated[
        bool,
        typer.Option(
            "--check", help="Compare the stored statistics with these; exit with 1 if they differ."
        ),
    ] = False,
    relative: Annotated[
        Optional[int],
        typer.Option(
            help="Statistics of the next H actions, minus the state at the first one.",
            metavar="H",
            min=1,
            max=MOST_STEPS,
        ),
    ] = None,
    rows: Annotated[
        Optional[str],
        typer.Option(
            help="The actions that count: all, repeating the last one past the end (openpi); "
            "valid, those within the episode; whole, only samples with all H actions within it "
            "(LeRobot, GR00T); default: whole, with --write openpi all.",
        ),
    ] = None,
    per_step: Annotated[
        bool, typer.Option("--per-step", help="Separate statistics for each of the H actions.")
    ] = False,
    absolute: Annotated[
        Optional[str],
        typer.Option(help="Channels to keep absolute, with commas, such as the gripper."),
    ] = None,
    delta_mask: Annotated[
        Optional[str],
        typer.Option(
            help="With --relative: which actions are minus the state, as in openpi's "
            "make_bool_mask: 6,-1 are six, and one that is not.",
            metavar="COUNTS",
        ),
    ] = None,
    state: StateTrack = None,
    action: ActionTrack = None,
    images: Annotated[
        Optional[str],
        typer.Option(
            help="Statistics of the cameras of a LeRobot data set: of a sample of the frames, as "
            "LeRobot computes them, or all.",
            metavar="sample|all",
        ),
    ] = None,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix",
            help="Compute the statistics in a LeRobot data set again, and replace them; backups "
            "of the old files stay next to them.",
        ),
    ] = False,
    kind: Kind = None,
    accept_guesses: AcceptGuesses = False,
    as_numbers: AsNumbers = False,
    write: Annotated[
        Optional[str],
        typer.Option(help="Write a file of statistics: lerobot, openpi or gr00t.", metavar="KIND"),
    ] = None,
    output: Annotated[
        Optional[Path], typer.Option("--output", "-o", help="The file that --write writes.")
    ] = None,
    overwrite: Overwrite = False,
    stream: Streams = None,
    ignore_topic: IgnoreTopics = None,
    time: Time = None,
    everything: Annotated[bool, typer.Option("--all", help="Do not shorten tables.")] = False,
    device: Device = "auto",
    damaged: Damaged = "refuse",
    definition: Definitions = None,
    follow_links: FollowLinks = False,
    max_unpacked: MaxUnpacked = None,
    as_json: AsJson = False,
) -> None:
    """Compute count, range, mean, standard deviation and quantiles of each channel, exactly.

    The mean and the standard deviation are computed in exact arithmetic and rounded once;
    quantiles equal numpy.quantile. NaN and infinite values are counted, but not used.
    """
    if images not in (None, *IMAGES):
        raise typer.BadParameter(f"{images!r}: choose {' or '.join(IMAGES)}", param_hint="--images")
    if fix:
        given = {
            "--check": check,
            "--relative": relative,
            "--write": write,
            "--output": output,
            "--stream": stream,
            "--kind": kind,
            "--ignore-topic": ignore_topic,
            "--damaged keep": damaged == "keep",
        }
        for option, value in given.items():
            if value:
                raise typer.BadParameter(f"{option} cannot be combined with --fix")
        repair(path, images, follow_links, as_json)
        return
    _check_options(write, output, relative, rows, stream, check)
    for_openpi = write == "openpi"
    mask = mask_of(delta_mask)
    if relative is None:
        if mask is not None:
            raise typer.BadParameter(
                "--delta-mask needs --relative H, where H is the action_horizon of the config"
            )
        alone: dict[str, Any] = {
            "--rows": rows,
            "--per-step": per_step or None,
            "--absolute": absolute,
        }
        if not for_openpi:
            alone.update({"--state": state, "--action": action})
        _check_alone(alone)
    elif mask is not None and absolute is not None:
        raise typer.BadParameter("use either --absolute or --delta-mask, not both")
    if output is not None:
        check_output(output, overwrite, [path, *definition_files(definition)], within="stats.json")
    if images is not None:
        data_set_of(path, "--images")
    opened: Any = {
        "damaged": damaged,
        "definitions": definition,
        "follow_links": follow_links,
        "max_unpacked": max_unpacked,
        "time": time,
        "ignore_topics": ignore_topic,
    }
    source = with_kinds(open_data(path, **opened), kind)
    decided = any(guesses(accept_guesses, as_numbers).values())
    tracks: Optional[tuple[str, str]] = None
    if relative is not None or for_openpi:
        option = "--relative" if relative is not None else "--write openpi"
        source, *pair = state_and_action(source, state, action, option)
        tracks = (pair[0], pair[1])
    whole = source
    results: dict[str, StatisticsResult]
    if relative is None or tracks is None:
        results, names = _computed(source, list(tracks) if tracks else stream, device)
    else:
        picked = source.load()
        kept = absolute if mask is None else absolute_of(picked, tracks[1], mask)
        if not decided:
            require_kinds(picked, tracks[1], kept)
        results, names = _of_chunks(
            picked,
            tracks,
            relative,
            absolute,
            mask,
            rows or ("all" if for_openpi else "whole"),
            per_step,
            device,
        )
        if for_openpi:
            state_results, state_names = _computed(picked, [tracks[0]], device)
            results, names = {**state_results, **results}, {**state_names, **names}
    if images is not None:
        cameras = DataSet.open(str(path)).of_cameras(images)[0]
        results = {**results, **cameras}
        names.update({name: CHANNELS for name in cameras})
    if check or write in ("lerobot", "gr00t"):
        _require_whole(whole, results, "--check" if check else f"--write {write}")
    warn_problems(source)
    if stream is None:
        warn_unread(source, results.keys())
    findings, compared = compare(source, results, names) if check else ([], 0)
    bad = [found for found in findings if found.severity != "note"]
    written: Optional[dict[str, Any]] = None
    if write is not None and output is not None:
        shown = results
        if for_openpi and tracks is not None:
            shown = {"state": results[tracks[0]], "actions": results[tracks[1]]}
        everything_of = relative is None and stream is None
        written = write_file(write, output, source, shown, everything_of and not for_openpi)
        if for_openpi and tracks is not None:
            written["actions"] = _actions_text(tracks, relative, mask, absolute)
    if as_json:
        summary: dict[str, Any] = {
            "path": str(path),
            "streams": {
                name: {"names": names[name], **results[name].to_dict()} for name in results
            },
        }
        if written is not None:
            summary["written"] = written
        if check:
            summary["findings"] = [found.to_dict() for found in findings]
            summary.update(compared=compared, ok=not bad)
        show.print_json(summary)
    else:
        _print(results, names, None if everything else _MOST)
        if check:
            print_findings(show.Page(), [f.to_dict() for f in findings], None)
        for line in written_lines(written) if written is not None else ():
            show.Page().print(line, wrap=False)
    if bad:
        raise typer.Exit(1)


def _check_options(
    write: Optional[str],
    output: Optional[Path],
    relative: Optional[int],
    rows: Optional[str],
    stream: Optional[list[str]],
    check: bool,
) -> None:
    """Refuse values and combinations of options that make no sense."""
    if (write is None) != (output is None):
        if write is not None:
            text = f"--write {write} needs --output FILE (and the other way round)"
            raise typer.BadParameter(text, param_hint="--write")
        text = f"--output {output} needs --write {{{', '.join(KINDS)}}} (and the other way round)"
        raise typer.BadParameter(text, param_hint="--output")
    if write is not None and write not in KINDS:
        raise typer.BadParameter(f"{write!r}: choose {', '.join(KINDS)}", param_hint="--write")
    if relative is not None and check:
        raise typer.BadParameter("--check cannot be combined with --relative")
    if stream and (relative is not None or write == "openpi"):
        option = "--relative" if relative is not None else "--write openpi"
        raise typer.BadParameter(
            f"--stream cannot be combined with {option}; use --state and --action"
        )
    if rows is not None and rows not in _ROWS:
        raise typer.BadParameter(f"{rows!r}: choose {', '.join(_ROWS)}", param_hint="--rows")


def _require_whole(source: Any, results: dict[str, StatisticsResult], option: str) -> None:
    """Refuse some channels of a track where the files have statistics of all of them."""
    for name, result in results.items() if isinstance(source, Episodes) else ():
        known = source.track_info(name).channels if name in source else result.mean.shape[-1]
        if result.mean.shape[-1] != known:
            raise Failure(f"{option} needs all {known} channels of {name}; use --stream {name}")


def _actions_text(
    tracks: tuple[str, str],
    relative: Optional[int],
    mask: Optional[list[bool]],
    absolute: Optional[str],
) -> str:
    """Say what the statistics of openpi's actions are of: its config must match."""
    names = f"state is {tracks[0]}, actions is {tracks[1]}"
    if relative is None:
        text = "absolute actions. If the config has DeltaActions, use --delta-mask"
        return f"{names}: {text} and --relative"
    if mask is not None:
        counted = plural(sum(mask), "channel")
        kind = f"minus the state in {counted}, as by DeltaActions with this mask"
    else:
        kind = "minus the state" + (f", except {absolute}" if absolute else " in all channels")
    return f"{names}: the next {relative} {kind}"


def _check_alone(options: dict[str, Any]) -> None:
    for option, value in options.items():
        if value is not None:
            raise typer.BadParameter(f"{option} is only valid with --relative")


def _of_chunks(
    picked: Episodes,
    tracks: tuple[str, str],
    steps: int,
    absolute: Optional[str],
    mask: Optional[list[bool]],
    rows: str,
    per_step: bool,
    device: str,
) -> tuple[dict[str, StatisticsResult], dict[str, Any]]:
    """Return statistics of actions minus the state at the first of them."""
    longest = int(max(picked.lengths(tracks[1]), default=0))
    if longest == 0 or (rows == "whole" and steps > longest):
        raise Failure(
            f"--relative {steps}: the longest episode has {longest} actions; use a smaller "
            "number, or --rows valid"
        )
    spec = action_windows(picked, *tracks, steps, [0], absolute, True, mask)
    where, kept = device_of(device), cast(Any, rows)
    found = spec.statistics(
        picked if where == "cpu" else picked.to(where), rows=kept, per_step=per_step
    )
    name = tracks[1]
    return {name: found["action"]}, {name: picked.track_info(name).names}


def _computed(
    source: Any, wanted: Optional[list[str]], device: str
) -> tuple[dict[str, StatisticsResult], dict[str, Any]]:
    """Return the statistics and the channel names, by stream."""
    if isinstance(source, Recording):
        return _of_recording(source, chosen(wanted, source.names, "This recording has"))
    if not isinstance(source, Episodes):
        raise Failure("a point cloud has no channels over time; use robocache inspect")
    with_values = [name for name, track in source.tracks.items() if track.values is not None]
    streams = chosen(wanted, with_values, "This data set has")
    picked = selected(source, streams, "--stream")
    if not sum(int(picked.lengths(name).sum()) for name in picked.tracks):
        raise Failure("nothing to count: all episodes are empty")
    where = device_of(device)
    names = {name: picked[name].names for name in picked.tracks}
    held = picked if where == "cpu" else picked.to(where)
    sizes = {name: int(picked[name].values.nbytes) for name in names}
    results = {}
    with progress("Computing statistics", sum(sizes.values()), None) as done:
        for name in names:
            results[name] = _on_host(held.statistics([name])[name])
            done(sizes[name])
    return results, names


def _of_recording(
    source: Recording, wanted: dict[str, list[str]]
) -> tuple[dict[str, StatisticsResult], dict[str, Any]]:
    """Read the file once if it is small, else as often as exact quantiles need, piece by piece."""
    names: dict[str, Any] = {}
    columns: dict[str, Any] = {}

    def read(streams: Collection[str]) -> Iterator[tuple[str, Any]]:
        for piece in source.pieces(list(streams)):
            if not piece.names or len(piece) == 0:
                continue
            if piece.stream not in names:
                own = wanted.get(piece.stream, [ALL])  # a stream of a later key has all channels
                chosen_columns = columns_of_all(
                    own, piece.names, len(piece.names), f"--stream {piece.stream}", piece.stream
                )
                columns[piece.stream] = slice(None) if ALL in own else chosen_columns
                names[piece.stream] = tuple(piece.names[c] for c in chosen_columns)
            yield piece.stream, np.ascontiguousarray(piece.values[:, columns[piece.stream]])

    found = exact_of_pieces(read, list(wanted))
    if not found:
        raise Failure(nothing_to("count", source.select(list(wanted))))
    order = sorted(found, key=list(dict.fromkeys([*wanted, *found])).index)
    return {name: found[name] for name in order}, names


def _flat(result: StatisticsResult) -> StatisticsResult:
    """Return the result with steps and channels flattened into channels."""
    arrays = {
        name: getattr(result, name).reshape(-1)
        for name in ("count", "nonfinite", "min", "max", "mean", "std")
    }
    quantiles = result.quantiles.swapaxes(0, 1).reshape(len(result.levels), -1)
    return dataclasses.replace(result, **arrays, quantiles=quantiles)


def _on_host(result: StatisticsResult) -> StatisticsResult:
    fields = result.to_dict()
    arrays = {key: fields.pop(key) for key in ("count", "nonfinite", "min", "max", "mean", "std")}
    quantiles = np.asarray(fields.pop("quantiles"), np.float64)
    return StatisticsResult(**arrays, quantiles=quantiles, **fields)


def _print(
    results: dict[str, StatisticsResult], names: dict[str, Any], most: Optional[int]
) -> None:
    out = show.Page()
    for name, result in results.items():
        counted = "frames" if names[name] == CHANNELS else "values"
        out.print(f"{name}: {int(np.max(result.count))} {counted}", style="bold", wrap=False)
        channels = names[name] or [f"[{i}]" for i in range(result.mean.shape[-1])]
        if result.mean.ndim == 2:  # by step
            channels = [f"+{step} {c}" for step in range(len(result.mean)) for c in channels]
            result = _flat(result)
        with_bad = bool(result.nonfinite.any())
        head = ["channel", "min", "q01", "mean", "q99", "max", "std"]
        rows = []
        for c, channel in enumerate(channels[:most]):
            shown = [
                result.min[c],
                result.quantile(0.01)[c],
                result.mean[c],
                result.quantile(0.99)[c],
                result.max[c],
                result.std[c],
            ]
            bad = [str(int(result.nonfinite[c]))] if with_bad else []
            rows.append([channel, *(number(x, 4) for x in shown), *bad])
        out.print(show.table([*head, *(["bad"] if with_bad else [])], rows))
        if most is not None and len(channels) > most:
            out.print(f"... and {len(channels) - most} more: --all shows them")
        out.print()
