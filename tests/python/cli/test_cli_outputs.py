"""Outputs of the command line replace neither the input nor the files of other programs."""

from __future__ import annotations

import json
import os
import re
import shutil

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from typer.testing import CliRunner  # noqa: E402

import recordings_with_faults as faults  # noqa: E402
from robocache import data  # noqa: E402
from robocache.cli._app import app  # noqa: E402

RUNNER = CliRunner()


def run(*arguments, code=0):
    result = RUNNER.invoke(app, [*map(str, arguments)])
    assert result.exit_code == code, result.output
    assert code == 0 or result.stderr.count("\n") == 1
    return result.stdout if code == 0 else result.stderr


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Write depth images, recordings as CSV and .npz, a cloud, and an unrelated file."""
    (tmp_path / "depth").mkdir()
    np.save(tmp_path / "depth" / "0.npy", np.full((4, 5), 2000, np.uint16))
    (tmp_path / "k.json").write_text("[20, 20, 2, 2]")
    (tmp_path / "src").mkdir()
    rows = "".join(f"{10 * i},{i}\n" for i in range(50))
    (tmp_path / "src" / "arm.csv").write_text("time,x\n" + rows)
    np.arange(40, dtype=np.float32).tofile(tmp_path / "k.bin")
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "thesis.txt").write_text("years")
    faults.save(tmp_path / "r.npz")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def everything(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


CLOUD = ("cloud", "depth", "--intrinsics", "k.json")
RESAMPLE = ("resample", "src", "--rate", "10", "--unit", "ms")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([*CLOUD, "-o", "."], "contains depth"),
        ([*CLOUD, "-o", ".."], "contains depth"),
        ([*CLOUD, "-o", "depth"], "is the input"),
        ([*CLOUD, "-o", "depth/0.npy"], "exists inside the input depth"),
        ([*CLOUD, "-o", "k.json"], "is the input"),
        ([*CLOUD, "--colors", "others", "-o", "others"], "is the input"),
        ([*CLOUD, "--pose", "others/thesis.txt", "-o", "others"], "contains others/thesis.txt"),
        ([*RESAMPLE, "-o", "src"], "is the input"),
        ([*RESAMPLE, "-o", "src/arm.csv"], "exists inside the input"),
        (["resample", "r.npz", "--rate", "10", "-o", "r.npz"], "is the input"),
        (["voxelize", "k.bin", "--voxel-size", "1", "-o", "k.bin"], "is the input"),
        (
            ["report", "src", "--html", "src/arm.csv"],
            "--html: src/arm.csv exists inside",
        ),
        (["report", "r.npz", "--rerun", "r.npz"], "--rerun: r.npz is the input"),
        (
            ["stats", "src", "--write", "lerobot", "-o", "src/arm.csv"],
            "exists inside the input",
        ),
    ],
)
def test_what_is_read_stays(place, arguments, words):
    before = everything(place)
    text = run(*arguments, "--overwrite", code=1)
    assert words in text and "write elsewhere" in text
    assert everything(place) == before


def test_what_is_new_may_lie_beside_what_is_read(place, monkeypatch):
    before = everything(place / "depth")
    monkeypatch.chdir(place / "depth")
    run("cloud", ".", "--intrinsics", "../k.json", "-o", "out")
    assert everything(place / "depth").keys() > before.keys()
    assert "exists inside" in run("cloud", ".", "--intrinsics", "../k.json", "-o", "out",
                               "--overwrite", code=1)  # fmt: skip


def test_links_to_what_is_read_are_seen_through(place):
    (place / "link").symlink_to("src")
    (place / "others" / "to").symlink_to("../src/arm.csv")
    before = everything(place)
    assert "is the input" in run(*RESAMPLE, "-o", "link", "--overwrite", code=1)
    text = run("resample", "others/to", *RESAMPLE[2:], "-o", "src", "--overwrite", code=1)
    assert "contains others/to" in text
    assert everything(place) == before


@pytest.mark.parametrize("arguments", [CLOUD, RESAMPLE])
@pytest.mark.parametrize("name", ["thesis.txt", "episode.npz", "meta/thesis.txt", "1.0"])
def test_folders_of_others_stay(place, arguments, name):
    shutil.rmtree("others")
    file = place / "others" / name
    file.parent.mkdir(parents=True)
    file.write_text("years")
    text = run(*arguments, "-o", "others", "--overwrite", code=1)
    assert f"others: contains {name}, which RoboCache does not write there" in text
    assert "--overwrite would delete it" in text and "choose another path" in text
    assert file.read_text() == "years" and not list(place.glob("*.part*"))


@pytest.mark.parametrize("format", ["lerobot", "zarr", "npz"])
def test_one_file_of_others_in_a_data_set_is_enough(tmp_path, format):
    pytest.importorskip({"lerobot": "pyarrow", "zarr": "zarr", "npz": "numpy"}[format])
    out = tmp_path / "out"
    data.save(faults.episodes(), out, format)
    data.save(faults.episodes(), out, format, overwrite=True)
    if format != "npz":
        (out / "data" / "notes.md").write_text("years")
        words = re.escape("contains data/notes.md") + ".*overwrite=True would delete it"
        with pytest.raises(FileExistsError, match=words):
            data.save(faults.episodes(), out, format, overwrite=True)
        (out / "data" / "notes.md").unlink()
        (out / "data" / "link").symlink_to(tmp_path)
        with pytest.raises(FileExistsError, match="contains data/link"):
            data.save(faults.episodes(), out, format, overwrite=True)


def test_the_current_folder_stays(place, monkeypatch):
    (place / "new" / "in").mkdir(parents=True)
    monkeypatch.chdir(place / "new" / "in")
    for where in (".", "..", place / "new"):
        text = run("cloud", place / "depth", "--intrinsics", place / "k.json", "-o", where,
                   "--overwrite", code=1)  # fmt: skip
        assert "is or contains the current folder" in text
    assert os.path.isdir(place / "new" / "in")


def test_a_file_takes_the_place_of_no_folder(place):
    run(*CLOUD, "-o", "out")
    before = everything(place)
    text = run("voxelize", "k.bin", "--voxel-size", "1", "-o", "out", "--overwrite", code=1)
    assert "out: is a folder, expected a path for a file" in text
    assert everything(place) == before


def test_what_was_written_before_is_replaced(place):
    pytest.importorskip("pyarrow")
    (place / "empty").mkdir()
    run(*CLOUD, "-o", "empty", "--overwrite")
    np.save(place / "depth" / "1.npy", np.full((4, 5), 1000, np.uint16))
    run(*CLOUD, "-o", "empty", "--overwrite")
    assert sorted(os.listdir("empty")) == ["0.npz", "1.npz"]
    for _ in range(2):
        run(*RESAMPLE, "-o", "set", "--overwrite")


def test_what_another_command_wrote_stays(place):
    pytest.importorskip("pyarrow")
    run(*CLOUD, "-o", "clouds")
    run(*RESAMPLE, "-o", "set")
    before = everything(place)
    assert "clouds: contains point clouds" in run(*RESAMPLE, "-o", "clouds", "--overwrite", code=1)
    assert "set: contains a data set, and --overwrite" in run(
        *CLOUD, "-o", "set", "--overwrite", code=1
    )
    assert everything(place) == before


def test_pages_and_statistics_may_lie_in_a_data_set(place):
    pytest.importorskip("pyarrow")
    run(*RESAMPLE, "-o", "set")
    run("report", "set", "--html", "set/report.html")
    (place / "set" / "report.html").unlink()
    run("stats", "set", "--write", "lerobot", "-o", "set/meta/stats.json", "--overwrite")
    assert json.loads((place / "set/meta/stats.json").read_text())
    text = run("stats", "set", "--write", "lerobot", "-o", "set/meta/info.json", "--overwrite",
               code=1)  # fmt: skip
    assert "exists inside the input set" in text


def test_a_full_disk_names_what_was_to_be_written(place):
    if not os.path.exists("/dev/full"):
        pytest.skip("no device that is full")

    def full(*_, **__):
        with open("/dev/full", "w") as file:
            file.write("x")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("numpy.savez", full)
        text = run("voxelize", "k.bin", "--voxel-size", "1", "-o", "v.npz", code=1)
    assert text == f"robocache: error: {place / 'v.npz'}: No space left on device\n"
