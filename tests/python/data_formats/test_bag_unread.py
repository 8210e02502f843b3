"""Bags that are not read completely, and bags compressed by rosbag2."""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import struct

import numpy as np
import pytest

import data_files
import keyed_bags
from robocache import data

pytest.importorskip("rosbags")

HEAD = b"\0\1\0\0"
START = 1_700_000_000 * 10**9


def number(i):
    return HEAD + struct.pack("<d", i)


def mcap(path, channels, messages, summary=False):
    """``channels``: (topic, type, definition); ``messages``: (index of the channel, content)."""
    made = data_files.McapBytes()
    numbers = []
    for topic, name, definition in channels:
        number, declarations = made.declared(
            topic, name, definition, kind="ros2msg" if name else ""
        )
        numbers.append(number)
        made.data += declarations
    for i, (which, content) in enumerate(messages):
        made.data += made.message(numbers[which], START + i * 10**7, content)
    path.write_bytes(made.finished(summary=summary))
    return path


def float64s(count, topic="/x"):
    store = data_files.typestore()
    return [
        (topic, "std_msgs/msg/Float64", START + i * 10**7,
         data_files.make(store, "std_msgs/msg/Float64", data=i / 50))
        for i in range(count)
    ], store  # fmt: skip


def folder(path, storage="mcap", mode=None, count=40):
    """Write a bag with rosbags, compressed by message or by file."""
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

    messages, store = float64s(count)
    plugin = StoragePlugin.MCAP if storage == "mcap" else StoragePlugin.SQLITE3
    bag = Writer(path, version=9, storage_plugin=plugin)
    if mode:
        bag.set_compression(CompressionMode[mode], CompressionFormat.ZSTD)
    with bag:
        connection = bag.add_connection("/x", "std_msgs/msg/Float64", typestore=store)
        for _, name, at, message in messages:
            bag.write(connection, at, store.serialize_cdr(message, name))
    return path


def only(path, suffix):
    (name,) = [name for name in os.listdir(path) if name.endswith(suffix)]
    return path / name


# ---- compressed ----------------------------------------------------------------------------------


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
@pytest.mark.parametrize("mode", ["MESSAGE", "FILE"])
def test_compressed_bags(tmp_path, storage, mode):
    bag = folder(tmp_path / "bag", storage, mode)
    before = {name: (bag / name).read_bytes() for name in os.listdir(bag)}
    recording = data.open(bag)
    np.testing.assert_array_equal(recording["/x"].values[:, 0], np.arange(40) / 50)
    assert recording.unread == () and recording.problems == ()
    again = pickle.loads(pickle.dumps(data.open(bag)))
    assert len(again["/x"]) == 40
    assert {name: (bag / name).read_bytes() for name in os.listdir(bag)} == before


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_compressed_file_by_itself(tmp_path, storage):
    bag = folder(tmp_path / "bag", storage, "FILE")
    file = only(bag, ".zstd")
    assert len(data.open(file)["/x"]) == 40
    os.remove(bag / "metadata.yaml")
    assert len(data.open(bag)["/x"]) == 40
    renamed = tmp_path / "x.bin"
    file.rename(renamed)
    assert len(data.open(renamed)["/x"]) == 40


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_file_that_was_unpacked_beside_its_metadata(tmp_path, storage):
    zstd = zstd_module()
    bag = folder(tmp_path / "bag", storage, "FILE")
    file = only(bag, ".zstd")
    file.with_suffix("").write_bytes(zstd.decompress(file.read_bytes()))
    file.unlink()
    recording = data.open(bag)
    assert len(recording["/x"]) == 40
    assert [finding.kind for finding in recording.findings] == ["renamed"]


def zstd_module():
    with contextlib.suppress(ImportError):
        from compression import zstd

        return zstd
    return pytest.importorskip("backports.zstd")


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_compressed_file_that_is_cut_off(tmp_path, storage):
    file = only(folder(tmp_path / "bag", storage, "FILE"), ".zstd")
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(data.FormatError, match="damaged or truncated|no footer"):
        data.open(file).load()


def test_file_that_unpacks_to_too_much(tmp_path):
    zstd = zstd_module()
    file = tmp_path / "x.mcap.zstd"
    file.write_bytes(zstd.compress(data_files.McapBytes.MAGIC + bytes(300 << 20)))
    with pytest.raises(data.FormatError, match="max_unpacked"):
        data.open(file)


