"""Units of times, stamps that lost their digits, tables without times, several things per table."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

import robocache as rbc
from cli_process import robocache
from robocache.data._checks.times import lost_digits

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

data = rbc.data
S = 10**9
START = 1_700_000_000


def csv(path, header, *columns):
    rows = [",".join(map(str, row)) for row in zip(*columns)]
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def distinct(recording):
    return {name: len(np.unique(s.times())) for name, s in recording.streams.items()}


def kinds_of(recording):
    return [(f.severity, f.kind) for f in data.checks.check(recording)]


# ---- units --------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [None, "ns", "us", "ms", "s"])
@pytest.mark.parametrize("start", [START, 0])
def test_floats_in_seconds_stay_so(tmp_path, unit, start):
    times = [f"{start + i / 1000:.6f}" for i in range(201)]
    path = csv(tmp_path / "a.csv", "time,x", times, range(201))
    recording = data.open(path, unit=unit)
    assert distinct(recording) == {"a": 201}
    assert np.ptp(recording["a"].times()) == pytest.approx(0.2)
    assert recording.align(100)["a"].num_rows == 21


@pytest.mark.parametrize("name", ["time_ns", "time"])
def test_floats_beside_integers(tmp_path, name):
    csv(tmp_path / "imu.csv", f"{name},x", [START * S + i * 10**6 for i in range(201)], range(201))
    csv(tmp_path / "gps.csv", "time,lat", [f"{START + i / 10:.6f}" for i in range(3)], range(3))
    for unit in (None, "ns"):
        recording = data.open(tmp_path, unit=unit)
        assert recording.unit == "ns" and distinct(recording) == {"gps": 3, "imu": 201}
        assert recording["gps"].times().tolist() == [START * S + i * 10**8 for i in range(3)]
        assert recording.align(100)["gps"].num_rows == 21


def test_a_unit_that_would_merge_times_is_refused(tmp_path):
    csv(tmp_path / "a.csv", "time,x", [i * 1e-10 for i in range(9)], range(9))
    csv(tmp_path / "b.csv", "time_ns,x", range(9), range(9))
    with pytest.raises(data.FormatError, match="9 different times would become 2 in whole ns"):
        data.open(tmp_path).load()


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_a_unit_that_is_too_long(tmp_path, unit):
    path = csv(tmp_path / "imu.csv", "time,x", [START * S + i for i in range(9)], range(9))
    match = f"imu.csv are too large for --unit {unit}: .* in the year \\d+. .* looks like ns"
    with pytest.raises(data.FormatError, match=match):
        data.open(path, unit=unit)


@pytest.mark.parametrize("unit", ["us", "ms"])
@pytest.mark.parametrize("kind", ["csv", "npy"])
def test_floats_of_this_century_in_a_smaller_unit(tmp_path, unit, kind):
    """In seconds they would be after the year 9999."""
    per = {"us": 10**6, "ms": 10**3}[unit]
    times = [START * per + i * per / 8 for i in range(33)]
    if kind == "csv":
        csv(tmp_path / "a.csv", "timestamp,x", map(repr, times), [i / 8 for i in range(33)])
    else:
        np.save(tmp_path / "timestamps.npy", np.array(times))
        np.save(tmp_path / "a.npy", np.arange(33)[:, None] / 8)
    recording = data.open(tmp_path)
    assert recording.unit == "s"
    assert recording["a"].times().tolist() == [START + i / 8 for i in range(33)]
    assert f"looks like {unit} since 1970" in recording.info("a").times
    aligned = recording.align(16)["a"].values[:, 0]
    np.testing.assert_allclose(aligned, np.arange(65) / 16, rtol=0, atol=1e-6)


@pytest.mark.parametrize("text", ["%d", "%.1f"])
def test_a_name_with_another_unit_than_the_times(tmp_path, text):
    times = [text % (START * 1000 + i * 100) for i in range(30)]
    path = csv(tmp_path / "a.csv", "time_s,x", times, [i / 10 for i in range(30)])
    match = (
        "column time_s says seconds, but .* year 55\\d+. 17.* looks like ms since 1970.*time_s:ms"
    )
    with pytest.raises(data.FormatError, match=match):
        data.open(path)
    right = data.open(path, time="time_s:ms")
    assert right.align(10)["a"].num_rows == 30
    csv(
        path, "time_s,x", [10**13 + i for i in range(9)], range(9)
    )  # not of this century in any unit
    assert data.open(path)["a"].times()[0] == 10**13


@pytest.mark.parametrize("unit", ["ns", "us", "ms", "s"])
def test_what_integers_look_like(tmp_path, unit):
    """Only ns are certain; other values may count from the start of a machine."""
    per = {"ns": S, "us": 10**6, "ms": 10**3, "s": 1}[unit]
    path = csv(tmp_path / "a.csv", "time,x", [START * per + i for i in range(9)], range(9))
    recording = data.open(path)
    assert recording.unit == ("ns" if unit == "ns" else None)
    assert f"looks like {unit} since 1970" in recording.info("a").times


def test_units_that_differ_are_named():
    streams = []
    for name, times in (("imu", START * S + np.arange(9) * 10**8), ("gps", START + np.arange(9))):
        clocks = {"time": times}
        streams.append(data.RecordedStream(name, "csv", ("x",), np.zeros((9, 1)), clocks))
    recording = data.Recording.from_streams(streams)
    match = (
        "imu and gps have no time .* units differ: imu looks like nanoseconds and gps .* seconds"
    )
    with pytest.raises(ValueError, match=match):
        recording.align(1)
    with pytest.raises(ValueError, match="rate: is 10, but .* gps are .*no step of 0.1 s is"):
        recording.select(["gps"]).align(10)


def test_ticks_stay_ticks(tmp_path):
    path = csv(tmp_path / "a.csv", "timestamp,x", range(20327115, 20327124), range(9))
    recording = data.open(path)
    assert recording.unit is None and recording["a"].times()[0] == 20327115


# ---- lost digits --------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
TENTHS = np.arange(300) / 10
LOST = {
    "float32": np.float32(START + TENTHS).astype(float),
    "float32 of an hour": np.float32(START + np.arange(36000) / 10),
    "exponent": np.array([float(f"{START + t:.5e}") for t in TENTHS]),
    "whole seconds": np.floor(START + TENTHS),
    "seconds as integers": (START + TENTHS).astype(int),
    "tenths at 100 Hz": np.floor(START * 10 + np.arange(300) / 10) / 10,
    "hundredths at 1 kHz": np.floor(START * 100 + np.arange(300) / 10) / 100,
    "one stamp": np.full(50, 5.0),
}
KEPT = {
    "regular": TENTHS,
    "2 Hz in whole seconds": np.floor(np.arange(60) / 2),
    "bursts": np.repeat(np.cumsum(RNG.random(60)), 5),
    "bursts of several lengths on a grid": np.repeat(np.arange(60) / 10, RNG.integers(1, 9, 60)),
    "targets of a radar at 20 Hz": np.repeat(np.arange(60) / 20, 5),
    "few": np.zeros(9),
    "repeats": np.sort(np.concatenate([TENTHS, TENTHS[:100]])),
    "float32 of a short recording": np.float32(TENTHS),
    "back": np.floor(START - TENTHS),
}


@pytest.mark.parametrize("name", LOST)
def test_stamps_that_lost_their_digits(name):
    lost = lost_digits(LOST[name], 1.0)
    assert lost is not None and lost.stamps == len(np.unique(LOST[name]))
    ns = np.rint(LOST[name] * 1e9).astype(np.int64)
    assert lost_digits(ns, 1e9) is not None or name.startswith("float32 of")


@pytest.mark.parametrize("name", KEPT)
def test_stamps_that_kept_their_digits(name):
    assert lost_digits(KEPT[name], 1.0) is None
    assert lost_digits(np.rint(KEPT[name] * 1e9).astype(np.int64), 1e9) is None


@pytest.mark.parametrize("name", ["float32", "exponent", "whole seconds"])
@pytest.mark.parametrize("suffix", ["csv", "parquet", "npy"])
def test_lost_digits_are_refused_but_for_a_rate(tmp_path, name, suffix):
    times, values = LOST[name], np.arange(300.0)
    path = tmp_path / f"a.{suffix}"
    if suffix == "csv":
        csv(path, "time_s,x", [f"{t:.6f}" for t in times], values)
    elif suffix == "parquet":
        pq.write_table(pa.table({"time_s": times, "x": values}), path)
    else:
        path = tmp_path
        np.save(path / "a.npy", values)
        np.save(path / "t.npy", times)
    recording = data.open(path)
    words = f"300 samples share {len(np.unique(times))} stamps?: the stamps lost their digits"
    with pytest.raises(ValueError, match=f"a: {words}.*--fps HZ"):
        recording.align(20)
    assert ("error", "lost_digits") in kinds_of(recording)
    by_rows = data.open(path, rate=10)
    assert by_rows["a"].times().tolist() == (np.arange(300) / 10).tolist()
    assert ("error", "lost_digits") not in kinds_of(by_rows)
    aligned = by_rows.align(20)["a"].values
    np.testing.assert_allclose(aligned[:598, 0], np.arange(598) / 2)


def test_header_stamps_in_whole_seconds():
    log = START * S + np.arange(200) * 10**8
    stamps = log // S * S
    stream = data.RecordedStream(
        "/imu", "t", ("x",), np.zeros((200, 1)), {"log": log, "header": stamps}, "ns"
    )
    recording = data.Recording.from_streams([stream])
    assert recording.clock() == "header"
    with pytest.raises(ValueError, match="200 samples share 20 stamps"):
        recording.align(10)
    assert recording.align(10, clock="log")["/imu"].num_rows == 200
    assert ("error", "lost_digits") in kinds_of(recording)


# ---- without times ------------------------------------------------------------------------------


def test_tables_with_nothing_to_read(tmp_path):
    tables = {
        "no_times.csv": ("x,y", range(9), range(9)),
        "times_alone.csv": ("time,label", range(9), "abcdefghi"),
    }
    for name, (header, *columns) in tables.items():
        (unread,) = data.open(csv(tmp_path / name, header, *columns)).unread
        assert unread.place == name and unread.messages == 9
    empty = pa.table({"time_s": pa.array([], pa.float64()), "x": pa.array([], pa.float64())})
    pq.write_table(empty, tmp_path / "no_rows.parquet")
    (unread,) = data.open(tmp_path / "no_rows.parquet").unread
    assert unread.reason == "the table has no rows"
    np.save(tmp_path / "joints.npy", np.zeros((9, 3)))
    (unread,) = data.open(tmp_path / "joints.npy").unread
    assert "--time ARRAY" in unread.reason and "--fps HZ" in unread.reason
    csv(tmp_path / "texts.csv", "time,state", ["2023-13-45"] * 9, "abcdefghi")
    with pytest.raises(data.FormatError, match="a text without columns of numbers"):
        data.open(tmp_path / "texts.csv")


def test_an_unread_table_has_no_messages(tmp_path):
    (unread,) = data.open(csv(tmp_path / "a.csv", "x,y", range(9), range(9))).unread
    assert str(unread) == f"a.csv: {unread.reason}"


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npy"])
def test_a_rate_gives_tables_times(tmp_path, suffix):
    path, count = tmp_path / f"a.{suffix}", 100_000 if suffix == "parquet" else 50
    values = np.arange(float(count))
    if suffix == "csv":
        csv(path, "x,y", values, values)
    elif suffix == "parquet":
        pq.write_table(pa.table({"x": values}), path)
    else:
        np.save(path, values)
    recording = data.open(path, rate=25)
    assert recording.unit == "s" and recording.unread == ()
    assert recording["a"].times().tolist() == (values / 25).tolist()
    assert recording.info("a").times == "row / 25 (--fps)"
    with pytest.raises(ValueError, match="rate"):
        data.open(path, rate=0)


def test_a_folder_goes_on_without_the_file_that_has_no_times(tmp_path):
    ns = [START * S + i * 10**7 for i in range(101)]
    csv(tmp_path / "imu.csv", "time,seconds_elapsed,x", ns, range(101), range(101))
    csv(tmp_path / "facts.csv", "version,recording epoch time", [3], [START * 1000])
    (tmp_path / "notes.csv").write_text("time,seconds_elapsed,text\n")
    recording = data.open(tmp_path)
    assert recording.unit == "ns" and [u.place for u in recording.unread] == ["facts.csv"]
    aligned = recording.align(50)
    assert list(aligned.tracks) == ["imu"] and aligned["imu"].num_rows == 51
    assert [part.place for part in aligned.left_out] == ["notes.csv", "facts.csv"]
    assert "no column holds times" in aligned.left_out[1].reason


# ---- arrays -------------------------------------------------------------------------------------


def test_arrays_take_the_times_that_are_named(tmp_path):
    np.save(tmp_path / "joints.npy", np.zeros((9, 3)))
    np.save(tmp_path / "frame.npy", np.arange(9))
    recording = data.open(tmp_path, time="frame:ms")
    assert recording.names == ("joints",) and recording.unit == "ms"
    assert recording.info("joints").times == "array frame, by --time, in ms"
    with pytest.raises(data.FormatError, match="--time nope: no such array"):
        data.open(tmp_path, time="nope")


@pytest.mark.parametrize("name", ["timestamps_us", "unix_time_us", "frame_times"])
def test_arrays_whose_name_states_the_unit(tmp_path, name):
    np.save(tmp_path / "joints.npy", np.zeros((9, 3)))
    np.save(tmp_path / f"{name}.npy", np.arange(9))
    recording = data.open(tmp_path)
    assert recording["joints"].times().tolist() == list(range(9))
    assert recording.unit == ("us" if name.endswith("us") else None)


# ---- several things in a table ------------------------------------------------------------------


def things(ids, count=50, rows_each=None):
    """Return times, ids and values of several things, each sampled at the same times."""
    times = np.repeat(np.arange(count) * 10**7, len(ids))
    which = np.tile(np.array(ids, dtype=object), count)
    values = np.array([10.0 * list(ids).index(i) for i in which]) + np.repeat(
        np.arange(count), len(ids)
    )
    return times.tolist(), which.tolist(), values.tolist()


@pytest.mark.parametrize("ids", [(0, 1), (7, -3, 12), ("left", "right")])
@pytest.mark.parametrize("suffix", ["csv", "parquet", "nulls"])
def test_an_instance_column_makes_a_stream_of_each(tmp_path, ids, suffix):
    times, which, values = things(ids, 100)
    path = tmp_path / ("imu.csv" if suffix == "csv" else "imu.parquet")
    if suffix == "csv":
        csv(path, "time_ns,id,x", times, which, values)
    else:
        table = pa.table({"time_ns": times, "id": which, "x": values})
        if suffix == "nulls":
            table = table.append_column("y", pa.array([None] + [1.0] * (len(times) - 1)))
        pq.write_table(table, path, row_group_size=64)
    recording = data.open(path)
    for i, own in enumerate(ids):
        name = next(n for n in recording.names if n.startswith(f"imu[{own}]"))
        stream = recording[name]
        assert len(stream) in (99, 100) and recording.info(name).count == len(stream)
        x = stream.values[:, stream.names.index("x")] if "x" in stream.names else None
        if x is not None and len(x) == 100:
            assert x.tolist() == (10.0 * i + np.arange(100)).tolist()
            assert stream.times().tolist() == (np.arange(100) * 10**7).tolist()
    assert not any("id" in s.names for s in recording.streams.values())
    assert "streams by column id" in recording.info(recording.names[0]).times


def test_instances_in_pieces(tmp_path, monkeypatch):
    from robocache.data._formats.tables import tables as table_files

    times, which, values = things((3, 4), 50_000)
    table = pa.table({"time_ns": times, "id": which, "x": values})
    pq.write_table(table, tmp_path / "imu.parquet")
    with monkeypatch.context() as patched:
        patched.setattr(table_files, "read", None)  # would read all of it
        recording = data.open(tmp_path / "imu.parquet")
    assert recording.info("imu[3]").count == 50_000
    assert len(list(recording.pieces())) > 2
    assert recording["imu[4]"].values[:, 0].tolist() == (10.0 + np.arange(50_000)).tolist()


@pytest.mark.parametrize("kind", ["float", "one", "many", "not unique", "goes back", "few repeats"])
def test_columns_that_say_not_which(tmp_path, kind):
    times, which, values = things((0, 1), 70)
    if kind == "float":
        which = [float(i) + 0.5 for i in which]
    elif kind == "one":
        which = [1] * 140
    elif kind == "many":
        which = list(range(140))
    elif kind == "not unique":
        which = [0, 0, 1, 1] * 35
        times = np.repeat(np.arange(70), 2).tolist()
    elif kind == "goes back":
        times[20:24], times[24:28] = times[24:28], times[20:24]
    elif kind == "few repeats":
        times = [0, 0, *range(1, 139)]
    path = csv(tmp_path / "a.csv", "time_ns,id,x", times, which, values)
    assert data.open(path).names == ("a",)


@pytest.mark.parametrize("kind", ["no time", "no id", "neither", "one row"])
@pytest.mark.parametrize("ids", [(1, 2), ("left", "right")])
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_instances_beside_rows_that_lack_something(tmp_path, kind, ids, suffix):
    times, which, values = things(ids)
    skipped = 0
    if kind in ("no time", "neither"):
        times[0], skipped = None, skipped + 1
    if kind in ("no id", "neither"):
        which[9], skipped = None, skipped + 1
    if kind == "one row":
        times.append(times[-1]), which.append(9 if ids[0] == 1 else "top"), values.append(-1.0)
    path = tmp_path / f"a.{suffix}"
    if suffix == "csv":
        rows = [["" if x is None else x for x in column] for column in (times, which, values)]
        csv(path, "time_ns,id,x", *rows)
    else:
        pq.write_table(pa.table({"time_ns": times, "id": which, "x": values}), path)
    if skipped:
        with pytest.raises(data.FormatError, match=f"{skipped} of 100 rows ha(s|ve) no time"):
            data.open(path).load()
    recording = data.open(path, damaged="keep").load()
    assert recording.names[:2] == tuple(f"a[{i}]" for i in ids)
    assert len(recording.names) == (3 if kind == "one row" else 2)
    assert sum(len(s) for s in recording.streams.values()) == len(times) - skipped
    for i, name in enumerate(recording.names[:2]):
        assert recording[name].values.min() >= 10 * i
        line = recording[name].values[:, 0] - recording[name].times() / 10**7
        assert line.tolist() == [10.0 * i] * len(line)


def test_a_text_that_few_rows_have_says_not_which(tmp_path):
    times, _, values = things((0, 1))
    events = [*"abababab", *[""] * 92]
    assert data.open(csv(tmp_path / "a.csv", "time_ns,event,x", times, events, values)).names == (
        "a",
    )


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_rate_leaves_the_times_of_instances(tmp_path, suffix):
    times, which, values = things(("a", "b", "c"))
    path = tmp_path / f"a.{suffix}"
    if suffix == "csv":
        csv(path, "time_ns,id,x", times, which, values)
    else:
        pq.write_table(pa.table({"time_ns": times, "id": which, "x": values}), path)
    recording = data.open(path, rate=10)
    assert recording.names == ("a[a]", "a[b]", "a[c]")
    assert recording["a[c]"].times().tolist() == times[::3]


# ---- texts of other tools -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"0.0,1\n0.1,2\n", "has no header: the first line holds numbers"),
        (b"made by a tool\n,a,,b,\nx,y,x,y\n0,1,2,3\n0,1,2,3\n", "has its numbers from line 4 on"),
        (b"", "is empty"),
    ],
)
def test_a_single_file_is_named_for_what_it_is(tmp_path, content, match):
    path = tmp_path / "a.csv"
    path.write_bytes(content)
    with pytest.raises(data.FormatError, match=match):
        data.open(path)


def test_a_second_line_of_units(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("time,x,y\nms,m,rad\n0,0,0.5\n100,1,-1.5\n")
    recording = data.open(path)
    assert recording.unit == "ms" and recording["a"].values.tolist() == [[0, 0.5], [1, -1.5]]
    path.write_text("time,x,mode\n2023-11-14T22:13:20,,s\n2023-11-14T22:13:21,1,s\n")
    assert data.open(path)["a"].values.tolist() == [[1.0]]  # the first row holds no units


def test_spaces_and_quotes_around_names_and_numbers(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('"time","x", y\n"0.0","1", 2\n"0.5","3", 4\n')
    stream = data.open(path)["a"]
    assert stream.names == ("x", "y") and stream.values.tolist() == [[1, 2], [3, 4]]
    assert stream.times().tolist() == [0.0, 0.5]


# ---- folders ------------------------------------------------------------------------------------


def bag(folder, name, begin, topics=("/a",), count=40, storage="mcap"):
    """Write a bag file in a folder without metadata.yaml."""
    pytest.importorskip("rosbags")
    from rosbags.rosbag2 import StoragePlugin, Writer

    import data_files as files

    store = files.typestore()
    kind = StoragePlugin.MCAP if storage == "mcap" else StoragePlugin.SQLITE3
    made = folder / f"made {name}"
    with Writer(made, version=9, storage_plugin=kind) as writer:
        for topic in topics:
            written = writer.add_connection(topic, "std_msgs/msg/Float64", typestore=store)
            for i in range(count):
                message = files.make(store, "std_msgs/msg/Float64", data=float(i))
                content = store.serialize_cdr(message, "std_msgs/msg/Float64")
                writer.write(written, int((begin + i / 20) * S), content)
    suffix = ".mcap" if storage == "mcap" else ".db3"
    (file,) = made.glob(f"*{suffix}")
    shutil.move(file, folder / f"{name}{suffix}")
    shutil.rmtree(made)


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
@pytest.mark.parametrize(
    ("first", "second", "begin", "topics", "one"),
    [
        ("run_a", "run_b", 2, ("/a",), False),
        ("run_0", "run_1", 2, ("/a",), True),
        ("run_0", "run_1", 86_400, ("/a",), False),
        ("run_0", "run_1", -86_400, ("/a",), False),
        ("run_0", "run_1", 0, ("/a",), False),
        ("run_0", "run_2", 2, ("/a",), False),
        ("run_0", "run_1", 2, ("/b",), False),
        ("run_0", "other_1", 2, ("/a",), False),
        ("run_0", "run_1", 2, ("/a", "/b"), True),
    ],
)
def test_two_recordings_in_a_folder(tmp_path, storage, first, second, begin, topics, one):
    bag(tmp_path, first, START, storage=storage)
    bag(tmp_path, second, START + begin, topics, storage=storage)
    if one:
        assert len(data.open(tmp_path)["/a"]) == 80
        return
    suffix = ".mcap" if storage == "mcap" else ".db3"
    match = "this folder holds 2 recordings: open one of .*" + suffix
    with pytest.raises(data.FormatError, match=match) as caught:
        data.open(tmp_path)
    assert f"{first}{suffix}" in str(caught.value) and f"{second}{suffix}" in str(caught.value)


def test_a_folder_with_one_data_set_opens_it(tmp_path):
    (tmp_path / "notes.txt").write_text("notes\n")
    (tmp_path / "run").mkdir()
    csv(tmp_path / "run" / "a.csv", "time_s,x", range(9), range(9))
    recording = data.open(tmp_path)
    assert recording.names == ("a",) and recording.path == str(tmp_path / "run")
    (tmp_path / "other.bag").write_bytes(b"#ROSBAG, cut")
    with pytest.raises(data.FormatError, match="other.bag: expected a ROS 1 bag"):
        data.open(tmp_path)
    assert data.open(tmp_path, damaged="keep").names == ("a",)


# ---- the command line ---------------------------------------------------------------------------


def test_inspect_shows_the_column(tmp_path):
    path = csv(
        tmp_path / "a.csv", "tick,time,x", range(50), [START * S + i for i in range(50)], range(50)
    )
    run = robocache("inspect", path, "--json")
    assert "looks like ns since 1970" in json.loads(run.stdout)["streams"]["a"]["times"]
    run = robocache("inspect", path, "--time", "tick:ms")
    assert "a: times from column tick, by --time, in ms" in run.stdout
    run = robocache("inspect", path, "--time", "nope")
    assert run.returncode == 1 and "--time nope: no column is named nope" in run.stderr


def test_resample_names_the_options(tmp_path):
    path = csv(tmp_path / "a.csv", "frame,x", range(50), range(50))
    arguments = ("resample", path, "--rate", "20", "-o", tmp_path / "o.npz")
    run = robocache(*arguments)
    assert run.returncode == 1 and "--time COLUMN" in run.stderr and "--fps HZ" in run.stderr
    assert robocache(*arguments, "--fps", "10").returncode == 0
    assert len(data.open(tmp_path / "o.npz")["a"].values) == 99
