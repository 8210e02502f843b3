"""Bags that need much memory are bounded by their size; shortages raise their own errors."""

from __future__ import annotations

import bz2
import os
import struct
import subprocess
import sys
import threading
import tracemalloc

import numpy as np
import pytest

import data_files
import robocache as rbc
from robocache.data._file_access import Limit
from robocache.data._formats import decompress
from robocache.data._formats.messages import layouts as message_layouts
from robocache.data._formats.messages import ros_types
from robocache.data._formats.messages.fixed_layouts import MOST_ELEMENTS
from robocache.data._formats.messages.layouts import Layouts
from robocache.data._formats.messages.pieces import Rows
from robocache.data._formats.messages.ros_types import Types

pytest.importorskip("rosbags")

data = rbc.data
SEPARATOR = "=" * 80 + "\n"


@pytest.fixture(autouse=True)
def _small_limit(monkeypatch):
    """Lower the limit to a megabyte, so that small tests reach it."""
    monkeypatch.setattr(Limit, "LEAST", 1 << 20)


def zstd(content):
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return __import__(name, fromlist=["compress"]).compress(content)
        except ModuleNotFoundError:
            continue
    return pytest.importorskip("zstandard").ZstdCompressor().compress(content)


def mcap(folder, definition, bodies, summary=True, chunks=1, before=b"", step=1):
    """Write several chunks of one topic, packed with zstd."""
    bag = data_files.McapBytes()
    number, declared = bag.declared("/p", "test_msgs/msg/T", definition)
    content = before + b"".join(
        bag.message(number, i * step, body) for i, body in enumerate(bodies)
    )
    for _ in range(chunks):
        begin = len(bag.data)
        whole = content if summary else declared + content
        packed = zstd(whole)
        size = len(whole)
        start = struct.pack("<QQQI", 0, 2**62, size, 0) + bag.text("zstd")
        bag.data += bag.record(6, start + struct.pack("<Q", len(packed)) + packed)
        bag.chunks.append((begin, len(bag.data) - begin, "zstd", len(packed), size, [number]))
    bag.counts[number] = len(bodies) * chunks
    path = folder / "x.mcap"
    path.write_bytes(bag.finished(summary, declared))
    return path


CDR = b"\0\1\0\0"
NUMBER = CDR + bytes(8)
PADDING = data_files.McapBytes.record(0x80, bytes(600 << 10))  # a record of a private kind


@pytest.mark.parametrize("summary", [True, False])
def test_chunks_that_unpack_to_more_than_a_file_may(tmp_path, summary):
    """The sum of all chunks counts; the declared sizes suffice to refuse the file."""
    path = mcap(tmp_path, "float64 x\n", [NUMBER], summary, chunks=2, before=PADDING)
    for damaged in ("refuse", "keep"):
        with pytest.raises(data.FormatError, match=r"open it with max_unpacked=\d+") as caught:
            data.open(path, damaged=damaged).load()
        assert caught.value.path == str(path) and "chunk at byte" in caught.value.place
    recording = data.open(path, max_unpacked=2 << 20).load()
    assert len(recording["/p"]) == 2 and recording.problems == ()


def test_a_file_may_be_read_many_times(tmp_path):
    path = mcap(tmp_path, "float64 x\n", [NUMBER], before=PADDING)
    recording = data.open(path)
    for _ in range(4):
        assert sum(len(piece) for piece in recording.pieces()) == 1


def test_a_size_that_is_damaged_is_no_matter_of_the_limit(tmp_path):
    """Only the chunk that declares too much is lost, not the file."""
    path = mcap(tmp_path, "float64 x\n", [NUMBER], chunks=2)
    content = path.read_bytes()
    first = content.index(b"zstd") - 4 - 12
    changed = content[:first] + struct.pack("<Q", 1 << 30) + content[first + 8 :]
    path.write_bytes(changed)
    with pytest.raises(data.FormatError, match="declares 1073741824 bytes, but unpacks to another"):
        data.open(path).load()
    kept = data.open(path, damaged="keep").load()
    assert len(kept["/p"]) == 1
    assert "max_unpacked" not in "".join(map(str, kept.problems))


