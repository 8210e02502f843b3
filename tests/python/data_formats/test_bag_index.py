"""Bags whose index or declarations contradict their data are refused, or read correctly."""

from __future__ import annotations

import struct

import numpy as np
import pytest

import data_files
import robocache as rbc

pytest.importorskip("rosbags")

data = rbc.data
POINT, POSE = "geometry_msgs/msg/Point", "geometry_msgs/msg/Pose"
EACH = 5  # messages per chunk


def point(x):
    return b"\0\1\0\0" + struct.pack("<3d", x, 0, 0)


class Made:
    """An MCAP file of some chunks with the values 0, 1, 2 and so on."""

    def __init__(self, chunks=4, declared_in_chunks=True):
        self.bytes = data_files.McapBytes()
        definition = "float64 x\nfloat64 y\nfloat64 z\n"
        self.number, self.declared = self.bytes.declared("/p", POINT, definition)
        for i in range(chunks):
            self.chunk(i, self.declared if declared_in_chunks else b"")

    def chunk(self, i, before=b""):
        messages = (
            self.bytes.message(self.number, EACH * i + k, point(EACH * i + k)) for k in range(EACH)
        )
        self.bytes.chunk(before + b"".join(messages), [self.number])

    def entry(self, which, **changed):
        """Return the summary's entry of a chunk, with some fields changed."""
        names = ("at", "length", "compression", "packed", "size", "ids", "time")
        entry_fields = {**dict(zip(names, self.bytes.chunks[which])), **changed}
        return tuple(entry_fields[name] for name in names)

    def write(self, folder, declared=None):
        path = folder / "x.mcap"
        bag = self.bytes.finished(declarations=self.declared if declared is None else declared)
        path.write_bytes(bag)
        return path


def refused_and_kept(path, match, values, topic="/p"):
    with pytest.raises(data.FormatError, match=match) as caught:
        data.open(path).load()
    assert caught.value.path == str(path)
    kept = data.open(path, damaged="keep").load()
    got = kept[topic].values[:, 0].tolist() if topic in kept else []
    assert got == list(values)
    assert any(match.replace("\\", "") in str(problem) for problem in kept.problems)
    return kept


ALL = range(4 * EACH)


def test_a_summary_that_lists_a_chunk_several_times(tmp_path):
    bag = Made()
    bag.bytes.chunks.append(bag.bytes.chunks[1])
    refused_and_kept(bag.write(tmp_path), "several times", ALL)


def test_a_summary_that_lists_a_chunk_that_overlaps_another(tmp_path):
    bag = Made()
    bag.bytes.chunks[1] = bag.entry(1, length=bag.bytes.chunks[1][1] + 20)
    refused_and_kept(bag.write(tmp_path), "that overlaps what is before it", ALL)


def test_a_summary_that_leads_into_a_chunk(tmp_path):
    """The content of a chunk contains a complete record of another chunk."""
    bag = Made(2)
    inner = Made(1, declared_in_chunks=False).bytes
    begin, length = inner.chunks[0][:2]
    hidden = inner.data[begin : begin + length]
    at = len(bag.bytes.data)
    bag.bytes.chunk(hidden, [bag.number])
    places = len(bag.bytes.data[at:]) - len(hidden)
    bag.bytes.chunks[2] = bag.entry(2, at=at + places, length=length)
    refused_and_kept(bag.write(tmp_path), "is truncated or damaged", range(2 * EACH))


def test_a_summary_that_leads_to_no_chunk(tmp_path):
    """There is another record of the size that the summary states."""
    bag = Made(3)
    at, length = bag.bytes.chunks[1][:2]
    content = bytearray(bag.bytes.data)
    content[at] = 0x80
    bag.bytes.data = bytes(content)
    left = [*range(EACH), *range(2 * EACH, 3 * EACH)]
    refused_and_kept(bag.write(tmp_path), "the summary lists a chunk here, but there is none", left)


def test_a_summary_that_lists_a_chunk_behind_the_data(tmp_path):
    bag = Made()
    bag.bytes.chunks[3] = bag.entry(3, length=1 << 40)
    refused_and_kept(bag.write(tmp_path), "that ends beyond the data", ALL)


@pytest.mark.parametrize("which", [0, 1, 3])
def test_a_summary_that_leaves_a_chunk_out(tmp_path, which):
    """Its counts of chunks and messages omit the chunk as well."""
    bag = Made()
    del bag.bytes.chunks[which]
    bag.bytes.counts[bag.number] -= EACH
    refused_and_kept(bag.write(tmp_path), "omits the chunk at byte", ALL)


