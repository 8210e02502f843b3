"""The keys that distinguish the things of a topic: frames, children of transforms, joints.

A key of a message is a pair of numbers. The first one identifies the thing of the message, such
as the child frame of a transform or a set of joints. The second one identifies the frame.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable

from .cursor import Cursor, Step, by_encoding, steps_of
from .fixed_layouts import CannotDecode, Encoding, FixedLayouts
from .pieces import Rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .transforms import Elements

MOST_KEYS = 1024  # per topic
MOST_ORDERS = 1 << 16  # orders of joints per topic
TOO_MANY, NOT_FOLLOWED = -1, -2  # instead of the number of a key
NO_TEXT = "(no frame)"  # in the name of a stream
_LONGEST = 200  # bytes of a key that are kept unchanged
_LONGEST_ORDER = 1 << 16  # bytes of the names of joints in one message

_HEADER = "std_msgs/msg/Header"
_TRANSFORM = "geometry_msgs/msg/Transform"
_FRAME, _CHILD = "header.frame_id", "child_frame_id"
_NAMES = ("name", "names", "joint_names")


@dataclass(frozen=True)
class Recipe:
    """The places of the keys in a type of messages."""

    steps: tuple[Step, ...]  # up to the last key
    frames: tuple[str, ...]  # strings that identify the frame
    thing: str | None = None  # the string, or array of strings, that identifies the thing
    joints: bool = False  # whether thing has the names of joints
    elements: str | None = None  # type of the elements that have the keys


@dataclass(frozen=True)
class Keyed:
    """Messages, or elements of messages, with their keys."""

    things: NDArray[np.int64]
    frames: NDArray[np.int64]
    content: Rows | Elements
    groups: list[tuple[int, int, slice]] | None = None  # thing, frame, rows: instead of arrays


class Signature:
    """Bytes at some offsets that determine the keys: messages with these bytes have these keys."""

    def __init__(self, rows: Rows, places: list[tuple[int, int]], groups: list[Any]) -> None:
        import numpy as np

        self.least = max(end for _, end in places)
        self.groups = groups
        self.parts: list[tuple[int, Any, Any]] = []
        for begin, end in places:
            dtype = np.dtype(f"V{end - begin}")
            self.parts.append((begin, dtype, rows.select(slice(1)).field(begin, dtype)[0]))

    def fits(self, rows: Rows) -> bool:
        if not len(rows) or int(rows.sizes.min()) < self.least:
            return False
        return all((rows.field(at, dtype) == raw).all() for at, dtype, raw in self.parts)


NONE: Any = None


def recipe_of(types: Mapping[str, Any], typename: str) -> Recipe | None:
    """Return how to find the keys of a type; None if it has none, or they cannot be reached."""
    if typename not in types:
        return None
    fields = dict(types[typename][1])
    if len(fields) == 1:
        (kind, what) = next(iter(fields.values()))
        if kind > 3 and what[0][0] == 2:
            return _recipe_of_elements(types, what[0][1])
    steps, _ = steps_of(types, typename)
    places = {step.path: i for i, step in enumerate(steps)}
    has_header = fields.get("header") == (2, _HEADER)
    frames = [_FRAME] if has_header and _FRAME in places else []
    names = [path for path in _NAMES if path in places and steps[places[path]].kind == "strings"]
    if names and len(fields) > 1 + has_header:
        return _recipe(steps, places, frames, names[0], joints=True)
    has_child = _CHILD in places and steps[places[_CHILD]].kind == "string"
    if frames and has_child and (2, _TRANSFORM) in fields.values():
        return _recipe(steps, places, frames, _CHILD)
    if frames and has_child:
        frames.append(_CHILD)
    if not frames:  # use frames of a nested message, as in an odometry with a quality
        frames = [
            step.path
            for step in steps
            if step.kind == "string" and step.path.endswith((f".{_FRAME}", f".{_CHILD}"))
        ]
    return _recipe(steps, places, frames, None) if frames else None


def _recipe(
    steps: list[Step], places: dict[str, int], frames: list[str], thing: str | None, **more: Any
) -> Recipe:
    last = max(places[path] for path in (*frames, *([thing] if thing else [])))
    return Recipe(tuple(steps[: last + 1]), tuple(frames), thing, **more)


def _recipe_of_elements(types: Mapping[str, Any], element: str) -> Recipe | None:
    steps, whole = steps_of(types, element)
    paths = {step.path for step in steps if step.kind == "string"}
    if not whole or any(step.kind not in ("fixed", "string") for step in steps):
        return None
    if not {_FRAME, _CHILD} <= paths:
        return None
    return Recipe(tuple(steps), (_FRAME,), _CHILD, elements=element)


class Texts:
    """Numbers for strings, in the order in which they were first seen."""

    def __init__(self, most: int, spend: Callable[[int], None], longest: int = _LONGEST) -> None:
        self.most, self.spend, self.longest = most, spend, longest
        self.known: dict[bytes, int] = {}
        self.all: list[bytes] = []

    def number(self, text: bytes) -> int:
        """Return the number of a text; ``TOO_MANY`` for a new one if there are many."""
        if len(text) > self.longest:  # such as a name of a megabyte: it is not stored
            if self.longest > _LONGEST:
                return TOO_MANY
            text = text[:_LONGEST] + hashlib.sha256(text).hexdigest().encode()
        found = self.known.get(text)
        if found is None:
            if len(self.all) >= self.most:
                return TOO_MANY
            found = self.known[text] = len(self.all)
            self.all.append(text)
        return found

    def numbers(self, cursor: Cursor, begin: Any, size: Any, keep: Any = None) -> Any:
        """Return the number of a string in each message; ``NOT_FOLLOWED`` if it has none."""
        import numpy as np

        found = np.full(len(cursor.rows), NOT_FOLLOWED, np.int64)
        good = np.flatnonzero(cursor.good)
        places = (cursor.rows.starts + begin)[good]
        if not len(good):
            return found
        if isinstance(size, int):
            groups = [(size, np.arange(len(good)))]
        else:
            sizes = size[good]
            groups = [(each, np.flatnonzero(sizes == each)) for each in np.unique(sizes).tolist()]
        distinct: list[tuple[int, bytes, Any]] = []  # first message, text, all messages
        for each, chosen in groups:
            for first, text, indices in self._distinct(cursor.rows, places[chosen], each):
                distinct.append((int(chosen[first]), text, chosen[indices]))
        self.spend(len(distinct) if len(distinct) > 1 else 0)
        # Numbers are assigned in the order of the file.
        for _, text, indices in sorted(distinct, key=lambda entry: entry[0]):
            found[good[indices]] = self.number(text)
        return found

    def _distinct(self, rows: Rows, places: Any, size: int) -> Iterator[tuple[int, bytes, Any]]:
        """Yield texts of one size, each with its first index and all of its indices."""
        import numpy as np

        if size == 0:
            yield 0, b"", slice(None)
            return
        texts = rows.view(f"V{size}")[places]
        if len(texts) == 1 or (texts == texts[0]).all():
            yield 0, texts[0].tobytes(), slice(None)
            return
        order = np.argsort(texts.view(f"S{size}"), kind="stable")
        in_order = texts[order]
        begins = np.flatnonzero(np.concatenate([[True], in_order[1:] != in_order[:-1]]))
        for indices in np.split(order, begins[1:]):
            yield int(indices[0]), texts[indices[0]].tobytes(), indices

    def text(self, number: int) -> str:
        return self.all[number].decode("utf-8", "replace")


class Pairs:
    """Numbers for tuples of numbers, which identify the frames of a message."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.known: dict[tuple[int, ...], int] = {}
        self.all: list[tuple[int, ...]] = []

    def number(self, key: tuple[int, ...]) -> int:
        found = self.known.get(key)
        if found is None:
            if len(self.all) >= self.most:
                return TOO_MANY
            found = self.known[key] = len(self.all)
            self.all.append(key)
        return found

    def numbers(self, columns: list[Any], length: int) -> Any:
        """Return numbers for rows of several arrays; a negative number in a row is kept."""
        import numpy as np

        if not columns:
            return np.full(length, self.number(()), np.int64)
        table = np.stack(columns, axis=1)
        if length and (table == table[0]).all():
            return np.full(length, self._number(table[0].tolist()), np.int64)
        rows, indices = np.unique(table, axis=0, return_inverse=True)
        numbers = np.array([self._number(row) for row in rows.tolist()], np.int64)
        return numbers[indices.reshape(-1)] if length else np.zeros(0, np.int64)

    def _number(self, row: list[int]) -> int:
        return min(row) if min(row) < 0 else self.number(tuple(row))


