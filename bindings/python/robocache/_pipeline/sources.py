"""The streams of a pipeline: how samples of messages and tables become numbers and times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .strict_json import shown, step
from .units import methods_of

TICKS = 10**9  # per second: all times are int64 nanoseconds inside
# s, the median of arrival - stamp. A longer one, or one below 0: the stamps are on another clock.
LONGEST_DELAY = 10
_MOST_NAMES = 12  # in a message


def ticks_of_seconds(seconds: float) -> int:
    return round(seconds * TICKS)


def ticks_of(times: Any, unit: str | None, where: str) -> Any:
    """Return times as nanoseconds, int64.

    A float of seconds is split into its whole part and the rest, so that a large time keeps all of
    its digits.
    """
    import numpy as np

    times = np.asarray(times)
    if times.dtype.kind in "mM":
        return times.astype(f"{times.dtype.kind}8[ns]").astype(np.int64)
    if times.dtype.kind in "iu":
        if unit is None:
            raise ValueError(
                f"{where}: the unit of its integer times is not known; open the data with unit="
            )
        scale = {"ns": 1, "us": 10**3, "ms": 10**6, "s": TICKS}[unit]
        return times.astype(np.int64) * scale
    if times.dtype.kind != "f":
        raise TypeError(f"{where}: times are {times.dtype}, expected floats or integers")
    seconds = times.astype(np.float64) / {"us": 1e6, "ms": 1e3, "ns": 1e9}.get(unit or "s", 1.0)
    if not np.isfinite(seconds).all():
        raise ValueError(f"{where}: a time is NaN or infinite; expected finite times")
    if (np.abs(seconds) > 9.2e9).any():
        raise ValueError(f"{where}: a time is above 9.2e9 s, which nanoseconds in 64 bits lack")
    whole = np.floor(seconds)
    rest = np.rint((seconds - whole) * TICKS)
    return whole.astype(np.int64) * TICKS + rest.astype(np.int64)


def same_type(ours: str, theirs: str) -> bool:
    """Whether two names of message types are of one type; ROS 1 has no "/msg/"."""
    return ours.replace("/msg/", "/") == theirs.replace("/msg/", "/")


@dataclass(frozen=True, eq=False)
class StreamPlan:
    """One stream of a pipeline file, ready for use."""

    name: str
    source: Mapping[str, Any]
    names: tuple[str, ...]  # of the channels
    origins: tuple[Any, ...]  # their names or indices in the source
    scale: Any  # float64 [D]
    offset: Any
    dtype: str
    by_header: bool
    latency: int  # ns
    late_bound: int
    capacity: int
    fill: float
    rules: Mapping[str, Any]  # options of Stream and LiveStream

    @classmethod
    def from_entry(cls, name: str, entry: Mapping[str, Any], dtype: str) -> StreamPlan:
        import numpy as np

        channels = entry["channels"]
        kinds, names = [c["kind"] for c in channels], tuple(c["name"] for c in channels)
        gap = entry["max_gap"]
        return cls(
            name=name,
            source=entry["source"],
            names=names,
            origins=tuple(channel["from"] for channel in channels),
            scale=np.array([channel["scale"] for channel in channels], np.float64),
            offset=np.array([channel["offset"] for channel in channels], np.float64),
            dtype=dtype,
            by_header=entry["stamp"] == "header",
            latency=ticks_of_seconds(entry["latency"]),
            late_bound=entry["late_bound"],
            capacity=entry["capacity"],
            fill=float(entry["fill"]),
            rules={
                "method": methods_of(kinds, [c["unit"] for c in channels], entry["method"]),
                "max_gap": None if gap is None else ticks_of_seconds(gap),
                "max_age": ticks_of_seconds(entry["max_age"]),
                "causal": True,
            },
        )

    @property
    def place(self) -> str:
        """The JSON pointer of the stream."""
        return f"/streams{step(self.name)}"

    @property
    def topic(self) -> str | None:
        topic: str | None = self.source.get("topic")
        return topic

    @property
    def track(self) -> str:
        """The name of the stream in a recording, or of the track in a data set."""
        if self.topic is None:
            name: str = self.source["column"]
            return name
        return self.topic if self.key is None else f"{self.topic}/{self.key}"

    @property
    def key(self) -> str | None:
        """The frame or the joints of the stream, in a topic that has several."""
        key: str | None = self.source.get("key")
        return key

    @property
    def width(self) -> int:
        return len(self.names)

    def columns(self, labels: Sequence[str] | None, width: int) -> list[int]:
        """Return the columns of the channels among those of the source.

        Raises
        ------
        ValueError
            The source lacks a channel. The message begins with its JSON pointer.
        """
        found = []
        own = self._field_columns(labels, width)
        for number, origin in enumerate(self.origins):
            pointer = f"{self.place}/channels/{number}/from: {shown(origin)}"
            if isinstance(origin, str):
                column = self._named(origin, labels)
                if column is None:
                    raise ValueError(
                        f"{pointer} is not in {self.track!r}; it has {_some(labels or ())}"
                    )
                found.append(column)
                continue
            if origin >= len(own):
                raise ValueError(f"{pointer}; {self.track!r} has only {len(own)} numbers there")
            found.append(own[origin])
        return found

    def _field_columns(self, labels: Sequence[str] | None, width: int) -> list[int]:
        field = self.source.get("field", "")
        if not field or labels is None:
            return list(range(width))
        return [
            i
            for i, label in enumerate(labels)
            if label == field or label.startswith((f"{field}.", f"{field}["))
        ]

    def _named(self, origin: str, labels: Sequence[str] | None) -> int | None:
        field = self.source.get("field", "")
        wanted = (f"{field}[{origin}]", f"{field}.{origin}") if field else (origin,)
        for column, label in enumerate(labels or ()):
            if label in wanted:
                return column
        return None

    def numbers(self, raw: Any, columns: Sequence[int] | None = None) -> tuple[Any, Any]:
        """Return values [n,D] in the pipeline's units, and a mask of the rows without NaN."""
        import numpy as np

        chosen = raw if columns is None else raw[:, columns]
        made = (chosen.astype(np.float64) * self.scale + self.offset).astype(self.dtype)
        return made, np.isfinite(made).all(axis=1)


def _some(names: Sequence[str]) -> str:
    shown_names = ", ".join(map(repr, names[:_MOST_NAMES]))
    more = len(names) - _MOST_NAMES
    return (shown_names or "no names") + (f" and {more} more" if more > 0 else "")
