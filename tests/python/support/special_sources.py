"""Every file of every source in turn as a pipe, a socket or a device: an error that says so.

    python tests/python/support/special_sources.py [--format NAME] [--fewer]

Each is opened and inspected in a separate process, which has five seconds. It may end with an error
that names the file, or with all data of the source if the file is not needed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import socket
import sys
import tempfile
from pathlib import Path

import data_sources
import forked
import fuzz_readers

SECONDS = 5.0
WORDS = {"pipe": "a pipe", "socket": "a socket", "link to a device": "a device"}


def put(path: Path, kind: str) -> None:
    """Replace a file by something else."""
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "link to a device":
        path.symlink_to("/dev/zero")
    else:
        here = os.open(".", os.O_RDONLY)
        os.chdir(path.parent)  # a socket's path has at most 107 bytes
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
        os.fchdir(here)
        os.close(here)


def fault(told: dict, kind: str, good: list) -> str:
    """Return what is wrong with the reading, or ""."""
    if "hung" in told:
        ended = "ended it" if told["ended by SIGTERM"] else "did not end it"
        return f"hung, and SIGTERM {ended}"
    if "ended" in told:
        return f"the process ended with {told['ended']}"
    if "error" in told:
        named = WORDS[kind] in told["text"] or "link out of" in told["text"]
        if told["error"][0] == "FormatError" and named:
            return ""
        return f"{told['error'][0]}: {told['text']}"
    result = told["result"]
    told_of = any(WORDS[kind] in text or "link out of" in text for text in map(str, result))
    return "" if result == good or told_of else f"read as {result}, and not as {good}"


def commanded(path: Path) -> list:
    """The command line, which has a handler for SIGTERM."""
    unit = ["--unit", "s"] if path.name in data_sources.PLAIN else []
    return forked.command("inspect", path, *unit)


def run(name: str, folder: Path, turn: int | None) -> list[str]:
    """Return the problems of a format.

    With a turn, which counts the formats, the first file is each kind for one of the two ways to
    read it, and one kind for the command, in turn.
    """
    made = forked.call(lambda: str(data_sources.make(name, folder / "sample")), seconds=60)
    if made.get("result") == "None":
        print(f"{name}: skipped: no package can write it", file=sys.stderr)
        return []
    sample = Path(made["result"])
    good, modules = forked.good(data_sources.held, sample)
    forked.import_all(modules)
    found = []
    for i, file in enumerate(fuzz_readers.files_of(sample)):
        for k, kind in enumerate(WORDS if i == 0 else ("pipe",)):
            copy = folder / "copy" / sample.name
            copy.parent.mkdir()
            (shutil.copytree if sample.is_dir() else shutil.copy)(sample, copy)
            place = copy / file.relative_to(sample) if sample.is_dir() else copy
            put(place, kind)
            ways = ("refuse", "keep")
            both = i == 0 and turn is None
            for damaged in ways if both else (ways[(i + k + (turn or 0)) % 2],):
                told = forked.call(data_sources.held, copy, damaged, seconds=SECONDS)
                text = fault(told, kind, good)
                if text:
                    found.append(f"{name}: {file.name} is {WORDS[kind]} ({damaged}): {text}")
            commands = i == 0 and (turn is None or turn % len(WORDS) == k)
            told = (
                forked.call(commanded, copy, seconds=SECONDS)
                if commands
                else {"result": [1, "", ""]}
            )
            if "result" not in told:
                found.append(f"{name}: inspect: {file.name} is {WORDS[kind]}: {told}")
            elif told["result"][0] not in (0, 1) or "Traceback" in told["result"][2]:
                found.append(f"{name}: inspect: {file.name} is {WORDS[kind]}: {told['result']}")
            shutil.rmtree(copy.parent)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--format", choices=data_sources.SOURCES, action="append")
    parser.add_argument("--fewer", action="store_true", help="a part of the calls, in turn")
    told = parser.parse_args()
    names = told.format or list(data_sources.SOURCES)
    results = {}
    forked.import_commands()
    folder = Path(tempfile.mkdtemp())  # a TemporaryDirectory would end with the first child
    try:
        for i, name in enumerate(names):
            results[name] = run(name, folder / name, i if told.fewer else None)
    finally:
        shutil.rmtree(folder)
    print(json.dumps(results, indent=1))
    return 1 if any(results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
