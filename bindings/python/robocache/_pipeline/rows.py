"""The rows of recordings and data sets, as training sees them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .._episodes.episodes import Episodes, make_episodes
from .._episodes.lazy_tracks import About
from .._episodes.track import Track
from .._operations.fuse import fuse
from .._operations.live_kept import live_kept
from .._operations.stream import Stream
from .._printable import kind_of
from .plan import Plan
from .sources import LONGEST_DELAY, TICKS, StreamPlan, same_type, ticks_of

if TYPE_CHECKING:
    from ..data import Recording

_MOST_ROWS = 100_000_000


@dataclass(frozen=True, eq=False)
class Samples:
    """The samples of one stream in the order in which they arrived."""

    plan: StreamPlan
    values: Any  # [n,D] in the pipeline's units
    times: Any  # [n] int64, ns: stamps
    arrivals: Any | None  # [n] int64, ns; None: not known
    lost: int = 0  # samples with NaN or infinite numbers, which count as none
    logged: Any = None  # [n] int64, ns: when they were recorded, or their times

    @property
    def shifted(self) -> Any:
        """The times at which the samples were taken."""
        return self.times - self.plan.latency

    def stream(self, is_label: bool) -> Stream[Any]:
        """Return the stream as training sees it. A label sees its whole episode."""
        import numpy as np

        plan = self.plan
        order = np.argsort(self.times, kind="stable")
        options: dict[str, Any] = dict(plan.rules)
        if is_label:
            options["causal"], options["max_age"] = False, None
        elif self.arrivals is not None:
            kept = live_kept(self.times, self.arrivals, plan.late_bound)
            options.update(arrivals=self.arrivals[order], sample_mask=kept[order])
        return Stream(
            self.values[order],
            self.times[order],
            fill_value=plan.fill,
            clock_offset=-plan.latency,
            **options,
        )


def rows_of(plan: Plan, data: Any) -> Episodes:
    """Return one track per stream, with a row per tick; NaN where a row is not valid."""
    import numpy as np

    from ..data import Recording

    if not plan.streams:
        raise ValueError("/windows: is empty; without a window there are no rows")
    if isinstance(data, Recording):
        parts = [samples_of_recording(plan, data)]
        source, tasks, places = data.path, None, [""]
    elif isinstance(data, Episodes):
        parts = list(_samples_of_episodes(plan, data))
        source, tasks = data.source, data.tasks
        places = [f"episode {number}: " for number in range(len(parts))]
    else:
        raise TypeError(
            f"data: is {kind_of(data)}, expected a path, a robocache.data.Recording or "
            "robocache.Episodes"
        )
    queries: list[Any] = []
    values: dict[str, list[Any]] = {name: [] for name in plan.streams}
    for where, part in zip(places, parts):
        queries.append(ticks_between(plan, part, where))
        for name, own in fused(plan, part, queries[-1]).items():
            values[name].append(own)
    offsets = np.concatenate([[0], np.cumsum([len(rows) for rows in queries])]).astype(np.int64)
    times = np.concatenate(queries) if queries else np.zeros(0, np.int64)
    tracks = {
        name: Track(
            np.concatenate(values[name]),
            offsets,
            times=times.view("timedelta64[ns]"),
            names=stream.names,
        )
        for name, stream in plan.streams.items()
    }
    about = About("rows of a pipeline", "ns", TICKS / plan.period)
    return make_episodes(tracks, tasks=tasks, source=source, about=about)


def fused(plan: Plan, part: Mapping[str, Samples], queries: Any) -> dict[str, Any]:
    """Return the rows of each stream at the queries; NaN where they are not valid."""
    streams = [part[name].stream(name not in plan.seen) for name in plan.streams]
    values, valid = fuse(streams, queries, lag=plan.lag, dtype=plan.dtype, return_valid=True)
    return split(plan.streams, values, valid)


def split(streams: Mapping[str, StreamPlan], values: Any, valid: Any) -> dict[str, Any]:
    """Return the columns of each stream as an array [T,D] with NaN where they are not valid."""
    import numpy as np

    made, begin = {}, 0
    for number, (name, stream) in enumerate(streams.items()):
        own = np.ascontiguousarray(values[:, begin : begin + stream.width])
        own[~valid[:, number]] = np.nan
        made[name] = own
        begin += stream.width
    return made


def ticks_between(plan: Plan, part: Mapping[str, Samples], where: str = "") -> Any:
    """Return the times of the rows: from the last stream that begins to the first that ends."""
    import numpy as np

    begins, ends = {}, {}
    for name, samples in part.items():
        if len(samples.times) == 0:
            raise ValueError(f"{where}{samples.plan.place}: has no samples in the data")
        begins[name], ends[name] = int(samples.shifted.min()), int(samples.shifted.max())
    begin, end = max(begins.values()), min(ends.values())
    if end < begin:
        last, first = max(begins, key=begins.__getitem__), min(ends, key=ends.__getitem__)
        raise ValueError(
            f"{where}streams have no time in common: {last!r} begins "
            f"{(begin - end) / TICKS:.3g} s after {first!r} ends. Is one on another clock?"
        )
    count = (end - begin) // plan.period + 1
    if count > _MOST_ROWS:
        raise ValueError(f"{where}has {count} rows; one of the times must be wrong")
    return begin + plan.period * np.arange(count, dtype=np.int64)


# ---- samples ------------------------------------------------------------------------------------


def samples_of_recording(plan: Plan, recording: Recording) -> dict[str, Samples]:
    """Read the streams that the plan uses, in one pass."""
    missing = [stream for stream in plan.streams.values() if stream.track not in recording]
    for stream in missing:
        key = "column" if stream.topic is None else "topic"
        near = [name for name in recording.names if name.startswith(f"{stream.track}/")]
        known = ", ".join(map(repr, near or recording.names))
        raise ValueError(
            f"{stream.place}/source/{key}: {stream.track!r} is not in the recording; it has {known}"
        )
    recording.load({stream.track for stream in plan.streams.values()})
    return {
        name: _recorded(plan, stream, recording[stream.track], recording.unit)
        for name, stream in plan.streams.items()
    }


def _recorded(plan: Plan, stream: StreamPlan, recorded: Any, unit: str | None) -> Samples:
    import numpy as np

    if stream.topic is not None and not same_type(recorded.kind, stream.source["type"]):
        raise ValueError(
            f"{stream.place}/source/type: {stream.source['type']!r}; the recording has "
            f"{recorded.kind!r}"
        )
    columns = stream.columns(recorded.names, len(recorded.names))
    values, good = stream.numbers(recorded.values, columns)
    log = recorded.clocks.get("log")
    stamps = recorded.clocks.get("header") if stream.by_header else recorded.times()
    if stamps is None:
        raise ValueError(
            f"{stream.place}/stamp: {'header' if stream.by_header else 'log'!r}; {stream.track!r} "
            f"has only the clocks {sorted(recorded.clocks)}"
        )
    unit = recorded.unit or unit
    times = ticks_of(stamps, unit, stream.place)
    arrivals = None
    if plan.has_arrivals and stream.name in plan.seen:
        if log is None:
            raise ValueError(
                f'/clock/availability: "arrival"; {stream.track!r} has no times of arrival. '
                'Record a bag, or use "stamp"'
            )
        arrivals = ticks_of(log, unit, stream.place)
        _require_delay(stream, times, arrivals)
    order = np.arange(len(times)) if log is None else np.argsort(log, kind="stable")
    order = order[good[order]]
    logged = times if log is None else ticks_of(log, unit, stream.place)
    return Samples(
        stream,
        values[order],
        times[order],
        None if arrivals is None else arrivals[order],
        int(len(times) - len(order)),
        logged[order],
    )


def _require_delay(stream: StreamPlan, times: Any, arrivals: Any) -> None:
    """Refuse times of arrival whose clock is not the clock of the stamps."""
    import numpy as np

    if not len(times):
        return
    delay = float(np.median(arrivals - (times - stream.latency))) / TICKS
    if delay < 0 or delay > LONGEST_DELAY:
        raise ValueError(
            f"{stream.place}/latency: the median sample of {stream.track!r} arrives {delay:.4g} s "
            f"after its time; expected 0 to {LONGEST_DELAY} s. Its stamps are on another clock: "
            'set latency, which is -clock_offset, or "stamp": "log"'
        )


def _samples_of_episodes(plan: Plan, episodes: Episodes) -> Sequence[dict[str, Samples]]:
    from .._arguments.to_numpy import on_host
    from ..data._time_units import unit_of

    if plan.has_arrivals and plan.seen:
        raise ValueError(
            '/clock/availability: "arrival"; a data set has no times of arrival; use "stamp"'
        )
    columns, read = {}, {}
    for name, stream in plan.streams.items():
        if stream.track not in episodes:
            known = ", ".join(map(repr, episodes.tracks))
            raise ValueError(
                f"{stream.place}/source/column: {stream.track!r} is not in the data set; it has "
                f"{known}"
            )
        track = episodes[stream.track]
        if track.values is None or track.times is None:
            what = "values" if track.values is None else "times; open it with rate="
            raise ValueError(f"{stream.place}: the track {stream.track!r} has no {what}")
        columns[name] = stream.columns(track.names, track.num_channels)
        unit = unit_of(track) or episodes.unit or "s"
        times = ticks_of(on_host(track.times), unit, stream.place)
        read[name] = (on_host(track.values), times, on_host(track.episode_offsets))
    parts = []
    for e in range(len(episodes)):
        part = {}
        for name, (values, times, offsets) in read.items():
            rows = slice(int(offsets[e]), int(offsets[e + 1]))
            stream = plan.streams[name]
            numbers, good = stream.numbers(values[rows], columns[name])
            own = _even(plan, episodes.rate, times[rows])
            part[name] = Samples(stream, numbers[good], own[good], None, int((~good).sum()))
        parts.append(part)
    return parts


def _even(plan: Plan, rate: float | None, times: Any) -> Any:
    """Return times without their rounding, if they are the rows of a data set of this rate.

    Float32 stamps of 0.1 s are a little before or after the rows, and a method such as previous
    would take the sample before.
    """
    import numpy as np

    if rate is None or abs(TICKS / plan.period - rate) > 1e-6 * rate or not len(times):
        return times
    even = times[0] + plan.period * np.arange(len(times), dtype=np.int64)
    near = np.abs(times - even) <= plan.period // 10
    return even if near.all() else times
