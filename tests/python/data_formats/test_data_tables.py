"""CSV, Parquet and .npy, one file or a folder."""

from __future__ import annotations

import numpy as np
import pytest

import robocache as rbc
from robocache.data._formats.tables import lines as text_lines
from robocache.data._formats.tables import parts, tables

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

data = rbc.data
START = 1_700_000_000_000_000_001


def csv(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


# ---- CSV and Parquet ----------------------------------------------------------------------------


def test_a_csv_file(tmp_path):
    lines = [f"{START + i * 10},{i / 4},{i},{'true' if i % 2 else 'false'},w{i}" for i in range(5)]
    path = csv(tmp_path / "log ü", ["timestamp_ns,x,n,on,word", *lines])
    recording = data.open(path)
    assert recording.unit == "ns" and recording.names == ("log ü",)
    stream = recording["log ü"]
    assert (
        stream.names == ("x", "n", "on")
        and stream.dtypes == ("double", "int64", "bool")
        or (stream.dtypes == ("float64", "int64", "bool"))
    )
    np.testing.assert_array_equal(stream.values, [[i / 4, i, i % 2] for i in range(5)])
    assert stream.times().tolist() == [START + i * 10 for i in range(5)]
    assert [(e.place, e.reason) for e in recording.left_out] == [
        ("log ü: word", "has type string, which is not read")
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiters(tmp_path, delimiter):
    path = csv(
        tmp_path / "x", [delimiter.join(row) for row in (("t", "a"), ("0.5", "1"), ("1", "2"))]
    )
    stream = data.open(path)["x"]
    assert stream.times().tolist() == [0.5, 1.0] and stream.values[:, 0].tolist() == [1, 2]


def test_columns_with_rows_of_their_own(tmp_path):
    """A table of several topics, each with its own rows."""
    path = csv(tmp_path / "x.csv", [
        ",time,/a/x,/a/y,/b/v", f"0,{START},1,2,", f"1,{START + 1},,,7", f"2,{START + 2},3,4,"
    ])  # fmt: skip
    recording = data.open(path, unit="ns")
    assert recording.names == ("x: /a", "x: /b/v")
    a, b = recording["x: /a"], recording["x: /b/v"]
    assert a.values.tolist() == [[1, 2], [3, 4]] and a.times().tolist() == [START, START + 2]
    assert b.values.tolist() == [[7]] and b.times().tolist() == [START + 1]
    assert recording.left_out[0].reason == "numbers the rows, and has no name"


def test_integers_late_in_a_column_of_floats(tmp_path):
    lines = [f"{i},{i}" for i in range(50_000)] + ["50000,0.5"]
    stream = data.open(csv(tmp_path / "x.csv", ["t,v", *lines]))["x"]
    assert stream.values[-1, 0] == 0.5 and len(stream) == 50_001


def test_a_folder_of_csv_and_parquet(tmp_path):
    csv(tmp_path / "imu.csv", ["timestamp,gyro", "1000,0.5", "2000,0.25", "4000,0"])
    pq.write_table(
        pa.table({"time_us": np.arange(4) * 1000, "pose": [[1.0, 2.0]] * 4}), tmp_path / "pose.pq"
    )
    (tmp_path / "README.md").write_text("a, b\n1, 2\n")
    recording = data.open(tmp_path)
    assert recording.names == ("imu", "pose") and recording.unit == "us"
    assert recording["pose"].names == ("pose[0]", "pose[1]") and recording.left_out == ()
    assert recording.report().streams["imu"].longest_gap == 0.002


def refused(path, match, **options):
    with pytest.raises(data.FormatError, match=match) as caught:
        data.open(path, **options)
    return caught.value


def test_bad_csv(tmp_path):
    match = "two columns are named 'a': rename one"
    path = csv(tmp_path / "x.csv", ["t,a,a", "0,1,1", "1,2,2"])
    assert refused(path, match).path == str(path)
    csv(tmp_path / "y.csv", ["t,a", "0,1", "1,2"])
    refused(tmp_path, match)
    kept = data.open(tmp_path, damaged="keep")
    assert kept.names == ("y",) and len(kept.problems) == 1


@pytest.mark.parametrize("end", ["1.0,1", "\x1a", "\0" * 100, "1.0,1,2,3", "\xff,1"])
@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
def test_a_table_that_ends_within_a_row(tmp_path, end):
    """A loss of power leaves such files; the other rows can be read."""
    rows = "".join(f"{i / 10},{i},{2 * i}\r\n" for i in range(10))
    (tmp_path / "x.csv").write_bytes(b"time_s,x,y\r\n" + rows.encode() + end.encode("latin-1"))
    cells = end.count(",") + 1
    has = f"line 12: has {cells} cells?, expected 3: .*it is skipped; damaged='keep' reads the rest"
    refused(tmp_path / "x.csv", has)
    kept = data.open(tmp_path / "x.csv", damaged="keep")
    assert kept["x"].values.tolist() == [[i, 2 * i] for i in range(10)] and len(kept.problems) == 1
    csv(tmp_path / "y.csv", ["t,a", "0,1", "1,2"])
    assert data.open(tmp_path, damaged="keep").names == ("x", "y")


@pytest.mark.parametrize("separator", [",", " "])  # read by Arrow from the file, and from lines
@pytest.mark.parametrize("late", ["0.5", "", "9223372036854775808", "no"])
def test_types_that_only_the_end_of_a_large_file_decides(tmp_path, monkeypatch, separator, late):
    """The file is read part by part: each way gives what one part would."""
    monkeypatch.setattr(parts, "PART", 1 << 17)
    monkeypatch.setattr(text_lines, "_BLOCK", 1 << 17)
    rows = [[f"{i / 100:.2f}", str(i % 7), "1"] for i in range(15_000)]
    rows[-2][1] = late or "nan"
    lines = [separator.join(row) for row in [["time_s", "x", "y"], *rows]]
    for place in (11_000, 6_000):
        lines.insert(place, separator.join(["0", "1", "2", str(place)]))
    path = csv(tmp_path / "x.csv", lines)
    assert path.stat().st_size > parts.PART
    refused(path, r"has 4 cells, expected 3: '0.1.2.6000'.*\(1 more rows like that\)")
    kept = data.open(path, damaged="keep").load()
    assert "6000" in str(kept.problems[0]) and len(kept.problems) == 1 + (late == "no")
    if late == "no":
        assert [s.names for s in kept.streams.values()] == [("y",)]
        return
    x = np.array([float(row[1]) for row in rows])
    column = next(s.values[:, s.names.index("x")] for s in kept.streams.values() if "x" in s.names)
    np.testing.assert_array_equal(column.astype(float), x)


def test_lines_that_end_with_cr_only(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"time_s,x\r0,1\r0.1,2\r")
    refused(tmp_path / "x.csv", "end with CR only.*save it with LF or CRLF")


def test_texts_that_are_no_tables(tmp_path):
    for name, text, words in (
        ("a", "hello, world\nthis, is\n", 'First lines: "hello, world" and "this, is"'),
        ("b", "{\n", "it is a JSON file"),
        ("c", "1,2\n3,4\n", "looks like a table without a header"),
        ("d", "", "it is empty"),
    ):
        (tmp_path / name).write_text(text)
        refused(tmp_path / name, words)


def test_a_damaged_parquet_file(tmp_path):
    pq.write_table(pa.table({"t": [1, 2]}), tmp_path / "x.parquet")
    content = (tmp_path / "x.parquet").read_bytes()
    (tmp_path / "x.parquet").write_bytes(content[:-10])
    refused(tmp_path / "x.parquet", "without its footer")


def wide(rows, **columns):
    rng = np.random.default_rng(0)
    flat = pa.array(rng.normal(size=rows * 3).astype(np.float32))
    told = {"t": np.arange(rows) / 100, "n": rng.integers(0, 9, rows), "word": ["x"] * rows}
    return pa.table({**told, "pose": pa.FixedSizeListArray.from_arrays(flat, 3), **columns})


def test_parquet_is_read_when_it_is_asked_for(tmp_path, monkeypatch):
    """Pieces have the same rows as the whole file."""
    rows = 150_000
    pq.write_table(wide(rows), tmp_path / "x.parquet", row_group_size=40_000)
    with monkeypatch.context() as patched:
        patched.setattr(tables, "read", None)  # would read all of it
        recording = data.open(tmp_path / "x.parquet")
        info = recording.info("x")
        assert info.count == rows and info.names == ("n", "pose[0]", "pose[1]", "pose[2]")
        pieces = [piece for piece in recording.pieces()]
        assert len(pieces) > 2 and max(map(len, pieces)) <= 1 << 16
        assert [str(each) for each in recording.left_out] == [
            "x: word: has type string, which is not read"
        ]
        mine = recording["x"]
    monkeypatch.setattr(tables, "from_metadata", lambda *_: None)
    theirs = data.open(tmp_path / "x.parquet")["x"]
    assert (mine.values == theirs.values).all() and (mine.times() == theirs.times()).all()
    assert (mine.values.dtype, mine.dtypes) == (theirs.values.dtype, theirs.dtypes)


@pytest.mark.parametrize("kind", ["null", "list", "no statistics"])
def test_parquet_that_does_not_tell_is_read_at_once(tmp_path, kind):
    column = {
        "null": pa.array([1.0, None] * 5),
        "list": pa.array([[1.0, 2.0]] * 10),
        "no statistics": pa.array([1.0] * 10),
    }[kind]
    path = tmp_path / "x.parquet"
    pq.write_table(wide(10, more=column), path, write_statistics=kind != "no statistics")
    recording = data.open(path)
    names = [name for stream in recording.streams.values() for name in stream.names]
    assert {"more", "more[0]"} & set(names)
    assert len(recording) == (2 if kind == "null" else 1)


def test_parquet_that_is_damaged_within(tmp_path):
    """The footer is intact; the damage is found when the rows are read."""
    for name in ("a", "b"):
        pq.write_table(wide(1000), tmp_path / f"{name}.parquet", compression="gzip")
    content = bytearray((tmp_path / "b.parquet").read_bytes())
    content[100:3000] = bytes(2900)
    (tmp_path / "b.parquet").write_bytes(content)
    with pytest.raises(data.FormatError, match="b.parquet: is not a Parquet file, or damaged"):
        data.open(tmp_path).load()
    kept = data.open(tmp_path, damaged="keep").load()
    assert len(kept["a"]) == 1000 and len(kept["b"]) == 0
    assert [each.path for each in kept.problems] == [str(tmp_path / "b.parquet")]


def test_nothing_is_a_time_that_is_mostly_missing(tmp_path):
    path = csv(tmp_path / "x.csv", ["time,a", "1,1", ",2", ",3"])
    recording = data.open(path)
    assert all(stream.times() is None for stream in recording.streams.values())


# ---- .npy ---------------------------------------------------------------------------------------


def test_streams_with_their_times(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "imu/gyro").mkdir(parents=True)
    gyro, times = rng.normal(size=(9, 3)), np.arange(9) / 100
    np.save(tmp_path / "imu/gyro/value.npy", gyro)
    np.save(tmp_path / "imu/gyro/t.npy", times)
    camera = rng.normal(size=(4, 2, 2)).astype(np.float32)
    np.save(tmp_path / "frame_poses.npy", camera)
    np.save(tmp_path / "frame_times.npy", np.arange(4))
    np.save(tmp_path / "number.npy", 3.0)
    recording = data.open(tmp_path, unit="ms")
    assert set(recording.names) == {"imu/gyro", "frame_poses"}
    np.testing.assert_array_equal(recording["imu/gyro"].values, gyro)
    assert recording.unit == "ns"  # floats are seconds; the unit is that of integers
    assert recording["imu/gyro"].times().tolist() == np.rint(times * 1e9).tolist()
    assert recording["frame_poses"].times().tolist() == [0, 10**6, 2 * 10**6, 3 * 10**6]
    assert recording["frame_poses"].names == ("[0][0]", "[0][1]", "[1][0]", "[1][1]")
    assert recording["frame_poses"].times().dtype == np.int64
    assert [e.place for e in recording.left_out] == ["number"]


def test_episodes_by_their_index(tmp_path):
    index = np.repeat([4, 7, 9], [3, 1, 2])
    np.save(tmp_path / "episode_index.npy", index)
    np.save(tmp_path / "action.npy", np.arange(12).reshape(6, 2))
    np.save(tmp_path / "timestamp.npy", np.arange(6, dtype=np.float32))
    episodes = data.open(tmp_path)
    assert episodes.lengths("action").tolist() == [3, 1, 2] and episodes.info["episodes"] == [
        4,
        7,
        9,
    ]
    assert episodes["action"].times.tolist() == list(range(6))
    np.save(tmp_path / "action.npy", np.zeros((5, 2)))
    assert "has 5 rows" in str(refused(tmp_path, "but episode_index has 6"))
    np.save(tmp_path / "episode_index.npy", index[::-1])
    refused(tmp_path, "goes back")


def test_episodes_of_one_length(tmp_path):
    state = np.arange(24.0).reshape(2, 3, 4)
    np.save(tmp_path / "state.npy", state)
    np.save(tmp_path / "action.npy", state[..., :2].astype(np.float32))
    episodes = data.open(tmp_path, rate=5)
    assert episodes.lengths("state").tolist() == [3, 3] and len(episodes["action"].names or ()) == 0
    np.testing.assert_array_equal(episodes["state"].values, state.reshape(6, 4))
    assert episodes["state"].times.tolist() == [0, 0.2, 0.4] * 2


def test_python_objects_are_not_unpickled(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{"a": 1}, None]), allow_pickle=True)
    np.save(tmp_path / "y.npy", np.zeros((3, 2)))
    refused(tmp_path, "holds Python objects, which are not unpickled")
    kept = data.open(tmp_path, damaged="keep")
    assert kept.names == ("y",) and "Python objects" in kept.problems[0].text


