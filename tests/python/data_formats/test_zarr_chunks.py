"""Zarr chunks that are not files, are missing, or need too much memory."""

from __future__ import annotations

import asyncio
import bz2
import errno
import gzip
import importlib
import json
import lzma
import os
import pickle
import resource
import threading
import zipfile
import zlib

import numpy as np
import pytest

import data_files
import robocache as rbc
from zarr_stores import ROWS, v2_array, v2_store, v3_array, write, zipped

zarr = pytest.importorskip("zarr")

data = rbc.data
VERSION = int(zarr.__version__.partition(".")[0])
needs_3 = pytest.mark.skipif(VERSION < 3, reason="Zarr 2 has no shards")
LITTLE = {"name": "bytes", "configuration": {"endian": "little"}}


def read(path, **options):
    return data.open(path, **options)["action"].values


def refused(path, match, **options):
    """Check that reading is refused, even with ``damaged="keep"`` if it is not about damage."""
    with pytest.raises(data.FormatError, match=match) as caught:
        read(path, **options)
    return caught.value


# ---- no files -----------------------------------------------------------------------------------


def replay_buffer(folder):
    """Write a replay buffer with the installed version of Zarr."""
    data_files.write_replay_buffer(folder, action=np.arange(22.0).reshape(11, 2))
    return folder


@pytest.mark.parametrize("kind", ["v2", "own"])
def test_a_pipe_in_place_of_any_file(tmp_path, kind):
    make = v2_store if kind == "v2" else replay_buffer
    names = [p.relative_to(tmp_path / "good") for p in make(tmp_path / "good").rglob("*")]
    names = [name for name in names if (tmp_path / "good" / name).is_file()]
    assert len(names) >= 6
    for i, name in enumerate(sorted(names)):
        path = make(tmp_path / str(i))
        (path / name).unlink()
        os.mkfifo(path / name)
        refused(path, "is a pipe")
        if "zarr" not in name.name and ".z" not in name.name:
            error = refused(path, "a chunk cannot be read.* is a pipe")
            if "action" in str(name):
                kept = data.open(path, damaged="keep").load()
                assert np.isnan(kept["action"].values).any()
                assert error.reason.startswith(kept.problems[0].text)


def test_a_folder_in_place_of_a_chunk(tmp_path):
    path = v2_store(tmp_path / "x")
    (path / "data/action/0.0").unlink()
    (path / "data/action/0.0").mkdir()
    (problem,) = data.open(path).load().problems
    assert problem.text == "1 of 1 chunks is missing, and read as 0.0"


@pytest.mark.parametrize("kind", ["recording", "episodes"])
def test_damage_of_a_saved_store_is_named(tmp_path, kind):
    """The damage is also reported for a part of the recording."""
    values = np.arange(22.0).reshape(11, 2)
    if kind == "episodes":
        data.Episodes({"a": rbc.Track(values, [0, 5, 11])}).save(tmp_path / "x", "zarr")
        chunk = tmp_path / "x/data/a/0.0"
    else:
        stream = data.RecordedStream("a", "test", ("x", "y"), values, {"log": np.arange(11.0)})
        data.Recording.from_streams([stream]).save(tmp_path / "x", "zarr")
        chunk = tmp_path / "x/streams/a/values/0.0"
    chunk.write_bytes(b"nothing")
    given = data.open(tmp_path / "x", damaged="keep")
    assert "a chunk cannot be read" in str(given.problems)
    if kind == "recording":
        for part in (given.select(["a"]), given.select(channels={"a": ["x"]})):
            assert part.problems == given.problems


