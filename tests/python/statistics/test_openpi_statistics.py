"""`stats --write openpi`: the keys that openpi reads, computed as after its DeltaActions."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from robocache import Episodes, Track, data
from robocache.cli._app import app

LENGTHS = (30, 7, 25)


@pytest.fixture
def arm(tmp_path):
    rng = np.random.default_rng(2)
    offsets = np.cumsum([0, *LENGTHS])
    made = {
        "observation.state": rng.normal(size=(offsets[-1], 4)).astype("f4"),
        "action": rng.normal(size=(offsets[-1], 3)).astype("f4"),
    }
    tracks = {name: Track(values, offsets) for name, values in made.items()}
    data.save(Episodes(tracks), tmp_path / "arm.npz")
    return tmp_path / "arm.npz", made, offsets


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


def read(path):
    """Read the file as openpi does: all keys of `norm_stats`, each with four arrays."""
    top = json.loads(path.read_text())
    assert list(top) == ["norm_stats"]
    keys = top["norm_stats"]
    assert set(keys) == {"state", "actions"}  # of compute_norm_stats.py
    for each in keys.values():
        assert set(each) == {"mean", "std", "q01", "q99"}
    return {
        name: {key: np.array(value) for key, value in each.items()} for name, each in keys.items()
    }


def check(stored, rows):
    rows = rows.reshape(-1, rows.shape[-1]).astype("f8")
    np.testing.assert_allclose(stored["mean"], rows.mean(axis=0), atol=1e-7)
    np.testing.assert_allclose(stored["std"], rows.std(axis=0), atol=1e-7)
    np.testing.assert_allclose(stored["q01"], np.quantile(rows, 0.01, axis=0), atol=1e-6)
    np.testing.assert_allclose(stored["q99"], np.quantile(rows, 0.99, axis=0), atol=1e-6)


def chunks(made, offsets, horizon, mask):
    """Return openpi's actions: the last row is repeated past the end, then DeltaActions."""
    found = []
    for begin, end in zip(offsets, offsets[1:]):
        for row in range(begin, end):
            rows = np.minimum(np.arange(row, row + horizon), end - 1)
            chunk = made["action"][rows].copy()
            state = made["observation.state"][row]
            chunk[:, : len(mask)] -= np.where(mask, state[: len(mask)], 0)
            found.append(chunk)
    return np.stack(found)


def test_absolute_actions(arm, tmp_path):
    path, made, _ = arm
    text = run("stats", path, "--write", "openpi", "-o", tmp_path / "norm_stats.json")
    assert "state is observation.state, actions is action: absolute actions" in text
    stored = read(tmp_path / "norm_stats.json")
    check(stored["state"], made["observation.state"])
    check(stored["actions"], made["action"])


@pytest.mark.parametrize(
    ("text", "mask"),
    [
        ("2,-1", [True, True, False]),
        ("-1,1,-1", [False, True, False]),
        ("3", [True] * 3),
        ("1", [True]),
        ("-3", [False] * 3),
    ],
)
def test_actions_minus_the_state(arm, tmp_path, text, mask):
    path, made, offsets = arm
    out = tmp_path / "norm_stats.json"
    command = ("stats", path, "--write", "openpi", "-o", out, "--relative", 10)
    said = run(*command, f"--delta-mask={text}")
    channels = "1 channel" if sum(mask) == 1 else f"{sum(mask)} channels"
    assert f"the next 10 minus the state in {channels}, as by DeltaActions" in said
    stored = read(out)
    check(stored["state"], made["observation.state"])
    check(stored["actions"], chunks(made, offsets, 10, mask))


def test_other_tracks(arm, tmp_path):
    path, made, _ = arm
    out = tmp_path / "norm_stats.json"
    run(
        *("stats", path, "--write", "openpi", "-o", out),
        *("--state", "action", "--action", "observation.state"),
    )
    check(read(out)["state"], made["action"])


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--delta-mask", "2,-1"], 2, "--delta-mask needs --relative H"),
        (["--relative", 5, "--delta-mask", "2,x"], 2, "expected counts of channels"),
        (["--relative", 5, "--delta-mask", "0"], 2, "expected counts of channels"),
        (["--relative", 5, "--delta-mask", "4"], 1, "covers 4 channels, but action has 3"),
        (["--relative", 5, "--delta-mask", "2", "--absolute", "1"], 2, "not both"),
        (["-s", "action"], 2, "--stream cannot be combined with --write openpi"),
        (["--state", "nothing"], 1, "no such track"),
    ],
)
def test_refusals(arm, tmp_path, options, code, words):
    out = tmp_path / "norm_stats.json"
    assert words in run("stats", arm[0], "--write", "openpi", "-o", out, *options, code=code)
    assert not out.exists()
