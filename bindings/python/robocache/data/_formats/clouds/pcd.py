"""PCD files: ascii, binary and binary_compressed."""

from __future__ import annotations

import functools
import os
from typing import Any

from ..._errors import FormatError
from ..._file_access import Limit, head, opened, what_is
from ..._options import Options
from ..._point_clouds import PointCloud, PointClouds, folder_of, has_clouds
from ..description import Format

_KINDS = {"F": "f", "U": "u", "I": "i"}
_KEYS = ("FIELDS", "SIZE", "TYPE", "WIDTH", "HEIGHT", "POINTS", "DATA")
_HEADER = 1 << 14  # bytes, at most
_MOST = 1 << 31  # points
_LZF_RATIO = 88  # the best ratio: 264 bytes in 3
_EXACT = 1 << 53  # smaller integers are exact in float64


FORMAT = Format(
    name="pcd",
    title="PCD",
    files="*.pcd, a folder of them",
    reads="A point cloud with all fields, in ascii, binary or binary_compressed; a folder is a "
    "list of clouds in the order of the numbers in their names.",
    refuses="Files with fewer bytes or points than their header states are damage.",
    example='cloud = rbc.data.open("scan.pcd")',
)


def sniff(path: str) -> bool:
    if os.path.isdir(path):
        return has_clouds(path, _is_pcd)
    return _is_pcd(path)


def open(path: str, options: Options) -> PointCloud | PointClouds:
    if os.path.isdir(path):
        names = folder_of(path, _is_pcd, ".pcd", "PCD file", options)
        return PointClouds(path, names, functools.partial(read, limit=options.limit))
    return read(path, options.limit)


def _is_pcd(path: str) -> bool:
    start = head(path, 512)
    return start.startswith(b"# .PCD") or (
        start.startswith((b"VERSION", b"FIELDS")) and b"FIELDS" in start and b"SIZE" in start
    )


def read(path: str, limit: Limit) -> PointCloud:
    """Read one file."""
    import numpy as np

    if not _is_pcd(path):
        raise FormatError(path, "", f"expected a PCD file, got {what_is(path)}")
    with opened(path) as file:
        content = file.read()
    header, begin = _header(path, content)
    try:
        names = header["FIELDS"]
        sizes, kinds = (
            [int(size) for size in header["SIZE"]],
            [_KINDS[kind] for kind in header["TYPE"]],
        )
        counts = [int(count) for count in header.get("COUNT", ["1"] * len(names))]
        width, height = int(header["WIDTH"][0]), int(header["HEIGHT"][0])
        points, data = int(header["POINTS"][0]), header["DATA"][0]
        if not len(names) == len(sizes) == len(kinds) == len(counts):
            raise ValueError("FIELDS, SIZE, TYPE and COUNT have different lengths")
        columns = [
            (name if name != "_" else f"_{i}", f"<{kind}{size}", (count,))
            for i, (name, kind, size, count) in enumerate(zip(names, kinds, sizes, counts))
        ]
        dtype = np.dtype(columns)
        if dtype.itemsize == 0:
            raise ValueError("COUNT is 0 for all FIELDS")
        place = header.get("VIEWPOINT", "0 0 0 1 0 0 0".split())
        viewpoint = tuple(float(number) for number in place)
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise FormatError(path, "header", f"cannot be read: {error}") from None
    if not 0 <= points < _MOST or width * height != points:
        raise FormatError(path, "header", f"has POINTS {points}, but {width} x {height}")
    body = memoryview(content)[begin:]
    if data == "ascii":
        records = _ascii(path, bytes(body), dtype, points)
    elif data == "binary":
        records = _binary(path, body, dtype, points)
    elif data == "binary_compressed":
        records = _compressed(path, body, dtype, points, limit)
    else:
        raise FormatError(path, "header", f"has DATA {data}, expected ascii or binary")
    fields = {
        name: records[name][:, 0] if records[name].shape[1] == 1 else records[name]
        for name in records
        if not name.startswith("_")
    }
    return PointCloud(path, fields, width, height, viewpoint)


def _header(path: str, content: bytes) -> tuple[dict[str, list[str]], int]:
    header: dict[str, list[str]] = {}
    at = 0
    while at < min(len(content), _HEADER):
        end = content.find(b"\n", at)
        if end < 0:
            break
        words = content[at:end].decode("ascii", "replace").split()
        at = end + 1
        if not words or words[0].startswith("#"):
            continue
        header[words[0]] = words[1:]
        if words[0] == "DATA":
            missing = [key for key in _KEYS if not header.get(key)]
            if missing:
                raise FormatError(path, "header", f"has no {missing[0]}")
            return header, at
    raise FormatError(path, "header", "has no line DATA")


