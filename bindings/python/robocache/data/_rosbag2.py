"""ROS 2 bags: a folder of MCAP or sqlite3 files, or one of these."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ._bags import Bag, BagFile
from ._errors import Damage, FormatError, needed, nothing_of
from ._files import Folder, opened, special_kind
from ._mcap import MAGIC, Mcap
from ._open import Options, head
from ._recording import Recording

_SQLITE = b"SQLite format 3\0"
_METADATA = "metadata.yaml"


def sniff(path: str) -> bool:
    if os.path.isdir(path):
        return bool(_files_in(path)) or _is_bag(os.path.join(path, _METADATA))
    start = head(path, 16)
    return start.startswith(MAGIC) or (start == _SQLITE and _has_messages(path))


def open(path: str, options: Options) -> Recording:
    """One recording of all files of a bag."""
    needed("rosbags", "ros", "a ROS bag")
    told = _Told()
    files = [path]
    if os.path.isdir(path):
        told = _metadata(path, options.damage)
        files = _parts(Folder(path, options.follow_links), told.files, options.damage)
    opened = [one for file in files if (one := _opened(file, options, len(files) == 1))]
    if not opened:
        raise FormatError(path, "", nothing_of(options.damage))
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
    return Recording(bag, progress=options.progress)


def _parts(folder: Folder, told: Sequence[str], damage: Damage) -> list[str]:
    """The files of a bag: those that its metadata tell of, or else those that are there."""
    names = told or _files_in(folder.path)
    if not names:
        raise FormatError(folder.path, "", "has no .mcap and no .db3 file")
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
            damage.found(folder.path, name, "is missing: its messages are lost")
    return files


def _opened(file: str, options: Options, alone: bool) -> BagFile | None:
    """One file; None if it cannot be read, but there are others."""
    damage = options.damage
    start = head(file, 16)
    try:
        if start.startswith(MAGIC):
            return Mcap(file, damage, options.limit)
        if start == _SQLITE:
            from ._sqlite import Sqlite

            return Sqlite(file, damage)
    except FormatError as error:
        if alone or not damage.keep:
            raise
        damage.note(error.path, error.place, error.reason)
        return None
    reason = "is empty" if not start else f"is neither MCAP nor sqlite3: {start!r}"
    if start[:4] == b"\x28\xb5\x2f\xfd":
        reason = "is compressed as a whole: unpack it with zstd -d"
    damage.found(file, "byte 0", reason)
    return None


def _files_in(path: str) -> list[str]:
    """Bag files by name, the parts of a split one in their order, also those that are no files."""
    found = [
        entry.name
        for entry in os.scandir(path)
        if entry.name.endswith((".mcap", ".db3")) and not entry.is_dir()
    ]
    return sorted(found, key=lambda name: [int(n) for n in re.findall(r"\d+", name)[-1:]] or [0])


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
