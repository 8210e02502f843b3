"""Logs of an SQLite database: the write-ahead log adds pages, and the journal restores pages.

SQLite itself would delete a log in which it finds nothing, and the file that a journal names. So
both are only read here, and applied to a copy. Formats: https://sqlite.org/fileformat2.html
"""

from __future__ import annotations

import functools
import os
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LOG_HEADER, JOURNAL_HEADER = 32, 28
_FRAME_HEADER = 24
_LOG_MAGIC = 0x377F0682  # and the next number: checksums of big-endian words
_LOG_VERSION = 3007000
_JOURNAL_MAGIC = bytes.fromhex("d9d505f920a163d7")
_TO_THE_END = 0xFFFFFFFF  # record count of a journal: as many as the file holds
_LOCK_BYTE = 1 << 30  # in a page that holds nothing
_AT_ONCE = 8 << 20  # bytes


@dataclass
class Changes:
    """Pages to write into a copy of a database."""

    page_size: int = 0
    pages: int | None = None  #: size of the database afterwards; None: unchanged
    places: dict[int, int] = field(default_factory=dict)  #: offset in the log, by page
    fault: str = ""  #: what is damaged in the log, and how much
    remark: str = ""  #: what may be right or wrong

    def require_fit(self, page_size: int, size: int) -> None:
        """Change nothing in a database of ``size`` bytes if the log does not fit it."""
        limit = size // max(1, page_size) + len(self.places)
        if self.page_size not in (0, page_size):
            self.fault = (
                f"has pages of {self.page_size} bytes, but its database has pages of {page_size}: "
                "it is not read"
            )
        elif (self.pages or 0) > limit:
            self.fault = (
                f"counts {self.pages:,} pages, but only {limit:,} exist in it and its database: "
                "it is not read"
            )
        else:
            return
        self.pages = None

    def apply(self, log: BinaryIO, copy: int) -> None:
        """Write the pages into the copy, an open file."""
        if self.pages is None:
            return
        os.ftruncate(copy, self.pages * self.page_size)
        for page, at in sorted(self.places.items()):
            if page <= self.pages:
                content = os.pread(log.fileno(), self.page_size, at)
                os.pwrite(copy, content, (page - 1) * self.page_size)


# ---- the write-ahead log -------------------------------------------------------------------------


def read_log(log: BinaryIO, live: bool) -> Changes:
    """Read the pages that the committed frames of a write-ahead log change.

    A frame counts if it has the salts of the header and its checksum, which covers all frames
    before it, is right. Frames of an earlier use of the log can follow. Both of their salts differ.
    """
    size = os.fstat(log.fileno()).st_size
    header = os.pread(log.fileno(), LOG_HEADER, 0)
    if size == 0:
        return Changes()
    fault = _fault_of_log_header(header)
    if fault:
        return Changes(fault=f"{fault}: none of its {size:,} bytes can be read")
    magic, _, page_size, _, *_ = struct.unpack(">8I", header)
    frames = _Frames(log, header, page_size, size, ">u4" if magic & 1 else "<u4")
    return frames.changes(live)


def _fault_of_log_header(header: bytes) -> str:
    if len(header) < LOG_HEADER:
        return f"is truncated: its header has {len(header)} of {LOG_HEADER} bytes"
    magic, version, page_size, *_ = struct.unpack(">8I", header)
    if magic & ~1 != _LOG_MAGIC:
        return f"begins with {header[:4]!r}, unlike a write-ahead log"
    if version != _LOG_VERSION or not _is_page_size(page_size):
        return f"has a damaged header: version {version}, pages of {page_size} bytes"
    weights, power = _weights(LOG_HEADER - 8)
    words = _words(header[: LOG_HEADER - 8], ">u4" if magic & 1 else "<u4")
    if _next((0, 0), power, words @ weights) != struct.unpack(">2I", header[-8:]):
        return "has a header whose checksum is wrong"
    return ""


