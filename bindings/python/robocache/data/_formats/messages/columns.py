"""The messages of one topic as columns: channels by name, header stamps, and omitted fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..._errors import messages_not_read
from ..._kinds.kinds import Said
from ..bags.unread import (
    array_has_numbers,
    array_reason,
    count_reason,
    has_numbers,
    has_texts,
    text_reason,
    varying_reason,
)
from .fixed_layouts import MOST_ELEMENTS, Run
from .layouts import Layout, Layouts, LayoutTree
from .pieces import Rows as Rows
from .ros_types import said_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Callable

    import numpy as np
    from numpy.typing import NDArray

_FIRST = 64  # messages that decide which arrays keep their length,
_FIRST_BYTES = 4 << 20  # or fewer large ones
_LONGEST_STRING = 1000  # bytes of a string that is shown
_EXACT = 2**53  # larger integers are not always exact in float64


@dataclass(frozen=True)
class Columns:
    """Decoded messages."""

    names: tuple[str, ...]
    dtypes: tuple[str, ...]  # original dtype of each channel
    values: Any  # [n,D]
    log: NDArray[np.int64]  # ns
    header: NDArray[np.int64] | None  # ns; None without header.stamp
    marks: NDArray[np.int64] | None = None  # of the rows


@dataclass(frozen=True)
class _Known:
    """A layout, and the dtype for reading it."""

    layout: Layout
    dtype: Any  # with a field for each run of channels

    @classmethod
    def build(cls, layout: Layout) -> _Known:
        import numpy as np

        runs = layout.runs
        return cls(
            layout,
            np.dtype(
                {
                    "names": [f"f{run.offset}" for run in runs],
                    "formats": [(run.dtype, (run.count,)) for run in runs],
                    "offsets": [run.offset for run in runs],
                    "itemsize": layout.size,
                }
            ),
        )


class Decoder:
    """Decode one topic in pieces."""

    def __init__(
        self,
        typename: str,
        types: Mapping[str, Any],
        serialization: str,
        spend: Callable[[int], None],
    ) -> None:
        self.typename = typename
        self.ros1 = serialization == "ros1"
        self.may_be_packed = not self.ros1  # CDR never begins like zstd
        self.layouts = Layouts(typename, types, self.ros1, spend)
        self.names: tuple[str, ...] | None = None  # once known
        self.dtypes: tuple[str, ...] = ()  # of the channels
        self.said: tuple[Said, ...] = ()  # kinds of channels by their fields
        self.dtype: Any = None  # holds all channels
        self.kept: dict[str, int] = {}  # elements that are channels, by name of an array
        self.known: LayoutTree[_Known] = LayoutTree()
        self.lengths: dict[str, tuple[int, int]] = {}  # of arrays without a fixed length
        self.strings: dict[str, set[str] | None] = {}  # None: many
        self.too_long: dict[str, str] = {}
        self.rounded: set[str] = set()  # channels with integers that float64 rounds
        self.failed: dict[str, int] = {}  # number of skipped messages by reason
        self.failed_bytes = 0
        self.waiting: list[Rows] = []

    def begin(self) -> None:
        """Prepare for a pass through the messages; decisions are kept."""
        self.failed.clear()
        self.failed_bytes = 0
        self.waiting.clear()

    def feed(self, rows: Rows) -> list[Columns]:
        """Take messages; return columns, perhaps of earlier messages, or none yet."""
        if self.names is not None:
            return [self._decoded(rows)]
        self.waiting.append(rows)
        if sum(map(len, self.waiting)) >= _FIRST:
            return self.flush()
        self.waiting[-1] = rows.compact()
        return self.flush() if sum(len(w.data) for w in self.waiting) >= _FIRST_BYTES else []

    def flush(self) -> list[Columns]:
        """Return messages that were held back."""
        waiting, self.waiting = self.waiting, []
        if self.names is None and not self._decide(waiting):
            return []
        return [self._decoded(rows) for rows in waiting]

    def _decide(self, waiting: list[Rows]) -> bool:
        """Determine the channels from the first messages; False if none can be read."""
        import numpy as np

        lengths: dict[str, set[int]] = {}
        first: bytes | None = None
        looked = 0
        failed: dict[str, int] = {}
        lost = 0
        tree: LayoutTree[Layout] = LayoutTree()
        for few in _first_apart(waiting):
            if first is not None and looked >= _FIRST:
                break  # if none can be read, all are examined
            looked += len(few)
            found = []
            for layout, members in tree.sorted(few, self.layouts.layout_of):
                if layout.failure is not None:
                    count_reason(failed, layout.failure, len(members))
                    lost += int(few.sizes[members].sum())
                    continue
                found.append(int(members[0]))
                for path, count in layout.arrays.items():
                    lengths.setdefault(path, set()).add(count)
            if found and first is None:
                first = few.message(min(found))
        if first is None:
            for reason, count in failed.items():
                count_reason(self.failed, reason, count)
            self.failed_bytes += lost
            return False
        varying = {path for path, counts in lengths.items() if len(counts) > 1}
        names, self.kept = self.layouts.names(first, varying)
        layout = self.layouts.layout_of(first, self.kept)
        kinds = [np.dtype(run.dtype).newbyteorder("=") for run in layout.runs]
        self.dtypes = tuple(
            kind.name for kind, run in zip(kinds, layout.runs) for _ in range(run.count)
        )
        self.dtype = np.result_type(*set(kinds)) if kinds else np.dtype("f4")
        self.names = tuple(names)
        self.said = said_by(self.typename, self.layouts.types, self.names)
        return True

    def _known_of(self, message: bytes) -> _Known:
        """Return the layout of a message, and note the arrays that are not channels."""
        layout = self.layouts.layout_of(message, self.kept)
        if layout.failure is None:
            self.too_long.update(layout.too_long)
            for path, count in layout.arrays.items():
                least, most = self.lengths.get(path, (count, count))
                self.lengths[path] = min(least, count), max(most, count)
        return _Known.build(layout)

    def _decoded(self, rows: Rows) -> Columns:
        import numpy as np

        names = self.names or ()
        values = np.empty((len(rows), len(names)), self.dtype)
        header = np.zeros(len(rows), np.int64)
        kept = np.zeros(len(rows), bool)
        stamped = False
        for known, chosen in self.known.sorted(rows, self._known_of):
            layout = known.layout
            if layout.failure is not None:
                self.fail(layout.failure, rows.sizes[chosen])
                continue
            part = rows if len(chosen) == len(rows) else rows.select(chosen)
            if layout.stamp is not None:
                stamps, right = _stamps(part, layout)
                if not right.all():
                    reason = "their header stamps have 10**9 nanoseconds or more in a second"
                    self.fail(reason, part.sizes[~right])
                    stamps, chosen, part = stamps[right], chosen[right], part.select(right)
                stamped = True
                header[chosen] = stamps
            self._note(layout, part)
            kept[chosen] = True
            if layout.runs and len(part):
                records = part.records(known.dtype, layout.size)
                whole = len(part) == len(rows)
                block = values if whole else np.empty((len(part), len(names)), self.dtype)
                for run in layout.runs:
                    self._fill(block, run, records[f"f{run.offset}"])
                if not whole:
                    values[chosen] = block
        if not kept.all():
            values, header, rows = values[kept], header[kept], rows.select(kept)
        stamps = header if stamped else None
        return Columns(names, self.dtypes, values, rows.times, stamps, rows.marks)

    def fail(self, reason: str, sizes: Any) -> None:
        """Count messages that cannot be read, by reason."""
        count_reason(self.failed, reason, len(sizes))
        self.failed_bytes += int(sizes.sum())

    def _fill(self, block: Any, run: Run, numbers: Any) -> None:
        """Write the numbers of a run into their channels."""
        import numpy as np

        numbers = numbers.reshape(len(block), -1)
        if block.dtype.kind == "f" and numbers.dtype.kind in "iu" and numbers.dtype.itemsize == 8:
            large = (numbers > _EXACT) | (numbers < -_EXACT if numbers.dtype.kind == "i" else False)
            if large.any() and self.names is not None:
                columns = np.flatnonzero(large.any(axis=0)) + run.column
                self.rounded |= {self.names[column] for column in columns.tolist()}
        with np.errstate(invalid="ignore"):
            block[:, run.column : run.column + run.count] = numbers

    def _note(self, layout: Layout, rows: Rows) -> None:
        """Note strings, which are not channels."""
        import numpy as np

        for path, offset, size in layout.strings if len(rows) else ():
            known = self.strings.setdefault(path, set())
            if known is None:
                continue
            if size > _LONGEST_STRING:
                self.too_long[path] = f"string of {size:,} bytes"
                continue
            if size == 0 or len(rows) == 1:
                begin = int(rows.starts[0]) + offset
                few = [rows.data[begin : begin + size].tobytes()]
            else:
                texts = rows.field(offset, f"V{size}")
                others = texts[texts != texts[0]]
                few = [texts[0], *(np.unique(others[:1000])[:5] if len(others) else ())]
            known |= {bytes(text)[:size].decode("utf-8", "replace") for text in few}
            if len(known) > 4:
                self.strings[path] = None

    def left_out(self) -> list[tuple[str, str]]:
        """Return fields that are not channels, and messages that were not read, with reasons."""
        found = []
        for path, values in self.strings.items():
            if values is not None and not values:  # all of them are too long
                continue
            found.append((path, text_reason(values)))
        found += list(self.too_long.items())
        for path, (least, most) in self.lengths.items():
            kept = self.kept.get(path, 0)
            if least != most and most > kept:
                found.append((path, array_reason(least, most, kept)))
        for name in sorted(self.rounded):
            found.append((name, "64-bit integers above 2**53 among floats: rounded to float64"))
        for reason, count in self.failed.items():
            found.append(("", messages_not_read(count, reason)))
        return found

    def losses(self) -> list[str]:
        """Return sentences about the numbers of the messages that are not channels."""
        varying = [
            (path, least, most)
            for path, (least, most) in self.lengths.items()
            if least != most
            and self.kept.get(path, 0) < most <= MOST_ELEMENTS
            and array_has_numbers(self.layouts.types, self.typename, path)
        ]
        return [varying_reason(varying)] if varying else []

    @property
    def only_texts(self) -> bool:
        """Whether the type has texts and no numbers, except in the header."""
        arguments = self.layouts.types, self.typename
        return has_texts(*arguments) and not has_numbers(*arguments)


def _first_apart(waiting: list[Rows]) -> Iterator[Rows]:
    """Yield the messages that decide, then the others."""
    left = _FIRST
    for rows in waiting:
        parts = rows.select(slice(left)), rows.select(slice(left, None))
        left = max(0, left - len(rows))
        yield from (part for part in parts if len(part))


def _stamps(rows: Rows, layout: Layout) -> tuple[Any, Any]:
    """Return stamps as int64 nanoseconds, and a mask of valid times."""
    import numpy as np

    # ROS 1 has unsigned seconds.
    kind = layout.order + ("u4" if layout.ros1 else "i4")
    seconds = rows.field(layout.stamp or 0, kind).astype(np.int64)
    nanoseconds = rows.field((layout.stamp or 0) + 4, f"{layout.order}u4")
    return seconds * 1_000_000_000 + nanoseconds, nanoseconds < 1_000_000_000
