"""Damaged files of every format: bytes that flipped, ranges that are gone or repeated, cut ends.

    python tests/python/fuzz_readers.py [--mutations N] [--seed S] [--format NAME]
    python tests/python/fuzz_readers.py --every-byte [--format NAME]

A reader gives what it read, or raises FormatError with the file's name; it never raises anything
else, takes more than two gigabytes or half a minute, or ends the process. Mutation i of seed S is
that of seed S + i. With --every-byte, mutation i turns all bits of byte i of a format's files.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import shutil
import signal
import sys
import tempfile
import warnings
import zlib
from pathlib import Path

import numpy as np

import data_files
from robocache import data

MEMORY = 2 << 30
SECONDS = 30


# ---- what is damaged ----


def _bag(folder, ros1, storage="mcap", compressed=False):
    store = data_files.typestore(ros1)
    told = data_files.messages(store, 12)
    if ros1:
        return data_files.write_ros1(folder / "x.bag", told, store)
    return data_files.write_ros2(folder / "x", told, store, storage, compressed)


def _npz(folder):
    import recordings_with_faults as recordings

    return recordings.save(folder / "x.npz", recordings.stream(samples=20))


def _csv(folder):
    rows = "\n".join(f"{0.1 * i:.3f},{i},{i * i / 7}" for i in range(30))
    (folder / "x.csv").write_text("time [s],a,b\n" + rows + "\n")
    return folder / "x.csv"


def _parquet(folder):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"timestamp": np.arange(40) / 10, "x": np.arange(40.0), "n": np.arange(40)})
    pq.write_table(table, folder / "x.parquet")
    return folder / "x.parquet"


def _npy(folder):
    (folder / "arrays").mkdir()
    np.save(folder / "arrays/action.npy", np.arange(60.0).reshape(20, 3))
    np.save(folder / "arrays/times.npy", np.arange(20) / 10)
    return folder / "arrays"


def _pcd(folder):
    points = "\n".join(f"{i} {i / 2} {-i}" for i in range(20))
    (folder / "x.pcd").write_text(
        "# .PCD v0.7\nVERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 20\n"
        f"HEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS 20\nDATA ascii\n{points}\n"
    )
    return folder / "x.pcd"


def _in_folder(write, name, *arguments):
    def make(folder):
        write(folder / name, *arguments)
        return folder / name

    return make


FORMATS = {
    "ros1": lambda folder: _bag(folder, True),
    "mcap": lambda folder: _bag(folder, False),
    "sqlite3": lambda folder: _bag(folder, False, "sqlite3"),
    "lerobot-2.1": _in_folder(lambda path: data_files.write_lerobot(path), "x"),
    "lerobot-3.0": _in_folder(lambda path: data_files.write_lerobot(path, version="v3.0"), "x"),
    "robomimic": _in_folder(data_files.write_robomimic, "x.hdf5"),
    "aloha": _in_folder(data_files.write_aloha, "x.hdf5"),
    "zarr": _in_folder(data_files.write_replay_buffer, "x.zarr"),
    "csv": _csv,
    "parquet": _parquet,
    "npy": _npy,
    "npz": _npz,
    "pcd": _pcd,
}


# Their times do not tell a unit.
PLAIN = ("x.csv", "x.parquet", "arrays")


# ---- how ----


def mutate(content: bytes, rng: np.random.Generator) -> bytes:
    """The same bytes, but for some."""
    made = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        if not made:
            break
        at = int(rng.integers(len(made)))
        many = int(rng.integers(1, 33))
        kind = int(rng.integers(8))
        if kind <= 2:
            made[at] ^= 1 << int(rng.integers(8))
        elif kind == 3:
            made[at] = int(rng.integers(256))
        elif kind == 4:
            del made[at:]
        elif kind == 5:
            del made[at : at + many]
        elif kind == 6:
            filler = (0, 255, 127, 128)[int(rng.integers(4))]
            made[at : at + many] = bytes([filler]) * len(made[at : at + many])
        else:
            made[at:at] = made[at : at + many]
    return bytes(made)


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


def read(path: Path, damaged: str) -> None:
    """Whatever it holds, whole."""
    opened = data.open(path, damaged=damaged, unit="s" if path.name in PLAIN else None)
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
    else:
        clouds = [opened] if isinstance(opened, data.PointCloud) else opened
        for cloud in clouds:
            if {*"xyz"} <= set(cloud.fields):
                assert len(cloud.points) == len(cloud)


def problem(path: Path, damaged: str) -> str:
    """What is wrong with how a damaged file was read; "" if nothing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read(path, damaged)
    except data.FormatError as error:
        return "" if str(error).startswith(error.path) else f"no path in {error}"
    except BaseException as error:  # also a MemoryError is what is looked for
        place = error.__traceback__
        while place.tb_next is not None:
            place = place.tb_next
        where = f"{Path(place.tb_frame.f_code.co_filename).name}:{place.tb_lineno}"
        return f"{type(error).__name__} at {where}: {str(error)[:150]}"
    return ""


