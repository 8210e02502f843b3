"""Memory of large results, which later results take over."""

import gc
import os
import pickle
import random
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import robocache as rbc
from random_share import random_share
from robocache import _core

MIB = 1 << 20


def large(rows=64, columns=4096):
    """A result of 1 MiB, and what it has to be."""
    values = np.arange(2.0 * columns, dtype=np.float32).reshape(2, columns)
    queries = np.linspace(0, 1, rows)
    weights = queries.astype(np.float32)[:, None]
    return lambda: rbc.resample(values, np.arange(2.0), queries), values[0] + weights * columns


def raw(size, dtype="uint8"):
    return _core.warm_array(np.empty, (size,), np.dtype(dtype))


def address(array):
    return array.__array_interface__["data"][0]


def handler_of(array):
    internal = np._core if hasattr(np, "_core") else np.core
    return internal.multiarray.get_handler_name(array)


@pytest.fixture(autouse=True)
def nothing_idle(few_objects):
    gc.collect()
    rbc.release_idle_memory()
    rbc.limit_idle_memory(256 * MIB)  # other tests may have chosen another limit
    yield
    rbc.limit_idle_memory(256 * MIB)


def test_a_result_takes_the_memory_of_one_that_is_gone():
    call, expected = large()
    result = call()
    np.testing.assert_allclose(result, expected, rtol=1e-5)
    assert result.flags.owndata and result.base is None and handler_of(result) == "robocache"
    assert address(result) % 64 == 0
    where = address(result)
    del result
    assert _core.idle_memory() > MIB
    again = call()
    assert address(again) == where and _core.idle_memory() == 0
    np.testing.assert_allclose(again, expected, rtol=1e-5)


def test_only_large_results_and_nothing_of_others():
    small = rbc.resample(np.zeros((2, 3)), [0.0, 1.0], [0.5])
    call, _ = large()
    result = call()
    assert handler_of(small) == handler_of(np.empty(2 * MIB, "uint8")) == "default_allocator"
    assert handler_of(result.copy()) == handler_of(result + 1) == "default_allocator"


def test_every_operation_that_has_large_results_takes_it():
    points = np.random.default_rng(0).random((1 << 17, 4), np.float32)
    grid = {"origin": (0, 0, 0), "voxel_size": 1 / 64, "shape": (64, 64, 64)}
    for result in (
        rbc.voxelize(points, reduction="count", **grid),
        rbc.voxelize_sparse(points, **grid).features,
        rbc.convert_rotations(points, "quat_xyzw", "matrix"),
    ):
        assert handler_of(result) == "robocache"


