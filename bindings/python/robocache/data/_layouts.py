"""Where the numbers of a message lie in its bytes, so that many are read with one NumPy dtype.

CDR (ROS 2) and ROS 1 put fields one after the other. Only strings and arrays without a fixed length
move what follows, so all messages whose lengths agree with those of one of them have its layout.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

MOST_ELEMENTS = 2048  # longer arrays are pictures and clouds, not channels

_SIZES = {"bool": 1, "byte": 1, "char": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2}
_SIZES |= {"int32": 4, "uint32": 4, "float32": 4, "int64": 8, "uint64": 8, "float64": 8}
_DTYPES = {"bool": "?", "byte": "u1", "char": "u1", "int8": "i1", "uint8": "u1", "int16": "i2"}
_DTYPES |= {"uint16": "u2", "int32": "i4", "uint32": "u4", "float32": "f4", "int64": "i8"}
_DTYPES |= {"uint64": "u8", "float64": "f8"}
_DEEPEST = 32  # messages within messages
_MOST_EMPTY = 10_000  # fields that take no byte
_BASE, _NAME, _ARRAY = 1, 2, 3  # rosbags' Nodetype; what is left is a sequence
_TIME = "builtin_interfaces/msg/Time"
_PLACEHOLDER = "structure_needs_at_least_one_member"  # what a message without fields has


class CannotDecode(Exception):
    """The reason why messages of a type, or one message, cannot be read."""


@dataclass(frozen=True)
class Encoding:
    """How messages are laid out."""

    name: str
    aligned: int  # the widest alignment; 1: fields follow one another
    prefix: int  # bytes before the first field, of which alignment does not count
    order: str  # "<" or ">"
    terminated: bool  # strings count their final zero


ROS1 = Encoding("ros1", aligned=1, prefix=0, order="<", terminated=False)
_CDR = {
    0x0000: Encoding("cdr", aligned=8, prefix=4, order=">", terminated=True),
    0x0001: Encoding("cdr", aligned=8, prefix=4, order="<", terminated=True),
    0x0006: Encoding("cdr2", aligned=4, prefix=4, order=">", terminated=True),
    0x0007: Encoding("cdr2", aligned=4, prefix=4, order="<", terminated=True),
}


def cdr_of(message: bytes) -> Encoding:
    """The kind of CDR that the first bytes of a message tell."""
    kind = int.from_bytes(message[:2], "big")
    if len(message) < 4 or kind not in _CDR:
        raise CannotDecode(
            f"its messages begin with {message[:4].hex() or 'nothing'}: no plain CDR"
        )
    return _CDR[kind]


@dataclass(frozen=True)
class Run:
    """Numbers of one dtype, one after the other."""

    offset: int
    dtype: str
    names: tuple[str, ...]  # of the channels


@dataclass
class Layout:
    """Of one message, and of all with its size and its lengths of strings and arrays."""

    size: int = 0
    order: str = "<"
    lengths: list[tuple[int, int]] = field(default_factory=list)  # where one stands, what it is
    runs: list[Run] = field(default_factory=list)
    strings: list[tuple[str, int, int]] = field(default_factory=list)  # name, offset, bytes
    arrays: dict[str, int] = field(default_factory=dict)  # of no fixed length: elements by name
    stamp: int | None = None  # where header.stamp is, or stamp
    too_long: dict[str, str] = field(default_factory=dict)  # arrays that are no channels: why

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for run in self.runs for name in run.names)


def layout_of(message: bytes, typename: str, types: dict[str, Any], encoding: Encoding) -> Layout:
    """Follow one message through its definition."""
    walk = _Walk(message, types, encoding)
    try:
        walk.message(typename, "")
    except struct.error:
        raise CannotDecode(f"a message of {len(message)} bytes ends within a field") from None
    # CDR may pad the end to 4 bytes.
    left = len(message) - walk.at
    if left < 0 or left > (3 if encoding.prefix else 0):
        raise CannotDecode(f"a message has {len(message)} bytes, its definition {walk.at}")
    walk.layout.size = len(message)
    walk.layout.runs = _joined(walk.layout.runs)
    return walk.layout


class _Walk:
    def __init__(self, message: bytes, types: dict[str, Any], encoding: Encoding) -> None:
        self.bytes, self.types, self.encoding = message, types, encoding
        self.at = encoding.prefix
        self.layout = Layout(order=encoding.order)
        self.u32 = struct.Struct(f"{encoding.order}I")
        # A number takes a byte at least, and is as deep as messages may be; others take none.
        self.left = (_DEEPEST + 2) * len(message) + _MOST_EMPTY
        if encoding.prefix:  # the kind of CDR, which has to be the same
            self.layout.lengths.append((0, self.u32.unpack_from(message, 0)[0]))

    def align(self, size: int) -> None:
        width = min(size, self.encoding.aligned)
        self.at += -(self.at - self.encoding.prefix) % width

    def message(self, typename: str, path: str, depth: int = 0) -> None:
        if typename not in self.types:
            raise CannotDecode(f"no definition of {typename}")
        if depth > _DEEPEST:
            raise CannotDecode(f"{typename} contains itself")
        for name, description in self.types[typename][1]:
            inner = f"{path}.{name}" if path else name
            self.field(inner, description, depth)

    def field(self, path: str, description: Any, depth: int) -> None:
        kind, what = int(description[0]), description[1]
        self.left -= 1
        if self.left < 0:
            raise CannotDecode(f"{path} has too many fields without content")
        if kind == _BASE:
            self.base(path, what[0], 1, [path])
        elif kind == _NAME:
            if what == _TIME and path in ("header.stamp", "stamp"):
                self.align(4)
                self.layout.stamp = self.at
                self.skip(8)
            else:
                self.message(what, path, depth + 1)
        elif kind == _ARRAY:
            inner, count = what
            self.elements(path, inner, count, depth)
        else:
            count = self.length()
            self.layout.arrays[path] = count
            self.elements(path, what[0], count, depth)

    def elements(self, path: str, inner: Any, count: int, depth: int) -> None:
        if int(inner[0]) == _BASE and inner[1][0] != "string":
            self.base(path, inner[1][0], count, None)
            return
        if count > len(self.bytes):
            raise CannotDecode(f"{path} says that it has {count} elements")
        for i in range(count):
            self.field(f"{path}[{i}]", inner, depth)

    def base(self, path: str, name: str, count: int, names: list[str] | None) -> None:
        """One or more numbers, or a string."""
        if name == "string":
            size = self.length()
            terminated = self.encoding.terminated and size > 0
            self.layout.strings.append((path, self.at, size - terminated))
            self.skip(size)
            return
        if name == "byte" and self.encoding is ROS1:
            name = "int8"  # which ROS 2 has without a sign
        if name not in _SIZES:
            raise CannotDecode(f"{path} is a {name}, which is not read")
        if count == 0:
            return
        size = _SIZES[name]
        self.align(size)
        begin = self.at
        self.skip(size * count)
        if path.endswith(_PLACEHOLDER) or path == "header.seq":
            return
        if count > MOST_ELEMENTS:
            self.layout.too_long[path] = f"array of {count:,} {name}"
            return
        names = names or [f"{path}[{i}]" for i in range(count)]
        dtype = self.encoding.order + _DTYPES[name] if size > 1 else _DTYPES[name]
        self.layout.runs.append(Run(begin, dtype, tuple(names)))

    def length(self) -> int:
        self.align(4)
        value: int = self.u32.unpack_from(self.bytes, self.at)[0]
        self.layout.lengths.append((self.at, value))
        self.at += 4
        return value

    def skip(self, size: int) -> None:
        self.at += size
        if self.at > len(self.bytes):
            raise CannotDecode(f"a message of {len(self.bytes)} bytes ends within a field")


def _joined(runs: list[Run]) -> list[Run]:
    """Neighbours of one dtype as one."""
    joined: list[Run] = []
    for run in runs:
        last = joined[-1] if joined else None
        if last and last.dtype == run.dtype:
            width = _DTYPE_SIZES[last.dtype[-2:].strip("<>")]
            if last.offset + width * len(last.names) == run.offset:
                joined[-1] = Run(last.offset, last.dtype, last.names + run.names)
                continue
        joined.append(run)
    return joined


_DTYPE_SIZES = {dtype: _SIZES[name] for name, dtype in _DTYPES.items()}
