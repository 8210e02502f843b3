"""Changes that make another entry, changes that do not, and the reason that a miss gives."""

import os
import re
import shutil
import types

import numpy as np
import pytest

import robocache as rbc
from cached import age, facts
from robocache import data
from robocache._cache import arithmetic


@pytest.fixture
def cache(tmp_path):
    return rbc.Cache(tmp_path / "store", require=True)


@pytest.fixture
def path(tmp_path):
    return lerobot(tmp_path / "set")


def lerobot(path):
    values = np.arange(60.0).reshape(30, 2)
    times = np.concatenate([np.arange(10) / 10, np.arange(20) / 10])
    tracks = {name: rbc.Track(values, [0, 10, 30], times=times) for name in ("action", "state")}
    rbc.Episodes(tracks, tasks=["pick", "place"]).save(path, "lerobot")
    return age(path)


def hits(path, cache, **options):
    """Whether data come from an entry that was there before."""
    data.open(path, cache=cache, **options)
    return cache.last_miss is None


def parquet(path):
    return next(path.glob("data/**/*.parquet"))


def test_the_second_open_hits(path, cache):
    assert not hits(path, cache)
    assert cache.last_miss == "no entry was made of files of these names"
    assert hits(path, cache) and hits(str(path), cache) and hits(f"{path}/", cache)
    assert hits(path, cache, progress=False)  # changes nothing
    assert hits(path, cache, kinds={"state": {"0": "number"}})  # applied to what is stored


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"damaged": "keep"}, 'open.damaged is "keep", but "refuse" in the entry of'),
        ({"rate": 5}, "open.rate is 5, but null in the entry of"),
        ({"unit": "ms"}, 'open.unit is "ms", but null in'),
        ({"follow_links": True}, "open.follow_links is true, but false in"),
        ({"max_unpacked": 1 << 40}, "open.max_unpacked is 1099511627776, but null in"),
        ({"definitions": {"a/b": "int8 x"}}, 'open.definitions.a/b is "int8 x", but null in'),
        ({"identity": "content"}, "an identity of another kind (content, not stat) than in"),
        ({"identity": "revision:v1"}, "an identity of another kind (revision, not stat) than in"),
    ],
)
def test_another_option_misses(path, cache, options, text):
    assert not hits(path, cache)
    assert not hits(path, cache, **options)
    assert text in cache.last_miss
    assert re.search(r"in the entry of \d+ (second|minute)s? ago", cache.last_miss)
    assert hits(path, cache) and hits(path, cache, **options)


def test_a_file_with_another_mtime_misses(path, cache):
    assert not hits(path, cache)
    file = parquet(path)
    os.utime(file, ns=(0, 1_600_000_000 * 10**9))
    assert not hits(path, cache)
    name = file.relative_to(path)
    assert cache.last_miss.startswith(f"{name} has a different mtime than in the entry of ")


def npz(path, scale=1.0):
    """An uncompressed file, whose size does not depend on its values."""
    path.parent.mkdir(exist_ok=True)
    np.savez(path, action=scale * np.arange(22.0).reshape(11, 2), episode_ends=np.array([5, 11]))
    return age(path)


def test_a_file_with_other_content_misses(cache, tmp_path):
    path = npz(tmp_path / "set.npz")
    assert not hits(path, cache)
    size = path.stat().st_size
    npz(path, 2.0)
    assert path.stat().st_size == size
    assert not hits(path, cache)
    assert cache.last_miss.startswith("set.npz has different content than in the entry of ")
    for _ in range(2):
        assert facts(data.open(path, cache=cache)) == facts(data.open(path))


def test_a_new_and_a_removed_file_miss(path, cache):
    assert not hits(path, cache)
    (path / "data" / "more.txt").write_text("x")
    os.utime(path / "data" / "more.txt", (1.6e9, 1.6e9))
    assert not hits(path, cache)
    assert cache.last_miss.startswith("data/more.txt is not in the entry of ")
    (path / "meta" / "stats.json").unlink()
    assert not hits(path, cache)
    assert "meta/stats.json is only in the entry of " in cache.last_miss


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (arithmetic.Reader(2), "reader[1] is 2, but 1 in"),
        (arithmetic.Reader(1, ("pyarrow",)), "arithmetic.pyarrow is "),
    ],
)
def test_another_arithmetic_of_the_reader_misses(path, cache, monkeypatch, value, text):
    assert not hits(path, cache)
    monkeypatch.setitem(arithmetic.READERS, "lerobot.lerobot", value)
    assert not hits(path, cache)
    assert text in cache.last_miss