# ---- missing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("fill", "value"), [(0, "0.0"), (7, "7.0"), ("NaN", "nan"), (None, "NaN")])
def test_missing_chunks_of_version_2(tmp_path, fill, value):
    path = v2_store(tmp_path / "x")
    head = v2_array(ROWS, chunks=[4, 1], fill_value=fill)
    write(path, {"data/action/.zarray": head})
    (path / "data/action/0.0").unlink()
    parts = {f"{i}.{j}": ROWS[4 * i : 4 * i + 4, j] for i in range(3) for j in range(2)}
    parts["2.0"], parts["2.1"] = (np.append(parts[name], [0, 0]) for name in ("2.0", "2.1"))
    del parts["1.0"]
    write(path, {f"data/action/{name}": part.tobytes() for name, part in parts.items()})
    given = data.open(path).load()
    expected = ROWS.copy()
    expected[4:8, 0] = float("nan" if fill is None else fill)
    np.testing.assert_array_equal(given["action"].values, expected)
    (problem,) = given.problems
    assert problem.text.startswith(f"1 of 6 chunks is missing, and read as {value}")
    assert ("has no fill value" in problem.text) == (fill is None)


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_chunks_are_found_by_any_name_that_they_may_have(tmp_path, nested, kind):
    path = v2_store(tmp_path / "x")
    separator = "/" if nested else "."
    chunks = {"dimension_separator": separator, "chunks": [5, 2]}
    write(path, {
        "data/action/.zarray": v2_array(ROWS, **chunks),
        f"data/action/0{separator}0": ROWS[:5].tobytes(),
        f"data/action/1{separator}0": ROWS[5:].tobytes(),
        "data/action/01.0": b"", "data/action/2.0": b"", "data/action/readme.txt": b"",
    })  # fmt: skip
    path = zipped(path, tmp_path / "x.zip") if kind == "zip" else path
    given = data.open(path).load()
    assert given.problems == ()
    np.testing.assert_array_equal(given["action"].values, ROWS)


def test_a_missing_and_a_damaged_chunk(tmp_path):
    """The damaged chunk is not treated as missing."""
    path = tmp_path / "x"
    data_files.write_replay_buffer(path, action=np.arange(22.0).reshape(11, 2))
    chunks = sorted(p for p in (path / "data/action").rglob("*")
                    if p.is_file() and "zarr" not in p.name)  # fmt: skip
    chunks[0].write_bytes(b"nothing")
    chunks[1].unlink()
    refused(path, r"a chunk cannot be read \(rows 0 to 2\)")
    given = data.open(path, damaged="keep").load()
    expected = np.arange(22.0).reshape(11, 2)
    expected[:3], expected[3:6] = np.nan, 0
    np.testing.assert_array_equal(given["action"].values, expected)
    assert len(given.problems) == 2


@needs_3
@pytest.mark.parametrize("place", ["start", "end"])
def test_chunks_that_are_missing_in_a_shard(tmp_path, place):
    values = np.arange(1.0, 23.0).reshape(11, 2)
    group = zarr.open_group(str(tmp_path / "x"), mode="w")
    group["meta/episode_ends"] = np.array([5, 11])
    shards = {"shape": (4, 2), "index_location": place}
    made = group.create_array("data/action", shape=(11, 2), dtype="f8", chunks=(2, 1),
                              shards=shards, fill_value=0)  # fmt: skip
    made[:] = values
    assert data.open(tmp_path / "x").load().problems == ()
    made[2:4, 0] = 0  # which Zarr does not store
    given = data.open(tmp_path / "x").load()
    assert [p.text for p in given.problems] == [
        "1 of 12 chunks is missing in the files, and read as 0.0"
    ]
    values[2:4, 0] = 0
    np.testing.assert_array_equal(given["action"].values, values)
    (tmp_path / "x/data/action/c/1/0").unlink()
    given = data.open(tmp_path / "x").load()
    values[4:8] = 0
    np.testing.assert_array_equal(given["action"].values, values)
    assert "1 of 3 files of chunks is missing" in given.problems[0].text
    shard = tmp_path / "x/data/action/c/2/0"
    content = shard.read_bytes()
    shard.unlink()
    os.mkfifo(shard)
    refused(tmp_path / "x", r"\(rows 8 to 10\): is a pipe")
    shard.unlink()
    shard.write_bytes(content[:20])
    refused(tmp_path / "x", r"\(rows 8 to 10\): its index is truncated")
    kept = read(tmp_path / "x", damaged="keep")
    assert np.isnan(kept[8:]).all() and (kept[:8] == values[:8]).all()


def test_an_array_without_metadata(tmp_path):
    path = v2_store(tmp_path / "x")
    write(path, {"data/state/.zarray": v2_array(ROWS), "data/state/0.0": ROWS.tobytes()})
    assert list(data.open(path).tracks) == ["action", "state"]
    (path / "data/state/.zarray").unlink()
    refused(path, "data/state: holds chunks, but no metadata of an array")
    given = data.open(path, damaged="keep")
    assert list(given.tracks) == ["action"] and len(given.problems) == 1


