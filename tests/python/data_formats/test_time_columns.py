"""The column of times of a table: found by its name, named by the caller, joined of two columns."""

from __future__ import annotations

import pathlib
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import robocache as rbc
import text_sources
from robocache.data._formats.tables.time_columns import (
    PATTERNS,
    UNIT_OF,
    pairs_of,
    plain_name,
    row_of,
)

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

data = rbc.data
S = 10**9
START = 1_700_000_000 * S
ROWS = 21
NS = [START + i * 10**8 for i in range(ROWS)]
SECONDS = [i / 10 for i in range(ROWS)]


def csv(path, header, *columns):
    rows = [",".join(map(str, row)) for row in zip(*columns)]
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def seconds_of(recording, stream=None):
    """Return the times minus the first one, in seconds, rounded to microseconds."""
    times = recording[stream or recording.names[0]].times()
    per = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0, None: 1.0}[recording.unit]
    per = 1.0 if times.dtype.kind == "f" else per
    return np.round((times - times[0]) / per, 6).tolist()


def iso(form, step=100, zone=""):
    found = []
    for i in range(ROWS):
        ms = i * step
        found.append(form.format(s=20 + ms // 1000, ms=ms % 1000) + zone)
    return found


COLUMNS = {
    "#timestamp [ns]": NS,
    "%time": NS,
    "GPST": iso("2023/11/14 22:13:{s}.{ms:03}"),
    "%  GPST": iso("2023/11/14 22:13:{s}.{ms:03}"),
    "rosbagTimestamp": NS,
    "TimeUS": [10**6 + i * 10**5 for i in range(ROWS)],
    "seconds_elapsed": SECONDS,
    "__time": [t / 1e9 for t in NS],
    "unix_timestamp": [f"{t / 1e9:.3f}" for t in NS],
    "epoch_ms": [t // 10**6 for t in NS],
    "timestamp_sample": [10**6 + i * 10**5 for i in range(ROWS)],
    "time_usec": [10**6 + i * 10**5 for i in range(ROWS)],
    "Time (s)": SECONDS,
    "TIME": SECONDS,
    "t": SECONDS,
    "T [s]": SECONDS,
    "time in milliseconds": [i * 100 for i in range(ROWS)],
    "Timestamp (UTC)": iso("2023-11-14T22:13:{s}.{ms:03}Z"),
    "datetime": iso("2023-11-14 22:13:{s}.{ms:03}", zone="+01:00"),
    "time": iso("17:03:{s}.{ms:03}"),
    "clock_time": iso("2023-11-14T22:13:{s}.{ms:03}000001"),
    "imu/header.stamp": NS,
    "state.timestamp": SECONDS,
    "millis": [i * 100 for i in range(ROWS)],
    "loggingTime(txt)": iso("2023-11-14T22:13:{s}.{ms:03}", zone="+0100"),
    "": SECONDS,
    "Unnamed: 0": SECONDS,
    '"time"': SECONDS,
    "when": iso("2023-11-14T22:13:{s}.{ms:03}"),
}


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_a_column_that_is_the_clock(tmp_path, name, bom):
    path = csv(tmp_path / "a.csv", f"{bom}{name},v", COLUMNS[name], SECONDS)
    recording = data.open(path)
    (stream,) = recording.names
    assert recording[stream].names == ("v",)
    assert seconds_of(recording) == SECONDS
    assert recording.info(stream).times is not None
    assert recording.unread == ()


PAIRS = [
    (".header.stamp.secs", ".header.stamp.nsecs"),
    ("header.stamp.sec", "header.stamp.nanosec"),
    ("sec", "nanosec"),
    ("Secs", "Nsecs"),
    ("stamp_seconds", "stamp_nanoseconds"),
]


@pytest.mark.parametrize("names", PAIRS)
def test_pairs_are_joined_exactly(tmp_path, names):
    ns = [START + i * 10**8 + 123_456_789 for i in range(ROWS)]
    parts = [t // S for t in ns], [t % S for t in ns]
    path = csv(tmp_path / "a.csv", ",".join(("v", *names)), SECONDS, *parts)
    recording = data.open(path)
    assert recording.unit == "ns" and recording["a"].times().tolist() == ns
    assert recording["a"].names == ("v",)
    table = pa.table({"v": SECONDS, names[0]: parts[0], names[1]: parts[1]})
    pq.write_table(table, tmp_path / "b.parquet", row_group_size=7)
    assert data.open(tmp_path / "b.parquet")["b"].times().tolist() == ns


def test_pairs_of_whole_floats_and_dates_without_marks(tmp_path):
    parts = [float(t // S) for t in NS], [float(t % S) for t in NS]
    recording = data.open(csv(tmp_path / "a.csv", "secs,nsecs,v", *parts, SECONDS))
    assert recording["a"].times().tolist() == NS
    clock = iso("22:13:{s}.{ms:03}")
    recording = data.open(csv(tmp_path / "b.csv", "date,time,v", [20231114] * ROWS, clock, SECONDS))
    assert recording["b"].times().tolist() == NS and recording["b"].names == ("v",)
    halves = [0.5 + i for i in range(ROWS)]
    recording = data.open(csv(tmp_path / "c.csv", "sec,nanosec,v", halves, range(ROWS), SECONDS))
    assert recording["c"].times().tolist() == halves


def test_seconds_and_microseconds(tmp_path):
    parts = [1_700_000_000 + i // 10 for i in range(ROWS)], [i % 10 * 100_000 for i in range(ROWS)]
    recording = data.open(csv(tmp_path / "a.csv", "tv_sec,tv_usec,v", *parts, SECONDS))
    assert recording["a"].times().tolist() == NS


def test_nanoseconds_beyond_a_second_are_no_part_of_a_pair(tmp_path):
    """Two columns have the same time in two units."""
    path = csv(tmp_path / "a.csv", "time_sec,time_nsec,v", range(ROWS), NS, SECONDS)
    assert data.open(path).info("a").times.startswith("column time_sec, by its name, in s")


def test_a_date_and_a_time_of_day(tmp_path):
    path = csv(
        tmp_path / "a.csv", "Date,Time,v", ["2023-11-14"] * ROWS, iso("22:13:{s}.{ms:03}"), SECONDS
    )
    recording = data.open(path)
    assert recording["a"].times().tolist() == NS and recording["a"].names == ("v",)


def test_a_time_of_day_goes_on_after_midnight(tmp_path):
    clock = ["23:59:58.5", "23:59:59.5", "00:00:00.5", "00:00:01.5"]
    recording = data.open(csv(tmp_path / "a.csv", "time,v", clock, range(4)))
    assert seconds_of(recording) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("2023-11-14T22:13:20Z", START),
        ("2023-11-14 22:13:20", START),
        ("2023-11-14T22:13:20.123456789", START + 123_456_789),
        ("2023/11/14 23:13:20 +01:00", START),
        ("2023-11-14T19:43:20.5-02:30", START + S // 2),
        ("20231114T221320.25Z", START + S // 4),
    ],
)
def test_texts_of_dates(tmp_path, text, ns):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"time": [text] * 3, "v": [1.0, 2.0, 3.0]}), path)
    assert data.open(path)["a"].times().tolist() == [ns] * 3


def test_a_date_that_is_none_has_no_time(tmp_path):
    texts = iso("2023-11-14T22:13:{s}.{ms:03}")
    texts[4] = "2023-02-30T00:00:00.000"
    path = csv(tmp_path / "a.csv", "time,v", texts, SECONDS)
    with pytest.raises(data.FormatError, match=r"1 of 21 rows has no time: .* \(first: row 4\)"):
        data.open(path).load()


# ---- Parquet ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["lengths", "floats", "named", "epoch"])
def test_the_index_of_pandas(tmp_path, kind):
    name = "when" if kind == "named" else "__index_level_0__"
    values = {
        "lengths": pa.array([i * 10**8 for i in range(ROWS)], pa.duration("ns")),
        "floats": pa.array(SECONDS),
        "named": pa.array(SECONDS),
        "epoch": pa.array(NS),
    }[kind]
    metadata = {b"pandas": f'{{"index_columns": ["{name}"]}}'.encode()}
    table = pa.table({"v": SECONDS, name: values}).replace_schema_metadata(metadata)
    pq.write_table(table, tmp_path / "a.parquet")
    recording = data.open(tmp_path / "a.parquet")
    assert seconds_of(recording) == SECONDS and recording["a"].names == ("v",)
    assert "the index of pandas" in recording.info("a").times


def test_an_index_that_numbers_the_rows_is_no_time(tmp_path):
    metadata = {b"pandas": b'{"index_columns": ["__index_level_0__"]}'}
    table = pa.table({"v": SECONDS, "__index_level_0__": list(range(0, 2 * ROWS, 2))})
    pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "a.parquet")
    assert data.open(tmp_path / "a.parquet")["a"].times() is None


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("nulls", [False, True])
def test_a_struct_of_seconds_and_nanoseconds(tmp_path, nested, nulls):
    stamps = [{"sec": t // S, "nanosec": t % S} for t in NS]
    name = "header" if nested else "stamp"
    column = [{"stamp": s, "frame_id": "base"} for s in stamps] if nested else stamps
    values = [None if nulls and i == 3 else v for i, v in enumerate(SECONDS)]
    pq.write_table(pa.table({"x": values, name: column}), tmp_path / "a.parquet", row_group_size=5)
    recording = data.open(tmp_path / "a.parquet")
    stream = next(s for s in recording.streams.values() if "x" in s.names)
    assert recording.unit == "ns" and set(stream.times().tolist()) <= set(NS)
    assert len(stream) == ROWS - nulls
    assert [str(each) for each in recording.left_out] == (
        ["a: header.frame_id: has type string, which is not read"] if nested else []
    )


def test_other_structs_are_named(tmp_path):
    pose = [{"x": 1.0, "y": 2.0}] * ROWS
    pq.write_table(pa.table({"time": SECONDS, "v": SECONDS, "pose": pose}), tmp_path / "a.parquet")
    (left,) = data.open(tmp_path / "a.parquet").left_out
    assert str(left) == "a: pose: is a struct (x, y), which is not read"


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_day_of_parquet(tmp_path, unit):
    per = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    kind = pa.time32(unit) if unit in ("s", "ms") else pa.time64(unit)
    column = pa.array([i * per for i in range(ROWS)], kind)
    pq.write_table(pa.table({"time": column, "v": SECONDS}), tmp_path / "a.parquet")
    assert seconds_of(data.open(tmp_path / "a.parquet")) == list(range(ROWS))


# ---- which of several ---------------------------------------------------------------------------


@pytest.mark.parametrize("falls", [False, True])
@pytest.mark.parametrize("other", ["unix_timestamp", "seconds_elapsed", "sec,nanosec"])
def test_a_temperature_is_no_clock(tmp_path, falls, other):
    warm = [20.5 + (-i if falls else i) / 100 for i in range(ROWS)]
    times = {
        "unix_timestamp": [[f"{t / 1e9:.3f}" for t in NS]],
        "seconds_elapsed": [SECONDS],
        "sec,nanosec": [[t // S for t in NS], [t % S for t in NS]],
    }[other]
    recording = data.open(csv(tmp_path / "a.csv", f"T,{other},x", warm, *times, SECONDS))
    assert recording["a"].names == ("T", "x") and seconds_of(recording) == SECONDS


def test_a_temperature_that_is_the_only_candidate(tmp_path):
    warm = [20.5 + i / 100 for i in range(ROWS)]
    assert data.open(csv(tmp_path / "a.csv", "T,x", warm, SECONDS))["a"].times() is None
    assert seconds_of(data.open(csv(tmp_path / "b.csv", "T,x", SECONDS, warm))) == SECONDS


def test_a_column_that_stands_still_is_no_clock(tmp_path):
    path = csv(tmp_path / "a.csv", "stamp,time_s,x", [0] * ROWS, SECONDS, SECONDS)
    assert data.open(path).info("a").times.startswith("column time_s, by its name, in s")


def test_the_others_are_named(tmp_path):
    path = csv(tmp_path / "a.csv", "time,seconds_elapsed,x", NS, SECONDS, SECONDS)
    assert data.open(path).info("a").times == (
        f"column time, by its name, in ns: {START} looks like ns since 1970 (not seconds_elapsed)"
    )


@pytest.mark.parametrize(
    "name", ["delta_time", "exposure_time_us", "start_time", "frame", "lifetime"]
)
def test_other_columns_are_no_clock(tmp_path, name):
    values = [5 + i % 3 for i in range(ROWS)] if name != "frame" else range(ROWS)
    recording = data.open(csv(tmp_path / "a.csv", f"{name},x", values, SECONDS))
    assert recording["a"].times() is None
    (unread,) = recording.unread
    assert "--time COLUMN" in unread.reason and "--fps HZ" in unread.reason


# ---- what the caller names ----------------------------------------------------------------------


def test_the_caller_names_the_column(tmp_path):
    path = csv(tmp_path / "a.csv", "frame,time,a:ms,x", range(ROWS), NS, range(ROWS), SECONDS)
    assert data.open(path, time="frame")["a"].times().tolist() == list(range(ROWS))
    recording = data.open(path, time="frame:ms")
    assert recording.unit == "ms" and recording.info("a").times == "column frame, by --time, in ms"
    assert data.open(path, time="a:ms").unit is None  # a whole name
    assert data.open(path, time="a:ms:us").unit == "us"
    with pytest.raises(
        data.FormatError, match="--time nope: no column is named nope, expected one"
    ):
        data.open(path, time="nope")


def test_the_caller_names_a_pair_or_a_text(tmp_path):
    pair = [t // S for t in NS], [t % S for t in NS]
    path = csv(tmp_path / "a.csv", "time,sec,nanosec,word", SECONDS, *pair, ["x"] * ROWS)
    assert data.open(path, time="sec + nanosec")["a"].times().tolist() == NS
    with pytest.raises(
        data.FormatError, match="--time word: column word has type string, not times"
    ):
        data.open(path, time="word")


@pytest.mark.parametrize("kind", [pa.timestamp("ns"), pa.duration("us")])
def test_a_unit_for_a_column_whose_type_has_one(tmp_path, kind):
    table = pa.table({"stamp": pa.array(range(ROWS), pa.int64()).cast(kind), "x": SECONDS})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(data.FormatError, match="which have no unit: remove :s"):
        data.open(tmp_path / "a.parquet", time="stamp:s")


@pytest.mark.parametrize(("seconds", "rest"), [(70, 10**9), (10**12, 0), (-(10**12), 0), (70, -1)])
def test_a_pair_that_is_none_further_on(tmp_path, seconds, rest):
    """The wrong value comes after the rows that decide which columns are times."""
    count, at = 80_000, 79_000
    sec, nanosec = np.arange(count) // 10, np.arange(count) % 10 * 10**8
    sec[at], nanosec[at] = seconds, rest
    pq.write_table(pa.table({"sec": sec, "nanosec": nanosec, "x": sec}), tmp_path / "a.parquet")
    with pytest.raises(data.FormatError, match=rf"sec \+ nanosec, row {at}: is {seconds} and"):
        data.open(tmp_path / "a.parquet").load()


def test_a_pair_whose_seconds_are_nan_further_on(tmp_path):
    sec, nanosec = np.arange(80_000) // 10 * 1.0, np.arange(80_000) % 10 * 10**8
    sec[79_000] = np.nan
    pq.write_table(pa.table({"sec": sec, "nanosec": nanosec, "x": sec}), tmp_path / "a.parquet")
    recording = data.open(tmp_path / "a.parquet", damaged="keep").load()
    assert len(recording["a"]) == 79_999 and (np.diff(recording["a"].times()) > 0).all()


def test_lengths_of_time_that_int64_does_not_hold(tmp_path):
    for days in ("9999999", "106751", "9" * 30):
        texts = [f"{days} days 00:00:0{i}" for i in range(3)]
        recording = data.open(csv(tmp_path / "a.csv", "time,x", texts, range(3)))
        assert [each.place for each in recording.unread] == ["a.csv"]


def test_names_that_would_take_long_to_read(tmp_path):
    for name in ("time_stamp_" * 1000 + "x", "%" * 5000 + "x", '%"' * 3000, "(s" * 5000):
        assert row_of(name) is None
    names = [f"joint{i}_sec" for i in range(5000)]
    assert pairs_of([*names, "sec", "nsec", "a.secs", "a.nanosecs"]) == [
        ("sec", "nsec", S),
        ("a.secs", "a.nanosecs", S),
    ]


def test_texts_of_parquet_of_any_name(tmp_path):
    path, texts = tmp_path / "a.parquet", iso("2023-11-14T22:13:{s}.{ms:03}")
    table = pa.table({"when": texts, "word": ["x"] * ROWS, "v": SECONDS})
    pq.write_table(table, path)
    recording = data.open(path)
    assert recording["a"].times().tolist() == NS and recording["a"].names == ("v",)
    assert [each.place for each in recording.left_out] == ["a: word"]
    pq.write_table(table.append_column("time", pa.array(SECONDS)), path)
    assert data.open(path)["a"].times().tolist() == SECONDS
    assert data.open(path, time="when")["a"].times().tolist() == NS
    with pytest.raises(data.FormatError, match="column word has type .*, not times"):
        data.open(path, time="word")


def test_the_caller_names_a_column_that_one_file_has(tmp_path):
    csv(tmp_path / "a.csv", "tick,x", range(ROWS), SECONDS)
    csv(tmp_path / "b.csv", "time,x", SECONDS, SECONDS)
    recording = data.open(tmp_path, time="tick:ms")
    assert recording["a"].times() is not None and recording["b"].times() is None
    assert [each.place for each in recording.unread] == ["b.csv"]


def test_other_formats_have_no_column(tmp_path):
    rbc.data.Recording.from_streams([]).save(tmp_path / "a.npz")
    with pytest.raises(ValueError, match="--time t: .*a.npz was written by save, with its times"):
        data.open(tmp_path / "a.npz", time="t")
    made = text_sources.FORMATS["kitti"](tmp_path)
    with pytest.raises(ValueError, match="--time t: the times of KITTI odometry poses have no na"):
        data.open(made, time="t")


# ---- the table ----------------------------------------------------------------------------------


def test_the_documentation_has_the_same_table():
    text = (pathlib.Path(__file__).parents[3] / "docs/concepts/times.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d+) \| (.*?) \| (.*?) \| (.*?) \|$", text, re.MULTILINE)
    expected = []
    for number, pattern in enumerate(PATTERNS, 1):
        units = " and ".join(
            f"{kind} {unit}"
            for kind, unit in (("integers", pattern.integers), ("floats", pattern.floats))
            if unit
        )
        expected.append((str(number), pattern.names, units, pattern.needs))
    assert [tuple(map(str.strip, row)) for row in rows] == expected


def test_the_examples_of_the_table_fit_their_rows():
    for number, pattern in enumerate(PATTERNS):
        if not pattern.regex:
            continue
        for name in re.findall(r"`([^`]+)`", pattern.names.partition(": `t`")[0]):
            found = row_of(name)
            assert found is not None and found[0] == number, (name, number, found)


@pytest.mark.parametrize(
    ("name", "plain", "unit"),
    [
        ("TimeUS", "time", "us"),
        ("#timestamp [ns]", "timestamp", "ns"),
        ("Time (s)", "time", "s"),
        ("times", "times", None),
        ("ts", "ts", None),
        ("time_usec", "time", "us"),
        ("timestampNs", "timestamp", "ns"),
        ("time/ms", "time", "ms"),
        ("seconds_elapsed", "seconds_elapsed", "s"),
        ("stamp.nanosec", "stamp", "ns"),
        ("T", "T", None),
        ("GPSTime", "gps_time", None),
    ],
)
def test_plain_names(name, plain, unit):
    assert plain_name(name) == (plain, unit)


UNITS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9}
WORDS = sorted(word for word in UNIT_OF if word.isascii())
STYLES = ["{n}_{u}", "{n} [{u}]", "{n} ({u})", "{n}.{u}", "{n} in {u}"]
SETTINGS = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@SETTINGS
@given(
    base=st.sampled_from(["time", "Timestamp", "TIME", "stamp", "log_time", "unix_time"]),
    word=st.sampled_from(WORDS),
    style=st.sampled_from(STYLES),
    steps=st.lists(st.integers(1, 5000), min_size=12, max_size=40),
    order=st.permutations(range(3)),
    parquet=st.booleans(),
)
def test_random_units_and_orders_of_columns(tmp_path, base, word, style, steps, order, parquet):
    """The times of a column of any unit, at any place, come out exact and distinct."""
    unit = UNIT_OF[word]
    start = START // UNITS[unit]
    times = (start + np.cumsum(steps)).tolist()
    name = style.format(n=base, u=word)
    columns = [(name, times), ("x", list(range(len(times)))), ("y", [0.5] * len(times))]
    columns = [columns[i] for i in order]
    path = tmp_path / ("a.parquet" if parquet else "a.csv")
    if parquet:
        pq.write_table(pa.table(dict(columns)), path)
    else:
        csv(path, ",".join(name for name, _ in columns), *(values for _, values in columns))
    recording = data.open(path)
    stream = recording[recording.names[0]]
    assert recording.unit == unit and stream.times().tolist() == times
    assert set(stream.names) == {"x", "y"}


@SETTINGS
@given(
    files=st.lists(
        st.tuples(
            st.sampled_from(["time", "time_ns", "time_us", "time_s", "stamp"]),
            st.booleans(),
            st.lists(st.integers(1, 10**4), min_size=10, max_size=20),
        ),
        min_size=1,
        max_size=4,
    ),
    unit=st.sampled_from([None, "ns", "us", "ms", "s"]),
)
def test_never_fewer_times_than_the_file_has(tmp_path_factory, files, unit):
    """For any units in a folder, different times stay different, or opening is refused."""
    folder = tmp_path_factory.mktemp("folder")
    counts = {}
    for i, (name, floats, steps) in enumerate(files):
        ticks = np.cumsum(steps)
        times = [f"{t / 1000:.3f}" for t in ticks] if floats else ticks.tolist()
        csv(folder / f"f{i}.csv", f"{name},x", times, [0.5] * len(times))
        counts[f"f{i}"] = len(set(times))
    try:
        recording = data.open(folder, unit=unit)
        found = {name: len(np.unique(s.times())) for name, s in recording.streams.items()}
    except data.FormatError:
        return
    assert found == counts
