"""Saving: round trips keep every value and stamp, and no output is half-written."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys

import numpy as np
import pytest

import data_files
import robocache as rbc

data = rbc.data
PACKAGES = {"npz": [], "zarr": ["zarr"], "lerobot": ["pyarrow"]}
START = 1_700_000_000_123_456_789


@pytest.fixture(params=list(PACKAGES))
def format(request):
    for package in PACKAGES[request.param]:
        pytest.importorskip(package)
    return request.param


def recording():
    rng = np.random.default_rng(0)
    log = START + np.cumsum(rng.integers(1, 10**7, 40))
    stream = data.RecordedStream
    return data.Recording.from_streams([
        stream("/imu/data", "Imu", ("x", "y"), rng.normal(size=(40, 2)),
               {"log": log, "header": log - 5}, "ns", ("float64", "float32")),
        stream("/imu data", "Int", ("n",), rng.integers(-2**62, 2**62, (9, 1)),
               {"log": log[:9]}, "ns"),
        stream("../../etc", "zeros", ("a",), np.zeros((5, 1), np.float16), {"time": np.zeros(5)}),
        stream("flags", "bool", (), np.zeros((7, 0), bool), {"log": log[:7]}, "ns"),
        stream("empty", "none", ("a", "b"), np.zeros((0, 2), np.uint8), {"log": log[:0]}, "ns"),
    ])  # fmt: skip


def episodes(shared=True):
    """Return three episodes with stamps that float32 would round."""
    rng = np.random.default_rng(1)
    cuts = [0, 4, 9, 11]
    even = np.rint(np.arange(11) * 1e9 / 30).astype(np.int64)  # LeRobot accepts no other rows
    times = (START + even + rng.integers(-1000, 1000, 11)).view("timedelta64[ns]")
    tracks = {
        "observation.state": rbc.Track(rng.normal(size=(11, 3)), cuts, times=times,
                                       names=["a", "b", "ü"]),
        "action/left": rbc.Track(rng.normal(size=(11, 2)).astype("f4"), cuts, times=times),
        "grip": rbc.Track(rng.random((11, 1)) < 0.5, cuts, times=times),
        "count": rbc.Track(rng.integers(-2**60, 2**60, (11, 1)), cuts, times=times),
    }  # fmt: skip
    if not shared:
        tracks["fast"] = rbc.Track(rng.normal(size=(20, 1)), [0, 8, 8, 20], times=np.arange(20.0))
        tracks["camera"] = rbc.Track(None, cuts, times=times, files=["a.mp4", ("b.mp4", 0.5), None])
    return data.Episodes(tracks, tasks=["open it", None, "close it"])


def same_recording(one, other):
    assert one.names == other.names
    for name in one.names:
        a, b = one[name], other[name]
        assert (a.kind, a.names, a.unit, a.dtypes) == (b.kind, b.names, b.unit, b.dtypes)
        assert a.values.dtype == b.values.dtype and a.values.shape == b.values.shape
        np.testing.assert_array_equal(a.values, b.values)
        assert list(a.clocks) == list(b.clocks)
        for clock in a.clocks:
            assert a.clocks[clock].dtype == b.clocks[clock].dtype
            np.testing.assert_array_equal(a.clocks[clock], b.clocks[clock])


def same_episodes(one, other):
    assert dict(one.tracks) == dict(other.tracks) and one.tasks == other.tasks


@pytest.mark.parametrize("kind", ["npz", "zarr"])
def test_recordings(tmp_path, kind):
    for package in PACKAGES[kind]:
        pytest.importorskip(package)
    path = tmp_path / "a file ü"
    given = recording()
    assert given.save(path, kind) == ()
    same_recording(given, data.open(path))
    assert os.listdir(tmp_path) == ["a file ü"]
    assert not (tmp_path.parent / "etc").exists()


def test_recordings_are_no_lerobot(tmp_path):
    pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match=r"use recording.align\(rate\)"):
        recording().save(tmp_path / "x", "lerobot")
    assert os.listdir(tmp_path) == []


def test_episodes(tmp_path, format):
    given = episodes()
    assert given.save(tmp_path / "x", format) == ()
    same_episodes(given, data.open(tmp_path / "x"))


def test_episodes_without_times_or_tasks(tmp_path, format):
    given = data.Episodes({"a": rbc.Track(np.arange(10.0).reshape(5, 2), [0, 2, 5])})
    if format == "lerobot":
        with pytest.raises(ValueError, match="needs a frame rate: open the data set with"):
            given.save(tmp_path / "x", format)
        return
    given.save(tmp_path / "x", format)
    same_episodes(given, data.open(tmp_path / "x"))


def test_tracks_of_different_rates(tmp_path, format):
    given = episodes(shared=False)
    if format == "npz":
        given.save(tmp_path / "x", format)
        same_episodes(given, data.open(tmp_path / "x"))
        return
    with pytest.raises(ValueError, match="fast has other"):
        given.save(tmp_path / "x", format)
    assert os.listdir(tmp_path) == []


def test_an_aligned_recording_as_lerobot(tmp_path):
    pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)
    log = START + np.arange(200) * 10_000_000
    streams = [
        data.RecordedStream("/arm", "t", ("a", "b"), rng.normal(size=(200, 2)), {"log": log}, "ns"),
        data.RecordedStream(
            "/grip", "t", ("g",), rng.integers(0, 2, (200, 1)), {"log": log + 3}, "ns"
        ),
    ]
    aligned = data.Recording.from_streams(streams).align(25, max_gap=1, tasks=["grasp"])
    aligned.save(tmp_path / "x", "lerobot")
    back = data.open(tmp_path / "x")
    assert back.format == "LeRobot v3.0" and back.rate == 25
    same_episodes(aligned, back)
    table = __import__("pyarrow.parquet").parquet.read_table(
        tmp_path / "x/data/chunk-000/file-000.parquet"
    )
    seconds = np.array(table["timestamp"])
    np.testing.assert_allclose(seconds, np.arange(len(seconds)) / 25, atol=1e-6)
    assert not [f for f in data.checks.check(back) if f.kind in ("statistics", "rate")]


def test_lerobot_statistics_are_exact(tmp_path):
    pytest.importorskip("pyarrow")
    given = episodes()
    given.save(tmp_path / "x", "lerobot")
    stored = rbc.statistics_files.read_lerobot(tmp_path / "x")
    for name, track in (("grip", given["grip"]), ("action.left", given["action/left"])):
        exact = rbc.statistics(track.values)
        for part in ("min", "max", "mean", "std", "quantiles"):
            np.testing.assert_array_equal(getattr(stored[name], part), getattr(exact, part))
    by_episode = rbc.statistics_files.read_lerobot_episodes(tmp_path / "x")
    assert list(by_episode) == [0, 1, 2]
    track = given["observation.state"]
    rows = rbc.statistics(track.values, batch_offsets=track.episode_offsets, per_row=True)
    for e, features in by_episode.items():
        own = features["observation.state"]
        for part in ("count", "min", "max", "mean", "std", "quantiles"):
            np.testing.assert_array_equal(getattr(own, part), getattr(rows.row(e), part))
        assert own.levels == rows.levels


def test_frames_of_videos_stay(tmp_path):
    pytest.importorskip("pyarrow")
    data_files.write_lerobot(tmp_path / "x", version="v3.0")
    given = data.open(tmp_path / "x")
    left_out = given.save(tmp_path / "y", "lerobot")
    assert [str(e) for e in left_out] == [
        "note: texts (string) are not read",
        "observation.images.top: 1 of 1 video files is missing",
        "observation.images.top: frames of a video, which is not copied",
    ]
    back = data.open(tmp_path / "y")
    assert set(given.tracks) - set(back.tracks) == {"observation.images.top"}
    for name, track in back.tracks.items():
        assert track == given[name]
    assert back.tasks == given.tasks


def test_lerobot_in_several_files(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    from robocache.data._formats.lerobot import places, write

    monkeypatch.setattr(write, "FILE_BYTES", 300)
    for module in (places, write):
        monkeypatch.setattr(module, "CHUNK", 2)
    given = episodes()
    given.save(tmp_path / "x", "lerobot")
    files = sorted(
        str(p.relative_to(tmp_path / "x/data")) for p in (tmp_path / "x/data").rglob("*.p*")
    )
    assert files == [f"chunk-{n // 2:03d}/file-{n % 2:03d}.parquet" for n in range(len(files))]
    assert len(files) > 1
    same_episodes(given, data.open(tmp_path / "x"))


def test_zarr_is_a_replay_buffer(tmp_path):
    zarr = pytest.importorskip("zarr")
    given = episodes()
    given.save(tmp_path / "x", "zarr")
    group = zarr.open_group(str(tmp_path / "x"), mode="r")
    assert group["meta/episode_ends"][:].tolist() == [4, 9, 11]
    np.testing.assert_array_equal(group["data/action.left"][:], given["action/left"].values)
    assert (tmp_path / "x/.zgroup").exists()  # version 2, which older programs read


# ---- nothing half written -----------------------------------------------------------------------


def test_what_is_there_stays_unless_it_is_to_be_replaced(tmp_path, format):
    one, other = episodes(), episodes().select([0])
    one.save(tmp_path / "x", format)
    with pytest.raises(FileExistsError, match="overwrite=True replaces it"):
        other.save(tmp_path / "x", format)
    same_episodes(one, data.open(tmp_path / "x"))
    other.save(tmp_path / "x", format, overwrite=True)
    same_episodes(other, data.open(tmp_path / "x"))
    assert os.listdir(tmp_path) == ["x"]


def test_an_error_in_the_middle(tmp_path, format, monkeypatch):
    one = episodes()
    one.save(tmp_path / "x", format)

    def fail(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("robocache._files.atomic_write.sync_tree", fail)
    with pytest.raises(KeyboardInterrupt):
        episodes().select([1]).save(tmp_path / "x", format, overwrite=True)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["x"]
    same_episodes(one, data.open(tmp_path / "x"))


def test_a_folder_that_cannot_be_written(tmp_path, format):
    if os.geteuid() == 0:
        target = "/proc/nothing/x"  # not even root can write there
    else:
        tmp_path.chmod(0o500)
        target = tmp_path / "x"
    with pytest.raises(OSError):
        episodes().save(target, format)


def test_a_full_disk(tmp_path, format):
    """A limit on the size of files simulates a full disk."""
    code = f"""