def test_a_summary_that_counts_fewer_chunks(tmp_path):
    bag = Made()
    content = bag.write(tmp_path).read_bytes()
    entry_fields = struct.pack("<QHIIIIQQ", 4 * EACH, 1, 1, 0, 0, 4, 0, 0)
    assert entry_fields in content
    changed = struct.pack("<QHIIIIQQ", 4 * EACH, 1, 1, 0, 0, 3, 0, 0)
    (tmp_path / "x.mcap").write_bytes(content.replace(entry_fields, changed))
    refused_and_kept(tmp_path / "x.mcap", "lists 4 of the 3 chunks", ALL)


def test_a_chunk_that_the_message_indexes_hide(tmp_path):
    """The summary says that message indexes follow a chunk, but a second chunk does."""
    bag = Made(3)
    del bag.bytes.chunks[1]
    bag.bytes.counts[bag.number] -= EACH
    path = bag.write(tmp_path)
    at, length = bag.bytes.chunks[0][:2]
    between = bag.bytes.chunks[1][0] - at - length
    content = path.read_bytes()
    entry = struct.pack("<QQQQ", 0, 2**62, at, length) + struct.pack("<IHQQ", 10, 1, 0, 0)
    assert content.count(entry) == 1
    lying = entry[:-8] + struct.pack("<Q", between)
    path.write_bytes(content.replace(entry, lying))
    left = [*range(EACH), *range(2 * EACH, 3 * EACH)]
    refused_and_kept(path, "it is not followed by the message indexes", left)


def test_a_summary_whose_checksum_differs(tmp_path):
    bag = Made()
    content = bytearray(bag.write(tmp_path).read_bytes())
    struct.pack_into("<I", content, len(content) - 12, 12345)
    (tmp_path / "x.mcap").write_bytes(content)
    refused_and_kept(tmp_path / "x.mcap", "the checksum of the summary differs", ALL)


def test_a_footer_that_leads_into_the_data(tmp_path):
    bag = Made()
    content = bytearray(bag.write(tmp_path).read_bytes())
    struct.pack_into("<Q", content, len(content) - 28, bag.bytes.chunks[1][0])
    (tmp_path / "x.mcap").write_bytes(content)
    refused_and_kept(tmp_path / "x.mcap", "the data do not end before it", ALL)


def test_messages_between_chunks_are_read(tmp_path):
    """The format allows them, and the summary does not list them."""
    bag = Made(1)
    bag.bytes.data += bag.bytes.message(bag.number, EACH, point(EACH))
    bag.chunk(2)
    bag.bytes.data += bag.bytes.message(bag.number, 99, point(99))
    stream = data.open(bag.write(tmp_path))["/p"]
    assert stream.values[:, 0].tolist() == [*range(EACH + 1), *range(2 * EACH, 3 * EACH), 99]


# ---- declarations -------------------------------------------------------------------------------


def schema(number, name=POINT, definition="float64 x\nfloat64 y\nfloat64 z\n"):
    t = data_files.McapBytes.text
    content = struct.pack("<H", number) + t(name) + t("ros2msg") + t(definition)
    return data_files.McapBytes.record(3, content)


def channel(number, of, topic="/p", encoding="cdr"):
    t = data_files.McapBytes.text
    content = struct.pack("<HH", number, of) + t(topic) + t(encoding) + t(b"")
    return data_files.McapBytes.record(4, content)


CONFLICTS = {
    "topic": (channel(1, 1, "/q"), "channel 1 is declared as '/p' and as '/q'"),
    "encoding": (channel(1, 1, encoding="ros1"), "is declared with two schemas or encodings"),
    "schema of a channel": (
        schema(2, POSE) + channel(1, 2),
        "is declared with two schemas or encodings",
    ),
    "schema": (schema(1, POSE), "schema 1 is declared as"),
    "definition": (schema(1, definition="float32 x\n"), "is declared with two definitions"),
}


@pytest.mark.parametrize("summary", [True, False])
@pytest.mark.parametrize("what", CONFLICTS)
def test_a_number_that_is_declared_in_two_ways(tmp_path, what, summary):
    """Its messages are not read, because either declaration may apply to them."""
    again, match = CONFLICTS[what]
    bag = Made(1)
    bag.chunk(1, again)
    path = bag.write(tmp_path)
    if not summary:
        path.write_bytes(bag.bytes.finished(summary=False))
    refused_and_kept(path, match, range(EACH) if summary else ())


def test_declarations_that_are_repeated(tmp_path):
    """Merged files may repeat a schema under another number."""
    bag = Made(1)
    bag.chunk(1, schema(9) + channel(1, 9) + bag.declared)
    assert data.open(bag.write(tmp_path))["/p"].values[:, 0].tolist() == list(range(2 * EACH))


