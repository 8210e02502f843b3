"""The environment of processes that tests start."""

from __future__ import annotations

import os
import sys


def environment(**changes: str) -> dict[str, str]:
    """Return this process's environment, so that a child imports from the same folders."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **changes}
