"""The cache itself: its folder, its options, other processes, and what goes wrong with it."""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

import robocache as rbc
from cached import age, facts
from child_processes import environment
from robocache import data
from robocache._cache.cache import default_path
from robocache._cache.explain import folder_of


@pytest.fixture
def path(tmp_path):
    values = np.arange(80_000.0).reshape(40_000, 2)
    times = np.concatenate([np.arange(10_000) / 10, np.arange(30_000) / 10])
    track = rbc.Track(values, [0, 10_000, 40_000], times=times)
    rbc.Episodes({"state": track}, tasks=["pick", "place"]).save(tmp_path / "set", "lerobot")
    return age(tmp_path / "set")


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


@contextlib.contextmanager
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def is_stored(episodes):
    return type(episodes._tracks).__name__ == "StoredTracks"


# ---- where, and whether -------------------------------------------------------------------------


def test_the_default_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("ROBOCACHE_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert rbc.Cache().path == str(tmp_path / ".cache" / "robocache")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert rbc.Cache().path == default_path() == str(tmp_path / "xdg" / "robocache")
    monkeypatch.setenv("ROBOCACHE_CACHE", str(tmp_path / "own"))
    assert rbc.Cache().path == str(tmp_path / "own")
    assert rbc.Cache(tmp_path / "given").path == str(tmp_path / "given")
    assert rbc.Cache("~/x").path == str(tmp_path / "x")


@pytest.mark.parametrize("word", ["off", "OFF"])
def test_off_wins(path, store, monkeypatch, word):
    data.open(path, cache=rbc.Cache(store))
    monkeypatch.setenv("ROBOCACHE_CACHE", word)
    cache = rbc.Cache(store)
    assert not cache.enabled and repr(cache).endswith(", off")
    episodes = data.open(path, cache=cache)
    assert not is_stored(episodes) and not is_stored(episodes.align(5, cache=cache))
    assert cache.items() == [] and cache.prune().num_removed == 0


def test_creating_a_cache_touches_no_disk(store):
    rbc.Cache(store)
    assert not store.exists()


def test_the_folder_is_private_and_tagged(path, store):
    data.open(path, cache=rbc.Cache(store))
    assert store.stat().st_mode & 0o777 == 0o700
    assert (store / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f068868")


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"path": ""}, ValueError, "path: is '', expected a folder"),
        ({"path": 3}, TypeError, "path: is 3, expected a folder, or a list of folders"),
        ({"path": []}, TypeError, "path: is"),
        (
            {"max_bytes": "5 apples"},
            ValueError,
            "max_bytes: is '5 apples', expected a size such as",
        ),
        ({"max_bytes": -1}, ValueError, "max_bytes: is -1, expected a number of bytes"),
        ({"max_bytes": True}, TypeError, "max_bytes: is True"),
        ({"min_free_bytes": "some"}, ValueError, "min_free_bytes: is 'some', expected a size"),
        ({"min_free_bytes": -1}, ValueError, "min_free_bytes: is -1, expected a number of bytes"),
        ({"max_age": "3 moons"}, ValueError, "max_age: is '3 moons', expected an age such as 30d"),
        ({"max_age": float("nan")}, TypeError, "max_age: is nan"),
        (
            {"verify": "all"},
            ValueError,
            "verify: is 'all', expected one of 'open', 'first', 'none'",
        ),
        ({"access": "x"}, ValueError, "access: is 'x', expected one of 'auto', 'map', 'read'"),
        ({"trust": ["root"]}, TypeError, "trust: has 'root', expected numbers of users"),
        ({"trust": [-1]}, ValueError, "trust: has -1"),
        ({"trust": range(17)}, ValueError, "trust: has 17 users, expected at most 16"),
    ],
)
def test_wrong_options_are_refused(options, error, text):
    with pytest.raises(error) as raised:
        rbc.Cache(**options)
    assert str(raised.value).startswith(text)


def test_an_entry_that_leaves_too_little_space_is_not_written(path, store, monkeypatch):
    plain = facts(data.open(path))
    with pytest.raises(rbc.RoboCacheError, match=r"must stay free; free some space, prune"):
        data.open(path, cache=rbc.Cache(store, require=True, min_free_bytes="1000PB"))
    monkeypatch.setenv("ROBOCACHE_MIN_FREE_BYTES", "1000PB")
    cache = rbc.Cache(store)
    with pytest.warns(RuntimeWarning, match=r"must stay free.* The run goes on without it"):
        assert facts(data.open(path, cache=cache)) == plain
    assert not any(item.complete for item in cache.items())
    data.open(path, cache=rbc.Cache(store, require=True, min_free_bytes=0))
    assert len(cache.items()) == 1
    monkeypatch.setenv("ROBOCACHE_MIN_FREE_BYTES", "much")
    with pytest.raises(ValueError, match="ROBOCACHE_MIN_FREE_BYTES: is 'much', expected a size"):
        rbc.Cache(store)


