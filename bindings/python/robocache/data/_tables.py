"""CSV and Parquet files, one or a folder of them: a stream a file, with a column of times."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from ._errors import FormatError, LeftOut, needed
from ._folders import Folder
from ._open import Options, head
from ._parquet import batches_of, column, table_without_nulls
from ._progress import progress
from ._recording import Recording
from ._source import Piece, StreamInfo

_PARQUET = b"PAR1"
_LOOK = 1 << 14  # bytes that tell whether a text is a table
_DELIMITERS = ",;\t"
_ROWS = 1 << 16  # of a piece
_TIME = re.compile(
    r"^(?:log_|header_|receive_)?(?:timestamps?|times?|stamp|t|ts)"
    r"(?:[_ .]*[\[(]?(ns|us|ms|s|sec|seconds|nanoseconds|microseconds|milliseconds)[\])]?)?$",
    re.IGNORECASE,
)
_UNITS = {"sec": "s", "seconds": "s", "nanoseconds": "ns", "microseconds": "us"}
_UNITS["milliseconds"] = "ms"


def sniff(path: str) -> bool:
    if os.path.isdir(path):
        return any(_is_table(entry.path) for entry in os.scandir(path) if entry.is_file())
    return _is_table(path)


def open(path: str, options: Options) -> Recording:
    needed("pyarrow", "tables", "a table")
    files = {os.path.basename(path): path}
    if os.path.isdir(path):
        folder = Folder(path, options.follow_links)
        names = sorted(e.name for e in os.scandir(path) if e.is_file() and _is_table(e.path))
        files = {name: folder.file(name) for name in names}
    return Recording(_Tables(path, files, options), progress=options.progress)


def _is_table(path: str) -> bool:
    if path.endswith((".json", ".jsonl", ".md", ".py", ".html")):
        return False
    start = head(path, _LOOK)
    return start.startswith(_PARQUET) or _delimiter(start) is not None


def _delimiter(start: bytes) -> str | None:
    """What separates the columns of a text; None of what is no table."""
    lines = start.splitlines()[:4] if b"\n" in start[:-1] else []
    try:
        texts = [line.decode("utf-8-sig") for line in lines]
    except UnicodeDecodeError:
        return None
    for delimiter in _DELIMITERS:
        rows = [text.split(delimiter) for text in texts if text]
        if len(rows) < 2 or len(rows[0]) < 2 or len(rows[0]) != len(rows[1]):
            continue
        heads, second = rows[0], rows[1]
        if sum(map(_is_number, second)) >= 1 and not any(map(_is_number, filter(None, heads))):
            return delimiter
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass
class _Table:
    """The streams of one file, or of some rows of it."""

    streams: dict[str, tuple[list[str], Any, dict[str, Any], list[str]]]
    unit: str | None
    left_out: list[LeftOut]
    columns: list[str]  # which these are made of
    rows: int | None = None  # of a file that is read later, of which these are the streams


class _Tables:
    """A source of streams (``_source.Source``).

    CSV is read at once, for all of its rows tell what kinds of numbers there are, and where none.
    Parquet tells both before, mostly, and then is read piece by piece.
    """

    kind = "tables"

    def __init__(self, path: str, files: dict[str, str], options: Options) -> None:
        self.path, self.files, self.damage = path, files, options.damage
        self.options = options
        self.tables: dict[str, _Table] = {}
        for name, file in files.items():
            try:
                self.tables[name] = _told(name, file) or _streams(name, file, _opened(file))
            except FormatError as error:
                if len(files) == 1:
                    raise
                self.damage.found(error.path, error.place, error.reason)
        units = {table.unit for table in self.tables.values()} - {None}
        self.unit = options.unit or (units.pop() if len(units) == 1 else None)

    @property
    def left_out(self) -> list[LeftOut]:
        return [each for table in self.tables.values() for each in table.left_out]

    @property
    def streams(self) -> dict[str, StreamInfo]:
        return {
            stream: StreamInfo(
                stream,
                name.rpartition(".")[2],
                len(values) if table.rows is None else table.rows,
                tuple(names),
            )
            for name, table in self.tables.items()
            for stream, (names, values, _, _) in table.streams.items()
        }

    def look(self) -> None:
        pass

    def pieces(self, names: Collection[str], shown: bool | None = None) -> Iterator[Piece]:
        with progress("Reading tables", len(self.tables), shown) as done:
            for name, table in self.tables.items():
                if not table.streams.keys().isdisjoint(names):
                    for part in self._parts(name, table):
                        for stream, (channels, values, clocks, dtypes) in part.streams.items():
                            if stream in names:
                                yield Piece(stream, tuple(channels), values, clocks, tuple(dtypes))
                done(1)

    def _parts(self, name: str, table: _Table) -> Iterator[_Table]:
        """A file in pieces."""
        if table.rows is None:
            yield table
            return
        path = self.files[name]
        try:
            for rows in batches_of(path, table.columns, _ROWS):
                yield _streams(name, path, rows)
        except FormatError as error:
            if len(self.files) == 1:
                raise
            self.damage.found(error.path, error.place, error.reason)


# ---- one file ----------------------------------------------------------------------------------


def _told(name: str, path: str) -> _Table | None:
    """The streams of a Parquet file by what it tells of itself; None where that is not enough."""
    if not head(path, len(_PARQUET)).startswith(_PARQUET):
        return None
    try:
        empty, rows = table_without_nulls(path)
    except FormatError:  # which reading it tells better
        return None
    if empty is None or "" in empty.column_names:
        return None
    told = _streams(name, path, empty)
    told.rows = rows
    return told


def _streams(name: str, path: str, table: Any) -> _Table:
    """The streams of a table: columns of the same rows together."""
    import numpy as np

    there = table.column_names
    again = [c for c in there if there.count(c) > 1]
    if again:
        raise FormatError(path, repr(again[0]), "is the name of two columns")
    stem = re.sub(r"\.(csv|tsv|txt|parquet|pq)$", "", name, flags=re.IGNORECASE)
    left_out: list[LeftOut] = []
    used: list[str] = []
    columns: dict[str, Any] = {}
    valid: dict[str, Any] = {}
    for own in there:
        values, mask, reason = _numbers(path, table, own)
        if reason:
            left_out.append(LeftOut(f"{stem}: {own}", reason))
            continue
        used.append(own)
        parts = {own: values}
        if values.ndim == 2:
            parts = {f"{own}[{i}]": values[:, i] for i in range(values.shape[1])}
        columns.update(parts)
        valid.update(dict.fromkeys(parts, mask))
    clock, unit = _clock_of(columns, valid)
    times = columns.pop(clock) if clock is not None else None
    if times is not None and times.dtype.kind not in "fi":
        times = times.astype(np.int64)
    groups: dict[bytes, list[str]] = {}
    for own in columns:
        groups.setdefault(np.packbits(valid[own]).tobytes(), []).append(own)
    streams = {}
    for members in groups.values():
        mask = valid[members[0]]
        stream = stem if len(groups) == 1 else f"{stem}: {_common(members)}"
        while stream in streams:
            stream += "'"
        values = _stacked([columns[own] for own in members])
        clocks = {} if times is None else {"time": times}
        if not mask.all():
            values = values[mask]
            clocks = {key: given[mask] for key, given in clocks.items()}
        dtypes = [str(columns[own].dtype) for own in members]
        streams[stream] = (members, values, clocks, dtypes)
    if not groups and times is not None:
        streams[stem] = ([], np.zeros((len(times), 0), np.float32), {"time": times}, [])
    return _Table(streams, unit, left_out, used)


def _opened(path: str) -> Any:
    """An Arrow table."""
    arrow = needed("pyarrow", "tables", "a table")
    start = head(path, _LOOK)
    try:
        if start.startswith(_PARQUET):
            return needed("pyarrow.parquet", "tables", "a Parquet file").read_table(path)
        csv = needed("pyarrow.csv", "tables", "a CSV file")
        size = max(1 << 20, min(os.path.getsize(path) + 1, 1 << 30))  # one block tells the kinds
        return csv.read_csv(
            path,
            read_options=csv.ReadOptions(block_size=size),
            parse_options=csv.ParseOptions(delimiter=_delimiter(start) or ","),
        )
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        line = str(error).partition("\n")[0]
        raise FormatError(path, "", f"cannot be read: {line}") from None


def _numbers(path: str, table: Any, name: str) -> tuple[Any, Any, str]:
    """A column as numbers, where it has some, and else the reason why it is left out."""
    import numpy as np

    arrow = needed("pyarrow", "tables", "a table")
    chunked = table[name]
    kind = chunked.type
    if arrow.types.is_timestamp(kind) or arrow.types.is_duration(kind):
        chunked = chunked.cast(arrow.int64())
        kind = chunked.type
    if arrow.types.is_null(kind):
        return None, None, "has no values"
    if arrow.types.is_list(kind) or arrow.types.is_fixed_size_list(kind):
        try:
            return column(path, table, name), np.ones(table.num_rows, bool), ""
        except FormatError as error:
            return None, None, f"is of {kind}: {error.reason}"
    if not (
        arrow.types.is_integer(kind)
        or arrow.types.is_floating(kind)
        or arrow.types.is_boolean(kind)
    ):
        return None, None, f"is of {kind}"
    mask = ~np.asarray(chunked.is_null())
    if chunked.null_count:
        zero = arrow.scalar(False if arrow.types.is_boolean(kind) else 0, kind)
        chunked = chunked.fill_null(zero)
        table = table.set_column(table.column_names.index(name), name, chunked)
    values = column(path, table, name)
    if not name and np.array_equal(values, np.arange(len(values))):
        return None, None, "numbers of rows, without a name"
    return values, mask, ""


def _clock_of(columns: dict[str, Any], valid: dict[str, Any]) -> tuple[str | None, str | None]:
    """The column of times, and its unit where its name tells it."""
    for name, values in columns.items():
        match = _TIME.match(name.strip())
        if match and values.ndim == 1 and values.dtype.kind in "fiu" and valid[name].all():
            unit = (match[1] or "").lower()
            if values.dtype.kind == "f":
                return name, None
            return name, _UNITS.get(unit, unit) or None
    return None, None


def _stacked(columns: list[Any]) -> Any:
    """[n,D] in the dtype that holds all."""
    import numpy as np

    dtype = np.result_type(*{values.dtype for values in columns})
    return np.stack([values.astype(dtype) for values in columns], axis=1)


def _common(names: list[str]) -> str:
    """What columns of one stream have in common in their names."""
    if len(names) == 1:
        return names[0]
    prefix = os.path.commonprefix(names).rstrip("._/[ ")
    return prefix or names[0]
