"""LeRobot data sets, v2.1 and v3.0: episodes read from them, and refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest

import data_files
import robocache as rbc

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

data = rbc.data
VERSIONS = ["v2.0", "v2.1", "v3.0"]
LENGTHS = (5, 3, 4)


@pytest.fixture(params=VERSIONS)
def written(request, tmp_path):
    folder = tmp_path / "a set ü"
    return folder, data_files.write_lerobot(folder, LENGTHS, request.param), request.param


def test_tracks(written):
    folder, columns, version = written
    episodes = data.open(folder)
    assert not episodes.is_loaded and len(episodes) == 3 and episodes.rate == 10
    assert episodes.lengths("action").tolist() == list(LENGTHS)
    assert episodes.track_info("action").names == ("left", "right")
    assert episodes.tasks == ("task 0", "task 1", "task 0")
    assert episodes.format == f"LeRobot {version}" and episodes.info["robot_type"] == "test"
    assert not episodes.is_loaded
    for name in ("observation.state", "action", "next.done", "task_index"):
        track = episodes[name]
        np.testing.assert_array_equal(track.values, columns[name].reshape(12, -1))
        assert track.values.dtype == columns[name].dtype
        np.testing.assert_array_equal(track.times, columns["timestamp"].astype(np.float64))
        assert track.episode_offsets.tolist() == [0, 5, 8, 12]
    assert episodes.is_loaded
    reasons = {e.place: e.reason for e in episodes.left_out}
    assert reasons["note"] == "texts (string) are not read"
    count = 1 if version == "v3.0" else 3
    told = f"{count} of {count} video files {'is' if count == 1 else 'are'} missing"
    assert reasons["observation.images.top"] == told
    assert len(reasons) == 2  # frame_index and similar columns are not lost: the rows are in order


def test_frames_of_videos_are_referred_to(written):
    folder, _, version = written
    track = data.open(folder)["observation.images.top"]
    assert track.values is None and track.num_rows == 12
    if version == "v3.0":
        path = folder / "videos/observation.images.top/chunk-000/file-000.mp4"
        assert [file for file, _ in track.files] == [str(path)] * 3
        assert [begin for _, begin in track.files] == [0.0, 0.5, 0.8]
    else:
        names = [f"chunk-{e // 2:03d}/observation.images.top/episode_{e:06d}.mp4" for e in range(3)]
        assert list(track.files) == [str(folder / "videos" / name) for name in names]


def test_select_reads_no_more(written):
    folder, columns, version = written
    if version != "v3.0":
        (folder / "data/chunk-000/episode_000001.parquet").write_bytes(b"damaged")
    episodes = data.open(folder).select([2, 0], tracks=["action"])
    assert list(episodes.tracks) == ["action"] and episodes.tasks == ("task 0", "task 0")
    expected = np.concatenate([columns["action"][8:], columns["action"][:5]])
    np.testing.assert_array_equal(episodes["action"].values, expected)
    np.testing.assert_array_equal(episodes.select([1])["action"].values, columns["action"][:5])


def test_it_is_episodes(written):
    import pickle

    episodes = data.open(written[0])
    assert isinstance(episodes, rbc.Episodes)
    copy = pickle.loads(pickle.dumps(episodes))
    assert copy == episodes and copy.rate == 10
    assert isinstance(episodes.to("cpu"), data.Episodes)
    assert "3 episodes" in repr(data.open(written[0])) and "not read yet" in repr(
        data.open(written[0])
    )


def test_lists_without_a_fixed_size(tmp_path):
    columns = data_files.write_lerobot(tmp_path / "x")
    for path in (tmp_path / "x").rglob("episode_*.parquet"):
        table = pq.read_table(path)
        lists = pa.array(table["action"].to_pylist(), pa.list_(pa.float32()))
        pq.write_table(table.set_column(1, "action", lists), path)
    np.testing.assert_array_equal(data.open(tmp_path / "x")["action"].values, columns["action"])


# ---- broken ones --------------------------------------------------------------------------------


def refused(folder, match, place=None):
    with pytest.raises(data.FormatError, match=match) as caught:
        data.open(folder).load()
    if place is not None:
        assert caught.value.place == place
    return caught.value


def change_info(folder, **changed):
    path = folder / "meta/info.json"
    told = json.loads(path.read_text())
    for key, value in changed.items():
        told.pop(key) if value is None else told.update({key: value})
    path.write_text(json.dumps(told))


def change_table(path, change):
    pq.write_table(change(pq.read_table(path)), path)


def file_of(folder, version, episode=0):
    if version == "v3.0":
        return folder / f"data/chunk-000/file-{episode // 2:03d}.parquet"
    return folder / f"data/chunk-{episode // 2:03d}/episode_{episode:06d}.parquet"


def test_a_missing_file(written):
    folder, columns, version = written
    path = file_of(folder, version, 2)
    path.unlink()
    assert refused(folder, "is missing").path == str(path)
    kept = data.open(folder, damaged="keep").load()
    assert kept.lengths("action").tolist() == [5, 3, 0]
    np.testing.assert_array_equal(kept["action"].values, columns["action"][:8])
    assert [p.path for p in kept.problems][0] == str(path)


def test_a_damaged_file(written):
    folder, columns, version = written
    path = file_of(folder, version, 2)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert refused(folder, "is a Parquet file without its footer").path == str(path)
    kept = data.open(folder, damaged="keep").load()
    np.testing.assert_array_equal(kept["action"].values, columns["action"][:8])


def test_a_missing_column(written):
    folder, _, version = written
    path = file_of(folder, version)
    change_table(path, lambda table: table.drop_columns(["action"]))
    assert refused(folder, "is missing; its columns are", "action").path == str(path)


def test_mixed_dtypes_in_one_column(written):
    folder, _, version = written
    path = file_of(folder, version, 2)
    change_table(path, lambda t: t.set_column(0, "observation.state", pa.array(
        t["observation.state"].to_pylist(), pa.list_(pa.float64(), 3))))  # fmt: skip
    refused(folder, "has dtype float64, but float32 in info.json", "observation.state")


def test_another_number_of_channels(written):
    folder, _, version = written
    path = file_of(folder, version, 2)
    change_table(path, lambda t: t.set_column(0, "observation.state", t["action"]))
    refused(folder, r"has 2 numbers per row, but shape \[3\] in info.json", "observation.state")


def test_null(written):
    folder, _, version = written

    def change(table):
        told = table["timestamp"].to_pylist()
        told[1] = None
        return table.set_column(3, "timestamp", pa.array(told, pa.float32()))

    change_table(file_of(folder, version), change)
    refused(folder, "is null", "timestamp, row 1")


def test_rows_that_meta_does_not_count(written):
    folder, columns, version = written
    path = file_of(folder, version)
    change_table(path, lambda table: table.slice(0, table.num_rows - 1))
    rows, length = (2, 3) if version == "v3.0" else (4, 5)
    episode = 1 if version == "v3.0" else 0
    error = refused(folder, f"{rows} rows in this file, {length} in meta/episodes")
    assert (error.path, error.place) == (str(path), f"episode {episode}")
    kept = data.open(folder, damaged="keep").load()
    assert kept["action"].num_rows == 11


def test_rows_of_another_episode(written):
    folder, _, version = written

    def change(table):
        at = table.column_names.index("episode_index")
        told = np.array(table["episode_index"].to_pylist())
        told[-1] = 77
        return table.set_column(at, "episode_index", pa.array(told))

    change_table(file_of(folder, version), change)
    kept = data.open(folder, damaged="keep").load()
    assert any(
        "1 rows belong to episode 77, which meta/ does not place" in problem.text
        for problem in kept.problems
    )
    refused(folder, "in meta")


def test_rows_out_of_order(tmp_path):
    columns = data_files.write_lerobot(tmp_path / "x", LENGTHS, "v3.0")
    path = file_of(tmp_path / "x", "v3.0")
    change_table(path, lambda table: table.take(list(range(5, 8)) + list(range(5))))
    refused(tmp_path / "x", "episode_index goes back; rows are sorted by it", "row 3")
    kept = data.open(tmp_path / "x", damaged="keep")
    np.testing.assert_array_equal(kept["action"].values, columns["action"])


@pytest.mark.parametrize(
    ("changed", "place", "reason"),
    [
        ({"total_episodes": 4}, "total_episodes", "is 4, but there are 3 episodes"),
        ({"total_frames": 99}, "total_frames", "is 99, but the episodes have 12 rows"),
        ({"codebase_version": "v9"}, "codebase_version", "is 'v9', expected one of v2.0"),
        ({"codebase_version": None}, "codebase_version", "is missing"),
        ({"features": None}, "features", "is missing"),
        ({"features": []}, "features", r"is \[\], expected an object"),
        ({"features": {"a": 1}}, "features.a", "has no dtype"),
        ({"features": {"a": {"dtype": "float32", "shape": "x"}}}, "features.a.shape", "extents"),
        ({"features": {"a": {"dtype": "string"}}}, "features", "no numeric feature"),
        ({"fps": "x"}, "fps", "is 'x', expected a number"),
        ({"fps": -1}, "fps", "expected more than 0"),
        ({"data_path": "{nothing}.parquet"}, "data_path", "has the placeholder {nothing}"),
        ({"data_path": "../{episode_index}{chunk_index}"}, None, "leads out of the data set"),
        ({"data_path": "/etc/{episode_index}{chunk_index}"}, None, "leads out of the data set"),
    ],
)
def test_info_that_is_wrong(written, changed, place, reason):
    change_info(written[0], **changed)
    refused(written[0], reason, place)


def test_info_that_is_no_json(written):
    (written[0] / "meta/info.json").write_text("{")
    refused(written[0], "is not JSON, or is truncated")


def test_an_episode_without_rows(tmp_path):
    data_files.write_lerobot(tmp_path / "x", (3, 0, 2))
    refused(tmp_path / "x", "has length 0", "episode 1")
    kept = data.open(tmp_path / "x", damaged="keep")
    assert kept.lengths("action").tolist() == [3, 0, 2] == kept["action"].lengths.tolist()


def test_an_episode_twice(tmp_path):
    data_files.write_lerobot(tmp_path / "x")
    path = tmp_path / "x/meta/episodes.jsonl"
    path.write_text(path.read_text() + path.read_text().splitlines()[1] + "\n")
    refused(tmp_path / "x", "appears twice; the first entry is used", "episode 1")
    path.write_text(path.read_text() + "no json\n")
    refused(tmp_path / "x", "is not an episode", "line 5")
    assert len(data.open(tmp_path / "x", damaged="keep")) == 3


def test_links(written):
    folder, columns, version = written
    path = file_of(folder, version)
    path.rename(folder.parent / "elsewhere.parquet")
    path.symlink_to(folder.parent / "elsewhere.parquet")
    refused(folder, "is a link out of the data set; follow_links=True")
    followed = data.open(folder, follow_links=True)
    np.testing.assert_array_equal(followed["action"].values, columns["action"])


def test_a_folder_that_is_a_link(written):
    folder, _, _ = written
    (folder / "data").rename(folder.parent / "elsewhere")
    (folder / "data").symlink_to(folder.parent / "elsewhere", target_is_directory=True)
    refused(folder, "is a link out of the data set")


# ---- the real ones ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "episodes", "rows"),
    [
        ("lerobot_v21_cr5", 81, 18039),
        ("lerobot_v3_pusht", 206, 25650),
        ("lerobot_v3_so101", 6, 1782),
    ],
)
def test_real_sets(recordings, name, episodes, rows):
    folder = recordings / name
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    opened = data.open(folder).load()
    assert len(opened) == episodes and opened.problems == ()
    files = sorted((folder / "data").rglob("*.parquet"))
    table = pa.concat_tables([pq.read_table(path) for path in files])
    for name, track in opened.tracks.items():
        assert track.num_rows == rows
        if track.values is not None:
            expected = np.array(table[name].to_pylist()).reshape(rows, -1)
            np.testing.assert_array_equal(track.values, expected.astype(track.values.dtype))
    np.testing.assert_array_equal(
        np.repeat(np.arange(episodes), opened.lengths("action")), np.array(table["episode_index"])
    )


def test_pusht_is_the_same_in_zarr(recordings):
    pytest.importorskip("zarr")
    one, other = recordings / "lerobot_v3_pusht", recordings / "zarr_pusht"
    if not (one.is_dir() and other.is_dir()):
        pytest.skip("no PushT")
    lerobot = data.open(one)
    zarr = data.open(other / "pusht_cchi_v7_replay.zarr")
    for name in ("observation.state", "action"):
        track = zarr[name.rpartition(".")[2]]
        np.testing.assert_array_equal(lerobot[name].values, track.values[:, :2])
        np.testing.assert_array_equal(lerobot[name].episode_offsets, track.episode_offsets)
    assert zarr["action"].times is None
    assert data.open(other / "pusht_cchi_v7_replay.zarr", rate=10)["action"].rate == pytest.approx(
        10
    )


@pytest.mark.parametrize("length", [1 << 32, 1 << 62])
def test_a_length_of_no_episode_takes_no_memory(tmp_path, length):
    folder = tmp_path / "x"
    data_files.write_lerobot(folder, version="v3.0")
    whole = data.open(folder)
    (path,) = (folder / "meta/episodes").rglob("*.parquet")
    table = pq.read_table(path)
    lengths = [length, *table["length"].to_pylist()[1:]]
    place = table.column_names.index("length")
    pq.write_table(table.set_column(place, "length", pa.array(lengths)), path)
    refused(folder, "length" if length > 1 << 40 else "total_frames")
    kept = data.open(folder, damaged="keep")
    for name, track in whole.tracks.items():
        if track.values is not None:
            np.testing.assert_array_equal(kept.tracks[name].values, track.values)
