"""``robocache pipeline``: make, check and compare pipeline files."""

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from .. import Pipeline
from .._pipeline.checked_data import checked_data
from .._pipeline.replay import Replayed, replayed
from .._pipeline.strict_json import shown
from .._pipeline.typed_values import MISSING
from .._printable import plural
from ..data import Recording
from . import _display as show
from ._common import (
    AcceptGuesses,
    AsJson,
    AsNumbers,
    DataPath,
    Definitions,
    Failure,
    Kind,
    Output,
    Overwrite,
    Streams,
    Time,
    Unit,
    guesses,
    narrowed,
    open_data,
    warn_problems,
    with_kinds,
)
from ._outputs import check_output, definition_files

_PEERS = ("lerobot", "openpi", "gr00t")
_MOST = 20  # lines of a list

PipelineFile = Annotated[
    Path,
    typer.Argument(
        help="A pipeline file, or a folder with robocache_pipeline.json.", show_default=False
    ),
]


def init(
    path: DataPath,
    output: Output,
    rate: Annotated[float, typer.Option(help="Rows per second.", metavar="HZ")] = 20.0,
    peer: Annotated[
        Optional[tuple[str, Path]],
        typer.Option(
            "--from",
            help="Take modes and statistics from files of lerobot, openpi or gr00t.",
            metavar="PROJECT PATH",
        ),
    ] = None,
    stream: Streams = None,
    kind: Kind = None,
    accept_guesses: AcceptGuesses = False,
    as_numbers: AsNumbers = False,
    time: Time = None,
    unit: Unit = None,
    definition: Definitions = None,
    overwrite: Overwrite = False,
    as_json: AsJson = False,
) -> None:
    """Write a pipeline file: all streams, names and units, one window per stream, statistics.

    What the data do not say is "?", such as the unit of a joint; replace each "?", since the file
    is refused until then. Then set the windows, limits and delays of the policy.
    """
    if peer is not None and peer[0] not in _PEERS:
        raise typer.BadParameter(f"{peer[0]!r}: choose {', '.join(_PEERS)}", param_hint="--from")
    check_output(output, overwrite, [path, *definition_files(definition)])
    source: Any = with_kinds(open_data(path, definitions=definition, time=time, unit=unit), kind)
    source = narrowed(source, stream)
    source = _decided(source, guesses(accept_guesses, as_numbers))
    draft = Pipeline.init(source, rate)
    if peer is not None:
        made = draft.import_from(peer[0], peer[1])
    else:
        made = draft.fit(draft.open(source))
    warn_problems(source)
    made.save(output)
    provenance = made.to_dict()["provenance"]
    notes = [*provenance["left_out"], *provenance.get("imported", {"notes": []})["notes"]]
    if as_json:
        show.print_json(
            {
                "path": str(path),
                "output": str(output),
                "fingerprint": made.fingerprint,
                "unknown": list(made.unknown),
                "notes": notes,
            }
        )
        return
    page = show.Page()
    page.print(f"wrote {output}: {made!r}", wrap=False)
    _list(page, 'replace "?" at', list(made.unknown))
    _list(page, "not in the file", notes)


def _decided(source: Any, options: dict[str, bool]) -> Any:
    """Declare the possible quaternions of a recording, if an option decides about them."""
    if not any(options.values()) or not isinstance(source, Recording):
        return source
    declared: dict[str, dict[str, str]] = {}
    for name, recorded in source.streams.items():
        for group in recorded.kinds.candidates:
            channels = ",".join(recorded.names[column] for column in group.columns)
            kind = "quaternion" if options["accept_guesses"] else "number"
            declared.setdefault(name, {})[channels] = kind
    return source.with_kinds(declared) if declared else source


def _list(page: Any, title: str, lines: list[str]) -> None:
    if not lines:
        return
    page.print(f"{title}:")
    for line in lines[:_MOST]:
        page.print(f"  {line}", wrap=False)
    if len(lines) > _MOST:
        page.print(f"  and {len(lines) - _MOST} more")


