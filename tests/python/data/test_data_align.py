"""Alignment of recordings and episodes to one clock, against NumPy and direct calls."""

from __future__ import annotations

import numpy as np
import pytest

import robocache as rbc

data = rbc.data
S = 10**9
START = 1_700_000_000 * S


def stream(name, times, values, names=None, unit="ns", clock="log", dtypes=None):
    values = np.asarray(values)
    names = names or tuple(f"c{i}" for i in range(values.shape[1]))
    return data.RecordedStream(name, "test", tuple(names), values, {clock: times}, unit, dtypes)


def example():
    rng = np.random.default_rng(0)
    fast = START + np.sort(rng.integers(0, 10 * S, 1000))
    slow = START + np.arange(50) * (S // 5) + 7
    joints = rng.normal(size=(1000, 3))
    state = rng.integers(-5, 2**62, size=(50, 2))
    rotation = rng.normal(size=(50, 4))
    rotation /= np.linalg.norm(rotation, axis=1, keepdims=True)
    pose = np.concatenate([rng.normal(size=(50, 1)), rotation, state[:, :1] % 3], axis=1)
    names = ("x", "q.x", "q.y", "q.z", "q.w", "mode")
    dtypes = ("float64",) * 5 + ("uint8",)
    return data.Recording.from_streams([
        stream("joints", fast, joints),
        stream("state", slow, state),
        stream("pose", slow + 3, pose, names, dtypes=dtypes),
    ])  # fmt: skip


def test_methods_by_what_channels_are():
    recording = example()
    aligned = recording.align(25)
    times = aligned["joints"].times
    assert aligned["joints"].time_unit == "timedelta64[ns]"
    steps = np.diff(times)
    assert set(steps.tolist()) == {S // 25} and len(aligned) == 1
    ticks = np.asarray(times)
    joints = recording["joints"]
    expected = [np.interp(ticks - START, joints.log_times - START, joints.values[:, c])
                for c in range(3)]  # fmt: skip
    np.testing.assert_allclose(aligned["joints"].values, np.stack(expected, 1), rtol=0, atol=1e-12)
    state = recording["state"]
    held = np.searchsorted(state.log_times, ticks, "right") - 1
    np.testing.assert_array_equal(aligned["state"].values, state.values[held])
    assert aligned["state"].values.dtype == np.int64
    pose = recording["pose"]
    mode = np.searchsorted(pose.log_times, ticks, "right") - 1
    np.testing.assert_array_equal(aligned["pose"].values[:, 5], pose.values[mode, 5])
    direct = rbc.resample(
        pose.values, pose.log_times, ticks,
        method=[(0, 1, "linear"), (1, 4, "slerp"), (5, 1, "previous")],
    )  # fmt: skip
    np.testing.assert_array_equal(aligned["pose"].values, direct)
    assert aligned["pose"].names == pose.names
    assert all(np.array_equal(t.times, times) for t in aligned.tracks.values())


def test_given_methods_and_times():
    recording = example()
    clock = START + np.arange(3, 8) * S
    aligned = recording.align(
        clock, methods={"state": "linear", "joints": "nearest"}, tasks=["test"]
    )
    state = recording["state"]
    expected = np.interp(clock - START, state.log_times - START, state.values[:, 0].astype(float))
    np.testing.assert_allclose(aligned["state"].values[:, 0], expected, rtol=1e-12)
    joints = recording["joints"]
    nearest = np.abs(joints.log_times[None] - clock[:, None]).argmin(axis=1)
    np.testing.assert_array_equal(aligned["joints"].values, joints.values[nearest])
    assert aligned.tasks == ("test",) and aligned.rate is None
    with pytest.raises(KeyError, match="nothing=linear: no such stream"):
        recording.align(10, methods={"nothing": "linear"})


def test_gaps_are_not_filled():
    times = START + np.delete(np.arange(100), range(40, 60)) * (S // 10)
    recording = data.Recording.from_streams([
        stream("a", times, np.arange(80.0)[:, None]),
        stream("b", times + 1, np.arange(80)[:, None]),
    ])  # fmt: skip
    aligned = recording.align(10, max_gap=0.5)
    valid = aligned["valid"]
    assert valid.names == ("a", "b") and valid.values.dtype == bool
    inside = (np.asarray(valid.times) > times[39]) & (np.asarray(valid.times) < times[40])
    assert inside.sum() >= 19
    np.testing.assert_array_equal(valid.values[:, 0], ~inside)
    assert np.isnan(aligned["a"].values[inside]).all()
    assert np.isfinite(aligned["a"].values[~inside]).all()
    assert (aligned["b"].values[~valid.values[:, 1]] == 0).all()
    assert "valid" not in recording.align(10)


def test_union():
    one = stream("a", np.arange(5) * S, np.ones((5, 1)))
    two = stream("b", np.arange(3, 9) * S, np.ones((6, 1)))
    aligned = data.Recording.from_streams([one, two]).align(1, span="union")
    assert aligned["a"].num_rows == 9
    assert aligned["valid"].values[:, 0].tolist() == [True] * 5 + [False] * 4
    assert aligned["valid"].values[:, 1].tolist() == [False] * 3 + [True] * 6


def test_what_is_left_out():
    recording = data.Recording.from_streams([
        stream("a", np.arange(5) * S, np.ones((5, 1))),
        stream("once", np.array([2 * S]), np.full((1, 2), 7.0)),
        stream("empty", np.zeros(0, np.int64), np.zeros((0, 3))),
        stream("text", np.arange(5) * S, np.zeros((5, 0))),
    ])  # fmt: skip
    aligned = recording.align(2)
    assert [(e.place, e.reason) for e in aligned.left_out] == [
        ("empty", "no samples"), ("text", "no channels")
    ]  # fmt: skip
    assert aligned["a"].num_rows == 9 and (aligned["once"].values == 7).all()


def test_no_time_in_common():
    one = stream("a", np.arange(5) * S, np.ones((5, 1)))
    two = stream("b", np.arange(30, 35) * S, np.ones((5, 1)))
    with pytest.raises(ValueError, match="no time in common"):
        data.Recording.from_streams([one, two]).align(10)
    back = stream("c", np.arange(5)[::-1] * S, np.ones((5, 1)), clock="header")
    with pytest.raises(ValueError, match="c: its times go back .clock .header"):
        data.Recording.from_streams([back]).align(10, clock="header")
    with pytest.raises(ValueError, match="is empty|nothing to resample"):
        data.Recording.from_streams([]).align(10)


def test_header_and_log_times():
    times = START + np.arange(20) * S
    values = np.arange(20.0)[:, None]
    both = data.RecordedStream("a", "t", ("x",), values, {"log": times + 5, "header": times}, "ns")
    recording = data.Recording.from_streams([both])
    assert recording.clock() == "header"
    assert recording.align(1)["a"].times[0] == START
    assert recording.align(1, clock="log")["a"].times[0] == START + 5


def test_times_without_a_unit():
    recording = data.Recording.from_streams([
        stream("a", np.arange(10) * 1000, np.arange(10.0)[:, None], unit=None, clock="time")
    ])  # fmt: skip
    with pytest.raises(ValueError, match="unit"):
        recording.align(100)
    assert recording.align(2000, unit="us")["a"].num_rows == 19
    floats = data.Recording.from_streams([
        stream("a", np.arange(10) / 10, np.arange(10.0)[:, None], unit=None, clock="time")
    ])  # fmt: skip
    aligned = floats.align(20)
    np.testing.assert_allclose(aligned["a"].values[:, 0], np.arange(19) / 2, atol=1e-12)


@pytest.mark.parametrize(("own", "told"), [(None, "ms"), ("ms", None), ("ms", "us")])
def test_floats_of_a_unit_become_seconds(own, told):
    """The unit of the recording takes precedence over the argument."""
    times = START / 1e9 + np.arange(100) * 10.5
    recording = data.Recording.from_streams([
        stream("a", times, np.arange(100.0)[:, None], unit=own, clock="time")
    ])  # fmt: skip
    aligned = recording.align(10, unit=told, max_gap=0.02)
    assert aligned["a"].num_rows == 11 and aligned.unit == "s"
    np.testing.assert_allclose(np.diff(aligned["a"].times), 0.1, atol=1e-9)
    assert aligned["valid"].values.all()
    assert not recording.align(10, unit=told, max_gap=0.01)["valid"].values[1:10].all()
    given = recording.align(times[:9], unit=told)
    np.testing.assert_array_equal(given["a"].values[:, 0], np.arange(9))
    np.testing.assert_allclose(given["a"].times, times[:9] / 1000)
    whole = recording.align(np.array([int(times[0]) + 21, int(times[0]) + 42]), unit=told)
    np.testing.assert_allclose(whole["a"].values[:, 0], [2, 4], atol=1e-6)


def test_more_streams_than_a_call_takes():
    streams = [stream(f"s{i}", np.arange(5) * S, np.full((5, 1), float(i))) for i in range(130)]
    streams.append(stream("f32", np.arange(5) * S, np.ones((5, 2), np.float32)))
    aligned = data.Recording.from_streams(streams).align(1)
    assert [aligned[f"s{i}"].values[0, 0] for i in range(130)] == list(range(130))
    assert aligned["f32"].values.dtype == np.float32


@pytest.mark.parametrize("span", ["intersection", "union"])
@pytest.mark.parametrize("unit", ["ns", None])
def test_one_wrong_time_does_not_fill_the_memory(span, unit):
    times = np.arange(5) * S // 100
    times[-1] = START
    times = times if unit else times / S
    wrong = stream("imu", times, np.arange(5.0)[:, None], unit=unit, clock="time")
    with pytest.raises(ValueError, match="imu: its times go from 0 to 1700000000 s") as told:
        data.Recording.from_streams([wrong]).align(10, span=span)
    assert "at 10 Hz is 1.7e+10 rows; sample 4 is 1.7e+09 s after" in str(told.value)
    right = stream("arm", np.arange(9) * (1 if unit is None else S), np.zeros((9, 1)), unit=unit)
    right = data.RecordedStream(
        "arm", "t", ("x",), right.values, {"time": right.log_times.astype(times.dtype)}, unit
    )
    both = data.Recording.from_streams([right, wrong])
    if span == "union":
        with pytest.raises(ValueError, match="imu: its times go"):
            both.align(10, span=span)
    else:
        assert both.align(10)["arm"].num_rows == 81
    track = rbc.Track(np.zeros((5, 1)), [0, 5], times=times)
    with pytest.raises(ValueError, match="episode 0, a: its times go"):
        data.Episodes({"a": track}).align(10, unit=unit)


def test_few_samples_may_become_many_rows():
    recording = data.Recording.from_streams([
        stream("a", np.arange(0, 2) * 3000 * S, np.zeros((2, 1)))
    ])  # fmt: skip
    assert recording.align(1000)["a"].num_rows == 3_000_001


def test_times_at_the_ends_of_64_bits():
    ends = np.array([1 - 2**63, 0, 2**63 - 1])
    recording = data.Recording.from_streams([stream("a", ends, np.zeros((3, 1)))])
    with pytest.raises(ValueError, match="a: its times go from -9223372037 to 9223372037 s"):
        recording.align(10)


def test_a_time_that_is_not_finite():
    times = np.array([0.0, 1.0, np.inf])
    recording = data.Recording.from_streams([stream("a", times, np.zeros((3, 1)), unit=None)])
    with pytest.raises(ValueError, match="a: sample 2 has no time"):
        recording.align(10)


def test_streams_without_times():
    still = data.RecordedStream("still", "t", ("x",), np.zeros((3, 1)), {}, "ns")
    recording = data.Recording.from_streams([stream("a", np.arange(5) * S, np.ones((5, 1))), still])
    with pytest.raises(ValueError, match="still has no times. Name their column with --time"):
        recording.select(end=3)
    assert list(recording.report().streams) == ["a"]
    aligned = recording.align(10)
    assert [str(each) for each in aligned.left_out] == ["still: no column of times"]
    assert list(aligned.tracks) == ["a"]
    with pytest.raises(ValueError, match="nothing to resample: still has no .*--time.*--fps HZ"):
        recording.select(["still"]).align(10)
    assert recording.select(["a"]).align(10)["a"].num_rows == 41


# ---- episodes -----------------------------------------------------------------------------------


def episodes(count=300):
    """Return two tracks with different rates, and frames of a camera."""
    rng = np.random.default_rng(1)
    fast_lengths, slow_lengths = rng.integers(20, 60, count), rng.integers(5, 12, count)
    fast_lengths[7] = 0
    fast = np.concatenate([np.sort(rng.random(n)) * 2 for n in fast_lengths])
    slow = np.concatenate([np.linspace(0.05, 1.9, n) for n in slow_lengths])
    cut = [np.concatenate([[0], np.cumsum(n)]) for n in (fast_lengths, slow_lengths)]
    tracks = {
        "arm": rbc.Track(rng.normal(size=(len(fast), 2)).astype("f4"), cut[0], times=fast),
        "grip": rbc.Track(rng.integers(0, 2, (len(slow), 1)).astype(bool), cut[1], times=slow),
        "camera": rbc.Track(None, cut[1], times=slow, files=[f"{e}.mp4" for e in range(count)]),
    }
    return data.Episodes(tracks, tasks=[f"t{e}" for e in range(count)])


def test_episodes_each_on_its_own_clock():
    given = episodes()
    aligned = given.align(10)
    assert len(aligned) == 300 and aligned.rate == 10 and aligned.tasks == given.tasks
    assert aligned.lengths("arm")[7] == 0
    assert aligned["camera"].files == given["camera"].files
    for e in (0, 1, 7, 255, 256, 299):
        one, before = aligned.select([e]), given.select([e])
        if before["arm"].num_rows == 0:
            assert one["arm"].num_rows == 0
            continue
        arm, grip = before["arm"], before["grip"]
        begin = max(arm.times[0], grip.times[0])
        end = min(arm.times[-1], grip.times[-1])
        times = one["arm"].times
        assert times[0] == begin and times[-1] <= end < times[-1] + 0.1 + 1e-9
        np.testing.assert_allclose(np.diff(times), 0.1, atol=1e-12)
        expected = rbc.resample(arm.values, arm.times, times)
        np.testing.assert_array_equal(one["arm"].values, expected)
        held = np.searchsorted(grip.times, times, "right") - 1
        np.testing.assert_array_equal(one["grip"].values, grip.values[held])
        np.testing.assert_array_equal(one["camera"].times, times)


def test_episodes_without_times():
    track = rbc.Track(np.zeros((4, 1)), [0, 4])
    with pytest.raises(ValueError, match=r"has no times \(track a\).*: open it with rate="):
        data.Episodes({"a": track}).align(10)


def test_episodes_with_gaps():
    times = np.concatenate([np.arange(5) / 10, np.arange(15, 20) / 10])
    track = rbc.Track(np.ones((10, 1)), [0, 10], times=times)
    aligned = data.Episodes({"a": track}).align(10, max_gap=0.5)
    inside = (aligned["a"].times > 0.45) & (aligned["a"].times < 1.45)
    np.testing.assert_array_equal(aligned["valid"].values[:, 0], ~inside)
