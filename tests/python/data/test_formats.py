"""The descriptions of formats: their lines of code run, and ``robocache formats`` shows them."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
import warnings

import pytest

import data_sources
import robocache as rbc
from robocache import data
from robocache.data._formats import registry

FORMATS = {
    described.name: (module, described)
    for module in registry.FORMATS
    for described in registry.formats_of(
        importlib.import_module(f"robocache.data._formats.{module}")
    )
}
KINDS = {
    "recording": data.Recording,
    "episodes": data.Episodes,
    "cloud": data.PointCloud,
    "clouds": data.PointClouds,
}
# Formats of which the first is a special case of the second.
SPECIAL_CASES = {
    ("hdf5.netcdf", "hdf5.hdf5"),
    ("logs.sensor_logger", "tables.tables"),
    ("tables.motive", "tables.tables"),
    ("tables.vicon", "tables.tables"),
    *((f"trajectories.{name}", "tables.tables") for name in ("euroc", "kitti", "rtklib", "tum")),
}
# Samples by the name of their format, if they are not called as the format.
SAMPLES = {"ros2": "sqlite3", "mcap": "mcap-json", "json-exports": "sensor-logger-json"}


def sample_of(name):
    """The sample that is called as the format, or begins with its name."""
    name = SAMPLES.get(name, name)
    found = [each for each in data_sources.SOURCES if each == name]
    found += [each for each in data_sources.SOURCES if each.startswith(f"{name}-")]
    assert found, f"tests/python/support/data_sources.py has no sample {name}"
    return found[0]


def path_in(code):
    """The path that a line of code opens."""
    (call,) = (node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call))
    return ast.literal_eval(call.args[0])


@pytest.mark.parametrize("name", FORMATS)
def test_the_example_reads_a_sample(name, tmp_path, monkeypatch):
    module, described = FORMATS[name]
    made = data_sources.make(sample_of(name), tmp_path / "made")
    if made is None:
        pytest.skip(f"no package writes {name}")
    assert registry.format_of(str(made), registry.FORMATS).__name__.endswith(f".{module}")
    made.rename(tmp_path / path_in(described.example))
    monkeypatch.chdir(tmp_path)
    names = {"rbc": rbc}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(described.example, names)
        except ModuleNotFoundError as error:
            assert f"robocache[{described.extra}]" in str(error)
            pytest.skip(str(error))
    (variable,) = names.keys() - {"rbc", "__builtins__"}
    assert isinstance(names[variable], KINDS[variable])
    assert len(names[variable])


@pytest.mark.parametrize("name", data_sources.SOURCES)
def test_formats_that_recognize_a_sample(name, tmp_path):
    """The order of two formats matters only where one is a special case of the other."""
    made = data_sources.make(name, tmp_path / "made")
    if made is None:
        pytest.skip(f"no package writes {name}")
    claims = [each for each in registry.FORMATS if registry.format_of(str(made), [each])]
    assert len(claims) == 1 or tuple(claims) in SPECIAL_CASES


@pytest.mark.parametrize(
    ("first", "second", "module"),
    [
        ("mcap-json", "csv", "bags.rosbag2"),
        ("sqlite3", "npy", "bags.rosbag2"),
        ("robomimic", "csv", "hdf5.hdf5"),
        ("pcd", "csv", "clouds.pcd"),
        ("csv", "npy", "tables.tables"),
        ("npy", "sweep", "arrays.npy_folder"),
    ],
)
def test_the_first_format_reads_a_folder_of_two(first, second, module, tmp_path):
    """Tables come after formats with a signature, sweeps last, as docs/formats.md says."""
    for name in (first, second):
        made = data_sources.make(name, tmp_path / name)
        if made is None:
            pytest.skip(f"no package writes {name}")
        for file in list(made.iterdir()) if made.is_dir() else [made]:
            file.rename(tmp_path / file.name)
    found = registry.format_of(str(tmp_path), registry.FORMATS)
    assert found.__name__ == f"robocache.data._formats.{module}"


def test_descriptions_import_no_package():
    """Descriptions are made whenever a reader is imported, so they must need nothing."""
    code = (
        "import sys\n"
        "from robocache.data._formats import registry\n"
        "assert registry.descriptions()\n"
        "names = ('rosbags', 'pyarrow', 'h5py', 'zarr', 'importlib.metadata')\n"
        "print([name for name in names if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


# ---- the command line ---------------------------------------------------------------------------


def shown(*arguments, code=0):
    pytest.importorskip("typer")
    pytest.importorskip("rich")
    from typer.testing import CliRunner

    from robocache.cli._app import app

    result = CliRunner().invoke(app, ["formats", *arguments], env={"COLUMNS": "100"})
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


def test_formats_lists_all():
    lines = shown().split("\n")
    assert lines[0].split() == ["name", "format", "files", "package", "installed"]
    names = [line.split()[0] for line in lines[1:] if line[:1].strip()]
    assert [name for name in names if name in FORMATS] == list(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_formats_shows_one(name):
    described = FORMATS[name][1]
    text = " ".join(shown(name.upper()).split())
    assert text.startswith(f"{name}: {described.title} files {described.files} needs ")
    for part in (described.reads, described.refuses, described.example):
        assert " ".join(part.split()) in text


def test_formats_as_json():
    told = json.loads(shown("--json"))
    assert [each["name"] for each in told["formats"]][: len(FORMATS)] == list(FORMATS)
    (one,) = json.loads(shown("npy", "--json"))["formats"]
    assert one["installed"] is True and one["versions"] == {} and one["provider"] == "robocache"
    assert one["title"] == FORMATS["npy"][1].title


def test_formats_says_what_is_missing(monkeypatch):
    pytest.importorskip("typer")
    from robocache.cli import formats

    monkeypatch.setattr(formats, "_version", lambda name: None if name == "h5py" else "1.0")
    assert "to install what is missing: pip install 'robocache[hdf5]'" in shown()
    text = shown("aloha")
    assert "h5py, not installed: pip install 'robocache[hdf5]'" in text
    (one,) = json.loads(shown("aloha", "--json"))["formats"]
    assert one["installed"] is False and one["versions"] == {"h5py": None}


def test_formats_does_not_know_a_name():
    assert "lerobt: no such format. Did you mean lerobot?" in shown("lerobt", code=1)


# ---- texts that no format recognizes ------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.words", "hello world\n", 'First line: "hello world"'),
        ("a.words", "one\r\ntwo\r\nthree", 'First lines: "one" and "two"'),
        ("a.words", "x" * 100, f'First line: "{"x" * 57}..."'),
        ("a.words", "\u202eabc\nq\x1b[2J\n", r'First lines: "\u202eabc" and "q\x1b[2J"'),
        ("a.words", "k v\na b\n", "It has 2 columns, separated by spaces. Nearest formats: "),
        ("a.words", "k;v;w\na;b;c\n", "It has 3 columns, separated by semicolons. Nearest"),
        ("a.csv", "k,v\na,b\n", "It is a text without columns of numbers below a header"),
        ("a.txt", "k\nv w\n", "csv (CSV)"),
        ("a.pcd", "points\n", "Nearest formats: pcd (PCD)"),
    ],
)
def test_a_text_shows_its_lines_and_the_nearest_formats(tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content.encode())
    with pytest.raises(data.FormatError) as caught:
        data.open(path)
    assert caught.value.reason.startswith("unknown format. First line")
    assert words in str(caught.value)
