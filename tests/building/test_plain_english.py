"""scripts/plain_english.py: its self-test, its limits and its exit statuses."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "plain_english.py"


@pytest.fixture
def check(tmp_path):
    """Run the script in a repository with the given files: (exit status, output)."""
    if not shutil.which("git"):
        pytest.skip("needs git")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)

    def check(*arguments, files):
        for name, text in files.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        done = subprocess.run(
            [sys.executable, SCRIPT, *arguments],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        return done.returncode, done.stdout

    return check


def test_self_test(check):
    status, output = check("--self-test", files={})
    assert status == 0, output


def test_each_kind_has_a_limit(check):
    status, output = check(files={"src/a.cpp": "// is told\n" * 300, "a.md": "Clear.\n"})
    assert status == 0, output
    status, output = check(files={"src/b.cpp": "// is told\n", "tests/a.py": '"""Is told."""\n'})
    assert status == 1
    assert "tests/a.py:1: told: 'Is told.'" in output
    assert [line.split() for line in output.splitlines() if line.endswith("  tests")] == [
        ["-", "1", "-", "-", "-", "-", "tests"]
    ]
    assert "Over the limit: doc, comment." in output


def test_paths_kinds_and_rules(check):
    files = {"a/a.md": "Is told.\n", "b.sh": "# all but\n"}
    assert check("a", files=files)[0] == 1
    assert check("b.sh", files={})[0] == 1
    assert check("b.sh", "--kind", "message", files={})[0] == 0
    assert check("b.sh", "--rule", "told", files={})[0] == 0


def test_lines_since_a_revision(check, tmp_path):
    check(files={"a.md": "Is told.\n\nClear.\n"})
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["add", "."], [*identity, "commit", "-qm", "first"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    assert check("--since", "HEAD", files={})[0] == 0
    files = {"a.md": "Is told.\n\nAll but one.\n", "new.md": "Is told.\n"}
    status, output = check("--since", "HEAD", files=files)
    assert status == 1
    assert "a.md:3: all-but" in output
    assert "new.md:1: told" in output
    assert "\na.md:1" not in "\n" + output


@pytest.mark.parametrize("argument", ["--rule=none", "--kind=none", "missing.py"])
def test_wrong_usage(check, argument):
    assert check(argument, files={})[0] == 2