def check(
    path: PipelineFile,
    data: Annotated[
        Optional[list[Path]],
        typer.Option(
            help="Compare with this recording or data set: names, order, rates, ranges, units, "
            "delays, and what is above the Nyquist frequency of the rows. Repeatable."
        ),
    ] = None,
    replay: Annotated[
        Optional[list[Path]],
        typer.Option(
            help="Push the samples of this bag as they arrived, and compare every row with "
            "training, in values and masks. Repeatable."
        ),
    ] = None,
    definition: Definitions = None,
    time: Time = None,
    unit: Unit = None,
    as_json: AsJson = False,
) -> None:
    """Validate a pipeline file, and compare it with data.

    Exits with 1 if the file is not valid, data have an error or a warning, or a replayed row
    differs. If a ring lost a sample that a row needs, the capacity that suffices is printed. With
    the availability "stamp", prints the least lag at which all rows are equal, or that there is
    none.
    """
    pipeline = Pipeline.load(path)
    plan = pipeline._plan
    options: Any = {"definitions": definition, "time": time, "unit": unit}
    findings: dict[str, list[dict[str, str]]] = {}
    replays: dict[str, Replayed] = {}
    for each in data or ():
        source = open_data(each, **options)
        findings[str(each)] = [found.to_dict() for found in checked_data(plan, source)]
        warn_problems(source)
    for each in replay or ():
        source = open_data(each, **options)
        if not isinstance(source, Recording):
            raise Failure(f"--replay {each}: is a data set, expected a recording")
        replays[str(each)] = replayed(plan, source)
        warn_problems(source)
    bad = any(f["severity"] != "note" for found in findings.values() for f in found)
    bad = bad or not all(result.is_equal for result in replays.values())
    if as_json:
        show.print_json(
            {
                "path": str(path),
                "fingerprint": pipeline.fingerprint,
                "data": [{"path": p, "findings": found} for p, found in findings.items()],
                "replays": [_replay_json(p, result) for p, result in replays.items()],
                "ok": not bad,
            }
        )
    else:
        page = show.Page()
        page.print(f"{path}: {pipeline!r}", wrap=False)
        page.print(f"fingerprint {pipeline.fingerprint}", wrap=False)
        for name, found in findings.items():
            page.print(f"{name}: " + (plural(len(found), "finding") if found else "nothing found"))
            page.print(
                show.listed(
                    (f["severity"], show.COLOURS[f["severity"]], f"{f['pointer']}: {f['text']}")
                    for f in found
                )
            )
        for name, result in replays.items():
            _print_replay(page, name, result)
    if bad:
        raise typer.Exit(1)


def _replay_json(path: str, result: Replayed) -> dict[str, Any]:
    return {
        "path": path,
        "rows": result.rows,
        "equal": result.rows - len(result.unequal),
        "windows": dict(result.equal),
        "lag": result.lag,
        "capacities": dict(result.capacities),
        "least_lag": result.least_lag,
        "never_equal": list(result.never_equal[:_MOST]),
    }


def _print_replay(page: Any, name: str, result: Replayed) -> None:
    equal = result.rows - len(result.unequal)
    share = f"{equal / result.rows:.2%}" if result.rows else "none"
    page.print(
        f"{name}: {equal} of {result.rows} rows equal in values and masks ({share})", wrap=False
    )
    for window, count in result.equal.items():
        page.print(f"  {window}: {count}", wrap=False)
    if result.unequal:
        rows = ", ".join(map(str, result.unequal[:5]))
        page.print(f"  rows that differ: {rows}{', ...' if len(result.unequal) > 5 else ''}")
    for stream, capacity in result.capacities.items():
        page.print(
            f"  a ring lost samples that rows need: /streams/{stream}/capacity must be {capacity}",
            wrap=False,
        )
    if result.least_lag is None:
        return
    if result.never_equal:
        rows = ", ".join(map(str, result.never_equal[:5]))
        page.print(f"  no lag makes all rows equal; at any lag these differ: {rows}")
    else:
        page.print(f"  the least lag at which all rows are equal is {result.least_lag:g} s")


def diff(
    path: PipelineFile,
    other: Annotated[
        Path, typer.Argument(help="The pipeline file to compare with.", show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Print the differences of two pipeline files by JSON pointer; exit with 1 if they differ.

    White space, the order of keys, the spelling of numbers, provenance and keys with "x-" in front
    do not count. Files with "?" are compared too.
    """
    ours, theirs = (Pipeline.load(each, draft=True) for each in (path, other))
    found = ours.diff(theirs)
    if as_json:
        show.print_json(
            {
                "path": str(path),
                "other": str(other),
                "differences": [
                    {
                        "pointer": each.pointer,
                        "ours": _value(each.ours),
                        "theirs": _value(each.theirs),
                        "missing": _missing(each),
                    }
                    for each in found
                ],
                "equal": not found,
            }
        )
    else:
        page = show.Page()
        for each in found:
            page.print(f"{each.pointer}: {_text(each.ours)} -> {_text(each.theirs)}", wrap=False)
        page.print("equal" if not found else plural(len(found), "difference"))
    if found:
        raise typer.Exit(1)


def _text(value: Any) -> str:
    return "missing" if value is MISSING else shown(value)


def _value(value: Any) -> Any:
    return None if value is MISSING else value


def _missing(difference: Any) -> Optional[str]:
    """Return the side that does not have the value."""
    if difference.ours is MISSING:
        return "ours"
    return "theirs" if difference.theirs is MISSING else None
