"""Spans of a recording that become episodes: by a topic, by gaps, or from a table."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..._printable import printable
from ..._suggestions import did_you_mean
from .._errors import FormatError, some
from .._file_access import opened_text
from .._recording import Recording, clock_of
from .._time_units import per_second
from .sources import Unsuitable

_COLUMNS = ("begin", "end")  # of a table of spans, in seconds


@dataclass(frozen=True)
class Span:
    """A part of a recording, in the unit of its times; None: from its begin, or to its end."""

    begin: Any = None
    end: Any = None
    task: str | None = None


@dataclass(frozen=True)
class Row:
    """A line of a table of spans."""

    begin: float  # s from the first sample of the recording, or s since 1970
    end: float
    absolute: bool
    recording: str | None = None
    task: str | None = None


@dataclass(frozen=True)
class Split:
    """How recordings are split into episodes."""

    topic: str | None = None
    gap: float | None = None  # s
    rows: tuple[Row, ...] | None = None

    @property
    def is_whole(self) -> bool:
        return self.topic is None and self.gap is None and self.rows is None


def split_of(topic: str | None, gap: float | None, spans: Any) -> Split:
    """Check the arguments of ``convert``."""
    if gap is not None and not gap > 0:
        raise ValueError(f"split_gap: is {gap!r}, expected seconds above 0")
    if spans is not None and topic is not None:
        raise ValueError("spans: cannot be combined with episode_from")
    return Split(topic, gap, None if spans is None else rows_of(spans))


def rows_of(path: str | os.PathLike[str]) -> tuple[Row, ...]:
    """Read a table of spans: CSV with the columns begin and end, and perhaps recording and task.

    They are seconds from the first sample of the recording; the columns begin_time and end_time
    are seconds since 1970.
    """
    name = os.fspath(path)
    found = []
    with opened_text(name) as file:
        table = csv.DictReader(file)
        columns = table.fieldnames or []
        absolute = "begin_time" in columns
        keys = tuple(f"{key}_time" if absolute else key for key in _COLUMNS)
        for key in keys:
            if key not in columns:
                text = f"has no column {key!r}, expected begin and end, or begin_time and end_time"
                raise FormatError(name, "line 1", text)
        for line, row in enumerate(table, 2):
            try:
                begin, end = (float(row[key]) for key in keys)
            except (TypeError, ValueError):
                text = f"has {row[keys[0]]!r} and {row[keys[1]]!r}, expected two numbers"
                raise FormatError(name, f"line {line}", text) from None
            if not end > begin:
                text = f"ends at {end:g}, which is not after its begin, {begin:g}"
                raise FormatError(name, f"line {line}", text)
            own = row.get("recording") or None
            found.append(Row(begin, end, absolute, own, row.get("task") or None))
    if not found:
        raise FormatError(name, "", "has no line with a span")
    return tuple(found)


def unused_rows(split: Split, sources: Sequence[str]) -> list[str]:
    """Return notes about lines of a table that name a recording other than the sources."""
    names = [row.recording for row in split.rows or () if row.recording is not None]
    known = [os.path.basename(source.rstrip("/")) for source in sources]
    return [
        f"spans= names {printable(name)}, which is not one of the sources"
        f"{did_you_mean(name, known)}"
        for name in dict.fromkeys(names)
        if not any(_names(name, source) for source in sources)
    ]


def spans_of(
    split: Split, recording: Recording, used: Sequence[str], clock: str, source: str
) -> list[Span]:
    """Return the spans of a recording, in the order of time."""
    if split.topic is not None:
        spans = _of_topic(recording, split.topic, clock)
    elif split.rows is not None:
        spans = _of_rows(split.rows, recording, used, clock, source)
    else:
        spans = [Span()]
    if split.gap is None:
        return spans
    times = {name: _times(recording, name, clock) for name in used}
    ticks = ticks_of(recording, next(iter(times.values())))
    return [part for span in spans for part in _without_gaps(span, times, split.gap * ticks)]


def ticks_of(recording: Recording, times: Any) -> float:
    """Return the ticks a second of the times of a recording."""
    if times.dtype.kind == "f":
        return 1.0
    if recording.unit is None:
        raise Unsuitable("the unit of its times is not known; pass unit=")
    return per_second(recording.unit)


def _times(recording: Recording, name: str, clock: str) -> Any:
    stream = recording[name]
    return stream.times(clock_of(stream, clock))


def _of_topic(recording: Recording, topic: str, clock: str) -> list[Span]:
    """Return a span from each message to the next; for bool, the spans in which it is true."""
    import numpy as np

    if topic not in recording:
        raise Unsuitable(
            f"episode_from: no such stream {topic!r}, expected one of {some(recording.names)}"
            f"{did_you_mean(topic, recording.names)}"
        )
    stream = recording[topic]
    times = _times(recording, topic, clock)
    if len(times) == 0:
        raise Unsuitable(f"episode_from: {printable(topic)} has no message")
    if (np.diff(times) < 0).any():
        raise Unsuitable(f"episode_from: the times of {printable(topic)} go back")
    kinds = stream.dtypes or (stream.values.dtype.name,) * len(stream.names)
    if kinds == ("bool",):
        on = stream.values[:, 0].astype(bool)
        begins = np.flatnonzero(on & ~np.concatenate([[False], on[:-1]]))
        ends = [
            int(after[0]) if len(after := b + np.flatnonzero(~on[b:])) else None for b in begins
        ]
        return [Span(times[b], None if e is None else times[e]) for b, e in zip(begins, ends)]
    return [
        Span(begin, end)
        for begin, end in zip(times.tolist(), [*times[1:].tolist(), None])
        if end is None or end > begin
    ]


def _of_rows(
    rows: Sequence[Row], recording: Recording, used: Sequence[str], clock: str, source: str
) -> list[Span]:
    own = [row for row in rows if row.recording is None or _names(row.recording, source)]
    times = [each for name in used if len(each := _times(recording, name, clock))]
    if not times:
        return []
    ticks = ticks_of(recording, times[0])
    first = min(each.min() for each in times)
    spans = []
    for row in own:
        begin, end = (
            (first if not row.absolute else 0) + (round(at * ticks) if ticks != 1.0 else at)
            for at in (row.begin, row.end)
        )
        spans.append(Span(begin, end, row.task))
    return sorted(spans, key=lambda span: span.begin)


def _names(name: str, source: str) -> bool:
    """Whether a name in a table is that of a source: its path, or the end of it."""
    ends = (source, os.path.basename(source.rstrip("/")))
    stem = os.path.splitext(ends[1])[0]
    return name in (*ends, stem) or source.endswith(f"/{name}")


def _without_gaps(span: Span, times: Mapping[str, Any], gap: float) -> list[Span]:
    """Return the parts of a span in which no stream has a gap."""
    import numpy as np

    holes: list[tuple[Any, Any]] = []
    low = max(each[0] for each in times.values() if len(each))
    high = min(each[-1] for each in times.values() if len(each))
    begin = low if span.begin is None else max(low, span.begin)
    end = high if span.end is None else min(high, span.end)
    for each in times.values():
        steps = np.diff(each)
        for at in np.flatnonzero(steps > gap).tolist():
            holes.append((each[at], each[at + 1]))
    parts, at = [], begin
    for left, right in sorted(holes):
        if left >= end or right <= at:
            continue
        if left > at:
            parts.append(Span(at, _after(left), span.task))
        at = max(at, right)
    if at < end:
        parts.append(Span(at, span.end, span.task))
    return parts


def _after(time: Any) -> Any:
    """Return the next time: ends of spans are excluded, and the sample before a gap belongs."""
    import numpy as np

    return time + 1 if not isinstance(time, (float, np.floating)) else np.nextafter(time, np.inf)
