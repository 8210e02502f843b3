"""What ROS bags of all kinds share: topics become streams, read piece by piece."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ._columns import Columns, Decoder
from ._errors import Damage, LeftOut, Unread, raise_shortage
from ._files import Limit
from ._mcap import Channel
from ._messages import present
from ._progress import progress
from ._ros_types import Types, fingerprint, normalized
from ._source import Piece, StreamInfo

_SERIALIZATIONS = ("cdr", "ros1")
_LOOK = 64 << 20  # bytes
_FIELD = 16  # bytes that a field counts as which is followed by itself


class BagFile(Protocol):
    """One file of a bag, which knows its topics and where their messages are."""

    path: str
    size: int
    indexed: bool  # whether pieces reads no more than the chunks with the messages
    channels: dict[int, Channel]
    counts: dict[int, int] | None  # messages by channel, where that is known

    def pieces(self, wanted: Collection[int]) -> Iterator[tuple[Any, Any, int]]:
        """Channels of messages, the messages, and how many bytes of the file were read.

        There may be messages of other channels among them. A set may lose members meanwhile.
        """


@dataclass
class _Topic:
    name: str
    decoder: Decoder
    channels: list[tuple[int, int]]  # the file's index, the channel's id
    count: int | None
    told: int | None = None  # by the metadata of the bag, where no index tells the count
    looked: bool = False
    left: int = 0  # bytes of the files that may still be read to find its channels


class _Infos(Mapping[str, StreamInfo]):
    """The stream infos of topics, by name."""

    def __init__(self, topics: Mapping[str, _Topic]) -> None:
        self._topics = topics

    def __getitem__(self, name: str) -> StreamInfo:
        topic = self._topics[name]
        return StreamInfo(name, topic.decoder.typename, topic.count, topic.decoder.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._topics)

    def __len__(self) -> int:
        return len(self._topics)


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
        limit: Limit | None = None,
    ) -> None:
        self.path, self.kind, self.files, self.damage = path, kind, files, damage
        self.limit = limit or Limit()
        self.size = sum(file.size for file in files)
        self.followed = 0  # fields of one pass
        self.unit: str | None = "ns"
        self.unknown: list[LeftOut] = []
        self._names: dict[str, int] = {}  # of topics, with how many have that name
        self.topics: dict[str, _Topic] = {}
        declared = self._declared()
        kinds = Counter(topic for topic, _, _ in declared)  # types by topic
        for topic, number in (counts or {}).items():
            if number > 0 and topic not in kinds:
                self._tell_count(path, topic, 0, number, "metadata.yaml tells of")
        types = Types(definitions)
        for (topic, typename, serialization), channels in declared.items():
            name = topic if kinds[topic] == 1 else f"{topic} ({typename})"
            by_definition = self._by_definition(channels)
            known: dict[str, tuple[dict[str, Any] | str, list[tuple[int, int]]]] = {}
            for definition, own in by_definition.items():
                found = self._types(types, typename, serialization, definition, distribution)
                # Definitions that differ in comments are one.
                key = fingerprint(typename, found) if len(by_definition) > 1 else ""
                known.setdefault(key, (found, []))[1].extend(own)
            for found, own in known.values():
                told = (counts or {}).get(topic) if name == topic and len(known) == 1 else None
                self._add(name, typename, serialization, found, own, told)

    def _declared(self) -> dict[tuple[str, str, str], list[tuple[int, int]]]:
        declared: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
        for number, file in enumerate(self.files):
            for _, channel in sorted(file.channels.items()):
                key = (channel.topic, normalized(channel.typename), channel.serialization)
                declared.setdefault(key, []).append((number, channel.id))
        return declared

    def _by_definition(
        self, channels: list[tuple[int, int]]
    ) -> dict[tuple[str, str], list[tuple[int, int]]]:
        found: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for number, channel in channels:
            of = self.files[number].channels[channel]
            found.setdefault((of.definition_kind, of.definition), []).append((number, channel))
        return found

    def _types(
        self,
        types: Types,
        typename: str,
        serialization: str,
        definition: tuple[str, str],
        distribution: str | None,
    ) -> dict[str, Any] | str:
        """The types of a topic's messages, or why they cannot be read."""
        if serialization not in _SERIALIZATIONS:
            return f"its messages are in {serialization!r}, which is not read"
        if not typename:
            return "its channel has no schema"
        try:
            return types.of(typename, *definition, distribution)
        except ValueError as error:
            raise_shortage(self.path)
            return str(error)

    def _add(
        self,
        name: str,
        typename: str,
        serialization: str,
        types: dict[str, Any] | str,
        channels: list[tuple[int, int]],
        told: int | None,
    ) -> None:
        """Add a topic. One whose name is taken, as by another definition, gets a number."""
        base = name
        while name in self._names:
            self._names[base] += 1
            name = f"{base} #{self._names[base]}"
        self._names[name] = 1
        count = self._count(channels)
        told = told if count is None else None
        count = told if count is None else count
        if isinstance(types, str):
            messages = "messages" if count is None else f"{count} messages"
            of = f"{messages} of {typename}" if typename else messages
            self.unknown.append(LeftOut(name, f"{of}: {types}"))
            return
        decoder = Decoder(typename, types, serialization, self._spend)
        self.topics[name] = _Topic(name, decoder, channels, count, told)

    def _spend(self, fields: int) -> None:
        """Count fields that were followed one by one, which takes time, against the limit."""
        self.followed += fields
        followed = _FIELD * self.followed
        self.limit.require(self.path, "its strings and arrays", followed, self.size)

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
    def streams(self) -> Mapping[str, StreamInfo]:
        return _Infos(self.topics)

    @property
    def left_out(self) -> list[LeftOut]:
        """Topics that are not read, and fields that are no channels, as far as was read."""
        self.look()
        found = list(self.unknown)
        for name, topic in self.topics.items():
            for field, reason in topic.decoder.left_out():
                found.append(LeftOut(f"{name}: {field}" if field else name, reason))
        return found

    @property
    def unread(self) -> list[Unread]:
        return []

    def look(self) -> None:
        """Read the first messages of topics whose channels are not known yet, within limits.

        It is one pass for all of them, past chunks that have none of those that are left.
        """
        unknown = [
            topic
            for topic in self.topics.values()
            if topic.decoder.names is None and topic.count != 0 and not topic.looked
        ]
        for topic in unknown:
            topic.looked = True
            topic.left = _LOOK
        if unknown:
            for _ in self._blocks(unknown, shown=False, looking=True):
                pass

    def pieces(self, names: Collection[str], shown: bool | None = None) -> Iterator[Piece]:
        for pieces in self._blocks([self.topics[name] for name in names], shown):
            yield from pieces

    def _blocks(
        self, chosen: Sequence[_Topic], shown: bool | None, looking: bool = False
    ) -> Iterator[list[Piece]]:
        """Read the messages of some topics, block by block.

        With ``looking``, a topic is done once its channels are known or enough was read for it.
        """
        self.followed = 0
        of_file: list[dict[int, _Topic]] = [{} for _ in self.files]
        for topic in chosen:
            topic.decoder.begin()
            topic.looked = True
            for number, channel in topic.channels:
                of_file[number][channel] = topic
        all_seen: dict[tuple[int, int], int] = {}
        done: set[str] = set()
        decoded, unindexed = 0, 0
        with progress(f"Reading {self.kind}", self.size, shown) as read:
            for number, file in enumerate(self.files):
                topics = of_file[number]
                wanted = {c for c, topic in topics.items() if topic.name not in done}
                before, seen = 0, dict.fromkeys(wanted, 0)
                for channels, rows, size in file.pieces(wanted) if wanted else ():
                    pieces: list[Piece] = []
                    for topic, which in _by_topic(channels, topics, seen):
                        if topic.name in done:
                            continue
                        own = rows if which is None else rows.of(which)
                        pieces += _pieces(topic, topic.decoder.feed(own))
                        topic.left -= size if file.indexed else 0
                        if looking and (topic.decoder.names is not None or topic.left < 0):
                            done.add(topic.name)
                            wanted.difference_update(c for n, c in topic.channels if n == number)
                    unindexed += 0 if file.indexed else size
                    if looking and unindexed > _LOOK:
                        done.update(topic.name for topic in chosen)
                        wanted.clear()
                    before += size
                    read(size)
                    if not looking:
                        decoded += sum(piece.values.nbytes for piece in pieces)
                        self.limit.require(self.path, "its values", decoded, self.size)
                    yield pieces
                    if not wanted:
                        break
                self._compare(file, {c: n for c, n in seen.items() if c in wanted})
                all_seen.update({(number, channel): count for channel, count in seen.items()})
                read(max(0, file.size - before))
        left = [topic for topic in chosen if topic.name not in done]
        self._compare_with_metadata(left, all_seen)
        yield [piece for topic in left for piece in _pieces(topic, topic.decoder.flush())]

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


