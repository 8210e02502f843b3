"""SQLite bags in each state in which a recorder may leave them, and what a folder holds."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import stat
import struct
from contextlib import closing, contextmanager

import sqlite_recorder
from sqlite_recorder import message, rows

BATCH, BATCHES = 100, 5


def listed(folder):
    """All that a reader might change: names, inodes, sizes, times and contents."""
    found = {".": os.stat(folder).st_mtime_ns}
    for entry in os.scandir(folder):
        of = entry.stat(follow_symlinks=False)
        content = b""
        if stat.S_ISREG(of.st_mode):
            with open(entry.path, "rb") as file:
                content = hashlib.sha256(file.read()).digest()
        found[entry.name] = (of.st_ino, of.st_mode, of.st_size, of.st_mtime_ns, content)
    return found


@contextmanager
def unchanged(*folders):
    before = [listed(folder) for folder in folders]
    yield
    assert [listed(folder) for folder in folders] == before


def connected(path, mode="DELETE", page=1024):
    database = sqlite3.connect(path, isolation_level=None)
    database.execute(f"PRAGMA page_size={page}")
    database.execute(f"PRAGMA journal_mode={mode}")
    database.execute("PRAGMA wal_autocheckpoint=0")
    database.execute("PRAGMA cache_size=5")
    return database


def add(database, first, count=BATCH, commit=True):
    database.execute("BEGIN")
    insert = "INSERT INTO messages VALUES (?, 1, ?, ?)"
    database.executemany(insert, rows(first, count))
    if commit:
        database.execute("COMMIT")


def copied(path, folder, ends=("", "-wal", "-journal")):
    """Copy the files as a crash leaves them. The recorder continues with its own files."""
    folder.mkdir()
    for end in ends:
        if os.path.exists(f"{path}{end}"):
            shutil.copy(f"{path}{end}", folder / f"bag.db3{end}")
    os.utime(folder / "bag.db3", ns=(0, 0))  # a while ago
    return folder / "bag.db3"


def logged(folder, batches=BATCHES, unfinished=0, page=1024):
    """With a write-ahead log that holds some transactions, one after the other."""
    made = folder / "made"
    made.mkdir()
    with closing(connected(made / "bag.db3", "WAL", page)) as database:
        sqlite_recorder.tables(database)
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for i in range(batches):
            add(database, i * BATCH + 1)
        if unfinished:
            add(database, batches * BATCH + 1, unfinished, commit=False)
        return copied(made / "bag.db3", folder / "bag")


def journaled(folder, mode="DELETE", synchronous="FULL", page=1024):
    """With a journal that is hot: of a transaction that overwrote all messages and added some."""
    made = folder / "made"
    made.mkdir()
    with closing(connected(made / "bag.db3", mode, page)) as database:
        database.execute(f"PRAGMA synchronous={synchronous}")
        sqlite_recorder.tables(database)
        for i in range(BATCHES):
            add(database, i * BATCH + 1)
        database.execute("BEGIN")
        database.execute("UPDATE messages SET data = ?, timestamp = timestamp + 7", [message(-1)])
        insert = "INSERT INTO messages VALUES (?, 1, ?, ?)"
        database.executemany(insert, rows(BATCHES * BATCH + 1, 2000))
        path = copied(made / "bag.db3", folder / "bag")
        database.execute("ROLLBACK")
    return path


def by_sqlite(path, folder):
    """The messages as SQLite itself finds them, in a copy."""
    copy = copied(path, folder)
    with closing(sqlite3.connect(copy)) as database:
        found = database.execute("SELECT timestamp, data FROM messages ORDER BY id").fetchall()
    return [time for time, _ in found], [struct.unpack_from("<d", data, 4)[0] for _, data in found]


def edited(path, at, change):
    content = bytearray(path.read_bytes())
    content[at : at + len(change)] = change
    path.write_bytes(content)


def flipped(path, at):
    edited(path, at, bytes([path.read_bytes()[at] ^ 1]))
