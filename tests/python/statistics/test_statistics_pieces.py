"""Statistics of pieces: held if they are small, else in passes, with equal bits."""

from __future__ import annotations

import numpy as np
import pytest

import robocache as rbc
from robocache._statistics import pieces

LEVELS = (0.0, 0.01, 0.5, 0.99, 1.0)


def arrays(dtype):
    rng = np.random.default_rng(7)
    values = {name: rng.normal(size=(500, 3)).astype(dtype) for name in ("arm", "base")}
    values["arm"][3, 1] = np.nan
    values["base"][7, 0] = -np.inf
    return values


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("limit", [0, 700, 1 << 20])
def test_every_way_has_the_bits_of_all_samples_together(monkeypatch, limit, dtype):
    """None are held, those before the limit, and all."""
    monkeypatch.setattr(pieces, "HELD", limit)
    values, reads = arrays(dtype), []
    buffer = np.empty((100, 3), dtype)  # which readers use again

    def read(names):
        reads.append(sorted(names))
        for begin in range(0, 500, 100):
            for name in names:
                buffer[:] = values[name][begin : begin + 100]
                yield name, buffer

    found = pieces.exact_of_pieces(read, list(values), LEVELS)
    assert len(reads) == (1 if limit > 1 << 19 else {"f2": 2, "f4": 2, "f8": 4}[dtype])
    assert reads[0] == ["arm", "base"]
    for name, array in values.items():
        expected = rbc.statistics(array, quantiles=LEVELS)
        assert found[name].levels == expected.levels == LEVELS
        for part in ("count", "nonfinite", "min", "max", "mean", "std", "quantiles"):
            assert getattr(found[name], part).tobytes() == getattr(expected, part).tobytes(), part


def test_what_has_no_pieces_has_no_statistics():
    rows = np.zeros((4, 2))
    found = pieces.exact_of_pieces(lambda names: [("a", rows)], ["a", "b"])
    assert list(found) == ["a"] and found["a"].count.tolist() == [4, 4]
    assert pieces.exact_of_pieces(lambda names: [], ["a"]) == {}


@pytest.mark.parametrize("limit", [0, 1 << 20])
def test_pieces_of_several_dtypes_are_refused(monkeypatch, limit):
    monkeypatch.setattr(pieces, "HELD", limit)
    several = [("a", np.zeros((4, 2), "f4")), ("a", np.zeros((4, 2), "f8"))]
    with pytest.raises(TypeError, match="dtype is float64, expected float32"):
        pieces.exact_of_pieces(lambda names: several, ["a"])
