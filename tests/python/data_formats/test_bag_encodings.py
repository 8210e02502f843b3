"""MCAP with messages in JSON and protobuf."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

import data_files
from robocache import data

START = 1_700_000_000 * 10**9


def opened(tmp_path, contents, serialization="json", name="", kind="", schema=b"", **options):
    made = data_files.McapBytes()
    number, declarations = made.declared("/a", name, schema, serialization, kind)
    made.data += declarations
    for i, content in enumerate(contents):
        made.data += made.message(number, START + i * 10**7, content)
    (tmp_path / "x.mcap").write_bytes(made.finished(summary=False))
    return data.open(tmp_path / "x.mcap", **options)


def of_json(tmp_path, values, schema=None):
    kind = "" if schema is None else "jsonschema"
    text = b"" if schema is None else json.dumps(schema).encode()
    contents = [
        value if isinstance(value, bytes) else json.dumps(value).encode() for value in values
    ]
    return opened(tmp_path, contents, "json", "" if schema is None else "Pose", kind, text)


# ---- JSON ----------------------------------------------------------------------------------------


def test_json_without_schema(tmp_path):
    recording = of_json(
        tmp_path,
        [
            {
                "timestamp": {"sec": 1_700_000_000, "nsec": i * 10**7},
                "x": i / 50,
                "n": i,
                "on": i % 2 == 0,
                "inner": {"deep": {"y": -i}},
                "joints": [i, i + 0.5],
                "points": [{"x": i}, {"x": 2 * i}],
                "label": "a" if i % 2 else "b",
            }
            for i in range(100)
        ],
    )
    stream = recording["/a"]
    assert dict(zip(stream.names, stream.dtypes)) == {
        "x": "float64",
        "n": "int64",
        "on": "bool",
        "inner.deep.y": "int64",
        "joints[0]": "int64",
        "joints[1]": "float64",
        "points[0].x": "int64",
        "points[1].x": "int64",
    }
    i = np.arange(100)
    expected = [i / 50, i, i % 2 == 0, -i, i, i + 0.5, i, 2 * i]
    np.testing.assert_array_equal(stream.values, np.transpose(expected))
    np.testing.assert_array_equal(stream.header_times, START + i * 10**7)
    assert [(each.place, each.reason) for each in recording.left_out] == [
        ("/a: label", "string, which varies: 'a', 'b'")
    ]
    assert recording.unread == ()


@pytest.mark.parametrize(
    "stamp",
    [
        {"timestamp": {"sec": 5, "nanosec": 7}},
        {"header": {"stamp": {"secs": 5, "nsecs": 7}}},
        {"stamp": {"seconds": 5, "nanos": 7}},
        {"timestamp": "1970-01-01T00:00:05.000000007Z"},
        {"timestamp": "1970-01-01T01:00:05.000000007+01:00"},
    ],
)
def test_stamps_of_json(tmp_path, stamp):
    stream = of_json(tmp_path, [{**stamp, "x": 1.0}])["/a"]
    assert (stream.names, stream.header_times.tolist()) == (("x",), [5 * 10**9 + 7])


@pytest.mark.parametrize("stamp", [{"sec": 5, "nsec": 10**9}, {"sec": 2**40, "nsec": 0}, 5.0])
def test_what_is_no_stamp_stays_a_number(tmp_path, stamp):
    stream = of_json(tmp_path, [{"timestamp": stamp, "x": 1.0}])["/a"]
    assert stream.header_times is None and "x" in stream.names and len(stream.names) > 1


def test_types_of_a_json_schema(tmp_path):
    schema = {
        "definitions": {"V": {"properties": {"x": {"type": "number"}}}},
        "properties": {
            "v": {"$ref": "#/definitions/V"},
            "n": {"type": ["integer", "null"]},
            "a": {"items": {"type": "number"}},
        },
    }
    stream = of_json(tmp_path, [{"v": {"x": 0}, "n": 1, "a": [1]}], schema)["/a"]
    assert stream.dtypes == ("float64", "int64", "float64")


def test_numbers_that_turn_out_to_be_floats(tmp_path):
    """JavaScript writes 0.0 as 0, so a robot at rest has only integers at first."""
    stream = of_json(tmp_path, [{"x": 0 if i < 80 else i / 50, "n": 2**53 + 1} for i in range(200)])
    stream = stream["/a"]
    assert stream.dtypes == ("float64", "int64")
    expected = [0] * 80 + [i / 50 for i in range(80, 200)]
    np.testing.assert_array_equal(stream.values[:, 0], expected)


def test_missing_and_late_numbers(tmp_path):
    values = [{"x": 1.0, **({"y": i} if i % 2 else {})} for i in range(70)]
    values += [{"x": None, "z": 5}, {"x": 2.0, "y": 3, "z": 6}]
    recording = of_json(tmp_path, values)
    stream = recording["/a"]
    assert (stream.names, stream.dtypes) == (("x", "y"), ("float64", "float64"))
    np.testing.assert_array_equal(stream.values[-2:], [[np.nan, np.nan], [2, 3]])
    np.testing.assert_array_equal(np.isnan(stream.values[:70, 1]), np.arange(70) % 2 == 0)
    left = {each.place: each.reason for each in recording.left_out}
    assert "is missing in 36 messages" in left["/a: y"]
    assert "is missing in 1 messages" in left["/a: x"]
    (unread,) = recording.unread
    assert "'z'" in unread.reason and unread.loses_numbers


def test_arrays_of_changing_length(tmp_path):
    recording = of_json(tmp_path, [{"x": i, "a": [1.0] * (i % 3)} for i in range(50)])
    assert recording["/a"].names == ("x",)
    assert "a (0 to 2 elements)" in recording.unread[0].reason


def test_texts_have_no_numbers(tmp_path):
    recording = of_json(tmp_path, [{"text": "x"}] * 10)
    (unread,) = recording.unread
    assert (unread.messages, unread.loses_numbers) == (10, False)


def test_frames_in_one_topic_are_not_mixed(tmp_path):
    recording = of_json(tmp_path, [{"child_frame_id": "ab"[i % 2], "x": i} for i in range(80)])
    assert recording["/a"].values[:, 0].tolist() == list(range(0, 80, 2))
    (unread,) = recording.unread
    assert unread.messages == 40 and "child_frame_id" in unread.reason


@pytest.mark.parametrize(
    ("of", "key"),
    [
        (
            lambda k, x: {"transforms": [{"child_frame_id": k, "at": {"x": x}}]},
            "[0].child_frame_id",
        ),
        (lambda k, x: {"name": ["p" + k, "q" + k], "position": [x, -x]}, "name[0]"),
        (lambda k, x: {"joints": [{"name": k, "position": x}]}, "joints[0].name"),
        (lambda k, x: {"pose": {"header": {"frame_id": k}, "x": x}}, "pose.header.frame_id"),
        (lambda k, x: {"childFrameId": k, "x": x}, "childFrameId"),
        (lambda k, x: {"frame_id": k, "x": x} if x else {"x": x}, "frame_id"),
    ],
)
def test_things_in_one_topic_are_not_mixed(tmp_path, of, key):
    recording = of_json(tmp_path, [of("ab"[i % 2], i) for i in range(0, 80)])
    values = recording["/a"].values[:, 0].tolist()
    assert len({i % 2 for i in values if i}) == 1 and len(values) >= 40
    (unread,) = recording.unread
    assert unread.messages == 80 - len(values)
    assert unread.reason.startswith("they have a ") and key in unread.reason


@pytest.mark.parametrize(
    "of",
    [
        lambda i: {"x": i, "name": str(i)},
        lambda i: {"x": i, "name": [str(i), "b"]},
        lambda i: {"x": i, "objects": [{"name": str(i)}]},
        lambda i: {"x": i, "objects": [{"frame_id": str(i), "y": i}] * (i % 3)},
    ],
)
def test_names_of_no_channels_lose_nothing(tmp_path, of):
    recording = of_json(tmp_path, [of(i) for i in range(80)])
    assert recording["/a"].values[:, 0].tolist() == list(range(80))


def test_arrays_of_texts_that_change_their_length_have_no_numbers(tmp_path):
    recording = of_json(tmp_path, [{"x": i, "notes": ["n"] * (i % 3)} for i in range(80)])
    assert len(recording["/a"]) == 80
    assert recording.unread == ()
    assert "/a: notes" in [each.place for each in recording.left_out]


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe\xfd", "not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"[" + b"0," * 300_000 + b"0]", "more than 262,144 fields"),
        (b'{"x": ' + b"9" * 5000 + b"}", "not JSON"),
        (json.dumps({"x" * 2000: 1}).encode(), "path is longer"),
    ],
)
def test_json_that_cannot_be_read(tmp_path, content, match):
    recording = of_json(tmp_path, [{"x": 1.0}, content, {"x": 2.0}])
    assert recording["/a"].values.tolist() == [[1], [2]]
    (unread,) = recording.unread
    assert (unread.messages, unread.bytes) == (1, len(content))
    assert match in unread.reason


def test_json_of_other_kinds(tmp_path):
    assert of_json(tmp_path, [b"1.5", b"2"])["/a"].values.tolist() == [[1.5], [2]]
    assert of_json(tmp_path, [[1, 2.5]] * 2)["/a"].names == ("value[0]", "value[1]")
    large = of_json(tmp_path, [{"x": 2**63}, {"x": 10**400}])
    assert large["/a"].values[:, 0].tolist() == [2.0**63, np.inf]
    assert "rounded" in large.left_out[0].reason
    twice = of_json(tmp_path, [{"a.b": 1, "a": {"b": 2}, "x": 3}])
    assert twice["/a"].names == ("x",) and "two fields" in twice.left_out[0].reason
    nested = of_json(tmp_path, [{"x": 1, "a": json.loads("[" * 40 + "]" * 40)}])
    assert nested["/a"].names == ("x",) and "deeper" in nested.left_out[0].reason


# ---- protobuf ------------------------------------------------------------------------------------

DOUBLE, FLOAT, INT64, INT32, BOOL, STRING, MESSAGE, BYTES, ENUM = 1, 2, 3, 5, 8, 9, 11, 12, 14


def descriptors(messages, imports=(), enums=()):
    """A set of files: ``messages`` has fields (name, type, repeated, type's name) by name."""
    from google.protobuf import descriptor_pb2, timestamp_pb2

    made = descriptor_pb2.FileDescriptorSet()
    file = made.file.add(name="a.proto", package="p", syntax="proto3")
    for name, fields in messages.items():
        message = file.message_type.add(name=name)
        for number, (field, kind, repeated, of) in enumerate(fields, 1):
            message.field.add(
                name=field, number=number, type=kind, label=3 if repeated else 1, type_name=of
            )
    for name in enums:
        enum = file.enum_type.add(name=name)
        enum.value.add(name="A", number=0)
        enum.value.add(name="B", number=1)
    if imports:
        file.dependency.append("google/protobuf/timestamp.proto")
        timestamp_pb2.DESCRIPTOR.CopyToProto(made.file.add())
    return made.SerializeToString()


POSE = {
    "Pose": [
        ("timestamp", MESSAGE, False, ".google.protobuf.Timestamp"),
        ("frame_id", STRING, False, None),
        ("position", MESSAGE, False, ".p.Vector3"),
        ("orientation", MESSAGE, False, ".p.Quaternion"),
        ("joints", DOUBLE, True, None),
        ("n", INT64, False, None),
        ("on", BOOL, False, None),
        ("weight", FLOAT, False, None),
        ("mode", ENUM, False, ".p.Mode"),
        ("blob", BYTES, False, None),
    ],
    "Vector3": [(name, DOUBLE, False, None) for name in "xyz"],
    "Quaternion": [(name, DOUBLE, False, None) for name in "xyzw"],
}


def of_protobuf(tmp_path, contents, made=None, name="p.Pose", **options):
    made = descriptors(POSE, imports=True, enums=["Mode"]) if made is None else made
    return opened(tmp_path, contents, "protobuf", name, "protobuf", made, **options)


def classes():
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    pool = descriptor_pool.DescriptorPool()
    made = descriptors(POSE, imports=True, enums=["Mode"])
    files = descriptor_pb2.FileDescriptorSet.FromString(made).file
    for file in reversed(files):
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("p.Pose"))


