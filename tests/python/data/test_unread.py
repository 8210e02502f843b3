"""Messages that were not read: findings, exit codes, reasons, and topics that are ignored."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("rosbags")

from typer.testing import CliRunner  # noqa: E402

import data_files  # noqa: E402
from robocache import data  # noqa: E402
from robocache.cli._app import app  # noqa: E402
from robocache.data._findings import MEANINGS  # noqa: E402

RUNNER = CliRunner()
START = 1_700_000_000 * 10**9
ARRAY, TEXT, PATH = "std_msgs/msg/Float64MultiArray", "std_msgs/msg/String", "nav_msgs/msg/Path"


def run(*arguments, code=0):
    result = RUNNER.invoke(app, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    return result


def flat(text):
    return " ".join(text.split())


def write(path, topics, count=20):
    """Write an MCAP file of topics, each (name, type, encoding, function from i to content)."""
    store = data_files.typestore()
    mcap = data_files.McapBytes()
    declarations = b""
    parts = []
    for topic, typename, encoding, content in topics:
        known = typename in store.fielddefs
        text = store.generate_msgdef(typename, ros_version=2)[0] if known else ""
        kind = "ros2msg" if known or encoding == "cdr" else encoding
        number, record = mcap.declared(topic, typename, text, encoding, kind)
        declarations += record
        parts.append((number, typename, content))
    records, numbers = declarations, [number for number, _, _ in parts]
    for i in range(count):
        for number, typename, content in parts:
            report = content(store, i) if content is not None else None
            if report is not None:
                raw = report if isinstance(report, bytes) else store.serialize_cdr(report, typename)
                records += mcap.message(number, START + i * 50_000_000, raw)
    mcap.chunk(records, numbers)
    path.write_bytes(mcap.finished(declarations=declarations))
    return path


def array(length):
    """Messages of an array whose length is that of each message."""

    def content(store, i):
        return data_files.make(store, ARRAY, data=np.arange(float(length(i))))

    return content


def plan(store, i):
    pose = data_files.make(store, "geometry_msgs/msg/PoseStamped")
    head = data_files.header(store, START + i * 50_000_000)
    return data_files.make(store, PATH, header=head, poses=[pose] * (1 + i % 3))


def text(store, i):
    return data_files.make(store, TEXT, data="go")


def count(store, i):
    return data_files.make(store, "std_msgs/msg/Float64", data=float(i))


GOOD = ("/good", "std_msgs/msg/Float64", "cdr", count)
ODD = ("/odd", "Pose", "flatbuffer", lambda store, i: b"\x08\0\0\0abcd")
UNKNOWN = ("/grip", "my_robot/msg/Grip", "cdr", lambda store, i: b"\0\1\0\0\0\0\0\0")


def found(path, *options, code=0):
    report = json.loads(run("inspect", path, "--json", *options, code=code).stdout)
    return {f["stream"]: f for f in report["findings"] if f["kind"] == "unread"}, report


# ---- findings -----------------------------------------------------------------------------------


def test_a_topic_that_is_not_read_is_a_warning(tmp_path):
    path = write(tmp_path / "x.mcap", [GOOD, ODD, UNKNOWN])
    unread, report = found(path, "--check", code=1)
    assert {name: f["severity"] for name, f in unread.items()} == {
        "/odd": "warning",
        "/grip": "warning",
    }
    assert "none of 20 messages of Pose was read" in unread["/odd"]["text"]
    assert "FlatBuffers" in unread["/odd"]["text"]
    assert "--definition my_robot/msg/Grip=Grip.msg" in unread["/grip"]["text"]
    assert unread["/odd"]["remedy"] == MEANINGS["unread"].remedy
    assert {item["place"]: item["messages"] for item in report["unread"]} == {
        "/odd": 20,
        "/grip": 20,
    }


def test_arrays_of_changing_length_are_warnings(tmp_path):
    changing = ("/command", ARRAY, "cdr", array(lambda i: 1 + i % 3))
    path = write(tmp_path / "x.mcap", [GOOD, changing, ("/plan", PATH, "cdr", plan)])
    unread, _ = found(path, "--check", code=1)
    assert set(unread) == {"/command", "/plan"}
    assert all(f["severity"] == "warning" for f in unread.values())
    assert "20 samples of nav_msgs/msg/Path, but no channels" in unread["/plan"]["text"]
    assert "poses" in unread["/plan"]["text"] and "changes" in unread["/plan"]["text"]
    assert "some numbers were not read" in unread["/command"]["text"]  # layout.data_offset is read
    assert "data (1 to 3 elements)" in unread["/command"]["text"]


def test_arrays_of_one_length_and_texts_are_no_warnings(tmp_path):
    constant = ("/command", ARRAY, "cdr", array(lambda i: 3))
    path = write(tmp_path / "x.mcap", [GOOD, constant, ("/text", TEXT, "cdr", text)])
    unread, _ = found(path, "--check", "--ignore", "constant")
    assert {name: f["severity"] for name, f in unread.items()} == {"/text": "note"}


@pytest.mark.parametrize(
    ("topics", "report"),
    [
        ([], "the recording has no topics"),
        ([("/empty", TEXT, "cdr", None)], "there is no message in /empty"),
        ([ODD], "none of 20 messages of Pose was read: they are in FlatBuffers"),
        ([UNKNOWN], "none of 20 messages of my_robot/msg/Grip was read"),
        ([("/none", "", "cdr", lambda store, i: b"\0\1\0\0")], "does not state the type"),
        ([("/plan", PATH, "cdr", plan)], "20 samples of nav_msgs/msg/Path, but no channels"),
        ([("/text", TEXT, "cdr", text)], "/text: they hold texts, and no numbers"),
    ],
    ids=["no topics", "no messages", "encoding", "type", "no type", "lengths", "texts"],
)
def test_nothing_that_is_read_is_an_error(tmp_path, topics, report):
    path = write(tmp_path / "x.mcap", topics)
    unread, _ = found(path, "--check=errors", code=1)
    (error,) = (f for f in unread.values() if f["severity"] == "error")
    assert report in error["text"]
    reason = report.partition("was read: ")[2] or report.partition(", but")[0]
    for command in (
        ["resample", path, "--rate", "10", "-o", tmp_path / "out.npz"],
        ["stats", path],
        ["windows", path],
        ["sync", path, "--a", "/a", "--b", "/b"],
    ):
        result = run(*command, code=1)
        assert not (tmp_path / "out.npz").exists() and result.stdout == ""
        if (
            command[0] in ("resample", "stats")
            and "messages" not in reason
            and "samples" not in reason
        ):
            assert (
                reason in result.stderr
                and f"nothing to {'resample' if command[0] == 'resample' else 'count'}"
                in result.stderr
            )
    with pytest.raises(ValueError, match="nothing to resample"):
        data.open(path).align(10)


def test_pictures_count_as_read(tmp_path):
    def picture(store, i):
        raw = np.zeros(3000 + i, np.uint8)
        return data_files.make(store, "sensor_msgs/msg/CompressedImage", format="jpeg", data=raw)

    topic = ("/camera", "sensor_msgs/msg/CompressedImage", "cdr", picture)
    unread, _ = found(write(tmp_path / "x.mcap", [topic]), "--check", "--ignore", "zero_stamps")
    assert unread == {}


def test_messages_that_fail_among_others(tmp_path):
    def cut(store, i):
        message = bytes(store.serialize_cdr(count(store, i), GOOD[1]))
        return message if i % 2 else message[:8]

    path = write(tmp_path / "x.mcap", [("/a", GOOD[1], "cdr", cut)])
    unread, _ = found(path, "--check", code=1)
    assert unread["/a"]["severity"] == "warning"
    assert "10 messages of std_msgs/msg/Float64 were not read" in unread["/a"]["text"]


def test_tables_with_nothing_to_read(tmp_path):
    pytest.importorskip("pyarrow")
    rows = "".join(f"{i},{i * i}\n" for i in range(20))
    alone = tmp_path / "single.csv"
    alone.write_text("x,y\n" + rows)
    unread, _ = found(alone, "--check=errors", code=1)
    assert unread["single.csv"]["severity"] == "error"
    assert "no column holds times" in unread["single.csv"]["text"]
    for command in (
        ["resample", alone, "--rate", "5", "-o", tmp_path / "o.npz"],
        ["windows", alone],
    ):
        stderr = run(*command, code=1).stderr
        assert "nothing to resample: single.csv: no column" in stderr and "--time" in stderr
    run("stats", alone)  # which needs no times
    (tmp_path / "timed.csv").write_text(
        "time_s,x\n" + "".join(f"{i / 10},{i}\n" for i in range(20))
    )
    unread, _ = found(tmp_path, "--check=errors")
    assert unread["single.csv"]["severity"] == "warning"  # another table has times


def test_resample_and_stats_say_what_they_do_not_take(tmp_path):
    path = write(tmp_path / "x.mcap", [GOOD, ODD])
    out = tmp_path / "o.npz"
    result = run("resample", path, "--rate", "10", "-o", out)
    assert "not read /odd: they are in FlatBuffers" in flat(result.stdout)
    report = json.loads(
        run("resample", path, "--rate", "10", "-o", out, "--overwrite", "--json").stdout
    )
    assert [item["place"] for item in report["unread"]] == ["/odd"] and report["left_out"] == []
    assert "warning: not read: /odd: they are in FlatBuffers" in run("stats", path).stderr
    assert "odd" not in run("stats", path, "-s", "/good").stderr


# ---- options ------------------------------------------------------------------------------------


def test_check_takes_a_value_or_none(tmp_path):
    path = write(tmp_path / "x.mcap", [GOOD, ODD])
    run("inspect", path)
    run("inspect", path, "--check", code=1)
    run("inspect", "--check", path, code=1)
    run("inspect", path, "--check=warnings", code=1)
    run("inspect", path, "--check=errors")
    run("inspect", "--check=errors", path)
    assert "expected --check or --check=errors" in flat(
        run("inspect", path, "--check=notes", code=2).stderr.replace("│", "")
    )


def test_ignored_findings(tmp_path):
    path = write(tmp_path / "x.mcap", [GOOD, ODD])
    assert found(path, "--check", "--ignore", "unread")[0] == {}
    report = flat(run("inspect", path, "--ignore", "unred", code=2).stderr.replace("│", ""))
    assert "no such finding. Did you mean unread?" in report and "zero_stamps" in report
    assert "cannot be ignored" in run("inspect", path, "--ignore", "damage", code=2).stderr


def test_ignored_topics(tmp_path):
    topics = [GOOD, ODD, ("/plan", PATH, "cdr", plan), ("/plan/old", PATH, "cdr", plan)]
    path = write(tmp_path / "x.mcap", topics)
    options = ["--ignore-topic", "/odd", "--ignore-topic", PATH]
    unread, report = found(path, "--check", *options)
    assert unread == {} and list(report["streams"]) == ["/good"] and report["left_out"] == []
    unread, report = found(path, "--ignore-topic", "/plan")
    assert set(unread) == {"/odd", "/plan/old"} and "/plan/old" in report["streams"]
    unread, report = found(path, "--ignore-topic", "Pose")
    assert "/odd" not in unread and report["unread"] and "/plan" in unread
    result = run("resample", path, "--rate", "10", "-o", tmp_path / "o.npz", *options)
    assert "plan" not in result.stdout and "odd" not in result.stdout
    assert "odd" not in run("stats", path, *options).stderr
    result = run("inspect", path, "--ignore-topic", "/plam")
    assert "--ignore-topic /plam: no such topic or type. Did you mean /plan?" in result.stderr
    everything = [GOOD[0], ODD[0], PATH]
    assert not data.checks.check(data.open(path).without(everything))


def test_recordings_without_topics(tmp_path):
    path = write(tmp_path / "x.mcap", [GOOD, ODD, ("/plan", PATH, "cdr", plan)])
    recording = data.open(path).without(["/odd"]).without([PATH])
    assert recording.names == ("/good",) and recording.unread == () and recording.left_out == ()
    assert recording.ignored == ("/odd", PATH)
    assert recording.load().without(["/good"]).names == ()
    assert {item.place for item in data.open(path).without(["/plan"]).unread} == {"/odd"}


def test_names_that_are_near_are_suggested(tmp_path):
    topics = [(f"/topic{i}", *GOOD[1:]) for i in range(20)]
    path = write(tmp_path / "x.mcap", [GOOD, *topics], count=4)
    result = run("stats", path, "-s", "good", code=1)
    assert "--stream good: no such stream. Did you mean /good?" in result.stderr
    assert "/topic10 and 9 more" in result.stderr and "/topic11" not in result.stderr
    result = run("sync", path, "--a", "goo", "--b", "/good", code=1)
    assert "--a goo: no such stream. Did you mean /good?" in result.stderr
    result = run("sync", path, "--a", "/good:w", "--b", "/good", code=1)
    assert "--a /good: no such channel 'w', expected one of 'data'" in result.stderr


def test_a_clock_is_for_bags(tmp_path):
    pytest.importorskip("pyarrow")
    table = tmp_path / "a.csv"
    table.write_text("time_s,x\n" + "".join(f"{i / 10},{i}\n" for i in range(20)))
    command = ["resample", table, "--rate", "5", "-o", tmp_path / "o.npz"]
    assert "--clock header works on bags" in run(*command, "--clock", "header", code=1).stderr
    assert "choose header or log" in flat(run(*command, "--clock", "time", code=2).stderr)
    command = ["sync", table, "--a", "a", "--b", "a"]
    assert "--clock log works on bags" in run(*command, "--clock", "log", code=1).stderr


# ---- what an alignment cuts off -----------------------------------------------------------------


def stream(name, begin, end, rate=100.0, unit=None, dtype=np.float64):
    times = np.arange(round((end - begin) * rate) + 1) / rate + begin
    ticks = times.astype(dtype) if unit is None else np.rint(times * 1e9).astype(np.int64)
    values = np.sin(times)[:, None]
    return data.RecordedStream(name, "t", ("x",), values, {"time": ticks}, unit or "s")


@pytest.mark.parametrize("unit", [None, "ns"])
def test_a_short_stream_is_named(unit):
    streams = [
        stream("imu", 0, 10, unit=unit),
        stream("pose", 0, 10, 20, unit=unit),
        stream("battery", 9.5, 10.5, 10, unit=unit),
    ]
    recording = data.Recording.from_streams(streams)
    (note,) = recording.align(100).notes
    assert note.startswith("51 of 1051 rows: ") and "span='union'" in note
    assert "95 % of imu and 95 % of pose and 45 % of battery" not in note
    assert "95 % of imu and" in note and "are cut, because battery begins at 9.5 s" in note
    assert recording.align(100, span="union").notes == ()
    assert recording.align(recording["imu"].times()[960:970]).notes == ()
    assert recording.select(["imu", "pose"]).align(100).notes == ()


def test_streams_that_begin_late_and_end_early():
    streams = [stream("a", 0, 100), stream("b", 2, 100), stream("c", 0, 97, 10)]
    (note,) = data.Recording.from_streams(streams).align(10).notes
    assert "5 % of a is cut, because b begins at 2 s and c ends at 97 s" in note
    assert "3 % of b is cut, because c ends at 97 s" in note
    assert "2 % of c is cut, because b begins at 2 s" in note
    middle = [stream("a", 0, 100), stream("b", 20, 60)]
    (note,) = data.Recording.from_streams(middle).align(10).notes
    assert "60 % of a is cut, because b begins at 20 s and ends at 60 s" in note
    little = [stream("a", 0, 100), stream("b", 0.9, 99.5)]
    assert data.Recording.from_streams(little).align(10).notes == ()
    long = [stream("a", 0, 1000, 10), stream("b", 2, 1000, 10)]
    (note,) = data.Recording.from_streams(long).align(10).notes
    assert "2 s of a is cut, because b begins at 2 s" in note


def test_episodes_whose_tracks_begin_late():
    from robocache import Track

    times = np.concatenate([np.arange(50) / 10] * 2)
    late = np.concatenate([np.arange(50) / 10, np.arange(20) / 10 + 3])
    tracks = {
        "a": Track(np.ones((100, 1)), [0, 50, 100], times=times),
        "b": Track(np.ones((70, 1)), [0, 50, 70], times=late),
    }
    (note,) = data.Episodes(tracks).align(10, unit="s").notes
    assert note.startswith("episode 1: 20 of 50 rows: 60 % of a is cut, because b begins at 3 s")


def test_resample_says_what_is_cut(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "in").mkdir()
    for name, times in (("imu", np.arange(1001) / 100), ("battery", 9.5 + np.arange(6) / 10)):
        rows = "".join(f"{t},{i}\n" for i, t in enumerate(times.tolist()))
        (tmp_path / "in" / f"{name}.csv").write_text("time_s,x\n" + rows)
    out = tmp_path / "o.npz"
    folder = tmp_path / "in"
    command = ["resample", folder, "--rate", "100", "-o", out, "--overwrite"]
    report = flat(run(*command).stdout)
    assert "51 of 1001 rows: 95 % of imu is cut, because battery begins at 9.5 s" in report
    assert "with -s, or pass --span union" in report
    (note,) = json.loads(run(*command, "--json").stdout)["notes"]
    assert "because battery begins at 9.5 s" in note
    assert "rows:" not in run(*command, "--span", "union").stdout
