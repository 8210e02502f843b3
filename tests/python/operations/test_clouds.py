"""unproject, farthest_points and take_rows against NumPy, bit for bit, and what they refuse."""

import numpy as np
import pytest

import cloud_reference as reference
import robocache as rbc

INF, NAN = np.inf, np.nan


# ---- unproject ----------------------------------------------------------------------------------


def images(random, shape, dtype):
    """Depth with holes, NaN and infinities."""
    depth = random.uniform(0.2, 4, shape)
    depth[random.random(shape) < 0.2] = 0
    if dtype == np.uint16:
        return (depth * 1000).astype(dtype)
    depth[random.random(shape) < 0.05] = NAN
    depth[random.random(shape) < 0.02] = INF
    depth[random.random(shape) < 0.02] *= -1
    return depth.astype(dtype)


def pose_of(random):
    q, _ = np.linalg.qr(random.normal(size=(3, 3)))
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = q, random.normal(size=3)
    return pose


def same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


OPTIONS = [
    {},
    {"pixel_offset": 0.5, "pixel_stride": 2},
    {"min_depth": 1, "max_depth": 3.0},
    {"crop": (-1, -1, 0, 1, 1.5, 3), "pixel_stride": 3},
    {"max_points": 40},
    {"max_points": 5000, "depth_scale": 500.0},
    {"color_divisor": 255.0, "crop": (-9, -0.5, -9, 9, 0.5, 9), "max_points": 300},
]


@pytest.mark.parametrize("depth_dtype", [np.uint16, np.float16, np.float32])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_unproject(depth_dtype, dtype, options):
    random = np.random.default_rng(11)
    depth = images(random, (3, 37, 53), depth_dtype)
    cameras = random.uniform([40, 40, 20, 10], [60, 60, 30, 20], (3, 4))
    poses = np.stack([pose_of(random) for _ in range(3)])
    colors = random.integers(0, 256, (3, 37, 53, 3), np.uint8)
    for pose, color in ((None, None), (poses, None), (None, colors), (poses, colors)):
        got = rbc.unproject(depth, cameras, pose, colors=color, dtype=dtype, **options)
        for b in range(3):
            points, count, pixels, overflow = reference.unproject(
                depth[b],
                cameras[b],
                None if pose is None else pose[b],
                colors=None if color is None else color[b],
                dtype=dtype,
                **options,
            )
            assert same(got.points[b], points)
            assert same(got.pixels[b], pixels)
            assert (got.num_points[b], got.num_points_over_capacity[b]) == (count, overflow)
            one = rbc.unproject(
                depth[b],
                cameras[b].tolist(),
                None if pose is None else pose[b].tolist(),
                colors=None if color is None else color[b],
                dtype=dtype,
                **options,
            )
            assert same(one.points, points)
            assert int(one.num_points) == count
            assert len(one.trimmed().points) == count


def test_unproject_takes_any_strides_and_bands_of_threads():
    random = np.random.default_rng(12)
    wide = images(random, (2, 700, 400), np.float32)
    depth = wide.transpose(0, 2, 1)[:, ::-1, ::2]
    colors = random.random((2, *depth.shape[1:], 2)).astype(np.float32)[..., ::-1]
    camera = [300.0, 310.0, 150.0, 200.0]
    plain = rbc.unproject(depth, camera, colors=colors, backend=rbc.Context("cpu", threads=1))
    for threads in (2, 3, 5):
        other = rbc.unproject(
            depth, camera, colors=colors, backend=rbc.Context("cpu", threads=threads)
        )
        assert same(plain.points, other.points) and same(plain.pixels, other.pixels)
    points, count, _, _ = reference.unproject(depth[1], camera, colors=colors[1])
    assert same(plain.points[1], points) and plain.num_points[1] == count


def test_a_wall_is_where_it_is():
    depth = np.full((4, 6), 2.5, np.float32)
    points = rbc.unproject(depth, [3, 4, 2.5, 1.5], dtype="float64").points
    v, u = np.mgrid[:4, :6]
    expected = np.stack([(u - 2.5) * 2.5 / 3, (v - 1.5) * 2.5 / 4, np.full((4, 6), 2.5)], -1)
    np.testing.assert_allclose(points, expected.reshape(-1, 3), rtol=1e-15)


def test_unproject_agrees_with_open3d():
    open3d = pytest.importorskip("open3d", reason="Open3D is not installed")
    depth = images(np.random.default_rng(13), (48, 64), np.uint16)
    camera = open3d.camera.PinholeCameraIntrinsic(64, 48, 50.0, 52.0, 31.5, 23.5)
    theirs = open3d.geometry.PointCloud.create_from_depth_image(
        open3d.geometry.Image(depth), camera, depth_trunc=100.0
    )
    ours = rbc.unproject(depth, [50, 52, 31.5, 23.5], dtype="float64").trimmed().points
    np.testing.assert_allclose(ours, np.asarray(theirs.points), atol=1e-6)


