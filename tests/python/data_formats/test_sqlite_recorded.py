"""SQLite bags read while they are recorded are correct or refused, never wrong."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest

import sqlite_recorder
from random_share import random_share
from robocache import data
from robocache.data._formats.bags import sqlite_files

pytest.importorskip("rosbags")

READS = int(os.environ.get("ROBOCACHE_SQLITE_READS", random_share(5)))
REFUSED = ("try again when the recorder has stopped",)

MODES = [
    ("DELETE", 4096, "NORMAL"),
    ("TRUNCATE", 4096, "NORMAL"),
    ("PERSIST", 4096, "NORMAL"),
    ("MEMORY", 4096, "NORMAL"),
    ("MEMORY", 512, "NORMAL"),
    ("OFF", 4096, "NORMAL"),
    ("WAL", 4096, "NORMAL"),
    ("WAL", 65536, "NORMAL"),
    ("DELETE", 65536, "NORMAL"),
    ("MEMORY", 4096, "EXCLUSIVE"),
    ("WAL", 4096, "EXCLUSIVE"),
]


@pytest.fixture
def recorder(tmp_path):
    running = []

    def start(mode, page, locking):
        path = tmp_path / "bag.db3"
        command = [sys.executable, sqlite_recorder.__file__, path, mode, str(page), locking]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        running.append(process)
        assert process.stdout.readline() == b"ready\n"
        return path, process

    yield start
    for process in running:
        process.stdin.close()
        process.wait(20)
        process.stdout.close()


def check_right(stream):
    """Check for the first committed messages, each once and with its own value."""
    count = len(stream)
    values = np.arange(1, count + 1)
    assert count % 20 == 0, count
    assert (stream.log_times == values * sqlite_recorder.STEP).all()
    assert count == 0 or (stream.values[:, 0] == values).all()
    return count


@pytest.mark.parametrize(("mode", "page", "locking"), MODES)
def test_a_recorder_at_full_speed(tmp_path, recorder, monkeypatch, mode, page, locking):
    if locking == "EXCLUSIVE":  # no wait is long enough
        monkeypatch.setattr(sqlite_files, "WAIT", 0.3)
    path, process = recorder(mode, page, locking)
    right = refused = messages = 0
    begin = time.monotonic()
    reads = READS if locking == "NORMAL" else max(1, READS // 300)
    while right + refused < reads or (locking == "NORMAL" and not right):
        assert right + refused < 20 * reads
        try:
            recording = data.open(path).load()
        except data.FormatError as error:
            assert any(text in str(error) for text in REFUSED), error
            refused += 1
        else:
            assert not recording.problems
            messages += check_right(recording["/a"])
            right += 1
    print(
        f"{mode} {page} {locking}: {right} right, {refused} refused, "
        f"{messages // max(1, right)} messages a read, {time.monotonic() - begin:.1f} s"
    )
    assert process.poll() is None  # it did not fail
    assert right if locking == "NORMAL" else refused == reads
