"""ArduPilot's logs as text (.log), with the same streams as the binary ones."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

from ..._errors import FormatError
from ..._file_access import head
from ..._options import Options
from ..._recording import Recording
from ..._source import Piece
from ..description import Format
from .dataflash import DataFlash
from .dataflash_types import DEFINITIONS, LISTED, Type, parsed_type, size_of
from .layouts import BLOCK, Column, Found, Stream

FORMAT = Format(
    "dataflash-text",
    "ArduPilot text log",
    "*.log",
    "As the binary logs of ArduPilot: a stream for each message type and instance, with units, and "
    "the clock `TimeUS` or `TimeMS` in microseconds.",
    "Parameters and texts are listed, but not read. A last line without an end is not read.",
    example='recording = rbc.data.open("00000042.log")',
)

_FIRST = re.compile(rb"(?:[^\n]*\n){0,20}?FMT, ?\d{1,3}, ?\d{1,3}, ?\w+ ?,")
_LONGEST = 1 << 16  # bytes of a line
_FMT = Type(0x80, "FMT", 89, "BBnNZ", ("Type", "Length", "Name", "Format", "Columns"))


def sniff(path: str) -> bool:
    return _FIRST.match(head(path, 4096)) is not None


def open(path: str, options: Options) -> Recording:
    return Recording(_TextLog(path, options), progress=options.progress)


Row = tuple[int, list[str]]  # number of the line, and its fields


class _TextLog(DataFlash):
    """A text log as a source of streams (``_source.Source``)."""

    kind = "ArduPilot text log"

    def __init__(self, path: str, options: Options) -> None:
        self.by_name: dict[str, Type] = {}
        self.parsed: list[Found] = []  # numbers from texts take long to make, so they are kept
        super().__init__(path, options)

    def _examine(self) -> None:
        self.tables.arrays = False
        self.by_name.clear()
        self.parsed.clear()
        super()._examine()

    def blocks(self, file: BinaryIO) -> Iterator[Found]:
        if not self.is_opening:
            yield from self.parsed
            return
        size = os.fstat(file.fileno()).st_size
        line, at, rest = 1, 0, b""
        while at < size and (data := file.read(min(BLOCK, size - at))):
            at += len(data)
            whole, newline, rest = (rest + data).rpartition(b"\n")
            if len(rest) > _LONGEST:
                raise FormatError(self.path, f"line {line}", f"has more than {_LONGEST:,} bytes")
            if newline:
                lines = whole.decode("utf-8", "backslashreplace").split("\n")
                yield from self._lines(lines, line, at)
                line += len(lines)
        if rest.strip():
            self.rest = f"the last line ({line}) has no end: it may be truncated, and is not read"

    def _lines(self, lines: Sequence[str], first: int, at: int) -> Iterator[Found]:
        """Yield the messages of some lines by stream."""
        rows: dict[str, list[Row]] = {}
        for number, line in enumerate(lines, first):
            name, comma, content = line.partition(",")
            name = name.strip()
            made = _FMT if name == "FMT" else self.by_name.get(name)
            if made is None:
                if self.by_name and line.strip():
                    text = f"{name[:20]!r} is not a message that a line FMT defines: it is skipped"
                    self.damage.found(self.path, f"line {number}", text)
                continue
            fields = content.split(",", len(made.fields) - 1) if comma else []
            if len(fields) != len(made.fields):
                text = f"has {len(fields)} fields of {name}, expected {len(made.fields)}"
                self.damage.found(self.path, f"line {number}", f"{text}: it is skipped")
            elif name == "FMT":
                self._define_by(fields, number)
            elif name in DEFINITIONS:
                self._take_unit(made, fields)
            elif name in LISTED:
                self.others[made.number] += 1
            else:
                rows.setdefault(name, []).append((number, fields))
        for name, each in rows.items():
            yield from self._streams_of(self.by_name[name], each, at)

    def _define_by(self, fields: list[str], line: int) -> None:
        number, length, name, letters, columns = (each.strip() for each in fields)
        problem: Type | str = "is a definition without numbers of its type and length"
        if number.isdigit() and length.isdigit() and int(number) < 256:
            size = 3 + sum(map(size_of, letters))  # the length only matters in binary logs
            problem = parsed_type([int(number), size, name, letters, columns])
        if isinstance(problem, Type):
            made = problem
            if made.name == "FMT":
                return
            problem = self.tables.add(made)
            self.by_name.setdefault(made.name, self.tables.types[made.number])
        if problem:
            self.damage.found(self.path, f"line {line}", f"{problem}: it is skipped")

    def _take_unit(self, made: Type, fields: list[str]) -> None:
        values: dict[str, Any] = {name: each.strip() for name, each in zip(made.fields, fields)}
        for name in ("Id", "FmtType"):
            if name in values:
                values[name] = int(values[name]) if values[name].isdigit() else -1
        self.is_changed |= self.tables.add_units(made.name, values) and bool(self.by_key)

    def _streams_of(self, made: Type, rows: list[Row], at: int) -> Iterator[Found]:
        parts = self.tables.parts_of(made)
        if parts.layout.time is None or not parts.layout.columns:
            self.others[made.number] += len(rows)
            return
        by_label: dict[Any, list[Row]] = {None: rows}
        if made.key is not None:
            by_label = {}
            place = made.fields.index(made.key)
            for row in rows:
                label: Any = row[1][place].strip()
                label = int(label) if label.isdigit() else label
                by_label.setdefault(label, []).append(row)
        for label, own in by_label.items():
            stream = self.stream_of(made, label)
            data = self._columns(made, stream, own)
            yield Found(stream, data, data[0], at)

    def _columns(self, made: Type, stream: Stream, rows: list[Row]) -> list[Any]:
        """Return the times and the columns of some lines. Lines without a number are damage."""
        while True:
            try:
                time, *columns = self._tried(made, stream, rows)
            except _NotANumber as error:
                number, fields = rows[error.row]
                text = f"{error.name} of {made.name} is {fields[error.place].strip()[:20]!r}"
                text += ", expected a number of its type: the line is skipped"
                self.damage.found(self.path, f"line {number}", text)
                rows = [*rows[: error.row], *rows[error.row + 1 :]]
            else:
                return [time * stream.layout.ticks, *columns]

    def _tried(self, made: Type, stream: Stream, rows: list[Row]) -> list[Any]:
        found = []
        layout = stream.layout
        for column in (layout.time, *layout.columns):
            assert column is not None
            name = column.name.partition("[")[0]
            place = made.fields.index(name)
            found.append(_numbers(column, name, place, [fields[place] for _, fields in rows]))
        return found

    def _piece(self, found: Found) -> Piece:
        import numpy as np

        layout = found.stream.layout
        dtypes = ["float64" if d.startswith("float") else d for d in layout.dtypes]
        dtype = np.result_type(*set(dtypes)) if dtypes else np.dtype("f4")
        times, *columns = found.data
        values = np.empty((len(times), len(columns)), dtype)
        for i, numbers in enumerate(columns):
            layout.note_rounded(i, numbers, dtype)
            values[:, i] = numbers
        clocks = {"time": times}
        return Piece(
            found.stream.name, layout.names, values, clocks, tuple(dtypes), found.stream.said
        )

    def require_times(self, found: Found) -> None:
        found.stream.count += len(found.starts)
        self.parsed.append(found)

    def numbers_of(self, found: Found, name: str) -> Any:
        return found.data[1 + found.stream.layout.names.index(name)]


class _NotANumber(Exception):
    def __init__(self, row: int, name: str, place: int) -> None:
        self.row, self.name, self.place = row, name, place


def _numbers(column: Column, name: str, place: int, texts: list[str]) -> Any:
    """Return the numbers of a column; raise at the first text that is none."""
    import numpy as np

    if column.result.startswith("float"):
        try:
            return np.array(list(map(float, texts)))
        except ValueError:
            raise _NotANumber(_first_bad(float, texts), name, place) from None
    try:
        whole = np.array(list(map(int, texts)), np.int64)
    except (ValueError, OverflowError):
        raise _NotANumber(_first_bad(_int64, texts), name, place) from None
    limits = np.iinfo(column.dtype)
    odd = (whole < limits.min) | (whole > min(limits.max, np.iinfo(np.int64).max))
    if column.name.startswith("Time"):
        odd |= whole < 0
    if odd.any():
        raise _NotANumber(int(odd.argmax()), name, place)
    return whole if column.name.startswith("Time") else whole.astype(column.dtype)


def _int64(text: str) -> None:
    if not -(2**63) <= int(text) < 2**63:
        raise ValueError


def _first_bad(parse: Any, texts: list[str]) -> int:
    for i, text in enumerate(texts):
        try:
            parse(text)
        except ValueError:
            return i
    return 0