def test_messages_that_unpack_to_too_much(tmp_path):
    zstd = zstd_module()
    packed = zstd.compress(HEAD + struct.pack("<I", 20 << 20) + bytes(20 << 20))
    channel = [("/x", "pkg/msg/A", "uint8[] data\n")]
    path = mcap(tmp_path / "x.mcap", channel, [(0, packed)] * 20)
    with pytest.raises(data.FormatError, match="max_unpacked"):
        data.open(path).load()


def test_compressed_messages_that_are_damaged(tmp_path):
    zstd = zstd_module()
    good = [zstd.compress(number(i)) for i in range(5)]
    channel = [("/x", "std_msgs/msg/Float64", "float64 data\n")]
    messages = [(0, good[0]), (0, good[1][:-3]), (0, good[2]), (0, good[3][:4]), (0, number(4))]
    recording = data.open(mcap(tmp_path / "x.mcap", channel, messages))
    assert recording["/x"].values[:, 0].tolist() == [0, 2, 4]
    assert sum(unread.messages for unread in recording.unread) == 2


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
@pytest.mark.parametrize("mode", ["MESSAGE", "FILE"])
def test_keys_of_compressed_bags(tmp_path, storage, mode):
    from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

    store = keyed_bags.store_of(storage)
    told = []
    for i, at in enumerate(keyed_bags.times(100)):
        told.append(keyed_bags.tf(store, at, ("map", "ab"[i % 2], i), ("map", "c", -i)))
        names, values = (["p", "q"], [i, -i]) if i % 3 else (["q", "p"], [-i, i])
        told.append(keyed_bags.joints(store, at, names, values))
    plain = data.open(keyed_bags.write(tmp_path, storage, told, store)).load()
    plugin = StoragePlugin.MCAP if storage == "mcap" else StoragePlugin.SQLITE3
    bag = Writer(tmp_path / "packed", version=9, storage_plugin=plugin)
    bag.set_compression(CompressionMode[mode], CompressionFormat.ZSTD)
    with bag:
        of = {t: bag.add_connection(t, name, typestore=store) for t, name, _, _ in told[:2]}
        for topic, name, at, message in told:
            bag.write(of[topic], at, store.serialize_cdr(message, name))
    packed = data.open(tmp_path / "packed").load()
    assert packed.names == plain.names and len(plain.names) == 4
    for name in plain.names:
        assert packed[name].names == plain[name].names
        np.testing.assert_array_equal(packed[name].values, plain[name].values)
        np.testing.assert_array_equal(packed[name].header_times, plain[name].header_times)
    assert packed.unread == ()


def test_a_topic_with_keys_is_unread_once(tmp_path):
    zstd = zstd_module()
    store = keyed_bags.store_of("mcap")
    contents = []
    for at in keyed_bags.times(100):
        _, name, _, message = keyed_bags.tf(store, at, ("map", "a", 1))
        contents.append(bytes(store.serialize_cdr(message, name)))
    contents[10:20] = [zstd.compress(each)[:-3] for each in contents[10:20]]
    contents[20:60] = [each[:-8] for each in contents[20:60]]
    made = data_files.McapBytes()
    number, declarations = made.declared("/tf", name, store.generate_msgdef(name)[0])
    made.data += declarations
    for at, content in zip(keyed_bags.times(100), contents):
        made.data += made.message(number, at, content)
    (tmp_path / "x.mcap").write_bytes(made.finished(summary=False))
    recording = data.open(tmp_path / "x.mcap").load()
    assert len(recording["/tf"]) == 50
    (unread,) = recording.unread
    assert (unread.place, unread.messages) == ("/tf", 50)
    assert unread.reason.startswith("40 of them: a message ends")
    assert "; 10 of them: " in unread.reason and "other reasons" not in unread.reason
    reasons = [each.reason for each in recording.left_out if each.place == "/tf"]
    assert [reason.partition(" ")[0] for reason in sorted(reasons)] == ["10", "40"]


# ---- files of other names ------------------------------------------------------------------------


def test_renamed_file(tmp_path):
    bag = folder(tmp_path / "bag")
    only(bag, ".mcap").rename(bag / "kitchen_run_3.mcap")
    recording = data.open(bag)
    assert len(recording["/x"]) == 40
    (finding,) = recording.findings
    assert (finding.severity, finding.kind) == ("note", "renamed")
    assert "names bag.mcap" in finding.text and "kitchen_run_3.mcap is" in finding.text
    assert recording.problems == ()


