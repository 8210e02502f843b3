"""The cases of cuda/sweep: one size at a time, and how far the worst of them is from its floor."""

from __future__ import annotations

import re
from typing import Any

FACTOR, MARGIN_US = 1.5, 3.0


def lines(entries: list[dict[str, Any]]) -> dict[tuple[str, str], dict[int, dict[str, Any]]]:
    """Entries by the axis and the dtype of its line, and by the size along it."""
    found: dict[tuple[str, str], dict[int, dict[str, Any]]] = {}
    for entry in entries:
        name = re.fullmatch(r"(\w)=(\d+): \S+ (\w+)", entry["parts"][0])
        if name is not None and not entry["failed"]:
            found.setdefault((name[1], name[3]), {})[int(name[2])] = entry
    return found


def bound_us(entry: dict[str, Any]) -> float:
    return FACTOR * entry["floor_us"] + MARGIN_US


def over_bound(entry: dict[str, Any]) -> float:
    return entry["us"] / bound_us(entry)
