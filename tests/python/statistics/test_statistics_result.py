"""StatisticsResult: its table, its dict, its shapes, on the CPU and on CUDA."""

import json

import numpy as np
import pytest

import robocache as rbc
from normalization_reference import LEVELS, devices, example, statistics
from robocache import Normalization


def test_the_table_of_a_result():
    text = str(statistics(np.random.default_rng(3).standard_normal((10, 100))))
    lines = text.split("\n")
    assert lines[0].split() == [
        "channel", "count", "nonfinite", "min", "max", "mean", "std",
        "q01", "q10", "q50", "q90", "q99",
    ]  # fmt: skip
    assert len(lines) == 32 and lines[-1] == "... and 70 more"
    assert len(set(map(len, lines[:-1]))) == 1
    few = rbc.StatisticsResult(*[np.zeros((2, 3), int)] * 2, *[np.zeros((2, 3))] * 4,
                               np.zeros((2, 1, 3)), [0.999])  # fmt: skip
    assert [line.split()[0] for line in str(few).split("\n")[1:]] == [
        "0,0", "0,1", "0,2", "1,0", "1,1", "1,2",
    ]  # fmt: skip
    assert str(few).split("\n")[0].endswith("q99.9")


def test_a_result_as_a_dict():
    result = statistics(example())
    told = json.loads(json.dumps(result.to_dict()))
    assert told["levels"] == list(LEVELS) and told["ddof"] == 0
    assert told["count"] == [500] * 7
    for name in ("min", "max", "mean", "std", "quantiles"):
        assert np.array_equal(told[name], getattr(result, name))


def test_a_result_of_torch():
    torch = pytest.importorskip("torch")
    numpy = statistics(example())
    arrays = [torch.from_numpy(np.array(getattr(numpy, n))) for n in
              ("count", "nonfinite", "min", "max", "mean", "std", "quantiles")]  # fmt: skip
    for device in devices():
        result = rbc.StatisticsResult(*(array.to(device) for array in arrays), LEVELS)
        assert repr(result) == repr(numpy) and result.to_dict() == numpy.to_dict()
        assert result.quantile(0.5).device.type == device
        assert Normalization.of(result, "quantiles") == Normalization.of(numpy, "quantiles")


def test_shapes_of_a_result():
    good = [np.zeros(2, int)] * 2 + [np.zeros(2)] * 4
    with pytest.raises(ValueError, match=r"^quantiles: shape is \[2\], expected \[1, 2\]"):
        rbc.StatisticsResult(*good, np.zeros(2), [0.5])
    with pytest.raises(ValueError, match=r"^max: shape is \[3\], expected \[2\]"):
        rbc.StatisticsResult(*good[:3], np.zeros(3), *good[4:], np.zeros((0, 2)))
    with pytest.raises(ValueError, match=r"^index: these statistics cover all rows together"):
        rbc.StatisticsResult(*good, np.zeros((0, 2))).row(0)
