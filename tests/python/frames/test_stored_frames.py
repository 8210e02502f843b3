"""Frames in the cache: what is stored, when it is made again, and who makes it."""

import dataclasses
import os
import pickle
import shutil
import signal
import time
import warnings

import numpy as np
import pytest

import frame_sources
import robocache as rbc
from robocache.data._frames import filling, reader, window_images
from spawned import forkserver

LENGTHS = [5, 7, 3, 10, 4]


def episodes_of(source, cache=None):
    offsets = np.concatenate([[0], np.cumsum(source.lengths)])
    state = np.arange(offsets[-1], dtype=np.float32)[:, None]
    episodes = rbc.Episodes({"state": rbc.Track(state, offsets)})
    return episodes.with_cameras({source.name: source}, cache=cache)


def spec_of(**options):
    images = rbc.Images("front", **options)
    return rbc.WindowSpec({"state": [0], "front": rbc.Window([-1, 0], images=images)})


def reader_of(source, cache, spec=None, **options):
    """The reader that windows get; it fills the cache."""
    spec = spec_of(size=(12, 16)) if spec is None else spec
    (window,) = window_images.window_images(episodes_of(source, cache), spec, show=False, **options)
    return window.reader


def stored(source, size=(12, 16)):
    """Return the frames that an entry of resized frames holds, by Pillow's rule."""
    frames = [
        source.frame(e, row) for e, n in enumerate(source.lengths.tolist()) for row in range(n)
    ]
    return rbc.images(np.stack(frames), size, dtype="uint8", layout="hwc")


def held(frames, lengths=LENGTHS):
    """All frames that a reader has."""
    episodes = np.repeat(np.arange(len(lengths)), lengths)
    rows = np.concatenate([np.arange(n) for n in lengths])
    out = np.zeros((len(rows), *frames.shape), np.uint8)
    frames.read(episodes, rows, out)
    return out


def cache_in(tmp_path, **options):
    return rbc.Cache(tmp_path / "cache", **options)


# ---- what is stored -----------------------------------------------------------------------------


@pytest.mark.parametrize("access", ["map", "read"])
@pytest.mark.parametrize("verify", ["open", "first", "none"])
def test_each_frame_is_read_once_and_stored(tmp_path, access, verify):
    source = frame_sources.made(tmp_path / "data", LENGTHS)
    cache = cache_in(tmp_path, access=access, verify=verify)
    frames = reader_of(source, cache)
    expected = [(e, row) for e, n in enumerate(LENGTHS) for row in range(n)]
    assert sorted(frame_sources.reads(source)) == expected
    assert isinstance(frames, reader.StoredFrames) and len(frames.entries) == 3
    np.testing.assert_array_equal(held(frames), stored(source))
    frame_sources.forget(source)
    again = reader_of(source, cache_in(tmp_path, access=access, verify=verify))
    np.testing.assert_array_equal(held(again), stored(source))
    assert frame_sources.reads(source) == []


def test_a_new_episode_decodes_only_its_own_frames(tmp_path):
    source = frame_sources.made(tmp_path / "data", LENGTHS[:4])
    cache = cache_in(tmp_path)
    reader_of(source, cache)
    frame_sources.forget(source)
    more = frame_sources.made(tmp_path / "new", LENGTHS)
    for name in os.listdir(source.path):  # the old files, with their times
        shutil.copy2(os.path.join(source.path, name), more.path)
    shutil.rmtree(source.path)
    os.rename(more.path, source.path)
    more.path = source.path
    frames = reader_of(more, cache)
    assert frame_sources.reads(more) == [(4, row) for row in range(LENGTHS[4])]
    np.testing.assert_array_equal(held(frames), stored(more))