def test_protobuf(tmp_path):
    pytest.importorskip("google.protobuf")
    made = classes()
    contents = []
    for i in range(100):
        pose = made(frame_id="map", n=i, on=bool(i % 2), weight=i / 3, mode=i % 2, blob=b"xx")
        pose.timestamp.seconds, pose.timestamp.nanos = 1_700_000_000, i * 10**7
        pose.position.x, pose.position.z = i / 50, -i
        pose.orientation.w = 1
        pose.joints[:] = [i, 2 * i]
        contents.append(pose.SerializeToString())
    recording = of_protobuf(tmp_path, contents)
    stream = recording["/a"]
    dtypes = dict(zip(stream.names, stream.dtypes))
    assert [dtypes[name] for name in ("n", "on", "weight", "mode", "position.x")] == [
        "int64", "bool", "float32", "int32", "float64"
    ]  # fmt: skip
    i = np.arange(100)
    values = dict(zip(stream.names, stream.values.T))
    np.testing.assert_array_equal(values["position.x"], i / 50)
    np.testing.assert_array_equal(values["position.y"], 0 * i)
    np.testing.assert_array_equal(values["weight"], (i / 3).astype("f4"))
    np.testing.assert_array_equal(values["joints[1]"], 2 * i)
    np.testing.assert_array_equal(stream.header_times, START + i * 10**7)
    left = [each.place for each in recording.left_out]
    assert left == ["/a: frame_id", "/a: blob"] and recording.unread == ()


