"""Gradients and graphs of samples that arrive, and of channels that look back only."""

import numpy as np
import pytest

import robocache as rbc
from random_share import fast_gradients

torch = pytest.importorskip("torch")

CUDA = pytest.param(
    "cuda",
    marks=pytest.mark.skipif(
        not torch.cuda.is_available() or bool(rbc.info().cuda_unavailable), reason="no CUDA"
    ),
)


@pytest.fixture(params=["cpu", CUDA])
def device(request):
    """The device on which the test creates its tensors."""
    if request.param != "cpu":
        torch.set_default_device(request.param)
    yield request.param
    torch.set_default_device(None)


METHODS = ["linear", "cubic", "nearest", "previous", "next"]
TIMES = [torch.float32, torch.float64, torch.int64]


def recording(rng, rows=2, samples=30, dtype=torch.float64, channels=2):
    """Return values, ascending times with duplicates, arrivals in any order, and queries."""
    shape = (rows, samples) if rows else (samples,)
    times = np.sort(rng.integers(0, 2 * samples, shape) / 4, -1)
    late = np.where(rng.random(shape) < 0.2, 4.0, 0.5)
    arrivals = times + rng.exponential(1.0, shape) * late
    queries = rng.integers(-8, 2 * samples + 8, (*shape[:-1], 40)) / 4 + rng.integers(0, 2) / 8
    if not dtype.is_floating_point:
        times, arrivals, queries = times * 8, arrivals * 8, queries * 8
    elif rng.random() < 0.5:
        arrivals[rng.random(shape) < 0.1] = np.nan
    values = torch.tensor(rng.normal(size=(*shape, channels)), requires_grad=True)
    return values, *(torch.tensor(each).to(dtype) for each in (times, arrivals, queries))


def options_of(rng, method, unit):
    """Return rules, and whether rows that are not valid have no gradient."""
    options = {"method": method, "fill_value": 2.5, "lag": int(rng.integers(0, 3)) * unit}
    if rng.random() < 0.5:
        options["max_gap"] = int(rng.integers(1, 6)) * unit
    causal = method != "next" and rng.random() < 0.6
    if causal:
        options.update(causal=True, max_age=int(rng.integers(1, 4)) * unit)
    if method == "linear" and not causal and rng.random() < 0.4:
        options["outside"] = "extrapolate"
    else:
        options["outside"] = str(rng.choice(["hold", "fill"]))
    return options, causal


def require_transposed(function, plain, values, masked, rng):
    """<upstream, W values> = <W^T upstream, values>, with W values = f(values) - f(0)."""
    out, valid = function(values)
    expected, there = plain(values.detach())
    assert torch.equal(out, expected) and torch.equal(valid, there)
    nothing, _ = plain(torch.zeros_like(values))
    upstream = torch.tensor(rng.normal(size=tuple(out.shape)))
    (got,) = torch.autograd.grad(out, values, upstream)
    part = upstream * there[..., None] if masked else upstream
    torch.testing.assert_close(
        (got * values.detach()).sum(), (part * (out.detach() - nothing)).sum()
    )
    return got


