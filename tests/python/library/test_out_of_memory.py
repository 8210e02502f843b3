"""Memory that gives out at any point of a call: MemoryError, and no crash or SystemError."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SHIM = Path(__file__).parent / "failing_malloc.c"

# Fails each allocation of a call in turn, of Python's objects too, until the call needs no more.
CODE = """
import ctypes, sys
import numpy as np
import robocache as rbc
from robocache import _core
from robocache._arguments.frameworks import DTYPES, OwnedTensor, facts_of

shim = ctypes.CDLL(None)
fail, stop = shim.fail_allocations, shim.stop_failing
fail.argtypes, fail.restype, stop.restype = [ctypes.c_long] * 2, None, ctypes.c_long

class Producer:
    def __init__(self, array):
        self.array = array
    def __dlpack_device__(self):
        return 1, 0
    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

def refused(error, operation, *arguments, **options):
    try:
        operation(*arguments, **options)
    except error:
        pass

def owned():
    tensor = OwnedTensor(context, DTYPES["float64"], (2, 2))
    tensor.__dlpack__(), np.from_dlpack(tensor)

values, times, queries = np.arange(8.0).reshape(4, 2), np.arange(4.0), np.array([0.5, 2.25])
points = np.array([[0.5, 0.5, 0.5], [1.5, 0.5, 0.5]])
grid = dict(origin=(0, 0, 0), voxel_size=1.0, shape=(2, 2, 2))
out = np.zeros((2, 2))
stream = rbc.Stream(values, times, method=[(0, 1, "linear"), (1, 1, "nearest")], mean=np.zeros(2))
context = rbc.Context("cpu")
structs = (
    *("ContextParams", "ContextInfo", "ResampleParams", "FuseParams"),
    *("VoxelizeParams", "VoxelizeTsdfParams"),
)
calls = {
    "a context": lambda: rbc.Context("cpu", threads=3).close(),
    "workspace": lambda: rbc.Context("cpu").reserve(1000),
    "facts": lambda: context.info,
    "versions": _core.rbc_get_version,
    "structs": lambda: [assert_made(getattr(_core, "new_" + name)()) for name in structs],
    "resample": lambda: rbc.resample(
        values, times, queries, mean=[0, 0], std=[1, 1], return_valid=True
    ),
    "DLPack": lambda: rbc.resample(Producer(values), Producer(times), queries, out=out),
    "a tensor": lambda: facts_of(Producer(values), "values", context),
    "an owned tensor": owned,
    "a stream": lambda: rbc.Stream(values, times, std=np.ones(2), clock_offset=0.5),
    "fuse": lambda: rbc.fuse([stream, stream], queries, return_valid=True),
    "voxelize": lambda: rbc.voxelize(
        points, reduction="mean", return_num_points_outside=True, **grid
    ),
    "voxelize_sparse": lambda: rbc.voxelize_sparse(points, max_points=3, **grid),
    "voxelize_tsdf": lambda: rbc.voxelize_tsdf(points, [0, 0, 0], truncation=1.0, **grid),
    "a wrong value": lambda: refused(ValueError, rbc.resample, values, times, queries, max_gap=-1),
    "no array": lambda: refused(TypeError, rbc.resample, values, times, 3),
    "no such device": lambda: refused(rbc.RoboCacheError, rbc.Context, "cuda:99"),
}

def assert_made(struct):
    assert struct is not None

def lost_by_python(error):
    # CPython 3.11 drops an exception where it gets no memory to unwind the stack, in any program.
    # A mistake of the extension is reported for a built-in function.
    return isinstance(error, SystemError) and "<built-in " not in str(error)

wrong, refusals = [], 0
for name, call in calls.items():
    call()
    for n in range(2000):
        error = None
        try:
            fail(n, 1)
            call()
        except BaseException as raised:
            error = raised
        hit = stop()
        refusals += hit
        if error and not isinstance(error, MemoryError) and not lost_by_python(error):
            wrong.append(f"{name}, allocation {n}: {error!r}")
        if not hit:
            break
    else:
        wrong.append(f"{name}: never came to its end")
print(refusals, *wrong, sep="\\n")
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    compiler = os.environ.get("CC") or shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler for memory that gives out")
    library = tmp_path_factory.mktemp("memory") / "failing_malloc.so"
    command = [*compiler.split(), "-shared", "-fPIC", "-O1", str(SHIM), "-o", str(library)]
    subprocess.run(command, check=True)
    return library


def test_memory_that_gives_out_anywhere(shim):
    environment = {**os.environ, "LD_PRELOAD": str(shim), "PYTHONMALLOC": "malloc"}
    run = subprocess.run(
        [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, timeout=250
    )
    assert run.returncode == 0, run.stderr[-2000:]
    refusals, *wrong = run.stdout.splitlines()
    assert int(refusals) > 300
    assert not wrong, "\n".join(wrong)
