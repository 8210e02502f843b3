"""Odd rows of SQLite bags are reported; with ``keep``, only these rows are lost."""

from __future__ import annotations

import re
import sqlite3
import struct
from contextlib import closing

import numpy as np
import pytest

import sqlite_recorder
from robocache import data
from robocache.data._errors import Damage
from robocache.data._formats.bags import sqlite, sqlite_rows
from sqlite_recorder import STEP, message, rows
from sqlite_states import unchanged

pytest.importorskip("rosbags")

COUNT = 50
# Without constraints, as a broken recorder may make them.
TABLES = (
    "CREATE TABLE topics(id, name, type, serialization_format)",
    "CREATE TABLE messages(id, topic_id, timestamp, data)",
    "CREATE TABLE message_definitions(topic_type, encoding, encoded_message_definition)",
)
TYPE = "std_msgs/msg/Float64"


@pytest.fixture
def bag(tmp_path):
    """Return a path, and a function that writes a bag there and runs SQL statements on it."""
    path = tmp_path / "bag" / "x.db3"
    path.parent.mkdir()

    def write(*statements, count=COUNT, page=4096):
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            database.execute(f"PRAGMA page_size={page}")
            for table in TABLES:
                database.execute(table)
            database.execute("BEGIN")
            database.execute("INSERT INTO topics VALUES (1, '/a', ?, 'cdr')", [TYPE])
            database.execute("INSERT INTO topics VALUES (2, '/b', ?, 'cdr')", [TYPE])
            insert = "INSERT INTO messages VALUES (?, ?, ?, ?)"
            for number, time, content in rows(1, count):
                database.execute(insert, (number, 1 + (number % 5 == 0), time, content))
            database.execute("COMMIT")
            for statement in statements:
                sql, *values = (statement,) if isinstance(statement, str) else statement
                database.execute(sql, values)
        return path

    return write


def check_lost(path, match, lost, problems=1):
    """Check that the row is refused; with ``keep``, all other messages are read."""
    with unchanged(path.parent):
        with pytest.raises(data.FormatError, match=match):
            data.open(path).load()
        recording = data.open(path, damaged="keep").load()
    assert len(recording.problems) == problems, recording.problems
    assert any(re.search(match, str(problem)) for problem in recording.problems)
    read = np.concatenate([stream.log_times for stream in recording.streams.values()])
    numbers = set(range(1, COUNT + 1)) - set(lost)
    assert sorted(read // STEP) == sorted(numbers)
    for stream in recording.streams.values():
        assert (stream.values[:, 0] * STEP == stream.log_times).all()
    return recording


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        ("data", None, "data is NULL, expected a blob"),
        ("data", "text", "data is the text 'text'"),
        ("data", 5, "data is 5"),
        ("data", 0.5, "data is 0.5"),
        ("timestamp", None, "timestamp is NULL, expected an integer of nanoseconds"),
        ("timestamp", 1e300, r"timestamp is 1e\+300"),
        ("timestamp", float(2**63), "timestamp is 9.2"),
        ("timestamp", "now", "timestamp is the text 'now'"),
        ("timestamp", b"\1\2", "timestamp is a blob of 2 bytes"),
        ("topic_id", None, "topic_id is NULL, expected the id of a topic"),
        ("topic_id", 99, "topic_id is 99"),
        ("topic_id", -1, "topic_id is -1"),
        ("topic_id", 1.5, "topic_id is 1.5"),
        ("topic_id", "/a", "topic_id is the text '/a'"),
        ("topic_id", b"\xff", "topic_id is a blob of 1 bytes"),
    ],
)
def test_a_message_with_an_odd_value(bag, column, value, shown):
    path = bag((f"UPDATE messages SET {column} = ? WHERE rowid = 17", value))
    check_lost(path, f"table messages, row 17: {shown}.*: the row is skipped", [17])


def test_a_single_topic_does_not_hide_messages_of_none(bag):
    path = bag("UPDATE messages SET topic_id = 7 WHERE rowid = 17")
    for name in ("/a", "/b"):
        with pytest.raises(data.FormatError, match="row 17: topic_id is 7"):
            data.open(path)[name]


