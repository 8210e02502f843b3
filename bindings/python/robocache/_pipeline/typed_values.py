"""The typed values of a pipeline file: their bytes, their fingerprint, and differences by pointer.

Integers that 64 bits hold are i64, all other numbers f64. Keys that begin with ``x-``, and
``provenance`` at the top, are not part of them.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from .strict_json import step

NUMBERS = ("normalization",)  # top-level keys of the second part of the fingerprint
_FREE = "provenance"
MISSING: Any = type("Missing", (), {"__repr__": lambda self: "missing"})()


class Difference(NamedTuple):
    """A place where two pipelines differ."""

    pointer: str  #: JSON pointer of the value
    ours: Any  #: the value here; ``MISSING`` without one
    theirs: Any  #: the value there

    def __str__(self) -> str:
        from .strict_json import shown

        ours, theirs = (
            "missing" if each is MISSING else shown(each) for each in (self.ours, self.theirs)
        )
        return f"{self.pointer}: {ours}, other: {theirs}"


def is_free(key: str, at_top: bool) -> bool:
    """Whether the value of a key is not part of the typed values."""
    return key.startswith("x-") or (at_top and key == _FREE)


def encoded(value: Any, at_top: bool = False) -> bytes:
    """Return the bytes of a typed value: a letter for its type, and its content.

    >>> encoded([1, 0.5, "a", None]).hex(" ", 1)[:35]
    '5b 00 00 00 00 00 00 00 04 69 00 00'
    """
    if value is None:
        return b"n"
    if isinstance(value, bool):
        return b"t" if value else b"f"
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, str):
        return _counted(b"s", value.encode("utf-8"))
    if isinstance(value, (list, tuple)):
        return b"[" + struct.pack(">Q", len(value)) + b"".join(map(encoded, value))
    kept = sorted((key.encode("utf-8"), key) for key in value if not is_free(key, at_top))
    parts = [_counted(b"s", raw) + encoded(value[key]) for raw, key in kept]
    return b"{" + struct.pack(">Q", len(parts)) + b"".join(parts)


def _counted(kind: bytes, content: bytes) -> bytes:
    return kind + struct.pack(">Q", len(content)) + content


def _number(value: float) -> bytes:
    whole = value == int(value) and -(2**63) <= int(value) < 2**63
    if whole and (value != 0 or str(value) != "-0.0"):
        return b"i" + struct.pack(">q", int(value))
    return b"d" + struct.pack(">d", value)


def fingerprint(document: dict[str, Any]) -> str:
    """Return the SHA-256 of the inputs and of the numbers: 64 digits, a dash, 64 digits."""
    inputs = {key: each for key, each in document.items() if key not in NUMBERS}
    numbers = {key: each for key, each in document.items() if key in NUMBERS}
    return "-".join(
        hashlib.sha256(encoded(part, at_top=True)).hexdigest() for part in (inputs, numbers)
    )


def differences(ours: Any, theirs: Any, pointer: str = "") -> Iterator[Difference]:
    """Yield the places where two values differ, in the order of their keys."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in dict.fromkeys([*ours, *theirs]):
            if not is_free(key, pointer == ""):
                mine, other = ours.get(key, MISSING), theirs.get(key, MISSING)
                yield from differences(mine, other, pointer + step(key))
    elif isinstance(ours, list) and isinstance(theirs, list):
        for i in range(max(len(ours), len(theirs))):
            mine = ours[i] if i < len(ours) else MISSING
            other = theirs[i] if i < len(theirs) else MISSING
            yield from differences(mine, other, f"{pointer}/{i}")
    elif ours is MISSING or theirs is MISSING or encoded(ours) != encoded(theirs):
        yield Difference(pointer, ours, theirs)