def _by_topic(
    channels: Any, topics: Mapping[int, _Topic], seen: dict[int, int]
) -> Iterator[tuple[_Topic, Any]]:
    """The topics of messages, each with the indices of its messages; None: all.

    It counts messages by their channel.
    """
    import numpy as np

    there = present(channels)
    if len(there) == 1:
        if there[0] in topics:
            seen[there[0]] = seen.get(there[0], 0) + len(channels)
            yield topics[there[0]], None
        return
    order = np.argsort(channels, kind="stable")
    ends = np.searchsorted(channels[order], np.array(there), "right").tolist()
    of_topic: dict[str, list[Any]] = {}
    for channel, begin, end in zip(there, [0, *ends], ends):
        if channel in topics:
            seen[channel] = seen.get(channel, 0) + end - begin
            of_topic.setdefault(topics[channel].name, []).append(order[begin:end])
    of_name = {topics[channel].name: topics[channel] for channel in there if channel in topics}
    for name, parts in of_topic.items():
        yield of_name[name], parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))


def _pieces(topic: _Topic, decoded: list[Columns]) -> Iterator[Piece]:
    for columns in decoded:
        clocks = {"log": columns.log}
        if columns.header is not None:
            clocks["header"] = columns.header
        yield Piece(topic.name, columns.names, columns.values, clocks, columns.dtypes)
