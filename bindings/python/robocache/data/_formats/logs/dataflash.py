"""ArduPilot's binary logs (DataFlash): one stream for each message type and instance.

pymavlink reads these too, about a megabyte per second; a log of a long flight has hundreds.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator, Iterator
from typing import Any, BinaryIO

from ...._printable import plural
from ..._errors import FormatError, LeftOut, Unread
from ..._file_access import head, opened
from ..._options import Options
from ..._recording import Recording
from ..description import Format
from .dataflash_types import (
    DEFINITIONS,
    LISTED,
    Tables,
    Type,
    notes_of,
    parsed_type,
    said_of,
    size_of,
    text,
)
from .layouts import BLOCK, SMALL, BinaryLog, Found, Runs, Stream

FORMAT = Format(
    "dataflash",
    "ArduPilot DataFlash log",
    "*.bin",
    "Each message type and instance is a stream, such as `ATT` and `IMU[0]`. Each number is a "
    "channel, such as `Roll`, with the units in the log (FMTU, UNIT, MULT). The clock is `TimeUS`, "
    "in microseconds. Angles in degrees and quaternions Q1 to Q4 (w first) are recognized.",
    "Parameters and texts are listed, but not read. A log that ends within a message, as when the "
    "power goes, is damaged: damaged='keep' reads all other messages.",
    example='recording = rbc.data.open("00000042.BIN")',
)

_MARK = b"\xa3\x95"
_FMT = 0x80
_FMT_SIZE = 89
_FMT_TYPE = Type(_FMT, "FMT", _FMT_SIZE, "BBnNZ", ("Type", "Length", "Name", "Format", "Columns"))
_PAGE = 256  # bytes: a log that is written in pages may end with a part of one
_IN_ROW = 3  # messages after which a place is trusted
_MOST = 1 << 16  # streams


def sniff(path: str) -> bool:
    return head(path, 3) == _MARK + bytes([_FMT])


def open(path: str, options: Options) -> Recording:
    return Recording(DataFlash(path, options), progress=options.progress)


class DataFlash(BinaryLog):
    """A binary log as a source of streams (``_source.Source``)."""

    kind = "ArduPilot DataFlash"

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options.damage)
        self.tables = Tables()
        self.by_key: dict[tuple[int, Any], Stream] = {}  # by type and instance
        self.others: Counter[int] = Counter()  # messages of types that are not streams
        self.ranges: dict[tuple[int, Any], dict[str, tuple[float, float]]] = {}
        self.is_changed = False
        self.rest = ""  # what the file ends with, besides messages
        self._examine()
        if self.is_changed:  # units came after messages that have them
            self._examine()
        self._summarize()

    def _examine(self) -> None:
        self.is_changed = False
        self.by_key.clear()
        self.others.clear()
        self.ranges.clear()
        self.tables.parts.clear()
        self.is_opening = True
        with opened(self.path) as file:
            for found in self.blocks(file):
                self.require_times(found)
                self._measure(found)
        self.is_opening = False

    # ---- messages -------------------------------------------------------------------------------

    def blocks(self, file: BinaryIO) -> Iterator[Found]:
        import numpy as np

        lengths = np.zeros(256, np.int32)
        end = os.fstat(file.fileno()).st_size
        at, size = 0, BLOCK
        while at < end:
            file.seek(at)
            data = file.read(min(size, end - at))
            used, problem = yield from self._block(data, at, lengths)
            size = SMALL if problem else min(2 * size, BLOCK)
            left = end - at - used
            after = end
            if problem:
                after = self._next_good(file, at + used + 1, end, lengths)
            is_odd = bool(problem) and data[used : used + 2] != _MARK
            if is_odd and after == end and (left < _PAGE or _is_padding(data[used:], left)):
                self.rest = f"{left:,} bytes that are not a message"
                at = end
            elif problem:
                text_of = f"{problem}: {after - at - used:,} bytes are skipped"
                self.damage.found(self.path, f"byte {at + used}", text_of)
                at = after
            elif used and at + len(data) < end:
                at += used
            else:
                if left:  # the power may fail while a message is written
                    problem = f"is truncated: the log ends {left:,} bytes into its last message"
                    self.damage.found(self.path, f"byte {at + used}", problem)
                at = end

    def _block(self, data: bytes, at: int, lengths: Any) -> Generator[Found, None, tuple[int, str]]:
        """Yield the messages of a block; return how many bytes they have, and what is wrong."""
        import numpy as np

        block = np.frombuffer(data, np.uint8)
        p, total, problem = 0, len(data), ""
        runs: Runs | None = None
        taken: list[Any] = []
        while p < total:
            if data[p : p + 2] != _MARK[: total - p]:
                problem = f"is not a message: it begins with {data[p : p + 2].hex()}, expected a395"
                break
            if p + 3 > total:
                break
            if data[p + 2] != _FMT:
                if runs is None:
                    runs = _runs(block, lengths)
                places, after = runs.begin(p)
                if len(places):
                    taken.append(places)
                    p = after
                    continue
                if not lengths[data[p + 2]]:
                    problem = f"has a message of type {data[p + 2]}, which no FMT defines"
                break
            if p + _FMT_SIZE > total:
                break
            problem = self._define(data[p : p + _FMT_SIZE], lengths)
            if problem:
                break
            runs = None
            p += _FMT_SIZE
        yield from self._found(block, taken, at)
        return p, problem

    def _define(self, content: bytes, lengths: Any) -> str:
        """Take a message FMT; return what is wrong with it, or ""."""
        values = _values(_FMT_TYPE, content)
        made = parsed_type(list(values.values()))
        if isinstance(made, str):
            return made
        if made.number == _FMT:
            return ""
        problem = self.tables.add(made)
        if not problem:
            lengths[made.number] = made.length
        return problem

    def _found(self, block: Any, taken: list[Any], at: int) -> Iterator[Found]:
        """Yield the messages at some places by stream."""
        import numpy as np

        if not taken:
            return
        places = np.concatenate(taken)
        numbers = block[places + 2]
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order].astype(np.int32)
        begins = np.flatnonzero(np.diff(ordered, prepend=-1))
        groups = [
            (self.tables.types[int(ordered[begin])], places[order[begin:end]])
            for begin, end in zip(begins, [*begins[1:], len(order)])
        ]
        if self.is_opening:
            for made, starts in groups:
                if made.name in DEFINITIONS:
                    self._take_units(made, block, starts)
        for made, starts in groups:
            if made.name in DEFINITIONS or made.name in LISTED:
                self.others[made.number] += len(starts) * self.is_opening
            else:
                yield from self._by_key(made, block, starts, at)

    def _take_units(self, made: Type, block: Any, starts: Any) -> None:
        for start in starts.tolist():
            values = _values(made, block[start : start + made.length].tobytes())
            self.is_changed |= self.tables.add_units(made.name, values) and bool(self.by_key)

    def _by_key(self, made: Type, block: Any, starts: Any, at: int) -> Iterator[Found]:
        """Yield the messages of a type by instance."""
        import numpy as np

        parts = self.tables.parts_of(made)
        if parts.layout.time is None or not parts.layout.columns:
            self.others[made.number] += len(starts) * self.is_opening
            return
        key = made.key
        if key is None:
            yield Found(self.stream_of(made, None), block, starts, at)
            return
        offset, size = made.places[key]
        letter = made.letters[made.fields.index(key)]
        labels = block[starts[:, None] + np.arange(offset, offset + size)]
        each, codes = np.unique(labels.view(f"V{size}").ravel(), return_inverse=True)
        order = np.argsort(codes, kind="stable")
        begins = np.searchsorted(codes[order], np.arange(len(each) + 1)).tolist()
        for label, begin, end in zip(each, begins, begins[1:]):
            value = _value(letter, label.tobytes())
            yield Found(self.stream_of(made, value), block, starts[order[begin:end]], at)

    def stream_of(self, made: Type, label: Any) -> Stream:
        stream = self.by_key.get((made.number, label))
        if stream is None:
            if len(self.by_key) >= _MOST:
                raise FormatError(self.path, made.name, f"has more than {_MOST:,} instances")
            layout = self.tables.parts_of(made).layout
            stream = Stream("", made.name, layout, key=(made.number, label))
            self.by_key[made.number, label] = stream
        return stream

    def _next_good(self, file: BinaryIO, at: int, end: int, lengths: Any) -> int:
        """Return where messages go on after damage."""
        size = SMALL
        while at < end:
            file.seek(at)
            data = file.read(min(size, end - at))
            p = data.find(_MARK)
            while p >= 0:
                if _is_good(data, p, lengths, at + len(data) == end):
                    return at + p
                p = data.find(_MARK, p + 1)
            if at + len(data) >= end:
                break
            at += len(data) - 3 * 256
            size = BLOCK
        return end

    # ---- summary --------------------------------------------------------------------------------

    def _measure(self, found: Found) -> None:
        """Note the least and largest values of channels that may be angles."""
        import numpy as np

        stream = found.stream
        angles = [name for name, _ in self.tables.parts[stream.key[0]].angles]
        if not angles:
            return
        ranges = self.ranges.setdefault(stream.key, {})
        for name in angles:
            numbers = self.numbers_of(found, name)
            numbers = numbers[np.isfinite(numbers)]
            if len(numbers):
                low, high = float(numbers.min()), float(numbers.max())
                old = ranges.get(name, (low, high))
                ranges[name] = min(low, old[0]), max(high, old[1])

    def numbers_of(self, found: Found, name: str) -> Any:
        """Return the numbers of one channel in a block."""
        return found.stream.layout.numbers(found.data, found.starts, name)

    def _summarize(self) -> None:
        """Name the streams, and list what is not a stream."""
        several = Counter(number for number, _ in self.by_key)
        for key, stream in sorted(self.by_key.items(), key=lambda each: (each[0][0], str(each[0]))):
            number, label = key
            made = self.tables.types[number]
            parts = self.tables.parts[number]
            name = made.name if several[number] == 1 else f"{made.name}[{label}]"
            stream.name = f"{name} (type {number})" if name in self.known else name
            stream.said = said_of(parts, self.ranges.get(key, {}))
            self.known[stream.name] = stream
            self.notes += notes_of(stream.name, made, parts, label)
        for number, count in self.others.items():
            self._list(self.tables.types[number], count)
        if self.rest:
            self.notes.append(LeftOut("end of the file", self.rest))

    def _list(self, made: Type, count: int) -> None:
        if made.name in DEFINITIONS:
            return
        if made.name in LISTED:
            self.notes.append(
                LeftOut(made.name, f"{plural(count, 'message')}: {LISTED[made.name]}")
            )
            return
        parts = self.tables.parts_of(made)
        if not parts.layout.columns:
            self.notes.append(LeftOut(made.name, f"{plural(count, 'message')} without numbers"))
            return
        reason = f"{count:,} messages of {made.name} have no field TimeUS or TimeMS"
        self.unread.append(Unread(made.name, "", count, count * made.length, reason))


def _runs(block: Any, lengths: Any) -> Runs:
    """Find the places in a block where messages of known types may begin, except FMT."""
    import numpy as np

    places = np.flatnonzero((block[:-2] == _MARK[0]) & (block[1:-1] == _MARK[1]))
    sizes = lengths[block[places + 2]]
    ends = places + sizes
    fit = (sizes > 0) & (ends <= len(block))
    return Runs(places[fit], ends[fit])


def _is_padding(data: bytes, left: int) -> bool:
    """Whether a log that was written in pages ends with nothing else."""
    return len(data) == left and not data.strip(b"\xff\0")


def _is_good(data: bytes, p: int, lengths: Any, at_end: bool) -> bool:
    """Whether messages of known types follow one another from some byte on."""
    for _ in range(_IN_ROW):
        if p == len(data) and at_end:
            return True
        if data[p : p + 2] != _MARK or p + 3 > len(data):
            return False
        size = _FMT_SIZE if data[p + 2] == _FMT else int(lengths[data[p + 2]])
        if not size:
            return False
        p += size
    return p <= len(data)


def _values(made: Type, content: bytes) -> dict[str, Any]:
    """Return the fields of one message."""
    values, offset = {}, 3
    for letter, name in zip(made.letters, made.fields):
        size = size_of(letter)
        values[name] = _value(letter, content[offset : offset + size])
        offset += size
    return values


def _value(letter: str, content: bytes) -> Any:
    """Return an integer, a float or a text; scaled numbers are not needed here."""
    import numpy as np

    if letter in "nNZ":
        return text(content)
    if letter in "fd":
        return float(np.frombuffer(content, "<f4" if letter == "f" else "<f8")[0])
    return int.from_bytes(content, "little", signed=letter in "bhiq")
