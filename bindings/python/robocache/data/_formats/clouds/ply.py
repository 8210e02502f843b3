"""PLY files: the vertices of point clouds and meshes, in text or binary.

Elements other than vertices, such as faces, and lists of vertices are listed and not read.
"""

from __future__ import annotations

import array
import itertools
import os
import re
import struct
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...._printable import plural
from ..._errors import FormatError, LeftOut, require_thread
from ..._file_access import head, opened, what_is
from ..._options import Options
from ..._point_clouds import PointCloud, PointClouds, folder_of, has_clouds
from ..description import Format
from ..tables.lines import arrow_file, with_single_blanks

FORMAT = Format(
    name="ply",
    title="PLY",
    files="*.ply, a folder of them",
    reads="A point cloud with x, y, z and all other numbers of the vertices, in their dtype: "
    "normals, colors, labels. Text, and binary in both byte orders.",
    refuses="Faces, other elements and lists of vertices are listed, not read.",
    example='cloud = rbc.data.open("scan.ply")',
)

_TYPES = {
    **{"char": "i1", "uchar": "u1", "short": "i2", "ushort": "u2", "int": "i4", "uint": "u4"},
    **{"int8": "i1", "uint8": "u1", "int16": "i2", "uint16": "u2", "int32": "i4", "uint32": "u4"},
    **{"float": "f4", "double": "f8", "float32": "f4", "float64": "f8"},
}
_ORDERS = {"ascii": "=", "binary_little_endian": "<", "binary_big_endian": ">"}
_BEGIN = re.compile(rb"ply[ \t]*(\r\n|\n|\r)")
_HEADER = 1 << 18  # bytes, at most
_MOST = 1 << 31  # rows
_BLOCK = 1 << 20  # bytes of text that are parsed at once
_ROWS = 1 << 14  # of text that are parsed at once
_VERTEX = "vertex"


@dataclass(frozen=True)
class _Property:
    name: str
    dtype: str  # letter and size
    count: str = ""  # of a list: the dtype of its length


@dataclass(frozen=True)
class _Element:
    name: str
    rows: int
    properties: list[_Property]

    @property
    def lists(self) -> list[str]:
        return [each.name for each in self.properties if each.count]

    @property
    def numbers(self) -> list[_Property]:
        return [each for each in self.properties if not each.count]

    def dtype(self, order: str, lengths: dict[str, int] | None = None) -> Any:
        """Return the dtype of a row, whose lists have these lengths."""
        import numpy as np

        fields: list[Any] = []
        for i, each in enumerate(self.properties):
            if each.count:
                fields.append((f"count {i}", order + each.count))
            shape = ((lengths or {})[each.name],) if each.count else ()
            fields.append((f"value {i}", order + each.dtype, shape))
        return np.dtype(fields)


def sniff(path: str) -> bool:
    if os.path.isdir(path):
        return has_clouds(path, _is_ply)
    return _is_ply(path)


def open(path: str, options: Options) -> PointCloud | PointClouds:
    if os.path.isdir(path):
        return PointClouds(path, folder_of(path, _is_ply, ".ply", "PLY file", options), read)
    return read(path)


def _is_ply(path: str) -> bool:
    return _BEGIN.match(head(path, 16)) is not None


def read(path: str) -> PointCloud:
    """Read one file."""
    if not _is_ply(path):
        raise FormatError(path, "", f"expected a PLY file, got {what_is(path)}")
    with opened(path) as file:
        content = file.read()
    encoding, elements, begin = _header(path, content)
    vertices = next((each for each in elements if each.name == _VERTEX), None)
    if vertices is None:
        names = ", ".join(each.name for each in elements) or "none"
        raise FormatError(path, "header", f"has no element vertex; its elements are {names}")
    if not vertices.numbers:
        raise FormatError(path, "header", "its element vertex has no property that is a number")
    is_last = not any(each.rows for each in elements[elements.index(vertices) + 1 :])
    if encoding == "ascii":
        lines = _lines(content, begin)
        for element in elements[: elements.index(vertices)]:
            for _ in _rows_of(path, lines, element):
                pass
        fields = _texts(path, lines, vertices)
        rest = sum(1 for line in lines if line.strip()) if is_last else 0
        after = plural(rest, "line")
    else:
        order = _ORDERS[encoding]
        for element in elements[: elements.index(vertices)]:
            begin = _skipped(path, content, begin, element, order)
        fields = _records(path, content, begin, vertices, order)
        end = len(content)
        if is_last and not vertices.lists:
            end = begin + vertices.rows * int(vertices.dtype(order).itemsize)
        rest = len(content[end:].strip())
        after = plural(len(content) - end, "byte")
    left_out = [
        LeftOut(f"{vertices.name}.{name}", "a list for each vertex, not read")
        for name in vertices.lists
    ]
    for element in elements:
        if element is not vertices and element.rows:
            names = ", ".join(each.name for each in element.properties) or "no properties"
            text = f"{plural(element.rows, 'row')} ({names}), not read"
            left_out.append(LeftOut(element.name, text))
    if rest:
        text = f"{after} after the rows that the header states, not read"
        left_out.append(LeftOut("end of the file", text))
    return PointCloud(path, fields, vertices.rows, left_out=tuple(left_out))


