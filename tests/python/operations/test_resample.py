"""rbc.resample on the CPU against the independent reference, and everything that it must refuse."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robocache as rbc
from random_share import random_share
from reference import STEPS
from resample_problems import (
    FLOATS,
    INTEGERS,
    METHODS,
    assert_answers,
    assert_any_layout,
    problems,
    same_bits,
)

# ---- against the reference, at random ------------------------------------------------------------


@settings(max_examples=random_share(2000))
@given(problems())
def test_every_rule(problem):
    values, times, query_times, options = problem
    out, mask = rbc.resample(values, times, query_times, return_valid=True, **options)
    assert type(out) is np.ndarray and mask.dtype == np.bool_
    assert out.dtype == np.dtype(options.pop("dtype", None) or values.dtype)
    assert_answers(out, mask, values, times, query_times, **options)


@settings(max_examples=random_share(200))
@given(problems(), st.data())
def test_out_in_any_layout_and_nothing_beside_it(problem, data):
    values, times, query_times, options = problem
    expected = rbc.resample(values, times, query_times, **options)
    assert_any_layout(
        data, expected, lambda out: rbc.resample(values, times, query_times, out=out, **options)
    )


@settings(max_examples=random_share(200))
@given(problems())
def test_torch_gives_the_same_bits(problem):
    torch = pytest.importorskip("torch")
    values, times, query_times, options = problem
    expected, expected_mask = rbc.resample(values, times, query_times, return_valid=True, **options)
    arrays = [torch.from_numpy(np.array(each)) for each in (values, times, query_times)]
    for name in ("lengths", "query_lengths", "batch_offsets"):
        if name in options:
            options[name] = torch.from_numpy(options[name])
    out, mask = rbc.resample(*arrays, return_valid=True, **options)
    assert isinstance(out, torch.Tensor) and mask.dtype == torch.bool
    assert same_bits(out.numpy(), expected) and same_bits(mask.numpy(), expected_mask)


# ---- the rules, one at a time -------------------------------------------------------------------

TIMES = np.array([0.0, 1.0, 2.0, 4.0])
VALUES = np.array([[0.0], [10.0], [20.0], [40.0]])


@pytest.mark.parametrize(
    ("options", "queries", "answers", "valid"),
    [
        ({}, [0.5, 1.0, 3.0, 4.0], [5, 10, 30, 40], [1, 1, 1, 1]),
        ({}, [-1.0, 5.0, math.nan], [0, 40, 0], [0, 0, 0]),
        ({"outside": "fill", "fill_value": -1}, [-1.0, 5.0, 4.0], [-1, -1, 40], [0, 0, 1]),
        ({"outside": "extrapolate"}, [-1.0, 5.0], [-10, 50], [0, 0]),
        ({"method": "nearest"}, [0.5, 0.6, 3.0, 3.1], [0, 10, 20, 40], [1, 1, 1, 1]),
        ({"method": "previous"}, [0.9, 1.0, 3.9], [0, 10, 20], [1, 1, 1]),
        ({"method": "next"}, [0.1, 1.0, 2.1], [10, 10, 40], [1, 1, 1]),
        ({"max_gap": 1}, [0.5, 3.0, 4.0], [5, 0, 40], [1, 0, 1]),
        ({"max_gap": 2}, [3.0], [30], [1]),
        (
            {"method": "previous", "tolerance": 1, "fill_value": 7},
            [2.9, 3.0, 3.1, 5.0, 5.1, -0.1],
            [20, 20, 7, 40, 7, 7],
            [1, 1, 0, 1, 0, 0],
        ),
        (
            {"method": "next", "tolerance": 1, "fill_value": 7},
            [-1.0, -1.1, 2.9, 3.0, 4.1],
            [0, 7, 7, 40, 7],
            [1, 0, 0, 1, 0],
        ),
        (
            {"method": "nearest", "tolerance": 0.5, "fill_value": 7},
            [-0.5, -0.6, 3.0, 3.5, 4.5],
            [0, 7, 7, 40, 40],
            [1, 0, 0, 1, 1],
        ),
        ({"method": "nearest", "tolerance": 1, "max_gap": 1}, [3.0], [20], [1]),
    ],
)
def test_rules_by_hand(options, queries, answers, valid):
    out, mask = rbc.resample(VALUES, TIMES, queries, return_valid=True, **options)
    np.testing.assert_array_equal(out[:, 0], answers)
    np.testing.assert_array_equal(mask, np.array(valid, bool))


def test_of_equal_times_the_last_counts():
    times = np.array([0.0, 1.0, 1.0, 1.0, 2.0])
    values = np.array([[0.0], [10.0], [11.0], [12.0], [20.0]])
    out = rbc.resample(values, times, [0.5, 1.0, 1.5])
    np.testing.assert_array_equal(out[:, 0], [5.0, 12.0, 16.0])
    out, mask = rbc.resample(
        values[1:4], times[1:4], [0.0, 1.0, 2.0], outside="extrapolate", return_valid=True
    )
    np.testing.assert_array_equal(out[:, 0], [0.0, 12.0, 0.0])
    np.testing.assert_array_equal(mask, [False, True, False])


def test_rows_of_length_0_and_1():
    values, times = np.ones((3, 2, 1)), np.array([[1.0, 9.0]] * 3)
    out, mask = rbc.resample(
        values, times, [0.0, 1.0, 2.0], lengths=[0, 1, 2], fill_value=-1, return_valid=True
    )
    np.testing.assert_array_equal(out[..., 0], [[-1, -1, -1], [1, 1, 1], [1, 1, 1]])
    np.testing.assert_array_equal(mask, [[0, 0, 0], [0, 1, 0], [0, 1, 1]])


@pytest.mark.parametrize(
    ("values", "times", "queries", "shape"),
    [
        ((0, 4, 3), (0, 4), (0, 5), (0, 5, 3)),
        ((2, 4, 3), (4,), (0,), (2, 0, 3)),
        ((2, 4, 0), (2, 4), (5,), (2, 5, 0)),
        ((2, 0, 3), (2, 0), (5,), (2, 5, 3)),
        ((0, 3), (0,), (5,), (5, 3)),
    ],
)
def test_empty(values, times, queries, shape):
    out, mask = rbc.resample(
        np.ones(values), np.zeros(times), np.zeros(queries), fill_value=3, return_valid=True
    )
    assert out.shape == shape and mask.shape == shape[:-1]
    assert (out == 3).all() and not mask.any() or values == (2, 4, 0)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("channels", [1, 3, 16, 67])
def test_linear_between_infinite_values_as_numpy(dtype, channels):
    """Rows of all lengths, with finite channels as well, in both directions of time."""
    odd = [0.0, -0.0, 1.5, -2.0, math.inf, -math.inf, math.nan]
    pairs = [(a, b) for a in odd for b in odd]
    rng = np.random.default_rng(channels)
    values = np.array(pairs, dtype).T[:, :, None]  # [2,49,1]
    values = np.where(rng.random((2, 49, channels)) < 0.7, values, dtype == "float64")
    queries = np.array([0, 0.25, 0.5, 0.75, 1])
    for samples in (values, values[::-1]):
        for n in range(len(pairs)):
            out = rbc.resample(samples[:, n].astype(dtype), np.array([0.0, 1.0]), queries)
            for c in range(channels):
                with np.errstate(invalid="ignore"):
                    right = np.interp(queries, [0.0, 1.0], samples[:, n, c].astype(np.float64))
                np.testing.assert_array_equal(out[:, c], right.astype(out.dtype))
    fused = rbc.fuse([rbc.Stream(values[:, 5].astype(dtype), [0.0, 1.0])] * 2, queries)
    alone = rbc.resample(values[:, 5].astype(dtype), [0.0, 1.0], queries)
    np.testing.assert_array_equal(fused, np.hstack([alone, alone]).astype(fused.dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_linear_where_the_difference_overflows(dtype):
    most = np.finfo(dtype).max
    values = np.array([[-most, most, most], [most, -most, most]], dtype)
    out = rbc.resample(values, [0.0, 1.0], [0.25, 0.5, 0.75])
    right = [[-most / 2, most / 2, most], [0, 0, most], [most / 2, -most / 2, most]]
    np.testing.assert_allclose(out, np.array(right, dtype), rtol=np.finfo(dtype).eps)


def test_nan_and_infinite_values_propagate():
    values = np.array([[0, math.nan, 0, math.inf], [1, 1, math.nan, 1], [2, 2, 2, 2]], np.float32)
    out, mask = rbc.resample(
        values, np.array([0.0, 1.0, 2.0]), [0.0, 0.5, 1.0, 1.5], return_valid=True
    )
    expected = [
        [0, math.nan, 0, math.inf],
        [0.5, math.nan, math.nan, math.inf],
        [1, 1, math.nan, 1],
        [1.5, 1.5, math.nan, 1.5],
    ]
    np.testing.assert_array_equal(out, np.array(expected, np.float32))
    assert mask.all()


def test_epoch_nanoseconds_where_float32_fails():
    start, step = 1_700_000_000_123_456_789, 10_000_000  # 100 Hz
    times = start + step * np.arange(100, dtype=np.int64)
    values = np.arange(100.0)[:, None]
    queries = times[:-1] + 2_500_000
    assert len(np.unique(times.astype(np.float32))) == 1
    assert (np.diff(times.astype(np.float64)) != step).any()
    out, mask = rbc.resample(values, times, queries, return_valid=True)
    np.testing.assert_array_equal(out[:, 0], np.arange(99) + 0.25)
    assert mask.all()
    _, mask = rbc.resample(values, times, queries, max_gap=step - 1, return_valid=True)
    assert not mask.any()


def test_times_at_the_ends_of_int64():
    ends = np.array([-(2**63), 2**63 - 1])
    out = rbc.resample(np.array([[0.0], [1.0]]), ends, np.array([0, -(2**63), 2**63 - 1]))
    np.testing.assert_allclose(out[:, 0], [0.5, 0.0, 1.0], rtol=1e-15)


def test_shared_times_are_broadcast_times():
    random = np.random.default_rng(1)
    values = random.normal(size=(5, 30, 6)).astype(np.float32)
    times, queries = np.sort(random.random(30)), random.random(12)
    shared = rbc.resample(values, times, queries)
    assert same_bits(rbc.resample(values, np.tile(times, (5, 1)), np.tile(queries, (5, 1))), shared)
    assert same_bits(rbc.resample(values, np.broadcast_to(times, (5, 30)), queries), shared)
    for b in range(5):
        assert same_bits(rbc.resample(values[b], times, queries), shared[b])
    packed = rbc.resample(
        values.reshape(150, 6), np.tile(times, 5), queries, batch_offsets=30 * np.arange(6)
    )
    assert same_bits(packed, shared)


@pytest.mark.parametrize("method", METHODS)
def test_big_enough_for_threads_and_the_same_bits_with_any_number(method):
    random = np.random.default_rng(2)
    values = random.normal(size=(16, 500, 64)).astype(np.float32)
    times = np.cumsum(random.random((16, 500)) + 0.02, axis=1)
    queries = random.random((16, 250)) * 1.1 * times[:, -1:]
    options = {"method": method, "outside": "fill", "return_valid": True}
    out, mask = rbc.resample(values, times, queries, **options)
    rows = [rbc.resample(values[b], times[b], queries[b], **options) for b in range(16)]
    assert same_bits(out, np.stack([row for row, _ in rows])) and same_bits(
        mask, np.stack([row for _, row in rows])
    )
    for threads, simd in ((1, "portable"), (2, None), (3, None)):
        with rbc.Context("cpu", threads=threads, simd=simd) as context:
            assert same_bits(
                rbc.resample(values, times, queries, backend=context, **options)[0], out
            )
    some = slice(0, 1)
    assert_answers(
        out[some],
        mask[some],
        values[some],
        times[some],
        queries[some],
        method=method,
        outside="fill",
    )


def test_more_than_2_to_the_31_elements():
    samples = 2**33 + 5
    values = np.broadcast_to(np.array([[1.5, 2.5]], np.float32), (samples, 2))  # nothing is copied
    times = np.broadcast_to(np.float32(3.0), (samples,))
    out, mask = rbc.resample(
        values, times, np.array([2, 3, 4], np.float32), check_times=False, return_valid=True
    )
    np.testing.assert_array_equal(out, [[1.5, 2.5]] * 3)
    np.testing.assert_array_equal(mask, [False, True, False])


# ---- methods -------------------------------------------------------------------------------------


def turned(axis, angle):
    """The quaternion x, y, z, w of a rotation."""
    axis = np.asarray(axis) / np.linalg.norm(axis)
    half = np.asarray(angle)[..., None] / 2
    return np.concatenate([np.sin(half) * axis, np.cos(half)], axis=-1)


@pytest.mark.parametrize("method", METHODS)
def test_at_the_sample_times_are_the_samples(method):
    random = np.random.default_rng(10)
    values = random.normal(size=(3, 40, 8)).astype(np.float32)
    times = np.cumsum(random.integers(1, 9, (3, 40)), axis=1)
    out, mask = rbc.resample(values, times, times, method=method, return_valid=True)
    assert same_bits(out, values) and mask.all()


@pytest.mark.parametrize("method", ["linear", "cubic", "pchip"])
def test_lines_are_kept(method):
    random = np.random.default_rng(11)
    times = np.cumsum(random.integers(1, 9, 40)).astype(np.float64)
    queries = random.uniform(times[0], times[-1], 200)
    out = rbc.resample(np.stack([3 * times, -times], 1), times, queries, method=method)
    np.testing.assert_allclose(out, np.stack([3 * queries, -queries], 1), rtol=1e-13)


def test_cubic_keeps_parabolas_and_pchip_stays_between_the_samples():
    random = np.random.default_rng(12)
    times = np.cumsum(random.integers(1, 9, 40)).astype(np.float64)
    queries = np.sort(random.uniform(times[0], times[-1], 500))
    out = rbc.resample((times**2)[:, None], times, queries, method="cubic")
    np.testing.assert_allclose(out[:, 0], queries**2, rtol=1e-12)
    values = random.normal(size=(40, 5)).astype(np.float32)
    out = rbc.resample(values, times, queries, method="pchip")
    left = np.searchsorted(times, queries, side="right") - 1
    low, high = (op(values[left], values[left + 1]) for op in (np.minimum, np.maximum))
    slack = 1e-6 * np.abs(values).max()
    assert (out >= low - slack).all() and (out <= high + slack).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("speed", [0.0, 1e-9, 1e-4, 0.3, 3.1])
def test_slerp_of_a_constant_speed_whatever_the_signs(dtype, speed):
    random = np.random.default_rng(13)
    times = np.arange(30.0)
    signs, lengths = random.choice([-1.0, 1.0], (30, 1)), random.uniform(0.5, 2, (30, 1))
    axis = random.normal(size=3)
    values = (turned(axis, speed * times) * signs * lengths).astype(dtype)
    queries = np.setdiff1d(random.uniform(0, 29, 100), times)
    out = rbc.resample(values, times, queries, method="slerp").astype(np.float64)
    expected = turned(axis, speed * queries)
    expected *= np.sign((expected * out).sum(axis=1, keepdims=True))
    np.testing.assert_allclose(out, expected, atol=8 * np.finfo(dtype).eps)
    # The sign is that of the sample before.
    before = values[np.floor(queries).astype(int)]
    assert ((before * out).sum(axis=1) > 0).all()


NO_ROTATIONS = {
    "zeros": [0.0, 0, 0, 0],
    "zeros of both signs": [0.0, -0.0, 0, -0.0],
    "a NaN": [0, math.nan, 0, 1],
    "an infinity": [0, 0, 1, -math.inf],
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", NO_ROTATIONS)
@pytest.mark.parametrize("quaternions", [1, 4, 64])
def test_slerp_of_no_rotation_is_invalid(dtype, name, quaternions):
    values = np.tile(np.array([0, 0, 0.6, 0.8], "float32"), (6, quaternions))
    lost = quaternions // 2
    values[2, 4 * lost : 4 * lost + 4] = NO_ROTATIONS[name]
    times, queries = np.arange(6.0), np.array([0.5, 1, 1.25, 2, 2.75, 3, 3.5])
    options = {"method": "slerp", "fill_value": 9, "mean": [0.5, 0, 0, 0] * quaternions}
    with np.errstate(invalid="ignore"):
        values = values.astype(dtype)
    out, mask = rbc.resample(values, times, queries, return_valid=True, **options)
    assert mask.tolist() == [True, True, False, False, False, True, True]
    own = slice(4 * lost, 4 * lost + 4)
    assert (out[~mask, own] == 9).all() and (out[mask] != 9).all()
    others = np.delete(out, np.arange(own.start, own.stop), axis=1)
    whole = rbc.resample(np.tile(values[:1], (6, 1)), times, queries, **options)
    assert same_bits(others, np.delete(whole, np.arange(own.start, own.stop), axis=1))
    # Held, it is as invalid.
    for held, rows in ((-1.0, values[2:]), (9.0, values[:3])):
        out, mask = rbc.resample(rows, times[: len(rows)], [held], return_valid=True, **options)
        assert not mask.any() and (out[0, own] == 9).all()


@pytest.mark.parametrize("size", [5e-324, 1e-200, 1e200, 1.7e308])
def test_slerp_takes_quaternions_of_any_size(size):
    values, times = np.tile([0, 0, 0, size], (2, 1)), np.array([0.0, 1.0])
    out, mask = rbc.resample(values, times, [0.0, 0.5], method="slerp", return_valid=True)
    assert mask.all() and out[0].tolist() == [0, 0, 0, size]


def test_angles_go_the_shorter_way():
    times = np.array([0.0, 1.0, 2.0])
    values = np.array([[3.0], [-3.0], [50 * math.pi - 2]])
    out = rbc.resample(values, times, [0.25, 0.75, 1.5], method="angle")[:, 0]
    gap = 2 * math.pi - 6
    np.testing.assert_allclose(out[:2], [3 + gap / 4, -3 - gap / 4], rtol=1e-14)
    assert abs(out[2] + 2.5) < 1e-12
    random = np.random.default_rng(14)
    values = random.normal(size=(50, 6)).astype(np.float32) * 20
    out = rbc.resample(values, np.arange(50.0), np.arange(49) + 0.3, method="angle")
    assert (np.abs(out) <= np.float32(math.pi)).all()


def test_groups_are_calls_of_their_own():
    random = np.random.default_rng(15)
    values = random.normal(size=(3, 50, 15)).astype(np.float32)
    times = np.cumsum(random.random((3, 50)), axis=1)
    queries = random.random((3, 80)) * times[:, -1:] * 1.2 - 1
    groups = [(7, 1, "previous"), (0, 3, "cubic"), (3, 4, "slerp"), (8, 7, "linear")]
    options = {"tolerance": 0.3, "max_gap": 0.8, "outside": "fill", "fill_value": 9}
    out, mask = rbc.resample(values, times, queries, method=groups, return_valid=True, **options)
    masks = []
    for begin, count, name in groups:
        part = slice(begin, begin + count)
        own = {**options, "tolerance": 0.3 if name in STEPS else None}
        each, valid = rbc.resample(
            values[..., part], times, queries, method=name, return_valid=True, **own
        )
        assert same_bits(out[..., part], each)
        masks.append(valid)
    assert same_bits(mask, np.logical_and.reduce(masks)) and 0 < mask.sum() < mask.size
    for same in (tuple(groups), [list(group) for group in groups]):
        assert same_bits(rbc.resample(values, times, queries, method=same, **options), out)


# ---- mean and std --------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_mean_and_std(method, dtype):
    random = np.random.default_rng(16)
    values = random.normal(size=(3, 50, 8)).astype(dtype)
    times = np.cumsum(random.random((3, 50)), axis=1)
    queries = random.random((3, 80)) * times[:, -1:] * 1.2 - 1
    mean, std = random.normal(size=8), random.random(8) + 0.1
    options = {"method": method, "outside": "fill", "fill_value": 77}
    raw, mask = rbc.resample(values, times, queries, return_valid=True, **options)
    inverse = (1 / std).astype(dtype)
    for statistics, scaled in (
        ({"mean": mean, "std": std}, (raw - mean.astype(dtype)) * inverse),
        ({"mean": mean}, raw - mean.astype(dtype)),
        ({"std": std}, raw * inverse),
    ):
        expected = np.where(mask[..., None], scaled, 77).astype(dtype)
        for kind in (np.asarray, np.ndarray.tolist, lambda each: tuple(each.tolist())):
            own = {name: kind(each) for name, each in statistics.items()}
            out, same_mask = rbc.resample(
                values, times, queries, return_valid=True, **own, **options
            )
            assert same_bits(out, expected) and same_bits(same_mask, mask)


def test_mean_and_std_of_torch_in_its_own_arithmetic():
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(17)
    values = torch.from_numpy(random.normal(size=(50, 5)).astype(np.float32))
    times = torch.arange(50.0)
    mean, std = torch.rand(5), torch.rand(5) + 0.1
    out = rbc.resample(values, times, times + 0.5, mean=mean, std=std)
    raw = rbc.resample(values, times, times + 0.5)
    assert torch.equal(out, (raw - mean) * (1.0 / std))
    doubles = rbc.resample(values, times, times + 0.5, mean=mean.double(), std=std.double())
    assert torch.equal(doubles, (raw - mean) * (1.0 / std.double()).float())
    with pytest.raises(ValueError, match="^mean: requires grad, .* pass mean.detach"):
        rbc.resample(values, times, times, mean=mean.requires_grad_())
    with pytest.raises(ValueError, match="^std: requires grad, .* pass std.detach"):
        rbc.resample(values, times, times, std=std.requires_grad_())


def test_integers_into_floats():
    values = np.array([[0, 2**31 - 1], [10, -(2**31)], [20, 7]], np.int32)
    out = rbc.resample(
        values, np.arange(3), [2, 0, 1], method="nearest", dtype="float64", mean=[10, 7], std=[5, 1]
    )
    np.testing.assert_array_equal(out, [[2, 0], [-2, 2**31 - 8], [0, -(2**31) - 7]])
    assert out.dtype == np.float64
    assert rbc.resample(values, np.arange(3), [2], method="nearest").dtype == np.int32


# ---- dtypes and frameworks -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("out_dtype", FLOATS)
def test_another_output_dtype_rounds_once_more(dtype, out_dtype):
    random = np.random.default_rng(3)
    values = random.normal(size=(4, 50, 9)).astype(dtype)
    times, queries = np.sort(random.random((4, 50))), random.random((4, 70))
    computed = rbc.resample(
        values, times, queries, dtype="float64" if dtype == "float64" else "float32"
    )
    out = rbc.resample(values, times, queries, dtype=out_dtype)
    assert same_bits(out, computed.astype(out_dtype))


def test_ways_to_name_a_dtype():
    torch = pytest.importorskip("torch")
    for dtype in ("float16", np.float16, np.dtype("float16"), torch.float16, "<f2"):
        assert rbc.resample(VALUES, TIMES, TIMES, dtype=dtype).dtype == np.float16
        assert (
            rbc.resample(
                torch.from_numpy(VALUES), torch.from_numpy(TIMES), TIMES, dtype=dtype
            ).dtype
            == torch.float16
        )


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_are_copied_whole(dtype):
    limits = (0, 1) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    values = np.array([limits, limits[::-1], limits], dtype)
    out = rbc.resample(
        values,
        np.array([0, 1, 2]),
        np.array([1, 0, 2, 9]),
        method="previous",
        outside="fill",
        fill_value=1,
    )
    np.testing.assert_array_equal(out, np.array([limits[::-1], limits, limits, (1, 1)], dtype))


def test_bfloat16_of_torch():
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(4)
    values = torch.from_numpy(random.normal(size=(3, 40, 5)).astype(np.float32)).bfloat16()
    times, queries = np.sort(random.random((3, 40))), random.random((3, 60))
    out, mask = rbc.resample(
        values, torch.from_numpy(times), torch.from_numpy(queries), return_valid=True
    )
    assert out.dtype == torch.bfloat16
    exact = rbc.resample(
        values, torch.from_numpy(times), torch.from_numpy(queries), dtype="float32"
    )
    assert torch.equal(out, exact.bfloat16())
    assert_answers(exact.numpy(), mask.numpy(), values.float().numpy(), times, queries)


def test_bfloat16_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = VALUES.astype(ml_dtypes.bfloat16)
    out = rbc.resample(values, TIMES, [0.5, 3.0])
    assert out.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(out.astype(np.float32)[:, 0], [5, 30])
    assert rbc.resample(VALUES, TIMES, [0.5], dtype="bfloat16").dtype == ml_dtypes.bfloat16


def test_no_copy_in_or_out():
    torch = pytest.importorskip("torch")
    values = torch.from_numpy(VALUES).clone()
    out = torch.full((2, 1), -1.0, dtype=torch.float64)
    pointer = out.data_ptr()
    assert rbc.resample(values, torch.from_numpy(TIMES), [0.5, 1.5], out=out) is out
    assert out.data_ptr() == pointer and out[:, 0].tolist() == [5, 15]
    values[0] = 100  # seen by the next call: it reads the tensor's own memory
    assert rbc.resample(values, torch.from_numpy(TIMES), [0.0]).item() == 100
    shared = np.zeros((2, 1))
    rbc.resample(values, torch.from_numpy(TIMES), [0.5, 1.5], out=torch.from_numpy(shared))
    assert shared[:, 0].tolist() == [55, 15]


def test_frameworks_mix_on_the_cpu():
    torch = pytest.importorskip("torch")
    assert type(rbc.resample(VALUES, torch.from_numpy(TIMES), TIMES)) is np.ndarray
    assert type(rbc.resample(torch.from_numpy(VALUES), TIMES, TIMES)) is torch.Tensor
    out = np.empty_like(VALUES)
    assert rbc.resample(torch.from_numpy(VALUES), TIMES, TIMES, out=out) is out and same_bits(
        out, VALUES
    )


def test_subclasses(tmp_path):
    torch = pytest.importorskip("torch")
    np.save(tmp_path / "values.npy", VALUES)
    mapped = np.load(tmp_path / "values.npy", mmap_mode="r")
    assert same_bits(rbc.resample(mapped, TIMES, TIMES), VALUES)
    parameter = torch.nn.Parameter(torch.from_numpy(VALUES))
    with torch.no_grad():
        assert same_bits(rbc.resample(parameter, TIMES, TIMES).numpy(), VALUES)
    with pytest.raises(ValueError, match="values: requires grad"):
        rbc.resample(parameter, TIMES, TIMES)


def test_jax():
    jax = pytest.importorskip("jax")
    values, times = (
        jax.numpy.asarray(VALUES.astype(np.float32)),
        jax.numpy.asarray(TIMES.astype(np.float32)),
    )
    queries = jax.numpy.asarray(np.array([0.5, 9.0], np.float32))
    out, mask = rbc.resample(values, times, queries, return_valid=True)
    assert isinstance(out, jax.Array) and out.dtype == np.float32 and mask.dtype == np.bool_
    np.testing.assert_array_equal(np.asarray(out)[:, 0], [5, 40])
    assert mask.tolist() == [True, False]


def test_lists_stand_for_short_arrays():
    out = rbc.resample(VALUES, TIMES, (0, 1), query_lengths=None)
    assert out.dtype == np.float64 and out[:, 0].tolist() == [0, 10]
    assert rbc.resample(VALUES, TIMES.astype(np.int64), range(3))[:, 0].tolist() == [0, 10, 20]
    with pytest.raises(TypeError, match="query_times: is a list of float64, expected int64"):
        rbc.resample(VALUES, TIMES.astype(np.int64), [0.5])
    with pytest.raises(TypeError, match="lengths: is a list of float64, expected int64"):
        rbc.resample(VALUES[None], TIMES, [0.5], lengths=[1.5])
    with pytest.raises(TypeError, match="query_times: is a list of <U1, expected float64"):
        rbc.resample(VALUES, TIMES, ["a"])


# ---- what must be refused ------------------------------------------------------------------------


def call(**changes):
    """A call on [2,4,3] float32 that is valid except for the changes."""
    arguments = {
        "values": np.arange(24, dtype=np.float32).reshape(2, 4, 3),
        "times": np.array([[0.0, 1.0, 2.0, 3.0]] * 2),
        "query_times": np.array([[0.5, 1.5]] * 2),
        **changes,
    }
    return rbc.resample(**arguments)


def offsets_call(batch_offsets, **changes):
    packed = {"values": np.zeros((4, 3)), "times": np.zeros(4), "query_times": np.zeros(2)}
    return call(**{**packed, "batch_offsets": batch_offsets, **changes})


READ_ONLY = np.zeros((2, 2, 3), np.float32)
READ_ONLY.flags.writeable = False

REFUSED = [
    # Not arrays, and dtypes
    ({"values": [["a"]]}, TypeError, "values: is a list of <U1, expected numbers"),
    ({"values": None}, TypeError, "values: is None, expected an array"),
    ({"times": ["a", "b"]}, TypeError, "times: is a list, expected an array"),
    ({"query_times": "noon"}, TypeError, "query_times: is a str, expected an array"),
    ({"times": None}, ValueError, "times: is null"),
    ({"out": [0.0]}, TypeError, "out: is a list, expected an array"),
    ({"lengths": 3}, TypeError, "lengths: is an int, expected an array"),
    ({"values": np.zeros((2, 4, 3), object)}, TypeError, "values: dtype is object"),
    ({"values": np.zeros((2, 4, 3), complex)}, TypeError, "values: dtype is complex128"),
    ({"values": np.zeros((2, 4, 3), np.longdouble)}, TypeError, "values: dtype is"),
    ({"values": np.zeros((2, 4, 3), "S4")}, TypeError, r"values: dtype is \|S4"),
    (
        {"values": np.zeros((2, 4, 3), ">f4")},
        TypeError,
        "values: dtype is >f4, .* native byte order",
    ),
    (
        {"values": np.zeros((2, 4, 3), np.int32)},
        TypeError,
        "values: dtype is int32, expected a float for method linear",
    ),
    (
        {"times": np.zeros((2, 4), np.float16)},
        TypeError,
        "times: dtype is float16, expected float32, float64 or int64",
    ),
    (
        {"times": np.zeros((2, 4), np.int32)},
        TypeError,
        "query_times: dtype is float64, expected int64 as times",
    ),
    (
        {"times": np.zeros((2, 4), "M8[ns]")},
        TypeError,
        r"query_times: has no unit, but times is datetime64\[ns\]; write np.asarray\(query_times\)",
    ),
    (
        {"query_times": np.zeros((2, 2), np.float32)},
        TypeError,
        "query_times: dtype is float32, expected float64 as times",
    ),
    ({"lengths": np.zeros(2)}, TypeError, "lengths: dtype is float64, expected int32 or int64"),
    ({"dtype": "int32"}, TypeError, "dtype: is int32, expected a float for float values"),
    ({"dtype": "quaternion"}, TypeError, "dtype: is 'quaternion', expected"),
    (
        {"dtype": "float16", "out": np.zeros((2, 2, 3), np.float32)},
        TypeError,
        "dtype: is float16, but out is float32",
    ),
    (
        {
            "values": np.zeros((2, 4, 3), np.int32),
            "method": "next",
            "out": np.zeros((2, 2, 3), np.int64),
        },
        TypeError,
        "out: dtype is int64, expected int32",
    ),
    # Shapes
    ({"values": np.zeros(4)}, ValueError, r"values: rank is 1 \(shape \[4\]\), expected 2 or 3"),
    ({"values": np.zeros((1, 2, 4, 3))}, ValueError, "values: rank is 4"),
    ({"values": np.zeros((1,) * 9)}, ValueError, "values: rank is 9"),
    ({"values": np.zeros((4, 3))}, ValueError, r"times: rank is 2 \(shape \[2,4\]\), expected 1"),
    ({"times": np.zeros((2, 5))}, ValueError, r"times: shape is \[2,5\], expected \[2,4\]"),
    ({"query_times": np.float64(0.5) * np.ones(())}, ValueError, "query_times: rank is 0"),
    (
        {"query_times": np.zeros((3, 2))},
        ValueError,
        r"query_times: shape is \[3,2\], expected \[2,2\]",
    ),
    (
        {"out": np.zeros((2, 2, 4), np.float32)},
        ValueError,
        r"out: shape is \[2,2,4\], expected \[2,2,3\]",
    ),
    ({"lengths": np.zeros(3, np.int32)}, ValueError, r"lengths: shape is \[3\], expected \[2\]"),
    (
        {"query_lengths": np.zeros((2, 1), np.int32)},
        ValueError,
        r"query_lengths: shape is \[2,1\], expected \[2\]",
    ),
    # Values
    (
        {"times": np.array([[0.0, 1.0, 2.0, 3.0], [0.0, 2.5, 2.25, 3.0]])},
        ValueError,
        r"times: row 1 decreases at index 2 \(2.5 -> 2.25\)",
    ),
    (
        {"times": np.array([[0.0, 1.0, math.nan, 3.0]] * 2)},
        ValueError,
        "times: row 0 is NaN at index 2",
    ),
    (
        {"times": np.array([[5, 4, 6, 7]] * 2), "query_times": np.zeros((2, 2), int)},
        ValueError,
        r"times: row 0 decreases at index 1 \(5 -> 4\)",
    ),
    ({"lengths": [4, 5]}, ValueError, "lengths: row 1 is 5, expected 0 to 4"),
    (
        {"lengths": [-1, 4], "check_times": False},
        ValueError,
        "lengths: row 0 is -1, expected 0 to 4",
    ),
    ({"query_lengths": [2, 3]}, ValueError, "query_lengths: row 1 is 3, expected 0 to 2"),
    (
        {"method": "cubic_hermite"},
        ValueError,
        "method: is 'cubic_hermite', expected one of 'linear'",
    ),
    ({"method": 3}, ValueError, "method: is 3, expected one of 'linear'"),
    # Groups of channels
    ({"method": []}, ValueError, r"method: has no groups, expected \(begin, count, name\)"),
    ({"method": ["linear"]}, TypeError, r"method\[0\]: is 'linear', expected \(begin, count, name"),
    ({"method": [(0, 1.5, "linear")]}, TypeError, r"method\[0\]: is \(0, 1.5, 'linear'\)"),
    ({"method": [(0, 2**70, "linear")]}, TypeError, r"method\[0\]: is "),
    (
        {"method": [(0, 2, "linear"), (2, 1, "cube")]},
        ValueError,
        r"method\[1\]: is 'cube', expected one of 'linear'",
    ),
    ({"method": [(0, 2, "next")]}, ValueError, "method: channel 2 is in none of the groups"),
    (
        {"method": [(1, 2, "linear"), (0, 2, "next")]},
        ValueError,
        r"method\[0\]: shares channel 1 with method\[1\]",
    ),
    (
        {"method": [(0, 4, "linear")]},
        ValueError,
        r"method\[0\]: begins at channel 0 and has count 4",
    ),
    (
        {"method": [(0, 3, "slerp")]},
        ValueError,
        r"method\[0\].count: is 3, expected a multiple of 4",
    ),
    ({"method": [(0, 0, "linear"), (0, 3, "linear")]}, ValueError, r"method\[0\].count: is 0"),
    ({"method": "slerp"}, ValueError, "values: has 3 channels, expected a multiple of 4 for slerp"),
    # Mean and std
    (
        {"std": [1.0, 0.0, 2.0]},
        ValueError,
        "std: channel 1 is 0; use 1 for a constant channel",
    ),
    ({"std": np.array([1.0, 2.0, -0.0], np.float32)}, ValueError, "std: channel 2 is 0; use 1"),
    ({"std": 2.0}, TypeError, "std: is a float, expected an array"),
    ({"mean": "zero"}, TypeError, "mean: is a str, expected an array"),
    ({"mean": ["zero"]}, TypeError, "mean: is a list of <U4, expected float64"),
    ({"std": ["one"]}, TypeError, "std: is a list of <U3, expected float64"),
    ({"mean": [0.0, 1.0]}, ValueError, r"mean: shape is \[2\], expected \[3\]"),
    ({"std": [1.0]}, ValueError, r"std: shape is \[1\], expected \[3\]"),
    ({"mean": np.zeros(3, int)}, TypeError, "mean: dtype is int64, expected float32 or float64"),
    (
        {"values": np.zeros((2, 4, 3), np.int32), "method": "next", "mean": np.zeros(3)},
        TypeError,
        "mean: needs an out of a float dtype, but out is int32",
    ),
    (
        {"outside": "wrap"},
        ValueError,
        "outside: is 'wrap', expected one of 'hold', 'fill', 'extrapolate'",
    ),
    (
        {"outside": "extrapolate", "method": "next"},
        ValueError,
        "outside: extrapolate needs method linear",
    ),
    ({"max_gap": -1}, ValueError, "max_gap: is -1, expected 0 or more"),
    ({"max_gap": math.nan}, ValueError, "max_gap: is nan, expected 0 or more"),
    ({"tolerance": 1.0}, ValueError, "tolerance: is for methods nearest, previous and next"),
    ({"tolerance": -1.0, "method": "next"}, ValueError, "tolerance: is -1, expected 0 or more"),
    (
        {"values": np.zeros((2, 4, 3), np.uint8), "method": "next", "fill_value": 256},
        ValueError,
        "fill_value: 256 cannot be written as uint8",
    ),
    # Memory
    ({"out": READ_ONLY}, ValueError, "out: is read-only"),
    ({"out": np.broadcast_to(np.float32(0), (2, 2, 3))}, ValueError, "out: is read-only"),
    # Devices
    ({"backend": "tpu"}, ValueError, "backend: is 'tpu', expected"),
    ({"backend": "cuda:x"}, ValueError, "backend: is 'cuda:x', expected"),
    ({"backend": 3}, TypeError, "backend: is an int, expected"),
]


@pytest.mark.parametrize(
    ("changes", "error", "message"), REFUSED, ids=[message[:40] for _, _, message in REFUSED]
)
def test_refused(changes, error, message):
    with pytest.raises(error, match=f"^{message}"):
        call(**changes)


@pytest.mark.parametrize(
    ("batch_offsets", "changes", "error", "message"),
    [
        ([0, 3, 2, 4], {}, ValueError, r"batch_offsets: decrease at index 2 \(3 -> 2\)"),
        ([0, 2, 5], {}, ValueError, "batch_offsets: index 2 is 5, past the 4 samples"),
        ([-1, 2, 4], {}, ValueError, "batch_offsets: index 0 is -1, expected 0 or more"),
        (np.zeros(0, np.int32), {}, ValueError, r"batch_offsets: shape is \[0\]"),
        (np.zeros((2, 2), np.int32), {}, ValueError, "batch_offsets: rank is 2"),
        ([0, 4], {"lengths": [4]}, ValueError, "lengths: expected null with batch_offsets"),
        ([0, 4], {"values": np.zeros((1, 4, 3))}, ValueError, "values: rank is 3"),
    ],
)
def test_refused_offsets(batch_offsets, changes, error, message):
    with pytest.raises(error, match=f"^{message}"):
        offsets_call(batch_offsets, **changes)


def test_an_output_that_overlaps_is_refused():
    room = np.zeros(64, np.float32)
    values, out = room[:24].reshape(2, 4, 3), room[23:35].reshape(2, 2, 3)
    with pytest.raises(ValueError, match="^values: overlaps out"):
        call(values=values, out=out)
    with pytest.raises(ValueError, match="^out: "):
        call(out=np.lib.stride_tricks.as_strided(room, (2, 2, 3), (0, 0, 4)))


def test_nothing_is_written_on_an_error():
    out = np.full((2, 2, 3), 123, np.float32)
    for changes in (
        {"times": np.array([[0.0, 1.0, 2.0, 3.0], [0.0, 2.5, 2.25, 3.0]])},
        {"lengths": [4, 5]},
        {"max_gap": -1},
        {"query_times": np.zeros((2, 3))},
    ):
        with pytest.raises(ValueError):
            call(out=out, **changes)
    assert (out == 123).all()


def test_unchecked_times_still_stay_inside():
    random = np.random.default_rng(5)
    times = random.permutation(np.array([*range(40), math.nan, math.inf, -math.inf]))
    values = random.normal(size=(43, 3))
    rbc.resample(values, times, random.normal(size=100) * 50, check_times=False)
    with pytest.raises(ValueError, match="times: "):
        rbc.resample(values, times, np.zeros(1))


def test_strides_that_are_no_multiple_of_the_element():
    records = np.zeros(4, np.dtype([("flag", "u1"), ("time", "f8")]))
    with pytest.raises(
        ValueError, match="times: stride 0 is 9 bytes, expected a multiple of the element's 8"
    ):
        call(times=records["time"])
    aligned = np.zeros(4, np.dtype([("stamp", "f8"), ("time", "f8")]))
    aligned["time"] = range(4)
    assert same_bits(call(times=aligned["time"]), call())


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"fill_value": None}, TypeError, "fill_value: is None, expected a number"),
        ({"fill_value": 10**400}, ValueError, "fill_value: is 1000.*, expected a number that"),
        ({"max_gap": "long"}, TypeError, "max_gap: is 'long', expected a number"),
        ({"tolerance": [1, 2]}, TypeError, r"tolerance: is \[1, 2\], expected a number"),
        ({"dtype": ["float32"]}, TypeError, r"dtype: is \['float32'\], expected a float, integer"),
    ],
)
def test_scalars_are_refused_by_name(options, error, message):
    with pytest.raises(error, match=f"^{message}"):
        rbc.resample(np.zeros((3, 1)), np.arange(3.0), np.arange(2.0), **options)
