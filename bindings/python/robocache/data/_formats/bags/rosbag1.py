"""ROS 1 bags: chunks of records, and an index at the end; without it, all records are scanned."""

from __future__ import annotations

import functools
import itertools
import os
import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

from ..._errors import Damage, FormatError, needed
from ..._file_access import Limit, head, opened
from ..._options import Options
from ..._recording import Recording
from ..decompress import Budget, CannotUnpack, ahead, decompressed
from ..description import Format
from ..messages.pieces import Rows, present
from ..messages.ros_types import normalized
from .bag import Bag
from .mcap import AT_ONCE, LONGEST_NAME, Channel, broken_off

MAGIC = b"#ROSBAG V"
_START = b"#ROSBAG V2.0\n"
_MESSAGE, _HEADER, _INDEX, _CHUNK, _CHUNK_INFO, _CONNECTION = range(2, 8)
_U32 = struct.Struct("<I")
_LONGEST_HEAD = LONGEST_NAME + 4096  # bytes
_MOST_CONNECTIONS = 1 << 16
_MOST_KINDS = 8  # kinds of heads of one size that are compared at once
_WIDTHS = {"op": 1, "conn": 4, "time": 8}  # bytes of the fields of a message's head


FORMAT = Format(
    name="ros1",
    title="ROS 1 bag",
    files="*.bag",
    reads="One stream per topic, or per frame or set of joints if a topic has several. Fields of "
    "messages become channels named by their paths, such as pose.orientation.x; quaternions and "
    "angles are known by the message type. Header stamps and log times are kept, in ns. Chunks may "
    "be compressed with bz2 or lz4.",
    refuses="Images, point clouds, texts, and arrays of more than 2048 elements or of changing "
    "length are listed in left_out or unread. Bags of versions 1.x are refused: rosbag fix "
    "converts them.",
    package="rosbags",
    extra="ros",
    example='recording = rbc.data.open("drive.bag")',
)


def sniff(path: str) -> bool:
    return head(path, len(MAGIC)) == MAGIC


def open(path: str, options: Options) -> Recording:
    needed("rosbags", "ros", "a ROS bag")
    bag = Bag(
        path,
        "ROS 1 bag",
        [Ros1(path, options.damage, options.limit)],
        options.damage,
        options.definitions,
        limit=options.limit,
    )
    bag.reopen = functools.partial(open, path, options)
    return Recording(bag, progress=options.progress)


@dataclass(frozen=True)
class _Chunk:
    record: int  # offset
    at: int  # offset of its data
    size: int
    compression: str
    unpacked: int
    channels: frozenset[int] | None  # None: not known
    whole: bool = True
    begin: tuple[int, int] = (0, 0)  # log time of its first message: s, ns


class _Unreadable(Exception):
    """An index cannot be read."""


