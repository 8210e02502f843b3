"""Cases of rbcVoxelizeTsdf."""

import numpy as np
from clouds import GRID, ragged
from vectors import Case, dyadic

import voxel_reference

FLAGS = {"carve": 1 << 16}
CHOICES = {"weighting": ["constant", "inverse_square"]}


def voxelize_tsdf(name, points, sensors, *, tsdf, weight, truncation, max_weight=None, **options):
    case = Case(f"voxelize_tsdf/{name}", "voxelize_tsdf")
    carve, inverse_square = options.get("carve", False), options.get("inverse_square", False)
    setting = {
        **GRID,
        "truncation": truncation,
        "carve": carve,
        "weight_of": (lambda r: min(1, 1 / r**2)) if inverse_square else None,
    }
    clouds, batched = voxel_reference.clouds_of(points, None, **ragged(options))
    distances, weights, dropped = np.zeros(GRID["shape"]), np.zeros(GRID["shape"]), []
    with np.errstate(all="ignore"):
        for b, (_, one, _) in enumerate(clouds):
            sensor = sensors[b] if sensors.ndim == 2 else sensors
            d, w, touched = voxel_reference.tsdf(one[:, :3], sensor, **setting)
            assert not touched.any(), "a ray that just touches a voxel may pass it or not"
            distances, weights = distances + d, weights + w
            rays = [voxel_reference.tsdf(p[None, :3], sensor, **setting)[1] for p in one]
            dropped.append(sum(not passed.any() for passed in rays))
        after = (tsdf.astype(np.float64) * weight + distances) / (weight + weights)
    seen = weights > 0
    case.set(
        flags=FLAGS["carve"] if carve else 0, weighting=int(inverse_square), truncation=truncation
    )
    if max_weight is not None:
        case.set(max_weight=max_weight)
    case.grid(**GRID)
    case.input(points=points, sensors=sensors, tsdf=tsdf, weight=weight, **ragged(options))
    most = np.inf if max_weight is None else max_weight
    case.output(
        tsdf=np.where(seen, after, tsdf).astype(np.float32),
        weight=np.where(seen, np.minimum(weight + weights, most), weight).astype(np.float32),
        num_points_unused=np.array(dropped if batched else dropped[0], np.int64),
    )
    return case


def cases():
    """Yield rays along the axes, through the inside of voxels: exact."""
    random = np.random.RandomState(5)
    shape = GRID["shape"]

    def along(axis, sensor, distances):
        points = np.tile(np.asarray(sensor, np.float64), (len(distances), 1))
        points[:, axis] += distances
        return points

    sensors = np.array([[-3.25, -0.625, 0.0625], [0.125, 2.75, 0.375]])
    points = np.stack(
        [
            along(0, sensors[0], [2.625, 3.0, 3.375, 9, np.nan, 0]),
            along(1, sensors[1], [-2.875, -3.125, -3.25, -0.5, np.inf, -3.5]),
        ]
    )
    new = {"tsdf": np.full(shape, 0.125, np.float32), "weight": np.zeros(shape, np.float32)}
    yield voxelize_tsdf(
        "two clouds, a new volume",
        points.astype(np.float32),
        sensors.astype(np.float32),
        truncation=0.3125,
        **new,
    )
    old = {
        "tsdf": dyadic(random, shape, "f32", 4) / np.float32(16),
        "weight": random.randint(0, 4, shape).astype(np.float32),
    }
    yield voxelize_tsdf(
        "two clouds of f64 points, packed, an old volume up to max_weight",
        points.reshape(-1, 3),
        sensors,
        truncation=0.3125,
        max_weight=4.0,
        batch_offsets=np.array([0, 5, 12], np.int64),
        **old,
    )
    sensor = np.array([-1.75, 0.125, 0.1875])
    yield voxelize_tsdf(
        "carved, inverse square, without batch",
        along(0, sensor, [1, 2, 0.5, 4]).astype(np.float32),
        sensor.astype(np.float32),
        truncation=0.375,
        carve=True,
        inverse_square=True,
        **old,
    )