def test_a_declared_size_takes_no_memory(tmp_path):
    """A chunk beyond the limit is refused before it is unpacked into memory."""
    path = mcap(tmp_path, "float64 x\n", [NUMBER], before=bytes(0))
    big = mcap(tmp_path, "float64 x\n", [NUMBER],
               before=data_files.McapBytes.record(0x80, bytes(64 << 20)))  # fmt: skip
    recording = data.open(path)
    tracemalloc.start()
    with pytest.raises(data.FormatError, match="max_unpacked"):
        data.open(big).load()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 24 << 20 and recording.names == ("/p",)


def test_messages_without_content(tmp_path):
    """Each counts as 64 bytes, because even an empty message needs memory."""
    path = mcap(tmp_path, "float64 x\n", [b""] * 20_000, step=0)
    assert path.stat().st_size < 5000
    with pytest.raises(data.FormatError, match="max_unpacked"):
        data.open(path).load()
    recording = data.open(path, max_unpacked=2 << 20).load()
    assert [str(each) for each in recording.left_out] == [
        "/p: 20,000 messages could not be read: they begin with nothing, which is not a CDR header"
    ]
    path = mcap(tmp_path, "float64 x\n", [NUMBER] * 15_000)
    assert len(data.open(path)["/p"]) == 15_000


def test_records_that_are_no_messages(tmp_path):
    none = data_files.McapBytes.record(0x80, b"") * 100_000
    for summary in (True, False):
        path = mcap(tmp_path, "float64 x\n", [NUMBER], summary, before=none)
        with pytest.raises(data.FormatError, match="max_unpacked"):
            data.open(path).load()


def test_values_that_are_wider_than_the_messages(tmp_path):
    """One float64 among bytes makes all of them float64."""
    body = CDR + bytes(8 + 2000)
    path = mcap(tmp_path, "float64 x\nuint8[2000] a\n", [body] * 200)
    with pytest.raises(data.FormatError, match=r"its values: unpacks to .*max_unpacked"):
        data.open(path).load()
    assert data.open(path, max_unpacked=4 << 20)["/p"].values.shape == (200, 2001)


def test_strings_by_the_million(tmp_path):
    """Each takes time, even if it has few bytes."""
    count = 20_000
    bodies = [CDR + struct.pack("<I", count + i) + bytes(4 * (count + i)) for i in range(10)]
    path = mcap(tmp_path, "string[] a\n", bodies)
    with pytest.raises(data.FormatError, match="its strings and arrays: unpacks to"):
        data.open(path).load()
    assert len(data.open(path, max_unpacked=1 << 24)["/p"]) == 10


def ros1_connections(folder, count, step=1):
    def record(fields, content):
        head = b"".join(struct.pack("<I", len(k) + 1 + len(v)) + k + b"=" + v
                        for k, v in fields.items())  # fmt: skip
        return struct.pack("<I", len(head)) + head + struct.pack("<I", len(content)) + content

    declared = b"".join(struct.pack("<I", len(text)) + text for text in (b"type=a/B", b"topic=/a"))
    content = b"".join(
        record({b"op": b"\7", b"conn": struct.pack("<I", i * step), b"topic": b"/a"}, declared)
        for i in range(count)
    )
    none = bytes(4)
    head = record({b"op": b"\3", b"index_pos": bytes(8), b"conn_count": none,
                   b"chunk_count": none}, b"")  # fmt: skip
    fields = {b"op": b"\5", b"compression": b"bz2", b"size": struct.pack("<I", len(content))}
    path = folder / "x.bag"
    path.write_bytes(b"#ROSBAG V2.0\n" + head + record(fields, bz2.compress(content)))
    return path


