"""Reports on the timing of streams: rates, jitter, gaps."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .._arguments.resample_params import BATCH_OFFSETS, LENGTHS
from .._arguments.time_units import ticks_of
from .._arguments.to_numpy import on_host
from .._library.errors import shown
from .._operations.stream import Stream
from .._printable import kind_of
from .._text_table import html_table, text_table
from .clock import common_unit, named_streams, offset_of

_PIECE = 1 << 18


@dataclass(frozen=True)
class StreamReport:
    """Timing of one stream, in seconds, or in ticks if the unit of the times is unknown."""

    samples: int
    rate: float  #: mean rate from the first to the last sample
    period: float  #: median time between samples
    jitter: float  #: standard deviation of the time between samples, without gaps
    jitter_p99: float  #: 99 % of these times differ from the period by at most this
    repeats: int  #: samples with the same time as the sample before
    disorder: int  #: samples with an earlier time than the sample before
    gaps: int  #: times between samples above ``gap_limit``
    gap_limit: float  #: the stream's max_gap, or 2.5 periods without one
    longest_gap: float  #: longest time between successive samples
    coverage: float  #: fraction of the time range of all streams that has samples without gaps


@dataclass(frozen=True, repr=False)
class Report:
    """The result of :func:`report`; ``print`` shows it as a table."""

    streams: dict[str, StreamReport]  #: by name
    unit: str  #: of all durations: "s", or "ticks" if the unit of the times is unknown

    def __post_init__(self) -> None:
        streams = self.streams
        if not isinstance(streams, Mapping):
            raise TypeError(f"streams: is {kind_of(streams)}, expected a dict")
        for name, stream in streams.items():
            if not isinstance(name, str) or not isinstance(stream, StreamReport):
                kind = type(stream).__name__
                raise TypeError(f"streams[{shown(name)}]: is a {kind}, expected a StreamReport")

    def to_dict(self) -> dict[str, Any]:
        """Return the report as dicts, numbers and strings, for JSON."""
        return dataclasses.asdict(self)

    def __repr__(self) -> str:
        return f"{text_table(self._rows())}\n{self._units()}"

    def _repr_html_(self) -> str:
        return html_table(self._rows(), self._units())

    def _units(self) -> str:
        return "rate in Hz, times in ms" if self.unit == "s" else "rate and times in ticks"

    def _rows(self) -> list[list[str]]:
        head = ["", "samples", "rate", "period", "jitter", "p99", "repeats", "gaps", "longest"]
        rows = [[*head, "coverage"]]
        shown = 1e3 if self.unit == "s" else 1.0
        for name, stream in self.streams.items():
            lengths = (stream.period, stream.jitter, stream.jitter_p99)
            rows.append(
                [name, str(stream.samples), f"{stream.rate:.4g}"]
                + [f"{shown * length:.4g}" for length in lengths]
                + [str(stream.repeats), str(stream.gaps), f"{shown * stream.longest_gap:.4g}"]
                + [f"{stream.coverage:.1%}"]
            )
        return rows


def report(
    streams: Iterable[Stream[Any]] | Mapping[str, Stream[Any]], *, unit: str | None = None
) -> Report:
    """Report how regular streams are: rates, jitter, gaps, repeats and coverage.

    This reads all times; on CUDA it waits for them. Each row of a batch is examined separately:
    there are no gaps between rows.

    Parameters
    ----------
    streams
        :class:`Stream`, in a list or a dict with their names.
    unit
        Unit of times that have none of their own: "ns", "us", "ms" or "s".

    Returns
    -------
    Report
        In seconds if the unit of the times is known, else in ticks. Use ``print`` or
        :meth:`Report.to_dict`.

    Raises
    ------
    ValueError
        There are no streams, or ``unit`` is unknown.
    TypeError
        The streams' units differ, or an argument is not a :class:`Stream`.

    Examples
    --------
    >>> import numpy as np
    >>> import robocache as rbc
    >>> times = np.delete(np.arange(100) * 10_000_000, range(40, 52))
    >>> print(rbc.report({"arm": rbc.Stream(np.zeros((88, 7)), times)}, unit="ns"))
         samples   rate  period  jitter  p99  repeats  gaps  longest  coverage
    arm       88  87.88      10       0    0        0     1      130     86.9%
    rate in Hz, times in ms
    """
    import numpy as np

    named = named_streams(streams)
    own = common_unit(named, unit)
    per_second = 1.0 if own is None else own.per_second
    rows = {name: _rows(stream, name) for name, stream in named.items()}
    if not any(len(row) for stream_rows in rows.values() for row in stream_rows):
        raise ValueError("streams: have no samples")
    union = _union(list(rows.values()))
    reports = {}
    for name, stream_rows in rows.items():
        steps = np.concatenate([np.diff(row) for row in stream_rows if len(row)] or [np.zeros(0)])
        samples = sum(map(len, stream_rows))
        reports[name] = _one(steps, samples, _limit_of(named[name]), union, per_second)
    return Report(reports, "ticks" if own is None else "s")


def _rows(stream: Any, name: str) -> list[Any]:
    """Return the times of each row of a stream as NumPy arrays, on the clock of the queries."""
    _, values, times, options, *_ = stream._native
    host, offset = on_host(times, f"{name}.times"), offset_of(stream)
    host = host + offset if offset else host
    lengths = on_host(options[LENGTHS], "lengths")
    batch_offsets = on_host(options[BATCH_OFFSETS], "batch_offsets")
    if batch_offsets is not None:
        return [host[begin:end] for begin, end in zip(batch_offsets[:-1], batch_offsets[1:])]
    if host.ndim == 1:
        rows = 1 if lengths is None else len(lengths)
        host = host[None].repeat(rows, axis=0) if rows > 1 else host[None]
    counts = [host.shape[1]] * len(host) if lengths is None else lengths
    return [row[:count] for row, count in zip(host, counts)]


def _union(rows: list[list[Any]]) -> float:
    """Return the duration of all streams together, from the first begin to the last end per row."""
    alike = len({len(group) for group in rows}) == 1
    total = 0.0
    for group in zip(*rows) if alike else [[row for each in rows for row in each]]:
        ends = [row[[0, -1]] for row in group if len(row)]
        if ends:
            total += float(max(end[1] for end in ends) - min(end[0] for end in ends))
    return total


def _apart(steps: Any, period: float, limit: float) -> Any:
    """Return the differences from the period of steps that are not gaps, computed in pieces."""
    import numpy as np

    made = np.zeros(max(int(np.count_nonzero(steps <= limit)), 1))
    at = 0
    for begin in range(0, len(steps), _PIECE):
        part = steps[begin : begin + _PIECE]
        kept = part[part <= limit]
        np.subtract(kept, period, out=made[at : at + len(kept)])
        at += len(kept)
    return made


def _deviation(apart: Any) -> float:
    """Return the standard deviation of numbers near 0, without a copy of them."""
    import numpy as np

    mean = float(apart.mean())
    return math.sqrt(max(float(np.dot(apart, apart)) / len(apart) - mean * mean, 0.0))


def _p99(apart: Any) -> float:
    """Return the 99th percentile of absolute values. The array is overwritten to save memory."""
    import numpy as np

    return float(np.percentile(np.abs(apart, out=apart), 99, overwrite_input=True))


def _limit_of(stream: Any) -> float | None:
    if stream.max_gap is None:
        return None
    if stream._unit is None:
        return float(stream.max_gap)
    return float(ticks_of(stream.max_gap, "max_gap", stream._unit))


def _one(
    steps: Any, samples: int, limit: float | None, union: float, per_second: float
) -> StreamReport:
    """Return the report of one stream from the times between its samples, in ticks."""
    import numpy as np

    if len(steps) == 0:
        nan = float("nan")
        limit = nan if limit is None else limit / per_second
        return StreamReport(samples, nan, nan, nan, nan, 0, 0, 0, limit, nan, 0.0)
    period = float(np.median(steps))
    limit = 2.5 * period if limit is None else limit
    in_gap = steps > limit
    covered = float(steps.sum(where=~in_gap))
    apart = _apart(steps, period, limit)
    jitter = _deviation(apart)
    total = float(steps.sum())
    return StreamReport(
        samples=samples,
        rate=len(steps) / total * per_second if total > 0 else float("nan"),
        period=period / per_second,
        jitter=jitter / per_second,
        jitter_p99=_p99(apart) / per_second,
        repeats=int(np.count_nonzero(steps == 0)),
        disorder=int(np.count_nonzero(steps < 0)),
        gaps=int(np.count_nonzero(in_gap)),
        gap_limit=limit / per_second,
        longest_gap=float(steps.max()) / per_second,
        coverage=covered / union if union > 0 else 1.0,
    )
