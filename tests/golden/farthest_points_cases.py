"""Cases of rbcFarthestPoints."""

import numpy as np
from vectors import Case

import cloud_reference


def farthest_points(
    name, points, k, *, start_index=0, start_indices=None, lengths=None, batch_offsets=None
):
    case = Case(f"farthest_points/{name}", "farthest_points")
    if batch_offsets is not None:
        clouds = [points[a:b] for a, b in zip(batch_offsets, batch_offsets[1:])]
    elif points.ndim == 3:
        ends = [points.shape[1]] * len(points) if lengths is None else lengths
        clouds = [cloud[:end] for cloud, end in zip(points, ends)]
    else:
        clouds = [points]
    begins = [start_index] * len(clouds) if start_indices is None else start_indices
    answers = [cloud_reference.farthest_points(c, k, s) for c, s in zip(clouds, begins)]
    indices, distances = (np.array(each) for each in zip(*answers))
    if batch_offsets is not None:
        indices = np.where(indices < 0, -1, indices + np.asarray(batch_offsets[:-1])[:, None])
    elif points.ndim == 2:
        indices, distances = indices[0], distances[0]
    if start_index:
        case.set(start_index=start_index)
    case.input(points=points, start_indices=start_indices)
    case.input(lengths=lengths, batch_offsets=batch_offsets)
    number = np.float64 if points.dtype == np.float64 else np.float32
    case.output(indices=indices.astype(np.int64), distances=distances.astype(number))
    return case


def cases():
    random = np.random.RandomState(8)
    points = (random.randint(-16, 16, (3, 20, 4)) / 4).astype(np.float32)
    points[0, 3, 1], points[1, :2, 2], points[2, 7, 0] = np.nan, np.inf, -np.inf
    lengths = np.array([20, 5, 0], np.int32)
    yield farthest_points("f32, whole rows", points, 6)
    yield farthest_points(
        "padded, beyond the points", points, 7, lengths=lengths, start_indices=np.array([19, 1, 0])
    )
    packed = points.reshape(60, 4).astype(np.float16)
    yield farthest_points("f16, packed", packed, 5, batch_offsets=np.array([0, 9, 9, 30, 60]))
    yield farthest_points(
        "f64, one cloud, from the end", points[0].astype(np.float64), 8, start_index=19
    )
    yield farthest_points("ties and duplicates", np.tile(points[1, 5:8, :3], (4, 1)), 9)
