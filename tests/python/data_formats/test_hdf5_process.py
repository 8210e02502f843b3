"""The process that reads HDF5: damaged files, and the end of the process."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import data_files
import robocache as rbc
import warm_python

h5py = pytest.importorskip("h5py")

from robocache.data._formats.hdf5 import process as hdf5_process  # noqa: E402

data = rbc.data
SOON = 30  # seconds


@pytest.fixture
def path(tmp_path):
    data_files.write_robomimic(tmp_path / "x.hdf5")
    return tmp_path / "x.hdf5"


@pytest.fixture
def anew():
    """Use a separate worker for each test."""
    hdf5_process._end()
    yield
    hdf5_process._end()


def worker():
    return hdf5_process._worker.process


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(true):
    end = time.monotonic() + SOON
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return true()


def run(code, *arguments):
    """Run a program in a separate process, and return its output."""
    status, out, errors = warm_python.run(code, *arguments, imported=warm_python.LIBRARY)
    assert status == 0, (out, errors)
    return out.decode()


# ---- damage -------------------------------------------------------------------------------------


def with_an_endless_heap(path):
    """HDF5 loops forever over an object of index 0 and size 0 in a heap of texts."""
    content = bytearray(path.read_bytes())
    at = content.index(b"GCOL") + 16
    content[at : at + 16] = bytes(16)
    path.write_bytes(content)


def test_a_file_that_hdf5_never_gets_done_with(path, monkeypatch):
    monkeypatch.setenv("ROBOCACHE_HDF5_SECONDS", "0.2")
    with_an_endless_heap(path)
    with pytest.raises(data.FormatError, match="busy without an end.*ROBOCACHE_HDF5_SECONDS") as it:
        data.open(path)
    assert it.value.path == str(path) and it.value.place == "data, attributes"
    kept = data.open(path, damaged="keep").load()
    assert len(kept) == 3 and "busy without an end" in str(kept.problems[0])
    assert "total" not in kept.info


def crashing_at(monkeypatch, number, how="os.kill(os.getpid(), signal.SIGSEGV)"):
    """Make the worker crash when it reads the array of a group."""
    code = f"""
import os, signal
from robocache.data._formats.hdf5 import worker as hdf5_worker
read = hdf5_worker.Worker.read
def crashing(self, step):
    if step["group"].endswith("demo_{number}"):
        {how}
    return read(self, step)
hdf5_worker.Worker.read = crashing
main()
"""
    start = hdf5_process._START.replace("\nmain()\n", code)
    assert start != hdf5_process._START
    monkeypatch.setattr(hdf5_process, "_START", start)


def test_a_crash_of_hdf5(path, tmp_path, monkeypatch, anew):
    """The arrays of the other demonstrations are read."""
    crashing_at(monkeypatch, 2)
    with pytest.raises(data.FormatError, match=r"crashed the HDF5 library \(SIGSEGV\)") as caught:
        data.open(path).load()
    assert caught.value.place.startswith("data/demo_2/")
    kept = data.open(path, damaged="keep").load()
    with h5py.File(path) as file:
        for e, number in ((0, 0), (2, 10)):
            for name, track in kept.select([e]).tracks.items():
                expected = file[f"data/demo_{number}/{name}"][...]
                np.testing.assert_array_equal(track.values, expected.reshape(track.values.shape))
    assert np.isnan(kept.select([1])["actions"].values).all()
    assert len(kept.problems) == 3 and all("rows 0 to 2" in each.text for each in kept.problems)
    data_files.write_aloha(tmp_path / "other.hdf5")
    data.open(tmp_path / "other.hdf5").load()


def test_a_file_that_hangs_is_given_up(path, monkeypatch, anew):
    monkeypatch.setenv("ROBOCACHE_HDF5_SECONDS", "0.2")
    crashing_at(monkeypatch, 2, "while True: pass")
    starts = []
    start = hdf5_process._Worker.__init__
    monkeypatch.setattr(
        hdf5_process._Worker, "__init__", lambda self: starts.append(1) or start(self)
    )
    kept = data.open(path, damaged="keep").load()
    assert "busy without an end" in kept.problems[0].text
    assert all("the data before it keeps" in each.text for each in kept.problems[1:])
    assert len(starts) == 1


def test_a_worker_that_is_killed_is_no_damage(path, monkeypatch, anew):
    crashing_at(monkeypatch, 2, "os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(MemoryError, match="x.hdf5: the process that read it was killed"):
        data.open(path, damaged="keep").load()


def test_a_worker_that_was_killed_between_two_files(path):
    data.open(path).load()
    worker().kill()
    worker().wait()
    assert len(data.open(path).load()) == 3


def test_children_that_something_else_waits_for(path, monkeypatch, anew):
    """The exit status of the worker is then unknown."""
    crashing_at(monkeypatch, 2)
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(data.FormatError, match="crashed the HDF5 library, or kept it busy"):
            data.open(path).load()
    finally:
        signal.signal(signal.SIGCHLD, before)


# ---- one worker, and its end --------------------------------------------------------------------


def test_many_files_and_one_worker(tmp_path, anew):
    for n in range(20):
        data_files.write_aloha(tmp_path / f"episode_{n}.hdf5", seed=n)
    data.open(tmp_path).load()
    first = worker().pid
    for n in range(20):
        data.open(tmp_path / f"episode_{n}.hdf5").load()
    assert worker().pid == first
    own = os.listdir(f"/proc/{first}/fd")
    data.open(tmp_path).load()
    assert len(os.listdir(f"/proc/{first}/fd")) == len(own)
    links = [os.readlink(f"/proc/{first}/fd/{each}") for each in os.listdir(f"/proc/{first}/fd")]
    assert not any(each.endswith(".hdf5") for each in links)


@pytest.mark.parametrize("end", ["pass", "os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_it_ends_with_its_process(path, end):
    code = f"""
