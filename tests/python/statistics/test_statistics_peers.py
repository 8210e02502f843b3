"""The running histogram of benchmarks/comparison, and how far off answers are said to be."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parents[3] / "benchmarks"))
from comparison import running_histogram, statistics_peers  # noqa: E402

LEVELS = (0.01, 0.5, 0.99)


@pytest.mark.parametrize("batch", [300, 7000])
def test_well_behaved_values(batch):
    """Moments are correct, quantiles to a few bins of 1/5000 of the range, which was rebinned."""
    values = np.random.default_rng(0).normal(size=(7000, 2)) * [1, 30] + [5, 0]
    low, high, mean, std, quantiles = running_histogram.statistics(values, LEVELS, batch)
    assert (low == values.min(axis=0)).all() and (high == values.max(axis=0)).all()
    np.testing.assert_allclose(mean, values.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(std, values.std(axis=0), rtol=1e-6)
    off = np.abs(quantiles - np.quantile(values, LEVELS, axis=0)) / (high - low)
    assert 0 < off.max() < 0.01


def test_what_it_gets_wrong():
    """A deviation of 0.01 around 500 in float32, and quantiles of data with one spike."""
    random = np.random.default_rng(0)
    steady = random.choice([499.99, 500.01], size=(3000, 1)).astype("f4")
    *_, std = running_histogram.statistics(steady, None, 300)
    assert abs(std[0] / steady.astype("f8").std() - 1) > 0.5
    spiked = random.normal(size=(3000, 1))
    spiked[1234] = 1e6
    quantiles = running_histogram.statistics(spiked, LEVELS, 300)[-1]
    assert len(np.unique(quantiles)) == 1


def test_off_by():
    """Differences are in standard deviations; for a constant channel, absolute."""
    expected = [np.zeros(2), np.ones(2), np.array([1.0, 2]), np.array([0.5, 0]), np.ones((1, 2))]
    actual = [*map(np.copy, expected)]
    assert statistics_peers.off_by(actual, expected) == {"mean": 0, "std": 0, "quantiles": 0}
    actual[2][0] += 1
    actual[3][1] += 0.25
    actual[4][0, 0] -= 2
    assert statistics_peers.off_by(actual, expected) == {"mean": 2, "std": 0.25, "quantiles": 4}
    actual[1][0] = 2
    with pytest.raises(AssertionError):
        statistics_peers.off_by(actual, expected)
