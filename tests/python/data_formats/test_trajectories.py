"""Trajectories: TUM, KITTI, EuRoC and RTKLIB, compared with plain readers."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

import text_sources
from robocache import data

Rotation = pytest.importorskip("scipy.spatial.transform").Rotation


def angles(matrices, others):
    return np.degrees((Rotation.from_matrix(matrices).inv() * others).magnitude())


def motion(seed, rows=40):
    """Return times, positions and rotations with steps of less than half a turn."""
    rng = np.random.default_rng(seed)
    times = np.cumsum(rng.uniform(0.05, 0.2, rows)).round(6)
    steps = Rotation.from_rotvec(rng.normal(size=(rows, 3)) * 0.4)
    turns = [steps[0]]
    for step in list(steps)[1:]:
        turns.append(turns[-1] * step)
    return times, rng.normal(size=(rows, 3)), Rotation.concatenate(turns)


def slerped(times, turns, at):
    from scipy.spatial.transform import Slerp

    return Slerp(times, turns)(at)


# ---- TUM ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("head", ["", "# timestamp tx ty tz qx qy qz qw\n", "# a b\n#\n", "\n"])
@pytest.mark.parametrize("name", ["a.txt", "a.tum", "a"])
def test_tum(tmp_path, head, name):
    times, places, turns = motion(1)
    signs = np.where(np.arange(len(times)) % 3, 1, -1)[:, None]
    rows = np.column_stack([times + 1.3e9, places, turns.as_quat() * signs])
    path = tmp_path / name
    path.write_text(head + "\n".join(" ".join(map(repr, row)) for row in rows.tolist()) + "\n")
    expected = np.loadtxt(path)
    recording = data.open(path)
    stream = recording["a"]
    assert recording.format == "TUM trajectory" and recording.unit == "s"
    assert np.array_equal(stream.values, expected[:, 1:])
    assert np.array_equal(stream.times(), expected[:, 0])
    assert stream.names == ("tx", "ty", "tz", "qx", "qy", "qz", "qw")
    assert {c.kind for c in stream.channels[3:]} == {"quaternion"}
    track = recording.align(200.0).tracks["a"]
    right = slerped(expected[:, 0], turns, np.asarray(track.times))
    off = (Rotation.from_quat(np.asarray(track.values)[:, 3:]).inv() * right).magnitude()
    assert off.max() < 1e-6


def test_tum_beside_other_tables(tmp_path):
    text_sources.tum(tmp_path).rename(tmp_path / "truth.txt")
    (tmp_path / "imu.csv").write_text("time_s,x\n" + "".join(f"{1.7e9 + i},1\n" for i in range(9)))
    recording = data.open(tmp_path)
    assert recording.names == ("imu", "truth")
    assert {c.kind for c in recording["truth"].channels[3:]} == {"quaternion"}


def test_whole_numbers_and_other_units_of_tum(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("".join(f"{i} {i} 0 0 0 0 0 1\n" for i in range(9)))
    stream = data.open(path)["a"]
    assert stream.values.dtype == np.float64 and stream.times().tolist() == list(range(9))
    path.write_text("".join(f"{17 * 10**17 + i} 1 0 0 0 0 0 1\n" for i in range(9)))
    recording = data.open(path)
    assert recording["a"].times()[3] == 17 * 10**17 + 3 and recording.unit is None or "ns"
    path.write_text("".join(f"{i / 10} {i} 0 0 0 0 1 1\n" for i in range(9)))  # not of length 1
    assert data.open(path)["a"].names == tuple(f"c{i}" for i in range(1, 8))


# ---- KITTI --------------------------------------------------------------------------------------


def kitti(folder, times, places, turns, poses="poses.txt", stamps="times.txt"):
    matrices = np.concatenate([turns.as_matrix(), places[:, :, None]], axis=2).reshape(-1, 12)
    np.savetxt(folder / poses, matrices)
    if stamps is not None:
        np.savetxt(folder / stamps, times)
    return matrices


@pytest.mark.parametrize(
    ("poses", "stamps", "opened"),
    [
        ("poses.txt", "times.txt", "."),
        ("poses.txt", "times.txt", "poses.txt"),
        ("00.txt", "00_times.txt", "00.txt"),
        ("00.txt", None, "00.txt"),
    ],
)
def test_kitti(tmp_path, poses, stamps, opened):
    times, places, turns = motion(2)
    times = times if stamps is not None else np.arange(len(times)) / 8
    expected = kitti(tmp_path, times, places, turns, poses, stamps)
    recording = data.open(tmp_path / opened, rate=None if stamps is not None else 8)
    (name,) = recording.names
    stream = recording[name]
    assert np.array_equal(stream.values, expected) and np.array_equal(stream.times(), times)
    assert {c.kind for c in stream.channels} == {"pose_3x4"}
    track = recording.align(100.0).tracks[name]
    at, made = np.asarray(track.times), np.asarray(track.values).reshape(-1, 3, 4)
    assert angles(made[:, :, :3], slerped(times, turns, at)).max() < 1e-4
    for axis in range(3):
        assert np.allclose(made[:, axis, 3], np.interp(at, times, places[:, axis]))


def test_files_beside_poses(tmp_path):
    times, places, turns = motion(3)
    kitti(tmp_path, times, places, turns)
    kitti(tmp_path, times, places, turns, "estimate.txt", None)
    (tmp_path / "calib.txt").write_text("P0: 1 0 0 0\n")
    recording = data.open(tmp_path)
    assert recording.names == ("estimate", "poses")
    assert [each.place for each in recording.left_out] == ["calib.txt"]


def test_times_that_do_not_fit(tmp_path):
    times, places, turns = motion(4)
    kitti(tmp_path, times, places, turns, stamps=None)
    with pytest.raises(data.FormatError, match="no times of their own.*--fps HZ"):
        data.open(tmp_path / "poses.txt")
    np.savetxt(tmp_path / "times.txt", times[:-1])
    for damaged in ("refuse", "keep"):
        with pytest.raises(data.FormatError, match="has 39 times, but poses.txt has 40 poses"):
            data.open(tmp_path / "poses.txt", damaged=damaged)
    (tmp_path / "times.txt").unlink()
    (tmp_path / "times.txt").symlink_to("/etc/hostname")
    with pytest.raises(data.FormatError, match="link out of the data set"):
        data.open(tmp_path)


def test_damaged_rows(tmp_path):
    times, places, turns = motion(5, rows=2000)
    matrices = kitti(tmp_path, times, places, turns)
    matrices[1500, 0] = 7
    np.savetxt(tmp_path / "poses.txt", matrices)
    with pytest.raises(data.FormatError, match="row 1500: its rotation is not orthonormal"):
        data.open(tmp_path)
    kept = data.open(tmp_path, damaged="keep")
    assert len(kept["poses"]) == 1999 and len(kept.problems) == 1
    lines = (tmp_path / "poses.txt").read_text().splitlines()
    lines[1500] = lines[1500].replace("7.000", "x7.00", 1)
    (tmp_path / "poses.txt").write_text("\n".join(lines))
    with pytest.raises(data.FormatError, match="no number"):
        data.open(tmp_path)
    kept = data.open(tmp_path, damaged="keep")
    assert np.array_equal(kept["poses"].values, np.delete(matrices, 1500, 0))
    assert np.array_equal(kept["poses"].times(), np.delete(times, 1500))


@pytest.mark.parametrize("name", ["tum", "kitti", "rtklib", "rtklib-weeks", "motive", "vicon"])
def test_cut_files(tmp_path, name):
    """A cut file is refused, or its first rows are read: never other values."""
    path = text_sources.FORMATS[name](tmp_path)
    file = path / "poses.txt" if path.is_dir() else path
    content = file.read_bytes()
    whole = data.open(path).load()
    for end in range(0, len(content), max(1, len(content) // 60)):
        file.write_bytes(content[:end])
        try:
            found = data.open(path, damaged="keep").load()
        except data.FormatError as error:
            assert str(tmp_path) in str(error)
            continue
        for stream in found.names:
            if stream in whole and found[stream].names == whole[stream].names:
                rows = max(0, len(found[stream]) - 1)  # the last number may have lost digits
                assert np.array_equal(
                    found[stream].values[:rows], whole[stream].values[:rows], equal_nan=True
                )


# ---- EuRoC --------------------------------------------------------------------------------------


def test_euroc_with_another_table(tmp_path):
    """A data.csv that is empty is damage; a table of another kind is listed."""
    path = text_sources.euroc(tmp_path)
    names = data.open(path).names
    (path / "mav0" / "imu9").mkdir()
    other = path / "mav0" / "imu9" / "data.csv"
    other.write_text("")
    with pytest.raises(data.FormatError, match="imu9/data.csv: is empty"):
        data.open(path)
    kept = data.open(path, damaged="keep")
    assert kept.names == names and len(kept.problems) == 1
    other.write_text("time,x\n" + "".join(f"{i},{i}.5\n" for i in range(9)))
    recording = data.open(path)
    assert recording.names == names
    reasons = {each.place: each.reason for each in recording.left_out}
    assert "does not begin with #timestamp: open it separately" in reasons["imu9"]


@pytest.mark.parametrize("inner", ["", "mav0"])
def test_euroc(tmp_path, inner):
    path = text_sources.euroc(tmp_path)
    recording = data.open(path / inner)
    assert recording.names == ("imu0", "state_groundtruth_estimate0")
    assert [each.place for each in recording.left_out] == ["cam0"]
    file = path / "mav0/state_groundtruth_estimate0/data.csv"
    truth = recording["state_groundtruth_estimate0"]
    assert np.array_equal(truth.values, np.loadtxt(file, delimiter=",", comments="#")[:, 1:])
    stamps = [int(line.split(",")[0]) for line in file.read_text().splitlines()[1:]]
    assert truth.times().tolist() == stamps and recording.unit == "ns"
    (group,) = [g for g in truth.kinds.groups if g.kind == "quaternion"]
    assert [truth.names[c][5] for c in group.columns] == list("xyzw")
    assert np.array_equal(data.open(file)["data"].values, truth.values)


# ---- RTKLIB -------------------------------------------------------------------------------------


def written(path, clock, cells, form, separator=" "):
    """Write a solution as RTKLIB does: form of the time, and degrees with or without minutes."""
    names = {"deg": "latitude(deg) longitude(deg)", "dms": "latitude(d'\") longitude(d'\")"}
    head = f"%  {clock:24}" + separator + separator.join(names[form].split())
    head += separator + separator.join(["height(m)", "Q", "ns", "age(s)"])
    text = "% program   : RTKLIB\n% (lat/lon/height=WGS84/ellipsoidal,Q=1:fix)\n" + head + "\n"
    path.write_text(text + "".join(separator.join(row) + "\n" for row in cells))
    return path


@pytest.mark.parametrize("separator", ["  ", ",", ";", "\t"])
@pytest.mark.parametrize("form", ["deg", "dms"])
@pytest.mark.parametrize("time", ["date", "week"])
@pytest.mark.parametrize("clock", ["GPST", "UTC", "JST"])
def test_rtklib(tmp_path, separator, form, time, clock):
    rng = np.random.default_rng(6)
    begin = datetime.datetime(2024, 2, 29, 23, 59, 58, tzinfo=datetime.timezone.utc)
    epoch = datetime.datetime(1980, 1, 6, tzinfo=datetime.timezone.utc)
    cells, stamps, places = [], [], []
    for i in range(40):
        at = begin + datetime.timedelta(milliseconds=200 * i)
        week, rest = divmod(at - epoch, datetime.timedelta(weeks=1))
        seconds = f"{rest.total_seconds():.3f}"
        date = at.strftime("%Y/%m/%d %H:%M:%S.") + f"{at.microsecond // 1000:03}"
        row = [date] if time == "date" else [str(week), seconds]
        stamps.append(round(at.timestamp() * 1000) * 10**6)
        place = rng.uniform([-0.9, -179], [0.9, 179])
        for value in place:
            size = abs(value)
            degrees, minutes = int(size), int(size * 60 % 60)
            rest_of = f"{size * 3600 % 60:08.5f}"
            parts = [f"{'-' if value < 0 else ''}{degrees}", f"{minutes:02}", rest_of]
            row += [f"{value:.9f}"] if form == "deg" else parts
        row += ["70.1", "1", "8", "0.00"]
        cells.append(row)
        places.append(place)
    path = written(tmp_path / "a.pos", clock, cells, form, separator)
    recording = data.open(path)
    stream = recording["a"]
    assert recording.format == "RTKLIB solution" and recording.unit == "ns"
    assert stream.times().tolist() == stamps
    wanted = ("latitude(deg)", "longitude(deg)", "height(m)", "Q", "ns", "age(s)")
    assert stream.names == wanted
    assert np.abs(stream.values[:, :2] - np.array(places)).max() < 1e-8
    kinds = {channel.name: channel.kind for channel in stream.channels}
    assert kinds["longitude(deg)"] == "angle" and kinds["Q"] == "step"
    assert clock in recording.info("a").times


def test_weeks_that_are_none(tmp_path):
    cells = [["2000", f"{i}.0", "1", "2", "3", "1", "8", "0"] for i in range(9)]
    cells[4][1] = "700000.0"
    path = written(tmp_path / "a.pos", "GPST", cells, "deg")
    with pytest.raises(data.FormatError, match="row 4: is week 2000 and 700000.0 s"):
        data.open(path)
    assert len(data.open(path, damaged="keep")["a"]) == 8


# ---- what other programs write ----


def tum_rows(count=30):
    times, places, turns = text_sources.turning(count)
    return np.column_stack([1.4e9 + times, places, turns])


def test_a_tracker_that_was_lost(tmp_path):
    """NaN or zero quaternions among the first rows do not hide the others."""
    for lost in (np.nan, 0.0):
        rows = tum_rows()
        rows[[0, 3, 4], 1:] = lost
        np.savetxt(tmp_path / "x.txt", rows, "%.9f")
        recording = data.open(tmp_path / "x.txt").load()
        assert recording.format == "TUM trajectory"
        kinds = [channel.kind for channel in recording["x"].channels]
        assert kinds == ["number"] * 3 + ["quaternion"] * 4
        np.testing.assert_allclose(recording["x"].values, rows[:, 1:], atol=1e-9)
    rows[:20, 1:] = np.nan
    np.savetxt(tmp_path / "x.txt", rows, "%.9f")
    assert data.open(tmp_path / "x.txt").format != "TUM trajectory"


@pytest.mark.parametrize("whole", [True, False])
def test_nanoseconds_instead_of_seconds(tmp_path, whole):
    """ORB-SLAM3 writes such stamps, with a fraction of zeros."""
    stamps = [1_403_636_579_763_555_584 + 50_000_000 * i for i in range(30)]
    lines = [
        " ".join([str(stamp) if whole else f"{stamp}.000000", *(f"{x:.6f}" for x in row[1:])])
        for stamp, row in zip(stamps, tum_rows())
    ]
    (tmp_path / "x.txt").write_text("\n".join(lines) + "\n")
    recording = data.open(tmp_path / "x.txt")
    assert recording.unit == ("ns" if whole else "s")
    factor = 1 if whole else 1e-9
    np.testing.assert_allclose(recording["x"].times(), np.array(stamps) * factor, rtol=1e-15)
    assert len(recording.align(20.0).tracks["x"].values) == 30


def test_comments_blanks_and_ends_of_lines(tmp_path):
    rows = tum_rows()
    lines = ["   ".join(f"{x:.6f}" for x in row) + " \t" for row in rows]
    lines[5:5] = ["# lost and found", ""]
    (tmp_path / "x.txt").write_bytes(("\ufeff" + "\r\n".join(lines) + "\r\n").encode())
    recording = data.open(tmp_path / "x.txt")
    assert recording.format == "TUM trajectory" and len(recording["x"]) == len(rows)
    np.testing.assert_allclose(recording["x"].times(), rows[:, 0], rtol=1e-15)


def test_headers_without_rows(tmp_path):
    head = "%  GPST  latitude(deg) longitude(deg)  height(m)   Q  ns\n"
    (tmp_path / "x.pos").write_text("% program   : RTKPOST\n" + head)
    for damaged in ("refuse", "keep"):
        with pytest.raises(data.FormatError, match=r"x.pos: has no rows below its header$"):
            data.open(tmp_path / "x.pos", damaged=damaged)