def test_one_topic_of_two_definitions(tmp_path):
    """Two writers of a topic use one type with two definitions: each applies to its messages."""
    bag = Made(1)
    other = schema(2, definition="float32 x\nfloat64 y\n") + channel(2, 2)
    comment = schema(3, definition="# The place.\nfloat64 x\nfloat64 y # m\nfloat64 z\n")
    declared = bag.declared + other + comment + channel(3, 3)
    second = b"\0\1\0\0" + struct.pack("<fxxxxd", 0.5, 7)
    bag.bytes.chunk(
        declared + bag.bytes.message(2, 50, second) + bag.bytes.message(3, 60, point(60)),
        [2, 3],
    )
    recording = data.open(bag.write(tmp_path, declared)).load()
    assert recording.names == ("/p", "/p #2")
    assert recording["/p"].values[:, 0].tolist() == [*range(EACH), 60]
    assert recording["/p #2"].values.tolist() == [[0.5, 7]]


def test_one_topic_of_two_encodings(tmp_path):
    bag = Made(1)
    declared = bag.declared + channel(2, 1, encoding="ros1")
    bag.bytes.chunk(declared + bag.bytes.message(2, 50, point(3)[4:]), [2])
    recording = data.open(bag.write(tmp_path, declared)).load()
    assert [len(recording[name]) for name in recording.names] == [EACH, 1]


def test_a_topic_named_as_another_is_shown(tmp_path):
    bag = Made(1)
    declared = bag.declared + schema(2, POSE) + channel(2, 2) + channel(3, 1, f"/p ({POINT})")
    bag.bytes.chunk(declared + bag.bytes.message(3, 50, point(50)), [3])
    recording = data.open(bag.write(tmp_path, declared)).load()
    assert len(recording.names) == 3
    assert sorted(len(stream) for stream in recording.streams.values()) == [0, 1, EACH]


def test_a_channel_that_nothing_declares(tmp_path):
    bag = Made(2)
    lost = b"".join(bag.bytes.message(7, k, point(k)) for k in range(3))
    bag.bytes.chunk(lost, [7])
    refused_and_kept(
        bag.write(tmp_path), "channel 7: has 3 messages, but its declaration is missing", range(10)
    )
    path = tmp_path / "x.mcap"
    path.write_bytes(bag.bytes.finished(summary=False))
    refused_and_kept(path, "channel 7: has 3 messages, but its declaration is missing", range(10))


def test_a_summary_without_some_channels(tmp_path):
    """The summary need not repeat channels that the data declare."""
    bag = Made(2)
    stream = data.open(bag.write(tmp_path, declared=b""))["/p"]
    assert stream.values[:, 0].tolist() == list(range(2 * EACH))
    bag.bytes.chunk(schema(3) + channel(3, 3, "/r") + bag.bytes.message(3, 1, point(5)), [3])
    recording = data.open(bag.write(tmp_path)).load()  # the summary has only /p
    assert recording["/r"].values[0, 0] == 5 and recording.problems == ()


def test_a_channel_without_a_schema(tmp_path):
    bag = Made(1)
    without = channel(2, 0, "/none")
    bag.bytes.chunk(without + bag.bytes.message(2, 0, point(1)), [2])
    recording = data.open(bag.write(tmp_path, declared=bag.declared + without)).load()
    assert recording.names == ("/p",)
    (left_out,) = [each for each in recording.left_out if each.place == "/none"]
    assert left_out.reason.startswith("1 messages")
    assert "does not state the type" in left_out.reason


def test_a_schema_of_number_0(tmp_path):
    bag = Made(1)
    path = bag.write(tmp_path, declared=schema(0) + bag.declared)
    refused_and_kept(path, "a schema has the number 0", range(EACH))


def test_a_name_of_megabytes(tmp_path):
    bag = Made(1)
    path = bag.write(tmp_path, declared=bag.declared + channel(2, 1, "/" + "n" * (1 << 21)))
    refused_and_kept(path, "has a name of 2,097,153 bytes", range(EACH))


def test_records_too_short_for_messages(tmp_path):
    bag = Made(1)
    bag.bytes.chunk(data_files.McapBytes.record(5, bytes(21)), [bag.number])
    path = bag.write(tmp_path)
    refused_and_kept(path, "1 are shorter than the header of a message", range(EACH))


# ---- times --------------------------------------------------------------------------------------


