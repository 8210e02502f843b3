"""Damaged files of every format: bytes that flipped, ranges that are gone or repeated, cut ends.

    python fuzz_readers.py [--mutations N] [--seed S] [--format NAME] [--jobs J]
    python fuzz_readers.py --seconds-per-format S [--mutations-per-format N] [--jobs J]
    python fuzz_readers.py --every-byte [--format NAME]

A reader returns what it read, or raises FormatError with the file's name. It raises nothing else,
takes at most two gigabytes and --seconds, never ends the process, and changes no file of the source
or of the folder around it. Mutation i of seed S is mutation 0 of seed S + i. With
--every-byte, mutation i turns all bits of byte i of a format's files. With --seconds-per-format,
the formats come one after the other, each with all jobs, and each prints its line when it is done.
A format whose package is not installed is skipped.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import itertools
import mmap
import os
import resource
import selectors
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from fuzz_mutations import mutate
from fuzz_samples import FORMATS, PLAIN
from fuzz_speed import only_damaged, quicken
from robocache import data
from robocache._printable import printable

MEMORY = 2 << 30
SECONDS = 30
BLOCK = 1000  # mutations of one child
FAST = Path("/dev/shm")  # files in memory, where the system has it


def files_of(path: Path) -> list[Path]:
    return sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]


def size_of(path: Path) -> int:
    return sum(file.stat().st_size for file in files_of(path))


def turn(path: Path, at: int) -> Path:
    """All bits of one byte, counted through its files."""
    for file in files_of(path):
        content = bytearray(file.read_bytes())
        if at < len(content):
            content[at] ^= 0xFF
            file.write_bytes(content)
            return file
        at -= len(content)
    raise IndexError(at)


def damage(path: Path, rng: np.random.Generator) -> Path:
    """One of its files."""
    files = files_of(path)
    chosen = files[int(rng.integers(len(files)))]
    chosen.write_bytes(mutate(chosen.read_bytes(), rng))
    return chosen


def unit_of(sample: Path) -> str | None:
    """The unit of the times that a sample does not state."""
    return "s" if sample.name in PLAIN else None


def read(path: Path, damaged: str, unit: str | None) -> None:
    """Read everything in a source."""
    opened = data.open(path, damaged=damaged, unit=unit)
    if isinstance(opened, data.Recording):
        opened = opened.load()
        for stream in opened.streams.values():
            times = stream.times()
            if stream.values is not None and times is not None:
                assert len(stream.values) == len(times)
    elif isinstance(opened, data.Episodes):
        for track in opened.tracks.values():
            if track.values is not None:
                np.asarray(track.values)
        data.checks.check(opened)
    else:
        clouds = [opened] if isinstance(opened, data.PointCloud) else opened
        for cloud in clouds:
            if {*"xyz"} <= set(cloud.fields):
                assert len(cloud.points) == len(cloud)


def problem(path: Path, damaged: str, unit: str | None) -> tuple[str, bool]:
    """Return what is wrong with reading a damaged file, or "", and whether it was refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(path, damaged, unit)
    except data.FormatError as error:
        named = str(error).startswith(printable(error.path))
        return "" if named else f"no path in {error}", True
    except BaseException as error:  # a MemoryError too is a defect here
        place = error.__traceback__
        while place.tb_next is not None:
            place = place.tb_next
        where = f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}"
        return f"{type(error).__name__} at {where}: {str(error)[:150]}", True
    return "", False


# ---- a copy that is damaged and restored ----


def _entry(path: str) -> tuple[object, ...]:
    """The kind, inode, time and content of a file or a folder."""
    about = os.lstat(path)
    if os.path.isdir(path):
        content: object = sorted(os.listdir(path))
    elif os.path.isfile(path):
        content = Path(path).read_bytes()
    else:
        content = None
    return about.st_mode, about.st_ino, about.st_mtime_ns, content


def _state(folder: str, inner: str = "") -> dict[str, tuple[object, ...]]:
    """Every entry of a folder, by its path in it."""
    state = {inner: _entry(os.path.join(folder, inner))}
    with os.scandir(os.path.join(folder, inner)) as entries:
        for entry in entries:
            name = os.path.join(inner, entry.name)
            if entry.is_dir(follow_symlinks=False):
                state.update(_state(folder, name))
            else:
                state[name] = _entry(entry.path)
    return state