def test_connections_without_number(tmp_path, monkeypatch):
    from robocache.data._formats.bags import rosbag1

    monkeypatch.setattr(rosbag1, "_MOST_CONNECTIONS", 100)
    assert data.open(ros1_connections(tmp_path, 100), damaged="keep").names == ()
    with pytest.raises(data.FormatError, match="declares more than 100 connections"):
        data.open(ros1_connections(tmp_path, 101), damaged="keep")
    monkeypatch.setattr(rosbag1, "AT_ONCE", 1000)
    path = ros1_connections(tmp_path, 20_000, step=0)
    with pytest.raises(data.FormatError, match="max_unpacked"):
        data.open(path, damaged="keep")


# ---- definitions --------------------------------------------------------------------------------


def nested(levels, field="{} a{}", leaf="uint8 x\nfloat64 y"):
    """A has ten fields of B, which has ten of C, and so on."""
    names = [f"p/L{i}" for i in range(levels + 1)]
    texts = ["\n".join(field.format(names[i + 1], k) for k in range(10)) for i in range(levels)] + [
        leaf
    ]
    return SEPARATOR.join(
        (f"MSG: {name}\n" if i else "") + text + "\n"
        for i, (name, text) in enumerate(zip(names, texts))
    )


def layouts(text):
    return Layouts("p/msg/L0", Types().lookup("p/msg/L0", "ros1msg", text, None), ros1=True)


@pytest.mark.parametrize("levels", [6, 20, 31, 60])
@pytest.mark.parametrize("leaf", ["uint8 x\nfloat64 y", "string s", "uint8[4000] x", "p/Gone g"])
def test_definitions_that_grow_exponentially(monkeypatch, levels, leaf):
    """A text of a few hundred lines defines more than a million fields."""
    if levels != 20:
        monkeypatch.setattr(message_layouts, "_MOST_FIELDS", 1 << 14)
    bag = layouts(nested(levels, leaf=leaf))
    for size in (0, 1000, 1 << 20):
        assert bag.layout_of(bytes(size)).failure is not None


def test_nested_definitions_of_few_numbers():
    bag = layouts(nested(3))
    message = bytes(9000)
    assert bag.layout_of(message).failure is None
    assert len(bag.names(message, ())[0]) == 2000


@pytest.mark.parametrize("inner", ["uint8", "float64", "p/B", "string"])
def test_arrays_of_a_length_beyond_any_message(inner):
    text = f"{inner}[2147483647] a\n{SEPARATOR}MSG: p/B\nfloat64 x\nuint8 y\n"
    assert layouts(text).layout_of(bytes(1000)).failure is not None


def test_types_that_contain_themselves():
    for array in ("", "[2]", "[]"):
        text = f"p/B{array} b\n{SEPARATOR}MSG: p/B\nuint8 x\np/B{array} b\n"
        layout = layouts(text).layout_of(b"\1\0\0\0" * 200)
        assert layout.failure is not None


@pytest.mark.parametrize("comments", [False, True])
def test_definitions_of_megabytes(tmp_path, comments):
    """Only fields count towards the limit; comments and empty lines do not."""
    more = "# nothing\n\n" * 100_000 if comments else "float64 x\n" * 30_000
    path = mcap(tmp_path, f"float64 a\n{more}", [NUMBER])
    recording = data.open(path)
    if comments:
        assert len(recording["/p"]) == 1
    else:
        (left_out,) = recording.left_out
        assert "its definition has 300,010 characters, expected at most 262,144" in left_out.reason


# ---- growth -------------------------------------------------------------------------------------


