"""The common part of all ROS bags: topics become streams, read in pieces."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Protocol

from ..._errors import Damage, FormatError, LeftOut, Unread, raise_shortage
from ..._file_access import Limit
from ..._findings import Finding
from ..._progress import progress
from ..._source import Piece, StreamInfo
from ..decompress import Budget, unpacked_messages
from ..messages.columns import Columns
from ..messages.decoders import Maker, Makers
from ..messages.pieces import Rows, present
from ..messages.ros_types import normalized
from ..messages.topics import AnyTopic, Hooks, Part, topic_of
from .mcap import Channel
from .unread import is_ros_topic, ros_topic_reason

if TYPE_CHECKING:
    from ..._frames.bags import RosFrames

_LOOK = 64 << 20  # bytes that may be read to find the channels of a topic
_LOOK_FOR_KEYS = 16 << 20  # bytes that are read to find the keys of topics
_FIELD = 16  # bytes that each field counts that is followed separately


class BagFile(Protocol):
    """One file of a bag, which has its topics and the places of their messages."""

    path: str
    size: int
    packed_size: int  # size on disk, if it is compressed as a whole
    indexed: bool  # whether pieces() reads only the chunks with the messages
    channels: dict[int, Channel]
    counts: dict[int, int] | None  # messages by channel, if known

    def pieces(self, wanted: Collection[int]) -> Iterator[tuple[Any, Any, int]]:
        """Yield channels of messages, the messages, and the number of bytes read.

        There may be messages of other channels among them. ``wanted`` may shrink meanwhile.
        """


@dataclass
class _Topic:
    name: str
    typename: str
    streams: AnyTopic
    channels: list[tuple[int, int]]  # the file's index, the channel's id
    count: int | None
    stated_count: int | None = None  # by the bag's metadata, if no index has the count
    looked: bool = False
    left: int = 0  # bytes of the files that may still be read to find its channels


@dataclass
class _Unknown:
    """A topic that is not read."""

    name: str
    typename: str
    channels: list[tuple[int, int]]
    count: int | None
    reason: str
    bytes: int | None = None


class _Infos(Mapping[str, StreamInfo]):
    """Stream infos of topics by name. ROS's own topics are found, but not listed."""

    def __init__(self, topics: Mapping[str, _Topic], unlisted: Collection[str]) -> None:
        self._places = {
            part.name: (topic, part, len(topic.streams.parts) == 1)
            for topic in topics.values()
            for part in topic.streams.parts
        }
        self._listed = [name for name, at in self._places.items() if at[0].name not in unlisted]

    def __getitem__(self, name: str) -> StreamInfo:
        topic, part, alone = self._places[name]
        count = part.count
        if count is None and alone and not topic.streams.of_elements:
            count = topic.count
        names, said = part.decoder.names, part.decoder.said
        return StreamInfo(name, topic.typename, count, names, said=said, static=part.static)

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)


