"""Hostile tables, arrays and LeRobot data sets: special files, amplification, shortages."""

from __future__ import annotations

import hashlib
import io
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import data_files
import robocache as rbc
from robocache import statistics_files

pa = pytest.importorskip("pyarrow")
csv = pytest.importorskip("pyarrow.csv")
pq = pytest.importorskip("pyarrow.parquet")

from robocache.data._formats.tables import csv as csv_tables  # noqa: E402
from robocache.data._formats.tables import parquet  # noqa: E402


def refused(path: Path, **options: Any) -> rbc.data.FormatError:
    """Return the error raised by opening and reading a source."""
    with pytest.raises(rbc.data.FormatError) as caught:
        loaded(path, **options)
    return caught.value


def loaded(path: Path, **options: Any) -> Any:
    return rbc.data.open(path, **options).load()


# ---- special files ------------------------------------------------------------------------------


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


def unix_socket(path: Path) -> None:
    before = os.getcwd()
    os.chdir(path.parent)  # a path of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(before)


SPECIAL = [pipe, link_to_pipe, unix_socket]


@pytest.mark.parametrize("make", SPECIAL)
@pytest.mark.parametrize(
    ("version", "pattern"),
    [
        ("v2.1", "meta/info.json"),
        ("v2.1", "meta/episodes.jsonl"),
        ("v2.1", "data/**/*.parquet"),
        ("v3.0", "meta/info.json"),
        ("v3.0", "meta/episodes/**/*.parquet"),
        ("v3.0", "data/**/*.parquet"),
    ],
)
def test_special_files_in_lerobot(tmp_path, make, version, pattern):
    folder = tmp_path / "x"
    data_files.write_lerobot(folder, version=version)
    file = sorted(folder.glob(pattern))[0]
    file.unlink()
    make(file)
    error = refused(folder)
    if pattern != "meta/info.json":  # without it, the folder is not a LeRobot data set
        assert file.name in str(error) and "expected a" in error.reason
    if pattern.startswith("data"):
        kept = loaded(folder, damaged="keep")
        assert any("expected a" in problem.text for problem in kept.problems)


def test_a_pipe_as_stored_statistics(tmp_path):
    folder = tmp_path / "x"
    data_files.write_lerobot(folder)
    (folder / "meta/stats.json").unlink(missing_ok=True)
    os.mkfifo(folder / "meta/stats.json")
    with pytest.raises(rbc.data.FormatError, match="is a pipe"):
        rbc.data.open(folder).stored_statistics()


