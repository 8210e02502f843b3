"""ROS 1 bags with positions and sizes beyond the end of the file, or beyond any file."""

import struct
import tracemalloc

import numpy as np
import pytest

import data_files
import robocache as rbc

pytest.importorskip("rosbags")

data = rbc.data
FAR = (1 << 64) - 1  # longer than any file: seek() would raise OverflowError


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    store = data_files.typestore(True)
    told = data_files.messages(store, 120)
    path = data_files.write_ros1(tmp_path_factory.mktemp("bag") / "x.bag", told, store)
    return path, data.open(path).load()


def changed(tmp_path, good, field, value, form, which=0):
    """Write a copy with another value of a field, given by its name in the head of a record."""
    content = bytearray(good[0].read_bytes())
    at = -1
    for _ in range(which + 1):
        at = content.index(field + b"=", at + 1)
    struct.pack_into(form, content, at + len(field) + 1, value)
    path = tmp_path / "x.bag"
    path.write_bytes(content)
    return path


def refused_or_read_around(path):
    """Return the peak number of bytes allocated."""
    tracemalloc.start()
    with pytest.raises(data.FormatError) as caught:
        data.open(path).load()
    part = data.open(path, damaged="keep").load()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert caught.value.path == str(path) and len(part.problems) > 0
    return part, peak


@pytest.mark.parametrize("value", [FAR, 1 << 63, (1 << 63) - 1, 1 << 40])
def test_an_index_beyond_any_file(tmp_path, good, value):
    """The file is then read record by record, and nothing is lost."""
    part, _ = refused_or_read_around(changed(tmp_path, good, b"index_pos", value, "<Q"))
    for name in good[1].names:
        np.testing.assert_array_equal(part[name].values, good[1][name].values)


@pytest.mark.parametrize("value", [FAR, 1 << 63, (1 << 63) - 1, 1 << 40])
def test_a_chunk_beyond_any_file(tmp_path, good, value):
    refused_or_read_around(changed(tmp_path, good, b"chunk_pos", value, "<Q"))


def sizes(content):
    """Return (position of the data size, kind) of each record outside of chunks."""
    at = content.index(b"\n") + 1
    while at < len(content):
        (head,) = struct.unpack_from("<I", content, at)
        op = content[content.index(b"op=", at, at + 4 + head) + 3]
        (size,) = struct.unpack_from("<I", content, at + 4 + head)
        yield at + 4 + head, op
        at += 8 + head + size


@pytest.mark.parametrize("op", [0x05, 0x06, 0x07])  # chunk, chunk info, connection
def test_sizes_beyond_the_file(tmp_path, good, op):
    """No memory is allocated for bytes that the file does not have."""
    content = bytearray(good[0].read_bytes())
    places = [place for place, kind in sizes(content) if kind == op]
    assert places
    struct.pack_into("<I", content, places[0], 0xFFFFFFF0)
    path = tmp_path / "x.bag"
    path.write_bytes(content)
    _, peak = refused_or_read_around(path)
    assert peak < 64 << 20