import resource, signal, sys
import numpy as np
import robocache as rbc
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
rng = np.random.default_rng(0)
given = rbc.data.Episodes({{"a": rbc.Track(rng.normal(size=(100000, 8)), [0, 100000],
                                          times=np.arange(100000.0))}})
given.save({str(tmp_path / "warm")!r}, {format!r})
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
try:
    given.save({str(tmp_path / "x")!r}, {format!r})
except OSError as error:
    sys.exit(7)
"""
    assert resource.RLIMIT_FSIZE is not None and signal.SIGXFSZ
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 7, run.stderr
    assert os.listdir(tmp_path) == ["warm"]


def test_formats_that_are_not_known(tmp_path):
    with pytest.raises(ValueError, match="is 'xyz', expected one of 'lerobot', 'lerobot-v2.1'"):
        recording().save(tmp_path / "x", "xyz")
    with pytest.raises(ValueError, match=r"x\.xyz: no format has the suffix '\.xyz'"):
        recording().save(tmp_path / "x.xyz")
    with pytest.raises(ValueError, match="'csv' needs episodes"):
        recording().save(tmp_path / "x.csv")


def test_damaged_npz(tmp_path):
    recording().save(tmp_path / "x.npz")
    content = (tmp_path / "x.npz").read_bytes()
    for cut in (len(content) // 2, len(content) - 3):
        (tmp_path / "x.npz").write_bytes(content[:cut])
        with pytest.raises(data.FormatError, match="x.npz"):
            data.open(tmp_path / "x.npz")
    (tmp_path / "x.npz").write_bytes(
        content.replace("stream".encode("utf-32-le"), "strxxm".encode("utf-32-le"))
    )
    with pytest.raises(data.FormatError, match="x.npz"):
        data.open(tmp_path / "x.npz")


# ---- other programs -----------------------------------------------------------------------------


def test_lerobot_reads_it(tmp_path):
    """The package lerobot itself: needs it in this interpreter, or in ROBOCACHE_LEROBOT_PYTHON."""
    pytest.importorskip("pyarrow")
    python = os.environ.get("ROBOCACHE_LEROBOT_PYTHON", sys.executable)
    probe = [python, "-c", "import lerobot.datasets.lerobot_dataset"]
    if subprocess.run(probe, capture_output=True).returncode:
        pytest.skip("no package lerobot (set ROBOCACHE_LEROBOT_PYTHON to an interpreter with it)")
    columns = data_files.write_lerobot(tmp_path / "x", (20, 30))
    data.open(tmp_path / "x").save(tmp_path / "y", "lerobot")
    code = f"""
