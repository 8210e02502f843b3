"""Samples that arrive, and channels that look back only: against the rules, query by query."""

import numpy as np
import pytest

import robocache as rbc

METHODS = ["linear", "nearest", "previous", "cubic", "pchip", "angle"]
TIME_DTYPES = ["float32", "float64", "int64"]


def recording(rng, dtype, n=40, late=3.0):
    """Times with duplicates, values, arrivals in any order, and a mask; a sample a second."""
    seconds = np.sort(rng.uniform(0, n, n))
    seconds[rng.random(n) < 0.3] = np.floor(seconds[rng.random(n).argsort()[0]])
    seconds.sort()
    delays = rng.exponential(1.0, n) * np.where(rng.random(n) < 0.2, late, 0.3) - 0.2
    if dtype == "int64":
        times = (seconds * 1000).astype(dtype)
        arrivals = times + (delays * 1000).astype(dtype)
    else:
        times = seconds.astype(dtype)
        arrivals = times + delays.astype(dtype)
        arrivals[rng.random(n) < 0.05] = np.nan
    values = rng.uniform(-3, 3, (n, 2)).astype("float32")
    return times, values, arrivals, rng.random(n) < 0.9


def unit(dtype):
    return 1000 if dtype == "int64" else 1


def queries_of(rng, dtype, times, n=60):
    anywhere = rng.uniform(-2, 42, n) * unit(dtype)
    near = rng.choice(times, n)
    return np.where(rng.random(n) < 0.3, near, anywhere).astype(dtype)


def one(values, times, query, **options):
    out, valid = rbc.resample(values, times, np.array([query]), return_valid=True, **options)
    return out[0], valid[0]


def by_the_rules(query, times, values, exists, method, max_gap, max_age, outside, fill):
    """Return what looking back gives for a query, from the samples that exist."""
    there = np.flatnonzero(exists)
    own = times[there]
    before = np.flatnonzero(own <= query)
    if not len(before):
        return np.full(values.shape[1], fill, values.dtype), False
    k = before[-1]
    valid = query - own[k] <= max_age
    if not valid and outside == "fill":
        return np.full(values.shape[1], fill, values.dtype), False
    held = values[there[k]]
    if own[k] == query or method == "previous" or k + 1 == len(own):
        return held, valid
    if own[k + 1] - own[k] > max_gap:
        return held, valid
    if method == "nearest":
        return (held if query - own[k] <= own[k + 1] - query else values[there[k + 1]]), valid
    return one(values[there], own, query, method=method)[0], valid


@pytest.mark.parametrize("dtype", TIME_DTYPES)
@pytest.mark.parametrize("method", METHODS)
def test_a_query_sees_what_had_arrived_and_looks_back(method, dtype):
    rng = np.random.default_rng([METHODS.index(method), TIME_DTYPES.index(dtype)])
    held = 0
    for _ in range(12):
        times, values, arrivals, mask = recording(rng, dtype)
        queries = queries_of(rng, dtype, times)
        lag = np.dtype(dtype).type(rng.choice([0, 0.5, 2]) * unit(dtype))
        max_gap = float(rng.choice([1, 4, 100]) * unit(dtype))
        max_age = float(rng.choice([1, 3, 1000]) * unit(dtype))
        outside = str(rng.choice(["hold", "fill", "extrapolate"]))
        if method != "linear" and outside == "extrapolate":
            outside = "hold"
        out, valid = rbc.resample(
            values,
            times,
            queries,
            method=method,
            arrivals=arrivals,
            lag=lag.item(),
            causal=True,
            max_age=max_age,
            max_gap=max_gap,
            sample_mask=mask,
            outside=outside,
            fill_value=-9,
            return_valid=True,
        )
        for i, query in enumerate(queries):
            exists = mask & (arrivals <= query + lag)
            row, is_valid = by_the_rules(
                query, times, values, exists, method, max_gap, max_age, outside, -9
            )
            assert out[i].tobytes() == row.tobytes(), (i, query)
            assert valid[i] == is_valid, (i, query)
            held += bool(exists.any())
    assert held > 100


@pytest.mark.parametrize("dtype", TIME_DTYPES)
@pytest.mark.parametrize("method", [*METHODS, "next"])
def test_without_causal_the_others_are_missing(method, dtype):
    rng = np.random.default_rng([7, TIME_DTYPES.index(dtype)])
    for _ in range(6):
        times, values, arrivals, mask = recording(rng, dtype)
        queries = queries_of(rng, dtype, times, 30)
        lag = np.dtype(dtype).type(0.5 * unit(dtype))
        options = {"method": method, "fill_value": -9, "max_gap": 3.0 * unit(dtype)}
        out, valid = rbc.resample(
            values,
            times,
            queries,
            arrivals=arrivals,
            lag=lag.item(),
            sample_mask=mask,
            return_valid=True,
            **options,
        )
        for i, query in enumerate(queries):
            exists = mask & (arrivals <= query + lag)
            row, is_valid = one(values, times, query, sample_mask=exists, **options)
            assert out[i].tobytes() == row.tobytes()
            assert valid[i] == is_valid


def test_streams_of_a_fusion_have_their_own_arrivals():
    rng = np.random.default_rng(3)
    streams, alone = [], []
    queries = queries_of(rng, "float64", np.arange(40.0))
    for n, method in enumerate(METHODS):
        times, values, arrivals, mask = recording(rng, "float64")
        options = {"method": method, "sample_mask": mask}
        if n != 1:
            options["arrivals"] = arrivals
        if n % 2 == 0:
            options.update(causal=True, max_age=2.0)
        streams.append(rbc.Stream(values, times, **options, clock_offset=0.25 * n))
        alone.append(
            rbc.fuse([streams[-1]], queries, lag=0.5, return_valid=True),
        )
    out, valid = rbc.fuse(streams, queries, lag=0.5, return_valid=True)
    assert out.tobytes() == np.concatenate([each for each, _ in alone], axis=1).tobytes()
    assert (valid == np.concatenate([each for _, each in alone], axis=1)).all()


