"""MCAP: chunks of messages, and an index at the end; without it, all records are scanned."""

from __future__ import annotations

import itertools
import os
import struct
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, BinaryIO

from ..._errors import Damage, FormatError
from ..._file_access import Limit, opened
from ..decompress import Budget, CannotUnpack, decompressed
from ..messages.pieces import Rows, present

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .unpacked_files import Unpacked

MAGIC = b"\x89MCAP0\r\n"
_FOOTER, _SCHEMA, _CHANNEL, _MESSAGE, _CHUNK, _MESSAGE_INDEX = range(2, 8)
_CHUNK_INDEX, _STATISTICS, _DATA_END = 0x08, 0x0B, 0x0F
_LOOSE = 4 << 20  # bytes of messages without a chunk that are read at once
AT_ONCE = 1 << 16  # records of a chunk that are in memory as numbers
LONGEST_NAME = 1 << 16  # bytes of the name of a topic or a type
_RECORD = struct.Struct("<BQ")


@dataclass(frozen=True)
class Channel:
    """A topic, as declared by one of its writers."""

    id: int
    topic: str
    typename: str
    definition_kind: str
    definition: str | bytes  # bytes for descriptors
    serialization: str
    latched: bool = field(default=False, compare=False)  # late subscribers get the last message


@dataclass(frozen=True)
class _Chunk:
    at: int  # offset of the record
    size: int  # of its content; for loose messages: of all their records
    channels: frozenset[int] | None  # None: not known
    whole: bool = True  # whether the file has all of it
    loose: bool = False  # messages outside of chunks, read as one chunk
    begin: int = 0  # log time of its first message, from its head


@dataclass(frozen=True)
class _Indexed:
    """A chunk, as listed in the summary."""

    at: int
    length: int  # of the record
    channels: frozenset[int] | None
    index_length: int  # of the message indexes after it
    begin: int  # log time of the first message


class _Unreadable(Exception):
    """A record cannot be read."""


