"""Voxelization on the CPU against the independent reference, and everything that it must refuse."""

import math
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import robocache as rbc
import voxel_reference
from random_share import random_share
from resample_problems import assert_any_layout, same_bits
from voxel_problems import (
    ARRAYS,
    MODES,
    ORDERS,
    REDUCTIONS,
    SCALARS,
    by_name,
    dense_problems,
    sparse_problems,
)

GRID = {"origin": (0, 0, 0), "voxel_size": 1, "shape": (3, 4, 5)}


def same_numbers(a, b):
    """Check that shape, dtype and bits are equal, except for the bits of NaN."""
    a, b = np.asarray(a), np.asarray(b)
    if a.dtype.kind == "f" and a.shape == b.shape and a.dtype == b.dtype:
        both = np.isnan(a) & np.isnan(b)
        a, b = (np.where(both, a.dtype.type(0), each) for each in (a, b))
    return same_bits(a, b)


def same_voxels(got, expected):
    """A result, of any library on the CPU, and the arrays of another by name."""
    for name in (*ARRAYS, *SCALARS):
        array, other = getattr(got, name), expected[name]
        if (array is None) != (other is None):
            return False
        if array is not None and not same_numbers(np.asarray(array), np.asarray(other)):
            return False
    return True


def on_cpu(voxels):
    """A result of torch as NumPy's arrays."""
    return rbc.SparseVoxels(
        **{
            name: None if array is None else array.cpu().numpy()
            for name, array in by_name(voxels).items()
        }
    )


# ---- against the reference, at random ------------------------------------------------------------


def default_dtype(points, features, reduction="mean"):
    own = (points if features is None else features).dtype
    return {"occupancy": np.dtype(bool), "count": np.dtype("int32")}.get(reduction, own)


@settings(max_examples=random_share(1500))
@given(dense_problems())
def test_every_rule(problem):
    points, features, options = problem
    out, dropped = rbc.voxelize(points, features, return_num_points_outside=True, **options)
    assert type(out) is np.ndarray
    dtype = options.pop("dtype") or default_dtype(points, features, options["reduction"])
    expected, expected_dropped = voxel_reference.dense(points, features, dtype=dtype, **options)
    assert same_numbers(out, expected)
    assert same_bits(dropped, expected_dropped)


@settings(max_examples=random_share(1500))
@given(sparse_problems())
def test_every_rule_of_sparse(problem):
    points, features, options = problem
    voxels = rbc.voxelize_sparse(points, features, **options)
    if options["order"] is None:
        options["order"] = ORDERS[options["max_points"] is not None]
    options["dtype"] = options["dtype"] or default_dtype(points, features)
    capacity = options.pop("max_voxels") or max(1, math.prod(points.shape[:-1]))
    with_rows = options.pop("return_point_to_voxel")
    expected = voxel_reference.sparse(points, features, capacity=capacity, **options)
    if not with_rows:
        expected["point_to_voxel"] = None
    assert same_voxels(voxels, expected)

    count = int(voxels.num_voxels)
    trimmed = voxels.trimmed()
    for name in ARRAYS[:4]:
        if expected[name] is not None:
            assert same_numbers(getattr(trimmed, name), expected[name][:count])
    assert trimmed.point_to_voxel is voxels.point_to_voxel


@settings(max_examples=random_share(150))
@given(dense_problems(), st.data())
def test_out_in_any_layout_and_nothing_beside_it(problem, data):
    points, features, options = problem
    expected = rbc.voxelize(points, features, **options)
    assert_any_layout(
        data, expected, lambda out: rbc.voxelize(points, features, out=out, **options)
    )


@settings(max_examples=random_share(200))
@given(dense_problems(), sparse_problems())
def test_torch_gives_the_same_bits(dense_problem, sparse_problem):
    torch = pytest.importorskip("torch")

    def as_torch(points, features, options):
        options = {**options}
        for name in ("lengths", "batch_offsets"):
            if name in options:
                options[name] = torch.from_numpy(options[name])
        arrays = [
            None if each is None else torch.from_numpy(np.array(each))
            for each in (points, features)
        ]
        return arrays, options

    points, features, options = dense_problem
    expected = rbc.voxelize(points, features, return_num_points_outside=True, **options)
    arrays, options = as_torch(*dense_problem)
    got = rbc.voxelize(*arrays, return_num_points_outside=True, **options)
    assert all(isinstance(each, torch.Tensor) for each in got)
    assert all(same_bits(a.numpy(), b) for a, b in zip(got, expected))

    points, features, options = sparse_problem
    expected = rbc.voxelize_sparse(points, features, **options)
    arrays, options = as_torch(*sparse_problem)
    got = rbc.voxelize_sparse(*arrays, **options)
    assert isinstance(got.coords, torch.Tensor) and same_voxels(on_cpu(got), by_name(expected))


