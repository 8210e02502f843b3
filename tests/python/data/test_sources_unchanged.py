"""Reading good or damaged data changes no file and creates none, in the source or next to it."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest

import data_sources
import fuzz_readers
import robocache as rbc
from child_processes import environment
from forked import NOBODY, command
from random_share import random_share
from robocache.data import checks
from robocache.data._report import overview

data = rbc.data
DAMAGES = int(os.environ.get("ROBOCACHE_DAMAGES", random_share(2)))  # of each source
STATES = ["good", "read-only", "with others", "cut", *(f"damaged {i}" for i in range(DAMAGES))]
OTHERS = ("notes.txt", ".hidden", "x.db3-journal", "a.part", "x.csv.part.old", "b.lock", "c.tmp")


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    return {name: data_sources.make(name, folder / name) for name in data_sources.SOURCES}


def in_state(sample, folder, state, seed):
    """A copy of a source in a folder with nothing else, or with other files."""
    folder.mkdir()
    copy = folder / sample.name
    (shutil.copytree if sample.is_dir() else shutil.copy)(sample, copy)
    files = fuzz_readers.files_of(copy)
    if state == "with others":
        for name in OTHERS:
            (folder / name).write_bytes(b"other")
            if copy.is_dir():
                (copy / name).write_bytes(b"other")
    elif state == "cut":
        largest = max(files, key=lambda file: file.stat().st_size)
        os.truncate(largest, largest.stat().st_size * 2 // 3)
    elif state.startswith("damaged"):
        rng = np.random.default_rng([seed, *state.encode()])
        fuzz_readers.damage(copy, rng)
    elif state == "read-only":
        for path in [*folder.rglob("*"), folder]:
            path.chmod(0o555 if path.is_dir() else 0o444)
    return copy


def read_all(path, outside, number, is_damaged):
    """Read a source as far as possible, with one of two commands by number.

    A damaged one is read with both values of ``damaged``, which are one and the same for others.
    """
    ways = ("refuse", "keep")
    with warnings.catch_warnings(), contextlib.suppress(ValueError, OSError):
        warnings.simplefilter("ignore")
        for damaged in ways if is_damaged else (ways[number % 2],):
            with contextlib.suppress(data.FormatError):
                given = data_sources.opened(path, damaged)
                if isinstance(given, (data.Recording, data.Episodes)):
                    overview.overview(given, checks.survey(given, unit="s"), "s")
                    given.load()
                    if isinstance(given, data.Recording):
                        given.align(10.0)
                    else:
                        given.statistics()
                else:
                    data_sources.held(path, damaged)
    unit = ["--unit", "s"] if path.name in data_sources.PLAIN else []
    page = ["--html", outside / "x.html", "--overwrite"]
    command(*(["report", path, *page] if number % 2 else ["inspect", path]), *unit)


@pytest.mark.parametrize("name", list(data_sources.SOURCES))
def test_no_reader_changes_its_source(tmp_path, samples, name):
    if samples[name] is None:
        pytest.skip(f"no package writes {name}")
    (tmp_path / "outside").mkdir()
    changed = []
    first = list(samples).index(name)  # each command meets each state, of half of the sources
    for i, state in enumerate(STATES):
        path = in_state(samples[name], tmp_path / str(i), state, i)
        before = data_sources.files_below(path.parent)
        is_damaged = state.startswith(("cut", "damaged"))
        read_all(path, tmp_path / "outside", first + i, is_damaged)
        after = data_sources.files_below(path.parent)
        for file in sorted({*before, *after}):
            if before.get(file) != after.get(file):
                how = (
                    "made" if file not in before else "deleted" if file not in after else "changed"
                )
                changed.append(f"{state}: {file} was {how}")
        if state == "read-only":
            for each in [path.parent, *path.parent.rglob("*")]:
                each.chmod(0o755)
    assert changed == []
    assert {p.name for p in (tmp_path / "outside").iterdir()} <= {"x.html"}


READ_AS_ANOTHER = """
import json, sys
from pathlib import Path
import data_sources, forked
codes = {}
for name, place in json.loads(sys.argv[1]).items():
    path = Path(place)
    unit = ["--unit", "s"] if path.name in data_sources.PLAIN else []
    page = ["report", path, "--html", Path(sys.argv[2], "x.html"), "--overwrite", *unit]
    codes[name] = [forked.command("inspect", path, *unit), forked.command(*page)]
print(json.dumps(codes))
"""


def test_folders_that_cannot_be_written(samples):
    """Root ignores permissions, so another user reads the folders."""
    top = Path(tempfile.mkdtemp())
    try:
        places, outside = {}, top / "outside"
        for name, sample in samples.items():
            if sample is not None:
                (top / name).mkdir()
                places[name] = str(top / name / sample.name)
                (shutil.copytree if sample.is_dir() else shutil.copy)(sample, places[name])
        for path in [*top.rglob("*"), top]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        before = {name: data_sources.files_below(top / name) for name in places}
        top.chmod(0o755)
        outside.mkdir()
        outside.chmod(0o777)
        run = subprocess.run(
            [sys.executable, "-c", READ_AS_ANOTHER, json.dumps(places), str(outside)],
            capture_output=True, encoding="utf-8", env=environment(HOME=str(top)), cwd=top,
            timeout=120, check=False, user=NOBODY if os.geteuid() == 0 else None,
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
        for name, (inspected, reported) in json.loads(run.stdout).items():
            assert inspected[0] == 0, (name, inspected)
            is_cloud = "a point cloud has no timeline" in reported[2]
            assert reported[0] == 0 or is_cloud, (name, reported)
        assert before == {name: data_sources.files_below(top / name) for name in places}
    finally:
        for path in [top, *top.rglob("*")]:
            path.chmod(0o755)
        shutil.rmtree(top)


def test_the_comparison_finds_what_it_looks_for(tmp_path):
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").mkdir()
    before = data_sources.files_below(tmp_path)
    assert before == data_sources.files_below(tmp_path)
    (tmp_path / "a").write_text("2")
    assert before != data_sources.files_below(tmp_path)
    before = data_sources.files_below(tmp_path)
    (tmp_path / "b/c").touch()
    (tmp_path / "b/c").unlink()
    assert before != data_sources.files_below(tmp_path)
