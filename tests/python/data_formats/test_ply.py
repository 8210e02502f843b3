"""PLY files in all encodings, compared with plyfile."""

from __future__ import annotations

import numpy as np
import pytest
from plyfile import PlyData, PlyElement, PlyListProperty

import fuzz_readers
import robocache as rbc
from random_share import share_of

data = rbc.data
ENCODINGS = ("ascii", "binary_little_endian", "binary_big_endian")
TYPES = ("i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8")
FACES = np.array([([0, 1, 2], 7), ([1, 2], 8)], [("vertex_indices", "O"), ("kind", "i4")])


def numbers(rng, letters, rows):
    if letters[0] == "f":
        made = rng.normal(size=rows) * 10.0 ** rng.integers(-30, 30, rows)
        made[rng.random(rows) < 0.1] = np.nan
        return made.astype(letters)
    limits = np.iinfo(letters)
    return rng.integers(limits.min, limits.max, rows, letters, endpoint=True)


def vertices(seed, rows=50, lists=False):
    rng = np.random.default_rng(seed)
    names = ["x", "y", "z", *(f"p{i}" for i in range(rng.integers(0, 6)))]
    kinds = [(name, rng.choice(TYPES)) for name in names]
    if lists:
        kinds.insert(int(rng.integers(len(kinds))), ("seen", "O"))
    made = np.zeros(rows, kinds)
    for name, letters in kinds:
        if letters != "O":
            made[name] = numbers(rng, letters, rows)
    if lists:
        same = rng.random() < 0.5
        for row in range(rows):
            made["seen"][row] = np.arange(3 if same else rng.integers(0, 4), dtype="i2")
    return made


def write(path, encoding, *elements):
    order = {"ascii": "=", "binary_little_endian": "<", "binary_big_endian": ">"}[encoding]
    made = PlyData(list(elements), text=encoding == "ascii", byte_order=order)
    if encoding == "ascii":
        made.write(str(path))
        return path
    # plyfile does not swap the numbers of rows that have lists.
    body = b"".join(
        packed(row[p.name], p, order) for e in elements for row in e.data for p in e.properties
    )
    path.write_bytes(made.header.encode() + b"\n" + body)
    return path


def packed(value, kind, order):
    if not isinstance(kind, PlyListProperty):
        return np.array(value, order + kind.val_dtype).tobytes()
    count = np.array(len(value), order + kind.len_dtype).tobytes()
    return count + np.array(value, order + kind.val_dtype).tobytes()


def same(cloud, made):
    names = [name for name in made.dtype.names if made.dtype[name].kind != "O"]
    assert list(cloud.fields) == names and len(cloud) == len(made)
    for name in names:
        assert cloud.fields[name].dtype == made[name].dtype
        assert cloud.fields[name].dtype.isnative
        np.testing.assert_array_equal(cloud.fields[name], made[name])


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("lists", [False, True])
@pytest.mark.parametrize("faces_first", [False, True])
def test_as_plyfile(tmp_path, seed, encoding, lists, faces_first):
    made = vertices(seed, lists=lists)
    own = {"seen": "i2"} if lists else {}
    elements = [
        PlyElement.describe(made, "vertex", len_types=dict.fromkeys(own, "u2"), val_types=own),
        PlyElement.describe(FACES, "face", val_types={"vertex_indices": "i4"}),
    ]
    path = write(tmp_path / "x", encoding, *elements[:: -1 if faces_first else 1])
    cloud = data.open(path)
    same(cloud, made)
    again = PlyData.read(str(path))["vertex"]
    for name in cloud.fields:
        np.testing.assert_array_equal(cloud.fields[name], again[name])
    told = {each.place: each.reason for each in cloud.left_out}
    assert told.pop("face") == "2 rows (vertex_indices, kind), not read"
    assert told == ({"vertex.seen": "a list for each vertex, not read"} if lists else {})


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_ends_of_lines(tmp_path, end):
    lines = ["ply", "format ascii 1.0", "comment x é", "obj_info a b", "element vertex 2"]
    lines += [f"property float {axis}" for axis in "xyz"]
    lines += ["end_header", "1 2 3", "", "4  5\t6e-1 ", ""]
    (tmp_path / "x").write_bytes(end.join(lines).encode())
    points = data.open(tmp_path / "x").points
    np.testing.assert_array_equal(points, np.array([[1, 2, 3], [4, 5, 0.6]], "f4"))


def test_text_in_many_blocks(tmp_path):
    made = vertices(3, rows=20_000)
    same(data.open(write(tmp_path / "x", "ascii", PlyElement.describe(made, "vertex"))), made)


def test_colors(tmp_path):
    made = np.zeros(3, [("x", "f4"), *((name, "u1") for name in ("red", "green", "blue"))])
    made["green"] = [1, 2, 3]
    path = write(tmp_path / "x", ENCODINGS[1], PlyElement.describe(made, "vertex"))
    np.testing.assert_array_equal(data.open(path).colors, [[0, 1, 0], [0, 2, 0], [0, 3, 0]])
    with pytest.raises(data.FormatError, match="field y: is missing"):
        _ = data.open(path).points


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_no_rows(tmp_path, encoding):
    made = vertices(1, rows=0)
    cloud = data.open(write(tmp_path / "x", encoding, PlyElement.describe(made, "vertex")))
    assert len(cloud) == 0 and cloud.points.shape == (0, 3)


