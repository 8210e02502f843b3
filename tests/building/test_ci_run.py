"""`.ci/run` runs its jobs and prints a table of their steps; here, make only records its call."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from step_tables import table_of

ROOT = Path(__file__).resolve().parents[2]

NOTE = """#!/bin/bash
printf '%s share=%s random=%s cuda=%s strict=%s\\n' "$(basename "$0") $*" \\
  "${ROBOCACHE_TEST_SHARE:-}" "${ROBOCACHE_RANDOM_SHARE:-}" "${CUDA_ARCH:-}" "${STRICT:-}" \\
  >>"$NOTES"
sleep 0.1
[[ "$(basename "$0") $*" != "${FAILS:-}" ]]
"""


@pytest.fixture
def run(tmp_path):
    """Run `.ci/run` in a separate tree: (exit status, output, what was called)."""
    shutil.copytree(ROOT / ".ci", tmp_path / "tree" / ".ci")
    (tmp_path / "tree" / "scripts").mkdir()
    (tmp_path / "bin").mkdir()
    for program in (
        tmp_path / "bin" / "make",
        tmp_path / "bin" / "nvcc",
        tmp_path / "tree" / "scripts" / "install_deps.sh",
    ):
        program.write_text(NOTE)
        program.chmod(0o755)

    def run(*jobs, fails=""):
        notes = tmp_path / "notes"
        notes.write_text("")
        done = subprocess.run(
            [tmp_path / "tree" / ".ci" / "run", *jobs],
            env={
                **os.environ,
                "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
                "NOTES": str(notes),
                "FAILS": fails,
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        calls = [line for line in notes.read_text().splitlines() if not line.startswith("nvcc")]
        return done.returncode, done.stdout, calls

    return run


def test_all_jobs(run):
    status, output, calls = run("arm", "packages", "sanitizers", "tests")
    assert status == 0, output
    table = table_of(output)
    assert list(table) == [
        *("debian", "library", "requirements", "build-sanitizers", "package", "packages", "lint"),
        *("test", "arm", "asan", "tsan", "all"),
    ]
    assert all(remark is None and float(seconds) >= 0.1 for seconds, remark in table.values())
    assert any(call.startswith("make test share= random=1/4 cuda=90") for call in calls)
    assert "make lint LINT=quick share= random=1/4 cuda=90 strict=yes" in calls
    assert "make packages share= random=1/4 cuda=90 strict=" in calls
    assert "make build-asan build-tsan share= random=1/4 cuda=90 strict=" in calls
    for preset in ("asan", "tsan"):
        assert f"make {preset} share=1/8 random=1/4 cuda=90 strict=" in calls
    assert any(call.startswith("make bits-aarch64") for call in calls)


@pytest.mark.parametrize(
    "job, steps",
    [
        (
            None,
            [
                *("debian", "library", "requirements", "build-sanitizers", "package", "lint"),
                *("test", "asan", "tsan"),
            ],
        ),
        ("tests", ["debian", "library", "requirements", "package", "lint", "test"]),
        ("sanitizers", ["debian", "requirements", "build-sanitizers", "asan", "tsan"]),
        ("packages", ["debian", "requirements", "packages"]),
        ("arm", ["debian", "arm"]),
    ],
)
def test_one_job(run, job, steps):
    status, output, _ = run(*filter(None, [job]))
    assert status == 0, output
    assert list(table_of(output)) == [*steps, "all"]


def test_a_job_that_does_not_exist(run):
    status, output, calls = run("tests", "docs")
    assert status == 2 and calls == []
    assert '"docs": no such job, expected one of: tests sanitizers packages arm' in output


def test_a_step_that_fails(run):
    status, output, calls = run(fails="make test")
    assert status == 1
    table = table_of(output)
    assert table["test"][1] == "failed (1)"
    assert "asan" not in table and not any(call.startswith("make asan") for call in calls)
    status, output, _ = run("packages", fails="make packages")
    assert status == 1 and table_of(output)["packages"][1] == "failed (1)"
