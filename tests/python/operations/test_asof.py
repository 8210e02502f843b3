"""rbc.asof against pandas.merge_asof, and what it refuses."""

import math

import numpy as np
import pytest

import robocache as rbc
from random_share import random_share

pandas = pytest.importorskip("pandas")

UNITS = ["M8[ns]", "M8[us]", "m8[ms]"]


def of_pandas(times, queries, direction, tolerance, exact):
    order = np.argsort(queries, kind="stable")
    right = pandas.DataFrame({"time": times, "index": np.arange(len(times))})
    joined = pandas.merge_asof(
        pandas.DataFrame({"time": queries[order]}),
        right,
        on="time",
        direction=direction,
        tolerance=tolerance,
        allow_exact_matches=exact,
    )
    found = np.empty(len(queries), np.int64)
    found[order] = joined["index"].fillna(-1).astype(np.int64)
    return found


@pytest.mark.parametrize("seed", range(random_share(10)))
def test_as_pandas_joins(seed):
    """100 random cases each: ties, equal times, no samples or queries, with and without limits."""
    rng = np.random.default_rng(seed)
    for _ in range(100):
        dtype = str(rng.choice(["int64", "float32", "float64", *UNITS]))
        reach = rng.choice([3, 20, 1000])
        times = np.sort(rng.integers(-reach, reach, rng.integers(0, 30)))
        queries = rng.integers(-reach - 3, reach + 3, rng.integers(0, 30))
        tolerance = None if rng.random() < 0.4 else int(rng.integers(0, reach))
        if dtype.startswith("float"):
            times, queries = (times / 4).astype(dtype), (queries / 4).astype(dtype)
            tolerance = None if tolerance is None else tolerance / 4
        else:
            times, queries = times.astype(dtype), queries.astype(dtype)
        own = tolerance
        if dtype in UNITS and tolerance is not None:
            own = np.timedelta64(tolerance, dtype[3:-1])
        direction = str(rng.choice(["backward", "forward", "nearest"]))
        exact = bool(rng.random() < 0.6)
        found = rbc.asof(times, queries, direction, own, exact)
        assert found.dtype == np.int64
        theirs = None if own is None else pandas.Timedelta(own) if dtype in UNITS else tolerance
        np.testing.assert_array_equal(
            found, of_pandas(times, queries, direction, theirs, exact), f"{times} {queries}"
        )


def test_by_hand():
    times = [1.0, 2.0, 2.0, 4.0]
    queries = [0.5, 2.0, 3.0, 9.0]
    assert rbc.asof(times, queries).tolist() == [-1, 2, 2, 3]
    assert rbc.asof(times, queries, "forward").tolist() == [0, 1, 3, -1]
    assert rbc.asof(times, queries, "nearest").tolist() == [0, 2, 2, 3]
    assert rbc.asof(times, queries, allow_exact_matches=False).tolist() == [-1, 0, 2, 3]
    assert rbc.asof(times, queries, tolerance=1).tolist() == [-1, 2, 2, -1]
    assert rbc.asof([], queries).tolist() == [-1] * 4
    assert rbc.asof(times, []).tolist() == []
    assert rbc.asof([0, 1, 2], [0.5, 2.5]).tolist() == [0, 2]


def test_stamps_of_nanoseconds_however_far_apart():
    low, high = -(2**63), 2**63 - 1
    times = np.array([low, high])
    assert rbc.asof(times, [high - 1, low + 1], "nearest").tolist() == [1, 0]
    assert rbc.asof(times, [high - 1], tolerance=2**62).tolist() == [-1]
    stamps = 1_700_000_000_000_000_000 + np.array([0, 1, 3])
    assert rbc.asof(stamps, stamps + 1, "nearest", tolerance=0).tolist() == [1, -1, -1]
    assert rbc.asof(times, [high - 1], tolerance=math.inf).tolist() == [0]


def test_units():
    times = pandas.Series(np.array([0, 33, 66], "M8[ms]"))
    queries = np.array([20, 70], "M8[ms]")
    assert rbc.asof(times, queries, "nearest", pandas.Timedelta("15ms")).tolist() == [1, 2]
    torch = pytest.importorskip("torch")
    assert rbc.asof(torch.arange(3.0), torch.tensor([1.5])).tolist() == [1]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([0.0, math.nan], [0.0]), ValueError, "times: is NaN at index 1"),
        (([0.0], [math.nan]), ValueError, "query_times: is NaN at index 0"),
        (([1.0, 0.5], [0.0]), ValueError, "times: decreases at index 1 (1.0 -> 0.5)"),
        (([[0.0]], [0.0]), ValueError, "times: expected a one-dimensional array"),
        (([0.0], 0.0), ValueError, "query_times: expected a one-dimensional array"),
        ((["a"], [0.0]), ValueError, "times: expected a one-dimensional array"),
        (([0.0], [0.0], "back"), ValueError, "direction: is 'back', expected one of 'backward'"),
        (([0.0], [0.0], "nearest", -1.0), ValueError, "tolerance: is -1.0, expected 0 or more"),
        (([0.0], [0.0], "nearest", math.nan), ValueError, "tolerance: is nan"),
        (([0], [0], "nearest", 0.5), TypeError, "tolerance: is 0.5, but times are integers"),
        (
            ([0.0], [0.0], "nearest", np.timedelta64(1, "s")),
            TypeError,
            "tolerance: is 1 seconds, but times have no unit",
        ),
        (
            (np.array([0], "M8[ns]"), [0]),
            TypeError,
            "query_times: has no unit, but times is datetime64[ns]",
        ),
        (
            (np.array([0], "M8[ns]"), np.array([0], "M8[us]")),
            TypeError,
            "query_times: is datetime64[us], but times is datetime64[ns]",
        ),
        ((np.array(["NaT"], "M8[ns]"),) * 2, ValueError, "times: is NaT at index 0"),
        (([2**60 + 1], [0.5]), TypeError, "times: has 1152921504606846977"),
    ],
)
def test_bad_arguments(arguments, error, message):
    with pytest.raises(error) as caught:
        rbc.asof(*arguments)
    assert str(caught.value).startswith(message)