def of_topics(folder, topics, chunks=3):
    bag = data_files.McapBytes()
    declared = [bag.declared(f"/t{i}", f"test_msgs/msg/T{i}", "float64 x\n")
                for i in range(topics)]  # fmt: skip
    for k in range(chunks):
        messages = (bag.message(number, k, NUMBER) for number, _ in declared)
        bag.chunk(b"".join(messages), [number for number, _ in declared])
    path = folder / f"{topics}.mcap"
    path.write_bytes(bag.finished(declarations=b"".join(records for _, records in declared)))
    return path


def calls_of(function):
    """Return the number of calls of Python functions."""
    counted = 0

    def count(frame, event, argument):
        nonlocal counted
        counted += event == "call"

    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return counted


def everything(path):
    recording = data.open(path)
    repr(recording), recording.load(), repr(recording)


def test_topics_take_time_in_proportion(tmp_path):
    few, many = (of_topics(tmp_path, topics) for topics in (20, 200))
    everything(few)  # run once for imports and caches
    assert calls_of(lambda: everything(many)) < 11 * calls_of(lambda: everything(few))


def test_all_topics_are_looked_at_in_one_pass(tmp_path, monkeypatch):
    unpacked = []
    original = decompress.Budget.spend
    monkeypatch.setattr(decompress.Budget, "spend",
                        lambda self, *a: unpacked.append(a) or original(self, *a))  # fmt: skip
    recording = data.open(of_topics(tmp_path, 50))
    assert len(recording.left_out) == 0 and len(unpacked) == 3
    assert all(recording.info(name).names == ("x",) for name in recording.names)


def test_a_definition_is_parsed_once(tmp_path, monkeypatch):
    parsed = []
    original = ros_types.Types._parse
    monkeypatch.setattr(ros_types.Types, "_parse",
                        lambda self, *a: parsed.append(a) or original(self, *a))  # fmt: skip
    bag = data_files.McapBytes()
    records = b"".join(bag.declared(f"/t{i}", "test_msgs/msg/T", "float64 x\n")[1]
                       for i in range(30))  # fmt: skip
    bag.chunk(bag.message(1, 0, NUMBER), [1])
    (tmp_path / "x.mcap").write_bytes(bag.finished(declarations=records))
    assert len(data.open(tmp_path / "x.mcap").names) == 30 and len(parsed) == 1


POSES = f"p/P[] a\nint32 last\n{SEPARATOR}MSG: p/P\nfloat64 x\nfloat64 y\nuint8 z\n"  # an odd size


def poses(count, last):
    body = b"".join(
        struct.pack("<dd", i, 2 * i) + bytes([i % 256]) + (bytes(7) if i < count - 1 else b"")
        for i in range(count)
    )
    body = struct.pack("<I", count) + (bytes(4) if count else b"") + body
    return CDR + body + bytes(-len(body) % 4) + struct.pack("<i", last)


def test_arrays_of_messages_are_not_followed_one_by_one():
    bag = Layouts("p/msg/L0", Types().lookup("p/msg/L0", "ros2msg", POSES, None), ros1=False)
    counts = {}
    for count in (20, 2000):
        message = poses(count, 7)
        assert bag.layout_of(message, {"a": 0}).failure is None
        counts[count] = calls_of(lambda message=message: bag.layout_of(message, {"a": 0}))
    assert counts[2000] <= counts[20]


@pytest.mark.parametrize("first", [0, 1, 3])
def test_arrays_of_varying_length(tmp_path, first):
    """Fields after them are read; the arrays are reported with their lengths."""
    path = mcap(tmp_path, POSES, [poses(first + i, 1000 + i) for i in range(200)])
    recording = data.open(path).load()
    stream = recording["/p"]
    assert stream.names == ("last",)
    assert stream.values[:, 0].tolist() == list(range(1000, 1200))
    assert [str(each) for each in recording.left_out] == [
        f"/p: a: array of {first} to {first + 199} elements"
    ]


