"""Shortages of memory, threads, files and space: the error names them, and no data is lost.

    python tests/python/support/shortages.py [--format NAME] [--writer NAME] [--steps N] [--turns N]

Every source is read, and every kind of file is written, under limits from none to enough. Each
attempt gives all of the right result, or fails with MemoryError or an OSError that names what was
short and a file. It never calls a source damaged, never drops a part of one, and a writer that
fails leaves nothing behind.
"""

from __future__ import annotations

import argparse
import errno
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import data_sources
import forked
import robocache as rbc
from robocache import data

SHORT = {"ENOMEM", "EMFILE", "ENFILE", "EAGAIN", "ENOSPC", "EFBIG", "EDQUOT"}
SECONDS = 20.0


def attempts(steps: int, writes: bool, turn: int, turns: int) -> Iterator[tuple[str, int]]:
    """Kinds of limits, each with how much more of it a process may have: from none to enough.

    Each of several turns has a part of them.
    """

    def has_turn(number: int) -> bool:
        return (number + turn) % turns == 0

    for i in range(steps):
        if has_turn(i):
            yield "memory", int(2 ** (12 + 16 * i / steps)) - 4096  # 0 to 256 MiB
        if has_turn(i + 1):
            yield "files", i
        if writes and has_turn(i):
            yield "file size", int(2 ** (16 * i / steps)) - 1
    yield from (("threads", count) for i, count in enumerate((0, 1, 2, 4)) if has_turn(i))
    yield "file size", 0


def fault(reply: dict, good: list, path: Path, reads: bool = True) -> str:
    """Return what is wrong with an attempt, or "". A writer's memory is not a file's."""
    if "hung" in reply:
        return "hung"
    if "ended" in reply:
        return f"the process ended with {reply['ended']}"
    if "result" in reply:
        return "" if reply["result"] == good else f"another result: {str(reply['result'])[:200]}"
    names, text = reply["error"], reply["text"]
    is_named = path.name in reply["file"] or path.name in text
    if "MemoryError" in names:
        return "" if is_named or not reads else f"MemoryError without a file: {text[:160]}"
    if "OSError" in names and errno.errorcode.get(reply["number"]) in SHORT:
        return "" if is_named else f"OSError without a file: {text[:160]}"
    return f"{names[0]}: {text[:220]}"


# ---- what writes --------------------------------------------------------------------------------


def _recording() -> data.Recording:
    rng = np.random.default_rng(0)
    streams = [
        data.RecordedStream(
            name, "test", ("x", "y"), rng.normal(size=(4000, 2)), {"log": np.arange(4000) / 100}
        )
        for name in ("arm", "base")
    ]
    return data.Recording.from_streams(streams)


def _episodes() -> data.Episodes:
    tracks = {
        name: rbc.Track(
            np.random.default_rng(1).normal(size=(4000, 2)),
            [0, 1500, 4000],
            times=np.arange(4000.0),
        )
        for name in ("state", "action")
    }
    return data.Episodes(tracks)


def _saver(make, form):
    given = make()
    return lambda out: given.save(out, form)


def _cli(*arguments):
    """A command that reads a recording of ``_recording`` and writes to a place."""

    def write(out):
        source = out.parent.parent / "recording.npz"
        code, _, text = forked.command(
            arguments[0], source, *(str(out) if a is None else a for a in arguments[1:])
        )
        if code == 0:
            return
        for number in (*map(errno.__dict__.get, SHORT),):
            if os.strerror(number) in text:
                raise OSError(number, text, str(out))
        if "out of memory" in text:
            raise MemoryError(text)
        raise RuntimeError(text)

    return write


WRITERS = {
    "npz": _saver(_recording, "npz"),
    "npz of episodes": _saver(_episodes, "npz"),
    "zarr": _saver(_episodes, "zarr"),
    "zarr of a recording": _saver(_recording, "zarr"),
    "lerobot": _saver(_episodes, "lerobot"),
    "page": lambda out: data.report_html(_recording(), out) and None,
    "resample": _cli("resample", "--rate", "50", "-o", None),
    "report": _cli("report", "--html", None),
    "stats": _cli("stats", "--write", "gr00t", "-o", None),
}
ENDINGS = {"page": ".html", "report": ".html", "resample": ".npz", "stats": ".json"}


