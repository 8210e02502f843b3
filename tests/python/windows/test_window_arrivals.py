"""Windows of tracks with arrivals: specs, statistics and loaders, against plain windows."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import robocache as rbc

LAG = 0.03


def track(rng, rows=(40, 25), rate=10.0, arrives=True):
    """Return a track whose rows arrive up to 0.3 s after their times."""
    times = np.concatenate([np.arange(n) / rate for n in rows])
    arrivals = times + rng.uniform(0, 0.3, len(times))
    values = rng.normal(size=(len(times), 2)).astype(np.float32)
    offsets = np.concatenate([[0], np.cumsum(rows)])
    return rbc.Track(values, offsets, times=times, arrivals=arrivals if arrives else None)


def example():
    rng = np.random.default_rng(0)
    return rbc.Episodes({"state": track(rng), "imu": track(rng, (80, 50), 20.0)})


def spec(**options):
    windows = {
        "state": rbc.Window([-2, -1, 0]),
        "imu": rbc.Window([-0.1, 0.0], method="linear", causal=True, max_age=0.2),
        "action": rbc.Window(range(4), track="state", label=True),
    }
    return rbc.WindowSpec(windows, lag=LAG, **options)


def test_a_window_has_the_rows_that_had_arrived():
    episodes = example()
    which, anchors = spec().samples(episodes)
    found = spec().cut(episodes, which, anchors)
    state, imu = episodes["state"], episodes["imu"]
    for i, (e, anchor) in enumerate(zip(which, anchors)):
        begin, end = state.episode_offsets[e : e + 2]
        times, arrived = state.times[begin:end], state.arrivals[begin:end]
        query = times[anchor]
        exists = arrived <= query + LAG
        at = np.flatnonzero(exists & (times <= query))
        values, valid = found["state"][0][i], found["state"][1][i]
        for o, offset in enumerate((-2, -1, 0)):
            row = at[-1] + offset if len(at) else -1
            there = row >= 0 and exists[row]
            assert valid[o] == there
            if there:
                assert np.array_equal(values[o], state.values[begin + row])
        begin, end = imu.episode_offsets[e : e + 2]
        for o, offset in enumerate((-0.1, 0.0)):
            expected, there = rbc.resample(
                imu.values[begin:end],
                imu.times[begin:end],
                [query + offset],
                arrivals=imu.arrivals[begin:end],
                lag=LAG,
                causal=True,
                max_age=0.2,
                return_valid=True,
            )
            assert found["imu"][0][i, o].tobytes() == expected[0].tobytes()
            assert found["imu"][1][i, o] == there[0]
    plain = rbc.WindowSpec({"action": rbc.Window(range(4), track="state")})
    bare = rbc.Episodes({"state": state._with(arrivals=None)})
    expected, there = plain.cut(bare, which, anchors)["action"]
    assert np.array_equal(found["action"][0], expected)
    assert np.array_equal(found["action"][1], there)
    assert 0.1 < found["state"][1].mean() < 0.99
    assert 0.1 < found["imu"][1].mean() < 0.99


def test_rows_of_the_future_need_a_label():
    future = rbc.WindowSpec({"action": rbc.Window(range(4), track="state")})
    with pytest.raises(ValueError, match="offsets"):
        example().windows(future)


@pytest.mark.parametrize("per_step", [False, True])
@pytest.mark.parametrize("rows", ["all", "valid"])
def test_statistics_are_those_of_the_windows(per_step, rows):
    episodes = example()
    found = spec().statistics(episodes, rows=rows, per_step=per_step)
    cut = episodes.windows(spec())
    for name, (values, valid) in cut.items():
        axes = (0,) if per_step else (0, 1)
        mask = valid if rows == "valid" else np.ones_like(valid)
        if name == "state" and rows == "all":
            continue  # rows without a value do not count
        weights = np.broadcast_to(mask[..., None], values.shape)
        expected = np.average(values.astype(np.float64), axis=axes, weights=weights)
        if name == "imu" and rows == "all":
            continue
        np.testing.assert_allclose(found[name].mean, expected, rtol=1e-9, atol=1e-12)
        assert np.array_equal(found[name].count, weights.sum(axis=axes))


def test_specs_keep_the_lag():
    made = spec(dtype="float64")
    assert made == pickle.loads(pickle.dumps(made))
    assert made.normalized({}) == made
    assert made.lag == LAG
    assert made != rbc.WindowSpec(made.windows, dtype="float64")
    assert "lag: 0.03" in repr(made)
    assert "label" in repr(made) and "causal" in repr(made)


def test_tracks_keep_their_arrivals():
    state = example()["state"]
    one = state.select([1])
    assert np.array_equal(one.arrivals, state.arrivals[40:])
    assert state == pickle.loads(pickle.dumps(state))
    assert state != state._with(arrivals=None)
    assert state.nbytes == state._with(arrivals=None).nbytes + state.arrivals.nbytes
    assert "arrivals=<float64 [65]>" in repr(state)
    moved = state.to("cpu")
    assert np.array_equal(np.asarray(moved.arrivals), state.arrivals)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (dict(arrivals=[0.0, 1.0]), "arrivals: only valid with times"),
        (dict(times=[0.0, 1.0], arrivals=[0.0]), "arrivals: got 1, expected 2"),
        (dict(times=np.arange(2.0), arrivals=np.arange(2)), "arrivals: dtype is int64, expected f"),
        (
            dict(times=np.arange(2.0), arrivals=np.arange(2).astype("timedelta64[ns]")),
            "times: has no unit, but arrivals is",
        ),
    ],
)
def test_wrong_arrivals_of_tracks(options, error):
    with pytest.raises((ValueError, TypeError), match=error):
        rbc.Track(np.zeros((2, 1)), [0, 2], **options)


def test_units():
    times = np.arange(5).astype("datetime64[ms]")
    late = rbc.Track(np.zeros((5, 1)), [0, 5], times=times, arrivals=times + 2)
    made = rbc.WindowSpec({"x": [0]}, lag=np.timedelta64(1, "ms"))
    _, valid = rbc.Episodes({"x": late}).windows(made)["x"]
    assert valid[:, 0].tolist() == [False, True, True, True, True]


def test_loader():
    torch = pytest.importorskip("torch")
    from robocache.torch import WindowLoader

    episodes = example()
    expected = episodes.windows(spec())
    batches = list(WindowLoader(episodes, spec(), 16, shuffle=False, fresh=True))
    for name, (values, valid) in expected.items():
        found = torch.cat([batch[name] for batch in batches])
        assert np.array_equal(found.numpy(), values)
        assert np.array_equal(torch.cat([b.valid[name] for b in batches]).numpy(), valid)
    state = WindowLoader(episodes, spec(), 16).state_dict()
    other = WindowLoader(episodes, rbc.WindowSpec(spec().windows), 16)
    with pytest.raises(ValueError, match="spec has the digest"):
        other.load_state_dict(state)
