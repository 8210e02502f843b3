#!/usr/bin/env python3
"""Count the lines that ran, in the output of `llvm-cov export -format=text`.

A line was reached if any instance of its function ran it: an instance of a template, or for a SIMD
level. llvm-cov's own summary merges the instances into one function: if one always returns before a
line, it counts the line as missed although others reach it.
"""

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

CODE, EXPANSION, SKIPPED = range(3)
Place = tuple[int, int, int, int]  # from line and column, to line and column


class Lines:
    """The counts of lines: of the innermost region that each begins in, and of regions that begin
    in it.
    """

    def __init__(self) -> None:
        self.within: dict[int, int] = {}  # -1: no code
        self.begun: dict[int, int] = {}

    def begin(self, line: int, count: int) -> None:
        self.begun[line] = max(count, self.begun.get(line, -1))

    def add(self, regions: list[list[int]]) -> None:
        """Add the regions that one instance of a function has in one file."""
        within: dict[int, int] = {}
        for first, _, last, _, count, _, _, kind in sorted(regions, key=outer_first):
            skipped = kind == SKIPPED
            for line in range(first + (not skipped), last + 1):
                within[line] = -1 if skipped else count
            if kind in (CODE, EXPANSION):
                self.begin(first, count)
        for line, count in within.items():
            self.within[line] = max(count, self.within.get(line, -1))

    def enclose(self, inner: "Lines") -> None:
        """Exclude a function within this one, such as a lambda: its lines count separately."""
        self.within.update(inner.within)
        for line, count in inner.begun.items():
            self.begin(line, count)

    def reached(self) -> dict[int, bool]:
        counts = {
            line: max(self.within.get(line, -1), self.begun.get(line, -1))
            for line in self.within.keys() | self.begun.keys()
        }
        return {line: count > 0 for line, count in sorted(counts.items()) if count >= 0}


def outer_first(region: list[int] | Place) -> Place:
    return region[0], region[1], -region[2], -region[3]


def functions_of(export: Any, root: Path, folders: list[Path]) -> dict[Path, dict[Place, Lines]]:
    """Return the functions in files of the folders, by place: instances share one."""
    files: dict[Path, dict[Place, Lines]] = defaultdict(lambda: defaultdict(Lines))
    paths: dict[str, Path | None] = {}
    for function in export["data"][0]["functions"]:
        by_file = defaultdict(list)
        for region in function["regions"]:
            by_file[region[5]].append(region)
        for number, regions in by_file.items():
            name = function["filenames"][number]
            if name not in paths:
                path = Path(name).resolve()
                inside = any(path.is_relative_to(root / folder) for folder in folders)
                paths[name] = path.relative_to(root) if inside else None
            file = paths[name]
            if file is not None:
                first, column, last, end = min(regions, key=outer_first)[:4]
                files[file][first, column, last, end].add(regions)
    return files


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path, help="whose lines count")
    parser.add_argument("--missed", type=Path, help="file for the lines that were not reached")
    arguments = parser.parse_args()
    total = 0
    missed = []
    files = functions_of(json.load(sys.stdin), Path.cwd().resolve(), arguments.folders)
    for file, functions in sorted(files.items()):
        whole = Lines()
        for place in sorted(functions, key=outer_first):
            whole.enclose(functions[place])
        reached = whole.reached()
        total += len(reached)
        missed += [f"{file}:{line}" for line, ran in reached.items() if not ran]
    if arguments.missed:
        arguments.missed.write_text("".join(f"{line}\n" for line in missed))
    ran = total - len(missed)
    print(f"{ran} of {total} lines reached: {100 * ran / total:.2f} %")


if __name__ == "__main__":
    main()
