"""Statistics and accumulators against fractions and numpy.quantile, bit for bit."""

import multiprocessing
import pickle

import numpy as np
import pytest

import robocache as rbc
import statistics_reference as reference
from spawned import counted

LEVELS = (0.0, 0.01, 0.1, 0.25, 0.5, 0.9, 0.99, 1.0)
NAMES = ("count", "nonfinite", "min", "max", "mean", "std", "quantiles")


def require_same(result, expected, row=None):
    for name in NAMES:
        got = np.asarray(getattr(result, name))
        got = got if row is None else got[row]
        np.testing.assert_array_equal(got, expected[name], err_msg=name, strict=True)


def _random(seed=0):
    return np.random.default_rng(seed)


DATA = {
    "normal": lambda r: r.normal(size=(501, 3)),
    "far": lambda r: 1e6 + 10 * (r.random((501, 2)) - 0.5),
    "steady": lambda r: r.choice([499.99, 500.01], size=(400, 2)).astype("f4"),
    "spike": lambda r: np.where(r.random((501, 2)) < 0.01, 1e30, r.normal(size=(501, 2))),
    "subnormal": lambda r: r.integers(-9, 9, size=(300, 2)) * 5e-324,
    "equal": lambda r: np.full((77, 2), 0.1),
    "two values": lambda r: r.choice([1.0, 2.0], size=(301, 2)),
    "one": lambda r: r.normal(size=(1, 3)),
    "none": lambda r: np.zeros((0, 2)),
    "huge": lambda r: r.choice([1e200, -1e200, 1e-170, -1e-170], size=(301, 2)),
    "both ends": lambda r: r.choice([1.7e308, -1.7e308], size=(303, 2)),
    "zeros": lambda r: r.choice([0.0, -0.0], size=(55, 1)),
    "not finite": lambda r: r.choice([np.nan, np.inf, -np.inf, 1.0, 2.5], size=(300, 2)),
    "only not finite": lambda r: r.choice([np.nan, np.inf, -np.inf], size=(30, 2)),
    "long integers": lambda r: r.integers(-(2**63), 2**63 - 1, size=(301, 2)),
    "unsigned": lambda r: r.integers(0, 2**64 - 1, size=(301, 2), dtype=np.uint64),
    "many": lambda r: r.normal(size=(20_000, 2)).astype("f4"),
    "many zeros": lambda r: np.where(r.random((20_000, 1)) < 0.7, 0, r.normal(size=(20_000, 1))),
}


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("ddof", [0, 1])
@pytest.mark.parametrize("name", DATA)
def test_exact(name, ddof):
    values = DATA[name](_random())
    result = rbc.statistics(values, quantiles=LEVELS, ddof=ddof)
    require_same(result, reference.statistics(values, LEVELS, ddof))
    assert result.levels == LEVELS


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "?"])
def test_dtypes_accumulated_and_at_once(dtype):
    values = (_random(1).normal(size=(300, 2)) * 50).astype(dtype)
    expected = reference.statistics(values, LEVELS)
    require_same(rbc.statistics(values, quantiles=LEVELS), expected)
    accumulator = rbc.StatisticsAccumulator(2, LEVELS)
    more = True
    while more:
        for piece in np.split(values, [10, 10, 200]):
            accumulator.update(piece)
        more = accumulator.next_pass()
    require_same(accumulator.result(), expected)


def test_rows_lengths_offsets_masks_and_images():
    random = _random(2)
    values = random.normal(size=(4, 60, 3)).astype("f4")
    lengths = [60, 0, 7, 59]
    mask = random.random((4, 60)) < 0.7
    rows = [row[:n][valid[:n]] for row, n, valid in zip(values, lengths, mask)]
    by_row = rbc.statistics(
        values, lengths=lengths, sample_mask=mask, per_row=True, quantiles=LEVELS
    )
    assert by_row.quantiles.shape == (4, len(LEVELS), 3)
    for i, row in enumerate(rows):
        require_same(by_row, reference.statistics(row, LEVELS), i)
    together = rbc.statistics(values, lengths=lengths, sample_mask=mask.tolist(), quantiles=LEVELS)
    require_same(together, reference.statistics(np.concatenate(rows), LEVELS))

    packed = values.reshape(-1, 3)
    offsets = [0, 10, 10, 200]
    by_row = rbc.statistics(packed, batch_offsets=offsets, per_row=True, quantiles=LEVELS)
    for i in range(3):
        row = packed[offsets[i] : offsets[i + 1]]
        require_same(by_row, reference.statistics(row, LEVELS), i)

    images = random.integers(0, 256, size=(3, 2, 9, 11)).astype("u1")
    result = rbc.statistics(images.transpose(0, 2, 3, 1), quantiles=LEVELS)
    require_same(result, reference.statistics(images.transpose(0, 2, 3, 1).reshape(-1, 2), LEVELS))


