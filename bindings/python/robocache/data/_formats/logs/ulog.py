"""PX4 ULog files: one stream for each topic and instance.

pyulog reads these too, but it keeps all messages in memory, drops the earlier messages of a number
that is subscribed to again, and does not say where a file is damaged.
"""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Generator, Iterator
from typing import Any, BinaryIO

from ...._printable import plural
from ..._errors import FormatError, LeftOut, Unread
from ..._file_access import head, opened
from ..._findings import Finding
from ..._options import Options
from ..._recording import Recording
from ..description import Format
from .layouts import BLOCK, SMALL, BinaryLog, Found, Runs, Stream
from .ulog_types import CannotLayOut, Formats

FORMAT = Format(
    "ulog",
    "PX4 ULog",
    "*.ulg",
    "Each topic and instance is a stream, such as `vehicle_attitude` and `sensor_accel_1`. Each "
    "number is a channel, such as `q[0]`. The clock is `timestamp`, in microseconds since the "
    "flight controller started. Quaternions have w first. Dropouts are findings.",
    "Parameters, logged texts and information about the system are listed, but not read. Files "
    "with incompatible flags that are not known are refused.",
    example='recording = rbc.data.open("flight.ulg")',
)

_MAGIC = b"ULog\x01\x12\x35"
_HEADER = 16  # bytes
_SYNC = b"\x08\x00S\x2f\x73\x13\x20\x25\x0c\xbb\x12"
_KINDS = b"BFIMPQARDLCSO"
_DATA, _SUBSCRIBE = ord("D"), ord("A")
_LISTED = {
    "P": ("parameters", "settings, not samples"),
    "Q": ("defaults of parameters", "settings, not samples"),
    "I": ("information", "facts about the system, not samples"),
    "M": ("information", "facts about the system, not samples"),
    "L": ("logged texts", "texts, not numbers"),
    "C": ("logged texts", "texts, not numbers"),
}
_NEAR = 1 << 16  # bytes after damage that are searched for messages one by one
_IN_ROW = 3  # messages after which a place is trusted
_APPENDED = 1  # the incompatible flag that data were appended


def sniff(path: str) -> bool:
    return head(path, len(_MAGIC)) == _MAGIC


def open(path: str, options: Options) -> Recording:
    return Recording(_ULog(path, options), progress=options.progress)


