"""Clouds, images, cameras and definitions that ask for more memory or time than their size."""

from __future__ import annotations

import json
import os
import resource
import struct
import zlib

import numpy as np
import pytest
import typer

import robocache as rbc
from robocache.cli import _common as common
from robocache.cli import _depth_files as camera
from robocache.cli import _depth_files as images

data = rbc.data


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def refused(match, read, *arguments):
    """With the file's name, and with little memory."""
    before = peak()
    with pytest.raises(data.FormatError, match=match) as caught:
        read(*arguments)
    assert str(caught.value).startswith(str(arguments[0]))
    assert peak() - before < 150 << 20


# ---- clouds -------------------------------------------------------------------------------------


def pcd(path, points, kind, body, **changed):
    head = {"FIELDS": "x y z", "SIZE": "4 4 4", "TYPE": "F F F", "COUNT": "1 1 1",
            "WIDTH": str(points), "HEIGHT": "1", "POINTS": str(points), "DATA": kind}  # fmt: skip
    head.update(changed)
    lines = "".join(f"{name} {value}\n" for name, value in head.items())
    path.write_bytes(b"# .PCD v0.7\nVERSION 0.7\n" + lines.encode() + body)
    return path


@pytest.mark.parametrize("kind", ["ascii", "binary", "binary_compressed"])
@pytest.mark.parametrize("points", [1 << 30, 1 << 40])
def test_more_points_than_a_file_holds(tmp_path, kind, points):
    body = b"1 2 3\n" if kind == "ascii" else bytes(100)
    refused(None, data.open, pcd(tmp_path / "x.pcd", points, kind, body))


def test_a_count_without_end(tmp_path):
    path = pcd(tmp_path / "x.pcd", 1, "binary", bytes(100), COUNT=f"1 1 {1 << 40}")
    refused("header: cannot be read", data.open, path)


def lzf(packed, size):
    return struct.pack("<II", len(packed), size) + packed


def test_lzf_that_cannot_unpack_to_what_it_should(tmp_path):
    """No byte of it is unpacked: at best 3 bytes are 264."""
    points = (1 << 32) // 12
    path = pcd(tmp_path / "x.pcd", points, "binary_compressed", lzf(bytes(100), points * 12))
    refused("points: unpacks to 4,294,967,292 bytes or more", data.open, path)
    path = pcd(tmp_path / "x.pcd", 1000, "binary_compressed", lzf(bytes(100), 12000))
    refused("100 packed bytes unpack to 8800 at most, expected 12000", data.open, path)


def test_lzf_that_unpacks_to_more(tmp_path):
    """Unpacking stops at what is expected: 50 MB of it, not 100 times as much."""
    packed = b"\x00a" + b"\xe0\xff\x00" * 300_000
    assert len(packed) * 88 > 70 << 20
    path = pcd(tmp_path / "x.pcd", 100, "binary_compressed", lzf(packed, 1200))
    refused("compressed data are damaged", data.open, path)


def test_the_limit_of_a_caller_counts(tmp_path):
    path = pcd(tmp_path / "x.pcd", 22, "binary_compressed", lzf(b"\x00a" + b"\xe0\xff\x00", 264))
    with pytest.raises(data.FormatError, match="open it with max_unpacked=264"):
        data.open(path, max_unpacked=200)


def test_a_lack_of_memory_names_the_cloud(tmp_path, monkeypatch):
    """This includes the clouds of a folder, which are read when they are used."""
    pcd(tmp_path / "1.pcd", 1, "ascii", b"1 2 3\n")
    clouds = data.open(tmp_path)

    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(np, "array", fail)
    with pytest.raises(MemoryError, match="1.pcd"):
        clouds[0]