@pytest.mark.parametrize("name", ["ply", "ply-little", "ply-big"])
def test_cut_off_anywhere(tmp_path, name):
    path = fuzz_readers.FORMATS[name](tmp_path)
    content = path.read_bytes()
    whole = data.open(path)
    for size in share_of(range(4, len(content) - (name == "ply"))):
        path.write_bytes(content[:size])
        try:
            short = data.open(path)
        except data.FormatError:
            continue
        # The last number of a text may be cut to a shorter one, which no reader can notice.
        assert name == "ply" and size > len(content) - 7, size
        np.testing.assert_array_equal(short.points, whole.points)


HEAD = "ply\nformat ascii 1.0\nelement vertex 1\nproperty float x\nproperty uchar n\nend_header\n"


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ("end_header\n1.5 2\n", "", "has no line end_header"),
        ("end_header", "end", "has the line 'end', which is unknown"),
        ("format ascii 1.0\n", "", "has no line format"),
        ("ascii", "utf-8", "has the format utf-8 1.0, expected one of ascii, binary_little"),
        ("1.0", "2.0", "has the format ascii 2.0"),
        ("vertex 1", "vertex -1", "'element vertex -1', expected a number of rows"),
        ("vertex 1", "vertex 99999999999", "expected a number of rows"),
        ("vertex 1", "vertex 1 2", "'element vertex 1 2', which is unknown"),
        ("vertex", "face", "no element vertex; its elements are face"),
        ("float x", "half x", "'property half x', expected a property of the types char"),
        ("uchar n", "list float int n", "'property list float int n', expected a property"),
        ("uchar n", "uchar x", "two properties of vertex with the name 'x'"),
        ("\n1.5 2", "\n1.5", "vertex 0: has 1 numbers, but the header says 2"),
        ("\n1.5 2", "\n1.5 2 3", "vertex 0: has 3 numbers, but the header says 2"),
        ("\n1.5 2", "\n1.5 256", "vertex 0: n is 256, not a number of type uint8"),
        ("\n1.5 2", "\n1.5 -1", "vertex 0: n is -1, not a number of type uint8"),
        ("\n1.5 2", "\n1.5 2.5", "vertex 0: n is 2.5, not a number of type uint8"),
        ("\n1.5 2", "\n1e39 2", "vertex 0: x is .*, not a number of type float32"),
        ("\n1.5 2", "\n1.5 b", "vertex 0: n is b, which is not a number"),
        ("\n1.5 2", "\n0x1 2", "vertex 0: x is 0x1, which is not a number"),
        ("\n1.5 2", "", "vertex 0: file ends here, but the header says 1 rows of vertex"),
    ],
)
def test_damage(tmp_path, old, new, match):
    text = HEAD + "1.5 2\n"
    (tmp_path / "x.ply").write_text(text)
    assert data.open(tmp_path / "x.ply").fields["n"].tolist() == [2]
    assert old in text
    (tmp_path / "x.ply").write_text(text.replace(old, new))
    with pytest.raises(data.FormatError, match=match):
        data.open(tmp_path / "x.ply")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_count_below_the_file(tmp_path, encoding):
    """The rows beyond the count of the header are listed, not dropped silently."""
    path = tmp_path / "x.ply"
    made = np.array([(1, 2, 3), (4, 5, 6), (7, 8, 9)], [(name, "f4") for name in "xyz"])
    write(path, encoding, PlyElement.describe(made, "vertex"))
    assert data.open(path).left_out == ()
    path.write_bytes(path.read_bytes().replace(b"vertex 3", b"vertex 2"))
    cloud = data.open(path)
    assert cloud.fields["z"].tolist() == [3, 6]
    (left_out,) = cloud.left_out
    assert left_out.place == "end of the file"
    assert left_out.reason.startswith("1 line " if encoding == "ascii" else "12 bytes ")


def test_a_count_beyond_the_file(tmp_path):
    head = b"ply\nformat binary_little_endian 1.0\nelement vertex 2147483647\n"
    (tmp_path / "x").write_bytes(
        head + b"property list uchar int a\nproperty float x\nend_header\n"
    )
    with pytest.raises(data.FormatError, match="vertex 0: file ends here"):
        data.open(tmp_path / "x")


def test_a_folder(tmp_path):
    for i in (10, 2, 1):
        made = vertices(i, rows=i)
        write(tmp_path / f"{i}.ply", ENCODINGS[i % 3], PlyElement.describe(made, "vertex"))
    clouds = data.open(tmp_path)
    assert clouds.names == ["1.ply", "2.ply", "10.ply"] and [*map(len, clouds)] == [1, 2, 10]
    (tmp_path / "2.ply").write_bytes(b"")
    with pytest.raises(data.FormatError, match=r"2\.ply: .*empty|expected a PLY file"):
        data.open(tmp_path)
    assert len(data.open(tmp_path, damaged="keep")) == 3


def test_a_folder_of_tables_with_a_mesh(tmp_path):
    (tmp_path / "arm.csv").write_text("time_s,x\n0,1\n1,2\n")
    write(tmp_path / "mesh.ply", "ascii", PlyElement.describe(vertices(0), "vertex"))
    assert isinstance(data.open(tmp_path), data.Recording)
