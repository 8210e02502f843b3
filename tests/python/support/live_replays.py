"""Random recordings, and their replay through ``Live`` against the fusion of the same samples.

``python tests/python/support/live_replays.py COUNT [FIRST]`` compares that many recordings.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import numpy as np

import robocache as rbc

METHODS = (
    *("linear", "nearest", "previous", "next", "cubic", "pchip", "slerp", "angle", "angle_deg"),
    *("angle_turn", "angle_positive", "angle_deg_positive", "angle_turn_positive"),
)
TIMES, VALUES = ("float32", "float64", "int64"), ("float32", "float64")


@dataclass
class Counts:
    """Counts of what was compared."""

    recordings: int = 0
    rows: int = 0
    valid: int = 0  # cells of the masks that are True
    cells: int = 0
    dropped: int = 0  # samples
    lost: int = 0  # messages that never arrived
    duplicates: int = 0
    methods: dict[str, int] = field(default_factory=dict)  # streams
    unequal: list[str] = field(default_factory=list)

    def add(self, other: Counts) -> None:
        for name in ("recordings", "rows", "valid", "cells", "dropped", "lost", "duplicates"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name, count in other.methods.items():
            self.methods[name] = self.methods.get(name, 0) + count
        self.unequal += other.unequal


def recorded(rng: np.random.Generator, dtype: str, counts: Counts, dense: bool):
    """Return stamps and arrivals of a sensor, in the order of arrival.

    ``dense``: many samples between two queries; most arrive in their order.
    """
    if dense:
        return recorded_in_order(rng, dtype)
    n = int(rng.integers(0, 70)) if rng.random() < 0.1 else int(rng.integers(8, 70))
    stamps = rng.uniform(0, 15, n)
    kind = rng.integers(0, 3)
    if kind == 1:
        stamps = np.arange(n) * 15 / max(n, 1)  # even
    elif kind == 2:
        stamps = np.round(stamps)  # many equal stamps
    delays = rng.exponential(rng.choice([0.01, 0.1, 1.0]), n)
    delays += np.where(rng.random(n) < 0.1, rng.uniform(0, 5, n), 0)  # a few are very late
    if rng.random() < 0.1:
        delays -= rng.uniform(0, 0.5, n)  # before their stamps
    arrivals = stamps + delays
    if rng.random() < 0.4:
        arrivals = np.round(arrivals, 1)  # equal arrivals
    there = rng.random(n) > rng.choice([0, 0.3])
    counts.lost += int((~there).sum())
    stamps, arrivals = stamps[there], arrivals[there]
    again = rng.random(len(stamps)) < rng.choice([0, 0.2])
    counts.duplicates += int(again.sum())
    stamps = np.concatenate([stamps, stamps[again]])  # the same message, later
    arrivals = np.concatenate([arrivals, arrivals[again] + rng.exponential(0.2, again.sum())])
    order = np.argsort(arrivals, kind="stable")
    scale = 1e6 if dtype == "int64" else 1
    return (stamps[order] * scale).astype(dtype), (arrivals[order] * scale).astype(dtype)


def recorded_in_order(rng: np.random.Generator, dtype: str):
    n = int(rng.integers(50, 400))
    stamps = np.sort(rng.uniform(0, 15, n))
    if rng.random() < 0.3:
        stamps = np.round(stamps, 1)  # equal stamps
    arrivals = np.maximum.accumulate(stamps + rng.exponential(rng.choice([0.01, 0.3, 2.0]), n))
    if rng.random() < 0.3:
        arrivals[rng.integers(0, n, 2)] += rng.uniform(0, 0.2, 2)  # one or two are not in order
    order = np.argsort(arrivals, kind="stable")
    scale = 1e6 if dtype == "int64" else 1
    return (stamps[order] * scale).astype(dtype), (arrivals[order] * scale).astype(dtype)


def rules_of(rng: np.random.Generator, method: str, per_second: float) -> dict:
    rules = {
        "method": method,
        "fill_value": float(rng.choice([-5.0, 0.0])),
        "outside": str(rng.choice(["hold", "fill"])),
    }
    if rng.random() < 0.7:
        rules["max_gap"] = float(rng.choice([0.5, 2, 50]) * per_second)
    if method != "next" and rng.random() < 0.75:
        rules.update(causal=True)
        if rng.random() < 0.8:
            rules["max_age"] = float(rng.choice([0.3, 1, 9]) * per_second)
    elif method in ("nearest", "previous", "next") and rng.random() < 0.3:
        rules["tolerance"] = float(rng.choice([0.2, 1]) * per_second)
    return rules


def replayed(seed: int) -> Counts:
    """Push one random recording into ``Live``, and compare every tick with ``fuse``."""
    rng = np.random.default_rng(seed)
    counts = Counts(recordings=1)
    dtype, values_dtype = TIMES[seed % 3], VALUES[seed // 3 % 2]
    per_second = 1_000_000 if dtype == "int64" else 1
    scalar = np.dtype(dtype).type
    lag = scalar(rng.choice([0, 0.02, 0.1, 0.5, 3]) * per_second)
    dense = seed % 4 == 3
    sensors, streams, recordings = [], [], []
    for method in rng.choice(METHODS, int(rng.integers(1, 5))):
        counts.methods[str(method)] = counts.methods.get(str(method), 0) + 1
        late_bound = int(rng.integers(0, 5))
        width = 4 if method == "slerp" else int(rng.integers(1, 4))
        offset = rng.choice([0, 0.25, -0.4]) * per_second
        offset = int(offset) if dtype == "int64" else float(offset)
        stamps, arrivals = recorded(rng, dtype, counts, dense)
        values = rng.uniform(-2, 2, (len(stamps), width)).astype(values_dtype)
        if rng.random() < 0.2:
            values[rng.random(values.shape) < 0.05] = np.nan
        kept = rbc.live_kept(stamps, arrivals, late_bound)
        counts.dropped += int((~kept).sum())
        rules = rules_of(rng, str(method), per_second)
        capacity = max(len(stamps), 8)
        sensors.append(
            rbc.LiveStream(
                width, capacity, late_bound, dtype=values_dtype, clock_offset=offset, **rules
            )
        )
        order = np.argsort(stamps, kind="stable")  # equal stamps in the order of arrival
        streams.append(
            rbc.Stream(
                values[order],
                stamps[order],
                arrivals=arrivals[order],
                sample_mask=kept[order],
                clock_offset=offset,
                **rules,
            )
        )
        recordings.append((stamps, arrivals, values))
    live = rbc.Live(sensors, time_dtype=dtype)
    done = [0] * len(recordings)
    rows = int(rng.integers(1, 9))
    step = scalar(rng.choice([0.11, 0.5, 1.7] if dense else [0.02, 0.11, 0.5]) * per_second)
    tick = 0.0
    while tick < 17:
        tick += float(rng.exponential(0.7))
        now = scalar(tick * per_second)
        history = np.array([now - step * scalar(k) for k in range(rows)][::-1], dtype)
        late = rng.exponential(0.05) + (rng.random() < 0.1) * 2.0  # a call that comes late
        computed = now + lag + scalar(late * per_second)
        for n, (stamps, arrivals, values) in enumerate(recordings):
            end = int(np.searchsorted(arrivals, computed, "right"))
            if end > done[n]:  # one by one, or together
                cut = [done[n], end] if rng.random() < 0.5 else list(range(done[n], end + 1))
                for begin, stop in zip(cut, cut[1:]):
                    live.push(n, stamps[begin:stop], values[begin:stop], arrivals[begin:stop])
                done[n] = end
        seen = live.fuse(history, lag=lag.item())
        out, valid = rbc.fuse(
            streams, history, lag=lag.item(), return_valid=True, check_times=False
        )
        same = seen.values.dtype == out.dtype and seen.values.tobytes() == out.tobytes()
        if not same or seen.valid.tobytes() != valid.tobytes():
            counts.unequal.append(f"seed {seed}, tick {tick}")
        counts.rows += rows
        counts.valid += int(valid.sum())
        counts.cells += valid.size
    for n, (stamps, arrivals, _) in enumerate(recordings):
        kept = rbc.live_kept(stamps[: done[n]], arrivals[: done[n]], sensors[n].late_bound)
        if live.counters(n).dropped != int((~kept).sum()):
            counts.unequal.append(f"seed {seed}, stream {n}: other samples were dropped")
    return counts


def replayed_all(seeds: range) -> Counts:
    total = Counts()
    for seed in seeds:
        total.add(replayed(seed))
    return total


if __name__ == "__main__":
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    found = replayed_all(range(first, first + int(sys.argv[1])))
    print(
        f"{found.recordings} recordings, {found.rows} rows, {found.valid} of {found.cells} cells "
        f"valid, {found.dropped} samples dropped, {found.lost} lost, {found.duplicates} twice"
    )
    print("streams by method:", dict(sorted(found.methods.items())))
    print(f"{len(found.unequal)} unequal", *found.unequal[:20], sep="\n")
    sys.exit(1 if found.unequal else 0)
