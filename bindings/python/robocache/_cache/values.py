"""Metadata as JSON, with the types that JSON lacks, so that it comes back equal."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

from .._printable import kind_of

_TAG = "~"  # a dict with this single key is a value of another type


class NotStorable(ValueError):
    """A value that an entry cannot hold; the data are then not cached."""


def encoded(value: Any, place: str) -> bytes:
    """Return a value as bytes.

    Raises
    ------
    NotStorable
        A type cannot be restored; the message names the place.
    """
    return json.dumps(_plain(value, place), ensure_ascii=True, separators=(",", ":")).encode()


def decoded(content: Any) -> Any:
    """Return the value that :func:`encoded` was given."""
    return json.loads(bytes(content).decode(), object_hook=_restored)


def _plain(value: Any, place: str) -> Any:
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is list:
        return [_plain(each, f"{place}[{i}]") for i, each in enumerate(value)]
    if type(value) is tuple:
        return {_TAG: ["tuple", [_plain(each, f"{place}[{i}]") for i, each in enumerate(value)]]}
    if isinstance(value, Mapping):
        made = {key: _plain(each, f"{place}.{key}") for key, each in value.items()}
        if all(type(key) is str for key in made) and set(made) != {_TAG}:
            return made
        keys = [_plain(key, f"{place}: a key") for key in made]
        return {_TAG: ["dict", [[key, each] for key, each in zip(keys, made.values())]]}
    if type(value) is bytes:
        return {_TAG: ["bytes", base64.b64encode(value).decode()]}
    import numpy as np

    if isinstance(value, (np.ndarray, np.generic)) and not value.dtype.hasobject:
        array = np.asarray(value)
        if array.dtype.fields is None:
            kind = "array" if isinstance(value, np.ndarray) else "scalar"
            content = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
            return {_TAG: [kind, array.dtype.str, list(array.shape), content]}
    if isinstance(value, np.ndarray) and value.dtype == object:
        items = [_plain(each, f"{place}[{i}]") for i, each in enumerate(value.ravel().tolist())]
        return {_TAG: ["objects", list(value.shape), items]}
    raise NotStorable(f"{place} is {kind_of(value)}, which the cache cannot hold")


def _restored(found: dict[str, Any]) -> Any:
    if set(found) != {_TAG}:
        return found
    kind, *rest = found[_TAG]
    if kind == "tuple":
        return tuple(rest[0])
    if kind == "dict":
        return {key: each for key, each in rest[0]}
    if kind == "bytes":
        return base64.b64decode(rest[0])
    import numpy as np

    if kind == "objects":
        made = np.empty(len(rest[1]), object)
        made[:] = rest[1]
        return made.reshape(rest[0])
    array = np.frombuffer(base64.b64decode(rest[2]), np.dtype(rest[0])).reshape(rest[1]).copy()
    return array if kind == "array" else array[()]
