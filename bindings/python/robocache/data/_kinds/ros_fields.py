"""Kinds that the definition of a ROS message states: quaternions and covariances."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .kinds import Said

_NAME, _ARRAY = 2, 3  # rosbags' Nodetype
_QUATERNION = "geometry_msgs/msg/Quaternion"
_INDEX = re.compile(r"\[\d+\]$")
_CONSTANT = {  # arrays that describe the sensor
    "sensor_msgs/msg/CameraInfo": ("D", "K", "R", "P", "d", "k", "r", "p"),
}


def said_by(typename: str, types: Mapping[str, Any], names: Sequence[str]) -> tuple[Said, ...]:
    """Kinds of channels by the fields that they come from."""
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
    """The types of the fields of a message, by their paths."""

    def __init__(self, typename: str, types: Mapping[str, Any]) -> None:
        self.types = types
        self.known: dict[str, str | None] = {"": typename}

    def type_of(self, path: str) -> str | None:
        """The type of a message within, or of an element of an array of messages."""
        if path not in self.known:
            outer, _, field = path.rpartition(".")
            self.known[path] = self._named(self._description(outer, _INDEX.sub("", field)))
        return self.known[path]

    def _description(self, outer: str, field: str) -> Any:
        typename = self.type_of(outer)
        if typename is None or typename not in self.types:
            return None
        return next((of for name, of in self.types[typename][1] if name == field), None)

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
        if is_q and description[0] == _ARRAY and description[1][1] == 4:
            return "px4"
        return None