def test_many_odd_rows_are_counted(bag):
    path = bag("UPDATE messages SET data = NULL WHERE rowid % 2 = 0")
    lost = range(2, COUNT + 1, 2)
    recording = check_lost(path, "table messages, row 2: data is NULL", lost, problems=7)
    assert recording.problems[-1].text == "19 more rows or ranges of rows are damaged, 25 in all"


def test_ids_that_are_negative_or_missing_are_read(bag):
    """They are valid if topics and messages agree."""
    path = bag(
        "UPDATE topics SET id = -5 WHERE id = 1",
        "UPDATE messages SET topic_id = -5 WHERE topic_id = 1",
        "UPDATE messages SET id = NULL WHERE rowid = 3",
        "UPDATE messages SET id = 4 WHERE rowid = 5",
        "UPDATE messages SET rowid = -9 WHERE rowid = 7",
        "UPDATE topics SET name = '/b' WHERE id = -5",
    )
    recording = data.open(path).load()
    assert not recording.problems and list(recording.names) == ["/b"]
    assert (recording["/b"].log_times == np.arange(1, COUNT + 1) * STEP).all()


OF_B = range(5, COUNT + 1, 5)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ("name = NULL", "row 2: name is NULL, expected text"),
        ("name = 5", "row 2: name is 5"),
        ("type = NULL", "row 2: type is NULL"),
        ("type = 0.5", "row 2: type is 0.5"),
        ("serialization_format = NULL", "row 2: serialization_format is NULL"),
    ],
)
def test_a_topic_with_an_odd_value(bag, change, match):
    path = bag(f"UPDATE topics SET {change} WHERE id = 2")
    recording = check_lost(path, f"table topics, {match}", OF_B, problems=2)
    assert str(recording.problems[1]).endswith(f"id 2: its {len(OF_B)} messages are skipped")


@pytest.mark.parametrize("value", ["NULL", "'two'", "x'02'", "2.5", "1"])
def test_a_topic_with_an_odd_id(bag, value):
    path = bag(f"UPDATE topics SET id = {value} WHERE id = 2")
    match = "table topics, row 2: id (is|1 is also the id of row 1)"
    check_lost(path, match, OF_B, problems=1 + 6 + 1)


@pytest.mark.parametrize(
    ("sql", "name"), [("x'2f62'", "/b"), ("CAST(x'2f62ff' AS TEXT)", r"/b\xff")]
)
def test_a_name_that_is_no_text(bag, sql, name):
    path = bag(f"UPDATE topics SET name = {sql} WHERE id = 2")
    recording = check_lost(
        path, "table topics, row 2: name is (a blob|not UTF-8), and is read as", []
    )
    assert list(recording.names) == ["/a", name]


def test_texts_elsewhere_that_are_not_utf_8(bag):
    path = bag(
        "CREATE TABLE x(a)",
        "INSERT INTO x VALUES (CAST(x'ff' AS TEXT))",
        "INSERT INTO message_definitions VALUES ('other/msg/X', 'ros2msg', CAST(x'ff' AS TEXT))",
    )
    check_lost(
        path, "table message_definitions, row 1: encoded_message_definition is not UTF-8", []
    )


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ("NULL, 'ros2msg', ''", "topic_type is NULL"),
        ("'a/msg/B', 5, ''", "encoding is 5"),
        ("'a/msg/B', 'ros2msg', NULL", "encoded_message_definition is NULL"),
        ("'a/msg/A', 'ros2msg', 'int8 x'", "defines 'a/msg/A', which an earlier row defines"),
    ],
)
def test_a_definition_with_an_odd_value(bag, values, match):
    path = bag(
        "INSERT INTO message_definitions VALUES ('a/msg/A', 'ros2msg', 'int16 x')",
        f"INSERT INTO message_definitions VALUES ({values})",
    )
    check_lost(path, f"table message_definitions, row 2: {match}", [])


# ---- pages ---------------------------------------------------------------------------------------


def leaves(path, page):
    """Return positions of the leaf pages of tables, by their first row; only small numbers."""
    content = path.read_bytes()
    found = {}
    for at in range(page, len(content), page):
        if content[at] == 13 and content[at + 3 : at + 5] != b"\0\0":
            (cell,) = struct.unpack_from(">H", content, at + 8)
            high, low = content[at + cell + 1], content[at + cell + 2]
            found[high if high < 128 else (high - 128) * 128 + low] = at
    return found


