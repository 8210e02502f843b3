"""Messages of a bag that were not read, and the reasons."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol

from ..._errors import Unread, some
from ..._source import is_media
from ..messages.fixed_layouts import PLACEHOLDER, basic_fields, element_of

# Topics that ROS itself publishes, with their types: they are not read by default.
_ROS_TOPICS = {
    "/rosout": ("rcl_interfaces/msg/Log", "rosgraph_msgs/msg/Log"),
    "/rosout_agg": ("rcl_interfaces/msg/Log", "rosgraph_msgs/msg/Log"),
    "/parameter_events": ("rcl_interfaces/msg/ParameterEvent",),
}
_EVENTS = ("/events/", "rosbag2_interfaces/msg/")  # how topics and types of rosbag2 begin

_SERIALIZATIONS = {
    "json": "JSON",
    "protobuf": "protobuf",
    "flatbuffer": "FlatBuffers",
    "cbor": "CBOR",
    "msgpack": "MessagePack",
    "ros1": "the encoding of ROS 1",
    "cdr": "CDR",
}
_READ = "ROS messages, JSON and protobuf are"

_MOST_REASONS = 20  # per topic
_BASE, _NAME = 1, 2  # rosbags' Nodetype
_TEXTS = ("string", "wstring", "wchar")


class AnyDecoder(Protocol):
    typename: str
    names: tuple[str, ...] | None
    failed: dict[str, int]
    failed_bytes: int

    def losses(self) -> list[str]:
        """Return sentences about the numbers of the messages that are not channels."""

    @property
    def only_texts(self) -> bool:
        """Whether the type has texts and no numbers, except in the header."""


def is_ros_topic(topic: str, typename: str) -> bool:
    """Whether a topic is published by ROS itself."""
    events, types = _EVENTS
    is_event = topic.startswith(events) and typename.startswith(types)
    return is_event or typename in _ROS_TOPICS.get(topic, ())


def ros_topic_reason(topic: str, typename: str) -> str:
    """Return why such a topic is not read."""
    return (
        f"{typename}, which ROS itself publishes, is not read by default. "
        f"To read it, select it by its name: --stream {topic}"
    )


def serialization_reason(serialization: str) -> str:
    """Return why messages of an encoding are not read."""
    if not serialization:
        return f"the bag does not state their encoding. {_READ} read"
    name = _SERIALIZATIONS.get(serialization, repr(serialization))
    return f"they are in {name}, which is not read ({_READ}). Convert the file to one of these"


def unread_of(topic: str, decoder: AnyDecoder, count: int | None) -> Iterator[Unread]:
    """Yield what the decoder of a topic could not read, as far as it has seen."""
    failed = sum(decoder.failed.values())
    if failed:
        text = reasons_of(decoder.failed)
        size: int | None = decoder.failed_bytes
        if decoder.names is None and count is not None and count > failed:
            failed, size = count, None  # only the first ones were examined
        yield Unread(topic, decoder.typename, failed, size, text)
    if decoder.names is None or is_media(decoder.typename):
        return
    losses = decoder.losses()
    if losses:
        yield Unread(topic, decoder.typename, count, None, "; ".join(losses))
    elif not decoder.names and decoder.only_texts:
        reason = "they hold texts, and no numbers that could be channels"
        yield Unread(topic, decoder.typename, count, None, reason, loses_numbers=False)


def reasons_of(failed: Mapping[str, int]) -> str:
    """Return the most frequent reasons why messages of a topic were not read."""
    reasons = sorted(failed.items(), key=lambda item: -item[1])
    return "; ".join(
        reason if len(reasons) == 1 else f"{number:,} of them: {reason}"
        for reason, number in reasons[:3]
    )


def count_reason(reasons: dict[str, int], reason: str, count: int) -> None:
    """Count skipped messages by reason; rare reasons are counted as one."""
    if reason not in reasons and len(reasons) >= _MOST_REASONS:
        reason = "other reasons"
    reasons[reason] = reasons.get(reason, 0) + count


def text_reason(values: Collection[str] | None) -> str:
    """Return why a string is not a channel; ``values`` None: it has many values."""
    if values is None or len(values) > 1:
        shown = "" if values is None else ": " + ", ".join(map(repr, sorted(values)))
        return f"string, which varies{shown}"
    return f"string, always {next(iter(values), '')!r}"


def array_reason(least: int, most: int, kept: int) -> str:
    """Return why elements of an array are not channels, except perhaps the first ones."""
    first = f"; the first {kept} are channels" if kept else ""
    return f"array of {least} to {most} elements{first}"


def varying_reason(varying: Iterable[tuple[str, int, int]]) -> str:
    """Return a sentence about arrays that are not channels, with their least and most elements."""
    named = [f"{path} ({least:,} to {most:,} elements)" for path, least, most in varying]
    return (
        f"the length of {some(named, 4)} changes from message to message, and arrays of changing "
        "length are not channels"
    )


def has_numbers(types: Mapping[str, Any], typename: str) -> bool:
    """Whether messages of a type have numbers, except in the header."""
    return any(name not in _TEXTS for name in _basic_types(types, typename))


def has_texts(types: Mapping[str, Any], typename: str) -> bool:
    """Whether messages of a type have texts, except in the header."""
    return any(name in _TEXTS for name in _basic_types(types, typename))


def array_has_numbers(types: Mapping[str, Any], typename: str, path: str) -> bool:
    """Whether the elements of an array have numbers. ``path`` is the path of a channel."""
    description: Any = (_NAME, typename)
    for part in path.split("."):
        fields = dict(types[description[1]][1]) if description[1] in types else {}
        description = fields.get(part.partition("[")[0])
        if description is None:
            return True
        description = element_of(description)
        if description[0] == _BASE:
            return description[1][0] not in _TEXTS
    return has_numbers(types, description[1])


def _basic_types(types: Mapping[str, Any], typename: str) -> Iterator[str]:
    for field, name in basic_fields(types, typename, passed="header"):
        if field != PLACEHOLDER:
            yield name
