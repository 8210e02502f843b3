"""npz files of other programs, compared with numpy.load."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

import fuzz_readers
import robocache as rbc

data = rbc.data


def saved(path, pack=np.savez, **arrays):
    pack(path, **arrays)
    return path


@pytest.mark.parametrize("pack", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("key", ["episode_ends", "meta/episode_ends", "episode_lengths",
                                 "traj_lengths", "episode_index"])  # fmt: skip
@pytest.mark.parametrize("seed", range(3))
def test_episodes(tmp_path, pack, key, seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, 6)
    rows = int(lengths.sum())
    own = {
        "actions": rng.normal(size=(rows, 3)).astype(">f4"),
        "states": np.asfortranarray(rng.normal(size=(rows, 2, 2))),
        "rewards": rng.normal(size=rows),
        "terminals": rng.random(rows) < 0.1,
    }
    index = {
        "episode_index": np.repeat(np.arange(6), lengths),
        **dict.fromkeys(("episode_lengths", "traj_lengths"), lengths),
    }.get(key, np.cumsum(lengths))
    others = {"images": np.zeros((rows, 4, 4, 3), "u1"), "name": np.array("push")}
    path = saved(tmp_path / "x.npz", pack, **own, **others, **{key: index})
    given = data.open(path, rate=10)
    assert set(given.tracks) == set(own) and len(given) == 6
    for name, array in np.load(path).items():
        if name in own:
            assert given[name].lengths.tolist() == lengths.tolist()
            np.testing.assert_array_equal(given[name].values, array.reshape(rows, -1))
            assert given[name].values.dtype == array.dtype.newbyteorder("=")
    assert {each.place for each in given.left_out} == set(others)
    times = [np.arange(n) / 10 for n in lengths]
    np.testing.assert_allclose(given["actions"].times, np.concatenate(times))


def test_times_of_episodes(tmp_path):
    path = saved(
        tmp_path / "x.npz", action=np.ones((5, 2)), timestamp=np.array([0, 0.1, 0.2, 0, 0.1]),
        episode_ends=[3, 5], seeds=[7, 8],
    )  # fmt: skip
    given = data.open(path)
    assert given["action"].times.tolist() == [0, 0.1, 0.2, 0, 0.1]
    assert [str(each) for each in given.left_out] == ["seeds: has 2 rows, but episode_ends has 5"]


@pytest.mark.parametrize(
    ("ends", "match"),
    [
        ([3, 2, 5], "episode_ends, episode 1: goes back"),
        ([-1, 5], "episode_ends, episode 0: is -1, expected a row"),
        ([1 << 60, 5], "episode 0: is 1152921504606846976, expected a row"),
        ([3], "action: has 5 rows, but episode_ends has 3"),
    ],
)
def test_ends_that_are_wrong(tmp_path, ends, match):
    path = saved(tmp_path / "x.npz", action=np.ones((5, 2)), episode_ends=ends, a=np.ones((3, 1)))
    with pytest.raises(data.FormatError, match=match):
        data.open(path)


def test_streams(tmp_path):
    given = data.open(fuzz_readers.FORMATS["npz-streams"](tmp_path))
    assert given.names == ("imu", "grip") and given.unit == "ns"
    assert given["imu"].times().tolist() == [i * 10**7 for i in range(20)]
    assert given["grip"].times().tolist() == [i * 10**8 for i in range(5)]
    reasons = {each.place: each.reason for each in given.left_out}
    assert reasons["infos"].startswith("holds Python objects")
    assert reasons["rgb"].startswith("pictures")
    assert given.info("imu").kind == "npz"


def test_the_name_of_the_times(tmp_path):
    path = saved(tmp_path / "x.npz", x=np.arange(4.0), mine=np.arange(4) * 10)
    given = data.open(path, time="mine:ms")
    assert given.names == ("x",) and given["x"].times().tolist() == [0, 10, 20, 30]
    assert given.unit == "ms"


def test_a_rate_in_the_file(tmp_path):
    """AMASS and motions for Isaac Lab have one."""
    turns = np.ones((9, 2, 4))
    path = saved(
        tmp_path / "x.npz", trans=np.ones((9, 3)), body_quat_w=turns, betas=np.ones(16),
        fps=np.array([50]), gender=np.array("neutral"),
    )  # fmt: skip
    given = data.open(path)
    assert given.names == ("trans", "body_quat_w")
    np.testing.assert_allclose(given["trans"].times(), np.arange(9) / 50)
    assert given["body_quat_w"].names[4:6] == ("[1][0]", "[1][1]")
    reasons = {each.place: each.reason for each in given.left_out}
    assert reasons["fps"] == "is the rate, 50"
    assert reasons["betas"] == "has 16 rows, others 9"
    assert data.open(path, rate=10)["trans"].times()[1] == 0.1


def test_no_times(tmp_path):
    given = data.open(saved(tmp_path / "x.npz", qpos=np.ones((9, 3)), action=np.ones((9, 3))))
    assert [each.place for each in given.unread] == ["qpos.npy", "action.npy"]
    assert "the archive has no array of times" in given.unread[0].reason
    with pytest.raises(ValueError, match="no array of times"):
        given.align(10)


@pytest.mark.parametrize("name", ["npz-episodes", "npz-packed", "npz-streams"])
def test_cut_off(tmp_path, name):
    path = fuzz_readers.FORMATS[name](tmp_path)
    content = path.read_bytes()
    for size in range(0, len(content), 13):
        path.write_bytes(content[:size])
        with pytest.raises(data.FormatError):
            data.open(path)


def test_one_array_is_damaged(tmp_path):
    path = saved(tmp_path / "x.npz", x=np.arange(4.0), time=np.arange(4.0))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("y.npy", b"\x93NUMPY\1\0")
    with pytest.raises(data.FormatError, match=r"x\.npz: y: its header is damaged, truncated"):
        data.open(path)
    kept = data.open(path, damaged="keep")
    assert kept.names == ("x",) and [problem.place for problem in kept.problems] == ["y"]


def test_that_it_may_unpack_to(tmp_path):
    path = saved(tmp_path / "x.npz", np.savez_compressed, x=np.zeros((2**20, 2)))
    with pytest.raises(data.FormatError, match="unpacks to 16,777,216 bytes or more"):
        data.open(path, max_unpacked=1 << 20)


def test_other_archives(tmp_path):
    for name, members in (("a.zip", ["x.txt"]), ("b.zip", ["x.npy", "x.txt"]), ("c.zip", [])):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for member in members:
                archive.writestr(member, b"1")
        with pytest.raises(data.FormatError, match="archive|empty"):
            data.open(tmp_path / name)
    rbc.data.Recording.from_streams([]).save(tmp_path / "own.npz")
    with pytest.raises(ValueError, match="was written by save"):
        data.open(tmp_path / "own.npz", time="x")
