"""Normalization: its arithmetic, on values of all kinds, in resample and fuse, and as an object."""

import copy
import json
import pickle

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp

import robocache as rbc
from normalization_reference import IDS, PROJECTS, devices, example, statistics
from random_share import random_share
from robocache import Normalization

FLOATS = st.floats(-1e6, 1e6).filter(lambda x: x == 0 or abs(x) > 1e-6)
SCALES = st.floats(1e-3, 1e3).flatmap(lambda x: st.sampled_from([x, -x]))


@given(x=FLOATS, shift=FLOATS, scale=SCALES, bias=FLOATS, low=FLOATS, f32=st.booleans())
def test_each_step_is_rounded(x, shift, scale, bias, low, f32):
    """One operation of NumPy's scalars after the other, in the dtype of the values."""
    dtype = np.float32 if f32 else np.float64
    made = Normalization(shift, scale, bias, low, low + 5)
    x, shift, scale, bias, low, high = map(dtype, (x, shift, scale, bias, low, low + 5))
    expected = dtype(dtype(dtype(x - shift) * scale) + bias)
    expected = min(max(expected, low), high)
    result = made.apply(np.array([x]))
    assert result.dtype == dtype and result[0] == expected
    torch = pytest.importorskip("torch")
    assert made.apply(torch.from_numpy(np.array([x]))).numpy()[0] == expected
    y = dtype(min(max(x, low), high))
    back = made.invert(np.array([x]))
    assert back[0] == dtype(dtype(dtype(y - bias) / scale) + shift)
    assert made.invert(torch.from_numpy(np.array([x]))).numpy()[0] == back[0]


def off_by(made, x):
    """Return the error of a round trip, in ulp of its largest number."""
    dtype = x.dtype.type
    shift, scale, bias = (p.astype(dtype) for p in (made.shift, made.scale, made.bias))
    largest = np.max(np.broadcast_arrays(np.abs(x), np.abs(shift), np.abs(bias / scale)), axis=0)
    back = made.invert(made.apply(x))
    assert back.dtype == dtype
    return (np.abs(back.astype(np.longdouble) - x) / np.spacing(largest)).max()


