"""JSON objects as the rows of tables, whose times are found as in CSV files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..._errors import FormatError, LeftOut, needed
from ..._file_access import Limit
from ..._options import Options
from ..._source import StreamInfo
from ..tables.streams import Table, Wanted, of_table
from ..tables.tables import Tables
from ..tables.units import scales_of

_DEEPEST = 32  # levels of nested objects
_LONGEST = 64  # elements of an array that become channels
_MOST = 4096  # names of a table
_SHOWN = 40  # characters of a text
_LARGE = 2**63
_EXACT = 2**53


@dataclass
class _Values:
    """The values of one name, in the rows that have it."""

    rows: list[Any] = field(default_factory=list)  # arrays of row numbers
    values: list[Any] = field(default_factory=list)  # lists of numbers
    kinds: set[type] = field(default_factory=set)

    def add(self, rows: Any, values: list[Any]) -> None:
        self.rows.append(rows)
        self.values.append(values)
        self.kinds.update(set(map(type, values)))


class Rows:
    """Rows of a table, from objects that may have different names."""

    def __init__(self) -> None:
        self.count = 0
        self.numbers: dict[str, _Values] = {}
        self.texts: dict[str, _Values] = {}
        self.lengths: dict[str, set[int]] = {}
        self.others: dict[str, str] = {}  # names that are not channels, and the reasons

    def add(self, objects: Sequence[dict[str, Any]]) -> None:
        """Add objects as the next rows."""
        import numpy as np

        rows = np.arange(self.count, self.count + len(objects))
        self.count += len(objects)
        self._take_objects("", rows, objects, 0)

    def _take_objects(self, prefix: str, rows: Any, objects: Sequence[Any], depth: int) -> None:
        shapes: dict[tuple[str, ...], list[int]] = {}
        for i, each in enumerate(objects):
            shapes.setdefault(tuple(each), []).append(i)
        for names, places in shapes.items():
            own = rows[places]
            columns = zip(*(objects[i].values() for i in places))
            for name, values in zip(names, columns):
                self._take(f"{prefix}{name}", own, values, depth)

    def _take(self, name: str, rows: Any, values: Sequence[Any], depth: int) -> None:
        kinds = set(map(type, values))
        if len(kinds) > 1:
            for kind in (dict, list, str, type(None)):
                if kind in kinds:
                    places = [i for i, value in enumerate(values) if type(value) is kind]
                    self._take(name, rows[places], [values[i] for i in places], depth)
            apart = (dict, list, str, type(None))
            places = [i for i, value in enumerate(values) if type(value) not in apart]
            if places:
                self._add(self.numbers, name, rows[places], [values[i] for i in places])
            return
        kind = next(iter(kinds), type(None))
        if kind is str:
            self._add(self.texts, name, rows, list(values))
        elif kind is dict or kind is list:
            if depth >= _DEEPEST:
                self.others[name] = f"is nested deeper than {_DEEPEST} objects"
            elif kind is dict:
                self._take_objects(f"{name}.", rows, values, depth + 1)
            else:
                self._take_lists(name, rows, values, depth)
        elif kind is not type(None):
            self._add(self.numbers, name, rows, list(values))

    def _take_lists(self, name: str, rows: Any, values: Sequence[Any], depth: int) -> None:
        lengths = list(map(len, values))
        known = self.lengths.setdefault(name, set())
        known.update(lengths)
        if len(known) > 1 or lengths[0] > _LONGEST:
            return
        for i, elements in enumerate(zip(*values)):
            self._take(f"{name}[{i}]", rows, elements, depth + 1)

    def _add(self, to: dict[str, _Values], name: str, rows: Any, values: list[Any]) -> None:
        if name not in to:
            if len(self.numbers) + len(self.texts) >= _MOST:
                self.others["other names"] = f"are more than {_MOST:,}, and are not read"
                return
            to[name] = _Values()
        to[name].add(rows, values)

    def table(self, path: str, limit: Limit) -> tuple[Any, list[tuple[str, str]]]:
        """Return an Arrow table, and what it does not hold: names with reasons."""
        arrow = needed("pyarrow", "tables", "JSON lines")
        omitted = list(self.others.items())
        varying = [name for name, known in self.lengths.items() if _varies(known)]
        for name in varying:
            least, most = min(self.lengths[name]), max(self.lengths[name])
            omitted.append((name, f"array of {least} to {most} elements"))
        names = [name for name in self.numbers if not name.startswith(_in(varying))]
        size = os.path.getsize(path)
        limit.require(path, f"{len(names):,} names", self.count * len(names) * 9, size)
        columns: dict[str, Any] = {}
        for name in names:
            own = self._numeric(self.numbers[name], name, omitted)
            if own is not None:
                columns[name] = own
        for name, values in self.texts.items():
            if name in columns:
                first = str(values.values[0][0])[:_SHOWN]
                count = sum(map(len, values.rows))
                omitted.append((name, f"is a text in {count:,} rows, such as {first!r}"))
            elif not name.startswith(_in(varying)):
                columns[name] = self._textual(values)
        return arrow.table(columns), omitted

    def _numeric(self, held: _Values, name: str, omitted: list[tuple[str, str]]) -> Any:
        import numpy as np

        arrow = needed("pyarrow", "tables", "JSON lines")
        there = np.zeros(self.count, bool)
        dtype = _dtype(held)
        values = np.zeros(self.count, dtype)
        for rows, part in zip(held.rows, held.values):
            there[rows] = True
            values[rows] = [_as_float(v) for v in part] if dtype == "f8" else part
        if there.sum() < sum(map(len, held.rows)):
            omitted.append((name, "two fields of an object have this path"))
            return None
        if dtype == "f8" and int in held.kinds:
            large = sum(abs(v) > _EXACT for part in held.values for v in part if type(v) is int)
            if large:
                omitted.append((name, f"{large:,} integers above 2**53 are rounded to float64"))
        return arrow.array(values, mask=~there)

    def _textual(self, held: _Values) -> Any:
        arrow = needed("pyarrow", "tables", "JSON lines")
        texts: list[str | None] = [None] * self.count
        for rows, part in zip(held.rows, held.values):
            for row, text in zip(rows.tolist(), part):
                texts[row] = text.encode("utf-8", "backslashreplace").decode()
        return arrow.array(texts, arrow.string())


def _varies(lengths: set[int]) -> bool:
    return len(lengths) > 1 or max(lengths) > _LONGEST


def _in(arrays: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{name}[" for name in arrays)


def _dtype(held: _Values) -> str:
    if held.kinds == {bool}:
        return "?"
    if float in held.kinds or bool in held.kinds:
        return "f8"
    low = min(min(part) for part in held.values)
    high = max(max(part) for part in held.values)
    if -_LARGE <= low and high < _LARGE:
        return "i8"
    return "u8" if 0 <= low and high < 2 * _LARGE else "f8"


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


# ---- streams -------------------------------------------------------------------------------------


def table_of(name: str, path: str, rows: Rows, limit: Limit, wanted: Wanted) -> Table:
    """Return the streams of some rows, on their column of times."""
    arrow, omitted = rows.table(path, limit)
    made = of_table(name, path, arrow, wanted)
    made.left_out += [LeftOut(f"{name}: {place}", reason) for place, reason in omitted]
    return made


class Records(Tables):
    """A source of streams from objects in one file (``_source.Source``)."""

    def __init__(
        self,
        path: str,
        options: Options,
        kind: str,
        rows: Mapping[str, Rows],
        left_out: Sequence[LeftOut] = (),
        unit: str | None = None,
    ) -> None:
        self.kind = kind
        self.path, self.damage, self.limit = path, options.damage, options.limit
        self.files = dict.fromkeys(rows, path)
        self.stems = {name: name for name in rows}
        self._left_out = list(left_out)
        wanted = Wanted(options.time, options.rate)
        self.tables = {
            name: table_of(name, path, each, options.limit, wanted) for name, each in rows.items()
        }
        for table in self.tables.values():
            self._note_untimed(path, table)
            for odd in table.odd:
                self.damage.note(path, odd.place, odd.description)
        self._require_names_apart()
        if options.time is not None:
            self._require_column(options.time)
        clocks = {name: t.clock for name, t in self.tables.items() if t.clock is not None}
        self.unit, self.scales = scales_of(path, clocks, options.unit or unit)

    @property
    def streams(self) -> dict[str, StreamInfo]:
        import dataclasses

        known = super().streams
        return {name: dataclasses.replace(info, kind="JSON") for name, info in known.items()}


def refuse_many(path: str, names: Mapping[Any, Any], key: str) -> None:
    """Refuse a file whose objects have too many values of a key."""
    if len(names) > _MOST:
        raise FormatError(path, "", f"has more than {_MOST:,} values of {key!r}, expected topics")