# ---- the rules, one at a time -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "voxel"),
    [
        (0.0, 0), (-0.0, 0), (1e-45, 0), (-1e-45, None), (0.99999994, 0), (1.0, 1),
        (2.9999998, 2), (3.0, None), (math.nan, None), (math.inf, None), (-math.inf, None),
        (1e38, None), (-1.0, None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_voxel_has_its_lower_faces_and_not_its_upper_ones(x, voxel, axis):
    points = np.full((1, 3), 0.5, np.float32)
    points[0, axis] = x
    out, dropped = rbc.voxelize(
        points, return_num_points_outside=True, **{**GRID, "shape": (3, 3, 3)}
    )
    expected = np.zeros((3, 3, 3), bool)
    if voxel is not None:
        place = [0, 0, 0]
        place[axis] = voxel
        expected[tuple(place)] = True
    assert same_bits(out, expected) and dropped == (voxel is None)


def test_modes_by_hand():
    points = np.array([[0.5, 0, 0], [0.6, 0, 0], [1.5, 0, 0], [0.7, 0, 0]], np.float32)
    features = np.array([[-1, 5], [-3, 7], [-9, 9], [-2, -12]], np.float32)
    grid = {"origin": [0, 0, 0], "voxel_size": 1.0, "shape": [3, 1, 1]}
    for mode, answers in {
        "sum": [[-6, 0], [-9, 9], [7, 7]],
        "mean": [[-2, 0], [-9, 9], [7, 7]],
        "max": [[-1, 7], [-9, 9], [7, 7]],
        "min": [[-3, -12], [-9, 9], [7, 7]],
    }.items():
        out = rbc.voxelize(points, features, reduction=mode, fill_value=7, **grid)
        assert same_bits(out[:, 0, 0], np.array(answers, np.float32))
    assert rbc.voxelize(points, **grid)[:, 0, 0].tolist() == [True, True, False]
    counts = rbc.voxelize(points, reduction="count", fill_value=-1, **grid)
    assert same_bits(counts[:, 0, 0], np.array([3, 1, -1], np.int32))
    # Without features, the columns of the points.
    assert same_bits(
        rbc.voxelize(points, reduction="max", **grid),
        rbc.voxelize(points, points, reduction="max", **grid),
    )


@pytest.mark.parametrize(
    ("points", "shape"),
    [((0, 4), (1, 1, 1)), ((0, 5, 3), (2, 1, 2)), ((2, 0, 3), (2, 1, 2)), ((1, 3), (1, 1, 1))],
)
def test_empty_and_single(points, shape):
    grid = {**GRID, "shape": shape}
    out, dropped = rbc.voxelize(
        np.zeros(points), reduction="mean", fill_value=3, return_num_points_outside=True, **grid
    )
    assert out.shape == (*points[:-2], *shape, points[-1]) and dropped.shape == points[:-2]
    assert not dropped.any() and (out == (0 if points == (1, 3) else 3)).all()
    voxels = rbc.voxelize_sparse(np.zeros(points), **grid)
    assert int(voxels.num_voxels) == (points == (1, 3)) and voxels.coords.shape == (1, 4)
    assert voxels.trimmed().features.shape == (int(points == (1, 3)), points[-1])


def test_a_grid_of_more_than_2_to_the_31_voxels():
    random = np.random.default_rng(1)
    index = random.integers(0, 2**20, (1000, 3))
    points = index + 0.5
    grid = {"origin": (0, 0, 0), "voxel_size": 1.0, "shape": (2**20, 2**20, 2**20)}
    voxels = rbc.voxelize_sparse(points, **grid).trimmed()
    order = np.lexsort(index.T[::-1])
    np.testing.assert_array_equal(voxels.coords[:, 1:], index[order])
    np.testing.assert_array_equal(voxels.features, points[order])
    with pytest.raises(ValueError, match=r"^shape: .* expected at most 2\^62 voxels in all"):
        rbc.voxelize_sparse(points, **{**grid, "shape": (2**21, 2**21, 2**21)})


def test_an_output_of_more_than_2_to_the_31_voxels():
    if os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 2**32:
        pytest.skip("less than 4 GiB of memory are free")
    points = np.array([[0.5, 0.5, 0.5], [2**16 - 0.5, 2**15 + 0.5, 0.5]])
    grid = {"origin": (0, 0, 0), "voxel_size": 1.0, "shape": (2**16, 2**15 + 1, 1)}
    out = rbc.voxelize(points, **grid)
    assert out[0, 0, 0] and out[-1, -1, 0] and np.count_nonzero(out) == 2


# ---- many points, against NumPy -----------------------------------------------------------------


def many(dtype=np.float32, points=200_000):
    random = np.random.default_rng(2)
    cloud = random.normal(scale=8, size=(points, 3)).astype(dtype)
    features = (random.normal(size=(points, 4)) * 10.0 ** np.arange(-2, 2)).astype(dtype)
    grid = {"origin": (-16, -16, -8), "voxel_size": 0.25, "shape": (128, 128, 64)}
    index, inside = voxel_reference.indices_of(cloud, **grid)
    flat = np.ravel_multi_index(index.T, grid["shape"], mode="clip")
    return cloud, features, grid, flat, inside


def of_numpy(features, flat, inside, shape):
    """counts and sums, maxima, minima of float64 by voxel."""
    voxels, channels = math.prod(shape), features.shape[1]
    counts = np.bincount(flat[inside], minlength=voxels)
    sums = np.zeros((voxels, channels))
    np.add.at(sums, flat[inside], features[inside].astype(np.float64))
    maxima = np.full((voxels, channels), -np.inf)
    np.maximum.at(maxima, flat[inside], features[inside])
    minima = np.full((voxels, channels), np.inf)
    np.minimum.at(minima, flat[inside], features[inside])
    return counts.reshape(shape), *(x.reshape(*shape, channels) for x in (sums, maxima, minima))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_points_against_numpy(dtype):
    cloud, features, grid, flat, inside = many(dtype)
    counts, sums, maxima, minima = of_numpy(features, flat, inside, grid["shape"])
    got, dropped = rbc.voxelize(cloud, reduction="count", return_num_points_outside=True, **grid)
    np.testing.assert_array_equal(got, counts)
    assert dropped == (~inside).sum() and 0.01 < inside.mean() < 0.99
    np.testing.assert_array_equal(rbc.voxelize(cloud, **grid), counts > 0)
    some = counts[..., None] > 0
    for mode, expected in {"max": maxima, "min": minima}.items():
        out = rbc.voxelize(cloud, features, reduction=mode, fill_value=5, **grid)
        np.testing.assert_array_equal(out, np.where(some, expected, 5))
    # In float64, so that only the sums themselves are compared.
    size = np.abs(features).max()
    out = rbc.voxelize(cloud, features, reduction="sum", dtype="float64", **grid)
    np.testing.assert_allclose(out, sums, rtol=0, atol=size * counts.max() * 2.0**-51)
    means = rbc.voxelize(cloud, features, reduction="mean", dtype="float64", **grid)
    np.testing.assert_array_equal(means, out / np.maximum(counts, 1)[..., None])
    for mode, exact in {"sum": out, "mean": means}.items():
        own = rbc.voxelize(cloud, features, reduction=mode, **grid)
        assert same_bits(own, exact.astype(dtype))


@pytest.mark.parametrize("mode", MODES)
def test_the_same_bits_in_any_order_and_with_any_threads(mode):
    cloud, features, grid, _, _ = many()
    features = features if mode in REDUCTIONS else None
    out = rbc.voxelize(cloud, features, reduction=mode, **grid)
    order = np.random.default_rng(3).permutation(len(cloud))
    shuffled = features if features is None else features[order]
    assert same_bits(rbc.voxelize(cloud[order], shuffled, reduction=mode, **grid), out)
    assert same_bits(
        rbc.voxelize(cloud, features, reduction=mode, deterministic=False, **grid), out
    )
    for threads, simd in ((1, "portable"), (2, None), (3, None)):
        with rbc.Context("cpu", threads=threads, simd=simd) as context:
            assert same_bits(
                rbc.voxelize(cloud, features, reduction=mode, backend=context, **grid), out
            )


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("order", ORDERS)
def test_sparse_scattered_is_dense(reduce, order):
    cloud, features, grid, flat, inside = many()
    dense, dropped = rbc.voxelize(
        cloud, features, reduction=reduce, return_num_points_outside=True, **grid
    )
    counts = rbc.voxelize(cloud, reduction="count", **grid)
    voxels = rbc.voxelize_sparse(cloud, features, reduction=reduce, order=order, **grid)
    for threads in (1, 3):
        with rbc.Context("cpu", threads=threads) as context:
            again = rbc.voxelize_sparse(
                cloud, features, reduction=reduce, order=order, backend=context, **grid
            )
            assert same_voxels(again, by_name(voxels))
    trimmed = voxels.trimmed()
    place = tuple(trimmed.coords[:, 1:].T)
    scattered, scattered_counts = np.zeros_like(dense), np.zeros_like(counts)
    scattered[place], scattered_counts[place] = trimmed.features, trimmed.points_per_voxel
    assert same_bits(scattered, dense) and same_bits(scattered_counts, counts)
    assert int(trimmed.points_per_voxel.sum() + trimmed.num_points_outside) == len(cloud)
    assert same_bits(trimmed.num_points_outside, dropped)
    assert not trimmed.num_voxels_over_capacity.any()
    assert not trimmed.num_points_over_capacity.any()
    assert not trimmed.num_points_over_group.any()
    rows = trimmed.point_to_voxel
    np.testing.assert_array_equal(rows >= 0, inside)
    keys = np.ravel_multi_index(place, grid["shape"])
    np.testing.assert_array_equal(keys[rows[inside]], flat[inside])
    if order == "lexicographic":
        assert (np.diff(keys) > 0).all()
    else:
        _, first = np.unique(flat[inside], return_index=True)
        np.testing.assert_array_equal(keys, flat[inside][np.sort(first)])


@pytest.mark.parametrize("order", ORDERS)
def test_what_does_not_fit_is_counted(order):
    cloud, features, grid, flat, inside = many()
    whole = rbc.voxelize_sparse(cloud, features, order=order, **grid).trimmed()
    capacity, most = len(whole.coords) // 2, 3
    part = rbc.voxelize_sparse(
        cloud, features, order=order, max_voxels=capacity, max_points=most, **grid
    )
    assert int(part.num_voxels) == capacity
    assert same_bits(part.coords, whole.coords[:capacity])
    assert same_bits(part.features, whole.features[:capacity])
    np.testing.assert_array_equal(
        part.points_per_voxel, np.minimum(whole.points_per_voxel[:capacity], most)
    )
    rows = whole.point_to_voxel
    np.testing.assert_array_equal(part.point_to_voxel, np.where(rows < capacity, rows, -1))
    voxels, points = int(part.num_voxels_over_capacity), int(part.num_points_over_capacity)
    beyond = int(part.num_points_over_group)
    assert voxels == len(whole.coords) - capacity
    assert points == whole.points_per_voxel[capacity:].sum()
    assert part.points_per_voxel.sum() + part.num_points_outside + points + beyond == len(cloud)
    # The first points of a voxel, by index.
    kept = np.flatnonzero((rows >= 0) & (rows < capacity))
    kept = kept[np.argsort(rows[kept], kind="stable")]
    starts = np.searchsorted(rows[kept], np.arange(capacity))
    slots = np.arange(len(kept)) - starts[rows[kept]]
    expected = np.zeros_like(part.grouped)
    expected[rows[kept[slots < most]], slots[slots < most]] = features[kept[slots < most]]
    assert same_bits(part.grouped, expected)


def test_batches_are_calls_of_their_own():
    random = np.random.default_rng(4)
    lengths = np.array([300, 0, 500, 17])
    points = random.normal(size=(4, 500, 5)).astype(np.float32)
    grid = {"origin": (-1, -1, -1), "voxel_size": 0.1, "shape": (20, 20, 20)}
    parts = [points[b, :n] for b, n in enumerate(lengths)]
    options = {"reduction": "mean", "return_num_points_outside": True, **grid}
    expected = [rbc.voxelize(part, **options) for part in parts]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    packed = np.concatenate(parts)
    for rows, more in ((points, {"lengths": lengths}), (packed, {"batch_offsets": offsets})):
        for kind in (np.asarray, np.ndarray.tolist):
            own = {name: kind(each) for name, each in more.items()}
            out, dropped = rbc.voxelize(rows, **own, **options)
            assert same_bits(out, np.stack([each for each, _ in expected]))
            np.testing.assert_array_equal(dropped, [each for _, each in expected])
        voxels = rbc.voxelize_sparse(rows, **more, **grid)
        begin = 0
        for b, part in enumerate(parts):
            one = rbc.voxelize_sparse(part, **grid).trimmed()
            own = slice(begin, begin + len(one.coords))
            assert (voxels.coords[own, 0] == b).all()
            assert same_bits(voxels.coords[own, 1:], one.coords[:, 1:])
            assert same_bits(voxels.features[own], one.features)
            begin = own.stop
        assert int(voxels.num_voxels) == begin


# ---- frameworks ----------------------------------------------------------------------------------


def test_columns_of_a_scan_without_a_copy():
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(5)
    scan = random.uniform(0, 3, (1000, 5)).astype(np.float32)
    for columns in (3, 4, 5):
        for mode in REDUCTIONS:
            own = np.ascontiguousarray(scan[:, :columns]), np.ascontiguousarray(scan[:, 3:4])
            expected = rbc.voxelize(*own, reduction=mode, **GRID)
            assert same_bits(
                rbc.voxelize(scan[:, :columns], scan[:, 3:4], reduction=mode, **GRID), expected
            )
    tensor = torch.from_numpy(scan)
    out = torch.empty((5, 4, 3), dtype=torch.int32)
    pointer = out.data_ptr()
    view = out.permute(2, 1, 0)
    assert rbc.voxelize(tensor[:, :4], reduction="count", out=view, **GRID) is view
    assert out.data_ptr() == pointer and int(out.sum()) == 1000
    scan[:, 0] += 1  # seen by the next call: it reads the tensor's own memory
    rbc.voxelize(tensor[:, :4], reduction="count", out=view, **GRID)
    assert int(view[0].sum()) == 0
    # A field of records, as in point cloud messages.
    records = np.zeros(3, np.dtype([("xyz", "3f4"), ("ring", "i4")]))
    records["xyz"] = [[0, 0, 0], [0, 0, 0], [2, 2, 2]]
    assert rbc.voxelize(records["xyz"], reduction="count", **GRID)[0, 0, 0] == 2


def test_nothing_in_the_size_of_the_points_is_copied():
    points = np.broadcast_to(np.float32([0.5, 1.5, 2.5]), (2**24, 3))
    counts = rbc.voxelize(points, reduction="count", **GRID)
    assert counts[0, 1, 2] == 2**24 and np.count_nonzero(counts) == 1
    with pytest.raises(ValueError, match=r"^points: got 2147483648, expected at most 2\^31 - 1"):
        rbc.voxelize(np.broadcast_to(points[0], (2**31, 3)), **GRID)


def test_frameworks_mix_on_the_cpu():
    torch = pytest.importorskip("torch")
    points = np.random.default_rng(6).uniform(0, 3, (50, 3))
    features = torch.ones(50, 2, dtype=torch.bfloat16)
    out = rbc.voxelize(torch.from_numpy(points), features, reduction="sum", **GRID)
    assert out.dtype == torch.bfloat16 and out.shape == (3, 4, 5, 2)
    out = rbc.voxelize(points, features.float(), reduction="sum", **GRID)
    assert type(out) is np.ndarray and out.dtype == np.float32
    voxels = rbc.voxelize_sparse(points, features.half(), max_points=2, **GRID)
    assert type(voxels.coords) is np.ndarray
    assert voxels.features.dtype == voxels.grouped.dtype == np.float16
    with pytest.raises(ValueError, match="^points: requires grad, .* pass points.detach"):
        rbc.voxelize(torch.zeros(3, 3, requires_grad=True), **GRID)
    for function in (rbc.voxelize_sparse, lambda *a, **k: rbc.voxelize(*a, reduction="sum", **k)):
        with pytest.raises(ValueError, match="^features: requires grad, .* pass features.detach"):
            function(torch.zeros(3, 3), torch.zeros(3, 1, requires_grad=True), **GRID)


def test_bfloat16_rounds_once():
    torch = pytest.importorskip("torch")
    random = np.random.default_rng(7)
    points = torch.from_numpy(random.uniform(0, 3, (500, 3)))
    features = torch.from_numpy(random.normal(size=(500, 4))).bfloat16()
    exact = rbc.voxelize(points, features, reduction="sum", dtype="float64", **GRID)
    assert torch.equal(
        rbc.voxelize(points, features, reduction="sum", **GRID), exact.float().bfloat16()
    )
    same = rbc.voxelize(points, features.double(), reduction="max", **GRID)
    assert torch.equal(rbc.voxelize(points, features, reduction="max", **GRID).double(), same)
    low = points.bfloat16()
    assert torch.equal(rbc.voxelize(low, **GRID), rbc.voxelize(low.float(), **GRID))


def test_jax():
    jax = pytest.importorskip("jax")
    random = np.random.default_rng(8)
    points = random.uniform(0, 3, (50, 4)).astype(np.float32)
    array = jax.numpy.asarray(points)
    out, dropped = rbc.voxelize(array, reduction="mean", return_num_points_outside=True, **GRID)
    assert isinstance(out, jax.Array) and out.dtype == np.float32
    assert same_bits(np.asarray(out), rbc.voxelize(points, reduction="mean", **GRID))
    voxels, expected = (rbc.voxelize_sparse(each, max_points=4, **GRID) for each in (array, points))
    assert isinstance(voxels.grouped, jax.Array) and int(dropped) == 0
    count = int(expected.num_voxels)
    trimmed = voxels.trimmed()
    for name in ("coords", "points_per_voxel", "features", "grouped"):
        assert same_bits(np.asarray(getattr(trimmed, name)), getattr(expected, name)[:count])
    tsdf, weight = rbc.voxelize_tsdf(array, [9.0, 9.0, 9.0], truncation=1, **GRID)
    assert isinstance(tsdf, jax.Array) and isinstance(weight, jax.Array)
    again = rbc.voxelize_tsdf(points, [9.0, 9.0, 9.0], truncation=1, **GRID)
    assert same_bits(np.asarray(tsdf), again[0]) and same_bits(np.asarray(weight), again[1])


def test_kinds_of_grids():
    torch = pytest.importorskip("torch")
    points = np.random.default_rng(9).uniform(0, 2, (50, 3))
    expected = rbc.voxelize(points, origin=(0, 0, 0), voxel_size=0.5, shape=(4, 4, 4))
    for origin in ([0, 0, 0], np.zeros(3), np.zeros(3, np.float32), torch.zeros(3)):
        for size in (0.5, np.float32(0.5), np.array(0.5), torch.tensor(0.5), (0.5,) * 3,
                     np.full(3, 0.5)):  # fmt: skip
            for shape in ([4, 4, 4], np.array([4, 4, 4]), torch.Size([4, 4, 4])):
                grid = {"origin": origin, "voxel_size": size, "shape": shape}
                assert same_bits(rbc.voxelize(points, **grid), expected)


def test_reduce_none_leaves_the_features_away():
    points = np.random.default_rng(10).uniform(0, 3, (50, 3))
    voxels = rbc.voxelize_sparse(points, reduction=None, **GRID)
    assert voxels.features is None and voxels.trimmed().features is None
    assert same_bits(voxels.coords, rbc.voxelize_sparse(points, **GRID).coords)


# ---- tsdf ---------------------------------------------------------------------------------------

TSDF_GRID = {"origin": (-1, -1, 0.5), "voxel_size": (0.1, 0.125, 0.1), "shape": (20, 16, 20)}


def wall(points=400):
    """Points of a surface that is seen from around the origin."""
    random = np.random.default_rng(11)
    xy = random.uniform(-0.8, 0.8, (points, 2))
    z = 1.5 + 0.3 * np.sin(3 * xy[:, :1]) + 0.01 * random.normal(size=(points, 1))
    return np.concatenate([xy, z], axis=1)


@pytest.mark.parametrize("carve", [False, True])
@pytest.mark.parametrize("weighting", ["constant", "inverse_square"])
def test_tsdf_against_numpy(weighting, carve):
    points, sensor = wall(), np.array([0.013, -0.021, 0.037])
    options = {"truncation": 0.25, "carve": carve, **TSDF_GRID}
    tsdf, weight = rbc.voxelize_tsdf(points, sensor, weighting=weighting, **options)
    weight_of = None if weighting == "constant" else lambda r: min(1.0, 1 / r**2)
    distances, weights, touched = voxel_reference.tsdf(
        points, sensor, weight_of=weight_of, **options
    )
    assert tsdf.dtype == weight.dtype == np.float32 and touched.mean() < 0.01
    seen = weights > 0
    assert (weight > 0)[~touched].tolist() == seen[~touched].tolist() and 0.05 < seen.mean() < 0.9
    np.testing.assert_allclose(weight[~touched], weights[~touched], rtol=1e-6, atol=1e-6)
    expected = np.where(seen, distances / np.where(seen, weights, 1), 0)
    np.testing.assert_allclose(tsdf[~touched], expected[~touched], rtol=0, atol=1e-6)


def test_tsdf_integrates_cloud_after_cloud():
    points = wall(1200).reshape(3, 400, 3).astype(np.float32)
    sensors = np.array([[0, 0, 0], [0.3, 0, 0], [0, -0.2, 0.1]], np.float32)
    options = {"truncation": 0.25, **TSDF_GRID}
    tsdf, weight, dropped = rbc.voxelize_tsdf(
        points, sensors, return_num_points_unused=True, **options
    )
    assert dropped.tolist() == [0, 0, 0] and dropped.dtype == np.int64
    volume = None, None
    for cloud, sensor in zip(points, sensors):
        volume = rbc.voxelize_tsdf(
            cloud, sensor.tolist(), tsdf=volume[0], weight=volume[1], **options
        )
    np.testing.assert_allclose(volume[0], tsdf, rtol=0, atol=1e-6)
    np.testing.assert_allclose(volume[1], weight, rtol=1e-6)
    offsets, order = [0, 400, 800, 1200], np.random.default_rng(12).permutation(400)
    packed = points[:, order].reshape(1200, 3)
    again = rbc.voxelize_tsdf(packed, sensors, batch_offsets=offsets, **options)
    assert same_bits(again[0], tsdf) and same_bits(again[1], weight)
    kept = [each.copy() for each in volume]
    assert rbc.voxelize_tsdf(
        points, sensors, tsdf=volume[0], weight=volume[1], lengths=[0, 0, 0], **options
    ) == tuple(volume)
    assert same_bits(volume[0], kept[0]) and same_bits(volume[1], kept[1])


def test_tsdf_is_positive_in_front_and_stops_at_max_weight():
    points = np.tile([[0.05, 0.05, 1.52]], (10, 1))
    grid = {"origin": (0, 0, 0), "voxel_size": 0.1, "shape": (1, 1, 30)}
    tsdf, weight = rbc.voxelize_tsdf(points, [0.05, 0.05, 0.0], truncation=0.5, **grid)
    centres = 0.05 + 0.1 * np.arange(30)
    passed = (centres > 1.0) & (centres < 2.1)
    np.testing.assert_allclose(
        tsdf[0, 0, passed], np.clip(1.52 - centres[passed], -0.5, 0.5), atol=1e-6
    )
    assert weight[0, 0].tolist() == np.where(passed, 10, 0).tolist()
    _, weight = rbc.voxelize_tsdf(
        points, [0.05, 0.05, 0.0], truncation=0.5, max_weight=4, carve=True, **grid
    )
    assert weight[0, 0].tolist() == np.where(centres < 2.1, 4, 0).tolist()
    _, _, dropped = rbc.voxelize_tsdf(
        np.array([[0.05, 0.05, 0], [math.nan, 0, 0], [0.05, 0.05, 1], [9, 9, 9]]),
        [0.05, 0.05, 0.0],
        truncation=0.1,
        return_num_points_unused=True,
        **grid,
    )
    assert dropped == 3


def test_tsdf_of_torch():
    torch = pytest.importorskip("torch")
    points = wall().astype(np.float32)
    options = {"truncation": 0.25, **TSDF_GRID}
    expected = rbc.voxelize_tsdf(points, [0, 0, 0], **options)
    got = rbc.voxelize_tsdf(torch.from_numpy(points), torch.zeros(3), **options)
    assert all(same_bits(a.numpy(), b) for a, b in zip(got, expected))
    tsdf, weight = torch.zeros(20, 16, 20), torch.zeros(20, 20, 16).transpose(1, 2)
    same = rbc.voxelize_tsdf(
        torch.from_numpy(points), [0, 0, 0], tsdf=tsdf, weight=weight, **options
    )
    assert same[0] is tsdf and same[1] is weight
    assert same_bits(tsdf.numpy(), expected[0]) and same_bits(weight.numpy(), expected[1])


# ---- what must be refused ------------------------------------------------------------------------

POINTS = np.zeros((2, 6, 3), np.float32)


def call(points=POINTS, features=None, function=rbc.voxelize, **changes):
    """A call that is valid except for the changes."""
    return function(points, features, **{**GRID, **changes})


OF_BOTH = [
    # Not arrays, and dtypes
    ({"points": [[1.0]]}, TypeError, "points: is a list, expected an array"),
    ({"points": None}, TypeError, "points: is None, expected an array"),
    ({"points": np.zeros((2, 3), int)}, TypeError, "points: dtype is int64, expected a float"),
    ({"points": np.zeros((2, 3), complex)}, TypeError, "points: dtype is complex128"),
    ({"points": np.zeros((2, 3), ">f4")}, TypeError, "points: dtype is >f4, .* native byte order"),
    ({"lengths": 3}, TypeError, "lengths: is an int, expected an array"),
    ({"lengths": [1.5, 2]}, TypeError, "lengths: is a list of float64, expected int64"),
    ({"lengths": np.zeros(2)}, TypeError, "lengths: dtype is float64, expected int32 or int64"),
    ({"dtype": "quaternion"}, TypeError, "dtype: is 'quaternion', expected"),
    # Shapes
    ({"points": np.zeros(3)}, ValueError, r"points: rank is 1 \(shape \[3\]\), expected 2 or 3"),
    ({"points": np.zeros((1, 2, 4, 3))}, ValueError, "points: rank is 4"),
    ({"points": np.zeros((6, 2))}, ValueError, r"points: shape is \[6,2\], expected 3 columns"),
    ({"lengths": np.zeros(3, np.int32)}, ValueError, r"lengths: shape is \[3\], expected \[2\]"),
    # Clouds
    ({"lengths": [6, 7]}, ValueError, "lengths: row 1 is 7, expected 0 to 6"),
    ({"lengths": [-1, 6]}, ValueError, "lengths: row 0 is -1, expected 0 to 6"),
    ({"batch_offsets": [0, 6]}, ValueError, "points: rank is 3"),
    (
        {"points": POINTS[0], "batch_offsets": [0, 7]},
        ValueError,
        "batch_offsets: index 1 is 7, past the 6",
    ),
    (
        {"points": POINTS[0], "batch_offsets": [0, 5, 3]},
        ValueError,
        "batch_offsets: decrease at index 2",
    ),
    ({"points": POINTS[0], "batch_offsets": [-1, 6]}, ValueError, "batch_offsets: index 0 is -1"),
    ({"points": POINTS[0], "batch_offsets": []}, ValueError, r"batch_offsets: shape is \[0\]"),
    (
        {"points": POINTS[0], "batch_offsets": [0, 6], "lengths": [6]},
        ValueError,
        "lengths: expected null with batch_offsets",
    ),
    # The grid
    ({"origin": (0, 0)}, ValueError, "origin: has 2 elements, expected 3 numbers"),
    ({"origin": 0}, TypeError, "origin: is 0, expected 3 numbers"),
    ({"origin": "abc"}, TypeError, "origin: is 'abc', expected 3 numbers"),
    ({"origin": (0, math.nan, 0)}, ValueError, r"origin\[1\]: is nan, expected a finite float32"),
    ({"origin": (0, 0, 1e39)}, ValueError, r"origin\[2\]: is 1e\+39, expected a finite float32"),
    ({"voxel_size": 0}, ValueError, r"voxel_size\[0\]: is 0, expected more than 0"),
    ({"voxel_size": (1, -1, 1)}, ValueError, r"voxel_size\[1\]: is -1, expected more than 0"),
    ({"voxel_size": math.nan}, ValueError, r"voxel_size\[0\]: is nan, expected more than 0"),
    ({"voxel_size": math.inf}, ValueError, r"voxel_size\[0\]: is inf, expected "),
    ({"voxel_size": 1e-40}, ValueError, r"voxel_size\[0\]: is 1e-40, .* inverse is a finite"),
    (
        {"voxel_size": (1, 1)},
        ValueError,
        "voxel_size: has 2 elements, expected a number or 3 numbers",
    ),
    ({"voxel_size": None}, TypeError, "voxel_size: is None, expected a number or 3 numbers"),
    ({"shape": (3, 4)}, ValueError, "shape: has 2 elements, expected 3 ints"),
    ({"shape": 3}, TypeError, "shape: is 3, expected 3 ints"),
    ({"shape": (3.0, 4, 5)}, TypeError, r"shape: is \(3.0, 4, 5\), expected 3 ints"),
    ({"shape": (3, 0, 5)}, ValueError, r"shape\[1\]: is 0, expected 1 to 2\^31 - 1"),
    ({"shape": (3, 4, -5)}, ValueError, r"shape\[2\]: is -5, expected 1 to 2\^31 - 1"),
    ({"shape": (2**31, 1, 1)}, ValueError, r"shape\[0\]: is 2147483648, expected 1 to 2\^31 - 1"),
    ({"shape": (2**70, 1, 1)}, ValueError, "shape: is .*, expected 3 ints from 1 to"),
    ({"shape": (2**21,) * 3}, ValueError, r"shape: .* for 2 clouds, expected at most 2\^62"),
    # Devices
    ({"backend": "tpu"}, ValueError, "backend: is 'tpu', expected"),
    ({"backend": 3}, TypeError, "backend: is an int, expected"),
]
OF_FEATURES = [
    ({"features": [0.0]}, TypeError, "features: is a list, expected an array"),
    ({"features": np.zeros((2, 6, 1), int)}, TypeError, "features: dtype is int64, expected a"),
    ({"features": np.zeros((2, 6, 1), "S4")}, TypeError, r"features: dtype is \|S4, expected a"),
    ({"features": np.zeros((2, 6))}, ValueError, "features: rank is 2"),
    (
        {"features": np.zeros((2, 5, 4))},
        ValueError,
        r"features: shape is \[2,5,4\], expected \[2,6",
    ),
    (
        {"features": np.zeros((1, 6, 4))},
        ValueError,
        r"features: shape is \[1,6,4\], expected \[2,6",
    ),
]
OF_DENSE = [
    (
        {"reduction": "median"},
        ValueError,
        "reduction: is 'median', expected one of 'occupancy', 'count'",
    ),
    ({"reduction": 3}, ValueError, "reduction: is 3, expected one of"),
    ({"features": POINTS}, ValueError, "features: are only used by sum, mean, max and min"),
    (
        {"features": POINTS, "reduction": "count"},
        ValueError,
        "features: are only used by sum, mean, max and min",
    ),
    ({"dtype": "int64"}, TypeError, "out: dtype is int64, expected bool, uint8, int32 or a float"),
    (
        {"dtype": bool, "reduction": "count"},
        TypeError,
        "out: dtype is bool, expected int32, int64 or",
    ),
    ({"dtype": "int32", "reduction": "sum"}, TypeError, "out: dtype is int32, expected a float"),
    ({"out": [0.0]}, TypeError, "out: is a list, expected an array"),
    ({"out": np.zeros((2, 3, 4, 6), bool)}, ValueError, r"out: shape is \[2,3,4,6\], expected"),
    (
        {"out": np.zeros((3, 4, 5), bool)},
        ValueError,
        r"out: shape is \[3,4,5\], expected \[2,3,4,5\]",
    ),
    (
        {"out": np.zeros((2, 3, 4, 5)), "reduction": "sum"},
        ValueError,
        r"out: shape is \[2,3,4,5\], expected \[2,3,4,5,3\]",
    ),
    (
        {"dtype": "float16", "out": np.zeros((2, 3, 4, 5), bool)},
        TypeError,
        "dtype: is float16, but out is bool",
    ),
    ({"out": np.broadcast_to(False, (2, 3, 4, 5))}, ValueError, "out: is read-only"),
    ({"fill_value": 2}, ValueError, "fill_value: 2 cannot be written as bool"),
    (
        {"fill_value": 0.5, "reduction": "count"},
        ValueError,
        "fill_value: 0.5 cannot be written as",
    ),
]
OF_SPARSE = [
    ({"reduction": "count"}, ValueError, "reduction: is 'count', expected one of 'sum', 'mean'"),
    ({"order": "random"}, ValueError, "order: is 'random', expected one of 'lexicographic'"),
    ({"max_voxels": 0}, ValueError, "max_voxels: is 0, expected 1 or more"),
    ({"max_voxels": 1.5}, TypeError, "max_voxels: is 1.5, expected an int"),
    ({"max_points": -1}, ValueError, "max_points: is -1, expected 1 or more"),
    ({"max_points": "all"}, TypeError, "max_points: is 'all', expected an int"),
    ({"dtype": "int32"}, TypeError, "outputs.voxel_features: dtype is int32, expected a float"),
]
OF_TSDF = [
    ({"truncation": 0}, ValueError, "truncation: is 0, expected "),
    ({"truncation": math.nan}, ValueError, "truncation: is nan, expected "),
    ({"max_weight": 0}, ValueError, "max_weight: is 0, expected "),
    ({"weighting": "gauss"}, ValueError, "weighting: is 'gauss', expected one of 'constant'"),
    ({"features": [0, 0]}, ValueError, "sensors: shape is "),
    ({"features": None}, TypeError, "sensors: is None, expected an array"),
    ({"features": np.zeros(3, int)}, TypeError, "sensors: dtype is int64, expected float32 or"),
    ({"tsdf": np.zeros((3, 4, 5), np.float32)}, ValueError, "tsdf: pass both tsdf and weight"),
    (
        {"tsdf": np.zeros((3, 4, 5)), "weight": np.zeros((3, 4, 5), np.float32)},
        TypeError,
        "tsdf: dtype is float64, expected float32",
    ),
    (
        {"tsdf": np.zeros((3, 4, 5), "f4"), "weight": np.zeros((3, 4, 6), "f4")},
        ValueError,
        r"weight: shape is \[3,4,6\], expected \[3,4,5\]",
    ),
]


def sparse(*arguments, reduction="mean", **options):
    return rbc.voxelize_sparse(*arguments, reduction=reduction, **options)


def tsdf(points, sensors, truncation=1.0, **options):
    return rbc.voxelize_tsdf(points, sensors, truncation=truncation, **options)


REFUSED = [
    *[(rbc.voxelize, {}, *row) for row in OF_BOTH + OF_DENSE],
    *[(rbc.voxelize, {"reduction": "mean"}, *row) for row in OF_FEATURES],
    *[(sparse, {}, *row) for row in OF_BOTH + OF_FEATURES],
    *[(rbc.voxelize_sparse, {}, *row) for row in OF_SPARSE],
    *[(tsdf, {"features": [0, 0, 0]}, *row) for row in OF_BOTH + OF_TSDF if "dtype" not in row[0]],
]


@pytest.mark.parametrize(
    ("function", "more", "changes", "error", "message"),
    REFUSED,
    ids=[f"{row[0].__name__}-{row[-1][:40]}" for row in REFUSED],
)
def test_refused(function, more, changes, error, message):
    with pytest.raises(error, match=f"^{message}"):
        call(function=function, **{**more, **changes})


def test_an_output_that_overlaps_is_refused():
    room = np.zeros(200, np.float32)
    with pytest.raises(ValueError, match="^points: overlaps out"):
        call(points=room[:36].reshape(2, 6, 3), out=room[35:155].reshape(2, 3, 4, 5))
    with pytest.raises(ValueError, match="^out: "):
        call(out=np.lib.stride_tricks.as_strided(room, (2, 3, 4, 5), (0, 80, 20, 4)))
    with pytest.raises(ValueError, match="^weight: overlaps tsdf"):
        volume = np.zeros((3, 4, 5), np.float32)
        rbc.voxelize_tsdf(POINTS, [0, 0, 0], truncation=1, tsdf=volume, weight=volume, **GRID)


def test_nothing_is_written_on_an_error():
    out = np.full((2, 3, 4, 5), 123, np.int32)
    for changes in ({"lengths": [6, 7]}, {"voxel_size": 0}, {"origin": (0, 0, math.nan)}):
        with pytest.raises(ValueError):
            call(reduction="count", out=out, **changes)
    assert (out == 123).all()
