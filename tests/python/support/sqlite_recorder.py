"""A recorder of SQLite bags at full speed, in a separate process.

Its messages are numbers that count up, 10 ms apart. Each transaction holds some; with a small cache
of pages, SQLite writes parts of a transaction to the file before it is committed.
"""

from __future__ import annotations

import sqlite3
import struct
import sys

TOPICS = (
    "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, "
    "serialization_format TEXT NOT NULL, offered_qos_profiles TEXT NOT NULL)"
)
MESSAGES = (
    "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL, "
    "timestamp INTEGER NOT NULL, data BLOB NOT NULL)"
)
STEP = 10_000_000  # ns


def message(value):
    """std_msgs/msg/Float64, as CDR."""
    return b"\0\1\0\0" + struct.pack("<d", value)


def tables(database, topic="/a"):
    database.execute(TOPICS)
    database.execute(MESSAGES)
    database.execute("CREATE INDEX timestamp_idx ON messages(timestamp)")
    row = (topic, "std_msgs/msg/Float64", "cdr", "")
    database.execute("INSERT INTO topics VALUES (1, ?, ?, ?, ?)", row)


def rows(first, count):
    return [(i, i * STEP, message(i)) for i in range(first, first + count)]


def record(path, mode, page=4096, locking="NORMAL", batch=20, most=20_000):
    """Write transactions one after the other; some overwrite others and are rolled back."""
    database = sqlite3.connect(path, isolation_level=None)
    database.execute(f"PRAGMA page_size={page}")
    database.execute(f"PRAGMA journal_mode={mode}")
    database.execute("PRAGMA synchronous=OFF")
    database.execute(f"PRAGMA locking_mode={locking}")
    database.execute("PRAGMA cache_size=5")
    database.execute(f"PRAGMA wal_autocheckpoint={4_096_000 // page}")
    tables(database)
    done, turns = 0, 0
    print("ready", flush=True)
    while turns < 10_000_000:
        turns += 1
        database.execute("BEGIN")
        if turns % 7 == 0 and mode not in ("OFF",):
            database.execute("UPDATE messages SET data = ? WHERE id > ?", [message(-1), done - 300])
            database.execute("ROLLBACK")
            continue
        new = rows(done + 1, batch)
        database.executemany("INSERT INTO messages VALUES (?, 1, ?, ?)", new)
        database.execute("COMMIT")
        done += batch
        if done >= most:  # begin anew: a file that grows for ever takes longer and longer to read
            database.execute("DELETE FROM messages")
            done = 0


if __name__ == "__main__":
    import threading

    given = sys.argv[1:]
    runs = threading.Thread(
        target=record, args=(given[0], given[1], int(given[2]), given[3]), daemon=True
    )
    runs.start()
    sys.stdin.read()
