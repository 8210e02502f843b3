"""benchmarks/torch_compile.py runs without a GPU, and tells the same of both ways."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "torch_compile.py"


@pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")
def test_it_runs_on_the_cpu() -> None:
    pytest.importorskip("torch")
    sizes = ["--batch=3", "--samples=20", "--out", "8", "4", "--steps=5", "--rounds=3"]
    command = [sys.executable, str(SCRIPT), "--device", "cpu", *sizes]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "[3,20,4] at 8 queries" in run.stdout
    times = dict(re.findall(r"^(plain|compiled) +([\d.]+) us", run.stdout, re.MULTILINE))
    assert float(times["plain"]) > 0
    assert float(times["compiled"]) > 0
    assert re.search(r"takes [+-][\d.]+ us more", run.stdout)
