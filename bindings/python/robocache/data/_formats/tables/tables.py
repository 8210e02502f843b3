"""CSV and Parquet files, a single one or a folder: one stream per file, with a column of times."""

from __future__ import annotations

import functools
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping

from ..._errors import FormatError, LeftOut, Unread, needed, rows_without_time
from ..._file_access import Folder, is_file, is_folder, is_special, special_kind
from ..._frames.pictures import ImageFrames
from ..._options import Options
from ..._progress import progress
from ..._recording import Recording
from ..._source import Piece, StreamInfo
from ..description import Format
from ..trajectories.pictures import TUM_LIST, tum_cameras
from .clock import flat, looks_like, split_unit
from .columns import fault_of, is_surely_table, is_table
from .parquet import batches_of
from .streams import Table, Wanted, from_metadata, read, streams_of
from .units import Scale, scales_of

_ROWS = 1 << 16  # rows per piece
_SHOWN = 8  # names of columns in a message
_SUFFIX = re.compile(r"\.(csv|tsv|txt|tum|pos|parquet|pq)$", re.IGNORECASE)
_SURE = re.compile(r"\.(csv|tsv|parquet|pq)$", re.IGNORECASE)  # suffixes only of tables


_STREAMS = (
    "One stream per file, and per sensor if a column names the sensor of a row. Columns of "
    "numbers become channels. The column of times and its unit are found by name, or stated by "
    "time= and unit=. "
)
FORMATS = (
    Format(
        name="csv",
        title="CSV",
        files="*.csv, *.tsv, *.txt, a folder of them",
        reads=f"{_STREAMS}Cells are separated by commas, semicolons, tabs or spaces, with or "
        "without a header, lines above it and a line of units below it. Text may be UTF-8, UTF-16 "
        "or Latin-1, and numbers may have decimal commas.",
        refuses="Columns of texts are listed in left_out.",
        package="pyarrow",
        extra="tables",
        example='recording = rbc.data.open("imu.csv")',
        named_times=True,
    ),
    Format(
        name="parquet",
        title="Parquet",
        files="*.parquet, *.pq, a folder of them",
        reads=f"{_STREAMS}Lists of a fixed length become several channels.",
        refuses="Columns of texts, structs other than times, and lists of changing length are "
        "listed in left_out.",
        package="pyarrow",
        extra="tables",
        example='recording = rbc.data.open("imu.parquet")',
        named_times=True,
    ),
)


def sniff(path: str) -> bool:
    if os.path.isdir(path):
        return any(is_surely_table(entry.path) for entry in os.scandir(path) if is_file(entry))
    return is_table(path)


def open(path: str, options: Options) -> Recording:
    needed("pyarrow", "tables", "a table")
    files = {os.path.basename(path): path}
    left_out: list[LeftOut] = []
    cameras: Mapping[str, ImageFrames] = {}
    if os.path.isdir(path):
        files, left_out = files_in(path, options)
        if set(files) - {TUM_LIST}:
            cameras = tum_cameras(path, options.follow_links)
            if cameras:
                files.pop(TUM_LIST, None)
    source = Tables(path, files, options, left_out)
    source.cameras = cameras
    return Recording(source, progress=options.progress)


def open_file(
    path: str,
    options: Options,
    kind: str,
    read_file: Callable[[str, str, Options], Table] | None = None,
) -> Recording:
    """Open one file of a format that is read as a table: see :class:`Tables`."""
    needed("pyarrow", "tables", f"a file of {kind}")
    source = Tables(path, {os.path.basename(path): path}, options, [], kind, read_file)
    return Recording(source, progress=options.progress)


def fault(path: str) -> str | None:
    """Return why a file with a table's suffix is not a table; None for other files."""
    return fault_of(path)[0] if _SURE.search(path) else None


def files_in(path: str, options: Options) -> tuple[dict[str, str], list[LeftOut]]:
    """Return tables by name; other files with a table's suffix are damage, or omitted."""
    folder = Folder(path, options.follow_links)
    files: dict[str, str] = {}
    left_out: list[LeftOut] = []
    for entry in sorted(os.scandir(path), key=lambda entry: entry.name):
        if not is_file(entry):
            suffix = _SUFFIX if is_special(entry) else _SURE
            if suffix.search(entry.name) and not entry.name.startswith("."):
                _note_no_file(entry, folder, options, left_out)
            elif is_folder(entry) and _has_tables(entry):
                left_out.append(LeftOut(entry.name, "is a folder with tables: open it separately"))
            continue
        if is_table(entry.path):
            files[entry.name] = folder.file(entry.name)
        elif _SURE.search(entry.name) and not entry.name.startswith("."):
            reason, is_damage = fault_of(folder.file(entry.name))
            if is_damage:
                options.damage.found(entry.path, "", reason)
            else:
                left_out.append(LeftOut(entry.name, reason))
    return files, left_out