@pytest.mark.parametrize("verify", ["open", "first", "none"])
@pytest.mark.parametrize("access", ["map", "read", "auto"])
def test_mapped_and_read_entries_are_equal(path, store, verify, access):
    plain = facts(data.open(path))
    for _ in range(2):
        cache = rbc.Cache(store, verify=verify, access=access, require=True)
        assert facts(data.open(path, cache=cache)) == plain


def test_layers_are_read_in_order_and_the_last_is_written(path, store, tmp_path):
    shared = tmp_path / "shared"
    data.open(path, cache=rbc.Cache(shared))
    cache = rbc.Cache([shared, store], require=True)
    assert cache.path == str(store) and cache.paths == (str(shared), str(store))
    episodes = data.open(path, cache=cache)
    assert cache.last_miss is None and cache.items() == []
    episodes.align(5, cache=cache)
    assert len(cache.items()) == 1 and len(rbc.Cache(shared).items()) == 1
    episodes.align(5, cache=rbc.Cache([rbc.Cache(shared), store]))
    assert len(cache.items()) == 1


# ---- processes ----------------------------------------------------------------------------------


def test_pickling_carries_the_path_and_the_options(path, store):
    options = {"max_bytes": "1GB", "max_age": "30d", "verify": "first", "min_free_bytes": "7kB"}
    cache = rbc.Cache([store], require=True, **options)
    data.open(path, cache=cache)
    copy = pickle.loads(pickle.dumps(cache))
    assert copy.paths == cache.paths and copy.__reduce__() == cache.__reduce__()
    assert copy.__reduce__()[1][1]["min_free_bytes"] == 7000
    assert len(pickle.dumps(cache)) < 1000
    data.open(path, cache=copy)
    assert copy.last_miss is None


def test_pickled_episodes_are_opened_again(path, store, tmp_path):
    cache = rbc.Cache(store)
    episodes = data.open(path, cache=cache).load()
    small = pickle.dumps(episodes)
    assert facts(pickle.loads(small)) == facts(data.open(path))
    big = rbc.Track(np.zeros((100_000, 8)), [0, 100_000], times=np.arange(100_000.0))
    rbc.Episodes({"state": big}).save(tmp_path / "big", "lerobot")
    large = data.open(age(tmp_path / "big"), cache=cache).load()
    assert len(pickle.dumps(large)) < 2 * len(small) + 2000  # no arrays
    chosen = pickle.loads(pickle.dumps(episodes.select([1]).with_kinds({"state": {"0": "number"}})))
    assert chosen == data.open(path).select([1])
    cache.prune(0, incomplete=True)
    for base, folders, _ in os.walk(store / "v1" / "e", topdown=False):
        for name in folders:
            for file in os.scandir(os.path.join(base, name)):
                if file.is_file():
                    os.unlink(file)
    with pytest.raises(FileNotFoundError, match=r"has no entry .* Open the data set again"):
        pickle.loads(small)


def test_a_forked_child_reads_and_builds(path, store):
    cache = rbc.Cache(store, require=True)
    episodes = data.open(path, cache=cache)
    before, expected = episodes["state"].values.sum(), data.open(path).align(5)
    child = os.fork()
    if child == 0:
        good = episodes["state"].values.sum() == before
        good = good and facts(episodes.align(5, cache=cache)) == facts(expected)
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert facts(episodes.align(5, cache=cache)) == facts(expected)
    assert cache.last_miss is None


CODE = """
import sys, time
import robocache as rbc
from robocache import data
from robocache.data._formats.lerobot import lerobot
known = lerobot._read
def slow(*arguments):
    print("reading", flush=True)
    time.sleep(float(sys.argv[3]))
    return known(*arguments)
lerobot._read = slow
cache = rbc.Cache(sys.argv[2], require=True)
lerobot.LazyTracks  # the reader is imported
print("made" if data.open(sys.argv[1], cache=cache) and cache.last_miss else "found", flush=True)
"""


def builder(path, store, seconds, code=CODE):
    patched = code.replace("lerobot._read = slow", "lerobot._read = slow\n")
    return subprocess.Popen(
        [sys.executable, "-c", patched, str(path), str(store), str(seconds)],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )


def test_one_of_several_processes_reads(path, store):
    processes = [builder(path, store, 1.0) for _ in range(4)]
    answers = [process.communicate(timeout=120)[0] for process in processes]
    assert all(process.returncode == 0 for process in processes)
    assert "".join(answers).count("reading") == 1
    assert len(rbc.Cache(store).items()) == 1


