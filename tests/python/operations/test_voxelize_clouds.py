"""Point clouds that were measured elsewhere, voxelized, against NumPy, SciPy, Open3D and PCL.

`pytest -s` prints what was compared.
"""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

import robocache as rbc
import voxel_reference

ndimage = pytest.importorskip("scipy.ndimage")
spatial = pytest.importorskip("scipy.spatial")

# The edge of a voxel in metres, such that there are some points in each.
SIZES = {
    "lidar_outdoor/251370668": 0.2,
    "lidar_outdoor/251371071": 0.2,
    "pcl/office1": 0.05,
    "pcl/milk_color": 0.01,
    "pcl/bunny": 0.02,
    "pcl/lamppost": 0.1,
}


@pytest.fixture(scope="module", params=SIZES)
def cloud(recordings, request):
    """The name, the file's path, and its points [N,C] of float32: x, y, z and what else it has."""
    path = recordings / f"{request.param}.pcd"
    if not path.is_file():
        pytest.skip(f"no {path}")
    return request.param, path, columns_of(rbc.data.open(path))


def columns_of(read):
    columns = [read.points]
    if "intensity" in read.fields:
        columns.append(read.fields["intensity"][:, None])
    elif read.colors is not None:
        columns.append(read.colors)
    return np.concatenate(columns, axis=1).astype(np.float32)


def inner_grid(points, size):
    """Return a grid for the middle of a cloud; some points are outside."""
    low, high = np.nanpercentile(points[:, :3], [2, 98], axis=0)
    shape = np.ceil((high - low) / size).astype(int)
    return {"origin": low, "voxel_size": size, "shape": shape}


def outer_grid(points, size):
    """Return a grid for a whole cloud, with faces at multiples of `size`."""
    low, high = np.nanmin(points[:, :3], axis=0), np.nanmax(points[:, :3], axis=0)
    first = np.floor(low / size)
    return {"origin": first * size, "voxel_size": size, "shape": np.floor(high / size) - first + 1}


def whole(grid):
    return {**grid, "shape": grid["shape"].astype(int).tolist()}


def test_dense(cloud):
    name, _, points = cloud
    grid = inner_grid(points, SIZES[name])
    index, inside = voxel_reference.indices_of(points, **grid)
    labels = np.ravel_multi_index(index.T, grid["shape"], mode="clip")[inside]
    voxels = np.arange(np.prod(grid["shape"]))
    expected = np.bincount(labels, minlength=len(voxels)).reshape(grid["shape"])
    counts, dropped = rbc.voxelize(
        points, reduction="count", return_num_points_outside=True, **grid
    )
    np.testing.assert_array_equal(counts, expected)
    assert dropped == (~inside).sum() and 0 < dropped < len(points) / 2
    np.testing.assert_array_equal(rbc.voxelize(points, **grid), expected > 0)

    some = expected.ravel() > 0
    for column in range(points.shape[1]):
        values = points[inside, column].astype(np.float64)
        for mode, reduce in (
            ("sum", ndimage.sum_labels),
            ("mean", ndimage.mean),
            ("max", ndimage.maximum),
            ("min", ndimage.minimum),
        ):
            # A column of the file's rows: nothing is copied.
            out = rbc.voxelize(points, points[:, column : column + 1], reduction=mode, **grid)
            got, answers = out.ravel()[some], reduce(values, labels, voxels[some])
            if mode in ("max", "min"):
                np.testing.assert_array_equal(got, answers)
            else:
                np.testing.assert_allclose(got, answers, rtol=2**-23, atol=1e-12)
            assert not out.ravel()[~some].any()
    print(f"{name}: {len(points)} points, {dropped} dropped, {some.sum()} of {some.size} voxels")


