"""Damaged bags: an error with file and place, or on request all that can be read."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

import data_files
import robocache as rbc
from random_share import random_share

pytest.importorskip("rosbags")

data = rbc.data
STORE = {"ros1": True, "mcap": False, "mcap zstd": False, "sqlite3": False}


def bag(folder, kind, count=120):
    """Write a bag and return its file."""
    store = data_files.typestore(STORE[kind])
    told = data_files.messages(store, count)
    if kind == "ros1":
        return data_files.write_ros1(folder / "x.bag", told, store)
    storage, _, packed = kind.partition(" ")
    path = data_files.write_ros2(folder / "x", told, store, storage, bool(packed))
    return path / ("x.mcap" if storage == "mcap" else "x.db3")


def refused(path, **options):
    """Return the error raised by opening a file or reading it."""
    with pytest.raises(data.FormatError) as caught:
        data.open(path, **options).load()
    assert str(caught.value).startswith(str(caught.value.path))
    return caught.value


@pytest.mark.parametrize("kind", ["ros1", "mcap", "mcap zstd"])
def test_cut_off_anywhere(tmp_path, kind):
    path = bag(tmp_path, kind)
    whole = data.open(path).load()
    content = path.read_bytes()
    cuts = np.random.default_rng(0).integers(20, len(content), random_share(30)).tolist()
    kept = 0
    for cut in [*cuts, len(content) - 1]:
        path.write_bytes(content[:cut])
        error = refused(path)
        assert error.path == str(path) and "byte" in error.place or "its header" in error.place
        try:
            part = data.open(path, damaged="keep").load()
        except data.FormatError:
            assert cut < 3000  # too short to name a topic
            continue
        assert part.problems
        for name, stream in part.streams.items():
            rows = len(stream)
            kept += rows
            if rows == 0:
                continue
            both = [n for n in stream.names if n in whole[name].names]
            of = whole[name].select(slice(rows), both)
            np.testing.assert_array_equal(stream.log_times, of.log_times)
            np.testing.assert_array_equal(stream.select(names=of.names).values, of.values)
    assert kept > 400 or kind == "mcap zstd"  # that one is a single packed chunk


def test_a_cut_off_database(tmp_path):
    path = bag(tmp_path, "sqlite3", 400)
    whole = data.open(path).load()
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 6 // 10])
    error = refused(path)
    assert error.place == "table topics" and "damaged='keep'" in str(error)
    part = data.open(path, damaged="keep").load()
    lost = [problem for problem in part.problems if "the rest is skipped" in problem.text]
    assert lost and lost[-1].place.startswith("table messages, after "), part.problems
    stream = part["/imu"]
    assert 20 < len(stream) < len(whole["/imu"])
    there = np.isin(whole["/imu"].log_times, stream.log_times)  # a page that is cut loses some
    np.testing.assert_array_equal(stream.values, whole["/imu"].values[there])


def test_a_database_of_something_else(tmp_path):
    path = tmp_path / "x.db3"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE songs (id INTEGER)")
    with pytest.raises(data.FormatError, match="without the tables topics and messages"):
        data.open(path)


NUMBERS = "WITH RECURSIVE r(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r) SELECT"
COLUMNS = "id INTEGER, topic_id INTEGER, timestamp INTEGER"


@pytest.mark.parametrize(
    "made",
    [
        f"CREATE VIEW messages AS {NUMBERS} i AS id, 1 AS topic_id, i AS timestamp, x'00' AS data "
        "FROM r",
        f"CREATE TABLE messages ({COLUMNS}, data BLOB AS (zeroblob(500000000)))",
        "CREATE VIRTUAL TABLE messages USING fts4(id, topic_id, timestamp, data)",
    ],
)
def test_a_database_whose_messages_have_no_end(tmp_path, made):
    """A view would compute them: SQL in the file would run."""
    path = tmp_path / "x.db3"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE topics (id, name, type, serialization_format)")
        database.execute(f"INSERT INTO topics VALUES (1, '/p', '{POINT}', 'cdr')")
        database.execute(made)
    with pytest.raises(data.FormatError, match="without the tables topics and messages"):
        data.open(path)


@pytest.mark.parametrize("kind", ["ros1", "mcap"])
def test_any_byte_may_be_wrong(tmp_path, kind):
    """It raises FormatError, or the damage is skipped; no other exception is raised."""
    path = bag(tmp_path, kind, 40)
    content = bytearray(path.read_bytes())
    rng = np.random.default_rng(1)
    for _ in range(random_share(40)):
        at = int(rng.integers(13 if kind == "ros1" else 8, len(content)))
        before = content[at]
        content[at] ^= int(rng.integers(1, 256))
        path.write_bytes(content)
        content[at] = before
        for damaged in ("refuse", "keep"):
            try:
                recording = data.open(path, damaged=damaged).load()
                assert all(len(s.values) == len(s.log_times) for s in recording.streams.values())
            except data.FormatError as error:
                assert error.path == str(path)


def small_mcap(topics, **chunk):
    """Write one chunk with three messages per topic."""
    store = data_files.typestore()
    mcap = data_files.McapBytes()
    content, declared = b"", b""
    for topic, name, definition, serialization in topics:
        if definition is None:
            definition = store.generate_msgdef(name, ros_version=2)[0]
        number, records = mcap.declared(topic, name, definition, serialization)
        content += records
        declared += records
        for at in range(3):
            raw = b"\0\1\0\0"
            if name in store.fielddefs:
                raw = store.serialize_cdr(data_files.make(store, name), name)
            content += mcap.message(number, at, raw)
    mcap.chunk(content, list(mcap.channels.values()), **chunk)
    return mcap.finished(declarations=declared)


POINT, POSE = "geometry_msgs/msg/Point", "geometry_msgs/msg/Pose"


@pytest.mark.parametrize(
    ("chunk", "reason"),
    [
        ({"checksum": 12345}, "its checksum differs"),
        ({"compression": "lz4", "size": 77}, "expected 77: its messages are skipped"),
        ({"compression": "brotli"}, "compressed with 'brotli', which is not read"),
    ],
)
def test_damaged_chunks(tmp_path, chunk, reason):
    path = tmp_path / "x.mcap"
    path.write_bytes(small_mcap([("/p", POINT, None, "cdr")], **chunk))
    error = refused(path)
    assert reason in str(error) and error.place.startswith("chunk at byte ")
    part = data.open(path, damaged="keep").load()
    assert len(part["/p"]) == 0 and reason in part.problems[0].text


def test_types_that_are_not_known(tmp_path):
    path = tmp_path / "x.mcap"
    topics = [
        ("/p", POINT, None, "cdr"),
        ("/unknown", "their_msgs/msg/Thing", "", "cdr"),
        ("/odd", "their_msgs/msg/Odd", "float64[ x\n", "cdr"),
        ("/inner", "their_msgs/msg/Inner", "their_msgs/Missing inner", "cdr"),
        ("/json", "their_msgs/msg/Json", "float64 x", "json"),
        ("/short", "their_msgs/msg/Short", "float64[9] x", "cdr"),
    ]
    path.write_bytes(small_mcap(topics))
    recording = data.open(path).load()
    assert len(recording["/p"]) == 3
    reasons = {e.place: e.reason for e in recording.left_out}
    assert "the type their_msgs/msg/Thing is defined neither" in reasons["/unknown"]
    assert "cannot be parsed" in reasons["/odd"]
    assert "type their_msgs/msg/Missing, which they contain, is not defined" in reasons["/inner"]
    assert "are not JSON" in reasons["/json"]
    assert reasons["/short"] == (
        "3 messages could not be read: a message ends (4 bytes) before its field x is complete: "
        "the definition does not fit"
    )


def test_definitions_that_are_given(tmp_path):
    path = tmp_path / "x.mcap"
    path.write_bytes(small_mcap([("/p", POINT, None, "cdr"), ("/short", "a/msg/B", "", "cdr")]))
    recording = data.open(path, definitions={"a/msg/B": "float64[0] x\n"}).load()
    assert len(recording["/short"]) == 3 and recording["/short"].names == ()
    with pytest.raises(ValueError, match="cannot be parsed"):
        data.open(path, definitions={"a/msg/B": "float64[ x\n"})


def test_one_topic_of_two_types(tmp_path):
    path = tmp_path / "x.mcap"
    path.write_bytes(small_mcap([("/p", POINT, None, "cdr"), ("/p", POSE, None, "cdr")]))
    recording = data.open(path)
    assert recording.names == (f"/p ({POINT})", f"/p ({POSE})")
    assert [len(recording[name].names) for name in recording.names] == [3, 7]


def test_a_bag_without_messages(tmp_path):
    store = data_files.typestore()
    data_files.write_ros2(tmp_path / "bag", [], store)
    recording = data.open(tmp_path / "bag")
    assert recording.names == () and recording.streams == {}


def test_files_that_the_metadata_lists(tmp_path):
    folder = bag(tmp_path, "mcap").parent
    text = (folder / "metadata.yaml").read_text()
    (folder / "metadata.yaml").write_text(text.replace("x.mcap", "../y.mcap"))
    (tmp_path / "y.mcap").write_bytes((folder / "x.mcap").read_bytes())
    recording = data.open(folder)  # x.mcap, because y.mcap is not in the folder
    assert [finding.kind for finding in recording.findings] == ["renamed"]
    (folder / "metadata.yaml").write_text("rosbag2_bagfile_information: [")
    with pytest.raises(data.FormatError, match="metadata.yaml: cannot be read"):
        data.open(folder)


def test_links_out_of_a_bag(tmp_path):
    file = bag(tmp_path, "mcap")
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(data.FormatError, match="a link out of the data set"):
        data.open(file.parent)
    assert len(data.open(file.parent, follow_links=True)["/imu"]) == 120


def test_files_compressed_as_a_whole(tmp_path):
    folder = bag(tmp_path, "mcap").parent
    (folder / "x.mcap").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(100))
    assert "it is compressed (zstd), and is damaged or truncated" in str(refused(folder))
