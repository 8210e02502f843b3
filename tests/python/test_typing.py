"""mypy --strict reads the package and a user's calls, which it must all understand or refuse."""

import pathlib
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).parent
ROOT = TESTS.parents[1]


def test_mypy(tmp_path):
    for name in ("mypy", "torch", "typing_extensions"):
        pytest.importorskip(name)
    package = ROOT / "bindings/python/robocache"
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", f"--config-file={ROOT / 'pyproject.toml'}",
         f"--cache-dir={tmp_path}", package, TESTS / "typed_usage.py"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_package_says_that_it_is_typed():
    import robocache

    assert (pathlib.Path(robocache.__file__).parent / "py.typed").is_file()