def test_other_data_with_the_same_names(cache, tmp_path):
    """Equal relative paths, sizes and mtimes, but other values."""
    path, other = npz(tmp_path / "set.npz"), npz(tmp_path / "elsewhere" / "set.npz", 2.0)
    of = [(each.stat().st_size, each.stat().st_mtime_ns) for each in (path, other)]
    assert of[0] == of[1]
    assert not hits(path, cache) and not hits(other, cache)
    for each in (path, other):
        assert facts(data.open(each, cache=cache)) == facts(data.open(each))
        assert cache.last_miss is None


def test_a_moved_data_set_hits(path, cache, tmp_path):
    assert not hits(path, cache)
    moved = tmp_path / "somewhere else"
    path.rename(moved)
    assert hits(moved, cache)
    assert facts(data.open(moved, cache=cache)) == facts(data.open(moved))


def test_a_copy_hits_by_content_and_by_revision(path, cache, tmp_path):
    copy = tmp_path / "copy"
    for identity in ("content", "revision:abc"):
        assert not hits(path, cache, identity=identity)
        shutil.copytree(path, copy)
        age(copy, 100)
        assert hits(copy, cache, identity=identity)
        shutil.rmtree(copy)


def test_videos_count_by_name_only(path, cache):
    (path / "videos").mkdir()
    (path / "videos" / "a.mp4").write_bytes(b"1")
    assert not hits(path, cache)
    (path / "videos" / "a.mp4").write_bytes(b"22")
    assert hits(path, cache)
    (path / "videos" / "b.mp4").write_bytes(b"")
    assert not hits(path, cache)


# ---- alignments ---------------------------------------------------------------------------------

ALIGN = {"rate": 5.0}


def aligned(episodes, cache, **options):
    made = episodes.align(**{**ALIGN, **options}, cache=cache)
    return made, cache.last_miss is None


def test_the_second_alignment_hits(path, cache):
    episodes = data.open(path, cache=cache)
    first, hit = aligned(episodes, cache)
    assert not hit
    assert cache.last_miss == "no entry was made of files of these names in these steps (align)"
    second, hit = aligned(data.open(path, cache=cache), cache)
    assert hit and facts(first) == facts(second) == facts(data.open(path).align(5.0))
    assert aligned(episodes, cache, rate=5)[1]
    assert aligned(episodes, cache, backend="cpu")[1]  # the results are equal on each device
    assert aligned(episodes, cache, causal=False)[1]  # the default


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"rate": 4}, 'align.rate is "0x1.0000000000000p+2", but "0x1.4000000000000p+2" in'),
        ({"max_gap": 3.0}, 'align.max_gap is "0x1.8000000000000p+1", but null in'),
        ({"span": "union"}, 'align.span is "union", but "intersection" in'),
        ({"methods": {"action": "nearest"}}, 'align.methods.action is "nearest", but null in'),
        ({"as_numbers": True}, "align.as_numbers is true, but false in"),
        ({"accept_guesses": True}, "align.accept_guesses is true, but false in"),
        ({"causal": True}, "align.causal is true, but false in"),
        ({"clock_offset": 0.5}, "align.clock_offset is "),
        ({"labels": ["action"]}, 'align.labels is ["action"], but [] in'),
        ({"unit": "s"}, 'align.unit is "s", but null in'),
    ],
)
def test_another_option_of_align_misses(path, cache, options, text):
    episodes = data.open(path, cache=cache)
    aligned(episodes, cache)
    made, hit = aligned(episodes, cache, **options)
    assert not hit and text in cache.last_miss
    again, hit = aligned(data.open(path, cache=cache), cache, **options)
    plain = data.open(path).align(**{**ALIGN, **options})
    assert hit and facts(made) == facts(again) == facts(plain)