def _ascii(path: str, body: bytes, dtype: Any, points: int) -> dict[str, Any]:
    """Read the fields of a text with one point per line."""
    import numpy as np

    width = sum(dtype[name].shape[0] for name in dtype.names)
    row = 0
    for line in body.splitlines():
        count = len(line.split())
        if count and row < points:
            if count != width:
                text = f"has {count} numbers, but FIELDS and COUNT say {width}"
                raise FormatError(path, f"point {row}", text)
            row += 1
    if row < points:
        raise FormatError(
            path,
            f"point {row}",
            f"file ends here, but the header says POINTS {points}: it is truncated",
        )
    words = body.split()[: points * width]
    try:
        table = np.array(words, np.float64).reshape(points, width)
    except ValueError:
        table = None
    columns = {}
    at = 0
    for name in dtype.names:
        base, (count,) = dtype[name].subdtype
        columns[name] = np.empty((points, count), base)
        for i in range(count):
            numbers = None if table is None else table[:, at]
            columns[name][:, i] = _column(path, name, words[at::width], numbers, base)
            at += 1
    return columns


def _column(path: str, name: str, words: list[bytes], floats: Any, dtype: Any) -> Any:
    """Return numbers in a dtype; refuse those out of range. ``told``: as float64, if known."""
    import numpy as np

    if dtype.kind == "f":
        exact = _parsed(path, name, words, float, "not a number") if floats is None else floats
        with np.errstate(over="ignore"):
            column = np.array(exact, np.float64).astype(dtype)
        wrong = np.isinf(column) & np.isfinite(exact)
        if wrong.any():
            raise _wrong(path, name, words, int(wrong.argmax()), f"out of range for {dtype}")
        return column
    limits = np.iinfo(dtype)
    if (
        floats is not None
        and (np.abs(floats) < _EXACT).all()
        and (floats == np.floor(floats)).all()
    ):
        numbers = floats.astype(np.int64)
    else:
        numbers = np.array(_parsed(path, name, words, _integer, "not an integer"), object)
    wrong = (numbers < limits.min) | (numbers > limits.max)
    if wrong.any():
        raise _wrong(path, name, words, int(wrong.argmax()), f"out of range for {dtype}")
    return numbers.astype(dtype)


def _parsed(path: str, name: str, words: list[bytes], parse: Any, what: str) -> list[Any]:
    numbers: list[Any] = []
    try:
        for word in words:
            numbers.append(parse(word))
    except (ValueError, OverflowError):
        raise _wrong(path, name, words, len(numbers), what) from None
    return numbers


def _integer(word: bytes) -> int:
    """Parse "3", and also "3.0" or "3e2", which some programs write for integers."""
    try:
        return int(word)
    except ValueError:
        number = float(word)
        if not number.is_integer():
            raise
        return int(number)


def _wrong(path: str, name: str, words: list[bytes], at: int, what: str) -> FormatError:
    word = words[at][:40].decode("ascii", "backslashreplace")
    return FormatError(path, f"point {at}", f"{name} is {word}, which is {what}")


def _binary(path: str, body: Any, dtype: Any, points: int) -> dict[str, Any]:
    import numpy as np

    if len(body) < points * dtype.itemsize:
        row = len(body) // max(1, dtype.itemsize)
        raise FormatError(
            path,
            f"point {row}",
            f"file ends here, but the header says POINTS {points}: it is truncated",
        )
    records = np.frombuffer(body, dtype, points)
    return {name: np.ascontiguousarray(records[name]) for name in dtype.names}


def _compressed(path: str, body: Any, dtype: Any, points: int, limit: Limit) -> dict[str, Any]:
    """Read fields one after the other, packed by LZF."""
    import numpy as np

    packed, size = (int.from_bytes(body[i : i + 4], "little") for i in (0, 4))
    if len(body) < 8 + packed:
        text = f"file has {len(body)} of {8 + packed} compressed bytes: it is truncated"
        raise FormatError(path, "points", text)
    if size != points * dtype.itemsize:
        text = f"unpack to {size} bytes, but the header says {points} points of {dtype.itemsize} "
        raise FormatError(path, "points", f"{text}bytes ({points * dtype.itemsize})")
    limit.require(path, "points", size, len(body))
    if size > packed * _LZF_RATIO:
        text = f"{packed} packed bytes unpack to {packed * _LZF_RATIO} at most, expected {size}"
        raise FormatError(path, "points", text)
    try:
        content = _lzf(bytes(body[8 : 8 + packed]), size)
    except (IndexError, ValueError):
        raise FormatError(path, "points", "compressed data are damaged") from None
    columns = {}
    at = 0
    for name in dtype.names:
        base, shape = dtype[name].subdtype
        count = points * shape[0]
        columns[name] = np.frombuffer(content, base, count, at).reshape(points, shape[0])
        at += count * base.itemsize
    return columns


def _lzf(packed: bytes, size: int) -> bytes:
    """Unpack runs of literal bytes, and copies of earlier bytes."""
    out = bytearray()
    at, end = 0, len(packed)
    while at < end:
        control = packed[at]
        at += 1
        if len(out) > size:
            raise ValueError
        if control < 32:
            out += packed[at : at + control + 1]
            at += control + 1
            continue
        length = control >> 5
        if length == 7:
            length += packed[at]
            at += 1
        begin = len(out) - ((control & 31) << 8) - packed[at] - 1
        at += 1
        length += 2
        if begin < 0:
            raise ValueError
        apart = len(out) - begin
        if apart >= length:
            out += out[begin : begin + length]
        else:  # the copy overlaps its own output
            out += (out[begin:] * (length // apart + 1))[:length]
    if len(out) != size:
        raise ValueError
    return bytes(out)
