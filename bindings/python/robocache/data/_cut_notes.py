"""Notes on the samples that an alignment cuts off at the ends of a recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._arguments.to_numpy import on_host
from .._printable import printable

_PART = 0.1  # of the samples of a stream, or
_SECONDS = 1.0  # of its duration: losing more than either is worth a note
_MENTIONED = 0.05  # of a stream's loss: an end that costs less is not mentioned as the reason
_SHOWN = 4  # streams or episodes in a note


def cut_note(times: Mapping[str, Any], rows: Any) -> str | None:
    """Return a note on the samples lost outside the common span; None if there are few.

    They are few if each stream loses at most 10 % of its samples and at most 1 s. ``times`` holds
    the ascending times of each stream; ``rows`` are the times of the result.
    """
    timed = {name: on_host(stream_times) for name, stream_times in times.items()}
    timed = {name: stream_times for name, stream_times in timed.items() if len(stream_times) > 1}
    if len(timed) < 2 or len(rows) == 0:
        return None
    first, last = (
        min(stream_times[0] for stream_times in timed.values()),
        max(stream_times[-1] for stream_times in timed.values()),
    )
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
    for name, stream_times in timed.items():
        before, after = (
            max(_number(begin - stream_times[0]), 0.0),
            max(_number(stream_times[-1] - end), 0.0),
        )
        out = (
            int(stream_times.searchsorted(begin, "left"))
            + len(stream_times)
            - int(stream_times.searchsorted(end, "right"))
        )
        long = _is_seconds(stream_times) and max(before, after) > _SECONDS
        if out > _PART * len(stream_times) or long:
            least = _MENTIONED * (before + after)
            cause = causes[before > least, after > least]
            lost.setdefault(cause, []).append(
                _lost(name, out / len(stream_times), before + after, stream_times)
            )
    if not lost:
        return None
    parts = [f"{_listed(names)} cut, because {cause}" for cause, names in lost.items()]
    return (
        f"{len(rows)} of {_rows(first, last, rows)} rows: {'; '.join(parts)}. To keep more, choose "
        "other streams with select(), or pass span='union'"
    )


def cut_notes(by_episode: Sequence[str | None]) -> tuple[str, ...]:
    """Return the first notes, and the number of the others."""
    cut = [f"episode {e}: {note}" for e, note in enumerate(by_episode) if note is not None]
    more = len(cut) - _SHOWN
    return (*cut[:_SHOWN], *([f"{more} more episodes are cut"] if more > 0 else []))


def _lost(name: str, part: float, length: float, times: Any) -> str:
    """Return for example "95 % of imu"; for a small part of a long stream, its duration."""
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
    """Return the number of rows that the span of all streams would have."""
    if len(rows) < 2:
        return len(rows)
    step = _number(rows[-1] - rows[0]) / (len(rows) - 1)
    return int(_number(last - first) / step + 1e-6) + 1


def _is_seconds(times: Any) -> bool:
    """Whether durations are known in seconds; else they are in ticks."""
    return bool(times.dtype.kind != "i" and times.dtype.kind != "u")


def _number(length: Any) -> float:
    """Return a duration in seconds, or in ticks."""
    import numpy as np

    if isinstance(length, np.timedelta64):
        return float(length / np.timedelta64(1, "ns")) / 1e9
    return float(length)


def _words(length: Any) -> str:
    import numpy as np

    is_ticks = isinstance(length, np.integer) and not isinstance(length, np.timedelta64)
    unit = "ticks" if is_ticks else "s"
    return f"{_number(length):.4g} {unit}"