def test_a_page_in_the_middle(bag):
    path = bag(count=5000, page=1024)
    places = leaves(path, 1024)
    first, *_, end = starts = sorted(places)[20:23]
    content = bytearray(path.read_bytes())
    for start in starts[:2]:
        content[places[start] : places[start] + 1024] = bytes(1024)
    path.write_bytes(content)
    place = f"table messages, rows {first} to {end - 1}"
    with unchanged(path.parent):
        with pytest.raises(data.FormatError, match="table messages, after row"):
            data.open(path).load()
        recording = data.open(path, damaged="keep").load()
        own = data.open(path, damaged="keep")["/b"]
    (problem,) = recording.problems
    assert problem.place == place and problem.text.endswith("malformed: they are skipped")
    read = np.concatenate([stream.log_times for stream in recording.streams.values()]) // STEP
    assert sorted(read) == [n for n in range(1, 5001) if not first <= n < end]
    assert (own.log_times == recording["/b"].log_times).all()


def test_several_pages_and_the_last_ones(bag):
    path = bag(count=5000, page=1024)
    places = leaves(path, 1024)
    starts = sorted(places)
    content = bytearray(path.read_bytes())
    lost = set()
    for i in (5, 9, 10, 30, len(starts) - 1):
        content[places[starts[i]]] = 0
        end = starts[i + 1] if i + 1 < len(starts) else 5001
        lost.update(range(starts[i], end))
    path.write_bytes(content)
    recording = data.open(path, damaged="keep").load()
    places = [problem.place for problem in recording.problems]
    assert len(places) == 4 and places[-1] == f"table messages, after row {starts[-1] - 1}"
    read = np.concatenate([stream.log_times for stream in recording.streams.values()]) // STEP
    assert sorted(read) == sorted(set(range(1, 5001)) - lost)


def test_a_message_whose_pages_are_damaged(bag):
    large = message(17) + bytes(10_000)
    path = bag(("UPDATE messages SET data = ? WHERE rowid = 17", large), page=1024)
    content = bytearray(path.read_bytes())
    # The chain of its pages is broken.
    for begin in range(1024, len(content), 1024):
        if content[begin + 4 : begin + 1024] == bytes(1020):
            struct.pack_into(">I", content, begin, 10**6)
            break
    path.write_bytes(content)
    check_lost(path, "table messages, (row 17: data cannot be read|after row 16)", [17])


def test_rows_that_a_page_hides(bag):
    """Only an index shows a wrong number of rows in a page."""
    path = bag("CREATE INDEX timestamp_idx ON messages(timestamp)", count=5000, page=1024)
    places = leaves(path, 1024)
    start = sorted(places)[20]
    content = bytearray(path.read_bytes())
    (rows_in_page,) = struct.unpack_from(">H", content, places[start] + 3)
    struct.pack_into(">H", content, places[start] + 3, rows_in_page - 2)
    path.write_bytes(content)
    match = "table messages: has 4,998 of the 5,000 rows in its index: the others are missing"
    with pytest.raises(data.FormatError, match=match):
        data.open(path).load()
    recording = data.open(path, damaged="keep").load()
    assert [match in str(problem) for problem in recording.problems] == [True]
    assert sum(len(stream) for stream in recording.streams.values()) == 4998


def test_an_index_that_cannot_be_read(bag):
    path = bag("CREATE INDEX timestamp_idx ON messages(timestamp)", page=1024)
    content = bytearray(path.read_bytes())
    for at in range(0, len(content), 1024):
        if content[at] in (2, 10):
            content[at] = 0
    path.write_bytes(content)
    check_lost(path, "table messages: its index cannot be read", [])


def test_a_row_that_leads_nowhere(bag):
    """A scan fails at the row, but a search does not read it."""
    path = bag("CREATE INDEX timestamp_idx ON messages(timestamp)", count=5000, page=1024)
    places = leaves(path, 1024)
    content = bytearray(path.read_bytes())
    silent = 0
    for row in range(3):
        changed = content.copy()
        struct.pack_into(">H", changed, places[sorted(places)[20]] + 8 + 2 * row, 0)
        path.write_bytes(changed)
        with pytest.raises(data.FormatError, match="table messages"):
            data.open(path).load()
        recording = data.open(path, damaged="keep").load()
        silent += not recording.problems
        assert sum(len(stream) for stream in recording.streams.values()) >= 4990 - 40
    assert not silent


