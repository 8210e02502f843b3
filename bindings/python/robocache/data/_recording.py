"""Recordings: streams with their own clocks, read from disk on demand."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .. import Channel, Report, Stream, report
from .._arguments.options import names_in
from .._arguments.samples import Samples
from .._cache.provenance import Provenance, following
from .._printable import printable
from .._suggestions import did_you_mean
from .._text_table import text_table
from ._errors import LeftOut, Problem, Unread, reading, some
from ._findings import Finding
from ._kinds.declared import require_streams
from ._kinds.kinds import KindFinder, Kinds, Said, channels_in, kept_kinds, redeclared
from ._kinds.selectors import columns_of, of_topic
from ._source import Piece, Source, StreamInfo, header_is_good

if TYPE_CHECKING:
    from .._episodes.episodes import Episodes
    from ._frames.source import FrameSource


@dataclass(frozen=True, eq=False)
class RecordedStream:
    """The samples of one sensor, as recorded."""

    name: str
    kind: str  #: type of the messages, or of the file
    names: tuple[str, ...]  #: names of the channels, such as "pose.orientation.x"
    values: Any  #: [n,D] in NumPy, in the narrowest dtype that holds all channels
    clocks: Mapping[str, Any]  #: times [n] by clock: "log" and "header", or "time"
    unit: str | None = None  #: unit of integer times: "ns"; None if it is not known
    dtypes: tuple[str, ...] | None = None  #: dtype of each channel in the file; None: as values
    said: tuple[Said, ...] = field(default=(), repr=False)  # kinds that the file states
    declared: Mapping[str, str] = field(default_factory=dict, repr=False)  # kinds by channels

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The name, the kind and the unit of each channel: see :doc:`/concepts/kinds`.

        Kinds that are not stated are inferred once, from all values.
        """
        return channels_in(self.kinds, self.names)

    @functools.cached_property
    def kinds(self) -> Kinds:
        """The groups of the channels, and what is doubtful about them."""
        dtypes = self.dtypes or (self.values.dtype.name,) * len(self.names)
        finder = KindFinder(
            self.name,
            self.names,
            dtypes,
            type=self.kind,
            said=self.said,
            declared=self.declared,
            rows=len(self),
        )
        finder.add(self.values)
        return finder.found()

    def with_kinds(self, declared: Mapping[str, str]) -> RecordedStream:
        """Return the stream with kinds of some of its channels."""
        dtypes = self.dtypes or (self.values.dtype.name,) * len(self.names)
        kinds = redeclared(self.kinds, self.name, self.names, dtypes, self.values, declared)
        changed = dataclasses.replace(self)
        changed.__dict__["kinds"] = kinds
        return changed

    static: bool = False  #: whether each sample is a static transform, valid from its time on

    @property
    def log_times(self) -> Any:
        """The time at which each sample was logged, or None."""
        return self.clocks.get("log")

    @property
    def header_times(self) -> Any:
        """The stamp in each sample, or None."""
        return self.clocks.get("header")

    def __len__(self) -> int:
        return len(self.values)

    @property
    def time_unit(self) -> str | None:
        """Unit of the times, such as "timedelta64[ns]"; None if they have no known unit."""
        times = self.times()
        known = self.unit is not None and times is not None and times.dtype.kind == "i"
        return f"timedelta64[{self.unit}]" if known else None

    def times(self, clock: str | None = None, *, with_unit: bool = False) -> Any:
        """Return the times of a clock; by default, of the log or the time column, or None.

        ``with_unit``: integer times of a known unit become timedelta64, which is since 1970 if the
        clock counts from there.
        """
        if clock is None:
            clock = next((name for name in ("log", "time") if name in self.clocks), None)
            if clock is None:
                return None
        if clock not in self.clocks:
            known = some(list(self.clocks))
            raise KeyError(f"clock: {self.name} has no clock {clock!r}, expected one of {known}")
        times = self.clocks[clock]
        if with_unit and self.unit is not None and times.dtype.kind == "i":
            return times.view(f"timedelta64[{self.unit}]")
        return times

    def stream(self, clock: str | None = None, **options: Any) -> Stream[Any]:
        """Return a :class:`robocache.Stream`, with its options: ``method``, ``max_gap``, ...

        Integer times of a known unit become timedelta64.
        """
        times = self.times(clock, with_unit=True)
        if times is None:
            raise ValueError(
                f"stream {self.name} has no times. Give them: robocache.Stream(values, times)"
            )
        return Stream(self.values, times, **options)

    def _samples(self) -> Samples:
        """Return what :func:`robocache.resample` and similar functions take from a stream."""
        return Samples(f"stream {printable(self.name)}", self.values, self.times(with_unit=True))

    def select(self, rows: Any = None, names: Collection[str] | None = None) -> RecordedStream:
        """Select rows by a slice, indices or a bool array, and channels by name."""
        values, clocks, chosen, dtypes = self.values, dict(self.clocks), self.names, self.dtypes
        if names is not None:
            names = names_in(names, "names")
            unknown = [name for name in names if name not in self.names]
            if unknown:
                raise KeyError(
                    f"names: {self.name} has no channel {unknown[0]!r}, expected one of "
                    f"{some(self.names)}{did_you_mean(unknown[0], self.names)}"
                )
            chosen = tuple(dict.fromkeys(names))
            columns = [self.names.index(name) for name in chosen]
            values = values[:, columns]
            dtypes = None if dtypes is None else tuple(dtypes[c] for c in columns)
        if rows is not None:
            values = values[rows]
            clocks = {clock: times[rows] for clock, times in clocks.items()}
        changed = dataclasses.replace(
            self, names=chosen, values=values, clocks=clocks, dtypes=dtypes, said=(), declared={}
        )
        if chosen:
            columns = [self.names.index(name) for name in chosen]
            kinds = kept_kinds(self.kinds, self.name, self.names, columns, names is not None)
            changed.__dict__["kinds"] = kinds
        return changed

    def __repr__(self) -> str:
        return (
            f"RecordedStream({self.name!r}, {self.kind!r}, {self.values.dtype} "
            f"[{len(self)},{len(self.names)}], clocks={list(self.clocks)})"
        )


