"""Random definitions of ROS messages, with the serialization of rosbags as reference."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import data_files
from robocache import data

pytest.importorskip("rosbags")
from rosbags.typesys import Stores, get_types_from_msg, get_typestore  # noqa: E402

from robocache.data._formats.messages.columns import Decoder, Rows  # noqa: E402
from robocache.data._formats.messages.ros_types import Types  # noqa: E402

BASES = ["bool", "byte", "char", "int8", "uint8", "int16", "uint16", "int32", "uint32"]
BASES += ["int64", "uint64", "float32", "float64", "string"]
LINE = "=" * 80


@st.composite
def definitions(draw):
    """Return the text of several types; each one may contain the types before it."""
    texts = {"Empty": "", "Mode": "uint8 OFF=0\nuint8 ON=1\n"}
    for number in range(draw(st.integers(1, 3))):
        lines = []
        for i in range(draw(st.integers(0 if number else 1, 5))):
            of = draw(st.sampled_from([*BASES, *(f"p/{name}" for name in texts)]))
            end = draw(st.sampled_from(["", "", "[2]", "[]", "[<=3]"]))
            given_value = draw(st.booleans()) and not end and of not in ("string", "bool")
            value = " 1" if given_value and "/" not in of else ""
            lines.append(f"{of}{end} f{i}{value}")
            if draw(st.booleans()):
                lines.append(f"int32 C{i}={i}")
        texts[f"T{number}"] = "\n".join(lines) + "\n"
    return texts, f"T{number}"


def filled(store, name, rng, lengths, path=""):
    """Return a message with random values; sequences have the same lengths in all messages."""
    from rosbags.interfaces import Nodetype

    def value(description, path):
        kind, what = description
        if kind == Nodetype.BASE:
            return scalar(what[0])
        if kind == Nodetype.NAME:
            return filled(store, what, rng, lengths, path)
        inner, count = what
        if kind == Nodetype.SEQUENCE:
            count = lengths.setdefault(path, int(rng.integers(0, 3)))
        if inner[0] == Nodetype.BASE and inner[1][0] != "string":
            base = {"byte": "uint8", "char": "uint8"}.get(inner[1][0], inner[1][0])
            return np.array([scalar(inner[1][0]) for _ in range(count)], base)
        return [value(inner, f"{path}[{i}]") for i in range(count)]

    def scalar(base):
        if base == "string":
            return "x" * int(rng.integers(0, 6))
        if base == "bool":
            return bool(rng.integers(2))
        if base.startswith("float"):
            return float(np.dtype(base).type(rng.normal()))
        if base == "byte":  # versions of rosbags disagree on its sign
            return int(rng.integers(128))
        limits = np.iinfo("uint8" if base == "char" else base)
        bound = 2**52 if limits.bits == 64 else limits.max
        return int(rng.integers(max(limits.min, -bound), bound, endpoint=True))

    fields = store.fielddefs[name][1]
    told = {field: value(of, f"{path}.{field}" if path else field) for field, of in fields}
    return store.types[name](**told)


def flat(store, name, message, path=""):
    """Return the numbers of a message by their paths."""
    from rosbags.interfaces import Nodetype

    found = {}

    def add(description, value, path):
        kind, what = description
        if kind == Nodetype.BASE:
            if what[0] != "string":
                found[path] = float(value)
        elif kind == Nodetype.NAME:
            found.update(flat(store, what, value, path))
        else:
            for i, each in enumerate(value):
                add(what[0], each, f"{path}[{i}]")

    for field, of in store.fielddefs[name][1]:
        if field != "structure_needs_at_least_one_member":
            add(of, getattr(message, field), f"{path}.{field}" if path else field)
    return found


@settings(max_examples=60, deadline=None)
@given(definitions(), st.booleans(), st.booleans(), st.integers(0, 2**32 - 1))
def test_values_are_those_of_rosbags(made, little, ros1, seed):
    texts, last = made
    store = get_typestore(Stores.EMPTY)
    types = {}
    for name, text in texts.items():
        types.update(get_types_from_msg(text, f"p/msg/{name}"))
    store.register(types)
    typename, rng, lengths = f"p/msg/{last}", np.random.default_rng(seed), {}
    messages = [filled(store, typename, rng, lengths) for _ in range(5)]
    if ros1:
        contents = [bytes(store.serialize_ros1(message, typename)) for message in messages]
    else:
        contents = [
            bytes(store.serialize_cdr(message, typename, little_endian=little))
            for message in messages
        ]
    parts = [f"MSG: p/{name}\n{text}" for name, text in texts.items() if name != last]
    full = f"\n{LINE}\n".join([texts[last], *parts])
    of = Types().lookup(typename, "ros1msg" if ros1 else "ros2msg", full, None)
    decoder = Decoder(typename, of, "ros1" if ros1 else "cdr", lambda fields: None)
    pieces = decoder.feed(rows_of(contents)) + decoder.flush()
    assert not decoder.failed
    expected = [flat(store, typename, message) for message in messages]
    (columns,) = pieces
    assert set(columns.names) == set(expected[0])
    for row, want in zip(columns.values, expected):
        np.testing.assert_array_equal(row, [want[name] for name in columns.names])


def rows_of(contents):
    sizes = np.array([len(content) for content in contents], np.int64)
    whole = np.frombuffer(b"".join(contents), np.uint8)
    return Rows(whole, np.cumsum(sizes) - sizes, sizes, np.arange(len(contents)))


HEAD = b"\0\1\0\0"


def opened(tmp_path, typename, definition, contents, kind="ros2msg"):
    made = data_files.McapBytes()
    number, declarations = made.declared("/a", typename, definition, kind=kind)
    made.data += declarations
    for i, content in enumerate(contents):
        made.data += made.message(number, 10**9 + i * 10**7, HEAD + content)
    (tmp_path / "x.mcap").write_bytes(made.finished(summary=False))
    return data.open(tmp_path / "x.mcap")


EMPTY = f"{LINE}\nMSG: std_msgs/Empty\n"


@pytest.mark.parametrize(
    ("definition", "pack"),
    [
        ("uint8 a\nstd_msgs/Empty e\nuint8 b\nuint8 c\n" + EMPTY, lambda i: bytes([10, 0, 20, i])),
        ("uint8 a\np/M e\nuint8 b\nuint8 c\n" + f"{LINE}\nMSG: p/M\nuint8 X=1\n",
         lambda i: bytes([10, 0, 20, i])),
        ("uint8 a\np/M[2] e\nuint8 b\nuint8 c\n" + f"{LINE}\nMSG: p/M\n",
         lambda i: bytes([10, 0, 0, 20, i])),
        ("uint8 a\nstring s\np/M[] e\nuint8 b\nuint8 c\n" + f"{LINE}\nMSG: p/M\n",
         lambda i: struct.pack("<B3xI2sxxI", 10, 2, b"x\0", 1) + bytes([0, 20, i])),
    ],
)  # fmt: skip
def test_message_without_fields_is_one_byte(tmp_path, definition, pack):
    stream = opened(tmp_path, "pkg/msg/A", definition, [pack(i) for i in range(50)])["/a"]
    assert stream.names == ("a", "b", "c")
    np.testing.assert_array_equal(stream.values, [[10, 20, i] for i in range(50)])


def test_message_without_fields_at_the_end_of_ros1_takes_nothing():
    definition = f"uint8 a\nstd_msgs/Empty e\nuint8 b\n{EMPTY}"
    types = Types().lookup("pkg/msg/A", "ros1msg", definition, None)
    decoder = Decoder("pkg/msg/A", types, "ros1", lambda fields: None)
    (columns,) = decoder.feed(rows_of([bytes([1, 2])])) + decoder.flush()
    assert columns.values.tolist() == [[1, 2]]


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("end", ["", "float64 y\n", "wstring more\nfloat64 y\n"])
def test_wide_string_costs_its_field(tmp_path, width, end):
    """DDS implementations write two or four bytes per character, or count bytes."""

    def wide(text, at):
        padding = bytes(-at % 4)
        return padding + struct.pack("<I", len(text)) + bytes(width * len(text))

    def pack(i):
        content = struct.pack("<d", i / 50)
        content += wide("ab" * (i % 5), len(content))
        if "more" in end:
            content += wide("c" * (i % 3), len(content))
        return content + (bytes(-len(content) % 8) + struct.pack("<d", 7.0) if end else b"")

    definition = f'float64 x\nwstring<=20 name \nwstring NOT_A_FIELD="x"\n{end}'
    recording = opened(tmp_path, "pkg/msg/A", definition, [pack(i) for i in range(50)])
    stream = recording["/a"]
    np.testing.assert_array_equal(stream.values[:, 0], np.arange(50) / 50)
    if end:
        assert (stream.values[:, 1] == 7).all()
    (place, reason) = [(each.place, each.reason) for each in recording.left_out][0]
    assert (place, "wstring" in reason) == ("/a: name", True)
    assert recording.unread == ()


def test_wide_strings_whose_width_is_in_doubt_are_not_guessed(tmp_path):
    """It may be one character of four bytes, or one of two bytes and padding."""
    content = struct.pack("<I4s3Bx", 1, b"a\0\0\0", 5, 6, 7)
    recording = opened(tmp_path, "pkg/msg/A", "wstring s\nuint8[3] n\n", [content] * 30)
    (unread,) = recording.unread
    assert unread.messages == 30 and "bytes per character" in unread.reason


IDL = """
#include "other.idl"
module pkg { module msg {
  enum Color { RED, GREEN };
  struct Nothing {};
  struct Inner { long n; };
  struct A { double x; Color c; Nothing e; octet o; pkg::msg::Inner i; long double d; double y; };
}; };
"""


@pytest.mark.parametrize("kind", ["omgidl", "ros2idl"])
def test_idl(tmp_path, kind):
    def pack(i):
        return struct.pack("<dIBBxxi4x16xd", i / 50, 1, 0, 9, -3, 2.5)

    contents = [pack(i) for i in range(50)]
    recording = opened(tmp_path, "pkg::msg::A", IDL, contents, kind=kind)
    stream = recording["/a"]
    assert stream.names == ("x", "c", "o", "i.n", "y")
    np.testing.assert_array_equal(stream.values, [[i / 50, 1, 9, -3, 2.5] for i in range(50)])
    assert [each.place for each in recording.left_out] == ["/a: d"]


@pytest.mark.parametrize("name", ["A", "pkg::A", "a::b::c::A"])
def test_idl_of_any_modules(tmp_path, name):
    *modules, last = name.split("::")
    begin, end = "".join(f"module {m} {{ " for m in modules), " };" * len(modules)
    text = f"{begin}struct {last} {{ double x; }};{end}"
    contents = [struct.pack("<d", i) for i in range(3)]
    assert opened(tmp_path, name, text, contents, kind="omgidl")["/a"].values.tolist() == [
        [0], [1], [2]
    ]  # fmt: skip


def test_idl_with_optional_fields_is_refused(tmp_path):
    text = "struct A { double x; @optional long y; };"
    recording = opened(tmp_path, "A", text, [struct.pack("<d", 1)], kind="omgidl")
    assert "@optional" in recording.unread[0].reason
