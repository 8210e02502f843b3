"""Replay of recordings through Live: rows and masks equal the alignment, by bytes."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import bag_replays
from replayed_alignments import replayed
from robocache import data

S = 10**9
ROOT = Path(__file__).resolve().parents[3]
SHARED = Path(os.environ.get("ROBOCACHE_DATA", ROOT.parent / "shared" / "data"))
BAGS = list(bag_replays.bags(SHARED)) if SHARED.is_dir() else []


def sensor(name, rng, count, rate, dtype, width=2):
    stamps = np.arange(count) * (S // rate)
    log = stamps + (rng.exponential(0.02, count) * S).astype(np.int64)
    log[::3] = log[::3] // 10**7 * 10**7 + 10**7  # some are equal
    order = np.argsort(log, kind="stable")
    values = (rng.normal(size=(count, width)) * 100).astype(dtype)
    clocks = {"log": log[order], "header": stamps[order]}
    names = tuple(f"c{i}" for i in range(width))
    return data.RecordedStream(name, "test", names, values[order], clocks, "ns")


def example():
    rng = np.random.default_rng(0)
    return data.Recording.from_streams([
        sensor("arm", rng, 300, 100, np.float64),
        sensor("imu", rng, 600, 200, np.float32, 5),
        sensor("mode", rng, 60, 20, np.int32, 1),
    ])  # fmt: skip


@pytest.mark.parametrize("history", [1, 8])
@pytest.mark.parametrize("late", [0.0, 0.1])
def test_a_replay_has_the_rows_of_the_alignment(history, late):
    options = dict(lag=0.01, max_age=0.03, late_bound={"imu": 2}, clock_offset={"imu": -0.002})
    found = replayed(example(), 50, history=history, late=late, max_gap=0.02, **options)
    assert found.is_equal and found.unequal == ()
    assert found.equal == found.rows > 100
    assert found.history_rows == (0 if history == 1 else 3 * (found.rows * 7 - 28))
    assert 0.2 < found.valid < 0.95
    assert found.dropped["arm"] > 0 and found.dropped["imu"] > 0
    assert set(found.overwritten.values()) == {0}


def test_methods():
    for method in ("nearest", "cubic", "pchip", "angle"):
        assert replayed(example(), 50, methods={"arm": method}, late_bound=1).is_equal
    assert replayed(example(), 50, methods={"arm": "next"}, causal=False, lag=0.05).is_equal


def test_labels_are_equal():
    found = replayed(example(), 50, labels=["arm"])
    assert found.is_equal and "arm" not in found.dropped


def test_a_ring_that_is_too_small_is_found():
    found = replayed(example(), 50, history=8, late=1.0, capacity=8)
    assert not found.is_equal
    assert found.equal < found.rows
    assert found.overwritten["imu"] > 0
    assert len(found.unequal) == 5


@pytest.mark.skipif(not BAGS, reason=f"no bags in {SHARED} (set ROBOCACHE_DATA)")
@pytest.mark.parametrize("path", BAGS, ids=lambda path: path.name)
@pytest.mark.filterwarnings("ignore")
def test_recorded_bags(path):
    for name, found in bag_replays.replays(path, rate=2.0, most=100):
        assert found.is_equal, (name, found)
        assert found.rows > 5
