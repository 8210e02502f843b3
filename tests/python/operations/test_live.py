"""Live fusion from Python: what fuse gives for what has arrived, from threads, and errors."""

import copy
import pickle
import threading
import time

import numpy as np
import pytest

import robocache as rbc


def arrived(times, values, capacity):
    """The samples that a ring holds: the newest samples by their times, equal ones as they came."""
    times, values = np.array(times), np.array(values)
    order = np.argsort(times, kind="stable")[-capacity:]
    return values[order], times[order]


def test_a_replay_is_fuse_of_what_has_arrived():
    rng = np.random.default_rng(1)
    rates, channels = (100, 37, 200), (7, 3, 4)
    methods = ("cubic", "previous", "slerp")
    mean, std = rng.normal(size=7), rng.uniform(0.5, 2, 7)
    events = []
    for n, rate in enumerate(rates):
        stamps = np.arange(0, 3, 1 / rate) + rng.normal(0, 0.2 / rate, int(np.ceil(3 * rate)))
        for stamp in stamps:
            events.append((stamp + rng.uniform(0, 0.002), n, stamp))
    events.sort()
    scales = ({"mean": mean, "std": std}, {}, {})
    live = rbc.Live(
        [
            rbc.LiveStream(c, capacity=64, late_bound=4, method=m, clock_offset=0.001, **scale)
            for c, m, scale in zip(channels, methods, scales)
        ]
    )
    kept = [([], []) for _ in rates]
    ticks = 0
    next_tick = 0.5
    for arrival, n, stamp in events:
        while arrival > next_tick:
            queries = next_tick - np.arange(4)[::-1] * 0.02
            tick = live.fuse(queries)
            streams = [
                rbc.Stream(
                    *arrived(*kept[k], 64), method=methods[k], clock_offset=0.001, **scales[k]
                )
                for k in range(3)
            ]
            values, mask = rbc.fuse(streams, queries, dtype="float32", return_valid=True)
            assert tick.values.tobytes() == values.tobytes()
            assert tick.valid.tobytes() == mask.tobytes()
            for k in range(3):
                now = queries[-1] - 0.001
                assert tick.ages[k] == now - max(time for time in kept[k][0] if time <= now)
            ticks += 1
            next_tick += 0.02
        row = rng.normal(size=channels[n]).astype(np.float32)
        live.push(n, stamp, row)
        kept[n][0].append(stamp)
        kept[n][1].append(row)
    assert ticks > 100
    assert sum(live.counters(n).late for n in range(3)) > 0
    assert all(live.counters(n).dropped == 0 for n in range(3))


def test_threads_push_while_the_loop_fuses():
    live = rbc.Live([rbc.LiveStream(5, capacity=16, method="previous") for _ in range(3)])
    done = threading.Event()

    def produce(n):
        for i in range(2000):
            live.push(n, float(i), np.full(5, i, np.float32))

    threads = [threading.Thread(target=produce, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    before = np.zeros(3)
    deadline = time.monotonic() + 60
    while any(thread.is_alive() for thread in threads) and time.monotonic() < deadline:
        tick = live.fuse(1e9)
        rows = tick.values.reshape(3, 5)
        assert (rows == rows[:, :1]).all()  # no row is torn
        seen = np.where(np.isnan(tick.ages), 0, rows[:, 0])
        assert (seen >= before).all()
        before = seen
    done.set()
    for thread in threads:
        thread.join()
    assert [live.counters(n).kept for n in range(3)] == [2000] * 3


def test_ticks_of_int64():
    stream = rbc.LiveStream(1, causal=True, max_age=10**7, outside="fill", fill_value=-1)
    live = rbc.Live([stream], time_dtype="int64")
    live.push(0, np.array([0, 10**9]), [[0.0], [1.0]])
    tick = live.fuse([5 * 10**8, 10**9])
    assert tick.values.ravel().tolist() == [-1.0, 1.0] and tick.ages.tolist() == [0]
    tick = live.fuse(10**9 + 10**7 + 1)  # a sensor that died
    assert tick.values.tolist() == [[-1.0]] and not tick.valid.any()
    assert tick.ages.tolist() == [10**7 + 1]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"channels": 0}, r"streams\[0\].channels: is 0"),
        ({"capacity": 3, "method": "pchip"}, r"streams\[0\].capacity: is 3, expected at least 4"),
        ({"late_bound": 300}, r"streams\[0\].late_bound: is 300, expected less than the capacity"),
        ({"max_age": -1, "causal": True}, r"streams\[0\].max_age: is -1"),
        ({"max_age": 1}, r"streams\[0\].max_age: is 1, expected None without causal=True"),
        ({"max_ahead": -1}, r"streams\[0\].max_ahead: is -1"),
        ({"max_ahead": 0}, r"streams\[0\].max_ahead: is 0, expected more than 0"),
        ({"max_ahead": "far"}, r"streams\[0\].max_ahead: "),
        ({"capacity": 1}, r"streams\[0\].capacity: is 1, expected at least 2"),
        ({"clock_offset": np.inf}, r"streams\[0\].clock_offset: is inf"),
        ({"method": "spline"}, r"streams\[0\].method: is 'spline'"),
        ({"std": [0, 1]}, r"streams\[0\].std"),
        ({"mean": [0, 1, 2]}, r"streams\[0\].mean"),
    ],
)
def test_what_cannot_be(options, told):
    with pytest.raises((ValueError, TypeError), match=told):
        rbc.Live([rbc.LiveStream(**{"channels": 2, **options})])


