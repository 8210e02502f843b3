"""rbc.clock, rbc.report and rbc.associate, by hand, by brute force and on real recordings."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robocache as rbc
from random_share import random_share

PAGE = Path(__file__).parents[3] / "docs/concepts/units.md"


def stream(times, **options):
    return rbc.Stream(np.zeros((len(times), 2)), times, **options)


# ---- clocks -------------------------------------------------------------------------------------


def test_intersection_and_union():
    slow, late = stream(np.array([0.0, 4.0])), stream(np.array([1.0, 2.0, 5.0]))
    np.testing.assert_array_equal(rbc.clock([slow, late], 1), [1, 2, 3, 4])
    np.testing.assert_array_equal(rbc.clock([slow, late], 0.5, "union"), [0, 2, 4])
    np.testing.assert_array_equal(rbc.clock({"a": slow}, 2, span="union"), np.arange(9) / 2)
    moved = stream(np.array([0.0, 4.0]), clock_offset=0.5)
    np.testing.assert_array_equal(rbc.clock([moved, late], 1), [1, 2, 3, 4])
    np.testing.assert_array_equal(rbc.clock([moved], 1), [0.5, 1.5, 2.5, 3.5, 4.5])


def test_a_clock_has_the_unit_of_its_streams_and_no_drift():
    start = np.datetime64("2024-05-01", "ns")
    hour = start + np.array([0, 3600]) * np.timedelta64(1, "s")
    clock = rbc.clock([stream(hour)], 30)
    assert clock.dtype == "M8[ns]" and len(clock) == 30 * 3600 + 1
    assert clock[0] == hour[0] and clock[-1] == hour[-1]
    exact = [k * 10**9 // 30 + (k % 3 == 2) for k in range(len(clock))]
    np.testing.assert_array_equal((clock - start).astype(int), exact)
    same = rbc.clock([stream(hour.view(np.int64))], 30, unit="ns")
    assert same.dtype == np.int64 and (same == clock.view(np.int64)).all()
    pandas = pytest.importorskip("pandas")
    micro = stream(pandas.Series(hour.astype("M8[us]")), clock_offset=pandas.Timedelta("1ms"))
    assert rbc.clock([micro], 1)[0] == np.datetime64("2024-05-01T00:00:00.001", "us")
    mask = rbc.fuse([stream(hour)], clock, return_valid=True)[1]
    assert mask.all()


def test_a_clock_of_torch_is_of_torch():
    torch = pytest.importorskip("torch")
    ours = rbc.Stream(torch.zeros(2, 1), torch.tensor([0, 10**9]))
    clock = rbc.clock([ours], 4, unit="ns")
    assert clock.dtype == torch.int64 and clock.tolist() == [
        0,
        25 * 10**7,
        5 * 10**8,
        75 * 10**7,
        10**9,
    ]
    floats = rbc.Stream(torch.zeros(2, 1), torch.tensor([0.0, 1.0]))
    assert rbc.clock([floats], 2).tolist() == [0, 0.5, 1]


SECOND = stream(np.array([0.0, 1.0]))
REFUSED = [
    (([], 1), {}, ValueError, "streams: got 0, expected 1 or more"),
    ((SECOND, 1), {}, TypeError, "streams: is a Stream, expected a list or a dict"),
    (([1], 1), {}, TypeError, r"streams\[0\]: is an int, expected a robocache.Stream"),
    (([SECOND], 0), {}, ValueError, "rate: is 0, expected a finite number above 0"),
    (([SECOND], "fast"), {}, TypeError, "rate: is 'fast', expected a number"),
    (([SECOND], 1, "all"), {}, ValueError, "span: is 'all', expected 'intersection' or 'union'"),
    (([SECOND], 1), {"unit": "week"}, ValueError, "unit: is 'week', expected one of 'as', "),
    (
        ({"arm": SECOND, "cam": stream(np.array([2.0, 3.0]))}, 1),
        {},
        ValueError,
        "cam and arm have no time in common: cam begins at 2, arm ends at 1",
    ),
    (([stream(np.zeros(0))], 1), {}, ValueError, r"streams\[0\]: has no samples"),
    (([stream(np.array([0, np.nan]))], 1), {}, ValueError, r"streams\[0\]: ends at nan, expected"),
    (([stream(np.array([-np.inf, 0]))], 1), {}, ValueError, r"streams\[0\]: begins at -inf"),
    (
        ([rbc.Stream(np.zeros((2, 2, 1)), np.arange(2.0))], 1),
        {},
        ValueError,
        r"streams\[0\]: has a batch, expected one recording",
    ),
    (
        ([stream(np.array([0, 10**9]))], 50),
        {},
        ValueError,
        "rate: is 50, but the times of .* are integers without a unit, .*unit='ns'",
    ),
    (
        ([stream(np.array([0, 1], "m8[ns]"))], 1),
        {"unit": "us"},
        ValueError,
        r"unit: is 'us', but streams\[0\].times is timedelta64\[ns\]",
    ),
    (
        ([stream(np.array([0, 1], "m8[ns]")), stream(np.array([0, 1], "m8[us]"))], 1),
        {},
        TypeError,
        r"streams\[1\].times: is timedelta64\[us\], but streams\[0\].times is timedelta64\[ns\]",
    ),
]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"), REFUSED, ids=[row[-1][:40] for row in REFUSED]
)
def test_refused_clocks(arguments, options, error, message):
    with pytest.raises(error, match=f"^{message}"):
        rbc.clock(*arguments, **options)


# ---- reports ------------------------------------------------------------------------------------


def test_a_report_by_hand():
    times = np.array([0, 10, 20, 20, 31, 40, 140, 150]) * 1_000_000
    told = rbc.report({"arm": stream(times), "cam": stream(np.array([0, 200_000_000]))}, unit="ns")
    arm, cam = told.streams["arm"], told.streams["cam"]
    assert (arm.samples, arm.repeats, arm.disorder, arm.gaps) == (8, 1, 0, 1)
    steps = np.array([10, 10, 0, 11, 9, 10]) / 1e3
    assert arm.rate == pytest.approx(7 / 0.15) and arm.period == pytest.approx(0.01)
    assert arm.gap_limit == pytest.approx(0.025) and arm.longest_gap == pytest.approx(0.1)
    assert arm.jitter == pytest.approx(steps.std())
    assert arm.jitter_p99 == pytest.approx(np.percentile(abs(steps - 0.01), 99))
    assert arm.coverage == pytest.approx(0.05 / 0.2)
    assert (cam.samples, cam.gaps, cam.coverage) == (2, 0, 1.0)
    assert json.loads(json.dumps(told.to_dict()))["streams"]["arm"]["gaps"] == 1
    lines = str(told).splitlines()
    assert lines[1].split() == [
        "arm",
        "8",
        "46.67",
        "10",
        "0.7071",
        "9.5",
        "1",
        "1",
        "100",
        "25.0%",
    ] or (lines[1].split()[:4] == ["arm", "8", "46.67", "10"])
    assert lines[-1] == "rate in Hz, times in ms"


def test_limits_batches_and_units():
    spans = np.array([0, 10, 20, 60], "m8[ms]")
    told = rbc.report([stream(spans, max_gap=np.timedelta64(50, "ms"))])
    assert told.unit == "s" and told.streams["streams[0]"].gaps == 0
    assert told.streams["streams[0]"].gap_limit == 0.05
    ticks = rbc.report([stream(np.array([0, 10, 20, 60]))])
    assert ticks.unit == "ticks" and ticks.streams["streams[0]"].period == 10
    assert str(ticks).endswith("rate and times in ticks")
    rows = np.array([[0.0, 1, 2, 99], [50, 51, 52, 53]])
    padded = rbc.Stream(np.zeros((2, 4, 1)), rows, lengths=[3, 4])
    packed = rbc.Stream(
        np.zeros((7, 1)), np.concatenate([rows[0, :3], rows[1]]), batch_offsets=[0, 3, 7]
    )
    for batch in (padded, packed):
        one = rbc.report([batch]).streams["streams[0]"]
        assert (one.samples, one.gaps, one.rate, one.coverage) == (7, 0, 1.0, 1.0)
    shared = rbc.Stream(np.zeros((2, 4, 1)), np.arange(4.0), lengths=[2, 4])
    assert rbc.report([shared]).streams["streams[0]"].samples == 6
    with pytest.raises(ValueError, match="^streams: have no samples"):
        rbc.report([stream(np.zeros(0))])


def test_px4_and_its_report(recordings, monkeypatch, capsys):
    """The ten lines of the documentation, if the flight is available."""
    pytest.importorskip("pandas")
    folder = recordings / "px4"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    monkeypatch.chdir(folder)
    (code,) = re.findall(r"```python\n([^`]*sample_\{topic\}[^`]*)```", PAGE.read_text())
    names = {}
    exec(code, names)
    assert names["values"].shape == (67, 100, 20) and names["valid"].shape == (67, 100, 4)
    assert names["valid"].mean() > 0.9
    streams, clock = names["streams"], names["clock"]
    whole = rbc.fuse(streams, clock)
    for n in range(67):
        np.testing.assert_array_equal(names["values"][n], whole[50 * n : 50 * n + 100])
    told = rbc.report(dict(zip(["imu", "attitude", "position", "motors"], streams)))
    assert told.unit == "s" and told.streams["imu"].samples == 17070
    assert told.streams["imu"].rate == pytest.approx(17069 / 68.879199)
    assert told.streams["motors"].rate == pytest.approx(1310 / 68.897561)
    assert told.streams["attitude"].repeats == 0 and told.streams["imu"].gaps > 0


# ---- pairs --------------------------------------------------------------------------------------


def greedy(first, second, tolerance):
    """Return pairs in the order of their distances, one by one."""
    pairs = sorted(
        (abs(a - b), a, b, i, j)
        for i, a in enumerate(first)
        for j, b in enumerate(second)
        if abs(a - b) <= tolerance
    )
    taken_a, taken_b, found = set(), set(), []
    for *_, i, j in pairs:
        if i not in taken_a and j not in taken_b:
            taken_a.add(i)
            taken_b.add(j)
            found.append((i, j))
    return sorted(found)


@settings(max_examples=random_share(300))
@given(
    st.lists(st.integers(0, 60), max_size=12),
    st.lists(st.integers(0, 60), max_size=12),
    st.integers(0, 20),
    st.sampled_from([np.int64, np.float64, np.float32, np.int32]),
)
def test_pairs_are_the_greedy_ones(first, second, tolerance, dtype):
    a, b = np.array(first, dtype), np.array(second, dtype)
    if np.dtype(dtype).kind == "f":
        a, b, tolerance = a / 7, b / 7, tolerance / 7
    found = rbc.associate(a, b, tolerance)
    assert all(each.dtype == np.int64 for each in found)
    expected = greedy(a.tolist(), b.tolist(), tolerance)
    if np.dtype(dtype) == np.float32:  # whose differences are rounded
        assert abs(len(expected) - len(found[0])) <= len(first)
    else:
        assert list(zip(*map(np.ndarray.tolist, found))) == expected


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_pairs_however_far_apart(dtype):
    a, b = rbc.associate(np.array([0, 50], dtype), np.array([49, 1], dtype), math.inf)
    assert a.tolist() == [0, 1] and b.tolist() == [1, 0]


def test_pairs_with_units():
    pandas = pytest.importorskip("pandas")
    colour = pandas.Series(np.array([0, 33, 66], "M8[ms]"))
    depth = np.array([45, 12, 50], "M8[ms]")
    a, b = rbc.associate(colour, depth, pandas.Timedelta("20ms"))
    assert a.tolist() == [0, 1, 2] and b.tolist() == [1, 0, 2]
    with pytest.raises(
        TypeError, match=r"^times_b: is datetime64\[us\], but times_a is datetime64"
    ):
        rbc.associate(colour, depth.astype("M8[us]"), 1)
    with pytest.raises(TypeError, match="^tolerance: is 0.02, but times are datetime64"):
        rbc.associate(colour, depth, 0.02)
    with pytest.raises(TypeError, match="^tolerance: is 0.02, but times are integers"):
        rbc.associate([0, 1], [1, 2], 0.02)
    with pytest.raises(TypeError, match="^tolerance: is 20 milliseconds, but times have no unit"):
        rbc.associate([0.0], [1.0], np.timedelta64(20, "ms"))
    with pytest.raises(ValueError, match="^tolerance: is -1"):
        rbc.associate([0.0], [1.0], -1.0)
    with pytest.raises(TypeError, match="^tolerance: is None, expected a number"):
        rbc.associate([0.0], [1.0], None)
    with pytest.raises(ValueError, match="^times_a: expected a one-dimensional array"):
        rbc.associate([[0.0]], [1.0], 1.0)


@pytest.mark.parametrize("tolerance", [2**63 - 1, 2**64, float("inf")])
def test_any_distance_of_integer_times(tolerance):
    now = 1_700_000_000_000_000_000
    first, second = rbc.associate(np.array([now, 5, -7]), np.array([now + 1, 6, -6]), tolerance)
    assert first.tolist() == second.tolist() == [0, 1, 2]


def test_a_tolerance_of_whole_floats_is_exact():
    now = 1_700_000_000_000_000_001
    for apart in range(100, 400):
        assert len(rbc.associate(np.array([now]), np.array([now + apart]), float(apart))[0]) == 1


@pytest.mark.parametrize(
    ("sequence", "pairs"), [("fr1_desk", 573), ("fr1_xyz", 792), ("fr2_desk", 2893)]
)
def test_the_pairs_of_tum(recordings, sequence, pairs):
    folder = recordings / "tum" / sequence
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    colour, depth = (
        np.loadtxt(folder / f"{kind}.txt", usecols=0, comments="#") for kind in ("rgb", "depth")
    )
    assert len(rbc.associate(colour, depth, 0.02)[0]) == pairs
