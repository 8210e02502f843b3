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
from ..tables.lines import arrow_file
from ..tables.parquet import numbers_of
from .dataflash import DataFlash
from .dataflash_types import DEFINITIONS, LISTED, Type, parsed_type, size_of
from .layouts import LARGEST, Column, Found, Layout, Stream

FORMAT = Format(
    "dataflash-text",
    "ArduPilot text log",
    "*.log",
    "Like the binary logs of ArduPilot: a stream for each message type and instance, with units, "
    "and the clock `TimeUS` or `TimeMS` in microseconds.",
    "Parameters and texts are listed, but not read. A last line without an end is damage, since "
    "its last number may be truncated.",
    example='recording = rbc.data.open("00000042.log")',
)

_FIRST = re.compile(rb"(?:[^\n]*\n){0,20}?FMT, ?\d{1,3}, ?\d{1,3}, ?\w+ ?,")
BLOCK = 2 << 20  # bytes that are parsed at once
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
                found = self._plain(whole, at)
                if found is None:
                    lines = whole.decode("utf-8", "backslashreplace").split("\n")
                    yield from self._lines(lines, line, at)
                else:
                    yield from found
                line += whole.count(b"\n") + 1
        if rest.strip():
            text = "is truncated: the last line has no end, and is skipped"
            self.damage.found(self.path, f"line {line}", text)

    def _plain(self, whole: bytes, at: int) -> list[Found] | None:
        """Return the messages of a block of known types without any damage; None if it has others.

        Arrow parses the lines of each type, which is ten times faster.
        """
        by_name: dict[bytes, list[bytes]] = {}
        for line in whole.split(b"\n"):
            by_name.setdefault(line.partition(b",")[0], []).append(line)
        others: dict[int, int] = {}
        tables: list[tuple[Type, Any]] = []
        for prefix, lines in by_name.items():
            name = prefix.decode("utf-8", "backslashreplace").strip()
            made = self.by_name.get(name)
            if made is None or name in DEFINITIONS or name == "FMT":
                if name or any(map(bytes.strip, lines)):
                    return None
                continue
            layout = self.tables.parts_of(made).layout
            if name in LISTED or layout.time is None or not layout.columns:
                if min(line.count(b",") for line in lines) < len(made.fields):
                    return None
                others[made.number] = others.get(made.number, 0) + len(lines)
                continue
            columns = columns_of(made, layout, lines)
            if columns is None:
                return None
            tables.append((made, columns))
        self.others.update(others)
        return [found for made, columns in tables for found in self._found_in(made, columns, at)]

    def _found_in(self, made: Type, columns: list[Any], at: int) -> Iterator[Found]:
        """Yield the messages of a type by instance, from its times, its columns and its key."""
        import numpy as np

        *data, key = columns
        if key is None:
            yield Found(self.stream_of(made, None), data, data[0], at)
            return
        labels, first = np.unique(key, return_index=True)
        for label in labels[np.argsort(first)].tolist():
            own = [numbers[key == label] for numbers in data]
            yield Found(self.stream_of(made, label), own, own[0], at)

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
        if name == "FMT":  # known, and some tools write it without its columns
            return
        if number.isdigit() and length.isdigit() and int(number) < 256:
            size = 3 + sum(map(size_of, letters))  # the length only matters in binary logs
            problem = parsed_type([int(number), size, name, letters, columns])
        if isinstance(problem, Type):
            made = problem
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
        import numpy as np

        layout = stream.layout
        assert layout.time is not None
        found: list[Any] = []
        good = np.ones(len(rows), bool)
        for column in (layout.time, *layout.columns):
            place = made.fields.index(column.name)
            most = LARGEST // layout.ticks if column is layout.time else None
            numbers, bad = _numbers(column, [fields[place] for _, fields in rows], most)
            for row in bad:
                number, fields = rows[row]
                text = f"{column.name} of {made.name} is {fields[place].strip()[:20]!r}"
                text += ", expected a number of its type: the line is skipped"
                if good[row]:
                    self.damage.found(self.path, f"line {number}", text)
                good[row] = False
            found.append(numbers)
        if not good.all():
            found = [numbers[good] for numbers in found]
        return [found[0] * layout.ticks, *found[1:]]

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


