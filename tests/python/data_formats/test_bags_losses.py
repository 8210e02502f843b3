"""Bags that look intact but have lost messages: the loss and its size are reported."""

from __future__ import annotations

import sqlite3
import struct
from contextlib import closing

import numpy as np
import pytest

import data_files
import robocache as rbc
from robocache.data._errors import Damage

pytest.importorskip("rosbags")

data = rbc.data
POINT = "geometry_msgs/msg/Point"
COUNT = 100


def ros1(folder):
    """Write a bag of one unpacked chunk; return it and the positions of its messages."""
    from robocache.data._formats.bags.rosbag1 import Ros1, _records

    store = data_files.typestore(True)
    told = [("/p", POINT, 10**9 + i, data_files.make(store, POINT, x=float(i)))
            for i in range(COUNT)]  # fmt: skip
    path = data_files.write_ros1(folder / "x.bag", told, store, chunk=1 << 20)
    (chunk,) = Ros1(str(path), Damage()).chunks
    content = path.read_bytes()[chunk.at : chunk.at + chunk.size]
    records = [begin - 4 for begin, *_ in _records(content)]
    return path, [chunk.at + at for at in records[-COUNT:]]


def mcap(folder, summary=True, **chunk):
    """Write the same as MCAP, with checksums of 0, as many writers do."""
    store = data_files.typestore()
    made = data_files.McapBytes()
    text = store.generate_msgdef(POINT, ros_version=2)[0]
    number, declared = made.declared("/p", POINT, text)
    content, places = declared, []
    for i in range(COUNT):
        places.append(len(content))
        raw = store.serialize_cdr(data_files.make(store, POINT, x=float(i)), POINT)
        content += made.message(number, i, raw)
    head = len(made.data) + 9 + 32 + 8
    made.chunk(content, [number], checksum=False, **chunk)
    path = folder / "x.mcap"
    path.write_bytes(made.finished(summary, declared))
    return path, [head + at for at in places]


KINDS = {"ros1": ros1, "mcap": mcap}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def refused_and_kept(path, match, count):
    with pytest.raises(data.FormatError, match=match):
        data.open(path).load()
    kept = data.open(path, damaged="keep").load()
    assert len(kept["/p"]) == count
    return [str(problem) for problem in kept.problems]


def test_a_size_that_leads_beyond_a_chunk(tmp_path, kind):
    path, places = KINDS[kind](tmp_path)
    content = bytearray(path.read_bytes())
    content[places[60] + (2 if kind == "ros1" else 4)] ^= 1  # a bit of its size
    path.write_bytes(content)
    match = r"chunk at byte \d+: it is corrupt from its byte \d+ of \d+ on"
    problems = refused_and_kept(path, match, 60)
    assert problems[-1].endswith(f"topic /p: 60 messages found, the index says {COUNT}")


def test_records_that_are_no_messages_any_more(tmp_path, kind):
    """Each record leads to the next; only the index shows that there were more messages."""
    path, places = KINDS[kind](tmp_path)
    content = bytearray(path.read_bytes())
    for at in places[20:30]:
        if kind == "ros1":
            content[content.index(b"op=", at) + 3] = 0x70
        else:
            content[at] = 0x90
    path.write_bytes(content)
    (problem,) = refused_and_kept(path, "90 messages found, the index says 100", 90)
    assert "topic /p" in problem


@pytest.mark.parametrize("told", [90, 110])
def test_a_count_of_the_index(tmp_path, told):
    path, _ = mcap(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content.replace(struct.pack("<IHQ", 10, 1, COUNT),
                                     struct.pack("<IHQ", 10, 1, told)))  # fmt: skip
    if told > COUNT:
        refused_and_kept(path, "100 messages found, the index says 110", COUNT)
        return
    (problem,) = data.open(path).load().problems
    assert problem.text == "100 messages found, the index says 90"


def test_a_summary_without_counts(tmp_path):
    """The format allows it; the expected number of messages is then unknown."""
    path, _ = mcap(tmp_path)
    content = path.read_bytes()
    entry = struct.pack("<IHQ", 10, 1, COUNT)
    at = content.index(entry)
    size = at - 9 - 42
    assert content[size] == 0x0B
    head = bytearray(content[size:at] + struct.pack("<I", 0))
    struct.pack_into("<Q", head, 1, len(head) - 9)
    path.write_bytes(content[:size] + head + content[at + len(entry) :])
    recording = data.open(path)
    assert recording.info("/p").count is None
    assert len(recording["/p"]) == COUNT and recording.problems == ()


@pytest.mark.parametrize("what", ["size", "kind"])
def test_a_summary_that_loses_chunks(tmp_path, what):
    """All chunks are then found by scanning the file."""
    from robocache.data._formats.bags.mcap import _records

    store = data_files.typestore()
    made = data_files.McapBytes()
    number, declared = made.declared("/p", POINT, store.generate_msgdef(POINT, ros_version=2)[0])
    for i in range(3):
        raw = store.serialize_cdr(data_files.make(store, POINT, x=float(i)), POINT)
        made.chunk(declared + made.message(number, i, raw), [number])
    content = bytearray(made.finished(declarations=declared))
    begin = len(made.data) + 9 + 4  # after the end of the data
    summary = bytes(content[begin : -8 - 29])
    index = begin + [at - 9 for op, at, _ in _records(summary) if op == 8][-1]
    if what == "size":
        content[index + 4] ^= 1
        match = "the summary cannot be read"
    else:
        content[index] = 0x90
        match = "the summary lists 2 of the 3 chunks"
    path = tmp_path / "x.mcap"
    path.write_bytes(content)
    (problem,) = refused_and_kept(path, match, 3)
    assert match in problem


