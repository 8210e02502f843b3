"""Normalization beside the formulas of each project, written down here once more."""

import copy
import doctest
import importlib
import json
import pickle

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as hnp

import robocache as rbc
from robocache import Normalization

LEVELS = (0.01, 0.1, 0.5, 0.9, 0.99)


def statistics(values, ddof=0):
    """By NumPy, of rows that are all finite."""
    rows = np.full(values.shape[1], len(values))
    return rbc.StatisticsResult(
        rows,
        0 * rows,
        values.min(axis=0),
        values.max(axis=0),
        values.mean(axis=0),
        values.std(axis=0, ddof=ddof),
        np.quantile(values, LEVELS, axis=0),
        LEVELS,
        ddof,
    )


def example():
    """Wide, narrow, constant, constant 0, all but constant, and with outliers."""
    values = np.random.default_rng(1).standard_normal((500, 7)) * [3, 1e-2, 0, 0, 0, 1, 2e3]
    values += [1, -5, 7.25, 0, 30, 0, -4e3]
    values[:, 4] += np.linspace(0, 5e-5, 500)
    values[:4, 5] = [80, -80, 90, -90]
    return values


# ---- what the projects compute ------------------------------------------------------------------
# Of values x, statistics s, and a mask where the project has one. q is a quantile of s.


def q(s, level):
    return s.quantiles[LEVELS.index(level)]


def to_range(x, low, divisor):
    return 2 * ((x - low) / divisor) - 1


def lerobot(mode):
    def forward(x, s):
        if mode == "mean_std":
            return (x - s.mean) / (s.std + 1e-8)
        low, high = {
            "min_max": (s.min, s.max),
            "quantiles": (q(s, 0.01), q(s, 0.99)),
            "quantile10": (q(s, 0.1), q(s, 0.9)),
        }[mode]
        return to_range(x, low, np.where(high == low, 1e-8, high - low))

    return forward


def openpi(mode):
    def forward(x, s):
        if mode == "mean_std":
            return (x - s.mean) / (s.std + 1e-6)
        low, high = q(s, 0.01), q(s, 0.99)
        return to_range(x, low, high - low + 1e-6)

    return forward


def gr00t(mode, clip=True):
    def forward(x, s):
        y = np.zeros_like(x)
        if mode == "mean_std":
            some = s.std != 0
            y[:, some] = (x[:, some] - s.mean[some]) / s.std[some]
            y[:, ~some] = x[:, ~some]
        else:
            low, high = (s.min, s.max) if mode == "min_max" else (q(s, 0.01), q(s, 0.99))
            some = ~np.isclose(high, low)
            x, low, high = x[:, some], low[some], high[some]
            y[:, some] = to_range(x, low, high - low)
        return np.clip(y, -1, 1) if clip else y

    return forward


def rlds(mode, zeros, mask):
    """octo; openvla, which also writes zeros into channels that do not vary."""

    def forward(x, s):
        if mode == "mean_std":
            return np.where(mask, (x - s.mean) / (s.std + 1e-8), x)
        low, high = (s.min, s.max) if mode == "min_max" else (q(s, 0.01), q(s, 0.99))
        y = np.where(mask, np.clip(to_range(x, low, high - low + 1e-8), -1, 1), x)
        return np.where(s.min == s.max, 0.0, y) if zeros else y

    return forward


def affine(mode, reach, range_limit, std_limit, ddof=0):
    """diffusion_policy (x * scale + offset) and robomimic ((x - offset) / scale)."""

    def forward(x, s):
        if mode == "min_max":
            span = s.max - s.min
            y = (x - s.min) / np.where(span < range_limit, 1, span / (2 * reach)) - reach
            return np.where(span < range_limit, x - s.min, y)
        std = s.std * np.sqrt(len(x) / (len(x) - ddof))
        return (x - s.mean) / np.where(std < std_limit, 1, std)

    return forward


def robomimic_observations(x, s):
    return (x - s.mean) / (s.std + 1e-3)


