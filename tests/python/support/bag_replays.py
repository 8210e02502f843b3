"""Replay of recorded ROS bags through ``Live``, with every method, dtype and length of history.

``python tests/python/support/bag_replays.py FOLDER [HZ]`` prints the rows that are equal, by the
name of the bag.
"""

from __future__ import annotations

import dataclasses
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from live_replays import METHODS
from replayed_alignments import Replay, replayed
from robocache import data


def bags(folder: Path) -> Iterator[Path]:
    """Yield the ROS 1 bags, and the folders of ROS 2 bags."""
    yield from sorted(folder.rglob("*.bag"))
    yield from sorted(path.parent for path in folder.rglob("metadata.yaml"))


def methods_of(recording: data.Recording, method: str) -> dict[str, object]:
    """Return one method for all channels of all streams; "kinds" keeps the defaults.

    slerp takes groups of four channels; the channels that are left are interpolated.
    """
    if method == "kinds":
        return {}
    if method != "slerp":
        return dict.fromkeys((s.name for s in recording.streams.values() if s.names), method)
    groups = {}
    for name, stream in recording.streams.items():
        width = len(stream.names)
        turning = width // 4 * 4
        parts = [(0, turning, "slerp")] if turning else []
        parts += [(turning, width - turning, "linear")] if width > turning else []
        if parts:
            groups[name] = parts
    return groups


def in_dtype(recording: data.Recording, dtype: str) -> data.Recording:
    """Return the recording with float values of another dtype; integers stay."""
    streams = []
    for stream in recording.streams.values():
        values = stream.values
        if values.dtype.kind == "f":
            values = values.astype(dtype)
        streams.append(dataclasses.replace(stream, values=values))
    return data.Recording.from_streams(streams, path=recording.path)


def clock_of(recording: data.Recording) -> str | None:
    """Return the log where header stamps are on another clock."""
    for stream in recording.streams.values():
        if len(stream) and stream.header_times is not None:
            delay = np.median(stream.log_times - stream.header_times)
            if not 0 <= delay <= 10e9:
                return "log"
    return None


def seconds_of(recording: data.Recording) -> float:
    """Return the time from the first to the last message."""
    times = [stream.log_times for stream in recording.streams.values() if len(stream)]
    return float(max(each.max() for each in times) - min(each.min() for each in times)) / 1e9


def replays(
    path: Path, rate: float = 50.0, most: float = float("inf")
) -> Iterator[tuple[str, Replay]]:
    """Yield the replays of a bag: each method, both dtypes, and histories of 1 and 8 rows.

    The rate is lower for a bag that would have more than about ``most`` rows.
    """
    original = data.open(path).load()
    rate = min(rate, most / seconds_of(original))
    clock = clock_of(original)
    for dtype in ("float64", "float32"):
        recording = in_dtype(original, dtype)
        for number, method in enumerate(("kinds", *METHODS)):
            causal = method != "next"
            options = {
                "span": "union",
                "methods": methods_of(recording, method),
                "clock": clock,
                "as_numbers": True,
                "lag": (0.0, 0.02, 0.1)[number % 3],
                "late": (0.0, 0.3)[number // 2 % 2],
                "late_bound": number % 4,
                "causal": causal,
                "max_age": 0.5 if causal else None,
                "max_gap": (None, 0.2)[number // 3 % 2],
            }
            for history in (1, 8):
                found = replayed(recording, rate, history=history, **options)
                yield f"{method} {dtype} {history} rows", found


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    failed = False
    root, hz = Path(sys.argv[1]), float(sys.argv[2]) if len(sys.argv) > 2 else 50.0
    for bag in bags(root):
        total: Counter[str] = Counter()
        valid, bad = [], []
        for name, found in replays(bag, hz):
            total.update(rows=found.rows, equal=found.equal, dropped=sum(found.dropped.values()))
            total.update(history=found.history_rows, history_unequal=found.unequal_history)
            valid.append(found.valid)
            if not found.is_equal:
                bad.append(name)
        part = 100 * total["equal"] / max(total["rows"], 1)
        print(
            f"{bag.relative_to(root)}: {len(valid)} replays, {total['equal']} of {total['rows']} "
            f"rows equal ({part:g} %), {total['history_unequal']} of {total['history']} rows of "
            f"histories unequal, {100 * np.mean(valid):.1f} % of cells valid, "
            f"{total['dropped']} samples dropped",
            *bad,
            sep="\n  ",
            flush=True,
        )
        failed |= bool(bad)
    sys.exit(failed)
