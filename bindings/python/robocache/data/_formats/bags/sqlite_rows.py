"""Rows of an SQLite bag: its messages in blocks, and odd rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Any

from ..._errors import Damage, raise_shortage
from .sqlite_copies import Text
from .sqlite_files import Database

_AT_ONCE = 4 << 20  # bytes of messages
_ROWS = 1 << 16  # messages
_MOST_SQL = 900_000  # characters: the limit of SQLite is a million
_NAMED = 6  # odd rows per table that are named
_FIRST, _LAST = -(2**63), 2**63 - 1  # row numbers
_GAPS = 256  # damaged places that are skipped

Block = tuple[list[int], list[int], list[bytes]]  # topics, times and contents of messages


def shown(value: Any) -> str:
    """Describe a value of a row for a message."""
    if value is None:
        return "NULL"
    if type(value) is Text:
        return f"the text {value.decode('utf-8', 'backslashreplace')[:40]!r}"
    return f"a blob of {len(value):,} bytes" if isinstance(value, bytes) else f"{value!r}"


def has_room(size: int) -> bool:
    """Whether there is memory for a row of a database of ``size`` bytes.

    Python's sqlite3 also raises MemoryError for damaged values, even if there is memory.
    """
    try:
        return len(bytearray(2 * size + _AT_ONCE)) > 0
    except MemoryError:
        return False


class OddRows:
    """Rows that are damaged or cannot be read: each is refused, or reported once."""

    def __init__(self, path: str, damage: Damage) -> None:
        self._path, self._damage = path, damage
        self._seen: dict[
            str, set[tuple[int, bool]]
        ] = {}  # rows by table, and whether they are lost
        self._more: dict[str, int] = {}  # number of rows that are not named, by table

    def add(self, table: str, row: int, reason: str, *, last: int | None = None) -> None:
        """Report a row that is lost, or all rows up to ``last``."""
        place = f"table {table}, row {row}"
        if last is not None and last != row:
            place, reason = f"table {table}, rows {row} to {last}", f"{reason}: they are skipped"
        else:
            reason = f"{reason}: the row is skipped"
        self._add(table, (row, True), place, reason)

    def remark(self, table: str, row: int, reason: str) -> None:
        """Report a row that is damaged, but not lost."""
        self._add(table, (row, False), f"table {table}, row {row}", reason)

    def _add(self, table: str, key: tuple[int, bool], place: str, text: str) -> None:
        seen = self._seen.setdefault(table, set())
        if key in seen:
            return
        seen.add(key)
        if not self._damage.keep or len(seen) <= _NAMED:
            self._damage.found(self._path, place, text)
        else:
            self._more[table] = self._more.get(table, 0) + 1

    def finish(self) -> None:
        """Report the number of rows that were not named."""
        for table, count in self._more.items():
            total = len(self._seen[table])
            text = f"{count:,} more rows or ranges of rows are damaged, {total:,} in all"
            self._damage.found(self._path, f"table {table}", text)
        self._more.clear()


def _follows(number: Any, last: int) -> bool:
    return number.__class__ is int and number > last


class _Disorder(sqlite3.DatabaseError):
    """Rows are not in order: pages are used more than once."""


class _End(sqlite3.DatabaseError):
    """Nothing after this place is read."""


class Messages:
    """One pass over the table of messages, in the order of its rows."""

    def __init__(
        self,
        database: Database,
        connection: sqlite3.Connection,
        odd: OddRows,
        damage: Damage,
        wanted: AbstractSet[int],
        known: AbstractSet[int],
    ) -> None:
        self._database, self._connection = database, connection
        self._odd, self._damage = odd, damage
        self._wanted, self._known = wanted, known
        self._size = 0  # bytes of messages that were read
        self._last = _FIRST - 1  # the last row that was read
        self._rows: list[Any] = []
        self._gaps = 0  # damaged places
        self._pending: tuple[int, str] | None = None  # a row, and the error after it
        # Rows with an unknown topic are read as well, to report them.
        others = ",".join(str(number) for number in sorted(known - wanted))
        self._which = ""
        if len(others) < _MOST_SQL:
            self._which = f" AND (topic_id IS NULL OR topic_id NOT IN ({others}))"

    def blocks(self) -> Iterator[Block]:
        """Yield messages of the wanted topics."""
        start: int | None = _FIRST
        while start is not None:
            failed: sqlite3.DatabaseError | None = None
            cursor = self._connection.cursor()
            try:
                more = True
                while more:
                    try:
                        more = self._read_some(cursor, start)
                        start = None
                    except MemoryError:
                        self._require_room()
                        failed, more = sqlite3.DataError("a value cannot be read"), False
                    except sqlite3.DatabaseError as error:
                        raise_shortage(self._database.path)
                        failed, more = error, False
                    self._database.check()
                    self._report_pending(failed)
                    block = self._sorted_out(self._rows)
                    if block[0]:
                        yield block
            finally:
                cursor.close()
            if failed is not None:
                start = self._after(failed, start)
                block = self._sorted_out(self._rows)
                if block[0]:
                    yield block
        self._odd.finish()

    def _read_some(self, cursor: sqlite3.Cursor, start: int | None) -> bool:
        """Read messages of some megabytes into ``_rows``; return whether there may be more."""
        self._rows = rows = []
        size = 0
        if start is not None:
            cursor.execute(self._query("rowid, topic_id, timestamp, data"), [start])
        more = False
        try:
            for row in cursor:
                rows.append(row)
                content = row[3]
                if content.__class__ is bytes:
                    size += len(content)
                    if size >= _AT_ONCE:
                        more = True
                        break
                if len(rows) >= _ROWS:
                    more = True
                    break
        finally:
            self._require_growth(size)
        return more

    def _require_growth(self, size: int) -> None:
        """Check that row numbers grow and the messages fit the file: each page is read once."""
        rows, last = self._rows, self._last
        numbers = [row[0] for row in rows]
        if not all(map(_follows, numbers, [last, *numbers])):
            for count, number in enumerate(numbers):
                if not _follows(number, last):
                    del rows[count:]
                    self._last = last
                    raise _Disorder(f"the next row is {number}: rows are missing or repeated")
                last = number
        self._last = numbers[-1] if numbers else last
        self._size += size
        if self._size > self._database.size:
            raise _End("its messages are larger than the file")

    def _query(self, columns: str, condition: str | None = None) -> str:
        # Only numbers are inserted.
        condition = self._which if condition is None else condition
        return (
            f"SELECT {columns} FROM messages NOT INDEXED WHERE rowid >= ?{condition} ORDER BY rowid"  # noqa: S608
        )

    def _sorted_out(self, rows: list[Any]) -> Block:
        """Select the messages whose values have the right types. The others are odd."""
        if not rows:
            return [], [], []
        _, topics, times, contents = map(list, zip(*rows))
        kinds = (set(map(type, topics)), set(map(type, times)), set(map(type, contents)))
        if kinds == ({int}, {int}, {bytes}) and self._wanted >= set(topics):
            return topics, times, contents
        good = []
        for row in rows:
            reason = self._oddity(row)
            if reason:
                self._odd.add("messages", row[0], reason)
            elif row[1] in self._wanted:
                good.append(row)
        if not good:
            return [], [], []
        _, topics, times, contents = map(list, zip(*good))
        return topics, times, contents

    def _oddity(self, row: tuple[Any, ...]) -> str:
        """Describe what is wrong with a message; "" if it is right."""
        _, topic, time, content = row
        if type(topic) is not int or topic not in self._known:
            return f"topic_id is {shown(topic)}, expected the id of a topic"
        if type(time) is not int:
            return f"timestamp is {shown(time)}, expected an integer of nanoseconds"
        if type(content) is not bytes:
            return f"data is {shown(content)}, expected a blob"
        return ""

    # ---- after damage ----------------------------------------------------------------------------

    def _after(self, error: sqlite3.DatabaseError, start: int | None) -> int | None:
        """Return the first row after damage; None if no later row can be read."""
        begin = self._last + 1 if start is None else max(self._last + 1, start)
        self._rows = []
        self._gaps += 1
        if isinstance(error, _End) or begin > _LAST or self._gaps > _GAPS:
            self._rest_is_lost(error, self._last)
            return None
        if isinstance(error, _Disorder):
            self._odd.remark("messages", self._last, str(error))
            if begin != start:
                return begin
            self._rest_is_lost(error, self._last)  # SQLite does not find the next row
            return None
        row, _ = self._one("rowid, topic_id, timestamp, data", begin)
        if row is not None:  # Python has dropped it, because the next row cannot be read
            self._pending = (self._last, str(error))
            self._rows, self._last = [row], row[0]
            return self._last + 1 if self._last < _LAST else None
        if not self._damage.keep:
            place = f"table messages, after {self._last_row()}"
            self._damage.found(
                self._database.path, place, f"{error}: the messages there are skipped"
            )
        row, is_readable = self._one("rowid", begin)
        if not is_readable:
            return self._after_pages(error, begin)
        if row is None:
            self._rest_is_lost(error, self._last)
            return None
        self._odd.add("messages", row[0], f"data cannot be read: {error}")
        return int(row[0]) + 1 if row[0] < _LAST else None

    def _report_pending(self, failed: sqlite3.DatabaseError | None) -> None:
        """Report an error of an earlier read, unless the next read fails at the same place."""
        if self._pending is not None and (failed is None or self._rows):
            last, reason = self._pending
            reason = f"the rows after it cannot be read together, and some may be missing: {reason}"
            self._odd.remark("messages", last, reason)
        self._pending = None

    def _one(self, columns: str, begin: int, condition: str | None = None) -> tuple[Any, bool]:
        """Read the next row, or None after the last row; also return whether that succeeded."""
        query = self._query(columns, condition) + " LIMIT 1"
        try:
            row = self._connection.execute(query, [begin]).fetchone()
        except MemoryError:
            self._require_room()
            return None, False
        except sqlite3.DatabaseError:
            raise_shortage(self._database.path)
            return None, False
        return (row, True) if row is None or row[0] >= begin else (None, False)

    def _after_pages(self, error: sqlite3.DatabaseError, begin: int) -> int | None:
        """Return the first row after damaged pages: by doubling steps, then by bisection."""
        last = begin - 1
        try:
            for row in self._connection.execute(self._query("rowid", ""), [begin]):
                last = max(last, row[0])
        except sqlite3.DatabaseError:
            row, _ = self._one("rowid", min(last + 1, _LAST), "")  # as above
            last = last if row is None else row[0]
        first = bad = max(last + 1, begin)
        step, good = 1, None
        while good is None and first + step <= _LAST:
            if self._one("rowid", first + step, "")[1]:
                good = first + step
            else:
                bad = first + step
                step *= 2
        if good is None:
            self._rest_is_lost(error, last)
            return None
        while good - bad > 1:
            middle = (good + bad) // 2
            if self._one("rowid", middle, "")[1]:
                good = middle
            else:
                bad = middle
        self._odd.add("messages", first, f"cannot be read: {error}", last=good - 1)
        return good

    def _require_room(self) -> None:
        """Raise the current MemoryError, if memory is short."""
        if not has_room(self._database.size):
            raise

    def _rest_is_lost(self, error: sqlite3.DatabaseError, last: int) -> None:
        self._last = max(self._last, last)
        place = f"table messages, after {self._last_row()}"
        self._damage.found(self._database.path, place, f"{error}: the rest is skipped")

    def _last_row(self) -> str:
        return f"row {self._last}" if self._last >= _FIRST else "no row"
