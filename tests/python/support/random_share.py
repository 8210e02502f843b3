"""The number of random cases that tests run: all, or the part that ROBOCACHE_RANDOM_SHARE names."""

from __future__ import annotations

import os


def random_share(count: int) -> int:
    """Return the number of random cases to run, of `count`: with 1/4 a quarter of them."""
    parts = int(os.environ.get("ROBOCACHE_RANDOM_SHARE", "0/1").split("/")[1])
    return -(-count // parts)
