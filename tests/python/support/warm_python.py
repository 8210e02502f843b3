"""Python code in a process that begins with the command line imported, without waiting for that.

One process imports it and what most sources are read with, and forks for each call. What a call
changes, such as attributes of modules, the next one does not see. Another process imports only
``robocache``, for code that must find a package missing.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
import traceback

import forked
from child_processes import environment as environment_of_children

COMMANDS, LIBRARY = "commands", "library"


def run(code, *arguments, environment=None, folder=None, input=b"", seconds=120, imported=COMMANDS):
    """Run code with ``sys.argv[1:]``; return its exit code, and the bytes of its output and errors.

    ``environment``: all of it, by default the environment of this process. Not for variables that
    Python reads when it starts. ``imported``: what the code finds imported, COMMANDS or LIBRARY.
    """
    request = _request(code, arguments, environment, folder)
    with (
        tempfile.TemporaryFile() as source,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as errors,
    ):
        source.write(input)
        source.seek(0)
        files = [source.fileno(), out.fileno(), errors.fileno()]
        status = _process(imported).call(request, files, seconds)
        out.seek(0)
        errors.seek(0)
        return status, out.read(), errors.read()


def on_a_terminal(code, *arguments, environment):
    """Run code as `run` does, on a terminal; return its exit code, and the bytes that it shows."""
    ours, theirs = os.openpty()
    content = bytearray()

    def read():
        with contextlib.suppress(OSError):  # EIO: no process has it open
            while part := os.read(ours, 1 << 16):
                content.extend(part)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        request = {**_request(code, arguments, environment, None), "terminal": True}
        status = _process(COMMANDS).call(request, [theirs] * 3, 120)
    finally:
        os.close(theirs)
        reader.join()
        os.close(ours)
    return status, bytes(content)


def _request(code, arguments, environment, folder):
    return {
        "code": code,
        "argv": ["-c", *map(str, arguments)],
        "environment": dict(os.environ if environment is None else environment),
        "folder": os.getcwd() if folder is None else str(folder),
    }


class _Process:
    def __init__(self, imported):
        self.channel, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno()), imported],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                env=environment_of_children(),
                start_new_session=True,  # so that it can be killed together with a call
            )

    def call(self, request, files, seconds):
        content = json.dumps(request).encode()
        self.channel.settimeout(seconds)
        socket.send_fds(self.channel, [len(content).to_bytes(8, "big")], files)
        self.channel.sendall(content)
        try:
            answer = self.channel.recv(64)
        except TimeoutError:
            os.killpg(self.process.pid, signal.SIGKILL)
            _process.cache_clear()
            raise
        finally:
            self.channel.settimeout(None)
        if not answer:
            _process.cache_clear()
            raise RuntimeError(f"the process of {__file__} ended with {self.process.wait()}")
        return int(answer)


@functools.cache
def _process(imported):
    return _Process(imported)


# ---- in that process ----------------------------------------------------------------------------


def _serve(channel):
    """Fork for each call that arrives."""
    while True:
        size, files, _, _ = socket.recv_fds(channel, 8, 3)
        if not size:
            return
        content = bytearray()
        while len(content) < int.from_bytes(size, "big"):
            content += channel.recv(1 << 16)
        child = os.fork()
        if child == 0:
            channel.close()
            for standard, file in enumerate(files):
                os.dup2(file, standard)
                os.close(file)
            _run(json.loads(content))
        for file in files:
            os.close(file)
        _, status = os.waitpid(child, 0)
        channel.send(str(os.waitstatus_to_exitcode(status)).encode())


def _end(status):
    """End a child as Python ends, except that nothing is freed."""
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            status = 120  # as Python does
    os._exit(status)


def _run(call):
    """Run the code of a call as ``python -c`` does, and end the process."""
    os.chdir(call["folder"])
    os.environ.clear()
    os.environ.update(call["environment"])
    if "terminal" in call:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        for file, name in enumerate(("stdout", "stderr"), 1):  # a terminal cannot seek
            errors = getattr(sys, name).errors
            stream = open(file, "w", buffering=1, encoding="utf-8", errors=errors, closefd=False)
            setattr(sys, name, stream)
    sys.argv[:] = call["argv"]
    sys.path[0] = ""
    status = 0
    try:
        exec(compile(call["code"], "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        status = end.code or 0
        if not isinstance(status, int):
            print(status, file=sys.stderr)
            status = 1
    except BaseException:
        traceback.print_exc()
        status = 1
    _end(status)


if __name__ == "__main__":
    if sys.argv[2] == COMMANDS:
        forked.import_commands()
    else:
        forked.import_all(["robocache", "robocache.data"])
    _serve(socket.socket(fileno=int(sys.argv[1])))