def test_a_killed_builder_leaves_its_work_to_the_next(path, store):
    first = builder(path, store, 100)
    assert first.stdout.readline() == "reading\n"
    second = builder(path, store, 0)
    time.sleep(1)
    assert second.poll() is None  # waits
    first.kill()
    first.wait()
    answer = second.communicate(timeout=120)[0]
    assert answer == "reading\nmade\n"
    assert facts(data.open(path, cache=rbc.Cache(store))) == facts(data.open(path))


def test_ctrl_c_ends_a_wait(path, store):
    first = builder(path, store, 100)
    assert first.stdout.readline() == "reading\n"
    second = builder(path, store, 0)
    time.sleep(2)
    second.send_signal(signal.SIGINT)
    assert second.wait(timeout=30) == -signal.SIGINT
    first.kill()
    first.wait()


def test_a_long_wait_says_who_builds(path, store, monkeypatch):
    from robocache._cache import cache as module

    monkeypatch.setattr(module, "_PATIENCE_S", 0.1)
    first = builder(path, store, 3)
    assert first.stdout.readline() == "reading\n"
    with pytest.warns(RuntimeWarning, match=rf"another process makes the same entry.*{first.pid}"):
        data.open(path, cache=rbc.Cache(store))
    first.communicate()


# ---- errors -------------------------------------------------------------------------------------


def is_root():
    return os.geteuid() == 0


def test_a_folder_that_cannot_be_made_is_one_warning(path, tmp_path):
    (tmp_path / "file").write_text("x")
    cache = rbc.Cache(tmp_path / "file" / "store")
    with pytest.warns(RuntimeWarning, match=r"cache: cannot use .*The run goes on without it") as w:
        episodes = data.open(path, cache=cache)
        made = episodes.align(5, cache=cache)
    assert len(w) == 1 and w[0].filename == __file__
    assert facts(episodes) == facts(data.open(path))
    assert facts(made) == facts(data.open(path).align(5))
    with pytest.raises(rbc.RoboCacheError):
        data.open(path, cache=rbc.Cache(tmp_path / "file" / "store", require=True))


def test_a_folder_that_others_may_write_is_refused(path, store):
    store.mkdir()
    store.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="cannot use .*store"):
        assert not is_stored(data.open(path, cache=rbc.Cache(store)))


def test_a_read_only_folder_is_read(path, store, tmp_path):
    """With a mount that refuses writes, which a mode does for users other than root."""
    data.open(path, cache=rbc.Cache(store))
    code = f"""
import warnings, os
import robocache as rbc
from robocache import data
warnings.simplefilter("error")
cache = rbc.Cache({str(store)!r}, require=True)
episodes = data.open({str(path)!r}, cache=cache)
assert cache.last_miss is None, cache.last_miss
made = episodes.align(5, cache=cache)  # is not stored
assert made == data.open({str(path)!r}).align(5)
"""
    run = [sys.executable, "-c", code]
    if is_root():
        if os.system("unshare -m true 2>/dev/null") != 0:
            pytest.skip("no mount namespaces")
        mount = f"mount --bind {store} {store} && mount -o remount,ro,bind {store}"
        run = ["unshare", "-m", "sh", "-c", f'{mount} && exec "$0" "$@"', *run]
    else:
        for base, _, _ in os.walk(store):
            os.chmod(base, 0o500)
    before = sorted(str(each) for each in store.rglob("*"))
    done = subprocess.run(run, env=environment(), capture_output=True, text=True)
    if "mount:" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    assert sorted(str(each) for each in store.rglob("*")) == before


def test_a_full_disk_is_one_warning(path, store, tmp_path):
    if not is_root() or os.system("unshare -m true 2>/dev/null") != 0:
        pytest.skip("needs mount namespaces")
    store.mkdir()
    code = f"""
import os, warnings
import robocache as rbc
from robocache import data
cache = rbc.Cache({str(store)!r})
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    episodes = data.open({str(path)!r}, cache=cache)
    made = episodes.align(5, cache=cache)
assert [str(w.message)[:20] for w in caught] == ["cache: cannot write "], caught
assert episodes == data.open({str(path)!r})
assert made == data.open({str(path)!r}).align(5)
assert not any(item.complete for item in cache.items())
"""
    mount = f"mount -t tmpfs -o size=16k,mode=700 none {store}"
    run = ["unshare", "-m", "sh", "-c", f'{mount} && exec "$0" "$@"', sys.executable, "-c", code]
    done = subprocess.run(run, env=environment(), capture_output=True, text=True)
    if "mount:" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr


def only_entry(cache):
    (item,) = [item for item in cache.items() if item.complete]
    return folder_of(cache.path, item.key)


