"""WindowLoader: every sample once, in the same order whoever asks, and on where it stopped."""

import pickle
import threading
from collections import Counter

import numpy as np
import pytest

import robocache as rbc

torch = pytest.importorskip("torch")

from robocache.torch._sampler import (  # noqa: E402
    Order,  # noqa: E402
    Sampler,
    checked_weights,
)

CPU = torch.device("cpu")


def data(lengths=(4, 0, 7, 1, 3), as_tensors=True):
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    values = np.arange(offsets[-1], dtype=np.float32)[:, None] * [1, 10]
    values = values.astype(np.float32)
    values = torch.from_numpy(values) if as_tensors else values
    tracks = {"state": rbc.Track(values, offsets), "frame": rbc.Track(None, offsets)}
    return rbc.Episodes(tracks)


SPEC = rbc.WindowSpec({"past": rbc.Window([-1, 0], track="state"), "frame": [0]})


def loader(batch_size=4, episodes=None, spec=SPEC, **options):
    options.setdefault("seed", 3)
    episodes = data() if episodes is None else episodes
    return rbc.torch.WindowLoader(episodes, spec, batch_size, **options)


def copied(batch):
    return {
        **{name: each.clone() for name, each in batch.values.items()},
        **{f"{name}.valid": each.clone() for name, each in batch.valid.items()},
        "episodes": batch.episodes.clone(),
        "anchors": batch.anchors.clone(),
    }


def epoch(given):
    return [copied(batch) for batch in given]


def samples(batches):
    return [
        pair
        for batch in batches
        for pair in zip(batch["episodes"].tolist(), batch["anchors"].tolist())
    ]


def every_sample(episodes, spec=SPEC):
    return list(zip(*(each.tolist() for each in spec.samples(episodes))))


def same(a, b):
    return len(a) == len(b) and all(
        x.keys() == y.keys() and all(torch.equal(x[name], y[name]) for name in x)
        for x, y in zip(a, b)
    )


# ---- the order -----------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 12, 100, 101, 4096, 12345])
def test_an_order_has_every_number_once(count):
    for seed in range(3):
        numbers = Order(count, seed, 5, CPU).at(np.arange(count))
        assert sorted(numbers.tolist()) == list(range(count))


def test_an_order_is_known_anywhere():
    order = Order(10**12 - 1, 1, 2, CPU)
    positions = np.array([5, 10**12 - 2, 0])
    assert (order.at(positions)[::-1] == order.at(positions[::-1].copy())).all()
    assert Order(1000, 7, 0, CPU).at(np.arange(5)).tolist() == [177, 152, 643, 314, 997]


def test_orders_of_seeds_and_epochs_differ():
    seeds = [(seed, epoch) for seed in range(3) for epoch in range(3)]
    orders = [Order(50, *seed, CPU).at(np.arange(50)).tolist() for seed in seeds]
    assert len(set(map(tuple, orders))) == 9


def test_orders_are_even():
    """Each number occurs at each position about equally often."""
    count, epochs = 12, 3000
    seen = np.zeros((count, count))
    for e in range(epochs):
        seen[np.arange(count), Order(count, 11, e, CPU).at(np.arange(count))] += 1
    expected = epochs / count
    chi_squared = ((seen - expected) ** 2 / expected).sum()
    assert chi_squared < 210  # of 121 degrees of freedom, 1e-6 at most


# ---- an epoch ------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_size", [1, 4, 15, 100])
@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_every_sample_once_over_all_ranks(batch_size, world_size):
    ranks = [loader(batch_size, rank=r, world_size=world_size) for r in range(world_size)]
    epochs = [epoch(each) for each in ranks]
    assert {len(batches) for batches in epochs} == {len(ranks[0])}
    seen = [pair for batches in epochs for pair in samples(batches)]
    assert sorted(seen) == every_sample(data())
    sizes = [[len(batch["anchors"]) for batch in batches] for batches in epochs]
    for of_ranks in zip(*sizes):
        assert max(of_ranks) - min(of_ranks) <= 1 and max(of_ranks) <= batch_size


@pytest.mark.parametrize("world_size", [1, 2])
def test_the_last_batch_dropped(world_size):
    for rank in range(world_size):
        given = loader(2, rank=rank, world_size=world_size, drop_last=True)
        assert [len(batch) for batch in given] == [2] * len(given)
        assert len(given) == 15 // (2 * world_size)


def test_the_windows_are_those_of_the_spec():
    for as_tensors in (True, False):
        episodes = data(as_tensors=as_tensors)
        for batch in loader(4, episodes):
            expected = SPEC.cut(episodes, batch.episodes, batch.anchors)
            for name, (values, valid) in expected.items():
                assert (np.asarray(batch[name]) == np.asarray(values)).all()
                assert (np.asarray(batch.valid[name]) == np.asarray(valid)).all()
            assert isinstance(batch["past"], torch.Tensor) and batch["frame"].dtype == torch.int64