import os, sys
import robocache as rbc
from robocache.data._formats.hdf5 import process as hdf5_process
rbc.data.open(sys.argv[1]).load()
print(hdf5_process._worker.process.pid, flush=True)
{end}
"""
    _, out, errors = warm_python.run(code, path, imported=warm_python.LIBRARY)
    assert wait_until(lambda: not is_running(int(out))), errors


def test_an_endless_loop_ends_with_the_killed_process(path):
    with_an_endless_heap(path)
    code = f"""
import os, sys, threading, time
os.environ["ROBOCACHE_HDF5_SECONDS"] = "0.5"
import robocache as rbc
from robocache.data._formats.hdf5 import process as hdf5_process
def kill():
    while hdf5_process._worker is None:
        time.sleep(0.01)
    print(hdf5_process._worker.process.pid, flush=True)
    os.kill(os.getpid(), 9)
threading.Thread(target=kill).start()
rbc.data.open({str(path)!r})
"""
    _, out, errors = warm_python.run(code, imported=warm_python.LIBRARY)
    assert wait_until(lambda: not is_running(int(out))), errors


def test_a_fork_starts_its_own(path, anew):
    """The worker of the parent keeps running."""
    episodes = data.open(path)
    pid = worker().pid
    report, write_to = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            values = episodes["actions"].values
            own = worker().pid
            hdf5_process._end()
            os.write(write_to, f"{own != pid} {len(values)}".encode())
        finally:
            os._exit(0)
    os.close(write_to)
    os.waitpid(child, 0)
    with os.fdopen(report) as file:
        assert file.read() == "True 13"
    assert len(episodes["actions"].values) == 13 and worker().pid == pid


def test_a_fork_that_lives_on_does_not_keep_it(path):
    code = """
import os, sys, time
import robocache as rbc
from robocache.data._formats.hdf5 import process as hdf5_process
rbc.data.open(sys.argv[1]).load()
print(hdf5_process._worker.process.pid, flush=True)
if os.fork() == 0:
    os.close(1); os.close(2)
    time.sleep(60)
