"""Cases of rbcVoxelizeSparse."""

import numpy as np
from clouds import GRID, REDUCTIONS, cloud, ragged
from vectors import DTYPES, Case

import voxel_reference

ORDERS = ["lexicographic", "first_point"]
CHOICES = {"reduction": REDUCTIONS, "order": ORDERS}


def voxelize_sparse(
    name,
    points,
    dtype,
    capacity,
    features=None,
    *,
    reduction="mean",
    order="lexicographic",
    **options,
):
    case = Case(f"voxelize_sparse/{name}", "voxelize_sparse")
    voxels = voxel_reference.sparse(
        points,
        features,
        reduction=reduction,
        order=order,
        capacity=capacity,
        dtype=DTYPES[dtype],
        max_points=options.get("max_points"),
        **ragged(options),
        **GRID,
    )
    voxels["num_voxels"] = np.asarray(voxels["num_voxels"], np.int64)
    outside = voxels["num_points_outside"]
    voxels["num_points_outside"] = np.asarray(outside, np.int64)
    index = DTYPES[options.get("point_to_voxel", "i64")]
    voxels["point_to_voxel"] = voxels["point_to_voxel"].astype(index)
    case.set(reduction=REDUCTIONS.index(reduction), order=ORDERS.index(order))
    case.grid(**GRID)
    case.input(points=points, features=features, **ragged(options))
    case.output(
        **{"voxel_features" if name == "features" else name: a for name, a in voxels.items()}
    )
    return case


def cases():
    random = np.random.RandomState(4)
    padded = {"lengths": np.array([12, 9], np.int32)}
    packed = {"batch_offsets": np.array([0, 11, 11, 20], np.int64)}

    points = cloud(random, (2, 12), "f32")
    features = (random.standard_normal((2, 12, 2)) * 10).astype(np.float32)
    yield voxelize_sparse("lexicographic, mean, padded", points, "f32", 30, features, **padded)
    yield voxelize_sparse(
        "lexicographic, max, beyond the capacity", points, "f16", 5, reduction="max", **padded
    )
    points = cloud(random, (20,), "f32", 4)
    points[10:, :3] = points[0, :3]  # one voxel with many points
    yield voxelize_sparse(
        "first points, grouped by 3, packed, beyond the capacity",
        points,
        "f32",
        6,
        order="first_point",
        max_points=3,
        point_to_voxel="i32",
        **packed,
    )
    yield voxelize_sparse(
        "lexicographic, grouped by 2, without batch", points, "bf16", 16, max_points=2
    )
    points = cloud(random, (20,), "f64")
    yield voxelize_sparse("f64 points, sum, packed", points, "f64", 25, reduction="sum", **packed)