import json
from lerobot.datasets.lerobot_dataset import LeRobotDataset
made = LeRobotDataset("test/test", root={str(tmp_path / "y")!r},
                      delta_timestamps={{"action": [0, 0.1]}})
samples = [{{k: v.tolist() for k, v in made[i].items() if hasattr(v, "tolist")}} for i in range(50)]
tasks = [made[i]["task"] for i in (0, 49)]
std = made.meta.stats["action"]["std"].tolist()
print(json.dumps([made.num_episodes, made.fps, std, samples, tasks]))
"""
    run = subprocess.run(
        [python, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
    assert run.returncode == 0, run.stderr
    count, fps, std, rows, tasks = json.loads(run.stdout.splitlines()[-1])
    assert (count, fps, tasks) == (2, 10, ["task 0", "task 1"])
    np.testing.assert_array_equal(
        np.float32(std), np.float32(rbc.statistics(columns["action"]).std)
    )
    for i, row in enumerate(rows):
        np.testing.assert_array_equal(np.float32(row["observation.state"]),
                                      columns["observation.state"][i])  # fmt: skip
        after = min(i + 1, 19 if i < 20 else 49)
        np.testing.assert_array_equal(np.float32(row["action"]), columns["action"][[i, after]])


# ---- what LeRobot takes -------------------------------------------------------------------------


def at_rate(period, rows=300, unit=None, error=0.0):
    """Return two tracks with even times, except for one time that is off by ``error`` seconds."""
    times = np.arange(rows) * period
    times[rows // 2] += error
    if unit is not None:
        ticks = {"us": 1e6, "ns": 1e9}[unit]
        times = np.rint(times * ticks).astype(np.int64).view(f"timedelta64[{unit}]")
    names = ("/arm/left", "grip")
    tracks = {n: rbc.Track(np.random.rand(rows, 2), [0, rows], times=times) for n in names}
    return rbc.Episodes(tracks)


def saved_info(folder):
    return json.loads((folder / "meta/info.json").read_text())


@pytest.mark.parametrize("unit", [None, "us", "ns"])
@pytest.mark.parametrize(
    ("rate", "fps"), [(30, 30), (30000 / 1001, 30000 / 1001), (29.99, 29.99), (0.5, 0.5), (1, 1)]
)
def test_the_rate_is_nominal(tmp_path, rate, fps, unit):
    pq = pytest.importorskip("pyarrow.parquet")
    data.save(at_rate(1 / rate, unit=unit), tmp_path / "x", "lerobot")
    told = saved_info(tmp_path / "x")["fps"]
    assert told == (pytest.approx(fps, rel=1e-5) if fps == 29.99 else fps)
    table = pq.read_table(tmp_path / "x/data/chunk-000/file-000.parquet")
    seconds = (np.arange(300) / told).astype(np.float32)
    np.testing.assert_array_equal(np.array(table["timestamp"]), seconds)


def test_rows_that_stray_from_the_rate(tmp_path):
    pytest.importorskip("pyarrow")
    data.save(at_rate(1 / 30, error=9e-5), tmp_path / "x", "lerobot")
    text = r"row 150 of episode 0 is 0.00011 s from 150 / 30 Hz; .*robocache resample --rate 30"
    for unit in (None, "us", "ns"):
        with pytest.raises(ValueError, match=text):
            data.save(at_rate(1 / 30, error=1.1e-4, unit=unit), tmp_path / "y", "lerobot")
    assert os.listdir(tmp_path) == ["x"]


def test_plain_episodes(tmp_path, format):
    given = at_rate(0.1)
    assert data.save(given, tmp_path / "x", format) == ()
    assert dict(data.open(tmp_path / "x").tracks) == dict(given.tracks)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (rbc.Track(np.zeros((2, 1)), [0, 2]), r"is a Track.*robocache.Episodes\({'name': track}\)"),
        ({"a": 1}, "is a dict, expected a Recording or Episodes; use robocache.Episodes"),
        (None, "is None, expected a Recording or Episodes"),
    ],
)
def test_what_cannot_be_saved(tmp_path, format, given, text):
    with pytest.raises(TypeError, match=text):
        data.save(given, tmp_path / "x", format)
    assert os.listdir(tmp_path) == []


def test_names_that_become_one(tmp_path):
    pytest.importorskip("pyarrow")
    tracks = {name: rbc.Track(np.ones((3, 1)), [0, 3], times=np.arange(3) / 10.0)
              for name in ("/arm/left", "arm.left", "grip")}  # fmt: skip
    told = data.save(rbc.Episodes(tracks), tmp_path / "x", "lerobot")
    assert [str(each) for each in told] == [
        "arm.left: saved as the feature arm.left.1, because another track is named arm.left"
    ]
    assert {"arm.left", "arm.left.1"} < set(saved_info(tmp_path / "x")["features"])
    assert "/" not in "".join(saved_info(tmp_path / "x")["features"])


def test_what_the_source_left_out_is_named(tmp_path):
    pytest.importorskip("pyarrow")
    stream = data.RecordedStream(
        "s", "t", ("x",), np.zeros((20, 1)), {"log": np.arange(20) * 10**8}, "ns"
    )
    lost = data.LeftOut("s: header.frame_id", "string")
    given = data.Recording(None, {"s": stream}, left_out=[lost], path=None, problems=())
    assert lost in given.align(10).left_out
    assert lost in data.save(given.align(10), tmp_path / "x", "lerobot")
    assert data.save(given, tmp_path / "y.npz") == (lost,)