class Finder:
    """Find the keys of messages of one topic."""

    def __init__(
        self, recipe: Recipe, types: Mapping[str, Any], ros1: bool, spend: Callable[[int], None]
    ) -> None:
        self.recipe, self.types, self.ros1, self.spend = recipe, types, ros1, spend
        self.texts = Texts(2 * MOST_KEYS, spend)  # of frames
        self.pairs = Pairs(MOST_KEYS)
        self.things = Texts(MOST_KEYS, spend)
        self.orders = Texts(MOST_ORDERS, spend, _LONGEST_ORDER)  # of names of joints
        self.joints: list[tuple[str, ...]] = []  # the names in each order
        self.thing_of: list[int] = []  # the thing of each order
        self._fixed: dict[Encoding, FixedLayouts] = {}
        self._signature: Signature | None = None  # of messages that all had one key
        self._mark = 0

    def fixed(self, encoding: Encoding) -> FixedLayouts:
        if encoding not in self._fixed:
            self._fixed[encoding] = FixedLayouts(self.types, encoding)
        return self._fixed[encoding]

    def keyed(self, rows: Rows) -> Keyed:
        """Return the messages with their keys."""
        import numpy as np

        if self._signature is not None and self._signature.fits(rows):
            if self.recipe.joints:
                marks = np.full(len(rows), self._mark, np.int64)
                rows = Rows(rows.data, rows.starts, rows.sizes, rows.times, marks)
            return Keyed(NONE, NONE, rows, self._signature.groups)
        things = np.full(len(rows), NOT_FOLLOWED, np.int64)
        frames = np.full(len(rows), NOT_FOLLOWED, np.int64)
        marks = np.zeros(len(rows), np.int64)
        for encoding, chosen in by_encoding(rows, self.ros1):
            if encoding is None:
                continue
            indices = slice(None) if chosen is None else chosen
            try:
                cursor = Cursor(rows.select(indices), self.fixed(encoding))
                found, frames[indices], marks[indices], places = self._follow(cursor)
            except CannotDecode:
                continue
            if chosen is None:
                self._remember(rows, found, frames, marks, places)
            things[indices] = np.where(frames[indices] == NOT_FOLLOWED, NOT_FOLLOWED, found)
        frames = np.where(things == NOT_FOLLOWED, NOT_FOLLOWED, frames)
        if self.recipe.joints:
            rows = Rows(rows.data, rows.starts, rows.sizes, rows.times, marks)
        return Keyed(things, frames, rows)

    def _remember(
        self, rows: Rows, things: Any, frames: Any, marks: Any, places: list[Any] | None
    ) -> None:
        """Remember the bytes that determine the key of messages, if all have the same key."""
        if places is None or not len(rows):
            return
        thing, frame, self._mark = int(things[0]), int(frames[0]), int(marks[0])
        if min(thing, frame, self._mark) >= 0 and all(
            (numbers == numbers[0]).all() for numbers in (things, frames, marks)
        ):
            self._signature = Signature(rows, places, [(thing, frame, slice(None))])

    def _follow(self, cursor: Cursor) -> tuple[Any, Any, Any, list[tuple[int, int]] | None]:
        """Return things, frames, marks, and the offsets of the bytes they depend on, if fixed."""
        import numpy as np

        things: Any = np.zeros(len(cursor.rows), np.int64)
        marks = np.zeros(len(cursor.rows), np.int64)
        frames: list[Any] = []
        places: list[Any] | None = [(0, 2)] if cursor.encoding.prefix else []
        for step in self.recipe.steps:
            if step.kind == "fixed":
                cursor.fixed_part(step.description)
                continue
            if step.kind == "numbers":
                cursor.array(step.description)
                places = None
                continue
            if step.kind == "strings":
                count = step.description[1][1] if step.description[0] == 3 else cursor.length()
                begin = cursor.at
                cursor.strings(count)
                if step.path == self.recipe.thing:
                    size = cursor.at - begin
                    marks = self.orders.numbers(cursor, begin, size)
                    things = self._things_of(marks, cursor.encoding)
            else:
                begin, size = cursor.string()
                if step.path == self.recipe.thing:
                    things = self.things.numbers(cursor, begin, size)
                elif step.path in self.recipe.frames:
                    frames.append(self.texts.numbers(cursor, begin, size))
            if places is not None and isinstance(cursor.at, int):
                places.append((begin - 4 * (step.description[0] != 3), cursor.at))
            else:
                places = None
        things = np.where(cursor.good, things, NOT_FOLLOWED)
        return things, self.pairs.numbers(frames, len(cursor.rows)), marks, places

    def _things_of(self, orders: Any, encoding: Encoding) -> Any:
        """Return the sets of joints for orders of their names."""
        import numpy as np

        for text in self.orders.all[len(self.thing_of) :]:
            names = _names_in(text, encoding)
            self.joints.append(names)
            self.spend(len(names))
            encoded = sorted(name.encode("utf-8", "surrogateescape") for name in names)
            self.thing_of.append(self.things.number(b"\0".join(encoded)))
        table = np.array([*self.thing_of, NOT_FOLLOWED, TOO_MANY], np.int64)
        return table[orders]  # indices -2 and -1 are the last two entries

    def frame_texts(self, frame: int) -> tuple[str, ...]:
        """Return the strings of a key, such as the frame and the child frame of an odometry."""
        return tuple(self.texts.text(number) for number in self.pairs.all[frame])


def _names_in(block: bytes, encoding: Encoding) -> tuple[str, ...]:
    """Return the strings of an array from the bytes of all of them."""
    names: list[str] = []
    at, width = 0, min(4, encoding.aligned)
    while at < len(block):
        at += -at % width
        size = int.from_bytes(block[at : at + 4], "big" if encoding.order == ">" else "little")
        text = block[at + 4 : at + 4 + size]
        at += 4 + size
        names.append(
            (text[:-1] if encoding.terminated else text).decode("utf-8", "surrogateescape")
        )
    return tuple(names)
