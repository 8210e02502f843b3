"""Cases of rbcVoxelize."""

import numpy as np
from clouds import GRID, REDUCTIONS, cloud, ragged
from vectors import DTYPES, Case, dyadic

import voxel_reference

CHOICES = {"reduction": REDUCTIONS}


def voxelize(name, points, reduction, dtype, features=None, fill_value=None, grid=GRID, **options):
    case = Case(f"voxelize/{name}", "voxelize")
    out, dropped = voxel_reference.dense(
        points,
        features,
        reduction=reduction,
        dtype=DTYPES[dtype],
        fill_value=fill_value or 0,
        **ragged(options),
        **grid,
    )
    case.set(reduction=REDUCTIONS.index(reduction))
    if fill_value is not None:
        case.set(fill_value=fill_value)
    case.grid(**grid)
    case.input(points=points, features=features, **ragged(options))
    case.output(out=out, num_points_outside=np.asarray(dropped, np.int64))
    return case


def on_faces(dtype):
    """Return points in whole millimetres for which a product with 1 / voxel_size is wrong."""
    size, origin = dtype(0.05), dtype(-1)
    x = (np.arange(-1000, 1000) / 1000).astype(dtype)
    off = np.floor((x - origin) / size) != np.floor((x - origin) * dtype(1 / 0.05))
    x = x[off][:16]
    assert len(x) >= 4, "no point distinguishes the two rules"
    points = np.stack([x, np.zeros_like(x), np.zeros_like(x)], axis=1)
    return points, {
        "origin": (-1.0, -1.0, -1.0),
        "voxel_size": (0.05, 2.0, 2.0),
        "shape": (40, 1, 1),
    }


def cases():
    random = np.random.RandomState(3)
    padded = {"lengths": np.array([12, 7], np.int64)}
    packed = {"batch_offsets": np.array([0, 9, 9, 20], np.int32)}

    points = cloud(random, (2, 12), "f32")
    yield voxelize("occupancy u8, padded", points, "occupancy", "u8", **padded)
    yield voxelize("count i32, padded", points, "count", "i32", **padded)
    yield voxelize("count f16, whole rows, fill_value -1", points, "count", "f16", None, -1.0)
    points = cloud(random, (20,), "f32")
    yield voxelize("occupancy bool, packed", points, "occupancy", "bool", **packed)
    yield voxelize("count i64, packed, fill_value 7", points, "count", "i64", None, 7.0, **packed)
    features = (random.standard_normal((20, 3)) * 10).astype(np.float32)
    yield voxelize("sum f32, packed", points, "sum", "f32", features, **packed)
    yield voxelize("mean f32 to f64, packed", points, "mean", "f64", features, **packed)
    points, features = cloud(random, (2, 12), "f32"), dyadic(random, (2, 12, 2), "f16")
    features -= np.float16(5)  # so that the largest are also negative
    yield voxelize("max f16 to f32, padded", points, "max", "f32", features, **padded)
    yield voxelize("min f16, empty NaN, padded", points, "min", "f16", features, np.nan, **padded)
    features = dyadic(random, (2, 12, 2), "f32")
    features[0, 2, 0], features[0, 5, 1], features[1, 0, 1] = np.nan, np.inf, -np.inf
    yield voxelize("mean f32 to bf16, NaN and infinite features", points, "mean", "bf16", features)
    points = cloud(random, (24,), "f64", 4)
    yield voxelize("mean of f64 points themselves, without batch", points, "mean", "f64")
    yield voxelize("sum of f64 points to f32, without batch", points, "sum", "f32")
    points = cloud(random, (24,), "f16", 4)
    yield voxelize("max of f16 points, without batch", points, "max", "f16", None, -9.0)
    for dtype in ("f32", "f64"):
        points, grid = on_faces(DTYPES[dtype].type)
        yield voxelize(
            f"{dtype}: a division, no product by the inverse", points, "count", "i32", grid=grid
        )
    points = np.zeros((2, 0, 3), np.float32)
    yield voxelize("no points", points, "occupancy", "u8")
