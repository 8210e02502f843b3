"""The offsets of the numbers in a message's bytes, so that many are read with one NumPy dtype.

CDR (ROS 2) and ROS 1 store fields one after the other. Only strings and arrays without a fixed
length move later fields, so messages that agree in all lengths have the same layout.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Callable, Generic, Literal, Protocol, TypeVar, Union

from .fixed_layouts import (
    MOST_ELEMENTS,
    PLACEHOLDER,
    CannotDecode,
    Encoding,
    FixedLayouts,
    Run,
    Runs,
    basic_fields,
    name_of,
)
from .pieces import Rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DEEPEST = 32  # levels of nested messages
_MOST_FIELDS = 1 << 18  # per message; parts of fixed size count as one
_BASE, _NAME, _ARRAY = 1, 2, 3  # rosbags' Nodetype; other values are sequences
_TIME = "builtin_interfaces/msg/Time"
_STAMPS = ("header.stamp", "stamp")
_APART = ("header", *_STAMPS)  # fields that are searched for a stamp
_WIDTHS_OF_WIDE = (4, 2, 1)  # Fast DDS and Cyclone; UTF-16; a count of bytes
_ODD = {
    "wstring": "a wide string (wstring)",
    "wchar": "a wide character (wchar)",
    "float128": "a number of 128 bits",
}

ROS1 = Encoding("ros1", aligned=1, prefix=0, order="<", terminated=False)
_CDR = {
    0x0000: Encoding("cdr", aligned=8, prefix=4, order=">", terminated=True),
    0x0001: Encoding("cdr", aligned=8, prefix=4, order="<", terminated=True),
    0x0006: Encoding("cdr2", aligned=4, prefix=4, order=">", terminated=True),
    0x0007: Encoding("cdr2", aligned=4, prefix=4, order="<", terminated=True),
}


def encodings(head: bytes, ros1: bool) -> Encoding | None:
    """Return the encoding of messages by their first bytes; None if it is not known."""
    return ROS1 if ros1 else _CDR.get(int.from_bytes(head[:2], "big"))


@dataclass
class Layout:
    """The layout of messages with the same size and the same lengths of strings and arrays."""

    size: int
    order: str = "<"
    lengths: list[tuple[int, str, int]] = field(default_factory=list)  # offset, dtype, value
    runs: list[Run] = field(default_factory=list)
    strings: list[tuple[str, int, int]] = field(default_factory=list)  # name, offset, bytes
    arrays: dict[str, int] = field(default_factory=dict)  # without a fixed length: elements by name
    stamp: int | None = None  # offset of header.stamp, or stamp
    too_long: dict[str, str] = field(default_factory=dict)  # reasons, of arrays without channels
    ros1: bool = False
    failure: str | None = None  # why such messages cannot be read


class Layouts:
    """Find the layouts of messages of one type.

    ``spend`` is called with the number of fields that were followed in a message.
    """

    def __init__(
        self,
        typename: str,
        types: Mapping[str, Any],
        ros1: bool,
        spend: Callable[[int], None] = lambda fields: None,
    ) -> None:
        self.typename, self.types, self.ros1, self.spend = typename, types, ros1, spend
        self._fixed: dict[Encoding, FixedLayouts] = {}
        # Bytes of a wide character: DDS implementations differ, and messages do not say.
        self._wide: tuple[int, ...] = (
            _WIDTHS_OF_WIDE if _has_wide(typename, types) else _WIDTHS_OF_WIDE[:1]
        )

    def layout_of(self, message: bytes, kept: Mapping[str, int] | None = None) -> Layout:
        """Follow one message through its definition.

        ``kept`` has the number of elements that are channels, by name of an array without a fixed
        length; None: all. A layout with ``failure`` is of messages that cannot be read.
        """
        return self._best(message, kept, None).layout

    def names(self, message: bytes, varying: Collection[str]) -> tuple[list[str], dict[str, int]]:
        """Return the channels of a readable message, and ``kept`` for messages like it.

        ``varying`` are the names of arrays that are not channels.
        """
        names: list[str] = []
        walk = self._best(message, dict.fromkeys(varying, 0), names)
        return names, walk.chosen

    def _best(
        self, message: bytes, kept: Mapping[str, int] | None, names: list[str] | None
    ) -> _Walk:
        """Follow a message with the size of wide characters that fits it.

        The size is remembered: messages that only one size fits decide for later messages.
        """
        if len(self._wide) == 1:
            return self._walked(message, kept, names, self._wide[0])
        found = []
        for width in self._wide:
            own: list[str] | None = None if names is None else []
            walk = self._walked(message, kept, own, width)
            found.append((width, walk, own))
        fit = [each for each in found if each[1].layout.failure is None and each[1].is_padded]
        if not fit:
            return found[0][1]
        self._wide = tuple(width for width, _, _ in fit)
        _, walk, own = fit[0]
        if names is not None:
            names += own or []
        layout = walk.layout
        if any(
            (other.layout.runs, other.layout.stamp) != (layout.runs, layout.stamp)
            for _, other, _ in fit[1:]
        ):
            widths = " or ".join(str(width) for width, _, _ in fit)
            layout.failure = (
                f"their wide strings may have {widths} bytes per character, and the messages do "
                "not say which; numbers follow these strings"
            )
        return walk

    def _walked(
        self,
        message: bytes,
        kept: Mapping[str, int] | None,
        names: list[str] | None,
        wide: int,
    ) -> _Walk:
        walk = _Walk(message, self.types, kept, names, wide)
        try:
            encoding = walk.begin(self.ros1)
            if encoding not in self._fixed:
                self._fixed[encoding] = FixedLayouts(self.types, encoding)
            walk.follow(self.typename, encoding, self._fixed[encoding])
        except CannotDecode as error:
            walk.layout.failure = str(error)
        except struct.error:
            walk.layout.failure = walk.ends()
        self.spend(_MOST_FIELDS - walk.left)
        return walk


def _has_wide(typename: str, types: Mapping[str, Any]) -> bool:
    """Whether messages of a type, or nested in it, have wide strings."""
    return any(name in ("wstring", "wchar") for _, name in basic_fields(types, typename))


class _Walk:
    """Follow one message. The result depends only on the message's size and lengths."""

    def __init__(
        self,
        message: bytes,
        types: Mapping[str, Any],
        kept: Mapping[str, int] | None,
        names: list[str] | None,
        wide: int = 4,
    ) -> None:
        self.bytes, self.types, self.wide = message, types, wide
        self.where = ""  # the current field
        self.kept, self.names = kept, names
        self.chosen: dict[str, int] = {}  # elements that are channels, by name of an array
        self.layout = Layout(len(message))
        self.runs = Runs()
        self.left = _MOST_FIELDS

    def begin(self, ros1: bool) -> Encoding:
        """Return the encoding, which the first bytes of CDR state."""
        self.layout.ros1 = ros1
        if ros1:
            return ROS1
        kind = int.from_bytes(self.bytes[:2], "big")
        if len(self.bytes) >= 4:
            self.layout.lengths.append((0, "<u4", int.from_bytes(self.bytes[:4], "little")))
        if len(self.bytes) < 4 or kind not in _CDR:
            start = self.bytes[:4].hex() or "nothing"
            raise CannotDecode(f"they begin with {start}, which is not a CDR header")
        return _CDR[kind]

    def follow(self, typename: str, encoding: Encoding, fixed: FixedLayouts) -> None:
        self.encoding, self.fixed = encoding, fixed
        self.at = encoding.prefix
        self.u32 = struct.Struct(f"{encoding.order}I")
        self.layout.order = encoding.order
        if self.types.get(typename, (None, (None,)))[1]:  # else the type has no fields
            self.message(typename, "", True, 0)
        # CDR may pad the end to 4 bytes.
        left = len(self.bytes) - self.at
        if left < 0 or left > (3 if encoding.prefix else 0):
            raise CannotDecode(
                f"each has {len(self.bytes):,} bytes, but by the definition of {typename} they "
                f"should have {self.at:,}. The definition in the bag may be of another version"
            )
        self.layout.runs = self.runs.made

    @property
    def is_padded(self) -> bool:
        """Whether the message ends with its last field, or with padding up to four bytes."""
        size = len(self.bytes)
        return self.at == size or (size - self.encoding.prefix) % 4 == 0

    @property
    def phase(self) -> int:
        return (self.at - self.encoding.prefix) % self.encoding.aligned

    def message(self, typename: str, path: str, keep: bool, depth: int) -> None:
        """Follow a nested message; ``keep``: its numbers are channels."""
        if typename not in self.types:
            raise CannotDecode(
                f"the type {typename}, which they contain, is not defined in the bag. "
                f"Pass its definition: --definition {typename}={typename.rpartition('/')[2]}.msg "
                "(in Python: definitions=)"
            )
        if depth > _DEEPEST:
            raise CannotDecode(f"{typename} contains itself")
        for name, description in self.fixed.fields(typename):
            inner = (f"{path}.{name}" if path else name) if keep else ""
            self.field(inner, description, keep and name != PLACEHOLDER, depth)

    def field(self, path: str, description: Any, keep: bool, depth: int) -> None:
        kind, what = description[0], description[1]
        self.where = path or self.where
        self.spend(1)
        if not (kind == _NAME and path in _APART) and self.fixed.has(description):
            self.part(path, description, keep)
        elif kind == _BASE:
            self.string(path, what[0], keep)
        elif kind == _NAME:
            if what == _TIME and path in _STAMPS:
                self.skip(-self.phase % min(4, self.encoding.aligned))
                self.layout.stamp = self.at
                self.skip(8)
            else:
                self.message(what, path, keep, depth + 1)
        elif kind == _ARRAY:
            inner, count = what
            self.elements(path, inner, count, count if keep else 0, depth)
        else:
            count = self.length()
            self.elements(path, what[0], count, self.choose(path, count) if keep else 0, depth)

    def choose(self, path: str, count: int) -> int:
        """Return how many elements of an array without a fixed length are channels."""
        self.layout.arrays[path] = count
        if self.names is None and self.kept is not None:
            chosen = self.kept.get(path, 0)
            if count < chosen:
                raise CannotDecode(f"they have no {path}[{count}], which the first messages have")
        else:
            chosen = 0 if self.kept and path in self.kept or count > MOST_ELEMENTS else count
        self.chosen[path] = chosen
        return chosen

    def part(self, path: str, description: Any, keep: bool) -> None:
        part = self.fixed.part(description, self.phase)
        begin = self.at
        self.skip(part.size)
        if not keep or path == "header.seq":
            return
        self.runs.add_part(begin, part)
        for inner, reason in part.too_long:
            self.layout.too_long[path + inner] = reason
        if self.names is not None:
            self.names += self.fixed.names(description, path)

    def elements(self, path: str, inner: Any, count: int, chosen: int, depth: int) -> None:
        """Follow the elements of an array. The first ``chosen`` are channels."""
        if count > MOST_ELEMENTS and path:
            self.layout.too_long[path] = f"array of {count:,} {name_of(inner)}"
            chosen = min(chosen, MOST_ELEMENTS) if path in self.chosen else 0
        if not self.fixed.has(inner):
            if count > len(self.bytes):
                raise CannotDecode(f"{path or 'an array'} claims to have {count} elements")
            for i in range(chosen):
                self.field(f"{path}[{i}]", inner, True, depth)
            if count > chosen:
                self.pass_over(inner, count - chosen, depth)
            return
        begin, phase = self.at, self.phase
        self.skip(self.fixed.extent(inner, count, phase))
        if inner[0] == _BASE:
            part = self.fixed.numbers(inner[1][0], chosen, phase)
            self.runs.add_part(begin, part)
        else:
            for _ in range(chosen):
                part = self.fixed.part(inner, phase)
                self.runs.add_part(begin, part)
                begin += part.size
                phase = (phase + part.size) % self.encoding.aligned
            for inner_path, reason in part.too_long if chosen else ():
                self.layout.too_long[f"{path}[]{inner_path}"] = reason
        if self.names is not None:
            self.names += self.fixed.names_of_elements(inner, chosen, path)

    def pass_over(self, inner: Any, count: int, depth: int) -> None:
        """Skip elements of various sizes that are not channels."""
        steps = self.fixed.steps(inner)
        if steps is None:  # the elements contain arrays without a fixed length
            for _ in range(count):
                self.field("", inner, False, depth)
            return
        self.spend(len(steps) * count)
        message, order, lengths = self.bytes, f"{self.encoding.order}u4", self.layout.lengths
        read, part = self.u32.unpack_from, self.fixed.part
        at, prefix, aligned = self.at, self.encoding.prefix, self.encoding.aligned
        width = min(4, aligned)
        for _ in range(count):
            for step in steps:
                if step is None:  # a string
                    at += -(at - prefix) % width
                    (size,) = read(message, at)
                    lengths.append((at, order, size))
                    at += 4 + size
                else:
                    at += part(step, (at - prefix) % aligned).size
        self.at = at
        self.skip(0)

    def spend(self, fields: int) -> None:
        self.left -= fields
        if self.left < 0:
            self.left = 0
            raise CannotDecode(f"a message has more than {_MOST_FIELDS:,} fields of any length")

    def string(self, path: str, name: str, keep: bool) -> None:
        if name != "string":
            self.odd(path, name, keep)
            return
        size = self.length()
        if keep:
            terminated = self.encoding.terminated and size > 0
            self.layout.strings.append((path, self.at, size - terminated))
        self.skip(size)

    def odd(self, path: str, name: str, keep: bool) -> None:
        """Skip a field of a type that NumPy or this reader lacks."""
        if name == "wstring":
            self.skip(self.wide * self.length())
        elif name == "wchar":
            self.skip(-self.phase % self.wide + self.wide)
        elif name == "float128":
            self.skip(-self.phase % min(8, self.encoding.aligned) + 16)
        else:
            raise CannotDecode(f"their field {path or self.where} is a {name}, which is not read")
        if keep and len(self.layout.too_long) < MOST_ELEMENTS:
            self.layout.too_long[path] = f"{_ODD[name]}, which is not read"

    def ends(self) -> str:
        """Describe a message that is too short."""
        return (
            f"a message ends ({len(self.bytes):,} bytes) before its field {self.where} is "
            "complete: the definition does not fit"
        )

    def length(self) -> int:
        self.skip(-self.phase % min(4, self.encoding.aligned))
        value: int = self.u32.unpack_from(self.bytes, self.at)[0]
        self.layout.lengths.append((self.at, f"{self.encoding.order}u4", value))
        self.at += 4
        return value

    def skip(self, size: int) -> None:
        self.at += size
        if self.at > len(self.bytes):
            raise CannotDecode(self.ends())


