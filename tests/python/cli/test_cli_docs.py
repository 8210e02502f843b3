"""The commands of docs/quickstart/cli.md on the real recordings that they show."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

import robocache as rbc  # noqa: E402

ROOT = Path(__file__).resolve().parents[3]
SOURCES = {
    "flight": "ros2_mcap_crazyflie_vicon/fly90bag",
    "so101": "lerobot_v3_so101",
    "husky.bag": "ros1_robot_localization/test1.bag",
    "pusht": "lerobot_v3_pusht",
    "rgbd": "rgbd_open3d",
}
BLOCK = re.compile(
    r"<!-- skipped: [^\n]*test_cli_docs.py runs it -->\n"
    r"```(\w+)\n(.*?)```\n(?:\n```text\n(.*?)```)?",
    re.S,
)


def blocks_of(page):
    return [match.groups() for match in BLOCK.finditer((ROOT / page).read_text())]


@pytest.fixture(scope="module")
def folder(recordings, tmp_path_factory):
    for package in ("rosbags", "pyarrow", "PIL"):
        pytest.importorskip(package)
    made = tmp_path_factory.mktemp("data")
    for name, source in SOURCES.items():
        copy = shutil.copytree if (recordings / source).is_dir() else shutil.copy
        copy(recordings / source, made / name)
    scripts = made / "bin"
    scripts.mkdir()
    command = scripts / "robocache"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m robocache "$@"\n')
    command.chmod(0o755)
    return made


def test_every_block_prints_what_the_page_says(folder, monkeypatch):
    found = blocks_of("docs/quickstart/cli.md")
    assert len(found) >= 7
    path = f"{folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    for language, text, output in found:
        if language == "python":
            monkeypatch.chdir(folder)
            names = {"rbc": rbc}
            exec(text, names)
            assert names["batch"]["action"][0].shape == (2, 50, 6)
            assert names["batch"]["action"][1].shape == (2, 50)
            continue
        run = subprocess.run(
            ["bash", "-uc", text],
            cwd=folder,
            env={**os.environ, "PATH": path, "COLUMNS": "80", "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert run.stderr == "" and output is not None
        assert run.stdout == output, text


def test_the_page_names_every_command():
    page = (ROOT / "docs/quickstart/cli.md").read_text()
    from robocache.cli._app import app

    for command in app.registered_commands:
        name = command.callback.__name__.replace("_", "-")
        assert f"`robocache {name}" in page, name
