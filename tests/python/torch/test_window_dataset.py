"""WindowDataset: the samples of WindowLoader, in any batches and in any processes."""

from __future__ import annotations

import dataclasses
import os
import pickle

import numpy as np
import pytest

import robocache as rbc
from camera_sources import LENGTHS, ArraySource, pixels, states
from spawned import forkserver
from window_datasets import COUNT, IMAGES, SPEC, dataset, digest, digests, episodes, expected

torch = pytest.importorskip("torch")

from torch.utils import data as torch_data  # noqa: E402

NUMBERS = rbc.WindowSpec({"state": [-1, 0]})


def require_equal(batches, references, count=COUNT):
    """Every sample once, with the bytes of WindowLoader."""
    found = digests(batches)
    assert len(found) == count and len(dict(found)) == count
    for key, item in found:
        assert item == references[key], key


def collates(data_set):
    return {"collate": data_set.collate, "default": None}


# ---- samples -------------------------------------------------------------------------------------


def test_samples_are_in_the_order_of_the_specification(tmp_path):
    data_set = dataset(tmp_path)
    assert isinstance(data_set, torch_data.Dataset) and len(data_set) == COUNT
    sample_episodes, anchors = SPEC.samples(episodes(tmp_path))
    references = expected(episodes(tmp_path))[0]
    for i in (0, 3, 4, 14, np.int64(5), torch.tensor(11)):
        sample = data_set[i]
        assert (int(sample["episode"]), int(sample["anchor"])) == (sample_episodes[i], anchors[i])
        assert digest(sample) == references[sample_episodes[i], anchors[i]]
    assert digest(data_set[-1]) == digest(data_set[14]) and digest(data_set[-15]) == digest(
        data_set[0]
    )


def test_the_form_of_a_sample(tmp_path):
    sample = dataset(tmp_path, spec=rbc.WindowSpec({
        "state": [-1, 0],
        "front": rbc.Window([0, 1], images=rbc.Images(size=(8, 10))),
    }))[3]  # fmt: skip
    assert list(sample) == [
        "state", "state_is_valid", "front", "front_is_valid", "episode", "anchor",
    ]  # fmt: skip
    assert sample["state"].dtype == torch.float32 and sample["state"].shape == (2, 2)
    assert sample["front"].dtype == torch.float32 and sample["front"].shape == (2, 3, 8, 10)
    assert sample["front_is_valid"].tolist() == [True, False]
    assert (sample["episode"], sample["anchor"]) == (0, 3)
    assert sample["episode"].shape == () and sample["episode"].dtype == torch.int64


def test_numbers_only_and_images_only(tmp_path):
    only = rbc.WindowSpec({"front": rbc.Window([-1, 0], images=IMAGES)})
    for spec in (NUMBERS, only):
        references = expected(episodes(tmp_path), spec)[0]
        require_equal(torch_data.DataLoader(dataset(tmp_path, spec=spec), 4), references)


def test_anchors_around_episodes(tmp_path):
    spec = rbc.WindowSpec(SPEC.windows, anchors=(-2, 1))
    data_set = dataset(tmp_path, spec=spec)
    references = expected(episodes(tmp_path), spec)[0]
    require_equal(torch_data.DataLoader(data_set, 4), references, len(references))
    assert len(data_set) == len(references) == COUNT + 3 * 4


def test_a_selection_with_repeats(tmp_path):
    selection = episodes(tmp_path).select([2, 0, 2, 4])
    references = expected(selection)[0]
    data_set = dataset(tmp_path, selection)
    require_equal(torch_data.DataLoader(data_set, 5), references, 7 + 4 + 7 + 3)
    require_equal(torch_data.DataLoader(pickle.loads(pickle.dumps(data_set)), 5), references, 21)


@pytest.mark.parametrize("collate", ["collate", "default"])
@pytest.mark.parametrize("batch_size", [1, 4, 100])
def test_batches_of_any_size(tmp_path, batch_size, collate):
    data_set = dataset(tmp_path)
    loader = torch_data.DataLoader(
        data_set, batch_size, shuffle=True, collate_fn=collates(data_set)[collate]
    )
    require_equal(loader, expected(episodes(tmp_path))[0])


def test_epochs_and_seeds_change_images(tmp_path):
    data_set = dataset(tmp_path)
    references = expected(episodes(tmp_path), epochs=3)
    for epoch in (0, 2, 1):
        data_set.set_epoch(epoch)
        assert data_set.epoch == epoch
        require_equal(torch_data.DataLoader(data_set, 4), references[epoch])
    assert digest(data_set[3]) != digest(dataset(tmp_path, seed=4)[3])


def test_without_training_nothing_is_random(tmp_path):
    data_set = dataset(tmp_path, train=False)
    require_equal(torch_data.DataLoader(data_set, 4), expected(episodes(tmp_path), train=False)[0])
    before = digest(data_set[3])
    data_set.set_epoch(1)
    assert digest(data_set[3]) == before


