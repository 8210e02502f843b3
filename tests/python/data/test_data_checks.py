"""Checks: planted faults are found, and clean data have no findings."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import data_files
import robocache as rbc
from robocache._episodes.episodes import make_episodes
from robocache._episodes.lazy_tracks import About

data = rbc.data
checks = rbc.data.checks
S = 10**9
START = 1_700_000_000 * S


def clean(n=400):
    """100 Hz with a little jitter, header 2 ms before the log."""
    rng = np.random.default_rng(0)
    log = START + np.arange(n) * 10_000_000 + rng.integers(0, 500_000, n)
    values = rng.normal(size=(n, 7))
    values[:, 3:] /= np.linalg.norm(values[:, 3:], axis=1, keepdims=True)
    return values, log, log - 2_000_000


NAMES = ("p.x", "p.y", "p.z", "q.x", "q.y", "q.z", "q.w")


def found(values, log, header=None, names=NAMES, **options):
    """Return the findings of a recording of one stream, except notes of latency."""
    clocks = {"log": log} if header is None else {"log": log, "header": header}
    stream = data.RecordedStream("s", "test", names, values, clocks, "ns")
    told = checks.check(data.Recording.from_streams([stream]), **options)
    return [finding for finding in told if finding.kind != "latency"]


def one(findings, severity, kind, text, place=None):
    """Check that there is exactly this finding."""
    assert [(f.severity, f.kind) for f in findings] == [(severity, kind)], findings
    assert text in findings[0].text
    if place is not None:
        assert findings[0].place == place


def test_nothing_is_found_in_what_is_clean():
    assert found(*clean()) == []
    assert found(*clean()[:2]) == []


def test_gaps():
    values, log, header = clean()
    kept = np.delete(np.arange(400), range(100, 150))
    told = found(values[kept], log[kept], header[kept])
    one(told, "warning", "gaps", "1 gap of more than 25", "header times")
    assert "sample 100" in told[0].text
    assert found(values[kept], log[kept], max_gap=1) == []
    one(found(values, log, max_gap=0.0101), "warning", "gaps", "gaps of more than 10.1 ms")


def test_jitter_and_bursts():
    values, log, _ = clean()
    rng = np.random.default_rng(1)
    one(found(values, np.sort(log + rng.integers(0, 8_000_000, 400))), "warning", "jitter",
        "intervals vary by")  # fmt: skip
    bursts = START + (np.arange(400) // 4) * 40_000_000 + (np.arange(400) % 4) * 500_000
    one(found(values, bursts), "warning", "jitter", "comes in bursts")
    assert found(values[:9], bursts[:9])[0].severity == "note"


def test_repeats_and_times_that_go_back():
    values, log, header = clean()
    header[50] = header[49]
    one(
        found(values, log, header), "warning", "repeats", "1 of 400 stamps is equal", "header times"
    )
    header = clean()[2]
    header[[50, 51]] = header[[51, 50]]
    told = found(values, log, header)
    assert told[0].kind == "order" and told[0].severity == "error"
    assert "time goes back once" in told[0].text and "sample 51" in told[0].text


def test_stamps_of_zero_and_of_another_clock():
    values, log, header = clean()
    one(found(values, log, header * 0), "warning", "zero_stamps", "400 of 400 stamps are 0")
    one(found(values, log, header - 5 * 10**6 * S), "warning", "clock", "5e+06 s behind")


def test_drift():
    values, log, header = clean()
    ahead = header + np.arange(400) * 50_000  # 20 ms in 4 s
    one(found(values, log, ahead), "warning", "drift", "header stamps drift by", "header times")
    assert "+50" in found(values, log, ahead)[0].text or "ppm" in found(values, log, ahead)[0].text


def test_channels():
    values, log, _ = clean()
    values[:, 1] = 3
    one(found(values, log), "warning", "constant", "(p.y): never changes, at 3", "p.y")
    one(
        found(np.ones((400, 2)), log, names=("a", "b")),
        "warning",
        "constant",
        "constant: none of its 2",
    )
    named = ("a", "covariance[0]")
    told = found(np.stack([clean()[0][:, 0], np.zeros(400)], 1), log, names=named)
    one(told, "note", "constant", "never changes")
    sizes = found(np.full((400, 2), 480), log, names=("height", "width"))
    one(sizes, "note", "constant", "constant: none of its 2")


def test_the_unit_that_episodes_tell_is_the_one_that_holds():
    """Float times are in seconds; ``unit`` is only for times that do not state their unit."""
    track = rbc.Track(np.zeros((40, 1)), [0, 20, 40], times=np.tile(np.arange(20) / 16, 2))
    episodes = make_episodes({"arm": track}, about=About("a set", unit="s"))
    survey = checks.survey(episodes, unit="ms", max_gap=0.04)
    gaps = [finding.text for finding in survey.findings if finding.kind == "gaps"]
    assert survey.unit == "s" and "the longest is 62.5 ms" in gaps[0]
    for report in (survey.report(unit="ms"), episodes.report(unit="ms")):
        assert report.streams["arm"].rate == pytest.approx(16)
    assert episodes.align(16, unit="ms")["arm"].num_rows == 40
    ticks = rbc.Track(np.zeros((3, 1)), [0, 3], times=np.array([0, 500, 1000]))
    whole = make_episodes({"arm": ticks}, about=About("a set", unit="ms"))
    assert whole.align(10, unit="s")["arm"].num_rows == 11


@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_large_integers_change_by_less_than_floats_tell(dtype):
    log = clean()[1]
    top = int(np.iinfo(dtype).max)
    values = np.array([[top - i, top] for i in range(400)], dtype)
    told = found(values, log, names=("id", "same"))
    one(told, "warning", "constant", "1 of 2 channels (same): never changes", "same")
    pieces = [checks.Channels("s", ("id", "same"), 2) for _ in range(2)]
    pieces[0].add(values)
    for row in values:
        pieces[1].add(row[None])
    assert pieces[0].findings() == pieces[1].findings()


def test_nan():
    values, log, _ = clean()
    values[[3, 9], 0] = np.nan, np.inf
    one(found(values, log), "warning", "nan", "up to 2 of 400 values", "p.x")
    values[:, 0] = np.nan
    one(found(values, log), "error", "nan", "no value is finite", "p.x")


def test_quaternions():
    values, log, _ = clean()
    values[200, 3:] *= 1.25
    one(found(values, log), "warning", "quaternion", "by up to 0.25 at sample 200", "q")
    values[7, 3:] = 0
    kinds = [f.text for f in found(values, log)]
    assert "1 of 400 quaternions is 0" in kinds and any(
        "1 of 400 quaternions differs" in k for k in kinds
    )


@pytest.mark.parametrize(
    ("names", "track", "begins"),
    [
        (NAMES, "", [3]),
        (("a.qw", "a.qx", "a.qy", "a.qz"), "", [0]),
        (("o.x", "o.y", "o.z"), "", []),
        (("x", "y", "z", "w", "x2"), "", [0]),
        (None, "obs/eef_quat", [0]),
        (None, "observation.orientation", [0]),
        (None, "action", []),
    ],
)
def test_where_quaternions_are(names, track, begins):
    assert checks.quaternions_of(names, len(names or range(4)), track) == begins


def test_streams_that_begin_late():
    values, log, _ = clean(1000)
    streams = [
        data.RecordedStream("a", "t", ("x",), values[:, :1], {"log": log}, "ns"),
        data.RecordedStream("b", "t", ("x",), values[600:, :1], {"log": log[600:]}, "ns"),
        data.RecordedStream("c", "t", ("x",), values[:0, :1], {"log": log[:0]}, "ns"),
    ]
    told = checks.check(data.Recording.from_streams(streams))
    assert {(f.severity, f.kind, f.stream) for f in told} == {
        ("note", "empty", "c"),
        ("note", "span", "b"),
    }
    assert any("begins 6 s after the first stream" in f.text for f in told)


def test_pieces_give_the_same(tmp_path):
    """A file read piece by piece has the findings of the same data in memory."""
    pytest.importorskip("rosbags")
    store = data_files.typestore(ros1=True)
    path = data_files.write_ros1(tmp_path / "x", data_files.messages(store, 500), store)
    streamed = checks.survey(data.open(path))
    loaded = checks.survey(data.open(path).load())
    assert streamed.findings == loaded.findings and len(streamed.findings) > 3
    for name, stream in loaded.streams.items():
        other = streamed.streams[name]
        assert other.samples == stream.samples
        for part in ("count", "low", "high"):
            a, b = getattr(other.channels, part), getattr(stream.channels, part)
            assert (a is None and b is None) or np.array_equal(a, b)
    assert str(streamed.report()) == str(loaded.report())
    assert json.dumps([finding.to_dict() for finding in streamed.findings])


# ---- episodes -----------------------------------------------------------------------------------


def test_statistics_that_are_not_those_of_the_data(tmp_path):
    pytest.importorskip("pyarrow")
    data_files.write_lerobot(tmp_path / "x", (50, 40))
    episodes = data.open(tmp_path / "x")
    exact = episodes.statistics()
    rbc.statistics_files.write_lerobot(tmp_path / "x/meta/stats.json", exact)
    assert not [f for f in checks.check(data.open(tmp_path / "x")) if f.kind == "statistics"]
    told = json.loads((tmp_path / "x/meta/stats.json").read_text())
    told["action"]["std"][1] *= 1.1
    told["action"]["q99"][0] += 0.5
    told["action"]["count"] = [91]
    (tmp_path / "x/meta/stats.json").write_text(json.dumps(told))
    findings = [f for f in checks.check(data.open(tmp_path / "x")) if f.kind == "statistics"]
    assert [(f.stream, f.place, f.severity) for f in findings] == [
        ("action", "count", "error"), ("action", "right", "error"), ("action", "left", "error")
    ]  # fmt: skip
    assert findings[0].text == "count is stored as 91, but 90 values are finite"
    assert f"{exact['action'].std[1]:.9g}" in findings[1].text and "std" in findings[1].text


@pytest.mark.parametrize("key", ["min", "max", "mean", "std", "q99"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_stored_statistics_that_are_no_numbers(key, value):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(50, 3))
    values[:, 2] = np.nan  # a channel without statistics
    exact = rbc.statistics(values, quantiles=(0.01, 0.99))
    assert checks.check_statistics("a", exact, exact) == []
    arrays = {name: getattr(exact, name).copy() for name in ("min", "max", "mean", "std")}
    arrays["quantiles"] = exact.quantiles.copy()
    (arrays["quantiles"][1] if key == "q99" else arrays[key])[1] = value
    stored = dataclasses.replace(exact, **arrays)
    (finding,) = checks.check_statistics("a", stored, exact, ("x", "y", "z"))
    assert (finding.severity, finding.kind, finding.place) == ("error", "statistics", "y")
    assert finding.text.startswith(f"{key} is stored as {value}, but the data have ")


def test_ranges_that_a_file_does_not_store(tmp_path):
    exact = rbc.statistics(np.random.default_rng(0).normal(size=(50, 2)), quantiles=(0.01, 0.99))
    rbc.statistics_files.write_openpi(tmp_path / "norm_stats.json", {"actions": exact})
    stored = rbc.statistics_files.read_openpi(tmp_path / "norm_stats.json")["actions"]
    assert np.isnan(stored.min).all() and checks.check_statistics("a", stored, exact) == []


def test_times_that_are_not_those_of_the_rate(tmp_path):
    pytest.importorskip("pyarrow")
    columns = data_files.lerobot_columns((30, 40))
    columns["timestamp"][35:] += 0.04
    data_files.write_lerobot(tmp_path / "x", (30, 40), columns=columns)
    told = [f for f in checks.check(data.open(tmp_path / "x")) if f.kind == "rate"]
    assert told[0].place == "episode 1" and "up to 40 ms from frame / 10 Hz" in told[0].text


def test_damage_is_a_finding(tmp_path):
    pytest.importorskip("pyarrow")
    data_files.write_lerobot(tmp_path / "x")
    (tmp_path / "x/data/chunk-001/episode_000002.parquet").unlink()
    told = checks.check(data.open(tmp_path / "x", damaged="keep"))
    assert told[0].kind == "damage" and "episode_000002.parquet" in told[0].place
    assert {"empty"} <= {f.kind for f in told}


def test_gaps_of_episodes():
    times = np.concatenate([np.arange(30) / 10, np.delete(np.arange(30), range(10, 15)) / 10])
    track = rbc.Track(np.random.default_rng(0).normal(size=(55, 1)), [0, 30, 55], times=times)
    told = checks.check(data.Episodes({"a": track}), unit="s")
    assert [(f.kind, f.stream) for f in told] == [("gaps", "a")]
    assert "600 ms at episode 1, sample 10" in told[0].text


def test_the_real_ones(recordings):
    """The findings agree with the notes about each recording."""
    pytest.importorskip("rosbags")
    pytest.importorskip("pyarrow")

    def kinds(name):
        return {(f.stream, f.kind) for f in checks.check(data.open(recordings / name))}

    wanted = {
        "lerobot_v3_so101": {("observation.state", "statistics"), ("action", "constant")},
        "lerobot_v21_cr5": {("observation.state", "rate")},
        "ros2_db3_gps_nav/bag": {("/vehicle_pose", "zero_stamps"), ("/odometry", "clock"),
                                 ("/gps", "clock"), ("/vehicle_pose", "span")},
        "ros2_mcap_crazyflie_vicon/fly90bag": {
            ("/vicon/Group466CF/Group466CF/pose", "gaps"), ("/cf_controll", "quaternion")},
        "ros2_mcap_crab_custom/adya_gait": {("/servo/position_data", "jitter"),
                                            ("/load_cell_data", "gaps")},
        "ros1_robot_localization/test2.bag": {("/jackal_velocity_controller/odom", "repeats")},
    }  # fmt: skip
    for name, expected in wanted.items():
        if (recordings / name).exists():
            assert expected <= kinds(name), name