class _Frames:
    """All frames of a log, and the number of valid ones at its begin."""

    def __init__(self, log: BinaryIO, header: bytes, page_size: int, size: int, order: str) -> None:
        import numpy as np

        self.page_size = page_size
        self.frame = _FRAME_HEADER + page_size
        self.count, self.rest = divmod(size - LOG_HEADER, self.frame)
        self.salts = struct.unpack(">2I", header[16:24])
        self.tail = os.pread(log.fileno(), 16, LOG_HEADER + self.count * self.frame)
        #: Of each frame: page, pages of the database if it commits, two salts, two checksums.
        self.heads = np.zeros((self.count, 6), np.uint32)
        self.valid = 0
        self._read(log, struct.unpack(">2I", header[24:]), order)

    def _read(self, log: BinaryIO, checksum: tuple[int, int], order: str) -> None:
        import numpy as np

        weights, power = _weights(8 + self.page_size)
        step = max(1, _AT_ONCE // self.frame)
        for first in range(0, self.count, step):
            at = LOG_HEADER + first * self.frame
            want = min(step, self.count - first) * self.frame
            raw: Any = np.frombuffer(os.pread(log.fileno(), want, at), np.uint8)
            raw = raw[: len(raw) // self.frame * self.frame].reshape(-1, self.frame)
            heads = raw[:, :_FRAME_HEADER].copy().view(">u4").astype(np.uint32)
            self.heads[first : first + len(heads)] = heads
            if self.valid < first:
                continue  # after a wrong frame, only headers matter
            words = np.concatenate([raw[:, :8], raw[:, _FRAME_HEADER:]], axis=1)
            sums = _words(words, order) @ weights
            for (page, _, *rest), added in zip(heads.tolist(), sums):
                checksum = _next(checksum, power, added)
                if page == 0 or tuple(rest[:2]) != self.salts or tuple(rest[2:]) != checksum:
                    break
                self.valid += 1

    def changes(self, live: bool) -> Changes:
        import numpy as np

        commits = np.flatnonzero(self.heads[: self.valid, 1])
        committed = int(commits[-1]) + 1 if len(commits) else 0
        pages = int(self.heads[committed - 1, 1]) if committed else None
        numbers = self.heads[:committed, 0].tolist()
        begin = LOG_HEADER + _FRAME_HEADER
        places = {page: begin + i * self.frame for i, page in enumerate(numbers)}
        changes = Changes(self.page_size, pages, places, self._fault(committed))
        pending = self.valid - committed
        if not changes.fault and pending and not live:
            changes.remark = (
                f"the last {pending:,} of its {self.count:,} frames "
                f"({pending * self.frame:,} bytes) belong to a transaction that was not committed: "
                "they are not read"
            )
        elif not changes.fault and not live:
            changes.remark = self._leftover()
        return changes

    def _of_this_use(self) -> Any:
        """Return the indices of frames of this use of the log that follow the valid frames."""
        import numpy as np

        heads = self.heads[self.valid :]
        same = heads[:, 2:4] == np.array(self.salts, np.uint32)
        empty = ~heads.any(axis=1)  # lost by the file system
        return self.valid + np.flatnonzero(same.any(axis=1) | empty)

    def _fault(self, committed: int) -> str:
        """Describe lost frames that may have been committed; "" if none is lost."""
        rest = self._of_this_use()
        if len(rest):
            heads = self.heads[rest]
            # Frames of a transaction that was rolled back stay until others overwrite them. An open
            # transaction may write a frame twice without a new checksum. No such frame commits.
            if heads[:, 1].any() or not heads.any(axis=1).all():
                return self._lost(self.valid, int(rest[-1]) + 1, "are damaged")
        elif self.valid == 0 and self.count:
            return self._lost(0, self.count, "do not have the salts of its header")
        elif self.count == self.rest == 0:
            return "has a header, but no frames: the messages in it are missing"
        if self.rest and self._is_cut():
            return self._lost(committed, self.count + 1, "are truncated or not committed")
        return ""

    def _is_cut(self) -> bool:
        """Whether an incomplete frame at the end is of this use of the log."""
        if self.valid < self.count:
            return False  # follows frames of an earlier use
        if len(self.tail) < 16:
            return True
        salts = struct.unpack(">2I", self.tail[8:16])
        return any(a == b for a, b in zip(salts, self.salts)) or not any(self.tail)

    def _lost(self, first: int, end: int, reason: str) -> str:
        size = min(end * self.frame, self.count * self.frame + self.rest) - first * self.frame
        total = self.count + (self.rest > 0)
        return (
            f"{end - first:,} of its {total:,} frames, from frame {first + 1:,} on "
            f"({size:,} bytes), {reason}: the messages in them are skipped"
        )

    def _leftover(self) -> str:
        rest = self._of_this_use()
        if not len(rest):
            return ""
        return (
            f"the last {len(rest):,} of its {self.count:,} frames are not read: they belong to a "
            "transaction that was not committed, and their checksums are wrong"
        )


def _words(content: Any, order: str) -> NDArray[np.uint32]:
    import numpy as np

    raw = np.frombuffer(content, np.uint8) if isinstance(content, bytes) else content
    return np.ascontiguousarray(raw).view(order).astype(np.uint32)


@functools.lru_cache(maxsize=8)
def _weights(size: int) -> tuple[NDArray[np.uint32], tuple[int, int, int, int]]:
    """Return a checksum as a linear form, modulo 2**32, of the words and the checksum before.

    It represents SQLite's loop over pairs of words: ``a += x + b; b += y + a``.
    """
    import numpy as np

    pairs = size // 8
    weights = np.empty((2 * pairs, 2), np.uint32)
    p, q, r, s = 1, 0, 0, 1  # powers of [[1, 1], [1, 2]]
    for i in reversed(range(pairs)):
        weights[2 * i] = (p + q) % 2**32, (r + s) % 2**32
        weights[2 * i + 1] = q, s
        p, q, r, s = (p + q) % 2**32, (p + 2 * q) % 2**32, (r + s) % 2**32, (r + 2 * s) % 2**32
    return weights, (p, q, r, s)


def _next(before: tuple[int, int], power: tuple[int, int, int, int], added: Any) -> tuple[int, int]:
    p, q, r, s = power
    a, b = before
    return (p * a + q * b + int(added[0])) % 2**32, (r * a + s * b + int(added[1])) % 2**32


# ---- the rollback journal ------------------------------------------------------------------------


def is_hot(header: bytes) -> bool:
    """Whether a journal that no process has open may hold pages to restore.

    A transaction that ends leaves a journal of 0 bytes, or zeros in its header. One that has not
    written to the database yet has zeros instead of the format name and the record count.
    written to the database yet has zeros where the header names the format and counts records.
    """
    return any(header[:12])


def read_journal(journal: BinaryIO) -> Changes:
    """Read the pages that undo the transaction of a journal."""
    size = os.fstat(journal.fileno()).st_size
    header = os.pread(journal.fileno(), JOURNAL_HEADER, 0)
    if len(header) < JOURNAL_HEADER or header[:8] != _JOURNAL_MAGIC:
        reason = "is truncated" if _JOURNAL_MAGIC.startswith(header[:8]) else "has a damaged header"
        return Changes(fault=f"{reason}: none of its {size:,} bytes can be read")
    sector, page_size = struct.unpack(">2I", header[20:28])
    if not _is_page_size(page_size) or not (32 <= sector <= 65536 and sector & (sector - 1) == 0):
        reason = f"pages of {page_size} bytes, sectors of {sector}"
        return Changes(
            fault=f"has a damaged header: {reason}: none of its {size:,} bytes can be read"
        )
    changes = Changes(page_size, struct.unpack(">I", header[16:20])[0])
    at = 0
    while header[:8] == _JOURNAL_MAGIC and len(header) == JOURNAL_HEADER and not changes.fault:
        at = _read_records(journal, size, at, sector, header, changes)
        header = os.pread(journal.fileno(), JOURNAL_HEADER, at)
    if not changes.fault and _names_another(journal, size):
        changes.fault = (
            "names a super-journal, of a transaction on several databases: whether it was "
            "committed is not known, and its data are not read"
        )
    return changes


def _read_records(
    journal: BinaryIO, size: int, at: int, sector: int, header: bytes, changes: Changes
) -> int:
    """Read the records after one header. Return the offset of the next header."""
    count, nonce = struct.unpack(">2I", header[8:16])
    record = 8 + changes.page_size
    begin = at + sector
    there, rest = divmod(max(0, size - begin), record)
    to_the_end = count == _TO_THE_END
    if not to_the_end:
        there = min(there, count)
    read, wrong = 0, False
    for page, right in _records(journal, begin, there, changes.page_size, nonce):
        if not right or wrong:
            wrong = True
            if right and to_the_end:  # a record in the middle is damaged
                changes.fault = f"a record at its byte {begin + read * record:,} is damaged"
                break
            if not to_the_end:
                break
            continue
        changes.places.setdefault(page, begin + read * record + 4)
        read += 1
    if to_the_end and not wrong and rest:
        changes.fault = f"is truncated within a record, at its byte {size:,}"
    elif not to_the_end and read < count:
        changes.fault = f"{count - read:,} of {count:,} records are truncated or damaged"
    end = begin + (there if to_the_end else count) * record
    return int(end + sector - 1) // sector * sector


def _records(journal: BinaryIO, begin: int, count: int, page_size: int, nonce: int) -> Any:
    """Yield for each record its page, and whether its checksum is right."""
    import numpy as np

    record = 8 + page_size
    summed = 4 + np.arange(page_size - 200, 0, -200)
    step = max(1, _AT_ONCE // record)
    for first in range(0, count, step):
        want = min(step, count - first) * record
        content = os.pread(journal.fileno(), want, begin + first * record)
        raw: Any = np.frombuffer(content, np.uint8)
        raw = raw[: len(raw) // record * record].reshape(-1, record)
        pages = raw[:, :4].copy().view(">u4")[:, 0]
        checksums = raw[:, -4:].copy().view(">u4")[:, 0].astype(np.uint32)
        sums = (raw[:, summed].sum(axis=1, dtype=np.uint64) + nonce).astype(np.uint32)
        right = (pages != 0) & (pages != _LOCK_BYTE // page_size + 1) & (checksums == sums)
        yield from zip(pages.tolist(), right.tolist())


def _names_another(journal: BinaryIO, size: int) -> bool:
    """Whether the journal ends with the path of a super-journal."""
    end = os.pread(journal.fileno(), 16, max(0, size - 16))
    if len(end) < 16 or end[8:] != _JOURNAL_MAGIC:
        return False
    length, checksum = struct.unpack(">2I", end[:8])
    if not 0 < length <= min(size - 16, 1 << 16):
        return False
    name = os.pread(journal.fileno(), length, size - 16 - length)
    signed = sum(byte - 256 * (byte > 127) for byte in name)  # SQLite uses signed chars
    return bool(checksum in (sum(name) % 2**32, signed % 2**32))


def _is_page_size(size: int) -> bool:
    return 512 <= size <= 65536 and size & (size - 1) == 0
