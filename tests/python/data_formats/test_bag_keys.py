"""Topics about several things: transforms by child, sensors by frame, with rosbags as reference."""

from __future__ import annotations

import numpy as np
import pytest

import data_files
import keyed_bags as bags
import robocache as rbc

pytest.importorskip("rosbags")

data = rbc.data
kinds = pytest.mark.parametrize("kind", bags.KINDS)


def opened(tmp_path, kind, told, store, **options):
    return data.open(bags.write(tmp_path, kind, told, store, **options))


def column(stream, name="range"):
    return stream.values[:, stream.names.index(name)].tolist()


def x_of(stream):
    return column(stream, "transform.translation.x")


def warnings_of(recording):
    return [f for f in data.checks.check(recording) if f.kind == "frame_changed"]


# ---- transforms ---------------------------------------------------------------------------------


@kinds
def test_two_frames_in_turn(tmp_path, kind):
    store = bags.store_of(kind)
    told = []
    for i, at in enumerate(bags.times(40)):
        told.append(bags.tf(store, at, ("map", "arm", i)))
        told.append(bags.tf(store, at + 1000, ("map", "camera", 100)))
    recording = opened(tmp_path, kind, told, store)
    assert recording.names == ("/tf/map/arm", "/tf/map/camera")
    assert [recording.info(name).count for name in recording] == [40, 40]
    assert x_of(recording["/tf/map/arm"]) == list(range(40))
    assert x_of(recording["/tf/map/camera"]) == [100] * 40
    aligned = recording.align(30)
    assert (aligned["/tf/map/camera"].values[:, 0] == 100).all()
    assert recording["/tf/map/arm"].names[3:] == tuple(f"transform.rotation.{c}" for c in "xyzw")


@kinds
@pytest.mark.parametrize("seed", range(4))
def test_any_arrays_of_transforms(tmp_path, kind, seed):
    """Frames in any order, several times in a message or not at all, against rosbags."""
    rng = np.random.default_rng(seed)
    store = bags.store_of(kind)
    frames = ["map", "odom", "b" * int(rng.integers(1, 9)), "é", "a/b"][: 2 + seed]
    told = []
    for at in bags.times(60):
        each = []
        for _ in range(int(rng.integers(0, 5))):
            parent, child = rng.choice(2), rng.choice(len(frames))
            made = bags.transform(
                store, at - 5, ("world", "w")[parent], frames[child], rng.normal(size=7)
            )
            each.append(made)
        told.append(("/tf", "tf2_msgs/msg/TFMessage", at, bags.transforms(store, *each)))
    path = bags.write(tmp_path, kind, told, store)
    expected = {}
    for _, at, message in bags.read(path, kind, store):
        for each in message.transforms:
            t, r, stamp = each.transform.translation, each.transform.rotation, each.header.stamp
            key = f"/tf/{each.header.frame_id}/{each.child_frame_id}"
            expected.setdefault(key, []).append(
                (at, stamp.sec * 10**9 + stamp.nanosec, [t.x, t.y, t.z, r.x, r.y, r.z, r.w])
            )
    recording = data.open(path).load()
    assert set(recording.names) == set(expected)
    for name, rows in expected.items():
        stream = recording[name]
        assert stream.log_times.tolist() == [row[0] for row in rows]
        assert stream.header_times.tolist() == [row[1] for row in rows]
        np.testing.assert_array_equal(stream.values, [row[2] for row in rows])


@kinds
def test_one_child_keeps_the_name_of_the_topic(tmp_path, kind):
    store = bags.store_of(kind)
    told = [bags.tf(store, at, ("map", "arm", i)) for i, at in enumerate(bags.times(10))]
    recording = opened(tmp_path, kind, told, store)
    assert recording.names == ("/tf",) and x_of(recording["/tf"]) == list(range(10))
    assert recording["/tf"].header_times.tolist() == bags.times(10)


def test_children_of_stamped_transforms(tmp_path):
    store = bags.store_of("mcap")
    name = "geometry_msgs/msg/TransformStamped"
    told = [
        ("/pose", name, at, bags.transform(store, at, "map", f"c{i // 10}", [i, 0, 0, 0, 0, 0, 1]))
        for i, at in enumerate(bags.times(20))
    ]
    recording = opened(tmp_path, "mcap", told, store)
    assert recording.names == ("/pose/map/c0", "/pose/map/c1")
    assert x_of(recording["/pose/map/c1"]) == list(range(10, 20))


