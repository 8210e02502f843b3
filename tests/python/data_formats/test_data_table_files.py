"""Tables with times that are missing or of several units, large integers, and folders of them."""

from __future__ import annotations

import numpy as np
import pytest

import robocache as rbc

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

data = rbc.data
S = 10**9
START = 1_700_000_000 * S


def csv(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def rows(count, time, value):
    return [f"{time(i)},{value(i)}" for i in range(count)]


def refused(path, match, **options):
    with pytest.raises(data.FormatError, match=match) as caught:
        data.open(path, **options).load()
    return caught.value


# ---- folders ------------------------------------------------------------------------------------


def test_files_of_one_stem_are_streams_of_their_own(tmp_path):
    csv(tmp_path / "run.csv", ["time_s,x", "0,1", "1,2"])
    csv(tmp_path / "run.tsv", ["time_s,y", "2,30", "3,40", "4,50"])
    csv(tmp_path / "other.csv", ["time_s,z", "0,1", "1,2"])
    recording = data.open(tmp_path)
    assert recording.names == ("other", "run.csv", "run.tsv")
    assert recording["run.tsv"].names == ("y",) and recording.info("run.csv").count == 2
    assert recording["run.tsv"].values[:, 0].tolist() == [30, 40, 50]


def test_streams_of_files_that_would_have_one_name(tmp_path):
    csv(tmp_path / "a.csv", ["time,u,v", "0,1,", "1,,2"])
    csv(tmp_path / "a: v.csv", ["time,v", "0,1", "1,2"])
    refused(tmp_path, "has the stream 'a: v', as .* does: rename the file")


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("b.csv", b"", "is empty"),
        ("b.csv", b"time,temp\x81\n0,1\n1,2\n", "is not text"),
        ("b.tsv", b"time,te", "the file has a single line without an end"),
        ("b.parquet", b"PAR", "does not begin like a Parquet file"),
    ],
)
def test_files_of_a_folder_that_are_damaged(tmp_path, name, content, match):
    csv(tmp_path / "a.csv", ["time_s,x", "0,1", "1,2"])
    (tmp_path / name).write_bytes(content)
    assert refused(tmp_path, match).path == str(tmp_path / name)
    kept = data.open(tmp_path, damaged="keep")
    assert kept.names == ("a",) and match in kept.problems[0].text
    assert [f.kind for f in data.checks.check(kept)] == ["damage"]


def test_texts_without_numbers_are_left_out_of_a_folder(tmp_path):
    csv(tmp_path / "a.csv", ["time_s,x", "0,1", "1,2"])
    csv(tmp_path / "b.csv", ["time,x"])
    csv(tmp_path / "c.csv", ["name,what", "arm,left"])
    (tmp_path / "README.txt").write_text("a folder\n")
    (tmp_path / "._a.csv").write_bytes(b"\0\5\x16\7")  # as macOS leaves them
    recording = data.open(tmp_path)
    assert recording.names == ("a",)
    assert [str(each) for each in recording.left_out] == [
        "b.csv: has a header and no rows",
        "c.csv: is a text without columns of numbers below a header",
    ]


@pytest.mark.parametrize("kind", ["csv", "parquet", "parquet with nulls"])
def test_a_text_among_numbers_is_named_with_its_row(tmp_path, kind):
    cells = [f"{i}.5" for i in range(3000)]
    cells[2000], cells[2005] = "7.5 m/s " + "x" * 100, "-"
    words = [str(i) if i < 3 else "w" for i in range(3000)]
    if kind == "csv":
        rows = [f"{i},{i},{cell},{word}" for i, (cell, word) in enumerate(zip(cells, words))]
        csv(tmp_path / "a", ["time_s,x,speed,word", *rows])
    else:
        x = pa.array([None if kind.endswith("nulls") and i == 9 else i for i in range(3000)])
        times = np.arange(3000.0)
        pq.write_table(
            pa.table({"time_s": times, "x": x, "speed": cells, "word": words}), tmp_path / "a"
        )
    recording = data.open(tmp_path / "a")
    assert [each.place for each in recording.left_out] == ["a: speed", "a: word"]
    (told,) = recording.problems
    assert told.path == str(tmp_path / "a") and told.place == "speed, row 2000"
    assert told.text.startswith('column speed is skipped: row 2000 is "7.5 m/s xxxxx')
    assert told.text.endswith('xxx...", not a number (2 rows like that)')
    assert len(told.text) < 150


def test_units_below_the_header_are_named(tmp_path):
    path = csv(tmp_path / "a.csv", ["time,x,v", "0,1,m/s", "1,2,3e-4", "2,3,inf", "3,4,+.5"])
    (told,) = data.open(path).problems
    assert f"{told}" == f'{path}: v, row 0: column v is skipped: row 0 is "m/s", not a number'


# ---- units --------------------------------------------------------------------------------------


