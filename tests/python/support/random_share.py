"""The random cases that tests run: all, or the part that ROBOCACHE_RANDOM_SHARE names."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def random_share(count: int) -> int:
    """Return the number of random cases to run, of `count`: with 1/4 a quarter of them."""
    return -(-count // _parts())


def share_of(cases: Sequence[T]) -> Sequence[T]:
    """Return the cases to run, of many that are alike: with 1/4 every fourth of them."""
    return cases[:: _parts()]


def fast_gradients() -> bool:
    """Return whether gradcheck compares random directions (fast_mode) and not every element.

    All elements of a few cases are compared in every run, by the tests that do not ask.
    """
    return _parts() > 1


def _parts() -> int:
    share = os.environ.get("ROBOCACHE_RANDOM_SHARE", "0/1")
    numbers = re.fullmatch(r"(\d+)/(\d+)", share)
    first, parts = map(int, numbers.groups()) if numbers else (0, 0)
    if first >= parts:
        raise ValueError(f"ROBOCACHE_RANDOM_SHARE: is {share!r}, expected such as 1/4")
    return parts
