"""Readers of other packages: the example is used, and broken ones break nothing."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import robocache as rbc
from robocache import data
from robocache.data._formats import third_party

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "format_package"
DESCRIBED = """
from robocache import data
FORMAT = data.Format(name="odd", title="Odd", files="*.odd", reads="One stream.")
def sniff(path):
    return path.endswith(".odd")
"""


def install(folder, name, version, entries, modules):
    """Write what pip would: modules, and the metadata of a package with entry points."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = "".join(f"{entry} = {value}\n" for entry, value in entries.items())
    (info / "entry_points.txt").write_text(f"[robocache.formats]\n{lines}")
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text)
    return folder


def install_example(folder):
    """Install the example as its pyproject.toml says."""
    text = (EXAMPLE / "pyproject.toml").read_text()
    found = {key: re.search(rf'(?m)^{key} = "(.+)"$', text)[1] for key in ("name", "version")}
    section = text.partition('[project.entry-points."robocache.formats"]\n')[2].partition("\n[")[0]
    entries = dict(re.findall(r'(?m)^(\w+) = "(.+)"$', section))
    (module,) = re.findall(r'py-modules = \["(\w+)"\]', text)
    shutil.copy(EXAMPLE / f"{module}.py", install(folder, **found, entries=entries, modules={}))
    return folder


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """An empty folder of packages on the path."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    before = set(sys.modules)
    yield folder
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
            del sys.modules[name]
    importlib.invalidate_caches()


def write_log(path, rows=5, rest=b""):
    records = np.zeros(rows, [("time", "<i8"), ("values", "<f4", 6)])
    records["time"] = 10**18 + np.arange(rows) * 10**7
    records["values"] = np.arange(rows * 6).reshape(rows, 6)
    path.write_bytes(b"IMU6" + records.tobytes() + rest)
    return records


def refusal(path, **options):
    with pytest.raises(data.FormatError) as caught:
        data.open(path, **options)
    return str(caught.value)


# ---- the example --------------------------------------------------------------------------------


def test_the_example_reads_its_files(packages, tmp_path):
    install_example(packages)
    records = write_log(tmp_path / "walk.imu6")
    recording = data.open(tmp_path / "walk.imu6")
    assert isinstance(recording, data.Recording) and recording.names == ("imu",)
    assert recording.format == "IMU log" and recording.path == str(tmp_path / "walk.imu6")
    stream = recording["imu"]
    np.testing.assert_array_equal(stream.values, records["values"])
    np.testing.assert_array_equal(stream.times(), records["time"])
    assert stream.names[:2] == ("accel_x", "accel_y") and recording.unit == "ns"
    aligned = recording.align(50)
    np.testing.assert_array_equal(aligned["imu"].values[0], records["values"][0])
    assert [len(piece) for piece in recording.pieces()] == [5]
    assert recording.select(begin=records["time"][2])["imu"].values.shape == (3, 6)
    recording.save(tmp_path / "saved.npz")
    np.testing.assert_array_equal(
        data.open(tmp_path / "saved.npz")["imu"].values, records["values"]
    )


def test_damage_of_the_example(packages, tmp_path):
    install_example(packages)
    records = write_log(tmp_path / "walk.imu6", rest=b"123")
    text = refusal(tmp_path / "walk.imu6")
    assert "byte 164: is cut off" in text and "reader imu6 of robocache-imu6 0.1" in text
    kept = data.open(tmp_path / "walk.imu6", damaged="keep")
    np.testing.assert_array_equal(kept["imu"].values, records["values"])
    assert [problem.place for problem in kept.problems] == ["byte 164"]


def test_a_folder_with_one_file_of_the_example(packages, tmp_path):
    install_example(packages)
    (tmp_path / "run").mkdir()
    write_log(tmp_path / "run" / "walk.imu6")
    (tmp_path / "run" / "notes").write_text("hello\n")
    assert data.open(tmp_path / "run").names == ("imu",)
    write_log(tmp_path / "run" / "again.imu6")
    assert "holds 2 data sets. Open one of them: again.imu6, walk.imu6" in refusal(tmp_path / "run")


def test_commands_read_files_of_the_example(packages, tmp_path):
    pytest.importorskip("typer")
    pytest.importorskip("rich")
    from typer.testing import CliRunner

    from robocache.cli._app import app

    install_example(packages)
    write_log(tmp_path / "walk.imu6", rows=50)

    def run(*arguments):
        result = CliRunner().invoke(app, [str(each) for each in arguments])
        assert result.exit_code == 0, result.output
        return result.stdout

    facts = json.loads(run("inspect", tmp_path / "walk.imu6", "--json"))
    assert facts["format"] == "IMU log" and facts["streams"]["imu"]["samples"] == 50
    run("resample", tmp_path / "walk.imu6", "--rate", 50, "-o", tmp_path / "out.npz")
    last = json.loads(run("formats", "--json"))["formats"][-1]
    assert (last["name"], last["provider"]) == ("imu6", "robocache-imu6 0.1")
    assert "robocache-imu6 0.1" in run("formats") and "IMU log" in run("formats", "imu6")


def test_pip_installs_the_example(tmp_path):
    """Needs no network: pip builds with what is installed."""
    pytest.importorskip("setuptools", minversion="61")
    pytest.importorskip("pip")
    shutil.copytree(EXAMPLE, tmp_path / "source")
    folder = tmp_path / "packages"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
    command += ["--no-build-isolation", "--target", folder, tmp_path / "source"]
    subprocess.run(command, check=True, capture_output=True)
    write_log(tmp_path / "walk.imu6")
    code = (
        f"import sys; sys.path.insert(0, {str(folder)!r})\n"
        "from robocache import data\n"
        f"print(data.open({str(tmp_path / 'walk.imu6')!r}).names)"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout == "('imu',)\n"


# ---- when readers are loaded --------------------------------------------------------------------


def test_a_reader_is_not_loaded_for_other_files(tmp_path):
    pytest.importorskip("pyarrow")
    loud = "raise SystemExit('loaded')\n"
    folder = tmp_path / "packages"
    install(folder, "loud", "1.0", {"loud": "loud_reader"}, {"loud_reader": loud})
    (tmp_path / "x.csv").write_text("time_us,x\n0,1\n1,2\n")
    (tmp_path / "x.odd").write_text("hello\n")
    code = (
        f"import sys; sys.path.insert(0, {str(folder)!r})\n"
        "from robocache import data\n"
        f"assert data.open({str(tmp_path / 'x.csv')!r}).names == ('x',)\n"
        "print([name for name in sys.modules if 'third_party' in name or 'loud_reader' in name])\n"
        "try:\n"
        f"    data.open({str(tmp_path / 'x.odd')!r})\n"
        "except data.FormatError as error:\n"
        "    print(error.reason)"
    )
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    first, second = run.stdout.rstrip().split("\n")
    assert first == "[]"
    assert second.endswith("The reader loud of loud 1.0 cannot be loaded: SystemExit: loaded")


def test_formats_of_this_package_come_first(packages, tmp_path):
    pytest.importorskip("pyarrow")
    greedy = DESCRIBED.replace('path.endswith(".odd")', "1 / 0")
    greedy += "def open(path, options): ...\n"
    install(packages, "greedy", "1.0", {"greedy": "greedy_reader"}, {"greedy_reader": greedy})
    (tmp_path / "x.csv").write_text("time_us,x\n0,1\n1,2\n")
    assert data.open(tmp_path / "x.csv").format == "tables"
    (tmp_path / "x.odd").write_bytes(b"version https://git-lfs.github.com/spec/v1\nsize 12\n")
    text = refusal(tmp_path / "x.odd")
    assert "git lfs pull" in text and "greedy" not in text


# ---- readers that fail --------------------------------------------------------------------------


BROKEN = {
    "missing": ("import no_such_package_at_all\n", "cannot be loaded: ModuleNotFoundError"),
    "syntax": ("def (:\n", "cannot be loaded: SyntaxError"),
    "empty": ("", "has no function sniff"),
    "half": ("def sniff(path): return True\n", "has no function open"),
    "nameless": ("def sniff(path): return True\ndef open(path, options): ...\n", "has no FORMAT"),
    "number": (
        "FORMAT = 3\ndef sniff(path): return True\ndef open(path, options): ...\n",
        "cannot be loaded: TypeError",
    ),
    "sniffing": (
        DESCRIBED.replace('path.endswith(".odd")', "1 / 0") + "def open(path, options): ...\n",
        "failed in sniff: ZeroDivisionError: division by zero",
    ),
}


def test_readers_that_fail_do_not_stop_others(packages, tmp_path):
    for name, (text, _) in BROKEN.items():
        install(packages, f"{name}-reader", "0.3", {name: f"broken_{name}"}, {})
        (packages / f"broken_{name}.py").write_text(text)
    install(packages, "lost-reader", "0.3", {"lost": "no_such_module_at_all"}, {})
    (packages / "bad_name-1.dist-info").mkdir()
    (packages / "bad_name-1.dist-info" / "entry_points.txt").write_bytes(
        b"[robocache.formats]\n\xff"
    )
    install_example(packages)
    write_log(tmp_path / "walk.imu6")
    assert data.open(tmp_path / "walk.imu6").names == ("imu",)
    (tmp_path / "x.odd").write_text("hello\n")
    text = refusal(tmp_path / "x.odd")
    assert 'unknown format. First line: "hello"' in text
    for name, (_, expected) in BROKEN.items():
        assert f"The reader {name} of {name}-reader 0.3 {expected}" in text
    assert "reader lost of lost-reader 0.3 cannot be loaded: ModuleNotFoundError" in text


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (
            "return 1 / 0",
            data.FormatError,
            "cannot be read by the {by}: ZeroDivisionError: division",
        ),
        ("raise KeyError('x')", data.FormatError, "cannot be read by the {by}: KeyError: 'x'"),
        (
            "return {}",
            data.FormatError,
            "{by}: TypeError: open returned dict, expected a Recording",
        ),
        (
            "import no_such_package_at_all",
            ModuleNotFoundError,
            "{by}: ModuleNotFoundError: No module",
        ),
        (
            "raise data.FormatError(path, 'row 3', 'is bad')",
            data.FormatError,
            "row 3: is bad ({by})",
        ),
        ("raise PermissionError(13, 'denied', path)", PermissionError, "denied"),
        ("raise MemoryError", MemoryError, "x.odd"),
    ],
)
def test_errors_of_open_name_the_package(packages, tmp_path, body, kind, words):
    text = f"{DESCRIBED}\ndef open(path, options):\n    {body}\n"
    install(packages, "odd-reader", "2.5", {"odd": "odd_reader"}, {"odd_reader": text})
    (tmp_path / "x.odd").write_text("hello\n")
    with pytest.raises(kind) as caught:
        data.open(tmp_path / "x.odd")
    assert words.format(by="reader odd of odd-reader 2.5") in str(caught.value)
    assert str(tmp_path / "x.odd") in str(caught.value)


def test_formats_lists_readers_that_fail(packages):
    pytest.importorskip("typer")
    pytest.importorskip("rich")
    from typer.testing import CliRunner

    from robocache.cli._app import app

    install(packages, "odd-reader", "2.5", {"odd": "odd_reader"}, {"odd_reader": "1 / 0\n"})
    result = CliRunner().invoke(app, ["formats"], env={"COLUMNS": "120"})
    assert result.exit_code == 0
    assert "reader odd of odd-reader 2.5 cannot be loaded: ZeroDivisionError" in result.stdout
    result = CliRunner().invoke(app, ["formats", "--json"])
    (failed,) = json.loads(result.stdout)["failed"]
    assert failed["reader"] == "odd" and failed["package"] == "odd-reader 2.5"


# ---- what readers return ------------------------------------------------------------------------


def test_episodes_and_clouds_of_a_reader(packages, tmp_path):
    text = """
