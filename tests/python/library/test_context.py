"""Contexts: what they tell, how they close, threads, forks, and the GIL."""

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import cli_process
import robocache as rbc
from spawned import resample_in_child

VALUES = np.arange(2 * 100 * 8, dtype=np.float32).reshape(2, 100, 8)
TIMES = np.arange(100.0)
QUERIES = np.array([0.5, 7.25, 98.75])
ANSWER = rbc.resample(VALUES, TIMES, QUERIES)


def has_cuda():
    return not rbc.info().cuda_unavailable


def test_cpu_info():
    with rbc.Context("cpu", threads=2) as context:
        info = context.info
        assert (info.backend, info.device, info.num_threads) == ("cpu", "cpu", 2)
        assert info.simd in ("portable", "avx2", "avx512", "neon")
        assert info.device_name and info.total_memory_bytes > 2**20
        assert info.compute_capability is None and info.num_multiprocessors is None
        assert info.cuda_unavailable == ""
        assert context.device == "cpu" and repr(context) == "<robocache.Context cpu>"
    assert rbc.Context("cpu").info.num_threads == len(os.sched_getaffinity(0))


def test_the_last_launch():
    with rbc.Context("cpu", threads=2, simd="portable") as context:
        assert context.info.last_launch == ""
        rbc.resample(VALUES, TIMES, QUERIES, backend=context)
        assert context.info.last_launch == "resample: cpu (portable), threads 2"
        rbc.take_rows(VALUES[0], np.array([3, 1]), backend=context)
        assert context.info.last_launch == "take_rows: cpu (portable), threads 2"


