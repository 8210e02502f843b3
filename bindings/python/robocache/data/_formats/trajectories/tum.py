"""TUM trajectories: ``timestamp tx ty tz qx qy qz qw`` per line, as evo and the TUM benchmarks."""

from __future__ import annotations

import os

from ..._options import Options
from ..._recording import Recording
from ..description import Format
from ..tables.columns import is_table
from ..tables.csv import layout
from ..tables.layout import TUM_NAMES
from ..tables.tables import open_file

FORMAT = Format(
    name="tum",
    title="TUM trajectory",
    files="*.txt, *.tum",
    reads="One stream: the position in m and the quaternion (x y z w, aligned by slerp), on the "
    "timestamps in s. Lines that begin with # are comments. In a folder of tables, each trajectory "
    "is a stream.",
    refuses="Rows of other numbers: the quaternion must have length 1 in the first rows, and the "
    "timestamps must ascend in them.",
    package="pyarrow",
    extra="tables",
    example='recording = rbc.data.open("groundtruth.txt")',
    named_times=True,
)


def sniff(path: str) -> bool:
    if not os.path.isfile(path) or not is_table(path):
        return False
    found = layout(path)
    return found is not None and found.names == TUM_NAMES and bool(found.floats)


def open(path: str, options: Options) -> Recording:
    return open_file(path, options, FORMAT.title)
