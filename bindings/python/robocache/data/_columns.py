"""The messages of one topic as columns: channels by name, header stamps, and what is no channel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._layouts import ROS1, CannotDecode, Encoding, Layout, cdr_of, layout_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

_FIRST = 64  # messages that decide which arrays keep their length
_FIRST_BYTES = 4 << 20  # or fewer of large ones
_MOST_LAYOUTS = 256  # that are remembered
_EXACT = 2**53  # integers above are not all float64


@dataclass(frozen=True)
class Rows:
    """Messages of one topic, as they stand in a piece of a file."""

    data: NDArray[np.uint8]  # the piece
    starts: NDArray[np.int64]  # where each message begins in it
    sizes: NDArray[np.int64]
    times: NDArray[np.int64]  # when they were logged, ns

    def __len__(self) -> int:
        return len(self.starts)

    def of(self, chosen: Any) -> Rows:
        return Rows(self.data, self.starts[chosen], self.sizes[chosen], self.times[chosen])

    def alone(self) -> Rows:
        """The same without the rest of the piece, which may be large."""
        import numpy as np

        content = b"".join(self.message(i) for i in range(len(self)))
        starts = np.cumsum(self.sizes) - self.sizes
        return Rows(np.frombuffer(content, np.uint8), starts, self.sizes, self.times)

    def message(self, i: int) -> bytes:
        begin = int(self.starts[i])
        return self.data[begin : begin + int(self.sizes[i])].tobytes()

    def field(self, offset: int, dtype: str) -> Any:
        """What stands ``offset`` bytes into each message, wherever that is aligned."""
        return self._at(dtype)[self.starts + offset]

    def records(self, dtype: Any, size: int) -> Any:
        """Messages of one size as a structured array."""
        return self._at(f"V{size}")[self.starts].view(dtype)

    def _at(self, dtype: Any) -> Any:
        import numpy as np

        size = np.dtype(dtype).itemsize
        count = max(0, len(self.data) - size + 1)
        return np.ndarray(count, dtype, self.data, strides=(1,))


@dataclass(frozen=True)
class Columns:
    """What messages became."""

    names: tuple[str, ...]
    dtypes: tuple[str, ...]  # of each channel, as it was
    values: Any  # [n,D]
    log: NDArray[np.int64]  # ns
    header: NDArray[np.int64] | None  # ns; None without header.stamp


@dataclass(frozen=True)
class _Known:
    layout: Layout
    dtype: Any
    encoding: Encoding


class Decoder:
    """Decodes one topic piece by piece."""

    def __init__(self, typename: str, types: dict[str, Any], serialization: str) -> None:
        self.typename, self.types = typename, types
        self.ros1 = serialization == "ros1"
        self.names: tuple[str, ...] | None = None  # once it is known
        self.dtypes: tuple[str, ...] = ()  # of the channels
        self.dtype: Any = None  # that holds all of them
        self.known: list[_Known] = []  # layouts, the last that fitted first
        self.varying: dict[str, set[int]] = {}  # arrays that are no channels: lengths
        self.strings: dict[str, set[str] | None] = {}  # None: many
        self.too_long: dict[str, str] = {}
        self.rounded: set[str] = set()  # integers that float64 does not hold
        self.failed: dict[str, int] = {}  # reasons for which messages were left out, how many
        self.waiting: list[Rows] = []

    def begin(self) -> None:
        """Before a pass through the messages; what was decided stays."""
        self.failed.clear()
        self.waiting.clear()

    def feed(self, rows: Rows) -> list[Columns]:
        """Take messages; what comes back may be of messages before, or wait for more."""
        if self.names is not None:
            return [self._decoded(rows)]
        self.waiting.append(rows)
        if sum(map(len, self.waiting)) >= _FIRST:
            return self.flush()
        self.waiting[-1] = rows.alone()
        return self.flush() if sum(len(w.data) for w in self.waiting) >= _FIRST_BYTES else []

    def flush(self) -> list[Columns]:
        """Messages that waited for more."""
        waiting, self.waiting = self.waiting, []
        if not waiting:
            return []
        if self.names is None:
            self._decide(waiting)
        return [self._decoded(rows) for rows in waiting]

    def _decide(self, waiting: list[Rows]) -> None:
        """Which channels there are: by the first messages."""
        import numpy as np

        lengths: dict[str, set[int]] = {}
        runs = None
        left = _FIRST
        for rows in waiting:
            few = rows.of(slice(left))
            left -= len(few)
            for known, _ in self._by_layout(few, {}):
                runs = known.layout.runs if runs is None else runs
                for path, count in known.layout.arrays.items():
                    lengths.setdefault(path, set()).add(count)
        self.varying = {path: counts for path, counts in lengths.items() if len(counts) > 1}
        kinds = {
            name: np.dtype(run.dtype).newbyteorder("=")
            for run in runs or []
            for name in run.names
            if not self._varies(name)
        }
        self.dtypes = tuple(kind.name for kind in kinds.values())
        self.dtype = np.result_type(*set(kinds.values())) if kinds else np.dtype("f4")
        self.names = tuple(kinds)

    def _varies(self, name: str) -> bool:
        return any(name.startswith(path + "[") for path in self.varying)

    def _by_layout(self, rows: Rows, failed: dict[str, int]) -> Iterator[tuple[_Known, Any]]:
        """Layouts, each with the messages that have it, as a mask; it counts those without."""
        import numpy as np

        left = np.ones(len(rows), bool)
        for known in list(self.known):
            if not left.any():
                return
            fits = left & _fits(rows, known.layout)
            if fits.any():
                left &= ~fits
                self.known.remove(known)
                self.known.insert(0, known)
                yield known, fits
        while left.any():
            i = int(np.argmax(left))
            try:
                message = rows.message(i)
                encoding = ROS1 if self.ros1 else cdr_of(message)
                layout = layout_of(message, self.typename, self.types, encoding)
            except CannotDecode as error:
                failed[str(error)] = failed.get(str(error), 0) + 1
                left[i] = False
                continue
            known = _Known(layout, _dtype(layout), encoding)
            self.known.insert(0, known)
            del self.known[_MOST_LAYOUTS:]
            fits = left & _fits(rows, layout)
            left &= ~fits
            yield known, fits

    def _decoded(self, rows: Rows) -> Columns:
        import numpy as np

        names = self.names or ()
        column = {name: i for i, name in enumerate(names)}
        values = np.empty((len(rows), len(names)), self.dtype)
        header = np.zeros(len(rows), np.int64)
        kept = np.zeros(len(rows), bool)
        stamped = False
        for known, chosen in self._by_layout(rows, self.failed):
            layout = known.layout
            parts = _parts(layout, column)
            missing = set(names) - {name for run, _, _ in parts for name in run}
            if missing:
                reason = f"no {min(missing)}, which the first messages have"
                self.failed[reason] = self.failed.get(reason, 0) + int(chosen.sum())
                continue
            of = rows.of(chosen)
            self._note(layout, of)
            kept |= chosen
            if parts:
                records = of.records(known.dtype, layout.size)
                block = values if chosen.all() else values[chosen]
                for run, field, source in parts:
                    self._fill(block, run, column, records[field], source)
                if block is not values:
                    values[chosen] = block
            if layout.stamp is not None:
                stamped = True
                header[chosen] = _stamps(of, layout.stamp, known.encoding)
        if not kept.all():
            values, header, rows = values[kept], header[kept], rows.of(kept)
        return Columns(names, self.dtypes, values, rows.times, header if stamped else None)

    def _fill(self, block: Any, run: Any, column: Any, numbers: Any, source: Any) -> None:
        """Write the numbers of a run into their channels."""
        import numpy as np

        numbers = numbers.reshape(len(block), -1)[:, source]
        if block.dtype.kind == "f" and numbers.dtype.kind in "iu" and numbers.dtype.itemsize == 8:
            large = (numbers > _EXACT) | (numbers < -_EXACT if numbers.dtype.kind == "i" else False)
            self.rounded |= {name for name, is_large in zip(run, large.any(axis=0)) if is_large}
        begin = column[run[0]]
        places: Any = [column[name] for name in run]
        if places == list(range(begin, begin + len(run))):
            places = slice(begin, begin + len(run))
        with np.errstate(invalid="ignore"):
            block[:, places] = numbers

    def _note(self, layout: Layout, rows: Rows) -> None:
        """What is no channel."""
        import numpy as np

        self.too_long.update(layout.too_long)
        for path, offset, size in layout.strings:
            known = self.strings.setdefault(path, set())
            if known is None:
                continue
            texts = rows.field(offset, f"V{size}") if size else np.zeros(1, "V1")
            same = size == 0 or bool((texts == texts[0]).all())
            few = [texts[0]] if same else np.unique(texts[:1000])[:5]
            known |= {bytes(text)[:size].decode("utf-8", "replace") for text in few}
            if len(known) > 4:
                self.strings[path] = None

    def left_out(self) -> list[tuple[str, str]]:
        """Fields that are no channels, and messages that were not read, with the reason."""
        found = []
        for path, values in self.strings.items():
            if values is None or len(values) > 1:
                shown = "" if values is None else ": " + ", ".join(map(repr, sorted(values)))
                found.append((path, f"string, which varies{shown}"))
            else:
                found.append((path, f"string, always {next(iter(values), '')!r}"))
        found += list(self.too_long.items())
        for path, counts in self.varying.items():
            found.append((path, f"array of {min(counts)} to {max(counts)} elements"))
        for name in sorted(self.rounded):
            found.append((name, "64-bit integers above 2**53 among floats: rounded to float64"))
        for reason, count in self.failed.items():
            found.append(("", f"{count} messages: {reason}"))
        return found


def _fits(rows: Rows, layout: Layout) -> Any:
    """Messages with the size of a layout, and its lengths of strings and arrays."""
    import numpy as np

    fits = rows.sizes == layout.size
    order = layout.order
    for offset, length in layout.lengths:
        if not fits.any():
            break
        chosen = np.flatnonzero(fits)
        fits[chosen] = rows.of(chosen).field(offset, f"{order}u4") == length
    return fits


def _dtype(layout: Layout) -> Any:
    import numpy as np

    return np.dtype(
        {
            "names": [f"f{run.offset}" for run in layout.runs],
            "formats": [(run.dtype, (len(run.names),)) for run in layout.runs],
            "offsets": [run.offset for run in layout.runs],
            "itemsize": layout.size,
        }
    )


def _parts(layout: Layout, column: dict[str, int]) -> list[tuple[Any, str, Any]]:
    """For each run its channels, its field, and which of its numbers they are."""
    parts = []
    for run in layout.runs:
        chosen = [i for i, name in enumerate(run.names) if name in column]
        if chosen:
            source: Any = slice(None) if len(chosen) == len(run.names) else chosen
            parts.append(([run.names[i] for i in chosen], f"f{run.offset}", source))
    return parts


def _stamps(rows: Rows, offset: int, encoding: Encoding) -> Any:
    """Seconds and nanoseconds as int64 nanoseconds."""
    import numpy as np

    kind = "u4" if encoding.name == "ros1" else "i4"
    seconds = rows.field(offset, encoding.order + kind).astype(np.int64)
    return seconds * 1_000_000_000 + rows.field(offset + 4, f"{encoding.order}u4")
