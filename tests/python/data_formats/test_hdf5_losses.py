"""HDF5: rows that were never written, and files that declare more than they contain."""

from __future__ import annotations

import os
import socket

import numpy as np
import pytest

import data_files
import robocache as rbc

h5py = pytest.importorskip("h5py")

from robocache.data._formats.hdf5 import process as hdf5_process  # noqa: E402

data = rbc.data


def made(path, libver="earliest", **options):
    """Write a file with one array; ``options`` are passed to create_dataset."""
    with h5py.File(path, "w", libver=libver) as file:
        dataset = file.create_dataset("data/demo_0/actions", **options)
        file["data/demo_0/filled"] = np.arange(float(dataset.shape[0]))
    return path


def write(path, rows, values, name="actions"):
    with h5py.File(path, "r+") as file:
        file[f"data/demo_0/{name}"][rows] = values


def texts(episodes):
    return [each.text for each in episodes.load().problems]


def lines(episodes):
    """Return problems, each about an array of the demonstration."""
    return {(each.place, each.text) for each in episodes.load().problems}


# ---- never written ------------------------------------------------------------------------------


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize(
    "options",
    [{}, {"maxshape": (1000, 7)}, {"maxshape": (None, 7)}, {"maxshape": (None, None)},
     {"compression": "gzip"}, {"compression": "lzf", "shuffle": True}, {"fletcher32": True}],
)  # fmt: skip
def test_chunks_that_were_never_written(tmp_path, libver, options):
    """A recorder that died leaves such chunks, in each kind of chunk index."""
    path = made(
        tmp_path / "x.hdf5", libver, shape=(1000, 7), dtype="f4", chunks=(100, 7), **options
    )
    values = np.random.default_rng(0).random((500, 7)) + 1
    write(path, np.s_[:500], values)
    episodes = data.open(path).load()
    assert lines(episodes) == {
        ("data/demo_0/actions", "rows 500 to 999 were never written, and read as 0.0")
    }
    np.testing.assert_array_equal(episodes["actions"].values[:500], values.astype("f4"))
    assert (episodes["actions"].values[500:] == 0).all()
    write(path, np.s_[500:], 1)
    assert texts(data.open(path)) == []


def test_ranges_and_the_fill_value(tmp_path):
    path = made(
        tmp_path / "x.hdf5", shape=(95, 4), dtype="i2", chunks=(10, 2), fillvalue=-7,
        maxshape=(None, 4),
    )  # fmt: skip
    write(path, np.s_[20:40], 1)
    write(path, np.s_[60:70, :2], 2)  # half of the channels
    write(path, np.s_[90:], 3)
    episodes = data.open(path).load()
    assert texts(episodes) == ["rows 0 to 19, 40 to 89 were never written, and read as -7"]
    with h5py.File(path) as file:
        np.testing.assert_array_equal(episodes["actions"].values, file["data/demo_0/actions"][...])
    chunks = {"chunks": (1, 4), "dtype": "i2"}
    path = made(tmp_path / "y.hdf5", shape=(40, 4), **chunks)
    for row in range(0, 40, 2):
        write(path, row, row)
    (text,) = texts(data.open(path))
    assert text.startswith("rows 1 to 1, 3 to 3, 5 to 5, in 17 more ranges, 20 rows in all, were")


def test_an_array_that_was_resized_and_not_filled(tmp_path):
    path = made(tmp_path / "x.hdf5", shape=(100, 3), dtype="f8", chunks=(50, 3), maxshape=(None, 3))
    write(path, np.s_[:], 1)
    with h5py.File(path, "r+") as file:
        file["data/demo_0/actions"].resize(400, 0)
        file["data/demo_0/filled"].parent.pop("filled")
    assert texts(data.open(path)) == ["rows 100 to 399 were never written, and read as 0.0"]
    with h5py.File(path, "r+") as file:
        file["data/demo_0/actions"].resize(100, 0)
    assert texts(data.open(path)) == []


@pytest.mark.parametrize("fill", [None, 5.0])
def test_an_array_in_one_piece_that_was_never_written(tmp_path, fill):
    path = made(tmp_path / "x.hdf5", shape=(20, 3), dtype="f8", fillvalue=fill)
    (text,) = texts(data.open(path))
    assert text == f"rows 0 to 19 were never written, and read as {fill or 0.0}"
    write(path, 0, 1)  # HDF5 fills the rest
    assert texts(data.open(path)) == []