class _ULog(BinaryLog):
    """A ULog file as a source of streams (``_source.Source``)."""

    kind = "PX4 ULog"

    def __init__(self, path: str, options: Options) -> None:
        super().__init__(path, options.damage)
        self.formats = Formats()
        self.by_key: dict[tuple[str, int], Stream] = {}  # by topic and instance
        self.omitted: Counter[tuple[str, str]] = Counter()
        self.dropouts: list[tuple[int, int]] = []  # byte, and ms
        self.is_opening = True
        with opened(path) as file:
            self.sections = self._sections(file)
            for found in self.blocks(file):
                self.require_times(found)
        self.is_opening = False
        self._summarize()

    def _sections(self, file: BinaryIO) -> list[int]:
        """Return where the parts of the file end: data may be appended after a crash."""
        size = os.fstat(file.fileno()).st_size
        start = file.read(_HEADER + 3 + 40)
        if len(start) < _HEADER:
            text = f"has {len(start)} bytes, but its header has {_HEADER}: it is truncated"
            raise FormatError(self.path, "", text)
        if start[_HEADER + 2 : _HEADER + 3] != b"B" or len(start) < _HEADER + 43:
            return [size]
        flags = start[_HEADER + 3 + 8 : _HEADER + 3 + 16]
        if flags[0] & ~_APPENDED or any(flags[1:]):
            text = f"has incompatible flags {flags.hex()}, and only 01 in the first byte is known"
            raise FormatError(self.path, f"byte {_HEADER + 11}", text)
        offsets = struct.unpack("<3Q", start[_HEADER + 3 + 16 : _HEADER + 3 + 40])
        ends = [at for at in offsets if at] if flags[0] & _APPENDED else []
        if ends != sorted(ends) or any(not _HEADER < at <= size for at in ends):
            text = f"appended data begin at {ends}, but the file has {size:,} bytes"
            self.damage.found(self.path, f"byte {_HEADER + 19}", f"{text}: this is ignored")
            return [size]
        return [*ends, size]

    # ---- messages -------------------------------------------------------------------------------

    def blocks(self, file: BinaryIO) -> Iterator[Found]:
        table = _Subscriptions()
        at, size = _HEADER, BLOCK
        for i, end in enumerate(self.sections):
            while at < end:
                file.seek(at)
                data = file.read(min(size, end - at))
                used, problem = yield from self._block(data, at, table)
                size = SMALL if problem else min(2 * size, BLOCK)
                if problem:
                    after = self._next_good(file, at + used + 1, end, table)
                    text = f"{problem}: {after - at - used:,} bytes are skipped"
                    self.damage.found(self.path, f"byte {at + used}", text)
                    at = after
                elif used and at + len(data) < end:
                    at += used
                else:  # a crash may cut the last message before appended data
                    if used < end - at and i == len(self.sections) - 1:
                        text = f"is truncated: its last message begins {end - at - used:,} bytes"
                        text += " before its end, and is longer"
                        self.damage.found(self.path, f"byte {at + used}", text)
                    at = end

    def _block(
        self, data: bytes, at: int, table: _Subscriptions
    ) -> Generator[Found, None, tuple[int, str]]:
        """Yield the messages of a block; return how many bytes they have, and what is wrong."""
        import numpy as np

        block = np.frombuffer(data, np.uint8)
        p, total, problem = 0, len(data), ""
        runs: Runs | None = None
        taken: list[Any] = []
        while p + 3 <= total:
            size = data[p] | data[p + 1] << 8
            stop = p + 3 + size
            kind = data[p + 2]
            if stop > total:
                problem = "" if kind in _KINDS else _odd_kind(kind)
                break
            if kind == _DATA:
                if runs is None:
                    runs = table.runs(block)
                places, after = runs.begin(p)
                if not len(places):
                    problem = table.problem(data[p + 3 : p + 5], size)
                    break
                taken.append(places)
                p = after
                continue
            if kind == _SUBSCRIBE:
                yield from table.found(block, taken, at)
                taken, runs = [], None
            problem = self._other(kind, data[p + 3 : stop], at + p, table)
            if problem:
                break
            p = stop
        yield from table.found(block, taken, at)
        return p, problem

    def _other(self, kind: int, content: bytes, place: int, table: _Subscriptions) -> str:
        """Take a message without data; return what is wrong with it, or ""."""
        letter = chr(kind)
        if letter == "A":
            return self._subscribe(content, table)
        if letter == "F":
            return self.formats.add(content)
        if letter == "S" and content != _SYNC[3:]:
            return "is a sync message with other bytes than usual"
        if letter == "O" and len(content) != 2:
            return f"is a dropout of {len(content)} bytes, expected 2"
        if not (letter.isascii() and letter.isalpha()) or not content:
            return _odd_kind(kind)
        if self.is_opening:
            if letter == "O":
                self.dropouts.append((place, content[0] | content[1] << 8))
            elif letter not in "BRS":
                place_of, reason = _LISTED.get(letter, (f"messages of type {letter}", "unknown"))
                self.omitted[place_of, reason] += 1
        return ""

    def _subscribe(self, content: bytes, table: _Subscriptions) -> str:
        if len(content) < 4:
            return f"is a subscription of {len(content)} bytes, expected 4 or more"
        instance, number = content[0], content[1] | content[2] << 8
        topic = content[3:].decode("utf-8", "backslashreplace")
        stream = self.by_key.get((topic, instance))
        try:
            least, most = self.formats.sizes(topic)
            if stream is None:
                stream = self._stream(topic, instance)
        except CannotLayOut as error:
            return f"is a subscription to {topic!r}, {error}"
        table.add(number, stream, least + 2, most + 2)
        return ""

    def _stream(self, topic: str, instance: int) -> Stream:
        name = topic if instance == 0 else f"{topic}_{instance}"
        if name in self.known:
            name = f"{topic}[{instance}]"
        parts = self.formats.layout(topic)
        stream = Stream(name, topic, parts.layout, said=parts.said)
        self.by_key[topic, instance] = stream
        self.known[name] = stream
        self.notes += [LeftOut(f"{name}: {field}", "text, not a number") for field in parts.texts]
        return stream

    # ---- damage ---------------------------------------------------------------------------------

    def _next_good(self, file: BinaryIO, at: int, end: int, table: _Subscriptions) -> int:
        """Return where messages go on after damage: near it, or at the next sync message."""
        file.seek(at)
        near = file.read(min(_NEAR, end - at))
        for p in range(len(near)):
            if _is_good(near, p, table, at + len(near) == end):
                return at + p
        size = SMALL
        while at < end:
            file.seek(at)
            data = file.read(min(size, end - at))
            if (p := data.find(_SYNC)) >= 0:
                return at + p
            if len(data) <= len(_SYNC):
                break
            at += len(data) - len(_SYNC) + 1
            size = BLOCK
        return end

    # ---- summary --------------------------------------------------------------------------------

    def _summarize(self) -> None:
        """List what is not a stream."""
        for name, stream in list(self.known.items()):
            if stream.count and stream.layout.time is not None:
                continue
            del self.known[name]
            if stream.count:
                text = f"the {stream.count:,} messages of {name} have no timestamp of type uint64_t"
                size = stream.count * stream.layout.size
                self.unread.append(Unread(name, "", stream.count, size, text))
            else:
                self.notes.append(LeftOut(name, "has no messages"))
        for (place, reason), count in self.omitted.items():
            self.notes.append(LeftOut(place, f"{plural(count, 'message')}: {reason}"))
        if self.dropouts:
            total = sum(ms for _, ms in self.dropouts)
            at, longest = max(self.dropouts, key=lambda each: each[1])
            text = (
                f"{plural(len(self.dropouts), 'dropout')}: the logger lost {total / 1000:g} s of "
                f"messages; the longest took {longest / 1000:g} s (byte {at})"
            )
            self.findings.append(Finding("warning", "gaps", "", "", text))


