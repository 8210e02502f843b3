"""ROS 2 bags: a folder of MCAP or sqlite3 files, or one of these."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ._bag_parts import require_one
from ._bags import Bag, BagFile
from ._errors import Damage, FormatError, needed, nothing_of
from ._files import Folder, opened, special_kind
from ._findings import Finding
from ._mcap import MAGIC, Mcap
from ._open import Options, head
from ._recording import Recording
from ._strangers import stranger
from ._unpacked_files import Unpacked, is_packed, unpacked_start

_SQLITE = b"SQLite format 3\0"
_METADATA = "metadata.yaml"
_SUFFIXES = (".mcap", ".db3", ".mcap.zstd", ".db3.zstd", ".mcap.zst", ".db3.zst")


def sniff(path: str) -> bool:
    if os.path.isdir(path):
        return bool(_files_in(path)) or _is_bag(os.path.join(path, _METADATA))
    start = head(path, 16)
    if is_packed(start):
        start = unpacked_start(path, 16)
        return start.startswith(MAGIC) or start == _SQLITE or (not start and _is_named_so(path))
    return start.startswith(MAGIC) or (start == _SQLITE and _has_messages(path))


def open(path: str, options: Options) -> Recording:
    """One recording of all files of a bag."""
    needed("numpy", "ros", "a ROS bag")
    told = _Told()
    files, notes = [path], list[Finding]()
    if os.path.isdir(path):
        told = _metadata(path, options.damage)
        folder = Folder(path, options.follow_links)
        files = _parts(folder, told.files, options.damage, notes)
    opened = [one for file in files if (one := _opened(file, options, len(files) == 1))]
    if not opened:
        raise FormatError(path, "", nothing_of(options.damage))
    if len(opened) > 1 and not told.files:
        require_one(path, opened)
    kinds = {"MCAP" if isinstance(file, Mcap) else "sqlite3" for file in opened}
    kind = f"ROS 2 bag ({', '.join(sorted(kinds))})"
    bag = Bag(
        path,
        kind,
        opened,
        options.damage,
        options.definitions,
        told.distribution,
        told.counts,
        options.limit,
    )
    bag.notes += notes
    return Recording(bag, progress=options.progress)


def _parts(folder: Folder, told: Sequence[str], damage: Damage, notes: list[Finding]) -> list[str]:
    """The files of a bag: those that its metadata tell of, or else those that are there."""
    names = list(told) or _files_in(folder.path)
    if not names:
        raise FormatError(folder.path, "", "has no .mcap and no .db3 file")
    missing = [name for name in told if not folder.has(name)]
    others = [name for name in _files_in(folder.path) if name not in told] if missing else []
    if missing and len(missing) == len(others):
        # As many files with other names: they were renamed, or unpacked.
        for name, other in zip(missing, others):
            text = f"{_METADATA} names {name}, which is not here. {other} is, and is read instead"
            notes.append(Finding("note", "renamed", "", other, text))
        renamed = dict(zip(missing, others))
        names, missing = [renamed.get(name, name) for name in names], []
    files = []
    for name in names:
        folder.require_inside(name)
        special = special_kind(folder.place(name)) if folder.has(name) else None
        if special is not None:
            reason = f"is {special}, expected a regular file: its messages are lost"
            damage.found(folder.path, name, reason)
        elif folder.has(name):
            files.append(folder.place(name))
        else:
            damage.found(folder.path, name, _missing(name, others))
    return files


def _missing(name: str, others: Sequence[str]) -> str:
    reason = f"{_METADATA} names {name}, which is not here: its messages are lost"
    if not others:
        return reason
    are = f"{others[0]} is: was it renamed? Open that file, or correct {_METADATA}"
    if len(others) > 1:
        are = f"{', '.join(others[:4])} are: were they renamed? Open these files, or correct "
        are += _METADATA
    return f"{reason}. {are}"


def _opened(file: str, options: Options, alone: bool) -> BagFile | None:
    """One file; None if it cannot be read, but there are others."""
    damage = options.damage
    start = head(file, 16)
    try:
        content = Unpacked(file, options.limit) if is_packed(start) else None
        if content is not None:
            start = unpacked_start(file, 16)
        if start.startswith(MAGIC):
            return Mcap(file, damage, options.limit, content)
        if start == _SQLITE:
            from ._sqlite import Sqlite

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
            reason = "it is compressed (zstd), and damaged or cut off: nothing can be unpacked"
    if alone:
        raise FormatError(file, "", reason)
    damage.found(file, "", reason)
    return None


def _files_in(path: str) -> list[str]:
    """Bag files by name, the parts of a split one in their order, also those that are no files."""
    found = [
        entry.name
        for entry in os.scandir(path)
        if entry.name.endswith(_SUFFIXES) and not entry.is_dir()
    ]
    return sorted(found, key=_place)


def _place(name: str) -> tuple[list[int], str]:
    """Where a part of a split bag comes: by the last number before its suffix."""
    return [int(n) for n in re.findall(r"\d+", os.path.splitext(name)[0])[-1:]] or [0], name


def _is_named_so(path: str) -> bool:
    return path.endswith(_SUFFIXES)


def _is_bag(path: str) -> bool:
    return b"rosbag2_bagfile_information" in head(path, 4096)


@dataclass(frozen=True)
class _Told:
    """What metadata.yaml says."""

    files: Sequence[str] = ()
    distribution: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)  # messages by topic


def _metadata(path: str, damage: Damage) -> _Told:
    """Nothing where there is none, or none that can be read."""
    file = os.path.join(path, _METADATA)
    if not os.path.lexists(file):
        return _Told()
    yaml = needed("ruamel.yaml", "ros", "a ROS 2 bag").YAML(typ="safe", pure=True)
    try:
        text = _text(file)
    except (FormatError, FileNotFoundError) as error:
        reason = error.reason if isinstance(error, FormatError) else "is a link to nothing"
        damage.found(file, "", reason)
        return _Told()
    try:
        told = yaml.load(text.decode("utf-8"))["rosbag2_bagfile_information"]
        topics = told.get("topics_with_message_count") or ()
        return _Told(
            list(dict.fromkeys(map(os.path.basename, told.get("relative_file_paths") or ()))),
            told.get("ros_distro") or None,
            {of["topic_metadata"]["name"]: int(of["message_count"]) for of in topics},
        )
    except Exception as error:  # of the parser, which has many
        line = str(error).partition("\n")[0]
        damage.found(file, "", f"cannot be read: {line or type(error).__name__}")
        return _Told()


def _text(file: str) -> bytes:
    with opened(file) as metadata:
        return metadata.read()


def _has_messages(path: str) -> bool:
    from ._sqlite import has_messages

    return has_messages(path)