def test_anchors_of_the_spec():
    spec = rbc.WindowSpec({"x": rbc.Window(range(3), track="state")}, anchors=(-1, 1))
    seen = samples(epoch(loader(4, spec=spec)))
    assert sorted(seen) == every_sample(data(), spec)
    assert {anchor for e, anchor in seen if e == 3} == {-1, 0, 1}
    assert not [e for e, _ in seen if e == 1]  # which is empty


def test_orders():
    given = loader()
    first, second = samples(epoch(given)), samples(epoch(given))
    assert first != second and sorted(first) == sorted(second) and given.epoch == 2
    given.set_epoch(0)
    assert samples(epoch(given)) == first
    assert samples(epoch(loader(seed=4))) != first
    assert samples(epoch(loader(batch_size=7))) == first
    ordered = loader(shuffle=False)
    assert samples(epoch(ordered)) == every_sample(data())


def test_a_dtype():
    spec = rbc.WindowSpec(SPEC.windows, dtype=torch.bfloat16)
    batch = next(iter(loader(spec=spec)))
    assert batch["past"].dtype == torch.bfloat16 and batch["frame"].dtype == torch.int64


# ---- weights -------------------------------------------------------------------------------------


def test_weights():
    lengths = (4, 0, 7, 1, 3)
    weights = np.array([1.0, 5.0, 0.5, 0.0, 2.0])
    given = loader(4, weights=weights)
    share = 15 * weights / (weights * lengths).sum()
    seen = Counter()
    for _ in range(20):
        counted = Counter(samples(epoch(given)))
        assert sum(counted.values()) == 15
        for e, anchor in every_sample(data()):
            assert int(share[e]) <= counted[e, anchor] <= int(share[e]) + 1
        seen += counted
    for e, anchor in every_sample(data()):
        assert abs(seen[e, anchor] - 20 * share[e]) <= 12


def test_equal_weights_are_none():
    given = loader(4, weights=[3.0] * 5)
    assert sorted(samples(epoch(given))) == every_sample(data())


# ---- states --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_weights_reach_every_sample_of_many(scale):
    counts = np.full(2, 12_000_000)
    weights = checked_weights([scale, scale], counts)
    sampler = Sampler(counts, 0, weights, torch.device("cpu"))
    [(which, anchors, _)] = sampler.batches(0, 0, False, [(20_000_000, 1000)])
    assert (which == 1).all()
    assert anchors.tolist() == list(range(8_000_000, 8_001_000))


@pytest.mark.parametrize("stop", range(9))
@pytest.mark.parametrize("options", [{}, {"weights": [1, 2, 3, 4, 5]}, {"drop_last": True}])
def test_going_on_in_another_loader(stop, options):
    uninterrupted = loader(**options)
    whole = [batch for _ in range(3) for batch in epoch(uninterrupted)]
    one = loader(**options)
    begun = []
    while len(begun) < stop:
        for batch in one:
            begun.append(copied(batch))
            if len(begun) == stop:
                break
    state = pickle.loads(pickle.dumps(one.state_dict()))
    other = loader(**{**options, "seed": 99})
    other.load_state_dict(state)
    rest = []
    while other.epoch < 3:
        rest += epoch(other)
    assert same(begun + rest, whole)


def test_a_state_is_small_and_plain():
    state = loader().state_dict()
    assert all(type(each) is int for each in state.values())


def test_going_on_with_other_batches_and_ranks():
    one = loader(2)
    batches = iter(one)
    begun = [copied(next(batches)) for _ in range(3)]
    ranks = [loader(3, rank=r, world_size=2) for r in range(2)]
    for each in ranks:
        each.load_state_dict(one.state_dict())
    rest = [pair for each in ranks for pair in samples(epoch(each))]
    assert sorted(samples(begun) + rest) == every_sample(data())


def test_a_loop_that_is_left_goes_on():
    one, other = loader(), loader()
    whole = epoch(other)
    parts = []
    while one.epoch == 0:
        for batch in one:
            parts.append(copied(batch))
            break
    assert same(parts, whole)


def test_a_loop_ends_where_another_begins():
    before = threading.active_count()
    given = loader()
    first = iter(given)
    next(first)
    second = iter(given)
    next(second)
    assert threading.active_count() == before + 1  # which writes where the first's did
    with pytest.raises(RuntimeError, match="^this loop over the loader has ended"):
        next(first)
    assert len(list(second)) == len(given) - 2
    third = iter(given)
    next(third)
    given.set_epoch(7)
    with pytest.raises(RuntimeError, match="^this loop over the loader has ended"):
        next(third)
    assert given.epoch == 7


