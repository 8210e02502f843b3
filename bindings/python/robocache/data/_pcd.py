"""PCD files: ascii, binary and binary_compressed."""

from __future__ import annotations

import builtins
import os
from typing import Any

from ._clouds import PointCloud, PointClouds, folder_of
from ._errors import FormatError
from ._open import Options, head

_KINDS = {"F": "f", "U": "u", "I": "i"}
_KEYS = ("FIELDS", "SIZE", "TYPE", "WIDTH", "HEIGHT", "POINTS", "DATA")
_HEADER = 1 << 14  # bytes, at most
_MOST = 1 << 31  # points


def sniff(path: str) -> bool:
    if os.path.isdir(path):
        return bool(folder_of(path, _is_pcd))
    return _is_pcd(path)


def open(path: str, options: Options) -> PointCloud | PointClouds:
    if os.path.isdir(path):
        return PointClouds(path, folder_of(path, _is_pcd, options.follow_links), read)
    return read(path)


def _is_pcd(path: str) -> bool:
    start = head(path, 512)
    return start.startswith(b"# .PCD") or (
        start.startswith((b"VERSION", b"FIELDS")) and b"FIELDS" in start and b"SIZE" in start
    )


def read(path: str) -> PointCloud:
    """One file."""
    import numpy as np

    with builtins.open(path, "rb") as file:
        content = file.read()
    told, begin = _header(path, content)
    try:
        names = told["FIELDS"]
        sizes, kinds = [int(size) for size in told["SIZE"]], [_KINDS[kind] for kind in told["TYPE"]]
        counts = [int(count) for count in told.get("COUNT", ["1"] * len(names))]
        width, height = int(told["WIDTH"][0]), int(told["HEIGHT"][0])
        points, data = int(told["POINTS"][0]), told["DATA"][0]
        if not len(names) == len(sizes) == len(kinds) == len(counts):
            raise ValueError("FIELDS, SIZE, TYPE and COUNT have not the same number")
        columns = [
            (name if name != "_" else f"_{i}", f"<{kind}{size}", (count,))
            for i, (name, kind, size, count) in enumerate(zip(names, kinds, sizes, counts))
        ]
        dtype = np.dtype(columns)
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise FormatError(path, "header", f"cannot be read: {error}") from None
    if not 0 <= points < _MOST or width * height != points:
        raise FormatError(path, "header", f"has {points} points, but {width} x {height}")
    body = memoryview(content)[begin:]
    if data == "ascii":
        records = _ascii(path, bytes(body), dtype, points)
    elif data == "binary":
        records = _binary(path, body, dtype, points)
    elif data == "binary_compressed":
        records = _compressed(path, body, dtype, points)
    else:
        raise FormatError(path, "header", f"has DATA {data}, expected ascii or binary")
    fields = {
        name: records[name][:, 0] if records[name].shape[1] == 1 else records[name]
        for name in records
        if not name.startswith("_")
    }
    viewpoint = tuple(float(number) for number in told.get("VIEWPOINT", "0 0 0 1 0 0 0".split()))
    return PointCloud(path, fields, width, height, viewpoint)


def _header(path: str, content: bytes) -> tuple[dict[str, list[str]], int]:
    told: dict[str, list[str]] = {}
    at = 0
    while at < min(len(content), _HEADER):
        end = content.find(b"\n", at)
        if end < 0:
            break
        words = content[at:end].decode("ascii", "replace").split()
        at = end + 1
        if not words or words[0].startswith("#"):
            continue
        told[words[0]] = words[1:]
        if words[0] == "DATA":
            missing = [key for key in _KEYS if not told.get(key)]
            if missing:
                raise FormatError(path, "header", f"has no {missing[0]}")
            return told, at
    raise FormatError(path, "header", "has no line DATA")


def _ascii(path: str, body: bytes, dtype: Any, points: int) -> dict[str, Any]:
    import numpy as np

    width = sum(dtype[name].shape[0] for name in dtype.names)
    words = body.split()
    if len(words) < points * width:
        row = len(words) // max(1, width)
        raise FormatError(path, f"point {row}", f"is cut off: {points} points are told of")
    try:
        table = np.array(words[: points * width], np.float64).reshape(points, width)
    except ValueError as error:
        raise FormatError(path, "points", f"are no numbers: {error}") from None
    columns = {}
    at = 0
    for name in dtype.names:
        base, shape = dtype[name].subdtype
        columns[name] = table[:, at : at + shape[0]].astype(base)
        at += shape[0]
    return columns


def _binary(path: str, body: Any, dtype: Any, points: int) -> dict[str, Any]:
    import numpy as np

    if len(body) < points * dtype.itemsize:
        row = len(body) // max(1, dtype.itemsize)
        raise FormatError(path, f"point {row}", f"is cut off: {points} points are told of")
    records = np.frombuffer(body, dtype, points)
    return {name: np.ascontiguousarray(records[name]) for name in dtype.names}


def _compressed(path: str, body: Any, dtype: Any, points: int) -> dict[str, Any]:
    """Fields one after the other, packed by LZF."""
    import numpy as np

    packed, size = (int.from_bytes(body[i : i + 4], "little") for i in (0, 4))
    if len(body) < 8 + packed:
        raise FormatError(path, "points", f"are cut off: {len(body)} of {8 + packed} bytes")
    if size != points * dtype.itemsize:
        raise FormatError(path, "points", f"are {size} bytes, expected {points * dtype.itemsize}")
    try:
        content = _lzf(bytes(body[8 : 8 + packed]), size)
    except (IndexError, ValueError):
        raise FormatError(path, "points", "cannot be unpacked: they are damaged") from None
    columns = {}
    at = 0
    for name in dtype.names:
        base, shape = dtype[name].subdtype
        count = points * shape[0]
        columns[name] = np.frombuffer(content, base, count, at).reshape(points, shape[0])
        at += count * base.itemsize
    return columns


def _lzf(packed: bytes, size: int) -> bytes:
    """Runs of literal bytes, and copies of what came before."""
    out = bytearray()
    at, end = 0, len(packed)
    while at < end:
        control = packed[at]
        at += 1
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
        else:  # what is copied begins with what it writes
            out += (out[begin:] * (length // apart + 1))[:length]
    if len(out) != size:
        raise ValueError
    return bytes(out)