def play(name: str, sample: Path, folder: Path, seed: int, every_byte: bool) -> str:
    """One mutation."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    copy = folder / f"{os.getpid()}-{seed}" / sample.name
    copy.parent.mkdir()
    try:
        if sample.is_dir():
            shutil.copytree(sample, copy)
        else:
            shutil.copy(sample, copy)
        chosen = turn(copy, seed) if every_byte else damage(copy, rng)
        found = problem(copy, "keep" if rng.integers(2) else "refuse")
        return found and f"{name} seed {seed} ({chosen.relative_to(copy.parent)}): {found}"
    finally:
        shutil.rmtree(copy.parent)


def in_child(
    name: str, sample: Path, folder: Path, seeds: range, every_byte: bool = False
) -> list[str]:
    """Some mutations, where a crash is one of them and not of this process."""
    report, write_to = os.pipe()
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            os.close(report)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY + _size(), MEMORY + _size()))
            for seed in seeds:
                os.write(write_to, f"#{seed}\n".encode())
                signal.alarm(SECONDS)
                found = play(name, sample, folder, seed, every_byte)
                signal.alarm(0)
                if found:
                    os.write(write_to, (found.replace("\n", " ") + "\n").encode())
        os._exit(0)
    os.close(write_to)
    with os.fdopen(report) as lines:
        told = lines.read().splitlines()
    _, status = os.waitpid(child, 0)
    found = [line for line in told if not line.startswith("#")]
    last = int([line for line in told if line.startswith("#")][-1][1:])
    if status != 0:
        kind = "took too long" if status == signal.SIGALRM else f"ended by signal {status & 127}"
        found.append(f"{name} seed {last}: {kind}")
    if last != seeds[-1]:  # what comes after a crash
        found += in_child(name, sample, folder, range(last + 1, seeds[-1] + 1), every_byte)
    return found


def _size() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def run(names: list[str], mutations: int | None, seed: int) -> list[str]:
    """So many mutations, shared out among formats, or of every byte: what was found."""
    found = []
    each = -(-mutations // len(names)) if mutations is not None else 0
    with tempfile.TemporaryDirectory() as made:
        for name in names:
            folder = Path(made) / name
            (folder / "sample").mkdir(parents=True)
            try:
                sample = FORMATS[name](folder / "sample")
            except ImportError as error:
                print(f"{name}: left out: {error}")
                continue
            assert problem(sample, "refuse") == "", f"{name}: the sample itself"
            end = seed + each if mutations is not None else size_of(sample)
            if mutations is None:
                print(f"{name}: {end} bytes", flush=True)
            for first in range(seed, end, 200):
                seeds = range(first, min(first + 200, end))
                new = in_child(name, sample, folder, seeds, mutations is None)
                print(*new, sep="\n", end="\n" if new else "", flush=True)
                found += new
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mutations", type=int, default=10000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--format", choices=FORMATS, action="append")
    parser.add_argument("--every-byte", action="store_true")
    told = parser.parse_args()
    names = told.format or list(FORMATS)
    if told.every_byte:
        found, mutations = run(names, None, 0), "all bytes"
    else:
        found, mutations = run(names, told.mutations, told.seed), f"{told.mutations} mutations"
    print(f"{mutations} of {len(names)} formats, defects: {len(found)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