ALL = np.ones(7, bool)
SOME = np.array([1, 0, 1, 0, 1, 1, 0], bool)
PROJECTS = [
    *(("lerobot", m, {}, lerobot(m)) for m in ("mean_std", "min_max", "quantiles", "quantile10")),
    *(("openpi", m, {}, openpi(m)) for m in ("mean_std", "quantiles")),
    *(("gr00t", m, {}, gr00t(m)) for m in ("min_max", "quantiles")),
    *(("gr00t", "mean_std", {"clip": c}, gr00t("mean_std", c)) for c in (True, False)),
    *(("octo", m, {}, rlds(m, False, ALL)) for m in ("mean_std", "quantiles")),
    *(("octo", m, {"mask": SOME}, rlds(m, False, SOME)) for m in ("mean_std", "quantiles")),
    ("openvla", "mean_std", {"mask": SOME}, rlds("mean_std", False, SOME)),
    *(("openvla", m, {}, rlds(m, True, ALL)) for m in ("min_max", "quantiles")),
    *(("openvla", m, {"mask": SOME}, rlds(m, True, SOME)) for m in ("min_max", "quantiles")),
    ("diffusion_policy", "min_max", {}, affine("min_max", 1, 1e-4, 0)),
    ("diffusion_policy", "min_max", {"epsilon": 1e-7}, affine("min_max", 1, 1e-7, 0)),
    ("diffusion_policy", "gaussian", {}, affine("gaussian", 1, 0, 1e-4, ddof=1)),
    ("robomimic", "mean_std", {}, robomimic_observations),
    ("robomimic", "min_max", {}, affine("min_max", 0.999999, 1e-4, 0)),
    ("robomimic", "gaussian", {}, affine("gaussian", 1, 0, 1e-6)),
]
IDS = [f"{style}-{mode}-{'-'.join(options)}" for style, mode, options, _ in PROJECTS]
# What a channel becomes that is 7.25 throughout; 0 where nothing is said.
CONSTANT = {
    ("lerobot", "min_max"): -1, ("lerobot", "quantiles"): -1, ("lerobot", "quantile10"): -1,
    ("openpi", "quantiles"): -1, ("octo", "quantiles"): -1, ("gr00t", "mean_std"): 7.25,
}  # fmt: skip


@pytest.mark.parametrize("style, mode, options, formula", PROJECTS, ids=IDS)
def test_parity(style, mode, options, formula):
    values = example()
    made = Normalization.of(statistics(values), mode, style=style, **options)
    expected = formula(values, statistics(values))
    # A divisor of 1e-8 makes much of the last place of x.
    atol = 1e-14 + 4 * np.spacing(np.abs(values).max(axis=0)) * np.abs(made.scale)
    assert (np.abs(made.apply(values) - expected) <= 4e-16 * np.abs(expected) + atol).all()


@pytest.mark.parametrize("style, mode, options, formula", PROJECTS, ids=IDS)
def test_a_constant_channel(style, mode, options, formula):
    constant = np.full((50, 7), 7.25)
    made = Normalization.of(statistics(constant), mode, style=style, **options)
    expected = CONSTANT.get((style, mode), 0)
    if options.get("clip"):
        expected = 1  # 7.25 itself, clipped
    assert (made.apply(constant)[:, ALL if "mask" not in options else SOME] == expected).all()
    assert np.array_equal(made.apply(constant), formula(constant, statistics(constant)))
    if not options.get("clip"):
        assert (made.invert(made.apply(constant)) == 7.25).all()


@pytest.mark.parametrize("style, mode, options, formula", PROJECTS, ids=IDS)
def test_values_outside_are_clipped_as_the_project_does(style, mode, options, formula):
    values = example()
    made = Normalization.of(statistics(values), mode, style=style, **options)
    far = values[:20] + np.float64([[1e5], [-1e5]]).repeat(10, axis=0)
    if (style, mode) != ("diffusion_policy", "gaussian"):  # takes the number of rows from x
        np.testing.assert_allclose(made.apply(far), formula(far, statistics(values)), rtol=1e-12)
    kept = options.get("mask", ALL) if made.low is not None else ~ALL
    inside = np.abs(made.apply(far)) <= 1
    assert inside[:, kept].all()
    assert style == "gr00t" or not inside[:, ~kept & (made.scale != 0)].any()


