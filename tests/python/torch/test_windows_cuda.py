"""On a GPU: windows, their gradients and the loader give the bits of the CPU."""

import numpy as np
import pytest

import robocache as rbc

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device that torch can use", allow_module_level=True)
if rbc.info().cuda_unavailable:
    pytest.skip(
        f"RoboCache has no CUDA here: {rbc.info().cuda_unavailable}", allow_module_level=True
    )


def episodes(seed=1):
    rng = np.random.default_rng(seed)
    lengths = [1, 0, *rng.integers(2, 90, 40)]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    times = np.concatenate([np.sort(rng.uniform(0, 3, n)) for n in lengths])
    pose = rng.normal(size=(offsets[-1], 8)).astype(np.float32)
    joints = rng.normal(size=(offsets[-1], 5)).astype(np.float32)
    return rbc.Episodes(
        {
            "pose": rbc.Track(pose, offsets, times=times),
            "joints": rbc.Track(joints, offsets, times=times),
            "frame": rbc.Track(None, offsets, times=times),
        }
    )


def spec():
    relative = rbc.Transform(
        "se3_relative", 0, 7, reference=("pose", -1), rotation="quat_xyzw",
        out_rotation="rot6d_rows",
    )  # fmt: skip
    to_now = rbc.Transform(
        "se3_relative", 0, 7, reference=("poses", 1), rotation="quat_xyzw",
        out_rotation="rot6d_rows",
    )  # fmt: skip
    less = rbc.Transform("subtract", 1, 3, reference=("joints", 0))
    norm = rbc.Normalization(np.arange(5.0), 1.0 / np.arange(1, 6), 0.1, -2.0, 2.0)
    divided = rbc.Normalization(np.arange(10.0), np.arange(1, 11) / 7, -1.0, divides=True)
    groups = [(0, 3, "linear"), (3, 4, "slerp"), (7, 1, "nearest")]
    return rbc.WindowSpec(
        {
            "joints": rbc.Window([0, 3, -2], transforms=less, normalization=norm, dtype="bfloat16"),
            "pose": rbc.Window([-0.3, 0.0], method=groups, transforms=relative),
            "frame": [-1, 0],
            "poses": rbc.Window([-1, 0, 1], track="pose", transforms=to_now, normalization=divided),
            "past": rbc.Window(
                [-2, -1, 0],
                track="joints",
                normalization=rbc.Normalization(0.3, 0.7, -1.0, divides=True),
            ),
        },
        anchors=(-1, 2),
    )


def bits(tensor):
    return tensor.cpu().contiguous().reshape(-1).view(torch.uint8)


def assert_same(a, b):
    assert a.shape == b.shape and a.dtype == b.dtype and torch.equal(bits(a), bits(b))


def batches(loader):
    return [
        {
            name: (batch[name].cpu().clone(), batch.valid[name].cpu().clone())
            for name in batch.values
        }
        for batch in loader
    ]


def assert_same_batches(a, b):
    assert len(a) == len(b)
    for one, other in zip(a, b):
        for name in one:
            for x, y in zip(one[name], other[name]):
                assert_same(x, y)


def test_the_same_bits_as_the_cpu():
    on_host = episodes()
    samples = spec().samples(on_host)
    expected = spec().cut(on_host.to(torch.device("cpu")), *samples)
    moved = [torch.from_numpy(each).cuda() for each in samples]
    for name, pair in spec().cut(on_host.to("cuda"), *moved).items():
        for x, y in zip(pair, expected[name]):
            assert x.is_cuda
            assert_same(x, y)


@pytest.mark.parametrize("names", [("past",), ("poses",), ("past", "poses")])
def test_divisions_in_the_kernel_of_rows(names):
    """Interpolated poses need another kernel; without them, rows are divided in vectors."""
    on_host, context = episodes(), rbc.Context("cuda")
    chosen = rbc.WindowSpec({name: spec().windows[name] for name in names})
    samples = chosen.samples(on_host)
    expected = chosen.cut(on_host.to(torch.device("cpu")), *samples)
    moved = [torch.from_numpy(each).cuda() for each in samples]
    streams = chosen.streams(on_host.to("cuda"))
    pairs = rbc.windows(streams, *moved, anchor_stream=chosen.anchor_stream, backend=context)
    form = "poses, divisions" if "poses" in names else "no poses, divisions"
    assert f"windows_rows ({form})" in context.info.last_launch
    for name, pair in zip(names, pairs):
        for x, y in zip(pair, expected[name]):
            assert_same(x, y)


