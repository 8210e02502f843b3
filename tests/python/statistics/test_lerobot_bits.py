"""Normalization has the bits of LeRobot: 40 million values of all sizes, both ways."""

import numpy as np
import pytest

import robocache as rbc
from normalization_reference import LEVELS, lerobot_steps
from random_share import random_share

ROWS, CHANNELS = 40_000, 24
MODES = ("mean_std", "min_max", "quantiles", "quantile10")
BOTH = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])


def numbers(rng, shape, dtype):
    """Every exponent and every sign, but no number whose double is infinite."""
    words = {np.float32: np.uint32, np.float64: np.uint64}[dtype]
    x = rng.integers(0, np.iinfo(words).max, shape, words, endpoint=True).view(dtype)
    return np.where(np.abs(x) < np.finfo(dtype).max / 4, x, dtype(0.1))


def result_of(rng):
    """Statistics of channels that are wide, narrow, tiny, huge, constant and 0."""
    size = 10.0 ** rng.uniform(-12, 12, CHANNELS)
    low = rng.normal(size=CHANNELS) * size
    steps = (
        np.cumsum(rng.random((6, CHANNELS)), axis=0) * size * 10.0 ** rng.uniform(-6, 3, CHANNELS)
    )
    std = steps[0].copy()
    std[:6] = [0, 1e-30, 1e30, 1e-8, 3e-9, 1e-20]
    steps[:, 0] = 0  # constant
    low[1], steps[:, 1] = 0, 0
    low[2], steps[:, 2] = -1e29, np.arange(1, 7) * 1e28
    low[3], steps[:, 3] = 0, np.arange(1, 7) * 1e-25
    mean = low + steps[2]
    mean[:2] = [0.0, -0.0]
    if rng.random() < 0.5:  # as in a file of LeRobot
        low, steps, mean, std = (
            part.astype(np.float32).astype(np.float64) for part in (low, steps, mean, std)
        )
    count = np.full(CHANNELS, 1000)
    quantiles = low + steps[:5]
    return rbc.StatisticsResult(count, 0 * count, low, low + steps[5], mean, std, quantiles, LEVELS)


def values_of(rng, result, dtype):
    """Half are near the statistics, half are any numbers; and all that is special."""
    size = (ROWS, CHANNELS)
    near = result.mean + rng.normal(size=size) * (result.max - result.min) * 2
    x = np.where(rng.random(size) < 0.5, near.astype(dtype), numbers(rng, size, dtype))
    x[:8] = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 1, -1], dtype)[:, None]
    x[8], x[9], x[10] = result.min, result.max, result.mean
    return x


def values_of_policy(rng, dtype):
    y = rng.normal(size=(ROWS, CHANNELS)).astype(dtype)
    y[:6] = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1], dtype)[:, None]
    return y


def require_same(ours, theirs):
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    none = np.isnan(theirs)
    assert np.array_equal(np.isnan(ours), none)
    assert ours[~none].tobytes() == theirs[~none].tobytes()


@BOTH
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(random_share(5)))
def test_every_bit(seed, mode, dtype):
    rng = np.random.default_rng(seed)
    result = result_of(rng)
    x = values_of(rng, result, dtype)
    normalization = rbc.Normalization.of(result, mode, dtype=np.dtype(dtype).name)
    theirs = lerobot_steps(x, result, mode)
    with np.errstate(all="ignore"):
        require_same(normalization.apply(x), theirs)
        # Not near the ends of float32: LeRobot multiplies by the range before it halves.
        y = np.where((np.abs(x) > 1e-9) & (np.abs(x) < 1e9), x, values_of_policy(rng, dtype))
        require_same(normalization.invert(y), lerobot_steps(y, result, mode, inverse=True))
    stream = rbc.WindowStream(x, [0], episode_offsets=[0, ROWS], normalization=normalization)
    ((ours, _),) = rbc.windows([stream], np.zeros(ROWS, np.int64), np.arange(ROWS))
    require_same(ours[:, 0], theirs)


def test_a_reciprocal_has_other_bits():
    """The test above can fail: with a factor, many values differ."""
    rng = np.random.default_rng(0)
    result = result_of(rng)
    x = values_of(rng, result, np.float32)
    normalization = rbc.Normalization.of(result, "mean_std", dtype="float32")
    theirs = lerobot_steps(x, result, "mean_std")
    factor = rbc.Normalization(normalization.shift, 1 / normalization.scale)
    with np.errstate(all="ignore"):
        is_equal = (factor.apply(x) == theirs)[:, 6:]
    assert 0.3 < is_equal.mean() < 0.8


def test_float32_statistics_are_computed_in_float32():
    count = np.array([9])
    result = rbc.StatisticsResult(count, 0 * count, [0.1], [0.3], [0.2], [0.1], np.empty((0, 1)))
    single = rbc.Normalization.of(result, "mean_std", dtype="float32")
    assert single.scale == np.float32(0.1) + np.float32(1e-8) != np.float32(0.1 + 1e-9)
    assert single.shift == np.float32(0.2) and single.divides
    double = rbc.Normalization.of(result, "min_max")
    assert double.scale == (0.3 - 0.1) / 2
    assert rbc.Normalization.of(result, "mean_std", style="openpi", dtype="float32").shift == 0.2
    with pytest.raises(ValueError, match="^dtype: is 'float16', expected float32 or float64"):
        rbc.Normalization.of(result, "mean_std", dtype="float16")


def test_a_range_whose_half_is_not_exact_is_refused():
    for tiny, dtype in ((5e-324, "float64"), (1e-45, "float32")):
        count = np.array([9])
        result = rbc.StatisticsResult(count, 0 * count, [0], [tiny], [0], [0], np.empty((0, 1)))
        with pytest.raises(ValueError, match="too small for a division"):
            rbc.Normalization.of(result, "min_max", dtype=dtype)
