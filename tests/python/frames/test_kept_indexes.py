"""Indexes of videos that a cache keeps: they are equal, and none is used for another file."""

import os
import pickle
import shutil

import numpy as np
import pytest

import numbered_videos as videos
import robocache as rbc
from robocache.data._frames import kept_indexes, video_index
from robocache.data._frames.held import HeldFrames
from robocache.data._frames.joined import JoinedFrames
from robocache.data._frames.video import VideoFrames

pytest.importorskip("av")

ROWS = 20


@pytest.fixture
def path(tmp_path):
    (tmp_path / "set").mkdir()
    made = videos.write(tmp_path / "set" / "a.mp4", range(ROWS), options={"bf": "2", "g": "4"})
    return aged(made)


@pytest.fixture(autouse=True)
def read_files(monkeypatch):
    """The files whose packets were read. In tests, files that were just written are kept."""
    monkeypatch.setattr(kept_indexes, "RACY_NS", 0)
    files = []
    own = video_index.VideoIndex.read
    monkeypatch.setattr(video_index.VideoIndex, "read", lambda p: files.append(p) or own(p))
    return files


def aged(path, seconds=100):
    os.utime(path, ns=(10**18 - seconds * 10**9,) * 2)
    return str(path)


def frames_of(path, folders, rows=ROWS):
    made = VideoFrames("front", os.path.dirname(path), [(path, 0.0)], np.array([rows]), 30)
    made.use_cache([str(folder) for folder in folders])
    return made


def numbers(frames, rows=range(ROWS)):
    rows = np.array(rows)
    out = np.empty((len(rows), *frames.shape), np.uint8)
    frames.read(0, rows, out)
    return [videos.number_of(each) for each in out]


def kept(folder):
    (name,) = os.listdir(folder / kept_indexes.INDEXES)
    return folder / kept_indexes.INDEXES / name


def test_a_file_is_read_once(path, tmp_path, read_files):
    store = tmp_path / "store"
    frames = frames_of(path, [store])
    assert numbers(frames) == list(range(ROWS))
    again = frames_of(path, [store])
    assert numbers(again) == list(range(ROWS)) and read_files == [path]
    first, second = frames.indexes.index(path), again.indexes.index(path)
    assert first is not second
    for name in first.__dataclass_fields__:
        one, other = getattr(first, name), getattr(second, name)
        assert type(one) is type(other)
        if isinstance(one, np.ndarray):
            assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    assert numbers(pickle.loads(pickle.dumps(again)), [7]) == [7]
    assert numbers(again.copy(), [8]) == [8] and read_files == [path]
    assert kept(store).stat().st_mode & 0o777 == 0o600
    assert store.stat().st_mode & 0o777 == kept(store).parent.stat().st_mode & 0o777 == 0o700


def test_without_a_cache_nothing_is_kept(path, tmp_path, read_files):
    for _ in range(2):
        assert numbers(frames_of(path, [])) == list(range(ROWS))
    assert len(read_files) == 2 and sorted(os.listdir(tmp_path)) == ["set"]


@pytest.mark.parametrize("change", ["bytes", "time", "replaced"])
def test_a_file_that_changed_is_read_again(path, tmp_path, read_files, change):
    store = tmp_path / "store"
    assert numbers(frames_of(path, [store])) == list(range(ROWS))
    if change == "time":
        aged(path, 50)
        expected = list(range(ROWS))
    else:
        other = videos.write(tmp_path / "b.mp4", range(5, 5 + ROWS), options={"g": "5"})
        if change == "bytes":
            shutil.copyfile(other, path)
        else:
            os.replace(other, path)
        aged(path)
        expected = list(range(5, 5 + ROWS))
    assert numbers(frames_of(path, [store])) == expected and len(read_files) == 2
    assert numbers(frames_of(path, [store])) == expected and len(read_files) == 2


def test_a_damaged_index_is_made_again(path, tmp_path, read_files):
    store = tmp_path / "store"
    numbers(frames_of(path, [store]))
    file = kept(store)
    good = file.read_bytes()
    random = np.random.default_rng(1)
    for number in range(60):
        damaged = bytearray(good)
        if number % 3 == 0:
            damaged = damaged[: random.integers(len(damaged))]
        else:
            damaged[random.integers(len(damaged))] ^= 1 << random.integers(8)
        file.write_bytes(damaged)
        assert kept_indexes.load([str(store)], path) is None
    assert numbers(frames_of(path, [store])) == list(range(ROWS)) and len(read_files) == 2
    assert file.read_bytes() == good


