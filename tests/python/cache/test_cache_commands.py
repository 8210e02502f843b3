"""``robocache cache``."""

import json
import os
import shutil

import numpy as np
import pytest

import data_sources
import robocache as rbc
from cached import age
from cli_process import robocache
from robocache import data
from robocache._cache.explain import folder_of


@pytest.fixture
def path(tmp_path):
    values = np.arange(80_000.0).reshape(40_000, 2)
    track = rbc.Track(values, [0, 10_000, 40_000], times=np.arange(40_000.0))
    rbc.Episodes({"state": track}, tasks=["pick", "place"]).save(tmp_path / "set", "lerobot")
    return age(tmp_path / "set")


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


def run(*arguments, status=0, **options):
    done = robocache("cache", *arguments, **options)
    assert done.returncode == status, (done.stdout, done.stderr)
    return done.stdout if status == 0 else done.stdout + done.stderr


def test_build_fills_the_cache(path, store):
    out = run("build", path, "--cache", store, "--rate", "2", "--as-numbers")
    assert f"{path}: episodes, 2 episodes: made: no entry was made of files of these names" in out
    assert f"{path}: aligned at 2 Hz, 2 episodes: made: no entry was made of files" in out
    out = run("build", path, "--cache", store, "--rate", "2", "--as-numbers")
    assert out.count("is in the cache") == 2
    cache = rbc.Cache(store, require=True)
    episodes = data.open(path, cache=cache)
    assert cache.last_miss is None
    episodes.align(2, as_numbers=True, cache=cache)
    assert cache.last_miss is None
    found = json.loads(run("build", path, "--cache", store, "--json"))
    assert found["cache"] == str(store)
    assert found["built"][0]["stored"] and found["built"][0]["reason"] is None


def test_build_of_several_data_sets_in_processes(path, tmp_path, store):
    paths = [path, shutil.copytree(path, tmp_path / "other"), tmp_path / "missing"]
    age(paths[1], 100)
    found = json.loads(run("build", *paths[:2], "--cache", store, "--processes", "2", "--json"))
    assert [each["path"] for each in found["built"]] == [str(each) for each in paths[:2]]
    assert all(each["stored"] and each["reason"] for each in found["built"])
    assert len(rbc.Cache(store).items()) == 2
    out = run("build", *paths, "--cache", store, "--processes", "2", status=1)
    assert f"{paths[2]}: does not exist" in out or "No such file" in out


def test_build_of_a_recording_needs_a_rate(tmp_path, store):
    path = age(data_sources.make("csv", tmp_path / "source"))
    out = run("build", path, "--cache", store, status=1)
    assert f"{path}: is a recording; only its alignments are stored: add --rate" in out
    run("build", path, "--cache", store, "--rate", "5", "--as-numbers")
    assert len(rbc.Cache(store).items()) == 1


def test_build_says_why_nothing_is_stored(path, store):
    os.utime(path / "meta" / "info.json")
    out = run("build", path, "--cache", store)
    assert "it was not stored: meta/info.json was written less than 2 seconds before" in out


def test_build_fails_without_a_cache(path, tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot create the folder" in run(
        "build", path, "--cache", tmp_path / "file" / "x", status=1
    )
    environment = {"ROBOCACHE_CACHE": "off"}
    out = run("build", path, status=1, environment=environment)
    assert "ROBOCACHE_CACHE is off: unset it, or set it to the folder of the cache" in out


def test_build_keeps_space_free(path, store):
    out = run("build", path, "--cache", store, "--min-free", "1000PB", status=1)
    assert "must stay free" in out
    out = run("build", path, "--cache", store, "--min-free", "no", status=1)
    assert "--min-free: is 'no', expected a size such as 500GB or 64GiB" in out
    run("build", path, "--cache", store, "--min-free", "1kB")
    assert len(rbc.Cache(store).items()) == 1


def test_info(path, store):
    assert run("info", "--cache", store) == f"{store}: 0 entries, 0 bytes\n"
    assert not store.exists()
    run("build", path, "--cache", store, "--rate", "2")
    out = run("info", environment={"ROBOCACHE_CACHE": str(store)})
    assert out.startswith(f"{store}: 2 entries, ") and "lerobot.lerobot" in out and "align" in out
    found = json.loads(run("info", "--cache", store, "--json"))
    assert [each["steps"] for each in found["entries"]] == [["align"], []]
    assert found["bytes"] == sum(each["bytes"] for each in found["entries"])
    assert found["entries"][0]["about"]["reader"] == ["lerobot.lerobot", 1]


def test_verify(path, store):
    run("build", path, "--cache", store)
    assert run("verify", "--cache", store).endswith("blocks, 0 damaged\n")
    cache = rbc.Cache(store)
    (item,) = cache.items()
    folder = folder_of(cache.path, item.key)
    file = os.path.join(folder, "000000.rbs")
    os.chmod(file, 0o600)
    good = open(file, "rb").read()

    def damaged(at):
        content = bytearray(good)
        content[at] ^= 1
        with open(file, "wb") as opened:
            opened.write(content)
        return run("verify", "--cache", store, status=1)

    assert f"{folder}: 1 of " in damaged(300_000) and "(first: segment 0, block 4)" in damaged(
        300_000
    )
    assert f"{folder}: " in damaged(10)  # the header
    assert "damaged: the sum of block 0 differs" in damaged(4104)  # the version of the table
    assert os.path.exists(file)  # nothing is changed
    damaged(300_000)
    found = json.loads(robocache("cache", "verify", "--cache", store, "--json").stdout)
    assert (found["damaged"][0]["segment"], found["damaged"][0]["block"]) == (0, 4)


def test_prune(path, store):
    out = run("prune", "--cache", store, status=1)
    assert f"{store}: there is no cache here" in out
    run("build", path, "--cache", store)
    assert run("prune", "--cache", store, "--max-size", "0").startswith("removed 0 entries, ")
    for base, _, names in os.walk(store):
        for name in names:
            os.utime(os.path.join(base, name), (1e9, 1e9))
    out = run("prune", "--cache", store, "--max-size", "1kB", "--dry-run")
    assert out.startswith("would remove 1 entry, ") and len(rbc.Cache(store).items()) == 1
    found = json.loads(run("prune", "--cache", store, "--older", "30d", "--json"))
    assert found["num_removed"] == 1 and not found["dry_run"]
    assert "--max-size: is 'x', expected a size" in run(
        "prune", "--cache", store, "--max-size", "x", status=1
    )


def test_prune_of_incomplete_entries(path, store):
    cache = rbc.Cache(store)
    data.open(path, cache=cache)
    key = bytes(32)
    cache._opened(0).lock(key, 5, episodes=1, rows=1).discard()
    assert [item.complete for item in cache.items()].count(False) <= 1
    run("prune", "--cache", store)
    run("prune", "--cache", store, "--incomplete")
    assert all(item.complete for item in cache.items()) and len(cache.items()) == 1