@pytest.mark.parametrize(
    "read",
    [
        statistics_files.read_lerobot,
        statistics_files.read_lerobot_episodes,
        statistics_files.read_openpi,
        statistics_files.read_gr00t,
    ],
)
@pytest.mark.parametrize("name", ["x.json", "x.parquet"])
def test_a_pipe_as_a_file_of_statistics(tmp_path, read, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(rbc.data.FormatError, match="is a pipe, expected a regular file"):
        read(tmp_path / name)


@pytest.mark.parametrize("make", SPECIAL)
@pytest.mark.parametrize("suffix", ["csv", "parquet", "npy"])
def test_special_files_beside_others(tmp_path, make, suffix):
    folder = tmp_path / "x"
    folder.mkdir()
    if suffix == "npy":
        np.save(folder / "good.npy", np.zeros((5, 2)))
    else:
        (folder / "good.csv").write_text("time,x\n0,1\n1,2\n")
    make(folder / f"bad.{suffix}")
    assert f"bad.{suffix}" in str(refused(folder))
    kept = loaded(folder, damaged="keep")
    assert kept.names == ("good",)
    assert [Path(problem.path).name for problem in kept.problems] == [f"bad.{suffix}"]


def test_a_folder_with_the_name_of_a_table(tmp_path):
    (tmp_path / "parts.parquet").mkdir()
    (tmp_path / "dangling.csv").symlink_to("nothing")
    (tmp_path / "good.csv").write_text("time,x\n0,1\n1,2\n")
    assert "is a broken link" in str(refused(tmp_path))
    kept = loaded(tmp_path, damaged="keep")
    assert [each.place for each in kept.left_out] == ["parts.parquet"]


def test_a_file_that_becomes_a_pipe(tmp_path):
    """The file changes after the data set is listed and before its rows are read."""
    folder = tmp_path / "x"
    data_files.write_lerobot(folder, version="v3.0")
    opened = rbc.data.open(folder)
    file = next((folder / "data").rglob("*.parquet"))
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(rbc.data.FormatError, match="is a pipe"):
        opened.load()


def test_an_array_that_changes_after_it_was_opened(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((1000, 4)))
    opened = rbc.data.open(tmp_path / "x.npy")
    np.save(tmp_path / "x.npy", np.ones((10, 4)))
    with pytest.raises(rbc.data.FormatError, match="has changed since it was opened"):
        opened.load()


# ---- amplification ------------------------------------------------------------------------------


def lerobot_with(folder: Path, change: Callable[[dict[str, Any]], object], **options: Any) -> Path:
    data_files.write_lerobot(folder, **options)
    path = folder / "meta/info.json"
    info = json.loads(path.read_text())
    change(info)
    path.write_text(json.dumps(info))
    return folder


@pytest.mark.parametrize("version", ["v2.1", "v3.0"])
@pytest.mark.parametrize(
    ("shape", "reason"),
    [
        ([2**40], "max_unpacked="),
        ([2**40, 2**40], "max_unpacked="),
        ([2**4000], "max_unpacked="),
        ([2] * 100_000, "has 100,000 extents, expected at most 32"),
        ([-1], "expected a list of extents"),
    ],
)
def test_shapes_of_lerobot(tmp_path, version, shape, reason):
    def change(info):
        info["features"]["action"]["shape"] = shape

    error = refused(lerobot_with(tmp_path / "x", change, version=version))
    assert error.path.endswith("info.json") and error.place.startswith("features.action.shape")
    assert reason in error.reason


@pytest.mark.parametrize(
    ("key", "value", "place"),
    [
        ("chunks_size", 0, "chunks_size"),
        ("chunks_size", 10**30, "chunks_size"),
        ("data_path", "x" * 10**6, "data_path"),
        ("data_path", "{episode_index:09999d}", "data_path"),
        ("robocache", 5, "robocache"),
        ("robocache", {"names": [1]}, "robocache.names"),
        ("robocache", {"names": {"action": ["x"]}}, "robocache.names"),
        ("robocache", {"stamps": "float32"}, "robocache.stamps"),
    ],
)
def test_entries_of_info(tmp_path, key, value, place):
    folder = lerobot_with(tmp_path / "x", lambda info: info.update({key: value}), version="v2.1")
    error = refused(folder)
    assert error.path.endswith("info.json") and error.place == place
    assert len(str(error)) < 500


@pytest.mark.parametrize("depth", [33, 900])
def test_names_deep_within_each_other(tmp_path, depth):
    deep = json.loads("[" * depth + "]" * depth)
    folder = lerobot_with(
        tmp_path / "x", lambda info: info["features"]["action"].update(names=deep)
    )
    error = refused(folder)
    assert error.place == "features.action.names" and "deeper than 32" in error.reason


@pytest.mark.parametrize("key", ["episode_index", "length"])
@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), 10**30, "5", None, True, 2.5, [1], {"a": 1}]
)
def test_numbers_of_episodes_that_are_none(tmp_path, key, value):
    data_files.write_lerobot(tmp_path / "x", version="v2.1")
    path = tmp_path / "x/meta/episodes.jsonl"
    lines = path.read_text().splitlines()
    first = json.loads(lines[0])
    first[key] = value
    path.write_text("\n".join([json.dumps(first), *lines[1:]]))
    error = refused(tmp_path / "x")
    assert error.path == str(path) and error.place == "line 1" and key in error.reason