# ---- header -------------------------------------------------------------------------------------


def _header(path: str, content: bytes) -> tuple[str, list[_Element], int]:
    """Return the encoding, the elements, and the offset of the first row."""
    start = _BEGIN.match(content)
    assert start is not None
    at, encoding = start.end(), ""
    elements: list[_Element] = []
    line_end = re.compile(re.escape(start[1]))
    while True:
        found = line_end.search(content, at, at + _HEADER)
        if found is None or at > _HEADER:
            raise FormatError(path, "header", "has no line end_header: the file is truncated")
        line = content[at : found.start()].decode("utf-8", "replace").strip()
        at = found.end()
        words = line.split()
        if words[:1] == ["end_header"]:
            break
        if not words or words[0] in ("comment", "obj_info"):
            continue
        if words[0] == "format" and len(words) == 3 and not encoding:
            encoding = words[1]
            if encoding not in _ORDERS or words[2] != "1.0":
                text = f"has the format {' '.join(words[1:])[:60]}, expected one of "
                raise FormatError(path, "header", f"{text}{', '.join(_ORDERS)} of version 1.0")
        elif words[0] == "element" and len(words) == 3:
            elements.append(_Element(words[1], _count_of(path, words[2], line), []))
        elif words[0] == "property" and elements:
            elements[-1].properties.append(_property(path, words, line))
        else:
            raise FormatError(path, "header", f"has the line {line[:60]!r}, which is unknown")
    if not encoding:
        raise FormatError(path, "header", "has no line format")
    _require_distinct(path, [each.name for each in elements], "elements")
    for element in elements:
        names = [each.name for each in element.properties]
        _require_distinct(path, names, f"properties of {element.name}")
    return encoding, elements, at


def _count_of(path: str, word: str, line: str) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", word) or int(word) >= _MOST:
        raise FormatError(path, "header", f"has the line {line[:60]!r}, expected a number of rows")
    return int(word)


def _property(path: str, words: list[str], line: str) -> _Property:
    is_list = words[1:2] == ["list"] and len(words) == 5
    types = [_TYPES.get(word, "") for word in (words[2:4] if is_list else words[1:2])]
    known = (is_list and types[0][:1] in "iu") or (not is_list and len(words) == 3)
    if not known or not all(types):
        text = f"has the line {line[:60]!r}, expected a property of the types {', '.join(_TYPES)}"
        raise FormatError(path, "header", text)
    return _Property(words[-1], types[-1], types[0] if is_list else "")


def _require_distinct(path: str, names: list[str], what: str) -> None:
    again = next((name for name in names if names.count(name) > 1), None)
    if again is not None:
        raise FormatError(path, "header", f"has two {what} with the name {again[:60]!r}")


# ---- binary -------------------------------------------------------------------------------------


