"""Properties of torch tensors other than their numbers: none may be lost silently."""

import numpy as np
import pytest

import robocache as rbc

torch = pytest.importorskip("torch")
forward_ad = pytest.importorskip("torch.autograd.forward_ad")

GRID = {"origin": (0, 0, 0), "voxel_size": 0.5, "shape": (2, 2, 2)}


def resampled(**given):
    arguments = {
        "values": torch.arange(8.0).reshape(1, 4, 2),
        "times": torch.arange(4.0),
        "query_times": torch.tensor([0.5, 1.5]),
    }
    return rbc.resample(**{**arguments, **given})


def differentiated(**given):
    arguments = {"values": torch.arange(8.0).reshape(1, 4, 2), "times": torch.arange(4.0)}
    return rbc.torch.resample(**{**arguments, "query_times": torch.tensor([0.5, 1.5]), **given})


def with_gradient(**given):
    values = torch.arange(8.0).reshape(1, 4, 2).requires_grad_()
    return differentiated(**{"values": values, **given})


def fused(**given):
    values = given.pop("values", torch.arange(8.0).reshape(1, 4, 2))
    query_times = given.pop("query_times", torch.tensor([0.5, 1.5]))
    options = {name: given.pop(name) for name in ("query_lengths", "out") if name in given}
    stream = rbc.Stream(values, given.pop("times", torch.arange(4.0)), **given)
    return rbc.fuse([stream], query_times, **options)


def voxelized(**given):
    return rbc.voxelize(**{"points": torch.rand(1, 9, 3), "reduction": "mean", **GRID, **given})


def listed(**given):
    return rbc.voxelize_sparse(**{"points": torch.rand(1, 9, 3), **GRID, **given})


def integrated(**given):
    arguments = {"points": torch.rand(1, 9, 3), "sensors": torch.zeros(3) - 1, "truncation": 0.5}
    if "tsdf" in given or "weight" in given:
        arguments.update(tsdf=torch.zeros(2, 2, 2), weight=torch.zeros(2, 2, 2))
    return rbc.voxelize_tsdf(**{**arguments, **GRID, **given})


VALUES = torch.arange(8.0).reshape(1, 4, 2)
SAMPLED = {
    "values": VALUES,
    "times": torch.arange(4.0),
    "query_times": torch.tensor([0.5, 1.5]),
    "mean": torch.ones(2),
    "std": torch.ones(2),
    "out": torch.zeros(1, 2, 2),
}
CLOUD = {"points": torch.rand(1, 9, 3), "features": torch.rand(1, 9, 1)}
FLOATS = [
    *((resampled, name, array) for name, array in SAMPLED.items()),
    *((differentiated, n, a) for n, a in SAMPLED.items() if n not in ("values", "out")),
    *((with_gradient, n, a) for n, a in SAMPLED.items() if n not in ("values", "out")),
    *((fused, name, array) for name, array in SAMPLED.items()),
    *((function, n, a) for function in (voxelized, listed) for n, a in CLOUD.items()),
    (voxelized, "out", torch.zeros(1, 2, 2, 2, 3)),
    (integrated, "points", CLOUD["points"]),
    (integrated, "sensors", torch.zeros(3) - 1),
    (integrated, "tsdf", torch.zeros(2, 2, 2)),
    (integrated, "weight", torch.zeros(2, 2, 2)),
]
LENGTHS = {"lengths": torch.tensor([3]), "query_lengths": torch.tensor([1])}
INDICES = [
    *((f, n, a) for f in (resampled, with_gradient, fused) for n, a in LENGTHS.items()),
    *((function, "lengths", torch.tensor([3])) for function in (voxelized, listed, integrated)),
]


def of_each(cases):
    ids = [f"{function.__name__}-{name}" for function, name, _ in cases]
    return pytest.mark.parametrize(("function", "name", "array"), cases, ids=ids)


@of_each(FLOATS + [(differentiated, "values", VALUES)])
def test_the_negative_bit_is_refused(function, name, array):
    negative = torch.complex(array, array).conj().imag
    assert negative.is_neg()
    with pytest.raises(ValueError, match=rf"^{name}: has its negative bit set.*resolve_neg\(\)"):
        function(**{name: negative})
    with torch.no_grad(), pytest.raises(ValueError, match=f"^{name}: has its negative bit set"):
        function(**{name: negative})
    if name != "out":
        function(**{name: array})


@of_each(INDICES)
def test_the_negative_bit_of_indices_is_refused(function, name, array):
    with pytest.raises(ValueError, match=f"^{name}: has its negative bit set"):
        function(**{name: torch._neg_view(array)})


def test_a_negative_gradient_is_read_unchanged():
    values = torch.randn(1, 4, 2, dtype=torch.float64, requires_grad=True)
    times, queries = torch.arange(4.0), torch.tensor([0.5, 1.5])
    out = rbc.torch.resample(values, times, queries)
    upstream = torch.randn(1, 2, 2, dtype=torch.float64, requires_grad=True)
    (got,) = torch.autograd.grad(out, values, upstream, create_graph=True)
    twice = torch.randn(1, 4, 2, dtype=torch.float64)
    (expected,) = torch.autograd.grad(got, upstream, -twice, retain_graph=True)
    negative = torch.complex(twice, twice).conj().imag
    assert negative.is_neg()
    (again,) = torch.autograd.grad(got, upstream, negative)
    assert torch.equal(again, expected)