@pytest.mark.parametrize("chunks", [None, (5, 3)])
def test_no_fill_value_is_defined(tmp_path, chunks):
    """HDF5 then leaves the memory unchanged, which contains the previous array."""
    path = tmp_path / "x.hdf5"
    with h5py.File(path, "w") as file:
        file["data/demo_0/actions"] = np.full((20, 3), 77.0)
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        plist.set_alloc_time(h5py.h5d.ALLOC_TIME_LATE)
        if chunks:
            plist.set_chunk(chunks)
        space = h5py.h5s.create_simple((20, 3))
        group = file["data/demo_0"].id
        h5py.h5d.create(group, b"z", h5py.h5t.NATIVE_DOUBLE, space, plist)
    episodes = data.open(path).load()
    assert (episodes["z"].values == 0).all()
    assert texts(episodes) == ["rows 0 to 19 were never written, and read as 0.0"]


def test_a_chunk_that_is_damaged_loses_its_rows_only(tmp_path):
    path = made(
        tmp_path / "x.hdf5", shape=(3_000_000,), dtype="i4", chunks=(1_000_000,), fletcher32=True
    )
    write(path, np.s_[:], np.arange(3_000_000))
    with h5py.File(path) as file:
        at = file["data/demo_0/actions"].id.get_chunk_info(1).byte_offset
    content = bytearray(path.read_bytes())
    content[at + 1000] ^= 1
    path.write_bytes(content)
    with pytest.raises(data.FormatError, match="rows 1000000 to 1999999 cannot be read") as caught:
        data.open(path).load()
    assert caught.value.place == "data/demo_0/actions"
    kept = data.open(path, damaged="keep").load()
    expected = np.arange(3_000_000)
    expected[1_000_000:2_000_000] = 0
    np.testing.assert_array_equal(kept["actions"].values[:, 0], expected)
    assert kept.problems[0].text.endswith("; they are set to 0")


def test_arrays_of_many_pieces(tmp_path):
    """Chunks of several sizes, and rows that end within one."""
    rng = np.random.default_rng(0)
    path, expected = tmp_path / "x.hdf5", {}
    with h5py.File(path, "w") as file:
        for n, chunks in enumerate([None, (1000, 3), (300_001, 1), (77_777, 5), (300_001, 5)]):
            expected[f"a{n}"] = rng.normal(size=(300_001, 5)).astype("f4")
            name = f"data/demo_0/a{n}"
            file.create_dataset(name, data=expected[f"a{n}"], chunks=chunks)
        file["data/demo_0/actions"] = np.arange(300_001)
    episodes = data.open(path).load()
    for name, values in expected.items():
        np.testing.assert_array_equal(episodes[name].values, values)


# ---- more than they hold ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"shape": (1 << 40,), "dtype": "f4"},
        {"shape": (1 << 40,), "dtype": "f4", "chunks": (1 << 20,), "compression": "gzip"},
        {"shape": (1 << 40, 0), "dtype": "f4", "chunks": (1 << 20, 1), "maxshape": (None, None)},
        {"shape": (1 << 62, 7), "dtype": "f8", "chunks": (1 << 10, 7)},
        {"shape": (1 << 29,), "dtype": "bool", "chunks": (1,)},
    ],
)
def test_a_small_file_that_unpacks_to_terabytes(tmp_path, options):
    path = tmp_path / "x.hdf5"
    with h5py.File(path, "w") as file:
        file.create_dataset("actions", **options)
    assert path.stat().st_size < 10_000
    with pytest.raises(data.FormatError, match=r"unpacks to [\d,]+ bytes.*max_unpacked=") as caught:
        data.open(path, damaged="keep")
    assert caught.value.path == str(path) and caught.value.place == "//actions"


def test_one_array_by_many_names(tmp_path):
    path = tmp_path / "x.hdf5"
    with h5py.File(path, "w") as file:
        first = file.create_group("data/demo_0")
        first["actions"] = np.zeros((100_000, 7))
        for n in range(1, 100):
            file[f"data/demo_{n}"] = first
    with pytest.raises(data.FormatError, match="unpacks to 560,000,000 bytes"):
        data.open(path, max_unpacked=500_000_000)
    assert len(data.open(path, max_unpacked=600_000_000)) == 100


