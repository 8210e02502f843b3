"""JSON lines, and exports of phones and GoPro cameras."""

from __future__ import annotations

import json

import numpy as np
import pytest

import log_files
from robocache import data


def written(path, objects):
    path.write_text("".join(json.dumps(each) + "\n" for each in objects))
    return path


def test_nested_numbers_are_channels(tmp_path):
    rng = np.random.default_rng(1)
    rows = [
        {"time_s": i / 10, "a": {"b": [float(rng.normal()), float(rng.normal())]}, "on": i % 2 == 0}
        for i in range(50)
    ]
    opened = data.open(written(tmp_path / "run.jsonl", rows))
    stream = opened["run"]
    assert stream.names == ("a.b[0]", "a.b[1]", "on")
    expected = [[*row["a"]["b"], row["on"]] for row in rows]
    np.testing.assert_array_equal(stream.values, np.array(expected, np.float64))
    assert stream.times().tolist() == [row["time_s"] for row in rows]
    assert [channel.kind for channel in stream.channels] == ["number", "number", "step"]


def test_topics_and_varying_names_are_streams(tmp_path):
    (tmp_path / "x.ndjson").write_bytes(log_files.json_lines())
    opened = data.open(tmp_path / "x.ndjson")
    assert opened.names == ("/arm", "/base: v", "/base: w")
    assert len(opened["/base: w"]) == 10
    assert [each.place for each in opened.left_out] == ["/arm: pose.name"]


def test_texts_and_changing_arrays_are_listed(tmp_path):
    rows = [{"t": i, "v": [1] * (i % 3), "x": "bad" if i == 3 else i / 2} for i in range(10)]
    opened = data.open(written(tmp_path / "x.jsonl", rows), unit="s")
    assert len(opened["x"]) == 9
    reasons = {each.place: each.reason for each in opened.left_out}
    assert reasons["x: v"] == "array of 0 to 2 elements"
    assert reasons["x: x"] == "is a text in 1 rows, such as 'bad'"


def test_large_integers_keep_their_digits(tmp_path):
    first = 2**53 + 1
    rows = [{"time_ns": 10**18 + i, "n": first + i, "x": 0.5} for i in range(5)]
    opened = data.open(written(tmp_path / "x.jsonl", rows))
    values = {n: opened[s].values[:, 0].tolist() for s in opened for n in opened[s].names}
    assert values["n"] == [first + i for i in range(5)]
    assert opened[opened.names[0]].times().tolist() == [10**18 + i for i in range(5)]


def test_the_caller_names_the_times(tmp_path):
    rows = [{"when": i * 1000, "x": i / 2} for i in range(5)]
    path = written(tmp_path / "x.jsonl", rows)
    assert data.open(path).unread[0].place == "x"
    assert data.open(path, time="when:us").unit == "us"
    assert data.open(path, rate=10.0)["x"].times().tolist() == [0, 0.1, 0.2, 0.3, 0.4]


def test_damaged_lines(tmp_path):
    path = written(tmp_path / "x.jsonl", [{"time_s": i, "x": i / 2} for i in range(5)])
    path.write_text(path.read_text() + '{"time_s": 5, "x": 2.')
    with pytest.raises(data.FormatError, match="line 6: is not JSON"):
        data.open(path)
    kept = data.open(path, damaged="keep")
    assert len(kept["x"]) == 5 and kept.problems[0].place == "line 6"
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(data.FormatError, match="empty"):
        data.open(tmp_path / "empty.jsonl")


def test_sensor_logger_folder(tmp_path):
    opened = data.open(log_files.sensor_logger(tmp_path / "walk"))
    assert opened.names == ("Accelerometer", "Orientation") and opened.unit == "ns"
    kinds = [channel.kind for channel in opened["Orientation"].channels]
    assert kinds == ["number", *["quaternion"] * 4]
    group = next(g for g in opened["Orientation"].kinds.groups if g.kind == "quaternion")
    assert group.columns == (3, 2, 1, 4)
    assert [each.place for each in opened.left_out] == ["Metadata.csv"]
    turns = opened.align(100.0).tracks["Orientation"].values[:, 1:]
    np.testing.assert_allclose(np.linalg.norm(turns, axis=1), 1, atol=1e-6)


def test_sensor_logger_json(tmp_path):
    (tmp_path / "x.json").write_bytes(log_files.sensor_logger_json())
    opened = data.open(tmp_path / "x.json")
    assert opened.names == ("Accelerometer",) and opened.unit == "ns"
    np.testing.assert_array_equal(opened["Accelerometer"].values[:, 0], np.arange(20) / 7)
    assert opened["Accelerometer"].times()[1] == 1_700_000_000_010_000_000


def test_gopro_json(tmp_path):
    (tmp_path / "x.json").write_bytes(log_files.gopro_json())
    opened = data.open(tmp_path / "x.json")
    assert opened.names == ("ACCL", "CORI")
    assert opened["ACCL"].names == ("z [m/s2]", "x [m/s2]", "y [m/s2]")
    assert [c.kind for c in opened["ACCL"].channels] == ["number"] * 3
    assert [c.kind for c in opened["CORI"].channels] == ["quaternion"] * 4
    np.testing.assert_allclose(opened["ACCL"].times(), np.arange(20) * 5e-3)


def test_exports_that_are_tables(tmp_path):
    """The CSV files of phyphox and gopro-telemetry need no reader of their own."""
    rows = "\n".join(f"{i / 100:.9E}\t{i / 7:.9E}" for i in range(20))
    (tmp_path / "Accelerometer.csv").write_text(f'"Time (s)"\t"Acceleration x (m/s^2)"\n{rows}\n')
    opened = data.open(tmp_path / "Accelerometer.csv")
    (stream,) = opened.streams.values()
    assert opened.unit == "s" and stream.channels[0].unit == "m/s^2"
    rows = "\n".join(f"{5 * i}.5,2023-11-14T22:13:{20 + i}.000Z,{i / 7}" for i in range(20))
    (tmp_path / "a.csv").write_text(f"cts,date,Accelerometer (z) [m/s2]\n{rows}\n")
    opened = data.open(tmp_path / "a.csv")
    assert opened.unit == "ns" and np.diff(opened["a"].times()).tolist() == [10**9] * 19