class Copy:
    """A copy of a sample. Each mutation writes one of its files, and restores it afterwards.

    Its folder has another name for each mutation, and its files have old times: a reader that
    writes one of them, or keeps facts of an earlier one by its path or its time, is noticed.
    """

    def __init__(self, sample: Path, folder: Path) -> None:
        self.sample, self.base = sample, folder
        self.folder: Path | None = None

    def play(self, name: str, seed: int, every_byte: bool) -> tuple[str, bool]:
        """One mutation: what is wrong with how it was read, and whether it was read."""
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        self._rename(f"{os.getpid()}-{seed}")
        path = self.folder / self.sample.name
        chosen = turn(path, seed) if every_byte else damage(path, rng)
        inner = str(chosen.relative_to(self.folder))
        os.utime(chosen, (1e9 + seed % 10**9, 1e9 + seed % 10**9))
        before = {**self.state, inner: _entry(str(chosen))}
        opened = chosen if only_damaged(name, seed) else path
        unit = unit_of(self.sample)
        found, refused = problem(opened, "keep" if rng.integers(2) else "refuse", unit)
        after = _state(str(self.folder))
        changed = [entry for entry in before | after if before.get(entry) != after.get(entry)]
        if changed:
            found = f"{found} changed: {', '.join(changed)}".strip()
            self.remove()
        else:
            self._restore(chosen, inner)
        return found and f"{name} seed {seed} ({inner}): {found}", not refused

    def remove(self) -> None:
        if self.folder is not None:
            shutil.rmtree(self.folder)
        self.folder = None

    def _rename(self, name: str) -> None:
        folder = self.base / name
        if self.folder is not None:
            self.folder.rename(folder)
            self.folder = folder
            return
        folder.mkdir()
        self.folder = folder
        copy = shutil.copytree if self.sample.is_dir() else shutil.copy
        copy(self.sample, folder / self.sample.name)
        for path in [folder, *folder.rglob("*")]:
            os.utime(path, (1e9, 1e9))
        self.state = _state(str(folder))

    def _restore(self, chosen: Path, inner: str) -> None:
        content = self.state[inner][-1]
        assert isinstance(content, bytes)
        chosen.write_bytes(content)
        os.utime(chosen, (1e9, 1e9))


# ---- processes ----


@dataclass
class Outcome:
    """Outcome of some mutations of one format."""

    name: str
    count: int = 0
    read: int = 0  # whole, or around the damage
    seconds: float = 0
    longest: float = 0
    cpu: float = 0  # seconds of the processor
    defects: list[str] = field(default_factory=list)

    def add(self, other: Outcome) -> None:
        self.count += other.count
        self.read += other.read
        self.seconds += other.seconds
        self.cpu += other.cpu
        self.longest = max(self.longest, other.longest)
        self.defects += other.defects


@dataclass(frozen=True)
class Block:
    """Some mutations of one format, for one child."""

    name: str
    sample: Path
    folder: Path
    seeds: range
    every_byte: bool = False
    seconds: float = SECONDS
    until: float = float("inf")  # monotonic time after which it ends


_FACTS = struct.Struct("<qqqdd?")  # last seed, count, read, seconds, longest, within a mutation