@settings(max_examples=random_share(300))
@given(
    low=FLOATS,
    span=st.floats(1e-3, 1e6),
    parts=hnp.arrays(np.float64, 64, elements=st.floats(0, 1)),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_the_round_trip_of_a_range(low, span, parts, dtype):
    low = dtype(low)
    high = dtype(low + dtype(span))
    if high > low:
        made = Normalization(low, 2 / (np.float64(high) - low), -1)
        inside = np.clip((low + np.float64(high - low) * parts).astype(dtype), low, high)
        assert off_by(made, inside) <= 2


@settings(max_examples=random_share(300))
@given(
    x=FLOATS, shift=FLOATS, scale=SCALES, bias=FLOATS,
    dtype=st.sampled_from([np.float32, np.float64]),
)  # fmt: skip
def test_the_round_trip_of_anything(x, shift, scale, bias, dtype):
    """Six roundings of numbers up to thrice the largest."""
    assert off_by(Normalization(shift, scale, bias), np.array([x], dtype)) <= 12


@given(x=FLOATS, shift=FLOATS, scale=SCALES, bias=FLOATS, low=FLOATS, f32=st.booleans())
def test_each_step_of_a_division_is_rounded(x, shift, scale, bias, low, f32):
    dtype = np.float32 if f32 else np.float64
    divided = Normalization(shift, scale, bias, low, low + 5, divides=True)
    x, shift, scale, bias, low, high = map(dtype, (x, shift, scale, bias, low, low + 5))
    expected = min(max(dtype(dtype(dtype(x - shift) / scale) + bias), low), high)
    assert divided.apply(np.array([x]))[0] == expected
    y = dtype(min(max(x, low), high))
    back = divided.invert(np.array([x]))
    assert back[0] == dtype(dtype(dtype(y - bias) * scale) + shift)
    torch = pytest.importorskip("torch")
    assert divided.apply(torch.from_numpy(np.array([x]))).numpy()[0] == expected
    assert divided.invert(torch.from_numpy(np.array([x]))).numpy()[0] == back[0]


def test_a_division_keeps_minus_0_and_constant_channels():
    divided = Normalization([0.0, 3.0], [2.0, np.inf], [-0.0, 0.5], divides=True)
    y = divided.apply([[-0.0, 9.0]])
    assert y.tobytes() == np.array([[-0.0, 0.5]]).tobytes()
    assert divided.invert(y).tolist() == [[0, 3]]
    plain = Normalization([1.0, 2.0], [2.0, 4.0], divides=True)
    assert plain.std == [2, 4] and "divides=True" in repr(plain)
    with pytest.raises(ValueError, match=r"^scale: exceeds the range of float32 in channel 1"):
        Normalization(0.0, [1.0, 1e-60], divides=True).apply(np.ones((1, 2), np.float32))


def test_a_scale_of_0():
    made = Normalization([3.0, 3.0], [0.0, 2.0], [0.5, 0.5])
    for dtype in (np.float32, np.float64):
        y = made.apply(np.array([[9, 9]], dtype))
        assert y.tolist() == [[0.5, 12.5]]
        assert made.invert(y).tolist() == [[3, 9]]


def test_nan_stays_and_infinities_are_clipped():
    made = Normalization(0, 1, 0, -1, 1)
    given = np.array([np.nan, np.inf, -np.inf])
    assert np.array_equal(made.apply(given), [np.nan, 1, -1], equal_nan=True)
    torch = pytest.importorskip("torch")
    result = made.apply(torch.from_numpy(given))
    assert np.array_equal(result.numpy(), [np.nan, 1, -1], equal_nan=True)


# ---- values of all kinds ------------------------------------------------------------------------


def test_dtypes_of_numpy():
    made = Normalization([1.0, 2.0], 0.5, 0.25)
    for dtype in (np.float16, np.float32, np.float64, ">f4"):
        assert made.apply(np.ones((3, 2), dtype)).dtype == np.dtype(dtype)
    for dtype in (np.int8, np.uint16, np.int64, bool):
        result = made.apply(np.ones((3, 2), dtype))
        assert result.dtype == np.float64 and result[0].tolist() == [0.25, -0.25]
    assert made.apply([[1.0, 2.0]]).tolist() == [[0.25, 0.25]]
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    assert made.apply(np.ones((3, 2), bfloat16)).dtype == bfloat16
    with pytest.raises(TypeError, match=r"^values: dtype is complex128"):
        made.apply(np.ones(2, complex))


def test_16_bits_are_computed_in_float32():
    half = np.linspace(999, 1001, 50).astype(np.float16)
    shift, scale = 1000.00003, 100.0
    expected = (half.astype(np.float32) - np.float32(shift)) * np.float32(scale)
    in_float64 = (half.astype(np.float64) - shift) * scale
    assert (expected.astype(np.float16) != in_float64.astype(np.float16)).any()
    made = Normalization(shift, scale)
    assert np.array_equal(made.apply(half), expected.astype(np.float16))
    torch = pytest.importorskip("torch")
    assert np.array_equal(made.apply(torch.from_numpy(half)).numpy(), expected.astype(np.float16))


def test_values_are_unchanged_and_may_have_any_strides():
    values = np.arange(12.0).reshape(2, 6).T
    before = values.copy()
    made = Normalization([0.0, 1.0], [1.0, 2.0])
    assert np.array_equal(made.apply(values), np.ascontiguousarray(before) * [1, 2] - [0, 2])
    assert np.array_equal(made.invert(values), before / [1, 2] + [0, 1])
    assert np.array_equal(values, before)


def test_dtypes_of_torch():
    torch = pytest.importorskip("torch")
    made = Normalization([1.0, 2.0], 0.5, 0.25, -1, 1)
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        result = made.apply(torch.ones(3, 2, dtype=dtype))
        assert result.dtype == dtype and result[0].tolist() == [0.25, -0.25]
    for dtype in (torch.int32, torch.uint8, torch.bool):
        assert made.apply(torch.ones(3, 2, dtype=dtype)).dtype == torch.float32
    with pytest.raises(TypeError, match=r"^values: dtype is torch.complex64"):
        made.apply(torch.ones(2, dtype=torch.complex64))


def test_torch_has_the_bits_of_numpy_on_every_device():
    torch = pytest.importorskip("torch")
    values = example()
    for dtype in (np.float32, np.float64):
        for style, mode, options, _ in PROJECTS:
            made = Normalization.of(statistics(values), mode, style=style, **options)
            x = values.astype(dtype)
            y, back = made.apply(x), made.invert(x)
            for device in devices():
                tensor = torch.from_numpy(x).to(device)
                assert made.apply(tensor).device == tensor.device
                assert np.array_equal(made.apply(tensor).cpu().numpy(), y)
                assert np.array_equal(made.invert(tensor).cpu().numpy(), back)


def test_gradients_go_through_even_after_inference():
    torch = pytest.importorskip("torch")
    made = Normalization([1.0, 2.0], [0.5, 4.0], 0.25, -1, 1)
    with torch.inference_mode():
        made.apply(torch.ones(1, 2))
    x = torch.tensor([[1.5, 9.0]], requires_grad=True)
    made.apply(x).sum().backward()
    assert x.grad.tolist() == [[0.5, 0.0]]  # the second is clipped


def test_it_compiles_in_one_graph_after_a_call():
    torch = pytest.importorskip("torch")
    made = Normalization([1.0, 2.0], [0.5, 4.0], 0.25, -1, 1)
    x = torch.randn(5, 2)
    for call in (made.apply, made.invert):
        expected = call(x)
        compiled = torch.compile(call, fullgraph=True, backend="eager")
        assert torch.equal(compiled(x), expected)


@pytest.mark.parametrize(
    "values, error, message",
    [
        ([[1.0, 2.0, 3.0]], ValueError, r"^values: shape is \[1, 3\], expected it to end in \[2\]"),
        (1.0, TypeError, r"^values: is a float, expected an array of NumPy or torch"),
        (["a", "b"], ValueError, r"^values: could not convert"),
        ([[1.0], [1.0, 2.0]], ValueError, r"^values: "),
    ],
)
def test_values_that_do_not_fit(values, error, message):
    with pytest.raises(error, match=message):
        Normalization([0.0, 1.0], 1.0).apply(values)


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ((np.nan, 1), ValueError, r"^shift: is nan in all channels, expected a number"),
        (([0, 1], [1, np.inf]), ValueError, r"^scale: is inf in channel 1"),
        (([0, 1], [1, 2, 3]), ValueError, r"^shift, scale: shapes do not broadcast"),
        ((0, 1, 0, [0, 2], 1), ValueError, r"^low: is above high in channel 1"),
        ((0, 1, 0, np.nan), ValueError, r"^low: is nan"),
        ((0, "1"), TypeError, r"^scale: is '1', expected a number"),
        ((None, 1), TypeError, r"^shift: is None"),
        ((0, [1, 0], 0, None, None, True), ValueError, r"^scale: is 0.0 in channel 1, .*divide by"),
        ((0, 1, 0, None, None, 1), TypeError, r"^divides: is 1, expected True or False"),
        ((True, 1), TypeError, r"^shift: is True"),
    ],
)
def test_parameters_that_are_none(arguments, error, message):
    options = {"divides": arguments[5]} if len(arguments) == 6 else {}
    with pytest.raises(error, match=message):
        Normalization(*arguments[:5], **options)


