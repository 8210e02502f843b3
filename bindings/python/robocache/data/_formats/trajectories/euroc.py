"""Folders of EuRoC's layout (ASL): mav0 with a folder per sensor, and data.csv in each."""

from __future__ import annotations

import os
from collections.abc import Iterator

from ..._errors import FormatError, LeftOut, needed
from ..._file_access import Folder, head, is_folder, special_kind
from ..._frames.pictures import ImageFrames
from ..._options import Options
from ..._recording import Recording
from ..description import Format
from ..tables.columns import fault_of, is_table
from ..tables.tables import Tables
from .pictures import euroc_camera

FORMAT = Format(
    name="euroc",
    title="EuRoC (ASL) folder",
    files="mav0/imu0/data.csv, mav0/state_groundtruth_estimate0/data.csv",
    reads="One stream per sensor with a data.csv, named by its folder (imu0), on the timestamps in "
    "ns. Quaternions are w first, as the names of the columns say, and are aligned by slerp. One "
    "data.csv can be opened on its own. Folders of pictures (cam0) are cameras.",
    refuses="Folders with another data.csv are listed.",
    package="pyarrow",
    extra="tables",
    example='recording = rbc.data.open("MH_01_easy")',
    named_times=True,
)
_TABLE = "data.csv"
_BEGIN = b"#timestamp"
_LOOK = 256  # bytes; the header of a camera is shorter


def sniff(path: str) -> bool:
    return os.path.isdir(path) and bool(_sensors(_base(path)))


def open(path: str, options: Options) -> Recording:
    needed("pyarrow", "tables", "a table")
    base = _base(path)
    folder = Folder(path, options.follow_links)
    inner = os.path.relpath(base, path)
    files: dict[str, str] = {}
    left_out: list[LeftOut] = []
    cameras: dict[str, ImageFrames] = {}
    for name in _sensors(base):
        try:
            file = folder.file(os.path.normpath(os.path.join(inner, name, _TABLE)))
        except FormatError as error:
            options.damage.found(error.path, error.place, error.reason)
            continue
        if b"filename" in head(file, _LOOK).partition(b"\n")[0]:
            camera = euroc_camera(path, inner, name, options.follow_links)
            if camera is None:
                left_out.append(LeftOut(name, "names and times of pictures, which are missing"))
            else:
                cameras[name] = camera
        else:
            files[f"{name}.csv"] = file
    for name, reason, is_damage in _others(folder, base, inner):
        if is_damage:
            options.damage.found(os.path.join(base, name, _TABLE), "", reason)
        else:
            left_out.append(LeftOut(name, reason))
    source = Tables(path, files, options, left_out, FORMAT.title)
    source.cameras = cameras
    return Recording(source, progress=options.progress)


def _others(folder: Folder, base: str, inner: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the folders with another data.csv, the reason, and whether it is damaged."""
    known = _sensors(base)
    for entry in sorted(filter(is_folder, os.scandir(base)), key=lambda entry: entry.name):
        if entry.name in known or not os.path.isfile(os.path.join(entry.path, _TABLE)):
            continue
        file = folder.file(os.path.normpath(os.path.join(inner, entry.name, _TABLE)))
        if is_table(file):
            text = f"its {_TABLE} does not begin with {_BEGIN.decode()}: open it separately"
            yield entry.name, text, False
        else:
            yield entry.name, *fault_of(file)


def _base(path: str) -> str:
    inner = os.path.join(path, "mav0")
    return inner if os.path.isdir(inner) else path


def _sensors(path: str) -> list[str]:
    """Return the folders with a table of EuRoC, or with a pipe or a device next to such folders."""
    found, others = [], []
    for entry in filter(is_folder, os.scandir(path)):
        table = os.path.join(entry.path, _TABLE)
        if head(table, len(_BEGIN)).lower() == _BEGIN:
            found.append(entry.name)
        elif os.path.exists(table) and special_kind(table) is not None:
            others.append(entry.name)
    return sorted(found + others) if found else []
