"""The robot's observations are training's windows, byte by byte; and commands."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rosbags")

import pipelines  # noqa: E402
import robocache as rbc  # noqa: E402
from robocache._pipeline.replay import replayed  # noqa: E402

LAG = 10_000_000


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A pipeline, the path of a bag, its messages and their types."""
    return pipelines.fitted(tmp_path_factory.mktemp("pipeline"))


def driven(pipeline, told, store, queries, observe=lambda live, now: live.observe(now)):
    """Push messages as they arrived, and observe at each time."""
    live, sent, found = pipeline.live(), 0, []
    live.begin(int(queries[0]) + LAG)
    for query in queries.tolist():
        while sent < len(told) and told[sent][2] <= query + LAG:
            topic, kind, at, message = told[sent]
            live.push_message(topic, bytes(store.serialize_cdr(message, kind)), at)
            sent += 1
        found.append(observe(live, query + LAG))
    return live, found


def test_messages_give_the_windows_of_training(made):
    pipeline, path, told, store = made
    episodes = pipeline.open(path)
    queries = episodes["arm"].times
    windows = pipeline.windows()
    cut = windows.cut(episodes, np.zeros(len(queries), int), np.arange(len(queries)))
    live, found = driven(pipeline, told, store, queries)
    assert set(found[0]) == {"state", "imu"} and live.topics == ("/joint_states", "/imu")
    for row, seen in enumerate(found):
        for name in seen:
            assert seen[name].dtype == np.float32
            assert seen[name].tobytes() == cut[name][0][row].tobytes()
            assert seen.valid[name].tobytes() == cut[name][1][row].tobytes()
        assert 0 <= seen.ages["imu"] < 0.2 and seen.time == queries[row]
    assert found[0].valid["state"].tolist() == [[False, False, True]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("method", ["linear", "previous", "nearest", "cubic", "pchip"])
def test_every_method_is_replayed_exactly(made, method, dtype):
    document = made[0].to_dict()
    document["clock"]["dtype"] = dtype
    document["windows"]["state"]["offsets"] = list(range(-7, 1))
    for stream in document["streams"].values():
        stream["method"] = method
    recording = rbc.data.open(made[1])
    result = replayed(rbc.Pipeline(document)._plan, recording)
    assert result.is_equal and result.equal == {"state": result.rows, "imu": result.rows}
    assert result.rows > 50 and result.least_lag is None


def test_a_ring_that_is_too_small_is_named(made):
    document = made[0].to_dict()
    document["windows"]["state"]["offsets"] = [-8, 0]
    document["streams"]["arm"]["capacity"] = 8
    recording = rbc.data.open(made[1])
    result = replayed(rbc.Pipeline(document)._plan, recording)
    assert not result.is_equal and list(result.capacities) == ["arm"]
    document["streams"]["arm"]["capacity"] = result.capacities["arm"]
    assert replayed(rbc.Pipeline(document)._plan, recording).is_equal
    document["streams"]["arm"]["capacity"] -= 1
    assert not replayed(rbc.Pipeline(document)._plan, recording).is_equal


def test_the_least_lag_in_stamp_mode(made):
    document = made[0].to_dict()
    document["clock"]["availability"] = "stamp"
    document["streams"]["arm"]["late_bound"] = document["streams"]["imu"]["late_bound"] = 16
    recording = rbc.data.open(made[1])
    result = replayed(rbc.Pipeline(document)._plan, recording)
    assert not result.is_equal and 0.01 < result.least_lag < 1
    document["clock"]["lag"] = result.least_lag
    assert replayed(rbc.Pipeline(document)._plan, recording).is_equal
    document["streams"]["arm"]["late_bound"] = 0  # training has samples that the robot drops
    never = replayed(rbc.Pipeline(document)._plan, recording)
    assert np.isnan(never.least_lag) and never.never_equal


def test_joints_are_found_by_name(made):
    pipeline, _, told, store = made
    live = pipeline.live()
    import keyed_bags

    kind = "sensor_msgs/msg/JointState"
    names = ["wrist", "extra", "shoulder", "elbow"]
    message = keyed_bags.joints(store, keyed_bags.START, names, [3.0, 9.0, 1.0, 2.0])[3]
    arrival = keyed_bags.START + 1_000_000
    raw = bytes(store.serialize_cdr(message, kind))
    assert live.push_message("/joint_states", raw, arrival) == 1
    seen = live.observe(keyed_bags.START + LAG)
    assert seen.rows["arm"][-1].tolist() == [0.75, 1.25, 1.75]  # times 0.5, plus 0.25
    message = keyed_bags.joints(store, keyed_bags.START, ["elbow", "arm"], [1.0, 2.0])[3]
    with pytest.raises(ValueError, match=r'^/streams/arm/channels/0/from: "shoulder" is not in'):
        live.push_message("/joint_states", bytes(store.serialize_cdr(message, kind)), arrival)
    with pytest.raises(ValueError, match=r"^data: a message of '/joint_states' cannot be read"):
        live.push_message("/joint_states", raw[:-7], arrival)
    with pytest.raises(ValueError, match="^topic: is '/other', expected one of"):
        live.push_message("/other", raw, arrival)


def test_messages_of_ros_1(tmp_path):
    import keyed_bags

    store = keyed_bags.store_of("ros1")
    live = rbc.Pipeline(pipelines.document()).live()
    kind = "sensor_msgs/msg/JointState"
    message = keyed_bags.joints(store, keyed_bags.START, pipelines.JOINTS, [1.0, 2.0, 3.0])[3]
    raw = bytes(store.serialize_ros1(message, kind))
    assert live.push_message("/joint_states", raw, keyed_bags.START + 1, encoding="ros1") == 1
    seen = live.observe(keyed_bags.START + LAG)
    assert seen.rows["arm"][-1].tolist() == [0.75, 1.25, 1.75]


def test_a_dead_sensor_becomes_invalid(made):
    pipeline, _, told, store = made
    end = told[-1][2]
    _, found = driven(pipeline, told, store, np.array([end, end + 10**9]))
    assert found[0].valid["state"][0, -1] and not found[1].valid["state"].any()
    assert found[1].ages["arm"] > 1
    fill = rbc.Normalization.of
    assert fill and found[1].raw["state"].tolist() == [[[0.5] * 3] * 3]


def test_a_missing_channel_or_stream_has_a_pointer(made):
    document = made[0].to_dict()
    document["streams"]["arm"]["channels"][1]["from"] = "knee"
    with pytest.raises(ValueError, match='^/streams/arm/channels/1/from: "knee" is not in'):
        rbc.Pipeline(document).open(made[1])
    document = made[0].to_dict()
    document["streams"]["imu"]["source"]["topic"] = "/imu2"
    with pytest.raises(ValueError, match="^/streams/imu/source/topic: '/imu2' is not in"):
        rbc.Pipeline(document).open(made[1])
    document = made[0].to_dict()
    document["streams"]["imu"]["source"]["type"] = "sensor_msgs/msg/Range"
    with pytest.raises(ValueError, match="^/streams/imu/source/type: 'sensor_msgs/msg/Range'"):
        rbc.Pipeline(document).open(made[1])
    document = made[0].to_dict()
    document["streams"]["imu"]["latency"] = -11
    with pytest.raises(ValueError, match="^/streams/imu/latency: the median sample"):
        rbc.Pipeline(document).open(made[1])


def test_labels_see_their_whole_episode(made):
    pipeline, path, _, _ = made
    episodes = pipeline.open(path)
    recorded = rbc.data.open(path)["/command"]
    queries = episodes["command"].times
    stamps = recorded.header_times - 2_000_000
    rows = np.searchsorted(stamps, queries, "right") - 1
    expected = recorded.values[rows, :3].astype(np.float32)
    assert np.array_equal(episodes["command"].values, expected)


def test_commands_are_absolute_limited_and_named(made):
    pipeline, path, told, store = made
    episodes = pipeline.open(path)
    anchor = 40
    queries = episodes["arm"].times[: anchor + 1]
    _, found = driven(pipeline, told, store, queries)
    relative = pipeline.windows().cut(episodes, [0], [anchor])["action"][0]
    with pytest.raises(ValueError, match="^observation: is None, but /windows/action is relative"):
        pipeline.denormalize("action", relative)
    absolute = pipeline.denormalize("action", relative, found[-1])
    expected = episodes["command"].values[anchor : anchor + 4]
    np.testing.assert_allclose(absolute[0], expected, atol=1e-5)
    steps = pipeline.command(absolute)
    assert len(steps) == 4 and list(steps[0]) == ["wrist", "shoulder", "elbow"]
    for step, row in zip(steps, absolute[0].tolist()):
        assert step == {
            "wrist": min(max(row[2], -1.0), 1.0),
            "shoulder": row[0],
            "elbow": min(row[1], 0.5),
        }
    assert pipeline.command(absolute[0, 1]) == steps[1]
    with pytest.raises(ValueError, match="^values: step 0 has nan for 'shoulder'"):
        pipeline.command([np.nan, 0, 0])
    with pytest.raises(ValueError, match="expected 3 channels"):
        pipeline.command([1.0])


def test_commands_are_in_the_units_of_the_source():
    document = pipelines.document()
    document["streams"]["command"]["channels"][0].update(scale=np.pi / 180, offset=0.5)
    command = rbc.Pipeline(document).command([1.0, 0.0, 0.0])
    assert command["shoulder"] == (1.0 - 0.5) / (np.pi / 180)


def test_arrays_of_the_wrong_shape_or_clock(made):
    live = made[0].live()
    with pytest.raises(ValueError, match=r"^values: shape is \[1, 2\], expected \[1, 3\]"):
        live.push("arm", 0, [1.0, 2.0], 0)
    with pytest.raises(ValueError, match="^arrivals: is None, but the stamps"):
        live.push("arm", 0, [1.0, 2.0, 3.0])
    with pytest.raises(TypeError, match="^times: dtype is float64, expected integers"):
        live.push("arm", 0.5, [1.0, 2.0, 3.0], 1)
    with pytest.raises(ValueError, match="^stream: is 'leg'"):
        live.push("leg", 0, [1.0], 0)
    live.push("command", 0, [1.0, 2.0, 3.0])  # a label: ignored
    live.push("arm", [0, 1], [[np.nan, 1, 2], [1, 2, 3]], [0, 1])
    assert live.skipped("arm") == 1 and live.counters("arm").kept == 1
    live.reset()
    assert live.observe(LAG).valid["state"].tolist() == [[False] * 3]
    with pytest.raises(ValueError, match="^fingerprint: the inputs"):
        live.require(rbc.Pipeline(pipelines.document(rate=30)).fingerprint)


def test_a_data_set_of_this_rate_keeps_its_rows(tmp_path):
    times = (np.arange(60) * np.float32(0.1)).astype(np.float32)
    values = np.arange(120, dtype=np.float32).reshape(60, 2)
    track = rbc.Track(values, [0, 25, 60], times=np.concatenate([times[:25], times[:35]]))
    from robocache._episodes.episodes import make_episodes
    from robocache._episodes.lazy_tracks import About

    data = make_episodes({"state": track}, about=About("a test", "s", 10.0))
    document = rbc.Pipeline.init(data, 10).to_dict()
    for method in ("linear", "previous"):
        document["streams"]["state"]["method"] = method
        episodes = rbc.Pipeline(document, draft=True).open(data)
        assert np.array_equal(episodes["state"].values, values)
        assert episodes["state"].lengths.tolist() == [25, 35]


def of_keys(folder, told, store):
    """Rows of a bag from its messages and from training; and the topics to subscribe to."""
    import keyed_bags

    path = keyed_bags.write(folder, "mcap", told, store)
    document = rbc.Pipeline.init(path, 20).to_dict()
    for stream in document["streams"].values():
        for each in stream["channels"]:
            each["unit"] = "1" if each["unit"] == "?" else each["unit"]
    draft = rbc.Pipeline(document, draft=True)
    episodes = draft.open(path)
    live, sent, rows = draft.fit(episodes).live(), 0, []
    ticks = next(iter(episodes.tracks.values())).times
    live.begin(int(ticks[0]))
    for tick in ticks.tolist():
        while sent < len(told) and told[sent][2] <= tick:
            topic, kind, at, message = told[sent]
            live.push_message(topic, bytes(store.serialize_cdr(message, kind)), at)
            sent += 1
        rows.append({name: own[-1] for name, own in live.observe(tick).rows.items()})
    for name, track in episodes.tracks.items():
        assert np.array_equal(np.array([row[name] for row in rows]), track.values, equal_nan=True)
    sources = [stream["source"] for stream in document["streams"].values()]
    return live, {source.get("key") for source in sources}, len(rows)


@pytest.mark.parametrize("case", ["transforms", "joints", "frames", "one frame"])
def test_a_topic_of_several_things(tmp_path, case):
    import keyed_bags

    store = keyed_bags.store_of("mcap")
    at = keyed_bags.times(200)
    if case == "transforms":
        told = [
            keyed_bags.tf(store, t, ("base", "arm", i * 0.1), ("base", "camera", i * 0.2))
            for i, t in enumerate(at)
        ]
        keys = {"base/arm", "base/camera"}
    elif case == "joints":  # two publishers
        names, values = (["a", "b"], ["c"]), ([1.0, 2.0], [3.0])
        told = [keyed_bags.joints(store, t, names[i % 2], values[i % 2]) for i, t in enumerate(at)]
        keys = {"a+b", "c"}
    else:
        frames = ("left", "right") if case == "frames" else ("left", "left")
        told = [keyed_bags.sensor(store, t, frames[i % 2], i) for i, t in enumerate(at)]
        keys = set(frames) if case == "frames" else {None}
    live, found, rows = of_keys(tmp_path, told, store)
    assert found == keys and live.topics == (told[0][0],) and rows > 30


def test_things_that_take_turns_must_be_named():
    import keyed_bags

    store = keyed_bags.store_of("mcap")
    document = pipelines.document()
    document["streams"] = {
        "range": pipelines.stream(
            pipelines.topic("/range", "sensor_msgs/msg/Range"), [pipelines.channel("range", "m")]
        )
    }
    document["windows"] = {"range": pipelines.window("range", [0])}
    document["normalization"], document["actions"] = {"range": "none"}, None
    live = rbc.Pipeline(document).live()
    messages = [keyed_bags.sensor(store, keyed_bags.START + i, f, i) for i, f in enumerate("aba")]
    raw = [bytes(store.serialize_cdr(message, kind)) for _, kind, _, message in messages]
    for each in raw[:2]:
        live.push_message("/range", each, keyed_bags.START + 10)
    with pytest.raises(ValueError, match="take turns; name one by \"key\": 'a', 'b'"):
        live.push_message("/range", raw[2], keyed_bags.START + 10)
