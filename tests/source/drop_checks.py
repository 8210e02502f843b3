#!/usr/bin/env python3
"""Drop each check of an operation's arguments in turn: a test must fail every time.

    drop_checks.py BUILD SOURCE... [--tests FILTER]

A check is a statement that calls fail() or a function whose name begins with require. So is
operands.out(), which becomes operands.in(). For each check the script removes it from its SOURCE,
builds the library in BUILD, and runs the tests of robocache_abi_tests that match FILTER. Configure
BUILD with ROBOCACHE_WERROR=OFF, because a mutant may have unused variables. Exits with 1 if the
tests pass without one of the checks.

It compiles a file for each check, so the default tests do not run it.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

_CHECK = re.compile(r"^(?P<indent> +)(?:if \(.*\) )?(?:fail|require\w*)\(", re.MULTILINE)
_OUTPUT = re.compile(r"\boperands\.out\(")


def statements(text):
    """Return (line, dropped statement, text without it) for each check."""
    for match in _CHECK.finditer(text):
        start = match.end("indent")
        end = text.index(";\n", start) + 1
        dropped = " ".join(text[start:end].split())
        yield text.count("\n", 0, start) + 1, dropped, f"{text[:start]};{text[end:]}"
    for match in _OUTPUT.finditer(text):
        start, end = match.span()
        dropped = text[start : text.index("\n", start)]
        yield text.count("\n", 0, start) + 1, dropped, f"{text[:start]}operands.in({text[end:]}"


def passes(build, tests):
    """Return whether the library builds and the tests pass; a crash or an endless test is a
    failure.
    """
    subprocess.run(
        ["cmake", "--build", build, "--target", "robocache"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    program = [build / "tests" / "robocache_abi_tests", f"--test-case={tests}", "--no-skip"]
    try:
        return subprocess.run(program, capture_output=True, timeout=120).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=Path)
    parser.add_argument("sources", type=Path, nargs="+")
    parser.add_argument("--tests", default="* errors: *", help="doctest's --test-case")
    options = parser.parse_args()
    if not passes(options.build, options.tests):
        sys.exit("The tests fail with all checks in place.")
    checks = missed = 0
    for source in options.sources:
        text = source.read_text()
        try:
            for line, dropped, mutant in statements(text):
                source.write_text(mutant)
                found = not passes(options.build, options.tests)
                checks, missed = checks + 1, missed + (not found)
                print(f"{'found' if found else 'MISSED'}  {source}:{line}  {dropped}", flush=True)
        finally:
            source.write_text(text)
    passes(options.build, options.tests)
    print(f"{checks} checks dropped, {missed} of them without a failing test")
    sys.exit(1 if missed or not checks else 0)


if __name__ == "__main__":
    main()
