"""The first blocks of README.md run as printed, and print what the page says.

With ROBOCACHE_TEST_INSTALL=yes they run in a fresh clone and install the package from it, which
takes minutes and a network. Otherwise `python3` and `pip` only check how they are called.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "snippets"))

from blocks import blocks_of  # noqa: E402

INSTALLS = os.environ.get("ROBOCACHE_TEST_INSTALL") == "yes"
BLOCKS = blocks_of(ROOT / "README.md")[:2]

# `python3` makes a folder to activate, `pip` records its requirement, and `robocache` is the
# package under test.
PROGRAMS = {
    "python3": """
[[ $* == "-m venv .venv" ]] || { echo "python3 $*: expected -m venv .venv" >&2; exit 1; }
mkdir -p .venv/bin && touch .venv/bin/activate
""",
    "pip": """
[[ $1 == install && -f .venv/bin/activate ]]
printf '%s\\n' "${@: -1}" >requirement
""",
    "robocache": f"""
[[ -f requirement ]]
exec "{sys.executable}" -m robocache "$@"
""",
}


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A folder in which the shell block has run, and what it printed."""
    shell, _ = BLOCKS
    folder = tmp_path_factory.mktemp("readme")
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "FORCE_COLOR")}
    if INSTALLS:
        subprocess.run(["git", "clone", "-q", ROOT, folder / "clone"], check=True)
        folder = folder / "clone"
    else:
        for package in ("rich", "typer", "pyarrow"):
            pytest.importorskip(package)
        programs = tmp_path_factory.mktemp("bin")
        for name, text in PROGRAMS.items():
            (programs / name).write_text(f"#!/bin/bash\nset -eu\n{text}")
            (programs / name).chmod(0o755)
        environment["PATH"] = f"{programs}:{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", shell.text],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder, done.stdout


def test_the_first_blocks_are_a_shell_and_a_python_block():
    assert [block.language for block in BLOCKS] == ["sh", "python"]
    assert all(block.comment.endswith("test_readme.py runs it") for block in BLOCKS)


def test_the_shell_block_prints_what_the_page_says(clone):
    _, printed = clone
    assert printed == BLOCKS[0].output


@pytest.mark.skipif(INSTALLS, reason="pip itself checks the extras")
def test_the_extras_exist(clone):
    folder, _ = clone
    named = re.fullmatch(r"\.\[([a-z,]+)\]\n", (folder / "requirement").read_text())
    project = (ROOT / "pyproject.toml").read_text()
    extras = project.split("[project.optional-dependencies]\n")[1].split("\n[")[0]
    known = re.findall(r"^([a-z0-9]+) = \[", extras, re.M)
    assert named and set(named[1].split(",")) <= set(known)
    # `all` includes every reader that an error of robocache.data may suggest.
    nested = re.search(r'^all = \["robocache\[([a-z0-9,]+)\]"\]$', extras, re.M)
    assert sorted(set(known) - {"all", "ray", "rerun"}) == nested[1].split(",")


def test_the_python_block_gives_the_batch_of_its_comment(clone):
    folder, _ = clone
    python = str(folder / ".venv/bin/python") if INSTALLS else sys.executable
    check = (
        'values, valid = batch["joints"]\n'
        "print([*values.shape], [*valid.shape], bool(valid.all()))\n"
    )
    done = subprocess.run(
        [python, "-c", BLOCKS[1].text + check],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[2, 2, 7] [2, 2] True\n"
    assert '# "joints": values [2,2,7], valid [2,2]\n' in BLOCKS[1].text
