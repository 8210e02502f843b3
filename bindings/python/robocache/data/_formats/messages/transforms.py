"""Arrays of transforms, as in /tf: each element becomes a separate sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..bags.unread import count_reason
from .columns import Columns
from .cursor import Cursor, by_encoding
from .fixed_layouts import MOST_ELEMENTS, PLACEHOLDER, CannotDecode, Encoding
from .keys import NONE, Finder, Keyed, Signature
from .layouts import Layout, Layouts, LayoutTree
from .pieces import Rows
from .ros_types import said_by

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST_ALIKE = 64  # elements per message whose shape is remembered
_STAMP, _SEQUENCE = "header.stamp", "header.seq"


@dataclass(frozen=True)
class Elements:
    """Elements of the arrays in some messages, in the order of the file."""

    values: Any  # [n,D]
    times: NDArray[np.int64]  # log times of their messages, ns
    stamps: NDArray[np.int64]  # ns

    def __len__(self) -> int:
        return len(self.values)

    def select(self, chosen: Any) -> Elements:
        return Elements(self.values[chosen], self.times[chosen], self.stamps[chosen])


@dataclass(frozen=True)
class _Shape:
    """Messages with the same keys at the same offsets."""

    encoding: Encoding
    signature: Signature
    begins: list[dict[str, int]]  # offsets of the fields of each element
    end: int

    def fits(self, rows: Rows) -> bool:
        if not len(rows):
            return False
        most = self.end + (3 if self.encoding.prefix else 0)
        least = int(rows.sizes.min())
        return self.end <= least and int(rows.sizes.max()) <= most and self.signature.fits(rows)


class ElementFinder:
    """Find the elements of messages of one topic, with their keys and values."""

    def __init__(self, finder: Finder, typename: str) -> None:
        import numpy as np

        self.finder = finder
        self.layouts = Layouts(typename, finder.types, finder.ros1, finder.spend)
        self.numbers = [
            step
            for step in finder.recipe.steps
            if step.kind == "fixed"
            and step.path not in (_STAMP, _SEQUENCE)
            and not step.path.endswith(PLACEHOLDER)
        ]
        self.names: tuple[str, ...] = ()
        self.widths: dict[str, tuple[int, int]] = {}  # first channel and channels, by path
        dtypes: list[str] = []
        fixed = finder.fixed(_ANY)
        for step in self.numbers:
            names = list(fixed.names(step.description, step.path))
            runs = fixed.part(step.description, 0).runs
            self.widths[step.path] = len(self.names), len(names)
            self.names += tuple(names)
            for run in runs:
                dtypes += [np.dtype(run.dtype).newbyteorder("=").name] * run.count
        self.dtypes = tuple(dtypes)
        kinds = [np.dtype(name) for name in set(dtypes)]
        self.dtype = np.result_type(*kinds) if kinds else np.dtype("f4")
        self.failed: dict[str, int] = {}
        self._shape: _Shape | None = None  # of the last messages, if they were all alike

    def keyed(self, rows: Rows) -> Keyed:
        """Return the elements of messages. Messages that cannot be read count in ``failed``."""
        import numpy as np

        if self._shape is not None and self._shape.fits(rows):
            return self._alike(rows, self._shape)
        parts: list[tuple[Any, ...]] = []
        for encoding, chosen in by_encoding(rows, self.finder.ros1):
            indices = np.arange(len(rows)) if chosen is None else chosen
            try:
                parts += self._elements(rows, indices, encoding)
            except CannotDecode as error:
                count_reason(self.failed, str(error), len(indices))
        if not parts:
            none = np.zeros(0, np.int64)
            empty = np.zeros((0, len(self.names)), self.dtype)
            return Keyed(none, none, Elements(empty, none, none))
        joined = [np.concatenate(arrays) for arrays in zip(*parts)]
        if len(parts) > 1:
            order = np.argsort(joined[0], kind="stable")
            joined = [array[order] for array in joined]
        row, things, frames, values, stamps = joined
        self._shape = self._shape_of(rows, parts)
        return Keyed(things, frames, Elements(values, rows.times[row], stamps))

    def _shape_of(self, rows: Rows, parts: list[Any]) -> _Shape | None:
        """Return the shape of messages if all have the same keys at the same offsets."""
        encodings = list(by_encoding(rows, self.finder.ros1))
        encoding = encodings[0][0]
        if len(encodings) > 1 or encoding is None or len(parts) > _MOST_ALIKE:
            return None
        groups = []
        for i, (there, things, frames, *_) in enumerate(parts):
            same = len(there) == len(rows) and (things == things[0]).all()
            if not same or not (frames == frames[0]).all() or min(things[0], frames[0]) < 0:
                return None
            groups.append((int(things[0]), int(frames[0]), slice(i, None, len(parts))))
        if len({thing for thing, _, _ in groups}) < len(groups):
            return None
        cursor = Cursor(rows, self.finder.fixed(encoding))
        places: list[Any] = [(0, 2)] if encoding.prefix else []
        places.append((cursor.at, cursor.at + 4))
        if cursor.length() != len(parts):
            return None
        begins: list[dict[str, int]] = []
        for _ in parts:
            begins.append({})
            for step in self.finder.recipe.steps:
                if step.kind == "string":
                    begin, _ = cursor.string()
                    places.append((begin - 4, cursor.at))
                else:
                    begins[-1][step.path] = cursor.fixed_part(step.description)
                if not isinstance(cursor.at, int):
                    return None
        return _Shape(encoding, Signature(rows, places, groups), begins, cursor.at)

    def _alike(self, rows: Rows, shape: _Shape) -> Keyed:
        """Return the elements of messages with a known shape."""
        import numpy as np

        count, each = len(rows), len(shape.begins)
        values = np.zeros((count, each, len(self.names)), self.dtype)
        stamps = np.zeros((count, each), np.int64)
        right = True
        cursor = Cursor(rows, self.finder.fixed(shape.encoding))
        for i, begins in enumerate(shape.begins):
            for step in self.numbers:
                first, width = self.widths[step.path]
                block = values[:, i, first : first + width]
                cursor.values(begins[step.path], step.description, block)
            if _STAMP in begins:
                stamps[:, i], good = _stamps(cursor, begins[_STAMP])
                right = right and bool(good.all())
        if not right:
            self._shape = None
            return self.keyed(rows)
        times = np.repeat(rows.times, each)
        content = Elements(values.reshape(count * each, -1), times, stamps.reshape(-1))
        return Keyed(NONE, NONE, content, shape.signature.groups)

    def _elements(
        self, rows: Rows, indices: Any, encoding: Encoding | None
    ) -> list[tuple[Any, ...]]:
        """Return row, thing, frame, values and stamp of first elements, second elements, ..."""
        import numpy as np

        if encoding is None:
            self._explain(rows.select(indices))
            return []
        cursor = Cursor(rows.select(indices), self.finder.fixed(encoding))
        counts = np.broadcast_to(cursor.length(), len(indices))
        good = cursor.good & (counts <= MOST_ELEMENTS)
        at = np.broadcast_to(cursor.at, len(indices)).copy()
        parts = []
        most = int(np.where(good, counts, 0).max(initial=0))
        self.finder.spend(most * len(self.finder.recipe.steps))
        for i in range(most):
            there = np.flatnonzero((counts > i) & good)
            if not len(there):
                break
            own = Cursor(cursor.rows.select(there), cursor.fixed, _one(at[there]))
            parts.append((there, *self._element(own)))
            good[there] &= own.good
            at[there] = own.at
        left = cursor.rows.sizes - at
        good &= (left >= 0) & (left <= (3 if encoding.prefix else 0))
        if not good.all():
            self._explain(cursor.rows.select(~good))
        made = []
        for there, *arrays in parts:
            kept = good[there] & arrays.pop()
            if kept.all():
                made.append((indices[there], *arrays))
            else:
                made.append((indices[there][kept], *(array[kept] for array in arrays)))
        return made

    def _element(self, cursor: Cursor) -> tuple[Any, ...]:
        """Return thing, frame, values and stamp of one element per message, and a valid mask."""
        import numpy as np

        finder, count = self.finder, len(cursor.rows)
        values = np.zeros((count, len(self.names)), self.dtype)
        stamps, right = np.zeros(count, np.int64), np.ones(count, bool)
        things: Any = np.zeros(count, np.int64)
        frames = []
        for step in finder.recipe.steps:
            if step.kind == "string":
                begin, size = cursor.string()
                if step.path == finder.recipe.thing:
                    things = finder.things.numbers(cursor, begin, size)
                elif step.path in finder.recipe.frames:
                    frames.append(finder.texts.numbers(cursor, begin, size))
                continue
            begin = cursor.fixed_part(step.description)
            if step.path == _STAMP:
                stamps, right = _stamps(cursor, begin)
            elif step.path in self.widths:
                first, width = self.widths[step.path]
                cursor.values(begin, step.description, values[:, first : first + width])
        return things, finder.pairs.numbers(frames, count), values, stamps, self._right(right)

    def _right(self, right: Any) -> Any:
        if not right.all():
            reason = "its header stamp has 10**9 nanoseconds or more in a second"
            count_reason(self.failed, reason, int((~right).sum()))
        return right

    def _explain(self, rows: Rows) -> None:
        """Count messages that cannot be read, with the reason."""
        tree: LayoutTree[Layout] = LayoutTree()
        for layout, indices in tree.sorted(
            rows, lambda message: self.layouts.layout_of(message, {})
        ):
            most = max(layout.arrays.values(), default=0)
            reason = f"array of {most:,} transforms, expected at most {MOST_ELEMENTS:,}"
            count_reason(self.failed, layout.failure or reason, len(indices))


class ElementDecoder:
    """The elements of one key as columns, which are decoded already when they are found."""

    def __init__(self, finder: ElementFinder, texts: dict[str, str]) -> None:
        self.finder, self.texts = finder, texts
        self.names: tuple[str, ...] | None = finder.names
        self.said = said_by(_TRANSFORM, finder.finder.types, finder.names)

    def begin(self) -> None:
        """Prepare for a pass through the messages."""

    def feed(self, elements: Any) -> list[Columns]:
        finder = self.finder
        return [
            Columns(finder.names, finder.dtypes, elements.values, elements.times, elements.stamps)
        ]

    def flush(self) -> list[Columns]:
        return []

    def left_out(self) -> list[tuple[str, str]]:
        return [(path, f"string, always {text!r}") for path, text in self.texts.items()]


_TRANSFORM = "geometry_msgs/msg/TransformStamped"
_ANY = Encoding("cdr", aligned=8, prefix=4, order="<", terminated=True)


def _one(at: Any) -> Any:
    """Return one number for an array whose elements are equal, else the array."""
    return int(at[0]) if (at == at[0]).all() else at


def _stamps(cursor: Cursor, begin: Any) -> tuple[Any, Any]:
    """Return nanoseconds, and a mask of valid times."""
    import numpy as np

    encoding = cursor.encoding
    begin = begin + -(begin - encoding.prefix) % min(4, encoding.aligned)
    # ROS 1 has unsigned seconds.
    kind = encoding.order + ("u4" if encoding.name == "ros1" else "i4")
    seconds = cursor.numbers(begin, kind).astype(np.int64)
    nanoseconds = cursor.numbers(begin + 4, f"{encoding.order}u4")
    return seconds * 1_000_000_000 + nanoseconds, nanoseconds < 1_000_000_000