def test_live_arrays_never_share():
    chosen = random.Random(1)
    alive = {}
    for number in range(2000):
        size = chosen.choice((MIB, MIB + 1, 3 * MIB // 2, 2 * MIB, 5 * MIB))
        array = raw(size)
        array[::4096] = number % 251
        array[-1] = number % 251
        alive[number] = array
        for gone in chosen.sample(sorted(alive), k=max(0, len(alive) - chosen.randrange(8))):
            array = alive.pop(gone)
            assert array[-1] == gone % 251 and (array[::4096] == gone % 251).all()
        spans = sorted((address(array), address(array) + array.nbytes) for array in alive.values())
        assert all(end <= begin for (_, end), (begin, _) in zip(spans, spans[1:]))


@pytest.mark.parametrize(
    "view",
    [
        lambda array: array[1:3, ::2],
        lambda array: array.reshape(-1).view(np.uint32)[5:],
        lambda array: array.view(type("Own", (np.ndarray,), {})),
        memoryview,
        np.from_dlpack,
        lambda array: np.frombuffer(array, np.float32),
        lambda array: pickle.PickleBuffer(array).raw(),
    ],
)
def test_whatever_refers_to_an_array_keeps_its_memory(view):
    call, expected = large()
    array = call()
    kept = view(array)
    before = bytes(kept.tobytes())
    where = address(array)
    del array
    others = [call() for _ in range(3)]
    assert where not in map(address, others) and _core.idle_memory() == 0
    for other in others:
        other[:] = -1
    assert kept.tobytes() == before
    del kept
    gc.collect()
    assert _core.idle_memory() > 0


def test_an_array_can_be_resized():
    array = raw(MIB // 8, "float64")
    array[:] = np.arange(array.size)
    array.resize(3 * array.size, refcheck=False)
    assert (array[: MIB // 8] == np.arange(MIB // 8)).all() and (array[MIB // 8 :] == 0).all()
    array.resize(10, refcheck=False)
    assert (array == np.arange(10)).all()
    del array
    assert 0 < _core.idle_memory() < 6 * MIB


def test_the_limit():
    rbc.limit_idle_memory(4 * MIB)
    arrays = [raw(MIB) for _ in range(8)]
    last = address(arrays[-1])
    assert _core.idle_memory() == 0  # of arrays in use nothing counts
    while arrays:
        del arrays[0]
        assert _core.idle_memory() <= 4 * MIB
    assert 3 * MIB <= _core.idle_memory()
    assert address(raw(MIB)) == last  # the last one to go is the first to be taken
    freed = rbc.release_idle_memory()
    assert 3 * MIB <= freed <= 4 * MIB and rbc.release_idle_memory() == 0
    del freed
    raw(5 * MIB)
    assert _core.idle_memory() == 0  # it would be above the limit by itself

    rbc.limit_idle_memory(1 << 70)  # as much as there is
    raw(5 * MIB)
    assert _core.idle_memory() > 5 * MIB
    assert rbc.limit_idle_memory(0) > 5 * MIB
    raw(MIB)
    assert _core.idle_memory() == 0


def test_limits_that_are_none():
    with pytest.raises(ValueError, match="^num_bytes: is -1, expected 0 or more$"):
        rbc.limit_idle_memory(-1)
    with pytest.raises(TypeError, match="num_bytes: is 1.5, expected an int"):
        rbc.limit_idle_memory(1.5)


def test_memory_that_gives_out():
    raw(MIB)
    with pytest.raises(MemoryError):
        raw(1 << 60)
    assert handler_of(np.empty(2 * MIB, "uint8")) == "default_allocator"
    assert raw(MIB).size == MIB


def test_it_does_not_grow():
    sizes = [MIB + 4096 * i for i in range(0, 512, 7)]
    held = [None] * 5

    def calls(count):
        for i in range(count):
            array = raw(sizes[i % len(sizes)])
            array[::4096] = 1
            held[i % len(held)] = array

    calls(2000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    calls(random_share(100_000))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024  # KiB
    assert _core.idle_memory() <= 256 * MIB


def test_reused_memory_has_no_page_faults():
    call, _ = large(rows=512)
    for _ in range(3):
        call()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        call()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 20 * 100  # of 2048 each


def test_threads():
    wrong = []

    def work(seed):
        chosen = random.Random(seed)
        alive = []
        for _ in range(300):
            array = raw(chosen.choice((MIB, MIB, 2 * MIB)), "uint64")
            array[::512] = seed
            alive.append(array)
            if len(alive) > 3:
                array = alive.pop(chosen.randrange(len(alive)))
                wrong.extend(array[::512][array[::512] != seed])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(1, 5)))  # raises what a thread raised
    assert not wrong
    assert _core.idle_memory() <= 256 * MIB


FORK = """
import os, threading
import numpy as np, robocache as rbc
from robocache import _core

def raw(): return _core.warm_array(np.empty, (1 << 20,), np.dtype("uint8"))

rbc.resample(np.zeros((2, 1)), np.arange(2.0), np.arange(2.0))  # which finds NumPy
kept = raw()
kept[:] = 7
raw()
assert _core.idle_memory() > 0
ends = threading.Event()

def work():
    while not ends.is_set():
        raw()[:] = 1

threads = [threading.Thread(target=work) for _ in range(3)]
for i in range(30):
    if i == 1:
        for thread in threads: thread.start()
    child = os.fork()
    if child == 0:
        fresh = i > 0 or _core.idle_memory() == 0  # Python frees the memory of threads
        array = raw()
        array[:] = 3
        os._exit(0 if fresh and (kept == 7).all() and (array == 3).all() else 1)
    assert os.waitpid(child, 0)[1] == 0
ends.set()
for thread in threads: thread.join()
assert (kept == 7).all()
print("ended")
"""

AT_EXIT = """
import numpy as np, robocache as rbc
from robocache import _core
call = lambda: rbc.resample(np.zeros((2, 4096)), np.arange(2.0), np.linspace(0, 1, 64))
call()
np.kept = call()  # goes after the package has
class Late:
    def __del__(self): self.array[:] = 1
late = Late()
late.array = call()
late.itself = late
print("ended")
"""


@pytest.mark.parametrize("program", [FORK, AT_EXIT], ids=["fork", "exit"])
def test_processes(program):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")


def test_without_such_a_numpy(monkeypatch):
    from robocache._arguments.arrays import LIBRARY_TYPES
    from robocache._library import memory

    assert not memory.takes_warm(type("Other", (), {"_core": None}))
    call, expected = large()
    call()
    monkeypatch.setattr(LIBRARY_TYPES[np.ndarray], "_takes_warm", False)
    result = call()
    assert handler_of(result) == "default_allocator"
    np.testing.assert_allclose(result, expected, rtol=1e-5)


def test_bfloat16_of_numpy():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.ones((2, 4096), ml_dtypes.bfloat16)
    result = rbc.resample(values, [0.0, 1.0], np.linspace(0, 1, 256))
    assert result.dtype == ml_dtypes.bfloat16 and handler_of(result) == "robocache"
    assert (result == 1).all()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_tensors(dtype):
    torch = pytest.importorskip("torch")
    kind = getattr(torch, dtype)
    values = torch.ones(2, 8192, dtype=kind)
    times = torch.tensor([0.0, 1.0])

    def call(rows):
        return rbc.resample(values, times, torch.linspace(0, 1, rows))

    result = call(2048)
    assert result.dtype == kind and result.shape == (2048, 8192) and result.is_contiguous()
    assert not result._is_view() and not result.requires_grad and bool((result == 1).all())
    where = result.data_ptr()
    row = result[5]
    del result
    other = call(2048)
    assert other.data_ptr() != where and bool((row == 1).all())
    del row
    gc.collect()
    assert call(2048).data_ptr() == where
    assert call(16).numel() == 16 * 8192  # one that torch allocates