print(os.getpid(), flush=True)
os._exit(0)
"""
    pid = int(run(code, path).split()[0])
    assert wait_until(lambda: not is_running(pid))


def test_threads(tmp_path):
    expected = {}
    for n in range(4):
        made = data_files.write_aloha(tmp_path / f"{n}.hdf5", length=50 + n, seed=n)
        expected[n] = made["action"]

    def read(n):
        for _ in range(5):
            got = data.open(tmp_path / f"{n}.hdf5")["action"].values
            np.testing.assert_array_equal(got, expected[n])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(read, expected))  # raises what a thread raised


def test_ctrl_c(path, monkeypatch, anew):
    """Ctrl-C interrupts the reading; the next file is read."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored
    crashing_at(monkeypatch, 2, "import time; time.sleep(60)")
    episodes = data.open(path)
    pid = worker().pid
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        episodes.load()
    timer.join()
    signal.signal(signal.SIGINT, before)
    assert not is_running(pid)
    assert len(episodes.select([0])["actions"].values) == 4


def test_ctrl_c_of_a_terminal_does_not_reach_it(path):
    data.open(path).load()
    assert os.getsid(worker().pid) != os.getsid(0)


# ---- what is short ------------------------------------------------------------------------------

LIMITED = """
import resource, sys
import robocache as rbc
import numpy
kind, most = getattr(resource, sys.argv[2]), int(sys.argv[3])
before = resource.getrlimit(kind)
resource.setrlimit(kind, (most, before[1]))
try:
    found = [len(rbc.data.open(sys.argv[1], damaged="keep").load())]
except Exception as error:
    found = [type(error).__name__, getattr(error, "errno", 0), error]
resource.setrlimit(kind, before)  # the output may be a file
print(*found)
"""


def test_too_few_descriptors(path):
    found = run(LIMITED, path, "RLIMIT_NOFILE", 6)
    assert found.startswith(f"OSError {errno.EMFILE} ") and str(path) in found


def test_files_that_may_not_be_written(path):
    """Reading does not write to them."""
    assert run(LIMITED, path, "RLIMIT_FSIZE", 0) == "3\n"


def test_values_without_a_file_in_memory(path, monkeypatch, anew):
    expected = data.open(path).load()
    hdf5_process._end()
    monkeypatch.delattr(os, "memfd_create")
    got = data.open(path).load()
    for name, track in expected.tracks.items():
        np.testing.assert_array_equal(got[name].values, track.values)


def test_too_little_memory(tmp_path):
    """A chunk does not fit into memory; it is not reported as damage."""
    path = tmp_path / "x.hdf5"
    with h5py.File(path, "w") as file:
        chunks = (1 << 22, 8)
        file.create_dataset("action", (1 << 22, 8), "f4", chunks=chunks, compression="gzip")
        file["action"][:1] = 1
    code = LIMITED.replace(
        "int(sys.argv[3])", "int(open('/proc/self/statm').read().split()[0]) * 4096 + (150 << 20)"
    )
    found = run(code, path, "RLIMIT_AS", 0)
    assert found.startswith("MemoryError 0 ") and str(path) in found


def test_too_few_processes(path, monkeypatch, anew):
    """Root has no limit on processes, so the test raises the system's error itself."""

    def refused(*arguments, **options):
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(subprocess, "Popen", refused)
    with pytest.raises(BlockingIOError) as caught:
        data.open(path, damaged="keep")
    assert caught.value.errno == errno.EAGAIN and caught.value.filename == str(path)


def test_a_process_that_cannot_start(path, monkeypatch, anew):
    monkeypatch.setattr(hdf5_process, "_START", "import nothing_of_that_name #%r %r")
    with pytest.raises(RuntimeError, match="cannot start: ModuleNotFoundError"):
        data.open(path, damaged="keep")
    monkeypatch.setattr("multiprocessing.spawn.get_executable", lambda: None)
    with pytest.raises(RuntimeError, match="multiprocessing.set_executable"):
        data.open(path)


@pytest.mark.parametrize("given", ["x", "0", "-1", "nan"])
def test_a_limit_that_is_none(path, monkeypatch, given):
    monkeypatch.setenv("ROBOCACHE_HDF5_SECONDS", given)
    with pytest.raises(ValueError, match="ROBOCACHE_HDF5_SECONDS: is .* expected a number"):
        data.open(path)


def test_limits_of_this_process_stay(path):
    before = [resource.getrlimit(each) for each in (resource.RLIMIT_CPU, resource.RLIMIT_AS)]
    data.open(path).load()
    assert before == [
        resource.getrlimit(each) for each in (resource.RLIMIT_CPU, resource.RLIMIT_AS)
    ]
