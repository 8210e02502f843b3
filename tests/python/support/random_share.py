"""How many random cases the tests run: all, or the part that ROBOCACHE_RANDOM_SHARE names."""

from __future__ import annotations

import os


def random_share(count: int) -> int:
    """Return how many of a number of random cases to run: a quarter of them with 1/4."""
    parts = int(os.environ.get("ROBOCACHE_RANDOM_SHARE", "0/1").split("/")[1])
    return -(-count // parts)