def test_a_file_that_is_cut_off(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((300, 2)))
    content = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(content[:1000])
    refused(tmp_path / "x.npy", "is damaged or truncated")


def test_times_of_another_number(tmp_path):
    (tmp_path / "gyro").mkdir()
    np.save(tmp_path / "gyro/value.npy", np.zeros((5, 3)))
    np.save(tmp_path / "gyro/t.npy", np.zeros(4))
    refused(tmp_path, "has 5 rows, but 4 times")


# ---- the real ones ------------------------------------------------------------------------------


def folder(recordings, name):
    if not (recordings / name).exists():
        pytest.skip(f"no {recordings / name}")
    return recordings / name


def test_the_car(recordings):
    path = folder(recordings, "comma2k19")
    recording = data.open(path)
    assert len(recording) == 14
    gyro = recording["processed_log/IMU/gyro"]
    np.testing.assert_array_equal(gyro.values, np.load(path / "processed_log/IMU/gyro/value.npy"))
    np.testing.assert_array_equal(gyro.times(), np.load(path / "processed_log/IMU/gyro/t.npy"))
    poses = recording["global_pose/frame_orientations"]
    np.testing.assert_array_equal(poses.times(), np.load(path / "global_pose/frame_times.npy"))
    assert recording.report(unit="s").streams["processed_log/CAN/radar"].repeats == 3937


