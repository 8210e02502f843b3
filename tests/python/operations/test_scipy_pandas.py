"""Against SciPy's interpolation and pandas.merge_asof, on made-up and on real streams."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robocache as rbc
from random_share import random_share

interpolate = pytest.importorskip("scipy.interpolate")
pandas = pytest.importorskip("pandas")

import scipy_fusion  # noqa: E402


def jittery(rate, seconds, seed, channels=6):
    """A stream with jitter and dropouts: strictly ascending times, and values."""
    random = np.random.default_rng(seed)
    times = np.cumsum(random.gamma(8, 1 / (8 * rate), int(rate * seconds)))
    times = times[random.random(len(times)) > 0.05]
    return times, np.cumsum(random.normal(size=(len(times), channels)), axis=0)


def clock(times, rate):
    return np.arange(times[0] - 0.5, times[-1] + 0.5, 1 / rate)


def assert_as_interp1d(times, values, queries):
    """`times` strictly ascending, in float64."""
    for method in ("linear", "nearest", "previous", "next"):
        peer = interpolate.interp1d(
            times, values, method, axis=0, bounds_error=False, fill_value=-1.0
        )
        out, mask = rbc.resample(
            values,
            times,
            queries,
            method=method,
            outside="fill",
            fill_value=-1.0,
            return_valid=True,
        )
        inside = (queries >= times[0]) & (queries <= times[-1])
        np.testing.assert_array_equal(mask, inside)
        if method == "linear":
            scale = np.abs(values).max(initial=1.0)
            np.testing.assert_allclose(out, peer(queries), rtol=1e-11, atol=1e-11 * scale)
        else:
            safe = unambiguous(times, queries) if method == "nearest" else slice(None)
            np.testing.assert_array_equal(out[safe], peer(queries)[safe])
    peer = interpolate.interp1d(times, values, axis=0, bounds_error=False, fill_value="extrapolate")
    out = rbc.resample(values, times, queries, outside="extrapolate")
    scale = np.abs(peer(queries)).max(initial=1.0)
    np.testing.assert_allclose(out, peer(queries), rtol=1e-9, atol=1e-9 * scale)


def unambiguous(times, queries):
    """Queries that are not so near to a midpoint that rounding decides."""
    middles = (times[1:] + times[:-1]) / 2
    at = np.clip(np.searchsorted(middles, queries), 1, len(middles) - 1)
    distance = np.minimum(np.abs(middles[at] - queries), np.abs(middles[at - 1] - queries))
    return distance > 1e-9


def assert_as_merge_asof(times, values, queries, tolerance):
    """`times` int64 and ascending, perhaps with duplicates. What is looked up is row numbers."""
    rows = np.arange(len(times))
    left = pandas.DataFrame({"time": queries})
    right = pandas.DataFrame({"time": times, "row": rows})
    found = {}
    for direction, method in (
        ("backward", "previous"),
        ("forward", "next"),
        ("nearest", "nearest"),
    ):
        peer = pandas.merge_asof(left, right, on="time", direction=direction, tolerance=tolerance)
        found[method] = row = peer["row"].fillna(-1).to_numpy().astype(np.int64)
        if method == "next":
            # At a sample's own time pandas, looking forward, finds the first with it, and
            # RoboCache the last, as in every other method.
            met = np.isin(queries, times)
            row[met] = found["previous"][met]
        out, mask = rbc.resample(
            rows[:, None],
            times,
            queries,
            method=method,
            tolerance=tolerance,
            fill_value=-1,
            return_valid=True,
        )
        np.testing.assert_array_equal(out[:, 0], row)
        np.testing.assert_array_equal(mask, row >= 0)
        picked = rbc.resample(
            values, times, queries, method=method, tolerance=tolerance, fill_value=np.nan
        )
        np.testing.assert_array_equal(picked[mask], values[row[mask]])
        assert np.isnan(picked[~mask]).all()


@pytest.mark.parametrize(("rate", "target"), [(100, 30), (30, 200), (200, 200)])
def test_made_up_streams(rate, target):
    times, values = jittery(rate, 20, seed=rate)
    assert_as_interp1d(times, values, clock(times, target))
    assert_as_interp1d(
        times,
        values,
        np.random.default_rng(1).permutation(np.concatenate([clock(times, target), times])),
    )


@pytest.mark.parametrize("tolerance", [0, 2_000_000, 20_000_000, 10**15])
def test_made_up_streams_in_nanoseconds(tolerance):
    times, values = jittery(100, 20, seed=7)
    ticks = 1_700_000_000_000_000_000 + (times * 1e9).astype(np.int64)
    ticks = np.sort(np.concatenate([ticks, ticks[::17]]))  # duplicates
    values = np.resize(values, (len(ticks), 6))
    queries = np.sort(
        np.concatenate([np.arange(ticks[0] - 10**8, ticks[-1] + 10**8, 33_333_333), ticks[::5]])
    )
    assert_as_merge_asof(ticks, values, queries, tolerance)


METHODS = ["linear", "cubic", "pchip", "slerp", "angle", "nearest", "previous", "next"]


def random_stream(seed, samples, spread, integers, dtype):
    """12 channels; any 4 of them are a valid quaternion of any length and sign.

    The longest interval is up to 10**spread times the shortest. Some values repeat, so that there
    are flat stretches.
    """
    random = np.random.default_rng(seed)
    steps = np.maximum(1e-9, 10 ** random.uniform(-spread, 0, samples))
    times = 50.0 + np.cumsum(steps)
    if integers:
        times = 1_700_000_000_000_000_000 + np.cumsum((steps * 1e9).astype(np.int64))
    values = random.normal(0, 3, (samples, 12)).astype(dtype)
    flat = random.random(samples) < 0.2
    values[1:][flat[1:]] = values[:-1][flat[1:]]
    reach = (times[-1] - times[0]) * 0.1
    queries = random.uniform(-reach, times[-1] - times[0] + reach, 60).astype(times.dtype)
    queries = np.concatenate([times[0] + queries, times[:: max(1, samples // 5)]])
    return values, times, np.sort(queries)


@settings(max_examples=random_share(300))
@given(
    methods=st.lists(st.sampled_from(METHODS), min_size=3, max_size=3),
    seed=st.integers(0, 2**32 - 1),
    samples=st.integers(2, 60),
    spread=st.sampled_from([0, 0.3, 2]),
    integers=st.booleans(),
    dtype=st.sampled_from([np.float64, np.float32]),
    outside=st.sampled_from(["hold", "fill", "extrapolate"]),
    gap=st.sampled_from([None, 0.0, 0.5]),
    tolerance=st.sampled_from([None, 0.3]),
)
def test_every_method(methods, seed, samples, spread, integers, dtype, outside, gap, tolerance):
    values, times, queries = random_stream(seed, samples, spread, integers, dtype)
    method = [(4 * i, 4, name) for i, name in enumerate(methods)]
    random = np.random.default_rng(seed)
    for begin, _, name in method:
        if name == "slerp":
            lost = random.random(samples) < 0.1
            values[lost, begin : begin + 4] *= random.choice([0.0, np.nan, np.inf], (lost.sum(), 1))
    unit = 10**9 if integers else 1
    if outside == "extrapolate" and "linear" not in methods:
        outside = "fill"  # what no method of a call knows is refused
    options = {"method": method, "outside": outside, "fill_value": -7.0}
    if gap is not None:
        options["max_gap"] = gap * unit
    if tolerance is not None and not scipy_fusion.STEPS.keys().isdisjoint(methods):
        options["tolerance"] = tolerance * unit
    expected, expected_mask = scipy_fusion.resample(values, times, queries, **options)
    out, mask = rbc.resample(values, times, queries, return_valid=True, **options)
    np.testing.assert_array_equal(mask, expected_mask)
    apart = scipy_fusion.distance(out, expected, method)
    # Splines weigh a value by the ratio of the adjacent intervals, in the reference as well.
    before, after = np.diff(times)[:-1], np.diff(times)[1:]
    ratio = np.max(np.maximum(before / after, after / before), initial=1.0)
    roundings = {"linear": 4, "cubic": 8 * ratio, "pchip": 16, "slerp": 16, "angle": 8}
    finite = np.where(np.isfinite(values), np.abs(values), 0)
    size = np.maximum(finite.max(axis=0).astype(np.float64), np.abs(expected).max(axis=0))
    for begin, count, name in method:
        part = slice(begin, begin + count)
        least = np.pi if name == "angle" else 0  # it is wrapped
        limit = roundings.get(name, 0) * np.finfo(dtype).eps * np.maximum(size[part], least)
        assert (apart[:, part] <= limit).all(), (name, (apart[:, part] / np.finfo(dtype).eps).max())


COMMA = {
    "imu": "processed_log/IMU/accelerometer",
    "can speed": "processed_log/CAN/speed",
    "steering": "processed_log/CAN/steering_angle",
    "wheels": "processed_log/CAN/wheel_speed",
    "radar": "processed_log/CAN/radar",
    "gnss": "processed_log/GNSS/live_gnss_ublox",
}


@pytest.mark.parametrize("stream", COMMA)
def test_car_recording(recordings, stream):
    folder = recordings / "comma2k19" / COMMA[stream]
    times = np.load(folder / "t.npy").astype(np.float64)
    values = np.load(folder / "value.npy").astype(np.float64)
    values = values.reshape(len(times), -1)
    order = np.argsort(times, kind="stable")
    times, values = times[order], values[order]
    frames = np.load(recordings / "comma2k19" / "global_pose" / "frame_times.npy")

    ticks = np.round(times * 1e9).astype(np.int64)
    queries = np.sort(np.round(frames * 1e9).astype(np.int64))
    for tolerance in (5_000_000, 50_000_000, 10**12):
        assert_as_merge_asof(ticks, np.nan_to_num(values), queries, tolerance)

    times, first = np.unique(times, return_index=True)
    values = np.nan_to_num(values[first])
    assert_as_interp1d(times, values, frames)
    for layout in (np.asfortranarray(values), values[:, ::-1]):
        out = rbc.resample(layout, times, frames)
        np.testing.assert_array_equal(
            out, rbc.resample(np.ascontiguousarray(layout), times, frames)
        )


def test_drone_recording(recordings):
    files = sorted((recordings / "px4").rglob("*.csv"))
    assert files
    checked = 0
    for path in files:
        frame = pandas.read_csv(path)
        if "timestamp" not in frame or len(frame) < 3:
            continue
        frame = frame.sort_values("timestamp", kind="stable").select_dtypes("number")
        ticks = frame.pop("timestamp").to_numpy(np.int64)  # microseconds
        values = np.nan_to_num(frame.to_numpy(np.float64), posinf=0, neginf=0)
        if values.shape[1] == 0:
            continue
        queries = np.arange(ticks[0] - 50_000, ticks[-1] + 50_000, 10_000)
        assert_as_merge_asof(ticks, values, queries, 20_000)
        # An integer clock and the same clock in seconds agree.
        unique, first = np.unique(ticks, return_index=True)
        inside = queries[(queries >= unique[0]) & (queries <= unique[-1])]
        peer = interpolate.interp1d((unique - unique[0]).astype(np.float64), values[first], axis=0)
        out, mask = rbc.resample(values[first], unique, inside, return_valid=True)
        scale = np.abs(values).max(initial=1.0)
        np.testing.assert_allclose(
            out, peer((inside - unique[0]).astype(np.float64)), rtol=1e-11, atol=1e-11 * scale
        )
        assert mask.all()
        longest = int(np.diff(unique).max())
        _, bridged = rbc.resample(
            values[first], unique, inside, max_gap=longest - 1, return_valid=True
        )
        _, whole = rbc.resample(values[first], unique, inside, max_gap=longest, return_valid=True)
        assert whole.all() and bridged.sum() <= len(inside)
        checked += 1
    assert checked > 0
