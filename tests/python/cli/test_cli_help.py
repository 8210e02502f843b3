"""``--help`` has the same words with every release of typer."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from robocache.cli import _help  # noqa: E402
from robocache.cli._app import COMMANDS, run  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
INSTALLS = os.environ.get("ROBOCACHE_TEST_INSTALL") == "yes"
# The oldest release that pyproject.toml allows, and the newest one.
RELEASES = ("typer==0.16.0", "typer")


def shown(python, *arguments, **environment):
    run = subprocess.run(
        [python, "-m", "robocache", *arguments],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "COLUMNS": "80", **environment},
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def words(text):
    return re.sub(r"\s+", " ", text).strip()


def expected(monkeypatch, name, columns="80"):
    monkeypatch.setenv("COLUMNS", columns)
    command, example = COMMANDS[name]
    return _help.command_help(name, command, example)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_is_its_description(name, monkeypatch, capsys):
    for columns in ("40", "80", "200"):
        text = expected(monkeypatch, name, columns)
        assert max(len(line) for line in text.split("\n") if "/" not in line) <= 100
        assert words(text).startswith(f"Usage: robocache {name} ")
    text = expected(monkeypatch, name)
    assert run([*name.split(), "--help"]) == 0
    assert capsys.readouterr().out == text + "\n"


def test_brackets_of_a_metavar_are_kept():
    text = shown(sys.executable, "inspect", "-h")
    assert "--time COLUMN[:UNIT]" in text and "--check[=errors]" in text


def test_every_parameter_is_described():
    for name, (command, _) in COMMANDS.items():
        for each in _help.parameters(command):
            assert each.text and each.usage, (name, each)


@pytest.mark.skipif(not INSTALLS, reason="ROBOCACHE_TEST_INSTALL=yes installs releases of typer")
@pytest.mark.parametrize("release", RELEASES)
def test_the_words_are_the_same_with_another_release(release, tmp_path, monkeypatch):
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--target", tmp_path, release, "rich"],
        check=True,
    )
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    for name in COMMANDS:
        text = shown(sys.executable, *name.split(), "--help", PYTHONPATH=path)
        assert words(text) == words(expected(monkeypatch, name)), (release, name)
    assert shown(sys.executable, "--help", PYTHONPATH=path) == shown(sys.executable, "--help")
