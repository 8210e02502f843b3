"""LeRobot's own editing gives the same data sets as ``data.edit``.

It needs ROBOCACHE_LEROBOT_PYTHON, an interpreter with lerobot. LeRobot keeps the statistics of the
columns index, episode_index and task_index of the old data set, computes quantiles from histograms,
and numbers tasks in the order of a set, so these are not compared.
"""

import json
import os
import subprocess

import pytest

import policy_bags as bags
from robocache import data

PYTHON = os.environ.get("ROBOCACHE_LEROBOT_PYTHON")
pytestmark = pytest.mark.skipif(
    not PYTHON, reason="ROBOCACHE_LEROBOT_PYTHON names no interpreter with lerobot"
)
CAMERA = "observation.images.wrist"
EDIT = """
import sys
from pathlib import Path
from lerobot.datasets import dataset_tools as tools
from lerobot.datasets.lerobot_dataset import LeRobotDataset as DataSet

source, out = sys.argv[1], Path(sys.argv[2])
whole = DataSet("test/source", root=source)
tools.delete_episodes(whole, [1], output_dir=out / "drop", repo_id="test/drop")
tools.split_dataset(whole, {"a": [0, 1], "b": [2, 3]}, output_dir=out / "split")
parts = [DataSet(f"test/{name}", root=out / "split" / name) for name in "ba"]
tools.merge_datasets(parts, output_repo_id="test/merge", output_dir=out / "merge")
tools.remove_feature(whole, sys.argv[3], output_dir=out / "remove", repo_id="test/remove")
"""
COMPARE = """
import json, sys
from pathlib import Path
import numpy as np, pandas, torch
from lerobot.datasets.lerobot_dataset import LeRobotDataset as DataSet

ours, theirs = map(Path, sys.argv[1:3])
def table(folder, pattern):
    return pandas.concat(map(pandas.read_parquet, sorted(folder.glob(pattern))))

found = []
for name in sys.argv[3:]:
    infos = [json.loads((each / name / "meta/info.json").read_text()) for each in (ours, theirs)]
    found += [[name, "info", key] for key in infos[1] if infos[0].get(key) != infos[1][key]]
    mine, other = (table(each / name, "meta/episodes/*/*.parquet") for each in (ours, theirs))
    for key in ("length", "tasks", "dataset_from_index", "dataset_to_index", "data/file_index"):
        if list(map(str, mine[key])) != list(map(str, other[key])):
            found.append([name, "meta/episodes", key])
    mine, other = (table(each / name, "meta/tasks.parquet") for each in (ours, theirs))
    if set(mine.index) != set(other.index):
        found.append([name, "tasks"])
    a, b = DataSet("test/a", root=ours / name), DataSet("test/b", root=theirs / name)
    if (len(a), a.num_episodes, set(a.features)) != (len(b), b.num_episodes, set(b.features)):
        found.append([name, "sizes or features"])
        continue
    for i in range(len(a)):
        mine, other = a[i], b[i]
        for key in set(mine) - {"task_index"}:
            same = mine[key] == other[key]
            if not (bool(same.all()) if isinstance(same, torch.Tensor) else same):
                found.append([name, i, key])
    for key in set(b.meta.stats) - {"index", "episode_index", "task_index"}:
        for which in ("min", "max", "mean", "std", "count"):
            pair = [np.asarray(each.meta.stats[key][which], float) for each in (a, b)]
            if pair[0].shape != pair[1].shape or not np.allclose(*pair, rtol=1e-5, atol=1e-6):
                found.append([name, key, which])
print(json.dumps(found))
"""


def run(tmp_path, code, *arguments):
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hub")}
    environment.pop("PYTHONPATH", None)
    made = subprocess.run(
        [PYTHON, "-c", code, *map(str, arguments)], capture_output=True, text=True, env=environment
    )
    assert made.returncode == 0, made.stderr
    return made.stdout


def test_the_same_data_sets(tmp_path):
    pytest.importorskip("av", reason="PyAV is not installed")
    for k in range(4):
        bags.write_bag(tmp_path / "bags" / f"run_{k}", seed=k, seconds=1 + 0.2 * k, size=32)
    source, ours, theirs = tmp_path / "source", tmp_path / "ours", tmp_path / "theirs"
    data.convert(
        tmp_path / "bags",
        tmp_path / "one_task",
        rate=20,
        tracks={"observation.state": "/joint_states:position", "action": "/commands"},
        images={"front": "/front/image_raw", "wrist": "/wrist/compressed"},
        tasks="pick",
    )
    data.edit(tmp_path / "one_task", source, tasks={1: "place", 3: "push"})
    theirs.mkdir()
    run(tmp_path, EDIT, source, theirs, CAMERA)
    ours.mkdir()
    data.edit(source, ours / "drop", drop=[1])
    data.edit(source, ours / "split", split={"a": "0-1", "b": "2-3"})
    data.edit([ours / "split" / "b", ours / "split" / "a"], ours / "merge")
    data.edit(source, ours / "remove", remove=[CAMERA])
    names = ("drop", "split/a", "split/b", "merge", "remove")
    out = run(tmp_path, COMPARE, ours, theirs, *names)
    assert json.loads(out.splitlines()[-1]) == []