class _Subscriptions:
    """The streams that the numbers in messages of data mean, and how long these messages are."""

    def __init__(self) -> None:
        import numpy as np

        self.streams: dict[int, Stream] = {}
        self.least = np.full(1 << 16, 1 << 16, np.int32)  # bytes; none has this many
        self.most = np.zeros(1 << 16, np.int32)

    def add(self, number: int, stream: Stream, least: int, most: int) -> None:
        self.streams[number] = stream
        self.least[number], self.most[number] = least, most

    def fits(self, number: int, size: int) -> bool:
        return bool(self.least[number] <= size <= self.most[number])

    def runs(self, block: Any) -> Runs:
        """Find the places in a block where messages of data may begin."""
        import numpy as np

        places = np.flatnonzero(block[2:-2] == _DATA)
        sizes = block[places].astype(np.int32) | block[places + 1].astype(np.int32) << 8
        numbers = _number_at(block, places)
        fit = (self.least[numbers] <= sizes) & (sizes <= self.most[numbers])
        places, sizes = places[fit], sizes[fit]
        ends = places + 3 + sizes
        whole = ends <= len(block)
        return Runs(places[whole], ends[whole])

    def found(self, block: Any, taken: list[Any], at: int) -> Iterator[Found]:
        """Yield the messages at some places by stream."""
        import numpy as np

        if not taken:
            return
        places = np.concatenate(taken)
        numbers = _number_at(block, places)
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        begins = np.flatnonzero(np.diff(ordered, prepend=-1))
        for begin, end in zip(begins, [*begins[1:], len(order)]):
            stream = self.streams[int(ordered[begin])]
            yield Found(stream, block, places[order[begin:end]] + 5, at)

    def problem(self, number: bytes, size: int) -> str:
        """Return what is wrong with a message of data."""
        given = int.from_bytes(number, "little")
        if given not in self.streams or len(number) < 2:
            return f"has data of subscription {given}, which does not exist"
        least, most = self.least[given], self.most[given]
        expected = f"{least}" if least == most else f"{least} to {most}"
        return f"has {size} bytes of {self.streams[given].kind}, expected {expected}"


def _number_at(block: Any, places: Any) -> Any:
    import numpy as np

    return block[places + 3].astype(np.int32) | block[places + 4].astype(np.int32) << 8


def _is_good(data: bytes, p: int, table: _Subscriptions, at_end: bool) -> bool:
    """Whether messages of known types follow one another from some byte on."""
    for _ in range(_IN_ROW):
        if p == len(data) and at_end:
            return True
        if p + 5 > len(data) or data[p + 2] not in _KINDS:
            return False
        size = data[p] | data[p + 1] << 8
        if data[p + 2] == _DATA:
            if not table.fits(data[p + 3] | data[p + 4] << 8, size):
                return False
        elif data[p + 2] == ord("S") and data[p : p + len(_SYNC)] != _SYNC:
            return False
        p += 3 + size
    return p <= len(data)


def _odd_kind(kind: int) -> str:
    return f"is not a message: its type is {kind:#04x}, expected one of {_KINDS.decode()}"
