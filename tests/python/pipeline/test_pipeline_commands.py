"""``robocache pipeline``: init, check and diff."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("rosbags")
np = pytest.importorskip("numpy")

import pipelines  # noqa: E402
import robocache as rbc  # noqa: E402
from cli_process import robocache  # noqa: E402
from robocache import data  # noqa: E402


def run(*arguments, code=0):
    done = robocache("pipeline", *arguments)
    assert done.returncode == code, done.stderr + done.stdout
    return done.stdout if code != 1 or done.stdout else done.stderr


@pytest.fixture(scope="module")
def bag(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bag")
    return pipelines.bag(folder, shuffled=False)[0]


def test_init_check_and_diff(bag, tmp_path):
    file = tmp_path / "robocache_pipeline.json"
    printed = json.loads(run("init", bag, "-o", file, "--json"))
    pipeline = rbc.Pipeline.load(file, draft=True)
    assert printed["fingerprint"] == pipeline.fingerprint
    assert printed["unknown"] == list(pipeline.unknown) and len(printed["unknown"]) == 6
    assert all("/streams/joint_states/" in p or "/streams/command/" in p for p in pipeline.unknown)
    message = run("check", file, code=1)
    assert message.startswith(f'robocache: error: {pipeline.unknown[0]}: "?"; the format does not')
    text = file.read_text().replace('"unit": "?"', '"unit": "rad"')
    file.write_text(text)
    checked = run("check", tmp_path, "--data", bag, "--replay", bag)
    assert "rows equal in values and masks (100.00%)" in checked
    assert "is 9.81 in all" in checked  # a constant channel
    other = tmp_path / "other.json"
    other.write_text(
        text.replace('"max_gap"', '"x-note": 1, "max_gap"').replace('"rate": 20.0', '"rate": 2e1')
    )
    assert run("diff", file, other) == "equal\n"
    other.write_text(text.replace('"lag": 0', '"lag": 0.5'))
    assert run("diff", file, other, code=1) == "/clock/lag: 0 -> 0.5\n1 difference\n"
    found = json.loads(run("diff", file, other, "--json", code=1))
    assert found["differences"] == [
        {"pointer": "/clock/lag", "ours": 0, "theirs": 0.5, "missing": None}
    ]


def test_init_of_some_streams(bag, tmp_path):
    file = tmp_path / "p.json"
    names = ("/imu:angular_velocity", "/command")
    run("init", bag, "-o", file, *(part for name in names for part in ("--stream", name)))
    streams = rbc.Pipeline.load(file, draft=True).to_dict()["streams"]
    assert list(streams) == ["imu", "command"]
    channels = [channel["name"] for channel in streams["imu"]["channels"]]
    assert channels == [f"angular_velocity.{axis}" for axis in "xyz"]
    assert "--stream nope: no such stream" in run(
        "init", bag, "-o", tmp_path / "q.json", "--stream", "nope", code=1
    )


def test_init_of_some_channels_of_a_frame(tmp_path):
    import keyed_bags

    store = keyed_bags.store_of("mcap")
    told = [
        keyed_bags.tf(store, at, ("map", frame, 1.5))
        for at in keyed_bags.times(30)
        for frame in ("base", "tool")
    ]
    path = keyed_bags.write(tmp_path, "mcap", told, store)
    (name,) = (name for name in data.open(path).names if name.endswith("tool"))
    run("init", path, "-o", tmp_path / "p.json", "-s", f"{name}:transform.translation")
    (stream,) = rbc.Pipeline.load(tmp_path / "p.json", draft=True).to_dict()["streams"].values()
    assert stream["source"]["topic"] == "/tf" and stream["source"]["key"] == name[len("/tf/") :]
    assert len(stream["channels"]) == 3


def test_a_replay_that_fails_names_the_capacity(bag, tmp_path):
    document = pipelines.document()
    document["windows"]["state"]["offsets"] = [-8, 0]
    document["streams"]["arm"]["capacity"] = 8
    pipeline = rbc.Pipeline(document, draft=True)
    pipeline.fit(pipeline.open(bag)).save(tmp_path)
    printed = run("check", tmp_path, "--replay", bag, code=1)
    assert "a ring lost samples that rows need: /streams/arm/capacity must be" in printed
    result = json.loads(run("check", tmp_path, "--replay", bag, "--json", code=1))
    (replay,) = result["replays"]
    assert replay["equal"] < replay["rows"] and set(replay["capacities"]) == {"arm"}
    assert not result["ok"] and replay["least_lag"] is None


def test_findings_about_data(bag, tmp_path):
    pipeline = rbc.Pipeline(pipelines.document(), draft=True)
    document = pipeline.fit(pipeline.open(bag)).to_dict()
    document["streams"]["arm"]["channels"][0]["unit"] = "turn"
    document["streams"]["arm"]["channels"][0]["scale"] = 30
    document["streams"]["arm"]["max_age"] = 0.001
    document["streams"]["unused"] = document["streams"]["imu"]
    rbc.Pipeline(document).save(tmp_path)
    printed = json.loads(run("check", tmp_path, "--data", bag, "--json", code=1))
    found = {(each["kind"], each["pointer"]) for each in printed["data"][0]["findings"]}
    assert found >= {
        ("unused_stream", "/streams/unused"),
        ("slow_stream", "/streams/arm/max_age"),
        ("implausible_unit", "/streams/arm/channels/0/unit"),
        ("out_of_range", "/normalization/state/statistics/quantiles"),
        ("not_valid", "/streams/arm"),
        ("latency", "/streams/imu/latency"),
    }


def test_what_is_above_the_nyquist_frequency():
    from robocache._pipeline.checked_data import share_above

    rng = np.random.default_rng(0)
    times = np.cumsum(rng.uniform(0.004, 0.006, 4000))
    ticks = (times * 1e9).astype(np.int64)
    tones = np.stack([np.sin(2 * np.pi * f * times) for f in (2.0, 40.0)], 1)
    slow, fast = share_above(tones, ticks, 10.0)
    assert slow < 0.01 and fast > 0.9
    (both,) = share_above(tones[:, :1] + tones[:, 1:], ticks, 10.0)
    assert 0.4 < both < 0.6


def test_statistics_from_another_project(tmp_path):
    import data_files

    data = tmp_path / "set"
    data.mkdir()
    data_files.write_lerobot(data)
    file = tmp_path / "p.json"
    run("init", data, "--rate", "10", "-o", file)
    fitted = rbc.Pipeline.load(file, draft=True)
    fitted.export_to("lerobot", tmp_path / "checkpoint")
    run(
        "init",
        data,
        "--rate",
        "10",
        "-o",
        tmp_path / "q.json",
        "--from",
        "lerobot",
        tmp_path / "checkpoint",
    )
    taken = rbc.Pipeline.load(tmp_path / "q.json", draft=True)
    pointers = {each.pointer.rpartition("/")[2] for each in fitted.diff(taken)}
    assert pointers == {"rows"}  # LeRobot's files do not say which rows count
    failed = robocache("pipeline", "init", data, "-o", tmp_path / "r.json", "--from", "rlds", data)
    assert failed.returncode == 2 and "choose lerobot, openpi, gr00t" in failed.stderr
