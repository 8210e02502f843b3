"""The samples that the rows of an alignment use: those that had arrived, and not too old ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from .. import live_kept
from .._library.errors import REFUSALS, shown
from .._printable import printable
from ._errors import some
from ._source import OTHER_CLOCK
from ._time_units import per_second


@dataclass(frozen=True)
class Seen:
    """The options of ``align`` about the samples that each row sees."""

    arrival: bool = False  # only the samples that had arrived
    lag: float = 0.0  # s
    causal: bool = False
    max_age: Any = None  # s: a number for all streams, or numbers by name
    late_bound: Any = 0  # a number for all streams, or numbers by name
    clock_offset: Any = 0.0  # s: a number for all streams, or numbers by name
    labels: frozenset[str] = frozenset()  # streams whose rows see their whole episode

    def require_streams(self, names: Collection[str]) -> None:
        """Refuse names of streams that do not exist."""
        for option in ("max_age", "late_bound", "clock_offset", "labels"):
            value = getattr(self, option)
            if isinstance(value, (Mapping, frozenset)):
                for name in value:
                    if name not in names:
                        raise KeyError(
                            f"{option}: has {name!r}, expected one of {some(tuple(names))}"
                        )

    def is_limited(self, name: str) -> bool:
        """Whether only samples that had arrived exist for the rows of a stream."""
        return self.arrival and name not in self.labels

    def looks_back(self, name: str) -> bool:
        return self.causal and name not in self.labels

    def age(self, name: str) -> float | None:
        return None if name in self.labels else _number(self.max_age, name, "max_age", None)

    def offset(self, name: str) -> float:
        return _number(self.clock_offset, name, "clock_offset", 0.0) or 0.0

    def bound(self, name: str) -> Any:
        late = self.late_bound
        return late.get(name, 0) if isinstance(late, Mapping) else late


def seen_samples(
    available: str,
    lag: Any,
    causal: bool | None,
    max_age: Any,
    late_bound: Any,
    clock_offset: Any,
    labels: Collection[str],
) -> Seen:
    """Check the options of ``align``."""
    if available not in ("stamp", "arrival"):
        raise ValueError(f"available: is {shown(available)}, expected 'stamp' or 'arrival'")
    if isinstance(labels, str):
        raise TypeError(f"labels: is {labels!r}, expected a list of names of streams")
    arrival = available == "arrival"
    if not arrival:
        for name, value in (("lag", lag), ("late_bound", late_bound)):
            if isinstance(value, Mapping) or value != 0:
                raise ValueError(f"{name}: only valid with available='arrival'")
    causal = arrival if causal is None else bool(causal)
    if max_age is not None and not causal:
        raise ValueError("max_age: only valid with causal=True")
    seconds = _number(lag, "", "lag", 0.0) or 0.0
    return Seen(arrival, seconds, causal, max_age, late_bound, clock_offset, frozenset(labels))


def ticks(seconds: Any, dtype: Any) -> Any:
    """Return a duration in the ticks of times with a unit, else unchanged; None stays."""
    import numpy as np

    if seconds is None or dtype.kind not in "mM":
        return seconds
    unit, count = np.datetime_data(dtype)
    whole: Any = round(seconds * per_second(unit) / count)
    return np.array(whole).astype(f"timedelta64[{count}{unit}]")[()]


def shifted(times: Any, offset: Any) -> Any:
    """Return stamps on the clock of the queries; ``offset`` is in their unit."""
    return times + offset if offset else times


@dataclass(frozen=True)
class Kept:
    """The samples of a stream that are used, in the order of their stamps."""

    rows: Any  # indices of the samples
    times: Any
    arrivals: Any
    dropped: int  # samples that arrived too late, or without a time


def kept_samples(times: Any, arrivals: Any, late_bound: Any) -> Kept:
    """Return the samples of one recording that the rings of ``Live`` keep.

    Samples with equal stamps are in the order in which they arrived, as in the rings.
    """
    import numpy as np

    rows = np.flatnonzero(live_kept(times, arrivals, late_bound))
    rows = rows[np.lexsort((arrivals[rows], times[rows]))]
    return Kept(rows, times[rows], arrivals[rows], len(times) - len(rows))


def require_arrivals(name: str, place: str) -> None:
    raise ValueError(
        f"{printable(name)}: has no times of arrival ({place}), which available='arrival' needs. "
        "Pass available='stamp', or add it to labels if its rows may see the whole episode, as "
        "actions do"
    )


def require_delay(name: str, times: Any, arrivals: Any, where: str = "") -> None:
    """Refuse arrivals that are not on the clock of the stamps; ``times`` are with their offset."""
    import numpy as np

    delays = arrivals - times
    if delays.dtype.kind == "f":
        delays = delays[np.isfinite(delays)]
    if len(delays) == 0:
        return
    known = delays.dtype.kind in "mf"  # floats are in seconds
    per = per_second(np.datetime_data(delays.dtype)[0]) if delays.dtype.kind == "m" else 1.0
    numbers = delays.view(np.int64) if delays.dtype.kind == "m" else delays
    delay = float(np.median(numbers)) / per
    if 0 <= delay and (delay <= OTHER_CLOCK or not known):
        return
    unit = "s" if known else "ticks"
    raise ValueError(
        f"{where}{printable(name)}: the median sample arrived {delay:.4g} {unit} after its stamp, "
        f"expected 0 to {OTHER_CLOCK:g} s, so the stamps are on another clock. Pass the number of "
        f"seconds to add to them as clock_offset={{{name!r}: ...}}, or use the times of arrival "
        "as stamps with clock='log'"
    )


def dropped_note(name: str, dropped: int, total: int) -> str | None:
    """Return a note on samples that arrived too late, or None."""
    if dropped == 0:
        return None
    return (
        f"{printable(name)}: {dropped} of {total} samples dropped, since they arrived after more "
        "than late_bound newer ones, or have no time"
    )


def _number(value: Any, name: str, option: str, otherwise: Any) -> Any:
    if isinstance(value, Mapping):
        value = value.get(name, otherwise)
    if value is None:
        return None
    try:
        if isinstance(value, str):
            raise TypeError
        number = float(value)
    except REFUSALS:
        raise TypeError(f"{option}: is {shown(value)}, expected a number of seconds") from None
    if number != number:
        raise ValueError(f"{option}: is NaN, expected a number of seconds")
    return number
