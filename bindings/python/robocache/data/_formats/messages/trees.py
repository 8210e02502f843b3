"""Messages that name their own fields, such as JSON, as columns.

Numbers become channels by their paths: ``position.x``, ``joints[0]``. The first messages decide on
the channels. A number that is missing in a message is NaN there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Callable, Protocol, Union

from ..._errors import messages_not_read, some
from ..._kinds.kinds import Said
from ..bags.unread import array_reason, count_reason, text_reason, varying_reason
from .columns import Columns
from .fixed_layouts import MOST_ELEMENTS, MOST_NUMBERS
from .pieces import Rows

Number = Union[bool, int, float]

MOST_FIELDS = 1 << 18  # per message
DEEPEST = 32  # levels of nested messages
_FIRST = 64  # messages that decide on the channels,
_FIRST_BYTES = 4 << 20  # or fewer large ones
_AT_ONCE = 1 << 20  # numbers
_MOST_TEXTS = 4  # values of a field that are shown
_MOST_NAMES = 1000  # fields that are listed as omitted
_LONGEST_TEXT = 1000  # characters of a text that is shown
_LONGEST_PATH = 1000  # characters
_EXACT = 2**53  # larger integers are not always exact in float64
# Texts that identify numbers: a frame, the name of an element, or an array of names.
_FRAME = re.compile(r"(?:.*\.)?(?:child_|parent_)?frame_id|(?:.*\.)?(?:f|childF|parentF)rameId")
_ELEMENT = re.compile(r".*\[\d+\]\.(?:name|joint_name|jointName)")
_NAMES = re.compile(r"((?:.*\.)?)((?:name|names|joint_names|jointNames))\[\d+\]")
_STAMPS = (("header", "stamp"), ("header", "timestamp"), ("stamp",), ("timestamp",))
_SECONDS = ("sec", "secs", "seconds")
_NANOSECONDS = ("nsec", "nsecs", "nanosec", "nanosecs", "nanos", "nanoseconds")
_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)\Z"
)


class CannotRead(ValueError):
    """A message cannot be read; the text ends a sentence that begins with "they"."""


@dataclass
class Tree:
    """The fields of one message, by their paths."""

    numbers: dict[str, Number] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)  # of arrays
    others: dict[str, str] = field(default_factory=dict)  # fields that are not channels: reasons
    stamp: int | None = None  # ns
    left: int = MOST_FIELDS  # fields that may still follow

    def spend(self, path: str) -> None:
        """Count one more field.

        Raises
        ------
        CannotRead
            There are too many fields.
        """
        self.left -= 1
        if self.left < 0 or len(self.numbers) > MOST_NUMBERS:
            raise CannotRead(f"have more than {min(MOST_FIELDS, MOST_NUMBERS):,} fields each")
        if len(path) > _LONGEST_PATH:
            raise CannotRead(f"have a field whose path is longer than {_LONGEST_PATH:,} characters")

    def add(self, path: str, value: Number) -> None:
        """Add a number. Two fields with the same path are not channels."""
        if path in self.numbers or path in self.others:
            self.numbers.pop(path, None)
            self.others[path] = "two fields have this path"
            return
        self.numbers[path] = value


class Reader(Protocol):
    """Finds the fields of a message."""

    turns: dict[str, str]  # paths of messages whose type is a quaternion, with the type

    def tree(self, content: bytes) -> Tree:
        """Return the fields of one message.

        Raises
        ------
        CannotRead
            The message is damaged, or too large.
        """

    def dtype(self, path: str) -> str | None:
        """Return the dtype of a number in the definition of the messages, or None."""


class TreeDecoder:
    """Decode one topic in pieces: see ``decoders.AnyDecoder``."""

    may_be_packed = False

    def __init__(self, typename: str, reader: Reader, spend: Callable[[int], None]) -> None:
        self.typename, self.reader, self.spend = typename, reader, spend
        self.names: tuple[str, ...] | None = None  # once known
        self.dtypes: list[str] = []  # of the channels
        self.places: dict[str, int] = {}  # of the channels
        self.arrays: tuple[str, ...] = ()  # prefixes of paths in arrays of changing length
        self.lengths: dict[str, tuple[int, int]] = {}
        self.kept: dict[str, int] = {}  # elements that are channels, by name of an array
        self.texts: dict[str, set[str] | None] = {}  # None: many
        self.numeric: set[str] = set()  # arrays with numbers that are not channels
        self.others: dict[str, str] = {}
        self.keys: dict[str, str | None] = {}  # the first text of a key; None: not a key
        self.missing: dict[str, int] = {}  # messages without a channel
        self.late: dict[str, int] = {}  # messages with a number that the first ones lack
        self.rounded: set[str] = set()
        self.failed: dict[str, int] = {}
        self.failed_bytes = 0
        self.stamped = False
        self.waiting: list[Rows] = []
        self.said: tuple[Said, ...] = ()  # kinds of channels by types of nested messages

    def begin(self) -> None:
        self.failed.clear()
        self.missing.clear()
        self.late.clear()
        self.failed_bytes = 0
        self.waiting.clear()

    def feed(self, rows: Rows) -> list[Columns]:
        if self.names is not None:
            return list(self._decoded(rows))
        self.waiting.append(rows.compact())
        if (
            sum(map(len, self.waiting)) >= _FIRST
            or sum(len(rows.data) for rows in self.waiting) >= _FIRST_BYTES
        ):
            return self.flush()
        return []

    def flush(self) -> list[Columns]:
        waiting, self.waiting = self.waiting, []
        if self.names is None and not self._decide(waiting):
            return []
        return [columns for rows in waiting for columns in self._decoded(rows)]

    # ---- decisions by the first messages --------------------------------------------------------

    def _decide(self, waiting: list[Rows]) -> bool:
        """Determine the channels from the first messages; False if none can be read."""
        trees: list[Tree] = []
        failed: dict[str, list[int]] = {}
        for rows in waiting:
            for i in range(len(rows)):
                if len(trees) >= _FIRST:
                    break  # if none can be read, all are examined
                try:
                    trees.append(self._tree(rows.message(i)))
                except CannotRead as error:
                    failed.setdefault(f"they {error}", []).append(int(rows.sizes[i]))
        if not trees:
            import numpy as np

            for reason, sizes in failed.items():
                self.fail(reason, np.array(sizes))
            return False
        lengths: dict[str, set[int]] = {}
        counts: dict[str, int] = {}
        for tree in trees:
            for path, count in tree.lengths.items():
                lengths.setdefault(path, set()).add(count)
            for path in tree.numbers:
                counts[path] = counts.get(path, 0) + 1
        self.arrays = tuple(f"{path}[" for path, found in lengths.items() if len(found) > 1)
        self.kept = {path: max(found) for path, found in lengths.items() if len(found) == 1}
        names = [path for path in counts if not path.startswith(self.arrays)]
        if len(names) > MOST_NUMBERS:
            names = names[:MOST_NUMBERS]
        for path in names:
            values = [tree.numbers[path] for tree in trees if path in tree.numbers]
            self.dtypes.append(self._dtype(path, values, counts[path] < len(trees)))
        self.names = tuple(names)
        self.places = {path: i for i, path in enumerate(names)}
        self.stamped = any(tree.stamp is not None for tree in trees)
        turns = [(path, tuple(f"{path}.{role}" for role in "xyzw")) for path in self.reader.turns]
        self.said = tuple(
            Said("quaternion", members, self.reader.turns[path])
            for path, members in turns
            if set(members) <= self.places.keys()
        )
        return True

    def _dtype(self, path: str, values: list[Number], is_missing: bool) -> str:
        """Return the dtype of a channel. Integers that may be missing become floats, for NaN."""
        dtype = self.reader.dtype(path)
        if dtype is None:
            kinds = set(map(type, values))
            dtype = "float64"
            if kinds == {bool}:
                dtype = "bool"
            elif float not in kinds:
                low, high = min(values), max(values)
                if -(2**63) <= low and high < 2**63:
                    dtype = "int64"
                elif 0 <= low and high < 2**64:
                    dtype = "uint64"
        return "float64" if is_missing and not dtype.startswith("float") else dtype

    def _tree(self, content: bytes) -> Tree:
        tree = self.reader.tree(content)
        self.spend(MOST_FIELDS - tree.left)
        return tree

    # ---- rows -----------------------------------------------------------------------------------

    def _decoded(self, rows: Rows) -> Iterator[Columns]:
        at_once = max(1, _AT_ONCE // max(1, len(self.names or ())))
        for begin in range(0, len(rows), at_once):
            yield self._block(rows.select(slice(begin, begin + at_once)))

    def _block(self, rows: Rows) -> Columns:
        import numpy as np

        names = self.names or ()
        table: list[list[Number]] = []
        stamps: list[int] = []
        kept: list[int] = []
        for i in range(len(rows)):
            content = rows.message(i)
            try:
                tree = self._tree(content)
                self._require_keys(tree)
            except CannotRead as error:
                self.fail(f"they {error}", rows.sizes[i : i + 1])
                continue
            numbers = tree.numbers
            values = [numbers.get(name, math.nan) for name in names]
            self._note(tree)
            if numbers.keys() != self.places.keys():
                self._compare(numbers)
            self._widen(values, numbers)
            table.append(values)
            stamps.append(tree.stamp or 0)
            kept.append(i)
        dtype = np.result_type(*set(self.dtypes)) if self.dtypes else np.dtype("f4")
        values_of = np.empty((len(table), len(names)), dtype)
        for j, name in enumerate(names):
            self._fill(values_of, j, name, [row[j] for row in table])
        header = np.array(stamps, np.int64) if self.stamped else None
        times = rows.times if len(kept) == len(rows) else rows.times[kept]
        return Columns(names, tuple(self.dtypes), values_of, times, header)

    def _fill(self, block: Any, column: int, name: str, values: list[Number]) -> None:
        if block.dtype.kind == "f" and not self.dtypes[column].startswith("float"):
            if any(abs(value) > _EXACT for value in values):
                self.rounded.add(name)
        try:
            block[:, column] = values
        except OverflowError:  # an integer above all floats
            self.rounded.add(name)
            block[:, column] = [_as_float(value) for value in values]

    def _widen(self, values: list[Number], numbers: dict[str, Number]) -> None:
        """Turn a channel of integers into floats if a value is not an integer."""
        import numpy as np

        for i, dtype in enumerate(self.dtypes):
            if dtype.startswith("float"):
                continue
            value = values[i]
            if type(value) is float or (dtype == "bool") != (type(value) is bool):
                self.dtypes[i] = "float64"
            elif dtype != "bool":
                limits = np.iinfo(dtype)
                if not limits.min <= value <= limits.max:
                    self.dtypes[i] = "float64"

    def _require_keys(self, tree: Tree) -> None:
        """Refuse a message about another frame or joint, which must not be mixed."""
        for path, text in tree.texts.items():
            if path not in self.keys and len(self.keys) < MOST_FIELDS:
                self.keys[path] = text if self._is_key(path) else None
            first = self.keys.get(path)
            if first is not None and text != first:
                raise CannotRead(
                    f"have a {path} that differs from the first message's, "
                    f"{first[:_LONGEST_TEXT]!r}: frames and joints are separated only in ROS "
                    "messages"
                )

    def _is_key(self, path: str) -> bool:
        """Whether a text identifies numbers that are channels."""
        if path.startswith(self.arrays):
            return False
        self.spend(len(self.places))
        array = _NAMES.fullmatch(path)
        if array is not None:
            # The numbers of arrays of the same length have these names.
            count = self.kept.get(array[1] + array[2])
            others = [
                f"{other}["
                for other, own in self.kept.items()
                if own == count and other.startswith(array[1])
            ]
            return any(channel.startswith(tuple(others)) for channel in self.places)
        if _FRAME.fullmatch(path) or _ELEMENT.fullmatch(path):
            element = path[: path.rfind("]") + 1]
            return any(channel.startswith(element) for channel in self.places)
        return False

    def _compare(self, numbers: dict[str, Number]) -> None:
        """Count channels that a message lacks, and numbers that are not channels."""
        for name in self.places:
            if name not in numbers:
                self.missing[name] = self.missing.get(name, 0) + 1
        for path in numbers:
            if path in self.places:
                continue
            if path.startswith(self.arrays):
                self.numeric.update(each[:-1] for each in self.arrays if path.startswith(each))
                continue
            array = re.sub(r"\[\d+\][^\[]*\Z", "", path)
            if array != path and array in self.kept:
                self.numeric.add(array)  # its length increased, which is noted elsewhere
                continue
            if path in self.late or len(self.late) < _MOST_NAMES:
                self.late[path] = self.late.get(path, 0) + 1

    def _note(self, tree: Tree) -> None:
        """Note fields that are not channels."""
        for path, count in tree.lengths.items():
            if path in self.lengths or len(self.lengths) < _MOST_NAMES:
                least, most = self.lengths.get(path, (count, count))
                self.lengths[path] = min(least, count), max(most, count)
        for path, reason in tree.others.items():
            if len(self.others) < _MOST_NAMES:
                self.others.setdefault(path, reason)
        for path, text in tree.texts.items():
            if path not in self.texts and len(self.texts) >= _MOST_NAMES:
                continue
            known = self.texts.setdefault(path, set())
            if known is not None:
                known.add(text[:_LONGEST_TEXT])
                if len(known) > _MOST_TEXTS:
                    self.texts[path] = None

    def fail(self, reason: str, sizes: Any) -> None:
        count_reason(self.failed, reason, len(sizes))
        self.failed_bytes += int(sizes.sum())

    # ---- what was not read ----------------------------------------------------------------------

    def _varying(self) -> list[tuple[str, int, int]]:
        return [
            (path, least, most)
            for path, (least, most) in self.lengths.items()
            if least != most and most > self.kept.get(path, 0)
        ]

    @property
    def only_texts(self) -> bool:
        return bool(self.texts)

    def losses(self) -> list[str]:
        found = []
        varying = [each for each in self._varying() if each[0] in self.numeric]
        if varying:
            found.append(varying_reason(varying))
        if self.late:
            found.append(
                f"the first {_FIRST} messages, which determine the channels, do not have "
                f"{some(list(self.late), 4)}"
            )
        return found

    def left_out(self) -> list[tuple[str, str]]:
        found = []
        for path, values in self.texts.items():
            found.append((path, text_reason(values)))
        found += list(self.others.items())
        for path, least, most in self._varying():
            found.append((path, array_reason(least, most, self.kept.get(path, 0))))
        for path, count in self.missing.items():
            found.append((path, f"is missing in {count:,} messages, where the channel is NaN"))
        for path, count in self.late.items():
            text = f"is in {count:,} messages, but not in the first {_FIRST}"
            found.append((path, f"{text}, which determine the channels"))
        for name in sorted(self.rounded):
            found.append((name, "integers above 2**53 among floats: rounded to float64"))
        for reason, count in self.failed.items():
            found.append(("", messages_not_read(count, reason)))
        return found


def _as_float(value: Number) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


# ---- stamps --------------------------------------------------------------------------------------


def stamp_paths() -> tuple[tuple[str, ...], ...]:
    """Return the paths where a message may have its time of measurement."""
    return _STAMPS


def nanoseconds(seconds: Any, fraction: Any) -> int | None:
    """Return a time from two integers; None if they are not a time."""
    if type(seconds) is not int or type(fraction) is not int or not 0 <= fraction < 10**9:
        return None
    total = seconds * 10**9 + fraction
    return total if -(2**63) <= total < 2**63 else None


def stamp_of(value: Any) -> int | None:
    """Parse a time in JSON: seconds and nanoseconds, or ISO 8601 with a zone."""
    if isinstance(value, dict) and len(value) == 2:
        seconds = next((value[key] for key in _SECONDS if key in value), None)
        fraction = next((value[key] for key in _NANOSECONDS if key in value), None)
        return nanoseconds(seconds, fraction)
    if isinstance(value, str) and (match := _ISO.match(value)):
        import datetime

        *parts, fraction, zone = match.groups()
        try:
            whole = datetime.datetime(*map(int, parts), tzinfo=datetime.timezone.utc)  # type: ignore[misc,arg-type]
        except ValueError:
            return None
        seconds = int(
            (whole - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)).total_seconds()
        )
        if zone != "Z":
            offset = int(zone[1:3]) * 3600 + int(zone[-2:]) * 60
            seconds += -offset if zone[0] == "+" else offset
        return nanoseconds(seconds, int((fraction or "0").ljust(9, "0")))
    return None


MOST_LISTED = MOST_ELEMENTS  # elements of an array of channels