@pytest.mark.parametrize("style, mode, options, formula", PROJECTS, ids=IDS)
def test_the_way_back(style, mode, options, formula):
    values = example()
    made = Normalization.of(statistics(values), mode, style=style, **{**options, "clip": False})
    back = made.invert(made.apply(values))
    expected = np.where(made.scale == 0, made.shift, values)
    if (style, mode) == ("lerobot", "mean_std"):
        s = statistics(values)  # LeRobot comes back without its epsilon
        expected = (values - s.mean) / (s.std + 1e-8) * s.std + s.mean
        np.testing.assert_array_equal(made.invert(np.ones((1, 7))), [s.std + s.mean])
    assert (np.abs(back - expected) <= 12 * np.spacing(np.abs(values).max(axis=0))).all()


@pytest.mark.parametrize(
    "style, mode, epsilon, limit",
    [
        ("diffusion_policy", "min_max", None, 1e-4),
        ("diffusion_policy", "min_max", 1e-7, 1e-7),
        ("diffusion_policy", "gaussian", None, 1e-4),
        ("robomimic", "min_max", None, 1e-4),
        ("robomimic", "gaussian", None, 1e-6),
    ],
)
def test_the_limits_of_small_ranges(style, mode, epsilon, limit):
    """Below the limit a channel is shifted alone, at it and above it is scaled."""
    widths = np.array([np.nextafter(limit, 0), limit])
    zeros, rows = np.zeros(2), np.array([9, 9])
    result = rbc.StatisticsResult(
        rows, rows, zeros, widths, zeros, widths, np.empty((0, 2)), ddof=int("policy" in style)
    )
    scale = Normalization.of(result, mode, style=style, epsilon=epsilon).scale
    reach = {"gaussian": 1, "min_max": 2}[mode] * (0.999999 if style == "robomimic" else 1)
    assert scale[0] == 1
    assert scale[1] == (1 / limit if mode == "gaussian" else reach / limit)


def test_what_was_clipped_comes_back_as_the_limit():
    made = Normalization.of(statistics(example()), "min_max", style="gr00t")
    low, high = made.invert([[-9.0] * 7, [9.0] * 7])
    some = made.scale != 0
    np.testing.assert_allclose(low[some], example().min(axis=0)[some], rtol=1e-15)
    np.testing.assert_allclose(high[some], example().max(axis=0)[some], rtol=1e-14)


# ---- statistics that are otherwise --------------------------------------------------------------


def test_ddof_is_converted():
    values = example()
    for mode, style in (("mean_std", "openpi"), ("gaussian", "diffusion_policy")):
        one, other = (
            Normalization.of(statistics(values, ddof), mode, style=style) for ddof in (0, 1)
        )
        np.testing.assert_allclose(one.scale, other.scale, rtol=1e-15)
    unknown = rbc.StatisticsResult([-1], [-1], [0.0], [1.0], [0.5], [0.3], np.empty((0, 1)))
    assert Normalization.of(unknown, "mean_std", style="openpi").scale == 1 / (0.3 + 1e-6)
    with pytest.raises(ValueError, match=r"^result.count: is -1"):
        Normalization.of(unknown, "gaussian", style="diffusion_policy")


def test_a_row_of_statistics_for_each_step():
    steps = np.random.default_rng(2).standard_normal((200, 4, 3)) * np.arange(1, 5)[:, None]
    each = [statistics(steps[:, t]) for t in range(4)]
    names = ("count", "nonfinite", "min", "max", "mean", "std", "quantiles")
    rows = rbc.StatisticsResult(*(np.stack([getattr(s, n) for s in each]) for n in names), LEVELS)
    made = Normalization.of(rows, "quantiles", style="gr00t").apply(steps)
    for t in range(4):
        one = Normalization.of(rows.row(t), "quantiles", style="gr00t")
        assert np.array_equal(made[:, t], one.apply(steps[:, t]))


@pytest.mark.parametrize(
    "mode, options, message",
    [
        ("min_max", {"style": "octo"}, r"^mode: is 'min_max', and octo has mean_std, quantiles$"),
        ("zscore", {}, r"^mode: is 'zscore', and lerobot has mean_std, min_max, quantiles, q"),
        ("mean_std", {"style": "act"}, r"^style: is 'act', expected one of lerobot, openpi, "),
        ("mean_std", {"style": "gr00t"}, r"^clip: is None, expected True or False; .* actions"),
        ("mean_std", {"mask": ALL}, r"^mask: lerobot has none, octo and openvla have"),
        ("mean_std", {"style": "octo", "mask": ALL[:3]}, r"^mask: shape is \[3\], expected \[7\]"),
        ("min_max", {"style": "gr00t", "epsilon": 1e-3}, r"^epsilon: gr00t has none"),
        ("min_max", {"epsilon": 0}, r"^epsilon: is 0, expected a number above 0"),
    ],
)
def test_what_a_style_does_not_have(mode, options, message):
    with pytest.raises(ValueError, match=message):
        Normalization.of(statistics(example()), mode, **options)


