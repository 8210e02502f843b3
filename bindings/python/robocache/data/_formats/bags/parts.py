"""Tests whether the bag files of a folder are one recording, without a metadata.yaml."""

from __future__ import annotations

import os
import re
import sqlite3
import struct
from collections.abc import Sequence

from ...._printable import printable
from ..._errors import FormatError
from .bag import BagFile
from .mcap import MAGIC, Mcap

SUFFIXES = (".mcap", ".db3", ".mcap.zstd", ".db3.zstd", ".mcap.zst", ".db3.zst")
_PART = re.compile(r"(.*?)_?(\d+)$")
_ADJOINING = 10.0  # s between the end of a part and the begin of the next one
_OVERLAP = 1.0  # s that parts may share, since several threads write
_SHOWN = 12  # files in a message
_STATISTICS, _CHUNK_INDEX = 0x0B, 0x08
_MOST = 256 << 20  # bytes of a summary


def require_one(folder: str, files: Sequence[BagFile]) -> None:
    """Refuse files that are several recordings.

    Parts of one are called name_0, name_1, ... with the same topics, each from where the one before
    ends.

    Raises
    ------
    FormatError
        There are several. It names them.
    """
    recordings = 1
    for before, after in zip(files, files[1:]):
        recordings += not _goes_on(before, after)
    if recordings > 1:
        names = [printable(os.path.basename(file.path)) for file in files]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        raise FormatError(
            folder,
            "",
            f"this folder holds {recordings} recordings: open one of "
            f"{', '.join(names[:_SHOWN])}{more}",
        )


def stem(name: str) -> str:
    """The name of a bag file without its suffix, also if it is compressed."""
    return next((name[: -len(end)] for end in SUFFIXES if name.endswith(end)), name)


def _goes_on(before: BagFile, after: BagFile) -> bool:
    """Whether a file is the next part of the recording of another."""
    names = [os.path.basename(file.path) for file in (before, after)]
    stems = [stem(name) for name in names]
    first, second = map(_PART.match, stems)
    if not first or not second or first[1] != second[1]:
        return False
    if names[0][len(stems[0]) :] != names[1][len(stems[1]) :]:
        return False
    if int(second[2]) != int(first[2]) + 1:
        return False
    topics = [{(c.topic, c.typename) for c in file.channels.values()} for file in (before, after)]
    if not (topics[0] <= topics[1] or topics[1] <= topics[0]):
        return False
    spans = span_of(before), span_of(after)
    if spans[0] is None or spans[1] is None:  # without messages, or it is not known
        return True
    pause = (spans[1][0] - spans[0][1]) / 1e9
    return -_OVERLAP <= pause <= _ADJOINING


def span_of(file: BagFile) -> tuple[int, int] | None:
    """The first and the last log time of a bag file in ns, by its index."""
    if isinstance(file, Mcap):
        return _span_of_summary(file)
    database = getattr(file, "database", None)
    if database is None:
        return None
    query = "SELECT (SELECT min(timestamp) FROM messages), (SELECT max(timestamp) FROM messages)"
    try:
        with database.connection() as connection:
            begin, end = connection.execute(query).fetchone()
    except sqlite3.Error:  # reading the messages says what is wrong
        return None
    return (begin, end) if type(begin) is int and type(end) is int else None


def _span_of_summary(mcap: Mcap) -> tuple[int, int] | None:
    """Read the span of an MCAP file from its statistics, or from the index of its chunks."""
    size = mcap.size
    with mcap.opened() as file:
        file.seek(max(8, size - 37))
        end = file.read() or b""
        if len(end) != 37 or end[-8:] != MAGIC:
            return None
        (begin,) = struct.unpack_from("<Q", end, 9)
        if not 8 <= begin <= size - 37 or size - begin > _MOST:
            return None
        file.seek(begin)
        summary = file.read(size - 37 - begin) or b""
    spans, at = [], 0
    while at + 9 <= len(summary):
        op, length = struct.unpack_from("<BQ", summary, at)
        at += 9
        if op == _STATISTICS and length >= 42 and at + 42 <= len(summary):
            count, first, last = struct.unpack_from("<Q18xQQ", summary, at)
            if count and last:
                return first, last
        if op == _CHUNK_INDEX and length >= 16 and at + 16 <= len(summary):
            spans.append(struct.unpack_from("<QQ", summary, at))
        at += length
    spans = [span for span in spans if span[1]]
    return (min(s[0] for s in spans), max(s[1] for s in spans)) if spans else None
