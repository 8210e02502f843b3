"""ManiSkill's trajectories in HDF5, and robosuite's demonstrations without observations."""

from __future__ import annotations

import json

import numpy as np
import pytest

import data_files
import fuzz_readers
import robocache as rbc
from robocache.data import checks

h5py = pytest.importorskip("h5py")
data = rbc.data
BODY = ("x", "y", "z", "qw", "qx", "qy", "qz", "vx", "vy", "vz", "wx", "wy", "wz")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("folder", [False, True])
def test_arrays(tmp_path, seed, folder):
    lengths = np.random.default_rng(seed).integers(1, 30, 12).tolist()
    path = tmp_path / "x" / "trajectory.h5"
    made = data_files.write_maniskill(path, lengths, seed)
    given = data.open(path.parent if folder else path)
    assert given.format == "HDF5, ManiSkill's layout" and given.rate == 20
    assert given.tasks == ("PickCube-v1",) * 12
    assert given.info["episodes"] == [f"traj_{e}" for e in range(12)]
    assert given.info["source_type"] == "motionplanning" and not given.problems
    left_out = {each.place: each.reason for each in given.left_out}
    assert left_out.pop("obs/sensor_data/base_camera/segmentation").startswith("pictures")
    assert list(given.cameras) == ["obs/sensor_data/base_camera/rgb"]
    for name in [name for name in made[0] if "/base_camera/" not in name]:
        whole = [own[name][:steps] for own, steps in zip(made, lengths)]
        expected = np.concatenate(whole).reshape(sum(lengths), -1)
        np.testing.assert_array_equal(given[name].values, expected)
        assert given[name].values.dtype == expected.dtype
        assert given[name].lengths.tolist() == lengths
        longer = len(made[0][name]) > lengths[0]
        assert (left_out.pop(name, "").startswith("the last row of each episode")) == longer
    assert not left_out
    times = given["actions"].times
    np.testing.assert_allclose(times, np.concatenate([np.arange(n) / 20 for n in lengths]))
    some = given.select([7, 2])["obs/agent/qpos"].values
    expected = [made[e]["obs/agent/qpos"][: lengths[e]] for e in (7, 2)]
    np.testing.assert_array_equal(some, np.concatenate(expected))


def test_names_and_kinds(tmp_path):
    path = tmp_path / "trajectory.h5"
    data_files.write_maniskill(path, (30, 20))
    given = data.open(path)
    assert given["env_states/actors/cube"].names == BODY
    joints = [f"{part}[{i}]" for part in ("qpos", "qvel") for i in range(9)]
    assert given["env_states/articulations/panda"].names == (*BODY, *joints)
    assert given["obs/extra/tcp_pose"].names == BODY[:7]
    for name in ("env_states/actors/cube", "env_states/articulations/panda", "obs/extra/tcp_pose"):
        kinds = [channel.kind for channel in given[name].channels]
        assert kinds[3:7] == ["quaternion"] * 4 and "quaternion" not in kinds[:3] + kinds[7:]
    assert [f.kind for f in checks.check(given) if f.kind == "quaternion"] == []


def test_older_layout(tmp_path):
    """ManiSkill 2 has an array of states, and the one at the beginning."""
    path = tmp_path / "x.h5"
    own = {"env_init_state": lambda n: np.ones(n), "env_states": lambda n: np.ones((n + 1, 40))}
    with h5py.File(path, "w") as file:
        for e, steps in enumerate((4, 6)):
            file[f"traj_{e}/actions"] = np.ones((steps, 2), "f4")
            file[f"traj_{e}/obs"] = np.arange(steps + 1.0)[:, None]
            for name, of in own.items():
                file[f"traj_{e}/{name}"] = of(steps)
    given = data.open(path, rate=10)
    assert set(given.tracks) == {"actions", "obs", "env_states"} and given.tasks is None
    assert given["obs"].values[:, 0].tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 4, 5]
    reasons = {each.place: each.reason for each in given.left_out}
    assert reasons["env_init_state"] == "the state at the beginning, not one row per step"


def test_actions_of_several_robots(tmp_path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        for robot in ("a", "b"):
            file[f"traj_0/actions/{robot}"] = np.ones((4, 2))
        file["traj_0/obs/state"] = np.ones((5, 2))
    given = data.open(tmp_path / "x.h5")
    assert {name: given[name].num_rows for name in given.tracks} == {
        "actions/a": 4, "actions/b": 4, "obs/state": 4,
    }  # fmt: skip


def test_objects_of_one_episode(tmp_path):
    path = tmp_path / "x.h5"
    data_files.write_maniskill(path)
    with h5py.File(path, "a") as file:
        file.move("traj_1/env_states/actors/cube", "traj_1/env_states/actors/can")
    given = data.open(path)
    reasons = {each.place: each.reason for each in given.left_out}
    for name in ("cube", "can"):
        assert f"env_states/actors/{name}" not in given.tracks
        assert "is missing" in reasons[f"env_states/actors/{name}"]
    with h5py.File(path, "a") as file:
        del file["traj_1/obs/agent/qpos"]
    with pytest.raises(data.FormatError, match="traj_1/obs/agent/qpos: is missing"):
        data.open(path)


def test_the_file_next_to_it(tmp_path):
    path = tmp_path / "set" / "x.h5"
    data_files.write_maniskill(path)
    beside = path.with_suffix(".json")
    whole = json.loads(beside.read_text())
    beside.write_text(json.dumps({**whole, "episodes": [{"episode_id": 1, "elapsed_steps": 9}]}))
    (problem,) = data.open(path).problems
    assert str(problem) == f"{beside}: episode 1: elapsed_steps is 9, but traj_1 has 3 actions"
    beside.write_text(json.dumps({"a": 1}))
    assert "does not describe this file" in str(data.open(path).left_out)
    for text in ("{", "[" * 200_000, ""):
        beside.write_text(text)
        with pytest.raises(data.FormatError, match=r"x\.json: (is not JSON|it is empty)"):
            data.open(path)
        kept = data.open(path, damaged="keep")
        assert len(kept) == 2 and len(kept.problems) == 1
    beside.unlink()
    given = data.open(path)
    assert given.tasks is None and given.rate is None and not given.problems
    (tmp_path / "other").mkdir()
    target = tmp_path / "other" / "x.json"
    target.write_text(json.dumps(whole))
    beside.symlink_to(target)
    assert "link out of the data set" in str(data.open(path).left_out)
    assert data.open(path, follow_links=True).rate == 20


def test_damage(tmp_path):
    path = tmp_path / "x.h5"
    data_files.write_maniskill(path, obs__short=lambda steps: np.ones((steps - 1, 2)))
    with pytest.raises(data.FormatError, match="traj_0: obs/short has 4 rows, actions 5"):
        data.open(path)
    assert "obs/short" not in data.open(path, damaged="keep").tracks
    content = path.read_bytes()
    for size in range(100, len(content), 997):
        path.write_bytes(content[:size])
        with pytest.raises(data.FormatError, match="damaged or truncated|expected an HDF5"):
            data.open(path).load()


def test_robosuite(tmp_path):
    given = data.open(fuzz_readers.FORMATS["robosuite"](tmp_path))
    assert set(given.tracks) == {"states", "actions"} and given.info["env"] == "Lift"
    assert given["states"].values[6:, 0].tolist() == [0, 5, 10, 15]
    assert given["actions"].lengths.tolist() == [6, 4]
