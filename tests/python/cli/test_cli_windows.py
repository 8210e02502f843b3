"""`robocache windows`, and statistics of actions relative to the state: against plain loops."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from typer.testing import CliRunner  # noqa: E402

from robocache import Episodes, Track, data, statistics_files  # noqa: E402
from robocache.cli._app import app  # noqa: E402

RUNNER = CliRunner()
LENGTHS = (7, 1, 12)


def run(*arguments, code=0):
    result = RUNNER.invoke(app, [*map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


def told(*arguments):
    return json.loads(run(*arguments, "--json"))


@pytest.fixture
def arm(tmp_path):
    """Write actions of two joints, in a different order than in the state, and of a gripper."""
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(1)
    offsets = np.cumsum([0, *LENGTHS])
    times = np.concatenate([np.arange(n) / 10 for n in LENGTHS])
    tracks = {
        "observation.state": Track(
            rng.normal(size=(20, 3)).astype("f4"), offsets, times=times, names=["a", "b", "grip"]
        ),
        "action": Track(
            rng.normal(size=(20, 3)).astype("f4"), offsets, times=times, names=["b", "grip", "a"]
        ),
    }
    data.save(Episodes(tracks), tmp_path / "arm", "lerobot")
    return tmp_path / "arm", tracks


def relative(tracks, steps, rows, kept=()):
    """Return the actions minus the state: for each step an array [n,D]."""
    state, action = (tracks[n].values.astype("f8") for n in ("observation.state", "action"))
    reference = np.stack([state[:, 1], state[:, 2], state[:, 0]], axis=1)
    reference[:, list(kept)] = 0
    by_step = [[] for _ in range(steps)]
    begin = 0
    for length in LENGTHS:
        for t in range(length):
            whole = t + steps <= length
            for k in range(steps):
                if rows == "whole" and not whole or rows == "valid" and t + k >= length:
                    continue
                at = begin + min(t + k, length - 1)
                by_step[k].append(action[at] - reference[begin + t])
        begin += length
    return [np.array(rows).reshape(-1, 3) for rows in by_step]


@pytest.mark.parametrize("rows", ["all", "valid", "whole"])
def test_relative_statistics(arm, rows):
    path, tracks = arm
    expected = np.concatenate(relative(tracks, 4, rows, kept=[1]))
    out = told("stats", path, "--relative", 4, "--rows", rows, "--absolute", "grip")
    of = out["streams"]["action"]
    assert of["names"] == ["b", "grip", "a"] and of["count"] == [len(expected)] * 3
    for name in ("min", "max", "mean", "std"):
        np.testing.assert_allclose(of[name], getattr(expected, name)(axis=0), rtol=1e-5, atol=1e-6)
    by_number = told("stats", path, "--relative", 4, "--rows", rows, "--absolute", "1")
    assert by_number == out


def test_relative_statistics_by_step_are_written_for_gr00t(arm, tmp_path):
    path, tracks = arm
    file = tmp_path / "relative_stats.json"
    text = run("stats", path, "--relative", 3, "--per-step", "--rows", "whole",
               "--write", "gr00t", "-o", file)  # fmt: skip
    assert "+2 grip" in text and max(map(len, text.splitlines()[:12])) <= 80
    back = statistics_files.read_gr00t(file)["action"]
    for step, expected in enumerate(relative(tracks, 3, "whole")):
        np.testing.assert_allclose(back.mean[step], expected.mean(axis=0), rtol=1e-5, atol=1e-6)
        q99 = np.quantile(expected, 0.99, axis=0)
        np.testing.assert_allclose(back.quantile(0.99)[step], q99, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (
            ["--relative", "4", "--absolute", "wrist"],
            1,
            "--absolute wrist: track action has no such channel",
        ),
        (
            ["--relative", "4", "--action", "actions"],
            1,
            "--action actions: no such track, expected one of",
        ),
        (["--relative", "0"], 2, "--relative"),
        (["--relative", "4", "--rows", "some"], 2, "--rows"),
        (["--relative", "4", "--check"], 2, "--check"),
    ],
)
def test_what_is_refused(arm, arguments, code, words):
    assert words in " ".join(run("stats", arm[0], *arguments, code=code).split())


def test_how_many_samples_there_are(arm):
    out = told("windows", arm[0], "--steps", 4)
    assert (out["samples"], out["whole"], out["episodes"]) == (20, 4 + 0 + 9, 3)
    valid = sum(min(4, n - t) for n in LENGTHS for t in range(n)) / 80
    assert out["valid"] == pytest.approx(valid)
    assert out["windows"]["state"]["offsets"] == [-1, 0]
    text = run("windows", arm[0], "--steps", 4, "--history", 1, "--relative")
    assert "subtract" in text and "20 samples of 3 episodes" in text


def test_bench(arm, monkeypatch):
    import robocache.cli.windows as command

    monkeypatch.setattr(command, "_SECONDS", 0.05)
    out = told("windows", arm[0], "--bench", "--batch", 8, "--device", "cpu")
    assert out["device"] == "cpu" and out["batch"] == 8
    for of in out["bench"]:
        assert of["windows_a_second"] > 0 and of["seconds_a_batch"] > 0
    assert out["bench"][0]["by"] == "robocache.windows"
    assert "windows/s" in run("windows", arm[0], "--bench", "--batch", 8)


def test_windows_of_a_recording_are_refused(tmp_path):
    import recordings_with_faults as faults

    path = faults.save(tmp_path / "r.npz")
    assert "make a data set of it with robocache resample" in run("windows", path, code=1)
