"""The command line as a process: terminals, pipes, signals, full disks, missing packages."""

from __future__ import annotations

import errno
import json
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

import recordings_with_faults as faults  # noqa: E402

COMMANDS = (
    "inspect",
    "sync",
    "stats",
    "resample",
    "windows",
    "voxelize",
    "cloud",
    "report",
    "info",
)


def robocache(*arguments, before="", **options):
    """Run it, after some Python of a test; without a terminal, and with no colours forced."""
    code = f"import sys; from robocache.cli import main\n{before}\nsys.exit(main(sys.argv[1:]))"
    environment = {k: v for k, v in os.environ.items() if k not in ("FORCE_COLOR", "NO_COLOR")}
    environment.update(options.pop("environment", {}))
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        env=environment,
        timeout=120,
        **options,
    )


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    """A recording with a gap, in a folder with spaces and letters of many kinds."""
    folder = tmp_path_factory.mktemp("données du robot")
    streams = [faults.FAULTS["gaps"](), faults.stream("/ñ/схват", seed=3)]
    return faults.save(folder / "vol 1 – δοκιμή.npz", *streams)


def check_one_line(run, *words):
    assert run.returncode == 1, run.stderr
    assert run.stderr.startswith("robocache: error: ") and run.stderr.count("\n") == 1
    for word in words:
        assert str(word) in run.stderr


# ---- as a command -------------------------------------------------------------------------------


def test_the_module_and_the_script_are_the_same(bad):
    run = subprocess.run(
        [sys.executable, "-m", "robocache", "inspect", bad, "--json"],
        capture_output=True,
        encoding="utf-8",
    )
    assert run.returncode == 0 and run.stdout == robocache("inspect", bad, "--json").stdout
    scripts = metadata.distribution("robocache").entry_points
    assert [s.value for s in scripts if s.name == "robocache"] == ["robocache.cli:main"]


def test_exit_codes(bad, tmp_path):
    assert robocache("inspect", bad).returncode == 0
    assert robocache("inspect", bad, "--check").returncode == 1
    for usage in (["inspect"], ["inspect", bad, "--nothing"], ["fly"], ["report", bad]):
        assert robocache(*usage).returncode == 2, usage
    check_one_line(robocache("inspect", tmp_path / "nothing"), "nothing: does not exist")
    assert robocache("--version").stdout == f"robocache {metadata.version('robocache')}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_and_a_word_on_each_option(command):
    run = robocache(command, "--help", environment={"COLUMNS": "100"})
    assert run.returncode == 0 and f"Example: robocache {command}" in run.stdout
    assert "--json" in run.stdout
    for line in run.stdout.splitlines():
        found = re.match(r"│ [* ]*(--[a-z-]+)(.*)│", line)
        if found:
            assert re.search(r"[a-z]{2,}", found[2]), line


def test_the_help_lists_the_commands():
    shown = robocache("--help").stdout
    for command in COMMANDS:
        assert re.search(rf"^│ {command} ", shown, re.M), command


def test_debug_shows_where_it_happened(tmp_path):
    missing = tmp_path / "nothing"
    for arguments in (["--debug", "inspect", missing], ["inspect", missing, "--debug"]):
        run = robocache(*arguments)
        assert run.returncode == 1
        assert "Traceback" in run.stderr and "FileNotFoundError" in run.stderr
    assert "Traceback" not in robocache("inspect", missing).stderr


def test_completion(bad):
    environment = {
        "_ROBOCACHE_COMPLETE": "complete_bash",
        "COMP_WORDS": "robocache ins",
        "COMP_CWORD": "1",
    }
    assert robocache(environment=environment).stdout.split() == ["inspect"]
    environment["COMP_WORDS"], environment["COMP_CWORD"] = "robocache inspect --max", "2"
    assert robocache(environment=environment).stdout.split() == ["--max-gap"]


# ---- terminals and pipes ------------------------------------------------------------------------


def on_a_terminal(*arguments, before="", environment=None):
    """What a terminal of 80 columns shows, and the exit code."""
    pty = pytest.importorskip("pty")
    code = f"import sys; from robocache.cli import main\n{before}\nsys.exit(main(sys.argv[1:]))"
    child, shown = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS="80", **(environment or {}))
        os.environ.pop("FORCE_COLOR", None)
        os.execv(sys.executable, [sys.executable, "-c", code, *map(str, arguments)])
    text = b""
    while True:
        try:
            part = os.read(shown, 65536)
        except OSError as error:
            assert error.errno == errno.EIO
            break
        if not part:
            break
        text += part
    _, status = os.waitpid(child, 0)
    os.close(shown)
    return text.decode(), os.waitstatus_to_exitcode(status)


