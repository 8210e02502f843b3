"""Clouds in robocache.torch: the same as the plain calls, compiled, exported, mapped; gradients."""

import io
import shutil

import pytest

import robocache as rbc

torch = pytest.importorskip("torch")
if not hasattr(torch.library, "opcheck"):
    pytest.skip("torch without opcheck", allow_module_level=True)
tree_leaves = pytest.importorskip("torch.utils._pytree").tree_leaves

needs_vmap = pytest.mark.skipif(
    not hasattr(torch.library, "register_vmap"), reason="torch without register_vmap"
)
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")


def random(*shape, seed=1):
    return torch.rand(shape, generator=torch.Generator().manual_seed(seed))


DEPTH = random(2, 6, 8) * 3 + 0.2
DEPTH[:, 2, 3] = 0
DEPTH[1, 0, :4] = float("nan")
CAMERA = torch.tensor([7.0, 8.0, 3.5, 2.5], dtype=torch.float64)
CAMERAS = CAMERA + torch.tensor([[0.0], [1.0]], dtype=torch.float64)
POSE = torch.tensor(
    [[0.8, -0.6, 0, 0.1], [0.6, 0.8, 0, -0.2], [0, 0, 1, 0.3], [0, 0, 0, 1]], dtype=torch.float64
)
COLORS = (random(2, 6, 8, 2, seed=2) * 255).to(torch.uint8)
POINTS = random(2, 40, 4, seed=3)
ROWS = torch.tensor([[3, -1, 0, 3], [39, 39, 2, -1]])
CROP = (-0.9, -0.8, 0.5, 0.9, 0.8, 2.9)


def unprojected(depth, colors):
    return rbc.torch.unproject(
        depth, CAMERA, POSE, colors=colors, crop=CROP, color_divisor=255, pixel_offset=0.5
    )


def with_little_room(depth):
    return rbc.torch.unproject(
        depth, [7.0, 8.0, 3.5, 2.5], max_points=9, pixel_stride=2, depth_scale=1.25, dtype="float64"
    )


def chosen(points):
    return rbc.torch.farthest_points(points, 5, start_index=[1, 2], lengths=[40, 3])


def chosen_with_distances(points):
    return rbc.torch.farthest_points(points, 5, start_index=7, return_distances=True)


def taken(values, rows):
    return rbc.torch.take_rows(values, rows, fill_value=-2)


def line(depth, colors):
    """From depth images to few points."""
    cloud = unprojected(depth, colors)
    rows = rbc.torch.farthest_points(cloud.points.detach(), 6, lengths=cloud.num_points)
    return rbc.torch.take_rows(cloud.points, rows) * 2


CALLS = {
    "unproject": (unprojected, (DEPTH, COLORS)),
    "unproject-room": (with_little_room, (DEPTH[0],)),
    "farthest": (chosen, (POINTS,)),
    "farthest-distances": (chosen_with_distances, (POINTS[0].double(),)),
    "take": (taken, (POINTS, ROWS)),
    "take-of-bytes": (taken, (COLORS[0, 0].view(torch.int8), ROWS.clamp(max=5))),
    "line": (line, (DEPTH, COLORS)),
}
of_each_call = pytest.mark.parametrize(("function", "arrays"), CALLS.values(), ids=CALLS)


def assert_same(got, expected):
    got, expected = tree_leaves(got), tree_leaves(expected)
    assert len(got) == len(expected) > 0
    for a, b in zip(got, expected):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert torch.equal(a.detach(), b.detach())


CHECKED = {
    "unproject": (DEPTH, CAMERA, None, None, ""),
    "unproject-all": (
        *(DEPTH, CAMERAS, POSE, COLORS),
        "crop=-1,-1,0,1,1,3;pixel_stride=2;max_points=7;pixel_offset=0.5;dtype=float64",
    ),
    "farthest_points": (POINTS, None, None, None, "k=3"),
    "farthest_points-packed": (
        *(POINTS[0], torch.tensor([1, 0]), None, torch.tensor([0, 9, 40])),
        "k=12;return_distances=True",
    ),
    "take_rows": (POINTS, ROWS, "fill_value=3"),
    "take_rows-of-one": (POINTS[0], ROWS.int(), ""),
}