def test_a_page_in_the_place_of_another(bag):
    path = bag(count=5000, page=1024)
    places = leaves(path, 1024)
    starts = sorted(places)
    content = bytearray(path.read_bytes())
    copy, lost = (struct.pack(">I", places[starts[i]] // 1024 + 1) for i in (20, 40))
    pages = [at for at in range(0, len(content), 1024) if content[at] == 5]
    (at,) = (at for at in pages if lost in content[at : at + 1024])
    content[at : at + 1024] = content[at : at + 1024].replace(lost, copy)
    path.write_bytes(content)
    with pytest.raises(
        data.FormatError, match=f"row {starts[40] - 1}: the next row is {starts[20]}"
    ):
        data.open(path).load()
    recording = data.open(path, damaged="keep").load()
    assert len(recording.problems) == 1
    read = np.concatenate([stream.log_times for stream in recording.streams.values()]) // STEP
    assert sorted(read) == [n for n in range(1, 5001) if not starts[40] <= n < starts[41]]


def test_pages_that_are_used_more_than_once(bag):
    """A small file has many large messages, because they share their pages."""
    statements = ("UPDATE messages SET data = zeroblob(100000)",)
    path = bag(*statements, page=1024)
    content = bytearray(path.read_bytes())
    chains = []
    for at in range(1024, len(content), 1024):
        (cells,) = struct.unpack_from(">H", content, at + 3)
        if content[at] != 13 or not 0 < cells < 20:
            continue
        for cell in struct.unpack_from(f">{cells}H", content, at + 8):
            a, b, c, row = content[at + cell : at + cell + 4]
            size = (a & 127) << 14 | (b & 127) << 7 | c
            if a & b & 128 and row <= COUNT and 100_000 < size < 100_100:
                kept = 103 + (size - 103) % 1020  # bytes that are not in other pages
                chains.append(at + cell + 4 + (kept if kept <= 989 else 103))
    assert len(chains) == COUNT
    first = content[chains[0] : chains[0] + 4]
    for at in chains:
        content[at : at + 4] = first
    small = content[: len(content) // 3]
    struct.pack_into(">I", small, 28, len(small) // 1024)
    path.write_bytes(small[: len(small) // 1024 * 1024])
    with unchanged(path.parent):
        with pytest.raises(data.FormatError, match="larger than the file"):
            data.open(path).load()
        recording = data.open(path, damaged="keep").load()
    assert (
        "its messages are larger than the file: the rest is skipped" in recording.problems[0].text
    )


# ---- the work that it takes ----------------------------------------------------------------------


@pytest.mark.parametrize("count", [10, 1000, 6000])
def test_a_pass_reads_each_row_once(tmp_path, count, monkeypatch):
    """This holds for any number of topics, even if their list is too long for a statement."""
    if count == 6000:
        monkeypatch.setattr(sqlite_rows, "_MOST_SQL", 1000)
    path = tmp_path / "x.db3"
    with closing(sqlite3.connect(path)) as database:
        database.execute(sqlite_recorder.TOPICS)
        database.execute(sqlite_recorder.MESSAGES)
        database.executemany(
            "INSERT INTO topics VALUES (?, ?, 'std_msgs/msg/Float64', 'cdr', '')",
            [(i, f"/t{i}") for i in range(count)],
        )
        database.executemany(
            "INSERT INTO messages VALUES (?, ?, ?, ?)",
            [(i, i % count, i, message(i)) for i in range(2 * count)],
        )
        database.commit()
    bag = sqlite.Sqlite(str(path), Damage())
    with bag.database.connection() as connection:
        steps = []
        connection.set_progress_handler(lambda: steps.append(1), 100)
        found = [topics.tolist() for topics, _, _ in bag.pieces(list(bag.channels))]
        everything = len(steps)
        (one,) = [topics.tolist() for topics, _, _ in bag.pieces([7])]
        connection.set_progress_handler(None, 0)
    assert sum(found, []) == [i % count for i in range(2 * count)]
    assert one == [7, 7]
    assert 100 * everything < 60 * 2 * count + 10_000
    assert 100 * len(steps) < 200 * 2 * count + 10_000
