"""Compression in bags: all bytes are restored, and never more than the stated size."""

from __future__ import annotations

import bz2
import importlib
import struct
import tracemalloc

import numpy as np
import pytest

import data_files
import robocache as rbc
from robocache.data._formats.decompress import decompressed

data = rbc.data
KINDS = ["bz2", "lz4", "zstd"]


def compress(kind, content):
    if kind == "bz2":
        return bz2.compress(content)
    if kind == "lz4":
        return pytest.importorskip("lz4.frame").compress(content)
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name).compress(content)
        except ModuleNotFoundError:
            continue
    return pytest.importorskip("zstandard").ZstdCompressor().compress(content)


@pytest.mark.parametrize("kind", KINDS)
def test_all_of_it(kind):
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, 1_000_000, np.uint8).tobytes()
    for content in (b"", b"a", bytes(3_000_000), noise, noise + bytes(5_000_000) + noise):
        packed = compress(kind, content)
        assert decompressed(packed, kind, len(content)) == content
        several = packed + compress(kind, b"more")
        assert decompressed(several, kind, len(content) + 4) == content + b"more"


@pytest.mark.parametrize("kind", KINDS)
def test_another_size_than_the_header_states(kind):
    packed = compress(kind, bytes(1000))
    with pytest.raises(ValueError, match="has more than 999 bytes, expected 999"):
        decompressed(packed, kind, 999)
    for size in (1001, 4 << 30):
        with pytest.raises(ValueError, match=f"has 1000 bytes, expected {size}"):
            decompressed(packed, kind, size)
    with pytest.raises(ValueError):
        decompressed(packed[:-3], kind, 1000)
    with pytest.raises(ValueError, match=f"its {kind} data are damaged"):
        decompressed(b"nothing of the kind", kind, 1000)


@pytest.mark.parametrize("kind", KINDS)
def test_more_than_a_chunk_may_have(kind):
    """The size may be correct, but needs more memory than there is."""
    packed = compress(kind, bytes(1000))
    for size, told in (((4 << 30) + (1 << 28), "4.25"), (1 << 40, "1,024.00"), ((1 << 64) - 1, "")):
        match = f"declares {told}.* GiB, above 4 GiB; .* with mcap decompress"
        with pytest.raises(ValueError, match=match):
            decompressed(packed, kind, size)
    content = bytes(10)
    assert decompressed(content, "none", 10) is content


def test_a_chunk_of_mcap_that_unpacks_to_terabytes(tmp_path):
    pytest.importorskip("rosbags")
    pytest.importorskip("lz4.frame")
    made = data_files.McapBytes()
    text = "float64 x\n"
    number, declared = made.declared("/p", "test_msgs/msg/X", text)
    body = b"\0\1\0\0" + bytes(8)
    made.chunk(declared + made.message(number, 1, body), [number], "lz4")
    made.chunk(made.message(number, 2, body), [number], "lz4", size=5 << 40)
    path = tmp_path / "x.mcap"
    path.write_bytes(made.finished(declarations=declared))
    with pytest.raises(data.FormatError, match=r"declares 5,120.00 GiB, above 4 GiB"):
        data.open(path).load()
    kept = data.open(path, damaged="keep").load()
    assert len(kept["/p"]) == 1 and "above 4 GiB" in kept.problems[0].text


@pytest.mark.parametrize("kind", KINDS)
def test_more_than_the_header_states_takes_no_memory(kind):
    packed = compress(kind, bytes(64 << 20))
    tracemalloc.start()
    with pytest.raises(ValueError, match="has more than 100 bytes, expected 100"):
        decompressed(packed, kind, 100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20


def test_a_small_bag_that_unpacks_to_much(tmp_path):
    pytest.importorskip("rosbags")

    def record(content, **fields):
        head = b"".join(struct.pack("<I", len(k) + 1 + len(v)) + k.encode() + b"=" + v
                        for k, v in fields.items())  # fmt: skip
        return struct.pack("<I", len(head)) + head + struct.pack("<I", len(content)) + content

    none = bytes(4)
    head = record(b"", op=b"\3", index_pos=bytes(8), conn_count=none, chunk_count=none)
    packed = compress("bz2", bytes(64 << 20))
    chunk = record(packed, op=b"\5", compression=b"bz2", size=struct.pack("<I", 100))
    path = tmp_path / "x.bag"
    path.write_bytes(b"#ROSBAG V2.0\n" + head + chunk)
    tracemalloc.start()
    recording = data.open(path, damaged="keep")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20
    assert any("has more than 100 bytes, expected 100" in str(p) for p in recording.problems)