@dataclass(frozen=True)
class Ignored:
    """Topics that :meth:`Recording.without` excluded."""

    asked: frozenset[str] = frozenset()  # topics and types that were passed
    topics: frozenset[str] = frozenset()  # these, topics of the types, and streams of their keys

    def topic(self, name: str, kind: str = "") -> bool:
        """Whether a topic is excluded."""
        if not self.asked:
            return False
        own = re.sub(r" (\([^()]*\)|#\d+)$", "", name)  # suffix of several types or definitions
        return kind in self.asked or name in self.topics or own in self.topics

    def place(self, place: str) -> bool:
        """Whether a place is in an excluded topic: the topic, or a field of it."""
        return self.topic(place) or self.topic(place.partition(": ")[0])

    def problem(self, place: str) -> bool:
        """Whether a problem belongs to an excluded topic."""
        return place.startswith("topic ") and self.topic(place[len("topic ") :])


@dataclass(frozen=True)
class Origin:
    """The format and the topics of the file from which streams in memory were read."""

    format: str
    topics: Mapping[str, str]  # by stream


class Recording:
    """Streams of one recording, each with its own clock. ``print`` shows a table of them.

    Only the index is read at first: ``recording["/imu"]`` reads one stream, ``recording.load()``
    all of them in one pass, and ``pieces`` iterates over a file of any size without keeping it.
    Streams that were read stay in memory.

    ``open`` returns recordings; ``from_streams`` makes one from streams in memory.
    """

    _provenance: Provenance | None = None  # what it was read from, if it was opened with a cache
    _cameras: Mapping[str, FrameSource] | None = None  # None: the cameras of the source

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
        kinds: Mapping[str, Mapping[str, str]] | None = None,
        ignored: Ignored | None = None,
        origin: Origin | None = None,
    ) -> None:
        self._source = source
        self._origin = origin
        self._kinds = dict(kinds or {})
        self._ignored = ignored or Ignored()
        self._loaded: dict[str, RecordedStream] = dict(streams or {})
        if chosen is None and source is None:
            chosen = list(self._loaded)
        self._chosen = None if chosen is None else dict.fromkeys(chosen)  # None: all of the source
        self._progress = progress
        self._left_out = tuple(left_out)
        self._path = path
        self._problems = problems
        self._unread = tuple(unread)

    @classmethod
    def from_streams(
        cls, streams: Collection[RecordedStream], path: str | None = None
    ) -> Recording:
        """Make a recording from streams in memory."""
        return cls(None, {stream.name: stream for stream in streams}, path=path)

    # ---- contents -------------------------------------------------------------------------------

    @property
    def path(self) -> str | None:
        """The path that was opened."""
        return self._path if self._source is None else self._source.path

    @property
    def format(self) -> str:
        """The format, such as "ROS 2 bag (MCAP)"."""
        if self._source is not None:
            return self._source.kind
        return "streams in memory" if self._origin is None else self._origin.format

    def _topic(self, name: str) -> str:
        """Return the topic of a stream; a topic with several keys has a stream for each of them."""
        if self._origin is not None:
            return self._origin.topics.get(name, name)
        topics: Mapping[str, Any] = getattr(self._source, "topics", {})
        for topic in topics.values():
            if name.startswith(f"{topic.name}/") and name in [p.name for p in topic.streams.parts]:
                return str(topic.name)
        return name

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the streams.

        For a bag with topics that may have several keys, such as frames, this reads the first
        16 MB: each key in them is a stream. Later keys become streams when they are read.
        """
        if self._chosen is not None:
            return tuple(self._chosen)
        with reading(self._source.path if self._source is not None else ""):
            return tuple(self._source.streams) if self._source is not None else ()

    @property
    def cameras(self) -> Mapping[str, FrameSource]:
        """The cameras, by topic or folder: their frames are read when they are needed.

        Each is one episode. ``times`` are the times of the frames in nanoseconds: in a bag, when
        each one was logged.
        """
        if self._cameras is not None:
            return self._cameras
        found: Mapping[str, FrameSource] = getattr(self._source, "cameras", {})
        streams = {} if self._chosen is None or self._source is None else self._source.streams
        dropped = {name for name in streams if name not in self}
        return {n: found[n] for n in found if n not in dropped and not self._ignored.topic(n)}

    def of_topic(self, name: str) -> tuple[str, ...]:
        """Return the streams of a topic: the one of its name, and one for each of its keys.

        >>> from robocache import data
        >>> import numpy as np
        >>> none, times = np.zeros((0, 1)), {"log": np.zeros(0, np.int64)}
        >>> streams = [data.RecordedStream(n, "", ("x",), none, times) for n in ("/tf/a", "/tfs")]
        >>> data.Recording.from_streams(streams).of_topic("/tf")
        ('/tf/a',)
        """
        return of_topic(name, self.names)

    def info(self, name: str) -> StreamInfo:
        """Return facts about a stream, without reading its data."""
        self._require(name)
        if self._source is not None and name not in self._loaded:
            return self._source.streams[name]
        stream = self._loaded[name]
        own = None if self._source is None else self._source.streams[name]
        unit, times = (None, None) if own is None else (own.unit, own.times)
        unit = unit or stream.unit
        return StreamInfo(
            name,
            stream.kind,
            len(stream),
            stream.names,
            unit,
            stream.said,
            times,
            stream.static,
        )

    def count_in_file(self, name: str) -> int | None:
        """Return the number of samples that the file states for a stream, or None."""
        if self._source is None or name not in self._source.streams:
            return None
        return self._source.streams[name].count

    def declared(self, name: str) -> Mapping[str, str]:
        """Return the kinds declared for a stream, by channels."""
        self._require(name)
        if name in self._loaded:
            return self._loaded[name].declared
        return self._kinds.get(name, {})

    def known_kinds(self, name: str) -> Kinds | None:
        """Return the kinds of a stream's channels; None if they are not known yet."""
        stream = self._loaded.get(name)
        return None if stream is None else stream.__dict__.get("kinds")

    def with_kinds(self, kinds: Mapping[str, Mapping[str, str]]) -> Recording:
        """Return the recording with kinds of channels, as for ``open``."""
        require_streams(kinds, self.names)
        for name, by_channels in kinds.items():
            names = self.info(name).names
            for channels, kind in by_channels.items():
                if names is not None:  # else they are checked when the stream is read
                    where = f"kinds: {name}:{channels}={kind}"
                    columns_of(channels, names, len(names), where, name)
        loaded = {
            name: stream.with_kinds(kinds[name]) if name in kinds else stream
            for name, stream in self._loaded.items()
        }
        own = {
            name: {**self._kinds.get(name, {}), **by_channels}
            for name, by_channels in kinds.items()
        }
        made = Recording(
            self._source,
            loaded,
            chosen=self._chosen,
            progress=self._progress,
            left_out=self._left_out,
            path=self._path,
            problems=self._problems,
            unread=self._unread,
            kinds={**self._kinds, **own},
            ignored=self._ignored,
            origin=self._origin,
        )
        return following(self, made, "kinds", kinds=kinds)

    @property
    def streams(self) -> Mapping[str, RecordedStream]:
        """All streams by name, read in one pass."""
        return dict(self.load()._loaded)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Contents of the recording that its streams do not hold, with the reasons.

        This reads the first messages of each topic. Lengths that change later in the recording are
        listed after reading it.
        """
        if self._source is None:
            return self._left_out
        with reading(self._source.path):
            found = self._source.left_out
        return tuple(each for each in found if not self._ignored.place(each.place))

    @property
    def unread(self) -> tuple[Unread, ...]:
        """Topics or files whose messages or rows were not read, with the reason.

        This reads the first messages of each topic.
        """
        if self._source is None:
            return self._unread
        with reading(self._source.path):
            found = self._source.unread
        return tuple(each for each in found if not self._ignored.topic(each.place, each.type))

    @property
    def ignored(self) -> tuple[str, ...]:
        """The topics and types that :meth:`without` excluded."""
        return tuple(sorted(self._ignored.asked))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings about what was read so far, such as frames that change."""
        found = [] if self._source is None else getattr(self._source, "findings", [])
        return tuple(each for each in found if not each.stream or each.stream in self)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Damage that was skipped in what was read so far."""
        found = self._problems if self._source is None else self._source.damage.problems
        return tuple(each for each in found if not self._ignored.problem(each.place))

    @property
    def unit(self) -> str | None:
        """Unit of integer times: "ns", "us"; None if it is not known."""
        if self._source is not None:
            return self._source.unit
        return next((stream.unit for stream in self._loaded.values()), None)

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        if self._chosen is None and self._source is not None:
            with reading(self._source.path):
                return name in self._source.streams
        return name in (self._chosen or ())

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __repr__(self) -> str:
        if self._source is not None:
            with reading(self._source.path):
                self._source.look()
        rows = [["stream", "samples", "channels", "type"]]
        for name in self.names:
            info = self.info(name)
            count = "?" if info.count is None else str(info.count)
            channels = "?" if info.names is None else str(len(info.names))
            rows.append([name, count, channels, info.kind])
        lines = [f"{self.path or 'Recording'}: {self.format}", text_table(rows)]
        if self.left_out:
            lines.append(f"omitted: {len(self.left_out)}, see left_out")
        return "\n".join(lines)

    # ---- reading --------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> RecordedStream:
        self._require(name)
        if name not in self._loaded:
            self._read([name])
        return self._loaded[name]

    def load(self, names: Collection[str] | None = None) -> Recording:
        """Read all streams, or some, into memory in one pass, and return the recording."""
        chosen = self.names if names is None else tuple(names)
        for name in chosen:
            self._require(name)
        self._read([name for name in chosen if name not in self._loaded])
        return self

    def pieces(self, names: Collection[str] | None = None) -> Iterator[Piece]:
        """Iterate over all samples in the order of the file, in pieces, without keeping them."""
        chosen = self.names if names is None else tuple(names)
        for name in chosen:
            self._require(name)
        unread = [name for name in chosen if name not in self._loaded]
        for name in chosen:
            if name in self._loaded:
                stream = self._loaded[name]
                yield Piece(
                    name, stream.names, stream.values, stream.clocks, stream.dtypes, stream.said
                )
        if unread and self._source is not None:
            with reading(self._source.path):
                yield from self._source.pieces(unread, self._progress)

    def _require(self, name: object) -> None:
        if name not in self:
            near = did_you_mean(name, self.names)
            text = f"stream: no such stream {name!r}, expected one of {some(self.names)}{near}"
            raise KeyError(text)

    def _expanded(self, names: Collection[str]) -> tuple[str, ...]:
        """Return names of streams; a topic becomes the streams of its keys."""
        found: dict[str, None] = {}
        for name in names:
            found.update(dict.fromkeys([name] if name in self else of_topic(name, self.names)))
            if name not in found and not of_topic(name, self.names):
                self._require(name)
        return tuple(found)

    def _read(self, names: list[str]) -> None:
        if not names or self._source is None:
            return
        pieces: dict[str, list[Piece]] = {name: [] for name in names}  # and of later keys
        with reading(self._source.path):
            for piece in self._source.pieces(names, self._progress):
                pieces.setdefault(piece.stream, []).append(piece)
            streams = self._source.streams
            for name in list(pieces):
                joined = _joined(streams[name], pieces.pop(name), self._source.unit)
                if name in self._kinds:
                    joined = dataclasses.replace(joined, declared=self._kinds[name])
                self._loaded[name] = joined
                if self._chosen is not None:
                    self._chosen[name] = None

    # ---- methods --------------------------------------------------------------------------------

    def select(
        self,
        streams: Collection[str] | None = None,
        *,
        channels: Mapping[str, Collection[str]] | None = None,
        begin: Any = None,
        end: Any = None,
        clock: str | None = None,
    ) -> Recording:
        """Select streams, their channels, and a time range.

        Parameters
        ----------
        streams
            Names of streams; None: all.
        channels
            By stream name, the names of its channels; other streams keep all of theirs.
        begin, end
            From ``begin`` on and before ``end``, in the unit of the times. Static transforms from
            before ``begin`` are kept. If these or ``channels`` are set, the streams are read.
        clock
            The clock of ``begin`` and ``end``, as for :meth:`align`.
        """
        chosen = self.names
        if streams is not None:
            hint = "; channels= selects channels of streams"
            chosen = self._expanded(names_in(streams, "streams", hint))
        for name in (*chosen, *(channels or {})):
            self._require(name)
        if channels is None and begin is None and end is None:
            loaded = {name: self._loaded[name] for name in chosen if name in self._loaded}
            made = Recording(
                self._source,
                loaded,
                chosen=chosen,
                progress=self._progress,
                left_out=self._left_out,
                path=self._path,
                problems=self._problems,
                unread=self._unread,
                kinds=self._kinds,
                ignored=self._ignored,
                origin=self._origin,
            )
            return following(self, made, "select", streams=list(chosen))
        import numpy as np

        self.load(chosen)
        clock = self.clock(chosen) if clock is None else clock
        taken = []
        for name in chosen:
            stream = self._loaded[name].select(names=(channels or {}).get(name))
            if begin is not None or end is not None:
                times = stream.times(clock_of(stream, clock))
                rows = np.ones(len(times), bool) if begin is None else times >= begin
                rows |= stream.static  # static transforms remain valid
                stream = stream.select(rows if end is None else rows & (times < end))
            taken.append(stream)
        made = Recording(
            None,
            {stream.name: stream for stream in taken},
            left_out=self.left_out,
            path=self.path,
            problems=self.problems,
            unread=self.unread,
            origin=Origin(self.format, {name: self._topic(name) for name in chosen}),
        )
        known = self.names
        made._cameras = {n: c for n, c in self.cameras.items() if n in chosen or n not in known}
        options = {"channels": channels, "begin": begin, "end": end, "clock": clock}
        return following(self, made, "select", streams=list(chosen), **options)

    def without(self, topics: Collection[str]) -> Recording:
        """Return the recording without some topics, selected by name or type.

        They are no longer streams, and checks and lists do not mention them.

        >>> import numpy as np
        >>> from robocache import data
        >>> none, times = np.zeros((0, 1)), {"log": np.zeros(0, np.int64)}
        >>> streams = [data.RecordedStream(n, "", ("x",), none, times) for n in ("/tf/a", "/imu")]
        >>> data.Recording.from_streams(streams).without(["/tf"]).names
        ('/imu',)
        """
        asked = frozenset(topics) | self._ignored.asked
        found = {name for name in self if self.info(name).kind in asked}
        found |= {each.place for each in self.unread if each.type in asked}
        for topic in asked - set(self.names):  # streams of its keys
            found.update(of_topic(topic, self.names))
        ignored = Ignored(asked, asked | found | self._ignored.topics)
        kept = self.select([name for name in self if not ignored.topic(name)])
        kept._ignored = ignored
        kept._unread = tuple(u for u in self._unread if not ignored.topic(u.place, u.type))
        return following(kept, kept, "without", topics=asked)

    def clock(self, names: Collection[str] | None = None) -> str:
        """Return the clock that :meth:`report` and :meth:`align` use: "header", "log" or "time".

        It is "header" if all streams have header stamps that are not 0, never go back, and are
        within 10 s of the log times, since they say when something was measured. Else "log".
        """
        chosen = self.names if names is None else tuple(names)
        self.load(chosen)
        streams = [
            self._loaded[n] for n in chosen if len(self._loaded[n]) and self._loaded[n].clocks
        ]
        streams = [stream for stream in streams if not stream.static] or streams
        if all("time" in stream.clocks for stream in streams):
            return "time"
        return (
            "header"
            if streams and all(header_is_good(s.header_times, s.log_times) for s in streams)
            else "log"
        )

    def report(self, clock: str | None = None, unit: str | None = None) -> Report:
        """Report rates, jitter, gaps and repeats of all streams: :func:`robocache.report`.

        ``unit``: unit of the times if the data do not state it, as in CSV files.
        """
        clock = self.clock() if clock is None else clock
        streams = {}
        for name in self.names:
            stream = self[name]
            if len(stream) and stream.clocks:
                streams[name] = stream.select(names=()).stream(clock_of(stream, clock))
        return report(streams, unit=self.unit or unit)

    def align(self, rate: Any, **options: Any) -> Episodes:
        """Put all streams on one clock, as one episode: see :func:`robocache.data.align`."""
        from ._align import align

        return align(self, rate, **options)

    def save(
        self, path: Any, format: str | None = None, *, overwrite: bool = False
    ) -> tuple[LeftOut, ...]:
        """Write every value and stamp: see :func:`robocache.data.save`."""
        from ._save import save

        return save(self, path, format, overwrite=overwrite)


def clock_of(stream: RecordedStream, clock: str) -> str:
    """Return the clock, or the one that a stream without it uses instead."""
    if not stream.clocks:
        raise ValueError(
            f"{printable(stream.name)} has no times. Name their column with --time COLUMN, or set "
            "the rows per second with --fps HZ, or choose other streams"
        )
    if clock in stream.clocks:
        return clock
    return "log" if "log" in stream.clocks else next(iter(stream.clocks))


def _joined(info: StreamInfo, pieces: list[Piece], unit: str | None) -> RecordedStream:
    """Join the pieces of a stream, in the order of its log times."""
    import numpy as np

    if not pieces:
        names = info.names or ()
        clocks = {"log" if unit == "ns" else "time": np.zeros(0, np.int64)}
        none = np.zeros((0, len(names)), "f4")
        return RecordedStream(info.name, info.kind, names, none, clocks, unit, static=info.static)
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
    dtypes, said = pieces[0].dtypes, pieces[0].said
    return RecordedStream(
        info.name, info.kind, names, values, clocks, unit, dtypes, said, static=info.static
    )


def _concatenated(arrays: list[Any]) -> Any:
    import numpy as np

    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
