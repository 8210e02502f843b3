"""What ROS bags of all kinds share: topics become streams, read piece by piece."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ._columns import Columns, Decoder
from ._errors import Damage, LeftOut
from ._mcap import Channel
from ._progress import progress
from ._ros_types import Types, normalized
from ._source import Piece, StreamInfo

_SERIALIZATIONS = ("cdr", "ros1")
_LOOK = 64 << 20  # bytes


class BagFile(Protocol):
    """One file of a bag, which knows its topics and where their messages are."""

    path: str
    size: int
    indexed: bool  # whether pieces reads no more than the chunks with the messages
    channels: dict[int, Channel]
    counts: dict[int, int] | None  # messages by channel, where that is known

    def pieces(self, wanted: Collection[int]) -> Iterator[tuple[Any, Any, int]]:
        """Channels of messages, the messages, and how many bytes of the file were read."""


@dataclass
class _Topic:
    name: str
    decoder: Decoder
    channels: list[tuple[int, int]]  # the file's index, the channel's id
    count: int | None
    told: int | None = None  # by the metadata of the bag, where no index tells the count
    looked: bool = False


class Bag:
    """A source of streams (``_source.Source``) out of the files of one bag."""

    def __init__(
        self,
        path: str,
        kind: str,
        files: Sequence[BagFile],
        damage: Damage,
        definitions: Mapping[str, str] | None,
        distribution: str | None = None,
        counts: Mapping[str, int] | None = None,
    ) -> None:
        self.path, self.kind, self.files, self.damage = path, kind, files, damage
        self.unit: str | None = "ns"
        self.unknown: list[LeftOut] = []
        self.topics: dict[str, _Topic] = {}
        for topic, number in (counts or {}).items():
            if number > 0 and self._types_of(topic) == 0:
                self._tell_count(path, topic, 0, number, "metadata.yaml tells of")
        types = Types(definitions)
        for (topic, typename, serialization), channels in self._declared().items():
            name = topic if self._types_of(topic) == 1 else f"{topic} ({typename})"
            first = self.files[channels[0][0]].channels[channels[0][1]]
            count, told = self._count(channels), None
            if count is None and name == topic:
                count = told = (counts or {}).get(topic)
            try:
                if serialization not in _SERIALIZATIONS:
                    raise ValueError(f"its messages are in {serialization!r}, which is not read")
                known = types.of(typename, first.definition_kind, first.definition, distribution)
            except ValueError as error:
                messages = "messages" if count is None else f"{count} messages"
                self.unknown.append(LeftOut(name, f"{messages} of {typename}: {error}"))
                continue
            decoder = Decoder(typename, known, serialization)
            self.topics[name] = _Topic(name, decoder, channels, count, told)

    def _declared(self) -> dict[tuple[str, str, str], list[tuple[int, int]]]:
        declared: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
        for number, file in enumerate(self.files):
            for _, channel in sorted(file.channels.items()):
                key = (channel.topic, normalized(channel.typename), channel.serialization)
                declared.setdefault(key, []).append((number, channel.id))
        return declared

    def _types_of(self, topic: str) -> int:
        return sum(name == topic for name, _, _ in self._declared())

    def _count(self, channels: list[tuple[int, int]]) -> int | None:
        total = 0
        for number, channel in channels:
            counts = self.files[number].counts
            if counts is None:
                return None
            total += counts.get(channel, 0)
        return total

    # ---- what a source is -----------------------------------------------------------------------

    @property
    def streams(self) -> dict[str, StreamInfo]:
        return {
            name: StreamInfo(name, topic.decoder.typename, topic.count, topic.decoder.names)
            for name, topic in self.topics.items()
        }

    @property
    def left_out(self) -> list[LeftOut]:
        """Topics that are not read, and fields that are no channels, as far as was read."""
        self.look()
        found = list(self.unknown)
        for name, topic in self.topics.items():
            for field, reason in topic.decoder.left_out():
                found.append(LeftOut(f"{name}: {field}" if field else name, reason))
        return found

    def look(self) -> None:
        """Read the first messages of topics whose channels are not known yet, within limits."""
        unknown = [
            topic
            for topic in self.topics.values()
            if topic.decoder.names is None and topic.count != 0 and not topic.looked
        ]
        # With an index to their chunks one by one, else in one pass from the begin.
        groups = [[topic] for topic in unknown] if self._are_indexed() else [unknown]
        for group in filter(None, groups):
            for topic in group:
                topic.looked = True
            left = _LOOK
            for _, size in self._blocks(group, shown=False):
                left -= size
                if left < 0 or all(topic.decoder.names is not None for topic in group):
                    break

    def _are_indexed(self) -> bool:
        return all(file.indexed for file in self.files)

    def pieces(self, names: Collection[str], shown: bool | None = None) -> Iterator[Piece]:
        for pieces, _ in self._blocks([self.topics[name] for name in names], shown):
            yield from pieces

    def _blocks(
        self, chosen: Sequence[_Topic], shown: bool | None
    ) -> Iterator[tuple[list[Piece], int]]:
        """What blocks of the files hold of some topics, and the size of each block."""
        for topic in chosen:
            topic.decoder.begin()
        all_seen: dict[tuple[int, int], int] = {}
        with progress(f"Reading {self.kind}", sum(f.size for f in self.files), shown) as read:
            for number, file in enumerate(self.files):
                wanted = {c for topic in chosen for n, c in topic.channels if n == number}
                before, seen = 0, dict.fromkeys(wanted, 0)
                for channels, rows, size in file.pieces(wanted) if wanted else ():
                    pieces: list[Piece] = []
                    for topic in chosen:
                        mask = _of_topic(channels, [c for n, c in topic.channels if n == number])
                        if mask.any():
                            _add(seen, channels[mask])
                            pieces += _pieces(topic, topic.decoder.feed(rows.of(mask)))
                    before += size
                    read(size)
                    yield pieces, size
                self._compare(file, seen)
                all_seen.update({(number, channel): count for channel, count in seen.items()})
                read(max(0, file.size - before))
        self._compare_with_metadata(chosen, all_seen)
        yield [piece for topic in chosen for piece in _pieces(topic, topic.decoder.flush())], 0

    def _compare(self, file: BagFile, seen: Mapping[int, int]) -> None:
        """The messages of a whole pass, with those that the index of the file tells of."""
        for channel, found in seen.items() if file.counts is not None else ():
            told = (file.counts or {}).get(channel, 0)
            topic = file.channels[channel].topic
            self._tell_count(file.path, topic, found, told, "the index tells of")

    def _compare_with_metadata(
        self, chosen: Sequence[_Topic], seen: Mapping[tuple[int, int], int]
    ) -> None:
        """The same of files without an index of messages, with what metadata.yaml tells of all."""
        for topic in chosen:
            if topic.told is not None:
                found = sum(seen[channel] for channel in topic.channels)
                self._tell_count(self.path, topic.name, found, topic.told, "metadata.yaml tells of")

    def _tell_count(self, path: str, topic: str, found: int, told: int, whose: str) -> None:
        if found < told:
            reason = f"has {found:,} of the {told:,} messages that {whose}: the others are lost"
            self.damage.found(path, f"topic {topic}", reason)
        elif found > told:
            reason = f"has {found:,} messages, but {whose} {told:,}"
            self.damage.note(path, f"topic {topic}", reason)


def _add(seen: dict[int, int], channels: Any) -> None:
    """Count messages by their channel."""
    import numpy as np

    for channel, count in zip(*np.unique(channels, return_counts=True)):
        seen[int(channel)] += int(count)


def _of_topic(channels: Any, own: Sequence[int]) -> Any:
    """Which messages are of one of some channels."""
    import numpy as np

    return channels == own[0] if len(own) == 1 else np.isin(channels, own)


def _pieces(topic: _Topic, decoded: list[Columns]) -> Iterator[Piece]:
    for columns in decoded:
        clocks = {"log": columns.log}
        if columns.header is not None:
            clocks["header"] = columns.header
        yield Piece(topic.name, columns.names, columns.values, clocks, columns.dtypes)
