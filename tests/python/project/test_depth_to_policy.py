"""The example from depth images to points, on simulated and on recorded frames."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")
pytest.importorskip("PIL")
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "examples" / "python"))

import depth_images  # noqa: E402
import depth_to_policy  # noqa: E402


def check(folder, points, crop=(-1.5, -1.5, 0.3, 1.5, 1.5, 3.0)):
    made = np.load(folder / "depth_to_policy.npz")
    xyz, colors = made["points"][..., :3], made["points"][..., 3:]
    assert made["points"].shape == (len(made["voxels"]), points, 6)
    assert (made["voxels"] > points).all()
    assert (xyz > crop[:3]).all() and (xyz < crop[3:]).all()
    assert (colors >= 0).all() and (colors <= 1).all() and colors.std() > 0.05
    assert (folder / "depth_to_policy.png").stat().st_size > 10_000
    for cloud in xyz:  # all of them different
        assert len(np.unique(cloud, axis=0)) == points


def test_simulated(tmp_path):
    assert depth_to_policy.main(["--out", str(tmp_path), "--points", "256"]) == 0
    check(tmp_path, 256)


def test_recorded(recordings, tmp_path):
    folder = recordings / "rgbd_open3d"
    if not folder.is_dir():
        pytest.skip(f"there is no {folder}")
    assert depth_to_policy.main(["--data", str(folder), "--out", str(tmp_path)]) == 0
    check(tmp_path, 1024)


@pytest.mark.parametrize(
    ("name", "encoding", "low", "high"),
    [
        ("TUM_depth.png", "tum", 0.4, 10),
        ("SUN_depth.png", "sun", 1.0, 9.9),
        ("NYU_depth.pgm", "nyu", 1.3, 45),
    ],
)
def test_encodings(recordings, name, encoding, low, high):
    path = recordings / "rgbd_open3d" / "other_formats" / name
    if not path.is_file():
        pytest.skip(f"there is no {path}")
    depth = depth_images.read_depth(path, encoding) / depth_images.ENCODINGS[encoding]
    assert depth.shape == (480, 640)
    found = depth[depth > 0]
    assert len(found) > 0.6 * depth.size
    assert low < found.min() and found.max() < high
    assert low < np.median(found) < high / 2
