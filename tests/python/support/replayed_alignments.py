"""Replay of a recording through ``Live``, against the alignment with what had arrived.

The replay has the rows of ``data.align``, but ``Live`` computes them instead of ``fuse``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

from robocache import Live, LiveStream, Stream
from robocache._arguments.to_numpy import on_host
from robocache.data import RecordedStream, Recording, _align, _align_rules, align
from robocache.data._align_arrivals import Kept
from robocache.data._align_rules import Rules, fuse_all


@dataclass(frozen=True)
class Replay:
    """The rows that a robot computes in a replay, compared with the rows of an alignment."""

    rows: int  #: of the alignment
    equal: int  #: rows whose values and masks have equal bytes in all tracks
    unequal: tuple[int, ...]  #: the first rows that differ
    history_rows: int  #: rows of histories that were compared
    unequal_history: int  #: those that differ from the row at the time
    valid: float  #: the part of valid cells of all streams
    dropped: Mapping[str, int]  #: samples that came too late, by stream
    overwritten: Mapping[str, int]  #: samples that newer ones replaced in the rings, by stream

    @property
    def is_equal(self) -> bool:
        """Whether all rows are equal, also in histories."""
        return self.equal == self.rows and self.unequal_history == 0


_SHOWN = 5  # rows


def replayed(
    recording: Recording,
    rate: Any,
    *,
    history: int = 1,
    capacity: int | None = None,
    late: float = 0.0,
    **options: Any,
) -> Replay:
    """Push the samples as they arrived into :class:`robocache.Live`, and compare every row.

    Parameters
    ----------
    recording
        A :class:`Recording` with times of arrival.
    rate
        As for :func:`robocache.data.align`.
    history
        Rows per call of :meth:`robocache.Live.fuse`: the row of the tick, and those before it.
    capacity
        Of the rings. None: the number of samples, so that no sample is lost.
    late
        Seconds from the time when a row can be computed to the call. Rows do not depend on it.
    options
        As for :func:`robocache.data.align` with the samples that had arrived.

    Returns
    -------
    Replay
        Labels and static transforms do not pass through rings, and are equal.
    """
    rings = Rings(history, capacity, late)

    expected = align(recording, rate, available="arrival", **options)
    with rings.instead_of_fuse():
        found = align(recording, rate, available="arrival", **options)
    rows = next(iter(expected.tracks.values())).num_rows
    same = np.ones(rows, bool)
    for name, track in expected.tracks.items():
        same &= _equal_rows(track.values, found[name].values)
    return Replay(
        rows,
        int(same.sum()),
        tuple(np.flatnonzero(~same)[:_SHOWN].tolist()),
        rings.history_rows,
        rings.unequal_history,
        float(np.mean(expected["valid"].values)) if rows else 1.0,
        rings.dropped,
        rings.overwritten,
    )


def _equal_rows(ours: Any, theirs: Any) -> Any:
    if (ours.shape, ours.dtype) != (theirs.shape, theirs.dtype):
        return np.zeros(len(ours), bool)
    width = ours.shape[1] * ours.dtype.itemsize
    bits = [
        np.ascontiguousarray(each).view(np.uint8).reshape(len(each), width)
        for each in (ours, theirs)
    ]
    return (bits[0] == bits[1]).all(axis=1)


class Rings:
    """Computes the rows of streams as a robot does: tick by tick, from what it has received."""

    def __init__(self, history: int, capacity: int | None, late: float) -> None:
        self._history, self._capacity, self._late = history, capacity, late
        self._received: dict[str, tuple[Stream[Any], Any, int]] = {}
        self.history_rows = self.unequal_history = 0
        self.dropped: dict[str, int] = {}
        self.overwritten: dict[str, int] = {}

    @contextmanager
    def instead_of_fuse(self) -> Iterator[None]:
        """Compute the rows of alignments; streams that arrive pass through rings."""
        arrived, stream_of = _align._arrived, Rules.stream
        read: dict[str, tuple[RecordedStream, str, str | None, Kept]] = {}

        def arrive(stream: RecordedStream, own: str, unit: str | None, rules: Rules) -> Kept:
            kept = arrived(stream, own, unit, rules)
            read[stream.name] = stream, own, unit, kept
            return kept

        def make(rules: Rules, name: str, values: Any, times: Any, *rest: Any, **more: Any) -> Any:
            if name in read:  # every sample, in the order of the recording
                stream, own, unit, kept = read[name]
                stamps = _align._stamps(stream, own, unit)
                arrivals = _align._arrivals_of(stream, unit)
                every = stream_of(rules, name, stream.values, stamps, *rest, arrivals=arrivals)
                self._received[name] = every, kept.rows, rules.seen.bound(name)
            return stream_of(rules, name, values, times, *rest, **more)

        with (
            mock.patch.object(_align, "_arrived", arrive),
            mock.patch.object(Rules, "stream", make),
            mock.patch.object(_align_rules, "fuse_all", self.compute),
        ):
            yield

    def compute(
        self, streams: Mapping[str, Stream[Any]], queries: Any, dtype: str, options: Any
    ) -> tuple[Any, Any]:
        """Return what ``fuse`` returns for the same streams."""
        rows = queries.view(np.int64) if queries.dtype.kind in "mM" else queries
        lag = _plain(options["lag"])
        parts, masks = [], []
        for name, stream in streams.items():
            if name in self._received:
                values, valid = self._ticks(name, rows, lag, dtype)
            else:  # a label
                values, valid = fuse_all({name: stream}, queries, dtype, options)
            parts.append(values)
            masks.append(valid)
        return np.concatenate(parts, axis=-1), np.concatenate(masks, axis=-1)

    def _ticks(self, name: str, queries: Any, lag: Any, dtype: str) -> tuple[Any, Any]:
        stream, used, late_bound = self._received[name]
        times, arrivals = _ticks_of(stream.times), _ticks_of(stream.arrivals)
        samples = on_host(stream.values)
        if samples.dtype.kind in "iub":  # fusion picks integers by row
            numbers = np.full((len(samples), 1), -1.0)
            numbers[used, 0] = np.arange(len(used))
            samples = numbers
        order = np.argsort(arrivals, kind="stable")
        arrivals = arrivals[order]
        capacity = (
            max(len(samples), 8, late_bound + 1) if self._capacity is None else self._capacity
        )
        rules = {
            key: _plain(getattr(stream, key))
            for key in ("outside", "fill_value", "max_gap", "max_age", "clock_offset", "causal")
        }
        live = Live(
            [
                LiveStream(
                    samples.shape[1],
                    capacity,
                    late_bound,
                    dtype=samples.dtype.name,
                    method=stream.method,
                    **rules,
                )
            ],
            time_dtype=times.dtype.name,
        )
        values = np.empty((len(queries), samples.shape[1]), dtype)
        valid = np.empty((len(queries), 1), bool)
        late = times.dtype.type(self._late * 1e9 if times.dtype.kind == "i" else self._late)
        pushed = 0
        ends = np.searchsorted(arrivals, queries + lag + late, "right").tolist()
        for row, end in enumerate(ends):
            if end > pushed:
                some = order[pushed:end]
                live.push(0, times[some], samples[some], arrivals[pushed:end])
                pushed = end
            begin = max(0, row + 1 - self._history)
            tick = live.fuse(queries[begin : row + 1], lag=lag, dtype=dtype)
            values[row], valid[row] = tick.values[-1], tick.valid[-1]
            if begin < row:
                before = _equal_rows(tick.values[:-1], values[begin:row])
                before &= (tick.valid[:-1] == valid[begin:row])[:, 0]
                self.history_rows += len(before)
                self.unequal_history += int((~before).sum())
        counts = live.counters(0)
        self.dropped[name], self.overwritten[name] = counts.dropped, counts.overwritten
        return values, valid


def _ticks_of(times: Any) -> Any:
    times = on_host(times)
    return times.view(np.int64) if times.dtype.kind in "mM" else times


def _plain(duration: Any) -> Any:
    """Return a duration of NumPy as ticks; other values unchanged."""
    return int(duration.astype(np.int64)) if isinstance(duration, np.timedelta64) else duration
