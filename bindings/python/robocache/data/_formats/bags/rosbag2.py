"""ROS 2 bags: a folder of MCAP or sqlite3 files, or one such file."""

from __future__ import annotations

import functools
import os
import re
import sqlite3
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...._printable import printable
from ..._errors import Damage, FormatError, Unread, needed, nothing_of
from ..._file_access import Folder, head, opened, special_kind
from ..._findings import Finding
from ..._options import Options
from ..._recording import Recording
from ..description import Format
from ..strangers import stranger
from .bag import Bag, BagFile
from .mcap import MAGIC, Mcap
from .unpacked_files import Unpacked, is_packed, unpacked_start

SUFFIXES = (".mcap", ".db3", ".mcap.zstd", ".db3.zstd", ".mcap.zst", ".db3.zst")
_PART = re.compile(r"(.*?)_?(\d+)$")
_ADJOINING = 10.0  # s between the end of a part and the begin of the next one
_OVERLAP = 1.0  # s that parts may overlap, since several threads write
_SHOWN = 12  # files in a message
_STATISTICS, _CHUNK_INDEX = 0x0B, 0x08
_MOST = 256 << 20  # bytes of a summary


def require_one(folder: str, files: Sequence[BagFile]) -> None:
    """Refuse files that are several recordings.

    Parts of one recording are called name_0, name_1, ..., have the same topics, and each begins
    where the previous one ends.

    Raises
    ------
    FormatError
        There are several recordings. The message names them.
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
    """Return the name of a bag file without its suffix, also if it is compressed."""
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
    if spans[0] is None or spans[1] is None:  # without messages, or unknown
        return True
    pause = (spans[1][0] - spans[0][1]) / 1e9
    return -_OVERLAP <= pause <= _ADJOINING


def span_of(file: BagFile) -> tuple[int, int] | None:
    """Return the first and the last log time of a bag file in ns, from its index."""
    if isinstance(file, Mcap):
        return _span_of_summary(file)
    database = getattr(file, "database", None)
    if database is None:
        return None
    query = "SELECT (SELECT min(timestamp) FROM messages), (SELECT max(timestamp) FROM messages)"
    try:
        with database.connection() as connection:
            begin, end = connection.execute(query).fetchone()
    except sqlite3.Error:  # reading the messages reports what is wrong
        return None
    return (begin, end) if type(begin) is int and type(end) is int else None


def _span_of_summary(mcap: Mcap) -> tuple[int, int] | None:
    """Read the span of an MCAP file from its statistics, or from its chunk index."""
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


_SLACK = 1_000_000_000  # ns by which the times of a file and its metadata may differ
_SQLITE = b"SQLite format 3\0"
_METADATA = "metadata.yaml"


_STREAMS = (
    "One stream per topic, or per frame or set of joints if a topic has several. Header stamps "
    "and log times are kept, in ns. "
)
FORMATS = (
    Format(
        name="ros2",
        title="ROS 2 bag (MCAP, sqlite3)",
        files="*.mcap, *.db3, a folder with metadata.yaml, also with .zstd",
        reads=f"{_STREAMS}Fields of messages become channels named by their paths, such as "
        "pose.orientation.x; quaternions and angles are known by the message type. Bags may be "
        "compressed by message, by chunk or by file.",
        refuses="Images, point clouds, texts, and arrays of more than 2048 elements or of changing "
        "length are listed in left_out or unread, as are types without a definition "
        "(definitions= adds them).",
        package="rosbags",
        extra="ros",
        example='recording = rbc.data.open("flight.mcap")',
    ),
    Format(
        name="mcap",
        title="MCAP with JSON or protobuf",
        files="*.mcap",
        reads=f"{_STREAMS}Numbers become channels named by their paths, such as position.x and "
        "joints[0]; in JSON with or without a schema.",
        refuses="Other encodings, such as FlatBuffers, CBOR and MessagePack, are listed in unread.",
        package="lz4, protobuf",
        extra="mcap",
        example='recording = rbc.data.open("log.mcap")',
    ),
)


def sniff(path: str) -> bool:
    if os.path.isdir(path):
        return bool(_files_in(path)) or _is_bag(os.path.join(path, _METADATA))
    start = head(path, 16)
    if is_packed(start):
        start = unpacked_start(path, 16)
        return start.startswith(MAGIC) or start == _SQLITE or (not start and _is_named_so(path))
    return start.startswith(MAGIC) or (start == _SQLITE and _has_messages(path))


def companions(path: str) -> list[str]:
    """Return other files that are read with a single file: the logs of SQLite."""
    real = os.path.realpath(path)
    return [real + "-wal", real + "-journal"]


def open(path: str, options: Options) -> Recording:
    """Open all files of a bag as one recording."""
    needed("numpy", "ros", "a ROS bag")
    metadata = _Metadata()
    files, notes = [path], list[Finding]()
    renamed, unlisted = dict[str, str](), list[str]()
    if os.path.isdir(path):
        metadata = _metadata(path, options.damage)
        folder = Folder(path, options.follow_links)
        renamed = _renamed(folder, metadata.files)
        files = _parts(folder, metadata.files, renamed, options.damage)
        unlisted = _unlisted(path, files) if metadata.files else []
    opened = [one for file in files if (one := _opened(file, options, len(files) == 1))]
    for file in list(opened):
        other = os.path.basename(file.path)
        if other in renamed and not _is_of(file, metadata):
            text = (
                f"{_METADATA} names {renamed[other]}, which is missing: its messages are skipped. "
                f"{other} belongs to another recording: its topics or times differ"
            )
            options.damage.found(path, renamed[other], text)
            opened.remove(file)
        elif other in renamed:
            text = f"{_METADATA} names {renamed[other]}, which is missing. {other} is read instead"
            notes.append(Finding("note", "renamed", "", other, text))
    if not opened:
        raise FormatError(path, "", nothing_of(options.damage))
    if len(opened) > 1 and not metadata.files:
        require_one(path, opened)
    kinds = {"MCAP" if isinstance(file, Mcap) else "sqlite3" for file in opened}
    kind = f"ROS 2 bag ({', '.join(sorted(kinds))})"
    bag = Bag(
        path,
        kind,
        opened,
        options.damage,
        options.definitions,
        metadata.distribution,
        metadata.counts,
        options.limit,
    )
    bag.notes += notes
    bag.unlisted_files += [
        Unread(
            name,
            "",
            None,
            os.path.getsize(os.path.join(path, name)),
            f"{_METADATA} does not name this file. Open it separately, or correct {_METADATA}",
        )
        for name in unlisted
    ]
    bag.reopen = functools.partial(open, path, options)
    return Recording(bag, progress=options.progress)


def _renamed(folder: Folder, listed: Sequence[str]) -> dict[str, str]:
    """Return files that may be those the metadata name, with their names there.

    They were renamed or unpacked if there are as many as missing files.
    """
    missing = [name for name in listed if not folder.has(name)]
    others = [name for name in _files_in(folder.path) if name not in listed]
    return dict(zip(others, missing)) if len(missing) == len(others) else {}


def _is_of(file: BagFile, metadata: _Metadata) -> bool:
    """Whether the topics and times of a file agree with the metadata, as far as known."""
    topics = {channel.topic for channel in file.channels.values()}
    if metadata.counts and not topics <= metadata.counts.keys():
        return False
    span = span_of(file) if metadata.span is not None else None
    if span is None or metadata.span is None:
        return True
    return metadata.span[0] - _SLACK <= span[0] and span[1] <= metadata.span[1] + _SLACK


def _unlisted(path: str, files: Sequence[str]) -> list[str]:
    """Return bag files that are not read, except packed or unpacked copies of those read."""
    stems = {stem(os.path.basename(file)) for file in files}
    return [
        name
        for name in _files_in(path)
        if stem(name) not in stems and os.path.isfile(os.path.join(path, name))
    ]


def _parts(
    folder: Folder, listed: Sequence[str], renamed: Mapping[str, str], damage: Damage
) -> list[str]:
    """Return the files of a bag: the files in its metadata, or else in its folder."""
    names = list(listed) or _files_in(folder.path)
    if not names:
        raise FormatError(folder.path, "", "has no .mcap and no .db3 file")
    missing = [name for name in listed if not folder.has(name)]
    others = [name for name in _files_in(folder.path) if name not in listed] if missing else []
    instead = {name: other for other, name in renamed.items()}
    names = [instead.get(name, name) for name in names]
    files = []
    for name in names:
        folder.require_inside(name)
        special = special_kind(folder.place(name)) if folder.has(name) else None
        if special is not None:
            reason = f"is {special}, expected a regular file: its messages are skipped"
            damage.found(folder.path, name, reason)
        elif folder.has(name):
            files.append(folder.place(name))
        else:
            damage.found(folder.path, name, _missing(name, others))
    return files


def _missing(name: str, others: Sequence[str]) -> str:
    reason = f"{_METADATA} names {name}, which is missing: its messages cannot be read"
    if not others:
        return reason
    are = f"{others[0]} is here: was it renamed? Open that file, or correct {_METADATA}"
    if len(others) > 1:
        are = f"{', '.join(others[:4])} are here: were they renamed? Open these files, or correct "
        are += _METADATA
    return f"{reason}. {are}"


def _opened(file: str, options: Options, alone: bool) -> BagFile | None:
    """Open one file; None if it cannot be read, but there are others."""
    damage = options.damage
    start = head(file, 16)
    try:
        content = Unpacked(file, options.limit) if is_packed(start) else None
        if content is not None:
            start = unpacked_start(file, 16)
        if start.startswith(MAGIC):
            return Mcap(file, damage, options.limit, content)
        if start == _SQLITE:
            from .sqlite import Sqlite

            return Sqlite(file, damage, None if content is None else options.limit)
    except FormatError as error:
        if alone or not damage.keep:
            raise
        damage.note(error.path, error.place, error.reason)
        return None
    reason = stranger(file) or f"it is neither MCAP nor sqlite3: it begins with {start!r}"
    if content is not None:
        reason = "it is compressed (zstd), and holds neither MCAP nor sqlite3"
        if not start:
            reason = "it is compressed (zstd), and is damaged or truncated: nothing can be unpacked"
    if alone:
        raise FormatError(file, "", reason)
    damage.found(file, "", reason)
    return None


def _files_in(path: str) -> list[str]:
    """Return bag files by name, with the parts of a split bag in order."""
    found = [
        entry.name
        for entry in os.scandir(path)
        if entry.name.endswith(SUFFIXES) and not entry.is_dir()
    ]
    return sorted(found, key=_place)


def _place(name: str) -> tuple[list[int], str]:
    """Return the sort key of a part of a split bag: the last number before its suffix."""
    return [int(n) for n in re.findall(r"\d+", stem(name))[-1:]] or [0], name


def _is_named_so(path: str) -> bool:
    return path.endswith(SUFFIXES)


def _is_bag(path: str) -> bool:
    return b"rosbag2_bagfile_information" in head(path, 4096)


@dataclass(frozen=True)
class _Metadata:
    """The content of metadata.yaml."""

    files: Sequence[str] = ()
    distribution: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)  # messages by topic
    span: tuple[int, int] | None = None  # log times, ns


def _metadata(path: str, damage: Damage) -> _Metadata:
    """Read the metadata; the result is empty if they are missing or cannot be read."""
    file = os.path.join(path, _METADATA)
    if not os.path.lexists(file):
        return _Metadata()
    yaml = needed("ruamel.yaml", "ros", "a ROS 2 bag").YAML(typ="safe", pure=True)
    try:
        text = _text(file)
    except (FormatError, FileNotFoundError) as error:
        reason = error.reason if isinstance(error, FormatError) else "is a broken link"
        damage.found(file, "", reason)
        return _Metadata()
    try:
        content = yaml.load(text.decode("utf-8"))["rosbag2_bagfile_information"]
        topics = content.get("topics_with_message_count") or ()
        return _Metadata(
            list(dict.fromkeys(map(os.path.basename, content.get("relative_file_paths") or ()))),
            content.get("ros_distro") or None,
            {topic["topic_metadata"]["name"]: int(topic["message_count"]) for topic in topics},
            _span(content),
        )
    except Exception as error:  # the parser has many kinds
        line = str(error).partition("\n")[0]
        damage.found(file, "", f"cannot be read: {line or type(error).__name__}")
        return _Metadata()


def _span(content: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the first and the last log time in the metadata; None if they are missing."""
    begin = (content.get("starting_time") or {}).get("nanoseconds_since_epoch")
    length = (content.get("duration") or {}).get("nanoseconds")
    if type(begin) is not int or type(length) is not int or not content.get("message_count"):
        return None
    return begin, begin + length


def _text(file: str) -> bytes:
    with opened(file) as metadata:
        return metadata.read()


def _has_messages(path: str) -> bool:
    from .sqlite import has_messages

    return has_messages(path)
