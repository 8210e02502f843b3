"""JSON files that apps and tools export: Sensor Logger's recordings, and telemetry of GoPro."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..._errors import FormatError, LeftOut, needed, raise_shortage
from ..._file_access import head, opened
from ..._options import Options
from ..._recording import Recording
from ..description import Format
from ..tables.instances import codes_of
from .json_blocks import Parser, Unlike, arrays_of, numbers_in
from .layouts import EXACT
from .records import Records, Rows

FORMAT = Format(
    "json-exports",
    "Sensor Logger JSON, GoPro telemetry JSON",
    "*.json",
    "Sensor Logger: a stream for each sensor, with the clock `time` in nanoseconds. GoPro, as "
    "gopro-telemetry writes it: a stream for each sensor, such as `ACCL`, with the clock `cts` in "
    "milliseconds since the video began.",
    "Metadata, annotations and texts are listed, but not read. Other JSON files are not read.",
    package="pyarrow",
    extra="tables",
    example='recording = rbc.data.open("GH010042.json")',
    named_times=True,
)

_LOOK = 4096
_SENSORS = re.compile(rb'\s*\[\s*\{[^{}]*"sensor"\s*:\s*"')
_GOPRO = re.compile(rb'\s*\{\s*"\d+"\s*:\s*\{\s*"streams"\s*:\s*\{\s*"[A-Z0-9]{4}"\s*:\s*\{')
_FACTS = ("Metadata", "Annotation")
_QUATERNIONS = ("CORI", "IORI")
_PARTS = re.compile(r"\(([^()]*)\)\s*\Z")
_MARKS = b",[{"
_BETWEEN = re.compile(rb"\}[ \t\r\n]*,[ \t\r\n]*\{")  # objects, or within a text
_BLOCK = 1 << 20  # bytes that are parsed at once
_SAMPLES = 1 << 14  # that are added at once
_EACH = 64  # bytes in memory of a value, about


def sniff(path: str) -> bool:
    start = head(path, _LOOK).removeprefix(b"\xef\xbb\xbf")
    return bool(_SENSORS.match(start) or _GOPRO.match(start))


def open(path: str, options: Options) -> Recording:
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read()
    count = sum(map(content.count, _MARKS))
    options.limit.require(path, f"{count:,} values", count * _EACH, size)
    if _SENSORS.match(content.removeprefix(b"\xef\xbb\xbf")):
        made = _sensors(path, content, options)
        if made is not None:
            return made
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise FormatError(path, "", f"is not JSON, or is truncated: {error}") from None
    del content
    try:
        if isinstance(value, list):
            sensors = _Sensors(path, options)
            sensors.add(value)
            return sensors.recording()
        rows, left_out = _gopro(value)
    except (TypeError, AttributeError, KeyError) as error:
        raise_shortage(path)
        raise FormatError(path, "", f"has a structure that is not expected: {error!r}") from None
    source = Records(path, options, "GoPro telemetry", rows, left_out)
    return Recording(source, progress=options.progress)


# ---- Sensor Logger -------------------------------------------------------------------------------


class _Sensors:
    """The rows of each sensor."""

    def __init__(self, path: str, options: Options) -> None:
        self.path, self.options = path, options
        self.rows: dict[str, Rows] = {}
        self.facts: dict[str, None] = {}
        self.count = 0  # of the objects

    def add(self, objects: Sequence[Any]) -> None:
        by_sensor: dict[str, list[dict[str, Any]]] = {}
        for i, each in enumerate(objects, self.count):
            sensor = each.get("sensor") if isinstance(each, dict) else None
            if not isinstance(sensor, str):
                text = "is not an object with the name of a sensor: it is skipped"
                self.options.damage.found(self.path, f"element {i}", text)
                continue
            values = {name: _number(value) for name, value in each.items() if name != "sensor"}
            by_sensor.setdefault(sensor, []).append(values)
        self.count += len(objects)
        for sensor, members in by_sensor.items():
            if sensor in _FACTS:
                self.facts[sensor] = None
            else:
                self.rows.setdefault(sensor, Rows()).add(members)

    def take(self, block: bytes, table: Any) -> bool:
        """Add the objects of a block that Arrow parsed, if all sensors and names are known."""
        import numpy as np

        arrow = needed("pyarrow", "tables", "JSON")
        kinds = dict(zip(table.column_names, table.schema.types))
        if not arrow.types.is_string(kinds["sensor"]) or table["sensor"].null_count:
            return False
        (codes, labels), _ = codes_of("", "sensor", table["sensor"])
        table = table.drop_columns(["sensor"])
        found = []
        try:
            for code, label in enumerate(labels):
                if label in _FACTS:
                    if label not in self.facts:
                        return False
                    continue
                if label not in self.rows:
                    return False
                part = table.take(arrow.array(np.flatnonzero(codes == code)))
                columns = {name: numbers_in(each) for name, each in arrays_of(part).items()}
                rows = self.rows[label]
                found.append((rows, rows.found_in(block, columns, len(part), True), len(part)))
        except Unlike:
            return False
        for rows, each, count in found:
            rows.take(each, count)
        self.count += len(table)
        return True

    def recording(self) -> Recording:
        left_out = [LeftOut(name, "facts and texts, not samples") for name in self.facts]
        source = Records(self.path, self.options, "Sensor Logger", self.rows, left_out, "ns")
        return Recording(source, progress=self.options.progress)


def _sensors(path: str, content: bytes, options: Options) -> Recording | None:
    """Read objects in blocks, which takes less memory; None if the file must be read as a whole."""
    first = content.find(b"[") + 1
    content = content.rstrip(b" \t\r\n")
    if not content.endswith(b"]"):
        return None
    made, parser = _Sensors(path, options), Parser()
    end = len(content) - 1
    while first < end:
        cut = _BETWEEN.search(content, min(first + _BLOCK, end), end)
        block = content[first : end if cut is None else cut.start() + 1]
        first = end if cut is None else cut.end() - 1
        if made.count:
            lines = _BETWEEN.sub(b"}\n{", block)
            table = parser.table(lines)
            if table is not None and "sensor" in table.column_names and made.take(lines, table):
                continue
        try:
            made.add(json.loads(b"[" + block + b"]"))
        except (ValueError, RecursionError):
            return None
    return made.recording()


def _number(value: Any) -> Any:
    """Return the number that a text holds, since Sensor Logger writes numbers as texts."""
    if not isinstance(value, str):
        return value
    for parse in (int, float):
        try:
            return parse(value)
        except ValueError:
            continue
    return value


# ---- GoPro ---------------------------------------------------------------------------------------


def _gopro(value: Mapping[str, Any]) -> tuple[dict[str, Rows], list[LeftOut]]:
    rows: dict[str, Rows] = {}
    left_out: list[LeftOut] = []
    devices = {name: each for name, each in value.items() if isinstance(each, dict)}
    for device, each in devices.items():
        for key, stream in each.get("streams", {}).items():
            name = key if len(devices) == 1 else f"{key}[{device}]"
            samples = stream["samples"]
            if not samples:
                left_out.append(LeftOut(name, "has no samples"))
                continue
            rows[name] = Rows()
            labels = _labels(key, stream, samples[0].get("value"))
            while samples:
                rows[name].add(list(_samples(labels, samples[:_SAMPLES])))
                del samples[:_SAMPLES]  # they take five times the memory of the file
    for name in value.keys() - devices.keys():
        left_out.append(LeftOut(name, "a fact about the video, not samples"))
    return rows, left_out


def _samples(
    labels: Sequence[str], samples: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    for sample in samples:
        made: dict[str, Any] = {}
        for name, value in sample.items():
            if name == "cts":
                made["cts time [ms]"] = value
            elif name == "value" and isinstance(value, list) and len(value) == len(labels):
                made.update(zip(labels, map(_as_float, value)))
            else:
                made[name] = _as_float(value)
        yield made


def _as_float(value: Any) -> Any:
    """Return an integer as a float: a sensor that shows whole numbers does not count."""
    return float(value) if type(value) is int and abs(value) <= EXACT else value


def _labels(key: str, stream: Mapping[str, Any], value: Any) -> list[str]:
    """Return the names of the elements of a value, with units: from the name of the stream."""
    count = len(value) if isinstance(value, list) else 0
    if key in _QUATERNIONS and count == 4:
        return [f"quaternion[{i}]" for i in range(4)]
    found = _PARTS.search(str(stream.get("name", "")))
    names = [part.strip() for part in found[1].split(",")] if found else []
    if len(names) != count or len(set(names)) != count:
        names = [f"value[{i}]" for i in range(count)]
    units = stream.get("units")
    if isinstance(units, list) and len(units) == count:
        return [f"{name} [{unit}]" for name, unit in zip(names, units)]
    return [f"{name} [{units}]" if isinstance(units, str) else name for name in names]
