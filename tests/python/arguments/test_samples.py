"""Recorded streams, tracks and point clouds as arguments of operations."""

from __future__ import annotations

import datetime
import subprocess
import sys

import numpy as np
import pytest

import robocache as rbc
from robocache import data

MS = 1_000_000  # ns
BEGIN = 1_700_000_000_000 * MS


def recorded(name="arm", unit="ns"):
    values = np.arange(10.0).reshape(5, 2)
    times = {"log": BEGIN + np.arange(5) * 10 * MS}
    return data.RecordedStream(name, "", ("x", "y"), values, times, unit)


def track():
    times = np.array([0, 10, 20, 0, 10], "m8[ms]")
    return rbc.Track(np.arange(10.0).reshape(5, 2), [0, 3, 5], times=times)


def test_resample_a_recorded_stream():
    stream = recorded()
    queries = stream.times()[:-1] + 5 * MS
    expected = rbc.resample(stream.values, stream.times(), queries)
    for given in (queries, queries.tolist(), queries.view("m8[ns]"), queries.view("M8[ns]")):
        np.testing.assert_array_equal(rbc.resample(stream, given), expected)
    np.testing.assert_array_equal(rbc.resample(stream, query_times=queries), expected)
    np.testing.assert_array_equal(rbc.resample(stream, stream.times(), queries), expected)
    out = np.empty((4, 2))
    assert rbc.resample(stream, queries, out=out) is out
    gap = datetime.timedelta(milliseconds=9)
    _, valid = rbc.resample(stream, queries, max_gap=gap, return_valid=True)
    assert not valid.any()


