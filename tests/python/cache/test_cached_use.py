"""Cached episodes in use: selections, windows, normalization, statistics, loaders."""

import hashlib
import itertools

import numpy as np
import pytest

import data_sources
import robocache as rbc
from cached import age, bits, facts
from random_share import random_share
from robocache import data

LENGTHS = (40, 0, 75, 1, 30)


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Episodes that are read, and the same from a cache."""
    folder = tmp_path_factory.mktemp("cached")
    rng = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)])
    times = np.concatenate([np.arange(n) / 10 for n in LENGTHS])
    tracks = {
        name: rbc.Track(
            rng.normal(size=(offsets[-1], 3)).astype(dtype),
            offsets,
            times=times,
            names=["x", "y", "z"],
        )
        for name, dtype in (("action", "f4"), ("state", "f8"))
    }
    path = folder / "set"
    rbc.Episodes(tracks, tasks=["a", None, ("b", "c"), "a", "d"]).save(path, "zarr")
    cache = rbc.Cache(folder / "store", require=True)
    data.open(age(path), cache=cache)
    cached = data.open(path, cache=cache)
    assert cache.last_miss is None
    return data.open(path), cached, cache


CHOICES = ([0], [2, 3], [4, 0], [], slice(1, 4), [0, 0, 2], np.array([True, False] * 2 + [True]))


@pytest.mark.parametrize("chosen", CHOICES, ids=str)
def test_selections(opened, chosen):
    plain, cached, _ = opened
    for load in (False, True):
        if load:
            cached = cached.select().load()
        assert facts(cached.select(chosen)) == facts(plain.select(chosen))
        assert facts(cached.select(chosen, tracks=["state"])) == facts(
            plain.select(chosen, tracks=["state"])
        )
        assert facts(cached.select(chosen).select([])) == facts(plain.select(chosen).select([]))


def test_neighbouring_episodes_are_views(opened):
    _, cached, _ = opened
    whole, part = cached["state"].values, cached.select(slice(2, 5))["state"].values
    assert not part.flags.owndata and not part.flags.writeable
    assert bits(part) == bits(whole[40:])


def test_iteration(opened):
    plain, cached, _ = opened
    for one, other in itertools.zip_longest(plain, cached):
        assert facts(one) == facts(other)


def test_metadata_is_there_before_tracks_are_read(opened):
    _, cached, cache = opened
    fresh = data.open(cached.source, cache=cache)
    assert not fresh.is_loaded and not fresh._tracks.tracks
    assert fresh.lengths("state").tolist() == list(LENGTHS)
    assert fresh.track_info("action").dtype == "float32" and len(fresh) == 5
    assert not fresh._tracks.tracks
    assert "not read yet" in repr(fresh)


def test_statistics_and_reports(opened):
    plain, cached, _ = opened
    for name, statistics in plain.statistics().items():
        own = cached.statistics()[name]
        assert repr(own) == repr(statistics) and bits(own.mean) == bits(statistics.mean)
    assert repr(cached.report()) == repr(plain.report())


def test_saving_and_joining(opened, tmp_path):
    plain, cached, _ = opened
    for name, episodes in (("a", plain), ("b", cached)):
        episodes.select([0, 2, 3, 4]).save(tmp_path / name, "rlds")
    assert data.open(tmp_path / "a")["state"] == data.open(tmp_path / "b")["state"]
    assert (cached + plain) == (plain + cached) == (plain + plain)


def spec(episodes):
    found = episodes.statistics()["action"]
    normalization = rbc.Normalization(found.mean, found.std)
    windows = {
        "past": rbc.Window([-1, 0], track="state"),
        "future": rbc.Window(range(8), track="action", normalization=normalization),
    }
    return rbc.WindowSpec(windows)


def test_windows(opened):
    plain, cached, _ = opened
    one, other = (each.windows(spec(each)) for each in (plain, cached))
    for name in one:
        assert [bits(part) for part in one[name]] == [bits(part) for part in other[name]]


def batches(episodes, ranks=1, rank=0, state=None, most=None, **options):
    torch = pytest.importorskip("torch")
    loader = rbc.torch.WindowLoader(
        episodes, spec(episodes), 8, seed=3, rank=rank, world_size=ranks, **options
    )
    if state is not None:
        loader.load_state_dict(state)
    found = []
    for batch in itertools.islice(iter(loader), most):
        found.append([(name, *map(bits, batch[name])) for name in ("past", "future")])
    del torch
    return found, loader.state_dict()


@pytest.mark.parametrize("ranks", range(1, 9))
def test_batches_of_any_number_of_ranks(opened, ranks):
    plain, cached, _ = opened
    for rank in range(ranks):
        assert batches(plain, ranks, rank)[0] == batches(cached, ranks, rank)[0]


def test_a_loader_goes_on_in_the_middle(opened):
    plain, cached, _ = opened
    whole = batches(plain)[0]
    begun, state = batches(cached, most=5)
    assert begun == whole[:5]
    assert batches(cached, state=state)[0] == batches(plain, state=state)[0] == whole[5:]


def test_workers_that_are_forked_and_spawned(opened):
    pytest.importorskip("torch")
    from torch.utils.data import DataLoader

    plain, cached, _ = opened
    for method, workers in (("fork", 2), ("spawn", 1)):  # each that is spawned imports torch
        loader = DataLoader(
            Rows(cached), batch_size=None, num_workers=workers, multiprocessing_context=method
        )
        assert [tuple(each) for each in loader] == [digest(part["state"].values) for part in plain]


class Rows:
    """A data set for DataLoader: the bytes of each episode."""

    def __init__(self, episodes):
        self.episodes = episodes

    def __len__(self):
        return len(self.episodes)

    def __getitem__(self, index):
        if index >= len(self):
            raise IndexError(index)
        return digest(self.episodes.select([index])["state"].values)


def digest(array):
    content, dtype, shape = bits(array)
    return hashlib.sha256(content).hexdigest(), dtype, str(shape)


@pytest.mark.parametrize("name", ["lerobot-3.0", "zarr", "csv", "mcap", "npz-episodes"])
def test_damage_that_was_skipped_is_kept(name, tmp_path):
    """Every byte that a reader skips in a damaged file is in the list of problems of a hit."""
    cache = rbc.Cache(tmp_path / "store")
    rng = np.random.default_rng(1)
    stored = 0
    for trial in range(max(4, random_share(12))):
        source = data_sources.make(name, tmp_path / f"{name}{trial}")
        if source is None:
            pytest.skip("no package writes this format")
        unit = "s" if source.name in data_sources.PLAIN else None
        found = [source] if source.is_file() else [p for p in source.rglob("*") if p.is_file()]
        file = found[int(rng.integers(len(found)))]
        content = bytearray(file.read_bytes())
        content[int(rng.integers(len(content)))] ^= 0xFF
        file.write_bytes(content)
        age(source, trial)
        try:
            plain = data.open(source, damaged="keep", unit=unit)
            if isinstance(plain, data.Recording):
                plain = plain.align(20, as_numbers=True)
            expected = facts(plain)
        except (data.FormatError, ValueError):
            continue
        for _ in range(2):
            made = data.open(source, damaged="keep", unit=unit, cache=cache)
            if isinstance(made, data.Recording):
                made = made.align(20, as_numbers=True, cache=cache)
            assert facts(made) == expected
        stored += type(made._tracks).__name__ == "StoredTracks"
    assert stored > 0
