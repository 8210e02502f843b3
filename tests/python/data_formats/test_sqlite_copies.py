"""Private copies of readers have no name in the temporary folder, so SIGKILL leaves none."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import multiprocessing
import os
import signal
import struct
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest

import data_files
import sqlite_states
from child_processes import environment
from robocache import data
from robocache.data._formats.bags import sqlite_copies
from sqlite_states import BATCH, BATCHES, unchanged

pytest.importorskip("rosbags")

IN_CREATE, IN_MOVED_FROM, IN_MOVED_TO, IN_DELETE = 0x100, 0x40, 0x80, 0x200
needs_memory = pytest.mark.skipif(
    not sqlite_copies.fits_memory(0), reason="SQLite reads memory since Python 3.11"
)


class Names:
    """The names that a folder gets and loses, even for an instant, as the kernel reports them."""

    def __init__(self, folder):
        libc = ctypes.CDLL(None, use_errno=True)
        self._events = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        mask = IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE
        if self._events < 0 or libc.inotify_add_watch(self._events, os.fsencode(folder), mask) < 0:
            code = ctypes.get_errno()
            if code in (errno.EMFILE, errno.ENOSPC, errno.ENOSYS):
                pytest.skip(f"no inotify: {os.strerror(code)}")
            raise OSError(code, os.strerror(code))

    def seen(self):
        """Return the events since the last call: what happened, and the name."""
        found = []
        try:
            content = os.read(self._events, 1 << 20)
        except BlockingIOError:
            return found
        while content:
            _, mask, _, size = struct.unpack_from("iIII", content)
            name = content[16 : 16 + size].rstrip(b"\0").decode()
            found.append((mask & (IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE), name))
            content = content[16 + size :]
        return found

    def close(self):
        os.close(self._events)


@contextmanager
def names_of(folder):
    names = Names(folder)
    try:
        yield names
    finally:
        names.close()


@pytest.fixture
def temporary(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def has_unnamed_files(folder):
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_RDWR))
    except OSError:
        return False
    return True


def packed(folder, plugin):
    """A bag that is compressed as a whole."""
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

    store = data_files.typestore()
    bag = Writer(folder / "packed", version=9, storage_plugin=StoragePlugin[plugin])
    bag.set_compression(CompressionMode.FILE, CompressionFormat.ZSTD)
    with bag:
        connection = bag.add_connection("/a", "std_msgs/msg/Float64", typestore=store)
        for i in range(1, BATCH * BATCHES + 1):
            message = data_files.make(store, "std_msgs/msg/Float64", data=float(i))
            bag.write(connection, i * 10**7, store.serialize_cdr(message, "std_msgs/msg/Float64"))
    return next((folder / "packed").glob("*.zstd"))


def recent(folder):
    """Without logs, but it changed now, so it is copied."""
    path = sqlite_states.logged(folder)
    sqlite_states.by_sqlite(path, folder / "own")  # SQLite moves the log into it
    path = folder / "own" / "bag.db3"
    os.utime(path)
    return path


SOURCES = {
    "log": sqlite_states.logged,
    "journal": sqlite_states.journaled,
    "recent": recent,
    "packed db3": lambda folder: packed(folder, "SQLITE3"),
    "packed mcap": lambda folder: packed(folder, "MCAP"),
}


def check(recording):
    values = recording["/a"].values[:, 0]
    np.testing.assert_array_equal(values, np.arange(1, BATCH * BATCHES + 1))


def test_the_watch_sees_a_name(temporary):
    with names_of(temporary) as names:
        (temporary / "a").touch()
        (temporary / "a").unlink()
        assert names.seen() == [(IN_CREATE, "a"), (IN_DELETE, "a")] and names.seen() == []


@needs_memory
@pytest.mark.parametrize("source", SOURCES)
def test_a_copy_never_has_a_name(tmp_path, temporary, source):
    if source.startswith("packed") and not has_unnamed_files(temporary):
        pytest.skip("the file system has no unnamed files")
    path = SOURCES[source](tmp_path)
    with names_of(temporary) as names, unchanged(path.parent):
        recording = data.open(path)
        check(recording)
        del recording
        assert names.seen() == []


@needs_memory
def test_a_copy_of_a_log_needs_no_temporary_folder(tmp_path, temporary):
    path = sqlite_states.logged(tmp_path)
    temporary.rmdir()
    check(data.open(path))


# ---- copies that do not fit into memory, or for Python before 3.11 -------------------------------


@pytest.fixture
def nothing_in_memory(monkeypatch):
    monkeypatch.setattr(sqlite_copies, "IN_MEMORY", -1)


@pytest.mark.usefixtures("nothing_in_memory")
@pytest.mark.parametrize("source", ["log", "journal", "recent", "packed db3"])
def test_a_large_copy_has_a_name_while_it_is_opened(tmp_path, temporary, source):
    if not has_unnamed_files(temporary):
        pytest.skip("the file system has no unnamed files")
    path = SOURCES[source](tmp_path)
    with names_of(temporary) as names, unchanged(path.parent):
        recording = data.open(path)
        created, deleted = names.seen()
        assert created == (IN_CREATE, deleted[1]) and deleted == (IN_DELETE, created[1])
        check(recording)
        assert names.seen() == [] and list(temporary.iterdir()) == []


KILLED = """
import os, signal, sqlite3, sys, tempfile
from robocache import data
from robocache.data._formats.bags import sqlite_copies
sqlite_copies.IN_MEMORY = -1
tempfile.tempdir = sys.argv[2]
known = sqlite3.connect
def killed(address, **options):
    if "robocache-copy-" in address:
        os.kill(os.getpid(), signal.SIGKILL)
    return known(address, **options)