def test_ends_of_episodes_are_whole_or_refused(tmp_path):
    """Without them rows have no episode, so even ``damaged="keep"`` refuses them."""
    for content, match in ((None, "1 of its chunks is missing"), (b"x", "a chunk cannot be")):
        path = v2_store(tmp_path / str(content))
        (path / "meta/episode_ends/0").unlink()
        if content:
            (path / "meta/episode_ends/0").write_bytes(content)
        for damaged in ("refuse", "keep"):
            refused(path, match, damaged=damaged)


def test_ends_of_what_save_wrote_that_do_not_fit(tmp_path):
    track = rbc.Track(ROWS, [0, 5, 10])
    data.Episodes({"a": track}).save(tmp_path / "x", "zarr")
    group = zarr.open_group(str(tmp_path / "x"), mode="r+")
    for ends in ([5, 1 << 40], [7, 5]):
        group["meta/episode_ends"][:] = ends
        refused(tmp_path / "x", "robocache: is incomplete: .*episode_offsets")


# ---- more than they should ----------------------------------------------------------------------

MAGIC = b"\x28\xb5\x2f\xfd"  # of zstd


def _deflated(bits):
    """More than may be unpacked without a look."""
    packer = zlib.compressobj(9, zlib.DEFLATED, bits)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(100)) + packer.flush()


def _zstd_runs():
    """Return a frame without its size, with blocks of one repeated byte."""
    runs = b"".join(((1 << 17) << 3 | 2).to_bytes(3, "little") + b"\0" for _ in range(4000))
    return MAGIC + b"\x00\x38" + runs + b"\x03\0\0\0"


