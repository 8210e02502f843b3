// From a voxel's key back to its place, by divisions that the whole launch shares.
#pragma once

#include "runtime/fast_divmod.cuh"
#include "voxel_problem.h"

namespace rbc::cuda {

struct VoxelCoordsOf {
  FastDivmod per_column;  // voxels along z
  FastDivmod per_row;     // columns along y
  FastDivmod per_cloud;   // rows along x
  int64_t shape[3];

  VoxelCoordsOf() = default;
  explicit VoxelCoordsOf(const VoxelGrid& grid)
      : per_column(grid.shape[2]),
        per_row(grid.shape[1]),
        per_cloud(grid.shape[0]),
        shape{grid.shape[0], grid.shape[1], grid.shape[2]} {}

  __device__ VoxelCoords operator()(int64_t key) const {
    const int64_t column = per_column(key);
    const int64_t row = per_row(column);
    const int64_t cloud = per_cloud(row);
    return {cloud, row - cloud * shape[0], column - row * shape[1], key - column * shape[2]};
  }
};

}  // namespace rbc::cuda
