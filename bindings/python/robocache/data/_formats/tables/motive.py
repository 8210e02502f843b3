"""CSV files of OptiTrack's Motive: rigid bodies, bones and markers below several header lines."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..._errors import FormatError, LeftOut
from ..._file_access import head, opened
from ..._options import Options
from ..._recording import Recording
from ..description import Format
from .clock import Clock
from .csv import read_rows
from .layout import Layout
from .streams import Table, streams_of
from .tables import open_file

FORMAT = Format(
    name="motive",
    title="OptiTrack Motive CSV",
    files="*.csv",
    reads="One stream per rigid body, bone and labeled marker, on the column Time in s. The "
    "rotation is a quaternion by the names of its columns (aligned by slerp), or three angles in "
    "degrees; positions have the unit that the file states. Frames in which a body was not seen "
    "are not samples of it.",
    refuses="Markers without a label are listed, but not read.",
    package="pyarrow",
    extra="tables",
    example='recording = rbc.data.open("Take 001.csv")',
)
_BEGIN = b"Format Version,"
_LOOK = 1 << 12
_MOST_LINES = 16  # above the rows
_LONGEST = 16 << 20  # bytes of a line
_LABELS = ("Type", "Name", "ID", "Parent")
_UNITS = {"meters": "m", "centimeters": "cm", "millimeters": "mm", "inches": "in", "feet": "ft"}
_UNLABELED = "Unlabeled"


@dataclass
class Body:
    """The columns of a rigid body, a bone or a marker."""

    type: str
    name: str
    id: str
    columns: list[tuple[str, str]] = field(default_factory=list)  # column, name of the channel


@dataclass(frozen=True)
class Take:
    """The columns and the facts in the lines above the rows."""

    bodies: tuple[Body, ...]
    others: dict[str, str]  # names of columns that belong to no body, such as TimeCode
    columns: int
    first: int  # lines above the rows
    rotation: str
    unit: str | None


def sniff(path: str) -> bool:
    start = head(path, _LOOK).removeprefix(b"\xef\xbb\xbf")
    first = start.partition(b"\n")[0]
    return start.startswith(_BEGIN) and (b",Take " in first or b",Rotation Type," in first)


def open(path: str, options: Options) -> Recording:
    return open_file(path, options, FORMAT.title, _read)


def _read(stem: str, path: str, options: Options) -> Table:
    take = take_of(path)
    names = tuple(f"c{i}" for i in range(take.columns))
    floats = tuple(name for name in names if name not in take.others)
    layout = Layout(",", None, names, take.first, floats=floats)
    table = read_rows(path, layout, options.limit, options.damage)
    clock = Clock("Time", "f", "s", ("c1",), reason="as Motive writes it")
    made = Table({}, clock, [LeftOut(f"{stem}: Frame", "the number of each frame")], list(names))
    made.left_out += [
        LeftOut(f"{stem}: {name}", "belongs to no rigid body, bone or marker")
        for name in take.others.values()
    ]
    made.table_rows, made.names = len(table), ("Frame", "Time")
    again = Counter(body.name for body in take.bodies)
    for body in take.bodies:
        name = body.name
        while name in made.streams or again[body.name] > 1 and name == body.name:
            name = f"{name} ({body.type if name == body.name else body.id or 'again'})"
        seen = len(table) - min(table[column].null_count for column, _ in body.columns)
        if body.name.startswith(_UNLABELED):
            text = f"a marker without a label, seen in {seen:,} of {len(table):,} frames"
            made.left_out.append(LeftOut(name, text))
            continue
        if seen == 0:
            made.left_out.append(LeftOut(name, "was never seen"))
            continue
        own = table.select(["c1", *(column for column, _ in body.columns)])
        own = own.rename_columns(["c1", *(channel for _, channel in body.columns)])
        part = streams_of(name, path, own, clock)
        made.streams.update(part.streams)
        made.left_out += part.left_out
        made.untimed = part.untimed
    return made


def take_of(path: str) -> Take:
    """Read the lines above the rows."""
    lines = _head_of(path)
    about = dict(zip(lines[0][::2], lines[0][1::2]))
    rotation = about.get("Rotation Type", "Quaternion").strip()
    unit = _UNITS.get(about.get("Length Units", "").strip().lower())
    axes = lines[-1]
    rows = [line for line in lines[1:-1] if any(line)]
    if len(rows) < 3:
        raise FormatError(path, "", "the lines with types and names of the columns are missing")
    labels = {row[1]: row for row in rows[:-1] if len(row) > 1 and row[1] in _LABELS}
    if not labels:  # before version 1.23 they have no labels
        labels = dict(zip(("Type", "Name", "ID"), rows[:-1]))
    found: dict[tuple[str, str, str], Body] = {}
    others: dict[str, str] = {}
    for column in range(2, len(axes)):
        kind, name, own, measured = (
            row[column].strip() if len(row) > column else ""
            for row in (
                labels.get("Type", []),
                labels.get("Name", []),
                labels.get("ID", []),
                rows[-1],
            )
        )
        if not (kind or name or measured or axes[column]):  # after a comma at the end of the line
            continue
        if not (kind or name or measured):
            others[f"c{column}"] = axes[column].strip()
            continue
        body = found.setdefault((kind, name, own), Body(kind, name or f"column {column}", own))
        channel = _channel(measured, axes[column].strip(), rotation, unit)
        while any(channel == other for _, other in body.columns):
            channel += "'"
        body.columns.append((f"c{column}", channel))
    return Take(tuple(found.values()), others, len(axes), _lines_above(path), rotation, unit)


def _channel(measured: str, axis: str, rotation: str, unit: str | None) -> str:
    """Return the name of a channel: rotation.x, position.x [m], mean_marker_error [m]."""
    text = measured.lower().replace(" ", "_") or "value"
    length = f" [{unit}]" if unit else ""
    if text == "rotation" and axis:
        if rotation.lower() == "quaternion":
            return f"rotation.{axis.lower()}"
        return f"euler_{rotation.lower()}.{axis.lower()} [deg]"
    if axis and text == "position":
        return f"position.{axis.lower()}{length}"
    return f"{text}.{axis.lower()}" if axis else text + (length if "error" in text else "")


def _head_of(path: str) -> list[list[str]]:
    """Return the cells of the first line, and of those up to the names of the columns."""
    found: list[list[str]] = []
    for line in _first_lines(path):
        found.append(next(csv.reader([line]), []))
        if line.startswith("Frame,"):
            return found
    raise FormatError(path, "", f"no line begins with Frame, in the first {_MOST_LINES} lines")


def _lines_above(path: str) -> int:
    return next(i for i, line in enumerate(_first_lines(path), 1) if line.startswith("Frame,"))


def _first_lines(path: str) -> Sequence[str]:
    lines: list[str] = []
    with opened(path) as file:
        for _ in range(_MOST_LINES):
            line = file.readline(_LONGEST)
            if not line or (len(line) == _LONGEST and not line.endswith(b"\n")):
                break
            lines.append(line.decode("utf-8-sig", "replace").rstrip("\r\n"))
    return lines