@pytest.mark.parametrize("name", CHECKED)
def test_opcheck(name):
    assert rbc.torch  # which makes the operators
    operator = getattr(torch.ops.robocache, name.partition("-")[0]).default
    first, *rest = CHECKED[name]
    if "farthest" not in name:
        first = first.nan_to_num(nan=0.0).requires_grad_()
    torch.library.opcheck(operator, (first, *rest))


@of_each_call
def test_in_a_dispatch_mode_they_are_the_operators(function, arrays):
    class Recorded(torch.utils._python_dispatch.TorchDispatchMode):
        names = ()

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.names += (func.name(),)
            return func(*args, **(kwargs or {}))

    with Recorded() as recorded:
        got = function(*arrays)
    assert any(name.startswith("robocache::") for name in recorded.names)
    assert_same(got, function(*arrays))


@needs_compiler
def test_compiled_in_one_graph():
    torch._dynamo.reset()
    compiled = torch.compile(line, fullgraph=True)
    assert_same(compiled(DEPTH, COLORS), line(DEPTH, COLORS))


@pytest.mark.parametrize("name", ["unproject-room", "farthest", "farthest-distances"])
def test_traced_in_one_graph(name):
    function, arrays = CALLS[name]
    torch._dynamo.reset()
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    assert_same(compiled(*arrays), function(*arrays))


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *arrays):
        return self.function(*arrays)


