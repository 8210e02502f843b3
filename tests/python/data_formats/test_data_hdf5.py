"""HDF5 files in the layouts of robomimic and ALOHA."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import data_files
import robocache as rbc

h5py = pytest.importorskip("h5py")

data = rbc.data


def test_robomimic(tmp_path):
    """Demonstrations are in the order of their numbers: 0, 2, 10."""
    demos = data_files.write_robomimic(tmp_path / "no suffix")
    episodes = data.open(tmp_path / "no suffix")
    assert not episodes.is_loaded and episodes.lengths("actions").tolist() == [4, 3, 6]
    assert episodes.info["episodes"] == ["data/demo_0", "data/demo_2", "data/demo_10"]
    assert "test" in episodes.info["env_args"]
    for name in ("actions", "obs/eef_quat", "obs/grip"):
        expected = np.concatenate([demos[n][name].reshape(len(demos[n][name]), -1)
                                   for n in (0, 2, 10)])  # fmt: skip
        np.testing.assert_array_equal(episodes[name].values, expected)
        assert episodes[name].values.dtype == expected.dtype
        assert episodes[name].times is None
    reasons = {e.place: e.reason for e in episodes.left_out}
    assert "obs/image" not in reasons and episodes.cameras["obs/image"].shape == (4, 4, 3)
    assert reasons["initial"] == "has shape [1, 3], not one row per step"
    assert "words" in reasons
    assert episodes.problems == ()
    timed = data.open(tmp_path / "no suffix", rate=20).select([1])
    assert timed["actions"].times.tolist() == [0, 1 / 20, 2 / 20]


def test_aloha(tmp_path):
    arrays = [
        data_files.write_aloha(tmp_path / f"episode_{n}.hdf5", length, n)
        for n, length in ((2, 5), (10, 3))
    ]
    episodes = data.open(tmp_path)
    assert episodes.lengths("action").tolist() == [5, 3]
    np.testing.assert_array_equal(
        episodes["observations/qpos"].values,
        np.concatenate([each["observations/qpos"] for each in arrays]),
    )
    assert not episodes.left_out
    assert list(episodes.cameras) == ["observations/images/top"]
    one = data.open(tmp_path / "episode_10.hdf5")
    np.testing.assert_array_equal(one["action"].values, arrays[1]["action"])


@pytest.mark.parametrize("size", [512, 1024, 1 << 20])
def test_a_block_of_the_user_in_front(tmp_path, size):
    """MATLAB writes one of 512 bytes with text in it."""
    path = tmp_path / "x.mat"
    action = np.arange(12.0).reshape(4, 3)
    with h5py.File(path, "w", userblock_size=size) as file:
        file["action"] = action
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file, one,two\n1,2\n")
    np.testing.assert_array_equal(data.open(path)["action"].values, action)


def test_a_signature_elsewhere_is_none(tmp_path):
    for at in (100, 768, 2 << 20):
        path = tmp_path / "x"
        path.write_bytes(b"\1" * at + b"\x89HDF\r\n\x1a\n" + b"\1" * 600)
        with pytest.raises(data.FormatError, match="unknown format"):
            data.open(path)


def test_a_wrong_total_is_named(tmp_path):
    data_files.write_robomimic(tmp_path / "x.hdf5", total=3901)
    episodes = data.open(tmp_path / "x.hdf5")
    assert episodes.problems[0].text == (
        "attribute total is 3901, but the demonstrations have 13 steps"
    )


def refused(path, match):
    with pytest.raises(data.FormatError, match=match) as caught:
        data.open(path).load()
    return caught.value


def change(path, change):
    with h5py.File(path, "a") as file:
        change(file)


@pytest.mark.parametrize(
    ("name", "array", "match"),
    [
        ("data/demo_2/obs/eef_quat", np.zeros((2, 4)), "has 2 rows, actions 3"),
        (
            "data/demo_2/obs/eef_quat",
            np.zeros((3, 5)),
            r"has rows of shape \[5\], but other ",
        ),
        ("data/demo_2/obs/eef_quat", None, "is missing"),
        (
            "data/demo_2/actions",
            np.zeros((5, 2), np.float32),
            "is 3, but actions has 5",
        ),
        (
            "data/demo_2/actions",
            np.zeros((0, 2), np.float32),
            "is 3, but actions has 0",
        ),
    ],
)
def test_demonstrations_that_disagree(tmp_path, name, array, match):
    path = tmp_path / "x.hdf5"
    demos = data_files.write_robomimic(path)

    def put(file):
        del file[name]
        if array is not None:
            file[name] = array

    change(path, put)
    error = refused(path, match)
    assert error.path == str(path) and error.place.startswith("data/demo_2")
    kept = data.open(path, damaged="keep").load()
    assert kept.problems
    np.testing.assert_array_equal(kept.select([0])["actions"].values, demos[0]["actions"])


def test_no_episodes(tmp_path):
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file["something"] = np.zeros(3)
    refused(tmp_path / "x.hdf5", "nor an array action or qpos .ALOHA.. Its arrays: 'something'")
    with h5py.File(tmp_path / "y.hdf5", "w") as file:
        file.create_group("data")
    refused(tmp_path / "y.hdf5", "no episodes found")


def test_a_file_that_is_cut_off(tmp_path):
    path = tmp_path / "x.hdf5"
    data_files.write_robomimic(path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert "is damaged or truncated" in str(refused(path, "truncated file"))


def test_a_damaged_file_in_a_folder(tmp_path):
    arrays = data_files.write_aloha(tmp_path / "episode_0.hdf5")
    data_files.write_aloha(tmp_path / "episode_1.hdf5")
    content = (tmp_path / "episode_1.hdf5").read_bytes()
    (tmp_path / "episode_1.hdf5").write_bytes(content[:4000])
    refused(tmp_path, "truncated")
    kept = data.open(tmp_path, damaged="keep")
    np.testing.assert_array_equal(kept["action"].values, arrays["action"])


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda path: path.write_bytes(b""), "got a file of 0 bytes"),
        (lambda path: path.mkdir(), "got a folder"),
        (lambda path: path.write_bytes(b"error 404"), "got a file that begins with b'error 40'"),
    ],
)
@pytest.mark.parametrize("suffix", ["hdf5", "h5"])
def test_a_file_in_a_folder_that_is_no_hdf5(tmp_path, make, match, suffix):
    """The file was an episode, so it is not skipped silently."""
    for n in (0, 2):
        data_files.write_aloha(tmp_path / f"episode_{n}.{suffix}")
    (tmp_path / f"._episode_0.{suffix}").write_bytes(b"what macOS writes beside files")
    assert len(data.open(tmp_path)) == 2
    make(tmp_path / f"episode_1.{suffix}")
    error = refused(tmp_path, match)
    assert error.path.endswith(f"episode_1.{suffix}")
    assert str(error).count("damaged='keep'") == 1
    kept = data.open(tmp_path, damaged="keep")
    assert len(kept) == 2 and match in kept.problems[0].text


def test_a_damaged_episode_in_a_folder_names_the_remedy_once(tmp_path):
    for n in (0, 1):
        data_files.write_aloha(tmp_path / f"episode_{n}.hdf5")
    with h5py.File(tmp_path / "episode_1.hdf5", "w") as file:
        file["words"] = b"nothing else"
    assert str(refused(tmp_path, "no episodes found: neither")).count("damaged='keep'") == 1


@pytest.mark.parametrize("dtype", ["i8", "u8", ">i8"])
def test_times_that_are_integers_stay_so(tmp_path, dtype):
    """float64 has steps of 256 ns there."""
    begin, path = 1_700_000_000_123_456_789, tmp_path / "x.hdf5"
    given = begin + 100_000_001 * np.arange(10)
    with h5py.File(path, "w") as file:
        file["data/demo_0/actions"] = np.zeros((10, 2))
        file["data/demo_0/timestamp"] = given.astype(dtype)
    times = data.open(path, unit="ns")["actions"].times
    assert times.dtype == np.int64
    np.testing.assert_array_equal(times, given)
    assert data.open(path, unit="ns").unit == "ns" and data.open(path).unit is None
    assert data.open(path, unit="ns").align(10)["actions"].num_rows == 10


def test_times_beyond_int64(tmp_path):
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file["data/demo_0/actions"] = np.zeros((2, 2))
        file["data/demo_0/timestamp"] = np.array([0, 1 << 63], np.uint64)
    refused(tmp_path / "x.hdf5", "timestamp, row 1: is 9223372036854775808, expected a time of at")


def test_open_for_writing_elsewhere(tmp_path):
    path = tmp_path / "x.hdf5"
    data_files.write_robomimic(path)
    writer = subprocess.Popen(
        [sys.executable, "-c",
         f"import h5py, sys; f = h5py.File({str(path)!r}, 'a'); print('open', flush=True);"
         "sys.stdin.read()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert writer.stdout.readline() == "open\n"
        refused(path, "another program has the file open for writing: close it there")
    finally:
        writer.communicate()
    assert len(data.open(path).load()) == 3


def test_links_are_not_followed(tmp_path):
    path, other = tmp_path / "x.hdf5", tmp_path / "other.hdf5"
    data_files.write_robomimic(path)
    data_files.write_robomimic(other)

    def link(file):
        file["data/demo_0/obs/outside"] = h5py.ExternalLink(str(other), "data/demo_0/actions")
        file["data/demo_99"] = h5py.ExternalLink(str(other), "data/demo_0")
        layout = h5py.VirtualLayout((4, 2), np.float32)
        layout[:] = h5py.VirtualSource(str(other), "data/demo_0/actions", (4, 2))
        file["data/demo_0/obs"].create_virtual_dataset("virtual", layout)

    change(path, link)
    episodes = data.open(path)
    assert len(episodes) == 3
    assert not {"obs/outside", "obs/virtual"} & set(episodes.tracks)
    reasons = {e.place: e.reason for e in episodes.left_out}
    assert "not followed" in reasons["obs/outside"] and "not followed" in reasons["obs/virtual"]


def in_two_files(tmp_path, change_it):
    """Write a file of demonstrations, and another file as a target of links."""
    path, other = tmp_path / "x.hdf5", tmp_path / "other.hdf5"
    data_files.write_robomimic(path)
    data_files.write_robomimic(other)
    change(path, lambda file: change_it(file, str(other)))
    return path


def reasons_of(path):
    return {each.place: each.reason for each in data.open(path).left_out}


def test_links_out_of_the_file_by_a_detour(tmp_path):
    """Soft links pass through a link to another file, or a demonstration is such a link."""

    def link(file, other):
        file["door"] = h5py.ExternalLink(other, "/")
        file["room"] = h5py.SoftLink("/door/data")
        file["data/demo_0/obs/by_path"] = h5py.SoftLink("/door/data/demo_0/actions")
        file["data/demo_0/obs/by_two"] = h5py.SoftLink("/room/demo_0/actions")
        file["data/demo_0/obs/group"] = h5py.SoftLink("/door/data/demo_0/obs")
        file["data/demo_0/obs"].create_dataset(
            "raw", (4, 2), np.float32, external=[(other, 0, h5py.h5f.UNLIMITED)]
        )
        file["data/demo_98"] = h5py.SoftLink("/room/demo_0")
        file["data/demo_99"] = h5py.ExternalLink(other, "data/demo_0")

    path = in_two_files(tmp_path, link)
    assert len(data.open(path)) == 3
    reasons = reasons_of(path)
    for name in ("obs/by_path", "obs/by_two", "obs/group", "data/demo_98", "data/demo_99"):
        assert reasons[name] == "a link to another file, which is not followed"
    assert reasons["obs/raw"] == "may be stored in another file, which is not followed"


@pytest.mark.parametrize("soft", [False, True])
def test_all_demonstrations_in_another_file(tmp_path, soft):
    def link(file, other):
        del file["data"]
        file["door"] = h5py.ExternalLink(other, "/")
        file["data"] = h5py.SoftLink("/door/data") if soft else h5py.ExternalLink(other, "/data")

    path = in_two_files(tmp_path, link)
    refused(path, "data: a link to another file, which is not followed")
    with pytest.raises(data.FormatError, match="no episodes found: data: a link to an"):
        data.open(path, damaged="keep")


def test_links_within_the_file(tmp_path):
    def link(file, other):
        for number in (0, 2, 10):
            demo = file[f"data/demo_{number}"]
            demo["alias"] = h5py.SoftLink("actions")
            demo["again"] = h5py.SoftLink(f"/data/./demo_{number}/alias")
            demo["back"] = demo  # in itself
            demo["obs/up"] = demo
            demo["nothing"] = h5py.SoftLink("/data/no/such")
            demo["round"] = h5py.SoftLink("round")

    path = in_two_files(tmp_path, link)
    episodes = data.open(path).load()
    for name in ("alias", "again"):
        np.testing.assert_array_equal(episodes[name].values, episodes["actions"].values)
    reasons = reasons_of(path)
    assert reasons["back"] == reasons["obs/up"] == "a link to a group that contains it"
    assert reasons["nothing"] == "a link to nothing"
    assert reasons["round"] == "a link through more than 16 links"


def test_groups_that_link_to_each_other(tmp_path):
    """Each level doubles the paths: 40 levels would take forever."""

    def link(file, other):
        below = file.create_group("level")
        for level in range(40):
            group = file.create_group(f"level{level}")
            group["a"], group["b"] = below, below
            below = group
        file["data/demo_0/deep"] = below

    refused(in_two_files(tmp_path, link), "data/demo_0: has more than 10000 names below it")


def test_an_array_whose_header_is_damaged(tmp_path):
    """It is not reported as missing."""
    path = tmp_path / "x.hdf5"
    data_files.write_robomimic(path)
    with h5py.File(path) as file:
        at = h5py.h5o.get_info(file["data/demo_2/obs/grip"].id).addr
    content = bytearray(path.read_bytes())
    content[at : at + 16] = b"\xee" * 16
    path.write_bytes(content)
    error = refused(path, "cannot be opened")
    assert error.place == "data/demo_2/obs/grip"
    assert "obs/grip" not in data.open(path, damaged="keep").tracks


def test_real_demonstrations(recordings):
    path = recordings / "hdf5_isaaclab_franka_stack/dataset.hdf5"
    if not path.exists():
        pytest.skip(f"no {path}")
    episodes = data.open(path).load()
    numbers = [0, 1, 2, 6, 8, 9, 12, 13, 14, 16]
    assert episodes.info["episodes"] == [f"data/demo_{n}" for n in numbers]
    assert episodes.lengths("actions").sum() == 2163
    assert "total is 3901" in episodes.problems[0].text
    with h5py.File(path) as file:
        for name, track in episodes.tracks.items():
            parts = [file[f"data/demo_{n}/{name}"][...] for n in numbers]
            np.testing.assert_array_equal(track.values, np.concatenate(parts))


# ---- oddities that are not damage ---------------------------------------------------------------


def write_demos(path, arrays):
    """Write the layout of robomimic, with the arrays of each episode by name."""
    with h5py.File(path, "w") as file:
        for e, own in enumerate(arrays):
            for name, values in own.items():
                file[f"data/demo_{e}/{name}"] = values


def noted(path, kind):
    """Return the notes of one kind, and the data set."""
    given = data.open(path)
    found = data.checks.check(given)
    assert {each.severity for each in found if each.kind == kind} <= {"note"}
    assert not any(each.kind == "damage" for each in found) and given.problems == ()
    return [each for each in found if each.kind == kind], given


@pytest.mark.parametrize(
    ("one", "other", "whole"),
    [
        ("f4", "f8", "float64"),
        ("f8", "f4", "float64"),
        ("f2", "f4", "float32"),
        ("f4", "i8", "float64"),
        ("i2", "f4", "float64"),
        ("i4", "i8", "int64"),
        ("u1", "i1", "int16"),
        ("?", "f4", "float64"),
        (">f8", "f4", "float64"),
    ],
)
def test_several_dtypes_of_one_array(tmp_path, one, other, whole):
    values = np.arange(10).reshape(5, 2) % 2 if "?" in (one, other) else np.arange(10).reshape(5, 2)
    rows = [{"actions": values.astype(kind)} for kind in (one, other, one)]
    write_demos(tmp_path / "x.hdf5", rows)
    found, given = noted(tmp_path / "x.hdf5", "dtypes")
    names = [np.dtype(kind).newbyteorder("=") for kind in (one, other)]
    assert [each.text for each in found] == [
        f"{names[0]} in 2 and {names[1]} in 1 of 3 episodes: read as {whole}"
    ]
    assert given["actions"].values.dtype == whole
    np.testing.assert_array_equal(given["actions"].values, np.concatenate([values] * 3))


def test_byte_order_is_no_dtype(tmp_path):
    write_demos(
        tmp_path / "x.hdf5", [{"actions": np.ones((3, 2), kind)} for kind in (">f4", "<f4")]
    )
    assert noted(tmp_path / "x.hdf5", "dtypes")[0] == []


def test_integers_that_float64_rounds(tmp_path):
    path = tmp_path / "x.hdf5"
    write_demos(path, [{"actions": np.ones((3, 1))}, {"actions": np.full((3, 1), 2**53 + 1)}])
    refused(path, r"has integers above 2\*\*53, which float64 rounds")
    kept = data.open(path, damaged="keep").load()
    assert [each.place for each in kept.problems] == ["data/demo_1/actions"]


def test_the_observation_after_the_last_action(tmp_path):
    joints = np.arange(12.0).reshape(6, 2)
    own = {"actions": np.ones((5, 3)), "obs/joints": joints}
    write_demos(tmp_path / "x.hdf5", [own, own])
    found, given = noted(tmp_path / "x.hdf5", "rows")
    text = "one row more than actions in each episode: the observation after the last action"
    assert [(each.stream, each.text) for each in found] == [
        ("obs/joints", f"{text}. It is not read")
    ]
    np.testing.assert_array_equal(given["obs/joints"].values, np.concatenate([joints[:5]] * 2))
    assert [each.place for each in given.left_out] == ["obs/joints"]


def test_one_row_more_in_one_episode_only(tmp_path):
    own = {"actions": np.ones((5, 3)), "obs/joints": np.ones((6, 2))}
    write_demos(tmp_path / "x.hdf5", [own, {**own, "obs/joints": np.ones((5, 2))}])
    refused(tmp_path / "x.hdf5", "one row more, but not in all episodes")
