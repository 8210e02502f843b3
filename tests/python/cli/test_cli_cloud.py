"""`robocache cloud`: its files, its exit codes, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from typer.testing import CliRunner  # noqa: E402

import cloud_reference  # noqa: E402
import robocache as rbc  # noqa: E402
from robocache.cli._app import app  # noqa: E402

RUNNER = CliRunner()
CAMERA = [20.0, 21.0, 9.5, 7.5]
CAMERAS = {
    "names": dict(zip(("fx", "fy", "cx", "cy"), CAMERA)),
    "list": CAMERA,
    "rows": [[20, 0, 9.5], [0, 21, 7.5], [0, 0, 1]],
    "ros": {"K": [20, 0, 9.5, 0, 21, 7.5, 0, 0, 1]},
    "open3d": {"width": 20, "intrinsic_matrix": [20, 0, 0, 0, 21, 0, 9.5, 7.5, 1]},
}


def run(*arguments, code=0):
    result = RUNNER.invoke(app, [*map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.stderr


@pytest.fixture
def scene(tmp_path):
    """Write images whose numeric order differs from their alphabetical order."""
    rng = np.random.default_rng(3)
    depth = rng.integers(300, 3000, (3, 16, 20)).astype(np.uint16)
    depth[:, 4] = 0
    depth[2] = 0  # no valid depth
    colors = rng.integers(0, 256, (3, 16, 20, 3)).astype(np.uint8)
    for name, images in (("depth", depth), ("color", colors)):
        (tmp_path / name).mkdir()
        for i, image in zip((2, 10, 11), images):
            np.save(tmp_path / name / f"{i}.npy", image)
    (tmp_path / "k.json").write_text(json.dumps(CAMERA))
    return tmp_path, depth, colors


def made(folder, name):
    with np.load(folder / "out" / f"{name}.npz") as file:
        return file["points"], int(file["count"])


@pytest.mark.parametrize("kind", CAMERAS)
def test_all_points(scene, kind):
    folder, depth, _ = scene
    camera = folder / "camera.json"
    camera.write_text(json.dumps(CAMERAS[kind]))
    crop = (-0.5, -0.6, 0.4, 0.5, 0.6, 2.5)
    text = run("cloud", folder / "depth", "--intrinsics", camera, "--crop", *crop,
               "-o", folder / "out")  # fmt: skip
    assert [line.split()[0] for line in text.splitlines()[1:4]] == ["2.npy", "10.npy", "11.npy"]
    for name, image in zip(("2", "10", "11"), depth):
        expected, kept, *_ = cloud_reference.unproject(image, CAMERA, crop=crop)
        points, count = made(folder, name)
        assert count == kept == len(points) and points.dtype == np.float32
        np.testing.assert_array_equal(points, expected[:kept])


def test_few_points_with_colours_and_a_pose(scene):
    folder, depth, colors = scene
    pose = np.array([[0, -1, 0, 1], [1, 0, 0, 2], [0, 0, 1, 3], [0, 0, 0, 1.0]])
    (folder / "pose.json").write_text(json.dumps(pose.tolist()))
    out = run(
        *("cloud", folder / "depth", "--intrinsics", folder / "k.json", "--depth-scale", 500),
        *("--colors", folder / "color", "--pose", folder / "pose.json", "--voxel-size", 0.5),
        *("--points", 9, "-o", folder / "out", "--json"),
    )
    rows = json.loads(out)["clouds"]
    assert [row["file"] for row in rows] == ["2.npy", "10.npy", "11.npy"]
    assert [row["points"] for row in rows] == [9, 9, 0]
    for name, image, color in zip(("2", "10"), depth, colors):
        points, count = made(folder, name)
        assert points.shape == (9, 6) and count == 9
        options = {"colors": color, "depth_scale": 500, "color_divisor": 255}
        cloud = rbc.unproject(image, CAMERA, pose, **options).trimmed().points
        assert (points.min(axis=0) >= cloud.min(axis=0)).all()
        assert (points.max(axis=0) <= cloud.max(axis=0)).all()
        # Means of voxels, at most one per voxel.
        cells = np.floor(points[:, :3] / 0.5)
        assert len(np.unique(cells, axis=0)) == 9
    points, count = made(folder, "11")
    assert count == 0 and points.shape == (9, 6) and not points.any()


def test_images_that_pillow_reads(scene):
    image = pytest.importorskip("PIL.Image")
    folder, depth, colors = scene
    for i in (2, 10, 11):
        (folder / "depth" / f"{i}.npy").unlink()
    image.fromarray(depth[0]).save(folder / "depth" / "7.png")
    (folder / "color" / "2.npy").rename(folder / "color" / "7.npy")
    for i in (10, 11):
        (folder / "color" / f"{i}.npy").unlink()
    run("cloud", folder / "depth", "--intrinsics", folder / "k.json", "-o", folder / "out",
        "--colors", folder / "color")  # fmt: skip
    points, _ = made(folder, "7")
    options = {"colors": colors[0], "color_divisor": 255}
    expected, kept, *_ = cloud_reference.unproject(depth[0], CAMERA, **options)
    np.testing.assert_array_equal(points, expected[:kept])
    (folder / "depth" / "7.png").write_bytes(b"\x89PNG\r\n\x1a\n broken")
    text = run("cloud", folder / "depth", "--intrinsics", folder / "k.json",
               "-o", folder / "other", code=1)  # fmt: skip
    assert "7.png" in text and not (folder / "other").exists()


@pytest.mark.parametrize(
    ("change", "arguments", "code", "words"),
    [
        (None, ["--points", "0"], 2, "--points"),
        (None, ["--voxel-size", "0"], 2, "--voxel-size"),
        (
            None,
            ["--crop", *"0 0 0 0 1 1".split()],
            1,
            "crop_min[0]: is 0, expected less than crop_max[0]",
        ),
        (None, ["--depth-scale", "0"], 1, "depth_scale: is 0"),
        (("k.json", "[0, 1, 2, 3]"), [], 1, "error: k.json: fx: is 0, expected a finite"),
        (("k.json", '{"K": [[9, 0, 1], [0, 0, 1], [0, 0, 1]]}'), [], 1, "error: k.json: fy: is 0"),
        (("k.json", "[9, 9, NaN, 3]"), [], 1, "error: k.json: cx: is nan, expected a finite"),
        (("k.json", "[1, 2, 3]"), [], 1, "k.json: is not a camera"),
        (("k.json", '{"fx": 1}'), [], 1, "k.json: is not a camera"),
        (("k.json", "no"), [], 1, "k.json: is not JSON"),
        (("pose.json", "[1, 2]"), ["--pose", "pose.json"], 1, "pose.json: is not a 4 x 4"),
        (("color/12.npy", ""), ["--colors", "color"], 1, "has 4 images"),
        (("color/10.npy", ""), ["--colors", "color"], 1, "color/10.npy"),
        (("depth/10.npy", ""), [], 1, "depth/10.npy"),
        (("depth/10.png", ""), [], 1, "two images named 10"),
        (("out", ""), [], 1, "out: exists; --overwrite"),
    ],
)
def test_refuses_in_a_line_and_writes_nothing(scene, monkeypatch, change, arguments, code, words):
    folder = scene[0]
    monkeypatch.chdir(folder)
    if change is not None:
        (folder / change[0]).write_text(change[1])
    text = run("cloud", "depth", "--intrinsics", "k.json", *arguments, "-o", "out", code=code)
    assert words in text
    assert code == 2 or len(text.splitlines()) == 1
    assert change == ("out", "") or not (folder / "out").exists()
    assert not list(folder.glob("*.part"))


@pytest.mark.parametrize(
    ("image", "words"),
    [
        (np.zeros((2, 3), np.uint8), "expected one depth per pixel"),
        (np.zeros((2, 3, 3), np.uint16), "expected one depth per pixel"),
        (np.full((2, 3), 70_000, np.int32), "has depths outside 0 to 65535"),
    ],
)
def test_what_is_no_depth_is_named(scene, image, words):
    folder = scene[0]
    np.save(folder / "depth" / "10.npy", image)
    text = run("cloud", folder / "depth", "--intrinsics", folder / "k.json",
               "-o", folder / "out", code=1)  # fmt: skip
    assert words in text and "10.npy" in text
