"""The commands of docs/quickstart/cli.md on the real recordings that they show."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

import robocache as rbc  # noqa: E402
import warm_python  # noqa: E402

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
    return made


# The command, which begins in a Python that is warm: it hands its files on, and waits.
COMMAND = """#!{python} -SE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as channel:
    channel.connect({place!r})
    call = json.dumps([sys.argv[1:], dict(os.environ), os.getcwd()])
    socket.send_fds(channel, [call.encode()], [0, 1, 2])
    sys.exit(int(channel.recv(64)))
"""
CODE = "import sys; from robocache.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture
def scripts(tmp_path):
    """A folder with the command."""
    place = str(tmp_path / "socket")
    command = tmp_path / "bin" / "robocache"
    command.parent.mkdir()
    command.write_text(COMMAND.format(python=sys.executable, place=place))
    command.chmod(0o755)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(place)
        listener.listen()
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        yield command.parent
        listener.shutdown(socket.SHUT_RDWR)


def answer(listener):
    """Run each command that connects; return when the listener is shut down."""
    with contextlib.suppress(OSError):
        while True:
            channel, _ = listener.accept()
            with channel:
                call, files, _, _ = socket.recv_fds(channel, 1 << 20, 3)
                arguments, environment, folder = json.loads(call)
                status = warm_python.run_on(
                    files, CODE, *arguments, environment=environment, folder=folder
                )
                for file in files:
                    os.close(file)
                channel.send(str(status).encode())


def test_every_block_prints_what_the_page_says(folder, scripts, monkeypatch):
    found = blocks_of("docs/quickstart/cli.md")
    assert len(found) >= 7
    path = f"{scripts}:{Path(sys.executable).parent}:{os.environ['PATH']}"
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
