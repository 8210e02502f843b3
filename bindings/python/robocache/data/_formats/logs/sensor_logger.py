"""Folders of the phone app Sensor Logger: one CSV file per sensor."""

from __future__ import annotations

import dataclasses
import os
import re

from ..._errors import LeftOut, needed
from ..._file_access import head, is_file
from ..._options import Options
from ..._recording import Recording
from ..description import Format
from ..tables.tables import Tables, files_in

FORMAT = Format(
    "sensor-logger",
    "Sensor Logger folder",
    "Accelerometer.csv, Orientation.csv, ...",
    "A stream for each sensor, such as `Accelerometer`, with the clock `time` in nanoseconds since "
    "1970. The quaternion of `Orientation` (columns qz, qy, qx, qw) is interpolated by slerp.",
    "Facts and texts (`Metadata.csv`, `Annotation.csv`) are listed, but not read.",
    package="pyarrow",
    extra="tables",
    example='recording = rbc.data.open("2023-11-14_22-13-20")',
    named_times=True,
)

_HEADER = re.compile(rb'(?:\xef\xbb\xbf)?"?time"?,"?seconds_elapsed"?(?:,|\r?\n)')
_FACTS = ("Metadata.csv", "Annotation.csv")


def sniff(path: str) -> bool:
    if not os.path.isdir(path):
        return False
    files = [
        entry.path
        for entry in os.scandir(path)
        if entry.name.endswith(".csv") and entry.name not in _FACTS and is_file(entry)
    ]
    return bool(files) and all(_HEADER.match(head(file, 64)) for file in files)


def open(path: str, options: Options) -> Recording:
    needed("pyarrow", "tables", "a table")
    files, left_out = files_in(path, options)
    for name in _FACTS:
        if files.pop(name, None) is not None:
            left_out.append(LeftOut(name, "facts and texts, not samples"))
    asked = dataclasses.replace(options, unit=options.unit or "ns")
    source = Tables(path, files, asked, left_out, "Sensor Logger")
    return Recording(source, progress=options.progress)
