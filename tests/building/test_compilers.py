"""scripts/test_compilers.sh fails if a compiler fails, and its table has the failure."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CMAKE = os.environ.get("CMAKE") or shutil.which("cmake")
pytestmark = pytest.mark.skipif(
    not all((CMAKE, shutil.which("ninja"), shutil.which("gcc"), shutil.which("g++"))),
    reason="needs CMake, Ninja and GCC",
)
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(small LANGUAGES C CXX)
enable_testing()
add_subdirectory(tests)
"""
TESTS = """foreach(name robocache_tests robocache_abi_tests)
  add_executable(${name} ${name}.cpp)
endforeach()
add_test(NAME unload COMMAND robocache_tests --unload)
"""


@pytest.fixture
def project(tmp_path):
    """A small project with the script and two compilers: gcc-98 fails on one file."""
    for folder in ("scripts", "tests", "bin"):
        (tmp_path / folder).mkdir()
    shutil.copy(ROOT / "scripts" / "test_compilers.sh", tmp_path / "scripts")
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    (tmp_path / "tests" / "CMakeLists.txt").write_text(TESTS)
    for name in ("robocache_tests", "robocache_abi_tests"):
        (tmp_path / "tests" / f"{name}.cpp").write_text("int main() { return 0; }\n")
    fails = 'if [[ $* == *abi_tests.cpp* ]]; then echo "error: no"; exit 1; fi\n'
    for version, body in ((97, ""), (98, fails)):
        for name in ("gcc", "g++"):
            program = tmp_path / "bin" / f"{name}-{version}"
            program.write_text(f'#!/bin/bash\n{body}exec {shutil.which(name)} "$@"\n')
            program.chmod(0o755)
    return tmp_path


def run(project, *compilers):
    path = f"{project / 'bin'}:{Path(CMAKE).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["scripts/test_compilers.sh", *compilers],
        cwd=project,
        env={**os.environ, "PATH": path, "LIBRARIES": "libstdc++", "JOBS": "2"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    rows = re.findall(r"^(\S+) +libstdc\+\+ +(?:\d+|-)  (.*)$", done.stdout, re.MULTILINE)
    return done, dict(rows)


def test_a_compiler_that_fails_does_not_stop_the_others(project):
    done, rows = run(project, "gcc-98", "gcc-97")
    assert rows == {"gcc-98": "does not compile", "gcc-97": "passed"}, done.stdout
    assert done.returncode == 1
    assert "error: no" in done.stdout


def test_a_program_that_fails_is_reported(project):
    program = "int main(int argc, char**) { return argc - 1; }\n"
    (project / "tests" / "robocache_tests.cpp").write_text(program)
    done, rows = run(project, "gcc-97")
    assert rows == {"gcc-97": "tests fail"}, done.stdout
    assert done.returncode == 1 and "unload" in done.stdout


def test_a_compiler_that_is_missing_is_skipped(project):
    done, rows = run(project, "gcc-99", "gcc-97")
    assert rows["gcc-99"].startswith("skipped: ") and "g++-99" in rows["gcc-99"]
    assert rows["gcc-97"] == "passed"
    assert done.returncode == 0


def test_no_compiler_at_all_is_a_failure(project):
    done, _ = run(project, "gcc-99")
    assert done.returncode == 1
    assert "Nothing was tested" in done.stdout


def test_a_test_that_fails(project):
    (project / "tests" / "robocache_tests.cpp").write_text("int main() { return 3; }\n")
    done, rows = run(project, "gcc-97")
    assert rows == {"gcc-97": "tests fail"}
    assert done.returncode == 1


def test_a_name_that_is_no_compiler(project):
    done, _ = run(project, "icc-19")
    assert done.returncode == 2
    assert "expected gcc or clang" in done.stderr