def _has_tables(folder: os.DirEntry[str]) -> bool:
    """Whether a folder, not hidden and no link, has files with a table's suffix in it."""
    if folder.is_symlink() or folder.name.startswith("."):
        return False
    try:
        with os.scandir(folder.path) as entries:
            return any(_SURE.search(entry.name) for entry in entries)
    except OSError:  # it cannot be listed
        return False


def _note_no_file(
    entry: os.DirEntry[str], folder: Folder, options: Options, left_out: list[LeftOut]
) -> None:
    """Note an entry with a table's suffix that is not a file."""
    folder.require_inside(entry.name)
    if is_folder(entry):
        left_out.append(LeftOut(entry.name, "is a folder: open it separately"))
    elif not os.path.exists(entry.path):
        options.damage.found(entry.path, "", "is a broken link")
    else:
        kind = special_kind(entry.path)
        options.damage.found(entry.path, "", f"is {kind}, expected a regular file")


def _read(stem: str, file: str, options: Options) -> Table:
    wanted = Wanted(options.time, options.rate, options.damage)
    return from_metadata(stem, file, options.limit, wanted) or read(
        stem, file, options.limit, wanted
    )


def _stems(names: Collection[str]) -> dict[str, str]:
    """Return file names without suffix, or with it if two would be equal."""
    stems = {name: _SUFFIX.sub("", name) for name in names}
    taken = Counter(stems.values())
    return {
        name: stem if taken[stem] == 1 and (stem == name or stem not in stems) else name
        for name, stem in stems.items()
    }


