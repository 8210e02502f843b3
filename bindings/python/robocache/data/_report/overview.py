"""The result of `inspect` for a recording or a data set: plain data for tables and JSON."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..._episodes.episodes import Episodes
from .._errors import FormatError, without_unread
from .._frames.source import FrameSource
from .._kinds.kinds import channels_in
from .._kinds.names import labels_of
from .._recording import Recording
from .._source import header_is_good
from .._time_units import per_second
from ..checks import StreamSurvey, Survey

_EPOCH_FROM = 946_684_800.0  # s: times before the year 2000 do not count from 1970
_EPOCH_TO = 253_402_300_800.0  # s: the year 10000
_REGULAR = (
    *("rate", "period", "jitter", "jitter_p99", "repeats", "disorder"),
    *("gaps", "gap_limit", "longest_gap", "coverage"),
)


@np.errstate(invalid="ignore", over="ignore")  # times may be infinite
def overview(source: Any, survey: Survey, unit: str | None) -> dict[str, Any]:
    """Return the overview of a recording or episodes after a survey."""
    clock = survey_clock(survey)
    regularity: dict[str, Any] = {}
    if any(rows for stream in survey.streams.values() for rows in stream.clocks.values()):
        try:
            regularity = survey.report(clock, unit).to_dict()["streams"]
        except ValueError:  # no samples at all
            regularity = {}
    result: dict[str, Any] = {
        "path": str(
            (source.path if isinstance(source, Recording) else source.source) or "in memory"
        ),
        "format": source.format,
        "size_bytes": disk_size(source.path if isinstance(source, Recording) else source.source),
        "time_unit": "s" if survey.unit is not None else "ticks",
        "clock": clock,
    }
    if isinstance(source, Recording):
        result.update(kind="recording", **_span(survey, clock))
        result["streams"] = _streams(source, survey, regularity)
    else:
        result.update(kind="episodes", **_episodes(source))
        result["streams"] = _tracks(source, survey, regularity)
    result["cameras"] = {name: _camera(camera) for name, camera in _cameras_of(source).items()}
    unread = getattr(source, "unread", ())
    left_out = without_unread(source.left_out, unread)
    result["left_out"] = [{"place": o.place, "reason": o.reason} for o in left_out]
    result["unread"] = [dataclasses.asdict(each) for each in unread]
    result["findings"] = [finding.to_dict() for finding in survey.findings]
    return result


def _cameras_of(source: Any) -> Mapping[str, FrameSource]:
    return source.cameras if isinstance(source, Recording) else source._about.cameras


def _camera(camera: FrameSource) -> dict[str, Any]:
    """Return the shape of a camera's frames, or why they cannot be read."""
    try:
        return {"shape": list(camera.shape), "problem": None}
    except (FormatError, ImportError) as error:
        return {"shape": None, "problem": str(error)}
    finally:
        camera.close()


def survey_clock(survey: Survey) -> str | None:
    """Return "header" if all header stamps are good, "log" if there are log times, else None."""
    both = [s.clocks for s in survey.streams.values() if {"header", "log"} <= set(s.clocks)]
    if both and all(header_is_good(c["header"][0], c["log"][0]) for c in both):
        return "header"
    return "log" if any("log" in s.clocks for s in survey.streams.values()) else None


def disk_size(path: Any) -> int | None:
    """Return the bytes of a file, or of all files in a folder, without following links."""
    if path is None or not os.path.exists(path):
        return None
    if os.path.isfile(path):
        return os.path.getsize(path)
    total = 0
    for base, _, names in os.walk(path):
        for name in names:
            total += os.lstat(os.path.join(base, name)).st_size
    return total


def finite(times: Any) -> Any:
    """Return the finite times [n]; others have no place on a time line."""
    return times[np.isfinite(times)] if times.dtype.kind == "f" else times


