"""What a case is run on."""

from __future__ import annotations

from typing import Any, NamedTuple


class Data(NamedTuple):
    arrays: tuple[Any, ...]
    bytes: int  # that must be moved
    in_range: float  # share of the queries, or of the points
