"""Definitions of ROS messages, as parsed by rosbags, and the kinds of channels they state."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..._errors import needed, raise_shortage
from ..._kinds.kinds import Said
from .fixed_layouts import PLACEHOLDER, element_of

_DEFAULT = "humble"
_BASE, _NAME, _ARRAYS = 1, 2, (3, 4)  # rosbags' Nodetype
_SEPARATOR = "=" * 80 + "\n"
_LONGEST = 256 << 10  # characters of a definition without comments; parsing takes 2 µs for each
_SHOWN = 1000  # characters of the parser's message
_WIDE_BOUND = re.compile(r"^([ \t]*wstring)<=\d+", re.MULTILINE)
_WIDE_CONSTANT = re.compile(r"^[ \t]*wstring(<=\d+)?[ \t]+\w+[ \t]*=.*\n", re.MULTILINE)
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*(include|pragma)\b.*$", re.MULTILINE)
_EMPTY_STRUCT = re.compile(r"\b(struct\s+\w+\s*)\{\s*\}")
_ENUM = re.compile(r"\benum\s+(\w+)\s*\{")
_NOTHING = re.compile(r"^[ \t\r]*(#.*)?\n", re.MULTILINE)  # lines without a field


class Types:
    """Field definitions by name of type, the input of :class:`.layouts.Layouts`."""

    def __init__(self, extra: Mapping[str, str] | None = None) -> None:
        self.typesys = needed("rosbags.typesys", "ros", "a ROS bag")
        stores = self.typesys.Stores
        self.builtin = dict(self.typesys.get_typestore(stores.EMPTY).fielddefs)
        self.parsed: dict[tuple[str, str, str], dict[str, Any] | str] = {}  # or the error
        self.definitions: dict[str, Any] = {}
        for name, text in (extra or {}).items():
            self.definitions.update(self._parsed("ros2msg", text, normalized(name)))
        self.distribution: dict[str, Any] | None = None

    def lookup(self, name: str, kind: str, text: str, distribution: str | None) -> dict[str, Any]:
        """Return a type and its nested types, from its definition or from the distribution.

        Raises
        ------
        ValueError
            There is no definition, or it cannot be read.
        """
        raw, name = name.replace("::", "/"), normalized(name)
        if text:
            parsed = self._parsed(kind, text, name)
            own = next((n for n in (raw, name.replace("/msg/", "/", 1)) if n in parsed), None)
            if name not in parsed and own is not None:  # IDL from outside of ROS
                parsed = {**parsed, name: parsed[own]}
            return {**self.builtin, **parsed, **self.definitions}
        if name in self.definitions:
            return {**self._of_distribution(distribution), **self.definitions}
        known = self._of_distribution(distribution)
        if name not in known:
            raise ValueError(
                f"the type {name} is defined neither in the bag nor in {self.distribution_name}. "
                f"Pass its definition: --definition {name}={name.rpartition('/')[2]}.msg "
                "(in Python: definitions=)"
            )
        return known

    def _of_distribution(self, distribution: str | None) -> dict[str, Any]:
        if self.distribution is None:
            stores = self.typesys.Stores
            name = f"ros2_{distribution or _DEFAULT}"
            if name not in {store.value for store in stores}:
                name = f"ros2_{_DEFAULT}"
            self.distribution_name = name.replace("ros2_", "ROS 2 ")
            self.distribution = dict(self.typesys.get_typestore(stores(name)).fielddefs)
        return self.distribution

    def _parsed(self, kind: str, text: str, name: str) -> dict[str, Any]:
        """Return the types of a definition, which many topics may share."""
        key = (kind, text, name)
        if key not in self.parsed:
            try:
                self.parsed[key] = self._parse(kind, text, name)
            except ValueError as error:
                raise_shortage("a definition")
                self.parsed[key] = str(error)
        known = self.parsed[key]
        if isinstance(known, str):
            raise ValueError(known)
        return known

    def _parse(self, kind: str, text: str, name: str) -> dict[str, Any]:
        types: dict[str, Any] = {}
        if kind in ("ros2msg", "ros1msg"):
            text = _NOTHING.sub("", text if text.endswith("\n") else f"{text}\n")
            text = _WIDE_BOUND.sub(r"\1", _WIDE_CONSTANT.sub("", text))
        if len(text) > _LONGEST:
            raise ValueError(
                f"its definition has {len(text):,} characters, expected at most {_LONGEST:,}"
            )
        try:
            if kind in ("ros2msg", "ros1msg"):
                types.update(_from_text(self.typesys.get_types_from_msg, text, name))
                _replace_names(types, {"wstring": "wstring"})
            elif kind in ("ros2idl", "omgidl"):
                if "@optional" in text:
                    raise ValueError("its definition has @optional fields, which are not read")
                for part in _idl_parts(text):
                    types.update(self.typesys.get_types_from_idl(part))
                # An enumeration takes four bytes; one of another size would not fit.
                _replace_names(types, dict.fromkeys(_ENUM.findall(text), "uint32"))
            else:
                raise ValueError(f"its definition is in {kind!r}, which is not read")
        except self.typesys.TypesysError as error:
            reason = str(error)[:_SHOWN]  # it repeats the definition
            raise ValueError(f"its definition cannot be parsed: {reason}") from None
        except (RecursionError, AssertionError, KeyError, IndexError) as error:
            raise ValueError(f"its definition cannot be parsed: {type(error).__name__}") from None
        return types


@functools.lru_cache(maxsize=128)  # the bags of a folder repeat them
def _from_text(parse: Callable[[str, str], dict[str, Any]], text: str, name: str) -> dict[str, Any]:
    return parse(text, name)


def _replace_names(types: dict[str, Any], bases: Mapping[str, str]) -> None:
    """Replace names of undefined types, such as enumerations, by basic types."""

    def replaced(description: Any) -> Any:
        kind, what = description[0], description[1]
        if kind in _ARRAYS:
            return kind, (replaced(what[0]), what[1])
        base = bases.get(what.rpartition("/")[2]) if kind == _NAME and what not in types else None
        return description if base is None else (_BASE, (base, 0))

    if not bases:
        return
    for name, (constants, fields) in types.items():
        types[name] = (constants, [(field, replaced(description)) for field, description in fields])


def fingerprint(name: str, types: dict[str, Any] | str) -> str:
    """Return the fields of a type and its nested types, or why they cannot be read."""
    if isinstance(types, str):
        return types
    fields: dict[str, str] = {}
    left = [name]
    while left:
        name = left.pop()
        if name in fields:
            continue
        fields[name] = repr(types[name][1]) if name in types else ""
        for _, description in types[name][1] if name in types else ():
            element = element_of(description)
            if element[0] == _NAME:
                left.append(element[1])
    return repr(sorted(fields.items()))


def normalized(name: str) -> str:
    """Return ROS 2's name of a type: pkg/msg/Type."""
    parts = name.replace("::", "/").split("/")
    return f"{parts[0]}/msg/{parts[1]}" if len(parts) == 2 else name


