"""Poses of KITTI odometry: a 3x4 matrix per line, and the times in a file next to it."""

from __future__ import annotations

import os
from typing import Any

from ..._errors import FormatError, LeftOut, needed
from ..._file_access import Folder, is_file, is_special
from ..._frames.pictures import ImageFrames
from ..._kinds.kinds import Said
from ..._options import Options
from ..._recording import Recording
from ..description import Format
from ..tables.clock import Clock
from ..tables.columns import Column, numbers, stacked
from ..tables.csv import read_rows, start_of
from ..tables.layout import BLANKS, LOOK, Layout
from ..tables.parquet import nan_filled, numbers_of
from ..tables.streams import Table, rows_clock
from ..tables.tables import Tables
from .pictures import kitti_cameras

FORMAT = Format(
    name="kitti",
    title="KITTI odometry poses",
    files="poses.txt with times.txt, 00.txt with 00_times.txt",
    reads="One stream per file of poses: 12 channels r00 to tz of kind pose_3x4 (the rotation is "
    "aligned by slerp), on the times in s of times.txt or NAME_times.txt in the same folder, or at "
    "the rate that the caller gives.",
    refuses="Poses without times and rate; a file of times with another number of rows. Rows whose "
    "rotation is not orthonormal are damage.",
    package="pyarrow",
    extra="tables",
    example='recording = rbc.data.open("poses.txt")',
)
NAMES = tuple(
    name
    for row, axis in enumerate("xyz")
    for name in (*(f"r{row}{c}" for c in range(3)), f"t{axis}")
)
_POSES, _TIMES = "poses.txt", "times.txt"
_NEAR = 0.01  # how far the product of a rotation and its transpose may be from the identity
_COLUMN = "time"
_ROWS = 1 << 13  # that are checked at once


def sniff(path: str) -> bool:
    if os.path.isdir(path):
        return bool(_poses_in(path))
    return os.path.isfile(path) and _has_poses(path)


def companions(path: str) -> list[str]:
    """Return other files that are read with a single file."""
    return [os.path.join(os.path.dirname(path), _TIMES)]


def open(path: str, options: Options) -> Recording:
    needed("pyarrow", "tables", "a trajectory")
    files = {os.path.basename(path): path}
    left_out: list[LeftOut] = []
    cameras: dict[str, ImageFrames] = {}
    if os.path.isdir(path):
        folder = Folder(path, options.follow_links)
        names = _poses_in(path)
        files = {name: folder.file(name) for name in names}
        folder.file(_TIMES)
        cameras = kitti_cameras(path, _TIMES, options.follow_links)
        left_out = [
            LeftOut(name, "holds no poses of KITTI: open it separately")
            for name in sorted(os.listdir(path))
            if name not in (*names, *cameras, _TIMES) and not name.startswith(".")
        ]
    source = Tables(path, files, options, left_out, FORMAT.title, _read)
    source.cameras = cameras
    return Recording(source, progress=options.progress)


def _poses_in(path: str) -> list[str]:
    """Return the files of poses in a folder that also has their times.

    A pipe or a device instead of poses.txt is one too, so that opening it names it.
    """
    if not os.path.isfile(os.path.join(path, _TIMES)):
        return []
    return sorted(
        entry.name
        for entry in os.scandir(path)
        if (is_file(entry) and _has_poses(entry.path))
        or (entry.name == _POSES and is_special(entry))
    )


def _has_poses(path: str) -> bool:
    """Whether the first lines are matrices whose first three columns are a rotation."""
    import numpy as np

    start = start_of(path)[:LOOK]
    lines = start.splitlines() if len(start) < LOOK else start.splitlines()[:-1]
    rows = [line.split() for line in lines if line.strip() and not line.startswith(b"#")]
    if not rows or any(len(row) != len(NAMES) for row in rows[:-1]):
        return False
    rows = [row for row in rows if len(row) == len(NAMES)]  # the last one may be truncated
    try:
        poses = np.array([[float(cell) for cell in row] for row in rows])
    except ValueError:
        return False
    return bool(len(poses) and _are_rotations(poses).all())


def _are_rotations(poses: Any) -> Any:
    """Return a mask of poses [n,12] whose first three columns are a rotation."""
    import numpy as np

    good = np.empty(len(poses), bool)
    for begin in range(0, len(poses), _ROWS):
        first, second, third = poses[begin : begin + _ROWS].T.reshape(3, 4, -1)[:, :3].copy()
        pairs = ((first, first, 1), (second, second, 1), (third, third, 1),
                 (first, second, 0), (first, third, 0), (second, third, 0))  # fmt: skip
        with np.errstate(all="ignore"):
            volume = (np.cross(first, second, axis=0) * third).sum(axis=0)
            own = volume > 0
            for a, b, expected in pairs:
                own &= np.abs((a * b).sum(axis=0) - expected) <= _NEAR
        good[begin : begin + _ROWS] = own
    return good


def _read(stem: str, path: str, options: Options) -> Table:
    import numpy as np

    layout = Layout(BLANKS, None, NAMES, 0, comments="#", floats=NAMES)
    table = read_rows(path, layout, options.limit, options.damage)
    columns = []
    for name in NAMES:
        column = numbers(path, name, nan_filled(table[name]))
        assert isinstance(column, Column)  # all are read as floats
        columns.append(column)
    values = stacked(columns)
    clock, times = _times(stem, path, len(values), options)
    good = _are_rotations(values)
    for column in values.T:
        good &= np.isfinite(column)
    if not good.all():
        row = int(np.argmin(good))
        more = int((~good).sum()) - 1
        text = "its rotation is not orthonormal" + (f", as in {more:,} more rows" if more else "")
        options.damage.found(path, f"row {row}", text)
        values, times = values[good], None if times is None else times[good]
    clocks = {} if times is None else {"time": times}
    made = Table({stem: (list(NAMES), values, clocks, ["float64"] * 12)}, clock, [], list(NAMES))
    made.said[stem] = (Said("pose_3x4", NAMES, "the format of KITTI"),)
    made.table_rows, made.names = len(good), NAMES
    if clock is None:
        made.doubt = (
            f"KITTI poses have no times of their own, and there is no {_TIMES} or "
            f"{stem}_{_TIMES} next to them. Copy it there, or set the poses per second with "
            "--fps HZ (10 in KITTI)"
        )
    return made


def _times(stem: str, path: str, rows: int, options: Options) -> tuple[Clock | None, Any]:
    """Return the times of poses, from the file next to them or by the caller's rate."""
    import numpy as np

    folder = Folder(os.path.dirname(path) or ".", options.follow_links)
    names = [name for name in (f"{stem}_{_TIMES}", _TIMES) if folder.has(name)]
    if options.rate is not None:
        clock = rows_clock(options.rate)
        return clock, np.arange(rows) / options.rate
    if not names:
        return None, None
    file = folder.file(names[0])
    layout = Layout(BLANKS, None, (_COLUMN,), 0, comments="#", floats=(_COLUMN,))
    table = read_rows(file, layout, options.limit, options.damage)
    times = numbers_of(file, _COLUMN, nan_filled(table[_COLUMN]))
    if len(times) != rows:
        text = f"has {len(times):,} times, but {os.path.basename(path)} has {rows:,} poses"
        raise FormatError(file, "", text)
    if not np.isfinite(times).all():
        row = int(np.argmin(np.isfinite(times)))
        raise FormatError(file, f"row {row}", "is not a time")
    clock = Clock(names[0], "f", "s", (_COLUMN,), reason="next to the poses", sample=times)
    return clock, times
