"""A recording: streams with their own clocks, read from disk when they are asked for."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import Report, Stream, report
from .._printable import printable
from .._text_table import text_table
from ._check_times import header_is_good
from ._errors import LeftOut, Problem, Unread, reading, some
from ._source import Piece, Source, StreamInfo

if TYPE_CHECKING:
    from ._episodes import Episodes


@dataclass(frozen=True, eq=False)
class RecordedStream:
    """The samples of one sensor, as they were recorded."""

    name: str
    kind: str  #: the type of its messages, or of the file
    names: tuple[str, ...]  #: of the channels, such as "pose.orientation.x"
    values: Any  #: [n,D] in NumPy, in the narrowest dtype that holds all channels
    clocks: Mapping[str, Any]  #: times [n] by clock: "log" and "header", or "time"
    unit: str | None = None  #: what a tick of integer times is: "ns"; None if that is not known
    dtypes: tuple[str, ...] | None = None  #: of each channel in the file; None: that of values

    @property
    def log_times(self) -> Any:
        """When each sample was logged, or None."""
        return self.clocks.get("log")

    @property
    def header_times(self) -> Any:
        """The stamp in each sample, or None."""
        return self.clocks.get("header")

    def __len__(self) -> int:
        return len(self.values)

    def times(self, clock: str | None = None) -> Any:
        """By one of its clocks, or by the first one that it has of log and time; None without."""
        if clock is None:
            clock = next((name for name in ("log", "time") if name in self.clocks), None)
            return None if clock is None else self.clocks[clock]
        if clock not in self.clocks:
            raise KeyError(f"clock: is {clock!r}, but {self.name} has {some(list(self.clocks))}")
        return self.clocks[clock]

    def stream(self, clock: str | None = None, **options: Any) -> Stream[Any]:
        """As :class:`robocache.Stream`, with its options: ``method``, ``max_gap`` and the others.

        Integer times of a known unit become timedelta64 of it.
        """
        times = self.times(clock)
        if times is None:
            raise ValueError(f"{self.name}: has no times; pass robocache.Stream some of yours")
        if self.unit is not None and times.dtype.kind == "i":
            times = times.view(f"timedelta64[{self.unit}]")
        return Stream(self.values, times, **options)

    def select(self, rows: Any = None, names: Collection[str] | None = None) -> RecordedStream:
        """Some rows, by a slice, indices or a bool array, and some channels, by name."""
        values, clocks, chosen, dtypes = self.values, dict(self.clocks), self.names, self.dtypes
        if names is not None:
            unknown = [name for name in names if name not in self.names]
            if unknown:
                raise KeyError(f"names: has {unknown[0]!r}, but {self.name} has {some(self.names)}")
            chosen = tuple(names)
            columns = [self.names.index(name) for name in chosen]
            values = values[:, columns]
            dtypes = None if dtypes is None else tuple(dtypes[c] for c in columns)
        if rows is not None:
            values = values[rows]
            clocks = {clock: times[rows] for clock, times in clocks.items()}
        return RecordedStream(self.name, self.kind, chosen, values, clocks, self.unit, dtypes)

    def __repr__(self) -> str:
        return (
            f"RecordedStream({self.name!r}, {self.kind!r}, {self.values.dtype} "
            f"[{len(self)},{len(self.names)}], clocks={list(self.clocks)})"
        )


class Recording:
    """Streams of one recording, each with its own clock. ``print`` shows a table of them.

    Nothing but the index is read before it is asked for: ``recording["/imu"]`` reads one stream,
    ``recording.load()`` all of them in one pass, and ``pieces`` goes through a file of any size
    without keeping it. What was read stays in memory.

    ``open`` makes it; so do ``load``, ``select`` and ``of`` out of streams in memory.
    """

    def __init__(
        self,
        source: Source | None,
        streams: Mapping[str, RecordedStream] | None = None,
        *,
        chosen: Collection[str] | None = None,
        progress: bool | None = None,
        left_out: Collection[LeftOut] = (),
        path: str | None = None,
        problems: Sequence[Problem] = (),
        unread: Collection[Unread] = (),
    ) -> None:
        self._source = source
        self._loaded: dict[str, RecordedStream] = dict(streams or {})
        if chosen is None:
            chosen = list(self._loaded) if source is None else list(source.streams)
        self._chosen = tuple(chosen)
        self._names = frozenset(self._chosen)
        self._progress = progress
        self._left_out = tuple(left_out)
        self._path = path
        self._problems = problems
        self._unread = tuple(unread)

    @classmethod
    def of(cls, streams: Collection[RecordedStream], path: str | None = None) -> Recording:
        """Of streams in memory."""
        return cls(None, {stream.name: stream for stream in streams}, path=path)

    # ---- what there is --------------------------------------------------------------------------

    @property
    def path(self) -> str | None:
        """Where it was opened."""
        return self._path if self._source is None else self._source.path

    @property
    def format(self) -> str:
        """Such as "ROS 2 bag (MCAP)"."""
        return "streams in memory" if self._source is None else self._source.kind

    @property
    def names(self) -> tuple[str, ...]:
        """Of the streams."""
        return self._chosen

    def info(self, name: str) -> StreamInfo:
        """What is known of a stream without reading its data."""
        self._require(name)
        if self._source is not None and name not in self._loaded:
            return self._source.streams[name]
        stream = self._loaded[name]
        unit = None if self._source is None else self._source.streams[name].unit
        return StreamInfo(name, stream.kind, len(stream), stream.names, unit or stream.unit)

    @property
    def streams(self) -> Mapping[str, RecordedStream]:
        """All streams by name, read in one pass."""
        return dict(self.load()._loaded)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """What the recording holds and its streams do not, with the reason.

        It reads the first messages of each topic. Lengths that change later in the recording are
        told once it was read.
        """
        if self._source is None:
            return self._left_out
        with reading(self._source.path):
            return tuple(self._source.left_out)

    @property
    def unread(self) -> tuple[Unread, ...]:
        """Topics or files whose messages or rows were not read, with the reason.

        It reads the first messages of each topic.
        """
        if self._source is None:
            return self._unread
        with reading(self._source.path):
            return tuple(self._source.unread)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Damage that was read around, of what was read so far."""
        return tuple(self._problems if self._source is None else self._source.damage.problems)

    @property
    def unit(self) -> str | None:
        """What a tick of integer times is: "ns", "us"; None if that is not known."""
        if self._source is not None:
            return self._source.unit
        return next((stream.unit for stream in self._loaded.values()), None)

    def __len__(self) -> int:
        return len(self._chosen)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._chosen)

    def __repr__(self) -> str:
        if self._source is not None:
            with reading(self._source.path):
                self._source.look()
        rows = [["stream", "samples", "channels", "type"]]
        for name in self._chosen:
            info = self.info(name)
            count = "?" if info.count is None else str(info.count)
            channels = "?" if info.names is None else str(len(info.names))
            rows.append([name, count, channels, info.kind])
        lines = [f"{self.path or 'Recording'}: {self.format}", text_table(rows)]
        if self.left_out:
            lines.append(f"left out: {len(self.left_out)}, see left_out")
        return "\n".join(lines)

    # ---- reading --------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> RecordedStream:
        self._require(name)
        if name not in self._loaded:
            self._read([name])
        return self._loaded[name]

    def load(self, names: Collection[str] | None = None) -> Recording:
        """The same with all streams, or some, in memory: one pass through the files."""
        chosen = self._chosen if names is None else tuple(names)
        for name in chosen:
            self._require(name)
        self._read([name for name in chosen if name not in self._loaded])
        return self

    def pieces(self, names: Collection[str] | None = None) -> Iterator[Piece]:
        """Go through all samples in the order of the file, piece by piece, without keeping them."""
        chosen = self._chosen if names is None else tuple(names)
        for name in chosen:
            self._require(name)
        unread = [name for name in chosen if name not in self._loaded]
        for name in chosen:
            if name in self._loaded:
                stream = self._loaded[name]
                yield Piece(name, stream.names, stream.values, stream.clocks)
        if unread and self._source is not None:
            with reading(self._source.path):
                yield from self._source.pieces(unread, self._progress)

    def _require(self, name: object) -> None:
        if name not in self:
            raise KeyError(f"stream: is {name!r}, expected one of {some(self._chosen)}")

    def _read(self, names: list[str]) -> None:
        if not names or self._source is None:
            return
        pieces: dict[str, list[Piece]] = {name: [] for name in names}
        with reading(self._source.path):
            for piece in self._source.pieces(names, self._progress):
                pieces[piece.stream].append(piece)
            streams = self._source.streams
            for name in names:
                self._loaded[name] = _joined(streams[name], pieces.pop(name), self._source.unit)

    # ---- what is done with it -------------------------------------------------------------------

    def select(
        self,
        streams: Collection[str] | None = None,
        *,
        channels: Mapping[str, Collection[str]] | None = None,
        begin: Any = None,
        end: Any = None,
        clock: str | None = None,
    ) -> Recording:
        """Some streams, some of their channels, and a span of time.

        Parameters
        ----------
        streams
            Their names; None: all.
        channels
            By name of a stream the names of its channels; other streams keep theirs.
        begin, end
            From ``begin`` on, and before ``end``, in the unit of the times. With them, or with
            ``channels``, the streams are read.
        clock
            Of ``begin`` and ``end``, as for :meth:`align`.
        """
        chosen = self._chosen if streams is None else tuple(streams)
        for name in (*chosen, *(channels or {})):
            self._require(name)
        if channels is None and begin is None and end is None:
            loaded = {name: self._loaded[name] for name in chosen if name in self._loaded}
            return Recording(
                self._source,
                loaded,
                chosen=chosen,
                progress=self._progress,
                left_out=self._left_out,
                path=self._path,
                problems=self._problems,
                unread=self._unread,
            )
        self.load(chosen)
        clock = self.clock(chosen) if clock is None else clock
        taken = []
        for name in chosen:
            stream = self._loaded[name].select(names=(channels or {}).get(name))
            if begin is not None or end is not None:
                times = stream.times(clock_of(stream, clock))
                rows = times >= (begin if begin is not None else times.min(initial=0))
                stream = stream.select(rows if end is None else rows & (times < end))
            taken.append(stream)
        return Recording(
            None,
            {stream.name: stream for stream in taken},
            left_out=self.left_out,
            path=self.path,
            problems=self.problems,
            unread=self.unread,
        )

    def clock(self, names: Collection[str] | None = None) -> str:
        """The clock that :meth:`report` and :meth:`align` take: "header", "log" or "time".

        "header" if all streams have header stamps, none of 0, none going back, and within 10 s of
        the log times: they tell when something was measured. Else "log".
        """
        chosen = self._chosen if names is None else tuple(names)
        self.load(chosen)
        streams = [self._loaded[name] for name in chosen if len(self._loaded[name])]
        if all("time" in stream.clocks for stream in streams):
            return "time"
        return "header" if streams and all(map(_headers_are_good, streams)) else "log"

    def report(self, clock: str | None = None, unit: str | None = None) -> Report:
        """Rates, jitter, gaps and repeats of all streams: :func:`robocache.report`.

        ``unit`` is that of times that do not tell it, as those of CSV files.
        """
        clock = self.clock() if clock is None else clock
        told = {}
        for name in self._chosen:
            stream = self[name]
            if len(stream):
                told[name] = stream.select(names=()).stream(clock_of(stream, clock))
        return report(told, unit=self.unit or unit)

    def align(self, rate: Any, **options: Any) -> Episodes:
        """All streams on one clock, as one episode: see :func:`robocache.data.align`."""
        from ._align import align

        return align(self, rate, **options)

    def save(
        self, path: Any, format: str = "npz", *, overwrite: bool = False
    ) -> tuple[LeftOut, ...]:
        """Write every value and stamp: see :func:`robocache.data.save`."""
        from ._save import save

        return save(self, path, format, overwrite=overwrite)