def test_a_scale_beyond_float32():
    made = Normalization(0.0, [1.0, 1e200])
    assert made.apply([[1.0, 1.0]]).tolist() == [[1.0, 1e200]]
    with pytest.raises(ValueError, match=r"^scale: exceeds the range of float32 in channel 1"):
        made.apply(np.ones((1, 2), np.float32))


# ---- in resample and fuse -----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_resample_and_fuse_take_it(dtype):
    values, times = example().astype(dtype), np.arange(500.0)
    made = Normalization.of(statistics(values.astype(np.float64)), "mean_std", style="openpi")
    options = {"mean": made.mean, "std": made.std}
    expected = made.apply(values)
    close = {"rtol": 4 * np.finfo(dtype).eps, "atol": 0}
    np.testing.assert_allclose(rbc.resample(values, times, times, **options), expected, **close)
    stream = rbc.Stream(values, times, **options)
    np.testing.assert_allclose(rbc.fuse([stream], times), expected, **close)


def test_resample_takes_a_scale_of_0():
    made = Normalization([1.0, 2.0], [0.0, 0.5])
    out = rbc.resample(np.ones((2, 2)), [0.0, 1.0], [0.5], mean=made.mean, std=made.std)
    assert out.tolist() == [[0.0, -0.5]]


@pytest.mark.parametrize("name", ["mean", "std"])
def test_what_resample_cannot_take(name):
    for made, message in (
        (Normalization([0], [1], -1), "has a bias"),
        (Normalization([0], [1], 0, -1, 1), "clips"),
        (Normalization(0, 1), r"have shape \[\], but resample and fuse take \[D\]"),
    ):
        with pytest.raises(ValueError, match=f"^{name}: .*{message}"):
            getattr(made, name)


# ---- as an object -------------------------------------------------------------------------------


@pytest.mark.parametrize("style, mode, options, formula", PROJECTS, ids=IDS)
def test_dicts_and_pickles(style, mode, options, formula):
    made = Normalization.of(statistics(example()), mode, style=style, **options)
    for other in (
        Normalization.from_dict(json.loads(json.dumps(made.to_dict()))),
        pickle.loads(pickle.dumps(made)),
        copy.deepcopy(made),
    ):
        assert other == made and other is not made
        assert np.array_equal(other.apply(example()), made.apply(example()))
    assert made != Normalization(0, 1) and made != 3


def test_dicts_that_are_none():
    with pytest.raises(ValueError, match=r"^scale: is missing"):
        Normalization.from_dict({"shift": 0})
    with pytest.raises(ValueError, match=r"^offset: is not a parameter, expected shift, scale"):
        Normalization.from_dict({"shift": 0, "scale": 1, "offset": 2})


def test_parameters_cannot_be_changed():
    given = np.zeros(2)
    made = Normalization(given, 1.0)
    given[0] = 5
    assert made.shift.tolist() == [0, 0]
    with pytest.raises(ValueError, match="read-only"):
        made.shift[0] = 1
    with pytest.raises(AttributeError):
        made.shift = 1
