"""Voxelization by NumPy, as its users write it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .voxel_cases import VoxelCase


def keys_of(case: VoxelCase, points: Any) -> Any:
    """The numbers of the voxels, through all clouds, of the points in the grid."""
    index, inside = _index(case, points)
    return _numbers(case, index[inside], np.flatnonzero(inside))


def _index(case: VoxelCase, points: Any) -> tuple[Any, Any]:
    origin, inverse = np.float32(case.origin), np.float32(1 / case.voxel_size)
    index = np.floor((points[:, :3] - origin) * inverse)
    return index, ((index >= 0) & (index < case.shape)).all(1)


def _numbers(case: VoxelCase, index: Any, points: Any) -> Any:
    keys = np.ravel_multi_index(tuple(index.astype("int64").T), case.shape)
    return keys if case.clouds == 1 else keys + points // case.points * case.volume


def _grid(case: VoxelCase, flat: Any) -> Any:
    batch = (case.clouds,) if case.clouds > 1 else ()
    return flat.reshape(*batch, *case.shape, *flat.shape[1:])


def occupancy(case: VoxelCase, points: Any) -> Any:
    grid = np.zeros(case.clouds * case.volume, bool)
    grid[keys_of(case, points)] = True
    return _grid(case, grid)


def count(case: VoxelCase, points: Any) -> Any:
    keys = keys_of(case, points)
    return _grid(case, np.bincount(keys, minlength=case.clouds * case.volume))


def mean(case: VoxelCase, points: Any, features: Any) -> Any:
    index, inside = _index(case, points)
    keys = _numbers(case, index[inside], np.flatnonzero(inside))
    volume = case.clouds * case.volume
    counts = np.maximum(np.bincount(keys, minlength=volume), 1)
    means = np.empty((volume, case.features), "float32")
    for k in range(case.features):
        means[:, k] = np.bincount(keys, features[inside, k], volume) / counts
    return _grid(case, means)


def sparse(case: VoxelCase, points: Any, features: Any) -> tuple[Any, Any]:
    index, inside = _index(case, points)
    keys = _numbers(case, index[inside], np.flatnonzero(inside))
    voxels, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    features = (points if features is None else features)[inside]
    means = np.empty((voxels.size, features.shape[1]), "float32")
    for k in range(features.shape[1]):
        means[:, k] = np.bincount(inverse, features[:, k]) / counts
    shape = (case.clouds, *case.shape)
    return np.stack(np.unravel_index(voxels, shape), 1).astype("int32"), means


def coords_of(case: VoxelCase, centroids: Any) -> Any:
    """Where the centroids of voxels lie."""
    index = np.floor((centroids - case.origin) / case.voxel_size).astype("int32")
    return np.hstack([np.zeros_like(index[:, :1]), index])