BOMBS = {
    "zlib": lambda: ({"level": 9}, _deflated(15)),
    "gzip": lambda: ({"level": 9}, _deflated(31)),
    "bz2": lambda: ({"level": 9}, bz2.compress(bytes(8 << 20)) * 40),
    "lzma": lambda: (
        {"format": 1, "check": -1, "preset": 1, "filters": None},
        lzma.compress(bytes(8 << 20), preset=0) * 40,
    ),
    "lz4": lambda: ({"acceleration": 1}, (2**31 - 1).to_bytes(4, "little") + bytes(100)),
    "blosc": lambda: (
        {"cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0},
        bytes([2, 1, 0, 1]) + (2**31 - 16).to_bytes(4, "little") + bytes(24),
    ),
    "zstd": lambda: ({"level": 1}, MAGIC + b"\xe0" + (1 << 33).to_bytes(8, "little") + bytes(9)),
    "zstd of runs": lambda: ({"level": 1}, _zstd_runs()),
}


@pytest.mark.parametrize("kind", ["folder", "zip"])
@pytest.mark.parametrize("name", list(BOMBS))
def test_a_chunk_that_unpacks_to_more_than_its_numbers(tmp_path, name, kind):
    codec, packed = BOMBS[name]()
    codec = {"id": name.partition(" ")[0], **codec}
    path = v2_store(tmp_path / "x")
    write(path, {
        "data/action/.zarray": v2_array(ROWS, compressor=codec), "data/action/0.0": packed,
    })  # fmt: skip
    path = zipped(path, tmp_path / "x.zip") if kind == "zip" else path
    before = _peak()
    error = refused(path, r"a chunk cannot be read \(rows 0 to 9\): unpacks to")
    assert "bytes or more, expected 160" in str(error)
    assert np.isnan(read(path, damaged="keep")).all()
    assert _peak() - before < 100 << 20


def _peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


@pytest.mark.parametrize("packer", ["zlib", "gzip", "bz2", "lzma", "zstd", "blosc", "lz4"])
def test_chunks_of_a_megabyte_are_read(tmp_path, packer, monkeypatch):
    """Chunks of each packer, also if only unpacking shows their size."""
    from numcodecs import registry

    from robocache.data._formats.zarr import chunks as zarr_chunks

    monkeypatch.setattr(zarr_chunks, "_UNSEEN", 0)
    values = np.random.default_rng(0).integers(0, 50, (20_000, 2)).astype(float)
    codec = registry.get_codec({"id": packer})
    path = v2_store(tmp_path / "x", ends=np.array([5, 20_000]))
    write(path, {
        "data/action/.zarray": v2_array(values, compressor=codec.get_config()),
        "data/action/0.0": bytes(codec.encode(values)),
    })  # fmt: skip
    np.testing.assert_array_equal(read(path), values)


@needs_3
def test_checksums_before_what_is_packed(tmp_path):
    """Zarr stores a checksum after a chunk, or before it."""
    packed = gzip.compress(ROWS.tobytes())
    codecs = [LITTLE, {"name": "gzip", "configuration": {"level": 5}}, {"name": "crc32c"}]
    total = importlib.import_module("google_crc32c").value(packed).to_bytes(4, "little")
    group = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    ends = np.array([5, 10])
    path = write(tmp_path / "y", {
        "zarr.json": group, "data/zarr.json": group, "meta/zarr.json": group,
        "data/action/zarr.json": v3_array(ROWS, codecs), "data/action/c/0/0": packed + total,
        "meta/episode_ends/zarr.json": v3_array(ends, [LITTLE]),
        "meta/episode_ends/c/0": ends.tobytes(),
    })  # fmt: skip
    np.testing.assert_array_equal(read(path), ROWS)


@pytest.mark.parametrize(
    "changed",
    [
        {"shape": [1 << 40, 2]},
        {"shape": [1 << 40, 2], "chunks": [1, 1]},
        {"shape": [1 << 62, 2], "chunks": [1 << 61, 2]},
        {"chunks": [1 << 40, 2]},
    ],
    ids=["rows", "chunks of one number", "beyond 64 bits", "a chunk"],
)
def test_a_shape_beyond_what_a_store_may_unpack_to(tmp_path, changed):
    path = v2_store(tmp_path / "x")
    write(path, {"data/action/.zarray": v2_array(ROWS, **changed)})
    for damaged in ("refuse", "keep"):
        error = refused(path, "data/action: unpacks to .* bytes or more", damaged=damaged)
        assert "max_unpacked=" in str(error)


def test_ends_beyond_what_a_store_may_unpack_to(tmp_path):
    path = v2_store(tmp_path / "x", shape=[1 << 40])
    refused(path, "meta/episode_ends: unpacks to")


def test_all_arrays_together(tmp_path):
    """Each array is below the limit; their sum is not."""
    path = v2_store(tmp_path / "x")
    head = v2_array(ROWS, shape=[1 << 24, 2], chunks=[1 << 24, 2])
    write(path, {f"data/{name}/.zarray": head for name in "ab"})
    refused(path, "data/a: unpacks to 268,435,", max_unpacked=None)
    given = data.open(path, max_unpacked=1 << 30)
    assert list(given.tracks) == ["a", "action", "b"]


def test_many_small_chunks_with_few_files(tmp_path):
    """Only stored chunks are read: 8 million take no longer than 1,000."""
    path = v2_store(tmp_path / "x")
    write(path, {
        "data/action/.zarray": v2_array(ROWS, shape=[1 << 22, 2], chunks=[1, 1]),
        "data/action/3.1": np.float64(5).tobytes(),
    })  # fmt: skip
    (path / "data/action/0.0").unlink()
    given = data.open(path).load()
    expected = np.zeros((10, 2))
    expected[3, 1] = 5
    np.testing.assert_array_equal(given["action"].values, expected)
    assert "8388607 of 8388608 chunks are missing" in given.problems[-1].text


def test_packed_twice(tmp_path):
    twice = {"filters": [{"id": "zlib", "level": 1}], "compressor": {"id": "zlib", "level": 1}}
    path = v2_store(tmp_path / "x")
    write(path, {"data/action/.zarray": v2_array(ROWS, **twice)})
    refused(path, "is packed several times, by zlib and zlib")


def test_a_member_of_a_zip_file_that_unpacks_to_terabytes(tmp_path):
    path = v2_store(tmp_path / "x")
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(path.rglob("*")):
            if file.is_file() and file.name != "0.0":
                archive.write(file, file.relative_to(path))
        with archive.open("data/action/0.0", "w") as chunk:
            for _ in range(300):
                chunk.write(bytes(1 << 20))
    before = _peak()
    refused(tmp_path / "x.zip", "has 314572800 bytes, too many for numbers of 160")
    assert _peak() - before < 100 << 20


def test_a_zip_file_without_its_begin(tmp_path):
    """Its members would begin before the file."""
    path = zipped(v2_store(tmp_path / "x"), tmp_path / "x.zip")
    path.write_bytes(path.read_bytes()[30:])
    for damaged in ("refuse", "keep"):
        refused(path, "cannot be read", damaged=damaged)


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_that_zipfile_unpacks_without_a_bound(tmp_path, packing):
    path = v2_store(tmp_path / "x")
    with zipfile.ZipFile(tmp_path / "x.zip", "w", packing) as archive:
        for file in sorted(path.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(path))
    refused(tmp_path / "x.zip", "is packed with (bzip2|lzma), expected deflate")


def test_metadata_of_a_zip_file_that_unpack_to_much(tmp_path):
    path = v2_store(tmp_path / "x")
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(path.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(path))
        archive.writestr("a/.zattrs", b"{}")
        archive.writestr("a/.zgroup", b'{"zarr_format": 2, "a": [' + b"[]," * (6 << 20) + b"[]]}")
    refused(tmp_path / "x.zip", "a/.zgroup: brings the metadata to .* too many")


def test_many_episodes_of_length_0(tmp_path):
    """One problem is noted; one per episode took time quadratic in their number."""
    path = v2_store(tmp_path / "x", ends=np.zeros(100_000, np.int64))
    (problem, _) = data.open(path, damaged="keep").problems
    assert problem.place == "episode 0" and "and so have 99999 others" in problem.text


# ---- shortages ----------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOMEM])
def test_chunks_that_cannot_be_opened_now(tmp_path, monkeypatch, number):
    """With ``damaged="keep"`` too, they count as neither damaged nor missing."""
    from robocache.data._formats.zarr import store as zarr_store

    path = replay_buffer(tmp_path / "x")
    given = data.open(path, damaged="keep")

    def short(name):
        raise OSError(number, os.strerror(number), name)

    monkeypatch.setattr(zarr_store, "opened", short)
    kind = MemoryError if number == errno.ENOMEM else OSError
    with pytest.raises(kind, match="x/data/") as caught:
        given.load()
    assert isinstance(caught.value, MemoryError) or caught.value.errno == number
    assert given.problems == ()


def test_no_threads_are_needed(tmp_path, monkeypatch):
    """Zarr 3 waits forever for its own thread if it cannot start."""
    values = np.arange(22.0).reshape(11, 2)

    def fail(thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as short:
        short.setattr(threading.Thread, "start", fail)
        data.Episodes({"action": rbc.Track(values, [0, 5, 11])}).save(tmp_path / "x", "zarr")
        np.testing.assert_array_equal(read(tmp_path / "x"), values)


def test_folders_that_cannot_be_listed_now(tmp_path, monkeypatch):
    """Otherwise their metadata would be ignored, and their chunks reported as missing."""
    path = replay_buffer(tmp_path / "x")
    given = data.open(path)
    listed = os.scandir

    def short(name):
        if "action" in str(name):
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(name))
        return listed(name)

    monkeypatch.setattr(os, "scandir", short)
    for read_again in (lambda: data.open(path, damaged="keep"), given.load):
        with pytest.raises(OSError, match="data/action") as caught:
            read_again()
        assert caught.value.errno == errno.EMFILE


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_a_store_that_is_pickled_before_it_is_read(tmp_path, kind):
    path = v2_store(tmp_path / "x")
    path = zipped(path, tmp_path / "x.zip") if kind == "zip" else path
    again = pickle.loads(pickle.dumps(data.open(path)))
    np.testing.assert_array_equal(again["action"].values, ROWS)


@needs_3
def test_within_an_event_loop(tmp_path):
    """A separate thread reads within an event loop, such as a notebook's."""
    path = replay_buffer(tmp_path / "x")

    async def main():
        return read(path)

    np.testing.assert_array_equal(asyncio.run(main()), read(path))

    async def wrong():
        (path / "data/action/zarr.json").write_text("{")
        return read(path)

    with pytest.raises(data.FormatError):
        asyncio.run(wrong())


@needs_3
def test_what_waits_for_nothing_is_an_error():
    """The reader would wait forever for a callback that failed for lack of memory."""
    from robocache.data._formats.zarr.calls import ran

    async def main():
        await asyncio.get_running_loop().create_future()

    with pytest.raises(MemoryError):
        ran(main())


def test_a_zip_file_in_a_forked_process(tmp_path):
    """Each process has its own position in the file."""
    path = zipped(v2_store(tmp_path / "x"), tmp_path / "x.zip")
    from robocache.data._formats.zarr import store as zarr_store

    files = zarr_store.ZipFiles(str(path), data._file_access.Limit())
    archive = files._archive
    files._process += 1
    assert json.loads(files.part(".zgroup")) == {"zarr_format": 2}
    assert files._archive is not archive and files._process == os.getpid()