def test_a_negative_index_of_an_episode(tmp_path):
    data_files.write_lerobot(tmp_path / "x", version="v2.1")
    path = tmp_path / "x/meta/episodes.jsonl"
    path.write_text(path.read_text() + json.dumps({"episode_index": -2, "length": 3}) + "\n")
    assert "is -2, expected 0 or more" in str(refused(tmp_path / "x"))
    whole = len(loaded(lerobot_with(tmp_path / "y", lambda info: None, version="v2.1")))
    assert len(loaded(tmp_path / "x", damaged="keep")) == whole


def test_a_line_without_an_end(tmp_path, monkeypatch):
    from robocache.data._formats.lerobot import meta

    monkeypatch.setattr(meta, "_LONGEST_LINE", 1000)
    data_files.write_lerobot(tmp_path / "x", version="v2.1")
    path = tmp_path / "x/meta/episodes.jsonl"
    count = len(path.read_text().splitlines())
    path.write_text(path.read_text() + "x" * 10_000)
    assert refused(tmp_path / "x").place == f"line {count + 1}"


@pytest.mark.parametrize("name", ["episode_index", "length", "data/file_index"])
@pytest.mark.parametrize(
    "values",
    [
        pa.array([float("nan"), 1.0, 2.0]),
        pa.array([0.5, 1.0, 2.0]),
        pa.array([2**63 + 1, 1, 2], pa.uint64()),
        pa.array(["a", "b", "c"]),
        pa.array([[1, 2], [3, 4], [5, 6]]),
        pa.array([True, False, True]),
    ],
    ids=["nan", "half", "uint64", "text", "lists", "bool"],
)
def test_columns_of_episodes_that_are_no_whole_numbers(tmp_path, name, values):
    data_files.write_lerobot(tmp_path / "x", lengths=[3, 4, 5], version="v3.0")
    path = next((tmp_path / "x/meta/episodes").rglob("*.parquet"))
    table = pq.read_table(path)
    if table.num_rows != 3:
        values = values[: table.num_rows]
    pq.write_table(table.set_column(table.column_names.index(name), name, values), path)
    error = refused(tmp_path / "x")
    assert error.path == str(path) and error.place.startswith(name)


def test_parquet_that_unpacks_to_much(tmp_path):
    """Some kilobytes contain millions of rows, packed by run length and by zstd."""
    zeros = np.zeros(500_000)
    runs, packed = tmp_path / "runs.parquet", tmp_path / "packed.parquet"
    pq.write_table(pa.table({"time": zeros, "x": zeros}), runs, row_group_size=500_000)
    pq.write_table(pa.table({"time": zeros, "x": zeros}), packed, compression="zstd",
                   use_dictionary=False, row_group_size=500_000)  # fmt: skip
    for path in (runs, packed):
        error = refused(path, max_unpacked=1_000_000)
        assert error.path == str(path) and "max_unpacked=" in error.reason
        assert len(loaded(path, max_unpacked=100_000_000)[path.stem]) == 500_000


def test_pages_say_what_they_unpack_to(tmp_path):
    from robocache.data._formats.tables.parquet_footer import _pages, groups_of

    path = tmp_path / "x.parquet"
    values = np.random.default_rng(0).normal(size=100_000)
    pq.write_table(pa.table({"x": values}), path, compression="zstd", use_dictionary=False,
                   data_page_size=1 << 16)  # fmt: skip
    (group,) = groups_of(str(path))
    pages = list(_pages(str(path), group.chunks[0], path.stat().st_size))
    assert len(pages) > 5 and 0 <= sum(pages) - values.nbytes < 100 * len(pages)


def test_a_text_in_a_dictionary(tmp_path):
    """One long text in a thousand rows needs the memory of one text."""
    path = tmp_path / "x.parquet"
    text = "1" * 20_000
    pq.write_table(pa.table({"time": np.arange(1000.0), "s": [text] * 999 + ["no"]}), path)
    table = parquet.read_table(str(path), ["s"])
    assert table.nbytes < 100_000
    texts = parquet.texts(pa.chunked_array([table["s"].chunk(0)]))
    assert texts[0] is texts[1] and texts[999] == "no"
    assert loaded(path).names == ("x",)


