"""`robocache inspect`: its findings, output and exit codes."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from typer.testing import CliRunner  # noqa: E402

import recordings_with_faults as faults  # noqa: E402
from robocache import data  # noqa: E402
from robocache.cli._app import app  # noqa: E402

RUNNER = CliRunner()


def inspect(*arguments, code=0):
    result = RUNNER.invoke(app, ["inspect", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.stdout


def inspected(*arguments, code=0):
    return json.loads(inspect(*arguments, "--json", code=code))


def test_a_good_recording_passes(tmp_path):
    path = faults.save(tmp_path / "good.npz")
    told = inspected(path, "--check")
    assert told["ok"] and told["kind"] == "recording"
    of = told["streams"]["arm"]
    assert of["samples"] == 400 and of["channels"] == 3
    assert of["rate"] == pytest.approx(100) and of["period"] == pytest.approx(0.01)
    assert of["gaps"] == 0 and of["coverage"] == pytest.approx(1)
    assert told["duration"] == pytest.approx(3.99) and told["begin_utc"].startswith("2023-11-14")


def test_cameras_are_listed(tmp_path):
    """With the size of their frames, or with the reason why they cannot be read."""
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "demos.hdf5"
    with h5py.File(path, "w") as file:
        for e in range(2):
            file[f"data/demo_{e}/actions"] = np.random.default_rng(e).normal(size=(9, 2))
            file[f"data/demo_{e}/obs/front"] = np.zeros((9, 12, 16, 3), np.uint8)
            file[f"data/demo_{e}/obs/side"] = np.zeros((9, 12, 16 + e, 3), np.uint8)
    cameras = inspected(path, "--fps", 10)["cameras"]
    assert cameras["obs/front"] == {"shape": [12, 16, 3], "problem": None}
    assert cameras["obs/side"]["shape"] is None and "[12, 17, 3]" in cameras["obs/side"]["problem"]
    page = inspect(path, "--fps", 10)
    assert "cameras: 2" in page and "obs/front: 16 x 12, RGB" in page


@pytest.mark.parametrize("kind", sorted(faults.FAULTS))
def test_each_fault_is_found_and_fails_the_check(tmp_path, kind):
    path = faults.save(tmp_path / "bad.npz", faults.FAULTS[kind]())
    told = inspected(path)  # 0 without --check
    assert not told["ok"]
    found = {f["kind"] for f in told["findings"] if f["severity"] != "note"}
    assert kind in found
    assert inspected(path, "--check", code=1)["findings"] == told["findings"]
    ignored = [word for other in found for word in ("--ignore", other)]
    assert inspected(path, "--check", *ignored)["ok"]
    text = inspect(path)
    of_kind = next(f for f in told["findings"] if f["kind"] == kind)
    assert flat(of_kind["text"]) in flat(text)


def flat(text):
    return re.sub(r"\s+", "", text)


def test_wrong_stored_statistics_are_shown_with_both_numbers(tmp_path):
    folder = tmp_path / "set"
    pytest.importorskip("pyarrow")
    data.save(faults.episodes(), folder, "lerobot")
    assert inspected(folder, "--check")["ok"]
    file = folder / "meta" / "stats.json"
    stored = json.loads(file.read_text())
    stored["action"]["std"][1] = 0.25
    file.write_text(json.dumps(stored))
    told = inspected(folder, "--check", code=1)
    (found,) = told["findings"]
    assert found["kind"] == "statistics" and found["severity"] == "error"
    exact = faults.episodes()["action"].values[:, 1].astype("f8").std()
    assert "stored as 0.25" in found["text"] and f"{exact:.6f}"[:6] in found["text"]
    assert (found["stream"], found["place"]) == ("action", "y")


def test_max_gap_and_jitter_decide(tmp_path):
    path = faults.save(tmp_path / "gap.npz", faults.FAULTS["gaps"]())
    assert not inspected(path)["ok"]
    assert inspected(path, "--max-gap", "0.5", "--jitter", "50")["ok"]
    assert inspected(path, "--max-gap", "0.001")["streams"]["arm"]["gaps"] == 1  # of its own limit


def test_tables_fit_80_columns_and_have_no_colours(tmp_path):
    long = "/robot/left_arm/joint_trajectory_controller/controller_state/desired"
    streams = [faults.stream(long), faults.FAULTS["gaps"](), faults.stream("π/схват", seed=4)]
    path = faults.save(tmp_path / "wide name with spaces é.npz", *streams)
    text = inspect(path)
    lines = text.splitlines()
    assert max(map(len, lines[1:])) <= 80 and "\x1b" not in text
    assert all(line == line.rstrip() for line in lines)
    assert "π/схват" in text and long[:12] in text
    assert re.search(r"^arm +370 +3 ", text, re.M)
    assert "1 gap of more than 25 ms" in text
    assert lines[-1] == "1 warning, 3 notes" or "warning" in lines[-1]


def test_lists_are_cut_unless_all_is_asked_for(tmp_path):
    streams = [faults.stream(f"s{i}", values=np.ones((400, 3), "f4")) for i in range(30)]
    path = faults.save(tmp_path / "many.npz", *streams)
    assert "--all shows them" in inspect(path)
    every = inspect(path, "--all")
    assert (
        "--all" not in every and sum("constant: none" in line for line in every.splitlines()) == 30
    )


def test_damage_is_named_the_rest_is_shown_and_the_code_is_1(tmp_path):
    pytest.importorskip("pyarrow")
    folder = tmp_path / "set"
    data.save(faults.episodes(), folder, "lerobot")
    (file,) = (folder / "data").rglob("*.parquet")
    info = folder / "meta" / "info.json"
    told = json.loads(info.read_text())
    told["features"]["action"]["shape"] = [5]
    info.write_text(json.dumps(told))
    file.write_bytes(file.read_bytes()[:-200])
    result = RUNNER.invoke(app, ["inspect", str(folder)])
    assert result.exit_code == 1
    assert file.name in flat(result.output) and "Traceback" not in result.output


def test_points(tmp_path, recordings):
    told = inspected(recordings / "pcl")
    assert told["kind"] == "clouds" and told["streams"]["bunny.pcd"]["samples"] == 397
    office = told["streams"]["office1.pcd"]
    assert office["organized"] == [640, 480] and office["finite"] == 254456
    text = inspect(recordings / "pcl")
    assert "52744 of 307200 points are not finite" in text
    assert max(map(len, text.splitlines()[1:])) <= 80


REAL = [
    ("ros2_mcap_crazyflie_vicon/fly90bag", {"gaps", "jitter", "constant", "quaternion"}),
    ("ros1_robot_localization/test1.bag", {"drift", "constant"}),
    ("ros1_robot_localization/test2.bag", {"repeats"}),
    ("ros2_db3_gps_nav/bag", {"clock", "zero_stamps", "unread"}),
    ("ros2_mcap_crab_custom/adya_gait", {"gaps"}),
    ("lerobot_v21_cr5", {"gaps", "rate"}),
    ("lerobot_v3_so101", {"statistics", "constant"}),
    ("lerobot_v3_pusht", {"constant"}),
    ("zarr_pusht/pusht_cchi_v7_replay.zarr", set()),
    ("hdf5_isaaclab_franka_stack/dataset.hdf5", {"damage", "constant"}),
    ("comma2k19", {"repeats", "nan"}),
    ("unitree_g1", set()),
    ("bridge", set()),
]


@pytest.mark.parametrize(("name", "kinds"), REAL, ids=[name for name, _ in REAL])
def test_real_recordings(recordings, name, kinds):
    """The faults that their PROVENANCE.txt describes are found; each prints in 80 columns."""
    for package in ("rosbags", "pyarrow", "h5py", "zarr"):
        pytest.importorskip(package)
    code = int("damage" in kinds)
    told = inspected(recordings / name, code=code)
    assert kinds <= {f["kind"] for f in told["findings"]}
    text = inspect(recordings / name, code=code)
    assert max(map(len, text.splitlines()[1:])) <= 80
    for stream in told["streams"]:
        assert flat(stream)[:10] in flat(text)


def test_so101_says_what_is_stored_and_what_is_so(recordings):
    pytest.importorskip("pyarrow")
    text = flat(inspect(recordings / "lerobot_v3_so101"))
    assert "stdisstoredas0.00409083525,butthedatahave0" in text
