"""MCAP: chunks of messages, and an index at the end, without which a file is walked through."""

from __future__ import annotations

import itertools
import os
import struct
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from ._columns import Rows
from ._errors import Damage, FormatError
from ._unpacking import decompressed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAGIC = b"\x89MCAP0\r\n"
_FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK = range(2, 7)
_CHUNK_INDEX, _STATISTICS, _DATA_END = 0x08, 0x0B, 0x0F
_LOOSE = 4 << 20  # bytes of messages without a chunk that are read at once
_RECORD = struct.Struct("<BQ")


@dataclass(frozen=True)
class Channel:
    """A topic, as one writer of it declares it."""

    id: int
    topic: str
    typename: str
    definition_kind: str
    definition: str
    serialization: str


@dataclass(frozen=True)
class _Chunk:
    at: int  # of the record
    size: int  # of its content
    channels: frozenset[int] | None  # None: not known
    whole: bool = True  # whether the file has all of it


class Mcap:
    """One file. It holds its index alone."""

    def __init__(self, path: str, damage: Damage) -> None:
        self.path, self.damage = path, damage
        self.schemas: dict[int, tuple[str, str, str]] = {}
        self.channels: dict[int, Channel] = {}
        self.counts: dict[int, int] | None = None
        self.chunks: list[_Chunk] = []
        self.indexed = True
        self.size = os.path.getsize(path)
        with open(path, "rb") as file:
            if file.read(8) != MAGIC:
                raise FormatError(path, "byte 0", "does not begin as MCAP does")
            if not self._read_summary(file):
                self._walk(file)

    # ---- the index ------------------------------------------------------------------------------

    def _read_summary(self, file: BinaryIO) -> bool:
        """Whether there is one, at the end."""
        file.seek(max(8, self.size - 37))
        end = file.read()
        if len(end) != 37 or end[-8:] != MAGIC or end[0] != _FOOTER:
            where = f"byte {self.size}"
            self.damage.found(self.path, where, "is cut off: the file does not end as MCAP does")
            return False
        (begin,) = struct.unpack_from("<Q", end, 9)
        if begin == 0:
            return False  # without a summary, which is allowed
        if not 8 <= begin <= self.size - 37:
            self.damage.found(self.path, f"byte {self.size - 37}", f"has its summary at {begin}")
            return False
        file.seek(begin)
        summary = file.read(self.size - 37 - begin)
        chunked, ended = None, 0
        try:
            for op, at, size in _records(summary):
                ended = at + size
                if op == _CHUNK_INDEX:
                    self._chunk_index(summary, at)
                elif op == _STATISTICS:
                    total, chunked = struct.unpack_from("<Q14xI", summary, at)
                    counts = _map(summary, at + 42, "<HQ")
                    self.counts = counts if counts or not total else None  # which are optional
                else:
                    self._define(op, summary, at)
        except (struct.error, IndexError, UnicodeDecodeError):
            ended = -1
        if ended != len(summary):
            self.damage.found(self.path, f"byte {begin}", "the summary cannot be read")
            return False
        if self.chunks and chunked is not None and chunked > len(self.chunks):
            reason = f"the summary leads to {len(self.chunks)} of {chunked} chunks"
            self.damage.found(self.path, f"byte {begin}", reason)
            return False
        if (
            self.chunks
            or chunked == 0
            and self.counts is not None
            and not sum(self.counts.values())
        ):
            self.chunks.sort(key=lambda chunk: chunk.at)
            return bool(self.channels) or not self.chunks
        return False

    def _chunk_index(self, data: bytes, at: int) -> None:
        _, _, begin, length = struct.unpack_from("<4Q", data, at)
        channels = frozenset(_map(data, at + 32, "<HQ"))
        if not 8 <= begin <= begin + length <= self.size:
            self.damage.found(
                self.path, f"byte {begin}", "the index tells of a chunk beyond the end"
            )
            return
        self.chunks.append(_Chunk(begin, length - 9, channels or None))

    def _walk(self, file: BinaryIO) -> None:
        """Record by record, past what chunks hold, which a file without a summary takes."""
        self.schemas, self.channels, self.chunks, self.counts = {}, {}, [], None
        at = 8
        while at + 9 <= self.size:
            file.seek(at)
            op, size = _RECORD.unpack(file.read(9))
            if op in (_FOOTER, _DATA_END):
                return
            whole = at + 9 + size <= self.size
            if op == _CHUNK:
                self._walk_chunk(file, at, min(size, self.size - at - 9), whole)
            elif op == _MESSAGE and whole:
                self._loose(at, size)
            elif whole and op in (_SCHEMA, _CHANNEL):
                self._define(op, file.read(size), 0)
            if not whole:
                self.damage.found(self.path, f"byte {at}", "is cut off within a record")
                return
            at += 9 + size
        if at != self.size:
            self.damage.found(self.path, f"byte {at}", "is cut off within a record")

    def _walk_chunk(self, file: BinaryIO, at: int, size: int, whole: bool) -> None:
        """Look into a chunk for the topics that it declares."""
        seen = set()
        data = self._content(file, at, size, whole)
        if data is None:
            return
        for op, begin, _ in _records(data):
            if op == _MESSAGE:
                seen.add(int.from_bytes(data[begin : begin + 2], "little"))
            else:
                self._define(op, data, begin)
        self.chunks.append(_Chunk(at, size, frozenset(seen), whole))

    def _loose(self, at: int, size: int) -> None:
        """A message outside of chunks: neighbours are read together, as if they were one."""
        last = self.chunks[-1] if self.chunks else None
        if last and last.size < 0 and last.at - last.size == at and -last.size < _LOOSE:
            self.chunks[-1] = _Chunk(last.at, last.size - 9 - size, None)
        else:
            self.chunks.append(_Chunk(at, -9 - size, None))  # below 0: no chunk

    def _define(self, op: int, data: bytes, at: int) -> None:
        """A schema or a channel that the data have at a place."""
        try:
            self._defined(op, data, at)
        except struct.error:
            self.damage.found(self.path, "a schema or a channel", "cannot be read")

    def _defined(self, op: int, data: bytes, at: int) -> None:
        if op == _SCHEMA:
            (number,) = struct.unpack_from("<H", data, at)
            name, at = _text(data, at + 2)
            encoding, at = _text(data, at)
            definition, at = _text(data, at)
            self.schemas[number] = (name, encoding, definition)
        elif op == _CHANNEL:
            number, schema = struct.unpack_from("<HH", data, at)
            topic, at = _text(data, at + 4)
            encoding, at = _text(data, at)
            name, kind, definition = self.schemas.get(schema, ("", "", ""))
            self.channels[number] = Channel(number, topic, name, kind, definition, encoding)

    # ---- messages -------------------------------------------------------------------------------

    def pieces(self, wanted: Collection[int]) -> Iterator[tuple[NDArray[np.uint16], Rows, int]]:
        """Messages of some channels, chunk by chunk: which channel each is of, and bytes read."""
        import numpy as np

        ids = np.array(sorted(wanted), np.uint16)
        with open(self.path, "rb") as file:
            for chunk in self.chunks:
                if chunk.channels is not None and chunk.channels.isdisjoint(wanted):
                    continue
                data = self._of(file, chunk)
                if data is None:
                    continue
                flat = itertools.chain.from_iterable(_records(data))
                table = np.fromiter(flat, np.int64).reshape(-1, 3)
                end = int(table[-1, 1] + table[-1, 2]) if len(table) else 0
                if chunk.whole and end != len(data):
                    place = f"chunk at byte {chunk.at}"
                    self.damage.found(self.path, place, broken_off(end, len(data)))
                table = table[(table[:, 0] == _MESSAGE) & (table[:, 2] >= 22)]
                content = np.frombuffer(data, np.uint8)
                rows = Rows(content, table[:, 1], table[:, 2], table[:, 1])
                channels = rows.field(0, "<u2")
                times = rows.field(6, "<u8").astype(np.int64)
                rows = Rows(content, rows.starts + 22, rows.sizes - 22, times)
                chosen = np.isin(channels, ids)
                if not chosen.all():
                    channels, rows = channels[chosen], rows.of(chosen)
                yield channels, rows, abs(chunk.size)

    def _of(self, file: BinaryIO, chunk: _Chunk) -> bytes | None:
        if chunk.size < 0:
            file.seek(chunk.at)
            return file.read(min(-chunk.size, self.size))
        return self._content(file, chunk.at, chunk.size, chunk.whole)

    def _content(self, file: BinaryIO, at: int, size: int, whole: bool) -> bytes | None:
        """What a chunk holds; of one that is cut off what is there; None if it is damaged."""
        place = f"chunk at byte {at}"
        file.seek(at + 9)
        try:
            unpacked, checksum, length = struct.unpack_from("<16xQII", file.read(32))
            compression = file.read(min(length, size)).decode()
            (packed,) = struct.unpack("<Q", file.read(8))
        except (struct.error, UnicodeDecodeError):
            self.damage.found(self.path, place, "its head cannot be read")
            return None
        content = file.read(max(min(packed, size - 40 - length), 0))
        if not whole:
            if compression:
                self.damage.found(self.path, place, f"is cut off, and {compression}: it is lost")
                return None
            return content
        try:
            content = decompressed(content, compression, unpacked)
        except ValueError as error:
            self.damage.found(self.path, place, f"{error}: its messages are lost")
            return None
        if checksum and zlib.crc32(content) != checksum:
            self.damage.found(self.path, place, "its checksum differs: its messages are lost")
            return None
        return content


def _records(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Kind, begin and size of what each record holds; one that is cut off is not told of."""
    at, end, head = 0, len(data), _RECORD.unpack_from
    while at + 9 <= end:
        op, size = head(data, at)
        at += 9
        if at + size > end:
            return
        yield op, at, size
        at += size


def broken_off(end: int, size: int) -> str:
    """What is wrong with a chunk whose records do not lead to its end."""
    return f"a record at its byte {end} of {size} is damaged: the messages from there on are lost"


def _text(data: bytes, at: int) -> tuple[str, int]:
    (size,) = struct.unpack_from("<I", data, at)
    if at + 4 + size > len(data):
        raise struct.error
    return data[at + 4 : at + 4 + size].decode("utf-8", "replace"), at + 4 + size


def _map(data: bytes, at: int, kinds: str) -> dict[int, Any]:
    (size,) = struct.unpack_from("<I", data, at)
    return dict(struct.iter_unpack(kinds, data[at + 4 : at + 4 + size]))
