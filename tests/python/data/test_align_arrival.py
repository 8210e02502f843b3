"""Alignment with the samples that had arrived, against direct calls for each row."""

from __future__ import annotations

import numpy as np
import pytest

import robocache as rbc

data = rbc.data
S = 10**9
START = 1_700_000_000 * S


def recorded(name, rng, count, rate, delay=0.01, dtype=np.float64, width=2, **more):
    """Return a stream with header stamps, in the order of its log times, which are later."""
    stamps = START + np.arange(count) * (S // rate) + rng.integers(0, S // rate // 2, count)
    log = stamps + (rng.exponential(delay, count) * S).astype(np.int64)
    order = np.argsort(log, kind="stable")
    values = rng.normal(size=(count, width)) * (100 if dtype == np.int32 else 1)
    clocks = {"log": log[order], "header": stamps[order]}
    names = tuple(f"c{i}" for i in range(width))
    return data.RecordedStream(name, "test", names, values.astype(dtype)[order], clocks, "ns",
                               **more)  # fmt: skip


def example(seed=0):
    rng = np.random.default_rng(seed)
    return data.Recording.from_streams([
        recorded("arm", rng, 300, 100),
        recorded("imu", rng, 600, 200, dtype=np.float32, width=3),
        recorded("mode", rng, 60, 20, dtype=np.int32, width=1),
    ])  # fmt: skip


def seen_at(stream, query, lag, bound, offset=0):
    """Return the samples of a stream that a robot has at a query, in the order of their stamps."""
    log, stamps = stream.log_times, stream.header_times
    kept = rbc.live_kept(stamps, log, bound) & (log <= query + lag)
    rows = np.flatnonzero(kept)
    rows = rows[np.argsort(stamps[rows], kind="stable")]
    return stamps[rows] + offset, stream.values[rows]


@pytest.mark.parametrize("lag", [0.0, 0.02])
@pytest.mark.parametrize("bound", [0, 2])
def test_rows_have_the_samples_that_had_arrived(lag, bound):
    recording = example()
    offset = {"imu": -0.005}
    aligned = recording.align(
        50,
        available="arrival",
        lag=lag,
        max_age=0.03,
        late_bound=bound,
        clock_offset=offset,
    )
    valid = aligned["valid"]
    assert valid.names == ("arm", "imu", "mode")
    assert 0.2 < valid.values[:, 2].mean() < 0.9
    for name in valid.names:
        stream, track = recording[name], aligned[name]
        method = "previous" if name == "mode" else "linear"
        assert track.values.dtype == stream.values.dtype
        moved = round(offset.get(name, 0) * S)
        for row, query in enumerate(track.times.tolist()):
            times, values = seen_at(stream, query, round(lag * S), bound, moved)
            expected, there = rbc.resample(
                values,
                times,
                [query],
                method=method,
                causal=True,
                max_age=round(0.03 * S),
                outside="fill",
                fill_value=0 if name == "mode" else np.nan,
                return_valid=True,
            )
            assert valid.values[row, valid.names.index(name)] == there[0]
            if name == "mode" and not there[0]:
                assert track.values[row, 0] == 0
            elif name == "mode":
                assert track.values[row, 0] == expected[0, 0]
            else:
                np.testing.assert_allclose(track.values[row], expected[0], rtol=1e-5, atol=1e-6)
    dropped = [int((~rbc.live_kept(s.header_times, s.log_times, bound)).sum())
               for s in recording.streams.values()]  # fmt: skip
    assert dropped[1] > 0
    assert len(aligned.notes) == sum(count > 0 for count in dropped)
    assert f"imu: {dropped[1]} of 600 samples dropped" in "\n".join(aligned.notes)


def test_labels_see_their_whole_episode():
    recording = example()
    aligned = recording.align(50, available="arrival", labels=["arm"])
    arm = recording["arm"]
    order = np.argsort(arm.header_times, kind="stable")
    expected = rbc.resample(arm.values[order], arm.header_times[order], aligned["arm"].times)
    assert np.array_equal(aligned["arm"].values, expected)
    action = data.RecordedStream("action", "test", ("x",), arm.values[:, :1],
                                 {"time": np.sort(arm.header_times)}, "ns")  # fmt: skip
    both = data.Recording.from_streams([recording["imu"], action])
    with pytest.raises(ValueError, match="action: has no times of arrival .*labels"):
        both.align(50, available="arrival")
    assert both.align(50, available="arrival", labels=["action"])["valid"].values[:, 1].all()


def test_without_causal_rows_after_the_last_sample_have_no_value():
    aligned = example().align(50, available="arrival", causal=False)
    values, valid = aligned["imu"].values, aligned["valid"].values
    assert (np.isnan(values[:, 0]) == ~valid[:, 1]).all()
    assert valid[:, 1].mean() < 0.5
    later = example().align(50, available="arrival", causal=False, lag=0.2, late_bound=600)
    assert later["valid"].values[:, 1].mean() > 0.95


def test_causal_with_all_stamps():
    recording = example()
    sorted_streams = [
        data.RecordedStream(s.name, "test", s.names, s.values,
                            {"time": np.sort(s.header_times)}, "ns")
        for s in recording.streams.values()
    ]  # fmt: skip
    aligned = data.Recording.from_streams(sorted_streams).align(50, causal=True, max_age=0.02)
    arm = sorted_streams[0]
    expected, there = rbc.resample(
        arm.values, arm.times("time"), aligned["arm"].times, causal=True, max_age=round(0.02 * S),
        outside="fill", fill_value=np.nan, return_valid=True,
    )  # fmt: skip
    assert np.array_equal(aligned["arm"].values, expected, equal_nan=True)
    assert np.array_equal(aligned["valid"].values[:, 0], there)


def test_static_transforms_exist_once_they_arrived():
    rng = np.random.default_rng(3)
    clocks = {"log": START + np.array([S, 2 * S]), "header": START + np.array([0, S // 2])}
    static = data.RecordedStream(
        "tf_static", "test", ("x",), np.array([[1.0], [2.0]]), clocks, "ns", static=True
    )
    recording = data.Recording.from_streams([recorded("arm", rng, 300, 100, 0.001), static])
    lag = 0.1
    aligned = recording.align(20, available="arrival", lag=lag)
    after = (aligned["arm"].times - START) / S + lag
    expected = np.where(after < 1, np.nan, np.where(after < 2, 1.0, 2.0))
    assert np.array_equal(aligned["tf_static"].values[:, 0], expected, equal_nan=True)
    column = aligned["valid"].names.index("tf_static")
    assert np.array_equal(aligned["valid"].values[:, column], after >= 1)


def test_stamps_on_another_clock_are_refused():
    recording = example()
    for shift, text in ((5.0, "-4.99"), (-11.0, "11.0")):
        with pytest.raises(ValueError, match=rf"imu: the median sample arrived {text}.*clock_of"):
            recording.align(50, available="arrival", clock_offset={"imu": shift})
    moved = [
        data.RecordedStream(s.name, "test", s.names, s.values,
                            {"log": s.log_times, "header": s.header_times - 3600 * S}, "ns")
        for s in recording.streams.values()
    ]  # fmt: skip
    late = data.Recording.from_streams(moved)
    with pytest.raises(ValueError, match=r"arrived 3600 s after its stamp.*clock_offset"):
        late.align(50, available="arrival")
    repaired = late.align(50, available="arrival", clock_offset=3600)
    plain = recording.align(50, available="arrival")
    assert np.array_equal(repaired["valid"].values, plain["valid"].values)
    assert np.array_equal(repaired["mode"].values, plain["mode"].values)
    by_log = late.align(50, available="arrival", clock="log")
    assert by_log["arm"].num_rows > 100


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"available": "all"}, "available: is 'all', expected 'stamp' or 'arrival'"),
        ({"lag": 0.1}, "lag: only valid with available='arrival'"),
        ({"late_bound": {"arm": 1}}, "late_bound: only valid with available='arrival'"),
        ({"max_age": 1}, "max_age: only valid with causal=True"),
        ({"available": "arrival", "max_age": {"leg": 1}}, "max_age: has 'leg', expected one of"),
        ({"available": "arrival", "labels": ["leg"]}, "labels: has 'leg', expected one of"),
        ({"available": "arrival", "labels": "arm"}, "labels: is 'arm', expected a list"),
        ({"available": "arrival", "lag": "x"}, "lag: is 'x', expected a number of seconds"),
        ({"available": "arrival", "lag": float("nan")}, "lag: is NaN"),
        ({"available": "arrival", "late_bound": -1}, "late_bound: is -1, expected 0 or more"),
    ],
)
def test_wrong_options(options, error):
    with pytest.raises((ValueError, TypeError, KeyError), match=error):
        example().align(50, **options)