def test_another_version_reads_again(path, tmp_path, read_files, monkeypatch):
    store = tmp_path / "store"
    numbers(frames_of(path, [store]))
    own = kept_indexes._made_by()
    monkeypatch.setattr(kept_indexes, "_made_by", lambda: [*own, "other"])
    numbers(frames_of(path, [store]))
    assert len(read_files) == 2


def test_a_file_that_was_just_written_is_not_kept(path, tmp_path, monkeypatch):
    monkeypatch.setattr(kept_indexes, "RACY_NS", 2 * 10**9)
    store = tmp_path / "store"
    os.utime(path)
    assert numbers(frames_of(path, [store])) == list(range(ROWS))
    assert not store.exists()


def test_a_file_that_changes_while_it_is_read_is_not_kept(path, tmp_path, monkeypatch):
    own = video_index.VideoIndex.read
    monkeypatch.setattr(video_index.VideoIndex, "read", lambda p: aged(p, 7) and own(p))
    numbers(frames_of(path, [tmp_path / "store"]))
    assert not (tmp_path / "store").exists()


def test_layers_are_searched_and_the_last_is_written(path, tmp_path, read_files):
    shared, own = tmp_path / "shared", tmp_path / "own"
    numbers(frames_of(path, [shared, own]))
    assert not shared.exists() and kept(own).exists()
    os.rename(own, shared)
    numbers(frames_of(path, [shared, own]))
    assert read_files == [path] and not own.exists()


def test_a_folder_that_cannot_be_written_is_no_error(path, tmp_path):
    (tmp_path / "store").write_bytes(b"")
    assert numbers(frames_of(path, [tmp_path / "store"])) == list(range(ROWS))


def test_links_are_not_followed(path, tmp_path, read_files):
    store = tmp_path / "store"
    numbers(frames_of(path, [store]))
    file = kept(store)
    shutil.move(file, tmp_path / "elsewhere")
    os.symlink(tmp_path / "elsewhere", file)
    assert kept_indexes.load([str(store)], path) is None


def test_joined_and_held_cameras_keep_indexes(path, tmp_path, read_files):
    store = str(tmp_path / "store")
    joined = JoinedFrames([frames_of(path, [])], [np.array([0])])
    held = HeldFrames(joined, lambda episode: np.arange(ROWS), np.array([ROWS]))
    held.use_cache([store])
    assert held.shape == frames_of(path, [store]).shape and read_files == [path]


def test_a_loader_reads_packets_once(path, tmp_path, read_files, monkeypatch):
    spec = rbc.WindowSpec({"state": [0], "front": rbc.Window([0], images=rbc.Images("front"))})

    def batch(cache):
        tracks = {"state": rbc.Track(np.zeros((ROWS, 1), "f4"), [0, ROWS])}
        cameras = {"front": frames_of(path, [])}
        episodes = rbc.Episodes(tracks).with_cameras(cameras, cache=cache)
        loader = rbc.torch.WindowLoader(episodes, spec, ROWS, shuffle=False, fill=False)
        return next(iter(loader))["front"]

    pytest.importorskip("torch")
    cache = rbc.Cache(tmp_path / "store")
    first, second = batch(cache), batch(rbc.Cache(tmp_path / "store"))
    assert (first == second).all() and read_files == [path]
    assert cache.items() == []
    monkeypatch.setenv("ROBOCACHE_CACHE", "off")
    batch(rbc.Cache(tmp_path / "other"))
    assert len(read_files) == 2 and not (tmp_path / "other").exists()


def test_prune_removes_indexes_that_were_written_long_ago(path, tmp_path):
    store = tmp_path / "store"
    numbers(frames_of(path, [store]))
    cache = rbc.Cache(store)
    cache.prune()
    file = kept(store)
    os.utime(file, (10**9, 10**9))
    cache.prune(dry_run=True)
    assert file.exists()
    cache.prune()
    assert not file.exists()