@pytest.mark.parametrize("name", ["align", "resample", "clock", "live_kept"])
def test_another_arithmetic_of_a_step_misses(path, cache, monkeypatch, name):
    episodes = data.open(path, cache=cache)
    aligned(episodes, cache)
    table = arithmetic.STEPS if name in arithmetic.STEPS else arithmetic.OPERATIONS
    monkeypatch.setitem(table, name, 2)
    assert hits(path, cache)
    assert not aligned(episodes, cache)[1]
    assert cache.last_miss.startswith(f"arithmetic.{name} is 2, but 1 in the entry of ")


@pytest.mark.parametrize(
    "change",
    [
        lambda e: e.select([1]),
        lambda e: e.select([1, 0]),
        lambda e: e.select(slice(0, 1)),
        lambda e: e.select(tracks=["state"]),
        lambda e: e.with_kinds({"state": {"0": "angle_deg"}}),
        lambda e: e.select([1]).with_kinds({"state": {"0": "angle_deg"}}).select(tracks=["state"]),
        lambda e: e.align(2.5),
    ],
)
def test_steps_before_are_in_the_key(path, cache, change):
    whole = data.open(path, cache=cache)
    aligned(whole, cache)
    before = change(whole)
    if before._provenance is None:  # aligned without the cache
        with pytest.raises(ValueError, match="not known what this episodes was made of"):
            aligned(before, cache)
        before = whole.align(2.5, cache=cache)
    made, hit = aligned(before, cache)
    assert not hit
    again, hit = aligned(change(data.open(path, cache=cache)) if hit else before, cache)
    assert hit and facts(made) == facts(again) == facts(change(data.open(path)).align(5.0))


def test_functions_need_a_name_and_a_version(path, cache):
    episodes = data.open(path, cache=cache)
    with pytest.raises(TypeError, match="methods.action: is a function.*name, a string, and vers"):
        aligned(episodes, cache, methods={"action": lambda x: x})


def test_what_was_not_opened_with_a_cache_is_refused(path, cache):
    with pytest.raises(ValueError, match=r"Open it with robocache.data.open\(path, cache=cache\)"):
        data.open(path).align(5.0, cache=cache)
    both = data.open(path, cache=cache) + data.open(path, cache=cache)
    with pytest.raises(ValueError, match="it is not known what"):
        both.align(5.0, cache=cache)
    with pytest.raises(TypeError, match="cache: is 'x', expected a robocache.Cache"):
        data.open(path, cache="x")


# ---- what is not stored -------------------------------------------------------------------------


def test_files_that_were_written_just_now_are_used_and_not_stored(path, cache):
    os.utime(parquet(path))
    for _ in range(2):
        episodes = data.open(path, cache=cache)
        assert facts(episodes) == facts(data.open(path))
        assert cache.last_miss.startswith("it was not stored: data/")
        assert "was written less than 2 seconds before it was read" in cache.last_miss
        made = episodes.align(5.0, cache=cache)
        assert facts(made) == facts(data.open(path).align(5.0))
    assert cache.items() == []


def test_files_that_change_while_they_are_read_are_not_stored(path, cache, monkeypatch):
    from robocache.data._formats.lerobot import lerobot as reader

    known = reader.open

    def changing(*arguments):
        made = known(*arguments)
        (path / "meta" / "more").write_text("x")
        return made

    monkeypatch.setattr(reader, "open", changing)
    data.open(path, cache=cache)
    assert cache.last_miss == "it was not stored: meta/more changed while it was read"
    assert not any(item.complete for item in cache.items())


def test_data_that_an_entry_cannot_hold_are_used(path, tmp_path, monkeypatch):
    from robocache.data._formats.lerobot import lerobot as reader

    known = reader.open

    def odd(*arguments):
        made = known(*arguments)
        made._about.info["odd"] = types.SimpleNamespace()
        return made

    monkeypatch.setattr(reader, "open", odd)
    with pytest.warns(RuntimeWarning, match=r"cache: info.odd is a SimpleNamespace, which the ca"):
        made = data.open(path, cache=rbc.Cache(tmp_path / "store"))
    assert made == data.open(path)
    with pytest.raises(ValueError, match=r"info.odd is a SimpleNamespace"):
        data.open(path, cache=rbc.Cache(tmp_path / "store", require=True))