def _idl_parts(text: str) -> list[str]:
    # Includes are part of the text, and a structure without fields takes one byte.
    text = _EMPTY_STRUCT.sub(rf"\1{{ uint8 {PLACEHOLDER}; }}", _INCLUDE.sub("", text))
    if not text.startswith(f"{_SEPARATOR}IDL: "):
        return [text]
    return [re.sub(r"\AIDL: .*\n", "", part) for part in text.split(_SEPARATOR)[1:]]


_QUATERNION = "geometry_msgs/msg/Quaternion"
_INDEX = re.compile(r"\[\d+\]$")
_CONSTANT = {  # arrays that describe the sensor
    "sensor_msgs/msg/CameraInfo": ("D", "K", "R", "P", "d", "k", "r", "p"),
}


def said_by(typename: str, types: Mapping[str, Any], names: Sequence[str]) -> tuple[Said, ...]:
    """Return kinds of channels by the fields that they come from."""
    walk = _Fields(typename, types)
    groups: dict[tuple[str, str], list[str]] = {}
    for name in names:
        path, dot, field = name.rpartition(".")
        if _INDEX.search(field):
            array = _INDEX.sub("", name)
            kind = walk.kind_of_array(array)
            if kind is not None:
                groups.setdefault((kind, array), []).append(name)
        elif dot and field in "xyzw" and walk.type_of(path) == _QUATERNION:
            groups.setdefault(("quaternion", path), []).append(name)
    found = []
    for (kind, path), members in groups.items():
        if kind == "quaternion":
            ordered = tuple(f"{path}.{role}" for role in "xyzw")
            if set(ordered) == set(members):
                found.append(Said(kind, ordered, _QUATERNION))
        elif kind != "px4" or len(members) == 4:
            roles = (*members[1:], members[0]) if kind == "px4" else tuple(members)
            own = "quaternion" if kind == "px4" else kind
            found.append(Said(own, roles, f"{path} of {typename}"))
    return tuple(found)


class _Fields:
    """The types of the fields of a message, by path."""

    def __init__(self, typename: str, types: Mapping[str, Any]) -> None:
        self.types = types
        self.known: dict[str, str | None] = {"": typename}

    def type_of(self, path: str) -> str | None:
        """Return the type of a nested message, or of an element of an array of messages."""
        if path not in self.known:
            outer, _, field = path.rpartition(".")
            self.known[path] = self._named(self._description(outer, _INDEX.sub("", field)))
        return self.known[path]

    def _description(self, outer: str, field: str) -> Any:
        typename = self.type_of(outer)
        if typename is None or typename not in self.types:
            return None
        return next(
            (description for name, description in self.types[typename][1] if name == field), None
        )

    def _named(self, description: Any) -> str | None:
        while description is not None and description[0] not in (1, _NAME):
            description = description[1][0]
        if description is None or description[0] != _NAME:
            return None
        return str(description[1])

    def kind_of_array(self, path: str) -> str | None:
        outer, _, field = path.rpartition(".")
        typename = self.type_of(outer)
        description = self._description(outer, field)
        if description is None or typename is None:
            return None
        if field == "covariance" or field.endswith("_covariance"):
            return "covariance"
        if field in _CONSTANT.get(typename, ()):
            return "covariance"
        is_q = field == "q" and typename.startswith("px4_msgs/")
        if is_q and description[0] == _ARRAYS[0] and description[1][1] == 4:
            return "px4"
        return None
