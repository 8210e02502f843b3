"""A recording that is replayed into Live gives the rows and masks of the fusion of its samples."""

import numpy as np
import pytest

import live_replays
import robocache as rbc

METHODS = ["linear", "nearest", "previous", "cubic", "pchip", "slerp", "angle"]


def recorded(rng, dtype, offset):
    """Return stamps and arrivals in the order of the stamps, and of arrival if stamps are equal."""
    n = int(rng.integers(30, 80))
    stamps = rng.uniform(0, 20, n)
    stamps = np.where(rng.random(n) < 0.3, np.round(stamps), stamps)
    arrivals = stamps + rng.exponential(0.05, n) + np.where(rng.random(n) < 0.15, 1.0, 0.0)
    if rng.random() < 0.5:
        arrivals = np.round(arrivals, 1)  # equal ones
    scale = 1e6 if dtype == "int64" else 1
    stamps, arrivals = (stamps * scale).astype(dtype), (arrivals * scale).astype(dtype)
    stamps = (stamps - np.dtype(dtype).type(offset)).astype(dtype)
    order = np.lexsort((arrivals, stamps))
    return stamps[order], arrivals[order]


@pytest.mark.parametrize("values_dtype", ["float32", "float64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("rows", [1, 8])
def test_live_has_the_bytes_of_fuse(rows, dtype, values_dtype):
    rng = np.random.default_rng([rows, len(dtype), len(values_dtype)])
    per_second = 1_000_000 if dtype == "int64" else 1
    scalar = np.dtype(dtype).type
    compared = dropped = 0
    for _ in range(6):
        lag = scalar(rng.choice([0, 0.02, 0.1, 0.5]) * per_second)
        sensors, streams, recordings = [], [], []
        for method in rng.permutation(METHODS)[:4]:
            late_bound = int(rng.integers(0, 4))
            width = 4 if method == "slerp" else int(rng.integers(1, 4))
            offset = rng.choice([0, 0.25]) * per_second
            offset = int(offset) if dtype == "int64" else float(offset)
            stamps, arrivals = recorded(rng, dtype, offset)
            values = rng.uniform(-2, 2, (len(stamps), width)).astype(values_dtype)
            kept = rbc.live_kept(stamps, arrivals, late_bound)
            dropped += int((~kept).sum())
            rules = {
                "method": str(method),
                "max_gap": float(rng.choice([0.5, 2, 50]) * per_second),
                "fill_value": -5.0,
                "outside": str(rng.choice(["hold", "fill"])),
            }
            if rng.random() < 0.75:
                rules.update(causal=True, max_age=float(rng.choice([0.3, 1, 9]) * per_second))
            sensors.append(
                rbc.LiveStream(
                    width,
                    capacity=len(stamps),
                    late_bound=late_bound,
                    dtype=values_dtype,
                    clock_offset=offset,
                    **rules,
                )
            )
            streams.append(
                rbc.Stream(
                    values,
                    stamps,
                    arrivals=arrivals,
                    sample_mask=kept,
                    clock_offset=offset,
                    **rules,
                )
            )
            recordings.append((stamps, arrivals, values))
        live = rbc.Live(sensors, time_dtype=dtype)
        pushed = [np.argsort(arrivals, kind="stable") for _, arrivals, _ in recordings]
        done = [0] * len(pushed)
        for tick in np.arange(0.4, 22, 0.37):
            now = scalar(tick * per_second)
            history = np.array(
                [now - scalar(0.11 * per_second) * scalar(k) for k in range(rows)][::-1], dtype
            )
            computed = now + lag + scalar(rng.exponential(0.05) * per_second)  # the call is late
            for n, (stamps, arrivals, values) in enumerate(recordings):
                order = pushed[n]
                while done[n] < len(order) and arrivals[order[done[n]]] <= computed:
                    i = order[done[n]]
                    live.push(n, stamps[i], values[i], arrivals[i])
                    done[n] += 1
            seen = live.fuse(history, lag=lag.item())
            out, valid = rbc.fuse(streams, history, lag=lag.item(), return_valid=True)
            assert seen.values.dtype == out.dtype == values_dtype
            assert seen.values.tobytes() == out.tobytes(), tick
            assert seen.valid.tobytes() == valid.tobytes(), tick
            compared += rows
        for n, stream in enumerate(streams):
            lost = ~stream.sample_mask[pushed[n][: done[n]]]
            assert live.counters(n).dropped == lost.sum()
    assert compared > 100
    assert dropped > 10


def test_rows_of_a_history_do_not_change_when_later_samples_arrive():
    live = rbc.Live([rbc.LiveStream(1, causal=True, max_age=1)])
    live.push(0, [0.0, 0.1], [[0], [1]], [0.0, 0.1])
    first = live.fuse([0.15], lag=0).values.tolist()
    live.push(0, 0.2, [5], 0.2)
    assert live.fuse([0.15, 0.2], lag=0).values.tolist() == [*first, [5.0]]
    assert live.fuse([0.15, 0.2], lag=0.05).values.tolist() == [[3.0], [5.0]]


def test_dtype_follows_fuse():
    def dtype_of(*dtypes):
        live = rbc.Live([rbc.LiveStream(1, dtype=name, method="previous") for name in dtypes])
        return live.fuse([0.0]).values.dtype.name

    assert dtype_of("float32") == "float32"
    assert dtype_of("float16") == "float16"
    assert dtype_of("float32", "float64") == "float64"
    assert dtype_of("int32") == "float32"


def simulated(times, arrivals, late_bound):
    """Return a mask of the samples that a ring keeps, by counting."""
    kept = np.zeros(len(times), bool)
    newest = []
    for i in np.argsort(arrivals, kind="stable"):
        if not np.isfinite(times[i]) or np.isnan(arrivals[i]):
            continue
        if sum(time > times[i] for time in newest) <= late_bound:
            kept[i] = True
            newest.append(times[i])
    return kept


def test_live_kept_is_what_a_ring_keeps():
    rng = np.random.default_rng(9)
    for round_ in range(200):
        n = int(rng.integers(0, 40))
        times = np.round(rng.uniform(0, 8, n), 1)
        arrivals = np.round(times + rng.exponential(1.0, n), 1)
        if n > 3 and round_ % 3 == 0:
            times[rng.integers(n)] = rng.choice([np.nan, np.inf])
            arrivals[rng.integers(n)] = np.nan
        bound = int(rng.integers(0, 6))
        expected = simulated(times, arrivals, bound)
        assert (rbc.live_kept(times, arrivals, bound) == expected).all()
        live = rbc.Live([rbc.LiveStream(1, capacity=n + 6, late_bound=bound, method="previous")])
        for i in np.argsort(arrivals, kind="stable"):
            if not np.isnan(arrivals[i]):
                live.push(0, times[i], [i], arrivals[i])
        assert live.counters(0).kept == expected.sum()


def test_live_kept_refuses():
    with pytest.raises(ValueError, match="arrivals: has 2 numbers, expected 1 as times"):
        rbc.live_kept([0.0], [0.0, 1.0])
    with pytest.raises(ValueError, match="late_bound: is -1, expected 0 or more"):
        rbc.live_kept([0.0], [0.0], -1)
    with pytest.raises(TypeError, match=r"late_bound: is 1\.5, expected an int"):
        rbc.live_kept([0.0], [0.0], 1.5)
    with pytest.raises(TypeError, match="has no unit"):
        rbc.live_kept(np.array(["2024-01-01"], "datetime64[ns]"), [0.0])


def test_random_recordings():
    """All methods and dtypes, late calls, lost and repeated messages: see ``live_replays``."""
    found = live_replays.replayed_all(range(120))
    assert not found.unequal
    assert set(found.methods) == set(live_replays.METHODS)
    assert min(found.dropped, found.lost, found.duplicates) > 100
    assert 0.1 * found.cells < found.valid < 0.9 * found.cells