@pytest.mark.parametrize("back", [False, True])
def test_a_child_whose_parent_changes(tmp_path, back):
    store = bags.store_of("mcap")
    told = []
    for i, at in enumerate(bags.times(30)):
        parent = "map" if i < 10 or (back and i >= 20) else "odom"
        told.append(bags.tf(store, at, (parent, "arm", i), ("map", "other", 7)))
    recording = opened(tmp_path, "mcap", told, store)
    if back:
        assert recording.names == ("/tf/map/arm", "/tf/odom/arm", "/tf/map/other")
        assert x_of(recording["/tf/odom/arm"]) == list(range(10, 20))
        assert warnings_of(recording) == []
    else:
        assert recording.names == ("/tf/map/arm", "/tf/map/other")
        (finding,) = warnings_of(recording)
        assert finding.stream == "/tf/map/arm" and finding.place == "sample 10"
        assert "from 'map' to 'odom' at sample 10" in finding.text


def test_messages_that_are_no_transforms(tmp_path):
    """A truncated message is omitted, with the reason, and the others are read."""
    store = bags.store_of("mcap")
    mcap = data_files.McapBytes()
    number, declarations = mcap.declared(
        "/tf",
        "tf2_msgs/msg/TFMessage",
        store.generate_msgdef("tf2_msgs/msg/TFMessage", ros_version=2)[0],
    )
    content = declarations
    for i in range(12):
        _, name, _, message = bags.tf(store, i, ("map", "arm", i), ("map", "b", i))
        raw = bytes(store.serialize_cdr(message, name))
        content += mcap.message(number, i, raw[: len(raw) - (20 if i in (3, 7) else 0)])
    mcap.chunk(content, [number])
    (tmp_path / "x.mcap").write_bytes(mcap.finished(declarations=declarations))
    recording = data.open(tmp_path / "x.mcap").load()
    assert x_of(recording["/tf/map/b"]) == [0, 1, 2, 4, 5, 6, 8, 9, 10, 11]
    assert x_of(recording["/tf/map/arm"]) == x_of(recording["/tf/map/b"])
    assert any("2 messages" in each.reason for each in recording.left_out)


# ---- names --------------------------------------------------------------------------------------


def test_names_of_odd_frames(tmp_path):
    """Empty frames, leading slashes, names already in use: each key has its own stream."""
    store = bags.store_of("mcap")
    frames = ["", "/left", "left", "taken", "/range", "\n"]
    told = [bags.sensor(store, bags.START, "x", -1, topic="/range/taken")]
    for i, at in enumerate(bags.times(24)):
        told.append(bags.sensor(store, at, frames[i % 6], i % 6))
    recording = opened(tmp_path, "mcap", told, store)
    names = ["/range/(no frame)", "/range/left", "/range/left #2", "/range/taken #2"]
    assert set(recording.names) == {"/range/taken", *names, "/range/range", "/range/\n"}
    assert column(recording["/range/taken"]) == [-1]
    for name, value in zip([*names, "/range/range", "/range/\n"], range(6)):
        assert set(column(recording[name])) == {value}


def test_a_topic_selects_its_keys(tmp_path):
    store = bags.store_of("mcap")
    told = [bags.sensor(store, at, "lr"[i % 2], i % 2) for i, at in enumerate(bags.times(20))]
    told.append(bags.sensor(store, bags.START, "x", 0, topic="/range2"))
    recording = opened(tmp_path, "mcap", told, store)
    assert recording.of_topic("/range") == ("/range/l", "/range/r")
    assert recording.select(["/range"]).names == ("/range/l", "/range/r")
    assert list(recording.select(["/range/r"]).streams) == ["/range/r"]
    assert list(recording.select(["/range"]).align(10).tracks) == ["/range/l", "/range/r"]
    with pytest.raises(KeyError, match="/rang"):
        recording.select(["/rang"])


def test_a_topic_on_the_command_line(tmp_path):
    runner = pytest.importorskip("typer.testing").CliRunner()
    from robocache.cli._app import app

    store = bags.store_of("mcap")
    told = [bags.sensor(store, at, "lr"[i % 2], i % 2) for i, at in enumerate(bags.times(20))]
    told += [bags.sensor(store, at, "x", 0, topic="/other") for at in bags.times(20)]
    path, out = str(bags.write(tmp_path, "mcap", told, store)), str(tmp_path / "out.npz")
    rate = ("--rate", "50", "-o", out)
    made = runner.invoke(app, ["resample", path, *rate, "--stream", "/range"])
    assert made.exit_code == 0, made.stderr
    assert list(data.open(out).tracks) == ["/range/l", "/range/r"]
    bad = runner.invoke(app, ["resample", path, *rate, "--overwrite", "--stream", "range"])
    assert bad.exit_code == 1
    expected = "--stream range: no such stream. Did you mean /range? This recording has: /range/l, "
    assert expected in bad.stderr
    shown = runner.invoke(app, ["inspect", path])
    assert "/range/l" in shown.stdout and "/range/r" in shown.stdout


