"""Pipes, sockets and devices instead of any file of any source: runs special_sources.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import data_sources
import special_sources
from child_processes import environment
from random_share import random_share


@pytest.fixture(scope="module")
def found():
    """Return the faults by format, from one process that forks for each file."""
    script = Path(special_sources.__file__)
    amount = ["--fewer"] if random_share(4) < 4 else []
    run = subprocess.run(
        [sys.executable, script, *amount],
        capture_output=True,
        encoding="utf-8",
        timeout=600,
        check=False,
    )
    assert run.stdout, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize("name", list(data_sources.SOURCES))
def test_every_file_of_a_source(found, name):
    assert found[name] == []


def test_the_harness_finds_what_it_looks_for():
    """Hangs that SIGTERM can end, hangs that it cannot, and crashes are detected."""
    code = """
import os, signal, time, forked

def deaf():
    signal.signal(signal.SIGTERM, lambda *_: None)
    while True:
        time.sleep(10)

forked.PATIENCE = 0.2
print(forked.call(time.sleep, 10, seconds=0.2))
print(forked.call(deaf, seconds=0.2))
print(forked.call(os._exit, 7))
print(forked.call(os.abort))
print(forked.call(int, "x")["error"][:2])
print(forked.call(open, "x" * 300)["number"], forked.call(int, "7"))
several = [(int, "7"), (os._exit, 7), (time.sleep, 10), (os.getpid,), (os.getpid,)]
*first, fourth, fifth = forked.calls(several, seconds=0.5)
print(first, fourth == fifth)
"""
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", env=environment(),
        timeout=60, check=True,
    )  # fmt: skip
    assert run.stdout.splitlines() == [
        "{'hung': True, 'ended by SIGTERM': True}",
        "{'hung': True, 'ended by SIGTERM': False}",
        "{'ended': 7}",
        "{'ended': -6}",
        "['ValueError', 'Exception']",
        "36 {'result': 7}",
        "[{'result': 7}, {'ended': 7}, {'hung': True, 'ended by SIGTERM': True}] True",
    ]
    assert special_sources.fault({"result": ["a"]}, "pipe", ["a"]) == ""
    assert special_sources.fault({"result": ["b"]}, "pipe", ["a"])
    told = {"error": ["FormatError"], "text": "x: is a pipe", "number": None, "file": ""}
    assert special_sources.fault(told, "pipe", ["a"]) == ""
    assert special_sources.fault(told, "socket", ["a"])
    assert special_sources.fault({**told, "error": ["OSError"]}, "pipe", ["a"])