def test_arrivals_are_on_the_clock_of_the_queries():
    values = np.arange(4.0)[:, None]
    stamps = np.arange(4.0) - 100
    stream = rbc.Stream(
        values, stamps, clock_offset=100, arrivals=np.arange(4.0) + 0.5, causal=True, max_age=5
    )
    assert rbc.fuse([stream], [2.0, 2.25, 2.5]).ravel().tolist() == [1.0, 1.0, 2.0]
    assert rbc.fuse([stream], [2.0, 2.25, 2.5], lag=0.5).ravel().tolist() == [2.0, 2.0, 2.0]
    assert rbc.fuse([stream], [2.0, 2.25, 2.5], lag=2).ravel().tolist() == [2.0, 2.25, 2.5]


def test_times_with_a_unit():
    values = np.arange(4.0)[:, None]
    times = np.datetime64("2024-01-01", "ns") + np.arange(4) * np.timedelta64(1, "s")
    arrivals = times + np.timedelta64(300, "ms")
    options = {"arrivals": arrivals, "causal": True, "max_age": np.timedelta64(1, "s")}
    out = rbc.resample(values, times, times[1:3], **options)
    assert out.ravel().tolist() == [0.0, 1.0]
    out = rbc.resample(values, times, times[1:3], lag=np.timedelta64(300, "ms"), **options)
    assert out.ravel().tolist() == [1.0, 2.0]
    stream = rbc.Stream(values, times, **options)
    assert rbc.fuse([stream], times[1:3], lag=np.timedelta64(300, "ms")).ravel().tolist() == [1, 2]
    with pytest.raises(TypeError, match="arrivals: has no unit, but times is datetime64"):
        rbc.resample(values, times, times, arrivals=np.arange(4))
    with pytest.raises(TypeError, match=r"lag: is 0\.3"):
        rbc.resample(values, times, times, arrivals=arrivals, lag=0.3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_age": 1.0}, "max_age: is 1.0, expected None without causal=True"),
        ({"causal": True, "max_age": -1}, "max_age: is -1, expected 0 or more"),
        ({"causal": True, "method": "nearest", "tolerance": 1}, "tolerance: is 1, expected"),
        ({"arrivals": np.zeros(3)}, "arrivals: shape is"),
        ({"lag": float("nan")}, "lag: is nan, expected a finite"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        rbc.resample(np.zeros((4, 1)), np.arange(4.0), [0.5], **options)


def test_next_cannot_look_back():
    for method in ["next", [(0, 1, "next")]]:
        with pytest.raises(rbc.RoboCacheError, match="is next, which needs a later sample"):
            rbc.resample(np.zeros((4, 1)), np.arange(4.0), [0.5], method=method, causal=True)
    with pytest.raises(TypeError, match="arrivals: dtype is float32, expected float64"):
        rbc.resample(np.zeros((4, 1)), np.arange(4.0), [0.5], arrivals=np.zeros(4, "float32"))


def test_groups_look_back_with_one_age():
    values = np.arange(8.0).reshape(4, 2)
    groups = [(0, 1, "previous"), (1, 1, "linear")]
    out, valid = rbc.resample(
        values, np.arange(4.0), [1.5, 3.5, 5.0], method=groups, causal=True, max_age=1,
        return_valid=True,
    )  # fmt: skip
    assert out.tolist() == [[2.0, 4.0], [6.0, 7.0], [6.0, 7.0]]
    assert valid.tolist() == [True, True, False]


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_arrays_of_other_libraries(library):
    module = pytest.importorskip(library)
    rng = np.random.default_rng(3)
    times, values, arrivals, there = recording(rng, "float32")
    queries = queries_of(rng, "float32", times)
    if library == "jax":
        with module.default_device(module.devices("cpu")[0]):  # as the arrivals of NumPy
            made = [module.numpy.asarray(each) for each in (values, times, arrivals, queries)]
    else:
        made = [module.from_numpy(each.copy()) for each in (values, times, arrivals, queries)]
    own_values, own_times, own_arrivals, own_queries = made
    rules = dict(causal=True, max_age=2.0, max_gap=1.5)
    expected, valid = rbc.resample(
        *(values, times, queries),
        arrivals=arrivals,
        lag=0.25,
        return_valid=True,
        **rules,
    )
    for given in (own_arrivals, arrivals, arrivals.tolist()):
        out, mask = rbc.resample(
            *(own_values, own_times, own_queries),
            arrivals=given,
            lag=0.25,
            return_valid=True,
            **rules,
        )
        assert type(out) is type(own_values)
        assert np.asarray(out).tobytes() == expected.tobytes()
        assert np.asarray(mask).tobytes() == valid.tobytes()
    stream = rbc.Stream(own_values, own_times, arrivals=own_arrivals, **rules)
    fused = rbc.fuse([stream], own_queries, lag=0.25)
    assert np.asarray(fused).tobytes() == expected.tobytes()
    offsets = dict(episode_offsets=[0, len(times)])
    windows = [
        rbc.windows([rbc.WindowStream(v, [-1, 0], times=t, arrivals=a, **offsets)], [0] * 40,
                    range(40), lag=0.25)[0]
        for v, t, a in ((own_values, own_times, own_arrivals), (values, times, arrivals))
    ]  # fmt: skip
    for ours, theirs in zip(*windows):
        assert np.asarray(ours).tobytes() == np.asarray(theirs).tobytes()