def test_frames_of_a_batch_are_read_once():
    source = ArraySource(pixels())
    spec = rbc.WindowSpec({"front": rbc.Window([-1, 0, 1], images=IMAGES)})
    data_set = rbc.torch.WindowDataset(states().with_cameras({"front": source}), spec)
    data_set.__getitems__([6, 4, 5, 6, 12, 5])
    assert source.reads == [(2, [0, 1, 2, 3]), (4, [0, 1])]


# ---- collate -------------------------------------------------------------------------------------


def test_collate_returns_the_memory_of_the_samples(tmp_path):
    data_set = dataset(tmp_path)
    samples = data_set.__getitems__([3, 7, 1])
    batch = data_set.collate(samples)
    stacked = torch_data.default_collate(samples)
    assert batch.keys() == stacked.keys()
    for name, item in batch.items():
        assert torch.equal(item, stacked[name])
        assert item[0].data_ptr() == samples[0][name].data_ptr() and item.is_contiguous()


def test_collate_stacks_what_was_changed(tmp_path):
    data_set = dataset(tmp_path)
    for change in (
        lambda samples: samples[1].update(state=samples[1]["state"] + 1),
        lambda samples: samples.reverse(),
        lambda samples: samples.pop(),
        lambda samples: [item.pop("front") for item in samples],
        lambda samples: samples.append(samples[0]),
    ):
        samples = data_set.__getitems__([3, 7, 1])
        change(samples)
        batch, stacked = data_set.collate(samples), torch_data.default_collate(list(samples))
        assert batch.keys() == stacked.keys()
        assert all(torch.equal(item, stacked[name]) for name, item in batch.items())
    assert digests([data_set.collate([data_set[3], data_set[5]])]) == digests([
        data_set.collate(data_set.__getitems__([3, 5]))
    ])  # fmt: skip


def test_subsets_and_concatenations(tmp_path):
    data_set = dataset(tmp_path)
    references = expected(episodes(tmp_path))[0]
    part = torch_data.Subset(data_set, [9, 2, 4])
    require_equal(torch_data.DataLoader(part, 2, collate_fn=data_set.collate), references, 3)
    require_equal(torch_data.DataLoader(part + torch_data.Subset(data_set, [1]), 4), references, 4)


# ---- processes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("method", ["fork", "forkserver"])
def test_workers_that_go_on_for_epochs(tmp_path, method, cached):
    """A process of the server of forks gets a data set by pickle, as one that is spawned."""
    camera_episodes = episodes(tmp_path)
    if cached:
        cache = rbc.Cache(tmp_path / "cache")
        camera_episodes._about = dataclasses.replace(camera_episodes._about, cache=cache)
    data_set = dataset(tmp_path, camera_episodes, threads=2 if method == "fork" else 1)
    data_set[0]  # files are open in this process
    references = expected(episodes(tmp_path), epochs=3)
    for collate in (None, data_set.collate) if method == "fork" else (data_set.collate,):
        loader = torch_data.DataLoader(
            data_set, 2, shuffle=True, num_workers=2, persistent_workers=True,
            multiprocessing_context="fork" if method == "fork" else forkserver(),
            collate_fn=collate,
        )  # fmt: skip
        for epoch in (0, 2, 1):
            data_set.set_epoch(epoch)
            require_equal(loader, references[epoch])
    require_equal(torch_data.DataLoader(data_set, 2), references[1])  # the parent's files stay open


def test_ranks_of_a_distributed_sampler(tmp_path):
    data_set = dataset(tmp_path)
    references = expected(episodes(tmp_path))[0]
    for drop_last, sizes in ((False, [5, 5, 5]), (True, [4, 4, 4])):
        found = []
        for rank in range(3):
            sampler = torch_data.DistributedSampler(data_set, 3, rank, drop_last=drop_last)
            loader = torch_data.DataLoader(
                data_set, 2, sampler=sampler, num_workers=rank, drop_last=drop_last
            )
            found.append(digests(loader))
        assert [len(item) for item in found] == sizes
        together = dict(sum(found, []))
        assert len(together) == sum(sizes)
        assert all(item == references[key] for key, item in together.items())


def test_samples_of_a_worker_are_in_shared_memory(tmp_path):
    data_set = dataset(tmp_path)
    batch = next(
        iter(torch_data.DataLoader(data_set, 4, num_workers=1, collate_fn=data_set.collate))
    )
    assert all(item.is_shared() for item in batch.values())
    assert not data_set[0]["front"].is_shared()


def test_an_error_in_a_worker_names_its_cause(tmp_path):
    data_set = dataset(tmp_path)
    os.truncate(tmp_path / "frames.bin", 100)
    with pytest.raises(ValueError, match="(?s)in DataLoader worker process 0.*cannot reshape"):
        list(torch_data.DataLoader(data_set, 4, num_workers=1))


