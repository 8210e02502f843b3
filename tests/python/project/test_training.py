"""benchmarks/training.py runs, and every way to align gives the same numbers."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
WAYS = {
    "robocache",
    "robocache, raw batches from workers",
    "robocache, episodes on the device",
    "torch",
    "np.interp in workers",
    "scipy interp1d in workers",
    "no alignment",
}


def train(out: Path, *arguments: str, data: str = "") -> dict:
    for name in ("torch", "scipy", "tqdm", "pandas", "tabulate"):
        pytest.importorskip(name)
    sizes = {"steps": 2, "rounds": 1, "batch": 2, "episodes": 4, "layers": 1, "workers": 0}
    command = [sys.executable, str(ROOT / "benchmarks" / "training.py"), "--device", "cpu"]
    command += [f"--{name}={size}" for name, size in sizes.items()]
    run = subprocess.run(
        [*command, "--json", str(out), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "ROBOCACHE_DATA": data, "OMP_NUM_THREADS": "1"},
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return json.loads(out.read_text())


def check(loop: dict) -> None:
    assert set(loop["ways"]) == WAYS
    for name, way in loop["ways"].items():
        assert way["median_us"] > 0 and way["episodes/s"] > 0, name
        assert "deviates" not in way, name
    for name in ("robocache", "robocache, episodes on the device"):
        assert 0 < loop["ways"][name]["share"] < 1


def test_random_episodes(tmp_path: Path) -> None:
    result = train(tmp_path / "training.json")
    (loop,) = result["loops"]
    check(loop)
    assert sum(channels for _, channels in loop["streams"]) == 256
    assert "Unitree G1" in result["skipped"]


def test_g1_episodes(tmp_path: Path, recordings: Path) -> None:
    arguments = ("--episodes=0", "--workers=1")
    (loop,) = train(tmp_path / "training.json", *arguments, data=str(recordings))["loops"]
    check(loop)
    assert loop["streams"] == [[583, 26], [583, 26]]


def test_no_recording(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="has no action.npy"):
        train(tmp_path / "training.json", "--episodes=0", "--data", str(tmp_path))