def test_the_drone(recordings):
    pandas = pytest.importorskip("pandas")
    path = folder(recordings, "px4")
    recording = data.open(path, unit="us")
    assert len(recording) == 8
    for name, stream in recording.streams.items():
        table = pandas.read_csv(path / f"{name}.csv")
        assert stream.times().tolist() == table["timestamp"].tolist()
        np.testing.assert_array_equal(stream.values, table[list(stream.names)].to_numpy(float))


def test_the_arm(recordings):
    path = folder(recordings, "bridge")
    episodes = data.open(path, rate=5)
    assert len(episodes) == 25 and episodes["action"].rate == pytest.approx(5)
    np.testing.assert_array_equal(
        episodes["state"].values, np.load(path / "state.npy").reshape(250, 7)
    )


def test_the_humanoid(recordings):
    path = folder(recordings, "unitree_g1")
    episodes = data.open(path)
    assert len(episodes) == 100 and episodes["action"].num_rows == 35965
    counts = np.bincount(np.load(path / "episode_index.npy"))
    assert episodes.lengths("action").tolist() == counts.tolist()


def test_the_csv_of_a_bag(recordings):
    """The authors' export of a bag has its topics in adjacent columns."""
    pytest.importorskip("rosbags")
    path = folder(recordings, "ros2_mcap_crazyflie_vicon/pitch0bag")
    table = data.open(path / "pitch0bag_0.csv", unit="ns")
    bag = data.open(path)
    for topic, name in (
        ("/cf_logpos", "/cf_logpos"),
        ("/vicon/Group466CF/Group466CF/pose", "/vicon/pose"),
    ):
        stream = table[f"pitch0bag_0: {name}"]
        assert stream.times().tolist() == bag[topic].log_times.tolist()
        x = stream.select(names=[n for n in stream.names if n.endswith("position.x")])
        own = [n for n in bag[topic].names if n.endswith("position.x")]
        np.testing.assert_array_equal(x.values, bag[topic].select(names=own).values)


