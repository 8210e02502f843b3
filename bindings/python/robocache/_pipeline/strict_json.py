"""JSON without what parsers disagree about, and the values in it as 64-bit numbers.

Errors begin with a JSON pointer, or with the line and the column if the text is not JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

MOST_BYTES = 256 << 20
_DEEPEST = 64  # levels
_WIDTH = 100  # columns of a list in one line
_LARGEST = 18  # decimal exponent from which an integer may exceed 64 bits


class _Wrong:
    """A value that JSON or this format does not allow, until its pointer is known."""

    def __init__(self, fault: str) -> None:
        self.fault = fault


class _Object(dict[str, Any]):
    """An object, with a key that it has twice."""

    twice: str | None = None


def parsed(text: str, where: str = "the file") -> Any:
    """Return the value of a JSON text.

    Numbers without a fraction become int, all others float, in any spelling: 20.0 is 20.

    Raises
    ------
    ValueError
        The text is not JSON; an object has a key twice; or a number is not a finite float64.
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=lambda name: _Wrong(f"is {name}, which JSON does not have"),
            parse_int=_number,
            parse_float=_number,
        )
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ValueError(f"{where}: {place}: is not JSON: {error.msg}") from None
    except RecursionError:
        raise ValueError(f"{where}: has too many levels, expected at most {_DEEPEST}") from None
    return _checked(value, "", 0)


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    made = _Object()
    for key, value in pairs:
        if key in made and made.twice is None:
            made.twice = key
        made[key] = value
    return made


def _number(text: str) -> Any:
    if not text.lower().partition("e")[0].strip("-0."):
        return -0.0 if text.startswith("-") else 0
    number = float(text)  # first: Decimal refuses an exponent of 19 digits
    if number in (float("inf"), float("-inf")) or number == 0:
        return _Wrong(f"is {text[:40]}, expected a number that a float64 can hold")
    exact = Decimal(text)
    if exact.adjusted() <= _LARGEST and exact == exact.to_integral_value():
        whole = int(exact)
        if -(2**63) <= whole < 2**63:
            return whole
    return number


def _checked(value: Any, pointer: str, depth: int) -> Any:
    if isinstance(value, _Wrong):
        raise ValueError(f"{pointer}: {value.fault}")
    if depth > _DEEPEST:
        raise ValueError(f"{pointer}: is {depth} levels deep, expected at most {_DEEPEST}")
    if isinstance(value, str):
        _require_text(value, pointer)
    elif isinstance(value, _Object):
        if value.twice is not None:
            raise ValueError(f"{pointer}{step(value.twice)}: appears twice in its object")
        for key in value:
            _require_text(key, f"{pointer}{step(key)}")
        return {key: _checked(each, pointer + step(key), depth + 1) for key, each in value.items()}
    elif isinstance(value, list):
        return [_checked(each, f"{pointer}/{i}", depth + 1) for i, each in enumerate(value)]
    return value


def _require_text(text: str, pointer: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        pointer = pointer.encode("utf-8", "backslashreplace").decode()
        raise ValueError(f"{pointer}: has half of a surrogate pair, expected Unicode") from None


def step(key: str) -> str:
    """Return a key as a step of a JSON pointer.

    >>> step("a/b~c")
    '/a~1b~0c'
    """
    return "/" + key.replace("~", "~0").replace("/", "~1")


def shown(value: Any) -> str:
    """Return a value as JSON for a message, shortened."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 60 else f"{text[:57]}..."


def written(value: Any) -> str:
    """Return JSON with short lists in one line. Numbers are read back as the same float64."""
    return "".join(_lines(value, "", _dumped)) + "\n"


def _dumped(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def _lines(value: Any, indent: str, dumped: Callable[[Any], str]) -> Iterator[str]:
    is_object = isinstance(value, dict)
    if not value or not (is_object or isinstance(value, list)):
        yield dumped(value)
        return
    whole = dumped(value)
    flat = not any(isinstance(each, (dict, list)) for each in value) and not is_object
    if flat or len(indent) + len(whole) <= _WIDTH // 2:
        yield whole
        return
    inner = indent + "  "
    yield "{\n" if is_object else "[\n"
    items = value.items() if is_object else ((None, each) for each in value)
    for i, (key, each) in enumerate(items):
        yield ",\n" if i else ""
        yield inner if key is None else f"{inner}{dumped(key)}: "
        yield from _lines(each, inner, dumped)
    yield f"\n{indent}" + ("}" if is_object else "]")
