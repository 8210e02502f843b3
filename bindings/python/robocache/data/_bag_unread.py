"""Which messages of a bag were not read, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from ._errors import Unread
from ._fixed_layouts import PLACEHOLDER

# Topics that robots record beside their own, by their types: they are left out by default.
_BESIDE = {
    "/rosout": ("rcl_interfaces/msg/Log", "rosgraph_msgs/msg/Log"),
    "/rosout_agg": ("rcl_interfaces/msg/Log", "rosgraph_msgs/msg/Log"),
    "/parameter_events": ("rcl_interfaces/msg/ParameterEvent",),
    "/events/read_split": ("rosbag2_interfaces/msg/ReadSplitEvent",),
    "/events/write_split": ("rosbag2_interfaces/msg/WriteSplitEvent",),
    "/events/rosbag2_messages_lost": (
        "rosbag2_interfaces/msg/MessagesLostEvent",
        "rosbag2_interfaces/msg/MessagesLost",
    ),
}

# Pictures, videos, sound and clouds: a bag is referred to for them.
_REFERRED = {"Image", "CompressedImage", "RawImage", "DisparityImage", "CompressedVideo"}
_REFERRED |= {"PointCloud", "PointCloud2", "CompressedPointCloud2", "FFMPEGPacket", "Packet"}
_REFERRED |= {"AudioData", "AudioDataStamped", "RawAudio", "PackedElementField"}

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

_BASE, _NAME = 1, 2  # rosbags' Nodetype
_TEXTS = ("string", "wstring", "wchar")


class AnyDecoder(Protocol):
    typename: str
    names: tuple[str, ...] | None
    failed: dict[str, int]
    failed_bytes: int

    def losses(self) -> list[str]:
        """Which numbers of the messages are no channels, as sentences that say why."""

    @property
    def only_texts(self) -> bool:
        """Whether the type has texts and no numbers, other than those of the header."""


def is_referred(typename: str) -> bool:
    """Whether messages hold pictures, clouds or sound, for which a bag is referred to."""
    return typename.rpartition("/")[2] in _REFERRED


def is_beside(topic: str, typename: str) -> bool:
    """Whether a topic is one that ROS itself publishes."""
    return typename in _BESIDE.get(topic, ())


def beside_reason(topic: str, typename: str) -> str:
    """Why such a topic is left out."""
    return (
        f"{typename}, which ROS itself publishes, is left out by default. "
        f"Select it by its name to read it: --stream {topic}"
    )


def serialization_reason(serialization: str) -> str:
    """Why messages of an encoding are not read."""
    if not serialization:
        return f"the bag does not say in which encoding they are. {_READ} read"
    name = _SERIALIZATIONS.get(serialization, repr(serialization))
    return f"they are in {name}, which is not read ({_READ}). Convert the file to one of these"


def unread_of(topic: str, decoder: AnyDecoder, count: int | None) -> Iterator[Unread]:
    """What the decoder of a topic could not read, of what it has seen."""
    failed = sum(decoder.failed.values())
    if failed:
        reasons = sorted(decoder.failed.items(), key=lambda item: -item[1])
        text = "; ".join(
            reason if len(reasons) == 1 else f"{number:,} of them: {reason}"
            for reason, number in reasons[:3]
        )
        size: int | None = decoder.failed_bytes
        if decoder.names is None and count is not None and count > failed:
            failed, size = count, None  # of which only the first ones were looked at
        yield Unread(topic, decoder.typename, failed, size, text)
    if decoder.names is None or is_referred(decoder.typename):
        return
    losses = decoder.losses()
    if losses:
        yield Unread(topic, decoder.typename, count, None, "; ".join(losses))
    elif not decoder.names and decoder.only_texts:
        reason = "they hold texts, and no numbers that could be channels"
        yield Unread(topic, decoder.typename, count, None, reason, loses_numbers=False)


def has_numbers(types: Mapping[str, Any], typename: str) -> bool:
    """Whether messages of a type have numbers, other than those of the header."""
    return any(name not in _TEXTS for name in _basic_types(types, typename))


def has_texts(types: Mapping[str, Any], typename: str) -> bool:
    """Whether messages of a type have texts, other than those of the header."""
    return any(name in _TEXTS for name in _basic_types(types, typename))


def array_has_numbers(types: Mapping[str, Any], typename: str, path: str) -> bool:
    """Whether the elements of an array have numbers. ``path`` is that of a channel."""
    description: Any = (_NAME, typename)
    for part in path.split("."):
        fields = dict(types[description[1]][1]) if description[1] in types else {}
        description = fields.get(part.partition("[")[0])
        while description is not None and description[0] not in (_BASE, _NAME):
            description = description[1][0]
        if description is None:
            return True
        if description[0] == _BASE:
            return description[1][0] not in _TEXTS
    return has_numbers(types, description[1])


def _basic_types(types: Mapping[str, Any], typename: str) -> Iterator[str]:
    seen, left = set[str](), [typename]
    while left:
        name = left.pop()
        if name in seen or name not in types:
            continue
        seen.add(name)
        for field, (kind, what) in types[name][1]:
            while kind not in (_BASE, _NAME):
                kind, what = what[0]
            if kind == _BASE and field != PLACEHOLDER:
                yield what[0]
            elif kind == _NAME and not (name == typename and field == "header"):
                left.append(what)
