"""Messages of a fixed layout in a binary log, as columns; and the source that yields them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from ..._errors import Damage, LeftOut, Unread
from ..._file_access import opened
from ..._findings import Finding
from ..._kinds.kinds import Said
from ..._progress import progress
from ..._source import Piece, StreamInfo

BLOCK = 8 << 20  # bytes of a file that are examined at once
SMALL = 1 << 17  # after damage; more than any message has
LARGEST = 2**63 - 1
EXACT = 2**53  # larger integers are not always exact in float64


@dataclass(frozen=True)
class Column:
    """One number of a message."""

    name: str
    offset: int  # bytes into the message
    dtype: str
    divisor: float = 0.0  # 0: the number is not scaled

    @property
    def result(self) -> str:
        """The name of the dtype in memory."""
        import numpy as np

        return "float64" if self.divisor else np.dtype(self.dtype).name


class Layout:
    """The numbers in messages of one type."""

    def __init__(
        self, columns: Sequence[Column], size: int, time: Column | None, ticks: int = 1
    ) -> None:
        import numpy as np

        self.columns = tuple(columns)
        self.names = tuple(column.name for column in columns)
        self.dtypes = tuple(column.result for column in columns)
        self.size = size  # bytes of a message, at least 1
        self.time, self.ticks = time, ticks  # the time in the file, and how many us it counts
        self.record = np.dtype(
            {
                "names": [f"f{i}" for i in range(len(columns))],
                "formats": [column.dtype for column in columns],
                "offsets": [column.offset for column in columns],
                "itemsize": size,
            }
        )
        dtypes = {np.dtype(dtype) for dtype in self.dtypes}
        self.dtype = np.result_type(*dtypes) if dtypes else np.dtype("f4")
        self.rounded: set[str] = set()  # channels with integers that the common dtype rounded

    def records(self, data: Any, starts: Any) -> Any:
        """Return the messages at some bytes of a block as a structured array."""
        return _windows(data, f"V{self.size}")[starts].view(self.record)

    def times(self, data: Any, starts: Any) -> Any:
        """Return the times of messages in us; they are below 0 where they do not fit int64."""
        import numpy as np

        if self.time is None:
            return np.zeros(len(starts), np.int64)
        times = _windows(data, self.time.dtype)[starts + self.time.offset]
        times = times.view(np.int64) if times.dtype.itemsize == 8 else times.astype(np.int64)
        return np.where(times > LARGEST // self.ticks, -1, times) * self.ticks

    def numbers(self, data: Any, starts: Any, name: str) -> Any:
        """Return the numbers of one channel in float64."""
        import numpy as np

        column = self.columns[self.names.index(name)]
        numbers = _windows(data, column.dtype)[starts + column.offset].astype(np.float64)
        return numbers / (column.divisor or 1.0)

    def note_rounded(self, i: int, numbers: Any, dtype: Any) -> None:
        """Note that a common dtype of floats rounds the integers of a channel."""
        if dtype.kind == "f" and numbers.dtype.kind in "iu" and len(numbers):
            if max(int(numbers.max()), -int(numbers.min())) > EXACT:
                self.rounded.add(self.columns[i].name)

    def values(self, records: Any) -> Any:
        """Return the numbers of messages [n,D]."""
        import numpy as np

        values = np.empty((len(records), len(self.columns)), self.dtype)
        for i, column in enumerate(self.columns):
            numbers = records[f"f{i}"]
            if column.divisor:
                numbers = numbers / column.divisor
            elif numbers.dtype.kind == "b":
                numbers = np.ascontiguousarray(numbers).view(np.uint8) != 0  # also of damage
            else:
                self.note_rounded(i, numbers, self.dtype)
            with np.errstate(invalid="ignore"):  # NaN of any bits
                values[:, i] = numbers
        return values


class Runs:
    """Places in a block where messages may begin, and runs of messages without a gap."""

    def __init__(self, places: Any, ends: Any) -> None:
        import numpy as np

        self.places, self.ends = places, ends  # ascending; where each message ends
        self.last = np.flatnonzero(ends[:-1] != places[1:])  # the last message of each run

    def begin(self, place: int) -> tuple[Any, int]:
        """Return the messages of the run that begins at a place, and where it ends."""
        import numpy as np

        first = int(np.searchsorted(self.places, place))
        if first == len(self.places) or self.places[first] != place:
            return self.places[:0], place
        run = int(np.searchsorted(self.last, first))
        last = int(self.last[run]) if run < len(self.last) else len(self.places) - 1
        return self.places[first : last + 1], int(self.ends[last])


@dataclass
class Stream:
    """A stream of a binary log."""

    name: str
    kind: str  # name of the messages
    layout: Layout
    count: int = 0
    said: tuple[Said, ...] = ()
    key: Any = None  # what the reader finds it by


def _windows(data: Any, dtype: str) -> Any:
    """Return a view with the number at each byte of a block, aligned or not."""
    import numpy as np

    count = max(0, len(data) - np.dtype(dtype).itemsize + 1)
    return np.ndarray(count, dtype, data, strides=(1,))


@dataclass(frozen=True)
class Found:
    """Messages of one stream in a block of the file."""

    stream: Stream
    data: Any  # the block
    starts: Any  # offset of each message in the block
    at: int  # offset of the block in the file


class BinaryLog:
    """A source of streams (``_source.Source``). Subclasses find the messages of a file.

    The file is examined once when it is opened, to know its streams. Damage is found then.
    """

    kind = "log"
    unit: str | None = "us"

    def __init__(self, path: str, damage: Damage) -> None:
        self.path, self.damage = path, damage
        self.known: dict[str, Stream] = {}
        self.findings: list[Finding] = []
        self.notes: list[LeftOut] = []
        self.unread: list[Unread] = []

    def blocks(self, file: BinaryIO) -> Iterator[Found]:
        """Yield the messages of a file, in its order, by blocks."""
        raise NotImplementedError

    @property
    def streams(self) -> dict[str, StreamInfo]:
        return {
            name: StreamInfo(
                name,
                stream.kind,
                stream.count,
                stream.layout.names,
                self.unit,
                stream.said,
                self.clock_of(stream),
            )
            for name, stream in self.known.items()
        }

    def clock_of(self, stream: Stream) -> str:
        time = stream.layout.time
        return "" if time is None else f"field {time.name}, microseconds of the flight controller"

    @property
    def left_out(self) -> list[LeftOut]:
        rounded = [
            LeftOut(f"{name}: {channel}", "integers above 2**53 among floats: rounded to float64")
            for name, stream in self.known.items()
            for channel in sorted(stream.layout.rounded)
        ]
        return self.notes + rounded

    def look(self) -> None:
        pass

    def pieces(self, names: Collection[str], shown: bool | None = None) -> Iterator[Piece]:
        wanted = set(names)
        with opened(self.path) as file:
            size = os.fstat(file.fileno()).st_size
            with progress("Reading log", size, shown) as done:
                last = 0
                for found in self.blocks(file):
                    done(found.at - last)
                    last = found.at
                    if found.stream.name in wanted:
                        yield self._piece(found)
                done(size - last)

    def _piece(self, found: Found) -> Piece:
        stream = found.stream
        layout = stream.layout
        times, starts = layout.times(found.data, found.starts), found.starts
        odd = times < 0
        if odd.any():
            times, starts = times[~odd], starts[~odd]
        records = layout.records(found.data, starts)
        return Piece(
            stream.name,
            layout.names,
            layout.values(records),
            {"time": times},
            layout.dtypes,
            stream.said,
        )

    def require_times(self, found: Found) -> None:
        """Count the messages of a block, and note those whose time does not fit int64."""
        stream = found.stream
        times = stream.layout.times(found.data, found.starts)
        odd = times < 0
        stream.count += len(times)
        if odd.any():
            first = found.at + int(found.starts[odd.argmax()])
            stream.count -= int(odd.sum())
            name = stream.name or stream.kind  # streams are named when all are known
            text = (
                f"{int(odd.sum()):,} messages of {name} have a time below 0 or of 2**63 us or more"
            )
            self.damage.found(self.path, f"byte {first}", f"{text}: they are skipped")
