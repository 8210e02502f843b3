"""The operators of robocache.torch: compiled, exported, mapped by vmap; the gradients of fusion."""

import copy
import io
import pickle
import shutil

import numpy as np
import pytest
from hypothesis import given, settings

import robocache as rbc
from fuse_problems import problems as fusions
from random_share import fast_gradients, random_share

torch = pytest.importorskip("torch")
pytest.importorskip("torch.library", reason="torch without operators")
if not hasattr(torch.library, "opcheck"):
    pytest.skip("torch without opcheck", allow_module_level=True)
tree_leaves = pytest.importorskip("torch.utils._pytree").tree_leaves

GRID = {"origin": (0, 0, 0), "voxel_size": 0.5, "shape": (8, 8, 8)}
GRID_TEXT = "origin=0,0,0;voxel_size=0.5;shape=8,8,8"
needs_vmap = pytest.mark.skipif(
    not hasattr(torch.library, "register_vmap"), reason="torch without register_vmap"
)
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ is not installed")


def random(*shape, seed=1, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def ascending(*shape, seed=2):
    return random(*shape, seed=seed).abs().cumsum(-1)


VALUES, TIMES, QUERIES = random(2, 7, 3), ascending(2, 7), random(2, 5).abs() * 6
OTHER, SLOW = random(2, 4, 2, seed=3), ascending(2, 4, seed=4)
POINTS = random(2, 50, 4).abs() * 2
COUNTS = torch.tensor([7, 4])


def resampled(values, times, queries):
    return rbc.torch.resample(values, times, queries)


def with_all_options(values, times, queries):
    return rbc.torch.resample(
        values, times, queries, method=[(1, 2, "cubic"), (0, 1, "next")], outside="fill",
        fill_value=float("nan"), max_gap=1.5, mean=[0.1, 0.2, 0.3], std=[0.3, 2.0, 3.0],
        dtype="float64", lengths=COUNTS, return_valid=True, check_times=False,
    )  # fmt: skip


def fused(values, other, times, slow, queries):
    streams = [
        rbc.torch.Stream(values, times, method=[(0, 2, "linear"), (2, 1, "nearest")], max_gap=1.5),
        rbc.torch.Stream(other, slow, method="previous", clock_offset=0.3, std=[0.3, 7.0]),
    ]
    return rbc.torch.fuse(streams, queries, return_valid=True)


def dense(points):
    return rbc.torch.voxelize(points, reduction="mean", return_num_points_outside=True, **GRID)


def sparse(points):
    return rbc.torch.voxelize_sparse(points, max_voxels=64, max_points=3, **GRID)


def sparse_without_features(points):
    rows = {"return_point_to_voxel": False}
    return rbc.torch.voxelize_sparse(points, points[..., :1], reduction=None, **rows, **GRID)


CALLS = {
    "resample": (resampled, (VALUES, TIMES, QUERIES)),
    "resample-options": (with_all_options, (VALUES, TIMES, QUERIES)),
    "fuse": (fused, (VALUES, OTHER, TIMES, SLOW, QUERIES)),
    "voxelize": (dense, (POINTS,)),
    "voxelize_sparse": (sparse, (POINTS,)),
    "voxelize_sparse-counts": (sparse_without_features, (POINTS,)),
}
of_each_call = pytest.mark.parametrize(("function", "arrays"), CALLS.values(), ids=CALLS)


def assert_same(got, expected):
    """The same structure, and the same bits."""
    got, expected = tree_leaves(got), tree_leaves(expected)
    assert len(got) == len(expected) > 0
    for a, b in zip(got, expected):
        if b is None:
            assert a is None
        else:
            assert a.dtype == b.dtype and a.shape == b.shape
            assert torch.equal(*[each.detach().nan_to_num(nan=-77.0) for each in (a, b)])
            assert torch.equal(a.isnan(), b.isnan())


# ---- the operators by themselves ----------------------------------------------------------------

NONE = (None, None)
CHECKED = {
    "resample": (VALUES, TIMES, QUERIES, *[None] * 7, ""),
    "resample-options": (
        *(VALUES, TIMES, QUERIES, COUNTS, None, None, torch.ones(3), torch.ones(3)),
        *(TIMES > 0.5, None),
        "method=0:1:cubic,1:2:next;dtype=float64;return_valid=True",
    ),
    "resample-packed": (
        *(VALUES[0], TIMES[0], QUERIES, None, None, torch.tensor([0, 3, 7]), *[None] * 4, ""),
    ),
    "resample_backward": (
        *(QUERIES[..., None], TIMES, QUERIES, *[None] * 4, TIMES > 1, None),
        *([2, 7, 1], torch.half, ""),
    ),
    "fuse": (
        *([VALUES, OTHER], [TIMES, SLOW], QUERIES, [None, COUNTS.clamp(max=4)], NONE, NONE, NONE),
        *(
            [None, SLOW > 1],
            NONE,
            None,
            ["", "method=nearest;clock_offset=0.25"],
            "return_valid=True",
        ),
    ),
    "fuse-dtypes": (
        *([VALUES.half(), OTHER.bfloat16()], [TIMES, SLOW], QUERIES, *[NONE] * 6),
        *(None, ["", ""], ""),
    ),
    "voxelize": (POINTS, None, None, None, GRID_TEXT),
    "voxelize-sum": (
        POINTS,
        None,
        COUNTS,
        None,
        f"reduction=sum;return_num_points_outside=True;{GRID_TEXT}",
    ),
    "voxelize_sparse": (POINTS, None, None, None, f"max_voxels=9;max_points=2;{GRID_TEXT}"),
    "voxelize_sparse-all": (POINTS, None, None, None, f"reduction=None;{GRID_TEXT}"),
    "voxelize_sparse-rows": (
        *(POINTS, None, None, None),
        f"return_point_to_voxel=False;{GRID_TEXT}",
    ),
}


@pytest.mark.parametrize("name", CHECKED)
def test_opcheck(name):
    operator = getattr(rbc.torch.OPS, name.partition("-")[0])
    arguments = [list(each) if isinstance(each, tuple) else each for each in CHECKED[name]]
    if "voxelize" not in name:
        first = arguments[0]
        leaves = [each.clone().requires_grad_() for each in tree_leaves(first)]
        arguments[0] = leaves if isinstance(first, list) else leaves[0]
    torch.library.opcheck(operator, tuple(arguments))


@of_each_call
def test_without_anything_to_see_them_they_are_the_plain_calls(function, arrays, monkeypatch):
    """That takes a third of the time."""
    expected = function(*arrays)
    monkeypatch.setattr(rbc.torch, "OPS", None)
    assert_same(function(*arrays), expected)


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


# ---- torch.compile and torch.export -------------------------------------------------------------


def operators():
    assert rbc.torch  # which makes them when it is imported
    return torch.ops.robocache


def test_the_operator_itself_takes_defaults():
    operator = operators().resample
    expected = rbc.resample(VALUES, TIMES, QUERIES)
    assert torch.equal(operator(VALUES, TIMES, QUERIES)[0], expected)
    out, mask = operator(VALUES, TIMES, QUERIES, options="return_valid=True")
    assert torch.equal(out, expected)
    assert mask.shape == QUERIES.shape
    graded = VALUES.clone().requires_grad_()
    operator(graded, TIMES, QUERIES)[0].sum().backward()
    assert graded.grad.shape == VALUES.shape
    torch.library.opcheck(operator.default, (graded, TIMES, QUERIES))


@needs_vmap
def test_the_operator_itself_takes_defaults_under_vmap():
    operator = operators().resample
    values = torch.stack([VALUES, VALUES + 1])
    out, _ = torch.vmap(operator, in_dims=(0, None, None))(values, TIMES, QUERIES)
    assert torch.equal(out[1], rbc.resample(VALUES + 1, TIMES, QUERIES))


def test_numbers_that_torch_negates_late_are_negated():
    late = torch.complex(VALUES, VALUES).conj().imag
    assert late.is_neg()
    out, _ = operators().resample(late, TIMES, QUERIES)
    assert torch.equal(out, rbc.resample(-VALUES, TIMES, QUERIES))


@needs_compiler
@of_each_call
def test_compiled_in_one_graph(function, arrays):
    torch._dynamo.reset()
    compiled = torch.compile(function, fullgraph=True)
    assert_same(compiled(*arrays), function(*arrays))


def with_neighbours(values, other, times, slow, queries):
    """Operations that the compiler may fuse around the operators, without changing them."""
    out, mask = fused(values * 2, other, times, slow, queries)
    return torch.where(mask[..., :1], out, 0.0) * 3


@needs_compiler
def test_gradients_of_compiled_code():
    torch._dynamo.reset()
    arrays = (VALUES.clone().requires_grad_(), OTHER.clone().requires_grad_(), TIMES, SLOW, QUERIES)
    compiled = torch.compile(with_neighbours, fullgraph=True)
    expected, got = with_neighbours(*arrays), compiled(*arrays)
    assert_same(got, expected)
    upstream = random(*expected.shape, seed=5)
    assert_same(
        torch.autograd.grad(got, arrays[:2], upstream),
        torch.autograd.grad(expected, arrays[:2], upstream),
    )


class Aligned(torch.nn.Module):
    """Resampling before a layer, as in a model."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 4)

    def forward(self, values, times, queries):
        return self.layer(rbc.torch.resample(values, times, queries, max_gap=2.0))


@needs_compiler
@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_a_model_is_trained_compiled(mode):
    torch._dynamo.reset()
    model = Aligned()
    compiled = torch.compile(model, fullgraph=True, mode=mode)
    losses = []
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    for _ in range(5):
        optimizer.zero_grad()
        loss = compiled(VALUES, TIMES, QUERIES).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]


def test_changing_shapes_make_no_more_than_two_graphs():
    torch._dynamo.reset()
    graphs = []

    def counted(graph, inputs):
        graphs.append(graph)
        return graph

    compiled = torch.compile(resampled, fullgraph=True, backend=counted)
    for samples in (4, 5, 6, 9):
        arrays = random(2, samples, 3), ascending(2, samples), random(2, samples + 1).abs()
        assert_same(compiled(*arrays), resampled(*arrays))
    assert len(graphs) <= 2


def test_lists_and_streams_from_outside_of_a_graph():
    torch._dynamo.reset()
    outside = rbc.Stream(OTHER, SLOW, method="nearest", lengths=[4, 2])

    def function(values):
        streams = [outside, rbc.torch.Stream(values, TIMES, lengths=[7, 3], std=[0.3, 2, 3])]
        return rbc.torch.fuse(streams, [0.5, 1.5, 2.5])

    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    expected = rbc.fuse(
        [outside, rbc.Stream(VALUES, TIMES, lengths=[7, 3], std=[0.3, 2, 3])], [0.5, 1.5, 2.5]
    )
    assert_same(compiled(VALUES), expected)


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *arrays):
        return self.function(*arrays)


@pytest.mark.parametrize("strict", [False, True])
@of_each_call
def test_exported_saved_and_loaded(function, arrays, strict):
    program = torch.export.export(Module(function), arrays, strict=strict)
    names = {str(node.target) for node in program.graph.nodes}
    assert any(name.startswith("robocache.") for name in names)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    loaded = torch.export.load(file).module()
    expected = function(*arrays)
    got = loaded(*arrays)
    assert type(got) is type(expected)
    assert_same(got, expected)
    others = [each.flip(0) for each in arrays]  # nothing of the example's numbers stayed in it
    assert_same(loaded(*others), function(*others))


def test_exported_with_any_shapes():
    samples, queries = torch.export.Dim("S", min=2), torch.export.Dim("T")
    shapes = ({1: samples}, {1: samples}, {1: queries})
    program = torch.export.export(
        Module(resampled), (VALUES, TIMES, QUERIES), dynamic_shapes=(shapes,)
    )
    arrays = random(2, 31, 3), ascending(2, 31), random(2, 1).abs()
    assert_same(program.module()(*arrays), resampled(*arrays))


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda v: rbc.torch.resample(v, TIMES, QUERIES, method="spline"), "method: is 'spline'"),
        (lambda v: rbc.torch.resample(v, TIMES, QUERIES, smooth=3), "keyword argument 'smooth'"),
        (lambda v: rbc.torch.resample(v[0, 0], TIMES, QUERIES), "values: rank is 1"),
        (lambda v: rbc.torch.resample(v, TIMES, 0.5), "query_times: is a float, expected an array"),
        (lambda v: rbc.torch.resample(v, TIMES.long(), [0.5]), "query_times: is a list of floats"),
        (
            lambda v: rbc.torch.resample(v, TIMES, QUERIES, out=v),
            "out: not supported in robocache.torch",
        ),
        (
            lambda v: rbc.torch.resample(v, TIMES, QUERIES, backend=CONTEXT),
            "backend: is a Context, which a graph cannot store",
        ),
        (
            lambda v: rbc.torch.voxelize(v, origin=v[0, 0], voxel_size=1, shape=(2, 2, 2)),
            "origin: is a Tensor, expected numbers, which become part of",
        ),
        (lambda v: rbc.torch.resample(v.requires_grad_(), v[..., 0], QUERIES), "times: requires"),
        (lambda v: dense(v.requires_grad_()), "points: requires grad, .* pass points.detach"),
    ],
)
def test_refused_while_a_graph_is_made(function, message):
    with pytest.raises((TypeError, ValueError), match=message):
        torch.export.export(Module(function), (VALUES.clone(),), strict=False)


CONTEXT = rbc.Context("cpu")


# ---- vmap ---------------------------------------------------------------------------------------

MANY = random(4, 7, 3)
KNOTS, CLOCK = torch.arange(7.0), random(5).abs() * 6
OWN_KNOTS = ascending(4, 7)
IN_BATCHES = random(3, 4, 7, 2)


def of(**options):
    return lambda *arrays: rbc.torch.resample(*arrays, **options)


def with_lengths(values, times, queries, lengths, query_lengths):
    options = {"lengths": lengths, "query_lengths": query_lengths, "return_valid": True}
    return rbc.torch.resample(values, times, queries, outside="fill", **options)


def weighted(values):
    return rbc.torch.resample(values, KNOTS, CLOCK, method="cubic", std=[0.5, 2, 3]).sin().sum()


def fused_and_weighted(values):
    streams = [rbc.torch.Stream(values, KNOTS, clock_offset=0.25), rbc.torch.Stream(MANY[0], KNOTS)]
    return rbc.torch.fuse(streams, CLOCK).sin().sum()


def masked_fusion(values, queries):
    streams = [
        rbc.torch.Stream(values, KNOTS),
        rbc.torch.Stream(values.double(), KNOTS, method="next", clock_offset=0.5, lengths=None),
    ]
    return rbc.torch.fuse(streams, queries, return_valid=True)


def fusion_of_batches(values, lengths):
    streams = [
        rbc.torch.Stream(values, KNOTS, lengths=lengths),
        rbc.torch.Stream(MANY, OWN_KNOTS),
    ]
    return rbc.torch.fuse(streams, CLOCK, query_lengths=[5, 4, 3, 0])


def fusion_of_packed(offsets):
    streams = [rbc.torch.Stream(MANY.reshape(28, 3), torch.arange(28.0), batch_offsets=offsets)]
    return rbc.torch.fuse(streams, CLOCK * 4, return_valid=True)


MAPPED = {
    "values": (lambda v: resampled(v, KNOTS, CLOCK), (MANY,), 0),
    "times": (lambda t: resampled(MANY[0], t, CLOCK), (ascending(4, 7),), 0),
    "times-of-a-batch": (lambda t: resampled(MANY, t, CLOCK), (ascending(3, 4, 7),), 0),
    "queries": (lambda q: resampled(MANY, KNOTS, q), (random(6, 5).abs(),), 0),
    "all": (of(return_valid=True), (MANY, ascending(4, 7).T, random(4, 5).abs()), (0, 1, 0)),
    "last-dimension": (of(), (random(7, 3, 4), KNOTS, CLOCK), (-1, None, None)),
    "lengths": (
        with_lengths,
        (
            *(IN_BATCHES, ascending(3, 7), CLOCK, torch.arange(12).reshape(3, 4) % 8),
            torch.tensor([5, 3, 0, 1]),
        ),
        (0, 0, None, 0, None),
    ),
    "std": (lambda s: of(std=s)(MANY, KNOTS, CLOCK), (random(3, 3).abs() + 0.5,), 0),
    "packed": (
        lambda o: of(batch_offsets=o)(MANY.reshape(28, 3), torch.arange(28.0), CLOCK * 4),
        (torch.tensor([[0, 7, 28], [1, 3, 20]]),),
        0,
    ),
    "gradient": (torch.func.grad(weighted), (MANY,), 0),
    "gradient-of-a-batch": (torch.func.grad(weighted), (random(3, 4, 7, 3),), 0),
    "jacobian": (torch.func.jacrev(lambda v: resampled(v, KNOTS, CLOCK)), (MANY,), 0),
    "fuse": (masked_fusion, (MANY, random(4, 5).abs()), 0),
    "fuse-batches": (
        fusion_of_batches,
        (random(3, 4, 7, 1), torch.arange(12).reshape(3, 4) % 8),
        0,
    ),
    "fuse-packed": (fusion_of_packed, (torch.tensor([[0, 7, 28], [1, 3, 20]]),), 0),
    "fuse-gradient": (torch.func.grad(fused_and_weighted), (MANY,), 0),
    "voxelize": (dense, (POINTS,), 0),
    "voxelize-batches": (dense, (random(3, 2, 20, 3).abs(),), 0),
    "voxelize-features": (
        lambda f: rbc.torch.voxelize(POINTS, f, reduction="sum", **GRID),
        (random(3, 2, 50, 2),),
        0,
    ),
    "voxelize_sparse": (sparse, (POINTS,), 0),
}


@needs_vmap
@pytest.mark.parametrize(("function", "arrays", "dims"), MAPPED.values(), ids=MAPPED)
def test_vmap_is_a_loop(function, arrays, dims):
    got = torch.vmap(function, dims)(*arrays)
    dims = dims if isinstance(dims, tuple) else (dims,) * len(arrays)
    size = next(array.shape[dim] for array, dim in zip(arrays, dims) if dim is not None)
    loop = [
        function(*[a if d is None else a.select(d, n) for a, d in zip(arrays, dims)])
        for n in range(size)
    ]
    leaves = [tree_leaves(each) for each in loop]
    assert_same(tree_leaves(got), [None if e[0] is None else torch.stack(e) for e in zip(*leaves)])


@needs_vmap
def test_vmap_folds_the_batch_into_one_call(monkeypatch):
    calls = []
    plain = rbc.torch._plain_resample

    def counted(*arguments, **options):
        calls.append(arguments[0].shape)
        return plain(*arguments, **options)

    monkeypatch.setattr("robocache.torch._operators._plain_resample", counted)
    torch.vmap(torch.vmap(lambda v: resampled(v, KNOTS, CLOCK)))(IN_BATCHES)
    assert calls == [(12, 7, 2)]


@needs_vmap
@needs_compiler
def test_vmap_in_compiled_code():
    torch._dynamo.reset()
    mapped = torch.vmap(lambda v: resampled(v, KNOTS, CLOCK))
    compiled = torch.compile(mapped, fullgraph=True, backend="aot_eager")
    assert_same(compiled(MANY), mapped(MANY))


# ---- the gradient of fusion ---------------------------------------------------------------------


def two_streams(time_dtype=torch.float64):
    """Values, times and queries of two streams of 7 and 5 samples, in float64."""
    generator = torch.Generator().manual_seed(6)
    values = [
        torch.randn(2, samples, 3, generator=generator, dtype=torch.float64) for samples in (7, 5)
    ]
    times = [
        torch.tensor([[0, 0, 1, 2, 2, 4, 7], [-3, 0, 1, 2, 5, 6, 6]]) * 4,
        torch.tensor([0, 3, 8, 16, 20]),
    ]
    queries = torch.randint(-12, 32, (2, 12), generator=generator)
    values = [each.requires_grad_() for each in values]
    return values, [each.to(time_dtype) for each in times], queries.to(time_dtype)


FUSIONS = [
    *([{"method": m}, {}] for m in ("linear", "nearest", "previous", "next", "cubic")),
    *([{"method": m, "outside": "fill", "fill_value": 3.0}, {}] for m in ("linear", "nearest")),
    [{"clock_offset": 3}, {"clock_offset": -5, "method": "nearest"}],
    [{"outside": "extrapolate", "clock_offset": 1}, {"outside": "extrapolate", "lengths": [4, 1]}],
    [{"max_gap": 8}, {"method": "previous", "tolerance": 4}],
    [{"mean": [1.0, 2.0, 3.0], "std": [2.0, 0.5, 4.0]}, {"std": [3.0, 1.0, 7.0]}],
    [{"method": [(1, 2, "cubic"), (0, 1, "previous")], "std": [2.0, 0.5, 4.0]}, {}],
]


@pytest.mark.parametrize("time_dtype", [torch.float64, torch.int64])
@pytest.mark.parametrize("rules", FUSIONS, ids=str)
def test_gradcheck_of_fusion(rules, time_dtype):
    values, times, queries = two_streams(time_dtype)

    def function(*values):
        streams = [rbc.torch.Stream(*each, **rule) for *each, rule in zip(values, times, rules)]
        return rbc.torch.fuse(streams, queries, query_lengths=[12, 5])

    assert torch.autograd.gradcheck(function, values, fast_mode=fast_gradients())
    assert torch.autograd.gradgradcheck(function, values, fast_mode=True)


OTHERS = {"pchip": "cubic", "slerp": "linear", "angle": "previous"}


def linear(method):
    if isinstance(method, str):
        return OTHERS.get(method, method)
    return [(begin, count, OTHERS.get(name, name)) for begin, count, name in method]


@settings(max_examples=random_share(100))
@given(problem=fusions())
def test_the_gradient_of_fusion_is_the_transposed_operation(problem):
    """<upstream, W values> = <W^T upstream, values>, with W values = f(values) - f(0)."""
    random = np.random.default_rng(1)
    arrays = ("times", "lengths", "batch_offsets", "mean", "std")
    leaves, given_streams, nothings = [], [], []
    for stream in problem.streams:
        options = {
            name: torch.from_numpy(np.array(each)) if name in arrays else each
            for name, each in stream.items()
        }
        values = torch.from_numpy(random.normal(size=options.pop("values").shape)).requires_grad_()
        options["fill_value"] = 2.5
        options["method"] = linear(options.get("method", "linear"))
        leaves.append(values)
        given_streams.append(rbc.torch.Stream(values, **options))
        nothings.append(rbc.Stream(torch.zeros_like(values), **options))
    queries = torch.from_numpy(problem.query_times)
    options = {**problem.options, "dtype": "float64"}
    out = rbc.torch.fuse(given_streams, queries, **options)
    with torch.no_grad():
        assert torch.equal(out, rbc.fuse(given_streams, queries, **options))
    nothing = rbc.fuse(nothings, queries, **options)
    upstream = torch.from_numpy(random.normal(size=tuple(out.shape)))
    got = torch.autograd.grad(out, leaves, upstream)
    inner = sum([(each * leaf.detach()).sum() for each, leaf in zip(got, leaves)])
    torch.testing.assert_close(inner, (upstream * (out.detach() - nothing)).sum())


def test_the_gradient_of_fusion_is_that_of_resampling_each_stream():
    values, times, queries = two_streams()
    rules = [{"method": "cubic", "max_gap": 9}, {"outside": "fill", "std": [0.3, 7.0, 3.0]}]
    streams = [rbc.torch.Stream(*each, **rule) for *each, rule in zip(values, times, rules)]
    out = rbc.torch.fuse(streams, queries)
    upstream = random(*out.shape, dtype=torch.float64)
    got = torch.autograd.grad(out, values, upstream)
    for n, (leaf, own, rule) in enumerate(zip(values, times, rules)):
        alone = rbc.torch.resample(leaf, own, queries, **rule)
        part = upstream[..., 3 * n : 3 * n + 3]
        assert_same(got[n], torch.autograd.grad(alone, leaf, part)[0])


def test_only_the_streams_that_ask_have_gradients():
    values, times, queries = two_streams()
    switch = torch.tensor([[[0], [1], [1], [0], [1]]] * 2, dtype=torch.uint8)
    streams = [
        rbc.torch.Stream(values[0], times[0]),
        rbc.Stream(values[1].detach(), times[1], method="pchip"),  # which has none
        rbc.torch.Stream(switch, times[1], method="previous"),
    ]
    out, mask = rbc.torch.fuse(streams, queries, return_valid=True)
    (got,) = torch.autograd.grad(out.sum(), values[0])
    assert got.shape == values[0].shape and bool(got.any()) and not mask.requires_grad
    with torch.no_grad():
        assert not rbc.torch.fuse(streams, queries).requires_grad


@pytest.mark.parametrize("ticks", [5, -5, 2**63 - 1, -(2**63)])
def test_offsets_of_ticks_saturate_in_gradients_too(ticks):
    """The value at either end is used, as in the forward pass."""
    limits = torch.iinfo(torch.int64)
    values = random(4, 1, dtype=torch.float64).requires_grad_()
    times = torch.tensor([limits.min, -10, 10, limits.max])
    queries = torch.tensor([limits.min, limits.min + 3, 0, limits.max - 3, limits.max])
    stream = rbc.torch.Stream(values, times, method="nearest", clock_offset=ticks)
    out = rbc.torch.fuse([stream], queries)
    (got,) = torch.autograd.grad(out.sum(), values)
    counts = [(out.detach() == value).sum() for value in values.detach().flatten()]
    assert got.flatten().tolist() == [float(count) for count in counts]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"method": "slerp"}, ValueError, r"streams\[0\].method: is 'slerp', which is not linear"),
        ({"method": "spline"}, ValueError, "method: is 'spline', expected one of 'linear'"),
        ({"method": [(0, 3)]}, TypeError, r"method\[0\]: is \(0, 3\), expected \(begin, count"),
        ({"values": np.zeros((2, 7, 3))}, TypeError, "values: is an ndarray, expected a torch.T"),
        ({"times": ["a", "b"]}, TypeError, r"streams\[0\].times: is a list, expected an array"),
        (
            {"times": torch.zeros(7, requires_grad=True)},
            ValueError,
            r"streams\[0\].times: requires grad",
        ),
        (
            {"std": torch.ones(3, requires_grad=True)},
            ValueError,
            r"streams\[0\].std: requires grad",
        ),
        ({"lengths": 3}, TypeError, r"streams\[0\].lengths: is an int, expected an array"),
        ({"clock_offset": "1"}, TypeError, "clock_offset: is '1', expected a number"),
    ],
)
def test_streams_that_are_refused(change, error, message):
    values, times, queries = two_streams()
    values = random(2, 7, 4).requires_grad_()
    with pytest.raises(error, match=f"^{message}"):
        stream = rbc.torch.Stream(**{"values": values, "times": times[0], **change})
        rbc.torch.fuse([stream], queries)


@pytest.mark.parametrize(
    ("streams", "message"),
    [(3, "streams: is an int"), ([3], r"streams\[0\]: is an int"), ([], "streams: got 0")],
)
def test_what_is_no_stream(streams, message):
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        rbc.torch.fuse(streams, QUERIES)


def test_streams_are_streams():
    """Streams of robocache.torch work like others, and can be pickled and copied."""
    stream = rbc.torch.Stream(VALUES, TIMES, method="nearest", clock_offset=0.25)
    expected = rbc.fuse([rbc.Stream(VALUES, TIMES, method="nearest", clock_offset=0.25)], QUERIES)
    for each in (stream, copy.copy(stream), pickle.loads(pickle.dumps(stream))):
        assert type(each) is rbc.torch.Stream and isinstance(each, rbc.Stream)
        assert torch.equal(rbc.fuse([each], QUERIES), expected)
        assert torch.equal(rbc.torch.fuse([each], QUERIES), expected)
    assert repr(stream).startswith("Stream(values=<float32 [2,7,3]>, ")


def test_times_with_a_unit_have_gradients_too():
    values = [each.clone().requires_grad_() for each in (VALUES[0], OTHER[0])]
    own = [np.array(ms, "timedelta64[ms]") for ms in ([0, 5, 10, 15, 30, 35, 40], [0, 10, 20, 30])]
    gap, offset = np.timedelta64(12, "ms"), np.timedelta64(2000, "us")
    rules = [{"max_gap": gap, "outside": "fill"}, {"clock_offset": offset, "method": "next"}]
    queries = np.arange(0, 40, 3).astype("timedelta64[ms]")
    out = rbc.torch.fuse(
        [rbc.torch.Stream(v, t, **r) for v, t, r in zip(values, own, rules)], queries
    )
    ticks = [torch.from_numpy(each.astype(np.int64)) for each in own]
    rules = [{"max_gap": 12, "outside": "fill"}, {"clock_offset": 2, "method": "next"}]
    expected = rbc.torch.fuse(
        [rbc.torch.Stream(v, t, **r) for v, t, r in zip(values, ticks, rules)],
        torch.from_numpy(queries.astype(np.int64)),
    )
    with torch.no_grad():
        assert_same(
            out,
            rbc.fuse(
                [
                    rbc.torch.Stream(values[0], own[0], max_gap=gap, outside="fill"),
                    rbc.torch.Stream(values[1], own[1], clock_offset=offset, method="next"),
                ],
                queries,
            ),
        )
    assert_same(torch.autograd.grad(out.sum(), values), torch.autograd.grad(expected.sum(), values))
    seconds = np.array([0, 1], "timedelta64[s]")
    other = rbc.torch.Stream(OTHER[0, :2], seconds)
    with pytest.raises((TypeError, ValueError), match=r"^streams\[1\].times: "):
        rbc.torch.fuse([rbc.torch.Stream(values[0], own[0]), other], queries)


def test_many_clocks_of_one_recording():
    """Query times [B,T] with a recording without a batch."""
    torch._dynamo.reset()
    values = VALUES[0].clone().requires_grad_()

    def function(values):
        stream = rbc.torch.Stream(values, TIMES[0])
        return resampled(values, TIMES[0], QUERIES), rbc.torch.fuse([stream, stream], QUERIES)

    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    expected = rbc.resample(values.detach(), TIMES[0], QUERIES)
    for results in (function(values), compiled(values)):
        assert_same(results, (expected, torch.cat([expected, expected], -1)))
        (alone,), (both,) = [
            torch.autograd.grad(each.sum(), values, retain_graph=True) for each in results
        ]
        torch.testing.assert_close(both, 2 * alone)


def test_warnings_are_of_the_line_that_called():
    values = VALUES.clone().requires_grad_()
    with pytest.warns(rbc.RangeWarning) as caught:
        resampled(values, TIMES, QUERIES + 1e6)
    assert [warning.filename for warning in caught] == [__file__]


def test_a_context_of_ones_own_may_be_gone_before_the_backward_pass():
    values = VALUES.clone().requires_grad_()
    out = rbc.torch.resample(values, TIMES, QUERIES, backend=rbc.Context("cpu", threads=1))
    expected = rbc.torch.resample(values, TIMES, QUERIES)
    assert_same(torch.autograd.grad(out.sum(), values), torch.autograd.grad(expected.sum(), values))


# ---- graphs of CUDA -----------------------------------------------------------------------------


def test_a_list_is_refused_while_a_graph_is_captured(monkeypatch):
    """Here the capture is pretended; test_torch_cuda has a real one."""
    from robocache._arguments.arrays import framework_of

    class OnCuda:
        is_cuda, device = True, "cuda:0"

    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    with pytest.raises(ValueError, match="^sensors: is a list, .* to a tensor on cuda:0"):
        framework_of(VALUES, "points").sequence([0, 0, 0], "sensors", "float64", OnCuda())
