"""`robocache cloud`: invalid images, cameras and poses are refused."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from typer.testing import CliRunner  # noqa: E402

from robocache.cli._app import app  # noqa: E402

RUNNER = CliRunner()
CAMERA = [20.0, 21.0, 9.5, 7.5]
SHAPE = (4, 5)  # rows and columns


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "depth").mkdir()
    (tmp_path / "k.json").write_text(json.dumps(CAMERA))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments, code=0):
    command = ("cloud", "depth", "--intrinsics", "k.json", "-o", "out", *arguments)
    result = RUNNER.invoke(app, list(map(str, command)))
    assert result.exit_code == code, result.output
    assert code == 0 or (result.stderr.count("\n") == 1 and not os.path.exists("out"))
    return result.stderr


def depths_of(name):
    with np.load(f"out/{name}.npz") as file:
        return np.unique(file["points"][:, 2])


def pgm(values, most, plain=False):
    head = f"P{2 if plain else 5}\n# of a test\n{values.shape[1]} {values.shape[0]}\n{most}\n"
    body = " ".join(map(str, values.ravel())).encode() if plain else values.astype(">u2").tobytes()
    return head.encode() + body


# ---- images -------------------------------------------------------------------------------------


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("most", [65535, 10000, 9000, 2000])
@pytest.mark.parametrize("name", ["0.pgm", "0.png"])
def test_depths_of_a_pgm_are_its_numbers(place, most, plain, name):
    values = np.full(SHAPE, 2000, np.uint16)
    values[0, 0] = 0
    (place / "depth" / name).write_bytes(pgm(values, most, plain))
    run()
    assert depths_of("0").tolist() == [2.0]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (pgm(np.full(SHAPE, 7, np.uint16), 9000)[:-1], "has 19 pixels, expected 5 x 4"),
        (pgm(np.full(SHAPE, 7, np.uint16), 9000) * 2, "after its image; save each image as a file"),
        (pgm(np.full(SHAPE, 9001, np.uint16), 9000), "has the value 9001, above its maximum 9000"),
        (pgm(np.full(SHAPE, 7, np.uint16), 9000, True)[:-1], "has 19 pixels"),
        (pgm(np.full(SHAPE, 7, np.uint16), 9000, True) + b" 1", "has 21 pixels"),
        (pgm(np.full(SHAPE, 7, np.uint16), 9000, True) + b"x", "that are not 16-bit numbers"),
        (b"P5\n5 4\n70000\n", "has the maximum 70000"),
        (b"P5\n5 4", "has no PGM header"),
        (b"P5\n5 4\n255\n" + bytes(20), "expected one depth per pixel, 16 bits"),
        (b"P5\n99999999 99999999\n9000\n", "has 0 pixels"),
    ],
)
def test_a_broken_pgm_is_named(place, content, words):
    (place / "depth" / "0.pgm").write_bytes(content)
    text = run(code=1)
    assert "depth/0.pgm" in text and words in text


@pytest.mark.parametrize("kind", ["<u2", ">u2", "<u4", ">u4", "<i2", "<i8", "<f2", ">f4", ">f8"])
def test_numbers_of_all_kinds_and_orders(place, kind):
    np.save(place / "depth" / "0.npy", np.full(SHAPE, 2 if "f" in kind else 2000, kind))
    run()
    assert depths_of("0").tolist() == [2.0]


@pytest.mark.parametrize("value", [-1, 70_000])
def test_integers_beyond_16_bits_are_refused(place, value):
    np.save(place / "depth" / "0.npy", np.full(SHAPE, value, np.int64))
    text = run(code=1)
    assert "0.npy" in text and "outside 0 to 65535" in text


def test_of_several_pages_none_is_taken(place):
    image = pytest.importorskip("PIL.Image")
    pages = [image.fromarray(np.full(SHAPE, 2000 + i, np.uint16)) for i in range(2)]
    pages[0].save(place / "depth" / "0.tif", save_all=True, append_images=pages[1:])
    text = run(code=1)
    assert "0.tif" in text and "has 2 pages, expected one; save each as a file" in text


def test_images_of_two_sizes(place):
    np.save(place / "depth" / "0.npy", np.full(SHAPE, 2000, np.uint16))
    np.save(place / "depth" / "1.npy", np.full((2, 3), 2000, np.uint16))
    text = run(code=1)
    assert "1.npy: has 3 x 2 pixels, but the images before have 5 x 4" in text
    assert "put each size in a separate folder" in text


@pytest.mark.parametrize(
    ("depth", "color", "warned"),
    [("d_07", "d_07", False), ("d_07", "c_7", False), ("d_07", "c_08", True), ("d", "c", True)],
)
def test_colours_of_other_names_are_warned_of(place, depth, color, warned):
    (place / "color").mkdir()
    np.save(place / "depth" / f"{depth}.npy", np.full(SHAPE, 2000, np.uint16))
    np.save(place / "color" / f"{color}.npy", np.zeros((*SHAPE, 3), np.uint8))
    text = run("--colors", "color")
    assert (f"pairs {color}.npy with {depth}.npy only by the order" in text) == warned


# ---- cameras and poses --------------------------------------------------------------------------


NAMED = dict(zip(("fx", "fy", "cx", "cy"), CAMERA))
TURNED = [[20, 0, 0], [0, 21, 0], [9.5, 7.5, 1]]


@pytest.mark.parametrize(
    ("camera", "words"),
    [
        ({**NAMED, "width": 640, "height": 480}, "0.npy: has 5 x 4 pixels, but k.json is for 640"),
        ({**NAMED, "height": 5}, "k.json is for 5 x 5"),
        ({**NAMED, "width": "5"}, "k.json: width: is '5', expected a whole number of pixels"),
        (TURNED, "k.json: K: its last row is 9.5 7.5 1, expected 0 0 1"),
        (sum(TURNED, []), "transpose a column-major one"),
        ({"K": TURNED}, "so transpose"),
        (
            {"intrinsic_matrix": [20, 0, 9.5, 0, 21, 7.5, 0, 0, 1]},
            "is row-major, but Open3D's",
        ),
        ({"intrinsic_matrix": 3}, "expected a list of 9 numbers"),
        ([[20, 3, 9.5], [0, 21, 7.5], [0, 0, 1]], "K: has skew"),
        ("1234", "k.json: is not a camera"),
        (["1", "2", "3", "4"], "k.json: is not a camera"),
        ([[1, 2], [3]], "k.json: is not a camera"),
    ],
)
def test_cameras_that_do_not_fit(place, camera, words):
    np.save(place / "depth" / "0.npy", np.full(SHAPE, 2000, np.uint16))
    (place / "k.json").write_text(json.dumps(camera))
    text = run(code=1)
    assert words in text and "k.json" in text


@pytest.mark.parametrize(
    ("name", "distorted", "none"),
    [
        ("D", [0, 0, 0.01, 0, 0], [0.0, 0, 0, 0, 0]),
        ("k1", -0.2, 0),
        ("coeffs", [1e-9, 0], []),
        ("dist_coeffs", [[0.1, 0, 0, 0, 0]], None),
        ("distortion_coefficients", {"rows": 1, "cols": 2, "data": [0, 0.1]},
         {"rows": 1, "cols": 2, "data": [0, 0]}),
        ("distortion", {"model": "fisheye", "k1": 0.1}, {"model": "fisheye", "k1": 0.0}),
        ("radial_distortion", [0.1], "none"),
    ],
)  # fmt: skip
def test_distortion_is_refused_unless_it_is_zero(place, name, distorted, none):
    np.save(place / "depth" / "0.npy", np.full(SHAPE, 2000, np.uint16))
    (place / "k.json").write_text(json.dumps({**NAMED, name: distorted}))
    text = run(code=1)
    assert f"k.json: {name}: lens distortion is not corrected; rectify the images" in text
    (place / "k.json").write_text(json.dumps({**NAMED, name: none, "distortion_model": "none"}))
    run()


def test_a_camera_of_the_right_size(place):
    np.save(place / "depth" / "0.npy", np.full(SHAPE, 2000, np.uint16))
    (place / "k.json").write_text(json.dumps({**NAMED, "width": 5, "height": 4.0}))
    run()


@pytest.mark.parametrize(
    ("pose", "words"),
    [
        ([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [1, 2, 3, 1]], "its last row is 1 2 3 1"),
        ([1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 1, 2, 3, 1], "so transpose"),
        ([[1] * 8] * 2, "is not a 4 x 4 matrix of numbers"),
        (["1"] * 16, "is not a 4 x 4 matrix of numbers"),
        ([[1, 0, 0, float("nan")], *np.eye(4).tolist()[1:]], "has numbers that are not finite"),
    ],
)
def test_poses_that_are_none(place, pose, words):
    np.save(place / "depth" / "0.npy", np.full(SHAPE, 2000, np.uint16))
    (place / "pose.json").write_text(json.dumps(pose))
    text = run("--pose", "pose.json", code=1)
    assert "pose.json: " in text and words in text


# ---- inputs that are not files ------------------------------------------------------------------


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="no devices here")
@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", "/dev/zero"],
        ["stats", "/dev/zero"],
        ["resample", "/dev/zero", "--rate", "5", "-o", "out"],
        ["voxelize", "/dev/zero", "--voxel-size", "1", "-o", "out"],
        ["cloud", "depth", "--intrinsics", "/dev/zero", "-o", "out"],
        ["cloud", "depth", "--intrinsics", "k.json", "--pose", "/dev/zero", "-o", "out"],
        ["inspect", "k.json", "--definition", "a/msg/B=/dev/zero"],
    ],
)
def test_devices_are_not_read(place, arguments):
    np.save(place / "depth" / "0.npy", np.full(SHAPE, 2000, np.uint16))
    result = RUNNER.invoke(app, arguments)
    assert result.exit_code == 1 and "/dev/zero: is a device" in result.stderr


def test_a_pipe_among_the_images_is_not_waited_for(place):
    os.mkfifo(place / "depth" / "0.png")
    assert "0.png: is a pipe, expected a file or a folder" in run(code=1)