@pytest.mark.parametrize("dtype", TIMES, ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_the_gradient_of_resample_is_the_transposed_operation(method, dtype, device):
    rng = np.random.default_rng([len(method), len(str(dtype))])
    unit = 1 if dtype.is_floating_point else 8
    moved = 0
    for _ in range(12):
        rows = int(rng.integers(0, 3))
        values, times, arrivals, queries = recording(rng, rows, int(rng.integers(1, 40)), dtype)
        options, causal = options_of(rng, method, unit)
        if not causal or rng.random() < 0.7:
            options["arrivals"] = arrivals
        if rng.random() < 0.3:
            options["sample_mask"] = torch.tensor(rng.random(times.shape) < 0.8)
        if rows and rng.random() < 0.3:
            options["lengths"] = torch.tensor(rng.integers(0, times.shape[1] + 1, rows))
            options["query_lengths"] = torch.tensor(rng.integers(0, 41, rows))
        if rng.random() < 0.3:
            options["std"] = [2.0, 0.5]
        if rows and "lengths" not in options and rng.random() < 0.3:  # packed
            offsets = np.arange(rows + 1) * times.shape[1]
            options["batch_offsets"] = torch.tensor(offsets)
            for name in ("arrivals", "sample_mask"):
                if name in options:
                    options[name] = options[name].reshape(-1)
            values = values.detach().reshape(-1, 2).requires_grad_()
            times = times.reshape(-1)

        def call(of, v, times=times, queries=queries, options=options):
            out, valid = of(v, times, queries, return_valid=True, **options)
            if "query_lengths" in options:  # what follows is not specified
                inside = torch.arange(40) < options["query_lengths"][:, None]
                return torch.where(inside[..., None], out, 0), valid & inside
            return out, valid

        got = require_transposed(
            lambda v, call=call: call(rbc.torch.resample, v),
            lambda v, call=call: call(rbc.resample, v),
            *(values, causal, rng),
        )
        moved += int((got != 0).sum())
    assert moved > 100


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("causal", [False, True])
def test_gradcheck(method, causal, device):
    if method == "next" and causal:
        pytest.skip("next does not look back")
    rng = np.random.default_rng(5)
    values, times, arrivals, queries = recording(rng, 2, 10)
    rules = dict(causal=True, max_age=1.0, outside="fill") if causal else dict(max_gap=2.0)

    def function(v):
        return rbc.torch.resample(
            v, times, queries, method=method, arrivals=arrivals, lag=0.5, **rules
        )

    assert torch.autograd.gradcheck(function, values, fast_mode=fast_gradients())
    assert torch.autograd.gradgradcheck(function, values, fast_mode=True)


def test_a_held_row_sends_its_whole_gradient_to_its_sample(device):
    values = torch.tensor([[1.0], [2.0], [4.0]], requires_grad=True)
    times, arrivals = torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.0, 1.0, 2.5])
    queries = torch.tensor([-1.0, 0.5, 1.5, 2.25, 2.75, 9.0])
    out, valid = rbc.torch.resample(
        *(values, times, queries),
        arrivals=arrivals,
        causal=True,
        max_age=1.25,
        return_valid=True,
    )
    assert out[:, 0].tolist() == [0.0, 1.0, 2.0, 2.0, 4.0, 4.0]
    assert valid.tolist() == [False, True, True, True, True, False]
    upstream = torch.tensor([[1.0], [10.0], [100.0], [1000.0], [1e4], [1e5]])
    (got,) = torch.autograd.grad(out, values, upstream)
    assert got[:, 0].tolist() == [10.0, 1100.0, 1e4]


def streams_of(kind, values, times, arrivals, offset, options):
    return [
        kind(v, t, arrivals=a, clock_offset=o, **rules)
        for v, t, a, o, rules in zip(values, times, arrivals, offset, options)
    ]


@pytest.mark.parametrize("dtype", TIMES, ids=str)
def test_the_gradient_of_fuse(dtype, device):
    rng = np.random.default_rng(len(str(dtype)))
    unit = 1 if dtype.is_floating_point else 8
    for _ in range(20):
        rows = int(rng.integers(0, 3))
        parts = [recording(rng, rows, int(rng.integers(1, 30)), dtype) for _ in range(3)]
        values, times, arrivals = (list(each) for each in list(zip(*parts))[:3])
        queries = parts[0][3]
        arrivals[2] = None  # a label
        offset = [0.3, -1.1, 0.5] if dtype.is_floating_point else [3, -9, 5]
        rules = []
        causal = []
        for _ in range(3):
            options, looks_back = options_of(rng, str(rng.choice(METHODS)), unit)
            lag = options.pop("lag")
            rules.append(options)
            causal.append(looks_back)
        for n in range(3):
            variable = [v if m == n else v.detach() for m, v in enumerate(values)]

            def call(of, kind, v, n=n, lag=lag, parts=(times, arrivals, offset, rules)):
                given = [v if m == n else each for m, each in enumerate(variable)]  # noqa: B023
                streams = streams_of(kind, given, *parts)
                out, valid = of(streams, queries, lag=lag, return_valid=True)  # noqa: B023
                return out[..., 2 * n : 2 * n + 2].clone(), valid[..., n]

            require_transposed(
                lambda v, call=call: call(rbc.torch.fuse, rbc.torch.Stream, v),
                lambda v, call=call: call(rbc.fuse, rbc.Stream, v),
                *(values[n], causal[n], rng),
            )


def test_gradgradcheck_of_fuse_with_an_offset():
    rng = np.random.default_rng(2)
    values, times, arrivals, queries = recording(rng, 2, 8)

    def function(v):
        stream = rbc.torch.Stream(v, times, arrivals=arrivals, causal=True, clock_offset=0.3)
        return rbc.torch.fuse([stream], queries, lag=0.25)

    assert torch.autograd.gradcheck(function, values)
    assert torch.autograd.gradgradcheck(function, values)