def test_saved_streams_keep_their_names(tmp_path):
    store = bags.store_of("mcap")
    told = [bags.sensor(store, at, "lr"[i % 2], i % 2) for i, at in enumerate(bags.times(20))]
    told.append(bags.tf(store, bags.START, ("a", "b", 1), topic="/tf_static"))
    recording = opened(tmp_path, "mcap", told, store).load()
    for kind in ("npz", "zarr"):
        pytest.importorskip("zarr") if kind == "zarr" else None
        recording.save(tmp_path / f"x.{kind}", kind)
        again = data.open(tmp_path / f"x.{kind}")
        assert again.names == recording.names
        assert [again[name].static for name in again] == [False, False, True]


# ---- frames -------------------------------------------------------------------------------------


@kinds
def test_two_sensors_on_a_topic(tmp_path, kind):
    store = bags.store_of(kind)
    told = [
        bags.sensor(store, at, ("left", "right")[i % 2], 1 + 2 * (i % 2))
        for i, at in enumerate(bags.times(40))
    ]
    recording = opened(tmp_path, kind, told, store)
    assert recording.names == ("/range/left", "/range/right")
    assert set(column(recording["/range/left"])) == {1}
    assert set(column(recording["/range/right"])) == {3}


@kinds
def test_a_frame_that_changes_once(tmp_path, kind):
    store = bags.store_of(kind)
    told = [
        bags.sensor(store, at, "gps" if i < 30 else "gps_link", i)
        for i, at in enumerate(bags.times(40))
    ]
    recording = opened(tmp_path, kind, told, store)
    assert recording.names == ("/range",) and column(recording["/range"]) == list(range(40))
    (finding,) = warnings_of(recording)
    assert (finding.severity, finding.place) == ("warning", "sample 30")
    assert "from 'gps' to 'gps_link'" in finding.text


def test_frames_overlap_in_time_though_not_in_the_file(tmp_path):
    """A merged bag may have one sensor first; only times decide whether frames overlap."""
    store = bags.store_of("mcap")
    one = [bags.sensor(store, at, "a", 1) for at in bags.times(20)]
    two = [bags.sensor(store, at + 5, "b", 2) for at in bags.times(20)]
    recording = opened(tmp_path, "mcap", one + two, store)
    assert recording.names == ("/range/a", "/range/b")


def test_sensors_of_different_sizes(tmp_path):
    """Two lasers with different numbers of beams have different channels."""
    store = bags.store_of("mcap")
    told = []
    for i, at in enumerate(bags.times(20)):
        scan = data_files.make(
            store,
            "sensor_msgs/msg/LaserScan",
            header=data_files.header(store, at, "ab"[i % 2]),
            ranges=np.full(3 + i % 2, i % 2, np.float32),
        )
        told.append(("/scan", "sensor_msgs/msg/LaserScan", at, scan))
    recording = opened(tmp_path, "mcap", told, store)
    assert sum("ranges[" in name for name in recording["/scan/a"].names) == 3
    assert sum("ranges[" in name for name in recording["/scan/b"].names) == 4


@kinds
@pytest.mark.parametrize("seed", range(3))
def test_any_frames_of_odometry(tmp_path, kind, seed):
    rng = np.random.default_rng(seed)
    store = bags.store_of(kind)
    make, name = data_files.make, "nav_msgs/msg/Odometry"
    told = []
    for at in bags.times(80):
        frame, child = ("odom", "map")[rng.choice(2)], ("r", "robot1", "r2")[rng.choice(3)]
        point = make(store, "geometry_msgs/msg/Point", x=rng.normal())
        pose = make(store, "geometry_msgs/msg/Pose", position=point)
        told.append(("/odom", name, at, make(
            store, name, header=data_files.header(store, at, frame), child_frame_id=child,
            pose=make(store, "geometry_msgs/msg/PoseWithCovariance", pose=pose,
                      covariance=rng.normal(size=36)))))  # fmt: skip
    path = bags.write(tmp_path, kind, told, store)
    expected = {}
    for _, at, message in bags.read(path, kind, store):
        key = f"/odom/{message.header.frame_id}/{message.child_frame_id}"
        expected.setdefault(key, []).append((at, message.pose.pose.position.x))
    recording = data.open(path).load()
    assert set(recording.names) == set(expected)
    for key, rows in expected.items():
        assert recording[key].log_times.tolist() == [at for at, _ in rows]
        assert column(recording[key], "pose.pose.position.x") == [x for _, x in rows]


