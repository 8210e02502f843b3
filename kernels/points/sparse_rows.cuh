// Writes the rows of voxels in a list, and each point's row.
#pragma once

#include "points/clear_counts.h"
#include "points/points.cuh"
#include "runtime/fast_divmod.h"
#include "runtime/suits_vecs.h"
#include "voxel_problem.h"

namespace rbc::cuda {

struct SparseRows {
  Output<2> coords;  // null: no rows are written
  Output<1> num_voxels;
  Output<1> counts;
  LostCounts lost;
  Output<2> point_to_voxel;
  int64_t capacity;
  int64_t max_points;
  VoxelCoordsOf places;
  bool whole_coords;  // a row of coords is a word
  FastDivmod per_cloud;
  int64_t rows_of_cloud;
  bool padded;
};

inline SparseRows sparseRowsOf(const SparseProblem& p) {
  const bool whole_coords =
      p.coords.stride[1] == 1 && suitsVecs(p.coords.data, {p.coords.stride[0]}, sizeof(int32_t), 4);
  return {p.coords,         p.num_voxels,
          p.counts,         lostCountsOf(p),
          p.point_to_voxel, p.capacity,
          p.max_points,     VoxelCoordsOf(p.grid),
          whole_coords,     FastDivmod(p.points.rows),
          p.points.rows,    !p.points.packed() && p.points.clouds > 1};
}

// Counts what a thread's rows omit.
class LostRows {
 public:
  __device__ void addVoxel(int32_t points) {
    ++voxels_;
    points_ += points;
  }
  __device__ void addClipped(int64_t points) { clipped_ += points; }

  // Called by all threads of a warp together.
  __device__ void finish(const SparseRows& rows) const {
    if (!rows.lost.any) return;
    addOverWarp(rows.lost.counts[0], voxels_);
    addOverWarp(rows.lost.counts[1], points_);
    addOverWarp(rows.lost.counts[2], clipped_);
  }

 private:
  // Adds the sum over a warp, by its first lane.
  static __device__ void addOverWarp(int64_t* at, int64_t value) {
    if (at == nullptr || !__any_sync(~0u, value != 0)) return;
    for (int mask = 16; mask > 0; mask /= 2) value += __shfl_xor_sync(~0u, value, mask);
    if (threadIdx.x % 32 == 0) {
      atomicAdd(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(value));
    }
  }

  int64_t voxels_ = 0;
  int64_t points_ = 0;
  int64_t clipped_ = 0;
};

__device__ __forceinline__ void writeCells(const SparseRows& rows, int64_t row,
                                           const int32_t (&at)[4], int32_t n) {
  auto* coords = static_cast<int32_t*>(rows.coords.data) + row * rows.coords.stride[0];
  if (rows.whole_coords) {
    *reinterpret_cast<int4*>(coords) = make_int4(at[0], at[1], at[2], at[3]);
  } else {
    for (int i = 0; i < 4; ++i) coords[i * rows.coords.stride[1]] = at[i];
  }
  if (rows.counts.data != nullptr) {
    static_cast<int32_t*>(rows.counts.data)[row * rows.counts.stride[0]] = n;
  }
}

// Writes a voxel with n points; beyond the capacity it is only counted.
__device__ __forceinline__ void writeVoxel(const SparseRows& rows, int64_t row, int64_t key,
                                           int32_t n, LostRows* lost) {
  if (row >= rows.capacity) return lost->addVoxel(n);
  if (n > rows.max_points) {
    lost->addClipped(n - rows.max_points);
    n = static_cast<int32_t>(rows.max_points);
  }
  const VoxelCoords place = rows.places(key);
  writeCells(rows, row,
             {static_cast<int32_t>(place.cloud), static_cast<int32_t>(place.x),
              static_cast<int32_t>(place.y), static_cast<int32_t>(place.z)},
             n);
}

// Writes a row without a voxel.
__device__ __forceinline__ void writeNoVoxel(const SparseRows& rows, int64_t row) {
  writeCells(rows, row, {-1, -1, -1, -1}, 0);
}

// Writes a point's row, or -1.
__device__ __forceinline__ void writePoint(const SparseRows& rows, int64_t point, int32_t row) {
  if (row >= rows.capacity) row = -1;
  const int64_t cloud = rows.padded ? rows.per_cloud(point) : 0;
  const Output<2>& out = rows.point_to_voxel;
  const int64_t at = cloud * out.stride[0] + (point - cloud * rows.rows_of_cloud) * out.stride[1];
  if (out.dtype == DType::I64) {
    static_cast<int64_t*>(out.data)[at] = row;
  } else {
    static_cast<int32_t*>(out.data)[at] = row;
  }
}

}  // namespace rbc::cuda
