"""benchmarks/window_loader.py runs, and its peers give the same windows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "window_loader.py"


def test_it_runs_on_the_cpu():
    for name in ("torch", "tqdm"):
        pytest.importorskip(name)
    command = [sys.executable, str(SCRIPT), "--device=cpu", "--batch", "32", "--seconds=0.05"]
    environment = {name: each for name, each in os.environ.items() if name != "ROBOCACHE_DATA"}
    run = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stdout + run.stderr
    rates = re.findall(r"^  (\w.*?) +([\d,]+) windows/s", run.stdout, re.MULTILINE)
    assert [name for name, _ in rates] == ["RoboCache", "torch", "NumPy", "NumPy, one by one"] * 3
    assert all(int(rate.replace(",", "")) > 0 for _, rate in rates)
