"""ROS 2 bags: a folder of MCAP or sqlite3 files, or one of these."""

from __future__ import annotations

import builtins
import os
import re
from typing import Any

from ._bags import Bag, BagFile
from ._errors import FormatError, needed
from ._folders import Folder
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
    told: dict[str, Any] = {}
    files = [path]
    if os.path.isdir(path):
        told = _metadata(path)
        folder = Folder(path, options.follow_links)
        names = [os.path.basename(name) for name in told.get("relative_file_paths", [])]
        files = [folder.file(name) for name in names or _files_in(path)]
        if not files:
            raise FormatError(path, "", "has no .mcap and no .db3 file")
    opened: list[BagFile] = []
    for file in files:
        start = head(file, 16)
        if start.startswith(MAGIC):
            opened.append(Mcap(file, options.damage))
        elif start == _SQLITE:
            from ._sqlite import Sqlite

            opened.append(Sqlite(file, options.damage))
        else:
            reason = "is empty" if not start else f"is neither MCAP nor sqlite3: {start!r}"
            if start[:4] == b"\x28\xb5\x2f\xfd":
                reason = "is compressed as a whole: unpack it with zstd -d"
            options.damage.found(file, "byte 0", reason)
    if not opened:
        raise FormatError(path, "", "none of its files can be read")
    kinds = {"MCAP" if isinstance(file, Mcap) else "sqlite3" for file in opened}
    kind = f"ROS 2 bag ({', '.join(sorted(kinds))})"
    distribution = told.get("ros_distro") or None
    counts = {
        topic["topic_metadata"]["name"]: int(topic["message_count"])
        for topic in told.get("topics_with_message_count", [])
    }
    bag = Bag(path, kind, opened, options.damage, options.definitions, distribution, counts)
    return Recording(bag, progress=options.progress)


def _files_in(path: str) -> list[str]:
    """Bag files by name, the parts of a split one in their order."""
    found = [
        entry.name
        for entry in os.scandir(path)
        if entry.name.endswith((".mcap", ".db3")) and entry.is_file()
    ]
    return sorted(found, key=lambda name: [int(n) for n in re.findall(r"\d+", name)[-1:]] or [0])


def _is_bag(path: str) -> bool:
    return b"rosbag2_bagfile_information" in head(path, 4096)


def _metadata(path: str) -> dict[str, Any]:
    """What metadata.yaml says; nothing where there is none."""
    file = os.path.join(path, _METADATA)
    if not os.path.isfile(file):
        return {}
    yaml = needed("ruamel.yaml", "ros", "a ROS 2 bag").YAML(typ="safe", pure=True)
    try:
        with builtins.open(file, encoding="utf-8") as text:
            told = yaml.load(text)
        information = told["rosbag2_bagfile_information"]
        return dict(information)
    except Exception as error:  # of the parser, which has many
        line = str(error).partition("\n")[0]
        raise FormatError(file, "", f"cannot be read: {line or type(error).__name__}") from None


def _has_messages(path: str) -> bool:
    from ._sqlite import has_messages

    return has_messages(path)
