"""The examples that train on a camera's video: equal losses with a cache, and after a resume."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

import robocache as rbc

torch = pytest.importorskip("torch")
for needed in ("rosbags", "pyarrow", "av"):
    pytest.importorskip(needed)

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "python"
NAMES = ("train_act_like", "train_diffusion_like")


@pytest.fixture(scope="module")
def examples():
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(str(EXAMPLES))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # for a model this small, more threads only wait for each other
    import camera_training
    import reaching
    import train_act_like
    import train_diffusion_like

    yield {
        "train_act_like": train_act_like,
        "train_diffusion_like": train_diffusion_like,
        "training": camera_training,
        "reaching": reaching,
    }
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(False)
    patch.undo()


@pytest.fixture(scope="module")
def video(examples, tmp_path_factory):
    """A LeRobot data set with video, of 2 episodes of 40 rows; one is for training."""
    folder = tmp_path_factory.mktemp("reaching")
    data_set = examples["reaching"].demonstrations(folder, count=2, seconds=4.0)
    for path in data_set.rglob("*"):  # a cache does not trust files that were just written
        os.utime(path, (1.7e9, 1.7e9))
    return data_set


def run(example, out, *arguments):
    options = ["--device=cpu", "--batch=8", f"--out={out}", *map(str, arguments)]
    losses = example.main(options)
    assert all(map(math.isfinite, losses))
    saved = torch.load(out / "checkpoint.pt", weights_only=True)
    assert saved["losses"] == losses
    return losses, saved


def require_same(one, other):
    assert one[0] == other[0]
    assert one[1]["loader"] == other[1]["loader"]
    for name, item in one[1]["model"].items():
        assert torch.equal(item, other[1]["model"][name]), name


@pytest.mark.parametrize("name", NAMES)
def test_losses_are_equal_bit_for_bit(examples, video, tmp_path, name, capsys):
    example, data = examples[name], f"--data={video}"
    steps = 8  # an epoch has 5 batches of 40 rows
    uninterrupted = run(example, tmp_path / "whole", data, f"--steps={steps}")
    assert len(uninterrupted[0]) == steps and len(set(uninterrupted[0])) == steps
    for turn in ("fills the cache", "reads the cache"):
        cached = run(
            example, tmp_path / turn, data, f"--steps={steps}", f"--cache={tmp_path / 'cache'}"
        )
        require_same(cached, uninterrupted)
    kinds = {item.num_segments for item in rbc.Cache(tmp_path / "cache").items()}
    assert kinds == {1} and len(rbc.Cache(tmp_path / "cache").items()) >= 2  # numbers and frames
    for stop in (2, 6):
        run(example, tmp_path / "parts", data, f"--steps={stop}", *(["--resume"] * (stop > 2)))
    parts = run(example, tmp_path / "parts", data, f"--steps={steps}", "--resume")
    require_same(parts, uninterrupted)
    assert "1 other episodes: off by" in capsys.readouterr().out


@pytest.mark.parametrize("name", NAMES)
def test_a_simulated_arm_is_learned(examples, monkeypatch, tmp_path, name, capsys):
    from functools import partial

    small = partial(examples["reaching"].demonstrations, count=3, seconds=4.0)
    monkeypatch.setattr(examples["reaching"], "demonstrations", small)
    losses, _ = run(examples[name], tmp_path, "--steps=40", "--batch=16")
    assert sum(losses[-10:]) < 0.9 * sum(losses[:10])
    assert {"checkpoint.pt", "normalization.json", "data"} <= {p.name for p in tmp_path.iterdir()}


@pytest.mark.parametrize("cached", [False, True])
def test_four_ranks_together_are_one_process(examples, video, tmp_path, cached):
    cache = rbc.Cache(tmp_path / "cache") if cached else None
    episodes = rbc.data.open(video, cache=cache)
    camera = next(iter(episodes.cameras))
    images = examples["train_act_like"].images_of(camera)
    spec = examples["training"].windows_of(episodes, images, 2, 10, "mean_std")
    one = rbc.torch.WindowLoader(episodes, spec, 16, seed=1)
    ranks = [
        rbc.torch.WindowLoader(episodes, spec, 4, seed=1, rank=rank, world_size=4)
        for rank in range(4)
    ]
    for _ in range(2):
        for batch, *parts in zip(one, *ranks):
            for name in batch.values:
                together = torch.cat([part[name] for part in parts])
                assert torch.equal(together.view(torch.uint8), batch[name].view(torch.uint8))
                valid = torch.cat([part.valid[name] for part in parts])
                assert torch.equal(valid, batch.valid[name])
            assert torch.equal(torch.cat([part.anchors for part in parts]), batch.anchors)
    assert one.epoch == 2 and {item.epoch for item in ranks} == {2}
