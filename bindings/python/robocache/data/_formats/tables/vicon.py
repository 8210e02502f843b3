"""CSV files of Vicon's Nexus and Tracker: sections, each with several header lines."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ..._errors import FormatError, LeftOut, needed
from ..._file_access import head, opened
from ..._options import Options
from ..._recording import Recording
from ..description import Format
from .clock import Clock
from .csv import read_rows
from .layout import Layout
from .parquet import nan_filled, numbers_of
from .streams import Table, streams_of
from .tables import open_file

FORMAT = Format(
    name="vicon",
    title="Vicon CSV",
    files="*.csv",
    reads="One stream per object, segment, marker or device of each section (Objects, Segments, "
    "Joints, Model Outputs, Trajectories, Devices). The times are frames and sub frames at the "
    "section's rate; frame 1 is at 0 s. Channels have the unit of the file: X [mm]. RX, RY, RZ, RW "
    "are a quaternion (aligned by slerp).",
    refuses="RX, RY, RZ without RW do not state whether they are a rotation vector or Euler "
    "angles: they are numbers, with a warning. Declare them: --kind STREAM:RX,RY,RZ=KIND. A file "
    "whose names have no subject (Subject:Name) is not Vicon's, and is refused.",
    package="pyarrow",
    extra="tables",
    example='recording = rbc.data.open("trial.csv")',
)
_DEVICES = "Devices"  # the only section whose names have no subject
_EVENTS = "Events"  # a section of texts
_SECTIONS = ("Objects", "Segments", "Joints", "Model Outputs", "Trajectories", _DEVICES, _EVENTS)
_TITLE = re.compile(
    rb"(?:\A|(?<=\n))(?:\xef\xbb\xbf)?(" + "|".join(_SECTIONS).encode() + rb")[,;\t ]*\r?\n"
)
_MARK = b"\xef\xbb\xbf"  # the byte order mark of UTF-8
_BLANK = _MARK + b"\r\n,;\t "  # what may be above the first section
_LONGEST_TITLE = 256  # bytes
_RATE = re.compile(r"\d+(?:\.\d+)?")
_BLOCK = 1 << 20
_LONGEST = 16 << 20  # bytes of a line
_LOOK = 512
_FIXED = ("Frame", "Sub Frame")
_TIME = "time"
_PREFIX = re.compile(r"\AGlobal Angle (?:\(Quaternion\) )?")  # of Tracker, before an object's name


@dataclass(frozen=True)
class Section:
    """A part of the file, with its own columns and rate."""

    title: str
    rate: float
    delimiter: str
    names: tuple[str, ...]  # of the thing of each column
    columns: tuple[str, ...]  # such as X, Y, RX
    units: tuple[str, ...]
    begin: int  # byte of the first row
    count: int  # bytes of the rows


def sniff(path: str) -> bool:
    start = head(path, _LOOK)
    title = _TITLE.search(start)
    if title is None or start[: title.start()].strip(_BLANK):
        return False
    rest = start[title.end() :]
    if title[1] == _EVENTS.encode():
        return b"\nSubject," in b"\n" + rest
    return _rate_in(rest.partition(b"\n")[0]) is not None or b"\nFrame" in rest


def open(path: str, options: Options) -> Recording:
    return open_file(path, options, FORMAT.title, _read)


def _read(stem: str, path: str, options: Options) -> Table:
    made: Table | None = None
    titles = _titles_in(path)
    sections = sections_of(path, titles, options)
    _require_subjects(path, sections)
    for section in sections:
        part = _streams_in(path, section, options)
        if made is None:
            made = part
            continue
        for name, stream in part.streams.items():
            while name in made.streams:
                name = f"{name} ({section.title})"
            made.streams[name] = stream
        made.left_out += part.left_out
        made.table_rows += part.table_rows
    if made is None:
        raise FormatError(path, "", "has no section that can be read")
    if any(title == _EVENTS for _, title in titles):
        made.left_out.append(LeftOut(_EVENTS, "are texts, which are not read"))
    made.names = _FIXED
    if made.clock is not None:
        made.clock.reason = _reason(sections)
    return made


def _reason(sections: Sequence[Section]) -> str:
    rates = ", ".join(f"{section.rate:g} Hz ({section.title})" for section in sections)
    return f"at {rates}; frame 1 is at 0 s"


def _streams_in(path: str, section: Section, options: Options) -> Table:
    """Read the rows of a section: a stream for each thing in it."""
    import numpy as np

    arrow = needed("pyarrow", "tables", "a CSV file")
    names = tuple(f"c{i}" for i in range(len(section.columns)))
    layout = Layout(section.delimiter, None, names, 0, floats=names)
    table = read_rows(path, layout, options.limit, options.damage, section.begin, section.count)
    frames, parts = (
        numbers_of(path, name, nan_filled(table[own])) for name, own in zip(_FIXED, names)
    )
    ticks = parts[np.isfinite(parts)].max(initial=0.0) + 1
    with np.errstate(all="ignore"):
        times = ((frames - 1) * ticks + parts) / section.rate
    clock = Clock("Frame", "f", "s", (_TIME,), reason=_reason([section]))
    mask = ~np.isfinite(times)
    seconds = arrow.chunked_array([arrow.array(times, mask=mask)])
    made = Table({}, clock, [], list(names))
    made.table_rows = len(table)
    things: dict[str, list[int]] = {}
    for column in range(len(_FIXED), len(names)):
        things.setdefault(section.names[column], []).append(column)
    for thing, columns in things.items():
        channels: list[str] = []
        for column in columns:
            unit = section.units[column]
            channel = section.columns[column] + (f" [{unit}]" if unit else "")
            while channel in channels:
                channel += "'"
            channels.append(channel)
        own = table.select([names[column] for column in columns]).rename_columns(channels)
        if all(own[channel].null_count == len(own) for channel in channels):
            made.left_out.append(LeftOut(thing, "was never seen"))
            continue
        part = streams_of(thing, path, own.append_column(_TIME, seconds), clock)
        made.streams.update(part.streams)
        made.left_out += part.left_out
        made.untimed = part.untimed
    return made


# ---- sections -----------------------------------------------------------------------------------


def sections_of(path: str, titles: Sequence[tuple[int, str]], options: Options) -> list[Section]:
    """Read the headers of the sections. One whose header is damaged is damage."""
    size = os.path.getsize(path)
    found = []
    for (at, title), end in zip(titles, [*(at for at, _ in titles[1:]), size]):
        if title == _EVENTS:
            continue
        try:
            found.append(_section(path, at, title, end))
        except FormatError as error:
            options.damage.found(path, error.place, error.reason)
    return found


def _require_subjects(path: str, sections: Sequence[Section]) -> None:
    """Refuse a file whose names are all without a subject: another tool wrote it.

    Only that tool knows what the rows mean, and when they were taken.
    """
    of_subjects = [section for section in sections if section.title != _DEVICES]
    names = [name for section in of_subjects for name in section.names]
    if not of_subjects or any(":" in name for name in names):
        return
    first = of_subjects[0]
    row = 1 + _lines_before(path, first.begin)
    text = (
        f"the numbers begin in this row, below lines as Vicon writes them, but no name has a "
        f"subject: row {row - 2 - bool(any(first.units))} has {first.names[-1]!r}, expected "
        "Subject:Name. If Vicon wrote the file, add the subjects; else replace the rows above the "
        "numbers by one with the names of the columns"
    )
    raise FormatError(path, f"row {row}", text)


def _lines_before(path: str, place: int) -> int:
    count = 0
    with opened(path) as file:
        while place > 0 and (block := file.read(min(place, _BLOCK))):
            count += block.count(b"\n")
            place -= len(block)
    return count


def _titles_in(path: str) -> list[tuple[int, str]]:
    """Return the places and names of the sections."""
    found: dict[int, str] = {}
    place, rest = 0, b""
    with opened(path) as file:
        while block := file.read(_BLOCK):
            text = rest + block
            for at in _lines_in(text):
                match = _TITLE.match(text, at)
                begins_line = at > 0 or place == 0  # the byte before `rest` is not known
                if match is not None and begins_line:
                    found[place - len(rest) + at] = match[1].decode()
            place += len(block)
            rest = text[-_LONGEST_TITLE:]
    return sorted(found.items())


def _lines_in(text: bytes) -> Iterator[int]:
    """Yield where lines begin with the first letter of a section's name.

    A regex, or a search for each name, takes twenty times longer.
    """
    import numpy as np

    octets: Any = np.frombuffer(text, np.uint8)
    letters = np.zeros(256, bool)
    letters[[title.encode()[0] for title in _SECTIONS] + [_MARK[0]]] = True
    yield 0
    begins = np.flatnonzero(octets[:-1] == ord("\n")) + 1
    yield from begins[letters[octets[begins]]].tolist()


def _section(path: str, at: int, title: str, end: int) -> Section:
    """Read the lines above the rows of a section."""
    with opened(path) as file:
        file.seek(at)
        file.readline(_LONGEST)
        lines = [file.readline(_LONGEST) for _ in range(3)]
        begin = file.tell()
        units_line = file.readline(_LONGEST)
        after = file.tell()
    rate = _rate_in(lines[0])
    place = f"section {title}"
    if rate is None or rate <= 0:
        text = f"expected the rate in Hz, got {lines[0][:20].decode('utf-8', 'replace').strip()!r}"
        raise FormatError(path, place, text)
    delimiter = next((d for d in ",;\t" if f"{_FIXED[0]}{d}".encode() in lines[2][:64]), "")
    names, columns, units = (
        _cells(line, delimiter or ",") for line in (lines[1], lines[2], units_line)
    )
    if not delimiter or tuple(columns[:2]) != _FIXED:
        text = f"expected the columns Frame and Sub Frame, got {' '.join(columns[:2])!r}"
        raise FormatError(path, place, text)
    if units and not units[0] and any(units):
        begin = after
    else:
        units = []
    width = len(columns)
    names, units = (cells[:width] + [""] * (width - len(cells)) for cells in (names, units))
    filled, last = [], ""
    for column, name in enumerate(names):
        last = _PREFIX.sub("", name) or last
        filled.append(last or f"{title} {column}")
    return Section(
        title, rate, delimiter, tuple(filled), tuple(columns), tuple(units), begin, end - begin
    )


def _cells(line: bytes, delimiter: str) -> list[str]:
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    return [cell.strip() for cell in next(csv.reader([text], delimiter=delimiter), [])]


def _rate_in(line: Any) -> float | None:
    text = line.decode("utf-8", "replace").strip(",;\t\r\n ")
    return float(text) if _RATE.fullmatch(text) else None
