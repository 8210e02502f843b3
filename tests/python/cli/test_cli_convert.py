"""``robocache convert``: its options, its words and its exit codes."""

import json
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import policy_bags as bags
from cli_process import robocache
from robocache import data

pytest.importorskip("typer")
pytest.importorskip("rich")
pytest.importorskip("rosbags")
pytest.importorskip("pyarrow")

ROOT = Path(__file__).resolve().parents[3]
STATE = ("--state", "/joint_states:position", "--action", "/commands")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cli")
    for k in range(2):
        bags.write_bag(folder / "bags" / f"run_{k}", seed=k, seconds=1, size=16, compressed=())
    return folder


def run(*arguments, cwd, code=0):
    made = robocache("convert", *arguments, cwd=cwd, environment={"COLUMNS": "100"})
    assert made.returncode == code, made.stdout + made.stderr
    return made.stdout if code == 0 else made.stderr


def test_the_commands_of_the_page(folder, tmp_path):
    pytest.importorskip("av", reason="PyAV is not installed")
    text = (ROOT / "docs" / "quickstart" / "policy.md").read_text()
    (block,) = re.findall(r"test_cli_convert.py runs it -->\n```sh\n(.*?)```", text, re.S)
    arguments = shlex.split(block.replace("\\\n", " "))
    assert arguments[:2] == ["robocache", "convert"]
    arguments[arguments.index("so101")] = str(tmp_path / "so101")
    out = run(*arguments[2:], cwd=folder)
    assert "2 episodes, 40 rows, 2 s at 20 Hz" in out
    assert re.search(r"frames are at most \d+(\.\d+)? ms from their rows", out)
    episodes = data.open(tmp_path / "so101").load()
    assert episodes.tasks == ("pick the cube",) * 2
    assert episodes["observation.images.front"].num_rows == 40


def test_options(folder, tmp_path):
    out = tmp_path / "set"
    extra = ("--extra", "observation.environment_state=/odom:point.x,point.y", "--robot", "so101")
    shift = ("--action-shift", "2", "--state", "arm=/joint_states:position")
    sources = ("bags/run_0", "bags/run_1")
    printed = run(*sources, "-o", out, "--rate", "10", *shift, *extra, "--json", cwd=folder)
    made = json.loads(printed)
    assert made["features"]["observation.environment_state"] == ["point.x", "point.y"]
    assert made["features"]["action"] == ["arm.position[shoulder]", "arm.position[elbow]"]
    episodes = data.open(out).load()
    state, action = episodes["observation.state"].values, episodes["action"].values
    assert np.array_equal(state[2 : made["episodes"][0]["rows"]], action[: len(state) // 2 - 2])
    assert json.loads((out / "meta" / "info.json").read_text())["robot_type"] == "so101"


def test_the_suffix_decides(folder, tmp_path):
    run("bags", "-o", tmp_path / "set.csv", "--rate", "10", *STATE, cwd=folder)
    first = (tmp_path / "set.csv").read_text().split("\n")[0]
    assert first.startswith('"episode_index","frame_index","timestamp"')
    text = run("bags", "-o", tmp_path / "x.xyz", "--rate", "10", *STATE, cwd=folder, code=1)
    assert "no format has the suffix '.xyz'" in text


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["--state", "/joints"], 1, "--state: no such stream '/joints'; expected one of"),
        (["--state", "/joint_state"], 1, "Did you mean /joint_states? --skip-failed skips"),
        (["--state", "/joint_states:positon"], 1, "/joint_states:positon: no such channel"),
        (["--state", "/joint_states:positon"], 1, "Did you mean position?"),
        (["--state", "/joint_states:position[elbw]"], 1, "Did you mean position[elbow]?"),
        (["--action", "/joint_states:position,velocty"], 1, "Did you mean velocity?"),
        (["--state", "/front/image_raw"], 1, "--state: /front/image_raw holds images, whose"),
        (["--state", "/front/image_raw"], 1, "--image keeps them, or name one of its channels"),
        (["--image", "front=/odom"], 1, "--image front: /odom has messages of geometry_msgs"),
        (["--image", "front=/none"], 1, "--image front: no such stream '/none'"),
        (["--image", "a=/x", "--image", "a=/y"], 2, "a is given twice"),
        (["--method", "/odom=linear", "--method", "/odom=nearest"], 2, "/odom is given twice"),
        (["--extra", "/odom"], 2, "expected TRACK=STREAM"),
        (["--image-size", "96"], 2, "expected WIDTHxHEIGHT"),
        (["--split-gap", "long"], 2, "expected seconds"),
        (["--episode-from", "/marker"], 1, "--episode-from: no such stream '/marker', expected"),
        (["--format", "avro"], 1, "is 'avro', expected one of"),
        (["--state", "/joint_states", "--extra", "a/b=/odom"], 1, "is not a name for a feature"),
    ],
)
def test_refusals(folder, tmp_path, arguments, code, text):
    out = run("bags", "-o", tmp_path / "x", "--rate", "10", *arguments, cwd=folder, code=code)
    assert text in " ".join(out.replace("│", " ").split())
    assert os.listdir(tmp_path) == []


def test_a_channel_of_an_image_topic_may_be_named(folder, tmp_path):
    height = ("--state", "/front/image_raw:height")
    run("bags", "-o", tmp_path / "x", "--rate", "10", *height, cwd=folder)
    assert (data.open(tmp_path / "x").load()["observation.state"].values == 16).all()


def test_the_output_is_apart_from_the_sources(folder):
    before = sorted(path for path in folder.rglob("*"))
    for sources, out in [
        (["bags"], "bags/out"),
        (["bags/run_0"], "bags/run_0/out"),
        (["bags/run_*"], "bags/run_1/out.csv"),
        (["bags/run_0", "bags/run_1"], "bags/run_1/out"),
    ]:
        text = run(*sources, "-o", out, "--rate", "10", *STATE, cwd=folder, code=1)
        assert f"{out}: is inside bags" in text and "write next to that folder" in text
    text = run("bags", "-o", "no/x.csv", "--rate", "10", *STATE, cwd=folder, code=1)
    assert "no/x.csv: the folder no does not exist; make it first, or write elsewhere" in text
    assert sorted(path for path in folder.rglob("*")) == before


def test_a_rate_is_needed_for_recordings(folder, tmp_path):
    text = run("bags", "-o", tmp_path / "x", *STATE, cwd=folder, code=1)
    assert "--rate: is needed for recordings" in text


def test_skipped_recordings_are_listed(folder, tmp_path):
    bags.write_bag(tmp_path / "odd", seconds=0.5, cameras=(), compressed=())
    tracks = (*STATE, "--extra", "height=/front/image_raw:height")
    sources = (folder / "bags", tmp_path / "odd")
    text = run(*sources, "-o", tmp_path / "x", "--rate", "10", *tracks, cwd=folder, code=1)
    assert "--skip-failed skips such recordings" in text
    out = run(*sources, "-o", tmp_path / "x", "--rate", "10", *tracks, "--skip-failed", cwd=folder)
    out = " ".join(out.split())
    assert "skipped" in out and "no such stream" in out and "2 episodes" in out


def test_a_note_on_spans_names_the_option():
    from robocache.cli._messages import in_cli_words

    note = in_cli_words("spans= names run_7, which is not one of the sources", {"spans"})
    assert note == "--spans names run_7, which is not one of the sources"
