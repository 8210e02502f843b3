"""SIGKILL anywhere in an epoch of WindowLoader: nothing is left, and the next run goes on."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import data_files
import robocache as rbc

pytest.importorskip("torch")

KILLS = 6
PIPE = 4096  # bytes, so that a child cannot be far ahead of what the test has read
MARK = "ROBOCACHE_TEST_MARK"  # in the environment of the process and its children


def lerobot(folder):
    pytest.importorskip("pyarrow")
    data_files.write_lerobot(folder / "data", (160,) * 8)


def robomimic(folder):
    pytest.importorskip("h5py")
    folder.mkdir()
    data_files.write_robomimic(folder / "data", (400, 600, 500))


def bag_with_log(folder):
    pytest.importorskip("rosbags")
    folder.mkdir()
    store = data_files.typestore()
    data_files.write_ros2_log(folder / "data", data_files.messages(store, 1500), store, kept=1900)


DATA = {"lerobot": lerobot, "robomimic": robomimic, "a bag with a log": bag_with_log}


class Epochs:
    """loader_epochs.py, with a separate folder for files that it may leave."""

    def __init__(self, folder):
        self.temporary = folder
        self._mark = f"{MARK}={os.getpid()}-{random.getrandbits(64):x}"
        package = str(Path(rbc.__file__).parents[1])
        name, _, value = self._mark.partition("=")
        environment = {name: value, "TMPDIR": str(self.temporary), "PYTHONPATH": package}
        self._shared = set(os.listdir("/dev/shm"))
        program = Path(__file__).parents[1] / "support" / "loader_epochs.py"
        self._process = subprocess.Popen(
            [sys.executable, str(program)],
            cwd=self.temporary, env={**os.environ, **environment},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        fcntl.fcntl(self._process.stdout, fcntl.F_SETPIPE_SZ, PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.stdin.close()
        self._process.stdout.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(30)
        self._process.kill()
        self._process.wait()

    def run(self, path, state=None, kill_after=None, delay=0.0):
        """The batches of a run, each with the state after it, and the status of its end.

        It is killed some time after this number of its batches.
        """
        self._process.stdin.write(json.dumps([str(path), state]) + "\n")
        self._process.stdin.flush()
        heard, child = [], None
        for line in self._process.stdout:
            told = json.loads(line)
            if "status" in told:
                return heard, told["status"]
            child = told.get("pid", child)
            if "batch" in told:
                heard.append((told["batch"], told["state"]))
            if kill_after is not None and len(heard) == kill_after:
                time.sleep(delay)
                os.kill(child, signal.SIGKILL)
                kill_after = None
        raise AssertionError("loader_epochs.py has ended")

    def left(self):
        """Return what its children left: processes, temporary files, shared memory."""
        for wait in (0.0, 0.1, 0.4, 1.5):  # others may be about to end
            time.sleep(wait)
            files = sorted(path.name for path in self.temporary.rglob("*"))
            found = [*self._processes(), *files, *self._shared_memory()]
            if not found:
                break
        return found

    def _processes(self):
        mark = f"\0{self._mark}\0".encode()
        for process in Path("/proc").iterdir():
            if process.name.isdigit() and int(process.name) != self._process.pid:
                with contextlib.suppress(OSError):
                    if mark in b"\0" + (process / "environ").read_bytes():
                        yield f"process {process.name}"

    def _shared_memory(self):
        """Return new shared memory and semaphores that no other process uses.

        Folders there belong to other programs, such as robocache_faults.
        """
        names = {
            each.name for each in os.scandir("/dev/shm") if not each.is_dir(follow_symlinks=False)
        }
        new = {f"/dev/shm/{name}" for name in names - self._shared}
        for maps in Path("/proc").glob("[0-9]*/maps") if new else ():
            with contextlib.suppress(OSError):
                text = maps.read_text()
                new = {name for name in new if name not in text}
        return sorted(new)


def state_of(path):
    """Every byte of a file or folder, and when it was written."""
    files = [path, *sorted(path.parent.rglob("*"))]
    return {
        str(file): (file.stat().st_mtime_ns, file.is_file() and file.read_bytes()) for file in files
    }


@pytest.fixture(scope="module")
def epochs(tmp_path_factory):
    with Epochs(tmp_path_factory.mktemp("tmp")) as started:
        yield started


@pytest.mark.parametrize("kind", DATA)
def test_a_killed_epoch_leaves_nothing_and_goes_on(epochs, tmp_path, kind):
    DATA[kind](tmp_path / "files")
    path = tmp_path / "files" / "data"
    before = state_of(path)
    begin = time.monotonic()
    whole, status = epochs.run(path)
    took = time.monotonic() - begin
    assert status == 0 and whole[-1][1]["epoch"] == 1
    assert len({digest for digest, _ in whole}) == len(whole)
    middle = len(whole) - PIPE // 100  # the lines in the pipe are longer
    assert middle > len(whole) // 4, "an epoch is too short to be killed in its middle"

    rng = random.Random(kind)
    for kill in range(KILLS):
        # While it opens and reads the files, or in the middle of the batches.
        opening = kill % 3 == 0
        after = 0 if opening else rng.randint(1, middle)
        delay = rng.random() * (took / 2 if opening else 0.003)
        heard, status = epochs.run(path, kill_after=after, delay=delay)
        assert status == signal.SIGKILL and after <= len(heard) < len(whole)
        assert heard == whole[: len(heard)]
        assert epochs.left() == []
        if kill % 3 == 1:
            rest, status = epochs.run(path, state=heard[-1][1])
            assert status == 0 and heard + rest == whole
    assert epochs.run(path) == (whole, 0)
    assert epochs.left() == []
    assert state_of(path) == before
