"""The command line in a separate process, for tests."""

from __future__ import annotations

import os
import subprocess
import sys

import recordings_with_faults as faults
import warm_python


def robocache(*arguments, before="", missing=None, started=False, cwd=None, **options):
    """Run it, after some Python of a test; without a terminal, and with no colours forced.

    ``missing``: a package that cannot be imported. ``started``: in a Python that has imported
    nothing, as one that starts.
    """
    if missing is not None:
        before = f"sys.modules[{missing!r}] = None"
    code = f"import sys; from robocache.cli import main\n{before}\nsys.exit(main(sys.argv[1:]))"
    environment = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "NO_COLOR")}
    environment.update(options.pop("environment", {}))
    if not started and not options:
        imported = warm_python.COMMANDS if missing is None else warm_python.LIBRARY
        status, *texts = warm_python.run(
            code, *arguments, environment=environment, folder=cwd, imported=imported
        )
        return subprocess.CompletedProcess(arguments, status, *(text.decode() for text in texts))
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        cwd=cwd,
        env=environment,
        timeout=120,
        **options,
    )


def on_a_terminal(*arguments, before="", environment=None):
    """Return the output on a terminal of 80 columns, and the exit code."""
    code = f"import sys; from robocache.cli import main\n{before}\nsys.exit(main(sys.argv[1:]))"
    variables = {k: v for k, v in os.environ.items() if k != "FORCE_COLOR"}
    variables.update(TERM="xterm-256color", COLUMNS="80", **(environment or {}))
    status, text = warm_python.on_a_terminal(code, *arguments, environment=variables)
    return text.decode(), status


def with_a_gap(folder):
    """A recording with a gap; letters of many kinds are in its names."""
    streams = [faults.FAULTS["gaps"](), faults.stream("/ñ/схват", seed=3)]
    return faults.save(folder / "vol 1 – δοκιμή.npz", *streams)


def check_one_line(run, *words):
    assert run.returncode == 1, run.stderr
    assert run.stderr.startswith("robocache: error: ") and run.stderr.count("\n") == 1
    for word in words:
        assert str(word) in run.stderr


# Before the command: reading takes half a second, and shows how far it is at once.
SLOW = """
import time, robocache.data._progress as progress
from robocache import data
progress._LATE = 0.0
def pieces(self, names=None):
    with progress.progress("Reading", 50_000_000, None) as read:
        for k in range(10):
            time.sleep(0.05)
            read(5_000_000)
    for name in self.names:
        stream = self[name]
        yield data.Piece(name, stream.names, stream.values, stream.clocks)
data.Recording.pieces = pieces
"""