def test_a_chunk_of_gigabytes(tmp_path):
    path = tmp_path / "x.hdf5"
    options = {"maxshape": (None, 7), "compression": "gzip", "dtype": "f4"}
    with h5py.File(path, "w") as file:
        file.create_dataset("actions", (10, 7), chunks=((1 << 30) // 8, 7), **options)
    with pytest.raises(data.FormatError, match="a chunk: unpacks to 3,758,096,384 bytes") as caught:
        data.open(path)
    assert "//actions" in caught.value.place


def test_a_chunk_that_unpacks_to_more_than_it_is(tmp_path):
    """Its gzip data unpack to 640 MiB; a chunk has 80 bytes."""
    import zlib

    path = made(tmp_path / "x.hdf5", shape=(10,), dtype="f8", chunks=(10,), compression="gzip")
    packer = zlib.compressobj(1)
    packed = b"".join(packer.compress(bytes(1 << 24)) for _ in range(40)) + packer.flush()
    with h5py.File(path, "r+") as file:
        file["data/demo_0/actions"].id.write_direct_chunk((0,), packed)
    with pytest.raises(data.FormatError, match="rows 0 to 9 cannot be read"):
        data.open(path, max_unpacked=1000).load()
    with open(f"/proc/{hdf5_process._worker.process.pid}/status") as file:
        (peak,) = [int(line.split()[1]) for line in file if line.startswith("VmHWM")]
    assert peak < 500 << 10


def test_what_an_array_may_unpack_to_can_be_raised(tmp_path):
    path = made(
        tmp_path / "x.hdf5", shape=(1000, 7), dtype="f4", chunks=(100, 7), compression="gzip"
    )
    write(path, np.s_[:], 1)
    with pytest.raises(data.FormatError, match="max_unpacked=36000"):
        data.open(path, max_unpacked=3000)
    assert len(data.open(path, max_unpacked=36000)["actions"].values) == 1000


def test_groups_that_all_episodes_link_to(tmp_path):
    """A hundred episodes with the same names."""
    path = tmp_path / "x.hdf5"
    with h5py.File(path, "w") as file:
        many = file.create_group("many")
        for n in range(400):
            many.create_group(str(n))
        for n in range(100):
            demo = file.create_group(f"data/demo_{n}")
            demo["actions"] = np.zeros((2, 2))
            demo["many"] = many
    with pytest.raises(data.FormatError, match="has more names than its size allows"):
        data.open(path)


def test_groups_within_groups(tmp_path):
    path = tmp_path / "x.hdf5"
    data_files.write_robomimic(path)
    with h5py.File(path, "r+") as file:
        group = file["data/demo_0"]
        for _ in range(200):
            group = group.create_group("g")
    (reason,) = [e.reason for e in data.open(path).left_out if "g/g" in e.place]
    assert reason == "is nested in more than 64 groups"


def test_a_huge_attribute(tmp_path):
    path = tmp_path / "x.hdf5"
    with h5py.File(path, "w", libver="latest") as file:
        file["data/demo_0/actions"] = np.zeros((5, 2))
        file["data"].attrs["small"] = 1
        file["data"].attrs["large"] = np.zeros(3 << 20)
        file["data"].attrs["words"] = "x" * (20 << 20)
    episodes = data.open(path)
    assert set(episodes.info) == {"small", "episodes"}
    reasons = {e.place: e.reason for e in episodes.left_out}
    assert reasons["attribute large"] == "has 25,165,824 bytes, expected at most 16,777,216"
    assert "expected at most 16,777,216" in reasons["attribute words"]


# ---- attributes and types -----------------------------------------------------------------------


def test_attributes_of_all_types(tmp_path):
    path = tmp_path / "x.hdf5"
    kinds = h5py.enum_dtype({"no": 0, "yes": 1}, basetype="i1")
    given = {
        "int": 3, "big": np.array(5, ">i4"), "float": 0.5, "bool": True, "text": "ü", "one": [7],
        "half": np.float16(1.5), "bytes": np.bytes_(b"abc"), "list": [1.0, 2.0],
        "texts": ["a", "b"], "swapped": np.array([1, 2], ">u2"), "nan": np.nan,
        "ulong": np.uint64(2**64 - 1), "flags": np.array([True, False]),
    }  # fmt: skip
    with h5py.File(path, "w") as file:
        file["data/demo_0/actions"] = np.zeros((5, 2))
        attributes = file["data"].attrs
        for name, value in given.items():
            attributes[name] = value
        attributes.create("kind", 1, dtype=kinds)
        attributes["nothing"] = h5py.Empty("f4")
        attributes["reference"] = file["data"].ref
        attributes["table"] = np.zeros(2, [("a", "i4"), ("b", "f8")])
        h5py.h5a.create(
            file["data"].id, b"\xffname", h5py.h5t.NATIVE_INT32, h5py.h5s.create(h5py.h5s.SCALAR)
        )
    episodes = data.open(path)
    info = dict(episodes.info)
    assert info.pop("\udcffname") == 0 and info.pop("kind") == 1
    assert np.isnan(info.pop("nan")) and info.pop("bool") is True
    expected = {"int": 3, "big": 5, "float": 0.5, "text": "ü", "one": 7, "half": 1.5}
    expected |= {"bytes": "abc", "ulong": 2**64 - 1}
    assert {name: info[name] for name in expected} == expected
    for name in ("list", "texts", "swapped", "flags"):
        np.testing.assert_array_equal(info[name], given[name])
    reasons = {e.place: e.reason for e in episodes.left_out}
    for name in ("nothing", "reference", "table"):
        assert reasons[f"attribute {name}"] == "is neither numbers nor text"


@pytest.mark.parametrize("total", ["many", [1, 2], np.nan])
def test_a_total_that_is_no_number(tmp_path, total):
    path = tmp_path / "x.hdf5"
    data_files.write_robomimic(path)
    with h5py.File(path, "r+") as file:
        file["data"].attrs["total"] = total
    assert "attribute total is" in texts(data.open(path))[0]


@pytest.mark.parametrize("told", ["many", [1, 2], np.nan, np.inf, 2.5])
def test_a_length_that_is_no_number(tmp_path, told):
    path = tmp_path / "x.hdf5"
    data_files.write_robomimic(path)
    with h5py.File(path, "r+") as file:
        file["data/demo_0"].attrs["num_samples"] = told
    with pytest.raises(data.FormatError, match="num_samples is not a whole number"):
        data.open(path)


def test_arrays_of_all_types(tmp_path):
    path = tmp_path / "x.hdf5"
    given = {
        "actions": np.arange(6.0).reshape(3, 2), "half": np.arange(3, dtype="f2"),
        "big": np.arange(6, dtype=">f4").reshape(3, 2), "swapped": np.arange(3, dtype=">i8"),
        "bool": np.array([True, False, True]), "byte": np.arange(3, dtype="u1"),
        "cube": np.arange(12, dtype="i2").reshape(3, 2, 2),
    }  # fmt: skip
    with h5py.File(path, "w") as file:
        group = file.create_group("data/demo_0")
        for name, values in given.items():
            group[name] = values
        kinds = h5py.enum_dtype({"a": 0, "b": 5}, basetype="i1")
        group.create_dataset("kind", data=[0, 5, 0], dtype=kinds)
        group["texts"] = ["a", "b", "c"]
        group["fixed"] = np.array([b"a", b"b", b"c"])
        group["table"] = np.zeros(3, [("a", "i4"), ("b", "f8")])
        group["complex"] = np.zeros(3, complex)
        group["long"] = np.zeros(3, np.longdouble)
        group["references"] = np.array([group.ref] * 3, h5py.ref_dtype)
        group["nothing"] = h5py.Empty("f4")
        group["scalar"] = 3.0
        group.create_dataset("ragged", (3,), h5py.vlen_dtype("i4"))
    episodes = data.open(path).load()
    assert set(episodes.tracks) == {*given, "kind"}
    for name, values in {**given, "kind": np.array([0, 5, 0])}.items():
        got = episodes[name].values
        assert got.dtype.name == values.dtype.name or name == "kind"
        assert got.dtype.isnative
        np.testing.assert_array_equal(got, values.reshape(got.shape))
    left_out = {e.place for e in episodes.left_out}
    assert {"texts", "fixed", "table", "complex", "long", "references", "nothing", "scalar",
            "ragged"} <= left_out  # fmt: skip


def test_a_bool_that_is_another_number(tmp_path):
    path = tmp_path / "x.hdf5"
    with h5py.File(path, "w") as file:
        values = file.create_dataset("action", (3,), bool)
        values.id.write(
            h5py.h5s.ALL, h5py.h5s.ALL, np.array([0, 7, 1], "u1").view(bool), values.id.get_type()
        )
    got = data.open(path)["action"].values
    assert got.view(np.uint8).tolist() == [[0], [1], [1]]


def test_a_filter_that_is_not_there(tmp_path):
    path = made(tmp_path / "x.hdf5", shape=(10, 2), dtype="f8", chunks=(5, 2))
    with h5py.File(path, "r+") as file:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_chunk((5,))
        plist.set_filter(399, h5py.h5z.FLAG_OPTIONAL)
        space = h5py.h5s.create_simple((10,))
        group = file["data/demo_0"].id
        h5py.h5d.create(group, b"packed", h5py.h5t.NATIVE_DOUBLE, space, plist)
    episodes = data.open(path)
    assert "packed" not in episodes.tracks
    reasons = {e.place: e.reason for e in episodes.left_out}
    assert "the filter 399, which is not installed" in reasons["packed"]


def test_names_that_are_not_utf_8(tmp_path):
    path = os.fsencode(tmp_path) + b"/\xff.hdf5"
    values = np.arange(6.0).reshape(3, 2)
    with h5py.File(path, "w") as file:
        file["action"] = values
        h5py.h5d.create(file.id, b"\xfe", h5py.h5t.NATIVE_INT32, h5py.h5s.create_simple((3,)))
    episodes = data.open(os.fsdecode(path)).load()
    np.testing.assert_array_equal(episodes["action"].values, values)
    assert "\udcfe" in episodes.tracks


# ---- the source ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_no_file_in_a_folder_of_episodes(tmp_path, kind):
    data_files.write_aloha(tmp_path / "episode_0.hdf5")
    other = tmp_path / "episode_1.hdf5"
    if kind == "pipe":
        os.mkfifo(other)
    else:
        made = socket.socket(socket.AF_UNIX)
        made.bind(os.path.relpath(other))
        made.close()
    with pytest.raises(data.FormatError, match=f"episode_1.hdf5: is a {kind}"):
        data.open(tmp_path)
    kept = data.open(tmp_path, damaged="keep").load()
    assert len(kept) == 1 and f"is a {kind}" in str(kept.problems[0])


def test_suffixes_in_capitals(tmp_path):
    data_files.write_aloha(tmp_path / "episode_0.hdf5")
    data_files.write_aloha(tmp_path / "EPISODE_1.HDF5")
    data_files.write_aloha(tmp_path / "EPISODE_2.H5")
    assert len(data.open(tmp_path)) == 3


def state(folder):
    return {
        entry.name: (entry.stat().st_mtime_ns, entry.stat().st_mode, open(entry, "rb").read())
        for entry in os.scandir(folder)
    }


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("damaged", [False, True])
def test_a_file_is_not_changed(tmp_path, libver, damaged):
    path = made(
        tmp_path / "x.hdf5", libver, shape=(1000, 7), dtype="f4", chunks=(100, 7), fletcher32=True
    )
    write(path, np.s_[:900], 1)
    if damaged:
        with h5py.File(path) as file:
            at = file["data/demo_0/actions"].id.get_chunk_info(1).byte_offset
        content = bytearray(path.read_bytes())
        content[at + 10] ^= 1
        path.write_bytes(content)
    os.chmod(path, 0o444)
    os.utime(path, (1, 1))
    before = state(tmp_path)
    data.open(path, damaged="keep").load()
    assert state(tmp_path) == before


def test_a_writer_that_died(tmp_path):
    """HDF5 marks a file in its newer format while the file is written."""
    path = tmp_path / "x.hdf5"
    with h5py.File(path, "w", libver="latest") as file:
        file["action"] = np.zeros((3, 2))
        file.flush()
        content = path.read_bytes()
    other = tmp_path / "y.hdf5"
    other.write_bytes(content)
    with pytest.raises(data.FormatError, match="or died while writing.*h5clear -s"):
        data.open(other)


def test_a_file_that_changes_while_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "x.hdf5"
    data_files.write_aloha(path)
    episodes = data.open(path)
    run = hdf5_process.File.read

    def meanwhile(self, pieces, take):
        run(self, pieces, take)
        os.utime(path)

    monkeypatch.setattr(hdf5_process.File, "read", meanwhile)
    with pytest.raises(data.FormatError, match="changed while it was read: read it again"):
        episodes.load()


def test_a_file_that_changed_after_it_was_opened(tmp_path):
    path = tmp_path / "x.hdf5"
    data_files.write_aloha(path)
    episodes = data.open(path)
    data_files.write_aloha(path, length=3)
    with pytest.raises(data.FormatError, match="it changed after it was opened"):
        episodes.load()