@of_each(FLOATS)
def test_what_requires_grad_is_refused(function, name, array):
    array = array.clone().requires_grad_()
    with pytest.raises(ValueError, match=f"^{name}: requires grad, .* pass {name}.detach"):
        function(**{name: array})
    if name != "out" and function is not with_gradient:
        with torch.no_grad():
            function(**{name: array})


@of_each([case for case in FLOATS if case[0] is not with_gradient])
def test_tangents_are_refused(function, name, array):
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(array.clone(), torch.ones_like(array))
        with pytest.raises(ValueError, match=f"^{name}: has a tangent of forward mode"):
            function(**{name: dual})
        if name != "out":
            function(**{name: forward_ad.unpack_dual(dual).primal})


def test_torch_beside_numpy_is_refused_too():
    values, times, queries = VALUES.numpy(), np.arange(4.0), np.array([0.5, 1.5])
    with pytest.raises(ValueError, match="^times: requires grad"):
        rbc.resample(values, torch.arange(4.0).double().requires_grad_(), queries)
    with pytest.raises(ValueError, match="^query_times: requires grad"):
        rbc.resample(values, times, torch.from_numpy(queries).requires_grad_())
    with pytest.raises(ValueError, match="^out: requires grad"):
        rbc.resample(values, times, queries, out=torch.zeros(1, 2, 2, requires_grad=True))


# ---- what is written -----------------------------------------------------------------------------


@pytest.mark.parametrize("inference", [False, True])
def test_what_is_written_has_another_version(inference):
    with torch.inference_mode(inference):
        out, voxels = torch.zeros(1, 2, 2), torch.zeros(1, 2, 2, 2, 3)
        tsdf, weight = torch.zeros(2, 2, 2), torch.zeros(2, 2, 2)

    def versions():
        written = (out, voxels, tsdf, weight)
        return [0 if inference else array._version for array in written]

    before = versions()
    resampled(out=out)
    voxelized(out=voxels)
    integrated(tsdf=tsdf, weight=weight)
    assert inference or all(new > old for old, new in zip(before, versions()))
    before = versions()
    fused(out=out)
    assert inference or versions()[0] > before[0]
    with pytest.raises(ValueError, match="^max_gap"):
        resampled(out=out, max_gap=-1)
    assert rbc.resample(VALUES.numpy(), np.arange(4.0), np.array([0.5, 1.5]), out=out) is out


def test_autograd_notices_what_was_written():
    factor = torch.ones(1, 2, 2, requires_grad=True)
    out = resampled(out=torch.zeros(1, 2, 2))
    loss = (factor * out).sum()
    resampled(values=VALUES * 100, out=out)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


# ---- what a gradient is computed from ------------------------------------------------------------


def test_autograd_notices_that_std_was_written():
    mean, std = torch.ones(2), torch.ones(2)
    out = with_gradient(mean=mean, std=std)
    mean.mul_(100)  # which no gradient depends on
    out.sum().backward(retain_graph=True)
    std.mul_(100)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


def fill(array):
    array[...] = 0


@pytest.mark.parametrize(
    ("given", "change"),
    [
        ({"std": [2.0, 4.0]}, lambda std: std.__setitem__(0, 100.0)),
        ({"std": np.array([2.0, 4.0])}, fill),
        ({"mean": np.array([2.0, 4.0])}, fill),
        ({"method": [(0, 2, "linear")]}, lambda groups: groups.__setitem__(0, (0, 2, "next"))),
        ({"method": [[0, 2, "linear"]]}, lambda groups: groups[0].__setitem__(2, "next")),
        ({"times": np.arange(4.0)}, fill),
        ({"query_times": np.array([0.5, 1.5])}, fill),
        ({"query_times": [0.5, 1.5]}, lambda queries: queries.__setitem__(0, 3.0)),
        ({"lengths": np.array([3])}, fill),
        ({"lengths": [3]}, lambda lengths: lengths.__setitem__(0, 1)),
    ],
)
def test_what_is_changed_before_the_backward_pass_changes_nothing(given, change):
    for argument in ("times", "query_times"):
        if argument in given:
            other = {"times": "query_times", "query_times": "times"}[argument]
            given = {other: SAMPLED[other].double(), **given}

    def gradient(change):
        values = torch.arange(8.0).reshape(1, 4, 2).requires_grad_()
        own = {
            name: torch.clone(array) if isinstance(array, torch.Tensor) else copied(array)
            for name, array in given.items()
        }
        out = differentiated(values=values, **own)
        for array in own.values():
            if change is not None and not isinstance(array, torch.Tensor):
                change(array)
        out.sum().backward()
        return values.grad

    def copied(array):
        return array.copy() if isinstance(array, np.ndarray) else list(map(copied_item, array))

    def copied_item(item):
        return list(item) if isinstance(item, list) else item

    assert torch.equal(gradient(change), gradient(None))


# ---- dtypes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["complex64", "complex128", "float8_e4m3fn"])
def test_dtypes_that_are_refused_are_of_the_values(name):
    if not hasattr(torch, name):
        pytest.skip(f"this torch has no {name}")
    values = VALUES.to(getattr(torch, name))
    with pytest.raises(TypeError, match=f"^values: dtype is {name}, expected a float, integer or"):
        resampled(values=values)
    for given in ({"dtype": "float32"}, {"out": torch.zeros(1, 2, 2)}):
        with pytest.raises(TypeError, match="^values: dtype"):
            resampled(values=values, **given)