@pytest.mark.parametrize("name", ["entry.rbi", "000000.rbs"])
def test_a_damaged_entry_is_made_again(path, store, name):
    cache = rbc.Cache(store)
    data.open(path, cache=cache)
    file = os.path.join(only_entry(cache), name)
    os.chmod(file, 0o600)
    with open(file, "r+b") as opened:
        opened.seek(20)
        opened.write(b"\xff\xff\xff")
    with pytest.warns(RuntimeWarning, match=r"cache: .* It is made again"):
        assert facts(data.open(path, cache=cache)) == facts(data.open(path))
    with no_warnings():
        assert facts(data.open(path, cache=cache)) == facts(data.open(path))


def states(folder):
    """Facts about every file of a folder that change when it is written or replaced."""
    found = {}
    for base, folders, names in os.walk(folder):
        for name in [*folders, *names]:
            of = os.lstat(os.path.join(base, name))
            found[os.path.join(base, name)] = (
                of.st_ino,
                of.st_size,
                of.st_mtime_ns,
                of.st_ctime_ns,
            )
    return found


def test_a_hit_writes_nothing(path, store):
    """The time of the last use is written once an hour, and digests when there are new ones."""
    time.sleep(2.1)  # digests of younger files are not kept
    cache = rbc.Cache(store, require=True)
    data.open(path, cache=cache).align(0.01, cache=cache)
    data.open(path, cache=cache)
    before = states(store), states(path)
    for _ in range(3):
        cache = rbc.Cache(store, require=True)
        data.open(path, cache=cache).load().align(0.01, cache=cache).load()
        assert cache.last_miss is None
    assert (states(store), states(path)) == before


def test_max_bytes_removes_and_refuses(path, store):
    cache = rbc.Cache(store, max_bytes="1kB")
    with pytest.raises(ValueError, match=r"max_bytes: is 1 KB, but one entry has .* KB"):
        data.open(path, cache=cache)
    cache = rbc.Cache(store, max_bytes="1GB", max_age="30d")
    data.open(path, cache=cache)
    assert len([item for item in cache.items() if item.complete]) == 1


def test_prune(path, store):
    cache = rbc.Cache(store)
    episodes = data.open(path, cache=cache)
    folder = only_entry(cache)
    assert cache.prune(0).num_removed == 0  # used just now
    for base, _, names in os.walk(store):
        for name in names:
            os.utime(os.path.join(base, name), (1e9, 1e9))
    would = cache.prune(0, dry_run=True)
    assert would.num_removed == 1 and would.num_removed_bytes > 0 and os.path.isdir(folder)
    assert cache.prune(max_age="1d").num_removed == 1
    assert (
        not os.path.exists(folder)
        and not (store / "digests").is_dir()
        or not os.listdir(store / "digests")
    )
    assert facts(episodes) == facts(data.open(path))  # a reader keeps its map
    data.open(path, cache=cache)
    assert cache.last_miss is not None


def test_verify_finds_a_flipped_byte(path, store):
    cache = rbc.Cache(store)
    data.open(path, cache=cache)
    (item,) = cache.items()
    good = cache.verify(item.key)
    assert good.num_blocks > 0 and good.num_damaged_blocks == 0 and good.first_segment == -1
    file = os.path.join(only_entry(cache), "000000.rbs")
    os.chmod(file, 0o600)
    size = os.path.getsize(file)
    flip(file, size - 4096)
    found = cache.verify(item.key)
    assert (found.num_damaged_blocks, found.first_segment) == (1, 0)
    assert found.first_block == (size - 4096) >> 16
    assert cache.verify(bytes(32)) is None


def flip(file, at):
    os.chmod(file, 0o600)
    with open(file, "r+b") as opened:
        opened.seek(at)
        byte = opened.read(1)
        opened.seek(at)
        opened.write(bytes([byte[0] ^ 1]))


def test_every_array_is_verified_when_it_is_first_used(path, store):
    data.open(path, cache=rbc.Cache(store))
    folder = only_entry(rbc.Cache(store))
    cache = rbc.Cache(store, verify="first")
    episodes = data.open(path, cache=cache)
    segment = os.path.join(folder, "000000.rbs")
    content = open(segment, "rb").read()
    flip(segment, content.find(np.arange(60.0).tobytes()) + 300_000)
    with pytest.raises(rbc.RoboCacheError, match="block"):
        episodes["state"]
    assert facts(data.open(path, cache=cache)) == facts(data.open(path))


def test_a_changed_version_is_damage(path, store):
    cache = rbc.Cache(store)
    data.open(path, cache=cache)
    flip(os.path.join(only_entry(cache), "000000.rbs"), 4104)  # the version of the table
    with pytest.warns(RuntimeWarning, match="the sum of block 0 differs.* It is made again"):
        assert facts(data.open(path, cache=cache)) == facts(data.open(path))
    assert facts(data.open(path, cache=cache)) == facts(data.open(path))
    assert cache.last_miss is None
