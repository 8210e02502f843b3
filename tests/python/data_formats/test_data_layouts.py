"""Messages of any definition read as columns, with the serialization of rosbags as reference."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import robocache as rbc

pytest.importorskip("rosbags")

from rosbags.typesys import Stores, get_types_from_msg, get_typestore  # noqa: E402

import data_files  # noqa: E402

data = rbc.data
SCALARS = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
SCALARS += ["float32", "float64"]
INNER = "test_msgs/msg/Inner"


@st.composite
def definitions(draw):
    """Return the text of a message, and of a message that it contains."""

    def fields(kinds):
        lines = []
        for i in range(draw(st.integers(1, 6))):
            kind = draw(st.sampled_from(kinds))
            size = draw(st.sampled_from(["", "", "[2]", "[3]", "[]"]))
            lines.append(f"{kind}{size} f{i}")
        return "\n".join(lines) + "\n"

    return fields([*SCALARS, "string", INNER.replace("/msg/", "/")]), fields([*SCALARS, "string"])


def filled(store, name, rng, lengths):
    """Return a message with random numbers; arrays and strings have lengths by path."""
    from rosbags.interfaces import Nodetype

    def scalar(kind):
        dtype = np.dtype(kind)
        if dtype.kind == "b":
            return bool(rng.integers(2))
        if dtype.kind == "f":
            return float(dtype.type(rng.normal()))
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        if dtype.itemsize == 8:  # that float64 holds
            low, high = max(low, -(2**50)), 2**50
        return int(rng.integers(low, high, endpoint=True))

    def value(path, kind, what):
        if kind == Nodetype.BASE:
            return "s" * lengths(path) if what[0] == "string" else scalar(what[0])
        if kind == Nodetype.NAME:
            return message(path, what)
        inner, count = what
        count = count if kind == Nodetype.ARRAY else lengths(path)
        items = [value(f"{path}[{i}]", *inner) for i in range(count)]
        if inner[0] == Nodetype.BASE and inner[1][0] != "string":
            return np.array(items, inner[1][0])
        return items

    def message(path, of):
        told = {n: value(f"{path}.{n}", *d) for n, d in store.fielddefs[of][1]}
        return store.types[of](**told)

    return message("", name)


def numbers(message, store, name, path=""):
    """Return each number of a message with its path, in the order of the definition."""
    from rosbags.interfaces import Nodetype

    def walk(value, kind, what, path):
        if kind == Nodetype.BASE:
            if what[0] != "string":
                yield path, value
        elif kind == Nodetype.NAME:
            yield from numbers(value, store, what, path)
        else:
            for i, item in enumerate(value):
                yield from walk(item, *what[0], f"{path}[{i}]")

    for field, (kind, what) in store.fielddefs[name][1]:
        inner = f"{path}.{field}" if path else field
        yield from walk(getattr(message, field), kind, what, inner)


@settings(max_examples=60)
@given(definitions(), st.integers(0, 2**32), st.sampled_from(["ros1", "cdr", "cdr big"]))
def test_any_definition(tmp_path_factory, texts, seed, kind):
    name = "test_msgs/msg/Outer"
    types = get_types_from_msg(texts[0], name)
    types.update(get_types_from_msg(texts[1], INNER))
    store = get_typestore(Stores.EMPTY)
    store.register(types)
    rng = np.random.default_rng(seed)
    fixed = {}

    def lengths(path):  # of strings and arrays: other ones from the fourth message on
        return fixed.setdefault(path, int(rng.integers(0, 4)))

    told = []
    for i in range(7):
        if i == 3:
            fixed.clear()
        told.append((10**9 + i, filled(store, name, rng, lengths)))
    folder = tmp_path_factory.mktemp("any")
    if kind == "ros1":
        of = [("/t", name, at, message) for at, message in told]
        path = data_files.write_ros1(folder / "x", of, store)
    else:
        mcap = data_files.McapBytes()
        number, records = mcap.declared("/t", name, store.generate_msgdef(name, ros_version=2)[0])
        content = records
        for at, message in told:
            raw = store.serialize_cdr(message, name, little_endian=kind == "cdr")
            content += mcap.message(number, at, raw)
        mcap.chunk(content, [number])
        path = folder / "x"
        path.write_bytes(mcap.finished(declarations=records))
    stream = data.open(path)["/t"]
    expected = [dict(numbers(message, store, name)) for _, message in told]
    common = [n for n in expected[0] if all(n in row for row in expected)]
    assert len(stream) == 7
    assert set(stream.names) <= set(common)
    # Fields in all messages are channels, except elements of arrays whose length changes.
    for n in common:
        assert n in stream.names or "[" in n
    order = [n for n in expected[0] if n in stream.names]
    assert list(stream.names) == order
    for row, told_row in zip(stream.values, expected):
        wanted = np.array([told_row[n] for n in stream.names], stream.values.dtype)
        np.testing.assert_array_equal(row, wanted)


def test_empty_messages_without_number():
    """A message of a few bytes declares three nested levels of a thousand empty messages."""
    from robocache.data._formats.messages.layouts import Layouts
    from robocache.data._formats.messages.ros_types import Types

    line = "=" * 80
    text = "p/A[1000] a\n"
    for name, content in (("A", "p/B[1000] b"), ("B", "p/C[1000] c"), ("C", "int8 X=1")):
        text += f"{line}\nMSG: p/{name}\n{content}\n"
    types = Types(None).lookup("p/msg/T", "ros1msg", text, None)
    layout = Layouts("p/msg/T", types, ros1=True).layout_of(bytes(1000))
    assert layout.failure == (
        "each has 1,000 bytes, but by the definition of p/msg/T they should have 0. "
        "The definition in the bag may be of another version"
    )
    text = text.replace("1000", "12").replace(" a\n", " a\nint8[12] x\n", 1)
    few = Types(None).lookup("p/msg/T", "ros1msg", text, None)
    names, _ = Layouts("p/msg/T", few, ros1=True).names(bytes(12), ())
    assert names == [f"x[{i}]" for i in range(12)]
