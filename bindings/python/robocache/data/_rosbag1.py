"""ROS 1 bags: chunks of records, and an index at the end; without it a file is walked through."""

from __future__ import annotations

import builtins
import itertools
import os
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from ._bags import Bag
from ._columns import Rows
from ._errors import Damage, FormatError, needed
from ._mcap import Channel, broken_off
from ._open import Options, head
from ._recording import Recording
from ._ros_types import normalized
from ._unpacking import ahead, decompressed

MAGIC = b"#ROSBAG V"
_START = b"#ROSBAG V2.0\n"
_MESSAGE, _HEADER, _INDEX, _CHUNK, _CHUNK_INFO, _CONNECTION = range(2, 8)
_U32 = struct.Struct("<I")


def sniff(path: str) -> bool:
    return head(path, len(MAGIC)) == MAGIC


def open(path: str, options: Options) -> Recording:
    needed("rosbags", "ros", "a ROS bag")
    bag = Bag(path, "ROS 1 bag", [Ros1(path, options.damage)], options.damage, options.definitions)
    return Recording(bag, progress=options.progress)


@dataclass(frozen=True)
class _Chunk:
    at: int  # of its data
    size: int
    compression: str
    unpacked: int
    channels: frozenset[int] | None  # None: not known
    whole: bool = True


class Ros1:
    """One file. It holds its index alone."""

    def __init__(self, path: str, damage: Damage) -> None:
        self.path, self.damage = path, damage
        self.size = os.path.getsize(path)
        self.channels: dict[int, Channel] = {}
        self.counts: dict[int, int] | None = None
        self.chunks: list[_Chunk] = []
        self.indexed = True
        with builtins.open(path, "rb") as file:
            if file.read(len(_START)) != _START:
                raise FormatError(path, "byte 0", "is no bag of version 2.0")
            if not self._read_index(file):
                self._walk(file)

    # ---- the index ------------------------------------------------------------------------------

    def _read_index(self, file: BinaryIO) -> bool:
        """Whether the end of the file tells of all chunks."""
        told = self._record(file, len(_START))
        if told is None or told[0].get("op") != bytes([_HEADER]):
            self.damage.found(self.path, f"byte {len(_START)}", "has no header of a bag")
            return False
        fields = told[0]
        try:
            (at,) = struct.unpack("<Q", fields["index_pos"])
            connections, chunks = (_number(fields, key) for key in ("conn_count", "chunk_count"))
        except (KeyError, struct.error):
            self.damage.found(self.path, f"byte {len(_START)}", "its header cannot be read")
            return False
        if at == 0 or at > self.size:
            self.damage.found(
                self.path, "its header", "has no index: it was not closed or is cut off"
            )
            return False
        counts: dict[int, int] = {}
        try:
            for _ in range(connections):
                at = self._connection(file, at)
            for _ in range(chunks):
                record = self._record(file, at)
                if record is None or record[0]["op"][0] != _CHUNK_INFO:
                    raise KeyError("op")
                fields, begin, size = record
                file.seek(begin)
                own = dict(struct.iter_unpack("<II", file.read(min(size, self.size))))
                (place,) = struct.unpack("<Q", fields["chunk_pos"])
                self._chunk(file, place, frozenset(own))
                for number, count in own.items():
                    counts[number] = counts.get(number, 0) + count
                at = begin + size
        except (KeyError, struct.error, IndexError):
            self.damage.found(self.path, f"byte {at}", "its index cannot be read")
            return False
        self.counts = counts
        return True

    def _walk(self, file: BinaryIO) -> None:
        """Record by record: chunks, and the connections in them."""
        self.channels, self.chunks, self.counts = {}, [], None
        at = len(_START)
        while at < self.size:
            record = self._record(file, at)
            if record is None:
                self.damage.found(self.path, f"byte {at}", "is cut off within a record")
                return
            fields, begin, size = record
            try:
                self._take(file, at, fields.get("op", b""))
            except (KeyError, struct.error, IndexError):
                self.damage.found(self.path, f"byte {at}", "has a record that cannot be read")
            at = begin + size
        if at > self.size:
            self.damage.found(self.path, f"byte {self.size}", "is cut off within a record")

    def _take(self, file: BinaryIO, at: int, op: bytes) -> None:
        """What a record tells of topics and messages."""
        if op == bytes([_CONNECTION]):
            self._connection(file, at)
        elif op == bytes([_CHUNK]):
            self._chunk(file, at, None)
            content = self._content(file, self.chunks[-1])
            if content is None:
                self.chunks.pop()
            else:
                self._connections_in(content)

    def _record(self, file: BinaryIO, at: int) -> tuple[dict[str, bytes], int, int] | None:
        """The fields of a record's head, where its data begin, and their size."""
        if at > self.size:  # of a damaged index: perhaps no place that a file could have
            return None
        file.seek(at)
        start = file.read(4)
        if len(start) < 4:
            return None
        (size,) = _U32.unpack(start)
        text = file.read(size + 4) if size <= self.size - at else b""
        if len(text) < size + 4:
            return None
        return _fields(text[:size]), at + 8 + size, _U32.unpack_from(text, size)[0]

    def _connection(self, file: BinaryIO, at: int) -> int:
        record = self._record(file, at)
        if record is None:
            raise KeyError("connection")
        fields, begin, size = record
        file.seek(begin)
        self._declare(fields, file.read(min(size, self.size)))
        return begin + size

    def _declare(self, fields: dict[str, bytes], data: bytes) -> None:
        told = _fields(data)
        number = _number(fields, "conn")
        topic = fields["topic"].decode("utf-8", "replace")
        topic = ("/" if topic.startswith("/") else "") + "/".join(filter(None, topic.split("/")))
        name = normalized(told["type"].decode("utf-8", "replace"))
        definition = told.get("message_definition", b"").decode("utf-8", "replace")
        self.channels[number] = Channel(number, topic, name, "ros1msg", definition, "ros1")

    def _chunk(self, file: BinaryIO, at: int, channels: frozenset[int] | None) -> None:
        record = self._record(file, at)
        if record is None or record[0].get("op") != bytes([_CHUNK]):
            raise KeyError("chunk")
        fields, begin, size = record
        compression = fields["compression"].decode("ascii", "replace")
        left = max(0, self.size - begin)
        unpacked = _number(fields, "size")
        whole = size <= left
        self.chunks.append(_Chunk(begin, min(size, left), compression, unpacked, channels, whole))

    def _connections_in(self, content: bytes) -> None:
        for at, size, data, length in _records(content):
            fields = _fields(content[at : at + size])
            if fields.get("op") == bytes([_CONNECTION]):
                self._declare(fields, content[data : data + length])

    # ---- messages -------------------------------------------------------------------------------

    def pieces(self, wanted: Collection[int]) -> Iterator[tuple[Any, Any, int]]:
        import numpy as np

        ids = np.array(sorted(wanted), np.uint32)
        with builtins.open(self.path, "rb") as file:
            chosen_chunks = (
                chunk
                for chunk in self.chunks
                if chunk.channels is None or not chunk.channels.isdisjoint(wanted)
            )
            packed = ((chunk, _packed(file, chunk)) for chunk in chosen_chunks)
            # bz2 takes longer than all the rest, and lets other threads run.
            slow = any(chunk.compression == "bz2" for chunk in self.chunks)
            for chunk, unpacked in ahead(_unpacked, packed) if slow else map(_unpacked, packed):
                content = self._whole(chunk, unpacked)
                if content is None:
                    continue
                channels, rows = self._messages(chunk, content)
                chosen = np.isin(channels, ids)
                yield channels[chosen], rows.of(chosen), chunk.size

    def _messages(self, chunk: _Chunk, content: bytes) -> tuple[Any, Rows]:
        """All messages of a chunk. Heads of one size have their fields at the same places."""
        import numpy as np

        flat = itertools.chain.from_iterable(_records(content))
        table = np.fromiter(flat, np.int64).reshape(-1, 4)
        end = int(table[-1, 2] + table[-1, 3]) if len(table) else 0
        if chunk.whole and end != len(content):
            self.damage.found(self.path, f"chunk at byte {chunk.at}", broken_off(end, len(content)))
        data = np.frombuffer(content, np.uint8)
        channels, times = np.zeros(len(table), np.uint32), np.zeros(len(table), np.int64)
        kept = np.zeros(len(table), bool)
        sizes = table[:, 1]
        for size in np.unique(sizes).tolist():
            left = np.flatnonzero(sizes == size)
            while len(left):
                first = int(table[left[0], 0])
                own = content[first : first + size]
                heads = Rows(data, table[left, 0], sizes[left], times[left])
                places = _places(own)
                if not {"op", "conn", "time"} <= set(places) or own[places["op"]] != _MESSAGE:
                    left = left[1:]
                    continue
                same = _like(heads, own, places)
                of = heads.of(same)
                channels[left[same]] = of.field(places["conn"], "<u4")
                seconds = of.field(places["time"], "<u4").astype(np.int64)
                nanoseconds = of.field(places["time"] + 4, "<u4")
                times[left[same]] = seconds * 1_000_000_000 + nanoseconds
                kept[left[same]] = True
                left = left[~same]
        table = table[kept]
        return channels[kept], Rows(data, table[:, 2], table[:, 3], times[kept])

    def _content(self, file: BinaryIO, chunk: _Chunk) -> bytes | None:
        return self._whole(*_unpacked((chunk, _packed(file, chunk))))

    def _whole(self, chunk: _Chunk, unpacked: bytes | ValueError) -> bytes | None:
        """What was unpacked of a chunk; None if that failed."""
        place = f"chunk at byte {chunk.at}"
        if not chunk.whole:
            self.damage.found(self.path, place, "is cut off")
            return None if isinstance(unpacked, ValueError) else unpacked
        if isinstance(unpacked, ValueError):
            self.damage.found(self.path, place, f"{unpacked}: its messages are lost")
            return None
        return unpacked