def as_episodes(recording, cuts=(0, 400)):
    """Return episodes whose tracks have the samples of a recording, each in the order of stamps."""
    tracks = {}
    for name, stream in recording.streams.items():
        order = np.lexsort((stream.log_times, stream.header_times))
        times, log = stream.header_times[order], stream.log_times[order]
        middle = int(np.searchsorted(times, START + cuts[1] * S // 400))
        tracks[name] = rbc.Track(
            stream.values[order],
            [0, middle, len(times)],
            times=times.view("timedelta64[ns]"),
            arrivals=log.view("timedelta64[ns]"),
            names=stream.names,
        )
    return rbc.Episodes(tracks)


def test_episodes_with_arrivals_align_as_their_recordings():
    recording = example()
    episodes = as_episodes(recording)
    options = dict(available="arrival", lag=0.01, max_age=0.05, late_bound=1)
    offset = {"imu": -0.002}
    aligned = episodes.align(50, **options, clock_offset=offset)
    assert len(aligned) == 2
    assert "imu: " in "".join(aligned.notes)
    for e in range(2):
        part = episodes.select([e])
        streams = []
        for name, track in part.tracks.items():
            order = np.argsort(track.arrivals, kind="stable")
            clocks = {"log": track.arrivals[order], "header": track.times[order]}
            streams.append(
                data.RecordedStream(name, "test", track.names, track.values[order], clocks, "ns")
            )
        one = data.Recording.from_streams(streams).align(50, **options, clock_offset=offset)
        for name, track in aligned.select([e]).tracks.items():
            assert np.array_equal(track.times, one[name].times)
            assert track.values.tobytes() == one[name].values.tobytes()
    with pytest.raises(ValueError, match=r"imu: the median sample arrived -0\.99.*clock_offset"):
        episodes.align(50, **options, clock_offset={"imu": 1})
    bare = rbc.Episodes({n: t._with(arrivals=None) for n, t in episodes.tracks.items()})
    with pytest.raises(ValueError, match="arm: has no times of arrival .its track has no arriv"):
        bare.align(50, available="arrival")
    assert bare.align(50, available="arrival", labels=list(bare.tracks))["valid"].values.all()


@pytest.mark.parametrize("form", ["npz", "zarr", "lerobot"])
def test_saved_arrivals(tmp_path, form):
    if form != "npz":
        pytest.importorskip("zarr" if form == "zarr" else "pyarrow")
    arm = as_episodes(example())["arm"].select([0])
    if form == "lerobot":  # its rows are even
        arm = arm._with(times=START + np.arange(arm.num_rows) * (S // 100))
    saved = rbc.Episodes({"arm": arm, "copy": arm._with(arrivals=None)})
    left_out = data.save(saved, tmp_path / f"e.{form}", form)
    read = data.open(tmp_path / f"e.{form}")
    if form == "lerobot":
        assert [each.place for each in left_out] == ["arm"]
        assert "times of arrival" in left_out[0].reason
        assert read["arm"].arrivals is None
        return
    assert left_out == ()
    assert np.array_equal(read["arm"].arrivals, arm.arrivals)
    assert read["arm"].times.dtype == arm.times.dtype
    assert read["copy"].arrivals is None
