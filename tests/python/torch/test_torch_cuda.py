"""On a GPU: the same bits as the CPU, the current stream, graphs, pointers, device errors."""

import multiprocessing
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings

import robocache as rbc
from fuse_problems import problems as fusions
from resample_problems import METHODS, problems, same_bits
from voxel_problems import MODES, ORDERS, REDUCTIONS, by_name, dense_problems, sparse_problems

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no CUDA device that torch can use", allow_module_level=True)
if rbc.info().cuda_unavailable:
    pytest.skip(
        f"RoboCache has no CUDA here: {rbc.info().cuda_unavailable}", allow_module_level=True
    )

DELAY = 100_000_000  # clock cycles, tens of milliseconds


def example(dtype=torch.float32, channels=32, device="cuda"):
    random = np.random.default_rng(1)
    values = torch.from_numpy(random.normal(size=(8, 200, channels))).to(device, dtype)
    times = torch.from_numpy(np.sort(random.random((8, 200)))).to(device)
    queries = torch.from_numpy(random.random((8, 120)) * 1.2 - 0.1).to(device)
    return values, times, queries


def to_cuda(array):
    return torch.from_numpy(np.array(array)).cuda()


def equal_bits(got, expected):
    """A tensor on the device and one on the CPU; NaN equal to the same NaN."""
    flat = (each.cpu().contiguous().reshape(-1).view(torch.uint8) for each in (got, expected))
    return got.shape == expected.shape and torch.equal(*flat)


@settings(max_examples=1000)
@given(problems())
def test_the_same_bits_as_the_cpu(problem):
    values, times, query_times, options = problem
    expected, expected_mask = rbc.resample(values, times, query_times, return_valid=True, **options)
    for name in ("lengths", "query_lengths", "batch_offsets"):
        if name in options:
            options[name] = to_cuda(options[name])
    arguments = [to_cuda(each) for each in (values, times, query_times)]
    for check in (False, True):
        out, mask = rbc.resample(*arguments, return_valid=True, check_times=check, **options)
        assert out.is_cuda and mask.is_cuda and mask.dtype == torch.bool
        assert same_bits(out.cpu().numpy(), expected) and same_bits(
            mask.cpu().numpy(), expected_mask
        )


@settings(max_examples=500)
@given(fusions())
def test_fusion_has_the_same_bits_as_the_cpu(problem):
    expected, expected_mask = problem.fuse()
    for stream in problem.streams:
        for name in ("values", "times", "lengths", "batch_offsets", "mean", "std"):
            if name in stream:
                stream[name] = to_cuda(stream[name])
    problem.query_times = to_cuda(problem.query_times)
    if "query_lengths" in problem.options:
        problem.options["query_lengths"] = to_cuda(problem.options["query_lengths"])
    for check in (False, True):
        out, mask = problem.fuse(check_times=check)
        assert out.is_cuda and mask.is_cuda and mask.dtype == torch.bool
        assert same_bits(out.cpu().numpy(), expected) and same_bits(
            mask.cpu().numpy(), expected_mask
        )


def clouds_to_cuda(points, features, options):
    options = {**options}
    for name in ("lengths", "batch_offsets"):
        if name in options:
            options[name] = to_cuda(options[name])
    return [None if each is None else to_cuda(each) for each in (points, features)], options


@settings(max_examples=1000)
@given(dense_problems())
def test_voxels_have_the_same_bits_as_the_cpu(problem):
    points, features, options = problem
    expected = rbc.voxelize(points, features, return_num_points_outside=True, **options)
    arrays, options = clouds_to_cuda(*problem)
    got = rbc.voxelize(*arrays, return_num_points_outside=True, **options)
    assert all(each.is_cuda for each in got)
    assert all(same_bits(a.cpu().numpy(), b) for a, b in zip(got, expected))


def same_voxels(got, expected):
    expected = by_name(expected)
    return all(
        (array is None and expected[name] is None)
        or (array.is_cuda and same_bits(array.cpu().numpy(), np.asarray(expected[name])))
        for name, array in by_name(got).items()
    )