def test_a_cut_within_a_chunk(tmp_path):
    """The messages before the cut are read, although the chunk is incomplete."""
    path, places = mcap(tmp_path, summary=False)
    path.write_bytes(path.read_bytes()[: places[70] + 5])
    problems = refused_and_kept(path, "was not closed", 70)
    assert not any("lost" in problem for problem in problems)
    values = data.open(path, damaged="keep")["/p"].values
    np.testing.assert_array_equal(values[:, 0], np.arange(70))


# ---- parts of a bag -----------------------------------------------------------------------------


def split(folder):
    """Write a folder of two files; return it with the messages of the first one."""
    store = data_files.typestore()
    told = data_files.messages(store, 60)
    bag = folder / "bag"
    data_files.write_ros2(bag, told[:50], store)
    data_files.write_ros2(folder / "second", told[50:], store)
    (folder / "second/second.mcap").rename(bag / "bag_2.mcap")
    (bag / "bag.mcap").rename(bag / "bag_1.mcap")
    text = (bag / "metadata.yaml").read_text()
    text = text.replace("- bag.mcap", "- bag_1.mcap\n  - bag_2.mcap")
    (bag / "metadata.yaml").write_text(text)
    return bag, data.open(bag / "bag_1.mcap").load()


def same_as_first(bag, first, match):
    with pytest.raises(data.FormatError, match=match):
        data.open(bag)
    kept = data.open(bag, damaged="keep").load()
    for name in first.names:
        np.testing.assert_array_equal(kept[name].values, first[name].values)
    return [str(problem) for problem in kept.problems]


def test_a_part_that_is_missing(tmp_path):
    bag, first = split(tmp_path)
    (bag / "bag_2.mcap").unlink()
    reason = "metadata.yaml names bag_2.mcap, which is missing: its messages cannot be read"
    (problem,) = same_as_first(bag, first, reason)
    assert problem.endswith(reason)


def test_a_part_that_cannot_be_read(tmp_path):
    bag, first = split(tmp_path)
    (bag / "bag_2.mcap").write_bytes(b"SQLite format 3\0" + bytes(100))
    (problem,) = same_as_first(bag, first, "table topics: cannot be read")
    assert "bag_2.mcap: table topics: cannot be read" in problem


@pytest.mark.parametrize(
    "text",
    [
        "",
        "rosbag2_bagfile_information: [",
        "rosbag2_bagfile_information: {relative_file_paths: [7]}",
        "rosbag2_bagfile_information: {topics_with_message_count: [{}]}",
    ],
)
def test_metadata_that_cannot_be_read(tmp_path, text):
    """The bag then consists of the files in the folder."""
    bag, first = split(tmp_path)
    (bag / "bag_2.mcap").unlink()
    (bag / "metadata.yaml").write_text(text)
    (problem,) = same_as_first(bag, first, "metadata.yaml: cannot be read")
    assert "metadata.yaml: cannot be read" in problem


def test_a_part_that_is_listed_twice(tmp_path):
    bag, first = split(tmp_path)
    text = (bag / "metadata.yaml").read_text().replace("bag_2.mcap", "bag_1.mcap")
    (bag / "metadata.yaml").write_text(text)
    assert len(data.open(bag)["/imu"]) == len(first["/imu"])


# ---- counts in metadata.yaml --------------------------------------------------------------------


def sqlite_without(folder, condition, count=60):
    """Write a bag in sqlite3 that lacks some messages and is otherwise good."""
    store = data_files.typestore()
    path = data_files.write_ros2(
        folder / "bag", data_files.messages(store, count), store, "sqlite3"
    )
    with closing(sqlite3.connect(path / "bag.db3")) as database:
        database.execute(f"DELETE FROM messages WHERE {condition}")
        database.commit()
    return path


def test_messages_that_the_metadata_counts(tmp_path):
    path = sqlite_without(tmp_path, "id % 3 = 0 AND topic_id = 1")
    match = r"bag: topic /imu: \d+ messages found, metadata.yaml says 60. A .db3-wal file next to"
    with pytest.raises(data.FormatError, match=match):
        data.open(path)["/imu"]
    assert len(data.open(path)["/scan"]) == 6  # this topic is complete
    kept = data.open(path, damaged="keep").load()
    (problem,) = kept.problems
    assert f"{len(kept['/imu'])} messages found, metadata.yaml says 60" in problem.text
    assert len(kept["/imu"]) < 60 and problem.place == "topic /imu"
    assert [f.kind for f in data.checks.check(kept) if f.severity == "error"] == ["damage"]


def test_a_topic_that_only_the_metadata_lists(tmp_path):
    path = sqlite_without(tmp_path, "topic_id = 1")
    with closing(sqlite3.connect(path / "bag.db3")) as database:
        database.execute("DELETE FROM topics WHERE id = 1")
        database.commit()
    with pytest.raises(data.FormatError, match="topic /imu: 0 messages found, .* says 60"):
        data.open(path)
    kept = data.open(path, damaged="keep").load()
    assert "/imu" not in kept and len(kept.problems) == 1


def test_more_messages_than_the_metadata_counts(tmp_path):
    path = sqlite_without(tmp_path, "id < 0")
    text = (path / "metadata.yaml").read_text()
    (path / "metadata.yaml").write_text(text.replace("message_count: 60", "message_count: 50"))
    recording = data.open(path).load()
    assert len(recording["/imu"]) == 60
    (problem,) = recording.problems
    assert problem.text == "60 messages found, metadata.yaml says 50"
