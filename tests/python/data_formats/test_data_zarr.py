"""Zarr replay buffers: diffusion_policy's, UMI's (zipped) and DP3's."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest

import data_files
import robocache as rbc

zarr = pytest.importorskip("zarr")

data = rbc.data


def test_replay_buffer(tmp_path):
    folder = tmp_path / "a buffer ü"
    arrays = data_files.write_replay_buffer(folder)
    episodes = data.open(folder)
    assert not episodes.is_loaded and episodes.lengths("state").tolist() == [4, 5, 2]
    np.testing.assert_array_equal(episodes["state"].values, arrays["state"])
    assert not episodes.is_loaded  # one by one
    np.testing.assert_array_equal(episodes["keypoint"].values, arrays["keypoint"].reshape(11, 6))
    assert episodes["keypoint"].names[:3] == ("[0][0]", "[0][1]", "[1][0]")
    assert episodes["state"].episode_offsets.tolist() == [0, 4, 9, 11]
    assert not episodes.left_out and list(episodes.cameras) == ["img"]
    chosen = data.open(folder, rate=5).select([2, 0])
    expected = np.concatenate([arrays["state"][9:], arrays["state"][:4]])
    np.testing.assert_array_equal(chosen["state"].values, expected)
    assert chosen["state"].times.tolist() == [0, 0.2, 0, 0.2, 0.4, 3 / 5]


def frames_of(name, path, shape=(11, 6, 8, 3), **more):
    frames = np.random.default_rng(5).integers(0, 256, shape, dtype=np.uint8)
    arrays = {"state": np.arange(shape[0] * 2.0).reshape(-1, 2), name: frames, **more}
    data_files.write_replay_buffer(path, **arrays)
    return frames


def test_convert_reads_the_pictures(tmp_path):
    pytest.importorskip("av")
    frames = frames_of("front", tmp_path / "buffer", depth=np.zeros((11, 4, 4, 1), np.uint8))
    opened = data.open(tmp_path / "buffer")
    assert not opened.left_out and sorted(opened.cameras) == ["depth", "front"]
    made = data.convert(tmp_path / "buffer", tmp_path / "out.zarr", fps=10)
    assert "only windows read" in {e.place: e.reason for e in made.left_out}["depth"]
    assert made.cameras == {"front": (6, 8, 3)} and len(made) == 3
    again = zarr.open_group(str(tmp_path / "out.zarr"), mode="r")
    np.testing.assert_array_equal(np.asarray(again["data/front"]), frames)
    small = {"size": (3, 4), "rule": "opencv", "filter": "area"}
    data.convert(tmp_path / "buffer", tmp_path / "small.zarr", fps=10, image_size=small)
    expected = rbc.images(frames, dtype="uint8", layout="hwc", **small)
    again = zarr.open_group(str(tmp_path / "small.zarr"), mode="r")
    np.testing.assert_array_equal(np.asarray(again["data/front"]), expected)
    chosen = data.open(tmp_path / "buffer", rate=10).select([2, 0])
    data.convert(chosen, tmp_path / "chosen.zarr")
    again = zarr.open_group(str(tmp_path / "chosen.zarr"), mode="r")
    np.testing.assert_array_equal(np.asarray(again["data/front"])[:2], frames[9:])
    np.testing.assert_array_equal(np.asarray(again["data/front"])[2:], frames[:4])


def test_a_damaged_chunk_of_pictures_is_an_error(tmp_path):
    pytest.importorskip("av")
    frames_of("front", tmp_path / "buffer")
    for chunk in (tmp_path / "buffer/data/front").rglob("*"):
        if chunk.is_file() and not chunk.name.startswith(("zarr", ".")):
            chunk.write_bytes(chunk.read_bytes()[:9])
    with pytest.raises(data.FormatError, match="buffer: data/front, episode 0, row 0: "):
        data.convert(tmp_path / "buffer", tmp_path / "out.zarr", fps=10)
    assert not (tmp_path / "out.zarr").exists()


def test_a_zipped_store(tmp_path):
    """A store as UMI writes it. A member named ../x is not an array and is not extracted."""
    folder = tmp_path / "buffer"
    arrays = data_files.write_replay_buffer(folder)
    path = tmp_path / "x.zarr.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                archive.write(file, file.relative_to(folder))
        archive.writestr("../outside", b"x")
    episodes = data.open(path)
    np.testing.assert_array_equal(episodes["state"].values, arrays["state"])
    assert not (tmp_path.parent / "outside").exists() and not (tmp_path / "outside").exists()


def test_times(tmp_path):
    times = np.linspace(0, 1, 11)
    data_files.write_replay_buffer(tmp_path / "x", state=np.zeros((11, 2)), timestamp=times)
    episodes = data.open(tmp_path / "x")
    assert list(episodes.tracks) == ["state"]
    np.testing.assert_array_equal(episodes["state"].times, times)


def refused(path, match, place=None):
    with pytest.raises(data.FormatError, match=match) as caught:
        data.open(path).load()
    assert place is None or caught.value.place == place


def test_broken_chunks(tmp_path):
    folder = tmp_path / "x"
    arrays = data_files.write_replay_buffer(folder)
    chunks = [f for f in (folder / "data/state").rglob("*") if f.is_file() and "zarr" not in f.name]
    broken = sorted(chunks)[1]
    broken.write_bytes(b"nothing")
    refused(folder, "a chunk cannot be read", "data/state")
    kept = data.open(folder, damaged="keep")
    values = kept["state"].values
    assert np.isnan(values[3:6]).all()
    np.testing.assert_array_equal(np.delete(values, range(3, 6), 0),
                                  np.delete(arrays["state"], range(3, 6), 0))  # fmt: skip
    np.testing.assert_array_equal(kept["keypoint"].values, arrays["keypoint"].reshape(11, 6))
    broken.unlink()
    told = data.open(folder).load()
    assert (told["state"].values[3:6] == 0).all()
    assert "1 of 4 chunks is missing, and read as 0" in told.problems[0].text


@pytest.mark.parametrize(
    ("ends", "rows", "match"),
    [
        ((4, 2), 4, "expected a one-dimensional list of row numbers"),
        ((4, 20), 11, "has 11 rows, but the episodes have 20"),
        ((4, 4, 11), 11, "has length 0"),
        ((-4, 11), 11, "expected a one-dimensional list of row numbers"),
        (np.array([4, 1 << 63], np.uint64), 11, "has 11 rows, but the episodes have 46116860"),
    ],
)
def test_ends_that_are_wrong(tmp_path, ends, rows, match):
    data_files.write_replay_buffer(tmp_path / "x", ends, state=np.zeros((rows, 2)))
    refused(tmp_path / "x", match)


@pytest.mark.parametrize("ends", [(4.6, 11.0), (4.0, 11.0), (True, True)])
def test_ends_that_are_no_integers(tmp_path, ends):
    arrays = {"state": np.zeros((11, 2))}
    data_files.write_replay_buffer(tmp_path / "x", ends, **arrays)
    refused(tmp_path / "x", "has dtype (float64|bool), expected integers", "meta/episode_ends")


def test_rows_behind_the_last_end(tmp_path):
    """An unfinished episode leaves such rows."""
    state = np.arange(20.0).reshape(10, 2)
    data_files.write_replay_buffer(tmp_path / "x", (2, 5), state=state, action=state[:5])
    episodes = data.open(tmp_path / "x")
    np.testing.assert_array_equal(episodes["state"].values, state[:5])
    (problem,) = episodes.problems
    assert problem.place == "data/state"
    text = "10 rows, but the last episode ends at row 5: 5 rows belong to no episode"
    assert problem.text == text


def test_a_buffer_without_episodes(tmp_path):
    empty = np.zeros((0, 2))
    data_files.write_replay_buffer(tmp_path / "x", np.zeros(0, np.int64), state=empty)
    episodes = data.open(tmp_path / "x").load()
    assert len(episodes) == 0 and episodes["state"].values.shape == (0, 2)


def test_no_replay_buffer(tmp_path):
    group = zarr.open_group(str(tmp_path / "x"), mode="w")
    group.create_group("data")
    refused(tmp_path / "x", "this Zarr store is not a replay buffer", "meta/episode_ends")


def test_a_damaged_head(tmp_path):
    data_files.write_replay_buffer(tmp_path / "x")
    for name in ("zarr.json", ".zgroup"):
        if (tmp_path / "x" / name).exists():
            (tmp_path / "x" / name).write_text("{")
    refused(tmp_path / "x", "is not a Zarr group, or is damaged")


def test_links_out_of_a_store(tmp_path):
    folder = tmp_path / "x"
    arrays = data_files.write_replay_buffer(folder)
    (folder / "data/state").rename(tmp_path / "elsewhere")
    (folder / "data/state").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    refused(folder, "is a link out of the store", "data/state")
    followed = data.open(folder, follow_links=True)
    np.testing.assert_array_equal(followed["state"].values, arrays["state"])


def test_the_real_buffer(recordings):
    path = recordings / "zarr_pusht/pusht_cchi_v7_replay.zarr"
    if not path.exists():
        pytest.skip(f"no {path}")
    episodes = data.open(path).load()
    assert len(episodes) == 206 and episodes.problems == ()
    group = zarr.open_group(str(path), mode="r")
    for name, track in episodes.tracks.items():
        np.testing.assert_array_equal(track.values, group["data"][name][:].reshape(25650, -1))