_MOST_LENGTHS = 1 << 12  # of a layout that is remembered
_MOST_REMEMBERED = 1 << 18  # lengths, runs and strings of all layouts
_ORDERS: dict[str, Literal["little", "big"]] = {"<u4": "little", ">u4": "big"}


class _HasLayout(Protocol):
    @property
    def layout(self) -> Layout: ...


Kind = TypeVar("Kind", bound=Union[Layout, _HasLayout])


class _Branch(Generic[Kind]):
    """Messages that agree in all lengths so far, and the offset of the next length."""

    def __init__(self, at: int, dtype: str) -> None:
        self.at, self.dtype = at, dtype
        self.next: dict[int, _Branch[Kind] | Kind] = {}


class LayoutTree(Generic[Kind]):
    """Layouts, or values built from them, by the lengths that lead to them."""

    def __init__(self) -> None:
        self.root: dict[int, _Branch[Kind] | Kind] = {}  # by the size of a message
        self.remembered = 0

    def sorted(
        self, rows: Rows, find: Callable[[bytes], Kind]
    ) -> Iterator[tuple[Kind, NDArray[np.int64]]]:
        """Yield layouts, each with the ascending indices of the messages that have it.

        ``find`` returns the layout of a message whose layout is not known yet.
        """
        import numpy as np

        if self.remembered > _MOST_REMEMBERED:
            self.root, self.remembered = {}, 0
        left = [
            (self.root, size, chosen) for size, chosen in _groups(rows.sizes, np.arange(len(rows)))
        ]
        while left:
            branches, value, chosen = left.pop()
            branch = branches.get(value)
            if branch is None:
                found = find(rows.message(int(chosen[0])))
                self._remember(found)
                branch = branches.get(value)
                if branch is None or len(chosen) == 1:
                    yield found, chosen[:1]
                    if len(chosen) > 1:
                        left.append((branches, value, chosen[1:]))
                    continue
            if not isinstance(branch, _Branch):
                yield branch, chosen
            elif len(chosen) == 1:
                at = int(rows.starts[chosen[0]]) + branch.at
                value = int.from_bytes(rows.data[at : at + 4].tobytes(), _ORDERS[branch.dtype])
                left.append((branch.next, value, chosen))
            else:
                values = rows.select(chosen).field(branch.at, branch.dtype)
                left += [(branch.next, *group) for group in _groups(values, chosen)]

    def _remember(self, found: Kind) -> None:
        layout = found if isinstance(found, Layout) else found.layout
        weight = len(layout.lengths) + len(layout.runs) + len(layout.strings) + 1
        if len(layout.lengths) > _MOST_LENGTHS or self.remembered > 2 * _MOST_REMEMBERED:
            return
        self.remembered += weight
        branches, value = self.root, layout.size
        for at, dtype, length in layout.lengths:
            branch = branches.get(value)
            if not isinstance(branch, _Branch):
                branch = branches[value] = _Branch(at, dtype)
            branches, value = branch.next, length
        branches[value] = found


def _groups(values: Any, chosen: Any) -> list[tuple[int, Any]]:
    """Return the distinct values, each with the chosen indices that have it."""
    import numpy as np

    if not len(values):
        return []
    first = values[0]
    if len(values) == 1 or (values == first).all():
        return [(int(first), chosen)]
    order = np.argsort(values, kind="stable")
    in_order = values[order]
    begins = np.flatnonzero(np.concatenate([[True], in_order[1:] != in_order[:-1]]))
    groups = np.split(chosen[order], begins[1:])
    return list(zip(in_order[begins].tolist(), groups))
