"""Statistics in passes: of data that do not fit into memory, and by processes that share a pass."""

import math
import os
from fractions import Fraction

import numpy as np
import pytest

import robocache as rbc
import statistics_reference as reference
from spawned import counted, forkserver, ranked

LEVELS = (0.0, 0.001, 0.25, 0.5, 0.9, 0.99, 1.0)
# Of values in the longest test: 40 take minutes on two cores.
GIGABYTES = float(os.environ.get("ROBOCACHE_TEST_GIGABYTES", "0.4"))
NAMES = ("count", "nonfinite", "min", "max", "mean", "std", "quantiles")


def random_values(rows, channels=2, dtype="f4"):
    random = np.random.default_rng(rows)
    return (100 + random.standard_normal((rows, channels)) * [1, 1e-3]).astype(dtype)


def require_same(result, expected):
    for name in NAMES:
        np.testing.assert_array_equal(getattr(result, name), getattr(expected, name), name)


def in_passes(accumulator, pieces):
    """The documented loop; how many passes it took."""
    passes, more = 0, True
    while more:
        for piece in pieces:
            accumulator.update(piece)
        more = accumulator.next_pass()
        passes += 1
    return passes


# ---- more than fits into memory -----------------------------------------------------------------


def statistics_of_repeated(values, times):
    """mean, std and quantiles of a channel [n] whose values come so often, by fractions."""
    exact = [Fraction(float(x)) for x in values]
    count = int(times.sum())
    mean = sum(x * int(n) for x, n in zip(exact, times)) / count
    square = sum((x - mean) ** 2 * int(n) for x, n in zip(exact, times)) / count
    order = np.argsort(values, kind="stable")
    ends, ascending = np.cumsum(times[order]), values[order].astype("f8")
    quantiles = []
    for level in LEVELS:
        position = level * (count - 1)
        below, above = (
            ascending[np.searchsorted(ends, min(rank, count - 1), side="right")]
            for rank in (math.floor(position), math.floor(position) + 1)
        )
        t = position - math.floor(position)
        step = above - below
        quantiles.append(above - step * (1 - t) if t >= 0.5 else below + step * t)
    return float(mean), reference._root(square), quantiles


def test_more_than_memory_holds():
    """Windows that overlap, over recordings that repeat: nothing is as large as what is counted."""
    rows, channels = 20_000, 2
    bases = [random_values(rows + channels - 1 + i, 1).ravel() * (1 + i) for i in range(3)]
    share = GIGABYTES * 1e9 / (4 * rows * channels)
    repeats = [math.ceil(share * part) for part in (0.2, 0.3, 0.5)]
    pieces = [
        np.lib.stride_tricks.as_strided(base, (n, rows, channels), (0, 4, 4))
        for base, n in zip(bases, repeats)
    ]
    assert sum(piece.nbytes for piece in pieces) >= GIGABYTES * 1e9

    accumulator = rbc.StatisticsAccumulator(channels, LEVELS)
    assert in_passes(accumulator, pieces) == 2
    result = accumulator.result()
    assert result.count.tolist() == [sum(repeats) * rows] * channels
    times = np.repeat(repeats, rows)
    for d in range(channels):
        values = np.concatenate([base[d : d + rows] for base in bases])
        assert (result.min[d], result.max[d]) == (values.min(), values.max())
        mean, std, quantiles = statistics_of_repeated(values, times)
        assert (result.mean[d], result.std[d]) == (mean, std)
        assert result.quantiles[:, d].tolist() == quantiles


# ---- processes that share a pass ----------------------------------------------------------------


@pytest.fixture(scope="module")
def workers():
    with forkserver().Pool(2) as pool:
        yield pool


@pytest.mark.parametrize("dtype, passes", [("f4", 2), ("f8", 4)])
def test_workers_give_the_same_bytes_whatever_the_split(workers, dtype, passes):
    values = random_values(5000, dtype=dtype)
    alone = rbc.StatisticsAccumulator(2, LEVELS)
    assert in_passes(alone, [values]) == passes
    require_same(alone.result(), rbc.statistics(values, quantiles=LEVELS))
    shuffled = np.random.default_rng(0).permutation(values)
    for cuts in ([2500], [1, 4999], [0, 700, 700, 3100], range(100, 5000, 700)):
        total = rbc.StatisticsAccumulator(2, LEVELS)
        took, more = 0, True
        while more:
            start = total.to_bytes()
            pieces = np.split(shuffled if took % 2 else values, cuts)
            states = workers.starmap(counted, [(start, [piece]) for piece in pieces])
            for state in states[::-1] if took % 2 else states:
                total.merge(rbc.StatisticsAccumulator.from_bytes(state))
            more = total.next_pass()
            took += 1
        assert took == passes
        assert total.to_bytes() == alone.to_bytes()


def test_two_ranks_of_torch(workers, tmp_path):
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("torch is built without torch.distributed or without gloo")
    values = random_values(4000)
    parts = np.split(values, [1300])
    arguments = [(rank, tmp_path / "meeting", part, LEVELS) for rank, part in enumerate(parts)]
    states = workers.starmap_async(ranked, arguments, chunksize=1).get(timeout=200)
    alone = rbc.StatisticsAccumulator(2, LEVELS)
    assert in_passes(alone, [values]) == 2
    assert states == [alone.to_bytes()] * 2
    result = rbc.StatisticsAccumulator.from_bytes(states[0]).result()
    require_same(result, rbc.statistics(values, quantiles=LEVELS))