@settings(max_examples=1000)
@given(sparse_problems())
def test_sparse_voxels_have_the_same_bits_as_the_cpu(problem):
    points, features, options = problem
    expected = rbc.voxelize_sparse(points, features, **options)
    arrays, options = clouds_to_cuda(*problem)
    assert same_voxels(rbc.voxelize_sparse(*arrays, **options), expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("method", METHODS)
def test_every_method(method, dtype):
    values, times, queries = example(dtype)
    mean, std = values.float().mean((0, 1)), values.float().std((0, 1))
    for statistics in ({}, {"mean": mean, "std": std}):
        out = rbc.resample(values, times, queries, method=method, **statistics)
        expected = rbc.resample(
            *(each.cpu() for each in (values, times, queries)),
            method=method,
            **{name: each.cpu() for name, each in statistics.items()},
        )
        assert torch.equal(out.cpu().view(torch.uint8), expected.view(torch.uint8))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("out_dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("channels", [1, 7, 32, 256])
def test_every_dtype(dtype, out_dtype, channels):
    values, times, queries = example(dtype, channels)
    out = rbc.resample(values, times, queries, dtype=out_dtype)
    expected = rbc.resample(values.cpu(), times.cpu(), queries.cpu(), dtype=out_dtype)
    assert out.dtype == out_dtype
    assert torch.equal(out.cpu().view(torch.uint8), expected.view(torch.uint8))


def test_strided_and_broadcast_tensors():
    values, times, queries = example()
    expected = rbc.resample(values, times, queries)
    room = torch.full((8, 400, 65), -1.0, device="cuda")
    room[:, ::2, 1::2] = values
    assert torch.equal(rbc.resample(room[:, ::2, 1::2], times, queries), expected)
    assert torch.equal(
        rbc.resample(values.permute(2, 0, 1).contiguous().permute(1, 2, 0), times, queries),
        expected,
    )
    shared = rbc.resample(values, times[0], queries[0])
    assert torch.equal(
        rbc.resample(values, times[:1].expand(8, -1), queries[:1].expand(8, -1)), shared
    )
    out = torch.full((32, 240, 8), 7.0, device="cuda")
    view = out.permute(2, 1, 0)[:, ::2]
    assert rbc.resample(values, times, queries, out=view) is view
    assert torch.equal(view, expected) and bool((out[:, 1::2] == 7).all())


def test_pointers():
    values, times, queries = example()
    out = torch.empty(8, 120, 32, device="cuda")
    pointer = out.data_ptr()
    assert rbc.resample(values, times, queries, out=out) is out and out.data_ptr() == pointer
    before = torch.cuda.memory_allocated()
    result = rbc.resample(values, times, queries)
    assert torch.cuda.memory_allocated() - before == result.nbytes  # the result and nothing else
    assert result.device == values.device and not result.requires_grad


def sensors(device="cuda"):
    """Three streams of different rates, dtypes and methods, and query times."""
    values, times, queries = example(device=device)
    slow = (times[:, ::4] * 1.1).contiguous()
    groups = [(0, 24, "linear"), (24, 8, "slerp")]
    switch = (values[:, :50, :2] > 0).to(torch.uint8)
    std = values[0, 0, :7].abs() + 0.5
    streams = [
        rbc.Stream(values, times, method=groups, max_gap=0.01),
        rbc.Stream(values[:, :50, :7].half(), slow, method="pchip", mean=[0.5] * 7, std=std),
        rbc.Stream(switch, slow, method="previous", clock_offset=0.01, lengths=[50] * 7 + [0]),
    ]
    return streams, queries


def test_fusion_allocates_the_result_and_nothing_else():
    streams, queries = sensors()
    out = torch.empty(8, 120, 41, device="cuda")
    pointer = out.data_ptr()
    assert rbc.fuse(streams, queries, out=out) is out and out.data_ptr() == pointer
    before = torch.cuda.memory_allocated()
    result, mask = rbc.fuse(streams, queries, return_valid=True)
    sizes = [(each.nbytes + 511) // 512 * 512 for each in (result, mask)]
    assert torch.cuda.memory_allocated() - before == sum(sizes)
    host, host_queries = sensors("cpu")
    expected, expected_mask = rbc.fuse(host, host_queries, return_valid=True)
    assert result.dtype == torch.float32 and torch.equal(result, out)
    assert torch.equal(result.cpu(), expected) and torch.equal(mask.cpu(), expected_mask)
    assert 0 < int(mask.sum()) < mask.numel()


GRIDS = {
    "one voxel": {"origin": (-50, -50, -50), "voxel_size": 100, "shape": (1, 1, 1)},
    "small": {"origin": (-16, -16, -16), "voxel_size": 2, "shape": (16, 16, 16)},
    "wide": {"origin": (-20, -20, -20), "voxel_size": 0.25, "shape": (160, 160, 160)},
    "deep": {"origin": (-20, -20, -20), "voxel_size": (8, 8, 1e-4), "shape": (5, 5, 400_000)},
}


def sweep(count=300_000, coherent=True, dtype=torch.float32, device="cuda"):
    """Points on the walls of a room, ring by ring as a scanner sees them, or in any order."""
    random = np.random.default_rng(2)
    angle = np.arange(count) * (64 * 2 * np.pi / count)
    ring = np.linspace(-0.4, 0.4, count)
    reach = 15 / np.maximum(np.abs(np.sin(angle)), np.abs(np.cos(angle)))
    reach = reach + random.normal(scale=0.02, size=count)
    points = np.stack(
        [reach * np.cos(angle), reach * np.sin(angle), reach * ring, random.random(count)], axis=1
    )
    points[::997] = np.nan
    if not coherent:
        random.shuffle(points)
    return torch.from_numpy(points).to(device, dtype)


@pytest.mark.parametrize("coherent", [False, True])
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("mode", MODES)
def test_many_points_in_every_mode(mode, grid, coherent):
    points, grid = sweep(coherent=coherent), GRIDS[grid]
    host = points.cpu()
    expected = rbc.voxelize(host, reduction=mode, return_num_points_outside=True, **grid)
    for _ in range(2):
        got = rbc.voxelize(points, reduction=mode, return_num_points_outside=True, **grid)
        assert all(equal_bits(a, b) for a, b in zip(got, expected))


@pytest.mark.parametrize("coherent", [False, True])
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("order", ORDERS)
def test_many_points_sparse(order, grid, coherent):
    points, grid = sweep(coherent=coherent), GRIDS[grid]
    host = points.cpu().numpy()
    for reduce in REDUCTIONS:
        options = {"reduction": reduce, "order": order, **grid}
        expected = rbc.voxelize_sparse(host, **options)
        voxels = rbc.voxelize_sparse(points, **options)
        assert same_voxels(voxels, expected)
        trimmed = voxels.trimmed()
        assert len(trimmed.coords) == len(trimmed.features) == int(expected.num_voxels)
    options = {"max_voxels": 500, "max_points": 5, "order": order, **grid}
    assert same_voxels(rbc.voxelize_sparse(points, **options), rbc.voxelize_sparse(host, **options))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("out_dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("channels", [1, 4, 16, 19])
def test_every_dtype_of_features(dtype, out_dtype, channels):
    random = np.random.default_rng(3)
    points = sweep(20_000)
    features = torch.from_numpy(random.normal(size=(20_000, channels))).to("cuda", dtype)
    for mode in REDUCTIONS:
        options = {"reduction": mode, "dtype": out_dtype, **GRIDS["small"]}
        out = rbc.voxelize(points, features, **options)
        expected = rbc.voxelize(points.cpu(), features.cpu(), **options)
        assert out.dtype == out_dtype
        assert equal_bits(out, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_every_dtype_and_layout_of_points(dtype):
    points = sweep(20_000, dtype=dtype)
    expected = rbc.voxelize(points.cpu(), reduction="count", **GRIDS["wide"])
    room = torch.full((5, 20_000), -1.0, device="cuda", dtype=dtype)
    room[:4] = points.T
    for given_points in (points, points[:, :3], room.T):
        out = torch.full((160, 160, 160), -1, device="cuda", dtype=torch.int32).permute(2, 1, 0)
        assert rbc.voxelize(given_points, reduction="count", out=out, **GRIDS["wide"]) is out
        assert torch.equal(out.cpu(), expected)
    batch = points.reshape(4, 5_000, 4)
    options = {"lengths": [5_000, 0, 17, 4_999], "reduction": "mean", **GRIDS["small"]}
    assert equal_bits(rbc.voxelize(batch, **options), rbc.voxelize(batch.cpu(), **options))


TSDF = {"truncation": 0.6, "origin": (-20, -20, -8), "voxel_size": 0.25, "shape": (160, 160, 64)}


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("weighting", ["constant", "inverse_square"])
@pytest.mark.parametrize("carve", [False, True])
def test_tsdf_has_the_same_bits_as_the_cpu(carve, weighting, dtype):
    points = sweep(60_000, dtype=dtype).reshape(3, 20_000, 4)
    sensors = torch.tensor([[0, 0, 0], [0.5, 0, 0], [0, 0.25, 0.1]], device="cuda")
    options = {"carve": carve, "weighting": weighting, "max_weight": 50, **TSDF}
    host = device = None, None
    for _ in range(2):
        host = rbc.voxelize_tsdf(
            points.cpu(), sensors.cpu(), tsdf=host[0], weight=host[1], **options
        )
        device = rbc.voxelize_tsdf(points, sensors, tsdf=device[0], weight=device[1], **options)
        for a, b in zip(device, host):
            assert a.is_cuda and equal_bits(a, b)
    assert bool((host[0] < 0).any()) and bool((host[0] > 0).any())


def test_voxelization_allocates_the_result_and_nothing_else():
    points, grid = sweep(), GRIDS["wide"]
    before = torch.cuda.memory_allocated()
    result, dropped = rbc.voxelize(
        points, reduction="count", return_num_points_outside=True, **grid
    )
    sizes = [(each.nbytes + 511) // 512 * 512 for each in (result, dropped)]
    assert torch.cuda.memory_allocated() - before == sum(sizes)


# ---- streams and graphs -------------------------------------------------------------------------


def test_the_current_stream_and_no_waiting():
    values, times, queries = example()
    expected = rbc.resample(values * 0 + 5, times, queries)
    torch.cuda.synchronize()
    for stream in (torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.default_stream()):
        values.fill_(1)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(DELAY)
            values.fill_(5)
            out = rbc.resample(values, times, queries)
            assert not stream.query()  # the call came back before the work was done
        stream.synchronize()
        assert torch.equal(out, expected)


def test_fusion_on_the_current_stream_and_no_waiting():
    streams, queries = sensors()
    values = streams[0].values
    values.fill_(5)
    expected = rbc.fuse(streams, queries)
    torch.cuda.synchronize()
    for stream in (torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.default_stream()):
        values.fill_(1)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(DELAY)
            values.fill_(5)
            out = rbc.fuse(streams, queries)
            assert not stream.query()  # the call came back before the work was done
        stream.synchronize()
        assert torch.equal(out, expected)


def test_voxelization_on_the_current_stream_and_no_waiting():
    points = sweep(50_000)
    scan, sensors = points.clone(), torch.zeros(3, device="cuda")
    calls = {
        "dense": lambda: [rbc.voxelize(points, reduction="mean", **GRIDS["wide"])],
        "sparse": lambda: by_name(
            rbc.voxelize_sparse(points, max_points=3, **GRIDS["wide"])
        ).values(),
        "tsdf": lambda: rbc.voxelize_tsdf(points, sensors, **TSDF),
    }
    for call in calls.values():
        expected = call()
        torch.cuda.synchronize()
        for stream in (torch.cuda.Stream(), torch.cuda.Stream(), torch.cuda.default_stream()):
            points.fill_(1)
            torch.cuda.synchronize()
            with torch.cuda.stream(stream):
                torch.cuda._sleep(DELAY)
                points.copy_(scan)
                got = call()
                assert not stream.query()  # the call came back before the work was done
            stream.synchronize()
            for a, b in zip(got, expected):
                assert torch.equal(a.nan_to_num(), b.nan_to_num())


def test_voxelization_on_a_stream_of_ones_own():
    points = sweep(50_000)
    expected = rbc.voxelize_tsdf(points, [0, 0, 0], **TSDF)
    count = rbc.voxelize(points, reduction="count", **GRIDS["wide"])
    torch.cuda.synchronize()
    with rbc.Context("cuda:0", stream=torch.cuda.Stream()) as context:
        torch.cuda._sleep(DELAY)  # before the zeros of the new volumes
        got = rbc.voxelize_tsdf(points, [0, 0, 0], backend=context, **TSDF)
        own = rbc.voxelize(points, reduction="count", backend=context, **GRIDS["wide"])
        context.synchronize()
        assert torch.equal(got[0], expected[0]) and torch.equal(got[1], expected[1])
        assert torch.equal(own, count)


def test_a_stream_of_ones_own():
    values, times, queries = example()
    expected = rbc.resample(values, times, queries)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    for given_stream in (stream, stream.cuda_stream):
        with rbc.Context("cuda:0", stream=given_stream) as context:
            out = rbc.resample(values, times, queries, backend=context)
            context.synchronize()
            assert torch.equal(out, expected)


def test_a_stream_of_ones_own_waits_for_the_reciprocal_of_std():
    values, times, queries = example()
    std = torch.full((32,), 2.0, device="cuda")
    expected = rbc.resample(values, times, queries) / 4
    torch.cuda.synchronize()
    with rbc.Context("cuda:0", stream=torch.cuda.Stream()) as context:
        torch.cuda._sleep(DELAY)
        std.fill_(4.0)
        out = rbc.resample(values, times, queries, std=std, backend=context)
        assert torch.equal(out, expected)


def test_graph_capture():
    values, times, queries = example()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        rbc.resample(values, times, queries)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out, mask = rbc.resample(values, times, queries, return_valid=True)
    for factor in (1.0, -3.0):
        values.mul_(factor)
        graph.replay()
        expected, expected_mask = rbc.resample(values, times, queries, return_valid=True)
        assert torch.equal(out, expected) and torch.equal(mask, expected_mask)


def test_fusion_in_a_graph():
    streams, queries = sensors()
    values, std = streams[0].values, torch.full((32,), 2.0, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        rbc.fuse(streams, queries)
        rbc.resample(values, streams[0].times, queries, std=std)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out, mask = rbc.fuse(streams, queries, return_valid=True)
        scaled = rbc.resample(values, streams[0].times, queries, std=std)
    for factor in (1.0, -3.0):
        values.mul_(factor)
        queries.mul_(0.9)
        std.mul_(2)
        graph.replay()
        expected, expected_mask = rbc.fuse(streams, queries, return_valid=True)
        assert torch.equal(out, expected) and torch.equal(mask, expected_mask)
        assert torch.equal(scaled, rbc.resample(values, streams[0].times, queries, std=std))


def test_voxelization_in_a_graph():
    points = sweep(50_000)
    scan, sensors = points.clone(), torch.zeros(3, device="cuda")
    tsdf, weight = torch.zeros(2, 160, 160, 64, device="cuda")

    def calls():
        sparse = rbc.voxelize_sparse(points, max_points=3, **GRIDS["wide"])
        rbc.voxelize_tsdf(points, sensors, tsdf=tsdf, weight=weight, **TSDF)
        modes = [rbc.voxelize(points, reduction=mode, **GRIDS["wide"]) for mode in MODES]
        return [*modes, *by_name(sparse).values()]

    with torch.cuda.stream(torch.cuda.Stream()):
        calls()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = calls()
    for factor in (1.0, -0.5):
        points.copy_(scan * factor)
        tsdf.zero_()
        weight.zero_()
        graph.replay()
        volume = tsdf.clone(), weight.clone()
        tsdf.zero_()
        weight.zero_()
        for a, b in zip([*captured, *volume], [*calls(), tsdf, weight]):
            assert torch.equal(a.nan_to_num(), b.nan_to_num())


def test_checking_cannot_be_captured_and_says_so():
    values, times, queries = example()
    out = torch.empty(8, 120, 32, device="cuda")
    rbc.resample(values, times, queries, out=out, check_times=True)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        with pytest.raises(rbc.RoboCacheError) as caught:
            rbc.resample(values, times, queries, out=out, check_times=True)
        rbc.resample(values, times, queries, out=out)
    assert caught.value.status == rbc.Status.UNSUPPORTED
    out.zero_()
    graph.replay()
    assert torch.equal(out, rbc.resample(values, times, queries))


def test_threads_with_streams_of_their_own():
    values, times, queries = example()
    expected = rbc.resample(values, times, queries)
    torch.cuda.synchronize()

    def work(_):
        with torch.cuda.stream(torch.cuda.Stream()):
            for _ in range(50):
                assert torch.equal(rbc.resample(values, times, queries), expected)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))  # raises what a thread raised


# ---- errors -------------------------------------------------------------------------------------


def test_devices_must_agree():
    values, times, queries = example()
    with pytest.raises(ValueError, match="^times: lives on device"):
        rbc.resample(values, times.cpu(), queries)
    with pytest.raises(ValueError, match="^query_times: lives on device"):
        rbc.resample(values, times, queries.cpu().numpy())
    with pytest.raises(ValueError, match="^values: lives on device"):
        rbc.resample(values, times, queries, backend="cpu")
    with pytest.raises(ValueError, match="^values: lives on device"):
        rbc.resample(values.cpu().numpy(), times, queries, backend="cuda")
    with pytest.raises(ValueError, match="^out: lives on device"):
        rbc.resample(values, times, queries, out=torch.empty(8, 120, 32))
    with pytest.raises(rbc.RoboCacheError, match="device 99 is not there"):
        rbc.resample(values, times, queries, backend="cuda:99")


def test_devices_of_streams_must_agree():
    values, times, queries = example()
    good = rbc.Stream(values, times)
    for other, name in (
        (rbc.Stream(values.cpu(), times), "values"),
        (rbc.Stream(values, times.cpu().numpy()), "times"),
        (rbc.Stream(values, times, mean=np.zeros(32)), "mean"),
        (rbc.Stream(values, times, std=np.ones(32)), "std"),
    ):
        with pytest.raises(ValueError, match=rf"^streams\[1\].{name}: lives on device"):
            rbc.fuse([good, other], queries)
    with pytest.raises(ValueError, match=r"^streams\[0\].values: lives on device"):
        rbc.fuse([good], queries, backend="cpu")
    with pytest.raises(ValueError, match="^query_times: lives on device"):
        rbc.fuse([good], queries.cpu())


def test_devices_of_clouds_must_agree():
    points, features = sweep(100), torch.ones(100, 2, device="cuda")
    grid = GRIDS["small"]
    with pytest.raises(ValueError, match="^features: lives on device"):
        rbc.voxelize(points, features.cpu(), reduction="sum", **grid)
    with pytest.raises(ValueError, match="^features: lives on device"):
        rbc.voxelize_sparse(points, features.cpu().numpy(), **grid)
    with pytest.raises(ValueError, match="^out: lives on device"):
        rbc.voxelize(points, out=torch.empty(16, 16, 16, dtype=torch.bool), **grid)
    with pytest.raises(ValueError, match="^batch_offsets: lives on device"):
        rbc.voxelize(points, batch_offsets=np.array([0, 100]), **grid)
    with pytest.raises(ValueError, match="^sensors: lives on device"):
        rbc.voxelize_tsdf(points, torch.zeros(3), **TSDF)
    with pytest.raises(ValueError, match="^points: lives on device"):
        rbc.voxelize(points, backend="cpu", **grid)


def test_a_std_of_0_on_the_device_gives_inf():
    values, times, queries = example()
    std = torch.ones(32, device="cuda")
    std[3] = 0
    out = rbc.resample(values, times, queries, std=std)
    assert bool(out[..., 3].isinf().all()) and bool(out[..., 4:].isfinite().all())
    with pytest.raises(ValueError, match="^std: channel 3 is 0"):
        rbc.resample(values, times, queries, std=std.tolist())


def test_lists_go_to_the_device():
    values, times, queries = example()
    out = rbc.resample(values, times, [0.25, 0.5], lengths=[200] * 8)
    assert out.is_cuda
    assert torch.equal(
        out,
        rbc.resample(values, times, torch.tensor([0.25, 0.5], dtype=torch.float64, device="cuda")),
    )


def test_checked_mode_finds_the_row_and_the_index():
    values, times, queries = example()
    out = torch.full((8, 120, 32), 9.0, device="cuda")
    checked = {"out": out, "check_times": True}
    bad = times.clone()
    bad[5, 17], bad[5, 18] = 0.75, 0.5
    bad[5, 19:] = 1.0
    bad[5, :17] = 0.0
    with pytest.raises(ValueError, match=r"^times: row 5 decreases at index 18 \(0.75 -> 0.5\)"):
        rbc.resample(values, bad, queries, **checked)
    bad = times.clone()
    bad[2, 100] = float("nan")
    with pytest.raises(ValueError, match="^times: row 2 is NaN at index 100"):
        rbc.resample(values, bad, queries, **checked)
    lengths = torch.full((8,), 200, device="cuda")
    lengths[3] = 201
    with pytest.raises(ValueError, match="^lengths: row 3 is 201, expected 0 to 200"):
        rbc.resample(values, times, queries, lengths=lengths, **checked)
    with pytest.raises(ValueError, match="^query_lengths: row 0 is -1, expected 0 to 120"):
        rbc.resample(values, times, queries, query_lengths=lengths.int() * 0 - 1, **checked)
    offsets = torch.tensor([0, 20, 10, 30, 40, 50, 60, 70, 200], device="cuda")
    with pytest.raises(ValueError, match=r"^batch_offsets: decrease at index 2 \(20 -> 10\)"):
        rbc.resample(values[0], times[0], queries, batch_offsets=offsets, **checked)
    good = rbc.Stream(values, times)
    with pytest.raises(ValueError, match=r"^streams\[1\].times: row 2 is NaN at index 100"):
        rbc.fuse([good, rbc.Stream(values, bad)], queries, check_times=True)
    assert bool((out == 9).all())


def test_unchecked_lengths_and_offsets_stay_inside():
    values, times, queries = example()
    wild = torch.tensor([-5, 10**9, 201, 0, 1, 2**31 - 1, -(2**31), 7], device="cuda")
    rbc.resample(values, times, queries, lengths=wild, query_lengths=wild)
    rbc.resample(values[0], times[0], queries, batch_offsets=torch.cat([wild, wild[:1]]))
    points, sensors = sweep(8_000), torch.zeros(3, device="cuda")
    for arguments in (
        {"points": points.reshape(8, 1_000, 4), "lengths": wild},
        {"points": points, "batch_offsets": torch.cat([wild, wild[:1]])},
    ):
        for mode in MODES:
            rbc.voxelize(reduction=mode, **arguments, **GRIDS["small"])
        rbc.voxelize_sparse(max_points=3, **arguments, **GRIDS["small"])
        rbc.voxelize_tsdf(sensors=sensors, **arguments, **TSDF)
    torch.cuda.synchronize()


# ---- neighbours ---------------------------------------------------------------------------------


class Producer:
    """A tensor that can only be read by DLPack, and that records the requested streams."""

    def __init__(self, tensor):
        self._tensor, self.streams = tensor, []

    def __dlpack_device__(self):
        return self._tensor.__dlpack_device__()

    def __dlpack__(self, *, stream=None, **options):
        self.streams.append(stream)
        return self._tensor.__dlpack__(stream=stream, **options)


def test_producers_are_asked_for_the_stream_of_the_call():
    tensors = example()
    expected = rbc.resample(*tensors)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    for handle, options in (
        (1, {}),  # the legacy stream
        (stream.cuda_stream, {"backend": rbc.Context("cuda:0", stream=stream)}),
    ):
        arrays = [Producer(each) for each in tensors]
        out = torch.zeros_like(expected)
        torch.cuda.synchronize()
        rbc.resample(*arrays, out=out, **options)
        torch.cuda.synchronize()
        assert torch.equal(out, expected)
        assert [set(each.streams) for each in arrays] == [{handle}] * 3
        with pytest.raises(TypeError, match="^lengths: is a list, expected an array on the GPU"):
            rbc.resample(*arrays, lengths=[200] * 8, out=out, **options)


def test_pinned_memory_is_host_memory():
    values, times, queries = example(device="cpu")
    out = rbc.resample(values.pin_memory(), times.pin_memory(), queries)
    assert torch.equal(out, rbc.resample(values, times, queries)) and not out.is_cuda


def in_child(queue, context, values, times, queries):
    try:
        context.synchronize()
    except rbc.RoboCacheError as error:
        queue.put((int(error.status), rbc.resample(values, times, queries)))
    else:
        queue.put((0, None))


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_cuda_context_does_not_survive_a_fork():
    context = rbc.Context("cuda")
    values, times, queries = (each.cpu().numpy() for each in example())
    expected = rbc.resample(values, times, queries)
    fork = multiprocessing.get_context("fork")
    queue = fork.Queue()
    child = fork.Process(target=in_child, args=(queue, context, values, times, queries))
    child.start()
    status, out = queue.get(timeout=60)
    child.join(60)
    assert status == rbc.Status.NOT_AVAILABLE and child.exitcode == 0
    np.testing.assert_array_equal(out, expected)
    context.synchronize()


def test_cupy():
    cupy = pytest.importorskip("cupy")
    tensors = example()
    expected = rbc.resample(*tensors)
    torch.cuda.synchronize()
    arrays = [cupy.from_dlpack(each) for each in tensors]
    out, mask = rbc.resample(*arrays, return_valid=True)
    assert isinstance(out, cupy.ndarray) and mask.dtype == cupy.bool_
    cupy.cuda.runtime.deviceSynchronize()
    assert torch.equal(torch.from_dlpack(out), expected)
    back = torch.from_dlpack(out)
    assert back.data_ptr() == out.data.ptr
    with cupy.cuda.Stream(non_blocking=True) as stream:
        out = rbc.resample(*arrays, dtype="float16")
        assert out.dtype == cupy.float16
        stream.synchronize()
    assert rbc.resample(arrays[0], arrays[1], [0.5]).shape == (8, 1, 32)

    points = sweep(1_000)
    expected = rbc.voxelize_sparse(points, max_points=2, **GRIDS["small"])
    field = rbc.voxelize_tsdf(points, [0, 0, 0], **TSDF)
    torch.cuda.synchronize()
    cloud = cupy.from_dlpack(points)
    voxels = rbc.voxelize_sparse(cloud, max_points=2, **GRIDS["small"])
    assert isinstance(voxels.grouped, cupy.ndarray)
    got = rbc.voxelize_tsdf(cloud, [0, 0, 0], **TSDF)
    cupy.cuda.runtime.deviceSynchronize()
    assert all(
        same_bits(cupy.asnumpy(array), by_name(expected)[name].cpu().numpy())
        for name, array in by_name(voxels).items()
    )
    assert all(torch.equal(torch.from_dlpack(a), b) for a, b in zip(got, field))


def test_jax():
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("jax has no GPU")
    tensors = [each.float() for each in example()]
    expected = rbc.resample(*tensors)
    torch.cuda.synchronize()
    arrays = [jax.dlpack.from_dlpack(each) for each in tensors]
    out = rbc.resample(*arrays)
    assert isinstance(out, jax.Array) and out.devices() == arrays[0].devices()
    assert torch.equal(torch.from_dlpack(out), expected)
    lists = {"lengths": [200] * 7 + [50], "mean": [0.5] * 32, "std": [2.0] * 32}
    out = rbc.resample(*arrays[:2], [0.25, 0.5], **lists)
    assert out.devices() == arrays[0].devices()
    queries = torch.tensor([0.25, 0.5], device="cuda")
    assert torch.equal(torch.from_dlpack(out), rbc.resample(*tensors[:2], queries, **lists))

    points = sweep(1_000)
    sensors = torch.zeros(3, device="cuda")
    expected = rbc.voxelize(points, reduction="mean", **GRIDS["small"])
    field = rbc.voxelize_tsdf(points, sensors, **TSDF)
    torch.cuda.synchronize()
    cloud, origin = (jax.dlpack.from_dlpack(each) for each in (points, sensors))
    out = rbc.voxelize(cloud, reduction="mean", **GRIDS["small"])
    assert torch.equal(torch.from_dlpack(out).nan_to_num(), expected.nan_to_num())
    for given_sensors in (origin, [0.0, 0.0, 0.0]):
        got = rbc.voxelize_tsdf(cloud, given_sensors, **TSDF)
        assert all(torch.equal(torch.from_dlpack(a), b) for a, b in zip(got, field))


def test_several_devices():
    if torch.cuda.device_count() < 2:
        pytest.skip("one device")
    tensors = example(device="cuda:1")
    out = rbc.resample(*tensors)
    assert out.device == torch.device("cuda:1") and torch.cuda.current_device() == 0
    assert torch.equal(out.cpu(), rbc.resample(*example()).cpu())
    with pytest.raises(ValueError, match="^values: lives on device"):
        rbc.resample(*tensors, backend="cuda:0")


# ---- what torch compiles and captures ------------------------------------------------------------


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_compiled_on_cuda(mode):
    torch._dynamo.reset()
    values, times, queries = example()
    other = values[:, ::4, :3].contiguous().requires_grad_()
    layer = torch.nn.Linear(35, 4).cuda()

    def model(values, other):
        streams = [
            rbc.torch.Stream(values, times, max_gap=0.1),
            rbc.torch.Stream(other, times[:, ::4], method="cubic", clock_offset=0.01),
        ]
        out, mask = rbc.torch.fuse(streams, queries, return_valid=True)
        return layer(out) * mask[..., :1]

    compiled = torch.compile(model, fullgraph=True, mode=mode)
    for _ in range(4):  # a run by itself, the capture, and replays
        values.mul_(1.25)
        expected, got = model(values, other), compiled(values, other)
        torch.testing.assert_close(got, expected)
        torch.testing.assert_close(
            torch.autograd.grad(got.sum(), other)[0], torch.autograd.grad(expected.sum(), other)[0]
        )


def test_voxels_are_replayed_in_compiled_code():
    torch._dynamo.reset()

    def function(points):
        voxels = rbc.torch.voxelize_sparse(points, max_voxels=500, **GRIDS["small"])
        return voxels.features, voxels.points_per_voxel, voxels.point_to_voxel

    compiled = torch.compile(function, fullgraph=True, mode="reduce-overhead")
    points = sweep(20_000)
    for _ in range(4):
        points.mul_(0.9)
        expected = function(points)
        for a, b in zip(compiled(points), expected):
            assert equal_bits(a, b.cpu())


def test_a_list_of_sensors_is_refused_in_a_capture_and_a_tensor_is_not():
    points = sweep(10_000)
    sensors = torch.zeros(3, device="cuda")
    volumes = rbc.voxelize_tsdf(points, sensors, **TSDF)  # which grows the workspace
    expected = [each.clone() for each in volumes]
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        with pytest.raises(ValueError, match="^sensors: is a list, .* to a tensor on cuda"):
            rbc.voxelize_tsdf(points, [0, 0, 0], **TSDF)
        out = rbc.voxelize_tsdf(points, sensors, **TSDF)
    graph.replay()
    torch.cuda.synchronize()
    assert all(torch.equal(a, b) for a, b in zip(out, expected))