@pytest.mark.parametrize("topic", ["/x", "/y"])
def test_a_file_of_another_recording_is_no_renamed_one(tmp_path, topic):
    bag = folder(tmp_path / "bag")
    only(bag, ".mcap").unlink()
    messages, store = float64s(40, topic)
    later = [(t, name, at + 3600 * 10**9 * (topic == "/x"), made) for t, name, at, made in messages]
    other = data_files.write_ros2(tmp_path / "other", later, store, "mcap")
    only(other, ".mcap").rename(bag / "run.mcap")
    with pytest.raises(data.FormatError, match="run.mcap belongs to another recording"):
        data.open(bag)


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
@pytest.mark.parametrize("pause", [1, 3600])
def test_times_of_compressed_parts(tmp_path, storage, pause):
    zstd = zstd_module()
    (tmp_path / "bag").mkdir()
    for part in (9, 10):
        messages, store = float64s(40)
        later = [(t, name, at + part * pause * 10**9, made) for t, name, at, made in messages]
        file = data_files.write_ros2(tmp_path / f"part{part}", later, store, storage)
        file = only(file, ".mcap" if storage == "mcap" else ".db3")
        packed = zstd.compress(file.read_bytes())
        (tmp_path / "bag" / f"run_{part}{file.suffix}.zstd").write_bytes(packed)
    if pause == 1:
        times = data.open(tmp_path / "bag")["/x"].log_times
        assert len(times) == 80 and (np.diff(times) > 0).all()
        return
    with pytest.raises(data.FormatError, match="holds 2 recordings"):
        data.open(tmp_path / "bag")


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_a_file_that_the_metadata_do_not_name(tmp_path, storage):
    bag = folder(tmp_path / "bag", storage)
    file = only(bag, ".mcap" if storage == "mcap" else ".db3")
    shutil.copy(file, bag / f"more{file.suffix}")
    shutil.copy(file, file.with_name(f"{file.name}.zstd"))  # a copy of the same, packed
    os.symlink("nothing", bag / "link.mcap")
    recording = data.open(bag)
    assert len(recording["/x"]) == 40
    (unread,) = recording.unread
    assert (unread.place, unread.messages, unread.bytes) == (
        f"more{file.suffix}",
        None,
        file.stat().st_size,
    )
    assert "metadata.yaml does not name this file" in unread.reason


def test_missing_file_beside_others(tmp_path):
    bag = folder(tmp_path / "bag")
    file = only(bag, ".mcap")
    for name in ("a.mcap", "b.mcap"):
        (bag / name).write_bytes(file.read_bytes())
    file.unlink()
    with pytest.raises(data.FormatError, match="a.mcap, b.mcap are here: were they renamed"):
        data.open(bag)
    for name in ("a.mcap", "b.mcap"):
        (bag / name).unlink()
    with pytest.raises(data.FormatError, match="names bag.mcap, which is missing"):
        data.open(bag)


# ---- what is unread ------------------------------------------------------------------------------


@pytest.mark.parametrize("summary", [False, True])
@pytest.mark.parametrize(
    ("typename", "definition", "match"),
    [
        ("my_robot/msg/Grip", "", "--definition my_robot/msg/Grip=Grip.msg"),
        ("", "", "does not state the type"),
        ("p/msg/A", "q/Inner i\n", "--definition q/msg/Inner=Inner.msg"),
        ("p/msg/A", "float64 a\nfloat64 b\n", "before its field b is complete"),
        ("p/msg/A", "float32 a\n", "each has 12 bytes, but by the definition of p/msg/A they"),
        ("p/msg/A", "nonsense\n", "cannot be parsed"),
    ],
)
def test_topic_without_readable_fields(tmp_path, typename, definition, match, summary):
    channels = [
        ("/gripper", typename, definition),
        ("/x", "std_msgs/msg/Float64", "float64 data\n"),
    ]
    messages = [(i % 2, number(i)) for i in range(50)]
    recording = data.open(mcap(tmp_path / "x.mcap", channels, messages))
    (unread,) = recording.unread
    assert (unread.place, unread.messages, unread.loses_numbers) == ("/gripper", 25, True)
    assert match in unread.reason
    assert len(recording["/x"]) == 25


def test_half_of_a_topic(tmp_path):
    messages = [(0, number(i) if i % 2 else b"\xff\xff\0\0" + bytes(8)) for i in range(50)]
    channel = [("/x", "std_msgs/msg/Float64", "float64 data\n")]
    recording = data.open(mcap(tmp_path / "x.mcap", channel, messages))
    assert len(recording["/x"]) == 25
    (unread,) = recording.unread
    assert (unread.messages, unread.bytes) == (25, 25 * 12)
    assert "ffff0000" in unread.reason


