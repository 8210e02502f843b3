"""What streams are like before they are aligned: rates, jitter, gaps."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .._arguments.time_units import ticks_of
from .._arguments.to_numpy import on_host
from .._operations.stream import Stream
from .._text_table import text_table
from .clock import common_unit, named_streams, offset_of

_PIECE = 1 << 18


@dataclass(frozen=True)
class StreamReport:
    """One stream's samples in time; seconds, or the unit of the times where that is not known."""

    samples: int
    rate: float  #: mean, from the first to the last sample
    period: float  #: the median time between samples
    jitter: float  #: the standard deviation of the time between samples, gaps left out
    jitter_p99: float  #: 99 % of the times between samples are at most this far from the median
    repeats: int  #: samples with the time of the one before
    disorder: int  #: samples with a time before that of the one before
    gaps: int  #: times between samples above ``gap_limit``
    gap_limit: float  #: the stream's max_gap; without one 2.5 periods
    longest_gap: float  #: between any two samples in a row
    coverage: float  #: the part of the time from the first sample of all streams to the last one


@dataclass(frozen=True)
class Report:
    """What :func:`report` gives: ``print`` shows it as a table."""

    streams: dict[str, StreamReport]  #: by name
    unit: str  #: of all lengths of time: "s", or "ticks" where that is not known

    def to_dict(self) -> dict[str, Any]:
        """Plain dicts, numbers and strings, as JSON takes them."""
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        head = ["", "samples", "rate", "period", "jitter", "p99", "repeats", "gaps", "longest"]
        rows = [[*head, "coverage"]]
        shown = 1e3 if self.unit == "s" else 1.0
        for name, of in self.streams.items():
            lengths = (of.period, of.jitter, of.jitter_p99)
            rows.append(
                [name, str(of.samples), f"{of.rate:.4g}"]
                + [f"{shown * length:.4g}" for length in lengths]
                + [str(of.repeats), str(of.gaps), f"{shown * of.longest_gap:.4g}"]
                + [f"{of.coverage:.1%}"]
            )
        units = "rate in Hz, times in ms" if self.unit == "s" else "rate and times in ticks"
        return f"{text_table(rows)}\n{units}"


def report(
    streams: Iterable[Stream[Any]] | Mapping[str, Stream[Any]], *, unit: str | None = None
) -> Report:
    """Tell how regular streams are: rates, jitter, gaps, repeats and coverage.

    It reads all times, which on CUDA waits for them. Rows of a batch are taken one by one: nothing
    is a gap between them.

    Parameters
    ----------
    streams
        :class:`Stream`, in a list or a dict with their names.
    unit
        What a tick of times is that do not tell it: "ns", "us", "ms", "s".

    Returns
    -------
    Report
        In seconds where the unit of the times is known, else in that of the times. ``print`` it, or
        take :meth:`Report.to_dict`.

    Raises
    ------
    ValueError
        There are no streams, or ``unit`` is none.
    TypeError
        The streams' units differ, or something is no stream.

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
    if not any(len(row) for taken in rows.values() for row in taken):
        raise ValueError("streams: have no samples")
    union = _union(list(rows.values()))
    reports = {}
    for name, taken in rows.items():
        steps = np.concatenate([np.diff(row) for row in taken if len(row)] or [np.zeros(0)])
        samples = sum(map(len, taken))
        reports[name] = _one(steps, samples, _limit_of(named[name]), union, per_second)
    return Report(reports, "ticks" if own is None else "s")


def _rows(stream: Any, name: str) -> list[Any]:
    """The times of each row of a stream, on the clock of the queries, as NumPy has them."""
    _, values, times, options, *_ = stream._native
    host, offset = on_host(times, f"{name}.times"), offset_of(stream)
    host = host + offset if offset else host
    lengths, batch_offsets = on_host(options[1], "lengths"), on_host(options[4], "batch_offsets")
    if batch_offsets is not None:
        return [host[begin:end] for begin, end in zip(batch_offsets[:-1], batch_offsets[1:])]
    if host.ndim == 1:
        rows = 1 if lengths is None else len(lengths)
        host = host[None].repeat(rows, axis=0) if rows > 1 else host[None]
    counts = [host.shape[1]] * len(host) if lengths is None else lengths
    return [row[:count] for row, count in zip(host, counts)]


def _union(rows: list[list[Any]]) -> float:
    """How long all streams together are: from the first begin to the last end, in each row."""
    alike = len({len(taken) for taken in rows}) == 1
    total = 0.0
    for taken in zip(*rows) if alike else [[row for each in rows for row in each]]:
        ends = [row[[0, -1]] for row in taken if len(row)]
        if ends:
            total += float(max(end[1] for end in ends) - min(end[0] for end in ends))
    return total


def _apart(steps: Any, period: float, limit: float) -> Any:
    """What steps that are no gaps have beyond the period: piece by piece, for they may be many."""
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
    """The standard deviation of numbers around 0, without a copy of them."""
    import numpy as np

    mean = float(apart.mean())
    return math.sqrt(max(float(np.dot(apart, apart)) / len(apart) - mean * mean, 0.0))


def _p99(apart: Any) -> float:
    """99 % of these are at most this far from 0; overwritten, for they may be many."""
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
    """Of times between samples in ticks, which are exact where they are integers."""
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