import numpy as np
import robocache as rbc
from robocache import data

def described(name):
    return data.Format(name=name, title=name, files=f"*.{name}", reads="One thing.")

FORMATS = (described("sets"), described("dots"))

def sniff(path):
    return path.endswith((".sets", ".dots"))

def open(path, options):
    if path.endswith(".dots"):
        return data.PointCloud(path, {axis: np.arange(3.0) for axis in "xyz"}, 3)
    options.damage.note(path, "row 1", "is odd")
    track = rbc.Track(np.zeros((4, 2)), [0, 2, 4], times=np.arange(4) / options.rate)
    return rbc.Episodes({"arm": track}, tasks=["open", "close"])
"""
    install(packages, "two", "1.0", {"two": "two_readers"}, {"two_readers": text})
    for name in ("a.sets", "b.dots"):
        (tmp_path / name).write_text("hello\n")
    episodes = data.open_episodes(tmp_path / "a.sets", rate=10)
    assert episodes.format == "two" and episodes.source == str(tmp_path / "a.sets")
    assert episodes.tasks == ("open", "close") and len(episodes.problems) == 1
    assert isinstance(episodes, rbc.Episodes) and episodes["arm"].values.shape == (4, 2)
    assert len(data.open(tmp_path / "b.dots")) == 3


def test_the_first_of_two_packages_of_one_name_is_used(packages, tmp_path, monkeypatch):
    install(tmp_path / "older", "odd-reader", "1.0", {"odd": "odd_reader"}, {"odd_reader": ""})
    install(packages, "odd_reader", "2.0", {"odd": "odd_reader"}, {"odd_reader": DESCRIBED})
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "older")])
    found = [str(reader) for reader in third_party.readers() if reader.name == "odd"]
    assert found == ["reader odd of odd_reader 2.0"]