def test_an_episode_that_joins_the_last_file_decodes_that_file(tmp_path):
    source = frame_sources.made(tmp_path / "data", LENGTHS, per_file=3)
    cache = cache_in(tmp_path)
    reader_of(source, cache)
    frame_sources.forget(source)
    longer = frame_sources.DrawnFrames(source.path, [*LENGTHS, 6], per_file=3)
    frame_sources.write(longer, 5, 99)
    frames = reader_of(longer, cache)
    assert {episode for episode, _ in frame_sources.reads(longer)} == {3, 4, 5}
    np.testing.assert_array_equal(held(frames, [*LENGTHS, 6]), stored(longer))


@pytest.mark.parametrize(
    "change",
    ["normalization", "flip", "colors", "offsets", "evaluation", "size", "rule", "crop", "content"],
)
def test_what_makes_another_entry(tmp_path, change):
    source = frame_sources.made(tmp_path / "data", LENGTHS)
    cache = cache_in(tmp_path)
    base = {"size": (12, 16)}
    reader_of(source, cache, spec_of(**base))
    frame_sources.forget(source)
    spec, needs = spec_of(**base), None
    if change == "normalization":
        spec = spec_of(**base, normalize="imagenet")
    elif change == "flip":
        spec = spec_of(**base, flip=0.5)
    elif change == "colors":
        spec = spec_of(**base, augment=rbc.ColorJitter(0.2))
    elif change == "offsets":
        images = rbc.Images("front", **base)
        spec = rbc.WindowSpec({"state": [0], "x": rbc.Window([-3, 2], images=images)})
    elif change == "evaluation":
        spec = spec.eval()
    elif change == "size":
        spec, needs = spec_of(size=(12, 17)), "images.size"
    elif change == "rule":
        spec, needs = spec_of(**base, rule="opencv", filter="area"), "images.filter"
    elif change == "crop":
        spec, needs = spec_of(**base, crop=0.9), "no entry was made"
    else:
        frame_sources.write(source, 2, 77)
        needs = "part-1.bin has a different"
    reader_of(source, cache, spec)
    read = {episode for episode, _ in frame_sources.reads(source)}
    if needs is None:
        assert read == set()
        assert cache.last_miss is None
    else:
        assert read == ({2, 3} if change == "content" else set(range(5)))
        np.testing.assert_array_equal(held(reader_of(source, cache)), stored(source))


def test_a_miss_says_why(tmp_path):
    source = frame_sources.made(tmp_path / "data", LENGTHS)
    cache = cache_in(tmp_path)
    reader_of(source, cache, spec_of(size=(12, 16)))
    episodes = episodes_of(source, cache)
    (other,) = window_images.fillings(episodes, spec_of(size=(12, 17)))
    assert other.missing == [0, 1, 2]
    assert "images.size[1] is 17, but 16 in the entry of" in cache.last_miss
    frame_sources.write(source, 0, 5, age_s=50)
    (other,) = window_images.fillings(episodes, spec_of(size=(12, 16)))
    assert other.missing == [0]


def test_a_copy_of_the_data_hits_by_content(tmp_path):
    source = frame_sources.made(tmp_path / "data", LENGTHS)
    cache = cache_in(tmp_path)
    steps = rbc.Images("front", (12, 16)).steps(source.shape)
    first = filling.Filling(source, steps, cache, "content", range(5))
    assert first.fill(show=False)
    shutil.copytree(source.path, tmp_path / "copy")
    copy = frame_sources.DrawnFrames(tmp_path / "copy", LENGTHS)
    assert filling.Filling(copy, steps, cache, "content", range(5)).missing == []
    assert filling.Filling(copy, steps, cache, "stat", range(5)).missing == [0, 1, 2]


