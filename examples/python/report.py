"""A summary of input and output, in numbers."""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from recordings import Aligned, Recording, StreamData


class Origin(IntEnum):
    """The origin of an aligned row."""

    GAP = 0  # the samples around it are too far apart: 0, mask 0
    OUTSIDE = 1  # before the first sample or after the last: 0, mask 0
    EXACT = 2  # a sample with this very stamp
    PICKED = 3  # the sample that `nearest`, `previous` or `next` takes
    INTERPOLATED = 4  # between two samples


def origins(stream: StreamData, clock: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Return the Origin of each tick, from the mask and the stamps."""
    met = np.searchsorted(stream.times, clock, side="right") > np.searchsorted(
        stream.times, clock, side="left"
    )
    outside = (clock < stream.times[0]) | (clock > stream.times[-1])
    picks = {"nearest", "previous", "next"}.issuperset(stream.methods)
    between = Origin.PICKED if picks else Origin.INTERPOLATED
    good = np.asarray(mask, dtype=bool)
    return np.select(
        [good & met, good, outside], [Origin.EXACT, between, Origin.OUTSIDE], Origin.GAP
    )


_NOTES = """\
period: the median time between samples. jitter: the std of that time without gaps; p99: 99 % of
        the times are at most this far from the period.
repeats: samples with the stamp of the previous one; of equal stamps the last sample counts.
picked: a sample without interpolation. exact: the tick is the stamp of a sample.
gap: a time between samples beyond the limit shown. outside: before the first sample of a
     stream, or after the last. Both are 0 with mask 0.
"""


def summarize(recording: Recording, aligned: Aligned) -> str:
    span_s = float(recording.seconds(recording.stop))
    channels = sum(len(stream.channels) for stream in recording.streams)
    parts = [
        f"{recording.title}: {span_s:.1f} s, {len(recording.streams)} streams, {channels} channels",
        f"stamps: {aligned.clock.dtype} {recording.stamp_unit} from {recording.start}; "
        f"as float32 they would be rounded to steps of {_float32_step(recording)}",
        f"clock:  {len(aligned.clock)} ticks, {clock_words(recording, aligned.clock)}",
        "",
        f"{recording.report()}\n",
        _table_out(recording, aligned),
        _NOTES.rstrip(),
    ]
    late = [f"{stream.name} {stream.reordered}" for stream in recording.streams if stream.reordered]
    if late:
        parts.append(f"samples that came after a later one, put in order: {', '.join(late)}")
    return "\n".join(parts) + "\n"


def _table_out(recording: Recording, aligned: Aligned) -> str:
    head = "out,method,gap over ms,interpolated,picked,exact,in gap,outside,valid"
    shown = (Origin.INTERPOLATED, Origin.PICKED, Origin.EXACT, Origin.GAP, Origin.OUTSIDE)
    rows = [head.split(",")]
    for stream in recording.streams:
        mask = aligned.masks[stream.name]
        counts = np.bincount(origins(stream, aligned.clock, mask), minlength=len(Origin))
        rows.append(
            [stream.name, "+".join(stream.methods), f"{stream.max_gap_s * 1e3:.1f}"]
            + [str(counts[origin]) for origin in shown]
            + [f"{np.mean(mask):.1%}"]
        )
    return table(rows)


def table(rows: list[list[str]]) -> str:
    """Rows as lines, each column as wide as it needs: names to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = []
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:])]
        lines.append("  ".join([first.ljust(widths[0]), *cells]))
    return "\n".join(lines) + "\n"


def _float32_step(recording: Recording) -> str:
    step_s = float(np.spacing(np.float32(recording.stop))) / recording.ticks_per_second
    return f"{step_s:.3g} s" if step_s >= 1 else f"{step_s * 1e3:.3g} ms"


def clock_words(recording: Recording, clock: np.ndarray) -> str:
    step_s = float(np.median(np.diff(clock))) / recording.ticks_per_second
    stream = recording.clock_stream
    if stream is not None and np.array_equal(clock, recording.stream(stream).times):
        return f"the clock of {stream}, {1 / step_s:.4g} Hz"
    return f"one even clock, {1 / step_s:.4g} Hz"
