"""Ray Data: each stage, and a cluster of two nodes that loses one."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

import data_files
import robocache as rbc

pytest.importorskip("pyarrow")
LIMIT = 300  # seconds; if Ray cannot start, it would wait for minutes
LENGTHS = (5, 3, 4, 9)
SPEC = rbc.WindowSpec({"observation.state": [-1, 0], "action": range(4)})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write a data set and a bag."""
    pytest.importorskip("rosbags")
    made = tmp_path_factory.mktemp("ray")
    data_files.write_lerobot(made / "lerobot", LENGTHS)
    store = data_files.typestore()
    data_files.write_ros2(made / "bag", data_files.messages(store, 100), store)
    return made


def references(folder, *numbers):
    paths = [str(folder / "lerobot")] * len(numbers)
    return {"path": np.array(paths), "episode": np.array(numbers)}


def same_statistics(one, other):
    for name in ("count", "nonfinite", "min", "max", "mean", "std", "quantiles"):
        mine, theirs = (np.asarray(getattr(each, name)) for each in (one, other))
        assert mine.tobytes() == theirs.tobytes(), name


def merged(batches):
    told = {}
    for batch in batches:
        for column, state in zip(batch["column"], batch["state"]):
            part = rbc.StatisticsAccumulator.from_bytes(state)
            if column in told:
                told[column].merge(part)
            else:
                told[column] = part
    return {column: each.result() for column, each in told.items()}


def check_windows(rows, episodes, spec=SPEC):
    """Compare rows of samples, in any order, with the plain call."""
    which, anchors = spec.samples(episodes)
    assert sorted((row["episode"], row["anchor"]) for row in rows) == list(zip(which, anchors))
    rows = sorted(rows, key=lambda row: (row["episode"], row["anchor"]))
    for name, (values, valid) in episodes.windows(spec).items():
        got = np.stack([row[name] for row in rows])
        assert got.dtype == values.dtype and got.tobytes() == values.tobytes()
        assert (np.stack([row[f"{name}.valid"] for row in rows]) == valid).all()


def rows_of(batches):
    return [
        {name: column[i] for name, column in batch.items()}
        for batch in batches
        for i in range(len(batch["episode"]))
    ]


def check_aligned(rows, bag):
    (row,) = rows
    expected = rbc.data.open(bag).align(20, max_gap=0.5)
    assert (row["path"], row["episode"]) == (str(bag), 0)
    assert row["time_unit"] == "timedelta64[ns]"
    for name, track in expected.tracks.items():
        assert np.array_equal(row[name], track.values, equal_nan=track.values.dtype.kind == "f")
        assert row[name].dtype == track.values.dtype
        assert (row["times"] == track.times).all()


