"""Options that would be ignored, or would need too much memory or time, are refused."""

from __future__ import annotations

import os

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from typer.testing import CliRunner  # noqa: E402

import recordings_with_faults as faults  # noqa: E402
from robocache import data  # noqa: E402
from robocache.cli._app import app  # noqa: E402
from robocache.cli._messages import in_cli_words  # noqa: E402

RUNNER = CliRunner()


@pytest.fixture
def place(tmp_path, monkeypatch):
    """`r.npz` is a recording, `e.npz` holds episodes, `k.bin` a cloud."""
    faults.save(tmp_path / "r.npz")
    data.save(faults.episodes(), tmp_path / "e.npz")
    np.linspace(0, 1, 40, dtype=np.float32).tofile(tmp_path / "k.bin")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(*arguments, code):
    result = RUNNER.invoke(app, [*map(str, arguments)])
    assert result.exit_code == code, result.output
    assert code == 2 or result.stderr.count("\n") == 1
    return " ".join(result.stderr.replace("\N{BOX DRAWINGS LIGHT VERTICAL}", " ").split())


RESAMPLE = ("--rate", "5", "-o", "out.npz")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (
            ["stats", "e.npz", "--relative", "4", "-s", "action"],
            2,
            "--stream cannot be combined",
        ),
        (["stats", "e.npz", "--absolute", "x"], 2, "--absolute is only valid with --relative"),
        (["stats", "e.npz", "--per-step"], 2, "--per-step is only valid with --relative"),
        (["stats", "e.npz", "--rows", "all"], 2, "--rows is only valid with --relative"),
        (["stats", "e.npz", "--state", "zzz"], 2, "--state is only valid with --relative"),
        (["stats", "e.npz", "--action", "zzz"], 2, "--action is only valid with --relative"),
        (["windows", "e.npz", "--absolute", "x"], 2, "--absolute is only valid with --relative"),
        (["resample", "e.npz", *RESAMPLE, "--task", "x"], 1, "--task works only on recordings"),
        (["resample", "e.npz", *RESAMPLE, "--clock", "log"], 1, "--clock works only on recordings"),
        (["resample", "e.npz", *RESAMPLE, "--clock", "no"], 2, "'no': choose header or log"),
        (["resample", "e.npz", *RESAMPLE, "--unit", "foo"], 2, "'foo': choose ns, us, ms or s"),
        (
            ["sync", "e.npz", "--a", "action", "--b", "action", "--clock", "log"],
            1,
            "--clock works only",
        ),
        (["sync", "r.npz", "--a", "arm", "--b", "arm", "--clock", "no"], 2, "choose header or log"),
        (["inspect", "r.npz", "--unit", "foo"], 2, "'foo': choose ns, us, ms or s"),
        (
            ["report", "e.npz", "--html", "r.html", "--rate", "5"],
            1,
            "--rate with --html works only on recordings",
        ),
        (
            ["resample", "r.npz", *RESAMPLE, "--fps", "nan"],
            2,
            "--fps: nan: expected a finite",
        ),
        (["inspect", "r.npz", "--fps", "0"], 2, "--fps: 0: expected a finite number above 0"),
    ],
)
def test_options_that_would_be_ignored(place, arguments, code, words):
    assert words in refused(*arguments, code=code)
    assert not os.path.exists("out.npz") and not os.path.exists("r.html")


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["windows", "e.npz", "--steps", "100000000"], 2, "10000"),
        (["windows", "e.npz", "--history", "100000000"], 2, "10000"),
        (["stats", "e.npz", "--relative", "100000000"], 2, "10000"),
        (["stats", "e.npz", "--relative", "9999"], 1, "the longest episode has"),
    ],
)
def test_windows_longer_than_any_episode(place, arguments, code, words):
    assert words in refused(*arguments, code=code)


def test_relative_statistics_past_the_ends_of_all_episodes(place):
    command = ["stats", "e.npz", "--relative", "300", "--state", "action"]
    for rows in ("all", "valid"):
        result = RUNNER.invoke(app, [*command, "--rows", rows])
        assert result.exit_code == 0, result.output
    assert "or --rows valid" in refused(*command, code=1)


@pytest.mark.parametrize(
    ("mode", "side"), [("mean", 1000), ("occupancy", 1700), ("count", 1100), ("sum", 4000)]
)
def test_dense_grids_that_no_memory_holds(place, mode, side):
    """Points on the diagonal of a box with ``side`` voxels along each axis."""
    text = refused("voxelize", "k.bin", "--voxel-size", 0.93 / side, "--dense", mode, "-o", "v.npz",
                   code=1)  # fmt: skip
    assert "GiB, more than 4 GiB; use a larger --voxel-size, a smaller --range" in text
    assert not os.path.exists("v.npz")


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("is a link; follow_links=True allows it", "is a link; --follow-links allows it"),
        ("expected some or span='union'", "expected some or --span union"),
        ("such as unit='ns'", "such as --unit ns"),
        ("use another clock=, or sort it", "use another --clock, or sort it"),
        ("needs a rate: pass data.open(..., rate=)", "needs a rate: pass --fps"),
        ("damaged='keep' reads the rest", "--damaged keep reads the rest"),
        ("clock_offset=0.5, x=True", "clock_offset=0.5, x=True"),
    ],
)
def test_messages_of_the_library_tell_options(message, words):
    assert in_cli_words(message) == words


def test_no_message_names_an_option_that_the_command_lacks(place, monkeypatch):
    def fail(*_, **__):
        raise ValueError("k.bin: is truncated; damaged='keep' reads the rest; pass unit='us'")

    monkeypatch.setattr("robocache.cli.voxelize.open_data", fail)
    text = refused("voxelize", "k.bin", "--voxel-size", "1", "-o", "v.npz", code=1)
    assert "damaged='keep' in Python reads the rest" in text
    monkeypatch.setattr("robocache.cli.inspect.open_data", fail)
    assert "pass --unit us" in refused("inspect", "k.bin", code=1)
