"""Voxelization with NumPy, as its users write it."""

from __future__ import annotations

from typing import Any

import numpy as np

from .cases import Case


def _keys(case: Case, points: Any) -> tuple[Any, Any]:
    """Return a mask of the points in the grid, and the numbers of their voxels over all clouds."""
    origin, size = np.float32(case.origin), np.float32(case.voxel_size)
    index = np.floor((points[:, :3] - origin) / size)
    inside = np.flatnonzero(((index >= 0) & (index < case.shape)).all(1))
    keys = np.ravel_multi_index(tuple(index[inside].astype("int64").T), case.shape)
    return inside, keys if case.clouds == 1 else keys + inside // case.points * case.volume


def _grid(case: Case, flat: Any) -> Any:
    batch = (case.clouds,) if case.clouds > 1 else ()
    return flat.reshape(*batch, *case.shape, *flat.shape[1:])


def occupancy(case: Case, points: Any) -> Any:
    grid = np.zeros(case.clouds * case.volume, bool)
    grid[_keys(case, points)[1]] = True
    return _grid(case, grid)


def count(case: Case, points: Any) -> Any:
    keys = _keys(case, points)[1]
    return _grid(case, np.bincount(keys, minlength=case.clouds * case.volume))


def mean(case: Case, points: Any, features: Any) -> Any:
    inside, keys = _keys(case, points)
    volume = case.clouds * case.volume
    counts = np.maximum(np.bincount(keys, minlength=volume), 1)
    means = np.empty((volume, case.features), "float32")
    for k in range(case.features):
        means[:, k] = np.bincount(keys, features[inside, k], volume) / counts
    return _grid(case, means)


def sparse(case: Case, points: Any, features: Any) -> tuple[Any, Any]:
    inside, keys = _keys(case, points)
    voxels, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
    features = (points if features is None else features)[inside]
    means = np.empty((voxels.size, features.shape[1]), "float32")
    for k in range(features.shape[1]):
        means[:, k] = np.bincount(inverse, features[:, k]) / counts
    shape = (case.clouds, *case.shape)
    return np.stack(np.unravel_index(voxels, shape), 1).astype("int32"), means


def coords_of(case: Case, centroids: Any) -> Any:
    """Return the voxels of centroids."""
    index = np.floor((centroids - case.origin) / case.voxel_size).astype("int32")
    return np.hstack([np.zeros_like(index[:, :1]), index])