def test_a_pipe_among_clouds(tmp_path):
    pcd(tmp_path / "1.pcd", 1, "ascii", b"1 2 3\n")
    os.mkfifo(tmp_path / "2.pcd")
    with pytest.raises(data.FormatError, match="2.pcd: is a pipe"):
        data.open(tmp_path)
    (tmp_path / "2.pcd").unlink()
    pcd(tmp_path / "2.pcd", 1, "ascii", b"1 2 3\n")
    clouds = data.open(tmp_path)
    (tmp_path / "2.pcd").unlink()
    os.mkfifo(tmp_path / "2.pcd")
    with pytest.raises(data.FormatError, match="2.pcd"):
        clouds[1]


def test_a_pipe_in_place_of_a_sweep(tmp_path):
    np.ones((9, 4), np.float32).tofile(tmp_path / "1.bin")
    clouds = data.open(tmp_path)
    assert len(clouds[0]) == 9
    (tmp_path / "1.bin").unlink()
    os.mkfifo(tmp_path / "1.bin")
    with pytest.raises(data.FormatError, match="1.bin"):
        clouds[0]


# ---- images -------------------------------------------------------------------------------------


def png(path, width, height):
    """A picture of 16 bits a pixel, all 0."""
    packer = zlib.compressobj(9)
    row = bytes(1 + 2 * width)
    body = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    content = b"\x89PNG\r\n\x1a\n"
    head = struct.pack(">IIBBBBB", width, height, 16, 0, 0, 0, 0)
    for name, part in ((b"IHDR", head), (b"IDAT", body), (b"IEND", b"")):
        content += struct.pack(">I", len(part)) + name + part
        content += struct.pack(">I", zlib.crc32(name + part))
    path.write_bytes(content)
    return path


def test_pictures_of_more_pixels_than_their_files_may_have(tmp_path):
    pytest.importorskip("PIL")
    assert images.depth_of(png(tmp_path / "a.png", 640, 480)).shape == (480, 640)
    path = png(tmp_path / "b.png", 100_000, 700)
    refused("has 100000 x 700 pixels, too many for a file of", images.depth_of, path)
    content = bytearray((tmp_path / "a.png").read_bytes())
    content[16:24] = struct.pack(">II", 50_000, 50_000)
    content[29:33] = struct.pack(">I", zlib.crc32(bytes(content[12:29])))
    (tmp_path / "c.png").write_bytes(content)
    refused(None, images.depth_of, tmp_path / "c.png")


@pytest.mark.parametrize(
    "content", [b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", b"GIF89a"]
)
def test_pictures_of_kinds_for_which_programs_are_run(tmp_path, content):
    """Pillow starts Ghostscript for PostScript files, regardless of their name."""
    pytest.importorskip("PIL")
    (tmp_path / "x.png").write_bytes(content + bytes(200))
    refused("is not a PNG, TIFF, PPM or JPEG", images.depth_of, tmp_path / "x.png")


@pytest.mark.parametrize("shape", [(1 << 40, 2), (1 << 20, 1 << 20)])
def test_an_array_of_more_than_its_file_holds(tmp_path, shape):
    with (tmp_path / "x.npy").open("wb") as file:
        head = {"descr": "<u2", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, head)
        file.write(bytes(1000))
    refused(None, images.depth_of, tmp_path / "x.npy")


def test_an_archive_in_place_of_an_array(tmp_path):
    np.savez(tmp_path / "x.npz", a=np.zeros(3))
    (tmp_path / "x.npz").rename(tmp_path / "x.npy")
    refused("is an archive of arrays", images.depth_of, tmp_path / "x.npy")


def test_pgm_of_more_pixels_than_its_file_holds(tmp_path):
    for kind in (b"P2", b"P5"):
        (tmp_path / "x.pgm").write_bytes(kind + b" 999999999 999999999 65535\n1 2 3")
        refused("expected 999999999 x 999999999", images.depth_of, tmp_path / "x.pgm")


def test_pillow_without_memory(tmp_path, monkeypatch):
    image = pytest.importorskip("PIL.Image")
    png(tmp_path / "x.png", 8, 8)

    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr(image, "open", fail)
    with pytest.raises(MemoryError, match="x.png"):
        images.depth_of(tmp_path / "x.png")


# ---- cameras, poses, definitions ----------------------------------------------------------------

CAMERA = {"fx": 500, "fy": 500, "cx": 320, "cy": 240}


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '{"K": ' * 100_000,
        "[" * 900 + "]" * 900,
        '{"a": ' * 900 + "1" + "}" * 900,
        '{"fx": ' + "9" * 5000 + "}",
        "[1, 2, 3, 1e999]",
        '{"K": [[1, 2], [3]]}',
    ],
    ids=["lists", "objects", "closed lists", "closed objects", "digits", "infinite", "ragged"],
)
def test_a_camera_that_is_none(tmp_path, text):
    (tmp_path / "k.json").write_text(text)
    refused(None, camera.read_camera, tmp_path / "k.json")
    refused(None, camera.read_pose, tmp_path / "k.json")


