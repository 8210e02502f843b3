"""ROS bags read as columns, against decoding by rosbags: every value and stamp."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import data_files
import robocache as rbc

pytest.importorskip("rosbags")

data = rbc.data


def field(message, path):
    """Return a field by its path, such as pose.position.x, parts[0].size or position[joint]."""
    joints = list(getattr(message, "name", []))
    for name, places in re.findall(r"(\w+)((?:\[[^\]]+\])*)", path):
        message = getattr(message, name)
        for place in re.findall(r"\[([^\]]+)\]", places):
            message = message[joints.index(place) if place in joints else int(place)]
    return message


def check_stream(stream, told):
    """Compare a stream with pairs (log time, message) in the same order."""
    assert len(stream) == len(told)
    assert stream.log_times.tolist() == [at for at, _ in told]
    assert stream.log_times.dtype == np.int64
    for row, (_, message) in enumerate(told):
        expected = [field(message, name) for name in stream.names]
        np.testing.assert_array_equal(stream.values[row], np.array(expected, stream.values.dtype))
    stamps = [getattr(m, "header", m) for _, m in told]
    if all(hasattr(m, "stamp") for m in stamps):
        expected = [m.stamp.sec * 10**9 + m.stamp.nanosec for m in stamps]
        assert stream.header_times.tolist() == expected
    else:
        assert stream.header_times is None


@pytest.fixture(params=["ros1", "ros1 bz2", "ros1 lz4", "mcap", "mcap zstd", "sqlite3"])
def written(request, tmp_path):
    """Write a bag; return it with (log time, message) by topic."""
    kind, _, packed = request.param.partition(" ")
    store = data_files.typestore(ros1=kind == "ros1")
    told = data_files.messages(store)
    if kind == "ros1":
        path = tmp_path / "a bag ü.bag"
        data_files.write_ros1(path, told, store, compression=packed.upper() or None)
    else:
        path = tmp_path / "a bag ü"
        data_files.write_ros2(path, told, store, kind, bool(packed))
    by_topic = {}
    for topic, _, at, message in told:
        by_topic.setdefault(topic, []).append((at, message))
    return path, by_topic


def test_every_value_and_stamp(written):
    path, told = written
    recording = data.open(path)
    assert set(recording.names) == set(told)
    for name, stream in recording.streams.items():
        check_stream(stream, told[name])
    assert recording.problems == ()


def test_channels_and_dtypes(written):
    recording = data.open(written[0])
    imu, mixed = recording["/imu"], recording["/mixed"]
    assert imu.names[:4] == tuple(f"orientation.{c}" for c in "xyzw")
    assert "orientation_covariance[8]" in imu.names and imu.values.dtype == np.float64
    assert mixed.names[:4] == ("on", "force[0]", "force[1]", "force[2]")
    assert dict(zip(mixed.names, mixed.dtypes))["on"] == "bool"
    assert dict(zip(mixed.names, mixed.dtypes))["samples[0]"] == "float32"
    assert "parts[0].size" in mixed.names and "samples[3]" in mixed.names
    assert imu.unit == "ns" and imu.kind == "sensor_msgs/msg/Imu"


def test_what_is_left_out_is_named(written):
    told = {each.place: each.reason for each in data.open(written[0]).load().left_out}
    assert told["/imu: header.frame_id"] == "string, always 'imu'"
    assert told["/joint states: header.frame_id"] == "string, always 'arm'"
    assert told["/mixed: label"] == "string, which varies: '', 'l', 'll', 'lll'"
    assert told["/joint states: name[1]"] == "string, always 'elbow'"
    assert told["/scan: ranges"] == "array of 5 to 7 elements"
    assert told["/text: data"].startswith("string, which varies")


def test_one_stream_reads_no_other(written):
    recording = data.open(written[0])
    check_stream(recording["/joint states"], written[1]["/joint states"])
    assert set(recording._loaded) == {"/joint states"}


def test_pieces_are_the_stream(written):
    recording = data.open(written[0])
    pieces = [piece for piece in recording.pieces() if piece.stream == "/imu"]
    assert recording._loaded == {}
    whole = recording["/imu"]
    np.testing.assert_array_equal(np.concatenate([p.values for p in pieces]), whole.values)
    np.testing.assert_array_equal(np.concatenate([p.clocks["log"] for p in pieces]),
                                  whole.log_times)  # fmt: skip
    assert pieces[0].names == whole.names


def test_several_passes_give_the_same(written):
    recording = data.open(written[0])
    passes = []
    for _ in range(2):
        pieces = list(recording.pieces())
        passes.append([
            np.concatenate([p.values for p in pieces if p.stream == name])
            for name in recording.names
        ])  # fmt: skip
        passes.append(recording.left_out)
    for a, b in zip(passes[0], passes[2]):
        np.testing.assert_array_equal(a, b)
    assert passes[1] == passes[3]


def test_big_endian(tmp_path):
    store = data_files.typestore()
    told = data_files.messages(store, 80)
    mcap = data_files.McapBytes()
    content, declared = b"", b""
    for topic, name, at, message in told:
        definition, _ = store.generate_msgdef(name, ros_version=2)
        number, records = mcap.declared(topic, name, definition)
        raw = store.serialize_cdr(message, name, little_endian=at % 2 == 0)  # one topic, both
        content += records + mcap.message(number, at, raw)
        declared += records
    mcap.chunk(content, list(mcap.channels.values()), "lz4")
    (tmp_path / "x.mcap").write_bytes(mcap.finished(declarations=declared))
    recording = data.open(tmp_path / "x.mcap")
    for name, stream in recording.streams.items():
        check_stream(stream, [(at, m) for topic, _, at, m in told if topic == name])


@pytest.mark.parametrize("chunked", [True, False])
@pytest.mark.parametrize("summary", [True, False])
def test_mcap_with_and_without_summary_and_chunks(tmp_path, summary, chunked):
    """Log times that go back in the file are sorted."""
    store = data_files.typestore()
    told = data_files.messages(store, 60)
    parts = [told[40:], told[:40]]
    mcap = data_files.McapBytes()
    declared = b""
    for part in parts:
        content = b""
        for topic, name, at, message in part:
            number, records = mcap.declared(
                topic, name, store.generate_msgdef(name, ros_version=2)[0]
            )
            content += records + mcap.message(number, at, store.serialize_cdr(message, name))
            declared += records
        if chunked:
            mcap.chunk(content, list(mcap.channels.values()), checksum=summary)
        else:
            mcap.data += content
    path = tmp_path / "no suffix"
    path.write_bytes(mcap.finished(summary, declared))
    recording = data.open(path)
    for name, stream in recording.streams.items():
        check_stream(stream, [(at, m) for topic, _, at, m in told if topic == name])


def test_integers_that_float64_does_not_hold_are_named(tmp_path):
    store = data_files.typestore()
    name = "test_msgs/msg/Mixed"
    told = [
        ("/m", name, 10**18 + i, data_files.make(store, name, ticks=2**53 + 2 * i + 1))
        for i in range(4)
    ]
    data_files.write_ros2(tmp_path / "bag", told, store)
    reasons = {e.place: e.reason for e in data.open(tmp_path / "bag").load().left_out}
    assert reasons["/m: ticks"] == "64-bit integers above 2**53 among floats: rounded to float64"


def test_topics_of_integers_stay_integers(tmp_path):
    store = data_files.typestore()
    told = [("/n", "std_msgs/msg/Int64", i + 1, data_files.make(
        store, "std_msgs/msg/Int64", data=2**62 + i)) for i in range(70)]  # fmt: skip
    data_files.write_ros2(tmp_path / "bag", told, store)
    stream = data.open(tmp_path / "bag")["/n"]
    assert stream.values.dtype == np.int64
    assert stream.values[:, 0].tolist() == [2**62 + i for i in range(70)]


def test_arrays_that_change_later(tmp_path):
    """The first messages decide; messages without their channels are reported."""
    store = data_files.typestore()
    name = "sensor_msgs/msg/JointState"
    mcap = data_files.McapBytes()
    number, records = mcap.declared("/j", name, store.generate_msgdef(name, ros_version=2)[0])
    for begin, end, width in ((0, 100, 3), (100, 150, 2)):
        content = records
        for at in range(begin, end):
            message = data_files.make(store, name, position=np.arange(float(width)))
            content += mcap.message(number, at, store.serialize_cdr(message, name))
        mcap.chunk(content, [number])
    (tmp_path / "x.mcap").write_bytes(mcap.finished(declarations=records))
    recording = data.open(tmp_path / "x.mcap")
    stream = recording["/j"]
    assert stream.names == ("position[0]", "position[1]", "position[2]") and len(stream) == 100
    reason = "they have no position[2], which the first messages have"
    assert any(e.place == "/j" and e.reason.endswith(reason) for e in recording.left_out)


def test_large_arrays_are_left_out(tmp_path):
    store = data_files.typestore()
    name = "sensor_msgs/msg/Image"
    told = [
        ("/camera", name, 10**9 + i, data_files.make(
            store, name, header=data_files.header(store, 10**9 + i), height=64, width=64,
            data=np.full(64 * 64 * 3, i, np.uint8)))
        for i in range(5)
    ]  # fmt: skip
    data_files.write_ros2(tmp_path / "bag", told, store)
    recording = data.open(tmp_path / "bag")
    stream = recording["/camera"]
    assert stream.names == ("height", "width", "is_bigendian", "step")
    assert stream.header_times.tolist() == [10**9 + i for i in range(5)]
    assert ("/camera: data", "array of 12,288 uint8") in [
        (e.place, e.reason) for e in recording.left_out
    ]


def test_split_bags_are_one(tmp_path):
    store = data_files.typestore()
    told = data_files.messages(store, 100)
    bag = tmp_path / "bag"
    data_files.write_ros2(bag, told[:90], store)
    data_files.write_ros2(tmp_path / "second", told[90:], store)
    (tmp_path / "second/second.mcap").rename(bag / "bag_10.mcap")
    (bag / "bag.mcap").rename(bag / "bag_9.mcap")
    (bag / "metadata.yaml").unlink()
    recording = data.open(bag)
    check_stream(recording["/imu"], [(at, m) for topic, _, at, m in told if topic == "/imu"])


def test_clocks(tmp_path):
    store = data_files.typestore()
    name = "geometry_msgs/msg/PoseStamped"

    def bag(folder, stamps):
        told = [
            ("/pose", name, 10**18 + i * 10**7, data_files.make(
                store, name, header=data_files.header(store, stamp)))
            for i, stamp in enumerate(stamps)
        ]  # fmt: skip
        return data.open(data_files.write_ros2(tmp_path / folder, told, store))

    good = [10**18 + i * 10**7 - 5_000_000 for i in range(20)]
    assert bag("good", good).clock() == "header"
    assert bag("zero", [0] * 20).clock() == "log"
    assert bag("back", good[::-1]).clock() == "log"
    assert bag("elsewhere", [stamp - 10**13 for stamp in good]).clock() == "log"


# ---- the real ones ------------------------------------------------------------------------------

REAL = [
    "ros1_robot_localization/test1.bag",
    "ros1_robot_localization/test2.bag",
    "ros2_db3_gps_nav/bag",
    "ros2_mcap_crazyflie_vicon/pitch0bag",
    "ros2_mcap_crazyflie_vicon/rollbag",
    "ros2_mcap_crazyflie_vicon/fly90bag",
    "ros2_mcap_crab_custom/adya_gait",
]
ACKERMANN = {
    "ackermann_msgs/msg/AckermannDriveStamped": (
        "std_msgs/Header header\nackermann_msgs/AckermannDrive drive\n" + "=" * 80 + "\n"
        "MSG: ackermann_msgs/AckermannDrive\nfloat32 steering_angle\n"
        "float32 steering_angle_velocity\nfloat32 speed\nfloat32 acceleration\nfloat32 jerk\n"
    )
}


@pytest.mark.parametrize("name", REAL)
def test_real_bags(recordings, name):
    from rosbags.highlevel import AnyReader
    from rosbags.typesys import Stores, get_typestore

    path = recordings / name
    if not path.exists():
        pytest.skip(f"no {path}")
    recording = data.open(path)
    told = {}
    with AnyReader([Path(path)], default_typestore=get_typestore(Stores.ROS2_HUMBLE)) as bag:
        for connection, at, raw in bag.messages():
            if connection.msgtype in bag.typestore.fielddefs:
                message = bag.deserialize(raw, connection.msgtype)
                told.setdefault(connection.topic, []).append((at, message))
    for topic, stream in recording.streams.items():
        own = told.pop(topic, [])
        assert len(stream) == len(own)
        few = np.linspace(0, len(own) - 1, min(len(own), 200)).astype(int)
        if len(own):
            check_stream(stream.select(few), [own[i] for i in few])
            assert stream.log_times.tolist() == [at for at, _ in own]
    assert set(told) <= {"/rosout", "/parameter_events"}  # omitted by default


def test_real_definitions_that_are_given(recordings):
    path = recordings / "ros2_db3_gps_nav/bag"
    if not path.exists():
        pytest.skip(f"no {path}")
    unknown = [e for e in data.open(path).left_out if e.place == "/vehicle_command_ackermann"]
    assert "1,034 messages of ackermann_msgs" in unknown[0].reason
    assert "definitions=" in unknown[0].reason
    stream = data.open(path, definitions=ACKERMANN)["/vehicle_command_ackermann"]
    assert len(stream) == 1034 and stream.names[2] == "drive.speed"
    assert np.isfinite(stream.values).all() and stream.values.dtype == np.float32


def test_a_log_of_sqlite_is_read_and_nothing_is_written_beside_it(tmp_path):
    """The recorder may have stopped or still be running."""
    store = data_files.typestore()
    bag = data_files.write_ros2_log(tmp_path / "bag", data_files.messages(store, 30), store, kept=7)
    before = {file.name: file.read_bytes() for file in bag.iterdir()}
    assert {name.partition(".db3")[2] for name in before if ".db3" in name} == {"", "-wal"}

    def rows():
        opened = data.open(bag)
        return sum(len(opened[name]) for name in opened.names)

    assert rows() == 7
    assert {file.name: file.read_bytes() for file in bag.iterdir()} == before
    (database,) = bag.glob("*.db3")
    with contextlib.closing(sqlite3.connect(database)) as recorder:
        recorder.execute("DELETE FROM messages WHERE id > 5")
        recorder.commit()
        with_index = sorted(file.name for file in bag.iterdir())
        assert f"{database.name}-shm" in with_index and rows() == 5
        recorder.execute("DELETE FROM messages WHERE id > 3")  # it can write, and is read again
        recorder.commit()
        assert rows() == 3
        assert sorted(file.name for file in bag.iterdir()) == with_index