class Mcap:
    """One file. Only its index is in memory."""

    def __init__(
        self,
        path: str,
        damage: Damage,
        limit: Limit | None = None,
        content: Unpacked | None = None,
    ) -> None:
        """``content``: set for a file that is compressed as a whole."""
        self.path, self.damage, self.limit = path, damage, limit or Limit()
        self.content = content
        self.declared = _Declared()
        self.channels: dict[int, Channel] = {}
        self.counts: dict[int, int] | None = None
        self.chunks: list[_Chunk] = []
        self.ends: dict[int, int] = {}  # by offset of a chunk: the end of its message indexes
        self.indexed = True
        self.packed_size = os.path.getsize(path)
        with self.opened() as file:
            self.size = os.fstat(file.fileno()).st_size
            if file.read(8) != MAGIC:
                raise FormatError(path, "byte 0", "does not begin like an MCAP file")
            if not self._read_summary(file):
                self._walk(file)
        self.channels = self.declared.channels()
        known = frozenset(self.channels)
        # Chunks with undeclared messages are read in each pass, which counts these messages.
        self.chunks = [
            replace(chunk, channels=None) if chunk.channels and chunk.channels - known else chunk
            for chunk in self.chunks
        ]
        # Merged files have chunks in any order; messages outside of chunks stay where they are.
        if not any(chunk.loose for chunk in self.chunks):
            self.chunks.sort(key=lambda chunk: chunk.begin)

    def opened(self) -> BinaryIO:
        """Open the content of the file."""
        return opened(self.path) if self.content is None else self.content.open()

    # ---- the index ------------------------------------------------------------------------------

    def _read_summary(self, file: BinaryIO) -> bool:
        """Whether there is a summary at the end that agrees with the file."""
        place = f"byte {self.size}"
        file.seek(max(8, self.size - 37))
        end = file.read()
        if len(end) != 37 or end[-8:] != MAGIC or end[0] != _FOOTER:
            self.damage.found(
                self.path,
                place,
                "the MCAP file was not closed (it has no footer here): the recorder stopped early, "
                "or the copy is incomplete",
            )
            return False
        begin, checksum = struct.unpack_from("<Q8xI", end, 9)
        if begin == 0:
            return False  # a file without a summary is valid
        if not 8 + 13 <= begin <= self.size - 37:
            self.damage.found(
                self.path,
                f"byte {self.size - 37}",
                f"the footer points to a summary at byte {begin}, outside of the file's data "
                f"({self.size} bytes)",
            )
            return False
        place = f"byte {begin}"
        file.seek(begin - 13)
        op, size = _RECORD.unpack(file.read(9))
        if (op, size) != (_DATA_END, 4):
            reason = "the footer points to a summary here, but the data do not end before it"
            self.damage.found(self.path, place, reason)
            return False
        file.seek(begin)
        summary = file.read(self.size - 37 - begin)
        if checksum and zlib.crc32(end[:25], zlib.crc32(summary)) != checksum:
            self.damage.found(self.path, place, "the checksum of the summary differs")
            return False
        try:
            indexed, chunks_stated = self._parsed(summary)
            self._place(file, indexed, chunks_stated, begin - 13)
        except _Unreadable as error:
            self.damage.found(self.path, place, str(error))
            return False
        if not self.chunks:
            return self.counts is not None and chunks_stated == 0 and not any(self.counts.values())
        # The summary need not repeat declarations in the data.
        used = {number for number, count in (self.counts or {}).items() if count}
        used.update(*(chunk.channels or () for chunk in indexed))
        return bool(self.declared.kinds) and used <= self.declared.kinds.keys()

    def _parsed(self, summary: bytes) -> tuple[list[_Indexed], int | None]:
        """Return the chunks that the summary lists, and the number of chunks it states."""
        chunks: list[_Indexed] = []
        chunks_stated, ended = None, 0
        try:
            for op, at, size in _records(summary):
                ended = at + size
                if op == _CHUNK_INDEX:
                    chunks.append(_chunk_index(summary, at))
                elif op == _STATISTICS:
                    total, chunks_stated = struct.unpack_from("<Q14xI", summary, at)
                    counts = _map(summary, at + 42, "<HQ")
                    self.counts = counts if counts or not total else None  # counts are optional
                else:
                    self._declare(op, summary[at:ended])
        except (struct.error, IndexError):
            ended = -1
        if ended != len(summary):
            raise _Unreadable("the summary cannot be read")
        return chunks, chunks_stated

    def _place(
        self, file: BinaryIO, indexed: list[_Indexed], chunks_stated: int | None, end: int
    ) -> None:
        """Check the chunks that the summary lists, and find what is between them."""
        if not indexed:
            return
        if chunks_stated is not None and chunks_stated != len(indexed):
            raise _Unreadable(
                f"the summary lists {len(indexed)} of the {chunks_stated} chunks in the file"
            )
        indexed.sort(key=lambda chunk: chunk.at)
        done = 8
        for chunk in indexed:
            if chunk.at < done:
                what = (
                    "several times"
                    if self.chunks and self.chunks[-1].at == chunk.at
                    else ("that overlaps what is before it")
                )
                raise _Unreadable(f"the summary lists the chunk at byte {chunk.at} {what}")
            if chunk.length < 9 + 40 or chunk.at + chunk.length + chunk.index_length > end:
                raise _Unreadable(
                    f"the summary lists a chunk at byte {chunk.at} that ends beyond the data"
                )
            self._between(file, done, chunk.at)
            self.chunks.append(
                _Chunk(chunk.at, chunk.length - 9, chunk.channels, begin=chunk.begin)
            )
            done = chunk.at + chunk.length + chunk.index_length
            self.ends[chunk.at] = done
        self._between(file, done, end)

    def _between(self, file: BinaryIO, at: int, end: int) -> None:
        """Take records between chunks, such as attachments, and messages outside of chunks."""
        while at < end:
            file.seek(at)
            head = file.read(9) if at + 9 <= end else b""
            op, size = _RECORD.unpack(head) if len(head) == 9 else (0, end)
            if at + 9 + size > end:
                raise _Unreadable(
                    f"the record at byte {at}, which is not in the summary, is truncated or damaged"
                )
            if op == _CHUNK:
                raise _Unreadable(f"the summary omits the chunk at byte {at}")
            if op == _MESSAGE:
                self._loose(at, size)
            elif op in (_SCHEMA, _CHANNEL):
                self._declare(op, file.read(size))
            at += 9 + size

    def _walk(self, file: BinaryIO) -> None:
        """Scan all records, skipping chunk contents; needed for a file without a summary."""
        self.declared, self.chunks, self.ends, self.counts = _Declared(), [], {}, None
        budget = Budget(self.limit, self.path, self.packed_size)
        at = 8
        while at + 9 <= self.size:
            file.seek(at)
            op, size = _RECORD.unpack(file.read(9))
            if op in (_FOOTER, _DATA_END):
                return
            whole = at + 9 + size <= self.size
            if op == _CHUNK:
                held = min(size, self.size - at - 9)
                self._walk_chunk(file, _Chunk(at, held, None, whole), budget)
            elif op == _MESSAGE and whole:
                self._loose(at, size)
            elif whole and op in (_SCHEMA, _CHANNEL):
                self._declare(op, file.read(size))
            if not whole:
                self.damage.found(
                    self.path, f"byte {at}", "the file is truncated within the record here"
                )
                return
            at += 9 + size
        if at != self.size:
            self.damage.found(
                self.path, f"byte {at}", "the file is truncated within the record here"
            )

    def _walk_chunk(self, file: BinaryIO, chunk: _Chunk, budget: Budget) -> None:
        """Find the topics that a chunk declares."""
        import numpy as np

        seen: set[int] = set()
        data = self._content(file, chunk, budget)
        if data is None:
            return
        for table in _tables(data, f"chunk at byte {chunk.at}", budget):
            for op, begin, size in table[_declare_something(table)].tolist():
                self._declare(op, data[begin : begin + size])
            starts = table[(table[:, 0] == _MESSAGE) & (table[:, 2] >= 22), 1]
            heads = Rows(np.frombuffer(data, np.uint8), starts, starts, starts)
            seen.update(present(heads.field(0, "<u2")))
        file.seek(chunk.at + 9)
        begin = int.from_bytes(file.read(8), "little")
        found = _Chunk(chunk.at, chunk.size, frozenset(seen), chunk.whole, begin=begin)
        self.chunks.append(found)

    def _loose(self, at: int, size: int) -> None:
        """Add a message outside of chunks; adjacent ones are read together, like a chunk."""
        last = self.chunks[-1] if self.chunks else None
        if last and last.loose and last.at + last.size == at and last.size < _LOOSE:
            self.chunks[-1] = _Chunk(last.at, last.size + 9 + size, None, loose=True)
        else:
            self.chunks.append(_Chunk(at, 9 + size, None, loose=True))

    def _declare(self, op: int, record: bytes) -> None:
        """Take a schema or a channel."""
        try:
            self.declared.add(op, record)
        except _Unreadable as error:
            self.damage.found(self.path, "a schema or a channel", str(error))

    # ---- messages -------------------------------------------------------------------------------

    def pieces(
        self, wanted: Collection[int], chunks: Sequence[_Chunk] | None = None
    ) -> Iterator[tuple[NDArray[np.uint16], Rows, int]]:
        """Yield messages of some channels by chunk: the channels, the messages, and bytes read.

        ``wanted`` may shrink meanwhile: chunks without wanted channels are skipped. ``chunks``:
        only some of the file's.
        """
        import numpy as np

        budget = Budget(self.limit, self.path, self.packed_size)
        known = np.zeros(1 << 16, bool)
        known[list(self.channels)] = True
        strange, late = np.zeros(1 << 16, np.int64), np.zeros(1 << 16, np.int64)
        short, many, all_chosen = 0, 0, np.zeros(1 << 16, bool)
        with self.opened() as file:
            for chunk in self.chunks if chunks is None else chunks:
                if chunk.channels is not None and chunk.channels.isdisjoint(wanted):
                    continue
                data = self._content_of(file, chunk, budget)
                if data is None:
                    continue
                if len(wanted) != many:
                    many = len(wanted)
                    all_chosen = np.zeros(1 << 16, bool)
                    all_chosen[list(wanted)] = True
                chosen = all_chosen.copy()
                content = np.frombuffer(data, np.uint8)
                read, end = 9 + chunk.size, 0
                for table in _tables(data, f"chunk at byte {chunk.at}", budget):
                    end = int(table[-1, 1] + table[-1, 2])
                    self._compare(chunk, data, table, chosen)
                    table = table[table[:, 0] == _MESSAGE]
                    whole = table[:, 2] >= 22
                    short += len(table) - int(whole.sum())
                    table = table[whole]
                    rows = Rows(content, table[:, 1], table[:, 2], table[:, 1])
                    channels = rows.field(0, "<u2")
                    declared = known[channels]
                    if not declared.all():
                        strange += np.bincount(channels[~declared], minlength=1 << 16)
                    times = rows.field(6, "<u8")
                    own = chosen[channels]
                    beyond = own & (times >> np.uint64(63) != 0)
                    if beyond.any():
                        late += np.bincount(channels[beyond], minlength=1 << 16)
                        own &= ~beyond
                    rows = Rows(content, rows.starts + 22, rows.sizes - 22, times.view(np.int64))
                    if not own.all():
                        channels, rows = channels[own], rows.select(own)
                    yield channels, rows, read
                    read = 0
                if chunk.whole and end != len(data):
                    place = f"chunk at byte {chunk.at}"
                    self.damage.found(self.path, place, broken_off(end, len(data)))
        if short:
            reason = f"{short:,} are shorter than the header of a message: they are skipped"
            self.damage.found(self.path, "messages", reason)
        for number, count in _counted(strange).items():
            reason = (
                f"has {count:,} messages, but its declaration is missing or unclear: "
                "they are skipped"
            )
            self.damage.found(self.path, f"channel {number}", reason)
        for number, count in _counted(late).items():
            place = f"topic {self.channels[number].topic}"
            reason = f"{count:,} messages have log times of 2**63 ns or more: they are skipped"
            self.damage.found(self.path, place, reason)

    def _content_of(self, file: BinaryIO, chunk: _Chunk, budget: Budget) -> bytes | None:
        file.seek(chunk.at)
        if chunk.loose:
            return file.read(chunk.size)
        if chunk.at in self.ends:  # listed in the summary
            place = f"chunk at byte {chunk.at}"
            if file.read(9) != _RECORD.pack(_CHUNK, chunk.size):
                reason = "the summary lists a chunk here, but there is none"
                self.damage.found(self.path, place, reason)
                return None
            if not _are_indexes(file, chunk.at + 9 + chunk.size, self.ends[chunk.at]):
                reason = "it is not followed by the message indexes that the summary lists"
                self.damage.found(self.path, place, reason)
        return self._content(file, chunk, budget)

    def _compare(self, chunk: _Chunk, data: bytes, table: NDArray[Any], chosen: Any) -> None:
        """Skip messages whose channel is declared differently in a chunk and in the summary."""
        for op, at, size in table[_declare_something(table)].tolist():
            place = f"chunk at byte {chunk.at}"
            try:
                conflicts = self.declared.conflicts(op, data[at : at + size])
                if not conflicts:  # the summary may lack this declaration
                    self.declared.add(op, data[at : at + size])
                for number, reason in conflicts:
                    if chosen[number]:
                        chosen[number] = False
                        reason = f"{reason}: its messages here are skipped"
                        self.damage.found(self.path, place, reason)
            except _Unreadable as error:
                self.damage.found(self.path, place, f"a schema or a channel: {error}")

    def _content(self, file: BinaryIO, chunk: _Chunk, budget: Budget) -> bytes | None:
        """Return the content of a chunk, if truncated what exists; None if it is damaged."""
        place = f"chunk at byte {chunk.at}"
        file.seek(chunk.at + 9)
        try:
            unpacked, checksum, length = struct.unpack_from("<16xQII", file.read(32))
            compression = file.read(min(length, chunk.size)).decode()
            (packed,) = struct.unpack("<Q", file.read(8))
        except (struct.error, UnicodeDecodeError):
            self.damage.found(self.path, place, "its header cannot be read")
            return None
        content = file.read(max(min(packed, chunk.size - 40 - length), 0))
        if not chunk.whole:
            if compression:
                self.damage.found(
                    self.path,
                    place,
                    f"it is truncated. It is compressed ({compression}), so none of its messages "
                    "can be read",
                )
                return None
            return content
        try:
            budget.spend(place, content, compression, unpacked)
            content = decompressed(content, compression, unpacked, self.path)
        except CannotUnpack as error:
            budget.correct(unpacked, error)
            self.damage.found(self.path, place, f"{error}: its messages are skipped")
            return None
        if checksum and zlib.crc32(content) != checksum:
            self.damage.found(
                self.path, place, "it is corrupt (its checksum differs): its messages are skipped"
            )
            return None
        return content