# ---- in a cluster ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster(folder):
    """Return the output of ray_cluster.py, run in a separate process with a time limit."""
    pytest.importorskip("ray", reason="Ray is not installed")
    short = Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))  # sockets have short paths
    (short / "ray").mkdir()
    program = Path(__file__).parents[1] / "support" / "ray_cluster.py"
    package = Path(rbc.__file__).parents[1]  # the same for Ray's workers
    environment = {**os.environ, "RAY_TMPDIR": str(short), "PYTHONPATH": str(package)}
    process = subprocess.Popen(
        [sys.executable, str(program), str(folder)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        said, _ = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail(f"ray_cluster.py took longer than {LIMIT} s: {process.communicate()[0]}")
    finally:
        shutil.rmtree(short, ignore_errors=True)
    assert process.returncode == 0, said
    return pickle.loads((folder / "results.pickle").read_bytes())


def test_a_lost_node_changes_no_bit(cluster):
    import ray_cluster

    assert cluster["nodes"] == 2 and cluster["nodes that are left"] == 1
    assert cluster["blocks of the node"] >= 3
    assert cluster["blocks when it was lost"] < ray_cluster.BLOCKS  # others were still to come
    state = np.concatenate([ray_cluster.frames(b)["state"] for b in range(ray_cluster.BLOCKS)])
    assert list(cluster["with a node lost"]) == ["state"]
    same_statistics(cluster["with a node lost"]["state"], rbc.statistics(state))


def test_a_killed_worker_changes_no_bit(cluster, folder):
    import ray_cluster

    rows, episodes_before = cluster["with workers killed"]["windows"]
    assert len(episodes_before) == 2 and episodes_before[0] < len(LENGTHS)
    check_windows(rows, rbc.data.open(folder / "lerobot"))
    told, blocks_before = cluster["with workers killed"]["statistics"]
    assert len(blocks_before) == 2 and max(blocks_before) < ray_cluster.BLOCKS
    state = np.concatenate([ray_cluster.frames(b)["state"] for b in range(ray_cluster.BLOCKS)])
    same_statistics(told["state"], rbc.statistics(state, quantiles=()))


def test_a_worker_that_always_dies_is_an_error(cluster, folder):
    """The error comes after the set number of attempts; existing files are unchanged."""
    assert re.match(r"Actor\w+Error: .*[Aa]ctor", cluster["with workers killed"]["error"])
    (old,) = (folder / "old").iterdir()
    assert old.name == "stats.json" and old.read_bytes() == b'{"old": {"mean": [0]}}'


def test_groups_in_a_cluster(cluster):
    import ray_cluster

    made = [ray_cluster.frames(b) for b in range(ray_cluster.BLOCKS)]
    state, robot = (np.concatenate([each[name] for each in made]) for name in ("state", "robot"))
    assert sorted(cluster["by robot"]) == [0, 1]
    for number, told in cluster["by robot"].items():
        same_statistics(told["state"], rbc.statistics(state[robot == number], quantiles=()))


def test_files_in_a_cluster(cluster, folder):
    episodes = rbc.data.open(folder / "lerobot")
    expected = episodes.statistics(quantiles=())
    assert cluster["of files"].keys() == expected.keys()
    for name, told in cluster["of files"].items():
        same_statistics(told, expected[name])
    assert {row["path"] for row in cluster["windows"]} == {str(folder / "lerobot")}
    check_windows(cluster["windows"], episodes)


def test_bags_in_a_cluster(cluster, folder):
    check_aligned(cluster["aligned"], folder / "bag")
    spec = rbc.WindowSpec({"/imu": [0, 1]})
    aligned = rbc.data.open(folder / "bag").align(20, max_gap=0.5)
    check_windows(cluster["windows of aligned"], aligned, spec)


def test_the_page_in_a_cluster(cluster, folder):
    episodes = rbc.data.open(folder / "lerobot")
    page = cluster["the page"]
    same_statistics(page["stats"]["action"], episodes.statistics(["action"])["action"])
    check_windows(rows_of([page["batch"]]), episodes, page["spec"])


def test_the_example_in_a_cluster(cluster, folder):
    episodes = rbc.data.open(folder / "lerobot")
    expected = episodes.statistics()
    less = rbc.Transform("subtract", 0, 2, reference=("observation.state", 0))
    spec = rbc.WindowSpec(
        {"observation.state": [0], "action": rbc.Window(range(2), transforms=[less])}
    )
    expected["action.relative"] = spec.statistics(episodes, rows="whole")["action"]
    rbc.statistics_files.write_lerobot(folder / "expected.json", expected)
    plain = rbc.statistics_files.read_lerobot(folder / "expected.json")
    assert cluster["the job"].keys() == plain.keys()
    for name, told in cluster["the job"].items():
        for statistic in ("min", "max", "mean", "std", "quantiles"):
            assert np.array_equal(getattr(told, statistic), getattr(plain[name], statistic))


# ---- stages by themselves ----------------------------------------------------------------------


def test_statistics_of_columns():
    rng = np.random.default_rng(0)
    state = rng.normal(size=(100, 3)).astype(np.float32)
    batch = {"state": state, "grip": rng.random(100) < 0.5, "task": np.array(["a"] * 100)}
    told = merged(rbc.ray.Statistics(quantiles=())(batch))
    assert sorted(told) == ["grip", "state"]
    same_statistics(told["state"], rbc.statistics(state, quantiles=()))
    same_statistics(told["grip"], rbc.statistics(batch["grip"][:, None], quantiles=()))


def test_statistics_of_rows_of_any_length():
    """Rows with an episode [n,D] each, and rows with a list [D], as read from Parquet."""
    rng = np.random.default_rng(0)
    episodes = [rng.normal(size=(n, 2)) for n in (4, 0, 7)]
    lists = np.empty(3, object)
    ragged = np.empty(3, object)
    for i in range(3):
        ragged[i], lists[i] = episodes[i], np.arange(4.0) + i
    told = merged(rbc.ray.Statistics(quantiles=())({"a": ragged, "b": lists}))
    same_statistics(told["a"], rbc.statistics(np.concatenate(episodes), quantiles=()))
    same_statistics(told["b"], rbc.statistics(np.stack(list(lists)), quantiles=()))
    assert list(rbc.ray.Statistics(["a"])({"a": ragged[1:2]})) == []


def test_statistics_by_group():
    values, robot = np.arange(8.0), np.array(["x", "y"] * 4)
    (batch,) = rbc.ray.Statistics(["v"], by="robot")({"v": values, "robot": robot})
    assert batch["group"] == ["x", "y"]
    means = [rbc.StatisticsAccumulator.from_bytes(s).result().mean[0] for s in batch["state"]]
    assert means == [3, 4]


def test_a_second_pass_begins_where_the_first_ended():
    values = np.random.default_rng(0).normal(size=(1000, 2)).astype(np.float32)
    count = rbc.ray.Statistics(["v"])
    first = rbc.StatisticsAccumulator(2)
    for part in (values[:400], values[400:]):
        (batch,) = count({"v": part})
        first.merge(rbc.StatisticsAccumulator.from_bytes(batch["state"][0]))
    assert first.next_pass()
    again = rbc.ray.Statistics(["v", "w"], start={(None, "v"): first.to_bytes(), (None, "w"): None})
    for part in (values[:400], values[400:]):
        (batch,) = again({"v": part, "w": part})  # w is complete
        assert batch["column"] == ["v"]
        first.merge(rbc.StatisticsAccumulator.from_bytes(batch["state"][0]))
    assert not first.next_pass()
    same_statistics(first.result(), rbc.statistics(values))
    with pytest.raises(ValueError, match="^u: is new in this pass"):
        list(rbc.ray.Statistics(["u"], start={})({"u": values}))


@pytest.mark.parametrize(("given", "expected"), [({}, 10), ({"max_task_retries": -1}, -1)])
def test_a_batch_is_not_tried_for_ever(given, expected):
    """Ray's default is to retry a batch on one worker after another, even if each one dies."""
    pytest.importorskip("ray.data")
    passed = []

    class Dataset:
        def map_batches(self, _, **options):
            passed.append(options)
            return self

        def iter_rows(self):
            return iter(())

    assert rbc.ray.statistics(Dataset(), **given) == {}
    assert [options["max_task_retries"] for options in passed] == [expected]


def test_statistics_of_files(folder):
    expected = rbc.data.open(folder / "lerobot").statistics(["action"], quantiles=())["action"]
    count = rbc.ray.Statistics(["action"], quantiles=())
    told = merged([*count(references(folder, 0, 2)), *count(references(folder, 3, 1))])
    same_statistics(told["action"], expected)
    same_statistics(merged(count({"path": [str(folder / "lerobot")]}))["action"], expected)
    bag = merged(rbc.ray.Statistics(["/imu"], quantiles=())({"path": [str(folder / "bag")]}))
    values = rbc.data.open(folder / "bag")["/imu"].values
    same_statistics(bag["/imu"], rbc.statistics(values, quantiles=()))
    (by,) = rbc.ray.Statistics(["action"], by="path")(references(folder, 0))
    assert by["group"] == [str(folder / "lerobot")]


def test_windows_are_those_of_the_plain_call(folder):
    cut = rbc.ray.Windows(SPEC, chunk=5)
    chunks = list(cut(references(folder, 0, 1, 2, 3)))
    assert [len(chunk["episode"]) for chunk in chunks] == [5, 5, 5, 5, 1]
    check_windows(rows_of(chunks), rbc.data.open(folder / "lerobot"))
    one = rows_of(cut(references(folder, 2)))  # episode numbers of the data set
    assert {row["episode"] for row in one} == {2} and len(one) == LENGTHS[2]


def test_aligned_rows_become_windows(folder):
    batches = list(rbc.ray.Align(20, max_gap=0.5)({"path": [str(folder / "bag")]}))
    check_aligned(rows_of(batches), folder / "bag")
    spec = rbc.WindowSpec({"/imu": [0, 1]})
    rows = rows_of(rbc.ray.Windows(spec)(batches[0]))
    check_windows(rows, rbc.data.open(folder / "bag").align(20, max_gap=0.5), spec)


def test_align_takes_some_episodes_and_streams(folder):
    rows = rows_of(rbc.ray.Align(20, streams=["action"])(references(folder, 3, 1)))
    expected = rbc.data.open(folder / "lerobot").select([3, 1], tracks=["action"]).align(20)
    assert [row["episode"] for row in rows] == [3, 1]
    for row, number in zip(rows, range(2)):
        assert (row["action"] == expected.select([number])["action"].values).all()
        assert set(row) == {"path", "episode", "times", "time_unit", "action"}


def test_errors(folder, tmp_path):
    with pytest.raises(ValueError, match="is a recording, whose streams have different clocks"):
        list(rbc.ray.Windows(SPEC)({"path": [str(folder / "bag")]}))
    with pytest.raises(ValueError, match=r"state: a row has shape \[3\], expected"):
        list(rbc.ray.Windows(rbc.WindowSpec({"state": [0]}))({"state": np.zeros((9, 3))}))
    with pytest.raises(KeyError, match="tracks: no column 'action' in the batch"):
        list(rbc.ray.Windows(SPEC)({"observation.state": np.zeros((9, 5, 3))}))
    with pytest.raises(ValueError, match="spec: a window is named 'path'"):
        rbc.ray.Windows(rbc.WindowSpec({"path": [0]}))
    with pytest.raises(TypeError, match="spec: has dtype bfloat16, which Arrow lacks"):
        rbc.ray.Windows(rbc.WindowSpec({"a": [0]}, dtype="bfloat16"))
    with pytest.raises(TypeError, match="spec: is a dict"):
        rbc.ray.Windows({})
    with pytest.raises(KeyError, match="batch: has no column 'path'"):
        list(rbc.ray.Align(20)({"a": np.zeros(3)}))
    with pytest.raises(KeyError, match="columns: no column 'b'"):
        list(rbc.ray.Statistics(["b"])({"a": np.zeros(3)}))
    with pytest.raises(TypeError, match="columns: is 'state', expected a list"):
        rbc.ray.Statistics("state")
    with pytest.raises(ValueError, match="by: is 'robot', expected 'path'"):
        list(rbc.ray.Statistics(by="robot")({"path": [str(folder / "bag")]}))
    ragged = np.empty(2, object)
    ragged[0], ragged[1] = np.zeros(2), np.zeros(3)
    with pytest.raises(ValueError, match="a: samples have different numbers of channels"):
        list(rbc.ray.Statistics(["a"])({"a": ragged}))
    with pytest.raises(TypeError, match="a: holds 'x', expected arrays of numbers"):
        list(rbc.ray.Statistics(["a"])({"a": np.array(["x", "y"], object)}))
    cloud = tmp_path / "sweep.bin"
    np.zeros((8, 4), "<f4").tofile(cloud)
    with pytest.raises(ValueError, match="is a point cloud, expected"):
        list(rbc.ray.Align(20)({"path": [str(cloud)]}))


@pytest.mark.parametrize("call", ["episodes('x')", "statistics(None)"])
def test_without_ray(call):
    code = f"""
import sys
sys.modules["ray"] = sys.modules["ray.data"] = None
import robocache as rbc
try:
    rbc.ray.{call}
except ModuleNotFoundError as error:
    print(error)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "needs ray, which is not installed: pip install 'robocache[ray]'" in run.stdout, run
