"""Options other than arrays: names, numbers and counts, and the structs that hold them."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from .. import _core
from .._library.errors import REFUSALS, shown

_MOST = 2**63 - 1
ZERO = 0.0  # the default of numbers; functions compare with this object by identity


def struct_of(name: str, *options: str) -> list[Any]:
    """Return the constructor of a struct of the C headers, and the setters of these options.

    They cost a tenth of the properties of the classes of _abi. Calls may share a struct: the
    extension copies it before it adds to it.
    """
    return [
        getattr(_core, f"new_{name}"),
        *[getattr(_core, f"{name}_{option}_set") for option in options],
    ]


def code_of(codes: dict[str, int], name: Any, argument: str) -> int:
    try:
        return codes[name]
    except (KeyError, TypeError):
        expected = ", ".join(map(repr, codes))
        raise ValueError(f"{argument}: is {shown(name)}, expected one of {expected}") from None


def names_in(value: Any, argument: str, hint: str = "") -> tuple[str, ...]:
    """Return a collection of names; a string and a dict are refused, which iterate otherwise."""
    if isinstance(value, (str, bytes)):
        raise TypeError(f"{argument}: is {shown(value)}, expected a list of names: [{value!r}]")
    if isinstance(value, Mapping):
        raise TypeError(f"{argument}: is a dict, expected a list of names{hint}")
    try:
        return tuple(value)
    except REFUSALS:
        raise TypeError(f"{argument}: is {shown(value)}, expected a list of names") from None


def number(value: Any, name: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise ValueError(
            f"{name}: is {shown(value)}, expected a number that a float64 holds"
        ) from None
    except REFUSALS:
        raise TypeError(f"{name}: is {shown(value)}, expected a number") from None


def count(value: Any, name: str) -> int:
    try:
        whole = operator.index(value)
    except REFUSALS:
        raise TypeError(f"{name}: is {shown(value)}, expected an int") from None
    if not 0 < whole <= _MOST:
        limit = "1 or more" if whole < 1 else "an int of 64 bits"
        raise ValueError(f"{name}: is {whole}, expected {limit}")
    return whole
