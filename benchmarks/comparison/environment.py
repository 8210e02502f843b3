"""The environment of a measurement."""

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


def output_of(*command: str) -> str | None:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def environment(torch: Any, device: str) -> dict[str, Any]:
    import robocache

    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    facts: dict[str, Any] = {"cpu": models[0] if models else platform.processor()}
    if device == "cuda":
        driver = output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
        facts |= {
            "gpu": torch.cuda.get_device_name(),
            "driver": driver and driver.split()[0],
            "CUDA": torch.version.cuda,
        }
    else:
        with robocache.Context("cpu") as context:
            facts |= {"cores": len(os.sched_getaffinity(0)), "simd": context.info.simd}
    # A copy of the sources may lack its history.
    folder = str(pathlib.Path(__file__).parent)
    commit = os.environ.get("ROBOCACHE_COMMIT")
    commit = commit or output_of("git", "-C", folder, "describe", "--always", "--dirty")
    facts |= {"robocache": robocache.__version__, "commit": commit or "unknown"}
    for name, library in (("torch", torch), ("numpy", np), ("scipy", import_or_none("scipy"))):
        facts[name] = getattr(library, "__version__", None)
    return {**facts, "python": platform.python_version()}