def _span(survey: Survey, clock: str | None) -> dict[str, Any]:
    """Return the first and the last time over all streams."""
    ticks = per_second(survey.unit)
    ends = []
    for stream in survey.streams.values():
        rows = stream.clocks.get(clock or "") or next(iter(stream.clocks.values()), [])
        ends += [(row.min().item(), row.max().item()) for row in map(finite, rows) if len(row)]
    if not ends:
        return {"begin": None, "duration": None, "begin_utc": None}
    begin, end = min(e[0] for e in ends), max(e[1] for e in ends)
    utc = None
    if survey.unit is not None and _EPOCH_FROM < begin / ticks < _EPOCH_TO:
        utc = str(np.datetime64(int(begin / ticks), "s")).replace("T", " ")
    return {"begin": begin, "duration": (end - begin) / ticks, "begin_utc": utc}


def _streams(source: Recording, survey: Survey, regularity: dict[str, Any]) -> dict[str, Any]:
    by_name = {}
    for name in source.names:
        seen = survey.streams.get(name)
        info = source.info(name)
        names = seen.names if seen else info.names
        by_name[name] = {
            "type": info.kind,
            "samples": seen.samples if seen else 0,
            "channels": None if names is None else len(names),
            "clocks": list(seen.clocks) if seen else [],
            "kinds": kinds_of(seen, names),
            "times": info.times,
            **_regular(regularity.get(name)),
        }
    return by_name


def times_lines(streams: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return lines that say where the times of each table come from."""
    found: dict[str, str] = {}
    for name, stream in streams.items():
        if stream.get("times"):
            found.setdefault(name.partition(": ")[0].partition("[")[0], stream["times"])
    return [f"{name}: times from {text}" for name, text in found.items()]


def _episodes(source: Episodes) -> dict[str, Any]:
    lengths = source.lengths(next(iter(source.tracks))) if source.tracks else np.zeros(0, int)
    tasks = source.tasks
    return {
        "episodes": len(source),
        "frames": int(lengths.sum()),
        "shortest": int(lengths.min()) if len(lengths) else None,
        "longest": int(lengths.max()) if len(lengths) else None,
        "rate": source.rate,
        "tasks": None if tasks is None else len({str(task) for task in tasks if task is not None}),
    }


def _tracks(source: Episodes, survey: Survey, regularity: dict[str, Any]) -> dict[str, Any]:
    by_name = {}
    for name, track in source.tracks.items():
        by_name[name] = {
            "type": "frames in files" if track.values is None else str(track.values.dtype),
            "samples": track.num_rows,
            "channels": track.num_channels if track.values is not None else None,
            "clocks": list(survey.streams[name].clocks),
            "kinds": kinds_of(survey.streams[name], track.names),
            **_regular(regularity.get(name)),
        }
    return by_name


def _regular(values: dict[str, Any] | None) -> dict[str, Any]:
    return {name: None if values is None else values[name] for name in _REGULAR}


def kinds_of(seen: StreamSurvey | None, names: Any) -> list[dict[str, Any]]:
    """Return the name, kind and unit of each channel, and what they were inferred from."""
    if seen is None or seen.channels.width == 0:
        return []
    labels = labels_of(seen.name, names, seen.channels.width)
    kinds = seen.channels.kinds
    group_of = {column: group for group in kinds.groups for column in group.columns}
    return [
        {
            "name": channel.name,
            "kind": channel.kind,
            "unit": channel.unit,
            "source": group_of[column].source,
            "evidence": group_of[column].evidence,
        }
        for column, channel in enumerate(channels_in(kinds, names or labels))
    ]


def kind_lines(channels: list[dict[str, Any]]) -> list[str]:
    """Describe the channels that are neither numbers nor steps, grouped by evidence."""
    together: dict[tuple[Any, ...], list[str]] = {}
    for channel in channels:
        if channel["kind"] not in ("number", "step"):
            key = (channel["kind"], channel["unit"], channel["source"], channel["evidence"])
            together.setdefault(key, []).append(channel["name"])
    lines = []
    for (kind, unit, source, evidence), names in together.items():
        shown = ", ".join(names) if len(names) <= 2 else f"{names[0]} to {names[-1]}"
        words = f"{kind} ({unit})" if unit else kind
        lines.append(f"{shown}: {words}, by {_SOURCES[source]}: {evidence}")
    return lines


_SOURCES = {"caller": "--kind", "file": "the file", "names": "names", "values": "values"}
