"""Messages from the HDF5 worker to its parent process: JSON, and bytes of arrays.

No object is pickled, since a damaged file may make the worker send anything.
"""

from __future__ import annotations

import math
import struct
from typing import Any, Callable

from ..._errors import raise_shortage

HEAD = struct.Struct("<QQ")  # of a message: bytes of JSON, bytes of arrays
_MOST = 16 << 20  # bytes per attribute
_NUMBERS = "fiubSc"  # kinds of dtypes that are sent as bytes


def attributes_of(item: Any, progressed: Callable[[], None]) -> tuple[dict[str, Any], bytes]:
    """Return all attributes, why some are skipped or damaged, and the bytes of arrays."""
    sent: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    damaged: dict[str, str] = {}
    buffers = bytearray()
    for key in item.attrs:
        progressed()
        name = key
        if isinstance(key, bytes):  # h5py's form of a name that is not UTF-8
            name = key.decode("utf-8", "surrogateescape")
        try:
            found = _sent(item, key)
        except (KeyError, OSError, RuntimeError, TypeError, ValueError) as error:
            raise_shortage("")
            damaged[name] = f"cannot be read: {error}"
            continue
        if isinstance(found, str):
            left_out[name] = found
            continue
        value, values = found
        sent[name] = {**value, "at": len(buffers), "bytes": len(values)}
        buffers += values
    return {"attributes": sent, "omitted": left_out, "damaged": damaged}, bytes(buffers)


def _sent(item: Any, name: str | bytes) -> tuple[dict[str, Any], bytes] | str:
    """Return an attribute as JSON and bytes, or why it is skipped."""
    opened = item.attrs.get_id(name)
    try:
        size = opened.dtype.itemsize * math.prod(opened.shape or ())
    except TypeError as error:
        return f"has a type that NumPy lacks: {error}"
    if size > _MOST:
        return _too_large(size)
    value, values = encoded(item.attrs[name])
    if value is None:
        return "is neither numbers nor text"
    size = len(values) + len(str(value))
    return _too_large(size) if size > _MOST else (value, values)


def _too_large(size: int) -> str:
    return f"has {size:,} bytes, expected at most {_MOST:,}"


def encoded(value: Any) -> tuple[dict[str, Any] | None, bytes]:
    """Return a value as JSON, and the bytes of an array; None if not numbers or text."""
    import numpy as np

    if isinstance(value, np.ndarray) and value.dtype.kind == "O":
        texts = [_text(each) for each in value.reshape(-1).tolist()]
        if any(type(each) is not str for each in texts):
            return None, b""
        if value.size == 1:
            return {"value": texts[0]}, b""
        return {"texts": texts, "shape": value.shape}, b""
    if getattr(value, "dtype", None) is not None and getattr(value, "size", 2) == 1:
        value = value.item()
    value = _text(value)
    if isinstance(value, (bool, int, float, str)):
        return {"value": value}, b""
    if isinstance(value, np.ndarray) and value.dtype.kind in _NUMBERS:
        return {"dtype": value.dtype.str, "shape": value.shape}, value.tobytes()
    return None, b""


def _text(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def decoded(sent: dict[str, Any], values: bytes | bytearray) -> Any:
    """Restore the value."""
    import numpy as np

    if "value" in sent:
        return sent["value"]
    if "texts" in sent:
        return np.array(sent["texts"], object).reshape(sent["shape"])
    own = values[sent["at"] : sent["at"] + sent["bytes"]]
    return np.frombuffer(own, sent["dtype"]).reshape(sent["shape"]).copy()