def test_a_crop_that_holds_nothing_gives_no_points():
    depth = np.ones((2, 3, 4), np.float32)
    options = {"crop": (5, 5, 5, 6, 6, 6), "dtype": "float64"}
    cloud = rbc.unproject(depth, [1, 1, 0, 0], colors=np.ones((2, 3, 4, 2), np.uint8), **options)
    assert cloud.points.shape == (2, 12, 5) and not cloud.points.any()
    assert (cloud.pixels == -1).all()
    assert cloud.num_points.tolist() == cloud.num_points_over_capacity.tolist() == [0, 0]
    chosen = rbc.farthest_points(cloud.points, 3, lengths=cloud.num_points)
    assert (chosen == -1).all()
    assert (rbc.take_rows(cloud.points, chosen, 7) == 7).all()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"intrinsics": [0, 1, 1, 1]}, "intrinsics: fx of image 0 is 0"),
        ({"intrinsics": [1, NAN, 1, 1]}, "intrinsics: fy of image 0 is nan"),
        ({"intrinsics": [1, 1, INF, 1]}, "intrinsics: cx of image 0 is inf"),
        ({"intrinsics": [1, 1, 1]}, r"intrinsics: shape is \[3\]"),
        ({"pose": np.full((4, 4), NAN)}, r"pose: \[0,0\] of image 0 is nan"),
        ({"pose": np.eye(3)}, r"pose: shape is \[3,3\]"),
        ({"min_depth": 2, "max_depth": 2}, "min_depth: is 2, expected less than max_depth"),
        ({"min_depth": -1}, "min_depth: is -1"),
        ({"max_depth": NAN}, "min_depth: is 0, expected less than max_depth, which is nan"),
        ({"crop": (0, 0, 0, 1, 0, 1)}, r"crop_min\[1\]: is 0, expected less than crop_max\[1\]"),
        ({"crop": (0, 0, 0)}, "crop: has 3 elements"),
        ({"colors": np.zeros((2, 3, 3), np.uint8)}, r"colors: shape is \[2,3,3\]"),
        ({"depth_scale": 0}, "depth_scale: is 0"),
        ({"depth_scale": -1}, "depth_scale: is -1"),
        ({"color_divisor": 0}, "color_divisor: is 0"),
        ({"pixel_offset": 0.25}, "pixel_offset: is 0.25"),
        ({"pixel_stride": 0}, "pixel_stride: is 0"),
        ({"max_points": 0}, "max_points: is 0"),
        ({"depth": np.zeros(5, np.float32)}, "depth: rank is 1"),
    ],
)
def test_what_unproject_refuses(change, says):
    call = {"depth": np.ones((2, 2), np.float32), "intrinsics": [1, 1, 1, 1], **change}
    with pytest.raises(ValueError, match=says):
        rbc.unproject(**call)


def test_dtypes_that_unproject_refuses():
    with pytest.raises(TypeError, match="depth: dtype is float64, expected uint16, float16 or"):
        rbc.unproject(np.ones((2, 2)), [1, 1, 1, 1])
    with pytest.raises(TypeError, match="colors: dtype is int32"):
        colors = np.ones((2, 2, 3), np.int32)
        rbc.unproject(np.ones((2, 2), np.float32), [1, 1, 1, 1], colors=colors)


# ---- farthest points ----------------------------------------------------------------------------


def clouds():
    random = np.random.default_rng(21)
    yield "normal", random.normal(size=(700, 3))
    yield "line", np.stack([np.arange(300.0), np.zeros(300), np.zeros(300)], axis=1)
    yield "one place", np.ones((200, 3))
    yield "grid, many ties", np.argwhere(np.ones((7, 6, 5))).astype(float)
    yield "duplicates", np.repeat(random.normal(size=(9, 3)), 30, axis=0)
    wild = random.normal(size=(400, 4))
    wild[random.random(400) < 0.3, 1] = NAN
    wild[random.random(400) < 0.1, 2] = -INF
    wild[0] = NAN
    yield "not finite", wild
    yield "none finite", np.full((5, 3), NAN)
    yield "one", np.zeros((1, 3))
    yield "outlier", np.concatenate([random.normal(size=(500, 3)), [[1e6, 0, 0]]])
    yield "beyond f32", random.normal(size=(100, 3)) * 1e20
    yield "sweep", random.normal(size=(3000, 3)) * [20, 20, 0.5]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("name", "points"), list(clouds()), ids=[name for name, _ in clouds()])
