"""Loaders of cached episodes on a GPU, which reads the page cache."""

import numpy as np
import pytest

import robocache as rbc
from cached import age, bits
from robocache import data

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

LENGTHS = (40, 0, 75, 1, 30)


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    """Episodes that are read, and the same from a cache."""
    folder = tmp_path_factory.mktemp("cached")
    rng = np.random.default_rng(0)
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)])
    times = np.concatenate([np.arange(n) / 10 for n in LENGTHS])
    tracks = {
        "state": rbc.Track(rng.normal(size=(offsets[-1], 3)), offsets, times=times),
        "action": rbc.Track(rng.normal(size=(offsets[-1], 7)).astype("f4"), offsets, times=times),
        "grip": rbc.Track(rng.integers(0, 2, (offsets[-1], 1)).astype(bool), offsets),
        "half": rbc.Track(rng.normal(size=(offsets[-1], 5)).astype("f2"), offsets),
    }
    path = folder / "set.npz"
    rbc.Episodes(tracks).save(path, "npz")
    cache = rbc.Cache(folder / "store", require=True)
    data.open(age(path), cache=cache)
    return data.open(path), data.open(path, cache=cache)


def spec(episodes):
    found = episodes.statistics()["action"]
    normalization = rbc.Normalization(found.mean, found.std)
    windows = {
        "state": rbc.Window([-1, 0]),
        "action": rbc.Window(range(8), normalization=normalization),
        "grip": rbc.Window([0]),
        "half": rbc.Window([-2, 0]),
    }
    return rbc.WindowSpec(windows)


def batches(episodes, **options):
    loader = rbc.torch.WindowLoader(episodes, spec(episodes), 8, seed=3, **options)
    found = [
        [
            (name, *(bits(part.cpu()) for part in (batch[name], batch.valid[name])))
            for name in batch.values
        ]
        for batch in loader
    ]
    return found, loader


def test_batches_are_equal_from_registered_memory_and_by_staging(opened):
    plain, cached = opened
    expected, _ = batches(plain)
    staged, loader = batches(cached, device="cuda", pin=0)
    assert type(loader._batches).__name__ == "Ahead"
    assert staged == expected
    read, loader = batches(cached, device="cuda")
    assert read == expected
    if type(loader._batches).__name__ == "Ahead":
        pytest.skip("this device does not register read-only maps")
    again, _ = batches(cached.select([0, 2, 4]), device="cuda")
    assert again == batches(plain.select([0, 2, 4]))[0]


def test_episodes_that_are_not_in_a_store_are_staged(opened):
    plain, _ = opened
    found, loader = batches(plain, device="cuda")
    assert type(loader._batches).__name__ == "Ahead"
    assert found == batches(plain)[0]


def test_sizes_of_pin(opened):
    _, cached = opened
    with pytest.raises(ValueError, match="^pin: is 'much'"):
        batches(cached, device="cuda", pin="much")
    with pytest.raises(ValueError, match="^pin: is -1"):
        batches(cached, device="cuda", pin=-1)
