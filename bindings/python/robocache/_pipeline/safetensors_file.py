"""Tensors in a safetensors file: a header in JSON, and the bytes of the tensors."""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Mapping
from typing import Any

from .._files.atomic_write import written_beside
from .._printable import printable
from .strict_json import parsed, shown

_LONGEST_HEADER = 100_000_000  # bytes, as in the library of the format
_MOST_DIMENSIONS = 32  # of an array of NumPy 1
_MOST_NUMBERS = 2**60  # in a tensor, also with dimensions of 0 left out
_DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "<i1",
    "U8": "<u1",
    "BOOL": "?",
}


def read(path: str) -> dict[str, Any]:
    """Return the tensors of a file as arrays of NumPy."""
    with open(path, "rb") as file:
        content = file.read()
    where = printable(path)
    if len(content) < 8:
        raise ValueError(f"{where}: has {len(content)} bytes, expected a safetensors file")
    (size,) = struct.unpack_from("<Q", content)
    if size > min(_LONGEST_HEADER, len(content) - 8):
        raise ValueError(f"{where}: its header of {size:,} bytes is longer than the file")
    try:
        text = content[8 : 8 + size].decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{where}: its header is not UTF-8 text: {error}") from None
    header = parsed(text, where)
    if not isinstance(header, dict):
        raise ValueError(f"{where}: its header is not an object")
    header.pop("__metadata__", None)
    return {name: _tensor(content, 8 + size, name, each, where) for name, each in header.items()}


def _tensor(content: bytes, begin: int, name: str, entry: Any, where: str) -> Any:
    import numpy as np

    try:
        kind = np.dtype(_DTYPES[entry["dtype"]])
        shape, (first, end) = entry["shape"], entry["data_offsets"]
        right = _are_sizes(shape) and _are_sizes([first, end]) and len(shape) <= _MOST_DIMENSIONS
        # A dimension of 0 hides the others, which NumPy multiplies too.
        right = right and math.prod(max(each, 1) for each in shape) <= _MOST_NUMBERS
        right = right and end - first == math.prod(shape) * kind.itemsize
    except (KeyError, TypeError, ValueError):
        right = False
    where = f"{where}: {printable(name)}"
    if not right:
        raise ValueError(
            f"{where}: its entry in the header is {shown(entry)}; expected a dtype, a shape, and "
            "data_offsets of as many bytes"
        )
    if begin + end > len(content):
        raise ValueError(f"{where}: ends after the file, which is truncated")
    flat = np.frombuffer(content[begin + first : begin + end], kind)
    return flat.reshape(shape).astype(kind.newbyteorder("="))


def _are_sizes(numbers: Any) -> bool:
    """Whether a value is a list of integers of 0 or more."""
    return isinstance(numbers, list) and all(type(each) is int and each >= 0 for each in numbers)


def write(path: str, tensors: Mapping[str, Any]) -> None:
    """Write arrays of float32, float64 or int64, atomically."""
    import numpy as np

    header, parts, at = {}, [], 0
    codes = {np.dtype(text): code for code, text in _DTYPES.items()}
    for name, tensor in sorted(tensors.items()):
        array = np.ascontiguousarray(tensor)
        content = array.astype(array.dtype.newbyteorder("<")).tobytes()
        header[name] = {
            "dtype": codes[array.dtype.newbyteorder("<")],
            "shape": list(array.shape),
            "data_offsets": [at, at + len(content)],
        }
        parts.append(content)
        at += len(content)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with written_beside(os.path.abspath(path), overwrite=True) as part, open(part, "xb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(parts))
