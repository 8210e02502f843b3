"""Every file of every source in turn as a pipe, a socket or a device: an error that says so.

    python tests/python/support/special_sources.py [--format NAME] [--fewer]

A separate process opens and inspects them, and has five seconds for each. It may end with an error
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
from collections.abc import Iterator
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


def fault(reply: dict, kind: str, good: list) -> str:
    """Return what is wrong with the reading, or ""."""
    if "hung" in reply:
        ended = "ended it" if reply["ended by SIGTERM"] else "did not end it"
        return f"hung, and SIGTERM {ended}"
    if "ended" in reply:
        return f"the process ended with {reply['ended']}"
    if "error" in reply:
        named = WORDS[kind] in reply["text"] or "link out of" in reply["text"]
        if reply["error"][0] == "FormatError" and named:
            return ""
        return f"{reply['error'][0]}: {reply['text']}"
    result = reply["result"]
    names_kind = any(WORDS[kind] in text or "link out of" in text for text in map(str, result))
    return "" if result == good or names_kind else f"read as {result}, and not as {good}"


def commanded(path: Path) -> list:
    """The command line, which has a handler for SIGTERM."""
    unit = ["--unit", "s"] if path.name in data_sources.PLAIN else []
    return forked.command("inspect", path, *unit)


def cases(i: int, files: int, fewer: bool) -> Iterator[tuple[int, str, tuple[str, ...], bool]]:
    """Yield a file's number, its kind, the ways to read it, and whether to inspect it, of format i.

    The first file is each kind, and the others are pipes. With ``fewer``, the first file is read in
    one of the two ways, and inspected as one kind, in turn.
    """
    for number in range(files):
        for k, kind in enumerate(WORDS if number == 0 else ("pipe",)):
            ways = ("refuse", "keep")
            if fewer or number > 0:
                ways = (ways[(number + k + i * fewer) % 2],)
            yield number, kind, ways, number == 0 and (not fewer or i % len(WORDS) == k)


def run(names: list[str], folder: Path, fewer: bool) -> dict[str, list[str]]:
    """Return the problems of each format."""
    found: dict[str, list[str]] = {name: [] for name in names}
    samples = forked.good(
        [(data_sources.made_and_held, name, folder / name / "sample") for name in names]
    )
    for _, modules in samples:
        forked.import_all(modules)
    reads, commands, calls = [], [], []
    for i, (name, (made, _)) in enumerate(zip(names, samples)):
        if made is None:
            print(f"{name}: skipped: no package can write it", file=sys.stderr)
            continue
        sample, good = Path(made[0]), made[1]
        files = fuzz_readers.files_of(sample)
        for number, kind, ways, is_inspected in cases(i, len(files), fewer):
            copy = folder / name / f"copy-{number}-{WORDS[kind]}".replace(" ", "-") / sample.name
            copy.parent.mkdir()
            (shutil.copytree if sample.is_dir() else shutil.copy)(sample, copy)
            file = files[number]
            put(copy / file.relative_to(sample) if sample.is_dir() else copy, kind)
            said = f"{file.name} is {WORDS[kind]}"
            for damaged in ways:
                reads.append((name, kind, good, f"{said} ({damaged})"))
                calls.append((data_sources.held, copy, damaged))
            if is_inspected:
                commands.append((name, f"inspect: {said}", copy))
    for (name, kind, good, said), reply in zip(reads, forked.calls(calls, SECONDS)):
        text = fault(reply, kind, good)
        if text:
            found[name].append(f"{name}: {said}: {text}")
    inspected = forked.calls([(commanded, copy) for _, _, copy in commands], SECONDS)
    for (name, said, _), reply in zip(commands, inspected):
        if "result" not in reply:
            found[name].append(f"{name}: {said}: {reply}")
        elif reply["result"][0] not in (0, 1) or "Traceback" in reply["result"][2]:
            found[name].append(f"{name}: {said}: {reply['result']}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--format", choices=data_sources.SOURCES, action="append")
    parser.add_argument("--fewer", action="store_true", help="a part of the calls, in turn")
    options = parser.parse_args()
    forked.import_commands()
    folder = Path(tempfile.mkdtemp())  # a TemporaryDirectory would end with the first child
    try:
        found = run(options.format or list(data_sources.SOURCES), folder, options.fewer)
    finally:
        shutil.rmtree(folder)
    print(json.dumps(found, indent=1))
    return 1 if any(found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
