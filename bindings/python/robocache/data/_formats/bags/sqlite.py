"""A ROS 2 bag in sqlite3: a table of topics and a table of messages."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from typing import Any

from ..._errors import Damage, FormatError, raise_shortage
from ..._file_access import Limit
from ..messages.columns import Rows
from .mcap import Channel
from .sqlite_copies import Text, connect
from .sqlite_files import Database, open_database, unpacked_database
from .sqlite_rows import Messages, OddRows, has_room, shown

_TOPICS = ("id", "name", "type", "serialization_format")
_DEFINITIONS = ("topic_type", "encoding", "encoded_message_definition")


def has_messages(path: str) -> bool:
    """Whether a database is a bag."""
    try:
        with closing(connect(os.path.realpath(path))) as connection:
            if _is_bag(connection):
                return True  # this may change, but a copy is not needed
        database = open_database(path, Damage("keep"), wait=0)
        with database.connection() as connection:
            found = _is_bag(connection)
        database.check()
        return found
    except (sqlite3.Error, FormatError):
        raise_shortage(path)
        return True  # damaged, or being written: opening it reports that


class Sqlite:
    """One file. The database is its own index."""

    def __init__(self, path: str, damage: Damage, packed: Limit | None = None) -> None:
        """``packed``: for a file that is compressed as a whole, the limit of its unpacked size."""
        self.path, self.damage, self.packed = path, damage, packed
        self.packed_size = os.path.getsize(path)
        self.indexed = False
        self.channels: dict[int, Channel] = {}
        self.counts: dict[int, int] | None = None  # counting would read the whole file
        self._odd = OddRows(path, damage)
        self._lost: set[int] = set()  # topics that are not read
        self._is_compared = False
        self._database: Database | None = None
        fault = ""
        try:
            self.size = self.database.size
            with self.database.connection() as connection:
                self._read_topics(connection)
            self.database.check()
        except MemoryError:
            if not has_room(os.path.getsize(path)):
                raise
            fault = "cannot be read: a value is damaged"
        except sqlite3.Error as error:
            raise_shortage(path)
            fault = f"cannot be read: {error}"
        if fault:
            self.database.check()
            if not damage.keep:
                damage.found(path, "table topics", fault)
            raise FormatError(path, "table topics", fault)

    @property
    def database(self) -> Database:
        if self._database is None and self.packed is not None:
            self._database = unpacked_database(self.path, self.packed, self.damage.keep)
        elif self._database is None:
            self._database = open_database(self.path, self.damage)
        return self._database

    def __getstate__(self) -> dict[str, Any]:
        """Drop a copy of the database, which stays with the process that made it."""
        state = self.__dict__.copy()
        if self._database is not None and self._database.is_copy:
            state["_database"] = None
        return state

    # ---- topics ---------------------------------------------------------------------------------

    def _read_topics(self, connection: sqlite3.Connection) -> None:
        if not _is_bag(connection):
            raise FormatError(
                self.path, "", "is not a bag: it lacks the tables topics and messages"
            )
        definitions = self._definitions(connection)
        query = f"SELECT rowid, {', '.join(_TOPICS)} FROM topics NOT INDEXED ORDER BY rowid"  # noqa: S608
        rows: dict[int, int] = {}  # of each topic
        for row, *values in connection.execute(query):
            number, texts = values[0], self._texts("topics", row, _TOPICS[1:], values[1:])
            if type(number) is not int:
                self._odd.add("topics", row, f"id is {shown(number)}, expected an integer")
            elif number in rows:
                self._odd.add("topics", row, f"id {number} is also the id of row {rows[number]}")
            elif texts is None:
                self._lost.add(number)
            else:
                topic, name, serialization = texts
                kind, text = definitions.get(name, ("", ""))
                self.channels[number] = Channel(number, topic, name, kind, text, serialization)
            if type(number) is int:
                rows.setdefault(number, row)
        self._count_lost(connection)
        self._odd.finish()

    def _definitions(self, connection: sqlite3.Connection) -> dict[str, tuple[str, str]]:
        """Return the encoding and the text of each type."""
        if "message_definitions" not in _tables(connection):
            return {}
        table, found = "message_definitions", dict[str, tuple[str, str]]()
        query = f"SELECT rowid, {', '.join(_DEFINITIONS)} FROM {table} NOT INDEXED ORDER BY rowid"  # noqa: S608
        for row, *values in connection.execute(query):
            texts = self._texts(table, row, _DEFINITIONS, values)
            if texts is None:
                continue
            name, kind, text = texts
            if found.setdefault(name, (kind, text)) != (kind, text):
                self._odd.add(
                    table, row, f"defines {name!r}, which an earlier row defines differently"
                )
        return found

    def _texts(
        self, table: str, row: int, names: Collection[str], values: list[Any]
    ) -> list[str] | None:
        """Return the texts of a row, decoded as UTF-8; None if one of them is not a text."""
        texts = []
        for name, value in zip(names, values):
            if not isinstance(value, bytes):
                self._odd.add(table, row, f"{name} is {shown(value)}, expected text")
                return None
            text = value.decode("utf-8", "backslashreplace")
            if type(value) is bytes or text.encode() != value:
                what = "a blob" if type(value) is bytes else "not UTF-8"
                self._odd.remark(table, row, f"{name} is {what}, and is read as {text!r}")
            texts.append(text)
        return texts

    def _count_lost(self, connection: sqlite3.Connection) -> None:
        for number in sorted(self._lost):
            query = "SELECT count(*) FROM messages NOT INDEXED WHERE topic_id = ?"
            try:
                (count,) = connection.execute(query, [number]).fetchone()
            except sqlite3.DatabaseError:
                continue  # reading the messages reports that
            self.damage.found(
                self.path, f"table topics, id {number}", f"its {count:,} messages are skipped"
            )

    # ---- messages -------------------------------------------------------------------------------

    def pieces(self, wanted: Collection[int]) -> Iterator[tuple[Any, Any, int]]:
        import numpy as np

        known = self._lost.union(self.channels)
        try:
            with self.database.connection() as connection:
                messages = Messages(
                    self.database, connection, self._odd, self.damage, set(wanted), known
                )
                for topics, times, contents in messages.blocks():
                    sizes = np.array([len(content) for content in contents], np.int64)
                    starts = np.cumsum(sizes) - sizes
                    data = np.frombuffer(b"".join(contents), np.uint8)
                    rows = Rows(data, starts, sizes, np.array(times, np.int64))
                    yield np.array(topics, np.int64), rows, int(sizes.sum())
                self._compare_with_index(connection)
        except MemoryError:
            raise_shortage(self.path)
            raise

    def _compare_with_index(self, connection: sqlite3.Connection) -> None:
        """Find rows that a damaged page hides but an index of the table still has."""
        if self._is_compared:
            return
        self._is_compared = True
        count = "SELECT count(*) FROM messages"
        try:
            listed = "SELECT name FROM pragma_index_list('messages') WHERE partial = 0"
            names = [name.decode() for (name,) in connection.execute(listed)]
            if not names:
                return
            name = names[0].replace('"', '""')
            (found,) = connection.execute(f"{count} NOT INDEXED").fetchone()
        except (sqlite3.DatabaseError, UnicodeDecodeError):
            raise_shortage(self.path)
            return  # damage of the table was reported
        try:
            (expected,) = connection.execute(f'{count} INDEXED BY "{name}"').fetchone()
        except sqlite3.DatabaseError as error:
            self.database.check()
            text = f"its index cannot be read: {error}; some of its {found:,} rows may be wrong"
            self.damage.found(self.path, "table messages", text)
            return
        self.database.check()
        if found < expected:
            text = f"has {found:,} of the {expected:,} rows in its index: the others are missing"
            self.damage.found(self.path, "table messages", text)
        elif found > expected:
            text = f"has {found:,} rows, but its index has {expected:,}"
            self.damage.note(self.path, "table messages", text)


def _is_bag(connection: sqlite3.Connection) -> bool:
    return {"topics", "messages"} <= _tables(connection)


def _tables(connection: sqlite3.Connection) -> set[str]:
    """Return the stored tables: views and computed columns may be endless."""
    found = set()
    for name, made in connection.execute("SELECT name, sql FROM sqlite_master WHERE type='table'"):
        if not (isinstance(name, Text) and isinstance(made, Text)):
            continue
        columns = "SELECT count(*) FROM pragma_table_xinfo(?) WHERE hidden <> 0"
        text = name.decode("utf-8", "backslashreplace")
        is_virtual = made.upper().startswith(b"CREATE VIRTUAL")
        if not is_virtual and connection.execute(columns, [text]).fetchone() == (0,):
            found.add(text)
    return found