def test_another_frame_in_every_message(tmp_path):
    """Memory and time are bounded: messages with a frame beyond the first 1024 are not read."""
    store = bags.store_of("mcap")
    made = bags.sensor(store, bags.START, "f" * 8, 1)
    raw = bytes(store.serialize_cdr(made[3], made[1]))
    mcap = data_files.McapBytes()
    text = store.generate_msgdef(made[1], ros_version=2)[0]
    number, declarations = mcap.declared("/range", made[1], text)
    content = declarations
    for i in range(2000):
        content += mcap.message(number, i, raw.replace(b"f" * 8, b"%08d" % i))
    mcap.chunk(content, [number])
    (tmp_path / "x.mcap").write_bytes(mcap.finished(declarations=declarations))
    recording = data.open(tmp_path / "x.mcap").load()
    assert recording.names == ("/range",) and len(recording["/range"]) == 1024
    (unread,) = recording.unread
    assert (unread.place, unread.messages) == ("/range", 2000 - 1024)
    assert len(warnings_of(recording)) == 1


def with_wrapped(kind):
    from rosbags.typesys import get_types_from_msg

    store = bags.store_of(kind)
    one = "geometry_msgs/TransformStamped transform\nfloat64 quality\n"
    many = "std_msgs/Header header\ngeometry_msgs/TransformStamped[] transforms\n"
    types = get_types_from_msg(one, "test_msgs/msg/One")
    types.update(get_types_from_msg(many, "test_msgs/msg/Many"))
    store.register(types)
    return store


@kinds
def test_frames_of_a_message_within(tmp_path, kind):
    store = with_wrapped(kind)
    told = []
    for i, at in enumerate(bags.times(40)):
        transform = bags.transform(store, at, "map", "ab"[i % 2], [i, 0, 0, 0, 0, 0, 1])
        made = data_files.make(store, "test_msgs/msg/One", transform=transform, quality=1.0)
        told.append(("/one", "test_msgs/msg/One", at, made))
    recording = opened(tmp_path, kind, told, store)
    assert recording.names == ("/one/map/a", "/one/map/b")
    for first, name in enumerate(recording.names):
        stream = recording[name]
        x = stream.values[:, stream.names.index("transform.transform.translation.x")]
        assert x.tolist() == list(range(first, 40, 2))


@kinds
@pytest.mark.parametrize("child", ["ab", "aa"])
def test_frames_of_elements_that_vary_are_a_finding(tmp_path, kind, child):
    store = with_wrapped(kind)
    told = []
    for i, at in enumerate(bags.times(40)):
        transform = bags.transform(store, at, "map", child[i % 2], [i, 0, 0, 0, 0, 0, 1])
        header = data_files.header(store, at, "map")
        made = data_files.make(store, "test_msgs/msg/Many", header=header, transforms=[transform])
        told.append(("/many", "test_msgs/msg/Many", at, made))
    findings = warnings_of(opened(tmp_path, kind, told, store))
    assert [f.place for f in findings] == ["transforms[0].child_frame_id"] * (child == "ab")


# ---- keys that come late ------------------------------------------------------------------------


@pytest.fixture
def short_look(monkeypatch):
    """Limit the search for keys to one chunk."""
    from robocache.data._formats.bags import bag

    monkeypatch.setattr(bag, "_LOOK_FOR_KEYS", 0)


def test_late_frames_are_streams(tmp_path, short_look):
    store = bags.store_of("ros1")
    told = [
        bags.sensor(store, at, "a" if i < 100 else "ab"[i % 2], 1 + i % 2 if i >= 100 else 1)
        for i, at in enumerate(bags.times(200))
    ]
    recording = opened(tmp_path, "ros1", told, store, chunk=2000)
    assert recording.names == ("/range",)
    recording.load()
    assert recording.names == ("/range", "/range/b")
    assert set(column(recording["/range"])) == {1} and len(recording["/range"]) == 150
    assert set(column(recording["/range/b"])) == {2}
    one = data.open(tmp_path / "x.bag")
    assert {piece.stream for piece in one.pieces()} == {"/range", "/range/b"}