def test_texts_lose_no_numbers(tmp_path):
    content = HEAD + struct.pack("<I", 3) + b"ab\0"
    channels = [("/text", "std_msgs/msg/String", "string data\n"), ("/e", "std_msgs/msg/Empty", "")]
    path = mcap(tmp_path / "x.mcap", channels, [(0, content), (1, HEAD + b"\0")] * 5)
    (unread,) = data.open(path).load().unread
    assert (unread.place, unread.messages, unread.loses_numbers) == ("/text", 5, False)


def test_pictures_are_read(tmp_path):
    def picture(i):
        name = struct.pack("<iII4sI5sxxx", 0, 0, 4, b"cam\0", 5, b"jpeg\0")
        return HEAD + name + struct.pack("<I", i) + bytes(i)

    definition = (
        "std_msgs/Header header\nstring format\nuint8[] data\n" + "=" * 80
        + "\nMSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n"
    )  # fmt: skip
    channel = [("/camera", "sensor_msgs/msg/CompressedImage", definition)]
    path = mcap(tmp_path / "x.mcap", channel, [(0, picture(i)) for i in range(10)])
    recording = data.open(path).load()
    assert len(recording["/camera"]) == 10 and recording.unread == ()


BESIDE = [
    ("/rosout", "rcl_interfaces/msg/Log"),
    ("/rosout_agg", "rosgraph_msgs/msg/Log"),
    ("/parameter_events", "rcl_interfaces/msg/ParameterEvent"),
    ("/events/read_split", "rosbag2_interfaces/msg/ReadSplitEvent"),
    ("/events/write_split", "rosbag2_interfaces/msg/WriteSplitEvent"),
]


@pytest.mark.parametrize(("topic", "typename"), BESIDE)
def test_topics_of_ros_itself_are_beside(tmp_path, topic, typename):
    channels = [("/x", "std_msgs/msg/Float64", "float64 data\n"), (topic, typename, "float64 y\n")]
    messages = [(i % 2, number(i)) for i in range(10)]
    recording = data.open(mcap(tmp_path / "x.mcap", channels, messages))
    assert recording.names == ("/x",)
    assert [each.place for each in recording.left_out] == [topic]
    assert recording.unread == ()
    assert recording[topic].names == ("y",)
    assert recording.select([topic]).names == (topic,)


@pytest.mark.parametrize(
    ("topic", "typename"), [("/rosout", "p/msg/Log"), ("/logs", "rcl_interfaces/msg/Log")]
)
def test_other_topics_and_types_are_read(tmp_path, topic, typename):
    path = mcap(tmp_path / "x.mcap", [(topic, typename, "float64 y\n")], [(0, number(1))])
    assert data.open(path).names == (topic,)


def test_arrays_of_changing_length(tmp_path):
    def content(i):
        return HEAD + struct.pack("<II", 7, i % 3) + bytes(4 * (i % 3))

    definition = "uint32 offset\nfloat32[] data\n"
    channel = [("/command", "p/msg/A", definition)]
    path = mcap(tmp_path / "x.mcap", channel, [(0, content(i)) for i in range(40)])
    (unread,) = data.open(path).load().unread
    assert unread.messages == 40 and "data (0 to 2 elements)" in unread.reason


# ---- the order of chunks -------------------------------------------------------------------------


@pytest.mark.parametrize("summary", [False, True])
def test_chunks_out_of_order(tmp_path, summary):
    made = data_files.McapBytes()
    channel, declarations = made.declared("/a", "std_msgs/msg/Float64", "float64 data\n")
    for part in (range(25, 50), range(25)):
        times = [START + i * 10**7 for i in part]
        content = b"".join(made.message(channel, t, number(i)) for t, i in zip(times, part))
        made.chunk(declarations + content, [channel], begin=times[0])
    path = tmp_path / "x.mcap"
    path.write_bytes(made.finished(summary, declarations))
    recording = data.open(path)
    pieces = [piece for piece in recording.pieces()]
    assert np.concatenate([piece.values[:, 0] for piece in pieces]).tolist() == list(range(50))
    from robocache.data import checks

    found = checks.check(recording)
    assert [finding.kind for finding in found if finding.severity != "note"] == []


def test_chunks_of_ros1_out_of_order(tmp_path):
    store = data_files.typestore(ros1=True)
    messages = [
        ("/x", "std_msgs/msg/Float64", START + i * 10**7,
         data_files.make(store, "std_msgs/msg/Float64", data=i))
        for i in [*range(100, 200), *range(100)]
    ]  # fmt: skip
    path = data_files.write_ros1(tmp_path / "x.bag", messages, store, chunk=1)
    pieces = list(data.open(path).pieces())
    assert np.concatenate([piece.values[:, 0] for piece in pieces]).tolist() == list(range(200))