def test_columns_that_overlap(tmp_path, monkeypatch):
    from robocache.data._formats.tables import parquet_footer
    from robocache.data._formats.tables.parquet_footer import Chunk, Group

    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": np.arange(100.0)}), path)
    size = path.stat().st_size
    chunk = Chunk("DOUBLE", "x", 1, 1, size // 2 + 1, 4, 0, None)
    monkeypatch.setattr(parquet_footer, "groups_of", lambda path: [Group(1, (chunk,))] * 2)
    expected = f"{2 * (size // 2 + 1):,} bytes or more, but the file has {size:,}"
    with pytest.raises(rbc.data.FormatError, match=expected):
        parquet.read_table(str(path), ["x"])


def test_the_footer_is_what_pyarrow_reads(tmp_path):
    from robocache.data._formats.tables.parquet_footer import groups_of

    rng = np.random.default_rng(0)
    path = tmp_path / "x.parquet"
    for codec in ("none", "snappy", "gzip", "zstd", "lz4", "brotli"):
        rows = int(rng.integers(1, 5000))
        columns = {
            "f": rng.normal(size=rows),
            "i": rng.integers(-(2**62), 2**62, rows),
            "u": rng.integers(0, 2**64, rows, dtype=np.uint64),
            "b": rng.random(rows) < 0.5,
            "s": [str(x) for x in rng.integers(0, 9, rows)],
            "n": pa.array([None if x < 0.3 else x for x in rng.random(rows)]),
            "l": pa.array([[1.0, 2.0]] * rows, pa.list_(pa.float32(), 2)),
            "t": pa.StructArray.from_arrays([np.arange(rows), np.arange(rows)], ["sec", "nsec"]),
        }
        pq.write_table(pa.table(columns), path, compression=codec, row_group_size=1000)
        known = pq.ParquetFile(path).metadata
        groups = groups_of(str(path))
        assert len(groups) == known.num_row_groups
        for g, group in enumerate(groups):
            assert group.rows == known.row_group(g).num_rows
            for c, chunk in enumerate(group.chunks):
                own = known.row_group(g).column(c)
                begin = own.data_page_offset
                if own.has_dictionary_page:
                    begin = min(begin, own.dictionary_page_offset)
                seen = (chunk.kind, chunk.path, chunk.values, chunk.packed, chunk.begin)
                assert seen == (own.physical_type, own.path_in_schema, own.num_values,
                                own.total_compressed_size, begin)  # fmt: skip
                names = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4")
                assert names[chunk.codec] == own.compression
                assert chunk.nulls == own.statistics.null_count
                if chunk.path == "i":
                    least, most = (int.from_bytes(x, "little", signed=True) for x in chunk.range)
                    assert (least, most) == (own.statistics.min, own.statistics.max)


@pytest.mark.parametrize("cut", [1, 2, 3, 9])
def test_a_footer_that_is_damaged(tmp_path, cut):
    from robocache.data._formats.tables.parquet_footer import groups_of

    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": np.arange(100.0)}), path)
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    footer = content[-8 - length : -8 - length // cut]
    path.write_bytes(content[: -8 - length] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    if cut == 1:
        path.write_bytes(content[:-4] + b"PAR2")
    with pytest.raises(rbc.data.FormatError, match="damaged: it.* footer"):
        groups_of(str(path))


def test_a_footer_of_lists_within_lists(tmp_path):
    from robocache.data._formats.tables.parquet_footer import groups_of

    path = tmp_path / "x.parquet"
    footer = b"\x49" + b"\x19" * 100_000
    path.write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(rbc.data.FormatError, match="its footer cannot be read"):
        groups_of(str(path))


def test_lists_of_any_width_without_rows(tmp_path):
    width = 2**31 - 1
    path = tmp_path / "x.parquet"
    kind = pa.list_(pa.list_(pa.float32(), width), width)
    pq.write_table(pa.table({"time": np.zeros(0), "x": pa.array([], kind)}), path)
    (left_out,) = loaded(path).left_out
    assert "and has no rows" in left_out.reason


def npy(shape: str, content: bytes = b"", descr: str = "'<f8'", version: int = 1) -> bytes:
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}".encode()
    length = len(header).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + length + header + content


@pytest.mark.parametrize(
    "content",
    [
        npy("(1099511627776,)", bytes(80)),
        npy("(4294967296, 4294967296)", bytes(80)),
        npy("(-1, 4)", bytes(80)),
        npy("(20,)", bytes(80)),
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff" + bytes(100),
        b"\x93NUMPY\x01\x00",
        npy("(1,)", bytes(80), "'|O'"),
        npy("(1,)" + "-" * 200, bytes(80)),
    ],
    ids=["2^40", "2^64", "negative", "cut", "header of 4 GB", "empty", "objects", "no header"],
)
def test_arrays_beyond_their_file(tmp_path, content):
    (tmp_path / "x.npy").write_bytes(content)
    error = refused(tmp_path / "x.npy")
    assert error.path.endswith("x.npy") and "cannot be read" not in error.reason


@pytest.mark.parametrize("shape", ["(0, 65536)", "(1099511627776, 0)"])
def test_arrays_of_nothing(tmp_path, shape):
    """Arrays without bytes in the file can have any number of rows or columns."""
    (tmp_path / "x.npy").write_bytes(npy(shape))
    np.save(tmp_path / "y.npy", np.zeros((3, 2)))
    opened = loaded(tmp_path)
    assert opened.names == ("y",) and "no numbers" in opened.left_out[0].reason


def test_more_arrays_than_descriptors(tmp_path):
    for i in range(60):
        np.save(tmp_path / f"a{i}.npy", np.full((3, 2), i))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 20, before[1]))
    try:
        opened = loaded(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert len(opened.names) == 60 and (opened["a7"].values == 7).all()


def npz(path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return path


def as_npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def recording(names: list[str], clocks: list[str]) -> bytes:
    stream = {"name": "x", "kind": "", "names": names, "clocks": clocks, "unit": None,
              "dtypes": None}  # fmt: skip
    told = {"robocache": "recording", "version": 1, "left_out": [], "streams": [stream]}
    return as_npy(np.array(json.dumps(told)))


@pytest.mark.parametrize(
    ("members", "place", "reason"),
    [
        ({"s0_values": npy("(1099511627776, 1)", bytes(8))}, "s0_values", "truncated"),
        ({"s0_values": npy("(400000, 1)", bytes(3_200_000))}, "s0_values", "max_unpacked="),
        ({"s0_values": as_npy(np.zeros((3, 2)))}, "s0_values", "expected [n,1]"),
        ({"s0_values": as_npy(np.zeros(3))}, "s0_values", "expected [n,1]"),
        (
            {"s0_values": as_npy(np.zeros((3, 1))), "s0_time": as_npy(np.zeros(2))},
            "s0_time",
            "expected [3]",
        ),
        ({"s0_values": as_npy(np.zeros((3, 1)))}, "s0_time", "is missing"),
    ],
)
def test_npz_that_is_not_as_it_says(tmp_path, members, place, reason):
    clocks = ["time"] if place == "s0_time" else []
    path = npz(tmp_path / "x.npz", {"robocache": recording(["x"], clocks), **members})
    error = refused(path, max_unpacked=1_000_000)
    assert (error.path, error.place) == (str(path), place) and reason in error.reason


def test_npz_of_a_method_that_takes_any_memory(tmp_path):
    path = npz(tmp_path / "x.npz", {"robocache": recording(["x"], [])}, zipfile.ZIP_LZMA)
    assert "is compressed by method 14" in refused(path).reason


# ---- texts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [3_000, 30_000])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_header_of_any_length(tmp_path, columns, end):
    path = tmp_path / "x.csv"
    names = [f"sensor_{i}" for i in range(columns)]
    lines = [",".join(["time", *names]), *(",".join([str(t)] + ["1"] * columns) for t in range(3))]
    path.write_text(end.join([*lines, ""]), newline="")
    assert os.path.getsize(path) > 1 << 14
    if columns > 3_000:
        assert csv_tables.delimiter_of(str(path)) == ","
        return
    stream = loaded(path)["x"]
    assert stream.names == tuple(names) and stream.times().tolist() == [0, 1, 2]


def test_a_header_of_a_megabyte(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(f"time,{'é' * 500_000}\n0,1\n1,2\n", encoding="utf-8-sig")
    assert loaded(path)["x"].values.tolist() == [[1], [2]]


def test_a_first_line_that_does_not_end(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_tables, "_LONGEST", 1 << 16)
    path = tmp_path / "x.csv"
    path.write_text("a," * 100_000)
    assert csv_tables.fault_of(str(path))[0].startswith("has a first line of more than")
    (tmp_path / "good.csv").write_text("time,x\n0,1\n1,2\n")
    assert "x.csv" in str(refused(tmp_path))


def test_more_columns_than_a_file_may_have(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(f"time,{','.join('abcdefghij')}\n{','.join('12345678901')}\n")
    error = refused(path, max_unpacked=10_000)
    assert error.place == "header of 11 columns" and "max_unpacked=22528" in error.reason
    assert len(loaded(path, max_unpacked=22528)["x"].names) == 10


# ---- growth: work that is counted ---------------------------------------------------------------


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> list[int]:
    calls = [0]
    own = getattr(module, name)

    def call(*given: Any, **options: Any) -> Any:
        calls[0] += 1
        return own(*given, **options)

    monkeypatch.setattr(module, name, call)
    return calls


def test_csv_is_read_twice_for_any_number_of_large_columns(tmp_path, monkeypatch):
    calls = counted(monkeypatch, csv_tables, "parsed")
    for count in (3, 30):
        calls[0] = 0
        columns = {f"c{i}": np.full(3, 2**63 + i, np.uint64) for i in range(count)}
        csv.write_csv(pa.table({"time": np.arange(3.0), **columns}), tmp_path / "x.csv")
        values = loaded(tmp_path / "x.csv")["x"].values
        assert values.dtype == np.uint64 and values[0].tolist() == [2**63 + i for i in range(count)]
        assert calls[0] == 2


def test_parquet_is_opened_as_often_for_any_number_of_columns(tmp_path, monkeypatch):
    from robocache.data._formats.tables import parquet as own

    calls = counted(monkeypatch, own, "reopened")
    seen = []
    for count in (3, 30):
        calls[0] = 0
        columns = {f"c{i}": [f"text {i}"] * 3 for i in range(count)}
        numbers = {f"n{i}": [1.0, None, 2.0] for i in range(count)}
        pq.write_table(pa.table({"time": np.arange(3.0), **columns, **numbers}),
                       tmp_path / "x.parquet")  # fmt: skip
        rbc.data.open(tmp_path / "x.parquet")
        seen.append(calls[0])
    assert seen[0] == seen[1]


def test_columns_of_many_masks_have_names_of_their_own(tmp_path):
    rows = 40
    columns: dict[str, Any] = {"time": np.arange(float(rows))}
    for group in range(30):
        for name in "ab":
            columns[f"x{group * 2 + (name == 'b')}"] = [
                None if row == group else 1.0 for row in range(rows)
            ]
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    opened = loaded(tmp_path / "x.parquet")
    assert len(opened.names) == 30 and max(map(len, opened.names)) < 30


# ---- shortage -----------------------------------------------------------------------------------

# Reads each source once for each amount, in a new process, with damaged="keep".
_SHORT = """
import json, os, resource, signal, sys
from robocache import data
def size():
    line = next(line for line in open("/proc/self/status") if line.startswith("VmSize"))
    return int(line.split()[1]) << 10
def limit(kind, amount):
    if kind == "memory":
        resource.setrlimit(resource.RLIMIT_AS, (size() + (amount << 20),) * 2)
    elif kind == "files":
        count = len(os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (count - 1 + amount,) * 2)
    else:
        os.setuid(54321)
        count = len(os.listdir("/proc/self/task"))
        resource.setrlimit(resource.RLIMIT_NPROC, (count + amount,) * 2)
amounts = json.loads(sys.argv[1])
for path in sys.argv[2:]:
    data.open(path)  # and what it imports
    for kind, amount in [(kind, amount) for kind in amounts for amount in amounts[kind]]:
        case = f"{os.path.basename(path)} {kind} {amount}"
        if os.fork() == 0:
            signal.alarm(20)
            limit(kind, amount)
            try:
                text = "damage" if data.open(path, damaged="keep").load().problems else "read"
            except (MemoryError, OSError) as error:
                own = path in str(error)
                text = f"{type(error).__name__} {'with' if own else 'without'} the file: {error}"
            except BaseException as error:
                text = f"{type(error).__name__}: {error}"
            os.write(1, f"{case} {text}\\n".encode())
            os._exit(0)
        status = os.wait()[1]
        if status:
            os.write(1, f"{case} ended with {status}\\n".encode())
"""
_AMOUNTS = {"memory": [0, 40, 90, 4000], "files": [0, 1, 2, 40], "threads": [0, 1, 30]}
NAMES = ["csv", "parquet", "npy", "lerobot21", "lerobot30", "x.npz"]


@pytest.fixture(scope="module")
def sources() -> Iterator[dict[str, Path]]:
    top = Path(tempfile.mkdtemp())  # where a user without rights reads it
    rng = np.random.default_rng(0)
    table = pa.table({"time": np.arange(20_000.0), "x": rng.normal(size=20_000)})
    for name in ("csv", "parquet", "npy"):
        (top / name).mkdir()
    for name in "ab":
        csv.write_csv(table, top / f"csv/{name}.csv")
        pq.write_table(table, top / f"parquet/{name}.parquet")
        np.save(top / f"npy/{name}.npy", rng.normal(size=(20_000, 4)))
    data_files.write_lerobot(top / "lerobot21", version="v2.1")
    data_files.write_lerobot(top / "lerobot30", version="v3.0")
    rbc.data.open(top / "npy").save(top / "x.npz")
    for path in (top, *top.rglob("*")):
        path.chmod(0o755)
    yield {each.name: each for each in top.iterdir()}
    shutil.rmtree(top)


@pytest.fixture(scope="module")
def shortages(sources) -> list[list[str]]:
    """Return lists of source, resource, amount and result."""
    amounts = {**_AMOUNTS, "threads": _AMOUNTS["threads"] if os.getuid() == 0 else []}
    paths = [str(sources[name]) for name in NAMES]
    run = subprocess.run(
        [sys.executable, "-c", _SHORT, json.dumps(amounts), *paths],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    lines = [line.split(" ", 3) for line in run.stdout.splitlines()]
    assert len(lines) == len(NAMES) * sum(map(len, amounts.values())), run.stdout + run.stderr
    return lines


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", list(_AMOUNTS))
def test_what_is_short_is_no_damage(shortages, name, kind):
    if kind == "threads" and os.getuid() != 0:
        pytest.skip("the threads of this user are not counted apart")
    found = {
        text.partition(":")[0] for own, short, _, text in shortages if (own, short) == (name, kind)
    }
    errors = {
        "memory": {"MemoryError with the file", "BlockingIOError with the file"},
        "files": {"OSError with the file"},
        "threads": {"BlockingIOError with the file"},
    }
    assert found - {"read"} <= errors[kind] and "read" in found
    assert kind != "files" or len(found) == 2


def test_a_page_that_asks_for_too_much_is_damage(tmp_path, monkeypatch):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"time": np.arange(3.0)}), path)

    def fail(size: int) -> Callable[[Any], None]:
        def read(_: Any) -> None:
            raise pa.ArrowMemoryError(f"malloc of size {size} failed")

        return read

    with pytest.raises(rbc.data.FormatError, match="requests 2,147,483,584 bytes at once"):
        parquet.with_file(str(path), fail(2_147_483_584))
    with pytest.raises(MemoryError, match=r"x\.parquet"):
        parquet.with_file(str(path), fail(65_536))


def test_a_file_that_cannot_be_read_is_no_damage(tmp_path, monkeypatch):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"time": np.arange(3.0)}), path)

    def read(_: Any) -> None:
        raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match=r"Errno 5.*x\.parquet"):
        parquet.with_file(str(path), read)