class Bag:
    """A source of streams (``_source.Source``) from the files of one bag."""

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
        self.packed_size = sum(file.packed_size for file in files)
        self.followed = 0  # fields in one pass
        self.unit: str | None = "ns"
        self.unknown: list[_Unknown] = []
        self.on_request: set[str] = set()  # topics that are streams only on request
        self.notes: list[Finding] = []  # about the files
        self.unlisted_files: list[Unread] = []  # files that do not belong to the bag
        self._names: dict[str, int] = {}  # of topics, with the number of topics with that name
        self.topics: dict[str, _Topic] = {}
        self.reopen: Callable[[], Any] | None = None  # opens the bag in another process
        self._infos: _Infos | None = None
        self._looked_for_keys = False
        declared = self._declared()
        kinds = Counter(topic for topic, _, _ in declared)  # types by topic
        for topic, number in (counts or {}).items():
            if number > 0 and topic not in kinds:
                self._compare_counts(path, topic, 0, number, "metadata.yaml")
        makers = Makers(definitions, distribution, self._spend)
        for (topic, typename, serialization), channels in declared.items():
            name = topic if kinds[topic] == 1 else f"{topic} ({typename})"
            by_definition = self._by_definition(channels)
            known: dict[str, tuple[Maker | str, list[tuple[int, int]]]] = {}
            for definition, own in by_definition.items():
                found = self._maker(makers, typename, serialization, definition)
                # Definitions that differ only in comments are one.
                key = ""
                if len(by_definition) > 1:
                    key = found if isinstance(found, str) else found.fingerprint()
                known.setdefault(key, (found, []))[1].extend(own)
            for found, own in known.values():
                count_in_metadata = (
                    (counts or {}).get(topic) if name == topic and len(known) == 1 else None
                )
                self._add(name, typename, found, own, count_in_metadata)

    def _declared(self) -> dict[tuple[str, str, str], list[tuple[int, int]]]:
        declared: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
        for number, file in enumerate(self.files):
            for _, channel in sorted(file.channels.items()):
                key = (channel.topic, normalized(channel.typename), channel.serialization)
                declared.setdefault(key, []).append((number, channel.id))
        return declared

    def _by_definition(
        self, channels: list[tuple[int, int]]
    ) -> dict[tuple[str, str | bytes], list[tuple[int, int]]]:
        found: dict[tuple[str, str | bytes], list[tuple[int, int]]] = {}
        for number, channel in channels:
            definition = self.files[number].channels[channel]
            found.setdefault((definition.definition_kind, definition.definition), []).append(
                (number, channel)
            )
        return found

    def _maker(
        self,
        makers: Makers,
        typename: str,
        serialization: str,
        definition: tuple[str, str | bytes],
    ) -> Maker | str:
        """Return a maker of decoders for a topic's messages, or why they cannot be read."""
        try:
            return makers.maker(typename, serialization, *definition)
        except ValueError as error:
            raise_shortage(self.path)
            return str(error)

    def _add(
        self,
        name: str,
        typename: str,
        made: Maker | str,
        channels: list[tuple[int, int]],
        count_in_metadata: int | None,
    ) -> None:
        """Add a topic. If its name is used, as by another definition, it gets a number."""
        topic = name
        name = self._unique(name)
        count = self._count(channels)
        count_in_metadata = count_in_metadata if count is None else None
        count = count_in_metadata if count is None else count
        if is_ros_topic(topic, typename):
            self.on_request.add(name)
        if isinstance(made, str):
            self.unknown.append(_Unknown(name, typename, channels, count, made))
            return
        latched = all(self.files[number].channels[c].latched for number, c in channels)
        hooks = Hooks(self._spend, self._unique, self._forget_infos)
        streams = topic_of(name, made, hooks, latched)
        self.topics[name] = _Topic(name, typename, streams, channels, count, count_in_metadata)

    def _unique(self, name: str) -> str:
        """Return the name of a topic or stream, with a number if it is used already."""
        base = name
        while name in self._names:
            self._names[base] += 1
            name = f"{base} #{self._names[base]}"
        self._names[name] = 1
        return name

    def _spend(self, fields: int) -> None:
        """Count fields that were followed separately, which takes time, against the limit."""
        self.followed += fields
        followed = _FIELD * self.followed
        self.limit.require(self.path, "its strings and arrays", followed, self.packed_size)

    def _count(self, channels: list[tuple[int, int]]) -> int | None:
        total = 0
        for number, channel in channels:
            counts = self.files[number].counts
            if counts is None:
                return None
            total += counts.get(channel, 0)
        return total

    # ---- the interface of a source --------------------------------------------------------------

    @property
    def streams(self) -> Mapping[str, StreamInfo]:
        """Streams by name. Topics with keys are examined first."""
        self._look_for_keys()
        if self._infos is None:
            self._infos = _Infos(self.topics, self.on_request)
        return self._infos

    def _forget_infos(self) -> None:
        """Drop the cached infos, because the streams of a topic changed."""
        self._infos = None

    @property
    def left_out(self) -> list[LeftOut]:
        """Topics that are not read, and fields that are not channels, as far as read."""
        self.look()
        found = []
        for unknown in self.unknown:
            messages = "messages" if unknown.count is None else f"{unknown.count:,} messages"
            kind = f" of {unknown.typename}" if unknown.typename else ""
            found.append(LeftOut(unknown.name, f"{messages}{kind}: {unknown.reason}"))
        for name, topic in self.topics.items():
            if name in self.on_request:
                found.append(LeftOut(name, ros_topic_reason(name, topic.typename)))
                continue
            for part, field, reason in topic.streams.left_out():
                found.append(LeftOut(f"{part.name}: {field}" if field else part.name, reason))
        return found

    @property
    def unread(self) -> list[Unread]:
        """Topics whose messages were not read completely, as far as read."""
        self.look()
        self._count_unknown()
        found = [
            Unread(each.name, each.typename, each.count, each.bytes, each.reason)
            for each in self.unknown
            if each.count != 0 and each.name not in self.on_request
        ]
        for name, topic in self.topics.items():
            if name not in self.on_request and topic.count != 0:
                found += topic.streams.unread(topic.count)
        return found + self.unlisted_files

    def _count_unknown(self) -> None:
        """Count messages of topics that are not read, if their number is not known."""
        left = [each for each in self.unknown if each.count is None]
        for number, file in enumerate(self.files) if left else ():
            wanted = {channel for each in left for n, channel in each.channels if n == number}
            counts: dict[int, int] = dict.fromkeys(wanted, 0)
            sizes: dict[int, int] = dict.fromkeys(wanted, 0)
            for channels, rows, _ in file.pieces(set(wanted)) if wanted else ():
                for channel in present(channels):
                    if channel in wanted:
                        own = channels == channel
                        counts[channel] += int(own.sum())
                        sizes[channel] += int(rows.sizes[own].sum())
            for each in left:
                numbers = [channel for n, channel in each.channels if n == number]
                each.count = (each.count or 0) + sum(counts[channel] for channel in numbers)
                each.bytes = (each.bytes or 0) + sum(sizes[channel] for channel in numbers)

    @property
    def findings(self) -> list[Finding]:
        """Findings about files and keys, as far as read."""
        keys = [each for topic in self.topics.values() for each in topic.streams.findings()]
        return self.notes + keys

    def _look_for_keys(self) -> None:
        """Examine topics that may have several keys.

        If the file is damaged, the keys up to that place count; reading reports the damage.
        """
        if self._looked_for_keys:
            return
        self._looked_for_keys = True
        if any(t.streams.keyed and not t.looked and t.count != 0 for t in self.topics.values()):
            try:
                self.look()
            except FormatError:
                for topic in self.topics.values():
                    topic.looked = topic.streams.keyed and topic.looked
                    if topic.streams.keyed:
                        topic.streams.flush(False)

    def look(self) -> None:
        """Read the first messages of topics whose channels are not known yet, within limits.

        This is one pass for all of them, which skips chunks without such topics.
        """
        unknown = [
            topic
            for topic in self.topics.values()
            if not topic.streams.settled and topic.count != 0 and not topic.looked
        ]
        for topic in unknown:
            topic.looked = True
            topic.left = _LOOK
        if unknown:
            for _ in self._blocks(unknown, shown=False, looking=True):
                pass

    def pieces(self, names: Collection[str], shown: bool | None = None) -> Iterator[Piece]:
        """Yield samples of streams, including later keys of topics that are fully selected."""
        self._look_for_keys()
        wanted, known, given_whole, chosen = set(names), set(), [], []
        for topic in self.topics.values():
            own = {part.name for part in topic.streams.parts}
            known |= own
            if not own.isdisjoint(wanted):
                chosen.append(topic)
                given_whole += [f"{topic.name}/"] if own <= wanted else []
        late = tuple(given_whole)
        for pieces in self._blocks(chosen, shown):
            for piece in pieces:
                if piece.stream in wanted or (
                    piece.stream not in known and piece.stream.startswith(late)
                ):
                    yield piece

    def messages(self, names: Collection[str]) -> Iterator[tuple[str, str, Rows]]:
        """Yield the messages of topics without decoding them, in the order of the file.

        Each item has the name of the topic, the serialization ("cdr", "ros1", "protobuf", ...),
        and some of its messages.
        """
        of_file: list[dict[int, _Topic]] = [{} for _ in self.files]
        for name in names:
            for number, channel in self.topics[name].channels:
                of_file[number][channel] = self.topics[name]
        budget = Budget(self.limit, self.path, self.packed_size)
        for file, topics in zip(self.files, of_file):
            for channels, rows, _ in file.pieces(set(topics)) if topics else ():
                for topic, rows_of_topic in _by_topic(channels, topics, {}):
                    own = rows if rows_of_topic is None else rows.select(rows_of_topic)
                    if topic.streams.may_be_packed:
                        own, _ = unpacked_messages(own, budget)
                    first = file.channels[next(c for c, t in topics.items() if t is topic)]
                    yield topic.name, first.serialization, own

    @functools.cached_property
    def cameras(self) -> Mapping[str, RosFrames]:
        """The topics of images."""
        from ..._frames.bags import cameras_of

        return cameras_of(self)

    def image_topics(self) -> Mapping[str, tuple[str, list[tuple[int, int]]]]:
        """Return the type and the channels of topics of images, also of unknown definitions."""
        from ..._frames.bags import TYPES

        found = [(topic.name, topic.typename, topic.channels) for topic in self.topics.values()]
        found += [(each.name, each.typename, each.channels) for each in self.unknown]
        return {name: (kind, channels) for name, kind, channels in found if kind in TYPES}

    def unpacked(self, rows: Rows) -> Rows:
        """Unpack messages that may be compressed singly."""
        made, failed = unpacked_messages(rows, Budget(self.limit, self.path, self.packed_size))
        for reason, sizes in failed.items():
            raise FormatError(self.path, "messages", f"{len(sizes)} cannot be read: {reason}")
        return made

    def _blocks(
        self, chosen: Sequence[_Topic], shown: bool | None, looking: bool = False
    ) -> Iterator[list[Piece]]:
        """Read the messages of some topics, block by block.

        With ``looking``, a topic is done once its channels are known or enough was read for it. A
        topic whose frame has changed is read until the frame comes back, or to the end.
        """
        self.followed = 0
        of_file: list[dict[int, _Topic]] = [{} for _ in self.files]
        for topic in chosen:
            topic.streams.begin(looking)
            topic.looked = True
            for number, channel in topic.channels:
                of_file[number][channel] = topic
        all_seen: dict[tuple[int, int], int] = {}
        done: set[str] = set()
        decoded, unindexed, looked = 0, 0, 0
        budget = Budget(self.limit, self.path, self.packed_size)  # for compressed messages
        with progress(f"Reading {self.kind}", self.size, shown) as read:
            for number, file in enumerate(self.files):
                topics = of_file[number]
                wanted = {c for c, topic in topics.items() if topic.name not in done}
                before, seen = 0, dict.fromkeys(wanted, 0)
                for channels, rows, size in file.pieces(wanted) if wanted else ():
                    pieces: list[Piece] = []
                    for topic, rows_of_topic in _by_topic(channels, topics, seen):
                        if topic.name in done:
                            continue
                        own = rows if rows_of_topic is None else rows.select(rows_of_topic)
                        if topic.streams.may_be_packed:
                            own, failed = unpacked_messages(own, budget)
                            for reason, sizes in failed.items():
                                topic.streams.fail(reason, sizes)
                        pieces += _pieces(topic.streams.feed(own))
                        topic.left -= size if file.indexed else 0
                        enough = topic.left < 0 and not topic.streams.undecided
                        if looking and (topic.streams.settled or enough):
                            done.add(topic.name)
                            wanted.difference_update(c for n, c in topic.channels if n == number)
                    unindexed += 0 if file.indexed else size
                    looked += size
                    for topic in chosen if looking and looked > _LOOK_FOR_KEYS else ():
                        if topic.name in done or topic.streams.undecided:
                            continue
                        if topic.streams.keyed or unindexed > _LOOK:
                            done.add(topic.name)
                            wanted.difference_update(c for n, c in topic.channels if n == number)
                    before += size
                    read(size)
                    if not looking:
                        decoded += sum(piece.values.nbytes for piece in pieces)
                        self.limit.require(self.path, "its values", decoded, self.packed_size)
                    yield pieces
                    if not wanted:
                        break
                self._compare(file, {c: n for c, n in seen.items() if c in wanted})
                all_seen.update({(number, channel): count for channel, count in seen.items()})
                read(max(0, file.size - before))
        left = [topic for topic in chosen if topic.name not in done]
        self._compare_with_metadata(left, all_seen)
        for topic in left:
            if topic.count is None:
                topic.count = sum(all_seen.get(channel, 0) for channel in topic.channels)
        yield [piece for topic in left for piece in _pieces(topic.streams.flush(True))]
        for topic in chosen if looking else ():
            if topic.streams.keyed and topic.name in done:
                topic.streams.flush(False)

    def _compare(self, file: BagFile, seen: Mapping[int, int]) -> None:
        """Compare the messages of a complete pass with the counts in the file's index."""
        for channel, found in seen.items() if file.counts is not None else ():
            stated = (file.counts or {}).get(channel, 0)
            topic = file.channels[channel].topic
            self._compare_counts(file.path, topic, found, stated, "the index")

    def _compare_with_metadata(
        self, chosen: Sequence[_Topic], seen: Mapping[tuple[int, int], int]
    ) -> None:
        """Compare the same for files without an index with the counts in metadata.yaml."""
        for topic in chosen:
            if topic.stated_count is not None:
                found = sum(seen[channel] for channel in topic.channels)
                self._compare_counts(
                    self.path, topic.name, found, topic.stated_count, "metadata.yaml"
                )

    def _compare_counts(self, path: str, topic: str, found: int, stated: int, whose: str) -> None:
        text = f"{found:,} messages found, {whose} says {stated:,}"
        if found < stated:
            if any(file.path.endswith(".db3") for file in self.files):
                text += ". A .db3-wal file next to the .db3 file may be missing"
            self.damage.found(path, f"topic {topic}", text)
        elif found > stated:
            self.damage.note(path, f"topic {topic}", text)


def _by_topic(
    channels: Any, topics: Mapping[int, _Topic], seen: dict[int, int]
) -> Iterator[tuple[_Topic, Any]]:
    """Yield the topics of messages with the indices of their messages; None: all.

    It also counts messages by their channel.
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


def _pieces(decoded: list[tuple[Part, Columns]]) -> Iterator[Piece]:
    for part, columns in decoded:
        clocks = {"log": columns.log}
        if columns.header is not None:
            clocks["header"] = columns.header
        yield Piece(
            part.name,
            columns.names,
            columns.values,
            clocks,
            columns.dtypes,
            part.decoder.said,
        )
