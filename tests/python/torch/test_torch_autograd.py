"""rbc.torch.resample: gradients with respect to the values, on the CPU and on CUDA."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings

import robocache as rbc
from random_share import fast_gradients, random_share
from resample_problems import problems

torch = pytest.importorskip("torch")


def why_no_cuda():
    if not torch.cuda.is_available():
        return "no CUDA device that torch can use"
    unavailable = rbc.info().cuda_unavailable
    return f"RoboCache has no CUDA here: {unavailable}" if unavailable else ""


LINEAR = ["linear", "cubic", "nearest", "previous", "next"]
CUDA = pytest.param("cuda", marks=pytest.mark.skipif(bool(why_no_cuda()), reason=why_no_cuda()))
on_each_device = pytest.mark.parametrize("device", ["cpu", CUDA])


def example(device="cpu", dtype=torch.float64, time_dtype=torch.float64, channels=3):
    """Two rows of 7 samples, with equal times, and 12 queries that lie outside too."""
    random = torch.Generator().manual_seed(1)
    values = torch.randn(2, 7, channels, generator=random, dtype=torch.float64)
    times = torch.tensor([[0, 0, 1, 2, 2, 4, 7], [-3, 0, 1, 2, 5, 6, 6]])
    queries = torch.randint(-12, 32, (2, 12), generator=random) / 4
    if not time_dtype.is_floating_point:
        times, queries = times * 4, queries * 4
    values = values.to(device, dtype).requires_grad_()
    return values, times.to(device, time_dtype), queries.to(device, time_dtype)


def gradient(values, *arguments, upstream=None, **options):
    out = rbc.torch.resample(values, *arguments, **options)
    upstream = torch.ones_like(out) if upstream is None else upstream
    (result,) = torch.autograd.grad(out, values, upstream)
    return result


# ---- against finite differences, and against the operation itself --------------------------------


@on_each_device
@pytest.mark.parametrize("time_dtype", [torch.float64, torch.int64])
@pytest.mark.parametrize(
    "options",
    [
        *({"method": method, "outside": "hold"} for method in LINEAR),
        *({"method": method, "outside": "fill", "fill_value": 3.0} for method in LINEAR),
        {"outside": "extrapolate"},
        {"max_gap": 2, "method": "cubic"},
        {"tolerance": 1, "method": "nearest"},
        {"mean": [1.0, 2.0, 3.0], "std": [2.0, 0.5, 4.0]},
        {"lengths": [4, 1], "query_lengths": [12, 3], "outside": "extrapolate"},
        {"method": [(1, 2, "cubic"), (0, 1, "previous")], "std": [2.0, 0.5, 4.0]},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_gradcheck(options, time_dtype, device):
    values, times, queries = example(device, time_dtype=time_dtype)

    def function(values):
        return rbc.torch.resample(values, times, queries, **options)

    assert torch.autograd.gradcheck(function, values, fast_mode=fast_gradients())
    assert torch.autograd.gradgradcheck(function, values, fast_mode=True)


@on_each_device
def test_gradcheck_of_packed_and_single_rows(device):
    values, times, queries = example(device)
    packed = values.detach().reshape(14, 3).requires_grad_()
    for offsets in ([0, 7, 14], torch.tensor([0, 7, 14], dtype=torch.int32, device=device)):
        assert torch.equal(
            gradient(
                packed, times.reshape(14), queries, batch_offsets=offsets, outside="extrapolate"
            ),
            gradient(values, times, queries, outside="extrapolate").reshape(14, 3),
        )
    single = values[0].detach().requires_grad_()
    for method in LINEAR:
        assert torch.autograd.gradcheck(
            lambda values, method=method: rbc.torch.resample(
                values, times[0], queries[0], method=method
            ),
            single,
        )


OTHERS = {"pchip": "cubic", "slerp": "linear", "angle": "previous"}


@on_each_device
@settings(max_examples=random_share(150))
@given(problem=problems())
def test_the_gradient_is_the_transposed_operation(device, problem):
    """<upstream, W values> = <W^T upstream, values>, with W values = f(values) - f(0)."""
    values, times, query_times, options = problem
    random = np.random.default_rng(1)
    values = random.normal(size=values.shape)
    options.pop("dtype", None)
    options["fill_value"] = 2.5
    method = options["method"]
    if isinstance(method, str):
        options["method"] = OTHERS.get(method, method)
    else:
        options["method"] = [
            (begin, count, OTHERS.get(name, name)) for begin, count, name in method
        ]
    if query_times.dtype.kind == "f":
        query_times = np.where(np.isfinite(query_times), query_times, np.nan)
    for name in ("lengths", "query_lengths", "batch_offsets"):
        if name in options:
            options[name] = torch.from_numpy(np.array(options[name])).to(device)
    values, times, query_times = (
        torch.from_numpy(np.array(each)).to(device) for each in (values, times, query_times)
    )
    values.requires_grad_()
    out = rbc.torch.resample(values, times, query_times, **options)
    nothing = rbc.resample(torch.zeros_like(values), times, query_times, **options)
    assert torch.equal(out, rbc.resample(values.detach(), times, query_times, **options))
    upstream = torch.from_numpy(random.normal(size=tuple(out.shape))).to(device)
    (got,) = torch.autograd.grad(out, values, upstream)
    assert got.shape == values.shape and got.dtype == values.dtype
    torch.testing.assert_close(
        (got * values.detach()).sum(), (upstream * (out.detach() - nothing)).sum()
    )


@on_each_device
def test_the_gradient_of_a_group_that_holds_beside_one_that_extrapolates(device):
    """Hold before the first time takes sample 0, also where later samples have the same time."""
    times = torch.tensor([0.0, 0, 0, 1, 1, 2], device=device)
    values = torch.zeros(6, 2, device=device, requires_grad=True)
    out = rbc.torch.resample(
        values,
        times,
        torch.tensor([-3.0, 5.0], device=device),
        method=[(0, 1, "linear"), (1, 1, "cubic")],
        outside="extrapolate",
    )
    for row, (of_line, of_held) in enumerate(
        (([0, 0, 4, -3, 0, 0], [1, 0, 0, 0, 0, 0]), ([0, 0, 0, 0, -3, 4], [0, 0, 0, 0, 0, 1]))
    ):
        (gradient,) = torch.autograd.grad(out[row].sum(), values, retain_graph=True)
        assert gradient.T.tolist() == [of_line, of_held]


def test_weights_by_hand():
    values = torch.zeros(5, 1, requires_grad=True)
    times = torch.tensor([0.0, 0.0, 1.0, 2.0, 2.0])

    def weights(query, **options):
        return gradient(values, times, [query], **options).flatten().tolist()

    assert weights(0.25) == [0, 0.75, 0.25, 0, 0]
    assert weights(1.25) == [0, 0, 0.75, 0.25, 0]
    assert weights(0.0) == [0, 1, 0, 0, 0] and weights(2.0) == [0, 0, 0, 0, 1]
    assert weights(-1.0) == [1, 0, 0, 0, 0] and weights(3.0) == [0, 0, 0, 0, 1]
    assert weights(-1.0, outside="fill") == weights(float("nan")) == [0] * 5
    assert weights(-1.0, outside="extrapolate") == [0, 2, -1, 0, 0]
    assert weights(3.0, outside="extrapolate") == [0, 0, -1, 2, 0]
    assert weights(1.25, method="next") == [0, 0, 0, 1, 0]
    assert weights(1.25, method="next", std=[4.0]) == [0, 0, 0, 0.25, 0]


# ---- dtypes, layouts, sizes ----------------------------------------------------------------------


@on_each_device
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("out_dtype", [None, torch.float16, torch.float64])
def test_every_dtype(out_dtype, dtype, device):
    values, times, queries = example(device, dtype)
    out, mask = rbc.torch.resample(values, times, queries, dtype=out_dtype, return_valid=True)
    expected, expected_mask = rbc.resample(
        values.detach(), times, queries, dtype=out_dtype, return_valid=True
    )
    assert out.dtype == (out_dtype or dtype) and torch.equal(out, expected)
    assert torch.equal(mask, expected_mask) and out.requires_grad and not mask.requires_grad
    upstream = torch.randn(out.shape, device=device).to(out.dtype)
    got = gradient(values, times, queries, dtype=out_dtype, upstream=upstream)
    wide = values.detach().double().requires_grad_()
    expected = gradient(wide, times, queries, upstream=upstream.double())
    assert got.dtype == dtype
    torch.testing.assert_close(got.double(), expected, rtol=2 * torch.finfo(dtype).eps, atol=1e-6)


@on_each_device
def test_strided_and_broadcast_values(device):
    values, times, queries = example(device)
    expected = gradient(values, times, queries)
    strided = values.detach().permute(2, 0, 1).contiguous().permute(1, 2, 0).requires_grad_()
    assert torch.equal(gradient(strided, times, queries), expected)
    row = values.detach()[:1].requires_grad_()
    shared = gradient(values, times[0], queries).sum(0, keepdim=True)
    out = rbc.torch.resample(row.expand(2, -1, -1), times[0], queries)
    (got,) = torch.autograd.grad(out.sum(), row)
    torch.testing.assert_close(got, shared)


@pytest.mark.parametrize("shape", [(0, 5, 3), (2, 0, 3), (2, 5, 0)])
@pytest.mark.parametrize("queries", [0, 4])
def test_empty(shape, queries):
    values = torch.zeros(shape, requires_grad=True)
    times, query_times = torch.arange(float(shape[1])), torch.zeros(queries)
    got = gradient(values, times, query_times, outside="extrapolate", fill_value=1.0)
    assert got.shape == shape and got.numel() == 0


@on_each_device
def test_the_same_bits_in_every_run(device):
    random = torch.Generator().manual_seed(2)
    values = torch.randn(8, 100, 33, generator=random).to(device).requires_grad_()
    times = torch.rand(8, 100, generator=random).sort(-1)[0].to(device)
    queries = torch.rand(8, 2000, generator=random).to(device)
    upstream = torch.randn(8, 2000, 33, generator=random).to(device)
    for method in ("linear", "cubic"):
        expected = gradient(values, times, queries, upstream=upstream, method=method)
        for _ in range(5):
            again = gradient(values, times, queries, upstream=upstream, method=method)
            assert torch.equal(again, expected)
        torch.use_deterministic_algorithms(True)
        try:
            again = gradient(values, times, queries, upstream=upstream, method=method)
        finally:
            torch.use_deterministic_algorithms(False)
        assert torch.equal(again, expected)


@on_each_device
def test_a_gradient_of_what_was_filled_goes_nowhere(device):
    values, times, queries = example(device)
    options = {"outside": "fill", "fill_value": float("nan")}
    out, mask = rbc.torch.resample(values, times, queries, return_valid=True, **options)
    assert bool(mask.any()) and not bool(mask.all())
    (expected,) = torch.autograd.grad(out[mask].sum(), values, retain_graph=True)
    upstream = torch.ones_like(out).where(mask[..., None], float("nan"))
    (got,) = torch.autograd.grad(out, values, upstream)
    assert torch.equal(got, expected) and bool(got.isfinite().all())


# ---- what goes through autograd, and what does not -----------------------------------------------


def test_without_a_gradient_it_is_the_plain_operation():
    values, times, queries = example()
    expected = rbc.resample(values.detach(), times, queries, method="pchip")
    with torch.no_grad():
        out = rbc.torch.resample(values, times, queries, method="pchip")
        assert torch.equal(out, expected) and not out.requires_grad
    with torch.inference_mode():
        out = rbc.torch.resample(values, times, queries, method="pchip")
        assert torch.equal(out, expected) and out.is_inference()
    out = rbc.torch.resample(values.detach(), times, queries, method="pchip")
    assert torch.equal(out, expected) and out.grad_fn is None
    whole = torch.arange(14).reshape(2, 7, 1)
    assert rbc.torch.resample(whole, times, queries, method="previous").dtype == torch.int64


def test_numpy_arrays_and_lists_beside_the_values():
    values, times, queries = example()
    expected = gradient(values, times, queries, std=[2.0, 4.0, 8.0], lengths=[7, 5])
    frozen = times.numpy().copy()
    frozen.flags.writeable = False
    got = gradient(
        values, frozen, queries.tolist(), std=np.float32([2, 4, 8]), lengths=np.array([7, 5])
    )
    assert torch.equal(got, expected)


def test_a_module_learns_the_samples():
    times, queries = torch.arange(5.0), torch.linspace(0, 4, 50)
    target = 2 * queries[:, None] - 3
    knots = torch.nn.Parameter(torch.zeros(5, 1))
    optimizer = torch.optim.LBFGS([knots])

    def loss():
        optimizer.zero_grad()
        error = (rbc.torch.resample(knots, times, queries) - target).square().mean()
        error.backward()
        return error

    for _ in range(5):
        optimizer.step(loss)
    torch.testing.assert_close(knots.detach(), 2 * times[:, None] - 3, rtol=0, atol=1e-3)


def test_transforms_of_functions():
    values, times, queries = example()
    expected = gradient(values, times, queries)
    got = torch.func.grad(lambda values: rbc.torch.resample(values, times, queries).sum())(
        values.detach()
    )
    assert torch.equal(got, expected)


def test_compiled_code_is_one_graph():
    values, times, queries = example()

    def function(values):
        return rbc.torch.resample(values * 2, times, queries).sin().sum()

    compiled = torch.compile(function, backend="eager", fullgraph=True)
    (expected,) = torch.autograd.grad(function(values), values)
    out = compiled(values)
    (got,) = torch.autograd.grad(out, values)
    assert torch.equal(out, function(values)) and torch.equal(got, expected)


def test_arrays_that_were_written_since_are_noticed():
    values, times, queries = example()
    out = rbc.torch.resample(values, times, queries)
    times += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"method": "slerp"}, ValueError, "method: is 'slerp', which is not linear in the values"),
        ({"method": "pchip"}, ValueError, r"method: is 'pchip', .*pass values.detach\(\)"),
        (
            {"method": [(0, 2, "linear"), (2, 1, "angle")]},
            ValueError,
            r"method\[1\]: is 'angle', which is not linear",
        ),
        ({"method": "spline"}, ValueError, "method: is 'spline', expected one of 'linear'"),
        ({"method": [(0, 3)]}, TypeError, r"method\[0\]: is \(0, 3\), expected \(begin, count"),
        ({"method": [(0, 2, "linear")]}, ValueError, "method: channel 2 is in none of the groups"),
        ({"out": torch.zeros(2, 12, 3)}, TypeError, "out: not supported in robocache.torch"),
        ({"values": np.zeros((2, 7, 3))}, TypeError, "values: is an ndarray, expected a torch.T"),
        ({"times": ["a", "b"]}, TypeError, "times: is a list, expected an array"),
        ({"times": torch.zeros(7, requires_grad=True)}, ValueError, "times: requires grad"),
        ({"query_times": torch.zeros(7, requires_grad=True)}, ValueError, "query_times: requires"),
        ({"mean": torch.zeros(3, requires_grad=True)}, ValueError, "mean: requires grad"),
        ({"std": torch.ones(3, requires_grad=True)}, ValueError, "std: requires grad"),
        ({"std": [1, 0, 1]}, ValueError, "std: channel 1 is 0"),
        ({"lengths": [7, 8]}, ValueError, "lengths: row 1 is 8, expected 0 to 7"),
        ({"lengths": 3}, TypeError, "lengths: is an int, expected an array"),
        ({"smoothing": 3}, TypeError, "resample.. got an unexpected keyword argument 'smoothing'"),
    ],
)
def test_refused(options, error, message):
    arrays = dict(zip(("values", "times", "query_times"), example()))
    with pytest.raises(error, match=f"^{message}"):
        rbc.torch.resample(**{**arrays, **options})


def test_the_plain_operation_says_where_gradients_are():
    values, times, queries = example()
    with pytest.raises(ValueError, match="^values: requires grad, .* robocache.torch.resample$"):
        rbc.resample(values, times, queries)


def test_torch_is_imported_when_it_is_asked_for():
    code = (
        "import sys, robocache; assert 'torch' not in sys.modules; "
        "robocache.torch.resample; assert 'torch' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="'robocache' has no attribute 'tensorflow'"):
        _ = rbc.tensorflow


@on_each_device
def test_the_gradient_beside_infinite_values_is_the_weights(device):
    """The sum of both weights is 1 for all values, in every row, also with missing samples."""
    rows = [[math.inf, 1.0], [2.0, math.inf], [-math.inf, math.inf]]
    values = torch.tensor(rows, dtype=torch.float64, device=device, requires_grad=True)
    times = torch.arange(3.0, dtype=torch.float64, device=device)
    out = rbc.torch.resample(values, times, [0.25, 1.75])
    assert out[0].tolist() == [math.inf, math.inf]
    (got,) = torch.autograd.grad(out, values, torch.ones_like(out))
    assert got.tolist() == [[0.75, 0.75], [0.5, 0.5], [0.75, 0.75]]