class Ros1:
    """One file. Only its index is in memory."""

    def __init__(self, path: str, damage: Damage, limit: Limit | None = None) -> None:
        self.path, self.damage, self.limit = path, damage, limit or Limit()
        self.size = self.packed_size = os.path.getsize(path)
        self.channels: dict[int, Channel] = {}
        self.unclear: set[int] = set()  # connections with conflicting declarations
        self.counts: dict[int, int] | None = None
        self.chunks: list[_Chunk] = []
        self.indexed = True
        with opened(path) as file:
            if file.read(len(_START)) != _START:
                raise FormatError(path, "byte 0", "is not a bag of version 2.0")
            if not self._read_index(file):
                self._walk(file)
        for number in self.unclear:
            self.channels.pop(number, None)
        known = frozenset(self.channels)
        # Chunks with undeclared messages are read in each pass, which counts these messages.
        self.chunks = [
            replace(chunk, channels=None) if chunk.channels and chunk.channels - known else chunk
            for chunk in self.chunks
        ]
        self.chunks.sort(key=lambda chunk: chunk.begin)  # merged files have them in any order

    # ---- the index ------------------------------------------------------------------------------

    def _read_index(self, file: BinaryIO) -> bool:
        """Whether there is an index at the end that agrees with the file."""
        place = f"byte {len(_START)}"
        header = self._record(file, len(_START))
        if header is None or header[0].get("op") != bytes([_HEADER]):
            self.damage.found(self.path, place, "has no bag header")
            return False
        fields, begin, size = header
        try:
            (index,) = struct.unpack("<Q", fields["index_pos"])
            connections, chunks = (_number(fields, key) for key in ("conn_count", "chunk_count"))
        except (KeyError, struct.error) as error:
            self.damage.found(self.path, place, f"the header of the bag {_fault(error)}")
            return False
        if index == 0 or index > self.size:
            self.damage.found(
                self.path,
                "its header",
                "the bag has no index: the recorder did not close it (.bag.active), or the copy "
                "is incomplete. rosbag reindex repairs it",
            )
            return False
        try:
            found = self._follow(file, begin + size, index)
            self.counts = self._parsed(file, index, connections, chunks, found)
        except _Unreadable as error:
            self.damage.found(self.path, f"byte {index}", str(error))
            return False
        return True

    def _follow(self, file: BinaryIO, at: int, end: int) -> dict[int, dict[int, int] | None]:
        """Return the chunks of the file by offset, each with its messages by connection.

        The message indexes after a chunk count its messages; None without such records.
        """
        found: dict[int, dict[int, int] | None] = {}
        last = -1
        while at < end:
            record = self._record(file, at)
            if record is None or record[1] + record[2] > end:
                raise _Unreadable(
                    f"the index begins here, but the record at byte {at}, before it, is truncated "
                    "or damaged"
                )
            fields, begin, size = record
            op = fields.get("op", b"")
            try:
                if op == bytes([_CHUNK]):
                    self._chunk(file, at, None)
                    found[at], last = None, at
                elif op == bytes([_INDEX]) and last >= 0:
                    counts = found[last] or {}
                    number = _number(fields, "conn")
                    counts[number] = counts.get(number, 0) + _number(fields, "count")
                    found[last] = counts
                elif op == bytes([_CONNECTION]):
                    self._connection(file, at)
                elif op == bytes([_MESSAGE]):
                    self.damage.found(self.path, f"byte {at}", "has a message outside of chunks")
            except (KeyError, struct.error, IndexError) as error:
                raise _Unreadable(f"the record at byte {at} {_fault(error)}") from None
            at = begin + size
        return found

    def _parsed(
        self,
        file: BinaryIO,
        at: int,
        connections: int,
        chunks: int,
        found: dict[int, dict[int, int] | None],
    ) -> dict[int, int]:
        """Return the messages by connection from the index; raise if it disagrees with the file."""
        counts: dict[int, int] = {}
        listed: dict[int, frozenset[int]] = {}
        begins: dict[int, tuple[int, int]] = {}
        try:
            for _ in range(connections):
                at = self._connection(file, at)
            for _ in range(chunks):
                record = self._record(file, at)
                if record is None or record[0]["op"][0] != _CHUNK_INFO:
                    raise KeyError("op")
                fields, begin, size = record
                file.seek(begin)
                own: dict[int, int] = {}
                for number, count in struct.iter_unpack("<II", file.read(min(size, self.size))):
                    own[number] = own.get(number, 0) + count
                (place,) = struct.unpack("<Q", fields["chunk_pos"])
                if place in listed:
                    raise _Unreadable(f"its index lists the chunk at byte {place} several times")
                if place not in found:
                    raise _Unreadable(f"its index lists a chunk at byte {place}, but there is none")
                if found[place] not in (None, own):
                    raise _Unreadable(
                        f"its index and the chunk at byte {place} state different numbers of "
                        "messages"
                    )
                listed[place] = frozenset(own)
                begins[place] = _time(fields.get("start_time", b""))
                for number, count in own.items():
                    counts[number] = counts.get(number, 0) + count
                at = begin + size
        except (KeyError, struct.error, IndexError) as error:
            raise _Unreadable(f"the record of its index at byte {at} {_fault(error)}") from None
        left_out = found.keys() - listed.keys()
        if left_out:
            raise _Unreadable(f"its index omits the chunk at byte {min(left_out)}")
        if at != self.size:
            raise _Unreadable(f"its index ends at byte {at}, but the file has {self.size} bytes")
        self.chunks = [
            replace(chunk, channels=listed[chunk.record], begin=begins[chunk.record])
            for chunk in self.chunks
        ]
        return counts

    def _walk(self, file: BinaryIO) -> None:
        """Scan all records: chunks, and the connections in them."""
        self.channels, self.chunks, self.counts = {}, [], None
        self.unclear = set()
        budget = Budget(self.limit, self.path, self.size)
        at = len(_START)
        while at < self.size:
            record = self._record(file, at)
            if record is None:
                self.damage.found(
                    self.path, f"byte {at}", "the file is truncated within the record here"
                )
                return
            fields, begin, size = record
            try:
                self._take(file, at, fields.get("op", b""), budget)
            except (KeyError, struct.error, IndexError) as error:
                self.damage.found(self.path, f"byte {at}", f"the record here {_fault(error)}")
            at = begin + size
        if at > self.size:
            self.damage.found(
                self.path, f"byte {self.size}", "the file is truncated within the record here"
            )

    def _take(self, file: BinaryIO, at: int, op: bytes, budget: Budget) -> None:
        """Take topics and messages from a record."""
        if op == bytes([_CONNECTION]):
            self._connection(file, at)
        elif op == bytes([_CHUNK]):
            self._chunk(file, at, None)
            chunk = self.chunks.pop()
            (content,) = self._contents(map(_unpacked, _packed(file, [chunk], budget)), budget)
            if content[1] is not None:
                seen, time = self._look_into(chunk, content[1], budget)
                self.chunks.append(replace(chunk, channels=seen, begin=time))
        elif op == bytes([_MESSAGE]):
            self.damage.found(self.path, f"byte {at}", "has a message outside of chunks")

    def _record(self, file: BinaryIO, at: int) -> tuple[dict[str, bytes], int, int] | None:
        """Return the fields of a record's head, the offset of its data, and their size."""
        if at > self.size:  # from a damaged index: the offset may be impossible
            return None
        file.seek(at)
        start = file.read(4)
        if len(start) < 4:
            return None
        (size,) = _U32.unpack(start)
        text = file.read(size + 4) if size <= min(self.size - at, _LONGEST_HEAD) else b""
        if len(text) < size + 4:
            return None
        return _fields(text[:size]), at + 8 + size, _U32.unpack_from(text, size)[0]

    def _connection(self, file: BinaryIO, at: int) -> int:
        record = self._record(file, at)
        if record is None:
            raise KeyError("op")
        fields, begin, size = record
        file.seek(begin)
        self._declare(fields, file.read(min(size, self.size)))
        return begin + size

    def _declare(self, fields: dict[str, bytes], data: bytes) -> None:
        """Take a connection. Another declaration of the same number must agree with it."""
        fields_of_data = _fields(data)
        number = _number(fields, "conn")
        topic = fields["topic"].decode("utf-8", "replace")
        topic = ("/" if topic.startswith("/") else "") + "/".join(filter(None, topic.split("/")))
        name = normalized(fields_of_data["type"][:LONGEST_NAME].decode("utf-8", "replace"))
        definition = fields_of_data.get("message_definition", b"").decode("utf-8", "replace")
        latched = fields_of_data.get("latching") == b"1"
        channel = Channel(number, topic, name, "ros1msg", definition, "ros1", latched)
        known = self.channels.setdefault(number, channel)
        if known != channel and number not in self.unclear:
            self.unclear.add(number)
            how = f"is declared as {known.topic!r} and as {topic!r}"
            if known.topic == topic:
                how = f"{topic!r}, is declared as {known.typename!r} and as {name!r}"
            self.damage.found(self.path, f"connection {number}", f"{how}: its messages are skipped")
        if len(self.channels) > _MOST_CONNECTIONS:
            reason = f"declares more than {_MOST_CONNECTIONS:,} connections"
            raise FormatError(self.path, "connections", reason)

    def _chunk(self, file: BinaryIO, at: int, channels: frozenset[int] | None) -> None:
        record = self._record(file, at)
        if record is None or record[0].get("op") != bytes([_CHUNK]):
            raise KeyError("op")
        fields, begin, size = record
        compression = fields["compression"].decode("ascii", "replace")
        left = max(0, self.size - begin)
        unpacked = _number(fields, "size")
        whole = size <= left
        size = min(size, left)
        self.chunks.append(_Chunk(at, begin, size, compression, unpacked, channels, whole))

    def _look_into(
        self, chunk: _Chunk, content: bytes, budget: Budget
    ) -> tuple[frozenset[int] | None, tuple[int, int]]:
        """Take connections of a chunk; return the connections and the begin of its messages."""
        seen = set()
        begin: tuple[int, int] | None = None
        for count, (at, size, data, length) in enumerate(_records(content), 1):
            if count % AT_ONCE == 0:
                budget.charge(f"chunk at byte {chunk.at}", AT_ONCE, 0)
            fields = _fields(content[at : at + size])
            op = fields.get("op")
            try:
                if op == bytes([_CONNECTION]):
                    self._declare(fields, content[data : data + length])
                elif op == bytes([_MESSAGE]):
                    seen.add(fields["conn"])
                    time = _time(fields.get("time", b""))
                    begin = time if begin is None else min(begin, time)
            except (KeyError, struct.error, IndexError):
                self.damage.found(self.path, "a connection", "cannot be read")
        if any(len(number) != 4 for number in seen):
            return None, begin or (0, 0)
        return frozenset(_U32.unpack(number)[0] for number in seen), begin or (0, 0)

    # ---- messages -------------------------------------------------------------------------------

    def pieces(
        self, wanted: Collection[int], chunks: Sequence[_Chunk] | None = None
    ) -> Iterator[tuple[Any, Any, int]]:
        """Yield messages of some connections, and others in the same chunks, and bytes read.

        ``wanted`` may shrink meanwhile: chunks without wanted connections are skipped. ``chunks``:
        only some of the file's.
        """
        budget = Budget(self.limit, self.path, self.size)
        strange: dict[int, int] = {}
        late: dict[int, int] = {}
        with opened(self.path) as file:
            chosen = (
                chunk
                for chunk in (self.chunks if chunks is None else chunks)
                if chunk.channels is None or not chunk.channels.isdisjoint(wanted)
            )
            packed = _packed(file, chosen, budget)
            # bz2 takes longer than everything else, and lets other threads run.
            slow = any(chunk.compression == "bz2" for chunk in self.chunks)
            unpacked = ahead(_unpacked, packed) if slow else map(_unpacked, packed)
            for chunk, content in self._contents(unpacked, budget):
                read = chunk.size
                for channels, rows, nanoseconds in self._messages(chunk, content or b"", budget):
                    for number in present(channels):
                        if number not in self.channels:
                            _add(strange, number, channels == number)
                    right = nanoseconds < 1_000_000_000
                    if not right.all():
                        for number in present(channels[~right]):
                            _add(late, number, channels[~right] == number)
                        channels, rows = channels[right], rows.select(right)
                    yield channels, rows, read
                    read = 0
        for number, count in sorted(strange.items()):
            reason = (
                f"has {count:,} messages, but its declaration is missing or unclear: "
                "they are skipped"
            )
            self.damage.found(self.path, f"connection {number}", reason)
        for number, count in sorted(late.items()):
            if number in self.channels:
                place = f"topic {self.channels[number].topic}"
                reason = f"{count:,} messages have log times of 10**9 nanoseconds or more"
                self.damage.found(self.path, place, f"{reason} in a second: they are skipped")

    def _messages(
        self, chunk: _Chunk, content: bytes, budget: Budget
    ) -> Iterator[tuple[Any, Rows, Any]]:
        """Yield all messages of a chunk with connections, and the nanoseconds of their times."""
        import numpy as np

        data = np.frombuffer(content, np.uint8)
        records = _records(content)
        end = 0
        while True:
            flat = itertools.chain.from_iterable(itertools.islice(records, AT_ONCE))
            table = np.fromiter(flat, np.int64).reshape(-1, 4)
            if not len(table):
                break
            end = int(table[-1, 2] + table[-1, 3])
            budget.charge(f"chunk at byte {chunk.at}", len(table), end - int(table[0, 0]))
            numbers = np.zeros((len(table), 3), np.uint32)  # connection, s, ns
            kept = np.zeros(len(table), bool)
            for size in np.unique(table[:, 1]).tolist():
                own = np.flatnonzero(table[:, 1] == size)
                heads = Rows(data, table[own, 0], table[own, 1], own)
                for places, heads_like in _by_head(heads, content):
                    like_heads = Rows(
                        data, table[own[heads_like], 0], own[heads_like], own[heads_like]
                    )
                    numbers[own[heads_like], 0] = like_heads.field(places["conn"], "<u4")
                    numbers[own[heads_like], 1] = like_heads.field(places["time"], "<u4")
                    numbers[own[heads_like], 2] = like_heads.field(places["time"] + 4, "<u4")
                    kept[own[heads_like]] = True
            table, numbers = table[kept], numbers[kept]
            times = numbers[:, 1].astype(np.int64) * 1_000_000_000 + numbers[:, 2]
            yield numbers[:, 0], Rows(data, table[:, 2], table[:, 3], times), numbers[:, 2]
        if chunk.whole and end != len(content):
            self.damage.found(self.path, f"chunk at byte {chunk.at}", broken_off(end, len(content)))

    def _contents(
        self, unpacked: Iterable[tuple[_Chunk, bytes | CannotUnpack]], budget: Budget
    ) -> Iterator[tuple[_Chunk, bytes | None]]:
        """Yield chunks with their contents; None for damaged chunks."""
        for chunk, content in unpacked:
            place = f"chunk at byte {chunk.at}"
            if isinstance(content, CannotUnpack):
                budget.correct(chunk.unpacked, content)
                reason = f"{content}: its messages are skipped" if chunk.whole else "is truncated"
                self.damage.found(self.path, place, reason)
                yield chunk, None
                continue
            if not chunk.whole:
                self.damage.found(self.path, place, "is truncated")
            yield chunk, content


