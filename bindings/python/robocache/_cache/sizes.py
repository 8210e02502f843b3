"""Sizes and ages as texts: "500GB", "30d"."""

from __future__ import annotations

import re
from typing import Any

_SIZES = {"": 1, "b": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "p": 10**15}
_BINARY = {"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40, "pi": 1 << 50}
_AGES = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}
_PARTS = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*", re.ASCII)


def bytes_of(size: Any, name: str) -> int:
    """Return a size in bytes: a number, or a text with a unit such as "500GB" or "64 GiB".

    >>> bytes_of("1.5GB", "max_bytes"), bytes_of("2GiB", "max_bytes"), bytes_of(10, "max_bytes")
    (1500000000, 2147483648, 10)
    """
    units = {**_SIZES, **_BINARY}
    if isinstance(size, str):
        found = _PARTS.fullmatch(size)
        unit = found[2].lower() if found else "?"
        unit = unit[:-1] if unit.endswith("b") and unit != "b" else unit
        if found is None or unit not in units:
            raise ValueError(f"{name}: is {size!r}, expected a size such as 500GB or 64GiB")
        size = round(float(found[1]) * units[unit])
    return _whole(size, name, "a number of bytes, or a size such as '500GB'")


def seconds_of(age: Any, name: str) -> int:
    """Return an age in seconds: a number, a timedelta, or a text with a unit such as "30d".

    >>> seconds_of("30d", "max_age"), seconds_of("12h", "max_age"), seconds_of(60, "max_age")
    (2592000, 43200, 60)
    """
    if hasattr(age, "total_seconds"):
        age = round(age.total_seconds())
    if isinstance(age, str):
        found = _PARTS.fullmatch(age)
        if found is None or found[2].lower() not in _AGES:
            raise ValueError(f"{name}: is {age!r}, expected an age such as 30d, 12h or 90min")
        age = round(float(found[1]) * _AGES[found[2].lower()])
    return _whole(age, name, "a number of seconds, or an age such as '30d'")


def text_of_bytes(size: float) -> str:
    """Return a size as a text.

    >>> text_of_bytes(1234567)
    '1.23 MB'
    """
    for unit in ("bytes", "KB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            return f"{size:.0f} bytes" if unit == "bytes" else f"{size:.3g} {unit}"
        size /= 1000
    raise AssertionError


def text_of_age(seconds: float) -> str:
    """Return an age as a text: "3 days ago".

    >>> text_of_age(3 * 86400 + 5), text_of_age(60), text_of_age(1), text_of_age(-90)
    ('3 days ago', '1 minute ago', '1 second ago', 'now, by a clock that is ahead')
    """
    if seconds < -60:
        return "now, by a clock that is ahead"
    seconds = max(seconds, 0)
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count = int(seconds // length)
        if count >= 1 or unit == "second":
            return f"{count} {unit}{'' if count == 1 else 's'} ago"
    raise AssertionError


def _whole(value: Any, name: str, expected: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        raise TypeError(f"{name}: is {value!r}, expected {expected}")
    if value < 0 or value == float("inf"):
        raise ValueError(f"{name}: is {value!r}, expected {expected}")
    return int(value)
