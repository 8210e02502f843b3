"""ROBOCACHE_TEST_SHARE: shares of the test files are complete, disjoint and even."""

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import random_share
from child_processes import environment

CONFTEST = Path(__file__).parents[1] / "conftest.py"
FILES = ["a/test_x.py", "b/test_x.py", "b/test_y.py"]
FILES += [f"c/test_{name}.py" for name in "wxyz"]


def collected(folder, share):
    variables = environment(PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    variables.pop("ROBOCACHE_TEST_SHARE", None)
    if share is not None:
        variables["ROBOCACHE_TEST_SHARE"] = share
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "--import-mode=importlib"]
    run = subprocess.run(
        [*command, "-p", "no:cacheprovider", "."],
        cwd=folder, env=variables, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    return [line.partition("::")[0] for line in run.stdout.splitlines() if "::" in line]


def test_every_file_is_in_one_share(tmp_path, monkeypatch):
    conftest = shutil.copy(CONFTEST, tmp_path)
    for file in FILES:
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text("def test_nothing():\n    pass\n")
    assert collected(tmp_path, None) == FILES
    is_ignored = runpy.run_path(conftest)["pytest_ignore_collect"]
    for number in range(3):
        monkeypatch.setenv("ROBOCACHE_TEST_SHARE", f"{number}/3")
        assert [file for file in FILES if not is_ignored(tmp_path / file)] == FILES[number::3]
    assert collected(tmp_path, "2/3") == FILES[2::3]
    for wrong in ("3/3", "0/0", "1/2x", "-1/2", "half", ""):
        monkeypatch.setenv("ROBOCACHE_TEST_SHARE", wrong)
        with pytest.raises(pytest.UsageError, match=f"TEST_SHARE: is '{wrong}', expected such as"):
            is_ignored(tmp_path / FILES[0])


@pytest.mark.parametrize("wrong", ["3/3", "0/0", "1/2x", "-1/2", "half", ""])
def test_random_shares_that_select_nothing(monkeypatch, wrong):
    monkeypatch.setenv("ROBOCACHE_RANDOM_SHARE", wrong)
    with pytest.raises(ValueError, match=f"RANDOM_SHARE: is '{wrong}', expected such as 1/4"):
        random_share.random_share(8)