class _Declared:
    """Schemas and channels by number, as declared by the records of a file."""

    def __init__(self) -> None:
        self.schemas: dict[int, tuple[str, str, str | bytes]] = {}
        self.kinds: dict[int, tuple[int, str, str]] = {}  # of channels: schema, topic, encoding
        self.known: set[tuple[int, bytes]] = set()  # records, which many files repeat
        self.unclear_schemas: set[int] = set()  # with conflicting declarations
        self.unclear_channels: set[int] = set()

    def add(self, op: int, record: bytes) -> None:
        """Take a record: a schema, a channel or anything else.

        Raises
        ------
        _Unreadable
            It cannot be read, or conflicts with another declaration of the same number.
        """
        if op not in (_SCHEMA, _CHANNEL) or (op, record) in self.known:
            return
        number, value = _declaration(op, record)
        reason = self._conflict(op, number, value)
        if reason:
            (self.unclear_schemas if op == _SCHEMA else self.unclear_channels).add(number)
            raise _Unreadable(f"{reason}: its messages are skipped")
        if op == _SCHEMA:
            self.schemas.setdefault(number, value)
        else:
            self.kinds.setdefault(number, value)
        self.known.add((op, record))

    def conflicts(self, op: int, record: bytes) -> list[tuple[int, str]]:
        """Return channels that a record declares differently from earlier records, and how."""
        if (op, record) in self.known:
            return []
        number, value = _declaration(op, record)
        reason = self._conflict(op, number, value)
        if not reason:
            return []
        if op == _CHANNEL:
            return [(number, reason)]
        return [(c, reason) for c, (schema, *_) in self.kinds.items() if schema == number]

    def _conflict(self, op: int, number: int, value: Any) -> str:
        """Describe how a declaration differs from the first one of its number; "" if it agrees."""
        if op == _SCHEMA:
            schema = self.schemas.get(number, value)
            if schema == value:
                return ""
            if schema[0] != value[0]:
                return f"schema {number} is declared as {schema[0]!r} and as {value[0]!r}"
            return f"schema {number}, {value[0]!r}, is declared with two definitions"
        kind = self.kinds.get(number, value)
        if kind[1] != value[1]:
            return f"channel {number} is declared as {kind[1]!r} and as {value[1]!r}"
        schemas = [self.schemas.get(heads[0]) for heads in (kind, value)]
        same_schema = kind[0] == value[0] or (schemas[0] == schemas[1] and schemas[0] is not None)
        if same_schema and kind[2] == value[2]:
            return ""
        return f"channel {number}, {value[1]!r}, is declared with two schemas or encodings"

    def channels(self) -> dict[int, Channel]:
        """Return the channels without conflicts. A channel without a schema has no type."""
        made = {}
        for number, (schema, topic, encoding) in self.kinds.items():
            if number not in self.unclear_channels and schema not in self.unclear_schemas:
                known = self.schemas.get(schema, ("", "", "")) if schema else ("", "", "")
                made[number] = Channel(number, topic, *known, encoding)
        return made


