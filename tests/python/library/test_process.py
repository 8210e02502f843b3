"""Effects of a process on calls: many calls, closed streams, limits, memory that moves."""

import ctypes
import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import recordings_with_faults as faults
import robocache as rbc
from child_processes import environment
from random_share import random_share

# 10^6 by ROBOCACHE_TEST_CALLS=1000000, which takes some minutes.
CALLS = int(os.environ.get("ROBOCACHE_TEST_CALLS", random_share(10_000)))


def resident():
    """Return the private memory of this process in bytes, without what its C library keeps."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    # Not those of files: the system takes and gives them as others need memory.
    with open("/proc/self/status") as file:
        return 1024 * next(int(line.split()[1]) for line in file if line.startswith("RssAnon:"))


def calls(context):
    values, times = np.arange(12.0).reshape(6, 2), np.arange(6.0)
    points = np.zeros((4, 3), np.float32)
    out = np.empty((1, 3, 2))
    yield lambda: rbc.resample(values[None], times, [0.5, 1.5, 9.0], return_valid=True)
    yield lambda: rbc.resample(values[None], times, times[:3], out=out, backend=context)
    yield lambda: rbc.voxelize(points, origin=(0, 0, 0), voxel_size=0.5, shape=(2, 2, 2))
    yield lambda: rbc.convert_rotations(np.zeros((2, 3)), "euler_XYZ", "quat_xyzw")

    def refused():
        with pytest.raises(ValueError):
            rbc.resample(values[None], times, times, max_gap=-1.0)

    def by_bytes():
        statistics = rbc.StatisticsAccumulator(2)
        statistics.update(values)
        rbc.StatisticsAccumulator.from_bytes(statistics.to_bytes())

    yield refused
    yield by_bytes


def many_calls():
    """No memory, no reference, no descriptor, no thread is kept."""
    with rbc.Context("cpu", threads=2) as context:
        each = list(calls(context))

        def some(count):
            for n in range(count):
                each[n % len(each)]()

        some(CALLS // 4)  # what is made once is made
        gc.collect()
        before = resident(), len(gc.get_objects()), os.listdir("/proc/self/fd")
        threads = os.listdir("/proc/self/task")
        some(CALLS)
        gc.collect()
        assert len(gc.get_objects()) <= before[1] + 50
        assert len(os.listdir("/proc/self/fd")) == len(before[2])
        assert len(os.listdir("/proc/self/task")) <= len(threads)
        grown = resident() - before[0]
        assert grown < (1 << 20) + 2 * CALLS, grown


def test_many_calls_keep_nothing():
    """Run in a separate process: libraries of other tests may allocate memory at any time."""
    command = [sys.executable, __file__]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_arrays_cannot_be_resized_during_a_call():
    """While a producer exports its memory, it tries to move the memory of an earlier argument."""
    values, times = np.zeros((1, 6, 2)), np.arange(6.0)
    tried = []

    class Mover:
        def __init__(self, array):
            self.array = array

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

        def __dlpack__(self, **options):
            with pytest.raises(ValueError):
                values.resize((4000, 6, 2))
            tried.append(True)
            return self.array.__dlpack__(**options)

    rbc.resample(values, times, Mover(np.array([0.5])), out=np.empty((1, 1, 2)))
    assert tried


def test_a_bytearray_cannot_be_resized_during_a_call():
    memory = bytearray(8 * 200_000)
    values = np.frombuffer(memory).reshape(1, -1, 1)
    times = np.arange(values.shape[1], dtype=float)
    stop, moved = threading.Event(), []

    def move():
        while not stop.is_set():
            try:
                memory.append(0)
                moved.append(True)
            except BufferError:
                pass

    thread = threading.Thread(target=move)
    thread.start()
    try:
        for _ in range(5):
            assert not rbc.resample(values, times, times[::100]).any()
    finally:
        stop.set()
        thread.join()
    assert not moved


# ---- Closed streams and limits ------------------------------------------------------------------


def closed(*descriptors):
    def close():
        for descriptor in descriptors:
            os.close(descriptor)

    return close


def command(tmp_path, **options):
    """``robocache resample`` to a file, and what it gave."""
    pytest.importorskip("typer")
    pytest.importorskip("rich")
    faults.save(tmp_path / "in.npz", faults.stream("/arm", seed=3))
    arguments = ["resample", tmp_path / "in.npz", "--rate", "50", "-o", tmp_path / "out.npz"]
    return subprocess.run(
        [sys.executable, "-m", "robocache", *map(str, arguments)], timeout=120, **options
    )


@pytest.mark.parametrize("descriptors", [(1,), (2,), (0, 1, 2)])
def test_closed_streams(tmp_path, descriptors):
    """Files get the numbers of what is closed: nothing that is printed may go there."""
    run = command(tmp_path, preexec_fn=closed(*descriptors), close_fds=False)
    assert run.returncode == 0
    with np.load(tmp_path / "out.npz") as saved:
        assert len(saved.files) > 0 and all(saved[name].size > 0 for name in saved.files)


LIMITED = """
import os, resource
import numpy as np
import robocache as rbc

def works():
    rbc.resample(np.zeros((1, 6, 2)), np.arange(6.0), [0.5])

works()
status = list(open("/proc/self/status"))
resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
works()  # opens no file
used = int(dict(line.split(":") for line in status)["VmSize"].split()[0]) * 1024
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), used + (64 << 20)))
for _ in range(3):
    try:
        rbc.voxelize(np.zeros((4, 3)), origin=(0, 0, 0), voxel_size=0.1, shape=(900, 900, 900))
    except MemoryError:
        print("MemoryError")
    works()
"""


def test_few_descriptors_and_little_memory():
    command = [sys.executable, "-c", LIMITED]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.stdout == 3 * "MemoryError\n", run.stdout + run.stderr


if __name__ == "__main__":
    many_calls()