def test_arrays_that_grow_later(tmp_path):
    """The first messages decide; later elements are reported."""
    path = mcap(tmp_path, POSES, [poses(2, i) for i in range(70)] + [poses(4, 70), poses(1, 71)])
    recording = data.open(path).load()
    stream = recording["/p"]
    assert stream.names == ("a[0].x", "a[0].y", "a[0].z", "a[1].x", "a[1].y", "a[1].z", "last")
    assert stream.values[70].tolist() == [0, 0, 0, 1, 2, 1, 70] and len(stream) == 71
    assert {str(each) for each in recording.left_out} == {
        "/p: a: array of 2 to 4 elements; the first 2 are channels",
        "/p: 1 message could not be read: they have no a[1], which the first messages have",
    }


def test_arrays_of_messages_that_are_too_long(tmp_path):
    count = MOST_ELEMENTS + 1
    path = mcap(tmp_path, POSES, [poses(count, 5)] * 3)
    recording = data.open(path).load()
    assert recording["/p"].names == ("last",)
    assert str(recording.left_out[0]) == f"/p: a: array of {count:,} p/msg/P"


def test_layouts_are_found_without_comparing_each_with_each():
    """Messages of one size but different lengths need one pass each and few other steps."""
    text = "string a\nstring b\nstring c\n"
    types = Types().lookup("p/msg/L0", "ros1msg", text, None)

    def messages(count):
        for i in range(count):
            a, b = i % 40, i // 40 % 40
            parts = (a, b, 100 - a - b)
            yield b"".join(struct.pack("<I", size) + b"x" * size for size in parts)

    def sort(count):
        from robocache.data._formats.messages.layouts import LayoutTree

        all_of = list(messages(count))
        sizes = np.array([len(message) for message in all_of])
        content = np.frombuffer(b"".join(all_of), np.uint8)
        rows = Rows(content, np.cumsum(sizes) - sizes, sizes, sizes)
        found = list(LayoutTree().sorted(rows, Layouts("p/msg/L0", types, True).layout_of))
        assert len(found) == count
        assert sorted(int(i) for _, chosen in found for i in chosen) == list(range(count))

    sort(2)
    assert calls_of(lambda: sort(1600)) < 11 * calls_of(lambda: sort(160))


def test_many_problems_take_time_in_proportion():
    from robocache.data._errors import Damage, Problem

    compared = []

    class Counted(Problem):
        def __eq__(self, other):
            compared.append(other)
            return super().__eq__(other)

        __hash__ = Problem.__hash__

    import robocache.data._errors as errors

    damage = Damage("keep")
    original, errors.Problem = errors.Problem, Counted
    try:
        for i in range(300):
            damage.note("x", f"byte {i}", "is lost")
            damage.note("x", f"byte {i}", "is lost")
    finally:
        errors.Problem = original
    assert len(damage.problems) == 300 and len(compared) < 1000


# ---- what is short ------------------------------------------------------------------------------


def short_of(error):
    class Short:
        eof, needs_input, unused_data = False, False, b""

        def decompress(self, data, max_length):
            raise error

    return lambda kind: Short


SHORT = [
    MemoryError(),
    RuntimeError("LZ4F_decompress failed with code: ERROR_allocation_failed"),
    ValueError("Allocation error : not enough memory"),
    ValueError("Unable to create ZSTD_DCtx instance."),
]


@pytest.mark.parametrize("error", SHORT, ids=["memory", "lz4", "zstd", "zstd's context"])
@pytest.mark.parametrize("kind", ["mcap", "ros1"])
@pytest.mark.parametrize("damaged", ["keep", "refuse"])
def test_too_little_memory_is_no_damage(tmp_path, monkeypatch, kind, error, damaged):
    store = data_files.typestore(kind == "ros1")
    messages = data_files.messages(store, 20)
    if kind == "ros1":
        path = data_files.write_ros1(tmp_path / "x.bag", messages, store, compression="BZ2")
    else:
        path = mcap(tmp_path, "float64 x\n", [NUMBER])
    recording = data.open(path, damaged=damaged)
    monkeypatch.setattr(decompress, "_decompressor", short_of(error))
    with pytest.raises(MemoryError, match=str(path)):
        recording.load()
    assert recording.problems == ()