def written(write, folder: Path, name: str) -> list:
    """Return the files after a writer by name; for example only that a page exists."""
    out = folder / name
    write(out)
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return [[str(p.relative_to(folder)), hashlib.sha256(p.read_bytes()).hexdigest()] for p in files]


# ---- attempts -----------------------------------------------------------------------------------


MET: Counter[str] = Counter()  # how often each kind of limit made an attempt fail


def attempt(kind, amount, function, *arguments):
    user = forked.NOBODY if kind == "threads" else None
    limits = forked.limited(kind, amount)
    reply = forked.call(function, *arguments, seconds=SECONDS, limits=limits, user=user)
    MET[kind] += "result" not in reply
    return reply


def read_all(name: str, made: list | None, steps: int, turn: int, turns: int) -> list[str]:
    """Return the problems of reading a source, given what `data_sources.made_and_held` returned."""
    if made is None:
        print(f"{name}: skipped: no package can write it", file=sys.stderr)
        return []
    sample, good = Path(made[0]), made[1]
    found, before = [], data_sources.files_below(sample.parent)
    for kind, amount in attempts(steps, writes=False, turn=turn, turns=turns):
        reply = attempt(kind, amount, data_sources.held, sample, "keep")
        text = fault(reply, good, sample.parent)
        if text:
            found.append(f"{name}: {kind} {amount}: {text}")
    if data_sources.files_below(sample.parent) != before:
        found.append(f"{name}: the source was changed")
    return found


def out_of(name: str) -> str:
    return "out" + ENDINGS.get(name, "")


def write_all(name: str, folder: Path, good: list, steps: int, turn: int, turns: int) -> list[str]:
    """Return the problems of a writer, given what `written` returned."""
    found = []
    for kind, amount in attempts(steps, writes=True, turn=turn, turns=turns):
        place = folder / "tried"
        place.mkdir()
        place.chmod(0o777)
        reply = attempt(kind, amount, written, WRITERS[name], place, out_of(name))
        text = fault(reply, good, place / out_of(name), reads=False)
        left = sorted(str(p.relative_to(place)) for p in place.rglob("*"))
        if "result" not in reply and left:
            text = f"{text}; left behind: {left[:4]}"
        if text:
            found.append(f"{name}: {kind} {amount}: {text}")
        shutil.rmtree(place)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--format", choices=data_sources.SOURCES, action="append")
    parser.add_argument("--writer", choices=WRITERS, action="append")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument(
        "--turns", type=int, default=1, help="each of N formats has a part of the limits"
    )
    options = parser.parse_args()
    some = options.format or options.writer
    formats = (options.format or ()) if some else list(data_sources.SOURCES)
    writers = (options.writer or ()) if some else list(WRITERS)
    results = {}
    folder = Path(tempfile.mkdtemp())  # a TemporaryDirectory would end with the first child
    folder.chmod(0o755)
    forked.import_all(["robocache.cli._app"])
    try:
        calls = []
        for name in formats:
            (folder / name).mkdir(mode=0o755)
            calls.append((data_sources.made_and_held, name, folder / name / "sample"))
        for name in writers:
            place = folder / f"write {name}"
            (place / "good").mkdir(mode=0o755, parents=True)
            _recording().save(place / "recording.npz", "npz")
            calls.append((written, WRITERS[name], place / "good", out_of(name)))
        good = forked.good(calls)
        for i, (name, (made, modules)) in enumerate(zip(formats, good)):
            forked.import_all(modules)
            results[f"read {name}"] = read_all(name, made, options.steps, i, options.turns)
        for i, (name, (made, modules)) in enumerate(zip(writers, good[len(formats) :])):
            forked.import_all(modules)
            place = folder / f"write {name}"
            results[f"write {name}"] = write_all(name, place, made, options.steps, i, options.turns)
    finally:
        shutil.rmtree(folder)
    print(json.dumps({"found": results, "met": MET}, indent=1))
    return 1 if any(results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
