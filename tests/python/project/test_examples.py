"""The examples print what those in C and C++ do."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.mark.parametrize("name", ["resample", "fuse", "voxelize"])
def test_prints_what_is_expected(name):
    program = EXAMPLES / "python" / f"{name}.py"
    printed = subprocess.run(
        [sys.executable, program], check=True, capture_output=True, text=True
    ).stdout
    assert printed == (EXAMPLES / "expected" / f"{name}.txt").read_text()
