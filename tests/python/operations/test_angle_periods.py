"""Angles in degrees, turns and radians, signed or from 0 on, against numpy.unwrap."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
import robocache as rbc

NAMES = list(reference.TURNS)
DTYPES = ["float16", "float32", "float64"]


def inside(out, name):
    begin, length = reference.TURNS[name]
    finite = out[np.isfinite(out)].astype(np.float64)
    return bool((finite >= begin).all() and (finite < begin + length).all())


def course(rng, samples, channels, name, dtype):
    """Random angles with steps of less than half a turn, in the range, and few at its ends."""
    begin, length = reference.TURNS[name]
    steps = rng.uniform(-0.49, 0.49, (samples, channels)) * length
    values = (np.cumsum(steps, axis=0) - begin) % length + begin
    return np.clip(values, begin, begin + length * (1 - 1e-3)).astype(dtype)


def unwrapped(values, times, queries, name):
    length = reference.TURNS[name][1]
    lines = np.unwrap(values.astype(np.float64), period=length, axis=0)
    return np.stack([np.interp(queries, times, line) for line in lines.T], axis=1)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("channels", [1, 7, 40])
def test_as_unwrap_has_them(name, channels):
    begin, length = reference.TURNS[name]
    rng = np.random.default_rng(channels)
    times = np.cumsum(rng.uniform(0.5, 1.5, 200))
    queries = rng.uniform(times[0], times[-1], 500)
    for dtype, limit in (("float64", 1e-14), ("float32", 1e-6), ("float16", 4e-3)):
        values = course(rng, 200, channels, name, dtype)
        out = rbc.resample(values, times, queries, method=name)
        assert inside(out, name)
        right = (unwrapped(values, times, queries, name) - begin) % length + begin
        apart = np.abs(out.astype(np.float64) - right)
        assert np.minimum(apart, length - apart).max() <= limit * length  # modulo a turn
        # Also as plain values, except where rounding crosses an end of the range.
        far = apart > limit * length
        assert (np.minimum(right - begin, begin + length - right)[far] <= limit * length).all()
        assert far.mean() < 0.01


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60)
@given(st.data())
def test_no_result_leaves_the_range(name, data):
    numbers = st.floats(-1e300, 1e300) | st.floats(-1000, 1000) | st.integers(-720, 720)
    values = np.array(data.draw(st.lists(numbers, min_size=2, max_size=6)), np.float64)[:, None]
    times = np.arange(float(len(values)))
    queries = data.draw(st.lists(st.floats(0, len(values) - 1), min_size=1, max_size=6))
    queries = np.array([q for q in queries if q not in times] or [0.5])
    for dtype in DTYPES:
        out = rbc.resample(values, times, queries, method=name, dtype=dtype)
        weights = queries - np.floor(queries)
        assert np.isfinite(out[weights > 1e-12]).all()
        assert inside(out[weights > 1e-12], name)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_rounding_does_not_reach_the_end(name, dtype):
    begin, length = reference.TURNS[name]
    end = begin + length
    below = np.nextafter(np.float64(end), -math.inf)
    values = np.array([[below, end - length / 1e6], [below, end - length / 1e6]])
    out = rbc.resample(values, [0.0, 1.0], [0.0, 0.25, 1.0, 2.0], method=name, dtype=dtype)
    assert inside(out, name)
    assert (out > end - length / 64).all()
    # Just below 0 the number a turn on rounds to the end too.
    out = rbc.resample(np.array([[-1e-30]] * 2), [0.0, 1.0], [0.5], method=name, dtype=dtype)
    assert inside(out, name)


def test_half_a_turn_goes_in_its_own_direction():
    values = np.array([[-180.0, 180.0, 0, 360, -90, 90], [0, 0, 180, 180, 90, -90]])
    out = rbc.resample(values, [0.0, 1.0], [0.25], method="angle_deg_positive")
    assert out.tolist() == [[225, 135, 45, 315, 315, 45]]


def test_samples_stay_as_they_are():
    values = np.array([[400.0], [180.0], [-180.0], [1e9]])
    for name in NAMES:
        times = np.arange(4.0)
        assert (rbc.resample(values, times, times, method=name) == values).all()
        assert rbc.resample(values, times, [-5.0, 9.0], method=name).tolist() == [[400], [1e9]]


def test_far_angles_are_exact_and_those_that_are_none_are_nan():
    values = np.array([[1e30, 2.0**60, 1.0, math.inf], [1e30, 2.0**60, math.nan, 1.0]])
    out = rbc.resample(values, [0.0, 1.0], [0.5], method="angle_deg_positive")
    right = [1e30 % 360, 2.0**60 % 360, math.nan, math.nan]
    np.testing.assert_array_equal(out, [right])


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_one_group_on_every_path(name):
    rng = np.random.default_rng(3)
    values = course(rng, 50, 5, name, "float32")
    times = np.arange(50.0)
    queries = np.arange(0.25, 48)
    out = rbc.resample(values, times, queries, method=name)
    assert (rbc.resample(values, times, queries, method=[(0, 5, name)]) == out).all()
    halves = [(3, 2, name), (0, 3, name)]
    assert (rbc.resample(values, times, queries, method=halves) == out).all()
    assert (rbc.fuse([rbc.Stream(values, times, method=name)] * 2, queries)[:, 5:] == out).all()
    there = np.arange(50) % 3 != 1
    options = {"method": name, "sample_mask": there}
    masked = rbc.resample(values, times, queries, **options)
    assert (masked == rbc.resample(values[there], times[there], queries, method=name)).all()

    stream = rbc.WindowStream(
        values, [-0.75, 0.0, 0.5], episode_offsets=[0, 50], times=times, method=name
    )
    anchors = np.arange(1, 48)
    (cut,) = rbc.windows([stream], np.zeros(len(anchors), np.int64), anchors)[:1]
    whole = rbc.resample(values, times, (anchors[:, None] + [-0.75, 0, 0.5]).ravel(), method=name)
    cut = cut[0] if isinstance(cut, (list, tuple)) else cut
    assert (np.asarray(cut).reshape(-1, 5) == whole).all()

    live = rbc.Live([rbc.LiveStream(5, capacity=60, method=name)])
    live.push(0, times, values)
    assert (
        np.ravel(live.fuse(20.25).values) == rbc.resample(values, times, [20.25], method=name)[0]
    ).all()
    empty = rbc.resample(np.zeros((4, 0)), np.arange(4.0), [0.5], method=name)
    assert empty.shape == (1, 0)


def test_angles_of_different_periods_side_by_side():
    values = np.array([[350.0, 170.0, 0.9, 0.45], [20.0, -170.0, 0.2, -0.45]])
    names = ["angle_deg_positive", "angle_deg", "angle_turn_positive", "angle_turn"]
    groups = [(i, 1, name) for i, name in enumerate(names)]
    out = rbc.resample(values, [0.0, 1.0], [0.5], method=groups)
    np.testing.assert_allclose(out, [[5, -180, 0.05, -0.5]], atol=1e-15)
    fused = rbc.fuse([rbc.Stream(values, [0.0, 1.0], method=groups)], [0.5])
    assert (fused == out).all()


@pytest.mark.parametrize("name", NAMES)
def test_no_gradient_and_the_same_numbers_in_torch(name):
    torch = pytest.importorskip("torch")
    values = torch.tensor([[0.1], [0.3]], dtype=torch.float64)
    times = torch.arange(2.0)
    out = rbc.torch.resample(values, times, [0.5], method=name)
    assert out.tolist() == rbc.resample(values.numpy(), times.numpy(), [0.5], method=name).tolist()
    with pytest.raises(
        ValueError, match=f"^method: is '{name}', which is not linear in the values"
    ):
        rbc.torch.resample(values.requires_grad_(), times, [0.5], method=name)


@pytest.mark.parametrize("name", ["angle_degrees", "angle_pos", "degrees", "linear_deg", 8, None])
def test_other_names_are_refused(name):
    for method in (name, [(0, 1, name)]):
        with pytest.raises((ValueError, TypeError), match="expected one of.*'angle_turn_positive'"):
            rbc.resample(np.zeros((2, 1)), [0.0, 1.0], [0.5], method=method)
