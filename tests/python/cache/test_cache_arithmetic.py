"""The versions in the table of arithmetic change if, and only if, results change.

results.json has a digest of the results of fixed inputs for each version. To change results, raise
the number in robocache/_cache/arithmetic.py and write the file anew:

    ROBOCACHE_WRITE_RESULTS=yes python -m pytest tests/python/cache/test_cache_arithmetic.py
"""

import hashlib
import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest

import data_sources
import robocache as rbc
from robocache import data
from robocache._cache import arithmetic
from robocache._operations.images import FILTERS_OF
from robocache.data._formats import registry

RESULTS = Path(__file__).parent / "results.json"
WRITE = os.environ.get("ROBOCACHE_WRITE_RESULTS") == "yes"


def digest(*arrays):
    total = hashlib.sha256()
    for array in arrays:
        if array is None:
            total.update(b"none")
            continue
        array = np.asarray(array)
        total.update(f"{array.dtype} {array.shape}".encode())
        total.update(np.ascontiguousarray(array).tobytes())
    return total.hexdigest()[:32]


def of_source(name, tmp_path):
    """The reader of a sample, and a digest of what it reads; None without a package."""
    path = data_sources.make(name, tmp_path / name)
    if path is None:
        return None
    reader = registry.format_of(str(path), registry.FORMATS).__name__.rpartition("._formats.")[2]
    return reader, data_sources.held(path)[0][:32]


def streams():
    rng = np.random.default_rng(5)
    times = np.cumsum(rng.uniform(0.005, 0.02, 400))
    arrivals = times + rng.uniform(0.0, 0.05, 400)
    angles = np.cumsum(rng.normal(size=(400, 1)), axis=0)
    angles = (angles + np.pi) % (2 * np.pi) - np.pi
    quaternions = rng.normal(size=(400, 4))
    quaternions /= np.linalg.norm(quaternions, axis=1, keepdims=True)
    counts = rng.integers(0, 100, (300, 2))
    slow = np.linspace(times[0] + 0.1, times[-1] - 0.1, 300)
    return {
        "numbers": rbc.Track(rng.normal(size=(400, 3)), [0, 150, 400], times=times),
        "pose": rbc.Track(
            np.concatenate([angles, quaternions], axis=1),
            [0, 150, 400],
            times=times,
            arrivals=arrivals,
            names=["yaw", "qx", "qy", "qz", "qw"],
        ),
        "counts": rbc.Track(counts, [0, 100, 300], times=slow),
    }


def of_align():
    tracks = streams()
    kinds = {"pose": {"yaw": "angle_rad", "qx-qw": "quaternion_xyzw"}}
    found = []
    for names, options in (
        (list(tracks), {"span": "union", "max_gap": 0.5}),
        (list(tracks), {"methods": {"numbers": "cubic"}, "span": "union"}),
        (["pose"], {"available": "arrival", "lag": 0.01, "late_bound": 3}),
        (["numbers", "pose"], {"causal": True, "max_age": 0.1}),
    ):
        episodes = rbc.Episodes({name: tracks[name] for name in names})
        own = {name: each for name, each in kinds.items() if name in names}
        made = episodes.align(37.0, kinds=own, **options)
        for track in made.tracks.values():
            found += [track.values, track.times, track.episode_offsets]
    return digest(*found)


def of_resample():
    tracks, queries = streams(), np.linspace(-0.1, 7.0, 501)
    numbers, pose = tracks["numbers"], tracks["pose"]
    found = []
    for method in ("linear", "nearest", "previous", "next", "cubic", "pchip"):
        found.append(
            rbc.resample(numbers.values[:150], numbers.times[:150], queries, method=method)
        )
    groups = [(0, 1, "angle"), (1, 4, "slerp")]
    found.append(rbc.resample(pose.values[:150], pose.times[:150], queries, method=groups))
    return digest(*found)


def of_clock():
    track = streams()["numbers"]
    times = np.asarray(track.times)[:150]
    return digest(rbc.clock({"a": rbc.Stream(np.zeros((150, 1)), times)}, 30.0))


def of_live_kept():
    pose = streams()["pose"]
    return digest(*(rbc.live_kept(pose.times, pose.arrivals, bound) for bound in (0, 3)))


def of_images():
    frames = np.random.default_rng(6).integers(0, 256, (3, 40, 56, 3), dtype=np.uint8)
    found = []
    for rule, filters in FILTERS_OF.items():
        for name in filters:
            for fit, size in (("stretch", (17, 90)), ("pad", (24, 24)), ("cover", (31, 20))):
                options = {"rule": rule, "filter": name, "fit": fit, "pad_value": 9}
                found.append(rbc.images(frames, size, dtype="uint8", layout="hwc", **options))
    return digest(*found)


def of_kinds():
    made = rbc.Episodes(streams()).with_kinds({"pose": {"yaw": "angle_deg"}})
    made = [[channel.kind, channel.unit] for channel in made["pose"].channels]
    return hashlib.sha256(json.dumps(made).encode()).hexdigest()[:32]


def of_select():
    made = rbc.Episodes(streams()).select([1, 0], tracks=["pose"])["pose"]
    return digest(made.values, made.times, made.arrivals, made.episode_offsets)


def of_without(tmp_path):
    path = data_sources.make("mcap", tmp_path / "without")
    if path is None:
        pytest.skip("no package writes this format")
    recording = data.open(path)
    made = recording.without(recording.names[:1])
    return hashlib.sha256(json.dumps([*made.names, *map(str, made.left_out)]).encode()).hexdigest()


def compared(known, name, version, found):
    """Compare a digest with the one of the version, or note it, in groups of eight digits."""
    found = " ".join(found[i : i + 8] for i in range(0, len(found), 8))
    entry = known.setdefault(name, [version, found])
    if WRITE:
        known[name] = [version, found]
        return
    assert entry[0] == version, (
        f"{name}: the number is {version}, and results.json has {entry[0]}: write it anew"
    )
    assert entry[1] == found, (
        f"{name}: results differ from the results of version {version}. If that is intended, "
        "raise the number in robocache/_cache/arithmetic.py, or caches keep their old entries"
    )


@pytest.fixture(scope="module")
def known():
    found = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    yield found
    if WRITE:
        RESULTS.write_text(json.dumps(dict(sorted(found.items())), indent=1) + "\n")


def test_every_reader_and_step_has_a_version():
    assert set(arithmetic.READERS) == set(registry.FORMATS)
    assert set(arithmetic._OF_STEPS) == set(arithmetic.STEPS)
    used = {name for names in arithmetic._OF_STEPS.values() for name in names}
    assert used == set(arithmetic.OPERATIONS)


@pytest.mark.parametrize("name", data_sources.SOURCES)
def test_readers(name, known, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = of_source(name, tmp_path)
    if made is None:
        pytest.skip("no package writes this format")
    reader, found = made
    version = arithmetic.READERS[reader].version
    compared(known, f"{reader}: {name}", version, found)


@pytest.mark.parametrize("name", [*arithmetic.STEPS, *arithmetic.OPERATIONS])
def test_steps_and_operations(name, known, tmp_path):
    function = globals()[f"of_{name}"]
    found = function(tmp_path) if name == "without" else function()
    table = arithmetic.STEPS if name in arithmetic.STEPS else arithmetic.OPERATIONS
    compared(known, name, table[name], found)


def test_another_result_is_found(known):
    if WRITE:
        pytest.skip("the file is written")
    with pytest.raises(AssertionError, match="raise the number"):
        compared(dict(known), "resample", 1, "0")
    with pytest.raises(AssertionError, match="write it anew"):
        compared(dict(known), "resample", 2, of_resample())
