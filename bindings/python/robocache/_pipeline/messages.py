"""Decoding of the messages of one topic for the robot, as a bag's messages are decoded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .sources import StreamPlan


class TopicReader:
    """Read the messages of one topic into the streams of a pipeline."""

    def __init__(
        self,
        topic: str,
        streams: Sequence[StreamPlan],
        encoding: str,
        definitions: Mapping[str, str] | None,
        distribution: str | None,
    ) -> None:
        from ..data._formats.messages.decoders import Makers
        from ..data._formats.messages.topics import Hooks, KeyedTopic, topic_of

        if encoding not in ("cdr", "ros1"):
            raise ValueError(f"encoding: is {encoding!r}, expected 'cdr' or 'ros1'")
        self.topic, self.streams = topic, streams
        typename = streams[0].source["type"]
        for stream in streams:
            if stream.source["type"] != typename:
                raise ValueError(
                    f"{stream.place}/source/type: {stream.source['type']!r}; another stream of "
                    f"{topic!r} has {typename!r}"
                )
        if encoding == "ros1":
            maker = _maker_of_ros1(typename, definitions)
        else:
            maker = Makers(definitions, distribution, _spend).maker(typename, encoding, "", "")
        self._topic = topic_of(topic, maker, Hooks(_spend, str, _nothing))
        self._keyed = isinstance(self._topic, KeyedTopic)
        self._topic.begin(False)
        self._keys: list[str] = []  # in the order in which they came
        self._columns: dict[tuple[str, tuple[str, ...]], list[int]] = {}

    def read(self, data: bytes, received: int) -> list[tuple[StreamPlan, int, Any, Any]]:
        """Return streams with the stamp, the values [1,D] and the mask [1] of their sample."""
        import numpy as np

        from ..data._formats.messages.pieces import Rows

        content = np.frombuffer(data, np.uint8)
        sizes, times = np.array([len(content)], np.int64), np.array([received], np.int64)
        rows = Rows(content, np.zeros(1, np.int64), sizes, times)
        decoded = [*self._topic.feed(rows), *self._topic.flush(False)]
        found = []
        for part, columns in decoded:
            key = self._key(part)
            for stream in self.streams:
                if stream.key is not None and stream.track != key:
                    continue
                for row in range(len(columns.values)):
                    found.append(self._sample(stream, key, columns, row, received))
                if stream.key is None:
                    self._require_one(stream, key)
        self._require_read(found)
        return found

    def _sample(
        self, stream: StreamPlan, key: str, columns: Any, row: int, received: int
    ) -> tuple[StreamPlan, int, Any, Any]:
        known = self._columns.get((stream.name, columns.names))
        if known is None:
            known = stream.columns(columns.names, len(columns.names))
            self._columns[stream.name, columns.names] = known
        stamp = received
        if stream.by_header:
            if columns.header is None:
                raise ValueError(f'{stream.place}/stamp: "header"; {key!r} has no header stamp')
            stamp = int(columns.header[row])
        numbers, good = stream.numbers(columns.values[row : row + 1], known)
        return stream, stamp, numbers, good

    def _require_one(self, stream: StreamPlan, key: str) -> None:
        """Refuse messages of several keys that take turns in a stream of the whole topic."""
        if key in self._keys[:-1]:
            keys = ", ".join(repr(each[len(self.topic) + 1 :]) for each in sorted(self._keys))
            raise ValueError(
                f"{stream.place}/source/topic: {self.topic!r} has messages of several things that "
                f'take turns; name one by "key": {keys}'
            )
        if not self._keys or self._keys[-1] != key:
            self._keys.append(key)

    def _key(self, part: Any) -> str:
        """Return the topic with the key of a part, such as its frame, as in a recording."""
        topic: Any = self._topic
        for thing in topic.things.values() if self._keyed else ():
            frames = {frame: each for frame, each in thing.parts.items() if each is part}
            if part is thing.whole:
                frames = {next(iter(thing.merged)): part}
            for frame in frames:
                return f"{self.topic}/{topic._label(thing, frame)}"
        return self.topic

    def _require_read(self, found: Sequence[Any]) -> None:
        failed: dict[str, int] = {}
        for part in self._topic.parts:
            decoder: Any = part.decoder
            inner = getattr(decoder, "decoder", decoder)
            failed.update(getattr(inner, "failed", {}))
            if getattr(inner, "failed", None):
                inner.failed.clear()
        failed.update(getattr(self._topic, "failed", {}))
        if failed and not found:
            reasons = "; ".join(failed)
            raise ValueError(f"data: a message of {self.topic!r} cannot be read: {reasons}")


def _maker_of_ros1(typename: str, definitions: Mapping[str, str] | None) -> Any:
    """Return a maker of decoders for messages of ROS 1, whose headers have a counter."""
    from functools import partial

    from ..data._formats.messages.columns import Decoder
    from ..data._formats.messages.decoders import Maker
    from ..data._formats.messages.ros_types import Types, fingerprint, normalized

    own = Types(definitions)
    stores = own.typesys.Stores
    types = {**own.typesys.get_typestore(stores.ROS1_NOETIC).fielddefs, **own.definitions}
    name = normalized(typename)
    if name not in types:
        raise ValueError(
            f"the type {typename} is not in ROS 1 noetic; pass its definition: definitions={{name: "
            "text of the .msg file}}"
        )
    make = partial(Decoder, name, types, "ros1", _spend)
    return Maker(make, partial(fingerprint, name, types), types)


def _spend(fields: int) -> None:
    """Accept any number of fields: one message is small."""


def _nothing() -> None:
    """There is no cache of streams to forget."""
