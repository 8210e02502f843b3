"""JSON lines: one object per line, with its numbers as channels."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from ..._errors import FormatError, needed
from ..._file_access import head, opened
from ..._options import Options
from ..._progress import progress
from ..._recording import Recording
from ..description import Format
from ..tables.instances import codes_of
from .json_blocks import Parser, Unlike, arrays_of
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
_BLOCK = 1 << 20  # bytes that are parsed at once
_LONGEST = 16 << 20  # bytes of a line
_MOST_FIELDS = 1 << 18  # of a line
_DECODER: Any = json.JSONDecoder()
_PARSE = _DECODER.scan_once  # json.loads takes twice as long for short lines
_MOST_PARTS = 1 << 12  # columns of all labels in a block
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
            for block, first, count in _blocks(path, file):
                if first == 1 or not rows.take(block):
                    rows.add(_parsed(path, block.split(b"\n"), first, options))
                done(count)
    source = Records(path, options, "JSON lines", rows.by_name())
    return Recording(source, progress=options.progress)


class _Split:
    """Rows by the text of a key."""

    def __init__(self, path: str, stem: str) -> None:
        self.path, self.stem = path, stem
        self.rows: dict[tuple[str, str], Rows] = {}  # by key and text; ("", "") without a key
        self.parser = Parser()

    def take(self, block: bytes) -> bool:
        """Add the objects of a block, if Arrow can parse them and all names are known."""
        table = self.parser.table(block)
        parts = None if table is None else _by_label(table)
        if parts is None or any(label not in self.rows for label in parts):
            return False
        try:
            found = {
                label: self.rows[label].found_in(
                    block, arrays_of(part), len(part), len(self.rows) > 1
                )
                for label, part in parts.items()
            }
        except Unlike:
            self.parser.missed()
            return False
        for label, part in parts.items():
            self.rows[label].take(found[label], len(part))
        return True

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


def _by_label(table: Any) -> dict[tuple[str, str], Any] | None:
    """Return the rows of each text of a key, as :class:`_Split` separates them; None: too many."""
    import numpy as np

    arrow = needed("pyarrow", "tables", "JSON lines")
    labels: list[tuple[str, str]] = []
    codes = np.full(len(table), -1)
    for key in _KEYS:
        if key in table.column_names and arrow.types.is_string(table.schema.field(key).type):
            own, there = codes_of("", key, table[key])
            codes = np.where((codes < 0) & there, own[0] + len(labels), codes)
            labels += [(key, text) for text in own[1]]
    labels.append(("", ""))  # of code -1
    used = np.unique(codes)
    if len(used) == 1:
        return {labels[used[0]]: table}
    if len(used) * len(table.column_names) > _MOST_PARTS:
        return None
    return {labels[code]: table.take(arrow.array(np.flatnonzero(codes == code))) for code in used}


def _blocks(path: str, file: BinaryIO) -> Iterator[tuple[bytes, int, int]]:
    """Yield blocks of lines: bytes, the number of the first line, and the bytes that were read."""
    rest, line = b"", 1
    while data := file.read(_BLOCK):
        whole, newline, rest = (rest + data).rpartition(b"\n")
        if len(rest) > _LONGEST:
            text = f"has more than {_LONGEST >> 20} MiB"
            raise FormatError(path, f"line {line + whole.count(10) + len(newline)}", text)
        if newline:
            yield whole, line, len(data)
            line += whole.count(b"\n") + 1
    if rest.strip():
        yield rest, line, 0


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
