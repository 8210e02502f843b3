"""benchmarks/lerobot_windows.py and lerobot_statistics.py run, and all ways agree."""

import re
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks"


@pytest.fixture
def run(monkeypatch, capsys):
    """Return a function that runs a script in this process, which has imported torch already."""

    def run(script, *arguments):
        monkeypatch.setattr(sys, "argv", [script, *map(str, arguments)])
        monkeypatch.syspath_prepend(str(BENCHMARKS))
        runpy.run_path(str(BENCHMARKS / script), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_windows(run, tmp_path):
    for name in ("torch", "tqdm", "pyarrow"):
        pytest.importorskip(name)
    rng = np.random.default_rng(0)
    for name in ("observation.state", "action"):
        np.save(tmp_path / f"{name}.npy", rng.standard_normal((200, 26), np.float32))
    np.save(tmp_path / "episode_index.npy", np.repeat(np.arange(4), 50))
    limits = ("--workers=1", "--batch=16", "--rounds=1", "--seconds=0.01")
    printed = run("lerobot_windows.py", "--data", tmp_path, *limits)
    rates = dict(re.findall(r"^  (\w.*?) +([\d,]+) windows/s", printed, re.MULTILINE))
    assert {"RoboCache", "Dataset, 1 workers"} <= set(rates)
    assert all(int(rate.replace(",", "")) > 0 for rate in rates.values())


def test_statistics(run):
    pytest.importorskip("pyarrow")
    printed = run("lerobot_statistics.py", "--rows=5000")
    (off,) = re.findall(r"RoboCache .* off by (\S+) stds", printed)
    assert float(off) < 1e-12
