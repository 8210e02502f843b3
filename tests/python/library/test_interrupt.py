"""Ctrl-C in calls that would take minutes, each in a separate process."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest

_START = """
import faulthandler, os, signal, sys, threading, time
import numpy as np
import robocache as rbc
from numpy.lib.stride_tricks import as_strided
faulthandler.dump_traceback_later(60, exit=True)
signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background ignores it
context = rbc.Context("cpu", threads={threads})
many = 1 << 40

def small():
    assert rbc.resample([[0.0], [2.0]], [0.0, 1.0], [0.5], backend=context).tolist() == [[1.0]]

def endless_check():
    times = as_strided(np.zeros(1), (many,), (0,))
    values = as_strided(np.zeros(1, np.float32), (many, 1), (0, 0))
    rbc.resample(values, times, np.zeros(1), backend=context)

def long_fuse():
    values = as_strided(np.zeros(4, np.float32), (100_000, 3, 4), (0, 4, 4))
    queries = as_strided(np.zeros(1), (100_000, 1000), (0, 0))
    rbc.fuse([rbc.Stream(values, [0.0, 1.0, 2.0], method="slerp")], queries, backend=context)

def long_tsdf():
    points = as_strided(np.ones(3, np.float32), (200_000_000, 3), (0, 4))
    rbc.voxelize_tsdf(points, [9, 9, 9], origin=(0, 0, 0), voxel_size=0.1, shape=(100, 100, 100),
                      truncation=1, carve=True, backend=context)

def long_rotations():
    rotations = as_strided(np.ones(4, np.float32), (30_000, 20_000, 4), (0, 0, 4))
    rbc.convert_rotations(rotations, "quat_xyzw", "euler_xyz", backend=context)

def long_voxelize():
    points = as_strided(np.ones(3, np.float32), (20_000_000, 3), (0, 4))
    features = as_strided(np.ones(1, np.float32), (20_000_000, 2000), (0, 0))
    rbc.voxelize(points, features, reduction="sum", origin=(0, 0, 0), voxel_size=1, shape=(3, 3, 3),
                 backend=context)

samples = as_strided(np.ones(2, np.float32), (1 << 38, 2), (0, 4))

def long_statistics():
    rbc.statistics(samples, quantiles=(), backend=context)

def long_update():
    accumulator = rbc.StatisticsAccumulator(2, backend=context)
    try:
        accumulator.update(samples)
    finally:
        try:
            accumulator.result()
        except ValueError as error:
            assert "added only some of its samples" in str(error), error
        else:
            raise AssertionError("an interrupted update left a usable state")
"""


def start(script: str, threads: int = 1) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", _START.replace("{threads}", str(threads)) + script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def seconds_until_end(process: subprocess.Popen[str], signals: int = 1) -> float:
    """From the last of some signals; the process says when its call begins."""
    assert process.stdout is not None
    assert process.stdout.readline() == "calls\n"
    for _ in range(signals):
        time.sleep(0.2)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
    sent = time.monotonic()
    ended(process)
    return time.monotonic() - sent


def ended(process: subprocess.Popen[str]) -> None:
    """Wait for a process, and check that it worked on after the interrupt."""
    try:
        out, err = process.communicate(timeout=90)
    finally:
        process.kill()
    assert (process.returncode, out) == (0, "works on\n"), err


_ENDED = """
print("calls", flush=True)
try:
    {call}()
except KeyboardInterrupt:
    ended = time.monotonic()
    small()
    print("works on", flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("call", ["endless_check", "long_fuse", "long_voxelize"])
def test_ctrl_c_ends_a_call(call: str, threads: int) -> None:
    assert seconds_until_end(start(_ENDED.replace("{call}", call), threads)) < 1


@pytest.mark.parametrize("call", ["long_tsdf", "long_rotations", "long_statistics", "long_update"])
def test_ctrl_c_ends_other_calls(call: str) -> None:
    assert seconds_until_end(start(_ENDED.replace("{call}", call))) < 1


def test_handlers_of_the_program_run_during_a_call() -> None:
    script = """
caught = []
def handler(number, frame):
    caught.append(number)
    assert rbc.resample([[0.0], [2.0]], [0.0, 1.0], [0.5]).tolist() == [[1.0]]
    try:
        small()
    except rbc.RoboCacheError as error:
        caught.append(error.status)
    if len(caught) >= 4:
        raise KeyError("enough")
signal.signal(signal.SIGINT, handler)
print("calls", flush=True)
try:
    endless_check()
except KeyError as error:
    assert error.args == ("enough",)
    assert caught == [signal.SIGINT, rbc.Status.UNSUPPORTED] * 2, caught
    small()
    print("works on", flush=True)
os._exit(0)
"""
    assert seconds_until_end(start(script, 2), signals=2) < 1


def test_calls_of_other_threads_go_on() -> None:
    script = """
def other():
    done = threading.Event()
    def run():
        times = as_strided(np.zeros(1), (1 << 30,), (0,))
        values = as_strided(np.zeros(1, np.float32), (1 << 30, 1), (0, 0))
        rbc.resample(values, times, np.zeros(1), backend=rbc.Context("cpu", threads=1))
        done.set()
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return done
done = other()
print("calls", flush=True)
try:
    done.wait()
except KeyboardInterrupt:
    assert not done.is_set()
    assert done.wait(60)
    small()
    print("works on", flush=True)
os._exit(0)
"""
    seconds_until_end(start(script))


def test_a_large_state_is_exported() -> None:
    """The copy checks for signals, in a thread that must not hold the GIL."""
    script = """
accumulator = rbc.StatisticsAccumulator(150, [0.5], backend=context)
accumulator.update(np.zeros((3, 150), np.float32))
again = rbc.StatisticsAccumulator.from_bytes(accumulator.to_bytes(), backend=context)
assert again.result().count.tolist() == [3] * 150
print("works on", flush=True)
os._exit(0)
"""
    ended(start(script))


def test_a_forked_child_can_be_interrupted() -> None:
    script = """
small()
def fork_and_call():
    child = os.fork()
    if child == 0:
        try:
            endless_check()
        except KeyboardInterrupt:
            small()
            os._exit(7)
        os._exit(1)
    return child
children = []
thread = threading.Thread(target=lambda: children.append(fork_and_call()))
thread.start()
thread.join()
time.sleep(0.5)
os.kill(children[0], signal.SIGINT)
sent = time.monotonic()
assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 7
assert time.monotonic() - sent < 1
print("works on", flush=True)
os._exit(0)
"""
    ended(start(script, 2))
