"""The message types of an ArduPilot log: FMT defines fields, FMTU, UNIT and MULT their units."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._errors import LeftOut
from ..._kinds.kinds import Said
from ..._kinds.names import ANGLE_WORDS, NO_ANGLE_WORDS, words_of
from .layouts import Column, Layout

# By letter of a format: dtype, and what the number in the file is divided by.
_NUMBERS = {
    "b": ("<i1", 0.0),
    "B": ("<u1", 0.0),
    "M": ("<u1", 0.0),
    "h": ("<i2", 0.0),
    "H": ("<u2", 0.0),
    "i": ("<i4", 0.0),
    "I": ("<u4", 0.0),
    "q": ("<i8", 0.0),
    "Q": ("<u8", 0.0),
    "g": ("<f2", 0.0),
    "f": ("<f4", 0.0),
    "d": ("<f8", 0.0),
    "c": ("<i2", 100.0),
    "C": ("<u2", 100.0),
    "e": ("<i4", 100.0),
    "E": ("<u4", 100.0),
    "L": ("<i4", 1e7),
}
_TEXTS = {"n": 4, "N": 16, "Z": 64}
_ARRAY, _ELEMENTS = "a", 32  # of int16
_PREFIXES = {1e-1: "d", 1e-2: "c", 1e-3: "m", 1e-6: "µ", 1e-9: "n"}
_PLAIN = {"deglatitude": "deg", "deglongitude": "deg", "degheading": "deg"}
_ROUND = ("degheading", "deglongitude")  # units of angles only
_TURNS = {"deg": 360.0, "rad": 6.283185307179586}
_NEAR = 1e-6  # of a turn
_CLOCKS = {"TimeUS": 1, "TimeMS": 1000}  # us per tick
_WORD = re.compile(r"[A-Za-z]\w*")

DEFINITIONS = ("FMT", "FMTU", "UNIT", "MULT")
LISTED = {"PARM": "parameters: settings, not samples", "FILE": "parts of files, not samples"}


def text(content: bytes) -> str:
    return content.partition(b"\0")[0].decode("utf-8", "backslashreplace")


@dataclass
class Type:
    """One type of message."""

    number: int
    name: str
    length: int  # bytes, with the three of the header
    letters: str  # of the format
    fields: tuple[str, ...]
    units: str = ""  # a letter for each field, from FMTU
    factors: str = ""
    places: dict[str, tuple[int, int]] = field(default_factory=dict)  # offset and size of a field

    @property
    def fault(self) -> str:
        """The fault of the definition, or ""."""
        unknown = set(self.letters) - set(_NUMBERS) - set(_TEXTS) - {_ARRAY}
        if unknown:
            return f"has the unknown format letter {sorted(unknown)[0]!r}"
        if len(self.letters) != len(self.fields):
            return f"has {len(self.fields)} names for {len(self.letters)} fields"
        if len(set(self.fields)) != len(self.fields):
            return "has two fields of the same name"
        size = 3 + sum(map(size_of, self.letters))
        return "" if size == self.length else f"is {self.length} bytes, but its fields take {size}"

    @property
    def key(self) -> str | None:
        """The field that says which thing a message is about: an instance, or a name."""
        place = self.units.find("#")
        if 0 <= place < len(self.fields) and self.letters[place] in "bBhHiI":
            return self.fields[place]
        at = self.fields.index("Name") if "Name" in self.fields else -1
        return "Name" if at >= 0 and self.letters[at] in _TEXTS else None

    @property
    def clock(self) -> str | None:
        """The field of times."""
        if self.name.startswith("GPS") and "T" in self.fields and "TimeUS" not in self.fields:
            return "T"  # TimeMS is the time of the week in old logs
        return next((name for name in _CLOCKS if name in self.fields), None)


def size_of(letter: str) -> int:
    """Return the bytes of a field."""
    if letter in _NUMBERS:
        return int(_NUMBERS[letter][0][2:])
    return 2 * _ELEMENTS if letter == _ARRAY else _TEXTS.get(letter, 0)


def parsed_type(values: Sequence[Any]) -> Type | str:
    """Return the type that a message FMT defines, or what is wrong with it."""
    number, length, name, letters, columns = values
    fields = tuple(part.strip() for part in columns.split(",")) if columns else ()
    if not _WORD.fullmatch(name):
        return f"defines a message with the name {name!r}"
    made = Type(number, name, length, letters, fields)
    fault = made.fault
    return f"defines {name}, which {fault}" if fault else made


@dataclass
class Parts:
    """The fields of the messages of a type."""

    layout: Layout
    texts: tuple[str, ...]
    angles: tuple[tuple[str, str], ...]  # channels that may be angles, with their units
    units: dict[str, str]  # by channel; "": the log says that it has none


def parts_of(
    made: Type, units: Mapping[str, str], factors: Mapping[str, float], arrays: bool
) -> Parts:
    """Return the numbers of a type's messages, with offsets from the begin of a message."""
    columns: list[Column] = []
    texts: list[str] = []
    angles: list[tuple[str, str]] = []
    own_units: dict[str, str] = {}
    offset, time = 3, None
    clock, key = made.clock, made.key
    for i, (letter, name) in enumerate(zip(made.letters, made.fields)):
        size = size_of(letter)
        made.places[name] = offset, size
        if name == clock:
            time = Column(name, offset, _NUMBERS[letter][0]) if letter in "QIqi" else None
        elif name != key and (letter in _TEXTS or letter == _ARRAY and not arrays):
            texts.append(name)
        elif letter == _ARRAY:
            members = [Column(f"{name}[{j}]", offset + 2 * j, "<i2") for j in range(_ELEMENTS)]
            columns += members
            unit = unit_of(made, i, units, factors)
            own_units.update((member.name, unit) for member in members if unit)
        elif name != key:
            dtype, divisor = _NUMBERS[letter]
            columns.append(Column(name, offset, dtype, divisor))
            unit = unit_of(made, i, units, factors)
            words = set(words_of(name))
            turn = _angle_unit(letter, words, unit)
            if turn is not None:
                angles.append((name, turn))
            if unit or made.units[i : i + 1] == "-" and not words.isdisjoint(ANGLE_WORDS):
                own_units[name] = _PLAIN.get(unit, unit)
        offset += size
    ticks = _CLOCKS.get(clock or "", 1000)
    return Parts(Layout(columns, offset, time, ticks), tuple(texts), tuple(angles), own_units)