def test_torch_and_jax_results():
    torch = pytest.importorskip("torch")
    values = torch.arange(12.0).reshape(6, 2)
    result = rbc.statistics(values)
    assert isinstance(result.mean, torch.Tensor)
    assert result.mean.dtype == torch.float64
    assert result.mean.tolist() == [5.0, 6.0]


def test_processes_share_a_pass_by_bytes():
    values = _random(3).normal(size=(4000, 2)).astype("f4")
    pieces = np.array_split(values, 4)
    main = rbc.StatisticsAccumulator(2, LEVELS)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        more = True
        while more:
            start = main.to_bytes()
            for state in pool.starmap(counted, [(start, [piece]) for piece in pieces]):
                main.merge(rbc.StatisticsAccumulator.from_bytes(state))
            more = main.next_pass()
    require_same(main.result(), reference.statistics(values, LEVELS))
    again = pickle.loads(pickle.dumps(main))
    assert again.to_bytes() == main.to_bytes()


def test_more_than_memory_holds():
    """20 GB by a stride of 0: counted twice, exact."""
    rows = np.array([[1.5], [0.25]], "f4")
    pieces = [np.lib.stride_tricks.as_strided(row, (2_500_000_000, 1), (0, 4)) for row in rows]
    assert sum(piece.size * 4 for piece in pieces) >= 20e9
    accumulator = rbc.StatisticsAccumulator(1, (0.25, 0.5, 0.75))
    more = True
    while more:
        for piece in pieces:
            accumulator.update(piece)
        more = accumulator.next_pass()
    result = accumulator.result()
    assert result.count.tolist() == [5_000_000_000]
    assert result.mean.tolist() == [0.875]
    assert result.std.tolist() == [0.625]
    assert result.quantiles.tolist() == [[0.25], [0.875], [1.5]]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda v: rbc.statistics(v, quantiles=[2]), ValueError, "quantiles: level is 2"),
        (lambda v: rbc.statistics(v, quantiles=[np.nan]), ValueError, "quantiles: level is nan"),
        (lambda v: rbc.statistics(v, quantiles=0.5), TypeError, "quantiles: is 0.5"),
        (lambda v: rbc.statistics(v, ddof=2), ValueError, "ddof: is 2, expected 0 or 1"),
        (lambda v: rbc.statistics(v, ddof=None), TypeError, "ddof: is None, expected 0 or 1"),
        (lambda v: rbc.statistics(v, per_row=True), ValueError, "per_row: needs values"),
        (
            lambda v: rbc.statistics(v, sample_mask=np.ones(3, bool)),
            ValueError,
            "sample_mask: shape is",
        ),
        (
            lambda v: rbc.statistics(v, sample_mask=np.ones(9, "f4")),
            TypeError,
            "sample_mask: dtype is float32",
        ),
        (lambda v: rbc.statistics(v[:, 0]), ValueError, "values: shape is"),
        (lambda v: rbc.StatisticsAccumulator(0), ValueError, "channels: is 0"),
        (lambda v: rbc.StatisticsAccumulator(3).update(v), ValueError, "values: has 2 channels"),
        (lambda v: rbc.StatisticsAccumulator(3).next_pass(), ValueError, "has no samples"),
        (lambda v: rbc.StatisticsAccumulator(3).merge(4), TypeError, "other: is 4"),
        (
            lambda v: rbc.StatisticsAccumulator(3).merge(rbc.StatisticsAccumulator(2)),
            ValueError,
            "other: has 2 channels, expected 3",
        ),
        (
            lambda v: rbc.StatisticsAccumulator.from_bytes(b"x" * 64),
            ValueError,
            "data: is not the state of an accumulator",
        ),
        (lambda v: rbc.StatisticsAccumulator.from_bytes("x"), TypeError, "data: is 'x'"),
    ],
)
def test_refused(call, error, message):
    with pytest.raises(error, match="^.*" + message):
        call(np.ones((9, 2)))


def test_empty():
    accumulator = rbc.StatisticsAccumulator(2, LEVELS)
    require_same(accumulator.result(), reference.statistics(np.zeros((0, 2)), LEVELS))