def test_statistics_that_do_not_suffice():
    few = rbc.StatisticsResult([1], [0], [np.nan], [1.0], [1.0], [0.0], [[3.0]], [0.5])
    with pytest.raises(ValueError, match=r"^result.min: is nan at \[0\]"):
        Normalization.of(few, "min_max")
    with pytest.raises(ValueError, match=r"^level: is 0.01, expected one of those known: 0.5$"):
        Normalization.of(few, "quantiles")
    with pytest.raises(TypeError, match=r"^result: is a dict"):
        Normalization.of({"mean": 0}, "mean_std")
    with pytest.raises(TypeError, match=r"^mask: is of float64, expected bool"):
        Normalization.of(few, "mean_std", style="octo", mask=[1.0])
    tiny = rbc.StatisticsResult([2], [0], [0.0], [5e-324], [0.0], [5e-324], np.empty((0, 1)))
    with pytest.raises(ValueError, match=r"too small to divide by"):
        Normalization.of(tiny, "min_max")


# ---- the formula --------------------------------------------------------------------------------

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
    """How many ulp of the largest number in it a round trip is off by."""
    dtype = x.dtype.type
    shift, scale, bias = (p.astype(dtype) for p in (made.shift, made.scale, made.bias))
    largest = np.max(np.broadcast_arrays(np.abs(x), np.abs(shift), np.abs(bias / scale)), axis=0)
    back = made.invert(made.apply(x))
    assert back.dtype == dtype
    return (np.abs(back.astype(np.longdouble) - x) / np.spacing(largest)).max()


@settings(max_examples=300)
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


@settings(max_examples=300)
@given(
    x=FLOATS, shift=FLOATS, scale=SCALES, bias=FLOATS,
    dtype=st.sampled_from([np.float32, np.float64]),
)  # fmt: skip
def test_the_round_trip_of_anything(x, shift, scale, bias, dtype):
    """Six roundings of numbers up to thrice the largest."""
    assert off_by(Normalization(shift, scale, bias), np.array([x], dtype)) <= 12


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


def test_values_are_left_alone_and_may_have_any_strides():
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


def devices():
    torch = pytest.importorskip("torch")
    return ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


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
        (([0, 1], [1, 2, 3]), ValueError, r"^shift, scale: shapes do not go together"),
        ((0, 1, 0, [0, 2], 1), ValueError, r"^low: is above high in channel 1"),
        ((0, 1, 0, np.nan), ValueError, r"^low: is nan"),
        ((0, "1"), TypeError, r"^scale: is '1', expected a number"),
        ((None, 1), TypeError, r"^shift: is None"),
        ((True, 1), TypeError, r"^shift: is True"),
    ],
)
def test_parameters_that_are_none(arguments, error, message):
    with pytest.raises(error, match=message):
        Normalization(*arguments)


def test_a_scale_beyond_float32():
    made = Normalization(0.0, [1.0, 1e200])
    assert made.apply([[1.0, 1.0]]).tolist() == [[1.0, 1e200]]
    with pytest.raises(ValueError, match=r"^scale: is beyond float32 in channel 1"):
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
        (Normalization(0, 1), r"have shape \[\], and resample and fuse take \[D\]"),
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
    with pytest.raises(ValueError, match=r"^offset: is no parameter, expected shift, scale"):
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


# ---- StatisticsResult ---------------------------------------------------------------------------


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
    with pytest.raises(ValueError, match=r"^index: these statistics are of all rows together"):
        rbc.StatisticsResult(*good, np.zeros((0, 2))).row(0)


@pytest.mark.parametrize("name", ["_statistics_result", "_normalization"])
def test_doctests(name):
    module = importlib.import_module(f"robocache.{name}")
    failed, tried = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried > 0 and failed == 0