@pytest.mark.parametrize(("level", "lines"), [("kernels", 2), ("slow", 0), ("", 0), ("all", 0)])
def test_the_log_has_a_line_for_each_operation(level, lines):
    code = """
import numpy as np, robocache as rbc
with rbc.Context("cpu", threads=1, simd="portable") as context:
    for queries in ([0.5], []):
        rbc.resample(np.zeros((2, 3)), [0.0, 1.0], np.array(queries), backend=context)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "RBC_LOG": level},
        capture_output=True,
        text=True,
        check=True,
    )
    expected = [
        "robocache: resample: cpu (portable), threads 1",
        "robocache: resample: nothing to do",
    ]
    assert done.stderr.splitlines() == expected[:lines]


def test_auto_says_why_it_is_not_on_cuda():
    info = rbc.Context("auto").info
    assert (info.backend == "cuda") == (info.cuda_unavailable == "")
    assert info.built_with_cuda or "ROBOCACHE_CUDA" in info.cuda_unavailable  # how to build it


@pytest.mark.parametrize("simd", ["portable", "avx2", "avx512", "neon"])
def test_every_vector_level_gives_the_same_bits(simd):
    try:
        context = rbc.Context("cpu", simd=simd)
    except rbc.RoboCacheError as error:
        assert error.status == rbc.Status.NOT_AVAILABLE
        pytest.skip(str(error))
    assert context.info.simd == simd
    random = np.random.default_rng(1)
    for channels in (1, 3, 8, 33):
        values = random.normal(size=(3, 50, channels)).astype(np.float32)
        times, queries = np.sort(random.random((3, 50))), random.random((3, 80))
        for dtype in ("float16", "float32", "float64"):
            expected = rbc.resample(values, times, queries, dtype=dtype)
            out = rbc.resample(values, times, queries, dtype=dtype, backend=context)
            assert out.tobytes() == expected.tobytes()
    for dtype in ("float16", "float32", "float64"):
        values = random.normal(size=(3, 50, 36)).astype(dtype)
        streams = [
            rbc.Stream(values, times, method=method, mean=values[0, 0].astype(float))
            for method in ("linear", "nearest", "cubic", "pchip", "slerp", "angle")
        ]
        expected = rbc.fuse(streams, queries)
        assert rbc.fuse(streams, queries, backend=context).tobytes() == expected.tobytes()


def test_closing():
    context = rbc.Context("cpu")
    context.warm_up()
    context.reserve(1 << 20)
    assert context.info.workspace_bytes >= 1 << 20
    for count, error in ((-1, ValueError), (1.5, TypeError), (2**70, MemoryError)):
        with pytest.raises(error):
            context.reserve(count)
    context.synchronize()
    assert np.array_equal(rbc.resample(VALUES, TIMES, QUERIES, backend=context), ANSWER)
    context.close()
    context.close()
    assert repr(context) == "<robocache.Context cpu, closed>"
    for use in (
        lambda: context.info,
        context.synchronize,
        context.warm_up,
        lambda: context.reserve(1),
        lambda: rbc.resample(VALUES, TIMES, QUERIES, backend=context),
    ):
        with pytest.raises(ValueError, match="^context: is closed$"):
            use()


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (["gpu"], {}, ValueError, "device: is 'gpu', expected 'auto', 'cpu', 'cuda' or 'cuda:N'"),
        (["cuda:"], {}, ValueError, "device: is 'cuda:', expected"),
        (["cuda:-1"], {}, ValueError, "device: is 'cuda:-1', expected"),
        ([0], {}, ValueError, "device: is 0, expected"),
        (["cpu"], {"threads": 0}, ValueError, "threads: is 0, expected 1 or more"),
        (["cpu"], {"threads": -3}, ValueError, "threads: is -3, expected 1 or more"),
        (
            ["cpu"],
            {"simd": "sse9"},
            ValueError,
            "simd: is 'sse9', expected one of 'auto', 'portable'",
        ),
        (["cpu"], {"stream": "fast"}, TypeError, "stream: is a str, expected an int or a stream"),
        (["cpu"], {"stream": 64}, ValueError, "stream: is set, expected null on the CPU"),
        (["cpu", "cuda"], {}, TypeError, ""),
    ],
)
def test_refused(arguments, options, error, message):
    with pytest.raises(error, match=f"^{message}" if message else None):
        rbc.Context(*arguments, **options)


def test_cuda_where_there_is_none():
    if has_cuda():
        pytest.skip("CUDA is usable here")
    for make in (
        lambda: rbc.Context("cuda"),
        lambda: rbc.resample(VALUES, TIMES, QUERIES, backend="cuda:3"),
    ):
        with pytest.raises(rbc.RoboCacheError, match="CUDA") as caught:
            make()
        assert isinstance(caught.value, RuntimeError)
        assert caught.value.status in (rbc.Status.UNSUPPORTED, rbc.Status.NOT_AVAILABLE)
        again = pickle.loads(pickle.dumps(caught.value))
        assert (str(again), again.status) == (str(caught.value), caught.value.status)


def test_info_and_its_command():
    info = rbc.info()
    assert info.version == rbc.__version__ and info.abi_version == 1
    assert info.contexts["cpu"].backend == "cpu"
    run = subprocess.run(
        [sys.executable, "-m", "robocache", "info"], capture_output=True, text=True, check=True
    )
    assert run.stdout == f"{info}\n" and run.stdout.startswith(
        f"RoboCache {rbc.__version__}, ABI 1\n"
    )
    run = cli_process.robocache("fly")
    assert run.returncode == 2 and "fly" in run.stderr


def test_importing_it_imports_no_framework():
    code = "import robocache, sys; assert not {'numpy', 'torch', 'cupy', 'jax'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# ---- threads ------------------------------------------------------------------------------------


def test_threads_use_contexts_of_their_own():
    random = np.random.default_rng(2)
    cases = []
    for _ in range(6):
        values = random.normal(size=(4, 200, 32)).astype(np.float32)
        case = values, np.sort(random.random((4, 200))), random.random((4, 300))
        cases.append((case, rbc.resample(*case).tobytes()))

    def work(turn):
        for i in range(40):
            case, expected = cases[(turn + i) % len(cases)]
            assert rbc.resample(*case).tobytes() == expected
            with pytest.raises(ValueError, match=rf"max_gap: is -{turn + 1}, "):
                rbc.resample(*case, max_gap=-(turn + 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))  # raises what a thread raised


def test_a_context_in_use_by_another_thread_is_refused():
    context = rbc.Context("cpu", threads=2)
    points = np.zeros((200_000, 3), np.float32)
    grid = {"origin": (0, 0, 0), "voxel_size": 1, "shape": (64, 64, 64)}
    refused = threading.Event()

    def work(_):
        deadline = time.monotonic() + 30
        while not refused.is_set():
            try:
                rbc.voxelize(points, **grid, reduction="count", backend=context)
                assert time.monotonic() < deadline, "no call was refused"
            except rbc.RoboCacheError as error:
                assert error.status == rbc.Status.UNSUPPORTED
                assert "in use by another thread" in str(error)
                refused.set()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, range(2)))  # raises what a thread raised
    assert refused.is_set()
    assert rbc.voxelize(points[:1], **grid, backend=context).sum() == 1


@pytest.mark.parametrize("fused", [False, True])
def test_the_gil_is_released_during_a_call(fused):
    """With no forced switching, another thread can run only where this one lets go of the GIL."""
    values = np.zeros((8, 2000, 64), np.float32)
    times, queries = np.arange(2000.0), np.linspace(0, 1999, 4000)
    out = np.empty((8, 4000, 64), np.float32)
    stream = rbc.Stream(values, times)
    gate, ran = threading.Lock(), threading.Event()

    def call():
        if fused:
            rbc.fuse([stream], queries, out=out)
        else:
            rbc.resample(values, times, queries, out=out)

    gate.acquire()

    def wait_then_run():
        with gate:
            ran.set()

    other = threading.Thread(target=wait_then_run)
    other.start()
    call()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e6)
    try:
        gate.release()  # from now on it waits for the GIL
        for _ in range(2000):
            call()
            if ran.is_set():
                break
        released = ran.is_set()
    finally:
        sys.setswitchinterval(interval)
    other.join()
    assert released


# ---- forks --------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("explicit", [False, True])
def test_a_forked_child_uses_cpu_contexts_made_before(explicit):
    context = rbc.Context("cpu", threads=2) if explicit else None
    big = np.zeros((16, 1000, 64), np.float32)  # so that the threads have started
    rbc.resample(big, np.arange(1000.0), np.linspace(0, 999, 1000), backend=context)
    fork = multiprocessing.get_context("fork")
    queue = fork.Queue()
    arguments = (queue, context, VALUES, TIMES, QUERIES)
    children = [fork.Process(target=resample_in_child, args=arguments) for _ in range(3)]
    for child in children:
        child.start()
    for _ in children:
        np.testing.assert_array_equal(queue.get(timeout=60), ANSWER)
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    np.testing.assert_array_equal(rbc.resample(VALUES, TIMES, QUERIES, backend=context), ANSWER)


def test_a_spawned_child():
    spawn = multiprocessing.get_context("spawn")
    queue = spawn.Queue()
    arguments = (queue, None, VALUES, TIMES, QUERIES)
    child = spawn.Process(target=resample_in_child, args=arguments)
    child.start()
    np.testing.assert_array_equal(queue.get(timeout=120), ANSWER)
    child.join(60)
    assert child.exitcode == 0


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_torch_data_loader_with_workers():
    torch = pytest.importorskip("torch")
    from torch.utils.data import DataLoader, Dataset

    class Windows(Dataset):
        def __len__(self):
            return 24

        def __getitem__(self, index):
            values = torch.arange(400.0).reshape(50, 8) + index
            times = torch.arange(50, dtype=torch.float64)
            return rbc.resample(values, times, [0.5, 1.5, 48.25])

    expected = torch.stack([Windows()[i] for i in range(24)])
    loader = DataLoader(Windows(), batch_size=4, num_workers=2, multiprocessing_context="fork")
    assert torch.equal(torch.cat(list(loader)), expected)


# ---- closing during a call, and what is refused by name ------------------------------------------


def test_closing_during_a_call_lets_it_complete():
    """Run in a separate process, since reading freed memory would end it."""
    code = """
