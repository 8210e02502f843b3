"""``robocache edit``: its options, its words and its exit codes."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("pyarrow")

from typer.testing import CliRunner  # noqa: E402

import recordings_with_faults as faults  # noqa: E402
from robocache import data  # noqa: E402
from robocache.cli._app import app  # noqa: E402

RUNNER = CliRunner()


@pytest.fixture
def source(tmp_path):
    data.save(faults.episodes(), tmp_path / "source", "lerobot")
    return tmp_path / "source"


def run(*arguments, code=0):
    result = RUNNER.invoke(app, ["edit", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output


def test_the_options(source, tmp_path):
    out = tmp_path / "out"
    text = run(source, "-o", out, "--keep", "4,0-2", "--drop", "1", "--trim", "0=10:", "--task",
               "pick", "--task-of", "4=place", "--rename", "action=target", "--remove",
               "observation.state")  # fmt: skip
    assert "3 episodes, 110 rows" in text
    made = data.open(out)
    assert list(made.tracks) == ["target"] and made.tasks == ("place", "pick", "pick")
    assert RUNNER.invoke(app, ["inspect", str(out), "--check"]).exit_code == 0


def test_splits_and_json(source, tmp_path):
    text = run(source, "-o", tmp_path / "a", "--split", "train=.8", "--split", "val=0.2")
    assert "train: 4 episodes" in text and "val: 1 episode" in text
    parts = [tmp_path / "a" / name for name in ("train", "val")]
    made = json.loads(run(*parts, "-o", tmp_path / "b", "--json"))
    assert made["episodes"] == 5 and made["rows"] == 200 and made["left_out"] == []
    assert len(data.open(tmp_path / "b")) == 5


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--drop", "9"), 1, "--drop: no episode 9, expected 0 to 4"),
        (("--trim", "3"), 2, "expected EPISODES=BEGIN:END"),
        (("--rename", "x=y"), 1, "no such feature 'x'"),
        (("--task-of", "0=a", "--task-of", "0=b"), 2, "0 is given twice"),
        (("--split", "a=1.5"), 1, "at most 1 together"),
    ],
)
def test_refusals(source, tmp_path, arguments, code, words):
    text = run(source, "-o", tmp_path / "out", *arguments, code=code)
    assert words in " ".join(text.replace("│", " ").split())
    assert not (tmp_path / "out").exists()


def test_other_files_are_listed(source, tmp_path):
    (source / "meta" / "modality.json").write_text("{}")
    text = "".join(run(source, "-o", tmp_path / "out").split())  # lines are folded anywhere
    assert "modality.json:notcopied" in text