def test_absent_messages_are_missing(tmp_path):
    pytest.importorskip("google.protobuf")
    made = classes()
    first, second = made(n=1), made(n=2)
    first.position.x = 3
    stream = of_protobuf(tmp_path, [first.SerializeToString(), second.SerializeToString()])["/a"]
    column = stream.values[:, stream.names.index("position.x")]
    np.testing.assert_array_equal(column, [3, np.nan])


def test_descriptors_that_cannot_be_used(tmp_path):
    pytest.importorskip("google.protobuf")
    good = descriptors(POSE, imports=True, enums=["Mode"])
    for made, name in ((b"\xff\xff", "p.Pose"), (b"", "p.Pose"), (good, "p.Other"),
                       (good[:-20], "p.Pose"), (b"\0" * (5 << 20), "p.Pose")):  # fmt: skip
        (unread,) = of_protobuf(tmp_path, [b"", b""], made, name).unread
        assert unread.messages == 2 and "descriptors" in unread.reason


def test_without_the_package_the_rest_is_read(tmp_path, monkeypatch):
    from robocache.data._formats.messages import protobuf

    def missing(module, extra, what):
        raise ModuleNotFoundError(module)

    monkeypatch.setattr(protobuf, "needed", missing)
    (unread,) = of_protobuf(tmp_path, [b""], b"").unread
    assert "robocache[mcap]" in unread.reason