@pytest.mark.parametrize("kind", ["csv", "npy", "episodes", "folder"])
def test_links_out_of_a_folder(tmp_path, kind):
    """Tables, arrays, and folders of arrays."""
    outside, folder = tmp_path / "outside", tmp_path / "set"
    outside.mkdir(), folder.mkdir()
    if kind == "csv":
        for file in (folder / "a.csv", outside / "b.csv"):
            csv(file, ["t,x", "0.5,1", "1,2"])
        name = "b.csv"
    elif kind == "folder":
        for place in (folder / "imu", outside / "gps"):
            place.mkdir()
            np.save(place / "value.npy", np.zeros((3, 2)))
        name = "gps"
    else:
        np.save(folder / ("t.npy" if kind == "npy" else "episode_index.npy"), np.zeros(3, int))
        np.save(outside / "value.npy", np.zeros((3, 2)))
        name = "value.npy"
    (folder / name).symlink_to(outside / name)
    with pytest.raises(data.FormatError, match="is a link out of the data set") as told:
        data.open(folder)
    assert told.value.place == name
    opened = data.open(folder, follow_links=True).load()
    if kind == "folder":
        assert [str(each) for each in opened.left_out] == [
            "gps: a link to a folder, which is not followed"
        ]


def test_arrays_without_numbers_are_named(tmp_path):
    np.save(tmp_path / "t.npy", np.arange(3.0))
    np.save(tmp_path / "value.npy", np.zeros((3, 2)))
    np.save(tmp_path / "word.npy", np.array(["a", "b", "c"]))
    recording = data.open(tmp_path)
    assert [str(each) for each in recording.left_out] == ["word: has dtype <U1, which is not read"]
