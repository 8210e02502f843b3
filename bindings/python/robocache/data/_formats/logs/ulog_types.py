"""The formats of messages in a ULog file: their numbers, texts and quaternions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..._kinds.kinds import Said
from .layouts import Column, Layout

_DTYPES = {
    "int8_t": "<i1",
    "uint8_t": "<u1",
    "int16_t": "<i2",
    "uint16_t": "<u2",
    "int32_t": "<i4",
    "uint32_t": "<u4",
    "int64_t": "<i8",
    "uint64_t": "<u8",
    "float": "<f4",
    "double": "<f8",
    "bool": "?",
    "char": "S1",
}
_SIZES = {name: int(dtype[-1]) for name, dtype in _DTYPES.items() if dtype != "?"} | {"bool": 1}
_FIELD = re.compile(r"([A-Za-z_]\w*)(?:\[(\d{1,5})\])? ([A-Za-z_]\w*)")
_NAME = re.compile(r"[A-Za-z_][\w/-]*")
_LARGEST = (1 << 16) - 1  # bytes of a message
_MOST = 1 << 17  # fields and elements of a message
_DEEPEST = 16  # levels of nested types
_QUATERNIONS = ("q", "q_d", "q_offset", "delta_q_reset")  # in PX4's messages, all with w first


class CannotLayOut(Exception):
    """Why messages of a type cannot be read; the end of a sentence."""


@dataclass(frozen=True)
class Field:
    """A field of a format."""

    name: str
    type: str
    count: int | None  # of an array


@dataclass(frozen=True)
class Parts:
    """The fields of the messages of a topic."""

    layout: Layout
    texts: tuple[str, ...]  # names of fields of characters
    said: tuple[Said, ...]


class Formats:
    """The formats that a file defines, by name."""

    def __init__(self) -> None:
        self.known: dict[str, tuple[Field, ...]] = {}
        self.sizes_of: dict[str, tuple[int, int]] = {}
        self.left = 0

    def add(self, content: bytes) -> str:
        """Add a definition; return what is wrong with it, or ""."""
        text = content.decode("utf-8", "backslashreplace")
        name, colon, rest = text.partition(":")
        matches = [_FIELD.fullmatch(part) for part in rest.split(";") if part]
        if not colon or not _NAME.fullmatch(name) or not all(matches):
            return f"is a format that cannot be read: {text[:60]!r}"
        fields = tuple(
            Field(found[3], found[1], int(found[2]) if found[2] else None)
            for found in matches
            if found is not None
        )
        if self.known.setdefault(name, fields) != fields:
            return f"defines the format {name} a second time, and differently"
        return ""

    def sizes(self, topic: str) -> tuple[int, int]:
        """Return the least and the most bytes of a message: padding at its end may be missing."""
        if topic not in self.sizes_of:
            fields = self._fields(topic)
            end = len(fields)
            while end and fields[end - 1].name.startswith("_padding"):
                end -= 1
            self.left = _MOST
            least = sum(self._size(field, 0) for field in fields[:end])
            most = least + sum(self._size(field, 0) for field in fields[end:])
            if not 0 < least <= most <= _LARGEST - 2:
                raise CannotLayOut(f"whose messages would have {most:,} bytes")
            self.sizes_of[topic] = least, most
        return self.sizes_of[topic]

    def layout(self, topic: str) -> Parts:
        """Return the numbers of a topic's messages, and what else they have."""
        self.left = _MOST
        least, _ = self.sizes(topic)
        columns: list[Column] = []
        texts: dict[str, None] = {}
        time = None
        for name, field, offset in self._flat("", topic, 0, 0):
            if offset + _SIZES[field.type] > least or "_padding" in name:
                continue
            if field.type == "char":
                texts[name.partition("[")[0] if field.count else name] = None
            elif name == "timestamp" and field.type == "uint64_t":
                time = Column(name, offset, _DTYPES[field.type])
            else:
                columns.append(Column(name, offset, _DTYPES[field.type]))
        return Parts(Layout(columns, least, time), tuple(texts), _quaternions(columns))

    def _fields(self, name: str) -> tuple[Field, ...]:
        if name not in self.known:
            raise CannotLayOut(f"but no format defines {name!r}")
        return self.known[name]

    def _size(self, field: Field, depth: int) -> int:
        self._spend(depth)
        size = _SIZES.get(field.type)
        if size is None:
            size = sum(self._size(inner, depth + 1) for inner in self._fields(field.type))
        return size * (1 if field.count is None else field.count)

    def _spend(self, depth: int) -> None:
        self.left -= 1
        if self.left < 0 or depth > _DEEPEST:
            raise CannotLayOut("which is nested too deeply, or has too many fields")

    def _flat(
        self, prefix: str, topic: str, offset: int, depth: int
    ) -> Iterator[tuple[str, Field, int]]:
        """Yield each number of a format with its name and offset."""
        for field in self._fields(topic):
            size = self._size(field, depth) // max(1, 1 if field.count is None else field.count)
            for i in range(1 if field.count is None else field.count):
                self._spend(depth)
                name = prefix + field.name + ("" if field.count is None else f"[{i}]")
                if field.type in _SIZES:
                    yield name, field, offset
                else:
                    yield from self._flat(f"{name}.", field.type, offset, depth + 1)
                offset += size


def _quaternions(columns: list[Column]) -> tuple[Said, ...]:
    """Return the quaternions of PX4's messages."""
    known = {column.name: column.dtype for column in columns}
    found = []
    for name in known:
        base = name.removesuffix("[0]")
        if base == name or base.rpartition(".")[2] not in _QUATERNIONS:
            continue
        four = tuple(f"{base}[{i}]" for i in (1, 2, 3, 0))
        if f"{base}[4]" in known or any(known.get(part, "") not in ("<f4", "<f8") for part in four):
            continue
        found.append(Said("quaternion", four, f"field {base} of PX4, w first"))
    return tuple(found)
