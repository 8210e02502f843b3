"""The voxel of a point: by a division as in spconv and mmcv in float32, as in Open3D in float64.

LiDAR drivers write whole millimetres, so points are often on the faces of voxels, where any other
arithmetic (such as a product by the inverse) gives other voxels.
"""

import numpy as np
import pytest

import robocache as rbc

SIZES = [0.05, 0.1, 0.16, 0.2]
RANGE = (-51.2, -51.2, -5.0, 51.2, 51.2, 3.0)


def sweep(dtype, points=20_000, seed=5):
    """Around a scanner, in whole millimetres, some beyond RANGE."""
    random = np.random.default_rng(seed)
    azimuth = random.uniform(-np.pi, np.pi, points)
    reach = random.exponential(15, points)
    cloud = np.stack(
        [reach * np.cos(azimuth), reach * np.sin(azimuth), random.normal(-1, 1, points)], axis=1
    )
    return (np.round(cloud * 1000) / 1000).astype(dtype)


def voxels_by(points, size, arithmetic):
    """The voxel of each point, and whether it is inside."""
    low, high = np.array(RANGE[:3], points.dtype), np.array(RANGE[3:])
    shape = np.round((high - RANGE[:3]) / size).astype(np.int64)
    index = np.floor(arithmetic(points - low, points.dtype.type(size))).astype(np.int64)
    return index, ((index >= 0) & (index < shape)).all(axis=1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", SIZES)
def test_every_voxel_is_that_of_the_division(dtype, size):
    points = sweep(dtype)
    index, inside = voxels_by(points, size, np.divide)
    got = rbc.voxelize_sparse(points, voxel_size=size, point_cloud_range=RANGE)
    row = got.point_to_voxel
    np.testing.assert_array_equal(row >= 0, inside)
    np.testing.assert_array_equal(got.coords[row[inside], 1:], index[inside])
    assert int(got.num_voxels) == len(np.unique(index[inside], axis=0))

    low = np.array(RANGE[:3])
    shape = [round((high - x) / size) for x, high in zip(RANGE, RANGE[3:])]
    again = rbc.voxelize_sparse(points, origin=low, voxel_size=size, shape=shape)
    np.testing.assert_array_equal(again.point_to_voxel, row)


def test_the_sweeps_tell_a_product_from_a_division():
    points = sweep(np.float32)
    for size in SIZES:
        divided, _ = voxels_by(points, size, np.divide)
        multiplied, _ = voxels_by(points, size, lambda p, size: p * (np.float32(1) / size))
        assert (divided != multiplied).any(), size


@pytest.mark.parametrize("size", SIZES)
def test_hard_voxels_are_those_of_spconv(size):
    try:
        from spconv.utils import Point2VoxelCPU3d
    except ImportError as why:
        pytest.skip(f"spconv is not installed: {why}")
    from cumm import tensorview

    random = np.random.default_rng(6)
    points = np.concatenate([sweep(np.float32), random.random((20_000, 1), np.float32)], axis=1)
    options = {"max_num_points_per_voxel": 5, "max_num_voxels": 30_000}
    theirs = Point2VoxelCPU3d([size] * 3, list(RANGE), num_point_features=4, **options)
    grouped, coords, counts = (
        x.numpy() for x in theirs.point_to_voxel(tensorview.from_numpy(points))
    )
    ours = rbc.voxelize_sparse(
        points,
        voxel_size=size,
        point_cloud_range=RANGE,
        max_points=5,
        max_voxels=30_000,
    ).trimmed()
    np.testing.assert_array_equal(ours.coords[:, :0:-1], coords)  # theirs are z, y, x
    np.testing.assert_array_equal(ours.points_per_voxel, counts)
    np.testing.assert_array_equal(ours.grouped, grouped)


def test_voxels_into_the_arrays_of_an_earlier_call():
    options = {"voxel_size": 0.4, "point_cloud_range": RANGE}
    hard = {"max_points": 3, "max_voxels": 900}
    small = {"return_point_to_voxel": False}
    for own in (hard, small, {}, {"reduction": None, "max_voxels": 10_000}):
        kept = rbc.voxelize_sparse(sweep(np.float32, 3000, 1), **options, **own)
        arrays = {name: getattr(kept, name) for name in rbc.SparseVoxels.__dataclass_fields__}
        points = sweep(np.float32, 3000, 2)
        assert rbc.voxelize_sparse(points, **options, out=kept) is kept
        expected = rbc.voxelize_sparse(points, **options, **own)
        for name, array in arrays.items():
            assert getattr(kept, name) is array
            np.testing.assert_array_equal(array, getattr(expected, name))
    with pytest.raises(ValueError, match="max_voxels: only valid without out"):
        rbc.voxelize_sparse(points, **options, out=kept, max_voxels=3)
    with pytest.raises(ValueError, match="return_point_to_voxel: only valid without"):
        rbc.voxelize_sparse(points, **options, out=kept, return_point_to_voxel=False)
    with pytest.raises(TypeError, match="out: is a tuple, expected SparseVoxels"):
        rbc.voxelize_sparse(points, **options, out=())
    with pytest.raises(ValueError, match=r"point_to_voxel: shape is \[3000\]"):
        rbc.voxelize_sparse(points[:5], **options, out=kept)


def test_a_range_for_every_operation():
    points = sweep(np.float32, 2000)
    cut = {"voxel_size": (0.8, 0.8, 8), "point_cloud_range": np.array(RANGE, np.float32)}
    grid = {"voxel_size": (0.8, 0.8, 8), "origin": RANGE[:3], "shape": (128, 128, 1)}
    np.testing.assert_array_equal(
        rbc.voxelize(points, reduction="count", **cut),
        rbc.voxelize(points, reduction="count", **grid),
    )
    for got, expected in zip(
        rbc.voxelize_tsdf(points, [0, 0, 0], truncation=2, **cut),
        rbc.voxelize_tsdf(points, [0, 0, 0], truncation=2, **grid),
    ):
        np.testing.assert_array_equal(got, expected)


def test_a_range_under_torch():
    torch = pytest.importorskip("torch")
    import robocache.torch

    points = torch.from_numpy(sweep(np.float32, 2000))
    cut = {"voxel_size": (0.8, 0.8, 8.0), "point_cloud_range": RANGE}
    expected = rbc.voxelize(points.numpy(), reduction="count", **cut)

    def batched(function):
        return torch.vmap(lambda p: function(p, reduction="count", **cut))(points[None])[0]

    assert (robocache.torch.voxelize(points, reduction="count", **cut).numpy() == expected).all()
    assert (batched(robocache.torch.voxelize).numpy() == expected).all()
    rows = torch.vmap(lambda p: robocache.torch.voxelize_sparse(p, **cut).point_to_voxel)(
        points[None]
    )
    plain = rbc.voxelize_sparse(points.numpy(), **cut)
    assert (rows[0].numpy() == plain.point_to_voxel).all()


CUBE = {"point_cloud_range": (0, 0, 0, 1, 1, 1)}


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"point_cloud_range": (0, 0, 0, 1, 1)}, ValueError, "point_cloud_range: is"),
        ({"point_cloud_range": (0, 0, 0, 1, -1, 1)}, ValueError, "point_cloud_range: is"),
        ({"point_cloud_range": (0, 0, 0, 1, np.nan, 1)}, ValueError, "point_cloud_range: is"),
        ({"point_cloud_range": (0, 0, 0, 1, np.inf, 1)}, ValueError, "point_cloud_range: is"),
        ({"point_cloud_range": "abcdef"}, ValueError, "point_cloud_range: is"),
        ({**CUBE, "voxel_size": 1e-9}, ValueError, "voxel_size: is 1e-09, .* and 2.62 in all"),
        ({**CUBE, "voxel_size": (1, 1, 1e-10)}, ValueError, "voxel_size: is .* 2.31 - 1 voxels"),
        ({**CUBE, "voxel_size": 1e-50}, ValueError, "voxel_size: is 1e-50, too small for"),
        (
            {"point_cloud_range": (0, 0, 0, 1, 1, 1), "origin": (0, 0, 0)},
            ValueError,
            "point_cloud_range: only valid without",
        ),
        ({"shape": (1, 1, 1)}, TypeError, "origin: is None; pass origin and shape, or"),
        ({"origin": (0, 0, 0)}, TypeError, "shape: is None"),
    ],
)
def test_ranges_that_are_refused(given, error, says):
    points = np.zeros((3, 3), np.float32)
    for operation in (rbc.voxelize, rbc.voxelize_sparse):
        with pytest.raises(error, match=says):
            operation(points, **{"voxel_size": 0.1, **given})