@pytest.mark.parametrize("name", ["unproject", "farthest", "take"])
def test_exported_saved_and_loaded(name):
    function, arrays = CALLS[name]
    file = io.BytesIO()
    torch.export.save(torch.export.export(Module(function), arrays, strict=False), file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    assert_same(loaded(*arrays), function(*arrays))
    others = (arrays[0].flip(0), *arrays[1:])
    assert_same(loaded(*others), function(*others))


def starts(points, start):
    return rbc.torch.farthest_points(points, 4, start_index=start, return_distances=True)


MAPPED = {
    "images": (with_little_room, (DEPTH,), 0),
    "batches": (unprojected, (DEPTH.expand(3, 2, 6, 8) * 0.9, COLORS), (0, None)),
    "cameras": (lambda c: rbc.torch.unproject(DEPTH[0], c), (CAMERAS,), 0),
    "poses": (lambda p: rbc.torch.unproject(DEPTH, CAMERA, p), (POSE + CAMERAS[:, :1, None],), 0),
    "clouds": (chosen_with_distances, (POINTS,), 0),
    "batches of clouds": (chosen, (torch.stack([POINTS, POINTS.flip(1), -POINTS]),), 0),
    "starts": (starts, (POINTS, torch.tensor([[1, 4], [5, 6], [7, 8]])), (None, 0)),
    "rows": (taken, (POINTS, ROWS), 0),
    "rows of values": (lambda v: taken(v, ROWS[0]), (POINTS,), 0),
    "values of rows": (lambda r: taken(POINTS[0], r), (ROWS,), 0),
    "rows of one array": (taken, (POINTS, ROWS), (0, None)),
    "gradient": (
        torch.func.grad(lambda v: taken(v, ROWS[0]).square().sum()),
        (POINTS,),
        0,
    ),
}


@needs_vmap
@pytest.mark.parametrize(("function", "arrays", "dims"), MAPPED.values(), ids=MAPPED)
def test_vmap_is_a_loop(function, arrays, dims):
    got = tree_leaves(torch.vmap(function, dims)(*arrays))
    dims = dims if isinstance(dims, tuple) else (dims,) * len(arrays)
    size = next(array.shape[dim] for array, dim in zip(arrays, dims) if dim is not None)
    loop = [
        tree_leaves(function(*[a if d is None else a[n] for a, d in zip(arrays, dims)]))
        for n in range(size)
    ]
    assert_same(got, [torch.stack(each) for each in zip(*loop)])


def test_gradients_are_those_of_finite_differences():
    depth = (torch.arange(12, dtype=torch.float32).reshape(3, 4) + 2).requires_grad_()
    values = POINTS[0, :6].double().requires_grad_()
    rows = torch.tensor([5, -1, 2, 5])
    assert torch.autograd.gradcheck(
        lambda v: rbc.torch.take_rows(v, rows), values, check_undefined_grad=False
    )
    assert torch.autograd.gradgradcheck(lambda v: rbc.torch.take_rows(v, rows).sin(), values)
    # Points are linear in the depth. float64 is not a dtype of depth, so gradcheck cannot be used.
    options = {"crop": (-9, -9, 3, 9, 9, 12), "dtype": "float64"}
    cloud = rbc.torch.unproject(depth, CAMERA, POSE, **options)
    weights = random(*cloud.points.shape, seed=9).double()
    (gradient,) = torch.autograd.grad((cloud.points * weights).sum(), depth)
    kept = torch.zeros(12, dtype=torch.bool)
    kept[cloud.pixels[: int(cloud.num_points)]] = True
    assert 0 < kept.sum() < 12
    assert torch.equal(gradient.flatten() != 0, kept)
    for pixel in cloud.pixels[: int(cloud.num_points)].tolist():
        moved = depth.detach().clone()
        moved.view(-1)[pixel] += 2**-6
        other = rbc.unproject(moved, CAMERA, POSE, **options)
        change = ((other.points - cloud.points.detach()) * weights).sum() * 2**6
        torch.testing.assert_close(gradient.flatten()[pixel].double(), change, rtol=1e-5, atol=1e-6)


@needs_compiler
def test_gradients_of_the_compiled_line():
    depth = DEPTH.nan_to_num(nan=0.0).requires_grad_()
    torch._dynamo.reset()
    expected = torch.autograd.grad(line(depth, COLORS).sum(), depth)
    compiled = torch.compile(line, fullgraph=True, backend="aot_eager")
    assert_same(torch.autograd.grad(compiled(depth, COLORS).sum(), depth), expected)
    assert expected[0].count_nonzero() > 0


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: rbc.torch.farthest_points(x, 3), "points: requires grad, .* points.detach"),
        (
            lambda x: rbc.torch.unproject(DEPTH, x[0, 0]),
            "intrinsics: requires grad, .* intrinsics.detach",
        ),
        (
            lambda x: rbc.torch.unproject(x, [1, 1, 0, 0], out=x),
            "out: not supported in robocache.torch",
        ),
        (lambda x: rbc.torch.take_rows(x, [1, 2]), "indices: is a list, expected an array"),
        (lambda x: rbc.torch.unproject(x, [0.0, 1, 0, 0]), "intrinsics: fx of image 0 is 0"),
        (lambda x: rbc.torch.unproject([[1.0]], CAMERA), "depth: is a list, expected a torch.T"),
        (lambda x: rbc.torch.take_rows(x, torch.tensor([[99], [0]])), "indices: .* 99"),
    ],
)
def test_refused(function, message):
    with pytest.raises((TypeError, ValueError), match=message):
        function(POINTS.clone().requires_grad_())


@pytest.mark.skipif(
    not torch.cuda.is_available() or bool(rbc.info().cuda_unavailable),
    reason="no CUDA device that torch and RoboCache can use",
)
def test_the_line_in_a_graph_of_cuda():
    camera, pose, depth = CAMERA.cuda(), POSE.cuda(), DEPTH.cuda()

    def few(depth, camera, pose):
        cloud = rbc.torch.unproject(depth, camera, pose, crop=CROP)
        rows = rbc.torch.farthest_points(cloud.points, 6, lengths=cloud.num_points)
        return rbc.torch.take_rows(cloud.points, rows)

    with torch.cuda.stream(torch.cuda.Stream()):
        few(depth, camera, pose)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = few(depth, camera, pose)
    for factor in (1.0, 0.8):
        depth.copy_(DEPTH * factor)
        graph.replay()
        assert torch.equal(out.cpu(), few(DEPTH * factor, CAMERA, POSE))
