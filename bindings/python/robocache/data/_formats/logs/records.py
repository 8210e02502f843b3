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
from .json_blocks import DEEPEST, EXACT, LONGEST, Found, Unlike, columns_of

_MOST = 4096  # names of a table
_SHOWN = 40  # characters of a text
_LARGE = 2**63


@dataclass
class _Values:
    """The values of one name, in the rows that have it."""

    rows: list[Any] = field(default_factory=list)  # arrays of row numbers
    values: list[Any] = field(default_factory=list)  # arrays of the same lengths
    kinds: set[type] = field(default_factory=set)
    rounded: int = 0  # integers above 2**53 in arrays of floats
    first: Any = None

    def add(self, rows: Any, values: Any) -> None:
        """Add values: a list from Python's json, or an array."""
        self.rows.append(rows)
        self.values.append(values if not isinstance(values, list) else self._array(values))
        if not isinstance(values, list) and hasattr(values, "dtype"):
            self.kinds.add({"b": bool, "i": int, "f": float}[values.dtype.kind])

    def _array(self, values: list[Any]) -> Any:
        """Return values as an array, which takes less memory."""
        import numpy as np

        kinds = set(map(type, values))
        self.kinds |= kinds
        if self.first is None:
            self.first = values[0]
        if kinds == {str}:
            return _texts(values)
        if kinds == {bool}:
            return np.array(values)
        if kinds == {int}:
            try:
                return np.array(values, np.int64)
            except OverflowError:
                return np.array(values, object)
        self.rounded += sum(type(value) is int and abs(value) > EXACT for value in values)
        return np.array(list(map(_as_float, values)))


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

    def found_in(
        self, block: bytes, columns: Mapping[str, Any], count: int, is_shared: bool
    ) -> list[Found]:
        """Return the values of the next rows, from columns in Arrow that were parsed from a block.

        ``is_shared``: whether rows of others are in the same columns.

        Raises
        ------
        Unlike
            Python might give other values, or a name is new.
        """
        import numpy as np

        rows = np.arange(self.count, self.count + count)
        found = [
            each
            for name, array in columns.items()
            for each in columns_of(block, name, array, rows, is_shared)
        ]
        for each in found:
            known = self.lengths if isinstance(each.values, list) else self._known(each.values)
            if each.name not in known:
                raise Unlike
            if not each.is_sure and float not in self.numbers[each.name].kinds:
                raise Unlike
        return found

    def take(self, found: Sequence[Found], count: int) -> None:
        """Add what :meth:`found_in` returned."""
        self.count += count
        for each in found:
            if isinstance(each.values, list):
                self.lengths[each.name].update(each.values)
            else:
                self._known(each.values)[each.name].add(each.rows, each.values)

    def _known(self, values: Any) -> dict[str, _Values]:
        return self.numbers if hasattr(values, "dtype") else self.texts

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
            if depth >= DEEPEST:
                self.others[name] = f"is nested deeper than {DEEPEST} objects"
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
        if len(known) > 1 or lengths[0] > LONGEST:
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
                first = str(values.first)[:_SHOWN]
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
        rounded, count = held.rounded, sum(map(len, held.rows))
        for rows, part in zip(held.rows, held.values):
            there[rows] = True
            if dtype == "f8" and part.dtype.kind in "iO":
                rounded += int(((part > EXACT) | (part < -EXACT)).sum())
            if dtype == "f8" and part.dtype.kind == "O":
                part = np.array(list(map(_as_float, part)))
            values[rows] = part
        held.rows.clear()  # the values take as much memory
        held.values.clear()
        if there.sum() < count:
            omitted.append((name, "two fields of an object have this path"))
            return None
        if rounded and dtype == "f8":
            omitted.append((name, f"{rounded:,} integers above 2**53 are rounded to float64"))
        return arrow.array(values, mask=None if there.all() else ~there)

    def _textual(self, held: _Values) -> Any:
        import numpy as np

        arrow = needed("pyarrow", "tables", "JSON lines")
        whole = arrow.chunked_array(held.values, arrow.string())
        places = np.full(self.count, -1)
        places[np.concatenate(held.rows)] = np.arange(len(whole))
        if np.array_equal(places, np.arange(len(whole))):
            return whole
        return whole.take(arrow.array(places, mask=places < 0))


def _texts(values: list[str]) -> Any:
    """Return texts in Arrow, which has no half characters."""
    arrow = needed("pyarrow", "tables", "JSON lines")
    try:
        return arrow.array(values, arrow.string())
    except UnicodeEncodeError:
        whole = [text.encode("utf-8", "backslashreplace").decode() for text in values]
        return arrow.array(whole, arrow.string())


def _varies(lengths: set[int]) -> bool:
    return len(lengths) > 1 or max(lengths) > LONGEST


def _in(arrays: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{name}[" for name in arrays)


def _dtype(held: _Values) -> str:
    if held.kinds == {bool}:
        return "?"
    if float in held.kinds or bool in held.kinds:
        return "f8"
    low = min(int(part.min()) for part in held.values)
    high = max(int(part.max()) for part in held.values)
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
