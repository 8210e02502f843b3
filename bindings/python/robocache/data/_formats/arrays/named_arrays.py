"""Recordings and episodes as named arrays and a description, as stored in npz and Zarr files.

The description is plain JSON. Arrays have short names, so that stream names never become paths.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Callable, Union

from .... import Track
from ...._arguments.to_numpy import on_host
from ...._episodes.channels import KINDS, SOURCES, Group
from ...._episodes.episodes import Episodes, make_episodes
from ...._episodes.lazy_tracks import About
from ...._printable import plural
from ..._errors import FormatError, LeftOut, Problem
from ..._kinds.kinds import Kinds, candidate_findings
from ..._kinds.tracks import kinds_of_track, with_kinds
from ..._recording import RecordedStream, Recording

VERSION = 1
_LONGEST = 255  # bytes of a name, the limit of file systems
_CUT = 200
Data = Union[Recording, Episodes]


def flattened(source: Data) -> tuple[dict[str, Any], Iterator[tuple[str, Any]]]:
    """Return the description, and the arrays one by one."""
    if isinstance(source, Recording):
        return _recording(source)
    return _episodes(source)


def _recording(source: Recording) -> tuple[dict[str, Any], Iterator[tuple[str, Any]]]:
    streams = list(source.streams.values())
    descriptions = [
        {
            "name": stream.name,
            "kind": stream.kind,
            "names": list(stream.names),
            "clocks": list(stream.clocks),
            "unit": stream.unit,
            "dtypes": None if stream.dtypes is None else list(stream.dtypes),
            "kinds": _groups(stream.kinds),
            **({"static": True} if stream.static else {}),
        }
        for stream in streams
    ]

    def arrays() -> Iterator[tuple[str, Any]]:
        for i, stream in enumerate(streams):
            yield f"s{i}_values", stream.values
            for clock, times in stream.clocks.items():
                yield f"s{i}_{clock}", times

    left_out = [[each.place, each.reason] for each in source.left_out]
    head = {"robocache": "recording", "version": VERSION, "source": source.path}
    return {**head, "left_out": left_out, "streams": descriptions}, arrays()


def _episodes(source: Episodes) -> tuple[dict[str, Any], Iterator[tuple[str, Any]]]:
    tracks = list(source.tracks.items())
    descriptions = [
        {
            "name": name,
            "names": None if track.names is None else list(track.names),
            "values": track.values is not None,
            "times": None if track.times is None else track.time_unit or "",
            **({} if track.arrivals is None else {"arrivals": True}),
            "files": None if track.files is None else [_plain(file) for file in track.files],
            "kinds": None if track.values is None else _groups(kinds_of_track(track, name)),
        }
        for name, track in tracks
    ]

    def arrays() -> Iterator[tuple[str, Any]]:
        for i, (_, track) in enumerate(tracks):
            yield f"t{i}_offsets", on_host(track.episode_offsets)
            if track.values is not None:
                yield f"t{i}_values", on_host(track.values)
            if track.times is not None:
                yield f"t{i}_times", on_host(track.times)
            if track.arrivals is not None:
                yield f"t{i}_arrivals", on_host(track.arrivals)

    tasks = None if source.tasks is None else [_plain(task) for task in source.tasks]
    left_out = [[each.place, each.reason] for each in source.left_out]
    head = {"robocache": "episodes", "version": VERSION, "source": source.source}
    rest = {"tasks": tasks, "rate": source.rate, "unit": source.unit, "left_out": left_out}
    return {**head, **rest, "tracks": descriptions}, arrays()


def restored(
    description: dict[str, Any],
    array: Callable[[str], Any],
    path: str,
    kind: str,
    problems: Sequence[Problem] = (),
) -> Recording | Episodes:
    """Return a recording or episodes, from their description and a function that reads arrays.

    ``problems``: a list to which the function adds while it reads.
    """
    left_out = [LeftOut(place, reason) for place, reason in description.get("left_out", [])]
    if description["robocache"] == "recording":
        streams = {}
        for i, entry in enumerate(description["streams"]):
            clocks = {clock: array(f"s{i}_{clock}") for clock in entry["clocks"]}
            values, names = array(f"s{i}_values"), tuple(entry["names"])
            if values.ndim != 2 or values.shape[1] != len(names):
                expected = f"[n,{len(names)}] (one column per channel)"
                text = f"has shape {list(values.shape)}, expected {expected}"
                raise FormatError(path, f"s{i}_values", text)
            for clock, times in clocks.items():
                if times.shape != values.shape[:1]:
                    expected = f"[{len(values)}] (one per row)"
                    text = f"has shape {list(times.shape)}, expected {expected}"
                    raise FormatError(path, f"s{i}_{clock}", text)
            stream = streams[entry["name"]] = RecordedStream(
                entry["name"],
                entry["kind"],
                names,
                values,
                clocks,
                entry["unit"],
                None if entry["dtypes"] is None else tuple(entry["dtypes"]),
                static=entry.get("static") is True,
            )
            kinds = _kinds(entry, names, len(names), path, f"s{i}")
            if kinds is not None:
                stream.__dict__["kinds"] = kinds
        return Recording(None, streams, left_out=left_out, path=path, problems=problems)
    tracks = {}
    for i, entry in enumerate(description["tracks"]):
        times = _times(array(f"t{i}_times"), entry) if entry["times"] is not None else None
        arrivals = _times(array(f"t{i}_arrivals"), entry) if entry.get("arrivals") else None
        files = entry["files"]
        track = tracks[entry["name"]] = Track(
            array(f"t{i}_values") if entry["values"] else None,
            array(f"t{i}_offsets"),
            times=times,
            arrivals=arrivals,
            names=entry["names"],
            files=None if files is None else [_tuple(file) for file in files],
        )
        kinds = _kinds(entry, track.names, track.num_channels, path, f"t{i}")
        if kinds is not None:
            tracks[entry["name"]] = with_kinds(track, entry["name"], kinds)
    about = About(
        kind, description["unit"], description["rate"], left_out=tuple(left_out), problems=problems
    )
    tasks = (
        None if description["tasks"] is None else [_tuple(task) for task in description["tasks"]]
    )
    return make_episodes(tracks, tasks=tasks, source=path, about=about)


def _times(ticks: Any, entry: dict[str, Any]) -> Any:
    """Return saved times with the unit in the description of their track."""
    return (
        ticks.view(entry["times"].partition(",")[0].rstrip("]") + "]") if entry["times"] else ticks
    )


def _groups(kinds: Kinds) -> dict[str, Any]:
    """Return the groups, and the doubtful groups, as plain dicts."""
    groups = [dataclasses.asdict(group) for group in kinds.groups]
    return {"groups": groups, "candidates": [dataclasses.asdict(g) for g in kinds.candidates]}


def _kinds(
    entry: dict[str, Any], names: Sequence[str] | None, channels: int, path: str, place: str
) -> Kinds | None:
    """Return the saved kinds; None for older files without kinds."""
    saved = entry.get("kinds")
    if saved is None:
        return None
    groups, candidates = (
        [_group(entry) for entry in saved[key]] for key in ("groups", "candidates")
    )
    columns = sorted(column for group in groups for column in group.columns)
    inside = all(0 <= column < channels for group in candidates for column in group.columns)
    if columns != list(range(channels)) or not inside:
        raise FormatError(path, place, f"its kinds do not fit {plural(channels, 'channel')}")
    findings = candidate_findings(entry["name"], names, channels, candidates)
    return Kinds(tuple(groups), tuple(candidates), tuple(findings))


def _group(fields: dict[str, Any]) -> Group:
    columns = tuple(int(column) for column in fields["columns"])
    positive = tuple(bool(each) for each in fields["positive"])
    texts = {key: fields[key] for key in ("kind", "unit", "form", "source", "evidence")}
    known = texts["kind"] in KINDS and texts["source"] in SOURCES
    if not known or not all(isinstance(text, (str, type(None))) for text in texts.values()):
        raise ValueError(f"expected a group of channels, got {texts}")
    return Group(columns=columns, positive=positive, **texts)


def distinct(names: Sequence[str], reserved: Collection[str] = ()) -> list[str]:
    """Make file names from stream names: no separators, no dots at the begin, no duplicates.

    Saved files are found by these names, so names that file systems allow must stay unchanged.
    """
    made: list[str] = []
    seen = set(reserved)
    for name in names:
        short = _held(re.sub(r"[^\w.+-]+", ".", name).strip(".") or "unnamed")
        taken, number = short, len(made)
        while taken in seen:
            taken = _held(short, f".{number}")
            number += 1
        made.append(taken)
        seen.add(taken)
    return made


def _held(name: str, end: str = "") -> str:
    """Cut a name if it is too long for a file system."""
    if len((name + end).encode()) > _LONGEST:
        name = name.encode()[:_CUT].decode(errors="ignore")
    return name + end


def parsed(text: str) -> dict[str, Any] | None:
    """Parse a description; None if the text is not one."""
    try:
        description = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return description if isinstance(description, dict) and description.get("robocache") else None


def _plain(value: Any) -> Any:
    """Convert to types that JSON has."""
    if isinstance(value, (tuple, list)):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, (int, float)) else str(value)


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