def test_bad_samples_add_nothing():
    live = rbc.Live([rbc.LiveStream(2)])
    for arguments, told in [
        ((1, 0, [0, 0]), "stream: is 1, expected 0 to 0"),
        ((0, 0, [0, 0, 0]), r"values: shape is \[1,3\]"),
        ((0, [0, 1], [[0, 0]]), r"values: shape is \[1,2\]"),
    ]:
        with pytest.raises(ValueError, match=told):
            live.push(*arguments)
    assert live.counters(0).kept == 0
    live.push(0, np.nan, [0, 0])
    assert live.counters(0) == (0, 0, 0, 0, 0, 1, 0, 0, 0)
    with pytest.raises(ValueError, match="out: shape"):
        live.fuse(0, out=np.empty((1, 3), np.float32))


def test_an_infinite_stamp_is_refused():
    stream = rbc.LiveStream(1, capacity=8, causal=True, max_age=0.5, method="previous")
    live = rbc.Live([stream])
    for i in range(400):
        live.push(0, 0.1 * i, [i])
        if i == 20:
            live.push(0, [np.inf, -np.inf, np.nan], [[999], [999], [999]])
    tick = live.fuse(0.1 * 399)
    assert tick.values.tolist() == [[399]] and tick.valid.all()
    assert live.counters(0).invalid == 3 and live.counters(0).dropped == 0
    ticks = rbc.Live([rbc.LiveStream(1)], time_dtype="int64")
    ends = np.iinfo(np.int64)
    ticks.push(0, [ends.min, ends.max, 0, 10], [[9], [9], [1], [2]])
    assert ticks.fuse(5).values.tolist() == [[1.5]] and ticks.counters(0).invalid == 2


@pytest.mark.parametrize("method", ["previous", "nearest", "linear"])
def test_a_stamp_of_the_far_future_does_not_hide_that_a_sensor_has_stopped(method):
    rules = {"method": method, "causal": True, "max_age": 0.5, "outside": "fill"}
    live = rbc.Live([rbc.LiveStream(1, capacity=8, fill_value=-7, **rules)])
    for i in range(20):
        live.push(0, 0.1 * i, [i])
    live.push(0, 1e18, [999])
    for i in range(20, 400):
        live.push(0, 0.1 * i, [i])
    tick = live.fuse(39.95)
    assert tick.values.tolist() == [[-7]] and not tick.valid.any()
    assert tick.ages.tolist() == [39.95 - 0.1 * 19]
    assert live.counters(0).dropped == 380
    live.reset(0)
    live.push(0, [39.9, 40.0], [[1], [1]])
    assert live.fuse(39.95).values.tolist() == [[1]]
    assert live.counters(0).forgotten == 8


