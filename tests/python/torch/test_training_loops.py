"""The loops of docs/quickstart/training.md: equal losses after a resume.

Lightning, Accelerate and transformers are tested where they are installed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from blocks import blocks_of

torch = pytest.importorskip("torch")
for needed in ("rosbags", "pyarrow", "av"):
    pytest.importorskip(needed)

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "quickstart" / "training.md"
STEPS, STOPS = 20, (1, 7, 15, 17)  # an epoch has 15 batches


@pytest.fixture(scope="module", autouse=True)
def page():
    """The names that the page defines; a part runs when it is first needed."""
    patch = pytest.MonkeyPatch()
    patch.chdir(ROOT)
    patch.setattr(sys, "path", [*sys.path])
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # for a model this small, more threads only wait for each other
    names = {"__name__": "page"}
    blocks = [
        block for block in blocks_of(PAGE) if block.language == "python" and not block.comment
    ]

    def until(name):
        """Run the blocks up to the one that defines a name; skip it if a package is missing."""
        while name not in names:
            block = blocks[0]
            try:
                exec(compile("\n" * (block.line - 1) + block.text, str(PAGE), "exec"), names)
            except ModuleNotFoundError as error:
                if f"{name} =" in block.text or f"def {name}(" in block.text:
                    pytest.skip(f"{error.name} is not installed")
            del blocks[0]
        return names

    until("whole")
    yield lambda *name: until(*name) if name else names
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(False)
    patch.undo()


def test_the_losses_are_those_of_different_batches(page):
    losses = page()["whole"]
    assert len(losses) == STEPS and len(set(losses)) == STEPS


@pytest.mark.parametrize("stop", STOPS)
def test_a_plain_loop_resumes(page, tmp_path, stop):
    train = page()["train"]
    first_losses = train(stop, tmp_path / "checkpoint.pt")
    assert first_losses == page()["whole"][:stop]
    assert train(STEPS, tmp_path / "checkpoint.pt") == page()["whole"]


def test_workers_change_no_loss(page):
    """A loop on a DataLoader, with the order of a sampler."""
    from torch.utils.data import DataLoader, DistributedSampler

    import robocache as rbc

    names = page()
    found = []
    for workers, collates in ((0, True), (0, False), (1, False), (2, True)):
        dataset = rbc.torch.WindowDataset(names["episodes"], names["spec"], seed=1)
        sampler = DistributedSampler(dataset, 1, 0)
        loader = DataLoader(
            dataset, 8, sampler=sampler, num_workers=workers, persistent_workers=workers > 0,
            collate_fn=dataset.collate if collates else None,
        )  # fmt: skip
        policy, optimizer = names["new_policy"]()
        losses = []
        for epoch in range(2):
            dataset.set_epoch(epoch)
            sampler.set_epoch(epoch)
            for batch in loader:
                off = (policy(batch["front"], batch["state"]) - batch["action"]).abs().mean(2)
                loss = (off * batch["action_is_valid"]).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
        found.append(losses)
    assert len(set(found[0])) == len(found[0]) == 30
    assert found[1:] == found[:1] * 3


@pytest.mark.parametrize("stop", STOPS)
def test_lightning_resumes(page, stop):
    fit = page("fit")["fit"]
    first_losses = fit(stop)
    assert first_losses + fit(STEPS, resume=page()["folder"] / "module.ckpt") == page()["whole"]


@pytest.mark.parametrize("stop", STOPS)
def test_accelerate_resumes(page, stop):
    accelerate = page("accelerate")["accelerate"]
    assert accelerate(stop) + accelerate(STEPS - stop, resume=True) == page()["whole"]


@pytest.mark.parametrize("workers", [0, 2])
def test_the_trainer_resumes(page, workers):
    names = page("trained")
    losses = names["trained"](STEPS, f"workers-{workers}", workers=workers)
    assert losses == names["by_trainer"] and len(set(losses)) == STEPS
    for stop in (8, 16):  # in the first epoch, and in the second one
        saved = str(names["folder"] / f"workers-{workers}" / f"checkpoint-{stop}")
        assert names["trained"](STEPS, f"again-{workers}-{stop}", saved, workers) == losses
