"""Follow the same fields in many messages at once, with strings and arrays of any length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .fixed_layouts import MOST_ELEMENTS, Encoding, FixedLayouts
from .layouts import encodings
from .pieces import Rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BASE, _NAME, _ARRAY = 1, 2, 3  # rosbags' Nodetype; other values are sequences
_DEEPEST = 8  # levels of nested messages
_MOST_STEPS = 64


@dataclass(frozen=True)
class Step:
    """A field of a type, or a field of a nested message."""

    path: str
    kind: str  # "fixed", "string", "strings", "numbers"
    description: Any


def steps_of(types: Mapping[str, Any], typename: str) -> tuple[list[Step], bool]:
    """Return the fields of a type that a cursor can pass, and whether these are all."""
    fixed = FixedLayouts(types, Encoding("any", 1, 0, "<", False))
    found: list[Step] = []
    whole = typename in types and _add_steps(types, typename, "", fixed, found, 0)
    return found, whole


def _add_steps(
    types: Mapping[str, Any],
    typename: str,
    path: str,
    fixed: FixedLayouts,
    found: list[Step],
    depth: int,
) -> bool:
    for name, description in types[typename][1]:
        inner = f"{path}.{name}" if path else name
        kind, what = description[0], description[1]
        if len(found) >= _MOST_STEPS:
            return False
        if fixed.has(description):
            found.append(Step(inner, "fixed", description))
        elif kind == _BASE and what[0] == "string":
            found.append(Step(inner, "string", description))
        elif kind == _NAME and what in types and depth < _DEEPEST:
            if not _add_steps(types, what, inner, fixed, found, depth + 1):
                return False
        elif kind not in (_BASE, _NAME) and what[0][0] == _BASE:
            element = what[0][1][0]
            if element == "string":
                found.append(Step(inner, "strings", description))
            elif kind != _ARRAY and fixed.has(what[0]):
                found.append(Step(inner, "numbers", description))
            else:
                return False
        else:
            return False
    return True


def by_encoding(rows: Rows, ros1: bool) -> Iterator[tuple[Encoding | None, Any]]:
    """Yield encodings (None: unknown) with the indices of their messages (None: all)."""
    import numpy as np

    if ros1:
        yield encodings(b"", True), None
        return
    heads = np.zeros(len(rows), np.int64)
    long = rows.sizes >= 4
    if long.all():
        heads = rows.field(0, ">u2").astype(np.int64)
    else:
        heads[long] = rows.select(long).field(0, ">u2")
        heads[~long] = -1
    if len(heads) and (heads == heads[0]).all():
        yield _encoding(int(heads[0])), None
        return
    for head in np.unique(heads).tolist():
        yield _encoding(head), np.flatnonzero(heads == head)


def _encoding(head: int) -> Encoding | None:
    return None if head < 0 else encodings(head.to_bytes(2, "big"), False)


class Cursor:
    """An offset in each of many messages of one encoding.

    Messages that end too early are no longer ``good``, and their offset stays.
    """

    def __init__(self, rows: Rows, fixed: FixedLayouts, at: Any = None) -> None:

        self.rows, self.fixed, self.encoding = rows, fixed, fixed.encoding
        # A single number while it is equal in all messages.
        self.at: Any = self.encoding.prefix if at is None else at
        self.good: NDArray[np.bool_] = rows.sizes >= self.at

    def select(self, chosen: Any) -> Cursor:
        """Return the cursor for some of the messages."""
        at = self.at if isinstance(self.at, int) else self.at[chosen]
        made = Cursor(self.rows.select(chosen), self.fixed, at)
        made.good = made.good & self.good[chosen]
        return made

    def skip(self, size: Any) -> Any:
        """Advance by some bytes; return the previous offset."""
        import numpy as np

        begin = self.at
        end = self.at + size
        good = end <= self.rows.sizes
        if not good.all():
            self.good = self.good & good
            end = np.where(self.good, end, begin)
        self.at = end
        return begin

    def align(self, width: int) -> None:
        width = min(width, self.encoding.aligned)
        if width > 1:
            self.at = self.at + -(self.at - self.encoding.prefix) % width

    def length(self) -> Any:
        """Read the length of a string or an array: one number if all are equal."""
        import numpy as np

        self.align(4)
        begin = self.skip(4)
        values = self.numbers(begin, f"{self.encoding.order}u4").astype(np.int64)
        if len(values) and self.good.all() and (values == values[0]).all():
            return int(values[0])
        return np.where(self.good, values, 0)

    def string(self) -> tuple[Any, Any]:
        """Pass a string; return the offset and the number of its bytes."""
        import numpy as np

        size = self.length()
        begin = self.skip(size)
        if not self.encoding.terminated:
            return begin, size
        return begin, (max(size - 1, 0) if isinstance(size, int) else np.maximum(size - 1, 0))

    def fixed_part(self, description: Any) -> Any:
        """Pass fields of fixed size; return their offset, before alignment."""
        import numpy as np

        phase = (self.at - self.encoding.prefix) % self.encoding.aligned
        if isinstance(phase, int):
            return self.skip(self.fixed.part(description, phase).size)
        sizes = np.zeros(self.encoding.aligned, np.int64)
        for each in np.unique(phase).tolist():
            sizes[each] = self.fixed.part(description, each).size
        return self.skip(sizes[phase])

    def strings(self, count: Any) -> None:
        """Pass ``count`` strings. Messages with more than ``MOST_ELEMENTS`` are no longer good."""
        import numpy as np

        if isinstance(count, int) and count > MOST_ELEMENTS:
            self.good = np.zeros(len(self.rows), bool)
        if isinstance(count, int):
            for _ in range(count if self.good.any() else 0):
                self.string()
            return
        self.good = self.good & (count <= MOST_ELEMENTS)
        count = np.where(self.good, count, 0)
        at = np.broadcast_to(self.at, len(self.rows)).copy()
        for i in range(int(count.max(initial=0))):
            there = np.flatnonzero((count > i) & self.good)
            if not len(there):
                break
            part = Cursor(self.rows.select(there), self.fixed, at[there])
            part.string()
            at[there] = part.at
            self.good[there] &= part.good
        self.at = at

    def array(self, description: Any) -> None:
        """Pass an array of numbers without a fixed length."""
        import numpy as np

        inner = description[1][0]
        count = self.length()
        phase = (self.at - self.encoding.prefix) % self.encoding.aligned
        width = self.fixed.part(inner, 0).size
        skipped = -phase % min(width, self.encoding.aligned)
        if isinstance(count, int):
            self.skip(skipped + width * count if count else 0)
        else:
            self.skip(np.where(count > 0, skipped + width * count, 0))

    def numbers(self, begin: Any, dtype: Any) -> Any:
        """Return the numbers at an offset in each message; undefined if not good."""
        import numpy as np

        view = self.rows.view(dtype)
        if not len(view):
            return np.zeros(len(self.rows), dtype)
        places = self.rows.starts + begin
        if not self.good.all():
            places = np.where(self.good, places, 0)
        return view[places]

    def values(self, begin: Any, description: Any, block: Any) -> None:
        """Write the numbers of a fixed part at an offset into a block [n,D]."""
        import numpy as np

        phase = (begin - self.encoding.prefix) % self.encoding.aligned
        if isinstance(phase, int):
            self._values(self.fixed.part(description, phase), begin, block, slice(None))
            return
        for each in np.unique(phase).tolist():
            chosen = np.flatnonzero(phase == each)
            self._values(self.fixed.part(description, each), begin[chosen], block, chosen)

    def _values(self, part: Any, begin: Any, block: Any, chosen: Any) -> None:
        import numpy as np

        starts, good = self.rows.starts[chosen], self.good[chosen]
        for run in part.runs:
            view = self.rows.view(np.dtype([("v", run.dtype, (run.count,))]))
            if not len(view):
                continue
            places = np.where(good, starts + begin + run.offset, 0)
            with np.errstate(invalid="ignore"):
                block[chosen, run.column : run.column + run.count] = view[places]["v"]