# ---- segments -----------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [1, 4000, 6000, 1 << 30])
def test_segments_end_between_episodes(tmp_path, monkeypatch, limit):
    monkeypatch.setattr(filling, "SEGMENT_BYTES", limit)
    monkeypatch.setattr(filling, "_AT_ONCE", 5000)
    source = frame_sources.made(tmp_path / "data", [*LENGTHS, 0, 1], per_file=4)
    cache = cache_in(tmp_path)
    frames = reader_of(source, cache)
    np.testing.assert_array_equal(held(frames, [*LENGTHS, 0, 1]), stored(source))
    frame_bytes = 12 * 16 * 3
    for entry, lengths in zip(frames.entries, ([5, 7, 3, 10], [4, 0, 1])):
        sizes = [len(entry.array("frames", s)) for s in range(entry.num_segments)]
        assert sum(sizes) == sum(lengths)
        ends = set(np.cumsum(lengths).tolist())
        assert set(np.cumsum(sizes).tolist()) <= ends
        assert all(size * frame_bytes <= limit or size in lengths for size in sizes)


def test_batches_of_more_segments_than_a_call_takes(tmp_path, monkeypatch):
    monkeypatch.setattr(filling, "SEGMENT_BYTES", 1)
    lengths = [2] * 150
    source = frame_sources.made(tmp_path / "data", lengths, per_file=50)
    spec = spec_of(size=(12, 16), flip=0.5, augment=rbc.ColorJitter(0.3))
    loaders = [
        rbc.torch.WindowLoader(episodes_of(source, cache), spec, 290, seed=2, progress=False)
        for cache in (None, cache_in(tmp_path))
    ]
    decoded, mapped = (next(iter(loader)) for loader in loaders)
    assert (decoded["front"] == mapped["front"]).all()
    assert (decoded["state"] == mapped["state"]).all()


def test_announced_sizes_are_right(tmp_path):
    source = frame_sources.made(tmp_path / "data", [60, 90, 50], shape=(64, 96, 3), per_file=2)
    for spec in (spec_of(), spec_of(size=(48, 48), fit="cover")):
        cache = rbc.Cache(tmp_path / f"cache{spec.windows['front'].images.size}")
        (each,) = window_images.fillings(episodes_of(source, cache), spec)
        assert each.missing_frames == 200
        announced = each.missing_bytes
        assert each.fill(show=False) and each.missing_bytes == 0
        written = sum(item.num_bytes for item in cache.items())
        assert abs(announced - written) <= 0.01 * written


def test_a_selection_stores_the_files_that_it_touches(tmp_path):
    source = frame_sources.made(tmp_path / "data", LENGTHS)
    episodes = episodes_of(source, cache_in(tmp_path)).select([3, 2, 3])
    (window,) = window_images.window_images(episodes, spec_of(size=(12, 16)), show=False)
    assert {episode for episode, _ in frame_sources.reads(source)} == {2, 3}
    frames = window.frames(np.array([0, 1, 2]), np.array([9, 0, 0]))
    assert frames.episodes.tolist() == [2, 3, 3, 3]
    assert frames.places.tolist() == [0, 0, 8, 9]
    assert frames.rows.tolist() == [2, 3, 0, 0, 1, 1]


# ---- what is not stored -------------------------------------------------------------------------


def test_files_that_were_written_just_now_are_not_stored(tmp_path):
    source = frame_sources.made(tmp_path / "data", LENGTHS)
    frame_sources.write(source, 0, 1, age_s=0)
    with pytest.warns(RuntimeWarning, match=r"front.*written less than 2 seconds before"):
        frames = reader_of(source, cache_in(tmp_path))
    assert isinstance(frames, reader.DecodedFrames)
    assert frame_sources.reads(source) == []


def test_a_file_that_changes_while_it_is_read_is_not_stored(tmp_path):
    source = frame_sources.made(tmp_path / "data", LENGTHS)

    class Changing(frame_sources.DrawnFrames):
        def read(self, episode, rows, out):
            super().read(episode, rows, out)
            if episode == 3:
                frame_sources.write(self, 3, 123, age_s=50)

    changing = Changing(source.path, LENGTHS)
    with pytest.warns(RuntimeWarning, match=r"part-1\.bin changed while it was read"):
        frames = reader_of(changing, cache_in(tmp_path))
    assert isinstance(frames, reader.DecodedFrames)
    assert isinstance(reader_of(source, cache_in(tmp_path)), reader.StoredFrames)


