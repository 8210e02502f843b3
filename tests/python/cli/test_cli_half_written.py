"""Interrupted commands and unwritable outputs: no half-written file remains."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

import cli_process  # noqa: E402
from cli_process import SLOW, check_one_line, robocache  # noqa: E402


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    return cli_process.with_a_gap(tmp_path_factory.mktemp("données du robot"))


WRITERS = {
    "npz": ["resample", "--rate", "50", "-o", "out.npz"],
    "zarr": ["resample", "--rate", "50", "-o", "out.zarr"],
    "lerobot": ["resample", "--rate", "50", "-o", "out"],
    "html": ["report", "--html", "out.html"],
}
PACKAGES = {"zarr": "zarr", "lerobot": "pyarrow"}


def command_to(kind, source, folder):
    command, *rest = WRITERS[kind]
    pytest.importorskip(PACKAGES.get(kind, "numpy"))
    return [command, source, *rest[:-1], folder / rest[-1]]


# The signal arrives just before the temporary file is renamed.
INTERRUPTED = """
import os, signal, robocache._files.atomic_write as writing
def arrive(part):
    assert os.path.lexists(part)
    os.kill(os.getpid(), signal.{signal})
    import time; time.sleep(5)
writing.sync_tree = arrive
"""


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_leaves_nothing(bad, tmp_path, kind, name, code):
    before = INTERRUPTED.format(signal=name)
    run = robocache(*command_to(kind, bad, tmp_path), before=before)
    assert run.returncode == code, run.stderr
    assert list(tmp_path.iterdir()) == [] and "Traceback" not in run.stderr
    if name == "SIGINT":
        assert run.stderr == "robocache: interrupted\n"


@pytest.mark.parametrize("kind", WRITERS)
def test_a_signal_leaves_what_was_there(bad, tmp_path, kind):
    command = command_to(kind, bad, tmp_path)
    target = command[-1]
    target.write_text("precious")
    run = robocache(*command, "--overwrite", before=INTERRUPTED.format(signal="SIGINT"))
    assert run.returncode == 130
    assert target.read_text() == "precious" and list(tmp_path.iterdir()) == [target]
    check_one_line(robocache(*command), target.name, "exists", "--overwrite replaces it")


@pytest.mark.parametrize("kind", ["npz", "zarr"])
def test_a_killed_process_leaves_what_was_there(bad, tmp_path, kind):
    """The process cannot clean up, but a file with the final name is complete."""
    command = command_to(kind, bad, tmp_path)
    target = command[-1]
    assert robocache(*command).returncode == 0
    before = contents(target)
    run = robocache(*command, "--overwrite", before=INTERRUPTED.format(signal="SIGKILL"))
    assert run.returncode == -signal.SIGKILL
    assert contents(target) == before
    left = [path for path in tmp_path.iterdir() if path != target]
    assert left and all(path.name.endswith(".part") for path in left)


def contents(path):
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    return {str(file): file.read_bytes() for file in files}


# The disk fails when the written file is flushed to it.
FAILING_DISK = """
import errno, os
def fsync(file):
    raise OSError(errno.EIO, os.strerror(errno.EIO))
os.fsync = fsync
"""


@pytest.mark.parametrize("kind", ["npz", "zarr"])
def test_a_failing_disk(bad, tmp_path, kind):
    run = robocache(*command_to(kind, bad, tmp_path), before=FAILING_DISK)
    check_one_line(run, os.strerror(errno.EIO))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_statistics_are_the_old_ones_or_the_new_ones(bad, tmp_path, name):
    """``stats -o`` is stopped while it writes."""
    target = tmp_path / "stats.json"
    command = ["stats", bad, "--write", "lerobot", "-o", target]
    assert robocache(*command).returncode == 0
    before = target.read_bytes()
    arrive = f"import os, signal\nos.fsync = lambda _: os.kill(os.getpid(), signal.{name})\n"
    run = robocache(*command, "--overwrite", before=arrive)
    assert run.returncode in (-signal.SIGKILL, 143), run.stderr
    assert target.read_bytes() == before


# A limit on the size of files simulates it; the system reports a different error.
FULL_DISK = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
"""


@pytest.mark.parametrize("kind", WRITERS)
def test_a_full_disk(bad, tmp_path, kind):
    run = robocache(*command_to(kind, bad, tmp_path), before=FULL_DISK)
    assert run.returncode == 1 and run.stderr.startswith("robocache: error: ")
    assert "Traceback" not in run.stderr and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", WRITERS)
def test_places_that_cannot_be_written(bad, tmp_path, kind):
    places = {"npz": ["/sys", tmp_path / "not" / "there"], "html": ["/dev/null"]}
    for folder in map(Path, places.get(kind, ["/sys"])):
        run = robocache(*command_to(kind, bad, folder))
        check_one_line(run, folder)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", WRITERS)
def test_pipes_and_devices_stay(bad, tmp_path, kind):
    command = command_to(kind, bad, tmp_path)
    os.mkfifo(command[-1])
    check_one_line(robocache(*command, "--overwrite"), command[-1], "is a device, a pipe")
    assert stat.S_ISFIFO(os.stat(command[-1]).st_mode)


def test_ctrl_c_while_reading(bad):
    """The signal arrives while the process waits for its data, as from a terminal."""
    slow = SLOW.replace("time.sleep(0.05)", "print('reading', flush=True); time.sleep(60)")
    code = f"import sys; from robocache.cli import main\n{slow}\nsys.exit(main(sys.argv[1:]))"
    run = subprocess.Popen(
        [sys.executable, "-c", code, "inspect", str(bad)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert run.stdout.readline() == b"reading\n"
    begin = time.monotonic()
    run.send_signal(signal.SIGINT)
    _, words = run.communicate(timeout=30)
    assert run.returncode == 130 and words == b"robocache: interrupted\n"
    assert time.monotonic() - begin < 20
