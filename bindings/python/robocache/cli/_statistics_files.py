"""The files that ``robocache stats`` writes: for LeRobot, openpi and GR00T, and repaired ones."""

import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any, Optional

import typer

from .. import StatisticsResult, statistics_files
from .._printable import plural, printable
from .._statistics.json_files import others_in
from ..data import Episodes
from ..data._formats.lerobot import lerobot
from ..data._formats.lerobot.stored_statistics import DataSet, Fixed, feature_names, fix
from . import _display as show
from ._common import Failure

KINDS = ("lerobot", "openpi", "gr00t")
IMAGES = ("sample", "all")
_USUAL = "meta/stats.json"


def data_set_of(path: Path, option: str) -> str:
    """Return the folder of a LeRobot data set; raise for anything else."""
    if not lerobot.sniff(str(path)):
        raise Failure(
            f"{option} works on LeRobot data sets, which have statistics and cameras; {path} has "
            "no meta/info.json"
        )
    return str(path)


def is_lerobot(source: Any) -> bool:
    """Whether the source is a LeRobot data set on disk."""
    return (
        isinstance(source, Episodes)
        and source.source is not None
        and lerobot.sniff(os.fspath(source.source))
    )


def mask_of(text: Optional[str]) -> Optional[list[bool]]:
    """Parse --delta-mask, numbers as in openpi's make_bool_mask: "6,-1" is six True, one False."""
    if text is None:
        return None
    mask: list[bool] = []
    for part in text.split(","):
        try:
            count = int(part)
        except ValueError:
            count = 0
        if not 0 < abs(count) <= 100_000:
            raise typer.BadParameter(
                f"{text!r}: expected counts of channels as in openpi's make_bool_mask, such as "
                "6,-1: the first 6 minus the state, the next one absolute",
                param_hint="--delta-mask",
            )
        mask += [count > 0] * abs(count)
    return mask


def write_file(
    kind: str,
    output: Path,
    source: Any,
    results: dict[str, StatisticsResult],
    everything: bool,
) -> dict[str, Any]:
    """Write a file of statistics; return what it has, for --json."""
    own = is_lerobot(source)
    if own:  # a feature may have a name that its track does not have
        renamed = feature_names(source.info)
        results = {renamed.get(name, name): result for name, result in results.items()}
        if everything:
            results = {**_not_tracks(source, results), **results}
    kept: list[str] = []
    if kind == "lerobot":
        kept = _write_lerobot(output, source if own else None, results)
    elif kind == "gr00t":
        statistics_files.write_gr00t(output, results)
    else:
        statistics_files.write_openpi(output, results)
    return {"path": str(output), "kind": kind, "keys": list(results), "kept": kept}


def _not_tracks(source: Any, results: Collection[str]) -> dict[str, StatisticsResult]:
    """Return the statistics of times and counters: GR00T and LeRobot have them too."""
    return DataSet.open(os.fspath(source.source)).of_numbers(without=results)[0]


def _write_lerobot(
    output: Path, source: Optional[Episodes], results: dict[str, StatisticsResult]
) -> list[str]:
    """Write ``stats.json``, and keep what the old file or the data set's file has beyond it."""
    base: Optional[str] = str(output) if output.is_file() else None
    if base is None and source is not None:
        base = os.path.join(str(source.source), _USUAL)
        base = base if os.path.isfile(base) else None
    kept: list[str] = []
    if base is not None:
        try:
            kept = list(others_in(base, set(results)))
        except (ValueError, TypeError) as error:
            text = f"no feature of {base} was kept: {error}"
            print(f"robocache: warning: {printable(text)}", file=sys.stderr)
            base = None
    images = None
    if source is not None:
        features = DataSet.open(str(source.source))
        images = [name for name in features.cameras if name in results]
    statistics_files.write_lerobot(output, results, images=images, keep=base)
    return kept


def written_lines(written: dict[str, Any]) -> list[str]:
    """Return lines about a file that was written."""
    lines = [f"wrote {written['path']}: {', '.join(written['keys'])}"]
    if written["kept"]:
        lines.append(f"kept as stored, not computed: {', '.join(written['kept'])}")
    if written.get("actions"):
        lines.append(written["actions"])
    return lines


def repair(path: Path, images: Optional[str], follow_links: bool, as_json: bool) -> None:
    """Compute the statistics in a LeRobot data set again, and replace them."""
    folder = data_set_of(path, "--fix")
    if follow_links:
        raise typer.BadParameter("--follow-links cannot be combined with --fix")
    fixed = fix(folder, images)
    if as_json:
        show.print_json(
            {
                "path": str(path),
                "written": {
                    "files": fixed.files,
                    "backups": fixed.backups,
                    "computed": fixed.computed,
                    "kept": fixed.kept,
                    "missing": fixed.missing,
                    "dropped": fixed.dropped,
                },
            }
        )
        return
    out = show.Page()
    for line in _fixed_lines(fixed):
        out.print(line, wrap=False)


def _fixed_lines(fixed: Fixed) -> list[str]:
    lines = [f"computed {plural(len(fixed.computed), 'feature')}: {', '.join(fixed.computed)}"]
    lines.append(f"wrote {', '.join(fixed.files)}")
    if fixed.backups:
        lines.append(f"old files: {', '.join(fixed.backups)}")
    if fixed.kept:
        lines.append(f"kept as stored, not computed: {', '.join(fixed.kept)}")
    if fixed.missing:
        names = ", ".join(fixed.missing)
        lines.append(f"without statistics: {names} (--images sample computes them)")
    if fixed.dropped:
        numbers = ", ".join(map(str, fixed.dropped))
        lines.append(f"removed statistics of episodes that do not exist: {numbers}")
    return lines
