"""A recording as the demo sees it: before it is aligned, and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np

import robocache as rbc

#: One method for all channels, or one per group: [(first, count, name), ...].
Method = Union[str, Sequence[tuple[int, int, str]]]


@dataclass(frozen=True)
class Panel:
    """What to draw for a stream: a channel, or a curve computed from it and later channels."""

    axis_label: str
    channel: int = 0
    curve: Callable[[np.ndarray], np.ndarray] = lambda values: values[:, 0]

    def of(self, values: np.ndarray) -> np.ndarray:
        return self.curve(values[:, self.channel :]).astype(np.float64)


@dataclass(frozen=True)
class StreamData:
    """One sensor: values [S, D] at stamps [S] that ascend; equal stamps are allowed."""

    name: str
    times: np.ndarray
    values: np.ndarray
    channels: tuple[str, ...]
    nominal_hz: float
    method: Method = "linear"
    #: Two samples further apart than this have a gap between them: nothing there is made up.
    max_gap_s: float = 0.0
    panels: tuple[Panel, ...] = ()
    #: How many samples came after one with a later stamp.
    reordered: int = 0

    def method_of(self, channel: int) -> str:
        if isinstance(self.method, str):
            return self.method
        return next(name for begin, count, name in self.method if begin <= channel < begin + count)

    @property
    def methods(self) -> list[str]:
        """The names of its methods, each once."""
        if isinstance(self.method, str):
            return [self.method]
        return list(dict.fromkeys(name for _, _, name in self.method))


@dataclass(frozen=True)
class Recording:
    """Streams whose stamps share one clock and one unit."""

    name: str
    title: str
    streams: tuple[StreamData, ...]
    ticks_per_second: float
    stamp_unit: str
    #: The clock to align on: that of a stream, where one is the natural clock, else an even one.
    clock_stream: str | None = None
    clock_hz: float = 100.0
    #: What the picture zooms in on: the first second shown, counted from the start, and how many.
    window_s: tuple[float, float] = (0.0, 1.0)

    @property
    def start(self) -> np.int64 | np.float64:
        return min(stream.times[0] for stream in self.streams)

    @property
    def stop(self) -> np.int64 | np.float64:
        return max(stream.times[-1] for stream in self.streams)

    def seconds(self, times: np.ndarray | np.number) -> np.ndarray:
        """Return seconds since the start. The difference comes first, to keep all digits."""
        return (times - self.start) / self.ticks_per_second

    def ticks(self, seconds: float) -> int | float:
        """Convert a duration to the unit of the stamps: whole ticks if they are integers."""
        ticks = seconds * self.ticks_per_second
        return int(ticks) if np.issubdtype(self.start.dtype, np.integer) else ticks

    def sensors(self) -> dict[str, rbc.Stream[np.ndarray]]:
        """Return the streams as robocache.Stream objects."""
        return {
            stream.name: rbc.Stream(
                stream.values,
                stream.times,
                method=stream.method,
                outside="fill",
                max_gap=self.ticks(stream.max_gap_s),
            )
            for stream in self.streams
        }

    def report(self) -> rbc.Report:
        """Return a report on the regularity of the streams, in seconds."""
        return rbc.report(self.sensors(), unit=self.stamp_unit)

    def stream(self, name: str) -> StreamData:
        return next(stream for stream in self.streams if stream.name == name)


@dataclass(frozen=True)
class Aligned:
    """The N streams of a recording on one clock [T], their channels side by side.

    `values` and `masks` are the same by name: views of the columns of each stream.
    """

    clock: np.ndarray
    features: np.ndarray  # [T, D_0 + ... + D_N-1]
    valid: np.ndarray  # [T, N]
    values: dict[str, np.ndarray]  # [T, D_n]
    masks: dict[str, np.ndarray]  # [T]


def make_stream(
    name: str,
    times: np.ndarray,
    values: np.ndarray,
    channels: tuple[str, ...],
    nominal_hz: float,
    *,
    max_gap_s: float | None = None,
    **options: Any,
) -> StreamData:
    """Sort samples by their stamps.

    Two missing samples in a row are a gap by default; one missing sample is interpolated.
    """
    values = values.reshape(len(times), -1)
    if len(times) < 2:
        raise ValueError(f"{name}: {len(times)} samples, expected two at least")
    if values.shape[1] != len(channels):
        raise ValueError(f"{name}: {values.shape[1]} channels, but {len(channels)} names")
    # Stable: among equal stamps the order of arrival stays, and the last one counts.
    order = np.argsort(times, kind="stable")
    reordered = int(np.count_nonzero(times < np.maximum.accumulate(times)))
    return StreamData(
        name,
        np.ascontiguousarray(times[order]),
        np.ascontiguousarray(values[order]),
        channels,
        nominal_hz,
        max_gap_s=2.5 / nominal_hz if max_gap_s is None else max_gap_s,
        reordered=reordered,
        **options,
    )


def tilt(values: np.ndarray) -> np.ndarray:
    """Degrees between a body's z axis and the vertical, of quaternions w, x, y, z of any sign."""
    w, x, y, z = np.moveaxis(values[:, :4].astype(np.float64), 1, 0)
    return np.degrees(2 * np.arctan2(np.hypot(x, y), np.hypot(w, z)))
