"""Offsets of the numbers in types of ROS messages that always take the same bytes.

Such a part of a message is laid out once and used wherever it occurs, so an array of a million
poses takes no longer than one pose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MOST_ELEMENTS = 2048  # longer arrays are pictures and clouds, not channels
MOST_NUMBERS = 1 << 17  # channels per message

_SIZES = {"bool": 1, "byte": 1, "char": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2}
_SIZES |= {"int32": 4, "uint32": 4, "float32": 4, "int64": 8, "uint64": 8, "float64": 8}
_DTYPES = {"bool": "?", "byte": "u1", "char": "u1", "int8": "i1", "uint8": "u1", "int16": "i2"}
_DTYPES |= {"uint16": "u2", "int32": "i4", "uint32": "u4", "float32": "f4", "int64": "i8"}
_DTYPES |= {"uint64": "u8", "float64": "f8"}
_WIDTHS = {dtype: _SIZES[name] for name, dtype in _DTYPES.items()}
_DEEPEST = 32  # levels of nested messages
_BASE, _NAME, _ARRAY = 1, 2, 3  # rosbags' Nodetype; other values are sequences
PLACEHOLDER = "structure_needs_at_least_one_member"  # the field of a message without fields


class CannotDecode(Exception):
    """The reason why messages of a type, or one message, cannot be read."""


@dataclass(frozen=True)
class Encoding:
    """The rules by which messages are laid out."""

    name: str
    aligned: int  # the widest alignment; 1: no alignment
    prefix: int  # bytes before the first field; alignment counts from there
    order: str  # "<" or ">"
    terminated: bool  # whether string lengths include the final zero


@dataclass(frozen=True)
class Run:
    """Consecutive numbers of one dtype, which become consecutive channels."""

    offset: int
    dtype: str
    column: int  # of the first number
    count: int


class Runs:
    """A list of runs under construction; adjacent runs are merged."""

    def __init__(self) -> None:
        self.made: list[Run] = []
        self.columns = 0

    def add(self, offset: int, dtype: str, count: int) -> None:
        self._append(offset, dtype, count)
        if self.columns > MOST_NUMBERS:
            raise CannotDecode(f"a message has more than {MOST_NUMBERS:,} numbers")

    def add_part(self, offset: int, part: Part) -> None:
        for run in part.runs:
            self.add(offset + run.offset, run.dtype, run.count)

    def _append(self, offset: int, dtype: str, count: int) -> None:
        last = self.made[-1] if self.made else None
        if last and last.dtype == dtype:
            width = _WIDTHS[dtype.lstrip("<>")]
            if last.offset + width * last.count == offset:
                self.made[-1] = Run(last.offset, dtype, last.column, last.count + count)
                self.columns += count
                return
        self.made.append(Run(offset, dtype, self.columns, count))
        self.columns += count


@dataclass(frozen=True)
class Part:
    """Fields that take the same bytes in all messages, including their alignment."""

    size: int
    runs: tuple[Run, ...] = ()
    too_long: tuple[tuple[str, str], ...] = ()  # arrays that are not channels: name, reason


class FixedLayouts:
    """Parts by type, for one encoding."""

    def __init__(self, types: Mapping[str, Any], encoding: Encoding) -> None:
        self.types, self.encoding = types, encoding
        self._fixed: dict[str, bool] = {}
        self._numbers: dict[tuple[str, int], Part] = {}
        self._messages: dict[tuple[str, int], Part | CannotDecode] = {}

    def fields(self, name: str) -> list[Any]:
        """Return the fields of a type as they are serialized.

        In CDR, a message without fields takes one byte, which its definition may not show. In
        ROS 1 it takes none, and definitions for ROS 2 show one.
        """
        fields: list[Any] = self.types[name][1]
        if self.encoding.name == "ros1":
            return [field for field in fields if field[0] != PLACEHOLDER]
        return fields or [(PLACEHOLDER, (_BASE, ("uint8", 0)))]

    def has(self, description: Any, depth: int = 0) -> bool:
        """Whether everything that a description allows takes the same bytes."""
        kind, what = description[0], description[1]
        if kind == _BASE:
            return what[0] in _SIZES
        if kind == _ARRAY:
            return self.has(what[0], depth)
        return kind == _NAME and self._has_message(what, depth)

    def _has_message(self, name: str, depth: int) -> bool:
        known = self._fixed.get(name)
        if known is None:
            self._fixed[name] = False  # if it contains itself
            known = name in self.types and depth < _DEEPEST
            known = known and all(
                self.has(description, depth + 1) for _, description in self.fields(name)
            )
            self._fixed[name] = known
        return known

    def steps(self, description: Any, depth: int = 0) -> list[Any] | None:
        """Return the fields of an element in order: None for a string, else parts.

        The result is None if an element contains arrays without a fixed length or unknown types.
        """
        if self.has(description):
            return [description]
        kind, what = description[0], description[1]
        if kind == _BASE:
            return [None] if what[0] == "string" else None
        if kind != _NAME or what not in self.types or depth > _DEEPEST:
            return None
        made: list[Any] = []
        for _, inner in self.fields(what):
            steps = self.steps(inner, depth + 1)
            if steps is None or len(made) > MOST_ELEMENTS:
                return None
            made += steps
        return made

    def part(self, description: Any, phase: int) -> Part:
        """Return the part that begins ``phase`` bytes after an aligned offset."""
        kind, what = description[0], description[1]
        if kind == _BASE:
            known = self._numbers.get((what[0], phase))
            if known is None:
                known = self._numbers[what[0], phase] = self.numbers(what[0], 1, phase)
            return known
        if kind == _ARRAY:
            return self._array(what[0], what[1], phase)
        return self._message(what, phase)

    def numbers(self, name: str, count: int, phase: int) -> Part:
        """Return the part for one number, or an array of numbers."""
        if count == 0:
            return Part(0)
        size = _SIZES[name]
        skipped = -phase % min(size, self.encoding.aligned)
        if count > MOST_ELEMENTS:
            return Part(skipped + size * count, (), (("", f"array of {count:,} {name}"),))
        if name == "byte" and self.encoding.name == "ros1":
            name = "int8"  # signed, unlike in ROS 2
        dtype = self.encoding.order + _DTYPES[name] if size > 1 else _DTYPES[name]
        return Part(skipped + size * count, (Run(skipped, dtype, 0, count),))

    def _message(self, name: str, phase: int) -> Part:
        known = self._messages.get((name, phase))
        if known is None:
            try:
                known = self._build(name, phase)
            except CannotDecode as error:
                known = error
            self._messages[name, phase] = known
        if isinstance(known, CannotDecode):
            raise CannotDecode(str(known))
        return known

    def _build(self, name: str, phase: int) -> Part:
        at, runs, too_long = 0, Runs(), []
        for field, description in self.fields(name):
            part = self.part(description, (phase + at) % self.encoding.aligned)
            if field != PLACEHOLDER:
                runs.add_part(at, part)
            too_long += [(f".{field}{path}", reason) for path, reason in part.too_long]
            at += part.size
            if len(too_long) > MOST_ELEMENTS:
                raise CannotDecode(f"{name} has more than {MOST_ELEMENTS:,} long arrays")
        return Part(at, tuple(runs.made), tuple(too_long))

    def _array(self, inner: Any, count: int, phase: int) -> Part:
        if inner[0] == _BASE:
            return self.numbers(inner[1][0], count, phase)
        size = self.extent(inner, count, phase)
        if count > MOST_ELEMENTS:
            return Part(size, (), (("", f"array of {count:,} {name_of(inner)}"),))
        at, runs = 0, Runs()
        too_long: tuple[tuple[str, str], ...] = ()
        for _ in range(count):
            part = self.part(inner, (phase + at) % self.encoding.aligned)
            runs.add_part(at, part)
            too_long = part.too_long
            at += part.size
        return Part(size, tuple(runs.made), tuple((f"[]{path}", why) for path, why in too_long))

    def extent(self, inner: Any, count: int, phase: int) -> int:
        """Return the bytes of an array. The alignment of its elements is periodic."""
        if inner[0] == _BASE:
            size: int = _SIZES[inner[1][0]]
            return count and -phase % min(size, self.encoding.aligned) + size * count
        at = 0
        seen: dict[int, int] = {}  # the first element with an alignment
        ends: list[int] = []  # of the elements
        aligned = self.encoding.aligned
        for i in range(count):
            now = (phase + at) % aligned
            if now in seen:
                first = seen[now]
                begin = ends[first - 1] if first else 0
                rounds, more = divmod(count - first, i - first)
                rest = ends[first + more - 1] - begin if more else 0
                return begin + rounds * (at - begin) + rest
            seen[now] = i
            at += self.part(inner, now).size
            ends.append(at)
        return at

    def names(self, description: Any, path: str) -> Iterator[str]:
        """Yield the names of the channels of a part, in order."""
        kind, what = description[0], description[1]
        if kind == _BASE:
            yield path
        elif kind == _ARRAY:
            yield from self.names_of_elements(what[0], what[1], path)
        else:
            for field, inner in self.fields(what):
                if field != PLACEHOLDER:
                    yield from self.names(inner, f"{path}.{field}")

    def names_of_elements(self, inner: Any, count: int, path: str) -> Iterator[str]:
        if count <= MOST_ELEMENTS:
            for i in range(count):
                yield from self.names(inner, f"{path}[{i}]")


def name_of(description: Any) -> str:
    """Return the name of a type for messages to the user."""
    kind, what = description[0], description[1]
    if kind == _BASE:
        return str(what[0])
    return str(what) if kind == _NAME else "arrays"


def element_of(description: Any) -> Any:
    """Return the description of the elements of (nested) arrays; else the description."""
    while description[0] not in (_BASE, _NAME):
        description = description[1][0]
    return description


def basic_fields(
    types: Mapping[str, Any], typename: str, passed: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield name and basic type of the fields of a type and its nested types.

    Arrays have the type of their elements. ``passed`` is a field of the first type to skip.
    """
    seen, left = set[str](), [typename]
    while left:
        name = left.pop()
        if name in seen or name not in types:
            continue
        seen.add(name)
        for field, description in types[name][1]:
            kind, what = element_of(description)
            if kind == _BASE:
                yield field, what[0]
            elif name != typename or field != passed:
                left.append(what)
