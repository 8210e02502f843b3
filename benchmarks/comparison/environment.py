"""What a result was measured with."""

from __future__ import annotations

import os
import pathlib
import platform
import subprocess
from typing import Any

import numpy as np


def import_or_none(name: str) -> Any:
    try:
        return __import__(name)
    except ImportError:
        return None


def environment(device_facts: dict[str, Any], torch: Any) -> dict[str, Any]:
    import robocache

    scipy = import_or_none("scipy")
    return {
        **device_facts,
        "robocache": robocache.__version__,
        "commit": commit(),
        "torch": getattr(torch, "__version__", None),
        "numpy": np.__version__,
        "scipy": getattr(scipy, "__version__", None),
        "python": platform.python_version(),
    }


def commit() -> str:
    """ROBOCACHE_COMMIT, as a copy may come without its history; or this checkout's."""
    if given := os.environ.get("ROBOCACHE_COMMIT"):
        return given
    command = ["git", "-C", str(pathlib.Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