@pytest.mark.parametrize("late", [1 << 63, (1 << 64) - 1])
def test_log_times_beyond_int64(tmp_path, late):
    bag = Made(1)
    wrong = b"".join(bag.bytes.message(bag.number, late, point(k)) for k in range(3))
    bag.bytes.chunk(wrong + bag.bytes.message(bag.number, (1 << 63) - 1, point(9)), [1])
    match = r"topic /p: 3 messages have log times of 2\*\*63 ns or more"
    kept = refused_and_kept(bag.write(tmp_path), match, [*range(EACH), 9])
    assert kept["/p"].log_times[-1] == (1 << 63) - 1


def stamped(sec, nanosec, ros1):
    own = struct.pack("<II" if ros1 or sec >= 0 else "<iI", sec, nanosec)
    return (b"" if ros1 else b"\0\1\0\0") + own + struct.pack("<d", 1.5)


@pytest.mark.parametrize(
    ("sec", "nanosec", "time"),
    [
        ((1 << 31) - 1, 10**9 - 1, ((1 << 31) - 1) * 10**9 + 10**9 - 1),
        (-5, 7, -5 * 10**9 + 7),
        (3, 10**9, None),
        (3, (1 << 32) - 1, None),
    ],
)
def test_header_stamps(tmp_path, sec, nanosec, time):
    """Seconds in ROS 2 are signed; 10**9 nanoseconds or more are invalid."""
    bag = data_files.McapBytes()
    text = "builtin_interfaces/Time stamp\nfloat64 x\n"
    number, declared = bag.declared("/s", "test_msgs/msg/S", text)
    good = bag.message(number, 1, stamped(2, 3, False))
    bag.chunk(declared + good + bag.message(number, 2, stamped(sec, nanosec, False)), [number])
    path = tmp_path / "x.mcap"
    path.write_bytes(bag.finished(declarations=declared))
    recording = data.open(path).load()
    if time is not None:
        assert recording["/s"].header_times.tolist() == [2_000_000_003, time]
        return
    assert recording["/s"].header_times.tolist() == [2_000_000_003]
    (left_out,) = recording.left_out
    assert str(left_out).startswith(
        "/s: 1 message could not be read: their header stamps have 10**9 nanoseconds"
    )


# ---- ROS 1 --------------------------------------------------------------------------------------


def record(fields, content):
    head = b"".join(
        struct.pack("<I", len(name) + 1 + len(value)) + name + b"=" + value
        for name, value in fields.items()
    )
    return struct.pack("<I", len(head)) + head + struct.pack("<I", len(content)) + content


def u32(number):
    return struct.pack("<I", number)


class Ros1Made:
    """A ROS 1 bag of some chunks with the values 0, 1, 2 and so on."""

    def __init__(self, chunks=4):
        self.body = b""
        self.infos = []  # place of a chunk, messages by connection
        self.connections = [self.connection(0)]
        for i in range(chunks):
            self.chunk([self.message(EACH * i + k) for k in range(EACH)])

    def connection(self, number, topic=b"/p", name=b"geometry_msgs/Point"):
        entry_fields = {b"topic": topic, b"type": name, b"md5sum": b"*",
                b"message_definition": b"float64 x\nfloat64 y\nfloat64 z\n"}  # fmt: skip
        content = b"".join(
            struct.pack("<I", len(k) + 1 + len(v)) + k + b"=" + v for k, v in entry_fields.items()
        )
        return record({b"op": b"\7", b"conn": u32(number), b"topic": topic}, content)

    def message(self, x, number=0, time=None):
        time = struct.pack("<II", 1, x) if time is None else struct.pack("<II", *time)
        fields = {b"op": b"\2", b"conn": u32(number), b"time": time}
        return record(fields, struct.pack("<3d", x, 0, 0))

    def chunk(self, messages, before=b"", number=0, info=True):
        at = self.start + len(self.body)
        content = before + b"".join(messages)
        fields = {b"op": b"\5", b"compression": b"none", b"size": u32(len(content))}
        self.body += record(fields, content)
        fields = {b"op": b"\4", b"ver": u32(1), b"conn": u32(number), b"count": u32(len(messages))}
        index, offset = b"", len(before)
        for message in messages:
            begin = message.index(b"time=") + 5
            index += message[begin : begin + 8] + u32(offset)
            offset += len(message)
        self.body += record(fields, index)
        if info:
            self.infos.append((at, {number: len(messages)}))
        return at

    def header(self, index, chunks):
        connections = u32(len(self.connections))
        fields = {b"op": b"\3", b"index_pos": struct.pack("<Q", index)}
        fields |= {b"conn_count": connections, b"chunk_count": u32(chunks)}
        return b"#ROSBAG V2.0\n" + record(fields, b" " * 100)

    @property
    def start(self):
        return len(self.header(0, 0)) if hasattr(self, "connections") else 0

    def write(self, folder, chunks=None):
        index = self.start + len(self.body)
        bag = self.header(index, len(self.infos) if chunks is None else chunks) + self.body
        bag += b"".join(self.connections)
        for at, counts in self.infos:
            fields = {b"op": b"\6", b"ver": u32(1), b"chunk_pos": struct.pack("<Q", at),
                      b"start_time": bytes(8), b"end_time": bytes(8),
                      b"count": u32(len(counts))}  # fmt: skip
            bag += record(fields, b"".join(u32(n) + u32(c) for n, c in counts.items()))
        path = folder / "x.bag"
        path.write_bytes(bag)
        return path