def test_a_build_that_does_not_fit_does_not_begin(tmp_path, monkeypatch):
    source = frame_sources.made(tmp_path / "data", LENGTHS)
    monkeypatch.delenv("ROBOCACHE_MIN_FREE_BYTES", raising=False)
    full = type("Usage", (), {"total": 1000, "free": 900})()
    monkeypatch.setattr(shutil, "disk_usage", lambda path: full)
    text = r"'front': .* are needed, 900 bytes are free, and 50 bytes must stay free"
    with pytest.warns(RuntimeWarning, match=text):
        frames = reader_of(source, cache_in(tmp_path))
    assert isinstance(frames, reader.DecodedFrames)
    with pytest.raises(OSError, match="are free"):
        reader_of(source, cache_in(tmp_path, require=True))
    assert frame_sources.reads(source) == []
    assert cache_in(tmp_path).items() == []


def test_an_entry_larger_than_the_cache_is_refused(tmp_path):
    source = frame_sources.made(tmp_path / "data", LENGTHS)
    with pytest.raises(ValueError, match=r"max_bytes: is 10 KB, but the frames of 'front' have"):
        reader_of(source, cache_in(tmp_path, max_bytes="10kB"))
    assert frame_sources.reads(source) == []


def test_store_none_and_a_cache_that_is_off(tmp_path, monkeypatch):
    source = frame_sources.made(tmp_path / "data", LENGTHS)
    cache = cache_in(tmp_path)
    frames = reader_of(source, cache, spec_of(size=(12, 16), store="none"))
    assert isinstance(frames, reader.DecodedFrames)
    assert isinstance(reader_of(source, cache, fill=False), reader.DecodedFrames)
    monkeypatch.setenv("ROBOCACHE_CACHE", "off")
    assert isinstance(reader_of(source, cache_in(tmp_path)), reader.DecodedFrames)


def test_a_cache_that_cannot_be_written_warns_once(tmp_path):
    source = frame_sources.made(tmp_path / "data", LENGTHS)
    (tmp_path / "file").write_bytes(b"")
    cache = rbc.Cache(tmp_path / "file" / "below")
    with pytest.warns(RuntimeWarning, match="The run goes on without it") as caught:
        frames = reader_of(source, cache)
        reader_of(source, cache)
    assert len(caught) == 1
    assert isinstance(frames, reader.DecodedFrames)
    np.testing.assert_array_equal(
        rbc.images(held(frames), (12, 16), dtype="uint8", layout="hwc"), stored(source)
    )


# ---- interruptions and other processes ----------------------------------------------------------


class Failing(frame_sources.DrawnFrames):
    """Raises at a frame."""

    error: BaseException = KeyboardInterrupt()
    at = (3, 9)

    def read(self, episode, rows, out):
        super().read(episode, rows, out)
        if (episode, self.at[1]) == self.at and self.at[1] in rows:
            raise self.error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), rbc.data.FormatError("a.mp4", "x", "y")])
def test_what_was_stored_before_an_error_stays(tmp_path, monkeypatch, error):
    monkeypatch.setattr(filling, "SEGMENT_BYTES", 1)
    source = frame_sources.made(tmp_path / "data", LENGTHS)
    failing = Failing(source.path, LENGTHS)
    failing.error = error
    with pytest.raises(type(error)):
        reader_of(failing, cache_in(tmp_path))
    frame_sources.forget(source)
    np.testing.assert_array_equal(held(reader_of(source, cache_in(tmp_path))), stored(source))
    assert {episode for episode, _ in frame_sources.reads(source)} == {3, 4}
    pruned = cache_in(tmp_path).prune(incomplete=True)
    assert (pruned.num_incomplete, pruned.num_kept) == (0, 3)