# ---- pickles -------------------------------------------------------------------------------------


def test_a_pickle_has_paths(tmp_path):
    pytest.importorskip("pyarrow")
    lengths = (3000, 2000)
    offsets = np.cumsum([0, *lengths])
    rng = np.random.default_rng(2)
    tracks = {
        name: rbc.Track(rng.random((5000, 8), np.float32), offsets, times=np.concatenate([
            np.arange(n) / 30 for n in lengths
        ]))
        for name in ("observation.state", "action")
    }  # fmt: skip
    rbc.Episodes(tracks).save(tmp_path / "set", "lerobot")
    source = ArraySourceOfPath(tmp_path / "frames.bin", lengths)
    spec = rbc.WindowSpec({
        "state": rbc.Window([0], track="observation.state"),
        "front": rbc.Window([0], images=rbc.Images("front", (8, 10))),
    })  # fmt: skip
    for cache in (None, rbc.Cache(tmp_path / "cache")):
        opened = rbc.data.open(tmp_path / "set", cache=cache).load()
        opened = opened.with_cameras({"front": source})
        data_set = rbc.torch.WindowDataset(opened, spec, fill=False)
        content = pickle.dumps(data_set)
        assert len(content) < 20_000
        again = pickle.loads(content)
        assert digest(again[2500]) == digest(data_set[2500])
        assert torch.equal(data_set[2500]["state"][0], torch.from_numpy(
            tracks["observation.state"].values[2500]
        ))  # fmt: skip


class ArraySourceOfPath(ArraySource):
    """Frames of zeros."""

    def __init__(self, path, lengths):
        super().__init__([], shape=(12, 16, 3))
        self._lengths = np.array(lengths)

    lengths = property(lambda self: self._lengths)

    def read(self, episode, rows, out):
        out[:] = (rows % 251)[:, None, None, None]


def test_a_data_set_that_changed_is_refused():
    """Most readers find a change of their files; this is for those that do not."""
    again = pickle.loads(pickle.dumps(rbc.torch.WindowDataset(states(), NUMBERS)))
    again._episodes = states((4, 0, 7, 2, 3))
    with pytest.raises(ValueError, match="^episodes: .*has other lengths, .*; create it again"):
        again[0]


# ---- errors --------------------------------------------------------------------------------------

REFUSED = {
    "no episodes": (
        lambda: rbc.torch.WindowDataset([], NUMBERS),
        "episodes: is a list, expected a robocache.Episodes$",
    ),
    "no spec": (
        lambda: rbc.torch.WindowDataset(states(), {"state": [0]}),
        "spec: is a dict, expected a robocache.WindowSpec$",
    ),
    "empty": (
        lambda: rbc.torch.WindowDataset(states((0, 0)), NUMBERS),
        "episodes: no samples; the episodes may be shorter than the windows$",
    ),
    "an unknown camera": (
        lambda: rbc.torch.WindowDataset(states(), SPEC),
        "\"camera: is 'front', but these episodes have no cameras\"$",
    ),
    "names": (
        lambda: rbc.torch.WindowDataset(
            states(), rbc.WindowSpec({"x": [0], "x_is_valid": rbc.Window([0], track="x")})
        ),
        r"windows\['x_is_valid'\]: is also the name of another part of a sample; give the window",
    ),
    "the name of the episode": (
        lambda: rbc.torch.WindowDataset(
            states(), rbc.WindowSpec({"episode": rbc.Window([0], track="state")})
        ),
        r"windows\['episode'\]: is also the name of another part of a sample",
    ),
    "a seed": (
        lambda: rbc.torch.WindowDataset(states(), NUMBERS, seed=1.5),
        "seed: is 1.5, expected an int$",
    ),
    "threads": (
        lambda: rbc.torch.WindowDataset(states(), NUMBERS, threads=0),
        "threads: is 0, expected 1 or more$",
    ),
    "past the end": (
        lambda: rbc.torch.WindowDataset(states(), NUMBERS)[15],
        "index: is 15, but there are 15 samples$",
    ),
    "before the start": (
        lambda: rbc.torch.WindowDataset(states(), NUMBERS)[-16],
        "index: is -16, but there are 15 samples$",
    ),
    "no index": (
        lambda: rbc.torch.WindowDataset(states(), NUMBERS)[0.5],
        "index: is 0.5, expected an int$",
    ),
    "an epoch": (
        lambda: rbc.torch.WindowDataset(states(), NUMBERS).set_epoch(-1),
        "epoch: is -1, expected 0 or more$",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    call, message = REFUSED[case]
    with pytest.raises((ValueError, TypeError, KeyError, IndexError), match=f"^{message}"):
        call()


def test_iteration_ends():
    assert len(list(rbc.torch.WindowDataset(states(LENGTHS), NUMBERS))) == COUNT
