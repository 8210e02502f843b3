"""The demo takes all data that robocache.data reads: a report, and a picture if it has times."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "python"))

import any_recording  # noqa: E402
import demo  # noqa: E402
import recordings_with_faults as faults  # noqa: E402
from robocache import data  # noqa: E402


def run(source: Path, out: Path) -> dict[str, Path]:
    """Run the demo; return its files by suffix."""
    assert demo.main(["--data", str(source), "--out", str(out)]) == 0
    return {path.suffix[1:]: path for path in out.iterdir()}


def test_a_recording(tmp_path: Path) -> None:
    long = "/robot/left_arm/joint_states"
    rng = np.random.default_rng(1)
    q = rng.normal(size=(400, 4))
    names = tuple(f"pose.orientation.{axis}" for axis in "xyzw")
    turning = faults.stream(
        "/vicon/pose", values=q / np.linalg.norm(q, axis=1)[:, None], names=names
    )
    counts = faults.stream("/buttons", values=rng.integers(0, 3, (400, 3)).astype(np.int32))
    source = faults.save(tmp_path / "r é.npz", faults.stream(long), turning, counts)
    written = run(source, tmp_path / "out")
    with np.load(written["npz"]) as made:
        assert made["streams"].tolist() == ["joint_states", "pose", "buttons"]
        pose = made["features"][:, 3:7][made["valid"][:, 1]]
        np.testing.assert_allclose(np.linalg.norm(pose, axis=1), 1, atol=1e-6)  # slerp
    assert "joint_states" in written["txt"].read_text()
    assert long in written["html"].read_text()
    assert written["png"].stat().st_size > 20_000


def test_a_data_set_and_one_without_times(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    data.save(faults.episodes(), tmp_path / "set", "lerobot")
    written = run(tmp_path / "set", tmp_path / "out")
    assert set(written) == {"html", "npz", "txt", "png"}
    assert "5 episodes" in written["html"].read_text().replace("</b>", "")
    np.save(tmp_path / "action.npy", np.zeros((5, 10, 3), np.float32))
    folder = tmp_path / "arrays"
    folder.mkdir()
    (tmp_path / "action.npy").rename(folder / "action.npy")
    assert set(run(folder, tmp_path / "two")) == {"html"}


def test_sweeps(tmp_path: Path) -> None:
    folder = tmp_path / "sweeps"
    folder.mkdir()
    points = np.random.default_rng(1).normal(0, [5, 5, 1, 1], (1000, 4)).astype("f4")
    points[:, 3] = np.abs(points[:, 3]) % 1
    points.tofile(folder / "000000.bin")
    written = run(folder, tmp_path / "out")
    with np.load(written["npz"]) as made:
        assert made["offsets"][-1] == len(made["coords"]) > 500


@pytest.mark.parametrize(
    "name",
    [
        "ros2_mcap_crazyflie_vicon/fly90bag",
        "ros2_mcap_crab_custom/adya_gait",
        "ros2_db3_gps_nav/bag",
        "ros1_robot_localization/test2.bag",
        "lerobot_v21_cr5",
        "lerobot_v3_pusht",
        "hdf5_isaaclab_franka_stack/dataset.hdf5",
        "zarr_pusht/pusht_cchi_v7_replay.zarr",
        "unitree_g1",
        "bridge",
    ],
)
def test_real_ones(recordings: Path, tmp_path: Path, name: str) -> None:
    for package in ("rosbags", "pyarrow", "h5py", "zarr"):
        pytest.importorskip(package)
    written = run(recordings / name, tmp_path)
    assert written["html"].stat().st_size > 5_000
    untimed = ("hdf5", "zarr", "bridge")
    assert ("png" in written) == (not name.startswith(untimed))


def test_short_names_stay_apart() -> None:
    names = ["/a/pose", "/b/pose", "/imu/data", "speed"]
    assert any_recording._short_names(names) == ["/a/pose", "/b/pose", "data", "speed"]