def unit_of(made: Type, i: int, units: Mapping[str, str], factors: Mapping[str, float]) -> str:
    """Return the unit of a field with the prefix of its multiplier; "" if it is not known."""
    letter = made.letters[i]
    if i >= len(made.units):
        return "deg" if letter == "L" else ""
    unit = units.get(made.units[i], "")
    if unit in ("", "UNKNOWN", "instance") or _NUMBERS.get(letter, ("", 0.0))[1]:
        return "" if unit in ("UNKNOWN", "instance") else unit
    factor = factors.get(made.factors[i], 1.0) if i < len(made.factors) else 1.0
    factor = float(f"{factor:.7g}")
    if factor in (0.0, 1.0):
        return unit
    prefix = _PREFIXES.get(factor)
    return f"{prefix}{unit}" if prefix is not None else f"{factor:.4g} {unit}"


def _angle_unit(letter: str, words: set[str], unit: str) -> str | None:
    """Return the unit of a channel that may be an angle; None for others."""
    if unit in _ROUND:
        return "deg"
    if words.isdisjoint(ANGLE_WORDS) or not words.isdisjoint(NO_ANGLE_WORDS):
        return None
    if not unit and letter in "cC":  # hundredths of degrees, in logs without units
        return "deg"
    return unit if unit in _TURNS else None


def said_of(parts: Parts, ranges: Mapping[str, tuple[float, float]]) -> tuple[Said, ...]:
    """Return the kinds that a log states; ``ranges`` are the least and largest values of angles."""
    known = {column.name: column for column in parts.layout.columns}
    found: list[Said] = []
    turns = ("Q2", "Q3", "Q4", "Q1")
    if all(known[name].dtype in ("<f4", "<f8") for name in turns if name in known) and all(
        name in known for name in turns
    ):
        found.append(Said("quaternion", turns, "Q1 to Q4 of ArduPilot, w first"))
    taken = set(found[0].names) if found else set()
    for name, unit in parts.angles:
        low, high = ranges.get(name, (1.0, 0.0))
        turn = _TURNS[unit] * (1 + _NEAR)
        if low <= high and (0 <= low and high <= turn or -turn / 2 <= low and high <= turn / 2):
            text_of = f"unit {unit} of the log; values from {low:.4g} to {high:.4g}"
            found.append(Said("angle", (name,), text_of, unit))
            taken.add(name)
    by_unit: dict[tuple[str, str], list[str]] = {}
    for name, unit in parts.units.items():
        if name not in taken:
            kind = "number" if known[name].result.startswith("float") else "step"
            by_unit.setdefault((kind, unit), []).append(name)
    for (kind, unit), names in by_unit.items():
        text_of = f"unit {unit} of the log" if unit else "the log says that it has no unit"
        found.append(Said(kind, tuple(names), text_of, unit or None))
    return tuple(found)


@dataclass
class Tables:
    """The types of a log, and its units and multipliers by letter."""

    types: dict[int, Type] = field(default_factory=dict)
    units: dict[str, str] = field(default_factory=dict)
    factors: dict[str, float] = field(default_factory=dict)
    of_types: dict[int, tuple[str, str]] = field(default_factory=dict)  # from FMTU
    parts: dict[int, Parts] = field(default_factory=dict)
    arrays: bool = True  # whether arrays are channels; in a text log they are not

    def add(self, made: Type) -> str:
        """Add a type; return what is wrong, or ""."""
        known = self.types.get(made.number)
        if known is None:
            made.units, made.factors = self.of_types.get(made.number, ("", ""))
            self.types[made.number] = made
            return ""
        same = (known.name, known.letters, known.fields) == (made.name, made.letters, made.fields)
        return "" if same else f"defines type {made.number} a second time, and differently"

    def add_units(self, name: str, values: Mapping[str, Any]) -> bool:
        """Take a message FMTU, UNIT or MULT; return whether it says something new."""
        try:
            if name == "UNIT":
                return _put(self.units, chr(values["Id"]), values["Label"])
            if name == "MULT":
                return _put(self.factors, chr(values["Id"]), float(values["Mult"]))
            number, letters = values["FmtType"], (values["UnitIds"], values["MultIds"])
        except (KeyError, ValueError, OverflowError):
            return False
        if number in self.types:
            self.types[number].units, self.types[number].factors = letters
        return _put(self.of_types, number, letters)

    def parts_of(self, made: Type) -> Parts:
        if made.number not in self.parts:
            self.parts[made.number] = parts_of(made, self.units, self.factors, self.arrays)
        return self.parts[made.number]


def _put(known: dict[Any, Any], key: Any, value: Any) -> bool:
    is_new = bool(known.get(key) != value)
    known[key] = value
    return is_new


def notes_of(name: str, made: Type, parts: Parts, label: Any) -> list[LeftOut]:
    """Return what the messages of a stream hold besides numbers."""
    notes = [LeftOut(f"{name}: {each}", "no number, or no single one") for each in parts.texts]
    if made.key is not None and name == made.name:
        notes.append(LeftOut(f"{name}: {made.key}", f"says the instance, always {label!r}"))
    return notes
