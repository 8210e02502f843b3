"""JSON lines: one object per line, with its numbers as channels."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from ..._errors import FormatError
from ..._file_access import head, opened
from ..._options import Options
from ..._progress import progress
from ..._recording import Recording
from ..description import Format
from .records import Records, Rows, refuse_many

FORMAT = Format(
    "json-lines",
    "JSON lines",
    "*.jsonl, *.ndjson",
    "Each line is an object. Its numbers are channels, nested ones by their path, such as "
    "`pose.x` and `joints[0]`; the times are found as in CSV files. Objects are separated into "
    "streams by the text of `topic`, else of `type`, if it varies; numbers that only some objects "
    "have become a separate stream.",
    "Texts, and arrays whose length changes or is above 64, are listed, but not read.",
    package="pyarrow",
    extra="tables",
    example='recording = rbc.data.open("run.jsonl")',
    named_times=True,
)

_FIRST = re.compile(rb"\s*\{\s*(?:\"|\})")
_LOOK = 1 << 16  # bytes of the first line
_BLOCK = 4 << 20  # bytes that are parsed at once
_LONGEST = 16 << 20  # bytes of a line
_MOST_FIELDS = 1 << 18  # of a line
_DECODER: Any = json.JSONDecoder()
_PARSE = _DECODER.scan_once  # json.loads takes twice as long for short lines
_KEYS = ("topic", "type")  # the first one that an object has


def sniff(path: str) -> bool:
    start = head(path, _LOOK).removeprefix(b"\xef\xbb\xbf")
    if not _FIRST.match(start):
        return False
    line, newline, rest = start.lstrip().partition(b"\n")
    if not newline:
        return path.lower().endswith((".jsonl", ".ndjson"))
    try:
        is_object = isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return path.lower().endswith((".jsonl", ".ndjson"))
    if not rest.strip():
        is_object = is_object and path.lower().endswith((".jsonl", ".ndjson"))
    return is_object and rest.lstrip()[:1] in (b"{", b"")


def open(path: str, options: Options) -> Recording:
    stem = re.sub(r"\.(jsonl|ndjson|json)\Z", "", os.path.basename(path), flags=re.I)
    rows = _Split(path, stem)
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        with progress("Reading JSON lines", size, options.progress) as done:
            for objects, count in _objects(path, file, options):
                rows.add(objects)
                done(count)
    source = Records(path, options, "JSON lines", rows.by_name())
    return Recording(source, progress=options.progress)


class _Split:
    """Rows by the text of a key."""

    def __init__(self, path: str, stem: str) -> None:
        self.path, self.stem = path, stem
        self.rows: dict[tuple[str, str], Rows] = {}  # by key and text; ("", "") without a key

    def add(self, objects: list[dict[str, Any]]) -> None:
        parts: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for each in objects:
            label = ("", "")
            for key in _KEYS:
                text = each.get(key)
                if type(text) is str:
                    label = key, text
                    break
            parts.setdefault(label, []).append(each)
        for label, members in parts.items():
            if label not in self.rows:
                refuse_many(self.path, self.rows, label[0])
                self.rows[label] = Rows()
            self.rows[label].add(members)

    def by_name(self) -> dict[str, Rows]:
        """Return the rows by the names of streams."""
        if len(self.rows) == 1:
            (key, text), rows = next(iter(self.rows.items()))
            return {text if key == "topic" and text else self.stem: rows}
        taken: dict[str, Rows] = {}
        for (_, text), rows in self.rows.items():
            name = text or self.stem
            while name in taken:
                name += "'"
            taken[name] = rows
        for (key, _), rows in self.rows.items():
            rows.texts.pop(key, None)
        return taken


def _objects(
    path: str, file: BinaryIO, options: Options
) -> Iterator[tuple[list[dict[str, Any]], int]]:
    """Yield the objects of a file by blocks, with the bytes that were read."""
    rest, line = b"", 1
    while data := file.read(_BLOCK):
        whole, newline, rest = (rest + data).rpartition(b"\n")
        if len(rest) > _LONGEST:
            text = f"has more than {_LONGEST >> 20} MiB"
            raise FormatError(path, f"line {line + whole.count(10) + len(newline)}", text)
        if newline:
            lines = whole.split(b"\n")
            yield _parsed(path, lines, line, options), len(data)
            line += len(lines)
    if rest.strip():
        yield _parsed(path, [rest], line, options), 0


def _parsed(path: str, lines: list[bytes], first: int, options: Options) -> list[dict[str, Any]]:
    found = []
    for number, content in enumerate(lines, first):
        content = content.strip()
        if number == 1:
            content = content.removeprefix(b"\xef\xbb\xbf")
        if not content:
            continue
        fault = ""
        try:
            if len(content) > _MOST_FIELDS and sum(map(content.count, b",[{")) > _MOST_FIELDS:
                raise ValueError(f"more than {_MOST_FIELDS:,} fields")
            text = content.decode()
            value, end = _PARSE(text, 0)
            if end < len(text):
                raise ValueError("more follows after the first value")
            if type(value) is dict:
                found.append(value)
                continue
            fault = f"is a JSON {type(value).__name__}, expected an object"
        except StopIteration:
            fault = "is not JSON"
        except (ValueError, RecursionError) as error:
            fault = f"is not JSON ({str(error).partition(': line')[0]})"
        options.damage.found(path, f"line {number}", f"{fault}: the line is skipped")
    return found