def test_distortion_deep_in_lists(tmp_path):
    """It is found, or none is: no depth is too much for it."""
    path = tmp_path / "k.json"
    path.write_text(json.dumps(CAMERA)[:-1] + ', "D": ' + "[" * 800 + "0" + "]" * 800 + "}")
    assert camera.read_camera(path).values == [500, 500, 320, 240]
    path.write_text(json.dumps(CAMERA)[:-1] + ', "D": ' + "[" * 800 + "1" + "]" * 800 + "}")
    refused("lens distortion is not corrected", camera.read_camera, path)


@pytest.mark.parametrize("read", [camera.read_camera, camera.read_pose, common.text_of])
def test_texts_that_are_too_long_or_none(tmp_path, read):
    path = tmp_path / "x.json"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    refused("file is larger than 4 MiB", read, path)
    path.write_bytes(b"\xff\xfe\x00")
    refused("not UTF-8 text", read, path)


def test_a_definition_that_is_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "x.msg")
    (tmp_path / "x.csv").write_text("time,a\n1,2\n2,3\n")
    with pytest.raises(common.Failure, match="x.msg: is a pipe"):
        common.open_data(tmp_path / "x.csv", definitions=[f"a/msg/B={tmp_path / 'x.msg'}"])
    with pytest.raises(typer.BadParameter):
        common.open_data(tmp_path / "x.csv", definitions=["a/msg/B"])


# ---- camera matrices ----------------------------------------------------------------------------


def test_a_camera_matrix_is_its_four_numbers():
    depth = np.random.default_rng(0).integers(0, 3000, (2, 6, 5)).astype(np.uint16)
    cameras = np.array([[2.0, 3, 0.5, 0.25], [4, 5, 1, 2]])
    matrices = np.array([[[fx, 0, cx], [0, fy, cy], [0, 0, 1]] for fx, fy, cx, cy in cameras])
    expected = rbc.unproject(depth, cameras).points
    for given in (matrices, matrices.tolist()):
        np.testing.assert_array_equal(rbc.unproject(depth, given).points, expected)
    one = rbc.unproject(depth, cameras[0]).points
    np.testing.assert_array_equal(rbc.unproject(depth, matrices[0]).points, one)
    np.testing.assert_array_equal(rbc.unproject(depth[0], matrices[0].tolist()).points, one[0])
    torch = pytest.importorskip("torch")
    made = rbc.unproject(torch.from_numpy(depth.astype("f4") / 1000), torch.from_numpy(matrices))
    np.testing.assert_array_equal(made.points.numpy(), expected)


@pytest.mark.parametrize("at", [(0, 1), (1, 0), (2, 0), (2, 1), (2, 2)])
def test_other_matrices_are_refused(at):
    matrix = np.array([[2.0, 0, 0.5], [0, 3, 0.25], [0, 0, 1]])
    matrix[at] = 0.5
    with pytest.raises(ValueError, match=r"^intrinsics: expected \[\[fx, 0, cx\]"):
        rbc.unproject(np.ones((4, 4), np.float32), matrix)