def test_farthest_points(name, points, dtype):
    with np.errstate(over="ignore"):
        points = points.astype(dtype)
    for k in (1, 2, 33, min(len(points), 400), len(points) + 3):
        starts = (0, len(points) - 1, len(points) // 2)
        for start in starts if k < 1000 else starts[2:]:  # the reference takes long
            got, distances = rbc.farthest_points(
                points, k, start_index=start, return_distances=True
            )
            indices, expected = reference.farthest_points(points, k, start)
            np.testing.assert_array_equal(got, indices)
            assert same(distances, expected)


def test_batches_of_farthest_points():
    random = np.random.default_rng(22)
    points = random.normal(size=(5, 90, 3)).astype(np.float32)
    lengths, starts = np.array([90, 1, 0, 45, 7]), np.array([3, 0, 0, 44, 2])
    padded = rbc.farthest_points(points, 20, lengths=lengths, start_index=starts)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    packed = np.concatenate([cloud[:n] for cloud, n in zip(points, lengths)])
    rows = rbc.farthest_points(packed, 20, batch_offsets=offsets, start_index=starts)
    for b, n in enumerate(lengths):
        expected, _ = reference.farthest_points(points[b, :n], 20, starts[b])
        np.testing.assert_array_equal(padded[b], expected)
        np.testing.assert_array_equal(rows[b], np.where(expected < 0, -1, expected + offsets[b]))
    np.testing.assert_array_equal(rbc.take_rows(packed, rows), rbc.take_rows(points, padded))
    one = rbc.farthest_points(points[:, ::-1, ::-1], 20, backend=rbc.Context("cpu", threads=3))
    flipped = np.ascontiguousarray(points[:, ::-1, ::-1])
    np.testing.assert_array_equal(one, rbc.farthest_points(flipped, 20))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"k": 0}, "k: is 0, expected 1 or more"),
        ({"start_index": 4}, "start_index: is 4 for cloud 0, expected 0 to 3"),
        ({"start_index": -1}, "start_index: is -1, expected 0 or more"),
        ({"start_index": 2**80}, "start_index: is"),
        ({"start_index": [5, 5]}, r"start_indices: shape is \[2\]"),
        ({"points": np.zeros((4, 2), np.float32)}, r"points: shape is \[4,2\]"),
        ({"batch_offsets": [0, 5]}, "batch_offsets: index 1 is 5"),
    ],
)
def test_what_farthest_points_refuses(change, says):
    call = {"points": np.zeros((4, 3), np.float32), "k": 2, **change}
    with pytest.raises(ValueError, match=says):
        rbc.farthest_points(call.pop("points"), call.pop("k"), **call)


# ---- rows by index ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint16", "int64", "bool"])
def test_take_rows(dtype):
    random = np.random.default_rng(31)
    values = random.integers(0, 2, (3, 50, 4)).astype(dtype)
    indices = random.integers(-1, 50, (3, 17))
    fill = 1
    expected = np.where(
        (indices < 0)[..., None],
        np.array(fill, dtype),
        np.take_along_axis(values, indices[..., None], 1),
    )
    assert same(rbc.take_rows(values, indices, fill), expected)
    flipped = rbc.take_rows(values[:, :, ::-1], indices.astype(np.int32)[:, ::-1], fill)
    assert same(flipped, np.ascontiguousarray(expected[:, ::-1, ::-1]))
    shared = rbc.take_rows(values[0], indices, fill)
    for b in range(3):
        assert same(shared[b], rbc.take_rows(values[0], indices[b], fill))


@pytest.mark.parametrize(
    ("values", "indices", "error", "says"),
    [
        (np.zeros((4, 2)), [4], ValueError, r"indices: is 4 at \[0,0\], expected -1"),
        (np.zeros((4, 2)), [0, -2], ValueError, r"indices: is -2 at \[0,1\]"),
        (np.zeros((4, 2)), np.zeros(3, np.float32), TypeError, "indices: dtype is float32"),
        (np.zeros(4), np.zeros(3, int), ValueError, "values: rank is 1"),
        (np.zeros((2, 4, 2)), np.zeros((3, 3), int), ValueError, r"indices: shape is \[3,3\]"),
    ],
)
def test_what_take_rows_refuses(values, indices, error, says):
    with pytest.raises(error, match=says):
        rbc.take_rows(values, indices)


def test_a_line_from_depth_to_points():
    random = np.random.default_rng(41)
    depth = images(random, (2, 60, 80), np.uint16)
    cloud = rbc.unproject(depth, [70, 70, 40, 30], max_points=3000)
    chosen = rbc.farthest_points(cloud.points, 64, lengths=cloud.num_points)
    few = rbc.take_rows(cloud.points, chosen)
    for b in range(2):
        kept = cloud.points[b, : cloud.num_points[b]]
        assert same(few[b], kept[reference.farthest_points(kept, 64)[0]])