def test_max_ahead_refuses_a_wild_stamp_and_lets_a_sensor_come_back():
    live = rbc.Live([rbc.LiveStream(1, capacity=8, max_ahead=1)])
    for i in range(100):
        live.push(0, 0.1 * i, [i])
        if i == 50:
            live.push(0, 1e18, [999])
    assert live.counters(0).ahead == 1 and live.counters(0).kept == 100
    live.push(0, [3600, 3600.5, 3601, 3601.5], [[1], [2], [3], [4]])  # it was silent
    assert live.fuse(3601.25).values.tolist() == [[3.5]]
    live.push(0, [10, 10.5, 11, 11.5], [[1], [2], [3], [4]])  # its clock was set back
    assert live.fuse(11.25).values.tolist() == [[3.5]]
    counters = live.counters(0)
    assert (counters.ahead, counters.dropped, counters.forgotten) == (3, 2, 8)
    assert counters.kept == counters.overwritten + counters.forgotten + 2


def test_late_samples_do_not_push_out_the_newest():
    live = rbc.Live([rbc.LiveStream(1, capacity=4, late_bound=3, method="previous")])
    for time_ in (0, 1, 2, 3, 4, 5, 3.5, 3.6, 3.7, 3.8):
        live.push(0, time_, [time_])
    tick = live.fuse([4.5, 5])
    assert tick.values.ravel().tolist() == [4, 5] and tick.valid.all() and tick.ages == 0


def test_ages():
    strict = rbc.LiveStream(1, causal=True, max_age=0.5, outside="fill", fill_value=-7)
    live = rbc.Live([strict, rbc.LiveStream(1)])
    for n in range(2):
        live.push(n, [10.0, 11.0, 12.0], [[10], [11], [12]])
    for query, age, value in [
        (11.25, 0.25, 11.25),  # a query of the past
        (11.75, 0.75, -7),
        (9.75, -0.25, -7),
        (9.25, -0.75, -7),
        (np.inf, np.inf, -7),
        (-np.inf, -np.inf, -7),
    ]:
        tick = live.fuse(query)
        assert tick.ages.tolist() == [age, age] and tick.values[0, 0] == value
        assert tick.valid[0, 1] == (10 <= query <= 12)
    assert np.isnan(live.fuse(np.nan).ages).all()


def test_a_reset_of_a_stream_that_is_none():
    live = rbc.Live([rbc.LiveStream(1)])
    for stream, told in [(1, "stream: is 1, expected 0 to 0"), (-1, "stream: is -1")]:
        for call in (live.reset, live.counters):
            with pytest.raises(ValueError, match=told):
                call(stream)
    with pytest.raises(TypeError, match="stream: is .* expected an int"):
        live.reset("arm")


def test_streams_with_names():
    arm, grip = rbc.LiveStream(2), rbc.LiveStream(1, method="previous")
    named, plain = rbc.Live({"arm": arm, "grip": grip}), rbc.Live([arm, grip])
    for live, names in ((named, ("arm", "grip")), (plain, (0, 1)), (named, (0, 1))):
        live.reset(names[0])
        live.push(names[0], [0.0, 0.1], [[1, 2], [3, 4]])
        live.push(names[1], 0.05, [7])
    assert named.fuse(0.1).values.tolist() == plain.fuse(0.1).values.tolist()
    assert named.counters("arm").kept == 4 and named.counters("grip").kept == 2
    assert repr(named) == "Live(2 streams: arm, grip, 3 channels)"
    with pytest.raises(KeyError, match="stream: is 'amr', expected one of 'arm', 'grip'. Did you"):
        named.push("amr", 0.2, [5, 6])
    with pytest.raises(TypeError, match="stream: is 'arm', expected an int"):
        plain.push("arm", 0.2, [5, 6])
    with pytest.raises(TypeError, match=r"streams\['arm'\]: is an int, expected"):
        rbc.Live({"arm": 3})
    with pytest.raises(ValueError, match=r"streams\['arm'\].*capacity"):
        rbc.Live({"arm": rbc.LiveStream(2, capacity=-1)})


def test_pickling_is_refused():
    live = rbc.Live([rbc.LiveStream(2)])
    for make in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="^live: cannot be pickled or copied"):
            make(live)
