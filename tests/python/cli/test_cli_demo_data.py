"""`robocache demo-data`: a recording that the other commands accept."""

import json

import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

import numpy as np  # noqa: E402

import robocache as rbc  # noqa: E402
from robocache.cli._app import run  # noqa: E402
from robocache.cli.demo_data import simulate_arm  # noqa: E402


@pytest.fixture
def arm(tmp_path):
    folder = tmp_path / "arm"
    assert run(["demo-data", str(folder)]) == 0
    return folder


def test_it_says_what_it_wrote(tmp_path, capsys):
    folder = tmp_path / "arm"
    assert run(["demo-data", str(folder)]) == 0
    out = capsys.readouterr().out
    assert out == f"wrote {folder}: 7805 samples of joints, imu, pose, force, gripper\n"
    assert {path.name for path in folder.iterdir()} == {
        f"{name}.csv" for name in ("joints", "imu", "pose", "force", "gripper")
    }


def test_json(tmp_path, capsys):
    folder = tmp_path / "arm"
    assert run(["demo-data", str(folder), "--json"]) == 0
    written = json.loads(capsys.readouterr().out)
    assert written["output"] == str(folder)
    assert written["samples"] == {name: len(s.times) for name, s in simulate_arm().items()}


def test_the_files_hold_the_samples_to_the_bit(arm):
    recording = rbc.data.open(arm)
    for name, simulated in simulate_arm().items():
        read = recording[name]
        order = np.argsort(simulated.times, kind="stable")
        assert np.array_equal(read.times(), simulated.times[order])
        assert np.array_equal(read.values.astype(np.float32), simulated.values[order])
        assert recording.info(name).names == simulated.channels


def test_the_streams_align(arm):
    episodes = rbc.data.open(arm).align(rate=50)
    assert set(episodes.tracks) == set(simulate_arm())
    for track in episodes.tracks.values():
        assert len(track.values) == 753
        assert np.isfinite(track.values).all()


def test_the_same_bytes_every_time(arm, tmp_path):
    assert run(["demo-data", str(tmp_path / "again")]) == 0
    for path in arm.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


def test_nothing_is_replaced(arm, capsys):
    (arm / "joints.csv").write_text("changed")
    assert run(["demo-data", str(arm)]) == 1
    assert capsys.readouterr().err == (f"robocache: error: {arm} exists; name a new folder\n")
    assert (arm / "joints.csv").read_text() == "changed"
