"""STREAM:CHANNELS on every command that names streams or tracks."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from typer.testing import CliRunner  # noqa: E402

import recordings_with_faults as faults  # noqa: E402
from robocache import Episodes, Track, data  # noqa: E402
from robocache.cli._app import app  # noqa: E402

RUNNER = CliRunner()
CHANNELS = ("position.x", "position.y", "position.z", "q.x", "q.y", "q.z", "q.w")


def run(*arguments, code=0):
    result = RUNNER.invoke(app, [*map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output


def told(*arguments):
    return json.loads(run(*arguments, "--json"))


@pytest.fixture
def recording(tmp_path):
    """A recording with the streams "arm", "arm:left" and "base"."""
    times = {"log": (np.arange(50) * 10_000_000).astype(np.int64)}
    values = np.random.default_rng(0).normal(size=(50, 7))
    values[:, 3:] /= np.linalg.norm(values[:, 3:], axis=1, keepdims=True)
    streams = [
        data.RecordedStream(name, "test", CHANNELS, values + place, times, "ns")
        for place, name in enumerate(("arm", "arm:left", "base"))
    ]
    path = tmp_path / "in.npz"
    data.Recording.from_streams(streams).save(path, "npz")
    return path


@pytest.fixture
def data_set(tmp_path):
    rng = np.random.default_rng(1)
    names = {"state": [f"s{i}" for i in range(5)], "action": [f"s{i}" for i in range(3)]}
    tracks = {
        name: Track(rng.normal(size=(40, len(own))), [0, 15, 40], times=np.arange(40.0), names=own)
        for name, own in names.items()
    }
    data.save(Episodes(tracks), tmp_path / "set.npz", "npz")
    return tmp_path / "set.npz"


@pytest.mark.parametrize(
    ("text", "stream", "columns"),
    [
        ("base", "base", range(7)),
        ("base:position", "base", (0, 1, 2)),
        ("base:position.z,position.x", "base", (2, 0)),
        ("base:1-2", "base", (1, 2)),
        ("arm:left", "arm:left", range(7)),  # the longest name wins
        ("arm:left:q.w", "arm:left", (6,)),
        ("arm:position.y", "arm", (1,)),
    ],
)
def test_stats_of_channels(recording, text, stream, columns):
    out = told("stats", recording, "-s", text)["streams"]
    values = data.open(recording)[stream].values[:, list(columns)]
    assert list(out) == [stream]
    assert out[stream]["names"] == [CHANNELS[c] for c in columns]
    np.testing.assert_array_equal(out[stream]["max"], values.max(axis=0))


def test_inspect_of_channels(recording, data_set):
    out = told("inspect", recording, "-s", "base:position", "-s", "arm")["streams"]
    assert {name: each["channels"] for name, each in out.items()} == {"arm": 7, "base": 3}
    out = told("inspect", data_set, "-s", "state:1-3")["streams"]
    assert {name: each["channels"] for name, each in out.items()} == {"state": 3}
    assert "no such stream. Did you mean base?" in run("inspect", recording, "-s", "bas", code=1)


def test_the_parts_of_a_stream_are_joined_in_their_order(recording):
    out = told("stats", recording, "-s", "base:q.w", "-s", "base:position.x", "-s", "arm")
    assert out["streams"]["base"]["names"] == ["q.w", "position.x"]
    assert len(out["streams"]["arm"]["names"]) == 7


def test_resample_and_report_of_channels(recording, tmp_path):
    target, page = tmp_path / "out.npz", tmp_path / "page.html"
    run("resample", recording, "--rate", "50", "-o", target, "-s", "base:position", "-s", "arm:q")
    made = data.open(target)
    assert made["base"].names == CHANNELS[:3] and made["arm"].names == CHANNELS[3:]
    assert {c.kind for c in made["arm"].channels} == {"quaternion"}
    run("report", recording, "--html", page, "-s", "base:position.z")
    text = page.read_text(encoding="utf-8")
    assert "position.z" in text and "position.x" not in text


def test_windows_and_stats_of_parts_of_tracks(data_set):
    out = told("windows", data_set, "--steps", "4", "--state", "state:s0-s2")
    assert out["windows"]["state"]["track"] == "state"
    both = told("windows", data_set, "--steps", "4", "--state", "state:0-1", "--action", "state:2")
    assert both["windows"]["state"]["track"] == "state:0-1"
    assert both["windows"]["action"]["track"] == "state:2"
    known = data.open(data_set)
    relative = ("stats", data_set, "--relative", "1", "--state", "state:s0-s2")
    values = known["action"].values - known["state"].values[:, :3]
    found = told(*relative)["streams"]["action"]
    np.testing.assert_allclose(found["max"], values.max(axis=0))
    mine = told("stats", data_set, "-s", "action:s1")["streams"]["action"]
    np.testing.assert_array_equal(mine["min"], known["action"].values[:, [1]].min(axis=0))


def test_sync_of_channels(tmp_path):
    times = {"log": (np.arange(4000) * 5_000_000).astype(np.int64)}
    t = np.arange(4000) * 0.005
    moves = np.sin(1.3 * t + np.sin(0.7 * t))[:, None] * [1, 0.5] + [[0, 0]]
    late = np.sin(1.3 * (t - 0.1) + np.sin(0.7 * (t - 0.1)))[:, None] * [1, 0.5]
    noise = np.random.default_rng(0).normal(size=(4000, 1))
    streams = [
        data.RecordedStream(
            n, "test", ("x", "y", "noise"), np.c_[v, noise[:: 1 - 2 * i]], times, "ns"
        )
        for i, (n, v) in enumerate({"a": moves, "b": late}.items())
    ]
    path = tmp_path / "two.npz"
    data.Recording.from_streams(streams).save(path, "npz")
    out = told("sync", path, "--a", "a:x-y", "--b", "b:0,1")
    assert out["offset"] == pytest.approx(-0.1, abs=0.02)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("stats", "-s", "arm:none"), "--stream arm: no such channel 'none'"),
        (("stats", "-s", "bass:q"), "--stream bass:q: no such stream. Did you mean base?"),
        (("resample", "--rate", "9", "-o", "NPZ", "-s", "arm:9"), "no such channel '9'"),
        (("report", "--html", "OUT", "-s", "arm:rx"), "no such channel 'rx'"),
        (("sync", "--a", "arm:rx", "--b", "base"), "--a arm: no such channel 'rx'"),
    ],
)
def test_unknown_channels_are_named(recording, tmp_path, arguments, words):
    places = {"OUT": tmp_path / "out.html", "NPZ": tmp_path / "out.npz"}
    given = [places.get(argument, argument) for argument in arguments]
    assert words in run(given[0], recording, *given[1:], code=1)
    assert not any(place.exists() for place in places.values())


def test_files_of_statistics_hold_whole_tracks(tmp_path):
    pytest.importorskip("pyarrow")
    data.save(faults.episodes(), tmp_path / "set", "lerobot")
    for option in (("--check",), ("--write", "lerobot", "-o", tmp_path / "stats.json")):
        text = run("stats", tmp_path / "set", "-s", "action:0", *option, code=1)
        assert "needs all 2 channels of action" in text
    assert not (tmp_path / "stats.json").exists()
