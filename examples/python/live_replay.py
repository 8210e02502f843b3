"""Replay a recording in real time: the control loop gets the same rows as training.

    python examples/python/live_replay.py --data ../shared/data/comma2k19 --rate 50
    python examples/python/live_replay.py --rate 1000 --speed 100 --history 16

One thread per sensor pushes its samples to rbc.Live, at the speed of the recording or faster. Each
sample arrives after its stamp, a few so late that they are out of order or dropped, and one sensor
dies and comes back. The control loop fuses at each tick, normalized by saved statistics.

Afterwards every row is computed again by rbc.fuse, from the samples that had arrived, and compared
bit for bit. The counters before and after the tick show which samples had arrived: if one arrived
during the tick, the row must equal the result with the sample or without it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import robocache as rbc
from comma2k19 import read_comma2k19
from px4 import read_px4_flights
from recordings import Recording, StreamData
from simulate import simulate_recording

CAPACITY = 256
LATE_BOUND = 8  # newer samples that a late one may have
MAX_AGE_S = 0.5
DEAD = (0.45, 0.6)  # of the recording, the first sensor


def read(path: Path | None) -> Recording:
    if path is None:
        return simulate_recording()
    if (path / "processed_log").is_dir():
        return read_comma2k19(path)
    return read_px4_flights(path)[0]


def save_statistics(recording: Recording, path: Path) -> None:
    """Save the result of training: a normalization for each stream."""
    saved = {}
    for stream in recording.streams:
        if stream.values.dtype.kind == "f":
            result = rbc.statistics(stream.values, quantiles=())
            saved[stream.name] = rbc.Normalization.of(result, "mean_std").to_dict()
    path.write_text(json.dumps(saved))


def load_statistics(path: Path) -> dict[str, rbc.Normalization]:
    saved = json.loads(path.read_text())
    return {name: rbc.Normalization.from_dict(each) for name, each in saved.items()}


@dataclass
class Sensor:
    """A stream in order of arrival; `options` apply to both LiveStream and Stream."""

    stream: StreamData
    options: dict[str, Any]
    order: np.ndarray  # of the samples by arrival
    delays: np.ndarray  # [n] s from the recording's start to each arrival
    rows: np.ndarray = field(init=False)
    stamps: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        values = self.stream.values
        self.rows = values.astype(np.float32) if values.dtype == bool else values
        self.rows = np.ascontiguousarray(self.rows[self.order])
        self.stamps = np.ascontiguousarray(self.stream.times[self.order])


def make_sensors(
    recording: Recording, normalizations: dict[str, rbc.Normalization], rng: np.random.Generator
) -> list[Sensor]:
    sensors = []
    for n, stream in enumerate(recording.streams):
        at = recording.seconds(stream.times)
        delays = 0.004 + rng.exponential(0.002, len(at))  # of a bus
        held = rng.random(len(at)) < 0.02  # of a network that sometimes delays one
        delays[held] += rng.uniform(0, 20 / stream.nominal_hz, held.sum())
        arrivals = at + delays
        order = np.argsort(arrivals, kind="stable")
        if n == 0:
            span = recording.seconds(recording.stop)
            order = order[(at[order] < DEAD[0] * span) | (at[order] > DEAD[1] * span)]
        options: dict[str, Any] = {
            "causal": True,
            "max_age": recording.ticks(MAX_AGE_S),
            "method": stream.method,
            "max_gap": recording.ticks(stream.max_gap_s) if stream.max_gap_s else None,
        }
        if stream.name in normalizations:
            own = normalizations[stream.name]
            options |= {"mean": own.mean, "std": own.std}
        sensors.append(Sensor(stream, options, order, arrivals[order]))
    return sensors


@dataclass
class Tick:
    queries: np.ndarray
    before: list[int]  # samples of each sensor that had arrived at the start
    after: list[int]  # and at the end
    values: np.ndarray
    valid: np.ndarray
    ages: np.ndarray


def replay(
    recording: Recording, sensors: list[Sensor], rate: float, speed: float, history: int
) -> tuple[list[Tick], rbc.Live, int]:
    live = rbc.Live(
        [
            rbc.LiveStream(
                sensor.rows.shape[1],
                capacity=CAPACITY,
                late_bound=LATE_BOUND,
                dtype=sensor.rows.dtype,
                **sensor.options,
            )
            for sensor in sensors
        ],
        time_dtype=recording.start.dtype,
    )
    begin = time.monotonic() + 0.05

    def sleep_until(seconds: float) -> None:
        left = begin + seconds / speed - time.monotonic()
        if left > 0:
            time.sleep(left)

    def produce(n: int, sensor: Sensor) -> None:
        for stamp, row, arrival in zip(sensor.stamps, sensor.rows, sensor.delays):
            sleep_until(arrival)
            live.push(n, stamp, row)

    def come(n: int) -> int:
        counters = live.counters(n)
        return counters.kept + counters.dropped + counters.ahead + counters.invalid

    threads = [
        threading.Thread(target=produce, args=(n, sensor)) for n, sensor in enumerate(sensors)
    ]
    for thread in threads:
        thread.start()
    ticks, skipped = [], 0
    span = recording.seconds(recording.stop)
    past = np.arange(history)[::-1]
    for i in range(int(span * rate)):
        if time.monotonic() > begin + (i + 1) / rate / speed:
            skipped += 1  # this tick is already too late
            continue
        sleep_until(i / rate)
        behind = np.array([recording.ticks(each / rate) for each in past], recording.start.dtype)
        queries = recording.start + recording.ticks(i / rate) - behind
        before = [come(n) for n in range(len(sensors))]
        tick = live.fuse(queries, dtype="float32")
        after = [come(n) for n in range(len(sensors))]
        ticks.append(Tick(queries, before, after, tick.values, tick.valid, tick.ages))
    for thread in threads:
        thread.join()
    return ticks, live, skipped


class Arrived:
    """The samples in the ring of a sensor after `come` of its samples have arrived."""

    def __init__(self, sensor: Sensor) -> None:
        self.sensor = sensor
        self.come = 0
        self.kept: list[int] = []  # in the order of their stamps

    def advance(self, come: int) -> None:
        stamps = self.sensor.stamps
        for k in range(self.come, come):
            newer = int((stamps[self.kept] > stamps[k]).sum())
            if newer <= LATE_BOUND:
                self.kept.insert(len(self.kept) - newer, k)
                self.kept = self.kept[-CAPACITY:]
        self.come = come

    def fused(self, queries: np.ndarray) -> tuple[Any, Any]:
        """Compute the rows offline with rbc.fuse."""
        sensor = self.sensor
        kept = np.array(self.kept, np.int64)
        stream = rbc.Stream(sensor.rows[kept], sensor.stamps[kept], **sensor.options)
        with warnings.catch_warnings():  # a tick is usually after the newest sample
            warnings.simplefilter("ignore", rbc.RangeWarning)
            return rbc.fuse([stream], queries, dtype="float32", return_valid=True)


def check(sensors: list[Sensor], ticks: list[Tick]) -> tuple[int, int]:
    """Count the parts of rows, one per sensor and row, that are equal and that differ."""
    equal = different = 0
    first = 0
    for n, sensor in enumerate(sensors):
        width = sensor.rows.shape[1]
        arrived = Arrived(sensor)
        for tick in ticks:
            part = tick.values[:, first : first + width].tobytes()
            flags = tick.valid[:, n].tobytes()
            found = False
            for come in range(tick.before[n], tick.after[n] + 1):
                arrived.advance(come)
                values, valid = arrived.fused(tick.queries)
                found = found or (values.tobytes() == part and valid.tobytes() == flags)
            equal += len(tick.queries) * found
            different += len(tick.queries) * (not found)
        first += width
    return equal, different


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="of comma2k19 or PX4; default: simulated")
    parser.add_argument("--rate", type=float, default=50, help="of the control loop, in Hz")
    parser.add_argument("--speed", type=float, default=1, help="1: real time")
    parser.add_argument("--history", type=int, default=4, help="rows of a tick: [B=1,T,D]")
    parser.add_argument("--statistics", type=Path, help="saved before; default: made here")
    options = parser.parse_args(arguments)
    recording = read(options.data)
    with tempfile.TemporaryDirectory() as folder:
        path = options.statistics or Path(folder) / "statistics.json"
        if options.statistics is None:
            save_statistics(recording, path)
        normalizations = load_statistics(path)
    sensors = make_sensors(recording, normalizations, np.random.default_rng(0))
    ticks, live, skipped = replay(recording, sensors, options.rate, options.speed, options.history)
    print(f"{recording.title}\n{len(ticks)} ticks at {options.rate:g} Hz, {skipped} skipped")
    for n, sensor in enumerate(sensors):
        counters = live.counters(n)
        without = sum(not tick.valid[-1, n] and tick.ages[n] > 0 for tick in ticks)
        print(
            f"  {sensor.stream.name:14} {counters.kept:6} kept {counters.late:4} late"
            f" {counters.dropped:4} dropped {counters.overwritten:6} overwritten"
            f" {without:6} ticks after its newest sample"
        )
    equal, different = check(sensors, ticks)
    print(f"{equal} parts of rows equal rbc.fuse, bit for bit; {different} differ")
    return 1 if different or not equal else 0


if __name__ == "__main__":
    raise SystemExit(main())
