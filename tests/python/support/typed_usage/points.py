from typing import Any, Union

import numpy as np
import numpy.typing as npt
import torch
from typing_extensions import assert_type

import robocache as rbc

Array = npt.NDArray[np.float32]


def clouds(points: Array) -> None:
    size, shape = 0.2, (10, 10, 4)
    occupied = rbc.voxelize(points, origin=(0, 0, 0), voxel_size=size, shape=shape)
    assert_type(occupied, npt.NDArray[np.bool_])
    grid: rbc.Grid = {"origin": (0, 0, 0), "voxel_size": size, "shape": shape}
    assert_type(rbc.voxelize(points, reduction="count", **grid), npt.NDArray[np.int32])
    assert_type(rbc.voxelize(points, reduction="mean", **grid), Array)
    counts, outside = rbc.voxelize(
        points, reduction="count", return_num_points_outside=True, **grid
    )
    assert_type((counts, outside), tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]])
    assert_type(rbc.voxelize(torch.zeros(3, 3), reduction="count", **grid), torch.Tensor)
    rbc.voxelize_sparse(points, **grid)
    voxels = rbc.voxelize_sparse(points, origin=points[0], voxel_size=(1, 1, 2), shape=shape)
    assert_type(
        voxels.trimmed(), rbc.SparseVoxels[Array, npt.NDArray[np.int32], npt.NDArray[np.int64]]
    )
    assert_type(voxels.coords, npt.NDArray[np.int32])
    assert_type(voxels.num_voxels, npt.NDArray[np.int64])
    assert_type(voxels.features, Union[Array, Any])
    tsdf, weight, unused = rbc.voxelize_tsdf(
        points,
        [0, 0, 0],
        origin=(0, 0, 0),
        voxel_size=size,
        shape=shape,
        truncation=0.5,
        return_num_points_unused=True,
    )
    assert_type(tsdf, Array)

    rbc.voxelize(points, origin=(0, 0, 0), shape=shape)  # type: ignore
    rbc.voxelize_sparse(points, (0, 0, 0), size, shape)  # type: ignore


def operators(points: torch.Tensor) -> None:
    size, shape = 0.2, (10, 10, 4)
    voxels = rbc.torch.voxelize_sparse(
        points, origin=(0, 0, 0), voxel_size=size, shape=shape, max_voxels=100, reduction=None
    )
    assert_type(voxels, rbc.SparseVoxels[torch.Tensor])
    occupied, dropped = rbc.torch.voxelize(
        points, origin=(0, 0, 0), voxel_size=size, shape=shape, return_num_points_outside=True
    )
    assert_type(occupied, torch.Tensor)

    rbc.torch.voxelize(points, origin=(0, 0, 0), shape=shape)  # type: ignore
    rbc.torch.voxelize_sparse(points, origin=(0, 0, 0), shape=shape)  # type: ignore