def test_small_batches_of_many_samples():
    episodes = data((70_000, 3))
    seen = samples(
        {"episodes": batch.episodes.clone(), "anchors": batch.anchors.clone()}
        for batch in loader(1000, episodes, rbc.WindowSpec({"frame": [0]}))
    )
    assert sorted(seen) == every_sample(episodes, rbc.WindowSpec({"frame": [0]}))


def test_too_little_left_for_a_batch():
    small = loader(7)
    for _ in zip(range(2), small):
        pass
    large = loader(4, drop_last=True)
    large.load_state_dict(small.state_dict())
    assert list(large) == [] and large.epoch == small.epoch + 1
    assert len(list(large)) == 3


# ---- memory and threads --------------------------------------------------------------------------


def test_tensors_are_used_again_or_fresh():
    used = [batch["past"].data_ptr() for batch in loader(2)]
    assert len(set(used)) == 3  # of one in use and two ahead
    kept = [batch for batch in loader(2, fresh=True)]
    assert len({batch["past"].data_ptr() for batch in kept}) == len(kept)
    assert same([copied(batch) for batch in kept], epoch(loader(2)))


def test_batches_ahead_are_not_counted():
    given = loader(2, ahead=5)
    next(iter(given))
    assert given.state_dict()["position"] == 2


def test_no_thread_stays():
    given = loader(2)
    before = threading.active_count()
    batches = iter(given)
    next(batches)
    assert threading.active_count() == before + 1
    del batches
    list(given)
    assert threading.active_count() == before


def test_an_error_on_the_thread_is_raised():
    times = torch.tensor([0.0, 1.0])
    values = torch.zeros(2, 4)  # quaternions that are none
    track = rbc.Track(values, [0, 2], times=times)
    window = rbc.Window([0.0], track="q", method="slerp", fill_value=-1.0)
    spec = rbc.WindowSpec({"q": window})
    (batch,) = loader(2, rbc.Episodes({"q": track}), spec)
    assert not batch.valid["q"].any()
    given = loader(2)
    given._batches._cutter.cut = lambda *_: 1 / 0
    with pytest.raises(ZeroDivisionError):
        list(given)


# ---- bad input -----------------------------------------------------------------------------------

REFUSED = {
    "no episodes": (
        lambda: rbc.torch.WindowLoader({}, SPEC, 4),
        "episodes: is a dict, expected a robocache.Episodes$",
    ),
    "no spec": (
        lambda: rbc.torch.WindowLoader(data(), {"past": [0]}, 4),
        "spec: is a dict, expected a robocache.WindowSpec$",
    ),
    "batches of none": (lambda: loader(0), "batch_size: is 0, expected 1 or more$"),
    "a rank too many": (
        lambda: loader(rank=2, world_size=2),
        "rank: is 2, expected 0 to 1$",
    ),
    "empty episodes": (
        lambda: loader(episodes=data((0, 0))),
        "episodes: no samples; the episodes may be shorter than the windows$",
    ),
    "one batch is too large": (
        lambda: loader(16, drop_last=True),
        "batch_size: 16 per rank gives no full batch from 15 samples; pass drop_last=False$",
    ),
    "too few weights": (
        lambda: loader(weights=[1.0]),
        r"weights: shape is \[1\], expected \[5\] \(one per episode\)$",
    ),
    "a negative weight": (
        lambda: loader(weights=[1, 1, -1, 1, 1]),
        "weights: is -1.0 for episode 2, expected 0 or more$",
    ),
    "a weight that is none": (
        lambda: loader(weights=[1, 1, np.nan, 1, 1]),
        "weights: is nan for episode 2, expected 0 or more$",
    ),
    "weights of empty episodes": (
        lambda: loader(weights=[0, 1, 0, 0, 0]),
        "weights: are 0 for all episodes that have samples$",
    ),
    "a track that is not there": (
        lambda: loader(spec=rbc.WindowSpec({"leg": [0]})),
        "\"track: is 'leg', expected one of 'state', 'frame'\"$",
    ),
    "a state of other samples": (
        lambda: loader().load_state_dict(loader(episodes=data((2, 2))).state_dict()),
        "state: has 4 samples, but this loader has 15; the episodes or the spec differ$",
    ),
    "a state of something else": (
        lambda: loader().load_state_dict({"epoch": 1}),
        "state: lacks 'version', expected the result of state_dict$",
    ),
    "a state of the future": (
        lambda: loader().load_state_dict({**loader().state_dict(), "version": 2}),
        "state: has version 2, expected 1$",
    ),
    "a position behind the last sample": (
        lambda: loader().load_state_dict({**loader().state_dict(), "position": 16}),
        "state: position is 16, expected 0 to 15, the samples of an epoch$",
    ),
    "an epoch before the first": (
        lambda: loader().load_state_dict({**loader().state_dict(), "epoch": -1}),
        "state: epoch is -1, expected 0 or more$",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    call, message = REFUSED[case]
    with pytest.raises((ValueError, TypeError, KeyError), match=f"^{message}"):
        call()