def test_colours_on_a_terminal_alone(bad):
    text, code = on_a_terminal("inspect", bad, environment={"NO_COLOR": ""})
    assert code == 0 and "\x1b[33m" in text and "\x1b[1m" in text
    plain, _ = on_a_terminal("inspect", bad, environment={"NO_COLOR": "1"})
    assert "\x1b[33m" not in plain
    run = robocache("inspect", bad)
    assert "\x1b" not in run.stdout + run.stderr
    assert "\x1b" not in robocache("inspect", bad, "--json").stdout


NASTY = "\x1b[31mred\x1b]0;pwn\x07 \x9b2J \u202egnp"


def test_names_in_files_do_not_steer_the_terminal(tmp_path):
    """Neither by escapes nor by C1 controls, on a terminal, in a pipe, in JSON and in errors."""
    file = tmp_path / "r.csv"
    file.write_text(f"time,{NASTY}\n" + "".join(f"{i},{i}\n" for i in range(50)))
    for command in (
        ["stats", file],
        ["stats", file, "--json"],
        ["inspect", file, "--unit", "s"],
        ["sync", file, "--a", "r:none", "--b", "r"],
    ):
        shown, _ = on_a_terminal(*command, environment={"NO_COLOR": "1"})
        piped = robocache(*command)
        for text in (shown, piped.stdout, piped.stderr):
            assert not set("\x07\x9b\u202e") & set(text), text
            assert "\x1b]" not in text and "\x1b[31mred" not in text
    assert "\\x1b[31mred\\x1b]0;pwn" in robocache("stats", file).stdout
    names = json.loads(robocache("stats", file, "--json").stdout)["streams"]["r"]["names"]
    assert names == [NASTY]


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


def test_progress_with_the_time_that_is_left_on_a_terminal_alone(bad):
    text, code = on_a_terminal("inspect", bad, before=SLOW)
    assert code == 0 and "Reading" in text
    assert re.search(r"\d+(\.\d)?/50\.0 MB", text) and re.search(r"\d:\d\d:\d\d", text)
    run = robocache("inspect", bad, before=SLOW)
    assert run.returncode == 0 and run.stderr == "" and "Reading" not in run.stdout


def test_json_is_strict(bad):
    run = robocache("inspect", bad, "--json")

    def refuse(word):
        raise AssertionError(word)

    json.loads(run.stdout, parse_constant=refuse)


def test_a_pipe_that_closes_is_no_traceback(bad):
    code = "import sys; from robocache.cli import main; sys.exit(main(sys.argv[1:]))"
    run = subprocess.Popen(
        [sys.executable, "-c", code, "stats", str(bad), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    run.stdout.close()
    words = run.stderr.read().decode()
    assert run.wait(60) in (0, 1) and "Traceback" not in words and "Exception" not in words


def test_names_that_the_terminal_cannot_show(bad):
    run = robocache("inspect", bad, environment={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert run.returncode == 0 and "\\u0441" in run.stdout


# ---- what is missing ----------------------------------------------------------------------------


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_without_typer_or_rich_the_extra_is_named(bad, package):
    block = f"sys.modules['{package}'] = None"
    run = robocache("inspect", bad, before=block)
    check_one_line(run, package, "pip install 'robocache[cli]'")
    info = robocache("info", before=block)
    assert info.returncode == 0 and info.stdout.startswith("RoboCache ")


def test_a_reader_that_is_missing_is_named(tmp_path):
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta" / "info.json").write_text("{}")
    run = robocache("inspect", tmp_path, before="sys.modules['pyarrow'] = None")
    check_one_line(run, "pip install 'robocache[lerobot]'")
    run = robocache(
        "report", tmp_path, "--rerun", tmp_path / "x.rrd", before="sys.modules['rerun'] = None"
    )
    assert run.returncode == 1


# ---- nothing half-written -----------------------------------------------------------------------

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


# When what is being written is about to get its name, a signal arrives.
INTERRUPTED = """
import os, signal, robocache._writing as writing
def arrive(part):
    assert os.path.lexists(part)
    os.kill(os.getpid(), signal.{signal})
    import time; time.sleep(5)
writing._sync = arrive
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
    """Nothing can be cleaned up then, but what has the name is whole."""
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


# The disk fails when what was written is about to be made safe on it.
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
    """Whatever ends ``stats -o`` while it writes."""
    target = tmp_path / "stats.json"
    command = ["stats", bad, "--write", "lerobot", "-o", target]
    assert robocache(*command).returncode == 0
    before = target.read_bytes()
    arrive = f"import os, signal\nos.fsync = lambda _: os.kill(os.getpid(), signal.{name})\n"
    run = robocache(*command, "--overwrite", before=arrive)
    assert run.returncode in (-signal.SIGKILL, 143), run.stderr
    assert target.read_bytes() == before


@pytest.mark.parametrize("kind", WRITERS)
def test_a_full_disk(bad, tmp_path, kind):
    """A limit on the size of files in its place: the error of the system is another one."""

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    run = robocache(*command_to(kind, bad, tmp_path), preexec_fn=limit)
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
    """As the terminal sends it, to a process that waits for its data."""
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