def test_files_of_several_units_come_to_one(tmp_path):
    csv(tmp_path / "a.csv", ["time_us,x", *rows(9, lambda i: i * 10_000 + 7, lambda i: i)])
    csv(tmp_path / "b.csv", ["time_ms,x", *rows(9, lambda i: i * 10, lambda i: i)])
    recording = data.open(tmp_path)
    assert recording.unit == "us"
    assert recording["a"].times()[:2].tolist() == [7, 10_007]
    assert recording["b"].times()[:2].tolist() == [0, 10_000]
    assert data.checks.check(recording) == []
    assert data.open(tmp_path, unit="ms").unit == "us"  # each file states its unit


def test_integers_and_floats_come_to_one(tmp_path):
    csv(tmp_path / "a.csv", ["time_us,x", *rows(90, lambda i: i * 10_000, lambda i: i / 2)])
    csv(tmp_path / "b.csv", ["time_s,x", *rows(90, lambda i: i / 100, lambda i: i / 4)])
    recording = data.open(tmp_path)
    assert recording.unit == "ns"
    assert recording["a"].times().tolist() == recording["b"].times().tolist()
    assert recording.align(100)["b"].num_rows == 90


def test_a_file_that_does_not_tell_among_others_that_differ(tmp_path):
    csv(tmp_path / "a.csv", ["time_us,x", "0,1", "1,2"])
    csv(tmp_path / "b.csv", ["time_ms,x", "0,1", "1,2"])
    csv(tmp_path / "c.csv", ["time,x", "0,1", "1,2"])
    refused(tmp_path, r"c.csv does not say the unit .* disagree \(ms, us\). Give it: --unit us")
    assert data.open(tmp_path, unit="s")["c"].times().tolist() == [0, 10**6]


def test_times_that_the_common_unit_does_not_hold(tmp_path):
    csv(tmp_path / "a.csv", ["time_ns,x", "0,1", "1,2"])
    csv(tmp_path / "b.csv", ["time_s,x", "0,1", f"{2 * 10**10},2"])
    refused(tmp_path, "b.csv: time_s: its times do not fit in 64 bits as ns")


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_times_of_short_floats_are_scaled_as_doubles(tmp_path, dtype):
    times = (np.arange(9) * 12.34).astype(dtype)
    pq.write_table(pa.table({"time_ms": times, "x": np.arange(9)}), tmp_path / "a.parquet")
    alone = data.open(tmp_path)["a"].times()
    np.testing.assert_array_equal(alone, times.astype("f8") / 1000)
    csv(tmp_path / "b.csv", ["time_ns,x", "0,1", "1,2"])
    beside = data.open(tmp_path)["a"].times()
    np.testing.assert_array_equal(beside, np.rint(times.astype("f8") * 1e6).astype(np.int64))


def test_times_above_those_of_int64(tmp_path):
    path = csv(tmp_path / "a.csv", ["time_ns,x", f"{2**63},1", f"{2**63 + 5},2"])
    refused(path, "time_ns: has times of 2\\*\\*63 or more, out of range for int64")


def test_a_unit_that_is_not_that_of_the_file(tmp_path):
    path = csv(tmp_path / "a.csv", ["time_ms,x", "0,1", "1,2"])
    assert data.open(path, unit="ms").unit == "ms"
    refused(path, "column time_ms says milliseconds, but --unit us was given. Remove", unit="us")