THREADS = """
import resource, sys
from robocache import data
recording = data.open(sys.argv[1], damaged=sys.argv[2])
recording.load(["/text"])
limit = int(sys.argv[3])
base = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (base + limit, base + limit))
try:
    print(len(recording.load()["/big"]), len(recording.problems))
except MemoryError as error:
    print("MemoryError", sys.argv[1] in str(error), len(recording.problems))
"""


@pytest.mark.parametrize("damaged", ["keep", "refuse"])
def test_a_limit_of_memory(tmp_path, damaged):
    """A chunk that does not fit into memory is not damaged: it raises, and is not dropped."""
    bag = data_files.McapBytes()
    records = [bag.declared(topic, "test_msgs/msg/T", "float64 x\n") for topic in ("/text", "/big")]
    bag.chunk(bag.message(1, 0, NUMBER), [1])
    content = bag.message(2, 1, NUMBER) + bag.record(0x80, bytes(100 << 20))
    packed = zstd(content)
    begin = len(bag.data)
    start = struct.pack("<QQQI", 0, 2**62, len(content), 0) + bag.text("zstd")
    bag.data += bag.record(6, start + struct.pack("<Q", len(packed)) + packed)
    entry = (begin, len(bag.data) - begin, "zstd", len(packed), len(content), [2])
    bag.chunks.append(entry)
    path = tmp_path / "x.mcap"
    path.write_bytes(bag.finished(declarations=b"".join(each for _, each in records)))
    limits = {60 << 20: "MemoryError True 0", 600 << 20: "1 0"}
    for limit, expected in list(limits.items())[: 2 if damaged == "keep" else 1]:
        done = subprocess.run(
            [sys.executable, "-c", THREADS, str(path), damaged, str(limit)],
            capture_output=True, text=True, env={**os.environ}, check=False,
        )  # fmt: skip
        assert done.stdout.strip() == expected, done.stderr


@pytest.mark.parametrize("started", [0, 1])
def test_no_more_threads(tmp_path, monkeypatch, started):
    """The calling thread unpacks instead; no message is lost or repeated."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(4)))
    store = data_files.typestore(True)
    messages = data_files.messages(store, 200)
    path = data_files.write_ros1(tmp_path / "x.bag", messages, store, compression="BZ2")
    expected = data.open(path).load()
    left = [started]
    start = threading.Thread.start

    def short(self):
        left[0] -= 1
        if left[0] < 0:
            raise RuntimeError("can't start new thread")
        start(self)

    monkeypatch.setattr(threading.Thread, "start", short)
    got = data.open(path).load()
    assert left[0] < 0 and got.problems == ()
    for name in expected.names:
        np.testing.assert_array_equal(got[name].values, expected[name].values)


def test_a_pipe_in_place_of_a_bag_is_not_waited_for(tmp_path):
    from robocache.data._errors import Damage
    from robocache.data._formats.bags.mcap import Mcap
    from robocache.data._formats.bags.rosbag1 import Ros1

    os.mkfifo(tmp_path / "x")
    for reader in (Mcap, Ros1):
        with pytest.raises(data.FormatError, match="is a pipe"):
            reader(str(tmp_path / "x"), Damage())


def test_the_limit_counts_what_was_unpacked():
    budget = decompress.Budget(Limit(1000), "x", 10)
    packed = zstd(bytes(600))
    budget.spend("a", packed, "zstd", 600)
    with pytest.raises(decompress.CannotUnpack, match="unpacks to another size"):
        budget.spend("b", zstd(bytes(100)), "zstd", 5000)
    assert budget.used == 700
    with pytest.raises(data.FormatError, match="max_unpacked=1300"):
        budget.spend("c", packed, "zstd", 600)