@pytest.mark.parametrize("call", ["rbc.resample(stream, ticks)", "rbc.fuse([stream], ticks)"])
def test_the_first_call_of_a_process_takes_ticks(call):
    code = (
        "import numpy as np, robocache as rbc\n"
        "ticks = np.arange(5) * 10**8\n"
        "values = np.arange(5.0)[:, None]\n"
        "stream = rbc.data.RecordedStream('a', 'test', ('x',), values, {'log': ticks}, 'ns')\n"
        f"assert ({call} == values).all()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_unit_is_never_guessed():
    with pytest.raises(TypeError, match="times of stream arm are timedelta64.ns.; pass whole"):
        rbc.resample(recorded(), [0.5])
    with pytest.raises(TypeError, match="convert both to one unit"):
        rbc.resample(recorded(), np.array([5], "m8[ms]"))
    with pytest.raises(TypeError, match="convert both to one unit"):
        rbc.fuse([recorded(), recorded("b", "us")], [BEGIN])
    plain = recorded(unit=None)  # whole numbers are ticks of any length
    assert rbc.resample(plain, [BEGIN + 5 * MS]).tolist() == [[1, 2]]


def test_a_track_passes_its_arrivals_on():
    plain = track()
    late = np.array([0, 10, 200, 0, 10], "m8[ms]")
    made = rbc.Track(plain.values, [0, 3, 5], times=plain.times.view("m8[ms]"), arrivals=late)
    queries = np.array([5, 20], "m8[ms]")
    options = dict(lag=np.timedelta64(5, "ms"), causal=True)
    expected = rbc.resample(
        plain.values,
        plain.times.view("m8[ms]"),
        queries,
        batch_offsets=[0, 3, 5],
        arrivals=late,
        **options,
    )
    assert expected[0, 1].tolist() == [2, 3]  # the sample of 20 ms had not arrived
    np.testing.assert_array_equal(rbc.resample(made, queries, **options), expected)
    stream = rbc.Stream(plain.values, plain.times.view("m8[ms]"), batch_offsets=[0, 3, 5])
    joined = rbc.fuse([stream], queries)
    assert rbc.fuse([made], queries, lag=options["lag"])[0, 1].tolist() == [2, 3]
    assert joined[0, 1].tolist() == [4, 5]
    with pytest.raises(ValueError, match="arrivals: the track has its own"):
        rbc.resample(made, queries, arrivals=late)
    with pytest.raises(ValueError, match="times: the track has arrivals"):
        rbc.resample(made, late, queries)


def test_resample_a_track():
    expected = [[[1, 2]], [[7, 8]]]
    assert rbc.resample(track(), np.array([5], "m8[ms]")).tolist() == expected
    assert rbc.resample(track(), [5]).tolist() == expected
    assert rbc.resample(track(), np.array([[5], [10]])).tolist() == [[[1, 2]], [[8, 9]]]
    torch = pytest.importorskip("torch")
    held = rbc.Track(torch.arange(10.0).reshape(5, 2), [0, 3, 5], times=track().times)
    result = rbc.resample(held, torch.tensor([5]))
    assert result.tolist() == expected and isinstance(result, torch.Tensor)


def test_what_is_missing_or_twice_is_named():
    with pytest.raises(TypeError, match="query_times: are missing"):
        rbc.resample(recorded())
    with pytest.raises(ValueError, match="batch_offsets: the track has its own"):
        rbc.resample(track(), [5], batch_offsets=[0, 5])
    with pytest.raises(ValueError, match="batch_offsets: the track has its own"):
        rbc.statistics(track(), batch_offsets=[0, 5])
    with pytest.raises(ValueError, match="the track has no times; pass them"):
        rbc.resample(rbc.Track(np.zeros((3, 1)), [0, 3]), [0.5])
    video = rbc.Track(None, [0, 3], files=["a.mp4"])
    with pytest.raises(ValueError, match="the track has no values: they are in files"):
        rbc.statistics(video)
    with pytest.raises(TypeError, match="query_times: is None"):
        rbc.resample(np.zeros((3, 1)), np.arange(3.0))


def test_fuse():
    first, second = recorded(), recorded("b")
    queries = first.times() + MS
    expected = rbc.fuse([first.stream(), second.stream()], queries.view("m8[ns]"))
    np.testing.assert_array_equal(rbc.fuse([first, second], queries), expected)
    np.testing.assert_array_equal(rbc.fuse([first, second.stream()], queries), expected)
    assert rbc.fuse([track(), track()], [5]).tolist() == [[[1, 2, 1, 2]], [[7, 8, 7, 8]]]


def test_statistics():
    whole = rbc.statistics(recorded().values)
    for given in (recorded(), track()):
        assert repr(rbc.statistics(given)) == repr(whole)
        counted = rbc.StatisticsAccumulator(2)
        while True:
            counted.update(given)
            if not counted.next_pass():
                break
        assert repr(counted.result()) == repr(whole)
    assert rbc.statistics(track(), per_row=True).mean.tolist() == [[2, 3], [7, 8]]


def test_point_clouds():
    axes = np.random.default_rng(0).uniform(0, 2, (3, 50)).astype("f4")
    cloud = data.PointCloud("a.pcd", dict(zip("xyz", axes)), 50)
    grid = {"origin": (0, 0, 0), "voxel_size": 1.0, "shape": (2, 2, 2)}
    for run in (
        lambda points: rbc.voxelize(points, **grid),
        lambda points: rbc.voxelize(points, reduction="mean", **grid),
        lambda points: rbc.voxelize_sparse(points, **grid).trimmed().features,
        lambda points: rbc.voxelize_tsdf(points, sensors=[0.0, 0, 0], truncation=1.0, **grid)[0],
        lambda points: rbc.farthest_points(points, 5),
        lambda points: rbc.statistics(points).mean,
    ):
        np.testing.assert_array_equal(run(cloud), run(axes.T))


def test_times_keep_their_unit():
    stream = recorded()
    assert stream.time_unit == "timedelta64[ns]" == str(stream.times(with_unit=True).dtype)
    assert stream.times().dtype == "int64" and recorded(unit=None).time_unit is None
    assert recorded(unit=None).times(with_unit=True).dtype == "int64"
    assert rbc.Track(stream.values, [0, 5], times=stream.times(with_unit=True)).time_unit
    aligned = data.Recording.from_streams([stream]).align(50)
    assert aligned["arm"].time_unit == "timedelta64[ns]"