class Child:
    """A process that plays a block. Its crash is a finding and does not end this process."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.facts = mmap.mmap(-1, _FACTS.size)
        self.report, write_to = os.pipe()
        self.text = b""
        self.pid = os.fork()
        if self.pid == 0:
            code = 1
            with contextlib.suppress(BaseException):
                os.close(self.report)
                try:
                    _play(block, self.facts, write_to)
                    code = 0
                except BaseException:
                    text = f"{block.name}: the harness: {traceback.format_exc()}"
                    os.write(write_to, ascii(text).encode() + b"\n")
            os._exit(code)
        os.close(write_to)

    def ended(self) -> bool:
        """Read what it reports; whether it has ended."""
        told = os.read(self.report, 1 << 16)
        self.text += told
        return not told

    def finish(self) -> tuple[Outcome, range]:
        """Return the outcome, and the seeds that are left after a crash."""
        os.close(self.report)
        _, status, used = os.wait4(self.pid, 0)
        block = self.block
        last, *counts, within = _FACTS.unpack(self.facts[:])
        cpu = used.ru_utime + used.ru_stime
        outcome = Outcome(block.name, *counts, cpu, self.text.decode().splitlines())
        if status == 0 and not within:
            return outcome, range(0)
        if within:
            if status == signal.SIGALRM:
                kind = "took too long"
            elif os.WIFSIGNALED(status):
                kind = f"ended by signal {status & 127}"
            else:
                kind = f"ended with code {os.waitstatus_to_exitcode(status)}"
            outcome.defects.append(f"{block.name} seed {last}: {kind}")
        for left in block.folder.glob(f"{self.pid}-*"):
            shutil.rmtree(left)
        return outcome, range(last + 1, block.seeds[-1] + 1)


def _play(block: Block, facts: mmap.mmap, write_to: int) -> None:
    """Play a block in this process, the child."""
    quicken()
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY + _size(), MEMORY + _size()))
    unraised: list[str] = []  # errors that a library can only print
    sys.unraisablehook = lambda error: unraised.append(f"{error.exc_value!r} in {error.object!r}")
    copy = Copy(block.sample, block.folder)
    count = was_read = 0
    total = longest = 0.0
    for seed in block.seeds:
        begin = time.monotonic()
        if begin >= block.until:
            break
        facts[:] = _FACTS.pack(seed, count + 1, was_read, total, longest, True)
        signal.setitimer(signal.ITIMER_REAL, block.seconds)
        found, whole = copy.play(block.name, seed, block.every_byte)
        signal.setitimer(signal.ITIMER_REAL, 0)
        took = time.monotonic() - begin
        count, was_read = count + 1, was_read + whole
        total, longest = total + took, max(longest, took)
        facts[:] = _FACTS.pack(seed, count, was_read, total, longest, False)
        if unraised:
            found = f"{found or f'{block.name} seed {seed}'}: printed {unraised[0]}"
            unraised.clear()
        if found:
            os.write(write_to, ascii(found).encode() + b"\n")
    copy.remove()


def _size() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def play(blocks: Iterable[Block], jobs: int) -> Iterator[Outcome]:
    """Play blocks in children, as many at a time as there are jobs."""
    coming = iter(blocks)
    again: deque[Block] = deque()  # what comes after a crash
    with selectors.DefaultSelector() as running:
        while True:
            while len(running.get_map()) < jobs:
                block = again.popleft() if again else next(coming, None)
                if block is None:
                    break
                child = Child(block)
                running.register(child.report, selectors.EVENT_READ, child)
            if not running.get_map():
                return
            for key, _ in running.select():
                if key.data.ended():
                    running.unregister(key.fd)
                    outcome, left = key.data.finish()
                    if left:
                        again.append(_with(key.data.block, left))
                    yield outcome


def _with(block: Block, seeds: range) -> Block:
    return Block(
        block.name, block.sample, block.folder, seeds, block.every_byte, block.seconds, block.until
    )


def in_child(
    name: str,
    sample: Path,
    folder: Path,
    seeds: range,
    every_byte: bool = False,
    seconds: float = SECONDS,
) -> Outcome:
    """Some mutations, in a process whose crash is a finding and does not end this one."""
    total = Outcome(name)
    for outcome in play([Block(name, sample, folder, seeds, every_byte, seconds)], 1):
        total.add(outcome)
    return total


# ---- runs ----


def run(
    names: Iterable[str],
    mutations: int | None,
    seed: int,
    jobs: int = 1,
    seconds: float = SECONDS,
    seconds_per_format: float | None = None,
    each: int | None = None,
) -> list[Outcome]:
    """Run a number of mutations, divided among formats, or of every byte; return the outcomes.

    With ``seconds_per_format``, ``each`` is the most mutations of a format, and ``mutations`` is
    not used.
    """
    names = list(names)
    outcomes: list[Outcome] = []
    timed = seconds_per_format is not None
    if mutations is not None and each is None and not timed:
        each = -(-mutations // len(names))
    every_byte = mutations is None and each is None and not timed
    with _folder() as made:
        samples = {name: _sample(name, Path(made) / name) for name in names}
        found = {name: sample for name, sample in samples.items() if sample is not None}
        gc.collect()
        gc.freeze()  # the children share this memory: their collections do not copy it
        try:
            if timed:
                for name, sample in found.items():
                    until = time.monotonic() + seconds_per_format
                    blocks = _blocks(name, sample, seed, each, False, seconds, until)
                    outcomes.append(_summed([name], blocks, jobs)[0])
                    print(line_of(outcomes[-1]), flush=True)
                return outcomes
            parts = [
                _blocks(name, sample, seed, size_of(sample) if every_byte else each, every_byte,
                        seconds)
                for name, sample in found.items()
            ]  # fmt: skip
            # Formats take turns, so that a run that is cut short has some of each.
            turns = itertools.zip_longest(*parts)
            blocks = (block for turn in turns for block in turn if block is not None)
            return _summed(list(found), blocks, jobs)
        finally:
            gc.unfreeze()


def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(dir=FAST if os.access(FAST, os.W_OK) else None)


def _sample(name: str, folder: Path) -> Path | None:
    (folder / "sample").mkdir(parents=True)
    try:
        sample = FORMATS[name](folder / "sample")
    except ImportError as error:
        print(f"{name}: skipped: {error}", flush=True)
        return None
    found = problem(sample, "refuse", unit_of(sample))
    assert found == ("", False), f"{name}: {found}"
    return sample


def _blocks(
    name: str,
    sample: Path,
    seed: int,
    count: int | None,
    every_byte: bool,
    seconds: float,
    until: float = float("inf"),
) -> Iterator[Block]:
    """Blocks of a number of mutations; without a number, until the time is over."""
    folder = sample.parent.parent
    for at in itertools.count(seed, BLOCK):
        end = at + BLOCK if count is None else min(at + BLOCK, seed + count)
        if at >= end or time.monotonic() >= until:
            return
        yield Block(name, sample, folder, range(at, end), every_byte, seconds, until)


def _summed(names: list[str], blocks: Iterable[Block], jobs: int) -> list[Outcome]:
    outcomes = {name: Outcome(name) for name in names}
    for outcome in play(blocks, jobs):
        if outcome.defects:
            print(*outcome.defects, sep="\n", flush=True)
        outcomes[outcome.name].add(outcome)
    return list(outcomes.values())


HEADER = (
    f"{'format':24}{'mutations':>10}{'opened':>9}{'refused':>9}{'s':>8}{'cpu s':>8}"
    f"{'longest':>8}{'defects':>8}"
)


def line_of(of: Outcome) -> str:
    """The line of a format in the table; the seconds of all jobs add up."""
    refused = of.count - of.read
    numbers = f"{of.count:10}{of.read:9}{refused:9}{of.seconds:8.0f}{of.cpu:8.0f}"
    return f"{of.name:24}{numbers}{of.longest:8.2f}{len(of.defects):8}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutations", type=int, default=10000, help="of all formats together")
    parser.add_argument("--mutations-per-format", type=int, metavar="N")
    parser.add_argument(
        "--seconds-per-format", type=float, metavar="S", help="after which the next format comes"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", choices=FORMATS, action="append")
    parser.add_argument("--every-byte", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="that a file may take")
    given = parser.parse_args()
    names = given.format or list(FORMATS)
    mutations = None if given.every_byte else given.mutations
    begin = time.monotonic()
    outcomes = run(
        names,
        mutations,
        0 if given.every_byte else given.seed,
        given.jobs,
        given.seconds,
        given.seconds_per_format,
        given.mutations_per_format,
    )
    print("", HEADER, *map(line_of, outcomes), sep="\n")
    defects = sum(len(of.defects) for of in outcomes)
    print(
        f"{sum(of.count for of in outcomes)} files of {len(outcomes)} formats in "
        f"{time.monotonic() - begin:.0f} s, defects: {defects}"
    )
    return 1 if defects else 0


if __name__ == "__main__":
    sys.exit(main())
