"""What an alignment leaves out because streams begin late or end early, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._arguments.to_numpy import on_host
from .._printable import printable

_PART = 0.1  # of the samples of a stream, or
_SECONDS = 1.0  # as long: what is left out is worth a note
_MENTIONED = 0.05  # of what a stream loses: an end that costs less is not the reason
_SHOWN = 4  # streams, episodes


def cut_note(times: Mapping[str, Any], rows: Any) -> str | None:
    """What streams lose that are cut to the span that all of them share; None if it is little.

    It is little if each stream loses at most 10 % of its samples and at most 1 s. ``times`` are
    those of each stream, in ascending order; ``rows`` are the times of the result.
    """
    timed = {name: on_host(of) for name, of in times.items()}
    timed = {name: of for name, of in timed.items() if len(of) > 1}
    if len(timed) < 2 or len(rows) == 0:
        return None
    first, last = min(of[0] for of in timed.values()), max(of[-1] for of in timed.values())
    begins = max(timed, key=lambda name: timed[name][0])
    ends = min(timed, key=lambda name: timed[name][-1])
    begin, end = timed[begins][0], timed[ends][-1]
    causes = {
        (True, False): f"{printable(begins)} begins at {_words(begin - first)}",
        (False, True): f"{printable(ends)} ends at {_words(end - first)}",
    }
    if begins == ends:
        late = f"{printable(begins)} begins at {_words(begin - first)}"
        causes[True, True] = f"{late} and ends at {_words(end - first)}"
    else:
        causes[True, True] = " and ".join(causes.values())
    lost: dict[str, list[str]] = {}
    for name, of in timed.items():
        before, after = max(_number(begin - of[0]), 0.0), max(_number(of[-1] - end), 0.0)
        out = int(of.searchsorted(begin, "left")) + len(of) - int(of.searchsorted(end, "right"))
        long = _is_seconds(of) and max(before, after) > _SECONDS
        if out > _PART * len(of) or long:
            least = _MENTIONED * (before + after)
            cause = causes[before > least, after > least]
            lost.setdefault(cause, []).append(_lost(name, out / len(of), before + after, of))
    if not lost:
        return None
    parts = [f"{_listed(names)} left out, since {cause}" for cause, names in lost.items()]
    return (
        f"{len(rows)} of {_rows(first, last, rows)} rows: {'; '.join(parts)}. To keep more, choose "
        "the other streams with select(), or pass span='union'"
    )


def cut_notes(by_episode: Sequence[str | None]) -> tuple[str, ...]:
    """The notes of some episodes, and how many others there are."""
    cut = [f"episode {e}: {note}" for e, note in enumerate(by_episode) if note is not None]
    more = len(cut) - _SHOWN
    return (*cut[:_SHOWN], *([f"{more} more episodes are cut"] if more > 0 else []))


def _lost(name: str, part: float, length: float, times: Any) -> str:
    """Such as "95 % of imu"; of a long stream how long it is."""
    percent = f"{min(100 * part, 99):.0f} %" if part < 1 else "100 %"
    if part < 0.01 and _is_seconds(times):
        percent = f"{length:.3g} s"
    return f"{percent} of {printable(name)}"


def _listed(names: list[str]) -> str:
    shown = names[:_SHOWN]
    more = len(names) - len(shown)
    if more > 0:
        return f"{', '.join(shown)} and {more} more are"
    return f"{' and '.join(shown)} {'is' if len(shown) == 1 else 'are'}"


def _rows(first: Any, last: Any, rows: Any) -> int:
    """How many rows the span of all streams has."""
    if len(rows) < 2:
        return len(rows)
    step = _number(rows[-1] - rows[0]) / (len(rows) - 1)
    return int(_number(last - first) / step + 1e-6) + 1


def _is_seconds(times: Any) -> bool:
    """Whether lengths of time are known in seconds; else they are ticks."""
    return bool(times.dtype.kind != "i" and times.dtype.kind != "u")


def _number(length: Any) -> float:
    """A length of time in seconds, or in ticks."""
    import numpy as np

    if isinstance(length, np.timedelta64):
        return float(length / np.timedelta64(1, "ns")) / 1e9
    return float(length)


def _words(length: Any) -> str:
    import numpy as np

    is_ticks = isinstance(length, np.integer) and not isinstance(length, np.timedelta64)
    unit = "ticks" if is_ticks else "s"
    return f"{_number(length):.4g} {unit}"