def test_damaged_messages(tmp_path):
    pytest.importorskip("google.protobuf")
    good = classes()(n=1).SerializeToString()
    recording = of_protobuf(tmp_path, [good, b"\xff\xff\xff", good])
    assert len(recording["/a"]) == 2
    assert recording.unread[0].messages == 1


def test_small_message_of_many_large_messages(tmp_path):
    """Two bytes of a repeated message unpack to a kilobyte of memory."""
    pytest.importorskip("google.protobuf")
    fields = [(f"f{i}", DOUBLE, False, None) for i in range(1000)]
    made = descriptors({"Pose": [("many", MESSAGE, True, ".p.Large")], "Large": fields})
    recording = of_protobuf(tmp_path, [b"\x0a\0" * 200_000], made)
    assert "too many messages" in recording.unread[0].reason


def test_message_that_contains_itself(tmp_path):
    pytest.importorskip("google.protobuf")
    made = descriptors({"Pose": [("x", DOUBLE, False, None), ("in", MESSAGE, False, ".p.Pose")]})
    content = b""
    for _ in range(50):
        size = len(content)
        length = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
        content = b"\x09" + struct.pack("<d", 1.5) + b"\x12" + length + content
    recording = of_protobuf(tmp_path, [content], made)
    assert len(recording["/a"].names) == 33
    assert any("deeper" in each.reason for each in recording.left_out)


def test_empty_messages_of_many_fields_are_limited(tmp_path):
    pytest.importorskip("google.protobuf")
    fields = [(f"f{i}", DOUBLE, False, None) for i in range(1000)]
    made = descriptors({"Pose": fields})
    with pytest.raises(data.FormatError, match="max_unpacked"):
        of_protobuf(tmp_path, [b""] * 3000, made, max_unpacked=1 << 20).load()


@pytest.mark.parametrize("serialization", ["flatbuffer", "cbor", "", "x"])
def test_encodings_that_are_not_read(tmp_path, serialization):
    recording = opened(tmp_path, [b"1234"] * 5, serialization, "Pose", serialization)
    (unread,) = recording.unread
    assert (unread.place, unread.messages, unread.bytes) == ("/a", 5, 20)
    assert unread.loses_numbers and unread.reason.endswith(("read", "these"))
    assert len(recording) == 0


def test_a_map_without_values_is_no_lack_of_memory():
    """The package protobuf reports "out of memory" for such descriptors."""
    struct_pb2 = pytest.importorskip("google.protobuf.struct_pb2")
    descriptor_pb2 = pytest.importorskip("google.protobuf.descriptor_pb2")
    from robocache.data._formats.messages.protobuf import ProtobufReader

    found = descriptor_pb2.FileDescriptorSet()
    struct_pb2.DESCRIPTOR.CopyToProto(found.file.add())
    del found.file[0].message_type[0].nested_type[0].field[1]
    with pytest.raises(ValueError, match="their descriptors cannot be used"):
        ProtobufReader("google.protobuf.Struct", found.SerializeToString())