@pytest.mark.parametrize(("name", "unit"), [("time_ms", None), ("time_ms", "ms"), ("time", "ms")])
def test_float_times_become_seconds(tmp_path, name, unit):
    path = csv(tmp_path / "a.csv", [f"{name},x", *rows(100, lambda i: i * 10.5, lambda i: i)])
    recording = data.open(path, unit=unit)
    assert recording.unit == "s"
    np.testing.assert_allclose(recording["a"].times(), np.arange(100) * 0.0105, rtol=1e-15)
    survey = data.checks.survey(recording, unit=unit)
    for report in (survey.report(unit=unit), recording.report(unit=unit)):
        assert report.streams["a"].rate == pytest.approx(1 / 0.0105)
    assert recording.align(10, unit=unit)["a"].num_rows == 11


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_dates_tell_their_unit(tmp_path, unit):
    times = (START // S + np.arange(9)).astype("datetime64[s]").astype(f"datetime64[{unit}]")
    table = pa.table({"timestamp": times, "x": np.arange(9.0), "when": times})
    pq.write_table(table, tmp_path / "a.parquet")
    recording = data.open(tmp_path / "a.parquet")
    own = "ms" if unit == "s" else unit  # Parquet has no seconds
    per = {"ms": 10**3, "us": 10**6, "ns": 10**9}[own]
    assert recording.unit == own
    expected = [(START // S + i) * per for i in range(9)]
    assert recording["a"].times().tolist() == expected
    when = recording[recording.names[-1]]
    assert when.values[:, when.names.index("when")].tolist() == expected


def test_dates_of_a_text(tmp_path):
    lines = [f"2024-01-01 00:00:{i:02d}.25,{i / 2}" for i in range(50)]
    recording = data.open(csv(tmp_path / "a.csv", ["date,x", *lines]))
    assert recording.unit == "ns" and recording["a"].names == ("x",)
    assert recording.report().streams["a"].rate == 1


# ---- integers that float64 rounds ---------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "parquet", "nulls"])
def test_large_integers_beside_floats_keep_their_values(tmp_path, kind):
    ids = [2**63 - 1 - i for i in range(100)]
    words = np.array([2**64 - 1 - i for i in range(100)], np.uint64)
    columns = {"time_ns": [START + i for i in range(100)], "id": ids, "word": words}
    columns = {**columns, "x": [i / 2 for i in range(100)], "n": list(range(100))}
    path = tmp_path / "a"
    if kind == "csv":
        csv(path, [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values()))])
    else:
        if kind == "nulls":
            columns["y"] = [None, *range(99)]
        pq.write_table(pa.table(columns), path, row_group_size=40)
    recording = data.open(path)
    named = {name: stream for stream in recording.streams.values() for name in stream.names}
    assert named["id"].values[:, 0].tolist() == ids and named["id"].values.dtype == np.int64
    assert named["word"].values[:, 0].tolist() == words.tolist()
    assert named["x"].names == ("x", "n") and len(named["id"].times()) == 100
    if kind != "nulls":
        assert recording.names == ("a", "a: id", "a: word")


def test_ranges_that_a_file_does_not_tell(tmp_path):
    table = pa.table({"id": [2**63 - 1, 2**63 - 2], "x": [0.5, 1.5]})
    pq.write_table(table, tmp_path / "a", write_statistics=["x"])
    assert data.open(tmp_path / "a")["a: id"].values[:, 0].tolist() == [2**63 - 1, 2**63 - 2]


def test_columns_of_integers_stay_together(tmp_path):
    path = csv(tmp_path / "a.csv", ["time_ns,id,n", f"0,{2**63 - 1},1", f"1,{2**63 - 2},2"])
    recording = data.open(path)
    assert recording.names == ("a",) and recording["a"].values[1].tolist() == [2**63 - 2, 2]


def test_floats_beyond_64_bits_stay_floats(tmp_path):
    path = csv(tmp_path / "a.csv", ["time_ns,x", "0,1e19", "1,1.8e19"])
    assert data.open(path)["a"].values[:, 0].tolist() == [1e19, 1.8e19]


# ---- what is missing ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["nan", "NaN", "", "parquet", "null"])
def test_a_time_that_is_missing_costs_its_row(tmp_path, kind):
    path = tmp_path / "a"
    if kind in ("parquet", "null"):
        times = [float("nan" if i == 5 else i) for i in range(100)]
        times[5] = times[5] if kind == "parquet" else None
        pq.write_table(pa.table({"time_s": times, "x": np.arange(100.0)}), path)
    else:
        csv(path, ["time_s,x", *rows(100, lambda i: kind if i == 5 else i / 1, lambda i: i / 1)])
    error = refused(path, "1 of 100 rows has no time: column time_s is empty")
    assert error.place == "time_s, row 5"
    kept = data.open(path, damaged="keep")
    expected = [i for i in range(100) if i != 5]
    assert kept["a"].times().tolist() == kept["a"].values[:, 0].tolist() == expected
    assert [(f.severity, f.kind) for f in data.checks.check(kept)] == [
        ("error", "damage"), ("warning", "jitter")
    ][: len(data.checks.check(kept))]  # fmt: skip


def test_the_row_of_a_time_that_is_missing_in_a_late_piece(tmp_path):
    times = np.arange(150_000) / 100
    times[140_000] = np.nan
    pq.write_table(pa.table({"t": times, "x": times}), tmp_path / "a.parquet")
    assert refused(tmp_path / "a.parquet", "rows has no time").place == "t, row 140000"


def test_a_column_of_few_times_is_no_clock(tmp_path):
    path = csv(tmp_path / "a.csv", ["t,time_s,x", "1,0,5", ",1,6", ",2,7"])
    recording = data.open(path)
    assert recording["a: time_s" if "a: time_s" in recording else "a: x"].times().tolist() == [
        0, 1, 2
    ]  # fmt: skip


def test_nan_in_a_text_is_a_value(tmp_path):
    lines = ["time_s,x,y", *(f"{i},{'nan' if i == 5 else i / 2},{i}" for i in range(100))]
    recording = data.open(csv(tmp_path / "a.csv", lines))
    assert recording.names == ("a",) and np.isnan(recording["a"].values[5, 0])
    assert [f.kind for f in data.checks.check(recording)] == ["nan"]


def test_folders_with_tables_in_a_folder_are_listed(tmp_path):
    for name in ("run 1", "run 2", ".hidden", "pictures"):
        (tmp_path / name).mkdir()
        if name != "pictures":
            (tmp_path / name / "imu.csv").write_text("t,a\n0,1\n1,2\n")
    (tmp_path / "gps.csv").write_text("t,a\n0,1\n1,2\n")
    opened = data.open(tmp_path)
    assert opened.names == ("gps",)
    assert [str(each) for each in opened.left_out] == [
        f"run {i}: is a folder with tables: open it separately" for i in (1, 2)
    ]
