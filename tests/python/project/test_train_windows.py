"""examples/python/train_windows.py learns, and its second half uses what the first one saved."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("matplotlib")
EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import train_windows

    for name, value in {"WIDTH": 64, "LAYERS": 1, "FUTURE": 8}.items():
        monkeypatch.setattr(train_windows, name, value)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # for a model this small, more threads only wait for each other
    yield train_windows
    torch.set_num_threads(threads)


def run(example, monkeypatch, capsys, out, *arguments):
    command = ["train_windows.py", f"--out={out}", "--device=cpu", *arguments]
    monkeypatch.setattr(sys, "argv", command)
    example.main()
    return capsys.readouterr().out


def off_by(printed):
    words = printed.split("off by ")[1].split()
    return float(words[0]), float(words[4])


def test_simulated_episodes(example, monkeypatch, capsys, tmp_path):
    monkeypatch.delenv("ROBOCACHE_DATA", raising=False)
    monkeypatch.setattr(example.simulated_episodes, "__defaults__", (12,))
    printed = run(example, monkeypatch, capsys, tmp_path, "--steps=120", "--batch=16")
    assert "10 episodes of two simulated" in printed
    losses = [float(line.split()[-1]) for line in printed.splitlines() if "loss" in line]
    assert losses[-1] < 0.8 * losses[0]
    assert 0 < float(printed.split("share of RoboCache: ")[1].split("%")[0]) < 100
    model, still = off_by(printed)
    assert model < still
    assert {path.name for path in tmp_path.iterdir()} == {
        "model.pt", "normalization.json", "loss.png",
    }  # fmt: skip
    shapes = json.loads((tmp_path / "normalization.json").read_text())
    assert np.shape(shapes["action"]["shift"]) == (8, 14)
    assert np.shape(shapes["state"]["shift"]) == (14,)
    # The second half on its own gives the same; a different normalization would not.
    again = run(example, monkeypatch, capsys, tmp_path, "--infer")
    assert off_by(again) == (model, still)
    shapes["action"]["inverse_scale"] = np.zeros((8, 14)).tolist()
    (tmp_path / "normalization.json").write_text(json.dumps(shapes))
    assert off_by(run(example, monkeypatch, capsys, tmp_path, "--infer"))[0] != model


def test_recorded_episodes(example, monkeypatch, capsys, tmp_path, recordings):
    folder = f"--data={recordings / 'unitree_g1'}"
    printed = run(example, monkeypatch, capsys, tmp_path, folder, "--steps=2", "--batch=8")
    assert "90 episodes of Unitree G1" in printed and "10 other episodes: off by" in printed