def _skipped(path: str, content: bytes, begin: int, element: _Element, order: str) -> int:
    """Return the offset behind the rows of an element."""
    if element.lists:
        end = begin
        for at in _walked(path, content, begin, element, order):
            end = at
        return end
    size = int(element.dtype(order).itemsize)
    if begin + element.rows * size > len(content):
        raise _cut_off(path, element, (len(content) - begin) // size)
    return begin + element.rows * size


def _records(
    path: str, content: bytes, begin: int, element: _Element, order: str
) -> dict[str, Any]:
    """Return the numbers of an element by name."""
    import numpy as np

    lengths: dict[str, int] = dict.fromkeys(element.lists, 0)
    if lengths and element.rows:  # mostly, all rows have lists of the lengths in the first
        next(_walked(path, content, begin, element, order, lengths))
    dtype = element.dtype(order, lengths)
    if begin + element.rows * dtype.itemsize <= len(content):
        table = np.frombuffer(content, dtype, element.rows, begin)
        if all(
            (table[f"count {i}"] == lengths[each.name]).all()
            for i, each in enumerate(element.properties)
            if each.count
        ):
            return {
                each.name: np.ascontiguousarray(table[f"value {i}"], each.dtype)
                for i, each in enumerate(element.properties)
                if not each.count
            }
    elif not lengths:
        raise _cut_off(path, element, (len(content) - begin) // dtype.itemsize)
    places = array.array("q")  # a list takes four times the memory
    for _ in _walked(path, content, begin, element, order, lengths, places):
        pass
    offsets = np.frombuffer(places, np.int64).reshape(element.rows, len(element.numbers))
    return {
        each.name: _gathered(content, offsets[:, i], order + each.dtype)
        for i, each in enumerate(element.numbers)
    }


def _walked(
    path: str,
    content: bytes,
    begin: int,
    element: _Element,
    order: str,
    lengths: dict[str, int] | None = None,
    places: array.array[int] | None = None,
) -> Iterator[int]:
    """Yield the offset behind each row of an element with lists.

    The lengths of its lists go to ``lengths``, the offsets of its numbers to ``places``.
    """
    steps = [
        (each.name, struct.Struct(order + _LETTERS[each.count]) if each.count else None,
         int(each.dtype[1]))
        for each in element.properties
    ]  # fmt: skip
    at, size = begin, len(content)
    for row in range(element.rows):
        for name, count, width in steps:
            if count is None:
                if places is not None:
                    places.append(at)
                at += width
                continue
            if at + count.size > size:
                raise _cut_off(path, element, row)
            (length,) = count.unpack_from(content, at)
            if length < 0:
                text = f"its list {name} has {length} elements"
                raise FormatError(path, f"{element.name} {row}", text)
            if lengths is not None:
                lengths[name] = length
            at += count.size + length * width
        if at > size:
            raise _cut_off(path, element, row)
        yield at


_LETTERS = {"i1": "b", "u1": "B", "i2": "h", "u2": "H", "i4": "i", "u4": "I"}


def _gathered(content: bytes, offsets: Any, dtype: str) -> Any:
    """Return the numbers at some offsets, in native byte order."""
    import numpy as np

    size = int(dtype[2])
    octets = np.frombuffer(content, np.uint8)
    made = octets[offsets[:, None] + np.arange(size)]
    return np.ascontiguousarray(made).view(dtype)[:, 0].astype(dtype[1:])


def _cut_off(path: str, element: _Element, row: int) -> FormatError:
    text = f"file ends here, but the header says {element.rows:,} rows of {element.name}"
    return FormatError(path, f"{element.name} {row}", text)


# ---- text ---------------------------------------------------------------------------------------


def _lines(content: bytes, at: int) -> Iterator[bytes]:
    """Yield the lines of the rows without copying all of them at once."""
    while at < len(content):
        end = min(at + _BLOCK, len(content))
        if end < len(content):
            ends = (content.rfind(b"\n", at, end), content.rfind(b"\r", at, end))
            end = max(ends) + 1 or _next_line(content, end)
        for line in content[at:end].splitlines():
            if line.strip():
                yield line
        at = end


def _next_line(content: bytes, at: int) -> int:
    """Return the offset behind the end of a long line."""
    found = [end for end in (content.find(b"\n", at), content.find(b"\r", at)) if end >= 0]
    return min(found) + 1 if found else len(content)


def _rows_of(path: str, lines: Iterator[bytes], element: _Element) -> Iterator[bytes]:
    """Yield the lines of an element: one for each row."""
    for row in range(element.rows if element.properties else 0):
        line = next(lines, None)
        if line is None:
            raise _cut_off(path, element, row)
        yield line


def _texts(path: str, lines: Iterator[bytes], element: _Element) -> dict[str, Any]:
    """Return the numbers of an element by name."""
    import numpy as np

    parts: dict[str, list[Any]] = {each.name: [np.empty(0, each.dtype)] for each in element.numbers}
    rows = _rows_of(path, lines, element)
    if element.lists:
        rows = (_without_lists(path, element, i, line) for i, line in enumerate(rows))
    first = 0
    while block := list(itertools.islice(rows, _ROWS)):
        for name, values in _parsed(path, element, first, block).items():
            parts[name].append(values)
        first += len(block)
    return {name: np.concatenate(parts.pop(name)) for name in list(parts)}


def _without_lists(path: str, element: _Element, row: int, line: bytes) -> bytes:
    """Return the words of a row that are not in its lists."""
    words, kept, at = line.split(), [], 0
    for each in element.properties:
        if not each.count:
            kept += words[at : at + 1]
            at += 1
            continue
        length = words[at : at + 1] or [b""]
        if not re.fullmatch(rb"[0-9]{1,10}", length[0]):
            shown = length[0][:40].decode("ascii", "backslashreplace")
            text = f"its list {each.name} has {shown or 'no'} elements"
            raise FormatError(path, f"{element.name} {row}", text)
        at += 1 + int(length[0])
    if at != len(words):
        raise FormatError(path, f"{element.name} {row}", f"has {len(words)} words, expected {at}")
    return b" ".join(kept)


def _parsed(path: str, element: _Element, first: int, block: list[bytes]) -> dict[str, Any]:
    """Return the numbers of some lines, in their dtypes."""
    import numpy as np

    columns = _by_arrow(path, element, block)
    if columns is None:
        columns = _by_numpy(path, element, first, block)
    made = {}
    for each, column in zip(element.numbers, columns):
        with np.errstate(all="ignore"):
            made[each.name] = column.astype(each.dtype)
            if each.dtype[0] == "f":
                wrong = np.isinf(made[each.name]) & np.isfinite(column)
            else:
                wrong = made[each.name] != column
        if wrong.any():
            row = int(wrong.argmax())
            text = f"{each.name} is {column[row]:.17g}, not a number of type {np.dtype(each.dtype)}"
            raise FormatError(path, f"{element.name} {first + row}", text)
    return made


def _by_arrow(path: str, element: _Element, block: list[bytes]) -> list[Any] | None:
    """Parse lines by Arrow, if it is installed; None if NumPy must decide on a line."""
    import numpy as np

    try:
        import pyarrow as arrow
        from pyarrow import csv
    except ImportError:
        return None
    content = with_single_blanks(b"\n".join(block))
    if b'"' in content or not content.isascii():
        return None
    names = [each.name for each in element.numbers]
    require_thread(path)
    try:
        table = csv.read_csv(
            arrow_file(content),
            read_options=csv.ReadOptions(
                column_names=names, use_threads=False, block_size=len(content) + 1
            ),
            parse_options=csv.ParseOptions(delimiter=" ", ignore_empty_lines=False),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(names, arrow.float64()), null_values=[]
            ),
        )
    except arrow.ArrowInvalid:
        return None
    columns = [
        np.concatenate([np.frombuffer(part.buffers()[1], np.float64, len(part), 8 * part.offset)
                        for part in column.chunks])
        for column in table.columns
    ]  # fmt: skip
    # Arrow reads "nan(1)", which is no number.
    return columns if len(table) == len(block) and all(map(_no_nan, columns)) else None


def _no_nan(values: Any) -> bool:
    return not bool((values != values).any())


def _by_numpy(path: str, element: _Element, first: int, block: list[bytes]) -> Any:
    """Parse lines by NumPy; raise an error that names the line."""
    import numpy as np

    width = len(element.numbers)
    for row, line in enumerate(block, first):
        count = len(line.split())
        if count != width:
            text = f"has {count} numbers, but the header says {width}"
            raise FormatError(path, f"{element.name} {row}", text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            table = np.fromstring(b" ".join(block), np.float64, sep=" ").reshape(-1, width)
        except (ValueError, DeprecationWarning):
            raise _no_number(path, element, first, block) from None
    if len(table) != len(block):
        raise _no_number(path, element, first, block)
    return table.T


def _no_number(path: str, element: _Element, first: int, block: list[bytes]) -> FormatError:
    """Return an error that names the first word that is not a number."""
    for row, line in enumerate(block, first):
        for each, word in zip(element.numbers, line.split()):
            try:
                float(word)
            except ValueError:
                shown = word[:40].decode("ascii", "backslashreplace")
                text = f"{each.name} is {shown}, which is not a number"
                return FormatError(path, f"{element.name} {row}", text)
    return FormatError(path, f"{element.name} {first}", "has a word that is not a number")