@pytest.mark.parametrize("dtype", TIMES, ids=str)
@pytest.mark.parametrize("method", [None, *METHODS])
def test_the_gradient_of_windows(method, dtype, device):
    rng = np.random.default_rng([len(method or ""), len(str(dtype))])
    unit = 1 if dtype.is_floating_point else 8
    moved = 0
    for _ in range(12):
        lengths = rng.integers(1, 25, 3)
        bounds = torch.tensor(np.concatenate([[0], np.cumsum(lengths)]))
        parts = [recording(rng, 0, int(n), dtype) for n in lengths]
        values, times, arrivals = (torch.cat([p[i].detach() for p in parts]) for i in range(3))
        values = values.requires_grad_()
        options, causal = {"outside": str(rng.choice(["hold", "fill"])), "fill_value": 2.5}, False
        if method is not None:
            options, causal = options_of(rng, method, unit)
            options.pop("lag")
            if options["outside"] == "extrapolate":
                options["outside"] = "hold"
        offsets = [-2, -1, 0] if method is None else [-2 * unit, -unit, 0]
        if method is not None:
            options["clock_offset"] = 0.3 if unit == 1 else 3
        if rng.random() < 0.4:
            options["sample_mask"] = torch.tensor(rng.random(len(times)) < 0.8)
        if not causal or rng.random() < 0.7:
            options["arrivals"] = arrivals
        which = torch.tensor(rng.integers(0, 3, 30))
        anchors = torch.tensor(rng.integers(0, 25, 30))
        lag = int(rng.integers(0, 3)) * unit

        def call(of, kind, v, each=(offsets, bounds, times, options, which, anchors, lag)):
            offsets, bounds, times, options, which, anchors, lag = each
            stream = kind(v, offsets, episode_offsets=bounds, times=times, **options)
            anchor = rbc.WindowStream(v.detach() * 0, [0], episode_offsets=bounds, times=times)
            pairs = of([anchor, stream], which, anchors, lag=lag)
            return pairs[1]

        got = require_transposed(
            lambda v, call=call: call(rbc.torch.windows, rbc.torch.WindowStream, v),
            lambda v, call=call: call(rbc.windows, rbc.WindowStream, v),
            *(values, causal, rng),
        )
        moved += int((got != 0).sum())
    assert moved > 20


def test_windows_with_references_and_normalization():
    rng = np.random.default_rng(8)
    values, times, arrivals, _ = recording(rng, 0, 20)
    relative = rbc.Transform("subtract", 0, 2, reference=(0, -1))
    scale = rbc.Normalization(shift=[1.0, 2.0], scale=[2.0, 3.0])

    def function(v):
        common = dict(episode_offsets=[0, 12, 20], times=times, arrivals=arrivals)
        streams = [
            rbc.torch.WindowStream(v, [-1, 0], **common),
            rbc.torch.WindowStream(
                v, [-1.0, 0.0], method="linear", causal=True, normalization=scale,
                transforms=[relative], **common,
            ),
        ]  # fmt: skip
        (one, _), (two, valid) = rbc.torch.windows(streams, [0, 1, 0], [3, 5, 11], lag=0.5)
        return one, two * valid[..., None]

    assert torch.autograd.gradcheck(function, values)


# ---- graphs -------------------------------------------------------------------------------------


def example():
    rng = np.random.default_rng(4)
    values, times, arrivals, queries = recording(rng, 2, 20)
    return values.detach(), times, torch.nan_to_num(arrivals, nan=1e9), queries


def resampled(values, times, arrivals, queries):
    return rbc.torch.resample(
        values, times, queries, arrivals=arrivals, lag=0.5, causal=True, max_age=2.0, max_gap=1.0
    )


def fused(values, times, arrivals, queries):
    stream = rbc.torch.Stream(
        values, times, arrivals=arrivals, causal=True, max_age=1.5, clock_offset=0.25
    )
    return rbc.torch.fuse([stream], queries, lag=0.5)


@pytest.mark.parametrize("function", [resampled, fused])
def test_compiled(function):
    arguments = example()
    expected = function(*arguments)
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    assert torch.equal(compiled(*arguments), expected)
    values = arguments[0].clone().requires_grad_()
    upstream = torch.randn_like(expected)
    (got,) = torch.autograd.grad(compiled(values, *arguments[1:]), values, upstream)
    (eager,) = torch.autograd.grad(function(values, *arguments[1:]), values, upstream)
    assert torch.equal(got, eager)