class Tables:
    """A source of streams (``_source.Source``).

    CSV is read completely when opened, since all rows are needed to know the types. Parquet mostly
    states them in its metadata, and is then read in pieces.
    """

    def __init__(
        self,
        path: str,
        files: dict[str, str],
        options: Options,
        left_out: list[LeftOut],
        kind: str = "tables",
        read_file: Callable[[str, str, Options], Table] | None = None,
    ) -> None:
        """``read_file(stem, path, options)`` reads a file of another format, named ``kind``."""
        self.kind = kind
        self.cameras: Mapping[str, ImageFrames] = {}  # of pictures next to the tables
        self.path, self.files, self.damage = path, files, options.damage
        self.limit = options.limit
        self.stems = _stems(files)
        self._left_out = left_out
        self.tables: dict[str, Table] = {}
        read_file = read_file or _read
        for name, file in files.items():
            stem = self.stems[name]
            try:
                table = read_file(stem, file, options)
                if table.doubt and len(files) == 1:
                    raise FormatError(file, "", table.doubt)
            except FormatError as error:
                if len(files) == 1:
                    raise
                self.damage.found(error.path, error.place, error.reason)
                continue
            self._note_untimed(file, table)
            for odd in table.odd:
                self.damage.note(file, odd.place, odd.description)
            self.tables[name] = table
        self._require_names_apart()
        if options.time is not None:
            self._require_column(options.time)
        clocks = {name: t.clock for name, t in self.tables.items() if t.clock is not None}
        self.unit, self.scales = scales_of(path, clocks, options.unit)

    def _require_column(self, asked: str) -> None:
        """Refuse a column of times that no file has."""
        if any(t.clock is not None and t.clock.form != "rows" for t in self.tables.values()):
            return
        known = list(dict.fromkeys(c for t in self.tables.values() for c in t.names))
        name = split_unit(asked)[-1][0]
        problem = f"no column is named {name}"
        if name in known:
            problem = f"column {name} has no times that can be read"
            known.remove(name)
        text = f"--time {asked}: {problem}, expected one of {_some(known)}"
        raise FormatError(self.path, "", text)

    def _note_untimed(self, path: str, table: Table) -> None:
        missing = table.untimed
        if missing is not None:
            why = f"column {missing.column} is empty (first: row {missing.first})"
            text = rows_without_time(missing.rows, missing.total, why, self.damage)
            self.damage.found(path, f"{missing.column}, row {missing.first}", text)

    def _require_names_apart(self) -> None:
        owners: dict[str, str] = {}
        for name, table in self.tables.items():
            for stream in table.streams:
                if stream in owners:
                    text = f"has the stream {stream!r}, as {owners[stream]} does: rename the file"
                    raise FormatError(self.files[name], "", text)
                owners[stream] = name

    @property
    def left_out(self) -> list[LeftOut]:
        return self._left_out + [each for t in self.tables.values() for each in t.left_out]

    @functools.cached_property
    def streams(self) -> dict[str, StreamInfo]:
        return {
            stream: StreamInfo(
                stream,
                name.rpartition(".")[2],
                table.count_of(stream, len(values)),
                tuple(names),
                self.scales[name].unit if name in self.scales else None,
                table.said.get(stream, ()),
                self._times_from(name, table),
            )
            for name, table in self.tables.items()
            for stream, (names, values, _, _) in table.streams.items()
        }

    def _times_from(self, name: str, table: Table) -> str | None:
        """Return the column that holds the times of a file, and the reason."""
        clock = table.clock
        if clock is None:
            return None
        text = clock.why
        if clock.form == "rows":
            return text
        unit = self.scales[name].unit if name in self.scales else None
        if unit is not None and f"in {unit}" not in text:
            text += f", in {unit}"
        if unit is None and clock.sample is not None and len(clock.sample):
            looks = looks_like(clock.sample[0].item())
            text += ", in an unknown unit"
            text += f": {looks}" if looks else ""
        if table.instances is not None:
            text += f"; streams by column {table.instances.column}"
        return text

    @functools.cached_property
    def unread(self) -> list[Unread]:
        found = []
        for name, table in self.tables.items():
            reason = self._reason(table)
            if reason is not None:
                size = os.path.getsize(self.files[name])
                found.append(Unread(name, "", table.table_rows, size, reason))
        return found

    @staticmethod
    def _reason(table: Table) -> str | None:
        """Return why nothing of a file can be aligned; None if something can."""
        if table.table_rows == 0:
            return "the table has no rows"
        if table.clock is None:
            return table.doubt or (
                f"no column holds times (columns: {_some(table.names)}). Name one with "
                "--time COLUMN, or set the rows per second with --fps HZ"
            )
        if not any(names for names, *_ in table.streams.values()):
            return f"the table has no numbers except its times ({table.clock.name})"
        return None

    def look(self) -> None:
        pass

    def pieces(self, names: Collection[str], shown: bool | None = None) -> Iterator[Piece]:
        with progress("Reading tables", len(self.tables), shown) as done:
            for name, table in self.tables.items():
                if not table.streams.keys().isdisjoint(names):
                    yield from self._pieces_of(name, table, names)
                done(1)

    def _pieces_of(self, name: str, table: Table, names: Collection[str]) -> Iterator[Piece]:
        scale = self.scales.get(name, Scale(None, None))
        place = "" if table.clock is None else table.clock.name
        for part in self._parts(name, table):
            self._note_untimed(self.files[name], part)
            for stream, (channels, values, clocks, dtypes) in part.streams.items():
                if stream in names:
                    scaled = {
                        clock: scale.times(times, self.files[name], place)
                        for clock, times in clocks.items()
                    }
                    said = table.said.get(stream, ())
                    yield Piece(stream, tuple(channels), values, scaled, tuple(dtypes), said)

    def _parts(self, name: str, table: Table) -> Iterator[Table]:
        """Yield a file in pieces."""
        if table.rows is None:
            yield table
            return
        path, begin = self.files[name], 0
        try:
            for rows in batches_of(path, table.columns, _ROWS, self.limit):
                part = streams_of(
                    self.stems[name],
                    path,
                    flat(rows),
                    table.clock,
                    table.large,
                    table.instances,
                    begin,
                )
                if part.untimed is not None:
                    part.untimed.first += begin
                begin += len(rows)
                yield part
        except FormatError as error:
            if len(self.files) == 1:
                raise
            self.damage.found(error.path, error.place, error.reason)


def _some(names: Collection[str]) -> str:
    shown = [name or "(no name)" for name in names][:_SHOWN]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
