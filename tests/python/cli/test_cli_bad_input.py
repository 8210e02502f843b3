"""Damaged files: each error names the file and the place, and what can be read is shown."""

from __future__ import annotations

import json
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


def run(*arguments):
    result = RUNNER.invoke(app, [*map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result


def flat(text):
    return re.sub(r"\s+", "", text)


def check_told(path, *words):
    """Check that ``inspect`` names the fault, in a one-line error or a finding; also the report."""
    result = run("inspect", path)
    assert result.exit_code == 1, result.output
    assert "Traceback" not in result.output and result.stderr.count("\n") <= 1
    for word in words:
        assert flat(word) in flat(result.output), word
    page = path.parent / "report.html"
    page.unlink(missing_ok=True)
    report = run("report", path, "--html", page)
    assert report.exit_code == 1 and page.exists() == (result.stderr == "")
    return json.loads(run("inspect", path, "--json").stdout) if result.stderr == "" else None


def cut(source, target, size):
    target.write_bytes(source.read_bytes()[:size])
    return target


@pytest.fixture
def mcap(recordings):
    pytest.importorskip("rosbags")
    return next((recordings / "ros2_mcap_crazyflie_vicon" / "rollbag").glob("*.mcap"))


def test_mcap_cut_off(mcap, tmp_path):
    told = check_told(cut(mcap, tmp_path / "cut.mcap", 250_000), "cut.mcap", "is truncated")
    assert told is not None
    whole = mcap.read_bytes()
    (tmp_path / "no_summary.mcap").write_bytes(whole[: len(whole) - 200])
    told = check_told(tmp_path / "no_summary.mcap", "byte")
    vicon = told["streams"]["/vicon/Group466CF/Group466CF/pose"]
    assert vicon["samples"] == 2652  # all of them are there


def test_mcap_with_bytes_that_changed(mcap, tmp_path):
    content = bytearray(mcap.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 400] = bytes(400)
    (tmp_path / "changed.mcap").write_bytes(content)
    result = run("inspect", tmp_path / "changed.mcap")
    assert result.exit_code in (0, 1) and "Traceback" not in result.output


def test_ros1_bag_cut_off(recordings, tmp_path):
    pytest.importorskip("rosbags")
    source = recordings / "ros1_robot_localization" / "test1.bag"
    told = check_told(cut(source, tmp_path / "cut.bag", 900_000), "cut.bag", "byte 900000")
    assert told["streams"]["/imu/data"]["samples"] > 1000


def test_sqlite_cut_off(recordings, tmp_path):
    pytest.importorskip("rosbags")
    source = next((recordings / "ros2_db3_gps_nav" / "bag").glob("*.db3"))
    check_told(cut(source, tmp_path / "cut.db3", 100_000), "cut.db3", "table messages", "malformed")


@pytest.fixture
def lerobot(tmp_path):
    pytest.importorskip("pyarrow")
    data.save(faults.episodes(), tmp_path / "set", "lerobot")
    return tmp_path / "set"


def parquet_of(folder):
    return next((folder / "data").rglob("*.parquet"))


def test_parquet_cut_off(lerobot):
    file = parquet_of(lerobot)
    cut(file, file, 500)
    told = check_told(lerobot, file.name, "is a Parquet file without its footer")
    assert set(told["streams"]) >= {"action", "observation.state"}


def test_parquet_without_a_column(lerobot):
    import pyarrow.parquet as pq

    file = parquet_of(lerobot)
    pq.write_table(pq.read_table(file).drop_columns(["action"]), file)
    check_told(lerobot, file.name, "action", "is missing")


def test_info_that_disagrees(lerobot):
    file = lerobot / "meta" / "info.json"
    told = json.loads(file.read_text())
    told["features"]["action"]["shape"] = [7]
    file.write_text(json.dumps(told))
    check_told(lerobot, "action", "2 numbers per row", "[7]")
    file.write_text("{")
    check_told(lerobot, "info.json")


def test_an_episode_that_is_missing(recordings, tmp_path):
    pytest.importorskip("pyarrow")
    shutil.copytree(recordings / "lerobot_v21_cr5", tmp_path / "set")
    (tmp_path / "set/data/chunk-000/episode_000007.parquet").unlink()
    told = check_told(tmp_path / "set", "episode_000007.parquet", "is missing")
    assert told["streams"]["action"]["samples"] > 17_000


@pytest.mark.parametrize(
    "command",
    [
        ["stats", "-s", "action"],
        ["stats", "--relative", "2", "--state", "action"],
        ["windows"],
        ["sync", "--a", "action", "--b", "observation.state"],
        ["resample", "--rate", "5", "-o", "out.npz", "-s", "action"],
    ],
)
def test_every_command_that_refuses_damage_can_keep_the_rest(
    recordings, tmp_path, monkeypatch, command
):
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    shutil.copytree(recordings / "lerobot_v21_cr5", "set")
    (tmp_path / "set/data/chunk-000/episode_000007.parquet").unlink()
    words = "episode_000007.parquet: is missing"
    result = run(command[0], "set", *command[1:])
    assert result.exit_code == 1
    assert f"{words}; --damaged keep reads the rest" in result.stderr
    result = run(command[0], "set", *command[1:], "--damaged", "keep")
    assert result.exit_code == 0, result.output
    assert flat(words) in flat(result.output)  # the rest is not passed off as the whole


def test_hdf5_cut_off(recordings, tmp_path):
    pytest.importorskip("h5py")
    source = recordings / "hdf5_isaaclab_franka_stack" / "dataset.hdf5"
    check_told(cut(source, tmp_path / "cut.hdf5", 100_000), "cut.hdf5", "truncated")


def test_a_broken_chunk_of_zarr(recordings, tmp_path):
    pytest.importorskip("zarr")
    shutil.copytree(recordings / "zarr_pusht" / "pusht_cchi_v7_replay.zarr", tmp_path / "z.zarr")
    chunk = next(tmp_path.glob("z.zarr/data/action/*.*"))
    chunk.write_bytes(b"junk")
    told = check_told(tmp_path / "z.zarr", "data/action", "a chunk cannot be read")
    assert "state" in told["streams"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.mcap", b"", "it is empty"),
        ("text.bag", b"hello", "unknown format. First line: \"hello\""),
        ("cut.pcd", b"VERSION .7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 9\n"
                    b"HEIGHT 1\nPOINTS 9\nDATA binary\nabc", "point 0: file ends here"),
    ],
)  # fmt: skip
def test_files_that_are_none(tmp_path, name, content, words):
    (tmp_path / name).write_bytes(content)
    result = run("inspect", tmp_path / name)
    assert result.exit_code == 1 and words in result.output and name in result.output


def test_nothing_of_it_is_written_elsewhere(lerobot, tmp_path):
    """Without --damaged keep, the other commands refuse the file and name the option."""
    file = parquet_of(lerobot)
    cut(file, file, 500)
    out = tmp_path / "out.npz"
    for command in (["stats", lerobot], ["resample", lerobot, "--rate", "5", "-o", out]):
        result = run(*command)
        assert result.exit_code == 1 and file.name in result.stderr
        assert result.stderr.count("\n") == 1
    assert "--damaged keep reads the rest" in result.stderr and not out.exists()


def test_links_that_lead_out_are_not_followed(lerobot, tmp_path):
    file = parquet_of(lerobot)
    outside = tmp_path / "elsewhere.parquet"
    shutil.move(file, outside)
    file.symlink_to(outside)
    for command in ("inspect", "stats", "windows"):
        result = run(command, lerobot)
        assert result.exit_code == 1 and flat("; --follow-links allows it") in flat(result.output)
    assert run("inspect", lerobot, "--follow-links").exit_code == 0


def test_an_error_of_a_library_gets_the_path(tmp_path, monkeypatch):
    path = faults.save(tmp_path / "r.npz")

    def fail(*_, **__):
        raise RuntimeError("at\n  line 3")

    monkeypatch.setattr("robocache.cli.inspect.checks.survey", fail)
    result = run("inspect", path)
    assert result.exit_code == 1
    assert result.stderr == f"robocache: error: {path}: RuntimeError: at line 3\n"


def test_a_recording_of_stamps_that_say_nothing(tmp_path):
    """Equal times, or a single sample, do not cause a division by 0."""
    same = np.full(50, faults.START)
    streams = [
        faults.stream("same", 50, clocks=faults.clocks(same)),
        faults.stream("one", 1),
        faults.stream("none", 0),
    ]
    path = faults.save(tmp_path / "r.npz", *streams)
    told = json.loads(run("inspect", path, "--json").stdout)
    assert "repeats" in {f["kind"] for f in told["findings"]}
    assert run("inspect", path).exit_code == 0
    assert run("report", path, "--html", tmp_path / "r.html").exit_code == 0