def test_sparse(cloud):
    name, _, points = cloud
    grid = inner_grid(points, SIZES[name])
    index, inside = voxel_reference.indices_of(points, **grid)
    coords, first, rows, counts = np.unique(
        index[inside], axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    voxels = rbc.voxelize_sparse(points, **grid).trimmed()
    np.testing.assert_array_equal(voxels.coords[:, 1:], coords)
    np.testing.assert_array_equal(voxels.points_per_voxel, counts)
    np.testing.assert_array_equal(voxels.point_to_voxel[inside], rows.ravel())
    assert (voxels.point_to_voxel[~inside] == -1).all() and voxels.num_points_outside == (
        ~inside
    ).sum()
    assert not voxels.coords[:, 0].any() and not voxels.num_voxels_over_capacity.any()
    assert not voxels.num_points_over_capacity.any() and not voxels.num_points_over_group.any()
    for column, got in zip(points[inside].T, voxels.features.T):
        means = np.bincount(rows.ravel(), column.astype(np.float64)) / counts
        np.testing.assert_allclose(got, means, rtol=2**-23, atol=1e-12)
    dense = rbc.voxelize(points, reduction="mean", **grid)
    np.testing.assert_array_equal(dense[tuple(coords.T)], voxels.features)

    # As for detection networks: in the order of first points, with at most 5 points per voxel.
    hard = rbc.voxelize_sparse(points, max_points=5, reduction=None, **grid).trimmed()
    order = np.argsort(first)
    np.testing.assert_array_equal(hard.coords[:, 1:], coords[order])
    np.testing.assert_array_equal(hard.points_per_voxel, np.minimum(counts[order], 5))
    by_voxel = np.split(points[inside][np.argsort(rows.ravel(), kind="stable")], np.cumsum(counts))
    for got, voxel in zip(hard.grouped, order):
        kept = by_voxel[voxel][:5]
        np.testing.assert_array_equal(got[: len(kept)], kept)
        assert not got[len(kept) :].any()


def test_two_sweeps_in_one_call(recordings):
    paths = sorted((recordings / "lidar_outdoor").glob("*.pcd"))
    if not paths:
        pytest.skip(f"no {recordings / 'lidar_outdoor'}")
    sweeps = [columns_of(rbc.data.open(path)) for path in paths]
    grid = {"origin": (-25, -60, -3), "voxel_size": (0.2, 0.2, 0.25), "shape": (250, 350, 48)}
    offsets = np.cumsum([0, *map(len, sweeps)])
    packed = np.concatenate(sweeps)
    out, dropped = rbc.voxelize(
        packed, batch_offsets=offsets, reduction="max", return_num_points_outside=True, **grid
    )
    voxels = rbc.voxelize_sparse(packed, batch_offsets=offsets, **grid).trimmed()
    for b, sweep in enumerate(sweeps):
        one, one_dropped = rbc.voxelize(
            sweep, reduction="max", return_num_points_outside=True, **grid
        )
        np.testing.assert_array_equal(out[b], one)
        assert dropped[b] == one_dropped
        own = rbc.voxelize_sparse(sweep, **grid).trimmed()
        np.testing.assert_array_equal(
            voxels.coords[voxels.coords[:, 0] == b, 1:], own.coords[:, 1:]
        )
        np.testing.assert_array_equal(voxels.features[voxels.coords[:, 0] == b], own.features)


def organized(recordings):
    path = recordings / "pcl" / "office1.pcd"
    if not path.is_file():
        pytest.skip(f"no {path}")
    read = rbc.data.open(path)
    return read.points.astype(np.float32).reshape(read.height, read.width, 3)


def test_rows_of_an_organized_cloud(recordings):
    """Each of 480 rows of pixels is a separate cloud, NaN included."""
    image = organized(recordings)
    grid = {"origin": (-3, -3, 1), "voxel_size": 0.25, "shape": (24, 24, 18)}
    counts, dropped = rbc.voxelize(image, reduction="count", return_num_points_outside=True, **grid)
    assert counts.shape == (480, 24, 24, 18)
    np.testing.assert_array_equal(dropped, np.isnan(image[..., 0]).sum(axis=1))
    np.testing.assert_array_equal(
        counts.sum(axis=0), rbc.voxelize(image.reshape(-1, 3), reduction="count", **grid)
    )


def test_tsdf_of_a_depth_camera(recordings):
    """The surface, where the field passes 0, is where the camera has seen it."""
    points = organized(recordings).reshape(-1, 3)
    size = 0.05
    grid = {"origin": (-3, -2.5, 1.5), "voxel_size": size, "shape": (95, 85, 80)}
    tsdf, weight, dropped = rbc.voxelize_tsdf(
        points, [0, 0, 0], truncation=0.2, return_num_points_unused=True, **grid
    )
    finite = ~np.isnan(points[:, 0])
    assert dropped == (~finite).sum()
    assert np.abs(tsdf).max() <= np.float32(0.2) and not tsdf[weight == 0].any()

    index, inside = voxel_reference.indices_of(points, **grid)
    assert (inside == finite).all()
    at = tuple(index[inside].T)
    assert (weight[at] > 0).all()
    # The surface is in the voxels with points, except where rays graze it.
    assert (np.abs(tsdf[at]) <= size * np.sqrt(3)).mean() > 0.95
    # A step towards the camera it is positive, and a step behind negative.
    along = points[inside] / np.linalg.norm(points[inside], axis=1, keepdims=True)
    for step, sign in ((-0.1, 1), (0.1, -1)):
        moved, there = voxel_reference.indices_of(points[inside] + step * along, **grid)
        field = sign * tsdf[tuple(moved[there].T)]
        assert (field > 0).mean() > 0.95
    # Some rays, one by one.
    some = points[finite][::1009].astype(np.float64)
    got, got_weight = rbc.voxelize_tsdf(some, [0, 0, 0], truncation=0.2, **grid)
    distances, weights, touched = voxel_reference.tsdf(some, np.zeros(3), truncation=0.2, **grid)
    np.testing.assert_array_equal(got_weight[~touched], weights[~touched])
    expected = distances / np.maximum(weights, 1)
    np.testing.assert_allclose(got[~touched], expected[~touched], rtol=0, atol=1e-6)


# ---- against other libraries --------------------------------------------------------------------

# Powers of two: PCL multiplies by the inverse where others divide.
EXACT_SIZES = {name: 2.0 ** np.round(np.log2(size)) for name, size in SIZES.items()}


def assert_same_centroids(got, expected, tolerance):
    """The same points in any order."""
    assert got.shape == expected.shape
    apart, match = spatial.cKDTree(got[:, :3]).query(expected[:, :3])
    assert len(np.unique(match)) == len(got), "some centroid matches two"
    assert apart.max() <= tolerance, f"a centroid is off by {apart.max()}"
    return match, apart.max()


def test_open3d(cloud):
    open3d = pytest.importorskip("open3d", reason="Open3D is not installed")
    name, _, points = cloud
    size = SIZES[name]
    points = points[~np.isnan(points[:, 0]), :3].astype(np.float64)
    theirs = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(points))
    theirs = np.asarray(theirs.voxel_down_sample(size).points)
    low = points.min(axis=0) - size / 2
    shape = np.floor((points.max(axis=0) - low) / size).astype(int) + 1
    ours = rbc.voxelize_sparse(points, origin=low, voxel_size=size, shape=shape).trimmed()
    _, worst = assert_same_centroids(ours.features, theirs, 1e-12)
    print(f"{name}: {len(points)} points, {len(theirs)} centroids of Open3D, off by {worst:.2g} m")