def test_a_folder_that_cannot_be_listed_is_no_loss(tmp_path, monkeypatch):
    """``os.walk`` skips such folders."""
    data_files.write_lerobot(tmp_path / "x", version="v3.0")
    own = os.scandir

    def scandir(path: Any) -> Any:
        if "episodes" in os.fspath(path):
            raise OSError(24, "Too many open files", path)
        return own(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(OSError, match="Too many open files"):
        rbc.data.open(tmp_path / "x", damaged="keep")


# ---- statistics ---------------------------------------------------------------------------------


def test_statistics_of_lists_of_different_lengths(tmp_path):
    """Rows of one and of three numbers are not taken as two rows of two."""
    lists = [[1.0], [1.0, 2.0, 3.0]]
    columns = {f"stats/x/{key}": lists for key in ("min", "max", "mean", "std")}
    pq.write_table(
        pa.table({"episode_index": [0, 1], **columns, "stats/x/count": [[3], [3]]}),
        tmp_path / "x.parquet",
    )
    with pytest.raises(ValueError, match="row 1.*has 3 elements, the first row 1"):
        statistics_files.read_lerobot_episodes(tmp_path / "x.parquet")


@pytest.mark.parametrize("counts", [[[1.5], [2.0]], [[-1], [3]], [[1, 2], [3, 4]]])
def test_counts_of_statistics(tmp_path, counts):
    columns = {f"stats/x/{key}": [[1.0], [2.0]] for key in ("min", "max", "mean", "std")}
    pq.write_table(
        pa.table({"episode_index": [0, 1], **columns, "stats/x/count": counts}),
        tmp_path / "x.parquet",
    )
    with pytest.raises(ValueError, match="stats/x/count"):
        statistics_files.read_lerobot_episodes(tmp_path / "x.parquet")


# ---- sources stay what they are -----------------------------------------------------------------


def state(top: Path) -> dict[str, tuple[int, int, str]]:
    """Return the mode, modification time and content of each file and folder."""
    found = {}
    for path in (top, *sorted(top.rglob("*"))):
        told = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        digest = hashlib.sha256(content).hexdigest()
        found[str(path)] = (told.st_mode, told.st_mtime_ns, digest)
    return found


@pytest.mark.parametrize("damage", ["none", "cut", "changed", "read-only"])
@pytest.mark.parametrize("name", NAMES)
def test_reading_changes_nothing(sources, tmp_path, name, damage):
    source = tmp_path / "source" / name
    source.parent.mkdir()
    copy = shutil.copytree if sources[name].is_dir() else shutil.copyfile
    copy(sources[name], source)
    files = [source] if source.is_file() else [p for p in source.rglob("*") if p.is_file()]
    for file in files:
        content = file.read_bytes()
        middle = len(content) // 2
        if damage == "cut":
            file.write_bytes(content[:middle])
        elif damage == "changed":
            file.write_bytes(content[:middle] + b"\xff\0" + content[middle + 2 :])
        elif damage == "read-only":
            file.chmod(0o444)
    before = state(source.parent)
    for mode in ("refuse", "keep"):
        try:
            opened = loaded(source, damaged=mode)
            if hasattr(opened, "stored_statistics"):
                opened.stored_statistics()
        except (rbc.data.FormatError, FileNotFoundError):
            assert damage in ("cut", "changed")
    assert state(source.parent) == before
