"""The tests named in bad_inputs.md exist."""

import re
from pathlib import Path

FOLDER = Path(__file__).parents[1]


def test_every_test_is_there():
    files = {path.name: path for path in FOLDER.rglob("test_*.py")}
    rows = [line for line in (FOLDER / "bad_inputs.md").read_text().splitlines() if "test_" in line]
    named = 0
    for row in rows[1:]:
        file = ""
        for own, name in re.findall(r"`(?:(test_\w+\.py)::)?(test_\w+)`", row):
            file = own or file
            assert f"\ndef {name}(" in files[file].read_text(), f"{file}::{name}"
            named += 1
    assert named > 30


def test_no_two_files_have_one_name():
    """The list names files without their folders."""
    names = [path.name for path in FOLDER.rglob("test_*.py")]
    assert len(names) == len(set(names))
