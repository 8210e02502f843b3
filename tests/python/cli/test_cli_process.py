"""The command line as a process: terminals, pipes, missing packages."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import metadata

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

import cli_process  # noqa: E402
from cli_process import SLOW, check_one_line, on_a_terminal, robocache  # noqa: E402

COMMANDS = (
    "inspect",
    "sync",
    "stats",
    "resample",
    "windows",
    "voxelize",
    "cloud",
    "report",
    "demo-data",
    "formats",
    "info",
)


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    return cli_process.with_a_gap(tmp_path_factory.mktemp("données du robot"))


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
    options = run.stdout.partition("Options:\n")[2].partition("\n\n")[0]
    entries = re.split(r"(?m)^  (?=-)", options)[1:]
    assert entries
    for entry in entries:
        assert re.search(r"\s{2,}[A-Za-z].*[a-z]{2,}", entry), entry


def test_the_help_lists_the_commands():
    shown = robocache("--help").stdout
    for command in COMMANDS:
        assert re.search(rf"^  {command} ", shown, re.M), command


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
    environment["COMP_WORDS"], environment["COMP_CWORD"] = "robocache inspect --max-g", "2"
    assert robocache(environment=environment).stdout.split() == ["--max-gap"]


# ---- terminals and pipes ------------------------------------------------------------------------


def test_colours_on_a_terminal_only(bad):
    text, code = on_a_terminal("inspect", bad, environment={"NO_COLOR": ""})
    assert code == 0 and "\x1b[33m" in text and "\x1b[1m" in text
    plain, _ = on_a_terminal("inspect", bad, environment={"NO_COLOR": "1"})
    assert "\x1b[33m" not in plain
    run = robocache("inspect", bad)
    assert "\x1b" not in run.stdout + run.stderr
    assert "\x1b" not in robocache("inspect", bad, "--json").stdout


NASTY = "\x1b[31mred\x1b]0;pwn\x07 \x9b2J \u202egnp"


def test_names_in_files_do_not_steer_the_terminal(tmp_path):
    """Escapes and C1 controls are harmless on a terminal, in a pipe, in JSON and in errors."""
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


def test_progress_with_the_time_left_on_a_terminal_only(bad):
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
    run = robocache("inspect", bad, started=True,
                    environment={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})  # fmt: skip
    assert run.returncode == 0 and "\\u0441" in run.stdout


# ---- what is missing ----------------------------------------------------------------------------


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_without_typer_or_rich_the_extra_is_named(bad, package):
    run = robocache("inspect", bad, missing=package)
    check_one_line(run, package, "pip install 'robocache[cli]'")
    info = robocache("info", missing=package)
    assert info.returncode == 0 and info.stdout.startswith("RoboCache ")


def test_a_reader_that_is_missing_is_named(tmp_path):
    (tmp_path / "meta").mkdir()
    (tmp_path / "meta" / "info.json").write_text("{}")
    run = robocache("inspect", tmp_path, missing="pyarrow")
    check_one_line(run, "pip install 'robocache[lerobot]'")
    run = robocache("report", tmp_path, "--rerun", tmp_path / "x.rrd", missing="rerun")
    assert run.returncode == 1
