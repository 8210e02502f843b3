"""A ROS 2 bag in sqlite3: a table of topics and one of messages."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterator
from contextlib import closing
from typing import Any
from urllib.parse import quote

from ._columns import Rows
from ._errors import Damage, FormatError
from ._mcap import Channel

_AT_ONCE = 4 << 20  # bytes of messages


def has_messages(path: str) -> bool:
    """Whether it is a bag, not a database of something else."""
    try:
        with closing(_connect(path)) as database:
            return {"topics", "messages"} <= _tables(database)
    except sqlite3.Error:
        return True  # damaged: opening it tells


class Sqlite:
    """One file. The database is its own index."""

    def __init__(self, path: str, damage: Damage) -> None:
        self.path, self.damage = path, damage
        self.size = os.path.getsize(path)
        self.indexed = False
        self.channels: dict[int, Channel] = {}
        self.counts: dict[int, int] | None = None  # to count takes to read the whole file
        try:
            with closing(_connect(path, damage.keep)) as database:
                self._read_topics(database)
        except sqlite3.Error as error:
            if not damage.keep:
                damage.found(path, "table topics", f"cannot be read: {error}")
            raise FormatError(path, "table topics", f"cannot be read: {error}") from None

    def _read_topics(self, database: sqlite3.Connection) -> None:
        tables = _tables(database)
        if not {"topics", "messages"} <= tables:
            raise FormatError(self.path, "", "is no bag: it has no tables topics and messages")
        definitions = {}
        if "message_definitions" in tables:
            definitions = {
                name: (kind, text)
                for name, kind, text in database.execute(
                    "SELECT topic_type, encoding, encoded_message_definition"
                    " FROM message_definitions"
                )
            }
        for number, topic, name, serialization in database.execute(
            "SELECT id, name, type, serialization_format FROM topics ORDER BY id"
        ):
            kind, text = definitions.get(name, ("", ""))
            self.channels[number] = Channel(number, topic, name, kind, text, serialization)

    def pieces(self, wanted: Collection[int]) -> Iterator[tuple[Any, Any, int]]:
        import numpy as np

        marks = ",".join("?" * len(wanted))
        # Question marks alone are put into it.
        query = f"SELECT topic_id, timestamp, data FROM messages WHERE topic_id IN ({marks})"  # nosec B608
        with closing(_connect(self.path, self.damage.keep)) as database:
            try:
                cursor = database.execute(query + " ORDER BY id", sorted(wanted))
            except sqlite3.DatabaseError as error:
                self.damage.found(self.path, "table messages", f"{error}: its messages are lost")
                return
            read = 0
            more = True
            while more:
                rows, size, more = self._some(cursor, read)
                read += len(rows)
                if not rows:
                    continue
                topics, times, contents = zip(*rows)
                sizes = np.array([len(content) for content in contents], np.int64)
                starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64)
                data = np.frombuffer(b"".join(contents), np.uint8)
                of = Rows(data, starts, sizes, np.array(times, np.int64))
                yield np.array(topics, np.int64), of, size

    def _some(self, cursor: sqlite3.Cursor, before: int) -> tuple[list[Any], int, bool]:
        """Messages of some megabytes, their size, and whether there may be more."""
        rows: list[Any] = []
        size = 0
        try:
            for row in cursor:
                rows.append(row)
                size += len(row[2])
                if size >= _AT_ONCE:
                    return rows, size, True
        except sqlite3.DatabaseError as error:
            place = f"table messages, after {before + len(rows)} messages"
            self.damage.found(self.path, place, f"{error}: the rest is lost")
        return rows, size, False


def _connect(path: str, recover: bool = False) -> sqlite3.Connection:
    """For reading alone: nothing is written beside it. A log of writes there is taken into account.

    Who writes a log shares an index of it, "-shm". Where that is missing nobody does, and SQLite
    would make it and leave it behind; without locks on the file it keeps one in its memory.
    """
    logged, shared = (os.path.exists(path + end) for end in ("-wal", "-shm"))
    mode = "immutable=1" if not logged else "" if shared else "vfs=unix-none"
    address = f"file:{quote(os.path.abspath(path))}?mode=ro&{mode}"
    database = sqlite3.connect(address.rstrip("&"), uri=True)
    if logged and not shared:
        database.execute("PRAGMA locking_mode=EXCLUSIVE")
    if recover:  # pages of a file that is cut off, which sqlite refuses to look at else
        database.execute("PRAGMA writable_schema=ON")
    return database


def _tables(database: sqlite3.Connection) -> set[str]:
    """Those that hold what they show: a view, or a column that is computed, may have no end."""
    names = [
        name
        for name, made in database.execute("SELECT name, sql FROM sqlite_master WHERE type='table'")
        if not (made or "").upper().startswith("CREATE VIRTUAL")
    ]
    columns = "SELECT count(*) FROM pragma_table_xinfo(?) WHERE hidden <> 0"
    return {name for name in names if database.execute(columns, [name]).fetchone() == (0,)}
