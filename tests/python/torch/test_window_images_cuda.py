"""Images in the batches of a loader on a GPU: registered, staged, decoded, as on the CPU."""

import numpy as np
import pytest

import frame_sources
import robocache as rbc

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

LENGTHS = [5, 17, 3, 20, 14]
COLOR = rbc.ColorJitter(0.2, 0.3, 0.5, 0.05)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frames")
    return frame_sources.made(folder / "data", LENGTHS, shape=(48, 64, 3))


def episodes_of(source, cache=None):
    offsets = np.concatenate([[0], np.cumsum(LENGTHS)])
    state = np.random.default_rng(0).normal(size=(offsets[-1], 3)).astype("f4")
    episodes = rbc.Episodes({"state": rbc.Track(state, offsets)})
    return episodes.with_cameras({"front": source, "wrist": source}, cache=cache)


def spec_of(dtype, **options):
    front = rbc.Images("front", (24, 32), crop=0.9, augment=COLOR, flip=0.5, dtype=dtype, **options)
    wrist = rbc.Images("wrist", 24, fit="pad", pad_value=3, dtype=dtype, normalize="imagenet")
    return rbc.WindowSpec(
        {
            "state": [-1, 0],
            "front": rbc.Window([-1, 0], images=front),
            "wrist": rbc.Window([-2, 0, 3], images=wrist, outside="fill"),
        }
    )


def batches(episodes, spec, size=8, **options):
    loader = rbc.torch.WindowLoader(episodes, spec, size, seed=3, progress=False, **options)
    found = [
        {
            name: (batch[name].cpu().clone(), batch.valid[name].cpu().clone())
            for name in batch.values
        }
        for batch in loader
    ]
    return found, loader


def require_equal(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(found, expected):
        for name in one:
            assert torch.equal(one[name][0], other[name][0]), name
            assert torch.equal(one[name][1], other[name][1]), name


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
@pytest.mark.parametrize("way", ["registered", "staged", "decoded", "on the GPU", "fresh"])
def test_batches_equal_those_of_the_cpu(source, tmp_path, dtype, way):
    spec = spec_of(dtype)
    expected, _ = batches(episodes_of(source), spec)
    cache = None if way == "decoded" else rbc.Cache(tmp_path / "cache", require=True)
    episodes = episodes_of(source, cache)
    if way == "on the GPU":
        episodes = episodes.to("cuda")
    options = {"device": "cuda", "fresh": way == "fresh"}
    if way == "staged":
        options["pin"] = 0
    found, loader = batches(episodes, spec, **options)
    registered = loader._batches._images._registered
    assert registered == (set() if way in ("staged", "decoded") else {"front", "wrist"})
    require_equal(found, expected)
    assert all(each["front"][0].dtype == getattr(torch, dtype) for each in found)


def test_a_budget_registers_what_fits(source, tmp_path):
    spec = spec_of("float32")
    cache = rbc.Cache(tmp_path / "cache", require=True)
    expected, _ = batches(episodes_of(source, cache), spec)
    found, loader = batches(episodes_of(source, cache), spec, device="cuda", pin="600KB")
    assert loader._batches._images._registered == {"front"}
    require_equal(found, expected)


def test_default_dtypes(source):
    spec = rbc.WindowSpec(
        {"state": [0], "front": rbc.Window([0], images=rbc.Images("front", (8, 8)))}
    )
    (batch, *_), _ = batches(episodes_of(source), spec, device="cuda")
    assert batch["front"][0].dtype == torch.bfloat16


def test_ranks_weights_and_evaluation(source, tmp_path):
    spec = spec_of("float32")
    cache = rbc.Cache(tmp_path / "cache", require=True)
    for options in (
        {"rank": 1, "world_size": 3},
        {"weights": [1, 5, 0, 2, 0.5]},
        {"train": False, "shuffle": False},
        {"drop_last": True, "size": 13, "ahead": 4},
    ):
        expected, _ = batches(episodes_of(source), spec, **options)
        found, _ = batches(episodes_of(source, cache), spec, device="cuda", **options)
        require_equal(found, expected)