@pytest.mark.parametrize("function", [resampled, fused])
def test_exported(function):
    class Module(torch.nn.Module):
        def forward(self, *arguments):
            return function(*arguments)

    arguments = example()
    program = torch.export.export(Module(), arguments)
    assert torch.equal(program.module()(*arguments), function(*arguments))


@pytest.mark.parametrize("function", [resampled, fused])
def test_mapped(function):
    values, times, arrivals, queries = example()
    mapped = torch.vmap(function)(values, times, arrivals, queries)
    assert torch.equal(mapped, function(values, times, arrivals, queries))
    shared = torch.vmap(function, (0, None, 0, None))(values, times[0], arrivals, queries[0])
    for n in range(2):
        assert torch.equal(shared[n], function(values[n], times[0], arrivals[n], queries[0]))

    def loss(v, *rest):
        return function(v, *rest).sum()

    got = torch.vmap(torch.func.grad(loss))(values, times, arrivals, queries)
    (expected,) = torch.autograd.grad(
        function(values.requires_grad_(), times, arrivals, queries).sum(), values
    )
    torch.testing.assert_close(got, expected)


def test_operators_have_consistent_fake_kernels():
    values, times, arrivals, queries = example()
    values.requires_grad_()
    text = "lag=0.5;causal=True;max_age=2.0"
    none = [None] * 6
    torch.library.opcheck(
        torch.ops.robocache.resample.default, (values, times, queries, *none, arrivals, text)
    )
    lists = [[None]] * 5
    torch.library.opcheck(
        torch.ops.robocache.fuse.default,
        ([values], [times], queries, *lists, [arrivals], None, ["causal=True"], "lag=0.5"),
    )
    packed, once = values.detach().reshape(-1, 2).requires_grad_(), times.reshape(-1)
    bounds, anchors = torch.tensor([0, 20, 40]), torch.tensor([3, 4])
    torch.library.opcheck(
        torch.ops.robocache.windows.default,
        ([packed], [bounds], [once], [torch.tensor([-1.0, 0.0]).double()], [None],
         [arrivals.reshape(-1)], *[[None]] * 7, torch.tensor([0, 1]), anchors,
         ["method=linear;causal=True"], "lag=0.5"),
    )  # fmt: skip


# ---- arguments ----------------------------------------------------------------------------------


def test_times_with_a_unit():
    times = np.array([0, 10, 20, 30]).astype("timedelta64[ms]")
    arrivals = times + np.timedelta64(5, "ms")
    values = torch.arange(4.0)[:, None].requires_grad_()
    queries = np.array([12, 16, 21]).astype("timedelta64[ms]")
    options = dict(causal=True, max_age=np.timedelta64(9, "ms"))
    lag = np.timedelta64(1, "ms")
    out = rbc.torch.resample(values, times, queries, arrivals=arrivals, lag=lag, **options)
    plain = rbc.resample(values.detach(), times, queries, arrivals=arrivals, lag=lag, **options)
    assert torch.equal(out, plain) and out[:, 0].tolist() == [0.0, 1.0, 1.0]
    stream = rbc.torch.Stream(values, times, arrivals=arrivals, **options)
    assert torch.equal(rbc.torch.fuse([stream], queries, lag=lag), plain)
    windows = rbc.torch.WindowStream(
        values, [0], episode_offsets=[0, 4], times=times, arrivals=arrivals
    )
    ((rows, valid),) = rbc.torch.windows([windows], [0, 0], [0, 2], lag=lag)
    assert rows[:, 0, 0].tolist() == [0.0, 1.0] and valid[:, 0].tolist() == [False, True]


def test_arguments_without_a_gradient():
    values, times, arrivals, queries = example()
    values.requires_grad_()
    with pytest.raises(ValueError, match="arrivals: requires grad"):
        rbc.torch.resample(values, times, queries, arrivals=arrivals.requires_grad_())
    stream = rbc.torch.Stream(values, times, arrivals=arrivals)
    with pytest.raises(ValueError, match=r"streams\[0\]\.arrivals: requires grad"):
        rbc.torch.fuse([stream], queries)
    with pytest.raises(ValueError, match="max_age: "):
        rbc.torch.resample(values, times, queries, max_age=1.0)
    with pytest.raises(TypeError, match="lag: "):
        rbc.torch.resample(values, times, queries, lag="x", arrivals=arrivals.detach())
    with pytest.raises((TypeError, ValueError), match="arrivals: "):
        rbc.torch.resample(values, times, queries, arrivals=arrivals.detach().float())
