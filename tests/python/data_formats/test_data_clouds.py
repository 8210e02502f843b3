"""Point clouds in files: PCD in all its encodings, and .bin sweeps."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import robocache as rbc

data = rbc.data

HEADER = """# .PCD v0.7 - Point Cloud Data file format
VERSION 0.7
FIELDS x y z rgb normal label _
SIZE 4 4 4 4 8 2 1
TYPE F F F F F U U
COUNT 1 1 1 1 3 1 4
WIDTH {width}
HEIGHT {height}
VIEWPOINT 1 2 3 1 0 0 0
POINTS {points}
DATA {data}
"""
DTYPE = np.dtype(
    [(name, "<f4") for name in ("x", "y", "z", "rgb")]
    + [("normal", "<f8", 3), ("label", "<u2"), ("_", "u1", 4)]
)


def records(points=12):
    rng = np.random.default_rng(0)
    made = np.zeros(points, DTYPE)
    for name in ("x", "y", "z"):
        made[name] = rng.normal(size=points)
    made["x"][3] = np.nan
    made["rgb"].view("<u4")[:] = rng.integers(0, 1 << 24, points)
    made["normal"] = rng.normal(size=(points, 3))
    made["label"] = rng.integers(0, 65535, points)
    return made


def lzf(content):
    """Pack with copies of runs, including runs that overlap their copies."""
    out = bytearray()
    at = 0
    literal = bytearray()

    def flush():
        while literal:
            part = literal[:32]
            out.append(len(part) - 1)
            out.extend(part)
            del literal[: len(part)]

    while at < len(content):
        found = None
        for apart in (1, 2, 4, 8, 24, 300):
            length = 0
            while (
                length < 264
                and at + length < len(content)
                and at >= apart
                and content[at + length - apart] == content[at + length]
            ):
                length += 1
            if length >= 3 and (found is None or length > found[1]):
                found = (apart, length)
        if found is None:
            literal.append(content[at])
            at += 1
            continue
        flush()
        apart, length = found
        high, low = divmod(apart - 1, 256)
        if length - 2 < 7:
            out.append((length - 2) << 5 | high)
        else:
            out += bytes([7 << 5 | high, length - 9])
        out.append(low)
        at += length
    flush()
    return bytes(out)


def write(path, made, kind, width=None, height=1):
    head = HEADER.format(width=width or len(made), height=height, points=len(made), data=kind)
    if kind == "ascii":
        rows = []
        for row in made:
            numbers = [
                row["x"],
                row["y"],
                row["z"],
                row["rgb"],
                *row["normal"],
                row["label"],
                *row["_"],
            ]
            rows.append(" ".join(repr(n.item()) for n in numbers))
        body = "\n".join(rows).encode() + b"\n"
    elif kind == "binary":
        body = made.tobytes()
    else:
        columns = b"".join(np.ascontiguousarray(made[name]).tobytes() for name in DTYPE.names)
        packed = lzf(columns)
        body = struct.pack("<II", len(packed), len(columns)) + packed
    path.write_bytes(head.encode() + body)
    return path


@pytest.mark.parametrize("kind", ["ascii", "binary", "binary_compressed"])
def test_pcd(tmp_path, kind):
    made = records()
    cloud = data.open(write(tmp_path / "no suffix ü", made, kind, 4, 3))
    assert len(cloud) == 12 and (cloud.width, cloud.height) == (4, 3)
    assert cloud.viewpoint == (1, 2, 3, 1, 0, 0, 0)
    assert list(cloud.fields) == ["x", "y", "z", "rgb", "normal", "label"]
    for name in cloud.fields:
        np.testing.assert_array_equal(cloud.fields[name], made[name])
        assert cloud.fields[name].dtype == DTYPE[name].base
    np.testing.assert_array_equal(cloud.points, np.stack([made[c] for c in "xyz"], 1))
    packed = made["rgb"].view("<u4").copy()
    expected = np.stack([packed >> 16 & 255, packed >> 8 & 255, packed & 255], 1)
    np.testing.assert_array_equal(cloud.colors, expected)
    assert cloud.colors.dtype == np.uint8


@pytest.mark.parametrize("kind", ["ascii", "binary", "binary_compressed"])
def test_pcd_that_is_cut_off(tmp_path, kind):
    path = write(tmp_path / "x.pcd", records(), kind)
    content = path.read_bytes()
    for cut in (len(content) - 20, 320, 200, 100):
        path.write_bytes(content[:cut])
        with pytest.raises(data.FormatError) as caught:
            data.open(path)
        assert caught.value.path == str(path) and caught.value.place


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("WIDTH 12", "WIDTH 13", "has POINTS 12, but 13 x 1"),
        ("SIZE 4 4 4 4 8 2 1", "SIZE 4", "have different lengths"),
        ("TYPE F F F F F U U", "TYPE Q F F F F U U", "cannot be read"),
        ("SIZE 4 4 4 4 8 2 1", "SIZE 7 4 4 4 8 2 1", "cannot be read"),
        ("POINTS 12\n", "", "has no POINTS"),
        ("DATA binary", "DATA zip", "has DATA zip"),
    ],
)
def test_headers_that_are_wrong(tmp_path, old, new, match):
    path = write(tmp_path / "x.pcd", records(), "binary")
    path.write_bytes(path.read_bytes().replace(old.encode(), new.encode()))
    with pytest.raises(data.FormatError, match=match):
        data.open(path)


def test_damaged_packed_points(tmp_path):
    path = write(tmp_path / "x.pcd", records(), "binary_compressed")
    content = bytearray(path.read_bytes())
    begin = content.index(b"DATA binary_compressed\n") + len(b"DATA binary_compressed\n") + 8
    for value in (0xFF, 0x20, 0x00):
        content[begin] = value
        path.write_bytes(content)
        with pytest.raises(data.FormatError, match="compressed data are damaged"):
            data.open(path)


def sweep(points, width, seed=0):
    rng = np.random.default_rng(seed)
    made = rng.normal(scale=20, size=(points, width)).astype("<f4")
    made[:, 3] = rng.random(points) if width == 4 else rng.integers(0, 256, points)
    if width == 5:
        made[:, 4] = rng.integers(0, 32, points)
    return made


def test_sweeps(tmp_path):
    kitti, nuscenes = sweep(1000, 4), sweep(1000, 5)
    kitti.tofile(tmp_path / "kitti.bin")
    nuscenes.tofile(tmp_path / "nuscenes.pcd.bin")
    one = data.open(tmp_path / "kitti.bin")
    assert list(one.fields) == ["x", "y", "z", "intensity"]
    np.testing.assert_array_equal(one.points, kitti[:, :3])
    other = data.open(tmp_path / "nuscenes.pcd.bin")
    np.testing.assert_array_equal(other.fields["ring"], nuscenes[:, 4])


def test_bin_files_that_are_no_sweeps(tmp_path):
    rng = np.random.default_rng(0)
    for i, content in enumerate(
        [b"", b"123", rng.bytes(8000), rng.integers(0, 1000, 2000, np.int32).tobytes()]
    ):
        (tmp_path / f"{i}.bin").write_bytes(content)
        with pytest.raises(data.FormatError, match="unknown format|it is empty"):
            data.open(tmp_path / f"{i}.bin")


def test_a_folder_of_clouds(tmp_path):
    for number in (2, 10, 1):
        sweep(100 + number, 4, number).tofile(tmp_path / f"{number}.bin")
    clouds = data.open(tmp_path)
    assert clouds.names == ["1.bin", "2.bin", "10.bin"]
    assert [len(cloud) for cloud in clouds] == [101, 102, 110]
    assert len(clouds[1:]) == 2 and len(clouds[-1]) == 110


def ascii_cloud(path, fields, types, sizes, lines, points=None):
    points = len(lines) if points is None else points
    path.write_text(
        f"VERSION 0.7\nFIELDS {fields}\nSIZE {sizes}\nTYPE {types}\n"
        f"WIDTH {points}\nHEIGHT 1\nPOINTS {points}\nDATA ascii\n" + "\n".join(lines) + "\n"
    )
    return path


def test_integers_of_ascii_are_exact(tmp_path):
    begin, largest = 1_700_000_000_123_456_789, (1 << 64) - 1
    lines = [f"0 0 0 {begin + i} {-begin - i} {i}.0 {i}e1" for i in range(5)]
    lines += ["", f"nan inf -inf {largest} {-(1 << 63)} 255 -128  ", ""]
    path = ascii_cloud(
        tmp_path / "x.pcd", "x y z t s ring k", "F F F U I U I", "4 4 4 8 8 1 1", lines, 6
    )
    cloud = data.open(path)
    assert cloud.fields["t"].tolist() == [begin + i for i in range(5)] + [largest]
    assert cloud.fields["s"].tolist() == [-begin - i for i in range(5)] + [-(1 << 63)]
    assert cloud.fields["ring"].tolist() == [0, 1, 2, 3, 4, 255]
    assert cloud.fields["k"].tolist() == [0, 10, 20, 30, 40, -128]
    assert np.isnan(cloud.points[5, 0]) and np.isinf(cloud.points[5, 1:]).all()


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("1 1 1 7 99", "point 1: has 5 numbers, but FIELDS and COUNT say 4"),
        ("1 1 1", "point 1: has 3 numbers"),
        ("1 1 1 300", "point 1: n is 300, which is out of range for uint8"),
        ("1 1 1 -1", "point 1: n is -1, which is out of range for uint8"),
        ("1 1 1 1.5", "point 1: n is 1.5, which is not an integer"),
        ("1 1 1 nan", "point 1: n is nan, which is not an integer"),
        ("1 1 1 " + "9" * 5000, "point 1: n is 9{40}, which is not an integer"),
        ("1 1e39 1 7", "point 1: y is 1e39, which is out of range for float32"),
        ("1 one 1 7", "point 1: y is one, which is not a number"),
    ],
)
def test_lines_of_ascii_that_are_wrong(tmp_path, line, match):
    path = ascii_cloud(
        tmp_path / "x.pcd", "x y z n", "F F F U", "4 4 4 1", ["0 0 0 0", line, "2 2 2 2"]
    )
    with pytest.raises(data.FormatError, match=match):
        data.open(path)


def test_clouds_without_points(tmp_path):
    path = ascii_cloud(tmp_path / "x.pcd", "x y", "F F", "4 4", ["1 2"])
    cloud = data.open(path)
    assert cloud.fields["y"].tolist() == [2]
    with pytest.raises(data.FormatError, match="x.pcd: field z: is missing: the cloud has only th"):
        np.asarray(cloud.points)
    text = path.read_text().replace("TYPE F F", "TYPE F F F\nCOUNT 1 1 2")
    text = text.replace("FIELDS x y", "FIELDS x y z").replace("SIZE 4 4", "SIZE 4 4 4")
    text = text.replace("ascii\n1 2", "ascii\n1 2 3 4")
    path.write_text(text)
    with pytest.raises(data.FormatError, match="field z: has 2 numbers per point, expected 1"):
        np.asarray(data.open(path).points)


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("VIEWPOINT 1 2 3", "VIEWPOINT one 2 3", "header: cannot be read"),
        ("COUNT 1 1 1 1 3 1 4", "COUNT 0 0 0 0 0 0 0", "COUNT is 0 for all FIELDS"),
    ],
)
def test_headers_that_were_errors_of_numpy(tmp_path, old, new, match):
    path = write(tmp_path / "a.pcd", records(), "binary")
    path.write_bytes(path.read_bytes().replace(old.encode(), new.encode()))
    write(tmp_path / "b.pcd", records(), "binary")
    with pytest.raises(data.FormatError, match=match):
        data.open(tmp_path)[0]


@pytest.mark.parametrize("suffix", [".pcd", ".bin"])
@pytest.mark.parametrize(
    "make",
    [lambda p: p.write_bytes(b""), lambda p: p.write_bytes(b"404 gone"), lambda p: p.mkdir()],
)
def test_a_file_of_a_folder_that_is_no_cloud(tmp_path, suffix, make):
    """It is damage; with ``damaged="keep"``, the other clouds keep their indices."""
    for number in (4, 6):
        if suffix == ".pcd":
            write(tmp_path / f"{number}.pcd", records(number), "binary")
        else:
            sweep(number, 4).tofile(tmp_path / f"{number}.bin")
    (tmp_path / f"._4{suffix}").write_bytes(b"what macOS writes beside files")
    (tmp_path / "readme.txt").write_text("notes, not a cloud")
    assert [len(cloud) for cloud in data.open(tmp_path)] == [4, 6]
    make(tmp_path / f"5{suffix}")
    with pytest.raises(data.FormatError, match="expected a .*, got a f.*; damaged=") as caught:
        data.open(tmp_path)
    assert caught.value.path == str(tmp_path / f"5{suffix}")
    kept = data.open(tmp_path, damaged="keep")
    assert kept.names == [f"{number}{suffix}" for number in (4, 5, 6)]
    assert len(kept[2]) == 6
    with pytest.raises(data.FormatError, match=f"5{suffix}: (is not|expected) a "):
        kept[1]


def test_names_without_numbers_are_in_order(tmp_path):
    letters = [chr(ord("a") + 7 * n % 26) for n in range(26)]  # folders list in their own order
    for name in letters:
        sweep(10, 4).tofile(tmp_path / f"{name}.bin")
    assert data.open(tmp_path).names == [f"{name}.bin" for name in sorted(letters)]


def test_the_real_ones(recordings):
    if not (recordings / "pcl").is_dir():
        pytest.skip(f"no {recordings / 'pcl'}")
    clouds = {c.path.rpartition("/")[2]: c for c in data.open(recordings / "pcl")}
    office = clouds["office1.pcd"]
    assert (office.width, office.height) == (640, 480)
    assert np.isfinite(office.points).all(axis=1).sum() == 254456
    assert len(clouds["milk_color.pcd"]) == 13704 and clouds["milk_color.pcd"].colors.std() > 10
    assert len(clouds["bunny.pcd"]) == 397 and len(clouds["lamppost.pcd"]) == 1771
    lidar = data.open(recordings / "lidar_outdoor")
    assert [len(cloud) for cloud in lidar] == [69088, 69792]
    voxels = rbc.voxelize_sparse(lidar[0].points, voxel_size=1.0, origin=(-50, -50, -5),
                                 shape=(100, 100, 10))  # fmt: skip
    assert len(voxels.coords) > 1000