def test_statistics_are_those_of_the_cpu():
    for per_step in (False, True):
        options = {"rows": "valid", "per_step": per_step, "quantiles": (0.1, 0.5)}
        expected = spec().statistics(episodes(), **options)
        for name, result in spec().statistics(episodes().to("cuda"), **options).items():
            for field in ("count", "min", "max", "mean", "std", "quantiles"):
                np.testing.assert_array_equal(
                    getattr(result, field), getattr(expected[name], field)
                )


def test_gradients():
    data = episodes()
    gradients = []
    for device in ("cpu", "cuda"):
        joints = torch.from_numpy(data["joints"].values).to(device).requires_grad_()
        less = rbc.Transform("subtract", 0, 5, reference=(0, 0))
        stream = rbc.torch.WindowStream(
            joints, range(-3, 6), episode_offsets=data["joints"].episode_offsets.tolist(),
            transforms=less,
        )  # fmt: skip
        which, anchors = (torch.from_numpy(each).to(device) for each in spec().samples(data))
        ((rows, _),) = rbc.torch.windows([stream], which, anchors)
        rows.square().sum().backward()
        gradients.append(joints.grad.cpu())
    torch.testing.assert_close(*gradients)


# ---- the loader ----------------------------------------------------------------------------------


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("weights", [None, True])
def test_batches_are_those_of_the_cpu(fresh, weights):
    data = episodes()
    options = {"weights": np.arange(len(data)) / 7} if weights else {}
    options.update(seed=3, fresh=fresh)
    expected = batches(rbc.torch.WindowLoader(data, spec(), 64, **options))
    resident = rbc.torch.WindowLoader(data.to("cuda"), spec(), 64, **options)
    assert next(iter(resident))["pose"].is_cuda
    resident.set_epoch(0)
    assert_same_batches(batches(resident), expected)
    for device in ("cuda", torch.device("cuda", 0)):
        ahead = rbc.torch.WindowLoader(data, spec(), 64, device=device, **options)
        assert next(iter(ahead))["pose"].is_cuda
        ahead.set_epoch(0)
        assert_same_batches(batches(ahead), expected)


def test_a_batch_stays_until_the_next_is_asked_for():
    """Also where the GPU is behind: what it reads of a batch is not overwritten by a copy."""
    data = episodes()
    expected = batches(rbc.torch.WindowLoader(data, spec(), 16, seed=1))
    loader = rbc.torch.WindowLoader(data, spec(), 16, seed=1, device="cuda", ahead=3)
    copies = []
    for batch in loader:
        torch.cuda._sleep(5_000_000)
        copies.append(
            {name: (batch[name].clone(), batch.valid[name].clone()) for name in batch.values}
        )
    assert_same_batches(copies and [
        {name: tuple(each.cpu() for each in pair) for name, pair in copied.items()}
        for copied in copies
    ], expected)  # fmt: skip


def test_another_stream():
    data = episodes()
    loader = rbc.torch.WindowLoader(data.to("cuda"), spec(), 64, seed=2)
    expected = batches(rbc.torch.WindowLoader(data, spec(), 64, seed=2))
    torch.cuda.synchronize()
    with torch.cuda.stream(torch.cuda.Stream()):
        assert_same_batches(batches(loader), expected)


@pytest.mark.parametrize("resident", [True, False])
def test_an_epoch_allocates_nothing(resident):
    data = episodes().to("cuda") if resident else episodes()
    loader = rbc.torch.WindowLoader(data, spec(), 64, device="cuda")
    for _ in loader:  # the workspace and the caches have their sizes then
        pass
    torch.cuda.synchronize()
    before = torch.cuda.memory_stats()["num_device_alloc"]
    pointers = {batch["pose"].data_ptr() for batch in loader}
    assert torch.cuda.memory_stats()["num_device_alloc"] == before
    assert len(pointers) == (1 if resident else 3)


def test_a_captured_call():
    data = episodes().to("cuda")
    streams = spec().streams(data)
    which, anchors = (torch.from_numpy(each).cuda()[:100] for each in spec().samples(data))
    out = [
        (torch.empty_like(values), torch.empty_like(valid))
        for values, valid in rbc.windows(streams, which, anchors)
    ]
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        rbc.windows(streams, which, anchors, out=out)
    for array in [each for pair in out for each in pair]:
        array.zero_()
    graph.replay()
    for pair, expected in zip(out, rbc.windows(streams, which, anchors)):
        for x, y in zip(pair, expected):
            assert_same(x, y)


def test_episodes_elsewhere():
    loader = rbc.torch.WindowLoader
    with pytest.raises(ValueError, match="^device: is 'cpu', but the episodes are on cuda:0; "):
        loader(episodes().to("cuda"), spec(), 4, device="cpu")