def clock_of(stream: RecordedStream, clock: str) -> str:
    """The clock, or what a stream without it has in its place."""
    if not stream.clocks:
        raise ValueError(f"{printable(stream.name)}: has no times; choose streams that have some")
    if clock in stream.clocks:
        return clock
    return "log" if "log" in stream.clocks else next(iter(stream.clocks))


def _headers_are_good(stream: RecordedStream) -> bool:
    header, log = stream.header_times, stream.log_times
    return header is not None and log is not None and header_is_good(header, log)


def _joined(info: StreamInfo, pieces: list[Piece], unit: str | None) -> RecordedStream:
    """One stream of its pieces, in the order of its log times."""
    import numpy as np

    if not pieces:
        names = info.names or ()
        clocks = {"log" if unit == "ns" else "time": np.zeros(0, np.int64)}
        return RecordedStream(
            info.name, info.kind, names, np.zeros((0, len(names)), "f4"), clocks, unit
        )
    names = pieces[0].names
    values = _concatenated([piece.values for piece in pieces])
    clocks = {}
    for clock in pieces[0].clocks:
        if all(clock in piece.clocks for piece in pieces):
            clocks[clock] = _concatenated([piece.clocks[clock] for piece in pieces])
    log = clocks.get("log")
    if log is not None and (np.diff(log) < 0).any():  # written by several threads
        order = np.argsort(log, kind="stable")
        values, clocks = values[order], {name: times[order] for name, times in clocks.items()}
    return RecordedStream(info.name, info.kind, names, values, clocks, unit, pieces[0].dtypes)


def _concatenated(arrays: list[Any]) -> Any:
    import numpy as np

    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
