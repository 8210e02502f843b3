"""States of a WindowLoader: plain ints, and refused by every loader whose batches would differ."""

from __future__ import annotations

import datetime
import io
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

import robocache as rbc
from child_processes import environment
from window_loaders import WEIGHTS, episodes, loader, relative, spec, window

torch = pytest.importorskip("torch")

from robocache.torch import _state  # noqa: E402


def anchors(given):
    return [batch.anchors.tolist() for batch in given]


OTHERS = {
    "shuffle": (dict(shuffle=False), "shuffle is True, expected False; create the loader"),
    "weights": (dict(weights=WEIGHTS), "weights: None, expected weights with the digest [0-9]+;"),
    "fewer rows in one episode, more in the next": (
        dict(given=episodes((3, 1, 7, 1, 3))),
        "episodes have the digest [0-9]+ of their lengths, channels and dtypes, expected",
    ),
    "another dtype": (dict(given=episodes(dtype=np.float64)), "episodes have the digest"),
    "integers": (
        dict(given=episodes(dtype=np.int32)),
        "episodes have the digest",
    ),
    "more channels": (
        dict(given=episodes(channels=4), windows=spec(window(normalization=None))),
        "spec has the digest [0-9]+, expected [0-9]+; episodes have the digest",
    ),
}
SPECS = {
    "offsets": spec(window(range(1, 4))),
    "as many offsets in another order": spec(window([0, 2, 1])),
    "outside": spec(window(outside="fill")),
    "fill value": spec(window(outside="fill", fill_value=float("nan"))),
    "neutral": spec(window(outside="neutral")),
    "neutral numbers": spec(window(outside="neutral", neutral=[0.0, 1.0, 2.0])),
    "neutral channels": spec(window(outside="neutral", neutral_channels=[True, False, True])),
    "no transform": spec(window(transforms=[])),
    "inverse": spec(window(transforms=[relative(inverse=True)])),
    "reference": spec(window(transforms=[relative(("past", 0))])),
    "its channels": spec(window(transforms=[relative(reference_begin=1)])),
    "normalization": spec(window(normalization=rbc.Normalization([1.0, 2.0, 3.5], 0.5))),
    "divides": spec(window(normalization=rbc.Normalization([1.0, 2.0, 3.0], 0.5, divides=True))),
    "clip": spec(window(normalization=rbc.Normalization([1.0, 2.0, 3.0], 0.5, low=0.0))),
    "dtype": spec(window(dtype="float16")),
    "dtype of all": spec(dtype="float16"),
    "missing": spec(window(missing="nan")),
    "method": spec(window([0.0, 1.0, 2.0], method="linear")),
    "output": spec(past=rbc.Window([-1, 0], track="arm", output=False)),
    "anchor": spec(anchor="frame"),
}


@pytest.mark.parametrize("case", OTHERS)
def test_a_state_of_another_loader_is_refused(case):
    options, words = OTHERS[case]
    one, other = loader(), loader(**options)
    next(iter(one))
    before = other.state_dict()
    with pytest.raises(ValueError, match=f"^state: {words}"):
        other.load_state_dict(one.state_dict())
    assert other.state_dict() == before
    if case == "weights":
        with pytest.raises(
            ValueError, match="weights: weights with the digest [0-9]+, expected None"
        ):
            one.load_state_dict(before)
        third = loader(weights=[1.0, 5.0, 0.5, 0.0, 3.0])
        with pytest.raises(
            ValueError, match="weights: weights with the digest [0-9]+, expected weights"
        ):
            third.load_state_dict(before)


def test_a_state_of_another_specification_is_refused():
    digests = {name: loader(windows=each).state_dict()["spec"] for name, each in SPECS.items()}
    digests["unchanged"] = loader().state_dict()["spec"]
    assert len(set(digests.values())) == len(digests), digests
    for each in SPECS.values():
        with pytest.raises(ValueError, match="^state: spec has the digest [0-9]+, expected"):
            loader(windows=each).load_state_dict(loader().state_dict())
    moved = loader(windows=spec(anchors=(1, 1)))
    with pytest.raises(ValueError, match="^state: "):
        moved.load_state_dict(loader().state_dict())


def test_all_that_differs_is_in_the_message():
    other = loader(shuffle=False, weights=WEIGHTS, windows=SPECS["outside"])
    with pytest.raises(ValueError, match="shuffle is .*; weights: None, .*; spec has"):
        other.load_state_dict(loader().state_dict())


