"""Calls in forked processes, where a hang, a crash or a limit on resources harms no other call.

Fork from a process without threads: one that has only imported what the calls need.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import io
import itertools
import json
import os
import pkgutil
import resource
import select
import signal
import sys
import threading
import time

PATIENCE = 2.0  # seconds between a signal and the end of a process


def call(function, *arguments, seconds=10.0, limits=None, user=None):
    """Call a function in a separate process; return its result, or how the process ended.

    A dictionary with "result"; "error", the names of the error's classes, with "text", "number" and
    "file"; "ended", the status of a process that died; or "hung", and whether SIGTERM ended it.
    ``limits``: a function that is called before, and may lower soft limits.
    """
    return calls([(function, *arguments)], seconds, limits, user)[0]


def calls(each, seconds=10.0, limits=None, user=None):
    """Return what `call` does for each of several calls: a function and its arguments.

    One process makes them, one after the other. If it hangs or dies, another one goes on.
    """
    outcomes = []
    while len(outcomes) < len(each):
        outcomes += _outcomes(each[len(outcomes) :], seconds, limits, user)
    return outcomes


def _outcomes(each, seconds, limits, user):
    """The outcomes of the calls of one process."""
    report, write_to = os.pipe()
    gc.freeze()  # else the garbage collection of each child copies all memory
    child = os.fork()
    if child == 0:
        os.close(report)
        _answer(write_to, each, limits, user)
    os.close(write_to)
    content = bytearray()
    end = time.monotonic() + seconds
    done = False
    while not done:
        left = end - time.monotonic()
        ready, _, _ = select.select([report], [], [], max(0.0, left))
        if not ready:
            break
        part = os.read(report, 1 << 16)
        content += part
        done = not part
        if b"\n" in part:
            end = time.monotonic() + seconds
    os.close(report)
    outcomes = [json.loads(line) for line in content.split(b"\n")[:-1]]
    if not done or not _has_ended(child, PATIENCE):
        return [*outcomes[: len(each) - 1], _stopped(child)]
    status = _STATUS.pop(child)
    return outcomes if len(outcomes) == len(each) else [*outcomes, {"ended": status}]


_STATUS: dict[int, int] = {}


def _has_ended(child, seconds):
    end = time.monotonic() + seconds
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            _STATUS[child] = os.waitstatus_to_exitcode(status)
            return True
        if time.monotonic() > end:
            return False
        time.sleep(0.002)


def _stopped(child):
    os.kill(child, signal.SIGTERM)
    ended = _has_ended(child, PATIENCE)
    if not ended:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return {"hung": True, "ended by SIGTERM": ended}


def _answer(write_to, each, limits, user):
    """Ends the process as Python ends: threads are waited for."""
    with contextlib.suppress(BaseException):
        quiet = os.open(os.devnull, os.O_RDWR)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        os.close(quiet)
        if user is not None and os.geteuid() == 0:
            os.setuid(user)
        for function, *arguments in each:
            content = json.dumps(_outcome(function, arguments, limits)).encode() + b"\n"
            while content:
                content = content[os.write(write_to, content) :]
        threading._shutdown()
        atexit._run_exitfuncs()
    os._exit(0)


def _outcome(function, arguments, limits):
    before = {kind: resource.getrlimit(kind) for kind in KINDS.values()}
    try:
        try:
            if limits is not None:
                limits()
            return {"result": function(*arguments)}
        finally:
            for kind, soft_and_hard in before.items():
                resource.setrlimit(kind, soft_and_hard)
    except BaseException as error:
        number = error.errno if isinstance(error, OSError) else None
        return {"error": [kind.__name__ for kind in type(error).__mro__], "text": str(error)[:400],
                "number": number, "file": str(getattr(error, "filename", None) or "")}  # fmt: skip


# ---- limits -------------------------------------------------------------------------------------

KINDS = {
    "memory": resource.RLIMIT_AS,
    "files": resource.RLIMIT_NOFILE,
    "threads": resource.RLIMIT_NPROC,
    "file size": resource.RLIMIT_FSIZE,
}
NOBODY = 65534  # root has no limit on threads


def limited(kind, amount):
    """Return a function that limits the process to ``amount`` more bytes, files or threads."""

    def limit():
        most = amount
        if kind == "memory":
            with open("/proc/self/statm", encoding="ascii") as file:
                most += int(file.read().split()[0]) * resource.getpagesize()
        elif kind == "files":
            used = set(map(int, os.listdir("/proc/self/fd")[:-1]))
            free = (number for number in itertools.count() if number not in used)
            most = next(itertools.islice(free, amount, None))
        resource.setrlimit(KINDS[kind], (most, resource.getrlimit(KINDS[kind])[1]))

    return limit


# ---- the command line ---------------------------------------------------------------------------


def command(*arguments):
    """The exit code and the output of `robocache` in this process."""
    from robocache.cli._app import run

    out, errors = io.StringIO(), io.StringIO()
    sys.stdout, sys.stderr = out, errors
    try:
        code = run([str(argument) for argument in arguments])
    finally:
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    return [code, out.getvalue(), errors.getvalue()]


def good(each):
    """Return the result of each call without a limit, and the modules that it imported first."""
    outcomes = calls([(_with_modules, *call) for call in each], seconds=60)
    for outcome in outcomes:
        assert "result" in outcome, outcome
    return [outcome["result"] for outcome in outcomes]


def _with_modules(function, *arguments):
    before = set(sys.modules)
    result = function(*arguments)
    return [result, sorted(name for name in sys.modules.keys() - before if name[:2] != "__")]


def import_all(names):
    """Else a process that lacks memory or files fails where it imports."""
    for name in names:
        if name not in sys.modules:
            with contextlib.suppress(Exception):
                importlib.import_module(name)


READERS = ("pyarrow.parquet", "pyarrow.csv", "pandas", "h5py", "rosbags.rosbag1", "rosbags.rosbag2",
           "zarr")  # fmt: skip


def import_commands():
    """Import the modules of all commands and formats; this takes longer than most commands."""
    import robocache.cli
    from robocache import data

    for package in (robocache.cli, data):
        import_all(
            each.name for each in pkgutil.walk_packages(package.__path__, package.__name__ + ".")
        )
    import_all(READERS)
    with contextlib.suppress(ImportError):
        command("formats")  # typer imports more, and builds the commands once
    gc.freeze()  # else the garbage collection of each child copies all memory