def _packed(file: BinaryIO, chunk: _Chunk) -> bytes:
    file.seek(chunk.at)
    left = os.fstat(file.fileno()).st_size - chunk.at
    return file.read(max(min(chunk.size, left), 0))


def _unpacked(packed: tuple[_Chunk, bytes]) -> tuple[_Chunk, bytes | ValueError]:
    """What a chunk holds, or why that is lost; one that is cut off is read if not compressed."""
    chunk, content = packed
    if not chunk.whole and chunk.compression == "none":
        return chunk, content
    try:
        return chunk, decompressed(content, chunk.compression, chunk.unpacked)
    except ValueError as error:
        return chunk, error


def _records(content: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Begin and size of each record's head, and of its data; one that is cut off is not told of."""
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
    """Where the value of each field of a head begins."""
    places = {}
    at = 0
    while at + 4 <= len(own):
        (size,) = _U32.unpack_from(own, at)
        name, sign, _ = own[at + 4 : at + 4 + size].partition(b"=")
        if not sign:
            break
        places[name.decode("ascii", "replace")] = at + 5 + len(name)
        at += 4 + size
    return places


def _like(heads: Rows, own: bytes, places: dict[str, int]) -> Any:
    """Which heads have the same bytes as one of them, but for the channel and the time."""
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


def _number(fields: dict[str, bytes], key: str) -> int:
    number: int = _U32.unpack(fields[key])[0]
    return number