def test_the_same_in_other_words_is_accepted():
    numbered = rbc.WindowSpec({
        "future": rbc.Window(
            (0, 1, 2),
            track="arm",
            transforms=relative((1, 1)),
            normalization=rbc.Normalization(np.float32([1, 2, 3]), [0.5, 0.5, 0.5], 0),
        ),
        "past": rbc.Window(np.array([-1, 0]), track="arm", fill_value=0),
        "frame": rbc.Window([0], track="frame"),
    }, anchor="past")  # fmt: skip
    state = loader().state_dict()
    for given in (
        loader(windows=numbered),
        loader(batch_size=3, drop_last=True, rank=1, world_size=2),
        loader(seed=8, fresh=True, ahead=1),
        loader(episodes(scale=7)),
    ):
        given.load_state_dict(state)
        assert given.state_dict() == state
    scaled = loader(weights=[2 * each for each in WEIGHTS])
    scaled.load_state_dict(loader(weights=WEIGHTS).state_dict())
    for one, other in ((torch.float16, "float16"), (np.float16, np.dtype("float16"))):
        state = loader(windows=spec(window(dtype=one), dtype=one)).state_dict()
        loader(windows=spec(window(dtype=other), dtype=other)).load_state_dict(state)


def test_lengths_of_time_have_digests():
    lengths = [datetime.timedelta(seconds=1), np.timedelta64(2, "s"), np.timedelta64(3, "s")]
    specs = [spec(window([0.0], method="linear", max_gap=each)) for each in lengths]
    specs.append(spec(window([datetime.timedelta(0)], method="linear")))
    assert len({_state._digest(_state._spec(each)) for each in specs}) == 4


def test_a_refused_state_leaves_a_loop_running():
    one = loader()
    batches = iter(one)
    next(batches)
    with pytest.raises(ValueError):
        one.load_state_dict({**one.state_dict(), "shuffle": 0, "epoch": 4})
    assert len(list(batches)) == len(one) - 1


# ---- what a state is ----------------------------------------------------------------------------


def test_states_are_plain_ints():
    for options in ({}, {"weights": WEIGHTS, "shuffle": False}, {"seed": -(2**63)}):
        state = loader(**options).state_dict()
        assert all(type(each) is int and -(2**63) <= each < 2**63 for each in state.values())
        file = io.BytesIO()
        torch.save(state, file)
        file.seek(0)
        assert torch.load(file, weights_only=True) == state
        assert json.loads(json.dumps(state)) == state == pickle.loads(pickle.dumps(state))
        as_tensors = {name: torch.tensor(each) for name, each in state.items()}
        given = loader(**options)
        given.load_state_dict(as_tensors)
        assert given.state_dict() == state


def test_a_state_is_the_same_in_another_process():
    """Run one in which hashes have another seed."""
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    code = "import json; from window_loaders import WEIGHTS, loader; "
    code += "print(json.dumps(loader(weights=WEIGHTS).state_dict()))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, env=environment(PYTHONHASHSEED=seed),
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout) == loader(weights=WEIGHTS).state_dict()


@pytest.mark.parametrize("name", ["shuffle", "weights", "spec", "episodes", "position", "version"])
def test_a_state_without_a_number(name):
    """Such as an older state, or another dict in a checkpoint."""
    state = loader().state_dict()
    del state[name]
    with pytest.raises(
        ValueError, match=f"^state: lacks '{name}', expected the result of state_dict$"
    ):
        loader().load_state_dict(state)


@pytest.mark.parametrize("name", list(loader().state_dict()))
def test_garbage(name):
    given = loader()
    before = given.state_dict()
    for wrong in (None, "1", b"1", 1.5, float("nan"), True, [], {}, torch.tensor([1, 2]), object()):
        with pytest.raises(TypeError, match=f"^state: {name} is .*, expected an int$"):
            given.load_state_dict({**before, name: wrong})
    for large in (2**63, -(2**64), 10**5000):
        with pytest.raises(ValueError, match=f"^state: {name} is .*, expected an int of 64 bits$"):
            given.load_state_dict({**before, name: large})
    if name not in ("seed", "epoch"):
        for other in (-1, 2**62 + 1):
            with pytest.raises(ValueError, match="^state: "):
                given.load_state_dict({**before, name: other})
    assert given.state_dict() == before
    assert anchors(given) == anchors(loader())


@pytest.mark.parametrize("wrong", [None, [], "state", 3, b"", [("epoch", 1)]])
def test_no_mapping(wrong):
    with pytest.raises(TypeError, match="^state: is .*, expected the dict that state_dict"):
        loader().load_state_dict(wrong)


def test_numbers_of_a_loader():
    for call, words in (
        (lambda: loader(seed=1.5), "seed: is 1.5, expected an int"),
        (lambda: loader(seed=2**64), "seed: is 18446744073709551616, expected an int of 64 bits"),
        (lambda: loader(rank=0.5), "rank: is 0.5, expected an int"),
        (lambda: loader().set_epoch(-1), "epoch: is -1, expected 0 or more"),
        (lambda: loader().set_epoch(0.5), "epoch: is 0.5, expected an int"),
    ):
        with pytest.raises((TypeError, ValueError), match=f"^{words}$"):
            call()
