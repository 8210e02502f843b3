"""Keys of entries: SHA-256 of canonical JSON, so that equal inputs have equal keys everywhere.

Canonical JSON has no spaces, sorts the keys of objects by code point, and is UTF-8. Integers beyond
2**53 and all floats are strings, so that no reader of JSON rounds them: integers in decimal, floats
as ``float.hex`` writes them, or "inf" and "-inf"; -0.0 is "0x0.0p+0". NaN is refused, since it
equals nothing. Paths are in NFC; bytes of a path that are not UTF-8, and percent signs, are %XX.
"""

from __future__ import annotations

import hashlib
import json
import os
import unicodedata
from collections.abc import Mapping
from typing import Any

from .._printable import kind_of

KEY_BYTES = 32
_EXACT = 1 << 53  # the largest integer that every reader of JSON keeps
_DEEPEST = 100


def canonical(document: Any) -> str:
    """Return a structure as canonical JSON.

    Raises
    ------
    ValueError
        A value has no canonical form: NaN, or a text with half of a surrogate pair.
    TypeError
        A value has a type that JSON lacks, such as bytes or a function.

    >>> canonical({"rate": 0.5, "count": 2**60, "names": ("b", "a"), "all": True})
    '{"all":true,"count":"1152921504606846976","names":["b","a"],"rate":"0x1.0000000000000p-1"}'
    """
    parts: list[str] = []
    _write(document, "", parts, 0)
    return "".join(parts)


def digest(text: str) -> bytes:
    """Return the key of canonical JSON: 32 bytes."""
    return hashlib.sha256(text.encode("utf-8")).digest()


def key_of(document: Any) -> bytes:
    """Return the key of a structure: 32 bytes."""
    return digest(canonical(document))


def portable_path(name: str | bytes) -> str:
    """Return a relative path in the form that keys use.

    >>> portable_path(b"caf\\xc3\\xa9/100%/\\xff.csv")
    'café/100%25/%FF.csv'
    """
    content = os.fsencode(name)
    made: list[str] = []
    while content:
        try:
            made.append(content.decode("utf-8").replace("%", "%25"))
            break
        except UnicodeDecodeError as error:
            good, bad = content[: error.start], content[error.start : error.end]
            made.append(good.decode("utf-8").replace("%", "%25"))
            made += [f"%{byte:02X}" for byte in bad]
            content = content[error.end :]
    return unicodedata.normalize("NFC", "".join(made))


def _write(value: Any, place: str, parts: list[str], depth: int) -> None:
    if depth > _DEEPEST:
        raise ValueError(f"{place[:80]}...: is nested more than {_DEEPEST} deep")
    if value is None or isinstance(value, bool):
        parts.append("null" if value is None else "true" if value else "false")
    elif isinstance(value, str):
        parts.append(_text(value, place))
    elif isinstance(value, int):
        parts.append(str(int(value)) if -_EXACT <= value <= _EXACT else f'"{int(value)}"')
    elif isinstance(value, float):
        parts.append(f'"{_float(value, place)}"')
    elif isinstance(value, Mapping):
        _write_object(value, place, parts, depth)
    elif isinstance(value, (list, tuple)):
        for i, each in enumerate(value):
            parts.append("," if i else "[")
            _write(each, f"{place}[{i}]", parts, depth + 1)
        parts.append("]" if value else "[]")
    else:
        _write(_plain(value, place), place, parts, depth)


def _write_object(value: Mapping[Any, Any], place: str, parts: list[str], depth: int) -> None:
    for name in value:
        if not isinstance(name, str):
            raise TypeError(f"{_named(place)}: has the key {name!r}, expected a string")
    for i, name in enumerate(sorted(value)):
        parts.append("," if i else "{")
        below = f"{place}.{name}" if place else name
        parts.append(_text(name, below))
        parts.append(":")
        _write(value[name], below, parts, depth + 1)
    parts.append("}" if value else "{}")


def _text(value: str, place: str) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{_named(place)}: has {value[error.start]!r} at index {error.start}, which is half of "
            "a surrogate pair; expected a text that UTF-8 can hold"
        ) from None
    return json.dumps(str(value), ensure_ascii=False)


def _float(value: float, place: str) -> str:
    if value != value:
        raise ValueError(f"{_named(place)}: is NaN, which equals nothing, so it cannot be in a key")
    if value in (float("inf"), float("-inf")):
        return "inf" if value > 0 else "-inf"
    return (float(value) + 0.0).hex()


def _plain(value: Any, place: str) -> Any:
    """Return a scalar of NumPy as one of Python, and a named function; refuse everything else."""
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0:
        number = value.item()
        if isinstance(number, (bool, int, float, str)):
            return number
    advice = ""
    if callable(value):
        name, version = getattr(value, "name", None), getattr(value, "version", None)
        if isinstance(name, str) and isinstance(version, (str, int)):
            return {"function": name, "version": version}
        advice = (
            ". A function can change without another key: give it the attributes name, a string, "
            "and version, which changes with its results, or do not use the cache"
        )
    raise TypeError(
        f"{_named(place)}: is {kind_of(value)}, expected None, a bool, a number, a string, "
        f"a list or a dict{advice}"
    )


def _named(place: str) -> str:
    return place or "the key"
