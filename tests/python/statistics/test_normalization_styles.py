"""Normalization.of: comparison with the formulas of each project."""

import numpy as np
import pytest

import robocache as rbc
from normalization_reference import ALL, IDS, LEVELS, PROJECTS, SOME, example, factors, statistics
from robocache import Normalization

# The result for a channel that is always 7.25; 0 for styles that are not listed.
CONSTANT = {
    ("lerobot", "min_max"): -1, ("lerobot", "quantiles"): -1, ("lerobot", "quantile10"): -1,
    ("openpi", "quantiles"): -1, ("octo", "quantiles"): -1, ("gr00t", "mean_std"): 7.25,
}  # fmt: skip


@pytest.mark.parametrize("style, mode, options, formula", PROJECTS, ids=IDS)
def test_parity(style, mode, options, formula):
    values = example()
    made = Normalization.of(statistics(values), mode, style=style, **options)
    expected = formula(values, statistics(values))
    if made.divides:
        assert np.array_equal(made.apply(values), expected)
        return
    # A divisor of 1e-8 makes much of the last place of x.
    atol = 1e-14 + 4 * np.spacing(np.abs(values).max(axis=0)) * np.abs(factors(made))
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
    assert style == "gr00t" or not inside[:, ~kept & (factors(made) != 0)].any()


@pytest.mark.parametrize("style, mode, options, formula", PROJECTS, ids=IDS)
def test_the_way_back(style, mode, options, formula):
    values = example()
    made = Normalization.of(statistics(values), mode, style=style, **{**options, "clip": False})
    back = made.invert(made.apply(values))
    expected = np.where(factors(made) == 0, made.shift, values)
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
    """A channel is only shifted below the limit, and scaled at or above it."""
    widths = np.array([np.nextafter(limit, 0), limit])
    zeros, rows = np.zeros(2), np.array([9, 9])
    result = rbc.StatisticsResult(
        rows, rows, zeros, widths, zeros, widths, np.empty((0, 2)), ddof=int("policy" in style)
    )
    scale = factors(Normalization.of(result, mode, style=style, epsilon=epsilon))
    reach = {"gaussian": 1, "min_max": 2}[mode] * (0.999999 if style == "robomimic" else 1)
    assert scale[0] == 1
    np.testing.assert_allclose(scale[1], (1 if mode == "gaussian" else reach) / limit, rtol=4e-16)


def test_what_was_clipped_comes_back_as_the_limit():
    made = Normalization.of(statistics(example()), "min_max", style="gr00t")
    low, high = made.invert([[-9.0] * 7, [9.0] * 7])
    some = factors(made) != 0
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
    assert Normalization.of(unknown, "mean_std", style="openpi").scale == 0.3 + 1e-6
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
        (
            "min_max",
            {"style": "octo"},
            r"^mode: is 'min_max', expected one of mean_std, quantiles for octo$",
        ),
        ("zscore", {}, r"^mode: is 'zscore', expected one of mean_std, min_max, quantiles,"),
        ("mean_std", {"style": "act"}, r"^style: is 'act', expected one of lerobot, openpi, "),
        ("mean_std", {"style": "gr00t"}, r"^clip: is None, expected True or False; .* actions"),
        ("mean_std", {"mask": ALL}, r"^mask: not supported by lerobot, only by octo and openvla"),
        ("mean_std", {"style": "octo", "mask": ALL[:3]}, r"^mask: shape is \[3\], expected \[7\]"),
        ("min_max", {"style": "gr00t", "epsilon": 1e-3}, r"^epsilon: not supported by gr00t"),
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
    with pytest.raises(ValueError, match=r"^level: is 0.01, expected one of 0.5$"):
        Normalization.of(few, "quantiles")
    with pytest.raises(TypeError, match=r"^result: is a dict"):
        Normalization.of({"mean": 0}, "mean_std")
    with pytest.raises(TypeError, match=r"^mask: dtype is float64, expected bool"):
        Normalization.of(few, "mean_std", style="octo", mask=[1.0])
    tiny = rbc.StatisticsResult([2], [0], [0.0], [5e-324], [0.0], [5e-324], np.empty((0, 1)))
    with pytest.raises(ValueError, match=r"too small for a division"):
        Normalization.of(tiny, "min_max")
