"""scripts/coverage_lines.py: which lines count as reached, by the regions that Clang tells."""

import json
import pathlib
import subprocess
import sys

SCRIPT = pathlib.Path(__file__).parents[3] / "scripts/coverage_lines.py"
CODE, EXPANSION, SKIPPED, GAP = range(4)


def region(first, column, last, end, count, kind=CODE, file=0):
    return [first, column, last, end, count, file, 0, kind]


def told(tmp_path, *functions, folders=("src",)):
    """The script's line and the lines that it has missed, of functions as lists of regions."""
    export = {
        "data": [{"functions": [{"filenames": files, "regions": r} for files, r in functions]}]
    }
    missed = tmp_path / "missed.txt"
    run = subprocess.run(
        [sys.executable, SCRIPT, *folders, "--missed", missed],
        input=json.dumps(export),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.strip(), missed.read_text().split()


def test_instances(tmp_path):
    file = [str(tmp_path / "build/../src/a.h")]
    # `if constexpr (A) return;` in one instance, and what comes after it in the other.
    returns = [region(1, 10, 5, 2, 7), region(2, 27, 3, 3, 0, GAP), region(3, 3, 5, 2, 0)]
    goes_on = [region(1, 10, 5, 2, 4)]
    assert told(tmp_path, (file, returns)) == (
        "2 of 5 lines reached: 40.00 %",
        ["src/a.h:3", "src/a.h:4", "src/a.h:5"],
    )
    assert told(tmp_path, (file, returns), (file, goes_on)) == (
        "5 of 5 lines reached: 100.00 %",
        [],
    )


def test_functions_within(tmp_path):
    file = [str(tmp_path / "src/a.cpp")]
    outer = [region(1, 10, 6, 2, 9)]
    unused = [region(2, 16, 5, 4, 0)]  # a lambda: the outer function's count is not its own
    missed = [f"src/a.cpp:{line}" for line in (3, 4, 5)]
    for functions in ((outer, unused), (unused, outer)):
        told_of = told(tmp_path, *((file, regions) for regions in functions))
        assert told_of == ("3 of 6 lines reached: 50.00 %", missed)


def test_comments_and_other_folders(tmp_path):
    inside = [str(tmp_path / "src/a.cpp"), "/usr/include/hwy/highway.h"]
    regions = [
        region(1, 10, 4, 2, 1),
        region(2, 1, 3, 1, 0, SKIPPED),
        region(1, 12, 1, 20, 1, EXPANSION),
        region(8, 1, 9, 2, 0, CODE, file=1),
    ]
    assert told(tmp_path, (inside, regions)) == ("2 of 2 lines reached: 100.00 %", [])
