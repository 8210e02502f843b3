"""Readers and writers without enough memory, threads, files or space; runs shortages.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import data_sources
import shortages
from random_share import random_share

STEPS = os.environ.get("ROBOCACHE_SHORTAGE_STEPS")  # else a part of four, in turn
TURNS = "2" if random_share(4) == 4 else "4"
AMOUNTS = ["--steps", STEPS] if STEPS else ["--steps", "4", "--turns", TURNS]


@pytest.fixture(scope="module")
def told(request):
    """Return the results of one process, which forks for each attempt.

    It tries only the formats and the writers of the tests that are selected.
    """
    options = [
        f"--{kind}={item.callspec.params['name']}"
        for item in request.session.items
        for kind, test in (("format", test_readers), ("writer", test_writers))
        if getattr(item, "function", None) is test
    ]
    run = subprocess.run(
        [sys.executable, Path(shortages.__file__), *AMOUNTS, *options],
        capture_output=True,
        encoding="utf-8",
        timeout=1200,
        check=False,
    )
    assert run.stdout, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize("name", list(data_sources.SOURCES))
def test_readers(told, name):
    assert told["found"][f"read {name}"] == []


@pytest.mark.parametrize("name", list(shortages.WRITERS))
def test_writers(told, name):
    assert told["found"][f"write {name}"] == []


def test_every_limit_was_met(told):
    assert all(told["met"][kind] > 0 for kind in ("memory", "files", "threads", "file size"))


def test_the_harness_finds_what_it_looks_for():
    path, good = Path("/a/sample"), ["x"]
    short = {"error": ["OSError"], "text": "", "number": 24, "file": "/a/sample/b"}
    assert shortages.fault({"result": ["x"]}, good, path) == ""
    assert shortages.fault(short, good, path) == ""
    lack = {"error": ["MemoryError"], "text": "/a/sample: too little", "number": None, "file": ""}
    assert shortages.fault(lack, good, path) == ""
    assert shortages.fault({**lack, "text": ""}, good, path, reads=False) == ""
    for wrong in (
        {"result": ["y"]},
        {"hung": True},
        {"ended": -6},
        {**short, "number": 13},
        {**short, "file": ""},
        {**lack, "text": ""},
        {**short, "error": ["FormatError", "ValueError"]},
    ):
        assert shortages.fault(wrong, good, path) != ""