sqlite3.connect = killed
data.open(sys.argv[1])
"""


@pytest.mark.usefixtures("nothing_in_memory")
def test_the_next_copy_removes_what_sigkill_left(tmp_path, temporary):
    if not has_unnamed_files(temporary):
        pytest.skip("the file system has no unnamed files")
    path = sqlite_states.logged(tmp_path)
    others = ["robocache-copy.db3", "robocache-abc.db3", "a.db3"]
    for name in others:
        (temporary / name).touch()
    used = temporary / "robocache-copy-used.db3"
    with open(used, "wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # as the process that opens it
        command = [sys.executable, "-c", KILLED, path, temporary]
        for _ in range(2):
            done = subprocess.run(command, env=environment(), check=False)
            assert done.returncode == -signal.SIGKILL
            left = {file.name for file in temporary.iterdir()} - {*others, used.name}
            assert len(left) == 1  # the second one removed that of the first
        check(data.open(path))
        assert {file.name for file in temporary.iterdir()} == {*others, used.name}
    check(data.open(path))
    assert {file.name for file in temporary.iterdir()} == set(others)


@pytest.mark.parametrize("in_memory", [pytest.param(1 << 20, marks=needs_memory), -1])
def test_a_file_system_without_unnamed_files(tmp_path, temporary, monkeypatch, in_memory):
    """A copy that does not fit into memory, and an unpacked one, has a name until it is opened."""
    monkeypatch.setattr(sqlite_copies, "IN_MEMORY", in_memory)
    monkeypatch.setattr(os, "O_TMPFILE", 0)  # so that opening the folder fails
    for i, source in enumerate(["log", "packed db3"]):
        (tmp_path / str(i)).mkdir()
        path = SOURCES[source](tmp_path / str(i))
        with names_of(temporary) as names:
            check(data.open(path))
            events = [event for event, _ in names.seen()]
            assert events == ([] if in_memory > 0 and source == "log" else [IN_CREATE, IN_DELETE])


@pytest.mark.parametrize("in_memory", [pytest.param(1 << 20, marks=needs_memory), -1])
@pytest.mark.parametrize(("method", "workers"), [("fork", 2), ("spawn", 1)])
def test_a_copy_in_another_process(tmp_path, temporary, monkeypatch, in_memory, method, workers):
    monkeypatch.setattr(sqlite_copies, "IN_MEMORY", in_memory)
    recording = data.open(sqlite_states.logged(tmp_path))
    with multiprocessing.get_context(method).Pool(workers) as pool:
        check(recording)
        for values in pool.map(values_of, [recording, recording]):
            np.testing.assert_array_equal(values, recording["/a"].values)
    assert list(temporary.iterdir()) == []


def values_of(recording):
    return recording["/a"].values
