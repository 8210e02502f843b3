"""Voxelization with torch, as its users write it. Points outside go to a voxel after all others."""

from __future__ import annotations

from typing import Any

import torch

from .cases import Case


def _keys(case: Case, points: Any) -> torch.Tensor:
    """Return the number of each point's voxel, over all clouds."""
    x, y, z = (_index(case, points, axis) for axis in range(3))
    inside = x[1] & y[1] & z[1]
    _, ny, nz = case.shape
    key = (x[0] * ny + y[0]) * nz + z[0]
    if case.clouds > 1:
        cloud = torch.arange(case.total, device=points.device) // case.points
        key += cloud * case.volume
    return torch.where(inside, key, case.clouds * case.volume)


def _index(case: Case, points: Any, axis: int) -> tuple[Any, Any]:
    # Scalars in f32 on the device, so that the computation equals the library's.
    origin = torch.full((), case.origin[axis], dtype=torch.float32, device=points.device)
    size = torch.full((), case.voxel_size, dtype=torch.float32, device=points.device)
    index = torch.floor((points[:, axis] - origin) / size)
    return index.long(), (index >= 0) & (index < case.shape[axis])


def _grid(case: Case, flat: Any) -> torch.Tensor:
    batch = (case.clouds,) if case.clouds > 1 else ()
    return flat[:-1].view(*batch, *case.shape, *flat.shape[1:])


def _zeros(case: Case, points: Any, dtype: Any, *behind: int) -> torch.Tensor:
    shape = (case.clouds * case.volume + 1, *behind)
    return torch.zeros(shape, dtype=dtype, device=points.device)


def occupancy(case: Case, points: Any) -> torch.Tensor:
    grid = _zeros(case, points, torch.bool)
    one = torch.ones((), dtype=torch.bool, device=points.device)
    return _grid(case, grid.index_put_((_keys(case, points),), one))


def occupancy_scatter(case: Case, points: Any) -> torch.Tensor:
    grid = _zeros(case, points, torch.bool)
    return _grid(case, grid.scatter_(0, _keys(case, points), True))


def count_bincount(case: Case, points: Any) -> torch.Tensor:
    counts = torch.bincount(_keys(case, points), minlength=case.clouds * case.volume + 1)
    return _grid(case, counts)


def count_index_put(case: Case, points: Any) -> torch.Tensor:
    counts = _zeros(case, points, torch.int32)
    one = torch.ones((), dtype=torch.int32, device=points.device)
    return _grid(case, counts.index_put_((_keys(case, points),), one, accumulate=True))


def count_scatter(case: Case, points: Any) -> torch.Tensor:
    keys = _keys(case, points)
    ones = torch.ones_like(keys, dtype=torch.int32)
    return _grid(case, _zeros(case, points, torch.int32).scatter_add_(0, keys, ones))


def mean(case: Case, points: Any, features: Any) -> torch.Tensor:
    keys = _keys(case, points)
    sums = _zeros(case, points, torch.float32, case.features).index_add_(0, keys, features)
    ones = torch.ones_like(keys, dtype=torch.float32)
    counts = _zeros(case, points, torch.float32).scatter_add_(0, keys, ones)
    return _grid(case, sums.div_(counts.clamp_(min=1).unsqueeze(1)))


def sparse_index_add(case: Case, points: Any, features: Any) -> tuple[Any, Any]:
    features = points if features is None else features
    voxels, inverse, counts = _unique(case, points)
    sums = torch.zeros((len(voxels), features.shape[1]), device=points.device)
    sums.index_add_(0, inverse, features)
    return _coords(case, voxels), sums.div_(counts.unsqueeze(1))


def sparse_scatter_reduce(case: Case, points: Any, features: Any) -> tuple[Any, Any]:
    features = points if features is None else features
    voxels, inverse, _ = _unique(case, points)
    means = torch.zeros((len(voxels), features.shape[1]), device=points.device)
    index = inverse.unsqueeze(1).expand_as(features)
    means.scatter_reduce_(0, index, features, "mean", include_self=False)
    return _coords(case, voxels), means


def _unique(case: Case, points: Any) -> Any:
    # All points are in the grid: none has the voxel after all others.
    return torch.unique(_keys(case, points), return_inverse=True, return_counts=True)


def _coords(case: Case, keys: Any) -> torch.Tensor:
    nx, ny, nz = case.shape
    columns = [keys // (nx * ny * nz), keys // (ny * nz) % nx, keys // nz % ny, keys % nz]
    return torch.stack(columns, 1).int()