def fill(path, cache_path, delay, limit):
    filling.SEGMENT_BYTES = limit
    source = Slow(path, LENGTHS, per_file=5)
    source.delay = delay
    reader_of(source, rbc.Cache(cache_path))


class Slow(frame_sources.DrawnFrames):
    delay = 0.0

    def read(self, episode, rows, out):
        time.sleep(self.delay)
        super().read(episode, rows, out)


def test_processes_divide_the_segments(tmp_path):
    source = frame_sources.made(tmp_path / "data", LENGTHS, per_file=5)
    context = forkserver()
    arguments = (source.path, str(tmp_path / "cache"), 0.05, 1)
    processes = [context.Process(target=fill, args=arguments) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert len(frame_sources.reads(source)) == sum(LENGTHS)  # each frame once
    frames = reader_of(source, cache_in(tmp_path))
    np.testing.assert_array_equal(held(frames), stored(source))


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_process_loses_only_its_segment(tmp_path):
    source = frame_sources.made(tmp_path / "data", LENGTHS, per_file=5)
    context = forkserver()
    process = context.Process(target=fill, args=(source.path, str(tmp_path / "cache"), 0.2, 1))
    process.start()
    deadline = time.monotonic() + 60
    while (3, 0) not in frame_sources.reads(source) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    done = {episode for episode, _ in frame_sources.reads(source)}
    frame_sources.forget(source)
    monkeypatched = filling.SEGMENT_BYTES
    filling.SEGMENT_BYTES = 1
    try:
        frames = reader_of(source, cache_in(tmp_path))
    finally:
        filling.SEGMENT_BYTES = monkeypatched
    again = {episode for episode, _ in frame_sources.reads(source)}
    assert len(done & again) <= 2  # the one that was written, and the one that was decoded ahead
    np.testing.assert_array_equal(held(frames), stored(source))


def test_a_damaged_segment_is_made_again(tmp_path):
    source = frame_sources.made(tmp_path / "data", LENGTHS)
    cache = cache_in(tmp_path)
    reader_of(source, cache)
    frame_sources.forget(source)
    segments = [
        os.path.join(folder, "000000.rbs")
        for folder, _, names in os.walk(tmp_path / "cache" / "v1" / "e")
        if "000000.rbs" in names
    ]
    segment = min(segments, key=os.path.getsize)
    os.chmod(segment, 0o644)
    with open(segment, "r+b") as file:
        file.truncate(1000)
    with pytest.warns(RuntimeWarning, match="It is made again"):
        frames = reader_of(source, cache_in(tmp_path))
    assert {episode for episode, _ in frame_sources.reads(source)} == {4}
    np.testing.assert_array_equal(held(frames), stored(source))


def test_readers_can_be_pickled_without_pixels(tmp_path):
    source = frame_sources.made(tmp_path / "data", LENGTHS)
    frames = reader_of(source, None)
    assert isinstance(frames, reader.DecodedFrames)
    held(frames)
    content = pickle.dumps(frames)
    assert len(content) < 2000
    np.testing.assert_array_equal(held(pickle.loads(content)), held(frames))


def test_an_error_of_a_thread_names_the_frame_and_leaves_no_thread_running(tmp_path):
    source = frame_sources.made(tmp_path / "data", LENGTHS)
    failing = Failing(source.path, LENGTHS)
    failing.error = rbc.data.FormatError("part-1.bin", "episode 3, row 9", "is damaged")
    frames = reader.DecodedFrames(failing, threads=3)
    out = np.zeros((4, *source.shape), np.uint8)
    episodes, rows = np.array([0, 1, 3, 4]), np.array([0, 0, 9, 0])
    for _ in range(3):
        with pytest.raises(rbc.data.FormatError, match=r"part-1.bin.*episode 3, row 9"):
            frames.read(episodes, rows, out)
    frames.read(episodes[:2], rows[:2], out[:2])
    np.testing.assert_array_equal(out[1], source.frame(1, 0))


def test_no_warning_in_the_usual_case(tmp_path):
    source = frame_sources.made(tmp_path / "data", LENGTHS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reader_of(source, cache_in(tmp_path))
        reader_of(source, cache_in(tmp_path))


# ---- joined data sets ---------------------------------------------------------------------------


def test_joined_data_sets_share_the_entries_of_each(tmp_path):
    one = frame_sources.made(tmp_path / "one", LENGTHS)
    two = frame_sources.made(tmp_path / "two", [6, 4], per_file=1)
    frame_sources.write(two, 0, 50)
    cache = cache_in(tmp_path)
    first = episodes_of(one, cache)
    reader_of(one, cache)
    frame_sources.forget(one)
    both = first.select([4, 1]) + episodes_of(two, cache).select([1, 0])
    spec = spec_of(size=(12, 16), flip=0.5)
    decoded = rbc.torch.WindowLoader(both, spec, 40, seed=1, fill=False, shuffle=False)
    expected = next(iter(decoded))["front"].clone()
    frame_sources.forget(one)
    frame_sources.forget(two)
    loader = rbc.torch.WindowLoader(both, spec, 40, seed=1, shuffle=False, progress=False)
    assert (next(iter(loader))["front"] == expected).all()
    assert frame_sources.reads(one) == []
    assert len(frame_sources.reads(two)) == 10
    assert isinstance(loader._batches._images._windows[0].reader, reader.StoredFrames)
    found = spec.eval().cut(both, [0, 3], [0, 5])["front"][0]
    frames = np.stack([one.frame(4, 0), one.frame(4, 0), two.frame(0, 4), two.frame(0, 5)])
    np.testing.assert_array_equal(
        found.reshape(-1, 3, 12, 16),
        rbc.images(frames, (12, 16), table=rbc.normalization_table()),
    )


def test_joined_cameras_have_one_shape(tmp_path):
    one = frame_sources.made(tmp_path / "one", LENGTHS)
    two = frame_sources.made(tmp_path / "two", [6], shape=(25, 32, 3))
    with pytest.raises(ValueError, match=r"'front' has frames of \[24, 32, 3\] in .*one, and"):
        window_images.window_images(episodes_of(one) + episodes_of(two), spec_of(size=(12, 16)))


def test_rows_without_a_frame_are_stored_black_and_are_not_valid(tmp_path):
    class Partly(frame_sources.DrawnFrames):
        def missing(self, episode):
            return np.arange(self.lengths[episode]) % 3 == 0

        def read(self, episode, rows, out):
            assert (rows % 3 != 0).all()
            super().read(episode, rows, out)

    frame_sources.made(tmp_path / "data", LENGTHS)
    source = Partly(tmp_path / "data", LENGTHS)
    spec = spec_of(size=(12, 16), pad_value=9)
    batches = [
        next(iter(rbc.torch.WindowLoader(each, spec, 29, shuffle=False, progress=False)))
        for each in (episodes_of(source), episodes_of(source, cache_in(tmp_path)))
    ]
    assert (batches[0]["front"] == batches[1]["front"]).all()
    valid = batches[0].valid["front"]
    assert (valid == batches[1].valid["front"]).all()
    anchors = batches[0].anchors
    assert (valid[:, 1] == (anchors % 3 != 0)).all()
    assert (valid[:, 0] == ((anchors > 0) & ((anchors - 1) % 3 != 0))).all()
    black = batches[0]["front"][anchors % 3 == 0][:, 1]
    assert (black == np.float32(9) / np.float32(255)).all()


def test_storing_reads_a_copy_of_the_camera_and_closes_it(tmp_path, monkeypatch):
    source = frame_sources.made(tmp_path / "data", LENGTHS)
    used = {"read": set(), "closed": set()}
    read = frame_sources.DrawnFrames.read
    monkeypatch.setattr(
        frame_sources.DrawnFrames,
        "read",
        lambda self, *arguments: used["read"].add(id(self)) or read(self, *arguments),
    )
    monkeypatch.setattr(
        frame_sources.DrawnFrames, "close", lambda self: used["closed"].add(id(self))
    )
    frames = reader_of(source, cache_in(tmp_path))
    assert used["read"] == used["closed"] and len(used["read"]) == 1
    assert id(source) not in used["read"]
    np.testing.assert_array_equal(held(frames), stored(source))


def test_errors_of_the_camera_are_not_errors_of_the_cache(tmp_path):
    class Unreadable(frame_sources.DrawnFrames):
        def read(self, episode, rows, out):
            if episode == 3:
                raise PermissionError(13, "Permission denied", self.path)
            super().read(episode, rows, out)

    frame_sources.made(tmp_path / "data", LENGTHS)
    cache = cache_in(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PermissionError, match="data"):
            reader_of(Unreadable(tmp_path / "data", LENGTHS), cache)
    source = frame_sources.DrawnFrames(tmp_path / "data", LENGTHS)
    np.testing.assert_array_equal(held(reader_of(source, cache)), stored(source))


def test_a_cache_that_is_removed_while_it_is_filled(tmp_path):
    class Removing(frame_sources.DrawnFrames):
        def read(self, episode, rows, out):
            super().read(episode, rows, out)
            if episode == 2:
                shutil.rmtree(tmp_path / "cache")

    frame_sources.made(tmp_path / "data", LENGTHS)
    source = Removing(tmp_path / "data", LENGTHS)
    with pytest.warns(RuntimeWarning, match="cannot write .*The run goes on without it"):
        frames = reader_of(source, cache_in(tmp_path))
    assert isinstance(frames, reader.DecodedFrames)


def test_a_revision_of_one_data_set_is_not_that_of_another(tmp_path):
    """Joined data sets with other identities: a change in any of them is seen."""
    cache = cache_in(tmp_path)
    sources = [
        frame_sources.made(tmp_path / name, lengths) for name, lengths in zip("ab", ([4, 3], [5]))
    ]

    def joined():
        sets = [episodes_of(source, cache) for source in sources]
        sets[0]._about = dataclasses.replace(sets[0]._about, identity="revision:1")
        both = rbc.data.concat(sets)
        spec = spec_of(size=(12, 16))
        return window_images.window_images(both, spec, show=False)[0].reader

    joined()
    frame_sources.write(sources[1], 0, 99)
    expected = np.concatenate([stored(source) for source in sources])
    np.testing.assert_array_equal(held(joined(), [4, 3, 5]), expected)


@pytest.mark.parametrize("files", [(), [], "/data/front.mp4"])
def test_a_camera_without_files_is_not_stored(tmp_path, files):
    """Its entry would be found after any change; a string is not a list of paths."""

    class Loose(frame_sources.DrawnFrames):
        def files(self, episode):
            return files

    frame_sources.made(tmp_path / "data", LENGTHS)
    source = Loose(tmp_path / "data", LENGTHS)
    with pytest.raises(
        ValueError, match=r"'front': files\(0\) is .*expected a tuple of one or mor"
    ):
        reader_of(source, cache_in(tmp_path))


@pytest.mark.parametrize("lengths", [[4, 6], np.array([4.0, 6.0])])
def test_lengths_of_a_camera_are_integers(tmp_path, lengths):
    class Loose(frame_sources.DrawnFrames):
        @property
        def lengths(self):
            return lengths

    state = rbc.Track(np.zeros((10, 1), np.float32), [0, 4, 10])
    with pytest.raises(TypeError, match=r"cameras\['front'\]: lengths is an? .* of integers \[E\]"):
        rbc.Episodes({"state": state}).with_cameras({"front": Loose(tmp_path, [4, 6])})