@pytest.mark.parametrize("back", [True, False])
def test_frames_that_change_are_looked_at_to_the_end(tmp_path, short_look, back):
    store = bags.store_of("ros1")
    frames = ["a"] * 2 + ["b"] * 198 + (["a"] * 20 if back else ["b"] * 20)
    told = [
        bags.sensor(store, at, frame, ord(frame))
        for frame, at in zip(frames, bags.times(len(frames)))
    ]
    recording = opened(tmp_path, "ros1", told, store, chunk=2000)
    names = ("/range/a", "/range/b") if back else ("/range",)
    assert recording.names == names
    recording.load()
    assert recording.names == names
    if back:
        assert set(column(recording["/range/a"])) == {ord("a")}
        assert set(column(recording["/range/b"])) == {ord("b")}
    assert len(warnings_of(recording)) == (not back)


def test_a_frame_that_becomes_a_stream_is_no_change(tmp_path, short_look):
    store = bags.store_of("ros1")
    told = [
        bags.sensor(store, at, "a" if i < 100 else "b", 1) for i, at in enumerate(bags.times(200))
    ]
    recording = opened(tmp_path, "ros1", told, store, chunk=2000).load()
    assert [len(recording[name]) for name in ("/range", "/range/b")] == [100, 100]
    assert warnings_of(recording) == []


def test_late_children_and_joints_are_streams(tmp_path, short_look):
    store = bags.store_of("ros1")
    told = []
    for i, at in enumerate(bags.times(200)):
        children = [("map", "arm", i)] + ([("map", "camera", 100)] if i > 100 else [])
        told.append(bags.tf(store, at, *children))
        told.append(bags.joints(store, at, ["j"], [i]))
        if i > 120:
            told.append(bags.joints(store, at + 5, ["k", "l"], [1, 2]))
    recording = opened(tmp_path, "ros1", told, store, chunk=3000).load()
    assert set(recording.names) == {"/tf", "/tf/map/camera", "/joint_states", "/joint_states/k+l"}
    assert x_of(recording["/tf"]) == list(range(200))
    assert set(x_of(recording["/tf/map/camera"])) == {100}
    assert recording["/joint_states/k+l"].values.tolist() == [[1, 2]] * 79


def test_samples_of_elements_are_not_counted_by_messages(tmp_path, short_look):
    store = bags.store_of("ros1")
    told = [bags.tf(store, at, ("map", "a", 1), ("map", "a", 2)) for at in bags.times(100)]
    recording = opened(tmp_path, "ros1", told, store, chunk=2000)
    assert recording.info("/tf").count is None
    assert recording.load().info("/tf").count == 200


# ---- transforms that stay -----------------------------------------------------------------------


@kinds
def test_static_transforms(tmp_path, kind):
    """They are valid from their message on, without a limit on gaps, and shorten no stream."""
    store = bags.store_of(kind)
    start = bags.START
    told = [bags.tf(store, start, ("base", "lidar", 1), ("base", "imu", 2), topic="/tf_static")]
    for i, at in enumerate(bags.times(41, 50_000_000)):
        told.append(bags.joints(store, at, ["a"], [i]))
        if i == 20:
            late = ("base", "camera", 4)
            told.append(bags.tf(store, at + 1000, late, topic="/tf_static"))
    recording = opened(tmp_path, kind, told, store)
    names = ["/tf_static/base/lidar", "/tf_static/base/imu", "/tf_static/base/camera"]
    assert [name for name in recording if recording.info(name).static] == names
    for options in ({}, {"max_gap": 0.06}, {"span": "union"}):
        aligned = recording.align(100, clock="log", **options)
        assert aligned["/joint_states"].num_rows == 201
        for name, x in zip(names, (1, 2)):
            assert (aligned[name].values[:, 0] == x).all()
        camera = aligned["/tf_static/base/camera"].values[:, 0]
        valid = aligned["valid"].values[:, aligned["valid"].names.index(names[2])]
        assert np.isnan(camera[:101]).all() and (camera[101:] == 4).all()
        assert valid.tolist() == [False] * 101 + [True] * 100
    assert not any(f.stream in names for f in data.checks.check(recording))


def test_static_transforms_only(tmp_path):
    store = bags.store_of("mcap")
    told = [bags.tf(store, bags.START + i, ("a", "b", i), topic="/ns/tf_static") for i in (0, 100)]
    recording = opened(tmp_path, "mcap", told, store)
    stream = recording["/ns/tf_static"]
    assert stream.static and stream.select(slice(1)).static
    aligned = recording.align(np.array([bags.START - 1, bags.START + 50, bags.START + 10**9]))
    assert aligned["/ns/tf_static"].values[1:, 0].tolist() == [0, 100]
    assert np.isnan(aligned["/ns/tf_static"].values[0, 0])