def _declaration(op: int, record: bytes) -> tuple[int, Any]:
    """Return the number that a record declares, and the declaration."""
    try:
        if op == _SCHEMA:
            (number,) = struct.unpack_from("<H", record)
            name, at = _text(record, 2, LONGEST_NAME)
            encoding, at = _text(record, at, LONGEST_NAME)
            definition: str | bytes
            if encoding in ("protobuf", "flatbuffer"):
                definition = _bytes(record, at)
            else:
                definition, _ = _text(record, at)
            if number == 0:
                raise _Unreadable("a schema has the number 0, which is reserved for no schema")
            return number, (name, encoding, definition)
        number, schema = struct.unpack_from("<HH", record)
        topic, at = _text(record, 4, LONGEST_NAME)
        encoding, _ = _text(record, at, LONGEST_NAME)
    except struct.error:
        raise _Unreadable("cannot be read") from None
    return number, (schema, topic, encoding)


def _records(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield kind, begin and size of each record's content, up to a truncated record."""
    at, end, head = 0, len(data), _RECORD.unpack_from
    while at + 9 <= end:
        op, size = head(data, at)
        at += 9
        if at + size > end:
            return
        yield op, at, size
        at += size


def _declare_something(table: NDArray[np.int64]) -> Any:
    return (table[:, 0] == _SCHEMA) | (table[:, 0] == _CHANNEL)


def _tables(data: bytes, place: str, budget: Budget) -> Iterator[NDArray[np.int64]]:
    """Yield the records as arrays, with ``AT_ONCE`` records each."""
    import numpy as np

    records = _records(data)
    while True:
        flat = itertools.chain.from_iterable(itertools.islice(records, AT_ONCE))
        table = np.fromiter(flat, np.int64).reshape(-1, 3)
        if not len(table):
            return
        size = int(table[-1, 1] + table[-1, 2] - table[0, 1])
        budget.charge(place, len(table), size)
        yield table


def _are_indexes(file: BinaryIO, at: int, end: int) -> bool:
    """Whether a range of a file holds only message indexes."""
    while at + 9 <= end:
        file.seek(at)
        head = file.read(9)
        op, size = _RECORD.unpack(head) if len(head) == 9 else (0, 0)
        if op != _MESSAGE_INDEX:
            return False
        at += 9 + size
    return at == end


def broken_off(end: int, size: int) -> str:
    """Describe a chunk whose records do not lead to its end."""
    return f"it is corrupt from its byte {end} of {size} on: later messages in it are skipped"


def _chunk_index(data: bytes, at: int) -> _Indexed:
    time, begin, length = struct.unpack_from("<Q8x2Q", data, at)
    channels = _map(data, at + 32, "<HQ")
    (size,) = struct.unpack_from("<I", data, at + 32)
    (index_length,) = struct.unpack_from("<Q", data, at + 36 + size)
    return _Indexed(begin, length, frozenset(channels) or None, index_length, time)


def _text(data: bytes, at: int, most: int | None = None) -> tuple[str, int]:
    (size,) = struct.unpack_from("<I", data, at)
    if at + 4 + size > len(data):
        raise struct.error
    if most is not None and size > most:
        raise _Unreadable(f"has a name of {size:,} bytes, expected at most {most:,}")
    return data[at + 4 : at + 4 + size].decode("utf-8", "replace"), at + 4 + size


def _bytes(data: bytes, at: int) -> bytes:
    (size,) = struct.unpack_from("<I", data, at)
    if at + 4 + size > len(data):
        raise struct.error
    return data[at + 4 : at + 4 + size]


def _map(data: bytes, at: int, kinds: str) -> dict[int, Any]:
    (size,) = struct.unpack_from("<I", data, at)
    return dict(struct.iter_unpack(kinds, data[at + 4 : at + 4 + size]))


def _counted(counts: Any) -> dict[int, int]:
    """Return the counts above 0, by their index."""
    return {int(i): int(counts[i]) for i in counts.nonzero()[0]}