def test_ros1_as_it_should_be(tmp_path):
    """The same bag is also read by rosbags."""
    from rosbags.rosbag1 import Reader

    path = Ros1Made().write(tmp_path)
    assert data.open(path)["/p"].values[:, 0].tolist() == list(ALL)
    with Reader(path) as bag:
        times = [at for _, at, _ in bag.messages()]
    assert data.open(path)["/p"].log_times.tolist() == times


def lists_again(bag):
    bag.infos.append(bag.infos[1])


def lists_no_chunk(bag):
    bag.infos[1] = (bag.infos[1][0] + 4, bag.infos[1][1])


def leaves_one_out(bag):
    del bag.infos[2]


def leads_to_a_message_index(bag):
    bag.infos[1] = (bag.infos[2][0] - 8 - 12 * EACH - 40, bag.infos[1][1])


def counts_others(bag):
    bag.infos[1] = (bag.infos[1][0], {})


ROS1 = {
    lists_again: "lists the chunk at byte",
    lists_no_chunk: "but there is none",
    leaves_one_out: "omits the chunk at byte",
    leads_to_a_message_index: "but there is none",
    counts_others: "state different numbers of messages",
}


@pytest.mark.parametrize("change", ROS1)
def test_ros1_index_that_disagrees(tmp_path, change):
    bag = Ros1Made()
    change(bag)
    refused_and_kept(bag.write(tmp_path), ROS1[change], ALL)


@pytest.mark.parametrize("chunks", [3, 5])
def test_ros1_count_of_chunks(tmp_path, chunks):
    match = "omits the chunk" if chunks == 3 else "the record of its index at byte"
    refused_and_kept(Ros1Made().write(tmp_path, chunks), match, ALL)


def test_ros1_connection_that_is_declared_in_two_ways(tmp_path):
    bag = Ros1Made()
    bag.connections.append(bag.connection(0, b"/q"))
    refused_and_kept(bag.write(tmp_path), "connection 0: is declared as '/p' and as '/q'", ())


def test_ros1_connection_that_is_repeated(tmp_path):
    bag = Ros1Made()
    bag.connections.append(bag.connections[0])
    assert data.open(bag.write(tmp_path))["/p"].values[:, 0].tolist() == list(ALL)


def test_ros1_connection_that_nothing_declares(tmp_path):
    bag = Ros1Made()
    bag.chunk([bag.message(k, 9) for k in range(3)], number=9)
    match = "connection 9: has 3 messages, but its declaration is missing"
    refused_and_kept(bag.write(tmp_path), match, ALL)


@pytest.mark.parametrize("nanoseconds", [10**9, (1 << 32) - 1])
def test_ros1_times(tmp_path, nanoseconds):
    bag = Ros1Made(1)
    last = (1 << 32) - 1
    messages = [
        bag.message(7, time=(5, nanoseconds)),
        bag.message(8, time=(last, 10**9 - 1)),
    ]
    bag.chunk(messages)
    match = r"topic /p: 1 messages have log times of 10\*\*9 nanoseconds or more"
    kept = refused_and_kept(bag.write(tmp_path), match, [*range(EACH), 8])
    assert kept["/p"].log_times[-1] == last * 10**9 + 10**9 - 1


def test_heads_of_many_kinds_are_all_read(tmp_path):
    """Heads with fields in any order, and with fields that no writer uses."""
    bag = Ros1Made(0)
    messages = []
    for x in range(40):
        fields = {b"op": b"\2", b"conn": u32(0), b"time": struct.pack("<II", 1, x)}
        if x % 2:
            fields = dict(reversed(fields.items()))
        fields[b"z%02d" % (x // 2)] = b"."
        messages.append(record(fields, struct.pack("<3d", x, 0, 0)))
    bag.chunk(messages)
    np.testing.assert_array_equal(data.open(bag.write(tmp_path))["/p"].values[:, 0], np.arange(40))