def columns_of(made: Type, layout: Layout, lines: list[bytes]) -> list[Any] | None:
    """Parse lines of a type by Arrow: the times, the columns, and the numbers of the instances.

    None if Arrow is not installed, or might read a line differently from Python.
    """
    import numpy as np

    try:
        import pyarrow as arrow
        from pyarrow import csv
    except ImportError:
        return None
    assert layout.time is not None
    content = b"\n".join(lines)
    if b"0x" in content or b"0X" in content:  # Arrow reads it as an integer
        return None
    wanted = [(made.fields.index(column.name), column) for column in (layout.time, *layout.columns)]
    key = None if made.key is None else made.fields.index(made.key)
    types = {} if key is None else {key: arrow.int64()}
    for place, column in wanted:
        is_float = column.result.startswith("float")
        is_wide = np.dtype(column.dtype) == np.uint64
        types[place] = arrow.float64() if is_float else arrow.uint64() if is_wide else arrow.int64()
    if key is not None and not arrow.types.is_integer(types[key]):
        return None
    try:
        table = csv.read_csv(
            arrow_file(content),
            read_options=csv.ReadOptions(
                column_names=["name", *map(str, range(len(made.fields)))],
                use_threads=False,
                block_size=len(content) + 1,
            ),
            parse_options=csv.ParseOptions(quote_char=False),
            convert_options=csv.ConvertOptions(
                include_columns=list(map(str, types)),
                column_types={str(place): kind for place, kind in types.items()},
                null_values=[],
            ),
        )
    except arrow.ArrowInvalid:
        return None
    if len(table) != len(lines):
        return None
    found: list[Any] = []
    for place, column in wanted:
        numbers = numbers_of("", column.name, table[str(place)])
        is_time = column is layout.time
        if numbers.dtype.kind == "f":
            if b"(" in content and np.isnan(numbers).any():  # Arrow reads nan(1)
                return None
        else:
            low, high = np.iinfo(column.dtype).min, np.iinfo(column.dtype).max
            if is_time:
                low, high = 0, min(high, LARGEST // layout.ticks)
            if int(numbers.min()) < low or int(numbers.max()) > high:
                return None
            numbers = numbers.astype(np.int64 if is_time else column.dtype)
        found.append(numbers * layout.ticks if is_time else numbers)
    instances = None if key is None else numbers_of("", str(made.key), table[str(key)])
    if instances is not None and int(instances.min()) < 0:
        return None
    return [*found, instances]


def _numbers(column: Column, texts: list[str], most: int | None) -> tuple[Any, list[int]]:
    """Return the numbers of a column, 0 in rows whose text is none, and these rows.

    ``most`` is the largest time, in int64; None: the column holds other numbers.
    """
    import numpy as np

    parse: Any = float if column.result.startswith("float") else int
    low, high = -np.inf, np.inf
    if parse is int:
        low, high = np.iinfo(column.dtype).min, np.iinfo(column.dtype).max
    if most is not None:
        low, high = 0, min(high, most)
    bad: list[int] = []
    try:
        numbers = list(map(parse, texts))
    except ValueError:
        numbers = [_parsed(parse, text) for text in texts]
        bad = [i for i, number in enumerate(numbers) if number is None]
        numbers = [0 if number is None else number for number in numbers]
    if parse is int and numbers and not (low <= min(numbers) and max(numbers) <= high):
        odd = [i for i, number in enumerate(numbers) if not low <= number <= high]
        bad = sorted({*bad, *odd})
        numbers = [number if low <= number <= high else 0 for number in numbers]
    dtype = np.int64 if most is not None else np.float64 if parse is float else column.dtype
    return np.array(numbers, dtype), bad


def _parsed(parse: Any, text: str) -> Any:
    try:
        return parse(text)
    except ValueError:
        return None