def test_pcl(cloud, tmp_path):
    if shutil.which("pcl_voxel_grid") is None:
        pytest.skip("pcl_voxel_grid is not installed (pcl-tools)")
    name, path, points = cloud
    size = EXACT_SIZES[name]
    out = tmp_path / "out.pcd"
    subprocess.run(
        ["pcl_voxel_grid", str(path), str(out), "-leaf", f"{size},{size},{size}"],
        check=True,
        capture_output=True,
        timeout=60,
    )
    theirs = columns_of(rbc.data.open(out)).astype(np.float64)
    grid = whole(outer_grid(points, size))
    ours = rbc.voxelize_sparse(points.astype(np.float64), **grid).trimmed()
    # PCL adds in float32.
    most = int(ours.points_per_voxel.max())
    scale = np.nanmax(np.abs(points), axis=0)
    match, worst = assert_same_centroids(
        ours.features, theirs, most * np.finfo(np.float32).eps * scale[:3].max()
    )
    if points.shape[1] == 4:  # intensity
        apart = np.abs(ours.features[match, 3] - theirs[:, 3]).max()
        assert apart <= most * np.finfo(np.float32).eps * scale[3]
    print(f"{name}: {len(points)} points, {len(theirs)} centroids of PCL, off by {worst:.2g} m")