def _packed(
    file: BinaryIO, chunks: Iterable[_Chunk], budget: Budget
) -> Iterator[tuple[_Chunk, bytes | CannotUnpack]]:
    """Yield chunks with their packed data, as far as the budget allows unpacking them."""
    for chunk in chunks:
        file.seek(chunk.at)
        content = file.read(chunk.size)
        if chunk.whole or chunk.compression != "none":
            try:
                budget.spend(
                    f"chunk at byte {chunk.at}", content, chunk.compression, chunk.unpacked
                )
            except CannotUnpack as error:
                yield chunk, error
                continue
        yield chunk, content


def _unpacked(
    packed: tuple[_Chunk, bytes | CannotUnpack],
) -> tuple[_Chunk, bytes | CannotUnpack]:
    """Unpack a chunk, or return why it is lost; a truncated one is used if not compressed."""
    chunk, content = packed
    if isinstance(content, CannotUnpack) or not chunk.whole and chunk.compression == "none":
        return packed
    try:
        return chunk, decompressed(content, chunk.compression, chunk.unpacked)
    except CannotUnpack as error:
        return chunk, error


def _add(counts: dict[int, int], number: int, mask: Any) -> None:
    counts[number] = counts.get(number, 0) + int(mask.sum())


def _records(content: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield begin and size of each record's head and data, up to a truncated record."""
    at, end, u32 = 0, len(content), _U32.unpack_from
    while at + 8 <= end:
        (head_size,) = u32(content, at)
        data = at + 8 + head_size
        if data > end:
            return
        (size,) = u32(content, data - 4)
        if data + size > end:
            return
        yield at + 4, head_size, data, size
        at = data + size


def _places(own: bytes) -> dict[str, int]:
    """Return the offset of the value of each field of a head."""
    places = {}
    at = 0
    while at + 4 <= len(own):
        (size,) = _U32.unpack_from(own, at)
        name, sign, value = own[at + 4 : at + 4 + size].partition(b"=")
        if not sign:
            break
        key = name.decode("ascii", "replace")
        if len(value) >= _WIDTHS.get(key, 0):
            places[key] = at + 5 + len(name)
        at += 4 + size
    return places


def _by_head(heads: Rows, content: bytes) -> Iterator[tuple[dict[str, int], Any]]:
    """Yield the offsets of fields in heads, each with the heads that have them there.

    All heads have one size. A few kinds are compared at once, the others one by one.
    """
    import numpy as np

    size = int(heads.sizes[0])
    left = np.arange(len(heads))
    kinds = 0
    while len(left):
        begin = int(heads.starts[left[0]])
        own = content[begin : begin + size]
        places = _places(own)
        if not {"op", "conn", "time"} <= set(places) or own[places["op"]] != _MESSAGE:
            left = left[1:]
            continue
        if kinds < _MOST_KINDS:
            same = _like(heads.select(left), own, places)
            yield places, left[same]
            left = left[~same]
        else:
            yield places, left[:1]
            left = left[1:]
        kinds += 1


def _like(heads: Rows, own: bytes, places: dict[str, int]) -> Any:
    """Return a mask of heads that equal one of them, except for the channel and the time."""
    import numpy as np

    free = np.zeros(len(own), bool)
    free[places["conn"] : places["conn"] + 4] = True
    free[places["time"] : places["time"] + 8] = True
    bytes_of = heads.records(np.dtype((np.uint8, (len(own),))), len(own)).reshape(len(heads), -1)
    return ((bytes_of == np.frombuffer(own, np.uint8)) | free).all(axis=1)


def _fields(text: bytes) -> dict[str, bytes]:
    fields = {}
    at = 0
    while at + 4 <= len(text):
        (size,) = _U32.unpack_from(text, at)
        name, sign, value = text[at + 4 : at + 4 + size].partition(b"=")
        if not sign:
            break
        fields[name.decode("ascii", "replace")] = value
        at += 4 + size
    return fields


def _fault(error: Exception) -> str:
    """Describe what is wrong with a record."""
    if isinstance(error, KeyError):
        return f"has no field {str(error.args[0])!r}: the bag is corrupt there"
    return "has a field of a wrong length: the bag is corrupt there"


def _time(value: bytes) -> tuple[int, int]:
    """Return seconds and nanoseconds; zeros if the value does not have eight bytes."""
    if len(value) != 8:
        return 0, 0
    return _U32.unpack_from(value)[0], _U32.unpack_from(value, 4)[0]


def _number(fields: dict[str, bytes], key: str) -> int:
    number: int = _U32.unpack(fields[key])[0]
    return number
