"""Measure the cost of live fusion while sensors push, compared with the usual ways without it.

    python benchmarks/live_peers.py [--ticks N]

Runs robocache_bench_live: rings, and a std::mutex and a std::deque per sensor. Then the same in
Python: rbc.Live, and a deque per sensor with np.interp, each with eight threads that push at 1 kHz.
Times are per call, in microseconds; the table is in Markdown.
"""

from __future__ import annotations

import argparse
import collections
import pathlib
import subprocess
import threading
import time
from typing import Any, Callable

import numpy as np

import robocache as rbc

STREAMS, CHANNELS, KEPT, PERIOD = 8, 7, 256, 0.001
QUANTILES = (0.5, 0.99, 0.9999, 1)


class Deques:
    """A version without the library: appends of a deque are safe among threads of Python."""

    def __init__(self) -> None:
        self.sensors: list[Any] = [collections.deque(maxlen=KEPT) for _ in range(STREAMS)]

    def push(self, n: int, stamp: float, row: Any) -> None:
        self.sensors[n].append((stamp, row))

    def fuse(self, queries: Any) -> Any:
        out = np.empty((len(queries), STREAMS * CHANNELS), np.float32)
        for n, sensor in enumerate(self.sensors):
            samples = list(sensor)
            stamps = [stamp for stamp, _ in samples]
            rows = np.array([row for _, row in samples])
            for d in range(CHANNELS):
                out[:, n * CHANNELS + d] = np.interp(queries, stamps, rows[:, d])
        return out


class Rings:
    def __init__(self) -> None:
        self.live = rbc.Live([rbc.LiveStream(CHANNELS, capacity=KEPT) for _ in range(STREAMS)])

    def push(self, n: int, stamp: float, row: Any) -> None:
        self.live.push(n, stamp, row)

    def fuse(self, queries: Any) -> Any:
        return self.live.fuse(queries).values


def timed(calls: int, call: Callable[[], Any]) -> list[float]:
    times = np.empty(calls)
    for i in range(calls):
        begin = time.perf_counter_ns()
        call()
        times[i] = time.perf_counter_ns() - begin
    return [float(np.quantile(times, q, method="lower")) / 1000 for q in QUANTILES]


def python_rows(name: str, rig: Any, ticks: int) -> list[tuple[str, str, list[float]]]:
    row = np.zeros(CHANNELS, np.float32)
    now = time.monotonic()
    for n in range(STREAMS):
        for k in range(KEPT + 50):
            rig.push(n, now - (KEPT + 50 - k) * PERIOD, row)
    stop = threading.Event()

    def produce(n: int) -> None:
        at = time.monotonic()
        while not stop.is_set():
            at += PERIOD
            time.sleep(max(0.0, at - time.monotonic()))
            rig.push(n, at, row)

    threads = [threading.Thread(target=produce, args=(n,)) for n in range(1, STREAMS)]
    for thread in threads:
        thread.start()
    rows = []
    rows.append(("push", name, timed(ticks, lambda: rig.push(0, time.monotonic(), row))))
    threads.append(threading.Thread(target=produce, args=(0,)))
    threads[-1].start()
    rows.append(("tick", name, timed(ticks, lambda: rig.fuse(np.array([time.monotonic()])))))
    past = -0.01 * np.arange(16)[::-1]
    times = timed(ticks, lambda: rig.fuse(time.monotonic() + past))
    rows.append(("tick of 16, 100 Hz", name, times))
    stop.set()
    for thread in threads:
        thread.join()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    build = pathlib.Path(__file__).resolve().parents[1] / "build/release/benchmarks"
    parser.add_argument("--program", type=pathlib.Path, default=build / "robocache_bench_live")
    parser.add_argument("--ticks", type=int, default=1_000_000, help="of the program")
    parser.add_argument("--python-ticks", type=int, default=5_000)
    options = parser.parse_args()
    rows = []
    output = subprocess.run(
        [options.program, str(options.ticks)], check=True, capture_output=True, text=True
    ).stdout
    for line in output.splitlines()[1:]:
        what, who, *times = line.split("\t")
        rows.append((what, f"C++: {who}", [float(each) / 1000 for each in times]))
    rows += python_rows("Python: robocache", Rings(), options.python_ticks)
    rows += python_rows("Python: deques and np.interp", Deques(), options.python_ticks)
    print("| call, us | | median | p99 | p99.99 | longest |\n|---|---|---|---|---|---|")
    for call in ("push", "tick", "tick of 16, 1 kHz", "tick of 16, 100 Hz"):
        for what, who, times in rows:
            if what == call:
                print(f"| {what} | {who} | " + " | ".join(f"{each:.3g}" for each in times) + " |")


if __name__ == "__main__":
    main()
