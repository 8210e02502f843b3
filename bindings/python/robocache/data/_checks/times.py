"""Checks of stamps: gaps, jitter, repeats, order, zeros, and one clock against another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Callable

from ..._printable import printable
from .._findings import Finding
from .._source import OTHER_CLOCK

_JITTER = 0.2  # of the period
_BURSTS = 0.05  # of all intervals are longer than a gap: bursts rather than gaps
_MANY = 50  # intervals from which on a stream counts as periodic
_DRIFT = 0.005  # s over the recording
_FEWEST = 10  # samples; fewer say nothing
_SINCE_1970 = 946_684_800  # s: the year 2000
_SHARED = 3  # samples per stamp
_EDGE = 0.1  # of the samples at each end are used for the drift


@dataclass(frozen=True)
class Limits:
    """Limits of the checks of times."""

    gap: float | None = None  #: s; None: 2.5 periods, as in robocache.report
    jitter: float = _JITTER  #: of the period


def check_times(
    name: str,
    rows: Sequence[Any],
    per_second: float | None,
    limits: Limits,
    clock: str = "",
    only_order: bool = False,
) -> list[Finding]:
    """Check the times of one stream and clock: one array per episode.

    ``per_second`` is the number of ticks per second; None: not known. ``only_order`` skips gaps
    and jitter, if they are checked on another clock of the stream.
    """
    import numpy as np

    place = f"{clock} times" if clock in ("header", "log") else ""
    rows = [row for row in rows if len(row)]
    found: list[Finding] = []
    total = sum(map(len, rows))
    zeros = sum(int(np.count_nonzero(row == 0)) for row in rows) if clock == "header" else 0
    if zeros:
        text = f"{zeros} of {total} stamps are 0"
        found.append(Finding("warning", "zero_stamps", name, place, text))
        if zeros == total:
            return found
    steps = np.concatenate([np.diff(row) for row in rows] or [np.zeros(0)])
    if not np.isfinite(steps).all():
        return [Finding("error", "order", name, place, "times are not finite")]
    if clock != "log":
        for row in rows:
            lost = lost_digits(row, per_second)
            if lost is not None:
                return [Finding("error", "lost_digits", name, place, lost.text)]
    if len(steps) == 0:
        return found
    seconds = steps / (per_second or 1.0)
    del steps  # in long recordings these arrays are large
    words = _seconds if per_second is not None else _ticks
    found += _order(name, place, rows, seconds, words)
    if only_order or not (seconds > 0).any():
        return found
    period = float(np.median(seconds[seconds > 0], overwrite_input=True))
    limit = 2.5 * period if limits.gap is None else limits.gap
    return found + _regularity(name, place, rows, seconds, period, limit, limits, words)


def _order(
    name: str, place: str, rows: Sequence[Any], seconds: Any, words: Callable[[float], str]
) -> list[Finding]:
    import numpy as np

    found = []
    back, repeats = int((seconds < 0).sum()), int((seconds == 0).sum())
    if back:
        at = _sample_after(rows, int(np.argmax(seconds < 0)))
        worst = words(-float(seconds.min()))
        text = f"time goes back once, by {worst}, at {at}"
        if back > 1:
            text = f"time goes back {back} times, by up to {worst} (first: {at})"
        found.append(Finding("error", "order", name, place, text))
    if repeats:
        at = _sample_after(rows, int(np.argmax(seconds == 0)))
        equal = "1 of {0} stamps is" if repeats == 1 else f"{repeats} of {{0}} stamps are"
        text = f"{equal.format(sum(map(len, rows)))} equal to the one before (first: {at})"
        found.append(Finding("warning", "repeats", name, place, text))
    return found


def _regularity(
    name: str,
    place: str,
    rows: Sequence[Any],
    seconds: Any,
    period: float,
    limit: float,
    limits: Limits,
    words: Callable[[float], str],
) -> list[Finding]:
    import numpy as np

    gaps = seconds > limit
    count = int(gaps.sum())
    found = []
    if limits.gap is None and count > _BURSTS * len(seconds):
        mean = float(seconds.mean())
        text = (
            f"comes in bursts: the median interval is {words(period)}, the mean {words(mean)}, "
            f"with {count} pauses of up to {words(float(seconds.max()))}"
        )
        severity = "warning" if len(seconds) >= _MANY else "note"  # not all topics have a rate
        return [Finding(severity, "jitter", name, place, text)]
    if count:
        longest = int(np.argmax(seconds))
        text = (
            f"{count} gap{'s' if count > 1 else ''} of more than {words(limit)}; the longest "
            f"is {words(float(seconds[longest]))} at {_sample_after(rows, longest)}"
        )
        found.append(Finding("warning", "gaps", name, place, text))
    regular = seconds[(seconds <= 2.5 * period) & (seconds >= 0)]
    regular -= period  # in place; np.std would make a copy, and there may be very many
    mean = float(regular.mean()) if len(regular) else 0.0
    square = float(np.dot(regular, regular)) / max(len(regular), 1)
    jitter = max(square - mean * mean, 0.0) ** 0.5
    if jitter > limits.jitter * period:
        text = f"intervals vary by {words(jitter)} (standard deviation) around {words(period)}"
        found.append(Finding("warning", "jitter", name, place, text))
    return found


@dataclass(frozen=True)
class LostDigits:
    """Stamps that many samples share because they were written with too few digits."""

    samples: int
    stamps: int  # different ones
    step: float | None  # between them, in ticks; None: there is only one

    @property
    def text(self) -> str:
        return (
            f"{self.samples} samples share {self.stamps} stamp{'s' if self.stamps > 1 else ''}: "
            "the stamps lost their digits when they were written"
        )


def lost_digits(times: Any, per_second: float | None) -> LostDigits | None:
    """Whether times [n] are so coarse that most samples share their time with others.

    Bursts of samples with one stamp do not count. The distinct stamps must be on a grid that
    a short format leaves: float32 values, whole seconds or powers of ten of them; or, below a
    second, powers of ten with the same number of samples at each.
    """
    import numpy as np

    count = len(times)
    if count < _FEWEST or not np.isfinite(times).all():
        return None
    times = np.asarray(times)
    steps = np.diff(times)
    ends = np.flatnonzero(steps)
    stamps = len(ends) + 1
    if stamps == 1:
        return LostDigits(count, 1, None)
    if count < 2 * stamps or (steps < 0).any():
        return None
    steps = steps[ends].astype(np.float64)
    step = float(steps.min())
    largest = float(np.abs(times[[0, -1]]).max())
    slack = 4 * float(np.spacing(largest))  # for times that are or were floats
    if (np.abs(steps / step - np.rint(steps / step)) > slack / step + 1e-6).any():
        return None
    lost = LostDigits(count, stamps, step)
    if times.dtype.kind == "f" and (times == times.astype(np.float32)).all():
        if step <= 4 * float(np.spacing(np.float32(largest))):
            return lost
    ticks = per_second or 1.0
    is_known = per_second is not None or times.dtype.kind == "f" or _SINCE_1970 < largest < 2**32
    is_coarse = is_known and step > 0.99 * ticks
    power = 10.0 ** round(float(np.log10(step / ticks)))
    grid = ticks * (round(step / ticks) if is_coarse else power)
    if times.dtype.kind == "f":
        off = np.abs(times - np.rint(times / grid) * grid)
    else:
        whole = max(1, round(grid))
        off = np.minimum(times % whole, whole - times % whole)
    if count < _SHARED * stamps or abs(step - grid) > 2 * slack or (off > 2 * slack).any():
        return None
    if is_coarse:
        return lost
    runs = np.diff(ends)
    if len(runs) == 0:
        return None
    even = np.abs(runs - np.median(runs)) <= 1
    return lost if even.mean() >= 0.9 and (steps < 1.5 * step).mean() >= 0.9 else None


def require_digits(name: str, times: Any, per_second: float | None) -> None:
    """Refuse times that lost their digits.

    Raises
    ------
    ValueError
        Most samples share their time with others.
    """
    lost = lost_digits(times, per_second)
    if lost is not None:
        raise ValueError(
            f"{printable(name)}: {lost.text}. Use --fps HZ to compute times from row numbers"
        )


def check_clocks(name: str, header: Any, log: Any) -> list[Finding]:
    """Compare header stamps with log times, both int64 ns of the same length."""
    import numpy as np

    there = header > 0
    if not there.any() or len(header) < 2:
        return []
    apart = (header[there] - log[there]) / 1e9
    middle = float(np.median(apart))
    words = f"{'ahead of' if middle > 0 else 'behind'} the log times"
    if abs(middle) > OTHER_CLOCK:
        text = f"header stamps come from another clock: {_seconds(abs(middle))} {words}"
        return [Finding("warning", "clock", name, "header times", text)]
    found = []
    edge = max(1, int(_EDGE * len(apart)))
    change = float(np.median(apart[-edge:]) - np.median(apart[:edge]))
    span = float(log[there][-1] - log[there][0]) / 1e9
    if abs(change) > _DRIFT and span > 1 and len(apart) >= 20:
        text = (
            f"header stamps drift by {_seconds(abs(change))} against the log times over "
            f"{_seconds(span)} ({1e6 * change / span:+.0f} ppm)"
        )
        found.append(Finding("warning", "drift", name, "header times", text))
    if abs(middle) > 1e-3:
        text = f"header stamps are {_seconds(abs(middle))} {words} in the median"
        found.append(Finding("note", "latency", name, "header times", text))
    return found


def check_spans(spans: dict[str, tuple[float, float]]) -> list[Finding]:
    """Find streams that begin late or end early, by their first and last times in seconds."""
    if len(spans) < 2:
        return []
    first, last = min(s[0] for s in spans.values()), max(s[1] for s in spans.values())
    found = []
    for name, (begin, end) in spans.items():
        parts = []
        if begin - first > max(1.0, 0.05 * (last - first)):
            parts.append(f"begins {_seconds(begin - first)} after the first stream")
        if last - end > max(1.0, 0.05 * (last - first)):
            parts.append(f"ends {_seconds(last - end)} before the last one")
        if parts:
            found.append(Finding("note", "span", name, "", " and ".join(parts)))
    return found


def check_rate(name: str, rows: Sequence[Any], rate: float) -> list[Finding]:
    """Compare stamps of episodes with their frame numbers, as LeRobot does."""
    import numpy as np

    worst, where, far = 0.0, 0, 0
    for episode, times in enumerate(rows):
        if len(times) == 0:
            continue
        apart = float(np.abs(times - np.arange(len(times)) / rate).max())
        far += apart > 1e-4
        if apart > worst:
            worst, where = apart, episode
    if not far:
        return []
    text = (
        f"times of {far} episodes differ by up to {_seconds(worst)} from frame / {rate:g} Hz, "
        "the times that LeRobot assumes"
    )
    return [Finding("warning", "rate", name, f"episode {where}", text)]


def _sample_after(rows: Sequence[Any], index: int) -> str:
    """Return the sample after an interval, counted over all rows, with its episode if several."""
    for number, row in enumerate(rows):
        if index < len(row) - 1:
            at = f"sample {index + 1}"
            return at if len(rows) == 1 else f"episode {number}, {at}"
        index -= len(row) - 1
    return "the end"


def _ticks(value: float) -> str:
    return f"{value:.4g} ticks"


def _seconds(value: float) -> str:
    """Return a duration in a suitable unit."""
    if value < 1e-3:
        return f"{1e6 * value:.3g} us"
    if value < 1:
        return f"{1e3 * value:.3g} ms"
    return f"{value:.4g} s"