import threading, time, numpy as np, robocache as rbc

class Closer:
    def __init__(self, array, context):
        self.array, self.context = array, context
    def __dlpack_device__(self):
        return 1, 0
    def __dlpack__(self, **options):
        self.context.close()
        return self.array.__dlpack__()

values, times = np.ones((1000, 3), np.float32), np.arange(1000.0)
for _ in range(50):
    context = rbc.Context("cpu", threads=2)
    assert (rbc.resample(values, Closer(times, context), times, backend=context) == 1).all()
    assert repr(context) == "<robocache.Context cpu, closed>"

values, times = np.zeros((200000, 8), np.float32), np.arange(200000.0)
def work(context):
    try:
        while True:
            rbc.resample(values, times, times, backend=context)
    except ValueError as error:
        assert str(error) == "context: is closed"
for _ in range(10):
    context = rbc.Context("cpu", threads=2)
    thread = threading.Thread(target=work, args=(context,))
    thread.start()
    time.sleep(0.02)
    context.close()
    thread.join()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_closing_gives_the_threads_back():
    def count():
        return len(os.listdir("/proc/self/task"))

    before = count()
    with rbc.Context("cpu", threads=4) as context:
        context.warm_up()
        assert count() > before
    assert count() == before


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"threads": 2**40}, ValueError, "threads: is 1099511627776, expected 1 or more, up to"),
        ({"threads": "2"}, TypeError, "threads: is '2', expected an int"),
        ({"threads": 2.5}, TypeError, "threads: is 2.5, expected an int"),
        ({"simd": []}, ValueError, r"simd: is \[\], expected one of 'auto'"),
        ({"stream": 2**70}, ValueError, "stream: is 1180591620717411303424, expected a handle"),
        ({"stream": -1}, ValueError, "stream: is -1, expected a handle in 64 bits"),
    ],
)
def test_refused_by_name(options, error, message):
    with pytest.raises(error, match=f"^{message}"):
        rbc.Context("cpu", **options)


def test_pickling_is_refused():
    context = rbc.Context("cpu")
    for make in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="^context: cannot be pickled or copied"):
            make(context)
