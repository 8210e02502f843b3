"""benchmarks/training.py runs, and every way to align gives the same numbers."""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
Train = Callable[..., dict]
WAYS = {
    "robocache",
    "robocache, raw batches from workers",
    "robocache, episodes on the device",
    "torch",
    "np.interp in workers",
    "scipy interp1d in workers",
    "no alignment",
}


@pytest.fixture
def train(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Train]:
    """Return a function that runs it in this process, which has imported torch already."""
    for name in ("scipy", "tqdm", "pandas", "tabulate"):
        pytest.importorskip(name)
    torch = pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    training = importlib.import_module("training")
    sizes = {"steps": 2, "rounds": 1, "batch": 2, "episodes": 4, "layers": 1, "workers": 0}
    out = tmp_path / "training.json"

    def run(*arguments: str, data: str = "") -> dict:
        limits = [f"--{name}={size}" for name, size in sizes.items()]
        command = ["training.py", "--device", "cpu", *limits, "--json", str(out), *arguments]
        monkeypatch.setattr(sys, "argv", command)
        monkeypatch.setenv("ROBOCACHE_DATA", data)
        assert training.main() == 0
        return json.loads(out.read_text())

    yield run
    torch.set_num_threads(threads)


def check(loop: dict) -> None:
    assert set(loop["ways"]) == WAYS
    for name, way in loop["ways"].items():
        assert way["median_us"] > 0 and way["episodes/s"] > 0, name
        assert "deviates" not in way, name
    for name in ("robocache", "robocache, episodes on the device"):
        assert 0 < loop["ways"][name]["share"] < 1


def test_random_episodes(train: Train) -> None:
    result = train()
    (loop,) = result["loops"]
    check(loop)
    assert sum(channels for _, channels in loop["streams"]) == 256
    assert "Unitree G1" in result["skipped"]


def test_g1_episodes(train: Train, recordings: Path) -> None:
    (loop,) = train("--episodes=0", "--workers=1", data=str(recordings))["loops"]
    check(loop)
    assert loop["streams"] == [[583, 26], [583, 26]]


def test_no_recording(train: Train, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="has no action.npy"):
        train("--episodes=0", "--data", str(tmp_path))
